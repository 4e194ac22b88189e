/*
 * The search: candidates in order of preference, exact counts, early end at the bound.
 *
 * A candidate is a base (row-major, column-major, panels, a padding) with XOR terms on its byte
 * offsets. A base's offsets are tabulated once; steps of an access that are the same but for a move
 * by whole periods of the swizzle are counted once; where everything is linear over F2 one step
 * stands for all.
 */
#include "analyzer/layout/swizzle_internal.h"

#include <assert.h>
#include <string.h>

enum { MAX_PERIOD_LOG = 24, N_WIDTHS = 5, DEFAULT_BUDGET = 1 << 20 };

/* A base layout while its swizzles are counted. */
struct base {
	const struct layout *layout;
	int32_t *offsets; /* row-major */
	bool is_linear;
	/* By access (and period); NULL: not made yet. */
	const struct step_form *forms[SWIZZLE_MAX_ACCESSES];
	const struct step_classes *classes[SWIZZLE_MAX_ACCESSES][MAX_PERIOD_LOG];
	const struct grouping *groupings[SWIZZLE_MAX_ACCESSES][N_WIDTHS];
};

struct search {
	const struct swizzle_problem *problem;
	struct swizzle_answer *answer;
	struct arena *arena, *scratch, *of_base;
	int64_t n_elems;
	struct base base;
	bool shape_is_linear;
	bool linear[SWIZZLE_MAX_ACCESSES];
	struct linear_access accesses[SWIZZLE_MAX_ACCESSES];
	/* By access, by log2 of the bytes: of every instruction, at least; 0 where they differ. */
	int64_t least[SWIZZLE_MAX_ACCESSES][N_WIDTHS];
	int64_t rest[SWIZZLE_MAX_ACCESSES + 1]; /* bounds by weight of the accesses from here on */
};

/* ---- the bound ---- */

static uint32_t min_bytes(const struct swizzle_problem *problem, const struct tile_access *access)
{
	return swizzle_is_in_order(access) ? access->bytes : (uint32_t)problem_elem_bytes(problem);
}

/* The least over the widths from `bytes` down; INT64_MAX when none of them is possible. */
static int64_t least_bound(const struct search *search, uint32_t a, uint32_t bytes)
{
	const struct swizzle_problem *problem = search->problem;
	const struct tile_access *access = &problem->accesses[a];
	int64_t least = INT64_MAX;

	if (bytes > access->bytes)
		bytes = access->bytes;
	for (; bytes >= min_bytes(problem, access); bytes /= 2)
		if (access->n_slots % (bytes * 8 / problem->elem_bits) == 0) {
			int64_t bound = swizzle_bound(problem, access, bytes);

			least = bound < least ? bound : least;
		}
	return least;
}

/* Where no phases merge and no lane is inactive, all instructions have the same least. */
static void find_least(struct search *search, uint32_t a)
{
	const struct swizzle_problem *problem = search->problem;
	const struct tile_access *access = &problem->accesses[a];

	for (uint32_t bytes = access->bytes; bytes >= min_bytes(problem, access); bytes /= 2) {
		uint32_t per_group = bytes * 8 / problem->elem_bits;
		int64_t n_phases = swizzle_phases(access, bytes);

		if (access->n_slots % per_group == 0 &&
		    swizzle_bound(problem, access, bytes) ==
		        access->n_steps * access->n_slots / per_group * n_phases)
			search->least[a][swizzle_log2(bytes)] = n_phases;
	}
}

