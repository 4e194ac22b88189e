/*
 * All accesses of a tile together: a lower bound, and the best layout that is linear over F2.
 *
 * The accesses restrict each other's widths (swizzle_make_flag), so the bound is the least sum of
 * their own bounds over the widths that go together; it holds for layouts of every form. For each
 * such choice the banks are chosen (swizzle_banks.c), which gives a layout and a bound for linear
 * ones. Both are branch and bound over the accesses, widest first.
 */
#include "analyzer/layout/swizzle_internal.h"

#include <assert.h>
#include <string.h>

enum { N_LEVELS = 5, MAX_NODES = 4096, N_VARIANTS = 16 };

struct joint_search {
	struct f2_tile tile;
	uint32_t levels[SWIZZLE_MAX_ACCESSES];
	int64_t bounds[SWIZZLE_MAX_ACCESSES][N_LEVELS]; /* by level, weights included */
	int64_t rest[SWIZZLE_MAX_ACCESSES + 1];         /* least of the accesses from here on */
	bool wants_layout;                              /* else the bound */
	int64_t limit;                                  /* the best so far */
	int64_t least_open; /* least bound of the choices that are not settled */
	int64_t budget;
	uint32_t n_nodes;
	struct joint_answer *answer;
	struct f2_map atoms;
};

static void find_bounds(struct joint_search *search)
{
	const struct swizzle_problem *problem = search->tile.problem;
	uint32_t n = problem->n_accesses;

	for (uint32_t a = n; a-- > 0;) {
		const struct f2_access *spaces = &search->tile.spaces[a];

		search->rest[a] = INT64_MAX;
		for (uint32_t level = spaces->min_level; level <= spaces->max_level; level++) {
			uint32_t bytes = 1u << (level + search->tile.atom_log);

			search->bounds[a][level] =
				problem->accesses[a].weight * swizzle_bound(problem, &problem->accesses[a], bytes);
			if (search->bounds[a][level] < search->rest[a])
				search->rest[a] = search->bounds[a][level];
		}
		assert(search->rest[a] < INT64_MAX);
		search->rest[a] += search->rest[a + 1];
	}
}

/* A choice of widths that go together. */
static void settle(struct joint_search *search, const struct f2_flag *flag, int64_t bound)
{
	int64_t forced = swizzle_conflict_bound(&search->tile, search->levels, flag);
	int64_t open = INT64_MAX;

	bound = forced > bound ? forced : bound;
	if (bound >= search->limit)
		return;
	if (!search->wants_layout) {
		search->limit = bound;
		return;
	}
	for (uint32_t variant = 0; variant < N_VARIANTS && search->limit > bound; variant++) {
		struct f2_flag other = *flag;
		struct bank_answer banks;

		if ((variant > 0 && !swizzle_make_flag(&search->tile, search->levels, variant, &other)) ||
		    !swizzle_choose_banks(&search->tile, search->levels, &other, &search->budget, &banks))
			continue;
		open = banks.bound > bound ? banks.bound : bound;
		if (banks.cost < search->limit) {
			search->limit = banks.cost;
			search->atoms = banks.map;
			search->answer->found = true;
		}
		if (open >= search->limit)
			break; /* settled */
	}
	if (open < search->limit && open < search->least_open)
		search->least_open = open;
}

/* Levels of the accesses from `a` on; `sum`: bounds of those before. */
static void visit(struct joint_search *search, uint32_t a, int64_t sum)
{
	const struct f2_access *spaces = &search->tile.spaces[a];
	uint32_t n = search->tile.problem->n_accesses;

	for (uint32_t level = spaces->max_level + 1; level-- > spaces->min_level;) {
		int64_t bound = sum + search->bounds[a][level];
		struct f2_flag flag;

		if (bound + search->rest[a + 1] >= search->limit)
			continue;
		if (search->n_nodes >= MAX_NODES || (search->wants_layout && search->budget <= 0)) {
			if (bound + search->rest[a + 1] < search->least_open)
				search->least_open = bound + search->rest[a + 1];
			continue;
		}
		search->n_nodes++;
		search->levels[a] = level;
		search->tile.n_accesses = a + 1;
		if (!swizzle_make_flag(&search->tile, search->levels, 0, &flag))
			continue;
		if (a + 1 == n)
			settle(search, &flag, bound);
		else
			visit(search, a + 1, bound);
	}
}

static int64_t run(struct joint_search *search, bool wants_layout)
{
	search->wants_layout = wants_layout;
	search->limit = INT64_MAX;
	search->least_open = INT64_MAX;
	search->n_nodes = 0;
	visit(search, 0, 0);
	return search->limit < search->least_open ? search->limit : search->least_open;
}

void swizzle_joint(const struct swizzle_problem *problem, const struct linear_access *accesses,
                   int64_t budget, struct joint_answer *out)
{
	struct joint_search search = { .budget = budget, .answer = out };
	struct f2_tile *tile = &search.tile;
	uint32_t n_elem_bits = (uint32_t)swizzle_log2(swizzle_n_elems(problem));

	memset(out, 0, sizeof(*out));
	swizzle_open_tile(problem, accesses, tile);
	find_bounds(&search);
	out->bound = run(&search, false);
	if (out->bound == INT64_MAX) {
		out->bound = out->linear_bound = search.rest[0];
		return; /* no layout serves them all */
	}
	out->linear_bound = out->bound;
	if (budget == 0 || tile->n_bits < tile->word_bits)
		return;
	out->linear_bound = run(&search, true);
	out->cost = search.limit;
	if (out->linear_bound < out->bound)
		out->linear_bound = out->bound;
	out->map = (struct f2_map){ .n_in = n_elem_bits, .n_out = tile->n_bits + tile->atom_log };
	for (uint32_t i = 0; i < n_elem_bits && out->found; i++)
		out->map.columns[i] = search.atoms.columns[i + tile->inner] << tile->atom_log;
}
