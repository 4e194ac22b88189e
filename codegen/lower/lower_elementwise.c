/*
 * Parallel loops, copies through registers and fills: each thread runs through its slots of the
 * iteration space.
 *
 *     for i, j in T.Parallel(4, 320):             unroll for step in 5:    # groups of slots
 *         y[i, j] = x_shared[i, j] * scale[i]         ld x_v[0; 8] <- x_shared[...] bytes=16
 *                                                     unroll for part in 8:
 *                                                         set y[...] <- x_v[part]*scale[0]
 *
 * Statements are lowered one after another; what a statement loads from shared or global memory
 * goes through a vector temporary, loaded once a group as long as nothing stored to that buffer in
 * between. Memory is read under its bounds only (a failing predicate gives zeros), stores carry
 * bounds, conditions and, with replicas, the first replica's mark.
 */
#include "codegen/lower/lower_internal.h"

#include "analyzer/tile/alias.h"

#include <assert.h>

/* A load that sits in a temporary. */
struct loaded {
	const struct expr *load, *predicate;
	const struct wreg *reg;
	bool is_one; /* all lanes of the vector read its first element */
};

/* One iteration space while its statements are lowered. */
struct elem {
	struct lower *l;
	const struct loop_plan *plan;
	uint32_t n_vars;
	const struct var *const *vars;
	struct access_iter group, lane; /* lane: position inside a vector */
	const struct var *slot_var;     /* stands for the slot in access_fragment_slot */
	const struct expr *slot, *guard;
	bool is_hoisted;           /* the guard stands around the whole loop */
	int n_conditions;          /* ifs around the statement, inside the loop */
	const struct expr *choice; /* under which a part is evaluated, at the lane; NULL: always */
	const struct expr *index[MAX_RANK];
	vec_of(struct loaded) loaded;
	vec_of(const struct var *) lets; /* scalars bound in the loop */
	struct expr_subst subst; /* tile and loop variables -> expressions of tid, group and lane */
};

static void subst_set(struct lower *l, struct expr_subst *subst, const struct var *var,
                      const struct expr *value)
{
	map_set(l->cx->arena, &subst->of_var, var->id, (void *)(uintptr_t)value);
}

static struct elem elem_open(struct lower *l, const struct loop_plan *plan,
                             const struct var *const *vars)
{
	struct elem e = { .l = l, .plan = plan, .n_vars = plan->layout->rank, .vars = vars };
	int64_t n_slots = plan->layout->n_slots, v = plan->vector_elems;

	e.group = (struct access_iter){ access_iter_var(&l->space, 0, n_slots / v), n_slots / v, 0 };
	e.lane = (struct access_iter){ access_iter_var(&l->space, 1, v), v, 1 };
	e.slot_var = access_iter_var(&l->space, MAX_ITERS - 1, n_slots);
	e.slot = expr_add(l->pool, expr_mul_int(l->pool, access_iter_value(&l->space, &e.group), v),
	                  access_iter_value(&l->space, &e.lane));
	access_loop_index(&l->space, plan, e.slot, e.index, &e.guard);
	for (uint32_t i = 0; i < l->subst.of_var.n; i++)
		map_set(l->cx->arena, &e.subst.of_var, l->subst.of_var.entries[i].key,
		        l->subst.of_var.entries[i].value.pointer);
	for (uint32_t d = 0; d < e.n_vars; d++)
		subst_set(l, &e.subst, vars[d], e.index[d]);
	return e;
}

/* Opens the guard, where it is the same for all slots, and the loop over groups. */
static struct wblock *elem_begin(struct elem *e)
{
	struct access_iter iters[2] = { e->group, e->lane };
	bool has_guard = e->guard != NULL;
	struct wblock *outer = lower_open_guard(e->l, &e->guard, iters, 2);

	e->is_hoisted = has_guard && !e->guard;
	lower_open(e->l, &e->group);
	return outer;
}

