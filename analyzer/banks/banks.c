/*
 * The wavefront model. docs/banks.md states the rules and the measurements they rest on.
 *
 * Worked example: 32 lanes load 16 bytes each, lane l at 128 l (a column of a tile with 128-byte
 * rows). A phase is 8 lanes; its 32 words lie in the banks 0 to 3, 8 words a bank: 8 wavefronts,
 * and 32 for the 4 phases where 4 are ideal. Complexity: words of a phase times words of a bank in
 * it.
 */
#include "analyzer/banks/banks.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { N_LANES = 32, N_BANKS = 32, WORD_BYTES = 4, MAX_WORDS = 128 };

/*
 * What some lanes touch, in units of one word, or of a whole access where all of them are aligned:
 * then the access's banks go together. Chained by group of banks; equal units are kept once.
 */
struct word_set {
	int64_t units[MAX_WORDS];
	uint8_t lanes[MAX_WORDS];
	uint8_t next[MAX_WORDS]; /* index + 1 of the group's unit before, 0 none */
	uint8_t head[N_BANKS];
	uint8_t count[N_BANKS];
	uint32_t n, unit_words;
	int32_t degree; /* the largest count */
	int32_t worst_group;
};

static void word_set_add(struct word_set *set, int64_t unit, uint32_t group, uint32_t lane)
{
	for (uint32_t i = set->head[group]; i; i = set->next[i - 1])
		if (set->units[i - 1] == unit)
			return;
	assert(set->n < MAX_WORDS);
	set->units[set->n] = unit;
	set->lanes[set->n] = (uint8_t)lane;
	set->next[set->n] = set->head[group];
	set->head[group] = (uint8_t)++set->n;
	if (++set->count[group] > set->degree) {
		set->degree = set->count[group];
		set->worst_group = (int32_t)group;
	}
}

static bool are_aligned(const int64_t *offsets, uint32_t lanes, uint32_t bytes)
{
	int64_t low = 0;

	for (; lanes; lanes &= lanes - 1)
		low |= offsets[__builtin_ctz(lanes)];
	return (low & (int64_t)(bytes - 1)) == 0;
}

/* The words that the active lanes among `lanes` touch at `offsets`. */
static void word_set_fill(struct word_set *set, const int64_t *offsets, uint32_t lanes,
                          uint32_t bytes)
{
	bool is_whole = bytes > WORD_BYTES && are_aligned(offsets, lanes, bytes);
	uint32_t n_units = bytes <= WORD_BYTES || is_whole ? 1 : bytes / WORD_BYTES, n_groups, shift;

	set->unit_words = is_whole ? bytes / WORD_BYTES : 1;
	n_groups = N_BANKS / set->unit_words;
	shift = 2 + (uint32_t)__builtin_ctz(set->unit_words);
	memset(set->head, 0, n_groups);
	memset(set->count, 0, n_groups);
	set->n = 0;
	set->degree = 0;
	set->worst_group = 0;
	for (; lanes; lanes &= lanes - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(lanes);
		int64_t unit = offsets[lane] >> shift;

		for (uint32_t i = 0; i < n_units; i++)
			word_set_add(set, unit + i, (uint32_t)(unit + i) & (n_groups - 1), lane);
	}
}

static uint32_t lanes_from(uint32_t first, uint32_t n)
{
	return (n == N_LANES ? UINT32_MAX : (1u << n) - 1) << first;
}

static uint32_t lanes_per_phase(uint32_t bytes)
{
	return bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
}

/* Remembers the phase when it is the worst so far. */
static void note_worst(struct bank_result *result, const struct word_set *set, bool in_source)
{
	uint32_t first, second;

	if (set->degree <= result->ways)
		return;
	result->ways = set->degree;
	result->in_source = in_source;
	result->bank = set->worst_group * (int32_t)set->unit_words;
	second = set->head[set->worst_group];
	first = second ? set->next[second - 1] : 0;
	while (first && set->next[first - 1])
		first = set->next[first - 1];
	if (first) {
		result->lane_a = set->lanes[first - 1];
		result->lane_b = set->lanes[second - 1];
	}
}

/* Sum over the phases of `n_lanes` lanes each; `degrees` (may be NULL) gets each phase's. */
static int32_t phase_sum(const struct bank_access *access, uint32_t n_lanes, uint32_t n_phases,
                         int32_t *degrees, struct bank_result *result)
{
	struct word_set set;
	int32_t sum = 0;

	for (uint32_t phase = 0; phase < n_phases; phase++) {
		uint32_t lanes = lanes_from(phase * n_lanes, n_lanes) & access->mask;
		word_set_fill(&set, access->offsets, lanes, access->bytes);
		note_worst(result, &set, false);
		sum += set.degree;
		if (degrees)
			degrees[phase] = set.degree;
	}
	return sum;
}

