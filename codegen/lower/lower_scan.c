/*
 * T.cumsum and T.cummax: running sums along a dimension, digit by digit of the tile's layout.
 *
 *     x  fragment (4, 96) thread = i*8 + j/4%8, slot = j/32*4 + j%4
 *
 *     work[s], total[s] = x[s]
 *     j%4      in a thread:   total of each slot includes those before it
 *     j/4%8    over lanes:    shfl.up 1, 2, 4; what lies before a lane is added to its 4 slots;
 *                             the last lane tells the group's total
 *     j/32     in a thread:   the same over 3 groups of 4 slots
 *
 * After a digit, `work` holds running sums within blocks of the digits so far, and `total` a
 * block's total, in its first slot. Digits over several warps meet in shared memory. Empty places
 * bring the value that changes nothing. Complexity: slots times digits, and log2(lanes) shuffles
 * for each block and digit.
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

struct scan {
	struct lower *l;
	const struct op_scan *op;
	const struct scan_plan *plan;
	const struct wshared *workspace;
	struct dtype type;
	const struct wreg *work, *total, *other, *before;
	const struct scan_level *level;
	int64_t delta; /* of the shuffle being emitted, in lanes */
	int64_t part;  /* being read from shared memory */
	/* Of the thread along the level's digit. */
	const struct expr *lane, *number; /* among the lanes; which part */
	const struct expr *predicate;     /* of what is emitted; NULL: all */
	const struct expr *source;        /* lane that shfl.idx reads from */
};

static const struct expr *at(struct scan *sc, const struct wreg *reg, const struct expr *slot)
{
	return expr_reg(sc->l->pool, reg, reg->type, slot);
}

static const struct expr *combine(struct scan *sc, const struct expr *a, const struct expr *b)
{
	return expr_binary(sc->l->pool, reduce_operator((enum reduce_kind)sc->op->kind), a, b);
}

static const struct expr *identity(struct scan *sc)
{
	return reduce_identity(sc->l->pool, (enum reduce_kind)sc->op->kind, sc->type);
}

/* ---- slots of a level ---- */

enum part_of_slot { BLOCKS, WITHIN };

/* A digit below the level's own, along the scanned dimension. */
static bool is_within(const struct scan *sc, const struct digit *digit)
{
	return digit->dim == sc->op->dim && digit->div < sc->level->digit->div;
}

/* The n-th block's first slot, or the n-th slot of a block counted from there. */
static const struct expr *slot_of(struct scan *sc, enum part_of_slot part, const struct expr *n)
{
	struct expr_pool *pool = sc->l->pool;
	const struct layout *layout = sc->plan->layout;
	const struct expr *slot = expr_int(pool, 0);
	int64_t scale = 1, end = part == BLOCKS ? sc->level->n_blocks : sc->level->n_within;

	/* Digits are sorted with the largest stride first. */
	for (uint32_t i = layout->n_digits; i-- > 0;) {
		const struct digit *digit = &layout->digits[i];
		const struct expr *value;

		if (digit->axis != AXIS_SLOT || is_within(sc, digit) != (part == WITHIN) ||
		    (digit->dim == sc->op->dim && digit->div == sc->level->digit->div))
			continue;
		value = expr_div_int(pool, n, scale);
		scale *= digit->extent;
		if (scale < end)
			value = expr_mod_int(pool, value, digit->extent);
		slot = expr_add(pool, slot, expr_mul_int(pool, value, digit->stride));
	}
	return slot;
}

typedef void emit_fn(struct scan *sc, const struct expr *slot, const struct expr *n);

/* Runs `emit` for the first slot of each block. */
static void for_blocks(struct scan *sc, emit_fn *emit)
{
	struct lower *l = sc->l;
	int64_t extent = sc->level->n_blocks;
	struct access_iter iter = { access_iter_var(&l->space, 0, extent), extent, 0 };
	struct wblock *outer = lower_open(l, &iter);
	const struct expr *n = access_iter_value(&l->space, &iter);

	emit(sc, slot_of(sc, BLOCKS, n), n);
	lower_close(l, outer);
}

