/*
 * Functions of the modules that the host part of kernels uses: math, itertools, functools,
 * tilelang.
 */
#include "analyzer/frontend/eval.h"

#include <math.h>
#include <string.h>

enum { MAX_PRODUCT = 1 << 20 };

/* The argument as a number; false after an error. */
static bool number_of(struct eval *ev, const struct call *call, uint32_t slot, double *number)
{
	if (value_number(call->slot[slot]->value, number))
		return true;
	if (call->slot[slot]->value.kind != V_ERROR)
		ev_error(ev, DIAG_E0202, call->slot[slot]->span, "%s needs a number, not %s", call->name,
		         value_type_text(call->slot[slot]->value));
	return false;
}

/* NaN stands for an argument outside the function's domain. */
static struct value float_result(struct eval *ev, const struct call *call, double number)
{
	return isnan(number) ? ev_error(ev, DIAG_E0214, call->span, "%s has no result here", call->name)
	                     : VALUE_FLOAT(number);
}

/* Functions of one number whose result is a float. */
static struct value m_float(struct eval *ev, struct call *call)
{
	const char *name = call->builtin->name;
	double x;

	if (!number_of(ev, call, 0, &x))
		return VALUE_ERROR;
	if (strcmp(name, "sqrt") == 0)
		return float_result(ev, call, sqrt(x));
	if (strcmp(name, "exp") == 0)
		return float_result(ev, call, exp(x));
	if (strcmp(name, "log2") == 0)
		return float_result(ev, call, x > 0 ? log2(x) : (double)NAN);
	if (strcmp(name, "log10") == 0)
		return float_result(ev, call, x > 0 ? log10(x) : (double)NAN);
	return float_result(ev, call, fabs(x));
}

/* log2 is exact for powers of two, so base 2 goes through it. */
static struct value m_log(struct eval *ev, struct call *call)
{
	double x, base;

	if (!number_of(ev, call, 0, &x))
		return VALUE_ERROR;
	if (!call->slot[1])
		return float_result(ev, call, x > 0 ? log(x) : (double)NAN);
	if (!number_of(ev, call, 1, &base))
		return VALUE_ERROR;
	if (base == 2)
		return float_result(ev, call, x > 0 ? log2(x) : (double)NAN);
	return float_result(ev, call, x > 0 && base > 0 ? log(x) / log(base) : (double)NAN);
}

static struct value m_pow(struct eval *ev, struct call *call)
{
	double x, y;

	return number_of(ev, call, 0, &x) && number_of(ev, call, 1, &y)
	           ? float_result(ev, call, pow(x, y))
	           : VALUE_ERROR;
}

/* ceil, floor, trunc: integers. */
static struct value m_round(struct eval *ev, struct call *call)
{
	const char *name = call->builtin->name;
	int64_t integer;
	double x;

	if (value_int(call->slot[0]->value, &integer))
		return VALUE_INT(integer);
	if (!number_of(ev, call, 0, &x))
		return VALUE_ERROR;
	x = strcmp(name, "ceil") == 0 ? ceil(x) : strcmp(name, "floor") == 0 ? floor(x) : trunc(x);
	if (!(fabs(x) < 9.2e18))
		return ev_error(ev, DIAG_E0214, call->span, "this result does not fit 64 bits");
	return VALUE_INT((int64_t)x);
}

/* By Euclid's algorithm; never negative. */
static struct value m_gcd(struct eval *ev, struct call *call)
{
	int64_t a = 0, b = 0;

	if (!arg_int(ev, call, 0, &a) || !arg_int(ev, call, 1, &b))
		return VALUE_ERROR;
	while (b != 0) {
		int64_t rest = b == -1 ? 0 : a % b;

		a = b;
		b = rest;
	}
	return VALUE_INT(a < 0 && a != INT64_MIN ? -a : a);
}

/* The least power of two that is not below n. */
static struct value m_next_power_of_2(struct eval *ev, struct call *call)
{
	int64_t n = 0, power = 1;

	if (call->slot[0]->value.kind == V_OPAQUE)
		return call->slot[0]->value;
	if (!arg_int(ev, call, 0, &n))
		return VALUE_ERROR;
	while (power < n && power < INT64_MAX / 2)
		power *= 2;
	return VALUE_INT(power);
}

/* itertools.product(*iterables) */
static struct value i_product(struct eval *ev, struct call *call)
{
	struct value result = value_sequence(ev->cx->arena, V_LIST);
	struct sequence *items = arena_array(ev->cx->arena, struct sequence, call->n_rest);
	uint64_t total = 1;

	for (uint32_t i = 0; i < call->n_rest; i++) {
		if (call->rest[i].value.kind == V_OPAQUE)
			return call->rest[i].value;
		if (!eval_elements(ev, call->rest[i].value, call->rest[i].span, &items[i]))
			return VALUE_ERROR;
		total *= items[i].n;
		if (total > MAX_PRODUCT)
			return ev_error(ev, DIAG_E0212, call->span, "this product has more than %d elements",
			                MAX_PRODUCT);
	}
	for (uint64_t k = 0; k < total && ev_step(ev, call->span); k++) {
		struct value tuple = value_sequence(ev->cx->arena, V_TUPLE);
		uint64_t rest = k, below = total;

		for (uint32_t i = 0; i < call->n_rest; i++) {
			below /= items[i].n;
			vec_push(ev->cx->arena, tuple.as.sequence, items[i].p[rest / below]);
			rest %= below;
		}
		vec_push(ev->cx->arena, result.as.sequence, tuple);
	}
	return result;
}

