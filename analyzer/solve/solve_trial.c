/*
 * Trials: the same launch solved again with something changed, in silence.
 *
 * A conflict is explained by trials. Statements are left out one at a time, as long as the rest
 * still has no solution: what remains is a minimal set that cannot hold together. Then edits are
 * tried: another policy of a gemm, another number of threads, a fragment in shared memory, a
 * conversion where --strict forbids it. Only those that solve are named, with their price.
 *
 * Only the statements that share fragments with the conflict take part, so that another conflict
 * elsewhere does not matter.
 */
#include "analyzer/pipeline/depend.h"
#include "analyzer/solve/solve_internal.h"

#include <inttypes.h>

enum { MAX_TRIED = 48, MAX_WARPS = 32 };

struct solution *solve_trial(const struct solver *solver, const struct trial *trial)
{
	struct cx *quiet = arena_new(solver->arena, struct cx);
	struct solver again = {
		.target = solver->target, .options = solver->options, .trial = trial, .memo = solver->memo
	};

	*quiet = *solver->cx;
	quiet->diags = (struct diag_list){ .arena = solver->arena };
	again.options.strict = trial->strict;
	again.no_wgmma = solver->no_wgmma;
	if (trial->target)
		again.target = trial->target;
	if (trial->target || trial->has_budget)
		again.memo = NULL;
	if (trial->shared)
		trial->shared->scope = SCOPE_SHARED;
	solve_open(&again, solver->program, solver->launch, quiet);
	solve_run(&again);
	if (trial->shared)
		trial->shared->scope = SCOPE_FRAGMENT;
	return again.solution->status == SOLVE_CONFLICT ? NULL : again.solution;
}

/* ---- the statements that take part ---- */

struct part {
	struct solver *solver;
	bool *fragments;  /* by buffer id: shared with the conflict, directly or not */
	bool *takes_part; /* by statement id */
	vec_of(struct stmt *) stmts;
	bool changed;
};

/* A statement that a trial can leave out. */
static bool is_unit(const struct stmt *stmt)
{
	return stmt->kind == STMT_OP || stmt->kind == STMT_LET || stmt->kind == STMT_STORE ||
	       (stmt->kind == STMT_LOOP && stmt->as.loop.kind == LOOP_PARALLEL);
}

static void visit_part(void *user, struct stmt *stmt)
{
	struct part *part = user;
	struct use_list uses = { .arena = part->solver->arena };
	bool touches = false;

	if (!is_unit(stmt) || part->takes_part[stmt->id])
		return;
	depend_stmt(&uses, stmt);
	for (uint32_t i = 0; i < uses.uses.n; i++)
		touches |= part->fragments[uses.uses.p[i].buffer->id];
	if (!touches)
		return;
	part->takes_part[stmt->id] = true;
	part->changed = true;
	vec_push(part->solver->arena, &part->stmts, stmt);
	for (uint32_t i = 0; i < uses.uses.n; i++)
		if (uses.uses.p[i].buffer->scope == SCOPE_FRAGMENT)
			part->fragments[uses.uses.p[i].buffer->id] = true;
}

/* Units of a block and of those in it; a parallel loop's body is part of the loop. Nesting is that
 * of the tile program, which the front end bounds. */
static void visit_parts(struct part *part, const struct block *block)
{
	for (uint32_t i = 0; i < block->stmts.n; i++) {
		struct stmt *stmt = block->stmts.p[i];

		visit_part(part, stmt);
		if (stmt->kind == STMT_LOOP && stmt->as.loop.kind != LOOP_PARALLEL)
			visit_parts(part, &stmt->as.loop.body);
		if (stmt->kind == STMT_WHILE)
			visit_parts(part, &stmt->as.while_.body);
		if (stmt->kind == STMT_IF) {
			visit_parts(part, &stmt->as.if_.then);
			visit_parts(part, &stmt->as.if_.otherwise);
		}
	}
}

