/*
 * Eager kernels: @tilelang.jit functions that open T.Kernel themselves.
 *
 *     @tilelang.jit
 *     def add(A, B, block=64):
 *         M, N = T.const("M, N")           sizes: from --set, --tensor, or a call's tensors
 *         A: T.Tensor((M, N), "float16")   types of the tensor arguments
 *         B: T.Tensor((M, N), "float16")
 *         C = T.empty((M, N), "float16")   an output: one more argument, behind the others
 *         with T.Kernel(...) as bx: ...
 *         return C
 *
 * Before the kernel is built, a probe runs its body up to the launch with unknown sizes as symbols:
 * where a tensor's annotation has such a symbol as an extent or a stride, the tensor's shape tells
 * the size. The same goes for k.compile(M=64), which names sizes directly.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* T.Tensor(...) or T.Tensor[...], by its spelling. */
static bool spells_tensor(const struct eval *ev, const struct ast_expr *e)
{
	const char *name;

	while (e->kind == EX_CALL || e->kind == EX_SUBSCRIPT)
		e = e->kind == EX_CALL ? e->as.call.callee : e->as.subscript.object;
	if (e->kind != EX_ATTRIBUTE)
		return false;
	name = sym_text(ev->cx->names, e->as.attribute.name);
	return strcmp(name, "Tensor") == 0 || strcmp(name, "StridedTensor") == 0 ||
	       strcmp(name, "Buffer") == 0;
}

/* The annotation `name: T.Tensor(...)` in the body, also in branches of it, or NULL. */
static const struct ast_expr *body_annotation(const struct ast_body *body, sym_t name)
{
	const struct ast_expr *found = NULL;

	for (uint32_t i = 0; i < body->n && !found; i++) {
		const struct ast_stmt *st = body->p[i];

		if (st->kind == ST_ANNOTATED && !st->as.annotated.value &&
		    st->as.annotated.target->kind == EX_NAME && st->as.annotated.target->as.name == name)
			found = st->as.annotated.annotation;
		for (uint32_t a = 0; st->kind == ST_IF && a < st->as.if_.arms.n && !found; a++)
			found = body_annotation(&st->as.if_.arms.p[a].body, name);
		if (st->kind == ST_IF && !found)
			found = body_annotation(&st->as.if_.otherwise, name);
	}
	return found;
}

/* The annotation that types a tensor argument, or NULL. */
static const struct ast_expr *tensor_annotation(const struct eval *ev, const struct ast_stmt *def,
                                                sym_t name)
{
	const struct ast_def *d = &def->as.def;

	for (uint32_t i = 0; i < d->params.n; i++) {
		const struct ast_param *param = &d->params.p[i];

		if (param->name == name && param->annotation && spells_tensor(ev, param->annotation))
			return param->annotation;
	}
	return body_annotation(&d->body, name);
}

/* Tensors are no host parameters: they need no value. */
bool eager_is_tensor(const struct eval *ev, const struct ast_stmt *def, sym_t name)
{
	return tensor_annotation(ev, def, name) != NULL;
}

/* A jit function with typed tensors is a kernel, even when a macro opens its launch. */
bool eager_has_tensors(const struct eval *ev, const struct ast_stmt *def)
{
	const struct ast_params *params = &def->as.def.params;

	for (uint32_t i = 0; i < params->n; i++) {
		const struct ast_expr *annotation = tensor_annotation(ev, def, params->p[i].name);

		if (annotation && spells_tensor(ev, annotation))
			return true;
	}
	return false;
}

/* Parses "1024x512:float16"; the type may be left out. */
static bool parse_tensor_spec(const char *text, struct tensor_dims *out)
{
	struct dtype type = DTYPE_F32;

	out->rank = 0;
	while (*text && *text != ':') {
		char *end;
		long long extent = strtoll(text, &end, 10);

		if (end == text || extent < 1 || out->rank == MAX_RANK)
			return false;
		out->extent[out->rank++] = extent;
		text = *end == 'x' ? end + 1 : end;
		if (*end && *end != 'x' && *end != ':')
			return false;
	}
	return out->rank > 0 && (*text != ':' || dtype_parse(str_of(text + 1), &type));
}

