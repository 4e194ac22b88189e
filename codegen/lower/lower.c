/*
 * The walk over a launch: statements in program order, each lowered by the file of its kind.
 *
 * Preconditions: the tile program, the solution and the schedule are verified. Complexity: linear
 * in statements times the instructions each makes; loops stay loops.
 */
#include "codegen/lower/lower_internal.h"

#include "analyzer/tile/alias.h"

#include <assert.h>

const struct expr *lower_expr(struct lower *l, const struct expr *e)
{
	return expr_substitute(l->pool, e, &l->subst);
}

static void lower_op(struct lower *l, struct stmt *stmt)
{
	if (stmt->as.op.kind == OP_evaluate) {
		lower_evaluate(l, stmt);
		return;
	}
	switch (stmt->as.op.kind) {
	case OP_copy:
		lower_copy(l, stmt);
		return;
	case OP_wgmma_gemm:
	case OP_gemm:
		lower_gemm(l, stmt);
		return;
	case OP_fill:
		lower_fill(l, stmt);
		return;
	case OP_reduce:
		lower_reduce(l, stmt);
		return;
	case OP_finalize_reducer:
		lower_finalize(l, stmt);
		return;
	case OP_scan:
		lower_scan(l, stmt);
		return;
	case OP_tma_copy:
	CASES_OF_BARRIER_OPS:
		lower_hopper(l, stmt);
		return;
	CASES_OF_TILE_ONLY_OPS:
		lower_error(l, "%s is known, but not supported yet for this target",
		            op_title(l->cx, &stmt->as.op));
		return;
	CASES_OF_STAGED_OPS:
	case N_OP_KINDS:
		break;
	}
	BUG("op kind %d", (int)stmt->as.op.kind);
}

static void visit_uniform(void *user, const struct expr *e)
{
	if ((e->kind == EXPR_REG && !e->as.reg->is_uniform) ||
	    (e->kind == EXPR_VAR && e->as.var->kind == VAR_THREAD) || e->kind == EXPR_CALL ||
	    e->kind == EXPR_LOAD)
		*(bool *)user = true;
}

bool lower_is_uniform(const struct expr *e)
{
	bool differs = false;

	expr_walk(e, visit_uniform, &differs);
	return !differs;
}

/* Who takes a branch. */
struct branch {
	struct block *block;
	const struct expr *condition; /* that holds in it */
	bool divergent;               /* not all threads of the role */
	uint32_t role;                /* the group of threads that takes it, else the one around */
};

static struct branch branch_of(struct lower *l, struct stmt *stmt, const struct expr *condition,
                               bool holds)
{
	struct branch_taken taken = { stmt->as.if_.condition, holds };
	struct branch branch = { holds ? &stmt->as.if_.then : &stmt->as.if_.otherwise,
		                     holds ? condition : expr_unary(l->pool, UN_NOT, condition),
		                     !lower_is_uniform(condition), l->role };
	struct thread_range range = l->roles[l->role];

	if (!branch.divergent || l->n_divergent ||
	    !thread_range_narrow(l->warp->tile, l->warp->launch, &taken, &range))
		return branch;
	branch.role = lower_role(l, range);
	branch.divergent = branch.role == 0 && range.n != l->roles[0].n;
	return branch;
}

static void lower_branch(struct lower *l, const struct branch *branch)
{
	uint32_t role = l->role, n_guards = l->guards.n;

	l->n_divergent += branch->divergent;
	l->role = branch->role;
	if (!lower_is_uniform(branch->condition))
		vec_push(l->cx->arena, &l->guards, branch->condition);
	lower_block(l, branch->block);
	l->guards.n = n_guards;
	l->role = role;
	l->n_divergent -= branch->divergent;
}

/* What a group of threads needs from all must be waited for by all, in front of it. */
static void before_branch(struct lower *l, const struct branch *branch)
{
	struct use_list uses = { .arena = l->cx->arena };

	if (branch->role == l->role)
		return;
	depend_block(&uses, branch->block);
	lower_before_role(l, &uses, branch->role);
}

