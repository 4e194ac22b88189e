/*
 * How a copy moves its data on targets with TMA, and which copies producer warps take over. Facts:
 * TileLang 0.1.15, src/cuda/op/copy_analysis.cc (conditions), src/cuda/transform/
 * producer_consumer_ws.cc (the first pipelined loop with a copy that TMA can do is split; copies
 * before it whose result the loop's other statements read go through TMA too).
 */
#include "analyzer/parity/parity_internal.h"

#include <string.h>

/* ---- settings of the compiler ---- */

bool parity_config(const struct pinfer *infer, const char *name)
{
	const struct tile_program *program = infer->program;

	for (uint32_t i = 0; i < program->pass_configs.n; i++)
		if (!strcmp(sym_text(program->cx->names, program->pass_configs.p[i].name), name))
			return program->pass_configs.p[i].value != 0;
	return false;
}

/* ---- conditions ---- */

static bool all_inside(const struct region *region, struct expr_pool *pool)
{
	for (uint32_t d = 0; d < region->buffer->rank; d++) {
		const struct expr *last = expr_add_int(pool, region->min[d], region->extent[d] - 1);
		int64_t min, max;

		if (!expr_is_true(expr_lt(pool, last, region->buffer->shape[d])) ||
		    !expr_range(region->min[d], &min, &max) || min < 0)
			return false;
	}
	return true;
}

/* Rows of a global tensor start on 16 bytes, as far as can be told. */
static bool strides_fit(struct pinfer *infer, const struct buffer *buffer)
{
	const struct expr *stride = expr_int(infer->pool, 1);
	uint32_t bits = dtype_bits(buffer->type);

	for (uint32_t d = buffer->rank; d-- > 0;) {
		const struct expr *own = buffer->strides[d] ? buffer->strides[d] : stride;
		int64_t value;

		if (d == buffer->rank - 1 && expr_is_int(own, &value) && value != 1)
			return false;
		if (d < buffer->rank - 1 && expr_is_int(own, &value) && value * bits % 128 != 0)
			return false;
		stride = expr_binary(infer->pool, BIN_MUL, stride, buffer->shape[d]);
	}
	return true;
}

static bool row_fits(const struct region *region)
{
	return region->extent[region->buffer->rank - 1] * dtype_bits(region->buffer->type) % 128 == 0;
}

static int64_t n_region_elems(const struct region *region)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < region->buffer->rank; d++)
		n *= region->extent[d];
	return n;
}

/* Dimensions from the last on are whole until one is not; all before that have one element. */
static bool is_contiguous(const struct region *region)
{
	bool whole = true;

	for (uint32_t d = region->buffer->rank; d-- > 0;) {
		int64_t extent = buffer_extent(region->buffer, d), min;

		if (!whole && region->extent[d] != 1)
			return false;
		if (whole && region->buffer->strides[d] && region->extent[d] != 1)
			return false;
		whole =
			whole && extent == region->extent[d] && expr_is_int(region->min[d], &min) && min == 0;
	}
	return true;
}

/* Can TMA write the layout that the kernel gives the tile: no swizzle, or of 32 to 128 bytes? */
static bool fits_tma(const struct buffer *buffer)
{
	const struct layout *layout = buffer->annotation;

	return !layout || layout->n_xors == 0 ||
	       (layout->n_xors == 1 && layout->xors[0].to_bit == 4 && layout->xors[0].from_bit == 7);
}

void parity_copy_facts(struct pinfer *infer, struct pop *op)
{
	const struct op_copy *copy = &op->copy_op;
	bool is_load =
		copy->src.buffer->scope == SCOPE_GLOBAL && copy->dst.buffer->scope == SCOPE_SHARED;
	bool is_store =
		copy->src.buffer->scope == SCOPE_SHARED && copy->dst.buffer->scope == SCOPE_GLOBAL;
	const struct region *global = is_load ? &copy->src : &copy->dst;
	const struct region *shared = is_load ? &copy->dst : &copy->src;
	bool possible, flat;

	if (!infer->target->has_tma || !(is_load || is_store))
		return;
	possible = dtype_equal(global->buffer->type, shared->buffer->type) &&
	           strides_fit(infer, global->buffer);
	op->copy.in_bounds = all_inside(&copy->src, infer->pool) && all_inside(&copy->dst, infer->pool);
	flat = possible && op->copy.in_bounds && is_contiguous(global) &&
	       n_region_elems(shared) == n_region_elems(global) &&
	       n_region_elems(shared) * dtype_bits(shared->buffer->type) % 128 == 0;
	op->copy.load_1d = is_load && flat;
	op->copy.store_1d = is_store && flat;
	op->copy.bulk_load = is_load && possible && row_fits(global);
	op->copy.bulk_store = is_store && possible && row_fits(global);
	if (parity_config(infer, "tl.disable_tma_lower") || (is_store && !fits_tma(shared->buffer)))
		op->copy.store_1d = op->copy.bulk_store = false;
	op->copy.shared_is_whole = n_region_elems(shared) == buffer_n_elems(shared->buffer);
}

