/*
 * fragment: which thread holds each element, and in which of its register slots.
 *
 *                0     1     2     3           mma.m16n8k16's accumulator: row 0 begins with
 * threads 0 and 1, 0  | T0  | T0  | T1  | T1  | ..    two neighbouring columns in slots 0 and 1 of
 * each | L0  | L1  | L0  | L1  |
 *
 * Hue is the lane, shade the warp (modulo 4), and a line runs where two neighbouring elements
 * belong to different warps, so that the warps' tiles and the lanes' pattern inside them are both
 * seen at once.
 */
#include "viz/draw.h"
#include "viz/svg.h"

#include <assert.h>
#include <stdio.h>

enum {
	LANES = 32,
	SHADES = 4, /* of warps, then they repeat */
	CELL_WIDTH = 36,
	CELL_HEIGHT = 26,
	LEGEND_CELL = 17,
	LEGEND_LABEL = 90,
	MIN_WIDTH = 800,
	MAX_LISTED_REPLICAS = 8,
};

struct fragment_drawing {
	struct svg svg;
	struct draw_grid grid;
	const struct layout *layout;
	const struct draw_tile *tile;
};

/* Hues 11 degrees apart around the circle, odd lanes a little darker; warps get darker and
 * stronger. */
static void add_style(struct fragment_drawing *drawing)
{
	struct buf *style = &drawing->svg.style;

	buf_printf(style,
	           "path{stroke:#fff;stroke-width:%s}.warp{fill:none;stroke:#1f2430;stroke-width:1.6}",
	           drawing->grid.with_text ? "1" : ".6");
	buf_text(style, ".t{font-size:9.5px;text-anchor:middle}.l{font-size:8.5px;text-anchor:middle;"
	                "fill:#4a5162}");
	for (int shade = 0; shade < SHADES; shade++) {
		for (int lane = 0; lane < LANES; lane++) {
			double light = 0.915 - 0.075 * shade - 0.012 * (lane % 2);
			double chroma = 0.055 + 0.02 * shade;

			buf_printf(style, ".c%d{fill:#%06x}", shade * LANES + lane,
			           svg_colour(light, chroma, 20 + lane * 360.0 / LANES));
		}
	}
}

/* "[3, 5] thread 33 (warp 1, lane 1) slot 2", and the threads that hold copies. */
static void add_hover(struct fragment_drawing *drawing, const int64_t *index, struct place place)
{
	struct buf *body = &drawing->svg.body;
	const struct layout *layout = drawing->layout;

	buf_char(body, '[');
	draw_index_text(body, layout, index);
	buf_text(body, "] thread ");
	svg_int(body, place.thread);
	buf_text(body, " (warp ");
	svg_int(body, place.thread / LANES);
	buf_text(body, ", lane ");
	svg_int(body, place.thread % LANES);
	buf_text(body, ") slot ");
	svg_int(body, place.slot);
	for (int64_t r = 1; r < layout->n_replicas && r <= MAX_LISTED_REPLICAS; r++) {
		buf_text(body, r == 1 ? ", copies in threads " : ", ");
		svg_int(body, layout_at(layout, index, r).thread);
	}
	if (layout->n_replicas > MAX_LISTED_REPLICAS + 1)
		buf_printf(body, " and %lld more",
		           (long long)(layout->n_replicas - 1 - MAX_LISTED_REPLICAS));
}

/* T and L of the cell whose left edge is x, in the row's coordinates. */
static void add_cell_text(struct fragment_drawing *drawing, int64_t x, struct place place)
{
	struct buf *body = &drawing->svg.body;

	buf_printf(body, "<text x=\"%lld\" y=\"11\" class=\"t\">T%lld</text>",
	           (long long)(x + CELL_WIDTH / 2), (long long)place.thread);
	buf_printf(body, "<text x=\"%lld\" y=\"22\" class=\"l\">L%lld", (long long)(x + CELL_WIDTH / 2),
	           (long long)place.slot);
	if (drawing->layout->n_replicas > 1)
		buf_printf(body, " ×%lld", (long long)drawing->layout->n_replicas);
	buf_text(body, "</text>\n");
}

/* Fills `warps` (one a column, -1 where no element is). */
static void add_row(struct fragment_drawing *drawing, int64_t row, int64_t *warps)
{
	const struct draw_grid *grid = &drawing->grid;
	struct buf *body = &drawing->svg.body;
	int64_t index[MAX_RANK];

	buf_printf(body, "<g id=\"r%lld\" transform=\"translate(%lld %lld)\">\n", (long long)row,
	           (long long)grid->x, (long long)(grid->y + row * grid->cell_height));
	for (int64_t c = 0; c < grid->columns; c++) {
		struct place place;

		warps[c] = -1;
		if (!draw_grid_index(grid, row, c, index))
			continue;
		place = layout_at(drawing->layout, index, 0);
		assert(place.thread < drawing->layout->n_threads && place.slot < drawing->layout->n_slots);
		warps[c] = place.thread / LANES;
		svg_cell_open(&drawing->svg,
		              &(struct svg_cell){ c * grid->cell_width, grid->cell_width, grid->cell_height,
		                                  'c', place.thread % (LANES * SHADES) });
		add_hover(drawing, index, place);
		svg_cell_close(&drawing->svg);
		if (grid->with_text)
			add_cell_text(drawing, c * grid->cell_width, place);
	}
	buf_text(body, "</g>\n");
}

