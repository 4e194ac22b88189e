/*
 * table: aligned columns for a terminal. Cells are appended row by row; widths are known when it is
 * printed.
 */
#ifndef TL_CLI_TABLE_H
#define TL_CLI_TABLE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>

enum table_style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GOOD, STYLE_BAD, STYLE_WARN };

/* `text` in its colour; as it is without `colour`. */
void style_text(struct buf *out, enum table_style style, bool colour, const char *text);
/* 1234567 as "1,234,567"; negative as "?" (not known). The result is in the arena. */
const char *count_text(struct arena *arena, int64_t value);
/* Characters of UTF-8 text. */
uint32_t text_width(const char *text);

struct table_cell {
	const char *text;
	enum table_style style;
	bool is_note; /* a line of its own below the row */
};

struct table {
	struct arena *arena;
	const char *columns; /* one letter a column: 'l' left, 'r' right aligned */
	uint32_t n_columns;
	vec_of(struct table_cell) cells; /* the first row is the heading */
};

/* The heading's cells follow as a row like any other. */
void table_init(struct table *table, struct arena *arena, const char *columns);
void table_add(struct table *table, enum table_style style, const char *text); /* borrows */
void table_addf(struct table *table, enum table_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A line below the row that was added last. */
void table_note(struct table *table, enum table_style style, const char *text);
/* Each row indented by two blanks; the heading dim. */
void table_print(struct buf *out, const struct table *table, bool colour);

#endif
