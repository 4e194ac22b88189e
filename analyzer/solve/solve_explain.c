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

/* "thread 4 slot 0", or "threads 0, 128 slot 0" where there are replicas. */
static const char *owners_text(struct solver *solver, const struct layout *layout,
                               const int64_t *index)
{
	enum { MOST_NAMED = 4 };
	struct buf buf = { 0 };
	const char *text;

	buf_text(&buf, layout->n_replicas > 1 ? "threads " : "thread ");
	for (int64_t r = 0; r < layout->n_replicas && r < MOST_NAMED; r++)
		buf_printf(&buf, "%s%" PRId64, r > 0 ? ", " : "", layout_at(layout, index, r).thread);
	if (layout->n_replicas > MOST_NAMED)
		buf_printf(&buf, ", ... (%" PRId64 " replicas)", layout->n_replicas);
	buf_printf(&buf, " slot %" PRId64, layout_at(layout, index, 0).slot);
	text = arena_strndup(solver->arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

/* Notes on both sides of a conflict over one fragment, and the first and the number of differing
 * elements. */
static void compare(struct solver *solver, const struct buffer *buffer, struct demand a,
                    struct demand b)
{
	int64_t first[MAX_RANK] = { 0 }, n = 1;

	note_demand(solver, &a);
	note_demand(solver, &b);
	if (layout_equal(a.layout, b.layout, first))
		return;
	for (uint32_t d = 0; d < a.layout->rank; d++)
		n *= a.layout->shape[d];
	diag_note(&solver->cx->diags, b.constraint->span,
	          "%s: %s in the first, %s in the second; %" PRId64 " of %" PRId64
	          " elements differ, %" PRId64 " are on another thread",
	          element_text(solver, buffer, first), owners_text(solver, a.layout, first),
	          owners_text(solver, b.layout, first), layout_count_differences(a.layout, b.layout), n,
	          layout_count_moves(a.layout, b.layout));
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

/* The first dimension of the space in which iterations share an element; NO_DIM: none. */
static int shared_dim(const struct space *space, const struct use *use)
{
	for (uint32_t d = 0; d < space->rank; d++) {
		bool whole = false;

		for (uint32_t k = 0; k < use->buffer->rank; k++)
			whole |=
				use->is_plain && use->dims[k].source_dim == (int)d && use->dims[k].quotient == 1;
		if (!whole && space->shape[d] > 1)
			return (int)d;
	}
	return NO_DIM;
}

/* Two iterations that reach one element, the first one and the one whose value of a dimension is
 * `value`; their threads, -1 where they are not known. */
struct meeting {
	int64_t element[MAX_RANK];
	int64_t value, threads[2];
};

/* Does the use's index name the element under these values of variables? */
static bool names_element(const struct use *use, const int64_t *values, const int64_t *element)
{
	for (uint32_t d = 0; d < use->buffer->rank; d++)
		if (expr_eval_int(use->index[d], values) != element[d])
			return false;
	return true;
}

/* The least value of dimension `dim` whose iteration meets the first one's element on another
 * thread, or else on any. */
static struct meeting find_meeting(struct solver *solver, const struct mismatch *mismatch, int dim)
{
	enum { MOST_LOOKED_AT = 1 << 16 };
	const struct space *space = mismatch->space;
	const struct use *use = mismatch->use;
	const struct layout *layout = mismatch->space_layout;
	int64_t *values = arena_array(solver->arena, int64_t, expr_n_vars(solver->pool));
	int64_t at[MAX_RANK] = { 0 };
	struct meeting meeting = { .threads = { -1, -1 } };

	for (uint32_t d = 0; d < use->buffer->rank; d++) {
		if (!use->index[d]->is_index)
			return meeting;
		meeting.element[d] = expr_eval_int(use->index[d], values);
	}
	for (int64_t v = 1; v < space->shape[dim] && v < MOST_LOOKED_AT; v++) {
		int64_t thread, first;

		values[space->vars[dim]->id] = at[dim] = v;
		if (!names_element(use, values, meeting.element))
			continue;
		meeting.value = meeting.value ? meeting.value : v;
		thread = layout_at(layout, at, 0).thread;
		at[dim] = 0;
		first = layout_at(layout, at, 0).thread;
		if (thread != first) {
			meeting.value = v;
			meeting.threads[0] = first;
			meeting.threads[1] = thread;
			break;
		}
	}
	return meeting;
}

/* "j = 4", or "thread 1 (j = 4)" where the thread is known. */
static const char *iteration_text(struct solver *solver, const struct var *var, int64_t value,
                                  int64_t thread)
{
	const char *name = sym_text(solver->cx->names, var->name);

	return thread < 0 ? arena_printf(solver->arena, "%s = %" PRId64, name, value)
	                  : arena_printf(solver->arena, "%s = %" PRId64 " in thread %" PRId64, name,
	                                 value, thread);
}

static void note_meeting(struct solver *solver, const struct mismatch *mismatch, int dim)
{
	const struct space *space = mismatch->space;
	const struct use *use = mismatch->use;
	struct meeting meeting = find_meeting(solver, mismatch, dim);
	const struct var *var = space->vars[dim];

	if (meeting.value == 0)
		return;
	diag_note(&solver->cx->diags, use->span,
	          use->is_update
	              ? "%s is written for %s and for %s"
	              : "%s may be written for %s and not for %s: then some copies of it are old",
	          element_text(solver, use->buffer, meeting.element),
	          iteration_text(solver, var, 0, meeting.threads[0]),
	          iteration_text(solver, var, meeting.value, meeting.threads[1]));
	if (meeting.threads[0] >= 0)
		diag_note(&solver->cx->diags, space->stmt->span, "the loop runs as %s",
		          layout_text(solver, mismatch->space_layout));
}

/* "(16, 14)" of a buffer on the chip. */
static const char *shape_text(struct solver *solver, const struct buffer *buffer)
{
	struct buf buf = { 0 };
	const char *text;

	buf_char(&buf, '(');
	for (uint32_t d = 0; d < buffer->rank; d++)
		buf_printf(&buf, "%s%" PRId64, d > 0 ? ", " : "", buffer_extent(buffer, d));
	buf_text(&buf, buffer->rank == 1 ? ",)" : ")");
	text = arena_strndup(solver->arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

/* Adding into an element is a reduction; other stores are for one of the iterations. */
static void help_many_writers(struct solver *solver, const struct use *use)
{
	struct diag_list *diags = &solver->cx->diags;
	char type[32];

	if (!use->is_update) {
		diag_help(diags, "store it in a T.Parallel loop over its own dimensions");
	} else if (use->is_load) {
		diag_help(diags,
		          "combine in a reducer of its own: T.alloc_reducer(%s, \"%s\"), T.clear "
		          "before the loop, T.finalize_reducer after it",
		          shape_text(solver, use->buffer), dtype_name(use->buffer->type, type));
		diag_help(diags, "or collect the values in a fragment of the loop's shape, then reduce it "
		                 "with T.reduce_sum");
	} else {
		diag_help(diags,
		          "store it in a T.Parallel loop over its own dimensions, from the iteration "
		          "whose value shall stay");
	}
}

static void explain_many_writers(struct solver *solver, const struct mismatch *mismatch)
{
	const struct space *space = mismatch->space;
	const struct use *use = mismatch->use;
	int dim = shared_dim(space, use);

	diag_report(&solver->cx->diags, DIAG_E0405, use->span,
	            use->is_update
	                ? "several iterations of this T.Parallel loop write one element of %s"
	                : "some iterations of this T.Parallel loop write an element of %s, others that "
	                  "share it do not",
	            name_of(solver, use->buffer));
	if (dim != NO_DIM)
		note_meeting(solver, mismatch, dim);
	help_many_writers(solver, use);
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
