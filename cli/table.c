/*
 * Cells are kept as one list, row after row; the heading is the first row. Widths are counted in
 * characters, colours are added when a cell is printed, so that they do not count.
 *
 *     table_init(&table, arena, "lr");             buffer      bytes
 *     table_add(&table, STYLE_PLAIN, "buffer");    A_shared   16,384
 *     table_add(&table, STYLE_PLAIN, "bytes");       offset = i*128 + j*2
 *     table_add(&table, STYLE_PLAIN, "A_shared");
 *     table_add(&table, STYLE_PLAIN, "16,384");
 *     table_note(&table, STYLE_DIM, "offset = i*128 + j*2");
 */
#include "cli/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 16, INDENT = 2, GAP = 2 };

void style_text(struct buf *out, enum table_style style, bool colour, const char *text)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "",        [STYLE_BOLD] = "\033[1m", [STYLE_DIM] = "\033[2m",
		[STYLE_GOOD] = "\033[32m", [STYLE_BAD] = "\033[31m", [STYLE_WARN] = "\033[33m",
	};

	if (!colour || style == STYLE_PLAIN) {
		buf_text(out, text);
		return;
	}
	buf_printf(out, "%s%s\033[0m", codes[style], text);
}

const char *count_text(struct arena *arena, int64_t value)
{
	char digits[32], *text = arena_alloc(arena, 48), *at = text;
	int n = snprintf(digits, sizeof(digits), "%lld", (long long)value);

	if (value < 0)
		return "?";
	for (int i = 0; i < n; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	return text;
}

uint32_t text_width(const char *text)
{
	uint32_t n = 0;

	for (; *text; text++)
		n += (*text & 0xC0) != 0x80;
	return n;
}

void table_init(struct table *table, struct arena *arena, const char *columns)
{
	*table = (struct table){ .arena = arena,
		                     .columns = columns,
		                     .n_columns = (uint32_t)strlen(columns) };
	assert(table->n_columns > 0 && table->n_columns <= MAX_COLUMNS);
}

void table_add(struct table *table, enum table_style style, const char *text)
{
	vec_push(table->arena, &table->cells, (struct table_cell){ text, style, false });
}

void table_addf(struct table *table, enum table_style style, const char *format, ...)
{
	char *made = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&made, format, args) < 0)
		abort();
	va_end(args);
	table_add(table, style, arena_strndup(table->arena, made, strlen(made)));
	free(made);
}

void table_note(struct table *table, enum table_style style, const char *text)
{
	assert(table->cells.n >= table->n_columns && "a note stands below a row");
	vec_push(table->arena, &table->cells, (struct table_cell){ text, style, true });
}

static void add_blanks(struct buf *out, uint32_t n)
{
	buf_printf(out, "%*s", (int)n, "");
}

/* The text in its colour, filled up with blanks on its free side. */
static void print_cell(struct buf *out, const struct table_cell *cell, uint32_t width, bool right,
                       bool colour)
{
	uint32_t n = text_width(cell->text);

	assert(n <= width);
	if (right)
		add_blanks(out, width - n);
	style_text(out, cell->style, colour, cell->text);
	if (!right)
		add_blanks(out, width - n);
}

/* Blanks at the end of a line are taken back; colours end before them. */
static void end_line(struct buf *out)
{
	while (out->n > 0 && out->p[out->n - 1] == ' ')
		out->p[--out->n] = '\0';
	buf_char(out, '\n');
}

/* One pass for the widths, one for the lines. */
void table_print(struct buf *out, const struct table *table, bool colour)
{
	uint32_t widths[MAX_COLUMNS] = { 0 }, column = 0;

	for (uint32_t i = 0; i < table->cells.n; i++) {
		const struct table_cell *cell = &table->cells.p[i];

		if (cell->is_note)
			continue;
		if (text_width(cell->text) > widths[column])
			widths[column] = text_width(cell->text);
		column = (column + 1) % table->n_columns;
	}
	assert(column == 0 && "the last row is complete");
	for (uint32_t i = 0; i < table->cells.n; i++) {
		struct table_cell cell = table->cells.p[i];

		if (cell.is_note) {
			assert(column == 0);
			add_blanks(out, INDENT);
			style_text(out, cell.style, colour, cell.text);
			buf_char(out, '\n');
			continue;
		}
		add_blanks(out, column == 0 ? INDENT : GAP);
		cell.style = i < table->n_columns ? STYLE_DIM : cell.style;
		print_cell(out, &cell, widths[column], table->columns[column] == 'r', colour);
		column = (column + 1) % table->n_columns;
		if (column == 0)
			end_line(out);
	}
}
