/*
 * bounds of tiles: every index of an element, and every region of an operation, lies within the
 * extents of its buffer, dimension by dimension, in the tile program itself.
 *
 *     for i, j in T.Parallel(64, 64): s[i + 1, j] = A[i, j]        s[64, 0] when i is 63
 *
 * check_run sees addresses only: s[i, 64] of a tile of 64 columns is inside its memory, and is
 * another element. Accesses to global tensors are guarded: what is outside reads 0 and is not
 * written.
 *
 * The ranges of the variables decide nearly all. For the rest the values of the variables that the
 * index has are run through, and of those that the conditions around share with it. A value outside
 * is a violation when all of the conditions can be evaluated and hold together.
 */
#include "analyzer/check/check_internal.h"

#include <inttypes.h>

enum { MAX_AROUND = 96, MAX_STEPS = 1 << 20, MAX_DEPTH = 200 };

enum around_kind { AROUND_VAR, AROUND_LET, AROUND_CONDITION };
/* What stands around an access, outermost first. */
struct around {
	enum around_kind kind;
	const struct var *var;
	const struct expr *e; /* extent, value, condition */
	bool holds;           /* conditions: which branch */
	bool is_relevant;     /* for the question that is asked */
};

struct bounds {
	struct check *check;
	const struct launch *launch;
	int64_t *values;
	bool *is_set; /* by variable id, during an enumeration: its value is known */
	struct around around[MAX_AROUND];
	uint32_t n_around;
	const struct stmt *stmt, *parallel; /* parallel: the T.Parallel around; or NULL */
	bool *reported;                     /* by buffer id */
	bool too_deep;
};

/* One access: an element, or a region with extents. */
struct indexed {
	const struct buffer *buffer;
	const struct expr *const *index;
	const int64_t *extent; /* of a region; NULL: an element */
	bool is_write;
};

/* A dimension of an access whose values are run through. */
struct question {
	struct bounds *bounds;
	const struct expr *index;
	int64_t last;      /* the largest value that is inside */
	bool only_related; /* only variables and conditions that have to do with the index */
	int64_t n_steps;
};

static void push_around(struct bounds *b, enum around_kind kind, const struct var *var,
                        const struct expr *e)
{
	if (b->n_around == MAX_AROUND)
		b->too_deep = true;
	else
		b->around[b->n_around++] = (struct around){ kind, var, e, true, false };
}

/* ---- which variables have to do with an index ---- */

struct var_visit {
	const struct bounds *bounds;
	bool all_set;
};

static void visit_var(void *user, const struct expr *e)
{
	struct var_visit *visit = user;

	if (e->kind == EXPR_VAR)
		visit->all_set &= visit->bounds->is_set[e->as.var->id];
}

/* Has the expression a value, with the variables that are set? */
static bool is_known(const struct bounds *b, const struct expr *e)
{
	struct var_visit visit = { b, true };

	if (!e->is_index)
		return false;
	expr_walk(e, visit_var, &visit);
	return visit.all_set;
}

static bool shares_variable(const struct expr *condition, const struct bounds *b,
                            const struct expr *index)
{
	for (uint32_t i = 0; i < b->n_around; i++) {
		const struct around *item = &b->around[i];
		bool is_wanted =
			item->kind != AROUND_CONDITION && (expr_uses(index, item->var) || item->is_relevant);
		if (is_wanted && expr_uses(condition, item->var))
			return true;
	}
	return false;
}

/* Does an item that is wanted already use the variable of item `at`? */
static bool is_needed(const struct bounds *b, uint32_t at, const struct expr *index)
{
	const struct var *var = b->around[at].var;

	if (expr_uses(index, var))
		return true;
	for (uint32_t i = 0; i < b->n_around; i++)
		if (b->around[i].is_relevant && b->around[i].e && expr_uses(b->around[i].e, var))
			return true;
	return false;
}

/* Marks what the index depends on, until nothing is added. */
static void mark_relevant(struct question *question)
{
	struct bounds *b = question->bounds;

	for (uint32_t i = 0; i < b->n_around; i++)
		b->around[i].is_relevant = !question->only_related;
	for (bool moved = question->only_related; moved;) {
		moved = false;
		for (uint32_t i = b->n_around; i-- > 0;) {
			struct around *item = &b->around[i];
			if (item->is_relevant)
				continue;
			item->is_relevant = item->kind == AROUND_CONDITION
			                        ? shares_variable(item->e, b, question->index)
			                        : is_needed(b, i, question->index);
			moved |= item->is_relevant;
		}
	}
}

/* ---- running through values ---- */

enum answer { ANSWER_INSIDE, ANSWER_OUTSIDE, ANSWER_UNKNOWN };