/* work[slot + k] for all k of a block: combined with `before`. */
static void add_before(struct scan *sc, const struct expr *slot, const struct expr *before)
{
	struct lower *l = sc->l;
	int64_t extent = sc->level->n_within;
	struct access_iter iter = { access_iter_var(&l->space, 1, extent), extent, 1 };
	struct wblock *outer = lower_open(l, &iter);
	const struct expr *to =
		expr_add(l->pool, slot, slot_of(sc, WITHIN, access_iter_value(&l->space, &iter)));

	lower_set(l, sc->work, to, combine(sc, before, at(sc, sc->work, to)), sc->predicate);
	lower_close(l, outer);
}

/* ---- digits in a thread ---- */

/* Blocks of one thread one after another: q runs over those behind the first. */
static void emit_in_thread(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	struct lower *l = sc->l;
	const struct digit *digit = sc->level->digit;
	int64_t extent = digit->extent - 1;
	struct access_iter iter = { access_iter_var(&l->space, 2, extent), extent, 2 };
	struct wblock *outer = lower_open(l, &iter);
	const struct expr *q = access_iter_value(&l->space, &iter), *here, *last;

	(void)n;
	here = sc->op->reverse ? expr_sub(l->pool, expr_int(l->pool, extent - 1), q)
	                       : expr_add_int(l->pool, q, 1);
	last = expr_add_int(l->pool, here, sc->op->reverse ? 1 : -1);
	here = expr_add(l->pool, slot, expr_mul_int(l->pool, here, digit->stride));
	last = expr_add(l->pool, slot, expr_mul_int(l->pool, last, digit->stride));
	add_before(sc, here, at(sc, sc->total, last));
	lower_set(l, sc->total, here, combine(sc, at(sc, sc->total, last), at(sc, sc->total, here)),
	          NULL);
	lower_close(l, outer);
	if (!sc->op->reverse)
		lower_set(l, sc->total, slot,
		          at(sc, sc->total, expr_add_int(l->pool, slot, extent * digit->stride)), NULL);
}

/* ---- digits over lanes ---- */

static void emit_shift(struct scan *sc, const struct wreg *dst, const struct expr *slot,
                       const struct expr *n)
{
	struct winst *inst = lower_inst(sc->l, sc->op->reverse ? WOP_shfl_down : WOP_shfl_up);
	struct wregs to = { dst, n, 1 }, from = { sc->total, slot, 1 };
	int64_t delta = sc->delta * sc->level->digit->stride;

	if (sc->op->reverse) {
		inst->as.shfl_down.dst = to;
		inst->as.shfl_down.src = from;
		inst->as.shfl_down.delta = delta;
		return;
	}
	inst->as.shfl_up.dst = to;
	inst->as.shfl_up.src = from;
	inst->as.shfl_up.delta = delta;
}

static void emit_shift_other(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	emit_shift(sc, sc->other, slot, n);
}

static void emit_shift_before(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	emit_shift(sc, sc->before, slot, n);
}

static void emit_combine_other(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	lower_set(sc->l, sc->total, slot, combine(sc, at(sc, sc->other, n), at(sc, sc->total, slot)),
	          sc->predicate);
}

static void emit_add_before(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	add_before(sc, slot, at(sc, sc->before, n));
}

static void emit_broadcast(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	struct winst *inst = lower_inst(sc->l, WOP_shfl_idx);

	inst->as.shfl_idx.dst = (struct wregs){ sc->other, n, 1 };
	inst->as.shfl_idx.src = (struct wregs){ sc->total, slot, 1 };
	inst->as.shfl_idx.lane = sc->source;
}

static void emit_take_other(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	lower_set(sc->l, sc->total, slot, at(sc, sc->other, n), NULL);
}

