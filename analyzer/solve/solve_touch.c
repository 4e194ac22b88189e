/*
 * What touches a shared buffer, and what that costs under a layout.
 *
 * A buffer's cost under a layout is a sum over the spaces and gemms that touch it, and each term
 * depends on that space's partition and the layout alone:
 *
 *     A_shared    copy A -> A_shared under its partition    cp.async of 16 bytes    1024 cycles
 *                 operand A of T.gemm, 2 x 2 warps          ldmatrix.x4             2560 cycles
 *
 * So a term is derived and counted once, however many combinations of other partitions, or trials
 * of the launch, ask for it again.
 */
#include "analyzer/solve/solve_internal.h"
#include "analyzer/tile/alias.h"

#include <assert.h>

struct access_cost solve_count(struct solver *solver, const struct access *access)
{
	const struct expr *predicate = access_predicate(solver->access, access);
	uint64_t key = hash_mix(access->offset->id, predicate ? predicate->id + 1 : 0);
	struct access_cost *cost;

	key = hash_mix(key, solver->access->tid->id);
	key = hash_mix(key, hash_mix((uint64_t)access->op,
	                             hash_mix((uint64_t)access->bytes, (uint64_t)access->n_matrices)));
	for (uint32_t i = 0; i < access->n_iters; i++)
		key = hash_mix(key, (uint64_t)access->iters[i].extent);
	cost = map_get(&solver->memo->wavefronts, key);
	if (!cost) {
		cost = arena_new(solver->arena, struct access_cost);
		*cost = access_count(solver->access, access);
		solve_spend(solver, WORK_LANE, (uint64_t)cost->n_looked_at);
		map_set(solver->arena, &solver->memo->wavefronts, key, cost);
	}
	return *cost;
}

/* ---- who touches what ---- */

static void add_touch(struct solver *solver, const struct buffer *buffer, struct touch touch)
{
	if (buffer->scope != SCOPE_SHARED)
		return;
	if (touch.space)
		touch.space->touches_shared = true;
	vec_push(solver->arena, &solver->touched[alias_owner(buffer)->id].by, touch);
}

/* All that decides which accesses a space makes, its partition and the layouts excepted. */
static uint64_t space_key(const struct solver *solver, const struct space *space)
{
	const struct thread_range *range = &solver->roles.p[space->role]->range;
	uint64_t key = hash_mix(space->stmt->id, (uint64_t)space->kind);

	key = hash_mix(key, hash_mix((uint64_t)range->first, (uint64_t)range->n));
	for (uint32_t u = 0; u < space->uses.n; u++)
		key = hash_mix(key, (uint64_t)space->uses.p[u].buffer->scope);
	return key;
}

void solve_find_touches(struct solver *solver)
{
	solver->touched = arena_array(solver->arena, struct touched, solver->program->buffers.n);
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct op_gemm *gemm = &solver->gemms.p[g]->stmt->as.op.as.gemm;

		for (uint32_t which = 0; which < 2; which++)
			add_touch(solver, which == 0 ? gemm->a.buffer : gemm->b.buffer,
			          (struct touch){ .gemm = solver->gemms.p[g], .which = which });
	}
	for (uint32_t s = 0; s < solver->spaces.n; s++) {
		struct space *space = solver->spaces.p[s];

		space->key = space_key(solver, space);
		for (uint32_t u = 0; u < space->uses.n; u++)
			add_touch(solver, space->uses.p[u].buffer,
			          (struct touch){ .space = space, .which = u });
	}
}

int64_t solve_touch_weight(const struct touch *touch)
{
	return touch->space ? touch->space->weight : touch->gemm->weight;
}

/* ---- one of them under one layout ---- */

static uint64_t touch_key(const struct solver *solver, const struct touch *touch,
                          const struct layout *layout)
{
	uint64_t key = hash_mix(solve_layout_hash(layout), touch->which);
	const struct gemm_plan *plan;

	if (touch->space)
		return hash_mix(hash_mix(key, touch->space->key),
		                solve_layout_hash(solver->space_layout[touch->space->id]));
	plan = &touch->gemm->plan;
	key = hash_mix(key, hash_mix(touch->gemm->stmt->id, (uint64_t)plan->shape));
	key = hash_mix(key, hash_mix((uint64_t)plan->warps_m, (uint64_t)plan->warps_n));
	return hash_mix(key, hash_mix((uint64_t)plan->wgmma_n, solver->access->tid->id));
}

static void add_access(struct known_touch *known, const struct access *access)
{
	assert(known->n < MAX_TOUCH_ACCESSES);
	known->accesses[known->n++] = *access;
}

/* Warpgroup instructions read the same under every layout that they can read: no access of threads.
 */
static void find_gemm_accesses(struct solver *solver, const struct touch *touch,
                               const struct layout *layout, struct known_touch *known)
{
	const struct gemm_use *use = touch->gemm;
	const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;
	const struct buffer *operand = touch->which == 0 ? gemm->a.buffer : gemm->b.buffer;
	const struct operand_ref ref = { gemm, &use->plan, (int)touch->which,
		                             solve_view_layout(solver, operand, layout) };

	if (use->plan.wgmma_n)
		known->cost = access_wgmma_count(&use->plan, (int)touch->which);
	else
		known->n = access_gemm_operand(solver->access, &ref, known->accesses);
}

static void find_space_accesses(struct solver *solver, const struct touch *touch,
                                const struct layout *layout, struct known_touch *known)
{
	const struct space *space = touch->space;
	const struct use *use = &space->uses.p[touch->which];
	const struct layout *partition = solver->space_layout[space->id];
	struct loop_plan loop = solve_loop_plan(space, partition);
	struct elem_ref ref = { &loop, space->vars, use->buffer, layout, use->index };
	struct access access;

	ref.layout = layout = solve_view_layout(solver, use->buffer, layout);
	if (space->kind == SPACE_COPY) {
		solve_copy_plan(solver, space, layout, &access);
		add_access(known, &access);
		return;
	}
	if (use->is_load) {
		access_elementwise(solver->access, &ref, false, 0, &access);
		add_access(known, &access);
	}
	if (use->is_store) {
		int64_t max_bytes = use->is_conditional ? dtype_bits(use->buffer->type) / 8 : 0;

		if (use->atomic && max_bytes == 0)
			max_bytes = access_atomic_bytes(solver->target, use->buffer, use->atomic);
		access_elementwise(solver->access, &ref, true, max_bytes, &access);
		access.op = use->atomic ? BANK_ATOMIC : BANK_ST;
		add_access(known, &access);
	}
}

const struct known_touch *solve_touch(struct solver *solver, const struct touch *touch,
                                      const struct layout *layout)
{
	struct known_touch *known;
	uint64_t key;

	solve_enter_role(solver, touch->space ? touch->space->role : touch->gemm->role);
	key = touch_key(solver, touch, layout);
	known = map_get(&solver->memo->touches, key);
	if (known)
		return known;
	solve_spend(solver, WORK_ACCESS, 1);
	known = arena_new(solver->arena, struct known_touch);
	if (touch->gemm)
		find_gemm_accesses(solver, touch, layout, known);
	else
		find_space_accesses(solver, touch, layout, known);
	for (uint32_t i = 0; i < known->n; i++) {
		struct access_cost cost = solve_count(solver, &known->accesses[i]);

		known->cost.executions += cost.executions;
		known->cost.wavefronts += cost.wavefronts;
		known->cost.ideal += cost.ideal;
	}
	map_set(solver->arena, &solver->memo->touches, key, known);
	return known;
}
