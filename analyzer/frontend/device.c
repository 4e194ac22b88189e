/*
 * Device arithmetic: TileLang's promotion. Literals take the other side's type (a float literal
 * beside an integer makes float32); floats win over integers, the wider type over the narrower
 * one; float16 beside bfloat16 meets in float32. Integers of different widths are left to
 * expr_binary.
 *
 *     S[i, j] * 0.5        float16 * 0.5f16
 *     F[i, j] + S[i, j]    F[i, j] + float32(S[i, j])
 *     n + 0.5              float32(n) + 0.5f32
 *     by * 128 + 4         integer arithmetic, simplified by the expression pool
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* Weights of operands are remembered, so that shared parts are visited once. */
uint32_t device_weight(struct eval *ev, const struct expr *e, uint32_t *height)
{
	const struct map_entry *known = map_find(&ev->weights, e->id);
	uint64_t nodes = 1, tallest = 0, packed;

	if (!known) {
		for (uint32_t i = 0; i < e->n_args; i++) {
			uint32_t below;

			nodes += device_weight(ev, e->args[i], &below);
			tallest = below > tallest ? below : tallest;
		}
		nodes = nodes > UINT32_MAX / 2 ? UINT32_MAX / 2 : nodes;
		packed = nodes << 32 | (tallest + 1);
		map_at(ev->cx->arena, &ev->weights, e->id)->value.number = packed;
	} else {
		packed = known->value.number;
	}
	if (height)
		*height = (uint32_t)packed;
	return (uint32_t)(packed >> 32);
}

/* Python's own folding needs host integers: `x = T.int32(4)` may size a tile. */
struct value device_value(const struct expr *e)
{
	int64_t integer;

	if (expr_is_int(e, &integer) && e->type.lanes == 1) {
		if (e->type.kind == TYPE_BOOL)
			return VALUE_BOOL(integer != 0);
		if (e->type.kind == TYPE_INT && e->type.bits == 32)
			return VALUE_INT(integer);
	}
	return VALUE_EXPR(e);
}

/* A host number as a constant of the type beside it. */
static const struct expr *device_literal(struct eval *ev, struct value value,
                                         const struct dtype *hint)
{
	double number;
	int64_t integer;
	bool known = value_number(value, &number);

	assert(known);
	if (value_int(value, &integer)) {
		if (hint && dtype_is_float(*hint))
			return expr_float(ev->pool, *hint, number);
		if (hint && hint->kind != TYPE_BOOL)
			return expr_int_typed(ev->pool, *hint, integer);
		return value.kind == V_BOOL ? expr_bool(ev->pool, value.as.boolean)
		                            : expr_int(ev->pool, integer);
	}
	if (hint && dtype_is_float(*hint))
		return expr_float(ev->pool, *hint, number);
	return expr_float(ev->pool, DTYPE_F32, number);
}

/* Buffers of T.alloc_var stand for their value; all else that is no number is refused. */
const struct expr *device_expr(struct eval *ev, struct value value, const struct dtype *hint,
                               struct span span)
{
	double number;

	if (value_number(value, &number))
		return device_literal(ev, value, hint);
	if (value.kind == V_EXPR)
		return value.as.expr;
	if (value.kind == V_BUFFER)
		trace_use(ev, value.as.buffer);
	if (value.kind == V_BUFFER && value.as.buffer->scope == SCOPE_VAR)
		return expr_load(ev->pool, value.as.buffer, value.as.buffer->type, NULL, 0);
	if (value.kind == V_OPAQUE) {
		ev_unsettled(ev, value, span, "this expression");
		return NULL;
	}
	if (value.kind == V_ERROR)
		return NULL;
	ev_error(ev, DIAG_E0202, span, "a number is needed here, not %s", value_type_text(value));
	if (value.kind == V_BUFFER && ev->has_reported)
		ev_help(ev, "index it: %s[...]", sym_text(ev->cx->names, value.as.buffer->name));
	return NULL;
}

/* Nothing when the type is that already. */
const struct expr *device_cast(struct eval *ev, struct dtype type, const struct expr *e)
{
	return dtype_equal(e->type, type) ? e : expr_cast(ev->pool, type, e);
}

