/*
 * Reader of the form that tile_print writes: one cursor over the text, a line at a time, blocks by
 * the number of tabs. Names are looked up in the blocks around the place, inner ones first;
 * expressions are read by expr_parse. Everything is checked, as the text may come from anywhere,
 * and the program is verified at the end.
 *
 *     program     = "kernel" NAME ["of" NAME] ":" {given | scalar | param | launch}
 *     launch      = ["implicit"] "launch" extents threads ":" {buffer | "swizzle" order} block
 *     statement   = for | if | while | let | "sync()" | "break" | "continue" | "pass" | store
 *                 | operation
 *     operation   = ID "(" {FIELD "=" operand} ")"
 *
 * Operands are read by the role that ops.def gives a field, so that a new op needs no code here.
 * After the first mistake reading stops: `failed` makes every further step give nothing.
 */
#include "analyzer/layout/layout.h"
#include "analyzer/tile/tile.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 100 };

/* A name that statements may use: a variable or a buffer. */
struct known {
	sym_t name;
	const struct var *var;
	const struct buffer *buffer;
};

/* `known` is a stack: a block takes its names off again when it ends. */
struct reader {
	struct cx *cx;
	struct expr_pool *pool;
	uint32_t file, at;
	struct str text;
	struct tile_program *program;
	struct launch *launch;
	vec_of(struct known) known;
	uint32_t depth;
	bool failed;
};

/* Cursor */

/* NUL past the end. */
static char peek(const struct reader *rd)
{
	return rd->at < rd->text.n ? rd->text.p[rd->at] : 0;
}

/* From `begin` to the position; at least one byte, so that a caret shows. */
static struct span here(const struct reader *rd, uint32_t begin)
{
	return (struct span){ rd->file, begin, rd->at > begin ? rd->at : begin + (begin < rd->text.n) };
}

static bool fail(struct reader *rd, uint32_t begin, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Only the first mistake is reported; all reading stops with it. */
static bool fail(struct reader *rd, uint32_t begin, const char *format, ...)
{
	va_list args;
	char text[200];

	if (rd->failed)
		return false;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	diag_report(&rd->cx->diags, DIAG_E0310, here(rd, begin), "%s", text);
	rd->failed = true;
	return false;
}

/* Tabs are indentation, never blanks in a line. */
static void skip_blanks(struct reader *rd)
{
	while (peek(rd) == ' ')
		rd->at++;
}

/* Moves behind the text when it stands here, blanks aside. */
static bool accept(struct reader *rd, const char *text)
{
	size_t n = strlen(text);

	skip_blanks(rd);
	if (rd->failed || n > rd->text.n - rd->at || memcmp(rd->text.p + rd->at, text, n) != 0)
		return false;
	rd->at += (uint32_t)n;
	return true;
}

/* False with E0310 when something else stands here. */
static bool expect(struct reader *rd, const char *text)
{
	return accept(rd, text) || fail(rd, rd->at, "expected '%s'", text);
}

/*
 * Bytes of UTF-8 count as letters: names of the language may have any (Python reference,
 * "Identifiers").
 */
static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       (unsigned char)c >= 0x80;
}

/* A name; empty with an error when there is none. */
static struct str word(struct reader *rd)
{
	uint32_t begin;

	skip_blanks(rd);
	begin = rd->at;
	while (is_word_char(peek(rd)))
		rd->at++;
	if (rd->at == begin)
		fail(rd, begin, "expected a name");
	return (struct str){ rd->text.p + begin, rd->at - begin };
}

/* Interned; 0 after an error. */
static sym_t name(struct reader *rd)
{
	return intern(rd->cx->names, word(rd));
}

/* A decimal number of 64 bits; 0 after an error. */
static int64_t integer(struct reader *rd)
{
	uint32_t begin;
	char *end, digits[24];
	long long value;

	skip_blanks(rd);
	begin = rd->at;
	if (peek(rd) == '-')
		rd->at++;
	while (peek(rd) >= '0' && peek(rd) <= '9')
		rd->at++;
	if (rd->at == begin || rd->at - begin >= sizeof(digits))
		return fail(rd, begin, "expected an integer");
	memcpy(digits, rd->text.p + begin, rd->at - begin);
	digits[rd->at - begin] = 0;
	value = strtoll(digits, &end, 10);
	if (*end)
		fail(rd, begin, "expected an integer");
	return value;
}

