/*
 * T.* names that give a kernel its shape: element types, tensor types, symbols, allocations,
 * T.Kernel and loops. Loops and launches are values until `for` and `with` take them:
 *
 *     for i, j in T.Parallel(M, 8): ...          LOOP value, then trace_for
 *     with T.Kernel(4, threads=128) as bx: ...   LAUNCH value, then trace_launch
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

enum { MAX_THREADS = 1024 };

/* Names */

/*
 * Of a name that TileLang has, but no table here: the message then says "not supported yet" rather
 * than that it does not exist.
 */
static bool is_known_name(const char *name)
{
	static const char *const known[] = {
#define KNOWN(name) #name,
#include "analyzer/frontend/known_names.def"
#undef KNOWN
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(known[i], name) == 0)
			return true;
	}
	return false;
}

/* The name of tilelang.language nearest to `name`, among those that are supported. */
static const char *nearest_lang_name(struct eval *ev, const char *name)
{
	static const char *const more[] = { "float16",   "bfloat16", "float32",       "int32",
		                                "prim_func", "macro",    "GemmWarpPolicy" };
	const struct builtin_table *const tables[] = { &lang_ops, &lang_shapes, &lang_scalars };
	vec_of(const char *) names = { 0 };

	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
		for (uint32_t i = 0; i < tables[t]->n; i++) {
			if (strcmp(tables[t]->p[i].module, "tilelang.language") == 0)
				vec_push(ev->cx->arena, &names, tables[t]->p[i].name);
		}
	}
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		vec_push(ev->cx->arena, &names, more[i]);
	return nearest_name(name, names.p, names.n);
}

