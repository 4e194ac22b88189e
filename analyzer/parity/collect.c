/*
 * From statements to ops: every tile op and every outermost T.Parallel nest is one entry, in
 * program order, with the buffers it touches in the order in which TileLang visits them: a
 * statement's target, then its value from left to right.
 */
#include "analyzer/parity/parity_internal.h"

#include <assert.h>
#include <string.h>

enum { MAX_DEPTH = 400 };

struct collector {
	struct pinfer *infer;
	struct ploop *loop; /* inside a parallel nest */
	struct map seen;    /* expressions of the statement that were visited */
	const struct stmt *stmt;
	const struct expr *condition;  /* around the present expression; NULL: none */
	int64_t thread_min, n_threads; /* that get to the present statement */
};

static bool is_memory(const struct buffer *buffer)
{
	return buffer->scope == SCOPE_SHARED || buffer->scope == SCOPE_GLOBAL;
}

/* ---- accesses ---- */

static bool reads_memory(const struct expr *e)
{
	bool found = e->kind == EXPR_LOAD;

	for (uint32_t i = 0; i < e->n_args && !found; i++)
		found = reads_memory(e->args[i]);
	return found;
}

static struct pfused *fused_of(struct ploop *loop, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < loop->fragments.n; i++)
		if (loop->fragments.p[i].buffer == buffer)
			return &loop->fragments.p[i];
	return NULL;
}

/* Variables of the loop and nothing else? */
static bool index_is_free(const struct ploop *loop, const struct expr *e)
{
	if (e->kind == EXPR_VAR) {
		for (uint32_t d = 0; d < loop->rank; d++)
			if (loop->vars[d] == e->as.var)
				return false;
		return true;
	}
	if (e->kind == EXPR_LOAD)
		return true;
	for (uint32_t i = 0; i < e->n_args; i++)
		if (index_is_free(loop, e->args[i]))
			return true;
	return false;
}

static void add_fragment(struct pinfer *infer, struct ploop *loop, const struct paccess *access)
{
	struct pfused *use = fused_of(loop, access->buffer);
	const struct expr **index;

	if (!use) {
		struct pfused fresh = { .buffer = access->buffer, .is_const = true };

		index = arena_array(infer->arena, const struct expr *, MAX_RANK);
		memcpy(index, access->index, sizeof(access->index));
		fresh.index = index;
		for (uint32_t d = 0; d < access->buffer->rank; d++)
			fresh.is_const &= expr_is_int(index[d], NULL);
		vec_push(infer->arena, &loop->fragments, fresh);
		use = &vec_last(&loop->fragments);
	}
	if (access->is_store)
		use->is_write = true;
	if (!access->is_store || access->is_atomic)
		use->is_read = true;
}

static void add_access(struct collector *c, const struct buffer *buffer,
                       const struct expr *const *index, bool is_store)
{
	struct paccess access = {
		.buffer = buffer, .is_store = is_store, .stmt = c->stmt, .condition = c->condition
	};
	struct ploop *loop = c->loop;

	for (uint32_t d = 0; d < buffer->rank; d++) {
		access.index[d] = index[d];
		if (is_memory(buffer) && reads_memory(index[d]))
			loop->is_data_dependent = true;
	}
	access.span = c->stmt ? c->stmt->span : (struct span){ 0 };
	vec_push(c->infer->arena, &loop->accesses, access);
	loop->touches_memory |= is_memory(buffer);
	loop->stores_memory |= is_store && is_memory(buffer);
	loop->stores_fragment |= is_store && buffer->scope == SCOPE_FRAGMENT;
	if (buffer->scope == SCOPE_FRAGMENT)
		add_fragment(c->infer, loop, &access);
}

/* Lanes of a 16-byte vector that hold both types. */
static void add_cast(struct ploop *loop, struct dtype to, struct dtype from)
{
	uint32_t bits = to.bits > from.bits ? to.bits : from.bits;
	int64_t lanes = 128 / (bits ? bits : 8);

	if (loop->cast_lanes == 0 || lanes < loop->cast_lanes)
		loop->cast_lanes = lanes;
}

