/*
 * swizzle_notation: accesses of a shared tile in a short text.
 *
 *     [N*]ld.row.B       the tile in row-major order, B bytes a lane (st, cp.async likewise)
 *     [N*]ld.col.B       in column-major order: a lane's B bytes run down a column
 *     [N*]ld.mma.B       an accumulator of mma.m16n8: lane l has row l/4, columns 2*(l%4) and on
 *     [N*]ldmatrix.xM[.trans][.col]    8 x 8 matrices of 2-byte elements (stmatrix likewise), 16
 *                        rows down, then right; .col: matrix rows run down a column of the tile
 *     [N*]ld.B:TV        CuTe thread-value layout into the tile, first dimension fastest
 *     [N*]ld.B:thread=..., slot=...    a fragment as `tilelayout layout` writes them
 *
 * N is how often the access runs (1). The last dimension of the shape is the row's; dimensions
 * before it count as rows.
 */
#ifndef TL_LAYOUT_SWIZZLE_NOTATION_H
#define TL_LAYOUT_SWIZZLE_NOTATION_H

#include "analyzer/layout/swizzle_search.h"

enum { SWIZZLE_MAX_ELEMS = 1 << 18 };

/*
 * Appends the access to the problem (shape and elem_bits are set); tables live in cx->arena. False
 * with E0945 at the text's place, with the help that names the forms.
 */
bool swizzle_read_access(struct cx *cx, struct swizzle_problem *problem, const char *text);

/* "ld.shared.16", "ldmatrix.x4": the instruction of an access at `bytes` a lane. */
const char *swizzle_instruction(struct arena *arena, const struct tile_access *access,
                                uint32_t bytes);

#endif
