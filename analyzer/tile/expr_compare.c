/*
 * Comparisons, logic, minimum and maximum, and operators on floats.
 *
 * A comparison of signed integers is decided by the range of the difference; else it gets one form:
 * common terms cancel, coefficients lose their common divisor, positive terms stand left, negative
 * ones right; what cannot decide is dropped. 4*x + 3 < 4*y + 16  ->  x < y + 4;   3 - x <= 0  ->
 * x >= 3;   8*x + part < 96 with 0 <= part < 8  ->  x < 12.
 */
#include "analyzer/tile/expr_internal.h"

#include <math.h>

enum { MAX_CHAIN = 24 };

/* ---- comparisons ---- */

/* a - b; false when the type is not signed or numbers overflow. */
static bool difference(struct expr_pool *pool, const struct expr *a, const struct expr *b,
                       struct sum *sum)
{
	sum_init(sum, a->type);
	if (a->type.kind != TYPE_INT || !sum_add(sum, a, 1) || !sum_add(sum, b, -1))
		return false;
	sum_join_divisions(pool, sum);
	return true;
}

/* The sign of the difference of two constants; uint64 beyond int64 is not told apart. */
static struct bounds constant_order(const struct expr *a, const struct expr *b)
{
	bool is_wide = a->type.kind == TYPE_UINT && a->type.bits == 64;
	int64_t sign = a->as.integer < b->as.integer ? -1 : 1;
	if (is_wide && (a->as.integer < 0 || b->as.integer < 0))
		return (struct bounds){ INT64_MIN, INT64_MAX };
	return (struct bounds){ sign, sign };
}

/*
 * Bounds of a - b. Signed operands are subtracted as sums first, so that common terms cancel:
 * (x + 3) - (x + 1) is 2 whatever x is.
 */
static struct bounds difference_bounds(struct expr_pool *pool, const struct expr *a,
                                       const struct expr *b)
{
	struct sum sum;
	if (a == b)
		return (struct bounds){ 0, 0 };
	if (a->kind == EXPR_INT && b->kind == EXPR_INT)
		return constant_order(a, b);
	if (difference(pool, a, b, &sum))
		return sum_bounds(&sum);
	return bounds_add(bounds_of(a), bounds_scale(bounds_of(b), -1));
}

struct sides {
	const struct expr *left, *right; /* positive terms; negated negative terms */
	int64_t constant;                /* left + constant on the left-hand side */
	bool has_left, has_right;
};

/* Divides by the coefficients' common divisor (the constant rounded down) and builds both sides. */
static bool split_sides(struct expr_pool *pool, struct sum *sum, struct sides *sides)
{
	struct sum left, right;
	int64_t common = 0;
	for (uint32_t i = 0; i < sum->n; i++)
		common = gcd_int(common, sum->terms[i].coefficient);
	assert(common > 0);
	sum_init(&left, sum->type);
	sum_init(&right, sum->type);
	for (uint32_t i = 0; i < sum->n; i++) {
		int64_t coefficient = sum->terms[i].coefficient / common;
		if (!(coefficient > 0 ? sum_add_term(&left, sum->terms[i].e, coefficient)
		                      : sum_add_term(&right, sum->terms[i].e, -coefficient)))
			return false;
	}
	sides->constant = floor_div(sum->constant, common);
	sides->has_left = left.n > 0;
	sides->has_right = right.n > 0;
	sides->left = sum_build(pool, &left);
	sides->right = sum_build(pool, &right);
	return sides->left && sides->right && sides->constant > -(1LL << 62) &&
	       sides->constant < 1LL << 62;
}

/* e + value for value >= 0, NULL when it does not fit. */
static const struct expr *plus(struct expr_pool *pool, const struct expr *e, int64_t value)
{
	struct sum sum;
	sum_init(&sum, e->type);
	if (!sum_add(&sum, e, 1) || !sum_add_int(&sum, value))
		return NULL;
	return sum_build(pool, &sum);
}

