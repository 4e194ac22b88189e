/*
 * The solver: from a launch to one layout a buffer and one plan a statement.
 *
 *     collect      statements -> spaces, gemms, constraints; spaces that share fragments form
 * components propagate    each component: all consistent choices of partitions and fragment
 * layouts, with their costs search       one choice a component, shared layouts by exact
 * wavefronts: branch and bound
 *
 * Bound: a choice's fixed cost is exact in the cost model, and its shared accesses cost at least
 * what conflict-free ones would. A component's choices are sorted by this bound, so the first
 * combination is usually optimal already and is proved so by the next one's bound. Only components
 * that can still matter are varied; the number of combinations whose shared layouts are solved is
 * limited, after that the answer is the best found with its bound.
 */
#include "analyzer/solve/solve_internal.h"
#include "analyzer/tile/stage.h"

#include <math.h>
#include <string.h>

struct search {
	struct solver *solver;
	double best_cost;
	const struct assignment **chosen, **best; /* by component */
	double *rest_bound; /* by component: sum of the least bounds of it and those behind */
	uint32_t n_leaves, max_leaves;
	double least_open; /* least bound of what was not looked at */
};

static void apply(struct solver *solver, const struct component *component,
                  const struct assignment *assignment)
{
	for (uint32_t s = 0; s < component->spaces.n; s++)
		solver->space_layout[component->spaces.p[s]->id] = assignment->spaces[s];
	for (uint32_t f = 0; f < component->fragments.n; f++)
		solver->fragment_layout[component->fragments.p[f]->id] = assignment->fragments[f];
}

static void visit_leaf(struct search *search, double fixed_cost)
{
	struct solver *solver = search->solver;
	struct buffer_solution *scratch =
		arena_array(solver->arena, struct buffer_solution, solver->program->buffers.n);
	double limit = search->best_cost >= 0 ? search->best_cost - fixed_cost : HUGE_VAL, cost;

	search->n_leaves++;
	for (uint32_t c = 0; c < solver->components.n; c++)
		apply(solver, solver->components.p[c], search->chosen[c]);
	cost = fixed_cost + solve_shared(solver, limit, scratch);
	if (search->best_cost >= 0 && cost >= search->best_cost)
		return;
	search->best_cost = cost;
	memcpy(search->best, search->chosen, solver->components.n * sizeof(search->best[0]));
	memcpy(solver->solution->buffers, scratch, solver->program->buffers.n * sizeof(scratch[0]));
}

/* Components from `c` on; `fixed` and `bound` are sums over those before. When the leaves are used
 * up, what is left open is remembered by its bound. */
static void branch(struct search *search, uint32_t c, double fixed, double bound)
{
	struct solver *solver = search->solver;
	const struct component *component;

	if (c == solver->components.n) {
		visit_leaf(search, fixed);
		return;
	}
	component = solver->components.p[c];
	for (uint32_t a = 0; a < component->assignments.n; a++) {
		const struct assignment *assignment = &component->assignments.p[a];
		double least =
			bound + assignment->fixed_cost + assignment->shared_bound + search->rest_bound[c + 1];

		if (search->best_cost >= 0 && least >= search->best_cost)
			return; /* sorted: the others are no better */
		if (search->n_leaves >= search->max_leaves) {
			if (least < search->least_open)
				search->least_open = least;
			return;
		}
		search->chosen[c] = assignment;
		branch(search, c + 1, fixed + assignment->fixed_cost,
		       bound + assignment->fixed_cost + assignment->shared_bound);
	}
}

/* Wavefronts and executions of the operands in shared memory. */
static double wgmma_bound(const struct gemm_plan *plan)
{
	double bound = 0;

	for (int which = plan->a_is_fragment ? 1 : 0; which < 2; which++) {
		struct access_cost cost = access_wgmma_count(plan, which);

		bound += (double)(cost.wavefronts + cost.executions);
	}
	return bound;
}

/* Least wavefronts and instructions of a gemm's operand reads: the same for every choice. */
static double gemm_bound(struct solver *solver)
{
	double bound = 0;

	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct gemm_plan *plan = &solver->gemms.p[g]->plan;

		if (plan->wgmma_n) {
			bound += (double)solver->gemms.p[g]->weight * wgmma_bound(plan);
			continue;
		}
		double k_steps = (double)(plan->k / mma_shape_info(plan->shape)->k);
		double a_tiles = plan->a_is_fragment ? 0 : (double)(plan->m / 16 * plan->warps_n);
		double b_tiles = plan->b_is_fragment ? 0 : (double)(plan->n / 16 * plan->warps_m);

		bound += (double)solver->gemms.p[g]->weight * k_steps * (a_tiles + b_tiles) * (4 + 1);
	}
	return bound;
}

/* The budget as a number of leaves, so that the same input gives the same answer everywhere. */
static uint32_t max_leaves(const struct solver *solver)
{
	double budget_ms =
		solver->options.budget_ms > 0 ? solver->options.budget_ms : DEFAULT_BUDGET_MS;
	double leaves = MAX_LEAVES * budget_ms / DEFAULT_BUDGET_MS;

	return leaves < 1 ? 1 : leaves > 1e6 ? 1000000 : (uint32_t)leaves;
}

