/*
 * Blocks of a kernel beside launches, loops and branches:
 *
 *     with T.ws(0): ...                          if tx < 128: ...
 *     for i, j in T.grid(4, 8): ...              a loop in a loop
 *     for w, y in T.Persistent(...): ...         a loop over waves, with a branch inside
 *     for t in T.thread_binding(32, "threadIdx.x"): ...    its body, with t = tx
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>

/* A tuple of device values. */
static struct value tuple_of(struct eval *ev, const struct expr *const *items, uint32_t n)
{
	struct value tuple = value_sequence(ev->cx->arena, V_TUPLE);

	for (uint32_t i = 0; i < n; i++)
		vec_push(ev->cx->arena, tuple.as.sequence, device_value(items[i]));
	return tuple;
}

/* What a loop's target gets: one value, or a tuple of them. */
static bool bind_values(struct eval *ev, struct frame *frame, const struct ast_expr *target,
                        struct value values)
{
	assert(values.kind == V_TUPLE && values.as.sequence->n > 0);
	if (target->kind == EX_NAME && values.as.sequence->n == 1) {
		bind_name(ev, frame, target->as.name, values.as.sequence->p[0]);
		return true;
	}
	return assign_target(ev, frame, target, values);
}

/* A loop statement whose variable runs from 0; NULL after an error. */
static struct stmt *serial_loop(struct eval *ev, const struct expr *extent, const struct var *var,
                                struct span span)
{
	struct stmt *stmt = trace_stmt(ev, STMT_LOOP, span);

	if (!stmt)
		return NULL;
	stmt->as.loop.kind = LOOP_SERIAL;
	stmt->as.loop.n_vars = 1;
	stmt->as.loop.vars[0] = var;
	stmt->as.loop.extents[0] = extent;
	return stmt;
}

/* 0 .. extent - 1 */
static struct var *loop_var(struct eval *ev, const struct ast_expr *target,
                            const struct expr *extent)
{
	sym_t wanted =
		target && target->kind == EX_NAME ? target->as.name : intern_text(ev->cx->names, "i");
	struct dtype type = extent->type.bits == 64 ? DTYPE_I64 : DTYPE_I32;
	struct var *var = expr_new_var(ev->pool, VAR_LOOP, trace_name(ev, wanted), type);
	int64_t min, max;

	var->min = 0;
	if (expr_range(extent, &min, &max) && max < INT64_MAX)
		var->max = max > 0 ? max - 1 : 0;
	if (target)
		var->span = target->span;
	return var;
}

/* The statements go into `block`, the names that end with it are those bound after `serial`. */
static enum flow run_in(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                        struct block *block)
{
	return trace_run_block(ev, frame,
	                       &(struct body_run){ block, &st->as.for_.body, ev->serial, st->span });
}

enum flow trace_nest(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                     const struct loop_value *loop)
{
	const struct ast_expr *target = st->as.for_.target;
	bool is_tuple = target->kind == EX_TUPLE || target->kind == EX_LIST;
	struct block *outer = ev->trace->block, *inner = outer;
	const struct expr *values[MAX_RANK];
	struct inside around;
	enum flow flow;

	assert(loop->n > 1 && loop->n <= MAX_RANK);
	for (uint32_t i = 0; i < loop->n; i++) {
		bool has_name = is_tuple && i < target->as.items.n;
		struct var *var = loop_var(ev, has_name ? target->as.items.p[i] : NULL, loop->extent[i]);
		struct stmt *stmt;

		ev->trace->block = inner;
		stmt = serial_loop(ev, loop->extent[i], var, st->span);
		ev->trace->block = outer;
		if (!stmt)
			return FLOW_STOP;
		inner = &stmt->as.loop.body;
		values[i] = expr_of_var(ev->pool, var);
	}
	if (!bind_values(ev, frame, target, tuple_of(ev, values, loop->n)))
		return FLOW_STOP;
	around = trace_enter_loop(ev, INSIDE_DEVICE_LOOP);
	flow = run_in(ev, frame, st, inner);
	trace_leave_loop(ev, around);
	return flow;
}

/* The loop over waves holds a branch for the last one. */
static enum flow trace_waves(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                             const struct loop_value *loop)
{
	struct stmt *stmt = serial_loop(ev, loop->extent[0], loop->wave, st->span), *guard = NULL;
	struct block *outer = ev->trace->block;
	struct inside around;
	enum flow flow;

	if (!stmt)
		return FLOW_STOP;
	ev->trace->block = &stmt->as.loop.body;
	guard = trace_stmt(ev, STMT_IF, st->span);
	ev->trace->block = outer;
	if (!guard ||
	    !bind_values(ev, frame, st->as.for_.target, tuple_of(ev, loop->coords, loop->n_coords)))
		return FLOW_STOP;
	guard->as.if_.condition = loop->guard;
	around = trace_enter_loop(ev, INSIDE_DEVICE_LOOP);
	flow = run_in(ev, frame, st, &guard->as.if_.then);
	trace_leave_loop(ev, around);
	return flow;
}

enum flow trace_bound_loop(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                           const struct loop_value *loop)
{
	struct value result = VALUE_NONE;

	if (loop->wave)
		return trace_waves(ev, frame, st, loop);
	assert(loop->bound);
	if (!bind_values(ev, frame, st->as.for_.target, tuple_of(ev, &loop->bound, 1)))
		return FLOW_STOP;
	return exec_body(ev, frame, &st->as.for_.body, &result);
}

enum flow trace_context(struct eval *ev, struct frame *frame, const struct ast_with_item *item,
                        const struct context_value *context, const struct ast_body *body)
{
	struct value result = VALUE_NONE;
	struct inside outer = ev->trace->inside;
	struct stmt *stmt;
	enum flow flow;

	if (item->target && context->bound && !assign_target(ev, frame, item->target, *context->bound))
		return FLOW_STOP;
	if (!context->condition)
		return exec_body(ev, frame, body, &result);
	stmt = trace_stmt(ev, STMT_IF, item->context->span);
	if (!stmt)
		return FLOW_STOP;
	stmt->as.if_.condition = context->condition;
	ev->trace->inside.branch = true;
	flow = trace_run_block(
		ev, frame, &(struct body_run){ &stmt->as.if_.then, body, ev->serial, item->context->span });
	ev->trace->inside = outer;
	return flow;
}

/* Is a call somewhere inside? */
static void find_call(void *user, const struct expr *e)
{
	*(bool *)user |= e->kind == EXPR_CALL;
}

bool trace_evaluate(struct eval *ev, struct value value, struct span span)
{
	bool has_call = false;
	struct stmt *stmt;

	assert(value.kind == V_EXPR);
	expr_walk(value.as.expr, find_call, &has_call);
	if (!has_call)
		return true;
	stmt = trace_stmt(ev, STMT_OP, span);
	if (!stmt)
		return false;
	stmt->as.op.kind = OP_evaluate;
	stmt->as.op.as.evaluate.value = value.as.expr;
	return true;
}

const struct expr *trace_flat_thread(struct eval *ev, const struct launch *launch)
{
	const struct expr *flat = expr_of_var(ev->pool, launch->thread[0]);
	int64_t stride = launch->threads[0];

	for (int i = 1; i < 3; i++) {
		if (launch->threads[i] > 1)
			flat =
				expr_add(ev->pool, flat,
			             expr_mul_int(ev->pool, expr_of_var(ev->pool, launch->thread[i]), stride));
		stride *= launch->threads[i];
	}
	return flat;
}