/* sum < 0 in its one form; NULL when numbers do not fit. */
static const struct expr *less_than_zero(struct expr_pool *pool, struct sum *sum)
{
	struct sides sides;
	if (!split_sides(pool, sum, &sides))
		return NULL;
	int64_t limit = -sides.constant; /* left < right + limit */
	const struct expr *left = sides.left, *right = sides.right;
	enum binary_op op = BIN_LT;
	if (!sides.has_left) {
		if (!int_fits(sum->type, 1 - limit))
			return NULL;
		op = BIN_GE;
		left = sides.right;
		right = expr_int_exact(pool, sum->type, 1 - limit);
	} else if (limit == 1 && sides.has_right) {
		op = BIN_LE;
	} else if (limit > 0 || !sides.has_right) {
		right = plus(pool, right, limit);
	} else {
		left = plus(pool, left, -limit);
	}
	return left && right ? expr_raw_binary(pool, op, left, right) : NULL;
}

/*
 * What stays within one multiple of a coefficient cannot decide: g*A + b < 0 with 0 <= b < g is
 * A < 0, so part + 8*step < 96 with 0 <= part < 8 is step < 12. The largest such g.
 */
static void drop_low_terms(struct sum *sum)
{
	int64_t below = INT64_MAX;

	for (;;) {
		struct sum_split split;
		int64_t factor = 1;

		for (uint32_t i = 0; i < sum->n; i++) {
			int64_t size = sum->terms[i].coefficient < 0 ? -sum->terms[i].coefficient
			                                             : sum->terms[i].coefficient;
			if (size < below && size > factor)
				factor = size;
		}
		if (factor == 1)
			return;
		if (sum_split_by(sum, factor, &split) && split.high.n > 0) {
			*sum = split.high;
			return;
		}
		below = factor;
	}
}

/* a < b, or a <= b as a - b < 1. */
static const struct expr *compare_order(struct expr_pool *pool, enum binary_op op,
                                        const struct expr *a, const struct expr *b)
{
	struct bounds bounds = difference_bounds(pool, a, b);
	struct sum sum;
	int64_t slack = op == BIN_LE;
	const struct expr *result = NULL;
	assert(op == BIN_LT || op == BIN_LE);
	if (bounds.max < slack)
		return expr_bool(pool, true);
	if (bounds.min >= slack)
		return expr_bool(pool, false);
	if (difference(pool, a, b, &sum) && sum.n > 0 && sum_add_int(&sum, -slack)) {
		drop_low_terms(&sum);
		result = less_than_zero(pool, &sum);
	}
	return result ? result : expr_raw_binary(pool, op, a, b);
}

/* Can the sum be 0, as far as divisors tell? */
static bool may_be_zero(const struct sum *sum)
{
	int64_t common = 0, step;
	for (uint32_t i = 0; i < sum->n; i++) {
		int64_t divisor = expr_divisor(sum->terms[i].e);
		if (__builtin_mul_overflow(divisor, sum->terms[i].coefficient, &step))
			step = sum->terms[i].coefficient;
		common = gcd_int(common, step);
	}
	return common == 0 ? sum->constant == 0 : sum->constant % common == 0;
}

/* sum == 0 or sum != 0, the term of lowest id on the left; NULL when numbers do not fit. */
static const struct expr *equal_zero(struct expr_pool *pool, enum binary_op op, struct sum *sum)
{
	struct sides sides;
	struct sum positive;
	sum_init(&positive, sum->type);
	if (!sum_add_sum(&positive, sum, sum->terms[0].coefficient < 0 ? -1 : 1) ||
	    !split_sides(pool, &positive, &sides))
		return NULL;
	const struct expr *left = sides.left, *right = sides.right;
	if (sides.constant <= 0 || !sides.has_right)
		right = plus(pool, right, -sides.constant);
	else
		left = plus(pool, left, sides.constant);
	return left && right ? expr_raw_binary(pool, op, left, right) : NULL;
}

