/*
 * The order in which ops infer: all once at the strict level, then a work list at the common level,
 * then, for every component of ops that share fragments, one attempt from each op as root at the
 * free level; the attempt with the fewest registers wins, the first of equals. Facts: TileLang
 * 0.1.15, src/transform/layout_inference.
 */
#include "analyzer/parity/parity_internal.h"

#include "analyzer/layout/view.h"

#include <assert.h>
#include <string.h>

struct engine {
	struct pinfer *infer;
	uint32_t *queue; /* a ring of n_ops + 1 */
	uint32_t first, n_queued, n_ops;
	bool *queued;
	uint32_t *component;
};

enum presult parity_fail(struct pinfer *infer, enum presult result, const struct stmt *stmt,
                         const struct buffer *buffer, const char *reason)
{
	infer->culprit = buffer;
	infer->culprit_stmt = stmt;
	infer->reason = reason;
	return result;
}

/* ---- state ---- */

static struct pstate state_copy(const struct pinfer *infer)
{
	size_t n_buffers = infer->program->buffers.n, n_ops = infer->ops.n;
	struct pstate out;

	out.frag = arena_array(infer->arena, struct pfrag *, n_buffers);
	out.shared = arena_array(infer->arena, const struct layout *, n_buffers);
	out.loop = arena_array(infer->arena, struct pfrag *, n_ops);
	out.padded = arena_array(infer->arena, bool, n_ops);
	if (infer->state.frag) {
		memcpy(out.frag, infer->state.frag, n_buffers * sizeof(*out.frag));
		memcpy(out.shared, infer->state.shared, n_buffers * sizeof(*out.shared));
		memcpy(out.loop, infer->state.loop, n_ops * sizeof(*out.loop));
		memcpy(out.padded, infer->state.padded, n_ops * sizeof(*out.padded));
	}
	return out;
}

static bool is_known(const struct pinfer *infer, const struct buffer *buffer)
{
	return infer->state.frag[buffer->id] || infer->state.shared[buffer->id];
}

/* ---- the work list ---- */

static void push_back(struct engine *engine, uint32_t op)
{
	engine->queue[(engine->first + engine->n_queued++) % (engine->n_ops + 1)] = op;
}

static void push_front(struct engine *engine, uint32_t op)
{
	engine->first = (engine->first + engine->n_ops) % (engine->n_ops + 1);
	engine->queue[engine->first] = op;
	engine->n_queued++;
}

static uint32_t pop_front(struct engine *engine)
{
	uint32_t op = engine->queue[engine->first];

	engine->first = (engine->first + 1) % (engine->n_ops + 1);
	engine->n_queued--;
	engine->queued[op] = false;
	return op;
}

/* Ops that touch the buffer: in front when they know a layout already. */
static void enqueue_users(struct engine *engine, const struct buffer *buffer, uint32_t except)
{
	for (uint32_t i = 0; i < engine->n_ops; i++) {
		const struct pop *op = engine->infer->ops.p[i];
		bool uses = false, anchored = false;

		for (uint32_t t = 0; t < op->touched.n; t++) {
			uses |= op->touched.p[t] == buffer;
			anchored |= is_known(engine->infer, op->touched.p[t]);
		}
		if (!uses || i == except || engine->queued[i])
			continue;
		engine->queued[i] = true;
		if (anchored)
			push_front(engine, i);
		else
			push_back(engine, i);
	}
}

/* ---- views ---- */

static const struct buffer *storage_of(const struct buffer *buffer)
{
	while (buffer->alias_of)
		buffer = buffer->alias_of;
	return buffer;
}

/* The map of a buffer of another shape over the same elements; of another type over the same bytes:
 * NULL when one of its elements is torn. */
static const struct layout *reshaped(struct pinfer *infer, const struct layout *layout,
                                     const struct buffer *view)
{
	int64_t index[MAX_RANK] = { 0 }, e = 0;
	int64_t *table = arena_array(infer->arena, int64_t, (size_t)buffer_n_elems(view));
	struct view_form form = { .rank = view->rank, .bits = dtype_bits(view->type) };
	struct layout *out;

	for (uint32_t d = 0; d < view->rank; d++)
		form.shape[d] = buffer_extent(view, d);
	if (form.bits != layout->elem_bits)
		return layout_view(infer->arena, layout, layout->elem_bits, &form, NULL);
	out = layout_new_memory(infer->arena, view->rank, form.shape, layout->elem_bits);
	do
		table[e++] = layout_at(layout, index, 0).offset;
	while (layout_next_index(layout, index));
	out->table = table;
	layout_finish(out);
	return out;
}

