#include "analyzer/tile/sparse.h"

struct sparsity sparsity_of(struct dtype a, struct dtype e)
{
	struct sparsity s = { .group = a.bits == 32 ? 2 : 4 };

	s.kept = s.group / 2;
	s.per_word = e.bits / 4 * s.group;
	return s;
}

struct sparse {
	struct tile_program *program;
	struct expr_pool *pool;
	const struct launch *launch;
	const struct stmt *stmt;
	const struct op_gemm_sp *op;
	struct sparsity sparsity;
	int64_t m, k;
	const struct var *i, *j; /* row and column of the dense A */
};

static const struct var *new_var(struct sparse *s, const char *name, int64_t extent)
{
	struct var *var =
		expr_new_var(s->pool, VAR_LOOP, intern_text(s->program->cx->names, name), DTYPE_I32);

	var->min = 0;
	var->max = extent - 1;
	var->span = s->stmt->span;
	return var;
}

/* The element of a region's last two dimensions at (row, column), swapped when transposed. */
static const struct expr *element(struct sparse *s, const struct region *region, bool transposed,
                                  const struct expr *row, const struct expr *column)
{
	const struct expr *index[MAX_RANK];
	uint32_t rank = region->buffer->rank;

	for (uint32_t d = 0; d < rank; d++)
		index[d] = region->min[d];
	index[rank - 2] = expr_add(s->pool, index[rank - 2], transposed ? column : row);
	index[rank - 1] = expr_add(s->pool, index[rank - 1], transposed ? row : column);
	return expr_load(s->pool, region->buffer, region->buffer->type, index, rank);
}

/* Element `which` of those that A holds of the group of column j. */
static const struct expr *kept_element(struct sparse *s, int64_t which)
{
	const struct expr *group = expr_div_int(s->pool, expr_of_var(s->pool, s->j), s->sparsity.group);

	return element(s, &s->op->a, s->op->transpose_a, expr_of_var(s->pool, s->i),
	               expr_add_int(s->pool, expr_mul_int(s->pool, group, s->sparsity.kept), which));
}

/* The position within its group that the metadata gives kept element `which`. */
static const struct expr *position(struct sparse *s, int64_t which)
{
	const struct expr *j = expr_of_var(s->pool, s->j);
	const struct expr *word = element(s, &s->op->e, s->op->transpose_e, expr_of_var(s->pool, s->i),
	                                  expr_div_int(s->pool, j, s->sparsity.per_word));
	const struct expr *shift = expr_mul_int(
		s->pool,
		expr_div_int(s->pool, expr_mod_int(s->pool, j, s->sparsity.per_word), s->sparsity.group),
		4);
	const struct expr *bits;

	shift = expr_add_int(s->pool, shift, s->sparsity.kept == 1 ? 1 : 2 * which);
	bits = expr_binary(s->pool, BIN_SHR, expr_cast(s->pool, DTYPE_I32, word), shift);
	return expr_binary(s->pool, BIN_BITAND, bits, expr_int(s->pool, s->sparsity.kept == 1 ? 1 : 3));
}

static const struct expr *dense_element(struct sparse *s)
{
	struct dtype type = s->op->a.buffer->type;
	const struct expr *value = expr_int_typed(s->pool, type, 0);
	const struct expr *place = expr_mod_int(s->pool, expr_of_var(s->pool, s->j), s->sparsity.group);

	for (int64_t which = s->sparsity.kept; which-- > 0;)
		value = expr_select(s->pool, expr_binary(s->pool, BIN_EQ, position(s, which), place),
		                    kept_element(s, which), value);
	return value;
}

static struct buffer *new_tile(struct sparse *s)
{
	struct cx *cx = s->program->cx;
	const char *base = sym_text(cx->names, s->op->a.buffer->name);
	sym_t name = intern_text(cx->names, arena_printf(cx->arena, "%s_dense", base));
	struct buffer *tile;

	for (uint32_t b = 0, n = 2; b < s->program->buffers.n; b++) {
		if (s->program->buffers.p[b]->name != name)
			continue;
		name = intern_text(cx->names, arena_printf(cx->arena, "%s_dense_%u", base, n++));
		b = UINT32_MAX; /* from the first again */
	}
	tile = tile_new_buffer(s->program, SCOPE_SHARED, name, s->op->a.buffer->type, s->stmt->span);
	tile->launch = s->launch->index;
	tile->rank = 2;
	tile->shape[0] = expr_int(s->pool, s->m);
	tile->shape[1] = expr_int(s->pool, s->k);
	return tile;
}

static void write_out(struct sparse *s, const struct buffer *tile, struct block *out)
{
	struct arena *arena = s->program->cx->arena;
	struct stmt *loop = tile_new_stmt(s->program, STMT_LOOP, s->stmt->span);
	struct stmt *store = tile_new_stmt(s->program, STMT_STORE, s->stmt->span);

	loop->as.loop.kind = LOOP_PARALLEL;
	loop->as.loop.n_vars = 2;
	loop->as.loop.vars[0] = s->i;
	loop->as.loop.vars[1] = s->j;
	loop->as.loop.extents[0] = tile->shape[0];
	loop->as.loop.extents[1] = tile->shape[1];
	store->as.store.buffer = tile;
	store->as.store.index[0] = expr_of_var(s->pool, s->i);
	store->as.store.index[1] = expr_of_var(s->pool, s->j);
	store->as.store.value = dense_element(s);
	vec_push(arena, &loop->as.loop.body.stmts, store);
	vec_push(arena, &out->stmts, loop);
}

void sparse_stage(struct tile_program *program, const struct launch *launch,
                  const struct stmt *stmt, struct block *out)
{
	const struct op_gemm_sp *op = &stmt->as.op.as.gemm_sp;
	uint32_t last = op->a.buffer->rank - 1;
	struct sparse s = { .program = program,
		                .pool = program->pool,
		                .launch = launch,
		                .stmt = stmt,
		                .op = op,
		                .sparsity = sparsity_of(op->a.buffer->type, op->e.buffer->type) };
	struct stmt *gemm = arena_new(program->cx->arena, struct stmt);
	struct buffer *tile;

	s.m = op->a.extent[op->transpose_a ? last : last - 1];
	s.k = op->a.extent[op->transpose_a ? last - 1 : last] * 2;
	s.i = new_var(&s, "row", s.m);
	s.j = new_var(&s, "column", s.k);
	tile = new_tile(&s);
	diag_report(&program->cx->diags, DIAG_W0411, stmt->span,
	            "%s is written out into a dense tile of %lld bytes, which T.gemm reads",
	            sym_text(program->cx->names, op->a.buffer->name),
	            (long long)(s.m * s.k * dtype_bits(tile->type) / 8));
	write_out(&s, tile, out);
	*gemm = *stmt;
	gemm->as.op = (struct op){ .kind = OP_gemm,
		                       .as.gemm = { .a = region_whole(program->pool, tile, op->a.span),
		                                    .b = op->b,
		                                    .c = op->c,
		                                    .clear_accum = op->clear_accum,
		                                    .transpose_b = op->transpose_b,
		                                    .policy = op->policy } };
	vec_push(program->cx->arena, &out->stmts, gemm);
}