/* Equality with a truth value is the operand or its negation. */
static const struct expr *compare_bools(struct expr_pool *pool, enum binary_op op,
                                        const struct expr *a, const struct expr *b)
{
	if (a->kind == EXPR_INT || (b->kind != EXPR_INT && expr_before(b, a))) {
		const struct expr *other = a;
		a = b;
		b = other;
	}
	if (b->kind == EXPR_INT)
		return (b->as.integer != 0) == (op == BIN_EQ) ? a : make_not(pool, a);
	return expr_raw_binary(pool, op, a, b);
}

/* Decided by range, by divisors (2*x == 5 never holds), else brought to one form. */
static const struct expr *compare_equal(struct expr_pool *pool, enum binary_op op,
                                        const struct expr *a, const struct expr *b)
{
	struct bounds bounds = difference_bounds(pool, a, b);
	struct sum sum;
	const struct expr *result = NULL;
	if (bounds.min == 0 && bounds.max == 0)
		return expr_bool(pool, op == BIN_EQ);
	if (bounds.min > 0 || bounds.max < 0 || (a->kind == EXPR_INT && b->kind == EXPR_INT))
		return expr_bool(pool, op == BIN_NE);
	if (a->type.kind == TYPE_BOOL)
		return compare_bools(pool, op, a, b);
	if (difference(pool, a, b, &sum) && sum.n > 0) {
		if (!may_be_zero(&sum))
			return expr_bool(pool, op == BIN_NE);
		result = equal_zero(pool, op, &sum);
	}
	if (result)
		return result;
	if (a->kind == EXPR_INT || (b->kind != EXPR_INT && expr_before(b, a)))
		return expr_raw_binary(pool, op, b, a);
	return expr_raw_binary(pool, op, a, b);
}

/* > and >= are < and <= with sides exchanged; only x >= constant comes back as a result. */
const struct expr *make_compare(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                                const struct expr *b)
{
	assert(is_comparison(op));
	if (op == BIN_EQ || op == BIN_NE)
		return compare_equal(pool, op, a, b);
	if (op == BIN_GT)
		return compare_order(pool, BIN_LT, b, a);
	if (op == BIN_GE)
		return compare_order(pool, BIN_LE, b, a);
	return compare_order(pool, op, a, b);
}

/* ---- logic ---- */

/* Is `e` one of the operands of the left-leaning chain? */
static bool chain_holds(const struct expr *chain, enum binary_op op, const struct expr *e)
{
	while (expr_is_int_binary(chain, op)) {
		if (chain->args[1] == e)
			return true;
		chain = chain->args[0];
	}
	return chain == e;
}

/* Does x < 24 hold only where x < 32 does? Of comparisons with constants. */
static bool implies(const struct expr *strong, const struct expr *weak)
{
	int64_t a, b;

	if (strong->kind != EXPR_BINARY || weak->kind != EXPR_BINARY ||
	    strong->as.binary != weak->as.binary || strong->args[0] != weak->args[0] ||
	    strong->args[0]->type.kind != TYPE_INT || !expr_is_int(strong->args[1], &a) ||
	    !expr_is_int(weak->args[1], &b))
		return false;
	return strong->as.binary == BIN_LT ? a <= b : strong->as.binary == BIN_GE && a >= b;
}

/* The operand of the chain that `e` makes idle: in `and` one that e implies, in `or` one that
 * implies e. NULL when there is none. */
static const struct expr *chain_idle(const struct expr *chain, enum binary_op op,
                                     const struct expr *e)
{
	for (;; chain = chain->args[0]) {
		bool inner = expr_is_int_binary(chain, op);
		const struct expr *operand = inner ? chain->args[1] : chain;

		if (op == BIN_AND ? implies(e, operand) : implies(operand, e))
			return operand;
		if (!inner)
			return NULL;
	}
}