static void visit_select(struct collector *c, const struct expr *e, uint32_t depth);

/* Loads of an expression outside any op: the fragment must be everywhere. */
static void visit_expr(struct collector *c, const struct expr *e, uint32_t depth)
{
	if (!e || depth > MAX_DEPTH || map_get(&c->seen, e->id + 1))
		return;
	map_set(c->infer->arena, &c->seen, e->id + 1, (void *)(uintptr_t)e);
	if (e->kind == EXPR_LOAD && c->loop)
		add_access(c, e->as.buffer, e->args, false);
	else if (e->kind == EXPR_LOAD && e->as.buffer->scope == SCOPE_FRAGMENT)
		c->infer->floating[e->as.buffer->id] = true;
	if (c->loop && e->kind == EXPR_SELECT)
		vec_push(c->infer->arena, &c->loop->conditions, e->args[0]);
	if (c->loop && e->kind == EXPR_CALL)
		vec_push(c->infer->arena, &c->loop->calls, e);
	if (c->loop && e->kind == EXPR_CAST)
		add_cast(c->loop, e->type, e->args[0]->type);
	if (e->kind == EXPR_SELECT) {
		visit_select(c, e, depth);
		return;
	}
	for (uint32_t i = 0; i < e->n_args; i++)
		visit_expr(c, e->args[i], depth + 1);
}

/* Only the chosen side of a selection is evaluated. */
static void visit_select(struct collector *c, const struct expr *e, uint32_t depth)
{
	struct expr_pool *pool = c->infer->pool;
	const struct expr *outer = c->condition;

	visit_expr(c, e->args[0], depth + 1);
	c->condition = expr_and(pool, outer, e->args[0]);
	visit_expr(c, e->args[1], depth + 1);
	c->condition = expr_and(pool, outer, expr_unary(pool, UN_NOT, e->args[0]));
	visit_expr(c, e->args[2], depth + 1);
	c->condition = outer;
}

static void visit_statement_exprs(struct collector *c, const struct stmt *stmt,
                                  const struct expr *e)
{
	c->seen = (struct map){ 0 };
	c->stmt = stmt;
	visit_expr(c, e, 0);
}

/* ---- parallel nests ---- */

static void visit_body(struct collector *c, const struct block *block);

static uint32_t count_real(const struct block *block)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < block->stmts.n; i++)
		n += block->stmts.p[i]->kind != STMT_LET;
	return n;
}

static void visit_store(struct collector *c, const struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer;

	c->seen = (struct map){ 0 };
	c->stmt = stmt;
	add_access(c, buffer, stmt->as.store.index, true);
	visit_expr(c, stmt->as.store.value, 0);
	for (uint32_t d = 0; d < buffer->rank; d++)
		visit_expr(c, stmt->as.store.index[d], 0);
}

/* A loop inside a nest: more parallel dimensions when nothing stands between, else serial. */
static void visit_inner_loop(struct collector *c, const struct stmt *stmt)
{
	const struct loop *inner = &stmt->as.loop;
	struct ploop *loop = c->loop;

	for (uint32_t v = 0; v < inner->n_vars; v++) {
		int64_t extent = 1;

		expr_is_int(inner->extents[v], &extent);
		loop->inner_var = inner->vars[v];
		loop->inner_extent = extent;
		if (inner->kind == LOOP_PARALLEL && loop->rank < MAX_RANK) {
			loop->vars[loop->rank] = inner->vars[v];
			loop->shape[loop->rank++] = extent;
			loop->n_points *= extent;
		} else {
			vec_push(c->infer->arena, &loop->serial_vars, inner->vars[v]);
			vec_push(c->infer->arena, &loop->serial_extents, inner->extents[v]);
		}
		visit_statement_exprs(c, stmt, inner->extents[v]);
	}
	visit_body(c, &inner->body);
}