/* What a buffer's layout says of another view of its memory, bit for bit. False when it tears an
 * element of the view: TileLang stops then. */
static bool set_view(struct pinfer *infer, const struct buffer *buffer, const struct buffer *view)
{
	const struct pfrag *fragment = infer->state.frag[buffer->id];
	const struct layout *shared = infer->state.shared[buffer->id];

	if (fragment) {
		struct pfrag *out = arena_new(infer->arena, struct pfrag);

		*out = *fragment;
		out->rank = view->rank;
		for (uint32_t d = 0; d < view->rank; d++)
			out->shape[d] = buffer_extent(view, d);
		infer->state.frag[view->id] = out;
	} else if (shared) {
		infer->state.shared[view->id] = reshaped(infer, shared, view);
		return infer->state.shared[view->id] != NULL;
	}
	return true;
}

/* Fragments in another type are not followed. */
static bool is_same_memory(const struct pinfer *infer, const struct buffer *a,
                           const struct buffer *b)
{
	uint32_t a_bits = dtype_bits(a->type), b_bits = dtype_bits(b->type);

	if (storage_of(a) != storage_of(b) || buffer_n_elems(a) * a_bits != buffer_n_elems(b) * b_bits)
		return false;
	return a_bits == b_bits || (infer->state.shared[a->id] && a_bits >= 8 && b_bits >= 8);
}

/* All views of the buffer's memory that have no layout get its own. */
static enum presult spread_to_views(struct engine *engine, const struct buffer *buffer, uint32_t at,
                                    bool wake)
{
	const struct tile_program *program = engine->infer->program;

	for (uint32_t i = 0; i < program->buffers.n; i++) {
		const struct buffer *view = program->buffers.p[i];

		if (view == buffer || is_known(engine->infer, view) || view->rank == 0 ||
		    !is_same_memory(engine->infer, buffer, view))
			continue;
		if (!set_view(engine->infer, buffer, view))
			return parity_fail(engine->infer, P_FATAL, NULL, view,
			                   "its elements are torn by the layout of the memory that it views");
		if (wake)
			enqueue_users(engine, view, at);
	}
	return P_OK;
}

/* ---- rules of the other ops ---- */

/* The result lives where the reduced rows' threads are. */
static struct pfrag *reduced(struct pinfer *infer, const struct op_reduce *reduce)
{
	const struct buffer *dst = reduce->dst.buffer;
	struct pfrag *source = infer->state.frag[reduce->src.buffer->id], *out;
	int64_t shape[MAX_RANK], inner = 1, extent = source->shape[reduce->dim];

	for (uint32_t d = 0; d < dst->rank; d++)
		shape[d] = buffer_extent(dst, d);
	for (uint32_t d = (uint32_t)reduce->dim + 1; d < source->rank; d++)
		inner *= source->shape[d];
	out = pfrag_new(infer->arena, dst->rank, shape, extent * source->n_reps);
	for (int64_t r = 0; r < out->n_reps; r++)
		for (int64_t e = 0; e < out->n_elems; e++) {
			int64_t element = (e / inner * extent + r % extent) * inner + e % inner;

			if (element < source->n_elems)
				out->thread[r * out->n_elems + e] = pfrag_thread(source, r / extent, element);
		}
	pfrag_number_slots(out);
	pfrag_finish(out);
	return pfrag_condense(infer->arena, out);
}

static enum presult reduce_rule(struct pinfer *infer, const struct pop *op, enum plevel level,
                                struct pupdates *updates)
{
	const struct op_reduce *reduce = &op->stmt->as.op.as.reduce;
	const struct buffer *src = reduce->src.buffer, *dst = reduce->dst.buffer;
	struct pfrag_view old, fresh;

	if (level == LEVEL_STRICT || src->scope != SCOPE_FRAGMENT || dst->scope != SCOPE_FRAGMENT ||
	    !infer->state.frag[src->id])
		return P_OK;
	fresh = (struct pfrag_view){ reduced(infer, reduce), NULL };
	if (!infer->state.frag[dst->id]) {
		updates->items[updates->n++] = (struct pupdate){ .buffer = dst, .frag = fresh.fragment };
		return P_OK;
	}
	old = (struct pfrag_view){ infer->state.frag[dst->id], NULL };
	if (pfrag_contains(&old, &fresh, fresh.fragment->n_elems) == PFRAG_YES)
		return P_OK;
	return parity_fail(infer, P_CONFLICT, op->stmt, dst,
	                   "the result's owners are not those of the reduced rows");
}

