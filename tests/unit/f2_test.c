/* f2: spaces and maps against enumeration on small dimensions; layouts there and back. */
#include "tests/unit/check.h"

#include "analyzer/layout/f2.h"

#include <string.h>

struct world {
	struct check *check;
	struct arena *arena;
	uint64_t seed;
};

static uint64_t draw(struct world *world, uint64_t n)
{
	return check_random(&world->seed) % n;
}

enum { BITS = 5, N = 1 << BITS };

/* The space as a set: bit v is set when vector v belongs to it. */
static uint64_t members(const uint64_t *vectors, uint32_t n)
{
	uint64_t set = 1;

	for (uint32_t i = 0; i < n; i++)
		for (uint64_t v = 0; v < N; v++)
			if (set >> v & 1 && !(set >> (v ^ vectors[i]) & 1)) {
				set |= (uint64_t)1 << (v ^ vectors[i]);
				v = (uint64_t)-1;
			}
	return set;
}

/* The set of f2_contains. */
static uint64_t space_set(const struct f2_space *space)
{
	uint64_t set = 0;

	for (uint64_t v = 0; v < N; v++)
		if (f2_contains(space, v))
			set |= (uint64_t)1 << v;
	return set;
}

/* All pairs of spaces spanned by up to two vectors, and random ones of up to four. */
static void check_spaces(struct world *world, const uint64_t *a, uint32_t n_a, const uint64_t *b,
                         uint32_t n_b)
{
	struct f2_space x = f2_span(a, n_a), y = f2_span(b, n_b);
	struct f2_space sum = f2_sum(&x, &y), both = f2_intersection(&x, &y);
	struct f2_space rest = f2_complement(&x, BITS), all = f2_sum(&x, &rest);
	struct f2_space none = f2_intersection(&x, &rest);

	CHECK(world->check, space_set(&x) == members(a, n_a));
	CHECK_INT(world->check, __builtin_popcountll(space_set(&x)), (int64_t)1 << x.n);
	CHECK(world->check, space_set(&both) == (space_set(&x) & space_set(&y)));
	CHECK_INT(world->check, x.n + y.n, sum.n + both.n);
	CHECK(world->check, f2_subspace(&x, &sum) && f2_subspace(&both, &y));
	CHECK(world->check, f2_subspace(&x, &y) == ((space_set(&x) & ~space_set(&y)) == 0));
	CHECK(world->check, f2_space_equal(&x, &y) == (space_set(&x) == space_set(&y)));
	CHECK_INT(world->check, all.n, BITS);
	CHECK_INT(world->check, none.n, 0);
}

/*
 * All pairs spanned by two vectors each, and random ones of up to four, against sets: dimension of
 * sums and intersections, complement, containment.
 */
static void test_spaces(struct world *world)
{
	for (uint64_t v = 0; v < N; v++)
		for (uint64_t w = 0; w < N; w++)
			for (uint64_t u = 0; u < N; u += 3)
				check_spaces(world, (const uint64_t[]){ v, w }, 2, (const uint64_t[]){ u, w ^ v },
				             2);
	for (int i = 0; i < 2000; i++) {
		uint64_t a[4], b[4];

		for (int k = 0; k < 4; k++) {
			a[k] = draw(world, N);
			b[k] = draw(world, N);
		}
		check_spaces(world, a, (uint32_t)draw(world, 5), b, (uint32_t)draw(world, 5));
	}
}

/* Kernel, image, solution and inverse of a map against all vectors. */
static void check_map(struct world *world, const struct f2_map *map)
{
	struct f2_space kernel = f2_kernel(map), image = f2_image(map);
	struct f2_map inverse;
	uint64_t hit = 0;

	CHECK_INT(world->check, kernel.n + f2_rank(map), map->n_in);
	for (uint64_t x = 0; x >> map->n_in == 0; x++) {
		hit |= (uint64_t)1 << f2_apply(map, x);
		CHECK(world->check, f2_contains(&kernel, x) == (f2_apply(map, x) == 0));
	}
	for (uint64_t value = 0; value >> map->n_out == 0; value++) {
		uint64_t x;
		bool solved = f2_solve(map, value, &x);

		CHECK(world->check, solved == (hit >> value & 1));
		CHECK(world->check, f2_contains(&image, value) == (hit >> value & 1));
		if (solved)
			CHECK_INT(world->check, (int64_t)f2_apply(map, x), (int64_t)value);
	}
	if (f2_inverse(map, &inverse)) {
		struct f2_map both = f2_compose(&inverse, map);

		for (uint32_t i = 0; i < map->n_in; i++)
			CHECK_INT(world->check, (int64_t)both.columns[i], (int64_t)1 << i);
	} else {
		CHECK(world->check, map->n_in != map->n_out || kernel.n > 0);
	}
}

