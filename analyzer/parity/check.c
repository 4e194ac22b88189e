/*
 * Properties of TileLang's code, as far as the model has what they are about: the layouts of all
 * fragments and shared tiles, the partition of every parallel loop and plain copy, and how
 * reductions meet. Exact where a row says proved or violated; barriers, addresses in global memory
 * and the places of tiles in shared memory are not modelled, and their rows say so.
 */
#include "analyzer/parity/emit.h"

#include <assert.h>

enum { MAX_CHECKED = 1 << 24, MAX_BLOCK_THREADS = 1024 };

struct checker {
	struct parity *parity;
	struct pinfer *infer;
	struct property_list *out;
	bool is_open; /* something of the present property was too large to look at */
	int64_t n_checked;
};

static void add_row(struct checker *check, enum property_name name, enum property_status status,
                    const char *detail)
{
	vec_push(check->infer->arena, &check->out->items,
	         (struct property){ .name = name, .status = status, .buffer = "", .detail = detail });
}

static void add_violated(struct checker *check, enum property_name name, struct span span,
                         const struct buffer *buffer, const char *detail)
{
	const char *text = buffer ? sym_text(check->infer->cx->names, buffer->name) : "";

	vec_push(check->infer->arena, &check->out->items,
	         (struct property){ name, PROPERTY_VIOLATED, span, text, detail });
}

/* The row when nothing was found: proved, or what kept it from that. */
static void conclude(struct checker *check, enum property_name name, uint32_t n_before,
                     const char *detail)
{
	if (check->out->items.n > n_before)
		return;
	add_row(check, name, check->is_open ? PROPERTY_NOT_PROVED : PROPERTY_PROVED,
	        check->is_open ? "some tiles are too large to be enumerated" : detail);
}

static void begin(struct checker *check)
{
	check->is_open = false;
	check->n_checked = 0;
}

/* Enough budget left for n more? */
static bool afford(struct checker *check, int64_t n)
{
	if (n > MAX_CHECKED - check->n_checked) {
		check->is_open = true;
		return false;
	}
	check->n_checked += n;
	return true;
}

/* "(3, 17)" of a fragment's element. */
static const char *element_text(struct checker *check, const struct pfrag *fragment,
                                int64_t element)
{
	const char *text = "";

	for (uint32_t d = fragment->rank; d-- > 0;) {
		text = arena_printf(check->infer->arena, "%lld%s%s",
		                    (long long)(element % fragment->shape[d]), *text ? ", " : "", text);
		element /= fragment->shape[d];
	}
	return arena_printf(check->infer->arena, "(%s)", text);
}

/* ---- coverage ---- */

/* The first element without a thread of the range; -1: all have one. */
static int64_t first_uncovered(const struct pfrag *fragment, int64_t n_threads)
{
	for (int64_t e = 0; e < fragment->n_elems; e++) {
		bool covered = false;

		for (int64_t r = 0; r < fragment->n_reps && !covered; r++) {
			int64_t thread = pfrag_thread(fragment, r, e);

			covered = thread >= 0 && thread < n_threads;
		}
		if (!covered)
			return e;
	}
	return -1;
}

static void check_coverage(struct checker *check)
{
	struct pinfer *infer = check->infer;
	uint32_t n_before = check->out->items.n, n_loops = 0;

	begin(check);
	for (uint32_t i = 0; i < infer->ops.n; i++) {
		const struct pop *op = infer->ops.p[i];
		struct pfrag *partition = op->loop ? infer->state.loop[i] : NULL;
		int64_t element;

		if (!partition || !afford(check, partition->n_elems * partition->n_reps))
			continue;
		n_loops++;
		element = first_uncovered(partition, op->n_threads);
		if (element >= 0)
			add_violated(check, PROPERTY_COVERAGE, op->stmt->span, NULL,
			             arena_printf(infer->arena, "iteration %s runs in none of %lld threads",
			                          element_text(check, partition, element),
			                          (long long)op->n_threads));
	}
	for (uint32_t b = 0; b < infer->program->buffers.n; b++) {
		const struct buffer *buffer = infer->program->buffers.p[b];
		struct pfrag *fragment = infer->state.frag[b];
		int64_t element;

		if (!fragment || !afford(check, fragment->n_elems * fragment->n_reps))
			continue;
		element = first_uncovered(fragment, launch_n_threads(infer->launch));
		if (element >= 0)
			add_violated(check, PROPERTY_COVERAGE, buffer->span, buffer,
			             arena_printf(infer->arena, "no thread owns element %s",
			                          element_text(check, fragment, element)));
	}
	conclude(check, PROPERTY_COVERAGE, n_before,
	         arena_printf(infer->arena,
	                      "each of %lld elements and iterations (%u loops) has a thread",
	                      (long long)check->n_checked, n_loops));
}

/* ---- injectivity ---- */

