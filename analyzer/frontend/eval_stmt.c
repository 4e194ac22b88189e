/*
 * Statements. At module level and in plain host functions they run as in Python; in kernels,
 * `for`, `if`, `while`, `with T.Kernel` and stores become statements of the tile program
 * (trace.c).
 *
 * A statement whose course depends on something unknown (torch, the command line) is an error in
 * strict code. In lenient code it is skipped, and every name that it would have bound becomes
 * unknown: a stale value would be worse than none.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* Is the name in the list? */
static bool listed(const sym_t *names, uint32_t n, sym_t name)
{
	for (uint32_t i = 0; i < n; i++) {
		if (names[i] == name)
			return true;
	}
	return false;
}

/* The frame in which an assignment to the name binds. */
static struct frame *binding_frame(struct eval *ev, struct frame *frame, sym_t name)
{
	if (listed(frame->globals.p, frame->globals.n, name))
		return ev->globals;
	if (!listed(frame->nonlocals.p, frame->nonlocals.n, name))
		return frame;
	for (struct frame *outer = frame->parent; outer; outer = outer->parent) {
		if (frame_find(outer, name))
			return outer;
	}
	return frame;
}

/* A new binding is alive, whatever the name stood for before. */
void bind_name(struct eval *ev, struct frame *frame, sym_t name, struct value value)
{
	struct binding *binding;

	assert(name && "nothing binds the empty name");
	frame = binding_frame(ev, frame, name);
	binding = frame_find(frame, name);
	if (!binding) {
		binding = arena_new(ev->cx->arena, struct binding);
		map_set(ev->cx->arena, &frame->names, name, binding);
	}
	*binding = (struct binding){ .value = value, .serial = ++ev->serial };
}

/* Assignment */

/* a, *b, c = values: the starred target takes what the others leave. */
static bool assign_items(struct eval *ev, struct frame *frame, const struct ast_expr *target,
                         struct value value)
{
	const struct ast_exprs *items = &target->as.items;
	struct sequence values = { 0 };
	uint32_t star = items->n, at = 0;

	if (value.kind == V_OPAQUE || value.kind == V_ERROR) {
		for (uint32_t i = 0; i < items->n; i++)
			assign_target(ev, frame,
			              items->p[i]->kind == EX_STARRED ? items->p[i]->as.starred : items->p[i],
			              value);
		return true;
	}
	if (!eval_elements(ev, value, target->span, &values))
		return false;
	for (uint32_t i = 0; i < items->n; i++)
		star = items->p[i]->kind == EX_STARRED && star == items->n ? i : star;
	if (star == items->n ? values.n != items->n : values.n + 1 < items->n) {
		ev_error(ev, DIAG_E0216, target->span, "%u values do not unpack into %u targets", values.n,
		         items->n);
		return false;
	}
	for (uint32_t i = 0; i < items->n; i++) {
		if (i == star) {
			struct value rest = value_sequence(ev->cx->arena, V_LIST);

			for (uint32_t n = values.n + 1 - items->n; n > 0; n--)
				vec_push(ev->cx->arena, rest.as.sequence, values.p[at++]);
			if (!assign_target(ev, frame, items->p[i]->as.starred, rest))
				return false;
		} else if (!assign_target(ev, frame, items->p[i], values.p[at++])) {
			return false;
		}
	}
	return true;
}

/* list[i] = value, dict[key] = value, buffer[i, j] = value */
static bool assign_subscript(struct eval *ev, struct frame *frame, const struct ast_expr *target,
                             struct value value)
{
	struct value object = eval_expr(ev, frame, target->as.subscript.object);
	struct value index = eval_expr(ev, frame, target->as.subscript.index);
	int64_t i;

