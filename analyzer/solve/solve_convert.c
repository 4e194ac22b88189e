/*
 * Conversions: a fragment that a statement reads in another layout than it lives in.
 *
 * Without conversions all uses of a fragment share one layout, and a kernel whose uses disagree has
 * no solution. A conversion unties one use: the fragment keeps the layout that its other uses want,
 * and the statement reads a copy in the layout that it wants itself. Three forms, cheapest first:
 *
 *     nothing       both layouts are equal as functions
 *     registers     each thread holds what it needs, in other registers, the same ones in all
 * threads shared        every element is stored to a tile in shared memory and loaded again, a
 * barrier between: the tile's layout is the one of least wavefronts over the stores and the loads
 *
 * Which uses are untied is searched: none, then one, then the operands of all gemms with one more,
 * then two; of equally many the choice of least cost. Only reads can be untied, and only those of a
 * whole fragment's layout: operands of gemms, and loads of loops and copies that do not store the
 * same fragment.
 */
#include "analyzer/solve/solve_internal.h"

#include <assert.h>
#include <string.h>

enum { MAX_UNTIED = 24, MAX_PAIRS = 120 };

/* A barrier's latency, and one instruction of a warp with its address: as in solve_cost.c. */
static const double BARRIER_CYCLES = 40.0;
static const double ISSUE_CYCLES = 1.0;

const struct conversion *plan_conversion(const struct stmt_plan *plan, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < plan->conversions.n; i++)
		if (plan->conversions.p[i].buffer == buffer)
			return &plan->conversions.p[i];
	return NULL;
}

/* ---- what one conversion costs ---- */

/* Weighs one layout of the workspace; keeps it when it is the cheapest so far. */
static void weigh_workspace(struct solver *solver, struct conversion *conversion,
                            const struct layout *workspace)
{
	struct conversion tried = *conversion;
	struct access store, load;
	struct access_cost in, out;

	tried.workspace = workspace;
	access_convert(&solver->access, &tried, true, &store);
	access_convert(&solver->access, &tried, false, &load);
	in = solve_count(solver, &store);
	out = solve_count(solver, &load);
	tried.workspace_bytes = workspace->n_bytes;
	tried.wavefronts = in.wavefronts + out.wavefronts;
	tried.ideal = in.ideal + out.ideal;
	tried.cost = (double)tried.wavefronts +
	             ISSUE_CYCLES * (double)(in.executions + out.executions) +
	             BARRIER_CYCLES * (double)tried.n_barriers;
	if (!conversion->workspace || tried.cost < conversion->cost)
		*conversion = tried;
}

static bool convert_in_registers(struct solver *solver, struct conversion *conversion)
{
	const struct layout *to = conversion->to;
	const struct var *slot = access_iter_var(&solver->access, MAX_ITERS - 1, to->n_slots);
	const struct expr *unused, *guard;

	if (!access_convert_slot(&solver->access, conversion, slot, &unused, &guard))
		return false;
	conversion->kind = CONVERT_REGISTERS;
	conversion->cost = (double)to->n_slots * (double)((to->n_threads + LANES - 1) / LANES) * 0.25;
	return true;
}

bool solve_conversion(struct solver *solver, struct conversion *conversion)
{
	bool end = false;

	if (convert_in_registers(solver, conversion))
		return true;
	if (dtype_bits(conversion->buffer->type) % 8 != 0)
		return false;
	conversion->kind = CONVERT_SHARED;
	conversion->n_barriers = 2;
	conversion->workspace = NULL;
	for (int which = 0; !end; which++) {
		const struct layout *workspace = solve_nth_layout(solver, conversion->buffer, which, &end);

		if (workspace)
			weigh_workspace(solver, conversion, workspace);
		if (conversion->workspace && conversion->wavefronts == conversion->ideal)
			break;
	}
	return conversion->workspace != NULL;
}

/* ---- the conversions of a choice ---- */

/* What a space wants its converted use to look like; NULL when the index gives no layout. */
static const struct layout *wanted_by_use(struct solver *solver, const struct space *space,
                                          const struct use *use)
{
	if (!use->is_plain)
		return NULL;
	return layout_project(solver->arena, solver->space_layout[space->id], use->buffer->rank,
	                      use->dims);
}

/* Calls `visit` for each conversion whose buffer belongs to the component (NULL: any); false when
 * one has no form. */
struct conversion_visitor {
	bool (*visit)(struct solver *solver, const struct stmt *stmt, struct conversion *conversion,
	              void *user);
	void *user;
};

static bool visit_one(struct solver *solver, const struct stmt *stmt, const struct buffer *buffer,
                      const struct layout *to, const struct conversion_visitor *visitor)
{
	struct conversion conversion = { .buffer = buffer,
		                             .from = solver->fragment_layout[buffer->id],
		                             .to = to };

	if (!conversion.from || !to)
		return false;
	if (layout_equal(conversion.from, to, NULL))
		return true;
	return solve_conversion(solver, &conversion) &&
	       visitor->visit(solver, stmt, &conversion, visitor->user);
}

static bool has_fragment(const struct component *component, const struct buffer *buffer)
{
	for (uint32_t f = 0; component && f < component->fragments.n; f++)
		if (component->fragments.p[f] == buffer)
			return true;
	return component == NULL;
}

