/*
 * coverage, injectivity and owner, by running through the elements.
 *
 * coverage     each iteration of a partition has a thread and a slot whose inverse gives the
 * iteration back under its guard, so that the thread really executes it; each gemm's warps tile its
 * accumulator injectivity  no two elements of a buffer (nor two replicas of one) share a place
 * owner        whoever writes a fragment element is a thread that the layout names for it, and
 * every such thread writes it
 */
#include "analyzer/check/check_internal.h"

#include <string.h>

/* Next index in row-major order; false after the last. */
static bool next_index(int64_t *index, const int64_t *shape, uint32_t rank)
{
	for (uint32_t d = rank; d-- > 0;) {
		if (++index[d] < shape[d])
			return true;
		index[d] = 0;
	}
	return false;
}

static int64_t n_places(const struct layout *layout)
{
	int64_t n = layout->n_replicas;

	for (uint32_t d = 0; d < layout->rank; d++)
		if (__builtin_mul_overflow(n, layout->shape[d], &n))
			return INT64_MAX;
	return n;
}

/* ---- coverage ---- */

/* The compiled inverse of a partition. */
struct inverse {
	const struct layout *layout;
	struct expr_code *index[MAX_RANK], *guard;
	uint32_t thread_id, slot_id;
	int64_t *values;
};

static bool inverse_open(struct check *check, const struct layout *layout, struct inverse *out)
{
	struct expr_pool *pool = check->pool;
	struct var *slot =
		expr_new_var(pool, VAR_LOOP, intern_text(check->cx->names, "slot"), DTYPE_I32);
	const struct expr *tid = expr_of_var(pool, check->warp->tid), *index[MAX_RANK], *guard = NULL;

	slot->min = 0;
	slot->max = layout->n_slots - 1;
	if (layout->n_slots == 1)
		slot->max = 1; /* keeps the variable in the expressions */
	if (!layout_inverse_expr(pool, layout, (struct thread_slot){ tid, expr_of_var(pool, slot) },
	                         index, &guard))
		return false;
	*out = (struct inverse){ .layout = layout,
		                     .thread_id = check->warp->tid->id,
		                     .slot_id = slot->id };
	for (uint32_t d = 0; d < layout->rank; d++)
		out->index[d] = expr_compile(check->cx->arena, index[d]);
	out->guard = guard ? expr_compile(check->cx->arena, guard) : NULL;
	out->values = arena_array(check->cx->arena, int64_t, expr_n_vars(pool));
	return true;
}

/*
 * Structure: the digits of each dimension cover it without gaps, and those of each axis do not
 * overlap. Then every index (and replica) has a place of its own; XOR terms are their own inverse
 * and change nothing.
 */
static bool is_sound(const struct layout *layout)
{
	int64_t covered[MAX_RANK + 1] = { 0 };

	if (layout->table || layout->table_threads)
		return false;
	for (uint32_t d = 0; d <= MAX_RANK; d++)
		covered[d] = 1;
	for (bool moved = true; moved;) {
		moved = false;
		for (uint32_t i = 0; i < layout->n_digits; i++)
			if (layout->digits[i].div == covered[layout->digits[i].dim] &&
			    layout->digits[i].extent > 1) {
				covered[layout->digits[i].dim] *= layout->digits[i].extent;
				moved = true;
			}
	}
	for (uint32_t d = 0; d < layout->rank; d++)
		if (covered[d] < layout->shape[d])
			return false;
	if (covered[DIM_REPLICA] < layout->n_replicas)
		return false;
	for (uint32_t i = 0; i < layout->n_digits; i++)
		for (uint32_t j = 0; j < layout->n_digits; j++) {
			const struct digit *a = &layout->digits[i], *b = &layout->digits[j];
			if (i != j && a->axis == b->axis &&
			    (a->stride == b->stride ||
			     (a->stride < b->stride && a->stride * a->extent > b->stride)))
				return false;
		}
	return true;
}

