/*
 * How mma.sync reads its operands from shared memory.
 *
 * ldmatrix.x4 loads four 8 x 8 blocks of 16-bit elements; lane l gives the address of row l % 8 of block l / 8, and block b
 * ends in the b-th 32-bit register. The blocks are chosen such that registers come out in the order that mma.m16n8k16 wants:
 *
 *     A tile (16 x 16)     blocks (m 0-7, k 0-7), (m 8-15, k 0-7), (m 0-7, k 8-15), (m 8-15, k 8-15)
 *     B tiles (16 x 2*8)   blocks (k 0-7, n 0-7), (k 8-15, n 0-7), (k 0-7, n 8-15), (k 8-15, n 8-15)
 *
 * An operand whose rows in memory run along k (A as M x K, B as N x K) is read as it lies; the other two forms are read with .trans.
 * Source: PTX ISA, "Warp-level matrix instructions: ldmatrix", "Matrix fragments for mma.m16n8k16 with floating point type".
 */
#include "analyzer/solve/access.h"

#include <assert.h>

/* The warp's coordinate along m (which 0) or n (which 1): warps count along m first. */
static const struct expr *warp_coordinate(struct access_space *space, const struct gemm_plan *plan, int which)
{
	struct expr_pool *pool = space->pool;
	const struct expr *warp = expr_div_int(pool, expr_of_var(pool, space->tid), 32);

	return which == 0 ? expr_mod_int(pool, warp, plan->warps_m) : expr_div_int(pool, warp, plan->warps_m);
}

/* One group of `n_blocks` 8 x 8 blocks: where its lanes point. */
struct operand_tile {
	const struct region *region;
	bool k_is_row;          /* rows in memory run along m or n, i.e. k is the column: false; k is the row: true */
	int which;              /* 0 A, 1 B */
	const struct expr *mn0; /* first m or n of the tile */
	const struct expr *k0;
};

/* Element that lane l addresses: outer is the m or n coordinate, k the other. */
static void lane_element(struct access_space *space, const struct operand_tile *tile, int64_t n_blocks, const struct expr **mn,
                         const struct expr **k)
{
	struct expr_pool *pool = space->pool;
	const struct expr *lane = expr_mod_int(pool, expr_of_var(pool, space->tid), 8 * n_blocks);
	const struct expr *block = expr_div_int(pool, lane, 8), *row = expr_mod_int(pool, lane, 8);
	const struct expr *fast = expr_mul_int(pool, expr_mod_int(pool, block, 2), 8);
	const struct expr *slow = expr_mul_int(pool, expr_div_int(pool, block, 2), 8);
	const struct expr *mn_block = tile->which == 0 ? fast : slow, *k_block = tile->which == 0 ? slow : fast;

	*mn = expr_add(pool, tile->mn0, mn_block);
	*k = expr_add(pool, tile->k0, k_block);
	if (tile->k_is_row)
		*k = expr_add(pool, *k, row);
	else
		*mn = expr_add(pool, *mn, row);
}

static const struct expr *tile_offset(struct access_space *space, const struct operand_tile *tile, int64_t n_blocks,
                                      const struct layout *layout)
{
	struct expr_pool *pool = space->pool;
	const struct region *region = tile->region;
	uint32_t rank = region->buffer->rank;
	const struct expr *index[MAX_RANK], *mn, *k;

	assert(rank >= 2);
	lane_element(space, tile, n_blocks, &mn, &k);
	for (uint32_t d = 0; d < rank; d++)
		index[d] = region->min[d];
	index[rank - 2] = expr_add(pool, index[rank - 2], tile->k_is_row ? k : mn);
	index[rank - 1] = expr_add(pool, index[rank - 1], tile->k_is_row ? mn : k);
	return access_offset(space, region->buffer, layout, index);
}

/* `n_tiles` loads of `n_blocks` blocks each, from tile `first` on, in units of 8 * blocks along m or n. */
static void fill_access(struct access_space *space, const struct operand_tile *base, const struct gemm_plan *plan,
                        const struct layout *layout, struct access *out)
{
	struct expr_pool *pool = space->pool;
	struct operand_tile tile = *base;
	int64_t step = out->n_matrices == 4 ? 16 : 8, k_step = mma_shape_info(plan->shape)->k;
	const struct expr *ks = access_iter_value(space, &out->iters[0]), *t = access_iter_value(space, &out->iters[1]);

	tile.k0 = expr_mul_int(pool, ks, k_step);
	tile.mn0 = expr_add(pool, base->mn0, expr_mul_int(pool, t, step));
	out->offset = tile_offset(space, &tile, out->n_matrices, layout);
	out->slot = expr_add(pool, out->slot, expr_mul_int(pool, t, out->n_matrices * 2));
}

/* `n` ldmatrix of `n_matrices` blocks each, whose registers begin at `slot`. */
static void make_access(struct access_space *space, const struct operand_tile *tile, const struct operand_ref *ref, int64_t n,
                        struct access *out)
{
	int64_t n_steps = ref->plan->k / mma_shape_info(ref->plan->shape)->k;

	out->op = BANK_LDMATRIX;
	out->bytes = 16;
	out->trans = tile->k_is_row;
	out->buffer = tile->region->buffer;
	out->n_iters = 2;
	out->iters[0] = (struct access_iter){access_iter_var(space, 0, n_steps), n_steps, 0};
	out->iters[1] = (struct access_iter){access_iter_var(space, 1, n), n, 1};
	fill_access(space, tile, ref->plan, ref->layout, out);
}

uint32_t access_gemm_operand(struct access_space *space, const struct operand_ref *ref, struct access out[2])
{
	struct expr_pool *pool = space->pool;
	const struct gemm_plan *plan = ref->plan;
	bool transposed = ref->which == 0 ? ref->gemm->transpose_a : ref->gemm->transpose_b;
	struct operand_tile tile = {.region = ref->which == 0 ? &ref->gemm->a : &ref->gemm->b, .which = ref->which};
	int64_t extent = ref->which == 0 ? plan->m / plan->warps_m : plan->n / plan->warps_n;
	int64_t n_full = extent / 16, n_rest = extent % 16 / 8;
	uint32_t n = 0;

	if (dtype_bits(mma_shape_info(plan->shape)->ab) != 16 || (ref->which == 0 && n_rest))
		return 0;
	tile.k_is_row = ref->which == 0 ? transposed : !transposed;
	tile.mn0 = expr_mul_int(pool, warp_coordinate(space, plan, ref->which), extent);
	if (n_full) {
		out[n] = (struct access){.n_matrices = 4, .slot = expr_int(pool, 0)};
		make_access(space, &tile, ref, n_full, &out[n++]);
	}
	if (n_rest) {
		tile.mn0 = expr_add_int(pool, tile.mn0, n_full * 16);
		out[n] = (struct access){.n_matrices = 2, .slot = expr_int(pool, n_full * 8)};
		make_access(space, &tile, ref, 1, &out[n++]);
	}
	return n;
}
