/*
 * The solution as text (`emit --stage=solution`), and its invariants.
 *
 *     solution matmul_relu sm_80 threads 128 optimal cost 31488 bound 31488
 *         A_shared  swizzle128  memory (128, 64) of 16 bits offset = ...
 *             16384 wavefronts, ideal 16384; linear would need 131072
 *         @28 copy  cp.async 16 bytes, fragment (128, 64) thread = i%16*8 + j/8, slot = i/16*8 +
 * j%8
 */
#include "analyzer/solve/solve.h"

#include <inttypes.h>
#include <string.h>

static const char *status_text(enum solve_status status)
{
	switch (status) {
	case SOLVE_OPTIMAL:
		return "optimal";
	case SOLVE_BEST_FOUND:
		return "best found";
	case SOLVE_CONFLICT:
		return "conflict";
	}
	return "";
}

static const char *constraint_kind_text(enum constraint_kind kind)
{
	switch (kind) {
	case CONSTRAINT_ACCUMULATOR:
		return "accumulator";
	case CONSTRAINT_OPERAND:
		return "operand";
	case CONSTRAINT_LOOP:
		return "loop";
	case CONSTRAINT_COPY:
		return "copy";
	case CONSTRAINT_REDUCE:
		return "reduce";
	case CONSTRAINT_SHARED:
		return "shared";
	case CONSTRAINT_BULK:
		return "bulk";
	case CONSTRAINT_ANNOTATION:
		return "annotation";
	}
	return "";
}

static void print_layout_line(struct buf *out, const char *before, const struct layout *layout)
{
	struct buf text = { 0 };

	if (layout)
		layout_print(&text, layout);
	buf_line(out, "%s%s", before, layout ? buf_cstr(&text) : "-");
	buf_free(&text);
}

static void print_buffer(struct buf *out, const struct solution *solution,
                         const struct buffer_solution *solved)
{
	const struct cx *cx = solution->program->cx;

	if (!solved->layout)
		return;
	buf_line(out, "%s %s %s", scope_text(solved->buffer->scope),
	         sym_text(cx->names, solved->buffer->name), layout_kind_text(solved->layout));
	out->indent++;
	print_layout_line(out, "", solved->layout);
	if (solved->fixed_by && solved->fixed_by->stmt)
		buf_line(out, "by @%" PRIu32 " %s", source_line(&cx->sources, solved->fixed_by->span),
		         solved->fixed_by->text);
	for (uint32_t c = 0; c < solved->candidates.n; c++) {
		const struct candidate *candidate = &solved->candidates.p[c];

		buf_line(out,
		         "candidate %s: %" PRId64 " wavefronts, ideal %" PRId64 ", %" PRId64
		         " bytes, cost %.0f",
		         layout_kind_text(candidate->layout), candidate->wavefronts, candidate->ideal,
		         candidate->layout->n_bytes, candidate->cost);
	}
	out->indent--;
}

static void print_copy(struct buf *out, const struct copy_plan *copy)
{
	static const char *const kinds[] = {
		[COPY_LOOP] = "loop", [COPY_CP_ASYNC] = "cp.async", [COPY_STAGED] = "staged"
	};

	if (copy->bytes == 0) /* TileLang's: the widths are those of its accesses */
		buf_line(out, "%s", kinds[copy->kind]);
	else
		buf_line(out, "%s, %" PRId64 " bytes a thread, vectors of %" PRId64, kinds[copy->kind],
		         copy->bytes, copy->loop.vector_elems);
	print_layout_line(out, "", copy->loop.layout);
}

static void print_reduce(struct buf *out, const struct reduce_plan *reduce)
{
	buf_line(out,
	         "shuffles over lane bits 0x%" PRIx64 ", %" PRId64 " parts a result, %" PRId64
	         " bytes of workspace",
	         (uint64_t)reduce->lane_mask_bits, reduce->n_parts, reduce->workspace_bytes);
	print_layout_line(out, "source ", reduce->source);
	print_layout_line(out, "result ", reduce->result);
}