/* The inverse, put into the layout, gives thread and slot back: shown by simplification alone. */
static bool inverse_is_shown(struct check *check, const struct layout *layout)
{
	struct expr_pool *pool = check->pool;
	struct var *slot_var =
		expr_new_var(pool, VAR_LOOP, intern_text(check->cx->names, "slot"), DTYPE_I32);
	struct var *thread_var =
		expr_new_var(pool, VAR_THREAD, intern_text(check->cx->names, "thread"), DTYPE_I32);
	const struct expr *thread = expr_of_var(pool, thread_var), *slot = expr_of_var(pool, slot_var),
					  *index[MAX_RANK], *guard = NULL;

	thread_var->min = slot_var->min = 0;
	thread_var->max = layout->n_threads - 1;
	slot_var->max = layout->n_slots - 1;
	if (!layout_inverse_expr(pool, layout, (struct thread_slot){ thread, slot }, index, &guard))
		return false;
	const struct expr *replica = layout_replica_expr(pool, layout, thread);
	return layout_axis_expr(pool, layout, AXIS_THREAD, index, replica) ==
	           (layout->n_threads == 1 ? expr_int(pool, 0) : thread) &&
	       layout_axis_expr(pool, layout, AXIS_SLOT, index, replica) ==
	           (layout->n_slots == 1 ? expr_int(pool, 0) : slot);
}

/* Does the thread at this place execute this iteration? */
static bool executes(const struct inverse *inverse, struct place place, const int64_t *index)
{
	inverse->values[inverse->thread_id] = place.thread;
	inverse->values[inverse->slot_id] = place.slot;
	if (inverse->guard && !expr_run(inverse->guard, inverse->values))
		return false;
	for (uint32_t d = 0; d < inverse->layout->rank; d++)
		if (expr_run(inverse->index[d], inverse->values) != index[d])
			return false;
	return true;
}

static void check_partition(struct check *check, const struct stmt *stmt,
                            const struct layout *layout)
{
	int64_t index[MAX_RANK] = { 0 };
	struct inverse inverse;

	if (layout->n_threads <= check->warp->n_threads && is_sound(layout) &&
	    inverse_is_shown(check, layout)) {
		check->n_elems_seen[PROPERTY_COVERAGE] += n_places(layout);
		return;
	}
	if (n_places(layout) > CHECK_MAX_ELEMS) {
		check_found(check,
		            (struct finding){ PROPERTY_COVERAGE, PROPERTY_NOT_PROVED, stmt->span, "" },
		            "the partition has more than %d elements", CHECK_MAX_ELEMS);
		return;
	}
	if (!inverse_open(check, layout, &inverse)) {
		check_found(check, (struct finding){ PROPERTY_COVERAGE, PROPERTY_VIOLATED, stmt->span, "" },
		            "the partition has no inverse");
		return;
	}
	do {
		for (int64_t r = 0; r < layout->n_replicas; r++) {
			struct place place = layout_at(layout, index, r);
			check->n_elems_seen[PROPERTY_COVERAGE]++;
			if (place.thread < check->warp->n_threads && place.slot < layout->n_slots &&
			    executes(&inverse, place, index))
				continue;
			check_found(check,
			            (struct finding){ PROPERTY_COVERAGE, PROPERTY_VIOLATED, stmt->span, "" },
			            "iteration %s is executed by no thread",
			            check_index_text(check, index, layout->rank));
			return;
		}
	} while (next_index(index, layout->shape, layout->rank));
}

static void check_gemm_coverage(struct check *check, const struct stmt *stmt,
                                const struct gemm_plan *plan)
{
	const struct mma_shape_info *info = mma_shape_info(plan->shape);
	int64_t rows = plan->wgmma_n ? WGMMA_M / WGMMA_WARPS : info->m;
	int64_t columns = plan->wgmma_n ? plan->wgmma_n : info->n;
	bool k_fits = gemm_k_rest(plan) == 0 || !plan->wgmma_n;

	if (plan->m % (plan->warps_m * rows) == 0 && plan->n % (plan->warps_n * columns) == 0 &&
	    k_fits &&
	    plan->warps_m * plan->warps_n * 32 == check->solution->plans[stmt->id].threads.n &&
	    (!plan->wgmma_n || plan->warps_m % WGMMA_WARPS == 0))
		return;
	check_found(check, (struct finding){ PROPERTY_COVERAGE, PROPERTY_VIOLATED, stmt->span, "" },
	            "%lld x %lld warps of %s do not tile %lld x %lld x %lld", (long long)plan->warps_m,
	            (long long)plan->warps_n, plan->wgmma_n ? "wgmma" : info->text, (long long)plan->m,
	            (long long)plan->n, (long long)plan->k);
}

/* ---- owner ---- */

/* An iteration space that touches fragment elements. */
struct touch {
	const struct stmt *stmt, *planned; /* planned: whose plan it is, the loop around stmt */
	const struct loop_plan *loop;
	const struct var *const *vars;
	const struct buffer *buffer;
	const struct expr *const *index;
};

