/*
 * algebra: CuTe's shape:stride layouts and the operations on them.
 *
 * A `struct cute` is a tree: a leaf is shape:stride, a tuple has modes. It maps an integer
 * coordinate 0 .. size-1 (colexicographic: the first mode is fastest) to an integer; coordinates
 * past the size run on in the last mode. Trees are immutable and live in the caller's arena. Shapes
 * are at least 1, strides at least 0, the size of every tree is at most 2^40.
 *
 * Operations that CuTe defines only under divisibility conditions give NULL when those do not
 * hold; nothing is reported, since whether that is an error is for the caller to say. Results have
 * CuTe's structure, not only its values: coalesced where CuTe coalesces.
 *
 * Text: `((2,4),8):((1,16),2)`, with a swizzle behind it `Sw<3,4,3> o (8,64):(64,1)`
 * (`Swizzle<3,4,3>` and `S<3,4,3>` are read too).
 *
 * Source: "CuTe Layout Representation and Algebra", arXiv 2603.02298; CUTLASS, include/cute:
 * layout.hpp and swizzle.hpp.
 */
#ifndef TL_LAYOUT_ALGEBRA_H
#define TL_LAYOUT_ALGEBRA_H

#include "analyzer/layout/layout.h"

enum { CUTE_MAX_LEAVES = 64, CUTE_MAX_DEPTH = 16 };

struct cute {
	uint32_t n_modes; /* 0: a leaf */
	const struct cute *const *modes;
	int64_t shape, stride; /* of a leaf */
};

/* x ^ ((x & yyy) >> shift): `bits` bits from position base + shift go onto position base. */
struct cute_swizzle {
	int bits, base, shift; /* bits 0: the identity; else shift >= bits */
};

/* Swizzle o layout. */
struct cute_composed {
	struct cute_swizzle swizzle;
	const struct cute *layout;
};

/* ---- making and evaluating ---- */

const struct cute *cute_leaf(struct arena *arena, int64_t shape, int64_t stride);
const struct cute *cute_tuple(struct arena *arena, const struct cute *const *modes, uint32_t n);
/* Compact, first mode fastest: (s0, s1, ...):(1, s0, ...). */
const struct cute *cute_compact(struct arena *arena, const int64_t *shape, uint32_t n);
/* Top-level modes: 1 and itself for a leaf. */
uint32_t cute_rank(const struct cute *a);
const struct cute *cute_mode(const struct cute *a, uint32_t i);
uint32_t cute_n_leaves(const struct cute *a);
int64_t cute_size(const struct cute *a);
int64_t cute_cosize(const struct cute *a); /* largest value + 1 */
int64_t cute_at(const struct cute *a, int64_t coordinate);
int64_t cute_swizzle_at(struct cute_swizzle swizzle, int64_t value);
int64_t cute_composed_at(const struct cute_composed *a, int64_t coordinate);

/* ---- comparing ---- */

bool cute_same(const struct cute *a, const struct cute *b);      /* the same tree */
bool cute_equal(const struct cute *a, const struct cute *b);     /* the same size and values */
bool cute_injective(const struct cute *a);                       /* no value twice */
bool cute_contained(const struct cute *a, const struct cute *b); /* a's values are among b's */
bool cute_covers(const struct cute *a, int64_t n);               /* all of 0 .. n-1 are values */

/* ---- operations ---- */

/* One tree of leaves, or a leaf. */
const struct cute *cute_flatten(struct arena *arena, const struct cute *a);
/* The flattest tree with the same values; a leaf when one mode is enough. */
const struct cute *cute_coalesce(struct arena *arena, const struct cute *a);
/* Each of the first `n` modes coalesced by itself. */
const struct cute *cute_coalesce_modes(struct arena *arena, const struct cute *a, uint32_t n);
/*
 * R(c) = a(b(c)), with b's structure. Every leaf s:d of b walks the coalesced modes of a: d divides
 * the mode's extent or the other way round, and what the mode takes of s divides s; NULL where that
 * does not hold, unless all of b stays inside a's first mode. As in CuTe the leaves are composed
 * one by one, so that b's sums must not carry from mode to mode (they do when b overlaps itself).
 */
