/*
 * Stages of pipelined loops, versions of their buffers, places in shared memory.
 *
 * A loop of num_stages S overlaps its copies into shared memory with the rest: the copies of
 * iteration k + S - 1 are issued in iteration k, so a copy has stage 0, everything else stage S -
 * 1, and each buffer that is copied into has S versions:
 *
 *     for ko in T.Pipelined(n, num_stages=3):          iteration k of the steady state
 *         T.copy(A[...], A_shared)    stage 0             wait until the copies of k are done;
 * barrier T.copy(B[...], B_shared)    stage 0             issue the copies of k + 2 into version (k
 * + 2) % 3 T.gemm(A_shared, B_shared, C)  stage 2          gemm on version k % 3
 *
 * On wgmma, with four stages or more and nothing but one gemm behind the copies, the product of an
 * iteration goes on while the next begins: copies run one iteration less ahead then.
 *
 * A copy may run ahead only when nothing in the loop can notice: its source is not written in the
 * loop, its target is written by this copy alone, is not read earlier in the body (that read wants
 * the last iteration's value) and not used outside the loop, and its addresses do not depend on
 * values computed in the body. If one copy may not, the loop keeps its order and the reason is
 * kept. Complexity: statements of the loop squared.
 */
#include "analyzer/pipeline/pipeline.h"

#include "analyzer/pipeline/depend.h"
#include "analyzer/tile/alias.h"

#include <assert.h>

struct schedule_pass {
	struct cx *cx;
	const struct solution *solution;
	struct schedule *schedule;
	struct use_list all; /* uses in the whole launch */
};

static bool is_shared_copy(const struct stmt *stmt)
{
	return stmt->kind == STMT_OP && stmt->as.op.kind == OP_copy &&
	       stmt->as.op.as.copy.dst.buffer->scope == SCOPE_SHARED &&
	       stmt->as.op.as.copy.src.buffer->scope == SCOPE_GLOBAL;
}

static uint32_t count_writes(const struct use_list *list, const struct buffer *buffer)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < list->uses.n; i++)
		n += list->uses.p[i].buffer == alias_owner(buffer) && list->uses.p[i].writes;
	return n;
}

static uint32_t count_uses(const struct use_list *list, const struct buffer *buffer)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < list->uses.n; i++)
		n += list->uses.p[i].buffer == alias_owner(buffer);
	return n;
}

/* Does a region's position depend on a scalar that the loop's body binds, or on a buffer that it
 * writes? */
static bool address_depends(struct schedule_pass *pass, const struct region *region,
                            const struct loop *loop, const struct use_list *body)
{
	struct use_list loads = { .arena = pass->cx->arena };

	for (uint32_t d = 0; d < region->buffer->rank; d++) {
		depend_expr(&loads, NULL, region_index_expr(region, d));
		for (uint32_t i = 0; i < loop->body.stmts.n; i++) {
			const struct stmt *stmt = loop->body.stmts.p[i];
			if (stmt->kind == STMT_LET && expr_uses(region_index_expr(region, d), stmt->as.let.var))
				return true;
		}
	}
	for (uint32_t i = 0; i < loads.uses.n; i++)
		if (use_list_writes(body, loads.uses.p[i].buffer))
			return true;
	return false;
}

/* Why the copy at position `at` of the body cannot run ahead; NULL when it can. */
static const char *why_not_ahead(struct schedule_pass *pass, const struct loop *loop, uint32_t at,
                                 const struct use_list *body)
{
	struct arena *arena = pass->cx->arena;
	const struct op_copy *copy = &loop->body.stmts.p[at]->as.op.as.copy;
	const char *dst = sym_text(pass->cx->names, copy->dst.buffer->name),
			   *src = sym_text(pass->cx->names, copy->src.buffer->name);
	struct use_list before = { .arena = arena };

	for (uint32_t i = 0; i < at; i++)
		depend_stmt(&before, loop->body.stmts.p[i]);
	if (use_list_writes(body, copy->src.buffer))
		return arena_printf(arena, "the loop writes %s, which the copy into %s reads", src, dst);
	if (count_writes(body, copy->dst.buffer) > 1)
		return arena_printf(arena, "%s is written more than once in an iteration", dst);
	if (use_list_reads(&before, copy->dst.buffer))
		return arena_printf(
			arena, "%s is read before it is copied: iteration k + 1 reads what iteration k copied",
			dst);
	if (count_uses(&pass->all, copy->dst.buffer) != count_uses(body, copy->dst.buffer))
		return arena_printf(arena, "%s is also used outside the loop", dst);
	if (address_depends(pass, &copy->src, loop, body) ||
	    address_depends(pass, &copy->dst, loop, body))
		return arena_printf(
			arena, "the addresses of the copy into %s depend on values computed in the loop", dst);
	return NULL;
}

