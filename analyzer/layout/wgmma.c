/*
 * Matrices of warpgroup instructions.
 *
 * In units of 16 bytes (T elements) the canonical layouts are, before the XOR:
 *
 *     K-major   span s   mn % 8 * s + mn / 8 * stride, k contiguous inside the span
 *     K-major   none     mn % 8 * 16 + mn / 8 * stride, k / T * leading
 *     MN-major  span s   k % 8 * s + k / 8 * stride, mn contiguous inside the span, then leading
 *     MN-major  none     k % 8 * 16 + k / 8 * leading, mn / T * stride
 *
 * and the XOR puts address bits 7.. over bits 4.., as many as the span has 16-byte columns' bits.
 */
#include "analyzer/layout/wgmma.h"

#include <assert.h>

enum { ROWS = 8, COLUMN = 16, SWIZZLE_FROM = 7, SWIZZLE_TO = 4 };

/* ---- reading by a descriptor ---- */

static int64_t swizzle_bits(int64_t span)
{
	return span == 128 ? 3 : span == 64 ? 2 : span == 32 ? 1 : 0;
}

int64_t wgmma_address(const struct wgmma_matrix *matrix, int64_t start, int64_t mn, int64_t k)
{
	int64_t mask = ((int64_t)1 << swizzle_bits(matrix->span)) - 1, at = start;
	int64_t row = matrix->mn_major ? k : mn,
			byte = (matrix->mn_major ? mn : k) * matrix->elem_bytes;
	bool none = matrix->span == COLUMN;

	at += row % ROWS * matrix->span + byte % matrix->span;
	at += row / ROWS * (none && matrix->mn_major ? matrix->leading : matrix->stride);
	if (matrix->mn_major)
		at += byte / matrix->span * (none ? matrix->stride : matrix->leading);
	else
		at += none ? byte / COLUMN * matrix->leading : byte / matrix->span * matrix->span;
	return at ^ (at >> SWIZZLE_FROM & mask) << SWIZZLE_TO;
}

int64_t wgmma_alignment(const struct wgmma_matrix *matrix)
{
	return matrix->span == COLUMN ? COLUMN : ROWS * matrix->span;
}

int wgmma_swizzle_mode(const struct wgmma_matrix *matrix)
{
	return matrix->span == 128 ? 1 : matrix->span == 64 ? 2 : matrix->span == 32 ? 3 : 0;
}

/* ---- which descriptor a layout has ---- */

const struct layout *wgmma_linear(struct arena *arena, const struct layout *layout)
{
	struct layout *linear;

	if (!layout->n_xors)
		return layout;
	linear = arena_new(arena, struct layout);
	*linear = *layout;
	linear->n_xors = 0;
	return linear;
}

/* The span of the layout's swizzle: 16 without one; 0 when it is none that a descriptor knows. */
static int64_t span_of(const struct layout *layout)
{
	const struct xor_term *term = &layout->xors[0];

	if (layout->n_xors == 0)
		return COLUMN;
	if (layout->n_xors > 1 || term->from_bit != SWIZZLE_FROM || term->to_bit != SWIZZLE_TO ||
	    term->n_bits > 3)
		return 0;
	return COLUMN << term->n_bits;
}

/* Offsets along one dimension, the others at 0. */
struct walk {
	const struct layout *linear;
	uint32_t dim;
};

static int64_t offset_at(const struct walk *walk, int64_t index)
{
	int64_t at[MAX_RANK] = { 0 };

	at[walk->dim] = index;
	return layout_at(walk->linear, at, 0).offset;
}

/*
 * Are offsets `unit * (index % inner) + step * (index / inner)`, in steps of `grain`? Gives the
 * step, 0 when the dimension has no more than `inner`.
 */
static bool two_level(const struct walk *walk, int64_t inner, int64_t unit, int64_t grain,
                      int64_t *step)
{
	int64_t extent = walk->linear->shape[walk->dim];

	*step = extent > inner ? offset_at(walk, inner) : 0;
	for (int64_t i = 0; i < extent; i += grain)
		if (offset_at(walk, i) != i % inner * unit + i / inner * *step)
			return false;
	return true;
}

