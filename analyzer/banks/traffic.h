/*
 * traffic: what a warp program asks of an SM's memory pipes, and the cycles that this predicts.
 *
 * One definition for the code of this tool and for that of TileLang, so that the two can be
 * compared; the solver's cost has the same terms and weights (solve_cost.c):
 *
 *     cycles = wavefronts + instructions          of shared memory
 *            + 4 x instructions + sectors         of global memory
 *            + 2 x shuffles
 *            + 40 / resident x barriers           of reductions and conversions, block by block
 *
 * summed over the grid. Barriers between the stages of a pipeline are the schedule's, whatever the
 * layouts, and are left out; so are arithmetic, tensor cores, and global accesses of one address
 * for all threads (scalars: bounds and indices).
 */
#ifndef TL_BANKS_TRAFFIC_H
#define TL_BANKS_TRAFFIC_H

#include "analyzer/banks/sites.h"
#include "analyzer/tile/target.h"

/* Cycles of an SM; throughput of sm_80 to sm_90, rounded to what ranks layouts rightly. */
#define CYCLES_GLOBAL_ISSUE 4.0 /* a warp's instruction with its address arithmetic */
#define CYCLES_SECTOR 1.0
#define CYCLES_SHUFFLE 2.0          /* with the operation on what it brings */
#define CYCLES_BARRIER_LATENCY 40.0 /* hidden by the blocks that share the SM */

/* Warp-level executions and what they move, over the grid where that is known, else in block 0. */
struct traffic {
	int64_t shared_instructions, shared_wavefronts;
	int64_t wavefronts_open; /* the wavefronts may be so many more: the model gave an interval */
	int64_t global_instructions, global_sectors; /* 32-byte sectors, each instruction by itself */
	int64_t shuffles;
	int64_t barriers;       /* around accesses to workspaces; warps that arrive, summed */
	int64_t n_not_modelled; /* instructions without a count: the sums are incomplete */
};

/* Of a program whose shared accesses were counted (access_table_count). */
void traffic_count(const struct warp_program *program, const struct access_table *table,
                   struct arena *arena, struct traffic *out);
/* Of the least wavefronts; the most is traffic->wavefronts_open more. */
double traffic_cycles(const struct traffic *traffic, const struct target *target,
                      int64_t n_threads);

#endif
