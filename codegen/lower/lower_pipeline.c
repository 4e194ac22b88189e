/*
 * Loops: serial and unrolled ones, and pipelines of several stages.
 *
 * for ko in T.Pipelined(n, num_stages=3) becomes
 *
 *     copies of iterations 0 and 1, one cp.async group each
 *     for ko in n:
 *         cp.async.wait 1     the group of iteration ko is done
 *         barrier             everybody sees it, and is done with version (ko + 2) % 3
 *         copies of iteration ko + 2 into version (ko + 2) % 3, one group, which may be empty
 *         the rest on version ko % 3
 *     cp.async.wait 0
 *
 * When the rest begins with a gemm on wgmma, its products are begun before the copies are issued
 * and awaited behind that, or, when it is all there is and there are versions enough, an iteration
 * later: then copies run one iteration less ahead, into the version of two iterations before.
 *
 * Groups are committed also when there is nothing left to copy, so that the count of the wait holds
 * in every iteration.
 */
#include "codegen/lower/lower_internal.h"

#include "analyzer/tile/alias.h"

#include <assert.h>
#include <string.h>

const char *lower_loop_name(struct lower *l, const struct var *var)
{
	static const char *const ours[] = { "step", "part", "c0", "c1", "c2", "c3", "c4", "tid" };
	const char *name = sym_text(l->cx->names, var->name);

	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (!strcmp(name, ours[i]))
			return arena_printf(l->cx->arena, "%s_", name);
	return name;
}

static void bind(struct lower *l, const struct var *var, const struct expr *value)
{
	map_set(l->cx->arena, &l->subst.of_var, var->id, (void *)(uintptr_t)value);
}

/* The workspace of a reduction is written and read by it. */
static void mark_workspace(void *user, struct stmt *stmt)
{
	struct lower *l = user;
	const struct wshared *workspace = map_get(&l->workspace_of, stmt->id);

	if (workspace)
		lower_did(l, workspace, true, true, false);
}

/* A cp.async that no pipeline waits for. */
static bool is_own_async(struct lower *l, const struct buffer_use *use)
{
	const struct stmt *stmt = use->stmt;

	if (!use->writes || stmt->kind != STMT_OP || stmt->as.op.kind != OP_copy ||
	    l->solution->plans[stmt->id].as.copy.kind != COPY_CP_ASYNC)
		return false;
	for (uint32_t p = 0; p < l->schedule->pipelines.n; p++) {
		const struct pipeline *pipeline = &l->schedule->pipelines.p[p];
		for (uint32_t i = 0; pipeline->num_stages > 1 && i < pipeline->ops.n; i++)
			if (pipeline->ops.p[i].stmt == stmt && pipeline->ops.p[i].stage == 0)
				return false;
	}
	return true;
}

/* Does the next iteration find a copy into the buffer in flight? A later use awaits it. */
static bool is_left_in_flight(struct lower *l, const struct block *body,
                              const struct buffer *buffer)
{
	bool in_flight = false;

	for (uint32_t i = 0; i < body->stmts.n; i++) {
		struct stmt *stmt = body->stmts.p[i];
		struct use_list uses = { .arena = l->cx->arena };
		bool is_certain = stmt->kind == STMT_OP || stmt->kind == STMT_LET ||
		                  stmt->kind == STMT_STORE ||
		                  (stmt->kind == STMT_LOOP && stmt->as.loop.kind == LOOP_PARALLEL);
		depend_stmt(&uses, stmt);
		for (uint32_t j = 0; j < uses.uses.n; j++)
			if (uses.uses.p[j].buffer == buffer)
				in_flight = is_own_async(l, &uses.uses.p[j]) || (in_flight && !is_certain);
	}
	return in_flight;
}

/* By threads: what bulk copies write is ordered by their barriers alone. */
static bool is_stored_to(const struct use_list *uses, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < uses->uses.n; i++) {
		const struct buffer_use *use = &uses->uses.p[i];

		if (use->buffer == buffer && use->writes &&
		    !(use->stmt->kind == STMT_OP && use->stmt->as.op.kind == OP_tma_copy))
			return true;
	}
	return false;
}

void lower_enter_body(struct lower *l, struct block *body, const struct use_list *uses)
{
	tile_walk(body, mark_workspace, l);
	for (uint32_t i = 0; i < uses->uses.n; i++) {
		const struct buffer *buffer = uses->uses.p[i].buffer;
		if (l->shared_of[buffer->id] && is_stored_to(uses, buffer))
			lower_did(l, l->shared_of[buffer->id], true, true, is_left_in_flight(l, body, buffer));
		else if (l->shared_of[buffer->id] && use_list_writes(uses, buffer))
			lower_did(l, l->shared_of[buffer->id], use_list_reads(uses, buffer), false, false);
	}
}