/* Do all pairs of active lanes (l, l ^ distance) among `lanes` have equal addresses? */
static bool lanes_pair(const struct bank_access *access, uint32_t lanes, uint32_t distance)
{
	uint32_t active = lanes & access->mask;

	for (; active; active &= active - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(active), other = lane ^ distance;
		if (access->mask >> other & 1 && access->offsets[lane] != access->offsets[other])
			return false;
	}
	return true;
}

/* Do the active lanes among `lanes` touch at most one word in each bank? */
static bool has_no_conflict(const struct bank_access *access, uint32_t lanes)
{
	struct word_set set;

	word_set_fill(&set, access->offsets, lanes & access->mask, access->bytes);
	return set.degree <= 1;
}

/* The condition under which the phases of `lanes` are served together. */
static bool phases_merge(const struct bank_access *access, uint32_t lanes)
{
	return (lanes_pair(access, lanes, 1) || lanes_pair(access, lanes, 2)) &&
	       has_no_conflict(access, lanes);
}

/* 8-byte loads: one wavefront instead of two when the whole warp's lanes pair up without a
 * conflict. */
static int32_t load_8_bytes(const struct bank_access *access, struct bank_result *result)
{
	int32_t sum = phase_sum(access, 16, 2, NULL, result);

	return sum == 2 && phases_merge(access, UINT32_MAX) ? 1 : sum;
}

static bool is_one_address(const struct bank_access *access)
{
	int64_t first = access->offsets[__builtin_ctz(access->mask)];

	for (uint32_t lanes = access->mask; lanes; lanes &= lanes - 1)
		if (access->offsets[__builtin_ctz(lanes)] != first)
			return false;
	return true;
}

/*
 * 16-byte loads: a half warp's two phases merge when its lanes pair up and neither it nor any phase
 * has a conflict. With a partial mask, halves without a conflict merge or do not by a rule that is
 * not known: bounds.
 */
static void load_16_bytes(const struct bank_access *access, struct bank_result *result)
{
	int32_t degrees[4], sum = phase_sum(access, 8, 4, degrees, result);
	bool is_full = access->mask == UINT32_MAX;

	result->min = result->max = sum;
	for (uint32_t half = 0; half < 2; half++) {
		uint32_t lanes = lanes_from(16 * half, 16);
		if (degrees[2 * half] != 1 || degrees[2 * half + 1] != 1)
			continue;
		if (is_full ? result->ways <= 1 && phases_merge(access, lanes)
		            : has_no_conflict(access, lanes))
			result->min--;
	}
	if (is_full)
		result->max = result->min;
	else if (is_one_address(access))
		result->min = 1;
}

/*
 * cp.async through L1: each phase reads the lines' words and writes shared memory, each side with
 * the banks' rule; what goes beyond one wavefront a phase is conflict. Exact when one side of every
 * phase has none; else both orders of the two sides' conflicts bound it.
 */
static void copy_through_l1(const struct bank_access *access, struct bank_result *result)
{
	uint32_t n_lanes = lanes_per_phase(access->bytes);
	int32_t to_shared = 0, from_global = 0, together = 0;
	int64_t packed[N_LANES];
	const int64_t *sources = access->sources;
	struct word_set set;

	for (uint32_t lane = 0; lane < N_LANES; lane++)
		packed[lane] = (int64_t)lane * access->bytes;
	if (!sources)
		sources = packed;
	for (uint32_t first = 0; first < N_LANES; first += n_lanes) {
		uint32_t lanes = lanes_from(first, n_lanes) & access->mask;
		int32_t shared_degree, global_degree;
		if (!lanes)
			continue;
		word_set_fill(&set, access->offsets, lanes, access->bytes);
		shared_degree = set.degree;
		note_worst(result, &set, false);
		word_set_fill(&set, sources, lanes, access->bytes);
		global_degree = set.degree;
		note_worst(result, &set, true);
		to_shared += shared_degree - 1;
		from_global += global_degree - 1;
		together += shared_degree + global_degree - 2;
	}
	result->min = result->ideal + (to_shared > from_global ? to_shared : from_global);
	result->max = result->ideal + together;
}

