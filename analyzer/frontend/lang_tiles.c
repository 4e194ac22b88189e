/*
 * Tile operations beside copies, gemms, fills and reductions: scans, reducers, transposes, windows
 * of convolutions, and the asynchronous forms, which the kernel waits for itself.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Scans */

/* T.cumsum(src, dst=None, dim=0, reverse=False), T.cummax */
static struct value t_scan(struct eval *ev, struct call *call)
{
	bool is_max = strstr(call->builtin->name, "max") != NULL, reverse = false,
		 in_place = !call->slot[1] || call->slot[1]->value.kind == V_NONE;
	struct tile_operand src, dst;
	int64_t dim = 0, rank;
	struct op *op;

	if (!lang_operand(ev, call, call->slot[0], &src) || !arg_int(ev, call, 2, &dim) ||
	    !arg_bool(ev, call, 3, &reverse))
		return VALUE_ERROR;
	dst = src;
	if (!in_place && !lang_operand(ev, call, call->slot[1], &dst))
		return VALUE_ERROR;
	rank = src.region.buffer->rank;
	if (dim < -rank || dim >= rank)
		return ev_error(ev, DIAG_E0307, call->span, "dimension %lld does not exist: %s has %lld",
		                (long long)dim, sym_text(ev->cx->names, src.region.buffer->name),
		                (long long)rank);
	op = lang_new_op(ev, call, OP_scan);
	if (!op)
		return VALUE_ERROR;
	op->as.scan.src = src.region;
	op->as.scan.dst = dst.region;
	op->as.scan.kind = is_max ? REDUCE_MAX : REDUCE_SUM;
	op->as.scan.dim = dim < 0 ? dim + rank : dim;
	op->as.scan.reverse = reverse;
	return VALUE_NONE;
}

/* Reducers */

/* T.alloc_reducer(shape, dtype, op="sum", replication=None) */
static struct value t_alloc_reducer(struct eval *ev, struct call *call)
{
	struct tensor_type type = { .type = DTYPE_F32 };
	struct str text = str_of("sum");
	enum reduce_kind kind;
	struct value buffer;

	if (!arg_dtype(ev, call, 1, &type.type) || !arg_str(ev, call, 2, &text) ||
	    !lang_shape(ev, call->slot[0]->value, call->slot[0]->span, &type))
		return VALUE_ERROR;
	if (str_is(text, "sum"))
		kind = REDUCE_SUM;
	else if (str_is(text, "max"))
		kind = REDUCE_MAX;
	else if (str_is(text, "min"))
		kind = REDUCE_MIN;
	else
		return ev_error(ev, DIAG_E0202, call->slot[2]->span,
		                "a reducer's op is \"sum\", \"max\" or \"min\"");
	buffer = lang_new_buffer(ev, call, SCOPE_FRAGMENT, &type);
	if (buffer.kind == V_BUFFER)
		map_at(ev->cx->arena, &ev->trace->reducers, buffer.as.buffer->id)->value.number = 1 + kind;
	return buffer;
}

/* The reducer that an argument names; false after an error. */
static bool reducer_of(struct eval *ev, const struct call *call, const struct buffer *buffer,
                       enum reduce_kind *kind)
{
	const struct map_entry *entry = buffer ? map_find(&ev->trace->reducers, buffer->id) : NULL;

	if (!entry) {
		ev_error(ev, DIAG_E0202, call->slot[0]->span, "this is no buffer of T.alloc_reducer");
		return false;
	}
	*kind = (enum reduce_kind)(entry->value.number - 1);
	return true;
}

/* What changes nothing. */
static const struct expr *identity_of(struct eval *ev, enum reduce_kind kind, struct dtype type)
{
	int64_t largest;

	if (kind == REDUCE_SUM)
		return expr_int_typed(ev->pool, type, 0);
	if (dtype_is_float(type))
		return expr_float(ev->pool, type, kind == REDUCE_MAX ? -HUGE_VAL : HUGE_VAL);
	largest =
		type.bits >= 63 ? INT64_MAX : ((int64_t)1 << (type.bits - (type.kind != TYPE_UINT))) - 1;
	if (kind == REDUCE_MIN)
		return expr_int_typed(ev->pool, type, largest);
	return expr_int_typed(ev->pool, type, type.kind == TYPE_UINT ? 0 : -largest - 1);
}

/* T.reducer_init(reducer, init=None) */
static struct value t_reducer_init(struct eval *ev, struct call *call)
{
	const struct expr *value = NULL;
	struct tile_operand dst;
	enum reduce_kind kind;
	struct op *op;

	if (!lang_operand(ev, call, call->slot[0], &dst) ||
	    !reducer_of(ev, call, dst.region.buffer, &kind))
		return VALUE_ERROR;
	if (call->slot[1] && call->slot[1]->value.kind != V_NONE && !arg_expr(ev, call, 1, &value))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_fill);
	if (!op)
		return VALUE_ERROR;
	op->as.fill.dst = dst.region;
	op->as.fill.value = value ? device_cast(ev, dst.region.buffer->type, value)
	                          : identity_of(ev, kind, dst.region.buffer->type);
	return VALUE_NONE;
}

