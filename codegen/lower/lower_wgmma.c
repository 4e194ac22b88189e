/*
 * T.gemm on wgmma: every warpgroup multiplies its tile in blocks of 64 rows and parts of N columns.
 *
 *     wgmma.fence C
 *     unroll for step in 4:                             # k = 64 in steps of 16
 *         unroll for c0 in 2:                           # blocks of 64 rows
 *             unroll for c1 in 1: wgmma C[...] <- A_shared[...], B_shared[...]
 *     wgmma.commit
 *     wgmma.wait C
 *
 * In a pipeline whose iteration begins with such a gemm the copies for a later one are issued
 * between the commit and the wait (lower_pipeline.c).
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

/* The addresses of one gemm's instructions. */
struct wgmma_operands {
	const struct wreg *c, *a_reg;
	struct wgmma_operand a, b;
};

/* Registers of D in one instruction. */
static struct wregs accumulator_part(struct lower *l, const struct gemm_plan *plan,
                                     const struct wgmma_operands *operands,
                                     const struct access_iter *blocks)
{
	int64_t slots = plan->wgmma_n / 2;
	const struct expr *block = access_iter_value(&l->space, blocks),
					  *part = access_iter_value(&l->space, &operands->b.parts);
	const struct expr *at =
		expr_add(l->pool, expr_mul_int(l->pool, block, operands->b.parts.extent), part);

	return (struct wregs){ operands->c, expr_mul_int(l->pool, at, slots), slots };
}

static void emit_shared(struct lower *l, const struct op_gemm *gemm, const struct gemm_plan *plan,
                        const struct wgmma_operands *operands)
{
	struct wop_wgmma *op = &lower_inst(l, WOP_wgmma)->as.wgmma;
	const struct wgmma_matrix *a = &operands->a.matrix, *b = &operands->b.matrix;

	op->d = accumulator_part(l, plan, operands, &operands->a.parts);
	op->a = lower_shared_addr(l, gemm->a.buffer, operands->a.start);
	op->b = lower_shared_addr(l, gemm->b.buffer, operands->b.start);
	op->shape = plan->shape;
	op->n = plan->wgmma_n;
	op->a_mn = a->mn_major;
	op->a_span = a->span;
	op->a_leading = a->leading;
	op->a_stride = a->stride;
	op->b_mn = b->mn_major;
	op->b_span = b->span;
	op->b_leading = b->leading;
	op->b_stride = b->stride;
}

static void emit_registers(struct lower *l, const struct op_gemm *gemm,
                           const struct gemm_plan *plan, const struct wgmma_operands *operands)
{
	struct wop_wgmma_ra *op = &lower_inst(l, WOP_wgmma_ra)->as.wgmma_ra;
	const struct wgmma_matrix *b = &operands->b.matrix;
	int64_t slots = mma_shape_info(plan->shape)->a_slots;
	const struct expr *block = access_iter_value(&l->space, &operands->a.parts),
					  *step = access_iter_value(&l->space, &operands->b.steps);
	const struct expr *at =
		expr_add(l->pool, expr_mul_int(l->pool, block, operands->b.steps.extent), step);

	op->d = accumulator_part(l, plan, operands, &operands->a.parts);
	op->a = (struct wregs){ operands->a_reg, expr_mul_int(l->pool, at, slots), slots };
	op->b = lower_shared_addr(l, gemm->b.buffer, operands->b.start);
	op->shape = plan->shape;
	op->n = plan->wgmma_n;
	op->b_mn = b->mn_major;
	op->b_span = b->span;
	op->b_leading = b->leading;
	op->b_stride = b->stride;
}

static void open_operand(struct lower *l, const struct op_gemm *gemm, const struct gemm_plan *plan,
                         int which, struct wgmma_operand *out)
{
	const struct buffer *buffer = which == 0 ? gemm->a.buffer : gemm->b.buffer;
	struct operand_ref ref = { gemm, plan, which, l->solution->buffers[buffer->id].layout };

	access_wgmma_operand(&l->space, &ref, out);
	lower_before_read(l, l->shared_of[buffer->id]);
}

static void whole(struct wregs *out, const struct lower *l, const struct wreg *reg)
{
	*out = (struct wregs){ reg, expr_int(l->pool, 0), reg->n_slots };
}

void lower_wgmma_await(struct lower *l, const struct wreg *d, int64_t n_pending)
{
	struct wop_wgmma_wait *wait = &lower_inst(l, WOP_wgmma_wait)->as.wgmma_wait;

	whole(&wait->d, l, d);
	wait->n_pending = n_pending;
}

void lower_wgmma_wait(struct lower *l, int64_t n_pending)
{
	struct span span = l->span;

	if (!l->held)
		return;
	l->span = l->held_span;
	lower_wgmma_await(l, l->held, n_pending);
	l->span = span;
	if (!n_pending)
		l->held = NULL;
}

void lower_wgmma(struct lower *l, const struct op_gemm *gemm, const struct gemm_plan *plan,
                 const struct wreg *a, bool is_explicit)
{
	struct wgmma_operands operands = { .c = l->reg_of[gemm->c.buffer->id], .a_reg = a };
	int64_t n_blocks = plan->m / (plan->warps_m / WGMMA_WARPS) / WGMMA_M;
	struct wblock *outer;

	assert(plan->wgmma_n > 0 && !plan->b_is_fragment);
	operands.a.parts = (struct access_iter){ access_iter_var(&l->space, 2, n_blocks), n_blocks, 2 };
	if (!a)
		open_operand(l, gemm, plan, 0, &operands.a);
	open_operand(l, gemm, plan, 1, &operands.b);
	whole(&lower_inst(l, WOP_wgmma_fence)->as.wgmma_fence.d, l, operands.c);
	outer = lower_open(l, &operands.b.steps);
	lower_open(l, &operands.a.parts);
	lower_open(l, &operands.b.parts);
	if (a)
		emit_registers(l, gemm, plan, &operands);
	else
		emit_shared(l, gemm, plan, &operands);
	lower_close(l, outer);
	lower_inst(l, WOP_wgmma_commit);
	if (!is_explicit) {
		l->held = operands.c;
		l->held_span = l->span;
	}
	if (!is_explicit && !l->holds_wait)
		lower_wgmma_wait(l, 0);
	if (!a)
		lower_did(l, l->shared_of[gemm->a.buffer->id], true, false, false);
	lower_did(l, l->shared_of[gemm->b.buffer->id], true, false, false);
}
