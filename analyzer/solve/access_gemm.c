/*
 * How mma.sync reads its operands.
 *
 * An operand with e elements in a 32-bit register (2 of 16 bits, 4 of 8 bits, 1 of 32) is read in
 * blocks of 8 rows along m or n and 4e elements along k: one register of every lane, lane l holding
 * elements e * (l % 4) .. of row l / 4.
 *
 *     A tile (16 x 8e)    blocks (m 0-7, k low), (m 8-15, k low), (m 0-7, k high), (m 8-15, k high)
 *     B tiles (8e x 2*8)  blocks (k low, n 0-7), (k high, n 0-7), (k low, n 8-15), (k high, n 8-15)
 *
 * ldmatrix.x4 loads four such blocks whose rows lie along k in memory (A as M x K, B as N x K): a
 * row is 16 bytes, lane l gives the address of row l % 8 of block l / 8. The other two forms, k
 * across the rows, take .trans, which exchanges 16-bit elements and so serves 16-bit types alone.
 * What remains, and rows that do not start at multiples of 16 bytes, is read by plain loads, one
 * element each.
 *
 * K need not be a multiple of the step of 8e. What is left behind the whole steps is one step more,
 * in registers that were zero before: half a step is the two low blocks of A (ldmatrix.x2) and the
 * low block of each B tile (.x1), other rests are loads that the lanes beyond K do not make.
 *
 * Source: PTX ISA, "Warp-level matrix instructions: ldmatrix", "Matrix fragments for
 * mma.m16n8k8 / k16 / k32".
 */
#include "analyzer/solve/access.h"

#include <assert.h>

/* Elements of A or B in a 32-bit register. */
static int64_t per_register(const struct gemm_plan *plan)
{
	return 32 / (int64_t)dtype_bits(mma_shape_info(plan->shape)->ab);
}

const struct layout *gemm_operand_layout(struct arena *arena, const struct op_gemm *gemm,
                                         const struct gemm_plan *plan, int which)
{
	struct operand_form operand = {
		.is_b = which == 1,
		.k_first = which == 0 ? gemm->transpose_a : !gemm->transpose_b,
		.rows = which == 0 ? plan->m : plan->n,
		.k = plan->k,
		.warps_m = plan->warps_m,
		.warps_n = plan->warps_n,
		.per_reg = per_register(plan),
	};

	return plan->wgmma_n ? layout_wgmma_operand(arena, &operand)
	                     : layout_mma_operand(arena, &operand);
}

/* The warp's coordinate along m (which 0) or n (which 1): warps count along m first. */
static const struct expr *warp_coordinate(struct access_space *space, const struct gemm_plan *plan,
                                          int which)
{
	struct expr_pool *pool = space->pool;
	const struct expr *warp = expr_div_int(pool, expr_of_var(pool, space->tid), 32);

	return which == 0 ? expr_mod_int(pool, warp, plan->warps_m)
	                  : expr_div_int(pool, warp, plan->warps_m);
}

/* An operand in memory: its tiles of 16 (A) or 8 (B) rows. */
struct operand_tile {
	const struct operand_ref *ref;
	const struct region *region;
	bool k_is_row; /* k is the row in memory, the last dimension runs along m or n */
	int which;     /* 0 A, 1 B */
	int64_t per_reg;
	const struct expr *mn0; /* first m or n of the warp */
	bool is_rest;           /* the step behind the whole ones */
};

/* Address of element (mn, k), counted from the region's start. */
static const struct expr *element_offset(struct access_space *space,
                                         const struct operand_tile *tile, const struct expr *mn,
                                         const struct expr *k)
{
	const struct region *region = tile->region;
	uint32_t rank = region->buffer->rank;
	const struct expr *index[MAX_RANK];

	assert(rank >= 2);
	for (uint32_t d = 0; d < rank; d++)
		index[d] = region->min[d];
	index[rank - 2] = expr_add(space->pool, index[rank - 2], tile->k_is_row ? k : mn);
	index[rank - 1] = expr_add(space->pool, index[rank - 1], tile->k_is_row ? mn : k);
	return access_offset(space, region->buffer, tile->ref->layout, index);
}

/* First element of K that the accesses' step 0 reads. */
static const struct expr *first_k(struct access_space *space, const struct operand_tile *tile)
{
	const struct gemm_plan *plan = tile->ref->plan;

	return expr_int(space->pool, tile->is_rest ? plan->k - gemm_k_rest(plan) : 0);
}

/* ---- ldmatrix ---- */

/*
 * Where lane l of ldmatrix points inside a group of `n_blocks` blocks: row l % 8 of block l / 8. Of
 * half a step A has the two blocks along m, B the one.
 */
