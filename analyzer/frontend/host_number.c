/*
 * Arithmetic and comparison of host values, as Python does it, but with integers of 64 bits: a
 * result beyond them is an error, never a wrapped number. The operators of strings and containers
 * are here too: + and * (bounded in size), "%" of formats, `in`, and the order of tuples.
 *
 *     7 // -2      -4      rounded down        7 % -2       -1      with the divisor's sign
 *     2 ** -1      0.5     a float             1 << 63      an error, E0214
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Elements and bytes that + and * may make. */
enum { MAX_REPEAT = 1 << 20, MAX_TEXT = 8 << 20 };

/* Arithmetic that has no result in 64 bits. */
static struct value no_result(struct eval *ev, struct span span, const char *why)
{
	return ev_error(ev, DIAG_E0214, span, "%s", why);
}

/* By squaring; stops at the first product beyond 64 bits. */
static struct value int_power(struct eval *ev, int64_t base, int64_t exponent, struct span span)
{
	int64_t result = 1;

	if (exponent < 0 && base == 0)
		return no_result(ev, span, "0 cannot be raised to a negative power");
	if (exponent < 0)
		return VALUE_FLOAT(pow((double)base, (double)exponent));
	while (exponent > 0) {
		if (exponent & 1 && __builtin_mul_overflow(result, base, &result))
			return no_result(ev, span, "this power does not fit 64 bits");
		exponent >>= 1;
		if (exponent && __builtin_mul_overflow(base, base, &base))
			return no_result(ev, span, "this power does not fit 64 bits");
	}
	return VALUE_INT(result);
}

/* Left shifts are products: they must fit. */
static struct value int_shift(struct eval *ev, bool is_left, int64_t a, int64_t n, struct span span)
{
	if (n < 0)
		return no_result(ev, span, "a shift by a negative number");
	if (!is_left)
		return VALUE_INT(n > 63 ? (a < 0 ? -1 : 0) : a >> n);
	if (a != 0 && (n > 62 || (a > 0 ? a > INT64_MAX >> n : a < INT64_MIN >> n)))
		return no_result(ev, span, "this shift does not fit 64 bits");
	return VALUE_INT(a == 0 ? 0 : (int64_t)((uint64_t)a << n));
}