/* Where the statement finds the fragment: after its conversion, if it has one. */
static const struct layout *layout_seen(const struct check *check, const struct stmt *stmt,
                                        const struct buffer *buffer)
{
	const struct layout *converted = plan_layout(&check->solution->plans[stmt->id], buffer);

	return converted ? converted : check->solution->buffers[buffer->id].layout;
}

static bool owns(const struct layout *layout, const int64_t *element, int64_t thread)
{
	for (int64_t r = 0; r < layout->n_replicas; r++)
		if (layout_at(layout, element, r).thread == thread)
			return true;
	return false;
}

/* The iteration is the element, and both live alike. */
static bool is_same(const struct touch *touch, const struct layout *layout)
{
	if (layout->rank != touch->loop->layout->rank)
		return false;
	for (uint32_t d = 0; d < layout->rank; d++)
		if (touch->index[d]->kind != EXPR_VAR || touch->index[d]->as.var != touch->vars[d])
			return false;
	return layout == touch->loop->layout || layout_equal(layout, touch->loop->layout, NULL);
}

/* The executing thread of each iteration owns the element; for stores every owner executes it. */
static void check_touch(struct check *check, const struct touch *touch, bool is_store)
{
	const struct layout *layout = layout_seen(check, touch->planned, touch->buffer),
						*loop = touch->loop->layout;
	int64_t *values = arena_array(check->cx->arena, int64_t, expr_n_vars(check->pool)),
			at[MAX_RANK] = { 0 }, element[MAX_RANK];
	const char *name = sym_text(check->cx->names, touch->buffer->name);

	if (layout && is_same(touch, layout)) {
		check->n_elems_seen[PROPERTY_OWNER] += n_places(loop);
		return;
	}
	if (!layout || n_places(loop) > CHECK_MAX_ELEMS / layout->n_replicas) {
		check_found(
			check, (struct finding){ PROPERTY_OWNER, PROPERTY_NOT_PROVED, touch->stmt->span, name },
			"more than %d pairs", CHECK_MAX_ELEMS);
		return;
	}
	do {
		for (uint32_t d = 0; d < loop->rank; d++)
			values[touch->vars[d]->id] = at[d];
		for (uint32_t d = 0; d < touch->buffer->rank; d++)
			element[d] = expr_eval_int(touch->index[d], values);
		for (int64_t r = 0; r < loop->n_replicas; r++) {
			int64_t thread = layout_at(loop, at, r).thread;
			check->n_elems_seen[PROPERTY_OWNER]++;
			if (owns(layout, element, thread))
				continue;
			check_found(
				check,
				(struct finding){ PROPERTY_OWNER, PROPERTY_VIOLATED, touch->stmt->span, name },
				"thread %lld %s element %s, which thread %lld owns", (long long)thread,
				is_store ? "writes" : "reads",
				check_index_text(check, element, touch->buffer->rank),
				(long long)layout_at(layout, element, 0).thread);
			return;
		}
		/* Of a reducer each owner holds what it brought itself. */
		for (int64_t r = 0; is_store && !touch->buffer->is_reducer && r < layout->n_replicas; r++) {
			int64_t thread = layout_at(layout, element, r).thread;
			if (owns(loop, at, thread))
				continue;
			check_found(
				check,
				(struct finding){ PROPERTY_OWNER, PROPERTY_VIOLATED, touch->stmt->span, name },
				"thread %lld owns a copy of element %s and does not write it", (long long)thread,
				check_index_text(check, element, touch->buffer->rank));
			return;
		}
	} while (next_index(at, loop->shape, loop->rank));
}

/* Index expressions that hold only the loop's own variables and constants. */
static bool is_plain(const struct touch *touch)
{
	int64_t min, max;

	for (uint32_t d = 0; d < touch->buffer->rank; d++)
		if (!touch->index[d]->is_index || !expr_range(touch->index[d], &min, &max))
			return false;
	return true;
}

struct loads {
	struct check *check;
	struct touch touch;
};

static void visit_load(void *user, const struct expr *e)
{
	struct loads *loads = user;

	if (e->kind != EXPR_LOAD || e->as.buffer->scope != SCOPE_FRAGMENT)
		return;
	loads->touch.buffer = e->as.buffer;
	loads->touch.index = e->args;
	if (is_plain(&loads->touch))
		check_touch(loads->check, &loads->touch, false);
}

