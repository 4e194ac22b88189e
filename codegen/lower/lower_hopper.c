/*
 * What a kernel that orders its own groups of threads says: mbarrier objects, bulk copies, waits
 * for warpgroup instructions.
 *
 *     T.tma_copy(A[by * 64, ko * 64], A_tile, barrier=full)
 *
 *     mbarrier.expect_tx full[0], 8192, arrives=0 if tid == 128
 *     tma.load A_tile[0] <- full[0], A[...], ko*64, by*64, 0, 0, 0 ... if tid == 128
 *
 * One thread copies: the first of its role, or of those that get there. An arrival stands behind
 * the waits for the thread's own cp.async and a proxy fence where warpgroup instructions read what
 * it wrote.
 */
#include "codegen/lower/lower_internal.h"

#include "analyzer/tile/alias.h"

#include <assert.h>
#include <string.h>

static bool is_call_of(const struct lower *l, const struct stmt *stmt, const char *name)
{
	const struct expr *call = stmt->as.op.as.evaluate.value;

	return call->kind == EXPR_CALL && strcmp(sym_text(l->cx->names, call->as.callee), name) == 0;
}

/* ---- barriers ---- */

/* The barrier's place; false after an error. */
static bool barrier_addr(struct lower *l, const struct expr *barrier, struct waddr *out)
{
	const struct expr *index[MAX_RANK];
	const struct buffer *buffer;

	if (barrier->kind != EXPR_LOAD || !l->shared_of[barrier->as.buffer->id]) {
		lower_error(l, "a barrier that is no element of T.alloc_barrier is not supported yet");
		return false;
	}
	buffer = barrier->as.buffer;
	for (uint32_t d = 0; d < buffer->rank; d++)
		index[d] = lower_scalar(l, barrier->args[d]);
	if (l->failed)
		return false;
	*out = lower_shared_addr(
		l, buffer,
		access_offset(&l->space, buffer, l->solution->buffers[buffer->id].layout, index));
	return true;
}

/* Before anybody uses a barrier, its maker and everybody meet: an ordinary hazard of its memory. */
static bool used_barrier(struct lower *l, const struct expr *barrier, struct waddr *out)
{
	if (!barrier_addr(l, barrier, out))
		return false;
	lower_before_read(l, out->shared);
	return !l->failed;
}

static void lower_init(struct lower *l, const struct op_barrier_init *op)
{
	struct waddr bar;
	struct winst *inst;
	int64_t count;

	if (!barrier_addr(l, op->barrier, &bar))
		return;
	if (!expr_is_int(lower_expr(l, op->arrive_count), &count)) {
		lower_error(l, "a barrier whose number of arrivals is only known at run time");
		return;
	}
	inst = lower_inst(l, WOP_mbar_init);
	inst->predicate = expr_binary(l->pool, BIN_EQ, expr_of_var(l->pool, l->space.tid),
	                              expr_int(l->pool, l->roles[l->role].first));
	inst->as.mbar_init.bar = bar;
	inst->as.mbar_init.count = count;
	lower_did(l, bar.shared, false, true, false);
}

static void lower_arrive(struct lower *l, const struct op_barrier_arrive *op)
{
	struct waddr bar;

	if (op->cta) {
		lower_error(l, "a barrier of another block of the cluster is not supported yet");
		return;
	}
	if (!used_barrier(l, op->barrier, &bar))
		return;
	lower_settle(l);
	lower_inst(l, WOP_mbar_arrive)->as.mbar_arrive.bar = bar;
}

static void lower_expect(struct lower *l, const struct op_barrier_expect_tx *op)
{
	struct waddr bar;
	struct wop_mbar_expect *inst;
	const struct expr *bytes;

	if (!used_barrier(l, op->barrier, &bar))
		return;
	bytes = lower_scalar(l, op->bytes);
	if (op->arrives)
		lower_settle(l);
	inst = &lower_inst(l, WOP_mbar_expect)->as.mbar_expect;
	inst->bar = bar;
	inst->bytes = bytes;
	inst->arrives = op->arrives;
}

