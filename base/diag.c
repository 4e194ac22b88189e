/*
 * Reporting collects; printing happens once, at the end. What is printed may come from hostile
 * files: control characters, direction overrides and broken UTF-8 are replaced, long lines are cut,
 * and any span is safe.
 *
 * In the file's order: the table of codes, sources (bytes to lines and columns), reporting, and the
 * printer:
 *
 *     gemm.tl:12:9: error[E0303]: ...      print_item: position, severity, code, message
 *        12 |         T.copy(A, B)          print_excerpt: the line
 *           |         ^~~~~~~~~~~~          and the caret under the span's part of it
 *     gemm.tl:7:5: note: ...               attachments, in the order in which they came
 *     help: ...
 */
#include "base/diag.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_DIAGS = 200, MAX_EXCERPT_BYTES = 160 };

/* A row of diag.def: what `tilelayout explain CODE` shows, and how severe the code is by itself. */
struct code_row {
	const char *code;
	enum severity severity;
	const char *title;
	const char *explain;
};

#define TABLE_error SEVERITY_ERROR
#define TABLE_warning SEVERITY_WARNING
#define TABLE_note SEVERITY_NOTE
#define TABLE_SEVERITY_ERROR SEVERITY_ERROR
#define TABLE_SEVERITY_WARNING SEVERITY_WARNING

static const struct code_row code_table[N_DIAG_CODES + 1] = {
#define DIAG(code, severity, title, explain) { #code, TABLE_##severity, title, explain },
#include "base/diag.def"
#undef DIAG
	{ "", SEVERITY_NOTE, "", "" },
};

/*
 * Lines end at "\n", "\r\n" or a lone "\r", as in Python (reference, "Physical lines"). The text is
 * copied: spans stay valid when the caller's buffer goes.
 */
uint32_t source_add(struct arena *arena, struct source_set *set, const char *path, struct str text)
{
	struct source *source = arena_new(arena, struct source);

	source->path = arena_strndup(arena, path, strlen(path));
	source->text = (struct str){ arena_strndup(arena, text.p, text.n), text.n };
	vec_push(arena, &source->line_begins, 0);
	for (uint32_t i = 0; i < text.n; i++) {
		bool lone_return = text.p[i] == '\r' && (i + 1 == text.n || text.p[i + 1] != '\n');

		if (text.p[i] == '\n' || lone_return)
			vec_push(arena, &source->line_begins, i + 1);
	}
	vec_push(arena, &set->sources, source);
	return set->sources.n;
}

/* File 0 is "nowhere": spans of things that stand in no file. */
const struct source *source_get(const struct source_set *set, uint32_t file)
{
	return file == 0 || file > set->sources.n ? NULL : set->sources.p[file - 1];
}

