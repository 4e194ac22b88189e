/*
 * Python's builtin functions on host values (Python library reference, "Built-in Functions"), as
 * far as kernel files use them. What a function gives for device values, where that makes sense, is
 * a device expression. An argument that nothing is known of makes the result unknown before a
 * function here is called (call_builtin), except for isinstance.
 *
 * What the evaluator cannot answer truthfully (id, hash, open, ...) gives an unknown value, so that
 * host code around kernels may use it as long as no kernel depends on it.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The argument is of a type that the function does not take. An argument that has failed already is
 * passed on in silence.
 */
static struct value wrong(struct eval *ev, const struct call *call, uint32_t slot)
{
	const struct arg *arg = call->slot[slot];

	assert(slot < MAX_SLOTS && arg);
	if (arg->value.kind == V_ERROR)
		return VALUE_ERROR;
	return ev_error(ev, DIAG_E0202, arg->span, "%s does not take %s", call->name,
	                value_type_text(arg->value));
}

/* Elements of the argument in a new sequence of the kind; empty when the argument is absent. */
static struct value collect(struct eval *ev, const struct call *call, uint32_t slot,
                            enum value_kind kind)
{
	struct value result = value_sequence(ev->cx->arena, kind);

	if (call->slot[slot] &&
	    !eval_elements(ev, call->slot[slot]->value, call->slot[slot]->span, result.as.sequence))
		return VALUE_ERROR;
	return result;
}

/* Characters of a string, not bytes. Of a buffer its first extent, which may be a device value. */
static struct value b_len(struct eval *ev, struct call *call)
{
	struct value x = call->slot[0]->value;
	int64_t n = 0;

	if (value_is_sequence(x))
		return VALUE_INT(x.as.sequence->n);
	if (x.kind == V_DICT)
		return VALUE_INT(x.as.dict->n);
	if (x.kind == V_RANGE)
		return VALUE_INT(range_count(x.as.range));
	if (x.kind == V_BUFFER)
		return x.as.buffer->rank ? device_value(x.as.buffer->shape[0]) : VALUE_INT(1);
	if (x.kind != V_STR)
		return wrong(ev, call, 0);
	for (uint32_t at = 0; at < x.as.string.n; n++)
		str_char_at(x.as.string, &at);
	return VALUE_INT(n);
}

/* range(stop), range(start, stop), range(start, stop, step); in kernels a loop when a bound is a
 * device value. */
static struct value b_range(struct eval *ev, struct call *call)
{
	struct host_range *range = arena_new(ev->cx->arena, struct host_range);
	int64_t parts[3] = { 0, 0, 1 };

	for (uint32_t i = 0; i < 3; i++) {
		if (call->slot[i] && value_is_device(call->slot[i]->value) && ev->trace &&
		    call->frame->is_traced) {
			const struct builtin *serial =
				find_builtin(ev, "tilelang.language", intern_text(ev->cx->names, "serial"));

			return serial->handler(ev, call);
		}
		if (call->slot[i] && !value_int(call->slot[i]->value, &parts[i]))
			return wrong(ev, call, i);
	}
	if (parts[2] == 0)
		return ev_error(ev, DIAG_E0214, call->span, "the step of a range is 0");
	*range = call->slot[1] ? (struct host_range){ parts[0], parts[1], parts[2] }
	                       : (struct host_range){ 0, parts[0], 1 };
	return (struct value){ .kind = V_RANGE, .as.range = range };
}

/*
 * max and min of several arguments or of one iterable. With a key function the result is unknown.
 */
static struct value extreme(struct eval *ev, struct call *call, bool is_max)
{
	struct value items = value_sequence(ev->cx->arena, V_LIST), best;

