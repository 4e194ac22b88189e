/*
 * happens-before, of values: an element of a tile is written before it is read.
 *
 * The launch is walked in program order with the set of elements that something may have written. A
 * loop's body is walked as its first iteration; behind the loop, what its later iterations write
 * counts too. A read of an element outside the set is certain to meet no value, and is told with
 * the first such element:
 *
 *     for i in T.Parallel(100): f[i] = 5.0
 *     for i in T.Parallel(256): C[i] = f[i] + 1.0        reads f[100] to f[255]
 *
 * Reads that an `if` may keep from happening, and those whose index depends on data, the block or
 * the thread, are not judged; such writes count for all elements. So there is no false alarm.
 * Complexity: iterations of parallel loops that write tiles that are not written in full yet.
 */
#include "analyzer/check/check_internal.h"

#include "analyzer/pipeline/depend.h"
#include "analyzer/tile/alias.h"

enum { MAX_TILE = 1 << 20, MAX_ITERATIONS = 1 << 18, MAX_EXPR_DEPTH = 200 };

/* What may have been written of a tile, which is the memory of all its shapes and types. */
struct tile {
	uint8_t *written;   /* by unit, row-major; NULL: not looked at */
	uint32_t unit_bits; /* of the narrowest element */
	int64_t n_units, n_written;
	bool reported;
};

struct defined {
	struct check *check;
	struct tile *tiles; /* by buffer id of the owner */
	int64_t *values;    /* of variables, by id */
	bool *known;        /* by variable id: in `values` */
	int n_conditions;   /* ifs around that may keep the statement from running */
	const struct stmt *stmt;
	bool ok; /* no read without a value so far in this statement */
};

static struct tile *tile_of(struct defined *d, const struct buffer *buffer)
{
	struct tile *tile = &d->tiles[alias_owner(buffer)->id];

	return tile->written ? tile : NULL;
}

static void write_all(struct tile *tile)
{
	tile->n_written = tile->n_units;
}

static bool is_full(const struct tile *tile)
{
	return tile->n_written == tile->n_units;
}

struct unknown {
	const struct defined *d;
	bool found;
};

static void visit_var(void *user, const struct expr *e)
{
	struct unknown *unknown = user;

	unknown->found |= e->kind == EXPR_VAR && !unknown->d->known[e->as.var->id];
}

/* Can the expression be computed now? */
static bool is_known(const struct defined *d, const struct expr *e)
{
	struct unknown unknown = { d, false };

	if (!e->is_index)
		return false;
	expr_walk(e, visit_var, &unknown);
	return !unknown.found;
}

static bool all_known(const struct defined *d, const struct expr *const *index, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!is_known(d, index[i]))
			return false;
	return true;
}

/* Row-major number of an element; -1 outside, which is another property's matter. */
static int64_t element_at(const struct buffer *buffer, const int64_t *index)
{
	int64_t at = 0;

	for (uint32_t d = 0; d < buffer->rank; d++) {
		int64_t extent = buffer_extent(buffer, d);
		if (index[d] < 0 || index[d] >= extent)
			return -1;
		at = at * extent + index[d];
	}
	return at;
}

/* Units of an element of the buffer. */
static int64_t units_of(const struct tile *tile, const struct buffer *buffer)
{
	return dtype_bits(buffer->type) / tile->unit_bits;
}

static void write_element(struct tile *tile, const struct buffer *buffer, const int64_t *index)
{
	int64_t at = element_at(buffer, index), n = units_of(tile, buffer);

	for (int64_t u = at * n; at >= 0 && u < at * n + n && !is_full(tile); u++) {
		tile->n_written += !tile->written[u];
		tile->written[u] = 1;
	}
}

static bool is_written(const struct tile *tile, const struct buffer *buffer, int64_t at)
{
	int64_t n = units_of(tile, buffer);

	for (int64_t u = at * n; u < at * n + n; u++)
		if (!tile->written[u])
			return false;
	return true;
}