	if (object.kind == V_ERROR || index.kind == V_ERROR || value.kind == V_ERROR)
		return false;
	if (object.kind == V_BUFFER && ev->trace)
		trace_use(ev, object.as.buffer);
	if (object.kind == V_BUFFER)
		return trace_store(ev, object.as.buffer, index, value, target->span);
	if (object.kind == V_OPAQUE || index.kind == V_OPAQUE || object.kind == V_KERNEL)
		return true;
	ev->n_effects++;
	if (object.kind == V_DICT) {
		dict_set(ev->cx->arena, object.as.dict, index, value);
		return true;
	}
	if (object.kind != V_LIST || !value_int(index, &i)) {
		ev_error(ev, DIAG_E0202, target->span, "an element of %s cannot be assigned",
		         value_type_text(object));
		return false;
	}
	i += i < 0 ? object.as.sequence->n : 0;
	if (i < 0 || i >= object.as.sequence->n) {
		ev_error(ev, DIAG_E0215, target->span, "the index is outside the list of %u elements",
		         object.as.sequence->n);
		return false;
	}
	object.as.sequence->p[i] = value;
	return true;
}

/* Assigning to a variable of T.alloc_var stores into it; any other name is bound anew. */
static bool assign_name(struct eval *ev, struct frame *frame, const struct ast_expr *target,
                        struct value value)
{
	const struct binding *old = ev->trace ? frame_find(frame, target->as.name) : NULL;

	if (old && old->value.kind == V_BUFFER && old->value.as.buffer->scope == SCOPE_VAR &&
	    !old->is_dead && (value.kind != V_BUFFER || value.as.buffer->name))
		return trace_store(ev, old->value.as.buffer, VALUE_NONE, value, target->span);
	if (ev->trace)
		value = trace_named(ev, target->as.name, value, target->span);
	bind_name(ev, frame, target->as.name, value);
	return value.kind != V_ERROR;
}

/* Each target of any form; attributes exist only outside kernels, where nothing reads them. */
bool assign_target(struct eval *ev, struct frame *frame, const struct ast_expr *target,
                   struct value value)
{
	bool ok;

	if (!ev_enter(ev, target->span))
		return false;
	if (target->kind == EX_NAME)
		ok = assign_name(ev, frame, target, value);
	else if (target->kind == EX_TUPLE || target->kind == EX_LIST)
		ok = assign_items(ev, frame, target, value);
	else if (target->kind == EX_SUBSCRIPT)
		ok = assign_subscript(ev, frame, target, value);
	else
		ok = !ev->trace ||
		     ev_error(ev, DIAG_E0217, target->span, "attributes cannot be assigned in a kernel")
		             .kind != V_ERROR;
	ev_leave(ev);
	return ok;
}

/* All targets get the value, also after an error, so that no later message complains about them. */
static enum flow exec_assign(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	struct value value = eval_expr(ev, frame, st->as.assign.value);
	bool ok = value.kind != V_ERROR;

	for (uint32_t i = 0; i < st->as.assign.targets.n; i++)
		ok = assign_target(ev, frame, st->as.assign.targets.p[i], value) && ok;
	return ok ? FLOW_NEXT : FLOW_STOP;
}

/* list += items changes the list itself; all else is target = target op value. */
static enum flow exec_augmented(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	const struct ast_expr *target = st->as.augmented.target;
	struct value old = eval_expr(ev, frame, target),
				 value = eval_expr(ev, frame, st->as.augmented.value);

	if (old.kind == V_ERROR || value.kind == V_ERROR)
		return FLOW_STOP;
	if (old.kind == V_LIST && st->as.augmented.op == AST_ADD && target->kind == EX_NAME) {
		struct sequence items = { 0 };

		if (value.kind != V_OPAQUE && !eval_elements(ev, value, st->span, &items))
			return FLOW_STOP;
		for (uint32_t i = 0; i < items.n; i++)
			vec_push(ev->cx->arena, old.as.sequence, items.p[i]);
		ev->n_effects++;
		return FLOW_NEXT;
	}
	value = eval_binary(ev, st->as.augmented.op, old, value, st->span);
	return value.kind != V_ERROR && assign_target(ev, frame, target, value) ? FLOW_NEXT : FLOW_STOP;
}

