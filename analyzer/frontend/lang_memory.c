/*
 * Memory by other names: buffers in the memory of others (T.reshape, T.view), behind pointers
 * (T.match_buffer, T.make_tensor), in global memory (T.alloc_global), and allocations that name
 * their memory as a text (T.alloc_buffer, T.decl_buffer).
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* A buffer of that type, whose extents may be symbols. */
static struct buffer *typed_buffer(struct eval *ev, const struct call *call, enum scope scope,
                                   const struct tensor_type *type)
{
	struct buffer *buffer = tile_new_buffer(ev->trace->program, scope, 0, type->type, call->span);

	buffer->rank = type->rank;
	memcpy(buffer->shape, type->shape, sizeof(buffer->shape));
	if (type->has_strides)
		memcpy(buffer->strides, type->strides, sizeof(buffer->strides));
	return buffer;
}

/* The same as memory of the launch in progress; NULL after an error. */
static struct buffer *new_buffer(struct eval *ev, const struct call *call, enum scope scope,
                                 const struct tensor_type *type)
{
	struct buffer *buffer;

	/* Global memory belongs to no launch: it may stand in front of them. */
	if ((scope != SCOPE_GLOBAL || !ev->trace) && !trace_require(ev, call->span, call->name))
		return NULL;
	buffer = typed_buffer(ev, call, scope, type);
	buffer->launch = ev->trace->launch ? ev->trace->launch->index : 0;
	return buffer;
}

static struct value buffer_value(struct buffer *buffer)
{
	return buffer ? (struct value){ .kind = V_BUFFER, .as.buffer = buffer } : VALUE_ERROR;
}

/* Where a call has the parts of a tensor's type. */
struct type_slots {
	uint32_t shape, dtype, strides;
};

/* shape, dtype and strides of a call; slots that are absent leave the defaults. */
static bool type_of_call(struct eval *ev, const struct call *call, struct type_slots at,
                         struct tensor_type *type)
{
	uint32_t shape = at.shape, dtype = at.dtype, strides = at.strides;

	*type = (struct tensor_type){ .type = DTYPE_F32 };
	if (!arg_dtype(ev, call, dtype, &type->type))
		return false;
	if (lang_is_given(call, strides)) {
		if (!lang_shape(ev, call->slot[strides]->value, call->slot[strides]->span, type))
			return false;
		memcpy(type->strides, type->shape, sizeof(type->strides));
		type->has_strides = type->rank > 0;
	}
	return lang_shape(ev, call->slot[shape]->value, call->slot[shape]->span, type);
}

/* A workspace in global memory: an argument that the caller does not give. */
static struct value global_workspace(struct eval *ev, const struct call *call,
                                     const struct tensor_type *type)
{
	struct buffer *buffer;

	if (!ev->trace)
		return ev_error(ev, DIAG_E0213, call->span, "%s stands outside a kernel", call->name);
	buffer = typed_buffer(ev, call, SCOPE_GLOBAL, type);
	buffer->is_param = true;
	vec_push(ev->cx->arena, &ev->trace->outputs, buffer);
	return buffer_value(buffer);
}

/* T.alloc_global(shape, dtype) */
static struct value t_alloc_global(struct eval *ev, struct call *call)
{
	struct tensor_type type;

	if (!type_of_call(ev, call, (struct type_slots){ 0, 1, 3 }, &type))
		return VALUE_ERROR;
	return global_workspace(ev, call, &type);
}

/* Aliases */

/* Bits of a whole shape; -1 when it is symbolic. */
static int64_t bits_of(const struct tensor_type *type)
{
	int64_t n = dtype_bits(type->type), extent;

	for (uint32_t i = 0; i < type->rank; i++) {
		if (!expr_is_int(type->shape[i], &extent) || __builtin_mul_overflow(n, extent, &n))
			return -1;
	}
	return n;
}

struct value lang_alias(struct eval *ev, const struct call *call, struct buffer *buffer,
                        const struct tensor_type *type)
{
	struct tensor_type old = { .rank = buffer->rank, .type = buffer->type };
	struct buffer *alias;

	memcpy(old.shape, buffer->shape, sizeof(old.shape));
	if (bits_of(&old) >= 0 && bits_of(type) >= 0 && bits_of(&old) != bits_of(type)) {
		trace_use(ev, buffer);
		ev_error(ev, DIAG_E0311, call->span, "%s has another size than this shape",
		         sym_text(ev->cx->names, buffer->name));
		ev_note(ev, buffer->span, "it is declared here");
		return VALUE_ERROR;
	}
	trace_use(ev, buffer);
	alias = new_buffer(ev, call, buffer->scope, type);
	if (alias)
		alias->alias_of = buffer->alias_of ? buffer->alias_of : buffer;
	return buffer_value(alias);
}

