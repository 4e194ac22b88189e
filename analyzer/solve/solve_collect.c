/*
 * From statements to variables and constraints.
 *
 * Every statement that moves elements becomes a space: the iterations of a parallel loop, the
 * elements of a copy, a fill or a reduction's source. A space's variable is its partition (which
 * thread runs which iteration); its uses say which element of which buffer an iteration touches.
 * Example:
 *
 *     for i, j in T.Parallel(8, 320): y[i, j] = x[i, j] * scale[i]     x, y: dims (i, j), scale:
 * dims (i)
 *
 * so that layout(scale) is the partition without j, whose threads become replicas. Spaces that
 * share a fragment are one component: their partitions depend on each other.
 */
#include "analyzer/solve/solve_internal.h"

#include "analyzer/layout/place_map.h"
#include "analyzer/tile/alias.h"

#include <assert.h>
#include <inttypes.h>

enum { MAX_BLOCK_DEPTH = 64, MAX_EXPR_DEPTH = 400, FAR_STEP = 1 << 20, MAX_PLACES = 1 << 16 };

struct constraint *solve_add_constraint(struct solver *solver, enum constraint_kind kind,
                                        const struct stmt *stmt, const struct buffer *buffer)
{
	struct constraint *constraint = arena_new(solver->arena, struct constraint);

	*constraint = (struct constraint){
		.id = solver->solution->constraints.n,
		.kind = kind,
		.stmt = stmt,
		.buffer = buffer,
		.span = stmt ? stmt->span : buffer->span,
	};
	vec_push(solver->arena, &solver->solution->constraints, constraint);
	return constraint;
}

/* ---- uses ---- */

static int64_t gcd(int64_t a, int64_t b)
{
	while (b != 0) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a < 0 ? -a : a;
}

/* Largest power of two that divides `n`, at most 16. */
static int64_t power_of_two_in(int64_t n)
{
	int64_t power = 1;

	while (power < 16 && n % (power * 2) == 0)
		power *= 2;
	return power;
}

/*
 * Element numbers of a mapped buffer, whose steps differ from place to place; what the space does
 * not change is taken as 0. NULL where there are too many, or data decides.
 */
static const int64_t *list_places(struct solver *solver, const struct space *space,
                                  const struct expr *offset)
{
	int64_t *values, *places, *along, n = 1, last = space->shape[space->rank - 1];
	const struct expr_code *code;
	struct lane_values lanes;

	for (uint32_t d = 0; d < space->rank; d++)
		n = n > MAX_PLACES ? n : n * space->shape[d];
	if (n > MAX_PLACES || !offset->is_index)
		return NULL;
	places = arena_array(solver->arena, int64_t, (size_t)n);
	values = arena_array(solver->arena, int64_t, expr_n_vars(solver->pool));
	along = arena_array(solver->arena, int64_t, (size_t)last);
	for (int64_t i = 0; i < last; i++)
		along[i] = i;
	code = expr_compile(solver->arena, offset);
	lanes = (struct lane_values){ space->vars[space->rank - 1]->id, along, (int)last };
	for (int64_t at = 0; at < n; at += last) {
		int64_t rest = at / last;

		for (uint32_t d = space->rank - 1; d-- > 0;) {
			values[space->vars[d]->id] = rest % space->shape[d];
			rest /= space->shape[d];
		}
		expr_run_lanes(code, values, &lanes, places + at);
	}
	return places;
}

