/*
 * Roles: the ranges of a block's threads that run a part of the kernel.
 *
 *     with T.ws(1):                    if 128 <= tx < 256
 *         T.gemm(A, B, C)              4 warps, threads 128 .. 255; C lives in these alone
 *
 * A condition on the thread number alone that a run of whole warps satisfies makes a role. What
 * runs in a role is partitioned over its threads, counted from its first one; so are the layouts of
 * its fragments. A component (spaces that share fragments) has one role. A fill is done by
 * whoever has the fragment, since the others would fill registers that nobody reads.
 */
#include "analyzer/solve/solve_internal.h"

#include <inttypes.h>

enum { MAX_ROLES = 32 };

/* ---- ranges ---- */

struct other_search {
	const struct launch *launch;
	bool found; /* something beside thread numbers */
};

static void visit_other(void *user, const struct expr *e)
{
	struct other_search *search = user;

	if (e->kind == EXPR_VAR)
		search->found |= e->as.var != search->launch->thread[0] &&
		                 e->as.var != search->launch->thread[1] &&
		                 e->as.var != search->launch->thread[2];
}

/* threadIdx of flat thread `t`; the extent of the last dimension does not matter. */
static void set_thread(const struct launch *launch, int64_t *values, int64_t t)
{
	bool is_flat = launch->threads[1] * launch->threads[2] == 1;

	for (int axis = 0; axis < 3; axis++) {
		int64_t extent = launch->threads[axis];

		if (launch->thread[axis])
			values[launch->thread[axis]->id] = is_flat ? (axis ? 0 : t) : t % extent;
		t /= extent;
	}
}

bool thread_range_narrow(const struct tile_program *program, const struct launch *launch,
                         const struct branch_taken *branch, struct thread_range *range)
{
	struct other_search search = { launch, false };
	int64_t *values = arena_array(program->cx->arena, int64_t, expr_n_vars(program->pool) + 1u);
	struct thread_range found = { -1, 0 };

	expr_walk(branch->condition, visit_other, &search);
	if (search.found || !branch->condition->is_index)
		return false;
	for (int64_t t = range->first; t < range->first + range->n; t++) {
		set_thread(launch, values, t);
		if ((expr_eval_int(branch->condition, values) != 0) != branch->holds)
			continue;
		if (found.n == 0)
			found.first = t;
		else if (t != found.first + found.n)
			return false;
		found.n++;
	}
	if (found.n == 0 || found.first % LANES != 0 || found.n % LANES != 0)
		return found.n == range->n;
	*range = found;
	return true;
}

/* ---- the solver's role ---- */

/* Trials write accesses in the same variables, so that equal ones are equal objects. */
static struct access_space *access_of(struct solver *solver, struct thread_range range)
{
	uint64_t key = hash_mix((uint64_t)range.first, (uint64_t)range.n);
	struct access_space *space = map_get(&solver->memo->ranges, key);

	if (!space) {
		space = arena_new(solver->arena, struct access_space);
		access_space_init(space, solver->cx, solver->pool, range.n);
		map_set(solver->arena, &solver->memo->ranges, key, space);
	}
	return space;
}

uint32_t solve_role(struct solver *solver, struct thread_range range)
{
	struct role *role;

	for (uint32_t r = 0; r < solver->roles.n; r++)
		if (solver->roles.p[r]->range.first == range.first &&
		    solver->roles.p[r]->range.n == range.n)
			return r;
	if (solver->roles.n == MAX_ROLES)
		return 0;
	role = arena_new(solver->arena, struct role);
	role->range = range;
	role->access = access_of(solver, range);
	vec_push(solver->arena, &solver->roles, role);
	return solver->roles.n - 1;
}

void solve_enter_role(struct solver *solver, uint32_t role)
{
	if (solver->role == role)
		return;
	solver->role = role;
	solver->access = solver->roles.p[role]->access;
	solver->n_threads = solver->roles.p[role]->range.n;
}

/* ---- roles of components ---- */

static bool report_two_roles(struct solver *solver, const struct buffer *buffer, uint32_t a,
                             uint32_t b, struct span span)
{
	const struct thread_range *first = &solver->roles.p[a]->range,
							  *second = &solver->roles.p[b]->range;

	diag_report(&solver->cx->diags, DIAG_E0411, span,
	            "%s lives in the registers of threads %" PRId64 " to %" PRId64
	            ", here threads %" PRId64 " to %" PRId64 " use it",
	            sym_text(solver->cx->names, buffer->name), first->first,
	            first->first + first->n - 1, second->first, second->first + second->n - 1);
	diag_note(&solver->cx->diags, buffer->span, "%s is allocated here",
	          sym_text(solver->cx->names, buffer->name));
	diag_help(&solver->cx->diags, "copy it through shared memory, or give each group of threads a "
	                              "fragment of its own");
	return false;
}

/* The role of a fragment; NO_ROLE so far. */
static bool claim(struct solver *solver, uint32_t *of_buffer, const struct buffer *buffer,
                  uint32_t role, struct span span)
{
	uint32_t *known = &of_buffer[buffer->id];

	if (buffer->scope != SCOPE_FRAGMENT || *known == role)
		return true;
	if (*known == NO_ROLE)
		*known = role;
	else
		return report_two_roles(solver, buffer, *known, role, span);
	return true;
}

static bool claim_gemms(struct solver *solver, uint32_t *of_buffer)
{
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct gemm_use *use = solver->gemms.p[g];
		const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;
		const struct region *regions[] = { &gemm->a, &gemm->b, &gemm->c };

		for (int i = 0; i < 3; i++)
			if (!claim(solver, of_buffer, regions[i]->buffer, use->role, use->stmt->span))
				return false;
	}
	return true;
}

/* Spaces in order, fills last: they take the role of their fragment. */
static bool claim_spaces(struct solver *solver, uint32_t *of_buffer, bool fills)
{
	for (uint32_t s = 0; s < solver->spaces.n; s++) {
		struct space *space = solver->spaces.p[s];

		if ((space->kind == SPACE_FILL) != fills)
			continue;
		for (uint32_t u = 0; u < space->uses.n; u++) {
			const struct buffer *buffer = space->uses.p[u].buffer;

			if (fills && buffer->scope == SCOPE_FRAGMENT && of_buffer[buffer->id] != NO_ROLE)
				space->role = of_buffer[buffer->id];
			if (!claim(solver, of_buffer, buffer, space->role, space->uses.p[u].span))
				return false;
		}
	}
	return true;
}

bool solve_assign_roles(struct solver *solver)
{
	uint32_t n = solver->program->buffers.n;
	uint32_t *of_buffer = arena_array(solver->arena, uint32_t, n);

	for (uint32_t b = 0; b < n; b++)
		of_buffer[b] = NO_ROLE;
	if (!claim_gemms(solver, of_buffer) || !claim_spaces(solver, of_buffer, false) ||
	    !claim_spaces(solver, of_buffer, true))
		return false;
	for (uint32_t c = 0; c < solver->components.n; c++)
		if (solver->components.p[c]->spaces.n)
			solver->components.p[c]->role = solver->components.p[c]->spaces.p[0]->role;
	return true;
}
