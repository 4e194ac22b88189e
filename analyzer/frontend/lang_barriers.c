/*
 * Barriers in shared memory (mbarrier objects), which a kernel makes and waits for itself. A
 * barrier is an element of a shared uint64 buffer; a buffer's name alone stands for its first one.
 *
 *     full = T.alloc_barrier([128] * 2)      full: shared uint64[2]
 *                                            barrier_init(barrier=full[0], arrive_count=128) ...
 *     T.barrier_wait(full[k % 2], k // 2 % 2)
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

enum { MAX_BARRIERS = 64 };

/* T.alloc_barrier(arrive_count): one barrier for each count of a list. */
static struct value t_alloc_barrier(struct eval *ev, struct call *call)
{
	struct value counts = call->slot[0]->value, buffer;
	struct sequence items = { &counts, 1, 1 };
	struct tensor_type type = { .rank = 1, .type = DTYPE(TYPE_UINT, 64) };

	if (value_is_sequence(counts))
		items = *counts.as.sequence;
	if (items.n < 1 || items.n > MAX_BARRIERS)
		return ev_error(ev, DIAG_E0311, call->span, "%s makes 1 to %d barriers", call->name,
		                MAX_BARRIERS);
	type.shape[0] = expr_int(ev->pool, items.n);
	buffer = lang_new_buffer(ev, call, SCOPE_SHARED, &type);
	if (buffer.kind == V_ERROR)
		return buffer;
	for (uint32_t i = 0; i < items.n; i++) {
		const struct expr *at = expr_int(ev->pool, i),
						  *count = device_expr(ev, items.p[i], NULL, call->slot[0]->span);
		struct op *op = count ? lang_new_op(ev, call, OP_barrier_init) : NULL;

		if (!op)
			return VALUE_ERROR;
		op->as.barrier_init.barrier =
			expr_load(ev->pool, buffer.as.buffer, buffer.as.buffer->type, &at, 1);
		op->as.barrier_init.arrive_count = count;
	}
	return buffer;
}

/* T.barrier_wait(barrier, parity=0), T.mbarrier_wait_parity */
static struct value t_wait(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(BARRIER, barrier_wait.barrier),
		PARAM(EXPR, barrier_wait.parity),
	};
	struct op op = { .kind = OP_barrier_wait, .as.barrier_wait.parity = expr_int(ev->pool, 0) };

	return lang_read_and_put(ev, call, params, &op);
}

/* T.barrier_arrive(barrier), T.mbarrier_arrive(barrier, cta_id): of another block of the cluster */
static struct value t_arrive(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(BARRIER, barrier_arrive.barrier),
		PARAM_OR_NONE(EXPR, barrier_arrive.cta),
	};
	struct op op = { .kind = OP_barrier_arrive };

	return lang_read_and_put(ev, call, params, &op);
}

/* T.mbarrier_expect_tx(barrier, bytes), T.mbarrier_arrive_expect_tx */
static struct value t_expect(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(BARRIER, barrier_expect_tx.barrier),
		PARAM(EXPR, barrier_expect_tx.bytes),
	};
	struct op op = { .kind = OP_barrier_expect_tx };

	op.as.barrier_expect_tx.arrives = strstr(call->builtin->name, "arrive") != NULL;
	return lang_read_and_put(ev, call, params, &op);
}

/* T.ptx_init_barrier_thread_count(barrier, count) */
static struct value t_init(struct eval *ev, struct call *call)
{
	static const struct op_param params[MAX_SLOTS] = {
		PARAM(BARRIER, barrier_init.barrier),
		PARAM(EXPR, barrier_init.arrive_count),
	};
	struct op op = { .kind = OP_barrier_init };

	return lang_read_and_put(ev, call, params, &op);
}

static const struct builtin rows[] = {
#define T "tilelang.language"
	{ T, "alloc_barrier", "arrive_count", t_alloc_barrier },
	{ T, "alloc_cluster_barrier", "arrive_count", t_alloc_barrier },
	{ T, "barrier_wait", "mbarrier parity?", t_wait },
	{ T, "mbarrier_wait_parity", "mbarrier parity", t_wait },
	{ T, "barrier_arrive", "mbarrier cta_id?", t_arrive },
	{ T, "mbarrier_arrive", "mbarrier cta_id?", t_arrive },
	{ T, "ptx_arrive_barrier", "mbarrier cta_id?", t_arrive },
	{ T, "mbarrier_expect_tx", "mbarrier tx", t_expect },
	{ T, "mbarrier_arrive_expect_tx", "mbarrier tx", t_expect },
	{ T, "ptx_arrive_barrier_expect_tx", "barrier_id byte_count", t_expect },
	{ T, "ptx_init_barrier_thread_count", "barrier_id thread_count", t_init },
#undef T
};

const struct builtin_table lang_barriers = { rows, sizeof(rows) / sizeof(*rows) };