/* `x: T.int32 = e` gives the value that type. */
static enum flow exec_annotated(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	const struct ast_expr *target = st->as.annotated.target;
	struct value value;
	struct dtype type;

	if (!st->as.annotated.value) {
		if (ev->trace && target->kind == EX_NAME)
			return trace_annotation(ev, frame, st) ? FLOW_NEXT : FLOW_STOP;
		return FLOW_NEXT;
	}
	value = eval_expr(ev, frame, st->as.annotated.value);
	if (ev->trace && value.kind != V_ERROR) {
		struct value annotation = eval_expr(ev, frame, st->as.annotated.annotation);

		if (annotation.kind == V_DTYPE && value_dtype(annotation, &type)) {
			const struct expr *e = device_expr(ev, value, &type, st->as.annotated.value->span);

			value = e ? device_value(device_cast(ev, type, e)) : VALUE_ERROR;
		}
	}
	return value.kind != V_ERROR && assign_target(ev, frame, target, value) ? FLOW_NEXT : FLOW_STOP;
}

/* Unknown control flow */

static void forget_body(struct eval *ev, struct frame *frame, const struct ast_body *body,
                        struct value opaque);

/* The names in a target of any shape. */
static void forget_target(struct eval *ev, struct frame *frame, const struct ast_expr *target,
                          struct value opaque)
{
	if (target->kind == EX_NAME)
		bind_name(ev, frame, target->as.name, opaque);
	for (uint32_t i = 0;
	     (target->kind == EX_TUPLE || target->kind == EX_LIST) && i < target->as.items.n; i++)
		forget_target(ev, frame, target->as.items.p[i], opaque);
}

/* Every name that the skipped statement would bind becomes unknown. */
static void forget_stmt(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                        struct value opaque)
{
	if (st->kind == ST_ASSIGN) {
		for (uint32_t i = 0; i < st->as.assign.targets.n; i++)
			forget_target(ev, frame, st->as.assign.targets.p[i], opaque);
	} else if (st->kind == ST_AUGMENTED) {
		forget_target(ev, frame, st->as.augmented.target, opaque);
	} else if (st->kind == ST_ANNOTATED) {
		forget_target(ev, frame, st->as.annotated.target, opaque);
	} else if (st->kind == ST_IF) {
		for (uint32_t i = 0; i < st->as.if_.arms.n; i++)
			forget_body(ev, frame, &st->as.if_.arms.p[i].body, opaque);
		forget_body(ev, frame, &st->as.if_.otherwise, opaque);
	} else if (st->kind == ST_FOR) {
		forget_target(ev, frame, st->as.for_.target, opaque);
		forget_body(ev, frame, &st->as.for_.body, opaque);
	} else if (st->kind == ST_WHILE) {
		forget_body(ev, frame, &st->as.while_.body, opaque);
	} else if (st->kind == ST_WITH) {
		forget_body(ev, frame, &st->as.with.body, opaque);
	} else if (st->kind == ST_TRY) {
		forget_body(ev, frame, &st->as.try_.body, opaque);
		forget_body(ev, frame, &st->as.try_.handlers, opaque);
	}
}

/* What would have run in it is unknown. */
static void forget_body(struct eval *ev, struct frame *frame, const struct ast_body *body,
                        struct value opaque)
{
	for (uint32_t i = 0; i < body->n; i++) {
		if (ev_enter(ev, body->p[i]->span)) {
			forget_stmt(ev, frame, body->p[i], opaque);
			ev_leave(ev);
		}
	}
}

/* A statement whose course is unknown: an error where it counts, else skipped. */
static enum flow skip_unknown(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                              struct value opaque, struct span span)
{
	if (ev->is_strict) {
		ev_unsettled(ev, opaque, span, "what runs here");
		return FLOW_STOP;
	}
	forget_stmt(ev, frame, st, opaque);
	return FLOW_NEXT;
}

