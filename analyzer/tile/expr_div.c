/*
 * Floor division and modulo.
 *
 * The dividend is a sum; what is a multiple of the divisor c comes out whole. For the rest r a
 * number g that divides c is sought with r = g*A + b and 0 <= b < g, so that
 *
 *     r // c = A // (c/g)          r % c = g * (A % (c/g)) + b
 *
 * e.g. (16*i + 2*j + k) // 8 with 0 <= k < 2 is 2*i + j // 4. All of it holds for floor division
 * of any sign; unsigned sums take part only where no part of them can wrap around.
 */
#include "analyzer/tile/expr_internal.h"

static const struct expr *div_const(struct expr_pool *pool, const struct expr *a, int64_t c);
static const struct expr *div_atom(struct expr_pool *pool, const struct expr *e, int64_t c);
static const struct expr *mod_const(struct expr_pool *pool, const struct expr *a, int64_t c);

static const struct expr *raw_const(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                                    int64_t c)
{
	return expr_raw_binary(pool, op, a, expr_int_exact(pool, a->type, c));
}

/*
 * Moves the terms and the part of the constant that c divides from `rest` into `quotient`, divided.
 * Terms whose values are multiples of c although their coefficients are not (8 | n) become n // c.
 */
static bool split_multiples(struct expr_pool *pool, struct sum *rest, struct sum *quotient,
                            int64_t c)
{
	struct sum left;
	sum_init(&left, rest->type);
	left.constant = floor_mod(rest->constant, c);
	if (!sum_add_int(quotient, floor_div(rest->constant, c)))
		return false;
	for (uint32_t i = 0; i < rest->n; i++) {
		struct term term = rest->terms[i];
		int64_t common = gcd_int(term.coefficient, c), needed = c / common;
		bool ok;
		if (needed == 1)
			ok = sum_add_term(quotient, term.e, term.coefficient / c);
		else if (expr_divisor(term.e) % needed == 0)
			ok = sum_add(quotient, div_atom(pool, term.e, needed), term.coefficient / common);
		else
			ok = sum_add_term(&left, term.e, term.coefficient);
		if (!ok)
			return false;
	}
	*rest = left;
	return true;
}

/* Whole multiples of c taken out of the coefficients, so that 0 <= each < c: rest and quotient. */
static bool reduce_coefficients(const struct sum *sum, int64_t c, struct sum *rest,
                                struct sum *quotient)
{
	sum_init(rest, sum->type);
	sum_init(quotient, sum->type);
	rest->constant = floor_mod(sum->constant, c);
	quotient->constant = floor_div(sum->constant, c);
	for (uint32_t i = 0; i < sum->n; i++) {
		struct term term = sum->terms[i];
		if (!sum_add_term(rest, term.e, floor_mod(term.coefficient, c)) ||
		    !sum_add_term(quotient, term.e, floor_div(term.coefficient, c)))
			return false;
	}
	return true;
}

/* The largest fitting g among the terms' common divisors with c. */
static bool find_split(const struct sum *sum, int64_t c, struct sum_split *split)
{
	int64_t below = c;
	for (;;) {
		int64_t best = 1;
		for (uint32_t i = 0; i < sum->n; i++) {
			int64_t factor = gcd_int(sum->terms[i].coefficient, c);
			if (factor < below && factor > best)
				best = factor;
		}
		if (best == 1)
			return false;
		if (sum_split_by(sum, best, split))
			return true;
		below = best;
	}
}

/* ---- division ---- */

/* Does xor distribute over the split at 2^k without growing: one side is whole above or below it?
 */
static bool xor_splits(const struct expr *e, int64_t c)
{
	if (!expr_is_int_binary(e, BIN_BITXOR) || !is_power_of_two(c))
		return false;
	for (int i = 0; i < 2; i++) {
		struct bounds bounds = bounds_of(e->args[i]);
		if (expr_divisor(e->args[i]) % c == 0 || (bounds.min >= 0 && bounds.max < c))
			return true;
	}
	return false;
}