/* The accesses that are linear restrict each other's widths; the others count by themselves. */
static void find_bounds(struct search *search)
{
	const struct swizzle_problem *problem = search->problem;
	struct swizzle_answer *answer = search->answer;
	struct swizzle_problem linear = *problem;
	struct linear_access accesses[SWIZZLE_MAX_ACCESSES];
	struct joint_answer joint;
	int64_t apart = 0;

	linear.n_accesses = 0;
	for (uint32_t a = 0; a < problem->n_accesses; a++) {
		int64_t bound;

		find_least(search, a);
		answer->bounds[a] = least_bound(search, a, problem->accesses[a].bytes);
		bound = problem->accesses[a].weight * answer->bounds[a];
		answer->bound += bound;
		if (!search->linear[a])
			continue;
		apart += bound;
		accesses[linear.n_accesses] = search->accesses[a];
		linear.accesses[linear.n_accesses++] = problem->accesses[a];
	}
	if (linear.n_accesses > 1) {
		swizzle_joint(&linear, accesses, 0, &joint);
		answer->widths_compete = joint.bound > apart;
		answer->bound += joint.bound - apart;
	}
	answer->linear_bound = answer->bound;
	for (uint32_t a = problem->n_accesses; a-- > 0;)
		search->rest[a] = search->rest[a + 1] + problem->accesses[a].weight * answer->bounds[a];
}

/* ---- counting a candidate ---- */

static const struct step_classes *classes_of(struct search *search, uint32_t access,
                                             struct xor_term term)
{
	uint32_t period = term.n_bits > 0 ? (uint32_t)term.from_bit + term.n_bits : 0;
	const struct step_classes **known;

	if (period < 7)
		period = 7;
	if (period >= MAX_PERIOD_LOG)
		return NULL;
	known = &search->base.classes[access][period];
	if (!search->base.forms[access])
		search->base.forms[access] = swizzle_step_forms(
			search->of_base, &search->problem->accesses[access], search->base.offsets);
	if (!*known)
		*known = swizzle_step_classes(search->of_base, &search->problem->accesses[access],
		                              search->base.forms[access], period);
	return *known;
}

static struct offset_table table_of(struct search *search, uint32_t access, struct xor_term term)
{
	const struct swizzle_problem *problem = search->problem;
	struct base *base = &search->base;
	struct offset_table table = { .offsets = base->offsets };

	table.is_linear = base->is_linear && search->linear[access];
	if (!table.is_linear)
		table.classes = classes_of(search, access, (struct xor_term){ 0 });
	for (uint32_t bytes = problem->accesses[access].bytes; bytes * 8 >= problem->elem_bits;
	     bytes /= 2)
		if (!base->groupings[access][swizzle_log2(bytes)]) {
			struct grouping *grouping = arena_new(search->of_base, struct grouping);

			if (!swizzle_group(problem, &problem->accesses[access], &table, bytes, grouping))
				grouping->bytes = 0;
			base->groupings[access][swizzle_log2(bytes)] = grouping;
		}
	if (!table.is_linear)
		table.classes = classes_of(search, access, term);
	table.term = term;
	table.groupings = base->groupings[access];
	table.least = search->least[access];
	return table;
}

/* Costs of the base with the term; false when an access cannot be served or the cost reaches
 * `limit`. */
static bool weigh_base(struct search *search, struct xor_term term, int64_t limit,
                       struct swizzle_candidate *out)
{
	const struct swizzle_problem *problem = search->problem;

	out->cost = 0;
	search->answer->n_layouts++;
	for (uint32_t a = 0; a < problem->n_accesses; a++) {
		struct offset_table table = table_of(search, a, term);
		int64_t weight = problem->accesses[a].weight;
		int64_t left = (limit - out->cost - search->rest[a + 1]) / weight;

		if (out->cost >= limit ||
		    !swizzle_count_access(problem, &problem->accesses[a], &table, left, &out->counts[a]))
			return false;
		out->cost += weight * out->counts[a].wavefronts;
	}
	return out->cost < limit;
}

static int64_t limit_of(const struct search *search, const struct swizzle_candidate *best)
{
	return best->layout                  ? best->cost
	       : search->problem->known_cost ? search->problem->known_cost + 1
	                                     : INT64_MAX;
}