const char *conversion_kind_text(enum conversion_kind kind)
{
	switch (kind) {
	case CONVERT_REGISTERS:
		return "registers";
	case CONVERT_SHUFFLE:
		return "shuffle";
	case CONVERT_SHARED:
		return "shared";
	}
	return "";
}

static void print_conversions(struct buf *out, const struct solution *solution,
                              const struct stmt_plan *plan)
{
	const struct cx *cx = solution->program->cx;

	for (uint32_t i = 0; i < plan->conversions.n; i++) {
		const struct conversion *conversion = &plan->conversions.p[i];
		const char *name = sym_text(cx->names, conversion->buffer->name);
		const char *when = conversion->is_after ? " back" : "";

		if (conversion->kind == CONVERT_REGISTERS)
			buf_line(out, "converts %s between registers%s", name, when);
		else if (conversion->kind == CONVERT_SHUFFLE)
			buf_line(out,
			         "converts %s%s by %" PRId64 " shuffles and %" PRId64
			         " moves of a warp, cost %.0f",
			         name, when, conversion->n_rounds, conversion->n_sets, conversion->cost);
		else
			buf_line(out,
			         "converts %s%s through %" PRId64 " bytes of shared memory, %" PRId64
			         " wavefronts, ideal %" PRId64 ", %" PRId64 " barriers, cost %.0f",
			         name, when, conversion->workspace_bytes, conversion->wavefronts,
			         conversion->ideal, conversion->n_barriers, conversion->cost);
		print_layout_line(out, "  from ", conversion->from);
		print_layout_line(out, "  to ", conversion->to);
		if (conversion->workspace)
			print_layout_line(out, "  in ", conversion->workspace);
	}
}

static void print_gemm(struct buf *out, const struct gemm_plan *gemm)
{
	const struct mma_shape_info *info = mma_shape_info(gemm->shape);

	if (gemm->wgmma_n)
		buf_line(out,
		         "wgmma.m64n%" PRId64 "k%d%s, %" PRId64 " x %" PRId64 " x %" PRId64 ", %" PRId64
		         " x %" PRId64 " warps",
		         gemm->wgmma_n, info->k, strchr(info->text, '.'), gemm->m, gemm->n, gemm->k,
		         gemm->warps_m, gemm->warps_n);
	else
		buf_line(out,
		         "mma.%s, %" PRId64 " x %" PRId64 " x %" PRId64 ", %" PRId64 " x %" PRId64 " warps",
		         info->text, gemm->m, gemm->n, gemm->k, gemm->warps_m, gemm->warps_n);
}

static void print_tma(struct buf *out, const struct tma_plan *tma)
{
	const struct tma_box *box = &tma->box;

	buf_line(out,
	         "%s %" PRId64 " x %" PRId64 " x %" PRId64 " boxes of %" PRId64 " x %" PRId64
	         " elements, swizzle %" PRId64 ", %" PRId64 " bytes",
	         tma->is_load ? "loads" : "stores", box->n_outer, box->n_rows, box->n_inner, box->rows,
	         box->inner, box->span, tma->bytes);
}

static void print_plan(struct buf *out, const struct solution *solution,
                       const struct stmt_plan *plan)
{
	uint32_t line = source_line(&solution->program->cx->sources, plan->stmt->span);
	const struct gemm_plan *gemm = &plan->as.gemm;

	if (!plan->has_plan) {
		buf_line(out, "@%" PRIu32 " outside T.Parallel", line);
		out->indent++;
		print_conversions(out, solution, plan);
		out->indent--;
		return;
	}
	if (plan->stmt->kind != STMT_OP) {
		buf_line(out, "@%" PRIu32 " parallel", line);
		out->indent++;
		buf_line(out, "vectors of %" PRId64, plan->as.loop.vector_elems);
		print_layout_line(out, "", plan->as.loop.layout);
		print_conversions(out, solution, plan);
		out->indent--;
		return;
	}
	buf_line(out, "@%" PRIu32 " %s", line, op_info(plan->stmt->as.op.kind)->id);
	out->indent++;
	switch (plan->stmt->as.op.kind) {
	case OP_copy:
		print_copy(out, &plan->as.copy);
		break;
	case OP_fill:
		print_layout_line(out, "", plan->as.loop.layout);
		break;
	case OP_gemm:
	case OP_wgmma_gemm:
		print_gemm(out, gemm);
		break;
	case OP_reduce:
	case OP_finalize_reducer:
		print_reduce(out, &plan->as.reduce);
		break;
	case OP_scan:
		buf_line(out, "%" PRId64 " bytes of workspace", plan->as.scan.workspace_bytes);
		print_layout_line(out, "", plan->as.scan.layout);
		break;
	case OP_tma_copy:
		print_tma(out, &plan->as.tma);
		break;
	CASES_OF_BARRIER_OPS:
	CASES_OF_TILE_ONLY_OPS:
	CASES_OF_STAGED_OPS:
	case N_OP_KINDS:
		break;
	}
	print_conversions(out, solution, plan);
	out->indent--;
}