static struct part find_part(struct solver *solver, const struct buffer *buffer)
{
	struct part part = {
		.solver = solver,
		.fragments = arena_array(solver->arena, bool, solver->program->buffers.n),
		.takes_part = arena_array(solver->arena, bool, solver->program->n_stmts),
		.changed = true,
	};

	part.fragments[buffer->id] = true;
	while (part.changed) {
		part.changed = false;
		visit_parts(&part, &solver->launch->body);
	}
	return part;
}

/* ---- the minimal conflict ---- */

static void minimize(struct part *part)
{
	struct trial trial = { .only = part->takes_part, .strict = part->solver->options.strict };

	for (uint32_t i = part->stmts.n; i-- > 0;) {
		part->takes_part[part->stmts.p[i]->id] = false;
		if (solve_trial(part->solver, &trial))
			part->takes_part[part->stmts.p[i]->id] = true;
	}
}

static const char *stmt_text(const struct stmt *stmt)
{
	return stmt->kind == STMT_OP     ? op_info(stmt->as.op.kind)->name
	       : stmt->kind == STMT_LOOP ? "T.Parallel"
	                                 : "the statement";
}

/* In program order, by line. */
static void report_minimal(struct part *part)
{
	struct solver *solver = part->solver;
	struct buf text = { 0 };
	struct span span = { 0 };
	uint32_t n = 0;

	for (uint32_t id = 0; id < solver->program->n_stmts; id++)
		for (uint32_t i = 0; i < part->stmts.n; i++) {
			const struct stmt *stmt = part->stmts.p[i];

			if (stmt->id != id || !part->takes_part[id])
				continue;
			span = n == 0 ? stmt->span : span;
			buf_printf(&text, "%s%s on line %" PRIu32, n++ > 0 ? ", " : "", stmt_text(stmt),
			           source_line(&solver->cx->sources, stmt->span));
		}
	if (n > 1)
		diag_note(&solver->cx->diags, span,
		          "these %" PRIu32 " cannot hold together, any one less can: %s", n,
		          buf_cstr(&text));
	buf_free(&text);
}

/* ---- edits ---- */

static const struct gemm_plan *gemm_plan_of(const struct solution *solution,
                                            const struct stmt *stmt)
{
	return &solution->plans[stmt->id].as.gemm;
}

/* The cheapest policy of one gemm that solves. */
static void try_policies(struct part *part)
{
	struct solver *solver = part->solver;
	const struct stmt *best_gemm = NULL;
	struct trial best = { 0 };
	const struct solution *found = NULL;

	for (uint32_t i = 0; i < part->stmts.n; i++)
		for (int policy = POLICY_SQUARE; policy <= POLICY_FULL_COL; policy++) {
			const struct stmt *stmt = part->stmts.p[i];
			struct trial trial = { .only = part->takes_part,
				                   .strict = solver->options.strict,
				                   .gemm = stmt,
				                   .policy = (enum gemm_policy)policy };
			const struct solution *solution;

			if (stmt->kind != STMT_OP || !op_is_gemm(&stmt->as.op) ||
			    stmt->as.op.as.gemm.policy == policy)
				continue;
			solution = solve_trial(solver, &trial);
			if (!solution || (found && found->cost <= solution->cost))
				continue;
			found = solution;
			best = trial;
			best_gemm = stmt;
		}
	if (!found)
		return;
	diag_help(&solver->cx->diags,
	          "policy=T.GemmWarpPolicy.%s on line %" PRIu32 " solves it (%" PRId64 " x %" PRId64
	          " warps, %.0f cycles a block)",
	          gemm_policy_text(best.policy), source_line(&solver->cx->sources, best_gemm->span),
	          gemm_plan_of(found, best_gemm)->warps_m, gemm_plan_of(found, best_gemm)->warps_n,
	          found->cost);
}

