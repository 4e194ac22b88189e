/*
 * Expressions as C++: (by*128 + tid//8) prints as `by * 128 + tid / 8`, exp2(x) of float32 as
 * `exp2f(x)`.
 *
 * A value of float16, bfloat16 or tfloat32 is a float that its type can hold; each operation that
 * yields such a type is wrapped in its rounding. Floor division and modulo become / and % where
 * the ranges show that nothing is negative, shifts and masks for other powers of two, else a
 * helper.
 */
#include "codegen/cuda/writer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct value_context {
	struct cuda_writer *writer;
	struct buf *out;
	bool wide; /* integers are computed in 64 bits */
};

static void print(const struct value_context *at, const struct expr *e, enum cuda_level level);

/* A leaf that print widens itself where 64 bits are asked for. */
static bool is_widened(const struct expr *e)
{
	return (e->kind == EXPR_VAR || e->kind == EXPR_REG) && dtype_is_int(e->type) &&
	       e->type.bits <= 32;
}

/* ---- constants ---- */

static void print_int(const struct value_context *at, const struct expr *e)
{
	int64_t value = e->as.integer;
	bool is_unsigned = e->type.kind == TYPE_UINT;
	bool fits = value >= INT32_MIN && value <= (is_unsigned ? (int64_t)UINT32_MAX : INT32_MAX);

	if (e->type.kind == TYPE_BOOL)
		buf_text(at->out, value ? "true" : "false");
	else if (value == INT64_MIN)
		buf_text(at->out, "(-9223372036854775807LL - 1)");
	else if (value == INT32_MIN && e->type.bits <= 32)
		buf_text(at->out, "(-2147483647 - 1)");
	else
		buf_printf(at->out, "%lld%s%s", (long long)value, is_unsigned ? "u" : "",
		           fits && e->type.bits <= 32 ? "" : "LL");
}

/* The shortest text that reads back as the same float. */
static void print_shortest_float(struct buf *out, double value)
{
	char text[64];

	for (int digits = 1; digits <= 9; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if ((double)strtof(text, NULL) == (double)(float)value)
			break;
	}
	buf_text(out, text);
}

static void print_float(const struct value_context *at, const struct expr *e)
{
	double value = e->as.number;
	bool is_double = e->type.bits == 64;
	size_t begin = at->out->n;

	if (isnan(value) || isinf(value)) {
		const char *bits = isnan(value) ? "0x7fffffff" : value > 0 ? "0x7f800000" : "0xff800000";
		buf_printf(at->out, "%s__int_as_float(%s)", is_double ? "(double)" : "", bits);
		return;
	}
	if (is_double)
		buf_double(at->out, value);
	else
		print_shortest_float(at->out, value);
	if (!strpbrk(at->out->p + begin, ".en"))
		buf_text(at->out, ".0");
	if (!is_double)
		buf_char(at->out, 'f');
}

/* ---- operators ---- */

struct operator_text {
	const char *text;
	enum cuda_level level;       /* of the result */
	enum cuda_level left, right; /* what its operands need */
};

/*
 * Bit operators get parentheses around everything that is not plain, as people expect; text NULL:
 * not an infix.
 */