/* Branches and loops */

/*
 * Host code that only leaves or complains when its condition holds, such as
 * `if not torch.cuda.is_available(): return`, is taken not to do so: otherwise there would be no
 * kernel.
 */
static bool is_guard(const struct frame *frame, const struct ast_stmt *st)
{
	const struct ast_body *body = &st->as.if_.arms.p[0].body;

	if (frame->is_traced || st->as.if_.arms.n != 1 || st->as.if_.otherwise.n)
		return false;
	for (uint32_t i = 0; i < body->n; i++) {
		enum ast_stmt_kind kind = body->p[i]->kind;

		if (kind != ST_EXPR && kind != ST_RAISE && kind != ST_RETURN && kind != ST_PASS)
			return false;
	}
	return true;
}

/* Arms are tried in order until the host takes one or the device has to decide. */
static enum flow exec_if(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                         struct value *result)
{
	for (uint32_t i = 0; i < st->as.if_.arms.n; i++) {
		const struct ast_arm *arm = &st->as.if_.arms.p[i];
		struct value condition = eval_expr(ev, frame, arm->condition);
		int truth = eval_truth(condition);

		if (condition.kind == V_ERROR)
			return FLOW_STOP;
		if (condition.kind == V_OPAQUE && is_guard(frame, st))
			return FLOW_NEXT;
		if (condition.kind == V_OPAQUE)
			return skip_unknown(ev, frame, st, condition, arm->condition->span);
		if (truth < 0) {
			const struct expr *e = device_expr(ev, condition, NULL, arm->condition->span);

			return e ? trace_if(ev, frame, &(struct branch){ st, i, e }) : FLOW_STOP;
		}
		if (truth)
			return exec_body(ev, frame, &arm->body, result);
	}
	return exec_body(ev, frame, &st->as.if_.otherwise, result);
}

/* Is the name one of a loop's targets? */
static bool is_target(const struct ast_expr *target, sym_t name)
{
	bool found = target->kind == EX_NAME && target->as.name == name;

	for (uint32_t i = 0;
	     (target->kind == EX_TUPLE || target->kind == EX_LIST) && i < target->as.items.n; i++)
		found |= target->as.items.p[i]->kind == EX_NAME && target->as.items.p[i]->as.name == name;
	return found;
}

/* The same of the loops inside it. */
static bool is_loop_target(const struct ast_stmt *loop, sym_t name)
{
	bool found = is_target(loop->as.for_.target, name);

	for (uint32_t i = 0; i < loop->as.for_.body.n && !found; i++)
		found = loop->as.for_.body.p[i]->kind == ST_FOR &&
		        is_loop_target(loop->as.for_.body.p[i], name);
	return found;
}

/* Has the frame bound nothing since `serial` but loops' targets and unknown values? */
static bool binds_nothing(const struct frame *frame, const struct ast_stmt *loop, uint64_t serial)
{
	for (uint32_t i = 0; i < frame->names.n; i++) {
		const struct binding *binding = frame->names.entries[i].value.pointer;

		if (binding->serial > serial && binding->value.kind != V_OPAQUE &&
		    !is_loop_target(loop, (sym_t)frame->names.entries[i].key))
			return false;
	}
	return true;
}

/* Loops of the kernel language become loops of the program, all others run here. */
static enum flow exec_for(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                          struct value *result)
{
	enum { MANY_TURNS = 16 };
	struct value iterable = eval_expr(ev, frame, st->as.for_.iterable);
	struct sequence items = { 0 };

