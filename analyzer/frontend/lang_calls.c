/*
 * Device functions that are only named: T.call_extern, warp votes and shuffles, addresses, random
 * numbers, vectors. A value becomes an EXPR_CALL, a call for its effect an EVALUATE statement;
 * buffers go in as the address of their first element.
 *
 *     x = T.shfl_xor(v, 1)        let x: float32 = call(float32, shfl_xor, v, 1)
 *     T.sync_warp()               evaluate(value=call(void, sync_warp))
 *     T.address_of(A[i])          call(handle, address_of, A[i])
 *
 * What a function does is not known here, only the type of what it gives, which its handler in the
 * table stands for. Signatures are "**": whatever is passed goes on to the device in order.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

#define DTYPE_NOTHING DTYPE(TYPE_VOID, 0)
#define DTYPE_ADDRESS DTYPE(TYPE_HANDLE, 64)

enum { MAX_CALL_ARGS = 64 };

const struct expr *lang_address(struct eval *ev, const struct expr *load)
{
	assert(load->kind == EXPR_LOAD);
	return expr_call(ev->pool, DTYPE_ADDRESS, intern_text(ev->cx->names, "address_of"), &load, 1);
}

/* A text stands as a call of that name without arguments. */
static const struct expr *text_arg(struct eval *ev, struct str text)
{
	return expr_call(ev->pool, DTYPE_ADDRESS, intern(ev->cx->names, text), NULL, 0);
}

/* The first element of a buffer. */
static const struct expr *first_element(struct eval *ev, struct buffer *buffer)
{
	const struct expr *index[MAX_RANK];

	trace_use(ev, buffer);
	for (uint32_t i = 0; i < buffer->rank; i++)
		index[i] = expr_int(ev->pool, 0);
	return expr_load(ev->pool, buffer, buffer->type, index, buffer->rank);
}

const struct expr *lang_call_arg(struct eval *ev, struct value value, struct span span)
{
	char name[32];

	if (value.kind == V_BUFFER && value.as.buffer->scope != SCOPE_VAR)
		return lang_address(ev, first_element(ev, value.as.buffer));
	if (value.kind == V_REGION) {
		const struct region_value *region = value.as.region;

		return lang_address(ev, expr_load(ev->pool, region->buffer, region->buffer->type,
		                                  region->min, region->buffer->rank));
	}
	if (value.kind == V_STR)
		return text_arg(ev, value.as.string);
	if (value.kind == V_DTYPE)
		return text_arg(ev, str_of(dtype_name(value.as.dtype, name)));
	return device_expr(ev, value, NULL, span);
}

/* Arguments from the `from`-th on; -1 after an error. Sequences count as their items. */
static int collect_args(struct eval *ev, const struct call *call, uint32_t from,
                        const struct expr *out[MAX_CALL_ARGS])
{
	int n = 0;

	for (uint32_t i = from; i < call->args.n; i++) {
		struct value value = call->args.p[i].value, one = value;
		struct sequence items = { &one, 1, 1 };

		if (value.kind == V_NONE)
			continue;
		if (value_is_sequence(value))
			items = *value.as.sequence;
		for (uint32_t k = 0; k < items.n; k++) {
			if (n == MAX_CALL_ARGS) {
				ev_error(ev, DIAG_E0210, call->span, "more than %d arguments", MAX_CALL_ARGS);
				return -1;
			}
			out[n] = lang_call_arg(ev, items.p[k], call->args.p[i].span);
			if (!out[n++])
				return -1;
		}
	}
	return n;
}

/* The call, and its statement when it gives nothing. */
static struct value make_call(struct eval *ev, const struct call *call, sym_t name,
                              struct dtype type, uint32_t from)
{
	const struct expr *args[MAX_CALL_ARGS], *e;
	int n;

	if (!trace_require(ev, call->span, call->name))
		return VALUE_ERROR;
	n = collect_args(ev, call, from, args);
	if (n < 0)
		return VALUE_ERROR;
	e = expr_call(ev->pool, type, name, args, (uint32_t)n);
	if (type.kind != TYPE_VOID)
		return VALUE_EXPR(e);
	return trace_evaluate(ev, VALUE_EXPR(e), call->span) ? VALUE_NONE : VALUE_ERROR;
}

struct value lang_device_call(struct eval *ev, const struct call *call, const char *name,
                              struct dtype type)
{
	return make_call(ev, call, intern_text(ev->cx->names, name), type, 0);
}

/* T.fence_proxy_async() and its kin: only an effect. */
static struct value t_effect(struct eval *ev, struct call *call)
{
	return lang_device_call(ev, call, call->builtin->name, DTYPE_NOTHING);
}

