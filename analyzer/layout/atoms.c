/*
 * Instruction operands as digits.
 *
 * All mma shapes of one warp follow one rule. A 32-bit register holds e = 32 / bits neighbours
 * along K (one for 32- and 64-bit types). Lane l holds row l / 4 of A (and row + 8 in the next
 * register), column l / 4 of B, and the l % 4-th group of e along K; the next 4 * e along K are in
 * the next registers. The accumulator has two neighbouring columns in lane l % 4.
 */
#include "analyzer/layout/atoms.h"

#include <assert.h>

enum { DIM_ROW, DIM_COLUMN };

static void add(struct layout *layout, int dim, int64_t div, int64_t extent, struct digit place)
{
	place.dim = dim;
	place.div = div;
	place.extent = extent;
	layout_add_digit(layout, place);
}

static struct digit thread_step(int64_t stride)
{
	return (struct digit){ .axis = AXIS_THREAD, .stride = stride };
}

static struct digit slot_step(int64_t stride)
{
	return (struct digit){ .axis = AXIS_SLOT, .stride = stride };
}

static int64_t per_register(uint32_t elem_bits)
{
	return elem_bits >= 32 ? 1 : 32 / elem_bits;
}

/* K goes over `dim`: e neighbours, four lanes, then registers of `next` slots. */
static void add_k(struct layout *layout, int dim, int64_t k, int64_t e, int64_t next)
{
	add(layout, dim, 1, e, slot_step(1));
	add(layout, dim, e, 4, thread_step(1));
	add(layout, dim, 4 * e, k / (4 * e), slot_step(next));
}

struct layout *atom_mma(struct arena *arena, enum mma_operand operand, int64_t m, int64_t k,
                        uint32_t elem_bits)
{
	int64_t e = per_register(elem_bits);
	int64_t shape[2] = { operand == MMA_B ? k : m, operand == MMA_A ? k : 8 };
	struct layout *layout;

	if ((m != 8 && m != 16) || k % (4 * e) != 0 || elem_bits < 4 || elem_bits > 64 ||
	    (elem_bits & (elem_bits - 1)) != 0)
		return NULL;
	layout = layout_new_fragment(arena, 2, shape);
	switch (operand) {
	case MMA_A:
		add(layout, DIM_ROW, 1, 8, thread_step(4));
		add(layout, DIM_ROW, 8, m / 8, slot_step(e));
		add_k(layout, DIM_COLUMN, k, e, e * m / 8);
		break;
	case MMA_B:
		add(layout, DIM_COLUMN, 1, 8, thread_step(4));
		add_k(layout, DIM_ROW, k, e, e);
		break;
	case MMA_C:
		add(layout, DIM_ROW, 1, 8, thread_step(4));
		add(layout, DIM_ROW, 8, m / 8, slot_step(2));
		add(layout, DIM_COLUMN, 1, 2, slot_step(1));
		add(layout, DIM_COLUMN, 2, 4, thread_step(1));
		break;
	}
	layout_finish(layout);
	return layout;
}

struct layout *atom_ldmatrix(struct arena *arena, int64_t n_matrices, bool trans)
{
	struct layout *layout = layout_new_fragment(arena, 2, (const int64_t[]){ 8 * n_matrices, 8 });
	int across = trans ? DIM_COLUMN : DIM_ROW, along = trans ? DIM_ROW : DIM_COLUMN;

	assert(n_matrices == 1 || n_matrices == 2 || n_matrices == 4);
	add(layout, across, 1, 8, thread_step(4));
	add(layout, along, 1, 2, slot_step(1));
	add(layout, along, 2, 4, thread_step(1));
	add(layout, DIM_ROW, 8, n_matrices, slot_step(2));
	layout_finish(layout);
	return layout;
}

struct layout *atom_ldmatrix_rows(struct arena *arena, int64_t n_matrices)
{
	struct layout *layout = layout_new_fragment(arena, 2, (const int64_t[]){ 8 * n_matrices, 1 });

	add(layout, DIM_ROW, 1, 8 * n_matrices, thread_step(1));
	layout_finish(layout);
	return layout;
}

struct layout *atom_wgmma_accumulator(struct arena *arena, int64_t n)
{
	return n % 8 != 0 || n < 8 || n > 256 ? NULL : layout_mma_accumulator(arena, 64, n, 4, 1);
}

struct layout *atom_wgmma_a(struct arena *arena, uint32_t elem_bits)
{
	int64_t e = per_register(elem_bits), k = 256 / elem_bits;
	struct layout *layout = layout_new_fragment(arena, 2, (const int64_t[]){ 64, k });

	assert(elem_bits == 8 || elem_bits == 16 || elem_bits == 32);
	add(layout, DIM_ROW, 1, 8, thread_step(4));
	add(layout, DIM_ROW, 8, 2, slot_step(e));
	add(layout, DIM_ROW, 16, 4, thread_step(32));
	add_k(layout, DIM_COLUMN, k, e, 2 * e);
	layout_finish(layout);
	return layout;
}

struct layout *atom_wgmma_shared(struct arena *arena, int64_t rows, int64_t columns,
                                 uint32_t elem_bits, int64_t span_bytes)
{
	if (rows % 8 != 0 || elem_bits % 8 != 0 || columns * (elem_bits / 8) % 16 != 0)
		return NULL;
	return layout_swizzled(arena, 2, (const int64_t[]){ rows, columns }, elem_bits,
	                       span_bytes == 0 ? 16 : span_bytes);
}

int64_t atom_swizzle_alignment(int64_t span_bytes)
{
	assert(span_bytes == 0 || span_bytes == 32 || span_bytes == 64 || span_bytes == 128);
	return span_bytes == 0 ? 128 : 8 * span_bytes;
}
