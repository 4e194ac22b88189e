/*
 * T.* functions of scalars: arithmetic, casts, constants, mathematics. On host numbers those that
 * have an exact meaning there fold: T.ceildiv(100, 32) is 4 and may size a tile; T.exp2(2.0) stays
 * an expression, since its value is what the device computes.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* A host number becomes a constant of that type at once. */
struct value call_dtype(struct eval *ev, struct dtype type, struct call *call)
{
	const struct expr *e;

	if (type.kind == TYPE_HANDLE)
		return (struct value){ .kind = V_DTYPE, .as.dtype = type };
	if (call->args.n == 0)
		return VALUE_EXPR(expr_of_var(
			ev->pool, expr_new_var(ev->pool, VAR_SYMBOL, intern_text(ev->cx->names, "v"), type)));
	if (!bind_slots(ev, call, "value"))
		return VALUE_ERROR;
	if (call->slot[0]->value.kind == V_OPAQUE)
		return call->slot[0]->value;
	e = lang_slot_expr(ev, call, 0, &type);
	return e ? device_value(device_cast(ev, type, e)) : VALUE_ERROR;
}

/* The operator of two arguments, at either level. */
static struct value two(struct eval *ev, struct call *call, enum ast_binary op)
{
	return eval_binary(ev, op, call->slot[0]->value, call->slot[1]->value, call->span);
}

static struct value t_floordiv(struct eval *ev, struct call *call)
{
	return two(ev, call, AST_FLOORDIV);
}

static struct value t_floormod(struct eval *ev, struct call *call)
{
	return two(ev, call, AST_MOD);
}

static struct value t_shift_left(struct eval *ev, struct call *call)
{
	return two(ev, call, AST_SHL);
}

static struct value t_shift_right(struct eval *ev, struct call *call)
{
	return two(ev, call, AST_SHR);
}

static struct value t_bitwise_and(struct eval *ev, struct call *call)
{
	return two(ev, call, AST_BITAND);
}

static struct value t_bitwise_or(struct eval *ev, struct call *call)
{
	return two(ev, call, AST_BITOR);
}

static struct value t_bitwise_xor(struct eval *ev, struct call *call)
{
	return two(ev, call, AST_BITXOR);
}

/* C's division and remainder. */
static struct value trunc_op(struct eval *ev, struct call *call, enum binary_op op)
{
	const struct expr *pair[2];
	int64_t divisor;

	if (call->slot[0]->value.kind == V_OPAQUE || call->slot[1]->value.kind == V_OPAQUE)
		return ev_opaque(ev, call->span, NULL);
	if (!device_pair(ev, call->slot[0]->value, call->slot[1]->value, call->span, pair))
		return VALUE_ERROR;
	if (expr_is_int(pair[1], &divisor) && divisor == 0)
		return ev_error(ev, DIAG_E0214, call->span, "division by zero");
	return device_value(expr_binary(ev->pool, op, pair[0], pair[1]));
}

static struct value t_truncdiv(struct eval *ev, struct call *call)
{
	return trunc_op(ev, call, BIN_TRUNCDIV);
}

static struct value t_truncmod(struct eval *ev, struct call *call)
{
	return trunc_op(ev, call, BIN_TRUNCMOD);
}

/* (a + b - 1) // b */
static struct value t_ceildiv(struct eval *ev, struct call *call)
{
	struct value a = call->slot[0]->value, b = call->slot[1]->value;
	struct value above = eval_binary(ev, AST_SUB, eval_binary(ev, AST_ADD, a, b, call->span),
	                                 VALUE_INT(1), call->span);

	return eval_binary(ev, AST_FLOORDIV, above, b, call->span);
}

/* T.align_up(x, y): x rounded up to a multiple of y. */
static struct value t_align_up(struct eval *ev, struct call *call)
{
	return eval_binary(ev, AST_MUL, t_ceildiv(ev, call), call->slot[1]->value, call->span);
}

/* Host numbers fold; of the two the one that Python's max and min return. */
static struct value min_max(struct eval *ev, struct call *call, bool is_max)
{
	struct value a = call->slot[0]->value, b = call->slot[1]->value;
	const struct expr *pair[2];
	double x, y;

	if (a.kind == V_ERROR || b.kind == V_ERROR)
		return VALUE_ERROR;
	if (value_number(a, &x) && value_number(b, &y))
		return (is_max ? x >= y : x <= y) ? a : b;
	if (!ev->trace && (a.kind == V_OPAQUE || b.kind == V_OPAQUE))
		return a.kind == V_OPAQUE ? a : b;
	if (!device_pair(ev, a, b, call->span, pair))
		return VALUE_ERROR;
	return device_value(expr_binary(ev->pool, is_max ? BIN_MAX : BIN_MIN, pair[0], pair[1]));
}

