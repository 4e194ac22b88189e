/*
 * Wavefronts of tile accesses under a layout, and the bound that holds under every layout.
 *
 * A lane's slots form instructions of W bytes when they fall into aligned blocks of W bytes, the
 * same slots for every lane and step (registers are named at compile time, so their order inside a
 * block does not matter). The widest W that works is taken.
 */
#include "analyzer/layout/swizzle_internal.h"

#include <assert.h>
#include <string.h>

int swizzle_log2(int64_t value)
{
	return value > 0 && (value & (value - 1)) == 0 ? __builtin_ctzll((uint64_t)value) : -1;
}

int64_t swizzle_n_elems(const struct swizzle_problem *problem)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < problem->rank; d++)
		n *= problem->shape[d];
	return n;
}

void swizzle_fill_offsets(const struct layout *layout, int32_t *out)
{
	int64_t index[MAX_RANK] = { 0 };

	do
		*out++ = (int32_t)layout_at(layout, index, 0).offset;
	while (layout_next_index(layout, index));
}

static bool is_matrix_op(const struct tile_access *access)
{
	return access->op == BANK_LDMATRIX || access->op == BANK_STMATRIX;
}

/* Slots of one (step, lane). */
static const int32_t *lane_elems(const struct tile_access *access, int64_t step, uint32_t lane)
{
	return access->elems + ((size_t)step * SWIZZLE_LANES + lane) * access->n_slots;
}

/* The slots of an instruction that has slot `first`: groups[slot] = number of its instruction. */
struct grouping {
	uint32_t n_groups;
	uint8_t group[SWIZZLE_MAX_SLOTS];
	uint8_t first[SWIZZLE_MAX_SLOTS]; /* by group: one of its slots */
};

/* By the blocks in which one lane's elements lie; false when a block is not full. */
static bool group_lane(const struct tile_access *access, const int32_t *elems,
                       const int32_t *offsets, uint32_t shift, struct grouping *out)
{
	int32_t blocks[SWIZZLE_MAX_SLOTS];
	uint32_t sizes[SWIZZLE_MAX_SLOTS];

	out->n_groups = 0;
	for (uint32_t s = 0; s < access->n_slots; s++) {
		int32_t block = offsets[elems[s]] >> shift;
		uint32_t g = 0;

		while (g < out->n_groups && blocks[g] != block)
			g++;
		if (g == out->n_groups) {
			blocks[g] = block;
			sizes[g] = 0;
			out->first[out->n_groups++] = (uint8_t)s;
		}
		sizes[g]++;
		out->group[s] = (uint8_t)g;
	}
	for (uint32_t g = 0; g < out->n_groups; g++)
		if (sizes[g] * out->n_groups != access->n_slots)
			return false;
	return true;
}

/* Every lane of every step has the same grouping. */
static bool grouping_holds(const struct tile_access *access, const int32_t *offsets, uint32_t shift,
                           int64_t n_steps, const struct grouping *grouping)
{
	for (int64_t i = 0; i < n_steps * SWIZZLE_LANES; i++) {
		const int32_t *elems = access->elems + (size_t)i * access->n_slots;

		if (elems[0] < 0)
			continue;
		for (uint32_t s = 0; s < access->n_slots; s++) {
			uint32_t first = grouping->first[grouping->group[s]];

			if (offsets[elems[s]] >> shift != offsets[elems[first]] >> shift)
				return false;
		}
	}
	return true;
}

static const int32_t *first_active(const struct tile_access *access)
{
	for (int64_t i = 0; i < access->n_steps * SWIZZLE_LANES; i++)
		if (access->elems[(size_t)i * access->n_slots] >= 0)
			return access->elems + (size_t)i * access->n_slots;
	return NULL;
}

/* Instructions of `bytes` a lane: the grouping, or false. */
static bool group_slots(const struct swizzle_problem *problem, const struct tile_access *access,
                        const struct offset_table *table, uint32_t bytes, struct grouping *out)
{
	uint32_t per_group = bytes * 8 / problem->elem_bits;
	const int32_t *elems = first_active(access);

	if (per_group == 0 || access->n_slots % per_group != 0)
		return false;
	if (!elems)
		return true;
	if (!group_lane(access, elems, table->offsets, (uint32_t)swizzle_log2(bytes), out) ||
	    out->n_groups != access->n_slots / per_group)
		return false;
	return per_group == 1 || grouping_holds(access, table->offsets, (uint32_t)swizzle_log2(bytes),
	                                        access->n_steps, out);
}

/* Adds one step's instruction `slot` stands for. */
static void count_instruction(const struct tile_access *access, const int32_t *offsets,
                              int64_t step, uint32_t slot, struct swizzle_count *out)
{
	struct bank_access warp = { .op = access->op,
		                        .bytes = out->bytes,
		                        .n_matrices = access->n_matrices };
	struct bank_result result;

	for (uint32_t lane = 0; lane < SWIZZLE_LANES; lane++) {
		int32_t elem = lane_elems(access, step, lane)[slot];

		if (elem < 0)
			continue;
		warp.mask |= 1u << lane;
		warp.offsets[lane] = offsets[elem] & ~(int64_t)(out->bytes - 1);
	}
	if (!warp.mask)
		return;
	result = bank_wavefronts(&warp);
	out->executions++;
	out->wavefronts += result.max;
	out->ideal += result.ideal;
}