static void lower_if(struct lower *l, struct stmt *stmt)
{
	const struct expr *condition = lower_condition(l, stmt, stmt->as.if_.condition);
	struct wblock *outer = l->block;

	if (!condition)
		return;
	struct branch then = branch_of(l, stmt, condition, true),
				  otherwise = branch_of(l, stmt, condition, false);
	before_branch(l, &then);
	before_branch(l, &otherwise);
	l->span = stmt->span;
	struct wnode *node = warp_add_if(l->warp, l->block, condition, stmt->span);
	struct hazard *before = lower_save_hazards(l), *after_then;
	if (then.role != l->role)
		map_set(l->cx->arena, &l->role_branches[0], node->id, node);
	if (otherwise.role != l->role)
		map_set(l->cx->arena, &l->role_branches[1], node->id, node);
	l->block = &node->as.if_.then;
	lower_branch(l, &then);
	after_then = lower_save_hazards(l);
	for (uint32_t i = 0; i < l->warp->shareds.n; i++)
		l->hazards[i] = before[i];
	l->block = &node->as.if_.otherwise;
	lower_branch(l, &otherwise);
	lower_merge_hazards(l, after_then);
	lower_close(l, outer);
}

static bool loads_memory(struct lower *l, const struct stmt *stmt, const struct expr *e)
{
	struct use_list loads = { .arena = l->cx->arena };

	depend_expr(&loads, stmt, e);
	for (uint32_t i = 0; i < loads.uses.n; i++)
		if (loads.uses.p[i].buffer->scope == SCOPE_SHARED ||
		    loads.uses.p[i].buffer->scope == SCOPE_GLOBAL)
			return true;
	return false;
}

/* Evaluates the condition here, into `reg` unless that is NULL; NULL after an error. */
static const struct expr *while_condition(struct lower *l, const struct stmt *stmt,
                                          const struct wreg *reg)
{
	const struct expr *value = lower_condition(l, stmt, stmt->as.while_.condition),
					  *zero = expr_int(l->pool, 0);

	if (!value || !reg)
		return value;
	lower_set(l, reg, zero, expr_cast(l->pool, DTYPE_BOOL, value), NULL);
	return expr_reg(l->pool, reg, DTYPE_BOOL, zero);
}

/* A condition that reads memory is read before the loop and again behind its body. */
static void lower_while(struct lower *l, struct stmt *stmt)
{
	struct use_list uses = { .arena = l->cx->arena };
	const struct expr *condition = stmt->as.while_.condition, *test;
	struct wblock *outer = l->block;
	struct wreg *reg = NULL;

	if (loads_memory(l, stmt, condition) || l->solution->plans[stmt->id].conversions.n)
		reg = warp_new_reg(l->warp, intern_text(l->cx->names, "go_on"), DTYPE_BOOL, 1);
	test = while_condition(l, stmt, reg);
	if (!test)
		return;
	bool divergent = !lower_is_uniform(test);
	depend_block(&uses, &stmt->as.while_.body);
	depend_expr(&uses, stmt, condition);
	struct wnode *node = warp_add_while(l->warp, l->block, test, stmt->span);
	struct hazard *before = lower_save_hazards(l);
	lower_enter_body(l, &stmt->as.while_.body, &uses);
	l->n_divergent += divergent;
	l->block = &node->as.while_.body;
	lower_block(l, &stmt->as.while_.body);
	l->span = stmt->span;
	if (reg && !l->failed)
		while_condition(l, stmt, reg);
	l->n_divergent -= divergent;
	lower_close(l, outer);
	lower_merge_hazards(l, before);
}