/* An expression of the loop's variables at the first slot of a vector of `w` elements at `part`. */
static const struct expr *at_part(struct elem *e, const struct expr *value, int64_t w,
                                  const struct access_iter *part)
{
	struct lower *l = e->l;
	const struct expr *lane = expr_mul_int(l->pool, access_iter_value(&l->space, part), w);

	if (e->lane.extent == 1 || !value)
		return value;
	return access_substitute(&l->space, value, &e->lane.var, &lane, 1);
}

/* Does an index read memory itself, or a scalar that was bound in the loop? */
static bool is_gather(struct elem *e, const struct expr *const *index, uint32_t rank)
{
	struct use_list loads = { .arena = e->l->cx->arena };

	for (uint32_t d = 0; d < rank; d++) {
		depend_expr(&loads, NULL, index[d]);
		for (uint32_t i = 0; i < e->lets.n; i++)
			if (expr_uses(index[d], e->lets.p[i]))
				return true;
	}
	return loads.uses.n > 0;
}

/* Tile index expressions in l's variables, the loop's own kept; they load nothing. */
static void tile_index(struct elem *e, const struct expr *const *index, uint32_t rank,
                       const struct expr **out)
{
	for (uint32_t d = 0; d < rank; d++)
		out[d] = lower_expr(e->l, index[d]);
}

/* ---- loads ---- */

/*
 * An index that a condition keeps inside the fragment may lie outside where the condition fails:
 * what is read there is not used, and what would be stored there is not stored, but a register must
 * be named.
 */
static const struct expr *inside_array(struct elem *e, const struct wreg *reg,
                                       const struct expr *slot)
{
	int64_t min, max;

	if (e->n_conditions == 0 || (expr_range(slot, &min, &max) && min >= 0 && max < reg->n_slots))
		return slot;
	return expr_mod_int(e->l->pool, slot, reg->n_slots);
}

static const struct expr *fragment_load(struct elem *e, const struct buffer *buffer,
                                        const struct expr *const *index)
{
	struct lower *l = e->l;
	struct owner_mismatch bad;
	const struct expr *at[MAX_RANK], *slot;

	if (is_gather(e, index, buffer->rank)) {
		lower_error(l,
		            "%s: an element of a fragment that is chosen by data belongs to a thread that "
		            "is not known",
		            sym_text(l->cx->names, buffer->name));
		return NULL;
	}
	tile_index(e, index, buffer->rank, at);
	struct elem_ref ref = { e->plan, e->vars, buffer, l->solution->buffers[buffer->id].layout, at };
	if (!access_fragment_slot(&l->space, &ref, e->slot_var, &slot, &bad)) {
		lower_error(l, "%s: the element that thread %lld needs sits in thread %lld",
		            sym_text(l->cx->names, buffer->name), (long long)bad.thread,
		            (long long)bad.owner);
		return NULL;
	}
	slot = access_substitute(&l->space, slot, &e->slot_var, &e->slot, 1);
	slot = inside_array(e, l->reg_of[buffer->id], slot);
	return expr_reg(l->pool, l->reg_of[buffer->id], buffer->type, slot);
}

static const struct layout *memory_layout(struct lower *l, const struct buffer *buffer)
{
	return buffer->scope == SCOPE_SHARED ? l->solution->buffers[buffer->id].layout : NULL;
}

/* Bounds of a global buffer at the access's first element. */
static const struct expr *access_bounds(struct elem *e, const struct access *access,
                                        const struct buffer *buffer,
                                        const struct expr *const *index)
{
	struct lower *l = e->l;
	const struct expr *at[MAX_RANK];
	int64_t w = access->bytes / (dtype_bits(buffer->type) / 8);

	if (buffer->scope != SCOPE_GLOBAL)
		return NULL;
	for (uint32_t d = 0; d < buffer->rank; d++) {
		at[d] = access_substitute(&l->space, index[d], e->vars, e->index, e->n_vars);
		at[d] = at_part(e, at[d], w, &access->iters[1]);
	}
	return lower_bounds(l, buffer, at);
}

