/*
 * From the chosen partitions and layouts to the solution's plans.
 */
#include "analyzer/solve/solve_internal.h"

#include "analyzer/layout/place_map.h"
#include "analyzer/tile/alias.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* The operand of a copy by direction; NULL for thread-local buffers. */
static const struct use *side(const struct space *space, bool store)
{
	for (uint32_t u = 0; u < space->uses.n; u++)
		if (store ? space->uses.p[u].is_store : space->uses.p[u].is_load)
			return &space->uses.p[u];
	return NULL;
}

/* One side of a copy: its operand and, in shared memory, its layout. */
struct copy_side {
	const struct use *use;
	const struct layout *layout;
};

/* The widest access to one side under the space's partition goes to `out`; its bytes. */
static int64_t access_bytes(struct solver *solver, const struct space *space, struct copy_side at,
                            int64_t max_bytes, struct access *out)
{
	const struct layout *partition = solver->space_layout[space->id];
	struct loop_plan loop = solve_loop_plan(space, partition);
	struct elem_ref ref = { &loop, space->vars, at.use->buffer, at.layout, at.use->index };

	access_elementwise(solver->access, &ref, at.use->is_store, max_bytes, out);
	return out->bytes;
}

/* Bytes of one access to the copy's global side, remembered for each partition. */
static int64_t global_bytes(struct solver *solver, const struct space *space, const struct use *use)
{
	uint64_t key = hash_mix(space->id + 1, (uint64_t)(uintptr_t)solver->space_layout[space->id]);
	struct map_entry *entry = map_at(solver->arena, &solver->global_bytes, key);
	struct access access;

	if (entry->value.number == 0)
		entry->value.number =
			(uint64_t)access_bytes(solver, space, (struct copy_side){ use, NULL }, 0, &access);
	return (int64_t)entry->value.number;
}

static bool may_be_async(const struct solver *solver, const struct use *src, const struct use *dst)
{
	return solver->target->has_cp_async && src && dst && src->buffer->scope == SCOPE_GLOBAL &&
	       dst->buffer->scope == SCOPE_SHARED && dtype_equal(src->buffer->type, dst->buffer->type);
}

/* A plan and the access to its shared side, remembered for (space, partition, shared layout). */
struct known_copy {
	struct copy_plan plan;
	struct access shared_access;
};

static struct copy_plan make_copy_plan(struct solver *solver, const struct space *space,
                                       const struct layout *shared, struct access *shared_access)
{
	const struct use *src = side(space, false), *dst = side(space, true);
	const struct use *on_shared = src && src->buffer->scope == SCOPE_SHARED   ? src
	                              : dst && dst->buffer->scope == SCOPE_SHARED ? dst
	                                                                          : NULL;
	const struct use *on_global = src && src->buffer->scope == SCOPE_GLOBAL   ? src
	                              : dst && dst->buffer->scope == SCOPE_GLOBAL ? dst
	                                                                          : NULL;
	const struct layout *partition = solver->space_layout[space->id];
	struct copy_plan plan = { .kind = COPY_LOOP, .loop = solve_loop_plan(space, partition) };
	int64_t both;

	if (on_global)
		plan.bytes = global_bytes(solver, space, on_global);
	if (may_be_async(solver, src, dst)) {
		both = access_bytes(solver, space, (struct copy_side){ dst, shared }, plan.bytes,
		                    shared_access);
		plan.kind = both >= 4 ? COPY_CP_ASYNC : COPY_STAGED;
		if (plan.kind == COPY_CP_ASYNC)
			plan.bytes = both;
		shared_access->op = plan.kind == COPY_CP_ASYNC ? BANK_CP_ASYNC : BANK_ST;
	}
	if (on_shared && plan.kind != COPY_CP_ASYNC) {
		both =
			access_bytes(solver, space, (struct copy_side){ on_shared, shared }, 0, shared_access);
		if (!on_global)
			plan.bytes = both;
	}
	return plan;
}

struct copy_plan solve_copy_plan(struct solver *solver, const struct space *space,
                                 const struct layout *shared, struct access *shared_access)
{
	uint64_t key = hash_mix(space->id + 1, (uint64_t)(uintptr_t)solver->space_layout[space->id]);
	struct map_entry *entry;
	struct known_copy *known;

	entry = map_at(solver->arena, &solver->copies, hash_mix(key, (uint64_t)(uintptr_t)shared));
	known = entry->value.pointer;
	if (!known) {
		known = arena_new(solver->arena, struct known_copy);
		entry->value.pointer = known;
		known->plan = make_copy_plan(solver, space, shared, &known->shared_access);
	}
	*shared_access = known->shared_access;
	return known->plan;
}

/* ---- plans ---- */