/* A dividend that is one term with coefficient 1. */
static const struct expr *div_atom(struct expr_pool *pool, const struct expr *e, int64_t c)
{
	int64_t d, product;
	if (expr_match_const(e, BIN_FLOORDIV, &d) && d > 0 && !__builtin_mul_overflow(d, c, &product) &&
	    int_fits(e->type, product))
		return div_const(pool, e->args[0], product);
	if (expr_match_const(e, BIN_FLOORMOD, &d) && d > 0 && d % c == 0)
		return mod_const(pool, div_const(pool, e->args[0], c), d / c);
	if (xor_splits(e, c))
		return make_bits(pool, BIN_BITXOR, div_const(pool, e->args[0], c),
		                 div_const(pool, e->args[1], c));
	return raw_const(pool, BIN_FLOORDIV, e, c);
}

/* quotient + rest // c, where `rest` has nothing left that c divides. */
static const struct expr *div_rest(struct expr_pool *pool, struct sum *rest, struct sum *quotient,
                                   int64_t c)
{
	int64_t whole;
	struct sum reduced, more;
	struct sum_split split;
	const struct expr *divided;
	if (bounds_quotient(sum_bounds(rest), c, &whole))
		return sum_add_int(quotient, whole) ? sum_build(pool, quotient) : NULL;
	if (reduce_coefficients(rest, c, &reduced, &more) &&
	    bounds_quotient(sum_bounds(&reduced), c, &whole))
		return sum_add_int(quotient, whole) && sum_add_sum(quotient, &more, 1)
		           ? sum_build(pool, quotient)
		           : NULL;
	if (find_split(rest, c, &split)) {
		const struct expr *high = sum_build(pool, &split.high);
		divided = high ? div_const(pool, high, c / split.factor) : NULL;
	} else {
		bool is_atom = rest->n == 1 && rest->constant == 0 && rest->terms[0].coefficient == 1;
		const struct expr *built = is_atom ? rest->terms[0].e : sum_build(pool, rest);
		divided = !built    ? NULL
		          : is_atom ? div_atom(pool, built, c)
		                    : raw_const(pool, BIN_FLOORDIV, built, c);
	}
	return divided && sum_add(quotient, divided, 1) ? sum_build(pool, quotient) : NULL;
}

/* a // c for c > 0. */
static const struct expr *div_const(struct expr_pool *pool, const struct expr *a, int64_t c)
{
	struct sum rest, quotient;
	int64_t whole;
	assert(c > 0);
	if (c == 1)
		return a;
	if (bounds_quotient(bounds_of(a), c, &whole) && int_fits(a->type, whole))
		return expr_int_exact(pool, a->type, whole);
	sum_init(&rest, a->type);
	sum_init(&quotient, a->type);
	const struct expr *result = NULL;
	if (sum_add(&rest, a, 1) && sum_is_exact(&rest) && split_multiples(pool, &rest, &quotient, c))
		result = div_rest(pool, &rest, &quotient, c);
	return result ? result : raw_const(pool, BIN_FLOORDIV, a, c);
}

/* ---- modulo ---- */

/* k * (x % d) is k * x modulo c when c divides k * d. */
static bool may_unwrap(const struct sum *sum, struct term term, int64_t c)
{
	int64_t d, dropped;
	return sum->type.kind == TYPE_INT && expr_match_const(term.e, BIN_FLOORMOD, &d) && d > 0 &&
	       !__builtin_mul_overflow(d, term.coefficient, &dropped) && dropped % c == 0;
}

/*
 * The same value modulo c: terms that c divides fall away, coefficients become smaller, inner
 * remainders are unwrapped, until nothing changes. Every round but the last takes a division away.
 */
static bool reduce_modulo(struct expr_pool *pool, const struct sum *sum, int64_t c,
                          struct sum *rest)
{
	bool changed = false;
	sum_init(rest, sum->type);
	rest->constant = floor_mod(sum->constant, c);
	for (uint32_t i = 0; i < sum->n; i++) {
		struct term term = sum->terms[i];
		bool ok;
		if (expr_divisor(term.e) % (c / gcd_int(term.coefficient, c)) == 0)
			continue;
		term.coefficient %= c;
		if (may_unwrap(sum, term, c)) {
			changed = true;
			ok = sum_add(rest, term.e->args[0], term.coefficient);
		} else {
			ok = sum_add_term(rest, term.e, term.coefficient);
		}
		if (!ok)
			return false;
	}
	if (!sum_join_divisions(pool, rest) && !changed)
		return true;
	struct sum again = *rest;
	return reduce_modulo(pool, &again, c, rest);
}