static void lower_barrier_wait(struct lower *l, const struct op_barrier_wait *op)
{
	struct waddr bar;
	const struct expr *parity;
	struct wop_mbar_wait *inst;

	if (!used_barrier(l, op->barrier, &bar))
		return;
	parity = lower_scalar(l, op->parity);
	inst = &lower_inst(l, WOP_mbar_wait)->as.mbar_wait;
	inst->bar = bar;
	inst->parity = parity;
	/* Copies that report to barriers are not fenced by those who issued them. */
	if (l->has_copy_reports)
		lower_inst(l, WOP_fence_async);
}

/* ---- bulk copies ---- */

struct tma_parts {
	const struct op_tma_copy *copy;
	const struct tma_plan *plan;
	const struct expr *elected;
	struct waddr bar;
	struct access_iter inner, rows, outer;
};

/* The first thread that gets here; NULL after an error. */
static const struct expr *elected(struct lower *l)
{
	const struct thread_range *role = &l->roles[l->role];
	int64_t *values = arena_array(l->cx->arena, int64_t, expr_n_vars(l->pool) + 1u);

	for (int64_t t = role->first; t < role->first + role->n; t++) {
		bool comes = true;

		values[l->warp->tid->id] = t;
		for (uint32_t i = 0; i < l->guards.n && comes; i++) {
			const struct expr *guard = l->guards.p[i];

			if (!guard->is_index || guard->var_mask != (uint64_t)1 << l->warp->tid->id % 64) {
				lower_error(l, "which thread issues this copy depends on more than its number");
				return NULL;
			}
			comes = expr_eval_int(guard, values) != 0;
		}
		if (comes)
			return expr_binary(l->pool, BIN_EQ, expr_of_var(l->pool, l->warp->tid),
			                   expr_int(l->pool, t));
	}
	lower_error(l, "no thread comes here");
	return NULL;
}

/* The number of the box in each of the tile's dimensions, as a start of the box. */
static const struct expr *tile_start(struct lower *l, const struct tma_parts *parts, uint32_t dim,
                                     const struct expr *min)
{
	const struct region *tile = &parts->copy->dst;
	uint32_t last = tile->buffer->rank - 1;
	const struct expr *number;

	if (dim == last)
		number = expr_mul_int(l->pool, access_iter_value(&l->space, &parts->inner),
		                      parts->plan->box.inner);
	else if (dim + 1 == last)
		number = expr_mul_int(l->pool, access_iter_value(&l->space, &parts->rows),
		                      parts->plan->box.rows);
	else {
		int64_t below = 1;

		for (uint32_t d = dim + 1; d + 1 < last; d++)
			below *= tile->extent[d];
		number = expr_mod_int(
			l->pool, expr_div_int(l->pool, access_iter_value(&l->space, &parts->outer), below),
			tile->extent[dim]);
	}
	return min ? expr_add(l->pool, min, number) : number;
}

/* The tile's dimension that runs along the tensor's; -1: the tensor's has extent 1. */
static int tile_dim_of(const struct op_tma_copy *copy, uint32_t tensor_dim)
{
	const struct region *tile = &copy->dst, *tensor = &copy->src;
	int left = 0;

	if (tensor->extent[tensor_dim] == 1)
		return -1;
	for (uint32_t d = tensor_dim + 1; d < tensor->buffer->rank; d++)
		left += tensor->extent[d] > 1;
	for (int d = (int)tile->buffer->rank - 1; d >= 0; d--)
		if (tile->extent[d] > 1 && left-- == 0)
			return d;
	BUG("a bulk copy with different extents passed the verifier");
}

static int64_t box_extent(const struct tma_parts *parts, int tile_dim)
{
	int last = (int)parts->copy->dst.buffer->rank - 1;

	if (tile_dim == last)
		return parts->plan->box.inner;
	return tile_dim == last - 1 ? parts->plan->box.rows : 1;
}

