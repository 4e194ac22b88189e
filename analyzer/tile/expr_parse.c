/*
 * Reads what expr_print writes: precedence climbing over bytes, no tokens kept. Stops in front of
 * the first thing that cannot continue the expression, so that a caller's own syntax may follow.
 *
 *     expr    = operand {operator expr}                       operators by PREC_*, left to right
 *     operand = number | "-" expr | "~" expr | "not" expr | "(" expr ")" | name
 *     name    = NAME | NAME "[" args "]" | NAME "(" args ")"
 *     number  = digits ["." digits] ["e" digits] ["f16" | "f32" | "f64" | "bf16"]
 *
 * What is read is simplified like all that the constructors make.
 */
#include "analyzer/tile/expr_internal.h"

#include "analyzer/tile/expr_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Texts come from outside: recursion and argument lists are bounded. */
enum { MAX_NESTING = 1000, MAX_ARGS = 64 };

/* A position in a source; `names` says what a name means where the expression stands. */
struct reader {
	struct cx *cx;
	struct expr_pool *pool;
	const struct expr_names *names;
	uint32_t file;
	struct str text;
	uint32_t at;
	uint32_t depth;
};

/* Arguments read so far. */
struct args {
	uint32_t n;
	const struct expr *p[MAX_ARGS];
};

static const struct expr *read_expr(struct reader *reader, int min_precedence);

/* Reports E0190 at byte `at`; always NULL. */
static const struct expr *fail(struct reader *reader, uint32_t at, const char *message)
{
	struct span span = { reader->file, at, at < reader->text.n ? at + 1 : at };
	diag_report(&reader->cx->diags, DIAG_E0190, span, "%s", message);
	return NULL;
}

/* A line's end ends an expression. */
static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->text.n &&
	       (reader->text.p[reader->at] == ' ' || reader->text.p[reader->at] == '\t'))
		reader->at++;
}

/* NUL past the end. */
static char peek(const struct reader *reader, uint32_t ahead)
{
	return reader->at + ahead < reader->text.n ? reader->text.p[reader->at + ahead] : '\0';
}

/* Moves behind the character when it stands here, blanks aside. */
static bool accept(struct reader *reader, char c)
{
	skip_blanks(reader);
	if (peek(reader, 0) != c || reader->at >= reader->text.n)
		return false;
	reader->at++;
	return true;
}

