/*
 * draw: pictures of layouts, one SVG a buffer.
 *
 * A fragment is drawn as a grid of its elements, a cell each: thread and register slot as text,
 * colour by thread (hue the lane, shade the warp). A shared buffer is drawn as a grid coloured by
 * bank, beside it its first lines of 128 bytes as the banks see them. The first dimensions are
 * flattened into rows; a tile of one dimension is wrapped at 32 columns. Above 4,096 cells the
 * texts give way to hover text alone, above 65,536 only the first rows are drawn and the drawing
 * says so.
 */
#ifndef TL_VIZ_DRAW_H
#define TL_VIZ_DRAW_H

#include "analyzer/layout/layout.h"

/* What is drawn; texts are borrowed. */
struct draw_tile {
	const char *name;
	const char *kernel; /* the kernel's name, for the heading */
	struct dtype type;
	const struct layout *layout;
};

/* A LAYOUT_FRAGMENT. */
void draw_fragment(struct buf *out, const struct draw_tile *tile);
/* A LAYOUT_MEMORY. */
void draw_shared(struct buf *out, const struct draw_tile *tile);

/* ---- what both share ---- */

struct svg;

enum { DRAW_MAX_TEXT_CELLS = 4096, DRAW_MAX_CELLS = 65536, DRAW_MARGIN = 24 };

/* A tile as rows and columns. */
struct draw_grid {
	const struct layout *layout;
	int64_t n_elems;
	int64_t rows, columns;
	int64_t shown_rows; /* below rows when there are too many cells */
	bool with_text;
	int64_t x, y; /* of the first cell */
	int64_t cell_width, cell_height;
};
void draw_grid_init(struct draw_grid *grid, const struct layout *layout, int64_t text_width,
                    int64_t text_height);
/* The element in a cell; false for the empty cells behind the last element. */
bool draw_grid_index(const struct draw_grid *grid, int64_t row, int64_t column, int64_t *index);
/* "i, j" of an element. */
void draw_index_text(struct buf *out, const struct layout *layout, const int64_t *index);
/* Column and row numbers along the grid, a line below it when rows are left out. */
void draw_grid_axes(struct svg *svg, const struct draw_grid *grid);
/* Heading: name, type and shape, then `facts`, then the layout's text; gives the y behind it. */
double draw_heading(struct svg *svg, const struct draw_tile *tile, double width, const char *facts);

#endif
