/*
 * Groups of a block's threads with work of their own (T.ws, or an if that whole warps take).
 *
 * What a group does is partitioned over its threads, so its statements are lowered with a thread
 * number that counts from the group's first; that number is replaced at the end:
 *
 *     if tid >= 128:
 *         ld C_v[0; 4] <- C[group*4]      becomes     ld C_v[0; 4] <- C[(tid - 128)*4]
 *
 * Hazards between threads of one group are ordered by a barrier of that group alone.
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>
#include <string.h>

uint32_t lower_role(struct lower *l, struct thread_range range)
{
	for (uint32_t r = 0; r < l->n_roles; r++)
		if (l->roles[r].first == range.first && l->roles[r].n == range.n)
			return r;
	if (l->n_roles == MAX_LOWER_ROLES)
		return 0;
	l->roles[l->n_roles] = range;
	return l->n_roles++;
}

/* Is the statement's work, or what it converts, spread over threads? */
static bool is_collective(const struct lower *l, const struct stmt *stmt)
{
	if (l->solution->plans[stmt->id].conversions.n)
		return true;
	if (stmt->kind == STMT_OP && stmt->as.op.kind == OP_tma_copy)
		return false;
	if (stmt->kind == STMT_OP)
		return op_is_gemm(&stmt->as.op) || l->solution->plans[stmt->id].has_plan;
	return stmt->kind == STMT_LOOP && stmt->as.loop.kind == LOOP_PARALLEL;
}

/* Registers are filled by whoever has them; nobody reads those of other threads. */
static bool fills_registers(const struct stmt *stmt)
{
	return stmt->kind == STMT_OP && stmt->as.op.kind == OP_fill &&
	       stmt->as.op.as.fill.dst.buffer->scope == SCOPE_FRAGMENT;
}

/* Are the threads that come here those that the solver gave the work to? */
static bool all_come(const struct lower *l, const struct stmt *stmt)
{
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];
	const struct thread_range *role = &l->roles[l->role];

	if (l->n_divergent)
		return false;
	return (!plan->has_plan && !plan->conversions.n) ||
	       (plan->threads.first == role->first && plan->threads.n == role->n) ||
	       (fills_registers(stmt) && l->role == 0);
}

bool lower_role_begin(struct lower *l, const struct stmt *stmt, struct role_state *before)
{
	*before = (struct role_state){ .block = NULL };
	if (!is_collective(l, stmt))
		return true;
	if (!all_come(l, stmt)) {
		lower_error(l, "the work of this line is spread over all threads of the block, but the if "
		               "around it lets only some of them come");
		return false;
	}
	if (l->role == 0)
		return true;
	before->space = l->space;
	before->block = l->block;
	before->first_node = l->block->nodes.n;
	access_space_init(&l->space, l->cx, l->pool, l->roles[l->role].n);
	return true;
}

void lower_role_end(struct lower *l, const struct role_state *before)
{
	const struct expr *tid;

	if (!before->block)
		return;
	assert(l->block == before->block || l->failed);
	tid = expr_add_int(l->pool, expr_of_var(l->pool, before->space.tid), -l->roles[l->role].first);
	lower_rebind(l, before->block, before->first_node, l->space.tid, tid);
	l->space = before->space;
}

static void visit_manual(void *user, struct stmt *stmt)
{
	*(bool *)user |= stmt->kind == STMT_OP &&
	                 (stmt->as.op.kind == OP_barrier_wait || stmt->as.op.kind == OP_barrier_arrive);
}

bool lower_is_manual(const struct launch *launch)
{
	bool found = false;

	tile_walk((struct block *)(uintptr_t)&launch->body, visit_manual, &found);
	return found;
}

/* ---- barriers that the kernel writes by number ---- */

bool lower_barrier_number(const struct lower *l, uint32_t role, int64_t *id)
{
	*id = MAX_LOWER_ROLES - (int64_t)role;
	return role > 0 && !(l->taken_barriers >> *id & 1);
}

static bool is_call_of(const struct lower *l, const struct stmt *stmt, const char *name)
{
	const struct expr *call = stmt->as.op.as.evaluate.value;

	return call->kind == EXPR_CALL && strcmp(sym_text(l->cx->names, call->as.callee), name) == 0;
}

/* T.sync_threads(id, count): hardware barrier `id`, and the threads that meet there. */
static bool numbered_barrier(const struct lower *l, const struct stmt *stmt, int64_t *id,
                             int64_t *count)
{
	const struct expr *call = stmt->as.op.as.evaluate.value;

	*count = l->roles[0].n;
	return is_call_of(l, stmt, "named_barrier_sync") && call->n_args >= 1 &&
	       expr_is_int(call->args[0], id) &&
	       (call->n_args < 2 || expr_is_int(call->args[1], count));
}

static void visit_numbered(void *user, struct stmt *stmt)
{
	struct lower *l = user;
	int64_t id, count;

	if (stmt->kind == STMT_OP && stmt->as.op.kind == OP_evaluate &&
	    numbered_barrier(l, stmt, &id, &count) && id >= 0 && id < MAX_LOWER_ROLES)
		l->taken_barriers |= 1u << id;
}

void lower_find_numbered(struct lower *l, const struct launch *launch)
{
	tile_walk((struct block *)(uintptr_t)&launch->body, visit_numbered, l);
}

static void lower_numbered(struct lower *l, int64_t id, int64_t count)
{
	struct winst *inst;

	if (id < 1 || id >= MAX_LOWER_ROLES) {
		lower_error(l, "hardware barriers that a kernel may use have the numbers 1 to %d",
		            MAX_LOWER_ROLES - 1);
		return;
	}
	if (count != l->roles[l->role].n && !l->n_divergent) {
		lower_error(l,
		            "barrier %d waits for %d threads, %d come here: a barrier that several groups "
		            "of threads share is not supported yet",
		            (int)id, (int)count, (int)l->roles[l->role].n);
		return;
	}
	inst = lower_inst(l, WOP_barrier_part);
	inst->as.barrier_part.id = id;
	inst->as.barrier_part.n_threads = count;
	lower_met(l);
}

/* T.sync_warp() orders no more than the barriers that lowering puts where they are needed. */
void lower_evaluate(struct lower *l, const struct stmt *stmt)
{
	int64_t id, count;

	if (numbered_barrier(l, stmt, &id, &count))
		lower_numbered(l, id, count);
	else if (!is_call_of(l, stmt, "sync_warp") && !lower_hopper_call(l, stmt))
		lower_error(l, "%s is known, but not supported yet for this target",
		            op_title(l->cx, &stmt->as.op));
}
