/*
 * T.atomic_*: stores that other blocks may make to the same place at the same time.
 *
 *     T.atomic_add(C[i, j], x)         C[i, j] = atomic_add x
 *     T.atomic_add(C[by * 64, 0], t)   a parallel loop of such stores over the tile t
 *     T.atomic_add(n[0], 1, return_prev=True)    call(int32, atomic_add, address of n[0], 1)
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* The kind that the operation's name says. */
static enum atomic_kind atomic_kind(const char *name)
{
	for (int i = ATOMIC_ADD; i <= ATOMIC_STORE; i++) {
		const char *text = atomic_kind_text((enum atomic_kind)i);

		if (strncmp(name + strlen("atomic_"), text, strlen(text)) == 0)
			return (enum atomic_kind)i;
	}
	BUG("no atomic operation %s", name);
}

static bool is_element(struct value value)
{
	return value.kind == V_EXPR && value.as.expr->kind == EXPR_LOAD;
}

/* More than one element: the other side is a tile too. */
static bool is_tile(struct value value)
{
	return (value.kind == V_BUFFER && value.as.buffer->scope != SCOPE_VAR) ||
	       value.kind == V_REGION;
}

/* One element. */
static bool store_element(struct eval *ev, const struct buffer *buffer,
                          const struct expr *const *index, const struct expr *value,
                          const struct call *call)
{
	struct stmt *stmt = trace_stmt(ev, STMT_STORE, call->span);

	if (!stmt)
		return false;
	stmt->as.store.buffer = buffer;
	memcpy(stmt->as.store.index, index, buffer->rank * sizeof(*index));
	stmt->as.store.value = device_cast(ev, buffer->type, value);
	stmt->as.store.atomic = atomic_kind(call->builtin->name);
	return true;
}

/* The old value, for those that take it. */
static struct value previous_value(struct eval *ev, const struct call *call, struct dtype type)
{
	const struct expr *args[2];

	args[0] = is_element(call->slot[0]->value)
	              ? lang_address(ev, call->slot[0]->value.as.expr)
	              : lang_call_arg(ev, call->slot[0]->value, call->slot[0]->span);
	args[1] = args[0] ? lang_slot_expr(ev, call, 1, &type) : NULL;
	if (!args[1])
		return VALUE_ERROR;
	return VALUE_EXPR(
		expr_call(ev->pool, type, intern_text(ev->cx->names, call->builtin->name), args, 2));
}

/* Variables of the loop over a tile: one for each extent that is not 1, at least one. */
static struct stmt *tile_loop(struct eval *ev, const struct call *call, const struct region *tile,
                              const struct expr *of_dim[MAX_RANK])
{
	struct stmt *stmt = trace_stmt(ev, STMT_LOOP, call->span);
	struct loop *loop = stmt ? &stmt->as.loop : NULL;

	if (!stmt)
		return NULL;
	loop->kind = LOOP_PARALLEL;
	for (uint32_t d = 0; d < tile->buffer->rank; d++) {
		struct var *var;
		char name[8];

		of_dim[d] = NULL;
		if (tile->extent[d] == 1 && (d + 1 < tile->buffer->rank || loop->n_vars > 0))
			continue;
		snprintf(name, sizeof(name), "i%u", loop->n_vars);
		var = expr_new_var(ev->pool, VAR_LOOP, trace_name(ev, intern_text(ev->cx->names, name)),
		                   DTYPE_I32);
		var->min = 0;
		var->max = tile->extent[d] - 1;
		var->span = call->span;
		loop->vars[loop->n_vars] = var;
		loop->extents[loop->n_vars++] = expr_int(ev->pool, tile->extent[d]);
		of_dim[d] = expr_of_var(ev->pool, var);
	}
	return stmt;
}

/* The element of `region` that belongs to the loop's variables, which run over its longer
 * dimensions in order. */
static void element_of(struct eval *ev, const struct region *region, const struct loop *loop,
                       const struct expr *out[MAX_RANK])
{
	uint32_t next = 0;

	for (uint32_t d = 0; d < region->buffer->rank; d++) {
		out[d] = region->min[d];
		if (region->extent[d] != 1 && next < loop->n_vars)
			out[d] = expr_add(ev->pool, out[d], expr_of_var(ev->pool, loop->vars[next++]));
	}
}

