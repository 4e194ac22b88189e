/*
 * shared: the bank of each element, and the buffer's first lines as the banks see them.
 *
 * Left the tile, a cell an element, coloured by the bank of its first byte. Right a row for each
 * line of 128 bytes and a column for each bank; a word shows the first element that begins in it
 * and is coloured by the 16-byte chunk of the tile's row that it comes from, so that a swizzle is
 * seen as a permutation of colours and padding as a shift:
 *
 *                bank 0 .. 3      4 .. 7       8 .. 11
 *         0      0,0 0,2 0,4 0,6  0,8 ..       0,16 ..       row 0 of 64 float16
 *       128      1,8 ..           1,0 1,2 ..   1,24 ..       row 1: chunks 0 and 1 are swapped
 */
#include "viz/draw.h"
#include "viz/svg.h"

#include <assert.h>
#include <stdio.h>

enum {
	BANKS = 32,
	BANK_BYTES = 4,
	LINE_BYTES = BANKS * BANK_BYTES,
	MIN_LINES = 32, /* drawn at least; more where the tile's grid is taller */
	CELL_WIDTH = 32,
	CELL_HEIGHT = 24,
	WORD_WIDTH = 34,
	WORD_HEIGHT = 18,
	GAP = 64,
	MIN_WIDTH = 900,
	CHUNK_BYTES = 16,
	MAX_CHUNK_COLOURS = 64,
};

struct shared_drawing {
	struct svg svg;
	struct draw_grid grid;
	const struct layout *layout;
	int64_t n_lines;
	int64_t lines_x, lines_y;
	int64_t
		*first; /* for each word of the lines: linear number of the first element in it, -1 none */
};

/* Which 16 bytes of the row an element belongs to, before any swizzle. */
static int64_t chunk_of(const struct shared_drawing *drawing, int64_t column)
{
	return column * drawing->layout->elem_bits / 8 / CHUNK_BYTES;
}

/* Colours that are needed; beyond the limit they repeat. */
static int64_t n_chunks(const struct shared_drawing *drawing)
{
	int64_t n = chunk_of(drawing, drawing->grid.columns - 1) + 1;

	return n < MAX_CHUNK_COLOURS ? n : MAX_CHUNK_COLOURS;
}

/* Banks in 32 hues; chunks in as many as a row has. */
static void add_style(struct shared_drawing *drawing)
{
	struct buf *style = &drawing->svg.style;
	int64_t n = n_chunks(drawing);

	buf_printf(style, "path{stroke:#fff;stroke-width:%s}", drawing->grid.with_text ? "1" : ".6");
	buf_text(style, ".t{font-size:9.5px;text-anchor:middle}.l{font-size:8px;text-anchor:middle;"
	                "fill:#4a5162}.e0{fill:#eef0f3}");
	for (int bank = 0; bank < BANKS; bank++)
		buf_printf(style, ".b%d{fill:#%06x}", bank,
		           svg_colour(0.86 - 0.05 * (bank % 2), 0.095, 20 + bank * 360.0 / BANKS));
	for (int64_t c = 0; c < n; c++)
		buf_printf(
			style, ".k%lld{fill:#%06x}", (long long)c,
			svg_colour(0.88 - 0.05 * (double)(c % 2), 0.08, 20 + (double)c * 360.0 / (double)n));
}

/* "[3, 5] offset 394, bank 2". */
static void add_hover(struct shared_drawing *drawing, const int64_t *index, int64_t offset)
{
	struct buf *body = &drawing->svg.body;

	buf_char(body, '[');
	draw_index_text(body, drawing->layout, index);
	buf_text(body, "] offset ");
	svg_int(body, offset);
	buf_text(body, ", bank ");
	svg_int(body, offset / BANK_BYTES % BANKS);
}

/* Remembers the element when it is the first that begins in a word of the drawn lines. */
static void note_word(struct shared_drawing *drawing, int64_t element, int64_t offset)
{
	int64_t word = offset / BANK_BYTES;

	assert(offset >= 0 && offset < drawing->layout->n_bytes);
	if (word < drawing->n_lines * BANKS && (drawing->first[word] < 0 || offset % BANK_BYTES == 0))
		drawing->first[word] = element;
}

