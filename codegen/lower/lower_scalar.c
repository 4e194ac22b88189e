/*
 * Scalars outside of parallel loops: every thread does the same to its own registers, or to an
 * address of its own.
 *
 *     acc[0] = A[bx] + 1          ld A_s <- A[bx] 4 ; set acc[0] = A_s[0] + 1
 */
#include "codegen/lower/lower_internal.h"

static const struct expr *scalar_load(void *user, const struct expr *load);
static const struct expr *scalar_choice(void *user, const struct expr *choice);

static const struct expr *scalar_value(struct lower *l, const struct expr *e)
{
	struct expr_subst subst = l->subst;

	subst.on_load = scalar_load;
	subst.on_choice = scalar_choice;
	subst.user = l;
	return expr_substitute(l->pool, e, &subst);
}

static const struct expr *scalar_part(void *user, const struct expr *e)
{
	return scalar_value(user, e);
}

static const struct expr *scalar_choice(void *user, const struct expr *choice)
{
	struct lower *l = user;

	return lower_choice(&(struct choice_lowering){ l, &l->choice, scalar_part, l }, choice);
}

/* Indices of an element, loads inside them emitted. */
static void scalar_index(struct lower *l, const struct buffer *buffer,
                         const struct expr *const *index, const struct expr **out)
{
	for (uint32_t d = 0; d < buffer->rank; d++)
		out[d] = scalar_value(l, index[d]);
}

static struct waddr element_addr(struct lower *l, const struct buffer *buffer,
                                 const struct expr *const *index)
{
	const struct layout *layout =
		buffer->scope == SCOPE_SHARED ? l->solution->buffers[buffer->id].layout : NULL;
	const struct expr *offset = access_offset(&l->space, buffer, layout, index);

	return buffer->scope == SCOPE_SHARED
	           ? lower_shared_addr(l, buffer, offset)
	           : lower_global_addr(l, buffer, offset, dtype_bits(buffer->type) / 8);
}

static const struct expr *memory_element(struct lower *l, const struct buffer *buffer,
                                         const struct expr *const *index)
{
	const char *name = arena_printf(l->cx->arena, "%s_s", sym_text(l->cx->names, buffer->name));
	struct wreg *reg = warp_new_reg(l->warp, intern_text(l->cx->names, name), buffer->type, 1);

	if (l->shared_of[buffer->id])
		lower_before_read(l, l->shared_of[buffer->id]);
	struct winst *inst = lower_inst(l, WOP_ld);
	inst->predicate = buffer->scope == SCOPE_GLOBAL
	                      ? lower_bounds(l, buffer, index)
	                      : lower_read_predicate(buffer, index, l->choice);
	inst->as.ld.src = element_addr(l, buffer, index);
	reg->is_uniform = !l->n_divergent && lower_is_uniform(inst->as.ld.src.offset) &&
	                  (!inst->predicate || lower_is_uniform(inst->predicate));
	inst->as.ld.dst = (struct wregs){ reg, expr_int(l->pool, 0), 1 };
	inst->as.ld.bytes = dtype_bits(buffer->type) / 8;
	if (l->shared_of[buffer->id])
		lower_did(l, l->shared_of[buffer->id], true, false, false);
	return expr_reg(l->pool, reg, buffer->type, expr_int(l->pool, 0));
}

/* Where the thread holds an element of a fragment, if it does. */
struct owned {
	const struct expr *slot, *owns; /* owns: NULL when all threads do */
};

static struct owned owned_element(struct lower *l, const struct buffer *buffer,
                                  const struct expr *const *index)
{
	const struct layout *layout = l->solution->buffers[buffer->id].layout;
	const struct expr *tid = expr_of_var(l->pool, l->space.tid);
	const struct expr *replica = layout_replica_expr(l->pool, layout, tid);
	const struct expr *owner = layout_axis_expr(l->pool, layout, AXIS_THREAD, index, replica);
	struct owned owned = { layout_axis_expr(l->pool, layout, AXIS_SLOT, index, replica), NULL };

	if (owner != tid)
		owned.owns = expr_binary(l->pool, BIN_EQ, owner, tid);
	return owned;
}

/* An element that every thread reads: all have it, in the same slot. */
static const struct expr *fragment_element(struct lower *l, const struct buffer *buffer,
                                           const struct expr *const *index)
{
	struct owned owned = owned_element(l, buffer, index);

	if (owned.owns || expr_uses(owned.slot, l->space.tid)) {
		lower_error(l, "an element of fragment %s outside of T.Parallel belongs to one thread only",
		            sym_text(l->cx->names, buffer->name));
		return expr_int(l->pool, 0);
	}
	return owned.slot;
}

/* All owners of an element store it; where the slot depends on the thread, each slot is tried. */
static void store_fragment(struct lower *l, const struct buffer *buffer,
                           const struct expr *const *index, const struct expr *value)
{
	const struct wreg *reg = l->reg_of[buffer->id];
	struct owned owned = owned_element(l, buffer, index);
	struct access_iter iter = { access_iter_var(&l->space, 0, reg->n_slots), reg->n_slots, 0 };

	if (!expr_uses(owned.slot, l->space.tid)) {
		lower_set(l, reg, owned.slot, value, owned.owns);
		return;
	}
	struct wblock *outer = lower_open(l, &iter);
	const struct expr *slot = access_iter_value(&l->space, &iter);
	lower_set(l, reg, slot, value,
	          expr_and(l->pool, owned.owns, expr_binary(l->pool, BIN_EQ, owned.slot, slot)));
	lower_close(l, outer);
}

