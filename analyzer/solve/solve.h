/*
 * solve: layouts and partitions of a launch.
 *
 * Variables: each buffer's layout; each op's instruction, warp grid, loop partition and vector
 * width. Constraints come from ops, annotations and targets, each with the span of the line that
 * demands it. The answer is a solution record with one entry a buffer and one plan a statement, or
 * a conflict that names the constraints that cannot hold together. Cost: exact wavefronts (banks.h)
 * of the accesses that access.h derives, weighted by how often they run, then global sectors,
 * instructions and registers.
 */
#ifndef TL_SOLVE_SOLVE_H
#define TL_SOLVE_SOLVE_H

#include "analyzer/layout/layout.h"
#include "analyzer/layout/tma.h"
#include "analyzer/tile/tile.h"
#include "analyzer/tile/target.h"
#include "codegen/lower/warp.h"

enum constraint_kind {
	CONSTRAINT_ACCUMULATOR, /* a gemm's instruction fixes its accumulator */
	CONSTRAINT_OPERAND,     /* a gemm reads its operand in this form */
	CONSTRAINT_LOOP,        /* the elements that one iteration touches have one owner */
	CONSTRAINT_COPY, /* a copy between global/shared and a fragment prefers wide, coalesced accesses
	                  */
	CONSTRAINT_REDUCE,     /* the result lives where the reduced row's threads are */
	CONSTRAINT_SHARED,     /* all readers and writers of a shared buffer */
	CONSTRAINT_BULK,       /* a bulk copy can fill or read only some layouts */
	CONSTRAINT_ANNOTATION, /* T.annotate_layout */
};

struct constraint {
	uint32_t id;
	enum constraint_kind kind;
	const struct stmt *stmt;
	const struct buffer *buffer;
	struct span span;
	const struct layout *layout; /* what it demands; NULL when it only relates buffers */
	const char
		*text; /* one line for people: "gemm: C is the accumulator of mma.m16n8k16, 2 x 2 warps" */
};

/* A layout that was weighed for a buffer. */
struct candidate {
	const struct layout *layout;
	int64_t wavefronts,
		ideal; /* of all accesses of the buffer in one block, weighted by executions */
	/* Cycles a block, the unit in which candidates are compared: of the buffer's accesses; of the
	 * whole block for the buffer of solve_options.why, with all else chosen anew. */
	double cost;
	const char
		*edit; /* what gives it, where a gemm decides: another policy; NULL: T.annotate_layout */
};

struct buffer_solution {
	const struct buffer *buffer;
	const struct layout *layout;       /* NULL: the buffer is not used */
	const struct constraint *fixed_by; /* the constraint that decided */
	/* A fragment: the one whose layout that constraint carried over; NULL: it started here. */
	const struct buffer *follows;
	vec_of(struct candidate) candidates; /* the chosen one first, then by cost; shared buffers */
};

/* How a copy moves its data. */
enum copy_kind {
	COPY_LOOP,     /* through registers: load and store of each thread's elements */
	COPY_CP_ASYNC, /* global to shared, cp.async */
	COPY_STAGED,   /* global to shared through registers, where alignment forbids cp.async: narrow
	                  loads, wide stores */
};

/* The partition of an iteration space: a fragment layout over the loop's extents. */
struct loop_plan {
	const struct layout *
		layout; /* rank = number of loop dimensions; slot digits of stride 1 first are the vector */
	int64_t vector_elems; /* consecutive slots that are consecutive along the last dimension */
};

struct copy_plan {
	enum copy_kind kind;
	struct loop_plan
		loop; /* over dst's extents without its leading ones of extent 1: see access.h copy_space */
	int64_t bytes; /* a thread and instruction on the global side: 2, 4, 8, 16 */
};

struct gemm_plan {
	enum mma_shape shape;
	int64_t m, n, k;
	int64_t warps_m, warps_n; /* product = warps of the block */
	int64_t wgmma_n; /* columns of a warpgroup instruction (wgmma.m64nN); 0: mma.sync, `shape` */
	bool a_is_fragment, b_is_fragment;
	const struct layout *c; /* accumulator */
};

/* How a fragment gets from one layout to another. */
enum conversion_kind {
	CONVERT_REGISTERS, /* every thread has what it needs, in other registers */
	CONVERT_SHUFFLE,   /* every warp has what it needs: rounds of shuffles */
	CONVERT_SHARED,    /* stored to a workspace in shared memory, a barrier, loaded again */
};

/* A fragment that its statement touches in another layout than it lives in. */
struct conversion {
	enum conversion_kind kind;
	const struct buffer *buffer;
	const struct layout *from, *to;
	bool is_after; /* done after the statement, which leaves the fragment as `from`; else before */
	const struct layout *workspace; /* CONVERT_SHARED: the tile in shared memory */
	int64_t workspace_bytes;
	int64_t wavefronts, ideal; /* stores and loads of one block, once */
	int64_t n_barriers;
	int64_t n_rounds, n_sets; /* CONVERT_SHUFFLE: shuffles and moves of a warp, once */
	double cost;              /* cycles a block, once */
};

