/*
 * Blocks, loops over tiles and threads by name:
 *
 *     with T.ws(0): ...                         a CONTEXT value, then trace_context
 *     for i, j in T.grid(4, 8): ...             a LOOP value with several serial dimensions
 *     for x, y in T.Persistent([8, 8], 132, block): ...
 *     tx = T.launch_thread("threadIdx.x", 128)  sets the launch's extents
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* A block that runs under a condition, or for all threads; `as` binds `bound`. */
static struct value context_of(struct eval *ev, const struct expr *condition,
                               const struct value *bound)
{
	struct context_value *context = arena_new(ev->cx->arena, struct context_value);

	context->condition = condition;
	context->bound = bound;
	return (struct value){ .kind = V_CONTEXT, .as.context = context };
}

/* T.attr(...), T.sblock(...): nothing but its body counts. */
static struct value t_plain_block(struct eval *ev, struct call *call)
{
	(void)call;
	return context_of(ev, NULL, NULL);
}

/* T.ws(*groups): the threads of these warpgroups. */
static struct value t_ws(struct eval *ev, struct call *call)
{
	enum { GROUP = 128 };
	struct trace *trace = trace_require(ev, call->span, call->name);
	const struct expr *condition = NULL, *flat;

	if (!trace)
		return VALUE_ERROR;
	flat = trace_flat_thread(ev, trace->launch);
	for (uint32_t i = 0; i < call->n_rest; i++) {
		const struct expr *inside;
		int64_t group;

		if (!value_int(call->rest[i].value, &group) || group < 0 || group > 8)
			return ev_error(ev, DIAG_E0202, call->rest[i].span, "%s takes numbers of warpgroups",
			                call->name);
		inside = expr_binary(ev->pool, BIN_LT, flat, expr_int(ev->pool, (group + 1) * GROUP));
		if (group > 0)
			inside = expr_and(
				ev->pool, expr_binary(ev->pool, BIN_GE, flat, expr_int(ev->pool, group * GROUP)),
				inside);
		condition = condition ? expr_binary(ev->pool, BIN_OR, condition, inside) : inside;
	}
	if (!condition)
		return ev_error(ev, DIAG_E0210, call->span, "%s misses its warpgroup", call->name);
	return context_of(ev, condition, NULL);
}

/* Loops */

/* T.grid(*extents) */
static struct value t_grid(struct eval *ev, struct call *call)
{
	struct loop_value *loop = arena_new(ev->cx->arena, struct loop_value);

	if (call->n_rest < 1 || call->n_rest > MAX_RANK)
		return ev_error(ev, DIAG_E0312, call->span, "%s takes 1 to %d extents", call->name,
		                MAX_RANK);
	loop->kind = LOOP_SERIAL;
	loop->step = 1;
	loop->span = call->span;
	for (uint32_t i = 0; i < call->n_rest; i++) {
		loop->extent[i] = device_expr(ev, call->rest[i].value, NULL, call->rest[i].span);
		loop->extent_span[i] = call->rest[i].span;
		if (!loop->extent[i])
			return VALUE_ERROR;
		if (!dtype_is_int(loop->extent[i]->type))
			return ev_error(ev, DIAG_E0312, call->rest[i].span,
			                "a loop's extent must be an integer");
	}
	loop->n = call->n_rest;
	return (struct value){ .kind = V_LOOP, .as.loop = loop };
}

/* a // b rounded up; both positive. */
static const struct expr *ceil_div(struct eval *ev, const struct expr *a, const struct expr *b)
{
	const struct expr *above = expr_add_int(ev->pool, expr_add(ev->pool, a, b), -1);

	return expr_binary(ev->pool, BIN_FLOORDIV, above, b);
}

/* The number of a tile in its wave, taken apart: the last dimension in groups, slowest, then the
 * others, then the place in the group. */
static void split_wave(struct eval *ev, struct loop_value *loop, const struct expr *tile,
                       const struct expr *const *domain, const struct expr *group)
{
	uint32_t n = loop->n_coords;
	const struct expr *rest = tile, *in_group;

	in_group = expr_binary(ev->pool, BIN_FLOORMOD, rest, group);
	rest = expr_binary(ev->pool, BIN_FLOORDIV, rest, group);
	for (uint32_t i = n - 1; i-- > 0;) {
		loop->coords[i] = expr_binary(ev->pool, BIN_FLOORMOD, rest, domain[i]);
		rest = expr_binary(ev->pool, BIN_FLOORDIV, rest, domain[i]);
	}
	loop->coords[n - 1] = expr_add(ev->pool, expr_binary(ev->pool, BIN_MUL, rest, group), in_group);
}