static const struct operator_text operators[N_BINARY_OPS] = {
	[BIN_ADD] = { "+", LEVEL_ADD, LEVEL_ADD, LEVEL_ADD },
	[BIN_SUB] = { "-", LEVEL_ADD, LEVEL_ADD, LEVEL_MUL },
	[BIN_MUL] = { "*", LEVEL_MUL, LEVEL_MUL, LEVEL_UNARY },
	[BIN_DIV] = { "/", LEVEL_MUL, LEVEL_MUL, LEVEL_UNARY },
	[BIN_TRUNCDIV] = { "/", LEVEL_MUL, LEVEL_MUL, LEVEL_UNARY },
	[BIN_TRUNCMOD] = { "%", LEVEL_MUL, LEVEL_MUL, LEVEL_UNARY },
	[BIN_FLOORDIV] = { "/", LEVEL_MUL, LEVEL_MUL, LEVEL_UNARY },
	[BIN_FLOORMOD] = { "%", LEVEL_MUL, LEVEL_MUL, LEVEL_UNARY },
	[BIN_BITAND] = { "&", LEVEL_BITAND, LEVEL_UNARY, LEVEL_UNARY },
	[BIN_BITOR] = { "|", LEVEL_BITOR, LEVEL_UNARY, LEVEL_UNARY },
	[BIN_BITXOR] = { "^", LEVEL_BITXOR, LEVEL_UNARY, LEVEL_UNARY },
	[BIN_SHL] = { "<<", LEVEL_SHIFT, LEVEL_UNARY, LEVEL_UNARY },
	[BIN_SHR] = { ">>", LEVEL_SHIFT, LEVEL_UNARY, LEVEL_UNARY },
	[BIN_EQ] = { "==", LEVEL_EQUAL, LEVEL_ORDER, LEVEL_ORDER },
	[BIN_NE] = { "!=", LEVEL_EQUAL, LEVEL_ORDER, LEVEL_ORDER },
	[BIN_LT] = { "<", LEVEL_ORDER, LEVEL_SHIFT, LEVEL_SHIFT },
	[BIN_LE] = { "<=", LEVEL_ORDER, LEVEL_SHIFT, LEVEL_SHIFT },
	[BIN_GT] = { ">", LEVEL_ORDER, LEVEL_SHIFT, LEVEL_SHIFT },
	[BIN_GE] = { ">=", LEVEL_ORDER, LEVEL_SHIFT, LEVEL_SHIFT },
	[BIN_AND] = { "&&", LEVEL_AND, LEVEL_AND, LEVEL_EQUAL },
	[BIN_OR] = { "||", LEVEL_OR, LEVEL_UNARY, LEVEL_UNARY },
};

static bool is_wide_int(struct dtype type)
{
	return dtype_is_int(type) && type.bits == 64;
}

/*
 * An operand of an operation in `type`: 32-bit integers of a 64-bit operation are widened before
 * they are computed with.
 */
static void print_operand(const struct value_context *at, const struct expr *e, struct dtype type,
                          enum cuda_level level)
{
	struct value_context inner = *at;

	if (is_wide_int(type) && dtype_is_int(e->type))
		inner.wide = true;
	print(&inner, e, level);
}

static void print_infix(const struct value_context *at, const struct expr *e, const char *text)
{
	const struct operator_text *op = &operators[e->as.binary];
	struct dtype type =
		e->args[0]->type.bits > e->args[1]->type.bits ? e->args[0]->type : e->args[1]->type;

	print_operand(at, e->args[0], type, op->left);
	buf_printf(at->out, " %s ", text);
	print_operand(at, e->args[1], type, op->right);
}

/* a + (-3), a + (-2)*b print as a - 3, a - 2 * b. */
static bool print_difference(const struct value_context *at, const struct expr *e)
{
	const struct expr *left = e->args[0], *right = e->args[1];
	int64_t value;

	if (!dtype_is_int(e->type))
		return false;
	if (expr_is_int(right, &value) && value < 0 && value > INT32_MIN) {
		print_operand(at, left, e->type, LEVEL_ADD);
		buf_printf(at->out, " - %lld", (long long)-value);
		return true;
	}
	if (right->kind == EXPR_BINARY && right->as.binary == BIN_MUL &&
	    expr_is_int(right->args[1], &value) && value < 0 && value > INT32_MIN) {
		print_operand(at, left, e->type, LEVEL_ADD);
		buf_text(at->out, " - ");
		print_operand(at, right->args[0], e->type, LEVEL_MUL);
		if (value != -1)
			buf_printf(at->out, " * %lld", (long long)-value);
		return true;
	}
	return false;
}

static bool is_power_of_two(int64_t value)
{
	return value > 0 && (value & (value - 1)) == 0;
}

