/*
 * What a gemm demands: instruction, warp grid, fragments of C and of operands in registers, layouts
 * of operands in shared memory. Facts: TileLang 0.1.15, src/cuda/op/gemm.cc (instruction, warp
 * partition), tilelang/cuda/intrinsics/macro (fragments), src/layout/gemm_layouts.cc (swizzles);
 * the lane maps are those of the PTX ISA's fragment figures for mma.m16n8 and wgmma.
 */
#include "analyzer/parity/parity_internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- shared layouts ---- */

/* Types below a byte: the map of the bytes, as a table. */
static const struct layout *swizzle_small(struct arena *arena, const struct buffer *buffer,
                                          int64_t span_bytes)
{
	int64_t shape[MAX_RANK], index[MAX_RANK] = { 0 }, packed[MAX_RANK];
	int64_t n_each = 8 / (int64_t)dtype_bits(buffer->type), n = buffer_n_elems(buffer), e = 0;
	uint32_t last = buffer->rank - 1;
	int64_t *table = arena_array(arena, int64_t, (size_t)n);
	const struct layout *bytes;
	struct layout *layout;

	for (uint32_t d = 0; d <= last; d++)
		shape[d] = buffer_extent(buffer, d);
	if (shape[last] % n_each != 0)
		return NULL;
	shape[last] /= n_each;
	bytes = layout_swizzled(arena, buffer->rank, shape, 8, span_bytes);
	shape[last] *= n_each;
	layout = layout_new_memory(arena, buffer->rank, shape, dtype_bits(buffer->type));
	if (!bytes)
		return NULL;
	do {
		memcpy(packed, index, sizeof(packed));
		packed[last] /= n_each;
		table[e++] = layout_at(bytes, packed, 0).offset;
	} while (layout_next_index(layout, index));
	layout->table = table;
	layout_finish(layout);
	return layout;
}

const struct layout *parity_swizzle(struct arena *arena, const struct buffer *buffer,
                                    int64_t span_bytes)
{
	int64_t shape[MAX_RANK];

	if (span_bytes > 0 && dtype_bits(buffer->type) < 8)
		return swizzle_small(arena, buffer, span_bytes);
	for (uint32_t d = 0; d < buffer->rank; d++)
		shape[d] = buffer_extent(buffer, d);
	if (span_bytes == 0)
		return layout_row_major(arena, buffer->rank, shape, dtype_bits(buffer->type), 0);
	return layout_swizzled(arena, buffer->rank, shape, dtype_bits(buffer->type), span_bytes);
}

/* The widest swizzle whose span divides the row; 0: none. */
static int64_t span_of_row(const struct buffer *buffer)
{
	int64_t row_bits = buffer_extent(buffer, buffer->rank - 1) * dtype_bits(buffer->type);

	for (int64_t span = 128; span >= 32; span /= 2)
		if (row_bits % (span * 8) == 0)
			return span;
	return 0;
}

const struct layout *parity_mma_shared(struct arena *arena, const struct buffer *buffer)
{
	int64_t shape[MAX_RANK], span = span_of_row(buffer);
	uint32_t bits = dtype_bits(buffer->type);

	if (span > 0 && bits < 64)
		return parity_swizzle(arena, buffer, span);
	for (uint32_t d = 0; d < buffer->rank; d++)
		shape[d] = buffer_extent(buffer, d);
	return layout_row_major(arena, buffer->rank, shape, bits,
	                        shape[buffer->rank - 1] * bits % 256 == 0 ? 16 : 0);
}

/* TMA moves boxes of at most 256 elements a dimension: longer dimensions are cut. */
const struct layout *parity_tma_load_shared(struct arena *arena, const struct buffer *buffer)
{
	enum { BOX = 256 };
	int64_t shape[MAX_RANK], stride = dtype_bits(buffer->type) / 8;
	struct layout *layout;

	for (uint32_t d = 0; d < buffer->rank; d++)
		shape[d] = buffer_extent(buffer, d);
	layout = layout_new_memory(arena, buffer->rank, shape, dtype_bits(buffer->type));
	for (uint32_t d = buffer->rank; d-- > 0;) {
		int64_t inner = shape[d] > BOX && shape[d] % BOX == 0 ? BOX : shape[d];

		layout_add_digit(layout, (struct digit){ (int)d, 1, inner, AXIS_OFFSET, stride });
		stride *= inner;
	}
	for (uint32_t d = buffer->rank; d-- > 0;) {
		int64_t outer = shape[d] > BOX && shape[d] % BOX == 0 ? shape[d] / BOX : 1;

		layout_add_digit(layout, (struct digit){ (int)d, BOX, outer, AXIS_OFFSET, stride });
		stride *= outer;
	}
	layout_finish(layout);
	return layout;
}

