/*
 * sites: the bank table: every shared access of a warp program, summed by kernel line.
 *
 * Executions are warp-level: an execution with no active lane counts 0. Sums run over the whole
 * grid, per class of equal (block, iteration): values of a variable that an access and its
 * predicates cannot tell apart are evaluated once and multiplied, never enumerated block by block.
 */
#ifndef TL_BANKS_SITES_H
#define TL_BANKS_SITES_H

#include "analyzer/banks/banks.h"
#include "codegen/lower/warp.h"

/* One row of "accesses": (line, buffer, instruction, bytes a thread). */
struct access_site {
	uint32_t line; /* of the kernel file; 0 unknown */
	struct span span;
	const struct wshared *shared;
	const char *buffer; /* name */
	/* "cp.async.16", "ldmatrix.x4", "ldmatrix.x4.trans", "ld.shared.16", "st.shared.4", "wgmma" */
	char instruction[32];
	int64_t bytes_per_thread;          /* ldmatrix.xN: 4 N */
	int64_t executions;                /* -1: more classes than are counted */
	int64_t wavefronts, ideal, excess; /* -1: not modelled */
	int64_t wavefronts_max; /* differs from wavefronts when the model gives an interval */
	int32_t ways;
	/*
	 * When excess > 0: the reason in words (which lanes meet in which bank on which elements'
	 * offsets), else NULL.
	 */
	const char *reason;
	int64_t meet_bytes; /* between the first two lanes that it names; 0: none, or in the source */
};

struct access_table {
	bool counted_grid;                /* false: of block 0, unknown counts taken as one */
	vec_of(struct access_site) sites; /* in program order, those that run */
};

/*
 * Complexity: classes of (variables that matter) x warps, not blocks. Conditions that cannot be
 * evaluated (symbols, scalar parameters, registers) are taken to hold; an address that cannot is
 * not modelled.
 */
void access_table_count(const struct warp_program *program, struct arena *arena,
                        struct access_table *table);

#endif
