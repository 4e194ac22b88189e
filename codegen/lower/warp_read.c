/*
 * Reads the text of a warp program back (docs/warp.md). One pass over the lines; symbols are read
 * ahead, because shapes and the grid speak of them. Linear in the text but for the lookup of
 * enclosing loops.
 *
 * The kernel file itself is not needed: `@line` becomes a span in a source of empty lines.
 */
#include "codegen/lower/warp_read_internal.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

static struct thing *declare(struct wreader *reader, sym_t name, enum thing_kind kind)
{
	struct thing *thing = arena_new(reader->cx->arena, struct thing);

	thing->kind = kind;
	map_set(reader->cx->arena, &reader->things, name, thing);
	return thing;
}

/* ---- header ---- */

/* `(e, e, ...)`, at most `max`. */
static bool read_exprs(struct wreader *reader, const struct expr **exprs, uint32_t max, uint32_t *n)
{
	*n = 0;
	if (!wread_expect(reader, "("))
		return false;
	if (wread_take(reader, ")"))
		return true;
	do {
		if (*n == max)
			return wread_fail(reader, DIAG_E0601, reader->at, "more than %u expressions", max);
		exprs[*n] = wread_expr(reader);
		if (!exprs[(*n)++])
			return false;
	} while (wread_take(reader, ","));
	return wread_expect(reader, ")");
}

/* `warp NAME threads N grid (x, y, z) block (bx, by, bz) thread tid` */
static bool read_launch(struct wreader *reader)
{
	const struct expr *grid[3];
	sym_t names[4];
	int64_t n_threads;
	uint32_t n;
	struct span span;

	if (!wread_expect(reader, "warp") || !wread_name(reader, &reader->program->name) ||
	    !wread_named_int(reader, "threads", 1, &n_threads) || !wread_expect(reader, "grid"))
		return false;
	if (!read_exprs(reader, grid, 3, &n))
		return false;
	if (n != 3)
		return wread_fail(reader, DIAG_E0601, reader->at, "a grid has three extents");
	if (!wread_expect(reader, "block") || !wread_expect(reader, "("))
		return false;
	for (int i = 0; i < 3; i++)
		if (!wread_new_name(reader, &names[i]) || !wread_expect(reader, i < 2 ? "," : ")"))
			return false;
	if (!wread_expect(reader, "thread") || !wread_new_name(reader, &names[3]))
		return false;
	warp_set_launch_named(reader->program, n_threads, grid, names);
	return wread_line_end(reader, &span);
}

/* A source of `n_lines` empty lines under the kernel's name. */
static void add_kernel_source(struct wreader *reader, uint32_t n_lines)
{
	char *lines = arena_alloc(reader->cx->arena, n_lines + 1);

	memset(lines, '\n', n_lines);
	reader->kernel_file = source_add(reader->cx->arena, &reader->cx->sources,
	                                 reader->kernel_path ? reader->kernel_path : "<kernel>",
	                                 (struct str){ lines, n_lines });
}

static int hex_digit(int c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : 0;
}

/* `source "path"`; the path was read ahead when `path` is NULL. */
static bool read_source(struct wreader *reader, const char **path)
{
	struct buf text = { 0 };
	struct span span;

	if (!wread_expect(reader, "\""))
		return false;
	while (wread_peek(reader) != '"' && wread_peek(reader) != '\n' && wread_peek(reader) != -1) {
		int c = wread_peek(reader);
		reader->at++;
		if (c == '\\' && wread_peek(reader) == 'x' && reader->at + 2 < reader->text.n) {
			c = hex_digit((unsigned char)reader->text.p[reader->at + 1]) * 16 +
			    hex_digit((unsigned char)reader->text.p[reader->at + 2]);
			reader->at += 3;
		} else if (c == '\\' && wread_peek(reader) > ' ') {
			c = wread_peek(reader);
			reader->at++;
		}
		if (c)
			buf_char(&text, (char)c);
	}
	if (path)
		*path = arena_strndup(reader->cx->arena, buf_cstr(&text), text.n);
	buf_free(&text);
	return wread_expect(reader, "\"") && wread_line_end(reader, &span);
}

static bool read_rasterize(struct wreader *reader)
{
	struct rasterization *order = &reader->program->rasterization;

	wread_skip_blanks(reader);
	if (!wread_int(reader, &order->panel_size) || !wread_expect(reader, "by"))
		return false;
	order->by_column = wread_take(reader, "column");
	if (!order->by_column && !wread_expect(reader, "row"))
		return false;
	return wread_line_end(reader, &order->span);
}

