/*
 * Conversions: a fragment that a statement touches in another layout than it lives in.
 *
 * Without conversions all uses of a fragment share one layout, and a kernel whose uses disagree has
 * no solution. A conversion unties one statement (solve_untie.c): the fragment keeps the layout
 * that its other uses want, and the statement works on a copy in the layout that it wants itself,
 * made before it when it reads, or leaves anything as it was, and brought back after it when it
 * stores. Three forms, the cheapest is taken:
 *
 *     registers     each thread holds what it needs, in other registers, the same in all threads
 *     shuffles      elements move between lanes of one warp only
 *     shared        every element is stored to a tile in shared memory and loaded again, a barrier
 *                   between: the tile's layout is the one of least wavefronts over both
 */
#include "analyzer/solve/solve_internal.h"

#include <assert.h>
#include <string.h>

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

const struct layout *plan_layout(const struct stmt_plan *plan, const struct buffer *buffer)
{
	const struct conversion *conversion = plan_conversion(plan, buffer);

	return !conversion ? NULL : conversion->is_after ? conversion->from : conversion->to;
}

/* ---- what one conversion costs ---- */

/* One side of the workspace: its store, or its load. Remembered, since each meets many others. */
static struct access_cost count_side(struct solver *solver, const struct conversion *conversion,
                                     bool is_store)
{
	const struct layout *side = is_store ? conversion->from : conversion->to;
	uint64_t key = hash_mix(solve_layout_hash(side), solve_layout_hash(conversion->workspace));
	struct access_cost *cost;
	struct access access;

	key = hash_mix(key, hash_mix(conversion->buffer->id * 2u + is_store, solver->access->tid->id));
	cost = map_get(&solver->memo->workspaces, key);
	if (!cost) {
		cost = arena_new(solver->arena, struct access_cost);
		solve_spend(solver, WORK_ACCESS, 1);
		access_convert(solver->access, conversion, is_store, &access);
		*cost = solve_count(solver, &access);
		map_set(solver->arena, &solver->memo->workspaces, key, cost);
	}
	return *cost;
}

/* Weighs one layout of the workspace; keeps it when it is the cheapest so far. */
static void weigh_workspace(struct solver *solver, struct conversion *conversion,
                            const struct layout *workspace)
{
	struct conversion tried = *conversion;
	struct access_cost in, out;

	tried.workspace = workspace;
	in = count_side(solver, &tried, true);
	out = count_side(solver, &tried, false);
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
	const struct var *slot = access_iter_var(solver->access, MAX_ITERS - 1, to->n_slots);
	const struct expr *unused, *guard;

	if (!access_convert_slot(solver->access, conversion, slot, &unused, &guard))
		return false;
	conversion->kind = CONVERT_REGISTERS;
	conversion->cost = (double)to->n_slots * (double)((to->n_threads + LANES - 1) / LANES) * 0.25;
	return true;
}

static bool convert_by_shuffles(struct solver *solver, struct conversion *conversion)
{
	struct arena_mark mark = arena_mark(solver->arena);
	struct shuffle_plan plan;
	bool ok = access_shuffle(solver->access, conversion, &plan);

	arena_release(solver->arena, mark); /* only its price is wanted here */
	if (!ok)
		return false;
	conversion->kind = CONVERT_SHUFFLE;
	conversion->n_rounds = plan.n_rounds;
	conversion->n_sets = plan.n_sets;
	conversion->cost = plan.cost;
	return true;
}

static bool find_conversion(struct solver *solver, struct conversion *conversion)
{
	struct conversion shuffled = *conversion;
	bool end = false, shuffles;

	if (convert_in_registers(solver, conversion))
		return true;
	if (dtype_bits(conversion->buffer->type) % 8 != 0)
		return false;
	shuffles = convert_by_shuffles(solver, &shuffled);
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
	if (shuffles && (!conversion->workspace || shuffled.cost < conversion->cost))
		*conversion = shuffled;
	return shuffles || conversion->workspace != NULL;
}

struct known_conversion {
	bool ok;
	struct conversion conversion;
};