	if (call->n_rest == 1 && !eval_elements(ev, call->rest[0].value, call->span, items.as.sequence))
		return VALUE_ERROR;
	for (uint32_t i = 0; call->n_rest > 1 && i < call->n_rest; i++)
		vec_push(ev->cx->arena, items.as.sequence, call->rest[i].value);
	if (items.as.sequence->n == 0)
		return call->slot[1] ? call->slot[1]->value
		                     : ev_error(ev, DIAG_E0202, call->span, "%s of nothing", call->name);
	if (call->slot[0])
		return ev_opaque(ev, call->span, NULL);
	best = items.as.sequence->p[0];
	for (uint32_t i = 1; i < items.as.sequence->n; i++) {
		struct value item = items.as.sequence->p[i];
		struct value better;

		if (item.kind == V_OPAQUE || best.kind == V_OPAQUE)
			return item.kind == V_OPAQUE ? item : best;
		if (value_is_device(item) || value_is_device(best)) {
			better = ev_error(ev, DIAG_E0202, call->span, "%s cannot compare device expressions",
			                  call->name);
			ev_help(ev, "write T.%s", is_max ? "max" : "min");
			return better;
		}
		better = eval_compare(ev, is_max ? AST_GT : AST_LT, item, best, call->span);
		if (better.kind != V_BOOL)
			return better;
		best = better.as.boolean ? item : best;
	}
	return best;
}

static struct value b_max(struct eval *ev, struct call *call)
{
	return extreme(ev, call, true);
}

static struct value b_min(struct eval *ev, struct call *call)
{
	return extreme(ev, call, false);
}

/* Also of device expressions: adding them is an expression. */
static struct value b_sum(struct eval *ev, struct call *call)
{
	struct value total = call->slot[1] ? call->slot[1]->value : VALUE_INT(0),
				 items = collect(ev, call, 0, V_LIST);

	if (items.kind == V_ERROR)
		return items;
	for (uint32_t i = 0; i < items.as.sequence->n && total.kind != V_ERROR; i++)
		total = eval_binary(ev, AST_ADD, total, items.as.sequence->p[i], call->span);
	return total;
}

/* Of a device value: an expression. */
static struct value b_abs(struct eval *ev, struct call *call)
{
	struct value x = call->slot[0]->value;
	int64_t i;

	if (value_int(x, &i))
		return i == INT64_MIN
		           ? ev_error(ev, DIAG_E0214, call->span, "this result does not fit 64 bits")
		           : VALUE_INT(i < 0 ? -i : i);
	if (x.kind == V_FLOAT)
		return VALUE_FLOAT(fabs(x.as.number));
	if (x.kind == V_EXPR)
		return device_value(expr_math(ev->pool, MATH_abs, &x.as.expr, 1));
	return wrong(ev, call, 0);
}

/* Digits of the base, with nothing behind them but blanks. */
static struct value text_to_int(struct eval *ev, struct call *call, int base)
{
	struct str text = call->slot[0]->value.as.string;
	char *copy = arena_strndup(ev->cx->arena, text.p, text.n), *end;
	long long number;

	errno = 0;
	number = strtoll(copy, &end, base);
	end += strspn(end, " \n");
	if (end == copy || *end || errno)
		return ev_error(ev, DIAG_E0202, call->slot[0]->span, "this text is no integer");
	return VALUE_INT(number);
}

/* Floats are truncated; texts are read. */
static struct value b_int(struct eval *ev, struct call *call)
{
	struct value x = call->slot[0] ? call->slot[0]->value : VALUE_INT(0);
	int64_t i, base = 10;

	if (value_int(x, &i))
		return VALUE_INT(i);
	if (x.kind == V_FLOAT && fabs(x.as.number) < 9.2e18)
		return VALUE_INT((int64_t)x.as.number);
	if (x.kind == V_STR && arg_int(ev, call, 1, &base) && base >= 0 && base <= 36 && base != 1)
		return text_to_int(ev, call, (int)base);
	return wrong(ev, call, 0);
}

/* Texts are read as numbers. */
static struct value b_float(struct eval *ev, struct call *call)
{
	struct value x = call->slot[0] ? call->slot[0]->value : VALUE_INT(0);
	double number;
	char *copy, *end;

	if (value_number(x, &number))
		return VALUE_FLOAT(number);
	if (x.kind != V_STR)
		return wrong(ev, call, 0);
	copy = arena_strndup(ev->cx->arena, x.as.string.p, x.as.string.n);
	number = strtod(copy, &end);
	if (end == copy || *end)
		return ev_error(ev, DIAG_E0202, call->slot[0]->span, "this text is no number");
	return VALUE_FLOAT(number);
}

