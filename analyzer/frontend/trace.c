/*
 * The kernel being built: launches, loops, branches, stores and names of its tile program.
 *
 *     for i in range(2, 8, 3):      for i in serial(2):
 *         v = i                         v[] = i*3 + 2
 *     x = C[0, 0]                   let x: float32 = C[0, 0]
 *     y = bx * 8                    nothing: y stands for bx*8
 *
 * A device value that a block binds ends with the block, as in TileLang: the block may run never or
 * many times. Both branches of an `if` start from the same names.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

static void open_implicit_launch(struct eval *ev, struct span span);

/* name, name_1, name_2: unique, so that a printed program reads back. */
sym_t trace_name(struct eval *ev, sym_t wanted)
{
	struct map_entry *count = map_at(ev->cx->arena, &ev->trace->names, wanted);
	const char *text = sym_text(ev->cx->names, wanted);
	sym_t name = wanted;

	while (count->value.number > 0) {
		name = intern_text(ev->cx->names, arena_printf(ev->cx->arena, "%s_%llu", text,
		                                               (unsigned long long)count->value.number++));
		if (!map_find(&ev->trace->names, name))
			break;
	}
	map_at(ev->cx->arena, &ev->trace->names, name)->value.number++;
	return name;
}

/* Buffers in lists and in conditional expressions have no name of their own. */
void trace_use(struct eval *ev, struct buffer *buffer)
{
	if (!buffer->name)
		buffer->name = trace_name(ev, intern_text(ev->cx->names, "buffer"));
}

/* Most operations mean something only in a launch; a kernel without one gets one of one thread. */
struct trace *trace_require(struct eval *ev, struct span span, const char *what)
{
	struct trace *trace = ev->trace;

	if (trace && !trace->launch && trace->program->launches.n == 0)
		open_implicit_launch(ev, span);
	if (trace && trace->launch)
		return trace;
	ev_error(ev, DIAG_E0213, span, "%s stands outside T.Kernel", what);
	return NULL;
}

/* Too many statements end the evaluation. */
struct stmt *trace_stmt(struct eval *ev, enum stmt_kind kind, struct span span)
{
	struct trace *trace = trace_require(ev, span, "this operation");
	struct stmt *stmt;

	if (!trace)
		return NULL;
	if (trace->program->n_stmts >= ev->limits.max_stmts) {
		if (!ev->is_fatal)
			ev_error(ev, DIAG_E0212, span, "the kernel has more than %llu statements",
			         (unsigned long long)ev->limits.max_stmts);
		ev->is_fatal = true;
		return NULL;
	}
	assert(trace->block && "a launch has a block");
	stmt = tile_new_stmt(trace->program, kind, span);
	vec_push(ev->cx->arena, &trace->block->stmts, stmt);
	return stmt;
}

/*
 * A name that a block binds to a device value means nothing behind the block: it ran on the
 * device, perhaps never.
 */
static enum flow run_block(struct eval *ev, struct frame *frame, const struct body_run *run)
{
	struct block *outer = ev->trace->block;
	struct value result = VALUE_NONE;
	enum flow flow;

	assert(run->block && ev->trace->launch);
	ev->trace->block = run->block;
	flow = exec_body(ev, frame, run->body, &result);
	ev->trace->block = outer;
	for (uint32_t i = 0; i < frame->names.n; i++) {
		struct binding *binding = frame->names.entries[i].value.pointer;

		if (binding->serial > run->serial &&
		    (binding->value.kind == V_EXPR || binding->value.kind == V_REGION)) {
			binding->is_dead = true;
			binding->block = run->span;
		}
	}
	if (flow == FLOW_RETURN) {
		ev_error(ev, DIAG_E0204, run->span,
		         "a return inside a device loop or branch is not supported");
		return FLOW_STOP;
	}
	return flow == FLOW_BREAK || flow == FLOW_CONTINUE ? FLOW_NEXT : flow;
}

enum flow trace_run_block(struct eval *ev, struct frame *frame, const struct body_run *run)
{
	return run_block(ev, frame, run);
}