/* Reports what is missing. */
static bool expect(struct reader *reader, char c)
{
	char message[] = "expected ' '";
	if (accept(reader, c))
		return true;
	message[10] = c;
	fail(reader, reader->at, message);
	return false;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The name here, empty when there is none. */
static struct str peek_name(struct reader *reader)
{
	skip_blanks(reader);
	struct str name = { reader->text.p + reader->at, 0 };
	if (is_digit(peek(reader, 0)) || peek(reader, 0) == '.')
		return name;
	while (reader->at + name.n < reader->text.n && is_name_char((unsigned char)name.p[name.n]))
		name.n++;
	return name;
}

/* ---- numbers ---- */

/* Length of the decimal number here, its sign included; `is_float` when it has a point or exponent.
 */
static uint32_t number_length(const struct reader *reader, bool *is_float)
{
	uint32_t n = peek(reader, 0) == '-';
	*is_float = false;
	while (is_digit(peek(reader, n)))
		n++;
	if (peek(reader, n) == '.') {
		*is_float = true;
		for (n++; is_digit(peek(reader, n));)
			n++;
	}
	if (peek(reader, n) == 'e' || peek(reader, n) == 'E') {
		uint32_t sign = peek(reader, n + 1) == '-' || peek(reader, n + 1) == '+';
		if (is_digit(peek(reader, n + 1 + sign))) {
			*is_float = true;
			for (n += 1 + sign; is_digit(peek(reader, n));)
				n++;
		}
	}
	return n;
}

/* Reads f16, f32, f64 or bf16 behind a number. */
static bool accept_suffix(struct reader *reader, struct dtype *type)
{
	static const struct dtype types[] = {
		{ TYPE_FLOAT, 16, 1 },
		{ TYPE_FLOAT, 32, 1 },
		{ TYPE_FLOAT, 64, 1 },
		{ TYPE_BFLOAT, 16, 1 },
	};
	for (int i = 0; i < 4; i++) {
		const char *suffix = float_suffix(types[i]);
		uint32_t n = (uint32_t)strlen(suffix);
		if (reader->text.n - reader->at >= n &&
		    memcmp(reader->text.p + reader->at, suffix, n) == 0 &&
		    !is_name_char((unsigned char)peek(reader, n))) {
			*type = types[i];
			reader->at += n;
			return true;
		}
	}
	return false;
}

/* A float without a suffix is a float32, as in TileLang. */
static const struct expr *read_number(struct reader *reader)
{
	bool is_float;
	char digits[400];
	uint32_t begin = reader->at, n = number_length(reader, &is_float);
	struct dtype type = DTYPE_F32;
	if (n >= sizeof(digits))
		return fail(reader, begin, "a number of too many digits");
	memcpy(digits, reader->text.p + begin, n);
	digits[n] = '\0';
	reader->at += n;
	if (accept_suffix(reader, &type) || is_float)
		return expr_float(reader->pool, type, strtod(digits, NULL));
	if (is_name_char((unsigned char)peek(reader, 0)))
		return fail(reader, reader->at, "a number runs into a name");
	errno = 0;
	long long value = strtoll(digits, NULL, 10);
	if (errno == ERANGE)
		return fail(reader, begin, "an integer beyond 64 bits");
	return expr_int(reader->pool, value);
}

/* ---- arguments ---- */

/* The rest of an argument list up to `close`. */
static bool read_args(struct reader *reader, struct args *args, char close)
{
	if (accept(reader, close))
		return true;
	for (;;) {
		if (args->n == MAX_ARGS) {
			fail(reader, reader->at, "too many operands");
			return false;
		}
		const struct expr *arg = read_expr(reader, PREC_LOWEST);
		if (!arg)
			return false;
		args->p[args->n++] = arg;
		if (accept(reader, close))
			return true;
		if (!expect(reader, ','))
			return false;
	}
}

/* False with E0190 when no type's name stands here. */
static bool read_type(struct reader *reader, struct dtype *type)
{
	struct str name = peek_name(reader);
	if (!dtype_parse(name, type)) {
		fail(reader, reader->at, "expected a type");
		return false;
	}
	reader->at += name.n;
	return true;
}

/* The text between double quotes; no escapes. False when there is none here. */
static bool accept_quoted(struct reader *reader, struct str *text)
{
	skip_blanks(reader);
	uint32_t end = reader->at + 1;
	if (peek(reader, 0) != '"')
		return false;
	while (end < reader->text.n && reader->text.p[end] != '"' && reader->text.p[end] != '\n')
		end++;
	if (end >= reader->text.n || reader->text.p[end] != '"')
		return false;
	*text = (struct str){ reader->text.p + reader->at + 1, end - reader->at - 1 };
	reader->at = end + 1;
	return true;
}

/* ---- functions ---- */

/* float32("inf") or a cast. */
static const struct expr *read_cast(struct reader *reader, struct dtype type)
{
	struct str text;
	const struct expr *value;
	uint32_t begin = reader->at;
	if (accept_quoted(reader, &text)) {
		double number = str_is(text, "nan") ? (double)NAN : (double)INFINITY;
		bool known = str_is(text, "nan") || str_is(text, "inf") || str_is(text, "-inf");
		if (!known || !dtype_is_float(type))
			return fail(reader, begin, "expected \"inf\", \"-inf\" or \"nan\"");
		value = expr_float(reader->pool, type, text.p[0] == '-' ? -number : number);
	} else {
		value = read_expr(reader, PREC_LOWEST);
		if (value)
			value = expr_cast(reader->pool, type, value);
	}
	return value && expect(reader, ')') ? value : NULL;
}

/* call(type, name, operands...) */
static const struct expr *read_call(struct reader *reader)
{
	struct dtype type;
	struct args args = { .n = 0 };
	if (!read_type(reader, &type) || !expect(reader, ','))
		return NULL;
	struct str name = peek_name(reader);
	if (name.n > 0)
		reader->at += name.n;
	else if (!accept_quoted(reader, &name))
		return fail(reader, reader->at, "expected a function's name");
	if (!accept(reader, ')') && !(expect(reader, ',') && read_args(reader, &args, ')')))
		return NULL;
	return expr_call(reader->pool, type, intern(reader->cx->names, name), args.p, args.n);
}

/* bitcast(type, value) and const(type, number) */
static const struct expr *read_typed(struct reader *reader, bool is_bitcast)
{
	struct dtype type;
	if (!read_type(reader, &type) || !expect(reader, ','))
		return NULL;
	const struct expr *value = read_expr(reader, PREC_LOWEST);
	if (!value || !expect(reader, ')'))
		return NULL;
	if (is_bitcast)
		return expr_bitcast(reader->pool, type, value);
	if (value->kind == EXPR_INT && dtype_is_int(type))
		return expr_int_typed(reader->pool, type, value->as.integer);
	if (value->kind == EXPR_FLOAT && dtype_is_float(type))
		return expr_float(reader->pool, type, value->as.number);
	return fail(reader, reader->at, "const() takes a number of its type's kind");
}

/* The operators that are written as calls. */
static bool binary_function(struct str name, enum binary_op *op)
{
	static const enum binary_op ops[] = { BIN_MIN, BIN_MAX, BIN_TRUNCDIV, BIN_TRUNCMOD };
	for (int i = 0; i < 4; i++) {
		if (str_is(name, binary_op_text(ops[i]))) {
			*op = ops[i];
			return true;
		}
	}
	return false;
}

/* The functions of math.def. */
static bool math_function(struct str name, enum math_fn *fn)
{
	for (int i = 0; i < N_MATH_FNS; i++) {
		if (str_is(name, math_fn_name((enum math_fn)i))) {
			*fn = (enum math_fn)i;
			return true;
		}
	}
	return false;
}

/* name( was read. */
static const struct expr *read_function(struct reader *reader, struct str name, uint32_t begin)
{
	struct args args = { .n = 0 };
	struct dtype type;
	enum binary_op op;
	enum math_fn fn;
	if (dtype_parse(name, &type))
		return read_cast(reader, type);
	if (str_is(name, "call"))
		return read_call(reader);
	if (str_is(name, "bitcast") || str_is(name, "const"))
		return read_typed(reader, str_is(name, "bitcast"));
	if (!read_args(reader, &args, ')'))
		return NULL;
	if (str_is(name, "select") && args.n == 3)
		return expr_select(reader->pool, args.p[0], args.p[1], args.p[2]);
	if (binary_function(name, &op) && args.n == 2)
		return expr_binary(reader->pool, op, args.p[0], args.p[1]);
	if (math_function(name, &fn) && args.n == (uint32_t)math_fn_arity(fn))
		return expr_math(reader->pool, fn, args.p, args.n);
	struct span span = { reader->file, begin, begin + name.n };
	diag_report(&reader->cx->diags, DIAG_E0191, span, "no function %.*s of %u operands",
	            STR_ARGS(name), (unsigned)args.n);
	return NULL;
}

/* ---- names ---- */

/* Tables belong to the pool, so they need no resolver. */
static const struct expr *read_table(struct reader *reader, struct str name,
                                     const struct args *args)
{
	for (uint32_t i = 0; i < reader->pool->tables.n && args->n == 1; i++) {
		const struct int_table *table = reader->pool->tables.p[i];
		if (str_is(name, table->name))
			return expr_table(reader->pool, table, args->p[0]);
	}
	return NULL;
}

/* True, False, a function, a variable or an element: resolver first, then the pool's tables. */
static const struct expr *read_name(struct reader *reader, struct str name)
{
	struct args args = { .n = 0 };
	uint32_t begin = reader->at;
	reader->at += name.n;
	if (str_is(name, "True") || str_is(name, "False"))
		return expr_bool(reader->pool, str_is(name, "True"));
	if (peek(reader, 0) == '(') {
		reader->at++;
		return read_function(reader, name, begin);
	}
	if (peek(reader, 0) == '[') {
		reader->at++;
		if (!read_args(reader, &args, ']'))
			return NULL;
	}
	const struct expr *e = reader->names->resolve(reader->names->user,
	                                              intern(reader->cx->names, name), args.p, args.n);
	if (!e)
		e = read_table(reader, name, &args);
	if (!e) {
		struct span span = { reader->file, begin, begin + name.n };
		diag_report(&reader->cx->diags, DIAG_E0191, span, "%.*s is not known here", STR_ARGS(name));
	}
	return e;
}

/* ---- operators ---- */

/* Of operands that bind at least as strongly as `precedence`. */
static const struct expr *read_unary(struct reader *reader, enum unary_op op, int precedence)
{
	const struct expr *a = read_expr(reader, precedence);
	return a ? expr_unary(reader->pool, op, a) : NULL;
}

/* A minus sign that touches a digit belongs to the number. */
static const struct expr *read_operand(struct reader *reader)
{
	struct str name = peek_name(reader);
	char c = peek(reader, 0);
	if (is_digit(c) || (c == '-' && is_digit(peek(reader, 1))))
		return read_number(reader);
	if (accept(reader, '-'))
		return read_unary(reader, UN_NEG, PREC_UNARY);
	if (accept(reader, '~'))
		return read_unary(reader, UN_BITNOT, PREC_UNARY);
	if (accept(reader, '(')) {
		const struct expr *e = read_expr(reader, PREC_LOWEST);
		return e && expect(reader, ')') ? e : NULL;
	}
	if (str_is(name, "not")) {
		reader->at += name.n;
		return read_unary(reader, UN_NOT, PREC_NOT);
	}
	if (name.n == 0 || str_is(name, "and") || str_is(name, "or"))
		return fail(reader, reader->at, "expected an expression");
	return read_name(reader, name);
}

/* The operator here, without reading it: its length, 0 when there is none. */
static uint32_t peek_operator(struct reader *reader, enum binary_op *op)
{
	/* longer texts before their prefixes */
	static const enum binary_op ops[] = {
		BIN_FLOORDIV, BIN_SHL,   BIN_SHR,    BIN_LE,  BIN_GE,  BIN_EQ,
		BIN_NE,       BIN_ADD,   BIN_SUB,    BIN_MUL, BIN_DIV, BIN_FLOORMOD,
		BIN_BITAND,   BIN_BITOR, BIN_BITXOR, BIN_LT,  BIN_GT,
	};
	struct str name = peek_name(reader);
	if (str_is(name, "and") || str_is(name, "or")) {
		*op = str_is(name, "and") ? BIN_AND : BIN_OR;
		return name.n;
	}
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		const char *text = binary_op_text(ops[i]);
		if (peek(reader, 0) == text[0] && (text[1] == '\0' || peek(reader, 1) == text[1])) {
			*op = ops[i];
			return (uint32_t)strlen(text);
		}
	}
	return 0;
}