	if (iterable.kind == V_ERROR)
		return FLOW_STOP;
	if (iterable.kind == V_OPAQUE)
		return skip_unknown(ev, frame, st, iterable, st->as.for_.iterable->span);
	if (iterable.kind == V_LOOP || (iterable.kind == V_RANGE && ev->trace && frame->is_traced))
		return trace_for(ev, frame, st, iterable);
	if (!eval_elements(ev, iterable, st->as.for_.iterable->span, &items))
		return FLOW_STOP;
	for (uint32_t i = 0; i < items.n; i++) {
		uint64_t serial = ev->serial, n_effects = ev->n_effects;
		struct inside outer;
		enum flow flow;

		if (!assign_target(ev, frame, st->as.for_.target, items.p[i]))
			return FLOW_STOP;
		outer = trace_enter_loop(ev, INSIDE_HOST_LOOP);
		flow = exec_body(ev, frame, &st->as.for_.body, result);
		trace_leave_loop(ev, outer);
		if (flow == FLOW_BREAK)
			return FLOW_NEXT;
		if (flow == FLOW_RETURN || flow == FLOW_STOP)
			return flow;
		if (i == 0 && items.n > MANY_TURNS && !ev->is_strict && n_effects == ev->n_effects &&
		    binds_nothing(frame, st, serial)) {
			/* A loop that fills tensors, or checks them: it will not tell more. */
			forget_stmt(ev, frame, st, ev_opaque(ev, st->as.for_.iterable->span, NULL));
			return FLOW_NEXT;
		}
	}
	return exec_body(ev, frame, &st->as.for_.otherwise, result);
}

/* Every turn is a step, so that an endless loop ends with a message. */
static enum flow exec_while(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                            struct value *result)
{
	for (;;) {
		struct value condition;
		struct inside outer;
		enum flow flow;
		int truth;

		ev->n_lazy++;
		condition = eval_expr(ev, frame, st->as.while_.condition);
		ev->n_lazy--;
		truth = eval_truth(condition);
		if (condition.kind == V_ERROR || !ev_step(ev, st->span))
			return FLOW_STOP;
		if (condition.kind == V_OPAQUE)
			return skip_unknown(ev, frame, st, condition, st->as.while_.condition->span);
		if (truth < 0) {
			const struct expr *e = device_expr(ev, condition, NULL, st->as.while_.condition->span);

			return e ? trace_while(ev, frame, st, e) : FLOW_STOP;
		}
		if (!truth)
			return exec_body(ev, frame, &st->as.while_.otherwise, result);
		outer = trace_enter_loop(ev, INSIDE_HOST_LOOP);
		flow = exec_body(ev, frame, &st->as.while_.body, result);
		trace_leave_loop(ev, outer);
		if (flow == FLOW_BREAK)
			return FLOW_NEXT;
		if (flow == FLOW_RETURN || flow == FLOW_STOP)
			return flow;
	}
}

/* The statement `with b, c: body` inside `with a, b, c: body`. */
static struct ast_body rest_of_with(struct eval *ev, const struct ast_stmt *st)
{
	struct ast_stmt *rest = arena_new(ev->cx->arena, struct ast_stmt);
	struct ast_body body = { 0 };

	if (st->as.with.items.n == 1)
		return st->as.with.body;
	*rest = *st;
	rest->as.with.items.p++;
	rest->as.with.items.n--;
	vec_push(ev->cx->arena, &body, rest);
	return body;
}

/* Contexts of the host have no effect; T.Kernel opens a launch. */
static enum flow exec_with(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                           struct value *result)
{
	const struct ast_with_item *item = &st->as.with.items.p[0];
	struct value context = eval_expr(ev, frame, item->context);
	struct ast_body body;

	if (context.kind == V_ERROR)
		return FLOW_STOP;
	body = rest_of_with(ev, st);
	if (context.kind == V_LAUNCH)
		return trace_launch(ev, frame, item, context.as.launch, &body);
	if (context.kind == V_CONTEXT && context.as.context)
		return trace_context(ev, frame, item, context.as.context, &body);
	if (ev->trace && context.kind != V_OPAQUE && context.kind != V_CONTEXT) {
		ev_error(ev, DIAG_E0204, item->context->span, "this 'with' is not supported in a kernel");
		return FLOW_STOP;
	}
	if (ev->trace && context.kind == V_OPAQUE) {
		ev_unsettled(ev, context, item->context->span, "this block");
		return FLOW_STOP;
	}
	if (item->target)
		assign_target(ev, frame, item->target, ev_opaque(ev, item->context->span, NULL));
	return exec_body(ev, frame, &body, result);
}

