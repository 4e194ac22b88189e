/*
 * warp_read_internal: what the files of the warp program's reader share.
 *
 * warp_scan.c       characters, words, numbers, expressions, names
 * warp_read.c       the header, and the entry
 * warp_read_body.c  instructions and blocks
 *
 * A function that gives false or NULL has reported why (E0601, E0602, E0603).
 */
#ifndef TL_LOWER_WARP_READ_INTERNAL_H
#define TL_LOWER_WARP_READ_INTERNAL_H

#include "codegen/lower/warp.h"

/* The largest kernel line that `@line` may name. */
enum { WREAD_MAX_LINE = 4 << 20 };

enum thing_kind { THING_REG, THING_SHARED, THING_PARAM, THING_TABLE };

/* What a declared name stands for. */
struct thing {
	enum thing_kind kind;
	union {
		const struct wreg *reg;
		const struct wshared *shared;
		const struct buffer *buffer;
		const struct int_table *table;
	} is;
};

struct scope_var {
	sym_t name;
	const struct var *var;
};

struct wreader {
	struct cx *cx;
	struct warp_program *program;
	struct expr_names names;
	uint32_t file;
	struct str text;
	uint32_t at;
	uint32_t kernel_file; /* 0: no line was given */
	const char *kernel_path;
	struct map things;              /* name -> struct thing * */
	vec_of(struct scope_var) scope; /* symbols, scalars, then loops outside in */
	int depth;
	/* The line ahead: where it begins behind its indentation; the comment lines above it. */
	bool has_line;
	uint32_t indent;
	const char *comment;
};

/* Reports from `begin` to where the reader stands. */
bool wread_fail(struct wreader *reader, enum diag_code code, uint32_t begin, const char *format,
                ...) __attribute__((format(printf, 4, 5)));

int wread_peek(const struct wreader *reader); /* the next byte; -1 at the end */
void wread_skip_blanks(struct wreader *reader);
void wread_skip_line(struct wreader *reader);
/* A word of letters, digits, `_` and `.`; empty when there is none. */
struct str wread_word(struct wreader *reader);
uint32_t wread_offset_of(const struct wreader *reader, struct str word);
bool wread_take(struct wreader *reader, const char *token); /* when it is next */
bool wread_expect(struct wreader *reader, const char *token);
bool wread_int(struct wreader *reader, int64_t *value);
/* `word N` with N >= min. */
bool wread_named_int(struct wreader *reader, const char *word, int64_t min, int64_t *value);
const struct expr *wread_expr(struct wreader *reader);
bool wread_name(struct wreader *reader, sym_t *name);
bool wread_type(struct wreader *reader, struct dtype *type);
/* `@line` if it is there, and the end of the line. */
bool wread_line_end(struct wreader *reader, struct span *span);
/* Goes to the next line with something on it, collecting comments; false at the end of the text. */
bool wread_next_line(struct wreader *reader);

struct thing *wread_find_thing(const struct wreader *reader, sym_t name);
const struct var *wread_find_var(const struct wreader *reader, sym_t name);
/* For struct expr_names: what a name, or a name with an index, means. */
const struct expr *wread_resolve(void *user, sym_t name, const struct expr *const *index,
                                 uint32_t n_index);
/* A name for a declaration; false when it is taken (E0603). */
bool wread_new_name(struct wreader *reader, sym_t *name);

/* Lines of one indentation, at least `min_indent`, into the block. */
bool wread_block(struct wreader *reader, struct wblock *block, uint32_t min_indent);

#endif