/* Stores and loads of a parallel loop's body. */
static void check_body(struct check *check, const struct stmt *loop, const struct loop_plan *plan,
                       const struct block *body)
{
	struct loads loads = { check, { loop, loop, plan, loop->as.loop.vars, NULL, NULL } };

	for (uint32_t i = 0; i < body->stmts.n; i++) {
		const struct stmt *stmt = body->stmts.p[i];
		loads.touch.stmt = stmt;
		if (stmt->kind == STMT_IF) {
			check_body(check, loop, plan, &stmt->as.if_.then);
			check_body(check, loop, plan, &stmt->as.if_.otherwise);
		}
		if (stmt->kind != STMT_STORE)
			continue;
		expr_walk(stmt->as.store.value, visit_load, &loads);
		struct touch touch = {
			stmt, loop, plan, loop->as.loop.vars, stmt->as.store.buffer, stmt->as.store.index
		};
		if (touch.buffer->scope == SCOPE_FRAGMENT && is_plain(&touch))
			check_touch(check, &touch, true);
	}
}

static void check_copy(struct check *check, const struct stmt *stmt, const struct copy_plan *plan)
{
	const struct op_copy *copy = &stmt->as.op.as.copy;
	struct access_space space = { .cx = check->cx,
		                          .pool = check->pool,
		                          .tid = check->warp->tid,
		                          .n_threads = check->warp->n_threads };
	struct copy_space indices;

	if (copy->src.buffer->scope != SCOPE_FRAGMENT && copy->dst.buffer->scope != SCOPE_FRAGMENT)
		return;
	if (!access_copy_space(&space, copy, &indices))
		return;
	struct touch src = {
		stmt, stmt, &plan->loop, indices.vars, copy->src.buffer, indices.src_index
	};
	struct touch dst = {
		stmt, stmt, &plan->loop, indices.vars, copy->dst.buffer, indices.dst_index
	};
	if (src.buffer->scope == SCOPE_FRAGMENT && is_plain(&src))
		check_touch(check, &src, false);
	if (dst.buffer->scope == SCOPE_FRAGMENT && is_plain(&dst))
		check_touch(check, &dst, true);
}

/*
 * Which warp along M holds row i of the tile (of A and D), and as which of its rows. mma: a warp's
 * rows are consecutive; wgmma: 16 rows of every block of 64 of its warpgroup (PTX ISA, accumulator
 * fragment of wgmma.m64nN: row = 16 warp + lane / 4 + 8 (register / 2 % 2)).
 */
struct warp_row {
	int64_t warp, row;
};

static struct warp_row warp_row_of(const struct gemm_plan *plan, int64_t i)
{
	int64_t rows = plan->m / plan->warps_m, in_group = i % (4 * rows);

	if (!plan->wgmma_n)
		return (struct warp_row){ i / rows, i % rows };
	return (struct warp_row){ i / (4 * rows) * 4 + in_group % 64 / 16,
		                      in_group / 64 * 16 + in_group % 16 };
}

/* Where the product leaves element (i, j) of its accumulator: PTX ISA, accumulator fragment of
 * mma.m16n8. */
static struct place mma_place(const struct gemm_plan *plan, int64_t i, int64_t j)
{
	struct warp_row at = warp_row_of(plan, i);
	int64_t columns = plan->n / plan->warps_n, row = at.row, column = j % columns;
	int64_t warp = at.warp + plan->warps_m * (j / columns);
	int64_t tile = row / 16 * (columns / 8) + column / 8;

	return (struct place){ .thread = warp * 32 + row % 8 * 4 + column % 8 / 2,
		                   .slot = tile * 4 + row % 16 / 8 * 2 + column % 2 };
}

static void check_accumulator(struct check *check, const struct stmt *stmt,
                              const struct gemm_plan *plan)
{
	const struct buffer *buffer = stmt->as.op.as.gemm.c.buffer;
	const struct layout *layout = layout_seen(check, stmt, buffer);

	for (int64_t i = 0; i < plan->m; i++)
		for (int64_t j = 0; j < plan->n; j++) {
			int64_t index[2] = { i, j };
			struct place want = mma_place(plan, i, j), have = layout_at(layout, index, 0);
			check->n_elems_seen[PROPERTY_OWNER]++;
			if (want.thread == have.thread && want.slot == have.slot)
				continue;
			check_found(check,
			            (struct finding){ PROPERTY_OWNER, PROPERTY_VIOLATED, stmt->span,
			                              sym_text(check->cx->names, buffer->name) },
			            "mma leaves element (%lld, %lld) in slot %lld of thread %lld, the layout "
			            "says slot %lld of thread %lld",
			            (long long)i, (long long)j, (long long)want.slot, (long long)want.thread,
			            (long long)have.slot, (long long)have.thread);
			return;
		}
}

