/*
 * The life of a reducer: a start value, contributions in parallel loops, then its result.
 *
 *     T.reducer_init(sums)                                   started
 *     for i, j in T.Parallel(8, 48): sums[i] += a[i, j]      each thread sums what it runs over
 *     T.finalize_reducer(sums)                               whole
 *     T.copy(sums, y)
 *
 * In between its elements are partial results in several threads, so that nothing may read them;
 * behind T.finalize_reducer every owner has the whole, so that a further contribution would be lost
 * in copies. Loops are walked twice, for what comes round from the iteration before.
 */
#include "analyzer/solve/solve_internal.h"

#include "analyzer/pipeline/depend.h"

enum { UNSET = 1, STARTED = 2, WHOLE = 4, MAX_BLOCKS = 64, MAX_TERMS = 64 };

struct life {
	struct solver *solver;
	uint8_t *states;               /* by buffer id: what it may be in */
	const struct stmt **finalized; /* by buffer id: where it became whole */
	bool *contributed;             /* by buffer id */
	bool ok;
};

static const char *name_of(const struct life *life, const struct buffer *buffer)
{
	return sym_text(life->solver->cx->names, buffer->name);
}

/* ---- contributions ---- */

struct loads {
	const struct buffer *buffer;
	uint32_t n;
};

static void count_load(void *user, const struct expr *e)
{
	struct loads *loads = user;

	loads->n += e->kind == EXPR_LOAD && e->as.buffer == loads->buffer;
}

static uint32_t n_loads(const struct expr *e, const struct buffer *buffer)
{
	struct loads loads = { buffer, 0 };

	expr_walk(e, count_load, &loads);
	return loads.n;
}

/* The old element is one of the terms that the reducer's operator combines, and nothing else. */
static bool keeps_element(const struct stmt *store, const struct expr *e, int depth)
{
	const struct buffer *buffer = store->as.store.buffer;
	enum binary_op op = reduce_operator(buffer->reducer);

	if (depth > MAX_TERMS)
		return false;
	if (e->kind == EXPR_LOAD && e->as.buffer == buffer) {
		for (uint32_t d = 0; d < buffer->rank; d++)
			if (e->args[d] != store->as.store.index[d])
				return false;
		return true;
	}
	if (e->kind != EXPR_BINARY)
		return false;
	if (e->as.binary == op && n_loads(e->args[0], buffer) == 0)
		return keeps_element(store, e->args[1], depth + 1);
	if ((e->as.binary == op || (op == BIN_ADD && e->as.binary == BIN_SUB)) &&
	    n_loads(e->args[1], buffer) == 0)
		return keeps_element(store, e->args[0], depth + 1);
	return false;
}

bool solve_is_contribution(const struct stmt *store)
{
	return store->kind == STMT_STORE && store->as.store.buffer->is_reducer &&
	       keeps_element(store, store->as.store.value, 0);
}

/* ---- what may not be ---- */

/* Both lines: the reducer's, and that of where it became whole when that matters. */
static void report(struct life *life, const struct stmt *stmt, const struct buffer *buffer,
                   const char *what)
{
	struct diag_list *diags = &life->solver->cx->diags;

	life->ok = false;
	diag_report(diags, DIAG_E0412, stmt->span, "the reducer %s %s", name_of(life, buffer), what);
	diag_note(diags, buffer->span, "%s is allocated here", name_of(life, buffer));
	if (life->finalized[buffer->id] && life->finalized[buffer->id] != stmt)
		diag_note(diags, life->finalized[buffer->id]->span, "here it becomes whole");
	life->states[buffer->id] = 0; /* said once */
}

static void meet_read(struct life *life, const struct stmt *stmt, const struct buffer *buffer)
{
	if (life->states[buffer->id] & STARTED)
		report(life, stmt, buffer,
		       "is read before T.finalize_reducer: threads hold parts of its elements");
}

static void meet_contribution(struct life *life, const struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer;

	if (!solve_is_contribution(stmt))
		report(life, stmt, buffer,
		       "is written in another way than by combining an element with its operator");
	else if (life->states[buffer->id] & WHOLE)
		report(life, stmt, buffer,
		       "gets a contribution after T.finalize_reducer: each thread would add it to a whole "
		       "result; start it again before");
	life->states[buffer->id] &= (uint8_t)~UNSET;
}

