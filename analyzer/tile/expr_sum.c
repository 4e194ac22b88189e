/*
 * Canonical sums and products.
 *
 * A sum of integers is taken apart into constant + sum of coefficient * term, equal terms are
 * merged, a quotient and a remainder of the same division join again, and the tree is rebuilt in
 * one order: positive terms by expr_before, negative terms by expr_before, the constant last
 * (first when there is no positive term):
 *
 *     4*(x // 4) + y + x % 4 - 3      ->      x + y - 3
 *
 * Where a number leaves int64 or its type the expression is built as it stands.
 */
#include "analyzer/tile/expr_internal.h"

/* Unsigned types count modulo 2^bits: numbers are kept in the signed half of it. */
static int64_t wrap_number(struct dtype type, int64_t value)
{
	if (type.kind != TYPE_UINT)
		return value;
	return dtype_decode_int(DTYPE(TYPE_INT, type.bits), (uint64_t)value);
}

void sum_init(struct sum *sum, struct dtype type)
{
	sum->type = type;
	sum->n = 0;
	sum->constant = 0;
}

bool sum_add_int(struct sum *sum, int64_t value)
{
	if (__builtin_add_overflow(sum->constant, value, &sum->constant))
		return false;
	sum->constant = wrap_number(sum->type, sum->constant);
	return true;
}

/* Insertion in order; a coefficient that becomes 0 takes its term away. */
bool sum_add_term(struct sum *sum, const struct expr *e, int64_t coefficient)
{
	uint32_t at = 0;
	while (at < sum->n && expr_before(sum->terms[at].e, e))
		at++;
	if (at < sum->n && sum->terms[at].e == e) {
		int64_t *number = &sum->terms[at].coefficient;
		if (__builtin_add_overflow(*number, coefficient, number))
			return false;
		*number = wrap_number(sum->type, *number);
		if (*number != 0)
			return true;
		sum->n--;
		for (; at < sum->n; at++)
			sum->terms[at] = sum->terms[at + 1];
		return true;
	}
	coefficient = wrap_number(sum->type, coefficient);
	if (coefficient == 0)
		return true;
	if (sum->n == MAX_TERMS)
		return false;
	for (uint32_t i = sum->n; i > at; i--)
		sum->terms[i] = sum->terms[i - 1];
	sum->terms[at] = (struct term){ e, coefficient };
	sum->n++;
	return true;
}

/* Follows +, -, negation and products with a constant down to the terms. */
bool sum_add(struct sum *sum, const struct expr *e, int64_t factor)
{
	int64_t value;
	if (e->kind == EXPR_INT)
		return !__builtin_mul_overflow(e->as.integer, factor, &value) && sum_add_int(sum, value);
	if (e->kind == EXPR_UNARY && e->as.unary == UN_NEG)
		return !__builtin_sub_overflow(0, factor, &value) && sum_add(sum, e->args[0], value);
	if (e->kind != EXPR_BINARY)
		return sum_add_term(sum, e, factor);
	if (e->as.binary == BIN_ADD)
		return sum_add(sum, e->args[0], factor) && sum_add(sum, e->args[1], factor);
	if (e->as.binary == BIN_SUB)
		return sum_add(sum, e->args[0], factor) && !__builtin_sub_overflow(0, factor, &value) &&
		       sum_add(sum, e->args[1], value);
	if (expr_match_const(e, BIN_MUL, &value)) {
		value = wrap_number(sum->type, value);
		return !__builtin_mul_overflow(value, factor, &value) && sum_add(sum, e->args[0], value);
	}
	return sum_add_term(sum, e, factor);
}

bool sum_add_sum(struct sum *sum, const struct sum *other, int64_t factor)
{
	int64_t value;
	if (__builtin_mul_overflow(other->constant, factor, &value) || !sum_add_int(sum, value))
		return false;
	for (uint32_t i = 0; i < other->n; i++) {
		if (__builtin_mul_overflow(other->terms[i].coefficient, factor, &value) ||
		    !sum_add_term(sum, other->terms[i].e, value))
			return false;
	}
	return true;
}