const struct layout *parity_tma_store_shared(struct arena *arena, const struct buffer *buffer)
{
	int64_t rows = buffer->rank >= 2 ? buffer_extent(buffer, buffer->rank - 2) : 1;
	int64_t span = span_of_row(buffer);

	if (rows % 8 != 0 || span == 0 || buffer->rank < 2)
		return parity_tma_load_shared(arena, buffer);
	return parity_swizzle(arena, buffer, span);
}

/* ---- the instruction ---- */

static bool is_float8(struct dtype type)
{
	return type.kind == TYPE_FLOAT8_E4M3 || type.kind == TYPE_FLOAT8_E5M2;
}

static bool is_half(struct dtype type)
{
	return type.kind == TYPE_FLOAT && type.bits == 16;
}

/* Do the types and the orientation fit a warpgroup instruction? */
static bool wgmma_types(const struct op_gemm *gemm, int64_t k)
{
	struct dtype a = gemm->a.buffer->type, b = gemm->b.buffer->type, c = gemm->c.buffer->type;
	bool k_major = !gemm->transpose_a && gemm->transpose_b;
	bool c_f32 = c.kind == TYPE_FLOAT && c.bits == 32;

	if (is_half(a) && is_half(b))
		return (c_f32 || is_half(c)) && k % 16 == 0;
	if (a.kind == TYPE_BFLOAT && b.kind == TYPE_BFLOAT)
		return c_f32 && k % 16 == 0;
	if (a.kind == TYPE_TFLOAT && b.kind == TYPE_TFLOAT)
		return c_f32 && k_major && k % 8 == 0;
	if (is_float8(a) && is_float8(b))
		return (c_f32 || is_half(c)) && k_major && k % 32 == 0;
	if ((a.kind == TYPE_INT || a.kind == TYPE_UINT) && a.bits == 8 && b.bits == 8)
		return c.kind == TYPE_INT && c.bits == 32 && k_major && k % 32 == 0;
	return false;
}

static bool uses_wgmma(const struct pinfer *infer, const struct op_gemm *gemm,
                       const struct gemm_plan *plan)
{
	return !parity_config(infer, "tl.disable_wgmma") && infer->target->compute == 90 &&
	       plan->m >= 64 && infer->n_threads / 32 % 4 == 0 &&
	       gemm->b.buffer->scope == SCOPE_SHARED && wgmma_types(gemm, plan->k);
}

/* ---- the warp grid ---- */

struct warp_grid {
	int64_t m, n, n_warps;
	bool is_group; /* warps in fours along M */
};

static bool grid_valid(const struct warp_grid *grid, int64_t warps_m, int64_t warps_n)
{
	return warps_m * warps_n == grid->n_warps && grid->m % (warps_m * 16) == 0 &&
	       grid->n % (warps_n * 8) == 0 && (!grid->is_group || warps_m % 4 == 0);
}

/* Nearest to the tile's own proportions; the first of equals. Single precision, as there. */
static int64_t square_grid(const struct warp_grid *grid)
{
	float ideal = (float)grid->m / (float)grid->n, best = INFINITY;
	int64_t found = 0;

	for (int64_t warps = 1; warps <= grid->n_warps; warps++) {
		float distance;

		if (grid->n_warps % warps != 0 || !grid_valid(grid, warps, grid->n_warps / warps))
			continue;
		distance = fabsf((float)grid->m / (float)(warps * 16) /
		                     ((float)grid->n / (float)(grid->n_warps / warps * 8)) -
		                 ideal);
		if (distance < best) {
			best = distance;
			found = warps;
		}
	}
	return found;
}

/* Warps along M; 0 when no grid covers the tile. */
static int64_t warps_along_m(const struct warp_grid *grid, enum gemm_policy policy)
{
	if (policy == POLICY_SQUARE || policy == POLICY_BEST)
		return square_grid(grid);
	for (int64_t n = grid->n_warps; n >= 1; n--) {
		int64_t warps = policy == POLICY_FULL_ROW ? n : grid->n_warps / n;

		if (grid->n_warps % n == 0 && grid_valid(grid, warps, grid->n_warps / warps))
			return warps;
	}
	return 0;
}

/* Columns of one warpgroup instruction. */
static int64_t wgmma_columns(int64_t columns)
{
	int64_t least = 256;

	while (columns % least != 0)
		least /= 2;
	for (int64_t n = 256; columns % 16 == 0 && n > least; n -= 16)
		if (columns % n == 0)
			return n;
	return least;
}

/* ---- fragments ---- */