/* T.reshape(src, shape), T.view(src, shape=None, dtype=None) */
static struct value t_view(struct eval *ev, struct call *call)
{
	struct tensor_type type = { .rank = 0 };
	struct value src = call->slot[0]->value;
	bool has_shape = lang_is_given(call, 1);

	if (src.kind == V_REGION)
		src = (struct value){ .kind = V_BUFFER,
			                  .as.buffer = (struct buffer *)(uintptr_t)src.as.region->buffer };
	if (src.kind == V_OPAQUE)
		return ev_unsettled(ev, src, call->slot[0]->span, "this operand");
	if (src.kind != V_BUFFER)
		return ev_error(ev, DIAG_E0202, call->slot[0]->span, "%s takes a buffer, not %s",
		                call->name, value_type_text(src));
	type.type = src.as.buffer->type;
	type.rank = src.as.buffer->rank;
	memcpy(type.shape, src.as.buffer->shape, sizeof(type.shape));
	if (!arg_dtype(ev, call, 2, &type.type) ||
	    (has_shape && !lang_shape(ev, call->slot[1]->value, call->slot[1]->span, &type)))
		return VALUE_ERROR;
	return lang_alias(ev, call, src.as.buffer, &type);
}

/* Pointers */

/* Is the value a pointer argument of the kernel? */
static const struct var *pointer_param(struct value value)
{
	if (value.kind != V_EXPR || value.as.expr->kind != EXPR_VAR)
		return NULL;
	return value.as.expr->as.var->kind == VAR_PARAM && value.as.expr->type.kind == TYPE_HANDLE
	           ? value.as.expr->as.var
	           : NULL;
}

/* A scalar argument, once. */
static void note_scalar(struct eval *ev, const struct var *var)
{
	struct tile_program *program = ev->trace->program;

	for (uint32_t i = 0; i < program->scalars.n; i++) {
		if (program->scalars.p[i] == var)
			return;
	}
	vec_push(ev->cx->arena, &program->scalars, var);
}

/* Symbols of the shape become arguments. */
static void find_symbol(void *user, const struct expr *e)
{
	if (e->kind == EXPR_VAR && e->as.var->kind == VAR_SYMBOL)
		note_scalar(user, e->as.var);
}

static void note_symbols(struct eval *ev, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < buffer->rank; i++)
		expr_walk(buffer->shape[i], find_symbol, ev);
}

/* T.match_buffer(param, shape, dtype, ...): the pointer argument is this tensor. */
static struct value t_match_buffer(struct eval *ev, struct call *call)
{
	const struct var *param = pointer_param(call->slot[0]->value);
	struct tile_program *program = ev->trace ? ev->trace->program : NULL;
	struct tensor_type type;
	struct buffer *buffer;
	uint32_t n = 0;

	if (!program)
		return ev_error(ev, DIAG_E0213, call->span, "%s stands outside a kernel", call->name);
	if (!call->slot[1] || !type_of_call(ev, call, (struct type_slots){ 1, 2, 4 }, &type))
		return VALUE_ERROR;
	if (call->slot[0]->value.kind == V_BUFFER)
		return lang_alias(ev, call, call->slot[0]->value.as.buffer, &type);
	if (!param)
		return ev_error(ev, DIAG_E0202, call->slot[0]->span,
		                "%s takes a T.handle parameter, not %s", call->name,
		                value_type_text(call->slot[0]->value));
	buffer = typed_buffer(ev, call, SCOPE_GLOBAL, &type);
	buffer->is_param = true;
	for (uint32_t i = 0; i < program->scalars.n; i++) {
		if (program->scalars.p[i] != param)
			program->scalars.p[n++] = program->scalars.p[i];
	}
	program->scalars.n = n;
	vec_push(ev->cx->arena, &program->params, buffer);
	note_symbols(ev, buffer);
	return buffer_value(buffer);
}

/* T.make_tensor(ptr, shape, dtype, strides): a tensor at an address. */
static struct value t_make_tensor(struct eval *ev, struct call *call)
{
	const struct expr *base = lang_call_arg(ev, call->slot[0]->value, call->slot[0]->span);
	struct tensor_type type;
	struct buffer *buffer;

	if (!base || !type_of_call(ev, call, (struct type_slots){ 1, 2, 3 }, &type))
		return VALUE_ERROR;
	buffer = new_buffer(ev, call, SCOPE_GLOBAL, &type);
	if (!buffer)
		return VALUE_ERROR;
	buffer->base = base;
	if (base->kind == EXPR_VAR && base->as.var->kind == VAR_PARAM)
		note_scalar(ev, base->as.var);
	return buffer_value(buffer);
}