/* Is `e` idle behind the chain? */
static bool is_idle(const struct expr *chain, enum binary_op op, const struct expr *e)
{
	for (;; chain = chain->args[0]) {
		bool inner = expr_is_int_binary(chain, op);
		const struct expr *operand = inner ? chain->args[1] : chain;

		if (op == BIN_AND ? implies(operand, e) : implies(e, operand))
			return true;
		if (!inner)
			return false;
	}
}

/* The chain with one of its operands replaced. */
static const struct expr *chain_replace(struct expr_pool *pool, const struct expr *chain,
                                        const struct expr *operand, const struct expr *by)
{
	if (chain == operand)
		return by;
	if (chain->args[1] == operand)
		return make_logic(pool, chain->as.binary, chain->args[0], by);
	return make_logic(pool, chain->as.binary, chain_replace(pool, chain->args[0], operand, by),
	                  chain->args[1]);
}

/*
 * Operands keep their order, since the left one may guard the right one (i < n and a[i] > 0).
 * Chains lean left; an operand that the chain has already is dropped, its negation decides; of
 * x < 24 and x < 32 the first stays, in the place of the one that came first.
 */
const struct expr *make_logic(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                              const struct expr *b)
{
	bool absorbing = op == BIN_OR;
	const struct expr *idle;
	int64_t value;

	if (expr_is_int(a, &value))
		return (value != 0) == absorbing ? a : b;
	if (expr_is_int(b, &value))
		return (value != 0) == absorbing ? b : a;
	if (expr_is_int_binary(b, op))
		return make_logic(pool, op, make_logic(pool, op, a, b->args[0]), b->args[1]);
	if (chain_holds(a, op, b) || is_idle(a, op, b))
		return a;
	if (chain_holds(a, op, make_not(pool, b)))
		return expr_bool(pool, absorbing);
	idle = chain_idle(a, op, b);
	if (idle)
		return chain_replace(pool, a, idle, b);
	return expr_raw_binary(pool, op, a, b);
}

/* Comparisons of floats only turn between == and !=: with NaN, not a < b is not a >= b. */
const struct expr *make_not(struct expr_pool *pool, const struct expr *a)
{
	static const enum binary_op inverse[N_BINARY_OPS] = {
		[BIN_EQ] = BIN_NE, [BIN_NE] = BIN_EQ, [BIN_LT] = BIN_GE,
		[BIN_LE] = BIN_GT, [BIN_GT] = BIN_LE, [BIN_GE] = BIN_LT,
	};
	if (a->kind == EXPR_INT)
		return expr_bool(pool, a->as.integer == 0);
	if (a->kind == EXPR_UNARY && a->as.unary == UN_NOT)
		return a->args[0];
	if (a->kind == EXPR_BINARY && is_comparison(a->as.binary) &&
	    (dtype_is_int(a->args[0]->type) || a->as.binary <= BIN_NE))
		return expr_binary(pool, inverse[a->as.binary], a->args[0], a->args[1]);
	return expr_raw_unary(pool, UN_NOT, a->type, a);
}

/* ---- minimum and maximum ---- */

struct chain {
	uint32_t n;
	const struct expr *operands[MAX_CHAIN]; /* by expr_before; the constant, if any, last */
};

static void chain_remove(struct chain *chain, uint32_t at)
{
	chain->n--;
	for (; at < chain->n; at++)
		chain->operands[at] = chain->operands[at + 1];
}

static bool sorts_before(const struct expr *a, const struct expr *b)
{
	if ((a->kind == EXPR_INT) != (b->kind == EXPR_INT))
		return b->kind == EXPR_INT;
	return expr_before(a, b);
}