/* T.popcount(x), T.__ffs(x): int32, whatever goes in. */
static struct value t_int(struct eval *ev, struct call *call)
{
	return lang_device_call(ev, call, call->builtin->name, DTYPE_I32);
}

/* Masks of lanes, and 32 random bits. */
static struct value t_uint(struct eval *ev, struct call *call)
{
	return lang_device_call(ev, call, call->builtin->name, DTYPE_U32);
}

/* T.shuffle_elect(n): is this the thread that is chosen? */
static struct value t_bool(struct eval *ev, struct call *call)
{
	return lang_device_call(ev, call, call->builtin->name, DTYPE_BOOL);
}

/* T.rng_rand_float(): one float32. */
static struct value t_float(struct eval *ev, struct call *call)
{
	return lang_device_call(ev, call, call->builtin->name, DTYPE_F32);
}

/* Descriptors and pointers. */
static struct value t_handle(struct eval *ev, struct call *call)
{
	return lang_device_call(ev, call, call->builtin->name, DTYPE_ADDRESS);
}

/* A call that gives a value of the type of its argument number `i`. */
static struct value same_as(struct eval *ev, const struct call *call, uint32_t i)
{
	const struct expr *e;

	if (call->args.n <= i)
		return ev_error(ev, DIAG_E0210, call->span, "%s misses its value", call->name);
	e = device_expr(ev, call->args.p[i].value, NULL, call->args.p[i].span);
	return e ? lang_device_call(ev, call, call->builtin->name, e->type) : VALUE_ERROR;
}

/* T.shfl_xor(value, lane), T.warp_reduce_sum(value) */
static struct value t_same(struct eval *ev, struct call *call)
{
	return same_as(ev, call, 0);
}

/* T.tvm_warp_shuffle(mask, value, lane, width, warp_size) */
static struct value t_second(struct eval *ev, struct call *call)
{
	return same_as(ev, call, 1);
}

/* Words of loads by width: ldg128 gives uint32x4, ldg32 a uint32. */
static struct value t_wide_load(struct eval *ev, struct call *call)
{
	const char *bits = call->builtin->name + 3;
	struct dtype type = DTYPE_U32;

	type.lanes = (uint16_t)(strcmp(bits, "256") == 0   ? 8
	                        : strcmp(bits, "128") == 0 ? 4
	                        : strcmp(bits, "64") == 0  ? 2
	                                                   : 1);
	return lang_device_call(ev, call, call->builtin->name, type);
}

/*
 * The name of a function: a text, or an operator that the file takes from elsewhere (tir.op.Op), by
 * its source text. False for anything else.
 */
static bool callee_name(struct eval *ev, const struct arg *arg, sym_t *name)
{
	if (arg->value.kind == V_STR)
		*name = intern(ev->cx->names, arg->value.as.string);
	else if (arg->value.kind == V_OPAQUE)
		*name = intern_text(ev->cx->names, arg->value.as.opaque->text);
	else
		return false;
	return true;
}

/* T.call_extern(dtype, name, *args), T.call_intrin(dtype, name, *args) */
static struct value t_named_call(struct eval *ev, struct call *call)
{
	const struct arg *last = call->args.n ? &call->args.p[call->args.n - 1] : NULL;
	struct dtype type = DTYPE_ADDRESS;
	sym_t name;

	/* The old form: T.call_extern(name, *args, dtype=...). */
	if (last && last->name && strcmp(sym_text(ev->cx->names, last->name), "dtype") == 0) {
		if (!value_dtype(last->value, &type) || !callee_name(ev, &call->args.p[0], &name))
			return ev_error(ev, DIAG_E0202, last->span, "this is no type");
		call->args.n--;
		return make_call(ev, call, name, type, 1);
	}
	if (call->args.n < 2)
		return ev_error(ev, DIAG_E0210, call->span, "%s takes a type, a name and arguments",
		                call->name);
	if (!value_dtype(call->args.p[0].value, &type))
		return ev_error(ev, DIAG_E0202, call->args.p[0].span, "this is no type");
	if (!callee_name(ev, &call->args.p[1], &name))
		return ev_error(ev, DIAG_E0202, call->args.p[1].span,
		                "%s takes the function's name, not %s", call->name,
		                value_type_text(call->args.p[1].value));
	return make_call(ev, call, name, type, 2);
}

/* T.evaluate(call) */
static struct value t_evaluate(struct eval *ev, struct call *call)
{
	struct value value = call->slot[0]->value;