/* The body once for each trip. */
static void expand_loop(struct lower *l, struct loop *loop, const struct expr *extent)
{
	int64_t trips;

	if (!expr_is_int(extent, &trips))
		BUG("a loop that is expanded has no constant extent");
	for (int64_t t = 0; t < trips && !l->failed; t++) {
		bind(l, loop->vars[0], expr_int(l->pool, t));
		lower_block(l, &loop->body);
	}
}

void lower_loop(struct lower *l, struct stmt *stmt)
{
	struct loop *loop = &stmt->as.loop;
	const struct expr *extent = lower_condition(l, stmt, loop->extents[0]);
	struct use_list uses = { .arena = l->cx->arena };
	struct hazard *before;
	struct wblock *outer = l->block;

	if (!extent)
		return;
	enum unroll unroll = lower_unroll(l, loop, extent);
	if (unroll == UNROLL_EXPANDED) {
		expand_loop(l, loop, extent);
		return;
	}
	bool divergent = !lower_is_uniform(extent);
	depend_block(&uses, &loop->body);
	struct wnode *node =
		warp_add_loop(l->warp, l->block,
	                  (struct wloop_head){ lower_loop_name(l, loop->vars[0]), extent,
	                                       unroll == UNROLL_LOOP, stmt->span });
	bind(l, loop->vars[0], expr_of_var(l->pool, node->as.loop.var));
	before = lower_save_hazards(l);
	lower_enter_body(l, &loop->body, &uses);
	l->block = &node->as.loop.body;
	l->n_divergent += divergent;
	lower_block(l, &loop->body);
	l->n_divergent -= divergent;
	lower_close(l, outer);
	lower_merge_hazards(l, before);
}

/* ---- pipelines ---- */

struct pipe {
	struct lower *l;
	const struct pipeline *pipeline;
	struct loop *loop;
	const struct expr *extent;
};

/* Versions of all buffers that the pipeline copies into. */
static void set_versions(struct pipe *pipe, const struct expr *version)
{
	for (uint32_t i = 0; i < pipe->pipeline->ops.n; i++) {
		const struct pipeline_op *op = &pipe->pipeline->ops.p[i];
		if (op->stage == 0)
			pipe->l->version_of[alias_owner(op->stmt->as.op.as.copy.dst.buffer)->id] = version;
	}
}

/*
 * Stands for an iteration that exists, while its copies are lowered: its range lets bounds be
 * proved.
 */
static const struct var *iteration_var(struct pipe *pipe)
{
	struct lower *l = pipe->l;
	struct var *var =
		expr_new_var(l->pool, VAR_LOOP, intern_text(l->cx->names, "iteration"), DTYPE_I32);
	int64_t min, max;

	var->min = 0;
	if (expr_range(pipe->extent, &min, &max) && max < INT64_MAX)
		var->max = max > 0 ? max - 1 : 0;
	return var;
}

/* The copies of iteration `k`, if there is one, and the end of their group. */
static void issue_copies(struct pipe *pipe, const struct expr *k)
{
	struct lower *l = pipe->l;
	struct wblock *outer = lower_open_if(l, expr_lt(l->pool, k, pipe->extent));
	struct wblock *block = l->block;
	uint32_t first = block->nodes.n;
	const struct var *iteration = iteration_var(pipe);
	const struct expr *inside = expr_is_int(k, NULL) ? k : expr_of_var(l->pool, iteration);
	bool async = false;

	bind(l, pipe->loop->vars[0], inside);
	set_versions(pipe, expr_mod_int(l->pool, inside, pipe->pipeline->num_stages));
	l->in_pipeline = true;
	for (uint32_t i = 0; i < pipe->pipeline->ops.n; i++) {
		const struct pipeline_op *op = &pipe->pipeline->ops.p[i];
		if (op->stage != 0)
			continue;
		async |= op->async;
		lower_stmt(l, (struct stmt *)(uintptr_t)op->stmt);
	}
	l->in_pipeline = false;
	lower_rebind(l, block, first, iteration, k);
	lower_close(l, outer);
	l->span = pipe->pipeline->loop->span;
	if (async)
		lower_inst(l, WOP_cp_async_commit);
}

static bool has_async(const struct pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->pipeline->ops.n; i++)
		if (pipe->pipeline->ops.p[i].stage == 0 && pipe->pipeline->ops.p[i].async)
			return true;
	return false;
}