/* The tile's cells of one row; notes the words they fill. */
static void add_row(struct shared_drawing *drawing, int64_t row)
{
	const struct draw_grid *grid = &drawing->grid;
	struct buf *body = &drawing->svg.body;
	int64_t index[MAX_RANK];

	buf_printf(body, "<g id=\"r%lld\" transform=\"translate(%lld %lld)\">\n", (long long)row,
	           (long long)grid->x, (long long)(grid->y + row * grid->cell_height));
	for (int64_t c = 0; c < grid->columns; c++) {
		int64_t offset, bank, x = c * grid->cell_width;

		if (!draw_grid_index(grid, row, c, index))
			continue;
		offset = layout_at(drawing->layout, index, 0).offset;
		bank = offset / BANK_BYTES % BANKS;
		note_word(drawing, row * grid->columns + c, offset);
		svg_cell_open(&drawing->svg,
		              &(struct svg_cell){ x, grid->cell_width, grid->cell_height, 'b', bank });
		add_hover(drawing, index, offset);
		svg_cell_close(&drawing->svg);
		if (grid->with_text)
			buf_printf(body,
			           "<text x=\"%lld\" y=\"11\" class=\"t\">%lld</text><text x=\"%lld\" y=\"20\" "
			           "class=\"l\">%lld</text>\n",
			           (long long)(x + CELL_WIDTH / 2), (long long)bank,
			           (long long)(x + CELL_WIDTH / 2), (long long)offset);
	}
	buf_text(body, "</g>\n");
}

/* One word of the bank view: its element, or an empty cell. */
static void add_word(struct shared_drawing *drawing, int64_t line, int64_t bank)
{
	struct buf *body = &drawing->svg.body;
	const struct draw_grid *grid = &drawing->grid;
	int64_t element = drawing->first[line * BANKS + bank];
	int64_t index[MAX_RANK] = { 0 };
	int64_t row = element / grid->columns, column = element % grid->columns;

	if (element < 0) {
		svg_cell_open(&drawing->svg,
		              &(struct svg_cell){ bank * WORD_WIDTH, WORD_WIDTH, WORD_HEIGHT, 'e', 0 });
		buf_printf(body, "line %lld, bank %lld: no element begins here", (long long)line,
		           (long long)bank);
		svg_cell_close(&drawing->svg);
		return;
	}
	assert(element < grid->n_elems);
	draw_grid_index(grid, row, column, index);
	svg_cell_open(&drawing->svg,
	              &(struct svg_cell){ bank * WORD_WIDTH, WORD_WIDTH, WORD_HEIGHT, 'k',
	                                  chunk_of(drawing, column) % MAX_CHUNK_COLOURS });
	add_hover(drawing, index, layout_at(drawing->layout, index, 0).offset);
	svg_cell_close(&drawing->svg);
	buf_printf(body, "<text x=\"%lld\" y=\"12\" class=\"l\">%lld,%lld</text>\n",
	           (long long)(bank * WORD_WIDTH + WORD_WIDTH / 2), (long long)row, (long long)column);
}

/* A line of 128 bytes is one row of banks. */
static void add_lines(struct shared_drawing *drawing)
{
	struct svg *svg = &drawing->svg;
	double x = (double)drawing->lines_x, y = (double)drawing->lines_y;
	char text[96];

	snprintf(text, sizeof(text), "as the banks see it: %s%lld lines of 128 bytes",
	         drawing->n_lines * LINE_BYTES < drawing->layout->n_bytes ? "the first " : "",
	         (long long)drawing->n_lines);
	svg_text(svg, x, y - 20, "head", text);
	for (int bank = 0; bank < BANKS; bank++) {
		snprintf(text, sizeof(text), "%d", bank);
		svg_text(svg, x + (bank + 0.5) * WORD_WIDTH, y - 5, "axis", text);
	}
	for (int64_t line = 0; line < drawing->n_lines; line++) {
		snprintf(text, sizeof(text), "%lld", (long long)(line * LINE_BYTES));
		svg_text(svg, x - 5, y + (double)(line * WORD_HEIGHT) + 12, "axisl", text);
		buf_printf(&svg->body, "<g id=\"l%lld\" transform=\"translate(%lld %lld)\">\n",
		           (long long)line, (long long)drawing->lines_x,
		           (long long)(drawing->lines_y + line * WORD_HEIGHT));
		for (int64_t bank = 0; bank < BANKS; bank++)
			add_word(drawing, line, bank);
		buf_text(&svg->body, "</g>\n");
	}
	svg_rect(svg,
	         (struct svg_box){ x, y, BANKS * WORD_WIDTH, (double)(drawing->n_lines * WORD_HEIGHT) },
	         "frame");
}

