/*
 * sim: runs a warp program on the CPU.
 *
 * Blocks run one after another; inside a block all threads go through the program in step, with a
 * mask of those that take part. Registers hold the bits of their types, so roundings are those of
 * the machine; cp.async lands at the wait that covers its group and not before. What no run on a
 * GPU promises to show is reported each time: accesses out of bounds or misaligned, values that
 * nothing wrote, races (two threads on one byte of shared memory between two barriers, one of them
 * writing; warps, lanes of a warp and copies in flight are not ordered otherwise), barriers that
 * not all threads reach, warp instructions without the whole warp. Shared-memory wavefronts are
 * counted by the bank model for each execution.
 */
#ifndef TL_SIM_SIM_H
#define TL_SIM_SIM_H

#include "codegen/lower/warp.h"
#include "sim/tensors.h"

enum sim_finding_kind {
	SIM_OUT_OF_BOUNDS,
	SIM_MISALIGNED,
	SIM_UNINITIALISED,
	SIM_SHARED_RACE,
	SIM_GLOBAL_RACE,  /* two threads, different values or an unordered read */
	SIM_BARRIER,      /* not all threads of the block reach it */
	SIM_PARTIAL_WARP, /* a warp instruction without all of its lanes */
	SIM_UNDEFINED,    /* division by zero, a builtin that is not modelled */
	SIM_STEP_LIMIT,
	N_SIM_FINDING_KINDS
};
const char *sim_finding_text(enum sim_finding_kind kind); /* "race in shared memory" */

/* A finding, the first of its kind at its instruction (and at the other one, in races). */
struct sim_finding {
	enum sim_finding_kind kind;
	uint32_t node; /* id of the instruction */
	struct span span;
	struct span other_span; /* of the instruction that it races with; file 0: none */
	int64_t block[3];
	int32_t thread;
	const char *iteration; /* "ko=3, i=0" of the loops around; "" outside loops */
	const char *text;      /* one sentence: who, which byte or element, against whom */
	uint64_t n;            /* how often it happened */
};

/* Warp-level executions of an instruction's shared access; wavefronts_max as in bank_result. */
struct sim_access {
	int64_t executions, wavefronts, wavefronts_max, ideal;
};

enum { SIM_MAX_FINDINGS = 20 };

struct sim_result {
	vec_of(struct sim_finding) findings; /* at most SIM_MAX_FINDINGS, in the order found */
	uint64_t n_findings;                 /* all, repetitions included */
	struct sim_access *accesses;         /* by node id, program->n_nodes entries */
	uint64_t n_steps;                    /* thread-level instructions */
	int64_t n_blocks, n_blocks_run;
	bool finished; /* false: the step limit ended it */
};

struct sim_options {
	const int64_t *blocks; /* linear numbers (x fastest) of the blocks to run; NULL: all */
	int64_t n_blocks;
	uint64_t max_steps; /* 0: 20 thousand million */
};

/*
 * Runs a verified program on `tensors` (opened for its parameters), which it changes. Findings do
 * not stop it: an access out of bounds is left out. False with E0651 when the program cannot be run
 * at all (more than 1024 threads, a grid or shared memory of no usable size). Memory for the result
 * comes from the context's arena.
 */
bool sim_run(const struct warp_program *program, struct tensor_set *tensors,
             const struct sim_options *options, struct sim_result *result);

/* Reports the findings as diagnostics E0652..E0658, with the other side of a race as a note. */
void sim_report(struct cx *cx, const struct sim_result *result);

/* ---- fragments ---- */

enum mma_operand { MMA_A, MMA_B, MMA_D };
struct mma_element {
	int row, column;
};
/*
 * The matrix element that `slot` of `lane` holds. PTX ISA, figures "mma fragment layout" of
 * m16n8k8, m16n8k16 and m16n8k32.
 */
struct mma_element mma_fragment(enum mma_shape shape, enum mma_operand operand, int lane, int slot);

#endif
