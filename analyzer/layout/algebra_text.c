/*
 * CuTe layouts as text, and between them and layouts of digits.
 *
 * Grammar:
 *
 *     composed = [("Sw" | "Swizzle" | "S") "<" N "," N "," N ">" "o"] tree [":" tree]
 *     tree     = N | "(" tree {"," tree} ")"
 *
 * The stride tree has the shape's structure; an integer stride for a tuple is not taken. Without a
 * stride tree the layout is compact, the first mode contiguous.
 *
 * A memory layout is a CuTe layout of its dimensions with strides in elements; a fragment is CuTe's
 * "TV layout": (thread, value) to the element's number, column-major. The latter is the inverse of
 * our digits (element to thread and slot), and exists when the digits fill both axes without gaps.
 */
#include "analyzer/layout/algebra.h"
#include "analyzer/layout/algebra_internal.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { MAX_VALUE = 1 << 30 };

/* ---- printing ---- */

/* The shapes, or with `strides` the strides, of one tree. */
static void print_tree(struct buf *out, const struct cute *a, bool strides)
{
	if (a->n_modes == 0) {
		buf_printf(out, "%" PRId64, strides ? a->stride : a->shape);
		return;
	}
	for (uint32_t i = 0; i < a->n_modes; i++) {
		buf_char(out, i ? ',' : '(');
		print_tree(out, a->modes[i], strides);
	}
	buf_char(out, ')');
}

void cute_print(struct buf *out, const struct cute *a)
{
	print_tree(out, a, false);
	buf_char(out, ':');
	print_tree(out, a, true);
}

void cute_composed_print(struct buf *out, const struct cute_composed *a)
{
	if (a->swizzle.bits > 0)
		buf_printf(out, "Sw<%d,%d,%d> o ", a->swizzle.bits, a->swizzle.base, a->swizzle.shift);
	cute_print(out, a->layout);
}

/* ---- reading ---- */

/*
 * As in layout_text.c: after the first error nothing is read any more. `n_leaves` counts across the
 * tree, so that a hostile text is cut early.
 */
struct cute_reader {
	struct cx *cx;
	uint32_t file, at;
	struct str text;
	uint32_t n_leaves;
	bool failed;
};

/* E0401 at the position reached, once; false, for callers that return it. */
static bool fail(struct cute_reader *reader, const char *what)
{
	if (!reader->failed)
		diag_report(&reader->cx->diags, DIAG_E0401,
		            (struct span){ reader->file, reader->at, reader->at + 1 }, "CuTe layout: %s",
		            what);
	reader->failed = true;
	return false;
}

/* Takes the character when it comes next, blanks aside. */
static bool take(struct cute_reader *reader, char c)
{
	while (reader->at < reader->text.n && reader->text.p[reader->at] == ' ')
		reader->at++;
	if (reader->at == reader->text.n || reader->text.p[reader->at] != c)
		return false;
	reader->at++;
	return true;
}

static bool expect(struct cute_reader *reader, char c)
{
	char what[] = "'x' is expected";

	what[1] = c;
	return take(reader, c) || fail(reader, what);
}

/* 0 after an error. */
static int64_t read_number(struct cute_reader *reader)
{
	int64_t value = 0;

	take(reader, '_'); /* _8 is the static 8 of CuTe's own printing */
	if (reader->at == reader->text.n || !isdigit((unsigned char)reader->text.p[reader->at])) {
		fail(reader, "a number is expected");
		return 0;
	}
	while (reader->at < reader->text.n && isdigit((unsigned char)reader->text.p[reader->at])) {
		value = value * 10 + (reader->text.p[reader->at++] - '0');
		if (value > MAX_VALUE) {
			fail(reader, "the number is too large");
			return 0;
		}
	}
	return value;
}

/* A tree of numbers in the leaves' shape; NULL after an error. */
static const struct cute *read_tree(struct cute_reader *reader, int depth)
{
	struct arena *arena = reader->cx->arena;
	const struct cute *modes[CUTE_MAX_LEAVES];
	uint32_t n = 0;

	if (depth > CUTE_MAX_DEPTH || reader->n_leaves > CUTE_MAX_LEAVES) {
		fail(reader, "too many modes");
		return NULL;
	}
	if (!take(reader, '(')) {
		struct cute *leaf = arena_new(arena, struct cute);

		leaf->shape = read_number(reader);
		reader->n_leaves++;
		return reader->failed ? NULL : leaf;
	}
	do {
		if (n == CUTE_MAX_LEAVES) {
			fail(reader, "too many modes");
			return NULL;
		}
		modes[n] = read_tree(reader, depth + 1);
		if (!modes[n++])
			return NULL;
	} while (take(reader, ','));
	return expect(reader, ')') ? cute_tuple(arena, modes, n) : NULL;
}

