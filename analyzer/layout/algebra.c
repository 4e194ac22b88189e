/*
 * CuTe layouts: trees of shape:stride, their values, and comparisons by value.
 *
 * Values are read from the leaves in order: coordinate c has the digit c % s0 in the first leaf,
 * the rest goes on, and the last leaf takes all that is left. Comparisons look at the coalesced
 * form first and enumerate otherwise.
 *
 *     ((2,4),3):((1,6),2)      coordinate 11 is the digits 1, 1, 1: value 1*1 + 1*6 + 1*2 = 9
 *
 * Trees are immutable and share their parts; an operation makes new nodes only. Sources of all
 * names: CUTLASS, media/docs/cpp/cute (01_layout, 02_layout_algebra).
 */
#include "analyzer/layout/algebra.h"
#include "analyzer/layout/algebra_internal.h"

#include <assert.h>
#include <string.h>

/* Strides are not negative: values are offsets from the beginning. */
const struct cute *cute_leaf(struct arena *arena, int64_t shape, int64_t stride)
{
	struct cute *leaf = arena_new(arena, struct cute);

	assert(shape >= 1 && stride >= 0);
	leaf->shape = shape;
	leaf->stride = stride;
	return leaf;
}

/* The list of modes is copied, the modes themselves are shared. */
const struct cute *cute_tuple(struct arena *arena, const struct cute *const *modes, uint32_t n)
{
	struct cute *tuple = arena_new(arena, struct cute);
	const struct cute **copy = arena_array(arena, const struct cute *, n);

	assert(n >= 1);
	memcpy(copy, modes, n * sizeof(*modes));
	tuple->n_modes = n;
	tuple->modes = copy;
	return tuple;
}

/* Column-major, as CuTe's own compact layouts: the first mode is contiguous. */
const struct cute *cute_compact(struct arena *arena, const int64_t *shape, uint32_t n)
{
	const struct cute *modes[CUTE_MAX_LEAVES];
	int64_t stride = 1;

	assert(n >= 1 && n <= CUTE_MAX_LEAVES);
	for (uint32_t i = 0; i < n; i++) {
		modes[i] = cute_leaf(arena, shape[i], stride);
		stride *= shape[i];
	}
	return n == 1 ? modes[0] : cute_tuple(arena, modes, n);
}

/* An integer is a layout of one mode, as in CuTe. */
uint32_t cute_rank(const struct cute *a)
{
	return a->n_modes ? a->n_modes : 1;
}

const struct cute *cute_mode(const struct cute *a, uint32_t i)
{
	assert(i < cute_rank(a));
	return a->n_modes ? a->modes[i] : a;
}

uint32_t cute_n_leaves(const struct cute *a)
{
	uint32_t n = 0;

	if (a->n_modes == 0)
		return 1;
	for (uint32_t i = 0; i < a->n_modes; i++)
		n += cute_n_leaves(a->modes[i]);
	return n;
}

/* Depth is bounded by CUTE_MAX_DEPTH, where trees are read. */
static void collect_leaves(const struct cute *a, struct leaves *out)
{
	if (a->n_modes == 0) {
		assert(out->n < CUTE_MAX_LEAVES);
		out->shape[out->n] = a->shape;
		out->stride[out->n++] = a->stride;
	}
	for (uint32_t i = 0; i < a->n_modes; i++)
		collect_leaves(a->modes[i], out);
}

void cute_leaves(const struct cute *a, struct leaves *out)
{
	out->n = 0;
	collect_leaves(a, out);
}

int64_t cute_size(const struct cute *a)
{
	int64_t size = 1;

	if (a->n_modes == 0)
		return a->shape;
	for (uint32_t i = 0; i < a->n_modes; i++)
		size *= cute_size(a->modes[i]);
	return size;
}

/* One more than the largest value: each leaf is largest at its last coordinate. */
int64_t cute_cosize(const struct cute *a)
{
	int64_t last = 0;

	if (a->n_modes == 0)
		return (a->shape - 1) * a->stride + 1;
	for (uint32_t i = 0; i < a->n_modes; i++)
		last += cute_cosize(a->modes[i]) - 1;
	return last + 1;
}

/*
 * Coordinates past the size go on along the last leaf, as in CuTe: a layout is a function on all
 * numbers.
 */
int64_t leaves_at(const struct leaves *leaves, int64_t coordinate)
{
	int64_t value = 0;

	for (uint32_t i = 0; i + 1 < leaves->n; i++) {
		value += coordinate % leaves->shape[i] * leaves->stride[i];
		coordinate /= leaves->shape[i];
	}
	return value + coordinate * leaves->stride[leaves->n - 1];
}

