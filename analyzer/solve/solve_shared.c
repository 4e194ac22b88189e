/*
 * Shared layouts: for each buffer the candidate that costs least over all its readers and writers
 * together.
 *
 * Cost of a candidate = sum over accesses of weight x (wavefronts + instructions), counted exactly
 * on one block and one iteration (access_count). Candidates are tried in the order of preference
 * between equals: linear, the swizzles, then paddings (which take more bytes); the first that
 * reaches every access's ideal ends the search, since none can do better. Where all leave excess,
 * one more is made for the accesses (solve_swizzle.c). Rows of 72 or 104 float16 elements are such
 * a case without any swizzle: their pitch is an odd multiple of 16 bytes. Operands of warpgroup
 * instructions take only what a matrix descriptor expresses: the swizzles and the core matrices.
 */
#include "analyzer/solve/solve_internal.h"

#include "analyzer/tile/alias.h"

#include <assert.h>
#include <string.h>

enum { MAX_BUFFER_ACCESSES = 64 };

struct access_list {
	struct weighted_access items[MAX_BUFFER_ACCESSES];
	uint32_t n;
};

static void push_access(struct solver *solver, struct access_list *list,
                        const struct access *access, int64_t weight)
{
	if (list->n < MAX_BUFFER_ACCESSES)
		list->items[list->n++] = (struct weighted_access){ solver->role, *access, weight };
}

/* ---- what touches a buffer under a layout ---- */

/* `buffer` and `layout` are the owner's; an operand may be a view of it. */

static void add_gemm_accesses(struct solver *solver, const struct buffer *buffer,
                              const struct layout *layout, struct access_list *list)
{
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct gemm_use *use = solver->gemms.p[g];
		const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;
		struct access accesses[MAX_OPERAND_ACCESSES];

		for (int which = 0; which < 2; which++) {
			const struct region *region = which == 0 ? &gemm->a : &gemm->b;
			struct operand_ref ref = { gemm, &use->plan, which, NULL };
			uint32_t n;

			if (alias_owner(region->buffer) != buffer || use->plan.wgmma_n)
				continue;
			solve_enter_role(solver, use->role);
			ref.layout = solve_view_layout(solver, region->buffer, layout);
			n = access_gemm_operand(&solver->access, &ref, accesses);
			for (uint32_t i = 0; i < n; i++)
				push_access(solver, list, &accesses[i], use->weight);
		}
	}
}

static void add_use_accesses(struct solver *solver, const struct space *space,
                             const struct use *use, const struct layout *layout,
                             struct access_list *list)
{
	const struct layout *partition = solver->space_layout[space->id];
	struct loop_plan loop = { partition, solve_vector_elems(partition) };
	struct elem_ref ref = { &loop, space->vars, use->buffer, layout, use->index };
	struct access access;

	solve_enter_role(solver, space->role);
	if (space->kind == SPACE_COPY) {
		solve_copy_plan(solver, space, layout, &access);
		push_access(solver, list, &access, space->weight);
		return;
	}
	if (use->is_load) {
		access_elementwise(&solver->access, &ref, false, 0, &access);
		push_access(solver, list, &access, space->weight);
	}
	if (use->is_store) {
		int64_t max_bytes = use->is_conditional ? dtype_bits(use->buffer->type) / 8 : 0;

		if (use->atomic && max_bytes == 0)
			max_bytes = access_atomic_bytes(solver->target, use->buffer, use->atomic);
		access_elementwise(&solver->access, &ref, true, max_bytes, &access);
		access.op = use->atomic ? BANK_ATOMIC : BANK_ST;
		push_access(solver, list, &access, space->weight);
	}
}

static void list_accesses(struct solver *solver, const struct buffer *buffer,
                          const struct layout *layout, struct access_list *list)
{
	list->n = 0;
	add_gemm_accesses(solver, buffer, layout, list);
	for (uint32_t s = 0; s < solver->spaces.n; s++) {
		const struct space *space = solver->spaces.p[s];

		for (uint32_t u = 0; u < space->uses.n; u++)
			if (alias_owner(space->uses.p[u].buffer) == buffer)
				add_use_accesses(solver, space, &space->uses.p[u],
				                 solve_view_layout(solver, space->uses.p[u].buffer, layout), list);
	}
}

/* ---- weighing ---- */

struct access_cost solve_count(struct solver *solver, const struct access *access)
{
	const struct expr *predicate = access_predicate(&solver->access, access);
	uint64_t key = hash_mix(access->offset->id, predicate ? predicate->id + 1 : 0);
	struct access_cost *cost;

