/*
 * target: what a GPU architecture offers. Limits from CUDA 13.0's cuda_occupancy.h and the CUDA
 * programming guide.
 */
#ifndef TL_TILE_TARGET_H
#define TL_TILE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

struct target {
	const char *name; /* "sm_80" */
	int compute;      /* 80, 86, 89, 90, 100, 120 */
	int64_t shared_bytes_sm,
		shared_bytes_block; /* what a block may use; 1 KiB of each block is reserved on top */
	int64_t threads_sm, blocks_sm;
	int64_t registers_sm;         /* 65,536 */
	int64_t registers_thread_max; /* 255 */
	bool has_cp_async, has_ldmatrix, has_stmatrix, has_wgmma, has_tma;
};

/* NULL when unknown; `sm_90` means sm_90a. */
const struct target *target_find(const char *name);
/* All targets, ended by one with name NULL. */
const struct target *target_all(void);

/* Occupancy of a kernel: blocks that fit an SM and what limits them. Registers are allocated by
 * warp in units of 256. */
enum occupancy_limiter { LIMIT_SHARED, LIMIT_REGISTERS, LIMIT_THREADS, LIMIT_BLOCKS };
struct occupancy {
	int64_t blocks_per_sm; /* 0: does not fit at all */
	double fraction;       /* resident threads / threads_sm */
	enum occupancy_limiter limiter;
};
const char *occupancy_limiter_text(
	enum occupancy_limiter limiter); /* "shared", "registers", "threads", "blocks" */
/* Registers a thread of a block can have: the target's limit, and its share of the block's register
 * file in steps of 8 (256 a warp). */
int64_t target_thread_registers(const struct target *target, int64_t n_threads);
struct occupancy target_occupancy(const struct target *target, int64_t n_threads,
                                  int64_t registers_thread, int64_t shared_bytes);

#endif
