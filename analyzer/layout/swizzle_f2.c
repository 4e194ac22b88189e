/*
 * Accesses as linear maps over F2, and the widths that one layout can give them together.
 *
 * A lane's slots span R, its lanes and steps span D: the access touches every sum of one of R and
 * one of D. Elements are counted in atoms: the element, or 4 bytes of it when it is wider.
 * docs/swizzles.md has the theorem that is used here.
 */
#include "analyzer/layout/swizzle_internal.h"

#include <assert.h>
#include <string.h>

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

/* ---- the tile in atoms ---- */

static uint64_t lift(const struct f2_tile *tile, uint64_t elem)
{
	return elem << tile->inner;
}

bool swizzle_is_in_order(const struct tile_access *access)
{
	return access->op == BANK_LDMATRIX || access->op == BANK_STMATRIX ||
	       access->op == BANK_CP_ASYNC;
}

/* Slots, places and phases of an access whose instructions take 2^level atoms are looked up by
 * level. */
static void open_access(struct f2_tile *tile, uint32_t a)
{
	const struct tile_access *access = &tile->problem->accesses[a];
	const struct linear_access *linear = &tile->accesses[a];
	struct f2_access *out = &tile->spaces[a];

	out->is_in_order = swizzle_is_in_order(access);
	out->max_level = (uint32_t)swizzle_log2(access->bytes) - tile->atom_log;
	if (out->max_level > linear->n_slot_bits + tile->inner)
		out->max_level = linear->n_slot_bits + tile->inner;
	out->min_level = out->is_in_order ? out->max_level : tile->inner;
	for (uint32_t i = 0; i < tile->inner; i++)
		f2_space_add(&out->slots, (uint64_t)1 << i);
	for (uint32_t i = 0; i < linear->n_slot_bits; i++)
		f2_space_add(&out->slots, lift(tile, linear->slots[i]));
	for (uint32_t i = 0; i < linear->n_lane_bits; i++)
		f2_space_add(&out->others, lift(tile, linear->lanes[i]));
	for (uint32_t i = 0; i < linear->n_step_bits; i++)
		f2_space_add(&out->others, lift(tile, linear->steps[i]));
	/* What keeps its order cannot have other slots in its low bits either. */
	for (uint32_t i = out->max_level - tile->inner; out->is_in_order && i < linear->n_slot_bits;
	     i++)
		f2_space_add(&out->others, lift(tile, linear->slots[i]));
}

void swizzle_open_tile(const struct swizzle_problem *problem, const struct linear_access *accesses,
                       struct f2_tile *out)
{
	uint32_t elem_log = (uint32_t)swizzle_log2(problem_elem_bytes(problem));

	memset(out, 0, sizeof(*out));
	out->problem = problem;
	out->accesses = accesses;
	out->atom_log = elem_log < WORD_LOG ? elem_log : WORD_LOG;
	out->inner = elem_log - out->atom_log;
	out->word_bits = WORD_LOG - out->atom_log;
	out->n_bits = (uint32_t)swizzle_log2(swizzle_n_elems(problem)) + out->inner;
	out->n_accesses = problem->n_accesses;
	for (uint32_t a = 0; a < problem->n_accesses; a++)
		open_access(out, a);
}

/* ---- widths that go together ---- */

/* Slots that all accesses of at least `level` hold, and what must not move their low bits. */
static void common_spaces(const struct f2_tile *tile, const uint32_t *levels, uint32_t level,
                          struct f2_space *slots, struct f2_space *others)
{
	bool any = false;

	memset(others, 0, sizeof(*others));
	for (uint32_t a = 0; a < tile->n_accesses; a++) {
		if (levels[a] < level)
			continue;
		*slots = any ? f2_intersection(slots, &tile->spaces[a].slots) : tile->spaces[a].slots;
		*others = f2_sum(others, &tile->spaces[a].others);
		any = true;
	}
	assert(any);
}

/* The first slot vectors of an access that keeps its order. */
static uint64_t ordered_vector(const struct f2_tile *tile, uint32_t a, uint32_t i)
{
	return i < tile->inner ? (uint64_t)1 << i
	                       : lift(tile, tile->accesses[a].slots[i - tile->inner]);
}

/* Vector `t` of a space in the order of a variant: variant 0 has the basis first, its lowest bits
 * leading, since they are the slots' own order in most accesses; 0 after the last. */
static uint64_t nth_vector(const struct f2_space *space, uint32_t variant, uint32_t t)
{
	uint64_t vector = 0;
	uint32_t size = 1u << (space->n < 8 ? space->n : 8), pattern;

	if (variant == 0)
		return t < space->n ? space->basis[space->n - 1 - t] : 0;
	if (t + 1 >= size)
		return 0;
	pattern = ((t + 1) * (2 * variant + 1)) & (size - 1);
	for (uint32_t i = 0; i < space->n && i < 8; i++)
		vector ^= pattern >> i & 1 ? space->basis[space->n - 1 - i] : 0;
	return vector;
}

/* Extends the flag to `level` inside `slots`, outside `others`; an access that keeps its order
 * names the vectors itself. */
static bool extend_flag(const struct f2_tile *tile, const uint32_t *levels, uint32_t level,
                        struct f2_flag *flag)
{
	struct f2_space slots, others, span;
	uint32_t leader = UINT32_MAX;
	uint64_t vector;

	common_spaces(tile, levels, level, &slots, &others);
	flag->is_unique = flag->is_unique && slots.n == level;
	for (uint32_t i = flag->n; i < level; i++)
		flag->fixed[i] = others;
	span = f2_span(flag->vectors, flag->n);
	span = f2_sum(&span, &others);
	for (uint32_t a = 0; a < tile->n_accesses && leader == UINT32_MAX; a++)
		if (tile->spaces[a].is_in_order)
			leader = a;
	for (uint32_t i = flag->n; leader != UINT32_MAX && i < level; i++) {
		vector = ordered_vector(tile, leader, i);
		if (!f2_contains(&slots, vector) || !f2_space_add(&span, vector))
			return false;
		flag->vectors[flag->n++] = vector;
	}
	for (uint32_t t = 0; flag->n < level && (vector = nth_vector(&slots, flag->variant, t)); t++)
		if (f2_space_add(&span, vector))
			flag->vectors[flag->n++] = vector;
	return flag->n == level;
}

/* Every access that keeps its order finds its first slots as the flag's first vectors. */
static bool order_holds(const struct f2_tile *tile, const struct f2_flag *flag)
{
	for (uint32_t a = 0; a < tile->n_accesses; a++)
		for (uint32_t i = 0; tile->spaces[a].is_in_order && i < tile->spaces[a].max_level; i++)
			if (flag->vectors[i] != ordered_vector(tile, a, i))
				return false;
	return true;
}

bool swizzle_make_flag(const struct f2_tile *tile, const uint32_t *levels, uint32_t variant,
                       struct f2_flag *flag)
{
	uint32_t top = tile->inner;

	memset(flag, 0, sizeof(*flag));
	flag->variant = variant;
	flag->is_unique = true;
	for (uint32_t i = 0; i < tile->inner; i++)
		flag->vectors[flag->n++] = (uint64_t)1 << i;
	for (uint32_t a = 0; a < tile->n_accesses; a++)
		top = levels[a] > top ? levels[a] : top;
	for (uint32_t level = tile->inner + 1; level <= top; level++) {
		bool is_level = false;

		for (uint32_t a = 0; a < tile->n_accesses; a++)
			is_level |= levels[a] == level;
		if (is_level && !extend_flag(tile, levels, level, flag))
			return false;
	}
	return order_holds(tile, flag);
}