/* Fragments inside the region's bounds are in every thread when TMA takes the copy. */
static void replicate_indices(struct pinfer *infer, const struct pop *op, struct pupdates *updates)
{
	const struct op_copy *copy = &op->copy_op;

	for (uint32_t i = 0; i < op->loop->fragments.n; i++) {
		const struct buffer *buffer = op->loop->fragments.p[i].buffer;
		int64_t shape[MAX_RANK];

		if (buffer == copy->src.buffer || buffer == copy->dst.buffer ||
		    infer->state.frag[buffer->id])
			continue;
		for (uint32_t d = 0; d < buffer->rank; d++)
			shape[d] = buffer_extent(buffer, d);
		updates->items[updates->n++] = (struct pupdate){
			.buffer = buffer,
			.frag = pfrag_everywhere(infer->arena, buffer->rank, shape, infer->n_threads),
		};
	}
}

static bool is_row_major(const struct layout *layout)
{
	int64_t index[MAX_RANK] = { 0 }, element = 0;

	if (!layout)
		return true;
	do {
		if (layout_at(layout, index, 0).offset != element++ * layout->elem_bits / 8)
			return false;
	} while (layout_next_index(layout, index));
	return true;
}

static enum presult copy_rule(struct pinfer *infer, uint32_t at, enum plevel level,
                              struct pupdates *updates)
{
	struct pop *op = infer->ops.p[at];
	const struct op_copy *copy = &op->copy_op;
	bool is_store = op->copy.store_1d || op->copy.bulk_store;
	const struct buffer *shared = is_store ? copy->src.buffer : copy->dst.buffer;
	bool flat = false, tma = op->copy.is_tma_load || op->copy.bulk_store;

	if (op->copy.store_1d || (op->copy.is_tma_load && op->copy.load_1d))
		flat = is_row_major(infer->state.shared[shared->id]);
	if (!flat && !tma)
		return parity_loop(infer, at, level, updates);
	if (flat && shared->rank == 1)
		return P_OK;
	replicate_indices(infer, op, updates);
	if (flat || level != LEVEL_FREE || infer->state.shared[shared->id])
		return P_OK;
	updates->items[updates->n++] = (struct pupdate){
		.buffer = shared,
		.shared = is_store ? parity_tma_store_shared(infer->arena, shared)
		                   : parity_tma_load_shared(infer->arena, shared),
	};
	return P_OK;
}

/* What TMA reduces from is swizzled like what it stores. */
static void atomic_rule(struct pinfer *infer, const struct pop *op, enum plevel level,
                        struct pupdates *updates)
{
	const struct buffer *source = op->bulk_source;
	uint32_t bits = source ? dtype_bits(source->type) : 0;

	if (!source || level != LEVEL_FREE || source->rank < 2 || infer->state.shared[source->id])
		return;
	updates->items[updates->n++] = (struct pupdate){
		.buffer = source,
		.shared = bits == 16 || bits == 32 ? parity_tma_store_shared(infer->arena, source)
		                                   : parity_tma_load_shared(infer->arena, source),
	};
}

/* Scans work on row-major shared buffers. */
static enum presult scan_rule(struct pinfer *infer, const struct pop *op, enum plevel level,
                              struct pupdates *updates)
{
	const struct op_scan *scan = &op->stmt->as.op.as.scan;
	const struct buffer *both[2] = { scan->src.buffer, scan->dst.buffer };

	for (int i = 0; i < 2 && level == LEVEL_STRICT; i++) {
		if (both[i]->scope != SCOPE_SHARED || (i == 1 && both[0] == both[1]))
			continue;
		if (!is_row_major(infer->state.shared[both[i]->id]))
			return parity_fail(infer, P_FATAL, op->stmt, both[i], "a scan needs it row-major");
		updates->items[updates->n++] = (struct pupdate){
			.buffer = both[i],
			.shared = parity_swizzle(infer->arena, both[i], 0),
		};
	}
	return P_OK;
}

/* ---- one step ---- */

/* 32, 64 or 128 when the layout is that swizzle of the buffer; 0 otherwise. */
static int64_t swizzle_of(struct pinfer *infer, const struct layout *layout,
                          const struct buffer *buffer)
{
	for (int64_t span = 32; span <= 128; span *= 2) {
		const struct layout *swizzle = parity_swizzle(infer->arena, buffer, span);

		if (swizzle && layout_equal(layout, swizzle, NULL))
			return span;
	}
	return 0;
}

/* A layout for a buffer that has one: equal, wider owners, or the smaller of two swizzles. */
static enum presult commit_again(struct pinfer *infer, const struct pupdate *update,
                                 enum plevel level, const struct stmt *stmt)
{
	uint32_t id = update->buffer->id;
	int64_t a, b;