/* What the device decides has no truth on the host. */
static struct value b_bool(struct eval *ev, struct call *call)
{
	int truth = call->slot[0] ? eval_truth(call->slot[0]->value) : 0;

	return truth < 0 ? wrong(ev, call, 0) : VALUE_BOOL(truth);
}

/* str(x) or repr(x). */
static struct value as_text(struct eval *ev, const struct call *call, bool is_repr)
{
	struct buf text = { 0 };
	struct value result;

	if (call->slot[0])
		value_print(&text, call->slot[0]->value, is_repr, 0);
	result = value_text(ev->cx->arena, buf_cstr(&text), text.n);
	buf_free(&text);
	return result;
}

static struct value b_str(struct eval *ev, struct call *call)
{
	return as_text(ev, call, false);
}

static struct value b_repr(struct eval *ev, struct call *call)
{
	return as_text(ev, call, true);
}

/* Nothing is printed: a kernel file has no output here. */
static struct value b_print(struct eval *ev, struct call *call)
{
	(void)ev;
	(void)call;
	return VALUE_NONE;
}

static struct value b_list(struct eval *ev, struct call *call)
{
	return collect(ev, call, 0, V_LIST);
}

static struct value b_tuple(struct eval *ev, struct call *call)
{
	return collect(ev, call, 0, V_TUPLE);
}

/*
 * Equal elements are kept once, in order of their first. Every comparison is a step, as sets are
 * lists here.
 */
static struct value b_set(struct eval *ev, struct call *call)
{
	struct value all = collect(ev, call, 0, V_LIST), result = value_sequence(ev->cx->arena, V_SET);

	for (uint32_t i = 0; all.kind == V_LIST && i < all.as.sequence->n && ev_step(ev, call->span);
	     i++) {
		bool is_new = true;

		for (uint32_t j = 0; j < result.as.sequence->n && is_new && ev_step(ev, call->span); j++)
			is_new = !value_equal(result.as.sequence->p[j], all.as.sequence->p[i], 0);
		if (is_new)
			vec_push(ev->cx->arena, result.as.sequence, all.as.sequence->p[i]);
	}
	return all.kind == V_LIST ? result : all;
}

/* dict(name=value, ...), dict(pairs), dict(other); later ones win. */
static struct value b_dict(struct eval *ev, struct call *call)
{
	struct value result = { .kind = V_DICT };

	result.as.dict = arena_new(ev->cx->arena, struct dict);
	for (uint32_t i = 0; i < call->args.n; i++) {
		const struct arg *arg = &call->args.p[i];
		struct sequence items = { 0 };

		if (arg->name) {
			dict_set(ev->cx->arena, result.as.dict,
			         VALUE_STR(str_of(sym_text(ev->cx->names, arg->name))), arg->value);
			continue;
		}
		if (arg->value.kind == V_DICT) {
			for (uint32_t j = 0; j < arg->value.as.dict->n; j++)
				dict_set(ev->cx->arena, result.as.dict, arg->value.as.dict->p[j].key,
				         arg->value.as.dict->p[j].value);
			continue;
		}
		if (!eval_elements(ev, arg->value, arg->span, &items))
			return VALUE_ERROR;
		for (uint32_t j = 0; j < items.n; j++) {
			if (!value_is_sequence(items.p[j]) || items.p[j].as.sequence->n != 2)
				return ev_error(ev, DIAG_E0202, arg->span, "dict needs pairs");
			dict_set(ev->cx->arena, result.as.dict, items.p[j].as.sequence->p[0],
			         items.p[j].as.sequence->p[1]);
		}
	}
	return result;
}

/* A tuple of two. */
static struct value pair_of(struct eval *ev, struct value a, struct value b)
{
	struct value pair = value_sequence(ev->cx->arena, V_TUPLE);

	vec_push(ev->cx->arena, pair.as.sequence, a);
	vec_push(ev->cx->arena, pair.as.sequence, b);
	assert(pair.as.sequence->n == 2);
	return pair;
}

/* Pairs of number and element. */
static struct value b_enumerate(struct eval *ev, struct call *call)
{
	struct value items = collect(ev, call, 0, V_LIST);
	int64_t start = 0;