static bool read_param(struct wreader *reader)
{
	struct buffer *buffer = arena_new(reader->cx->arena, struct buffer);
	uint32_t n_strides = 0;

	buffer->id = reader->program->params.n;
	buffer->scope = SCOPE_GLOBAL;
	buffer->is_param = true;
	if (!wread_new_name(reader, &buffer->name) || !wread_type(reader, &buffer->type) ||
	    !read_exprs(reader, buffer->shape, MAX_RANK, &buffer->rank))
		return false;
	if (wread_take(reader, "strides")) {
		if (!read_exprs(reader, buffer->strides, MAX_RANK, &n_strides))
			return false;
		if (n_strides != buffer->rank)
			return wread_fail(reader, DIAG_E0601, reader->at, "a stride for each dimension");
	}
	if (!wread_line_end(reader, &buffer->span))
		return false;
	declare(reader, buffer->name, THING_PARAM)->is.buffer = buffer;
	vec_push(reader->cx->arena, &reader->program->params, (struct wparam){ .buffer = buffer });
	return true;
}

/* `scalar NAME TYPE from A to B step D`, also of symbols; makes the variable. */
static bool read_scalar_var(struct wreader *reader, enum var_kind kind)
{
	sym_t name;
	struct dtype type;
	struct var *var;

	if (!wread_new_name(reader, &name) || !wread_type(reader, &type))
		return false;
	var = expr_new_var(reader->program->pool, kind, name, type);
	var->min = INT64_MIN;
	var->max = INT64_MAX;
	var->divisor = 1;
	if ((wread_take(reader, "from") && !wread_int(reader, &var->min)) ||
	    (wread_take(reader, "to") && !wread_int(reader, &var->max)) ||
	    (wread_take(reader, "step") && !wread_int(reader, &var->divisor)))
		return false;
	if (var->divisor < 1 || var->min > var->max)
		return wread_fail(reader, DIAG_E0601, reader->at, "an empty range or a step below 1");
	vec_push(reader->cx->arena, &reader->scope, (struct scope_var){ name, var });
	return wread_line_end(reader, &var->span);
}

static void add_scalar_param(struct wreader *reader, const struct var *var)
{
	vec_push(reader->cx->arena, &reader->program->params, (struct wparam){ .scalar = var });
}

static bool read_scalar(struct wreader *reader)
{
	if (!read_scalar_var(reader, VAR_PARAM))
		return false;
	add_scalar_param(reader, vec_last(&reader->scope).var);
	return true;
}

/* The symbol was made by read_ahead; here it takes its place among the parameters. */
static bool read_symbol(struct wreader *reader)
{
	sym_t name;

	if (!wread_name(reader, &name))
		return false;
	add_scalar_param(reader, wread_find_var(reader, name));
	wread_skip_line(reader);
	reader->has_line = false;
	return true;
}

static bool read_shared(struct wreader *reader)
{
	sym_t name;
	struct dtype type;
	struct wshared *shared;

	if (!wread_new_name(reader, &name) || !wread_type(reader, &type))
		return false;
	shared = warp_new_shared(reader->program, name, type);
	declare(reader, name, THING_SHARED)->is.shared = shared;
	return wread_named_int(reader, "at", 0, &shared->offset_bytes) &&
	       wread_named_int(reader, "align", 1, &shared->align_bytes) &&
	       wread_named_int(reader, "versions", 1, &shared->n_versions) &&
	       wread_named_int(reader, "x", 0, &shared->version_bytes) &&
	       wread_expect(reader, "bytes") && wread_line_end(reader, &shared->span);
}

static bool read_reg(struct wreader *reader)
{
	sym_t name;
	struct dtype type;
	int64_t n_slots;
	struct wreg *reg;

	if (!wread_new_name(reader, &name) || !wread_type(reader, &type) ||
	    !wread_named_int(reader, "[", 1, &n_slots) || !wread_expect(reader, "]"))
		return false;
	reg = warp_new_reg(reader->program, name, type, n_slots);
	declare(reader, name, THING_REG)->is.reg = reg;
	reg->is_uniform = wread_take(reader, "uniform");
	reg->is_local = wread_take(reader, "local");
	return wread_line_end(reader, &reg->span);
}

static void skip_space(struct wreader *reader)
{
	while (wread_peek(reader) != -1 && isspace(wread_peek(reader)))
		reader->at++;
}

