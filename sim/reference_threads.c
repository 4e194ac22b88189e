/*
 * Launches that name their threads: a lane is a thread, and every thread has its own arrays and
 * scalars. Statements run one after the other for all threads of the mask, as between barriers
 * after each; a kernel without races computes the same in any order.
 */
#include "sim/reference_internal.h"

#include <string.h>

/* ---- does it? ---- */

struct thread_search {
	const struct launch *launch;
	bool found;
};

static void visit_var(void *user, const struct expr *e)
{
	struct thread_search *search = user;

	for (int axis = 0; axis < 3; axis++)
		search->found |= e->kind == EXPR_VAR && e->as.var == search->launch->thread[axis];
}

static void search_expr(struct thread_search *search, const struct expr *e)
{
	if (e)
		expr_walk(e, visit_var, search);
}

static void search_op(struct thread_search *search, struct op *op)
{
	const struct op_info *info = op_info(op->kind);
	enum operand_role role;

	for (uint32_t i = 0; i < info->n_operands; i++)
		if (info->operands[i].role == ROLE_EXPR)
			search_expr(search, *(const struct expr *const *)((const char *)&op->as +
			                                                  info->operands[i].offset));
	for (uint32_t i = 0; op_region(op, i, &role); i++) {
		const struct region *region = op_region(op, i, &role);
		for (uint32_t d = 0; region->buffer && d < region->buffer->rank; d++)
			search_expr(search, region->min[d]);
	}
}

static void search_stmt(void *user, struct stmt *stmt)
{
	struct thread_search *search = user;

	switch (stmt->kind) {
	case STMT_OP:
		search_op(search, &stmt->as.op);
		break;
	case STMT_LOOP:
		for (uint32_t d = 0; d < stmt->as.loop.n_vars; d++)
			search_expr(search, stmt->as.loop.extents[d]);
		break;
	case STMT_IF:
		search_expr(search, stmt->as.if_.condition);
		break;
	case STMT_WHILE:
		search_expr(search, stmt->as.while_.condition);
		break;
	case STMT_LET:
		search_expr(search, stmt->as.let.value);
		break;
	case STMT_STORE:
		search_expr(search, stmt->as.store.value);
		for (uint32_t d = 0; d < stmt->as.store.buffer->rank; d++)
			search_expr(search, stmt->as.store.index[d]);
		break;
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		break;
	}
}

bool ref_names_threads(const struct launch *launch)
{
	struct thread_search search = { launch, false };

	tile_walk((struct block *)(uintptr_t)&launch->body, search_stmt, &search);
	return search.found;
}

/* ---- lanes ---- */

bool ref_is_private(const struct buffer *buffer)
{
	return buffer->scope == SCOPE_LOCAL || buffer->scope == SCOPE_VAR;
}

static void name_thread(struct ref *ref, int axis, int64_t before)
{
	int64_t n = launch_n_threads(ref->launch);

	if (!ref->thread_lanes[axis])
		ref->thread_lanes[axis] = arena_array(ref->arena, union cell, REFERENCE_LANES);
	for (int64_t t = 0; t < n; t++)
		ref->thread_lanes[axis][t].i = t / before % ref->launch->threads[axis];
	lane_eval_set_lane_values(ref->eval, ref->launch->thread[axis], ref->thread_lanes[axis]);
}

void ref_enter_threads(struct ref *ref)
{
	int64_t before = 1;

	ref->in_parallel = false;
	lane_eval_set_lanes(ref->eval, ref->by_thread ? (uint32_t)launch_n_threads(ref->launch) : 1);
	for (int axis = 0; axis < 3; axis++) {
		if (ref->launch->thread[axis] && ref->by_thread)
			name_thread(ref, axis, before);
		before *= ref->launch->threads[axis];
	}
	for (uint32_t i = 0; ref->by_thread && i < ref->let_lanes.n; i++)
		lane_eval_set_lane_values(
			ref->eval, expr_var_by_id(ref->program->pool, (uint32_t)ref->let_lanes.entries[i].key),
			ref->let_lanes.entries[i].value.pointer);
}

void ref_leave_threads(struct ref *ref)
{
	ref->in_parallel = true;
	for (int axis = 0; axis < 3; axis++)
		if (ref->launch->thread[axis])
			lane_eval_set_unknown(ref->eval, ref->launch->thread[axis]);
	for (uint32_t i = 0; ref->by_thread && i < ref->let_lanes.n; i++)
		lane_eval_set_unknown(
			ref->eval, expr_var_by_id(ref->program->pool, (uint32_t)ref->let_lanes.entries[i].key));
}

bool ref_agreed(struct ref *ref, const struct lanes *lanes, const char *what, union cell *out)
{
	uint32_t n = lane_eval_n_lanes(ref->eval);
	bool found = false;

	for (uint32_t lane = 0; lane < n && !ref->stop && (!found || lanes->stride); lane++) {
		union cell cell = lanes_at(lanes, lane);
		if (!ref->mask->on[lane])
			continue;
		if (lanes_poison(lanes, lane))
			ref_fail(ref, "%s comes from %s", what, poison_text(lanes_poison(lanes, lane)));
		else if (found && memcmp(&cell, out, sizeof(cell)) != 0)
			ref_fail(ref, "%s of this operation differs between threads", what);
		*out = cell;
		found = true;
	}
	return found && !ref->stop;
}

/* ---- operations ---- */

void ref_op_of_threads(struct ref *ref, const struct op *op)
{
	const struct ref_mask *mask = ref->mask;
	struct ref_mask one;
	enum operand_role role;
	bool is_private = false;

	for (uint32_t i = 0; op_region((struct op *)(uintptr_t)op, i, &role); i++) {
		const struct region *region = op_region((struct op *)(uintptr_t)op, i, &role);
		is_private |= region->buffer && ref_is_private(region->buffer);
	}
	ref->thread = ref->first_thread;
	if (!ref->by_thread || !is_private) {
		ref_op(ref, op);
		return;
	}
	for (uint32_t t = 0; t < lane_eval_n_lanes(ref->eval) && !ref->stop; t++) {
		if (!mask->on[t])
			continue;
		memset(&one, 0, sizeof(one));
		one.on[t] = 1;
		ref->thread = t;
		ref->mask = &one;
		ref_op(ref, op);
	}
	ref->mask = mask;
}