static struct waddr access_addr(struct lower *l, const struct access *access)
{
	if (access->buffer->scope == SCOPE_SHARED)
		return lower_shared_addr(l, access->buffer, access->offset);
	return lower_global_addr(l, access->buffer, access->offset, access->bytes);
}

static const struct wreg *temp_reg(struct lower *l, const struct buffer *buffer, const char *suffix,
                                   int64_t n)
{
	const char *name =
		arena_printf(l->cx->arena, "%s_%s", sym_text(l->cx->names, buffer->name), suffix);

	return warp_new_reg(l->warp, intern_text(l->cx->names, name), buffer->type, n);
}

/* Guard and replica, as far as no if around the loop holds them already. */
static const struct expr *own_predicate(struct elem *e, const struct access *access)
{
	return e->is_hoisted ? access->replica : access_predicate(&e->l->space, access);
}

static const struct expr *elem_value(struct elem *e, const struct expr *value);
static const struct expr *on_choice(void *user, const struct expr *choice);

/*
 * An element whose index depends on data: its place and the condition under which it exists, at the
 * current lane.
 */
struct gathered {
	struct waddr addr;
	const struct expr *predicate;
};

static bool gather_place(struct elem *e, const struct buffer *buffer,
                         const struct expr *const *tile, struct gathered *out)
{
	struct lower *l = e->l;
	const struct expr *index[MAX_RANK];

	for (uint32_t d = 0; d < buffer->rank; d++) {
		index[d] = elem_value(e, tile[d]);
		if (!index[d] || l->failed)
			return false;
	}
	const struct expr *offset = access_offset(&l->space, buffer, memory_layout(l, buffer), index);
	out->addr = buffer->scope == SCOPE_SHARED
	                ? lower_shared_addr(l, buffer, offset)
	                : lower_global_addr(l, buffer, offset, dtype_bits(buffer->type) / 8);
	out->predicate =
		expr_and(l->pool, e->guard,
	             buffer->scope == SCOPE_GLOBAL ? lower_bounds(l, buffer, index)
	                                           : lower_read_predicate(buffer, index, e->choice));
	return true;
}

static bool gather_load(struct elem *e, const struct expr *load, const struct wreg *reg)
{
	struct lower *l = e->l;
	struct gathered place;

	if (!gather_place(e, load->as.buffer, load->args, &place))
		return false;
	struct wblock *outer = lower_open(l, &e->lane);
	struct winst *inst = lower_inst(l, WOP_ld);
	inst->predicate = place.predicate;
	inst->as.ld.src = place.addr;
	inst->as.ld.dst = (struct wregs){ reg, access_iter_value(&l->space, &e->lane), 1 };
	inst->as.ld.bytes = dtype_bits(load->as.buffer->type) / 8;
	lower_close(l, outer);
	return true;
}

/* The condition around a read of shared memory that may be outside without it; NULL: none. */
static const struct expr *load_predicate(struct elem *e, const struct expr *load)
{
	const struct buffer *buffer = load->as.buffer;
	const struct expr *index[MAX_RANK];

	if (!e->choice || is_gather(e, load->args, buffer->rank))
		return NULL;
	for (uint32_t d = 0; d < buffer->rank; d++)
		index[d] = expr_substitute(e->l->pool, load->args[d], &e->subst);
	return lower_read_predicate(buffer, index, e->choice);
}