/* The elements of a 16-byte column are contiguous. */
static bool columns_whole(const struct layout *layout, uint32_t dim, int64_t bytes)
{
	int64_t n = COLUMN / bytes;

	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];

		if (digit->dim == (int)dim && digit->div < n)
			return n == 1 || (digit->div == 1 && digit->stride == bytes && digit->extent % n == 0);
	}
	return n == 1;
}

/* Outer dimensions, and all steps between parts, keep the swizzle's pattern where it is. */
static bool steps_aligned(const struct layout *layout, int64_t rows_step, int64_t columns_step,
                          int64_t align)
{
	for (uint32_t i = 0; i < layout->n_digits; i++)
		if (layout->digits[i].dim < (int)layout->rank - 2 && layout->digits[i].stride % align != 0)
			return false;
	return rows_step % align == 0 && columns_step % align == 0;
}

/* K in two 16-byte columns a step: their distance is the leading offset. */
static bool columns_of_k(const struct walk *walk, int64_t bytes, int64_t *leading)
{
	int64_t n = COLUMN / bytes, extent = walk->linear->shape[walk->dim];

	*leading = extent > n ? offset_at(walk, n) : COLUMN;
	for (int64_t k = 0; k + 2 * n <= extent; k += 2 * n)
		if (offset_at(walk, k + n) - offset_at(walk, k) != *leading)
			return false;
	return *leading % COLUMN == 0 && *leading > 0;
}

static bool k_major(const struct walk *rows, const struct walk *columns, struct wgmma_matrix *out)
{
	int64_t n = out->span / out->elem_bytes, step = 0;

	out->leading = COLUMN;
	if (out->span == COLUMN)
		return columns_of_k(columns, out->elem_bytes, &out->leading) &&
		       steps_aligned(rows->linear, out->stride, 0, COLUMN);
	return columns->linear->shape[columns->dim] % (WGMMA_K_BYTES / out->elem_bytes) == 0 &&
	       two_level(columns, n, out->elem_bytes, COLUMN / out->elem_bytes, &step) &&
	       steps_aligned(rows->linear, out->stride, step, wgmma_alignment(out));
}

static bool mn_major(const struct walk *rows, const struct walk *columns, int64_t mn,
                     struct wgmma_matrix *out)
{
	int64_t n = out->span / out->elem_bytes, rows_step = out->stride, step;

	if (!two_level(columns, n, out->elem_bytes, COLUMN / out->elem_bytes, &step) || mn % n != 0 ||
	    !steps_aligned(rows->linear, rows_step, step, wgmma_alignment(out)))
		return false;
	step = step > 0 ? step : COLUMN; /* one span alone: not used */
	out->leading = out->span == COLUMN ? rows_step : step;
	out->stride = out->span == COLUMN ? step : rows_step;
	return true;
}

bool wgmma_matrix_of(struct arena *arena, const struct layout *layout,
                     const struct wgmma_view *view, struct wgmma_matrix *out)
{
	struct walk rows, columns;
	int64_t bytes = layout->elem_bits / 8;

	*out = (struct wgmma_matrix){ .mn_major = view->mn_major,
		                          .elem_bytes = bytes,
		                          .span = span_of(layout) };
	if (layout->kind != LAYOUT_MEMORY || layout->table || layout->rank < 2 || bytes == 0 ||
	    out->span == 0 || (view->mn_major && bytes != 2))
		return false;
	rows = (struct walk){ wgmma_linear(arena, layout), layout->rank - 2 };
	columns = (struct walk){ rows.linear, layout->rank - 1 };
	if (!columns_whole(layout, columns.dim, bytes) ||
	    !two_level(&rows, ROWS, out->span, 1, &out->stride))
		return false;
	out->stride = out->stride > 0 ? out->stride : ROWS * out->span;
	return view->mn_major ? mn_major(&rows, &columns, view->mn, out)
	                      : k_major(&rows, &columns, out);
}

/* ---- registers ---- */

