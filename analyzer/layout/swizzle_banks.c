/*
 * Banks of a layout that is linear over F2: which bits of the element number make each bit of the
 * bank, so that the accesses together take the fewest wavefronts.
 *
 * Offset bit i is a functional f_i on atom numbers. The flag (swizzle_f2.c) settles those inside a
 * word, and constrains those inside wide instructions: they may not depend on the lane. The five
 * bank functionals are chosen one by one. What an access still has to tell apart is kept: the
 * vectors of a phase (lanes and slots, over the word) on which all functionals so far vanish. Each
 * functional halves that space unless it vanishes on it, and 2^(what is left at the end) words meet
 * in one bank. Two accesses are always served: two proper subspaces never fill a space, so some
 * functional vanishes on neither (docs/swizzles.md). For more, branch and bound: with r functionals
 * to come, an access that has d dimensions left ends with at least d - r.
 */
#include "analyzer/layout/swizzle_internal.h"

#include <assert.h>
#include <string.h>

enum { MAX_LEFT = 8, MAX_GENERATORS = 12, N_LISTS = 2 };

/* Vectors that the functionals so far do not tell apart. */
struct left {
	uint32_t n;
	uint64_t vectors[MAX_LEFT];
};

/* Of one access: [0] the lanes of a phase, [1] of two phases that merge when nothing collides. */
struct left_of_access {
	struct left lists[N_LISTS];
};

struct bank_state {
	struct left_of_access accesses[SWIZZLE_MAX_ACCESSES];
};

/* A functional to choose: `base` plus any sum of the generators. */
struct choice {
	uint64_t base;
	uint32_t n;
	uint64_t generators[MAX_GENERATORS];
	bool is_free;
};

struct bank_search {
	const struct f2_tile *tile;
	const struct f2_flag *flag; /* at least a word */
	uint32_t n_accesses;
	int64_t weights[SWIZZLE_MAX_ACCESSES]; /* wavefronts that stand for one a phase */
	bool merges[SWIZZLE_MAX_ACCESSES];     /* lanes pair up, so that two phases may be one */
	uint32_t n_choices;
	struct choice choices[BANK_BITS];
	bool all_generators; /* none was left out for want of room */
	int64_t budget;
	uint64_t chosen[BANK_BITS], best[BANK_BITS];
	int64_t best_cost; /* -1: none yet */
};

static int parity(uint64_t bits)
{
	return __builtin_parityll(bits);
}

/* ---- costs ---- */

/* Wavefronts when `after` functionals are still to come, at least. */
static int64_t least_cost(const struct bank_search *search, const struct bank_state *state,
                          uint32_t after)
{
	int64_t cost = 0;

	for (uint32_t a = 0; a < search->n_accesses; a++) {
		const struct left *lists = state->accesses[a].lists;
		uint32_t alone = lists[0].n > after ? lists[0].n - after : 0;
		int64_t wavefronts = (int64_t)1 << alone;

		if (search->merges[a])
			wavefronts = lists[1].n <= after ? 1 : 2 * wavefronts;
		cost += search->weights[a] * wavefronts;
	}
	return cost;
}

static void tell_apart(struct left *left, uint64_t functional)
{
	uint32_t n = 0;
	uint64_t pivot = 0;

	for (uint32_t i = 0; i < left->n; i++) {
		uint64_t vector = left->vectors[i];

		if (!parity(vector & functional))
			left->vectors[n++] = vector;
		else if (pivot)
			left->vectors[n++] = vector ^ pivot;
		else
			pivot = vector;
	}
	left->n = n;
}

static void apply_functional(const struct bank_search *search, struct bank_state *state,
                             uint64_t functional)
{
	for (uint32_t a = 0; a < search->n_accesses; a++)
		for (int list = 0; list <= search->merges[a]; list++)
			tell_apart(&state->accesses[a].lists[list], functional);
}

/* ---- spaces ---- */

/* What a functional must be: 0 on a space, bit i of `values` on vector i. */
struct demand {
	const struct f2_space *zero;
	const uint64_t *vectors;
	uint32_t n;
	uint64_t values;
};