/* Every --tensor must be readable, used or not. */
bool eager_check_tensors(struct eval *ev)
{
	for (uint32_t i = 0; i < ev->options->tensors.n; i++) {
		const struct frontend_set *set = &ev->options->tensors.p[i];
		struct tensor_dims dims;

		if (parse_tensor_spec(set->value, &dims))
			continue;
		diag_report(&ev->cx->diags, DIAG_E0209, (struct span){ 0 },
		            "--tensor %s: %s is no tensor such as 1024x512:float16", set->name, set->value);
		return false;
	}
	return true;
}

/* Shape of a tensor argument from --tensor or from the call. */
static bool find_dims(struct eval *ev, const struct kernel *kernel, sym_t name,
                      struct tensor_dims *out)
{
	for (uint32_t i = 0; i < ev->options->tensors.n; i++) {
		if (strcmp(ev->options->tensors.p[i].name, sym_text(ev->cx->names, name)) == 0)
			return parse_tensor_spec(ev->options->tensors.p[i].value, out);
	}
	for (uint32_t i = 0; i < kernel->tensors.n; i++) {
		if (kernel->tensors.p[i].name == name) {
			*out = kernel->tensors.p[i].dims;
			return true;
		}
	}
	return false;
}

/* What the body's `name = [M, K]` before the launch binds the name to, else the name itself. */
static const struct ast_expr *named_shape(const struct ast_stmt *def, const struct ast_expr *shape)
{
	const struct ast_body *body = &def->as.def.body;

	for (uint32_t i = 0; shape->kind == EX_NAME && i < body->n; i++) {
		const struct ast_stmt *st = body->p[i];

		for (uint32_t j = 0; st->kind == ST_ASSIGN && j < st->as.assign.targets.n; j++) {
			const struct ast_expr *target = st->as.assign.targets.p[j];

			if (target->kind == EX_NAME && target->as.name == shape->as.name)
				return st->as.assign.value;
		}
	}
	return shape;
}

/* The extents that an annotation lists: the items of its first argument, or of T.Tensor[...]. */
static const struct ast_expr *annotated_shape(const struct ast_stmt *def,
                                              const struct ast_expr *annotation)
{
	const struct ast_expr *shape = NULL;

	if (annotation->kind == EX_CALL && annotation->as.call.args.n)
		shape = annotation->as.call.args.p[0].value;
	if (annotation->kind == EX_SUBSCRIPT)
		shape = annotation->as.subscript.index;
	if (shape && shape->kind == EX_TUPLE && shape->as.items.n &&
	    (shape->as.items.p[0]->kind == EX_TUPLE || shape->as.items.p[0]->kind == EX_LIST))
		shape = shape->as.items.p[0];
	shape = shape ? named_shape(def, shape) : NULL;
	return shape && (shape->kind == EX_TUPLE || shape->kind == EX_LIST) ? shape : NULL;
}

/* The size that a name of T.const stands for, read off the tensors' shapes; -1 when none tells. */
static int64_t const_from_tensors(struct eval *ev, const struct kernel *kernel, sym_t name)
{
	const struct ast_params *params = &kernel->def->as.def.params;

	for (uint32_t i = 0; i < params->n; i++) {
		const struct ast_expr *annotation = tensor_annotation(ev, kernel->def, params->p[i].name);
		const struct ast_expr *shape = annotation ? annotated_shape(kernel->def, annotation) : NULL;
		struct tensor_dims dims;

		if (!shape || !find_dims(ev, kernel, params->p[i].name, &dims) ||
		    dims.rank != shape->as.items.n)
			continue;
		for (uint32_t d = 0; d < dims.rank; d++) {
			if (shape->as.items.p[d]->kind == EX_NAME && shape->as.items.p[d]->as.name == name)
				return dims.extent[d];
		}
	}
	return -1;
}

/* The size that a probe or a call has found, or NULL. */
static struct known_size *find_size(const struct kernel *kernel, sym_t name)
{
	for (uint32_t i = 0; i < kernel->sizes.n; i++) {
		if (kernel->sizes.p[i].name == name)
			return &kernel->sizes.p[i];
	}
	return NULL;
}

/* A size that T.const names, as a parameter; its value_json is NULL while it is missing. */
static struct host_param size_param(struct eval *ev, const struct kernel *kernel, struct str text,
                                    struct span span)
{
	sym_t name = intern(ev->cx->names, text);
	struct host_param param = { .name = sym_text(ev->cx->names, name),
		                        .required = true,
		                        .span = span };
	const struct frontend_set *set = find_set_named(ev, param.name);
	const struct known_size *size = find_size(kernel, name);
	struct value value = VALUE_INT(-1);

