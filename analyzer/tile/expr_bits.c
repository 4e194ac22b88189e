/*
 * Bitwise operators and shifts.
 *
 * Masks of adjacent bits and constant shifts become division, modulo and product, so that the sums'
 * rules see them. Where both operands split at a power of two g into g*high + low,
 *
 *     a op b  =  g * (high_a op high_b) + (low_a op low_b)
 *
 * which swizzled addresses need: (128*r + 2*c) ^ (16*s) with 2*c < 128 and s < 8 is
 * 128*r + 2*(c ^ 8*s).
 */
#include "analyzer/tile/expr_internal.h"

enum { MAX_XOR_OPERANDS = 16 };

/* Sign-extended operands give a sign-extended result. */
static int64_t fold_bits(enum binary_op op, int64_t a, int64_t b)
{
	assert(op == BIN_BITAND || op == BIN_BITOR || op == BIN_BITXOR);
	return op == BIN_BITAND ? (a & b) : op == BIN_BITOR ? (a | b) : (a ^ b);
}

static bool is_zero(const struct expr *e)
{
	return e->kind == EXPR_INT && e->as.integer == 0;
}

/* Do the operands share no bit: one is a multiple of a power of two above the other? */
static bool are_disjoint(const struct expr *a, const struct expr *b)
{
	uint64_t divisor = (uint64_t)expr_divisor(a);
	uint64_t power = divisor & -divisor;
	struct bounds bounds = bounds_of(b);
	return bounds.min >= 0 && (uint64_t)bounds.max < power;
}

/* g times op(high parts) plus op(low parts), when one of the four parts is 0; else NULL. */
static const struct expr *combine_split(struct expr_pool *pool, enum binary_op op,
                                        struct sum_split *a, struct sum_split *b)
{
	struct sum total;
	sum_init(&total, a->high.type);
	const struct expr *high_a = sum_build(pool, &a->high), *high_b = sum_build(pool, &b->high);
	const struct expr *low_a = sum_build(pool, &a->low), *low_b = sum_build(pool, &b->low);
	if (!high_a || !high_b || !low_a || !low_b || (is_zero(high_a) && is_zero(high_b)) ||
	    !(is_zero(high_a) || is_zero(high_b) || is_zero(low_a) || is_zero(low_b)))
		return NULL;
	if (!sum_add(&total, make_bits(pool, op, high_a, high_b), a->factor) ||
	    !sum_add(&total, make_bits(pool, op, low_a, low_b), 1))
		return NULL;
	return sum_build(pool, &total);
}

/* Powers of two that divide some coefficient or the constant, as a mask. */
static uint64_t split_candidates(const struct sum *sum)
{
	uint64_t constant = (uint64_t)sum->constant;
	uint64_t mask = constant & -constant;
	for (uint32_t i = 0; i < sum->n; i++) {
		uint64_t coefficient = (uint64_t)sum->terms[i].coefficient;
		mask |= coefficient & -coefficient;
	}
	return mask;
}

/*
 * The operator over operands that split at some power of two, largest first, or NULL. Only powers
 * that divide a coefficient or the constant can move anything into the high parts.
 */
static const struct expr *split_operands(struct expr_pool *pool, enum binary_op op,
                                         const struct expr *a, const struct expr *b)
{
	struct sum sum_a, sum_b;
	sum_init(&sum_a, a->type);
	sum_init(&sum_b, b->type);
	if (!sum_add(&sum_a, a, 1) || !sum_add(&sum_b, b, 1) || !sum_is_exact(&sum_a) ||
	    !sum_is_exact(&sum_b))
		return NULL;
	assert(dtype_equal(a->type, b->type));
	uint64_t candidates = (split_candidates(&sum_a) | split_candidates(&sum_b)) & ~1ULL;
	candidates &= ~(1ULL << 63);
	while (candidates) {
		uint64_t power = 1ULL << (63 - __builtin_clzll(candidates));
		struct sum_split split_a, split_b;
		candidates &= ~power;
		if (!sum_split_by(&sum_a, (int64_t)power, &split_a) ||
		    !sum_split_by(&sum_b, (int64_t)power, &split_b))
			continue;
		const struct expr *result = combine_split(pool, op, &split_a, &split_b);
		if (result)
			return result;
	}
	return NULL;
}

