/*
 * The targets as one table. Limits: cuda_occupancy.h of CUDA 13.0 and the CUDA programming guide,
 * "Compute capabilities".
 */
#include "analyzer/tile/target.h"

#include <assert.h>
#include <string.h>

enum {
	KIB = 1024,
	RESERVED_BYTES = 1 * KIB, /* of each block's shared memory, for the system */
	SHARED_UNIT_BYTES = 128,  /* shared memory is allocated in these */
	REGISTER_UNIT = 256,      /* registers of a warp are allocated in these */
	N_SUBPARTITIONS = 4,      /* of an SM; a warp's registers come from one */
	LANES = 32,
};

/*
 * Ordered by compute capability. An "a" target (sm_90a) has the instructions that only that chip
 * has, wgmma and setmaxnreg among them (PTX, .target).
 */
static const struct target targets[] = {
	{ .name = "sm_80",
	  .compute = 80,
	  .shared_bytes_sm = 164 * KIB,
	  .shared_bytes_block = 163 * KIB,
	  .threads_sm = 2048,
	  .blocks_sm = 32,
	  .registers_sm = 65536,
	  .registers_thread_max = 255,
	  .has_cp_async = true,
	  .has_ldmatrix = true },
	{ .name = "sm_86",
	  .compute = 86,
	  .shared_bytes_sm = 100 * KIB,
	  .shared_bytes_block = 99 * KIB,
	  .threads_sm = 1536,
	  .blocks_sm = 16,
	  .registers_sm = 65536,
	  .registers_thread_max = 255,
	  .has_cp_async = true,
	  .has_ldmatrix = true },
	{ .name = "sm_89",
	  .compute = 89,
	  .shared_bytes_sm = 100 * KIB,
	  .shared_bytes_block = 99 * KIB,
	  .threads_sm = 1536,
	  .blocks_sm = 24,
	  .registers_sm = 65536,
	  .registers_thread_max = 255,
	  .has_cp_async = true,
	  .has_ldmatrix = true },
	{ .name = "sm_90a",
	  .compute = 90,
	  .shared_bytes_sm = 228 * KIB,
	  .shared_bytes_block = 227 * KIB,
	  .threads_sm = 2048,
	  .blocks_sm = 32,
	  .registers_sm = 65536,
	  .registers_thread_max = 255,
	  .has_cp_async = true,
	  .has_ldmatrix = true,
	  .has_stmatrix = true,
	  .has_wgmma = true,
	  .has_tma = true },
	{ .name = "sm_100",
	  .compute = 100,
	  .shared_bytes_sm = 228 * KIB,
	  .shared_bytes_block = 227 * KIB,
	  .threads_sm = 2048,
	  .blocks_sm = 32,
	  .registers_sm = 65536,
	  .registers_thread_max = 255,
	  .has_cp_async = true,
	  .has_ldmatrix = true,
	  .has_stmatrix = true,
	  .has_tma = true },
	{ .name = "sm_120",
	  .compute = 120,
	  .shared_bytes_sm = 100 * KIB,
	  .shared_bytes_block = 99 * KIB,
	  .threads_sm = 1536,
	  .blocks_sm = 24,
	  .registers_sm = 65536,
	  .registers_thread_max = 255,
	  .has_cp_async = true,
	  .has_ldmatrix = true,
	  .has_stmatrix = true,
	  .has_tma = true },
	{ .name = NULL },
};

const struct target *target_all(void)
{
	return targets;
}

/* sm_90 is taken for sm_90a: code of ours for that chip always uses its own instructions. */
const struct target *target_find(const char *name)
{
	if (strcmp(name, "sm_90") == 0)
		name = "sm_90a";
	for (const struct target *target = targets; target->name; target++)
		if (strcmp(target->name, name) == 0)
			return target;
	return NULL;
}

/* The word of reports and the data base. */
const char *occupancy_limiter_text(enum occupancy_limiter limiter)
{
	static const char *const texts[] = {
		[LIMIT_SHARED] = "shared",
		[LIMIT_REGISTERS] = "registers",
		[LIMIT_THREADS] = "threads",
		[LIMIT_BLOCKS] = "blocks",
	};

	return texts[limiter];
}

static int64_t round_up(int64_t value, int64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/*
 * Blocks whose registers fit an SM, as cudaOccMaxBlocksPerSMRegsLimit counts them: a warp's
 * registers are rounded up to whole units, and each of the four sub-partitions holds whole warps.
 */
static int64_t blocks_by_registers(const struct target *target, int64_t n_warps,
                                   int64_t registers_thread)
{
	int64_t warp_registers =
		round_up((registers_thread > 0 ? registers_thread : 1) * LANES, REGISTER_UNIT);
	int64_t warps_sm = target->registers_sm / N_SUBPARTITIONS / warp_registers * N_SUBPARTITIONS;

	if (registers_thread > target->registers_thread_max)
		return 0;
	if (warp_registers * round_up(n_warps, N_SUBPARTITIONS) > target->registers_sm)
		return 0;
	return warps_sm / n_warps;
}

/* Of the four limits the tightest counts. A block that needs more than it may have fits 0 times. */
int64_t target_thread_registers(const struct target *target, int64_t n_threads)
{
	int64_t n_warps = (n_threads + LANES - 1) / LANES;
	int64_t share = target->registers_sm / n_warps / 256 * 8;

	return share < target->registers_thread_max ? share : target->registers_thread_max;
}

struct occupancy target_occupancy(const struct target *target, int64_t n_threads,
                                  int64_t registers_thread, int64_t shared_bytes)
{
	int64_t n_warps = round_up(n_threads, LANES) / LANES;
	int64_t block_bytes = round_up(shared_bytes + RESERVED_BYTES, SHARED_UNIT_BYTES);
	/* In order of precedence: of equal limits the first is named. */
	const int64_t fits[] = {
		[LIMIT_SHARED] =
			shared_bytes > target->shared_bytes_block ? 0 : target->shared_bytes_sm / block_bytes,
		[LIMIT_REGISTERS] = blocks_by_registers(target, n_warps, registers_thread),
		[LIMIT_THREADS] = target->threads_sm / (n_warps * LANES),
		[LIMIT_BLOCKS] = target->blocks_sm,
	};
	struct occupancy occupancy = { .blocks_per_sm = fits[LIMIT_SHARED], .limiter = LIMIT_SHARED };

	assert(n_threads > 0 && shared_bytes >= 0);
	for (int limiter = LIMIT_REGISTERS; limiter <= LIMIT_BLOCKS; limiter++)
		if (fits[limiter] < occupancy.blocks_per_sm) {
			occupancy.blocks_per_sm = fits[limiter];
			occupancy.limiter = (enum occupancy_limiter)limiter;
		}
	occupancy.fraction =
		(double)(occupancy.blocks_per_sm * n_warps * LANES) / (double)target->threads_sm;
	return occupancy;
}