/* Loads a group's elements into a temporary; false when it cannot. */
static bool memory_load(struct elem *e, const struct expr *load, struct loaded *out)
{
	struct lower *l = e->l;
	const struct buffer *buffer = load->as.buffer;
	const struct expr *index[MAX_RANK];
	struct access access;

	const struct expr *wanted = load_predicate(e, load);
	for (uint32_t i = 0; i < e->loaded.n; i++)
		if (e->loaded.p[i].load == load && e->loaded.p[i].predicate == wanted) {
			*out = e->loaded.p[i];
			return true;
		}
	if (is_gather(e, load->args, buffer->rank) ||
	    (wanted && e->lane.extent > 1 && expr_uses(wanted, e->lane.var))) {
		*out = (struct loaded){ .reg = temp_reg(l, buffer, "v", e->plan->vector_elems) };
		return gather_load(e, load, out->reg);
	}
	tile_index(e, load->args, buffer->rank, index);
	struct elem_ref ref = { e->plan, e->vars, buffer, memory_layout(l, buffer), index };
	access_elementwise(&l->space, &ref, false, 0, &access);
	const struct wreg *reg = temp_reg(l, buffer, "v", access.is_one ? 1 : e->plan->vector_elems);
	int64_t w = access.bytes / (dtype_bits(buffer->type) / 8);
	struct wblock *outer = lower_open(l, &access.iters[1]);
	struct winst *inst = lower_inst(l, WOP_ld);
	inst->predicate = expr_and(l->pool, expr_and(l->pool, own_predicate(e, &access), wanted),
	                           access_bounds(e, &access, buffer, index));
	inst->as.ld.src = access_addr(l, &access);
	inst->as.ld.dst = (struct wregs){
		reg, expr_mul_int(l->pool, access_iter_value(&l->space, &access.iters[1]), w), w
	};
	inst->as.ld.bytes = access.bytes;
	lower_close(l, outer);
	*out = (struct loaded){ load, wanted, reg, access.is_one };
	vec_push(l->cx->arena, &e->loaded, *out);
	return true;
}

/* What a load becomes; emits it when it comes from memory. */
static const struct expr *on_load(void *user, const struct expr *load)
{
	struct elem *e = user;
	struct lower *l = e->l;
	const struct buffer *buffer = load->as.buffer;
	const struct expr *index[MAX_RANK];
	struct loaded loaded;

	switch (buffer->scope) {
	case SCOPE_FRAGMENT:
		return fragment_load(e, buffer, load->args);
	case SCOPE_LOCAL:
	case SCOPE_VAR:
		for (uint32_t d = 0; d < buffer->rank; d++)
			index[d] = expr_substitute(l->pool, load->args[d], &e->subst);
		return expr_reg(l->pool, l->reg_of[buffer->id], buffer->type,
		                lower_flat_index(l, buffer, index));
	case SCOPE_GLOBAL:
	case SCOPE_SHARED:
		if (!memory_load(e, load, &loaded))
			return NULL;
		return expr_reg(l->pool, loaded.reg, buffer->type,
		                loaded.is_one ? expr_int(l->pool, 0)
		                              : access_iter_value(&l->space, &e->lane));
	case N_SCOPES:
		break;
	}
	return NULL;
}

/* A value in the warp program's terms, at one lane of the vector. */
static const struct expr *elem_value(struct elem *e, const struct expr *value)
{
	e->subst.on_load = on_load;
	e->subst.on_choice = on_choice;
	e->subst.user = e;
	return expr_substitute(e->l->pool, value, &e->subst);
}

static const struct expr *elem_part(void *user, const struct expr *value)
{
	return elem_value(user, value);
}

static const struct expr *on_choice(void *user, const struct expr *choice)
{
	struct elem *e = user;

	return lower_choice(&(struct choice_lowering){ e->l, &e->choice, elem_part, e }, choice);
}

/* ---- stores ---- */

static void store_registers(struct elem *e, const struct buffer *buffer, const struct expr *slot,
                            const struct expr *value, const struct expr *condition)
{
	struct lower *l = e->l;
	struct wblock *outer = lower_open(l, &e->lane);

	lower_set(l, l->reg_of[buffer->id], slot, expr_cast(l->pool, buffer->type, value),
	          expr_and(l->pool, e->guard, condition));
	lower_close(l, outer);
}

/*
 * The registers that hold the vector already, when the value is just a register of the right type;
 * else a temporary filled here.
 */
