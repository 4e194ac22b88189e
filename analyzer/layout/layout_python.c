/*
 * Layouts of memory as a kernel's text writes them, for T.annotate_layout: offsets in elements.
 *
 *     row-major (64, 64) of 16 bits, xor 3 bits 7 -> 4     lambda i, j: [i, j ^ (i % 8 * 8)]
 *     row-major (64, 64) of 16 bits, rows of 144 bytes     lambda i, j: i * 72 + j
 */
#include "analyzer/layout/layout.h"

#include <assert.h>
#include <inttypes.h>

static const char *const index_names[MAX_RANK] = { "i", "j", "k", "l", "i4", "i5", "i6", "i7" };

/* "i // 8 % 4 * 16": what a digit adds, in elements. */
static void print_digit(struct buf *out, const struct layout *layout, const struct digit *digit)
{
	int64_t stride = digit->stride * 8 / layout->elem_bits;

	buf_text(out, index_names[digit->dim]);
	if (digit->div > 1)
		buf_printf(out, " // %" PRId64, digit->div);
	if (digit->div * digit->extent < layout->shape[digit->dim])
		buf_printf(out, " %% %" PRId64, digit->extent);
	if (stride != 1)
		buf_printf(out, " * %" PRId64, stride);
}

static void print_digits(struct buf *out, const struct layout *layout)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < layout->n_digits; i++) {
		if (layout->digits[i].extent == 1)
			continue;
		buf_text(out, n++ ? " + " : "");
		print_digit(out, layout, &layout->digits[i]);
	}
	if (n == 0)
		buf_text(out, "0");
}

/* log2 of a power of two; -1 of anything else. */
static int log2_of(int64_t n)
{
	return n > 0 && (n & (n - 1)) == 0 ? __builtin_ctzll((unsigned long long)n) : -1;
}

/* Is it row-major without padding, with one XOR term from row numbers into columns? */
static bool is_row_swizzle(const struct layout *layout)
{
	uint32_t last = layout->rank - 1;
	int row_bits;
	struct layout rows = *layout;
	int64_t bytes = layout->elem_bits / 8;

	rows.n_xors = 0;
	if (layout->rank < 2 || layout->n_xors != 1 || bytes < 1)
		return false;
	for (uint32_t i = 0; i < layout->n_digits; i++)
		if (layout->digits[i].div != 1 ||
		    layout->digits[i].extent != layout->shape[layout->digits[i].dim])
			return false;
	for (uint32_t d = layout->rank; d-- > 0;) {
		int64_t index[MAX_RANK] = { 0 };

		index[d] = 1;
		if (layout->shape[d] > 1 && layout_at(&rows, index, 0).offset != bytes)
			return false;
		bytes *= layout->shape[d];
	}
	row_bits = log2_of(layout->shape[last] * (layout->elem_bits / 8));
	return row_bits >= 0 && layout->xors[0].from_bit >= row_bits &&
	       layout->xors[0].to_bit + layout->xors[0].n_bits <= row_bits &&
	       layout->shape[last - 1] %
	               ((int64_t)1 << (layout->xors[0].from_bit - row_bits + layout->xors[0].n_bits)) ==
	           0;
}

/* "[i, j ^ (i // 2 % 4 * 8)]" */
static void print_row_swizzle(struct buf *out, const struct layout *layout)
{
	uint32_t last = layout->rank - 1;
	const struct xor_term *term = &layout->xors[0];
	int64_t bytes = layout->elem_bits / 8;
	int row_bits = log2_of(layout->shape[last] * bytes);

	assert(layout->rank >= 2);
	buf_char(out, '[');
	for (uint32_t d = 0; d < last; d++)
		buf_printf(out, "%s, ", index_names[d]);
	buf_printf(out, "%s ^ (%s", index_names[last], index_names[last - 1]);
	if (term->from_bit > row_bits)
		buf_printf(out, " // %d", 1 << (term->from_bit - row_bits));
	buf_printf(out, " %% %d * %" PRId64 ")]", 1 << term->n_bits,
	           ((int64_t)1 << term->to_bit) / bytes);
}

/* (x) ^ (x // 64 % 8 * 8), the sum written out as often as it is needed. */
static void print_xors(struct buf *out, const struct layout *layout, uint32_t n)
{
	const struct xor_term *term;
	int64_t bytes = layout->elem_bits / 8;

	if (n == 0) {
		print_digits(out, layout);
		return;
	}
	term = &layout->xors[n - 1];
	buf_char(out, '(');
	print_xors(out, layout, n - 1);
	buf_text(out, ") ^ ((");
	print_xors(out, layout, n - 1);
	buf_printf(out, ") // %" PRId64 " %% %d * %" PRId64 ")", ((int64_t)1 << term->from_bit) / bytes,
	           1 << term->n_bits, ((int64_t)1 << term->to_bit) / bytes);
}

bool layout_print_python(struct buf *out, const struct layout *layout)
{
	int64_t bytes = layout->elem_bits / 8;

	if (layout->kind != LAYOUT_MEMORY || layout->table || layout->elem_bits % 8 != 0 ||
	    layout->n_xors > 2)
		return false;
	for (uint32_t i = 0; i < layout->n_xors; i++)
		if (((int64_t)1 << layout->xors[i].to_bit) % bytes != 0 ||
		    ((int64_t)1 << layout->xors[i].from_bit) % bytes != 0)
			return false;
	for (uint32_t i = 0; i < layout->n_digits; i++)
		if (layout->digits[i].dim == DIM_REPLICA || layout->digits[i].stride % bytes != 0)
			return false;
	assert(layout->rank >= 1);
	buf_text(out, "lambda ");
	for (uint32_t d = 0; d < layout->rank; d++)
		buf_printf(out, "%s%s", d ? ", " : "", index_names[d]);
	buf_text(out, ": ");
	if (is_row_swizzle(layout))
		print_row_swizzle(out, layout);
	else
		print_xors(out, layout, layout->n_xors);
	return true;
}
