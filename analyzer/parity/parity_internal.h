/*
 * parity_internal: what the files of the model share.
 *
 * parity.c          the driver: collect, infer, record the answer as a solution
 * collect.c         statements -> ops, accesses in TileLang's order of visiting
 * vector.c          the width of a loop's vector (src/transform/loop_vectorize.cc)
 * loop_rule.c       what a parallel loop infers (src/op/parallel.cc)
 * gemm_rule.c       instructions, warp grids, fragments (src/cuda/op/gemm.cc)
 * copy_rule.c       how a copy moves its data (src/cuda/op/copy_analysis.cc)
 * engine.c          levels, work list, components (src/transform/layout_inference)
 * schedule.c        stages, versions, places
 * All facts are those of TileLang 0.1.15.
 */
#ifndef TL_PARITY_PARITY_INTERNAL_H
#define TL_PARITY_PARITY_INTERNAL_H

#include "analyzer/parity/parity.h"
#include "analyzer/parity/pfrag.h"

/* buffer[index] in a loop body. */
struct paccess {
	const struct buffer *buffer;
	const struct expr *index[MAX_RANK];
	const struct expr *condition; /* under which it happens; NULL: always */
	bool is_store;
	bool is_atomic;
	struct span span;
	const struct stmt *stmt;
};

/* A fragment of a loop: one index for all its accesses. */
struct pfused {
	const struct buffer *buffer;
	const struct expr *const *index;
	bool is_read, is_write;
	bool is_const;        /* every index is a constant */
	bool is_plain;        /* indexed by exactly the loop's variables */
	bool is_free;         /* an index reads something else than the loop's variables */
	const int32_t *elems; /* element of each point; NULL: the point's own number */
};

/* A nest of parallel loops: T.Parallel, or what a copy becomes. */
struct ploop {
	const struct stmt *stmt;
	uint32_t rank;
	int64_t shape[MAX_RANK];
	const struct var *vars[MAX_RANK];
	int64_t n_points;
	int64_t coalesced_width;
	vec_of(struct paccess) accesses; /* all buffers, in the order of visiting */
	vec_of(struct pfused) fragments; /* in the order of the first access */
	vec_of(const struct expr *) conditions;
	vec_of(const struct expr *) calls; /* that have no vector form */
	int64_t cast_lanes;                /* 0: no cast; the fewest lanes of a 16-byte vector */
	bool many_statements;
	bool is_data_dependent;      /* a memory index reads memory */
	const struct var *inner_var; /* of the innermost loop */
	int64_t inner_extent;
	vec_of(const struct var *) serial_vars; /* loops inside */
	vec_of(const struct expr *) serial_extents;
	bool touches_memory, stores_memory, stores_fragment;
};

enum pop_kind {
	POP_LOOP, /* parallel nest */
	POP_COPY,
	POP_GEMM,
	POP_REDUCE,
	POP_SCAN,
	POP_ATOMIC, /* a tile's atomic: its loop is made late, it infers only a bulk source's layout */
	POP_OTHER,  /* infers nothing */
};

struct pcopy {
	bool is_explicit; /* T.tma_copy, T.async_copy: as written */
	bool is_tma_load; /* split off to the producer warps, or before the pipeline they feed */
	bool in_bounds;   /* provably */
	bool load_1d, store_1d, bulk_load, bulk_store;
	bool shared_is_whole; /* the region covers the shared buffer */
	bool is_cp_async;     /* of a pipelined loop, by the loop's own threads */
};

struct pop {
	enum pop_kind kind;
	const struct stmt *stmt;
	int64_t thread_min, n_threads;    /* that get there, by the conditions around it */
	struct ploop *loop;               /* POP_LOOP, POP_COPY, POP_ATOMIC */
	const struct buffer *bulk_source; /* POP_ATOMIC: shared tile that TMA reduces from; NULL none */
	struct pcopy copy;
	struct op_copy copy_op; /* POP_COPY: the regions, whichever way of copying was written */
	struct op_gemm gemm_op; /* POP_GEMM, likewise */
	struct gemm_plan gemm;
	vec_of(const struct buffer *) touched; /* fragments */
};