static const struct layout *shared_layout_of(const struct solver *solver, const struct space *space)
{
	for (uint32_t u = 0; u < space->uses.n; u++)
		if (space->uses.p[u].buffer->scope == SCOPE_SHARED)
			return solver->solution->buffers[space->uses.p[u].buffer->id].layout;
	return NULL;
}

/* Bytes of a partial result: narrow floats are summed in float32. */
static int64_t working_bytes(struct dtype type)
{
	return dtype_is_float(type) && dtype_bits(type) < 32 ? 4 : dtype_bits(type) / 8;
}

/* Where a reduction leaves its result: where the fragment lives, or what a conversion takes back
 * from there. */
static const struct layout *result_layout(struct solver *solver, const struct space *space)
{
	const struct use *dst = NULL;

	for (uint32_t u = 0; u < space->uses.n; u++)
		if (space->uses.p[u].is_store)
			dst = &space->uses.p[u];
	assert(dst);
	if (!dst->is_converted)
		return solver->fragment_layout[dst->buffer->id];
	return solve_seen_through(solver, solver->space_layout[space->id], dst);
}

static void record_space(struct solver *solver, const struct space *space)
{
	struct stmt_plan *plan = &solver->solution->plans[space->stmt->id];
	const struct layout *partition = solver->space_layout[space->id];
	const struct buffer *dst;
	struct access unused;

	solve_enter_role(solver, space->role);
	plan->stmt = space->stmt;
	plan->has_plan |= space->kind != SPACE_SCALAR;
	plan->threads = solver->roles.p[space->role]->range;
	switch (space->kind) {
	case SPACE_SCALAR:
		return;
	case SPACE_PARALLEL:
	case SPACE_FILL:
		plan->as.loop = solve_loop_plan(space, partition);
		break;
	case SPACE_COPY:
		plan->as.copy = solve_copy_plan(solver, space, shared_layout_of(solver, space), &unused);
		break;
	case SPACE_REDUCE:
		dst = space->stmt->as.op.as.reduce.dst.buffer;
		if (!solve_reduce_plan(solver, space, partition, working_bytes(dst->type),
		                       &plan->as.reduce))
			BUG("a reduction's partition was not checked");
		plan->as.reduce.result = result_layout(solver, space);
		break;
	case SPACE_FINALIZE:
		dst = space->stmt->as.op.as.finalize_reducer.dst.buffer;
		if (!solve_reduce_plan(solver, space, partition, working_bytes(dst->type),
		                       &plan->as.reduce))
			BUG("a reducer's layout was not checked");
		plan->as.reduce.result = solver->fragment_layout[dst->id];
		break;
	case SPACE_SCAN:
		dst = space->stmt->as.op.as.scan.dst.buffer;
		if (!solve_scan_plan(space, partition, working_bytes(dst->type), &plan->as.scan))
			BUG("a scan's partition was not checked");
		break;
	}
}

/* Constraint that relates a shared buffer to all its accesses, for the record. */
static const struct constraint *
shared_constraint(struct solver *solver, const struct buffer *buffer, const struct layout *layout)
{
	struct constraint *constraint = solve_add_constraint(solver, CONSTRAINT_SHARED, NULL, buffer);

	constraint->layout = layout;
	constraint->text =
		alias_owner(buffer) == buffer
			? arena_printf(solver->arena, "%s: least wavefronts over all readers and writers",
	                       sym_text(solver->cx->names, buffer->name))
			: arena_printf(solver->arena, "%s: the bytes of %s",
	                       sym_text(solver->cx->names, buffer->name),
	                       sym_text(solver->cx->names, alias_owner(buffer)->name));
	return constraint;
}

/* ---- why a fragment has its layout ---- */

enum { MAX_FRAGMENT_CANDIDATES = 8 };

static void add_fragment_candidate(struct solver *solver, struct buffer_solution *out,
                                   struct candidate candidate)
{
	for (uint32_t c = 0; c < out->candidates.n; c++)
		if (layout_equal(out->candidates.p[c].layout, candidate.layout, NULL))
			return;
	if (out->candidates.n < MAX_FRAGMENT_CANDIDATES)
		vec_push(solver->arena, &out->candidates, candidate);
}

/* A free fragment: the other choices of its component, by their cost without bank conflicts. */
static void record_choices(struct solver *solver, struct buffer_solution *out)
{
	for (uint32_t c = 0; c < solver->components.n; c++) {
		const struct component *component = solver->components.p[c];

		for (uint32_t f = 0; f < component->fragments.n; f++)
			for (uint32_t a = 0;
			     component->fragments.p[f] == out->buffer && a < component->assignments.n; a++)
				add_fragment_candidate(
					solver, out,
					(struct candidate){ .layout = component->assignments.p[a].fragments[f] });
	}
}