/* Loops */

struct inside trace_enter_loop(struct eval *ev, int loop)
{
	struct inside outer = { 0 };

	if (!ev->trace)
		return outer;
	outer = ev->trace->inside;
	ev->trace->inside = (struct inside){ loop, false };
	return outer;
}

void trace_leave_loop(struct eval *ev, struct inside outer)
{
	if (ev->trace)
		ev->trace->inside = outer;
}

/*
 * Of a device loop: a statement of the program. A host loop is left here and now, which it cannot
 * be when the device decides.
 */
enum flow trace_exit(struct eval *ev, const struct ast_stmt *st)
{
	bool is_break = st->kind == ST_BREAK;
	enum flow flow = is_break ? FLOW_BREAK : FLOW_CONTINUE;

	if (ev->trace->inside.loop == INSIDE_DEVICE_LOOP)
		return trace_stmt(ev, is_break ? STMT_BREAK : STMT_CONTINUE, st->span) ? flow : FLOW_STOP;
	if (!ev->trace->inside.branch)
		return flow;
	ev_error(ev, DIAG_E0204, st->span,
	         "this loop runs on the host: %s under a condition of the device is not supported",
	         is_break ? "break" : "continue");
	ev_help(ev, "make it a loop of the device: for i in T.serial(n)");
	return FLOW_STOP;
}

/* The loop that `for x in range(...)` means in a kernel. */
static struct loop_value range_loop(struct eval *ev, const struct host_range *range,
                                    struct span span)
{
	struct loop_value loop = { .kind = LOOP_SERIAL, .n = 1, .step = range->step, .span = span };

	loop.begin[0] = expr_int(ev->pool, range->begin);
	loop.extent[0] = expr_int(ev->pool, range_count(range));
	loop.extent_span[0] = span;
	return loop;
}

/* The variable of one dimension, and what its name stands for: begin + step * variable. */
static struct value loop_variable(struct eval *ev, struct loop *out, uint32_t dim,
                                  const struct loop_value *loop, const struct ast_expr *target)
{
	sym_t wanted = target->kind == EX_NAME ? target->as.name : intern_text(ev->cx->names, "i");
	struct dtype type = loop->extent[dim]->type.bits == 64 ? DTYPE_I64 : DTYPE_I32;
	struct var *var = expr_new_var(ev->pool, VAR_LOOP, trace_name(ev, wanted), type);
	const struct expr *value;
	int64_t extent_min, extent_max;

	assert(dim < loop->n && loop->extent[dim]);
	var->min = 0;
	if (expr_range(loop->extent[dim], &extent_min, &extent_max) && extent_max < INT64_MAX)
		var->max = extent_max > 0 ? extent_max - 1 : 0;
	var->span = target->span;
	out->vars[dim] = var;
	out->extents[dim] = loop->extent[dim];
	value = expr_of_var(ev->pool, var);
	if (loop->step != 1)
		value = expr_mul_int(ev->pool, value, loop->step);
	if (loop->begin[dim])
		value = expr_add(ev->pool, value, loop->begin[dim]);
	return device_value(value);
}

/* One target an extent. */
static bool bind_loop_targets(struct eval *ev, struct frame *frame, const struct ast_expr *target,
                              struct loop *out, const struct loop_value *loop)
{
	bool is_tuple = target->kind == EX_TUPLE || target->kind == EX_LIST;
	uint32_t n = is_tuple ? target->as.items.n : 1;

	if (n != loop->n) {
		ev_error(ev, DIAG_E0216, target->span, "this loop has %u extent%s and %u target%s", loop->n,
		         loop->n == 1 ? "" : "s", n, n == 1 ? "" : "s");
		return false;
	}
	out->n_vars = n;
	for (uint32_t i = 0; i < n; i++) {
		const struct ast_expr *item = is_tuple ? target->as.items.p[i] : target;
		struct value value = loop_variable(ev, out, i, loop, item);

		if (item->kind == EX_NAME)
			bind_name(ev, frame, item->as.name, value);
		else if (!assign_target(ev, frame, item, value))
			return false;
	}
	return true;
}

