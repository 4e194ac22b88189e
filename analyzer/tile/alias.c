#include "analyzer/tile/alias.h"

#include "analyzer/pipeline/depend.h"

struct unalias {
	struct tile_program *program;
	struct expr_pool *pool;
	struct expr_subst subst; /* loads of families: of the member that stands for them */
	const struct buffer **representative; /* by buffer id; NULL: the buffer itself */
	bool *is_torn;                        /* by buffer id: shapes that no member can stand for */
};

const struct buffer *alias_root(const struct buffer *buffer)
{
	return buffer->alias_of ? buffer->alias_of : buffer;
}

const struct buffer *alias_owner(const struct buffer *buffer)
{
	if (buffer->scope == SCOPE_GLOBAL)
		return alias_root(buffer);
	return buffer->owner ? buffer->owner : buffer;
}

const struct buffer *alias_argument(const struct buffer *buffer)
{
	const struct buffer *base = buffer->alias_of;

	if (!base || buffer->scope != SCOPE_GLOBAL || base->map ||
	    !dtype_equal(base->type, buffer->type))
		return buffer;
	for (uint32_t d = 0; d < base->rank; d++)
		if (base->strides[d])
			return buffer;
	return base;
}

/* May another member of its type stand for it? */
static bool is_rewritable(const struct buffer *buffer)
{
	return alias_argument(buffer) == buffer &&
	       (buffer->scope == SCOPE_SHARED || dtype_equal(buffer->type, alias_root(buffer)->type));
}

/* ---- which member stands for a family ---- */

/* How often the launch takes a member as a whole. */
struct weight {
	uint32_t operations, copies;
};

static bool is_copy_or_fill(const struct stmt *stmt)
{
	return stmt->as.op.kind == OP_copy || stmt->as.op.kind == OP_fill;
}

struct weighing {
	struct weight *weights; /* by buffer id */
};

static void weigh(void *user, struct stmt *stmt)
{
	struct weighing *weighing = user;
	enum operand_role role;
	struct region *region;

	if (stmt->kind != STMT_OP)
		return;
	for (uint32_t i = 0; (region = op_region(&stmt->as.op, i, &role)); i++) {
		struct weight *weight = region->buffer ? &weighing->weights[region->buffer->id] : NULL;

		if (weight && is_copy_or_fill(stmt))
			weight->copies++;
		else if (weight)
			weight->operations++;
	}
}

static bool is_heavier(const struct weight *a, const struct weight *b)
{
	return a->operations > b->operations ||
	       (a->operations == b->operations && a->copies > b->copies);
}

/* What the kernel says about a member binds it: where it lies, what it collects. */
static bool is_bound(const struct buffer *buffer)
{
	return buffer->annotation || buffer->map || buffer->is_reducer || buffer->scope == SCOPE_GLOBAL;
}

static bool stands_before(const struct weighing *weighing, const struct buffer *alias,
                          const struct buffer *best)
{
	if (is_bound(best) || is_bound(alias))
		return !is_bound(best);
	return is_heavier(&weighing->weights[alias->id], &weighing->weights[best->id]);
}

/* Is each extent of `coarse` a product of extents of `fine` that stand side by side? */
static bool is_refined_by(const struct buffer *coarse, const struct buffer *fine)
{
	uint32_t k = 0;

	for (uint32_t d = 0; d < coarse->rank; d++) {
		int64_t n = 1;

		while (n < buffer_extent(coarse, d) && k < fine->rank)
			n *= buffer_extent(fine, k++);
		if (n != buffer_extent(coarse, d))
			return false;
	}
	return true;
}

/*
 * Of a fragment's shapes the one that all others split further: then an index is a number whose
 * digits are the loop's variables, from which partitions are derived.
 */
static void choose_coarser(struct unalias *un, const struct buffer *best,
                           const struct buffer *alias)
{
	const struct buffer *base = alias_root(alias);

	if (is_refined_by(best, alias))
		return;
	if (is_refined_by(alias, best) && !is_bound(base))
		un->representative[base->id] = alias;
	else
		un->is_torn[base->id] = true;
}