/*
 * Shape and stride trees as one; `stride` NULL: compact, `*compact` is the next stride. Both trees
 * were read as shapes: in the stride tree a leaf's `shape` is its stride.
 */
static const struct cute *join_trees(struct cute_reader *reader, const struct cute *shape,
                                     const struct cute *stride, int64_t *compact)
{
	struct arena *arena = reader->cx->arena;
	const struct cute *modes[CUTE_MAX_LEAVES];

	if (stride && stride->n_modes != shape->n_modes) {
		fail(reader, "shape and stride differ in structure");
		return NULL;
	}
	if (shape->n_modes == 0) {
		int64_t step = stride ? stride->shape : *compact;

		if (shape->shape < 1) {
			fail(reader, "an extent is at least 1");
			return NULL;
		}
		*compact *= shape->shape;
		if (*compact > MAX_VALUE) {
			fail(reader, "the layout is too large");
			return NULL;
		}
		return cute_leaf(arena, shape->shape, step);
	}
	for (uint32_t i = 0; i < shape->n_modes; i++) {
		modes[i] = join_trees(reader, shape->modes[i], stride ? stride->modes[i] : NULL, compact);
		if (!modes[i])
			return NULL;
	}
	return cute_tuple(arena, modes, shape->n_modes);
}

/*
 * Nothing when no "S" comes. A swizzle that would move bits onto themselves, or whose shift is
 * negative, is refused: it has no XOR term of ours.
 */
static bool read_swizzle(struct cute_reader *reader, struct cute_swizzle *out)
{
	int64_t bits, base, shift;

	if (reader->at == reader->text.n || reader->text.p[reader->at] != 'S')
		return true;
	while (reader->at < reader->text.n && isalpha((unsigned char)reader->text.p[reader->at]))
		reader->at++;
	if (!expect(reader, '<'))
		return false;
	bits = read_number(reader);
	if (!expect(reader, ','))
		return false;
	base = read_number(reader);
	if (!expect(reader, ','))
		return false;
	shift = read_number(reader);
	if (!expect(reader, '>') || !expect(reader, 'o'))
		return false;
	if (bits + base + shift > 40 || shift < bits)
		return fail(reader, "the swizzle moves bits onto themselves");
	*out = (struct cute_swizzle){ (int)bits, (int)base, (int)shift };
	return true;
}

bool cute_parse(struct cx *cx, uint32_t file, uint32_t *position, struct cute_composed *out)
{
	struct cute_reader reader = {
		.cx = cx, .file = file, .at = *position, .text = source_get(&cx->sources, file)->text
	};
	const struct cute *shape, *stride = NULL;
	int64_t compact = 1;

	*out = (struct cute_composed){ 0 };
	while (reader.at < reader.text.n && reader.text.p[reader.at] == ' ')
		reader.at++;
	if (!read_swizzle(&reader, &out->swizzle))
		return false;
	shape = read_tree(&reader, 0);
	if (shape && take(&reader, ':')) {
		reader.n_leaves = 0;
		stride = read_tree(&reader, 0);
	}
	if (!reader.failed)
		out->layout = join_trees(&reader, shape, stride, &compact);
	*position = reader.at;
	return !reader.failed;
}

/* ---- memory layouts ---- */

/*
 * Digits of a dimension in order of div as one mode; false when they do not tile its extent. A part
 * of the index that no digit reads becomes a leaf of stride 0. Strides are in elements here, in
 * bytes in memory layouts.
 */
