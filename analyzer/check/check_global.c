/*
 * happens-before in global memory, and owner of the arrays that every thread has for itself, on
 * the tile program.
 *
 * check_run executes what happens in shared memory. Of global memory this is decided:
 *   - iterations of a parallel loop, or blocks, that write different values into one element are a
 *     violation: the element's index has nothing of the variable, the value has, and no condition
 *     around picks an iteration out;
 *   - a buffer that the launch both writes and reads, other than element by element in one
 *     statement, is not proved: which thread does either depends on the partitions.
 * What an iteration of T.Parallel leaves in a thread's own array is with the thread that ran it; an
 * access outside the loop meets the thread's own share, so that its value is not the program's.
 * Functions that have no code yet (EXPR_CALL) are not proved either.
 */
#include "analyzer/check/check_internal.h"

#include "analyzer/pipeline/depend.h"

/* Conditions and parallel loops around a statement, innermost first. */
struct around {
	const struct around *outer;
	const struct expr *condition; /* of an if or while; NULL: a loop */
	const struct stmt *parallel;  /* a T.Parallel; NULL: a condition */
};

struct global_walk {
	struct check *check;
	const struct launch *launch;
	const struct stmt **written; /* by buffer id: the T.Parallel that filled a thread's own */
	bool *reported;              /* by buffer id */
	bool calls;                  /* a call that is not modelled has been told */
};

static const char *name_of(const struct global_walk *w, const struct buffer *buffer)
{
	return sym_text(w->check->cx->names, buffer->name);
}

static void visit_indirect(void *user, const struct expr *e)
{
	bool *found = user;

	*found |= e->kind == EXPR_LOAD || (e->kind == EXPR_VAR && e->as.var->kind == VAR_LET);
}

/* Can the index tell iterations apart by something else than the variable itself? */
static bool tells_apart(const struct expr *const *index, uint32_t n, const struct var *var)
{
	bool found = false;

	for (uint32_t i = 0; i < n; i++) {
		found |= expr_uses(index[i], var);
		expr_walk(index[i], visit_indirect, &found);
	}
	return found;
}

static bool is_picked(const struct around *around, const struct var *var)
{
	for (; around; around = around->outer) {
		bool found = around->condition && expr_uses(around->condition, var);
		if (around->condition)
			expr_walk(around->condition, visit_indirect, &found);
		if (found)
			return true;
	}
	return false;
}

/* A write of values `value` (n_values of them) to an element of a global buffer. */
struct global_write {
	const struct stmt *stmt;
	const struct buffer *buffer;
	const struct expr *const *index;
	const struct expr *const *values;
	uint32_t n_values;
};

static void check_variable(struct global_walk *w, const struct global_write *write,
                           const struct around *around, const struct var *var, const char *what)
{
	bool differs = false;

	for (uint32_t i = 0; i < write->n_values; i++)
		differs |= expr_uses(write->values[i], var);
	if (!differs || w->reported[write->buffer->id] || is_picked(around, var) ||
	    tells_apart(write->index, write->buffer->rank, var))
		return;
	w->reported[write->buffer->id] = true;
	check_found(w->check,
	            (struct finding){ PROPERTY_HAPPENS_BEFORE, PROPERTY_VIOLATED, write->stmt->span,
	                              name_of(w, write->buffer) },
	            "%s write different values into one element: %s is in the value, not in the index",
	            what, sym_text(w->check->cx->names, var->name));
}

static bool varies(const struct expr *extent)
{
	int64_t n;

	return extent && expr_is_int(extent, &n) && n > 1;
}

static void check_write(struct global_walk *w, const struct global_write *write,
                        const struct around *around)
{
	for (const struct around *a = around; a; a = a->outer)
		for (uint32_t k = 0; a->parallel && k < a->parallel->as.loop.n_vars; k++)
			if (varies(a->parallel->as.loop.extents[k]))
				check_variable(w, write, around, a->parallel->as.loop.vars[k],
				               "iterations of T.Parallel");
	for (int k = 0; k < 3; k++)
		if (w->launch->block[k] && varies(w->launch->grid[k]))
			check_variable(w, write, around, w->launch->block[k], "blocks");
}

