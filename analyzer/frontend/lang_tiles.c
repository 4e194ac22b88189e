/*
 * Tile operations beside copies, gemms, fills and reductions: scans, reducers, transposes, windows
 * of convolutions, and the asynchronous forms, which the kernel waits for itself.
 */
#include "analyzer/frontend/eval.h"

#include <string.h>

/* Scans */

/* T.cumsum(src, dst=None, dim=0, reverse=False), T.cummax; without dst src itself is scanned. */
static struct value t_scan(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(TILE, scan.src),
		PARAM_OR_NONE(TILE, scan.dst),
		PARAM(INT, scan.dim),
		PARAM(BOOL, scan.reverse),
	};
	bool is_max = strstr(call->builtin->name, "max") != NULL;
	struct op op = { .kind = OP_scan, .as.scan.kind = is_max ? REDUCE_MAX : REDUCE_SUM };

	if (!lang_read(ev, call, params, &op) ||
	    !lang_dim(ev, call, 2, op.as.scan.src.buffer, &op.as.scan.dim))
		return VALUE_ERROR;
	if (!op.as.scan.dst.buffer)
		op.as.scan.dst = op.as.scan.src;
	return lang_put(ev, call, &op);
}

/* Reducers */

static bool reducer_kind(struct str text, enum reduce_kind *kind)
{
	static const enum reduce_kind kinds[] = { REDUCE_SUM,    REDUCE_MAX,   REDUCE_MIN,
		                                      REDUCE_BITAND, REDUCE_BITOR, REDUCE_BITXOR };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		*kind = kinds[i];
		if (str_is(text, reduce_kind_text(kinds[i])))
			return true;
	}
	return false;
}

/*
 * T.alloc_reducer(shape, dtype, op="sum", replication=None): which threads hold partial results is
 * the solver's choice, whatever the replication.
 */
static struct value t_alloc_reducer(struct eval *ev, struct call *call)
{
	struct tensor_type type = { .type = DTYPE_F32 };
	struct str text = str_of("sum");
	enum reduce_kind kind;
	struct value buffer;

	if (!arg_dtype(ev, call, 1, &type.type) || !arg_str(ev, call, 2, &text) ||
	    !lang_shape(ev, call->slot[0]->value, call->slot[0]->span, &type))
		return VALUE_ERROR;
	if (!reducer_kind(text, &kind))
		return ev_error(ev, DIAG_E0202, call->slot[2]->span,
		                "a reducer's op is \"sum\", \"max\", \"min\", \"bitand\", \"bitor\" or "
		                "\"bitxor\"");
	buffer = lang_new_buffer(ev, call, SCOPE_FRAGMENT, &type);
	if (buffer.kind == V_BUFFER) {
		buffer.as.buffer->is_reducer = true;
		buffer.as.buffer->reducer = kind;
	}
	return buffer;
}

/* The argument is a reducer; false after an error. */
static bool is_reducer(struct eval *ev, const struct call *call, const struct buffer *buffer)
{
	if (buffer && buffer->is_reducer)
		return true;
	ev_error(ev, DIAG_E0202, call->slot[0]->span, "this is no buffer of T.alloc_reducer");
	return false;
}

/* T.reducer_init(reducer, init=None) */
static struct value t_reducer_init(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(TILE, fill.dst),
		PARAM_OR_NONE(EXPR, fill.value),
	};
	struct op op = { .kind = OP_fill };
	const struct buffer *buffer;

	if (!lang_read(ev, call, params, &op) || !is_reducer(ev, call, op.as.fill.dst.buffer))
		return VALUE_ERROR;
	buffer = op.as.fill.dst.buffer;
	op.as.fill.value = op.as.fill.value ? device_cast(ev, buffer->type, op.as.fill.value)
	                                    : reduce_identity(ev->pool, buffer->reducer, buffer->type);
	return lang_put(ev, call, &op);
}

/* T.reducer_update(reducer[i], value): combines the element with the value. */
static struct value t_reducer_update(struct eval *ev, struct call *call)
{
	struct value target = call->slot[0]->value, index = value_sequence(ev->cx->arena, V_TUPLE);
	const struct expr *load, *value;

	if (target.kind != V_EXPR || target.as.expr->kind != EXPR_LOAD)
		return ev_error(ev, DIAG_E0202, call->slot[0]->span, "%s updates an element of a reducer",
		                call->name);
	load = target.as.expr;
	if (!is_reducer(ev, call, load->as.buffer))
		return VALUE_ERROR;
	value = lang_slot_expr(ev, call, 1, &load->type);
	if (!value)
		return VALUE_ERROR;
	for (uint32_t i = 0; i < load->n_args; i++)
		vec_push(ev->cx->arena, index.as.sequence, device_value(load->args[i]));
	value = expr_binary(ev->pool, reduce_operator(load->as.buffer->reducer), load,
	                    device_cast(ev, load->type, value));
	return trace_store(ev, (struct buffer *)(uintptr_t)load->as.buffer, index, VALUE_EXPR(value),
	                   call->span)
	           ? VALUE_NONE
	           : VALUE_ERROR;
}