static bool dim_mode(struct arena *arena, const struct layout *layout, int dim,
                     const struct cute **out)
{
	struct leaves leaves = { 0 };
	int64_t div = 1, unit = layout->kind == LAYOUT_MEMORY ? layout->elem_bits / 8 : 1;

	while (div < layout->shape[dim]) {
		const struct digit *next = NULL;

		for (uint32_t i = 0; i < layout->n_digits; i++) {
			const struct digit *digit = &layout->digits[i];

			if (digit->dim == dim && digit->div >= div && (!next || digit->div < next->div))
				next = digit;
		}
		if (leaves.n + 2 > CUTE_MAX_LEAVES || (next && next->div % div != 0) ||
		    (next && next->stride % unit != 0) || (!next && layout->shape[dim] % div != 0))
			return false;
		if (!next || next->div > div) {
			leaves.shape[leaves.n] = (next ? next->div : layout->shape[dim]) / div;
			leaves.stride[leaves.n++] = 0;
		}
		if (!next)
			break;
		leaves.shape[leaves.n] = next->extent;
		leaves.stride[leaves.n++] = next->stride / unit;
		div = next->div * next->extent;
	}
	if (div > layout->shape[dim] && leaves.n > 0)
		return false;
	if (leaves.n == 0)
		leaves = (struct leaves){ 1, { 1 }, { 0 } };
	*out = leaves_tree(arena, &leaves);
	return true;
}

/* A digit of the dimension that begins inside another one. */
static bool digits_overlap(const struct layout *layout)
{
	for (uint32_t i = 0; i < layout->n_digits; i++)
		for (uint32_t k = 0; k < layout->n_digits; k++) {
			const struct digit *a = &layout->digits[i], *b = &layout->digits[k];

			if (i != k && a->dim == b->dim && a->div <= b->div && b->div < a->div * a->extent)
				return true;
		}
	return false;
}

/* -1 for what is no power of two. */
static int log2_of(int64_t value)
{
	return value > 0 && (value & (value - 1)) == 0 ? __builtin_ctzll((uint64_t)value) : -1;
}

/*
 * False for tables, for more than one XOR term, for digits that overlap, and where strides are no
 * whole elements. CuTe swizzles element offsets, ours are bytes: the bits move down by log2 of the
 * bytes.
 */
bool cute_from_memory(struct arena *arena, const struct layout *layout, struct cute_composed *out)
{
	const struct cute *modes[MAX_RANK];
	int unit = log2_of(layout->elem_bits / 8);

	*out = (struct cute_composed){ 0 };
	if (layout->kind != LAYOUT_MEMORY || layout->table || layout->n_xors > 1 ||
	    layout->elem_bits % 8 != 0 || layout->rank == 0 || digits_overlap(layout))
		return false;
	for (uint32_t d = 0; d < layout->rank; d++)
		if (!dim_mode(arena, layout, (int)d, &modes[d]))
			return false;
	if (layout->n_xors == 1) {
		const struct xor_term *term = &layout->xors[0];

		if (unit < 0 || term->to_bit < unit)
			return false;
		out->swizzle = (struct cute_swizzle){ term->n_bits, term->to_bit - unit,
			                                  term->from_bit - term->to_bit };
	}
	out->layout = layout->rank == 1 ? modes[0] : cute_tuple(arena, modes, layout->rank);
	return true;
}

/*
 * NULL for more dimensions or digits than layouts hold, and for swizzles of elements whose size is
 * no power of two. Leaves of stride 0 become no digit: such indices share a place.
 */
struct layout *cute_to_memory(struct arena *arena, const struct cute_composed *a,
                              uint32_t elem_bits)
{
	int64_t shape[MAX_RANK];
	struct layout *layout;
	uint32_t rank = cute_rank(a->layout);
	int unit = log2_of(elem_bits / 8);

	if (rank > MAX_RANK || cute_n_leaves(a->layout) > MAX_DIGITS || elem_bits % 8 != 0 ||
	    (a->swizzle.bits > 0 && unit < 0))
		return NULL;
	for (uint32_t d = 0; d < rank; d++)
		shape[d] = cute_size(cute_mode(a->layout, d));
	layout = layout_new_memory(arena, rank, shape, elem_bits);
	for (uint32_t d = 0; d < rank; d++) {
		struct leaves leaves;
		int64_t div = 1;

		cute_leaves(cute_mode(a->layout, d), &leaves);
		for (uint32_t i = 0; i < leaves.n; i++) {
			if (leaves.stride[i] > 0)
				layout_add_digit(layout, (struct digit){ (int)d, div, leaves.shape[i], AXIS_OFFSET,
				                                         leaves.stride[i] * (elem_bits / 8) });
			div *= leaves.shape[i];
		}
	}
	if (a->swizzle.bits > 0)
		layout->xors[layout->n_xors++] =
			(struct xor_term){ (uint8_t)(unit + a->swizzle.base + a->swizzle.shift),
			                   (uint8_t)(unit + a->swizzle.base), (uint8_t)a->swizzle.bits };
	layout_finish(layout);
	return layout;
}