/* The outermost T.Parallel around; NULL: none. */
static const struct stmt *parallel_around(const struct around *around)
{
	const struct stmt *parallel = NULL;

	for (; around; around = around->outer)
		if (around->parallel)
			parallel = around->parallel;
	return parallel;
}

/* Does the place or the value follow the iterations? */
static bool follows(const struct stmt *stmt, const struct stmt *parallel)
{
	const struct buffer *buffer = stmt->as.store.buffer;

	for (uint32_t k = 0; k < parallel->as.loop.n_vars; k++) {
		const struct var *var = parallel->as.loop.vars[k];
		bool found = expr_uses(stmt->as.store.value, var);

		for (uint32_t i = 0; i < buffer->rank; i++)
			found |= expr_uses(stmt->as.store.index[i], var);
		if (found && varies(parallel->as.loop.extents[k]))
			return true;
	}
	return false;
}

static void note_local_write(struct global_walk *w, const struct stmt *stmt,
                             const struct around *around)
{
	const struct buffer *buffer = stmt->as.store.buffer;
	const struct stmt *parallel = parallel_around(around);

	if (buffer->scope != SCOPE_LOCAL && buffer->scope != SCOPE_VAR)
		return;
	if (parallel && follows(stmt, parallel))
		w->written[buffer->id] = parallel;
	else if (w->written[buffer->id] != parallel && (parallel || buffer->scope == SCOPE_VAR))
		w->written[buffer->id] = NULL;
}

/* Uses of a thread's own array in a statement that is not the loop that filled it. */
static void check_local_uses(struct global_walk *w, struct stmt *stmt, const struct around *around)
{
	struct use_list uses = { .arena = w->check->cx->arena };

	depend_stmt(&uses, stmt);
	for (uint32_t i = 0; i < uses.uses.n; i++) {
		const struct buffer *buffer = uses.uses.p[i].buffer;
		const struct stmt *parallel = w->written[buffer->id];

		if (!uses.uses.p[i].reads || !parallel || parallel == parallel_around(around) ||
		    w->reported[buffer->id])
			continue;
		w->reported[buffer->id] = true;
		check_found(
			w->check,
			(struct finding){ PROPERTY_OWNER, PROPERTY_NOT_PROVED, stmt->span, name_of(w, buffer) },
			"every thread has its own; T.Parallel at line %u fills it for the iterations "
			"of the thread alone: use a fragment",
			source_line(&w->check->cx->sources, parallel->span));
	}
}

static void visit_call(void *user, const struct expr *e)
{
	const struct expr **call = user;

	if (e->kind == EXPR_CALL)
		*call = e;
}

/* A function that has no code yet may read any memory of any thread. */
static void check_call(struct global_walk *w, const struct stmt *stmt, const struct expr *e)
{
	const struct expr *call = NULL;

	expr_walk(e, visit_call, &call);
	if (!call || w->calls)
		return;
	w->calls = true;
	check_found(w->check,
	            (struct finding){ PROPERTY_HAPPENS_BEFORE, PROPERTY_NOT_PROVED, stmt->span, "" },
	            "what the function %s reads, and of which threads, is not followed",
	            sym_text(w->check->cx->names, call->as.callee));
}

static void meet_copy(struct global_walk *w, struct stmt *stmt, const struct around *around)
{
	const struct region *dst = &stmt->as.op.as.copy.dst, *src = &stmt->as.op.as.copy.src;

	if (stmt->as.op.kind == OP_copy && dst->buffer && src->buffer &&
	    dst->buffer->scope == SCOPE_GLOBAL && src->buffer->scope == SCOPE_GLOBAL)
		check_write(
			w, &(struct global_write){ stmt, dst->buffer, dst->min, src->min, src->buffer->rank },
			around);
}

static void meet_block(struct global_walk *w, const struct block *block,
                       const struct around *outer);

