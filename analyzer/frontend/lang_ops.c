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

/* A[i, j] was evaluated to a load before the operation saw it. */
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

/* Options that are named but have no effect here; others are refused. */
static bool refuse_option(struct eval *ev, const struct call *call, uint32_t slot)
{
	const struct arg *arg = call->slot[slot];
	int truth = arg ? eval_truth(arg->value) : 0;

	if (truth == 0)
		return true;
	ev_error(ev, DIAG_E0204, arg->span, "this option of %s is known, but not supported yet",
	         call->name);
	return false;
}

/* Two points: a store of one element. */
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

bool lang_pair(struct eval *ev, const struct call *call, struct region *src, struct region *dst)
{
	struct tile_operand a, b;

	if (!lang_operand(ev, call, call->slot[0], &a) || !lang_operand(ev, call, call->slot[1], &b) ||
	    (a.is_point && !b.is_point && !lang_extents_from(ev, &a, &b)) ||
	    (b.is_point && !a.is_point && !lang_extents_from(ev, &b, &a)))
		return false;
	*src = a.region;
	*dst = b.region;
	return true;
}

/* T.copy(src, dst, *, coalesced_width, disable_tma, eviction_policy, prefer_instruction,
 * annotations, loop_layout) */
static struct value t_copy(struct eval *ev, struct call *call)
{
	struct tile_operand src, dst;
	int64_t coalesced_width = 0;
	struct op *op;

	if (!lang_operand(ev, call, call->slot[0], &src) ||
	    !lang_operand(ev, call, call->slot[1], &dst) || !arg_int(ev, call, 2, &coalesced_width) ||
	    !refuse_option(ev, call, 7))
		return VALUE_ERROR;
	if (src.is_point && dst.is_point)
		return copy_element(ev, call, &dst);
	if ((src.is_point && !lang_extents_from(ev, &src, &dst)) ||
	    (dst.is_point && !lang_extents_from(ev, &dst, &src)))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_copy);
	if (!op)
		return VALUE_ERROR;
	op->as.copy.src = src.region;
	op->as.copy.dst = dst.region;
	op->as.copy.coalesced_width = coalesced_width;
	return VALUE_NONE;
}

bool lang_policy(struct eval *ev, const struct arg *arg, int64_t *policy)
{
	if (!arg)
		return true;
	if (arg->value.kind == V_POLICY || arg->value.kind == V_INT) {
		*policy = arg->value.as.integer;
		return true;
	}
	if (arg->value.kind == V_OPAQUE)
		ev_unsettled(ev, arg->value, arg->span, "the gemm's policy");
	else
		ev_error(ev, DIAG_E0202, arg->span, "policy is one of T.GemmWarpPolicy, not %s",
		         value_type_text(arg->value));
	return false;
}

/* A point is a 1 x 1 box here: the verifier says what is wrong with it. */
static bool gemm_operand(struct eval *ev, const struct call *call, uint32_t slot,
                         struct region *out)
{
	struct tile_operand operand;

	if (!lang_operand(ev, call, call->slot[slot], &operand))
		return false;
	*out = operand.region;
	return true;
}

/* T.gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, k_pack, mbar, annotations) */
static struct value t_gemm(struct eval *ev, struct call *call)
{
	struct region a, b, c;
	bool transpose_a = false, transpose_b = false;
	int64_t policy = POLICY_SQUARE, k_pack = 1;
	const struct expr *clear_accum = NULL;
	struct op *op;

	if (!gemm_operand(ev, call, 0, &a) || !gemm_operand(ev, call, 1, &b) ||
	    !gemm_operand(ev, call, 2, &c) || !arg_bool(ev, call, 3, &transpose_a) ||
	    !arg_bool(ev, call, 4, &transpose_b) || !lang_policy(ev, call->slot[5], &policy) ||
	    !arg_expr(ev, call, 6, &clear_accum) || !arg_int(ev, call, 7, &k_pack) ||
	    !refuse_option(ev, call, 8))
		return VALUE_ERROR;
	if (k_pack != 1)
		return ev_error(ev, DIAG_E0204, call->slot[7]->span,
		                "k_pack is for other vendors' instructions");
	op = lang_new_op(ev, call, OP_gemm);
	if (!op)
		return VALUE_ERROR;
	op->as.gemm.a = a;
	op->as.gemm.b = b;
	op->as.gemm.c = c;
	op->as.gemm.transpose_a = transpose_a;
	op->as.gemm.transpose_b = transpose_b;
	op->as.gemm.policy = policy;
	op->as.gemm.clear_accum =
		expr_is_int(clear_accum ? clear_accum : expr_bool(ev->pool, false), NULL) &&
				!(clear_accum && expr_is_true(clear_accum))
			? NULL
			: clear_accum;
	return VALUE_NONE;
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

static struct value t_clear(struct eval *ev, struct call *call)
{
	return fill_with(ev, call, VALUE_INT(0), call->span);
}

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
	struct tile_operand src, dst;
	enum reduce_kind kind;
	int64_t dim = -1, rank;
	bool clear = true;
	struct op *op;

	if (!reduce_kind(call->builtin->name, &kind))
		BUG("no reduction %s", call->builtin->name);
	if (!lang_operand(ev, call, call->slot[0], &src) ||
	    !lang_operand(ev, call, call->slot[1], &dst) || !arg_int(ev, call, 2, &dim) ||
	    !arg_bool(ev, call, 3, &clear) || !refuse_option(ev, call, 5))
		return VALUE_ERROR;
	rank = src.region.buffer->rank;
	if (dim < -rank || dim >= rank)
		return ev_error(ev, DIAG_E0307, call->slot[2] ? call->slot[2]->span : call->span,
		                "dimension %lld does not exist: %s has %lld", (long long)dim,
		                sym_text(ev->cx->names, src.region.buffer->name), (long long)rank);
	op = lang_new_op(ev, call, OP_reduce);
	if (!op)
		return VALUE_ERROR;
	op->as.reduce.src = src.region;
	op->as.reduce.dst = dst.region;
	op->as.reduce.kind = kind;
	op->as.reduce.dim = dim < 0 ? dim + rank : dim;
	op->as.reduce.clear = clear;
	return VALUE_NONE;
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

/* T.sync_threads() */
static struct value t_sync_threads(struct eval *ev, struct call *call)
{
	if (call->slot[0] && call->slot[0]->value.kind != V_NONE)
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
