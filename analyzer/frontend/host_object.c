/*
 * Attributes and subscripts of host values: what stands behind a dot or in brackets.
 *
 *     T.copy              a builtin of the module's table
 *     T.float16.bits      an attribute of an element type
 *     A.shape[0]          an extent of a tensor, known or symbolic
 *     "a,b".split(",")    a method of the type's table
 *     torch.cuda          unknown, and says so when it matters
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* The method with its object, ready to be called. */
static struct value method_of(struct eval *ev, struct value self, const struct builtin *builtin)
{
	struct method *method = arena_new(ev->cx->arena, struct method);

	assert(builtin->handler);
	method->self = arena_new(ev->cx->arena, struct value);
	*method->self = self;
	method->builtin = builtin;
	return (struct value){ .kind = V_METHOD, .as.method = method };
}

/* Modules whose names are looked up in tables; `torch` has element types, all else in it is
 * unknown. */
static bool is_known_module(const char *path)
{
	static const char *const known[] = {
		"tilelang",
		"tilelang.language",
		"tilelang.math",
		"tilelang.language.GemmWarpPolicy",
		"tilelang.utils",
		"tilelang.layout",
		"math",
		"itertools",
		"functools",
		"torch",
		"tilelang.autotuner",
		"tilelang.carver",
		"tilelang.carver.arch",
		"tilelang.carver.arch.driver",
		"tilelang.utils.target",
		"torch.cuda",
		"torch.version",
		"tvm",
		"tvm.te",
		"tvm.tirx",
		"tvm.tl",
		"tilelang.jit",
		"tilelang.PassConfigKey",
		"tilelang.tools",
		"tilelang.tools.cuda",
		"tilelang.tools.cuda.iket",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(known[i], path) == 0)
			return true;
	}
	return false;
}

/* T.GemmWarpPolicy.Square and its kin. */
static struct value policy_attribute(struct eval *ev, const char *text, struct span span)
{
	for (int policy = POLICY_SQUARE; policy <= POLICY_FULL_COL; policy++) {
		if (strcmp(gemm_policy_text((enum gemm_policy)policy), text) == 0)
			return (struct value){ .kind = V_POLICY, .as.integer = policy };
	}
	return ev_error(ev, DIAG_E0203, span,
	                "T.GemmWarpPolicy has Square, FullRow and FullCol, not %s", text);
}

/* PassConfigKey.TL_DISABLE_TMA_LOWER is the string "tl.disable_tma_lower". */
static struct value pass_config_key(struct eval *ev, const char *text)
{
	struct value key = value_text(ev->cx->arena, text, strlen(text));
	char *p = (char *)(uintptr_t)key.as.string.p;
	bool had_dot = false;

	for (uint32_t i = 0; i < key.as.string.n; i++) {
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] = (char)(p[i] - 'A' + 'a');
		if (p[i] == '_' && !had_dot) {
			p[i] = '.';
			had_dot = true;
		}
	}
	return key;
}

/* What TVM has under the name that TileLang uses too: tirx.max, te.var. */
static const struct builtin *tvm_builtin(struct eval *ev, const char *path, sym_t name)
{
	if (strcmp(path, "tvm.te") == 0 && strcmp(sym_text(ev->cx->names, name), "var") == 0)
		name = intern_text(ev->cx->names, "dynamic");
	else if (strcmp(path, "tvm.tirx") != 0)
		return NULL;
	return find_builtin(ev, "tilelang.language", name);
}

/*
 * Tables first, then constants, types of torch, and modules inside the module; all else is
 * unknown.
 */
static struct value module_attribute(struct eval *ev, sym_t module, sym_t name, struct span span)
{
	const char *path = sym_text(ev->cx->names, module), *text = sym_text(ev->cx->names, name), *sub;
	const struct builtin *builtin = find_builtin(ev, path, name);
	struct dtype type;