static bool is_never_negative(const struct expr *e)
{
	int64_t min, max;

	return e->type.kind == TYPE_UINT || (expr_range(e, &min, &max) && min >= 0);
}

/* A floor division or modulo that C++'s truncation does not give. */
static void print_floor(const struct value_context *at, const struct expr *e, enum cuda_level level)
{
	bool is_div = e->as.binary == BIN_FLOORDIV;
	const char *type = is_wide_int(e->type) || at->wide ? "long long" : "int";
	int64_t divisor;

	if (expr_is_int(e->args[1], &divisor) && is_power_of_two(divisor)) {
		enum cuda_level own = is_div ? LEVEL_SHIFT : LEVEL_BITAND;
		buf_text(at->out, own < level ? "(" : "");
		print_operand(at, e->args[0], e->type, LEVEL_UNARY);
		if (is_div)
			buf_printf(at->out, " >> %d", __builtin_ctzll((uint64_t)divisor));
		else
			buf_printf(at->out, " & %lld", (long long)divisor - 1);
		buf_text(at->out, own < level ? ")" : "");
		return;
	}
	cuda_use(at->writer, is_div ? HELPER_floor_div : HELPER_floor_mod);
	buf_printf(at->out, "%s<%s>(", is_div ? "floor_div" : "floor_mod", type);
	print_operand(at, e->args[0], e->type, LEVEL_ANY);
	buf_text(at->out, ", ");
	print_operand(at, e->args[1], e->type, LEVEL_ANY);
	buf_char(at->out, ')');
}

static void print_min_max(const struct value_context *at, const struct expr *e)
{
	bool is_min = e->as.binary == BIN_MIN;
	struct dtype type = e->type;

	if (dtype_is_float(type))
		buf_text(at->out,
		         type.bits == 64 ? (is_min ? "fmin(" : "fmax(") : (is_min ? "fminf(" : "fmaxf("));
	else
		buf_text(at->out, is_min ? "min(" : "max(");
	for (int i = 0; i < 2; i++) {
		struct dtype from = e->args[i]->type;
		const char *to = at->wide && type.bits == 32 ? "long long" : cuda_value_type(type);
		bool same = strcmp(cuda_value_type(from), to) == 0;
		buf_text(at->out, i > 0 ? ", " : "");
		if (!same)
			buf_printf(at->out, "(%s)", to);
		print(at, e->args[i], same ? LEVEL_ANY : LEVEL_UNARY);
	}
	buf_char(at->out, ')');
}

static bool is_comparison(enum binary_op op)
{
	return op >= BIN_EQ && op <= BIN_GE;
}

/* The operation without what its type adds. */
static void print_binary(const struct value_context *at, const struct expr *e,
                         enum cuda_level level)
{
	enum binary_op op = e->as.binary;
	const struct operator_text *text = &operators[op];
	bool is_floor = (op == BIN_FLOORDIV || op == BIN_FLOORMOD);

	if (op == BIN_MIN || op == BIN_MAX) {
		print_min_max(at, e);
	} else if (is_floor && dtype_is_float(e->type)) {
		cuda_unsupported(at->writer, "floor division of floating-point values");
	} else if (is_floor && !(is_never_negative(e->args[0]) && is_never_negative(e->args[1]))) {
		print_floor(at, e, level);
	} else {
		buf_text(at->out, text->level < level ? "(" : "");
		if (op != BIN_ADD || !print_difference(at, e))
			print_infix(at, e, text->text);
		buf_text(at->out, text->level < level ? ")" : "");
	}
}