static bool is_done(const struct search *search)
{
	const struct swizzle_answer *answer = search->answer;

	return (answer->best.layout && answer->best.cost <= answer->bound) ||
	       (search->problem->known_cost && search->problem->known_cost <= answer->bound) ||
	       (search->problem->max_layouts > 0 && answer->n_layouts >= search->problem->max_layouts);
}

static bool fits(const struct search *search, const struct layout *layout)
{
	return search->problem->max_bytes == 0 || layout->n_bytes <= search->problem->max_bytes;
}

static void set_base(struct search *search, const struct layout *layout)
{
	struct arena_mark none = { NULL, 0 };

	arena_release(search->of_base, none);
	search->base = (struct base){ .layout = layout, .offsets = search->base.offsets };
	search->base.is_linear = search->shape_is_linear && swizzle_log2(layout->n_bytes) >= 0;
	swizzle_fill_offsets(layout, search->base.offsets);
}

/* The base with one XOR term (n_bits 0: none). */
static void try_swizzle(struct search *search, struct xor_term term, bool is_simple)
{
	struct swizzle_answer *answer = search->answer;
	struct swizzle_candidate candidate = { 0 };
	int64_t limit = limit_of(search, &answer->best);
	struct layout *layout;

	if (is_simple && limit_of(search, &answer->best_simple) > limit)
		limit = limit_of(search, &answer->best_simple);
	if (!weigh_base(search, term, limit, &candidate))
		return;
	layout = arena_new(search->arena, struct layout);
	*layout = *search->base.layout;
	if (term.n_bits > 0) {
		layout->xors[layout->n_xors++] = term;
		layout_finish(layout);
	}
	candidate.layout = layout;
	if (!fits(search, layout))
		return;
	if (is_simple && candidate.cost < limit_of(search, &answer->best_simple))
		answer->best_simple = candidate;
	if (candidate.cost < limit_of(search, &answer->best))
		answer->best = candidate;
}

/* Every swizzle on the base, those of few bits first; term 0 is the base itself. */
static void try_all_swizzles(struct search *search, const struct layout *base, bool is_simple)
{
	int to_min = swizzle_log2(problem_elem_bytes(search->problem)), n_bits = 7;

	set_base(search, base);
	while ((int64_t)1 << n_bits < base->n_bytes)
		n_bits++;
	try_swizzle(search, (struct xor_term){ 0 }, is_simple);
	for (int n = 1; n <= 5; n++)
		for (int to = 7 - n; to >= to_min; to--)
			for (int from = to + n > 7 ? to + n : 7; from + n <= n_bits; from++) {
				if (is_done(search))
					return;
				try_swizzle(search, (struct xor_term){ (uint8_t)from, (uint8_t)to, (uint8_t)n },
				            is_simple);
			}
}

/* ---- candidates ---- */

static struct layout *column_major(struct search *search, int64_t pad_bytes)
{
	const struct swizzle_problem *problem = search->problem;
	struct layout *layout =
		layout_new_memory(search->arena, problem->rank, problem->shape, problem->elem_bits);
	int64_t stride = problem_elem_bytes(problem);

	for (uint32_t d = 0; d < problem->rank; d++) {
		layout_add_digit(layout,
		                 (struct digit){ (int)d, 1, problem->shape[d], AXIS_OFFSET, stride });
		stride *= problem->shape[d];
		stride += d == 0 ? pad_bytes : 0;
	}
	layout_finish(layout);
	return layout;
}

static struct layout *row_major(struct search *search, int64_t pad_bytes)
{
	const struct swizzle_problem *problem = search->problem;

	return layout_row_major(search->arena, problem->rank, problem->shape, problem->elem_bits,
	                        pad_bytes);
}

static void try_base(struct search *search, const struct layout *base)
{
	if (is_done(search))
		return;
	set_base(search, base);
	try_swizzle(search, (struct xor_term){ 0 }, false);
}