/* A dividend that is one term with coefficient 1 and not within [0, c). */
static const struct expr *mod_atom(struct expr_pool *pool, const struct expr *e, int64_t c)
{
	int64_t d;
	if (expr_match_const(e, BIN_FLOORMOD, &d) && d > 0 && d % c == 0)
		return mod_const(pool, e->args[0], c);
	if (xor_splits(e, c))
		return make_bits(pool, BIN_BITXOR, mod_const(pool, e->args[0], c),
		                 mod_const(pool, e->args[1], c));
	return raw_const(pool, BIN_FLOORMOD, e, c);
}

/* The sum when all its values lie within one multiple of c, less that multiple; else NULL. */
static const struct expr *mod_by_range(struct expr_pool *pool, struct sum *sum, int64_t c)
{
	int64_t whole, multiple;
	if (!bounds_quotient(sum_bounds(sum), c, &whole) ||
	    __builtin_mul_overflow(-whole, c, &multiple) || !sum_add_int(sum, multiple))
		return NULL;
	return sum_build(pool, sum);
}

/*
 * rest % c where `rest` is reduced already: decided by range, by a split at some g, or as it
 * stands. (4*x + y) % 16 with 0 <= y < 4 is 4*(x % 4) + y.
 */
static const struct expr *mod_rest(struct expr_pool *pool, struct sum *rest, int64_t c)
{
	struct sum reduced, more;
	struct sum_split split;
	const struct expr *result = mod_by_range(pool, rest, c);
	if (!result && reduce_coefficients(rest, c, &reduced, &more))
		result = mod_by_range(pool, &reduced, c);
	if (result)
		return result;
	if (find_split(rest, c, &split)) {
		const struct expr *high = sum_build(pool, &split.high);
		const struct expr *cut = high ? mod_const(pool, high, c / split.factor) : NULL;
		return cut && sum_add(&split.low, cut, split.factor) ? sum_build(pool, &split.low) : NULL;
	}
	if (rest->n == 1 && rest->constant == 0 && rest->terms[0].coefficient == 1)
		return mod_atom(pool, rest->terms[0].e, c);
	const struct expr *built = sum_build(pool, rest);
	return built ? raw_const(pool, BIN_FLOORMOD, built, c) : NULL;
}

/* a % c for c > 0. */
static const struct expr *mod_const(struct expr_pool *pool, const struct expr *a, int64_t c)
{
	struct sum sum, rest;
	const struct expr *result = NULL;
	assert(c > 0);
	if (c == 1 || expr_divisor(a) % c == 0)
		return expr_int_exact(pool, a->type, 0);
	if (a->kind == EXPR_INT)
		return expr_int_exact(pool, a->type, floor_mod(a->as.integer, c));
	if (bounds_of(a).min >= 0 && bounds_of(a).max < c)
		return a;
	sum_init(&sum, a->type);
	if (sum_add(&sum, a, 1) && sum_is_exact(&sum) && reduce_modulo(pool, &sum, c, &rest))
		result = mod_rest(pool, &rest, c);
	return result ? result : raw_const(pool, BIN_FLOORMOD, a, c);
}

/* ---- divisors that are expressions ---- */

static bool never_zero(const struct expr *e)
{
	struct bounds bounds = bounds_of(e);
	return bounds.min > 0 || bounds.max < 0;
}

/* e without one factor b, NULL when b is no factor of the product e. */
static const struct expr *without_factor(struct expr_pool *pool, const struct expr *e,
                                         const struct expr *b)
{
	if (e == b)
		return expr_int_exact(pool, e->type, 1);
	if (!expr_is_int_binary(e, BIN_MUL))
		return NULL;
	for (int i = 0; i < 2; i++) {
		const struct expr *rest = without_factor(pool, e->args[i], b);
		if (rest)
			return make_mul(pool, rest, e->args[1 - i]);
	}
	return NULL;
}

/* Terms of `rest` that have b as a factor move into `quotient`, without it. */
static bool split_factor(struct expr_pool *pool, struct sum *rest, struct sum *quotient,
                         const struct expr *b)
{
	struct sum left;
	sum_init(&left, rest->type);
	left.constant = rest->constant;
	for (uint32_t i = 0; i < rest->n; i++) {
		struct term term = rest->terms[i];
		const struct expr *other = without_factor(pool, term.e, b);
		if (!(other ? sum_add(quotient, other, term.coefficient)
		            : sum_add_term(&left, term.e, term.coefficient)))
			return false;
	}
	*rest = left;
	return true;
}

