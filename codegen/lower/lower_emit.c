/*
 * Instructions, loops and barriers of the warp program under construction.
 *
 * Barriers follow from what touched a piece of shared memory since the last one: a read needs one
 * after a write of the same interval, a write needs one after a read or a write. cp.async needs a
 * wait by the issuing thread before that barrier, and what wgmma reads a proxy fence.
 */
#include "codegen/lower/lower_internal.h"

#include "analyzer/tile/alias.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

void lower_error(struct lower *l, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	diag_report(&l->cx->diags, DIAG_E0640, l->span, "%s", text);
	l->failed = true;
}

struct winst *lower_inst(struct lower *l, enum wop_kind kind)
{
	return &warp_add_inst(l->warp, l->block, kind, l->span)->as.inst;
}

void lower_set(struct lower *l, const struct wreg *reg, const struct expr *slot,
               const struct expr *value, const struct expr *predicate)
{
	struct winst *inst = lower_inst(l, WOP_set);

	inst->predicate = predicate;
	inst->as.set.dst = (struct wregs){ reg, slot, 1 };
	inst->as.set.value = value;
}

bool lower_takes_atomic(struct lower *l, const struct buffer *buffer, enum atomic_kind atomic)
{
	bool in_memory = buffer->scope == SCOPE_GLOBAL || buffer->scope == SCOPE_SHARED;
	char type[32];

	if (!in_memory)
		lower_error(l, "%s is in registers, which no other thread can change: store to it",
		            sym_text(l->cx->names, buffer->name));
	else if (access_atomic_bytes(l->solution->target, buffer, atomic) == 0)
		lower_error(l, "there is no atomic %s of %s", atomic_kind_text(atomic),
		            dtype_name(buffer->type, type));
	return !l->failed;
}

struct winst *lower_write(struct lower *l, enum atomic_kind atomic, struct waddr to,
                          struct wregs from)
{
	int64_t bytes = from.n * (int64_t)dtype_bits(from.reg->type) / 8;
	struct winst *inst = lower_inst(l, atomic == ATOMIC_NONE ? WOP_st : WOP_red);

	if (atomic == ATOMIC_NONE) {
		inst->as.st.dst = to;
		inst->as.st.src = from;
		inst->as.st.bytes = bytes;
	} else {
		inst->as.red.dst = to;
		inst->as.red.src = from;
		inst->as.red.bytes = bytes;
		inst->as.red.kind = atomic;
	}
	return inst;
}

struct wblock *lower_open(struct lower *l, const struct access_iter *iter)
{
	struct wblock *outer = l->block;

	if (iter->extent == 1)
		return outer;
	const struct expr *extent = expr_int(l->pool, iter->extent);
	struct wnode *node = warp_add_loop(
		l->warp, l->block,
		(struct wloop_head){ sym_text(l->cx->names, iter->var->name), extent, true, l->span });
	node->as.loop.var = iter->var;
	l->block = &node->as.loop.body;
	return outer;
}

struct wblock *lower_open_if(struct lower *l, const struct expr *condition)
{
	struct wblock *outer = l->block;

	if (expr_is_true(condition))
		return outer;
	l->block = &warp_add_if(l->warp, l->block, condition, l->span)->as.if_.then;
	return outer;
}

struct wblock *lower_open_guard(struct lower *l, const struct expr **condition,
                                const struct access_iter *iters, uint32_t n_iters)
{
	struct wblock *outer = l->block;

	for (uint32_t i = 0; *condition && i < n_iters; i++)
		if (expr_uses(*condition, iters[i].var))
			return outer;
	lower_open_if(l, *condition);
	*condition = NULL;
	return outer;
}

/* ---- rebinding ---- */

static void rebind_expr(struct lower *l, const struct expr_subst *subst, const struct expr **e)
{
	if (*e)
		*e = expr_substitute(l->pool, *e, subst);
}

