/*
 * Which loops are unrolled so that registers are named by constants.
 *
 * Registers have no addresses: x[k] inside `for k in T.serial(4)` is four registers, one in each
 * copy of the body. So a loop of a known number of trips is unrolled when its variable, or a scalar
 * that the body binds from it, picks an element of a fragment or of a local array. Where the trip
 * count of a loop inside depends on it too, the body is lowered once for each trip, with the
 * variable a constant. Loops that are too long stay loops: the arrays then sit in local memory,
 * which lower_locals.c says.
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

enum { MAX_TRIPS = 256, MAX_UNROLLED_STMTS = 2048, MAX_EXPANDED_STMTS = 512 };

struct unrolling {
	struct lower *l;
	vec_of(const struct var *) vars; /* the loop's, and those bound from it */
	bool picks;                      /* an element of registers */
	bool sets_trips;                 /* of a loop inside */
	int64_t n_stmts;                 /* of the body, once for each trip of loops inside */
};

static bool depends(const struct unrolling *u, const struct expr *e)
{
	for (uint32_t i = 0; e && i < u->vars.n; i++)
		if (expr_uses(e, u->vars.p[i]))
			return true;
	return false;
}

static bool in_registers(const struct buffer *buffer)
{
	return buffer->scope == SCOPE_FRAGMENT || buffer->scope == SCOPE_LOCAL;
}

static void note_index(struct unrolling *u, const struct buffer *buffer,
                       const struct expr *const *index)
{
	for (uint32_t d = 0; in_registers(buffer) && d < buffer->rank; d++)
		u->picks |= depends(u, index[d]);
}

static void visit_load(void *user, const struct expr *e)
{
	if (e->kind == EXPR_LOAD)
		note_index(user, e->as.buffer, e->args);
}

static void note_expr(struct unrolling *u, const struct expr *e)
{
	if (e)
		expr_walk(e, visit_load, u);
}

static void note_block(struct unrolling *u, const struct block *block, int64_t times);

static void note_op(struct unrolling *u, const struct op *op)
{
	const struct op_info *info = op_info(op->kind);

	for (uint32_t i = 0; i < info->n_operands; i++) {
		const void *operand = (const char *)&op->as + info->operands[i].offset;
		const struct region *region = operand;

		if (info->operands[i].role == ROLE_EXPR)
			note_expr(u, *(const struct expr *const *)operand);
		else if (info->operands[i].role != ROLE_ATTR && region->buffer)
			note_index(u, region->buffer, region->min);
	}
}

static void note_loop(struct unrolling *u, const struct loop *loop, int64_t times)
{
	int64_t trips = 1;

	for (uint32_t d = 0; d < loop->n_vars; d++) {
		u->sets_trips |= depends(u, loop->extents[d]);
		note_expr(u, loop->extents[d]);
	}
	if (loop->kind != LOOP_PARALLEL && !expr_is_int(loop->extents[0], &trips))
		trips = 1;
	note_block(u, &loop->body, trips > 0 && times < MAX_UNROLLED_STMTS ? times * trips : times);
}

static void note_stmt(struct unrolling *u, const struct stmt *stmt, int64_t times)
{
	u->n_stmts += times;
	switch (stmt->kind) {
	case STMT_OP:
		note_op(u, &stmt->as.op);
		return;
	case STMT_LOOP:
		note_loop(u, &stmt->as.loop, times);
		return;
	case STMT_IF:
		note_expr(u, stmt->as.if_.condition);
		note_block(u, &stmt->as.if_.then, times);
		note_block(u, &stmt->as.if_.otherwise, times);
		return;
	case STMT_WHILE:
		note_expr(u, stmt->as.while_.condition);
		note_block(u, &stmt->as.while_.body, times);
		return;
	case STMT_LET:
		note_expr(u, stmt->as.let.value);
		if (depends(u, stmt->as.let.value))
			vec_push(u->l->cx->arena, &u->vars, stmt->as.let.var);
		return;
	case STMT_STORE:
		note_expr(u, stmt->as.store.value);
		note_index(u, stmt->as.store.buffer, stmt->as.store.index);
		for (uint32_t d = 0; d < stmt->as.store.buffer->rank; d++)
			note_expr(u, stmt->as.store.index[d]);
		return;
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		return;
	}
}

static void note_block(struct unrolling *u, const struct block *block, int64_t times)
{
	for (uint32_t i = 0; i < block->stmts.n; i++)
		note_stmt(u, block->stmts.p[i], times);
}

enum unroll lower_unroll(struct lower *l, const struct loop *loop, const struct expr *extent)
{
	struct unrolling u = { .l = l };
	int64_t trips;

	if (!expr_is_int(extent, &trips))
		return UNROLL_NONE;
	if (loop->kind == LOOP_UNROLL && trips <= 0)
		return UNROLL_NONE;
	vec_push(l->cx->arena, &u.vars, loop->vars[0]);
	note_block(&u, &loop->body, 1);
	if (u.sets_trips && trips > 0 && u.n_stmts * trips <= MAX_EXPANDED_STMTS)
		return UNROLL_EXPANDED;
	if (loop->kind == LOOP_UNROLL)
		return UNROLL_LOOP;
	if (u.picks && trips > 0 && trips <= MAX_TRIPS && u.n_stmts * trips <= MAX_UNROLLED_STMTS)
		return UNROLL_LOOP;
	return UNROLL_NONE;
}
