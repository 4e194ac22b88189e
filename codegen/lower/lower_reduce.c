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
 * the shuffles run over the lanes that hold different elements only. In a warp of 12 lanes the tree
 * is padded to 16: a lane whose partner does not exist combines nothing, so that lane 0 alone is
 * sure to have all, and tells the others.
 *
 * T.finalize_reducer is the same with the replicas of the reducer, which are partial results, as
 * one more dimension of the source.
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

struct reduction {
	struct lower *l;
	const struct op_reduce *op;
	const struct reduce_plan *plan;
	const struct wreg *source, *result, *partial, *other;
	struct dtype type;
	int64_t mask;              /* of the shuffle being emitted */
	const struct expr *exists; /* its partner does; NULL: in all lanes */
	const struct expr *lane;   /* that shfl.idx reads from */
};

static const struct expr *combine(struct reduction *r, const struct expr *a, const struct expr *b)
{
	return expr_binary(r->l->pool, reduce_operator((enum reduce_kind)r->op->kind), a, b);
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
	lower_set(r->l, r->partial, slot,
	          reduce_identity(r->l->pool, (enum reduce_kind)r->op->kind, r->type), NULL);
}

static void emit_combine_other(struct reduction *r, const struct expr *slot)
{
	lower_set(r->l, r->partial, slot,
	          combine(r, reg_at(r, r->partial, slot), reg_at(r, r->other, slot)), r->exists);
}

