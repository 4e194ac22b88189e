/*
 * Reductions and scans of shared memory by way of fragments.
 *
 *     T.reduce_sum(x, y, dim=1)  # shared     ->    copy x_staged <- x
 *                                                   copy y_staged <- y     (clear=False only)
 *                                                   reduce y_staged <- x_staged
 *                                                   copy y <- y_staged
 *
 * Threads reduce what they hold in registers, so that the copies, their vector widths and their
 * bank conflicts are those of T.copy, and the solver chooses the fragments' layouts with everything
 * else's.
 */
#include "analyzer/tile/stage.h"

#include "analyzer/tile/alias.h"
#include "analyzer/tile/exits.h"
#include "analyzer/tile/sparse.h"

#include <string.h>

struct staging {
	struct tile_program *program;
	const struct launch *launch;
	const struct stmt *stmt; /* being rewritten */
	struct block *out;       /* where its new statements go */
};

static struct arena *arena_of(const struct staging *st)
{
	return st->program->cx->arena;
}

/* All of a fragment, from its first element on. */
static bool is_whole_fragment(const struct region *region)
{
	int64_t min;

	for (uint32_t d = 0; d < region->buffer->rank; d++)
		if (!expr_is_int(region->min[d], &min) || min != 0 ||
		    region->extent[d] != buffer_extent(region->buffer, d))
			return false;
	return region->buffer->scope == SCOPE_FRAGMENT && !region->buffer->alias_of;
}

static bool is_named(const struct tile_program *program, sym_t name)
{
	for (uint32_t i = 0; i < program->buffers.n; i++)
		if (program->buffers.p[i]->name == name)
			return true;
	return false;
}

/* A fragment of the region's extents and type: x_staged, x_staged_2, ... */
static struct region new_fragment(struct staging *st, const struct region *region)
{
	struct cx *cx = st->program->cx;
	const char *base = sym_text(cx->names, region->buffer->name);
	sym_t name = intern_text(cx->names, arena_printf(cx->arena, "%s_staged", base));
	struct buffer *made;

	for (int i = 2; is_named(st->program, name); i++)
		name = intern_text(cx->names, arena_printf(cx->arena, "%s_staged_%d", base, i));
	made = tile_new_buffer(st->program, SCOPE_FRAGMENT, name, region->buffer->type, st->stmt->span);
	made->launch = st->launch->index;
	made->rank = region->buffer->rank;
	for (uint32_t d = 0; d < made->rank; d++)
		made->shape[d] = expr_int(st->program->pool, region->extent[d]);
	return region_whole(st->program->pool, made, region->span);
}

static void add_copy(struct staging *st, struct region src, struct region dst)
{
	struct stmt *copy = tile_new_stmt(st->program, STMT_OP, st->stmt->span);

	copy->as.op.kind = OP_copy;
	copy->as.op.as.copy = (struct op_copy){ .src = src, .dst = dst };
	vec_push(arena_of(st), &st->out->stmts, copy);
}

/* The statement itself, with its number, on other regions. */
static struct stmt *add_same(struct staging *st)
{
	struct stmt *same = arena_new(arena_of(st), struct stmt);

	*same = *st->stmt;
	vec_push(arena_of(st), &st->out->stmts, same);
	return same;
}

static void stage_reduce(struct staging *st)
{
	struct op_reduce op = st->stmt->as.op.as.reduce;
	struct region dst = op.dst;
	bool stages_dst = !is_whole_fragment(&op.dst);

	if (!is_whole_fragment(&op.src)) {
		struct region src = op.src;

		op.src = new_fragment(st, &src);
		add_copy(st, src, op.src);
	}
	if (stages_dst) {
		op.dst = new_fragment(st, &dst);
		if (!op.clear)
			add_copy(st, dst, op.dst);
	}
	add_same(st)->as.op.as.reduce = op;
	if (stages_dst)
		add_copy(st, op.dst, dst);
}

static void stage_scan(struct staging *st)
{
	struct op_scan op = st->stmt->as.op.as.scan;
	struct region dst = op.dst;
	bool stages_dst = !is_whole_fragment(&op.dst);

	if (!is_whole_fragment(&op.src)) {
		struct region src = op.src;

		op.src = new_fragment(st, &src);
		add_copy(st, src, op.src);
		/* In place, when the result goes to memory in the source's type. */
		if (stages_dst && dtype_equal(src.buffer->type, dst.buffer->type))
			op.dst = op.src;
	}
	if (stages_dst && op.dst.buffer == dst.buffer)
		op.dst = new_fragment(st, &dst);
	add_same(st)->as.op.as.scan = op;
	if (stages_dst)
		add_copy(st, op.dst, dst);
}

