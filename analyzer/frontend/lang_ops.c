/*
 * T.* operations on tiles: they become OP statements. Shapes are checked by tile_verify; here
 * operands turn into regions.
 *
 *     T.copy(A[by * 128, 0], A_tile)    A[by*128, 0] is a point: it stands for the box whose
 *                                       extents the other side gives, aligned at the last
 *                                       dimension, with 1 in front
 *     T.copy(A[0:64, :], B[0, 0])       slices give their own extents
 *     T.fill(acc, 0)                    a name alone is the whole buffer
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* A[i, j] was evaluated to a load before the operation saw it: the corner of a tile. */
static bool is_load(const struct value value)
{
	return value.kind == V_EXPR && value.as.expr->kind == EXPR_LOAD;
}

/* A buffer by its name alone stands for all of it. */
static bool whole_operand(struct eval *ev, struct buffer *buffer, struct tile_operand *out)
{
	for (uint32_t i = 0; i < buffer->rank; i++) {
		if (buffer_extent(buffer, i) < 0) {
			ev_error(ev, DIAG_E0308, out->region.span,
			         "extent %u of %s is not constant, so it is no tile", i,
			         sym_text(ev->cx->names, buffer->name));
			ev_help(ev, "give the corner of the tile: %s[...]",
			        sym_text(ev->cx->names, buffer->name));
			return false;
		}
	}
	out->region = region_whole(ev->pool, buffer, out->region.span);
	return true;
}

bool lang_operand(struct eval *ev, const struct call *call, const struct arg *arg,
                  struct tile_operand *out)
{
	*out = (struct tile_operand){ .region.span = arg->span };
	if (arg->value.kind == V_BUFFER)
		trace_use(ev, arg->value.as.buffer);
	if (arg->value.kind == V_BUFFER && arg->value.as.buffer->scope != SCOPE_VAR)
		return whole_operand(ev, arg->value.as.buffer, out);
	if (arg->value.kind == V_REGION) {
		out->region.buffer = arg->value.as.region->buffer;
		memcpy(out->region.min, arg->value.as.region->min, sizeof(out->region.min));
		memcpy(out->region.extent, arg->value.as.region->extent, sizeof(out->region.extent));
		return true;
	}
	if (is_load(arg->value)) {
		const struct expr *e = arg->value.as.expr;

		out->is_point = true;
		out->region.buffer = e->as.buffer;
		for (uint32_t i = 0; i < e->n_args; i++) {
			out->region.min[i] = e->args[i];
			out->region.extent[i] = 1;
		}
		return true;
	}
	if (arg->value.kind == V_OPAQUE)
		ev_unsettled(ev, arg->value, arg->span, "this operand");
	else if (arg->value.kind != V_ERROR)
		ev_error(ev, DIAG_E0202, arg->span, "%s needs a buffer or a part of one here, not %s",
		         call->name, value_type_text(arg->value));
	return false;
}

bool lang_extents_from(struct eval *ev, struct tile_operand *point,
                       const struct tile_operand *other)
{
	uint32_t rank = point->region.buffer->rank, n = other->region.buffer->rank;

	assert(point->is_point && rank <= MAX_RANK && n <= MAX_RANK);
	for (uint32_t i = 0; i < rank; i++)
		point->region.extent[i] = 1;
	for (uint32_t i = 0; i < n; i++) {
		if (i < rank) {
			point->region.extent[rank - 1 - i] = other->region.extent[n - 1 - i];
		} else if (other->region.extent[n - 1 - i] != 1) {
			ev_error(ev, DIAG_E0303, point->region.span,
			         "%s has %u dimensions, fewer than the other side's %u",
			         sym_text(ev->cx->names, point->region.buffer->name), rank, n);
			ev_note(ev, other->region.span, "the other side");
			return false;
		}
	}
	return true;
}

struct op *lang_new_op(struct eval *ev, const struct call *call, enum op_kind kind)
{
	struct stmt *stmt;

	if (!trace_require(ev, call->span, call->name))
		return NULL;
	if (ev->trace->n_parallel) {
		ev_error(ev, DIAG_E0312, call->span, "%s stands inside a T.Parallel loop", call->name);
		ev_help(ev, "write the elements' arithmetic there, or move the operation out of the loop");
		return NULL;
	}
	stmt = trace_stmt(ev, STMT_OP, call->span);
	if (!stmt)
		return NULL;
	assert(kind < N_OP_KINDS);
	stmt->as.op.kind = kind;
	return &stmt->as.op;
}