static bool is_used(const struct use_list *uses, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < uses->uses.n; i++)
		if (uses->uses.p[i].named == buffer)
			return true;
	return false;
}

/* False when the launch uses no alias that is to be rewritten. */
static bool choose_members(struct unalias *un, const struct launch *launch)
{
	struct tile_program *program = un->program;
	struct arena *arena = program->cx->arena;
	uint32_t n = program->buffers.n;
	struct weighing weighing = { arena_array(arena, struct weight, n) };
	struct use_list uses = { .arena = arena };
	bool any = false;

	depend_block(&uses, (struct block *)(uintptr_t)&launch->body);
	for (uint32_t i = 0; i < uses.uses.n; i++) {
		const struct buffer *buffer = uses.uses.p[i].named;

		any |= (buffer->alias_of && is_rewritable(buffer)) || buffer->outside;
	}
	if (!any)
		return false;
	un->representative = arena_array(arena, const struct buffer *, n);
	un->is_torn = arena_array(arena, bool, n);
	tile_walk((struct block *)(uintptr_t)&launch->body, weigh, &weighing);
	for (uint32_t b = 0; b < n; b++) {
		const struct buffer *alias = program->buffers.p[b], *base = alias_root(alias), *best;

		if (alias == base || !is_rewritable(alias) || !is_used(&uses, alias))
			continue;
		best = un->representative[base->id] ? un->representative[base->id] : base;
		if (alias->scope == SCOPE_FRAGMENT)
			choose_coarser(un, best, alias);
		else if (stands_before(&weighing, alias, best))
			un->representative[base->id] = alias;
	}
	return true;
}

/* The member that speaks for the buffer: often itself. */
static const struct buffer *member_for(const struct unalias *un, const struct buffer *buffer)
{
	const struct buffer *base = alias_root(buffer), *member = un->representative[base->id];

	if (!member)
		member = base;
	if (!is_rewritable(buffer) || un->is_torn[base->id] || !dtype_equal(buffer->type, member->type))
		return buffer;
	return member;
}

/* ---- indices ---- */

/* The member's index of the element at `index` of `buffer`: the same number in row-major order. */
static void map_index(const struct unalias *un, const struct buffer *buffer,
                      const struct buffer *member, const struct expr *const *index,
                      const struct expr **out)
{
	struct expr_pool *pool = un->pool;
	const struct expr *number = expr_int(pool, 0);

	for (uint32_t d = 0; d < buffer->rank; d++)
		number = expr_add(pool, expr_binary(pool, BIN_MUL, number, buffer->shape[d]), index[d]);
	for (uint32_t d = member->rank; d-- > 1;) {
		out[d] = expr_binary(pool, BIN_FLOORMOD, number, member->shape[d]);
		number = expr_binary(pool, BIN_FLOORDIV, number, member->shape[d]);
	}
	out[0] = number;
}

static const struct expr *rewrite(const struct unalias *un, const struct expr *e)
{
	return e ? expr_substitute(un->pool, e, &un->subst) : NULL;
}

/* The load where its index is inside of the tensor, else what it is to give there. */
static const struct expr *or_outside(const struct unalias *un, const struct expr *load,
                                     const struct expr *const *index)
{
	const struct buffer *buffer = load->as.buffer;
	const struct expr *inside = NULL, *zero = expr_int(un->pool, 0);

	if (!buffer->outside || !dtype_equal(load->type, buffer->type))
		return load;
	for (uint32_t d = 0; d < buffer->rank; d++) {
		inside = expr_and(un->pool, inside, expr_binary(un->pool, BIN_GE, index[d], zero));
		inside = expr_and(un->pool, inside, expr_lt(un->pool, index[d], buffer->shape[d]));
	}
	return expr_is_true(inside) ? load : expr_select(un->pool, inside, load, buffer->outside);
}