/* Moves behind the newline. */
static bool end_of_line(struct reader *rd)
{
	skip_blanks(rd);
	if (rd->at >= rd->text.n)
		return true;
	if (peek(rd) != '\n')
		return fail(rd, rd->at, "the line has more than it should");
	rd->at++;
	return true;
}

/* Moves over empty lines and comments; the tabs in front of the next line, -1 at the end. */
static int next_indent(struct reader *rd)
{
	for (;;) {
		uint32_t at = rd->at;
		int tabs = 0;

		while (at < rd->text.n && rd->text.p[at] == '\t')
			at++, tabs++;
		if (at >= rd->text.n)
			return -1;
		if (rd->text.p[at] != '\n' && rd->text.p[at] != '#')
			return tabs;
		while (at < rd->text.n && rd->text.p[at] != '\n')
			at++;
		rd->at = at < rd->text.n ? at + 1 : at;
	}
}

/* Does a line of this depth follow? Moves behind its tabs. */
static bool next_line(struct reader *rd, int indent)
{
	if (rd->failed || next_indent(rd) != indent)
		return false;
	rd->at += (uint32_t)indent;
	return true;
}

/* Names and expressions */

/* The innermost meaning of a name, or NULL. */
static const struct known *find_known(const struct reader *rd, sym_t wanted)
{
	for (uint32_t i = rd->known.n; i > 0; i--) {
		if (rd->known.p[i - 1].name == wanted)
			return &rd->known.p[i - 1];
	}
	return NULL;
}

/*
 * A name alone is a variable or a rank-0 buffer, one with an index a load; NULL for what is not
 * known, on which expr_parse reports.
 */
static const struct expr *resolve(void *user, sym_t wanted, const struct expr *const *index,
                                  uint32_t n)
{
	struct reader *rd = user;
	const struct known *known = find_known(rd, wanted);

	if (!known || (known->var && n > 0))
		return NULL;
	if (known->var)
		return expr_of_var(rd->pool, known->var);
	if (known->buffer->rank != n)
		return NULL;
	return expr_load(rd->pool, known->buffer, known->buffer->type, index, n);
}

/* NULL after an error. */
static const struct expr *expression(struct reader *rd)
{
	struct expr_names names = { resolve, rd };
	const struct expr *e;

	if (rd->failed)
		return NULL;
	skip_blanks(rd);
	e = expr_parse(rd->cx, rd->pool, &names, rd->file, &rd->at);
	rd->failed |= !e;
	return e;
}

/* Expressions up to the closing sign; their number. */
static uint32_t expressions(struct reader *rd, const struct expr *out[MAX_RANK], const char *end)
{
	uint32_t n = 0;

	if (accept(rd, end))
		return 0;
	do {
		if (n == MAX_RANK) {
			fail(rd, rd->at, "more than %d dimensions", MAX_RANK);
			return 0;
		}
		out[n++] = expression(rd);
	} while (accept(rd, ","));
	expect(rd, end);
	return rd->failed ? 0 : n;
}

/* An element type by its name. */
static struct dtype type(struct reader *rd)
{
	struct str text = word(rd);
	uint32_t begin = rd->at - text.n;
	struct dtype out = DTYPE_I32;

	if (!rd->failed && !dtype_parse(text, &out))
		fail(rd, begin, "%.*s is no element type", STR_ARGS(text));
	return out;
}

/* From here to the end of the block. */
static void learn_var(struct reader *rd, const struct var *var)
{
	vec_push(rd->cx->arena, &rd->known, (struct known){ .name = var->name, .var = var });
}

