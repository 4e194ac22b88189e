/*
 * expr_ops: integer operators with every case defined, for both evaluators of expr.
 * int64 wraps around, division by 0 gives 0, shifts by more than 63 shift everything out.
 */
#ifndef TL_TILE_EXPR_OPS_H
#define TL_TILE_EXPR_OPS_H

#include "analyzer/tile/expr.h"

static inline int64_t op_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t op_sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t op_mul(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

static inline int64_t op_truncdiv(int64_t a, int64_t b)
{
	if (b == 0)
		return 0;
	return b == -1 ? op_sub(0, a) : a / b;
}

static inline int64_t op_truncmod(int64_t a, int64_t b)
{
	return b == 0 || b == -1 ? 0 : a % b;
}

/* Negative amounts count as too large. */
static inline int64_t op_shl(int64_t a, int64_t b)
{
	return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

static inline int64_t op_shr(int64_t a, int64_t b)
{
	return a >> (b < 0 || b > 63 ? 63 : b);
}

static inline int64_t op_table(const struct int_table *table, int64_t index)
{
	return index >= 0 && (uint64_t)index < table->n ? table->values[index] : 0;
}

#endif