/* Steps of the address in elements, and how wide an access may be. */
static void describe_memory(struct solver *solver, const struct space *space, struct use *use)
{
	const struct expr *offset = access_offset(solver->access, use->buffer, NULL, use->index);
	const struct expr *place[MAX_RANK], *extents[MAX_RANK];
	uint32_t last = place_index(solver->pool, use->buffer, use->index, place) - 1;
	const struct expr *rest = place[last], *remaining;
	int64_t bytes = dtype_bits(use->buffer->type) / 8;
	int64_t align;

	use->contiguous_dim = NO_DIM;
	for (uint32_t d = 0; d < space->rank; d++) {
		use->steps[d] = FAR_STEP;
		if (!expr_linear_in(solver->pool, offset, space->vars[d], &use->steps[d], &remaining))
			use->steps[d] = expr_uses(offset, space->vars[d]) ? FAR_STEP : 0;
		if (use->steps[d] == 1 && space->shape[d] > 1 && expr_uses(rest, space->vars[d]))
			use->contiguous_dim = (int)d;
	}
	if (use->buffer->map)
		use->places = list_places(solver, space, offset);
	use->max_vector = 1;
	if (use->contiguous_dim == NO_DIM || bytes == 0)
		return;
	for (uint32_t d = 0; d < space->rank; d++) {
		int64_t coefficient;

		if (!expr_linear_in(solver->pool, rest, space->vars[d], &coefficient, &remaining))
			return;
		align = coefficient;
		if ((int)d != use->contiguous_dim && coefficient % (16 / bytes > 0 ? 16 / bytes : 1) != 0)
			return;
		rest = remaining;
	}
	place_shape(solver->pool, use->buffer, extents);
	align = gcd(expr_divisor(rest), expr_divisor(extents[last]));
	use->max_vector = align == 0 ? 16 : power_of_two_in(align);
	while (use->max_vector > 1 && use->max_vector * bytes > 16)
		use->max_vector /= 2;
}

static struct use *add_use(struct solver *solver, struct space *space, const struct buffer *buffer,
                           const struct expr *const *index, struct span span)
{
	struct use use = { .buffer = buffer, .span = span };

	for (uint32_t d = 0; d < buffer->rank; d++)
		use.index[d] = index[d];
	for (uint32_t i = 0; i < space->uses.n; i++) {
		struct use *known = &space->uses.p[i];
		bool same = known->buffer == buffer;

		for (uint32_t d = 0; same && d < buffer->rank; d++)
			same = known->index[d] == index[d];
		if (same)
			return known;
	}
	if (buffer->scope == SCOPE_FRAGMENT)
		solve_describe_fragment(solver, space, &use);
	else if (buffer->scope == SCOPE_GLOBAL || buffer->scope == SCOPE_SHARED)
		describe_memory(solver, space, &use);
	vec_push(solver->arena, &space->uses, use);
	return &vec_last(&space->uses);
}

/* Every load in an expression becomes a use. Depth is bounded. */
static void collect_loads(struct solver *solver, struct space *space, const struct expr *e,
                          struct span span, int depth)
{
	if (!e || depth > MAX_EXPR_DEPTH)
		return;
	space->n_ops += e->kind != EXPR_VAR && e->kind != EXPR_INT && e->kind != EXPR_FLOAT;
	if (e->kind == EXPR_LOAD && e->as.buffer->scope != SCOPE_LOCAL &&
	    e->as.buffer->scope != SCOPE_VAR)
		add_use(solver, space, e->as.buffer, e->args, span)->is_load = true;
	for (uint32_t i = 0; i < e->n_args; i++)
		collect_loads(solver, space, e->args[i], span, depth + 1);
}

/* Do iterations that differ only in a dimension that the index leaves out store different values
 * into one element? */
static bool stores_many(const struct space *space, const struct use *use, const struct expr *value)
{
	for (uint32_t d = 0; d < space->rank; d++) {
		bool used = false;

		for (uint32_t k = 0; k < use->buffer->rank; k++)
			used |= expr_uses(use->index[k], space->vars[d]) &&
			        (!use->is_plain || use->dims[k].quotient == 1);
		if (!used && space->shape[d] > 1 && expr_uses(value, space->vars[d]))
			return true;
	}
	return false;
}

/* The conditions around a statement of a loop's body, innermost first. */
struct guard {
	const struct guard *outer;
	const struct expr *condition;
};

/* Do some of the iterations that differ only in a dimension that the index leaves out store, and
 * others not? */
static bool stores_some(const struct space *space, const struct use *use, const struct guard *guard)
{
	for (; guard; guard = guard->outer)
		if (stores_many(space, use, guard->condition))
			return true;
	return false;
}

/* An atomic takes no more elements than its instruction has room for. */
static void narrow_atomic(struct solver *solver, struct use *use)
{
	int64_t bytes = access_atomic_bytes(solver->target, use->buffer, use->atomic);
	int64_t most = bytes * 8 / (int64_t)dtype_bits(use->buffer->type);

	if (use->max_vector > most)
		use->max_vector = most > 0 ? most : 1;
}

