/*
 * One choice a component, with the layouts of shared buffers by exact wavefronts: branch and bound.
 *
 * Components that touch no shared buffer together do not matter to each other, so each cluster of
 * those that do is searched for itself, and costs add up:
 *
 *     copy A -> A_shared | copy B -> B_shared | copy S -> S_shared, loop over S_shared
 *
 * Within a cluster, components are decided one after another. A choice's fixed cost is exact, its
 * accesses of shared memory cost at least what conflict-free ones would; once all components that
 * touch a buffer are decided, its exact cost takes the place of that bound. A component's choices
 * are sorted by bound, and of those that touch shared buffers alike only the cheapest is looked at,
 * so the first combination is often proved optimal by the bound of the next one. What a launch may
 * look at is limited (solve_work.c); after that the answer is the best found with its bound.
 */
#include "analyzer/solve/solve_internal.h"
#include "analyzer/tile/alias.h"

#include <math.h>
#include <string.h>

/* A shared buffer of a cluster. */
struct placed {
	const struct buffer *buffer;
	int last; /* component of the cluster that decides it; -1: none touches it */
	struct shared_choice *choice; /* under the present partitions */
	struct shared_choice *best;
};

struct cluster {
	vec_of(struct component *) components;
	vec_of(struct placed) buffers;
	const struct assignment ***live; /* by component: the choices to look at */
	uint32_t *n_live;
	const struct assignment **chosen, **best;
	double bound; /* of everything, before anything is decided */
};

/* Cycles that are no difference: sums in another order. */
static const double ROUNDING = 1e-6;

struct search {
	struct solver *solver;
	struct cluster *cluster;
	double best_cost; /* of the cluster; before one is found what it must stay below */
	bool found;
	double least_open; /* least bound of what was not looked at */
};

/* ---- bounds ---- */

/* Least wavefronts and instructions of what a gemm reads: the same for every choice. */
static double operand_bound(const struct gemm_use *use, int which)
{
	const struct gemm_plan *plan = &use->plan;
	double k_steps, tiles;

	if (plan->wgmma_n) {
		struct access_cost cost = access_wgmma_count(plan, which);

		return (double)use->weight * (double)(cost.wavefronts + cost.executions);
	}
	k_steps = (double)(plan->k / mma_shape_info(plan->shape)->k);
	tiles = which == 0 ? (double)(plan->m / 16 * plan->warps_n)
	                   : (double)(plan->n / 16 * plan->warps_m);
	return (double)use->weight * k_steps * tiles * (4 + 1);
}

/* What the cluster's bound holds for a buffer under the present partitions. */
static double share_of(const struct solver *solver, const struct buffer *buffer)
{
	const struct touched *touched = &solver->touched[buffer->id];
	double share = 0;

	for (uint32_t i = 0; i < touched->by.n; i++) {
		const struct touch *touch = &touched->by.p[i];
		const struct space *space = touch->space;

		share +=
			space ? (double)space->weight * solve_shared_bound(space, &space->uses.p[touch->which],
		                                                       solver->space_layout[space->id])
				  : operand_bound(touch->gemm, (int)touch->which);
	}
	return share;
}

static bool is_worse(const struct search *search, double bound)
{
	return bound >= search->best_cost - ROUNDING;
}

static double bound_of(const struct assignment *assignment)
{
	return assignment->fixed_cost + assignment->shared_bound;
}

/* ---- one cluster ---- */

static void apply(struct solver *solver, const struct component *component,
                  const struct assignment *assignment)
{
	for (uint32_t s = 0; s < component->spaces.n; s++)
		solver->space_layout[component->spaces.p[s]->id] = assignment->spaces[s];
	for (uint32_t f = 0; f < component->fragments.n; f++)
		solver->fragment_layout[component->fragments.p[f]->id] = assignment->fragments[f];
}

/*
 * Buffers that component `c` decides: their exact costs in place of their shares of `bound`. What
 * reaches the best cost is given up at once.
 */
static double decide(struct search *search, int c, double bound)
{
	struct solver *solver = search->solver;
	struct cluster *cluster = search->cluster;

	for (uint32_t b = 0; b < cluster->buffers.n && !is_worse(search, bound); b++) {
		struct placed *placed = &cluster->buffers.p[b];

		if (placed->last != c)
			continue;
		placed->choice = solve_shared(solver, placed->buffer);
		bound += placed->choice->least - share_of(solver, placed->buffer);
	}
	for (uint32_t b = 0; b < cluster->buffers.n && !is_worse(search, bound); b++) {
		struct placed *placed = &cluster->buffers.p[b];

		if (placed->last != c)
			continue;
		bound -= placed->choice->least;
		solve_settle(solver, placed->buffer, placed->choice);
		bound += placed->choice->least;
	}
	return bound;
}