/* Towards minus infinity, as Python's //. */
static int64_t floor_div(int64_t a, int64_t b)
{
	int64_t q = a / b;

	assert(b != 0 && b != -1);
	return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/*
 * `/` gives a float, // and % go with the floor. INT64_MIN // -1 is the one quotient that does not
 * fit.
 */
static struct value int_divide(struct eval *ev, enum ast_binary op, int64_t a, int64_t b,
                               struct span span)
{
	if (b == 0)
		return no_result(ev, span, "division by zero");
	if (op == AST_DIV)
		return VALUE_FLOAT((double)a / (double)b);
	if (b == -1)
		return op == AST_MOD    ? VALUE_INT(0)
		       : a == INT64_MIN ? no_result(ev, span, "this quotient does not fit 64 bits")
		                        : VALUE_INT(-a);
	return VALUE_INT(op == AST_FLOORDIV ? floor_div(a, b) : a - floor_div(a, b) * b);
}

/* Every result must fit 64 bits: a wrapped size would be a wrong kernel. */
static struct value int_binary(struct eval *ev, enum ast_binary op, int64_t a, int64_t b,
                               struct span span)
{
	int64_t result = 0;
	bool overflow = false;

	switch (op) {
	case AST_ADD:
		overflow = __builtin_add_overflow(a, b, &result);
		break;
	case AST_SUB:
		overflow = __builtin_sub_overflow(a, b, &result);
		break;
	case AST_MUL:
		overflow = __builtin_mul_overflow(a, b, &result);
		break;
	case AST_DIV:
	case AST_FLOORDIV:
	case AST_MOD:
		return int_divide(ev, op, a, b, span);
	case AST_POW:
		return int_power(ev, a, b, span);
	case AST_BITAND:
		result = a & b;
		break;
	case AST_BITOR:
		result = a | b;
		break;
	case AST_BITXOR:
		result = a ^ b;
		break;
	case AST_SHL:
	case AST_SHR:
		return int_shift(ev, op == AST_SHL, a, b, span);
	case AST_MATMUL:
		return ev_error(ev, DIAG_E0202, span, "numbers have no '@'");
	}
	return overflow ? no_result(ev, span, "this result does not fit 64 bits") : VALUE_INT(result);
}

/* Python's // and % with the floor; // by 0 is an error, not infinity. */
static struct value float_binary(struct eval *ev, enum ast_binary op, double a, double b,
                                 struct span span)
{
	if ((op == AST_DIV || op == AST_FLOORDIV || op == AST_MOD) && b == 0)
		return no_result(ev, span, "division by zero");
	if (op == AST_ADD)
		return VALUE_FLOAT(a + b);
	if (op == AST_SUB)
		return VALUE_FLOAT(a - b);
	if (op == AST_MUL)
		return VALUE_FLOAT(a * b);
	if (op == AST_DIV)
		return VALUE_FLOAT(a / b);
	if (op == AST_FLOORDIV)
		return VALUE_FLOAT(floor(a / b));
	if (op == AST_MOD)
		return VALUE_FLOAT(a - b * floor(a / b));
	if (op == AST_POW)
		return VALUE_FLOAT(pow(a, b));
	return ev_error(ev, DIAG_E0202, span, "floats have no '%s'", ast_binary_text(op));
}

/* A new list or tuple of both. */
static struct value concat(struct eval *ev, struct value a, struct value b)
{
	struct value result = value_sequence(ev->cx->arena, a.kind);

	for (uint32_t i = 0; i < a.as.sequence->n; i++)
		vec_push(ev->cx->arena, result.as.sequence, a.as.sequence->p[i]);
	for (uint32_t i = 0; i < b.as.sequence->n; i++)
		vec_push(ev->cx->arena, result.as.sequence, b.as.sequence->p[i]);
	return result;
}

/* A new string of both. */
static struct value concat_text(struct eval *ev, struct str a, struct str b)
{
	char *text = arena_alloc(ev->cx->arena, (size_t)a.n + b.n + 1);

	assert((size_t)a.n + b.n <= MAX_TEXT);
	memcpy(text, a.p, a.n);
	memcpy(text + a.n, b.p, b.n);
	return VALUE_STR(((struct str){ text, a.n + b.n }));
}

/* "ab" * 3, [0] * 4 */
static struct value repeat(struct eval *ev, struct value value, int64_t n, struct span span)
{
	uint32_t length = value.kind == V_STR ? value.as.string.n : value.as.sequence->n;
	struct buf text = { 0 };
	struct value result;

	n = n < 0 ? 0 : n;
	if (length && n > MAX_REPEAT / length)
		return ev_error(ev, DIAG_E0212, span, "this makes more than %d elements", MAX_REPEAT);
	if (value.kind == V_STR) {
		for (int64_t i = 0; i < n; i++)
			buf_add(&text, value.as.string.p, length);
		result = value_text(ev->cx->arena, buf_cstr(&text), text.n);
		buf_free(&text);
		return result;
	}
	result = value_sequence(ev->cx->arena, value.kind);
	for (int64_t i = 0; i < n && length; i++) {
		for (uint32_t j = 0; j < length; j++)
			vec_push(ev->cx->arena, result.as.sequence, value.as.sequence->p[j]);
	}
	return result;
}

/* "%d of %s" % values: numbers and texts by their str(). */
static struct value format_percent(struct eval *ev, struct str format, struct value values)
{
	struct buf out = { 0 };
	uint32_t next = 0;
	struct value result;

	for (uint32_t i = 0; i < format.n; i++) {
		if (format.p[i] != '%') {
			buf_char(&out, format.p[i]);
			continue;
		}
		i++;
		while (i < format.n && strchr("0123456789.-+ #l", format.p[i]))
			i++;
		if (i >= format.n)
			break;
		if (format.p[i] == '%')
			buf_char(&out, '%');
		else if (values.kind == V_TUPLE && next < values.as.sequence->n)
			value_print(&out, values.as.sequence->p[next++], format.p[i] == 'r', 0);
		else
			value_print(&out, values, format.p[i] == 'r', 0);
	}
	result = value_text(ev->cx->arena, buf_cstr(&out), out.n);
	buf_free(&out);
	return result;
}

/* An operator with its operands, for what several functions look at in turn. */
struct operation {
	enum ast_binary op;
	struct value a, b;
	struct span span;
};

/* Can `value * n` repeat it? */
static bool repeats(struct value value)
{
	return value.kind == V_STR || value.kind == V_LIST || value.kind == V_TUPLE;
}

/* Operators of strings and containers; false when there is none. */
static bool container_binary(struct eval *ev, const struct operation *o, struct value *result)
{
	struct value a = o->a, b = o->b;
	int64_t n;

	if (o->op == AST_ADD && a.kind == V_STR && b.kind == V_STR)
		*result = (uint64_t)a.as.string.n + b.as.string.n <= MAX_TEXT
		              ? concat_text(ev, a.as.string, b.as.string)
		              : ev_error(ev, DIAG_E0212, o->span, "this text has too many bytes");
	else if (o->op == AST_ADD && a.kind == b.kind && (a.kind == V_LIST || a.kind == V_TUPLE))
		*result = (uint64_t)a.as.sequence->n + b.as.sequence->n <= MAX_REPEAT
		              ? concat(ev, a, b)
		              : ev_error(ev, DIAG_E0212, o->span, "this has too many elements");
	else if (o->op == AST_MUL && repeats(a) && value_int(b, &n))
		*result = repeat(ev, a, n, o->span);
	else if (o->op == AST_MUL && repeats(b) && value_int(a, &n))
		*result = repeat(ev, b, n, o->span);
	else if (o->op == AST_MOD && a.kind == V_STR)
		*result = format_percent(ev, a.as.string, b);
	else
		return false;
	return true;
}

/* Nothing is known of its value. */
static bool is_opaque(struct value value)
{
	return value.kind == V_OPAQUE || value.kind == V_KERNEL;
}

/* What an operation on unknown values gives: unknown, from the same place. */
static struct value opaque_of(struct eval *ev, struct value a, struct value b, struct span span)
{
	struct value opaque = a.kind == V_OPAQUE ? a : b;

	return opaque.kind == V_OPAQUE ? opaque : ev_opaque(ev, span, NULL);
}

/* Numbers first, then what is unknown, then the device, then containers. */
struct value eval_binary(struct eval *ev, enum ast_binary op, struct value a, struct value b,
                         struct span span)
{
	struct value result;
	int64_t i, j;
	double x, y;

	if (a.kind == V_ERROR || b.kind == V_ERROR)
		return VALUE_ERROR;
	if (value_int(a, &i) && value_int(b, &j))
		return int_binary(ev, op, i, j, span);
	if (value_number(a, &x) && value_number(b, &y))
		return float_binary(ev, op, x, y, span);
	if (is_opaque(a) || is_opaque(b)) {
		if (ev->trace && (value_is_device(a) || value_is_device(b)))
			return ev_unsettled(ev, opaque_of(ev, a, b, span), span, "this expression");
		return opaque_of(ev, a, b, span);
	}
	if (value_is_device(a) || value_is_device(b))
		return device_binary(ev, op, a, b, span);
	if (container_binary(ev, &(struct operation){ op, a, b, span }, &result))
		return result;
	return ev_error(ev, DIAG_E0202, span, "%s and %s have no '%s'", value_type_text(a),
	                value_type_text(b), ast_binary_text(op));
}

/* -1, 0, 1, or 2 when they have no order. */
static int order(struct value a, struct value b, uint32_t depth)
{
	int64_t i, j;
	double x, y;
	int c;

	if (value_int(a, &i) && value_int(b, &j))
		return (i > j) - (i < j);
	if (value_number(a, &x) && value_number(b, &y))
		return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
	if (a.kind == V_STR && b.kind == V_STR) {
		uint32_t n = a.as.string.n < b.as.string.n ? a.as.string.n : b.as.string.n;

		c = memcmp(a.as.string.p, b.as.string.p, n);
		return c ? (c > 0) - (c < 0)
		         : (a.as.string.n > b.as.string.n) - (a.as.string.n < b.as.string.n);
	}
	if (a.kind != b.kind || (a.kind != V_TUPLE && a.kind != V_LIST) || depth > 20)
		return 2;
	for (uint32_t k = 0; k < a.as.sequence->n && k < b.as.sequence->n; k++) {
		c = order(a.as.sequence->p[k], b.as.sequence->p[k], depth + 1);
		if (c != 0)
			return c;
	}
	return (a.as.sequence->n > b.as.sequence->n) - (a.as.sequence->n < b.as.sequence->n);
}

/* `item in container`; a range by arithmetic, not by counting. */
static struct value contains(struct eval *ev, struct value item, struct value container,
                             struct span span)
{
	if (container.kind == V_STR && item.kind == V_STR)
		return VALUE_BOOL(item.as.string.n == 0 ||
		                  memmem(container.as.string.p, container.as.string.n, item.as.string.p,
		                         item.as.string.n) != NULL);
	if (container.kind == V_DICT)
		return VALUE_BOOL(dict_find(container.as.dict, item) != NULL);
	if (container.kind == V_RANGE) {
		const struct host_range *r = container.as.range;
		int64_t i, n = range_count(r);

		return VALUE_BOOL(
			value_int(item, &i) && n > 0 &&
			(r->step > 0 ? i >= r->begin && i < r->end : i <= r->begin && i > r->end) &&
			((uint64_t)i - (uint64_t)r->begin) % (uint64_t)(r->step > 0 ? r->step : -r->step) == 0);
	}
	if (!value_is_sequence(container))
		return ev_error(ev, DIAG_E0202, span, "'in' needs a container on its right, not %s",
		                value_type_text(container));
	for (uint32_t i = 0; i < container.as.sequence->n; i++) {
		if (value_equal(container.as.sequence->p[i], item, 0))
			return VALUE_BOOL(true);
	}
	return VALUE_BOOL(false);
}

/* `a is b`: the same object; equal for what Python keeps only once. */
static bool identical(struct value a, struct value b)
{
	if (a.kind != b.kind)
		return false;
	if (value_is_sequence(a) || a.kind == V_DICT)
		return a.as.sequence == b.as.sequence;
	return value_equal(a, b, 0);
}

/* <, <=, >, >= of what has an order; comparisons with NaN are false. */
static struct value ordered(struct eval *ev, enum ast_compare op, struct value a, struct value b,
                            struct span span)
{
	int c = order(a, b, 0);

	if (c == 2 && (a.kind == V_FLOAT || b.kind == V_FLOAT))
		return VALUE_BOOL(false); /* not a number */
	if (c == 2)
		return ev_error(ev, DIAG_E0202, span, "%s and %s have no order", value_type_text(a),
		                value_type_text(b));
	return VALUE_BOOL(op == AST_LT ? c < 0 : op == AST_LE ? c <= 0 : op == AST_GT ? c > 0 : c >= 0);
}

/* Identity is known even of device values, their equality is an expression. */
struct value eval_compare(struct eval *ev, enum ast_compare op, struct value a, struct value b,
                          struct span span)
{
	bool is_identity = op == AST_IS || op == AST_IS_NOT;

	if (a.kind == V_ERROR || b.kind == V_ERROR)
		return VALUE_ERROR;
	if (is_opaque(a) || is_opaque(b)) {
		if (op == AST_IN || op == AST_NOT_IN || !is_identity)
			return opaque_of(ev, a, b, span);
		return a.kind == V_KERNEL || b.kind == V_KERNEL
		           ? VALUE_BOOL(identical(a, b) == (op == AST_IS))
		           : opaque_of(ev, a, b, span);
	}
	if (is_identity)
		return VALUE_BOOL(identical(a, b) == (op == AST_IS));
	if (op == AST_IN)
		return contains(ev, a, b, span);
	if (op == AST_NOT_IN) {
		struct value found = contains(ev, a, b, span);

		return found.kind == V_BOOL ? VALUE_BOOL(!found.as.boolean) : found;
	}
	if (value_is_device(a) || value_is_device(b)) {
		bool comparable =
			a.kind != V_NONE && b.kind != V_NONE && a.kind != V_STR && b.kind != V_STR;

		if (comparable)
			return device_compare(ev, op, a, b, span);
	}
	if (op == AST_EQ || op == AST_NE)
		return VALUE_BOOL(value_equal(a, b, 0) == (op == AST_EQ));
	return ordered(ev, op, a, b, span);
}
