#include "analyzer/tile/exits.h"

/* How deep conditions nest before a variable of the iteration takes over. */
enum { MAX_NESTED_EXITS = 32 };

/* A loop that is rewritten. */
struct exits {
	struct tile_program *program;
	const struct launch *launch;
	struct buffer *go_on;   /* false behind a break; NULL: the loop has none */
	struct buffer *is_here; /* false for the rest of an iteration; NULL until one needs it */
	int depth;
};

static struct arena *arena_of(const struct exits *x)
{
	return x->program->cx->arena;
}

/* Does the block leave the loop around it, or only its iteration? Not what inner loops do. */
static bool has_exit(const struct block *block, enum stmt_kind kind)
{
	for (uint32_t i = 0; i < block->stmts.n; i++) {
		const struct stmt *stmt = block->stmts.p[i];

		if (stmt->kind == kind ||
		    (stmt->kind == STMT_IF &&
		     (has_exit(&stmt->as.if_.then, kind) || has_exit(&stmt->as.if_.otherwise, kind))))
			return true;
	}
	return false;
}

static bool may_exit(const struct block *block)
{
	return has_exit(block, STMT_BREAK) || has_exit(block, STMT_CONTINUE);
}

/* Does every way through the block leave? */
static bool always_exits(const struct block *block)
{
	const struct stmt *last = block->stmts.n ? vec_last(&block->stmts) : NULL;

	return last && (last->kind == STMT_BREAK || last->kind == STMT_CONTINUE ||
	                (last->kind == STMT_IF && always_exits(&last->as.if_.then) &&
	                 always_exits(&last->as.if_.otherwise)));
}

static void note_exit(void *user, struct stmt *stmt)
{
	*(bool *)user |= stmt->kind == STMT_BREAK || stmt->kind == STMT_CONTINUE;
}

/* A variable of each thread, 0 or 1: go_on, go_on_2, ... */
static struct buffer *new_flag(struct exits *x, const char *base, struct span span)
{
	struct cx *cx = x->program->cx;
	sym_t name = intern_text(cx->names, base);
	struct buffer *flag;

	for (uint32_t i = 0, n = 2; i < x->program->buffers.n; i++) {
		if (x->program->buffers.p[i]->name != name)
			continue;
		name = intern_text(cx->names, arena_printf(cx->arena, "%s_%u", base, n++));
		i = UINT32_MAX; /* from the first again */
	}
	flag = tile_new_buffer(x->program, SCOPE_VAR, name, DTYPE_I32, span);
	flag->launch = x->launch->index;
	return flag;
}

static void set_flag(struct exits *x, struct block *out, const struct buffer *flag, bool value,
                     struct span span)
{
	struct stmt *store;

	if (!flag)
		return;
	store = tile_new_stmt(x->program, STMT_STORE, span);
	store->as.store.buffer = flag;
	store->as.store.value = expr_int(x->program->pool, value);
	vec_push(arena_of(x), &out->stmts, store);
}

static const struct expr *read_flag(struct exits *x, const struct buffer *flag)
{
	struct expr_pool *pool = x->program->pool;

	return expr_binary(pool, BIN_NE, expr_load(pool, flag, DTYPE_I32, NULL, 0), expr_int(pool, 0));
}

static struct block without_exits(struct exits *outer, const struct block *block);
static struct block rewrite(struct exits *x, const struct block *block);

/* `first`, then all of `rest` from statement `from` on. */
static struct block joined(struct exits *x, const struct block *first, const struct block *rest,
                           uint32_t from)
{
	struct block out = { { 0 } };

	for (uint32_t i = 0; i < first->stmts.n; i++)
		vec_push(arena_of(x), &out.stmts, first->stmts.p[i]);
	for (uint32_t i = from; i < rest->stmts.n; i++)
		vec_push(arena_of(x), &out.stmts, rest->stmts.p[i]);
	return out;
}

/* The rest of the block under the branch that goes on. */
static void nest_rest(struct exits *x, struct stmt *made, const struct block *block, uint32_t i)
{
	const struct stmt *stmt = block->stmts.p[i];
	bool then_leaves = always_exits(&stmt->as.if_.then);
	struct block then = stmt->as.if_.then, otherwise = stmt->as.if_.otherwise;

	if (then_leaves)
		otherwise = joined(x, &otherwise, block, i + 1);
	else
		then = joined(x, &then, block, i + 1);
	x->depth++;
	made->as.if_.then = rewrite(x, &then);
	made->as.if_.otherwise = rewrite(x, &otherwise);
	x->depth--;
}

/* The rest of the block under a variable of the iteration. */
static void guard_rest(struct exits *x, struct block *out, struct stmt *made,
                       const struct block *block, uint32_t i)
{
	const struct stmt *stmt = block->stmts.p[i];
	struct block rest = { { 0 } }, none = { { 0 } };
	struct stmt *guard;
	int depth = x->depth;

	if (!x->is_here)
		x->is_here = new_flag(x, "is_here", stmt->span);
	made->as.if_.then = rewrite(x, &stmt->as.if_.then);
	made->as.if_.otherwise = rewrite(x, &stmt->as.if_.otherwise);
	rest = joined(x, &none, block, i + 1);
	if (rest.stmts.n == 0)
		return;
	guard = tile_new_stmt(x->program, STMT_IF, rest.stmts.p[0]->span);
	guard->as.if_.condition = read_flag(x, x->is_here);
	x->depth = 0;
	guard->as.if_.then = rewrite(x, &rest);
	x->depth = depth;
	vec_push(arena_of(x), &out->stmts, guard);
}