/* 32-bit atomics: lanes of a bank follow one another, on equal words too. */
static int32_t atomic_lanes(const struct bank_access *access, struct bank_result *result)
{
	int32_t count[N_BANKS] = { 0 }, first[N_BANKS];

	for (uint32_t lanes = access->mask; lanes; lanes &= lanes - 1) {
		int32_t lane = __builtin_ctz(lanes);
		uint32_t bank = (uint32_t)(access->offsets[lane] >> 2 & (N_BANKS - 1));
		if (!count[bank]++)
			first[bank] = lane;
		if (count[bank] > result->ways) {
			result->ways = count[bank];
			result->bank = (int32_t)bank;
			result->lane_a = first[bank];
			result->lane_b = lane;
		}
	}
	return result->ways;
}

static int32_t ceil_128(const struct bank_access *access)
{
	return (int32_t)(((uint32_t)__builtin_popcount(access->mask) * access->bytes + 127) / 128);
}

static void count_exact(struct bank_result *result, int32_t wavefronts)
{
	result->min = result->max = wavefronts;
}

struct bank_result bank_wavefronts(const struct bank_access *access)
{
	struct bank_result result = { 0 };
	uint32_t n_lanes = lanes_per_phase(access->bytes);

	if (!access->mask)
		return result;
	result.ideal = ceil_128(access);
	switch (access->op) {
	case BANK_LD:
		if (access->bytes == 16)
			load_16_bytes(access, &result);
		else if (access->bytes == 8)
			count_exact(&result, load_8_bytes(access, &result));
		else
			count_exact(&result, phase_sum(access, 32, 1, NULL, &result));
		break;
	case BANK_ST:
		count_exact(&result, phase_sum(access, n_lanes, N_LANES / n_lanes, NULL, &result));
		break;
	case BANK_LDMATRIX:
	case BANK_STMATRIX:
		assert(access->n_matrices <= 4 && access->bytes == 16);
		count_exact(&result, phase_sum(access, 8, access->n_matrices, NULL, &result));
		result.ideal = (int32_t)access->n_matrices;
		return result;
	case BANK_CP_ASYNC:
		if (access->bytes == 16) {
			count_exact(&result, result.ideal);
			result.ways = 1;
		} else {
			copy_through_l1(access, &result);
		}
		break;
	case BANK_ATOMIC:
		count_exact(&result, atomic_lanes(access, &result));
		break;
	}
	if (result.ideal > result.min)
		result.ideal = result.min;
	return result;
}

/* The names of the `banks` verb. */
static const struct bank_op_name {
	const char *text;
	enum bank_op op;
	uint32_t bytes, n_matrices;
} bank_op_names[] = {
	{ "ld8", BANK_LD, 1, 0 },
	{ "ld16", BANK_LD, 2, 0 },
	{ "ld32", BANK_LD, 4, 0 },
	{ "ld64", BANK_LD, 8, 0 },
	{ "ld128", BANK_LD, 16, 0 },
	{ "st8", BANK_ST, 1, 0 },
	{ "st16", BANK_ST, 2, 0 },
	{ "st32", BANK_ST, 4, 0 },
	{ "st64", BANK_ST, 8, 0 },
	{ "st128", BANK_ST, 16, 0 },
	{ "ldsm1", BANK_LDMATRIX, 16, 1 },
	{ "ldsm2", BANK_LDMATRIX, 16, 2 },
	{ "ldsm4", BANK_LDMATRIX, 16, 4 },
	{ "ldsm1t", BANK_LDMATRIX, 16, 1 },
	{ "ldsm2t", BANK_LDMATRIX, 16, 2 },
	{ "ldsm4t", BANK_LDMATRIX, 16, 4 },
	{ "stsm1", BANK_STMATRIX, 16, 1 },
	{ "stsm2", BANK_STMATRIX, 16, 2 },
	{ "stsm4", BANK_STMATRIX, 16, 4 },
	{ "stsm1t", BANK_STMATRIX, 16, 1 },
	{ "stsm2t", BANK_STMATRIX, 16, 2 },
	{ "stsm4t", BANK_STMATRIX, 16, 4 },
	{ "cpasync4", BANK_CP_ASYNC, 4, 0 },
	{ "cpasync8", BANK_CP_ASYNC, 8, 0 },
	{ "cpasync16", BANK_CP_ASYNC, 16, 0 },
	{ "atom32", BANK_ATOMIC, 4, 0 },
};

bool bank_op_parse(const char *text, uint32_t access_bytes, struct bank_access *access)
{
	for (size_t i = 0; i < sizeof(bank_op_names) / sizeof(*bank_op_names); i++) {
		const struct bank_op_name *name = &bank_op_names[i];
		if (strcmp(text, name->text) != 0)
			continue;
		if (access_bytes != name->bytes)
			return false;
		access->op = name->op;
		access->bytes = name->bytes;
		access->n_matrices = name->n_matrices;
		return true;
	}
	return false;
}
