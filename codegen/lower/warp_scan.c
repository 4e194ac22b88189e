/* Words, numbers, expressions and names of the warp program's text. */
#include "codegen/lower/warp_read_internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 256, TAB = 8 };

/* ---- scanning ---- */

bool wread_fail(struct wreader *reader, enum diag_code code, uint32_t begin, const char *format,
                ...)
{
	char message[512];
	uint32_t end = begin < reader->text.n ? begin + 1 : begin;
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	if (end < reader->at)
		end = reader->at;
	diag_report(&reader->cx->diags, code, (struct span){ reader->file, begin, end }, "%s", message);
	return false;
}

int wread_peek(const struct wreader *reader)
{
	return reader->at < reader->text.n ? (unsigned char)reader->text.p[reader->at] : -1;
}

void wread_skip_blanks(struct wreader *reader)
{
	while (wread_peek(reader) == ' ' || wread_peek(reader) == '\t' || wread_peek(reader) == '\r')
		reader->at++;
}

void wread_skip_line(struct wreader *reader)
{
	while (wread_peek(reader) != -1 && wread_peek(reader) != '\n')
		reader->at++;
	if (wread_peek(reader) == '\n')
		reader->at++;
}

static bool is_word_char(int c)
{
	return c == '_' || c == '.' || c >= 0x80 || (c > 0 && isalnum(c));
}

/* A word of letters, digits, `_` and `.`; empty when there is none. */
struct str wread_word(struct wreader *reader)
{
	uint32_t begin;

	wread_skip_blanks(reader);
	begin = reader->at;
	while (is_word_char(wread_peek(reader)))
		reader->at++;
	return (struct str){ reader->text.p + begin, reader->at - begin };
}

uint32_t wread_offset_of(const struct wreader *reader, struct str word)
{
	return (uint32_t)(word.p - reader->text.p);
}

/* Takes `token` when it is next. */
bool wread_take(struct wreader *reader, const char *token)
{
	size_t n = strlen(token);

	wread_skip_blanks(reader);
	if (reader->text.n - reader->at < n || memcmp(reader->text.p + reader->at, token, n) != 0)
		return false;
	if (is_word_char((unsigned char)token[0]) && reader->at + n < reader->text.n &&
	    is_word_char((unsigned char)reader->text.p[reader->at + n]))
		return false;
	reader->at += (uint32_t)n;
	return true;
}

bool wread_expect(struct wreader *reader, const char *token)
{
	if (wread_take(reader, token))
		return true;
	return wread_fail(reader, DIAG_E0601, reader->at, "expected `%s`", token);
}

bool wread_int(struct wreader *reader, int64_t *value)
{
	uint32_t begin;
	bool negative = wread_take(reader, "-");

	wread_skip_blanks(reader);
	begin = reader->at;
	*value = 0;
	for (; isdigit(wread_peek(reader)); reader->at++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_sub_overflow(*value, wread_peek(reader) - '0', value))
			return wread_fail(reader, DIAG_E0601, begin, "a number over 64 bits");
	if (reader->at == begin)
		return wread_fail(reader, DIAG_E0601, begin, "expected a number");
	if (!negative && __builtin_sub_overflow(0, *value, value))
		return wread_fail(reader, DIAG_E0601, begin, "a number over 64 bits");
	return true;
}

/* `word N` with N >= min. */
bool wread_named_int(struct wreader *reader, const char *word, int64_t min, int64_t *value)
{
	uint32_t begin;

	if (!wread_expect(reader, word))
		return false;
	wread_skip_blanks(reader);
	begin = reader->at;
	if (!wread_int(reader, value))
		return false;
	if (*value < min || *value > (int64_t)1 << 40)
		return wread_fail(reader, DIAG_E0601, begin, "%s is out of range", word);
	return true;
}

const struct expr *wread_expr(struct wreader *reader)
{
	wread_skip_blanks(reader);
	return expr_parse(reader->cx, reader->program->pool, &reader->names, reader->file, &reader->at);
}

bool wread_name(struct wreader *reader, sym_t *name)
{
	struct str word = wread_word(reader);

	if (!word.n || word.n >= MAX_NAME || isdigit((unsigned char)word.p[0]))
		return wread_fail(reader, DIAG_E0601, wread_offset_of(reader, word), "expected a name");
	*name = intern(reader->cx->names, word);
	return true;
}