/* A parallel loop that is all of a parallel loop's body: one loop over both. */
static void merge_nest(struct loop *outer)
{
	const struct loop *inner = outer->body.stmts.n == 1 ? &outer->body.stmts.p[0]->as.loop : NULL;

	if (!inner || outer->body.stmts.p[0]->kind != STMT_LOOP || inner->kind != LOOP_PARALLEL ||
	    inner->coalesced_width != outer->coalesced_width ||
	    outer->n_vars + inner->n_vars > MAX_RANK)
		return;
	for (uint32_t i = 0; i < inner->n_vars; i++) {
		outer->vars[outer->n_vars] = inner->vars[i];
		outer->extents[outer->n_vars++] = inner->extents[i];
	}
	outer->body = inner->body;
}

/*
 * The loop variable runs from 0 in steps of 1; begin and step stand in what its name is bound to.
 */
enum flow trace_for(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                    struct value iterable)
{
	struct loop_value loop;
	struct stmt *stmt;
	enum flow flow;
	uint64_t serial = ev->serial;
	struct inside outer;

	if (!trace_require(ev, st->span, "this loop"))
		return FLOW_STOP;
	if (iterable.kind == V_LOOP && (iterable.as.loop->bound || iterable.as.loop->wave))
		return trace_bound_loop(ev, frame, st, iterable.as.loop);
	if (iterable.kind == V_LOOP && iterable.as.loop->n > 1 &&
	    iterable.as.loop->kind != LOOP_PARALLEL)
		return trace_nest(ev, frame, st, iterable.as.loop);
	if (iterable.kind == V_RANGE)
		loop = range_loop(ev, iterable.as.range, st->as.for_.iterable->span);
	else
		loop = *iterable.as.loop;
	stmt = trace_stmt(ev, STMT_LOOP, st->span);
	if (!stmt)
		return FLOW_STOP;
	stmt->as.loop.kind = loop.kind;
	stmt->as.loop.num_stages = loop.num_stages;
	stmt->as.loop.coalesced_width = loop.coalesced_width;
	if (!bind_loop_targets(ev, frame, st->as.for_.target, &stmt->as.loop, &loop))
		return FLOW_STOP;
	outer = trace_enter_loop(ev, INSIDE_DEVICE_LOOP);
	ev->trace->n_parallel += loop.kind == LOOP_PARALLEL;
	flow = run_block(
		ev, frame, &(struct body_run){ &stmt->as.loop.body, &st->as.for_.body, serial, st->span });
	trace_leave_loop(ev, outer);
	ev->trace->n_parallel -= loop.kind == LOOP_PARALLEL;
	if (loop.kind == LOOP_PARALLEL)
		merge_nest(&stmt->as.loop);
	return flow;
}

/* The condition is read again before each turn. */
enum flow trace_while(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                      const struct expr *condition)
{
	struct stmt *stmt = trace_stmt(ev, STMT_WHILE, st->span);
	struct inside outer;
	enum flow flow;

	if (!stmt)
		return FLOW_STOP;
	stmt->as.while_.condition = condition;
	outer = trace_enter_loop(ev, INSIDE_DEVICE_LOOP);
	flow = run_block(
		ev, frame,
		&(struct body_run){ &stmt->as.while_.body, &st->as.while_.body, ev->serial, st->span });
	trace_leave_loop(ev, outer);
	return flow;
}

/* The statement `else: if ...` that the elif arms after `arm` make. */
static struct ast_body rest_of_if(struct eval *ev, const struct ast_stmt *st, uint32_t arm)
{
	struct ast_stmt *rest = arena_new(ev->cx->arena, struct ast_stmt);
	struct ast_body body = { 0 };