/* Definitions and imports */

/* A kernel is built where it is defined, with the names that are bound at that moment. */
static enum flow exec_def(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	const struct ast_def *def = &st->as.def;
	struct function *function = new_function(ev, frame, &def->params);
	struct kernel *kernel = kernel_of(ev, st);
	struct value value = { .kind = V_FUNCTION };

	if (!function)
		return FLOW_STOP;
	function->def = st;
	function->is_macro = decorator_is(ev, def, "macro");
	function->is_traced = function->is_macro || kernel;
	function->is_factory = !kernel && def_has_kernel(ev, st);
	function->kernel = kernel && kernel->form == KERNEL_EAGER ? kernel : NULL;
	map_set(ev->cx->arena, &ev->functions, (uintptr_t)st, function);
	value.as.function = function;
	if (kernel && kernel->form == KERNEL_PRIM_FUNC) {
		if (!ev->trace && kernel->is_selected && !kernel->is_traced)
			trace_kernel(ev, kernel, function, NULL);
		value = (struct value){ .kind = V_KERNEL, .as.kernel = kernel };
	}
	bind_name(ev, frame, def->name, value);
	return FLOW_NEXT;
}

/* Simple statements */

/* Outside kernels and their factories an assertion says nothing about a kernel. */
static enum flow exec_assert(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	struct value condition = eval_expr(ev, frame, st->as.assert_.condition), message;
	struct buf text = { 0 };

	if (condition.kind == V_ERROR)
		return FLOW_STOP;
	if (!ev->is_strict || eval_truth(condition) != 0)
		return FLOW_NEXT; /* one that depends on the device says nothing about the structure */
	ev_error(ev, DIAG_E0211, st->as.assert_.condition->span, "this assertion does not hold");
	message = st->as.assert_.message ? eval_expr(ev, frame, st->as.assert_.message) : VALUE_NONE;
	if (message.kind == V_STR) {
		value_print(&text, message, false, 0);
		ev_note(ev, st->as.assert_.message->span, "%s", buf_cstr(&text));
	}
	buf_free(&text);
	return FLOW_STOP;
}

/* Outside kernels and their factories the function just ends, with an unknown value. */
static enum flow exec_raise(struct eval *ev, const struct ast_stmt *st, struct value *result)
{
	if (ev->is_strict) {
		ev_error(ev, DIAG_E0211, st->span, "the file raises an exception here");
		return FLOW_STOP;
	}
	*result = ev_opaque(ev, st->span, NULL);
	return FLOW_RETURN;
}

/* Names of TileLang that a try block may import are known; what it cannot know is opaque, never an
 * exception. */
static enum flow exec_try(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                          struct value *result)
{
	enum flow flow = exec_body(ev, frame, &st->as.try_.body, result);

	if (flow == FLOW_NEXT)
		flow = exec_body(ev, frame, &st->as.try_.otherwise, result);
	if (flow == FLOW_NEXT)
		flow = exec_body(ev, frame, &st->as.try_.finally, result);
	return flow;
}

/* A kernel that is returned is what its factory's name stands for. */
static enum flow exec_return(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                             struct value *result)
{
	*result = st->as.expr ? eval_expr(ev, frame, st->as.expr) : VALUE_NONE;
	if (result->kind == V_KERNEL)
		result->as.kernel->is_returned = true;
	return result->kind == V_ERROR ? FLOW_STOP : FLOW_RETURN;
}

static enum flow exec_break(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	if (ev->trace && frame->is_traced)
		return trace_exit(ev, st);
	return st->kind == ST_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
}