	if (items.kind == V_ERROR || !arg_int(ev, call, 1, &start))
		return VALUE_ERROR;
	for (uint32_t i = 0; i < items.as.sequence->n; i++)
		items.as.sequence->p[i] = pair_of(ev, VALUE_INT(start + i), items.as.sequence->p[i]);
	return items;
}

/* As long as the shortest argument. */
static struct value b_zip(struct eval *ev, struct call *call)
{
	struct value result = value_sequence(ev->cx->arena, V_LIST);
	struct sequence *items = arena_array(ev->cx->arena, struct sequence, call->n_rest);
	uint32_t n = UINT32_MAX;

	for (uint32_t i = 0; i < call->n_rest; i++) {
		if (!eval_elements(ev, call->rest[i].value, call->rest[i].span, &items[i]))
			return VALUE_ERROR;
		n = items[i].n < n ? items[i].n : n;
	}
	for (uint32_t k = 0; call->n_rest && k < n && ev_step(ev, call->span); k++) {
		struct value tuple = value_sequence(ev->cx->arena, V_TUPLE);

		for (uint32_t i = 0; i < call->n_rest; i++)
			vec_push(ev->cx->arena, tuple.as.sequence, items[i].p[k]);
		vec_push(ev->cx->arena, result.as.sequence, tuple);
	}
	return result;
}

/* Stops at the element that decides. `is_any` is also the truth that decides. */
static struct value any_all(struct eval *ev, struct call *call, bool is_any)
{
	struct value items = collect(ev, call, 0, V_LIST);

	if (items.kind == V_ERROR)
		return items;
	for (uint32_t i = 0; i < items.as.sequence->n; i++) {
		int truth = eval_truth(items.as.sequence->p[i]);

		if (truth < 0)
			return items.as.sequence->p[i].kind == V_OPAQUE
			           ? items.as.sequence->p[i]
			           : ev_error(ev, DIAG_E0202, call->span,
			                      "%s cannot decide a device expression", call->name);
		if (truth == (int)is_any)
			return VALUE_BOOL(is_any);
	}
	return VALUE_BOOL(!is_any);
}

static struct value b_any(struct eval *ev, struct call *call)
{
	return any_all(ev, call, true);
}

static struct value b_all(struct eval *ev, struct call *call)
{
	return any_all(ev, call, false);
}

/* As a list: nothing that kernels do can tell. */
static struct value b_reversed(struct eval *ev, struct call *call)
{
	struct value items = collect(ev, call, 0, V_LIST);
	struct sequence *seq = items.as.sequence;

	for (uint32_t i = 0; items.kind == V_LIST && i < seq->n / 2; i++) {
		struct value swap = seq->p[i];

		seq->p[i] = seq->p[seq->n - 1 - i];
		seq->p[seq->n - 1 - i] = swap;
	}
	return items;
}

/* The key by which sorted orders an element. */
static struct value sort_key(struct eval *ev, const struct call *call, struct value item)
{
	struct call inner = {
		.span = call->span, .callee_span = call->span, .name = "key", .frame = call->frame
	};

	if (!call->slot[1] || call->slot[1]->value.kind == V_NONE)
		return item;
	vec_push(ev->cx->arena, &inner.args,
	         (struct arg){ .value = item, .span = call->span, .whole = call->span });
	return call_value(ev, call->slot[1]->value, &inner);
}

/* Insertion sort: stable, and counted in steps, so that a long list ends with a message. */
static struct value b_sorted(struct eval *ev, struct call *call)
{
	struct value items = collect(ev, call, 0, V_LIST);
	struct sequence keys = { 0 };
	bool reverse = false;

	if (items.kind == V_ERROR || !arg_bool(ev, call, 2, &reverse))
		return VALUE_ERROR;
	for (uint32_t i = 0; i < items.as.sequence->n; i++) {
		struct value item = items.as.sequence->p[i], key = sort_key(ev, call, item);
		uint32_t j = i;

		vec_push(ev->cx->arena, &keys, key);
		for (; j > 0 && ev_step(ev, call->span); j--) {
			struct value before =
				eval_compare(ev, reverse ? AST_GT : AST_LT, key, keys.p[j - 1], call->span);

			if (before.kind != V_BOOL)
				return before;
			if (!before.as.boolean)
				break;
			keys.p[j] = keys.p[j - 1];
			items.as.sequence->p[j] = items.as.sequence->p[j - 1];
		}
		keys.p[j] = key;
		items.as.sequence->p[j] = item;
	}
	return items;
}

