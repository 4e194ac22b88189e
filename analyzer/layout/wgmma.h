/*
 * wgmma: the matrices of warpgroup instructions, in shared memory and in registers.
 *
 * A warpgroup (4 warps, 128 threads) multiplies A (64 x K) by B (K x N) into D (64 x N), K being 32
 * bytes wide. B, and A unless it comes from registers, have a matrix descriptor: a start
 * address, two strides and a swizzle. "mn" is the row of A or the column of B; a matrix is K-major
 * when its elements are contiguous along k in memory, else MN-major.
 *
 * Source: PTX ISA, "Asynchronous warpgroup level matrix instructions": "Register fragments and
 * shared memory matrix layouts", "Canonical layouts", "Matrix descriptor format".
 */
#ifndef TL_LAYOUT_WGMMA_H
#define TL_LAYOUT_WGMMA_H

#include "analyzer/layout/layout.h"

enum {
	WGMMA_M = 64,       /* rows of an instruction */
	WGMMA_K_BYTES = 32, /* of one row of A or column of B */
	WGMMA_MAX_N = 256,
	WGMMA_THREADS = 128,
	WGMMA_WARPS = 4,
};

/* What a descriptor says besides the start address. All in bytes. */
struct wgmma_matrix {
	bool mn_major;
	int64_t elem_bytes;
	int64_t span; /* of the swizzle: 32, 64, 128; 16: none */
	/*
	 * leading: MN-major: from one span along mn to the next, without swizzle from 8 k to the next;
	 * K-major without swizzle: between the two 16-byte columns; else not used.
	 * stride: K-major: from 8 mn to the next; MN-major: from 8 k to the next, without swizzle from
	 * one 16-byte column along mn to the next.
	 */
	int64_t leading, stride;
};

/*
 * The byte of shared memory at which element (mn, k) of the instruction starts when the start
 * address of the descriptor is `start`: the swizzle acts on bits of the address itself.
 */
int64_t wgmma_address(const struct wgmma_matrix *matrix, int64_t start, int64_t mn, int64_t k);
/* Alignment of a tile's base: the swizzle repeats after 8 rows of its span. */
int64_t wgmma_alignment(const struct wgmma_matrix *matrix);
/* Bits 62 and 63 of the descriptor: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes. */
int wgmma_swizzle_mode(const struct wgmma_matrix *matrix);

/* How an operand lies in its buffer's last two dimensions. */
struct wgmma_view {
	bool mn_major; /* the last dimension runs along mn */
	int64_t mn;    /* rows of A (64) or columns of B of one instruction */
};
/*
 * The descriptor under which an instruction reads each aligned part of the layout, or false when
 * the layout is none that a descriptor can express. Parts start at multiples of 8 rows and of 32
 * bytes of k (K-major), of the span and of 8 k (MN-major); their start address is the layout's
 * offset without XOR terms.
 */
bool wgmma_matrix_of(struct arena *arena, const struct layout *layout,
                     const struct wgmma_view *view, struct wgmma_matrix *out);
/* The same layout without its XOR terms: offsets as descriptors count them. */
const struct layout *wgmma_linear(struct arena *arena, const struct layout *layout);

/*
 * Accumulator of warps_m x warps_n warps (warps_m a multiple of 4), each group of 4 along M holding
 * m / (warps_m / 4) rows in blocks of 64, of which warp w has rows 16 w .. 16 w + 15. Slots:
 * blocks, then columns, then the instruction's registers.
 */
struct layout *layout_wgmma_accumulator(struct arena *arena, const int64_t shape[2],
                                        int64_t warps_m, int64_t warps_n);
/* Operand A in registers, likewise; slots: blocks, k steps, the instruction's registers. */
struct layout *layout_wgmma_operand(struct arena *arena, const struct operand_form *operand);

/*
 * The largest N of one instruction that divides `columns` into equal parts: a multiple of 8 up to
 * 256; integers beyond 32 in multiples of 16 only. 0 when there is none.
 */
int64_t wgmma_split(int64_t columns, bool is_integer);

#endif