	if (builtin)
		return (struct value){ .kind = V_BUILTIN, .as.builtin = builtin };
	if (strcmp(path, "tilelang.language") == 0)
		return lang_attribute(ev, name, span);
	if (strcmp(path, "tilelang.language.GemmWarpPolicy") == 0)
		return policy_attribute(ev, text, span);
	if (strcmp(path, "tilelang.PassConfigKey") == 0)
		return pass_config_key(ev, text);
	if (strcmp(path, "math") == 0 && strcmp(text, "pi") == 0)
		return VALUE_FLOAT(3.141592653589793);
	if (strcmp(path, "math") == 0 && strcmp(text, "e") == 0)
		return VALUE_FLOAT(2.718281828459045);
	if (strcmp(path, "math") == 0 && strcmp(text, "inf") == 0)
		return VALUE_FLOAT((double)__builtin_inff());
	if (strcmp(path, "torch") == 0 && strcmp(text, "float8_e4m3fn") != 0 &&
	    dtype_parse(str_of(text), &type))
		return (struct value){ .kind = V_DTYPE, .as.dtype = type };
	if (strcmp(path, "torch") == 0 &&
	    dtype_parse(str_of(strcmp(text, "float8_e4m3fn") == 0 ? "float8_e4m3" : text), &type))
		return (struct value){ .kind = V_DTYPE, .as.dtype = type };
	if (strcmp(path, "torch.version") == 0 && strcmp(text, "hip") == 0)
		return VALUE_NONE;
	if (find_builtin(ev, "*", name))
		return (struct value){ .kind = V_BUILTIN, .as.builtin = find_builtin(ev, "*", name) };
	builtin = tvm_builtin(ev, path, name);
	if (builtin)
		return (struct value){ .kind = V_BUILTIN, .as.builtin = builtin };
	sub = module_alias(arena_printf(ev->cx->arena, "%s.%s", path, text));
	if (is_known_module(sub))
		return (struct value){ .kind = V_MODULE, .as.module = intern_text(ev->cx->names, sub) };
	return ev_opaque(ev, span, sub);
}

/* shape, dtype, ndim and name of a buffer; V_ERROR when it has no such attribute. */
static struct value buffer_attribute(struct eval *ev, const struct buffer *buffer, const char *text)
{
	struct value shape;

	if (strcmp(text, "dtype") == 0)
		return (struct value){ .kind = V_DTYPE, .as.dtype = buffer->type };
	if (strcmp(text, "data") == 0)
		return (struct value){ .kind = V_BUFFER, .as.buffer = (struct buffer *)(uintptr_t)buffer };
	if (strcmp(text, "ndim") == 0)
		return VALUE_INT(buffer->rank);
	if (strcmp(text, "name") == 0)
		return VALUE_STR(str_of(sym_text(ev->cx->names, buffer->name)));
	if (strcmp(text, "data") == 0 && buffer->scope != SCOPE_VAR)
		return VALUE_EXPR(lang_call_arg(
			ev, (struct value){ .kind = V_BUFFER, .as.buffer = (struct buffer *)(uintptr_t)buffer },
			(struct span){ 0 }));
	if (strcmp(text, "shape") != 0)
		return VALUE_ERROR;
	shape = value_sequence(ev->cx->arena, V_TUPLE);
	for (uint32_t i = 0; i < buffer->rank; i++)
		vec_push(ev->cx->arena, shape.as.sequence, device_value(buffer->shape[i]));
	return shape;
}

/* The same of a tensor type. */
static struct value tensor_attribute(struct eval *ev, const struct tensor_type *tensor,
                                     const char *text)
{
	struct value shape;

	if (strcmp(text, "dtype") == 0)
		return (struct value){ .kind = V_DTYPE, .as.dtype = tensor->type };
	if (strcmp(text, "shape") != 0)
		return VALUE_ERROR;
	shape = value_sequence(ev->cx->arena, V_TUPLE);
	for (uint32_t i = 0; i < tensor->rank; i++)
		vec_push(ev->cx->arena, shape.as.sequence, device_value(tensor->shape[i]));
	return shape;
}

/* bits, itemsize, lanes and name of an element type. */
static struct value dtype_attribute(struct eval *ev, struct dtype type, const char *text)
{
	char name[32];

	if (strcmp(text, "bits") == 0)
		return VALUE_INT(dtype_bits(type));
	if (strcmp(text, "itemsize") == 0 || strcmp(text, "bytes") == 0)
		return VALUE_INT((dtype_bits(type) + 7) / 8);
	if (strcmp(text, "lanes") == 0)
		return VALUE_INT(type.lanes);
	if (strcmp(text, "name") == 0)
		return value_text(ev->cx->arena, name, strlen(dtype_name(type, name)));
	return VALUE_ERROR;
}

