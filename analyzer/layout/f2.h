/*
 * f2: linear algebra over the field of two elements, and layouts as matrices over it.
 *
 * A vector is the bits of a uint64_t, addition is XOR. A map is kept by the images of the unit
 * vectors (its columns); a space by a reduced basis: every basis vector has a leading bit of its
 * own that no other vector has, sorted by it, so that equal spaces are equal arrays.
 *
 * A layout whose extents, digits and strides are powers of two, without padding, is a linear map of
 * the bits of the element number (row-major, so the last dimension has the lowest bits) followed by
 * those of the replica; memory layouts give the byte offset, fragments the thread number and, in
 * the bits above `n_thread_bits`, the slot.
 *
 * Related: "Linear Layouts", arXiv 2505.23819 (which maps places to elements; here elements to
 * places).
 */
#ifndef TL_LAYOUT_F2_H
#define TL_LAYOUT_F2_H

#include "analyzer/layout/layout.h"

enum { F2_MAX_DIM = 64 };

struct f2_map {
	uint32_t n_in, n_out;
	uint64_t columns[F2_MAX_DIM]; /* image of unit vector i; n_in are set */
};

struct f2_space {
	uint32_t n; /* its dimension */
	uint64_t basis[F2_MAX_DIM];
};

/* ---- spaces ---- */

/* Adds the vector; false (nothing changed) when it was in the space. */
bool f2_space_add(struct f2_space *space, uint64_t vector);
struct f2_space f2_span(const uint64_t *vectors, uint32_t n);
/* The vector without its part in the space: 0 exactly when it belongs to it. */
uint64_t f2_reduce(const struct f2_space *space, uint64_t vector);
bool f2_contains(const struct f2_space *space, uint64_t vector);
bool f2_subspace(const struct f2_space *inner, const struct f2_space *outer);
bool f2_space_equal(const struct f2_space *a, const struct f2_space *b);
struct f2_space f2_sum(const struct f2_space *a, const struct f2_space *b);
struct f2_space f2_intersection(const struct f2_space *a, const struct f2_space *b);
/* Spanned by unit vectors, disjoint from `space`, together all of 2^n_bits. */
struct f2_space f2_complement(const struct f2_space *space, uint32_t n_bits);

/* ---- maps ---- */

uint64_t f2_apply(const struct f2_map *map, uint64_t vector);
uint32_t f2_rank(const struct f2_map *map);
struct f2_space f2_kernel(const struct f2_map *map);
struct f2_space f2_image(const struct f2_map *map);
/* outer(inner(x)) */
struct f2_map f2_compose(const struct f2_map *outer, const struct f2_map *inner);
/* False when the map is not square and of full rank. */
bool f2_inverse(const struct f2_map *map, struct f2_map *out);
/* Some x with map(x) = value; false when there is none. */
bool f2_solve(const struct f2_map *map, uint64_t value, uint64_t *x);

/* ---- layouts ---- */

/* False when the layout is not linear over F2. `n_thread_bits` (may be NULL): fragments only. */
bool f2_from_layout(const struct layout *layout, struct f2_map *out, uint32_t *n_thread_bits);
/*
 * The memory layout that places element number x (row-major in `shape`, all powers of two) at byte
 * map(x). Digits and XOR terms where the map has that form, else a table.
 */
struct layout *f2_to_memory(struct arena *arena, const int64_t *shape, uint32_t rank,
                            uint32_t elem_bits, const struct f2_map *map);
/* Likewise a fragment of digits; NULL when some bit of a place is not one bit of the element. */
struct layout *f2_to_fragment(struct arena *arena, const int64_t *shape, uint32_t rank,
                              const struct f2_map *map, uint32_t n_thread_bits);

#endif
