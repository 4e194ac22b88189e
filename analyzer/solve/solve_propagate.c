/*
 * From one partition to all layouts of a component.
 *
 * A space's partition gives each fragment that it touches a layout: the partition seen through the
 * fragment's index (layout_project). A fragment's layout gives each space that it spans a
 * partition, the other way round. Starting from the accumulators that gemms pin, then from
 * candidate partitions of the largest space that is still open, this runs to a fixpoint; every
 * further use of a fragment is a check: each thread must own what its iterations touch, all owners
 * must write what one writes. All consistent choices are enumerated, depth first, and kept with
 * their cost.
 *
 *     pinned C (128, 128)  ->  relu loop (i, j)  ->  copy C -> global          nothing left to
 * choose x (8, 320) free      ->  40 candidate loops (i, j), each gives x, x*x, and sum (8,) with
 * replicas
 */
#include "analyzer/solve/solve_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPEN_SPACES = 6 };

/* What was assigned since a point, for going back. */
struct trail {
	vec_of(const struct layout **) set;
};

struct propagation {
	struct solver *solver;
	struct component *component;
	struct trail trail;
};

static void assign(struct propagation *p, const struct layout **where, const struct layout *layout)
{
	assert(!*where);
	*where = layout;
	vec_push(p->solver->arena, &p->trail.set, where);
}

static void undo_to(struct propagation *p, uint32_t n)
{
	while (p->trail.set.n > n)
		*vec_pop(&p->trail.set) = NULL;
}

/* ---- checks ---- */

/* Keeps the first inconsistency for the explanation. */
static void note_mismatch(struct propagation *p, const struct space *space, const struct use *use,
                          const struct owner_mismatch *owner, bool many_writers)
{
	struct mismatch *mismatch = p->solver->mismatch;

	if (mismatch)
		return;
	mismatch = arena_new(p->solver->arena, struct mismatch);
	*mismatch = (struct mismatch){
		.space = space,
		.use = use,
		.space_layout = p->solver->space_layout[space->id],
		.fragment = p->solver->fragment_layout[use->buffer->id],
		.fragment_from = p->solver->fragment_from[use->buffer->id],
		.many_writers = many_writers,
	};
	if (owner)
		mismatch->owner = *owner;
	p->solver->mismatch = mismatch;
}

/* The slow, exact question: do registers of the executing threads hold what the use's index names?
 */
static bool check_slots(struct propagation *p, const struct space *space, const struct use *use,
                        struct owner_mismatch *owner)
{
	struct solver *solver = p->solver;
	const struct layout *layout = solver->space_layout[space->id];
	struct loop_plan loop = { layout, 1 };
	const struct var *slot = access_iter_var(solver->access, MAX_ITERS - 1, layout->n_slots);
	const struct expr *unused;

	struct elem_ref ref = { &loop, space->vars, use->buffer,
		                    solver->fragment_layout[use->buffer->id], use->index };

	return access_fragment_slot(solver->access, &ref, slot, &unused, owner);
}

/* A statement outside T.Parallel that only stores goes by whatever the others want. */
static bool waits(const struct space *space, const struct use *use)
{
	return space->kind == SPACE_SCALAR && !use->is_load;
}

/* A use whose two sides are known, looked at. */
static struct use_check look_at_use(struct propagation *p, const struct space *space,
                                    const struct use *use, const struct layout *seen)
{
	const struct layout *fragment = p->solver->fragment_layout[use->buffer->id];
	struct use_check check = { .ok = false };

	if (seen && layout_equal(seen, fragment, NULL))
		return (struct use_check){ .ok = true };
	if (space->kind == SPACE_REDUCE && use->is_store) {
		/* Each owner of a partial result must be an owner of the result, and nobody else. */
		if (seen)
			check = *solve_owners_within(p->solver, seen, fragment);
		return check.ok ? *solve_owners_within(p->solver, fragment, seen) : check;
	}
	if (!check_slots(p, space, use, &check.owner))
		return check;
	/* Who brings a contribution to a reducer holds a partial result; others may, too. */
	if (use->is_store && !use->is_partial && seen)
		return *solve_owners_within(p->solver, fragment, seen);
	check.ok = !use->is_store || use->is_partial;
	return check;
}

