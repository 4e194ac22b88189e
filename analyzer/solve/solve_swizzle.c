/*
 * A swizzle made for one shared buffer, when the usual candidates leave excess wavefronts.
 *
 * The buffer's accesses under the row-major layout say which element every lane touches; they are
 * tabulated and given to swizzle_search, which looks at every Swizzle<B,M,S> and at layouts linear
 * over F2 (docs/swizzles.md). What it finds is one more candidate, weighed like the others by the
 * accesses that it really gets. Bounded: large tables are left alone, and the answer is remembered,
 * since the same accesses come again and again while partitions are tried.
 */
#include "analyzer/solve/solve_internal.h"

#include "analyzer/layout/swizzle_search.h"

#include <string.h>

enum { MAX_TABLE_ENTRIES = 1 << 17, MAX_LAYOUTS = 400 };

/* One access while it is tabulated. */
struct tabulation {
	struct solver *solver;
	const struct access *access;
	struct expr_code *offset, *predicate;
	int64_t *values, *threads, *offsets, *active;
	int64_t elem_bytes, n_elems;
	int32_t *at; /* the next entry */
	uint32_t n_slots;
};

static int64_t n_iterations(const struct access *access)
{
	int64_t n = 1;

	for (uint32_t i = 0; i < access->n_iters; i++)
		n *= access->iters[i].extent;
	return n;
}

/* Slots of one thread: consecutive elements. False when it reaches outside the tile. */
static bool add_thread(struct tabulation *t, int64_t thread)
{
	bool active = thread < t->solver->n_threads && t->active[thread];
	int64_t first = active ? t->offsets[thread] / t->elem_bytes : 0;

	if (active &&
	    (t->offsets[thread] % t->elem_bytes != 0 || first < 0 || first + t->n_slots > t->n_elems))
		return false;
	for (uint32_t s = 0; s < t->n_slots; s++)
		*t->at++ = active ? (int32_t)(first + s) : -1;
	return true;
}

static bool add_iteration(struct tabulation *t, int64_t flat)
{
	int64_t n = t->solver->n_threads;
	struct lane_values lanes = { t->solver->access->tid->id, t->threads, (int)n };

	for (uint32_t i = t->access->n_iters; i-- > 0;) {
		t->values[t->access->iters[i].var->id] = flat % t->access->iters[i].extent;
		flat /= t->access->iters[i].extent;
	}
	expr_run_lanes(t->offset, t->values, &lanes, t->offsets);
	for (int64_t i = 0; i < n; i++)
		t->active[i] = 1;
	if (t->predicate)
		expr_run_lanes(t->predicate, t->values, &lanes, t->active);
	for (int64_t thread = 0; thread < (n + LANES - 1) / LANES * LANES; thread++)
		if (!add_thread(t, thread))
			return false;
	return true;
}

static struct tabulation tabulation_open(struct solver *solver, struct arena *scratch,
                                         const struct access *access)
{
	const struct expr *predicate = access_predicate(solver->access, access);
	struct tabulation t = { .solver = solver, .access = access };
	size_t n = (size_t)solver->n_threads;

	t.offset = expr_compile(scratch, access->offset);
	t.predicate = predicate ? expr_compile(scratch, predicate) : NULL;
	t.values = arena_array(scratch, int64_t, expr_n_vars(solver->pool));
	t.threads = arena_array(scratch, int64_t, n);
	t.offsets = arena_array(scratch, int64_t, n);
	t.active = arena_array(scratch, int64_t, n);
	for (size_t i = 0; i < n; i++)
		t.threads[i] = (int64_t)i;
	return t;
}