/*
 * T.reduce: each thread reduces its own slots, then lanes by xor shuffles, then what is left
 * through shared memory (access_reduce_split says which threads how). T.finalize_reducer: the same,
 * where `source` has the replicas of the reducer as one more dimension.
 */
struct reduce_plan {
	const struct layout *source, *result; /* result = layout_reduce(source), replicas included */
	int64_t dim;                          /* of `source` */
	int64_t lane_mask_bits; /* xor masks of the shuffles, or'ed (bit b set: mask 1 << b) */
	int64_t n_parts;        /* parts of one result that meet in shared memory; 1: none needed */
	int64_t workspace_bytes;
	/* Shuffles name lanes that the block does not have: only a row's first lane has all of it. */
	bool is_ragged;
};

/* T.cumsum and its kin: source and result live in this layout, which is also the partition. */
struct scan_plan {
	const struct layout *layout;
	int64_t workspace_bytes;
};

/* Consecutive threads of a block. */
struct thread_range {
	int64_t first, n;
};

/* One of the branches of an `if`. */
struct branch_taken {
	const struct expr *condition;
	bool holds;
};

/*
 * Narrows `range` to its threads that take the branch. False, and nothing changes, when the
 * condition is about more than thread numbers, or the threads are not a run of whole warps.
 */
bool thread_range_narrow(const struct tile_program *program, const struct launch *launch,
                         const struct branch_taken *branch, struct thread_range *range);

/* T.tma_copy: by which boxes, and which dimension of the tensor each of a box's is. */
struct tma_plan {
	bool is_load; /* from global to shared memory */
	struct tma_box box;
	int64_t bytes; /* of all boxes */
};

struct stmt_plan {
	const struct stmt *stmt;
	bool has_plan;
	struct thread_range threads; /* that do it; threads of layouts count from its first */
	union {
		struct loop_plan loop; /* parallel loops and fill */
		struct copy_plan copy;
		struct gemm_plan gemm;
		struct reduce_plan reduce; /* and finalize_reducer */
		struct scan_plan scan;
		struct tma_plan tma;
	} as;
	vec_of(struct conversion) conversions; /* in this order, before and after the statement */
};
/* "registers", "shuffle", "shared". */
const char *conversion_kind_text(enum conversion_kind kind);
/* The statement's first conversion of the buffer; NULL: it is touched where it lives. */
const struct conversion *plan_conversion(const struct stmt_plan *plan, const struct buffer *buffer);
/* The layout in which a converted buffer is while the statement runs; NULL: the one in which it
 * lives. */
const struct layout *plan_layout(const struct stmt_plan *plan, const struct buffer *buffer);
/* How mma.sync wants operand `which` (0: A, 1: B) of the gemm when it comes from registers. */
const struct layout *gemm_operand_layout(struct arena *arena, const struct op_gemm *gemm,
                                         const struct gemm_plan *plan, int which);

enum solve_status { SOLVE_OPTIMAL, SOLVE_BEST_FOUND, SOLVE_CONFLICT };

struct solution {
	struct tile_program *program;
	const struct launch *launch;
	const struct target *target;
	enum solve_status status;
	/* Cycles a block; no combination of the partitions and shared layouts that were candidates
	 * costs less than `bound`; equal when optimal. */
	double cost, bound;
	bool is_partial; /* more partitions than the limits let in: `bound` is of those looked at, and
	                    nothing is called optimal */
	uint64_t n_visited;              /* search nodes */
	struct buffer_solution *buffers; /* indexed by buffer id, program->buffers.n entries */
	struct stmt_plan *plans;         /* indexed by statement id, program->n_stmts entries */
	vec_of(struct constraint *) constraints;
	vec_of(const struct constraint *)
		conflict; /* SOLVE_CONFLICT: a minimal set that cannot hold together */
};

struct solve_options {
	/* Work of the search, counted so that it does not depend on the machine, in units that take
	 * about a millisecond (solve_work.c); 0: the default of 50. */
	double budget_ms;
	bool strict;     /* no conversions */
	const char *why; /* a buffer of which all candidates are recorded; NULL: none */
};

/*
 * Solves one launch, in the form that tile_stage gives it (solution->launch). NULL or status
 * SOLVE_CONFLICT with diagnostics (E04..) that explain.
 */
struct solution *solve_launch(struct tile_program *program, const struct launch *launch,
                              const struct target *target, const struct solve_options *options);
/* Every buffer and statement has what its kind needs; false with diagnostics. */
bool solution_verify(const struct solution *solution);
/* The form of `emit --stage=solution`. */
void solution_print(struct buf *out, const struct solution *solution);

#endif
