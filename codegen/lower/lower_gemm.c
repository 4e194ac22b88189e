/*
 * T.gemm on mma.sync (on wgmma: lower_wgmma.c): for each k step load the warp's A and B tiles with
 * ldmatrix, then multiply.
 *
 *     unroll for step in 4:                             # k = 64 in steps of 16
 *         unroll for part in 4: ldmatrix A_frag[part*8..] <- A_shared[...] x4
 *         unroll for part in 4: ldmatrix B_frag[part*8..] <- B_shared[...] x4 trans
 *         unroll for c0 in 4:
 *             unroll for c1 in 8: mma C[(c0*8 + c1)*4; 4] <- A_frag[c0*8; 8], B_frag[c1*4; 4]
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

/* Registers of one operand for one k step. */
static const struct wreg *operand_reg(struct lower *l, const struct buffer *buffer,
                                      struct dtype type, int64_t n_slots)
{
	const char *name = arena_printf(l->cx->arena, "%s_frag", sym_text(l->cx->names, buffer->name));

	return warp_new_reg(l->warp, intern_text(l->cx->names, name), type, n_slots);
}

/* Registers that a 32-bit word of the operand fills. */
static int64_t word_slots(const struct wreg *reg)
{
	return 32 / (int64_t)dtype_bits(reg->type);
}

static void load_elements(struct lower *l, const struct access *access, const struct wreg *reg)
{
	struct wblock *outer = l->block;

	for (uint32_t i = 1; i < access->n_iters; i++)
		lower_open(l, &access->iters[i]);
	struct winst *inst = lower_inst(l, WOP_ld);
	inst->as.ld.src = lower_shared_addr(l, access->buffer, access->offset);
	inst->as.ld.dst = (struct wregs){ reg, access->slot, 1 };
	inst->as.ld.bytes = access->bytes;
	inst->predicate = access_predicate(&l->space, access);
	lower_close(l, outer);
}

static void load_operand(struct lower *l, const struct access *access, const struct wreg *reg)
{
	if (access->op == BANK_LD) {
		load_elements(l, access, reg);
		return;
	}
	struct wblock *outer = lower_open(l, &access->iters[1]);
	struct winst *inst = lower_inst(l, WOP_ldmatrix);

	inst->as.ldmatrix.src = lower_shared_addr(l, access->buffer, access->offset);
	inst->as.ldmatrix.dst =
		(struct wregs){ reg, access->slot, access->n_matrices * word_slots(reg) };
	inst->as.ldmatrix.n_matrices = access->n_matrices;
	inst->as.ldmatrix.trans = access->trans;
	lower_close(l, outer);
}

/* One operand of the gemm as the multiplication finds it. */
struct operand {
	const struct region *region;
	const struct wreg *reg;
	struct access accesses[MAX_OPERAND_ACCESSES]; /* from shared memory */
	uint32_t n_accesses;                          /* 0: a fragment */
	int64_t tile_stride;                          /* slots from tile to tile */
	const struct expr *first;                     /* slot of the k step's first tile */
};