/* As learn_var. */
static void learn_buffer(struct reader *rd, const struct buffer *buffer)
{
	assert(buffer->rank <= MAX_RANK);
	vec_push(rd->cx->arena, &rd->known, (struct known){ .name = buffer->name, .buffer = buffer });
}

/* Buffers */

/* `i0, i1 to i1, i0`: the indices are known in the places alone. */
static void read_map(struct reader *rd, struct buffer *buffer)
{
	struct layout_map *map = arena_new(rd->cx->arena, struct layout_map);
	uint32_t n_known = rd->known.n;

	do {
		uint32_t begin = rd->at;
		struct var *var;
		sym_t var_name = name(rd);

		if (map->rank == buffer->rank || map->rank == MAX_RANK) {
			fail(rd, begin, "more indices than dimensions");
			return;
		}
		var = expr_new_var(rd->pool, VAR_LOOP, var_name, DTYPE_I32);
		var->span = here(rd, begin);
		var->min = 0;
		if (buffer_extent(buffer, map->rank) > 0)
			var->max = buffer_extent(buffer, map->rank) - 1;
		map->index[map->rank++] = var;
		learn_var(rd, var);
	} while (accept(rd, ","));
	expect(rd, "to ");
	do {
		if (map->n == MAX_RANK) {
			fail(rd, rd->at, "more than %d places", MAX_RANK);
			return;
		}
		map->place[map->n++] = expression(rd);
	} while (accept(rd, ","));
	buffer->map = map;
	rd->known.n = n_known;
}

static int64_t attribute(struct reader *rd, const char *field);

/*
 * `float16[128, 64] strides [64, 1] outside 1.0f16`, then where the memory is: in another buffer,
 * at an address, by a map or by an annotated layout.
 */
static void shape(struct reader *rd, struct buffer *buffer)
{
	buffer->type = type(rd);
	expect(rd, "[");
	buffer->rank = expressions(rd, buffer->shape, "]");
	if (accept(rd, "strides")) {
		expect(rd, "[");
		if (expressions(rd, buffer->strides, "]") != buffer->rank)
			fail(rd, rd->at, "the strides have another number of dimensions");
	}
	if (accept(rd, "outside "))
		buffer->outside = expression(rd);
	if (accept(rd, "reducer ")) {
		buffer->is_reducer = true;
		buffer->reducer = (enum reduce_kind)attribute(rd, "kind");
	}
	if (accept(rd, "in ")) {
		const struct known *known = find_known(rd, name(rd));

		buffer->alias_of = known ? known->buffer : NULL;
		if (!rd->failed && !buffer->alias_of)
			fail(rd, rd->at, "this is no buffer");
	}
	if (accept(rd, "at "))
		buffer->base = expression(rd);
	if (accept(rd, "map "))
		read_map(rd, buffer);
	if (accept(rd, "layout ")) {
		buffer->annotation = layout_parse(rd->cx, rd->file, &rd->at);
		rd->failed |= !buffer->annotation;
	}
	end_of_line(rd);
}

/* The new name hides an older one of its spelling. */
static struct buffer *buffer_line(struct reader *rd, enum scope scope, sym_t buffer_name,
                                  uint32_t begin)
{
	struct buffer *buffer =
		tile_new_buffer(rd->program, scope, buffer_name, DTYPE_I32, here(rd, begin));

	shape(rd, buffer);
	learn_buffer(rd, buffer);
	return buffer;
}

/* By its name; false when it is none. */
static bool find_scope(struct str text, enum scope *scope)
{
	for (int i = 0; i < N_SCOPES; i++) {
		*scope = (enum scope)i;
		if (str_is(text, scope_text(*scope)))
			return true;
	}
	return false;
}

/* Operands */

