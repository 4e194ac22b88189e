/*
 * Which gemms use warpgroup instructions.
 *
 * A gemm may when its warps are whole warpgroups, its tile is cut by a grid of them, its types have
 * an instruction, B is in shared memory and some layout of each operand in shared memory has a
 * descriptor (under it, or under the annotated one, all gemms that read the buffer agree). Whether
 * it should is decided for the launch: it is solved with warpgroup instructions wherever they are
 * possible, without any, and with each single gemm the other way, and the least cost wins. Added
 * to the solution's cost is the time of the tensor cores, at the rates of each instruction.
 */
#include "analyzer/solve/solve_internal.h"

#include "analyzer/tile/alias.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_FLIPPED = 4 };

/*
 * Multiply-adds of 16-bit elements a cycle and SM of compute capability 9.0: 4096 flops a cycle of
 * the data sheet's dense rate, of which mma.sync reaches 63 % (docs/measurements.md).
 */
static const double WGMMA_RATE = 2048.0;
static const double MMA_SYNC_RATE = 1290.0;

/* ---- can it ---- */

static bool is_operand_of(const struct gemm_use *use, const struct buffer *buffer, int which)
{
	const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;

	return use->plan.wgmma_n > 0 && (which == 0 ? gemm->a.buffer : gemm->b.buffer) == buffer;
}

static bool has_descriptor(struct solver *solver, const struct gemm_use *use, int which,
                           const struct layout *layout)
{
	struct operand_ref ref = { &use->stmt->as.op.as.gemm, &use->plan, which, layout };
	struct wgmma_matrix matrix;

	return access_wgmma_matrix(solver->access, &ref, &matrix);
}

bool solve_wgmma_reads(struct solver *solver, const struct buffer *buffer,
                       const struct layout *layout)
{
	for (uint32_t g = 0; g < solver->gemms.n; g++)
		for (int which = 0; which < 2; which++)
			if (is_operand_of(solver->gemms.p[g], buffer, which) &&
			    !has_descriptor(solver, solver->gemms.p[g], which, layout))
				return false;
	return true;
}

bool solve_wgmma_operand(const struct solver *solver, const struct buffer *buffer)
{
	for (uint32_t g = 0; buffer->scope == SCOPE_SHARED && g < solver->gemms.n; g++)
		if (is_operand_of(solver->gemms.p[g], buffer, 0) ||
		    is_operand_of(solver->gemms.p[g], buffer, 1))
			return true;
	return false;
}

/* Some layout serves this gemm and those planned before. */
static bool has_layout(struct solver *solver, const struct gemm_use *use, int which)
{
	const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;
	const struct buffer *buffer = which == 0 ? gemm->a.buffer : gemm->b.buffer;
	static const int64_t spans[] = { 128, 64, 32, 16 };
	int64_t shape[MAX_RANK];

	if (buffer->scope != SCOPE_SHARED)
		return true;
	if (solver->annotated[buffer->id])
		return has_descriptor(solver, use, which, solver->annotated[buffer->id]->layout);
	for (uint32_t d = 0; d < buffer->rank; d++)
		shape[d] = buffer_extent(buffer, d);
	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
		const struct layout *layout =
			layout_swizzled(solver->arena, buffer->rank, shape, dtype_bits(buffer->type), spans[i]);

		if (layout && has_descriptor(solver, use, which, layout) &&
		    solve_wgmma_reads(solver, buffer, layout) && solve_tma_takes(solver, buffer, layout))
			return true;
	}
	return false;
}

/* MN-major operands exist for 16-bit types alone. */
static const char *why_not_major(const struct solver *solver, const struct op_gemm *gemm)
{
	bool wide = dtype_bits(gemm->b.buffer->type) == 16;

	if (!wide && !gemm->transpose_b)
		return arena_printf(solver->arena, "%s of this type must be given as N x K",
		                    sym_text(solver->cx->names, gemm->b.buffer->name));
	if (!wide && gemm->transpose_a && gemm->a.buffer->scope == SCOPE_SHARED)
		return arena_printf(solver->arena, "%s of this type must be given as M x K",
		                    sym_text(solver->cx->names, gemm->a.buffer->name));
	return NULL;
}