/* A number that the host knows: it has no type of its own yet. */
static bool is_literal(struct value value)
{
	double number;

	return value_number(value, &number);
}

/* The type that two floats, or a float and an integer, meet in. */
static struct dtype float_of(struct dtype a, struct dtype b)
{
	if (!dtype_is_float(a))
		return b;
	if (!dtype_is_float(b))
		return a;
	if (a.bits != b.bits)
		return a.bits > b.bits ? a : b;
	return a.kind == b.kind ? a : a.bits == 32 ? DTYPE_F32 : a.bits == 16 ? DTYPE_F32 : a;
}

/*
 * Literals adapt to the other side; two device values meet in the wider float, integers are left
 * to expr_binary.
 */
bool device_pair(struct eval *ev, struct value a, struct value b, struct span span,
                 const struct expr *pair[2])
{
	struct dtype type;

	if (is_literal(a) && !is_literal(b)) {
		pair[1] = device_expr(ev, b, NULL, span);
		pair[0] = pair[1] ? device_expr(ev, a, &pair[1]->type, span) : NULL;
	} else {
		pair[0] = device_expr(ev, a, NULL, span);
		pair[1] = pair[0] ? device_expr(ev, b, is_literal(b) ? &pair[0]->type : NULL, span) : NULL;
	}
	if (!pair[0] || !pair[1])
		return false;
	if (dtype_is_float(pair[0]->type) || dtype_is_float(pair[1]->type)) {
		type = float_of(pair[0]->type, pair[1]->type);
		pair[0] = device_cast(ev, type, pair[0]);
		pair[1] = device_cast(ev, type, pair[1]);
	}
	return true;
}

/* The operator of expressions that a Python operator means; false for ** and @. */
static bool binary_op_of(enum ast_binary op, enum binary_op *out)
{
	switch (op) {
	case AST_ADD:
		*out = BIN_ADD;
		return true;
	case AST_SUB:
		*out = BIN_SUB;
		return true;
	case AST_MUL:
		*out = BIN_MUL;
		return true;
	case AST_DIV:
		*out = BIN_DIV;
		return true;
	case AST_FLOORDIV:
		*out = BIN_FLOORDIV;
		return true;
	case AST_MOD:
		*out = BIN_FLOORMOD;
		return true;
	case AST_BITAND:
		*out = BIN_BITAND;
		return true;
	case AST_BITOR:
		*out = BIN_BITOR;
		return true;
	case AST_BITXOR:
		*out = BIN_BITXOR;
		return true;
	case AST_SHL:
		*out = BIN_SHL;
		return true;
	case AST_SHR:
		*out = BIN_SHR;
		return true;
	case AST_POW:
	case AST_MATMUL:
		return false;
	}
	return false;
}

/* x ** 2 is x * x; any other power is a call of pow on floats. */
static struct value device_power(struct eval *ev, const struct expr *pair[2], struct value exponent)
{
	int64_t n;

	if (value_int(exponent, &n) && n == 2)
		return device_value(expr_binary(ev->pool, BIN_MUL, pair[0], pair[0]));
	if (!dtype_is_float(pair[0]->type)) {
		pair[0] = device_cast(ev, DTYPE_F32, pair[0]);
		pair[1] = device_cast(ev, DTYPE_F32, pair[1]);
	}
	return device_value(expr_math(ev->pool, MATH_pow, pair, 2));
}

/* Does a constant zero stand on the right of a division? */
static bool divides_by_zero(enum ast_binary op, const struct expr *b)
{
	int64_t value;

	return (op == AST_FLOORDIV || op == AST_MOD || op == AST_DIV) && expr_is_int(b, &value) &&
	       value == 0;
}

/* `/` of integers is refused, as in TileLang: it could mean either of two operations. */
struct value device_binary(struct eval *ev, enum ast_binary op, struct value a, struct value b,
                           struct span span)
{
	const struct expr *pair[2];
	enum binary_op binary;
	bool is_float, bits;