static struct wregs vector_source(struct elem *e, const struct buffer *buffer,
                                  const struct expr *value)
{
	struct lower *l = e->l;
	int64_t v = e->plan->vector_elems, coefficient;
	const struct expr *lane = access_iter_value(&l->space, &e->lane), *rest;

	value = expr_cast(l->pool, buffer->type, value);
	if (value->kind == EXPR_REG && dtype_equal(value->as.reg->type, buffer->type)) {
		if (v == 1)
			return (struct wregs){ value->as.reg, value->args[0], 1 };
		if (expr_linear_in(l->pool, value->args[0], e->lane.var, &coefficient, &rest) &&
		    coefficient == 1 && expr_divisor(rest) % v == 0)
			return (struct wregs){ value->as.reg, rest, v };
	}
	const struct wreg *reg = temp_reg(l, buffer, "out", v);
	struct wblock *outer = lower_open(l, &e->lane);
	lower_set(l, reg, lane, value, e->guard);
	lower_close(l, outer);
	return (struct wregs){ reg, expr_int(l->pool, 0), v };
}

/* What a statement of the loop stores, and how. */
struct elem_write {
	const struct buffer *buffer;
	const struct expr *const *index; /* in the tile's terms */
	enum atomic_kind atomic;
	const struct expr *condition; /* NULL: always */
};

/* Elements whose index depends on data are stored one by one. */
static void scatter_store(struct elem *e, const struct elem_write *write, struct wregs source)
{
	struct lower *l = e->l;
	struct gathered place;
	const struct layout *layout = e->plan->layout;
	const struct expr *lane = access_iter_value(&l->space, &e->lane);

	if (!gather_place(e, write->buffer, write->index, &place))
		return;
	if (layout->n_replicas > 1) {
		const struct expr *replica =
			layout_replica_expr(l->pool, layout, expr_of_var(l->pool, l->space.tid));
		place.predicate = expr_and(l->pool, place.predicate,
		                           expr_binary(l->pool, BIN_EQ, replica, expr_int(l->pool, 0)));
	}
	struct wblock *outer = lower_open(l, &e->lane);
	source = (struct wregs){ source.reg, expr_add(l->pool, source.slot, lane), 1 };
	lower_write(l, write->atomic, place.addr, source)->predicate =
		expr_and(l->pool, place.predicate, write->condition);
	lower_close(l, outer);
}

/* How wide the store's accesses may be; 0: as wide as the target's accesses are. */
static int64_t write_bytes(struct elem *e, const struct elem_write *write)
{
	if (write->condition)
		return dtype_bits(write->buffer->type) / 8;
	return write->atomic ? access_atomic_bytes(e->l->solution->target, write->buffer, write->atomic)
	                     : 0;
}

static void store_memory(struct elem *e, const struct elem_write *write, const struct expr *value)
{
	struct lower *l = e->l;
	const struct buffer *buffer = write->buffer;
	const struct expr *index[MAX_RANK];
	struct access access;

	struct wregs source = vector_source(e, buffer, value);
	if (is_gather(e, write->index, buffer->rank)) {
		scatter_store(e, write, source);
		return;
	}
	tile_index(e, write->index, buffer->rank, index);
	struct elem_ref ref = { e->plan, e->vars, buffer, memory_layout(l, buffer), index };
	access_elementwise(&l->space, &ref, true, write_bytes(e, write), &access);
	int64_t w = access.bytes * 8 / (int64_t)dtype_bits(buffer->type);
	struct wblock *outer = lower_open(l, &access.iters[1]);
	source.slot =
		expr_add(l->pool, source.slot,
	             expr_mul_int(l->pool, access_iter_value(&l->space, &access.iters[1]), w));
	source.n = w;
	struct winst *inst = lower_write(l, write->atomic, access_addr(l, &access), source);
	inst->predicate =
		expr_and(l->pool, own_predicate(e, &access), access_bounds(e, &access, buffer, index));
	inst->predicate =
		expr_and(l->pool, inst->predicate, at_part(e, write->condition, w, &access.iters[1]));
	lower_close(l, outer);
}

