/*
 * Layouts that are linear over F2 and serve linear accesses without conflicts.
 *
 * A layout L is decided, as far as wavefronts go, by two things (docs/swizzles.md has the proof):
 *   - the flag: E_k is the space of elements that L puts into the lowest k bits of the offset. An
 *     access has instructions of 2^k elements exactly when E_k lies in the span of its slots.
 *   - the line space S: the elements on bank 0 (the word's own bits, then one word a 128-byte
 *     line). A phase whose lanes and slots span Q takes 2^dim(Q n S over the word) wavefronts.
 * For two accesses with spaces P and Q a conflict-free S always exists: the unit vectors outside
 * P + Q, then sums p_i + q_i of vectors of P and of Q that lie outside the other. For more accesses
 * S is built vector by vector, each the one that costs least.
 *
 * Elements are counted in atoms: the element, or 4 bytes of it when it is wider.
 */
#include "analyzer/layout/swizzle_internal.h"

#include <assert.h>
#include <string.h>

enum { BANK_BITS = 5, WORD_LOG = 2, MAX_FLAG = 8 };

/* ---- accesses as linear maps ---- */

static uint32_t used_lane_bits(const struct tile_access *access)
{
	if (access->op != BANK_LDMATRIX && access->op != BANK_STMATRIX)
		return 5;
	return access->n_matrices == 4 ? 5 : access->n_matrices == 2 ? 4 : 3;
}

static int32_t elem_at(const struct tile_access *access, int64_t step, uint32_t lane, uint32_t slot)
{
	return access->elems[((size_t)step * SWIZZLE_LANES + lane) * access->n_slots + slot];
}

/* Slots of one (step, lane) against the columns. */
static bool lane_is_linear(const struct tile_access *access, const struct linear_access *linear,
                           int64_t step, uint32_t lane)
{
	uint64_t base = 0;

	for (uint32_t i = 0; i < linear->n_step_bits; i++)
		base ^= step >> i & 1 ? linear->steps[i] : 0;
	for (uint32_t i = 0; i < linear->n_lane_bits; i++)
		base ^= lane >> i & 1 ? linear->lanes[i] : 0;
	for (uint32_t slot = 0; slot < access->n_slots; slot++) {
		uint64_t elem = base;

		for (uint32_t i = 0; i < linear->n_slot_bits; i++)
			elem ^= slot >> i & 1 ? linear->slots[i] : 0;
		if (elem_at(access, step, lane, slot) != (int32_t)elem)
			return false;
	}
	return true;
}

bool swizzle_linear(const struct swizzle_problem *problem, const struct tile_access *access,
                    struct linear_access *out)
{
	int slot_bits = swizzle_log2(access->n_slots), step_bits = swizzle_log2(access->n_steps);

	*out = (struct linear_access){ .n_lane_bits = used_lane_bits(access) };
	for (uint32_t d = 0; d < problem->rank; d++)
		if (swizzle_log2(problem->shape[d]) < 0)
			return false;
	if (slot_bits < 0 || slot_bits > 16 || step_bits < 0 || step_bits > 32 ||
	    elem_at(access, 0, 0, 0) != 0)
		return false;
	out->n_slot_bits = (uint32_t)slot_bits;
	out->n_step_bits = (uint32_t)step_bits;
	for (uint32_t i = 0; i < out->n_slot_bits; i++)
		out->slots[i] = (uint64_t)elem_at(access, 0, 0, 1u << i);
	for (uint32_t i = 0; i < out->n_lane_bits; i++)
		out->lanes[i] = (uint64_t)elem_at(access, 0, 1u << i, 0);
	for (uint32_t i = 0; i < out->n_step_bits; i++)
		out->steps[i] = (uint64_t)elem_at(access, (int64_t)1 << i, 0, 0);
	for (int64_t step = 0; step < access->n_steps; step++)
		for (uint32_t lane = 0; lane < 1u << out->n_lane_bits; lane++)
			if (!lane_is_linear(access, out, step, lane))
				return false;
	return true;
}

/* ---- the flag ---- */

/* vectors[0 .. k-1] span E_k where bit k of `fixed` is set; others may still be exchanged. */
struct flag {
	uint32_t n;
	uint64_t vectors[MAX_FLAG];
	uint32_t fixed;
};

static struct f2_space flag_level(const struct flag *flag, uint32_t k)
{
	return f2_span(flag->vectors, k);
}