	if (!device_pair(ev, a, b, span, pair))
		return VALUE_ERROR;
	is_float = dtype_is_float(pair[0]->type);
	bits =
		op == AST_BITAND || op == AST_BITOR || op == AST_BITXOR || op == AST_SHL || op == AST_SHR;
	if (op == AST_POW)
		return device_power(ev, pair, b);
	if (!binary_op_of(op, &binary) || (is_float && bits))
		return ev_error(ev, DIAG_E0202, span, "device expressions of this type have no '%s'",
		                ast_binary_text(op));
	if (divides_by_zero(op, pair[1]))
		return ev_error(ev, DIAG_E0214, span, "division by zero");
	if (op == AST_DIV && !is_float) {
		struct value result =
			ev_error(ev, DIAG_E0202, span, "'/' of two integers on the device is ambiguous");

		ev_help(ev, "write // for the floor, or cast a side to a float type");
		return result;
	}
	if (op == AST_FLOORDIV && is_float) {
		const struct expr *quotient = expr_binary(ev->pool, BIN_DIV, pair[0], pair[1]);

		return device_value(expr_math(ev->pool, MATH_floor, &quotient, 1));
	}
	if (op == AST_MOD && is_float)
		return device_value(expr_math(ev->pool, MATH_fmod, pair, 2));
	return device_value(expr_binary(ev->pool, binary, pair[0], pair[1]));
}

/* Whole buffers compare by identity, so that `A is B`-like host tests work on them. */
struct value device_compare(struct eval *ev, enum ast_compare op, struct value a, struct value b,
                            struct span span)
{
	static const enum binary_op ops[] = {
		[AST_EQ] = BIN_EQ, [AST_NE] = BIN_NE, [AST_LT] = BIN_LT,
		[AST_LE] = BIN_LE, [AST_GT] = BIN_GT, [AST_GE] = BIN_GE,
	};
	const struct expr *pair[2];

	assert(op <= AST_GE);
	if (a.kind == V_BUFFER && b.kind == V_BUFFER && (op == AST_EQ || op == AST_NE) &&
	    a.as.buffer->scope != SCOPE_VAR)
		return VALUE_BOOL((a.as.buffer == b.as.buffer) == (op == AST_EQ));
	if (!device_pair(ev, a, b, span, pair))
		return VALUE_ERROR;
	return device_value(expr_binary(ev->pool, ops[op], pair[0], pair[1]));
}

/* An expression that is true where `e` is not 0. */
static const struct expr *as_condition(struct eval *ev, const struct expr *e)
{
	if (e->type.kind == TYPE_BOOL)
		return e;
	return expr_binary(ev->pool, BIN_NE, e,
	                   dtype_is_float(e->type) ? expr_float(ev->pool, e->type, 0)
	                                           : expr_int_typed(ev->pool, e->type, 0));
}

/* `not x` of a number means x == 0. */
struct value device_unary(struct eval *ev, enum ast_unary op, struct value a, struct span span)
{
	const struct expr *e = device_expr(ev, a, NULL, span);

	if (!e)
		return VALUE_ERROR;
	if (op == AST_POS)
		return device_value(e);
	if (op == AST_NOT)
		return device_value(expr_unary(ev->pool, UN_NOT, as_condition(ev, e)));
	if (op == AST_INVERT && dtype_is_float(e->type))
		return ev_error(ev, DIAG_E0202, span, "a float has no '~'");
	return device_value(expr_unary(ev->pool, op == AST_NEG ? UN_NEG : UN_BITNOT, e));
}

/* Both sides become conditions; neither is skipped on the device. */
struct value device_logical(struct eval *ev, bool is_and, struct value a, struct value b,
                            struct span span)
{
	const struct expr *x = device_expr(ev, a, NULL, span),
					  *y = x ? device_expr(ev, b, NULL, span) : NULL;

	if (!x || !y)
		return VALUE_ERROR;
	return device_value(
		expr_binary(ev->pool, is_and ? BIN_AND : BIN_OR, as_condition(ev, x), as_condition(ev, y)));
}

