/*
 * One memory in several types and shapes: its owner's layout decides, views see it as elements of
 * their own (layout/view.h), and only layouts count that keep the bytes of every view's elements
 * together. Where the kernel fixes a layout that tears one, that is a conflict.
 */
#include "analyzer/solve/solve_internal.h"

#include "analyzer/layout/view.h"
#include "analyzer/pipeline/depend.h"
#include "analyzer/tile/alias.h"

#include <inttypes.h>

static struct view_form form_of(const struct buffer *view)
{
	struct view_form form = { .rank = view->rank, .bits = dtype_bits(view->type) };

	for (uint32_t d = 0; d < view->rank; d++)
		form.shape[d] = buffer_extent(view, d);
	return form;
}

/* A view under one layout of its owner. */
struct known_view {
	const struct layout *layout; /* NULL: torn */
};

const struct layout *solve_view_layout(struct solver *solver, const struct buffer *view,
                                       const struct layout *owner)
{
	struct view_form form = form_of(view);
	uint64_t key = hash_mix(view->id + 1, (uint64_t)(uintptr_t)owner);
	struct known_view *known;

	if (alias_owner(view) == view)
		return owner;
	known = map_get(&solver->views, key);
	if (!known) {
		known = arena_new(solver->arena, struct known_view);
		known->layout =
			layout_view(solver->arena, owner, dtype_bits(alias_owner(view)->type), &form, NULL);
		map_set(solver->arena, &solver->views, key, known);
	}
	return known->layout;
}

bool solve_keeps_views(struct solver *solver, const struct buffer *owner,
                       const struct layout *layout)
{
	for (uint32_t i = 0; i < solver->used_views.n; i++)
		if (alias_owner(solver->used_views.p[i]) == owner &&
		    !solve_view_layout(solver, solver->used_views.p[i], layout))
			return false;
	return true;
}

/* ---- what is fixed and does not fit ---- */

static const char *element_text(struct solver *solver, const struct buffer *view,
                                const int64_t *index)
{
	const char *text = arena_printf(solver->arena, "%s[", sym_text(solver->cx->names, view->name));

	for (uint32_t d = 0; d < view->rank; d++)
		text = arena_printf(solver->arena, "%s%s%" PRId64, text, d ? ", " : "", index[d]);
	return arena_printf(solver->arena, "%s]", text);
}

/* Solved once more without the annotation; what is chosen then. */
static void try_without(struct solver *solver, const struct buffer *owner)
{
	struct trial trial = { .strict = solver->options.strict, .annotated = owner };
	const struct solution *solution = solver->trial ? NULL : solve_trial(solver, &trial);
	const char *name = sym_text(solver->cx->names, owner->name);

	if (!solution || !solution->buffers[owner->id].layout)
		return;
	diag_help(
		&solver->cx->diags,
		"leave %s out of T.annotate_layout: %s is chosen then, which keeps every element of its "
		"views together (tried)",
		name, layout_kind_text(solution->buffers[owner->id].layout));
}

static void report_torn(struct solver *solver, const struct buffer *view,
                        const struct view_torn *torn)
{
	const struct buffer *owner = alias_owner(view);
	const char *name = sym_text(solver->cx->names, view->name),
			   *owner_name = sym_text(solver->cx->names, owner->name);
	const char *element = element_text(solver, view, torn->index);
	int64_t bytes = dtype_bits(view->type) / 8, part_bytes = torn->part_bits / 8;

	diag_report(&solver->cx->diags, DIAG_E0416, view->span,
	            "%s sees %s as elements of %" PRId64 " bytes, and the layout of %s tears them",
	            name, owner_name, bytes, owner_name);
	diag_note(&solver->cx->diags, owner->span, "T.annotate_layout gives %s this layout",
	          owner_name);
	if (torn->part > 0)
		diag_note(&solver->cx->diags, view->span,
		          "%s is the first: its bytes 0 to %" PRId64 " are at byte %" PRId64
		          ", those from %" PRId64 " at byte %" PRId64,
		          element, torn->part * part_bytes - 1, torn->first.offset, torn->part * part_bytes,
		          torn->second.offset);
	else
		diag_note(&solver->cx->diags, view->span,
		          "%s is the first: it begins at byte %" PRId64 ", no multiple of %" PRId64,
		          element, torn->first.offset, bytes);
	try_without(solver, owner);
}

/* Two annotations of one memory: the owner's, and a view's that must be the same. */
static bool agrees(struct solver *solver, const struct buffer *view, const struct layout *seen)
{
	const struct buffer *owner = alias_owner(view);
	int64_t index[MAX_RANK] = { 0 };

	if (!solver->annotated[view->id] || layout_equal(view->annotation, seen, index))
		return true;
	diag_report(&solver->cx->diags, DIAG_E0410, view->span,
	            "T.annotate_layout gives the memory of %s two layouts",
	            sym_text(solver->cx->names, owner->name));
	diag_note(&solver->cx->diags, owner->span,
	          "by that of %s element %s is at byte %" PRId64 ", by its own at byte %" PRId64,
	          sym_text(solver->cx->names, owner->name), element_text(solver, view, index),
	          layout_at(seen, index, 0).offset, layout_at(view->annotation, index, 0).offset);
	try_without(solver, view);
	return false;
}

bool solve_annotated_views(struct solver *solver)
{
	bool ok = true;

	for (uint32_t i = 0; i < solver->used_views.n; i++) {
		const struct buffer *view = solver->used_views.p[i], *owner = alias_owner(view);
		const struct constraint *annotation = solver->annotated[owner->id];
		struct view_form form = form_of(view);
		struct view_torn torn = { .part = 0 };
		const struct layout *seen;

		if (!annotation)
			continue;
		seen =
			layout_view(solver->arena, annotation->layout, dtype_bits(owner->type), &form, &torn);
		if (!seen)
			report_torn(solver, view, &torn);
		ok = ok && seen && agrees(solver, view, seen);
	}
	return ok;
}

/* ---- which views there are ---- */

void solve_find_views(struct solver *solver)
{
	struct use_list uses = { .arena = solver->arena };
	bool *found = arena_array(solver->arena, bool, solver->program->buffers.n);

	depend_block(&uses, (struct block *)(uintptr_t)&solver->launch->body);
	for (uint32_t i = 0; i < uses.uses.n; i++) {
		const struct buffer *view = uses.uses.p[i].named;

		if (view->scope == SCOPE_SHARED && alias_owner(view) != view && !found[view->id])
			vec_push(solver->arena, &solver->used_views, view);
		found[view->id] = true;
	}
}
