/*
 * T.gemm on mma.sync: for each k step load the warp's A and B tiles with ldmatrix, then multiply.
 *
 *     unroll for step in 4:                             # k = 64 in steps of 16
 *         unroll for part in 4: ldmatrix A_frag[part*8..] <- A_shared[...] x4
 *         unroll for part in 4: ldmatrix B_frag[part*8..] <- B_shared[...] x4 trans
 *         unroll for c0 in 4: unroll for c1 in 8: mma C[(c0*8 + c1)*4..] += A_frag[c0*8..] B_frag[c1*4..]
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

/* Registers of one operand for one k step. */
static const struct wreg *operand_reg(struct lower *l, const struct buffer *buffer, struct dtype type, int64_t n_slots)
{
	const char *name = arena_printf(l->cx->arena, "%s_frag", sym_text(l->cx->names, buffer->name));

	return warp_new_reg(l->warp, intern_text(l->cx->names, name), type, n_slots);
}

static void load_operand(struct lower *l, const struct access *access, const struct wreg *reg)
{
	struct wblock *outer = lower_open(l, &access->iters[1]);
	struct winst *inst = lower_inst(l, WOP_ldmatrix);

	inst->as.ldmatrix.src = lower_shared_addr(l, access->buffer, access->offset);
	inst->as.ldmatrix.dst = (struct wregs){reg, access->slot, access->n_matrices * 2};
	inst->as.ldmatrix.n_matrices = access->n_matrices;
	inst->as.ldmatrix.trans = access->trans;
	lower_close(l, outer);
}

static void multiply(struct lower *l, const struct gemm_plan *plan, const struct wreg *c, const struct wreg *a, const struct wreg *b)
{
	const struct mma_shape_info *info = mma_shape_info(plan->shape);
	int64_t n_m = plan->m / plan->warps_m / info->m, n_n = plan->n / plan->warps_n / info->n;
	struct access_iter im = {access_iter_var(&l->space, 2, n_m), n_m, 2}, in = {access_iter_var(&l->space, 3, n_n), n_n, 3};
	const struct expr *tm = access_iter_value(&l->space, &im), *tn = access_iter_value(&l->space, &in);
	struct wblock *outer = lower_open(l, &im);

	lower_open(l, &in);
	struct winst *inst = lower_inst(l, WOP_mma);
	const struct expr *tile = expr_add(l->pool, expr_mul_int(l->pool, tm, n_n), tn);
	inst->as.mma.d = (struct wregs){c, expr_mul_int(l->pool, tile, info->d_slots), info->d_slots};
	inst->as.mma.a = (struct wregs){a, expr_mul_int(l->pool, tm, info->a_slots), info->a_slots};
	inst->as.mma.b = (struct wregs){b, expr_mul_int(l->pool, tn, info->b_slots), info->b_slots};
	inst->as.mma.shape = plan->shape;
	lower_close(l, outer);
}

/* The op with its regions' positions in the warp program's variables. */
static struct op_gemm resolve(struct lower *l, const struct op_gemm *gemm)
{
	struct op_gemm out = *gemm;

	for (uint32_t d = 0; d < gemm->a.buffer->rank; d++)
		out.a.min[d] = lower_expr(l, gemm->a.min[d]);
	for (uint32_t d = 0; d < gemm->b.buffer->rank; d++)
		out.b.min[d] = lower_expr(l, gemm->b.min[d]);
	return out;
}

static void clear_accumulator(struct lower *l, const struct op_gemm *gemm, const struct wreg *c)
{
	struct access_iter iter = {access_iter_var(&l->space, 0, c->n_slots), c->n_slots, 0};
	const struct expr *condition = gemm->clear_accum ? lower_scalar(l, gemm->clear_accum) : NULL;
	int64_t constant;

	if (!condition || (expr_is_int(condition, &constant) && !constant))
		return;
	struct wblock *outer = lower_open(l, &iter);
	lower_set(l, c, access_iter_value(&l->space, &iter), expr_float(l->pool, c->type, 0.0), expr_is_true(condition) ? NULL : condition);
	lower_close(l, outer);
}

void lower_gemm(struct lower *l, struct stmt *stmt)
{
	struct op_gemm gemm = resolve(l, &stmt->as.op.as.gemm);
	const struct gemm_plan *plan = &l->solution->plans[stmt->id].as.gemm;
	const struct mma_shape_info *info = mma_shape_info(plan->shape);
	const struct wreg *c = l->reg_of[gemm.c.buffer->id], *regs[2];
	struct access accesses[2][2];
	uint32_t n[2];

	if (!l->solution->plans[stmt->id].has_plan || plan->a_is_fragment || plan->b_is_fragment) {
		lower_error(l, "T.gemm with an operand in registers is not supported yet");
		return;
	}
	clear_accumulator(l, &gemm, c);
	lower_before_read(l, l->shared_of[gemm.a.buffer->id]);
	lower_before_read(l, l->shared_of[gemm.b.buffer->id]);
	for (int which = 0; which < 2; which++) {
		const struct buffer *buffer = which == 0 ? gemm.a.buffer : gemm.b.buffer;
		int64_t slots = which == 0 ? plan->m / plan->warps_m / info->m * info->a_slots : plan->n / plan->warps_n / info->n * info->b_slots;
		struct operand_ref ref = {&gemm, plan, which, l->solution->buffers[buffer->id].layout};
		n[which] = access_gemm_operand(&l->space, &ref, accesses[which]);
		if (!n[which])
			BUG("gemm at statement %u has no form of operand %d", stmt->id, which);
		regs[which] = operand_reg(l, buffer, info->ab, slots);
	}
	struct wblock *outer = lower_open(l, &accesses[0][0].iters[0]);
	for (int which = 0; which < 2; which++)
		for (uint32_t i = 0; i < n[which]; i++)
			load_operand(l, &accesses[which][i], regs[which]);
	multiply(l, plan, c, regs[0], regs[1]);
	lower_close(l, outer);
	lower_did(l, l->shared_of[gemm.a.buffer->id], true, false, false);
	lower_did(l, l->shared_of[gemm.b.buffer->id], true, false, false);
}