/* Equal uses of the statement under equal layouts have one answer. */
static uint64_t check_key(const struct propagation *p, const struct space *space,
                          const struct use *use)
{
	const struct solver *solver = p->solver;
	uint64_t key = hash_mix(space->stmt->id, (uint64_t)(use - space->uses.p));

	for (uint32_t d = 0; d < use->buffer->rank; d++)
		key = hash_mix(
			key, use->is_plain && use->blocks[d] == 1
					 ? hash_mix((uint64_t)use->dims[d].source_dim, (uint64_t)use->dims[d].quotient)
					 : use->index[d]->id);
	key = hash_mix(key, hash_mix((uint64_t)space->kind, use->buffer->id));
	key = hash_mix(key, solve_layout_hash(solver->space_layout[space->id]));
	return hash_mix(key, solve_layout_hash(solver->fragment_layout[use->buffer->id]));
}

/* A use whose two sides are known. */
static bool check_use(struct propagation *p, const struct space *space, const struct use *use,
                      const struct layout *seen)
{
	const struct layout *fragment = p->solver->fragment_layout[use->buffer->id];
	struct use_check *check;
	uint64_t key;

	if (seen && layout_equal_structure(seen, fragment) && seen->shape[0] == fragment->shape[0])
		return true;
	if (waits(space, use))
		return true; /* the owners store */
	key = check_key(p, space, use);
	check = map_get(&p->solver->memo->checks, key);
	if (!check) {
		check = arena_new(p->solver->arena, struct use_check);
		solve_spend(p->solver, WORK_CHECK, 1);
		*check = look_at_use(p, space, use, seen);
		map_set(p->solver->arena, &p->solver->memo->checks, key, check);
	}
	if (!check->ok)
		note_mismatch(p, space, use, &check->owner, false);
	return check->ok;
}

/* ---- propagation ---- */

/* Every element of the fragment has a place: digits reach as far as the shape. */
static bool reaches_shape(const struct layout *layout)
{
	for (uint32_t d = 0; d < layout->rank; d++) {
		int64_t reach = 1;

		for (uint32_t i = 0; i < layout->n_digits; i++)
			if (layout->digits[i].dim == (int)d &&
			    layout->digits[i].div * layout->digits[i].extent > reach)
				reach = layout->digits[i].div * layout->digits[i].extent;
		if (reach < layout->shape[d])
			return false;
	}
	return true;
}

/* `open` is set when a fragment of the space has no layout yet: the space must be looked at again.
 */
static bool spread_from_space(struct propagation *p, const struct space *space, bool *changed,
                              bool *open)
{
	struct solver *solver = p->solver;
	struct reduce_plan plan;
	struct scan_plan scan;

	if ((space->kind == SPACE_REDUCE || space->kind == SPACE_FINALIZE) &&
	    !solve_reduce_plan(solver, space, solver->space_layout[space->id], 4, &plan))
		return false;
	if (space->kind == SPACE_SCAN &&
	    !solve_scan_plan(space, solver->space_layout[space->id], 4, &scan))
		return false;
	for (uint32_t u = 0; u < space->uses.n; u++) {
		const struct use *use = &space->uses.p[u];
		const struct layout *seen;

		if (use->buffer->scope != SCOPE_FRAGMENT)
			continue;
		if (use->is_update) {
			note_mismatch(p, space, use, NULL, true);
			return false;
		}
		seen = solve_seen_through(solver, solver->space_layout[space->id], use);
		if (use->is_selected && seen && seen->n_replicas > 1) {
			note_mismatch(p, space, use, NULL, true);
			return false;
		}
		if (use->is_converted)
			continue;
		if (solver->fragment_layout[use->buffer->id]) {
			if (!check_use(p, space, use, seen))
				return false;
		} else if (seen && reaches_shape(seen) && !waits(space, use)) {
			assign(p, &solver->fragment_layout[use->buffer->id], seen);
			solver->fragment_from[use->buffer->id] = space->constraint;
			solver->fragment_follows[use->buffer->id] = solver->space_from[space->id];
			*changed = true;
		} else {
			*open = true;
		}
	}
	return true;
}

