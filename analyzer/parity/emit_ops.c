/*
 * Gemms, reductions and copies. Facts: TileLang 0.1.15, tilelang/cuda/intrinsics/macro (ldmatrix of
 * a whole 16 x 32-byte tile at a time, wgmma), src/tl_templates/cuda/reduce.h (AllReduce: offsets
 * of 32 threads and more go through shared memory), src/cuda/op/copy.cc (LowerLDSM).
 */
#include "analyzer/parity/emit.h"

#include <assert.h>
#include <string.h>

/* ---- gemm ---- */

static struct marker new_marker(struct emitter *emitter, const struct buffer *buffer, int64_t bytes,
                                int64_t n)
{
	struct pinfer *infer = emitter->infer;
	const char *name =
		arena_printf(infer->arena, "marker %u", emitter->markers.n + emitter->bulks.n);
	struct marker marker = { emit_workspace(emitter, name, DTYPE_I32), buffer, bytes };
	struct emit_access access = { .shared = marker.shared,
		                          .offset = expr_int(infer->pool, 0),
		                          .bytes = 4 };
	const struct var *var;
	struct wblock *outer = emit_open_new(emitter, n, &var);

	emit_access(emitter, &access);
	emitter->block = outer;
	return marker;
}

static void emit_marker(struct emitter *emitter, const struct buffer *buffer, int64_t bytes,
                        int64_t n)
{
	struct marker marker = new_marker(emitter, buffer, bytes, n);

	vec_push(emitter->infer->arena, &emitter->markers, marker);
}

/* A tile that TMA moves. */
static void emit_bulk(struct emitter *emitter, const struct region *region)
{
	int64_t n = 1;
	struct marker marker;

	for (uint32_t d = 0; d < region->buffer->rank; d++)
		n *= region->extent[d];
	marker = new_marker(emitter, region->buffer, n * dtype_bits(region->buffer->type) / 8, 1);
	vec_push(emitter->infer->arena, &emitter->bulks, marker);
}

static void emit_wgmma(struct emitter *emitter, const struct pop *op)
{
	const struct op_gemm *gemm = &op->gemm_op;
	const struct gemm_plan *plan = &op->gemm;
	int64_t k_bits = plan->k * dtype_bits(gemm->a.buffer->type);
	int64_t n =
		plan->m / plan->warps_m / 16 * (plan->n / plan->warps_n / plan->wgmma_n) * (k_bits / 256);

	if (gemm->a.buffer->scope == SCOPE_SHARED)
		emit_marker(emitter, gemm->a.buffer, 64 * 32, n);
	emit_marker(emitter, gemm->b.buffer, plan->wgmma_n * 32, n);
}

/* One operand of mma.sync: its rows along M or N, its columns along K. */
struct mma_operand {
	const struct region *region;
	bool is_a, swapped; /* swapped: K is the outer dimension of the buffer */
	int64_t tile_s, tile_k, n_tiles, warps, warp_stride, warp_rows;
};

static const struct expr *operand_offset(struct emitter *emitter, const struct mma_operand *o,
                                         const struct expr *s, const struct expr *k)
{
	const struct buffer *buffer = o->region->buffer;
	const struct expr *index[MAX_RANK];
	uint32_t rank = buffer->rank;

	for (uint32_t d = 0; d < rank; d++)
		index[d] = emit_expr(emitter, o->region->min[d]);
	index[rank - 2] = expr_add(emitter->infer->pool, index[rank - 2], o->swapped ? k : s);
	index[rank - 1] = expr_add(emitter->infer->pool, index[rank - 1], o->swapped ? s : k);
	return emit_offset(emitter, buffer, index);
}

/* Row addresses of the four (two) matrices of a tile. */
static void emit_ldmatrix(struct emitter *emitter, const struct mma_operand *o,
                          const struct expr *s, const struct expr *k)
{
	struct expr_pool *pool = emitter->infer->pool;
	const struct expr *lane = expr_mod_int(pool, emitter->thread, 32);
	int64_t n_matrices = o->tile_s == 16 ? 4 : 2;
	int64_t chunk = 128 / dtype_bits(o->region->buffer->type), n_rows = o->swapped ? 16 : o->tile_s;
	const struct expr *row = expr_mod_int(pool, lane, n_rows);
	const struct expr *column = expr_div_int(pool, lane, n_rows);

	struct emit_access access;

	column = expr_mul_int(pool, expr_mod_int(pool, column, 8 * n_matrices / n_rows), chunk);
	access = (struct emit_access){
		.shared = emit_shared(emitter, o->region->buffer),
		.offset = operand_offset(emitter, o, expr_add(pool, s, o->swapped ? column : row),
		                         expr_add(pool, k, o->swapped ? row : column)),
		.bytes = 16,
	};

	emit_matrix(emitter, &access, n_matrices, o->swapped);
}