static void visit_if(struct collector *c, const struct stmt *stmt)
{
	struct expr_pool *pool = c->infer->pool;
	const struct expr *outer = c->condition, *condition = stmt->as.if_.condition;

	vec_push(c->infer->arena, &c->loop->conditions, condition);
	visit_statement_exprs(c, stmt, condition);
	c->condition = expr_and(pool, outer, condition);
	visit_body(c, &stmt->as.if_.then);
	c->condition = expr_and(pool, outer, expr_unary(pool, UN_NOT, condition));
	visit_body(c, &stmt->as.if_.otherwise);
	c->condition = outer;
}

static void visit_body(struct collector *c, const struct block *block)
{
	c->loop->many_statements |= count_real(block) >= 2;
	for (uint32_t i = 0; i < block->stmts.n; i++) {
		const struct stmt *stmt = block->stmts.p[i];

		switch (stmt->kind) {
		case STMT_STORE:
			visit_store(c, stmt);
			break;
		case STMT_IF:
			visit_if(c, stmt);
			break;
		case STMT_LOOP:
			visit_inner_loop(c, stmt);
			break;
		case STMT_LET:
			visit_statement_exprs(c, stmt, stmt->as.let.value);
			break;
		case STMT_WHILE:
			visit_statement_exprs(c, stmt, stmt->as.while_.condition);
			visit_body(c, &stmt->as.while_.body);
			break;
		case STMT_OP:
		case STMT_SYNC:
		case STMT_BREAK:
		case STMT_CONTINUE:
			break;
		}
	}
}

static struct pop *new_op(struct collector *c, enum pop_kind kind, const struct stmt *stmt)
{
	struct pop *op = arena_new(c->infer->arena, struct pop);

	op->kind = kind;
	op->stmt = stmt;
	op->thread_min = c->thread_min;
	op->n_threads = c->n_threads;
	vec_push(c->infer->arena, &c->infer->ops, op);
	return op;
}

static void touch(struct pinfer *infer, struct pop *op, const struct buffer *buffer)
{
	if (!buffer || buffer->scope != SCOPE_FRAGMENT)
		return;
	infer->uses[buffer->id] = true;
	for (uint32_t i = 0; i < op->touched.n; i++)
		if (op->touched.p[i] == buffer)
			return;
	vec_push(infer->arena, &op->touched, buffer);
}

static struct ploop *new_loop(struct collector *c, const struct stmt *stmt)
{
	struct ploop *loop = arena_new(c->infer->arena, struct ploop);

	loop->stmt = stmt;
	loop->n_points = 1;
	c->loop = loop;
	return loop;
}

static void finish_loop(struct collector *c, struct pop *op)
{
	for (uint32_t i = 0; i < op->loop->fragments.n; i++) {
		struct pfused *use = &op->loop->fragments.p[i];

		touch(c->infer, op, use->buffer);
		use->is_plain = use->buffer->rank == op->loop->rank;
		use->is_free = false;
		for (uint32_t d = 0; d < use->buffer->rank; d++) {
			use->is_free |= index_is_free(op->loop, use->index[d]);
			use->is_plain = use->is_plain && use->index[d]->kind == EXPR_VAR &&
			                use->index[d]->as.var == op->loop->vars[d];
		}
		parity_view_elems(c->infer, op->loop, use);
	}
	c->loop = NULL;
}

/* A tile's atomic stands as a loop whose one statement has the loop's own place in the file. */
static bool is_atomic_tile(const struct stmt *stmt)
{
	const struct block *body = &stmt->as.loop.body;
	const struct stmt *store = body->stmts.n == 1 ? body->stmts.p[0] : NULL;

	return store && store->kind == STMT_STORE && store->as.store.atomic &&
	       store->span.begin == stmt->span.begin && store->span.end == stmt->span.end;
}

static void set_atomic(struct pop *op)
{
	const struct stmt *store = op->stmt->as.loop.body.stmts.p[0];
	const struct expr *value = store->as.store.value;

	op->kind = POP_ATOMIC;
	if (store->as.store.is_bulk && value->kind == EXPR_LOAD &&
	    value->as.buffer->scope == SCOPE_SHARED)
		op->bulk_source = value->as.buffer;
}