/* The neighbour at distance `delta` against the direction of the scan is one of the same row. */
static const struct expr *has_neighbour(struct scan *sc)
{
	struct lower *l = sc->l;
	struct expr_pool *pool = l->pool;
	int64_t stride = sc->level->digit->stride, lanes = sc->level->split.lanes;
	const struct expr *there;

	if (!sc->op->reverse)
		return expr_binary(pool, BIN_GE, sc->lane, expr_int(pool, sc->delta));
	there = expr_add_int(pool, expr_of_var(pool, l->space.tid), sc->delta * stride);
	return expr_and(pool,
	                expr_lt(pool, expr_add_int(pool, sc->lane, sc->delta), expr_int(pool, lanes)),
	                l->space.n_threads % (lanes * stride) == 0
	                    ? NULL
	                    : expr_lt(pool, there, expr_int(pool, l->space.n_threads)));
}

/* The lane whose `total` is that of all lanes: the last that holds something, or the first. */
static const struct expr *telling_lane(struct scan *sc)
{
	struct expr_pool *pool = sc->l->pool;
	const struct digit *digit = sc->level->digit;
	int64_t lanes = sc->level->split.lanes;
	const struct expr *tid = expr_of_var(pool, sc->l->space.tid), *first, *last;

	first =
		expr_sub(pool, expr_mod_int(pool, tid, 32), expr_mul_int(pool, sc->lane, digit->stride));
	if (sc->op->reverse)
		return first;
	last = expr_int(pool, lanes - 1);
	if (digit->extent % lanes != 0) {
		const struct expr *left = expr_sub(pool, expr_int(pool, digit->extent - 1),
		                                   expr_mul_int(pool, sc->number, lanes));
		last = expr_binary(pool, BIN_MIN, last, left);
	}
	return expr_add(pool, first, expr_mul_int(pool, last, digit->stride));
}

static void scan_lanes(struct scan *sc)
{
	const struct scan_level *level = sc->level;
	int64_t reach =
		level->split.lanes < level->digit->extent ? level->split.lanes : level->digit->extent;

	for (sc->delta = 1; sc->delta < reach; sc->delta *= 2) {
		for_blocks(sc, emit_shift_other);
		sc->predicate = has_neighbour(sc);
		for_blocks(sc, emit_combine_other);
		sc->predicate = NULL;
	}
	sc->delta = 1;
	for_blocks(sc, emit_shift_before);
	sc->predicate = has_neighbour(sc);
	for_blocks(sc, emit_add_before);
	sc->predicate = NULL;
	if (level->is_last && level->split.parts == 1)
		return;
	sc->source = telling_lane(sc);
	for_blocks(sc, emit_broadcast);
	for_blocks(sc, emit_take_other);
}

/* ---- digits over warps: through shared memory ---- */

/* Where the total of a part lies: part, then the threads that do not differ in this digit, then
 * blocks. */
static struct waddr part_addr(struct scan *sc, const struct expr *part, const struct expr *n)
{
	struct expr_pool *pool = sc->l->pool;
	const struct digit *digit = sc->level->digit;
	const struct expr *tid = expr_of_var(pool, sc->l->space.tid), *group, *number;

	group = expr_div_int(pool, tid, digit->stride * digit->extent);
	group = expr_add(pool, expr_mul_int(pool, group, digit->stride),
	                 expr_mod_int(pool, tid, digit->stride));
	number = expr_add(pool, expr_mul_int(pool, part, sc->level->n_groups), group);
	number = expr_add(pool, expr_mul_int(pool, number, sc->level->n_blocks), n);
	return (struct waddr){ .space = WSPACE_SHARED,
		                   .shared = sc->workspace,
		                   .offset = expr_mul_int(pool, number, dtype_bits(sc->type) / 8) };
}

static void emit_store_part(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	struct winst *inst = lower_inst(sc->l, WOP_st);

	inst->predicate = sc->predicate;
	inst->as.st.dst = part_addr(sc, sc->number, n);
	inst->as.st.src = (struct wregs){ sc->total, slot, 1 };
	inst->as.st.bytes = dtype_bits(sc->type) / 8;
}