int64_t cute_at(const struct cute *a, int64_t coordinate)
{
	struct leaves leaves;

	assert(coordinate >= 0);
	cute_leaves(a, &leaves);
	return leaves_at(&leaves, coordinate);
}

/* Bits base+shift .. are XORed onto bits base .. (Swizzle<bits, base, shift> for shift >= 0). */
int64_t cute_swizzle_at(struct cute_swizzle swizzle, int64_t value)
{
	int64_t mask = (((int64_t)1 << swizzle.bits) - 1) << swizzle.base;

	return value ^ ((value >> swizzle.shift) & mask);
}

int64_t cute_composed_at(const struct cute_composed *a, int64_t coordinate)
{
	return cute_swizzle_at(a->swizzle, cute_at(a->layout, coordinate));
}

/* ---- comparing ---- */

/* The same tree, not only the same values: 4:1 and (2,2):(1,2) differ. */
bool cute_same(const struct cute *a, const struct cute *b)
{
	if (a->n_modes != b->n_modes)
		return false;
	if (a->n_modes == 0)
		return a->shape == b->shape && a->stride == b->stride;
	for (uint32_t i = 0; i < a->n_modes; i++)
		if (!cute_same(a->modes[i], b->modes[i]))
			return false;
	return true;
}

bool cute_equal(const struct cute *a, const struct cute *b)
{
	struct leaves x, y;
	int64_t size = cute_size(a);

	if (size != cute_size(b))
		return false;
	cute_leaves(a, &x);
	cute_leaves(b, &y);
	leaves_coalesce(&x);
	leaves_coalesce(&y);
	/* Coalesced leaves are the only ones with these values. */
	return x.n == y.n && memcmp(x.shape, y.shape, x.n * sizeof(x.shape[0])) == 0 &&
	       memcmp(x.stride, y.stride, x.n * sizeof(x.stride[0])) == 0;
}

/*
 * Sorted by stride, each stride at least the span below it: no value comes twice. Enough, not
 * needed: (3,2):(2,3) takes six values as well, which only counting shows.
 */
static bool is_sorted_apart(const struct cute *a)
{
	struct leaves leaves;
	int64_t span = 1;

	cute_leaves(a, &leaves);
	leaves_sort(&leaves, NULL);
	for (uint32_t i = 0; i < leaves.n; i++) {
		if (leaves.shape[i] == 1)
			continue;
		if (leaves.stride[i] < span)
			return false;
		span = leaves.stride[i] * (leaves.shape[i] - 1) + span;
	}
	return true;
}

/* A bit for each value 0 .. n-1 that `a` takes. */
static unsigned char *value_set(struct arena *arena, const struct cute *a, int64_t n,
                                int64_t *n_values)
{
	unsigned char *seen = arena_array(arena, unsigned char, (size_t)(n > 0 ? n : 1));
	int64_t size = cute_size(a);
	struct leaves leaves;

	*n_values = 0;
	cute_leaves(a, &leaves);
	for (int64_t c = 0; c < size; c++) {
		int64_t value = leaves_at(&leaves, c);

		if (value < n && !seen[value]) {
			seen[value] = 1;
			++*n_values;
		}
	}
	return seen;
}

/*
 * Counting as the last resort takes a byte a value; fewer values than coordinates need no counting.
 */
bool cute_injective(const struct cute *a)
{
	struct arena *scratch;
	int64_t n_values;

	if (is_sorted_apart(a))
		return true;
	if (cute_cosize(a) < cute_size(a))
		return false;
	scratch = arena_open();
	value_set(scratch, a, cute_cosize(a), &n_values);
	arena_close(scratch);
	return n_values == cute_size(a);
}

/* Every value of `a` is a value of `b`. */
bool cute_contained(const struct cute *a, const struct cute *b)
{
	struct arena *scratch = arena_open();
	int64_t n = cute_cosize(a), size = cute_size(a), n_values;
	const unsigned char *seen = value_set(scratch, b, n, &n_values);
	struct leaves leaves;
	bool ok = true;

	cute_leaves(a, &leaves);
	for (int64_t c = 0; c < size && ok; c++)
		ok = seen[leaves_at(&leaves, c)];
	arena_close(scratch);
	return ok;
}

/* All of 0 .. n-1 are values. */
bool cute_covers(const struct cute *a, int64_t n)
{
	struct arena *scratch;
	int64_t n_values;

	if (n > cute_size(a))
		return false;
	scratch = arena_open();
	value_set(scratch, a, n, &n_values);
	arena_close(scratch);
	return n_values == n;
}