/* Vectors of `from` that are new to the flag's span go behind its first `at`, up to level `to`. */
static uint32_t flag_extend(struct flag *flag, uint32_t at, uint32_t to,
                            const struct f2_space *from)
{
	struct f2_space span = f2_span(flag->vectors, at);

	/* The lowest bits first: they are the slots' own order in most accesses. */
	for (uint32_t i = from->n; i-- > 0 && at < to;)
		if (f2_space_add(&span, from->basis[i]))
			flag->vectors[at++] = from->basis[i];
	return at;
}

/* Makes a level of the flag inside `slots`, as close to `want` as it goes; gives that level. */
static uint32_t flag_add(struct flag *flag, const struct f2_space *slots,
                         const struct f2_space *preferred, uint32_t want)
{
	uint32_t level = 0, next, got;
	struct f2_space above, inside;
	struct flag old = *flag;

	for (uint32_t k = 1; k <= flag->n && k <= want; k++) {
		struct f2_space space = flag_level(flag, k);

		if (flag->fixed >> k & 1 && f2_subspace(&space, slots))
			level = k;
	}
	next = level + 1;
	while (next <= flag->n && !(flag->fixed >> next & 1))
		next++;
	if (level == want)
		return level;
	if (next > flag->n) {
		got = flag_extend(flag, level, want, preferred);
		got = flag_extend(flag, got, want, slots);
		flag->n = got;
		flag->fixed |= 1u << got;
		return got;
	}
	above = flag_level(&old, next);
	inside = f2_intersection(slots, &above);
	got = flag_extend(flag, level, want < next ? want : next, &inside);
	flag->fixed |= 1u << got;
	flag_extend(flag, got, next, &above);
	return got;
}

/* ---- one construction ---- */

struct construction {
	const struct swizzle_problem *problem;
	const struct linear_access *accesses;
	uint32_t n_bits;    /* of atom numbers */
	uint32_t atom_log;  /* bytes of an atom */
	uint32_t inner;     /* bits of atoms inside an element */
	uint32_t word_bits; /* of atoms inside a word */
	struct flag flag;
	struct f2_space phases[SWIZZLE_MAX_ACCESSES]; /* Q: lanes of a phase, slots, word */
	int64_t weights[SWIZZLE_MAX_ACCESSES];        /* wavefronts that one phase stands for */
};

static uint64_t lift(const struct construction *c, uint64_t elem)
{
	return elem << c->inner;
}

static struct f2_space slot_space(const struct construction *c, uint32_t access)
{
	const struct linear_access *linear = &c->accesses[access];
	struct f2_space space = { 0 };

	for (uint32_t i = 0; i < c->inner; i++)
		f2_space_add(&space, (uint64_t)1 << i);
	for (uint32_t i = 0; i < linear->n_slot_bits; i++)
		f2_space_add(&space, lift(c, linear->slots[i]));
	return space;
}

static uint32_t wanted_level(const struct construction *c, const struct tile_access *access)
{
	return (uint32_t)swizzle_log2(access->bytes) - c->atom_log;
}

/* Vectors that all accesses, or else as many as possible, hold in one lane's slots. */
static struct f2_space shared_slots(const struct construction *c, uint32_t lead)
{
	struct f2_space best = slot_space(c, lead);

	for (uint32_t a = 0; a < c->problem->n_accesses; a++) {
		struct f2_space slots = slot_space(c, a);
		struct f2_space both = f2_intersection(&best, &slots);

		if (both.n > c->inner)
			best = both;
	}
	return best;
}

static bool is_fixed_width(const struct tile_access *access)
{
	return access->op == BANK_LDMATRIX || access->op == BANK_STMATRIX ||
	       (access->op == BANK_CP_ASYNC && access->bytes == 16);
}

/* Lanes that one wavefront can serve at `bytes` a lane. */
static uint32_t phase_lane_bits(const struct tile_access *access,
                                const struct linear_access *linear, uint32_t bytes)
{
	bool pairs = access->op == BANK_LD && (linear->lanes[0] == 0 || linear->lanes[1] == 0);

	if (access->op == BANK_CP_ASYNC && bytes == 16)
		return 0;
	if (bytes <= 4)
		return 5;
	return bytes == 8 ? 4 + pairs : 3 + pairs;
}

