/* Drawings: one cell an element with the right owner, escaped text, the same bytes twice, bounded
 * size, graphs with all nodes. */
#include "tests/unit/check.h"

#include "viz/draw.h"
#include "viz/flow.h"
#include "viz/svg.h"

#include <stdlib.h>

/* How often a text stands in another. */
static uint32_t count(const struct buf *text, const char *what)
{
	uint32_t n = 0;

	for (const char *at = buf_cstr(text); (at = strstr(at, what)) != NULL; at++)
		n++;
	return n;
}

/* Characters of markup, controls and broken UTF-8; numbers at their extremes. */
static void test_escape(struct check *check)
{
	struct buf out = { 0 };

	svg_escape(&out, "a<b> & \"c\"\x01\xff\xc3\xa9");
	CHECK_TEXT(check, buf_cstr(&out), "a&lt;b&gt; &amp; &quot;c&quot;\xEF\xBF\xBD\xc3\xa9");
	buf_free(&out);
	svg_int(&out, 0);
	svg_int(&out, -1234567);
	svg_int(&out, INT64_MIN);
	CHECK_TEXT(check, buf_cstr(&out), "0-1234567-9223372036854775808");
	buf_free(&out);
}

/*
 * White, black and sRGB red, whose OKLCH coordinates are known (Ottosson, "A perceptual color space
 * for image processing").
 */
static void test_colour(struct check *check)
{
	CHECK_INT(check, svg_colour(1, 0, 0), 0xFFFFFF);
	CHECK_INT(check, svg_colour(0, 0, 90), 0);
	/* sRGB red in OKLCH. */
	CHECK_INT(check, svg_colour(0.62796, 0.25768, 29.2339), 0xFF0000);
}

/* PTX ISA, mma.m16n8k16: c2 of the thread with group 3 and number 1 in its group is row 3 + 8,
 * column 2. */
static void test_fragment(struct check *check)
{
	struct arena *arena = arena_open();
	struct draw_tile tile = { "acc<0>", "k", DTYPE_F32,
		                      layout_mma_accumulator(arena, 16, 8, 1, 1) };
	struct buf once = { 0 }, again = { 0 };

	draw_fragment(&once, &tile);
	draw_fragment(&again, &tile);
	CHECK_TEXT(check, buf_cstr(&once), buf_cstr(&again));
	CHECK_INT(check, count(&once, "] thread "), 16 * 8);
	CHECK_INT(check, count(&once, ">T13<"), 4);
	CHECK(check,
	      strstr(buf_cstr(&once), "<title>[11, 2] thread 13 (warp 0, lane 13) slot 2</title>"));
	CHECK(check, strstr(buf_cstr(&once), "acc&lt;0&gt;") && !strstr(buf_cstr(&once), "acc<0>"));
	CHECK_INT(check, count(&once, "<script"), 0);
	buf_free(&once);
	buf_free(&again);
	arena_close(arena);
}

/* Every element of a reduced accumulator is in the four threads of its group. */
static void test_replicas(struct check *check)
{
	struct arena *arena = arena_open();
	struct layout *rows =
		layout_reduce(arena, layout_mma_accumulator(arena, 16, 8, 1, 1), 1, false);
	struct draw_tile tile = { "rows", NULL, DTYPE_F32, rows };
	struct buf out = { 0 };

	draw_fragment(&out, &tile);
	CHECK_INT(check, count(&out, ", copies in threads "), 16);
	CHECK(check, strstr(buf_cstr(&out), "each element in 4 threads"));
	buf_free(&out);
	arena_close(arena);
}