/* Temporaries of `buffer` are stale after a store to it. */
static void forget(struct elem *e, const struct buffer *buffer)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->loaded.n; i++)
		if (alias_owner(e->loaded.p[i].load->as.buffer) != alias_owner(buffer))
			e->loaded.p[n++] = e->loaded.p[i];
	e->loaded.n = n;
}

static void elem_store(struct elem *e, const struct elem_write *write,
                       const struct expr *tile_value)
{
	struct lower *l = e->l;
	const struct buffer *buffer = write->buffer;
	const struct expr *at[MAX_RANK], *target;
	const struct expr *value = elem_value(e, tile_value);

	if (!value || l->failed)
		return;
	if (write->atomic && !lower_takes_atomic(l, buffer, write->atomic))
		return;
	switch (buffer->scope) {
	case SCOPE_FRAGMENT:
		target = fragment_load(e, buffer, write->index);
		if (target)
			store_registers(e, buffer, target->args[0], value, write->condition);
		return;
	case SCOPE_LOCAL:
	case SCOPE_VAR:
		for (uint32_t d = 0; d < buffer->rank; d++)
			at[d] = expr_substitute(l->pool, write->index[d], &e->subst);
		store_registers(e, buffer, lower_flat_index(l, buffer, at), value, write->condition);
		return;
	case SCOPE_GLOBAL:
	case SCOPE_SHARED:
		store_memory(e, write, value);
		forget(e, buffer);
		return;
	case N_SCOPES:
		break;
	}
}

/* ---- statements of a parallel loop ---- */

static void elem_block(struct elem *e, struct block *block, const struct expr *condition);

static void elem_let(struct elem *e, const struct var *var, const struct expr *tile_value)
{
	struct lower *l = e->l;
	const struct expr *value = elem_value(e, tile_value);

	if (!value)
		return;
	const struct wreg *reg = warp_new_reg(l->warp, var->name, var->type, e->plan->vector_elems);
	struct wblock *outer = lower_open(l, &e->lane);
	lower_set(l, reg, access_iter_value(&l->space, &e->lane), value, e->guard);
	lower_close(l, outer);
	vec_push(l->cx->arena, &e->lets, var);
	subst_set(l, &e->subst, var,
	          expr_reg(l->pool, reg, var->type, access_iter_value(&l->space, &e->lane)));
}

/* What the body stores is not what was loaded before, from the second trip on. */
static void forget_stored(struct elem *e, struct block *block)
{
	struct use_list uses = { .arena = e->l->cx->arena };

	depend_block(&uses, block);
	for (uint32_t i = 0; i < uses.uses.n; i++)
		if (uses.uses.p[i].writes)
			forget(e, uses.uses.p[i].buffer);
}

static void bind_loop(struct elem *e, const struct var *var, const struct expr *value)
{
	subst_set(e->l, &e->subst, var, value);
	subst_set(e->l, &e->l->subst, var, value);
}

/*
 * A serial loop that an iteration runs: inside the loop over groups, around that over a vector's
 * lanes, so its trip count is the same for all of them.
 */
static void elem_loop(struct elem *e, struct stmt *stmt, const struct expr *condition)
{
	struct lower *l = e->l;
	struct loop *loop = &stmt->as.loop;
	struct use_list loads = { .arena = l->cx->arena };
	const struct expr *extent = expr_substitute(l->pool, loop->extents[0], &e->subst);
	struct wblock *outer = l->block;
	enum unroll unroll = lower_unroll(l, loop, extent);
	int64_t trips = 0;

	depend_expr(&loads, stmt, loop->extents[0]);
	if (loop->kind == LOOP_PARALLEL || loads.uses.n || expr_uses(extent, e->lane.var)) {
		lower_error(l, "this loop inside T.Parallel is not supported yet: its trip count is not "
		               "the same for all iterations");
		return;
	}
	forget_stored(e, &loop->body);
	uint32_t n_loaded = e->loaded.n;
	if (unroll == UNROLL_EXPANDED && expr_is_int(extent, &trips)) {
		for (int64_t t = 0; t < trips && !l->failed; t++) {
			bind_loop(e, loop->vars[0], expr_int(l->pool, t));
			elem_block(e, &loop->body, condition);
			e->loaded.n = n_loaded;
		}
		return;
	}
	struct wnode *node =
		warp_add_loop(l->warp, l->block,
	                  (struct wloop_head){ lower_loop_name(l, loop->vars[0]), extent,
	                                       unroll == UNROLL_LOOP, stmt->span });
	bind_loop(e, loop->vars[0], expr_of_var(l->pool, node->as.loop.var));
	l->block = &node->as.loop.body;
	elem_block(e, &loop->body, condition);
	e->loaded.n = n_loaded;
	lower_close(l, outer);
}

