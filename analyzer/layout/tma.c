/*
 * Which tiles bulk tensor copies can fill, and by which boxes.
 */
#include "analyzer/layout/tma.h"

#include <assert.h>
#include <inttypes.h>

enum { LINE = 128, PATTERN_ROWS = 8 };

static bool is_same(struct arena *arena, const struct layout *layout, int64_t span)
{
	struct arena_mark mark = arena_mark(arena);
	const struct layout *wanted =
		span ? layout_swizzled(arena, layout->rank, layout->shape, layout->elem_bits, span)
			 : layout_row_major(arena, layout->rank, layout->shape, layout->elem_bits, 0);
	bool same = wanted && layout_equal(layout, wanted, NULL);

	arena_release(arena, mark);
	return same;
}

/* 0, 32, 64, 128; -1: none that the hardware has. */
static int64_t span_of(struct arena *arena, const struct layout *layout)
{
	static const int64_t spans[] = { 0, 128, 64, 32 };

	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++)
		if (is_same(arena, layout, spans[i]))
			return spans[i];
	return -1;
}

/* Says what keeps a layout away: most often rows that are wider than what their swizzle spans. */
static const char *why_no_span(struct arena *arena, const struct layout *layout)
{
	int64_t elems = layout->shape[layout->rank - 1], row = elems * layout->elem_bits / 8;

	for (uint32_t i = 0; i < layout->n_xors; i++) {
		const struct xor_term *term = &layout->xors[i];
		int64_t span = (int64_t)1 << (term->to_bit + term->n_bits);

		if (term->to_bit >= 4 && row > span)
			return arena_printf(arena,
			                    "a box's row of %" PRId64 " elements is %" PRId64
			                    " bytes, wider than the %" PRId64 " bytes that its swizzle spans",
			                    elems, row, span);
	}
	return "its layout is neither row-major nor a swizzle of 32, 64 or 128 bytes";
}

/* The largest divisor of n that a box may have: n itself, or a multiple of `unit` if any. */
static int64_t part_of(int64_t n, int64_t unit)
{
	int64_t part = n < TMA_MAX_BOX ? n : TMA_MAX_BOX;

	while (part > 0 && (n % part != 0 || (part != n && part % unit != 0)))
		part--;
	return part > 0 ? part : part_of(n, 1);
}

/* Rows between two of which a box may start: whole lines, or whole patterns of the swizzle. */
static int64_t row_unit(const struct layout *layout, int64_t span)
{
	int64_t bytes = layout->shape[layout->rank - 1] * layout->elem_bits / 8, unit = 1;

	if (span)
		return PATTERN_ROWS;
	while (unit < LINE && bytes * unit % LINE != 0)
		unit++;
	return unit;
}

static bool is_at(int64_t divisor, int64_t unit)
{
	return divisor % unit == 0;
}

/* Rows of the tile itself: whole ones, or a part of a single one. */
static const char *cut_linear(struct arena *arena, const struct layout *layout,
                              const struct tma_rect *rect, struct tma_box *out)
{
	uint32_t last = layout->rank - 1;
	int64_t row = rect->extent[last], elem_bits = layout->elem_bits;
	bool is_whole = row == layout->shape[last];

	out->inner = out->rows > 1 || out->n_rows > 1 ? row : part_of(row, 1);
	if (out->rows > 1 && !is_whole) {
		out->n_rows *= out->rows;
		out->rows = 1;
	}
	if (out->inner > TMA_MAX_BOX && out->rows > 1) {
		out->n_rows *= out->rows;
		out->rows = 1;
	}
	if (out->rows == 1)
		out->inner = part_of(row, LINE * 8 / elem_bits);
	out->n_inner = row / out->inner;
	if (out->inner * elem_bits / 8 % TMA_UNIT != 0)
		return arena_printf(arena, "a box's row of %" PRId64 " bytes is no multiple of %d",
		                    out->inner * elem_bits / 8, TMA_UNIT);
	/* Each box starts at a multiple of 128 bytes: within the tile, and within the tensor's rows. */
	if ((!is_whole && !is_at(rect->divisor[last] * elem_bits / 8, LINE)) ||
	    (out->n_inner > 1 && out->inner * elem_bits / 8 % LINE != 0) ||
	    (out->n_rows > 1 && layout->shape[last] * out->rows * elem_bits / 8 % LINE != 0))
		return "its boxes do not start at multiples of 128 bytes";
	return NULL;
}

/* Panels of `span` bytes, 8 rows of which are the swizzle's pattern. */
static const char *cut_swizzled(struct arena *arena, const struct layout *layout,
                                const struct tma_rect *rect, struct tma_box *out)
{
	uint32_t last = layout->rank - 1;
	int64_t unit = out->span * 8 / layout->elem_bits;

	out->inner = unit;
	out->n_inner = rect->extent[last] / unit;
	if (rect->extent[last] % unit != 0 || !is_at(rect->divisor[last], unit))
		return arena_printf(arena,
		                    "the part of %" PRId64
		                    " elements does not consist of panels of %" PRId64 " (%" PRId64
		                    " bytes, the swizzle's span)",
		                    rect->extent[last], unit, out->span);
	if (!is_at(rect->divisor[last - 1], PATTERN_ROWS) ||
	    (layout->shape[last - 1] % PATTERN_ROWS != 0 &&
	     (out->n_inner > 1 || out->n_outer > 1 || rect->divisor[last] != 0)) ||
	    (out->n_rows > 1 && out->rows % PATTERN_ROWS != 0))
		return "its boxes do not start where the swizzle's pattern of 8 rows does";
	return NULL;
}

const char *tma_box_of(struct arena *arena, const struct layout *layout,
                       const struct tma_rect *rect, struct tma_box *out)
{
	uint32_t last = layout->rank - 1;
	int64_t span = span_of(arena, layout);
	int64_t rows = layout->rank > 1 ? rect->extent[last - 1] : 1;

	if (span < 0)
		return why_no_span(arena, layout);
	*out = (struct tma_box){ .span = span,
		                     .rows = part_of(rows, row_unit(layout, span)),
		                     .n_outer = 1 };
	out->n_rows = rows / out->rows;
	for (uint32_t d = 0; d + 1 < last; d++)
		out->n_outer *= rect->extent[d];
	return span ? cut_swizzled(arena, layout, rect, out) : cut_linear(arena, layout, rect, out);
}

int64_t tma_box_bytes(const struct tma_box *box, uint32_t elem_bits)
{
	return box->inner * box->rows * (int64_t)elem_bits / 8;
}

int64_t tma_bytes(const struct tma_box *box, uint32_t elem_bits)
{
	return tma_box_bytes(box, elem_bits) * box->n_inner * box->n_rows * box->n_outer;
}

int64_t tma_alignment(const struct tma_box *box)
{
	return box->span ? box->span * PATTERN_ROWS : LINE;
}