/* map(f, items), filter(f, items) */
static struct value map_filter(struct eval *ev, struct call *call, bool is_filter)
{
	struct value items = collect(ev, call, 1, V_LIST),
				 result = value_sequence(ev->cx->arena, V_LIST);

	if (items.kind == V_ERROR)
		return items;
	for (uint32_t i = 0; i < items.as.sequence->n; i++) {
		struct value item = items.as.sequence->p[i], mapped = item;
		struct call inner = { .span = call->span,
			                  .callee_span = call->slot[0]->span,
			                  .name = call->name,
			                  .frame = call->frame };

		vec_push(ev->cx->arena, &inner.args,
		         (struct arg){ .value = item, .span = call->slot[1]->span, .whole = call->span });
		if (call->slot[0]->value.kind != V_NONE)
			mapped = call_value(ev, call->slot[0]->value, &inner);
		if (mapped.kind == V_ERROR || mapped.kind == V_OPAQUE)
			return mapped;
		if (!is_filter)
			vec_push(ev->cx->arena, result.as.sequence, mapped);
		else if (eval_truth(mapped) == 1)
			vec_push(ev->cx->arena, result.as.sequence, item);
	}
	return result;
}

static struct value b_map(struct eval *ev, struct call *call)
{
	return map_filter(ev, call, false);
}

static struct value b_filter(struct eval *ev, struct call *call)
{
	return map_filter(ev, call, true);
}

/* Halves go to the even side, as in Python. Without digits an integer, else a float. */
static struct value b_round(struct eval *ev, struct call *call)
{
	int64_t digits = 0;
	double x, scale;

	if (!value_number(call->slot[0]->value, &x))
		return wrong(ev, call, 0);
	if (!arg_int(ev, call, 1, &digits))
		return VALUE_ERROR;
	if (!call->slot[1])
		return fabs(x) < 9.2e18 ? VALUE_INT((int64_t)nearbyint(x))
		                        : ev_error(ev, DIAG_E0214, call->span, "too large");
	scale = pow(10, (double)(digits > 300 ? 300 : digits < -300 ? -300 : digits));
	return VALUE_FLOAT(nearbyint(x * scale) / scale);
}

/* Quotient and remainder. */
static struct value b_divmod(struct eval *ev, struct call *call)
{
	struct value a = call->slot[0]->value, b = call->slot[1]->value;

	return pair_of(ev, eval_binary(ev, AST_FLOORDIV, a, b, call->span),
	               eval_binary(ev, AST_MOD, a, b, call->span));
}

static struct value b_pow(struct eval *ev, struct call *call)
{
	return eval_binary(ev, AST_POW, call->slot[0]->value, call->slot[1]->value, call->span);
}

/* Does the value have the builtin type of this name? True is an int, as in Python. */
static bool has_type(struct value value, const char *name)
{
	static const struct {
		const char *name;
		enum value_kind kind;
	} types[] = {
		{ "int", V_INT }, { "int", V_BOOL },    { "bool", V_BOOL },   { "float", V_FLOAT },
		{ "str", V_STR }, { "tuple", V_TUPLE }, { "list", V_LIST },   { "dict", V_DICT },
		{ "set", V_SET }, { "range", V_RANGE }, { "slice", V_SLICE },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (types[i].kind == value.kind && strcmp(types[i].name, name) == 0)
			return true;
	}
	return false;
}

/* Against builtin types; whether a device value is of a class of TileLang is unknown. */
static struct value b_isinstance(struct eval *ev, struct call *call)
{
	struct value types = call->slot[1]->value, value = call->slot[0]->value;
	struct sequence items = { 0 };

	if (value.kind == V_OPAQUE)
		return value;
	if (types.kind == V_TUPLE)
		items = *types.as.sequence;
	else
		vec_push(ev->cx->arena, &items, types);
	for (uint32_t i = 0; i < items.n; i++) {
		if (items.p[i].kind == V_OPAQUE && (value_is_device(value) || value.kind == V_DTYPE))
			return items.p[i];
		if (items.p[i].kind == V_BUILTIN && has_type(value, items.p[i].as.builtin->name))
			return VALUE_BOOL(true);
	}
	return VALUE_BOOL(false);
}