static struct value t_max(struct eval *ev, struct call *call)
{
	return min_max(ev, call, true);
}

static struct value t_min(struct eval *ev, struct call *call)
{
	return min_max(ev, call, false);
}

/* min(max(x, low), high) */
static struct value t_clamp(struct eval *ev, struct call *call)
{
	struct arg low = *call->slot[0], high;
	struct call inner = *call;

	inner.slot[0] = &low;
	low.value = min_max(ev, &inner, true);
	high = *call->slot[2];
	inner.slot[1] = &high;
	return min_max(ev, &inner, false);
}

/* A condition known on the host chooses here. */
static struct value t_if_then_else(struct eval *ev, struct call *call)
{
	struct value condition = call->slot[0]->value;
	int truth = eval_truth(condition);

	if (condition.kind == V_ERROR || call->slot[1]->value.kind == V_ERROR ||
	    call->slot[2]->value.kind == V_ERROR)
		return VALUE_ERROR;
	if (truth >= 0)
		return call->slot[truth ? 1 : 2]->value;
	if (condition.kind == V_OPAQUE)
		return ev->trace ? ev_unsettled(ev, condition, call->slot[0]->span, "this choice")
		                 : condition;
	return device_select(ev, condition, call->slot[1]->value, call->slot[2]->value, call->span);
}

/* cast(value, dtype) */
static struct value cast_value(struct eval *ev, const struct arg *value, const struct dtype *type)
{
	const struct expr *e = device_expr(ev, value->value, type, value->span);

	return e ? device_value(device_cast(ev, *type, e)) : VALUE_ERROR;
}

/* T.cast(value, dtype) */
static struct value t_cast(struct eval *ev, struct call *call)
{
	struct dtype type = DTYPE_F32;

	return arg_dtype(ev, call, 1, &type) ? cast_value(ev, call->slot[0], &type) : VALUE_ERROR;
}

/* T.Cast(dtype, value): the other order. */
static struct value t_upper_cast(struct eval *ev, struct call *call)
{
	struct dtype type = DTYPE_F32;

	return arg_dtype(ev, call, 0, &type) ? cast_value(ev, call->slot[1], &type) : VALUE_ERROR;
}

/* value.astype(dtype) */
static struct value t_astype(struct eval *ev, struct call *call)
{
	struct arg self = { .value = call->self, .span = call->span, .whole = call->span };
	struct dtype type = DTYPE_F32;

	return arg_dtype(ev, call, 0, &type) ? cast_value(ev, &self, &type) : VALUE_ERROR;
}

/* The bits stay, so both types must have as many. */
static struct value t_reinterpret(struct eval *ev, struct call *call)
{
	struct dtype type = DTYPE_F32;
	const struct expr *e;

	uint32_t of_type = value_dtype(call->slot[0]->value, &type) ? 0 : 1; /* either order */

	if (!arg_dtype(ev, call, of_type, &type))
		return VALUE_ERROR;
	e = device_expr(ev, call->slot[1 - of_type]->value, NULL, call->slot[1 - of_type]->span);
	if (!e)
		return VALUE_ERROR;
	if (dtype_bits(e->type) != dtype_bits(type))
		return ev_error(ev, DIAG_E0202, call->span, "the two types differ in size");
	return VALUE_EXPR(expr_bitcast(ev->pool, type, e));
}

/* Of float types only. */
static struct value t_infinity(struct eval *ev, struct call *call)
{
	struct dtype type = DTYPE_F32;

	if (!arg_dtype(ev, call, 0, &type))
		return VALUE_ERROR;
	if (!dtype_is_float(type))
		return ev_error(ev, DIAG_E0202, call->span, "an integer type has no infinity");
	return VALUE_EXPR(expr_float(ev->pool, type, HUGE_VAL));
}

/* Largest finite value of a float type. */
static double float_max(struct dtype type)
{
	char name[32];

	if (type.kind == TYPE_FLOAT8_E4M3)
		return 448;
	if (type.kind == TYPE_FLOAT8_E5M2)
		return 57344;
	if (type.kind == TYPE_FLOAT4_E2M1)
		return 6;
	if (type.kind == TYPE_BFLOAT)
		return ldexp(2 - ldexp(1, -7), 127);
	if (type.kind == TYPE_FLOAT && type.bits == 16)
		return 65504;
	if (type.kind == TYPE_FLOAT && type.bits == 64)
		return 1.7976931348623157e308;
	assert(dtype_name(type, name)[0]);
	return ldexp(2 - ldexp(1, -23), 127);
}