struct bounds sum_bounds(const struct sum *sum)
{
	struct bounds total = { sum->constant, sum->constant };
	for (uint32_t i = 0; i < sum->n; i++)
		total =
			bounds_add(total, bounds_scale(bounds_of(sum->terms[i].e), sum->terms[i].coefficient));
	return total;
}

/* Unsigned: only when no term is negative and the largest total fits. */
bool sum_is_exact(const struct sum *sum)
{
	struct bounds total = sum_bounds(sum);
	if (sum->type.kind == TYPE_INT)
		return true;
	if (sum->constant < 0)
		return false;
	for (uint32_t i = 0; i < sum->n; i++)
		if (sum->terms[i].coefficient < 0 || bounds_of(sum->terms[i].e).min < 0)
			return false;
	return total.max != INT64_MAX && int_fits(sum->type, total.max);
}

/* The part of the constant below `factor` goes with the low terms. */
bool sum_split_by(const struct sum *sum, int64_t factor, struct sum_split *split)
{
	int64_t quotient, taken;
	assert(factor > 1);
	split->factor = factor;
	sum_init(&split->high, sum->type);
	sum_init(&split->low, sum->type);
	split->low.constant = floor_mod(sum->constant, factor);
	split->high.constant = floor_div(sum->constant, factor);
	for (uint32_t i = 0; i < sum->n; i++) {
		struct term term = sum->terms[i];
		bool divides = term.coefficient % factor == 0;
		if (!(divides ? sum_add_term(&split->high, term.e, term.coefficient / factor)
		              : sum_add_term(&split->low, term.e, term.coefficient)))
			return false;
	}
	return bounds_quotient(sum_bounds(&split->low), factor, &quotient) &&
	       !__builtin_mul_overflow(-quotient, factor, &taken) &&
	       sum_add_int(&split->high, quotient) && sum_add_int(&split->low, taken);
}

/* ---- joining quotients and remainders ---- */

static struct term *sum_find(struct sum *sum, const struct expr *e)
{
	for (uint32_t i = 0; i < sum->n; i++)
		if (sum->terms[i].e == e)
			return &sum->terms[i];
	return NULL;
}

/* Does the sum hold factor * part, term by term with at least these very coefficients? */
static bool sum_holds(struct sum *sum, const struct sum *part, int64_t factor)
{
	for (uint32_t i = 0; i < part->n; i++) {
		struct term *term = sum_find(sum, part->terms[i].e);
		int64_t wanted;
		if (!term || __builtin_mul_overflow(part->terms[i].coefficient, factor, &wanted) ||
		    term->coefficient != wanted)
			return false;
	}
	return part->n > 0;
}

/* Is there another term that could be the quotient that goes with term `i`, a remainder by b? */
static bool may_have_partner(const struct sum *sum, uint32_t i, const struct expr *b)
{
	int64_t divisor, step = 0;
	bool is_constant = expr_is_int(b, &divisor);
	if (is_constant && __builtin_mul_overflow(sum->terms[i].coefficient, divisor, &step))
		return false;
	for (uint32_t j = 0; j < sum->n; j++) {
		if (j == i)
			continue;
		if (is_constant ? step != 0 && sum->terms[j].coefficient % step == 0
		                : expr_is_int_binary(sum->terms[j].e, BIN_MUL))
			return true;
	}
	return false;
}

/* Replaces factor * part and term `i` by factor' * whole. */
static bool sum_replace(struct sum *sum, const struct sum *part, uint32_t i,
                        const struct expr *whole)
{
	struct term term = sum->terms[i];
	return sum_add_sum(sum, part, -term.coefficient) &&
	       sum_add_term(sum, term.e, -term.coefficient) && sum_add(sum, whole, term.coefficient);
}

