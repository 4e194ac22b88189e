/*
 * reference: what a tile program computes, executed as it is written.
 *
 * Blocks run one after another, statements in order; every buffer is a plain array of doubles
 * (int64 for integer types), without layouts, threads or pipelines. A store rounds to the buffer's
 * type, except for float32 and float64, which stay double; nothing else rounds. Reads outside a
 * global tensor give 0 and writes there are dropped, as copies and parallel loops do.
 */
#ifndef TL_SIM_REFERENCE_H
#define TL_SIM_REFERENCE_H

#include "sim/lanes.h"
#include "sim/tensors.h"

/* A parameter after the run; arrays on the heap, element numbers are those of tensor->bytes. */
struct reference_tensor {
	const struct tensor *tensor;
	union cell *cells;
	uint8_t *written; /* 1: the kernel stored there */
};

struct reference {
	uint32_t n;
	struct reference_tensor *items; /* in the order of the set */
	int64_t n_blocks, n_blocks_run;
	uint64_t n_steps; /* elements moved or computed, four products of a gemm */
};

struct reference_options {
	const int64_t *blocks; /* of the only launch: linear numbers, x fastest; NULL: all blocks of all
	                          launches */
	int64_t n_blocks;
	uint64_t max_steps; /* elements and products; 0: 100 thousand million */
};

/*
 * Runs all launches on a copy of `inputs`. False with E0660 at the statement (an index outside an
 * on-chip buffer, a zero divisor, a value that depends on the threads) or E0658 (too many steps).
 * End with reference_close in any case.
 */
bool reference_run(struct tile_program *program, const struct tensor_set *inputs,
                   const struct reference_options *options, struct reference *out);
void reference_close(struct reference *reference);

#endif