static void emit_load_part(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	struct winst *inst = lower_inst(sc->l, WOP_ld);

	(void)slot;
	inst->predicate = sc->predicate;
	inst->as.ld.src = part_addr(sc, expr_int(sc->l->pool, sc->part), n);
	inst->as.ld.dst = (struct wregs){ sc->other, n, 1 };
	inst->as.ld.bytes = dtype_bits(sc->type) / 8;
}

static void emit_clear_before(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	(void)slot;
	lower_set(sc->l, sc->before, n, identity(sc), NULL);
}

/* A part that was loaded: it may lie before the thread's own, and belongs to the total. */
static void emit_take_part(struct scan *sc, const struct expr *slot, const struct expr *n)
{
	struct expr_pool *pool = sc->l->pool;
	const struct expr *other = at(sc, sc->other, n), *part = expr_int(pool, sc->part);
	const struct expr *is_before =
		sc->op->reverse ? expr_lt(pool, sc->number, part) : expr_lt(pool, part, sc->number);

	lower_set(sc->l, sc->before, n, combine(sc, at(sc, sc->before, n), other), is_before);
	lower_set(sc->l, sc->total, slot,
	          sc->part ? combine(sc, at(sc, sc->total, slot), other) : other, NULL);
}

static void scan_parts(struct scan *sc)
{
	struct lower *l = sc->l;
	struct expr_pool *pool = l->pool;
	const struct expr *own = NULL;

	if (sc->plan->layout->n_threads < l->space.n_threads)
		own = expr_lt(pool, expr_of_var(pool, l->space.tid),
		              expr_int(pool, sc->plan->layout->n_threads));
	lower_before_write(l, sc->workspace);
	sc->predicate = expr_and(pool, own, expr_binary(pool, BIN_EQ, sc->lane, expr_int(pool, 0)));
	if (expr_is_true(sc->predicate))
		sc->predicate = NULL;
	for_blocks(sc, emit_store_part);
	lower_did(l, sc->workspace, false, true, false);
	lower_before_read(l, sc->workspace);
	sc->predicate = NULL;
	for_blocks(sc, emit_clear_before);
	for (sc->part = 0; sc->part < sc->level->split.parts; sc->part++) {
		sc->predicate = own;
		for_blocks(sc, emit_load_part);
		sc->predicate = NULL;
		for_blocks(sc, emit_take_part);
	}
	lower_did(l, sc->workspace, true, false, false);
	for_blocks(sc, emit_add_before);
}

static void scan_threads(struct scan *sc)
{
	struct expr_pool *pool = sc->l->pool;
	const struct scan_level *level = sc->level;
	int64_t stride = level->digit->stride, lanes = level->split.lanes;
	const struct expr *tid = expr_of_var(pool, sc->l->space.tid);

	sc->lane = expr_mod_int(pool, expr_div_int(pool, tid, stride), lanes);
	sc->number = expr_mod_int(pool, expr_div_int(pool, tid, stride * lanes), level->split.parts);
	if (lanes > 1)
		scan_lanes(sc);
	if (level->split.parts > 1)
		scan_parts(sc);
}

/* ---- the tile in and out ---- */

/* One side of the scan: its slot for each slot of the partition. */
static bool side_slot(struct scan *sc, const struct buffer *buffer, const struct var *slot,
                      const struct expr **out)
{
	struct lower *l = sc->l;
	const struct layout *layout = sc->plan->layout;
	struct loop_plan loop = { layout, 1 };
	const struct var *vars[MAX_RANK];
	const struct expr *index[MAX_RANK];
	struct owner_mismatch bad;

	access_index_vars(&l->space, layout->rank, layout->shape, vars);
	for (uint32_t d = 0; d < layout->rank; d++)
		index[d] = expr_of_var(l->pool, vars[d]);
	struct elem_ref ref = { &loop, vars, buffer, l->solution->buffers[buffer->id].layout, index };
	if (access_fragment_slot(&l->space, &ref, slot, out, &bad))
		return true;
	lower_error(l, "%s: thread %lld scans an element that thread %lld owns",
	            sym_text(l->cx->names, buffer->name), (long long)bad.thread, (long long)bad.owner);
	return false;
}