/* T.Persistent(domain, wave_size, index, group_size=8) */
static struct value t_persistent(struct eval *ev, struct call *call)
{
	struct loop_value *loop = arena_new(ev->cx->arena, struct loop_value);
	const struct expr *domain[MAX_RANK], *wave_size = NULL, *index = NULL, *group, *total, *tile;
	struct value list = call->slot[0]->value;
	struct var *wave;
	int64_t max = 0, min;

	if (!trace_require(ev, call->span, call->name))
		return VALUE_ERROR;
	if (!value_is_sequence(list) || list.as.sequence->n < 1 || list.as.sequence->n > MAX_RANK)
		return ev_error(ev, DIAG_E0312, call->slot[0]->span, "%s takes a list of 1 to %d extents",
		                call->name, MAX_RANK);
	loop->n_coords = list.as.sequence->n;
	for (uint32_t i = 0; i < loop->n_coords; i++) {
		domain[i] = device_expr(ev, list.as.sequence->p[i], NULL, call->slot[0]->span);
		if (!domain[i])
			return VALUE_ERROR;
	}
	group = expr_int(ev->pool, 8);
	if (!arg_expr(ev, call, 1, &wave_size) || !arg_expr(ev, call, 2, &index) ||
	    (lang_is_given(call, 3) && !arg_expr(ev, call, 3, &group)))
		return VALUE_ERROR;
	group = expr_binary(ev->pool, BIN_MAX, expr_int(ev->pool, 1),
	                    expr_binary(ev->pool, BIN_MIN, group, domain[loop->n_coords - 1]));
	total = expr_binary(ev->pool, BIN_MUL, ceil_div(ev, domain[loop->n_coords - 1], group), group);
	for (uint32_t i = 0; i + 1 < loop->n_coords; i++)
		total = expr_binary(ev->pool, BIN_MUL, total, domain[i]);
	loop->kind = LOOP_SERIAL;
	loop->step = 1;
	loop->span = call->span;
	loop->extent[0] = ceil_div(ev, total, wave_size);
	loop->n = 1;
	wave = expr_new_var(ev->pool, VAR_LOOP, trace_name(ev, intern_text(ev->cx->names, "w")),
	                    DTYPE_I32);
	wave->min = 0;
	if (expr_range(loop->extent[0], &min, &max) && max < INT64_MAX)
		wave->max = max > 0 ? max - 1 : 0;
	wave->span = call->span;
	loop->wave = wave;
	tile = expr_add(ev->pool,
	                expr_binary(ev->pool, BIN_MUL, expr_of_var(ev->pool, wave), wave_size), index);
	split_wave(ev, loop, tile, domain, group);
	loop->guard = expr_binary(
		ev->pool, BIN_AND, expr_lt(ev->pool, tile, total),
		expr_lt(ev->pool, loop->coords[loop->n_coords - 1], domain[loop->n_coords - 1]));
	return (struct value){ .kind = V_LOOP, .as.loop = loop };
}

/* Threads by name */

/* "threadIdx.x", "blockIdx.y": the axis; false when it is neither. */
static bool thread_axis(struct str tag, bool *is_thread, int *axis)
{
	*is_thread = tag.n == 11 && memcmp(tag.p, "threadIdx.", 10) == 0;
	if (!*is_thread && !(tag.n == 10 && memcmp(tag.p, "blockIdx.", 9) == 0))
		return false;
	*axis = tag.p[tag.n - 1] - 'x';
	return *axis >= 0 && *axis <= 2;
}

/* The launch gets this extent there; the index, or NULL after an error. */
static const struct expr *set_axis(struct eval *ev, const struct call *call, struct str tag,
                                   const struct expr *extent)
{
	struct trace *trace = trace_require(ev, call->span, call->name);
	struct launch *launch = trace ? trace->launch : NULL;
	struct var *var;
	bool is_thread;
	int64_t n, min;
	int axis;

	if (!trace)
		return NULL;
	if (!thread_axis(tag, &is_thread, &axis)) {
		ev_error(ev, DIAG_E0204, call->span, "\"%.*s\" is no index of threads or blocks",
		         STR_ARGS(tag));
		return NULL;
	}
	var = (struct var *)(uintptr_t)(is_thread ? launch->thread[axis] : launch->block[axis]);
	if (is_thread && (!expr_is_int(extent, &n) || n < 1 || n > 1024)) {
		ev_error(ev, DIAG_E0309, call->span, "a thread block has 1 to 1024 threads");
		return NULL;
	}
	if (is_thread) {
		launch->threads[axis] = n > launch->threads[axis] ? n : launch->threads[axis];
		var->max = launch->threads[axis] - 1;
	} else {
		launch->grid[axis] = extent;
		var->max = expr_range(extent, &min, &n) && n < INT64_MAX ? (n > 0 ? n - 1 : 0) : INT64_MAX;
	}
	launch->is_implicit = false;
	return expr_of_var(ev->pool, var);
}