/* Two points: a store of one element, which may stand where tile operations may not. */
static struct value copy_element(struct eval *ev, const struct call *call,
                                 const struct tile_operand *dst)
{
	struct value index = value_sequence(ev->cx->arena, V_TUPLE);

	for (uint32_t i = 0; i < dst->region.buffer->rank; i++)
		vec_push(ev->cx->arena, index.as.sequence, device_value(dst->region.min[i]));
	return trace_store(ev, (struct buffer *)(uintptr_t)dst->region.buffer, index,
	                   call->slot[0]->value, call->span)
	           ? VALUE_NONE
	           : VALUE_ERROR;
}

/* A side that is a point gets the other side's extents; two points stay boxes of one element. */
static bool settle_pair(struct eval *ev, struct tile_operand *a, struct tile_operand *b)
{
	return (!a->is_point || b->is_point || lang_extents_from(ev, a, b)) &&
	       (!b->is_point || a->is_point || lang_extents_from(ev, b, a));
}

bool lang_pair(struct eval *ev, const struct call *call, struct region *src, struct region *dst)
{
	struct tile_operand a, b;

	if (!lang_operand(ev, call, call->slot[0], &a) || !lang_operand(ev, call, call->slot[1], &b) ||
	    !settle_pair(ev, &a, &b))
		return false;
	*src = a.region;
	*dst = b.region;
	return true;
}

/* T.copy(src, dst, *, coalesced_width, disable_tma, eviction_policy, prefer_instruction,
 * annotations, loop_layout) */
static struct value t_copy(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		[2] = PARAM(INT, copy.coalesced_width),
		[7] = { .kind = PARAM_REFUSED },
	};
	struct op op = { .kind = OP_copy };
	struct tile_operand src, dst;

	if (!lang_operand(ev, call, call->slot[0], &src) ||
	    !lang_operand(ev, call, call->slot[1], &dst) || !lang_read(ev, call, params, &op))
		return VALUE_ERROR;
	if (src.is_point && dst.is_point)
		return copy_element(ev, call, &dst);
	if (!settle_pair(ev, &src, &dst))
		return VALUE_ERROR;
	op.as.copy.src = src.region;
	op.as.copy.dst = dst.region;
	return lang_put(ev, call, &op);
}

/* T.gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, k_pack, mbar, annotations) */
static struct value t_gemm(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(TILE, gemm.a),
		PARAM(TILE, gemm.b),
		PARAM(TILE, gemm.c),
		PARAM(BOOL, gemm.transpose_a),
		PARAM(BOOL, gemm.transpose_b),
		PARAM(POLICY, gemm.policy),
		PARAM(CONDITION, gemm.clear_accum),
		[8] = { .kind = PARAM_REFUSED },
	};
	struct op op = { .kind = OP_gemm, .as.gemm.policy = POLICY_SQUARE };
	int64_t k_pack = 1;

	if (!lang_read(ev, call, params, &op) || !arg_int(ev, call, 7, &k_pack))
		return VALUE_ERROR;
	if (k_pack != 1)
		return ev_error(ev, DIAG_E0204, call->slot[7]->span,
		                "k_pack is for other vendors' instructions");
	return lang_put(ev, call, &op);
}

/* A variable of T.alloc_var is stored to. */
static struct value fill_with(struct eval *ev, struct call *call, struct value value,
                              struct span span)
{
	const struct arg *target = call->slot[0];
	struct tile_operand dst;
	const struct expr *e;
	struct op *op;

	if (target->value.kind == V_BUFFER && target->value.as.buffer->scope == SCOPE_VAR)
		return trace_store(ev, target->value.as.buffer, VALUE_NONE, value, call->span)
		           ? VALUE_NONE
		           : VALUE_ERROR;
	if (!lang_operand(ev, call, call->slot[0], &dst))
		return VALUE_ERROR;
	e = device_expr(ev, value, &dst.region.buffer->type, span);
	op = e ? lang_new_op(ev, call, OP_fill) : NULL;
	if (!op)
		return VALUE_ERROR;
	op->as.fill.dst = dst.region;
	op->as.fill.value = device_cast(ev, dst.region.buffer->type, e);
	return VALUE_NONE;
}

/* T.clear(buffer) */
static struct value t_clear(struct eval *ev, struct call *call)
{
	return fill_with(ev, call, VALUE_INT(0), call->span);
}

/* T.fill(buffer, value) */
static struct value t_fill(struct eval *ev, struct call *call)
{
	return fill_with(ev, call, call->slot[1]->value, call->slot[1]->span);
}