/* Kernels and element types can be called too. */
static struct value b_callable(struct eval *ev, struct call *call)
{
	enum value_kind kind = call->slot[0]->value.kind;

	(void)ev;
	return VALUE_BOOL(kind == V_FUNCTION || kind == V_BUILTIN || kind == V_METHOD ||
	                  kind == V_KERNEL || kind == V_DTYPE);
}

/* vars(args): names to values. */
static struct value b_vars(struct eval *ev, struct call *call)
{
	struct value x = call->slot[0]->value;

	if (x.kind == V_ARGUMENTS)
		x.kind = V_DICT;
	return x.kind == V_DICT ? x : ev_opaque(ev, call->span, NULL);
}

/*
 * getattr(T, "exp"): the attribute, when the name is known. The default of a missing one is not
 * looked at.
 */
static struct value b_getattr(struct eval *ev, struct call *call)
{
	struct value object = call->slot[0]->value, name = call->slot[1]->value;

	if (name.kind != V_STR || object.kind == V_OPAQUE)
		return ev_opaque(ev, call->span, NULL);
	return eval_attribute(ev, object, intern(ev->cx->names, name.as.string), call->span);
}

/* What depends on the object's insides, which the evaluator does not keep. */
static struct value b_unknown(struct eval *ev, struct call *call)
{
	return ev_opaque(ev, call->span, NULL);
}

/* Signatures are those of Python; what nobody passes to a kernel's host code is left out. */
static const struct builtin rows[] = {
	{ "", "len", "x", b_len },
	{ "", "range", "start stop? step?", b_range },
	{ "", "max", "* key default", b_max },
	{ "", "min", "* key default", b_min },
	{ "", "sum", "items start?", b_sum },
	{ "", "abs", "x", b_abs },
	{ "", "int", "x? base?", b_int },
	{ "", "float", "x?", b_float },
	{ "", "bool", "x?", b_bool },
	{ "", "str", "x?", b_str },
	{ "", "repr", "x", b_repr },
	{ "", "print", "* sep end file flush", b_print },
	{ "", "list", "items?", b_list },
	{ "", "tuple", "items?", b_tuple },
	{ "", "set", "items?", b_set },
	{ "", "dict", "**", b_dict },
	{ "", "enumerate", "items start?", b_enumerate },
	{ "", "zip", "* strict", b_zip },
	{ "", "any", "items", b_any },
	{ "", "all", "items", b_all },
	{ "", "reversed", "items", b_reversed },
	{ "", "sorted", "items | key reverse", b_sorted },
	{ "", "map", "function items", b_map },
	{ "", "filter", "function items", b_filter },
	{ "", "round", "x digits?", b_round },
	{ "", "divmod", "a b", b_divmod },
	{ "", "pow", "a b", b_pow },
	{ "", "isinstance", "x types", b_isinstance },
	{ "", "callable", "x", b_callable },
	{ "", "vars", "x", b_vars },
	{ "", "type", "x", b_unknown },
	{ "", "getattr", "x name default?", b_getattr },
	{ "", "hasattr", "x name", b_unknown },
	{ "", "id", "x", b_unknown },
	{ "", "hash", "x", b_unknown },
	{ "", "open", "* mode encoding", b_unknown },
	{ "", "super", "*", b_unknown },
	{ "", "iter", "x", b_unknown },
	{ "", "next", "x default?", b_unknown },
	{ "", "slice", "*", b_unknown },
	{ "", "ValueError", "*", b_unknown },
	{ "", "TypeError", "*", b_unknown },
	{ "", "RuntimeError", "*", b_unknown },
	{ "", "NotImplementedError", "*", b_unknown },
	{ "", "AssertionError", "*", b_unknown },
	{ "", "Exception", "*", b_unknown },
	{ "", "KeyError", "*", b_unknown },
	{ "", "ImportError", "*", b_unknown },
};

const struct builtin_table host_builtins = { rows, sizeof(rows) / sizeof(*rows) };