/* name, or name[mins; extents] */
static void region(struct reader *rd, struct region *out)
{
	uint32_t begin, n;
	const struct known *known;

	skip_blanks(rd);
	begin = rd->at;
	known = find_known(rd, name(rd));
	if (rd->failed || !known || !known->buffer) {
		fail(rd, begin, "this is no buffer");
		return;
	}
	out->buffer = known->buffer;
	if (accept(rd, "[")) {
		n = expressions(rd, out->min, ";");
		for (uint32_t i = 0; i < n; i++)
			out->extent[i] = (i == 0 || expect(rd, ",")) ? integer(rd) : 0;
		expect(rd, "]");
		if (!rd->failed && n != out->buffer->rank)
			fail(rd, begin, "the region has another number of dimensions than its buffer");
	} else if (buffer_n_elems(out->buffer) > 0) {
		*out = region_whole(rd->pool, out->buffer, here(rd, begin));
	} else {
		fail(rd, begin, "a buffer of unknown extents is no region");
	}
	out->span = here(rd, begin);
}

/* An integer, or the word of an enum. */
static int64_t attribute(struct reader *rd, const char *field)
{
	uint32_t begin;
	struct str text;

	skip_blanks(rd);
	begin = rd->at;
	if (peek(rd) == '-' || (peek(rd) >= '0' && peek(rd) <= '9'))
		return integer(rd);
	text = word(rd);
	for (int i = POLICY_SQUARE; strcmp(field, "policy") == 0 && i <= POLICY_BEST; i++) {
		if (str_is(text, gemm_policy_text((enum gemm_policy)i)))
			return i;
	}
	for (int i = REDUCE_SUM; strcmp(field, "kind") == 0 && i <= REDUCE_BITXOR; i++) {
		if (str_is(text, reduce_kind_text((enum reduce_kind)i)))
			return i;
	}
	return fail(rd, begin, "%.*s is no value of %s", STR_ARGS(text), field);
}

/* By the role that the op table gives the field. */
static void operand(struct reader *rd, struct op *op, const struct operand_info *info)
{
	char *at = (char *)&op->as + info->offset;

	switch (info->role) {
	case ROLE_READ:
	case ROLE_WRITE:
	case ROLE_UPDATE:
		region(rd, (struct region *)(void *)at);
		break;
	case ROLE_EXPR:
		*(const struct expr **)(void *)at = expression(rd);
		break;
	case ROLE_ATTR:
		*(int64_t *)(void *)at = attribute(rd, info->name);
		break;
	}
}

/* The field of that name, or NULL. */
static const struct operand_info *find_operand(const struct op_info *info, struct str text)
{
	for (uint32_t i = 0; i < info->n_operands; i++) {
		if (str_is(text, info->operands[i].name))
			return &info->operands[i];
	}
	return NULL;
}

/* Every region operand must be there; attributes that index something must fit. */
static bool op_complete(struct reader *rd, struct op *op, uint32_t begin)
{
	const struct op_info *info = op_info(op->kind);
	enum operand_role role;
	struct region *r;

	for (uint32_t i = 0; (r = op_region(op, i, &role)) != NULL; i++) {
		if (!r->buffer)
			return fail(rd, begin, "%s misses an operand", info->id);
	}
	if (op->kind == OP_reduce &&
	    (op->as.reduce.dim < 0 || op->as.reduce.dim >= op->as.reduce.src.buffer->rank))
		return fail(rd, begin, "dimension %lld does not exist", (long long)op->as.reduce.dim);
	return true;
}

/* `id(field=operand, ...)`, behind the id. */
static void op_line(struct reader *rd, struct op *op, uint32_t begin)
{
	const struct op_info *info = op_info(op->kind);

	expect(rd, "(");
	while (!rd->failed && !accept(rd, ")")) {
		uint32_t field_begin = rd->at;
		const struct operand_info *field = find_operand(info, word(rd));

		if (!field)
			fail(rd, field_begin, "%s has no such operand", info->id);
		expect(rd, "=");
		if (!rd->failed)
			operand(rd, op, field);
		if (!accept(rd, ",") && peek(rd) != ')')
			fail(rd, rd->at, "expected ',' or ')'");
	}
	if (!rd->failed)
		op_complete(rd, op, begin);
	end_of_line(rd);
}

/* Statements */

static void block(struct reader *rd, struct block *out, int indent);