static void rebind_inst(struct lower *l, const struct expr_subst *subst, struct winst *inst)
{
	const struct wop_info *info = wop_info(inst->kind);

	rebind_expr(l, subst, &inst->predicate);
	for (uint32_t i = 0; i < info->n_operands; i++) {
		void *operand = (char *)&inst->as + info->operands[i].offset;
		switch (info->operands[i].role) {
		case WROLE_ADDR_READ:
		case WROLE_ADDR_WRITE:
		case WROLE_ADDR_UPDATE:
			rebind_expr(l, subst, &((struct waddr *)operand)->offset);
			break;
		case WROLE_REGS_READ:
		case WROLE_REGS_WRITE:
		case WROLE_REGS_UPDATE:
			rebind_expr(l, subst, &((struct wregs *)operand)->slot);
			break;
		case WROLE_VALUE:
			rebind_expr(l, subst, (const struct expr **)operand);
			break;
		case WROLE_NUM:
			break;
		}
	}
}

static void rebind_block(struct lower *l, const struct expr_subst *subst, struct wblock *block,
                         uint32_t first)
{
	for (uint32_t i = first; i < block->nodes.n; i++) {
		struct wnode *node = block->nodes.p[i];
		switch (node->kind) {
		case WNODE_INST:
			rebind_inst(l, subst, &node->as.inst);
			break;
		case WNODE_LOOP:
			rebind_expr(l, subst, &node->as.loop.extent);
			rebind_block(l, subst, &node->as.loop.body, 0);
			break;
		case WNODE_IF:
			rebind_expr(l, subst, &node->as.if_.condition);
			rebind_block(l, subst, &node->as.if_.then, 0);
			rebind_block(l, subst, &node->as.if_.otherwise, 0);
			break;
		case WNODE_WHILE:
			rebind_expr(l, subst, &node->as.while_.condition);
			rebind_block(l, subst, &node->as.while_.body, 0);
			break;
		}
	}
}

void lower_rebind(struct lower *l, struct wblock *block, uint32_t first, const struct var *var,
                  const struct expr *value)
{
	struct expr_subst subst = { 0 };

	map_set(l->cx->arena, &subst.of_var, var->id, (void *)(uintptr_t)value);
	rebind_block(l, &subst, block, first);
}

void lower_close(struct lower *l, struct wblock *outer)
{
	l->block = outer;
}

const struct expr *lower_flat_index(struct lower *l, const struct buffer *buffer,
                                    const struct expr *const *index)
{
	const struct expr *flat = expr_int(l->pool, 0);

	for (uint32_t d = 0; d < buffer->rank; d++)
		flat = expr_add(l->pool, expr_mul_int(l->pool, flat, buffer_extent(buffer, d)), index[d]);
	return flat;
}

struct waddr lower_shared_addr(struct lower *l, const struct buffer *buffer,
                               const struct expr *offset)
{
	const struct wshared *shared = l->shared_of[buffer->id];
	const struct expr *version = l->version_of[alias_owner(buffer)->id];

	assert(shared);
	if (version)
		offset = expr_add(l->pool, expr_mul_int(l->pool, version, shared->version_bytes), offset);
	return (struct waddr){ .space = WSPACE_SHARED, .shared = shared, .offset = offset };
}

struct waddr lower_global_addr(struct lower *l, const struct buffer *buffer,
                               const struct expr *offset, int64_t bytes)
{
	const struct buffer *argument = alias_owner(buffer);
	int64_t bits = dtype_bits(buffer->type), argument_bits = dtype_bits(argument->type);

	if (bits > argument_bits)
		offset = expr_mul_int(l->pool, offset, bits / argument_bits);
	else if (bits < argument_bits && bytes * 8 % argument_bits == 0 &&
	         expr_divisor(offset) % (argument_bits / bits) == 0)
		offset = expr_div_int(l->pool, offset, argument_bits / bits);
	else if (bits < argument_bits)
		lower_error(l,
		            "%s: accesses to parts of an element of %s, a tensor in a wider type, are not "
		            "supported yet",
		            sym_text(l->cx->names, buffer->name), sym_text(l->cx->names, argument->name));
	return (struct waddr){ .space = WSPACE_GLOBAL, .global = argument, .offset = offset };
}

