/*
 * T.copy: cp.async from global to shared memory, or through registers.
 *
 *     cp.async   each of the thread's vectors: 16, 8 or 4 bytes; zeros outside of the source
 *     registers  loads as wide as the source allows, stores as wide as the target allows
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

/* One side of a copy at an access's first element, in tid and the iterations. */
struct async_copy {
	struct access dst, src;
	const struct expr *bounds;
};

/* Bounds of the source: its index at the access's slot. */
static const struct expr *source_bounds(struct lower *l, const struct copy_space *space,
                                        const struct loop_plan *loop, const struct access *access,
                                        const struct buffer *buffer)
{
	const struct expr *loop_index[MAX_RANK], *at[MAX_RANK], *guard;

	access_loop_index(&l->space, loop, access->slot, loop_index, &guard);
	for (uint32_t d = 0; d < buffer->rank; d++)
		at[d] =
			access_substitute(&l->space, space->src_index[d], space->vars, loop_index, space->rank);
	return lower_bounds(l, buffer, at);
}

/*
 * Both sides with the same width; false when the source is not aligned for any width of cp.async.
 */
static bool async_accesses(struct lower *l, const struct op_copy *copy,
                           const struct copy_plan *plan, const struct copy_space *space,
                           struct async_copy *out)
{
	const struct layout *layout = l->solution->buffers[copy->dst.buffer->id].layout;
	struct elem_ref dst = { &plan->loop, space->vars, copy->dst.buffer, layout, space->dst_index };
	struct elem_ref src = { &plan->loop, space->vars, copy->src.buffer, NULL, space->src_index };
	int64_t bytes = plan->bytes, widest = 0;

	for (; bytes >= 4; bytes = widest) {
		access_elementwise(&l->space, &dst, true, bytes, &out->dst);
		access_elementwise(&l->space, &src, false, bytes, &out->src);
		if (out->src.bytes == out->dst.bytes && out->dst.bytes >= 4)
			break;
		widest = out->src.bytes < out->dst.bytes ? out->src.bytes : out->dst.bytes;
	}
	out->bounds =
		bytes >= 4 ? source_bounds(l, space, &plan->loop, &out->src, copy->src.buffer) : NULL;
	return bytes >= 4;
}

static void emit_async(struct lower *l, const struct async_copy *copy)
{
	const struct expr *guard = access_predicate(&l->space, &copy->dst);
	struct wblock *outer = lower_open_guard(l, &guard, copy->dst.iters, 2);

	lower_open(l, &copy->dst.iters[0]);
	lower_open(l, &copy->dst.iters[1]);
	lower_open_if(l, guard);
	struct winst *inst = lower_inst(l, WOP_cp_async);
	inst->predicate = copy->bounds;
	inst->as.cp_async.dst = lower_shared_addr(l, copy->dst.buffer, copy->dst.offset);
	inst->as.cp_async.src =
		lower_global_addr(l, copy->src.buffer, copy->src.offset, copy->dst.bytes);
	inst->as.cp_async.bytes = copy->dst.bytes;
	lower_close(l, outer);
}

static void lower_async(struct lower *l, const struct op_copy *copy, const struct copy_plan *plan,
                        const struct copy_space *space)
{
	struct async_copy async;

	if (!async_accesses(l, copy, plan, space, &async)) {
		lower_error(l, "cp.async needs 4 bytes of alignment, which the copy into %s does not have",
		            sym_text(l->cx->names, copy->dst.buffer->name));
		return;
	}
	emit_async(l, &async);
	if (l->in_pipeline)
		return;
	lower_inst(l, WOP_cp_async_commit);
	lower_did(l, l->shared_of[copy->dst.buffer->id], false, false, true);
}

static const struct gather *resolve_gather(struct lower *l, const struct region *region)
{
	struct gather *out = arena_new(l->cx->arena, struct gather);

	*out = *region->gather;
	for (uint32_t d = 0; d < region->buffer->rank; d++)
		out->index[d] = lower_scalar(l, region->gather->index[d]);
	return out;
}

/* The op with its region positions in the warp program's variables. */
static struct op_copy resolve(struct lower *l, const struct op_copy *copy)
{
	struct op_copy out = *copy;

	for (uint32_t d = 0; d < copy->src.buffer->rank && !copy->src.gather; d++)
		out.src.min[d] = lower_scalar(l, copy->src.min[d]);
	if (copy->src.gather)
		out.src.gather = resolve_gather(l, &copy->src);
	for (uint32_t d = 0; d < copy->dst.buffer->rank; d++)
		out.dst.min[d] = lower_scalar(l, copy->dst.min[d]);
	return out;
}

void lower_copy(struct lower *l, struct stmt *stmt)
{
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];
	struct op_copy copy = resolve(l, &stmt->as.op.as.copy);
	struct use_list uses = { .arena = l->cx->arena };
	struct copy_space space;

	if (l->failed)
		return;
	if (!plan->has_plan || !access_copy_space(&l->space, &copy, &space))
		BUG("copy at statement %u has no plan", stmt->id);
	depend_stmt(&uses, stmt);
	if (!l->in_pipeline)
		lower_before_uses(l, &uses);
	if (plan->as.copy.kind == COPY_CP_ASYNC) {
		lower_async(l, &copy, &plan->as.copy, &space);
		return;
	}
	lower_copy_loop(l, &copy, &plan->as.copy.loop, &space);
	if (!l->in_pipeline)
		lower_did_uses(l, &uses);
}