static void keep_best(struct search *search, double cost)
{
	struct cluster *cluster = search->cluster;

	search->best_cost = cost;
	search->found = true;
	memcpy(cluster->best, cluster->chosen, cluster->components.n * sizeof(cluster->best[0]));
	for (uint32_t b = 0; b < cluster->buffers.n; b++)
		cluster->buffers.p[b].best = cluster->buffers.p[b].choice;
}

/* Components from `c` on; `bound` is that of all, with those before decided. When the work is used
 * up, what is left open is remembered by its bound. */
static void branch(struct search *search, uint32_t c, double bound)
{
	struct cluster *cluster = search->cluster;
	const struct component *component;

	if (c == cluster->components.n) {
		keep_best(search, bound);
		return;
	}
	component = cluster->components.p[c];
	for (uint32_t a = 0; a < cluster->n_live[c]; a++) {
		const struct assignment *assignment = cluster->live[c][a];
		double least = bound + bound_of(assignment) - bound_of(cluster->live[c][0]);

		if (is_worse(search, least))
			return; /* sorted: the others are no better */
		if (search->found && solve_is_spent(search->solver)) {
			search->least_open = fmin(search->least_open, least);
			return;
		}
		cluster->chosen[c] = assignment;
		apply(search->solver, component, assignment);
		solve_spend(search->solver, WORK_NODE, 1);
		least = decide(search, (int)c, least);
		if (!is_worse(search, least))
			branch(search, c + 1, least);
	}
}

/* ---- clusters ---- */

static uint32_t find_root(uint32_t *parent, uint32_t i)
{
	while (parent[i] != i) {
		parent[i] = parent[parent[i]];
		i = parent[i];
	}
	return i;
}

/* Components that touch one shared buffer belong together. `parent`: components, then buffers. */
static void join_components(const struct solver *solver, uint32_t *parent)
{
	uint32_t n = solver->components.n, n_buffers = solver->program->buffers.n;

	for (uint32_t i = 0; i < n + n_buffers; i++)
		parent[i] = i;
	for (uint32_t b = 0; b < n_buffers; b++)
		for (uint32_t i = 0; i < solver->touched[b].by.n; i++)
			if (solver->touched[b].by.p[i].space)
				parent[find_root(parent, n + b)] =
					find_root(parent, solver->touched[b].by.p[i].space->component);
}

/* The choices of component `c` that differ in what touches shared buffers, the cheapest of each. */
static void find_live(struct solver *solver, struct cluster *cluster, uint32_t c)
{
	const struct component *component = cluster->components.p[c];
	struct map seen = { 0 };

	cluster->live[c] =
		arena_array(solver->arena, const struct assignment *, component->assignments.n);
	for (uint32_t a = 0; a < component->assignments.n; a++) {
		const struct assignment *assignment = &component->assignments.p[a];
		struct map_entry *entry;
		uint64_t key = 0;

		for (uint32_t s = 0; s < component->spaces.n; s++)
			if (component->spaces.p[s]->touches_shared)
				key = hash_mix(key, hash_mix(s, solve_layout_hash(assignment->spaces[s])));
		entry = map_at(solver->arena, &seen, key);
		if (!entry->value.number++)
			cluster->live[c][cluster->n_live[c]++] = assignment;
	}
}

static int last_component(const struct solver *solver, const struct cluster *cluster,
                          const struct buffer *buffer)
{
	const struct touched *touched = &solver->touched[buffer->id];
	int last = -1;

	for (uint32_t i = 0; i < touched->by.n; i++)
		for (uint32_t c = 0; touched->by.p[i].space && c < cluster->components.n; c++)
			if (cluster->components.p[c]->id == touched->by.p[i].space->component && (int)c > last)
				last = (int)c;
	return last;
}

static void open_cluster(struct solver *solver, struct cluster *cluster)
{
	uint32_t n = cluster->components.n;

	cluster->live = arena_array(solver->arena, const struct assignment **, n + 1);
	cluster->n_live = arena_array(solver->arena, uint32_t, n + 1);
	cluster->chosen = arena_array(solver->arena, const struct assignment *, n + 1);
	cluster->best = arena_array(solver->arena, const struct assignment *, n + 1);
	for (uint32_t c = 0; c < n; c++) {
		find_live(solver, cluster, c);
		apply(solver, cluster->components.p[c], cluster->live[c][0]);
		cluster->bound += bound_of(cluster->live[c][0]);
	}
	for (uint32_t b = 0; b < cluster->buffers.n; b++) {
		struct placed *placed = &cluster->buffers.p[b];
		const struct touched *touched = &solver->touched[placed->buffer->id];

		placed->last = last_component(solver, cluster, placed->buffer);
		for (uint32_t i = 0; i < touched->by.n; i++)
			if (touched->by.p[i].gemm)
				cluster->bound += operand_bound(touched->by.p[i].gemm, (int)touched->by.p[i].which);
	}
}