/* False when the demands contradict one another. */
static bool functional_of(uint32_t n_bits, const struct demand *demand, uint64_t *out)
{
	uint32_t n = demand->n;
	struct f2_map equations = { .n_in = n_bits, .n_out = demand->zero->n + n };

	assert(demand->zero->n + n <= F2_MAX_DIM);
	for (uint32_t i = 0; i < n_bits; i++) {
		for (uint32_t j = 0; j < n; j++)
			equations.columns[i] |= (demand->vectors[j] >> i & 1) << j;
		for (uint32_t j = 0; j < demand->zero->n; j++)
			equations.columns[i] |= (demand->zero->basis[j] >> i & 1) << (n + j);
	}
	return f2_solve(&equations, demand->values, out);
}

/* The functionals that vanish on a space. */
static struct f2_space annihilator(const struct f2_space *space, uint32_t n_bits)
{
	struct f2_map map = { .n_in = n_bits, .n_out = space->n };

	for (uint32_t i = 0; i < n_bits; i++)
		for (uint32_t j = 0; j < space->n; j++)
			map.columns[i] |= (space->basis[j] >> i & 1) << j;
	return f2_kernel(&map);
}

static void add_left(struct left *left, struct f2_space *span, uint64_t vector)
{
	if (f2_space_add(span, vector)) {
		assert(left->n < MAX_LEFT);
		left->vectors[left->n++] = vector;
	}
}

/* Lanes that one wavefront serves at `bytes` a lane. */
static uint32_t phase_lane_bits(const struct tile_access *access, uint32_t bytes)
{
	if (access->op == BANK_CP_ASYNC && bytes == 16)
		return 0;
	return bytes <= 4 ? 5 : bytes == 8 ? 4 : 3;
}

static bool lanes_pair(const struct tile_access *access, const struct linear_access *linear,
                       uint32_t bytes)
{
	return access->op == BANK_LD && bytes >= 8 && (linear->lanes[0] == 0 || linear->lanes[1] == 0);
}

/* Wavefronts when each phase takes one: of merged phases together. */
static int64_t phase_weight(const struct f2_tile *tile, uint32_t a, uint32_t bytes)
{
	const struct tile_access *access = &tile->problem->accesses[a];
	uint32_t n_phases = swizzle_phases(access, bytes);

	if (lanes_pair(access, &tile->accesses[a], bytes))
		n_phases /= 2;
	return access->weight * access->n_steps * access->n_slots * problem_elem_bytes(tile->problem) /
	       bytes * n_phases;
}

/* Lanes of a phase, or of two that merge (`list` 1). */
static struct f2_space phase_lanes(const struct f2_tile *tile, uint32_t a, uint32_t bytes,
                                   uint32_t list)
{
	const struct linear_access *linear = &tile->accesses[a];
	uint32_t bits = phase_lane_bits(&tile->problem->accesses[a], bytes) + list;
	struct f2_space lanes = { 0 };

	for (uint32_t i = 0; i < bits && i < linear->n_lane_bits; i++)
		f2_space_add(&lanes, linear->lanes[i] << tile->inner);
	return lanes;
}

/*
 * log2 of the words that meet in one bank, at least: wide instructions hold bits w .. i of the
 * offset constant on `fixed[i]`, so lanes inside it share 2^(5 - (i + 1 - w)) banks.
 */
static uint32_t forced_conflict(const struct f2_tile *tile, const struct f2_flag *flag,
                                const struct f2_space *lanes)
{
	uint32_t forced = 0;

	for (uint32_t i = tile->word_bits; i < flag->n; i++) {
		struct f2_space both = f2_intersection(lanes, &flag->fixed[i]);
		uint32_t banks = BANK_BITS - (i + 1 - tile->word_bits);

		if (both.n > banks + forced)
			forced = both.n - banks;
	}
	return forced;
}

int64_t swizzle_conflict_bound(const struct f2_tile *tile, const uint32_t *levels,
                               const struct f2_flag *flag)
{
	int64_t cost = 0;

	for (uint32_t a = 0; a < tile->n_accesses; a++) {
		uint32_t bytes = 1u << (levels[a] + tile->atom_log);
		struct f2_space lanes = phase_lanes(tile, a, bytes, 0);
		int64_t wavefronts = (int64_t)1 << forced_conflict(tile, flag, &lanes);

		if (lanes_pair(&tile->problem->accesses[a], &tile->accesses[a], bytes)) {
			lanes = phase_lanes(tile, a, bytes, 1);
			wavefronts = forced_conflict(tile, flag, &lanes) > 0 ? 2 * wavefronts : 1;
		}
		cost += phase_weight(tile, a, bytes) * wavefronts;
	}
	return cost;
}