static void meet_finalize(struct life *life, const struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.op.as.finalize_reducer.dst.buffer;

	if (!life->contributed[buffer->id])
		report(life, stmt, buffer, "is finalised, but no parallel loop updates it");
	else if (life->states[buffer->id] & WHOLE)
		report(life, stmt, buffer,
		       "is finalised twice: the second time would combine whole results");
	life->states[buffer->id] = WHOLE;
	life->finalized[buffer->id] = stmt;
}

/* ---- the walk ---- */

/* Reads, and writes by operations that do not know reducers. */
static void meet_others(struct life *life, struct stmt *stmt, const struct buffer *but)
{
	struct use_list uses = { .arena = life->solver->arena };

	depend_stmt(&uses, stmt);
	for (uint32_t i = 0; i < uses.uses.n; i++) {
		const struct buffer_use *use = &uses.uses.p[i];

		if (!use->buffer->is_reducer || use->buffer == but)
			continue;
		if (use->writes)
			report(life, stmt, use->buffer,
			       "is written by an operation that does not know reducers");
		else
			meet_read(life, stmt, use->buffer);
	}
}

static void walk(struct life *life, const struct block *block, int depth);

static void merge(struct life *life, const uint8_t *other)
{
	for (uint32_t b = 0; b < life->solver->program->buffers.n; b++)
		life->states[b] |= other[b];
}

static uint8_t *save(struct life *life)
{
	uint32_t n = life->solver->program->buffers.n;
	uint8_t *copy = arena_array(life->solver->arena, uint8_t, n);

	for (uint32_t b = 0; b < n; b++)
		copy[b] = life->states[b];
	return copy;
}

static void walk_if(struct life *life, const struct stmt *stmt, int depth)
{
	uint8_t *before = save(life), *then;

	walk(life, &stmt->as.if_.then, depth + 1);
	then = save(life);
	for (uint32_t b = 0; b < life->solver->program->buffers.n; b++)
		life->states[b] = before[b];
	walk(life, &stmt->as.if_.otherwise, depth + 1);
	merge(life, then);
}

static void walk_twice(struct life *life, const struct block *body, int depth)
{
	for (int round = 0; round < 2 && life->ok; round++) {
		uint8_t *before = save(life);

		walk(life, body, depth + 1);
		merge(life, before);
	}
}

static void walk_stmt(struct life *life, struct stmt *stmt, int depth)
{
	switch (stmt->kind) {
	case STMT_OP:
		if (stmt->as.op.kind == OP_fill && stmt->as.op.as.fill.dst.buffer->is_reducer)
			life->states[stmt->as.op.as.fill.dst.buffer->id] = STARTED;
		else if (stmt->as.op.kind == OP_finalize_reducer)
			meet_finalize(life, stmt);
		else
			meet_others(life, stmt, NULL);
		return;
	case STMT_LOOP:
		walk_twice(life, &stmt->as.loop.body, depth);
		return;
	case STMT_IF:
		walk_if(life, stmt, depth);
		return;
	case STMT_WHILE:
		walk_twice(life, &stmt->as.while_.body, depth);
		return;
	case STMT_STORE:
		if (stmt->as.store.buffer->is_reducer)
			meet_contribution(life, stmt);
		meet_others(life, stmt, stmt->as.store.buffer);
		return;
	case STMT_LET:
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		meet_others(life, stmt, NULL);
		return;
	}
}

static void walk(struct life *life, const struct block *block, int depth)
{
	for (uint32_t i = 0; i < block->stmts.n && depth < MAX_BLOCKS && life->ok; i++)
		walk_stmt(life, block->stmts.p[i], depth);
}

static void note_contribution(void *user, struct stmt *stmt)
{
	struct life *life = user;

	if (solve_is_contribution(stmt))
		life->contributed[stmt->as.store.buffer->id] = true;
}

bool solve_reducers(struct solver *solver)
{
	uint32_t n = solver->program->buffers.n;
	struct life life = { .solver = solver, .ok = true };
	bool any = false;

	for (uint32_t b = 0; b < n; b++)
		any |= solver->program->buffers.p[b]->is_reducer;
	/* A trial leaves statements out. */
	if (!any || solver->trial)
		return true;
	life.states = arena_array(solver->arena, uint8_t, n);
	life.finalized = arena_array(solver->arena, const struct stmt *, n);
	life.contributed = arena_array(solver->arena, bool, n);
	for (uint32_t b = 0; b < n; b++)
		life.states[b] = UNSET;
	tile_walk((struct block *)(uintptr_t)&solver->launch->body, note_contribution, &life);
	walk(&life, &solver->launch->body, 0);
	return life.ok;
}