/* All matrices of 3 x 3, and random ones that are not square. */
static void test_maps(struct world *world)
{
	/* All 512 matrices of 3 x 3. */
	for (uint64_t m = 0; m < 512; m++)
		check_map(world, &(struct f2_map){ 3, 3, { m & 7, m >> 3 & 7, m >> 6 & 7 } });
	for (int i = 0; i < 500; i++) {
		struct f2_map map = { .n_in = 1 + (uint32_t)draw(world, 6),
			                  .n_out = 1 + (uint32_t)draw(world, 5) };

		for (uint32_t k = 0; k < map.n_in; k++)
			map.columns[k] = draw(world, (uint64_t)1 << map.n_out);
		check_map(world, &map);
	}
}

/* ---- layouts ---- */

/* A layout of powers of two becomes a matrix and comes back without a table; others do not. */
static void check_layout(struct world *world, const struct layout *layout, bool is_linear)
{
	struct f2_map map;
	uint32_t n_thread_bits;
	const struct layout *back;

	if (!CHECK(world->check, f2_from_layout(layout, &map, &n_thread_bits) == is_linear) ||
	    !is_linear)
		return;
	back = layout->kind == LAYOUT_MEMORY
	           ? f2_to_memory(world->arena, layout->shape, layout->rank, layout->elem_bits, &map)
	           : f2_to_fragment(world->arena, layout->shape, layout->rank, &map, n_thread_bits);
	CHECK(world->check, back && layout_equal(layout, back, NULL));
	CHECK(world->check, back && !back->table);
}

/* Random invertible matrices with distinct leading bits come back as digits and XOR terms. */
static void test_matrices_to_layouts(struct world *world)
{
	const int64_t shape[] = { 8, 16 };

	for (int i = 0; i < 500; i++) {
		struct f2_map map = { .n_in = 7, .n_out = 8 };
		const struct layout *layout;
		int64_t index[MAX_RANK] = { 0 };
		uint64_t x = 0, n_xors = draw(world, 5);

		for (uint32_t k = 0; k < 7; k++)
			map.columns[k] = (uint64_t)2 << k;
		for (uint32_t k = 7; k > 1; k--) {
			uint32_t other = (uint32_t)draw(world, k);
			uint64_t t = map.columns[other];

			map.columns[other] = map.columns[k - 1];
			map.columns[k - 1] = t;
		}
		for (uint64_t k = 0; k < n_xors; k++) {
			uint32_t a = (uint32_t)draw(world, 7), b = (uint32_t)draw(world, 7);

			if (map.columns[a] > map.columns[b])
				map.columns[a] ^= map.columns[b] & -map.columns[b];
		}
		layout = f2_to_memory(world->arena, shape, 2, 16, &map);
		do
			CHECK_INT(world->check, layout_at(layout, index, 0).offset,
			          (int64_t)f2_apply(&map, x++));
		while (layout_next_index(layout, index));
		CHECK(world->check, !layout->table || n_xors > 3);
	}
}

/* Row-major, swizzled, fragments and replicas of powers of two; odd extents are not linear. */
static void test_layouts(struct world *world)
{
	const int64_t shape[] = { 32, 64 }, odd[] = { 24, 64 };

	check_layout(world, layout_row_major(world->arena, 2, shape, 16, 0), true);
	check_layout(world, layout_row_major(world->arena, 2, shape, 16, 16), false);
	check_layout(world, layout_row_major(world->arena, 2, odd, 16, 0), false);
	check_layout(world, layout_swizzled(world->arena, 2, shape, 16, 128), true);
	check_layout(world, layout_swizzled(world->arena, 2, shape, 16, 64), true);
	check_layout(world, layout_swizzled(world->arena, 2, shape, 8, 32), true);
	check_layout(world, layout_mma_accumulator(world->arena, 64, 32, 2, 2), true);
	check_layout(
		world,
		layout_reduce(world->arena, layout_mma_accumulator(world->arena, 64, 32, 2, 2), 1, false),
		true);
}

int main(void)
{
	struct check check = { 0 };
	struct world world = { .check = &check, .arena = arena_open(), .seed = 3 };

	test_spaces(&world);
	test_maps(&world);
	test_layouts(&world);
	test_matrices_to_layouts(&world);
	arena_close(world.arena);
	return check_end(&check);
}