/* Term i is k * (x % b): with k * b * (x // b) in the sum both become k * x. */
static bool join_quotient(struct expr_pool *pool, struct sum *sum, uint32_t i)
{
	const struct expr *x = sum->terms[i].e->args[0], *b = sum->terms[i].e->args[1];
	struct sum part, trial;
	sum_init(&part, sum->type);
	const struct expr *product = make_mul(pool, make_floordiv(pool, x, b), b);
	if (!sum_add(&part, product, 1) || !sum_holds(sum, &part, sum->terms[i].coefficient))
		return false;
	trial = *sum;
	if (!sum_replace(&trial, &part, i, x))
		return false;
	*sum = trial;
	return true;
}

/* Term i is k * (x % a): with k * a * ((x // a) % b) in the sum both become k * (x % (a * b)). */
static bool join_remainder(struct expr_pool *pool, struct sum *sum, uint32_t i)
{
	const struct expr *e = sum->terms[i].e;
	int64_t a, b, wanted, product;
	if (!expr_match_const(e, BIN_FLOORMOD, &a) || a <= 0 ||
	    __builtin_mul_overflow(sum->terms[i].coefficient, a, &wanted))
		return false;
	for (uint32_t j = 0; j < sum->n; j++) {
		const struct expr *high = sum->terms[j].e;
		if (sum->terms[j].coefficient != wanted || !expr_match_const(high, BIN_FLOORMOD, &b) ||
		    b <= 0 || __builtin_mul_overflow(a, b, &product) || !int_fits(sum->type, product) ||
		    make_floordiv(pool, e->args[0], e->args[1]) != high->args[0])
			continue;
		struct sum part, trial = *sum;
		sum_init(&part, sum->type);
		const struct expr *modulus = expr_int_exact(pool, sum->type, product);
		const struct expr *whole = make_floormod(pool, e->args[0], modulus);
		if (sum_add_term(&part, high, a) && sum_replace(&trial, &part, i, whole)) {
			*sum = trial;
			return true;
		}
	}
	return false;
}

/* Term i is k*c * (x // c) where c always divides x: it becomes k * x. */
static bool join_exact(struct sum *sum, uint32_t i)
{
	const struct expr *e = sum->terms[i].e;
	int64_t c, coefficient = sum->terms[i].coefficient;
	if (!expr_match_const(e, BIN_FLOORDIV, &c) || c <= 0 || coefficient % c != 0 ||
	    expr_divisor(e->args[0]) % c != 0)
		return false;
	struct sum trial = *sum;
	if (!sum_add_term(&trial, e, -coefficient) || !sum_add(&trial, e->args[0], coefficient / c))
		return false;
	*sum = trial;
	return true;
}

/* Tries every rule on one term. */
static bool join_term(struct expr_pool *pool, struct sum *sum, uint32_t i)
{
	const struct expr *e = sum->terms[i].e;
	if (expr_is_int_binary(e, BIN_FLOORDIV))
		return join_exact(sum, i);
	return expr_is_int_binary(e, BIN_FLOORMOD) && may_have_partner(sum, i, e->args[1]) &&
	       (join_quotient(pool, sum, i) || join_remainder(pool, sum, i));
}

/* Every step takes a division away. */
bool sum_join_divisions(struct expr_pool *pool, struct sum *sum)
{
	uint32_t i = 0, steps = 0;
	while (i < sum->n && steps < MAX_TERMS) {
		if (join_term(pool, sum, i)) {
			i = 0;
			steps++;
		} else {
			i++;
		}
	}
	return steps > 0;
}

/* ---- rebuilding ---- */

/* coefficient * e for coefficient > 0. */
static const struct expr *build_term(struct expr_pool *pool, struct dtype type,
                                     const struct expr *e, int64_t coefficient)
{
	if (coefficient == 1)
		return e;
	return expr_raw_binary(pool, BIN_MUL, e, expr_int_typed(pool, type, coefficient));
}