	if (arm + 1 >= st->as.if_.arms.n)
		return st->as.if_.otherwise;
	*rest = *st;
	rest->span = st->as.if_.arms.p[arm + 1].condition->span;
	rest->as.if_.arms.p += arm + 1;
	rest->as.if_.arms.n -= arm + 1;
	vec_push(ev->cx->arena, &body, rest);
	return body;
}

/* Copies of a frame's first `n` bindings. */
static struct binding *save_bindings(struct eval *ev, const struct frame *frame, uint32_t n)
{
	struct binding *saved = arena_array(ev->cx->arena, struct binding, n);

	for (uint32_t i = 0; i < n; i++)
		saved[i] = *(struct binding *)frame->names.entries[i].value.pointer;
	return saved;
}

/* Both branches start from the same bindings; what either changes cannot be used behind them. */
enum flow trace_if(struct eval *ev, struct frame *frame, const struct branch *branch)
{
	const struct ast_stmt *st = branch->st;
	struct stmt *stmt = trace_stmt(ev, STMT_IF, st->span);
	struct ast_body otherwise = rest_of_if(ev, st, branch->arm);
	uint32_t n = frame->names.n;
	struct binding *before = save_bindings(ev, frame, n), *after;
	bool was_inside = ev->trace->inside.branch;
	enum flow flow;

	if (!stmt)
		return FLOW_STOP;
	stmt->as.if_.condition = branch->condition;
	ev->trace->inside.branch = true;
	flow = run_block(ev, frame,
	                 &(struct body_run){ &stmt->as.if_.then, &st->as.if_.arms.p[branch->arm].body,
	                                     ev->serial, st->span });
	if (flow != FLOW_NEXT)
		return flow;
	after = save_bindings(ev, frame, n);
	for (uint32_t i = 0; i < n; i++)
		*(struct binding *)frame->names.entries[i].value.pointer = before[i];
	flow = run_block(
		ev, frame, &(struct body_run){ &stmt->as.if_.otherwise, &otherwise, ev->serial, st->span });
	ev->trace->inside.branch = was_inside;
	for (uint32_t i = 0; i < n; i++) {
		struct binding *now = frame->names.entries[i].value.pointer;

		if (after[i].serial != before[i].serial && after[i].value.kind != V_BUFFER) {
			now->is_dead = true;
			now->block = st->span;
		}
	}
	return flow;
}

/* Launches */

/* A variable with the range 0 .. extent - 1. */
static struct var *launch_var(struct eval *ev, enum var_kind kind, int axis, sym_t wanted,
                              const struct expr *extent)
{
	struct var *var = expr_new_var(ev->pool, kind, trace_name(ev, wanted), DTYPE_I32);
	int64_t min, max;

	var->axis = axis;
	var->min = 0;
	if (expr_range(extent, &min, &max) && max < INT64_MAX)
		var->max = max > 0 ? max - 1 : 0;
	return var;
}

/* The name that the file gives the block index, or bx, by, bz. */
static sym_t target_name(struct eval *ev, const struct ast_expr *target, uint32_t i)
{
	static const char *const names[] = { "bx", "by", "bz" };

	if (target && target->kind == EX_NAME && i == 0)
		return target->as.name;
	if (target && target->kind == EX_TUPLE && i < target->as.items.n &&
	    target->as.items.p[i]->kind == EX_NAME)
		return target->as.items.p[i]->as.name;
	return intern_text(ev->cx->names, names[i]);
}

/* Absent grid extents are 1; all six variables exist. */
static struct launch *new_launch(struct eval *ev, const struct launch_value *value,
                                 const struct ast_expr *target)
{
	static const char *const threads[] = { "tx", "ty", "tz" };
	struct launch *launch = arena_new(ev->cx->arena, struct launch);
	struct tile_program *program = ev->trace->program;

	launch->index = program->launches.n;
	launch->span = value->span;
	for (uint32_t i = 0; i < 3; i++) {
		launch->grid[i] = i < value->n_grid ? value->grid[i] : expr_int(ev->pool, 1);
		launch->threads[i] = value->threads[i];
		launch->block[i] =
			launch_var(ev, VAR_BLOCK, (int)i, target_name(ev, target, i), launch->grid[i]);
		launch->thread[i] =
			launch_var(ev, VAR_THREAD, (int)i, intern_text(ev->cx->names, threads[i]),
		               expr_int(ev->pool, launch->threads[i]));
	}
	vec_push(ev->cx->arena, &program->launches, launch);
	return launch;
}