static void lower_loop_stmt(struct lower *l, struct stmt *stmt)
{
	switch (stmt->as.loop.kind) {
	case LOOP_PARALLEL:
		lower_parallel(l, stmt);
		return;
	case LOOP_PIPELINED:
		lower_pipelined(l, stmt);
		return;
	case LOOP_SERIAL:
	case LOOP_UNROLL:
	case LOOP_VECTORIZED:
		lower_loop(l, stmt);
		return;
	}
}

static void lower_kind(struct lower *l, struct stmt *stmt)
{
	switch (stmt->kind) {
	case STMT_OP:
		lower_op(l, stmt);
		return;
	case STMT_LOOP:
		lower_loop_stmt(l, stmt);
		return;
	case STMT_IF:
		lower_if(l, stmt);
		return;
	case STMT_WHILE:
		lower_while(l, stmt);
		return;
	case STMT_LET:
		lower_let(l, stmt);
		return;
	case STMT_STORE:
		lower_scalar_store(l, stmt);
		return;
	case STMT_SYNC:
		lower_written_barrier(l);
		return;
	case STMT_BREAK:
	case STMT_CONTINUE:
		break;
	}
	BUG("a staged launch has no break and no continue");
}

/* A statement that failed is taken out again: the walk goes on behind it. */
static void leave_out(struct lower *l, const struct lower *before, uint32_t n_nodes)
{
	l->block = before->block;
	l->block->nodes.n = n_nodes;
	l->n_divergent = before->n_divergent;
	l->guards.n = before->guards.n;
	l->role = before->role;
	l->in_pipeline = before->in_pipeline;
	l->failed = false;
	l->left_out = true;
}

/* What a statement reads or writes at an address that is data has no code yet. */
static bool is_addressed(struct lower *l, struct stmt *stmt)
{
	struct use_list uses = { .arena = l->cx->arena };

	depend_stmt(&uses, stmt);
	for (uint32_t i = 0; i < uses.uses.n; i++) {
		const struct buffer *buffer = uses.uses.p[i].buffer;

		if (!buffer->base)
			continue;
		lower_error(l, "%s stands at an address that the kernel reads (T.make_tensor)",
		            sym_text(l->cx->names, buffer->name));
		return true;
	}
	return false;
}

/* Conversions of what stands in the head of a block are no matter of its body. */
static bool is_block(const struct stmt *stmt)
{
	return stmt->kind == STMT_IF || stmt->kind == STMT_WHILE ||
	       (stmt->kind == STMT_LOOP && stmt->as.loop.kind != LOOP_PARALLEL);
}

void lower_stmt(struct lower *l, struct stmt *stmt)
{
	struct converted_list converted = { 0 };
	struct lower before = *l;
	struct role_state role;
	uint32_t n_nodes = l->block->nodes.n;

	l->span = stmt->span;
	role.block = NULL;
	if (is_block(stmt)) {
		lower_kind(l, stmt);
	} else if (!is_addressed(l, stmt)) {
		if (lower_role_begin(l, stmt, &role) && lower_convert_begin(l, stmt, &converted))
			lower_kind(l, stmt);
		lower_convert_end(l, stmt, &converted);
		lower_role_end(l, &role);
	}
	if (l->failed && l->is_partial)
		leave_out(l, &before, n_nodes);
}

void lower_block(struct lower *l, struct block *block)
{
	for (uint32_t i = 0; i < block->stmts.n && !l->failed; i++)
		lower_stmt(l, block->stmts.p[i]);
}

/* ---- setting up ---- */

static bool in_registers(enum scope scope)
{
	return scope == SCOPE_FRAGMENT || scope == SCOPE_LOCAL || scope == SCOPE_VAR;
}