static void emit_take_other(struct reduction *r, const struct expr *slot)
{
	lower_set(r->l, r->partial, slot, reg_at(r, r->other, slot), NULL);
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
	access_index_vars(&l->space, source->rank, source->shape, vars);
	for (uint32_t d = 0; d < source->rank; d++) {
		if ((int64_t)d != r->plan->dim)
			index[n++] = expr_of_var(l->pool, vars[d]);
		else if (dst->rank == source->rank || source->rank == 1)
			index[n++] = expr_int(l->pool, 0);
	}
	assert(n == dst->rank);
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

static void emit_broadcast(struct reduction *r, const struct expr *slot)
{
	struct winst *inst = lower_inst(r->l, WOP_shfl_idx);

	inst->as.shfl_idx.dst = (struct wregs){ r->other, slot, 1 };
	inst->as.shfl_idx.src = (struct wregs){ r->partial, slot, 1 };
	inst->as.shfl_idx.lane = r->lane;
}

/* The lane whose numbers along the reduced digits are 0. */
static const struct expr *first_lane(struct reduction *r)
{
	struct expr_pool *pool = r->l->pool;
	const struct expr *tid = expr_of_var(pool, r->l->space.tid),
					  *lane = expr_mod_int(pool, tid, 32);

	for (uint32_t i = 0; i < r->plan->source->n_digits; i++) {
		const struct digit *digit = &r->plan->source->digits[i];
		struct reduce_split split = access_reduce_split(r->plan->source, digit);
		const struct expr *number;

		if (digit->dim != r->plan->dim || digit->axis != AXIS_THREAD)
			continue;
		number = expr_mod_int(pool, expr_div_int(pool, tid, digit->stride), split.lanes);
		lane = expr_sub(pool, lane, expr_mul_int(pool, number, digit->stride));
	}
	return lane;
}

static void reduce_lanes(struct reduction *r)
{
	struct expr_pool *pool = r->l->pool;
	const struct expr *tid = expr_of_var(pool, r->l->space.tid);

	for (int bit = 0; bit < 5; bit++) {
		if (!(r->plan->lane_mask_bits >> bit & 1))
			continue;
		r->mask = (int64_t)1 << bit;
		r->exists = NULL;
		if (r->l->space.n_threads % (2 * r->mask) != 0)
			r->exists = expr_lt(pool, expr_xor(pool, tid, expr_int(pool, r->mask)),
			                    expr_int(pool, r->l->space.n_threads));
		for_result_slots(r, emit_shuffle);
		for_result_slots(r, emit_combine_other);
	}
	r->exists = NULL;
	if (!r->plan->is_ragged || r->plan->n_parts > 1)
		return;
	r->lane = first_lane(r);
	for_result_slots(r, emit_broadcast);
	for_result_slots(r, emit_take_other);
}

/* ---- through shared memory ---- */

/*
 * The thread digits of the reduced dimension: which part of a row the thread's lanes hold, and
 * whether it is the lane that speaks for them.
 */
struct row_part {
	const struct expr *part, *leader;
	int64_t n_parts;
};

static struct row_part row_part(struct reduction *r)
{
	struct expr_pool *pool = r->l->pool;
	const struct layout *source = r->plan->source;
	const struct expr *tid = expr_of_var(pool, r->l->space.tid), *zero = expr_int(pool, 0);
	struct row_part out = { zero, NULL, 1 };

	for (uint32_t i = 0; i < source->n_digits; i++) {
		const struct digit *digit = &source->digits[i];
		if (digit->dim != r->plan->dim || digit->axis != AXIS_THREAD)
			continue;
		struct reduce_split split = access_reduce_split(source, digit);
		int64_t stride = digit->stride * split.lanes;
		const struct expr *lane =
			expr_mod_int(pool, expr_div_int(pool, tid, digit->stride), split.lanes);
		const struct expr *part = expr_mod_int(pool, expr_div_int(pool, tid, stride), split.parts);
		out.leader = expr_and(pool, out.leader, expr_binary(pool, BIN_EQ, lane, zero));
		out.part = expr_add(pool, out.part, expr_mul_int(pool, part, out.n_parts));
		out.n_parts *= split.parts;
	}
	if (source->n_replicas > 1)
		out.leader = expr_and(pool, out.leader, access_first_replica(&r->l->space, source));
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
                        const struct row_part *part)
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

static void reduce_parts(struct reduction *r, const struct wshared *shared)
{
	struct row_part part = row_part(r);

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

struct dtype lower_working_type(struct dtype type)
{
	return dtype_is_float(type) && type.bits < 32 ? DTYPE_F32 : type;
}

static void run_reduction(struct reduction *r, uint32_t stmt)
{
	r->partial = scratch(r, "part", r->result->n_slots);
	r->other = scratch(r, "other", r->result->n_slots);
	if (!reduce_slots(r))
		return;
	reduce_lanes(r);
	if (r->plan->n_parts > 1)
		reduce_parts(r, map_get(&r->l->workspace_of, stmt));
	for_result_slots(r, emit_result);
}

void lower_reduce(struct lower *l, struct stmt *stmt)
{
	const struct op_reduce *op = &stmt->as.op.as.reduce;
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];
	struct reduction r = {
		.l = l, .op = op, .plan = &plan->as.reduce, .type = lower_working_type(op->dst.buffer->type)
	};

	if (!plan->has_plan)
		BUG("reduction at statement %u has no plan", stmt->id);
	r.source = l->reg_of[op->src.buffer->id];
	r.result = l->reg_of[op->dst.buffer->id];
	if (!r.source || !r.result) {
		lower_error(l, "a reduction of memory that is no fragment is known, but not supported yet");
		return;
	}
	run_reduction(&r, stmt->id);
}

void lower_finalize(struct lower *l, struct stmt *stmt)
{
	const struct op_finalize_reducer *op = &stmt->as.op.as.finalize_reducer;
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];
	struct op_reduce reduce = { .src = op->dst, .dst = op->dst, .kind = op->kind, .clear = 1 };
	struct reduction r = { .l = l,
		                   .op = &reduce,
		                   .plan = &plan->as.reduce,
		                   .type = lower_working_type(op->dst.buffer->type),
		                   .source = l->reg_of[op->dst.buffer->id],
		                   .result = l->reg_of[op->dst.buffer->id] };

	assert(plan->has_plan);
	run_reduction(&r, stmt->id);
}
