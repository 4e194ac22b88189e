/*
 * Conflicts in words: both operations with their lines, both layouts, the first element on which
 * they differ with both owners, how many elements differ, and edits that were tried before they are
 * named.
 */
#include "analyzer/solve/solve_internal.h"

#include <assert.h>
#include <inttypes.h>

static const char *name_of(const struct solver *solver, const struct buffer *buffer)
{
	return sym_text(solver->cx->names, buffer->name);
}

/* "x[0, 1]" */
static const char *element_text(const struct solver *solver, const struct buffer *buffer,
                                const int64_t *index)
{
	struct buf buf = { 0 };
	const char *text;

	buf_printf(&buf, "%s[", name_of(solver, buffer));
	for (uint32_t d = 0; d < buffer->rank; d++)
		buf_printf(&buf, "%s%" PRId64, d > 0 ? ", " : "", index[d]);
	buf_char(&buf, ']');
	text = arena_strndup(solver->arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

static const char *layout_text(const struct solver *solver, const struct layout *layout)
{
	struct buf buf = { 0 };
	const char *text;

	layout_print(&buf, layout);
	text = arena_strndup(solver->arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

static void add_conflict(struct solver *solver, const struct constraint *constraint)
{
	if (constraint)
		vec_push(solver->arena, &solver->solution->conflict, constraint);
}

/* What one side of a conflict demands. */
struct demand {
	const struct constraint *constraint;
	const struct layout *layout;
};

static void note_demand(struct solver *solver, const struct demand *demand)
{
	diag_note(&solver->cx->diags, demand->constraint->span, "%s", demand->constraint->text);
	diag_note(&solver->cx->diags, demand->constraint->span, "  %s",
	          layout_text(solver, demand->layout));
	add_conflict(solver, demand->constraint);
}

/* Notes on both sides of a conflict over one fragment, and the first and the number of differing
 * elements. */
static void compare(struct solver *solver, const struct buffer *buffer, struct demand a,
                    struct demand b)
{
	int64_t first[MAX_RANK] = { 0 }, n = 1;
	struct place at_a, at_b;

	note_demand(solver, &a);
	note_demand(solver, &b);
	if (layout_equal(a.layout, b.layout, first))
		return;
	at_a = layout_at(a.layout, first, 0);
	at_b = layout_at(b.layout, first, 0);
	for (uint32_t d = 0; d < a.layout->rank; d++)
		n *= a.layout->shape[d];
	diag_note(&solver->cx->diags, b.constraint->span,
	          "%s: thread %" PRId64 " slot %" PRId64 " in the first, thread %" PRId64
	          " slot %" PRId64 " in the second; %" PRId64 " of %" PRId64 " elements differ",
	          element_text(solver, buffer, first), at_a.thread, at_a.slot, at_b.thread, at_b.slot,
	          layout_count_differences(a.layout, b.layout), n);
}

void solve_explain_accumulators(struct solver *solver, const struct constraint *first,
                                const struct constraint *second)
{
	diag_report(&solver->cx->diags, DIAG_E0406, second->span, "%s is wanted in two layouts",
	            name_of(solver, first->buffer));
	compare(solver, first->buffer, (struct demand){ first, first->layout },
	        (struct demand){ second, second->layout });
	solve_suggest(solver, first->buffer);
}

/* ---- a use that no partition serves ---- */

static void explain_many_writers(struct solver *solver, const struct mismatch *mismatch)
{
	const struct space *space = mismatch->space;
	const struct use *use = mismatch->use;
	int64_t element[MAX_RANK] = { 0 };

	diag_report(&solver->cx->diags, DIAG_E0405, use->span,
	            use->is_update
	                ? "several iterations of this T.Parallel loop write one element of %s"
	                : "some iterations of this T.Parallel loop write an element of %s, others that "
	                  "share it do not",
	            name_of(solver, use->buffer));
	for (uint32_t d = 0; d < space->rank; d++) {
		bool whole = false;

		for (uint32_t k = 0; k < use->buffer->rank; k++)
			whole |=
				use->is_plain && use->dims[k].source_dim == (int)d && use->dims[k].quotient == 1;
		if (whole || space->shape[d] == 1)
			continue;
		diag_note(
			&solver->cx->diags, use->span,
			use->is_update
				? "%s is written for %s = 0 and for %s = 1, which different threads may run"
				: "%s may be written for %s = 0 and not for %s = 1, which different threads may "
				  "run: then some copies of it are old",
			element_text(solver, use->buffer, element),
			sym_text(solver->cx->names, space->vars[d]->name),
			sym_text(solver->cx->names, space->vars[d]->name));
		break;
	}
	diag_help(&solver->cx->diags, use->is_update
	                                  ? "collect the values in a fragment of the loop's shape, "
	                                    "then reduce it with T.reduce_sum"
	                                  : "store it in a T.Parallel loop over its own dimensions");
	add_conflict(solver, space->constraint);
}

static void explain_owner(struct solver *solver, const struct mismatch *mismatch)
{
	const struct use *use = mismatch->use;
	const struct owner_mismatch *owner = &mismatch->owner;

	if (owner->thread < 0)
		diag_report(&solver->cx->diags, DIAG_E0405, use->span,
		            "the threads of this loop hold the elements of %s that they need in different "
		            "registers",
		            name_of(solver, use->buffer));
	else
		diag_report(&solver->cx->diags, DIAG_E0405, use->span,
		            "thread %" PRId64 " needs %s, which thread %" PRId64 " owns", owner->thread,
		            element_text(solver, use->buffer, owner->element), owner->owner);
	if (mismatch->fragment_from)
		diag_note(&solver->cx->diags, mismatch->fragment_from->span,
		          "%s lives as %s because of this", name_of(solver, use->buffer),
		          layout_text(solver, mismatch->fragment));
	if (mismatch->space->kind == SPACE_SCALAR)
		diag_note(
			&solver->cx->diags, mismatch->space->stmt->span,
			"outside T.Parallel every thread runs the statement, and needs its own copy of %s",
			name_of(solver, use->buffer));
	else
		diag_note(&solver->cx->diags, mismatch->space->stmt->span, "the loop runs as %s",
		          layout_text(solver, mismatch->space_layout));
	if (mismatch->space->kind == SPACE_SCALAR)
		diag_help(
			&solver->cx->diags,
			"copy %s to shared memory and read the element there, or read it in a T.Parallel loop",
			name_of(solver, use->buffer));
	solve_suggest(solver, use->buffer);
	add_conflict(solver, mismatch->fragment_from);
	add_conflict(solver, mismatch->space->constraint);
}

/* A loop ties two fragments that gemms pin: each demands its own partition of the loop. */
static bool explain_pins(struct solver *solver, const struct component *component,
                         const struct mismatch *mismatch)
{
	const struct constraint *here = solver->pinned_by[mismatch->use->buffer->id];
	const struct layout *seen;

	if (!here || !mismatch->use->is_plain)
		return false;
	seen = layout_project(solver->arena, mismatch->space_layout, mismatch->use->buffer->rank,
	                      mismatch->use->dims);
	for (uint32_t f = 0; f < component->fragments.n; f++) {
		const struct constraint *other = solver->pinned_by[component->fragments.p[f]->id];

		if (!seen || !other || other == here)
			continue;
		diag_report(&solver->cx->diags, DIAG_E0406, mismatch->use->span,
		            "%s is wanted in two layouts", name_of(solver, mismatch->use->buffer));
		compare(solver, mismatch->use->buffer, (struct demand){ here, mismatch->fragment },
		        (struct demand){ mismatch->space->constraint, seen });
		diag_note(&solver->cx->diags, other->span, "the loop follows %s: %s",
		          name_of(solver, other->buffer), other->text);
		add_conflict(solver, other);
		solve_suggest(solver, mismatch->use->buffer);
		return true;
	}
	return false;
}

void solve_explain(struct solver *solver, const struct component *component)
{
	const struct mismatch *mismatch = solver->mismatch;

	assert(component->spaces.n > 0);
	if (!mismatch) {
		const struct space *space = component->spaces.p[0];

		diag_report(&solver->cx->diags, DIAG_E0407, space->stmt->span,
		            "no partition of this loop over %" PRId64 " threads was found",
		            solver->n_threads);
		for (uint32_t f = 0; f < component->fragments.n; f++)
			diag_note(&solver->cx->diags, component->fragments.p[f]->span, "%s takes part",
			          name_of(solver, component->fragments.p[f]));
		if (component->fragments.n > 0)
			solve_suggest(solver, component->fragments.p[0]);
		add_conflict(solver, space->constraint);
	} else if (mismatch->many_writers) {
		explain_many_writers(solver, mismatch);
	} else if (!explain_pins(solver, component, mismatch)) {
		explain_owner(solver, mismatch);
	}
}
