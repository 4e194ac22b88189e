/*
 * Conversions of fragments before the statement that reads them.
 *
 *     registers   unroll for step in 16: set weights_c[step] = weights[step%2*8 + step/2]
 *     shared      unroll ...: st workspace[...] <- weights[...] 8
 *                 barrier
 *                 unroll ...: ld weights_c[...] <- workspace[...] 4
 *
 * A barrier also stands before the stores where the workspace may still be read, as it is in loops:
 * the hazards see to it.
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

static struct wreg *converted_reg(struct lower *l, const struct conversion *conversion)
{
	const char *name =
		arena_printf(l->cx->arena, "%s_c", sym_text(l->cx->names, conversion->buffer->name));

	return warp_new_reg(l->warp, intern_text(l->cx->names, name), conversion->buffer->type,
	                    conversion->to->n_slots);
}

static bool move_registers(struct lower *l, const struct conversion *conversion,
                           const struct wreg *to)
{
	const struct wreg *from = l->reg_of[conversion->buffer->id];
	struct access_iter iter = { access_iter_var(&l->space, 0, to->n_slots), to->n_slots, 0 };
	const struct expr *at, *guard, *zero = expr_int(l->pool, 0);

	if (!access_convert_slot(&l->space, conversion, iter.var, &at, &guard)) {
		lower_error(l, "%s: its elements sit in other threads than T.gemm needs them in",
		            sym_text(l->cx->names, conversion->buffer->name));
		return false;
	}
	if (iter.extent == 1)
		at = access_substitute(&l->space, at, &iter.var, &zero, 1);
	struct wblock *outer = lower_open(l, &iter);
	lower_set(l, to, access_iter_value(&l->space, &iter), expr_reg(l->pool, from, from->type, at),
	          guard);
	lower_close(l, outer);
	return true;
}

/* All stores to the workspace, or all loads from it. */
static void move_side(struct lower *l, const struct conversion *conversion,
                      const struct wshared *shared, struct wregs regs)
{
	struct access access;
	struct wblock *outer = l->block;
	bool is_store = regs.reg == l->reg_of[conversion->buffer->id];

	access_convert(&l->space, conversion, is_store, &access);
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

const struct wreg *lower_convert(struct lower *l, const struct conversion *conversion,
                                 const struct wshared *shared)
{
	struct wreg *to = converted_reg(l, conversion);

	if (conversion->kind == CONVERT_REGISTERS)
		return move_registers(l, conversion, to) ? to : NULL;
	assert(shared);
	lower_before_write(l, shared);
	move_side(l, conversion, shared, (struct wregs){ l->reg_of[conversion->buffer->id], NULL, 0 });
	lower_did(l, shared, false, true, false);
	lower_before_read(l, shared);
	move_side(l, conversion, shared, (struct wregs){ to, NULL, 0 });
	lower_did(l, shared, true, false, false);
	return to;
}

bool lower_convert_begin(struct lower *l, const struct stmt *stmt, struct converted_list *before)
{
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];

	for (uint32_t i = 0; i < plan->conversions.n; i++) {
		const struct conversion *conversion = &plan->conversions.p[i];
		uint32_t id = conversion->buffer->id;
		const struct wreg *reg = lower_convert(l, conversion, map_get(&l->workspace_of, stmt->id));

		if (!reg)
			return false;
		vec_push(l->cx->arena, &before->items,
		         (struct converted){ conversion->buffer, l->reg_of[id],
		                             l->solution->buffers[id].layout });
		l->reg_of[id] = l->warp->regs.p[reg->id];
		l->solution->buffers[id].layout = conversion->to;
	}
	return true;
}

void lower_convert_end(struct lower *l, const struct converted_list *before)
{
	for (uint32_t i = 0; i < before->items.n; i++) {
		const struct converted *item = &before->items.p[i];

		l->reg_of[item->buffer->id] = item->reg;
		l->solution->buffers[item->buffer->id].layout = item->layout;
	}
}