static void collect_parallel(struct collector *c, const struct stmt *stmt)
{
	struct ploop *loop = new_loop(c, stmt);
	struct pop *op = new_op(c, POP_LOOP, stmt);

	op->loop = loop;
	loop->coalesced_width = stmt->as.loop.coalesced_width;
	visit_inner_loop(c, stmt);
	if (is_atomic_tile(stmt))
		set_atomic(op);
	finish_loop(c, op);
}

/* ---- copies ---- */

static int scope_level(const struct buffer *buffer)
{
	switch (buffer->scope) {
	case SCOPE_FRAGMENT:
	case SCOPE_LOCAL:
	case SCOPE_VAR:
		return 2;
	case SCOPE_SHARED:
		return 1;
	case SCOPE_GLOBAL:
	case N_SCOPES:
		break;
	}
	return 0;
}

static bool make_index(struct pinfer *infer, const struct ploop *loop, const struct region *region,
                       const struct expr **index)
{
	uint32_t at = 0;

	for (uint32_t d = 0; d < region->buffer->rank; d++) {
		index[d] = region->min[d];
		if (region->extent[d] == 1)
			continue;
		if (at == loop->rank)
			return false;
		index[d] =
			expr_add(infer->pool, region->min[d], expr_of_var(infer->pool, loop->vars[at++]));
	}
	return at == loop->rank;
}

/* Bounds that are not provable, as a condition; NULL: none. */
static const struct expr *bounds(struct collector *c, const struct region *region,
                                 const struct expr *const *index)
{
	const struct expr *all = NULL;

	for (uint32_t d = 0; d < region->buffer->rank; d++) {
		const struct expr *inside = expr_lt(c->infer->pool, index[d], region->buffer->shape[d]);

		if (region->extent[d] == 1 || expr_is_true(inside))
			continue;
		vec_push(c->infer->arena, &c->loop->conditions, inside);
		all = expr_and(c->infer->pool, all, inside);
	}
	return all;
}

/* The nest of a copy: one loop a dimension of the operand that is nearer to the registers. */
static void collect_copy(struct collector *c, const struct stmt *stmt, const struct op_copy *copy)
{
	const struct region *src = &copy->src, *dst = &copy->dst;
	const struct region *base = scope_level(src->buffer) >= scope_level(dst->buffer) ? src : dst;
	const struct expr *src_index[MAX_RANK], *dst_index[MAX_RANK];
	struct pop *op = new_op(c, POP_COPY, stmt);
	struct ploop *loop = new_loop(c, stmt);

	op->loop = loop;
	op->copy_op = *copy;
	loop->coalesced_width = copy->coalesced_width;
	for (uint32_t d = 0; d < base->buffer->rank; d++) {
		struct var *var;

		if (base->extent[d] == 1)
			continue;
		var = expr_new_var(c->infer->pool, VAR_LOOP, base->buffer->name, DTYPE_I32);
		var->max = base->extent[d] - 1;
		loop->vars[loop->rank] = loop->inner_var = var;
		loop->shape[loop->rank++] = loop->inner_extent = base->extent[d];
		loop->n_points *= base->extent[d];
	}
	if (loop->rank == 0) { /* one element: a loop of one round */
		loop->vars[0] = loop->inner_var =
			expr_new_var(c->infer->pool, VAR_LOOP, base->buffer->name, DTYPE_I32);
		loop->shape[0] = loop->inner_extent = 1;
	}
	c->stmt = stmt;
	c->seen = (struct map){ 0 };
	if (!make_index(c->infer, loop, src, src_index) ||
	    !make_index(c->infer, loop, dst, dst_index)) {
		op->kind = POP_OTHER;
		c->loop = NULL;
		return;
	}
	c->condition = bounds(c, dst, dst_index);
	add_access(c, dst->buffer, dst_index, true);
	c->condition = expr_and(c->infer->pool, c->condition, bounds(c, src, src_index));
	add_access(c, src->buffer, src_index, false);
	c->condition = NULL;
	for (uint32_t d = 0; d < src->buffer->rank; d++)
		visit_expr(c, src->min[d], 0);
	for (uint32_t d = 0; d < dst->buffer->rank; d++)
		visit_expr(c, dst->min[d], 0);
	if (!dtype_equal(src->buffer->type, dst->buffer->type))
		add_cast(loop, dst->buffer->type, src->buffer->type);
	if (loop->rank == 0)
		loop->rank = 1;
	parity_copy_facts(c->infer, op);
	finish_loop(c, op);
}