/* args.name: the argument's default when it has one. */
static struct value argument_value(struct eval *ev, struct dict *arguments, const char *name,
                                   struct span span)
{
	const struct dict_entry *entry = dict_find(arguments, VALUE_STR(str_of(name)));

	return entry ? entry->value : ev_opaque(ev, span, arena_printf(ev->cx->arena, "args.%s", name));
}

/* Name of the method table of a value, or NULL. */
static const char *method_table(struct value value)
{
	if (value.kind == V_STR)
		return "str";
	if (value.kind == V_LIST)
		return "list";
	if (value.kind == V_TUPLE)
		return "tuple";
	if (value.kind == V_DICT)
		return "dict";
	if (value.kind == V_EXPR)
		return "expr";
	if (value.kind == V_DTYPE)
		return "dtype";
	if (value.kind == V_BUFFER)
		return "buffer";
	if (value.kind == V_ARGUMENTS)
		return "arguments";
	if (value.kind == V_FUNCTION && (value.as.function->is_factory || value.as.function->kernel))
		return "function";
	if (value.kind == V_INT)
		return "int";
	return value.kind == V_SET ? "set" : NULL;
}

/* Methods by the table of the value's type, then the attributes of kernel values. */
struct value eval_attribute(struct eval *ev, struct value object, sym_t name, struct span span)
{
	const char *text = sym_text(ev->cx->names, name), *table = method_table(object);
	const struct builtin *builtin = table ? find_builtin(ev, table, name) : NULL;
	struct value result = VALUE_ERROR;
	struct dtype type;

	if (object.kind == V_MODULE)
		return module_attribute(ev, object.as.module, name, span);
	if (builtin)
		return method_of(ev, object, builtin);
	if (object.kind == V_DTYPE && find_builtin(ev, "str", name)) {
		struct value text_of = dtype_attribute(ev, object.as.dtype, "name");

		return method_of(ev, text_of, find_builtin(ev, "str", name));
	}
	if (object.kind == V_STR && dtype_parse(object.as.string, &type))
		result = dtype_attribute(ev, type, text);
	else if (object.kind == V_BUFFER)
		result = buffer_attribute(ev, object.as.buffer, text);
	else if (object.kind == V_TENSOR)
		result = tensor_attribute(ev, object.as.tensor, text);
	else if (object.kind == V_DTYPE)
		result = dtype_attribute(ev, object.as.dtype, text);
	else if (object.kind == V_EXPR && strcmp(text, "dtype") == 0)
		result = (struct value){ .kind = V_DTYPE, .as.dtype = object.as.expr->type };
	else if (object.kind == V_REGION && strcmp(text, "dtype") == 0)
		result = (struct value){ .kind = V_DTYPE, .as.dtype = object.as.region->buffer->type };
	else if (object.kind == V_STR && strcmp(text, "value") == 0)
		return object; /* of a member of an enumeration */
	else if (object.kind == V_ARGUMENTS)
		return argument_value(ev, object.as.dict, text, span);
	else if (object.kind == V_FUNCTION || object.kind == V_KERNEL || object.kind == V_BUILTIN)
		return ev_opaque(ev, span, NULL);
	if (result.kind != V_ERROR)
		return result;
	return ev_error(ev, DIAG_E0202, span, "%s has no attribute %s", value_type_text(object), text);
}

/* begin, count and step of a slice of n elements. False after an error. */
static bool slice_bounds(struct eval *ev, const struct value *slice, int64_t n, struct span span,
                         struct host_range *range)
{
	int64_t parts[3] = { 0, n, 1 };

	for (int i = 0; i < 3; i++) {
		if (slice[i].kind != V_NONE && !value_int(slice[i], &parts[i])) {
			ev_error(ev, DIAG_E0202, span, "slice bounds must be integers");
			return false;
		}
	}
	if (parts[2] == 0) {
		ev_error(ev, DIAG_E0214, span, "the step of a slice is 0");
		return false;
	}
	if (parts[2] < 0) {
		parts[0] = slice[0].kind == V_NONE ? n - 1 : parts[0];
		parts[1] = slice[1].kind == V_NONE ? -1 - n : parts[1];
	}
	for (int i = 0; i < 2; i++) {
		int64_t low = parts[2] < 0 ? -1 : 0, high = parts[2] < 0 ? n - 1 : n;

		parts[i] += parts[i] < 0 ? n : 0;
		parts[i] = parts[i] < low ? low : parts[i] > high ? high : parts[i];
	}
	*range = (struct host_range){ parts[0], parts[1], parts[2] };
	return true;
}