/* Both sides in their common type. */
struct value device_select(struct eval *ev, struct value condition, struct value a, struct value b,
                           struct span span)
{
	const struct expr *c = device_expr(ev, condition, NULL, span), *pair[2];
	double x, y;

	assert(eval_truth(condition) < 0 && "a condition that the host knows chooses there");
	if (!c)
		return VALUE_ERROR;
	if (value_number(a, &x) && value_number(b, &y) && (a.kind == V_FLOAT || b.kind == V_FLOAT)) {
		a = VALUE_FLOAT(x);
		b = VALUE_FLOAT(y);
	}
	if (!device_pair(ev, a, b, span, pair))
		return VALUE_ERROR;
	return device_value(expr_select(ev->pool, as_condition(ev, c), pair[0], pair[1]));
}

/* Subscripts of buffers */

/* Items of an index: a tuple's, or the one value. */
static uint32_t index_items(const struct value *index, const struct value **items)
{
	if (index->kind == V_TUPLE) {
		*items = index->as.sequence->p;
		return index->as.sequence->n;
	}
	*items = index;
	return 1;
}

/* As many indices as the buffer has dimensions. */
static bool check_rank(struct eval *ev, const struct buffer *buffer, uint32_t n, struct span span)
{
	if (n == buffer->rank)
		return true;
	ev_error(ev, DIAG_E0303, span, "%s has %u dimension%s, this gives %u ind%s",
	         sym_text(ev->cx->names, buffer->name), buffer->rank, buffer->rank == 1 ? "" : "s", n,
	         n == 1 ? "ex" : "ices");
	ev_note(ev, buffer->span, "%s is declared here", sym_text(ev->cx->names, buffer->name));
	return false;
}

/* One index; a negative constant counts from the end. */
static const struct expr *index_expr(struct eval *ev, const struct buffer *buffer, uint32_t dim,
                                     struct value item, struct span span)
{
	const struct expr *e = device_expr(ev, item, NULL, span);
	int64_t constant;

	if (!e)
		return NULL;
	if (!dtype_is_int(e->type)) {
		ev_error(ev, DIAG_E0202, span, "an index must be an integer");
		return NULL;
	}
	if (expr_is_int(e, &constant) && constant < 0)
		e = expr_add(ev->pool, buffer->shape[dim], e);
	return e;
}

/* The span of item `i` of an index whose whole is `span`; `e` may be NULL. */
static struct span item_span(const struct ast_expr *index, uint32_t i)
{
	if (index->kind == EX_TUPLE && i < index->as.items.n &&
	    index->as.items.p[i]->kind != EX_STARRED)
		return index->as.items.p[i]->span;
	return index->span;
}

/* Of a variable (rank 0) there is no index at all. */
bool device_index(struct eval *ev, const struct buffer *buffer, struct value index,
                  struct span span, const struct expr *out[MAX_RANK])
{
	const struct value *items;
	uint32_t n = index.kind == V_NONE ? 0 : index_items(&index, &items);

	if (!check_rank(ev, buffer, n, span))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		out[i] = index_expr(ev, buffer, i, items[i], span);
		if (!out[i])
			return false;
	}
	return true;
}

/* begin and extent of a slice in one dimension. */
static bool slice_range(struct eval *ev, struct region_value *region, uint32_t dim,
                        const struct value *slice, struct span span)
{
	const struct buffer *buffer = region->buffer;
	const struct expr *begin = expr_int(ev->pool, 0), *end = buffer->shape[dim];
	int64_t step = 1, extent;

	if (slice[0].kind != V_NONE)
		begin = index_expr(ev, buffer, dim, slice[0], span);
	if (slice[1].kind != V_NONE)
		end = index_expr(ev, buffer, dim, slice[1], span);
	if (!begin || !end)
		return false;
	if (slice[2].kind != V_NONE && (!value_int(slice[2], &step) || step != 1)) {
		ev_error(ev, DIAG_E0204, span, "slices of buffers with a step are not supported");
		return false;
	}
	if (!expr_is_int(expr_sub(ev->pool, end, begin), &extent)) {
		ev_error(ev, DIAG_E0308, span, "the extent of this slice is not constant");
		ev_help(ev, "give it a constant extent, as in begin : begin + 64");
		return false;
	}
	if (extent < 1) {
		ev_error(ev, DIAG_E0308, span, "this slice has extent %lld", (long long)extent);
		return false;
	}
	region->min[dim] = begin;
	region->extent[dim] = extent;
	return true;
}

