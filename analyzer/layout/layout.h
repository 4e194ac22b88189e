/*
 * layout: where each element of a tile lives.
 *
 * A layout is a total function from a tile's index (and a replica number) to named axes:
 * `thread` and `slot` for fragments, `offset` in bytes for shared and global memory.
 * It is kept as digits: input dimension d is split in mixed radix, and the digit
 *
 *     value = (index[d] / div) % extent          contributes   value * stride   to its axis;
 *
 * then XOR terms act on the offset in bytes: offset ^= ((offset >> from_bit) & (2^bits - 1)) <<
 * to_bit, with from_bit >= to_bit + bits, so that every term is its own inverse. Digits cover
 * CuTe's Shape:Stride with Swizzle, replicated fragments and the mma / ldmatrix atoms without
 * needing powers of two. A map that has no digits is a table (`table` set). Dimension DIM_REPLICA
 * is the replica number: an element lives at every replica's place.
 *
 * Text form (layout_print, layout_parse), one clause an axis:
 *     fragment (16, 8) thread = i%8*4 + j/2%4, slot = i/8*2 + j%2
 *     fragment (16) of 32 replicas thread = i%4*32 + r, slot = i/4
 *     memory (128, 64) of 16 bits offset = i*128 + j*2, xor 3 bits 7 -> 4
 *     memory (2, 2) of 8 bits offset = table [0 2 1 3]
 * where i, j, k, l, i4, ... are the dimensions and r the replica; `%n` is left out where the extent
 * is what the dimension needs. An axis without digits is 0.
 *
 * Sources: mixed radix and strides: "CuTe Layout Representation and Algebra", arXiv 2603.02298; XOR
 * swizzle: CUTLASS include/cute/swizzle.hpp; fragments with replicas: TileLang's Fragment.
 */
#ifndef TL_LAYOUT_LAYOUT_H
#define TL_LAYOUT_LAYOUT_H

#include "analyzer/tile/expr.h"

enum layout_axis { AXIS_THREAD, AXIS_SLOT, AXIS_OFFSET, N_LAYOUT_AXES };
enum { DIM_REPLICA = MAX_RANK, MAX_DIGITS = 32, MAX_XORS = 8 };

struct digit {
	int dim;        /* 0 .. rank-1, or DIM_REPLICA */
	int64_t div;    /* >= 1 */
	int64_t extent; /* >= 1: the number of values */
	enum layout_axis axis;
	int64_t stride; /* on the axis: threads, slots or bytes */
};

struct xor_term {
	uint8_t from_bit, to_bit, n_bits; /* on byte offsets */
};

enum layout_kind { LAYOUT_FRAGMENT, LAYOUT_MEMORY };

struct layout {
	enum layout_kind kind;
	uint32_t rank;
	int64_t shape[MAX_RANK];
	int64_t n_replicas; /* 1 when none */
	uint32_t n_digits;
	struct digit digits[MAX_DIGITS];
	uint32_t n_xors;
	struct xor_term xors[MAX_XORS];
	int64_t n_threads;  /* fragments: threads spanned (max thread + 1), idle ones included */
	int64_t n_slots;    /* fragments: registers' slots of a thread (max slot + 1) */
	int64_t n_bytes;    /* memory: bytes of one version, padding included */
	uint32_t elem_bits; /* memory: bits of an element */
	/* Memory layouts without digits: byte offset of each element, row-major. NULL otherwise. */
	const int64_t *table;
	/* Fragments without digits: thread and slot of each (replica, element), replica outermost. NULL
	 * otherwise. */
	const int64_t *table_threads, *table_slots;
};

/* A place. Unused axes are 0. */
struct place {
	int64_t thread, slot, offset;
};

/* The contract's words for `kind`: "fragment", "linear", "padded", "swizzle32/64/128", "table",
 * "other". */
const char *layout_kind_text(const struct layout *layout);

/* ---- making ---- */

struct layout *layout_new_fragment(struct arena *arena, uint32_t rank, const int64_t *shape);
struct layout *layout_new_memory(struct arena *arena, uint32_t rank, const int64_t *shape,
                                 uint32_t elem_bits);
/* Digits of extent 1 are left out. */
void layout_add_digit(struct layout *layout, struct digit digit);
/* Computes n_threads, n_slots, n_bytes, n_replicas from the digits; asserts that the form is sound.
 */
void layout_finish(struct layout *layout);

/* Row-major; `pad_bytes` is added to the pitch of the innermost rows (0: linear). */
struct layout *layout_row_major(struct arena *arena, uint32_t rank, const int64_t *shape,
                                uint32_t elem_bits, int64_t pad_bytes);
/*
 * Panel-major swizzle as TMA, wgmma and TileLang have it: the last dimension is cut into panels of
 * `span_bytes` (32, 64 or 128), the panel index is slowest; inside a panel row r's 16-byte chunk c
 * sits at c ^ ((r / (128 / span)) % (span / 16)). The row dimension is the last but one; outer
 * dimensions are slower than panels. A span of 16 has no XOR: the core matrices of wgmma without a
 * swizzle. NULL when the row's bytes are not a multiple of span_bytes.
 */
struct layout *layout_swizzled(struct arena *arena, uint32_t rank, const int64_t *shape,
                               uint32_t elem_bits, int64_t span_bytes);