/* A variable for each dimension of the target that has more than one element. */
static struct gather *new_gather(struct staging *st, const struct region *dst,
                                 const struct expr **at)
{
	struct cx *cx = st->program->cx;
	struct gather *gather = arena_new(cx->arena, struct gather);

	for (uint32_t d = 0; d < dst->buffer->rank; d++) {
		struct var *var;

		at[d] = expr_int(st->program->pool, 0);
		if (dst->extent[d] == 1)
			continue;
		var = expr_new_var(st->program->pool, VAR_LOOP,
		                   intern_text(cx->names, arena_printf(cx->arena, "g%u", d)), DTYPE_I32);
		var->min = 0;
		var->max = dst->extent[d] - 1;
		at[d] = expr_of_var(st->program->pool, var);
		gather->vars[gather->n_vars++] = var;
	}
	return gather;
}

/* The copy into `dst` of gathered elements of src. */
static void add_gather(struct staging *st, struct region src, const struct gather *gather,
                       struct region dst)
{
	for (uint32_t d = 0; d < src.buffer->rank; d++)
		src.extent[d] = 1;
	src.gather = gather;
	add_same(st)->as.op = (struct op){ .kind = OP_copy, .as.copy = { .src = src, .dst = dst } };
}

/* dst[.., j, .., i, ..] = src[.., i, .., j, ..] */
static void stage_transpose(struct staging *st)
{
	struct op_transpose op = st->stmt->as.op.as.transpose;
	const struct expr *at[MAX_RANK];
	struct gather *gather = new_gather(st, &op.dst, at);
	uint32_t n = gather->n_vars;

	for (uint32_t d = 0; d < op.src.buffer->rank; d++) {
		gather->index[d] = op.src.min[d];
		if (op.src.extent[d] > 1 && n > 0)
			gather->index[d] = expr_add(st->program->pool, op.src.min[d],
			                            expr_of_var(st->program->pool, gather->vars[--n]));
	}
	add_gather(st, op.src, gather, op.dst);
}

static const struct expr *divided(struct staging *st, const struct expr *a, const struct expr *b)
{
	return expr_binary(st->program->pool, BIN_FLOORDIV, a, b);
}

static const struct expr *rest_of(struct staging *st, const struct expr *a, const struct expr *b)
{
	return expr_binary(st->program->pool, BIN_FLOORMOD, a, b);
}

static const struct expr *product(struct staging *st, const struct expr *a, const struct expr *b)
{
	return expr_binary(st->program->pool, BIN_MUL, a, b);
}

/* Positions that the window takes along an image's dimension `d`. */
static const struct expr *n_positions(struct staging *st, const struct op_im2col *op, uint32_t d)
{
	struct expr_pool *pool = st->program->pool;
	int64_t more = 2 * op->pad - op->dilation * (op->kernel - 1) - 1;

	return expr_add_int(
		pool, expr_div_int(pool, expr_add_int(pool, op->src.buffer->shape[d], more), op->stride),
		1);
}

/*
 * Row p of the matrix is the window at position p (batch, y, x), column t its element (window row,
 * window column, channel). Elements in the padding are outside of the image, as are columns behind
 * the window's last, whose batch does not exist: a copy makes them zero.
 */
static void stage_im2col(struct staging *st)
{
	struct op_im2col op = st->stmt->as.op.as.im2col;
	const struct expr *at[MAX_RANK], *rows, *columns, *position, *tap, *window, *channels;
	struct expr_pool *pool = st->program->pool;
	struct gather *gather = new_gather(st, &op.dst, at);
	uint32_t last = op.dst.buffer->rank - 1;

	rows = n_positions(st, &op, 1);
	columns = n_positions(st, &op, 2);
	channels = op.src.buffer->shape[3];
	position =
		expr_add(pool, expr_mul_int(pool, op.nhw_step, op.dst.extent[last - 1]), at[last - 1]);
	tap = expr_add(pool, expr_mul_int(pool, op.c_step, op.dst.extent[last]), at[last]);
	window = divided(st, tap, channels);
	gather->index[0] =
		expr_add(pool, divided(st, position, product(st, rows, columns)),
	             product(st, divided(st, window, expr_int(pool, op.kernel * op.kernel)),
	                     op.src.buffer->shape[0]));
	gather->index[1] = expr_add(
		pool, expr_mul_int(pool, rest_of(st, divided(st, position, columns), rows), op.stride),
		expr_add_int(pool, expr_mul_int(pool, expr_div_int(pool, window, op.kernel), op.dilation),
	                 -op.pad));
	gather->index[2] = expr_add(
		pool, expr_mul_int(pool, rest_of(st, position, columns), op.stride),
		expr_add_int(pool, expr_mul_int(pool, expr_mod_int(pool, window, op.kernel), op.dilation),
	                 -op.pad));
	gather->index[3] = rest_of(st, tap, channels);
	for (uint32_t d = 0; d < 4; d++)
		gather->index[d] = expr_add(pool, gather->index[d], op.src.min[d]);
	add_gather(st, op.src, gather, op.dst);
}