static void emit_load(struct lower *l, const struct tma_parts *parts)
{
	const struct region *tile = &parts->copy->dst, *tensor = &parts->copy->src;
	uint32_t rank = tensor->buffer->rank;
	const struct expr *index[MAX_RANK], *at[MAX_RANK];
	struct winst *inst = lower_inst(l, WOP_tma_load);
	struct wop_tma_load *op = &inst->as.tma_load;
	const struct expr **c[] = { &op->c0, &op->c1, &op->c2, &op->c3, &op->c4 };
	int64_t *e[] = { &op->e0, &op->e1, &op->e2, &op->e3, &op->e4 };

	inst->predicate = parts->elected;
	for (uint32_t d = 0; d < tile->buffer->rank; d++)
		index[d] = tile_start(l, parts, d, tile->min[d]);
	op->dst =
		lower_shared_addr(l, tile->buffer,
	                      access_offset(&l->space, tile->buffer,
	                                    l->solution->buffers[tile->buffer->id].layout, index));
	op->bar = parts->bar;
	op->span = parts->plan->box.span;
	for (uint32_t i = 0; i < TMA_MAX_RANK; i++) {
		*c[i] = expr_int(l->pool, 0);
		*e[i] = 1;
	}
	for (uint32_t d = 0; d < rank; d++) {
		int dim = tile_dim_of(parts->copy, d);

		at[d] = dim < 0 ? tensor->min[d] : tile_start(l, parts, (uint32_t)dim, tensor->min[d]);
		*c[rank - 1 - d] = at[d];
		*e[rank - 1 - d] = dim < 0 ? 1 : box_extent(parts, dim);
	}
	if (!dtype_equal(tensor->buffer->type, alias_owner(tensor->buffer)->type))
		lower_error(l, "%s: bulk copies of a tensor in another type are not supported yet",
		            sym_text(l->cx->names, tensor->buffer->name));
	op->src = lower_global_addr(l, tensor->buffer,
	                            access_offset(&l->space, tensor->buffer, NULL, at), 16);
}

static struct access_iter iter_of(struct lower *l, uint32_t position, int64_t n)
{
	return (struct access_iter){ access_iter_var(&l->space, position, n), n, position };
}

static void lower_load(struct lower *l, const struct op_tma_copy *copy, const struct tma_plan *plan)
{
	struct tma_parts parts = { .copy = copy, .plan = plan };
	struct winst *inst;
	struct wblock *outer;

	if (!used_barrier(l, copy->barrier, &parts.bar))
		return;
	parts.elected = elected(l);
	if (l->failed)
		return;
	lower_before_write(l, l->shared_of[copy->dst.buffer->id]);
	inst = lower_inst(l, WOP_mbar_expect);
	inst->predicate = parts.elected;
	inst->as.mbar_expect.bar = parts.bar;
	inst->as.mbar_expect.bytes = expr_int(l->pool, plan->bytes);
	parts.outer = iter_of(l, 2, plan->box.n_outer);
	parts.rows = iter_of(l, 3, plan->box.n_rows);
	parts.inner = iter_of(l, 4, plan->box.n_inner);
	outer = lower_open(l, &parts.outer);
	lower_open(l, &parts.rows);
	lower_open(l, &parts.inner);
	emit_load(l, &parts);
	lower_close(l, outer);
}

static void lower_tma(struct lower *l, struct stmt *stmt)
{
	const struct tma_plan *plan = &l->solution->plans[stmt->id].as.tma;
	struct op_tma_copy copy = stmt->as.op.as.tma_copy;

	if (!plan->is_load) {
		lower_error(l, "T.tma_copy to global memory is known, but not supported yet");
		return;
	}
	for (uint32_t d = 0; d < copy.src.buffer->rank; d++)
		copy.src.min[d] = lower_scalar(l, copy.src.min[d]);
	for (uint32_t d = 0; d < copy.dst.buffer->rank; d++)
		copy.dst.min[d] = lower_scalar(l, copy.dst.min[d]);
	if (!l->failed)
		lower_load(l, &copy, plan);
}