static void test_shared(struct check *check)
{
	struct arena *arena = arena_open();
	int64_t shape[] = { 8, 64 };
	struct draw_tile tile = { "A_shared", "k", DTYPE_F16,
		                      layout_swizzled(arena, 2, shape, 16, 128) };
	struct buf out = { 0 };

	draw_shared(&out, &tile);
	/* Row 3's first chunk sits at chunk 3: byte 3 * 128 + 3 * 16, bank 12. It is drawn in the tile
	 * and among the banks. */
	CHECK_INT(check, count(&out, "<title>[3, 0] offset 432, bank 12</title>"), 2);
	/* Every element once in the tile, every word once among the banks. */
	CHECK_INT(check, count(&out, "] offset "), 8 * 64 + 8 * 32);
	buf_free(&out);
	tile.layout = layout_row_major(arena, 2, shape, 16, 16);
	draw_shared(&out, &tile);
	CHECK(check, count(&out, "no element begins here") > 0);
	buf_free(&out);
	arena_close(arena);
}

/*
 * A tile of 32,768 elements stays below 5 MB with every element in it; of one of two million rows
 * are left out, and the drawing says which.
 */
static void test_size(struct check *check)
{
	struct arena *arena = arena_open();
	int64_t shape[] = { 128, 256 }, huge[] = { 4096, 512 };
	struct draw_tile tile = { "t", "k", DTYPE_F16, layout_row_major(arena, 2, shape, 16, 0) };
	struct buf out = { 0 };

	draw_shared(&out, &tile);
	CHECK(check, out.n < 5000000 && count(&out, "] offset ") >= 128 * 256);
	buf_free(&out);
	tile.layout = layout_mma_accumulator(arena, 128, 256, 2, 2);
	draw_fragment(&out, &tile);
	CHECK(check, out.n < 5000000 && count(&out, "] thread ") == 128 * 256);
	buf_free(&out);
	tile.layout = layout_row_major(arena, 2, huge, 16, 0);
	draw_shared(&out, &tile);
	CHECK(check, strstr(buf_cstr(&out), "rows 128 to 4095 are left out"));
	buf_free(&out);
	arena_close(arena);
}

/* Both drawers show all nodes and edges, escape texts, and draw the same twice. */
static void test_flow(struct check *check)
{
	struct arena *arena = arena_open();
	struct flow flow = { .arena = arena, .title = "a & b" };
	struct buf out = { 0 }, again = { 0 };
	bool drawn;

	vec_push(arena, &flow.nodes, (struct flow_node){ FLOW_GLOBAL, "A\nfloat16 (8, 8)", "", -1, 0 });
	vec_push(arena, &flow.nodes, (struct flow_node){ FLOW_OP, "copy \xc2\xb7 line 3", "", 0, 1 });
	vec_push(arena, &flow.nodes,
	         (struct flow_node){ FLOW_SHARED, "A_shared<>", "offset = i\\j", -1, 2 });
	vec_push(arena, &flow.edges, (struct flow_edge){ 0, 1, "128 B", false, false });
	vec_push(arena, &flow.edges, (struct flow_edge){ 1, 2, "128 B\ncp.async.16", true, true });
	flow_draw_plain(&out, &flow);
	CHECK(check, strstr(buf_cstr(&out), "A_shared&lt;&gt;") &&
	                 strstr(buf_cstr(&out), "cp.async.16") && strstr(buf_cstr(&out), "a &amp; b"));
	buf_free(&out);
	drawn = flow_draw_graphviz(&out, &flow);
	CHECK(check, drawn == (out.n > 0));
	if (drawn) {
		flow_draw_graphviz(&again, &flow);
		CHECK_TEXT(check, buf_cstr(&out), buf_cstr(&again));
		CHECK_INT(check, count(&out, "class=\"node\""), 3);
		CHECK_INT(check, count(&out, "class=\"edge\""), 2);
		CHECK(check, strstr(buf_cstr(&out), "A_shared&lt;&gt;") &&
		                 strncmp(buf_cstr(&out), "<svg", 4) == 0);
	}
	buf_free(&out);
	buf_free(&again);
	arena_close(arena);
}

int main(void)
{
	struct check check = { 0 };

	test_escape(&check);
	test_colour(&check);
	test_fragment(&check);
	test_replicas(&check);
	test_shared(&check);
	test_size(&check);
	test_flow(&check);
	return check_end(&check);
}