/* The kernel waits for it later than a copy does: that is allowed. */
static void stage_async_copy(struct staging *st)
{
	struct op_async_copy op = st->stmt->as.op.as.async_copy;

	add_same(st)->as.op =
		(struct op){ .kind = OP_copy, .as.copy = { .src = op.src, .dst = op.dst } };
}

static bool has_local(const struct region *a, const struct region *b)
{
	return a->buffer->scope == SCOPE_LOCAL || b->buffer->scope == SCOPE_LOCAL;
}

static bool wants_staging(const struct stmt *stmt)
{
	const struct op_reduce *reduce = &stmt->as.op.as.reduce;
	const struct op_scan *scan = &stmt->as.op.as.scan;

	if (stmt->kind != STMT_OP)
		return false;
	if (stmt->as.op.kind == OP_transpose || stmt->as.op.kind == OP_im2col ||
	    stmt->as.op.kind == OP_async_copy || stmt->as.op.kind == OP_gemm_sp)
		return true;
	if (stmt->as.op.kind == OP_reduce)
		return !has_local(&reduce->src, &reduce->dst) &&
		       (!is_whole_fragment(&reduce->src) || !is_whole_fragment(&reduce->dst));
	if (stmt->as.op.kind == OP_scan)
		return !has_local(&scan->src, &scan->dst) &&
		       (!is_whole_fragment(&scan->src) || !is_whole_fragment(&scan->dst));
	return false;
}

/* Does the block hold a statement to rewrite? */
struct search {
	bool found;
};

static void visit(void *user, struct stmt *stmt)
{
	struct search *search = user;

	search->found |= wants_staging(stmt);
}

static bool holds_one(const struct block *block)
{
	struct search search = { false };

	tile_walk((struct block *)(uintptr_t)block, visit, &search);
	return search.found;
}

static struct block stage_block(struct staging *st, const struct block *block);

/* A statement with blocks inside, some of which change. */
static struct stmt *stage_inside(struct staging *st, const struct stmt *stmt)
{
	struct stmt *copy = arena_new(arena_of(st), struct stmt);

	*copy = *stmt;
	switch (stmt->kind) {
	case STMT_LOOP:
		copy->as.loop.body = stage_block(st, &stmt->as.loop.body);
		break;
	case STMT_IF:
		copy->as.if_.then = stage_block(st, &stmt->as.if_.then);
		copy->as.if_.otherwise = stage_block(st, &stmt->as.if_.otherwise);
		break;
	case STMT_WHILE:
		copy->as.while_.body = stage_block(st, &stmt->as.while_.body);
		break;
	case STMT_OP:
	case STMT_LET:
	case STMT_STORE:
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		break;
	}
	return copy;
}

/* Nesting is bounded by the frontend. */
static struct block stage_block(struct staging *st, const struct block *block)
{
	struct block out = { { 0 } };

	if (!holds_one(block))
		return *block;
	for (uint32_t i = 0; i < block->stmts.n; i++) {
		const struct stmt *stmt = block->stmts.p[i];

		if (!wants_staging(stmt)) {
			struct stmt *same = stage_inside(st, stmt);
			vec_push(arena_of(st), &out.stmts, same);
			continue;
		}
		st->stmt = stmt;
		st->out = &out;
		if (stmt->as.op.kind == OP_reduce)
			stage_reduce(st);
		else if (stmt->as.op.kind == OP_scan)
			stage_scan(st);
		else if (stmt->as.op.kind == OP_transpose)
			stage_transpose(st);
		else if (stmt->as.op.kind == OP_im2col)
			stage_im2col(st);
		else if (stmt->as.op.kind == OP_gemm_sp)
			sparse_stage(st->program, st->launch, stmt, &out);
		else
			stage_async_copy(st);
	}
	return out;
}

static bool is_same_block(const struct block *a, const struct block *b)
{
	return a->stmts.p == b->stmts.p;
}

const struct launch *tile_stage(struct tile_program *program, const struct launch *launch)
{
	struct staging st = { .program = program, .launch = launch };
	struct launch *staged, *original = (struct launch *)(uintptr_t)launch;

	if (launch->staged)
		return launch->staged;
	staged = arena_new(arena_of(&st), struct launch);
	*staged = *launch;
	staged->body = tile_without_exits(program, launch)->body;
	staged->body = stage_block(&st, &staged->body);
	staged = (struct launch *)(uintptr_t)tile_unalias(program, staged);
	if (is_same_block(&staged->body, &launch->body))
		return launch;
	staged->staged = staged;
	original->staged = staged;
	return staged;
}