static void make_reg(struct lower *l, const struct buffer *buffer)
{
	const struct layout *layout = l->solution->buffers[buffer->id].layout;
	int64_t n =
		buffer->scope == SCOPE_FRAGMENT && layout ? layout->n_slots : buffer_n_elems(buffer);

	if (buffer->scope == SCOPE_FRAGMENT && !layout)
		return;
	struct wreg *reg = warp_new_reg(l->warp, buffer->name, buffer->type, n > 0 ? n : 1);
	reg->buffer = buffer;
	reg->is_uniform = l->is_uniform[buffer->id];
	reg->span = buffer->span;
	l->reg_of[buffer->id] = reg;
}

static struct dtype workspace_type(struct lower *l, const struct stmt *stmt)
{
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];

	if (plan->conversions.n)
		return plan->conversions.p[0].buffer->type;
	if (stmt->as.op.kind == OP_scan)
		return lower_working_type(stmt->as.op.as.scan.dst.buffer->type);
	if (stmt->as.op.kind == OP_finalize_reducer)
		return lower_working_type(stmt->as.op.as.finalize_reducer.dst.buffer->type);
	return stmt->as.op.as.reduce.dst.buffer->type;
}

static void make_shared(struct lower *l, const struct shared_place *place)
{
	sym_t name = place->buffer ? place->buffer->name : intern_text(l->cx->names, "workspace");
	struct dtype type =
		place->buffer ? place->buffer->type : workspace_type(l, place->workspace_of);
	struct wshared *shared = warp_new_shared(l->warp, name, type);

	shared->offset_bytes = place->offset_bytes;
	shared->version_bytes = place->version_bytes;
	shared->n_versions = place->n_versions;
	shared->align_bytes = place->align_bytes;
	shared->buffer = place->buffer;
	shared->span = place->buffer ? place->buffer->span : place->workspace_of->span;
	if (place->buffer)
		l->shared_of[place->buffer->id] = shared;
	else
		map_set(l->cx->arena, &l->workspace_of, place->workspace_of->id, shared);
}

/* Views of another type or shape stand in their owners' pieces. */
static void share_views(struct lower *l, const struct tile_program *program)
{
	for (uint32_t i = 0; i < program->buffers.n; i++) {
		const struct buffer *buffer = program->buffers.p[i];

		if (buffer->scope == SCOPE_SHARED && l->solution->buffers[i].layout)
			l->shared_of[i] = l->shared_of[alias_owner(buffer)->id];
	}
}

static void make_params(struct lower *l, const struct tile_program *program)
{
	for (uint32_t i = 0; i < program->params.n; i++)
		vec_push(l->cx->arena, &l->warp->params, (struct wparam){ program->params.p[i], NULL });
	for (uint32_t i = 0; i < program->scalars.n; i++)
		vec_push(l->cx->arena, &l->warp->params, (struct wparam){ NULL, program->scalars.p[i] });
}

/* threadIdx.x, .y, .z from the flat thread number. */
static void bind_threads(struct lower *l, const struct launch *launch)
{
	const struct expr *rest = expr_of_var(l->pool, l->space.tid);

	for (int axis = 0; axis < 3; axis++) {
		const struct expr *value = expr_mod_int(l->pool, rest, launch->threads[axis]);
		if (launch->thread[axis])
			map_set(l->cx->arena, &l->subst.of_var, launch->thread[axis]->id,
			        (void *)(uintptr_t)value);
		rest = expr_div_int(l->pool, rest, launch->threads[axis]);
	}
}

static void lower_open_launch(struct lower *l, const struct launch *launch,
                              const struct tile_program *program)
{
	int64_t n_threads = launch_n_threads(launch);
	const char *name = sym_text(l->cx->names, program->name);
	const char *full =
		program->launches.n > 1 ? arena_printf(l->cx->arena, "%s_%u", name, launch->index) : name;

	l->warp = warp_new(l->cx, l->pool, intern_text(l->cx->names, full));
	for (int axis = 0; axis < 3; axis++)
		l->warp->block[axis] = launch->block[axis];
	warp_set_launch(l->warp, n_threads, launch->grid);
	l->warp->tile = program;
	l->warp->launch = launch;
	l->warp->rasterization = launch->rasterization;
	access_space_init(&l->space, l->cx, l->pool, n_threads);
	l->space.tid = l->warp->tid;
	make_params(l, program);
	bind_threads(l, launch);
	l->block = &l->warp->body;
}