/* The 32 bank colours in a row; gives the y behind it. */
static double add_legend(struct shared_drawing *drawing, double y)
{
	struct svg *svg = &drawing->svg;
	char text[16];

	svg_text(svg, DRAW_MARGIN, y + 10, "sub", "bank");
	buf_printf(&svg->body, "<g id=\"banks\" transform=\"translate(%d %lld)\">\n", 64, (long long)y);
	for (int bank = 0; bank < BANKS; bank++) {
		svg_cell_open(svg, &(struct svg_cell){ bank * 18, 18, 16, 'b', bank });
		buf_printf(&svg->body, "bank %d", bank);
		svg_cell_close(svg);
		snprintf(text, sizeof(text), "%d", bank);
		svg_text(svg, bank * 18 + 9, 11, "l", text);
	}
	buf_text(&svg->body, "</g>\n");
	return y + 16;
}

/* How many lines are drawn: those of the buffer, as far as they fit beside the tile. */
static void count_lines(struct shared_drawing *drawing)
{
	const struct draw_grid *grid = &drawing->grid;
	int64_t n_fit = grid->shown_rows * grid->cell_height / WORD_HEIGHT;

	n_fit = n_fit > MIN_LINES ? n_fit : MIN_LINES;
	drawing->n_lines = (drawing->layout->n_bytes + LINE_BYTES - 1) / LINE_BYTES;
	drawing->n_lines = drawing->n_lines < n_fit ? drawing->n_lines : n_fit;
}

/* Places the bank view right of the tile, or below it when the tile is wide; gives the drawing's
 * width. */
static double place_parts(struct shared_drawing *drawing, bool *below)
{
	struct draw_grid *grid = &drawing->grid;
	int64_t tile_width = grid->columns * grid->cell_width, view_width = BANKS * WORD_WIDTH;
	double width;

	grid->x = DRAW_MARGIN + 30;
	*below = tile_width > view_width;
	drawing->lines_x = *below ? grid->x : grid->x + tile_width + GAP;
	width = (double)(*below ? grid->x + tile_width : drawing->lines_x + view_width) + DRAW_MARGIN;
	return width < MIN_WIDTH ? MIN_WIDTH : width;
}

/* The tile is drawn first, since drawing it finds the words of the bank view. */
void draw_shared(struct buf *out, const struct draw_tile *tile)
{
	const struct layout *layout = tile->layout;
	struct shared_drawing drawing = { .layout = layout };
	struct draw_grid *grid = &drawing.grid;
	struct arena *arena = arena_open();
	struct buf facts = { 0 };
	double width, bottom, lines_bottom;
	bool below;

	assert(layout->kind == LAYOUT_MEMORY);
	draw_grid_init(grid, layout, CELL_WIDTH, CELL_HEIGHT);
	count_lines(&drawing);
	drawing.first = arena_array(arena, int64_t, (size_t)(drawing.n_lines * BANKS));
	for (int64_t w = 0; w < drawing.n_lines * BANKS; w++)
		drawing.first[w] = -1;
	width = place_parts(&drawing, &below);
	buf_printf(&facts, "shared, %s, %lld bytes a version · %s", layout_kind_text(layout),
	           (long long)layout->n_bytes,
	           grid->with_text ? "bank and byte offset in each cell"
	                           : "offset and bank as hover text");
	add_style(&drawing);
	grid->y = (int64_t)add_legend(&drawing,
	                              draw_heading(&drawing.svg, tile, width, buf_cstr(&facts)) + 2) +
	          46;
	svg_text(&drawing.svg, (double)grid->x, (double)grid->y - 20, "head", "elements by bank");
	for (int64_t r = 0; r < grid->shown_rows; r++)
		add_row(&drawing, r);
	draw_grid_axes(&drawing.svg, grid);
	bottom = (double)(grid->y + grid->shown_rows * grid->cell_height);
	drawing.lines_y = below ? (int64_t)bottom + 64 : grid->y;
	add_lines(&drawing);
	lines_bottom = (double)(drawing.lines_y + drawing.n_lines * WORD_HEIGHT);
	svg_finish(&drawing.svg, out, width,
	           (lines_bottom > bottom ? lines_bottom : bottom) + DRAW_MARGIN, tile->name);
	buf_free(&facts);
	arena_close(arena);
}