static void multiply(struct lower *l, const struct gemm_plan *plan, const struct wreg *c,
                     const struct operand operands[2])
{
	const struct mma_shape_info *info = mma_shape_info(plan->shape);
	const struct operand *a = &operands[0], *b = &operands[1];
	int64_t n_m = plan->m / plan->warps_m / info->m, n_n = plan->n / plan->warps_n / info->n;
	struct access_iter im = { access_iter_var(&l->space, 2, n_m), n_m, 2 },
					   in = { access_iter_var(&l->space, 3, n_n), n_n, 3 };
	const struct expr *tm = access_iter_value(&l->space, &im),
					  *tn = access_iter_value(&l->space, &in);
	struct wblock *outer = lower_open(l, &im);

	lower_open(l, &in);
	struct winst *inst = lower_inst(l, WOP_mma);
	const struct expr *tile = expr_add(l->pool, expr_mul_int(l->pool, tm, n_n), tn);
	inst->as.mma.d = (struct wregs){ c, expr_mul_int(l->pool, tile, info->d_slots), info->d_slots };
	inst->as.mma.a =
		(struct wregs){ a->reg,
		                expr_add(l->pool, expr_mul_int(l->pool, tm, a->tile_stride), a->first),
		                info->a_slots };
	inst->as.mma.b =
		(struct wregs){ b->reg,
		                expr_add(l->pool, expr_mul_int(l->pool, tn, b->tile_stride), b->first),
		                info->b_slots };
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

/* All slots become zero where the condition holds (NULL: always). */
static void zero_registers(struct lower *l, const struct wreg *reg, const struct expr *condition)
{
	struct access_iter iter = { access_iter_var(&l->space, 0, reg->n_slots), reg->n_slots, 0 };
	const struct expr *zero = dtype_is_float(reg->type)
	                              ? expr_float(l->pool, reg->type, 0.0)
	                              : expr_cast(l->pool, reg->type, expr_int(l->pool, 0));
	struct wblock *outer = lower_open(l, &iter);

	lower_set(l, reg, access_iter_value(&l->space, &iter), zero, condition);
	lower_close(l, outer);
}

static void clear_accumulator(struct lower *l, const struct op_gemm *gemm, const struct wreg *c)
{
	const struct expr *condition = gemm->clear_accum ? lower_scalar(l, gemm->clear_accum) : NULL;
	int64_t constant;

	if (!condition || (expr_is_int(condition, &constant) && !constant))
		return;
	zero_registers(l, c, expr_is_true(condition) ? NULL : condition);
}

/*
 * The fragment in the layout of the instruction; NULL when that needs a conversion that the plan
 * does not have.
 */
static const struct wreg *fragment_operand(struct lower *l, const struct op_gemm *gemm,
                                           const struct gemm_plan *plan, int which)
{
	const struct buffer *buffer = which == 0 ? gemm->a.buffer : gemm->b.buffer;
	struct conversion moved = {
		.kind = CONVERT_REGISTERS,
		.buffer = buffer,
		.from = l->solution->buffers[buffer->id].layout,
		.to = gemm_operand_layout(l->cx->arena, gemm, plan, which),
	};

	if (layout_equal(moved.from, moved.to, NULL))
		return l->reg_of[buffer->id];
	return lower_convert(l, &moved, NULL);
}

static bool open_operand(struct lower *l, const struct op_gemm *gemm, const struct gemm_plan *plan,
                         int which, struct operand *out)
{
	const struct mma_shape_info *info = mma_shape_info(plan->shape);
	int64_t tile_slots = which == 0 ? info->a_slots : info->b_slots, k_steps = plan->k / info->k;
	int64_t n_tiles =
		which == 0 ? plan->m / plan->warps_m / info->m : plan->n / plan->warps_n / info->n;
	const struct expr *step = k_steps <= 1
	                              ? expr_int(l->pool, 0)
	                              : expr_of_var(l->pool, access_iter_var(&l->space, 0, k_steps));

	*out = (struct operand){ .region = which == 0 ? &gemm->a : &gemm->b };
	if (out->region->buffer->scope == SCOPE_FRAGMENT) {
		int64_t block = info->k / 2;

		out->reg = fragment_operand(l, gemm, plan, which);
		out->tile_stride = (plan->k + block - 1) / block * (tile_slots / 2);
		out->first = expr_mul_int(l->pool, step, tile_slots);
		return out->reg != NULL;
	}
	struct operand_ref ref = { gemm, plan, which,
		                       l->solution->buffers[out->region->buffer->id].layout };
	out->n_accesses = access_gemm_operand(&l->space, &ref, out->accesses);
	if (!out->n_accesses)
		BUG("a gemm has no form of operand %d", which);
	out->reg = operand_reg(l, out->region->buffer, info->ab, n_tiles * tile_slots);
	out->tile_stride = tile_slots;
	out->first = expr_int(l->pool, 0);
	lower_before_read(l, l->shared_of[out->region->buffer->id]);
	return true;
}

/*
 * A fragment's last step in registers of its own, with zero where K has ended: a whole block of
 * half a step is copied, of another one the lanes' elements below K.
 *
 *     unroll for tile in 2:                             # k = 40 in steps of 16
 *         unroll for slot in 4: A_frag[tile*8 + slot] = A[tile*20 + 16 + slot]
 */
static void copy_rest(struct lower *l, const struct gemm_plan *plan, int which,
                      struct operand *operand)
{
	const struct mma_shape_info *info = mma_shape_info(plan->shape);
	int64_t tile_slots = which == 0 ? info->a_slots : info->b_slots, rest = gemm_k_rest(plan);
	int64_t n_tiles =
		which == 0 ? plan->m / plan->warps_m / info->m : plan->n / plan->warps_n / info->n;
	int64_t block = info->k / 2, per_lane = block / 4, n_blocks = (rest + block - 1) / block;
	int64_t n_slots = n_blocks * tile_slots / 2;
	const struct wreg *from = operand->reg;
	struct access_iter tiles = { access_iter_var(&l->space, 0, n_tiles), n_tiles, 0 };
	struct access_iter slots = { access_iter_var(&l->space, 1, n_slots), n_slots, 1 };
	const struct expr *tile = access_iter_value(&l->space, &tiles);
	const struct expr *slot = access_iter_value(&l->space, &slots), *below = NULL, *source;
	struct wblock *outer;

	operand->reg = operand_reg(l, operand->region->buffer, from->type, n_tiles * tile_slots);
	zero_registers(l, operand->reg, NULL);
	if (rest % block) {
		const struct expr *lane = expr_mod_int(l->pool, expr_of_var(l->pool, l->space.tid), 4);
		const struct expr *k = expr_add(
			l->pool, expr_mul_int(l->pool, expr_div_int(l->pool, slot, tile_slots / 2), block),
			expr_add(l->pool, expr_mul_int(l->pool, lane, per_lane),
		             expr_mod_int(l->pool, slot, per_lane)));

		below = expr_lt(l->pool, k, expr_int(l->pool, rest));
	}
	outer = lower_open(l, &tiles);
	lower_open(l, &slots);
	source = expr_add(l->pool, expr_mul_int(l->pool, tile, operand->tile_stride),
	                  expr_add(l->pool, slot, expr_int(l->pool, plan->k / info->k * tile_slots)));
	lower_set(l, operand->reg, expr_add(l->pool, expr_mul_int(l->pool, tile, tile_slots), slot),
	          expr_reg(l->pool, from, from->type, source), below);
	lower_close(l, outer);
	operand->tile_stride = tile_slots;
	operand->first = expr_int(l->pool, 0);
}

/* Loads of a whole step, or of the rest behind them, and the multiplications. */
static void k_step(struct lower *l, const struct gemm_plan *plan, const struct wreg *c,
                   const struct operand operands[2], bool is_rest)
{
	for (int which = 0; which < 2; which++)
		for (uint32_t i = 0; i < operands[which].n_accesses; i++)
			if (operands[which].accesses[i].is_rest == is_rest)
				load_operand(l, &operands[which].accesses[i], operands[which].reg);
	multiply(l, plan, c, operands);
}

void lower_gemm(struct lower *l, struct stmt *stmt)
{
	struct op_gemm gemm = resolve(l, &stmt->as.op.as.gemm);
	const struct gemm_plan *plan = &l->solution->plans[stmt->id].as.gemm;
	int64_t k_steps = plan->k / mma_shape_info(plan->shape)->k;
	const struct wreg *c = l->reg_of[gemm.c.buffer->id];
	struct operand operands[2];

	if (!l->solution->plans[stmt->id].has_plan)
		BUG("gemm at statement %u has no plan", stmt->id);
	clear_accumulator(l, &gemm, c);
	if (plan->wgmma_n) {
		const struct wreg *a = plan->a_is_fragment ? fragment_operand(l, &gemm, plan, 0) : NULL;

		if (a || !plan->a_is_fragment)
			lower_wgmma(l, &gemm, plan, a, stmt->as.op.kind == OP_wgmma_gemm);
		return;
	}
	for (int which = 0; which < 2; which++)
		if (!open_operand(l, &gemm, plan, which, &operands[which]))
			return;
	if (k_steps > 0) {
		struct access_iter steps = { access_iter_var(&l->space, 0, k_steps), k_steps, 0 };
		struct wblock *outer = lower_open(l, &steps);

		k_step(l, plan, c, operands, false);
		lower_close(l, outer);
	}
	if (gemm_k_rest(plan)) {
		/* what the rest leaves unset: 0 times anything else could be a NaN */
		for (int which = 0; which < 2; which++)
			if (operands[which].n_accesses)
				zero_registers(l, operands[which].reg, NULL);
			else
				copy_rest(l, plan, which, &operands[which]);
		k_step(l, plan, c, operands, true);
	}
	for (int which = 0; which < 2; which++)
		if (operands[which].n_accesses)
			lower_did(l, l->shared_of[operands[which].region->buffer->id], true, false, false);
}