static const struct expr *rewrite_load(void *user, const struct expr *load)
{
	const struct unalias *un = user;
	const struct buffer *member = member_for(un, load->as.buffer);
	const struct expr *index[MAX_RANK], *mapped[MAX_RANK];

	for (uint32_t d = 0; d < load->n_args; d++)
		index[d] = rewrite(un, load->args[d]);
	if (member == load->as.buffer)
		return or_outside(un, expr_load(un->pool, load->as.buffer, load->type, index, load->n_args),
		                  index);
	map_index(un, load->as.buffer, member, index, mapped);
	return expr_load(un->pool, member, load->type, mapped, member->rank);
}

/* ---- statements ---- */

static void rewrite_store(const struct unalias *un, struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer, *member = member_for(un, buffer);
	const struct expr *index[MAX_RANK];

	for (uint32_t d = 0; d < buffer->rank; d++)
		stmt->as.store.index[d] = index[d] = rewrite(un, stmt->as.store.index[d]);
	stmt->as.store.value = rewrite(un, stmt->as.store.value);
	stmt->as.store.buffer = member;
	if (member != buffer)
		map_index(un, buffer, member, index, stmt->as.store.index);
}

/* The index of the region's element at the loop's variables, which run over its extents but 1. */
static bool element_of(const struct unalias *un, const struct region *region,
                       const struct loop *loop, const struct expr **index)
{
	uint32_t n = 0;
	int64_t extent;

	for (uint32_t d = 0; d < region->buffer->rank; d++) {
		index[d] = region->min[d];
		if (region->extent[d] == 1)
			continue;
		if (n >= loop->n_vars || !expr_is_int(loop->extents[n], &extent) ||
		    extent != region->extent[d])
			return false;
		index[d] = expr_add(un->pool, index[d], expr_of_var(un->pool, loop->vars[n++]));
	}
	return n == loop->n_vars || region->buffer->rank == 0;
}

static void open_loop(const struct unalias *un, const struct region *region, struct loop *loop)
{
	struct cx *cx = un->program->cx;

	for (uint32_t d = 0; d < region->buffer->rank; d++) {
		struct var *var;

		if (region->extent[d] == 1)
			continue;
		var = expr_new_var(un->pool, VAR_LOOP,
		                   intern_text(cx->names, arena_printf(cx->arena, "i%u", loop->n_vars)),
		                   DTYPE_I32);
		var->min = 0;
		var->max = region->extent[d] - 1;
		var->span = region->span;
		loop->vars[loop->n_vars] = var;
		loop->extents[loop->n_vars++] = expr_int(un->pool, region->extent[d]);
	}
}

/* dst[..] = value in a parallel loop over the extents; NULL when the two sides differ in them. */
static struct stmt *as_loop(const struct unalias *un, const struct stmt *op,
                            const struct region *dst, const struct region *src)
{
	struct stmt *loop = arena_new(un->program->cx->arena, struct stmt), *store;
	const struct expr *index[MAX_RANK];

	*loop = (struct stmt){ .kind = STMT_LOOP, .id = op->id, .span = op->span };
	loop->as.loop.kind = LOOP_PARALLEL;
	open_loop(un, dst, &loop->as.loop);
	if (loop->as.loop.n_vars == 0 || (src && !element_of(un, src, &loop->as.loop, index)))
		return NULL;
	store = tile_new_stmt(un->program, STMT_STORE, op->span);
	store->as.store.buffer = dst->buffer;
	if (src)
		store->as.store.value = expr_cast(
			un->pool, dst->buffer->type,
			expr_load(un->pool, src->buffer, src->buffer->type, index, src->buffer->rank));
	else
		store->as.store.value = op->as.op.as.fill.value;
	element_of(un, dst, &loop->as.loop, store->as.store.index);
	rewrite_store(un, store);
	if (op->as.op.kind == OP_copy)
		loop->as.loop.coalesced_width = op->as.op.as.copy.coalesced_width;
	vec_push(un->program->cx->arena, &loop->as.loop.body.stmts, store);
	return loop;
}

static bool is_rewritten(const struct unalias *un, const struct region *region)
{
	return region->buffer && member_for(un, region->buffer) != region->buffer;
}

/* Does a copy from here give something else than zeros past the ends? */
static bool has_outside(const struct region *region)
{
	return region->buffer->outside && !region->gather;
}