/* Tiles: the longer dimensions of both sides must agree. */
static bool same_tile(struct eval *ev, const struct region *a, const struct region *b)
{
	uint32_t i = 0, j = 0;

	for (;;) {
		while (i < a->buffer->rank && a->extent[i] == 1)
			i++;
		while (j < b->buffer->rank && b->extent[j] == 1)
			j++;
		if (i == a->buffer->rank && j == b->buffer->rank)
			return true;
		if (i == a->buffer->rank || j == b->buffer->rank || a->extent[i++] != b->extent[j++])
			break;
	}
	ev_error(ev, DIAG_E0301, a->span, "the sides of this operation differ in shape");
	ev_note(ev, b->span, "the other side");
	return false;
}

/* A tile: a parallel loop of atomic stores. */
static struct value atomic_tile(struct eval *ev, struct call *call)
{
	bool has_tile = is_tile(call->slot[1]->value) ||
	                (is_tile(call->slot[0]->value) && is_element(call->slot[1]->value));
	const struct expr *of_dim[MAX_RANK], *at[MAX_RANK], *from[MAX_RANK], *value = NULL;
	struct tile_operand dst, src = { 0 };
	struct block *outer;
	struct stmt *stmt;
	bool ok, is_bulk = false;

	if (!arg_bool(ev, call, 4, &is_bulk) || !lang_operand(ev, call, call->slot[0], &dst) ||
	    (has_tile && !lang_operand(ev, call, call->slot[1], &src)) ||
	    (has_tile && dst.is_point && !lang_extents_from(ev, &dst, &src)) ||
	    (has_tile && src.is_point && !lang_extents_from(ev, &src, &dst)) ||
	    (has_tile && !same_tile(ev, &dst.region, &src.region)))
		return VALUE_ERROR;
	if (ev->trace->n_parallel)
		return ev_error(ev, DIAG_E0312, call->span, "%s of a tile stands inside a T.Parallel loop",
		                call->name);
	if (!has_tile) {
		value = lang_slot_expr(ev, call, 1, &dst.region.buffer->type);
		if (!value)
			return VALUE_ERROR;
	}
	stmt = tile_loop(ev, call, &dst.region, of_dim);
	if (!stmt)
		return VALUE_ERROR;
	outer = ev->trace->block;
	ev->trace->block = &stmt->as.loop.body;
	element_of(ev, &dst.region, &stmt->as.loop, at);
	if (has_tile) {
		element_of(ev, &src.region, &stmt->as.loop, from);
		value = expr_load(ev->pool, src.region.buffer, src.region.buffer->type, from,
		                  src.region.buffer->rank);
	}
	ok = store_element(ev, dst.region.buffer, at, value, call);
	if (ok && stmt->as.loop.body.stmts.n > 0)
		vec_last(&stmt->as.loop.body.stmts)->as.store.is_bulk = is_bulk;
	ev->trace->block = outer;
	return ok ? VALUE_NONE : VALUE_ERROR;
}

/* dst is an address: a call by name. */
static struct value atomic_call(struct eval *ev, struct call *call)
{
	struct value previous = previous_value(ev, call, DTYPE_F32);

	if (previous.kind == V_ERROR)
		return previous;
	return trace_evaluate(ev, previous, call->span) ? VALUE_NONE : VALUE_ERROR;
}

/* T.atomic_add(dst, value, memory_order, return_prev, use_tma, annotations) and its kin. */
static struct value t_atomic(struct eval *ev, struct call *call)
{
	struct value dst = call->slot[0]->value, value = call->slot[1]->value;
	bool return_prev = false;
	const struct expr *e;