/* Adds e unless another operand decides against it; drops those that e beats. */
static bool chain_add(struct expr_pool *pool, struct chain *chain, enum binary_op op,
                      const struct expr *e)
{
	if (expr_is_int_binary(e, op))
		return chain_add(pool, chain, op, e->args[0]) && chain_add(pool, chain, op, e->args[1]);
	for (uint32_t i = 0; i < chain->n;) {
		struct bounds bounds = difference_bounds(pool, e, chain->operands[i]);
		bool above = bounds.min >= 0, below = bounds.max <= 0;
		if (op == BIN_MIN ? above : below)
			return true;
		if (op == BIN_MIN ? below : above)
			chain_remove(chain, i);
		else
			i++;
	}
	if (chain->n == MAX_CHAIN)
		return false;
	uint32_t at = chain->n++;
	for (; at > 0 && sorts_before(e, chain->operands[at - 1]); at--)
		chain->operands[at] = chain->operands[at - 1];
	chain->operands[at] = e;
	return true;
}

/* Nested ones of the same operator are one chain; operands that cannot win fall away. */
const struct expr *make_min_max(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                                const struct expr *b)
{
	struct chain chain = { .n = 0 };
	if (!chain_add(pool, &chain, op, a) || !chain_add(pool, &chain, op, b))
		return expr_raw_binary(pool, op, a, b);
	const struct expr *result = chain.operands[0];
	for (uint32_t i = 1; i < chain.n; i++)
		result = expr_raw_binary(pool, op, result, chain.operands[i]);
	return result;
}

/* ---- floats ---- */

/* a op b when it has no rounding error in double, nor in the type; false otherwise. */
static bool exact_result(enum binary_op op, double a, double b, double *value)
{
	double rest;
	if (op == BIN_ADD || op == BIN_SUB) {
		b = op == BIN_SUB ? -b : b;
		*value = a + b;
		rest = *value - a;
		return isfinite(*value) && (a - (*value - rest)) + (b - rest) == 0.0;
	}
	if (op == BIN_MUL) {
		*value = a * b;
		return isfinite(*value) && fma(a, b, -*value) == 0.0 &&
		       (*value != 0.0 || a == 0.0 || b == 0.0);
	}
	if (op == BIN_DIV && b != 0.0) {
		*value = a / b;
		return isfinite(*value) && fma(*value, b, -a) == 0.0 && (*value != 0.0 || a == 0.0);
	}
	if ((op == BIN_MIN || op == BIN_MAX) && !isnan(a) && !isnan(b) && a != b) {
		*value = (op == BIN_MIN) == (a < b) ? a : b;
		return true;
	}
	return false;
}

/* IEEE comparison: NaN is unordered and unequal to everything. */
static bool compare_floats(enum binary_op op, double a, double b)
{
	bool equal = !(a < b) && !(a > b) && !isnan(a) && !isnan(b);
	if (op == BIN_EQ || op == BIN_NE)
		return equal == (op == BIN_EQ);
	if (op == BIN_LT || op == BIN_LE)
		return a < b || (equal && op == BIN_LE);
	return a > b || (equal && op == BIN_GE);
}

/*
 * Folds constants when the result is the exact one, so that no rounding of the device is guessed,
 * and x*1, x/1, x-0, which are exact for every x (x+0 is not: -0 + 0 is 0).
 */
const struct expr *make_float(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                              const struct expr *b)
{
	double value;
	struct dtype type = a->type;
	bool a_known = a->kind == EXPR_FLOAT, b_known = b->kind == EXPR_FLOAT;
	if (a_known && b_known) {
		double x = a->as.number, y = b->as.number;
		if (is_comparison(op))
			return expr_bool(pool, compare_floats(op, x, y));
		if (exact_result(op, x, y, &value)) {
			double stored = dtype_round(type, value);
			if (!(stored < value) && !(stored > value))
				return expr_float(pool, type, value);
		}
	}
	if (b_known && (op == BIN_MUL || op == BIN_DIV) && b->as.number == 1.0)
		return a;
	if (a_known && op == BIN_MUL && a->as.number == 1.0)
		return b;
	if (b_known && op == BIN_SUB && b->as.number == 0.0 && !signbit(b->as.number))
		return a;
	return expr_raw_binary(pool, op, a, b);
}