/* Index of the line that holds byte `at`: the last one that begins at or before it. */
static uint32_t line_index(const struct source *source, uint32_t at)
{
	uint32_t low = 0, high = source->line_begins.n;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (source->line_begins.p[middle] <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The line's text without its end. */
static struct str line_text(const struct source *source, uint32_t line)
{
	uint32_t begin = source->line_begins.p[line];
	uint32_t end =
		line + 1 < source->line_begins.n ? source->line_begins.p[line + 1] : source->text.n;

	while (end > begin && (source->text.p[end - 1] == '\n' || source->text.p[end - 1] == '\r'))
		end--;
	return (struct str){ source->text.p + begin, end - begin };
}

/* Columns count characters, not bytes: an editor jumps there. A span past the end is at the end. */
struct line_column source_locate(const struct source_set *set, struct span span)
{
	const struct source *source = source_get(set, span.file);
	struct line_column where = { 0, 0 };
	uint32_t line, at, end;

	if (!source)
		return where;
	end = span.begin < source->text.n ? span.begin : source->text.n;
	line = line_index(source, end);
	at = source->line_begins.p[line];
	where.line = line + 1;
	where.column = 1;
	while (at < end) {
		str_char_at(source->text, &at);
		where.column++;
	}
	return where;
}

uint32_t source_line(const struct source_set *set, struct span span)
{
	const struct source *source = source_get(set, span.file);

	return source ? line_index(source, span.begin) + 1 : 0;
}

/* Spans of two files cannot be one: the first stays. */
struct span span_join(struct span a, struct span b)
{
	if (a.file == 0)
		return b;
	if (b.file != a.file)
		return a;
	return (struct span){ a.file, a.begin, b.end > a.end ? b.end : a.end };
}

/* The text of a format and its arguments, in the arena. */
static const char *format_text(struct arena *arena, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static const char *format_text(struct arena *arena, const char *format, va_list args)
{
	char *text = NULL;
	const char *copy;
	int n = vasprintf(&text, format, args);

	if (n < 0)
		abort();
	copy = arena_strndup(arena, text, (size_t)n);
	free(text);
	return copy;
}

/*
 * Beyond the limit diagnostics are only counted: one mistake must not bury the others, nor fill
 * the memory.
 */
void diag_report(struct diag_list *diags, enum diag_code code, struct span span, const char *format,
                 ...)
{
	struct diag *diag;
	va_list args;

	assert(code < N_DIAG_CODES);
	if (code_table[code].severity == SEVERITY_ERROR)
		diags->n_errors++;
	if (diags->items.n == MAX_DIAGS) {
		diags->n_dropped++;
		return;
	}
	diag = arena_new(diags->arena, struct diag);
	diag->code = code;
	diag->severity = code_table[code].severity;
	diag->span = span;
	va_start(args, format);
	diag->message = format_text(diags->arena, format, args);
	va_end(args);
	vec_push(diags->arena, &diags->items, diag);
}

/* A later diag_soften reaches what was reported after this point. */
struct diag_mark diag_mark(const struct diag_list *diags)
{
	return (struct diag_mark){ diags->items.n, diags->n_errors };
}

/*
 * A refusal of one part (say of code generation) becomes a warning of the whole: messages, notes
 * and positions stay, the code is the softer one, and errors count as before the mark.
 */
void diag_soften(struct diag_list *diags, struct diag_mark mark, enum diag_code code)
{
	assert(code < N_DIAG_CODES && code_table[code].severity == SEVERITY_WARNING);
	for (uint32_t i = mark.n_items; i < diags->items.n; i++) {
		struct diag *diag = diags->items.p[i];

		if (diag->severity != SEVERITY_ERROR)
			continue;
		diag->severity = SEVERITY_WARNING;
		diag->code = code;
	}
	diags->n_errors = mark.n_errors;
}

void diag_rewind(struct diag_list *diags, struct diag_mark mark)
{
	assert(mark.n_items <= diags->items.n && mark.n_errors <= diags->n_errors);
	diags->items.n = mark.n_items;
	diags->n_errors = mark.n_errors;
}

/* Attaches to the last diagnostic, unless that one was dropped. */
static void attach(struct diag_list *diags, struct diag_attachment attachment)
{
	assert(diags->items.n > 0 && "a note needs a diagnostic");
	if (diags->n_dropped == 0)
		vec_push(diags->arena, &vec_last(&diags->items)->attachments, attachment);
}

void diag_note(struct diag_list *diags, struct span span, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	attach(diags, (struct diag_attachment){ false, span, format_text(diags->arena, format, args) });
	va_end(args);
}

void diag_help(struct diag_list *diags, const char *format, ...)
{
	struct span nowhere = { 0, 0, 0 };
	va_list args;

	va_start(args, format);
	attach(diags,
	       (struct diag_attachment){ true, nowhere, format_text(diags->arena, format, args) });
	va_end(args);
}

const char *diag_code_text(enum diag_code code)
{
	assert(code < N_DIAG_CODES);
	return code_table[code].code;
}

const char *diag_code_title(enum diag_code code)
{
	assert(code < N_DIAG_CODES);
	return code_table[code].title;
}

const char *diag_code_explain(enum diag_code code)
{
	assert(code < N_DIAG_CODES);
	return code_table[code].explain;
}

/* Letters of either case: people type e0405. */
bool diag_code_find(const char *text, enum diag_code *code)
{
	for (size_t i = 0; code_table[i].code[0]; i++) {
		if (strcasecmp(code_table[i].code, text) == 0) {
			*code = (enum diag_code)i;
			return true;
		}
	}
	return false;
}

const char *severity_text(enum severity severity)
{
	switch (severity) {
	case SEVERITY_NOTE:
		return "note";
	case SEVERITY_WARNING:
		return "warning";
	case SEVERITY_ERROR:
		return "error";
	}
	BUG("severity %d", (int)severity);
}

/* What print needs at every step. */
struct printer {
	struct buf *out;
	const struct source_set *sources;
	bool colour;
};

static const char *const style_off = "\033[0m";
static const char *const style_bold = "\033[1m";
static const char *const style_caret = "\033[1;32m";

/* An ANSI sequence, on a terminal only. */
static void style(const struct printer *printer, const char *sequence)
{
	if (printer->colour)
		buf_text(printer->out, sequence);
}

/* Colour of the word before a message. */
static const char *severity_style(enum severity severity)
{
	switch (severity) {
	case SEVERITY_NOTE:
		return "\033[1;36m";
	case SEVERITY_WARNING:
		return "\033[1;35m";
	case SEVERITY_ERROR:
		return "\033[1;31m";
	}
	BUG("severity %d", (int)severity);
}

/* Text from outside: control characters (a terminal would obey them) become '?'. */
static void add_clean(struct buf *out, struct str text, bool keep_newlines)
{
	uint32_t at = 0;

	while (at < text.n) {
		uint32_t begin = at;
		uint32_t c = str_char_at(text, &at);
		bool control = c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xfffd ||
		               (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);

		if (c == '\t' || (c == '\n' && keep_newlines) || !control)
			buf_add(out, text.p + begin, at - begin);
		else
			buf_char(out, '?');
	}
}

/* Terminal columns of a character: 0 for combining marks, 2 for East Asian wide ones. */
static uint32_t char_columns(uint32_t c)
{
	if ((c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200d) || (c >= 0xfe00 && c <= 0xfe0f))
		return 0;
	if ((c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
	    (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
	    (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
	    (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd))
		return 2;
	return 1;
}

/* Blanks as wide as the first `to` bytes of `text`; tabs stay tabs, so that both lines align. */
static void add_blanks(struct buf *out, struct str text, uint32_t to)
{
	uint32_t at = 0;

	while (at < to) {
		uint32_t c = str_char_at(text, &at);

		if (c == '\t')
			buf_char(out, '\t');
		for (uint32_t i = c == '\t' ? 0 : char_columns(c); i > 0; i--)
			buf_char(out, ' ');
	}
}

/* A caret under text[begin] and tildes up to `end`. */
static void add_caret(struct buf *out, struct str text, uint32_t begin, uint32_t end)
{
	uint32_t at = begin, columns = 0;

	while (at < end)
		columns += char_columns(str_char_at(text, &at));
	buf_char(out, '^');
	for (uint32_t i = 1; i < columns; i++)
		buf_char(out, '~');
}

/*
 * Moves `at` back to the first byte of a character; at most three bytes, as text may be no UTF-8.
 */
static uint32_t char_begin(struct str text, uint32_t at)
{
	for (int i = 0; i < 3 && at > 0 && at < text.n; i++) {
		if (((unsigned char)text.p[at] & 0xc0) != 0x80)
			break;
		at--;
	}
	return at;
}

/* The part [*first, *last) of a line that is shown: all of it, or what surrounds `begin`. */
static void choose_window(struct str line, uint32_t begin, uint32_t *first, uint32_t *last)
{
	*first = 0;
	*last = line.n;
	if (line.n <= MAX_EXCERPT_BYTES)
		return;
	if (begin > MAX_EXCERPT_BYTES / 2)
		*first = char_begin(line, begin - MAX_EXCERPT_BYTES / 2);
	if (line.n - *first > MAX_EXCERPT_BYTES)
		*last = char_begin(line, *first + MAX_EXCERPT_BYTES);
}

/* The source line and the caret; of a very long line only the part around it. */
static void print_excerpt(const struct printer *printer, struct span span)
{
	const struct source *source = source_get(printer->sources, span.file);
	uint32_t line = line_index(source, span.begin);
	uint32_t offset = source->line_begins.p[line];
	struct str text = line_text(source, line);
	uint32_t begin = span.begin - offset < text.n ? span.begin - offset : text.n;
	uint32_t end = span.end > span.begin ? span.end - offset : begin;
	uint32_t first, last;
	struct str shown;

	choose_window(text, begin, &first, &last);
	if (end > last)
		end = last;
	shown = (struct str){ text.p + first, last - first };
	buf_printf(printer->out, "%5u | ", line + 1);
	add_clean(printer->out, shown, false);
	buf_text(printer->out, "\n      | ");
	add_blanks(printer->out, shown, begin - first);
	style(printer, style_caret);
	add_caret(printer->out, text, begin, end);
	style(printer, style_off);
	buf_char(printer->out, '\n');
}

/* "path:line:column: ", or nothing without a position. */
static void print_position(const struct printer *printer, struct span span)
{
	const struct source *source = source_get(printer->sources, span.file);
	struct line_column where = source_locate(printer->sources, span);

	if (!source)
		return;
	style(printer, style_bold);
	add_clean(printer->out, str_of(source->path), false);
	buf_printf(printer->out, ":%u:%u: ", where.line, where.column);
	style(printer, style_off);
}

/* Position, label and text; without `code` the label stands alone. */
static void print_item(const struct printer *printer, struct span span, enum severity severity,
                       const char *code, const char *text)
{
	print_position(printer, span);
	style(printer, severity_style(severity));
	buf_text(printer->out, severity_text(severity));
	if (code)
		buf_printf(printer->out, "[%s]", code);
	buf_text(printer->out, ": ");
	style(printer, style_off);
	add_clean(printer->out, str_of(text), true);
	buf_char(printer->out, '\n');
}

/* One diagnostic with its notes and helps, in the order in which they were attached. */
static void print_diag(const struct printer *printer, const struct diag *diag)
{
	print_item(printer, diag->span, diag->severity, diag_code_text(diag->code), diag->message);
	if (source_get(printer->sources, diag->span.file))
		print_excerpt(printer, diag->span);
	for (uint32_t i = 0; i < diag->attachments.n; i++) {
		const struct diag_attachment *attachment = &diag->attachments.p[i];

		if (attachment->is_help) {
			style(printer, style_caret);
			buf_text(printer->out, "help: ");
			style(printer, style_off);
			add_clean(printer->out, str_of(attachment->text), true);
			buf_char(printer->out, '\n');
		} else {
			print_item(printer, attachment->span, SEVERITY_NOTE, NULL, attachment->text);
		}
	}
}

void diag_print(struct buf *out, const struct diag_list *diags, const struct source_set *sources,
                bool colour)
{
	struct printer printer = { out, sources, colour };

	for (uint32_t i = 0; i < diags->items.n; i++)
		print_diag(&printer, diags->items.p[i]);
	if (diags->n_dropped)
		buf_printf(out, "note: %u more diagnostics are not shown\n", diags->n_dropped);
}

_Noreturn void diag_bug(const char *file, int line, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "tilelayout: a bug of ours at %s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nPlease report it with the command line, the kernel file and the output of "
	      "`tilelayout --version`.\n",
	      stderr);
	exit(4);
}

/* The context of one compilation: its names, sources and diagnostics all live in `arena`. */
void cx_init(struct cx *cx, struct arena *arena)
{
	*cx = (struct cx){ .arena = arena, .names = interner_open(arena) };
	cx->diags.arena = arena;
}