enum { LANES_OF_WARP = 32, BLOCK_WARP_ROWS = 16 };

/* Rows over the lanes, registers, warps and blocks of a warpgroup, and over the groups. */
static void add_rows(struct layout *layout, int dim, int64_t rows, int64_t groups,
                     const int64_t slots[2])
{
	int64_t group_rows = rows / groups;

	layout_add_digit(layout, (struct digit){ dim, 1, 8, AXIS_THREAD, 4 });
	layout_add_digit(layout, (struct digit){ dim, 8, 2, AXIS_SLOT, slots[0] });
	layout_add_digit(
		layout, (struct digit){ dim, BLOCK_WARP_ROWS, WGMMA_WARPS, AXIS_THREAD, LANES_OF_WARP });
	layout_add_digit(layout,
	                 (struct digit){ dim, WGMMA_M, group_rows / WGMMA_M, AXIS_SLOT, slots[1] });
	layout_add_digit(layout, (struct digit){ dim, group_rows, groups, AXIS_THREAD, WGMMA_THREADS });
}

struct layout *layout_wgmma_accumulator(struct arena *arena, const int64_t shape[2],
                                        int64_t warps_m, int64_t warps_n)
{
	struct layout *layout = layout_new_fragment(arena, 2, shape);
	int64_t groups = warps_m / WGMMA_WARPS, columns = shape[1] / warps_n;

	assert(warps_m % WGMMA_WARPS == 0 && shape[0] % (WGMMA_M * groups) == 0 &&
	       shape[1] % (8 * warps_n) == 0);
	add_rows(layout, 0, shape[0], groups, (const int64_t[]){ 2, columns / 8 * 4 });
	layout_add_digit(layout, (struct digit){ 1, 1, 2, AXIS_SLOT, 1 });
	layout_add_digit(layout, (struct digit){ 1, 2, 4, AXIS_THREAD, 1 });
	layout_add_digit(layout, (struct digit){ 1, 8, columns / 8, AXIS_SLOT, 4 });
	layout_add_digit(layout,
	                 (struct digit){ 1, columns, warps_n, AXIS_THREAD, LANES_OF_WARP * warps_m });
	layout_finish(layout);
	return layout;
}

struct layout *layout_wgmma_operand(struct arena *arena, const struct operand_form *operand)
{
	int row = operand->k_first ? 1 : 0, k = 1 - row;
	int64_t e = operand->per_reg, k_steps = operand->k / (8 * e), shape[2];
	int64_t groups = operand->warps_m / WGMMA_WARPS;
	struct layout *layout;

	assert(!operand->is_b && operand->warps_m % WGMMA_WARPS == 0 &&
	       operand->rows % (WGMMA_M * groups) == 0 && operand->k % (8 * e) == 0);
	shape[row] = operand->rows;
	shape[k] = operand->k;
	layout = layout_new_fragment(arena, 2, shape);
	add_rows(layout, row, operand->rows, groups, (const int64_t[]){ e, k_steps * 4 * e });
	layout_add_digit(layout, (struct digit){ k, 1, e, AXIS_SLOT, 1 });
	layout_add_digit(layout, (struct digit){ k, e, 4, AXIS_THREAD, 1 });
	layout_add_digit(layout, (struct digit){ k, 4 * e, 2, AXIS_SLOT, 2 * e });
	layout_add_digit(layout, (struct digit){ k, 8 * e, k_steps, AXIS_SLOT, 4 * e });
	layout_add_digit(layout, (struct digit){ DIM_REPLICA, 1, operand->warps_n, AXIS_THREAD,
	                                         LANES_OF_WARP * operand->warps_m });
	layout_finish(layout);
	return layout;
}

int64_t wgmma_split(int64_t columns, bool is_integer)
{
	for (int64_t n_parts = 1; n_parts * 8 <= columns; n_parts++) {
		int64_t n = columns / n_parts;

		if (columns % n_parts == 0 && n % 8 == 0 && n <= WGMMA_MAX_N &&
		    (!is_integer || n <= 32 || n % 16 == 0))
			return n;
	}
	return 0;
}