static void check_injectivity(struct checker *check)
{
	struct pinfer *infer = check->infer;
	uint32_t n_before = check->out->items.n;

	begin(check);
	for (uint32_t b = 0; b < infer->program->buffers.n; b++) {
		const struct buffer *buffer = infer->program->buffers.p[b];
		struct pfrag *fragment = infer->state.frag[b];
		const struct layout *shared = infer->state.shared[b];
		int64_t n = buffer_n_elems(buffer);

		if (fragment && afford(check, n * fragment->n_reps) && !pfrag_injective(fragment))
			add_violated(check, PROPERTY_INJECTIVITY, buffer->span, buffer,
			             "two elements share a register of a thread");
		if (shared && afford(check, n) && !layout_injective(shared, NULL, NULL))
			add_violated(check, PROPERTY_INJECTIVITY, buffer->span, buffer,
			             "two elements share a place in shared memory");
	}
	conclude(check, PROPERTY_INJECTIVITY, n_before,
	         arena_printf(infer->arena, "%lld elements and replicas, no two in one place",
	                      (long long)check->n_checked));
}

/* ---- owner ---- */

static bool has_owner(const struct pfrag *fragment, int64_t element, int64_t thread)
{
	for (int64_t r = 0; r < fragment->n_reps; r++)
		if (pfrag_thread(fragment, r, element) == thread)
			return true;
	return false;
}

/* Point of the loop at which a thread works on an element that it does not have, or an owner of a
 * written element is left out; -1: none. */
static int64_t first_stranger(const struct pfrag *partition, const struct pfrag *fragment,
                              const struct pfused *use, int64_t n_threads)
{
	for (int64_t p = 0; p < partition->n_elems; p++) {
		int64_t element = use->elems ? use->elems[p] : p;

		for (int64_t r = 0; r < partition->n_reps; r++) {
			int64_t thread = pfrag_thread(partition, r, p);

			if (thread < n_threads && !has_owner(fragment, element, thread))
				return p;
		}
		for (int64_t r = 0; use->is_write && r < fragment->n_reps; r++)
			if (!has_owner(partition, p, pfrag_thread(fragment, r, element)))
				return p;
	}
	return -1;
}

static void check_use(struct checker *check, uint32_t at, const struct pfused *use)
{
	struct pinfer *infer = check->infer;
	const struct pop *op = infer->ops.p[at];
	const struct pfrag *partition = infer->state.loop[at];
	const struct pfrag *fragment = infer->state.frag[use->buffer->id];
	int64_t point;

	if (!fragment || use->is_free || (!use->elems && fragment->n_elems != partition->n_elems) ||
	    fragment->n_reps * partition->n_reps > MAX_CHECKED / partition->n_elems ||
	    !afford(check, partition->n_elems * partition->n_reps * fragment->n_reps)) {
		check->is_open |= fragment != NULL;
		return;
	}
	point = first_stranger(partition, fragment, use, op->n_threads);
	if (point < 0)
		return;
	vec_push(
		infer->arena, &check->out->items,
		(struct property){ PROPERTY_OWNER, PROPERTY_NOT_PROVED, op->stmt->span,
	                       sym_text(infer->cx->names, use->buffer->name),
	                       arena_printf(infer->arena,
	                                    "iteration %s: its threads and the element's owners differ",
	                                    element_text(check, partition, point)) });
}

/*
 * T.any_of and T.all_of read as many consecutive addresses as the part has elements, from its first
 * element's on (src/op/logical.cc). The first element that is elsewhere; false: none is. Where the
 * part begins may depend on values: each place along such a dimension is tried.
 */
static bool scan_misses(const struct layout *layout, const struct region *region, int64_t *index)
{
	int64_t first[MAX_RANK] = { 0 }, n = 1, bytes = layout->elem_bits / 8;

	for (uint32_t d = 0; d < layout->rank; d++)
		n *= region->extent[d];
	do {
		int64_t base;
		bool begins = true;

		for (uint32_t d = 0; d < layout->rank; d++) {
			int64_t min;

			begins &= first[d] + region->extent[d] <= layout->shape[d] &&
			          (!expr_is_int(region->min[d], &min) || first[d] == min);
		}
		base = begins ? layout_at(layout, first, 0).offset : 0;
		for (int64_t e = 0; begins && e < n; e++) {
			int64_t rest = e;

			for (uint32_t d = layout->rank; d-- > 0; rest /= region->extent[d])
				index[d] = first[d] + rest % region->extent[d];
			if (layout_at(layout, index, 0).offset != base + e * bytes)
				return true;
		}
	} while (layout_next_index(layout, first));
	return false;
}

static const char *index_text(struct checker *check, const int64_t *index, uint32_t rank)
{
	const char *text = "";

	for (uint32_t d = 0; d < rank; d++)
		text =
			arena_printf(check->infer->arena, "%s%s%lld", text, d ? ", " : "", (long long)index[d]);
	return text;
}