/* Types other than 16 bits with K outermost: element by element. */
static void emit_elements(struct emitter *emitter, const struct mma_operand *o,
                          const struct expr *s, const struct expr *k)
{
	struct expr_pool *pool = emitter->infer->pool;
	uint32_t bits = dtype_bits(o->region->buffer->type);
	const struct expr *lane = expr_mod_int(pool, emitter->thread, 32);
	int64_t run = bits >= 32 ? 1 : 32 / bits, n = o->tile_s * o->tile_k / 32;

	for (int64_t slot = 0; slot < n; slot++) {
		int64_t half = o->is_a ? slot / run / 2 : slot / run % 2;
		int64_t row = o->is_a ? slot / run % 2 : slot / run / 2;
		const struct expr *own_s = expr_add_int(pool, expr_div_int(pool, lane, 4), 8 * row);
		const struct expr *own_k =
			expr_add_int(pool, expr_mul_int(pool, expr_mod_int(pool, lane, 4), run),
		                 4 * run * half + slot % run);
		struct emit_access access = {
			.shared = emit_shared(emitter, o->region->buffer),
			.offset =
				operand_offset(emitter, o, expr_add(pool, s, own_s), expr_add(pool, k, own_k)),
			.bytes = bits / 8,
		};

		emit_access(emitter, &access);
	}
}

static void emit_operand(struct emitter *emitter, const struct gemm_plan *plan,
                         const struct mma_operand *o)
{
	struct expr_pool *pool = emitter->infer->pool;
	const struct var *step, *tile;
	struct wblock *outer = emit_open_new(emitter, plan->k / o->tile_k, &step);
	const struct expr *warp, *s, *k;
	bool by_matrix = !(o->swapped && dtype_bits(o->region->buffer->type) != 16);

	emit_open_new(emitter, o->n_tiles, &tile);
	warp = expr_div_int(pool, emitter->thread, 32 * o->warp_stride);
	warp = expr_mod_int(pool, warp, o->warps);
	s = expr_add(pool, expr_mul_int(pool, warp, o->warp_rows),
	             expr_mul_int(pool, expr_of_var(pool, tile), o->tile_s));
	k = expr_mul_int(pool, expr_of_var(pool, step), o->tile_k);
	if (by_matrix)
		emit_ldmatrix(emitter, o, s, k);
	else
		emit_elements(emitter, o, s, k);
	emitter->block = outer;
}

void emit_gemm(struct emitter *emitter, const struct pop *op)
{
	const struct op_gemm *gemm = &op->gemm_op;
	const struct gemm_plan *plan = &op->gemm;
	int64_t columns = plan->n / plan->warps_n, rows = plan->m / plan->warps_m;
	struct mma_operand a = {
		.region = &gemm->a,
		.is_a = true,
		.swapped = gemm->transpose_a != 0,
		.tile_s = 16,
		.tile_k = 256 / dtype_bits(gemm->a.buffer->type),
		.n_tiles = rows / 16,
		.warps = plan->warps_m,
		.warp_stride = 1,
		.warp_rows = rows,
	};
	struct mma_operand b = {
		.region = &gemm->b,
		.swapped = gemm->transpose_b == 0,
		.tile_s = columns % 16 == 0 ? 16 : 8,
		.tile_k = 256 / dtype_bits(gemm->b.buffer->type),
		.warps = plan->warps_n,
		.warp_stride = plan->warps_m,
		.warp_rows = columns,
	};

	if (plan->wgmma_n) {
		emit_wgmma(emitter, op);
		return;
	}
	b.n_tiles = columns / b.tile_s;
	if (gemm->a.buffer->scope == SCOPE_SHARED)
		emit_operand(emitter, plan, &a);
	if (gemm->b.buffer->scope == SCOPE_SHARED)
		emit_operand(emitter, plan, &b);
}

/* ---- reduce ---- */

static void emit_sync(struct emitter *emitter)
{
	warp_add_inst(emitter->warp, emitter->block, WOP_barrier, emitter->span);
}