/* T.reducer_update(reducer[i], value): combines the element with the value. */
static struct value t_reducer_update(struct eval *ev, struct call *call)
{
	static const enum binary_op ops[] = {
		[REDUCE_SUM] = BIN_ADD,
		[REDUCE_MAX] = BIN_MAX,
		[REDUCE_MIN] = BIN_MIN,
	};
	struct value target = call->slot[0]->value, index = value_sequence(ev->cx->arena, V_TUPLE);
	const struct expr *load, *value;
	enum reduce_kind kind;

	if (target.kind != V_EXPR || target.as.expr->kind != EXPR_LOAD)
		return ev_error(ev, DIAG_E0202, call->slot[0]->span, "%s updates an element of a reducer",
		                call->name);
	load = target.as.expr;
	if (!reducer_of(ev, call, load->as.buffer, &kind))
		return VALUE_ERROR;
	value = device_expr(ev, call->slot[1]->value, &load->type, call->slot[1]->span);
	if (!value)
		return VALUE_ERROR;
	for (uint32_t i = 0; i < load->n_args; i++)
		vec_push(ev->cx->arena, index.as.sequence, device_value(load->args[i]));
	value = expr_binary(ev->pool, ops[kind], load, device_cast(ev, load->type, value));
	return trace_store(ev, (struct buffer *)(uintptr_t)load->as.buffer, index, VALUE_EXPR(value),
	                   call->span)
	           ? VALUE_NONE
	           : VALUE_ERROR;
}

/* T.finalize_reducer(reducer, dst=None): dst gets the result. */
static struct value t_finalize_reducer(struct eval *ev, struct call *call)
{
	struct tile_operand reducer, dst;
	enum reduce_kind kind;
	struct op *op;

	if (!lang_operand(ev, call, call->slot[0], &reducer) ||
	    !reducer_of(ev, call, reducer.region.buffer, &kind))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_finalize_reducer);
	if (!op)
		return VALUE_ERROR;
	op->as.finalize_reducer.dst = reducer.region;
	op->as.finalize_reducer.kind = kind;
	if (!call->slot[1] || call->slot[1]->value.kind == V_NONE)
		return VALUE_NONE;
	if (!lang_operand(ev, call, call->slot[1], &dst) ||
	    (dst.is_point && !lang_extents_from(ev, &dst, &reducer)))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_copy);
	if (!op)
		return VALUE_ERROR;
	op->as.copy.src = reducer.region;
	op->as.copy.dst = dst.region;
	return VALUE_NONE;
}

/* Copies */

/* T.transpose(src, dst) */
static struct value t_transpose(struct eval *ev, struct call *call)
{
	struct tile_operand src, dst;
	struct op *op;

	if (!lang_operand(ev, call, call->slot[0], &src) ||
	    !lang_operand(ev, call, call->slot[1], &dst))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_transpose);
	if (!op)
		return VALUE_ERROR;
	op->as.transpose.src = src.region;
	op->as.transpose.dst = dst.region;
	return VALUE_NONE;
}

/* T.tma_copy(src, dst, *, barrier, ...) */
static struct value t_tma_copy(struct eval *ev, struct call *call)
{
	const struct expr *barrier = NULL;
	struct region src, dst;
	struct op *op;

	if (!lang_pair(ev, call, &src, &dst))
		return VALUE_ERROR;
	if (call->slot[2] && call->slot[2]->value.kind != V_NONE) {
		struct value value = call->slot[2]->value;
		const struct expr *zero = expr_int(ev->pool, 0);

		if (value.kind == V_BUFFER && value.as.buffer->rank == 1)
			value =
				VALUE_EXPR(expr_load(ev->pool, value.as.buffer, value.as.buffer->type, &zero, 1));
		barrier = device_expr(ev, value, NULL, call->slot[2]->span);
		if (!barrier)
			return VALUE_ERROR;
	}
	op = lang_new_op(ev, call, OP_tma_copy);
	if (!op)
		return VALUE_ERROR;
	op->as.tma_copy.src = src;
	op->as.tma_copy.dst = dst;
	op->as.tma_copy.barrier = barrier;
	return VALUE_NONE;
}

/* T.async_copy(src, dst, ...) */
static struct value t_async_copy(struct eval *ev, struct call *call)
{
	struct region src, dst;
	struct op *op;

	if (!lang_pair(ev, call, &src, &dst))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_async_copy);
	if (!op)
		return VALUE_ERROR;
	op->as.async_copy.src = src;
	op->as.async_copy.dst = dst;
	return VALUE_NONE;
}

/* T.im2col(img, col, nhw_step, c_step, kernel, stride, dilation, pad, ...) */
static struct value t_im2col(struct eval *ev, struct call *call)
{
	const struct expr *nhw_step = NULL, *c_step = NULL;
	int64_t numbers[4] = { 1, 1, 1, 0 };
	struct tile_operand src, dst;
	struct op *op;