/* Do the branches change registers that the condition reads? */
static bool changes_condition(struct elem *e, struct stmt *stmt)
{
	struct use_list reads = { .arena = e->l->cx->arena }, inside = { .arena = e->l->cx->arena };

	depend_expr(&reads, stmt, stmt->as.if_.condition);
	depend_block(&inside, &stmt->as.if_.then);
	depend_block(&inside, &stmt->as.if_.otherwise);
	for (uint32_t i = 0; i < reads.uses.n; i++)
		for (uint32_t k = 0; k < inside.uses.n; k++)
			if (inside.uses.p[k].writes && inside.uses.p[k].buffer == reads.uses.p[i].buffer)
				return true;
	return false;
}

/* The condition of an `if`, which holds or not for all of its statements alike. */
static const struct expr *elem_condition(struct elem *e, struct stmt *stmt)
{
	const struct expr *test = elem_value(e, stmt->as.if_.condition), *lane;
	struct lower *l = e->l;

	if (!test || !changes_condition(e, stmt))
		return test;
	const struct wreg *reg = warp_new_reg(l->warp, intern_text(l->cx->names, "holds"), DTYPE_BOOL,
	                                      e->plan->vector_elems);
	struct wblock *outer = lower_open(l, &e->lane);
	lane = access_iter_value(&l->space, &e->lane);
	lower_set(l, reg, lane, expr_cast(l->pool, DTYPE_BOOL, test), e->guard);
	lower_close(l, outer);
	return expr_reg(l->pool, reg, DTYPE_BOOL, lane);
}

static void elem_stmt(struct elem *e, struct stmt *stmt, const struct expr *condition)
{
	struct lower *l = e->l;
	const struct expr *test;

	l->span = stmt->span;
	switch (stmt->kind) {
	case STMT_STORE:
		/* An iteration that several threads run contributes once. */
		if (stmt->as.store.buffer->is_reducer)
			condition =
				expr_and(l->pool, condition, access_first_replica(&l->space, e->plan->layout));
		elem_store(e,
		           &(struct elem_write){ stmt->as.store.buffer, stmt->as.store.index,
		                                 stmt->as.store.atomic, condition },
		           stmt->as.store.value);
		return;
	case STMT_LET:
		elem_let(e, stmt->as.let.var, stmt->as.let.value);
		return;
	case STMT_IF:
		test = elem_condition(e, stmt);
		if (!test)
			return;
		e->n_conditions++;
		elem_block(e, &stmt->as.if_.then, expr_and(l->pool, condition, test));
		elem_block(e, &stmt->as.if_.otherwise,
		           expr_and(l->pool, condition, expr_unary(l->pool, UN_NOT, test)));
		e->n_conditions--;
		return;
	case STMT_LOOP:
		elem_loop(e, stmt, condition);
		return;
	case STMT_OP:
	case STMT_WHILE:
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		lower_error(l, "this statement inside T.Parallel is not supported yet");
		return;
	}
}

static void elem_block(struct elem *e, struct block *block, const struct expr *condition)
{
	const struct expr *before = e->choice;

	e->choice = condition;
	for (uint32_t i = 0; i < block->stmts.n && !e->l->failed; i++)
		elem_stmt(e, block->stmts.p[i], condition);
	e->choice = before;
}

