/*
 * expr_internal: what the files of expr share.
 *
 * expr.c            the pool, leaves, types of operators, casts
 * expr_sum.c        canonical sums and products
 * expr_div.c        floor division and modulo
 * expr_bits.c       bitwise operators and shifts
 * expr_compare.c    comparisons, logic, min, max, select
 * expr_range.c      bounds and divisors; expr_order.c the order of commuting operands
 * expr_eval.c       values; expr_code.c the compiled form
 * expr_walk.c       traversal, substitution
 * expr_print.c, expr_parse.c   text
 *
 * The files' constructors get operands that already have one type and return a simplified
 * expression; expr_raw_binary is the last resort that builds the node as it stands.
 */
#ifndef TL_TILE_EXPR_INTERNAL_H
#define TL_TILE_EXPR_INTERNAL_H

#include "analyzer/tile/expr.h"

#include <assert.h>

__extension__ typedef __int128 i128;

enum {
	MAX_SIMPLIFY_DEPTH = 200, /* deeper expressions are built as they stand */
	MAX_TERMS = 40,           /* of a canonical sum; longer ones are built as they stand */
	MAX_FACTORS = 12,
};

struct expr_pool {
	struct cx *cx;
	struct arena *arena;
	const struct expr **slots; /* open addressing, n_slots a power of two */
	uint32_t n_slots, n_exprs;
	vec_of(struct var *) vars;
	vec_of(struct int_table *) tables;
	/* Substitution: results by expression id, valid where the stamp is that of the running call. */
	const struct expr **memo;
	uint64_t *memo_stamps;
	uint32_t memo_cap;
	uint64_t stamp;
};

/* The one object equal to `key`, whose args may live on the caller's stack. */
const struct expr *expr_intern(struct expr_pool *pool, const struct expr *key);
const struct expr *expr_raw_unary(struct expr_pool *pool, enum unary_op op, struct dtype type,
                                  const struct expr *a);
const struct expr *expr_raw_binary(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                                   const struct expr *b);
/* Is `value` a value of the integer type? */
bool int_fits(struct dtype type, int64_t value);
/* An integer constant of the type, which it must fit. */
const struct expr *expr_int_exact(struct expr_pool *pool, struct dtype type, int64_t value);
bool expr_is_int_binary(const struct expr *e, enum binary_op op);
/* Is it op(x, constant) of integers? */
bool expr_match_const(const struct expr *e, enum binary_op op, int64_t *constant);
bool is_comparison(enum binary_op op);

/* Inclusive; INT64_MIN and INT64_MAX stand for infinity. */
struct bounds {
	int64_t min, max;
};
struct bounds bounds_of(const struct expr *e);
struct bounds bounds_of_type(struct dtype type);
struct bounds bounds_add(struct bounds a, struct bounds b);
struct bounds bounds_scale(struct bounds a, int64_t factor);
/* True when every value within has the same floor quotient by c > 0. */
bool bounds_quotient(struct bounds a, int64_t c, int64_t *quotient);
/* Fills min, max, divisor, var_mask, depth, n_nodes and is_index of a new node. */
void expr_set_facts(struct expr *e);
/* Fills lead and shape_hash, for expr_before. */
void expr_set_order(const struct expr_pool *pool, struct expr *e);
/* The order of operands that commute; total, and the same in every pool (expr_order.c). */
bool expr_before(const struct expr *a, const struct expr *b);

int64_t gcd_int(int64_t a, int64_t b);
int64_t floor_div(int64_t a, int64_t b); /* 0 when b is 0; wraps */
int64_t floor_mod(int64_t a, int64_t b);
bool is_power_of_two(int64_t value);

/* constant + sum of coefficient * term, terms distinct and no sums themselves, by expr_before. */
struct term {
	const struct expr *e;
	int64_t coefficient;
};
struct sum {
	struct dtype type;
	uint32_t n;
	int64_t constant;
	struct term terms[MAX_TERMS];
};
void sum_init(struct sum *sum, struct dtype type);
/* Adds factor * e, taking sums apart. False on overflow or too many terms; the sum is spoilt then.
 */
bool sum_add(struct sum *sum, const struct expr *e, int64_t factor);
bool sum_add_term(struct sum *sum, const struct expr *e, int64_t coefficient);
bool sum_add_int(struct sum *sum, int64_t value);
bool sum_add_sum(struct sum *sum, const struct sum *other, int64_t factor);
struct bounds sum_bounds(const struct sum *sum);
/* Do parts of the sum stay within the type's width, whatever part is taken? True for signed types.
 */
bool sum_is_exact(const struct sum *sum);
/* Replaces k*(x % c) and k*c*(x // c) by k*x, until nothing of the kind is left.
 * True when something was. */
bool sum_join_divisions(struct expr_pool *pool, struct sum *sum);
/* sum = factor * high + low with 0 <= low < factor. */
struct sum_split {
	int64_t factor;
	struct sum high, low;
};
/* False when the terms that `factor` does not divide are not known to stay within one multiple. */
bool sum_split_by(const struct sum *sum, int64_t factor, struct sum_split *split);
/* The canonical expression; NULL when a number does not fit the type. */
const struct expr *sum_build(struct expr_pool *pool, struct sum *sum);

/* Constructors by operator group; operands have one integer type. */
const struct expr *make_sum(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                            const struct expr *b);
const struct expr *make_neg(struct expr_pool *pool, const struct expr *a);
const struct expr *make_mul(struct expr_pool *pool, const struct expr *a, const struct expr *b);
const struct expr *make_floordiv(struct expr_pool *pool, const struct expr *a,
                                 const struct expr *b);
const struct expr *make_floormod(struct expr_pool *pool, const struct expr *a,
                                 const struct expr *b);
const struct expr *make_trunc(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                              const struct expr *b);
const struct expr *make_bits(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                             const struct expr *b);
const struct expr *make_shift(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                              const struct expr *b);
const struct expr *make_compare(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                                const struct expr *b);
const struct expr *make_logic(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                              const struct expr *b);
const struct expr *make_not(struct expr_pool *pool, const struct expr *a);
const struct expr *make_min_max(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                                const struct expr *b);
/* Operators on floats: exact constant folding only. */
const struct expr *make_float(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                              const struct expr *b);

#endif