	key = hash_mix(key, solver->role);
	key = hash_mix(key, hash_mix((uint64_t)access->op,
	                             hash_mix((uint64_t)access->bytes, (uint64_t)access->n_matrices)));
	for (uint32_t i = 0; i < access->n_iters; i++)
		key = hash_mix(key, (uint64_t)access->iters[i].extent);
	cost = map_get(&solver->wavefronts, key);
	if (!cost) {
		cost = arena_new(solver->arena, struct access_cost);
		*cost = access_count(&solver->access, access);
		map_set(solver->arena, &solver->wavefronts, key, cost);
	}
	return *cost;
}

/* What warpgroup instructions read: the same under every layout that they can read. */
static void add_wgmma_reads(const struct solver *solver, const struct buffer *buffer,
                            struct candidate *candidate)
{
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct gemm_use *use = solver->gemms.p[g];
		const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;

		for (int which = 0; use->plan.wgmma_n && which < 2; which++) {
			struct access_cost cost = access_wgmma_count(&use->plan, which);

			if (alias_owner(which == 0 ? gemm->a.buffer : gemm->b.buffer) != buffer)
				continue;
			candidate->wavefronts += use->weight * cost.wavefronts;
			candidate->ideal += use->weight * cost.ideal;
			candidate->cost += (double)use->weight * (double)(cost.wavefronts + cost.executions);
		}
	}
}

static struct candidate weigh(struct solver *solver, const struct buffer *buffer,
                              const struct layout *layout, struct access_list *scratch)
{
	struct candidate candidate = { .layout = layout };

	solver->solution->n_visited++;
	list_accesses(solver, buffer, layout, scratch);
	for (uint32_t i = 0; i < scratch->n; i++) {
		solve_enter_role(solver, scratch->items[i].role);
		struct access_cost cost = solve_count(solver, &scratch->items[i].access);
		int64_t weight = scratch->items[i].weight;

		candidate.wavefronts += weight * cost.wavefronts;
		candidate.ideal += weight * cost.ideal;
		candidate.cost += (double)weight * (double)(cost.wavefronts + cost.executions);
	}
	add_wgmma_reads(solver, buffer, &candidate);
	return candidate;
}

static bool is_gemm_operand(const struct solver *solver, const struct buffer *buffer)
{
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct op_gemm *gemm = &solver->gemms.p[g]->stmt->as.op.as.gemm;

		if (alias_owner(gemm->a.buffer) == buffer || alias_owner(gemm->b.buffer) == buffer)
			return true;
	}
	return false;
}

static int64_t row_bytes(const struct buffer *buffer)
{
	return buffer_extent(buffer, buffer->rank - 1) * dtype_bits(buffer->type) / 8;
}

/* Rows that ldmatrix cannot read until they are padded to a multiple of 16 bytes. */
static bool is_ragged_operand(const struct solver *solver, const struct buffer *buffer)
{
	return row_bytes(buffer) % 16 != 0 && is_gemm_operand(solver, buffer);
}

enum { WHOLE_16 = 1 << 20 }; /* a padding up to the next multiple of 16 bytes, and what is more */

const struct layout *solve_nth_layout(struct solver *solver, const struct buffer *buffer, int which,
                                      bool *end)
{
	static const struct {
		int64_t span, pad;
	} forms[] = { { 0, 0 },  { 128, 0 },      { 64, 0 },
		          { 32, 0 }, { 0, 16 },       { 0, 8 },
		          { 0, 4 },  { 0, WHOLE_16 }, { 0, WHOLE_16 + 16 },
		          { 16, 0 } };
	int64_t shape[MAX_RANK];
	uint32_t bits = dtype_bits(buffer->type);
	struct arena_mark mark = arena_mark(solver->arena);
	const struct layout *layout;
	int64_t pad;

	*end = which == (int)(sizeof(forms) / sizeof(forms[0]));
	if (*end || (forms[which].span == 16 && !solve_wgmma_operand(solver, buffer)))
		return NULL;
	for (uint32_t d = 0; d < buffer->rank; d++)
		shape[d] = buffer_extent(buffer, d);
	if (forms[which].span > 0) {
		layout = layout_swizzled(solver->arena, buffer->rank, shape, bits, forms[which].span);
		return solve_intern(solver, layout, mark);
	}
	pad = forms[which].pad;
	if (pad >= WHOLE_16)
		pad = is_ragged_operand(solver, buffer) ? pad - WHOLE_16 + 16 - row_bytes(buffer) % 16 : -1;
	else if (pad > 0 && pad < 16 && is_gemm_operand(solver, buffer))
		pad = -1;
	if (pad < 0 || (pad > 0 && (buffer->rank < 2 || bits % 8 != 0 || pad * 8 % bits != 0)))
		return NULL;
	layout = layout_row_major(solver->arena, buffer->rank, shape, bits, pad);
	return solve_intern(solver, layout, mark);
}