static void spread_to_space(struct propagation *p, const struct space *space, bool *changed)
{
	struct solver *solver = p->solver;

	for (uint32_t u = 0; u < space->uses.n; u++) {
		const struct use *use = &space->uses.p[u];
		const struct layout *known = use->buffer->scope == SCOPE_FRAGMENT && !use->is_converted
		                                 ? solver->fragment_layout[use->buffer->id]
		                                 : NULL;
		const struct layout *partition =
			known ? solve_partition_from(solver, space, use, known) : NULL;

		if (!partition || !reaches_shape(partition))
			continue;
		assign(p, &solver->space_layout[space->id], partition);
		solver->space_from[space->id] = use->buffer;
		*changed = true;
		return;
	}
}

/* To the fixpoint; false at the first inconsistency. */
static bool propagate(struct propagation *p)
{
	bool *done = arena_array(p->solver->arena, bool, p->component->spaces.n);
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t s = 0; s < p->component->spaces.n; s++) {
			const struct space *space = p->component->spaces.p[s];
			bool open = false;

			if (!p->solver->space_layout[space->id])
				spread_to_space(p, space, &changed);
			if (done[s] || !p->solver->space_layout[space->id])
				continue;
			if (!spread_from_space(p, space, &changed, &open))
				return false;
			done[s] = !open;
		}
	}
	return true;
}

/* ---- enumeration ---- */

static int64_t volume(const struct space *space)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < space->rank; d++)
		n *= space->shape[d];
	return n;
}

/* The largest space without a partition, the first of equals; NULL when all have one. */
static const struct space *largest_open(const struct propagation *p)
{
	const struct space *best = NULL;

	for (uint32_t s = 0; s < p->component->spaces.n; s++) {
		const struct space *space = p->component->spaces.p[s];

		if (!p->solver->space_layout[space->id] && (!best || volume(space) > volume(best)))
			best = space;
	}
	return best;
}

static void keep_assignment(struct propagation *p)
{
	struct solver *solver = p->solver;
	struct component *component = p->component;
	struct assignment assignment = {
		.spaces = arena_array(solver->arena, const struct layout *, component->spaces.n),
		.fragments = arena_array(solver->arena, const struct layout *, component->fragments.n),
	};

	solver->solution->n_visited++;
	if (component->assignments.n >= MAX_ASSIGNMENTS) {
		solver->exhausted = true;
		return;
	}
	for (uint32_t s = 0; s < component->spaces.n; s++) {
		const struct space *space = component->spaces.p[s];
		struct space_cost cost;

		assignment.spaces[s] = solver->space_layout[space->id];
		cost = solve_space_cost(solver, space, assignment.spaces[s]);
		assignment.fixed_cost += cost.fixed;
		assignment.shared_bound += cost.shared_bound;
	}
	for (uint32_t f = 0; f < component->fragments.n; f++) {
		assignment.fragments[f] = solver->fragment_layout[component->fragments.p[f]->id];
		if (!assignment.fragments[f])
			return; /* only reached through indices that give no layout */
	}
	assignment.fixed_cost += solve_register_cost(solver, component, assignment.fragments);
	if (solver->cutoff > 0 && assignment.fixed_cost + assignment.shared_bound >= solver->cutoff)
		return;
	if (!solve_conversion_cost(solver, component, &assignment.fixed_cost))
		return;
	assignment.order = component->assignments.n;
	vec_push(solver->arena, &component->assignments, assignment);
}

/* What only statements outside T.Parallel store lives in all threads. */
static void assign_stored(struct propagation *p)
{
	struct solver *solver = p->solver;

	for (uint32_t s = 0; s < p->component->spaces.n; s++) {
		const struct space *space = p->component->spaces.p[s];

		for (uint32_t u = 0; u < space->uses.n && space->kind == SPACE_SCALAR; u++) {
			const struct use *use = &space->uses.p[u];
			const struct layout *seen;

			if (use->buffer->scope != SCOPE_FRAGMENT || use->is_converted ||
			    solver->fragment_layout[use->buffer->id])
				continue;
			seen = solve_seen_through(solver, solver->space_layout[space->id], use);
			if (!seen)
				continue;
			assign(p, &solver->fragment_layout[use->buffer->id], seen);
			solver->fragment_from[use->buffer->id] = space->constraint;
			solver->fragment_follows[use->buffer->id] = NULL;
		}
	}
}

