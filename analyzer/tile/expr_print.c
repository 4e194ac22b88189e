/*
 * Expressions as text. expr_parse.c reads it back through the same constructors, so constants whose
 * type the context does not give are written with it.
 *
 *     by*128 + tx % 8          int32 throughout
 *     S[i, j] * 0.5f16         the suffix is the constant's type
 *     uint64(3) + n            3 is a uint64 and n is not
 *     const(int8x4, 1)         types with lanes have no shorter form
 */
#include "analyzer/tile/expr_internal.h"

#include "analyzer/tile/expr_text.h"
#include "analyzer/tile/tile.h"
#include "codegen/lower/warp.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the text goes, and where names are found. */
struct printer {
	struct buf *out;
	const struct cx *cx;
};

static void print(struct printer *printer, const struct expr *e, int min_precedence);

/*
 * The order of Python's operators (reference, "Operator precedence"); min, max and the C divisions
 * are written as calls.
 */
int binary_precedence(enum binary_op op)
{
	switch (op) {
	case BIN_OR:
		return PREC_OR;
	case BIN_AND:
		return PREC_AND;
	case BIN_EQ:
	case BIN_NE:
	case BIN_LT:
	case BIN_LE:
	case BIN_GT:
	case BIN_GE:
		return PREC_COMPARE;
	case BIN_BITOR:
		return PREC_BITOR;
	case BIN_BITXOR:
		return PREC_BITXOR;
	case BIN_BITAND:
		return PREC_BITAND;
	case BIN_SHL:
	case BIN_SHR:
		return PREC_SHIFT;
	case BIN_ADD:
	case BIN_SUB:
		return PREC_SUM;
	case BIN_MUL:
	case BIN_DIV:
	case BIN_FLOORDIV:
	case BIN_FLOORMOD:
		return PREC_PRODUCT;
	case BIN_TRUNCDIV:
	case BIN_TRUNCMOD:
	case BIN_MIN:
	case BIN_MAX:
	case N_BINARY_OPS:
		break;
	}
	return PREC_ATOM;
}

/* Numbers with a sign bind like a unary operator. */
static int precedence_of(const struct expr *e)
{
	if (e->kind == EXPR_BINARY)
		return binary_precedence(e->as.binary);
	if (e->kind == EXPR_UNARY)
		return e->as.unary == UN_NOT ? PREC_NOT : PREC_UNARY;
	if (e->kind == EXPR_INT && e->as.integer < 0)
		return PREC_UNARY;
	if (e->kind == EXPR_FLOAT && signbit(e->as.number))
		return PREC_UNARY;
	return PREC_ATOM;
}

/* Does a bare number beside an operand of this type take the constant's type when it is read? */
static bool is_implied_by(const struct expr *constant, const struct expr *other)
{
	int64_t value = constant->as.integer;
	struct dtype type = constant->type;
	if (!other || other->kind == EXPR_INT || type.lanes != 1)
		return false;
	if (type.kind == TYPE_UINT)
		return type.bits >= 32 && value >= 0 && value <= INT32_MAX;
	return type.kind == TYPE_INT && type.bits == 64;
}

/* `other` is the operand on the other side of an operator, or NULL. */
static void print_int(struct printer *printer, const struct expr *e, const struct expr *other)
{
	int64_t value = e->as.integer;
	bool fits_int32 = value >= INT32_MIN && value <= INT32_MAX;
	bool is_default = dtype_equal(e->type, fits_int32 ? DTYPE_I32 : DTYPE_I64);
	char name[32];
	if (dtype_equal(e->type, DTYPE_BOOL))
		buf_text(printer->out, value ? "True" : "False");
	else if (is_default || is_implied_by(e, other))
		buf_printf(printer->out, "%" PRId64, value);
	else if (e->type.lanes == 1)
		buf_printf(printer->out, "%s(%" PRId64 ")", dtype_name(e->type, name), value);
	else
		buf_printf(printer->out, "const(%s, %" PRId64 ")", dtype_name(e->type, name), value);
}

/* NULL for types that have none: narrow floats and vectors. */
const char *float_suffix(struct dtype type)
{
	if (type.lanes != 1)
		return NULL;
	if (type.kind == TYPE_BFLOAT)
		return "bf16";
	if (type.kind != TYPE_FLOAT)
		return NULL;
	return type.bits == 16 ? "f16" : type.bits == 32 ? "f32" : "f64";
}

/* The shortest digits that the type rounds to the same value, with a point or an exponent. */
static void print_digits(struct buf *out, struct dtype type, double value)
{
	char text[40];
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		double read = dtype_round(type, strtod(text, NULL));
		if (!(read < value) && !(read > value))
			break;
	}
	buf_text(out, text);
	if (!strpbrk(text, ".e"))
		buf_text(out, ".0");
}

/* Infinity and NaN have no digits: float32("inf"). */
static void print_float(struct printer *printer, const struct expr *e)
{
	const char *suffix = float_suffix(e->type);
	double value = e->as.number;
	char name[32];
	dtype_name(e->type, name);
	if (!isfinite(value)) {
		const char *text = isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
		buf_printf(printer->out, "%s(\"%s\")", name, text);
		return;
	}
	if (!suffix)
		buf_printf(printer->out, "const(%s, ", name);
	print_digits(printer->out, e->type, value);
	buf_text(printer->out, suffix ? suffix : "f64)");
}

/* From argument `first` on, separated by commas, with `close` behind. */
static void print_args(struct printer *printer, const struct expr *e, uint32_t first,
                       const char *close)
{
	for (uint32_t i = first; i < e->n_args; i++) {
		if (i > first)
			buf_text(printer->out, ", ");
		print(printer, e->args[i], PREC_LOWEST);
	}
	buf_text(printer->out, close);
}