void lower_parallel(struct lower *l, struct stmt *stmt)
{
	struct loop *loop = &stmt->as.loop;
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];
	struct use_list uses = { .arena = l->cx->arena };

	assert(plan->has_plan && plan->as.loop.layout->rank == loop->n_vars);
	depend_stmt(&uses, stmt);
	lower_before_uses(l, &uses);
	struct elem e = elem_open(l, &plan->as.loop, loop->vars);
	struct wblock *outer = elem_begin(&e);
	elem_block(&e, &loop->body, NULL);
	lower_close(l, outer);
	l->span = stmt->span;
	lower_did_uses(l, &uses);
}

void lower_copy_loop(struct lower *l, const struct op_copy *copy, const struct loop_plan *loop,
                     const struct copy_space *space)
{
	struct elem e = elem_open(l, loop, space->vars);
	struct wblock *outer = elem_begin(&e);
	const struct expr *value = expr_load(l->pool, copy->src.buffer, copy->src.buffer->type,
	                                     space->src_index, copy->src.buffer->rank);

	elem_store(&e, &(struct elem_write){ copy->dst.buffer, space->dst_index, ATOMIC_NONE, NULL },
	           value);
	lower_close(l, outer);
}

/* Of a reducer one owner gets the start value, the others what changes nothing. */
static const struct expr *start_value(struct lower *l, const struct buffer *buffer,
                                      const struct expr *value)
{
	const struct expr *none = reduce_identity(l->pool, buffer->reducer, buffer->type), *first;

	first = access_first_replica(&l->space, l->solution->buffers[buffer->id].layout);
	return first && value != none ? expr_select(l->pool, first, value, none) : value;
}

/* A whole fragment needs no indices: all slots get the value. */
static void fill_registers(struct lower *l, const struct wreg *reg, const struct expr *value)
{
	struct access_iter iter = { access_iter_var(&l->space, 0, reg->n_slots), reg->n_slots, 0 };
	struct wblock *outer = lower_open(l, &iter);

	value = expr_cast(l->pool, reg->type, value);
	if (reg->buffer && reg->buffer->is_reducer)
		value = start_value(l, reg->buffer, value);
	lower_set(l, reg, access_iter_value(&l->space, &iter), expr_cast(l->pool, reg->type, value),
	          NULL);
	lower_close(l, outer);
}

static bool is_whole(const struct region *region)
{
	for (uint32_t d = 0; d < region->buffer->rank; d++)
		if (region->extent[d] != buffer_extent(region->buffer, d))
			return false;
	return true;
}

void lower_fill(struct lower *l, struct stmt *stmt)
{
	struct op_fill *fill = &stmt->as.op.as.fill;
	const struct stmt_plan *plan = &l->solution->plans[stmt->id];
	struct op_copy self = { .src = fill->dst, .dst = fill->dst };
	struct use_list uses = { .arena = l->cx->arena };
	struct copy_space space;
	const struct expr *value = lower_scalar(l, fill->value);

	if (!value)
		return;
	if (fill->dst.buffer->scope != SCOPE_SHARED && fill->dst.buffer->scope != SCOPE_GLOBAL &&
	    is_whole(&fill->dst)) {
		fill_registers(l, l->reg_of[fill->dst.buffer->id], value);
		return;
	}
	if (!plan->has_plan || !access_copy_space(&l->space, &self, &space)) {
		lower_error(l, "T.fill of this part of a buffer is not supported yet");
		return;
	}
	depend_stmt(&uses, stmt);
	lower_before_uses(l, &uses);
	struct elem e = elem_open(l, &plan->as.loop, space.vars);
	struct wblock *outer = elem_begin(&e);
	elem_store(&e, &(struct elem_write){ fill->dst.buffer, space.dst_index, ATOMIC_NONE, NULL },
	           fill->value);
	lower_close(l, outer);
	lower_did_uses(l, &uses);
}
