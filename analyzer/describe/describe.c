/*
 * Figures that are derived from the records of a compile. All of them are sums and quotients of
 * what the passes found; nothing is decided here.
 *
 *     registers   C_local float32 [128] + A fragment float16 [32] + B fragment float16 [16] + 24
 *               = 128 + 16 + 8 + 24 = 176
 *     stages      (shared memory of a block - what is not copied ahead) / bytes of one stage
 */
#include "analyzer/describe/describe.h"

#include <assert.h>
#include <string.h>

/* A wgmma takes 32 bytes of K, whatever the type (PTX ISA, section wgmma.mma_async). */
enum { WGMMA_K_BITS = 256 };

/* Registers beyond the limit of a thread spill, so that occupancy is computed with the limit. */
struct launch_budget describe_budget(const struct launch_result *launch,
                                     const struct target *target)
{
	struct launch_budget budget = { 0 };
	int64_t n_threads = launch_n_threads(launch->launch), registers;

	assert(launch->schedule && launch->warp);
	budget.shared_bytes = launch->schedule->shared_bytes;
	budget.registers_estimate = warp_registers_estimate(launch->warp);
	registers = budget.registers_estimate < target->registers_thread_max
	                ? budget.registers_estimate
	                : target->registers_thread_max;
	budget.occupancy = target_occupancy(target, n_threads, registers, budget.shared_bytes);
	budget.fits = budget.occupancy.blocks_per_sm > 0;
	return budget;
}

/* Is the op a copy into shared memory that the pipeline issues ahead? */
static const struct buffer *copied_ahead(const struct pipeline_op *op)
{
	const struct stmt *stmt = op->stmt;
	const struct op_copy *copy = &stmt->as.op.as.copy;

	if (stmt->kind != STMT_OP || stmt->as.op.kind != OP_copy)
		return NULL;
	return copy->src.buffer->scope == SCOPE_GLOBAL && copy->dst.buffer->scope == SCOPE_SHARED
	           ? copy->dst.buffer
	           : NULL;
}

/* Buffers that are copied ahead have one version a stage, everything else stays as it is. */
int64_t describe_max_stages(const struct launch_result *launch, const struct pipeline *pipeline,
                            const struct target *target)
{
	int64_t stage_bytes = 0, rest_bytes = launch->schedule->shared_bytes;

	assert(rest_bytes >= 0);
	for (uint32_t i = 0; i < pipeline->ops.n; i++) {
		const struct buffer *buffer = copied_ahead(&pipeline->ops.p[i]);
		const struct shared_place *place = buffer ? schedule_place(launch->schedule, buffer) : NULL;

		if (!place)
			continue;
		stage_bytes += place->version_bytes;
		rest_bytes -= place->version_bytes * place->n_versions;
	}
	if (stage_bytes == 0)
		return -1;
	return rest_bytes > target->shared_bytes_block
	           ? 0
	           : (target->shared_bytes_block - rest_bytes) / stage_bytes;
}

/* The solution of the launch that the buffer belongs to (parameters: the first that uses it). */
static const struct layout *solved_layout(const struct compile *compile,
                                          const struct buffer *buffer)
{
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct launch_result *launch = compile->launches.p[i];
		bool mine = buffer->is_param || buffer->launch == launch->launch->index;

		if (mine && launch->solution && launch->solution->buffers[buffer->id].layout)
			return launch->solution->buffers[buffer->id].layout;
	}
	return NULL;
}

const struct layout *describe_layout(const struct compile *compile, const struct buffer *buffer)
{
	const struct layout *layout = solved_layout(compile, buffer);
	int64_t shape[MAX_RANK];

	if (layout || buffer->scope != SCOPE_GLOBAL || buffer->rank == 0 || buffer->map)
		return layout;
	for (uint32_t d = 0; d < buffer->rank; d++) {
		shape[d] = buffer_extent(buffer, d);
		if (shape[d] < 1 || buffer->strides[d])
			return NULL;
	}
	return layout_row_major(compile->cx.arena, buffer->rank, shape, dtype_bits(buffer->type), 0);
}

/* Padding of shared memory counts, since it is allocated; elsewhere it is elements x size. */
struct describe_places describe_places(const struct compile *compile, const struct buffer *buffer)
{
	const struct layout *layout = describe_layout(compile, buffer);
	struct describe_places places = { 0 };
	int64_t n_threads;

	if (!layout || layout->kind != LAYOUT_FRAGMENT || buffer->launch >= compile->launches.n)
		return places;
	n_threads = launch_n_threads(compile->launches.p[buffer->launch]->launch);
	if (n_threads < layout->n_threads)
		n_threads = layout->n_threads;
	places.n = n_threads * layout->n_slots;
	places.idle = places.n - layout->n_threads * layout->n_slots + layout_idle_places(layout);
	return places;
}

int64_t describe_bytes(const struct compile *compile, const struct buffer *buffer)
{
	const struct layout *layout =
		buffer->scope == SCOPE_SHARED ? solved_layout(compile, buffer) : NULL;
	int64_t n = buffer_n_elems(buffer), bits;

	if (layout)
		return layout->n_bytes;
	if (n < 0 || __builtin_mul_overflow(n, (int64_t)dtype_bits(buffer->type), &bits))
		return -1;
	return bits / 8 + (bits % 8 != 0);
}

uint32_t describe_line(const struct compile *compile, struct span span)
{
	return source_line(&compile->cx.sources, span);
}

