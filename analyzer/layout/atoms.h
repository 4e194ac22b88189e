/*
 * atoms: which thread and register hold each element of an instruction's operands.
 *
 * All fragments have rank 2 (row, column) of one instruction; slots count elements in the order of
 * the instruction's registers, lowest bits of a 32-bit register first. Lanes are those of one warp,
 * of a warpgroup for wgmma.
 *
 * Sources: PTX ISA, "Matrix Fragments for mma" (one section a shape and type), "ldmatrix",
 * "stmatrix", "Register Fragments and Shared Memory Matrix Layouts" of wgmma, "Swizzling Modes" of
 * tensor copies.
 */
#ifndef TL_LAYOUT_ATOMS_H
#define TL_LAYOUT_ATOMS_H

#include "analyzer/layout/layout.h"

enum mma_operand { MMA_A, MMA_B, MMA_C };

/*
 * Operand of mma.m{M}n8k{K} (M 8 or 16): A is M x K, B is K x 8, C and D are M x 8. `elem_bits` of
 * A and B: 4, 8, 16, 32 (tf32), 64; of C it does not matter. K is 4 elements of 64 bits or a
 * multiple of 128 / elem_bits. NULL when there is no such shape (m8n8k4 of float16, which splits a
 * warp into quads, is not here).
 */
struct layout *atom_mma(struct arena *arena, enum mma_operand operand, int64_t m, int64_t k,
                        uint32_t elem_bits);

/*
 * Registers of ldmatrix and stmatrix .xN on 16-bit elements: (8 * n_matrices, 8), matrices below
 * each other; slot = 2 * matrix + half of the register. `trans`: the transposed form.
 */
struct layout *atom_ldmatrix(struct arena *arena, int64_t n_matrices, bool trans);
/* The lane that gives each row's address: (8 * n_matrices, 1). */
struct layout *atom_ldmatrix_rows(struct arena *arena, int64_t n_matrices);

/* wgmma.m64n{N}: the accumulator (64, N); N a multiple of 8 up to 256, else NULL. */
struct layout *atom_wgmma_accumulator(struct arena *arena, int64_t n);
/* A in registers: (64, K), K of 32 bytes; elem_bits 8, 16 or 32. */
struct layout *atom_wgmma_a(struct arena *arena, uint32_t elem_bits);
/*
 * A shared operand of wgmma whose last dimension is contiguous, in the swizzle of
 * `span_bytes` (0: none, 8 x 16-byte core matrices; 32, 64, 128): what TMA writes. NULL when the
 * contiguous extent is no multiple of the span.
 */
struct layout *atom_wgmma_shared(struct arena *arena, int64_t rows, int64_t columns,
                                 uint32_t elem_bits, int64_t span_bytes);

/* Alignment in bytes that a shared tile's base needs: the XOR acts on absolute addresses. */
int64_t atom_swizzle_alignment(int64_t span_bytes);

#endif
