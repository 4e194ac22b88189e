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
 * The file is evaluated once: T.const looks its sizes up in the shapes of the tensors by the
 * annotations' text, so no second pass over the body is needed.
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
	for (uint32_t i = 0; i < d->body.n; i++) {
		const struct ast_stmt *st = d->body.p[i];

		if (st->kind == ST_ANNOTATED && !st->as.annotated.value &&
		    st->as.annotated.target->kind == EX_NAME && st->as.annotated.target->as.name == name)
			return st->as.annotated.annotation;
	}
	return NULL;
}

/* Tensors are no host parameters: they need no value. */
bool eager_is_tensor(const struct eval *ev, const struct ast_stmt *def, sym_t name)
{
	return tensor_annotation(ev, def, name) != NULL;
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
	if (shape && shape->kind == EX_TUPLE && shape->as.items.n == 2 &&
	    annotation->kind == EX_SUBSCRIPT)
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

/* A size that T.const names, as a parameter; its value_json is NULL while it is missing. */
static struct host_param size_param(struct eval *ev, const struct kernel *kernel, struct str text,
                                    struct span span)
{
	sym_t name = intern(ev->cx->names, text);
	struct host_param param = { .name = sym_text(ev->cx->names, name),
		                        .required = true,
		                        .span = span };
	const struct frontend_set *set = find_set_named(ev, param.name);
	struct value value = VALUE_INT(-1);

	if (set)
		value = set_value(ev, set);
	else
		value.as.integer = const_from_tensors(ev, kernel, name);
	param.origin = set ? PARAM_SET : PARAM_TENSOR;
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

/* Remembers the shapes of the tensors that a call passes. */
void eager_note_tensors(struct eval *ev, const struct function *function, struct frame *frame)
{
	struct kernel *kernel = function->kernel;

	assert(kernel && kernel->form == KERNEL_EAGER);
	kernel->tensors.n = 0;
	for (uint32_t i = 0; i < function->params->n; i++) {
		sym_t name = function->params->p[i].name;
		const struct binding *binding = frame_find(frame, name);

		if (binding && binding->value.kind == V_OPAQUE && binding->value.as.opaque->dims)
			vec_push(ev->cx->arena, &kernel->tensors,
			         (struct tensor_arg){ name, *binding->value.as.opaque->dims });
	}
}

static const struct builtin rows[] = {
#define T "tilelang.language"
	{ T, "const", "names dtype?", t_const },    { T, "empty", "* dtype", t_empty },
#undef T
	{ "torch", "randn", "**", torch_tensor },   { "torch", "rand", "**", torch_tensor },
	{ "torch", "randint", "**", torch_tensor }, { "torch", "empty", "**", torch_tensor },
	{ "torch", "zeros", "**", torch_tensor },   { "torch", "ones", "**", torch_tensor },
};

const struct builtin_table lang_eager = { rows, sizeof(rows) / sizeof(*rows) };