/* The kind that the operation's name says. */
static bool reduce_kind(const char *name, enum reduce_kind *kind)
{
	static const struct {
		const char *name;
		enum reduce_kind kind;
	} kinds[] = {
		{ "reduce_sum", REDUCE_SUM },       { "reduce_max", REDUCE_MAX },
		{ "reduce_min", REDUCE_MIN },       { "reduce_abssum", REDUCE_ABSSUM },
		{ "reduce_absmax", REDUCE_ABSMAX }, { "reduce_bitand", REDUCE_BITAND },
		{ "reduce_bitor", REDUCE_BITOR },   { "reduce_bitxor", REDUCE_BITXOR },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		*kind = kinds[i].kind;
		if (strcmp(kinds[i].name, name) == 0)
			return true;
	}
	return false;
}

/* T.reduce_sum(buffer, out, dim=-1, clear=True, batch=1, nan_propagate=False) and its kin. */
static struct value t_reduce(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(TILE, reduce.src),   PARAM(TILE, reduce.dst),         PARAM(INT, reduce.dim),
		PARAM(BOOL, reduce.clear), [5] = { .kind = PARAM_REFUSED },
	};
	struct op op = { .kind = OP_reduce, .as.reduce = { .dim = -1, .clear = true } };
	enum reduce_kind kind;

	if (!reduce_kind(call->builtin->name, &kind))
		BUG("no reduction %s", call->builtin->name);
	op.as.reduce.kind = kind;
	if (!lang_read(ev, call, params, &op) ||
	    !lang_dim(ev, call, 2, op.as.reduce.src.buffer, &op.as.reduce.dim))
		return VALUE_ERROR;
	return lang_put(ev, call, &op);
}

/* T.use_swizzle(panel_size, order="row", enable=True) */
static struct value t_use_swizzle(struct eval *ev, struct call *call)
{
	struct trace *trace = trace_require(ev, call->span, call->name);
	struct str order = str_of("row");
	int64_t panel_size = 0;
	bool enable = true, by_column;

	if (!trace || !arg_int(ev, call, 0, &panel_size) || !arg_str(ev, call, 1, &order) ||
	    !arg_bool(ev, call, 2, &enable))
		return VALUE_ERROR;
	by_column = str_is(order, "col") || str_is(order, "column");
	if (!by_column && !str_is(order, "row"))
		return ev_error(ev, DIAG_E0202, call->slot[1]->span, "order is \"row\" or \"column\"");
	if (panel_size < 1 || panel_size > INT32_MAX)
		return ev_error(ev, DIAG_E0202, call->slot[0]->span, "panel_size is at least 1");
	if (enable)
		trace->launch->rasterization = (struct rasterization){ panel_size, by_column, call->span };
	return VALUE_NONE;
}

/*
 * T.sync_threads(), or with a barrier's number T.sync_threads(barrier_id, arrive_count) as a call.
 */
static struct value t_sync_threads(struct eval *ev, struct call *call)
{
	if (lang_is_given(call, 0))
		return lang_device_call(ev, call, "named_barrier_sync", DTYPE(TYPE_VOID, 0));
	return trace_stmt(ev, STMT_SYNC, call->span) ? VALUE_NONE : VALUE_ERROR;
}

/* Hints and debugging aids that change nothing of what is computed. */
static struct value t_ignored(struct eval *ev, struct call *call)
{
	(void)ev;
	(void)call;
	return VALUE_NONE;
}

static const struct builtin rows[] = {
#define T "tilelang.language"
#define REDUCE(name) \
	{ \
		T, name, "buffer out dim? clear? batch? nan_propagate? annotations?", t_reduce \
	}
	{ T, "copy",
	  "src dst | coalesced_width disable_tma eviction_policy prefer_instruction annotations "
	  "loop_layout",
	  t_copy },
	{ T, "gemm", "A B C transpose_A? transpose_B? policy? clear_accum? k_pack? mbar? annotations?",
	  t_gemm },
	{ T, "clear", "buffer", t_clear },
	{ T, "fill", "buffer value", t_fill },
	REDUCE("reduce_sum"),
	REDUCE("reduce_max"),
	REDUCE("reduce_min"),
	REDUCE("reduce_abssum"),
	REDUCE("reduce_absmax"),
	REDUCE("reduce_bitand"),
	REDUCE("reduce_bitor"),
	REDUCE("reduce_bitxor"),
	{ T, "use_swizzle", "panel_size order? enable?", t_use_swizzle },
	{ T, "sync_threads", "barrier_id? arrive_count?", t_sync_threads },
	{ T, "print", "**", t_ignored },
	{ T, "device_assert", "**", t_ignored },
	{ T, "assume", "**", t_ignored },
#undef REDUCE
#undef T
};

const struct builtin_table lang_ops = { rows, sizeof(rows) / sizeof(*rows) };
