/*
 * Arguments of operations on tiles, read by a table: row i says what slot i of the call must be and
 * which field of the operation it fills. Which parameters there are, how they are called and which
 * must be given stands in the builtin's signature (struct builtin); defaults are what the fields
 * hold before the call is read.
 *
 *     static const struct op_param params[MAX_SLOTS] = {     T.barrier_wait(full[k % 2], k // 2)
 *         PARAM(BARRIER, barrier_wait.barrier),                  slot 0: full[k % 2]
 *         PARAM(EXPR, barrier_wait.parity),                      slot 1: k // 2
 *     };
 *     struct op op = { .kind = OP_barrier_wait };
 *
 *     return lang_read_and_put(ev, call, params, &op);
 *
 * Slots are read from the first to the last and the first mistake ends it, so that a message is
 * about the leftmost argument that is wrong.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>

bool lang_is_given(const struct call *call, uint32_t slot)
{
	return call->slot[slot] && call->slot[slot]->value.kind != V_NONE;
}

const struct expr *lang_slot_expr(struct eval *ev, const struct call *call, uint32_t slot,
                                  const struct dtype *hint)
{
	return device_expr(ev, call->slot[slot]->value, hint, call->slot[slot]->span);
}

bool lang_dim(struct eval *ev, const struct call *call, uint32_t slot, const struct buffer *buffer,
              int64_t *dim)
{
	int64_t rank = buffer->rank;

	if (*dim < -rank || *dim >= rank) {
		ev_error(ev, DIAG_E0307, call->slot[slot] ? call->slot[slot]->span : call->span,
		         "dimension %lld does not exist: %s has %lld", (long long)*dim,
		         sym_text(ev->cx->names, buffer->name), (long long)rank);
		return false;
	}
	*dim = *dim < 0 ? *dim + rank : *dim;
	return true;
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

/* A member of T.GemmWarpPolicy, or its number as TileLang's own code passes it. */
static bool read_policy(struct eval *ev, const struct arg *arg, int64_t *policy)
{
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

/* An element of a barrier buffer; the buffer's name alone stands for its first one. */
static bool read_barrier(struct eval *ev, const struct call *call, uint32_t slot,
                         const struct expr **barrier)
{
	const struct arg *arg = call->slot[slot];
	const struct expr *zero = expr_int(ev->pool, 0);

	if (arg->value.kind == V_BUFFER && arg->value.as.buffer->rank == 1) {
		trace_use(ev, arg->value.as.buffer);
		*barrier = expr_load(ev->pool, arg->value.as.buffer, arg->value.as.buffer->type, &zero, 1);
		return true;
	}
	*barrier = lang_slot_expr(ev, call, slot, NULL);
	return *barrier != NULL;
}

/* A point stays a box of one element: the handler, or the verifier, says what it means. */
static bool read_tile(struct eval *ev, const struct call *call, uint32_t slot, struct region *out)
{
	struct tile_operand operand;

	if (!lang_operand(ev, call, call->slot[slot], &operand))
		return false;
	*out = operand.region;
	return true;
}

/* A condition that never holds is none. */
static bool read_condition(struct eval *ev, const struct call *call, uint32_t slot,
                           const struct expr **out)
{
	int64_t value;

	*out = lang_slot_expr(ev, call, slot, NULL);
	if (!*out)
		return false;
	if (expr_is_int(*out, &value) && value == 0)
		*out = NULL;
	return true;
}

static bool read_flag(struct eval *ev, const struct call *call, uint32_t slot, int64_t *out)
{
	bool flag = false;

	if (!arg_bool(ev, call, slot, &flag))
		return false;
	*out = flag;
	return true;
}

/* One slot that was given. */
static bool read_slot(struct eval *ev, const struct call *call, uint32_t slot,
                      const struct op_param *param, struct op *op)
{
	void *field = (char *)op + param->offset;

	switch (param->kind) {
	case PARAM_UNREAD:
		return true;
	case PARAM_TILE:
		return read_tile(ev, call, slot, field);
	case PARAM_EXPR:
		return arg_expr(ev, call, slot, field);
	case PARAM_CONDITION:
		return read_condition(ev, call, slot, field);
	case PARAM_BARRIER:
		return read_barrier(ev, call, slot, field);
	case PARAM_INT:
		return arg_int(ev, call, slot, field);
	case PARAM_BOOL:
		return read_flag(ev, call, slot, field);
	case PARAM_POLICY:
		return read_policy(ev, call->slot[slot], field);
	case PARAM_REFUSED:
		return refuse_option(ev, call, slot);
	}
	return false;
}

bool lang_read(struct eval *ev, const struct call *call, const struct op_param params[MAX_SLOTS],
               struct op *op)
{
	assert(op->kind < N_OP_KINDS);
	for (uint32_t i = 0; i < MAX_SLOTS; i++) {
		bool is_read = params[i].may_be_none ? lang_is_given(call, i) : call->slot[i] != NULL;

		if (is_read && !read_slot(ev, call, i, &params[i], op))
			return false;
	}
	return true;
}

struct value lang_put(struct eval *ev, const struct call *call, const struct op *op)
{
	struct op *out = lang_new_op(ev, call, op->kind);

	if (!out)
		return VALUE_ERROR;
	*out = *op;
	return VALUE_NONE;
}

struct value lang_read_and_put(struct eval *ev, const struct call *call,
                               const struct op_param params[MAX_SLOTS], struct op *op)
{
	return lang_read(ev, call, params, op) ? lang_put(ev, call, op) : VALUE_ERROR;
}