/* `as bx`, or `as (bx, by)`. */
static bool bind_launch_target(struct eval *ev, struct frame *frame, const struct ast_expr *target,
                               const struct launch_value *value)
{
	const struct launch *launch = ev->trace->launch;
	struct value blocks = value_sequence(ev->cx->arena, V_TUPLE);

	if (!target)
		return true;
	for (uint32_t i = 0; i < value->n_grid; i++)
		vec_push(ev->cx->arena, blocks.as.sequence,
		         VALUE_EXPR(expr_of_var(ev->pool, launch->block[i])));
	if (target->kind == EX_NAME && value->n_grid == 1) {
		bind_name(ev, frame, target->as.name, blocks.as.sequence->p[0]);
		return true;
	}
	return assign_target(ev, frame, target, blocks);
}

/* Where work begins that no T.Kernel holds: it runs once, to the end of the function. */
static void open_implicit_launch(struct eval *ev, struct span span)
{
	struct launch_value value = { .threads = { 1, 1, 1 }, .span = span };

	assert(ev->trace && !ev->trace->launch);
	ev->trace->launch = new_launch(ev, &value, NULL);
	ev->trace->launch->is_implicit = true;
	ev->trace->block = &ev->trace->launch->body;
}

/* Launches stand one after the other, never inside another. */
enum flow trace_launch(struct eval *ev, struct frame *frame, const struct ast_with_item *item,
                       const struct launch_value *value, const struct ast_body *body)
{
	struct trace *trace = ev->trace;
	enum flow flow = FLOW_STOP;
	uint64_t serial = ev->serial;

	if (!trace || trace->launch) {
		ev_error(ev, DIAG_E0213, value->span,
		         !trace                       ? "T.Kernel stands outside a kernel"
		         : trace->launch->is_implicit ? "T.Kernel stands behind work outside it"
		                                      : "T.Kernel stands inside T.Kernel");
		if (trace && trace->launch->is_implicit)
			ev_note(ev, trace->launch->span, "the work is this");
		return FLOW_STOP;
	}
	trace->launch = new_launch(ev, value, item->target);
	if (bind_launch_target(ev, frame, item->target, value))
		flow = run_block(
			ev, frame,
			&(struct body_run){ &trace->launch->body, body, serial, item->context->span });
	trace->launch = NULL;
	return flow;
}

/* Stores and names */

/* base, base + 1, ...: an index for as many elements. */
static const struct expr *ramp(struct eval *ev, const struct expr *base, int64_t lanes)
{
	const struct expr *args[2] = { base, expr_int_typed(ev->pool, base->type, 1) };
	struct dtype type = base->type;

	type.lanes = (uint16_t)lanes;
	return lanes == 1 ? base
	                  : expr_call(ev->pool, type, intern_text(ev->cx->names, "ramp"), args, 2);
}

/* The elements of a region in which one dimension has several, as a vector; NULL otherwise. */
static const struct expr *region_vector(struct eval *ev, const struct region_value *region)
{
	enum { MAX_LANES = 1024 };
	const struct expr *at[MAX_RANK];
	uint32_t n_wide = 0;

	for (uint32_t i = 0; i < region->buffer->rank; i++) {
		n_wide += region->extent[i] > 1;
		if (n_wide > 1 || region->extent[i] > MAX_LANES)
			return NULL;
		at[i] = ramp(ev, region->min[i], region->extent[i]);
	}
	return expr_load(ev->pool, region->buffer, device_element_type(region->buffer, at), at,
	                 region->buffer->rank);
}

/*
 * B[a:b] = value stores a vector: the slice becomes a vector index, a region on the right a vector
 * load, a scalar a vector of equal elements.
 */