/* ---- xor ---- */

/* Operands of a chain of xor: by expr_before without the constants, which are folded. */
struct xor_list {
	uint32_t n;
	int64_t constant;
	const struct expr *operands[MAX_XOR_OPERANDS];
};

static void xor_remove(struct xor_list *list, uint32_t at)
{
	list->n--;
	for (; at < list->n; at++)
		list->operands[at] = list->operands[at + 1];
}

/* False when there are too many operands. */
static bool xor_collect(struct xor_list *list, const struct expr *e)
{
	if (e->kind == EXPR_INT) {
		list->constant ^= e->as.integer;
		return true;
	}
	if (expr_is_int_binary(e, BIN_BITXOR))
		return xor_collect(list, e->args[0]) && xor_collect(list, e->args[1]);
	uint32_t at = 0;
	while (at < list->n && expr_before(list->operands[at], e))
		at++;
	if (at < list->n && list->operands[at] == e) {
		xor_remove(list, at);
		return true;
	}
	if (list->n == MAX_XOR_OPERANDS)
		return false;
	for (uint32_t i = list->n++; i > at; i--)
		list->operands[i] = list->operands[i - 1];
	list->operands[at] = e;
	return true;
}

/* The pair as something that is no xor of the two; NULL when there is no such form. */
static const struct expr *xor_pair(struct expr_pool *pool, const struct expr *a,
                                   const struct expr *b)
{
	if (are_disjoint(a, b) || are_disjoint(b, a))
		return make_sum(pool, BIN_ADD, a, b);
	return split_operands(pool, BIN_BITXOR, a, b);
}

/* Replaces one pair by its simpler form; false when there is none. */
static bool xor_step(struct expr_pool *pool, struct dtype type, struct xor_list *list)
{
	const struct expr *constant = expr_int_exact(pool, type, list->constant);
	for (uint32_t i = 0; i < list->n; i++) {
		for (uint32_t j = i + 1; j <= list->n; j++) {
			bool with_constant = j == list->n;
			if (with_constant && list->constant == 0)
				continue;
			const struct expr *pair =
				xor_pair(pool, list->operands[i], with_constant ? constant : list->operands[j]);
			if (!pair)
				continue;
			if (with_constant)
				list->constant = 0;
			else
				xor_remove(list, j);
			xor_remove(list, i);
			return xor_collect(list, pair);
		}
	}
	return false;
}

/*
 * a ^ b in its one form: chains are flattened, equal operands cancel, pairs are simplified until no
 * pair can be; what remains is a left-leaning chain by expr_before with the constant last.
 */
static const struct expr *make_xor(struct expr_pool *pool, const struct expr *a,
                                   const struct expr *b)
{
	struct xor_list list = { .n = 0, .constant = 0 };
	if (!xor_collect(&list, a) || !xor_collect(&list, b))
		return expr_raw_binary(pool, BIN_BITXOR, a, b);
	for (int step = 0; step < MAX_XOR_OPERANDS && xor_step(pool, a->type, &list); step++)
		;
	const struct expr *result = NULL;
	for (uint32_t i = 0; i < list.n; i++)
		result =
			result ? expr_raw_binary(pool, BIN_BITXOR, result, list.operands[i]) : list.operands[i];
	if (result && list.constant == 0)
		return result;
	const struct expr *constant = expr_int_exact(pool, a->type, list.constant);
	return result ? expr_raw_binary(pool, BIN_BITXOR, result, constant) : constant;
}

/* ---- and, or ---- */