static bool better(const struct candidate *a, const struct candidate *b)
{
	if (a->cost != b->cost)
		return a->cost < b->cost;
	return a->layout->n_bytes < b->layout->n_bytes;
}

/* Candidates sorted by `better`; equal ones stay in order of preference. */
static void insert_candidate(struct solver *solver, struct buffer_solution *out,
                             struct candidate candidate)
{
	uint32_t at;

	vec_push(solver->arena, &out->candidates, candidate);
	for (at = out->candidates.n - 1; at > 0 && better(&candidate, &out->candidates.p[at - 1]); at--)
		out->candidates.p[at] = out->candidates.p[at - 1];
	out->candidates.p[at] = candidate;
}

/* All candidates are weighed when somebody asks why, and where one without excess may still cost
 * more than another: element by element against ldmatrix. Else up to the first without excess. */
static bool wants_all(const struct solver *solver, const struct buffer *buffer)
{
	const char *why = solver->options.why;

	return solver->annotated[buffer->id] || is_ragged_operand(solver, buffer) ||
	       (why && strcmp(why, sym_text(solver->cx->names, buffer->name)) == 0);
}

/* The annotated layout comes first, whatever it costs. */
static void put_annotation_first(struct solver *solver, const struct buffer *buffer,
                                 struct buffer_solution *out, struct access_list *scratch)
{
	const struct layout *annotation = solver->annotated[buffer->id]->layout;
	struct candidate candidate = weigh(solver, buffer, annotation, scratch);
	uint32_t at = 0;

	while (at < out->candidates.n && !layout_equal(out->candidates.p[at].layout, annotation, NULL))
		at++;
	if (at == out->candidates.n)
		vec_push(solver->arena, &out->candidates, candidate);
	for (; at > 0; at--)
		out->candidates.p[at] = out->candidates.p[at - 1];
	out->candidates.p[0] = candidate;
}

static bool is_candidate(const struct buffer_solution *out, const struct layout *layout)
{
	for (uint32_t i = 0; i < out->candidates.n; i++)
		if (layout_equal_structure(out->candidates.p[i].layout, layout))
			return true;
	return false;
}

/* The usual candidates leave excess: one that is made for these accesses. */
static void try_swizzle(struct solver *solver, const struct buffer *buffer,
                        struct buffer_solution *out, struct access_list *scratch)
{
	bool end;
	const struct layout *rows = solve_nth_layout(solver, buffer, 0, &end), *layout;

	if (solve_wgmma_operand(solver, buffer) || solve_tma_operand(solver, buffer))
		return; /* their swizzles are the usual ones */
	list_accesses(solver, buffer, rows, scratch);
	layout = solve_swizzle(solver, buffer, scratch->items, scratch->n);
	if (layout && !is_candidate(out, layout) && solve_keeps_views(solver, buffer, layout))
		insert_candidate(solver, out, weigh(solver, buffer, layout, scratch));
}

/* A buffer under the partitions that touch it, as far as it was looked at. */
struct shared_choice {
	struct buffer_solution solution;
	double least;    /* no layout costs less: instructions and ideal of the best usual candidate */
	bool is_settled; /* nothing more will be tried */
};

/* The usual candidates, up to the first without excess. */
static void weigh_usual(struct solver *solver, const struct buffer *buffer,
                        struct shared_choice *out)
{
	struct access_list *scratch = arena_new(solver->arena, struct access_list);
	bool end = false, all = wants_all(solver, buffer);

