/*
 * Layouts that instructions and memory want, and the maps between fragments of different rank.
 *
 * Accumulator of mma.m16n8 (PTX ISA, "Matrix Fragments for mma.m16n8k16"): a thread of lane l holds
 * rows l/4 and l/4 + 8, columns l%4*2 and l%4*2 + 1 of each 16 x 8 tile, in registers in the order
 * (row, column): slot = row/8*2 + column%2. A warp's block of tiles is contiguous in both
 * directions; warps run down the rows first:
 *
 *     thread = lane + 32 * (wm + warps_m * wn),  slot = (tile_m * n_tiles_n + tile_n) * 4 +
 * row/8%2*2 + column%2
 */
#include "analyzer/layout/layout.h"

#include <assert.h>

enum { LANES_OF_WARP = 32 };

struct layout *layout_row_major(struct arena *arena, uint32_t rank, const int64_t *shape,
                                uint32_t elem_bits, int64_t pad_bytes)
{
	struct layout *layout = layout_new_memory(arena, rank, shape, elem_bits);
	int64_t stride = elem_bits < 8 ? 1 : elem_bits / 8;

	for (uint32_t d = rank; d-- > 0;) {
		/* Below a byte: the elements of one byte share its offset. */
		int64_t div = d + 1 == rank && elem_bits < 8 ? 8 / elem_bits : 1;
		int64_t extent = (shape[d] + div - 1) / div;

		layout_add_digit(layout, (struct digit){ (int)d, div, extent, AXIS_OFFSET, stride });
		stride *= extent;
		if (d + 1 == rank)
			stride += pad_bytes;
	}
	layout_finish(layout);
	return layout;
}

struct layout *layout_swizzled(struct arena *arena, uint32_t rank, const int64_t *shape,
                               uint32_t elem_bits, int64_t span_bytes)
{
	struct layout *layout;
	int64_t bytes = elem_bits / 8;
	int64_t stride;
	uint8_t n_bits = span_bytes == 128 ? 3 : span_bytes == 64 ? 2 : 1;

	assert(span_bytes == 16 || span_bytes == 32 || span_bytes == 64 || span_bytes == 128);
	if (rank < 2 || elem_bits % 8 != 0 || shape[rank - 1] * bytes % span_bytes != 0)
		return NULL;
	layout = layout_new_memory(arena, rank, shape, elem_bits);
	layout_add_digit(layout,
	                 (struct digit){ (int)rank - 1, 1, span_bytes / bytes, AXIS_OFFSET, bytes });
	layout_add_digit(layout,
	                 (struct digit){ (int)rank - 2, 1, shape[rank - 2], AXIS_OFFSET, span_bytes });
	stride = span_bytes * shape[rank - 2];
	layout_add_digit(layout,
	                 (struct digit){ (int)rank - 1, span_bytes / bytes,
	                                 shape[rank - 1] * bytes / span_bytes, AXIS_OFFSET, stride });
	stride *= shape[rank - 1] * bytes / span_bytes;
	for (uint32_t d = rank - 2; d-- > 0;) {
		layout_add_digit(layout, (struct digit){ (int)d, 1, shape[d], AXIS_OFFSET, stride });
		stride *= shape[d];
	}
	if (span_bytes > 16)
		layout->xors[layout->n_xors++] =
			(struct xor_term){ .from_bit = 7, .to_bit = 4, .n_bits = n_bits };
	layout_finish(layout);
	return layout;
}

struct layout *layout_mma_accumulator(struct arena *arena, int64_t m, int64_t n, int64_t warps_m,
                                      int64_t warps_n)
{
	struct layout *layout = layout_new_fragment(arena, 2, (const int64_t[]){ m, n });
	int64_t warp_m = m / warps_m, warp_n = n / warps_n;

	assert(m % (16 * warps_m) == 0 && n % (8 * warps_n) == 0);
	layout_add_digit(layout, (struct digit){ 0, 1, 8, AXIS_THREAD, 4 });
	layout_add_digit(layout, (struct digit){ 0, 8, 2, AXIS_SLOT, 2 });
	layout_add_digit(layout, (struct digit){ 0, 16, warp_m / 16, AXIS_SLOT, warp_n / 8 * 4 });
	layout_add_digit(layout, (struct digit){ 0, warp_m, warps_m, AXIS_THREAD, 32 });
	layout_add_digit(layout, (struct digit){ 1, 1, 2, AXIS_SLOT, 1 });
	layout_add_digit(layout, (struct digit){ 1, 2, 4, AXIS_THREAD, 1 });
	layout_add_digit(layout, (struct digit){ 1, 8, warp_n / 8, AXIS_SLOT, 4 });
	layout_add_digit(layout, (struct digit){ 1, warp_n, warps_n, AXIS_THREAD, 32 * warps_m });
	layout_finish(layout);
	return layout;
}

/*
 * PTX ISA, "Matrix Fragments for mma.m16n8k8 / k16 / k32": with e elements a register, lane l's
 * group l/4 is the row (mod 8), and registers hold elements e*(l%4) .. of k blocks of 4e.
 */
struct layout *layout_mma_operand(struct arena *arena, const struct operand_form *operand)
{
	int row = operand->k_first ? 1 : 0, k = 1 - row;
	int64_t e = operand->per_reg, tile_rows = operand->is_b ? 8 : 16;
	int64_t block_slots = operand->is_b ? e : 2 * e, k_blocks = (operand->k + 4 * e - 1) / (4 * e);
	int64_t warps = operand->is_b ? operand->warps_n : operand->warps_m;
	int64_t warp_stride = operand->is_b ? LANES_OF_WARP * operand->warps_m : LANES_OF_WARP;
	int64_t warp_rows = operand->rows / warps;
	int64_t shape[2];
	struct layout *layout;