/* A constant operand may leave out its type when the other operand gives it. */
static void print_operand(struct printer *printer, const struct expr *e, const struct expr *other,
                          int min_precedence)
{
	if (e->kind == EXPR_INT && e->as.integer >= 0)
		print_int(printer, e, other);
	else
		print(printer, e, min_precedence);
}

/*
 * Weakest operator that operand `side` of op may be without brackets. Besides what reading back
 * needs: quotients and remainders inside products, and all operators inside bitwise ones, have them
 * for the reader's sake.
 */
static int operand_precedence(enum binary_op op, const struct expr *operand, int side)
{
	int precedence = binary_precedence(op);
	bool is_binary = operand->kind == EXPR_BINARY;
	if (is_binary && precedence == PREC_PRODUCT &&
	    (operand->as.binary == BIN_FLOORDIV || operand->as.binary == BIN_FLOORMOD))
		return PREC_UNARY;
	if (precedence >= PREC_BITOR && precedence <= PREC_SHIFT)
		return is_binary && operand->as.binary == op && side == 0 ? precedence : PREC_UNARY;
	return side == 1 || precedence == PREC_COMPARE ? precedence + 1 : precedence;
}

/* Products stand close, other operators have blanks around them. */
static void print_binary(struct printer *printer, const struct expr *e)
{
	const struct expr *a = e->args[0], *b = e->args[1];
	enum binary_op op = e->as.binary;
	const char *text = binary_op_text(op);
	if (binary_precedence(op) == PREC_ATOM) {
		buf_printf(printer->out, "%s(", text);
		print_operand(printer, a, b, PREC_LOWEST);
		buf_text(printer->out, ", ");
		print_operand(printer, b, a, PREC_LOWEST);
		buf_char(printer->out, ')');
		return;
	}
	print_operand(printer, a, b, operand_precedence(op, a, 0));
	buf_printf(printer->out, op == BIN_MUL ? "%s" : " %s ", text);
	print_operand(printer, b, a, operand_precedence(op, b, 1));
}

/* -(5) is the operator on a constant, -5 is the constant. */
static void print_unary(struct printer *printer, const struct expr *e)
{
	static const char *const texts[N_UNARY_OPS] = {
		[UN_NEG] = "-",
		[UN_NOT] = "not ",
		[UN_BITNOT] = "~",
	};
	buf_text(printer->out, texts[e->as.unary]);
	/* -(5) is the operator, -5 the constant */
	bool is_number = e->args[0]->kind == EXPR_INT || e->args[0]->kind == EXPR_FLOAT;
	if (is_number)
		buf_char(printer->out, '(');
	print(printer, e->args[0], e->as.unary == UN_NOT ? PREC_NOT : PREC_UNARY);
	if (is_number)
		buf_char(printer->out, ')');
}

/* Callees that are no plain names stand in quotes. */
static void print_call(struct printer *printer, const struct expr *e)
{
	const char *callee = sym_text(printer->cx->names, e->as.callee);
	bool is_name = callee[0] != '\0' && !isdigit((unsigned char)callee[0]);
	char type[32];
	for (const char *at = callee; *at; at++)
		is_name &= is_name_char((unsigned char)*at);
	buf_printf(printer->out, is_name ? "call(%s, %s" : "call(%s, \"%s\"", dtype_name(e->type, type),
	           callee);
	if (e->n_args > 0)
		buf_text(printer->out, ", ");
	print_args(printer, e, 0, ")");
}

/* Without regard to the operators around it. */
static void print_node(struct printer *printer, const struct expr *e)
{
	struct buf *out = printer->out;
	const struct interner *names = printer->cx->names;
	char type[32];
	switch (e->kind) {
	case EXPR_INT:
		print_int(printer, e, NULL);
		break;
	case EXPR_FLOAT:
		print_float(printer, e);
		break;
	case EXPR_VAR:
		buf_text(out, sym_text(names, e->as.var->name));
		break;
	case EXPR_LOAD:
		buf_printf(out, "%s[", sym_text(names, e->as.buffer->name));
		print_args(printer, e, 0, "]");
		break;
	case EXPR_REG:
		buf_printf(out, "%s[", sym_text(names, e->as.reg->name));
		print_args(printer, e, 0, "]");
		break;
	case EXPR_UNARY:
		print_unary(printer, e);
		break;
	case EXPR_BINARY:
		print_binary(printer, e);
		break;
	case EXPR_SELECT:
		buf_text(out, "select(");
		print_args(printer, e, 0, ")");
		break;
	case EXPR_CAST:
		buf_printf(out, "%s(", dtype_name(e->type, type));
		print_args(printer, e, 0, ")");
		break;
	case EXPR_BITCAST:
		buf_printf(out, "bitcast(%s, ", dtype_name(e->type, type));
		print_args(printer, e, 0, ")");
		break;
	case EXPR_MATH:
		buf_printf(out, "%s(", math_fn_name(e->as.math));
		print_args(printer, e, 0, ")");
		break;
	case EXPR_TABLE:
		buf_printf(out, "%s[", e->as.table->name);
		print_args(printer, e, 0, "]");
		break;
	case EXPR_CALL:
		print_call(printer, e);
		break;
	}
}

/* In brackets when it binds weaker than the place demands. */
static void print(struct printer *printer, const struct expr *e, int min_precedence)
{
	bool wrap = precedence_of(e) < min_precedence;
	if (wrap)
		buf_char(printer->out, '(');
	print_node(printer, e);
	if (wrap)
		buf_char(printer->out, ')');
}

void expr_print(struct buf *out, const struct cx *cx, const struct expr *e)
{
	struct printer printer = { out, cx };
	print(&printer, e, PREC_LOWEST);
}