bool wread_type(struct wreader *reader, struct dtype *type)
{
	struct str word = wread_word(reader);

	return dtype_parse(word, type) || wread_fail(reader, DIAG_E0601, wread_offset_of(reader, word),
	                                             "expected an element type");
}

/* `@line` if it is there, and the end of the line. */
bool wread_line_end(struct wreader *reader, struct span *span)
{
	int64_t line = 0;

	*span = (struct span){ 0 };
	if (wread_take(reader, "@")) {
		if (!wread_int(reader, &line))
			return false;
		if (line < 1 || line > WREAD_MAX_LINE)
			return wread_fail(reader, DIAG_E0601, reader->at, "a line number is out of range");
		span->file = reader->kernel_file;
		span->begin = span->end = (uint32_t)line - 1;
	}
	wread_skip_blanks(reader);
	if (wread_peek(reader) != '\n' && wread_peek(reader) != '#' && wread_peek(reader) != -1)
		return wread_fail(reader, DIAG_E0601, reader->at, "unexpected text at the end of the line");
	wread_skip_line(reader);
	reader->has_line = false;
	return true;
}

/* Comment text joins the comments above the coming line. */
static void add_comment(struct wreader *reader)
{
	uint32_t begin = ++reader->at, end;

	while (wread_peek(reader) == ' ')
		begin = ++reader->at;
	wread_skip_line(reader);
	end = reader->at;
	while (end > begin && isspace((unsigned char)reader->text.p[end - 1]))
		end--;
	reader->comment =
		arena_printf(reader->cx->arena, "%s%s%.*s", reader->comment ? reader->comment : "",
	                 reader->comment ? " " : "", (int)(end - begin), reader->text.p + begin);
}

/* Goes to the next line with something on it; false at the end. */
bool wread_next_line(struct wreader *reader)
{
	while (!reader->has_line) {
		uint32_t indent = 0;
		for (; wread_peek(reader) == ' ' || wread_peek(reader) == '\t'; reader->at++)
			indent += wread_peek(reader) == ' ' ? 1 : TAB - indent % TAB;
		wread_skip_blanks(reader);
		if (wread_peek(reader) == -1)
			return false;
		if (wread_peek(reader) == '\n') {
			reader->at++;
		} else if (wread_peek(reader) == '#') {
			add_comment(reader);
		} else {
			reader->indent = indent;
			reader->has_line = true;
		}
	}
	return true;
}

/* ---- names ---- */

struct thing *wread_find_thing(const struct wreader *reader, sym_t name)
{
	return map_get(&reader->things, name);
}

const struct var *wread_find_var(const struct wreader *reader, sym_t name)
{
	const struct warp_program *program = reader->program;

	for (uint32_t i = reader->scope.n; i-- > 0;)
		if (reader->scope.p[i].name == name)
			return reader->scope.p[i].var;
	for (int i = 0; i < 3; i++)
		if (program->block[i] && program->block[i]->name == name)
			return program->block[i];
	return program->tid && program->tid->name == name ? program->tid : NULL;
}

/* What a name, or a name with an index, means in an expression. */
const struct expr *wread_resolve(void *user, sym_t name, const struct expr *const *index,
                                 uint32_t n_index)
{
	struct wreader *reader = user;
	const struct thing *thing = wread_find_thing(reader, name);
	const struct var *var;

	if (n_index == 0) {
		var = wread_find_var(reader, name);
		return var ? expr_of_var(reader->program->pool, var) : NULL;
	}
	if (n_index != 1 || !thing)
		return NULL;
	if (thing->kind == THING_REG)
		return expr_reg(reader->program->pool, thing->is.reg, thing->is.reg->type, index[0]);
	if (thing->kind == THING_TABLE)
		return expr_table(reader->program->pool, thing->is.table, index[0]);
	return NULL;
}

/* A name for a declaration; false when it is taken. */
bool wread_new_name(struct wreader *reader, sym_t *name)
{
	uint32_t begin;

	wread_skip_blanks(reader);
	begin = reader->at;
	if (!wread_name(reader, name))
		return false;
	if (!wread_find_thing(reader, *name) && !wread_find_var(reader, *name))
		return true;
	return wread_fail(reader, DIAG_E0603, begin, "`%s` is declared already",
	                  sym_text(reader->cx->names, *name));
}