void solution_print(struct buf *out, const struct solution *solution)
{
	const struct cx *cx = solution->program->cx;

	/* TileLang's choices (analyzer/parity) were not weighed. */
	if (solution->status == SOLVE_BEST_FOUND && solution->cost == 0)
		buf_line(out, "solution %s %s threads %" PRId64 " as TileLang's",
		         sym_text(cx->names, solution->program->name), solution->target->name,
		         launch_n_threads(solution->launch));
	else
		buf_line(out, "solution %s %s threads %" PRId64 " %s cost %.1f bound %.1f%s",
		         sym_text(cx->names, solution->program->name), solution->target->name,
		         launch_n_threads(solution->launch), status_text(solution->status), solution->cost,
		         solution->bound, solution->is_partial ? " of the candidates looked at" : "");
	out->indent++;
	for (uint32_t b = 0; b < solution->program->buffers.n; b++)
		print_buffer(out, solution, &solution->buffers[b]);
	for (uint32_t s = 0; s < solution->program->n_stmts; s++)
		if (solution->plans[s].has_plan || solution->plans[s].conversions.n)
			print_plan(out, solution, &solution->plans[s]);
	for (uint32_t c = 0; c < solution->conflict.n; c++)
		buf_line(out, "conflict %s @%" PRIu32 " %s",
		         constraint_kind_text(solution->conflict.p[c]->kind),
		         source_line(&cx->sources, solution->conflict.p[c]->span),
		         solution->conflict.p[c]->text);
	out->indent--;
}

/* ---- invariants ---- */

static bool wrong(const struct solution *solution, struct span span, const char *what)
{
	diag_report(&solution->program->cx->diags, DIAG_E0409, span, "%s", what);
	return false;
}

static bool verify_buffer(const struct solution *solution, const struct buffer_solution *solved)
{
	const struct buffer *buffer = solved->buffer;
	const struct layout *layout = solved->layout;

	if (!buffer)
		return wrong(solution, (struct span){ 0 }, "a buffer has no entry");
	if (!layout)
		return true;
	if (layout->rank != buffer->rank ||
	    (layout->kind == LAYOUT_FRAGMENT) != (buffer->scope == SCOPE_FRAGMENT))
		return wrong(solution, buffer->span, "a layout has the wrong kind or rank for its buffer");
	for (uint32_t d = 0; d < layout->rank; d++)
		if (layout->shape[d] != buffer_extent(buffer, d))
			return wrong(solution, buffer->span, "a layout has another shape than its buffer");
	if (layout->kind == LAYOUT_FRAGMENT && layout->n_threads > launch_n_threads(solution->launch))
		return wrong(solution, buffer->span, "a fragment lives on more threads than the block has");
	if (!layout_injective(layout, NULL, NULL))
		return wrong(solution, buffer->span, "two elements of a buffer share a place");
	return true;
}

static bool verify_loop(const struct solution *solution, const struct stmt *stmt,
                        const struct loop_plan *loop)
{
	if (!loop->layout || loop->layout->kind != LAYOUT_FRAGMENT || loop->vector_elems < 1)
		return wrong(solution, stmt->span, "a statement has no partition");
	if (loop->layout->n_slots % loop->vector_elems != 0)
		return wrong(solution, stmt->span, "vectors do not divide a partition's slots");
	if (loop->layout->n_threads > solution->plans[stmt->id].threads.n)
		return wrong(solution, stmt->span, "a partition uses more threads than do the statement");
	return true;
}