/* A new string, list or tuple. */
static struct value slice_of(struct eval *ev, struct value object, const struct value *slice,
                             struct span span)
{
	int64_t n = object.kind == V_STR ? object.as.string.n : object.as.sequence->n;
	struct host_range range;
	struct buf text = { 0 };
	struct value result;

	if (!slice_bounds(ev, slice, n, span, &range))
		return VALUE_ERROR;
	assert(range.step != 0 && range.begin >= -1 && range.begin <= n);
	result = value_sequence(ev->cx->arena, object.kind);
	n = range_count(&range);
	for (int64_t i = 0; i < n; i++) {
		if (object.kind == V_STR)
			buf_char(&text, object.as.string.p[range.begin + i * range.step]);
		else
			vec_push(ev->cx->arena, result.as.sequence,
			         object.as.sequence->p[range.begin + i * range.step]);
	}
	if (object.kind == V_STR)
		result = value_text(ev->cx->arena, buf_cstr(&text), text.n);
	buf_free(&text);
	return result;
}

/* Negative indices count from the end. */
static struct value element_of(struct eval *ev, struct value object, int64_t i, struct span span)
{
	int64_t n = object.kind == V_RANGE ? range_count(object.as.range)
	            : object.kind == V_STR ? object.as.string.n
	                                   : object.as.sequence->n;
	int64_t at = i < 0 ? i + n : i;

	if (at < 0 || at >= n)
		return ev_error(ev, DIAG_E0215, span, "index %lld is outside a %s of %lld elements",
		                (long long)i, value_type_text(object), (long long)n);
	if (object.kind == V_RANGE)
		return VALUE_INT(object.as.range->begin + at * object.as.range->step);
	if (object.kind == V_STR)
		return VALUE_STR(((struct str){ object.as.string.p + at, 1 }));
	return object.as.sequence->p[at];
}

/* The value of a key; the message names the key. */
static struct value dict_element(struct eval *ev, struct dict *dict, struct value key,
                                 struct span span)
{
	struct dict_entry *entry = dict_find(dict, key);
	struct buf text = { 0 };
	struct value result;

	if (entry)
		return entry->value;
	value_print(&text, key, true, 0);
	result = ev_error(ev, DIAG_E0215, span, "the dict has no key %s", buf_cstr(&text));
	buf_free(&text);
	return result;
}

/* What stands before the brackets decides what they mean. */
struct value eval_subscript(struct eval *ev, struct value object, struct value index,
                            const struct ast_expr *e)
{
	struct span span = e->as.subscript.index->span;
	int64_t i;

	if (object.kind == V_BUFFER)
		return device_subscript(ev, object.as.buffer, index, e);
	if (object.kind == V_BUILTIN && strcmp(object.as.builtin->module, "tilelang.language") == 0)
		return lang_tensor_subscript(ev, object.as.builtin, index, e->span);
	if (object.kind == V_DICT)
		return dict_element(ev, object.as.dict, index, span);
	if (index.kind == V_OPAQUE)
		return index;
	if (value_is_sequence(object) || object.kind == V_STR || object.kind == V_RANGE) {
		if (index.kind == V_SLICE && object.kind != V_RANGE)
			return slice_of(ev, object, index.as.slice, span);
		if (value_int(index, &i))
			return element_of(ev, object, i, span);
		return ev_error(ev, DIAG_E0202, span, "the index of a %s must be an integer, not %s",
		                value_type_text(object), value_type_text(index));
	}
	if (object.kind == V_FUNCTION || object.kind == V_BUILTIN)
		return ev_opaque(ev, e->span, NULL); /* a generic type or a grid launch */
	return ev_error(ev, DIAG_E0202, e->span, "%s has no elements to index",
	                value_type_text(object));
}