/* Its range is set before the first expression that reads it. */
static struct var *new_var(struct reader *rd, enum var_kind kind, sym_t var_name,
                           struct dtype var_type, uint32_t begin)
{
	struct var *var = expr_new_var(rd->pool, kind, var_name, var_type);

	var->span = here(rd, begin);
	return var;
}

/* 0 .. extent - 1 when the extent is known. */
static void set_range(struct var *var, const struct expr *extent)
{
	int64_t min, max;

	var->min = 0;
	if (extent && expr_range(extent, &min, &max) && max < INT64_MAX)
		var->max = max > 0 ? max - 1 : 0;
}

/* By its name; false when it is none. */
static bool find_loop_kind(struct str text, enum loop_kind *kind)
{
	for (int i = LOOP_SERIAL; i <= LOOP_VECTORIZED; i++) {
		*kind = (enum loop_kind)i;
		if (str_is(text, loop_kind_text(*kind)))
			return true;
	}
	return false;
}

/* The arguments of a loop: extents, then num_stages and coalesced_width. */
static void loop_arguments(struct reader *rd, struct loop *loop)
{
	uint32_t n = 0;

	expect(rd, "(");
	do {
		if (accept(rd, "num_stages="))
			loop->num_stages = integer(rd);
		else if (accept(rd, "coalesced_width="))
			loop->coalesced_width = integer(rd);
		else if (n < loop->n_vars)
			loop->extents[n++] = expression(rd);
		else
			fail(rd, rd->at, "more extents than variables");
	} while (accept(rd, ","));
	expect(rd, ")");
	if (!rd->failed && n != loop->n_vars)
		fail(rd, rd->at, "fewer extents than variables");
}

/* Loop variables are known in the body alone. */
static void for_line(struct reader *rd, struct loop *loop, int indent)
{
	uint32_t begin = rd->at, n_known = rd->known.n;
	sym_t names[MAX_RANK];
	struct str kind;

	do {
		if (loop->n_vars == MAX_RANK) {
			fail(rd, rd->at, "more than %d loop variables", MAX_RANK);
			return;
		}
		names[loop->n_vars++] = name(rd);
	} while (accept(rd, ","));
	expect(rd, "in ");
	kind = word(rd);
	if (!rd->failed && !find_loop_kind(kind, &loop->kind))
		fail(rd, begin, "%.*s is no kind of loop", STR_ARGS(kind));
	if (loop->kind != LOOP_PARALLEL && loop->n_vars != 1)
		fail(rd, begin, "only parallel loops have several variables");
	loop_arguments(rd, loop);
	expect(rd, ":");
	end_of_line(rd);
	for (uint32_t i = 0; i < loop->n_vars && !rd->failed; i++) {
		bool is_wide = loop->extents[i]->type.bits == 64;
		struct var *var = new_var(rd, VAR_LOOP, names[i], is_wide ? DTYPE_I64 : DTYPE_I32, begin);

		set_range(var, loop->extents[i]);
		loop->vars[i] = var;
		learn_var(rd, var);
	}
	block(rd, &loop->body, indent + 1);
	rd->known.n = n_known;
}

/* The else may follow at the same depth. */
static void if_line(struct reader *rd, struct stmt *stmt, int indent)
{
	uint32_t at;

	stmt->as.if_.condition = expression(rd);
	expect(rd, ":");
	end_of_line(rd);
	block(rd, &stmt->as.if_.then, indent + 1);
	at = rd->at;
	if (next_line(rd, indent) && accept(rd, "else:")) {
		end_of_line(rd);
		block(rd, &stmt->as.if_.otherwise, indent + 1);
	} else if (!rd->failed) {
		rd->at = at;
	}
}

/* The variable is known behind its line. */
static void let_line(struct reader *rd, struct stmt *stmt)
{
	uint32_t begin = rd->at;
	sym_t var_name = name(rd);
	struct dtype var_type;
	struct var *var;

	expect(rd, ":");
	var_type = type(rd);
	expect(rd, "=");
	var = new_var(rd, VAR_LET, var_name, var_type, begin);
	stmt->as.let.var = var;
	stmt->as.let.value = expression(rd);
	end_of_line(rd);
	learn_var(rd, var);
}

