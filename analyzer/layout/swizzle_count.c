/*
 * Wavefronts of tile accesses under a layout, and the bound that holds under every layout.
 *
 * A lane's slots form instructions of W bytes when they fall into aligned blocks of W bytes, and
 * each slot has the same block and the same place in it in every lane and step: registers are named
 * at compile time. Rows of matrix ops and 16-byte cp.async keep the order of their elements as it
 * is, since nobody holds them in registers. The widest W that works is taken.
 */
#include "analyzer/layout/swizzle_internal.h"

#include "base/map.h"

#include <assert.h>
#include <string.h>

int swizzle_log2(int64_t value)
{
	return value > 0 && (value & (value - 1)) == 0 ? __builtin_ctzll((uint64_t)value) : -1;
}

int64_t problem_elem_bytes(const struct swizzle_problem *problem)
{
	return problem->elem_bits / 8;
}

int64_t swizzle_n_elems(const struct swizzle_problem *problem)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < problem->rank; d++)
		n *= problem->shape[d];
	return n;
}

/* Offsets of a dimension's values, the other indices being 0, before XOR terms. */
static void fill_dimension(const struct layout *layout, uint32_t d, int32_t *out)
{
	for (int64_t i = 0; i < layout->shape[d]; i++) {
		out[i] = 0;
		for (uint32_t n = 0; n < layout->n_digits; n++) {
			const struct digit *digit = &layout->digits[n];

			if (digit->dim == (int)d)
				out[i] += (int32_t)(i / digit->div % digit->extent * digit->stride);
		}
	}
}

/* Digits of different dimensions add up: one table a dimension gives all elements. */
static void fill_digits(const struct layout *layout, struct arena *scratch, int32_t *out)
{
	int64_t n = 1;

	out[0] = 0;
	for (uint32_t d = 0; d < layout->rank; d++) {
		int64_t extent = layout->shape[d];
		int32_t *along = arena_array(scratch, int32_t, (size_t)extent);

		fill_dimension(layout, d, along);
		for (int64_t i = n; i-- > 0;)
			for (int64_t k = extent; k-- > 0;)
				out[i * extent + k] = out[i] + along[k];
		n *= extent;
	}
	for (uint32_t x = 0; x < layout->n_xors; x++) {
		const struct xor_term *term = &layout->xors[x];
		int32_t mask = (int32_t)((1u << term->n_bits) - 1);

		for (int64_t i = 0; i < n; i++)
			out[i] ^= ((out[i] >> term->from_bit) & mask) << term->to_bit;
	}
}