/* Accumulator of mma.m16n8 (PTX ISA, "Matrix fragments for mma.m16n8k16"): warps_m x warps_n warps,
   each (m / warps_m) x (n / warps_n); warp number = wm + warps_m * wn ... see layout_atoms.c for
   the exact order; slot order is the order of the mma's D registers, n8 tiles innermost. */
struct layout *layout_mma_accumulator(struct arena *arena, int64_t m, int64_t n, int64_t warps_m,
                                      int64_t warps_n);

/*
 * Operand fragments of mma.sync with `per_reg` elements in a 32-bit register (2 for 16-bit types);
 * A is rows x k with rows along M, B is rows x k with rows along N; `k_first`: the tile's first
 * dimension is k. Every warp holds the rows that it multiplies, so the warps of the other direction
 * are replicas. Slots: rows' tiles, then k blocks of 4 per_reg (two make a step of the
 * instruction), then the block's registers. K is any number: the last block may be filled partly.
 */
struct operand_form {
	bool is_b, k_first;
	int64_t rows, k, warps_m, warps_n, per_reg;
};
struct layout *layout_mma_operand(struct arena *arena, const struct operand_form *operand);

/* ---- asking ---- */

struct place layout_at(const struct layout *layout, const int64_t *index, int64_t replica);
/* The next index in row-major order (start from zeros); false after the last, when it is all zeros
 * again. */
bool layout_next_index(const struct layout *layout, int64_t *index);
/* Equal as functions: every index and replica to the same place (replicas compared as sets).
 * `index` (may be NULL) gets the first difference. */
bool layout_equal(const struct layout *a, const struct layout *b, int64_t *index);
/* The same digits and XOR terms: enough for equality, not needed for it. No element is looked at;
 * false for tables. */
bool layout_equal_structure(const struct layout *a, const struct layout *b);
/* Elements that the two (of one kind and shape) place differently. */
int64_t layout_count_differences(const struct layout *a, const struct layout *b);
/* Elements of two fragments of one shape whose first replicas are on different threads. */
int64_t layout_count_moves(const struct layout *a, const struct layout *b);
/* Every element has a place of its own: true, or the first two elements that share one. `first` and
   `second` have MAX_RANK + 1 entries (may be NULL), entry DIM_REPLICA is the replica. */
bool layout_injective(const struct layout *layout, int64_t *first, int64_t *second);
/* Places (thread < n_threads, slot < n_slots) of a fragment that hold no element. */
int64_t layout_idle_places(const struct layout *layout);
/* There are none. */
bool layout_covers_places(const struct layout *layout);

/*
 * Inverse of a digit fragment: the index of dimension d as an expression of the thread and the slot
 * (replica digits drop out). When padded (digits' range exceeds the shape), `guard` gets the
 * condition under which the place holds an element, else NULL. Where the digits of an axis are not
 * compact (each stride times extent the next stride), and of tables, the element is looked up in a
 * table by the place. False beyond 2^20 places.
 */
struct thread_slot {
	const struct expr *thread, *slot;
};
bool layout_inverse_expr(struct expr_pool *pool, const struct layout *layout, struct thread_slot at,
                         const struct expr **index, const struct expr **guard);
/* Is there one? */
bool layout_has_inverse(const struct layout *layout);
/* The replica number that the thread computes with: 0 for the owner that writes (NULL when there is
 * one replica). */
const struct expr *layout_replica_expr(struct expr_pool *pool, const struct layout *layout,
                                       const struct expr *thread);
/* One axis as an expression of index expressions; XOR terms included; bytes for AXIS_OFFSET. A
 * table layout gives EXPR_TABLE. */
const struct expr *layout_axis_expr(struct expr_pool *pool, const struct layout *layout,
                                    enum layout_axis axis, const struct expr *const *index,
                                    const struct expr *replica);

/*
 * The fragment whose dimension d is (dimension source_dim of `source`) / quotient, with `extent`
 * values (smaller or larger than what the source has: then the digits reach further than the
 * shape). source_dim -1: a dimension of extent 1. What the result does not tell apart becomes
 * replicas (thread digits, lowest stride first) or vanishes (slot digits; the others close up).
 * NULL when a quotient cuts a digit with a remainder.
 */
struct projection {
	int source_dim;
	int64_t quotient;
	int64_t extent;
};
struct layout *layout_project(struct arena *arena, const struct layout *source, uint32_t rank,
                              const struct projection *dims);
/* The fragment that remains when dimension `dim` is reduced: its thread digits become replicas, its
   slot digits vanish; keep_dim: the dimension stays with extent 1. */
struct layout *layout_reduce(struct arena *arena, const struct layout *source, uint32_t dim,
                             bool keep_dim);

/* ---- text ---- */

void layout_print(struct buf *out, const struct layout *layout);
/* A memory layout as T.Layout's function of i, j, ...: "lambda i, j: i * 72 + j". False when it has
 * no such short form (tables, elements that are no whole bytes); nothing is printed then. */
bool layout_print_python(struct buf *out, const struct layout *layout);
/* NULL with a diagnostic (E04..) at the position in source `file`. */
struct layout *layout_parse(struct cx *cx, uint32_t file, uint32_t *position);
/* CSV of the `layout` verb: header and one row an element in row-major order, replica outermost. */
void layout_print_csv(struct buf *out, const struct layout *layout);

#endif