	if (!trace_require(ev, call->span, call->name))
		return VALUE_ERROR;
	if (value.kind == V_EXPR)
		return trace_evaluate(ev, value, call->span) ? VALUE_NONE : VALUE_ERROR;
	return value.kind == V_ERROR ? value : VALUE_NONE;
}

/* T.address_of(A[i]), T.access_ptr(A[i], "r", ...): the rest says how it is used. */
static struct value t_address(struct eval *ev, struct call *call)
{
	struct value value = call->args.n ? call->args.p[0].value : VALUE_ERROR;
	const struct expr *e;

	if (call->args.n == 0)
		return ev_error(ev, DIAG_E0210, call->span, "%s misses its element", call->name);
	if (value.kind == V_EXPR && value.as.expr->kind == EXPR_LOAD)
		return VALUE_EXPR(lang_address(ev, value.as.expr));
	e = lang_call_arg(ev, value, call->args.p[0].span);
	if (e && e->type.kind != TYPE_HANDLE)
		return ev_error(ev, DIAG_E0202, call->args.p[0].span,
		                "only elements of buffers have an address");
	return e ? VALUE_EXPR(e) : VALUE_ERROR;
}

/* A.access_ptr("r", ...): the address of the first element; the rest says how it is used. */
static struct value buffer_access_ptr(struct eval *ev, struct call *call)
{
	return VALUE_EXPR(lang_address(ev, first_element(ev, call->self.as.buffer)));
}

/* A.vload(index, dtype): an element, or a vector of them. */
static struct value buffer_vload(struct eval *ev, struct call *call)
{
	struct buffer *buffer = call->self.as.buffer;
	const struct expr *at[MAX_RANK], *element;
	struct dtype type = buffer->type;
	struct value index = call->slot[0]->value;

	trace_use(ev, buffer);
	if (value_is_sequence(index))
		index.kind = V_TUPLE;
	if (!arg_dtype(ev, call, 1, &type) || !device_index(ev, buffer, index, call->slot[0]->span, at))
		return VALUE_ERROR;
	element = expr_load(ev->pool, buffer, buffer->type, at, buffer->rank);
	if (type.lanes == 1)
		return VALUE_EXPR(element);
	element = lang_address(ev, element);
	return VALUE_EXPR(expr_call(ev->pool, type, intern_text(ev->cx->names, "vload"), &element, 1));
}

/* The lanes of a vector's type, a constant. */
static bool lanes_arg(struct eval *ev, const struct call *call, uint32_t slot, struct dtype *type)
{
	int64_t lanes = 1;

	if (!arg_int(ev, call, slot, &lanes))
		return false;
	if (lanes < 1 || lanes > 1024) {
		ev_error(ev, DIAG_E0202, call->span, "a vector has 1 to 1024 lanes");
		return false;
	}
	type->lanes = (uint16_t)lanes;
	return true;
}

/* T.Ramp(base, stride, lanes): base, base + stride, ... */
static struct value t_ramp(struct eval *ev, struct call *call)
{
	const struct expr *args[2];
	struct dtype type;

	args[0] = lang_slot_expr(ev, call, 0, NULL);
	args[1] = args[0] ? lang_slot_expr(ev, call, 1, &args[0]->type) : NULL;
	if (!args[1])
		return VALUE_ERROR;
	type = args[0]->type;
	if (!lanes_arg(ev, call, 2, &type))
		return VALUE_ERROR;
	return VALUE_EXPR(expr_call(ev->pool, type, intern_text(ev->cx->names, "ramp"), args, 2));
}

/* T.Broadcast(value, lanes) */
static struct value t_broadcast(struct eval *ev, struct call *call)
{
	const struct expr *e = lang_slot_expr(ev, call, 0, NULL);
	struct dtype type;

	if (!e)
		return VALUE_ERROR;
	type = e->type;
	if (!lanes_arg(ev, call, 1, &type))
		return VALUE_ERROR;
	return VALUE_EXPR(expr_call(ev->pool, type, intern_text(ev->cx->names, "broadcast"), &e, 1));
}

/* T.Shuffle(vectors, indices): as many lanes as there are indices. */
static struct value t_shuffle(struct eval *ev, struct call *call)
{
	struct value vectors = call->slot[0]->value, indices = call->slot[1]->value;
	const struct expr *first;
	struct dtype type;

	if (!value_is_sequence(vectors) || !value_is_sequence(indices) || vectors.as.sequence->n == 0 ||
	    indices.as.sequence->n == 0)
		return ev_error(ev, DIAG_E0202, call->span, "T.Shuffle takes two lists");
	first = device_expr(ev, vectors.as.sequence->p[0], NULL, call->slot[0]->span);
	if (!first)
		return VALUE_ERROR;
	type = first->type;
	type.lanes = (uint16_t)indices.as.sequence->n;
	return make_call(ev, call, intern_text(ev->cx->names, "shuffle"), type, 0);
}