/* `buffer[index] = value`, behind the name. */
static void store_line(struct reader *rd, struct stmt *stmt, const struct buffer *buffer,
                       uint32_t begin)
{
	uint32_t n = 0;

	assert(stmt->kind == STMT_STORE);
	stmt->as.store.buffer = buffer;
	if (accept(rd, "["))
		n = expressions(rd, stmt->as.store.index, "]");
	if (!rd->failed && n != buffer->rank)
		fail(rd, begin, "the store has another number of indices than its buffer");
	expect(rd, "=");
	for (int i = ATOMIC_ADD; i <= ATOMIC_STORE; i++) {
		char text[32];

		snprintf(text, sizeof(text), "atomic_%s ", atomic_kind_text((enum atomic_kind)i));
		if (accept(rd, text))
			stmt->as.store.atomic = (enum atomic_kind)i;
	}
	stmt->as.store.value = expression(rd);
	end_of_line(rd);
}

/* By its id; false when it is none. */
static bool find_op(struct str text, enum op_kind *kind)
{
	for (int i = 0; i < N_OP_KINDS; i++) {
		*kind = (enum op_kind)i;
		if (str_is(text, op_info(*kind)->id))
			return true;
	}
	return false;
}

/* Statements get their ids in text order. */
static struct stmt *add_stmt(struct reader *rd, struct block *out, enum stmt_kind kind,
                             uint32_t begin)
{
	struct stmt *stmt = tile_new_stmt(rd->program, kind, here(rd, begin));

	vec_push(rd->cx->arena, &out->stmts, stmt);
	return stmt;
}

/* A statement that starts with none of the words of statement(). */
static void named_line(struct reader *rd, struct block *out, uint32_t begin)
{
	struct str text = word(rd);
	const struct known *known;
	enum op_kind kind;

	if (rd->failed)
		return;
	known = find_known(rd, intern(rd->cx->names, text));
	if (find_op(text, &kind) && peek(rd) == '(') {
		struct stmt *stmt = add_stmt(rd, out, STMT_OP, begin);

		stmt->as.op.kind = kind;
		op_line(rd, &stmt->as.op, begin);
		return;
	}
	if (!known || !known->buffer) {
		fail(rd, begin, "%.*s is neither an operation nor a buffer", STR_ARGS(text));
		return;
	}
	store_line(rd, add_stmt(rd, out, STMT_STORE, begin), known->buffer, begin);
}

/* By its first word. */
static void statement(struct reader *rd, struct block *out, int indent)
{
	uint32_t begin = rd->at;
	struct stmt *stmt;

	if (accept(rd, "for ")) {
		for_line(rd, &add_stmt(rd, out, STMT_LOOP, begin)->as.loop, indent);
	} else if (accept(rd, "if ")) {
		if_line(rd, add_stmt(rd, out, STMT_IF, begin), indent);
	} else if (accept(rd, "while ")) {
		stmt = add_stmt(rd, out, STMT_WHILE, begin);
		stmt->as.while_.condition = expression(rd);
		expect(rd, ":");
		end_of_line(rd);
		block(rd, &stmt->as.while_.body, indent + 1);
	} else if (accept(rd, "let ")) {
		let_line(rd, add_stmt(rd, out, STMT_LET, begin));
	} else if (accept(rd, "sync()")) {
		add_stmt(rd, out, STMT_SYNC, begin);
		end_of_line(rd);
	} else if (accept(rd, "break\n") || accept(rd, "continue\n")) {
		rd->at--;
		add_stmt(rd, out, rd->text.p[begin] == 'b' ? STMT_BREAK : STMT_CONTINUE, begin);
		end_of_line(rd);
	} else if (accept(rd, "pass\n")) {
		rd->at--;
		end_of_line(rd);
	} else {
		named_line(rd, out, begin);
	}
}

