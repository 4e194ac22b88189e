/*
 * What fragment and shared drawings share: the grid of elements, its numbers, the heading.
 */
#include "viz/draw.h"
#include "viz/svg.h"

#include <assert.h>
#include <stdio.h>

enum { WRAP_COLUMNS = 32, COMPACT_CELL = 10 };

/* Cells are as large as their text, or small squares when there are too many for text. */
void draw_grid_init(struct draw_grid *grid, const struct layout *layout, int64_t text_width,
                    int64_t text_height)
{
	*grid = (struct draw_grid){ .layout = layout, .n_elems = 1, .rows = 1, .columns = 1 };
	for (uint32_t d = 0; d < layout->rank; d++)
		grid->n_elems *= layout->shape[d];
	assert(grid->n_elems > 0);
	if (layout->rank > 1)
		grid->columns = layout->shape[layout->rank - 1];
	else
		grid->columns = grid->n_elems < WRAP_COLUMNS ? grid->n_elems : WRAP_COLUMNS;
	grid->rows = (grid->n_elems + grid->columns - 1) / grid->columns;
	grid->with_text = grid->n_elems <= DRAW_MAX_TEXT_CELLS;
	grid->shown_rows = grid->rows;
	if (grid->n_elems > DRAW_MAX_CELLS) {
		grid->shown_rows = DRAW_MAX_CELLS / grid->columns;
		grid->shown_rows = grid->shown_rows < 1 ? 1 : grid->shown_rows;
	}
	grid->cell_width = grid->with_text ? text_width : COMPACT_CELL;
	grid->cell_height = grid->with_text ? text_height : COMPACT_CELL;
}

/* Row-major: the inverse of the flattening that made rows. */
bool draw_grid_index(const struct draw_grid *grid, int64_t row, int64_t column, int64_t *index)
{
	int64_t rest = row * grid->columns + column;

	assert(row >= 0 && row < grid->rows && column >= 0 && column < grid->columns);
	if (rest >= grid->n_elems)
		return false;
	for (uint32_t d = grid->layout->rank; d-- > 0;) {
		index[d] = rest % grid->layout->shape[d];
		rest /= grid->layout->shape[d];
	}
	return true;
}

void draw_index_text(struct buf *out, const struct layout *layout, const int64_t *index)
{
	for (uint32_t d = 0; d < layout->rank; d++) {
		if (d > 0)
			buf_text(out, ", ");
		svg_int(out, index[d]);
	}
}

/* Row labels: the leading indices, in one dimension the first element's. */
static void row_label(struct buf *out, const struct draw_grid *grid, int64_t row)
{
	int64_t index[MAX_RANK] = { 0 };
	uint32_t n = grid->layout->rank > 1 ? grid->layout->rank - 1 : grid->layout->rank;

	draw_grid_index(grid, row, 0, index);
	for (uint32_t d = 0; d < n; d++) {
		if (d > 0)
			buf_char(out, ',');
		svg_int(out, index[d]);
	}
}

/* Every row and column is numbered where there is room, else every eighth. */
void draw_grid_axes(struct svg *svg, const struct draw_grid *grid)
{
	int64_t step = grid->with_text ? 1 : 8;
	int64_t height = grid->shown_rows * grid->cell_height;
	char text[96];

	for (int64_t c = 0; c < grid->columns; c += step) {
		snprintf(text, sizeof(text), "%lld", (long long)c);
		svg_text(svg, (double)(grid->x + c * grid->cell_width) + (double)grid->cell_width / 2,
		         (double)grid->y - 5, "axis", text);
	}
	for (int64_t r = 0; r < grid->shown_rows; r += step) {
		struct buf label = { 0 };

		row_label(&label, grid, r);
		svg_text(svg, (double)grid->x - 5,
		         (double)(grid->y + r * grid->cell_height) + (double)grid->cell_height / 2 + 3,
		         "axisl", buf_cstr(&label));
		buf_free(&label);
	}
	svg_rect(svg,
	         (struct svg_box){ (double)grid->x, (double)grid->y,
	                           (double)(grid->columns * grid->cell_width), (double)height },
	         "frame");
	if (grid->shown_rows < grid->rows) {
		snprintf(text, sizeof(text), "rows %lld to %lld are left out", (long long)grid->shown_rows,
		         (long long)grid->rows - 1);
		svg_text(svg, (double)grid->x, (double)(grid->y + height) + 15, "sub", text);
	}
}

/* Facts are in the reader's words, the layout in its own text form. */
double draw_heading(struct svg *svg, const struct draw_tile *tile, double width, const char *facts)
{
	const struct layout *layout = tile->layout;
	struct buf text = { 0 };
	char type[32];
	double y = DRAW_MARGIN + 12;

	buf_printf(&text, "%s  %s (", tile->name, dtype_name(tile->type, type));
	draw_index_text(&text, layout, layout->shape);
	buf_printf(&text, layout->rank == 1 ? ",)" : ")");
	svg_text(svg, DRAW_MARGIN, y, "title", buf_cstr(&text));
	buf_free(&text);
	if (tile->kernel)
		buf_printf(&text, "kernel %s · ", tile->kernel);
	buf_text(&text, facts);
	y += 20;
	svg_text(svg, DRAW_MARGIN, y, "sub", buf_cstr(&text));
	buf_free(&text);
	layout_print(&text, layout);
	y = svg_paragraph(svg, DRAW_MARGIN, y + 18, (uint32_t)((width - 2 * DRAW_MARGIN) / 6.8),
	                  buf_cstr(&text));
	buf_free(&text);
	return y;
}