static bool vector_slices(struct eval *ev, struct buffer *buffer, struct value *index,
                          struct value *value, struct span span)
{
	struct value region, at = value_sequence(ev->cx->arena, V_TUPLE);
	const struct expr *vector;

	if (value->kind == V_REGION) {
		vector = region_vector(ev, value->as.region);
		if (vector)
			*value = VALUE_EXPR(vector);
	}
	if (!device_has_slice(index))
		return true;
	region = device_region(ev, buffer, index, span);
	if (region.kind == V_ERROR)
		return false;
	vector = region_vector(ev, region.as.region);
	if (!vector) {
		ev_error(ev, DIAG_E0204, span, "a store to a slice of several dimensions is not supported");
		ev_help(ev, "write T.copy or T.fill, or a T.Parallel loop over the elements");
		return false;
	}
	for (uint32_t i = 0; i < buffer->rank; i++)
		vec_push(ev->cx->arena, at.as.sequence, VALUE_EXPR(vector->args[i]));
	*index = at;
	vector = device_expr(ev, *value, &buffer->type, span);
	if (vector && vector->type.lanes == 1)
		vector = device_broadcast(ev, vector, region.as.region);
	*value = vector ? VALUE_EXPR(vector) : VALUE_ERROR;
	return vector != NULL;
}

/* The value takes the buffer's type. */
bool trace_store(struct eval *ev, struct buffer *buffer, struct value index, struct value value,
                 struct span span)
{
	const struct expr *at[MAX_RANK], *e;
	struct stmt *stmt;

	if (!trace_require(ev, span, "this store"))
		return false;
	if (!vector_slices(ev, buffer, &index, &value, span))
		return false;
	if (buffer->scope == SCOPE_VAR)
		index = VALUE_NONE;
	if (!device_index(ev, buffer, index, span, at))
		return false;
	e = device_expr(ev, value, &buffer->type, span);
	stmt = e ? trace_stmt(ev, STMT_STORE, span) : NULL;
	if (!stmt)
		return false;
	stmt->as.store.buffer = buffer;
	memcpy(stmt->as.store.index, at, buffer->rank * sizeof(*at));
	stmt->as.store.value = device_cast(ev, device_element_type(buffer, at), e);
	return true;
}

/* Does a part of the expression read memory, or call what may? */
static void find_memory(void *user, const struct expr *e)
{
	*(bool *)user |= e->kind == EXPR_LOAD || e->kind == EXPR_CALL;
}

/*
 * Pure index arithmetic stays inline, so that the analysis sees through names; what reads memory
 * is read once, here.
 */
struct value trace_named(struct eval *ev, sym_t name, struct value value, struct span span)
{
	enum { MAX_INLINE_NODES = 200 };
	bool reads_memory = false;
	struct stmt *stmt;
	struct var *var;

	if (value.kind == V_LOOP && value.as.loop->bound) /* tx = T.thread_binding(...) */
		value = device_value(value.as.loop->bound);
	if (value.kind == V_CONTEXT && value.as.context && value.as.context->bound)
		return *value.as.context->bound; /* tx = T.launch_thread(...) */
	if (value.kind == V_BUFFER && value.as.buffer->name == 0) {
		value.as.buffer->name = trace_name(ev, name);
		value.as.buffer->span = span;
	}
	if (value.kind != V_EXPR || !ev->trace->launch)
		return value;
	expr_walk(value.as.expr, find_memory, &reads_memory);
	if (!reads_memory && device_weight(ev, value.as.expr, NULL) <= MAX_INLINE_NODES)
		return value;
	stmt = trace_stmt(ev, STMT_LET, span);
	if (!stmt)
		return VALUE_ERROR;
	var = expr_new_var(ev->pool, VAR_LET, trace_name(ev, name), value.as.expr->type);
	var->span = span;
	if (!expr_range(value.as.expr, &var->min, &var->max)) {
		var->min = INT64_MIN;
		var->max = INT64_MAX;
	}
	stmt->as.let.var = var;
	stmt->as.let.value = value.as.expr;
	return VALUE_EXPR(expr_of_var(ev->pool, var));
}