	if (update->frag) {
		struct pfrag_view old = { infer->state.frag[id], NULL }, fresh = { update->frag, NULL };

		if (level != LEVEL_STRICT && !infer->strict[id] &&
		    pfrag_contains(&old, &fresh, old.fragment->n_elems) == PFRAG_YES) {
			infer->state.frag[id] = update->frag;
			return P_OK;
		}
		if (pfrag_same_slots(update->frag, infer->state.frag[id]))
			return P_OK;
		return parity_fail(infer, P_FATAL, stmt, update->buffer,
		                   "two operations want the fragment in different layouts");
	}
	if (!update->shared || layout_equal(update->shared, infer->state.shared[id], NULL))
		return P_OK;
	a = swizzle_of(infer, update->shared, update->buffer);
	b = swizzle_of(infer, infer->state.shared[id], update->buffer);
	if (a == 0 || b == 0)
		return parity_fail(infer, P_FATAL, stmt, update->buffer,
		                   "two operations want the shared buffer in different layouts");
	if (a < b)
		infer->state.shared[id] = update->shared;
	return P_OK;
}

static enum presult step(struct engine *engine, uint32_t at, enum plevel level, bool wake)
{
	struct pinfer *infer = engine->infer;
	struct pop *op = infer->ops.p[at];
	struct pupdates updates = { 0 };
	enum presult result = P_OK;

	infer->n_threads = op->n_threads;
	switch (op->kind) {
	case POP_LOOP:
		result = parity_loop(infer, at, level, &updates);
		break;
	case POP_COPY:
		result = copy_rule(infer, at, level, &updates);
		break;
	case POP_GEMM:
		result = parity_gemm(infer, at, level, &updates);
		break;
	case POP_REDUCE:
		result = reduce_rule(infer, op, level, &updates);
		break;
	case POP_ATOMIC:
		atomic_rule(infer, op, level, &updates);
		break;
	case POP_SCAN:
		result = scan_rule(infer, op, level, &updates);
		break;
	case POP_OTHER:
		break;
	}
	for (uint32_t i = 0; i < updates.n && result == P_OK; i++) {
		const struct pupdate *update = &updates.items[i];

		if (is_known(infer, update->buffer)) {
			result = commit_again(infer, update, level, op->stmt);
			continue;
		}
		infer->state.frag[update->buffer->id] = update->frag;
		infer->state.shared[update->buffer->id] = update->shared;
		result = spread_to_views(engine, update->buffer, at, wake);
		if (wake)
			enqueue_users(engine, update->buffer, at);
	}
	return result;
}

static enum presult drain(struct engine *engine, enum plevel level)
{
	enum presult result = P_OK;

	while (engine->n_queued > 0 && result == P_OK)
		result = step(engine, pop_front(engine), level, true);
	return result;
}

/* ---- components ---- */

static void find_components(struct engine *engine)
{
	for (uint32_t i = 0; i < engine->n_ops; i++)
		engine->component[i] = i;
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t i = 0; i < engine->n_ops; i++)
			for (uint32_t t = 0; t < engine->infer->ops.p[i]->touched.n; t++)
				for (uint32_t j = 0; j < i; j++) {
					const struct pop *other = engine->infer->ops.p[j];

					for (uint32_t u = 0; u < other->touched.n; u++)
						if (storage_of(other->touched.p[u]) ==
						        storage_of(engine->infer->ops.p[i]->touched.p[t]) &&
						    engine->component[i] != engine->component[j]) {
							uint32_t least = engine->component[i] < engine->component[j]
							                     ? engine->component[i]
							                     : engine->component[j];
							engine->component[i] = engine->component[j] = least;
							changed = true;
						}
				}
	}
}

static int64_t n_registers(const struct pinfer *infer)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < infer->program->buffers.n; i++)
		if (infer->state.frag[i])
			sum += infer->state.frag[i]->n_slots;
	return sum;
}

static enum presult attempt(struct engine *engine, uint32_t root)
{
	enum presult result;

	engine->n_queued = engine->first = 0;
	memset(engine->queued, 0, engine->n_ops * sizeof(bool));
	result = step(engine, root, LEVEL_FREE, true);
	if (result == P_OK)
		result = drain(engine, LEVEL_FREE);
	for (uint32_t i = 0; i < engine->n_ops && result == P_OK; i++) {
		if (i == root || engine->component[i] != engine->component[root])
			continue;
		result = step(engine, i, LEVEL_FREE, true);
		if (result == P_OK)
			result = drain(engine, LEVEL_FREE);
	}
	return result;
}