static void open_access(struct bank_search *search, struct bank_state *state, uint32_t a,
                        uint32_t level)
{
	const struct f2_tile *tile = search->tile;
	uint32_t bytes = 1u << (level + tile->atom_log);

	search->merges[a] = lanes_pair(&tile->problem->accesses[a], &tile->accesses[a], bytes);
	search->weights[a] = phase_weight(tile, a, bytes);
	for (uint32_t list = 0; list <= search->merges[a]; list++) {
		struct f2_space span = f2_span(search->flag->vectors, tile->word_bits);
		struct f2_space lanes = phase_lanes(tile, a, bytes, list);
		struct left *left = &state->accesses[a].lists[list];

		for (uint32_t i = tile->word_bits; i < level; i++)
			add_left(left, &span, search->flag->vectors[i]);
		for (uint32_t i = 0; i < lanes.n; i++)
			add_left(left, &span, lanes.basis[i]);
	}
}

/* Everything that some access has to tell apart. */
static struct f2_space all_left(const struct bank_search *search, const struct bank_state *state)
{
	struct f2_space space = { 0 };

	for (uint32_t a = 0; a < search->n_accesses; a++)
		for (int list = 0; list <= search->merges[a]; list++)
			for (uint32_t i = 0; i < state->accesses[a].lists[list].n; i++)
				f2_space_add(&space, state->accesses[a].lists[list].vectors[i]);
	return space;
}

/* Generators that differ on `seen`: only what the accesses see of a functional matters. */
static void add_generators(struct bank_search *search, struct choice *choice,
                           const struct f2_space *functionals, const struct f2_space *seen)
{
	struct f2_space images = { 0 };

	for (uint32_t i = functionals->n; i-- > 0;) {
		uint64_t image = 0;

		for (uint32_t j = 0; j < seen->n; j++)
			image |= (uint64_t)parity(functionals->basis[i] & seen->basis[j]) << j;
		if (!f2_space_add(&images, image))
			continue;
		if (choice->n == MAX_GENERATORS)
			search->all_generators = false;
		else
			choice->generators[choice->n++] = functionals->basis[i];
	}
}

/* ---- the functionals of the flag ---- */

/* Bit i of the offset on the flag: 1 on its own vector, 0 on those below it, where an order is kept
 * on all others too. */
static bool flag_functional(const struct f2_tile *tile, const struct f2_flag *flag, uint32_t i,
                            uint64_t *out)
{
	bool is_in_order = false;

	for (uint32_t a = 0; a < tile->n_accesses; a++)
		is_in_order |= tile->spaces[a].is_in_order;
	return functional_of(tile->n_bits,
	                     &(struct demand){ &flag->fixed[i], flag->vectors,
	                                       is_in_order ? flag->n : i + 1, (uint64_t)1 << i },
	                     out);
}

/* The functionals of the word go to `rows`; the choices of the banks are prepared. */
static bool open_choices(struct bank_search *search, const struct bank_state *state, uint64_t *rows)
{
	const struct f2_tile *tile = search->tile;
	const struct f2_flag *flag = search->flag;
	struct f2_space seen = all_left(search, state), whole = f2_span(flag->vectors, flag->n);

	search->all_generators = true;
	for (uint32_t i = 0; i < flag->n; i++)
		if (!flag_functional(tile, flag, i, &rows[i]))
			return false;
	for (uint32_t c = 0; c < search->n_choices; c++) {
		struct choice *choice = &search->choices[c];
		uint32_t bit = tile->word_bits + c;
		struct f2_space zero = whole;

		choice->is_free = bit >= flag->n;
		if (!choice->is_free) {
			zero = f2_sum(&whole, &flag->fixed[bit]);
			choice->base = rows[bit];
		}
		zero = annihilator(&zero, tile->n_bits);
		add_generators(search, choice, &zero, &seen);
	}
	return true;
}

/* ---- the search ---- */

/* The functional of a pattern over the generators. */
static uint64_t of_pattern(const struct choice *choice, uint64_t pattern)
{
	uint64_t functional = choice->base;

	for (; pattern; pattern &= pattern - 1)
		functional ^= choice->generators[__builtin_ctzll(pattern)];
	return functional;
}