static bool visit_operands(struct solver *solver, const struct component *component,
                           const struct conversion_visitor *visitor)
{
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct gemm_use *use = solver->gemms.p[g];
		const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;

		for (int which = 0; which < 2; which++) {
			const struct buffer *buffer = which == 0 ? gemm->a.buffer : gemm->b.buffer;

			if (buffer->scope == SCOPE_FRAGMENT && has_fragment(component, buffer) &&
			    !visit_one(solver, use->stmt, buffer, use->operands[which]->layout, visitor))
				return false;
		}
	}
	return true;
}

static bool visit_uses(struct solver *solver, const struct component *component,
                       const struct conversion_visitor *visitor)
{
	for (uint32_t s = 0; s < solver->spaces.n; s++) {
		const struct space *space = solver->spaces.p[s];

		for (uint32_t u = 0; u < space->uses.n; u++) {
			const struct use *use = &space->uses.p[u];

			if (use->is_converted && has_fragment(component, use->buffer) &&
			    !visit_one(solver, space->stmt, use->buffer, wanted_by_use(solver, space, use),
			               visitor))
				return false;
		}
	}
	return true;
}

/* How often a block runs a statement. */
static int64_t weight_of(const struct solver *solver, const struct stmt *stmt)
{
	for (uint32_t g = 0; g < solver->gemms.n; g++)
		if (solver->gemms.p[g]->stmt == stmt)
			return solver->gemms.p[g]->weight;
	for (uint32_t s = 0; s < solver->spaces.n; s++)
		if (solver->spaces.p[s]->stmt == stmt)
			return solver->spaces.p[s]->weight;
	return 1;
}

static bool add_cost(struct solver *solver, const struct stmt *stmt, struct conversion *conversion,
                     void *user)
{
	double *cost = user;

	*cost += conversion->cost * (double)weight_of(solver, stmt);
	return true;
}

bool solve_conversion_cost(struct solver *solver, const struct component *component, double *cost)
{
	const struct conversion_visitor visitor = { add_cost, cost };

	return visit_operands(solver, component, &visitor) && visit_uses(solver, component, &visitor);
}

static bool record_conversion(struct solver *solver, const struct stmt *stmt,
                              struct conversion *conversion, void *user)
{
	(void)user;
	vec_push(solver->arena, &solver->solution->plans[stmt->id].conversions, *conversion);
	return true;
}

void solve_record_conversions(struct solver *solver)
{
	const struct conversion_visitor visitor = { record_conversion, NULL };

	if (!visit_operands(solver, NULL, &visitor) || !visit_uses(solver, NULL, &visitor))
		BUG("a conversion was chosen that has no form");
}

/* ---- which uses are untied ---- */

/* A read that a conversion can serve. */
struct untied {
	struct gemm_use *gemm; /* operand `which`; NULL: `use` */
	int which;
	struct use *use;
};

struct untying {
	struct solver *solver;
	struct component *component;
	struct untied reads[MAX_UNTIED];
	uint32_t n, n_operands; /* operands come first */
	/* The best choice so far. */
	double cost;
	uint64_t chosen; /* bit set over reads; 0: none */
};

static void add_read(struct untying *untying, struct untied read)
{
	if (untying->n < MAX_UNTIED)
		untying->reads[untying->n++] = read;
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
				add_read(untying, (struct untied){ solver->gemms.p[g], which, NULL });
		}
	}
	untying->n_operands = untying->n;
}

static void find_uses(struct untying *untying)
{
	for (uint32_t s = 0; s < untying->component->spaces.n; s++) {
		struct space *space = untying->component->spaces.p[s];

		for (uint32_t u = 0; u < space->uses.n && space->kind != SPACE_REDUCE; u++) {
			struct use *use = &space->uses.p[u];

			if (use->buffer->scope == SCOPE_FRAGMENT && use->is_plain && !use->is_store)
				add_read(untying, (struct untied){ NULL, 0, use });
		}
	}
}

static void set_operand(struct solver *solver, struct gemm_use *use, int which, bool converts)
{
	const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;

	use->converts[which] = converts;
	solve_pin(solver, which == 0 ? gemm->a.buffer : gemm->b.buffer);
}

static void set_reads(struct untying *untying, uint64_t set, bool converts)
{
	for (uint32_t i = 0; i < untying->n; i++) {
		struct untied *read = &untying->reads[i];

		if (!(set >> i & 1))
			continue;
		if (read->gemm)
			set_operand(untying->solver, read->gemm, read->which, converts);
		else
			read->use->is_converted = converts;
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

	set_reads(untying, set, true);
	solve_enumerate(untying->solver, untying->component);
	cost = least_bound(untying->component);
	set_reads(untying, set, false);
	if (cost >= 0 && (untying->chosen == 0 || cost < untying->cost)) {
		untying->chosen = set;
		untying->cost = cost;
	}
}

/* `base` with each single read that it does not hold. */
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

bool solve_with_conversions(struct solver *solver, struct component *component)
{
	struct untying untying = { .solver = solver, .component = component };
	uint64_t operands;

	find_operands(&untying);
	find_uses(&untying);
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
	component->assignments.n = 0;
	if (!untying.chosen)
		return false;
	set_reads(&untying, untying.chosen, true);
	solve_enumerate(solver, component);
	assert(component->assignments.n > 0);
	return true;
}