/* Does an item of the index stand for more than one element? */
static bool has_slice(const struct value *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (items[i].kind == V_SLICE || items[i].kind == V_ELLIPSIS)
			return true;
	}
	return false;
}

/* Plain indices give extent 1, slices their own. */
static struct value region_of(struct eval *ev, struct buffer *buffer, const struct value *items,
                              uint32_t n, const struct ast_expr *index)
{
	struct region_value *region = arena_new(ev->cx->arena, struct region_value);

	region->buffer = buffer;
	if (!check_rank(ev, buffer, n, index->span))
		return VALUE_ERROR;
	for (uint32_t i = 0; i < n; i++) {
		struct span span = item_span(index, i);

		if (items[i].kind == V_SLICE) {
			if (!slice_range(ev, region, i, items[i].as.slice, span))
				return VALUE_ERROR;
			continue;
		}
		region->min[i] = index_expr(ev, buffer, i, items[i], span);
		region->extent[i] = 1;
		if (!region->min[i])
			return VALUE_ERROR;
	}
	return (struct value){ .kind = V_REGION, .as.region = region };
}

bool device_has_slice(const struct value *index)
{
	const struct value *items;
	uint32_t n = index_items(index, &items);

	return index->kind != V_NONE && has_slice(items, n);
}

struct value device_region(struct eval *ev, struct buffer *buffer, const struct value *index,
                           struct span span)
{
	const struct value *items;
	uint32_t n = index_items(index, &items);

	return region_of(ev, buffer, items, n, &(struct ast_expr){ .kind = EX_NONE, .span = span });
}

/* As many lanes as the region has elements. */
const struct expr *device_broadcast(struct eval *ev, const struct expr *e,
                                    const struct region_value *region)
{
	struct dtype type = e->type;
	int64_t lanes = 1;

	for (uint32_t i = 0; i < region->buffer->rank; i++)
		lanes *= region->extent[i];
	type.lanes = (uint16_t)lanes;
	return lanes == 1 ? e
	                  : expr_call(ev->pool, type, intern_text(ev->cx->names, "broadcast"), &e, 1);
}

/* A vector index (T.Ramp) gives as many elements. */
struct dtype device_element_type(const struct buffer *buffer, const struct expr *const *index)
{
	struct dtype type = buffer->type;

	for (uint32_t i = 0; i < buffer->rank; i++) {
		if (index[i]->type.lanes > 1)
			type.lanes = (uint16_t)(type.lanes * index[i]->type.lanes);
	}
	return type;
}

/* All plain indices give a load, which tile operations take as the corner of a tile. */
struct value device_subscript(struct eval *ev, struct buffer *buffer, struct value index,
                              const struct ast_expr *e)
{
	const struct ast_expr *index_ast = e->as.subscript.index;
	const struct expr *at[MAX_RANK];
	const struct value *items;
	uint32_t n = index_items(&index, &items);

	trace_use(ev, buffer);
	if (has_slice(items, n))
		return region_of(ev, buffer, items, n, index_ast);
	if (buffer->scope == SCOPE_VAR && n == 1 && items[0].kind == V_INT && items[0].as.integer == 0)
		return VALUE_EXPR(expr_load(ev->pool, buffer, buffer->type, NULL, 0));
	if (!check_rank(ev, buffer, n, index_ast->span))
		return VALUE_ERROR;
	for (uint32_t i = 0; i < n; i++) {
		at[i] = index_expr(ev, buffer, i, items[i], item_span(index_ast, i));
		if (!at[i])
			return VALUE_ERROR;
	}
	return VALUE_EXPR(expr_load(ev->pool, buffer, device_element_type(buffer, at), at, n));
}