/* A decorator or a helper that hands its function on. */
static struct value same_argument(struct eval *ev, struct call *call)
{
	if (call->n_rest == 1 && call->args.n == 1)
		return call->rest[0].value;
	return ev_opaque(ev, call->span, NULL);
}

/* argparse: a file's own defaults are as good as a call with them */

static struct value a_parser(struct eval *ev, struct call *call)
{
	struct value parser = { .kind = V_ARGUMENTS };

	(void)call;
	parser.as.dict = arena_new(ev->cx->arena, struct dict);
	return parser;
}

/* The named argument of a call, or NULL. */
static const struct arg *keyword(const struct eval *ev, const struct call *call, const char *name)
{
	for (uint32_t i = 0; i < call->args.n; i++) {
		if (call->args.p[i].name &&
		    strcmp(sym_text(ev->cx->names, call->args.p[i].name), name) == 0)
			return &call->args.p[i];
	}
	return NULL;
}

/* What args.NAME is when the command line is empty. */
static struct value argument_default(struct eval *ev, const struct call *call, bool is_option)
{
	const struct arg *value = keyword(ev, call, "default"), *action = keyword(ev, call, "action");
	const struct arg *required = keyword(ev, call, "required");
	bool is_required = !is_option || (required && eval_truth(required->value) != 0);

	if (value)
		return value->value;
	if (action && action->value.kind == V_STR && str_is(action->value.as.string, "store_true"))
		return VALUE_BOOL(false);
	if (action && action->value.kind == V_STR && str_is(action->value.as.string, "store_false"))
		return VALUE_BOOL(true);
	return is_required ? ev_opaque(ev, call->span, NULL) : VALUE_NONE;
}

/* add_argument("--block-size", "-b", default=64): the first long option names the attribute,
 * block_size. */
static struct value a_add_argument(struct eval *ev, struct call *call)
{
	const struct arg *dest = keyword(ev, call, "dest");
	struct str name = { 0 };
	bool is_option = false;
	char *text;

	for (uint32_t i = 0; i < call->args.n && !call->args.p[i].name; i++) {
		struct value option = call->args.p[i].value;

		if (option.kind != V_STR)
			return ev_opaque(ev, call->span, NULL);
		if (name.n == 0 || (str_starts(option.as.string, "--") && !str_starts(name, "--")))
			name = option.as.string;
	}
	is_option = str_starts(name, "-");
	if (dest && dest->value.kind == V_STR)
		name = dest->value.as.string;
	while (name.n && name.p[0] == '-')
		name.p++, name.n--;
	text = arena_strndup(ev->cx->arena, name.p ? name.p : "", name.n);
	for (uint32_t i = 0; i < name.n; i++)
		text[i] = (char)(text[i] == '-' ? '_' : text[i]);
	dict_set(ev->cx->arena, call->self.as.dict, VALUE_STR(str_of(text)),
	         argument_default(ev, call, is_option));
	return VALUE_NONE;
}

/* parse_args(), parse_known_args(): of an empty command line. */
static struct value a_parse_args(struct eval *ev, struct call *call)
{
	struct value both = value_sequence(ev->cx->arena, V_TUPLE);

	if (strcmp(call->builtin->name, "parse_args") == 0)
		return call->self;
	vec_push(ev->cx->arena, both.as.sequence, call->self);
	vec_push(ev->cx->arena, both.as.sequence, value_sequence(ev->cx->arena, V_LIST));
	return both;
}

/* Groups share the parser's arguments. */
static struct value a_group(struct eval *ev, struct call *call)
{
	(void)ev;
	return call->self;
}

/* Marks of a profiler leave the kernel as it is. */

static struct value p_context(struct eval *ev, struct call *call)
{
	(void)ev;
	(void)call;
	return (struct value){ .kind = V_CONTEXT };
}

static struct value p_nothing(struct eval *ev, struct call *call)
{
	(void)ev;
	(void)call;
	return VALUE_NONE;
}

static const struct builtin rows[] = {
	{ "math", "sqrt", "x", m_float },
	{ "math", "exp", "x", m_float },
	{ "math", "log2", "x", m_float },
	{ "math", "log10", "x", m_float },
	{ "math", "fabs", "x", m_float },
	{ "math", "log", "x base?", m_log },
	{ "math", "pow", "x y", m_pow },
	{ "math", "ceil", "x", m_round },
	{ "math", "floor", "x", m_round },
	{ "math", "trunc", "x", m_round },
	{ "math", "gcd", "a b", m_gcd },
	{ "tilelang", "next_power_of_2", "n", m_next_power_of_2 },
	{ "tilelang.math", "next_power_of_2", "n", m_next_power_of_2 },
	{ "argparse", "ArgumentParser", "**", a_parser },
	{ "arguments", "add_argument", "**", a_add_argument },
	{ "arguments", "parse_args", "**", a_parse_args },
	{ "arguments", "parse_known_args", "**", a_parse_args },
	{ "arguments", "add_argument_group", "**", a_group },
	{ "arguments", "add_mutually_exclusive_group", "**", a_group },
	{ "tilelang.tools.cuda.iket", "range", "**", p_context },
	{ "tilelang.tools.cuda.iket", "mark", "**", p_nothing },
	{ "tilelang.tools.cuda.iket", "payload", "**", p_nothing },
	{ "itertools", "product", "*", i_product },
	{ "functools", "lru_cache", "*", same_argument },
	{ "functools", "cache", "*", same_argument },
};

const struct builtin_table host_modules = { rows, sizeof(rows) / sizeof(*rows) };
