/*
 * profile: predicted beside measured, for each kernel line, and what that says.
 *
 * A site of the bank table and the machine instructions of its line are put together by instruction
 * and width. Sites of one line and instruction on several buffers (both operands of a gemm) cannot
 * be told apart in machine code, so they are compared as a group. Executions are shown, not
 * compared: the card also counts those in which no lane is active.
 */
#ifndef TL_PROFILER_PROFILE_H
#define TL_PROFILER_PROFILE_H

#include "analyzer/tile/target.h"
#include "db/record.h"
#include "profiler/collection.h"

enum agreement {
	AGREE, /* wavefronts and ideal are equal */
	DISAGREE,
	NOT_PREDICTED, /* the model gives an interval or nothing, or the machine code has an access that
	                  was not predicted */
	NOT_MEASURED,  /* no collection, or no machine instruction at this line */
	NOT_COUNTED,   /* the counter does not count this kind of access well (cp.async, wgmma, TMA) */
	N_AGREEMENTS
};
const char *agreement_text(
	enum agreement agreement); /* "yes", "NO", "not predicted", "not measured", "not counted" */

/* What is compared: sites of one launch, line and instruction. */
struct profile_group {
	uint32_t launch, line;
	const char *instruction;
	const char *buffers; /* "A_shared, B_shared" */
	int64_t first_site;  /* index into the run's sites; -1: only in the machine code */
	uint32_t n_sites;
	/* -1: not known. Sums over the sites, and over the machine instructions. */
	int64_t predicted_executions, predicted_wavefronts, predicted_ideal;
	uint32_t n_instructions;
	int64_t executions, wavefronts, ideal;
	enum agreement agreement;
};

struct profile_launch {
	int64_t registers, local_bytes, shared_bytes; /* -1: not measured */
	struct occupancy
		occupancy; /* by the registers that the compiler took; blocks_per_sm 0: not known */
	double achieved_occupancy; /* percent; NaN: not measured */
};

struct profile {
	const struct run_record *run;
	const struct collection *measured;
	vec_of(struct profile_group) groups; /* by launch, line, instruction */
	vec_of(struct profile_launch) launches;
	uint32_t n_of[N_AGREEMENTS];
	int64_t excess; /* measured, or predicted where nothing was measured */
	int64_t wavefronts;
	const char *verdict; /* one line: do predictions hold */
	const char *where;   /* one line: where wavefronts are wasted; NULL without excess */
	const char *limit;   /* one line: what limits the kernel; NULL without counters */
};

/* Attribution and verdict. `target` is the card's where it is known. */
struct profile *profile_make(struct arena *arena, const struct run_record *run,
                             const struct collection *measured, const struct target *target);
/* The measured values as rows of the run. */
void profile_record(struct arena *arena, const struct profile *profile, struct run_record *run);

#endif