/* ---- the split ---- */

static bool may_load(const struct pop *op)
{
	return op->kind == POP_COPY && op->copy.bulk_load && !op->copy.is_explicit;
}

static struct pop *op_of(struct pinfer *infer, const struct stmt *stmt)
{
	for (uint32_t i = 0; i < infer->ops.n; i++)
		if (infer->ops.p[i]->stmt == stmt)
			return infer->ops.p[i];
	return NULL;
}

struct finder {
	struct pinfer *infer;
	const struct stmt *found;
};

/* The first pipelined loop. */
static void find_loop(void *user, struct stmt *stmt)
{
	struct finder *finder = user;

	if (!finder->found && stmt->kind == STMT_LOOP && stmt->as.loop.kind == LOOP_PIPELINED &&
	    stmt->as.loop.num_stages >= 1)
		finder->found = stmt;
}

/* The statements of the loop that are scheduled: those of its body, or of the one `if` in it. */
static const struct block *scheduled_body(const struct stmt *loop)
{
	const struct block *body = &loop->as.loop.body;
	uint32_t start = 0;

	while (start < body->stmts.n && body->stmts.p[start]->kind == STMT_LET)
		start++;
	if (start + 1 == body->stmts.n && body->stmts.p[start]->kind == STMT_IF &&
	    body->stmts.p[start]->as.if_.otherwise.stmts.n == 0)
		return &body->stmts.p[start]->as.if_.then;
	return body;
}

struct reader {
	const struct buffer *buffer;
	bool found;
};

static void find_load_of(struct reader *reader, const struct expr *e)
{
	reader->found |= e->kind == EXPR_LOAD && e->as.buffer == reader->buffer;
	for (uint32_t i = 0; i < e->n_args && !reader->found; i++)
		find_load_of(reader, e->args[i]);
}

static void find_read(void *user, struct stmt *stmt)
{
	struct reader *reader = user;
	enum operand_role role;

	if (stmt->kind == STMT_STORE)
		find_load_of(reader, stmt->as.store.value);
	if (stmt->kind != STMT_OP)
		return;
	for (uint32_t i = 0;; i++) {
		struct region *region = op_region(&stmt->as.op, i, &role);

		if (!region)
			return;
		reader->found |= role != ROLE_WRITE && region->buffer == reader->buffer;
	}
}

/* Copies in front of the loop, at any depth outside it. */
static void split_before(struct pinfer *infer, const struct stmt *loop)
{
	for (uint32_t i = 0; i < infer->ops.n; i++) {
		struct pop *op = infer->ops.p[i];
		struct reader reader = { 0 };

		if (op->stmt->id > loop->id)
			break;
		if (!may_load(op))
			continue;
		reader.buffer = op->copy_op.dst.buffer;
		tile_walk((struct block *)(uintptr_t)scheduled_body(loop), find_read, &reader);
		op->copy.is_tma_load = reader.found;
	}
}

/* Copies of a pipelined loop that TMA does not take are cp.async's, where types are equal. */
static void mark_cp_async(void *user, struct stmt *stmt)
{
	struct pinfer *infer = user;
	const struct block *body;

	if (stmt->kind != STMT_LOOP || stmt->as.loop.kind != LOOP_PIPELINED ||
	    stmt->as.loop.num_stages < 1)
		return;
	body = scheduled_body(stmt);
	for (uint32_t i = 0; i < body->stmts.n; i++) {
		struct pop *op = op_of(infer, body->stmts.p[i]);
		const struct op_copy *copy = op ? &op->copy_op : NULL;

		if (op && op->kind == POP_COPY && !op->copy.is_tma_load &&
		    copy->src.buffer->scope == SCOPE_GLOBAL && copy->dst.buffer->scope == SCOPE_SHARED &&
		    dtype_equal(copy->src.buffer->type, copy->dst.buffer->type))
			op->copy.is_cp_async = infer->target->has_cp_async;
	}
}

static void split_loop(struct pinfer *infer)
{
	struct finder finder = { .infer = infer };
	struct block *body = (struct block *)(uintptr_t)&infer->launch->body;
	const struct block *scheduled;

	if (!infer->target->has_tma || parity_config(infer, "tl.disable_warp_specialized"))
		return;
	tile_walk(body, find_loop, &finder);
	if (!finder.found)
		return;
	scheduled = scheduled_body(finder.found);
	for (uint32_t i = 0; i < scheduled->stmts.n; i++) {
		struct pop *op = op_of(infer, scheduled->stmts.p[i]);

		if (scheduled->stmts.p[i]->kind == STMT_OP && op && may_load(op)) {
			op->copy.is_tma_load = true;
			infer->is_split = true;
		}
	}
	infer->split_loop = infer->is_split ? finder.found : NULL;
	if (infer->is_split)
		split_before(infer, finder.found);
}

void parity_split(struct pinfer *infer)
{
	split_loop(infer);
	tile_walk((struct block *)(uintptr_t)&infer->launch->body, mark_cp_async, infer);
}