static bool verify_gemm(const struct solution *solution, const struct stmt *stmt,
                        const struct gemm_plan *gemm)
{
	const struct buffer *buffer = stmt->as.op.as.gemm.c.buffer;
	const struct layout *c = plan_layout(&solution->plans[stmt->id], buffer);

	if (gemm->warps_m * gemm->warps_n * 32 != solution->plans[stmt->id].threads.n)
		return wrong(solution, stmt->span,
		             "a gemm's warp grid has another number of warps than the threads that do it");
	if (gemm->m % (16 * gemm->warps_m) != 0 || gemm->n % (8 * gemm->warps_n) != 0)
		return wrong(solution, stmt->span, "a gemm's warps do not cover it");
	if (!layout_equal(gemm->c, c ? c : solution->buffers[buffer->id].layout, NULL))
		return wrong(solution, stmt->span, "a gemm's accumulator is not where its fragment lives");
	return true;
}

static bool verify_plan(const struct solution *solution, const struct stmt_plan *plan)
{
	const struct stmt *stmt = plan->stmt;

	if (stmt->kind == STMT_LOOP)
		return verify_loop(solution, stmt, &plan->as.loop);
	switch (stmt->as.op.kind) {
	case OP_copy:
		return verify_loop(solution, stmt, &plan->as.copy.loop) &&
		       (plan->as.copy.kind != COPY_CP_ASYNC || plan->as.copy.bytes >= 4 ||
		        wrong(solution, stmt->span, "cp.async of less than 4 bytes"));
	case OP_fill:
		return verify_loop(solution, stmt, &plan->as.loop);
	case OP_gemm:
	case OP_wgmma_gemm:
		return verify_gemm(solution, stmt, &plan->as.gemm);
	case OP_scan:
		return plan->as.scan.layout ? true : wrong(solution, stmt->span, "a scan has no layout");
	case OP_reduce:
	case OP_finalize_reducer:
		return plan->as.reduce.source && plan->as.reduce.result
		           ? true
		           : wrong(solution, stmt->span, "a reduction has no source or result layout");
	case OP_tma_copy:
		return plan->as.tma.box.inner > 0 || wrong(solution, stmt->span, "a bulk copy has no box");
	CASES_OF_BARRIER_OPS:
	CASES_OF_TILE_ONLY_OPS:
	CASES_OF_STAGED_OPS:
	case N_OP_KINDS:
		break;
	}
	return true;
}

/* Statements that move elements and have no plan. */
struct missing {
	const struct solution *solution;
	bool ok;
};

/* Barriers and calls move no elements. */
static bool op_moves(enum op_kind kind)
{
	return kind != OP_barrier_init && kind != OP_barrier_arrive && kind != OP_barrier_expect_tx &&
	       kind != OP_barrier_wait && kind != OP_evaluate;
}

static void check_planned(void *user, struct stmt *stmt)
{
	struct missing *missing = user;
	bool needs = (stmt->kind == STMT_OP && op_moves(stmt->as.op.kind)) ||
	             (stmt->kind == STMT_LOOP && stmt->as.loop.kind == LOOP_PARALLEL);

	if (needs && !missing->solution->plans[stmt->id].has_plan)
		missing->ok = wrong(missing->solution, stmt->span, "a statement has no plan");
}

bool solution_verify(const struct solution *solution)
{
	struct missing missing = { solution, true };
	bool ok = true;

	if (solution->status == SOLVE_CONFLICT)
		return wrong(solution, solution->launch->span, "a conflict is no solution");
	for (uint32_t b = 0; b < solution->program->buffers.n; b++)
		ok &= verify_buffer(solution, &solution->buffers[b]);
	for (uint32_t s = 0; s < solution->program->n_stmts; s++)
		if (solution->plans[s].has_plan)
			ok &= verify_plan(solution, &solution->plans[s]);
	tile_walk((struct block *)(uintptr_t)&solution->launch->body, check_planned, &missing);
	return ok && missing.ok;
}