	if (set)
		value = set_value(ev, set);
	else
		value.as.integer = size ? size->value : const_from_tensors(ev, kernel, name);
	param.origin = set ? PARAM_SET : size ? size->origin : PARAM_TENSOR;
	if (value.kind == V_INT && value.as.integer > 0)
		param.value_json = arena_printf(ev->cx->arena, "%lld", (long long)value.as.integer);
	return param;
}

/* The next word of a list such as "M, N"; false at its end. */
static bool next_size(struct str *rest, struct str *word)
{
	while (rest->n && (rest->p[0] == ',' || rest->p[0] == ' '))
		rest->p++, rest->n--;
	*word = (struct str){ rest->p, 0 };
	while (rest->n && rest->p[0] != ',' && rest->p[0] != ' ')
		rest->p++, rest->n--, word->n++;
	return word->n > 0;
}

/* The string of `... = T.const("M, N")`, or NULL. */
static const struct ast_expr *const_names(const struct eval *ev, const struct ast_stmt *st)
{
	const struct ast_expr *call = st->kind == ST_ASSIGN ? st->as.assign.value : NULL;

	if (!call || call->kind != EX_CALL || call->as.call.callee->kind != EX_ATTRIBUTE ||
	    call->as.call.args.n == 0)
		return NULL;
	if (strcmp(sym_text(ev->cx->names, call->as.call.callee->as.attribute.name), "const") != 0)
		return NULL;
	return call->as.call.args.p[0].value->kind == EX_STRING ? call->as.call.args.p[0].value : NULL;
}

/* For the list of what is missing: the body has not run, so its text has to tell. */
void eager_declare_sizes(struct eval *ev, struct kernel *kernel)
{
	const struct ast_body *body = &kernel->def->as.def.body;

	for (uint32_t i = 0; i < body->n; i++) {
		const struct ast_expr *names = const_names(ev, body->p[i]);
		struct str rest = names ? names->as.string : (struct str){ "", 0 }, word;

		while (next_size(&rest, &word)) {
			struct host_param param = size_param(ev, kernel, word, names->span);
			bool is_new = true;

			for (uint32_t j = 0; j < kernel->params.n; j++)
				is_new &= strcmp(kernel->params.p[j].name, param.name) != 0;
			if (is_new)
				vec_push(ev->cx->arena, &kernel->params, param);
		}
	}
}

/* The size as a value, noted among the kernel's parameters; V_ERROR while it is missing. */
static struct value const_value(struct eval *ev, struct str text, struct span span)
{
	struct trace *trace = ev->trace;
	struct host_param param = size_param(ev, trace->kernel, text, span);

	if (trace->is_probe && param.origin != PARAM_SET) {
		struct var *var =
			expr_new_var(ev->pool, VAR_SYMBOL, intern(ev->cx->names, text), DTYPE_I32);

		var->min = 1;
		var->max = INT32_MAX;
		return VALUE_EXPR(expr_of_var(ev->pool, var));
	}
	if (trace->is_probe)
		return VALUE_INT(strtoll(param.value_json, NULL, 10));
	vec_push(ev->cx->arena, &trace->kernel->params, param);
	vec_push(ev->cx->arena, &trace->program->host_params, param);
	trace->is_missing |= !param.value_json;
	return param.value_json ? VALUE_INT(strtoll(param.value_json, NULL, 10)) : VALUE_ERROR;
}

/* T.const("M, N"): the sizes in one tuple, or the one size. */
static struct value t_const(struct eval *ev, struct call *call)
{
	struct value sizes = value_sequence(ev->cx->arena, V_TUPLE);
	struct str text = { 0 }, word;

	if (!ev->trace)
		return ev_error(ev, DIAG_E0213, call->span, "T.const stands outside a kernel");
	if (!arg_str(ev, call, 0, &text))
		return VALUE_ERROR;
	while (next_size(&text, &word))
		vec_push(ev->cx->arena, sizes.as.sequence, const_value(ev, word, call->slot[0]->span));
	return sizes.as.sequence->n == 1 ? sizes.as.sequence->p[0] : sizes;
}

/* T.empty(*shape, dtype=float32): an output, which becomes the kernel's next argument. */
static struct value t_empty(struct eval *ev, struct call *call)
{
	struct value shape = value_sequence(ev->cx->arena, V_TUPLE);
	struct tensor_type tensor = { .type = DTYPE_F32 };
	struct buffer *buffer;
	uint32_t n = call->n_rest;