static void collect_body(struct solver *solver, struct space *space, const struct block *block,
                         int depth, const struct guard *guard)
{
	for (uint32_t i = 0; i < block->stmts.n && depth < MAX_BLOCK_DEPTH; i++) {
		const struct stmt *stmt = block->stmts.p[i];
		struct guard inner = { guard, NULL };
		struct use *use;

		switch (stmt->kind) {
		case STMT_STORE:
			collect_loads(solver, space, stmt->as.store.value, stmt->span, 0);
			for (uint32_t d = 0; d < stmt->as.store.buffer->rank; d++)
				collect_loads(solver, space, stmt->as.store.index[d], stmt->span, 0);
			if (stmt->as.store.buffer->scope == SCOPE_LOCAL ||
			    stmt->as.store.buffer->scope == SCOPE_VAR) {
				space->keeps_order = true;
				break;
			}
			use = add_use(solver, space, stmt->as.store.buffer, stmt->as.store.index, stmt->span);
			use->is_store = true;
			use->is_conditional |= guard != NULL;
			use->is_partial |= stmt->as.store.buffer->is_reducer;
			use->is_update |= !use->is_partial && stores_many(space, use, stmt->as.store.value);
			use->is_selected |= !use->is_partial && stores_some(space, use, guard);
			use->atomic = stmt->as.store.atomic;
			if (use->atomic)
				narrow_atomic(solver, use);
			break;
		case STMT_LET:
			collect_loads(solver, space, stmt->as.let.value, stmt->span, 0);
			vec_push(solver->arena, &space->lets, stmt->as.let.var);
			break;
		case STMT_IF:
			collect_loads(solver, space, stmt->as.if_.condition, stmt->span, 0);
			inner.condition = stmt->as.if_.condition;
			collect_body(solver, space, &stmt->as.if_.then, depth + 1, &inner);
			collect_body(solver, space, &stmt->as.if_.otherwise, depth + 1, &inner);
			break;
		case STMT_WHILE:
			inner.condition = stmt->as.while_.condition;
			collect_body(solver, space, &stmt->as.while_.body, depth + 1, &inner);
			break;
		case STMT_LOOP:
			collect_body(solver, space, &stmt->as.loop.body, depth + 1, guard);
			break;
		case STMT_OP:
		case STMT_SYNC:
		case STMT_BREAK:
		case STMT_CONTINUE:
			break;
		}
	}
}

/* ---- spaces ---- */

static struct space *add_space(struct solver *solver, enum space_kind kind, const struct stmt *stmt,
                               int64_t weight)
{
	struct space *space = arena_new(solver->arena, struct space);

	space->id = solver->spaces.n;
	space->kind = kind;
	space->stmt = stmt;
	space->weight = weight;
	space->role = solver->role;
	space->reduced_dim = NO_DIM;
	vec_push(solver->arena, &solver->spaces, space);
	return space;
}

/* Does it touch memory that threads share? */
static bool touches_memory(const struct space *space)
{
	for (uint32_t u = 0; u < space->uses.n; u++)
		if (space->uses.p[u].buffer->scope != SCOPE_FRAGMENT)
			return true;
	return false;
}

static const char *space_text(const struct space *space)
{
	static const char *const texts[] = {
		[SPACE_PARALLEL] = "T.Parallel: an iteration's elements have one owner",
		[SPACE_COPY] = "T.copy: wide, coalesced accesses",
		[SPACE_FILL] = "T.fill: every owner sets its elements",
		[SPACE_REDUCE] = "T.reduce: the result lives in the threads of the reduced row",
		[SPACE_SCALAR] = "outside T.Parallel every thread runs the statement",
		[SPACE_FINALIZE] = "T.finalize_reducer: every thread with a partial result gets the result",
		[SPACE_SCAN] = "scan: source and result live alike",
	};

	if (space->kind == SPACE_COPY && !touches_memory(space))
		return "T.copy: an element has one owner on both sides";
	return texts[space->kind];
}