/* What a gemm dictates: what its other policies would have given, by the cost of all. */
static void record_policies(struct solver *solver, struct buffer_solution *out)
{
	for (int policy = POLICY_SQUARE; policy <= POLICY_FULL_COL; policy++) {
		struct trial trial = { .gemm = out->fixed_by->stmt,
			                   .policy = (enum gemm_policy)policy,
			                   .strict = solver->options.strict,
			                   .has_budget = true };
		const struct solution *other = solve_trial(solver, &trial);

		if (other)
			add_fragment_candidate(
				solver, out,
				(struct candidate){ .layout = other->buffers[out->buffer->id].layout,
			                        .cost = other->cost,
			                        .edit =
			                            arena_printf(solver->arena, "policy=T.GemmWarpPolicy.%s",
			                                         gemm_policy_text((enum gemm_policy)policy)) });
	}
}

/* The launch solved with each of the other layouts in turn; those that do not solve go. */
static void record_costs(struct solver *solver, struct buffer_solution *out)
{
	uint32_t n = 1;

	out->candidates.p[0].cost = solver->solution->cost;
	for (uint32_t c = 1; c < out->candidates.n; c++) {
		struct candidate candidate = out->candidates.p[c];
		struct trial trial = { .annotated = out->buffer,
			                   .layout = candidate.layout,
			                   .strict = solver->options.strict,
			                   .has_budget = true };
		const struct solution *other = solve_trial(solver, &trial);

		if (!other)
			continue;
		candidate.cost = other->cost;
		out->candidates.p[n++] = candidate;
	}
	out->candidates.n = n;
}

/* Behind the chosen one. */
static void sort_by_cost(struct buffer_solution *out)
{
	for (uint32_t c = 2; c < out->candidates.n; c++)
		for (uint32_t at = c; at > 1 && out->candidates.p[at].cost < out->candidates.p[at - 1].cost;
		     at--) {
			struct candidate swapped = out->candidates.p[at];

			out->candidates.p[at] = out->candidates.p[at - 1];
			out->candidates.p[at - 1] = swapped;
		}
}

/* Of the buffer that options.why names: the other layouts, and what the block would cost. */
static void record_why(struct solver *solver, struct buffer_solution *out)
{
	const char *why = solver->options.why;
	enum constraint_kind kind = out->fixed_by ? out->fixed_by->kind : CONSTRAINT_LOOP;

	if (!why || solver->trial || !out->layout ||
	    strcmp(why, sym_text(solver->cx->names, out->buffer->name)) != 0)
		return;
	if (out->buffer->scope == SCOPE_FRAGMENT)
		add_fragment_candidate(
			solver, out,
			(struct candidate){ .layout = out->layout, .cost = solver->solution->cost });
	if (kind == CONSTRAINT_ACCUMULATOR || kind == CONSTRAINT_OPERAND) {
		record_policies(solver, out);
	} else {
		if (out->buffer->scope == SCOPE_FRAGMENT)
			record_choices(solver, out);
		record_costs(solver, out);
	}
	sort_by_cost(out);
}

void solve_record(struct solver *solver)
{
	struct solution *solution = solver->solution;

	for (uint32_t b = 0; b < solver->program->buffers.n; b++) {
		const struct buffer *buffer = solver->program->buffers.p[b];
		struct buffer_solution *out = &solution->buffers[b];

		out->buffer = buffer;
		if (buffer->scope == SCOPE_FRAGMENT) {
			out->layout = solver->fragment_layout[b];
			out->fixed_by = solver->fragment_from[b];
			out->follows = solver->fragment_follows[b];
			record_why(solver, out);
		} else if (buffer->scope == SCOPE_GLOBAL) {
			out->layout = place_layout(solver->arena, solver->pool, buffer);
		} else if (buffer->scope == SCOPE_SHARED && out->layout) {
			out->fixed_by = solver->annotated[b] ? solver->annotated[b]
			                                     : shared_constraint(solver, buffer, out->layout);
			solve_warn_annotation(solver, out);
			record_why(solver, out);
		}
	}
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		struct stmt_plan *plan = &solution->plans[solver->gemms.p[g]->stmt->id];

		plan->stmt = solver->gemms.p[g]->stmt;
		plan->has_plan = true;
		plan->threads = solver->roles.p[solver->gemms.p[g]->role]->range;
		plan->as.gemm = solver->gemms.p[g]->plan;
	}
	for (uint32_t s = 0; s < solver->spaces.n; s++)
		record_space(solver, solver->spaces.p[s]);
	solve_record_tmas(solver);
	solve_record_conversions(solver);
	solve_enter_role(solver, 0);
}
