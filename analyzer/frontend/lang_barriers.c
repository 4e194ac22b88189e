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

/* The element of a barrier buffer that an argument names; NULL after an error. */
static const struct expr *barrier_of(struct eval *ev, const struct call *call, uint32_t slot)
{
	const struct arg *arg = call->slot[slot];
	const struct expr *zero = expr_int(ev->pool, 0);

	if (arg->value.kind == V_BUFFER && arg->value.as.buffer->rank == 1) {
		trace_use(ev, arg->value.as.buffer);
		return expr_load(ev->pool, arg->value.as.buffer, arg->value.as.buffer->type, &zero, 1);
	}
	return device_expr(ev, arg->value, NULL, arg->span);
}

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

/* T.barrier_wait(barrier, parity), T.mbarrier_wait_parity */
static struct value t_wait(struct eval *ev, struct call *call)
{
	const struct expr *barrier = barrier_of(ev, call, 0), *parity = expr_int(ev->pool, 0);
	struct op *op;

	if (!barrier || !arg_expr(ev, call, 1, &parity))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_barrier_wait);
	if (!op)
		return VALUE_ERROR;
	op->as.barrier_wait.barrier = barrier;
	op->as.barrier_wait.parity = parity;
	return VALUE_NONE;
}

/* T.barrier_arrive(barrier), T.mbarrier_arrive(barrier, cta_id) */
static struct value t_arrive(struct eval *ev, struct call *call)
{
	const struct expr *barrier = barrier_of(ev, call, 0), *cta = NULL;
	bool has_cta = call->slot[1] && call->slot[1]->value.kind != V_NONE;
	struct op *op;

	if (!barrier || (has_cta && !arg_expr(ev, call, 1, &cta)))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_barrier_arrive);
	if (!op)
		return VALUE_ERROR;
	op->as.barrier_arrive.barrier = barrier;
	op->as.barrier_arrive.cta = cta;
	return VALUE_NONE;
}

/* T.mbarrier_expect_tx(barrier, bytes), T.mbarrier_arrive_expect_tx */
static struct value t_expect(struct eval *ev, struct call *call)
{
	const struct expr *barrier = barrier_of(ev, call, 0), *bytes = NULL;
	struct op *op;

	if (!barrier || !arg_expr(ev, call, 1, &bytes))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_barrier_expect_tx);
	if (!op)
		return VALUE_ERROR;
	op->as.barrier_expect_tx.barrier = barrier;
	op->as.barrier_expect_tx.bytes = bytes;
	op->as.barrier_expect_tx.arrives = strstr(call->builtin->name, "arrive") != NULL;
	return VALUE_NONE;
}

/* T.ptx_init_barrier_thread_count(barrier, count) */
static struct value t_init(struct eval *ev, struct call *call)
{
	const struct expr *barrier = barrier_of(ev, call, 0), *count = NULL;
	struct op *op;

	if (!barrier || !arg_expr(ev, call, 1, &count))
		return VALUE_ERROR;
	op = lang_new_op(ev, call, OP_barrier_init);
	if (!op)
		return VALUE_ERROR;
	op->as.barrier_init.barrier = barrier;
	op->as.barrier_init.arrive_count = count;
	return VALUE_NONE;
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