static void constrain_space(struct solver *solver, struct space *space)
{
	enum constraint_kind kind =
		space->kind == SPACE_REDUCE || space->kind == SPACE_FINALIZE || space->kind == SPACE_SCAN
			? CONSTRAINT_REDUCE
		: space->kind == SPACE_COPY ? CONSTRAINT_COPY
									: CONSTRAINT_LOOP;
	struct constraint *constraint = solve_add_constraint(
		solver, kind, space->stmt, space->uses.n > 0 ? space->uses.p[0].buffer : NULL);

	constraint->text = space_text(space);
	space->constraint = constraint;
}

static bool collect_parallel(struct solver *solver, const struct stmt *stmt, int64_t weight)
{
	const struct loop *loop = &stmt->as.loop;
	struct space *space = add_space(solver, SPACE_PARALLEL, stmt, weight);

	space->rank = loop->n_vars;
	for (uint32_t d = 0; d < loop->n_vars; d++) {
		space->vars[d] = loop->vars[d];
		if (!expr_is_int(loop->extents[d], &space->shape[d]) || space->shape[d] < 1) {
			diag_report(&solver->cx->diags, DIAG_E0408, stmt->span,
			            "this T.Parallel loop has no constant extents");
			return false;
		}
	}
	collect_body(solver, space, &loop->body, 0, NULL);
	constrain_space(solver, space);
	return true;
}

static void collect_copy(struct solver *solver, const struct stmt *stmt, const struct op_copy *copy,
                         bool is_fill, int64_t weight)
{
	struct space *space;
	struct copy_space box;

	if (!access_copy_space(solver->access, copy, &box))
		BUG("a copy with different extents passed the verifier");
	space = add_space(solver, is_fill ? SPACE_FILL : SPACE_COPY, stmt, weight);
	space->rank = box.rank;
	for (uint32_t d = 0; d < box.rank; d++) {
		space->shape[d] = box.shape[d];
		space->vars[d] = box.vars[d];
	}
	if (!is_fill && copy->src.buffer->scope != SCOPE_LOCAL && copy->src.buffer->scope != SCOPE_VAR)
		add_use(solver, space, copy->src.buffer, box.src_index, copy->src.span)->is_load = true;
	if (copy->dst.buffer->scope != SCOPE_LOCAL && copy->dst.buffer->scope != SCOPE_VAR)
		add_use(solver, space, copy->dst.buffer, box.dst_index, copy->dst.span)->is_store = true;
	constrain_space(solver, space);
}

/* An iteration for each element of a fragment. */
static void space_over(struct solver *solver, struct space *space, const struct buffer *buffer,
                       const struct expr **index)
{
	space->rank = buffer->rank;
	for (uint32_t d = 0; d < buffer->rank; d++) {
		struct var *var =
			expr_new_var(solver->pool, VAR_LOOP, intern_text(solver->cx->names, "e"), DTYPE_I32);

		space->shape[d] = buffer_extent(buffer, d);
		var->min = 0;
		var->max = space->shape[d] - 1;
		space->vars[d] = var;
		index[d] = expr_of_var(solver->pool, var);
	}
}

static bool collect_reduce(struct solver *solver, const struct stmt *stmt, int64_t weight)
{
	const struct op_reduce *reduce = &stmt->as.op.as.reduce;
	const struct buffer *src = reduce->src.buffer, *dst = reduce->dst.buffer;
	struct space *space = add_space(solver, SPACE_REDUCE, stmt, weight);
	const struct expr *index[MAX_RANK], *result[MAX_RANK];
	struct use *use;
	uint32_t n = 0;

	if (src->scope != SCOPE_FRAGMENT || dst->scope != SCOPE_FRAGMENT) {
		diag_report(
			&solver->cx->diags, DIAG_E0408, stmt->span,
			"T.reduce works on fragments: %s is in %s memory",
			sym_text(solver->cx->names, src->scope != SCOPE_FRAGMENT ? src->name : dst->name),
			scope_text(src->scope != SCOPE_FRAGMENT ? src->scope : dst->scope));
		diag_help(&solver->cx->diags, "copy it to or from a fragment of the same shape");
		return false;
	}
	space->reduced_dim = reduce->dim;
	space_over(solver, space, src, index);
	for (uint32_t d = 0; d < src->rank; d++) {
		if (reduce->src.extent[d] != space->shape[d]) {
			diag_report(&solver->cx->diags, DIAG_E0408, stmt->span,
			            "T.reduce of a part of %s is not supported yet",
			            sym_text(solver->cx->names, src->name));
			return false;
		}
		if ((int64_t)d != reduce->dim)
			result[n++] = index[d];
		else if (dst->rank == src->rank || src->rank == 1)
			result[n++] = expr_int(solver->pool, 0);
	}
	assert(n == dst->rank);
	add_use(solver, space, src, index, reduce->src.span)->is_load = true;
	use = add_use(solver, space, dst, result, reduce->dst.span);
	use->is_store = true;
	use->is_load = !reduce->clear;
	constrain_space(solver, space);
	return true;
}

