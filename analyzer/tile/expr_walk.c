/*
 * Traversal and substitution. Operands may be shared, so every walk remembers what it has seen.
 */
#include "analyzer/tile/expr_internal.h"

#include <stdlib.h>
#include <string.h>

/* Ids seen: a short list first, a map when that is full. */
struct seen {
	uint32_t n;
	uint32_t ids[32];
	struct arena *arena;
	struct map map;
};

/* True the first time. */
static bool seen_add(struct seen *seen, uint32_t id)
{
	for (uint32_t i = 0; i < seen->n; i++)
		if (seen->ids[i] == id)
			return false;
	if (seen->n < 32) {
		seen->ids[seen->n++] = id;
		return true;
	}
	if (!seen->arena)
		seen->arena = arena_open();
	if (map_find(&seen->map, id))
		return false;
	map_at(seen->arena, &seen->map, id);
	return true;
}

struct walk {
	struct seen seen;
	void (*visit)(void *user, const struct expr *e);
	void *user;
};

static void walk(struct walk *state, const struct expr *e)
{
	if (!seen_add(&state->seen, e->id))
		return;
	for (uint32_t i = 0; i < e->n_args; i++)
		walk(state, e->args[i]);
	state->visit(state->user, e);
}

void expr_walk(const struct expr *e, void (*visit)(void *user, const struct expr *e), void *user)
{
	struct walk state = { .visit = visit, .user = user };
	walk(&state, e);
	arena_close(state.seen.arena);
}

/* The mask of variables rules most sub-expressions out; large trees remember what was searched. */
static bool uses(struct seen *seen, const struct expr *e, const struct var *var)
{
	if (!(e->var_mask >> (var->id % 64) & 1))
		return false;
	if (e->kind == EXPR_VAR)
		return e->as.var == var;
	if (e->n_nodes > 32 && !seen_add(seen, e->id))
		return false;
	for (uint32_t i = 0; i < e->n_args; i++)
		if (uses(seen, e->args[i], var))
			return true;
	return false;
}

bool expr_uses(const struct expr *e, const struct var *var)
{
	struct seen seen = { .n = 0 };
	bool result = uses(&seen, e, var);
	arena_close(seen.arena);
	return result;
}

/* ---- substitution ---- */

struct substitution {
	struct expr_pool *pool;
	const struct expr_subst *subst;
	uint64_t stamp;
};

/* The node with other operands, through the simplifying constructor of its kind. */
static const struct expr *rebuild(struct expr_pool *pool, const struct expr *e,
                                  const struct expr *const *args)
{
	switch (e->kind) {
	case EXPR_LOAD:
		return expr_load(pool, e->as.buffer, e->type, args, e->n_args);
	case EXPR_REG:
		return expr_reg(pool, e->as.reg, e->type, args[0]);
	case EXPR_UNARY:
		return expr_unary(pool, e->as.unary, args[0]);
	case EXPR_BINARY:
		return expr_binary(pool, e->as.binary, args[0], args[1]);
	case EXPR_SELECT:
		return expr_select(pool, args[0], args[1], args[2]);
	case EXPR_CAST:
		return expr_cast(pool, e->type, args[0]);
	case EXPR_BITCAST:
		return expr_bitcast(pool, e->type, args[0]);
	case EXPR_MATH:
		return expr_math(pool, e->as.math, args, e->n_args);
	case EXPR_TABLE:
		return expr_table(pool, e->as.table, args[0]);
	case EXPR_CALL:
		return expr_call(pool, e->type, e->as.callee, args, e->n_args);
	case EXPR_INT:
	case EXPR_FLOAT:
	case EXPR_VAR:
		break;
	}
	return e;
}

/* The result of this call for the expression, NULL when there is none yet. */
static const struct expr *memo_get(const struct substitution *state, uint32_t id)
{
	const struct expr_pool *pool = state->pool;
	return id < pool->memo_cap && pool->memo_stamps[id] == state->stamp ? pool->memo[id] : NULL;
}

/*
 * The memo belongs to the pool and is never cleared: a stamp that counts the calls tells which
 * entries are of this one. A call from within on_load overwrites entries; they are only computed
 * again.
 */
static void memo_set(struct substitution *state, uint32_t id, const struct expr *value)
{
	struct expr_pool *pool = state->pool;
	if (id >= pool->memo_cap) {
		uint32_t cap = pool->memo_cap ? pool->memo_cap : 1024;
		while (cap <= id)
			cap *= 2;
		const struct expr **memo = arena_array(pool->arena, const struct expr *, cap);
		uint64_t *stamps = arena_array(pool->arena, uint64_t, cap);
		if (pool->memo_cap > 0) {
			memcpy(memo, pool->memo, pool->memo_cap * sizeof(memo[0]));
			memcpy(stamps, pool->memo_stamps, pool->memo_cap * sizeof(stamps[0]));
		}
		pool->memo = memo;
		pool->memo_stamps = stamps;
		pool->memo_cap = cap;
	}
	pool->memo[id] = value;
	pool->memo_stamps[id] = state->stamp;
}

static const struct expr *substitute(struct substitution *state, const struct expr *e);

/* The operands replaced, then the node rebuilt when one of them changed. */
static const struct expr *substitute_args(struct substitution *state, const struct expr *e)
{
	const struct expr *few[4], **args = few;
	bool changed = false;
	if (e->n_args > 4)
		args = arena_array(state->pool->arena, const struct expr *, e->n_args);
	for (uint32_t i = 0; i < e->n_args; i++) {
		args[i] = substitute(state, e->args[i]);
		changed |= args[i] != e->args[i];
	}
	return changed ? rebuild(state->pool, e, args) : e;
}

static bool is_choice(const struct expr *e)
{
	return e->kind == EXPR_SELECT ||
	       (e->kind == EXPR_BINARY && (e->as.binary == BIN_AND || e->as.binary == BIN_OR));
}

/* Constants and, without on_load, everything without variables stay as they are. */
static const struct expr *substitute(struct substitution *state, const struct expr *e)
{
	const struct expr_subst *subst = state->subst;
	const struct expr *result;
	if (e->kind == EXPR_INT || e->kind == EXPR_FLOAT)
		return e;
	if (e->kind == EXPR_VAR) {
		result = map_get(&subst->of_var, e->as.var->id);
		return result ? result : e;
	}
	if (!subst->on_load && e->var_mask == 0)
		return e;
	result = memo_get(state, e->id);
	if (result)
		return result;
	result = NULL;
	if (e->kind == EXPR_LOAD && subst->on_load)
		result = subst->on_load(subst->user, e);
	if (subst->on_choice && is_choice(e))
		result = subst->on_choice(subst->user, e);
	if (!result)
		result = substitute_args(state, e);
	memo_set(state, e->id, result);
	return result;
}

const struct expr *expr_substitute(struct expr_pool *pool, const struct expr *e,
                                   const struct expr_subst *subst)
{
	struct substitution state = { .pool = pool, .subst = subst, .stamp = ++pool->stamp };
	return substitute(&state, e);
}