/* Runs over the tile's slots, in (`is_load`) or out. */
static void move(struct scan *sc, const struct buffer *buffer, bool is_load)
{
	struct lower *l = sc->l;
	const struct layout *layout = sc->plan->layout;
	struct access_iter iter = { access_iter_var(&l->space, 0, layout->n_slots), layout->n_slots,
		                        0 };
	struct loop_plan loop = { layout, 1 };
	const struct wreg *reg = l->reg_of[buffer->id];
	const struct expr *slot = access_iter_value(&l->space, &iter), *side, *guard, *value;
	const struct expr *unused[MAX_RANK];

	if ((!is_load && sc->work == reg) || !side_slot(sc, buffer, iter.var, &side))
		return;
	if (iter.extent == 1)
		side = access_substitute(&l->space, side, &iter.var, &slot, 1);
	access_loop_index(&l->space, &loop, slot, unused, &guard);
	struct wblock *outer = lower_open(l, &iter);
	if (is_load) {
		value = expr_cast(l->pool, sc->type, at(sc, reg, side));
		if (guard)
			value = expr_select(l->pool, guard, value, identity(sc));
		if (guard || sc->work != reg)
			lower_set(l, sc->work, slot, value, NULL);
		lower_set(l, sc->total, slot, at(sc, sc->work, slot), NULL);
	} else {
		lower_set(l, reg, side, expr_cast(l->pool, reg->type, at(sc, sc->work, slot)), guard);
	}
	lower_close(l, outer);
}

static const struct wreg *scratch(struct scan *sc, const char *suffix, int64_t n_slots)
{
	struct lower *l = sc->l;
	const char *name = arena_printf(l->cx->arena, "%s_%s",
	                                sym_text(l->cx->names, sc->op->dst.buffer->name), suffix);

	return warp_new_reg(l->warp, intern_text(l->cx->names, name), sc->type, n_slots);
}

/* The fragment's own registers can hold the running sums. */
static bool is_in_place(const struct scan *sc)
{
	const struct buffer *src = sc->op->src.buffer, *dst = sc->op->dst.buffer;

	return src == dst && dtype_equal(dst->type, sc->type) &&
	       layout_equal_structure(sc->plan->layout, sc->l->solution->buffers[dst->id].layout);
}

void lower_scan(struct lower *l, struct stmt *stmt)
{
	const struct op_scan *op = &stmt->as.op.as.scan;
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];
	struct scan_level levels[MAX_DIGITS];
	struct scan sc = { .l = l, .op = op, .plan = &plan->as.scan };
	uint32_t n_levels;
	int64_t n_blocks = 1;

	if (!plan->has_plan)
		BUG("scan at statement %u has no plan", stmt->id);
	sc.type = lower_working_type(op->dst.buffer->type);
	sc.workspace = map_get(&l->workspace_of, stmt->id);
	n_levels = access_scan_levels(plan->as.scan.layout, op->dim, levels);
	for (uint32_t i = 0; i < n_levels; i++)
		if (levels[i].digit->axis == AXIS_THREAD && levels[i].n_blocks > n_blocks)
			n_blocks = levels[i].n_blocks;
	sc.work = is_in_place(&sc) ? l->reg_of[op->dst.buffer->id]
	                           : scratch(&sc, "work", plan->as.scan.layout->n_slots);
	sc.total = scratch(&sc, "total", plan->as.scan.layout->n_slots);
	sc.other = scratch(&sc, "other", n_blocks);
	sc.before = scratch(&sc, "before", n_blocks);
	move(&sc, op->src.buffer, true);
	for (uint32_t i = 0; i < n_levels && !l->failed; i++) {
		sc.level = &levels[i];
		if (levels[i].digit->axis == AXIS_THREAD)
			scan_threads(&sc);
		else
			for_blocks(&sc, emit_in_thread);
	}
	if (!l->failed)
		move(&sc, op->dst.buffer, false);
}