/* Why not, as far as the grid does not matter; NULL: nothing against it. */
static const char *why_not_form(const struct solver *solver, const struct gemm_use *use)
{
	const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;

	if (solver->n_threads % WGMMA_THREADS != 0)
		return arena_printf(solver->arena, "%" PRId64 " threads are not whole warpgroups of 128",
		                    solver->n_threads);
	if (use->plan.m % WGMMA_M != 0)
		return arena_printf(solver->arena, "M=%" PRId64 " is not a multiple of 64", use->plan.m);
	if (gemm_k_rest(&use->plan) != 0)
		return arena_printf(solver->arena, "K=%" PRId64 " is not a multiple of %d", use->plan.k,
		                    mma_shape_info(use->plan.shape)->k);
	if (alias_owner(gemm->a.buffer) != gemm->a.buffer ||
	    alias_owner(gemm->b.buffer) != gemm->b.buffer)
		return "an operand is another shape or type of a buffer's memory";
	if (gemm->b.buffer->scope != SCOPE_SHARED)
		return arena_printf(solver->arena, "%s is not in shared memory",
		                    sym_text(solver->cx->names, gemm->b.buffer->name));
	return why_not_major(solver, gemm);
}

/* 32-bit registers of a thread that hold its part of the accumulator. */
static int64_t accumulator_registers(const struct solver *solver, const struct gemm_plan *plan)
{
	int64_t bits = (int64_t)dtype_bits(mma_shape_info(plan->shape)->d);

	return plan->m * plan->n / solver->n_threads * bits / 32;
}

static const char *plan_grid(struct solver *solver, enum gemm_policy policy, struct gemm_use *use)
{
	struct gemm_plan *plan = &use->plan;
	bool is_integer = mma_shape_info(plan->shape)->d.kind == TYPE_INT;
	int64_t limit = target_thread_registers(solver->target, launch_n_threads(solver->launch));

	if (!solve_group_grid(solver, policy, plan))
		return arena_printf(solver->arena,
		                    "no grid of %" PRId64 " warpgroups of 64 rows and 8 columns covers "
		                    "%" PRId64 " x %" PRId64,
		                    solver->n_threads / WGMMA_THREADS, plan->m, plan->n);
	plan->wgmma_n = wgmma_split(plan->n / plan->warps_n, is_integer);
	if (!plan->wgmma_n)
		return arena_printf(solver->arena, "no instruction has N=%" PRId64 " of this type",
		                    plan->n / plan->warps_n);
	if (accumulator_registers(solver, plan) + WARP_TEMPORARIES > limit)
		return arena_printf(solver->arena,
		                    "an accumulator in flight cannot leave its %" PRId64
		                    " registers, a thread has %" PRId64,
		                    accumulator_registers(solver, plan), limit);
	for (int which = 0; which < 2; which++) {
		const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;

		if (!has_layout(solver, use, which))
			return arena_printf(solver->arena, "no matrix descriptor expresses %s",
			                    sym_text(solver->cx->names,
			                             which == 0 ? gemm->a.buffer->name : gemm->b.buffer->name));
	}
	return NULL;
}

bool solve_wgmma(struct solver *solver, enum gemm_policy policy, struct gemm_use *use)
{
	struct gemm_plan before = use->plan;

	if (!solver->target->has_wgmma)
		return false;
	use->not_wgmma = why_not_form(solver, use);
	if (!use->not_wgmma)
		use->not_wgmma = plan_grid(solver, policy, use);
	if (!use->not_wgmma && use->stmt->as.op.kind == OP_gemm && solver->no_wgmma &&
	    solver->no_wgmma[use->stmt->id])
		use->not_wgmma = "the solution with mma.sync costs less";
	if (!use->not_wgmma)
		return true;
	use->plan = before;
	return false;
}

