/*
 * Bounds by interval arithmetic and divisors by gcd, worked out once for every node when it is
 * made. Infinity is a value of its own, so that half-known ranges (x >= 0) survive.
 *
 *     tx in 0..127        tx // 4 in 0..31        tx // 4 * 8 in 0..248, a multiple of 8
 *     by >= 0             by * 128 >= 0, a multiple of 128
 *
 * Simplifiers ask these facts (x % 8 of a multiple of 8 is 0), and so do the checks of bounds and
 * alignment. Intermediate results are of 128 bits; what leaves 64 is infinite.
 */
#include "analyzer/tile/expr_internal.h"

/* Nothing is known: from minus infinity to infinity. */
static const struct bounds unknown = { INT64_MIN, INT64_MAX };

/* The two ends of int64_t stand for the infinities. */
static bool is_infinite(int64_t value)
{
	return value == INT64_MIN || value == INT64_MAX;
}

/* What leaves int64 becomes infinite. */
static int64_t clamp(i128 value)
{
	if (value <= INT64_MIN)
		return INT64_MIN;
	return value >= INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* Infinity needs no case of its own here: it is the largest number. */
static int64_t min_int(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max_int(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* gcd(0, x) is x; 1 when the result is 2^63. */
int64_t gcd_int(int64_t a, int64_t b)
{
	uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a;
	uint64_t y = b < 0 ? -(uint64_t)b : (uint64_t)b;
	while (y != 0) {
		uint64_t rest = x % y;
		x = y;
		y = rest;
	}
	return x > INT64_MAX ? 1 : (int64_t)x;
}

/*
 * Rounded down, as Python's //; by 0 it is 0, so that evaluation is total (no such value is ever
 * used). INT64_MIN // -1 wraps around.
 */
int64_t floor_div(int64_t a, int64_t b)
{
	if (b == 0)
		return 0;
	if (b == -1)
		return (int64_t) - (uint64_t)a;
	int64_t quotient = a / b;
	return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/*
 * With the divisor's sign, as Python's %; a == floor_div(a, b) * b + floor_mod(a, b) except for b =
 * 0.
 */
int64_t floor_mod(int64_t a, int64_t b)
{
	if (b == 0 || b == -1)
		return 0;
	int64_t rest = a % b;
	return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

bool is_power_of_two(int64_t value)
{
	return value > 0 && (value & (value - 1)) == 0;
}

/* The largest power of two that divides the value; 0 for 0. */
static int64_t pow2_part(int64_t value)
{
	int64_t part = (int64_t)((uint64_t)value & -(uint64_t)value);
	return part < 0 ? 1LL << 62 : part;
}

/* Types of 32 bits and more are taken as unbounded: index arithmetic is exact by contract. */
struct bounds bounds_of_type(struct dtype type)
{
	if (type.kind == TYPE_BOOL)
		return (struct bounds){ 0, 1 };
	if (type.kind == TYPE_UINT && type.bits <= 32)
		return (struct bounds){ 0, (1LL << type.bits) - 1 };
	if (type.kind == TYPE_INT && type.bits <= 16)
		return (struct bounds){ -(1LL << (type.bits - 1)), (1LL << (type.bits - 1)) - 1 };
	return unknown;
}

/* A sum with an infinite side is infinite on that side. */
struct bounds bounds_add(struct bounds a, struct bounds b)
{
	struct bounds sum = unknown;
	if (a.min != INT64_MIN && b.min != INT64_MIN)
		sum.min = clamp((i128)a.min + b.min);
	if (a.max != INT64_MAX && b.max != INT64_MAX)
		sum.max = clamp((i128)a.max + b.max);
	return sum;
}

/* Products of infinity and 0 are 0 here: the finite side decides. */
static i128 times(int64_t a, int64_t b)
{
	if (a == 0 || b == 0)
		return 0;
	if (is_infinite(a) || is_infinite(b))
		return (a < 0) != (b < 0) ? (i128)INT64_MIN : (i128)INT64_MAX;
	return (i128)a * b;
}

/* The extremes are among the products of the ends. */
static struct bounds bounds_mul(struct bounds a, struct bounds b)
{
	i128 products[4] = { times(a.min, b.min), times(a.min, b.max), times(a.max, b.min),
		                 times(a.max, b.max) };
	i128 low = products[0], high = products[0];
	for (int i = 1; i < 4; i++) {
		low = products[i] < low ? products[i] : low;
		high = products[i] > high ? products[i] : high;
	}
	return (struct bounds){ clamp(low), clamp(high) };
}

/* By a constant of either sign. */
struct bounds bounds_scale(struct bounds a, int64_t factor)
{
	return bounds_mul(a, (struct bounds){ factor, factor });
}

/* True when a // c is the same for the whole range, which makes it a constant. */
bool bounds_quotient(struct bounds a, int64_t c, int64_t *quotient)
{
	assert(c > 0);
	if (is_infinite(a.min) || is_infinite(a.max))
		return false;
	*quotient = floor_div(a.min, c);
	return *quotient == floor_div(a.max, c);
}

/* Quotient rounded down where the dividend may be infinite. */
static int64_t divide_bound(int64_t a, int64_t b)
{
	if (is_infinite(a))
		return b > 0 ? a : (a < 0 ? INT64_MAX : INT64_MIN);
	if (is_infinite(b))
		return a == 0 ? 0 : ((a < 0) != (b < 0) ? -1 : 0);
	return floor_div(a, b);
}

/* Monotonic in the dividend, and in the divisor on either side of 0: the ends decide. */
static struct bounds bounds_div(struct bounds a, struct bounds b)
{
	if (b.min <= 0 && b.max >= 0)
		return unknown;
	int64_t quotients[4] = { divide_bound(a.min, b.min), divide_bound(a.min, b.max),
		                     divide_bound(a.max, b.min), divide_bound(a.max, b.max) };
	struct bounds result = { quotients[0], quotients[0] };
	for (int i = 1; i < 4; i++) {
		result.min = min_int(result.min, quotients[i]);
		result.max = max_int(result.max, quotients[i]);
	}
	return result;
}

/*
 * `step` divides every value of the result: of x % 32 with x a multiple of 8 the largest is 24.
 * With a divisor that may be 0 nothing is known.
 */
static struct bounds bounds_mod(struct bounds a, struct bounds b, int64_t step)
{
	struct bounds result = unknown;
	if (b.min > 0) {
		result = (struct bounds){ 0, b.max == INT64_MAX ? b.max : b.max - 1 };
		if (b.min == b.max && step > 0)
			result.max = b.max - step;
		if (a.min >= 0)
			result.max = min_int(result.max, a.max);
	} else if (b.max < 0) {
		result = (struct bounds){ b.min == INT64_MIN ? b.min : b.min + 1, 0 };
	}
	return result;
}

/* All ones from the highest bit of `value` down. */
static int64_t fill_ones(int64_t value)
{
	assert(value >= 0);
	return value == 0 ? 0 : (int64_t)(~0ULL >> __builtin_clzll((uint64_t)value));
}

/* Of values that are not negative: `and` is below both, `or` and `xor` below the next power of two.
 */
static struct bounds bounds_bits(enum binary_op op, struct bounds a, struct bounds b)
{
	bool both = a.min >= 0 && b.min >= 0;
	if (op == BIN_BITAND) {
		if (a.min < 0 && b.min < 0)
			return unknown;
		int64_t max = both ? min_int(a.max, b.max) : (a.min >= 0 ? a.max : b.max);
		return (struct bounds){ 0, max };
	}
	if (!both)
		return unknown;
	struct bounds result = { 0, fill_ones(max_int(a.max, b.max)) };
	if (op == BIN_BITOR)
		result.min = max_int(a.min, b.min);
	return result;
}

/* Shifts as products and quotients by powers of two. */
static struct bounds bounds_shift(enum binary_op op, struct bounds a, struct bounds b)
{
	if (b.min < 0 || b.max > 62)
		return unknown;
	assert(b.min <= b.max);
	struct bounds powers = { 1LL << b.min, 1LL << b.max };
	return op == BIN_SHL ? bounds_mul(a, powers) : bounds_div(a, powers);
}

/* Interval arithmetic by operator; e->divisor is set already. */
static struct bounds binary_bounds(const struct expr *e)
{
	struct bounds a = bounds_of(e->args[0]), b = bounds_of(e->args[1]);
	switch (e->as.binary) {
	case BIN_ADD:
		return bounds_add(a, b);
	case BIN_SUB:
		return bounds_add(a, bounds_scale(b, -1));
	case BIN_MUL:
		return bounds_mul(a, b);
	case BIN_FLOORDIV:
		return bounds_div(a, b);
	case BIN_FLOORMOD:
		return bounds_mod(a, b, e->divisor);
	case BIN_TRUNCDIV:
		return a.min >= 0 && b.min > 0 ? bounds_div(a, b) : unknown;
	case BIN_TRUNCMOD:
		return a.min >= 0 && b.min > 0 ? bounds_mod(a, b, e->divisor) : unknown;
	case BIN_MIN:
		return (struct bounds){ min_int(a.min, b.min), min_int(a.max, b.max) };
	case BIN_MAX:
		return (struct bounds){ max_int(a.min, b.min), max_int(a.max, b.max) };
	case BIN_BITAND:
	case BIN_BITOR:
	case BIN_BITXOR:
		return bounds_bits(e->as.binary, a, b);
	case BIN_SHL:
	case BIN_SHR:
		return bounds_shift(e->as.binary, a, b);
	case BIN_EQ:
	case BIN_NE:
	case BIN_LT:
	case BIN_LE:
	case BIN_GT:
	case BIN_GE:
	case BIN_AND:
	case BIN_OR:
		return (struct bounds){ 0, 1 };
	case BIN_DIV:
	case N_BINARY_OPS:
		break;
	}
	return unknown;
}

/* x * 2^k keeps its factor under bitwise operators, other factors do not survive them. */
static int64_t binary_divisor(const struct expr *e)
{
	int64_t a = expr_divisor(e->args[0]), b = expr_divisor(e->args[1]), value;
	switch (e->as.binary) {
	case BIN_ADD:
	case BIN_SUB:
	case BIN_MIN:
	case BIN_MAX:
	case BIN_FLOORMOD:
	case BIN_TRUNCMOD:
		return gcd_int(a, b);
	case BIN_MUL:
		return __builtin_mul_overflow(a, b, &value) ? max_int(a, b) : value;
	case BIN_FLOORDIV:
	case BIN_TRUNCDIV:
		if (expr_is_int(e->args[1], &value) && value > 0 && a % value == 0)
			return a / value;
		return 1;
	case BIN_BITAND:
		return max_int(pow2_part(a), pow2_part(b));
	case BIN_BITOR:
	case BIN_BITXOR:
		return gcd_int(pow2_part(a), pow2_part(b));
	case BIN_SHL:
		return a;
	case BIN_DIV:
	case BIN_SHR:
	case BIN_EQ:
	case BIN_NE:
	case BIN_LT:
	case BIN_LE:
	case BIN_GT:
	case BIN_GE:
	case BIN_AND:
	case BIN_OR:
	case N_BINARY_OPS:
		break;
	}
	return 1;
}

/* The smallest range that holds both. */
static struct bounds bounds_join(struct bounds a, struct bounds b)
{
	return (struct bounds){ min_int(a.min, b.min), max_int(a.max, b.max) };
}

/* Bounds and divisor before the type's width is regarded. Divisor 0 means that the value is 0. */
static void integer_facts(const struct expr *e, struct bounds *bounds, int64_t *divisor)
{
	switch (e->kind) {
	case EXPR_INT:
		*bounds = (struct bounds){ e->as.integer, e->as.integer };
		*divisor = e->as.integer == 0 ? 0 : gcd_int(e->as.integer, 0);
		break;
	case EXPR_UNARY:
		if (e->as.unary == UN_NEG) {
			*bounds = bounds_scale(bounds_of(e->args[0]), -1);
			*divisor = expr_divisor(e->args[0]);
		} else if (e->as.unary == UN_BITNOT) {
			*bounds =
				bounds_add(bounds_scale(bounds_of(e->args[0]), -1), (struct bounds){ -1, -1 });
		}
		break;
	case EXPR_BINARY:
		*bounds = binary_bounds(e);
		break;
	case EXPR_SELECT:
		*bounds = bounds_join(bounds_of(e->args[1]), bounds_of(e->args[2]));
		*divisor = gcd_int(expr_divisor(e->args[1]), expr_divisor(e->args[2]));
		break;
	case EXPR_CAST:
		if (dtype_is_int(e->args[0]->type) && e->type.kind != TYPE_BOOL) {
			*bounds = bounds_of(e->args[0]);
			*divisor = expr_divisor(e->args[0]);
		}
		break;
	case EXPR_TABLE:
		*bounds = (struct bounds){ min_int(e->as.table->min, 0), max_int(e->as.table->max, 0) };
		if (bounds_of(e->args[0]).min >= 0 && (uint64_t)bounds_of(e->args[0]).max < e->as.table->n)
			*bounds = (struct bounds){ e->as.table->min, e->as.table->max };
		*divisor = e->as.table->divisor;
		break;
	case EXPR_FLOAT:
	case EXPR_VAR:
	case EXPR_LOAD:
	case EXPR_REG:
	case EXPR_BITCAST:
	case EXPR_MATH:
	case EXPR_CALL:
		break;
	}
}

/* A value outside the type's range has wrapped around: only its low bits are known. */
static void set_integer_facts(struct expr *e)
{
	struct bounds of_type = bounds_of_type(e->type), bounds = of_type;
	int64_t divisor = 1;
	bool may_wrap = e->kind == EXPR_CAST || e->type.kind != TYPE_INT;
	if (e->kind == EXPR_BINARY)
		e->divisor = divisor = binary_divisor(e);
	integer_facts(e, &bounds, &divisor);
	if (e->kind == EXPR_CAST && e->type.kind == TYPE_INT && e->type.bits == 32)
		of_type = (struct bounds){ INT32_MIN, INT32_MAX };
	if (may_wrap && (bounds.min < of_type.min || bounds.max > of_type.max)) {
		bounds = of_type;
		divisor = divisor == 0 ? 0 : pow2_part(divisor);
	}
	if (e->type.kind == TYPE_UINT && e->type.bits == 64 && bounds.min < 0)
		bounds = unknown;
	e->min = bounds.min;
	e->max = bounds.max;
	e->divisor = divisor;
	assert(e->min <= e->max && e->divisor >= 0);
}

/* Integers all the way down, without memory and functions. */
static bool node_is_index(const struct expr *e)
{
	if (!dtype_is_int(e->type))
		return false;
	for (uint32_t i = 0; i < e->n_args; i++)
		if (!e->args[i]->is_index)
			return false;
	switch (e->kind) {
	case EXPR_INT:
	case EXPR_VAR:
	case EXPR_UNARY:
	case EXPR_SELECT:
	case EXPR_CAST:
	case EXPR_TABLE:
		return true;
	case EXPR_BINARY:
		return e->as.binary != BIN_DIV;
	case EXPR_FLOAT:
	case EXPR_LOAD:
	case EXPR_REG:
	case EXPR_BITCAST:
	case EXPR_MATH:
	case EXPR_CALL:
		break;
	}
	return false;
}

/* Operands are complete, so one step suffices. */
void expr_set_facts(struct expr *e)
{
	uint64_t n_nodes = 1;
	e->depth = 0;
	e->var_mask = e->kind == EXPR_VAR ? 1ULL << (e->as.var->id % 64) : 0;
	for (uint32_t i = 0; i < e->n_args; i++) {
		const struct expr *arg = e->args[i];
		e->depth = arg->depth > e->depth ? arg->depth : e->depth;
		e->var_mask |= arg->var_mask;
		n_nodes += arg->n_nodes;
	}
	e->depth++;
	e->n_nodes = n_nodes > UINT32_MAX ? UINT32_MAX : (uint32_t)n_nodes;
	e->is_index = node_is_index(e);
	e->min = INT64_MIN;
	e->max = INT64_MAX;
	e->divisor = 1;
	if (dtype_is_int(e->type))
		set_integer_facts(e);
}

/*
 * Variables are asked anew: their ranges are set after they are made. The empty range of a loop
 * that never runs counts as its lower end; what is said about no values is true.
 */
struct bounds bounds_of(const struct expr *e)
{
	if (e->kind != EXPR_VAR)
		return (struct bounds){ e->min, e->max };
	if (!dtype_is_int(e->type))
		return unknown;
	return (struct bounds){ e->as.var->min, max_int(e->as.var->min, e->as.var->max) };
}

/* Half-known ranges keep INT64_MIN or INT64_MAX at their open side. */
void expr_bounds(const struct expr *e, int64_t *min, int64_t *max)
{
	struct bounds bounds = bounds_of(e);
	*min = bounds.min;
	*max = bounds.max;
}

/* False when a side is open. */
bool expr_range(const struct expr *e, int64_t *min, int64_t *max)
{
	expr_bounds(e, min, max);
	return *min != INT64_MIN && *max != INT64_MAX;
}

/* Every value is a multiple of it; 1 when nothing is known, 0 for the constant 0. */
int64_t expr_divisor(const struct expr *e)
{
	return e->kind == EXPR_VAR ? e->as.var->divisor : e->divisor;
}