static void wait_groups(struct pipe *pipe, int64_t n_pending)
{
	if (has_async(pipe))
		lower_inst(pipe->l, WOP_cp_async_wait)->as.cp_async_wait.n_pending = n_pending;
}

/* The statements behind the copies, from the i-th operation on: that many, of iteration k. */
static uint32_t run_ops(struct pipe *pipe, const struct expr *k, uint32_t i, uint32_t n)
{
	struct lower *l = pipe->l;

	bind(l, pipe->loop->vars[0], k);
	set_versions(pipe, expr_mod_int(l->pool, k, pipe->pipeline->num_stages));
	for (; i < pipe->pipeline->ops.n && n > 0; i++) {
		if (pipe->pipeline->ops.p[i].stage == 0)
			continue;
		lower_stmt(l, (struct stmt *)(uintptr_t)pipe->pipeline->ops.p[i].stmt);
		n--;
	}
	return i;
}

/* Does the first statement behind the copies begin products that may go on meanwhile? */
static bool begins_with_wgmma(const struct pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->pipeline->ops.n; i++) {
		const struct stmt *stmt = pipe->pipeline->ops.p[i].stmt;

		if (pipe->pipeline->ops.p[i].stage != 0)
			return stmt->kind == STMT_OP && stmt->as.op.kind == OP_gemm &&
			       pipe->l->solution->plans[stmt->id].as.gemm.wgmma_n > 0;
	}
	return false;
}

/*
 * One iteration of the steady state. Copies go into the version of the iteration before, whose
 * readers have all passed the barrier, so that they may be issued while the first gemm runs.
 */
static void steady_state(struct pipe *pipe, const struct var *var)
{
	struct lower *l = pipe->l;
	const struct expr *k = expr_of_var(l->pool, var);
	int64_t ahead = pipe->pipeline->ahead;
	uint32_t next = 0;

	wait_groups(pipe, ahead - 1);
	lower_barrier(l);
	l->holds_wait = begins_with_wgmma(pipe);
	if (l->holds_wait)
		next = run_ops(pipe, k, 0, 1);
	l->holds_wait = false;
	issue_copies(pipe, expr_add_int(l->pool, k, ahead));
	lower_wgmma_wait(l, pipe->pipeline->in_flight);
	run_ops(pipe, k, next, UINT32_MAX);
}

/* The copies of the prologue overwrite what earlier statements may still read. */
static void before_prologue(struct pipe *pipe)
{
	for (uint32_t i = 0; i < pipe->pipeline->ops.n; i++) {
		const struct pipeline_op *op = &pipe->pipeline->ops.p[i];
		if (op->stage == 0)
			lower_before_write(pipe->l, pipe->l->shared_of[op->stmt->as.op.as.copy.dst.buffer->id]);
	}
}

void lower_pipelined(struct lower *l, struct stmt *stmt)
{
	const struct pipeline *pipeline = schedule_pipeline(l->schedule, stmt);
	struct pipe pipe = { .l = l, .pipeline = pipeline, .loop = &stmt->as.loop };
	struct use_list uses = { .arena = l->cx->arena };
	struct wblock *outer = l->block;

	if (!pipeline || pipeline->num_stages < 2) {
		lower_loop(l, stmt);
		return;
	}
	pipe.extent = lower_condition(l, stmt, stmt->as.loop.extents[0]);
	if (!pipe.extent)
		return;
	before_prologue(&pipe);
	for (int64_t k = 0; k < pipeline->ahead; k++)
		issue_copies(&pipe, expr_int(l->pool, k));
	depend_block(&uses, &stmt->as.loop.body);
	struct wnode *node =
		warp_add_loop(l->warp, l->block,
	                  (struct wloop_head){ lower_loop_name(l, stmt->as.loop.vars[0]), pipe.extent,
	                                       false, stmt->span });
	struct hazard *before = lower_save_hazards(l);
	lower_enter_body(l, &stmt->as.loop.body, &uses);
	l->block = &node->as.loop.body;
	l->span = stmt->span;
	steady_state(&pipe, node->as.loop.var);
	lower_close(l, outer);
	lower_wgmma_wait(l, 0);
	lower_merge_hazards(l, before);
	set_versions(&pipe, NULL);
	l->span = stmt->span;
	wait_groups(&pipe, 0);
	for (uint32_t i = 0; i < pipeline->ops.n; i++)
		if (pipeline->ops.p[i].stage == 0)
			lower_did(l, l->shared_of[pipeline->ops.p[i].stmt->as.op.as.copy.dst.buffer->id], true,
			          true, false);
}