static const struct expr *scalar_load(void *user, const struct expr *load)
{
	struct lower *l = user;
	const struct buffer *buffer = load->as.buffer;
	const struct expr *index[MAX_RANK];

	scalar_index(l, buffer, load->args, index);
	switch (buffer->scope) {
	case SCOPE_GLOBAL:
	case SCOPE_SHARED:
		return memory_element(l, buffer, index);
	case SCOPE_LOCAL:
	case SCOPE_VAR:
		return expr_reg(l->pool, l->reg_of[buffer->id], buffer->type,
		                lower_flat_index(l, buffer, index));
	case SCOPE_FRAGMENT:
		return expr_reg(l->pool, l->reg_of[buffer->id], buffer->type,
		                fragment_element(l, buffer, index));
	case N_SCOPES:
		break;
	}
	return NULL;
}

const struct expr *lower_scalar(struct lower *l, const struct expr *e)
{
	const struct expr *value = scalar_value(l, e);

	return l->failed ? NULL : value;
}

void lower_let(struct lower *l, struct stmt *stmt)
{
	const struct var *var = stmt->as.let.var;
	struct use_list loads = { .arena = l->cx->arena };
	const struct expr *value = lower_scalar(l, stmt->as.let.value);

	if (!value)
		return;
	depend_expr(&loads, stmt, stmt->as.let.value);
	if (loads.uses.n) {
		struct wreg *reg = warp_new_reg(l->warp, var->name, var->type, 1);
		reg->is_uniform = !l->n_divergent && lower_is_uniform(value);
		lower_set(l, reg, expr_int(l->pool, 0), value, NULL);
		value = expr_reg(l->pool, reg, var->type, expr_int(l->pool, 0));
	}
	map_set(l->cx->arena, &l->subst.of_var, var->id, (void *)(uintptr_t)value);
}

/* The thread that stores what all here would store to one place; NULL: each of them does. */
static const struct expr *leader(struct lower *l)
{
	int64_t *values = arena_array(l->cx->arena, int64_t, expr_n_vars(l->pool) + 1u);
	int64_t *tid = &values[l->space.tid->id];

	for (uint32_t i = 0; i < l->guards.n; i++)
		if (!l->guards.p[i]->is_index)
			return NULL;
	for (*tid = 0; *tid < l->warp->n_threads; ++*tid) {
		bool is_here = true;
		for (uint32_t i = 0; i < l->guards.n && is_here; i++)
			is_here = expr_eval_int(l->guards.p[i], values) != 0;
		if (is_here)
			return expr_binary(l->pool, BIN_EQ, expr_of_var(l->pool, l->space.tid),
			                   expr_int(l->pool, *tid));
	}
	return NULL;
}

static void visit_thread(void *user, const struct expr *e)
{
	*(bool *)user |= e->kind == EXPR_VAR && e->as.var->kind == VAR_THREAD;
}

/* Does the statement's value name the thread? Then every thread stores its own. */
static bool value_names_thread(const struct stmt *stmt)
{
	bool found = false;

	expr_walk(stmt->as.store.value, visit_thread, &found);
	return found;
}

/* An atomic is made by every thread; of equal stores to one address one is enough. */
static void store_element(struct lower *l, const struct stmt *stmt, const struct expr *const *index,
                          const struct expr *value)
{
	const struct buffer *buffer = stmt->as.store.buffer;
	const char *name = arena_printf(l->cx->arena, "%s_s", sym_text(l->cx->names, buffer->name));
	const struct wreg *reg =
		warp_new_reg(l->warp, intern_text(l->cx->names, name), buffer->type, 1);
	const struct expr *zero = expr_int(l->pool, 0), *predicate = NULL;
	struct waddr addr = element_addr(l, buffer, index);

	lower_set(l, reg, zero, expr_cast(l->pool, buffer->type, value), NULL);
	if (buffer->scope == SCOPE_GLOBAL)
		predicate = lower_bounds(l, buffer, index);
	if (!stmt->as.store.atomic && lower_is_uniform(addr.offset) && !value_names_thread(stmt))
		predicate = expr_and(l->pool, predicate, leader(l));
	if (l->shared_of[buffer->id])
		lower_before_write(l, l->shared_of[buffer->id]);
	lower_write(l, stmt->as.store.atomic, addr, (struct wregs){ reg, zero, 1 })->predicate =
		predicate;
	if (l->shared_of[buffer->id])
		lower_did(l, l->shared_of[buffer->id], false, true, false);
}

void lower_scalar_store(struct lower *l, struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer;
	const struct expr *index[MAX_RANK], *value = lower_scalar(l, stmt->as.store.value);

	if (stmt->as.store.atomic && !lower_takes_atomic(l, buffer, stmt->as.store.atomic))
		return;
	scalar_index(l, buffer, stmt->as.store.index, index);
	if (!value || l->failed)
		return;
	value = expr_cast(l->pool, buffer->type, value);
	switch (buffer->scope) {
	case SCOPE_GLOBAL:
	case SCOPE_SHARED:
		store_element(l, stmt, index, value);
		return;
	case SCOPE_LOCAL:
	case SCOPE_VAR:
		lower_set(l, l->reg_of[buffer->id], lower_flat_index(l, buffer, index), value, NULL);
		return;
	case SCOPE_FRAGMENT:
		store_fragment(l, buffer, index, value);
		return;
	case N_SCOPES:
		return;
	}
}