/* One exchange through shared memory: store, barrier, load from the partner. */
static void emit_exchange(struct emitter *emitter, const struct wshared *workspace,
                          int64_t distance, int64_t bytes)
{
	struct expr_pool *pool = emitter->infer->pool;
	const struct expr *thread = emitter->thread;
	struct emit_access access = {
		.shared = workspace,
		.offset = expr_mul_int(pool, thread, bytes),
		.bytes = bytes,
		.is_store = true,
	};

	emit_sync(emitter);
	emit_access(emitter, &access);
	emit_sync(emitter);
	access.offset = expr_mul_int(pool, expr_xor(pool, thread, expr_int(pool, distance)), bytes);
	access.is_store = false;
	emit_access(emitter, &access);
}

/* Digits of the thread number along the reduced dimension: (extent, stride) pairs. */
struct split {
	int64_t extent, stride;
};

static uint32_t find_splits(const struct pfrag *source, uint32_t dim, struct split *out,
                            uint32_t max)
{
	int64_t step = 1, n = source->shape[dim];
	uint32_t n_splits = 0;

	for (uint32_t d = dim + 1; d < source->rank; d++)
		step *= source->shape[d];
	for (int64_t div = 1; div < n && n_splits < max;) {
		int64_t stride = pfrag_thread(source, 0, div * step) - pfrag_thread(source, 0, 0);
		int64_t extent = 2;

		while (div * extent < n &&
		       pfrag_thread(source, 0, div * extent * step) - pfrag_thread(source, 0, 0) ==
		           stride * extent)
			extent++;
		while (extent > 1 && n % (div * extent) != 0)
			extent--;
		if (extent < 2)
			break;
		if (stride > 0)
			out[n_splits++] = (struct split){ extent, stride };
		div *= extent;
	}
	return n_splits;
}

/* Is `thread` in the group of `other`: equal but for the digits of the splits? */
static bool meet(const struct split *splits, uint32_t n, int64_t thread, int64_t other)
{
	for (uint32_t i = 0; i < n; i++) {
		thread -= thread / splits[i].stride % splits[i].extent * splits[i].stride;
		other -= other / splits[i].stride % splits[i].extent * splits[i].stride;
	}
	return thread == other;
}

bool emit_counts_once(const struct pfrag *source, uint32_t dim)
{
	enum { MAX_SPLITS = 8, MAX_STEPS = 1 << 24 };
	struct split splits[MAX_SPLITS];
	uint32_t n = find_splits(source, dim, splits, MAX_SPLITS);
	int64_t inner = 1, row = source->shape[dim], n_rows = source->n_elems / row;

	for (uint32_t d = dim + 1; d < source->rank; d++)
		inner *= source->shape[d];
	if (source->n_elems > MAX_STEPS / source->n_reps / source->n_reps)
		return false;
	for (int64_t r = 0; r < n_rows; r++) {
		int64_t first = r / inner * inner * row + r % inner;

		for (int64_t own = 0; own < source->n_reps; own++)
			for (int64_t e = 0; e < row; e++) {
				int64_t holders = 0;

				for (int64_t rep = 0; rep < source->n_reps; rep++)
					holders += meet(splits, n, pfrag_thread(source, rep, first + e * inner),
					                pfrag_thread(source, own, first));
				if (holders != 1)
					return false;
			}
	}
	return true;
}

const char *parity_workspace_name(struct cx *cx, const struct stmt *stmt)
{
	const struct buffer *dst = stmt->as.op.as.reduce.dst.buffer;

	return arena_printf(cx->arena, "%s_workspace", sym_text(cx->names, dst->name));
}

/* The workspace has a word for every thread; it is listed with the shared buffers. */
static const struct wshared *reduce_workspace(struct emitter *emitter, const struct stmt *stmt)
{
	struct pinfer *infer = emitter->infer;
	const struct buffer *dst = stmt->as.op.as.reduce.dst.buffer;
	struct shared_place place = { .workspace_of = stmt, .n_versions = 1, .align_bytes = 128 };
	const struct wshared *workspace = map_get(&emitter->workspaces, stmt->id);
	struct schedule *schedule = emitter->schedule;

	if (workspace)
		return workspace;
	place.version_bytes = (infer->n_threads * dtype_bits(dst->type) / 8 + 127) / 128 * 128;
	place.offset_bytes = (schedule->shared_bytes + 127) / 128 * 128;
	schedule->shared_bytes = place.offset_bytes + place.version_bytes;
	vec_push(infer->arena, &schedule->places, place);
	workspace = emit_workspace(emitter, parity_workspace_name(infer->cx, stmt), dst->type);
	map_set(infer->arena, &emitter->workspaces, stmt->id, (void *)(uintptr_t)workspace);
	return workspace;
}