	if (!ev->trace)
		return ev_error(ev, DIAG_E0213, call->span, "T.empty stands outside a kernel");
	if (n == 2 && !call->slot[0] && value_is_sequence(call->rest[0].value) &&
	    value_dtype(call->rest[1].value, &tensor.type))
		n = 1; /* T.empty((M, N), dtype) */
	if (!arg_dtype(ev, call, 0, &tensor.type))
		return VALUE_ERROR;
	for (uint32_t i = 0; i < n; i++)
		vec_push(ev->cx->arena, shape.as.sequence, call->rest[i].value);
	if (n == 1 && value_is_sequence(call->rest[0].value))
		shape = call->rest[0].value;
	if (!lang_shape(ev, shape, call->span, &tensor))
		return VALUE_ERROR;
	buffer = tile_new_buffer(ev->trace->program, SCOPE_GLOBAL, 0, tensor.type, call->span);
	buffer->rank = tensor.rank;
	buffer->is_param = true;
	memcpy(buffer->shape, tensor.shape, sizeof(buffer->shape));
	vec_push(ev->cx->arena, &ev->trace->outputs, buffer);
	return (struct value){ .kind = V_BUFFER, .as.buffer = buffer };
}

/* torch.randn(M, K, ...), torch.empty((M, K), ...): unknown, but of a known shape. */
static struct value torch_tensor(struct eval *ev, struct call *call)
{
	struct value result = ev_opaque(ev, call->span, NULL);
	struct opaque *opaque = (struct opaque *)(uintptr_t)result.as.opaque;
	struct tensor_dims *dims = arena_new(ev->cx->arena, struct tensor_dims);
	struct sequence items = { 0 };

	for (uint32_t i = 0; i < call->args.n && !call->args.p[i].name; i++)
		vec_push(ev->cx->arena, &items, call->args.p[i].value);
	for (uint32_t i = 0; i < items.n;
	     i++) { /* the shape may follow other arguments, as in randint(low, high, shape) */
		if (value_is_sequence(items.p[i])) {
			items = *items.p[i].as.sequence;
			break;
		}
	}
	for (uint32_t i = 0; i < items.n; i++) {
		if (dims->rank == MAX_RANK || !value_int(items.p[i], &dims->extent[dims->rank]) ||
		    dims->extent[dims->rank] < 1)
			return result;
		dims->rank++;
	}
	if (dims->rank)
		opaque->dims = dims;
	return result;
}

/* Extents of a tensor that a call passes; false when they are not known. */
static bool passed_dims(const struct value *value, struct tensor_dims *dims)
{
	if (value->kind == V_OPAQUE && value->as.opaque->dims) {
		*dims = *value->as.opaque->dims;
		return true;
	}
	if (value->kind != V_TENSOR)
		return false;
	dims->rank = value->as.tensor->rank;
	for (uint32_t i = 0; i < dims->rank; i++) {
		if (!expr_is_int(value->as.tensor->shape[i], &dims->extent[i]))
			return false;
	}
	return true;
}

/* Remembers the shapes of the tensors that a call passes. */
void eager_note_tensors(struct eval *ev, const struct function *function, struct frame *frame)
{
	struct kernel *kernel = function->kernel;

	assert(kernel && kernel->form == KERNEL_EAGER);
	kernel->tensors.n = 0;
	for (uint32_t i = 0; i < function->params->n; i++) {
		sym_t name = function->params->p[i].name;
		const struct binding *binding = frame_find(frame, name);

		struct tensor_arg tensor = { .name = name };

		if (binding && passed_dims(&binding->value, &tensor.dims))
			vec_push(ev->cx->arena, &kernel->tensors, tensor);
	}
}

/* The probe */

/* One extent or stride that is a symbol and nothing else. */
static void note_size(struct eval *ev, const struct expr *e, int64_t value)
{
	struct kernel *kernel = ev->trace->kernel;
	struct known_size *known;

	if (e->kind != EXPR_VAR || e->as.var->kind != VAR_SYMBOL)
		return;
	known = find_size(kernel, e->as.var->name);
	if (known && known->origin == PARAM_CALL)
		*known = (struct known_size){ known->name, value, PARAM_TENSOR };
	if (!known)
		vec_push(ev->cx->arena, &kernel->sizes,
		         (struct known_size){ e->as.var->name, value, PARAM_TENSOR });
}