	if (!lang_operand(ev, call, call->slot[0], &src) ||
	    !lang_operand(ev, call, call->slot[1], &dst) || !arg_expr(ev, call, 2, &nhw_step) ||
	    !arg_expr(ev, call, 3, &c_step))
		return VALUE_ERROR;
	for (uint32_t i = 0; i < 4; i++) {
		if (!arg_int(ev, call, 4 + i, &numbers[i]))
			return VALUE_ERROR;
	}
	op = lang_new_op(ev, call, OP_im2col);
	if (!op)
		return VALUE_ERROR;
	op->as.im2col = (struct op_im2col){
		.src = src.region,
		.dst = dst.region,
		.nhw_step = nhw_step,
		.c_step = c_step,
		.kernel = numbers[0],
		.stride = numbers[1],
		.dilation = numbers[2],
		.pad = numbers[3],
	};
	return VALUE_NONE;
}

/* Gemms */

/* A condition that never holds is none. */
static const struct expr *unless_false(const struct expr *e)
{
	int64_t value;

	return e && expr_is_int(e, &value) && value == 0 ? NULL : e;
}

/* T.wgmma_gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, annotations) */
static struct value t_wgmma_gemm(struct eval *ev, struct call *call)
{
	bool transpose_a = false, transpose_b = false;
	int64_t policy = POLICY_SQUARE;
	const struct expr *clear = NULL;
	struct tile_operand side[3];
	struct op *op;

	for (uint32_t i = 0; i < 3; i++) {
		if (!lang_operand(ev, call, call->slot[i], &side[i]))
			return VALUE_ERROR;
	}
	if (!arg_bool(ev, call, 3, &transpose_a) || !arg_bool(ev, call, 4, &transpose_b) ||
	    !lang_policy(ev, call->slot[5], &policy) || !arg_expr(ev, call, 6, &clear))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_wgmma_gemm);
	if (!op)
		return VALUE_ERROR;
	op->as.wgmma_gemm = (struct op_wgmma_gemm){
		.a = side[0].region,
		.b = side[1].region,
		.c = side[2].region,
		.clear_accum = unless_false(clear),
		.transpose_a = transpose_a,
		.transpose_b = transpose_b,
		.policy = policy,
	};
	return VALUE_NONE;
}

/* T.gemm_sp(A, E, B, C, transpose_A, transpose_E, transpose_B, policy, clear_accum, ...) */
static struct value t_gemm_sp(struct eval *ev, struct call *call)
{
	bool transpose_a = false, transpose_b = false;
	int64_t policy = POLICY_SQUARE;
	const struct expr *clear = NULL;
	struct tile_operand side[4];
	struct op *op;

	for (uint32_t i = 0; i < 4; i++) {
		if (!lang_operand(ev, call, call->slot[i], &side[i]))
			return VALUE_ERROR;
	}
	if (!arg_bool(ev, call, 4, &transpose_a) || !arg_bool(ev, call, 6, &transpose_b) ||
	    !lang_policy(ev, call->slot[7], &policy) || !arg_expr(ev, call, 8, &clear))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_gemm_sp);
	if (!op)
		return VALUE_ERROR;
	op->as.gemm_sp = (struct op_gemm_sp){
		.a = side[0].region,
		.e = side[1].region,
		.b = side[2].region,
		.c = side[3].region,
		.clear_accum = unless_false(clear),
		.transpose_a = transpose_a,
		.transpose_b = transpose_b,
		.policy = policy,
	};
	return VALUE_NONE;
}

static const struct builtin rows[] = {
#define T "tilelang.language"
	{ T, "cumsum", "src dst? dim? reverse? annotations?", t_scan },
	{ T, "cummax", "src dst? dim? reverse? annotations?", t_scan },
	{ T, "alloc_reducer", "shape dtype op? replication?", t_alloc_reducer },
	{ T, "reducer_init", "reducer init?", t_reducer_init },
	{ T, "reducer_update", "target value", t_reducer_update },
	{ T, "finalize_reducer", "reducer dst? batch? annotations?", t_finalize_reducer },
	{ T, "transpose", "src dst annotations?", t_transpose },
	{ T, "tma_copy",
	  "src dst | barrier cluster_mask leader_scope_threads eviction_policy annotations",
	  t_tma_copy },
	{ T, "async_copy", "src dst | coalesced_width annotations loop_layout", t_async_copy },
	{ T, "im2col",
	  "img col nhw_step c_step kernel stride dilation pad eviction_policy? annotations?",
	  t_im2col },
	{ T, "c2d_im2col",
	  "img col nhw_step c_step kernel stride dilation pad eviction_policy? annotations?",
	  t_im2col },
	{ T, "wgmma_gemm", "A B C transpose_A? transpose_B? policy? clear_accum? annotations?",
	  t_wgmma_gemm },
	{ T, "gemm_sp",
	  "A_sparse E B C transpose_A? transpose_E? transpose_B? policy? clear_accum? k_pack? wg_wait? "
	  "annotations?",
	  t_gemm_sp },
#undef T
};

const struct builtin_table lang_tiles = { rows, sizeof(rows) / sizeof(*rows) };