/* Edges between different warps: left of each cell of a row, and above it where `above` is given.
 */
static void add_edges(struct buf *path, const struct draw_grid *grid, int64_t row,
                      const int64_t *warps, const int64_t *above)
{
	int64_t y = grid->y + row * grid->cell_height;

	for (int64_t c = 0; c < grid->columns; c++) {
		int64_t x = grid->x + c * grid->cell_width;

		if (c > 0 && warps[c] != warps[c - 1])
			buf_printf(path, "M%lld %lldv%lld", (long long)x, (long long)y,
			           (long long)grid->cell_height);
		if (above && warps[c] != above[c])
			buf_printf(path, "M%lld %lldh%lld", (long long)x, (long long)y,
			           (long long)grid->cell_width);
	}
}

/* Two rows of warp numbers are kept, to draw the edges between them. */
static void add_grid(struct fragment_drawing *drawing)
{
	const struct draw_grid *grid = &drawing->grid;
	struct arena *arena = arena_open();
	int64_t *warps[2];
	struct buf path = { 0 };

	warps[0] = arena_array(arena, int64_t, (size_t)grid->columns);
	warps[1] = arena_array(arena, int64_t, (size_t)grid->columns);
	for (int64_t r = 0; r < grid->shown_rows; r++) {
		add_row(drawing, r, warps[r % 2]);
		add_edges(&path, grid, r, warps[r % 2], r > 0 ? warps[(r + 1) % 2] : NULL);
	}
	if (path.n > 0)
		buf_printf(&drawing->svg.body,
		           "<path class=\"warp\" style=\"stroke:#1f2430;stroke-width:1.6\" d=\"%s\"/>\n",
		           buf_cstr(&path));
	buf_free(&path);
	arena_close(arena);
	draw_grid_axes(&drawing->svg, grid);
}

/* A row of lane colours for each warp (for each four, when they repeat); gives the y behind it. */
static double add_legend(struct fragment_drawing *drawing, double y)
{
	struct svg *svg = &drawing->svg;
	int64_t n_warps = (drawing->layout->n_threads + LANES - 1) / LANES;
	char text[64];

	svg_text(svg, DRAW_MARGIN, y + 10, "sub", "lane");
	for (int lane = 0; lane < LANES; lane++) {
		snprintf(text, sizeof(text), "%d", lane);
		svg_text(svg, LEGEND_LABEL + (lane + 0.5) * LEGEND_CELL, y + 10, "axis", text);
	}
	y += 15;
	for (int64_t w = 0; w < n_warps && w < SHADES; w++) {
		snprintf(text, sizeof(text), n_warps > SHADES + w ? "warp %lld, %lld…" : "warp %lld",
		         (long long)w, (long long)w + SHADES);
		svg_text(svg, DRAW_MARGIN, y + 12, "sub", text);
		buf_printf(&svg->body, "<g id=\"w%lld\" transform=\"translate(%d %lld)\">\n", (long long)w,
		           LEGEND_LABEL, (long long)y);
		for (int lane = 0; lane < LANES; lane++) {
			svg_cell_open(svg, &(struct svg_cell){ lane * LEGEND_CELL, LEGEND_CELL, LEGEND_CELL,
			                                       'c', w * LANES + lane });
			buf_printf(&svg->body, "warp %lld lane %d: thread %lld", (long long)w, lane,
			           (long long)w * LANES + lane);
			svg_cell_close(svg);
		}
		buf_text(&svg->body, "</g>\n");
		y += LEGEND_CELL;
	}
	return y;
}

/* The heading's height is known only when it is written, so the grid is placed below it then. */
void draw_fragment(struct buf *out, const struct draw_tile *tile)
{
	const struct layout *layout = tile->layout;
	struct fragment_drawing drawing = { .layout = layout, .tile = tile };
	struct draw_grid *grid = &drawing.grid;
	struct buf facts = { 0 };
	double width, y;

	assert(layout->kind == LAYOUT_FRAGMENT);
	draw_grid_init(grid, layout, CELL_WIDTH, CELL_HEIGHT);
	grid->x = DRAW_MARGIN + 30;
	width = (double)(grid->x + grid->columns * grid->cell_width + DRAW_MARGIN);
	width = width < MIN_WIDTH ? MIN_WIDTH : width;
	buf_printf(&facts, "fragment over %lld threads, %lld register slot%s a thread",
	           (long long)layout->n_threads, (long long)layout->n_slots,
	           layout->n_slots == 1 ? "" : "s");
	if (layout->n_replicas > 1)
		buf_printf(&facts, ", each element in %lld threads", (long long)layout->n_replicas);
	buf_text(&facts, grid->with_text ? " · T thread, L slot" : " · thread and slot as hover text");
	add_style(&drawing);
	y = draw_heading(&drawing.svg, tile, width, buf_cstr(&facts));
	y = add_legend(&drawing, y + 2);
	grid->y = (int64_t)y + 26;
	add_grid(&drawing);
	svg_finish(&drawing.svg, out, width,
	           (double)(grid->y + grid->shown_rows * grid->cell_height) + DRAW_MARGIN, tile->name);
	buf_free(&facts);
}
