/* layout: every operation against brute force on small shapes, and known instruction layouts
 * against their formulas. */
#include "tests/unit/check.h"

#include "analyzer/layout/layout.h"

#include <stdlib.h>

struct world {
	struct check *check;
	struct cx cx;
	struct expr_pool *pool;
	uint64_t seed;
};

static int64_t draw(struct world *world, int64_t n)
{
	return (int64_t)(check_random(&world->seed) % (uint64_t)n);
}

/* In the arena. */
static const char *text_of(struct world *world, const struct layout *layout)
{
	struct buf buf = { 0 };
	const char *text;

	layout_print(&buf, layout);
	text = arena_strndup(world->cx.arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

/* NULL when it is no layout; a text that is one must be read to its end. */
static struct layout *read_text(struct world *world, const char *text)
{
	uint32_t file = source_add(world->cx.arena, &world->cx.sources, "text", str_of(text));
	uint32_t position = 0;
	struct layout *layout = layout_parse(&world->cx, file, &position);

	CHECK(world->check, !layout || position == strlen(text));
	return layout;
}

/* Printing and reading gives the same layout, with the same derived sizes. */
static void check_round_trip(struct world *world, const struct layout *layout)
{
	const char *text = text_of(world, layout);
	struct layout *back = read_text(world, text);

	if (!CHECK(world->check, back != NULL))
		return;
	CHECK_TEXT(world->check, text_of(world, back), text);
	CHECK(world->check, layout_equal(layout, back, NULL));
	CHECK_INT(world->check, back->n_bytes, layout->n_bytes);
	CHECK_INT(world->check, back->n_threads, layout->n_threads);
	CHECK_INT(world->check, back->n_slots, layout->n_slots);
	CHECK_INT(world->check, back->n_replicas, layout->n_replicas);
}

/* ---- the inverse ---- */

/* For every (thread, slot) of a block: the inverse names an element exactly where some replica of
 * it lives. */
static void check_inverse(struct world *world, const struct layout *layout, int64_t block_threads)
{
	struct expr_pool *pool = world->pool;
	struct var *tid = expr_new_var(pool, VAR_THREAD, intern_text(world->cx.names, "t"), DTYPE_I32);
	struct var *slot = expr_new_var(pool, VAR_LOOP, intern_text(world->cx.names, "s"), DTYPE_I32);
	const struct thread_slot at_place = { expr_of_var(pool, tid), expr_of_var(pool, slot) };
	const struct expr *index[MAX_RANK], *guard, *replica;
	int64_t *values;
	int64_t n_held = 0, n_listed = layout->n_replicas;

	tid->min = slot->min = 0;
	tid->max = block_threads - 1;
	slot->max = layout->n_slots - 1;
	if (!CHECK(world->check, layout_inverse_expr(pool, layout, at_place, index, &guard)))
		return;
	replica = layout_replica_expr(pool, layout, expr_of_var(pool, tid));
	CHECK(world->check, (replica != NULL) == (layout->n_replicas > 1));
	values = calloc(expr_n_vars(pool), sizeof(*values));
	for (int64_t t = 0; t < block_threads; t++)
		for (int64_t s = 0; s < layout->n_slots; s++) {
			int64_t at[MAX_RANK] = { 0 };
			struct place place;
			bool ok = true;

			values[tid->id] = t;
			values[slot->id] = s;
			if (guard && !expr_eval_int(guard, values))
				continue;
			n_held++;
			for (uint32_t d = 0; d < layout->rank; d++) {
				at[d] = expr_eval_int(index[d], values);
				ok &= at[d] >= 0 && at[d] < layout->shape[d];
			}
			if (!CHECK(world->check, ok))
				break;
			place = layout_at(layout, at, replica ? expr_eval_int(replica, values) : 0);
			CHECK(world->check, place.thread == t && place.slot == s);
		}
	for (uint32_t d = 0; d < layout->rank; d++)
		n_listed *= layout->shape[d];
	CHECK_INT(world->check, n_held, n_listed);
	free(values);
}

/* A random fragment whose dimensions are cut into digits that go to threads or slots, some padded,
 * some with replicas. */
static struct layout *random_fragment(struct world *world)
{
	uint32_t rank = 1 + (uint32_t)draw(world, 3);
	int64_t shape[MAX_RANK], stride[N_LAYOUT_AXES] = { 1, 1, 1 };
	struct layout *layout;

	for (uint32_t d = 0; d < rank; d++)
		shape[d] = 1 + draw(world, 14);
	layout = layout_new_fragment(world->cx.arena, rank, shape);
	for (uint32_t d = 0; d < rank; d++)
		for (int64_t div = 1; div < shape[d];) {
			enum layout_axis axis = draw(world, 2) ? AXIS_THREAD : AXIS_SLOT;
			int64_t extent = 2 + draw(world, 4);

			layout_add_digit(layout, (struct digit){ (int)d, div, extent, axis, stride[axis] });
			stride[axis] *= extent;
			div *= extent;
		}
	if (draw(world, 3) == 0)
		layout_add_digit(layout, (struct digit){ DIM_REPLICA, 1, 2 + draw(world, 3), AXIS_THREAD,
		                                         stride[AXIS_THREAD] });
	layout_finish(layout);
	return layout;
}

/*
 * Three hundred of random_fragment: inverses, texts, and injectivity, which holds by construction.
 */
static void test_random_fragments(struct world *world)
{
	for (int n = 0; n < 300; n++) {
		struct layout *layout = random_fragment(world);

		check_inverse(world, layout, layout->n_threads + draw(world, 5));
		check_round_trip(world, layout);
		CHECK(world->check, layout_injective(layout, NULL, NULL));
	}
}

/*
 * A fragment whose last slot is half empty: the inverse is the formula that a person would write,
 * guarded where no element is; threads beyond the layout's hold nothing.
 */
static void test_padded_inverse(struct world *world)
{
	struct expr_pool *pool = world->pool;
	struct layout *layout = read_text(world, "fragment (229) thread = i%128, slot = i/128");
	struct var *tid =
		expr_new_var(pool, VAR_THREAD, intern_text(world->cx.names, "tid"), DTYPE_I32);
	struct var *slot =
		expr_new_var(pool, VAR_LOOP, intern_text(world->cx.names, "slot"), DTYPE_I32);
	const struct thread_slot at_place = { expr_of_var(pool, tid), expr_of_var(pool, slot) };
	const struct expr *index[MAX_RANK], *guard;

	tid->min = slot->min = 0;
	tid->max = 127;
	slot->max = 1;
	CHECK_INT(world->check, layout->n_slots, 2);
	CHECK(world->check, layout_inverse_expr(pool, layout, at_place, index, &guard));
	CHECK(world->check, index[0] == expr_add(pool, expr_of_var(pool, tid),
	                                         expr_mul_int(pool, expr_of_var(pool, slot), 128)));
	CHECK(world->check, guard == expr_lt(pool, index[0], expr_int(pool, 229)));
	CHECK(world->check, !layout_covers_places(layout));
	check_inverse(world, layout, 128);
	check_inverse(world, layout, 256);
}

/* ---- instruction layouts ---- */

/* Two accumulators of one tile, as printed in a bug report against another compiler: 4 x 2 warps,
   and 8 warps along the columns of the transposed tile. */
static void test_accumulators(struct world *world)
{
	struct layout *scores = layout_mma_accumulator(world->cx.arena, 64, 128, 4, 2);
	struct layout *transposed = layout_mma_accumulator(world->cx.arena, 128, 64, 8, 1);
	struct layout *cast = layout_project(
		world->cx.arena, transposed, 2, (const struct projection[]){ { 1, 1, 64 }, { 0, 1, 128 } });
	int64_t first[MAX_RANK], n_other_thread = 0, index[MAX_RANK] = { 0 };

	do {
		int64_t i = index[0], j = index[1];
		struct place a = layout_at(scores, index, 0), b = layout_at(cast, index, 0);

		CHECK_INT(world->check, a.thread,
		          (j / 64) * 128 + (i / 16) * 32 + (i % 8) * 4 + (j % 8) / 2);
		CHECK_INT(world->check, a.slot, ((j % 64) / 8) * 4 + ((i % 16) / 8) * 2 + j % 2);
		CHECK_INT(world->check, b.thread, (j / 16) * 32 + (j % 8) * 4 + (i % 8) / 2);
		CHECK_INT(world->check, b.slot, (i / 8) * 4 + ((j % 16) / 8) * 2 + i % 2);
		n_other_thread += a.thread != b.thread;
	} while (layout_next_index(scores, index));
	CHECK(world->check, !layout_equal(scores, cast, first));
	CHECK(world->check, first[0] == 0 && first[1] == 1);
	CHECK_INT(world->check, layout_count_differences(scores, cast), 8064);
	CHECK_INT(world->check, n_other_thread, 7936);
	CHECK(world->check, layout_covers_places(scores) && layout_injective(scores, NULL, NULL));
	CHECK_INT(world->check, scores->n_threads, 256);
	CHECK_INT(world->check, scores->n_slots, 32);
	check_inverse(world, scores, 256);
	check_inverse(world, cast, 256);
	check_inverse(world, layout_mma_accumulator(world->cx.arena, 48, 40, 3, 5), 480);
	check_round_trip(world, scores);
}

/* Offset of the header's definition, element by element. */
static void check_swizzle(struct world *world, int64_t rows, int64_t cols, int64_t span)
{
	struct layout *layout =
		layout_swizzled(world->cx.arena, 2, (const int64_t[]){ rows, cols }, 16, span);
	char kind[16];

	if (!CHECK(world->check, layout != NULL))
		return;
	snprintf(kind, sizeof(kind), "swizzle%d", (int)span);
	CHECK_TEXT(world->check, layout_kind_text(layout), kind);
	CHECK_INT(world->check, layout->n_bytes, rows * cols * 2);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < cols; c++) {
			int64_t byte = c * 2 % span, chunk = byte / 16;
			int64_t swizzled = chunk ^ ((r / (128 / span)) % (span / 16));
			int64_t offset = c * 2 / span * rows * span + r * span + swizzled * 16 + byte % 16;

			CHECK_INT(world->check, layout_at(layout, (const int64_t[]){ r, c }, 0).offset, offset);
		}
	CHECK(world->check, layout_injective(layout, NULL, NULL));
	check_round_trip(world, layout);
}

/*
 * Offsets by the definitions in the header: row-major with and without padding, swizzles of three
 * spans, and elements of four bits, of which two share a byte.
 */
static void test_memory(struct world *world)
{
	struct arena *arena = world->cx.arena;
	const int64_t shape[] = { 3, 4, 5 };
	struct layout *linear = layout_row_major(arena, 3, shape, 16, 0);
	struct layout *padded = layout_row_major(arena, 2, (const int64_t[]){ 7, 64 }, 16, 16);
	struct layout *nibbles = layout_row_major(arena, 2, (const int64_t[]){ 4, 6 }, 4, 0);

	check_swizzle(world, 64, 128, 128);
	check_swizzle(world, 16, 64, 64);
	check_swizzle(world, 16, 48, 32);
	CHECK(world->check, !layout_swizzled(arena, 2, (const int64_t[]){ 16, 72 }, 16, 32));
	CHECK_TEXT(world->check, layout_kind_text(linear), "linear");
	CHECK_INT(world->check, layout_at(linear, (const int64_t[]){ 2, 3, 4 }, 0).offset, 118);
	CHECK_INT(world->check, linear->n_bytes, 120);
	CHECK_TEXT(world->check, layout_kind_text(padded), "padded");
	CHECK_INT(world->check, layout_at(padded, (const int64_t[]){ 2, 3 }, 0).offset, 2 * 144 + 6);
	CHECK_INT(world->check, padded->n_bytes, 7 * 144);
	CHECK_INT(world->check, nibbles->n_bytes, 12);
	CHECK_INT(world->check, layout_at(nibbles, (const int64_t[]){ 1, 3 }, 0).offset, 4);
	CHECK(world->check, layout_injective(nibbles, NULL, NULL));
	check_round_trip(world, linear);
	check_round_trip(world, padded);
	check_round_trip(world, nibbles);
}

/* Offsets as expressions against layout_at. */
static void check_offset_expr(struct world *world, const struct layout *layout)
{
	const struct expr *vars[MAX_RANK], *offset;
	struct var *dims[MAX_RANK];
	int64_t index[MAX_RANK] = { 0 };
	int64_t *values;

	for (uint32_t d = 0; d < layout->rank; d++) {
		dims[d] = expr_new_var(world->pool, VAR_LOOP, intern_text(world->cx.names, "d"), DTYPE_I32);
		dims[d]->min = 0;
		dims[d]->max = layout->shape[d] - 1;
		vars[d] = expr_of_var(world->pool, dims[d]);
	}
	offset = layout_axis_expr(world->pool, layout, AXIS_OFFSET, vars, NULL);
	values = calloc(expr_n_vars(world->pool), sizeof(*values));
	do {
		for (uint32_t d = 0; d < layout->rank; d++)
			values[dims[d]->id] = index[d];
		CHECK_INT(world->check, expr_eval_int(offset, values), layout_at(layout, index, 0).offset);
	} while (layout_next_index(layout, index));
	free(values);
}

/* Closed forms of row-major, padded, swizzled and tabulated layouts. */
static void test_offset_exprs(struct world *world)
{
	struct arena *arena = world->cx.arena;

	check_offset_expr(world, layout_row_major(arena, 3, (const int64_t[]){ 3, 4, 5 }, 32, 0));
	check_offset_expr(world, layout_row_major(arena, 2, (const int64_t[]){ 9, 24 }, 16, 16));
	for (int64_t span = 32; span <= 128; span *= 2)
		check_offset_expr(world, layout_swizzled(arena, 2, (const int64_t[]){ 16, 128 }, 16, span));
	check_offset_expr(world,
	                  read_text(world, "memory (2, 3) of 8 bits offset = table [0 4 1 5 2 6]"));
}

/* ---- reduction and projection ---- */

/* The reduced fragment's owners of row i are the threads that own any of its elements, idle lanes
 * of the row included. */
static void test_reduce(struct world *world)
{
	struct layout *source =
		read_text(world, "fragment (8, 96) thread = i%2*64 + j/2%64, slot = i/2*2 + j%2");
	struct layout *row = layout_reduce(world->cx.arena, source, 1, false);
	struct layout *kept = layout_reduce(world->cx.arena, source, 1, true);
	struct layout *column = layout_reduce(world->cx.arena, source, 0, false);

	CHECK_TEXT(world->check, text_of(world, row),
	           "fragment (8) of 64 replicas thread = i%2*64 + r, slot = i/2");
	CHECK_TEXT(world->check, text_of(world, kept),
	           "fragment (8, 1) of 64 replicas thread = i%2*64 + r, slot = i/2");
	CHECK_TEXT(world->check, text_of(world, column),
	           "fragment (96) of 2 replicas thread = r*64 + i/2%64, slot = i%2");
	for (int64_t i = 0; i < 8; i++)
		for (int64_t j = 0; j < 96; j++) {
			struct place from = layout_at(source, (const int64_t[]){ i, j }, 0);
			bool found = false;

			for (int64_t r = 0; r < row->n_replicas; r++)
				found |= layout_at(row, &i, r).thread == from.thread;
			CHECK(world->check, found);
		}
	check_inverse(world, row, 128);
	check_inverse(world, column, 128);
	check_round_trip(world, row);
}

/*
 * Loop layouts seen by a group of columns: by hand from the definition of layout_project. A group
 * that the digits do not divide has none.
 */
static void test_project(struct world *world)
{
	struct layout *loop =
		read_text(world, "fragment (16, 448) thread = i/2*8 + j/4%8, slot = i%2*56 + j/32*4 + j%4");
	struct layout *group = layout_project(
		world->cx.arena, loop, 2, (const struct projection[]){ { 0, 1, 16 }, { 1, 32, 14 } });
	struct layout *halves = layout_project(
		world->cx.arena, loop, 2, (const struct projection[]){ { 0, 1, 16 }, { 1, 8, 56 } });

	CHECK_TEXT(world->check, text_of(world, group),
	           "fragment (16, 14) of 8 replicas thread = i/2*8 + r, slot = i%2*14 + j");
	CHECK_TEXT(world->check, text_of(world, halves),
	           "fragment (16, 56) of 2 replicas thread = i/2*8 + j%4*2 + r, slot = i%2*14 + j/4");
	CHECK(world->check,
	      !layout_project(world->cx.arena, loop, 1, (const struct projection[]){ { 1, 3, 150 } }));
}

/* ---- equality, injectivity, text ---- */

/*
 * A table and its digits are equal, a swapped table is not and the first difference is named; a
 * clash is named with both elements; replicas may come in any order.
 */
static void test_questions(struct world *world)
{
	struct layout *table =
		read_text(world, "fragment (2, 2) thread = table [0 1 2 3], slot = table [0 0 0 0]");
	struct layout *digits = read_text(world, "fragment (2, 2) thread = i*2 + j, slot = 0");
	struct layout *swapped =
		read_text(world, "fragment (2, 2) thread = table [0 1 3 2], slot = table [0 0 0 0]");
	struct layout *clash = read_text(world, "fragment (2, 3) thread = i + j, slot = 0");
	struct layout *replicas =
		read_text(world, "fragment (4) of 2 replicas thread = i/2*2 + r, slot = i%2");
	struct layout *mirrored = read_text(world, "fragment (4) of 2 replicas thread = table [1 1 3 3 "
	                                           "0 0 2 2], slot = table [0 1 0 1 0 1 0 1]");
	int64_t first[MAX_RANK + 1], second[MAX_RANK + 1];

	CHECK(world->check, layout_equal(table, digits, NULL));
	CHECK(world->check, !layout_equal(table, swapped, first));
	CHECK(world->check, first[0] == 1 && first[1] == 0);
	CHECK(world->check, !layout_injective(clash, first, second));
	CHECK(world->check, first[0] == 0 && first[1] == 1 && second[0] == 1 && second[1] == 0);
	CHECK(world->check, layout_equal(replicas, mirrored, NULL));
	CHECK(world->check, layout_injective(table, NULL, NULL));
	check_round_trip(world, table);
	check_round_trip(world, mirrored);
}

/* One diagnostic each, whatever sizes a text claims. */
static void test_bad_texts(struct world *world)
{
	static const char *const texts[] = {
		"",
		"fragment",
		"fragment (",
		"fragment (0) thread = i, slot = 0",
		"fragment (4) thread = k, slot = 0",
		"fragment (4) thread = i/0, slot = 0",
		"fragment (4) thread = i%0, slot = 0",
		"memory (4) of 8 bits offset = table [1 2 3",
		"memory (4) of 16 bits offset = i*2, xor 3 bits 4 -> 4",
		"memory (99999999, 99999999) of 8 bits offset = i",
		"fragment (1, 1, 1, 1, 1, 1, 1, 1, 1) thread = 0, slot = 0",
		"fragment (4) thread = i*99999999999999999999, slot = 0",
		"fragment (4) thread = table [0 1 2 3], slot = i",
		"memory (4) of 0 bits offset = i",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		uint32_t n_errors = world->cx.diags.n_errors;
		uint32_t file = source_add(world->cx.arena, &world->cx.sources, "text", str_of(texts[i]));
		uint32_t position = 0;

		CHECK(world->check, !layout_parse(&world->cx, file, &position));
		CHECK_INT(world->check, world->cx.diags.n_errors, n_errors + 1);
	}
}

/* The form that other tools' layouts are compared in, byte by byte. */
static void test_csv(struct world *world)
{
	struct buf buf = { 0 };

	layout_print_csv(&buf,
	                 read_text(world, "fragment (2) of 2 replicas thread = i + r*2, slot = 0"));
	CHECK_TEXT(world->check, buf_cstr(&buf),
	           "i,replica,thread,slot\n0,0,0,0\n1,0,1,0\n0,1,2,0\n1,1,3,0\n");
	buf_free(&buf);
	layout_print_csv(&buf, layout_row_major(world->cx.arena, 2, (const int64_t[]){ 2, 2 }, 16, 16));
	CHECK_TEXT(world->check, buf_cstr(&buf), "i,j,offset_bytes\n0,0,0\n0,1,2\n1,0,20\n1,1,22\n");
	buf_free(&buf);
}

int main(void)
{
	struct check check = { 0 };
	struct world world = { .check = &check, .seed = 12345 };

	cx_init(&world.cx, arena_open());
	world.pool = expr_pool_open(&world.cx);
	test_random_fragments(&world);
	test_padded_inverse(&world);
	test_accumulators(&world);
	test_memory(&world);
	test_offset_exprs(&world);
	test_reduce(&world);
	test_project(&world);
	test_questions(&world);
	test_bad_texts(&world);
	test_csv(&world);
	arena_close(world.cx.arena);
	return check_end(&check);
}