/* Echelon form over the generators: each free space is met once. */
static bool is_canonical(uint64_t pattern, uint64_t pivots)
{
	uint64_t lowest = pattern & -pattern;

	return (pattern & pivots) == 0 && lowest > pivots;
}

struct depth {
	uint32_t at;
	bool all;        /* every functional that may be better; else those that lose nothing */
	uint64_t pivots; /* of the free patterns so far, when `all` */
};

static void choose(struct bank_search *search, const struct bank_state *state, struct depth depth)
{
	const struct choice *choice = &search->choices[depth.at];
	uint32_t after = search->n_choices - depth.at - 1;
	int64_t least = least_cost(search, state, after + 1);

	if (depth.at == search->n_choices) {
		search->best_cost = least_cost(search, state, 0);
		memcpy(search->best, search->chosen, sizeof(search->best));
		return;
	}
	for (uint64_t pattern = 0; pattern >> choice->n == 0 && search->budget > 0; pattern++) {
		struct bank_state next = *state;
		struct depth deeper = { depth.at + 1, depth.all, depth.pivots };
		int64_t cost;

		if (depth.all && choice->is_free) {
			if (!is_canonical(pattern, depth.pivots))
				continue;
			deeper.pivots |= pattern & -pattern;
		}
		search->budget--;
		search->chosen[depth.at] = of_pattern(choice, pattern);
		apply_functional(search, &next, search->chosen[depth.at]);
		cost = least_cost(search, &next, after);
		if (search->best_cost >= 0 && cost >= search->best_cost)
			continue;
		if (depth.all || cost == least)
			choose(search, &next, deeper);
		if (search->best_cost >= 0 && search->best_cost <= least)
			return;
	}
}

/* Takes what loses least at each step: always gives something. */
static void choose_greedily(struct bank_search *search, struct bank_state state)
{
	for (uint32_t c = 0; c < search->n_choices; c++) {
		const struct choice *choice = &search->choices[c];
		int64_t best = -1;

		for (uint64_t pattern = 0; pattern >> choice->n == 0; pattern++) {
			struct bank_state next = state;
			uint64_t functional = of_pattern(choice, pattern);
			int64_t cost;

			apply_functional(search, &next, functional);
			cost = least_cost(search, &next, search->n_choices - c - 1);
			if (best >= 0 && cost >= best)
				continue;
			best = cost;
			search->chosen[c] = functional;
		}
		apply_functional(search, &state, search->chosen[c]);
	}
	search->best_cost = least_cost(search, &state, 0);
	memcpy(search->best, search->chosen, sizeof(search->best));
}

/* ---- the matrix ---- */

/* Free functionals in echelon form, lowest bit first: the layout reads as digits and XOR terms. */
static void reduce_free(uint64_t *rows, uint32_t n)
{
	uint32_t done = 0;

	for (uint32_t bit = 0; bit < 64 && done < n; bit++) {
		uint32_t at = done;

		while (at < n && !(rows[at] >> bit & 1))
			at++;
		if (at == n)
			continue;
		uint64_t row = rows[at];

		rows[at] = rows[done];
		rows[done] = row;
		for (uint32_t i = 0; i < n; i++)
			if (i != done && rows[i] >> bit & 1)
				rows[i] ^= row;
		done++;
	}
}

/* The bits beyond the banks: units where the flag lets them be, else what vanishes on it. */
static uint32_t add_line_bits(const struct bank_search *search, struct f2_space *span,
                              uint64_t *rows, uint32_t n)
{
	struct f2_space flag = f2_span(search->flag->vectors, search->flag->n);
	struct f2_space lines = annihilator(&flag, search->tile->n_bits);

	for (uint32_t i = 0; i < search->tile->n_bits; i++)
		if (f2_contains(&lines, (uint64_t)1 << i) && f2_space_add(span, (uint64_t)1 << i))
			rows[n++] = (uint64_t)1 << i;
	for (uint32_t i = 0; i < lines.n; i++)
		if (f2_space_add(span, lines.basis[i]))
			rows[n++] = lines.basis[i];
	return n;
}