/* T.thread_binding(start, stop=None, thread="threadIdx.x") */
static struct value t_thread_binding(struct eval *ev, struct call *call)
{
	struct loop_value *loop = arena_new(ev->cx->arena, struct loop_value);
	struct value stop = call->slot[1] ? call->slot[1]->value : VALUE_NONE;
	const struct arg *tag = call->slot[2];
	const struct expr *begin = NULL, *end = NULL;

	if (stop.kind == V_STR) {
		tag = call->slot[1];
		stop = VALUE_NONE;
	}
	if (!tag || tag->value.kind != V_STR)
		return ev_error(ev, DIAG_E0202, call->span, "%s needs a name such as \"threadIdx.x\"",
		                call->name);
	if (!arg_expr(ev, call, 0, &begin))
		return VALUE_ERROR;
	end = begin;
	if (stop.kind != V_NONE) {
		end = device_expr(ev, stop, NULL, call->slot[1]->span);
		if (!end)
			return VALUE_ERROR;
		end = expr_sub(ev->pool, end, begin);
	} else {
		begin = expr_int(ev->pool, 0);
	}
	loop->bound = set_axis(ev, call, tag->value.as.string, end);
	if (!loop->bound)
		return VALUE_ERROR;
	loop->bound = expr_add(ev->pool, loop->bound, begin);
	loop->kind = LOOP_SERIAL;
	loop->n = 1;
	loop->step = 1;
	loop->span = call->span;
	return (struct value){ .kind = V_LOOP, .as.loop = loop };
}

/* T.env_thread("threadIdx.x"): a name that T.launch_thread gives its extent. */
static struct value t_env_thread(struct eval *ev, struct call *call)
{
	struct str tag = { 0 };
	struct trace *trace = trace_require(ev, call->span, call->name);
	bool is_thread;
	int axis;

	if (!trace || !arg_str(ev, call, 0, &tag))
		return VALUE_ERROR;
	if (!thread_axis(tag, &is_thread, &axis))
		return ev_error(ev, DIAG_E0204, call->span, "this is no index of threads or blocks");
	return VALUE_EXPR(expr_of_var(ev->pool, is_thread ? trace->launch->thread[axis]
	                                                  : trace->launch->block[axis]));
}

/* T.launch_thread(tag, extent), as a value or a block. */
static struct value t_launch_thread(struct eval *ev, struct call *call)
{
	struct value *bound = arena_new(ev->cx->arena, struct value), tag = call->slot[0]->value;
	const struct expr *extent = NULL, *index;
	char text[16] = "";

	if (!arg_expr(ev, call, 1, &extent))
		return VALUE_ERROR;
	if (tag.kind == V_EXPR && tag.as.expr->kind == EXPR_VAR && tag.as.expr->as.var->axis <= 2) {
		const struct var *var = tag.as.expr->as.var;

		snprintf(text, sizeof(text), "%s.%c", var->kind == VAR_THREAD ? "threadIdx" : "blockIdx",
		         'x' + var->axis);
		tag = VALUE_STR(str_of(text));
	}
	if (tag.kind != V_STR)
		return ev_error(ev, DIAG_E0202, call->slot[0]->span,
		                "%s needs a name such as \"threadIdx.x\"", call->name);
	index = set_axis(ev, call, tag.as.string, extent);
	if (!index)
		return VALUE_ERROR;
	*bound = VALUE_EXPR(index);
	return context_of(ev, NULL, bound);
}

/* All three indices or extents, those that the launch has. */
static struct value three(struct eval *ev, struct call *call, bool is_thread, bool is_extent)
{
	struct trace *trace = trace_require(ev, call->span, call->name);
	struct value list = value_sequence(ev->cx->arena, V_LIST);

	if (!trace)
		return VALUE_ERROR;
	for (int i = 0; i < 3; i++) {
		const struct launch *launch = trace->launch;
		const struct expr *e = is_thread ? expr_of_var(ev->pool, launch->thread[i])
		                                 : expr_of_var(ev->pool, launch->block[i]);

		if (is_extent)
			e = is_thread ? expr_int(ev->pool, launch->threads[i]) : launch->grid[i];
		vec_push(ev->cx->arena, list.as.sequence, device_value(e));
	}
	return list;
}