struct clusters {
	vec_of(struct cluster *) items;
	double bound;
};

static struct cluster *cluster_at(struct solver *solver, struct clusters *clusters,
                                  struct cluster **of_root, uint32_t root)
{
	if (!of_root[root]) {
		of_root[root] = arena_new(solver->arena, struct cluster);
		vec_push(solver->arena, &clusters->items, of_root[root]);
	}
	return of_root[root];
}

static struct clusters find_clusters(struct solver *solver)
{
	uint32_t n = solver->components.n, n_buffers = solver->program->buffers.n;
	uint32_t *parent = arena_array(solver->arena, uint32_t, n + n_buffers);
	struct cluster **of_root = arena_array(solver->arena, struct cluster *, n + n_buffers);
	struct clusters clusters = { .bound = 0 };

	join_components(solver, parent);
	for (uint32_t c = 0; c < n; c++)
		vec_push(solver->arena,
		         &cluster_at(solver, &clusters, of_root, find_root(parent, c))->components,
		         solver->components.p[c]);
	for (uint32_t b = 0; b < n_buffers; b++) {
		struct placed placed = { .buffer = solver->program->buffers.p[b] };

		if (solve_uses_shared(solver, placed.buffer))
			vec_push(solver->arena,
			         &cluster_at(solver, &clusters, of_root, find_root(parent, n + b))->buffers,
			         placed);
	}
	for (uint32_t i = 0; i < clusters.items.n; i++) {
		open_cluster(solver, clusters.items.p[i]);
		clusters.bound += clusters.items.p[i]->bound;
	}
	return clusters;
}

/* The best choices, everywhere where they are looked for. */
static void keep_cluster(struct solver *solver, const struct cluster *cluster)
{
	for (uint32_t c = 0; c < cluster->components.n; c++) {
		cluster->components.p[c]->chosen = cluster->best[c];
		apply(solver, cluster->components.p[c], cluster->best[c]);
	}
	for (uint32_t b = 0; b < cluster->buffers.n; b++) {
		const struct placed *placed = &cluster->buffers.p[b];
		struct buffer_solution *out = &solver->solution->buffers[placed->buffer->id];

		out->candidates.p = placed->best->solution.candidates.p;
		out->candidates.n = placed->best->solution.candidates.n;
		out->layout = out->candidates.p[0].layout;
	}
}

/* Views get what their owners' layouts make of them. */
static void set_views(struct solver *solver)
{
	struct buffer_solution *out = solver->solution->buffers;

	for (uint32_t b = 0; b < solver->program->buffers.n; b++) {
		const struct buffer *view = solver->program->buffers.p[b], *owner = alias_owner(view);

		if (view->scope == SCOPE_SHARED && owner != view && out[owner->id].layout &&
		    view->launch == solver->launch->index)
			out[b].layout = solve_view_layout(solver, view, out[owner->id].layout);
	}
}

bool solve_search(struct solver *solver)
{
	struct clusters clusters = find_clusters(solver);
	struct solution *solution = solver->solution;
	double rest = clusters.bound; /* of clusters that were not searched yet */
	double limit = solver->trial && solver->trial->limit > 0
	                   ? solver->trial->limit - solve_tensor_cost(solver)
	                   : HUGE_VAL;

	solution->status = solver->exhausted ? SOLVE_BEST_FOUND : SOLVE_OPTIMAL;
	solution->is_partial = solver->exhausted;
	for (uint32_t i = 0; i < clusters.items.n; i++) {
		struct cluster *cluster = clusters.items.p[i];

		rest -= cluster->bound;
		struct search search = { .solver = solver,
			                     .cluster = cluster,
			                     .best_cost = limit - solution->cost - rest,
			                     .least_open = HUGE_VAL };
		double bound;

		bound = decide(&search, -1, cluster->bound);
		if (!is_worse(&search, bound))
			branch(&search, 0, bound);
		if (!search.found) {
			solution->status = SOLVE_CONFLICT;
			break;
		}
		keep_cluster(solver, cluster);
		solution->cost += search.best_cost;
		solution->bound += fmin(search.best_cost, search.least_open);
		if (!is_worse(&search, search.least_open))
			solution->status = SOLVE_BEST_FOUND;
	}
	if (solution->status != SOLVE_CONFLICT)
		set_views(solver);
	solve_enter_role(solver, 0);
	return solution->status != SOLVE_CONFLICT;
}
