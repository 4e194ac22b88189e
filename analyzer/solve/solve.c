/*
 * The solver: from a launch to one layout a buffer and one plan a statement.
 *
 *     collect     statements -> spaces, gemms, constraints; spaces that share fragments form
 *                 components
 *     propagate   each component: all consistent choices of partitions and fragment layouts, with
 *                 their costs
 *     search      one choice a component, shared layouts by exact wavefronts: branch and bound
 *     record      the plans
 */
#include "analyzer/solve/solve_internal.h"
#include "analyzer/tile/stage.h"

#include <string.h>

/* Accumulators that no space touches still have their layout. */
static void apply_pins(struct solver *solver)
{
	for (uint32_t b = 0; b < solver->program->buffers.n; b++)
		if (solver->pinned_by[b]) {
			solver->fragment_layout[b] = solver->pinned_by[b]->layout;
			solver->fragment_from[b] = solver->pinned_by[b];
		}
}

/* Which constraint gave each fragment its layout; of one that only conversions reach, the first
 * that touches it. */
static void find_sources(struct solver *solver)
{
	for (uint32_t c = 0; c < solver->components.n && !solver->trial; c++) {
		solve_enter_role(solver, solver->components.p[c]->role);
		solve_trace(solver, solver->components.p[c]);
	}
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
	solver->fragment_follows = arena_array(solver->arena, const struct buffer *, n_buffers);
	solve_role(solver, (struct thread_range){ 0, solver->n_threads });
	solver->access = solver->roles.p[0]->access;
}

bool solve_decide(struct solver *solver)
{
	bool ok = true;

	if (!solve_collect(solver))
		return false;
	solver->space_layout = arena_array(solver->arena, const struct layout *, solver->spaces.n);
	solver->space_from = arena_array(solver->arena, const struct buffer *, solver->spaces.n);
	for (uint32_t c = 0; c < solver->components.n; c++) {
		solve_enter_role(solver, solver->components.p[c]->role);
		ok &= solve_component(solver, solver->components.p[c]);
	}
	if (!ok)
		return false;
	apply_pins(solver);
	return solve_search(solver);
}

void solve_finish(struct solver *solver)
{
	memset(solver->fragment_from, 0, solver->program->buffers.n * sizeof(solver->fragment_from[0]));
	apply_pins(solver);
	find_sources(solver);
	solve_record(solver);
}

void solve_run(struct solver *solver)
{
	if (solve_decide(solver))
		solve_finish(solver);
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
