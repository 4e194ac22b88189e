/* target: limits by name, and occupancy against figures worked out by hand from cuda_occupancy.h's
 * rules. */
#include "tests/unit/check.h"

#include "analyzer/tile/target.h"

/*
 * Every target by its name; the system's kibibyte is missing from a block's memory on all of them;
 * and one limit that differs from its neighbours' (sm_86, 16 blocks).
 */
static void test_names(struct check *check)
{
	uint32_t n = 0;

	CHECK(check, target_find("sm_90") == target_find("sm_90a"));
	CHECK(check, target_find("sm_10") == NULL);
	CHECK(check, target_find("") == NULL);
	for (const struct target *target = target_all(); target->name; target++, n++) {
		CHECK(check, target_find(target->name) == target);
		CHECK_INT(check, target->shared_bytes_sm - target->shared_bytes_block, 1024);
		CHECK(check, !target->has_wgmma || target->has_tma);
	}
	CHECK_INT(check, n, 6);
	CHECK_INT(check, target_find("sm_86")->blocks_sm, 16);
}

/*
 * Each limit in turn is the tightest, by the arithmetic that stands beside the row; then blocks
 * that do not fit at all.
 */
static void test_occupancy(struct check *check)
{
	const struct target *a100 = target_find("sm_80"), *ada = target_find("sm_89");
	struct occupancy o;

	/* 128 x 128 x 64 float16 in three stages: 96 KiB and its reserved KiB fit 164 KiB once. */
	o = target_occupancy(a100, 128, 200, 96 * 1024);
	CHECK_INT(check, o.blocks_per_sm, 1);
	CHECK_INT(check, o.limiter, LIMIT_SHARED);
	CHECK(check, o.fraction > 0.0624 && o.fraction < 0.0626);
	/* 33 registers are 1056 a warp, allocated as 1280: 12 warps a sub-partition, 48 in all, 12
	 * blocks of 4. */
	o = target_occupancy(a100, 128, 33, 0);
	CHECK_INT(check, o.blocks_per_sm, 12);
	CHECK_INT(check, o.limiter, LIMIT_REGISTERS);
	/* 104 registers are 3328 a warp: 4 a sub-partition, 16 warps, not 65536 / 3328 = 19; three
	 * blocks of 5. */
	o = target_occupancy(a100, 160, 104, 0);
	CHECK_INT(check, o.blocks_per_sm, 3);
	o = target_occupancy(a100, 1024, 16, 0);
	CHECK_INT(check, o.blocks_per_sm, 2);
	CHECK_INT(check, o.limiter, LIMIT_THREADS);
	o = target_occupancy(ada, 32, 16, 0);
	CHECK_INT(check, o.blocks_per_sm, 24);
	CHECK_INT(check, o.limiter, LIMIT_BLOCKS);
	CHECK_TEXT(check, occupancy_limiter_text(o.limiter), "blocks");
	o = target_occupancy(ada, 128, 32, 99 * 1024 + 1);
	CHECK_INT(check, o.blocks_per_sm, 0);
	CHECK_INT(check, o.limiter, LIMIT_SHARED);
	o = target_occupancy(ada, 1024, 128, 0);
	CHECK_INT(check, o.blocks_per_sm, 0);
	o = target_occupancy(a100, 1024, 64, 0);
	CHECK_INT(check, o.blocks_per_sm, 1);
}

int main(void)
{
	struct check check = { 0 };

	test_names(&check);
	test_occupancy(&check);
	return check_end(&check);
}
