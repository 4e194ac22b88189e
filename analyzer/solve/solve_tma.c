/*
 * T.tma_copy: which layouts its tile may have, and by which boxes it moves.
 *
 *     T.tma_copy(A[by * 128, ko * 64], A_shared, barrier=full)
 *     -> one box of 64 x 128 elements of A; A_shared row-major or in a swizzle
 *
 * The dimensions of both regions that are longer than one correspond in order. The tile's last one
 * runs along the tensor's last dimension, which is contiguous; all other pitches of the tensor are
 * multiples of 16 bytes. No thread has a part of the data, so that there is no partition to choose:
 * the copies restrict the tile's layout, and the tile's other readers and writers choose among what
 * is left.
 */
#include "analyzer/solve/solve_internal.h"

#include "analyzer/tile/alias.h"

#include <inttypes.h>

bool solve_need_hopper(struct solver *solver, const struct stmt *stmt)
{
	if (solver->needs_hopper)
		return false;
	solver->needs_hopper = true;
	diag_report(&solver->cx->diags, DIAG_E0413, stmt->span,
	            "%s needs instructions of sm_90a, the target is %s",
	            op_title(solver->cx, &stmt->as.op), solver->target->name);
	diag_help(&solver->cx->diags, "--target sm_90a");
	diag_help(&solver->cx->diags, "or %s, which takes what the target has",
	          stmt->as.op.kind == OP_tma_copy ? "T.copy" : "T.gemm");
	return false;
}

static const char *name_of(const struct solver *solver, const struct region *region)
{
	return sym_text(solver->cx->names, region->buffer->name);
}

static bool refuse(struct solver *solver, const struct tma_use *use, const char *why)
{
	diag_report(&solver->cx->diags, DIAG_E0414, use->stmt->span, "T.tma_copy between %s and %s: %s",
	            name_of(solver, use->global), name_of(solver, use->shared), why);
	diag_note(&solver->cx->diags, use->shared->buffer->span, "%s is allocated here",
	          name_of(solver, use->shared));
	diag_help(&solver->cx->diags, "T.copy moves it whatever its layout and pitch");
	return false;
}

static bool is_shared(const struct region *region)
{
	return region->buffer->scope == SCOPE_SHARED;
}

/* ---- the tensor ---- */

/* Elements from one index of the dimension to the next. */
static const struct expr *pitch_of(struct solver *solver, const struct buffer *buffer, uint32_t dim)
{
	const struct expr *pitch = expr_int(solver->pool, 1);

	if (buffer->strides[dim])
		return buffer->strides[dim];
	for (uint32_t d = dim + 1; d < buffer->rank; d++)
		pitch = expr_binary(solver->pool, BIN_MUL, pitch, buffer->shape[d]);
	return pitch;
}

/* What of the tensor itself a bulk copy cannot take; NULL: nothing. */
static const char *why_not_tensor(struct solver *solver, const struct tma_use *use)
{
	const struct buffer *buffer = use->global->buffer;
	int64_t bits = dtype_bits(buffer->type), one;

	if (buffer->rank > TMA_MAX_RANK)
		return arena_printf(solver->arena, "%s has %" PRIu32 " dimensions, a box at most %d",
		                    name_of(solver, use->global), buffer->rank, TMA_MAX_RANK);
	if (buffer->map)
		return "the tensor's annotated layout is no array of rows";
	if (!expr_is_int(pitch_of(solver, buffer, buffer->rank - 1), &one) || one != 1)
		return "the tensor's last dimension is not contiguous";
	for (uint32_t d = 0; d + 1 < buffer->rank; d++) {
		int64_t divisor = expr_divisor(pitch_of(solver, buffer, d));

		if (divisor * bits / 8 % TMA_UNIT != 0)
			return arena_printf(solver->arena,
			                    "dimension %" PRIu32 " of %s has a pitch that is a multiple of "
			                    "%" PRId64 " bytes only, and must be one of %d",
			                    d, name_of(solver, use->global), divisor * bits / 8, TMA_UNIT);
	}
	return NULL;
}

/* ---- the tile ---- */

static struct tma_rect rect_of(const struct region *region)
{
	struct tma_rect rect = { { 0 }, { 0 } };

	for (uint32_t d = 0; d < region->buffer->rank; d++) {
		int64_t at;

		rect.extent[d] = region->extent[d];
		rect.divisor[d] =
			expr_is_int(region->min[d], &at) && at == 0 ? 0 : expr_divisor(region->min[d]);
	}
	return rect;
}

static const char *why_not_layout(const struct solver *solver, const struct tma_use *use,
                                  const struct layout *layout, struct tma_box *box)
{
	struct tma_rect rect = rect_of(use->shared);

	return tma_box_of(solver->arena, layout, &rect, box);
}

/* Some layout that the copy can have, at all. */
static const char *why_no_layout(struct solver *solver, const struct tma_use *use)
{
	const struct buffer *buffer = use->shared->buffer;
	static const int64_t spans[] = { 0, 128, 64, 32 };
	const char *why = NULL;
	int64_t shape[MAX_RANK];

	for (uint32_t d = 0; d < buffer->rank; d++)
		shape[d] = buffer_extent(buffer, d);
	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
		uint32_t bits = dtype_bits(buffer->type);
		const struct layout *layout =
			spans[i] ? layout_swizzled(solver->arena, buffer->rank, shape, bits, spans[i])
					 : layout_row_major(solver->arena, buffer->rank, shape, bits, 0);
		struct tma_box box;
		const char *reason = layout ? why_not_layout(solver, use, layout, &box) : NULL;

		if (layout && !reason)
			return NULL;
		why = why ? why : reason;
	}
	return why;
}