static void try_panels(struct search *search)
{
	const struct swizzle_problem *problem = search->problem;

	for (int64_t span = 128; span >= 32; span /= 2) {
		struct layout *layout =
			layout_swizzled(search->arena, problem->rank, problem->shape, problem->elem_bits, span);

		if (layout)
			try_base(search, layout);
	}
}

/* The best layout that is linear over F2. */
static void try_linear(struct search *search)
{
	const struct swizzle_problem *problem = search->problem;
	struct swizzle_answer *answer = search->answer;
	struct swizzle_candidate candidate = { 0 };
	struct joint_answer joint;
	const struct layout *layout;

	swizzle_joint(problem, search->accesses, problem->budget ? problem->budget : DEFAULT_BUDGET,
	              &joint);
	answer->linear_bound = joint.linear_bound;
	if (!joint.found)
		return;
	layout =
		f2_to_memory(search->arena, problem->shape, problem->rank, problem->elem_bits, &joint.map);
	set_base(search, layout);
	if (!weigh_base(search, (struct xor_term){ 0 }, limit_of(search, &answer->best), &candidate))
		return;
	candidate.layout = layout;
	if (fits(search, layout))
		answer->best = candidate;
}

/* Pads that keep vectors aligned: multiples of the widest, up to a line; then narrower ones. */
static void try_pads(struct search *search, bool by_columns)
{
	const struct swizzle_problem *problem = search->problem;
	int64_t unit = problem_elem_bytes(problem);

	if (problem->rank < 2)
		return;
	for (int64_t step = 16; step >= unit; step /= 2)
		for (int64_t pad = step; pad < 128; pad += step * (step < 16 ? 2 : 1)) {
			const struct layout *base =
				by_columns ? column_major(search, pad) : row_major(search, pad);

			if (is_done(search))
				return;
			if (fits(search, base))
				try_all_swizzles(search, base, !by_columns);
		}
}

static bool prepare(struct search *search)
{
	const struct swizzle_problem *problem = search->problem;
	bool all = true;

	search->n_elems = swizzle_n_elems(problem);
	search->base.offsets = arena_array(search->scratch, int32_t, (size_t)search->n_elems);
	search->shape_is_linear = true;
	for (uint32_t d = 0; d < problem->rank; d++)
		if (swizzle_log2(problem->shape[d]) < 0)
			search->shape_is_linear = false;
	for (uint32_t a = 0; a < problem->n_accesses; a++) {
		search->linear[a] = swizzle_linear(problem, &problem->accesses[a], &search->accesses[a]);
		all = all && search->linear[a];
	}
	return all;
}

void swizzle_search(struct arena *arena, const struct swizzle_problem *problem,
                    struct swizzle_answer *answer)
{
	struct search search = { .problem = problem,
		                     .answer = answer,
		                     .arena = arena,
		                     .scratch = arena_open(),
		                     .of_base = arena_open() };
	const struct layout *rows;

	assert(problem->n_accesses >= 1 && problem->n_accesses <= SWIZZLE_MAX_ACCESSES);
	assert(swizzle_log2(problem->elem_bits) >= 3 && problem->elem_bits <= 128);
	*answer = (struct swizzle_answer){ 0 };
	answer->is_linear = prepare(&search);
	find_bounds(&search);
	rows = row_major(&search, 0);
	swizzle_weigh(problem, rows, &answer->row_major);
	set_base(&search, rows);
	if (!is_done(&search))
		try_swizzle(&search, (struct xor_term){ 0 }, true);
	if (problem->rank >= 2)
		try_base(&search, column_major(&search, 0));
	try_panels(&search);
	if (!is_done(&search))
		try_all_swizzles(&search, rows, true);
	if (!is_done(&search) && answer->is_linear)
		try_linear(&search);
	if (!is_done(&search))
		try_pads(&search, false);
	if (!is_done(&search) && problem->rank >= 2) {
		try_all_swizzles(&search, column_major(&search, 0), false);
		try_pads(&search, true);
	}
	arena_close(search.of_base);
	arena_close(search.scratch);
}
