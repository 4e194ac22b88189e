/*
 * sparse: gemms whose A holds two of every four elements.
 */
#ifndef TL_TILE_SPARSE_H
#define TL_TILE_SPARSE_H

#include "analyzer/tile/tile.h"

/*
 * How the metadata says which elements A holds: `group` consecutive elements of the dense A share
 * four bits, low groups in the low bits of a word, of which `kept` are there. Two of four: the
 * positions, two bits each. One of two (32-bit elements): 4 for the first, 14 for the second. PTX
 * ISA, mma.sp, ordered metadata.
 */
struct sparsity {
	int64_t group, kept;
	int64_t per_word; /* dense elements that one word of metadata tells of */
};
struct sparsity sparsity_of(struct dtype a, struct dtype e);

/*
 * T.gemm_sp as statements that have code: A is written out into a dense tile of shared memory, in a
 * parallel loop, which an ordinary gemm reads. Appends them to `out`; says so with W0411.
 */
void sparse_stage(struct tile_program *program, const struct launch *launch,
                  const struct stmt *stmt, struct block *out);

#endif