/* T.extract_lane(vector, i) */
static struct value t_extract_lane(struct eval *ev, struct call *call)
{
	const struct expr *e = lang_slot_expr(ev, call, 0, NULL);
	struct dtype type;

	if (!e)
		return VALUE_ERROR;
	type = e->type;
	type.lanes = 1;
	return make_call(ev, call, intern_text(ev->cx->names, "extract_lane"), type, 0);
}

/* T.__ldg(A[i]): a load by another path. */
static struct value t_ldg(struct eval *ev, struct call *call)
{
	struct value value = call->slot[0]->value;

	if (value.kind == V_BUFFER && call->slot[1])
		return VALUE_EXPR(first_element(ev, value.as.buffer));
	if (value.kind == V_BUFFER && value.as.buffer->scope != SCOPE_VAR)
		return VALUE_EXPR(first_element(ev, value.as.buffer));
	return value;
}

/* Arithmetic whose rounding is named: round to nearest is what the operators do. */
static struct value t_ieee(struct eval *ev, struct call *call)
{
	static const struct {
		const char *name;
		enum ast_binary op;
	} ops[] = {
		{ "ieee_add", AST_ADD },  { "ieee_sub", AST_SUB }, { "ieee_mul", AST_MUL },
		{ "ieee_fdiv", AST_DIV }, { "add2", AST_ADD },     { "sub2", AST_SUB },
		{ "mul2", AST_MUL },
	};
	bool is_nearest = true;

	for (uint32_t i = 2; i < call->args.n; i++)
		is_nearest &=
			call->args.p[i].value.kind == V_STR && str_is(call->args.p[i].value.as.string, "rn");
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops) && is_nearest && call->args.n >= 2; i++) {
		if (strcmp(ops[i].name, call->builtin->name) == 0)
			return eval_binary(ev, ops[i].op, call->args.p[0].value, call->args.p[1].value,
			                   call->span);
	}
	return t_same(ev, call);
}

/*
 * T.get_lane_idx(), T.get_warp_idx(), T.get_warp_group_idx(): parts of the thread's flat number.
 * The sizes of a warp and a group may be given, as TileLang's own functions take them.
 */
static struct value t_thread_part(struct eval *ev, struct call *call)
{
	struct trace *trace = trace_require(ev, call->span, call->name);
	bool is_lane = strcmp(call->builtin->name, "get_lane_idx") == 0,
		 is_group = strcmp(call->builtin->name, "get_warp_group_idx") == 0;
	int64_t warp = 32, warps = 4;
	const struct expr *flat;

	if (!trace || !arg_int(ev, call, 0, &warp) || !arg_int(ev, call, 1, &warps))
		return VALUE_ERROR;
	if (warp < 1 || warps < 1 || warp > 1024 || warps > 1024)
		return ev_error(ev, DIAG_E0202, call->span, "a warp has at least one thread");
	flat = trace_flat_thread(ev, trace->launch);
	return device_value(is_lane    ? expr_mod_int(ev->pool, flat, warp)
	                    : is_group ? expr_div_int(ev->pool, flat, warp * warps)
	                               : expr_div_int(ev->pool, flat, warp));
}