/* Partners less than a warp away are reached by shuffles, one for each element and distance. */
static void emit_shuffles(struct emitter *emitter, int64_t stride, int64_t end, int64_t n_slots)
{
	const struct var *var;
	struct wblock *outer;
	int64_t n = 0;

	for (int64_t at = stride; at < end && at < 32; at *= 2)
		n++;
	if (n == 0 || !emitter->as_written)
		return;
	outer = emit_open_new(emitter, n * n_slots, &var);
	warp_add_inst(emitter->warp, emitter->block, WOP_shfl_xor, emitter->span);
	emitter->block = outer;
}

void emit_reduce(struct emitter *emitter, const struct pop *op)
{
	enum { MAX_SPLITS = 8 };
	const struct op_reduce *reduce = &op->stmt->as.op.as.reduce;
	struct pinfer *infer = emitter->infer;
	struct pfrag *source = infer->state.frag[reduce->src.buffer->id];
	struct pfrag *result = infer->state.frag[reduce->dst.buffer->id];
	int64_t bytes = dtype_bits(reduce->dst.buffer->type) / 8;
	const struct wshared *workspace = NULL;
	struct split splits[MAX_SPLITS];
	uint32_t n;

	if (!source || !result)
		return;
	n = find_splits(source, (uint32_t)reduce->dim, splits, MAX_SPLITS);
	for (uint32_t i = 0; i < n; i++) {
		const struct var *var;
		struct wblock *outer;

		emit_shuffles(emitter, splits[i].stride, splits[i].extent * splits[i].stride,
		              result->n_slots);
		if (splits[i].extent * splits[i].stride <= 32)
			continue;
		emit_barrier(emitter);
		if (!workspace)
			workspace = reduce_workspace(emitter, op->stmt);
		outer = emit_open_new(emitter, result->n_slots, &var);
		for (int64_t at = splits[i].extent * splits[i].stride / 2;
		     at >= 32 && at >= splits[i].stride; at /= 2)
			emit_exchange(emitter, workspace, at, bytes);
		emitter->block = outer;
	}
}

/* ---- copies ---- */

/* Is the fragment's lane map the 8 x 8 matrix's, with pairs in consecutive slots? */
static bool matrix_form(const struct ploop *loop, const struct pfrag *fragment, bool transposed)
{
	int64_t columns = loop->shape[loop->rank - 1];

	if (fragment->n_reps > 1 || fragment->n_elems != loop->n_points ||
	    (transposed ? loop->shape[loop->rank - 2] : columns) % 2 != 0)
		return false;
	for (int64_t p = 0; p < loop->n_points; p++) {
		int64_t j = p % columns, i = p / columns % loop->shape[loop->rank - 2];
		int64_t lane = transposed ? j % 8 * 4 + i % 8 / 2 : i % 8 * 4 + j % 8 / 2;
		int64_t pair = transposed ? p - i % 2 * columns : p - j % 2;

		if (pfrag_thread(fragment, 0, p) % 32 != lane ||
		    fragment->slot[p] != fragment->slot[pair] + (transposed ? i : j) % 2 ||
		    fragment->slot[pair] % 2 != 0)
			return false;
	}
	return true;
}

static bool is_whole(const struct region *region)
{
	for (uint32_t d = 0; d < region->buffer->rank; d++) {
		int64_t min;

		if (region->extent[d] != buffer_extent(region->buffer, d) ||
		    !expr_is_int(region->min[d], &min) || min != 0)
			return false;
	}
	return true;
}

struct matrix_copy {
	bool is_load, transposed;
	const struct region *shared, *local;
	const struct pfrag *fragment;
};

/* Do the conditions of ldmatrix or stmatrix hold? */
static bool find_matrix_copy(const struct emitter *emitter, const struct pop *op,
                             struct matrix_copy *out)
{
	const struct op_copy *copy = &op->copy_op;
	const struct target *target = emitter->infer->target;
	const struct ploop *loop = op->loop;

