/*
 * expr_text: what the printer and the reader of expressions agree on.
 *
 * Precedence as in Python, weakest first; comparisons do not chain; binary operators lean left.
 * Names are letters, digits, `_`, `.` (inside) and all bytes above 0x7f.
 */
#ifndef TL_TILE_EXPR_TEXT_H
#define TL_TILE_EXPR_TEXT_H

#include "analyzer/tile/expr.h"

enum precedence {
	PREC_LOWEST,
	PREC_OR,
	PREC_AND,
	PREC_NOT,
	PREC_COMPARE,
	PREC_BITOR,
	PREC_BITXOR,
	PREC_BITAND,
	PREC_SHIFT,
	PREC_SUM,
	PREC_PRODUCT,
	PREC_UNARY,
	PREC_ATOM, /* also operators written as functions: min, max, truncdiv, truncmod */
};

int binary_precedence(enum binary_op op);
/* "f32" and so on behind a floating constant; NULL for types written as const(type, value). */
const char *float_suffix(struct dtype type);

static inline bool is_name_char(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '.' || c >= 0x80;
}

#endif