static bool collect_finalize(struct solver *solver, const struct stmt *stmt, int64_t weight)
{
	const struct region *dst = &stmt->as.op.as.finalize_reducer.dst;
	struct space *space = add_space(solver, SPACE_FINALIZE, stmt, weight);
	const struct expr *index[MAX_RANK];
	struct use *use;

	if (dst->buffer->rank == MAX_RANK)
		BUG("a reducer of %d dimensions", MAX_RANK);
	space_over(solver, space, dst->buffer, index);
	use = add_use(solver, space, dst->buffer, index, dst->span);
	use->is_load = use->is_store = true;
	constrain_space(solver, space);
	return true;
}

/* Source and result are whole fragments: tile_stage saw to it. */
static bool collect_scan(struct solver *solver, const struct stmt *stmt, int64_t weight)
{
	const struct op_scan *scan = &stmt->as.op.as.scan;
	struct space *space;
	const struct expr *index[MAX_RANK];

	if (scan->src.buffer->scope != SCOPE_FRAGMENT || scan->dst.buffer->scope != SCOPE_FRAGMENT) {
		diag_report(&solver->cx->diags, DIAG_E0408, stmt->span,
		            "a scan of an array that each thread has for itself is not supported yet");
		return false;
	}
	space = add_space(solver, SPACE_SCAN, stmt, weight);
	space->reduced_dim = scan->dim;
	space_over(solver, space, scan->src.buffer, index);
	add_use(solver, space, scan->src.buffer, index, scan->src.span)->is_load = true;
	add_use(solver, space, scan->dst.buffer, index, scan->dst.span)->is_store = true;
	constrain_space(solver, space);
	return true;
}

/* ---- the walk ---- */

static void add_fragment_loads(struct solver *solver, struct space *space, const struct expr *e,
                               int depth)
{
	if (!e || depth > MAX_EXPR_DEPTH)
		return;
	if (e->kind == EXPR_LOAD)
		solver->by_element[alias_owner(e->as.buffer)->id] = true;
	if (e->kind == EXPR_LOAD && e->as.buffer->scope == SCOPE_FRAGMENT)
		add_use(solver, space, e->as.buffer, e->args, space->stmt->span)->is_load = true;
	for (uint32_t i = 0; i < e->n_args; i++)
		add_fragment_loads(solver, space, e->args[i], depth + 1);
}

/*
 * Outside parallel loops every thread runs the statement: of a fragment's element that it reads,
 * every thread needs its own copy; what it stores, all owners store. Memory and scalars are no
 * matter of layouts here.
 */
static void collect_scalar(struct solver *solver, const struct stmt *stmt, int64_t weight,
                           const struct expr *value)
{
	struct space space = { .stmt = stmt }, *kept;
	bool stores = stmt->kind == STMT_STORE && stmt->as.store.buffer->scope == SCOPE_FRAGMENT;
	struct var *var;

	if (stmt->kind == STMT_STORE)
		solver->by_element[alias_owner(stmt->as.store.buffer)->id] = true;
	add_fragment_loads(solver, &space, value, 0);
	for (uint32_t d = 0; stmt->kind == STMT_STORE && d < stmt->as.store.buffer->rank; d++)
		add_fragment_loads(solver, &space, stmt->as.store.index[d], 0);
	if (space.uses.n == 0 && !stores)
		return;
	kept = add_space(solver, SPACE_SCALAR, stmt, weight);
	kept->rank = 1;
	kept->shape[0] = 1;
	kept->uses = space.uses;
	var = expr_new_var(solver->pool, VAR_LOOP, intern_text(solver->cx->names, "e"), DTYPE_I32);
	var->min = var->max = 0;
	kept->vars[0] = var;
	if (stores)
		add_use(solver, kept, stmt->as.store.buffer, stmt->as.store.index, stmt->span)->is_store =
			true;
	constrain_space(solver, kept);
}

