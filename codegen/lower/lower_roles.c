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
	if (stmt->kind == STMT_OP)
		return stmt->as.op.kind == OP_gemm || l->solution->plans[stmt->id].has_plan;
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