static enum answer ask(struct question *question, uint32_t at, bool certain);

static enum answer ask_variable(struct question *question, uint32_t at, bool certain)
{
	struct bounds *b = question->bounds;
	const struct around *item = &b->around[at];
	enum answer answer = ANSWER_INSIDE, worst = ANSWER_INSIDE;
	int64_t min, max, n = 1;

	if (is_known(b, item->e)) {
		n = expr_eval_int(item->e, b->values);
	} else {
		/* How often is not known: the first iteration stands for all, unless the index moves. */
		expr_bounds(item->e, &min, &max);
		certain &= min > 0;
		if (expr_uses(question->index, item->var))
			return ANSWER_UNKNOWN;
	}
	b->is_set[item->var->id] = true;
	for (int64_t value = 0; value < n && answer != ANSWER_OUTSIDE; value++) {
		b->values[item->var->id] = value;
		answer = ask(question, at + 1, certain);
		if (answer != ANSWER_INSIDE)
			worst = answer;
		if (question->n_steps > MAX_STEPS)
			return ANSWER_UNKNOWN;
	}
	if (answer != ANSWER_OUTSIDE)
		b->is_set[item->var->id] = false;
	return worst;
}

/* Is the index outside for some values of what stands around from item `at` on? The values stay. */
static enum answer ask(struct question *question, uint32_t at, bool certain)
{
	struct bounds *b = question->bounds;
	const struct around *item = &b->around[at];
	int64_t value;

	if (++question->n_steps > MAX_STEPS)
		return ANSWER_UNKNOWN;
	if (at == b->n_around) {
		if (!is_known(b, question->index))
			return ANSWER_UNKNOWN;
		value = expr_eval_int(question->index, b->values);
		if (value >= 0 && value <= question->last)
			return ANSWER_INSIDE;
		return certain ? ANSWER_OUTSIDE : ANSWER_UNKNOWN;
	}
	if (!item->is_relevant)
		return ask(question, at + 1, certain);
	switch (item->kind) {
	case AROUND_VAR:
		return ask_variable(question, at, certain);
	case AROUND_LET:
		b->is_set[item->var->id] = is_known(b, item->e);
		if (b->is_set[item->var->id])
			b->values[item->var->id] = expr_eval_int(item->e, b->values);
		return ask(question, at + 1, certain);
	case AROUND_CONDITION:
		if (!is_known(b, item->e))
			return ask(question, at + 1, false);
		if ((expr_eval_int(item->e, b->values) != 0) != item->holds)
			return ANSWER_INSIDE;
		return ask(question, at + 1, certain);
	}
	return ANSWER_UNKNOWN;
}

static enum answer answer_to(struct question *question)
{
	struct bounds *b = question->bounds;

	for (uint32_t i = 0; i < b->n_around; i++)
		if (b->around[i].var)
			b->is_set[b->around[i].var->id] = false;
	question->n_steps = 0;
	mark_relevant(question);
	return ask(question, 0, true);
}

/* ---- what is told ---- */

/* "ko = 1, i = 63": the loops around, with the values that were found. */
static const char *iteration_text(const struct bounds *b)
{
	struct arena *arena = b->check->cx->arena;
	const char *text = "";

	for (uint32_t i = 0; i < b->n_around; i++) {
		const struct around *item = &b->around[i];
		if (item->kind != AROUND_VAR || item->var->kind != VAR_LOOP || !b->is_set[item->var->id])
			continue;
		text =
			arena_printf(arena, "%s%s%s = %" PRId64, text, *text ? ", " : "",
		                 sym_text(b->check->cx->names, item->var->name), b->values[item->var->id]);
	}
	return text;
}

/* The thread that the partition gives the iteration to, or that the conditions found. */
static int64_t thread_of(const struct bounds *b)
{
	const struct solution *solution = b->check->solution;
	const struct stmt_plan *plan =
		solution && b->parallel ? &solution->plans[b->parallel->id] : NULL;
	int64_t index[MAX_RANK] = { 0 }, thread = 0, factor = 1;

	for (int k = 0; k < 3; k++) {
		if (b->launch->thread[k] && b->is_set[b->launch->thread[k]->id])
			thread += factor * b->values[b->launch->thread[k]->id];
		factor *= b->launch->threads[k];
	}
	if (!plan || !plan->has_plan || !plan->as.loop.layout)
		return b->parallel ? -1 : thread;
	for (uint32_t k = 0; k < b->parallel->as.loop.n_vars; k++)
		index[k] = b->values[b->parallel->as.loop.vars[k]->id];
	return plan->threads.first + layout_at(plan->as.loop.layout, index, 0).thread;
}

