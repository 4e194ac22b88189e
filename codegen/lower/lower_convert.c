/*
 * Conversions of fragments around the statement that touches them in another layout.
 *
 *     registers   unroll for step in 16: set weights_c[step] = weights[step%2*8 + step/2]
 *     shared      unroll ...: st workspace[...] <- weights[...] 8
 *                 barrier
 *                 unroll ...: ld weights_c[...] <- workspace[...] 4
 *
 * While the statement is lowered its fragments are the copies; what it stores goes back into the
 * fragment afterwards, in the same way. A barrier also stands before the stores where the workspace
 * may still be read, as it is in loops: the hazards see to it.
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

/* A conversion with the registers on both sides. */
struct move {
	const struct conversion *conversion;
	const struct wreg *from, *to;
};

static struct wreg *converted_reg(struct lower *l, const struct buffer *buffer,
                                  const struct layout *layout)
{
	const char *name = arena_printf(l->cx->arena, "%s_c", sym_text(l->cx->names, buffer->name));

	return warp_new_reg(l->warp, intern_text(l->cx->names, name), buffer->type, layout->n_slots);
}

static bool move_registers(struct lower *l, const struct move *move)
{
	struct access_iter iter = { access_iter_var(&l->space, 0, move->to->n_slots), move->to->n_slots,
		                        0 };
	const struct expr *at, *guard, *zero = expr_int(l->pool, 0);

	if (!access_convert_slot(&l->space, move->conversion, iter.var, &at, &guard)) {
		lower_error(l, "%s: its elements sit in other threads than the statement needs them in",
		            sym_text(l->cx->names, move->conversion->buffer->name));
		return false;
	}
	if (iter.extent == 1)
		at = access_substitute(&l->space, at, &iter.var, &zero, 1);
	struct wblock *outer = lower_open(l, &iter);
	lower_set(l, move->to, access_iter_value(&l->space, &iter),
	          expr_reg(l->pool, move->from, move->from->type, at), guard);
	lower_close(l, outer);
	return true;
}

/* All stores to the workspace, or all loads from it. */
static void move_side(struct lower *l, const struct move *move, const struct wshared *shared,
                      bool is_store)
{
	struct access access;
	struct wblock *outer = l->block;
	struct wregs regs = { is_store ? move->from : move->to, NULL, 0 };

	access_convert(&l->space, move->conversion, is_store, &access);
	for (uint32_t i = 0; i < access.n_iters; i++)
		lower_open(l, &access.iters[i]);
	struct waddr addr = { .space = WSPACE_SHARED, .shared = shared, .offset = access.offset };
	struct winst *inst = lower_inst(l, is_store ? WOP_st : WOP_ld);
	inst->predicate = access_predicate(&l->space, &access);
	regs.slot = access.slot;
	regs.n = access.bytes * 8 / (int64_t)dtype_bits(regs.reg->type);
	if (is_store) {
		inst->as.st.dst = addr;
		inst->as.st.src = regs;
		inst->as.st.bytes = access.bytes;
	} else {
		inst->as.ld.src = addr;
		inst->as.ld.dst = regs;
		inst->as.ld.bytes = access.bytes;
	}
	lower_close(l, outer);
}

static bool move_elements(struct lower *l, const struct move *move, const struct wshared *shared)
{
	switch (move->conversion->kind) {
	case CONVERT_REGISTERS:
		return move_registers(l, move);
	case CONVERT_SHUFFLE:
		return lower_shuffles(l, move->conversion, move->from, move->to);
	case CONVERT_SHARED:
		break;
	}
	assert(shared);
	lower_before_write(l, shared);
	move_side(l, move, shared, true);
	lower_did(l, shared, false, true, false);
	lower_before_read(l, shared);
	move_side(l, move, shared, false);
	lower_did(l, shared, true, false, false);
	return !l->failed;
}

const struct wreg *lower_convert(struct lower *l, const struct conversion *conversion,
                                 const struct wshared *shared)
{
	struct move move = { conversion, l->reg_of[conversion->buffer->id],
		                 converted_reg(l, conversion->buffer, conversion->to) };

	return move_elements(l, &move, shared) ? move.to : NULL;
}

/* From now on the buffer is `reg` in `layout`; what it was goes to the list. */
static void replace(struct lower *l, const struct buffer *buffer, const struct wreg *reg,
                    const struct layout *layout, struct converted_list *before)
{
	vec_push(l->cx->arena, &before->items,
	         (struct converted){ buffer, l->reg_of[buffer->id],
	                             l->solution->buffers[buffer->id].layout });
	l->reg_of[buffer->id] = l->warp->regs.p[reg->id];
	l->solution->buffers[buffer->id].layout = layout;
}

static bool is_replaced(const struct converted_list *list, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < list->items.n; i++)
		if (list->items.p[i].buffer == buffer)
			return true;
	return false;
}

bool lower_convert_begin(struct lower *l, const struct stmt *stmt, struct converted_list *before)
{
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];

	for (uint32_t i = 0; i < plan->conversions.n; i++) {
		const struct conversion *conversion = &plan->conversions.p[i];
		const struct buffer *buffer = conversion->buffer;
		const struct wreg *reg;

		if (!conversion->is_after) {
			reg = lower_convert(l, conversion, map_get(&l->workspace_of, stmt->id));
			if (!reg)
				return false;
			replace(l, buffer, reg, conversion->to, before);
		} else if (!is_replaced(before, buffer)) {
			replace(l, buffer, converted_reg(l, buffer, conversion->from), conversion->from,
			        before);
		}
	}
	return true;
}

void lower_convert_end(struct lower *l, const struct stmt *stmt,
                       const struct converted_list *before)
{
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];

	for (uint32_t i = 0; i < before->items.n; i++) {
		const struct converted *item = &before->items.p[i];
		uint32_t id = item->buffer->id;
		struct move move = { NULL, l->reg_of[id], item->reg };

		l->span = stmt->span;
		l->reg_of[id] = item->reg;
		l->solution->buffers[id].layout = item->layout;
		for (uint32_t c = 0; c < plan->conversions.n; c++) {
			move.conversion = &plan->conversions.p[c];
			if (move.conversion->is_after && move.conversion->buffer == item->buffer && !l->failed)
				move_elements(l, &move, map_get(&l->workspace_of, stmt->id));
		}
	}
}

const struct expr *lower_condition(struct lower *l, const struct stmt *stmt, const struct expr *e)
{
	struct converted_list before = { 0 };
	const struct expr *value = NULL;

	if (lower_convert_begin(l, stmt, &before))
		value = lower_scalar(l, e);
	lower_convert_end(l, stmt, &before);
	return value;
}
