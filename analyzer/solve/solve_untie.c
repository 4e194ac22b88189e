/*
 * Which uses of fragments go through conversions (solve_convert.c).
 *
 * A component without any consistent choice is tried again with some of its uses untied from their
 * fragments: one, then the operands of all gemms and one more, then two, and of equally many the
 * choice of least cost. Where that is not enough the inconsistencies are followed: whichever use
 * does not fit is untied, until the rest fits.
 *
 * What can be untied: a gemm's operand in registers; all uses of one fragment in one loop, copy,
 * reduction or statement outside T.Parallel.
 */
#include "analyzer/solve/solve_internal.h"

#include <assert.h>

enum { MAX_UNTIED = 48, MAX_PAIRS = 120, MAX_CHAIN = 8 };

/* A use, or a gemm's operand, that a conversion can serve. */
struct untied {
	struct gemm_use *gemm; /* operand `which`; NULL: `space` */
	int which;
	struct space *space;
	const struct buffer *buffer;
};

struct untying {
	struct solver *solver;
	struct component *component;
	struct untied uses[MAX_UNTIED];
	uint32_t n, n_operands; /* operands come first */
	/* The best choice so far. */
	double cost;
	uint64_t chosen; /* bit set over uses; 0: none */
};

static void add_untied(struct untying *untying, struct untied use)
{
	if (untying->n < MAX_UNTIED)
		untying->uses[untying->n++] = use;
}

static bool has_fragment(const struct component *component, const struct buffer *buffer)
{
	for (uint32_t f = 0; f < component->fragments.n; f++)
		if (component->fragments.p[f] == buffer)
			return true;
	return false;
}

static void find_operands(struct untying *untying)
{
	struct solver *solver = untying->solver;

	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct op_gemm *gemm = &solver->gemms.p[g]->stmt->as.op.as.gemm;

		for (int which = 0; which < 2; which++) {
			const struct buffer *buffer = which == 0 ? gemm->a.buffer : gemm->b.buffer;

			if (buffer->scope == SCOPE_FRAGMENT && has_fragment(untying->component, buffer) &&
			    !solver->gemms.p[g]->converts[which])
				add_untied(untying, (struct untied){ solver->gemms.p[g], which, NULL, buffer });
		}
	}
	untying->n_operands = untying->n;
}

static bool knows(const struct untying *untying, const struct space *space,
                  const struct buffer *buffer)
{
	for (uint32_t i = 0; i < untying->n; i++)
		if (untying->uses[i].space == space && untying->uses[i].buffer == buffer)
			return true;
	return false;
}

/* `near`: only what the first inconsistency is about. */
static void find_uses(struct untying *untying, bool near)
{
	const struct mismatch *mismatch = untying->solver->mismatch;

	for (uint32_t s = 0; s < untying->component->spaces.n; s++) {
		struct space *space = untying->component->spaces.p[s];

		for (uint32_t u = 0; u < space->uses.n; u++) {
			const struct use *use = &space->uses.p[u];
			bool is_near =
				mismatch && (space == mismatch->space || use->buffer == mismatch->use->buffer);

			/* Owners of a reducer hold different parts of its elements until it is whole. */
			if (use->buffer->is_reducer && use->is_store)
				continue;
			if (use->buffer->scope == SCOPE_FRAGMENT && use->is_plain && (is_near || !near) &&
			    !knows(untying, space, use->buffer))
				add_untied(untying, (struct untied){ NULL, 0, space, use->buffer });
		}
	}
}

static void set_operand(struct solver *solver, const struct untied *untied, bool converts)
{
	untied->gemm->converts[untied->which] = converts;
	solve_pin(solver, untied->buffer);
}

static void set_uses(struct untying *untying, uint64_t set, bool converts)
{
	for (uint32_t i = 0; i < untying->n; i++) {
		struct untied *untied = &untying->uses[i];

		if (!(set >> i & 1))
			continue;
		if (untied->gemm)
			set_operand(untying->solver, untied, converts);
		for (uint32_t u = 0; untied->space && u < untied->space->uses.n; u++)
			if (untied->space->uses.p[u].buffer == untied->buffer)
				untied->space->uses.p[u].is_converted = converts;
	}
}

static double least_bound(const struct component *component)
{
	double least = -1;

	for (uint32_t a = 0; a < component->assignments.n; a++) {
		double bound =
			component->assignments.p[a].fixed_cost + component->assignments.p[a].shared_bound;

		if (least < 0 || bound < least)
			least = bound;
	}
	return least;
}

static void try_set(struct untying *untying, uint64_t set)
{
	double cost;

	set_uses(untying, set, true);
	untying->solver->cutoff = untying->chosen ? untying->cost : 0;
	solve_enumerate(untying->solver, untying->component);
	untying->solver->cutoff = 0;
	cost = least_bound(untying->component);
	set_uses(untying, set, false);
	if (cost >= 0 && (untying->chosen == 0 || cost < untying->cost)) {
		untying->chosen = set;
		untying->cost = cost;
	}
}

/* `base` with each single use that it does not hold. */
static void try_singles(struct untying *untying, uint64_t base)
{
	for (uint32_t i = 0; i < untying->n; i++)
		if (!(base >> i & 1))
			try_set(untying, base | (uint64_t)1 << i);
}

static void try_pairs(struct untying *untying, uint64_t base)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < untying->n; i++)
		for (uint32_t j = i + 1; j < untying->n && n < MAX_PAIRS; j++) {
			uint64_t pair = (uint64_t)1 << i | (uint64_t)1 << j;

			if (base & pair)
				continue;
			try_set(untying, base | pair);
			n++;
		}
}

/* The use, or another one of its fragment, that the set does not untie yet; 0: none. */
static uint64_t next_of(const struct untying *untying, const struct mismatch *mismatch,
                        uint64_t set)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < untying->n; i++) {
		const struct untied *untied = &untying->uses[i];

		if (set >> i & 1)
			continue;
		if (untied->space == mismatch->space && untied->buffer == mismatch->use->buffer)
			return (uint64_t)1 << i;
		if (!found && untied->buffer == mismatch->use->buffer)
			found = (uint64_t)1 << i;
	}
	return found;
}

/* Unties what does not fit until the rest does. */
static void try_chain(struct untying *untying)
{
	struct solver *solver = untying->solver;
	struct mismatch *first = solver->mismatch;
	uint64_t set = 0;

	for (int i = 0; i < MAX_CHAIN && !untying->chosen; i++) {
		uint64_t next = solver->mismatch ? next_of(untying, solver->mismatch, set) : 0;

		if (!next)
			break;
		set |= next;
		solver->mismatch = NULL;
		try_set(untying, set);
	}
	solver->mismatch = first;
}

bool solve_with_conversions(struct solver *solver, struct component *component)
{
	struct untying untying = { .solver = solver, .component = component };
	uint64_t operands;

	find_operands(&untying);
	find_uses(&untying, true);
	find_uses(&untying, false);
	if (untying.n == 0)
		return false;
	operands = ((uint64_t)1 << untying.n_operands) - 1;
	try_singles(&untying, 0);
	if (!untying.chosen && operands) {
		try_set(&untying, operands);
		try_singles(&untying, operands);
	}
	if (!untying.chosen)
		try_pairs(&untying, 0);
	if (!untying.chosen && operands)
		try_pairs(&untying, operands);
	if (!untying.chosen)
		try_chain(&untying);
	component->assignments.n = 0;
	if (!untying.chosen)
		return false;
	set_uses(&untying, untying.chosen, true);
	solve_enumerate(solver, component);
	assert(component->assignments.n > 0);
	return true;
}