/*
 * A block of the loop's body. Nesting is that of the program, and MAX_NESTED_EXITS conditions at
 * most for each level of it.
 */
static struct block rewrite(struct exits *x, const struct block *block)
{
	struct block out = { { 0 } };

	for (uint32_t i = 0; i < block->stmts.n; i++) {
		const struct stmt *stmt = block->stmts.p[i];
		struct block one = { { 0 } };
		struct stmt *made;

		vec_push(arena_of(x), &one.stmts, (struct stmt *)(uintptr_t)stmt);
		if (stmt->kind == STMT_BREAK || stmt->kind == STMT_CONTINUE) {
			if (stmt->kind == STMT_BREAK)
				set_flag(x, &out, x->go_on, false, stmt->span);
			set_flag(x, &out, x->is_here, false, stmt->span);
			return out;
		}
		if (stmt->kind != STMT_IF || !may_exit(&one)) {
			struct block same = without_exits(x, &one);
			vec_push(arena_of(x), &out.stmts, same.stmts.p[0]);
			for (uint32_t k = 1; k < same.stmts.n; k++)
				vec_push(arena_of(x), &out.stmts, same.stmts.p[k]);
			continue;
		}
		made = arena_new(arena_of(x), struct stmt);
		*made = *stmt;
		vec_push(arena_of(x), &out.stmts, made);
		if (x->depth < MAX_NESTED_EXITS &&
		    (always_exits(&stmt->as.if_.then) || always_exits(&stmt->as.if_.otherwise)))
			nest_rest(x, made, block, i);
		else
			guard_rest(x, &out, made, block, i);
		return out;
	}
	return out;
}

/* `body` under `flag`. */
static struct block under(struct exits *x, const struct buffer *flag, struct block body,
                          struct span span)
{
	struct block out = { { 0 } };
	struct stmt *guard = tile_new_stmt(x->program, STMT_IF, span);

	guard->as.if_.condition = read_flag(x, flag);
	guard->as.if_.then = body;
	vec_push(arena_of(x), &out.stmts, guard);
	return out;
}

/* A loop whose body leaves it or its iteration: its statements go to `out`. */
static void rewrite_loop(struct exits *outer, const struct stmt *stmt, struct block *out)
{
	struct exits x = { .program = outer->program, .launch = outer->launch };
	struct stmt *made = arena_new(arena_of(&x), struct stmt);
	bool is_while = stmt->kind == STMT_WHILE;
	const struct block *block = is_while ? &stmt->as.while_.body : &stmt->as.loop.body;
	struct block body = { { 0 } };

	*made = *stmt;
	if (has_exit(block, STMT_BREAK))
		x.go_on = new_flag(&x, "go_on", stmt->span);
	body = rewrite(&x, block);
	if (x.is_here) {
		struct block first = { { 0 } };
		set_flag(&x, &first, x.is_here, true, stmt->span);
		body = joined(&x, &first, &body, 0);
	}
	set_flag(&x, out, x.go_on, true, stmt->span);
	if (!is_while)
		made->as.loop.body = x.go_on ? under(&x, x.go_on, body, stmt->span) : body;
	else
		made->as.while_.body = body;
	if (is_while && x.go_on)
		made->as.while_.condition =
			expr_and(x.program->pool, read_flag(&x, x.go_on), stmt->as.while_.condition);
	vec_push(arena_of(&x), &out->stmts, made);
}

/* A statement that is no exit and does not leave the loop around it. */
static void rewrite_stmt(struct exits *outer, struct stmt *stmt, struct block *out)
{
	struct stmt *made;

	if ((stmt->kind == STMT_LOOP && may_exit(&stmt->as.loop.body)) ||
	    (stmt->kind == STMT_WHILE && may_exit(&stmt->as.while_.body))) {
		rewrite_loop(outer, stmt, out);
		return;
	}
	made = arena_new(arena_of(outer), struct stmt);
	*made = *stmt;
	if (stmt->kind == STMT_LOOP) {
		made->as.loop.body = without_exits(outer, &stmt->as.loop.body);
	} else if (stmt->kind == STMT_WHILE) {
		made->as.while_.body = without_exits(outer, &stmt->as.while_.body);
	} else if (stmt->kind == STMT_IF) {
		made->as.if_.then = without_exits(outer, &stmt->as.if_.then);
		made->as.if_.otherwise = without_exits(outer, &stmt->as.if_.otherwise);
	}
	vec_push(arena_of(outer), &out->stmts, made);
}

static struct block without_exits(struct exits *outer, const struct block *block)
{
	struct block out = { { 0 } };
	bool found = false;

	tile_walk((struct block *)(uintptr_t)block, note_exit, &found);
	if (!found)
		return *block;
	for (uint32_t i = 0; i < block->stmts.n; i++)
		rewrite_stmt(outer, block->stmts.p[i], &out);
	return out;
}

const struct launch *tile_without_exits(struct tile_program *program, const struct launch *launch)
{
	struct exits outer = { .program = program, .launch = launch };
	struct launch *made;
	bool found = false;

	tile_walk((struct block *)(uintptr_t)&launch->body, note_exit, &found);
	if (!found)
		return launch;
	made = arena_new(program->cx->arena, struct launch);
	*made = *launch;
	made->body = without_exits(&outer, &launch->body);
	return made;
}