/* The nearest number of threads that solves. */
static void try_threads(struct part *part)
{
	struct solver *solver = part->solver;
	int64_t warps = (solver->n_threads + LANES - 1) / LANES;

	for (int64_t distance = 0; distance < MAX_WARPS; distance++)
		for (int sign = -1; sign <= 1; sign += 2) {
			struct trial trial = { .only = part->takes_part,
				                   .strict = solver->options.strict,
				                   .n_threads = (warps + sign * distance) * LANES };
			const struct solution *solution;

			if (trial.n_threads < LANES || trial.n_threads > MAX_WARPS * LANES ||
			    trial.n_threads == solver->n_threads || (distance == 0 && sign > 0))
				continue;
			solution = solve_trial(solver, &trial);
			if (!solution)
				continue;
			diag_help(&solver->cx->diags, "threads=%" PRId64 " solves it (%.0f cycles a block)",
			          trial.n_threads, solution->cost);
			return;
		}
}

static bool is_accumulator(const struct part *part, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < part->stmts.n; i++)
		if (part->stmts.p[i]->kind == STMT_OP && op_is_gemm(&part->stmts.p[i]->as.op) &&
		    part->stmts.p[i]->as.op.as.gemm.c.buffer == buffer)
			return true;
	return false;
}

/* One fragment in shared memory instead, the conflict's own first. */
static void try_shared(struct part *part, const struct buffer *first)
{
	struct solver *solver = part->solver;
	uint32_t n = solver->program->buffers.n;

	for (uint32_t i = 0; i <= n; i++) {
		struct buffer *buffer = solver->program->buffers.p[i == 0 ? first->id : i - 1];
		struct trial trial = { .only = part->takes_part,
			                   .strict = solver->options.strict,
			                   .shared = buffer };
		const struct solution *solution;
		const struct buffer_solution *solved;

		if (!part->fragments[buffer->id] || buffer->scope != SCOPE_FRAGMENT ||
		    is_accumulator(part, buffer) || dtype_bits(buffer->type) % 8 != 0)
			continue;
		solution = solve_trial(solver, &trial);
		if (!solution || !solution->buffers[buffer->id].layout)
			continue;
		solved = &solution->buffers[buffer->id];
		diag_help(&solver->cx->diags,
		          "T.alloc_shared for %s on line %" PRIu32 " solves it: %" PRId64
		          " bytes of shared memory, %" PRId64 " wavefronts a block (ideal %" PRId64 ")",
		          sym_text(solver->cx->names, buffer->name),
		          source_line(&solver->cx->sources, buffer->span), solved->layout->n_bytes,
		          solved->candidates.p[0].wavefronts, solved->candidates.p[0].ideal);
		return;
	}
}

/* What --strict forbids. */
static void try_conversion(struct part *part)
{
	struct solver *solver = part->solver;
	struct trial trial = { .only = part->takes_part };
	const struct solution *solution;

	if (!solver->options.strict || !(solution = solve_trial(solver, &trial)))
		return;
	for (uint32_t s = 0; s < solver->program->n_stmts; s++)
		for (uint32_t c = 0; c < solution->plans[s].conversions.n; c++) {
			const struct conversion *conversion = &solution->plans[s].conversions.p[c];

			diag_help(&solver->cx->diags,
			          "without --strict %s is converted for line %" PRIu32 ": %" PRId64
			          " bytes of shared memory, %" PRId64 " wavefronts (ideal %" PRId64
			          "), %" PRId64 " barriers",
			          sym_text(solver->cx->names, conversion->buffer->name),
			          source_line(&solver->cx->sources, solution->plans[s].stmt->span),
			          conversion->workspace_bytes, conversion->wavefronts, conversion->ideal,
			          conversion->n_barriers);
		}
}

void solve_suggest(struct solver *solver, const struct buffer *buffer)
{
	struct part part;

	if (solver->trial)
		return;
	part = find_part(solver, buffer);
	if (part.stmts.n > MAX_TRIED)
		return;
	minimize(&part);
	report_minimal(&part);
	for (uint32_t i = 0; i < part.stmts.n; i++)
		part.takes_part[part.stmts.p[i]->id] = true;
	try_policies(&part);
	try_threads(&part);
	try_shared(&part, buffer);
	try_conversion(&part);
}