/* ---- the walk ---- */

/* The three ways to write a copy. */
static bool find_copy(const struct op *op, struct op_copy *copy)
{
	*copy = (struct op_copy){ 0 };
	if (op->kind == OP_copy)
		*copy = op->as.copy;
	else if (op->kind == OP_tma_copy)
		*copy = (struct op_copy){ .src = op->as.tma_copy.src, .dst = op->as.tma_copy.dst };
	else if (op->kind == OP_async_copy)
		*copy = (struct op_copy){ .src = op->as.async_copy.src, .dst = op->as.async_copy.dst };
	return copy->src.buffer != NULL;
}

static enum pop_kind kind_of(const struct op *op)
{
	if (op_is_gemm(op))
		return POP_GEMM;
	if (op->kind == OP_reduce)
		return POP_REDUCE;
	return op->kind == OP_scan ? POP_SCAN : POP_OTHER;
}

static void collect_op(struct collector *c, struct stmt *stmt)
{
	struct op *tile_op = &stmt->as.op;
	struct op_copy copy;
	enum operand_role role;
	struct pop *op;

	if (find_copy(tile_op, &copy)) {
		collect_copy(c, stmt, &copy);
		op = vec_last(&c->infer->ops);
		op->copy.is_explicit = tile_op->kind != OP_copy;
		if (tile_op->kind == OP_tma_copy && copy.dst.buffer->scope == SCOPE_SHARED)
			op->copy.is_tma_load = c->infer->target->has_tma;
		return;
	}
	op = new_op(c, kind_of(tile_op), stmt);
	if (op->kind == POP_GEMM)
		op->gemm_op = tile_op->as.gemm;
	for (uint32_t i = 0;; i++) {
		struct region *region = op_region(tile_op, i, &role);

		if (!region)
			break;
		touch(c->infer, op, region->buffer);
	}
}

/* A store outside any nest runs in every thread: its fragments are everywhere. */
static void collect_scalar_store(struct collector *c, const struct stmt *stmt)
{
	if (stmt->as.store.buffer->scope == SCOPE_FRAGMENT)
		c->infer->floating[stmt->as.store.buffer->id] = true;
	visit_statement_exprs(c, stmt, stmt->as.store.value);
	for (uint32_t d = 0; d < stmt->as.store.buffer->rank; d++)
		visit_statement_exprs(c, stmt, stmt->as.store.index[d]);
}

static void collect_block(struct collector *c, const struct block *block, uint32_t depth);

/* Does the thread's number alone decide? Then the range of those of the present threads for which
 * the condition is `wanted`. */
static bool find_range(struct collector *c, const struct expr *condition, bool wanted,
                       int64_t range[2])
{
	struct pinfer *infer = c->infer;
	const struct var *tx = infer->launch->thread[0];
	int64_t *values = parity_values(infer), first = -1, last = -1, n = 0;
	struct expr_code *code;

	if (!tx || !condition->is_index || !expr_uses(condition, tx))
		return false;
	code = expr_compile(infer->arena, condition);
	for (int64_t t = c->thread_min; t < c->thread_min + c->n_threads; t++) {
		values[tx->id] = t;
		if ((expr_run(code, values) != 0) != wanted)
			continue;
		first = first < 0 ? t : first;
		last = t;
		n++;
	}
	values[tx->id] = 0;
	range[0] = first;
	range[1] = n;
	return n > 0 && last - first + 1 == n;
}

