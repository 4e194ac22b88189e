/*
 * What the solver was asked before. Propagation makes the same few layouts thousands of times, and
 * asks the same questions about them: a layout of one value is kept once, and answers are kept by
 * the values that they depend on. Trials of a launch share the memory of the solver that tries.
 */
#include "analyzer/solve/solve_internal.h"

#include <string.h>

uint64_t solve_layout_hash(const struct layout *layout)
{
	uint64_t hash =
		hash_mix((uint64_t)layout->kind, (uint64_t)layout->elem_bits << 8 | layout->rank);

	if (layout->table || layout->table_threads)
		return hash_mix(hash, (uint64_t)(uintptr_t)layout);
	for (uint32_t d = 0; d < layout->rank; d++)
		hash = hash_mix(hash, (uint64_t)layout->shape[d]);
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];

		hash = hash_mix(hash, (uint64_t)digit->dim << 56 ^ (uint64_t)digit->axis << 52 ^
		                          (uint64_t)digit->div << 26 ^ (uint64_t)digit->extent);
		hash = hash_mix(hash, (uint64_t)digit->stride);
	}
	for (uint32_t x = 0; x < layout->n_xors; x++)
		hash = hash_mix(hash, (uint64_t)layout->xors[x].from_bit << 16 |
		                          (uint64_t)layout->xors[x].to_bit << 8 | layout->xors[x].n_bits);
	return hash_mix(hash, (uint64_t)layout->n_replicas);
}

const struct layout *solve_intern(struct solver *solver, const struct layout *layout,
                                  struct arena_mark mark)
{
	uint64_t key;
	const struct layout *known;

	if (!layout)
		return NULL;
	key = solve_layout_hash(layout);
	known = map_get(&solver->memo->layouts, key);
	if (known) {
		arena_release(solver->arena, mark);
		return known;
	}
	map_set(solver->arena, &solver->memo->layouts, key, (void *)(uintptr_t)layout);
	return layout;
}

const struct layout *solve_project(struct solver *solver, const struct layout *source,
                                   uint32_t rank, const struct projection *dims)
{
	struct arena_mark mark = arena_mark(solver->arena);

	return solve_intern(solver, layout_project(solver->arena, source, rank, dims), mark);
}

/* ---- owners ---- */

static bool has_thread(const struct layout *layout, const int64_t *index, int64_t thread)
{
	for (int64_t r = 0; r < layout->n_replicas; r++)
		if (layout_at(layout, index, r).thread == thread)
			return true;
	return false;
}

static struct use_check owners_within(const struct layout *a, const struct layout *b)
{
	struct use_check check = { .ok = true };
	int64_t index[MAX_RANK] = { 0 };

	do
		for (int64_t r = 0; r < a->n_replicas; r++) {
			int64_t thread = layout_at(a, index, r).thread;

			if (has_thread(b, index, thread))
				continue;
			check.ok = false;
			memcpy(check.owner.element, index, sizeof(index));
			check.owner.thread = thread;
			check.owner.owner = layout_at(b, index, 0).thread;
			return check;
		}
	while (layout_next_index(a, index));
	return check;
}

const struct use_check *solve_owners_within(struct solver *solver, const struct layout *a,
                                            const struct layout *b)
{
	uint64_t key = hash_mix(solve_layout_hash(a), solve_layout_hash(b));
	struct use_check *check = map_get(&solver->memo->owners, key);

	if (!check) {
		check = arena_new(solver->arena, struct use_check);
		*check = owners_within(a, b);
		map_set(solver->arena, &solver->memo->owners, key, check);
	}
	return check;
}