static void enumerate(struct propagation *p, int depth)
{
	const struct layout *candidates[MAX_CANDIDATES];
	const struct space *space;
	uint32_t start = p->trail.set.n;
	uint32_t n;

	if (!propagate(p)) {
		undo_to(p, start);
		return;
	}
	space = largest_open(p);
	if (!space)
		assign_stored(p);
	if (!space) {
		keep_assignment(p);
	} else if (depth == MAX_OPEN_SPACES) {
		p->solver->exhausted = true;
	} else {
		uint32_t before = p->trail.set.n;

		n = solve_candidates(p->solver, space, candidates, MAX_CANDIDATES);
		for (uint32_t i = 0; i < n; i++) {
			if (!layout_has_inverse(candidates[i]))
				continue;
			assign(p, &p->solver->space_layout[space->id], candidates[i]);
			p->solver->space_from[space->id] = NULL;
			enumerate(p, depth + 1);
			undo_to(p, before);
		}
	}
	undo_to(p, start);
}

static int by_bound(const void *a, const void *b)
{
	const struct assignment *x = a, *y = b;
	double left = x->fixed_cost + x->shared_bound, right = y->fixed_cost + y->shared_bound;

	if (left != right)
		return left < right ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Statements outside T.Parallel run in all threads. */
static void start_scalars(struct propagation *p)
{
	for (uint32_t s = 0; s < p->component->spaces.n; s++) {
		const struct space *space = p->component->spaces.p[s];
		struct layout *all;

		if (space->kind != SPACE_SCALAR)
			continue;
		all = layout_new_fragment(p->solver->arena, 1, space->shape);
		layout_add_digit(all,
		                 (struct digit){ DIM_REPLICA, 1, p->solver->n_threads, AXIS_THREAD, 1 });
		layout_finish(all);
		assign(p, &p->solver->space_layout[space->id], all);
		p->solver->space_from[space->id] = NULL;
	}
}

/* Accumulators that gemms fix. */
static void start_pinned(struct propagation *p)
{
	for (uint32_t f = 0; f < p->component->fragments.n; f++) {
		const struct buffer *buffer = p->component->fragments.p[f];
		const struct constraint *pin = p->solver->pinned_by[buffer->id];

		if (!pin)
			continue;
		assign(p, &p->solver->fragment_layout[buffer->id], pin->layout);
		p->solver->fragment_from[buffer->id] = pin;
		p->solver->fragment_follows[buffer->id] = NULL;
	}
}

void solve_enumerate(struct solver *solver, struct component *component)
{
	struct propagation p = { .solver = solver, .component = component };

	component->assignments.n = 0;
	start_scalars(&p);
	start_pinned(&p);
	enumerate(&p, 0);
	undo_to(&p, 0);
}

void solve_trace(struct solver *solver, const struct component *component)
{
	struct propagation p = { .solver = solver,
		                     .component = (struct component *)(uintptr_t)component };
	const struct assignment *chosen = component->chosen;
	bool open = true;

	for (uint32_t s = 0; s < component->spaces.n; s++)
		solver->space_layout[component->spaces.p[s]->id] = NULL;
	for (uint32_t f = 0; f < component->fragments.n; f++)
		solver->fragment_layout[component->fragments.p[f]->id] = NULL;
	start_scalars(&p);
	start_pinned(&p);
	while (open && propagate(&p)) {
		const struct space *space = largest_open(&p);

		open = space != NULL;
		for (uint32_t s = 0; open && s < component->spaces.n; s++)
			if (component->spaces.p[s] == space) {
				assign(&p, &solver->space_layout[space->id], chosen->spaces[s]);
				solver->space_from[space->id] = NULL;
			}
	}
	assign_stored(&p);
	for (uint32_t s = 0; s < component->spaces.n; s++)
		solver->space_layout[component->spaces.p[s]->id] = chosen->spaces[s];
	for (uint32_t f = 0; f < component->fragments.n; f++)
		solver->fragment_layout[component->fragments.p[f]->id] = chosen->fragments[f];
}

bool solve_component(struct solver *solver, struct component *component)
{
	solver->mismatch = NULL;
	solve_enumerate(solver, component);
	if (component->assignments.n == 0 &&
	    (solver->options.strict || !solve_with_conversions(solver, component))) {
		solve_explain(solver, component);
		return false;
	}
	qsort(component->assignments.p, component->assignments.n, sizeof(component->assignments.p[0]),
	      by_bound);
	component->chosen = &component->assignments.p[0];
	return true;
}