/* Element (row, k) of an operand in registers, by lane and slot of one warp: PTX ISA, operand
 * fragments of mma. */
struct operand_check {
	const struct gemm_plan *plan;
	int which; /* 0: A, 1: B */
	bool k_first;
};

static struct place operand_place(const struct operand_check *at, int64_t row, int64_t k)
{
	const struct mma_shape_info *info = mma_shape_info(at->plan->shape);
	int64_t e = 32 / (int64_t)dtype_bits(info->ab);
	int64_t n_blocks = (at->plan->k + 4 * e - 1) / (4 * e); /* half steps of K */
	int64_t rows =
		at->which == 0 ? at->plan->m / at->plan->warps_m : at->plan->n / at->plan->warps_n;

	if (at->which == 0)
		row = warp_row_of(at->plan, row).row;
	int64_t unit = at->which == 0 ? info->m : info->n, block_slots = unit / 8 * e;
	int64_t block = row % rows / unit * n_blocks + k / (4 * e);

	return (struct place){ .thread = row % 8 * 4 + k % (4 * e) / e,
		                   .slot = block * block_slots + row % unit / 8 * e + k % e };
}

/*
 * Every warp that multiplies a row finds it in its own lanes, in the registers that mma reads; in
 * any registers when the lowering moves it between registers first.
 */
static void check_operand(struct check *check, const struct stmt *stmt,
                          const struct operand_check *at)
{
	const struct op_gemm *gemm = &stmt->as.op.as.gemm;
	const struct buffer *buffer = at->which == 0 ? gemm->a.buffer : gemm->b.buffer;
	const struct layout *layout = layout_seen(check, stmt, buffer);
	int64_t rows = at->which == 0 ? at->plan->m : at->plan->n;
	int64_t warps = at->plan->warps_m * at->plan->warps_n;
	bool is_moved = !layout_equal(
		layout, gemm_operand_layout(check->cx->arena, gemm, at->plan, at->which), NULL);

	for (int64_t row = 0; row < rows; row++)
		for (int64_t k = 0; k < at->plan->k; k++) {
			int64_t index[2] = { at->k_first ? k : row, at->k_first ? row : k }, n_found = 0;
			struct place want = operand_place(at, row, k);
			for (int64_t r = 0; r < layout->n_replicas; r++) {
				struct place have = layout_at(layout, index, r);
				int64_t warp = have.thread / 32, along = at->which == 0 ? warp % at->plan->warps_m
				                                                        : warp / at->plan->warps_m;
				int64_t owner = at->which == 0 ? warp_row_of(at->plan, row).warp
				                               : row / (rows / at->plan->warps_n);
				n_found += have.thread % 32 == want.thread &&
				           (is_moved || have.slot == want.slot) && along == owner && warp < warps;
			}
			check->n_elems_seen[PROPERTY_OWNER]++;
			if (n_found == warps / (at->which == 0 ? at->plan->warps_m : at->plan->warps_n))
				continue;
			check_found(check,
			            (struct finding){ PROPERTY_OWNER, PROPERTY_VIOLATED, stmt->span,
			                              sym_text(check->cx->names, buffer->name) },
			            "mma reads element %s from slot %lld of lane %lld in each of its warps, "
			            "%lld of which hold it there",
			            check_index_text(check, index, 2), (long long)want.slot,
			            (long long)want.thread, (long long)n_found);
			return;
		}
}

static void check_operands(struct check *check, const struct stmt *stmt,
                           const struct gemm_plan *plan)
{
	const struct op_gemm *gemm = &stmt->as.op.as.gemm;

	if (gemm->a.buffer->scope == SCOPE_FRAGMENT)
		check_operand(check, stmt, &(struct operand_check){ plan, 0, gemm->transpose_a != 0 });
	if (gemm->b.buffer->scope == SCOPE_FRAGMENT)
		check_operand(check, stmt, &(struct operand_check){ plan, 1, !gemm->transpose_b });
}

/* ---- all statements ---- */

