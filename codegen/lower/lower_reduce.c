/*
 * T.reduce_*: a thread combines its own slots, then lanes exchange with xor shuffles, then warps
 * through shared memory.
 *
 *     x      fragment (4, 320) thread = i*8 + j/8%8, slot = j/64*8 + j%8
 *     total  fragment (4)      the eight lanes of a row are replicas
 *
 *     unroll for step in 1:  total_p[step] = 0
 *     unroll for step in 40: total_p[step/40] = total_p[step/40] + x[step]
 *     shfl.xor total_t <- total_p 1 ; total_p = total_p + total_t ; ... 2, 4
 *     set total[0] = total_p[0]
 *
 * Every element is combined exactly once: padded slots are skipped by the partition's guard, and
 * the shuffles run over the lanes that hold different elements only.
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>
#include <float.h>
#include <math.h>

struct reduction {
	struct lower *l;
	const struct op_reduce *op;
	const struct reduce_plan *plan;
	const struct wreg *source, *result, *partial, *other;
	struct dtype type;
	int64_t mask; /* of the shuffle being emitted */
};

static const struct expr *constant(struct reduction *r, double value)
{
	if (dtype_is_float(r->type))
		return expr_float(r->l->pool, r->type, value);
	return expr_int_typed(r->l->pool, r->type, (int64_t)value);
}

/* Smallest and largest value of the type, as reductions start from. */
static const struct expr *extreme(struct reduction *r, bool largest)
{
	struct expr_pool *pool = r->l->pool;
	int bits = r->type.bits;

	if (dtype_is_float(r->type))
		return expr_float(pool, r->type, largest ? (double)INFINITY : -(double)INFINITY);
	if (r->type.kind == TYPE_UINT || r->type.kind == TYPE_BOOL)
		return expr_int_typed(pool, r->type,
		                      largest ? (bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1) : 0);
	int64_t high = bits >= 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
	return expr_int_typed(pool, r->type, largest ? high : -high - 1);
}

static const struct expr *identity(struct reduction *r)
{
	switch ((enum reduce_kind)r->op->kind) {
	case REDUCE_SUM:
	case REDUCE_ABSSUM:
	case REDUCE_ABSMAX:
	case REDUCE_BITOR:
	case REDUCE_BITXOR:
		return constant(r, 0);
	case REDUCE_MAX:
		return extreme(r, false);
	case REDUCE_MIN:
		return extreme(r, true);
	case REDUCE_BITAND:
		return constant(r, -1);
	}
	return NULL;
}

static enum binary_op combiner(enum reduce_kind kind)
{
	switch (kind) {
	case REDUCE_SUM:
	case REDUCE_ABSSUM:
		return BIN_ADD;
	case REDUCE_MAX:
	case REDUCE_ABSMAX:
		return BIN_MAX;
	case REDUCE_MIN:
		return BIN_MIN;
	case REDUCE_BITAND:
		return BIN_BITAND;
	case REDUCE_BITOR:
		return BIN_BITOR;
	case REDUCE_BITXOR:
		return BIN_BITXOR;
	}
	return BIN_ADD;
}

static const struct expr *combine(struct reduction *r, const struct expr *a, const struct expr *b)
{
	return expr_binary(r->l->pool, combiner((enum reduce_kind)r->op->kind), a, b);
}

static const struct expr *reg_at(struct reduction *r, const struct wreg *reg,
                                 const struct expr *slot)
{
	return expr_reg(r->l->pool, reg, reg->type, slot);
}

/* An element as it enters the reduction: converted, absolute where asked. */
static const struct expr *entering(struct reduction *r, const struct expr *slot)
{
	struct expr_pool *pool = r->l->pool;
	const struct expr *value = expr_cast(pool, r->type, reg_at(r, r->source, slot));

	if (r->op->kind != REDUCE_ABSMAX && r->op->kind != REDUCE_ABSSUM)
		return value;
	return expr_binary(pool, BIN_MAX, value, expr_unary(pool, UN_NEG, value));
}

/* Runs `emit` once for each result slot. */
static void for_result_slots(struct reduction *r,
                             void (*emit)(struct reduction *r, const struct expr *slot))
{
	struct lower *l = r->l;
	struct access_iter iter = { access_iter_var(&l->space, 0, r->partial->n_slots),
		                        r->partial->n_slots, 0 };
	struct wblock *outer = lower_open(l, &iter);

	emit(r, access_iter_value(&l->space, &iter));
	lower_close(l, outer);
}

static void emit_identity(struct reduction *r, const struct expr *slot)
{
	lower_set(r->l, r->partial, slot, identity(r), NULL);
}

static void emit_combine_other(struct reduction *r, const struct expr *slot)
{
	lower_set(r->l, r->partial, slot,
	          combine(r, reg_at(r, r->partial, slot), reg_at(r, r->other, slot)), NULL);
}

static void emit_result(struct reduction *r, const struct expr *slot)
{
	const struct expr *value = reg_at(r, r->partial, slot);

	if (!r->op->clear)
		value = combine(r, expr_cast(r->l->pool, r->type, reg_at(r, r->result, slot)), value);
	lower_set(r->l, r->result, slot, expr_cast(r->l->pool, r->result->type, value), NULL);
}

