/*
 * emit: the shared-memory accesses of TileLang's generated code, as a warp program that is only
 * counted: loops, conditions and the instructions that touch shared memory, with their addresses.
 */
#ifndef TL_PARITY_EMIT_H
#define TL_PARITY_EMIT_H

#include "analyzer/parity/parity_internal.h"
#include "codegen/lower/warp.h"

/* Operand reads of wgmma are counted by a marker: one execution a warp and instruction. */
struct marker {
	const struct wshared *shared;
	const struct buffer *buffer;
	int64_t bytes; /* of the operand that one instruction of a warpgroup reads */
};

/* What was stored to or read from shared memory since the last barrier. */
struct touch {
	const struct buffer *buffer;
	bool is_write;
	int16_t *owner;       /* by element: the thread that touched it, -1 none, -2 several */
	struct wblock *block; /* where a store's instructions are: nodes first .. last - 1 */
	uint32_t first, last;
};

struct emitter {
	struct pinfer *infer;
	struct schedule *schedule; /* gets the workspaces */
	struct warp_program *warp;
	struct wblock *block;       /* where instructions go */
	struct wshared **shared_of; /* by buffer id */
	struct expr_subst subst;    /* tile variables -> the warp program's */
	const struct assumed_data *assumed;
	/* every access that the kernel writes, to global memory too, whatever the compiler keeps */
	bool as_written;
	int64_t thread_min;
	const struct expr *thread; /* number in the range of threads that run the op */
	struct span span;
	vec_of(struct marker) markers;
	vec_of(struct marker) bulks;  /* likewise tiles that TMA moves; as_written only */
	vec_of(struct touch) touches; /* since the last barrier */
	uint32_t n_barriers;
	bool *waits;           /* by statement id: a barrier stands in front of it */
	struct map workspaces; /* statement id -> struct wshared * */
	uint32_t n_rehearsals; /* loops around whose body is only walked to see what it leaves behind */
};

/* All threads meet: nothing is kept in registers across it. */
static inline void emit_barrier(struct emitter *emitter)
{
	emitter->touches.n = 0;
	emitter->n_barriers++;
}

/* ---- emit.c ---- */

const struct expr *emit_expr(struct emitter *emitter, const struct expr *e);
/* Opens a loop; gives the block to go back to. */
struct wblock *emit_open(struct emitter *emitter, const struct var *var, const struct expr *extent);
struct wblock *emit_open_new(struct emitter *emitter, int64_t extent, const struct var **var);
const struct wshared *emit_shared(struct emitter *emitter, const struct buffer *buffer);
const struct wshared *emit_workspace(struct emitter *emitter, const char *name, struct dtype type);
/* A load or store of `bytes` (split where a lane would move more than 16). */
struct emit_access {
	const struct wshared *shared; /* NULL: in global memory */
	const struct buffer *global;
	const struct expr *offset; /* bytes */
	const struct expr *predicate;
	int64_t bytes;
	bool is_store;
	/* a store to shared memory of what is read there, in bytes: by cp.async; NULL: no such */
	const struct buffer *source;
	const struct expr *source_offset;
	const struct expr *source_predicate;
};
void emit_access(struct emitter *emitter, const struct emit_access *access);
void emit_matrix(struct emitter *emitter, const struct emit_access *access, int64_t n_matrices,
                 bool trans);
/* Byte offset of buffer[index] in shared memory by the layout that was inferred. */
const struct expr *emit_offset(struct emitter *emitter, const struct buffer *buffer,
                               const struct expr *const *index);
/* The store's instructions run only where the condition holds. */
void emit_guard_nodes(struct emitter *emitter, const struct touch *touch,
                      const struct expr *condition);
/* table[thread * n + at] */
const struct expr *emit_table(struct emitter *emitter, const int64_t *values, int64_t n,
                              const struct expr *at);

/* ---- emit_loop.c ---- */

/* The shared accesses of a partitioned loop. */
void emit_partitioned(struct emitter *emitter, uint32_t op);

/* ---- emit_ops.c ---- */

/* Operand reads, the exchanges between warps, and the shared side of copies. */
void emit_gemm(struct emitter *emitter, const struct pop *op);
void emit_reduce(struct emitter *emitter, const struct pop *op);
void emit_copy(struct emitter *emitter, uint32_t op);
/* Does a group of threads that AllReduce lets meet hold each element of a row exactly once? */
bool emit_counts_once(const struct pfrag *source, uint32_t dim);

#endif