/* What T.annotate_ws_schedule is told: who copies and who computes, which changes no value. */
static bool is_schedule_word(const char *text)
{
	static const char *const words[] = { "WSID",    "WSPipeline", "WSRole",    "WSSchedule",
		                                 "WSScope", "WSSync",     "WSSyncKind" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

/*
 * Supported functions were looked up before; here are types, policies, and what is known but not
 * supported.
 */
struct value lang_attribute(struct eval *ev, sym_t name, struct span span)
{
	const char *text = sym_text(ev->cx->names, name), *nearest;
	struct dtype type;
	struct value result;

	if (strcmp(text, "GemmWarpPolicy") == 0)
		return (struct value){ .kind = V_MODULE,
			                   .as.module =
			                       intern_text(ev->cx->names, "tilelang.language.GemmWarpPolicy") };
	if (strcmp(text, "axis") == 0)
		return (struct value){ .kind = V_MODULE,
			                   .as.module = intern_text(ev->cx->names, "tilelang.language.axis") };
	if (strcmp(text, "ptr") == 0)
		text = "handle";
	if (dtype_parse(str_of(text), &type))
		return (struct value){ .kind = V_DTYPE, .as.dtype = type };
	if (strcmp(text, "prim_func") == 0 || strcmp(text, "macro") == 0 || is_schedule_word(text))
		return ev_opaque(ev, span, text);
	if (is_known_name(text))
		return ev_error(ev, DIAG_E0204, span, "T.%s is known, but not supported yet", text);
	result = ev_error(ev, DIAG_E0203, span, "tilelang.language has no %s", text);
	nearest = ev->has_reported ? nearest_lang_name(ev, text) : NULL;
	if (nearest)
		ev_help(ev, "did you mean T.%s?", nearest);
	return result;
}

/* Shapes and tensor types */

/* A tuple of extents, or one number. */
bool lang_shape(struct eval *ev, struct value shape, struct span span, struct tensor_type *out)
{
	struct value one = value_sequence(ev->cx->arena, V_TUPLE);
	int64_t extent;

	if (!value_is_sequence(shape)) {
		vec_push(ev->cx->arena, one.as.sequence, shape);
		shape = one;
	}
	if (shape.as.sequence->n > MAX_RANK) {
		ev_error(ev, DIAG_E0311, span, "a buffer has at most %d dimensions", MAX_RANK);
		return false;
	}
	out->rank = shape.as.sequence->n;
	for (uint32_t i = 0; i < out->rank; i++) {
		struct value item = shape.as.sequence->p[i];
		const struct expr *e = device_expr(ev, item, NULL, span);

		if (!e)
			return false;
		if (!dtype_is_int(e->type)) {
			ev_error(ev, DIAG_E0311, span, "extent %u of this shape is no integer", i);
			if (item.kind == V_FLOAT)
				ev_help(ev, "use // instead of / for sizes");
			return false;
		}
		if (expr_is_int(e, &extent) && extent < 1) {
			ev_error(ev, DIAG_E0311, span, "extent %u of this shape is %lld", i, (long long)extent);
			return false;
		}
		out->shape[i] = e;
	}
	return true;
}

/*
 * T.Tensor(shape, dtype), T.Buffer, T.StridedTensor(shape, strides, dtype). With data= it is an
 * alias of that buffer.
 */
static struct value t_tensor(struct eval *ev, struct call *call)
{
	struct tensor_type *tensor = arena_new(ev->cx->arena, struct tensor_type);
	bool is_strided = strcmp(call->builtin->name, "StridedTensor") == 0;

	tensor->type = DTYPE_F32;
	if (call->slot[0]->value.kind == V_OPAQUE)
		return call->slot[0]->value;
	if (call->slot[is_strided ? 2 : 1] && call->slot[is_strided ? 2 : 1]->value.kind == V_OPAQUE)
		return call->slot[is_strided ? 2 : 1]->value;
	if (!arg_dtype(ev, call, is_strided ? 2 : 1, &tensor->type))
		return VALUE_ERROR;
	if (is_strided) {
		if (!lang_shape(ev, call->slot[1]->value, call->slot[1]->span, tensor))
			return VALUE_ERROR;
		memcpy(tensor->strides, tensor->shape, sizeof(tensor->strides));
		tensor->has_strides = true;
	}
	if (!lang_shape(ev, call->slot[0]->value, call->slot[0]->span, tensor))
		return VALUE_ERROR;
	if (!is_strided && call->slot[2] && lang_data(call->slot[2]))
		return lang_alias(ev, call, lang_data(call->slot[2]), tensor);
	return (struct value){ .kind = V_TENSOR, .as.tensor = tensor };
}

/* T.Tensor[(M, N), dtype], T.Tensor[shape], T.StridedTensor[shape, strides, dtype] */
struct value lang_tensor_subscript(struct eval *ev, const struct builtin *builtin,
                                   struct value index, struct span span)
{
	struct tensor_type *tensor = arena_new(ev->cx->arena, struct tensor_type);
	struct value shape = index;

	if (strcmp(builtin->name, "StridedTensor") == 0 && index.kind == V_TUPLE) {
		struct call call = { .span = span, .callee_span = span, .name = builtin->name };

		for (uint32_t i = 0; i < index.as.sequence->n; i++)
			vec_push(ev->cx->arena, &call.args,
			         (struct arg){ 0, index.as.sequence->p[i], span, span });
		return call_value(ev, (struct value){ .kind = V_BUILTIN, .as.builtin = builtin }, &call);
	}

	tensor->type = DTYPE_F32;
	if (index.kind == V_OPAQUE)
		return index;
	if (index.kind == V_TUPLE && index.as.sequence->n == 2 &&
	    value_dtype(index.as.sequence->p[1], &tensor->type))
		shape = index.as.sequence->p[0];
	if (!lang_shape(ev, shape, span, tensor))
		return VALUE_ERROR;
	return (struct value){ .kind = V_TENSOR, .as.tensor = tensor };
}

/* Symbols */

/* A size known at launch, unless --set gives it. It is at least 1, and below 2^31 as an index. */
static struct value symbol_value(struct eval *ev, struct str text, struct dtype type,
                                 struct span span)
{
	sym_t name = intern(ev->cx->names, text);
	const struct frontend_set *set = find_set_named(ev, sym_text(ev->cx->names, name));
	struct var *var;

	if (set)
		return set_value(ev, set);
	var = expr_new_var(ev->pool, VAR_SYMBOL, name, type);
	var->min = 1;
	var->max = INT32_MAX;
	var->span = span;
	assume_of_var(ev, var);
	return VALUE_EXPR(expr_of_var(ev->pool, var));
}

/* T.dynamic("M, N"): one symbol a name; a tuple of them when there are several. */
static struct value t_dynamic(struct eval *ev, struct call *call)
{
	struct value symbols = value_sequence(ev->cx->arena, V_TUPLE);
	struct dtype type = DTYPE_I32;
	struct str text = { 0 };

	if (!arg_str(ev, call, 0, &text) || !arg_dtype(ev, call, 1, &type))
		return VALUE_ERROR;
	for (uint32_t at = 0; at < text.n;) {
		uint32_t begin = at;

		while (at < text.n && text.p[at] != ',' && text.p[at] != ' ')
			at++;
		if (at > begin)
			vec_push(
				ev->cx->arena, symbols.as.sequence,
				symbol_value(ev, (struct str){ text.p + begin, at - begin }, type, call->span));
		at++;
	}
	return symbols.as.sequence->n == 1 ? symbols.as.sequence->p[0] : symbols;
}

/* Allocations */

/* Tiles have constant extents and fit in 2**31 elements. */
struct value lang_new_buffer(struct eval *ev, const struct call *call, enum scope scope,
                             const struct tensor_type *type)
{
	struct buffer *buffer;
	int64_t n = 1, extent;

	if (!trace_require(ev, call->span, call->name))
		return VALUE_ERROR;
	for (uint32_t i = 0; i < type->rank; i++) {
		if (!expr_is_int(type->shape[i], &extent))
			return ev_error(ev, DIAG_E0308, call->span, "extent %u of this tile is not constant",
			                i);
		if (__builtin_mul_overflow(n, extent, &n) || n > INT32_MAX)
			return ev_error(ev, DIAG_E0311, call->span, "this tile has more than 2**31 elements");
	}
	buffer = tile_new_buffer(ev->trace->program, scope, 0, type->type, call->span);
	buffer->rank = type->rank;
	buffer->launch = ev->trace->launch->index;
	memcpy(buffer->shape, type->shape, sizeof(buffer->shape));
	return (struct value){ .kind = V_BUFFER, .as.buffer = buffer };
}

/*
 * shape and dtype are the first two arguments of all tile allocations; a scope as text, where it is
 * given, outweighs the function's own.
 */
static struct value allocate(struct eval *ev, struct call *call, enum scope scope)
{
	struct tensor_type type = { .type = DTYPE_F32 };
	struct value shape = call->slot[0]->value;
	struct str text = { 0 };
	int64_t extent;

	if (scope == SCOPE_LOCAL && value_int(shape, &extent) && extent == 0)
		shape = VALUE_INT(1); /* never used */
	if (!arg_dtype(ev, call, 1, &type.type) || !arg_str(ev, call, 2, &text) ||
	    !lang_shape(ev, shape, call->slot[0]->span, &type))
		return VALUE_ERROR;
	if (text.n && !lang_scope(text, &scope))
		return ev_error(ev, DIAG_E0204, call->slot[2]->span,
		                "memory \"%.*s\" is known, but not supported yet", STR_ARGS(text));
	return lang_new_buffer(ev, call, scope, &type);
}

/* T.alloc_shared(shape, dtype, scope="shared.dyn") */
static struct value t_alloc_shared(struct eval *ev, struct call *call)
{
	return allocate(ev, call, SCOPE_SHARED);
}

/* T.alloc_fragment(shape, dtype, scope="local.fragment"): registers of the block's threads. */
static struct value t_alloc_fragment(struct eval *ev, struct call *call)
{
	return allocate(ev, call, SCOPE_FRAGMENT);
}

/* T.alloc_local(shape, dtype, scope="local"): registers of one thread. */
static struct value t_alloc_local(struct eval *ev, struct call *call)
{
	return allocate(ev, call, SCOPE_LOCAL);
}

/* T.alloc_var(dtype, init=None): a scalar, set at once when there is an initial value. */
static struct value t_alloc_var(struct eval *ev, struct call *call)
{
	struct tensor_type type = { .type = DTYPE_I32 };
	const struct arg *init =
		call->slot[1] && call->slot[1]->value.kind != V_STR ? call->slot[1] : call->slot[3];
	struct value var;

	if (!arg_dtype(ev, call, 0, &type.type))
		return VALUE_ERROR;
	var = lang_new_buffer(ev, call, SCOPE_VAR, &type);
	if (var.kind == V_ERROR || !init || init->value.kind == V_NONE)
		return var;
	return trace_store(ev, var.as.buffer, VALUE_NONE, init->value, call->span) ? var : VALUE_ERROR;
}

/* Launches */

/* threads=128 or threads=(32, 4). */
static bool launch_threads(struct eval *ev, const struct arg *arg, struct launch_value *launch)
{
	struct sequence items = { 0 };
	int64_t total = 1;

	launch->threads[0] = 128;
	launch->threads[1] = launch->threads[2] = 1;
	if (!arg || arg->value.kind == V_NONE)
		return true;
	if (arg->value.kind == V_OPAQUE) {
		ev_unsettled(ev, arg->value, arg->span, "the number of threads");
		return false;
	}
	if (value_is_sequence(arg->value))
		items = *arg->value.as.sequence;
	else
		vec_push(ev->cx->arena, &items, arg->value);
	if (items.n < 1 || items.n > 3) {
		ev_error(ev, DIAG_E0309, arg->span, "a thread block has 1 to 3 extents, this gives %u",
		         items.n);
		return false;
	}
	for (uint32_t i = 0; i < items.n; i++) {
		if (!value_int(items.p[i], &launch->threads[i])) {
			ev_error(ev, DIAG_E0308, arg->span, "the number of threads must be a constant integer");
			return false;
		}
		if (launch->threads[i] < 1 || launch->threads[i] > MAX_THREADS)
			total = MAX_THREADS + 1;
		else
			total *= launch->threads[i];
	}
	if (total <= MAX_THREADS)
		return true;
	ev_error(ev, DIAG_E0309, arg->span, "a thread block has 1 to %d threads", MAX_THREADS);
	return false;
}

/* T.Kernel(*grid, threads=128); a prelude of C text concerns only calls of what it defines. */
static struct value t_kernel(struct eval *ev, struct call *call)
{
	struct launch_value *launch = arena_new(ev->cx->arena, struct launch_value);
	int64_t extent;

	launch->span = call->span;
	if (call->n_rest > 3)
		return ev_error(ev, DIAG_E0309, call->rest[3].span, "a grid has at most 3 extents");
	launch->n_grid = call->n_rest;
	for (uint32_t i = 0; i < call->n_rest; i++) {
		launch->grid[i] = device_expr(ev, call->rest[i].value, NULL, call->rest[i].span);
		if (!launch->grid[i])
			return VALUE_ERROR;
		if (!dtype_is_int(launch->grid[i]->type))
			return ev_error(ev, DIAG_E0309, call->rest[i].span, "a grid extent must be an integer");
		if (expr_is_int(launch->grid[i], &extent) && (extent < 1 || extent > INT32_MAX))
			return ev_error(ev, DIAG_E0309, call->rest[i].span, "this grid extent is %lld",
			                (long long)extent);
	}
	if (!launch_threads(ev, call->slot[0], launch))
		return VALUE_ERROR;
	return (struct value){ .kind = V_LAUNCH, .as.launch = launch };
}

/* Loops */

/* A loop without dimensions so far. */
static struct loop_value *new_loop(struct eval *ev, const struct call *call, enum loop_kind kind)
{
	struct loop_value *loop = arena_new(ev->cx->arena, struct loop_value);

	loop->kind = kind;
	loop->step = 1;
	loop->span = call->span;
	return loop;
}

/* Adds one dimension; a negative extent runs as often as 0 does. */
static bool loop_extent(struct eval *ev, struct loop_value *loop, const struct expr *extent,
                        struct span span)
{
	int64_t constant;

	assert(loop->n < MAX_RANK);
	if (!dtype_is_int(extent->type)) {
		ev_error(ev, DIAG_E0312, span, "a loop's extent must be an integer");
		return false;
	}
	if (expr_is_int(extent, &constant) && constant < 0)
		extent = expr_int(ev->pool, 0);
	loop->extent[loop->n] = extent;
	loop->extent_span[loop->n++] = span;
	return true;
}

/* T.Parallel(*extents, coalesced_width=None) */
static struct value t_parallel(struct eval *ev, struct call *call)
{
	struct loop_value *loop = new_loop(ev, call, LOOP_PARALLEL);

	if (call->n_rest < 1 || call->n_rest > MAX_RANK)
		return ev_error(ev, DIAG_E0312, call->span, "T.Parallel takes 1 to %d extents", MAX_RANK);
	for (uint32_t i = 0; i < call->n_rest; i++) {
		const struct expr *extent = device_expr(ev, call->rest[i].value, NULL, call->rest[i].span);

		if (!extent || !loop_extent(ev, loop, extent, call->rest[i].span))
			return VALUE_ERROR;
	}
	if (lang_is_given(call, 1))
		return ev_error(ev, DIAG_E0204, call->slot[1]->span,
		                "loop_layout is known, but not supported yet");
	if (!arg_int(ev, call, 0, &loop->coalesced_width))
		return VALUE_ERROR;
	return (struct value){ .kind = V_LOOP, .as.loop = loop };
}

/* The trip count of begin, begin + step, ... below (above) end. */
static const struct expr *trip_count(struct eval *ev, const struct expr *begin,
                                     const struct expr *end, int64_t step)
{
	const struct expr *distance;

	assert(step != 0);
	if (step < 0)
		distance = expr_sub(ev->pool, begin, end);
	else
		distance = expr_sub(ev->pool, end, begin);
	step = step < 0 ? -step : step;
	return step == 1 ? distance
	                 : expr_div_int(ev->pool, expr_add_int(ev->pool, distance, step - 1), step);
}

/* Loops of (start, stop=None, step=None) in slots 0 to 2. */
static struct loop_value *one_loop(struct eval *ev, struct call *call, enum loop_kind kind,
                                   bool has_step)
{
	struct loop_value *loop = new_loop(ev, call, kind);
	const struct expr *begin = lang_slot_expr(ev, call, 0, NULL), *end = begin;
	bool has_stop = lang_is_given(call, 1);

	if (!begin || (has_stop && !arg_expr(ev, call, 1, &end)) ||
	    (has_step && !arg_int(ev, call, 2, &loop->step)))
		return NULL;
	if (loop->step == 0 || loop->step == INT64_MIN) {
		ev_error(ev, DIAG_E0312, call->slot[2]->span, "the step of a loop is 0");
		return NULL;
	}
	if (!has_stop)
		begin = expr_int(ev->pool, 0);
	if (!dtype_is_int(begin->type) || !dtype_is_int(end->type)) {
		ev_error(ev, DIAG_E0312, call->span, "a loop's bounds must be integers");
		return NULL;
	}
	loop->begin[0] = has_stop ? begin : NULL;
	return loop_extent(ev, loop, trip_count(ev, begin, end, loop->step),
	                   call->slot[has_stop ? 1 : 0]->span)
	           ? loop
	           : NULL;
}

/* An error when there is no loop. */
static struct value loop_result(const struct loop_value *loop)
{
	return loop ? (struct value){ .kind = V_LOOP, .as.loop = loop } : VALUE_ERROR;
}

/*
 * T.Pipelined(start, stop=None, num_stages=0, ...). A schedule by hand (order, stage, sync, group)
 * changes when things run, never what they give: the scheduler makes its own.
 */
static struct value t_pipelined(struct eval *ev, struct call *call)
{
	struct loop_value *loop = one_loop(ev, call, LOOP_PIPELINED, false);

	if (!loop || !arg_int(ev, call, 2, &loop->num_stages))
		return VALUE_ERROR;
	if (loop->num_stages < 0 || loop->num_stages > 64)
		return ev_error(ev, DIAG_E0312, call->slot[2]->span, "num_stages is 0 to 64, not %lld",
		                (long long)loop->num_stages);
	if (loop->num_stages == 0)
		loop->kind = LOOP_SERIAL;
	return loop_result(loop);
}

static struct value t_serial(struct eval *ev, struct call *call)
{
	return loop_result(one_loop(ev, call, LOOP_SERIAL, true));
}

static struct value t_unroll(struct eval *ev, struct call *call)
{
	return loop_result(one_loop(ev, call, LOOP_UNROLL, true));
}

static struct value t_vectorized(struct eval *ev, struct call *call)
{
	return loop_result(one_loop(ev, call, LOOP_VECTORIZED, false));
}

/* Thread and block indices */

/* Index of the thread or block in one dimension. */
static struct value binding_of(struct eval *ev, struct call *call, bool is_thread)
{
	struct trace *trace = trace_require(ev, call->span, call->name);
	int64_t dim = 0;

	if (!trace || !arg_int(ev, call, 0, &dim))
		return VALUE_ERROR;
	if (dim < 0 || dim > 2)
		return ev_error(ev, DIAG_E0215, call->slot[0]->span, "dimensions are 0, 1 and 2");
	return device_value(
		expr_of_var(ev->pool, is_thread ? trace->launch->thread[dim] : trace->launch->block[dim]));
}

static struct value t_get_thread_binding(struct eval *ev, struct call *call)
{
	return binding_of(ev, call, true);
}

static struct value t_get_block_binding(struct eval *ev, struct call *call)
{
	return binding_of(ev, call, false);
}

/* T.dtype("float16") */
static struct value t_dtype(struct eval *ev, struct call *call)
{
	struct dtype type = DTYPE_F32;

	if (call->slot[0]->value.kind == V_OPAQUE)
		return call->slot[0]->value;
	return arg_dtype(ev, call, 0, &type) ? (struct value){ .kind = V_DTYPE, .as.dtype = type }
	                                     : VALUE_ERROR;
}

static const struct builtin rows[] = {
#define T "tilelang.language"
	{ T, "Tensor", "shape dtype? data? strides? elem_offset? scope?", t_tensor },
	{ T, "Buffer", "shape dtype? data? strides? elem_offset? scope?", t_tensor },
	{ T, "StridedTensor", "shape strides dtype?", t_tensor },
	{ T, "dynamic", "name dtype?", t_dynamic },
	{ T, "symbolic", "name dtype?", t_dynamic },
	{ T, "Var", "name dtype?", t_dynamic },
	{ T, "SharedBuffer", "shape dtype?", t_tensor },
	{ T, "FragmentBuffer", "shape dtype?", t_tensor },
	{ T, "dtype", "type", t_dtype },
	{ T, "alloc_shared", "shape dtype? scope?", t_alloc_shared },
	{ T, "alloc_fragment", "shape dtype? scope?", t_alloc_fragment },
	{ T, "alloc_local", "shape dtype? scope?", t_alloc_local },
	{ T, "alloc_var", "dtype init_or_scope? scope? init?", t_alloc_var },
	{ T, "Kernel", "* threads prelude", t_kernel },
	{ T, "Parallel", "* coalesced_width loop_layout prefer_async annotations", t_parallel },
	{ T, "parallel", "* coalesced_width loop_layout prefer_async annotations", t_parallel },
	{ T, "Pipelined", "start stop? num_stages? order? stage? sync? group? annotations?",
	  t_pipelined },
	{ T, "serial", "start stop? step? | annotations", t_serial },
	{ T, "Serial", "start stop? step? | annotations", t_serial },
	{ T, "unroll", "start stop? step? | explicit unroll_factor annotations", t_unroll },
	{ T, "Unroll", "start stop? step? | explicit unroll_factor annotations", t_unroll },
	{ T, "Vectorized", "start stop? | annotations", t_vectorized },
	{ T, "vectorized", "start stop? | annotations", t_vectorized },
	{ T, "get_thread_binding", "dim?", t_get_thread_binding },
	{ T, "get_block_binding", "dim?", t_get_block_binding },
#undef T
};

const struct builtin_table lang_shapes = { rows, sizeof(rows) / sizeof(*rows) };
