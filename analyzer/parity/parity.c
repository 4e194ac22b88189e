/* The model of TileLang: collect the ops, infer, and record the answer as a solution. */
#include "analyzer/parity/parity_internal.h"

#include <assert.h>
#include <string.h>

static struct pinfer *open_model(struct tile_program *program, const struct launch *launch,
                                 const struct target *target)
{
	struct pinfer *infer = arena_new(program->cx->arena, struct pinfer);
	size_t n = program->buffers.n;

	infer->program = program;
	infer->launch = launch;
	infer->target = target;
	infer->cx = program->cx;
	infer->arena = program->cx->arena;
	infer->pool = program->pool;
	infer->n_threads = launch_n_threads(launch);
	infer->floating = arena_array(infer->arena, bool, n);
	infer->strict = arena_array(infer->arena, bool, n);
	infer->uses = arena_array(infer->arena, bool, n);
	return infer;
}

/* ---- the solution ---- */

/* Shared buffers that nothing constrains are row-major. */
static const struct layout *buffer_layout(struct pinfer *infer, const struct buffer *buffer)
{
	int64_t shape[MAX_RANK];

	if (infer->state.frag && infer->state.frag[buffer->id])
		return pfrag_layout(infer->arena, infer->state.frag[buffer->id]);
	if (infer->state.shared && infer->state.shared[buffer->id])
		return infer->state.shared[buffer->id];
	if (buffer->scope != SCOPE_SHARED || buffer->launch != infer->launch->index ||
	    buffer_n_elems(buffer) < 1)
		return NULL;
	for (uint32_t d = 0; d < buffer->rank; d++)
		shape[d] = buffer_extent(buffer, d);
	return layout_row_major(infer->arena, buffer->rank, shape, dtype_bits(buffer->type), 0);
}

static void record_plan(struct pinfer *infer, struct solution *solution, uint32_t at)
{
	struct pop *op = infer->ops.p[at];
	struct stmt_plan *plan = &solution->plans[op->stmt->id];
	struct pfrag *partition = infer->state.loop[at];

	plan->stmt = op->stmt;
	if (op->kind == POP_GEMM) {
		plan->has_plan = true;
		plan->as.gemm = op->gemm;
		plan->as.gemm.c = solution->buffers[op->gemm_op.c.buffer->id].layout;
	} else if (op->kind == POP_LOOP && partition) {
		plan->has_plan = true;
		plan->as.loop.layout = pfrag_layout(infer->arena, partition);
		plan->as.loop.vector_elems = 1;
	} else if (op->kind == POP_COPY && partition) {
		plan->has_plan = true;
		plan->as.copy.kind = op->copy.is_cp_async ? COPY_CP_ASYNC : COPY_LOOP;
		plan->as.copy.loop.layout = pfrag_layout(infer->arena, partition);
		plan->as.copy.loop.vector_elems = 1;
	}
}

static void report_rejected(struct pinfer *infer)
{
	const struct stmt *stmt = infer->culprit_stmt;

	diag_report(&infer->cx->diags, DIAG_E0420, stmt ? stmt->span : infer->launch->span,
	            "TileLang rejects this kernel%s%s: %s", infer->culprit ? ", buffer " : "",
	            infer->culprit ? sym_text(infer->cx->names, infer->culprit->name) : "",
	            infer->reason ? infer->reason : "no layout serves all operations");
}

static struct solution *record_solution(struct pinfer *infer, enum presult result)
{
	struct tile_program *program = infer->program;
	struct solution *solution = arena_new(infer->arena, struct solution);

	solution->program = program;
	solution->launch = infer->launch;
	solution->target = infer->target;
	solution->status = result == P_OK ? SOLVE_BEST_FOUND : SOLVE_CONFLICT;
	solution->buffers = arena_array(infer->arena, struct buffer_solution, program->buffers.n);
	solution->plans = arena_array(infer->arena, struct stmt_plan, program->n_stmts);
	for (uint32_t i = 0; i < program->buffers.n; i++) {
		solution->buffers[i].buffer = program->buffers.p[i];
		solution->buffers[i].layout = buffer_layout(infer, program->buffers.p[i]);
	}
	for (uint32_t i = 0; i < infer->ops.n && result == P_OK; i++)
		record_plan(infer, solution, i);
	if (result != P_OK)
		report_rejected(infer);
	return solution;
}

struct parity *parity_tilelang(struct tile_program *program, const struct launch *launch,
                               const struct target *target)
{
	struct parity *parity = arena_new(program->cx->arena, struct parity);
	struct pinfer *infer = open_model(program, launch, target);
	enum presult result;

	assert(launch && target);
	parity_collect(infer);
	parity_split(infer);
	result = parity_engine(infer);
	parity->model = infer;
	parity->n_producer_threads = infer->is_split ? 128 : 0;
	parity->solution = record_solution(infer, result);
	parity->schedule = parity_schedule(infer, parity->solution);
	return parity;
}