static bool collect_block(struct solver *solver, const struct block *block, int64_t weight,
                          int depth);

/* Positions and scalar operands that load elements of fragments. */
static void collect_op_scalars(struct solver *solver, const struct stmt *stmt, int64_t weight)
{
	const struct op_info *info = op_info(stmt->as.op.kind);

	for (uint32_t i = 0; i < info->n_operands; i++) {
		const void *operand = (const char *)&stmt->as.op.as + info->operands[i].offset;
		const struct region *region = operand;

		if (info->operands[i].role == ROLE_EXPR)
			collect_scalar(solver, stmt, weight, *(const struct expr *const *)operand);
		else if (info->operands[i].role != ROLE_ATTR && region->buffer)
			for (uint32_t d = 0; d < region->buffer->rank; d++)
				collect_scalar(solver, stmt, weight, region->min[d]);
	}
}

static bool collect_op(struct solver *solver, const struct stmt *stmt, int64_t weight)
{
	const struct op *op = &stmt->as.op;
	struct op_copy self;

	collect_op_scalars(solver, stmt, weight);
	switch (op->kind) {
	case OP_copy:
		collect_copy(solver, stmt, &op->as.copy, false, weight);
		return true;
	case OP_fill:
		self = (struct op_copy){ .src = op->as.fill.dst, .dst = op->as.fill.dst };
		collect_copy(solver, stmt, &self, true, weight);
		return true;
	case OP_wgmma_gemm:
		if (!solver->target->has_wgmma)
			return solve_need_hopper(solver, stmt);
		return solve_gemm(solver, stmt, weight);
	case OP_tma_copy:
		solve_tma(solver, stmt);
		return true;
	case OP_gemm:
		return solve_gemm(solver, stmt, weight);
	case OP_reduce:
		return collect_reduce(solver, stmt, weight);
	case OP_finalize_reducer:
		return collect_finalize(solver, stmt, weight);
	case OP_scan:
		return collect_scan(solver, stmt, weight);
	case OP_barrier_init:
	case OP_barrier_arrive:
	case OP_barrier_expect_tx:
	case OP_barrier_wait:
	case OP_evaluate:
		/* Nothing in them has a layout that could be chosen. */
		return true;
	CASES_OF_STAGED_OPS:
	case N_OP_KINDS:
		break;
	}
	return true;
}

/* Weights stay in 32 bits; loops that never run count once. */
static int64_t times(int64_t weight, int64_t trips)
{
	return trips < 1 ? weight : weight > INT32_MAX / trips ? INT32_MAX : weight * trips;
}

/* A trial runs on some of the statements; blocks around them stay. */
static bool is_left_out(const struct solver *solver, const struct stmt *stmt)
{
	bool is_block = stmt->kind == STMT_IF || stmt->kind == STMT_WHILE ||
	                (stmt->kind == STMT_LOOP && stmt->as.loop.kind != LOOP_PARALLEL);

	return solver->trial && solver->trial->only && !is_block && !solver->trial->only[stmt->id];
}

/* A branch runs in a role of its own when whole warps take it. */
static bool collect_branch(struct solver *solver, const struct stmt *stmt, bool holds,
                           int64_t weight, int depth)
{
	struct branch_taken branch = { stmt->as.if_.condition, holds };
	struct thread_range range = solver->roles.p[solver->role]->range;
	uint32_t before = solver->role;
	bool ok;

	if (thread_range_narrow(solver->program, solver->launch, &branch, &range))
		solve_enter_role(solver, solve_role(solver, range));
	ok = collect_block(solver, holds ? &stmt->as.if_.then : &stmt->as.if_.otherwise, weight,
	                   depth + 1);
	solve_enter_role(solver, before);
	return ok;
}

