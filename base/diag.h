/*
 * diag: source positions and what the user is told.
 *
 * A span is two byte offsets into a source; line and column are computed only when a
 * diagnostic is printed.  All codes stand in diag.def.  A function that returns false or
 * NULL has reported why.  Three kinds of failure never mix: the user's input (error), our
 * own mistake (diag_bug), the machine (env errors, codes E07xx).
 *
 * Text form:
 *     gemm.py:30:17: error[E0302]: inner sizes of gemm differ: 64 and 32
 *        30 |     T.gemm(A_shared, B_shared, C_local)
 *           |            ^~~~~~~~
 *     gemm.py:20:9: note: A_shared is float16 (128, 64)
 *     help: write transpose_B=True
 */
#ifndef TL_BASE_DIAG_H
#define TL_BASE_DIAG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"

/* Half-open byte range in source `file` (index + 1 into the source set; 0: no position). */
struct span {
	uint32_t file;
	uint32_t begin, end;
};

struct source {
	const char *path; /* as the user gave it */
	struct str text;
	vec_of(uint32_t) line_begins; /* offset of each line's first byte */
};

struct source_set {
	vec_of(struct source *) sources;
};

/* Registers text (copied into the arena) and returns its file number (1, 2, ...). */
uint32_t source_add(struct arena *arena, struct source_set *set, const char *path, struct str text);
const struct source *source_get(const struct source_set *set, uint32_t file);

struct line_column {
	uint32_t line;   /* 1-based; 0 when the span has no file */
	uint32_t column; /* 1-based, in characters (UTF-8), a tab counts as one */
};
struct line_column source_locate(const struct source_set *set, struct span span);
/* 1-based line of the span's begin, 0 when it has none. */
uint32_t source_line(const struct source_set *set, struct span span);
struct span span_join(struct span a, struct span b); /* from a's begin to b's end */

enum severity { SEVERITY_NOTE, SEVERITY_WARNING, SEVERITY_ERROR };

enum diag_code {
#define DIAG(code, severity, title, explain) DIAG_##code,
#include "base/diag.def"
#undef DIAG
	N_DIAG_CODES
};

struct diag_attachment {
	bool is_help; /* else a note */
	struct span span;
	const char *text;
};

struct diag {
	enum diag_code code;
	enum severity severity;
	struct span span;
	const char *message;
	vec_of(struct diag_attachment) attachments;
};

struct diag_list {
	struct arena *arena;
	vec_of(struct diag *) items;
	uint32_t n_errors;
	uint32_t n_dropped; /* more than the limit of 200 were reported */
};

/* Adds a diagnostic with the severity of its table row. */
void diag_report(struct diag_list *diags, enum diag_code code, struct span span, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
/* What has been reported so far. */
struct diag_mark {
	uint32_t n_items, n_errors;
};
struct diag_mark diag_mark(const struct diag_list *diags);
/* Errors reported since the mark become warnings with the code `code`. */
void diag_soften(struct diag_list *diags, struct diag_mark mark, enum diag_code code);
/* Forgets what was reported since the mark: something else says better what is wrong. */
void diag_rewind(struct diag_list *diags, struct diag_mark mark);
/* Attach to the diagnostic reported last: another place, or the edit that mends it. */
void diag_note(struct diag_list *diags, struct span span, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void diag_help(struct diag_list *diags, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

const char *diag_code_text(enum diag_code code); /* "E0302" */
const char *diag_code_title(enum diag_code code);
const char *diag_code_explain(enum diag_code code); /* for `tilelayout explain` */
/* False when `text` ("E0302", any case) names no code. */
bool diag_code_find(const char *text, enum diag_code *code);
const char *severity_text(enum severity severity);

/* All diagnostics in report order; ANSI colours when `colour`. */
void diag_print(struct buf *out, const struct diag_list *diags, const struct source_set *sources,
                bool colour);

/* A mistake of ours: prints file:line of the C source and how to report it, exits with 4. */
_Noreturn void diag_bug(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define BUG(...) diag_bug(__FILE__, __LINE__, __VA_ARGS__)

/*
 * The context that every pass gets: where to allocate, how names are spelled, where to complain.
 */
struct cx {
	struct arena *arena;
	struct interner *names;
	struct source_set sources;
	struct diag_list diags;
};

void cx_init(struct cx *cx, struct arena *arena);

#endif
