/*
 * Values of index expressions, one at a time. expr_code.c has the compiled form; tests compare the
 * two, and both with the simplifier's results.
 */
#include "analyzer/tile/expr_internal.h"

#include "analyzer/tile/expr_ops.h"

/* A value as its type stores it. */
static int64_t store_int(struct dtype type, int64_t value)
{
	if (type.kind == TYPE_BOOL)
		return value != 0;
	return dtype_decode_int(type, (uint64_t)value);
}

/* Negation wraps around at 64 bits, like all of op_*. */
static int64_t eval_unary(const struct expr *e, int64_t a)
{
	switch (e->as.unary) {
	case UN_NEG:
		return op_sub(0, a);
	case UN_NOT:
		return a == 0;
	case UN_BITNOT:
		return ~a;
	case N_UNARY_OPS:
		break;
	}
	return 0;
}

/* `and` and `or` look at their right side only when it matters. */
static int64_t eval_binary(const struct expr *e, const int64_t *values)
{
	int64_t a = expr_eval_int(e->args[0], values);
	if (e->as.binary == BIN_AND)
		return a != 0 && expr_eval_int(e->args[1], values) != 0;
	if (e->as.binary == BIN_OR)
		return a != 0 || expr_eval_int(e->args[1], values) != 0;
	int64_t b = expr_eval_int(e->args[1], values);
	switch (e->as.binary) {
	case BIN_ADD:
		return op_add(a, b);
	case BIN_SUB:
		return op_sub(a, b);
	case BIN_MUL:
		return op_mul(a, b);
	case BIN_FLOORDIV:
		return floor_div(a, b);
	case BIN_FLOORMOD:
		return floor_mod(a, b);
	case BIN_TRUNCDIV:
		return op_truncdiv(a, b);
	case BIN_TRUNCMOD:
		return op_truncmod(a, b);
	case BIN_MIN:
		return a < b ? a : b;
	case BIN_MAX:
		return a > b ? a : b;
	case BIN_BITAND:
		return a & b;
	case BIN_BITOR:
		return a | b;
	case BIN_BITXOR:
		return a ^ b;
	case BIN_SHL:
		return op_shl(a, b);
	case BIN_SHR:
		return op_shr(a, b);
	case BIN_EQ:
		return a == b;
	case BIN_NE:
		return a != b;
	case BIN_LT:
		return a < b;
	case BIN_LE:
		return a <= b;
	case BIN_GT:
		return a > b;
	case BIN_GE:
		return a >= b;
	case BIN_DIV:
	case BIN_AND:
	case BIN_OR:
	case N_BINARY_OPS:
		break;
	}
	return 0;
}

/* Recursion as deep as the expression; a node that is shared is evaluated at every use. */
int64_t expr_eval_int(const struct expr *e, const int64_t *values)
{
	int64_t value;
	switch (e->kind) {
	case EXPR_INT:
		return e->as.integer;
	case EXPR_VAR:
		return values[e->as.var->id];
	case EXPR_BINARY:
		value = eval_binary(e, values);
		return e->type.kind == TYPE_UINT ? store_int(e->type, value) : value;
	case EXPR_UNARY:
		value = eval_unary(e, expr_eval_int(e->args[0], values));
		return e->type.kind == TYPE_UINT ? store_int(e->type, value) : value;
	case EXPR_SELECT:
		value = expr_eval_int(e->args[0], values);
		return expr_eval_int(e->args[value ? 1 : 2], values);
	case EXPR_CAST:
		return store_int(e->type, expr_eval_int(e->args[0], values));
	case EXPR_TABLE:
		return op_table(e->as.table, expr_eval_int(e->args[0], values));
	case EXPR_FLOAT:
	case EXPR_LOAD:
	case EXPR_REG:
	case EXPR_BITCAST:
	case EXPR_MATH:
	case EXPR_CALL:
		break;
	}
	BUG("not an index expression");
}