/* Memory by its name */

bool lang_scope(struct str text, enum scope *scope)
{
	static const struct {
		const char *name;
		enum scope scope;
	} scopes[] = {
		{ "global", SCOPE_GLOBAL },
		{ "shared", SCOPE_SHARED },
		{ "shared.dyn", SCOPE_SHARED },
		{ "shared.barrier", SCOPE_SHARED },
		{ "local", SCOPE_LOCAL },
		{ "local.fragment", SCOPE_FRAGMENT },
		{ "local.var", SCOPE_LOCAL },
		{ "local.descriptor", SCOPE_LOCAL },
		{ "local.descriptor.wgmma", SCOPE_LOCAL },
	};

	for (size_t i = 0; i < sizeof(scopes) / sizeof(*scopes); i++) {
		*scope = scopes[i].scope;
		if (str_is(text, scopes[i].name))
			return true;
	}
	return false;
}

struct buffer *lang_data(const struct arg *data)
{
	const struct expr *e;

	if (!data)
		return NULL;
	if (data->value.kind == V_BUFFER)
		return data->value.as.buffer;
	if (data->value.kind != V_EXPR)
		return NULL;
	e = data->value.as.expr;
	if (e->kind == EXPR_CALL && e->n_args == 1 && e->args[0]->kind == EXPR_LOAD)
		return (struct buffer *)(uintptr_t)e->args[0]->as.buffer;
	return NULL;
}

/* T.alloc_buffer, T.decl_buffer, T.sblock_alloc_buffer(shape, dtype, data, strides, elem_offset,
 * scope, ...) */
static struct value t_alloc_buffer(struct eval *ev, struct call *call)
{
	struct buffer *data = lang_data(call->slot[2]), *buffer;
	struct str text = str_of("global");
	struct tensor_type type;
	enum scope scope;

	if (!arg_str(ev, call, 5, &text) ||
	    !type_of_call(ev, call, (struct type_slots){ 0, 1, 3 }, &type))
		return VALUE_ERROR;
	if (!lang_scope(text, &scope))
		return ev_error(ev, DIAG_E0204, call->slot[5]->span,
		                "memory \"%.*s\" is known, but not supported yet", STR_ARGS(text));
	if (data) {
		trace_use(ev, data);
		buffer = new_buffer(ev, call, data->scope == SCOPE_VAR ? SCOPE_LOCAL : data->scope, &type);
		if (buffer)
			buffer->alias_of = data->alias_of ? data->alias_of : data;
		return buffer_value(buffer);
	}
	if (call->slot[2] && call->slot[2]->value.kind == V_EXPR) {
		buffer = new_buffer(ev, call, SCOPE_GLOBAL, &type);
		if (buffer)
			buffer->base = call->slot[2]->value.as.expr;
		return buffer_value(buffer);
	}
	if (scope == SCOPE_GLOBAL)
		return global_workspace(ev, call, &type);
	return lang_new_buffer(ev, call, scope, &type);
}

/* T.alloc_wgmma_desc() and its kin: a word that an instruction takes. */
static struct value t_alloc_descriptor(struct eval *ev, struct call *call)
{
	struct tensor_type type = { .rank = 1, .type = DTYPE(TYPE_UINT, 64) };

	type.shape[0] = expr_int(ev->pool, 1);
	return lang_new_buffer(ev, call, SCOPE_LOCAL, &type);
}

static const struct builtin rows[] = {
#define T "tilelang.language"
#define BUFFER \
	"shape dtype? data? strides? elem_offset? scope? align? offset_factor? buffer_type? " \
	"axis_separators? annotations?"
	{ T, "alloc_global", "shape dtype? scope? strides?", t_alloc_global },
	{ T, "reshape", "src shape", t_view },
	{ T, "view", "src shape? dtype?", t_view },
	{ T, "match_buffer",
	  "param shape? dtype? data? strides? elem_offset? scope? align? offset_factor? buffer_type? "
	  "axis_separators?",
	  t_match_buffer },
	{ T, "make_tensor", "ptr shape dtype? strides?", t_make_tensor },
	{ T, "make_tensor_from_addr", "addr shape dtype? strides? storage_scope?", t_make_tensor },
	{ T, "alloc_buffer", BUFFER, t_alloc_buffer },
	{ T, "sblock_alloc_buffer", BUFFER, t_alloc_buffer },
	{ T, "decl_buffer", BUFFER, t_alloc_buffer },
	{ T, "alloc_wgmma_desc", "dtype?", t_alloc_descriptor },
#undef BUFFER
#undef T
};

const struct builtin_table lang_memory = { rows, sizeof(rows) / sizeof(*rows) };