static const struct builtin rows[] = {
#define T "tilelang.language"
#define EFFECT(name) \
	{ \
		T, name, "**", t_effect \
	}
#define SAME(name) \
	{ \
		T, name, "**", t_same \
	}
#define IEEE(name) \
	{ \
		T, name, "**", t_ieee \
	}
#define WIDE(width) \
	{ T, "ldg" width, "**", t_wide_load }, { T, "lds" width, "**", t_wide_load }, \
		{ T, "stg" width, "**", t_effect }, \
	{ \
		T, "sts" width, "**", t_effect \
	}
	{ T, "call_extern", "**", t_named_call },
	{ T, "call_pure_extern", "**", t_named_call },
	{ T, "call_intrin", "**", t_named_call },
	{ T, "evaluate", "value", t_evaluate },
	{ T, "address_of", "**", t_address },
	{ T, "access_ptr", "**", t_address },
	{ "buffer", "access_ptr", "**", buffer_access_ptr },
	{ "buffer", "vload", "index dtype?", buffer_vload },
	{ T, "Ramp", "base stride lanes", t_ramp },
	{ T, "Broadcast", "value lanes", t_broadcast },
	{ T, "Shuffle", "vectors indices", t_shuffle },
	{ T, "extract_lane", "vector lane", t_extract_lane },
	{ T, "__ldg", "value index?", t_ldg },
	{ T, "get_lane_idx", "warp_size?", t_thread_part },
	{ T, "get_warp_idx", "warp_size?", t_thread_part },
	{ T, "get_warp_idx_sync", "warp_size?", t_thread_part },
	{ T, "get_warp_group_idx", "warp_size? warps_per_group?", t_thread_part },
	EFFECT("fence_proxy_async"),
	EFFECT("ptx_fence_barrier_init"),
	EFFECT("ptx_commit_group"),
	EFFECT("ptx_wait_group"),
	EFFECT("ptx_cp_async"),
	EFFECT("cp_async_barrier_noinc"),
	EFFECT("wait_wgmma"),
	EFFECT("warpgroup_arrive"),
	EFFECT("warpgroup_commit_batch"),
	EFFECT("warpgroup_wait"),
	EFFECT("warpgroup_fence_operand"),
	EFFECT("tma_store_arrive"),
	EFFECT("tma_store_wait"),
	EFFECT("tma_load"),
	EFFECT("sync_warp"),
	EFFECT("sync_grid"),
	EFFECT("sync_global"),
	EFFECT("named_barrier_arrive"),
	EFFECT("thread_return"),
	EFFECT("loop_break"),
	EFFECT("tvm_storage_sync"),
	EFFECT("tvm_thread_allreduce"),
	EFFECT("pdl_sync"),
	EFFECT("pdl_trigger"),
	EFFECT("cluster_arrive"),
	EFFECT("cluster_arrive_relaxed"),
	EFFECT("cluster_wait"),
	EFFECT("cluster_sync"),
	EFFECT("rng_init"),
	EFFECT("ptx_wgmma_ss"),
	EFFECT("ptx_wgmma_rs"),
	EFFECT("ptx_mma"),
	EFFECT("ptx_ldmatrix"),
	EFFECT("ptx_stmatrix"),
	EFFECT("mma_fill"),
	EFFECT("mma_store"),
	EFFECT("initialize_wgmma_descriptor"),
	EFFECT("increase_descriptor_offset"),
	EFFECT("dp4a"), /* C += the sum of four products of bytes */
	{ T, "create_tma_descriptor", "**", t_handle },
	{ T, "tvm_access_ptr", "**", t_handle },
	{ T, "rng_rand", "**", t_uint },
	{ T, "rng_rand_float", "**", t_float },
	{ T, "activemask", "**", t_uint },
	{ T, "ballot", "**", t_uint },
	{ T, "ballot_sync", "**", t_uint },
	{ T, "match_any_sync", "**", t_uint },
	{ T, "match_all_sync", "**", t_uint },
	{ T, "any_sync", "**", t_int },
	{ T, "all_sync", "**", t_int },
	{ T, "syncthreads_count", "**", t_int },
	{ T, "syncthreads_and", "**", t_int },
	{ T, "syncthreads_or", "**", t_int },
	{ T, "shuffle_elect", "**", t_bool },
	{ T, "block_rank_in_cluster", "**", t_int },
	{ T, "__ffs", "**", t_int },
	{ T, "__fns", "**", t_int },
	{ T, "clz", "**", t_int },
	{ T, "popcount", "**", t_int },
	{ T, "tvm_warp_shuffle", "**", t_second },
	SAME("shfl_sync"),
	SAME("shfl_up"),
	SAME("shfl_down"),
	SAME("shfl_xor"),
	SAME("warp_reduce_sum"),
	SAME("warp_reduce_max"),
	SAME("warp_reduce_min"),
	SAME("warp_reduce_bitand"),
	SAME("warp_reduce_bitor"),
	SAME("fast_rcp"),
	IEEE("ieee_add"),
	IEEE("ieee_sub"),
	IEEE("ieee_mul"),
	IEEE("ieee_fdiv"),
	IEEE("ieee_fmaf"),
	IEEE("ieee_frcp"),
	IEEE("ieee_fsqrt"),
	IEEE("ieee_frsqrt"),
	IEEE("add2"),
	IEEE("sub2"),
	IEEE("mul2"),
	SAME("fma2"),
	SAME("max2"),
	SAME("min2"),
	SAME("abs2"),
	WIDE("32"),
	WIDE("64"),
	WIDE("128"),
	WIDE("256"),
#undef WIDE
#undef IEEE
#undef SAME
#undef EFFECT
#undef T
};

const struct builtin_table lang_calls = { rows, sizeof(rows) / sizeof(*rows) };