static void read_element(struct defined *d, const struct buffer *buffer, const int64_t *index)
{
	struct tile *tile = tile_of(d, buffer);
	int64_t at = element_at(buffer, index);

	if (!tile || at < 0 || is_full(tile) || tile->reported || is_written(tile, buffer, at))
		return;
	tile->reported = true;
	check_found(
		d->check,
		(struct finding){ PROPERTY_HAPPENS_BEFORE, PROPERTY_VIOLATED, d->stmt->span,
	                      sym_text(d->check->cx->names, buffer->name) },
		"element %s is read, and nothing has written it: %lld of %lld elements have a value",
		check_index_text(d->check, index, buffer->rank),
		(long long)(tile->n_written / units_of(tile, buffer)),
		(long long)(tile->n_units / units_of(tile, buffer)));
}

/* ---- regions ---- */

static void meet_region(struct defined *d, const struct region *region, bool is_read)
{
	struct tile *tile = region->buffer ? tile_of(d, region->buffer) : NULL;
	int64_t min[MAX_RANK], index[MAX_RANK];
	bool whole = true;
	uint32_t rank;

	if (!tile || is_full(tile) || (is_read && d->n_conditions))
		return;
	rank = region->buffer->rank;
	if (!all_known(d, region->min, rank)) {
		if (!is_read)
			write_all(tile);
		return;
	}
	for (uint32_t k = 0; k < rank; k++) {
		index[k] = min[k] = expr_eval_int(region->min[k], d->values);
		whole &= min[k] == 0 && region->extent[k] == buffer_extent(region->buffer, k);
	}
	if (whole && !is_read) {
		write_all(tile);
		return;
	}
	for (bool more = true; more;) {
		if (is_read)
			read_element(d, region->buffer, index);
		else
			write_element(tile, region->buffer, index);
		more = false;
		for (uint32_t k = rank; k-- > 0 && !more;) {
			more = ++index[k] < min[k] + region->extent[k];
			if (!more)
				index[k] = min[k];
		}
	}
}

/* Does a gemm, a reduction or a scan read what it also writes? */
static bool reads_target(struct defined *d, const struct op *op)
{
	const struct expr *clear = op_is_gemm(op) ? op->as.gemm.clear_accum : NULL;

	if (op->kind == OP_reduce)
		return !op->as.reduce.clear;
	if (clear)
		return is_known(d, clear) && !expr_eval_int(clear, d->values);
	return true;
}

static void meet_op(struct defined *d, struct stmt *stmt)
{
	struct op *op = &stmt->as.op;
	struct use_list uses = { .arena = d->check->cx->arena };
	enum operand_role role;
	struct region *region;

	if (op->kind == OP_evaluate) {
		depend_stmt(&uses, stmt);
		for (uint32_t i = 0; i < uses.uses.n; i++)
			if (tile_of(d, uses.uses.p[i].buffer))
				write_all(tile_of(d, uses.uses.p[i].buffer));
		return;
	}
	for (uint32_t i = 0; (region = op_region(op, i, &role)) != NULL; i++)
		if (role == ROLE_READ || (role == ROLE_UPDATE && reads_target(d, op)))
			meet_region(d, region, true);
	for (uint32_t i = 0; (region = op_region(op, i, &role)) != NULL; i++)
		if (role != ROLE_READ)
			meet_region(d, region, false);
}

/* ---- elements ---- */

/* Loads that are certain to happen: not those behind a condition inside the expression. */
static void meet_loads(struct defined *d, const struct expr *e, int depth)
{
	bool chooses = e->kind == EXPR_SELECT ||
	               (e->kind == EXPR_BINARY && (e->as.binary == BIN_AND || e->as.binary == BIN_OR));
	int64_t index[MAX_RANK];

	if (depth > MAX_EXPR_DEPTH)
		return;
	for (uint32_t i = 0; i < (chooses ? 1 : e->n_args); i++)
		meet_loads(d, e->args[i], depth + 1);
	if (e->kind != EXPR_LOAD || !tile_of(d, e->as.buffer) || is_full(tile_of(d, e->as.buffer)) ||
	    !all_known(d, e->args, e->as.buffer->rank))
		return;
	for (uint32_t k = 0; k < e->as.buffer->rank; k++)
		index[k] = expr_eval_int(e->args[k], d->values);
	read_element(d, e->as.buffer, index);
}