/* No term is positive: 5 - x - 2*y, or -x - 3, or x*-2. */
static const struct expr *build_negative(struct expr_pool *pool, struct sum *sum)
{
	const struct expr *total = NULL;
	struct dtype type = sum->type;
	if (sum->constant > 0)
		total = expr_int_exact(pool, type, sum->constant);
	for (uint32_t i = 0; i < sum->n; i++) {
		const struct expr *e = sum->terms[i].e;
		int64_t coefficient = sum->terms[i].coefficient;
		if (total)
			total = expr_raw_binary(pool, BIN_SUB, total, build_term(pool, type, e, -coefficient));
		else if (coefficient == -1)
			total = expr_raw_unary(pool, UN_NEG, type, e);
		else
			total = build_term(pool, type, e, coefficient);
	}
	if (sum->constant < 0)
		total = expr_raw_binary(pool, BIN_SUB, total, expr_int_typed(pool, type, -sum->constant));
	return total;
}

/* Can every coefficient and the constant, with either sign, be written in the type? */
static bool numbers_fit(const struct sum *sum)
{
	struct dtype type = sum->type;
	int64_t limit = type.bits >= 64 ? INT64_MAX : (1LL << (type.bits - 1)) - 1;
	if (type.kind == TYPE_UINT)
		return true;
	for (uint32_t i = 0; i < sum->n; i++)
		if (sum->terms[i].coefficient > limit || sum->terms[i].coefficient < -limit)
			return false;
	return sum->n == 0 ? int_fits(type, sum->constant)
	                   : sum->constant <= limit && sum->constant >= -limit;
}

/* Nodes are built as they stand here: the sum is canonical already. */
const struct expr *sum_build(struct expr_pool *pool, struct sum *sum)
{
	const struct expr *total = NULL;
	sum_join_divisions(pool, sum);
	if (!numbers_fit(sum))
		return NULL;
	if (sum->n == 0)
		return expr_int_typed(pool, sum->type, sum->constant);
	for (uint32_t i = 0; i < sum->n; i++) {
		assert(i == 0 || expr_before(sum->terms[i - 1].e, sum->terms[i].e));
		if (sum->terms[i].coefficient < 0)
			continue;
		const struct expr *term =
			build_term(pool, sum->type, sum->terms[i].e, sum->terms[i].coefficient);
		total = total ? expr_raw_binary(pool, BIN_ADD, total, term) : term;
	}
	if (!total)
		return build_negative(pool, sum);
	for (uint32_t i = 0; i < sum->n; i++) {
		const struct term *term = &sum->terms[i];
		if (term->coefficient < 0)
			total = expr_raw_binary(pool, BIN_SUB, total,
			                        build_term(pool, sum->type, term->e, -term->coefficient));
	}
	if (sum->constant != 0)
		total = expr_raw_binary(
			pool, sum->constant > 0 ? BIN_ADD : BIN_SUB, total,
			expr_int_typed(pool, sum->type, sum->constant > 0 ? sum->constant : -sum->constant));
	return total;
}

const struct expr *make_sum(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                            const struct expr *b)
{
	struct sum sum;
	const struct expr *total = NULL;
	sum_init(&sum, a->type);
	if (sum_add(&sum, a, 1) && sum_add(&sum, b, op == BIN_ADD ? 1 : -1))
		total = sum_build(pool, &sum);
	return total ? total : expr_raw_binary(pool, op, a, b);
}

const struct expr *make_neg(struct expr_pool *pool, const struct expr *a)
{
	struct sum sum;
	const struct expr *total = NULL;
	sum_init(&sum, a->type);
	if (sum_add(&sum, a, -1))
		total = sum_build(pool, &sum);
	return total ? total : expr_raw_unary(pool, UN_NEG, a->type, a);
}

/* ---- products ---- */