static void check_scans(struct checker *check)
{
	const struct tile_program *program = check->infer->program;

	for (uint32_t i = 0; i < program->scans.n; i++) {
		const struct element_scan *scan = &program->scans.p[i];
		const struct buffer *buffer = scan->region.buffer;
		const struct layout *layout = check->infer->state.shared[buffer->id];
		int64_t index[MAX_RANK] = { 0 };

		if (layout && buffer->launch == check->infer->launch->index && layout->elem_bits >= 8 &&
		    scan_misses(layout, &scan->region, index))
			add_violated(
				check, PROPERTY_OWNER, scan->region.span, buffer,
				arena_printf(check->infer->arena,
			                 "%s reads consecutive addresses, and element (%s) is elsewhere: "
			                 "its layout is no row-major one",
			                 scan->name, index_text(check, index, layout->rank)));
	}
}

static void check_owner(struct checker *check)
{
	struct pinfer *infer = check->infer;
	uint32_t n_before = check->out->items.n, n_uses = 0;

	begin(check);
	for (uint32_t i = 0; i < infer->ops.n; i++) {
		const struct ploop *loop = infer->ops.p[i]->loop;

		for (uint32_t u = 0; loop && infer->state.loop[i] && u < loop->fragments.n; u++) {
			check_use(check, i, &loop->fragments.p[u]);
			n_uses++;
		}
	}
	check_scans(check);
	conclude(check, PROPERTY_OWNER, n_before,
	         arena_printf(infer->arena, "%u fragments in parallel loops and copies, all by owners",
	                      n_uses));
}

/* ---- the rest ---- */

static void check_budget(struct checker *check)
{
	const struct target *target = check->infer->target;
	struct parity *parity = check->parity;
	long long bytes = (long long)parity->schedule->shared_bytes,
			  limit = (long long)target->shared_bytes_block;
	long long threads =
		(long long)(launch_n_threads(check->infer->launch) + parity->n_producer_threads);

	if (threads > MAX_BLOCK_THREADS)
		add_violated(check, PROPERTY_BUDGET, check->infer->launch->span, NULL,
		             arena_printf(check->infer->arena, "%lld threads, a block has at most %d",
		                          threads, MAX_BLOCK_THREADS));
	else if (bytes > limit)
		add_row(check, PROPERTY_BUDGET, PROPERTY_NOT_PROVED,
		        arena_printf(check->infer->arena,
		                     "%lld bytes side by side, %s gives a block %lld: whether tiles that "
		                     "do not live together share a place is not modelled",
		                     bytes, target->name, limit));
	else
		add_row(check, PROPERTY_BUDGET, PROPERTY_PROVED,
		        arena_printf(check->infer->arena,
		                     "at most %lld of %lld bytes of shared memory, %lld of %d threads",
		                     bytes, limit, threads, MAX_BLOCK_THREADS));
}

/* Every element of a reduced row is in the registers of one thread of the group that meets. */
static void check_replicas(struct checker *check)
{
	struct pinfer *infer = check->infer;
	uint32_t n_before = check->out->items.n, n = 0;

	begin(check);
	for (uint32_t i = 0; i < infer->ops.n; i++) {
		const struct pop *op = infer->ops.p[i];
		const struct op_reduce *reduce = &op->stmt->as.op.as.reduce;
		struct pfrag *source;

		if (op->kind != POP_REDUCE)
			continue;
		n++;
		source = infer->state.frag[reduce->src.buffer->id];
		if (source && emit_counts_once(source, (uint32_t)reduce->dim))
			continue;
		vec_push(infer->arena, &check->out->items,
		         (struct property){ PROPERTY_REPLICAS, PROPERTY_NOT_PROVED, op->stmt->span,
		                            sym_text(infer->cx->names, reduce->src.buffer->name),
		                            source ? "the threads that meet are not told apart exactly"
		                                   : "a reduction of shared memory is not modelled" });
	}
	conclude(check, PROPERTY_REPLICAS, n_before,
	         n == 0
	             ? "nothing is reduced across threads"
	             : arena_printf(infer->arena,
	                            "%u reductions: the threads that meet hold each element once", n));
}

void parity_check(struct parity *parity, struct property_list *out)
{
	struct checker check = { .parity = parity, .infer = parity->model, .out = out };

	assert(parity->model);
	if (parity->solution->status == SOLVE_CONFLICT) {
		check_nothing(parity->model->arena, out, "TileLang rejects the kernel");
		return;
	}
	check_coverage(&check);
	check_injectivity(&check);
	check_owner(&check);
	check_replicas(&check);
	add_row(&check, PROPERTY_HAPPENS_BEFORE, PROPERTY_NOT_PROVED,
	        "the barriers of TileLang's code are not modelled");
	add_row(&check, PROPERTY_BOUNDS, PROPERTY_NOT_PROVED,
	        "TileLang guards accesses outside a tensor itself; the guards are not modelled");
	add_row(&check, PROPERTY_ALIGNMENT, PROPERTY_NOT_PROVED,
	        "where TileLang puts a tile in shared memory is not modelled");
	check_budget(&check);
	add_row(&check, PROPERTY_TERMINATION, PROPERTY_NOT_PROVED,
	        "the barriers of TileLang's code are not modelled");
}