/* The first reason against overlapping, or NULL. */
static const char *why_not_pipelined(struct schedule_pass *pass, const struct loop *loop)
{
	struct use_list body = { .arena = pass->cx->arena };
	uint32_t n_copies = 0;

	depend_block(&body, (struct block *)(uintptr_t)&loop->body);
	for (uint32_t i = 0; i < loop->body.stmts.n; i++) {
		if (!is_shared_copy(loop->body.stmts.p[i]))
			continue;
		const char *reason = why_not_ahead(pass, loop, i, &body);
		if (reason)
			return reason;
		n_copies++;
	}
	return n_copies ? NULL : "the loop has no copy from global to shared memory to run ahead";
}

static bool is_async(const struct schedule_pass *pass, const struct stmt *stmt)
{
	const struct stmt_plan *plan = &pass->solution->plans[stmt->id];

	return is_shared_copy(stmt) && plan->has_plan && plan->as.copy.kind == COPY_CP_ASYNC;
}

/*
 * May the product of an iteration go on while the next begins? It must be all that the loop does
 * behind its copies, and with the version that it still reads at least two more have to be copied.
 */
static bool keeps_product(const struct schedule_pass *pass, const struct loop *loop,
                          int64_t num_stages)
{
	enum { LEAST_STAGES = 4 };
	uint32_t n_products = 0, n_others = 0;

	for (uint32_t i = 0; i < loop->body.stmts.n; i++) {
		const struct stmt *stmt = loop->body.stmts.p[i];
		const struct stmt_plan *plan = &pass->solution->plans[stmt->id];
		bool is_gemm = stmt->kind == STMT_OP && stmt->as.op.kind == OP_gemm;

		if (is_gemm && plan->as.gemm.wgmma_n && !plan->as.gemm.a_is_fragment &&
		    !stmt->as.op.as.gemm.clear_accum && !plan->conversions.n)
			n_products++;
		else if (!is_shared_copy(stmt))
			n_others++;
	}
	return num_stages >= LEAST_STAGES && n_products == 1 && n_others == 0;
}

static void plan_loop(struct schedule_pass *pass, const struct stmt *stmt)
{
	const struct loop *loop = &stmt->as.loop;
	struct pipeline pipeline = { .loop = stmt,
		                         .num_stages = loop->num_stages > 1 ? loop->num_stages : 1 };

	if (pipeline.num_stages > 1)
		pipeline.reason = why_not_pipelined(pass, loop);
	if (pipeline.reason)
		pipeline.num_stages = 1;
	pipeline.in_flight = keeps_product(pass, loop, pipeline.num_stages);
	pipeline.ahead = pipeline.num_stages - 1 - pipeline.in_flight;
	for (int copies = 1; copies >= 0; copies--)
		for (uint32_t i = 0; i < loop->body.stmts.n; i++) {
			const struct stmt *child = loop->body.stmts.p[i];
			bool ahead = pipeline.num_stages > 1 && is_shared_copy(child);
			if (pipeline.num_stages > 1 ? ahead != (bool)copies : copies != 0)
				continue;
			struct pipeline_op op = { child, ahead ? 0 : pipeline.ahead, pipeline.ops.n,
				                      is_async(pass, child) };
			vec_push(pass->cx->arena, &pipeline.ops, op);
		}
	vec_push(pass->cx->arena, &pass->schedule->pipelines, pipeline);
}

static void visit_loop(void *user, struct stmt *stmt)
{
	if (stmt->kind == STMT_LOOP && stmt->as.loop.kind == LOOP_PIPELINED)
		plan_loop(user, stmt);
}

/* ---- placement ---- */

/* Versions that pipelines ask for. */
static int64_t versions_of(const struct schedule *schedule, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < schedule->pipelines.n; i++) {
		const struct pipeline *pipeline = &schedule->pipelines.p[i];
		for (uint32_t j = 0; pipeline->num_stages > 1 && j < pipeline->ops.n; j++) {
			const struct stmt *stmt = pipeline->ops.p[j].stmt;
			if (is_shared_copy(stmt) && alias_owner(stmt->as.op.as.copy.dst.buffer) == buffer)
				return pipeline->num_stages;
		}
	}
	return 1;
}

/* A swizzle repeats after 8 lines of its span: 1024, 512 or 256 bytes. */
static int64_t alignment_of(const struct layout *layout)
{
	int64_t align = 128;

	for (uint32_t i = 0; layout && i < layout->n_xors; i++) {
		int64_t period = (int64_t)1 << (layout->xors[i].from_bit + layout->xors[i].n_bits);
		if (period > align)
			align = period;
	}
	return align > 1024 ? 1024 : align;
}