static enum presult solve_component(struct engine *engine, uint32_t component)
{
	struct pinfer *infer = engine->infer;
	struct pstate start = infer->state, best = { 0 };
	int64_t least = INT64_MAX;

	for (uint32_t root = component; root < engine->n_ops; root++) {
		enum presult result;

		if (engine->component[root] != component)
			continue;
		infer->state = start;
		infer->state = state_copy(infer);
		result = attempt(engine, root);
		if (result == P_FATAL)
			return result;
		if (result == P_OK && n_registers(infer) < least) {
			least = n_registers(infer);
			best = infer->state;
		}
	}
	if (!best.frag)
		return parity_fail(infer, P_FATAL, infer->culprit_stmt, infer->culprit,
		                   infer->reason ? infer->reason : "no layout serves all operations");
	infer->state = best;
	return P_OK;
}

/* ---- all levels ---- */

static void seed_floating(struct pinfer *infer)
{
	for (uint32_t i = 0; i < infer->program->buffers.n; i++) {
		const struct buffer *buffer = infer->program->buffers.p[i];
		int64_t shape[MAX_RANK];

		if (!infer->floating[i] || buffer->scope != SCOPE_FRAGMENT || infer->state.frag[i])
			continue;
		for (uint32_t d = 0; d < buffer->rank; d++)
			shape[d] = buffer_extent(buffer, d);
		infer->state.frag[i] =
			pfrag_everywhere(infer->arena, buffer->rank, shape, infer->n_threads);
	}
}

static struct pfrag *annotated_fragment(struct pinfer *infer, const struct layout *layout)
{
	struct pfrag *out = pfrag_new(infer->arena, layout->rank, layout->shape, layout->n_replicas);

	for (int64_t r = 0; r < out->n_reps; r++) {
		int64_t index[MAX_RANK] = { 0 }, e = 0;

		do {
			struct place place = layout_at(layout, index, r);

			out->thread[r * out->n_elems + e] = (int32_t)place.thread;
			out->slot[e++] = (int32_t)place.slot;
		} while (layout_next_index(layout, index));
	}
	pfrag_finish(out);
	return out;
}

/* Layouts that the kernel gives itself. */
static void seed_annotations(struct pinfer *infer)
{
	for (uint32_t i = 0; i < infer->program->buffers.n; i++) {
		const struct buffer *buffer = infer->program->buffers.p[i];

		if (!buffer->annotation)
			continue;
		if (buffer->scope == SCOPE_SHARED)
			infer->state.shared[i] = buffer->annotation;
		else if (buffer->scope == SCOPE_FRAGMENT)
			infer->state.frag[i] = annotated_fragment(infer, buffer->annotation);
	}
}

/* And what they make of other views of the same memory. */
static enum presult spread_annotations(struct engine *engine)
{
	const struct tile_program *program = engine->infer->program;
	enum presult result = P_OK;

	for (uint32_t i = 0; i < program->buffers.n && result == P_OK; i++)
		if (program->buffers.p[i]->annotation && engine->infer->state.shared[i])
			result = spread_to_views(engine, program->buffers.p[i], 0, false);
	return result;
}

enum presult parity_engine(struct pinfer *infer)
{
	struct engine engine = { .infer = infer, .n_ops = infer->ops.n };
	enum presult result = P_OK;

	engine.queue = arena_array(infer->arena, uint32_t, engine.n_ops + 1);
	engine.queued = arena_array(infer->arena, bool, engine.n_ops + 1);
	engine.component = arena_array(infer->arena, uint32_t, engine.n_ops + 1);
	infer->state = state_copy(infer);
	seed_annotations(infer);
	result = spread_annotations(&engine);
	seed_floating(infer);
	for (uint32_t i = 0; i < engine.n_ops && result == P_OK; i++)
		result = step(&engine, i, LEVEL_STRICT, false);
	for (uint32_t i = 0; i < infer->program->buffers.n; i++)
		infer->strict[i] = infer->state.frag[i] != NULL;
	for (uint32_t i = 0; i < engine.n_ops; i++) {
		engine.queued[i] = true;
		push_back(&engine, i);
	}
	if (result == P_OK)
		result = drain(&engine, LEVEL_COMMON);
	find_components(&engine);
	for (uint32_t i = 0; i < engine.n_ops && result == P_OK; i++)
		if (engine.component[i] == i)
			result = solve_component(&engine, i);
	return result == P_CONFLICT ? P_FATAL : result;
}
