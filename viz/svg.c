/*
 * Numbers are written by hand where there are many of them: a drawing of 128 x 256 cells has
 * 200,000. A cell is a path with its hover text,
 *
 *     <path class="c13" d="M36 0h36v26h-36z"><title>[11, 2] thread 13 (warp 0, lane 13) slot
 * 2</title></path>
 *
 * in the group of its row, which is moved to its place, so that a cell costs about 100 bytes.
 */
#include "viz/svg.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PARAGRAPH_LINE = 14 };

/* Rules that every drawing has. */
static const char base_style[] =
	"text{font-family:Helvetica,Arial,sans-serif;fill:#1f2430}"
	".title{font-size:17px;font-weight:bold}"
	".sub{font-size:12px;fill:#555c6b}"
	".mono{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px;fill:#39404f}"
	".axis{font-size:9px;fill:#757c8a;text-anchor:middle}"
	".axisl{font-size:9px;fill:#757c8a;text-anchor:end}"
	".head{font-size:12px;font-weight:bold}"
	".frame{fill:none;stroke:#39404f;stroke-width:1}"
	".page{fill:#fff}";

/* XML 1.0, section 2.2: control characters but tab and newline have no place in a document. */
void svg_escape(struct buf *out, const char *text)
{
	struct str str = str_of(text);

	for (uint32_t at = 0; at < str.n;) {
		uint32_t begin = at;
		uint32_t c = str_char_at(str, &at);

		if (c == '&')
			buf_text(out, "&amp;");
		else if (c == '<')
			buf_text(out, "&lt;");
		else if (c == '>')
			buf_text(out, "&gt;");
		else if (c == '"')
			buf_text(out, "&quot;");
		else if (c == 0xFFFD || c == 0xFFFE || c == 0xFFFF)
			buf_text(out, "\xEF\xBF\xBD");
		else if (c >= ' ' && c != 0x7F)
			buf_add(out, str.p + begin, at - begin);
	}
}

void svg_int(struct buf *out, int64_t value)
{
	char digits[24];
	int at = (int)sizeof(digits);
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		digits[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (value < 0)
		digits[--at] = '-';
	buf_add(out, digits + at, sizeof(digits) - (size_t)at);
}

/* At most one decimal, and none for whole numbers. */
static void add_length(struct buf *out, double value)
{
	int64_t tenths = (int64_t)floor(value * 10 + 0.5);

	if (tenths % 10 == 0)
		svg_int(out, tenths / 10);
	else
		buf_printf(out, "%s%lld.%lld", tenths < 0 ? "-" : "",
		           (long long)(tenths < 0 ? -tenths : tenths) / 10,
		           (long long)(tenths < 0 ? -tenths : tenths) % 10);
}

/* Anchors and sizes come from the class. */
void svg_text(struct svg *svg, double x, double y, const char *class, const char *text)
{
	struct buf *body = &svg->body;

	buf_text(body, "<text x=\"");
	add_length(body, x);
	buf_text(body, "\" y=\"");
	add_length(body, y);
	buf_printf(body, "\" class=\"%s\">", class);
	svg_escape(body, text);
	buf_text(body, "</text>\n");
}

/* A word that is longer than a line is cut. */
double svg_paragraph(struct svg *svg, double x, double y, uint32_t n_chars, const char *text)
{
	while (*text) {
		size_t n = strlen(text), cut;
		struct buf line = { 0 };

		if (n > n_chars) {
			for (cut = n_chars; cut > 0 && text[cut] != ' '; cut--)
				;
			n = cut > 0 ? cut : n_chars;
		}
		buf_add(&line, text, n);
		svg_text(svg, x, y, "mono", buf_cstr(&line));
		buf_free(&line);
		y += PARAGRAPH_LINE;
		text += n;
		text += strspn(text, " ");
	}
	return y;
}

void svg_rect(struct svg *svg, struct svg_box box, const char *class)
{
	struct buf *body = &svg->body;

	buf_text(body, "<rect x=\"");
	add_length(body, box.x);
	buf_text(body, "\" y=\"");
	add_length(body, box.y);
	buf_text(body, "\" width=\"");
	add_length(body, box.width);
	buf_text(body, "\" height=\"");
	add_length(body, box.height);
	buf_printf(body, "\" class=\"%s\"/>\n", class);
}

void svg_cell_open(struct svg *svg, const struct svg_cell *cell)
{
	struct buf *body = &svg->body;

	assert(cell->width > 0 && cell->height > 0 && cell->number >= 0);
	buf_text(body, "<path class=\"");
	buf_char(body, cell->letter);
	svg_int(body, cell->number);
	buf_text(body, "\" d=\"M");
	svg_int(body, cell->x);
	buf_text(body, " 0h");
	svg_int(body, cell->width);
	buf_char(body, 'v');
	svg_int(body, cell->height);
	buf_text(body, "h-");
	svg_int(body, cell->width);
	buf_text(body, "z\"><title>");
}

void svg_cell_close(struct svg *svg)
{
	buf_text(&svg->body, "</title></path>\n");
}

/* The head holds the size and the style, which are complete only now. */
void svg_finish(struct svg *svg, struct buf *out, double width, double height, const char *title)
{
	long w = lround(ceil(width)), h = lround(ceil(height));

	assert(w > 0 && h > 0);
	buf_printf(out,
	           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%ld\" height=\"%ld\" viewBox=\"0 "
	           "0 %ld %ld\">\n<title>",
	           w, h, w, h);
	svg_escape(out, title);
	buf_printf(out, "</title>\n<style>%s%s</style>\n", base_style, buf_cstr(&svg->style));
	buf_printf(out, "<rect width=\"%ld\" height=\"%ld\" class=\"page\"/>\n", w, h);
	buf_add(out, buf_cstr(&svg->body), svg->body.n);
	buf_text(out, "</svg>\n");
	buf_free(&svg->body);
	buf_free(&svg->style);
}

/* Linear light to an sRGB byte (IEC 61966-2-1). */
static uint32_t srgb_byte(double linear)
{
	double value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;

	value = value < 0 ? 0 : value > 1 ? 1 : value;
	return (uint32_t)lround(value * 255);
}

/* OKLCH to OKLab to LMS to linear sRGB; colours outside sRGB are clipped. */
uint32_t svg_colour(double lightness, double chroma, double hue_degrees)
{
	double hue = hue_degrees * 3.14159265358979323846 / 180;
	double a = chroma * cos(hue), b = chroma * sin(hue);
	double l = lightness + 0.3963377774 * a + 0.2158037573 * b;
	double m = lightness - 0.1055613458 * a - 0.0638541728 * b;
	double s = lightness - 0.0894841775 * a - 1.2914855480 * b;

	l = l * l * l;
	m = m * m * m;
	s = s * s * s;
	return srgb_byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) << 16 |
	       srgb_byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) << 8 |
	       srgb_byte(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
}
