/*
 * The search: candidates in order of preference, exact counts, early end at the bound.
 *
 * A candidate is a base (row-major, column-major, panels, a padding) with XOR terms on its byte
 * offsets. A base's offsets are tabulated once, so that a swizzle costs one XOR an element; where
 * everything is linear over F2 one step stands for all.
 */
#include "analyzer/layout/swizzle_internal.h"

#include <assert.h>
#include <string.h>

struct search {
	const struct swizzle_problem *problem;
	struct swizzle_answer *answer;
	struct arena *arena, *scratch;
	int64_t n_elems;
	int32_t *base, *offsets;
	bool shape_is_linear;
	bool linear[SWIZZLE_MAX_ACCESSES];
	struct linear_access accesses[SWIZZLE_MAX_ACCESSES];
};

/* ---- the bound ---- */

static uint32_t min_bytes(const struct swizzle_problem *problem, const struct tile_access *access)
{
	bool is_fixed = access->op == BANK_LDMATRIX || access->op == BANK_STMATRIX ||
	                (access->op == BANK_CP_ASYNC && access->bytes == 16);

	return is_fixed ? access->bytes : (uint32_t)problem_elem_bytes(problem);
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

/* Accesses a and b together: at widths that some layout gives both. */
static int64_t pair_bound(const struct search *search, uint32_t a, uint32_t b)
{
	const struct swizzle_problem *problem = search->problem;
	const struct tile_access *access = &problem->accesses[a];
	int64_t least = INT64_MAX;

	for (uint32_t bytes = access->bytes; bytes >= min_bytes(problem, access); bytes /= 2) {
		uint32_t other =
			swizzle_common_bytes(problem, &search->accesses[a], &search->accesses[b], bytes);
		int64_t second = least_bound(search, b, other), sum;

		if (second == INT64_MAX || access->n_slots % (bytes * 8 / problem->elem_bits) != 0)
			continue;
		sum = access->weight * swizzle_bound(problem, access, bytes) +
		      problem->accesses[b].weight * second;
		least = sum < least ? sum : least;
	}
	return least;
}

static void find_bounds(struct search *search)
{
	const struct swizzle_problem *problem = search->problem;
	struct swizzle_answer *answer = search->answer;
	int64_t excess = 0;

	for (uint32_t a = 0; a < problem->n_accesses; a++) {
		answer->bounds[a] = least_bound(search, a, problem->accesses[a].bytes);
		answer->bound += problem->accesses[a].weight * answer->bounds[a];
	}
	for (uint32_t a = 0; a < problem->n_accesses; a++)
		for (uint32_t b = a + 1; b < problem->n_accesses; b++) {
			int64_t apart = problem->accesses[a].weight * answer->bounds[a] +
			                problem->accesses[b].weight * answer->bounds[b];
			int64_t both =
				search->linear[a] && search->linear[b] ? pair_bound(search, a, b) : apart;

			if (both > apart)
				answer->widths_compete = true;
			if (both < INT64_MAX && both - apart > excess)
				excess = both - apart;
		}
	answer->bound += excess;
}

/* ---- counting a candidate ---- */

/* Costs of the offsets in search->offsets; false when an access cannot be served or the cost
 * reaches `limit`. */
static bool weigh_offsets(struct search *search, bool is_linear, int64_t limit,
                          struct swizzle_candidate *out)
{
	const struct swizzle_problem *problem = search->problem;

	out->cost = 0;
	search->answer->n_layouts++;
	for (uint32_t a = 0; a < problem->n_accesses; a++) {
		struct offset_table table = { search->offsets, is_linear && search->linear[a] };

		if (out->cost >= limit ||
		    !swizzle_count_access(problem, &problem->accesses[a], &table, &out->counts[a]))
			return false;
		out->cost += problem->accesses[a].weight * out->counts[a].wavefronts;
	}
	return out->cost < limit;
}

static int64_t limit_of(const struct swizzle_candidate *best)
{
	return best->layout ? best->cost : INT64_MAX;
}

static bool is_done(const struct search *search)
{
	const struct swizzle_answer *answer = search->answer;

	return (answer->best.layout && answer->best.cost <= answer->bound) ||
	       (search->problem->max_layouts > 0 && answer->n_layouts >= search->problem->max_layouts);
}

static bool fits(const struct search *search, const struct layout *layout)
{
	return search->problem->max_bytes == 0 || layout->n_bytes <= search->problem->max_bytes;
}

/* The base whose offsets are in search->base, with one XOR term (n_bits 0: none). */
static void try_swizzle(struct search *search, const struct layout *base, struct xor_term term,
                        bool is_simple)
{
	struct swizzle_answer *answer = search->answer;
	struct swizzle_candidate candidate = { 0 };
	int32_t mask = (int32_t)((1u << term.n_bits) - 1);
	bool is_linear = search->shape_is_linear && swizzle_log2(base->n_bytes) >= 0;
	int64_t limit = limit_of(&answer->best);
	struct layout *layout;

	if (is_simple && limit_of(&answer->best_simple) > limit)
		limit = limit_of(&answer->best_simple);
	for (int64_t i = 0; i < search->n_elems; i++)
		search->offsets[i] =
			search->base[i] ^ (((search->base[i] >> term.from_bit) & mask) << term.to_bit);
	if (!weigh_offsets(search, is_linear, limit, &candidate))
		return;
	layout = arena_new(search->arena, struct layout);
	*layout = *base;
	if (term.n_bits > 0) {
		layout->xors[layout->n_xors++] = term;
		layout_finish(layout);
	}
	candidate.layout = layout;
	if (!fits(search, layout))
		return;
	if (is_simple && candidate.cost < limit_of(&answer->best_simple))
		answer->best_simple = candidate;
	if (candidate.cost < limit_of(&answer->best))
		answer->best = candidate;
}

/* Every swizzle on the base, those of few bits first; term 0 is the base itself. */
static void try_all_swizzles(struct search *search, const struct layout *base, bool is_simple)
{
	int to_min = swizzle_log2(problem_elem_bytes(search->problem)), n_bits = 7;

	swizzle_fill_offsets(base, search->base);
	while ((int64_t)1 << n_bits < base->n_bytes)
		n_bits++;
	if (search->problem->keep_rows_whole)
		to_min = 4;
	try_swizzle(search, base, (struct xor_term){ 0 }, is_simple);
	for (int n = 1; n <= 5; n++)
		for (int to = 7 - n; to >= to_min; to--)
			for (int from = to + n > 7 ? to + n : 7; from + n <= n_bits; from++) {
				if (is_done(search))
					return;
				try_swizzle(search, base,
				            (struct xor_term){ (uint8_t)from, (uint8_t)to, (uint8_t)n }, is_simple);
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
	swizzle_fill_offsets(base, search->base);
	try_swizzle(search, base, (struct xor_term){ 0 }, false);
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

static void try_construction(struct search *search)
{
	const struct swizzle_problem *problem = search->problem;
	struct swizzle_answer *answer = search->answer;

	for (uint32_t lead = 0; lead < problem->n_accesses && !is_done(search); lead++) {
		struct swizzle_candidate candidate = { 0 };
		struct f2_map map;
		struct layout *layout;

		if (!swizzle_construct(problem, search->accesses, lead, &map))
			continue;
		for (int64_t i = 0; i < search->n_elems; i++)
			search->offsets[i] = (int32_t)f2_apply(&map, (uint64_t)i);
		if (!weigh_offsets(search, true, limit_of(&answer->best), &candidate))
			continue;
		layout =
			f2_to_memory(search->arena, problem->shape, problem->rank, problem->elem_bits, &map);
		candidate.layout = layout;
		if (fits(search, layout))
			answer->best = candidate;
	}
}

/* Pads that keep vectors aligned: multiples of the widest, up to a line; then narrower ones. */
static void try_pads(struct search *search, bool by_columns)
{
	const struct swizzle_problem *problem = search->problem;
	int64_t unit = problem->keep_rows_whole ? 16 : problem_elem_bytes(problem);

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
	search->base = arena_array(search->scratch, int32_t, (size_t)search->n_elems);
	search->offsets = arena_array(search->scratch, int32_t, (size_t)search->n_elems);
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
	struct search search = {
		.problem = problem, .answer = answer, .arena = arena, .scratch = arena_open()
	};
	const struct layout *rows;

	assert(problem->n_accesses >= 1 && problem->n_accesses <= SWIZZLE_MAX_ACCESSES);
	assert(swizzle_log2(problem->elem_bits) >= 3 && problem->elem_bits <= 128);
	*answer = (struct swizzle_answer){ 0 };
	answer->is_linear = prepare(&search);
	find_bounds(&search);
	rows = row_major(&search, 0);
	swizzle_weigh(problem, rows, &answer->row_major);
	swizzle_fill_offsets(rows, search.base);
	try_swizzle(&search, rows, (struct xor_term){ 0 }, true);
	if (!problem->keep_rows_whole && problem->rank >= 2)
		try_base(&search, column_major(&search, 0));
	try_panels(&search);
	if (!is_done(&search))
		try_all_swizzles(&search, rows, true);
	if (!is_done(&search) && answer->is_linear)
		try_construction(&search);
	if (!is_done(&search))
		try_pads(&search, false);
	if (!is_done(&search) && !problem->keep_rows_whole && problem->rank >= 2) {
		try_all_swizzles(&search, column_major(&search, 0), false);
		try_pads(&search, true);
	}
	arena_close(search.scratch);
}