struct product {
	uint32_t n;
	int64_t constant;
	const struct expr *factors[MAX_FACTORS]; /* by expr_before, not constant */
};

/* Multiplies by e, taking products apart; false on overflow or too many factors. */
static bool product_add(struct product *product, const struct expr *e)
{
	if (e->kind == EXPR_INT)
		return !__builtin_mul_overflow(product->constant, e->as.integer, &product->constant);
	if (expr_is_int_binary(e, BIN_MUL))
		return product_add(product, e->args[0]) && product_add(product, e->args[1]);
	if (e->kind == EXPR_UNARY && e->as.unary == UN_NEG)
		return !__builtin_mul_overflow(product->constant, -1, &product->constant) &&
		       product_add(product, e->args[0]);
	if (product->n == MAX_FACTORS)
		return false;
	uint32_t at = product->n++;
	for (; at > 0 && expr_before(e, product->factors[at - 1]); at--)
		product->factors[at] = product->factors[at - 1];
	product->factors[at] = e;
	return true;
}

/*
 * With a constant: the sum times it, term by term. Else a product of factors by expr_before, with
 * all constant factors in front as its coefficient: (2*x) * (3*y) is (x*y)*6.
 */
const struct expr *make_mul(struct expr_pool *pool, const struct expr *a, const struct expr *b)
{
	struct sum sum;
	struct product product = { .n = 0, .constant = 1 };
	const struct expr *total = NULL;
	int64_t factor;
	sum_init(&sum, a->type);
	if (expr_is_int(a, &factor) && b->kind != EXPR_INT) {
		const struct expr *other = b;
		b = a;
		a = other;
	}
	if (expr_is_int(b, &factor)) {
		if (sum_add(&sum, a, wrap_number(a->type, factor)))
			total = sum_build(pool, &sum);
		return total ? total : expr_raw_binary(pool, BIN_MUL, a, b);
	}
	if (!product_add(&product, a) || !product_add(&product, b))
		return expr_raw_binary(pool, BIN_MUL, a, b);
	assert(product.n >= 1);
	const struct expr *rest = product.factors[0];
	for (uint32_t i = 1; i < product.n; i++)
		rest = expr_raw_binary(pool, BIN_MUL, rest, product.factors[i]);
	if (sum_add_term(&sum, rest, wrap_number(a->type, product.constant)))
		total = sum_build(pool, &sum);
	return total ? total : expr_raw_binary(pool, BIN_MUL, a, b);
}

/* A widening cast is looked through: int64(4*i + j) has the coefficient 4, too. */
bool expr_linear_in(struct expr_pool *pool, const struct expr *e, const struct var *var,
                    int64_t *coefficient, const struct expr **rest)
{
	struct sum sum;
	if (!dtype_is_int(e->type))
		return false;
	*coefficient = 0;
	*rest = e;
	if (!expr_uses(e, var))
		return true;
	if (e->kind == EXPR_CAST && e->type.kind == TYPE_INT && e->args[0]->type.kind == TYPE_INT &&
	    e->type.bits >= e->args[0]->type.bits) {
		if (!expr_linear_in(pool, e->args[0], var, coefficient, rest))
			return false;
		*rest = expr_cast(pool, e->type, *rest);
		return true;
	}
	sum_init(&sum, e->type);
	if (!sum_add(&sum, e, 1) || (e->type.kind == TYPE_UINT && !sum_is_exact(&sum)))
		return false;
	for (uint32_t i = 0; i < sum.n; i++) {
		const struct expr *term = sum.terms[i].e;
		if (term->kind == EXPR_VAR && term->as.var == var)
			*coefficient = sum.terms[i].coefficient;
		else if (expr_uses(term, var))
			return false;
	}
	if (*coefficient == 0 || !sum_add_term(&sum, expr_of_var(pool, var), -*coefficient))
		return false;
	const struct expr *built = sum_build(pool, &sum);
	*rest = built;
	return built != NULL;
}
