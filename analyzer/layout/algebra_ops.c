/*
 * Operations on CuTe layouts.
 *
 * Everything rests on three: coalesce (joins s0:d0, s1:d1 when d1 = s0*d0), composition (each leaf
 * of b walks through the coalesced modes of a: its stride eats extents from below, its extent takes
 * what is left of each mode), and complement (the gaps between the sorted modes). Divide is
 * composition with (tile, its complement), product is the complement composed with the tiler.
 * Worked example: (6,2):(8,2) composed with (4,3):(3,1) is ((2,2),3):((24,2),8).
 */
#include "analyzer/layout/algebra.h"
#include "analyzer/layout/algebra_internal.h"

#include <assert.h>
#include <string.h>

enum { MAX_SIZE_BITS = 40 };

/* ---- leaves ---- */

/*
 * In place. Leaves of extent 1 go; what remains of a layout without others is 1:0. The result is
 * the only flat list with these values and no two leaves to join, which is why cute_equal may
 * compare it.
 */
void leaves_coalesce(struct leaves *leaves)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < leaves->n; i++) {
		int64_t shape = leaves->shape[i], stride = leaves->stride[i];

		if (shape == 1)
			continue;
		if (n > 0 && leaves->shape[n - 1] * leaves->stride[n - 1] == stride) {
			leaves->shape[n - 1] *= shape;
			continue;
		}
		leaves->shape[n] = shape;
		leaves->stride[n++] = stride;
	}
	if (n == 0) {
		leaves->shape[0] = 1;
		leaves->stride[0] = 0;
		n = 1;
	}
	leaves->n = n;
}

/* By stride, then extent, ascending; `places` (may be NULL) is permuted along. */
void leaves_sort(struct leaves *leaves, int64_t *places)
{
	for (uint32_t i = 1; i < leaves->n; i++) {
		int64_t shape = leaves->shape[i], stride = leaves->stride[i];
		int64_t place = places ? places[i] : 0;
		uint32_t at = i;

		for (; at > 0 && (leaves->stride[at - 1] > stride ||
		                  (leaves->stride[at - 1] == stride && leaves->shape[at - 1] > shape));
		     at--) {
			leaves->shape[at] = leaves->shape[at - 1];
			leaves->stride[at] = leaves->stride[at - 1];
			if (places)
				places[at] = places[at - 1];
		}
		leaves->shape[at] = shape;
		leaves->stride[at] = stride;
		if (places)
			places[at] = place;
	}
}

/* A single leaf is no tuple. */
const struct cute *leaves_tree(struct arena *arena, const struct leaves *leaves)
{
	const struct cute *modes[CUTE_MAX_LEAVES];

	for (uint32_t i = 0; i < leaves->n; i++)
		modes[i] = cute_leaf(arena, leaves->shape[i], leaves->stride[i]);
	return leaves->n == 1 ? modes[0] : cute_tuple(arena, modes, leaves->n);
}