void swizzle_fill_offsets(const struct layout *layout, int32_t *out)
{
	int64_t index[MAX_RANK] = { 0 };
	struct arena *scratch;

	if (!layout->table) {
		scratch = arena_open();
		fill_digits(layout, scratch, out);
		arena_close(scratch);
		return;
	}
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

static int32_t offset_of(const struct offset_table *table, int32_t elem)
{
	int32_t offset = table->offsets[elem], mask = (int32_t)((1u << table->term.n_bits) - 1);

	return offset ^ (((offset >> table->term.from_bit) & mask) << table->term.to_bit);
}

static int64_t n_classes(const struct tile_access *access, const struct offset_table *table)
{
	return table->is_linear ? 1 : table->classes ? table->classes->n : access->n_steps;
}

/* The step that stands for class `i`. */
static int64_t class_step(const struct offset_table *table, int64_t i)
{
	return table->is_linear || !table->classes ? i : table->classes->steps[i];
}

/* By the blocks in which one lane's elements lie; false when a block is not full. */
static bool group_lane(const struct swizzle_problem *problem, const struct tile_access *access,
                       const int32_t *elems, const struct offset_table *table, struct grouping *out)
{
	int32_t blocks[SWIZZLE_MAX_SLOTS], mask = (int32_t)out->bytes - 1;
	uint32_t sizes[SWIZZLE_MAX_SLOTS], per_group = out->bytes * 8 / problem->elem_bits;

	out->n_groups = 0;
	for (uint32_t s = 0; s < access->n_slots; s++) {
		int32_t offset = offset_of(table, elems[s]), block = offset & ~mask;
		uint32_t g = 0;

		while (g < out->n_groups && blocks[g] != block)
			g++;
		if (g == out->n_groups) {
			blocks[g] = block;
			sizes[g] = 0;
			out->first[out->n_groups++] = (uint8_t)s;
		}
		if (swizzle_is_in_order(access) &&
		    (uint32_t)(offset & mask) != s % per_group * (problem->elem_bits / 8))
			return false;
		sizes[g]++;
		out->group[s] = (uint8_t)g;
		out->place[s] = (uint8_t)(offset & mask);
	}
	for (uint32_t g = 0; g < out->n_groups; g++)
		if (sizes[g] * out->n_groups != access->n_slots)
			return false;
	return true;
}

static bool lane_holds(const struct tile_access *access, const int32_t *elems,
                       const struct offset_table *table, const struct grouping *grouping)
{
	int32_t blocks[SWIZZLE_MAX_SLOTS], mask = (int32_t)grouping->bytes - 1;

	for (uint32_t g = 0; g < grouping->n_groups; g++)
		blocks[g] = offset_of(table, elems[grouping->first[g]]) & ~mask;
	for (uint32_t s = 0; s < access->n_slots; s++)
		if (offset_of(table, elems[s]) != blocks[grouping->group[s]] + grouping->place[s])
			return false;
	return true;
}

/* Every lane of every step has the same grouping. */
static bool grouping_holds(const struct tile_access *access, const struct offset_table *table,
                           const struct grouping *grouping)
{
	int64_t n = table->is_linear ? access->n_steps : n_classes(access, table);

	/* The last first: it is the farthest from the one that the grouping was made of. */
	for (int64_t i = n; i-- > 0;)
		for (uint32_t lane = SWIZZLE_LANES; lane-- > 0;) {
			const int32_t *elems =
				lane_elems(access, table->is_linear ? i : class_step(table, i), lane);

			if (elems[0] >= 0 && !lane_holds(access, elems, table, grouping))
				return false;
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

bool swizzle_group(const struct swizzle_problem *problem, const struct tile_access *access,
                   const struct offset_table *table, uint32_t bytes, struct grouping *out)
{
	uint32_t per_group = bytes * 8 / problem->elem_bits;
	const int32_t *elems = first_active(access);

	out->bytes = bytes;
	out->n_groups = 0;
	if (per_group == 0 || access->n_slots % per_group != 0)
		return false;
	if (!elems)
		return true;
	return group_lane(problem, access, elems, table, out) &&
	       out->n_groups == access->n_slots / per_group &&
	       (per_group == 1 || grouping_holds(access, table, out));
}

/* Adds one step's instruction `slot` stands for, `times` times. */
static void count_instruction(const struct tile_access *access, const struct offset_table *table,
                              const int32_t *elems, int64_t times, struct swizzle_count *out)
{
	struct bank_access warp = { .op = access->op,
		                        .bytes = out->bytes,
		                        .n_matrices = access->n_matrices };
	struct bank_result result;

	for (uint32_t lane = 0; lane < SWIZZLE_LANES; lane++) {
		int32_t elem = elems[(size_t)lane * access->n_slots];

		if (elem < 0)
			continue;
		warp.mask |= 1u << lane;
		warp.offsets[lane] = offset_of(table, elem) & ~(int64_t)(out->bytes - 1);
	}
	if (!warp.mask)
		return;
	result = bank_wavefronts(&warp);
	out->executions += times;
	out->wavefronts += times * result.max;
	out->ideal += times * result.ideal;
}

/* The table's term leaves vectors of these bytes alone. */
static bool keeps_groups(const struct offset_table *table, uint32_t bytes)
{
	return table->term.n_bits == 0 || (uint32_t)1 << table->term.to_bit >= bytes;
}

/* The widest instructions that the table allows; NULL when there are none. */
static const struct grouping *find_grouping(const struct swizzle_problem *problem,
                                            const struct tile_access *access,
                                            const struct offset_table *table,
                                            struct grouping *scratch)
{
	for (uint32_t bytes = access->bytes; bytes * 8 >= problem->elem_bits; bytes /= 2) {
		const struct grouping *known =
			table->groupings ? table->groupings[swizzle_log2(bytes)] : NULL;

		if (known && keeps_groups(table, bytes)) {
			if (known->bytes > 0)
				return known;
		} else if (swizzle_group(problem, access, table, bytes, scratch)) {
			return scratch;
		}
		if (swizzle_is_in_order(access))
			break;
	}
	return NULL;
}

bool swizzle_count_access(const struct swizzle_problem *problem, const struct tile_access *access,
                          const struct offset_table *table, int64_t limit,
                          struct swizzle_count *out)
{
	struct grouping scratch;
	const struct grouping *grouping = find_grouping(problem, access, table, &scratch);
	int64_t n = n_classes(access, table), left = 0, least = 0;

	*out = (struct swizzle_count){ .bytes = access->bytes, .wavefronts = -1 };
	if (!grouping)
		return false;
	*out = (struct swizzle_count){ .bytes = grouping->bytes };
	if (table->least && !table->is_linear)
		least = table->least[swizzle_log2(grouping->bytes)] * grouping->n_groups;
	left = least * access->n_steps;
	for (int64_t i = 0; i < n && out->wavefronts + left <= limit; i++) {
		const int32_t *elems = lane_elems(access, class_step(table, i), 0);
		int64_t times = table->classes ? table->classes->times[i] : 1;
		uint32_t n_groups = table->is_linear ? 1 : grouping->n_groups;

		if (table->is_linear)
			times = access->n_steps * grouping->n_groups;
		for (uint32_t g = 0; g < n_groups; g++)
			count_instruction(access, table, elems + grouping->first[g], times, out);
		left -= least * times;
	}
	return out->wavefronts + left <= limit;
}

bool swizzle_weigh(const struct swizzle_problem *problem, const struct layout *layout,
                   struct swizzle_candidate *out)
{
	struct arena *scratch = arena_open();
	int32_t *offsets = arena_array(scratch, int32_t, (size_t)swizzle_n_elems(problem));
	struct offset_table table = { .offsets = offsets };
	bool ok = true;

	assert(layout->kind == LAYOUT_MEMORY);
	*out = (struct swizzle_candidate){ .layout = layout };
	swizzle_fill_offsets(layout, offsets);
	for (uint32_t a = 0; a < problem->n_accesses; a++) {
		ok = swizzle_count_access(problem, &problem->accesses[a], &table, INT64_MAX,
		                          &out->counts[a]) &&
		     ok;
		out->cost += problem->accesses[a].weight * out->counts[a].wavefronts;
	}
	arena_close(scratch);
	return ok;
}

/* ---- classes of steps ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static struct step_form form_of(const struct tile_access *access, const int32_t *offsets,
                                int64_t step)
{
	const int32_t *elems = lane_elems(access, step, 0);
	uint32_t n = SWIZZLE_LANES * access->n_slots;
	struct step_form form = { 0, -1 };

	for (uint32_t i = 0; i < n; i++) {
		if (elems[i] >= 0 && form.start < 0)
			form.start = offsets[elems[i]];
		form.shape =
			mix(form.shape,
		        elems[i] < 0 ? UINT64_MAX : (uint64_t)(uint32_t)(offsets[elems[i]] - form.start));
	}
	return form;
}

struct step_form *swizzle_step_forms(struct arena *arena, const struct tile_access *access,
                                     const int32_t *offsets)
{
	struct step_form *forms = arena_array(arena, struct step_form, (size_t)access->n_steps);

	for (int64_t step = 0; step < access->n_steps; step++)
		forms[step] = form_of(access, offsets, step);
	return forms;
}

struct step_classes *swizzle_step_classes(struct arena *arena, const struct tile_access *access,
                                          const struct step_form *forms, uint32_t period_log)
{
	struct step_classes *classes = arena_new(arena, struct step_classes);
	int32_t *steps = arena_array(arena, int32_t, (size_t)access->n_steps);
	int64_t *times = arena_array(arena, int64_t, (size_t)access->n_steps);
	struct map known = { 0 };

	assert(period_log >= 7 && period_log < 31);
	for (int64_t step = 0; step < access->n_steps; step++) {
		uint64_t start = (uint64_t)forms[step].start & (((uint64_t)1 << period_log) - 1);
		struct map_entry *entry = map_at(arena, &known, hash_mix(forms[step].shape, start));

		if (entry->value.number == 0) {
			steps[classes->n] = (int32_t)step;
			entry->value.number = (uint64_t)++classes->n;
		}
		times[entry->value.number - 1]++;
	}
	classes->steps = steps;
	classes->times = times;
	return classes;
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

uint32_t swizzle_phases(const struct tile_access *access, uint32_t bytes)
{
	return is_matrix_op(access) ? access->n_matrices : bytes <= 4 ? 1 : bytes == 8 ? 2 : 4;
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
		/* Halves of a 16-byte load are not known to merge under a partial mask. */
		if (n > 1 && (bytes == 8 || mask == UINT32_MAX) &&
		    (lanes_may_pair(access, step, lanes, 1) || lanes_may_pair(access, step, lanes, 2)))
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