	out->is_load = copy->src.buffer->scope == SCOPE_SHARED;
	out->shared = out->is_load ? &copy->src : &copy->dst;
	out->local = out->is_load ? &copy->dst : &copy->src;
	if (out->shared->buffer->scope != SCOPE_SHARED || out->local->buffer->scope != SCOPE_FRAGMENT ||
	    !(out->is_load ? target->has_ldmatrix : target->has_stmatrix) || loop->rank < 2 ||
	    loop->conditions.n > 0 || !is_whole(out->local) || !is_whole(&copy->dst))
		return false;
	out->fragment = emitter->infer->state.frag[out->local->buffer->id];
	if (!out->fragment || dtype_bits(out->shared->buffer->type) != 16 ||
	    loop->shape[loop->rank - 1] % 8 != 0)
		return false;
	if (out->is_load && !dtype_equal(copy->src.buffer->type, copy->dst.buffer->type))
		return false;
	out->transposed = !matrix_form(loop, out->fragment, false);
	return !out->transposed || matrix_form(loop, out->fragment, true);
}

/* Each lane gives the address of one row of 8 elements. */
static void emit_matrix_copy(struct emitter *emitter, const struct pop *op,
                             const struct matrix_copy *copy)
{
	struct pinfer *infer = emitter->infer;
	const struct ploop *loop = op->loop;
	const struct pfrag *fragment = copy->fragment;
	int64_t n = fragment->n_slots % 8 == 0 ? 4 : fragment->n_slots % 4 == 0 ? 2 : 1;
	int64_t n_steps = fragment->n_slots / (2 * n);
	int64_t n_places = infer->n_threads * fragment->n_slots;
	int64_t *points = arena_array(infer->arena, int64_t, (size_t)n_places);
	int64_t *values = arena_array(infer->arena, int64_t, (size_t)(infer->n_threads * n_steps));
	const struct var *step;
	struct wblock *outer = emit_open_new(emitter, n_steps, &step);
	struct expr_subst subst = emitter->subst;
	const struct paccess *access = NULL;
	const struct expr *index[MAX_RANK];
	int64_t inner = 1;

	for (int64_t p = 0; p < fragment->n_elems; p++)
		points[pfrag_thread(fragment, 0, p) * fragment->n_slots + fragment->slot[p]] = p;
	subst.of_var = (struct map){ 0 };
	for (uint32_t d = loop->rank; d-- > 0;) {
		for (int64_t t = 0; t < infer->n_threads; t++)
			for (int64_t i = 0; i < n_steps; i++) {
				int64_t slot = i * 2 * n + 2 * (t / 8 % n), thread = t / 32 * 32;

				slot += copy->transposed ? t % 2 : 0;
				thread += copy->transposed ? t % 8 / 2 : t % 8 * 4;
				values[t * n_steps + i] =
					points[thread * fragment->n_slots + slot] / inner % loop->shape[d];
			}
		inner *= loop->shape[d];
		map_set(infer->arena, &subst.of_var, loop->vars[d]->id,
		        (void *)(uintptr_t)emit_table(emitter, values, n_steps,
		                                      expr_of_var(infer->pool, step)));
		values = arena_array(infer->arena, int64_t, (size_t)(infer->n_threads * n_steps));
	}
	for (uint32_t i = 0; i < loop->accesses.n; i++)
		if (loop->accesses.p[i].buffer == copy->shared->buffer)
			access = &loop->accesses.p[i];
	assert(access);
	for (uint32_t d = 0; d < access->buffer->rank; d++)
		index[d] = emit_expr(emitter, expr_substitute(infer->pool, access->index[d], &subst));
	emit_matrix(emitter,
	            &(struct emit_access){ .shared = emit_shared(emitter, access->buffer),
	                                   .offset = emit_offset(emitter, access->buffer, index),
	                                   .bytes = 16,
	                                   .is_store = !copy->is_load },
	            n, copy->transposed);
	emitter->block = outer;
}

void emit_copy(struct emitter *emitter, uint32_t at)
{
	struct pop *op = emitter->infer->ops.p[at];
	struct matrix_copy matrix = { 0 };

	if (op->copy.is_tma_load || op->copy.bulk_store || op->copy.store_1d) {
		emit_barrier(emitter);
		if (emitter->as_written && parity_final_partition(emitter->infer, at))
			emit_partitioned(emitter, at);
		else if (emitter->as_written)
			emit_bulk(emitter, op->copy.is_tma_load ? &op->copy_op.dst : &op->copy_op.src);
		return;
	}
	/* As written means with this tool's instructions: it has no stmatrix, as it has no TMA. */
	if (find_matrix_copy(emitter, op, &matrix) && (matrix.is_load || !emitter->as_written)) {
		emit_barrier(emitter);
		emit_matrix_copy(emitter, op, &matrix);
		return;
	}
	emit_partitioned(emitter, at);
}