/* Kernels */

/* Symbols of a shape are arguments of the program. */
static void note_symbol(void *user, const struct expr *e)
{
	struct tile_program *program = user;

	if (e->kind != EXPR_VAR || e->as.var->kind != VAR_SYMBOL)
		return;
	for (uint32_t i = 0; i < program->scalars.n; i++) {
		if (program->scalars.p[i] == e->as.var)
			return;
	}
	vec_push(program->cx->arena, &program->scalars, e->as.var);
}

/* One parameter of the kernel: a tensor or a scalar. V_ERROR after an error. */
static struct value new_parameter(struct eval *ev, const struct ast_param *param, struct value type)
{
	struct tile_program *program = ev->trace->program;
	struct dtype dtype;
	struct buffer *buffer;
	struct var *var;

	if (type.kind == V_TENSOR) {
		const struct tensor_type *tensor = type.as.tensor;

		if (ev->trace->is_probe)
			eager_note_sizes(ev, param->name, tensor);
		buffer = tile_new_buffer(program, SCOPE_GLOBAL, trace_name(ev, param->name), tensor->type,
		                         param->span);
		buffer->rank = tensor->rank;
		buffer->is_param = true;
		memcpy(buffer->shape, tensor->shape, sizeof(buffer->shape));
		if (tensor->has_strides)
			memcpy(buffer->strides, tensor->strides, sizeof(buffer->strides));
		for (uint32_t i = 0; i < tensor->rank; i++) {
			expr_walk(tensor->shape[i], note_symbol, program);
			if (tensor->has_strides)
				expr_walk(tensor->strides[i], note_symbol, program);
		}
		vec_push(ev->cx->arena, &program->params, buffer);
		return (struct value){ .kind = V_BUFFER, .as.buffer = buffer };
	}
	if (value_dtype(type, &dtype)) {
		var = expr_new_var(ev->pool, VAR_PARAM, trace_name(ev, param->name), dtype);
		var->span = param->span;
		assume_of_var(ev, var);
		vec_push(ev->cx->arena, &program->scalars, var);
		return VALUE_EXPR(expr_of_var(ev->pool, var));
	}
	if (type.kind == V_OPAQUE)
		return ev_unsettled(ev, type, param->span, "this parameter's type");
	if (type.kind != V_ERROR)
		ev_error(ev, DIAG_E0219, param->span,
		         "a kernel parameter is annotated with T.Tensor or a type, not %s",
		         value_type_text(type));
	return VALUE_ERROR;
}

/* `A: T.Tensor((M, K), dtype)` in the body of an eager kernel. */
bool trace_annotation(struct eval *ev, struct frame *frame, const struct ast_stmt *st)
{
	const struct ast_params *params = frame->function ? frame->function->params : NULL;
	struct value value;

	for (uint32_t i = 0; params && i < params->n; i++) {
		if (params->p[i].name != st->as.annotated.target->as.name)
			continue;
		value = new_parameter(ev, &params->p[i], eval_expr(ev, frame, st->as.annotated.annotation));
		bind_name(ev, frame, params->p[i].name, value);
		return value.kind != V_ERROR;
	}
	return true;
}

/* One parameter; an eager kernel's host parameters are bound already, its tensors may be typed by
 * the body. */
static bool bind_parameter(struct eval *ev, struct frame *frame, const struct function *function,
                           const struct ast_param *param)
{
	bool is_eager = ev->trace->kernel->form == KERNEL_EAGER;
	const char *text = sym_text(ev->cx->names, param->name);
	struct value value;

	if (is_eager && !eager_is_tensor(ev, function->def, param->name))
		return true;
	if (param->annotation) {
		value = new_parameter(
			ev, param, eval_expr(ev, is_eager ? frame : function->closure, param->annotation));
		bind_name(ev, frame, param->name, value);
		return value.kind != V_ERROR;
	}
	if (is_eager || eager_is_tensor(ev, function->def, param->name)) {
		bind_name(ev, frame, param->name, ev_opaque(ev, param->span, text));
		return true;
	}
	ev_error(ev, DIAG_E0219, param->span, "the kernel parameter %s has no annotation", text);
	ev_help(ev, "write %s: T.Tensor(shape, dtype)", text);
	return false;
}