/* False when the access has no table of this form. */
static bool add_access(struct solver *solver, struct arena *scratch,
                       const struct weighted_access *weighted, struct swizzle_problem *problem)
{
	const struct access *access = &weighted->access;
	int64_t elem_bytes = problem->elem_bits / 8;

	solve_enter_role(solver, weighted->role);
	int64_t n_warps = (solver->n_threads + LANES - 1) / LANES;
	int64_t n_slots = access->bytes / elem_bytes, n_steps = n_iterations(access) * n_warps;
	struct tile_access *out = &problem->accesses[problem->n_accesses];
	const struct expr *predicate = access_predicate(solver->access, access);
	struct tabulation t;
	int32_t *elems;

	/* Data decides where it goes. */
	if (!access->offset->is_index || (predicate && !predicate->is_index))
		return false;
	if (access->op == BANK_ATOMIC || n_slots < 1 || n_slots > SWIZZLE_MAX_SLOTS ||
	    n_steps * LANES * n_slots > MAX_TABLE_ENTRIES ||
	    problem->n_accesses == SWIZZLE_MAX_ACCESSES)
		return false;
	t = tabulation_open(solver, scratch, access);
	elems = arena_array(scratch, int32_t, (size_t)(n_steps * LANES * n_slots));
	solve_spend(solver, WORK_ENTRY, (uint64_t)(n_steps * LANES * n_slots));
	t.at = elems;
	t.n_slots = (uint32_t)n_slots;
	t.elem_bytes = elem_bytes;
	t.n_elems = 1;
	for (uint32_t d = 0; d < problem->rank; d++)
		t.n_elems *= problem->shape[d];
	for (int64_t flat = 0; flat < n_iterations(access); flat++)
		if (!add_iteration(&t, flat))
			return false;
	*out = (struct tile_access){ .op = access->op,
		                         .bytes = (uint32_t)access->bytes,
		                         .n_matrices = (uint32_t)access->n_matrices,
		                         .weight = weighted->weight,
		                         .n_steps = n_steps,
		                         .n_slots = (uint32_t)n_slots,
		                         .elems = elems };
	problem->n_accesses++;
	return true;
}

static uint64_t fingerprint(struct solver *solver, const struct buffer *buffer,
                            const struct weighted_access *accesses, uint32_t n)
{
	uint64_t key = hash_mix(buffer->id, n);

	for (uint32_t i = 0; i < n; i++) {
		const struct access *access = &accesses[i].access;
		const struct expr *predicate = access_predicate(solver->access, access);

		key = hash_mix(key, access->offset->id);
		key = hash_mix(key, predicate ? predicate->id + 1 : 0);
		key = hash_mix(key, (uint64_t)accesses[i].weight);
		key = hash_mix(key, hash_mix((uint64_t)access->op, (uint64_t)access->bytes));
	}
	return key;
}

static const struct layout *search(struct solver *solver, const struct buffer *buffer,
                                   const struct weighted_access *accesses, uint32_t n,
                                   int64_t known)
{
	struct swizzle_problem problem = { .rank = buffer->rank,
		                               .elem_bits = dtype_bits(buffer->type),
		                               .max_layouts = MAX_LAYOUTS,
		                               .known_cost = known };
	struct swizzle_answer answer = { 0 };
	struct arena *scratch = arena_open();
	bool ok = n > 0;

	for (uint32_t d = 0; d < buffer->rank; d++)
		problem.shape[d] = buffer_extent(buffer, d);
	for (uint32_t i = 0; i < n && ok; i++)
		ok = add_access(solver, scratch, &accesses[i], &problem);
	if (ok)
		swizzle_search(solver->arena, &problem, &answer);
	arena_close(scratch);
	return answer.best.layout && !answer.best.layout->table ? answer.best.layout : NULL;
}

const struct layout *solve_swizzle(struct solver *solver, const struct buffer *buffer,
                                   const struct weighted_access *accesses, uint32_t n,
                                   int64_t known_cost)
{
	uint32_t bits = dtype_bits(buffer->type);
	const struct layout **known, *layout;
	uint64_t key;

	if (buffer->rank == 0 || bits < 8 || bits > 128 || (bits & (bits - 1)) != 0)
		return NULL;
	key = fingerprint(solver, buffer, accesses, n);
	known = map_get(&solver->memo->swizzles, key);
	if (known)
		return *known;
	solve_spend(solver, WORK_SWIZZLE, 1);
	layout = search(solver, buffer, accesses, n, known_cost);
	layout = solve_intern(solver, layout, arena_mark(solver->arena));
	known = arena_new(solver->arena, const struct layout *);
	*known = layout;
	map_set(solver->arena, &solver->memo->swizzles, key, known);
	return layout;
}
