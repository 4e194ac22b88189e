/*
 * From the chosen partitions and layouts to the solution's plans.
 */
#include "analyzer/solve/solve_internal.h"

#include <assert.h>

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
	struct loop_plan loop = { partition, solve_vector_elems(partition) };
	struct elem_ref ref = { &loop, space->vars, at.use->buffer, at.layout, at.use->index };

	access_elementwise(&solver->access, &ref, at.use->is_store, max_bytes, out);
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
	struct copy_plan plan = { .kind = COPY_LOOP,
		                      .loop = { partition, solve_vector_elems(partition) } };
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

static void record_space(struct solver *solver, const struct space *space)
{
	struct stmt_plan *plan = &solver->solution->plans[space->stmt->id];
	const struct layout *partition = solver->space_layout[space->id];
	const struct buffer *dst;
	struct access unused;

	plan->stmt = space->stmt;
	plan->has_plan = true;
	switch (space->kind) {
	case SPACE_PARALLEL:
	case SPACE_FILL:
		plan->as.loop = (struct loop_plan){ partition, solve_vector_elems(partition) };
		break;
	case SPACE_COPY:
		plan->as.copy = solve_copy_plan(solver, space, shared_layout_of(solver, space), &unused);
		break;
	case SPACE_REDUCE:
		dst = space->stmt->as.op.as.reduce.dst.buffer;
		if (!solve_reduce_plan(solver, space, partition, dtype_bits(dst->type) / 8,
		                       &plan->as.reduce))
			BUG("a reduction's partition was not checked");
		plan->as.reduce.result = solver->fragment_layout[dst->id];
		break;
	}
}

/* Row-major with the strides as given; NULL while an extent or a stride is not known. */
static const struct layout *global_layout(struct solver *solver, const struct buffer *buffer)
{
	struct layout *layout;
	int64_t shape[MAX_RANK], stride, elem_bytes = dtype_bits(buffer->type) / 8;
	bool packed = true;

	for (uint32_t d = 0; d < buffer->rank; d++) {
		shape[d] = buffer_extent(buffer, d);
		packed &= buffer->strides[d] == NULL;
		if (shape[d] < 1)
			return NULL;
	}
	if (packed || elem_bytes == 0)
		return layout_row_major(solver->arena, buffer->rank, shape, dtype_bits(buffer->type), 0);
	layout = layout_new_memory(solver->arena, buffer->rank, shape, dtype_bits(buffer->type));
	for (uint32_t d = 0; d < buffer->rank; d++) {
		if (!buffer->strides[d] || !expr_is_int(buffer->strides[d], &stride) || stride < 0)
			return NULL;
		layout_add_digit(layout,
		                 (struct digit){ (int)d, 1, shape[d], AXIS_OFFSET, stride * elem_bytes });
	}
	layout_finish(layout);
	return layout;
}

/* Constraint that relates a shared buffer to all its accesses, for the record. */
static const struct constraint *
shared_constraint(struct solver *solver, const struct buffer *buffer, const struct layout *layout)
{
	struct constraint *constraint = solve_add_constraint(solver, CONSTRAINT_SHARED, NULL, buffer);

	constraint->layout = layout;
	constraint->text =
		arena_printf(solver->arena, "%s: least wavefronts over all readers and writers",
	                 sym_text(solver->cx->names, buffer->name));
	return constraint;
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
		} else if (buffer->scope == SCOPE_GLOBAL) {
			out->layout = global_layout(solver, buffer);
		} else if (buffer->scope == SCOPE_SHARED && out->layout) {
			out->fixed_by = shared_constraint(solver, buffer, out->layout);
		}
	}
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		struct stmt_plan *plan = &solution->plans[solver->gemms.p[g]->stmt->id];

		plan->stmt = solver->gemms.p[g]->stmt;
		plan->has_plan = true;
		plan->as.gemm = solver->gemms.p[g]->plan;
	}
	for (uint32_t s = 0; s < solver->spaces.n; s++)
		record_space(solver, solver->spaces.p[s]);
}