static void search_components(struct solver *solver)
{
	uint32_t n = solver->components.n;
	struct search search = {
		.solver = solver,
		.best_cost = -1,
		.chosen = arena_array(solver->arena, const struct assignment *, n + 1),
		.best = arena_array(solver->arena, const struct assignment *, n + 1),
		.rest_bound = arena_array(solver->arena, double, n + 1),
		.max_leaves = max_leaves(solver),
		.least_open = HUGE_VAL,
	};

	for (uint32_t c = n; c-- > 0;) {
		const struct assignment *first = &solver->components.p[c]->assignments.p[0];

		search.rest_bound[c] = search.rest_bound[c + 1] + first->fixed_cost + first->shared_bound;
	}
	branch(&search, 0, 0, gemm_bound(solver));
	for (uint32_t c = 0; c < n; c++) {
		solver->components.p[c]->chosen = search.best[c];
		apply(solver, solver->components.p[c], search.best[c]);
	}
	solver->solution->cost = search.best_cost;
	solver->solution->bound =
		search.least_open < search.best_cost ? search.least_open : search.best_cost;
	solver->solution->is_partial = solver->exhausted;
	solver->solution->status = solver->solution->bound == search.best_cost && !solver->exhausted
	                               ? SOLVE_OPTIMAL
	                               : SOLVE_BEST_FOUND;
}

/* Accumulators that no space touches still have their layout. */
static void apply_pins(struct solver *solver)
{
	for (uint32_t b = 0; b < solver->program->buffers.n; b++)
		if (solver->pinned_by[b]) {
			solver->fragment_layout[b] = solver->pinned_by[b]->layout;
			solver->fragment_from[b] = solver->pinned_by[b];
		}
}

/* Which constraint gave each free fragment its layout: the first space of its component that
 * touches it. */
static void find_sources(struct solver *solver)
{
	for (uint32_t s = 0; s < solver->spaces.n; s++)
		for (uint32_t u = 0; u < solver->spaces.p[s]->uses.n; u++) {
			uint32_t id = solver->spaces.p[s]->uses.p[u].buffer->id;

			if (!solver->fragment_from[id])
				solver->fragment_from[id] = solver->spaces.p[s]->constraint;
		}
}

void solve_open(struct solver *solver, struct tile_program *program, const struct launch *launch,
                struct cx *cx)
{
	uint32_t n_buffers = program->buffers.n;

	solver->program = program;
	solver->launch = launch;
	solver->cx = cx;
	solver->arena = cx->arena;
	solver->pool = program->pool;
	solver->n_threads = solver->trial && solver->trial->n_threads ? solver->trial->n_threads
	                                                              : launch_n_threads(launch);
	if (!solver->memo)
		solver->memo = arena_new(solver->arena, struct solve_memo);
	solver->solution = arena_new(solver->arena, struct solution);
	solver->solution->status = SOLVE_CONFLICT;
	solver->solution->program = program;
	solver->solution->launch = launch;
	solver->solution->target = solver->target;
	solver->solution->buffers = arena_array(solver->arena, struct buffer_solution, n_buffers);
	solver->solution->plans = arena_array(solver->arena, struct stmt_plan, program->n_stmts);
	solver->pinned_by = arena_array(solver->arena, const struct constraint *, n_buffers);
	solver->annotated = arena_array(solver->arena, const struct constraint *, n_buffers);
	solver->by_element = arena_array(solver->arena, bool, n_buffers);
	solver->fragment_layout = arena_array(solver->arena, const struct layout *, n_buffers);
	solver->fragment_from = arena_array(solver->arena, const struct constraint *, n_buffers);
	solve_role(solver, (struct thread_range){ 0, solver->n_threads });
	solver->access = solver->roles.p[0]->access;
}

void solve_run(struct solver *solver)
{
	bool ok = true;

	if (!solve_collect(solver))
		return;
	solver->space_layout = arena_array(solver->arena, const struct layout *, solver->spaces.n);
	for (uint32_t c = 0; c < solver->components.n; c++) {
		solve_enter_role(solver, solver->components.p[c]->role);
		ok &= solve_component(solver, solver->components.p[c]);
	}
	if (!ok)
		return;
	apply_pins(solver);
	search_components(solver);
	memset(solver->fragment_from, 0, solver->program->buffers.n * sizeof(solver->fragment_from[0]));
	apply_pins(solver);
	find_sources(solver);
	solve_record(solver);
}

/* A block whose last warp has lanes without a thread. */
static void warn_lanes(struct solver *solver)
{
	int64_t idle = LANES - solver->n_threads % LANES;

	if (idle == LANES || solver->launch->is_implicit)
		return;
	diag_report(&solver->cx->diags, DIAG_W0309, solver->launch->span,
	            "%lld threads: %lld of the last warp's 32 lanes have no thread",
	            (long long)solver->n_threads, (long long)idle);
	diag_help(&solver->cx->diags, "threads=%lld fills it", (long long)(solver->n_threads + idle));
}

struct solution *solve_launch(struct tile_program *program, const struct launch *launch,
                              const struct target *target, const struct solve_options *options)
{
	struct solver solver = { .target = target };
	struct solution *known;

	if (options)
		solver.options = *options;
	solve_open(&solver, program, tile_stage(program, launch), program->cx);
	warn_lanes(&solver);
	known = solve_choose_wgmma(&solver);
	if (known)
		return known;
	solve_run(&solver);
	return solver.solution;
}