/* Without wrapping around: what does not fit is above every limit. */
static int64_t product(int64_t a, int64_t b)
{
	int64_t result;

	return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

/* False when the list is full or a stride leaves the range in which products cannot overflow. */
static bool push_leaf(struct leaves *leaves, int64_t shape, int64_t stride)
{
	if (leaves->n == CUTE_MAX_LEAVES || stride > (int64_t)1 << MAX_SIZE_BITS)
		return false;
	leaves->shape[leaves->n] = shape;
	leaves->stride[leaves->n++] = stride;
	return true;
}

const struct cute *cute_flatten(struct arena *arena, const struct cute *a)
{
	struct leaves leaves;

	cute_leaves(a, &leaves);
	return leaves_tree(arena, &leaves);
}

const struct cute *cute_coalesce(struct arena *arena, const struct cute *a)
{
	struct leaves leaves;

	cute_leaves(a, &leaves);
	leaves_coalesce(&leaves);
	return leaves_tree(arena, &leaves);
}

/* The first n modes each by itself: the shape's top level, which tilers rely on, stays. */
const struct cute *cute_coalesce_modes(struct arena *arena, const struct cute *a, uint32_t n)
{
	const struct cute *modes[CUTE_MAX_LEAVES];
	uint32_t rank = cute_rank(a);

	assert(n <= rank);
	for (uint32_t i = 0; i < rank; i++)
		modes[i] = i < n ? cute_coalesce(arena, cute_mode(a, i)) : cute_mode(a, i);
	return cute_tuple(arena, modes, rank);
}

/* ---- composition ---- */

/*
 * The leaf s:d seen through a's coalesced leaves; NULL when the divisions have remainders. The
 * stride d divides extents away from below (an extent 6 and a stride 4 have none in common: no
 * composition), then the extent s takes what is left of each leaf, the last of which gives without
 * end.
 */
static const struct cute *compose_leaf(struct arena *arena, const struct leaves *a,
                                       const struct cute *leaf, int64_t cosize)
{
	struct leaves result = { 0 };
	int64_t s = leaf->shape, d = leaf->stride;

	if (d == 0)
		return cute_leaf(arena, s, 0);
	for (uint32_t i = 0; i + 1 < a->n && s > 1; i++) {
		int64_t extent = a->shape[i], taken = extent / d > 1 ? extent / d : 1;

		taken = taken < s ? taken : s;
		/* When all of b stays inside the first mode nothing is divided. */
		if (i == 0 && cosize <= extent)
			taken = s;
		else if ((extent % d != 0 && d % extent != 0) || s % taken != 0)
			return NULL;
		if (taken > 1 && !push_leaf(&result, taken, product(d, a->stride[i])))
			return NULL;
		s /= taken;
		d = (d + extent - 1) / extent;
	}
	if (s > 1 && !push_leaf(&result, s, product(d, a->stride[a->n - 1])))
		return NULL;
	if (result.n == 0)
		push_leaf(&result, 1, 0);
	return leaves_tree(arena, &result);
}

/* Composition distributes over b's modes: each leaf by itself, in b's structure. */
static const struct cute *compose_tree(struct arena *arena, const struct leaves *a,
                                       const struct cute *b, int64_t cosize)
{
	const struct cute *modes[CUTE_MAX_LEAVES];

	if (b->n_modes == 0)
		return compose_leaf(arena, a, b, cosize);
	for (uint32_t i = 0; i < b->n_modes; i++) {
		modes[i] = compose_tree(arena, a, b->modes[i], cosize);
		if (!modes[i])
			return NULL;
	}
	return cute_tuple(arena, modes, b->n_modes);
}

/* Results may be deeper than their parts; what is too large is refused as if it did not exist. */
static const struct cute *within_limit(const struct cute *a)
{
	return a && cute_n_leaves(a) <= CUTE_MAX_LEAVES ? a : NULL;
}

/* `a` after `b`: c goes to a(b(c)). a's structure does not matter, hence the coalescing. */
const struct cute *cute_compose(struct arena *arena, const struct cute *a, const struct cute *b)
{
	struct leaves leaves;

	cute_leaves(a, &leaves);
	leaves_coalesce(&leaves);
	return within_limit(compose_tree(arena, &leaves, b, cute_cosize(b)));
}

/* An operation of two layouts, NULL when there is no result. */
typedef const struct cute *binary(struct arena *arena, const struct cute *a, const struct cute *b);

/* `op` on mode i and tilers[i], the modes behind them as they are. */
static const struct cute *by_modes(struct arena *arena, const struct cute *a,
                                   const struct cute *const *tilers, uint32_t n, binary *op)
{
	const struct cute *modes[CUTE_MAX_LEAVES];
	uint32_t rank = cute_rank(a);

	assert(n <= rank);
	for (uint32_t i = 0; i < rank; i++) {
		const struct cute *mode = cute_mode(a, i);

		modes[i] = i < n && tilers[i] ? op(arena, mode, tilers[i]) : mode;
		if (!modes[i])
			return NULL;
	}
	return within_limit(cute_tuple(arena, modes, rank));
}

const struct cute *cute_compose_modes(struct arena *arena, const struct cute *a,
                                      const struct cute *const *tilers, uint32_t n)
{
	return by_modes(arena, a, tilers, n, cute_compose);
}

/* ---- complement and inverses ---- */

/*
 * Sorted by stride, the gap before each mode becomes a mode: extent stride / span, stride span; the
 * last gap repeats the whole up to `size`. NULL when modes overlap.
 */
const struct cute *cute_complement(struct arena *arena, const struct cute *a, int64_t size)
{
	struct leaves leaves, result = { 0 };
	int64_t current = 1;

	cute_leaves(a, &leaves);
	leaves_sort(&leaves, NULL);
	for (uint32_t i = 0; i < leaves.n; i++) {
		if (leaves.stride[i] == 0 || leaves.shape[i] == 1)
			continue;
		/* The mode begins inside those below it. */
		if (leaves.stride[i] < current)
			return NULL;
		if (!push_leaf(&result, leaves.stride[i] / current, current))
			return NULL;
		current = leaves.stride[i] * leaves.shape[i];
	}
	if (!push_leaf(&result, size > current ? (size + current - 1) / current : 1, current))
		return NULL;
	leaves_coalesce(&result);
	return leaves_tree(arena, &result);
}

/*
 * r with a(r(x)) = x for x below r's size: leaves in the order of their strides, as long as each
 * begins where the ones before end; r's size shows how far that goes.
 */
const struct cute *cute_right_inverse(struct arena *arena, const struct cute *a)
{
	struct leaves leaves, result = { 0 };
	int64_t places[CUTE_MAX_LEAVES];
	int64_t place = 1, current = 1;

	cute_leaves(a, &leaves);
	for (uint32_t i = 0; i < leaves.n; i++) {
		places[i] = place;
		place *= leaves.shape[i];
	}
	leaves_sort(&leaves, places);
	for (uint32_t i = 0; i < leaves.n; i++) {
		if (leaves.shape[i] == 1 || leaves.stride[i] == 0)
			continue;
		if (leaves.stride[i] != current)
			continue;
		push_leaf(&result, leaves.shape[i], places[i]);
		current = leaves.stride[i] * leaves.shape[i];
	}
	if (result.n == 0)
		push_leaf(&result, 1, 0);
	leaves_coalesce(&result);
	return leaves_tree(arena, &result);
}

/* Strides divide one another, but leave gaps with a remainder: digits are read by strides. */
static const struct cute *left_inverse_by_strides(struct arena *arena, const struct leaves *sorted,
                                                  const int64_t *places)
{
	struct leaves result = { 0 };

	if (!push_leaf(&result, sorted->stride[0], 0))
		return NULL;
	for (uint32_t i = 0; i < sorted->n; i++) {
		bool is_last = i + 1 == sorted->n;
		int64_t extent = is_last ? sorted->shape[i] : sorted->stride[i + 1] / sorted->stride[i];

		if ((!is_last && sorted->stride[i + 1] % sorted->stride[i] != 0) ||
		    extent < sorted->shape[i] || !push_leaf(&result, extent, places[i]))
			return NULL;
	}
	leaves_coalesce(&result);
	return leaves_tree(arena, &result);
}

/*
 * l with l(a(c)) = c: the right inverse of (a, complement of a), whose strides have no gaps. Where
 * a gap is no multiple of the span below, the complement does not fit, but digits may still be read
 * off by strides.
 */
const struct cute *cute_left_inverse(struct arena *arena, const struct cute *a)
{
	const struct cute *rest = cute_complement(arena, a, 1);
	const struct cute *modes[2] = { a, rest };
	struct leaves leaves, sorted = { 0 };
	int64_t places[CUTE_MAX_LEAVES], place = 1, span = 1;
	bool divides = true;

	if (!rest || cute_n_leaves(a) + cute_n_leaves(rest) > CUTE_MAX_LEAVES)
		return NULL;
	cute_leaves(a, &leaves);
	for (uint32_t i = 0; i < leaves.n; i++) {
		if (leaves.shape[i] > 1) {
			places[sorted.n] = place;
			push_leaf(&sorted, leaves.shape[i], leaves.stride[i]);
		}
		place *= leaves.shape[i];
	}
	leaves_sort(&sorted, places);
	for (uint32_t i = 0; i < sorted.n; i++) {
		if (sorted.stride[i] == 0)
			return NULL;
		divides = divides && sorted.stride[i] % span == 0;
		span = sorted.stride[i] * sorted.shape[i];
	}
	return divides ? cute_right_inverse(arena, cute_tuple(arena, modes, 2))
	               : left_inverse_by_strides(arena, &sorted, places);
}

/* ---- divide ---- */

/* ((tile), (rest)): a after (b, complement of b in a's size). NULL when either does not exist. */
const struct cute *cute_logical_divide(struct arena *arena, const struct cute *a,
                                       const struct cute *b)
{
	const struct cute *rest = cute_complement(arena, b, cute_size(a));
	const struct cute *modes[2] = { b, rest };

	return rest ? cute_compose(arena, a, cute_tuple(arena, modes, 2)) : NULL;
}

/*
 * All tiles in the first mode, all rests in the second; modes without a tiler (NULL, or behind the
 * n-th) are rest alone.
 */
const struct cute *cute_zipped_divide(struct arena *arena, const struct cute *a,
                                      const struct cute *const *tilers, uint32_t n)
{
	const struct cute *tiles[CUTE_MAX_LEAVES], *rests[CUTE_MAX_LEAVES], *halves[2];
	uint32_t rank = cute_rank(a);

	assert(n >= 1 && n <= rank);
	for (uint32_t i = 0; i < rank; i++) {
		const struct cute *mode = cute_mode(a, i), *split;

		rests[i] = mode;
		if (i >= n)
			continue;
		if (!tilers[i]) {
			tiles[i] = cute_leaf(arena, 1, 0);
			continue;
		}
		split = cute_logical_divide(arena, mode, tilers[i]);
		if (!split)
			return NULL;
		tiles[i] = split->modes[0];
		rests[i] = split->modes[1];
	}
	halves[0] = cute_tuple(arena, tiles, n);
	halves[1] = cute_tuple(arena, rests, rank);
	return within_limit(cute_tuple(arena, halves, 2));
}

/* As zipped, with the rests' modes at the top level. */
const struct cute *cute_tiled_divide(struct arena *arena, const struct cute *a,
                                     const struct cute *const *tilers, uint32_t n)
{
	const struct cute *zipped = cute_zipped_divide(arena, a, tilers, n);
	const struct cute *modes[CUTE_MAX_LEAVES + 1];

	if (!zipped)
		return NULL;
	modes[0] = zipped->modes[0];
	memcpy(modes + 1, zipped->modes[1]->modes, zipped->modes[1]->n_modes * sizeof(modes[0]));
	return cute_tuple(arena, modes, 1 + zipped->modes[1]->n_modes);
}

/* ---- product ---- */

/*
 * (a, repetition): a's complement, composed with b, says where the copies of `a` begin. The
 * complement reaches as far as size(a) * cosize(b), so that b finds room.
 */
const struct cute *cute_logical_product(struct arena *arena, const struct cute *a,
                                        const struct cute *b)
{
	const struct cute *rest = cute_complement(arena, a, product(cute_size(a), cute_cosize(b)));
	const struct cute *modes[2] = { a, NULL };

	if (!rest)
		return NULL;
	modes[1] = cute_compose(arena, rest, b);
	return modes[1] ? within_limit(cute_tuple(arena, modes, 2)) : NULL;
}

/* `a` with modes 1:0 behind it up to `rank`. */
static const struct cute *append_modes(struct arena *arena, const struct cute *a, uint32_t rank)
{
	const struct cute *modes[CUTE_MAX_LEAVES];

	for (uint32_t i = 0; i < rank; i++)
		modes[i] = i < cute_rank(a) ? cute_mode(a, i) : cute_leaf(arena, 1, 0);
	return cute_tuple(arena, modes, rank);
}

/*
 * Modes of block and tiler in pairs: (block, tile) repeats blocks, (tile, block) interleaves them,
 * which is "raked". Ranks are made equal with modes 1:0 first.
 */
static const struct cute *mixed_product(struct arena *arena, const struct cute *block,
                                        const struct cute *tiler, bool is_raked)
{
	uint32_t n = cute_rank(block), m = cute_rank(tiler), rank = n > m ? n : m;
	const struct cute *both = cute_logical_product(arena, append_modes(arena, block, rank),
	                                               append_modes(arena, tiler, rank));
	const struct cute *modes[CUTE_MAX_LEAVES];

	if (!both)
		return NULL;
	for (uint32_t i = 0; i < rank; i++) {
		const struct cute *pair[2];

		pair[is_raked] = both->modes[0]->modes[i];
		pair[!is_raked] = both->modes[1]->modes[i];
		modes[i] = cute_tuple(arena, pair, 2);
	}
	return cute_tuple(arena, modes, rank);
}

const struct cute *cute_blocked_product(struct arena *arena, const struct cute *block,
                                        const struct cute *tiler)
{
	return mixed_product(arena, block, tiler, false);
}

const struct cute *cute_raked_product(struct arena *arena, const struct cute *block,
                                      const struct cute *tiler)
{
	return mixed_product(arena, block, tiler, true);
}

/* ---- slice and reshape ---- */

/*
 * coords[i] < 0 keeps mode i. The fixed modes' values add up to *offset; 1:0 when nothing is kept.
 */
const struct cute *cute_slice(struct arena *arena, const struct cute *a, const int64_t *coords,
                              int64_t *offset)
{
	const struct cute *modes[CUTE_MAX_LEAVES];
	uint32_t n = 0;

	*offset = 0;
	for (uint32_t i = 0; i < cute_rank(a); i++) {
		const struct cute *mode = cute_mode(a, i);

		if (coords[i] < 0)
			modes[n++] = mode;
		else
			*offset += cute_at(mode, coords[i]);
	}
	if (n == 0)
		return cute_leaf(arena, 1, 0);
	return n == 1 ? modes[0] : cute_tuple(arena, modes, n);
}

/* NULL when the sizes differ, or the new extents cut leaves in uneven parts. */
const struct cute *cute_reshape(struct arena *arena, const struct cute *a, const int64_t *shape,
                                uint32_t n)
{
	int64_t size = 1;

	for (uint32_t i = 0; i < n; i++)
		size *= shape[i];
	assert(n >= 1);
	return size == cute_size(a) ? cute_compose(arena, a, cute_compact(arena, shape, n)) : NULL;
}