/* One iteration's store: what it reads, then what it writes. */
static void meet_store(struct defined *d, const struct stmt *stmt, bool is_write)
{
	const struct buffer *buffer = stmt->as.store.buffer;
	struct tile *tile = tile_of(d, buffer);
	int64_t index[MAX_RANK];
	bool known;

	if (!is_write && !d->n_conditions)
		meet_loads(d, stmt->as.store.value, 0);
	if (!tile || is_full(tile))
		return;
	known = all_known(d, stmt->as.store.index, buffer->rank);
	if (!known && is_write)
		write_all(tile);
	if (!known)
		return;
	for (uint32_t k = 0; k < buffer->rank; k++)
		index[k] = expr_eval_int(stmt->as.store.index[k], d->values);
	if (is_write)
		write_element(tile, buffer, index);
	else if (stmt->as.store.atomic != ATOMIC_NONE && stmt->as.store.atomic != ATOMIC_STORE &&
	         !d->n_conditions)
		read_element(d, buffer, index);
}

static bool loads_open_tile(struct defined *d, const struct expr *e)
{
	struct use_list uses = { .arena = d->check->cx->arena };

	depend_expr(&uses, NULL, e);
	for (uint32_t i = 0; i < uses.uses.n; i++) {
		const struct tile *tile = tile_of(d, uses.uses.p[i].buffer);
		if (tile && !is_full(tile) && !tile->reported)
			return true;
	}
	return false;
}

/* Runs through the iterations of the loops around the store, which are in `loop`. */
static void meet_iterations(struct defined *d, const struct loop *loop, const struct stmt *stmt,
                            bool is_write)
{
	int64_t extent[MAX_RANK];

	for (uint32_t k = 0; k < loop->n_vars; k++) {
		if (!expr_is_int(loop->extents[k], &extent[k]) || extent[k] < 1)
			return;
		d->values[loop->vars[k]->id] = 0;
	}
	for (bool more = true; more;) {
		meet_store(d, stmt, is_write);
		more = false;
		for (uint32_t k = loop->n_vars; k-- > 0 && !more;) {
			more = ++d->values[loop->vars[k]->id] < extent[k];
			if (!more)
				d->values[loop->vars[k]->id] = 0;
		}
	}
}

static bool is_short(const struct loop *loop)
{
	int64_t n = 1, extent;

	for (uint32_t k = 0; k < loop->n_vars; k++)
		if (!expr_is_int(loop->extents[k], &extent) || __builtin_mul_overflow(n, extent, &n))
			return false;
	return n <= MAX_ITERATIONS;
}

/* An iteration for each element. */
static bool writes_whole(const struct loop *loop, const struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer;
	int64_t extent;

	if (buffer->rank != loop->n_vars)
		return false;
	for (uint32_t k = 0; k < buffer->rank; k++) {
		const struct expr *index = stmt->as.store.index[k];
		if (index->kind != EXPR_VAR || index->as.var != loop->vars[k] ||
		    !expr_is_int(loop->extents[k], &extent) || extent != buffer_extent(buffer, k))
			return false;
	}
	return true;
}

static void meet_parallel_store(struct defined *d, const struct loop *loop, const struct stmt *stmt)
{
	struct tile *tile = tile_of(d, stmt->as.store.buffer);
	bool is_open = tile && !is_full(tile);

	d->stmt = stmt;
	if (!is_short(loop)) {
		if (tile)
			write_all(tile);
		return;
	}
	if (loads_open_tile(d, stmt->as.store.value) || (is_open && stmt->as.store.atomic))
		meet_iterations(d, loop, stmt, false);
	if (is_open && writes_whole(loop, stmt))
		write_all(tile);
	else if (is_open)
		meet_iterations(d, loop, stmt, true);
}

static void meet_block(struct defined *d, const struct block *block, const struct loop *parallel);

/* What the iterations behind the first write: all of a tile when the index depends on them. */
static void meet_later_iterations(struct defined *d, const struct loop *loop)
{
	struct use_list uses = { .arena = d->check->cx->arena };

	depend_block(&uses, (struct block *)(uintptr_t)&loop->body);
	for (uint32_t i = 0; i < uses.uses.n; i++) {
		struct tile *tile = tile_of(d, uses.uses.p[i].buffer);
		const struct stmt *stmt = uses.uses.p[i].stmt;
		bool moves = false;

		if (!tile || !uses.uses.p[i].writes || is_full(tile))
			continue;
		for (uint32_t k = 0; stmt->kind == STMT_STORE && k < stmt->as.store.buffer->rank; k++)
			moves |= expr_uses(stmt->as.store.index[k], loop->vars[0]);
		for (uint32_t n = 0; stmt->kind == STMT_OP && !moves; n++) {
			enum operand_role role;
			const struct region *region = op_region((struct op *)(uintptr_t)&stmt->as.op, n, &role);
			if (!region)
				break;
			for (uint32_t k = 0; region->buffer && k < region->buffer->rank; k++)
				moves |= expr_uses(region->min[k], loop->vars[0]);
		}
		if (moves)
			write_all(tile);
	}
}