/* Names that it makes known end with it. */
static void block(struct reader *rd, struct block *out, int indent)
{
	uint32_t n_known = rd->known.n;

	if (++rd->depth > MAX_DEPTH)
		fail(rd, rd->at, "blocks nest deeper than %d levels", MAX_DEPTH);
	while (next_line(rd, indent))
		statement(rd, out, indent);
	rd->depth--;
	rd->known.n = n_known;
}

/* Launches */

/* Three grid extents with block variables, then three thread counts. */
static void launch_head(struct reader *rd, struct launch *launch)
{
	for (int i = 0; i < 3; i++) {
		uint32_t begin = rd->at;
		sym_t var_name = name(rd);
		struct var *var = new_var(rd, VAR_BLOCK, var_name, DTYPE_I32, begin);

		expect(rd, ":");
		launch->grid[i] = expression(rd);
		expect(rd, ",");
		var->axis = i;
		set_range(var, launch->grid[i]);
		launch->block[i] = var;
		learn_var(rd, var);
	}
	for (int i = 0; i < 3; i++) {
		uint32_t begin = rd->at;
		sym_t var_name = name(rd);
		struct var *var = new_var(rd, VAR_THREAD, var_name, DTYPE_I32, begin);

		expect(rd, ":");
		launch->threads[i] = integer(rd);
		expect(rd, i < 2 ? "," : ":");
		if (!rd->failed && (launch->threads[i] < 1 || launch->threads[i] > 1024))
			fail(rd, begin, "a thread block has 1 to 1024 threads");
		var->axis = i;
		var->min = 0;
		var->max = launch->threads[i] - 1;
		launch->thread[i] = var;
		learn_var(rd, var);
	}
	end_of_line(rd);
}

/* `row 8` or `column 4`, behind the word. */
static void swizzle_line(struct reader *rd, struct launch *launch)
{
	uint32_t begin = rd->at;

	launch->rasterization.by_column = accept(rd, "column");
	if (!launch->rasterization.by_column)
		expect(rd, "row");
	launch->rasterization.panel_size = integer(rd);
	launch->rasterization.span = here(rd, begin);
	end_of_line(rd);
}

/* `name: scope type[shape]`; false, at the same place, when the line is something else. */
static bool declaration(struct reader *rd)
{
	uint32_t begin = rd->at;
	enum scope scope = SCOPE_GLOBAL;
	sym_t buffer_name;

	if (!is_word_char(peek(rd)))
		return false;
	buffer_name = name(rd);
	if (!accept(rd, ":")) {
		rd->at = begin;
		return false;
	}
	if (!find_scope(word(rd), &scope))
		fail(rd, begin, "a buffer is in global, shared, fragment, local or var");
	buffer_line(rd, scope, buffer_name, begin)->launch = rd->launch->index;
	return true;
}

/* Declarations stand before all statements. */
static struct launch *launch_line(struct reader *rd)
{
	struct launch *launch = arena_new(rd->cx->arena, struct launch);
	uint32_t begin = rd->at, n_known = rd->known.n;

	launch->index = rd->program->launches.n;
	launch->span = here(rd, begin);
	vec_push(rd->cx->arena, &rd->program->launches, launch);
	rd->launch = launch;
	launch_head(rd, launch);
	while (next_line(rd, 2)) {
		uint32_t at = rd->at;

		if (accept(rd, "swizzle ")) {
			swizzle_line(rd, launch);
		} else if (!declaration(rd)) {
			rd->at = at - 2;
			break;
		}
	}
	block(rd, &launch->body, 2);
	rd->known.n = n_known;
	return launch;
}

/* Head */