/* "thread 3 of block (1, 0, 0)" */
static const char *who_text(const struct bounds *b)
{
	int64_t block[3] = { 0 }, thread = thread_of(b);
	struct arena *arena = b->check->cx->arena;

	for (int k = 0; k < 3; k++)
		if (b->launch->block[k] && b->is_set[b->launch->block[k]->id])
			block[k] = b->values[b->launch->block[k]->id];
	return arena_printf(arena, "%sof block %s",
	                    thread < 0 ? "a thread "
	                               : arena_printf(arena, "thread %" PRId64 " ", thread),
	                    check_index_text(b->check, block, 3));
}

static void tell_violation(struct bounds *b, const struct indexed *access, uint32_t dim)
{
	const struct buffer *buffer = access->buffer;
	const char *iteration = iteration_text(b);
	int64_t element[MAX_RANK], shape[MAX_RANK];

	for (uint32_t k = 0; k < buffer->rank; k++) {
		shape[k] = buffer_extent(buffer, k);
		element[k] = is_known(b, access->index[k]) ? expr_eval_int(access->index[k], b->values) : 0;
		if (k == dim && access->extent && element[k] >= 0)
			element[k] += access->extent[k] - 1;
	}
	check_found(b->check,
	            (struct finding){ PROPERTY_BOUNDS, PROPERTY_VIOLATED, b->stmt->span,
	                              sym_text(b->check->cx->names, buffer->name) },
	            "%s %s element %s of a tile of %s%s%s", who_text(b),
	            access->is_write ? "writes" : "reads",
	            check_index_text(b->check, element, buffer->rank),
	            check_index_text(b->check, shape, buffer->rank), *iteration ? ", iteration " : "",
	            iteration);
}

static void tell_unknown(struct bounds *b, const struct indexed *access, const struct expr *index)
{
	check_found(b->check,
	            (struct finding){ PROPERTY_BOUNDS, PROPERTY_NOT_PROVED, b->stmt->span,
	                              sym_text(b->check->cx->names, access->buffer->name) },
	            index->is_index ? "an index that may be outside is not decided: it, or a condition "
	                              "around it, is only known at run time, or takes too many steps"
	                            : "data decide the index");
}

static void check_dimension(struct bounds *b, const struct indexed *access, uint32_t dim)
{
	int64_t extent = buffer_extent(access->buffer, dim), min, max;
	struct question question = { .bounds = b, .index = access->index[dim], .only_related = true };
	enum answer answer;

	question.last = extent - (access->extent ? access->extent[dim] : 1);
	expr_bounds(question.index, &min, &max);
	if (min >= 0 && max <= question.last)
		return;
	answer = b->too_deep ? ANSWER_UNKNOWN : answer_to(&question);
	if (answer == ANSWER_INSIDE)
		return;
	question.only_related = false;
	if (answer == ANSWER_OUTSIDE)
		answer = answer_to(&question);
	if (answer == ANSWER_INSIDE)
		return;
	b->reported[access->buffer->id] = true;
	if (answer == ANSWER_OUTSIDE)
		tell_violation(b, access, dim);
	else
		tell_unknown(b, access, question.index);
}

static void check_access(struct bounds *b, const struct indexed *access)
{
	if (access->buffer->scope == SCOPE_GLOBAL)
		return;
	for (uint32_t dim = 0; dim < access->buffer->rank && !b->reported[access->buffer->id]; dim++)
		check_dimension(b, access, dim);
}

/* ---- expressions ---- */

static void meet_expr(struct bounds *b, const struct expr *e, int depth);

/* Operands that are computed only where the first one lets them. */
static void meet_chosen(struct bounds *b, const struct expr *e, int depth)
{
	uint32_t n_around = b->n_around;

	meet_expr(b, e->args[0], depth + 1);
	for (uint32_t i = 1; i < e->n_args; i++) {
		push_around(b, AROUND_CONDITION, NULL, e->args[0]);
		if (n_around < MAX_AROUND)
			b->around[n_around].holds = e->kind == EXPR_SELECT ? i == 1 : e->as.binary == BIN_AND;
		meet_expr(b, e->args[i], depth + 1);
		b->n_around = n_around;
	}
}

static void visit_load(void *user, const struct expr *e)
{
	*(bool *)user |= e->kind == EXPR_LOAD && e->as.buffer->scope != SCOPE_GLOBAL;
}

static bool has_load(const struct expr *e)
{
	bool found = false;

	expr_walk(e, visit_load, &found);
	return found;
}