bool solve_conversion(struct solver *solver, struct conversion *conversion)
{
	struct conversion asked = *conversion;
	struct known_conversion *known;
	uint64_t key = hash_mix(solve_layout_hash(asked.from), solve_layout_hash(asked.to));

	key = hash_mix(key, hash_mix(asked.buffer->id, (uint64_t)solver->n_threads));
	known = map_get(&solver->memo->conversions, key);
	if (!known) {
		known = arena_new(solver->arena, struct known_conversion);
		solve_spend(solver, WORK_CONVERSION, 1);
		solve_spend(solver, WORK_PLACE, (uint64_t)(asked.to->n_slots * asked.to->n_threads));
		known->ok = find_conversion(solver, conversion);
		known->conversion = *conversion;
		map_set(solver->arena, &solver->memo->conversions, key, known);
	}
	*conversion = known->conversion;
	conversion->from = asked.from;
	conversion->to = asked.to;
	conversion->is_after = asked.is_after;
	return known->ok;
}

/* ---- the conversions of a choice ---- */

/* Called for each conversion whose buffer belongs to the component (NULL: any); false when one has
 * no form. */
struct conversion_visitor {
	bool (*visit)(struct solver *solver, const struct stmt *stmt, struct conversion *conversion,
	              void *user);
	void *user;
};

/* How a statement touches a fragment that it wants as `layout`. */
struct converted {
	const struct stmt *stmt;
	const struct buffer *buffer;
	const struct layout *layout;
	bool before, after; /* the copy is made before, brought back after */
};

static bool visit_way(struct solver *solver, const struct converted *touch, bool is_after,
                      const struct conversion_visitor *visitor)
{
	const struct layout *home = solver->fragment_layout[touch->buffer->id];
	struct conversion conversion = { .buffer = touch->buffer,
		                             .from = is_after ? touch->layout : home,
		                             .to = is_after ? home : touch->layout,
		                             .is_after = is_after };

	return solve_conversion(solver, &conversion) &&
	       visitor->visit(solver, touch->stmt, &conversion, visitor->user);
}

/* A copy that a thread cannot hold is none: an element of a large tile in every thread. */
static bool fits_registers(const struct solver *solver, const struct converted *touch)
{
	return touch->layout->n_slots * (int64_t)dtype_bits(touch->buffer->type) <=
	       32 * solver->target->registers_thread_max;
}

static bool visit_touch(struct solver *solver, const struct converted *touch,
                        const struct conversion_visitor *visitor)
{
	const struct layout *home = solver->fragment_layout[touch->buffer->id];

	if (!home || !touch->layout)
		return false;
	if (layout_equal(home, touch->layout, NULL))
		return true;
	if (!fits_registers(solver, touch))
		return false;
	return (!touch->before || visit_way(solver, touch, false, visitor)) &&
	       (!touch->after || visit_way(solver, touch, true, visitor));
}

static bool has_fragment(const struct component *component, const struct buffer *buffer)
{
	for (uint32_t f = 0; component && f < component->fragments.n; f++)
		if (component->fragments.p[f] == buffer)
			return true;
	return component == NULL;
}

/* The operands of a gemm in registers, and its accumulator. */
static bool visit_gemm(struct solver *solver, const struct component *component,
                       const struct gemm_use *use, const struct conversion_visitor *visitor)
{
	const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;
	const struct buffer *c = gemm->c.buffer;
	bool clears = gemm->clear_accum && expr_is_true(gemm->clear_accum);
	struct converted touch = { use->stmt, NULL, NULL, true, false };

	if (!component)
		solve_enter_role(solver, use->role);
	for (int which = 0; which < 2; which++) {
		touch.buffer = which == 0 ? gemm->a.buffer : gemm->b.buffer;
		touch.layout = use->operands[which] ? use->operands[which]->layout : NULL;
		if (touch.buffer->scope == SCOPE_FRAGMENT && has_fragment(component, touch.buffer) &&
		    !visit_touch(solver, &touch, visitor))
			return false;
	}
	touch = (struct converted){ use->stmt, c, use->plan.c, !clears, true };
	return c->scope != SCOPE_FRAGMENT || !has_fragment(component, c) ||
	       visit_touch(solver, &touch, visitor);
}

static bool visit_gemms(struct solver *solver, const struct component *component,
                        const struct conversion_visitor *visitor)
{
	for (uint32_t g = 0; g < solver->gemms.n; g++)
		if (!visit_gemm(solver, component, solver->gemms.p[g], visitor))
			return false;
	return true;
}