/* Lane and slot of an element of one operand's atom: rows of M or N, columns of K. */
static void atom_place(uint32_t bits, bool is_a, int64_t s, int64_t k, int32_t place[2])
{
	int64_t run = bits >= 32 ? 1 : 32 / bits; /* consecutive k of one register */
	int64_t half = k / (4 * run), row = s / 8;

	place[0] = (int32_t)(4 * (s % 8) + k % (4 * run) / run);
	place[1] = (int32_t)(run * (is_a ? 2 * half + row : 2 * row + half) + k % run);
}

struct operand_shape {
	bool is_a, is_wgmma, swapped; /* swapped: K outermost */
	uint32_t bits;
	int64_t warps, others;  /* warps along its own dimension, and along the other */
	int64_t tile_k, tile_s; /* atom */
};

/* Where row s, column k of the operand is; replica r is the warp along the other dimension. */
static void operand_place(const struct operand_shape *shape, int64_t extent, const int64_t at[3],
                          int32_t place[2])
{
	int64_t s = at[0], k = at[1], r = at[2], atoms = extent / shape->warps / shape->tile_s;
	int64_t block = s / shape->tile_s, slots = shape->tile_s * shape->tile_k / 32;
	int64_t warp = shape->is_wgmma ? block % shape->warps : block / atoms;
	int64_t repeat = shape->is_wgmma ? block / shape->warps : block % atoms;

	atom_place(shape->bits, shape->is_a, s % shape->tile_s, k % shape->tile_k, place);
	place[1] += (int32_t)(slots * (repeat + k / shape->tile_k * atoms));
	place[0] +=
		(int32_t)(shape->is_a ? 32 * (warp + shape->warps * r) : 32 * (r + shape->others * warp));
}

static struct pfrag *operand_fragment(struct arena *arena, const struct buffer *buffer,
                                      const struct operand_shape *shape)
{
	int64_t extents[2] = { buffer_extent(buffer, buffer->rank - 2),
		                   buffer_extent(buffer, buffer->rank - 1) };
	struct pfrag *out = pfrag_new(arena, 2, extents, shape->others);

	for (int64_t r = 0; r < shape->others; r++)
		for (int64_t e = 0; e < out->n_elems; e++) {
			int64_t i = e / extents[1], j = e % extents[1];
			int64_t at[3] = { shape->swapped ? j : i, shape->swapped ? i : j, r };
			int32_t place[2];

			operand_place(shape, extents[shape->swapped ? 1 : 0], at, place);
			out->thread[r * out->n_elems + e] = place[0];
			out->slot[e] = place[1];
		}
	pfrag_finish(out);
	return out;
}

/* C: lanes and slots of mma's D; wgmma has a warpgroup's 64-row blocks in registers. */
static struct pfrag *accumulator(struct arena *arena, const struct gemm_plan *plan)
{
	int64_t rows = plan->m / plan->warps_m / 16, columns = plan->n / plan->warps_n;
	int64_t width = columns % 16 == 0 ? 16 : 8, slots = 16 * width / 32;
	struct pfrag *out = pfrag_new(arena, 2, (const int64_t[]){ plan->m, plan->n }, 1);

	for (int64_t e = 0; e < out->n_elems; e++) {
		int64_t i = e / plan->n, j = e % plan->n, block = i / 16;
		int64_t warp = plan->wgmma_n ? block % 4 + block / (4 * rows) * 4 : block / rows;
		int64_t repeat = plan->wgmma_n ? block / 4 % rows : block % rows;
		int64_t lane = 4 * (i % 8) + j % 8 / 2;

		out->thread[e] = (int32_t)(lane + 32 * (warp + plan->warps_m * (j / columns)));
		out->slot[e] = (int32_t)(slots * (repeat * (columns / width) + j % columns / width) +
		                         4 * (j % width / 8) + 2 * (i % 16 / 8) + j % 2);
	}
	pfrag_finish(out);
	return out;
}

/* ---- the rule ---- */

static enum mma_shape find_shape(const struct op_gemm *gemm)
{
	struct dtype ab = gemm->a.buffer->type, d = gemm->c.buffer->type;
	enum mma_shape found = MMA_M16N8K16_F16_F32;

	if (ab.kind == TYPE_FLOAT && ab.bits == 32)
		ab.kind = TYPE_TFLOAT;
	for (int shape = 0; shape < N_MMA_SHAPES; shape++) {
		const struct mma_shape_info *info = mma_shape_info((enum mma_shape)shape);

		if (dtype_equal(info->ab, ab) && dtype_equal(info->d, d))
			found = (enum mma_shape)shape;
	}
	return found;
}