/* The largest or smallest value that the type holds. */
static struct value limit_value(struct eval *ev, struct call *call, bool is_max)
{
	struct dtype type = DTYPE_F32;
	int64_t value;

	if (!arg_dtype(ev, call, 0, &type))
		return VALUE_ERROR;
	if (dtype_is_float(type))
		return VALUE_EXPR(expr_float(ev->pool, type, is_max ? float_max(type) : -float_max(type)));
	if (type.kind == TYPE_BOOL)
		return VALUE_BOOL(is_max);
	if (type.kind == TYPE_UINT)
		value = !is_max ? 0 : type.bits >= 63 ? INT64_MAX : ((int64_t)1 << type.bits) - 1;
	else
		value = type.bits >= 64 ? (is_max ? INT64_MAX : INT64_MIN)
		                        : (is_max ? ((int64_t)1 << (type.bits - 1)) - 1
		                                  : -((int64_t)1 << (type.bits - 1)));
	return device_value(expr_int_typed(ev->pool, type, value));
}

static struct value t_max_value(struct eval *ev, struct call *call)
{
	return limit_value(ev, call, true);
}

static struct value t_min_value(struct eval *ev, struct call *call)
{
	return limit_value(ev, call, false);
}

/* T.exp, T.__exp, T.rsqrt, ...: the function of math.def that the builtin's name says. */
static struct value t_math(struct eval *ev, struct call *call)
{
	const struct expr *args[3];
	const char *name = call->builtin->name + strspn(call->builtin->name, "_");
	enum math_fn fn;
	int arity;

	if (!math_fn_find(name, &fn))
		BUG("no math function %s", name);
	arity = math_fn_arity(fn);
	assert(arity <= 3);
	for (int i = 0; i < arity; i++) {
		const struct arg *arg = call->slot[i];

		if (!arg)
			return ev_error(ev, DIAG_E0210, call->span, "%s takes %d arguments", call->name, arity);
		args[i] = device_expr(ev, arg->value, i > 0 ? &args[0]->type : NULL, arg->span);
		if (!args[i])
			return VALUE_ERROR;
		if (!dtype_is_float(args[i]->type) && fn != MATH_abs)
			args[i] = device_cast(ev, DTYPE_F32, args[i]);
		if (i > 0)
			args[i] = device_cast(ev, args[0]->type, args[i]);
	}
	return device_value(expr_math(ev->pool, fn, args, (uint32_t)arity));
}

static const struct builtin rows[] = {
#define T "tilelang.language"
	{ T, "ceildiv", "a b", t_ceildiv },
	{ T, "align_up", "x y", t_align_up },
	{ "tilelang", "cdiv", "a b", t_ceildiv },
	{ T, "floordiv", "a b", t_floordiv },
	{ T, "floormod", "a b", t_floormod },
	{ T, "truncdiv", "a b", t_truncdiv },
	{ T, "truncmod", "a b", t_truncmod },
	{ T, "max", "a b", t_max },
	{ T, "min", "a b", t_min },
	{ T, "clamp", "dst min_val max_val", t_clamp },
	{ T, "if_then_else", "cond t f dtype? span?", t_if_then_else },
	{ T, "Select", "condition true_value false_value span?", t_if_then_else },
	{ T, "cast", "value dtype round? sat? rbits?", t_cast },
	{ T, "Cast", "dtype value", t_upper_cast },
	{ "expr", "astype", "dtype", t_astype },
	{ T, "reinterpret", "value dtype", t_reinterpret },
	{ "tvm.tirx", "reinterpret", "dtype value", t_reinterpret },
	{ T, "infinity", "dtype", t_infinity },
	{ T, "max_value", "dtype", t_max_value },
	{ T, "min_value", "dtype", t_min_value },
	{ T, "shift_left", "a b dtype?", t_shift_left },
	{ T, "shift_right", "a b dtype?", t_shift_right },
	{ T, "bitwise_and", "a b", t_bitwise_and },
	{ T, "bitwise_or", "a b", t_bitwise_or },
	{ T, "bitwise_xor", "a b", t_bitwise_xor },
#define MATH(name, arity, result, c) { T, #name, "x y? z? | dtype", t_math },
#include "analyzer/tile/math.def"
#undef MATH
	{ T, "__exp", "x", t_math },
	{ T, "__exp10", "x", t_math },
	{ T, "__log", "x", t_math },
	{ T, "__log2", "x", t_math },
	{ T, "__log10", "x", t_math },
	{ T, "__tan", "x", t_math },
	{ T, "__cos", "x", t_math },
	{ T, "__sin", "x", t_math },
#undef T
};

const struct builtin_table lang_scalars = { rows, sizeof(rows) / sizeof(*rows) };