/* `given NAME = JSON from ORIGIN` */
static void given_line(struct reader *rd)
{
	static const char *const origins[] = { "set", "call", "default", "tensor" };
	struct host_param param = { .required = false };
	uint32_t begin = rd->at, end = rd->at, from = 0;
	struct str text = word(rd);

	param.name = arena_strndup(rd->cx->arena, text.p, text.n);
	expect(rd, "=");
	skip_blanks(rd);
	for (end = rd->at; end < rd->text.n && rd->text.p[end] != '\n'; end++) {
		if (rd->text.n - end > 6 && memcmp(rd->text.p + end, " from ", 6) == 0)
			from = end;
	}
	if (from <= rd->at) {
		fail(rd, begin, "expected 'from'");
		return;
	}
	param.value_json = arena_strndup(rd->cx->arena, rd->text.p + rd->at, from - rd->at);
	param.span = here(rd, begin);
	rd->at = from + 6;
	text = word(rd);
	for (int i = 0; i < 4; i++) {
		if (str_is(text, origins[i])) {
			param.origin = (enum param_origin)i;
			vec_push(rd->cx->arena, &rd->program->host_params, param);
			end_of_line(rd);
			return;
		}
	}
	fail(rd, begin, "a value comes from set, call, default or tensor");
}

/* `NAME: TYPE range A to B multiple D` */
static void scalar_line(struct reader *rd, enum var_kind kind)
{
	uint32_t begin = rd->at;
	sym_t var_name = name(rd);
	struct var *var;

	expect(rd, ":");
	var = new_var(rd, kind, var_name, type(rd), begin);
	if (accept(rd, "range ")) {
		var->min = integer(rd);
		expect(rd, "to");
		var->max = integer(rd);
	}
	if (accept(rd, "multiple ")) {
		var->divisor = integer(rd);
		if (!rd->failed && var->divisor < 1)
			fail(rd, begin, "a multiple is at least 1");
	}
	vec_push(rd->cx->arena, &rd->program->scalars, var);
	learn_var(rd, var);
	end_of_line(rd);
}

/* `NAME: TYPE[shape]`, behind the word. */
static void param_line(struct reader *rd)
{
	uint32_t begin = rd->at;
	sym_t buffer_name = name(rd);
	struct buffer *buffer;

	expect(rd, ":");
	buffer = buffer_line(rd, SCOPE_GLOBAL, buffer_name, begin);
	buffer->is_param = true;
	vec_push(rd->cx->arena, &rd->program->params, buffer);
}

/* Arguments first, launches behind them. */
static void program_lines(struct reader *rd)
{
	uint32_t begin = rd->at;

	expect(rd, "kernel ");
	rd->program->name = name(rd);
	rd->program->span = here(rd, begin);
	if (accept(rd, "of "))
		rd->program->factory = name(rd);
	expect(rd, ":");
	end_of_line(rd);
	while (next_line(rd, 1)) {
		if (accept(rd, "given "))
			given_line(rd);
		else if (accept(rd, "scalar "))
			scalar_line(rd, VAR_PARAM);
		else if (accept(rd, "symbol "))
			scalar_line(rd, VAR_SYMBOL);
		else if (accept(rd, "param "))
			param_line(rd);
		else if (accept(rd, "implicit launch "))
			launch_line(rd)->is_implicit = true;
		else if (accept(rd, "launch "))
			launch_line(rd);
		else
			fail(rd, rd->at, "expected given, scalar, symbol, param or launch");
	}
	if (!rd->failed && next_indent(rd) >= 0)
		fail(rd, rd->at, "this line's indentation fits no block");
}

/* What is read is verified like any other program. */
struct tile_program *tile_read(struct cx *cx, struct expr_pool *pool, uint32_t file)
{
	struct reader rd = { .cx = cx, .pool = pool, .file = file };

	rd.text = source_get(&cx->sources, file)->text;
	rd.program = tile_new(cx, pool);
	rd.program->path = source_get(&cx->sources, file)->path;
	rd.at = rd.text.n ? (uint32_t)strnlen(rd.text.p, rd.text.n) : 0;
	if (rd.at < rd.text.n)
		fail(&rd, rd.at, "the text holds a NUL byte");
	rd.at = 0;
	next_indent(&rd);
	program_lines(&rd);
	if (!rd.failed && rd.program->launches.n == 0)
		fail(&rd, rd.at, "the kernel launches nothing");
	return rd.failed || !tile_verify(rd.program) ? NULL : rd.program;
}