/* What an attempt knows. Indexed by buffer id and op number. */
struct pstate {
	struct pfrag **frag;          /* by buffer id */
	const struct layout **shared; /* by buffer id; NULL: row-major */
	struct pfrag **loop;          /* by op: its partition */
	bool *padded;                 /* by op: over-covers a ragged space, guarded */
};

/* Why an inference stopped. */
enum presult {
	P_OK,
	P_CONFLICT, /* an attempt dies; outside attempts TileLang rejects the kernel */
	P_FATAL,    /* TileLang rejects the kernel */
};

enum plevel { LEVEL_FREE, LEVEL_COMMON, LEVEL_STRICT };

struct pinfer {
	struct tile_program *program;
	const struct launch *launch;
	const struct target *target;
	struct cx *cx;
	struct arena *arena;
	struct expr_pool *pool;
	int64_t n_threads; /* of the op at hand */
	bool is_split;     /* producer warps in front */
	const struct stmt *split_loop;
	vec_of(struct pop *) ops;
	bool *floating; /* by buffer id: read or written outside any op */
	struct pstate state;
	bool *strict;    /* by buffer id: known after the strict level */
	bool *uses;      /* by buffer id: touched by an op */
	int64_t *values; /* of all variables, for evaluation */
	uint32_t n_values;
	const struct buffer *culprit; /* of the last conflict */
	const struct stmt *culprit_stmt;
	const char *reason;
};

/* ---- collect.c ---- */

void parity_collect(struct pinfer *infer);
/* Element of each point for fragment accesses. */
void parity_view_elems(struct pinfer *infer, struct ploop *loop, struct pfused *use);
/* Values of all variables at zero or their least value. */
int64_t *parity_values(struct pinfer *infer);

/* ---- copy_rule.c ---- */

/* A setting that the file gives to TileLang's compiler ("tl.disable_tma_lower"). */
bool parity_config(const struct pinfer *infer, const char *name);
/* Facts about the copy that do not depend on layouts. */
void parity_copy_facts(struct pinfer *infer, struct pop *op);
/* Marks the copies that producer warps take over on targets with TMA. */
void parity_split(struct pinfer *infer);

/* ---- vector.c ---- */

/* Of a nest as the partition rule sees it (fused where TileLang fuses), and of a loop as it is. */
int64_t parity_vector(struct pinfer *infer, const struct ploop *loop);
int64_t parity_loop_vector(struct pinfer *infer, const struct ploop *loop);
/* The loop with variables replaced in all its accesses and conditions. */
struct ploop *parity_rewrite(struct pinfer *infer, const struct ploop *loop,
                             const struct expr_subst *subst);

/* ---- loop_rule.c ---- */

struct pupdate {
	const struct buffer *buffer;
	struct pfrag *frag;
	const struct layout *shared;
};
struct pupdates {
	uint32_t n;
	struct pupdate items[64];
};
enum presult parity_loop(struct pinfer *infer, uint32_t op, enum plevel level,
                         struct pupdates *updates);
/* The partition that the generated code has, when all layouts are known; NULL: none fits. */
struct pfrag *parity_final_partition(struct pinfer *infer, uint32_t op);

/* ---- gemm_rule.c ---- */

/* Instruction and warp grid; P_FATAL when there is none. */
enum presult parity_gemm(struct pinfer *infer, uint32_t op, enum plevel level,
                         struct pupdates *updates);
const struct layout *parity_swizzle(struct arena *arena, const struct buffer *buffer,
                                    int64_t span_bytes);
/* TileLang's choice for an operand of mma.sync, and for a tile that TMA stores. */
const struct layout *parity_mma_shared(struct arena *arena, const struct buffer *buffer);
const struct layout *parity_tma_store_shared(struct arena *arena, const struct buffer *buffer);
const struct layout *parity_tma_load_shared(struct arena *arena, const struct buffer *buffer);

/* ---- schedule.c ---- */

/* Pipelines, versions and places under the solution. */
struct schedule *parity_schedule(struct pinfer *infer, const struct solution *solution);

/* ---- engine.c ---- */

/* Runs all levels; infer->state is the answer when it is P_OK. */
enum presult parity_engine(struct pinfer *infer);
/* Remembers what failed and gives `result`. */
enum presult parity_fail(struct pinfer *infer, enum presult result, const struct stmt *stmt,
                         const struct buffer *buffer, const char *reason);

#endif