static struct stmt *rewrite_op(const struct unalias *un, struct stmt *stmt)
{
	struct op_copy *copy = &stmt->as.op.as.copy;
	struct op_fill *fill = &stmt->as.op.as.fill;
	const struct op_info *info = op_info(stmt->as.op.kind);
	struct stmt *loop = NULL;
	enum operand_role role;
	struct region *region;

	for (uint32_t i = 0; (region = op_region(&stmt->as.op, i, &role)); i++)
		for (uint32_t d = 0; region->buffer && d < region->buffer->rank; d++)
			region->min[d] = rewrite(un, region->min[d]);
	for (uint32_t i = 0; i < info->n_operands; i++)
		if (info->operands[i].role == ROLE_EXPR) {
			const struct expr **e =
				(const struct expr **)((char *)&stmt->as.op.as + info->operands[i].offset);
			*e = rewrite(un, *e);
		}
	if (stmt->as.op.kind == OP_copy &&
	    (is_rewritten(un, &copy->src) || is_rewritten(un, &copy->dst) || has_outside(&copy->src)))
		loop = as_loop(un, stmt, &copy->dst, &copy->src);
	else if (stmt->as.op.kind == OP_fill && is_rewritten(un, &fill->dst))
		loop = as_loop(un, stmt, &fill->dst, NULL);
	return loop ? loop : stmt;
}

static struct block rewrite_block(const struct unalias *un, const struct block *block);

/* A copy of the statement that speaks of one member of each family. Nesting is bounded by the
 * frontend. */
static struct stmt *rewrite_stmt(const struct unalias *un, const struct stmt *stmt)
{
	struct stmt *copy = arena_new(un->program->cx->arena, struct stmt);

	*copy = *stmt;
	switch (stmt->kind) {
	case STMT_OP:
		return rewrite_op(un, copy);
	case STMT_LOOP:
		for (uint32_t i = 0; i < stmt->as.loop.n_vars; i++)
			copy->as.loop.extents[i] = rewrite(un, stmt->as.loop.extents[i]);
		copy->as.loop.body = rewrite_block(un, &stmt->as.loop.body);
		break;
	case STMT_IF:
		copy->as.if_.condition = rewrite(un, stmt->as.if_.condition);
		copy->as.if_.then = rewrite_block(un, &stmt->as.if_.then);
		copy->as.if_.otherwise = rewrite_block(un, &stmt->as.if_.otherwise);
		break;
	case STMT_WHILE:
		copy->as.while_.condition = rewrite(un, stmt->as.while_.condition);
		copy->as.while_.body = rewrite_block(un, &stmt->as.while_.body);
		break;
	case STMT_LET:
		copy->as.let.value = rewrite(un, stmt->as.let.value);
		break;
	case STMT_STORE:
		rewrite_store(un, copy);
		break;
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		break;
	}
	return copy;
}

static struct block rewrite_block(const struct unalias *un, const struct block *block)
{
	struct block out = { { 0 } };

	for (uint32_t i = 0; i < block->stmts.n; i++)
		vec_push(un->program->cx->arena, &out.stmts, rewrite_stmt(un, block->stmts.p[i]));
	return out;
}

/* What the statements still name beside the member that stands for it. */
static void set_owners(const struct unalias *un, const struct launch *launch)
{
	for (uint32_t b = 0; b < un->program->buffers.n; b++) {
		struct buffer *buffer = un->program->buffers.p[b];
		const struct buffer *base = alias_root(buffer), *member = un->representative[base->id];

		if (!member)
			member = base;
		if (buffer->scope == SCOPE_SHARED && buffer->launch == launch->index)
			buffer->owner = member != buffer ? member : NULL;
	}
}

const struct launch *tile_unalias(struct tile_program *program, const struct launch *launch)
{
	struct unalias un = { .program = program, .pool = program->pool };
	struct launch *out;

	if (!choose_members(&un, launch))
		return launch;
	un.subst.on_load = rewrite_load;
	un.subst.user = &un;
	out = arena_new(program->cx->arena, struct launch);
	*out = *launch;
	out->body = rewrite_block(&un, &launch->body);
	set_owners(&un, launch);
	return out;
}