/* All of them, so that one run shows all mistakes. */
static bool bind_parameters(struct eval *ev, struct frame *frame, const struct function *function)
{
	bool ok = true;

	for (uint32_t i = 0; i < function->params->n; i++)
		ok = bind_parameter(ev, frame, function, &function->params->p[i]) && ok;
	return ok;
}

/* The body of the kernel; at least one launch must come of it. */
static void trace_function(struct eval *ev, struct trace *trace, const struct function *function,
                           struct frame *frame)
{
	struct span span = function->def->as.def.name_span;
	struct value result = VALUE_NONE;

	frame->is_traced = true;
	if (!bind_parameters(ev, frame, function)) {
		trace->n_failed++;
		trace->n_failed_outside++;
		return;
	}
	if (ev->n_calls < ev->limits.max_calls)
		exec_body(ev, frame, &function->def->as.def.body, &result);
	for (uint32_t i = 0; i < trace->program->buffers.n; i++)
		trace_use(ev, trace->program->buffers.p[i]);
	for (uint32_t i = 0; i < trace->outputs.n; i++)
		vec_push(ev->cx->arena, &trace->program->params, trace->outputs.p[i]);
	if (trace->program->launches.n == 0 && trace->n_failed == 0 && !ev->is_fatal) {
		ev_error(ev, DIAG_E0207, span, "%s launches nothing",
		         sym_text(ev->cx->names, function->def->as.def.name));
		ev_help(ev, "open a launch: with T.Kernel(blocks, threads=128) as bx:");
		trace->n_failed++;
	}
}

/* Mistakes are kept with the kernel: another one may be the one that is wanted. */
void trace_kernel(struct eval *ev, struct kernel *kernel, const struct function *function,
                  struct frame *frame)
{
	struct trace trace = { .kernel = kernel };
	struct diag_list outer_diags = ev->cx->diags;
	bool was_strict = ev->is_strict;
	struct tile_program *program = tile_new(ev->cx, ev->pool);

	assert(!ev->trace && "a kernel inside a kernel");
	ev->n_effects++;
	program->name = kernel->def->as.def.name;
	program->factory = kernel->chain.n ? vec_last(&kernel->chain)->as.def.name : 0;
	program->path = source_get(&ev->cx->sources, kernel->def->span.file)->path;
	program->span = kernel->def->as.def.name_span;
	trace.program = program;
	kernel_started(ev, kernel, frame ? frame : function->closure);
	for (uint32_t i = 0; i < kernel->params.n; i++)
		vec_push(ev->cx->arena, &program->host_params, kernel->params.p[i]);
	decorators_pass_configs(ev, kernel, program);
	ev->cx->diags = (struct diag_list){ .arena = ev->cx->arena };
	ev->trace = &trace;
	ev->is_strict = true;
	trace_function(ev, &trace, function,
	               frame ? frame : new_frame(ev, function->closure, function));
	ev->trace = NULL;
	ev->is_strict = was_strict;
	if (trace.is_missing) {
		kernel->is_missing = true;
		ev->cx->diags = outer_diags;
		return;
	}
	kernel->is_traced = true;
	kernel->is_failed =
		trace.n_failed > 0 || ev->is_fatal || ev->cx->diags.n_errors > 0 || !tile_verify(program);
	kernel->program = kernel->is_failed ? NULL : program;
	if (program->launches.n && trace.n_failed_outside == 0 && !ev->is_fatal)
		kernel->outline = program;
	kernel->diags = ev->cx->diags;
	ev->cx->diags = outer_diags;
}