/* A copy whose buffers' layouts change while a statement reads converted fragments. */
static const struct solution *own_solution(struct arena *arena, const struct solution *solution)
{
	struct solution *own = arena_new(arena, struct solution);
	uint32_t n = solution->program->buffers.n;

	*own = *solution;
	own->buffers = arena_array(arena, struct buffer_solution, n);
	for (uint32_t i = 0; i < n; i++)
		own->buffers[i] = solution->buffers[i];
	return own;
}

/* Notes the pieces that warpgroup instructions read. */
static void mark_wgmma(void *user, struct stmt *stmt)
{
	struct lower *l = user;
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];
	const struct op_gemm *gemm = &stmt->as.op.as.gemm;

	if (stmt->kind != STMT_OP || !op_is_gemm(&stmt->as.op) || !plan->has_plan ||
	    !plan->as.gemm.wgmma_n)
		return;
	for (int which = 0; which < 2; which++) {
		const struct wshared *shared = l->shared_of[(which ? gemm->b : gemm->a).buffer->id];

		if (shared)
			l->wgmma_reads[shared->id] = true;
	}
}

static struct warp_program *lower_any(const struct schedule *schedule, bool is_partial,
                                      bool *is_whole)
{
	const struct solution *solution = schedule->solution;
	const struct tile_program *program = solution->program;
	struct cx *cx = program->cx;
	struct lower l = {
		.cx = cx, .pool = program->pool, .schedule = schedule, .is_partial = is_partial
	};
	uint32_t n = program->buffers.n;

	l.solution = own_solution(cx->arena, solution);

	l.reg_of = arena_array(cx->arena, struct wreg *, n);
	l.shared_of = arena_array(cx->arena, struct wshared *, n);
	l.version_of = arena_array(cx->arena, const struct expr *, n);
	lower_open_launch(&l, solution->launch, program);
	for (uint32_t i = 0; i < schedule->places.n; i++)
		make_shared(&l, &schedule->places.p[i]);
	share_views(&l, program);
	l.warp->shared_bytes = schedule->shared_bytes;
	l.hazards = arena_array(cx->arena, struct hazard, l.warp->shareds.n + 1);
	lower_find_uniform(&l, solution->launch, n);
	l.wgmma_reads = arena_array(cx->arena, bool, l.warp->shareds.n + 1);
	tile_walk((struct block *)(uintptr_t)&solution->launch->body, mark_wgmma, &l);
	lower_role(&l, (struct thread_range){ 0, l.warp->n_threads });
	l.is_manual = lower_is_manual(solution->launch);
	lower_find_numbered(&l, solution->launch);
	lower_find_hopper(&l, solution->launch);
	for (uint32_t i = 0; i < n; i++)
		if (in_registers(program->buffers.p[i]->scope) &&
		    program->buffers.p[i]->launch == solution->launch->index)
			make_reg(&l, program->buffers.p[i]);
	lower_block(&l, (struct block *)(uintptr_t)&solution->launch->body);
	if (!l.failed)
		lower_wait_all(&l);
	if (!l.failed)
		lower_converge(&l);
	l.left_out |= l.failed;
	l.failed = l.failed && !is_partial;
	*is_whole = !l.left_out;
	if (!l.failed)
		lower_locals(&l);
	return l.failed ? NULL : l.warp;
}

struct warp_program *lower_launch(const struct schedule *schedule)
{
	bool is_whole;

	return lower_any(schedule, false, &is_whole);
}

struct warp_program *lower_launch_partly(const struct schedule *schedule, bool *is_whole)
{
	return lower_any(schedule, true, is_whole);
}