/* The result's slot for each source slot, and the guard of padded ones. */
static bool result_slot(struct reduction *r, struct access_iter *iter, const struct expr **slot,
                        const struct expr **guard)
{
	struct lower *l = r->l;
	const struct layout *source = r->plan->source;
	struct loop_plan loop = { source, 1 };
	const struct var *vars[MAX_RANK];
	const struct expr *index[MAX_RANK], *at[MAX_RANK];
	struct owner_mismatch bad;
	const struct buffer *dst = r->op->dst.buffer;
	uint32_t n = 0;

	*iter =
		(struct access_iter){ access_iter_var(&l->space, 0, source->n_slots), source->n_slots, 0 };
	for (uint32_t d = 0; d < source->rank; d++) {
		vars[d] = access_iter_var(&l->space, 2 + (d < 3 ? d : 3), source->shape[d]);
		if ((int64_t)d != r->op->dim)
			index[n++] = expr_of_var(l->pool, vars[d]);
		else if (dst->rank == source->rank || source->rank == 1)
			index[n++] = expr_int(l->pool, 0);
	}
	assert(n == dst->rank && source->rank <= 4);
	struct elem_ref ref = { &loop, vars, dst, l->solution->buffers[dst->id].layout, index };
	if (!access_fragment_slot(&l->space, &ref, iter->var, slot, &bad)) {
		lower_error(l, "%s: thread %lld reduces into an element that thread %lld owns",
		            sym_text(l->cx->names, dst->name), (long long)bad.thread, (long long)bad.owner);
		return false;
	}
	access_loop_index(&l->space, &loop, expr_of_var(l->pool, iter->var), at, guard);
	return true;
}

static bool reduce_slots(struct reduction *r)
{
	struct lower *l = r->l;
	struct access_iter iter;
	const struct expr *slot, *guard;

	for_result_slots(r, emit_identity);
	if (!result_slot(r, &iter, &slot, &guard))
		return false;
	struct wblock *outer = lower_open_guard(l, &guard, &iter, 1);
	lower_open(l, &iter);
	const struct expr *value =
		combine(r, reg_at(r, r->partial, slot), entering(r, access_iter_value(&l->space, &iter)));
	if (iter.extent == 1) {
		const struct expr *zero = expr_int(l->pool, 0);
		slot = access_substitute(&l->space, slot, &iter.var, &zero, 1);
		value = access_substitute(&l->space, value, &iter.var, &zero, 1);
		guard = guard ? access_substitute(&l->space, guard, &iter.var, &zero, 1) : NULL;
	}
	lower_set(l, r->partial, slot, value, guard);
	lower_close(l, outer);
	return true;
}

static void emit_shuffle(struct reduction *r, const struct expr *slot)
{
	struct winst *inst = lower_inst(r->l, WOP_shfl_xor);

	inst->as.shfl_xor.dst = (struct wregs){ r->other, slot, 1 };
	inst->as.shfl_xor.src = (struct wregs){ r->partial, slot, 1 };
	inst->as.shfl_xor.mask = r->mask;
}

static void reduce_lanes(struct reduction *r)
{
	for (int bit = 0; bit < 5; bit++) {
		if (!(r->plan->lane_mask_bits >> bit & 1))
			continue;
		r->mask = (int64_t)1 << bit;
		for_result_slots(r, emit_shuffle);
		for_result_slots(r, emit_combine_other);
	}
}

/* ---- across warps ---- */

/*
 * The thread digits of the reduced dimension: which part of a row the thread's warp holds, and
 * whether it is the lane that speaks for it.
 */
struct warp_part {
	const struct expr *part, *leader;
	int64_t n_parts;
};

static struct warp_part warp_part(struct reduction *r)
{
	struct expr_pool *pool = r->l->pool;
	const struct layout *source = r->plan->source;
	const struct expr *tid = expr_of_var(pool, r->l->space.tid), *zero = expr_int(pool, 0);
	struct warp_part out = { zero, NULL, 1 };

	for (uint32_t i = 0; i < source->n_digits; i++) {
		const struct digit *digit = &source->digits[i];
		if (digit->dim != r->op->dim || digit->axis != AXIS_THREAD)
			continue;
		int64_t lanes = digit->stride >= 32                   ? 1
		                : digit->stride * digit->extent <= 32 ? digit->extent
		                                                      : 32 / digit->stride;
		int64_t warps = digit->extent / lanes, stride = digit->stride * lanes;
		const struct expr *lane = expr_mod_int(pool, expr_div_int(pool, tid, digit->stride), lanes);
		const struct expr *warp = expr_mod_int(pool, expr_div_int(pool, tid, stride), warps);
		out.leader = expr_and(pool, out.leader, expr_binary(pool, BIN_EQ, lane, zero));
		out.part = expr_add(pool, out.part, expr_mul_int(pool, warp, out.n_parts));
		out.n_parts *= warps;
	}
	if (source->n_replicas > 1)
		out.leader =
			expr_and(pool, out.leader,
		             expr_binary(pool, BIN_EQ, layout_replica_expr(pool, source, tid), zero));
	return out;
}