/* The dimensions that are longer than one end with the last one on both sides. */
static bool is_along_rows(const struct region *region)
{
	return region->extent[region->buffer->rank - 1] > 1;
}

static bool check_tma(struct solver *solver, const struct tma_use *use)
{
	const char *why = NULL;

	if (!solver->target->has_tma)
		return solve_need_hopper(solver, use->stmt);
	if (!dtype_equal(use->shared->buffer->type, use->global->buffer->type))
		why = "they have different types";
	else if (dtype_bits(use->shared->buffer->type) < 8)
		why = "elements of under 8 bits are not supported yet";
	else if (!is_along_rows(use->shared) || !is_along_rows(use->global))
		why = "what is copied does not run along the last dimension of both";
	else
		why = why_not_tensor(solver, use);
	if (!why)
		why = why_no_layout(solver, use);
	return !why || refuse(solver, use, why);
}

/* ---- all of a launch ---- */

struct tma_search {
	struct solver *solver;
	bool ok;
};

static void visit_tma(void *user, struct stmt *stmt)
{
	struct tma_search *search = user;
	struct solver *solver = search->solver;
	const struct op_tma_copy *copy = &stmt->as.op.as.tma_copy;
	struct tma_use use = { .stmt = stmt };

	if (stmt->kind != STMT_OP || stmt->as.op.kind != OP_tma_copy ||
	    (solver->trial && solver->trial->only && !solver->trial->only[stmt->id]))
		return;
	use.is_load = is_shared(&copy->dst);
	use.shared = use.is_load ? &copy->dst : &copy->src;
	use.global = use.is_load ? &copy->src : &copy->dst;
	if (!is_shared(use.shared) || use.global->buffer->scope != SCOPE_GLOBAL) {
		diag_report(&solver->cx->diags, DIAG_E0414, stmt->span,
		            "T.tma_copy moves between global and shared memory: %s is %s, %s is %s",
		            name_of(solver, &copy->src), scope_text(copy->src.buffer->scope),
		            name_of(solver, &copy->dst), scope_text(copy->dst.buffer->scope));
		search->ok = false;
		return;
	}
	if (use.is_load && !copy->barrier && solver->target->has_tma) {
		diag_report(&solver->cx->diags, DIAG_E0414, stmt->span,
		            "T.tma_copy into %s reports to no barrier: nobody could know when it is done",
		            name_of(solver, use.shared));
		diag_help(&solver->cx->diags, "barrier=full, with full = T.alloc_barrier(1)");
		search->ok = false;
		return;
	}
	search->ok &= check_tma(solver, &use);
	vec_push(solver->arena, &solver->tmas, use);
}

bool solve_find_tmas(struct solver *solver)
{
	struct tma_search search = { solver, true };

	tile_walk((struct block *)(uintptr_t)&solver->launch->body, visit_tma, &search);
	return search.ok && solve_tma_annotated(solver);
}

void solve_tma(struct solver *solver, const struct stmt *stmt)
{
	for (uint32_t i = 0; i < solver->tmas.n; i++) {
		struct tma_use *use = &solver->tmas.p[i];
		struct constraint *constraint;

		if (use->stmt != stmt)
			continue;
		constraint = solve_add_constraint(solver, CONSTRAINT_BULK, stmt, use->shared->buffer);
		constraint->text = arena_printf(solver->arena,
		                                "T.tma_copy: %s is row-major or swizzled by 32, 64 or 128 "
		                                "bytes",
		                                name_of(solver, use->shared));
		use->constraint = constraint;
		use->role = solver->role;
	}
}

bool solve_tma_operand(const struct solver *solver, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < solver->tmas.n; i++)
		if (alias_owner(solver->tmas.p[i].shared->buffer) == buffer)
			return true;
	return false;
}

bool solve_tma_takes(struct solver *solver, const struct buffer *buffer,
                     const struct layout *layout)
{
	struct tma_box box;

	for (uint32_t i = 0; i < solver->tmas.n; i++)
		if (alias_owner(solver->tmas.p[i].shared->buffer) == buffer &&
		    why_not_layout(solver, &solver->tmas.p[i],
		                   solve_view_layout(solver, solver->tmas.p[i].shared->buffer, layout),
		                   &box))
			return false;
	return true;
}

bool solve_tma_annotated(struct solver *solver)
{
	bool ok = true;

	for (uint32_t i = 0; i < solver->tmas.n; i++) {
		const struct tma_use *use = &solver->tmas.p[i];
		const struct buffer *buffer = use->shared->buffer;
		const struct constraint *annotated = solver->annotated[alias_owner(buffer)->id];
		struct tma_box box;
		const char *why = NULL;

		if (annotated)
			why = why_not_layout(solver, use, solve_view_layout(solver, buffer, annotated->layout),
			                     &box);

		if (why)
			ok = refuse(solver, use,
			            arena_printf(solver->arena,
			                         "under the layout that T.annotate_layout gives "
			                         "%s, %s",
			                         name_of(solver, use->shared), why));
	}
	return ok;
}

void solve_record_tmas(struct solver *solver)
{
	for (uint32_t i = 0; i < solver->tmas.n; i++) {
		const struct tma_use *use = &solver->tmas.p[i];
		struct stmt_plan *plan = &solver->solution->plans[use->stmt->id];
		const struct buffer *buffer = use->shared->buffer;
		const struct layout *layout = solver->solution->buffers[buffer->id].layout;

		plan->stmt = use->stmt;
		plan->has_plan = true;
		plan->threads = solver->roles.p[use->role]->range;
		plan->as.tma.is_load = use->is_load;
		if (why_not_layout(solver, use, layout, &plan->as.tma.box))
			BUG("a bulk copy got a layout that it cannot have");
		plan->as.tma.bytes = tma_bytes(&plan->as.tma.box, dtype_bits(buffer->type));
	}
}
