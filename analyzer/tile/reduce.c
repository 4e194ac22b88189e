/*
 * What a reduction combines with, and what it starts from.
 */
#include "analyzer/tile/tile.h"

#include <math.h>

/* Smallest or largest value of the type. */
static const struct expr *extreme(struct expr_pool *pool, struct dtype type, bool largest)
{
	int bits = (int)dtype_bits(type);
	int64_t high = bits >= 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;

	if (dtype_is_float(type))
		return expr_float(pool, type, largest ? (double)INFINITY : -(double)INFINITY);
	if (type.kind == TYPE_UINT || type.kind == TYPE_BOOL)
		return expr_int_typed(pool, type,
		                      !largest     ? 0
		                      : bits >= 63 ? INT64_MAX
		                                   : ((int64_t)1 << bits) - 1);
	return expr_int_typed(pool, type, largest ? high : -high - 1);
}

static const struct expr *constant(struct expr_pool *pool, struct dtype type, int64_t value)
{
	return dtype_is_float(type) ? expr_float(pool, type, (double)value)
	                            : expr_int_typed(pool, type, value);
}

const struct expr *reduce_identity(struct expr_pool *pool, enum reduce_kind kind, struct dtype type)
{
	switch (kind) {
	case REDUCE_SUM:
	case REDUCE_ABSSUM:
	case REDUCE_ABSMAX:
	case REDUCE_BITOR:
	case REDUCE_BITXOR:
		break;
	case REDUCE_MAX:
		return extreme(pool, type, false);
	case REDUCE_MIN:
		return extreme(pool, type, true);
	case REDUCE_BITAND:
		return constant(pool, type, type.kind == TYPE_BOOL ? 1 : -1);
	}
	return constant(pool, type, 0);
}

enum binary_op reduce_operator(enum reduce_kind kind)
{
	switch (kind) {
	case REDUCE_SUM:
	case REDUCE_ABSSUM:
		break;
	case REDUCE_MAX:
	case REDUCE_ABSMAX:
		return BIN_MAX;
	case REDUCE_MIN:
		return BIN_MIN;
	case REDUCE_BITAND:
		return BIN_BITAND;
	case REDUCE_BITOR:
		return BIN_BITOR;
	case REDUCE_BITXOR:
		return BIN_BITXOR;
	}
	return BIN_ADD;
}