/* Every load of an on-chip element, with what decides whether it happens. */
static void meet_expr(struct bounds *b, const struct expr *e, int depth)
{
	if (!e || depth > MAX_DEPTH || !has_load(e))
		return;
	if (e->kind == EXPR_SELECT ||
	    (e->kind == EXPR_BINARY && (e->as.binary == BIN_AND || e->as.binary == BIN_OR))) {
		meet_chosen(b, e, depth);
		return;
	}
	for (uint32_t i = 0; i < e->n_args; i++)
		meet_expr(b, e->args[i], depth + 1);
	if (e->kind == EXPR_LOAD)
		check_access(b, &(struct indexed){ e->as.buffer, e->args, NULL, false });
}

/* ---- statements ---- */

static void meet_block(struct bounds *b, const struct block *block);

static void meet_op(struct bounds *b, struct op *op)
{
	enum operand_role role;
	struct region *region;

	for (uint32_t i = 0; (region = op_region(op, i, &role)) != NULL; i++) {
		if (!region->buffer)
			continue;
		for (uint32_t k = 0; k < region->buffer->rank; k++)
			meet_expr(b, region->min[k], 0);
		check_access(
			b, &(struct indexed){ region->buffer, region->min, region->extent, role != ROLE_READ });
	}
}

static void meet_store(struct bounds *b, const struct stmt *stmt)
{
	meet_expr(b, stmt->as.store.value, 0);
	for (uint32_t k = 0; k < stmt->as.store.buffer->rank; k++)
		meet_expr(b, stmt->as.store.index[k], 0);
	check_access(b, &(struct indexed){ stmt->as.store.buffer, stmt->as.store.index, NULL, true });
}

static void meet_loop(struct bounds *b, const struct stmt *stmt)
{
	const struct loop *loop = &stmt->as.loop;
	const struct stmt *outer = b->parallel;

	for (uint32_t k = 0; k < loop->n_vars; k++) {
		meet_expr(b, loop->extents[k], 0);
		push_around(b, AROUND_VAR, loop->vars[k], loop->extents[k]);
	}
	if (loop->kind == LOOP_PARALLEL)
		b->parallel = stmt;
	meet_block(b, &loop->body);
	b->parallel = outer;
}

static void meet_condition(struct bounds *b, const struct expr *condition, bool holds,
                           const struct block *block)
{
	uint32_t n_around = b->n_around;

	push_around(b, AROUND_CONDITION, NULL, condition);
	if (n_around < MAX_AROUND)
		b->around[n_around].holds = holds;
	meet_block(b, block);
	b->n_around = n_around;
}

static void meet_stmt(struct bounds *b, struct stmt *stmt)
{
	uint32_t n_around = b->n_around;

	b->stmt = stmt;
	switch (stmt->kind) {
	case STMT_OP:
		meet_op(b, &stmt->as.op);
		break;
	case STMT_LOOP:
		meet_loop(b, stmt);
		b->n_around = n_around;
		break;
	case STMT_IF:
		meet_expr(b, stmt->as.if_.condition, 0);
		meet_condition(b, stmt->as.if_.condition, true, &stmt->as.if_.then);
		meet_condition(b, stmt->as.if_.condition, false, &stmt->as.if_.otherwise);
		break;
	case STMT_WHILE:
		meet_expr(b, stmt->as.while_.condition, 0);
		meet_condition(b, stmt->as.while_.condition, true, &stmt->as.while_.body);
		break;
	case STMT_LET:
		meet_expr(b, stmt->as.let.value, 0);
		push_around(b, AROUND_LET, stmt->as.let.var, stmt->as.let.value);
		break;
	case STMT_STORE:
		meet_store(b, stmt);
		break;
	case STMT_SYNC:
	case STMT_BREAK: /* a staged launch has none */
	case STMT_CONTINUE:
		break;
	}
}

static void meet_block(struct bounds *b, const struct block *block)
{
	uint32_t n_around = b->n_around;

	for (uint32_t i = 0; i < block->stmts.n; i++)
		meet_stmt(b, block->stmts.p[i]);
	b->n_around = n_around;
}

void check_bounds(struct check *check, const struct launch *launch, uint32_t n_buffers)
{
	struct arena *arena = check->cx->arena;
	size_t n_vars = expr_n_vars(check->pool) + 64;
	struct bounds *b = arena_new(arena, struct bounds);

	b->check = check;
	b->launch = launch;
	b->values = arena_array(arena, int64_t, n_vars);
	b->is_set = arena_array(arena, bool, n_vars);
	b->reported = arena_array(arena, bool, n_buffers);
	for (int k = 0; k < 3; k++)
		if (launch->block[k])
			push_around(b, AROUND_VAR, launch->block[k], launch->grid[k]);
	for (int k = 0; k < 3; k++)
		if (launch->thread[k])
			push_around(b, AROUND_VAR, launch->thread[k],
			            expr_int(check->pool, launch->threads[k]));
	meet_block(b, &launch->body);
}