/* The threads of a branch that the condition gives to a range of them are that range. */
static void collect_branch(struct collector *c, const struct stmt *stmt, bool wanted,
                           uint32_t depth)
{
	int64_t thread_min = c->thread_min, n_threads = c->n_threads, range[2];

	if (find_range(c, stmt->as.if_.condition, wanted, range)) {
		c->thread_min = range[0];
		c->n_threads = range[1];
	}
	collect_block(c, wanted ? &stmt->as.if_.then : &stmt->as.if_.otherwise, depth + 1);
	c->thread_min = thread_min;
	c->n_threads = n_threads;
}

static void collect_if(struct collector *c, const struct stmt *stmt, uint32_t depth)
{
	visit_statement_exprs(c, stmt, stmt->as.if_.condition);
	collect_branch(c, stmt, true, depth);
	collect_branch(c, stmt, false, depth);
}

static void collect_block(struct collector *c, const struct block *block, uint32_t depth)
{
	for (uint32_t i = 0; i < block->stmts.n && depth < MAX_DEPTH; i++) {
		struct stmt *stmt = block->stmts.p[i];

		switch (stmt->kind) {
		case STMT_OP:
			collect_op(c, stmt);
			break;
		case STMT_LOOP:
			if (stmt->as.loop.kind == LOOP_PARALLEL)
				collect_parallel(c, stmt);
			else
				collect_block(c, &stmt->as.loop.body, depth + 1);
			break;
		case STMT_IF:
			collect_if(c, stmt, depth);
			break;
		case STMT_WHILE:
			visit_statement_exprs(c, stmt, stmt->as.while_.condition);
			collect_block(c, &stmt->as.while_.body, depth + 1);
			break;
		case STMT_LET:
			visit_statement_exprs(c, stmt, stmt->as.let.value);
			break;
		case STMT_STORE:
			collect_scalar_store(c, stmt);
			break;
		case STMT_SYNC:
		case STMT_BREAK:
		case STMT_CONTINUE:
			break;
		}
	}
}

void parity_collect(struct pinfer *infer)
{
	struct collector c = { .infer = infer, .n_threads = infer->n_threads };

	collect_block(&c, &infer->launch->body, 0);
}

/* ---- elements of points ---- */

int64_t *parity_values(struct pinfer *infer)
{
	uint32_t n = expr_n_vars(infer->pool);

	if (n != infer->n_values) {
		infer->values = arena_array(infer->arena, int64_t, n + 1);
		infer->n_values = n;
		for (uint32_t id = 0; id < n; id++) {
			int64_t min = expr_var_by_id(infer->pool, id)->min;

			infer->values[id] = min > 0 && min < INT32_MAX ? min : 0;
		}
	}
	return infer->values;
}

static bool is_identity(const struct ploop *loop, const struct pfused *use)
{
	if (!use->is_plain)
		return false;
	for (uint32_t d = 0; d < loop->rank; d++)
		if (buffer_extent(use->buffer, d) != loop->shape[d])
			return false;
	return true;
}

static void next_point(const struct ploop *loop, int64_t *values)
{
	for (uint32_t d = loop->rank; d-- > 0;) {
		if (++values[loop->vars[d]->id] < loop->shape[d])
			return;
		values[loop->vars[d]->id] = 0;
	}
}

void parity_view_elems(struct pinfer *infer, struct ploop *loop, struct pfused *use)
{
	int64_t *values = parity_values(infer), n_elems = buffer_n_elems(use->buffer);
	struct expr_code *code[MAX_RANK];
	int32_t *elems;

	if (is_identity(loop, use))
		return;
	elems = arena_array(infer->arena, int32_t, (size_t)loop->n_points);
	use->elems = elems;
	for (uint32_t d = 0; d < use->buffer->rank; d++)
		code[d] = use->index[d]->is_index ? expr_compile(infer->arena, use->index[d]) : NULL;
	for (int64_t p = 0; p < loop->n_points; p++) {
		int64_t element = 0;

		for (uint32_t d = 0; d < use->buffer->rank; d++)
			element =
				element * buffer_extent(use->buffer, d) + (code[d] ? expr_run(code[d], values) : 0);
		elems[p] = (int32_t)(element >= 0 && element < n_elems ? element : 0);
		next_point(loop, values);
	}
}