static void meet_loop(struct defined *d, const struct stmt *stmt, const struct loop *parallel)
{
	const struct loop *loop = &stmt->as.loop;

	for (uint32_t k = 0; k < loop->n_vars; k++) {
		d->known[loop->vars[k]->id] = true;
		d->values[loop->vars[k]->id] = 0;
	}
	meet_block(d, &loop->body, loop->kind == LOOP_PARALLEL ? loop : parallel);
	if (loop->kind != LOOP_PARALLEL)
		meet_later_iterations(d, loop);
	for (uint32_t k = 0; k < loop->n_vars; k++)
		d->known[loop->vars[k]->id] = false;
}

static void meet_block(struct defined *d, const struct block *block, const struct loop *parallel)
{
	for (uint32_t i = 0; i < block->stmts.n; i++) {
		struct stmt *stmt = block->stmts.p[i];

		d->stmt = stmt;
		switch (stmt->kind) {
		case STMT_OP:
			meet_op(d, stmt);
			break;
		case STMT_LOOP:
			meet_loop(d, stmt, parallel);
			break;
		case STMT_IF:
			d->n_conditions++;
			meet_block(d, &stmt->as.if_.then, parallel);
			meet_block(d, &stmt->as.if_.otherwise, parallel);
			d->n_conditions--;
			break;
		case STMT_WHILE:
			d->n_conditions++;
			meet_block(d, &stmt->as.while_.body, parallel);
			d->n_conditions--;
			break;
		case STMT_STORE:
			if (parallel) {
				meet_parallel_store(d, parallel, stmt);
			} else {
				meet_store(d, stmt, false);
				meet_store(d, stmt, true);
			}
			break;
		case STMT_LET:
		case STMT_SYNC:
		case STMT_BREAK:
		case STMT_CONTINUE:
			break;
		}
	}
}

/* Bits of the narrowest type that the buffer's memory has in this launch. */
static uint32_t narrowest(const struct tile_program *program, const struct buffer *owner)
{
	uint32_t bits = dtype_bits(owner->type);

	for (uint32_t b = 0; b < program->buffers.n; b++)
		if (alias_owner(program->buffers.p[b]) == owner &&
		    dtype_bits(program->buffers.p[b]->type) < bits)
			bits = dtype_bits(program->buffers.p[b]->type);
	return bits;
}

/* Memory on the chip, which nothing outside the kernel fills. */
static void open_tiles(struct defined *d)
{
	const struct solution *solution = d->check->solution;
	const struct tile_program *program = solution->program;

	for (uint32_t b = 0; b < program->buffers.n; b++) {
		const struct buffer *buffer = program->buffers.p[b];
		int64_t n = buffer_n_elems(buffer);
		uint32_t unit_bits;

		if ((buffer->scope != SCOPE_FRAGMENT && buffer->scope != SCOPE_SHARED) ||
		    buffer->launch != solution->launch->index || alias_owner(buffer) != buffer)
			continue;
		unit_bits = narrowest(program, buffer);
		n = unit_bits ? n * (dtype_bits(buffer->type) / unit_bits) : 0;
		if (n < 1 || n > MAX_TILE)
			continue;
		d->tiles[b].unit_bits = unit_bits;
		d->tiles[b].n_units = n;
		d->tiles[b].written = arena_array(d->check->cx->arena, uint8_t, (size_t)n);
	}
}

void check_defined(struct check *check)
{
	struct arena *arena = check->cx->arena;
	size_t n_vars = expr_n_vars(check->pool) + 64;
	struct defined d = { .check = check };

	d.tiles = arena_array(arena, struct tile, check->solution->program->buffers.n);
	d.values = arena_array(arena, int64_t, n_vars);
	d.known = arena_array(arena, bool, n_vars);
	open_tiles(&d);
	meet_block(&d, &check->solution->launch->body, NULL);
}