/* ---- should it ---- */

/* Cycles of the tensor cores for one block; narrower types are proportionally faster. */
static double tensor_cycles(const struct gemm_plan *plan)
{
	double rate = plan->wgmma_n ? WGMMA_RATE : MMA_SYNC_RATE;
	double bits = (double)dtype_bits(mma_shape_info(plan->shape)->ab);

	return (double)plan->m * (double)plan->n * (double)plan->k * (bits / 16.0) / rate;
}

struct choice {
	struct solver *solver;  /* opened, not run */
	const bool *best;       /* by statement id: mma.sync */
	double best_cost;       /* 0: none solves */
	struct solver *decided; /* the best trial, nothing recorded yet */
	bool is_silent;         /* it had no diagnostics */
};

double solve_tensor_cost(const struct solver *solver)
{
	double cost = 0;

	for (uint32_t g = 0; g < solver->gemms.n; g++)
		cost += (double)solver->gemms.p[g]->weight * tensor_cycles(&solver->gemms.p[g]->plan);
	return cost;
}

static void try_choice(struct choice *choice, const bool *no_wgmma)
{
	const struct solver *solver = choice->solver;
	struct trial *trial = arena_new(solver->cx->arena, struct trial);
	struct solver *again = arena_new(solver->cx->arena, struct solver);
	struct cx *quiet = arena_new(solver->cx->arena, struct cx);
	bool *tried = arena_array(solver->cx->arena, bool, solver->program->n_stmts);

	memcpy(tried, no_wgmma, solver->program->n_stmts * sizeof(*tried));
	*trial = (struct trial){ .strict = solver->options.strict, .limit = choice->best_cost };
	*quiet = *solver->cx;
	quiet->diags = (struct diag_list){ .arena = solver->cx->arena };
	*again = (struct solver){ .no_wgmma = tried, .memo = solver->memo, .target = solver->target };
	again->options = solver->options;
	again->trial = trial;
	solve_open(again, solver->program, solver->launch, quiet);
	if (!solve_decide(again))
		return;
	choice->best_cost = again->solution->cost + solve_tensor_cost(again);
	choice->best = tried;
	choice->decided = again;
	choice->is_silent = quiet->diags.items.n == 0;
}

struct gemm_list {
	struct arena *arena;
	vec_of(const struct stmt *) stmts;
};

static void visit_gemm(void *user, struct stmt *stmt)
{
	struct gemm_list *list = user;

	if (stmt->kind == STMT_OP && stmt->as.op.kind == OP_gemm)
		vec_push(list->arena, &list->stmts, stmt);
}

struct solution *solve_choose_wgmma(struct solver *solver)
{
	struct arena *arena = solver->cx->arena;
	uint32_t n = solver->program->n_stmts;
	struct gemm_list gemms = { .arena = arena };
	struct choice choice = { .solver = solver, .best = arena_array(arena, bool, n) };
	bool *tried = arena_array(arena, bool, n);

	tile_walk((struct block *)(uintptr_t)&solver->launch->body, visit_gemm, &gemms);
	if (!solver->target->has_wgmma || gemms.stmts.n == 0)
		return NULL;
	try_choice(&choice, tried);
	for (uint32_t g = 0; g < gemms.stmts.n; g++)
		tried[gemms.stmts.p[g]->id] = true;
	try_choice(&choice, tried);
	for (uint32_t g = 0; gemms.stmts.n > 1 && g < gemms.stmts.n && g < MAX_FLIPPED; g++) {
		uint32_t id = gemms.stmts.p[g]->id;

		memcpy(tried, choice.best, n * sizeof(*tried));
		tried[id] = !tried[id];
		try_choice(&choice, tried);
	}
	solver->no_wgmma = choice.decided ? choice.best : tried;
	if (!choice.decided || !choice.is_silent || solver->options.why)
		return NULL;
	solve_finish(choice.decided);
	return choice.decided->solution;
}