	for (int which = 0; !end; which++) {
		const struct layout *layout = solve_nth_layout(solver, buffer, which, &end);
		struct candidate candidate;
		double least;

		if (!layout || !solve_keeps_views(solver, buffer, layout) ||
		    !solve_wgmma_reads(solver, buffer, layout) || !solve_tma_takes(solver, buffer, layout))
			continue;
		candidate = weigh(solver, buffer, layout, scratch);
		least = candidate.cost - (double)(candidate.wavefronts - candidate.ideal);
		if (out->solution.candidates.n == 0 || least < out->least)
			out->least = least;
		insert_candidate(solver, &out->solution, candidate);
		if (candidate.wavefronts == candidate.ideal && !all)
			break;
	}
	if (solver->annotated[buffer->id])
		put_annotation_first(solver, buffer, &out->solution, scratch);
	assert(out->solution.candidates.n > 0);
	out->is_settled = solver->annotated[buffer->id] || out->solution.candidates.p[0].wavefronts <=
	                                                       out->solution.candidates.p[0].ideal;
	if (out->is_settled)
		out->least = out->solution.candidates.p[0].cost;
}

/* One layout more, made for the accesses. */
static void settle(struct solver *solver, const struct buffer *buffer, struct shared_choice *choice)
{
	if (!choice->is_settled)
		try_swizzle(solver, buffer, &choice->solution,
		            arena_new(solver->arena, struct access_list));
	choice->is_settled = true;
	choice->least = choice->solution.candidates.p[0].cost;
}

/* What a buffer's accesses depend on: the partitions of the spaces that touch it. */
static uint64_t touched_by(const struct solver *solver, const struct buffer *buffer)
{
	uint64_t key = hash_mix(buffer->id, 0);

	for (uint32_t s = 0; s < solver->spaces.n; s++) {
		const struct space *space = solver->spaces.p[s];
		bool touches = false;

		for (uint32_t u = 0; u < space->uses.n; u++)
			touches |= alias_owner(space->uses.p[u].buffer) == buffer;
		if (touches)
			key = hash_mix(key, hash_mix(s, solve_layout_hash(solver->space_layout[space->id])));
	}
	return key;
}

/* The buffer under these partitions, remembered. */
static struct shared_choice *find_choice(struct solver *solver, const struct buffer *buffer)
{
	uint64_t key = touched_by(solver, buffer);
	struct shared_choice *known = map_get(&solver->shared_layouts, key);

	if (!known) {
		known = arena_new(solver->arena, struct shared_choice);
		weigh_usual(solver, buffer, known);
		map_set(solver->arena, &solver->shared_layouts, key, known);
	}
	return known;
}

static bool is_used(const struct solver *solver, const struct buffer *buffer)
{
	if (is_gemm_operand(solver, buffer) || solver->by_element[buffer->id] ||
	    solve_tma_operand(solver, buffer))
		return true;
	for (uint32_t s = 0; s < solver->spaces.n; s++)
		for (uint32_t u = 0; u < solver->spaces.p[s]->uses.n; u++)
			if (alias_owner(solver->spaces.p[s]->uses.p[u].buffer) == buffer)
				return true;
	return false;
}

static bool is_mine(const struct solver *solver, const struct buffer *buffer)
{
	return buffer->scope == SCOPE_SHARED && buffer->launch == solver->launch->index &&
	       alias_owner(buffer) == buffer && is_used(solver, buffer);
}

/* Views get what their owners' layouts make of them. */
static void set_views(struct solver *solver, struct buffer_solution *out)
{
	for (uint32_t b = 0; b < solver->program->buffers.n; b++) {
		const struct buffer *view = solver->program->buffers.p[b], *owner = alias_owner(view);

		if (view->scope == SCOPE_SHARED && owner != view && out[owner->id].layout &&
		    view->launch == solver->launch->index)
			out[b].layout = solve_view_layout(solver, view, out[owner->id].layout);
	}
}

double solve_shared(struct solver *solver, double limit, struct buffer_solution *out)
{
	uint32_t n = solver->program->buffers.n;
	struct shared_choice **choices = arena_array(solver->arena, struct shared_choice *, n);
	double cost = 0;

	for (uint32_t b = 0; b < n; b++)
		if (is_mine(solver, solver->program->buffers.p[b])) {
			choices[b] = find_choice(solver, solver->program->buffers.p[b]);
			cost += choices[b]->least;
		}
	for (uint32_t b = 0; b < n && cost < limit; b++)
		if (choices[b]) {
			cost -= choices[b]->least;
			settle(solver, solver->program->buffers.p[b], choices[b]);
			cost += choices[b]->least;
		}
	for (uint32_t b = 0; b < n && cost < limit; b++)
		if (choices[b]) {
			out[b].candidates.p = choices[b]->solution.candidates.p;
			out[b].candidates.n = choices[b]->solution.candidates.n;
			out[b].layout = out[b].candidates.p[0].layout;
		}
	if (cost < limit)
		set_views(solver, out);
	solve_enter_role(solver, 0);
	return cost;
}
