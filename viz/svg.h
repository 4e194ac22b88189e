/*
 * svg: a small writer of SVG text: shapes go to a body, the head follows when the size is known.
 *
 * No script and no outside resource: hover text is <title>, looks are CSS classes in one <style>.
 * All text is escaped here and nowhere else. Lengths are pixels; coordinates have at most one
 * decimal.
 */
#ifndef TL_VIZ_SVG_H
#define TL_VIZ_SVG_H

#include "base/buf.h"

#include <stdint.h>

struct svg {
	struct buf body;
	struct buf style; /* CSS rules of this drawing */
};

/* Text for element content or a quoted attribute; control characters are dropped, bad UTF-8 becomes
 * U+FFFD. */
void svg_escape(struct buf *out, const char *text);

/* A decimal number, faster than printf for the tens of thousands of cells. */
void svg_int(struct buf *out, int64_t value);

/* Text at (x, y) on the baseline with CSS class `class`. */
void svg_text(struct svg *svg, double x, double y, const char *class, const char *text);
/* `text` broken at spaces into lines of at most `n_chars`; gives the y behind the last. */
double svg_paragraph(struct svg *svg, double x, double y, uint32_t n_chars, const char *text);

struct svg_box {
	double x, y, width, height;
};
/* A rectangle of CSS class `class`. */
void svg_rect(struct svg *svg, struct svg_box box, const char *class);

/*
 * A cell of a row group: a filled rectangle of class <letter><number> with hover text; open leaves
 * the element open so that the caller writes the title's text (no escaping needed for digits and
 * plain words) before close.
 */
struct svg_cell {
	int64_t x, width, height;
	char letter;
	int64_t number;
};
void svg_cell_open(struct svg *svg, const struct svg_cell *cell);
void svg_cell_close(struct svg *svg);

/* The whole document to `out`; frees the body and style. */
void svg_finish(struct svg *svg, struct buf *out, double width, double height, const char *title);

/* 0xRRGGBB of a colour in OKLCH (B. Ottosson, "A perceptual color space for image processing",
 * 2020): even steps of hue look even. */
uint32_t svg_colour(double lightness, double chroma, double hue_degrees);

#endif