/* ---- fragments ---- */

/* The digit that undoes leaf extent:stride (a position of `axis` from `place` on), cut at the
 * dimensions' borders. */
static bool add_inverse_digits(struct layout *layout, struct digit digit, int64_t stride)
{
	int64_t begin = 1;

	for (uint32_t d = 0; d < layout->rank && digit.extent > 1; d++) {
		int64_t end = begin * layout->shape[d], taken;

		if (stride < end) {
			if (stride % begin != 0)
				return false;
			taken = digit.extent;
			if (stride * digit.extent > end) {
				taken = end / stride;
				if (end % stride != 0 || digit.extent % taken != 0)
					return false;
			}
			if (layout->n_digits == MAX_DIGITS)
				return false;
			layout_add_digit(
				layout, (struct digit){ (int)d, stride / begin, taken, digit.axis, digit.stride });
			digit.stride *= taken;
			digit.extent /= taken;
			stride *= taken;
		}
		begin = end;
	}
	return digit.extent == 1;
}

/*
 * Stride 0 means that several threads or values hold the same element: replicas. NULL when a leaf
 * crosses a dimension's border unevenly, or leaves overlap.
 */
struct layout *cute_to_fragment(struct arena *arena, const struct cute *thread_value,
                                const int64_t *shape, uint32_t rank)
{
	struct layout *layout = layout_new_fragment(arena, rank, shape);
	int64_t n_replicas = 1;

	if (cute_rank(thread_value) != 2)
		return NULL;
	for (uint32_t m = 0; m < 2; m++) {
		struct leaves leaves;
		int64_t place = 1;

		cute_leaves(cute_mode(thread_value, m), &leaves);
		for (uint32_t i = 0; i < leaves.n; i++) {
			enum layout_axis axis = m == 0 ? AXIS_THREAD : AXIS_SLOT;
			struct digit digit = { DIM_REPLICA, n_replicas, leaves.shape[i], axis, place };

			place *= leaves.shape[i];
			if (leaves.shape[i] == 1)
				continue;
			if (leaves.stride[i] == 0) {
				if (layout->n_digits == MAX_DIGITS)
					return NULL;
				layout_add_digit(layout, digit);
				n_replicas *= leaves.shape[i];
			} else if (!add_inverse_digits(layout, digit, leaves.stride[i])) {
				return NULL;
			}
		}
	}
	if (digits_overlap(layout))
		return NULL;
	layout_finish(layout);
	return layout;
}

/* Digits of the axis, lowest stride first, must fill it; each gives a leaf with the element step
 * that it undoes. */
static const struct cute *axis_mode(struct arena *arena, const struct layout *layout,
                                    enum layout_axis axis)
{
	struct leaves leaves = { 0 };
	int64_t place = 1;

	for (uint32_t i = layout->n_digits; i-- > 0;) {
		const struct digit *digit = &layout->digits[i];
		int64_t begin = 1;

		if (digit->axis != axis)
			continue;
		if (digit->stride != place)
			return NULL;
		for (int d = 0; digit->dim != DIM_REPLICA && d < digit->dim; d++)
			begin *= layout->shape[d];
		if (digit->dim != DIM_REPLICA && digit->div * digit->extent > layout->shape[digit->dim])
			return NULL;
		leaves.shape[leaves.n] = digit->extent;
		leaves.stride[leaves.n++] = digit->dim == DIM_REPLICA ? 0 : begin * digit->div;
		place *= digit->extent;
	}
	if (leaves.n == 0)
		return cute_leaf(arena, 1, 0);
	return leaves_tree(arena, &leaves);
}

/*
 * NULL for tables and for axes with gaps: CuTe's map starts at the thread, and must have an element
 * for each.
 */
const struct cute *cute_from_fragment(struct arena *arena, const struct layout *layout)
{
	const struct cute *modes[2];

	assert(layout->kind == LAYOUT_FRAGMENT);
	if (layout->table_threads)
		return NULL;
	modes[0] = axis_mode(arena, layout, AXIS_THREAD);
	modes[1] = axis_mode(arena, layout, AXIS_SLOT);
	return modes[0] && modes[1] ? cute_tuple(arena, modes, 2) : NULL;
}