	assert(warp_rows % tile_rows == 0);
	shape[row] = operand->rows;
	shape[k] = operand->k;
	layout = layout_new_fragment(arena, 2, shape);
	layout_add_digit(layout, (struct digit){ row, 1, 8, AXIS_THREAD, 4 });
	layout_add_digit(layout, (struct digit){ row, 8, tile_rows / 8, AXIS_SLOT, e });
	layout_add_digit(layout, (struct digit){ row, tile_rows, warp_rows / tile_rows, AXIS_SLOT,
	                                         k_blocks * block_slots });
	layout_add_digit(layout, (struct digit){ row, warp_rows, warps, AXIS_THREAD, warp_stride });
	layout_add_digit(layout, (struct digit){ k, 1, e, AXIS_SLOT, 1 });
	layout_add_digit(layout, (struct digit){ k, e, 4, AXIS_THREAD, 1 });
	layout_add_digit(layout, (struct digit){ k, 4 * e, k_blocks, AXIS_SLOT, block_slots });
	layout_add_digit(
		layout, (struct digit){ DIM_REPLICA, 1, operand->is_b ? operand->warps_m : operand->warps_n,
	                            AXIS_THREAD,
	                            operand->is_b ? LANES_OF_WARP : LANES_OF_WARP * operand->warps_m });
	layout_finish(layout);
	return layout;
}

/* ---- from fragment to fragment ---- */

/* Where source digit `digit` goes when dimension x of the source becomes (x / quotient) of
 * dimension `dim`. */
static void add_projected_digit(struct layout *out, const struct digit *digit, int dim,
                                int64_t quotient, int64_t *n_replicas)
{
	int64_t low = 1; /* the part of the digit's values that the quotient forgets */

	if (dim < 0)
		low = digit->extent;
	else if (digit->div < quotient)
		low = quotient / digit->div < digit->extent ? quotient / digit->div : digit->extent;
	if (low > 1 && digit->axis == AXIS_THREAD) {
		layout_add_digit(
			out, (struct digit){ DIM_REPLICA, *n_replicas, low, AXIS_THREAD, digit->stride });
		*n_replicas *= low;
	}
	if (low < digit->extent)
		layout_add_digit(out,
		                 (struct digit){ dim, low > 1 ? 1 : digit->div / quotient,
		                                 digit->extent / low, digit->axis, digit->stride * low });
}

/* Slot digits packed again: lowest stride first, each next stride the product of the extents below.
 */
static void pack_slots(struct layout *layout)
{
	int64_t stride = 1, bound = 0;

	for (;;) {
		struct digit *next = NULL;

		for (uint32_t i = 0; i < layout->n_digits; i++) {
			struct digit *digit = &layout->digits[i];

			if (digit->axis == AXIS_SLOT && digit->stride > bound &&
			    (!next || digit->stride < next->stride))
				next = digit;
		}
		if (!next)
			return;
		bound = next->stride;
		next->stride = -stride; /* marked as placed; below `bound` for ever */
		stride *= next->extent;
	}
}

static void unmark_slots(struct layout *layout)
{
	for (uint32_t i = 0; i < layout->n_digits; i++)
		if (layout->digits[i].stride < 0)
			layout->digits[i].stride = -layout->digits[i].stride;
}

/* A digit is cut cleanly by the quotient: all its values below it, all above, or a division without
 * remainder. */
static bool digit_divides(const struct digit *digit, int64_t quotient)
{
	if (digit->div >= quotient)
		return digit->div % quotient == 0;
	if (quotient % digit->div != 0)
		return false;
	return digit->div * digit->extent <= quotient || digit->extent % (quotient / digit->div) == 0;
}

struct layout *layout_project(struct arena *arena, const struct layout *source, uint32_t rank,
                              const struct projection *dims)
{
	int64_t shape[MAX_RANK];
	struct layout *out;
	int64_t n_replicas = 1;

	assert(source->kind == LAYOUT_FRAGMENT && !source->table_threads);
	for (uint32_t d = 0; d < rank; d++)
		shape[d] = dims[d].extent;
	out = layout_new_fragment(arena, rank, shape);
	/* Lowest thread stride first, so that replica numbers rise with the thread. */
	for (uint32_t i = source->n_digits; i-- > 0;) {
		const struct digit *digit = &source->digits[i];
		int dim = -1;

		for (uint32_t d = 0; d < rank; d++)
			if (dims[d].source_dim == digit->dim)
				dim = (int)d;
		if (dim >= 0 && !digit_divides(digit, dims[dim].quotient))
			return NULL;
		add_projected_digit(out, digit, dim, dim >= 0 ? dims[dim].quotient : 1, &n_replicas);
	}
	pack_slots(out);
	unmark_slots(out);
	layout_finish(out);
	return out;
}

struct layout *layout_reduce(struct arena *arena, const struct layout *source, uint32_t dim,
                             bool keep_dim)
{
	struct projection dims[MAX_RANK];
	uint32_t rank = 0;

	assert(dim < source->rank);
	for (uint32_t d = 0; d < source->rank; d++) {
		if (d == dim && keep_dim)
			dims[rank++] = (struct projection){ -1, 1, 1 };
		else if (d != dim)
			dims[rank++] = (struct projection){ (int)d, 1, source->shape[d] };
	}
	return layout_project(arena, source, rank, dims);
}