/* Flat number of the result element at a slot. */
static const struct expr *result_element(struct reduction *r, const struct expr *slot,
                                         const struct expr **guard)
{
	struct lower *l = r->l;
	const struct buffer *dst = r->op->dst.buffer;
	struct loop_plan loop = { l->solution->buffers[dst->id].layout, 1 };
	const struct expr *index[MAX_RANK];

	access_loop_index(&l->space, &loop, slot, index, guard);
	return lower_flat_index(l, dst, index);
}

static struct waddr workspace_addr(struct reduction *r, const struct wshared *shared,
                                   const struct expr *element)
{
	const struct expr *offset = expr_mul_int(r->l->pool, element, dtype_bits(r->type) / 8);

	return (struct waddr){ .space = WSPACE_SHARED, .shared = shared, .offset = offset };
}

static void store_parts(struct reduction *r, const struct wshared *shared,
                        const struct warp_part *part)
{
	struct lower *l = r->l;
	struct access_iter iter = { access_iter_var(&l->space, 0, r->partial->n_slots),
		                        r->partial->n_slots, 0 };
	struct wblock *outer = lower_open(l, &iter);
	const struct expr *guard, *slot = access_iter_value(&l->space, &iter),
							  *element = result_element(r, slot, &guard);
	int64_t n_elems = buffer_n_elems(r->op->dst.buffer);
	struct winst *inst = lower_inst(l, WOP_st);

	inst->predicate = expr_and(l->pool, guard, expr_is_true(part->leader) ? NULL : part->leader);
	inst->as.st.dst = workspace_addr(
		r, shared, expr_add(l->pool, expr_mul_int(l->pool, part->part, n_elems), element));
	inst->as.st.src = (struct wregs){ r->partial, slot, 1 };
	inst->as.st.bytes = dtype_bits(r->type) / 8;
	lower_close(l, outer);
}

static void load_part(struct reduction *r, const struct wshared *shared, int64_t part)
{
	struct lower *l = r->l;
	struct access_iter iter = { access_iter_var(&l->space, 0, r->partial->n_slots),
		                        r->partial->n_slots, 0 };
	struct wblock *outer = lower_open(l, &iter);
	const struct expr *guard, *slot = access_iter_value(&l->space, &iter),
							  *element = result_element(r, slot, &guard);
	struct winst *inst = lower_inst(l, WOP_ld);

	inst->predicate = guard;
	inst->as.ld.src = workspace_addr(
		r, shared, expr_add_int(l->pool, element, part * buffer_n_elems(r->op->dst.buffer)));
	inst->as.ld.dst = (struct wregs){ part ? r->other : r->partial, slot, 1 };
	inst->as.ld.bytes = dtype_bits(r->type) / 8;
	lower_close(l, outer);
	if (part)
		for_result_slots(r, emit_combine_other);
}

static void reduce_warps(struct reduction *r, const struct wshared *shared)
{
	struct warp_part part = warp_part(r);

	lower_before_write(r->l, shared);
	store_parts(r, shared, &part);
	lower_did(r->l, shared, false, true, false);
	lower_before_read(r->l, shared);
	for (int64_t p = 0; p < part.n_parts; p++)
		load_part(r, shared, p);
	lower_did(r->l, shared, true, false, false);
}

static const struct wreg *scratch(struct reduction *r, const char *suffix, int64_t n_slots)
{
	struct lower *l = r->l;
	const char *name = arena_printf(l->cx->arena, "%s_%s",
	                                sym_text(l->cx->names, r->op->dst.buffer->name), suffix);

	return warp_new_reg(l->warp, intern_text(l->cx->names, name), r->type, n_slots);
}

/* Sums of narrow floats run in float32. */
static struct dtype working_type(struct dtype type)
{
	return dtype_is_float(type) && type.bits < 32 ? DTYPE_F32 : type;
}

void lower_reduce(struct lower *l, struct stmt *stmt)
{
	const struct op_reduce *op = &stmt->as.op.as.reduce;
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];
	struct reduction r = {
		.l = l, .op = op, .plan = &plan->as.reduce, .type = working_type(op->dst.buffer->type)
	};

	if (!plan->has_plan)
		BUG("reduction at statement %u has no plan", stmt->id);
	r.source = l->reg_of[op->src.buffer->id];
	r.result = l->reg_of[op->dst.buffer->id];
	if (!r.source || !r.result) {
		lower_error(l, "a reduction of memory that is no fragment is known, but not supported yet");
		return;
	}
	r.partial = scratch(&r, "part", r.result->n_slots);
	r.other = scratch(&r, "other", r.result->n_slots);
	if (!reduce_slots(&r))
		return;
	reduce_lanes(&r);
	if (plan->as.reduce.n_warps > 1)
		reduce_warps(&r, map_get(&l->workspace_of, stmt->id));
	for_result_slots(&r, emit_result);
}