/* Strides are those of a dense tensor. */
void eager_note_sizes(struct eval *ev, sym_t name, const struct tensor_type *type)
{
	struct tensor_dims dims;
	int64_t stride = 1;

	if (!find_dims(ev, ev->trace->kernel, name, &dims) || dims.rank != type->rank)
		return;
	for (uint32_t i = dims.rank; i-- > 0;) {
		note_size(ev, type->shape[i], dims.extent[i]);
		if (type->has_strides)
			note_size(ev, type->strides[i], stride);
		if (__builtin_mul_overflow(stride, dims.extent[i], &stride))
			return;
	}
}

/* Does a statement of the body name sizes? */
static bool has_sizes(const struct eval *ev, const struct ast_body *body)
{
	for (uint32_t i = 0; i < body->n; i++) {
		if (const_names(ev, body->p[i]))
			return true;
	}
	return false;
}

/*
 * Runs the statements in front of the launch in a trace of its own, which is thrown away with all
 * its messages: the real run repeats them.
 */
void eager_probe(struct eval *ev, const struct function *function, const struct frame *frame)
{
	struct trace trace = { .kernel = function->kernel, .is_probe = true };
	const struct ast_body *body = &function->def->as.def.body;
	struct frame *copy = new_frame(ev, frame->parent, function);
	struct diag_list diags = ev->cx->diags;
	bool was_strict = ev->is_strict;
	struct value result;

	assert(!ev->trace);
	if (!has_sizes(ev, body))
		return;
	for (uint32_t i = 0; i < frame->names.n; i++)
		bind_name(ev, copy, (sym_t)frame->names.entries[i].key,
		          ((struct binding *)frame->names.entries[i].value.pointer)->value);
	trace.program = tile_new(ev->cx, ev->pool);
	copy->is_traced = true;
	ev->cx->diags = (struct diag_list){ .arena = ev->cx->arena };
	ev->trace = &trace;
	ev->is_strict = true;
	for (uint32_t i = 0; i < body->n && body->p[i]->kind != ST_WITH; i++) {
		struct ast_stmt *st = body->p[i];

		if (exec_body(ev, copy, &(struct ast_body){ &st, 1, 1 }, &result) == FLOW_RETURN)
			break;
	}
	ev->trace = NULL;
	ev->is_strict = was_strict;
	if (!ev->is_fatal)
		ev->cx->diags = diags;
}

/* Does the call's keyword name a parameter of the function? */
static bool names_param(const struct function *function, sym_t name)
{
	for (uint32_t i = 0; i < function->params->n; i++) {
		if (function->params->p[i].name == name)
			return true;
	}
	return false;
}

/* k.compile(M=64, block=32): a call, in which keywords may name sizes of T.const. */
static struct value f_compile(struct eval *ev, struct call *call)
{
	const struct function *function = call->self.as.function;
	struct call inner = { .span = call->span,
		                  .callee_span = call->callee_span,
		                  .name = call->name,
		                  .frame = call->frame };

	for (uint32_t i = 0; i < call->args.n; i++) {
		const struct arg *arg = &call->args.p[i];
		int64_t size;

		if (!arg->name || !function->kernel || names_param(function, arg->name))
			vec_push(ev->cx->arena, &inner.args, *arg);
		else if (value_int(arg->value, &size) && !find_size(function->kernel, arg->name))
			vec_push(ev->cx->arena, &function->kernel->sizes,
			         (struct known_size){ arg->name, size, PARAM_CALL });
	}
	return call_value(ev, call->self, &inner);
}

static const struct builtin rows[] = {
#define T "tilelang.language"
	{ T, "const", "names dtype?", t_const },    { T, "empty", "* dtype", t_empty },
#undef T
	{ "function", "compile", "**", f_compile }, { "function", "get_tir", "**", f_compile },
	{ "torch", "randn", "**", torch_tensor },   { "torch", "rand", "**", torch_tensor },
	{ "torch", "randint", "**", torch_tensor }, { "torch", "empty", "**", torch_tensor },
	{ "torch", "zeros", "**", torch_tensor },   { "torch", "ones", "**", torch_tensor },
};

const struct builtin_table lang_eager = { rows, sizeof(rows) / sizeof(*rows) };
