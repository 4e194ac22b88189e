/*
 * What a tile program may say and the solver does not take yet: it is named, with its line, before
 * anything is solved, so that no answer rests on a part that was left out.
 */
#include "analyzer/solve/solve_internal.h"

#include "analyzer/layout/place_map.h"
#include "analyzer/pipeline/depend.h"
#include "analyzer/tile/alias.h"

/* E0640 about a buffer; `instead`: what can be written, or NULL. */
static bool refuse(struct solver *solver, const struct buffer *buffer, const char *what,
                   const char *instead)
{
	diag_report(&solver->cx->diags, DIAG_E0640, buffer->span,
	            "%s %s, which is known, but not supported yet",
	            sym_text(solver->cx->names, buffer->name), what);
	if (instead)
		diag_help(&solver->cx->diags, "%s", instead);
	return false;
}

/* Buffers of the launch, and arguments. */
static bool check_buffer(struct solver *solver, const struct buffer *buffer)
{
	if (!buffer->is_param && buffer->launch != solver->launch->index)
		return true;
	if (buffer->alias_of)
		return true;
	if (!place_is_known(solver->pool, buffer))
		return refuse(solver, buffer, "has an annotated layout whose extents depend on symbols",
		              "give the sizes as numbers (--set), or leave out its annotation");
	if (buffer->type.kind != TYPE_BOOL && dtype_bits(buffer->type) < 8)
		return refuse(solver, buffer, "has elements of under 8 bits",
		              "keep several in one uint8 and take them apart in a T.Parallel loop");
	return true;
}

/* Is it the only shape of its memory that the launch uses, in the type it was allocated in? */
static bool is_member(const struct buffer *view, const struct use_list *uses)
{
	for (uint32_t i = 0; i < uses->uses.n; i++) {
		const struct buffer *other = uses->uses.p[i].named;

		if (other != view && (other == view->alias_of || other->alias_of == view->alias_of))
			return false;
	}
	return dtype_equal(view->type, view->alias_of->type);
}

/* A tensor in another type, addressed by the argument's elements. */
static bool is_row_major_argument(const struct buffer *view)
{
	const struct buffer *root = alias_root(view);

	if (view->scope != SCOPE_GLOBAL || root->map || root->base || dtype_bits(view->type) < 8 ||
	    dtype_bits(root->type) < 8)
		return false;
	for (uint32_t d = 0; d < root->rank; d++)
		if (root->strides[d])
			return false;
	return true;
}

/*
 * Views that tile_unalias left in the statements, outside shared memory: elements of another type,
 * shapes of a fragment that do not split each other.
 */
static bool check_views(struct solver *solver)
{
	struct use_list uses = { .arena = solver->arena };
	bool *refused = arena_array(solver->arena, bool, solver->program->buffers.n);
	bool ok = true;

	depend_block(&uses, (struct block *)(uintptr_t)&solver->launch->body);
	for (uint32_t i = 0; i < uses.uses.n; i++) {
		const struct buffer *view = uses.uses.p[i].named;

		if (!view->alias_of || view->scope == SCOPE_SHARED || refused[view->id] ||
		    alias_argument(view) != view || is_row_major_argument(view) || is_member(view, &uses))
			continue;
		refused[view->id] = true;
		ok = refuse(solver, view,
		            dtype_equal(view->type, view->alias_of->type)
		                ? "is another shape of a buffer's memory (T.view, T.reshape)"
		                : "is a buffer's memory in another type (T.view)",
		            "allocate a buffer of its own and copy");
	}
	return ok;
}

bool solve_supported(struct solver *solver)
{
	bool ok = true;

	if (solver->launch->is_implicit) {
		diag_report(&solver->cx->diags, DIAG_E0213, solver->launch->span,
		            "this stands outside T.Kernel: nothing launches it");
		diag_help(&solver->cx->diags, "open a launch: with T.Kernel(blocks, threads=128) as bx:");
		return false;
	}
	for (uint32_t i = 0; i < solver->program->buffers.n; i++)
		ok = check_buffer(solver, solver->program->buffers.p[i]) && ok;
	return check_views(solver) && ok;
}