static bool add_access(struct construction *c, uint32_t a, uint32_t lead)
{
	const struct tile_access *access = &c->problem->accesses[a];
	struct f2_space slots = slot_space(c, a), preferred = shared_slots(c, lead);
	uint32_t want = wanted_level(c, access), got;

	preferred = f2_intersection(&preferred, &slots);
	got = flag_add(&c->flag, &slots, &preferred, want);
	return got == want || !is_fixed_width(access);
}

static bool make_flag(struct construction *c, uint32_t lead)
{
	for (uint32_t i = 0; i < c->inner; i++)
		c->flag.vectors[c->flag.n++] = (uint64_t)1 << i;
	c->flag.fixed = 1u | 1u << c->inner;
	if (!add_access(c, lead, lead))
		return false;
	for (uint32_t a = 0; a < c->problem->n_accesses; a++)
		if (a != lead && !add_access(c, a, lead))
			return false;
	if (c->problem->keep_rows_whole) {
		struct f2_space row = { 0 };
		uint32_t want = 4 - c->atom_log;

		for (uint32_t i = 0; i < want; i++)
			f2_space_add(&row, (uint64_t)1 << i);
		if (flag_add(&c->flag, &row, &row, want) != want)
			return false;
	}
	return true;
}

/* The level of the flag that holds a whole word; lanes of `lead` fill it up when slots do not. */
static void fill_word(struct construction *c, uint32_t lead)
{
	struct f2_space lanes = { 0 }, all = { 0 };

	for (uint32_t i = 0; i < c->accesses[lead].n_lane_bits; i++)
		f2_space_add(&lanes, lift(c, c->accesses[lead].lanes[i]));
	for (uint32_t i = 0; i < c->n_bits; i++)
		f2_space_add(&all, (uint64_t)1 << i);
	if (c->flag.n < c->word_bits)
		c->flag.n = flag_extend(&c->flag, c->flag.n, c->word_bits, &lanes);
	if (c->flag.n < c->word_bits)
		c->flag.n = flag_extend(&c->flag, c->flag.n, c->word_bits, &all);
}

/* The bytes a lane that the flag gives access `a`. */
static uint32_t width_bytes(const struct construction *c, uint32_t a)
{
	struct f2_space slots = slot_space(c, a);
	uint32_t level = 0, want = wanted_level(c, &c->problem->accesses[a]);

	for (uint32_t k = 1; k <= want && k <= c->flag.n; k++) {
		struct f2_space space = flag_level(&c->flag, k);

		if (f2_subspace(&space, &slots))
			level = k;
	}
	return 1u << (level + c->atom_log);
}

static void make_phases(struct construction *c, uint32_t a)
{
	const struct tile_access *access = &c->problem->accesses[a];
	const struct linear_access *linear = &c->accesses[a];
	uint32_t bytes = width_bytes(c, a), n_lanes = phase_lane_bits(access, linear, bytes);
	uint32_t level = (uint32_t)swizzle_log2(bytes) - c->atom_log;
	struct f2_space *space = &c->phases[a];

	*space = f2_span(c->flag.vectors, level > c->word_bits ? level : c->word_bits);
	for (uint32_t i = 0; i < n_lanes && i < linear->n_lane_bits; i++)
		f2_space_add(space, lift(c, linear->lanes[i]));
	c->weights[a] = access->weight * access->n_steps * access->n_slots *
	                (int64_t)(problem_elem_bytes(c->problem)) / bytes;
}

/* ---- the line space ---- */

static int64_t line_cost(const struct construction *c, const struct f2_space *lines)
{
	int64_t cost = 0;

	for (uint32_t a = 0; a < c->problem->n_accesses; a++) {
		struct f2_space meet = f2_intersection(&c->phases[a], lines);

		cost += c->weights[a] << (meet.n - c->word_bits);
	}
	return cost;
}

/* Vectors of a's basis that lie outside b. */
static uint32_t outside(const struct f2_space *a, const struct f2_space *b, uint64_t *out)
{
	struct f2_space span = *b;
	uint32_t n = 0;

	for (uint32_t i = a->n; i-- > 0;)
		if (f2_space_add(&span, a->basis[i]))
			out[n++] = a->basis[i];
	return n;
}

/* Conflict-free for accesses a and b: see the head of the file. */
static struct f2_space pair_lines(const struct construction *c, uint32_t a, uint32_t b)
{
	struct f2_space lines = f2_span(c->flag.vectors, c->word_bits);
	struct f2_space sum = f2_sum(&c->phases[a], &c->phases[b]);
	struct f2_space free_bits = f2_complement(&sum, c->n_bits);
	uint64_t p[F2_MAX_DIM], q[F2_MAX_DIM];
	uint32_t n_p = outside(&c->phases[a], &c->phases[b], p);
	uint32_t n_q = outside(&c->phases[b], &c->phases[a], q);
	uint32_t n_lines = c->n_bits - BANK_BITS;