/* Is 0 <= e < b known? */
static bool within_divisor(const struct expr *e, const struct expr *b)
{
	if (expr_is_int_binary(e, BIN_FLOORMOD) && e->args[1] == b && bounds_of(b).min > 0)
		return true;
	return bounds_of(e).min >= 0 && bounds_of(e).max < bounds_of(b).min;
}

/*
 * a // b or a % b for b that is no constant. Multiples of b come out, (b*x + r) // b is x + r // b
 * for every b but 0; a rest that is a remainder by b itself vanishes.
 */
static const struct expr *divide_symbolic(struct expr_pool *pool, enum binary_op op,
                                          const struct expr *a, const struct expr *b)
{
	struct sum rest, quotient;
	int64_t value;
	sum_init(&rest, a->type);
	sum_init(&quotient, a->type);
	if (expr_is_int(a, &value) && value == 0)
		return a;
	if (within_divisor(a, b))
		return op == BIN_FLOORDIV ? expr_int_exact(pool, a->type, 0) : a;
	if (!never_zero(b) || !sum_add(&rest, a, 1) || !sum_is_exact(&rest) ||
	    !split_factor(pool, &rest, &quotient, b) || (quotient.n == 0 && quotient.constant == 0))
		return expr_raw_binary(pool, op, a, b);
	const struct expr *left = sum_build(pool, &rest), *divided;
	if (!left)
		return expr_raw_binary(pool, op, a, b);
	divided = divide_symbolic(pool, op, left, b);
	if (op == BIN_FLOORMOD)
		return divided;
	const struct expr *total = sum_add(&quotient, divided, 1) ? sum_build(pool, &quotient) : NULL;
	return total ? total : expr_raw_binary(pool, op, a, b);
}

/* x // -c is -x // c; division by 0 is left alone. */
const struct expr *make_floordiv(struct expr_pool *pool, const struct expr *a, const struct expr *b)
{
	int64_t c, value;
	if (!expr_is_int(b, &c))
		return divide_symbolic(pool, BIN_FLOORDIV, a, b);
	if (expr_is_int(a, &value) && c != 0 && int_fits(a->type, floor_div(value, c)))
		return expr_int_exact(pool, a->type, floor_div(value, c));
	if (c > 0)
		return div_const(pool, a, c);
	if (c < 0 && c > INT64_MIN && a->type.kind == TYPE_INT && int_fits(a->type, -c))
		return div_const(pool, make_neg(pool, a), -c);
	return expr_raw_binary(pool, BIN_FLOORDIV, a, b);
}

/* x % -c is -(-x % c): the result has the divisor's sign. */
const struct expr *make_floormod(struct expr_pool *pool, const struct expr *a, const struct expr *b)
{
	int64_t c, value;
	if (!expr_is_int(b, &c))
		return divide_symbolic(pool, BIN_FLOORMOD, a, b);
	if (expr_is_int(a, &value) && c != 0)
		return expr_int_exact(pool, a->type, floor_mod(value, c));
	if (c > 0)
		return mod_const(pool, a, c);
	if (c < 0 && c > INT64_MIN && a->type.kind == TYPE_INT && int_fits(a->type, -c))
		return make_neg(pool, mod_const(pool, make_neg(pool, a), -c));
	return expr_raw_binary(pool, BIN_FLOORMOD, a, b);
}

/* C's division: the same as floor division where nothing is negative or nothing is left over. */
const struct expr *make_trunc(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                              const struct expr *b)
{
	bool is_div = op == BIN_TRUNCDIV;
	int64_t c;
	if (bounds_of(a).min >= 0 && bounds_of(b).min > 0)
		return is_div ? make_floordiv(pool, a, b) : make_floormod(pool, a, b);
	if (expr_is_int(b, &c) && c > 0 && expr_divisor(a) % c == 0)
		return is_div ? make_floordiv(pool, a, b) : make_floormod(pool, a, b);
	if (expr_is_int(a, NULL) && expr_is_int(b, &c) && c != 0 && c != -1) {
		int64_t value = is_div ? a->as.integer / c : a->as.integer % c;
		return expr_int_exact(pool, a->type, value);
	}
	return expr_raw_binary(pool, op, a, b);
}