/* Opens what a result of this type is wrapped in; the text that closes it. */
static const char *open_rounding(const struct value_context *at, struct dtype type)
{
	if (type.kind == TYPE_BFLOAT) {
		cuda_use(at->writer, HELPER_from_bf16);
		cuda_use(at->writer, HELPER_to_bf16);
		cuda_use(at->writer, HELPER_round_bf16);
		buf_text(at->out, "round_bf16(");
		return ")";
	}
	if (type.kind == TYPE_FLOAT && type.bits == 16) {
		cuda_use(at->writer, HELPER_from_f16);
		cuda_use(at->writer, HELPER_to_f16);
		cuda_use(at->writer, HELPER_round_f16);
		buf_text(at->out, "round_f16(");
		return ")";
	}
	if (type.kind == TYPE_TFLOAT) {
		cuda_use(at->writer, HELPER_to_tf32);
		cuda_use(at->writer, HELPER_round_tf32);
		buf_text(at->out, "round_tf32(");
		return ")";
	}
	if (type.kind == TYPE_FLOAT8_E4M3) {
		cuda_use(at->writer, HELPER_round_to_f8);
		cuda_use(at->writer, HELPER_to_e4m3);
		cuda_use(at->writer, HELPER_from_e4m3);
		cuda_use(at->writer, HELPER_round_e4m3);
		buf_text(at->out, "round_e4m3(");
		return ")";
	}
	if (type.kind == TYPE_FLOAT8_E5M2) {
		cuda_use(at->writer, HELPER_from_f16);
		cuda_use(at->writer, HELPER_round_to_f8);
		cuda_use(at->writer, HELPER_to_e5m2);
		cuda_use(at->writer, HELPER_from_e5m2);
		cuda_use(at->writer, HELPER_round_e5m2);
		buf_text(at->out, "round_e5m2(");
		return ")";
	}
	if (dtype_is_int(type) && type.bits < 32 && type.kind != TYPE_BOOL) {
		buf_printf(at->out, "(%s%s)(",
		           type.kind == TYPE_INT ? (type.bits == 8 ? "signed " : "") : "unsigned ",
		           type.bits == 8 ? "char" : "short");
		return ")";
	}
	return NULL;
}

/* Operations that never leave their operands' type. */
static bool is_exact(const struct expr *e)
{
	if (e->kind == EXPR_BINARY)
		return e->as.binary == BIN_MIN || e->as.binary == BIN_MAX || is_comparison(e->as.binary) ||
		       e->as.binary == BIN_AND || e->as.binary == BIN_OR;
	return e->kind == EXPR_UNARY && dtype_is_float(e->type);
}

static void print_unary(const struct value_context *at, const struct expr *e, enum cuda_level level)
{
	static const char *const texts[N_UNARY_OPS] = {
		[UN_NEG] = "-", [UN_NOT] = "!", [UN_BITNOT] = "~"
	};
	bool parentheses = LEVEL_UNARY < level;

	buf_printf(at->out, "%s%s", parentheses ? "(" : "", texts[e->as.unary]);
	print_operand(at, e->args[0], e->type, LEVEL_PRIMARY);
	buf_text(at->out, parentheses ? ")" : "");
}

/* ---- functions and conversions ---- */

/* C++'s name of a function on floats without its suffix; NULL: no form. */
static const char *function_name(enum math_fn fn)
{
	if (fn == MATH_abs)
		return "fabs";
	return math_fn_name(fn);
}

static bool is_classification(enum math_fn fn)
{
	return fn == MATH_isfinite || fn == MATH_isnan || fn == MATH_isinf;
}

static void print_math(const struct value_context *at, const struct expr *e)
{
	enum math_fn fn = e->as.math;
	struct dtype of = e->args[0]->type;
	bool is_double = dtype_is_float(of) && of.bits == 64;

	if (fn == MATH_sigmoid) {
		cuda_use(at->writer, HELPER_sigmoid);
		buf_text(at->out, "sigmoid(");
	} else if (is_classification(fn)) {
		buf_printf(at->out, "bool(%s(", function_name(fn));
	} else if (fn == MATH_abs && dtype_is_int(of)) {
		buf_text(at->out, "abs(");
	} else {
		buf_printf(at->out, "%s%s(", function_name(fn), is_double ? "" : "f");
	}
	for (uint32_t i = 0; i < e->n_args; i++) {
		buf_text(at->out, i > 0 ? ", " : "");
		print(at, e->args[i], LEVEL_ANY);
	}
	buf_text(at->out, is_classification(fn) ? "))" : ")");
}