	for (uint32_t i = free_bits.n; i-- > 0 && lines.n < n_lines;)
		f2_space_add(&lines, free_bits.basis[i]);
	for (uint32_t i = 0; i < n_p && i < n_q && lines.n < n_lines; i++)
		f2_space_add(&lines, p[i] ^ q[i]);
	assert(lines.n == n_lines);
	return lines;
}

/* Cost of taking `vector` into the line space; -1 when it may not be: it is there, or the flag
 * would no longer reach its banks. */
static int64_t step_cost(const struct construction *c, const struct f2_space *lines,
                         const struct f2_space *blocked, const struct f2_space *sums,
                         uint64_t vector)
{
	int64_t cost = 0;

	if (f2_contains(blocked, vector))
		return -1;
	for (uint32_t a = 0; a < c->problem->n_accesses; a++)
		if (f2_contains(&sums[a], vector)) {
			struct f2_space meet = f2_intersection(&c->phases[a], lines);

			cost += c->weights[a] << (meet.n - c->word_bits);
		}
	return cost;
}

/* The next vector with as many bits set, in rising order (0 after the last below 2^n_bits). */
static uint64_t next_of_weight(uint64_t vector, uint32_t n_bits)
{
	uint64_t low = vector & -vector, ripple = vector + low;
	uint64_t next = ripple | (((vector ^ ripple) >> 2) / low);

	return next >> n_bits ? 0 : next;
}

/* The cheapest vector of few bits; vectors with all numbers of bits when the tile is small. */
static uint64_t cheapest_vector(const struct construction *c, const struct f2_space *lines)
{
	struct f2_space blocked = f2_span(c->flag.vectors, c->flag.n);
	struct f2_space sums[SWIZZLE_MAX_ACCESSES];
	uint32_t max_weight = c->n_bits <= 12 ? c->n_bits : 4;
	uint64_t best = 0;
	int64_t best_cost = 0;

	blocked = f2_sum(&blocked, lines);
	for (uint32_t a = 0; a < c->problem->n_accesses; a++)
		sums[a] = f2_sum(&c->phases[a], lines);
	for (uint32_t weight = 1; weight <= max_weight; weight++)
		for (uint64_t v = ((uint64_t)1 << weight) - 1; v; v = next_of_weight(v, c->n_bits)) {
			int64_t cost = step_cost(c, lines, &blocked, sums, v);

			if (cost < 0 || (best && cost >= best_cost))
				continue;
			best = v;
			best_cost = cost;
			if (cost == 0)
				return best;
		}
	return best;
}

/* Some vector of at most 4 bits is always free: unit vectors span everything. */
static struct f2_space greedy_lines(const struct construction *c)
{
	struct f2_space lines = f2_span(c->flag.vectors, c->word_bits);

	while (lines.n < c->n_bits - BANK_BITS)
		f2_space_add(&lines, cheapest_vector(c, &lines));
	return lines;
}

/* The flag meets the line space in the word alone: its vectors are on different banks. */
static bool lines_fit_flag(const struct construction *c, const struct f2_space *lines)
{
	struct f2_space flag = f2_span(c->flag.vectors, c->flag.n);
	struct f2_space meet = f2_intersection(&flag, lines);

	return meet.n == c->word_bits || flag.n < c->word_bits;
}

static struct f2_space best_lines(const struct construction *c)
{
	uint32_t n = c->problem->n_accesses;
	struct f2_space best = pair_lines(c, 0, n - 1);
	int64_t best_cost;

	if (n > 2 || !lines_fit_flag(c, &best))
		best = greedy_lines(c);
	best_cost = line_cost(c, &best);

	for (uint32_t a = 0; n > 2 && a < n; a++)
		for (uint32_t b = a + 1; b < n; b++) {
			struct f2_space lines = pair_lines(c, a, b);
			int64_t cost = line_cost(c, &lines);

			if (cost < best_cost && lines_fit_flag(c, &lines)) {
				best = lines;
				best_cost = cost;
			}
		}
	return best;
}

/* ---- the matrix ---- */