static void lane_row(struct access_space *space, const struct operand_tile *tile, int64_t n_blocks,
                     const struct expr **mn, const struct expr **k)
{
	struct expr_pool *pool = space->pool;
	const struct expr *lane = expr_mod_int(pool, expr_of_var(pool, space->tid), 8 * n_blocks);
	const struct expr *block = expr_div_int(pool, lane, 8), *row = expr_mod_int(pool, lane, 8);
	const struct expr *fast = expr_mod_int(pool, block, 2), *slow = expr_div_int(pool, block, 2);

	*mn = expr_mul_int(pool, tile->which == 0 ? fast : slow, 8);
	*k = expr_mul_int(pool, tile->which == 0 ? slow : fast, 4 * tile->per_reg);
	*k = expr_add(pool, *k, first_k(space, tile));
	if (tile->k_is_row)
		*k = expr_add(pool, *k, row);
	else
		*mn = expr_add(pool, *mn, row);
}

static void set_iter(struct access_space *space, struct access *out, uint32_t position,
                     int64_t extent)
{
	out->iters[position] =
		(struct access_iter){ access_iter_var(space, position, extent), extent, position };
	out->n_iters = position + 1;
}

static void start_access(struct access_space *space, const struct operand_tile *tile,
                         int64_t n_tiles, struct access *out)
{
	const struct gemm_plan *plan = tile->ref->plan;

	out->buffer = tile->region->buffer;
	out->is_rest = tile->is_rest;
	set_iter(space, out, 0, tile->is_rest ? 1 : plan->k / mma_shape_info(plan->shape)->k);
	set_iter(space, out, 1, n_tiles);
}

/* Rows along m or n that one ldmatrix covers: a block has 8, and of a whole step there are two
 * blocks along k. */
static int64_t rows_of(const struct operand_tile *tile, int64_t n_matrices)
{
	return tile->is_rest ? 8 * n_matrices : 4 * n_matrices;
}

/* `n` ldmatrix of `n_matrices` blocks each, from row `first` of the warp's on. */
static void make_ldmatrix(struct access_space *space, const struct operand_tile *tile,
                          int64_t first, int64_t n, struct access *out)
{
	struct expr_pool *pool = space->pool;
	const struct expr *mn, *k;
	int64_t rows = rows_of(tile, out->n_matrices);

	out->op = BANK_LDMATRIX;
	out->bytes = 16;
	out->trans = tile->k_is_row;
	start_access(space, tile, n, out);
	const struct expr *ks = access_iter_value(space, &out->iters[0]),
					  *t = access_iter_value(space, &out->iters[1]);
	lane_row(space, tile, out->n_matrices, &mn, &k);
	mn = expr_add(pool,
	              expr_add(pool, expr_add_int(pool, tile->mn0, first), expr_mul_int(pool, t, rows)),
	              mn);
	k = expr_add(pool, expr_mul_int(pool, ks, 8 * tile->per_reg), k);
	out->offset = element_offset(space, tile, mn, k);
	out->slot = expr_add_int(pool, expr_mul_int(pool, t, rows / 8 * 2 * tile->per_reg),
	                         first / 8 * 2 * tile->per_reg);
}

static uint32_t ldmatrix_accesses(struct access_space *space, const struct operand_tile *tile,
                                  int64_t extent, struct access *out)
{
	int64_t n_full = extent / 16, n_rest = extent % 16 / 8;
	uint32_t n = 0;

	if (tile->is_rest) {
		out[0] = (struct access){ .n_matrices = tile->which == 0 ? 2 : 1 };
		make_ldmatrix(space, tile, 0, extent / rows_of(tile, out[0].n_matrices), &out[0]);
		return 1;
	}
	if (n_full) {
		out[n] = (struct access){ .n_matrices = 4 };
		make_ldmatrix(space, tile, 0, n_full, &out[n++]);
	}
	if (n_rest) {
		out[n] = (struct access){ .n_matrices = 2 };
		make_ldmatrix(space, tile, n_full * 16, 1, &out[n++]);
	}
	return n;
}

/* ---- plain loads ---- */

/*
 * One element a lane and load: iterations k step, tile, register of the tile, element of the
 * register.
 */
static void make_loads(struct access_space *space, const struct operand_tile *tile, int64_t extent,
                       struct access *out)
{
	struct expr_pool *pool = space->pool;
	const struct expr *lane = expr_mod_int(pool, expr_of_var(pool, space->tid), 32);
	int64_t e = tile->per_reg, rows = tile->which == 0 ? 16 : 8, n_regs = tile->which == 0 ? 4 : 2;