/* All uses of one buffer in a space go through one conversion: what they want must agree. */
static bool visit_use(struct solver *solver, const struct space *space, uint32_t first,
                      const struct conversion_visitor *visitor)
{
	struct converted touch = { space->stmt, space->uses.p[first].buffer, NULL, false, false };

	for (uint32_t u = first; u < space->uses.n; u++) {
		const struct use *use = &space->uses.p[u];
		const struct layout *wanted;

		if (use->buffer != touch.buffer)
			continue;
		wanted = solve_seen_through(solver, solver->space_layout[space->id], use);
		if (!wanted || (touch.layout && !layout_equal(touch.layout, wanted, NULL)))
			return false;
		touch.layout = wanted;
		touch.before |= use->is_load || !solve_sets_all(space, use);
		touch.after |= use->is_store;
	}
	return visit_touch(solver, &touch, visitor);
}

static bool is_first_use(const struct space *space, uint32_t u)
{
	for (uint32_t i = 0; i < u; i++)
		if (space->uses.p[i].buffer == space->uses.p[u].buffer)
			return false;
	return true;
}

static bool visit_uses(struct solver *solver, const struct component *component,
                       const struct conversion_visitor *visitor)
{
	for (uint32_t s = 0; s < solver->spaces.n; s++) {
		const struct space *space = solver->spaces.p[s];

		if (!component)
			solve_enter_role(solver, space->role);
		for (uint32_t u = 0; u < space->uses.n; u++)
			if (space->uses.p[u].is_converted && is_first_use(space, u) &&
			    has_fragment(component, space->uses.p[u].buffer) &&
			    !visit_use(solver, space, u, visitor))
				return false;
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

	return visit_gemms(solver, component, &visitor) && visit_uses(solver, component, &visitor);
}

static bool record_conversion(struct solver *solver, const struct stmt *stmt,
                              struct conversion *conversion, void *user)
{
	(void)user;
	solver->solution->plans[stmt->id].stmt = stmt;
	vec_push(solver->arena, &solver->solution->plans[stmt->id].conversions, *conversion);
	return true;
}

void solve_record_conversions(struct solver *solver)
{
	const struct conversion_visitor visitor = { record_conversion, NULL };

	if (!visit_gemms(solver, NULL, &visitor) || !visit_uses(solver, NULL, &visitor))
		BUG("a conversion was chosen that has no form");
}

/* ---- accumulators that gemms want in several layouts ---- */

/* Cycles a block when the fragment lives as `home` and every gemm that wants its accumulator
 * otherwise converts it, there and back; negative when one cannot. */
static double cost_of_home(struct solver *solver, const struct buffer *buffer,
                           const struct layout *home)
{
	const struct conversion_visitor visitor = { add_cost, &(double){ 0 } };
	const struct layout *before = solver->fragment_layout[buffer->id];
	bool ok = true;

	solver->fragment_layout[buffer->id] = home;
	for (uint32_t g = 0; g < solver->gemms.n && ok; g++) {
		const struct gemm_use *use = solver->gemms.p[g];
		const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;
		bool clears = gemm->clear_accum && expr_is_true(gemm->clear_accum);
		struct converted touch = { use->stmt, buffer, use->plan.c, !clears, true };

		ok = gemm->c.buffer != buffer || visit_touch(solver, &touch, &visitor);
	}
	solver->fragment_layout[buffer->id] = before;
	return ok ? *(double *)visitor.user : -1;
}

/* The accumulator's layout that costs least as the fragment's own; the annotation's where there is
 * one. NULL when the buffer is no accumulator. */
static const struct layout *choose_home(struct solver *solver, const struct buffer *buffer)
{
	const struct layout *best = NULL;
	double least = -1;

	if (solver->annotated[buffer->id])
		return solver->annotated[buffer->id]->layout;
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct gemm_use *use = solver->gemms.p[g];
		double cost;

		if (use->stmt->as.op.as.gemm.c.buffer != buffer)
			continue;
		cost = cost_of_home(solver, buffer, use->plan.c);
		if (cost < 0 || (best && cost >= least))
			continue;
		best = use->plan.c;
		least = cost;
	}
	return best;
}

void solve_choose_homes(struct solver *solver)
{
	for (uint32_t g = 0; g < solver->gemms.n && !solver->options.strict; g++) {
		struct gemm_use *use = solver->gemms.p[g];
		const struct buffer *buffer = use->stmt->as.op.as.gemm.c.buffer;
		const struct layout *home = choose_home(solver, buffer);

		use->converts_c = home && !layout_equal(home, use->plan.c, NULL);
	}
	for (uint32_t g = 0; g < solver->gemms.n && !solver->options.strict; g++)
		solve_pin(solver, solver->gemms.p[g]->stmt->as.op.as.gemm.c.buffer);
}