const struct cute *cute_compose(struct arena *arena, const struct cute *a, const struct cute *b);
/* Mode by mode: tilers[i] on mode i (NULL: left as it is). NULL when one is undefined. */
const struct cute *cute_compose_modes(struct arena *arena, const struct cute *a,
                                      const struct cute *const *tilers, uint32_t n);
/* What `a` leaves out below `size`: sorted, disjoint from a; whole gaps only, so that a gap with a
 * remainder stays partly uncovered. NULL when a's modes overlap. */
const struct cute *cute_complement(struct arena *arena, const struct cute *a, int64_t size);
/* a(R(x)) = x for all x below R's size, the largest that sorted strides give. */
const struct cute *cute_right_inverse(struct arena *arena, const struct cute *a);
/* R(a(c)) = c for all coordinates; NULL when a is not injective in the sorted sense. */
const struct cute *cute_left_inverse(struct arena *arena, const struct cute *a);

/* (tile, rest): a o (b, complement of b in a's size). */
const struct cute *cute_logical_divide(struct arena *arena, const struct cute *a,
                                       const struct cute *b);
/* ((tile0, tile1, ...), (rest0, rest1, ..., further modes)), tiler by tiler. */
const struct cute *cute_zipped_divide(struct arena *arena, const struct cute *a,
                                      const struct cute *const *tilers, uint32_t n);
/* ((tile0, tile1, ...), rest0, rest1, ...) */
const struct cute *cute_tiled_divide(struct arena *arena, const struct cute *a,
                                     const struct cute *const *tilers, uint32_t n);
/* (a, copies of a laid out by b) */
const struct cute *cute_logical_product(struct arena *arena, const struct cute *a,
                                        const struct cute *b);
/* Mode i is (block's mode i, tiler's mode i); raked: the other way round. */
const struct cute *cute_blocked_product(struct arena *arena, const struct cute *block,
                                        const struct cute *tiler);
const struct cute *cute_raked_product(struct arena *arena, const struct cute *block,
                                      const struct cute *tiler);
/*
 * The modes whose coordinate is -1 remain, the others are fixed; `offset` gets what those
 * contribute. A scalar 1:0 when none remains. `coords` has cute_rank(a) entries.
 */
const struct cute *cute_slice(struct arena *arena, const struct cute *a, const int64_t *coords,
                              int64_t *offset);
/* The same values seen through another shape of the same size; NULL when it cuts a mode. */
const struct cute *cute_reshape(struct arena *arena, const struct cute *a, const int64_t *shape,
                                uint32_t n);

/* ---- text ---- */

void cute_print(struct buf *out, const struct cute *a);
void cute_composed_print(struct buf *out, const struct cute_composed *a);
/* Reads at *position of source `file` and moves it; false with E0401. Missing strides are compact.
 */
bool cute_parse(struct cx *cx, uint32_t file, uint32_t *position, struct cute_composed *out);

/* ---- from and to layouts of digits ---- */

/*
 * A memory layout as Swizzle o shape:stride in elements, one mode a dimension. False when it has no
 * such form: a table, digits that overlap or reach past the shape, several XOR terms.
 */
bool cute_from_memory(struct arena *arena, const struct layout *layout, struct cute_composed *out);
/* One dimension for each top-level mode. NULL when it has too many leaves or a swizzle that cuts
 * an element. */
struct layout *cute_to_memory(struct arena *arena, const struct cute_composed *a,
                              uint32_t elem_bits);
/*
 * A thread-value layout (thread, value) -> element number of `shape`, first dimension fastest, as a
 * fragment. Broadcast thread modes (stride 0) become replicas. NULL when a mode straddles
 * dimensions or two modes overlap.
 */
struct layout *cute_to_fragment(struct arena *arena, const struct cute *thread_value,
                                const int64_t *shape, uint32_t rank);
/* The inverse: (thread, value) -> element number. NULL for tables and gaps. */
const struct cute *cute_from_fragment(struct arena *arena, const struct layout *layout);

#endif
