/*
 * tma: tiles of shared memory that bulk tensor copies (PTX ISA cp.async.bulk.tensor) fill and read.
 *
 * One copy moves a box: up to 256 elements along each dimension of a tensor, packed row-major in
 * shared memory, its rows of `inner` elements 16-byte units swizzled within `span` bytes when there
 * is a swizzle. So a tile's layout is either row-major, or cut into panels of `span` bytes of each
 * row, as layout_swizzled makes them; nothing else can be asked of the hardware.
 *
 *     128 x 64 float16, span 128: one box of 64 x 128;   128 x 128: two of them, 16 KiB apart
 *
 * Source: PTX ISA, "Tensors": "Tiled mode", "Swizzling modes"; CUDA driver API,
 * cuTensorMapEncodeTiled (limits of a box, alignment).
 */
#ifndef TL_LAYOUT_TMA_H
#define TL_LAYOUT_TMA_H

#include "analyzer/layout/layout.h"

enum {
	TMA_MAX_RANK = 5,
	TMA_MAX_BOX = 256, /* elements along a dimension */
	TMA_UNIT = 16,     /* bytes: rows of a box, pitches of the tensor, alignment of a linear tile */
};

/* How a rectangle of a tile is cut into boxes. */
struct tma_box {
	int64_t span;        /* 32, 64, 128; 0: no swizzle */
	int64_t inner, rows; /* of one box: elements along the last dimension, of the one before */
	int64_t n_inner;     /* boxes along the last dimension */
	int64_t n_rows;      /* along the one before */
	int64_t n_outer;     /* along all others */
};

/* The rectangle: where it starts (a divisor of it, 0: at 0) and its extents, in each dimension. */
struct tma_rect {
	int64_t divisor[MAX_RANK], extent[MAX_RANK];
};

/*
 * Cuts the rectangle of a tile that lies by `layout`; NULL when that works, else why it does not,
 * for people ("its rows of 96 bytes are wider than the swizzle's span of 32").
 */
const char *tma_box_of(struct arena *arena, const struct layout *layout,
                       const struct tma_rect *rect, struct tma_box *out);
/* Bytes of one box, and of all. */
int64_t tma_box_bytes(const struct tma_box *box, uint32_t elem_bits);
int64_t tma_bytes(const struct tma_box *box, uint32_t elem_bits);
/* Where a box may start in shared memory: multiples of 128, or of the swizzle's 8 rows. */
int64_t tma_alignment(const struct tma_box *box);

#endif