const struct expr *lower_bounds(struct lower *l, const struct buffer *buffer,
                                const struct expr *const *index)
{
	const struct expr *all = NULL;

	for (uint32_t d = 0; d < buffer->rank; d++) {
		int64_t min, max;
		if (!expr_range(index[d], &min, &max) || min < 0)
			all = expr_and(l->pool, all,
			               expr_binary(l->pool, BIN_GE, index[d], expr_int(l->pool, 0)));
		all = expr_and(l->pool, all, expr_lt(l->pool, index[d], lower_expr(l, buffer->shape[d])));
	}
	return expr_is_true(all) ? NULL : all;
}

/* ---- barriers ---- */

/* Roles whose threads are all in the role `outer`, as a bit set. */
static uint64_t roles_within(const struct lower *l, uint32_t outer)
{
	const struct thread_range *all = &l->roles[outer];
	uint64_t set = 0;

	for (uint32_t r = 0; r < l->n_roles; r++)
		if (l->roles[r].first >= all->first &&
		    l->roles[r].first + l->roles[r].n <= all->first + all->n)
			set |= (uint64_t)1 << r;
	return set;
}

static void forget_hazards(struct lower *l, uint64_t ordered)
{
	for (uint32_t i = 0; i < l->warp->shareds.n; i++) {
		l->hazards[i].read &= ~ordered;
		l->hazards[i].written &= ~ordered;
	}
}

/* An instruction that all threads of the role must reach; lower_converge takes it there. */
static struct winst *meeting_point(struct lower *l, enum wop_kind kind)
{
	struct wnode *node = warp_add_inst(l->warp, l->block, kind, l->span);

	if (l->n_divergent)
		map_set(l->cx->arena, &l->misplaced, node->id, node);
	return &node->as.inst;
}

/* What was written to operands of wgmma is fenced before the barrier that lets them be read. */
static void fence_operands(struct lower *l)
{
	uint64_t roles = roles_within(l, l->role);
	bool any = false;

	for (uint32_t i = 0; i < l->warp->shareds.n; i++) {
		any |= l->wgmma_reads[i] && (l->hazards[i].unfenced & roles);
		l->hazards[i].unfenced &= ~roles;
	}
	if (any)
		meeting_point(l, WOP_fence_async);
}

void lower_met(struct lower *l)
{
	forget_hazards(l, roles_within(l, l->role));
}

void lower_barrier(struct lower *l)
{
	fence_operands(l);
	if (l->role == 0) {
		meeting_point(l, WOP_barrier);
	} else {
		struct winst *inst = meeting_point(l, WOP_barrier_part);
		if (!lower_barrier_number(l, l->role, &inst->as.barrier_part.id))
			lower_error(l,
			            "these threads need a barrier of their own, and the kernel itself uses "
			            "barrier %d",
			            (int)inst->as.barrier_part.id);
		inst->as.barrier_part.n_threads = l->roles[l->role].n;
	}
	lower_met(l);
}

void lower_written_barrier(struct lower *l)
{
	fence_operands(l);
	lower_inst(l, WOP_barrier);
	forget_hazards(l, UINT64_MAX);
}

/* Waits for the copies of these roles into the piece: for all that the threads have issued. */
static void wait_async(struct lower *l, const struct wshared *shared, uint64_t roles)
{
	if (!(l->hazards[shared->id].async & roles))
		return;
	meeting_point(l, WOP_cp_async_wait)->as.cp_async_wait.n_pending = 0;
	roles = roles_within(l, l->role);
	for (uint32_t i = 0; i < l->warp->shareds.n; i++) {
		l->hazards[i].written |= l->hazards[i].async & roles;
		l->hazards[i].unfenced |= l->hazards[i].async & roles;
		l->hazards[i].async &= ~roles;
	}
}