static void meet_stmt(struct global_walk *w, struct stmt *stmt, const struct around *outer)
{
	struct around around = { .outer = outer };

	switch (stmt->kind) {
	case STMT_OP:
		check_local_uses(w, stmt, outer);
		meet_copy(w, stmt, outer);
		break;
	case STMT_LOOP:
		around.parallel = stmt->as.loop.kind == LOOP_PARALLEL ? stmt : NULL;
		meet_block(w, &stmt->as.loop.body, around.parallel ? &around : outer);
		break;
	case STMT_IF:
		around.condition = stmt->as.if_.condition;
		check_call(w, stmt, around.condition);
		meet_block(w, &stmt->as.if_.then, &around);
		meet_block(w, &stmt->as.if_.otherwise, &around);
		break;
	case STMT_WHILE:
		around.condition = stmt->as.while_.condition;
		check_call(w, stmt, around.condition);
		meet_block(w, &stmt->as.while_.body, &around);
		break;
	case STMT_STORE:
		check_call(w, stmt, stmt->as.store.value);
		check_local_uses(w, stmt, outer);
		note_local_write(w, stmt, outer);
		if (stmt->as.store.buffer->scope == SCOPE_GLOBAL && stmt->as.store.atomic == ATOMIC_NONE)
			check_write(w,
			            &(struct global_write){ stmt, stmt->as.store.buffer, stmt->as.store.index,
			                                    &stmt->as.store.value, 1 },
			            outer);
		break;
	case STMT_LET:
		check_call(w, stmt, stmt->as.let.value);
		check_local_uses(w, stmt, outer);
		break;
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		break;
	}
}

static void meet_block(struct global_walk *w, const struct block *block, const struct around *outer)
{
	for (uint32_t i = 0; i < block->stmts.n; i++)
		meet_stmt(w, block->stmts.p[i], outer);
}

struct own_element {
	const struct stmt *stmt;
	bool elsewhere;
};

/* Loads of the stored buffer at another index than the store's. */
static void visit_load(void *user, const struct expr *e)
{
	struct own_element *own = user;

	if (e->kind != EXPR_LOAD || e->as.buffer != own->stmt->as.store.buffer)
		return;
	for (uint32_t k = 0; k < e->as.buffer->rank; k++)
		own->elsewhere |= e->args[k] != own->stmt->as.store.index[k];
}

static bool is_own_element(const struct stmt *stmt)
{
	struct own_element own = { .stmt = stmt };

	if (stmt->kind != STMT_STORE)
		return false;
	if (stmt->as.store.atomic == ATOMIC_NONE)
		expr_walk(stmt->as.store.value, visit_load, &own);
	return !own.elsewhere;
}

/* Buffers of global memory that one statement writes and another reads. */
static void check_read_back(struct global_walk *w)
{
	struct use_list uses = { .arena = w->check->cx->arena };

	depend_block(&uses, (struct block *)(uintptr_t)&w->launch->body);
	for (uint32_t i = 0; i < uses.uses.n; i++) {
		const struct buffer_use *write = &uses.uses.p[i];

		if (!write->writes || write->buffer->scope != SCOPE_GLOBAL)
			continue;
		for (uint32_t j = 0; j < uses.uses.n && !w->reported[write->buffer->id]; j++) {
			const struct buffer_use *read = &uses.uses.p[j];

			if (!read->reads || read->buffer != write->buffer ||
			    (read->stmt == write->stmt && is_own_element(read->stmt)))
				continue;
			w->reported[write->buffer->id] = true;
			check_found(w->check,
			            (struct finding){ PROPERTY_HAPPENS_BEFORE, PROPERTY_NOT_PROVED,
			                              read->stmt->span, name_of(w, write->buffer) },
			            "global memory that line %u of the same launch writes is read: its order "
			            "between threads is not followed",
			            source_line(&w->check->cx->sources, write->stmt->span));
		}
	}
}

void check_global(struct check *check)
{
	struct arena *arena = check->cx->arena;
	uint32_t n = check->solution->program->buffers.n;
	struct global_walk w = { .check = check, .launch = check->solution->launch };

	w.written = arena_array(arena, const struct stmt *, n);
	w.reported = arena_array(arena, bool, n);
	meet_block(&w, &w.launch->body, NULL);
	check_read_back(&w);
}