static bool collect_stmt(struct solver *solver, const struct stmt *stmt, int64_t weight, int depth)
{
	int64_t trips;

	if (is_left_out(solver, stmt))
		return true;
	switch (stmt->kind) {
	case STMT_OP:
		return collect_op(solver, stmt, weight);
	case STMT_LOOP:
		if (stmt->as.loop.kind == LOOP_PARALLEL)
			return collect_parallel(solver, stmt, weight);
		collect_scalar(solver, stmt, weight, stmt->as.loop.extents[0]);
		if (!expr_is_int(stmt->as.loop.extents[0], &trips))
			trips = UNKNOWN_TRIPS;
		return collect_block(solver, &stmt->as.loop.body, times(weight, trips), depth + 1);
	case STMT_IF:
		collect_scalar(solver, stmt, weight, stmt->as.if_.condition);
		return collect_branch(solver, stmt, true, weight, depth) &&
		       collect_branch(solver, stmt, false, weight, depth);
	case STMT_WHILE:
		collect_scalar(solver, stmt, times(weight, UNKNOWN_TRIPS), stmt->as.while_.condition);
		return collect_block(solver, &stmt->as.while_.body, times(weight, UNKNOWN_TRIPS),
		                     depth + 1);
	case STMT_LET:
		collect_scalar(solver, stmt, weight, stmt->as.let.value);
		break;
	case STMT_STORE:
		collect_scalar(solver, stmt, weight, stmt->as.store.value);
		break;
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		break;
	}
	return true;
}

/* An iteration that stores to a fragment beyond its extent. */
static bool check_extents(struct solver *solver, const struct space *space, const struct use *use)
{
	for (uint32_t d = 0; d < use->buffer->rank; d++) {
		int64_t extent = buffer_extent(use->buffer, d) * use->dims[d].quotient;
		int source = use->dims[d].source_dim;

		if (source < 0 || space->shape[source] <= extent)
			continue;
		diag_report(&solver->cx->diags, DIAG_E0408, use->span,
		            "%s has %" PRId64 " elements in dimension %" PRIu32
		            ", this loop stores to element %" PRId64,
		            sym_text(solver->cx->names, use->buffer->name), buffer_extent(use->buffer, d),
		            d, (space->shape[source] - 1) / use->dims[d].quotient);
		diag_note(&solver->cx->diags, use->buffer->span, "%s is allocated here",
		          sym_text(solver->cx->names, use->buffer->name));
		return false;
	}
	return true;
}

/* What no space can have: elements below a byte in memory, stores outside of a fragment. */
static bool check_uses(struct solver *solver)
{
	bool ok = true;

	for (uint32_t s = 0; s < solver->spaces.n; s++)
		for (uint32_t u = 0; u < solver->spaces.p[s]->uses.n; u++) {
			const struct use *use = &solver->spaces.p[s]->uses.p[u];

			if (use->buffer->scope == SCOPE_FRAGMENT) {
				if (use->is_plain && use->is_store && !use->is_conditional)
					ok &= check_extents(solver, solver->spaces.p[s], use);
			} else if (dtype_bits(use->buffer->type) % 8 != 0) {
				diag_report(&solver->cx->diags, DIAG_E0408, use->span,
				            "%s: elements of %" PRIu32 " bits in memory are not supported yet",
				            sym_text(solver->cx->names, use->buffer->name),
				            dtype_bits(use->buffer->type));
				ok = false;
			}
		}
	return ok;
}

static bool collect_block(struct solver *solver, const struct block *block, int64_t weight,
                          int depth)
{
	bool ok = true;

	for (uint32_t i = 0; i < block->stmts.n && depth < MAX_BLOCK_DEPTH; i++)
		ok &= collect_stmt(solver, block->stmts.p[i], weight, depth);
	return ok;
}

/* ---- components ---- */

static uint32_t find_root(uint32_t *parent, uint32_t i)
{
	while (parent[i] != i) {
		parent[i] = parent[parent[i]];
		i = parent[i];
	}
	return i;
}