/*
 * Basis: the flag, unit vectors up to a whole line, unit vectors u_j beyond. In its coordinates the
 * line space has vectors u_j + x_j; L(u_j) = line j + the banks of x_j, so that they land on
 * bank 0.
 */
static void make_map(const struct construction *c, const struct f2_space *lines,
                     struct f2_map *atoms)
{
	struct f2_map basis = { .n_in = c->n_bits, .n_out = c->n_bits }, coordinates;
	struct f2_space span = f2_span(c->flag.vectors, c->flag.n), with_lines;
	uint32_t n = c->flag.n, line = c->word_bits + BANK_BITS;
	uint64_t in_line = ((uint64_t)1 << (line < c->n_bits ? line : c->n_bits)) - 1;
	uint64_t word = ((uint64_t)1 << c->word_bits) - 1;
	struct f2_map rest = { .n_in = c->n_bits, .n_out = c->n_bits };

	memcpy(basis.columns, c->flag.vectors, n * sizeof(basis.columns[0]));
	with_lines = f2_sum(&span, lines);
	for (uint32_t i = 0; i < c->n_bits && n < line; i++)
		if (f2_space_add(&with_lines, (uint64_t)1 << i)) {
			f2_space_add(&span, (uint64_t)1 << i);
			basis.columns[n++] = (uint64_t)1 << i;
		}
	for (uint32_t i = 0; i < c->n_bits; i++)
		if (f2_space_add(&span, (uint64_t)1 << i))
			basis.columns[n++] = (uint64_t)1 << i;
	assert(n == c->n_bits);
	if (!f2_inverse(&basis, &coordinates))
		BUG("the basis of a swizzle is not one");
	for (uint32_t i = 0; i < c->n_bits; i++)
		rest.columns[i] = (uint64_t)1 << i;
	if (line < c->n_bits) {
		struct f2_space reduced = { 0 };

		/* Echelon form with the line coordinates leading: u_j + x_j. */
		for (uint32_t i = 0; i < lines->n; i++)
			f2_space_add(&reduced, f2_apply(&coordinates, lines->basis[i]));
		for (uint32_t i = 0; i < reduced.n; i++)
			if (reduced.basis[i] & ~in_line) {
				int j = 63 - __builtin_clzll(reduced.basis[i]);

				rest.columns[j] ^= reduced.basis[i] & in_line & ~word;
			}
	}
	*atoms = f2_compose(&rest, &coordinates);
}

int64_t problem_elem_bytes(const struct swizzle_problem *problem)
{
	return problem->elem_bits / 8;
}

bool swizzle_construct(const struct swizzle_problem *problem, const struct linear_access *accesses,
                       uint32_t lead, struct f2_map *out)
{
	struct construction c = { .problem = problem, .accesses = accesses };
	uint32_t elem_log = (uint32_t)swizzle_log2(problem_elem_bytes(problem));
	uint32_t n_elem_bits = (uint32_t)swizzle_log2(swizzle_n_elems(problem));
	struct f2_map atoms;
	struct f2_space lines;

	c.atom_log = elem_log < WORD_LOG ? elem_log : WORD_LOG;
	c.inner = elem_log - c.atom_log;
	c.word_bits = WORD_LOG - c.atom_log;
	c.n_bits = n_elem_bits + c.inner;
	if (c.n_bits < c.word_bits || !make_flag(&c, lead))
		return false;
	fill_word(&c, lead);
	for (uint32_t a = 0; a < problem->n_accesses; a++)
		make_phases(&c, a);
	lines =
		c.n_bits > c.word_bits + BANK_BITS ? best_lines(&c) : f2_span(c.flag.vectors, c.word_bits);
	make_map(&c, &lines, &atoms);
	*out = (struct f2_map){ .n_in = n_elem_bits, .n_out = c.n_bits + c.atom_log };
	for (uint32_t i = 0; i < n_elem_bits; i++)
		out->columns[i] = atoms.columns[i + c.inner] << c.atom_log;
	return true;
}

uint32_t swizzle_common_bytes(const struct swizzle_problem *problem,
                              const struct linear_access *first, const struct linear_access *second,
                              uint32_t bytes)
{
	struct f2_space a = f2_span(first->slots, first->n_slot_bits);
	struct f2_space b = f2_span(second->slots, second->n_slot_bits);
	struct f2_space both = f2_intersection(&a, &b);
	uint32_t shared = (uint32_t)problem_elem_bytes(problem) << both.n;

	return bytes <= shared ? 16 : shared;
}