static struct value t_thread_bindings(struct eval *ev, struct call *call)
{
	return three(ev, call, true, false);
}

static struct value t_block_bindings(struct eval *ev, struct call *call)
{
	return three(ev, call, false, false);
}

static struct value t_thread_extents(struct eval *ev, struct call *call)
{
	return three(ev, call, true, true);
}

static struct value t_block_extents(struct eval *ev, struct call *call)
{
	return three(ev, call, false, true);
}

/* T.get_thread_extent(dim), T.get_block_extent(dim) */
static struct value t_extent(struct eval *ev, struct call *call)
{
	bool is_thread = strcmp(call->builtin->name, "get_thread_extent") == 0;
	struct value list = three(ev, call, is_thread, true);
	int64_t dim = 0;

	if (list.kind == V_ERROR || !arg_int(ev, call, 0, &dim))
		return VALUE_ERROR;
	if (dim < 0 || dim > 2)
		return ev_error(ev, DIAG_E0215, call->span, "dimensions are 0, 1 and 2");
	return list.as.sequence->p[dim];
}

/* Block axes: the variables stand for the loop indices that they are given. */

/* T.axis.remap("SSR", [i, j, k]) */
static struct value axis_remap(struct eval *ev, struct call *call)
{
	struct value list = call->slot[1]->value;

	if (!value_is_sequence(list))
		return ev_error(ev, DIAG_E0202, call->slot[1]->span, "%s takes a list", call->name);
	return list.as.sequence->n == 1 ? list.as.sequence->p[0] : list;
}

/* T.axis.spatial(extent, value) */
static struct value axis_value(struct eval *ev, struct call *call)
{
	(void)ev;
	return call->slot[1]->value;
}

/* T.index_to_coordinates(index, shape) */
static struct value t_coordinates(struct eval *ev, struct call *call)
{
	struct value shape = call->slot[1]->value, rest = call->slot[0]->value;
	struct value out = value_sequence(ev->cx->arena, V_LIST);
	uint32_t n = value_is_sequence(shape) ? shape.as.sequence->n : 0;
	struct value reversed[MAX_RANK];

	if (n < 1 || n > MAX_RANK)
		return ev_error(ev, DIAG_E0202, call->slot[1]->span, "a shape has 1 to %d extents",
		                MAX_RANK);
	for (uint32_t i = n; i-- > 0;) {
		reversed[i] = eval_binary(ev, AST_MOD, rest, shape.as.sequence->p[i], call->span);
		rest = eval_binary(ev, AST_FLOORDIV, rest, shape.as.sequence->p[i], call->span);
	}
	for (uint32_t i = 0; i < n; i++)
		vec_push(ev->cx->arena, out.as.sequence, reversed[i]);
	return out;
}

static const struct builtin rows[] = {
#define T "tilelang.language"
#define AXIS "tilelang.language.axis"
	{ T, "ws", "*", t_ws },
	{ T, "WarpSpecialize", "*", t_ws },
	{ T, "attr", "**", t_plain_block },
	{ T, "sblock", "**", t_plain_block },
	{ T, "block", "**", t_plain_block },
	{ T, "init", "**", t_plain_block },
	{ T, "grid", "*", t_grid },
	{ T, "Persistent", "domain wave_size index group_size?", t_persistent },
	{ T, "thread_binding", "start stop? thread? annotations?", t_thread_binding },
	{ T, "env_thread", "thread dtype?", t_env_thread },
	{ T, "launch_thread", "thread extent", t_launch_thread },
	{ T, "get_thread_bindings", "", t_thread_bindings },
	{ T, "get_block_bindings", "", t_block_bindings },
	{ T, "get_thread_extents", "", t_thread_extents },
	{ T, "get_block_extents", "", t_block_extents },
	{ T, "get_thread_extent", "dim?", t_extent },
	{ T, "get_block_extent", "dim?", t_extent },
	{ T, "index_to_coordinates", "index shape", t_coordinates },
	{ AXIS, "remap", "kinds values", axis_remap },
	{ AXIS, "spatial", "extent value dtype?", axis_value },
	{ AXIS, "S", "extent value dtype?", axis_value },
	{ AXIS, "reduce", "extent value dtype?", axis_value },
	{ AXIS, "R", "extent value dtype?", axis_value },
	{ AXIS, "opaque", "extent value dtype?", axis_value },
#undef AXIS
#undef T
};

const struct builtin_table lang_blocks = { rows, sizeof(rows) / sizeof(*rows) };