/* The lowering names workspaces; the schedule only knows where they are. */
const char *describe_workspace(const struct launch_result *launch, const struct shared_place *place)
{
	const struct warp_program *warp = launch->warp ? launch->warp : launch->partial;

	if (launch->parity && place->workspace_of)
		return parity_workspace_name(launch->solution->program->cx, place->workspace_of);
	for (uint32_t i = 0; warp && i < warp->shareds.n; i++) {
		const struct wshared *shared = warp->shareds.p[i];

		if (!shared->buffer && shared->offset_bytes == place->offset_bytes)
			return sym_text(warp->cx->names, shared->name);
	}
	return "";
}

void describe_instruction(struct buf *out, const struct gemm_plan *plan)
{
	const struct mma_shape_info *shape = mma_shape_info(plan->shape);

	assert(plan->shape < N_MMA_SHAPES);
	if (plan->wgmma_n > 0)
		buf_printf(out, "wgmma.m64n%lldk%d", (long long)plan->wgmma_n,
		           WGMMA_K_BITS / shape->ab.bits);
	else
		buf_printf(out, "mma.%.*s", (int)strcspn(shape->text, "."), shape->text);
}

/* Words that the document and the drawings share. */
const char *describe_stmt(const struct stmt *stmt)
{
	switch (stmt->kind) {
	case STMT_OP:
		return op_info(stmt->as.op.kind)->id;
	case STMT_LOOP:
		return stmt->as.loop.kind == LOOP_PARALLEL ? "parallel" : "loop";
	case STMT_IF:
		return "if";
	case STMT_WHILE:
		return "while";
	case STMT_LET:
		return "let";
	case STMT_STORE:
		return "store";
	case STMT_SYNC:
		return "sync";
	case STMT_BREAK:
		return "break";
	case STMT_CONTINUE:
		return "continue";
	}
	return "";
}

/* The candidate with the fewest wavefronts. */
static const struct candidate *best_candidate(const struct buffer_solution *solved)
{
	const struct candidate *best = NULL;

	for (uint32_t i = 0; i < solved->candidates.n; i++)
		if (!best || solved->candidates.p[i].wavefronts < best->wavefronts)
			best = &solved->candidates.p[i];
	return best;
}

/*
 * Compares the chosen layout with the others that the solver weighed for all accesses of the
 * buffer. Narrow cp.async is a case of its own: its conflicts are in the lines that it reads, and
 * disappear with 16 bytes a thread.
 */
const char *describe_fix(const struct compile *compile, const struct launch_result *launch,
                         const struct access_site *site)
{
	struct arena *arena = compile->cx.arena;
	const struct buffer *buffer = site->shared ? site->shared->buffer : NULL;
	const struct buffer_solution *solved =
		buffer && launch->solution ? &launch->solution->buffers[buffer->id] : NULL;
	const struct candidate *best = solved ? best_candidate(solved) : NULL;
	bool annotated = solved && solved->fixed_by && solved->fixed_by->kind == CONSTRAINT_ANNOTATION;

	if (site->excess <= 0)
		return NULL;
	if (launch->parity)
		return describe_edit(compile, launch, site);
	if (strncmp(site->instruction, "cp.async.", 9) == 0 && site->bytes_per_thread < 16)
		return arena_printf(
			arena,
			"cp.async of 16 bytes has no conflicts: rows of %s and of its source that "
			"start at multiples of 16 bytes allow it",
			site->buffer);
	if (!best)
		return NULL;
	if (solved->candidates.n == 1 && buffer->rank == 1)
		return arena_printf(
			arena,
			"%s has one dimension and can only be linear: with two, its rows can be "
			"swizzled or padded",
			site->buffer);
	if (best->wavefronts >= solved->candidates.p[0].wavefronts)
		return arena_printf(
			arena,
			"not by layout: none of the %u weighed for %s takes fewer wavefronts with "
			"these accesses",
			solved->candidates.n, site->buffer);
	return arena_printf(arena, "%s%s takes %lld wavefronts a block on %s instead of %lld%s",
	                    annotated ? "without the annotation, " : "", layout_kind_text(best->layout),
	                    (long long)best->wavefronts, site->buffer,
	                    (long long)solved->candidates.p[0].wavefronts,
	                    annotated ? "" : ", but costs more elsewhere");
}

/* Accesses that are not modelled exactly are counted apart: a sum with a guess in it is none. */
static void add_sites(struct describe_totals *totals, const struct access_table *table)
{
	for (uint32_t i = 0; i < table->sites.n; i++) {
		const struct access_site *site = &table->sites.p[i];

		totals->n_sites++;
		if (site->wavefronts < 0 || site->wavefronts_max != site->wavefronts) {
			totals->n_not_modelled++;
			continue;
		}
		totals->wavefronts += site->wavefronts;
		totals->ideal += site->ideal;
		totals->excess += site->excess;
		totals->n_with_excess += site->excess > 0;
	}
}

/* One row may stand for several buffers; rows are counted. */
static void add_properties(struct describe_totals *totals, const struct property_list *list)
{
	for (uint32_t i = 0; i < list->items.n; i++) {
		switch (list->items.p[i].status) {
		case PROPERTY_PROVED:
			totals->n_proved++;
			break;
		case PROPERTY_VIOLATED:
			totals->n_violated++;
			break;
		case PROPERTY_NOT_PROVED:
			totals->n_not_proved++;
			break;
		}
	}
}

struct describe_totals describe_totals(const struct compile *compile)
{
	struct describe_totals totals = { 0 };

	for (uint32_t i = 0; i < compile->launches.n; i++) {
		add_sites(&totals, &compile->launches.p[i]->accesses);
		add_properties(&totals, &compile->launches.p[i]->properties);
	}
	return totals;
}