/* A numeric conversion; one that keeps the value's C++ type and bits prints nothing. */
static void print_cast(const struct value_context *at, const struct expr *e, enum cuda_level level)
{
	struct dtype to = e->type, from = e->args[0]->type;
	const char *to_text = cuda_value_type(to), *from_text = cuda_value_type(from);
	bool parentheses;

	if (to.kind == TYPE_BOOL && from.kind != TYPE_BOOL) {
		buf_text(at->out, "(");
		print(at, e->args[0], LEVEL_EQUAL);
		buf_text(at->out, " != 0)");
		return;
	}
	if (strcmp(to_text, from_text) == 0) {
		print(at, e->args[0], level);
		return;
	}
	parentheses = LEVEL_UNARY < level;
	buf_text(at->out, parentheses ? "(" : "");
	if (!is_wide_int(to) || !is_widened(e->args[0]))
		buf_printf(at->out, "(%s)", to_text);
	print_operand(at, e->args[0], to, LEVEL_PRIMARY);
	buf_text(at->out, parentheses ? ")" : "");
}

static void print_bitcast(const struct value_context *at, const struct expr *e)
{
	struct dtype to = e->type, from = e->args[0]->type;
	const char *name = NULL;

	if (dtype_is_float(from) && !dtype_is_float(to) && to.bits == 32)
		name = to.kind == TYPE_UINT ? "__float_as_uint" : "__float_as_int";
	else if (!dtype_is_float(from) && dtype_is_float(to) && to.bits == 32)
		name = from.kind == TYPE_UINT ? "__uint_as_float" : "__int_as_float";
	else if (dtype_is_float(from) && !dtype_is_float(to) && to.bits == 64)
		name = "__double_as_longlong";
	else if (!dtype_is_float(from) && dtype_is_float(to) && to.bits == 64)
		name = "__longlong_as_double";
	else if (from.bits == to.bits && dtype_is_int(from) && dtype_is_int(to))
		name = cuda_value_type(to);
	if (!name || from.bits != to.bits || from.bits < 32) {
		cuda_unsupported(at->writer, "a bit cast between these types");
		return;
	}
	buf_printf(at->out, strchr(name, ' ') ? "(%s)(" : "%s(", name);
	print(at, e->args[0], LEVEL_ANY);
	buf_char(at->out, ')');
}

static void print_table(const struct value_context *at, const struct expr *e)
{
	const struct int_table *table = e->as.table;
	bool known = false;

	for (uint32_t i = 0; i < at->writer->tables.n; i++)
		known = known || at->writer->tables.p[i] == table;
	if (!known)
		vec_push(at->writer->cx->arena, &at->writer->tables, table);
	buf_printf(at->out, "%s[", table->name);
	print(at, e->args[0], LEVEL_ANY);
	buf_char(at->out, ']');
}

static void print_select(const struct value_context *at, const struct expr *e,
                         enum cuda_level level)
{
	bool parentheses = LEVEL_SELECT < level;

	buf_text(at->out, parentheses ? "(" : "");
	print(at, e->args[0], LEVEL_OR);
	buf_text(at->out, " ? ");
	print_operand(at, e->args[1], e->type, LEVEL_OR);
	buf_text(at->out, " : ");
	print_operand(at, e->args[2], e->type, LEVEL_SELECT);
	buf_text(at->out, parentheses ? ")" : "");
}

static void print_var(const struct value_context *at, const struct expr *e)
{
	const struct var *var = e->as.var;
	const char *name = cuda_var_name(at->writer, var);
	const char *scalar = var->type.kind == TYPE_BFLOAT ? "from_bf16" : "from_f16";

	map_at(at->writer->cx->arena, &at->writer->used_vars, var->id);
	if (at->wide && is_widened(e))
		buf_text(at->out, "(long long)");
	if (dtype_is_float(var->type) && var->type.bits == 16) {
		cuda_use(at->writer, var->type.kind == TYPE_BFLOAT ? HELPER_from_bf16 : HELPER_from_f16);
		buf_printf(at->out, "%s(%s)", scalar, name);
		return;
	}
	buf_text(at->out, name);
}