/* `table NAME [1, 2, ...]`, over several lines. */
static bool read_table(struct wreader *reader)
{
	vec_of(int64_t) values = { 0 };
	struct int_table *table;
	struct span span;
	sym_t name;

	if (!wread_new_name(reader, &name) || !wread_expect(reader, "["))
		return false;
	do {
		int64_t value;
		skip_space(reader);
		if (!wread_int(reader, &value))
			return false;
		vec_push(reader->cx->arena, &values, value);
		skip_space(reader);
	} while (wread_take(reader, ","));
	if (!wread_expect(reader, "]"))
		return false;
	table =
		(struct int_table *)(uintptr_t)expr_new_table(reader->program->pool, values.p, values.n);
	table->name = sym_text(reader->cx->names, name);
	declare(reader, name, THING_TABLE)->is.table = table;
	return wread_line_end(reader, &span);
}

static bool read_shared_bytes(struct wreader *reader)
{
	struct span span;

	return wread_int(reader, &reader->program->shared_bytes) && wread_line_end(reader, &span);
}

static bool read_source_line(struct wreader *reader)
{
	return read_source(reader, NULL);
}

/* The header's lines by their first word. */
static const struct header_line {
	const char *word;
	bool (*read)(struct wreader *reader);
} header_lines[] = {
	{ "source", read_source_line },  { "shared_bytes", read_shared_bytes },
	{ "rasterize", read_rasterize }, { "param", read_param },
	{ "scalar", read_scalar },       { "symbol", read_symbol },
	{ "shared", read_shared },       { "reg", read_reg },
	{ "table", read_table },
};

static bool read_header(struct wreader *reader)
{
	if (!wread_next_line(reader) || !read_launch(reader))
		return false;
	while (wread_next_line(reader) && reader->indent == 0) {
		uint32_t begin = reader->at;
		struct str word = wread_word(reader);
		const struct header_line *line = NULL;
		for (size_t i = 0; i < sizeof(header_lines) / sizeof(*header_lines); i++)
			if (str_is(word, header_lines[i].word))
				line = &header_lines[i];
		if (!line) {
			reader->at = begin;
			return true;
		}
		if (!line->read(reader))
			return false;
		reader->comment = NULL;
	}
	return true;
}

/* The largest `@line`. */
static int64_t largest_line(struct str text)
{
	int64_t largest = 0;

	for (uint32_t i = 0; i < text.n; i++) {
		int64_t line = 0;
		if (text.p[i] != '@')
			continue;
		while (i + 1 < text.n && isdigit((unsigned char)text.p[i + 1]) && line < WREAD_MAX_LINE)
			line = line * 10 + (text.p[++i] - '0');
		largest = line > largest ? line : largest;
	}
	return largest < WREAD_MAX_LINE ? largest : WREAD_MAX_LINE;
}

static bool read_ahead_source(struct wreader *reader)
{
	return read_source(reader, &reader->kernel_path);
}

static bool read_ahead_symbol(struct wreader *reader)
{
	return read_scalar_var(reader, VAR_SYMBOL);
}

/* Reads the lines that begin with `word`, and goes back to the start. */
static bool read_ahead(struct wreader *reader, const char *word, bool (*read)(struct wreader *))
{
	while (wread_next_line(reader)) {
		if (wread_take(reader, word)) {
			if (!read(reader))
				return false;
		} else {
			wread_skip_line(reader);
			reader->has_line = false;
		}
	}
	reader->at = 0;
	reader->comment = NULL;
	return true;
}

/* Before all else: the kernel's path and how many lines its spans reach, then symbols. */
static bool read_first(struct wreader *reader)
{
	int64_t n_lines = largest_line(reader->text);

	if (!read_ahead(reader, "source", read_ahead_source))
		return false;
	if (n_lines)
		add_kernel_source(reader, (uint32_t)n_lines);
	return read_ahead(reader, "symbol", read_ahead_symbol);
}

struct warp_program *warp_read(struct cx *cx, struct expr_pool *pool, uint32_t file)
{
	struct wreader reader = { 0 };

	reader.cx = cx;
	reader.file = file;
	reader.text = source_get(&cx->sources, file)->text;
	reader.program = warp_new(cx, pool, 0);
	reader.names = (struct expr_names){ wread_resolve, &reader };
	uint32_t n_errors = cx->diags.n_errors;
	if (!read_first(&reader) || !read_header(&reader) ||
	    !wread_block(&reader, &reader.program->body, 0)) {
		if (cx->diags.n_errors == n_errors)
			wread_fail(&reader, DIAG_E0601, 0, "the text ends before the program");
		return NULL;
	}
	assert(reader.depth == 0);
	return reader.program;
}