bool swizzle_count_access(const struct swizzle_problem *problem, const struct tile_access *access,
                          const struct offset_table *table, struct swizzle_count *out)
{
	struct grouping grouping = { 0 };
	bool one_stands_for_all = table->is_linear;
	int64_t n_steps = one_stands_for_all ? 1 : access->n_steps;

	*out = (struct swizzle_count){ .bytes = access->bytes };
	while (!group_slots(problem, access, table, out->bytes, &grouping)) {
		if (is_matrix_op(access) || out->bytes * 8 <= problem->elem_bits) {
			out->wavefronts = -1;
			return false;
		}
		out->bytes /= 2;
	}
	for (int64_t step = 0; step < n_steps; step++)
		for (uint32_t g = 0; g < (one_stands_for_all ? 1 : grouping.n_groups); g++)
			count_instruction(access, table->offsets, step, grouping.first[g], out);
	if (one_stands_for_all) {
		out->executions *= access->n_steps * grouping.n_groups;
		out->wavefronts *= access->n_steps * grouping.n_groups;
		out->ideal *= access->n_steps * grouping.n_groups;
	}
	return true;
}

bool swizzle_weigh(const struct swizzle_problem *problem, const struct layout *layout,
                   struct swizzle_candidate *out)
{
	struct arena *scratch = arena_open();
	int32_t *offsets = arena_array(scratch, int32_t, (size_t)swizzle_n_elems(problem));
	struct offset_table table = { offsets, false };
	bool ok = true;

	assert(layout->kind == LAYOUT_MEMORY);
	*out = (struct swizzle_candidate){ .layout = layout };
	swizzle_fill_offsets(layout, offsets);
	for (uint32_t a = 0; a < problem->n_accesses; a++) {
		ok = swizzle_count_access(problem, &problem->accesses[a], &table, &out->counts[a]) && ok;
		out->cost += problem->accesses[a].weight * out->counts[a].wavefronts;
	}
	arena_close(scratch);
	return ok;
}

/* ---- the bound ---- */

/* Lanes of `lanes` whose partner at `distance` is active touch the same elements in some slot. */
static bool lanes_may_pair(const struct tile_access *access, int64_t step, uint32_t lanes,
                           uint32_t distance)
{
	for (uint32_t s = 0; s < access->n_slots; s++) {
		bool all = true;

		for (uint32_t lane = 0; lane < SWIZZLE_LANES && all; lane++) {
			int32_t a = lane_elems(access, step, lane)[s];
			int32_t b = lane_elems(access, step, lane ^ distance)[s];

			all = !(lanes >> lane & 1) || a < 0 || b < 0 || a == b;
		}
		if (all)
			return true;
	}
	return false;
}

static uint32_t active_lanes(const struct tile_access *access, int64_t step)
{
	uint32_t mask = 0;

	for (uint32_t lane = 0; lane < SWIZZLE_LANES; lane++)
		if (lane_elems(access, step, lane)[0] >= 0)
			mask |= 1u << lane;
	return mask;
}

/* Phases of one instruction of the step, after those that may merge have merged. */
static int64_t least_phases(const struct tile_access *access, int64_t step, uint32_t bytes)
{
	uint32_t n_lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8, mask = active_lanes(access, step);
	uint32_t group = access->op != BANK_LD || bytes < 8 ? n_lanes : 2 * n_lanes;
	int64_t phases = 0;

	for (uint32_t first = 0; first < SWIZZLE_LANES; first += group) {
		uint32_t lanes = (group == 32 ? UINT32_MAX : (1u << group) - 1) << first, n = 0;

		for (uint32_t at = first; at < first + group; at += n_lanes)
			n += (mask & ((n_lanes == 32 ? UINT32_MAX : (1u << n_lanes) - 1) << at)) != 0;
		if (n > 1 && (mask != UINT32_MAX || lanes_may_pair(access, step, lanes, 1) ||
		              lanes_may_pair(access, step, lanes, 2)))
			n = 1;
		phases += n;
	}
	return phases;
}

int64_t swizzle_bound(const struct swizzle_problem *problem, const struct tile_access *access,
                      uint32_t bytes)
{
	uint32_t per_group = bytes * 8 / problem->elem_bits;
	int64_t n_groups, sum = 0;

	assert(per_group > 0 && access->n_slots % per_group == 0);
	n_groups = access->n_slots / per_group;
	if (access->op == BANK_CP_ASYNC) {
		for (int64_t step = 0; step < access->n_steps; step++)
			sum += (__builtin_popcount(active_lanes(access, step)) * (int64_t)bytes + 127) / 128;
		return sum * n_groups;
	}
	for (int64_t step = 0; step < access->n_steps; step++)
		sum += least_phases(access, step, bytes);
	return sum * n_groups;
}