/* Everything but the rounding to the expression's type. */
static void print_plain(const struct value_context *at, const struct expr *e, enum cuda_level level)
{
	switch (e->kind) {
	case EXPR_INT:
		print_int(at, e);
		break;
	case EXPR_FLOAT:
		print_float(at, e);
		break;
	case EXPR_VAR:
		print_var(at, e);
		break;
	case EXPR_REG:
		buf_text(at->out, at->wide && is_widened(e) ? "(long long)" : "");
		cuda_slot_value(at->writer, at->out, e->as.reg, e->args[0]);
		break;
	case EXPR_UNARY:
		print_unary(at, e, level);
		break;
	case EXPR_BINARY:
		print_binary(at, e, level);
		break;
	case EXPR_SELECT:
		print_select(at, e, level);
		break;
	case EXPR_CAST:
		print_cast(at, e, level);
		break;
	case EXPR_BITCAST:
		print_bitcast(at, e);
		break;
	case EXPR_MATH:
		print_math(at, e);
		break;
	case EXPR_TABLE:
		print_table(at, e);
		break;
	case EXPR_LOAD:
		cuda_unsupported(at->writer, "an element of a tile that was not lowered");
		break;
	case EXPR_CALL:
		cuda_unsupported(at->writer, "the function %s",
		                 sym_text(at->writer->cx->names, e->as.callee));
		break;
	}
}

/* Does the operation yield a value that must be rounded to its type? */
static bool needs_rounding(const struct expr *e)
{
	switch (e->kind) {
	case EXPR_UNARY:
	case EXPR_BINARY:
		return !is_exact(e);
	case EXPR_CAST:
		return !dtype_equal(e->type, e->args[0]->type);
	case EXPR_MATH:
		return true;
	case EXPR_INT:
	case EXPR_FLOAT:
	case EXPR_VAR:
	case EXPR_LOAD:
	case EXPR_REG:
	case EXPR_SELECT:
	case EXPR_BITCAST:
	case EXPR_TABLE:
	case EXPR_CALL:
		return false;
	}
	return false;
}

static void print(const struct value_context *at, const struct expr *e, enum cuda_level level)
{
	const char *close = needs_rounding(e) ? open_rounding(at, e->type) : NULL;

	if (!close) {
		print_plain(at, e, level);
		return;
	}
	print_plain(at, e, LEVEL_ANY);
	buf_text(at->out, close);
}

void cuda_value(struct cuda_writer *writer, struct buf *out, const struct expr *e,
                enum cuda_level level)
{
	struct value_context at = { writer, out, false };

	assert(e);
	print(&at, e, level);
}

struct range_walk {
	bool fits;
};

static void check_fits(void *user, const struct expr *e)
{
	struct range_walk *walk = user;
	int64_t min, max;

	if (!dtype_is_int(e->type) || e->type.kind == TYPE_BOOL)
		return;
	if (!expr_range(e, &min, &max) || min < INT32_MIN || max > INT32_MAX)
		walk->fits = false;
}

void cuda_index(struct cuda_writer *writer, struct buf *out, const struct expr *e,
                enum cuda_level level)
{
	struct range_walk walk = { true };
	struct value_context at = { writer, out, false };

	expr_walk(e, check_fits, &walk);
	at.wide = !walk.fits;
	print(&at, e, level);
}

void cuda_value_unrounded(struct cuda_writer *writer, struct buf *out, const struct expr *e)
{
	struct value_context at = { writer, out, false };

	print_plain(&at, e, LEVEL_ANY);
}

void cuda_value_as(struct cuda_writer *writer, struct buf *out, const struct expr *e,
                   struct dtype type)
{
	struct value_context at = { writer, out, false };

	print_operand(&at, e, type, LEVEL_ANY);
}