/* Offset bits: the flag's, the banks', then those of the line. Dependent ones are replaced. */
static void make_map(const struct bank_search *search, uint64_t *rows, struct f2_map *out)
{
	const struct f2_tile *tile = search->tile;
	uint32_t n = search->flag->n, first_free = 0;
	struct f2_space span = { 0 };

	for (uint32_t c = 0; c < search->n_choices; c++)
		if (!search->choices[c].is_free)
			rows[tile->word_bits + c] = search->best[c];
	for (uint32_t i = 0; i < n; i++)
		if (!f2_space_add(&span, rows[i]))
			BUG("the low bits of a swizzle depend on one another");
	while (first_free < search->n_choices && !search->choices[first_free].is_free)
		first_free++;
	for (uint32_t c = first_free; c < search->n_choices; c++)
		if (f2_space_add(&span, search->best[c]))
			rows[n++] = search->best[c];
	reduce_free(rows + search->flag->n, n - search->flag->n);
	n = add_line_bits(search, &span, rows, n);
	assert(n == tile->n_bits);
	*out = (struct f2_map){ .n_in = tile->n_bits, .n_out = tile->n_bits };
	for (uint32_t i = 0; i < tile->n_bits; i++)
		for (uint32_t bit = 0; bit < tile->n_bits; bit++)
			out->columns[i] |= (rows[bit] >> i & 1) << bit;
}

/* The flag up to a whole word: lanes of one access after the other, then anything. */
static void fill_word(const struct f2_tile *tile, struct f2_flag *flag)
{
	struct f2_space span = f2_span(flag->vectors, flag->n);

	for (uint32_t n = 0; n < tile->n_accesses; n++) {
		uint32_t a = (n + flag->variant) % tile->n_accesses;
		uint32_t turn = flag->variant / tile->n_accesses;

		for (uint32_t i = 0; i < tile->accesses[a].n_lane_bits; i++) {
			uint64_t lane = tile->accesses[a].lanes[(i + turn) % tile->accesses[a].n_lane_bits];

			if (flag->n < tile->word_bits && f2_space_add(&span, lane << tile->inner))
				flag->vectors[flag->n++] = lane << tile->inner;
		}
	}
	for (uint32_t i = 0; i < tile->n_bits; i++)
		if (flag->n < tile->word_bits && f2_space_add(&span, (uint64_t)1 << i))
			flag->vectors[flag->n++] = (uint64_t)1 << i;
}

/* The word's atoms are settled by an access of just that width, or by the element. */
static bool word_is_unique(const struct f2_tile *tile, const uint32_t *levels)
{
	bool is_unique = tile->word_bits <= tile->inner;

	for (uint32_t a = 0; a < tile->n_accesses; a++)
		is_unique |= levels[a] == tile->word_bits;
	return is_unique;
}

bool swizzle_choose_banks(const struct f2_tile *tile, const uint32_t *levels,
                          const struct f2_flag *flag, int64_t *budget, struct bank_answer *out)
{
	struct f2_flag whole = *flag;
	struct bank_search search = {
		.tile = tile, .flag = &whole, .n_accesses = tile->n_accesses, .best_cost = -1
	};
	struct bank_state state = { 0 };
	uint64_t rows[F2_MAX_DIM];
	bool is_unique = flag->is_unique && word_is_unique(tile, levels);

	fill_word(tile, &whole);
	for (uint32_t a = 0; a < search.n_accesses; a++)
		open_access(&search, &state, a, levels[a]);
	if (tile->n_bits > tile->word_bits)
		search.n_choices = tile->n_bits - tile->word_bits;
	if (search.n_choices > BANK_BITS)
		search.n_choices = BANK_BITS;
	if (!open_choices(&search, &state, rows))
		return false;
	out->bound = least_cost(&search, &state, search.n_choices);
	/* A quarter for the straight way, what is left for the proof that there is none. */
	search.budget = *budget / 4;
	*budget -= search.budget;
	choose(&search, &state, (struct depth){ 0, false, 0 });
	if (search.best_cost < 0)
		choose_greedily(&search, state);
	*budget += search.budget;
	search.budget = *budget;
	if (search.best_cost > out->bound && search.budget > 0) {
		choose(&search, &state, (struct depth){ 0, true, 0 });
		if (search.budget > 0 && is_unique && search.all_generators)
			out->bound = search.best_cost;
	}
	*budget = search.budget;
	out->cost = search.best_cost;
	make_map(&search, rows, &out->map);
	return true;
}