static int64_t round_up(int64_t value, int64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static void add_place(struct schedule_pass *pass, struct shared_place place)
{
	struct schedule *schedule = pass->schedule;

	place.version_bytes = round_up(place.version_bytes, place.align_bytes);
	place.offset_bytes = round_up(schedule->shared_bytes, place.align_bytes);
	schedule->shared_bytes = place.offset_bytes + place.version_bytes * place.n_versions;
	vec_push(pass->cx->arena, &schedule->places, place);
}

static void place_buffers(struct schedule_pass *pass)
{
	const struct solution *solution = pass->solution;

	for (uint32_t i = 0; i < solution->program->buffers.n; i++) {
		const struct buffer_solution *solved = &solution->buffers[i];
		const struct buffer *buffer = solution->program->buffers.p[i];
		if (buffer->scope != SCOPE_SHARED || buffer->launch != solution->launch->index ||
		    !solved->layout || alias_owner(buffer) != buffer)
			continue;
		struct shared_place place = { .buffer = buffer,
			                          .n_versions = versions_of(pass->schedule, buffer) };
		place.version_bytes = solved->layout->n_bytes;
		place.align_bytes = alignment_of(solved->layout);
		add_place(pass, place);
	}
}

/* A statement's reduction and conversions use one workspace after another. */
static int64_t workspace_bytes(const struct stmt *stmt, const struct stmt_plan *plan)
{
	int64_t bytes = 0;

	if (stmt->kind == STMT_OP && stmt->as.op.kind == OP_reduce)
		bytes = plan->as.reduce.workspace_bytes;
	if (stmt->kind == STMT_OP && stmt->as.op.kind == OP_finalize_reducer)
		bytes = plan->as.reduce.workspace_bytes;
	if (stmt->kind == STMT_OP && stmt->as.op.kind == OP_scan)
		bytes = plan->as.scan.workspace_bytes;
	for (uint32_t i = 0; i < plan->conversions.n; i++)
		if (plan->conversions.p[i].workspace_bytes > bytes)
			bytes = plan->conversions.p[i].workspace_bytes;
	return bytes;
}

static void visit_workspace(void *user, struct stmt *stmt)
{
	struct schedule_pass *pass = user;
	const struct stmt_plan *plan = &pass->solution->plans[stmt->id];

	if (!plan->stmt || !workspace_bytes(stmt, plan))
		return;
	struct shared_place place = { .workspace_of = stmt, .n_versions = 1, .align_bytes = 128 };
	place.version_bytes = workspace_bytes(stmt, plan);
	add_place(pass, place);
}

struct schedule *schedule_make(const struct solution *solution)
{
	struct cx *cx = solution->program->cx;
	struct schedule *schedule = arena_new(cx->arena, struct schedule);
	struct schedule_pass pass = {
		.cx = cx, .solution = solution, .schedule = schedule, .all = { .arena = cx->arena }
	};
	struct block *body = (struct block *)(uintptr_t)&solution->launch->body;

	schedule->solution = solution;
	depend_block(&pass.all, body);
	tile_walk(body, visit_loop, &pass);
	place_buffers(&pass);
	tile_walk(body, visit_workspace, &pass);
	return schedule;
}

const struct shared_place *schedule_place(const struct schedule *schedule,
                                          const struct buffer *buffer)
{
	for (uint32_t i = 0; i < schedule->places.n; i++)
		if (schedule->places.p[i].buffer == alias_owner(buffer))
			return &schedule->places.p[i];
	return NULL;
}

const struct pipeline *schedule_pipeline(const struct schedule *schedule, const struct stmt *loop)
{
	for (uint32_t i = 0; i < schedule->pipelines.n; i++)
		if (schedule->pipelines.p[i].loop == loop)
			return &schedule->pipelines.p[i];
	return NULL;
}

bool schedule_verify(const struct schedule *schedule)
{
	int64_t end = 0;

	for (uint32_t i = 0; i < schedule->places.n; i++) {
		const struct shared_place *place = &schedule->places.p[i];
		if (place->offset_bytes < end || place->offset_bytes % place->align_bytes)
			BUG("shared place %u overlaps its predecessor or is misaligned", i);
		end = place->offset_bytes + place->n_versions * place->version_bytes;
	}
	for (uint32_t i = 0; i < schedule->pipelines.n; i++) {
		const struct pipeline *pipeline = &schedule->pipelines.p[i];
		if (pipeline->ops.n != pipeline->loop->as.loop.body.stmts.n)
			BUG("pipeline %u does not hold each statement of its loop once", i);
	}
	return end == schedule->shared_bytes;
}