/* ---- cp.async that the kernel writes ---- */

/* The element that an address is of; NULL: another kind of address. */
static const struct expr *element_of(const struct lower *l, const struct expr *address)
{
	(void)l;
	return address->kind == EXPR_CALL && address->n_args == 1 && address->args[0]->kind == EXPR_LOAD
	           ? address->args[0]
	           : NULL;
}

/* 16 bytes from one element on lie together under the layout: its swizzle moves whole ones. */
static bool keeps_pieces(const struct layout *layout)
{
	bool ok = layout->n_digits > 0;

	for (uint32_t i = 0; i < layout->n_xors; i++)
		ok &= layout->xors[i].to_bit >= 4;
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];
		bool is_piece = digit->dim == (int)layout->rank - 1 && digit->div == 1 &&
		                digit->stride * 8 == layout->elem_bits &&
		                digit->stride * digit->extent % 16 == 0;

		ok &= is_piece || digit->stride % 16 == 0;
	}
	return ok;
}

/* T.ptx_cp_async(to, from, n): n elements of one thread. */
static bool lower_cp_async(struct lower *l, const struct expr *call)
{
	const struct expr *to, *from, *index[MAX_RANK], *at[MAX_RANK];
	const struct layout *layout;
	struct wop_cp_async *op;
	int64_t n, bytes;

	if (call->n_args != 3 || !expr_is_int(call->args[2], &n))
		return false;
	to = element_of(l, call->args[0]);
	from = element_of(l, call->args[1]);
	if (!to || !from || to->as.buffer->scope != SCOPE_SHARED || !l->shared_of[to->as.buffer->id] ||
	    from->as.buffer->scope != SCOPE_GLOBAL ||
	    !dtype_equal(to->as.buffer->type, from->as.buffer->type))
		return false;
	layout = l->solution->buffers[to->as.buffer->id].layout;
	bytes = n * (int64_t)dtype_bits(to->as.buffer->type) / 8;
	if ((bytes != 4 && bytes != 8 && bytes != 16) || !keeps_pieces(layout))
		return false;
	for (uint32_t d = 0; d < to->n_args; d++)
		index[d] = lower_scalar(l, to->args[d]);
	for (uint32_t d = 0; d < from->n_args; d++)
		at[d] = lower_scalar(l, from->args[d]);
	if (l->failed)
		return true;
	op = &lower_inst(l, WOP_cp_async)->as.cp_async;
	op->dst =
		lower_shared_addr(l, to->as.buffer, access_offset(&l->space, to->as.buffer, layout, index));
	op->src = lower_global_addr(l, from->as.buffer,
	                            access_offset(&l->space, from->as.buffer, NULL, at), bytes);
	op->bytes = bytes;
	return true;
}

/* T.ptx_wait_group(n): of the thread's own copies. */
static bool lower_wait_copies(struct lower *l, const struct expr *call)
{
	int64_t n;

	if (call->n_args != 1 || !expr_is_int(call->args[0], &n))
		return false;
	lower_inst(l, WOP_cp_async_wait)->as.cp_async_wait.n_pending = n;
	return true;
}

static bool lower_copies_arrive(struct lower *l, const struct expr *call)
{
	struct waddr bar;

	if (call->n_args != 1)
		return false;
	if (used_barrier(l, call->args[0], &bar))
		lower_inst(l, WOP_mbar_copies)->as.mbar_copies.bar = bar;
	return true;
}

/* ---- waits for warpgroup instructions ---- */

struct accumulators {
	struct lower *l;
	int64_t n_pending;
	vec_of(const struct wreg *) waited;
};