static bool make_plan(struct pinfer *infer, const struct op_gemm *gemm, struct gemm_plan *plan)
{
	const struct region *a = &gemm->a, *c = &gemm->c;
	struct warp_grid grid;

	plan->m = c->extent[c->buffer->rank - 2];
	plan->n = c->extent[c->buffer->rank - 1];
	plan->k = a->extent[a->buffer->rank - (gemm->transpose_a ? 2 : 1)];
	plan->shape = find_shape(gemm);
	plan->a_is_fragment = a->buffer->scope == SCOPE_FRAGMENT;
	plan->b_is_fragment = gemm->b.buffer->scope == SCOPE_FRAGMENT;
	grid = (struct warp_grid){ plan->m, plan->n, infer->n_threads / 32,
		                       uses_wgmma(infer, gemm, plan) };
	if (plan->m % 16 != 0 || plan->n % 8 != 0 || infer->n_threads % 32 != 0)
		return false;
	plan->warps_m = warps_along_m(&grid, (enum gemm_policy)gemm->policy);
	if (plan->warps_m == 0)
		return false;
	plan->warps_n = grid.n_warps / plan->warps_m;
	plan->wgmma_n = grid.is_group ? wgmma_columns(plan->n / plan->warps_n) : 0;
	return true;
}

/* Bytes of a row of the operand that one instruction reads without a break, as a swizzle. */
static int64_t wgmma_span(const struct op_gemm *gemm, const struct gemm_plan *plan, bool is_a)
{
	bool k_major = is_a ? !gemm->transpose_a : gemm->transpose_b;
	int64_t run = k_major ? plan->k : is_a ? 64 : plan->wgmma_n;
	int64_t bits = run * dtype_bits(gemm->a.buffer->type);

	for (int64_t span = 128; span >= 32; span /= 2)
		if (bits % (span * 8) == 0)
			return span;
	return 0;
}

static void add_update(struct pupdates *updates, struct pupdate update)
{
	assert(updates->n < sizeof(updates->items) / sizeof(*updates->items));
	updates->items[updates->n++] = update;
}

/* One operand: a fragment, or a shared layout unless mma.sync finds one there already. */
static bool add_operand(struct pinfer *infer, struct pupdates *updates, const struct pop *op,
                        bool is_a)
{
	const struct op_gemm *gemm = &op->gemm_op;
	const struct gemm_plan *plan = &op->gemm;
	const struct buffer *buffer = is_a ? gemm->a.buffer : gemm->b.buffer;
	struct pupdate update = { .buffer = buffer };
	struct operand_shape shape = {
		.is_a = is_a,
		.is_wgmma = plan->wgmma_n > 0,
		.swapped = is_a ? gemm->transpose_a != 0 : gemm->transpose_b == 0,
		.bits = dtype_bits(buffer->type),
		.warps = is_a ? plan->warps_m : plan->warps_n,
		.others = is_a ? plan->warps_n : plan->warps_m,
		.tile_k = 256 / dtype_bits(buffer->type),
		.tile_s = is_a || plan->n / plan->warps_n % 16 == 0 ? 16 : 8,
	};

	if (buffer->scope == SCOPE_FRAGMENT) {
		if (buffer->rank != 2 || plan->k % shape.tile_k != 0)
			return false;
		update.frag = operand_fragment(infer->arena, buffer, &shape);
	} else if (plan->wgmma_n) {
		update.shared = parity_swizzle(infer->arena, buffer, wgmma_span(gemm, plan, is_a));
	} else if (!infer->state.shared[buffer->id]) {
		update.shared = parity_mma_shared(infer->arena, buffer);
	}
	if (update.frag || update.shared)
		add_update(updates, update);
	return update.frag || update.shared || infer->state.shared[buffer->id];
}

enum presult parity_gemm(struct pinfer *infer, uint32_t at, enum plevel level,
                         struct pupdates *updates)
{
	struct pop *op = infer->ops.p[at];
	const struct op_gemm *gemm = &op->gemm_op;

	if (level != LEVEL_STRICT)
		return P_OK;
	if (!make_plan(infer, gemm, &op->gemm))
		return parity_fail(infer, P_FATAL, op->stmt, gemm->c.buffer,
		                   "no warp grid covers the tile");
	if (!add_operand(infer, updates, op, true) || !add_operand(infer, updates, op, false))
		return parity_fail(infer, P_FATAL, op->stmt, gemm->a.buffer,
		                   "an operand's shape has no layout");
	add_update(updates, (struct pupdate){ .buffer = gemm->c.buffer,
	                                      .frag = gemm->c.buffer->scope == SCOPE_FRAGMENT
	                                                  ? accumulator(infer->arena, &op->gemm)
	                                                  : NULL });
	return P_OK;
}