	if (!trace_require(ev, call->span, call->name) || !arg_bool(ev, call, 3, &return_prev))
		return VALUE_ERROR;
	if (dst.kind == V_BUFFER && dst.as.buffer->scope == SCOPE_VAR)
		return ev_error(ev, DIAG_E0304, call->slot[0]->span,
		                "a variable belongs to one thread: no other can change it");
	if (return_prev)
		return previous_value(ev, call, is_element(dst) ? dst.as.expr->type : DTYPE_F32);
	if (is_tile(dst) || (is_element(dst) && is_tile(value)))
		return atomic_tile(ev, call);
	if (!is_element(dst))
		return atomic_call(ev, call);
	e = device_expr(ev, value, &dst.as.expr->type, call->slot[1]->span);
	return e && store_element(ev, dst.as.expr->as.buffer, dst.as.expr->args, e, call) ? VALUE_NONE
	                                                                                  : VALUE_ERROR;
}

/* The element `offset` behind the one that is loaded, in the last dimension. */
static const struct expr *next_element(struct eval *ev, const struct expr *load, uint32_t offset,
                                       const struct expr *index[MAX_RANK])
{
	memcpy(index, load->args, load->n_args * sizeof(*index));
	if (load->n_args > 0)
		index[load->n_args - 1] = expr_add_int(ev->pool, index[load->n_args - 1], offset);
	return expr_load(ev->pool, load->as.buffer, load->as.buffer->type, index, load->n_args);
}

/* T.atomic_addx2(dst, value), T.atomic_addx4: two or four neighbours at once. */
static struct value t_atomic_vector(struct eval *ev, struct call *call)
{
	struct value dst = call->slot[0]->value, value = call->slot[1]->value;
	uint32_t n = call->builtin->name[strlen(call->builtin->name) - 1] == '4' ? 4 : 2;
	const struct expr *at[MAX_RANK], *from[MAX_RANK];
	bool return_prev = false;
	struct dtype type;

	if (!trace_require(ev, call->span, call->name) || !arg_bool(ev, call, 2, &return_prev))
		return VALUE_ERROR;
	type = is_element(dst) ? dst.as.expr->type : DTYPE_F32;
	type.lanes = (uint16_t)n;
	if (!is_element(dst) || !is_element(value) || return_prev) {
		struct value result = lang_device_call(ev, call, call->builtin->name, type);

		if (return_prev || result.kind == V_ERROR)
			return result;
		return trace_evaluate(ev, result, call->span) ? VALUE_NONE : VALUE_ERROR;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct expr *e = next_element(ev, value.as.expr, i, from);

		next_element(ev, dst.as.expr, i, at);
		if (!store_element(ev, dst.as.expr->as.buffer, at, e, call))
			return VALUE_ERROR;
	}
	return VALUE_NONE;
}

/* T.atomic_load(src, memory_order) */
static struct value t_atomic_load(struct eval *ev, struct call *call)
{
	struct value src = call->slot[0]->value;
	const struct expr *arg = is_element(src) ? lang_address(ev, src.as.expr)
	                                         : lang_call_arg(ev, src, call->slot[0]->span);
	struct dtype type = is_element(src)        ? src.as.expr->type
	                    : src.kind == V_BUFFER ? src.as.buffer->type
	                                           : DTYPE_I32;

	if (!arg)
		return VALUE_ERROR;
	return VALUE_EXPR(
		expr_call(ev->pool, type, intern_text(ev->cx->names, "atomic_load"), &arg, 1));
}

static const struct builtin rows[] = {
#define T "tilelang.language"
	{ T, "atomic_add", "dst value memory_order? return_prev? use_tma? annotations?", t_atomic },
	{ T, "atomic_max", "dst value memory_order? return_prev? annotations?", t_atomic },
	{ T, "atomic_min", "dst value memory_order? return_prev? annotations?", t_atomic },
	{ T, "atomic_or", "dst value memory_order? return_prev?", t_atomic },
	{ T, "atomic_store", "dst src memory_order? return_prev?", t_atomic },
	{ T, "atomic_addx2", "dst value return_prev?", t_atomic_vector },
	{ T, "atomic_addx4", "dst value return_prev?", t_atomic_vector },
	{ T, "atomic_load", "src memory_order?", t_atomic_load },
#undef T
};

const struct builtin_table lang_atomics = { rows, sizeof(rows) / sizeof(*rows) };
