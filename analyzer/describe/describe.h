/*
 * describe: what a compile found, as people and programs read it: the figures that are derived from
 * the records, and the document of `analyze --json`. The terminal form is the program's (cli/), the
 * document is the library's too.
 */
#ifndef TL_DESCRIBE_DESCRIBE_H
#define TL_DESCRIBE_DESCRIBE_H

#include "analyzer/compile.h"
#include "base/json.h"

/* Shared memory, registers and occupancy of a launch on a target; schedule and warp must be there.
 */
struct launch_budget {
	int64_t shared_bytes, registers_estimate;
	bool fits; /* shared memory of a block, threads, registers of a block */
	struct occupancy occupancy;
};
struct launch_budget describe_budget(const struct launch_result *launch,
                                     const struct target *target);

/*
 * The largest number of stages of a pipeline whose buffers still fit a block of the target, all
 * else as it is. 0: not even one; -1: the number does not matter, since nothing is copied ahead.
 */
int64_t describe_max_stages(const struct launch_result *launch, const struct pipeline *pipeline,
                            const struct target *target);

/* The solved layout, or row-major for a tensor in global memory with constant extents and no
 * strides of its own; NULL when there is none. */
const struct layout *describe_layout(const struct compile *compile, const struct buffer *buffer);
/* Register places of a fragment, over all threads of its block: those that hold no element. A loop
 * over 229 elements and 128 threads has 2 slots a thread, 256 places, 27 of them idle. */
struct describe_places {
	int64_t n, idle;
};
struct describe_places describe_places(const struct compile *compile, const struct buffer *buffer);
/* Bytes of one version in one block; -1 when an extent is symbolic. */
int64_t describe_bytes(const struct compile *compile, const struct buffer *buffer);
/* 1-based line of a span's begin in the kernel file; 0 when it has none. */
uint32_t describe_line(const struct compile *compile, struct span span);
/* The warp program's name of a workspace that the tool added; "" when it cannot be told. */
const char *describe_workspace(const struct launch_result *launch,
                               const struct shared_place *place);

/* "mma.m16n8k16", "wgmma.m64n128k16" */
void describe_instruction(struct buf *out, const struct gemm_plan *plan);
/* Why an access wastes wavefronts, in one sentence: what is moved, how its lanes meet in a bank;
 * NULL when there is no excess. */
const char *describe_cause(const struct compile *compile, const struct access_site *site);
/* What to do about an access with excess, in one sentence; NULL when nothing is known to help or
 * there is no excess. Of TileLang's code: the edit, what it leaves, and what the solver would. */
const char *describe_fix(const struct compile *compile, const struct launch_result *launch,
                         const struct access_site *site);

/* "copy", "gemm", ..., "parallel", "loop", "if": the word for a statement. */
const char *describe_stmt(const struct stmt *stmt);

/* describe_fix of TileLang's code. */
const char *describe_edit(const struct compile *compile, const struct launch_result *launch,
                          const struct access_site *site);

/* Counts over all launches, for a summary. */
struct describe_totals {
	int64_t wavefronts, ideal, excess; /* of the modelled accesses */
	uint32_t n_sites, n_with_excess, n_not_modelled;
	uint32_t n_proved, n_violated, n_not_proved;
};
struct describe_totals describe_totals(const struct compile *compile);

/*
 * What the code of one side, TileLang's or this tool's, asks of shared memory, and its predicted
 * cycles (banks/traffic.h): over all launches, each over its grid or, with `counted_grid` false
 * anywhere, over one block. shared_bytes is the largest of a launch.
 */
struct describe_side {
	bool is_known; /* it compiles */
	bool counted_grid;
	int64_t wavefronts, ideal, excess, shared_bytes;
	bool is_exact;    /* all wavefronts are; else the sums are of those that are */
	bool has_cycles;  /* everything that counts is modelled, at least as an interval */
	bool cycles_grid; /* over the grid: nothing that counts depends on data */
	double cycles, cycles_max;
	/* what the cycles are made of besides shared memory */
	int64_t global_instructions, global_sectors, shuffles, exchange_barriers;
};
/* Of a compile with options.parity that ran all passes: both sides of the same kernel. */
struct describe_savings {
	struct describe_side tilelang, own;
};
struct describe_savings describe_savings(const struct compile *parity);
/*
 * Cycles that are saved at least; NaN when one side is not known, or how often its loops run
 * depends on data: unknown counts taken as one do not compare where one side has peeled
 * iterations off.
 */
double describe_saved_cycles(const struct describe_savings *savings);

/*
 * The document's keys "file" to "properties" into the open object; what the passes did not reach is
 * an empty array. The caller writes "schema" and "version" before and "diagnostics" behind.
 */
void describe_json(struct json *json, const struct compile *compile);
/* The elements of "diagnostics": [...], into the open array. */
void describe_json_diagnostics(struct json *json, const struct diag_list *diags,
                               const struct source_set *sources);

#endif