void lower_settle(struct lower *l)
{
	uint64_t roles = roles_within(l, l->role);

	for (uint32_t i = 0; i < l->warp->shareds.n; i++)
		wait_async(l, l->warp->shareds.p[i], roles);
	fence_operands(l);
}

void lower_wait_all(struct lower *l)
{
	for (uint32_t i = 0; i < l->warp->shareds.n; i++)
		wait_async(l, l->warp->shareds.p[i], UINT64_MAX);
}

static void before_read(struct lower *l, const struct wshared *shared, uint64_t roles)
{
	wait_async(l, shared, roles);
	if (l->hazards[shared->id].written & roles)
		lower_barrier(l);
}

static void before_write(struct lower *l, const struct wshared *shared, uint64_t roles)
{
	wait_async(l, shared, roles);
	if ((l->hazards[shared->id].written | l->hazards[shared->id].read) & roles)
		lower_barrier(l);
}

void lower_before_read(struct lower *l, const struct wshared *shared)
{
	before_read(l, shared, roles_within(l, l->role));
}

void lower_before_write(struct lower *l, const struct wshared *shared)
{
	before_write(l, shared, roles_within(l, l->role));
}

/* Other groups' accesses are left to the kernel when it makes its own barriers. */
void lower_before_role(struct lower *l, const struct use_list *uses, uint32_t inner)
{
	uint64_t roles = roles_within(l, l->role) & ~roles_within(l, inner);

	if (l->is_manual)
		roles &= (uint64_t)1 << l->role;
	for (uint32_t i = 0; i < uses->uses.n; i++) {
		const struct wshared *shared = l->shared_of[uses->uses.p[i].buffer->id];
		if (shared && uses->uses.p[i].writes)
			before_write(l, shared, roles);
		else if (shared)
			before_read(l, shared, roles);
	}
}

void lower_did(struct lower *l, const struct wshared *shared, bool read, bool written, bool async)
{
	struct hazard *hazard = &l->hazards[shared->id];
	uint64_t role = (uint64_t)1 << l->role;

	hazard->read |= read ? role : 0;
	hazard->written |= written ? role : 0;
	hazard->async |= async ? role : 0;
	hazard->unfenced |= written || async ? role : 0;
}

void lower_before_uses(struct lower *l, const struct use_list *uses)
{
	for (uint32_t i = 0; i < uses->uses.n; i++) {
		const struct buffer_use *use = &uses->uses.p[i];
		const struct wshared *shared = l->shared_of[use->buffer->id];
		if (shared && use->writes)
			lower_before_write(l, shared);
		else if (shared)
			lower_before_read(l, shared);
	}
}

void lower_did_uses(struct lower *l, const struct use_list *uses)
{
	for (uint32_t i = 0; i < uses->uses.n; i++) {
		const struct buffer_use *use = &uses->uses.p[i];
		if (l->shared_of[use->buffer->id])
			lower_did(l, l->shared_of[use->buffer->id], use->reads, use->writes, false);
	}
}

struct hazard *lower_save_hazards(struct lower *l)
{
	uint32_t n = l->warp->shareds.n;
	struct hazard *copy = arena_array(l->cx->arena, struct hazard, n);

	if (n)
		memcpy(copy, l->hazards, n * sizeof *copy);
	return copy;
}

void lower_merge_hazards(struct lower *l, const struct hazard *other)
{
	for (uint32_t i = 0; i < l->warp->shareds.n; i++) {
		l->hazards[i].read |= other[i].read;
		l->hazards[i].written |= other[i].written;
		l->hazards[i].async |= other[i].async;
		l->hazards[i].unfenced |= other[i].unfenced;
	}
}