/* T.finalize_reducer(reducer, dst=None): dst gets the result. */
static struct value t_finalize_reducer(struct eval *ev, struct call *call)
{
	struct op op = { .kind = OP_finalize_reducer }, copy = { .kind = OP_copy };
	struct tile_operand reducer, dst;

	if (!lang_operand(ev, call, call->slot[0], &reducer) ||
	    !is_reducer(ev, call, reducer.region.buffer))
		return VALUE_ERROR;
	op.as.finalize_reducer.dst = reducer.region;
	op.as.finalize_reducer.kind = reducer.region.buffer->reducer;
	if (lang_put(ev, call, &op).kind == V_ERROR)
		return VALUE_ERROR;
	if (!lang_is_given(call, 1))
		return VALUE_NONE;
	if (!lang_operand(ev, call, call->slot[1], &dst) ||
	    (dst.is_point && !lang_extents_from(ev, &dst, &reducer)))
		return VALUE_ERROR;
	copy.as.copy.src = reducer.region;
	copy.as.copy.dst = dst.region;
	return lang_put(ev, call, &copy);
}

/* Copies */

/* T.transpose(src, dst) */
static struct value t_transpose(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(TILE, transpose.src),
		PARAM(TILE, transpose.dst),
	};
	struct op op = { .kind = OP_transpose };

	return lang_read_and_put(ev, call, params, &op);
}

/* T.tma_copy(src, dst, *, barrier, ...) */
static struct value t_tma_copy(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		[2] = PARAM_OR_NONE(BARRIER, tma_copy.barrier),
	};
	struct op op = { .kind = OP_tma_copy };

	if (!lang_pair(ev, call, &op.as.tma_copy.src, &op.as.tma_copy.dst))
		return VALUE_ERROR;
	return lang_read_and_put(ev, call, params, &op);
}

/* T.async_copy(src, dst, ...) */
static struct value t_async_copy(struct eval *ev, struct call *call)
{
	struct op op = { .kind = OP_async_copy };

	if (!lang_pair(ev, call, &op.as.async_copy.src, &op.as.async_copy.dst))
		return VALUE_ERROR;
	return lang_put(ev, call, &op);
}

/* T.im2col(img, col, nhw_step, c_step, kernel, stride, dilation, pad, ...) */
static struct value t_im2col(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(TILE, im2col.src),     PARAM(TILE, im2col.dst),   PARAM(EXPR, im2col.nhw_step),
		PARAM(EXPR, im2col.c_step),  PARAM(INT, im2col.kernel), PARAM(INT, im2col.stride),
		PARAM(INT, im2col.dilation), PARAM(INT, im2col.pad),
	};
	struct op op = { .kind = OP_im2col, .as.im2col = { .kernel = 1, .stride = 1, .dilation = 1 } };

	return lang_read_and_put(ev, call, params, &op);
}

/* Gemms */

/* T.wgmma_gemm(A, B, C, transpose_A, transpose_B, policy, clear_accum, annotations) */
static struct value t_wgmma_gemm(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(TILE, wgmma_gemm.a),
		PARAM(TILE, wgmma_gemm.b),
		PARAM(TILE, wgmma_gemm.c),
		PARAM(BOOL, wgmma_gemm.transpose_a),
		PARAM(BOOL, wgmma_gemm.transpose_b),
		PARAM(POLICY, wgmma_gemm.policy),
		PARAM(CONDITION, wgmma_gemm.clear_accum),
	};
	struct op op = { .kind = OP_wgmma_gemm, .as.wgmma_gemm.policy = POLICY_SQUARE };

	return lang_read_and_put(ev, call, params, &op);
}

/* T.gemm_sp(A, E, B, C, transpose_A, transpose_E, transpose_B, policy, clear_accum, ...) */
static struct value t_gemm_sp(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(TILE, gemm_sp.a),
		PARAM(TILE, gemm_sp.e),
		PARAM(TILE, gemm_sp.b),
		PARAM(TILE, gemm_sp.c),
		PARAM(BOOL, gemm_sp.transpose_a),
		PARAM(BOOL, gemm_sp.transpose_e),
		PARAM(BOOL, gemm_sp.transpose_b),
		PARAM(POLICY, gemm_sp.policy),
		PARAM(CONDITION, gemm_sp.clear_accum),
	};
	struct op op = { .kind = OP_gemm_sp, .as.gemm_sp.policy = POLICY_SQUARE };

	return lang_read_and_put(ev, call, params, &op);
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
