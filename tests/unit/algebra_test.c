/*
 * algebra: CuTe's operations against their definitions, by value, on all small layouts; text;
 * conversions to and from digits.
 *
 * `algebra_test --lines` reads operations from standard input and prints their results, one a line,
 * for comparison with other implementations (tests/outside/cute_compare.py).
 */
#include "tests/unit/check.h"

#include "analyzer/layout/algebra.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct world {
	struct check *check;
	struct cx cx;
	uint64_t seed;
};

static int64_t draw(struct world *world, int64_t n)
{
	return (int64_t)(check_random(&world->seed) % (uint64_t)n);
}

static const char *text_of(struct world *world, const struct cute *a)
{
	struct buf buf = { 0 };
	const char *text;

	cute_print(&buf, a);
	text = arena_strndup(world->cx.arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

static bool read_composed(struct world *world, const char *text, struct cute_composed *out)
{
	uint32_t file = source_add(world->cx.arena, &world->cx.sources, "text", str_of(text));
	uint32_t position = 0;

	return cute_parse(&world->cx, file, &position, out) && position == strlen(text);
}

/* A layout from its text; 1:0 after a failed check. */
static const struct cute *tree(struct world *world, const char *text)
{
	struct cute_composed a;

	return CHECK(world->check, read_composed(world, text, &a)) ? a.layout
	                                                           : cute_leaf(world->cx.arena, 1, 0);
}

/* ---- all small layouts ---- */

enum { MAX_SMALL = 2400 };

/* All layouts that the exhaustive tests run over. */
struct small {
	uint32_t n;
	const struct cute *p[MAX_SMALL];
};

/* One and two modes, extents 1 .. 4, strides 0 .. 8, and a few nested ones. */
static void small_layouts(struct world *world, int64_t max_stride, struct small *out)
{
	struct arena *arena = world->cx.arena;

	for (int64_t s = 1; s <= 6; s++)
		for (int64_t d = 0; d <= max_stride; d++)
			out->p[out->n++] = cute_leaf(arena, s, d);
	for (int64_t s = 1; s <= 4; s++)
		for (int64_t t = 1; t <= 4; t++)
			for (int64_t d = 0; d <= max_stride; d++)
				for (int64_t e = 0; e <= max_stride; e++) {
					const struct cute *modes[2] = { cute_leaf(arena, s, d),
						                            cute_leaf(arena, t, e) };

					out->p[out->n++] = cute_tuple(arena, modes, 2);
				}
	out->p[out->n++] = tree(world, "((2,2),3):((1,6),2)");
	out->p[out->n++] = tree(world, "(2,(2,2),2):(8,(1,4),2)");
	out->p[out->n++] = tree(world, "((2,3),(3,2)):((9,3),(1,18))");
}

/* The same values, and nothing left to join. */
static void check_coalesce(struct world *world, const struct cute *a)
{
	const struct cute *c = cute_coalesce(world->cx.arena, a);

	CHECK_INT(world->check, cute_size(c), cute_size(a));
	for (int64_t i = 0; i < cute_size(a); i++)
		CHECK_INT(world->check, cute_at(c, i), cute_at(a, i));
	CHECK(world->check, cute_equal(a, c));
	CHECK(world->check, cute_same(c, cute_coalesce(world->cx.arena, c)));
}

/* By comparing all pairs. */
static bool injective_by_hand(const struct cute *a)
{
	for (int64_t i = 0; i < cute_size(a); i++)
		for (int64_t k = 0; k < i; k++)
			if (cute_at(a, i) == cute_at(a, k))
				return false;
	return true;
}

/* By trying all coordinates. */
static bool has_value(const struct cute *a, int64_t value)
{
	for (int64_t i = 0; i < cute_size(a); i++)
		if (cute_at(a, i) == value)
			return true;
	return false;
}

/* Of the leaves with stride at least `from`, the lowest stride. */
static int64_t least_stride(const struct cute *a, int64_t from, int64_t *extent)
{
	int64_t least = 0;

	if (a->n_modes == 0) {
		if (a->shape == 1 || a->stride < from)
			return 0;
		*extent = a->shape;
		return a->stride;
	}
	for (uint32_t i = 0; i < a->n_modes; i++) {
		int64_t e = 0, stride = least_stride(a->modes[i], from, &e);

		if (e > 0 && (least == 0 || stride < least)) {
			least = stride;
			*extent = e;
		}
	}
	return least;
}

/* Sorted by stride, each stride is a multiple of the span below it. */
static bool gaps_divide(const struct cute *a)
{
	int64_t span = 1;

	for (;;) {
		int64_t extent = 0, stride = least_stride(a, span, &extent);

		if (extent == 0)
			return true;
		if (stride % span != 0)
			return false;
		span = stride * extent;
	}
}

/* (a, complement) takes every value below the rounded-up size once; none when a overlaps itself. */
static void check_complement(struct world *world, const struct cute *a)
{
	const struct cute *rest = cute_complement(world->cx.arena, a, 24);

	if (!rest)
		return;
	for (int64_t i = 1; i < cute_size(rest); i++) {
		CHECK(world->check, cute_at(rest, i) > cute_at(rest, i - 1));
		CHECK(world->check, !has_value(a, cute_at(rest, i)));
	}
	if (injective_by_hand(a) && gaps_divide(a)) {
		const struct cute *pair[2] = { a, rest };
		const struct cute *both = cute_tuple(world->cx.arena, pair, 2);

		CHECK(world->check, injective_by_hand(both));
		CHECK_INT(world->check, cute_cosize(both), cute_size(both));
		CHECK(world->check, cute_covers(both, 24));
	}
}

/*
 * By their definitions: a(right(i)) = i as far as right goes; left(a(i)) = i for all of a, which
 * then is injective.
 */
static void check_inverses(struct world *world, const struct cute *a)
{
	const struct cute *right = cute_right_inverse(world->cx.arena, a);
	const struct cute *left = cute_left_inverse(world->cx.arena, a);

	for (int64_t i = 0; i < cute_size(right); i++)
		CHECK_INT(world->check, cute_at(a, cute_at(right, i)), i);
	if (!left)
		return;
	CHECK(world->check, injective_by_hand(a));
	for (int64_t i = 0; i < cute_size(a); i++)
		CHECK_INT(world->check, cute_at(left, cute_at(a, i)), i);
}

/* Every small layout through each operation of one, and its text read back. */
static void test_unary(struct world *world)
{
	struct small *all = arena_new(world->cx.arena, struct small);

	small_layouts(world, 8, all);
	for (uint32_t i = 0; i < all->n; i++) {
		struct cute_composed back;

		check_coalesce(world, all->p[i]);
		check_complement(world, all->p[i]);
		check_inverses(world, all->p[i]);
		CHECK(world->check, cute_injective(all->p[i]) == injective_by_hand(all->p[i]));
		CHECK(world->check, read_composed(world, text_of(world, all->p[i]), &back) &&
		                        cute_same(back.layout, all->p[i]));
	}
}

/* No two leaves of b add up to a third's step: what composing them one by one needs. */
static bool sums_stay_apart(struct world *world, const struct cute *b)
{
	return gaps_divide(b) && cute_complement(world->cx.arena, b, 1) != NULL;
}

/* Divisibility as the composition needs it, leaf by leaf, from the definition: the values of b's
 * leaf, seen through a, are those of a layout whose modes end where a's modes end. */
static void check_compose(struct world *world, const struct cute *a, const struct cute *b)
{
	const struct cute *r = cute_compose(world->cx.arena, a, b);

	if (!r)
		return;
	CHECK_INT(world->check, cute_size(r), cute_size(b));
	CHECK_INT(world->check, cute_rank(r) >= cute_rank(b), 1);
	/* Beyond a's size its values are not kept by coalescing. */
	for (int64_t i = 0;
	     i < cute_size(b) && cute_cosize(b) <= cute_size(a) && sums_stay_apart(world, b); i++)
		if (!CHECK_INT(world->check, cute_at(r, i), cute_at(a, cute_at(b, i)))) {
			printf("%s o %s gave %s\n", text_of(world, a), text_of(world, b), text_of(world, r));
			break;
		}
}

/*
 * The first mode of a quotient is a after b; that of a product is a itself, and the product of two
 * injective layouts is injective.
 */
static void check_divide_and_product(struct world *world, const struct cute *a,
                                     const struct cute *b)
{
	const struct cute *divided = cute_logical_divide(world->cx.arena, a, b);
	const struct cute *product = cute_logical_product(world->cx.arena, a, b);

	if (divided) {
		CHECK_INT(world->check, cute_size(divided->modes[0]), cute_size(b));
		for (int64_t i = 0;
		     i < cute_size(b) && cute_cosize(b) <= cute_size(a) && sums_stay_apart(world, b); i++)
			CHECK_INT(world->check, cute_at(divided->modes[0], i), cute_at(a, cute_at(b, i)));
	}
	if (product) {
		CHECK(world->check, cute_same(product->modes[0], a));
		CHECK_INT(world->check, cute_size(product), cute_size(a) * cute_size(b));
		if (sums_stay_apart(world, a) && injective_by_hand(a) && sums_stay_apart(world, b) &&
		    injective_by_hand(b))
			CHECK(world->check, injective_by_hand(product));
	}
}

/*
 * All pairs of small layouts; a quarter of them at least must compose, so that the checks above are
 * not idle.
 */
static void test_binary(struct world *world)
{
	struct small *all = arena_new(world->cx.arena, struct small);
	uint32_t n_defined = 0;

	small_layouts(world, 4, all);
	for (uint32_t i = 0; i < all->n; i++)
		for (uint32_t k = 0; k < all->n; k++) {
			struct arena_mark mark = arena_mark(world->cx.arena);

			check_compose(world, all->p[i], all->p[k]);
			n_defined += cute_compose(world->cx.arena, all->p[i], all->p[k]) != NULL;
			if (k % 7 == i % 7)
				check_divide_and_product(world, all->p[i], all->p[k]);
			arena_release(world->cx.arena, mark);
		}
	CHECK(world->check, n_defined > all->n * all->n / 4);
}

/* ---- known results: the examples of CuTe's documentation ---- */

/*
 * Results that CUTLASS's documentation prints (media/docs/cpp/cute/02_layout_algebra), and slices
 * and reshapes by hand.
 */
static void test_known(struct world *world)
{
	struct arena *arena = world->cx.arena;
	const struct cute *tilers[2];
	int64_t offset;

#define IS(result, text) CHECK_TEXT(world->check, text_of(world, result), text)
	IS(cute_coalesce(arena, tree(world, "(2,(1,6)):(1,(6,2))")), "12:1");
	IS(cute_compose(arena, tree(world, "(6,2):(8,2)"), tree(world, "(4,3):(3,1)")),
	   "((2,2),3):((24,2),8)");
	IS(cute_compose(arena, tree(world, "20:2"), tree(world, "(5,4):(4,1)")), "(5,4):(8,2)");
	IS(cute_compose(arena, tree(world, "(10,2):(16,4)"), tree(world, "(5,4):(1,5)")),
	   "(5,(2,2)):(16,(80,4))");
	IS(cute_compose(arena, tree(world, "(4,2,8):(3,12,97)"), tree(world, "3:3")), "3:9");
	CHECK(world->check, !cute_compose(arena, tree(world, "(4,6,8):(2,3,5)"), tree(world, "6:3")));
	IS(cute_complement(arena, tree(world, "4:1"), 24), "6:4");
	IS(cute_complement(arena, tree(world, "6:4"), 24), "4:1");
	IS(cute_complement(arena, tree(world, "(2,4):(1,6)"), 24), "3:2");
	IS(cute_complement(arena, tree(world, "(2,2):(1,6)"), 24), "(3,2):(2,12)");
	IS(cute_logical_divide(arena, tree(world, "(4,2,3):(2,1,8)"), tree(world, "4:2")),
	   "((2,2),(2,3)):((4,1),(2,8))");
	tilers[0] = tree(world, "3:3");
	tilers[1] = tree(world, "(2,4):(1,8)");
	IS(cute_zipped_divide(arena, tree(world, "(9,(4,8)):(59,(13,1))"), tilers, 2),
	   "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))");
	IS(cute_tiled_divide(arena, tree(world, "(9,(4,8)):(59,(13,1))"), tilers, 2),
	   "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))");
	IS(cute_logical_product(arena, tree(world, "(2,2):(4,1)"), tree(world, "6:1")),
	   "((2,2),(2,3)):((4,1),(2,8))");
	IS(cute_blocked_product(arena, tree(world, "(2,5):(5,1)"), tree(world, "(3,4):(1,3)")),
	   "((2,3),(5,4)):((5,10),(1,30))");
	IS(cute_raked_product(arena, tree(world, "(2,5):(5,1)"), tree(world, "(3,4):(1,3)")),
	   "((3,2),(4,5)):((10,5),(30,1))");
	IS(cute_slice(arena, tree(world, "(4,(2,3),5):(1,(4,8),24)"), (const int64_t[]){ -1, 3, -1 },
	              &offset),
	   "(4,5):(1,24)");
	CHECK_INT(world->check, offset, 12);
	IS(cute_reshape(arena, tree(world, "(4,6):(6,1)"), (const int64_t[]){ 2, 2, 6 }, 3),
	   "(2,2,6):(6,12,1)");
	CHECK(world->check,
	      !cute_reshape(arena, tree(world, "(4,6):(6,1)"), (const int64_t[]){ 3, 8 }, 2));
#undef IS
	CHECK(world->check, cute_contained(tree(world, "4:2"), tree(world, "8:1")));
	CHECK(world->check, !cute_contained(tree(world, "4:3"), tree(world, "8:1")));
	CHECK(world->check, cute_covers(tree(world, "(2,4):(4,1)"), 8));
	CHECK(world->check, !cute_covers(tree(world, "(2,4):(5,1)"), 8));
}

/* ---- text that is not a layout ---- */

/*
 * Refused texts; then a swizzle against its formula, bit by bit, and CuTe's own way to print static
 * numbers.
 */
static void test_bad_text(struct world *world)
{
	static const char *const texts[] = { "",
		                                 "(",
		                                 "(2,4",
		                                 "(2,4):(1",
		                                 "(2,4):1",
		                                 "2:(1,2)",
		                                 "0:1",
		                                 "(2,,4):(1,1,1)",
		                                 "Sw<3,4>",
		                                 "Sw<3,4,1> o 8:1",
		                                 "Sw<3,4,3> 8:1",
		                                 "99999999999",
		                                 "(65536,65536)" };
	struct cute_composed a;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!CHECK(world->check, !read_composed(world, texts[i], &a)))
			printf("was read: %s\n", texts[i]);
	CHECK(world->check, read_composed(world, "Sw<3,4,3> o (8,64):(64,1)", &a));
	CHECK_INT(world->check, a.swizzle.bits, 3);
	for (int64_t x = 0; x < 1024; x++)
		CHECK_INT(world->check, cute_swizzle_at(a.swizzle, x), x ^ ((x & (7 << 7)) >> 3));
	CHECK(world->check, read_composed(world, "(_8,_4):(_1,_8)", &a));
}

/* ---- digits ---- */

/* The CuTe layout's value at every coordinate is the digits' offset; and back again. */
static void check_memory(struct world *world, const struct layout *layout)
{
	struct cute_composed a;
	const struct layout *back;
	int64_t index[MAX_RANK] = { 0 };

	if (!CHECK(world->check, cute_from_memory(world->cx.arena, layout, &a)))
		return;
	do {
		int64_t coordinate = 0, scale = 1;

		for (uint32_t d = 0; d < layout->rank; d++) {
			coordinate += index[d] * scale;
			scale *= layout->shape[d];
		}
		CHECK_INT(world->check, cute_composed_at(&a, coordinate) * layout->elem_bits / 8,
		          layout_at(layout, index, 0).offset);
	} while (layout_next_index(layout, index));
	back = cute_to_memory(world->cx.arena, &a, layout->elem_bits);
	CHECK(world->check, back && layout_equal(layout, back, NULL));
}

/*
 * The CuTe layout at (thread, value) is the element's number, column-major, for each replica; and
 * back.
 */
static void check_fragment(struct world *world, const struct layout *layout)
{
	const struct cute *a = cute_from_fragment(world->cx.arena, layout);
	const struct layout *back;
	int64_t index[MAX_RANK] = { 0 };

	if (!CHECK(world->check, a != NULL))
		return;
	do
		for (int64_t r = 0; r < layout->n_replicas; r++) {
			struct place place = layout_at(layout, index, r);
			int64_t elem = 0, scale = 1;

			for (uint32_t d = 0; d < layout->rank; d++) {
				elem += index[d] * scale;
				scale *= layout->shape[d];
			}
			CHECK_INT(world->check, cute_at(a, place.thread + place.slot * layout->n_threads),
			          elem);
		}
	while (layout_next_index(layout, index));
	back = cute_to_fragment(world->cx.arena, a, layout->shape, layout->rank);
	CHECK(world->check, back && layout_equal(layout, back, NULL));
}

/* Row-major, padded, swizzled; accumulators, with replicas; and random strides, zero among them. */
static void test_digits(struct world *world)
{
	struct arena *arena = world->cx.arena;
	const int64_t shape[] = { 16, 64 }, odd[] = { 12, 40 };

	check_memory(world, layout_row_major(arena, 2, shape, 16, 0));
	check_memory(world, layout_row_major(arena, 2, odd, 32, 16));
	check_memory(world, layout_swizzled(arena, 2, shape, 16, 128));
	check_memory(world, layout_swizzled(arena, 2, shape, 16, 64));
	check_memory(world, layout_swizzled(arena, 2, shape, 32, 32));
	check_fragment(world, layout_mma_accumulator(arena, 64, 32, 2, 2));
	check_fragment(world,
	               layout_reduce(arena, layout_mma_accumulator(arena, 32, 16, 2, 1), 1, false));
	for (int i = 0; i < 200; i++) {
		const struct cute *modes[2] = {
			cute_leaf(arena, 1 + draw(world, 5), draw(world, 7)),
			cute_leaf(arena, 1 + draw(world, 5), draw(world, 7)),
		};
		struct cute_composed a = { { 0 }, cute_tuple(arena, modes, 2) };
		const struct layout *layout = cute_to_memory(arena, &a, 32);

		if (CHECK(world->check, layout != NULL))
			check_memory(world, layout);
	}
}

/* ---- results for other programs ---- */

enum { MAX_WORDS = 8 };

/* NULL for an operation that is not known, or has no result. */
static const struct cute *apply_operation(struct world *world, const char *op,
                                          const struct cute *const *a, uint32_t n, int64_t number)
{
	struct arena *arena = world->cx.arena;

	if (strcmp(op, "coalesce") == 0)
		return cute_coalesce(arena, a[0]);
	if (strcmp(op, "complement") == 0)
		return cute_complement(arena, a[0], number);
	if (strcmp(op, "right_inverse") == 0)
		return cute_right_inverse(arena, a[0]);
	if (strcmp(op, "left_inverse") == 0)
		return cute_left_inverse(arena, a[0]);
	if (strcmp(op, "zipped_divide") == 0)
		return cute_zipped_divide(arena, a[0], a + 1, n - 1);
	if (strcmp(op, "tiled_divide") == 0)
		return cute_tiled_divide(arena, a[0], a + 1, n - 1);
	if (strcmp(op, "compose") == 0)
		return cute_compose(arena, a[0], a[1]);
	if (strcmp(op, "logical_divide") == 0)
		return cute_logical_divide(arena, a[0], a[1]);
	if (strcmp(op, "logical_product") == 0)
		return cute_logical_product(arena, a[0], a[1]);
	if (strcmp(op, "blocked_product") == 0)
		return cute_blocked_product(arena, a[0], a[1]);
	return strcmp(op, "raked_product") == 0 ? cute_raked_product(arena, a[0], a[1]) : NULL;
}

/* A line is an operation, layouts, and for complement a size, separated by blanks. */
static void answer_lines(struct world *world)
{
	char line[1024];

	while (fgets(line, sizeof(line), stdin)) {
		struct arena_mark mark = arena_mark(world->cx.arena);
		const struct cute *args[MAX_WORDS];
		char *rest = line, *op = strtok_r(line, " \n", &rest), *word;
		const struct cute *result;
		int64_t number = 0;
		uint32_t n = 0;

		while ((word = strtok_r(NULL, " \n", &rest)) && n < MAX_WORDS)
			if (strchr(word, ':'))
				args[n++] = tree(world, word);
			else
				number = strtoll(word, NULL, 10);
		result = op && n > 0 ? apply_operation(world, op, args, n, number) : NULL;
		puts(result ? text_of(world, result) : "undefined");
		world->cx.sources.sources.n = 0;
		arena_release(world->cx.arena, mark);
		world->cx.sources.sources.cap = 0;
	}
}

int main(int argc, char **argv)
{
	struct check check = { 0 };
	struct world world = { .check = &check, .seed = 1 };
	struct arena *arena = arena_open();

	cx_init(&world.cx, arena);
	if (argc > 1 && strcmp(argv[1], "--lines") == 0) {
		answer_lines(&world);
		arena_close(arena);
		return check.n_failed > 0;
	}
	test_known(&world);
	test_bad_text(&world);
	test_unary(&world);
	test_binary(&world);
	test_digits(&world);
	arena_close(arena);
	return check_end(&check);
}