	*out = (struct access){ .op = BANK_LD, .bytes = 4 / e };
	start_access(space, tile, extent / rows, out);
	set_iter(space, out, 2, n_regs);
	set_iter(space, out, 3, e);
	const struct expr *ks = access_iter_value(space, &out->iters[0]),
					  *t = access_iter_value(space, &out->iters[1]);
	const struct expr *reg = access_iter_value(space, &out->iters[2]),
					  *part = access_iter_value(space, &out->iters[3]);
	const struct expr *high =
		tile->which == 0 ? expr_div_int(pool, reg, 2) : reg; /* of the k step */
	const struct expr *mn =
		expr_add(pool, expr_mul_int(pool, t, rows), expr_div_int(pool, lane, 4));
	if (tile->which == 0)
		mn = expr_add(pool, mn, expr_mul_int(pool, expr_mod_int(pool, reg, 2), 8));
	const struct expr *k =
		expr_add(pool, expr_mul_int(pool, ks, 8 * e), expr_mul_int(pool, high, 4 * e));
	k = expr_add(pool, k, expr_add(pool, expr_mul_int(pool, expr_mod_int(pool, lane, 4), e), part));
	k = expr_add(pool, k, first_k(space, tile));
	if (tile->is_rest)
		out->guard = expr_lt(pool, k, expr_int(pool, tile->ref->plan->k));
	out->offset = element_offset(space, tile, expr_add(pool, tile->mn0, mn), k);
	out->slot = expr_add(pool, expr_mul_int(pool, t, n_regs * e),
	                     expr_add(pool, expr_mul_int(pool, reg, e), part));
}

/* The same by looking at every row of `unit` elements: for tables. */
static bool table_rows_fit(const struct layout *layout, int64_t unit)
{
	int64_t index[MAX_RANK] = { 0 };
	uint32_t last = layout->rank - 1;

	do {
		int64_t first, place = layout_at(layout, index, 0).offset, k = index[last] % unit;

		index[last] -= k;
		first = layout_at(layout, index, 0).offset;
		index[last] += k;
		if (first % 16 != 0 || place != first + k * (16 / unit))
			return false;
	} while (layout_next_index(layout, index));
	return true;
}

static bool digits_fit(const struct layout *layout, int64_t unit)
{
	for (uint32_t i = 0; i < layout->n_xors; i++)
		if (layout->xors[i].to_bit < 4)
			return false;
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];
		int64_t last = layout->shape[layout->rank - 1], end = digit->div * digit->extent;
		bool inside = digit->dim == (int)layout->rank - 1 && digit->div < unit;

		if (inside ? digit->stride != digit->div * (16 / unit) || (end % unit != 0 && end < last)
		           : digit->stride % 16 != 0)
			return false;
	}
	return true;
}

/* Every row that ldmatrix reads starts at a multiple of 16 bytes and is not torn by the layout;
 * rows of 20 float16 elements do when they are padded to 24. */
static bool rows_fit(const struct operand_tile *tile)
{
	const struct buffer *buffer = tile->region->buffer;
	const struct layout *layout = tile->ref->layout;
	int64_t unit = 4 * tile->per_reg; /* elements in 16 bytes */
	uint32_t last = buffer->rank - 1;

	if (expr_divisor(tile->region->min[last]) % unit != 0)
		return false;
	if (!layout)
		return buffer_extent(buffer, last) % unit == 0;
	return layout->table ? table_rows_fit(layout, unit) : digits_fit(layout, unit);
}

int64_t gemm_k_rest(const struct gemm_plan *plan)
{
	return plan->k % mma_shape_info(plan->shape)->k;
}

/* All accesses of the whole steps, or those of the rest. */
static uint32_t step_accesses(struct access_space *space, const struct operand_tile *tile,
                              int64_t extent, struct access *out)
{
	bool is_torn = tile->is_rest && gemm_k_rest(tile->ref->plan) != 4 * tile->per_reg;

	if (!is_torn && rows_fit(tile) && (!tile->k_is_row || tile->per_reg == 2))
		return ldmatrix_accesses(space, tile, extent, out);
	make_loads(space, tile, extent, out);
	return 1;
}

uint32_t access_gemm_operand(struct access_space *space, const struct operand_ref *ref,
                             struct access *out)
{
	const struct gemm_plan *plan = ref->plan;
	bool transposed = ref->which == 0 ? ref->gemm->transpose_a : ref->gemm->transpose_b;
	struct operand_tile tile = {
		.ref = ref,
		.region = ref->which == 0 ? &ref->gemm->a : &ref->gemm->b,
		.which = ref->which,
		.k_is_row = ref->which == 0 ? transposed : !transposed,
		.per_reg = per_register(plan),
	};
	int64_t extent = ref->which == 0 ? plan->m / plan->warps_m : plan->n / plan->warps_n;
	uint32_t n = 0;

	if (tile.region->buffer->scope != SCOPE_SHARED || (ref->which == 0 && extent % 16))
		return 0;
	tile.mn0 = expr_mul_int(space->pool, warp_coordinate(space, plan, ref->which), extent);
	if (plan->k >= mma_shape_info(plan->shape)->k)
		n += step_accesses(space, &tile, extent, out);
	if (gemm_k_rest(plan)) {
		tile.is_rest = true;
		n += step_accesses(space, &tile, extent, out + n);
	}
	assert(n <= MAX_OPERAND_ACCESSES);
	return n;
}
