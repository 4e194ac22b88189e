/*
 * tensors: the contents of a kernel's tensor arguments, as they lie in global memory.
 *
 * A run (on the CPU or on a GPU) takes a set of tensors, one a parameter in call order, changes the
 * bytes of those that the kernel writes, and is then compared with the reference (compare.h).
 * Inputs are generated: the same seed, parameter and element give the same value on every machine.
 */
#ifndef TL_SIM_TENSORS_H
#define TL_SIM_TENSORS_H

#include "analyzer/tile/tile.h"
#include "codegen/lower/warp.h"

struct tensor {
	const struct buffer *buffer;
	int64_t shape[MAX_RANK];   /* sizes with the symbols' values put in */
	int64_t strides[MAX_RANK]; /* in elements */
	int64_t n_elems;           /* of storage: from element 0 to the one with the largest offset */
	int64_t *places; /* of a mapped buffer: storage element of each element, row-major; else NULL */
	uint32_t elem_bytes;
	bool is_read, is_written; /* by the kernel; one that is not read starts as a fill pattern */
	uint8_t *bytes;           /* n_elems * elem_bytes, storage form, on the heap */
};

struct tensor_set {
	uint32_t n;
	struct tensor *items;
	/*
	 * Values of symbols and scalar parameters by variable id (expr_n_vars entries); a floating
	 * parameter's entry holds the bits of a double. Borrowed.
	 */
	const int64_t *values;
};

/* What a kernel does with its parameters; arrays in the order of the parameters. */
struct tensor_use {
	const struct buffer *buffer;
	bool is_read, is_written;
};
struct tensor_uses {
	vec_of(struct tensor_use) items;
	struct expr_pool *pool;
};
void tensor_uses_of_tile(struct tile_program *program, struct tensor_uses *out);
void tensor_uses_of_warp(const struct warp_program *program, struct tensor_uses *out);

/*
 * Sizes and allocates a tensor for each use; contents are those of tensors_fill with seed 1. False
 * with E0650 (a size that is not positive, over 16 GiB in all, or a type without whole bytes). End
 * with tensors_close.
 */
bool tensors_open(struct cx *cx, const struct tensor_uses *uses, const int64_t *values,
                  struct tensor_set *out);
void tensors_close(struct tensor_set *set);

/* Read tensors: uniform in [-1, 1] (floats), -4..4 (ints), 0..7 (unsigned); others: a fill pattern.
 */
void tensors_fill(struct tensor_set *set, uint64_t seed);
/* Copies the bytes between two sets that were opened alike. */
void tensors_copy(struct tensor_set *dst, const struct tensor_set *src);

/* NULL when the buffer is no parameter of the set. */
struct tensor *tensor_of(const struct tensor_set *set, const struct buffer *buffer);
/* "A[3, 17]" for the element at `offset` of storage, row-major tensors; else "A[offset 53]". */
void tensor_element_text(struct buf *out, const struct cx *cx, const struct tensor *tensor,
                         int64_t offset);

#endif
