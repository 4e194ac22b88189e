/*
 * banks: how many wavefronts a warp's shared-memory access takes.
 *
 * 32 banks of 4 bytes. An access is served in phases of 32, 16 or 8 lanes for at most 4, 8 or 16
 * bytes a lane (ldmatrix and stmatrix: 8 row addresses a matrix); a phase takes as many wavefronts
 * as the largest number of distinct words that meet in one bank. On top of that: 8-byte loads
 * merge their two phases, and 16-byte loads those of a half warp, when the lanes pair up on equal
 * addresses (docs/banks.md has the rules and what they were measured on). Exact against
 * tests/data/bank_wavefronts_h200*.csv.gz, except 16-byte loads with partial masks (an interval)
 * and what the data does not cover.
 */
#ifndef TL_BANKS_BANKS_H
#define TL_BANKS_BANKS_H

#include <stdbool.h>
#include <stdint.h>

enum bank_op {
	BANK_LD, /* ld.shared of `bytes` 1, 2, 4, 8, 16 */
	BANK_ST,
	BANK_LDMATRIX, /* `n_matrices` 1, 2, 4; .trans has the same rule */
	BANK_STMATRIX,
	BANK_CP_ASYNC, /* shared side of cp.async, bytes 4, 8 (through L1), 16 (past it) */
	BANK_ATOMIC,   /* 32-bit atom/red.shared */
};

struct bank_access {
	enum bank_op op;
	uint32_t bytes;      /* a lane; for the matrix ops a row's 16 */
	uint32_t n_matrices; /* matrix ops only */
	uint32_t mask;       /* active lanes, lane 0 the lowest bit */
	int64_t offsets[32]; /* byte offsets from a 128-byte aligned base; only active lanes count */
	/* cp.async through L1: where each lane reads in global memory, in bytes from a 128-byte aligned
	   address; NULL: lane l reads at l * bytes. */
	const int64_t *sources;
};

struct bank_result {
	/* wavefronts; equal when the model is exact; both -1 when it is not modelled */
	int32_t min, max;
	/*
	 * min(wavefronts, max(1, ceil(active lanes x bytes / 128))); N for matrix ops; 0 with no
	 * active lane
	 */
	int32_t ideal;
	int32_t ways; /* largest number of words that meet in one bank in any phase */
	/*
	 * When ways > 1: a worst phase's bank and two lanes that meet in it on different words
	 * (atomics: lanes).
	 */
	int32_t bank, lane_a, lane_b;
	bool in_source; /* that phase reads global memory through L1 (cp.async of 4 and 8 bytes) */
};

/* Of one warp-level access; all zero when no lane is active. */
struct bank_result bank_wavefronts(const struct bank_access *access);

/*
 * "ld128", "ldsm4t", "cpasync16", ... of the `banks` verb; false when unknown or bytes do not fit
 * it.
 */
bool bank_op_parse(const char *text, uint32_t access_bytes, struct bank_access *access);

#endif