static void check_op(struct check *check, struct stmt *stmt)
{
	const struct stmt_plan *plan = &check->solution->plans[stmt->id];

	switch (stmt->as.op.kind) {
	case OP_copy:
		check_partition(check, stmt, plan->as.copy.loop.layout);
		check_copy(check, stmt, &plan->as.copy);
		return;
	case OP_gemm:
	case OP_wgmma_gemm:
		check_gemm_coverage(check, stmt, &plan->as.gemm);
		check_accumulator(check, stmt, &plan->as.gemm);
		check_operands(check, stmt, &plan->as.gemm);
		return;
	case OP_fill:
		check_partition(check, stmt, plan->as.loop.layout);
		return;
	case OP_scan:
		check_partition(check, stmt, plan->as.scan.layout);
		return;
	case OP_reduce:
	case OP_finalize_reducer:
		check_partition(check, stmt, plan->as.reduce.source);
		return;
	case OP_tma_copy: /* no thread has a part of it */
	CASES_OF_BARRIER_OPS:
	CASES_OF_TILE_ONLY_OPS:
	CASES_OF_STAGED_OPS:
	case N_OP_KINDS:
		return;
	}
}

static void visit_stmt(void *user, struct stmt *stmt)
{
	struct check *check = user;
	const struct stmt_plan *plan = &check->solution->plans[stmt->id];

	if (!plan->has_plan)
		return;
	if (stmt->kind == STMT_OP)
		check_op(check, stmt);
	if (stmt->kind == STMT_LOOP && stmt->as.loop.kind == LOOP_PARALLEL) {
		check_partition(check, stmt, plan->as.loop.layout);
		check_body(check, stmt, &plan->as.loop, &stmt->as.loop.body);
	}
}

static void check_injective(struct check *check, const struct buffer_solution *solved)
{
	int64_t first[MAX_RANK + 1], second[MAX_RANK + 1];
	const char *name = sym_text(check->cx->names, solved->buffer->name);

	if (is_sound(solved->layout)) {
		check->n_elems_seen[PROPERTY_INJECTIVITY] += n_places(solved->layout);
		return;
	}
	if (n_places(solved->layout) > CHECK_MAX_ELEMS) {
		check_found(check,
		            (struct finding){ PROPERTY_INJECTIVITY, PROPERTY_NOT_PROVED,
		                              solved->buffer->span, name },
		            "more than %d elements", CHECK_MAX_ELEMS);
		return;
	}
	check->n_elems_seen[PROPERTY_INJECTIVITY] += n_places(solved->layout);
	if (layout_injective(solved->layout, first, second))
		return;
	check_found(
		check,
		(struct finding){ PROPERTY_INJECTIVITY, PROPERTY_VIOLATED, solved->buffer->span, name },
		"elements %s and %s share a place", check_index_text(check, first, solved->layout->rank),
		check_index_text(check, second, solved->layout->rank));
}

/* An argument's annotated layout may put several elements in one place. */
static void check_map(struct check *check, const struct buffer_solution *solved)
{
	const char *name = sym_text(check->cx->names, solved->buffer->name);

	if (solved->layout)
		check_injective(check, solved);
	else
		check_found(check,
		            (struct finding){ PROPERTY_INJECTIVITY, PROPERTY_NOT_PROVED,
		                              solved->buffer->span, name },
		            "its annotated layout is no sum of digits of known extents");
}

void check_layouts(struct check *check)
{
	const struct solution *solution = check->solution;

	tile_walk((struct block *)(uintptr_t)&solution->launch->body, visit_stmt, check);
	for (uint32_t i = 0; i < solution->program->buffers.n; i++) {
		const struct buffer_solution *solved = &solution->buffers[i];

		if (solved->buffer->map)
			check_map(check, solved);
		else if (solved->layout && solved->buffer->scope != SCOPE_GLOBAL &&
		         solved->buffer->launch == solution->launch->index)
			check_injective(check, solved);
	}
	check_proved(check, PROPERTY_COVERAGE,
	             "each of %lld iterations of all partitions is executed by its thread",
	             (long long)check->n_elems_seen[PROPERTY_COVERAGE]);
	check_proved(check, PROPERTY_INJECTIVITY, "%lld elements and replicas, no two in one place",
	             (long long)check->n_elems_seen[PROPERTY_INJECTIVITY]);
	check_proved(check, PROPERTY_OWNER,
	             "%lld fragment accesses, all by owners, and every owner writes",
	             (long long)check->n_elems_seen[PROPERTY_OWNER]);
}