static void visit_accumulator(void *user, struct stmt *stmt)
{
	struct accumulators *found = user;
	struct lower *l = found->l;
	const struct wreg *reg;

	if (stmt->kind != STMT_OP || stmt->as.op.kind != OP_wgmma_gemm)
		return;
	reg = l->reg_of[stmt->as.op.as.wgmma_gemm.c.buffer->id];
	if (l->solution->plans[stmt->id].threads.first != l->roles[l->role].first)
		return;
	for (uint32_t i = 0; i < found->waited.n; i++)
		if (found->waited.p[i] == reg)
			return;
	vec_push(l->cx->arena, &found->waited, reg);
	lower_wgmma_await(l, reg, found->n_pending);
}

/* T.wait_wgmma(n): every accumulator of the role may be used then. */
static bool lower_wait_wgmma(struct lower *l, const struct expr *call)
{
	struct accumulators found = { .l = l };

	if (call->n_args < 1 || !expr_is_int(call->args[0], &found.n_pending))
		return false;
	tile_walk((struct block *)(uintptr_t)&l->warp->launch->body, visit_accumulator, &found);
	return true;
}

/* ---- statements ---- */

bool lower_hopper_call(struct lower *l, const struct stmt *stmt)
{
	const struct expr *call = stmt->as.op.as.evaluate.value;

	if (is_call_of(l, stmt, "wait_wgmma") || is_call_of(l, stmt, "warpgroup_wait"))
		return lower_wait_wgmma(l, call);
	if (is_call_of(l, stmt, "ptx_cp_async"))
		return lower_cp_async(l, call);
	if (is_call_of(l, stmt, "cp_async_barrier_noinc"))
		return lower_copies_arrive(l, call);
	if (is_call_of(l, stmt, "ptx_commit_group")) {
		lower_inst(l, WOP_cp_async_commit);
		return true;
	}
	if (is_call_of(l, stmt, "ptx_wait_group"))
		return lower_wait_copies(l, call);
	if (is_call_of(l, stmt, "fence_proxy_async")) {
		lower_inst(l, WOP_fence_async);
		return true;
	}
	/* Each T.wgmma_gemm is fenced and committed by itself; barriers are made before their use. */
	return is_call_of(l, stmt, "warpgroup_arrive") ||
	       is_call_of(l, stmt, "warpgroup_commit_batch") ||
	       is_call_of(l, stmt, "warpgroup_fence_operand") ||
	       is_call_of(l, stmt, "ptx_fence_barrier_init");
}

void lower_hopper(struct lower *l, struct stmt *stmt)
{
	const struct op *op = &stmt->as.op;

	if (op->kind == OP_tma_copy)
		lower_tma(l, stmt);
	else if (op->kind == OP_barrier_init)
		lower_init(l, &op->as.barrier_init);
	else if (op->kind == OP_barrier_arrive)
		lower_arrive(l, &op->as.barrier_arrive);
	else if (op->kind == OP_barrier_expect_tx)
		lower_expect(l, &op->as.barrier_expect_tx);
	else
		lower_barrier_wait(l, &op->as.barrier_wait);
}

/* ---- what lowering must know beforehand ---- */

static void visit_stmt(void *user, struct stmt *stmt)
{
	struct lower *l = user;
	bool is_op = stmt->kind == STMT_OP;

	if (is_op && stmt->as.op.kind == OP_evaluate)
		l->has_copy_reports |= is_call_of(l, stmt, "cp_async_barrier_noinc");
	/* Bulk copies read their barriers as warpgroup instructions do tiles: behind a proxy fence. */
	if (is_op && stmt->as.op.kind == OP_tma_copy) {
		const struct expr *barrier = stmt->as.op.as.tma_copy.barrier;

		if (barrier && barrier->kind == EXPR_LOAD && l->shared_of[barrier->as.buffer->id])
			l->wgmma_reads[l->shared_of[barrier->as.buffer->id]->id] = true;
	}
}

void lower_find_hopper(struct lower *l, const struct launch *launch)
{
	tile_walk((struct block *)(uintptr_t)&launch->body, visit_stmt, l);
}