/* Union-find over spaces and fragments; components in order of their first space. */
static void make_components(struct solver *solver)
{
	uint32_t n_buffers = solver->program->buffers.n, n = n_buffers + solver->spaces.n;
	uint32_t *parent = arena_array(solver->arena, uint32_t, n);
	struct component **of_root = arena_array(solver->arena, struct component *, n);

	for (uint32_t i = 0; i < n; i++)
		parent[i] = i;
	for (uint32_t s = 0; s < solver->spaces.n; s++)
		for (uint32_t u = 0; u < solver->spaces.p[s]->uses.n; u++)
			if (solver->spaces.p[s]->uses.p[u].buffer->scope == SCOPE_FRAGMENT)
				parent[find_root(parent, solver->spaces.p[s]->uses.p[u].buffer->id)] =
					find_root(parent, n_buffers + s);
	for (uint32_t s = 0; s < solver->spaces.n; s++) {
		uint32_t root = find_root(parent, n_buffers + s);

		if (!of_root[root]) {
			of_root[root] = arena_new(solver->arena, struct component);
			of_root[root]->id = solver->components.n;
			vec_push(solver->arena, &solver->components, of_root[root]);
		}
		vec_push(solver->arena, &of_root[root]->spaces, solver->spaces.p[s]);
	}
	for (uint32_t b = 0; b < n_buffers; b++)
		if (of_root[find_root(parent, b)])
			vec_push(solver->arena, &of_root[find_root(parent, b)]->fragments,
			         solver->program->buffers.p[b]);
	for (uint32_t c = 0; c < solver->components.n; c++)
		for (uint32_t s = 0; s < solver->components.p[c]->spaces.n; s++)
			solver->components.p[c]->spaces.p[s]->component = c;
}

/* T.annotate_layout: every element needs a place of its own, in threads that the block has. */
static bool check_annotation(struct solver *solver, const struct buffer *buffer,
                             const struct layout *layout)
{
	const char *name = sym_text(solver->cx->names, buffer->name);
	int64_t first[MAX_RANK + 1], second[MAX_RANK + 1];

	if (!layout_injective(layout, first, second)) {
		diag_report(&solver->cx->diags, DIAG_E0410, buffer->span,
		            "the layout that T.annotate_layout gives %s puts two elements in one place, "
		            "the second at index %" PRId64 " of the first dimension and %" PRId64
		            " of the last",
		            name, second[0], second[buffer->rank - 1]);
		return false;
	}
	if (buffer->scope == SCOPE_FRAGMENT && layout->n_threads > solver->n_threads) {
		diag_report(&solver->cx->diags, DIAG_E0410, buffer->span,
		            "the layout that T.annotate_layout gives %s needs %" PRId64
		            " threads, the block has %" PRId64,
		            name, layout->n_threads, solver->n_threads);
		return false;
	}
	return true;
}

static bool collect_annotations(struct solver *solver)
{
	bool ok = true;

	for (uint32_t b = 0; b < solver->program->buffers.n; b++) {
		const struct buffer *buffer = solver->program->buffers.p[b];
		const struct layout *placed =
			buffer->map ? place_layout(solver->arena, solver->pool, buffer) : NULL;
		const struct layout *annotation = buffer->annotation;
		struct constraint *constraint;

		ok &= !placed || check_annotation(solver, buffer, placed);
		if (solver->trial && solver->trial->annotated == buffer)
			annotation = solver->trial->layout;
		if (!annotation || buffer->launch != solver->launch->index ||
		    (buffer->scope == SCOPE_FRAGMENT) != (annotation->kind == LAYOUT_FRAGMENT))
			continue;
		ok &= check_annotation(solver, buffer, annotation);
		constraint = solve_add_constraint(solver, CONSTRAINT_ANNOTATION, NULL, buffer);
		constraint->layout = annotation;
		constraint->text = arena_printf(solver->arena, "T.annotate_layout gives %s this layout",
		                                sym_text(solver->cx->names, buffer->name));
		solver->annotated[b] = constraint;
		if (buffer->scope == SCOPE_FRAGMENT)
			solver->pinned_by[b] = constraint;
	}
	return ok && solve_annotated_views(solver);
}

bool solve_collect(struct solver *solver)
{
	bool takes_tmas;

	solve_find_views(solver);
	if (!solve_supported(solver) || !collect_annotations(solver) || !solve_reducers(solver))
		return false;
	takes_tmas = solve_find_tmas(solver);
	if (!collect_block(solver, &solver->launch->body, 1, 0) || !takes_tmas || !check_uses(solver))
		return false;
	solve_choose_homes(solver);
	make_components(solver);
	if (!solve_assign_roles(solver))
		return false;
	solve_find_touches(solver);
	solve_measure_latency(solver);
	return true;
}