/* x & mask for adjacent bits: a division, a modulo and a product; else NULL. */
static const struct expr *mask_bits(struct expr_pool *pool, const struct expr *x, int64_t mask)
{
	struct dtype type = x->type;
	int64_t low = mask & -mask, ones = mask / low;
	if (type.kind == TYPE_UINT && type.bits == 64 && bounds_of(x).min < 0)
		return NULL;
	if (mask < 0 && (mask == INT64_MIN || !is_power_of_two(-mask)))
		return NULL;
	if (mask > 0 && (ones == INT64_MAX || !is_power_of_two(ones + 1)))
		return NULL;
	if (!int_fits(type, low) || (mask > 0 && !int_fits(type, ones + 1)))
		return NULL;
	const struct expr *factor = expr_int_exact(pool, type, low);
	const struct expr *bits = make_floordiv(pool, x, factor);
	if (mask > 0)
		bits = make_floormod(pool, bits, expr_int_exact(pool, type, ones + 1));
	return make_mul(pool, bits, factor);
}

/* `b` is a constant; NULL when nothing is known to be simpler. */
static const struct expr *bits_with_constant(struct expr_pool *pool, enum binary_op op,
                                             const struct expr *a, const struct expr *b)
{
	int64_t mask = b->as.integer, inner;
	bool all_ones = mask == -1 || mask == dtype_decode_int(a->type, ~0ULL);
	if (mask == 0)
		return op == BIN_BITAND ? b : a;
	if (all_ones && op != BIN_BITXOR)
		return op == BIN_BITAND ? a : b;
	if (expr_match_const(a, op, &inner))
		return make_bits(pool, op, a->args[0],
		                 expr_int_exact(pool, a->type, fold_bits(op, inner, mask)));
	if (op == BIN_BITAND && a->type.kind != TYPE_BOOL)
		return mask_bits(pool, a, mask);
	return NULL;
}

/* Operands come ordered: the constant, if any, is b. */
static const struct expr *make_and_or(struct expr_pool *pool, enum binary_op op,
                                      const struct expr *a, const struct expr *b)
{
	const struct expr *simple = NULL;
	if (a == b)
		return a;
	if (b->kind == EXPR_INT)
		simple = bits_with_constant(pool, op, a, b);
	if (simple)
		return simple;
	if (a->type.kind != TYPE_BOOL) {
		if (are_disjoint(a, b) || are_disjoint(b, a))
			return op == BIN_BITOR ? make_sum(pool, BIN_ADD, a, b)
			                       : expr_int_exact(pool, a->type, 0);
		simple = split_operands(pool, op, a, b);
	}
	return simple ? simple : expr_raw_binary(pool, op, a, b);
}

/* Orders the operands (all three operators commute) and tells bools from integers. */
const struct expr *make_bits(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                             const struct expr *b)
{
	if (a->kind == EXPR_INT && b->kind == EXPR_INT)
		return expr_int_typed(pool, a->type, fold_bits(op, a->as.integer, b->as.integer));
	if (a->kind == EXPR_INT || (b->kind != EXPR_INT && expr_before(b, a))) {
		const struct expr *other = a;
		a = b;
		b = other;
	}
	if (op != BIN_BITXOR)
		return make_and_or(pool, op, a, b);
	if (a->type.kind != TYPE_BOOL)
		return make_xor(pool, a, b);
	if (a == b)
		return expr_bool(pool, false);
	if (b->kind == EXPR_INT)
		return b->as.integer ? make_not(pool, a) : a;
	return expr_raw_binary(pool, op, a, b);
}

/* ---- shifts ---- */

/*
 * By a constant: a product or a floor division by the power of two, where the type has that power.
 * Other shifts stay as they are.
 */
const struct expr *make_shift(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                              const struct expr *b)
{
	int64_t amount;
	bool is_constant = expr_is_int(b, &amount);
	if (is_zero(a) || (is_constant && amount == 0))
		return a;
	if (!is_constant || amount < 0 || amount > 62 || !int_fits(a->type, 1LL << amount))
		return expr_raw_binary(pool, op, a, b);
	const struct expr *power = expr_int_exact(pool, a->type, 1LL << amount);
	if (op == BIN_SHL)
		return make_mul(pool, a, power);
	if (a->type.kind == TYPE_UINT && a->type.bits == 64 && bounds_of(a).min < 0)
		return expr_raw_binary(pool, op, a, b);
	return make_floordiv(pool, a, power);
}
