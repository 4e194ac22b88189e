/*
 * Which arrays and scalars of the threads hold the same values in all threads of a block.
 *
 *     at[0] = bx * per_block           uniform
 *     while at[0] < end:               so all threads take the same turns, and a barrier
 *         at[0] = at[0] + 1            may stand in the loop
 *     v[0] = x[tx]                     not uniform
 *
 * A fragment is uniform when every thread holds all of it, in the same slots: an element's replicas
 * are equal, unless a statement outside T.Parallel gives each thread its own.
 *
 * All are taken for uniform until a store says otherwise: of a value, or at an index, or under a
 * condition that differs between threads. That may spoil others, so it is repeated until nothing
 * changes; each round spoils one at least. Complexity: arrays times statements.
 */
#include "codegen/lower/lower_internal.h"

struct uniformity {
	struct lower *l;
	struct map varying_lets; /* variable id -> its statement */
	int n_divergent;         /* conditions and loops around that differ between threads */
	int n_parallel;          /* of these T.Parallel */
	bool changed;
};

struct varying_visit {
	const struct uniformity *u;
	bool found;
};

static bool is_private(const struct buffer *buffer)
{
	return buffer->scope == SCOPE_LOCAL || buffer->scope == SCOPE_VAR ||
	       buffer->scope == SCOPE_FRAGMENT;
}

static void visit_varying(void *user, const struct expr *e)
{
	struct varying_visit *visit = user;

	if (e->kind == EXPR_VAR)
		visit->found |= e->as.var->kind == VAR_THREAD ||
		                map_get(&visit->u->varying_lets, e->as.var->id) != NULL;
	else if (e->kind == EXPR_LOAD && is_private(e->as.buffer))
		visit->found |= !visit->u->l->is_uniform[e->as.buffer->id];
	else if (e->kind == EXPR_CALL)
		visit->found = true;
}

static bool varies(const struct uniformity *u, const struct expr *e)
{
	struct varying_visit visit = { u, false };

	expr_walk(e, visit_varying, &visit);
	return visit.found;
}

static void spoil(struct uniformity *u, const struct buffer *buffer)
{
	if (!is_private(buffer) || !u->l->is_uniform[buffer->id])
		return;
	u->l->is_uniform[buffer->id] = false;
	u->changed = true;
}

static void look_at_store(struct uniformity *u, const struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer;
	int n_own = buffer->scope == SCOPE_FRAGMENT ? u->n_parallel : 0;
	bool differs = u->n_divergent > n_own || varies(u, stmt->as.store.value);

	for (uint32_t d = 0; d < buffer->rank; d++)
		differs |= varies(u, stmt->as.store.index[d]);
	if (differs)
		spoil(u, buffer);
}

/*
 * An operation that fills an array gives all threads the same, from memory that all of them see.
 * What a fragment takes from another one is the same in all its replicas, wherever that lives.
 */
static void look_at_op(struct uniformity *u, struct op *op)
{
	enum operand_role role;
	bool differs = u->n_divergent > 0, at_own = differs;

	for (uint32_t i = 0; op_region(op, i, &role); i++) {
		const struct region *region = op_region(op, i, &role);
		if (!region->buffer)
			continue;
		differs |= is_private(region->buffer) && !u->l->is_uniform[region->buffer->id];
		for (uint32_t d = 0; d < region->buffer->rank; d++)
			at_own |= varies(u, region->min[d]);
	}
	at_own |= op->kind == OP_fill && varies(u, op->as.fill.value);
	differs |= at_own;
	for (uint32_t i = 0; differs && op_region(op, i, &role); i++)
		if (op_region(op, i, &role)->buffer && role != ROLE_READ &&
		    (at_own || op_region(op, i, &role)->buffer->scope != SCOPE_FRAGMENT))
			spoil(u, op_region(op, i, &role)->buffer);
}

static void look_at(struct uniformity *u, const struct block *block);

static void look_under(struct uniformity *u, const struct block *block, bool differs)
{
	u->n_divergent += differs;
	look_at(u, block);
	u->n_divergent -= differs;
}

static void look_at_stmt(struct uniformity *u, struct stmt *stmt)
{
	bool differs;

	switch (stmt->kind) {
	case STMT_OP:
		look_at_op(u, &stmt->as.op);
		break;
	case STMT_LOOP:
		differs = stmt->as.loop.kind == LOOP_PARALLEL || varies(u, stmt->as.loop.extents[0]);
		u->n_parallel += stmt->as.loop.kind == LOOP_PARALLEL;
		look_under(u, &stmt->as.loop.body, differs);
		u->n_parallel -= stmt->as.loop.kind == LOOP_PARALLEL;
		break;
	case STMT_IF:
		differs = varies(u, stmt->as.if_.condition);
		look_under(u, &stmt->as.if_.then, differs);
		look_under(u, &stmt->as.if_.otherwise, differs);
		break;
	case STMT_WHILE:
		look_under(u, &stmt->as.while_.body, varies(u, stmt->as.while_.condition));
		break;
	case STMT_LET:
		if (u->n_divergent > 0 || varies(u, stmt->as.let.value))
			map_set(u->l->cx->arena, &u->varying_lets, stmt->as.let.var->id, stmt);
		break;
	case STMT_STORE:
		look_at_store(u, stmt);
		break;
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		break;
	}
}

/* Nesting is that of the tile program, which the front end bounds. */
static void look_at(struct uniformity *u, const struct block *block)
{
	for (uint32_t i = 0; i < block->stmts.n; i++)
		look_at_stmt(u, block->stmts.p[i]);
}

/* Every element sits in the same slot of all threads. */
static bool is_everywhere(const struct layout *layout, int64_t n_threads)
{
	if (layout->table_threads || layout->n_replicas != n_threads)
		return false;
	for (uint32_t i = 0; i < layout->n_digits; i++)
		if ((layout->digits[i].axis == AXIS_SLOT) == (layout->digits[i].dim == DIM_REPLICA))
			return false;
	return true;
}

/* Fragments that some threads do not hold whole are not. */
static bool may_be_uniform(const struct lower *l, uint32_t id)
{
	const struct layout *layout = l->solution->buffers[id].layout;

	/* Threads hold different parts of a reducer. */
	if (l->solution->program->buffers.p[id]->is_reducer)
		return false;
	return l->solution->program->buffers.p[id]->scope != SCOPE_FRAGMENT ||
	       (layout && is_everywhere(layout, l->space.n_threads));
}

void lower_find_uniform(struct lower *l, const struct launch *launch, uint32_t n_buffers)
{
	struct uniformity u = { .l = l, .changed = true };

	l->is_uniform = arena_array(l->cx->arena, bool, n_buffers);
	for (uint32_t i = 0; i < n_buffers; i++)
		l->is_uniform[i] = may_be_uniform(l, i);
	while (u.changed) {
		u.changed = false;
		look_at(&u, &launch->body);
	}
}