/* Binary operators of at least the given precedence behind `left`. */
static const struct expr *read_operators(struct reader *reader, const struct expr *left,
                                         int min_precedence)
{
	bool compared = false;
	while (left) {
		enum binary_op op = N_BINARY_OPS;
		uint32_t n = peek_operator(reader, &op);
		int precedence = n > 0 ? binary_precedence(op) : PREC_LOWEST;
		if (n == 0 || precedence < min_precedence)
			break;
		if (compared && precedence == PREC_COMPARE)
			return fail(reader, reader->at, "comparisons do not chain");
		compared = precedence == PREC_COMPARE;
		reader->at += n;
		const struct expr *right = read_expr(reader, precedence + 1);
		left = right ? expr_binary(reader->pool, op, left, right) : NULL;
	}
	return left;
}

/* Every way to nest (brackets, arguments, signs) leads through here, so this counts the depth. */
static const struct expr *read_expr(struct reader *reader, int min_precedence)
{
	const struct expr *e;
	if (reader->depth == MAX_NESTING)
		return fail(reader, reader->at, "nested too deeply");
	reader->depth++;
	e = read_operators(reader, read_operand(reader), min_precedence);
	reader->depth--;
	return e;
}

/*
 * Names are resolved by the caller, who may make loads of them: see struct expr_names. *position is
 * where reading stopped, also after an error.
 */
const struct expr *expr_parse(struct cx *cx, struct expr_pool *pool, const struct expr_names *names,
                              uint32_t file, uint32_t *position)
{
	const struct source *source = source_get(&cx->sources, file);
	assert(source && *position <= source->text.n);
	struct reader reader = { .cx = cx, .pool = pool, .names = names, .file = file };
	reader.text = source->text;
	reader.at = *position;
	const struct expr *e = read_expr(&reader, PREC_LOWEST);
	*position = reader.at;
	return e;
}