/* From here on the names mean those of the module, or of the function around. */
static enum flow exec_names(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	for (uint32_t i = 0; i < st->as.names.n; i++) {
		if (st->kind == ST_GLOBAL)
			vec_push(ev->cx->arena, &frame->globals, st->as.names.p[i]);
		else
			vec_push(ev->cx->arena, &frame->nonlocals, st->as.names.p[i]);
	}
	return FLOW_NEXT;
}

/* The name stays, but nothing is known of it. */
static enum flow exec_delete(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	for (uint32_t i = 0; i < st->as.targets.n; i++) {
		const struct ast_expr *target = st->as.targets.p[i];

		if (target->kind == EX_NAME)
			bind_name(ev, frame, target->as.name, ev_opaque(ev, st->span, NULL));
	}
	return FLOW_NEXT;
}

/* An expression for its effect: only calls have one, and those of a kernel must be known. */
static enum flow exec_expr(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	struct value value = eval_expr(ev, frame, st->as.expr);

	if (value.kind == V_OPAQUE && ev->trace && ev->trace->launch && frame->is_traced &&
	    st->as.expr->kind == EX_CALL)
		value = ev_unknown_effect(ev, st->span, value);
	if (value.kind == V_EXPR && ev->trace && frame->is_traced &&
	    !trace_evaluate(ev, value, st->span))
		return FLOW_STOP;
	return value.kind == V_ERROR ? FLOW_STOP : FLOW_NEXT;
}

/* One statement of any kind. */
static enum flow exec_stmt(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                           struct value *result)
{
	switch (st->kind) {
	case ST_EXPR:
		return exec_expr(ev, frame, st);
	case ST_ASSIGN:
		return exec_assign(ev, frame, st);
	case ST_AUGMENTED:
		return exec_augmented(ev, frame, st);
	case ST_ANNOTATED:
		return exec_annotated(ev, frame, st);
	case ST_IF:
		return exec_if(ev, frame, st, result);
	case ST_FOR:
		return exec_for(ev, frame, st, result);
	case ST_WHILE:
		return exec_while(ev, frame, st, result);
	case ST_WITH:
		return exec_with(ev, frame, st, result);
	case ST_DEF:
		return exec_def(ev, frame, st);
	case ST_CLASS:
		bind_name(ev, frame, st->as.name, ev_opaque(ev, st->span, NULL));
		return FLOW_NEXT;
	case ST_RETURN:
		return exec_return(ev, frame, st, result);
	case ST_ASSERT:
		return exec_assert(ev, frame, st);
	case ST_RAISE:
		return exec_raise(ev, st, result);
	case ST_TRY:
		return exec_try(ev, frame, st, result);
	case ST_IMPORT:
		exec_imports(ev, frame, st);
		return FLOW_NEXT;
	case ST_GLOBAL:
	case ST_NONLOCAL:
		return exec_names(ev, frame, st);
	case ST_DELETE:
		return exec_delete(ev, frame, st);
	case ST_PASS:
		return FLOW_NEXT;
	case ST_BREAK:
	case ST_CONTINUE:
		return exec_break(ev, frame, st);
	}
	BUG("statement kind %d", (int)st->kind);
}

/* After a mistake in a kernel the next statements are still looked at. */
enum flow exec_body(struct eval *ev, struct frame *frame, const struct ast_body *body,
                    struct value *result)
{
	for (uint32_t i = 0; i < body->n; i++) {
		enum flow flow;

		if (!ev_enter(ev, body->p[i]->span))
			return FLOW_STOP;
		flow = exec_stmt(ev, frame, body->p[i], result);
		ev_leave(ev);
		if (flow == FLOW_STOP && !ev->is_fatal && (ev->trace || !ev->is_strict)) {
			if (ev->trace) {
				ev->trace->n_failed++;
				ev->trace->n_failed_outside += !ev->trace->launch || ev->trace->launch->is_implicit;
			}
			continue; /* the next statements may have mistakes of their own */
		}
		if (flow != FLOW_NEXT)
			return flow;
	}
	return FLOW_NEXT;
}
