/* Linear algebra over F2 by Gaussian elimination on machine words. */
#include "analyzer/layout/f2.h"

#include <assert.h>
#include <string.h>

static int leading_bit(uint64_t vector)
{
	return 63 - __builtin_clzll(vector);
}

/* ---- spaces ---- */

uint64_t f2_reduce(const struct f2_space *space, uint64_t vector)
{
	for (uint32_t i = 0; i < space->n; i++)
		if (vector >> leading_bit(space->basis[i]) & 1)
			vector ^= space->basis[i];
	return vector;
}

bool f2_space_add(struct f2_space *space, uint64_t vector)
{
	uint32_t at = space->n;
	int lead;

	vector = f2_reduce(space, vector);
	if (vector == 0)
		return false;
	assert(space->n < F2_MAX_DIM);
	lead = leading_bit(vector);
	for (uint32_t i = 0; i < space->n; i++)
		if (space->basis[i] >> lead & 1)
			space->basis[i] ^= vector;
	for (; at > 0 && space->basis[at - 1] < vector; at--)
		space->basis[at] = space->basis[at - 1];
	space->basis[at] = vector;
	space->n++;
	return true;
}

struct f2_space f2_span(const uint64_t *vectors, uint32_t n)
{
	struct f2_space space = { 0 };

	for (uint32_t i = 0; i < n; i++)
		f2_space_add(&space, vectors[i]);
	return space;
}

bool f2_contains(const struct f2_space *space, uint64_t vector)
{
	return f2_reduce(space, vector) == 0;
}

bool f2_subspace(const struct f2_space *inner, const struct f2_space *outer)
{
	for (uint32_t i = 0; i < inner->n; i++)
		if (!f2_contains(outer, inner->basis[i]))
			return false;
	return true;
}

bool f2_space_equal(const struct f2_space *a, const struct f2_space *b)
{
	return a->n == b->n && memcmp(a->basis, b->basis, a->n * sizeof(a->basis[0])) == 0;
}

struct f2_space f2_sum(const struct f2_space *a, const struct f2_space *b)
{
	struct f2_space sum = *a;

	for (uint32_t i = 0; i < b->n; i++)
		f2_space_add(&sum, b->basis[i]);
	return sum;
}

/* Vectors of b's basis are reduced by a's while their combination is carried along: a combination
 * that reduces to nothing lies in both. */
struct f2_space f2_intersection(const struct f2_space *a, const struct f2_space *b)
{
	struct f2_space result = { 0 };
	uint64_t left[F2_MAX_DIM], from_b[F2_MAX_DIM];
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		uint64_t vector = f2_reduce(a, b->basis[i]), combination = b->basis[i];

		for (uint32_t k = 0; k < n; k++)
			if (vector >> leading_bit(left[k]) & 1) {
				vector ^= left[k];
				combination ^= from_b[k];
			}
		if (vector == 0) {
			f2_space_add(&result, combination);
			continue;
		}
		left[n] = vector;
		from_b[n++] = combination;
	}
	return result;
}

struct f2_space f2_complement(const struct f2_space *space, uint32_t n_bits)
{
	struct f2_space all = *space, result = { 0 };

	for (uint32_t i = 0; i < n_bits; i++)
		if (f2_space_add(&all, (uint64_t)1 << i))
			f2_space_add(&result, (uint64_t)1 << i);
	return result;
}

/* ---- maps ---- */

uint64_t f2_apply(const struct f2_map *map, uint64_t vector)
{
	uint64_t image = 0;

	for (; vector; vector &= vector - 1)
		image ^= map->columns[__builtin_ctzll(vector)];
	return image;
}

struct f2_space f2_image(const struct f2_map *map)
{
	return f2_span(map->columns, map->n_in);
}

uint32_t f2_rank(const struct f2_map *map)
{
	return f2_image(map).n;
}

/* Columns in echelon form together with the inputs that give them; `kernel` may be NULL. */
struct elimination {
	uint32_t n;
	uint64_t images[F2_MAX_DIM], inputs[F2_MAX_DIM];
};

static struct elimination eliminate(const struct f2_map *map, struct f2_space *kernel)
{
	struct elimination e = { 0 };

	for (uint32_t i = 0; i < map->n_in; i++) {
		uint64_t image = map->columns[i], input = (uint64_t)1 << i;

		for (uint32_t k = 0; k < e.n; k++)
			if (image >> leading_bit(e.images[k]) & 1) {
				image ^= e.images[k];
				input ^= e.inputs[k];
			}
		if (image == 0) {
			if (kernel)
				f2_space_add(kernel, input);
			continue;
		}
		e.images[e.n] = image;
		e.inputs[e.n++] = input;
	}
	return e;
}

/* Reduction in the order of elimination: a later vector may carry an earlier one's leading bit only
 * below its own, so one pass is enough when passes repeat until nothing changes. */
static bool solve_by(const struct elimination *e, uint64_t value, uint64_t *x)
{
	bool changed = true;

	*x = 0;
	while (value && changed) {
		changed = false;
		for (uint32_t k = 0; k < e->n; k++)
			if (value && leading_bit(value) == leading_bit(e->images[k])) {
				value ^= e->images[k];
				*x ^= e->inputs[k];
				changed = true;
			}
	}
	return value == 0;
}

struct f2_space f2_kernel(const struct f2_map *map)
{
	struct f2_space kernel = { 0 };

	eliminate(map, &kernel);
	return kernel;
}

struct f2_map f2_compose(const struct f2_map *outer, const struct f2_map *inner)
{
	struct f2_map map = { .n_in = inner->n_in, .n_out = outer->n_out };

	assert(inner->n_out <= outer->n_in);
	for (uint32_t i = 0; i < inner->n_in; i++)
		map.columns[i] = f2_apply(outer, inner->columns[i]);
	return map;
}

bool f2_inverse(const struct f2_map *map, struct f2_map *out)
{
	struct elimination e = eliminate(map, NULL);

	*out = (struct f2_map){ .n_in = map->n_out, .n_out = map->n_in };
	if (map->n_in != map->n_out || e.n != map->n_in)
		return false;
	for (uint32_t i = 0; i < map->n_out; i++)
		if (!solve_by(&e, (uint64_t)1 << i, &out->columns[i]))
			return false;
	return true;
}

bool f2_solve(const struct f2_map *map, uint64_t value, uint64_t *x)
{
	struct elimination e = eliminate(map, NULL);

	return solve_by(&e, value, x);
}
