/*
 * Warpgroup instructions. The product is computed when it is begun; until its group is awaited its
 * accumulator must not be touched, its operands must not be written, in registers or shared memory.
 *
 * A is read from registers or, like B, through its matrix descriptor at absolute addresses of
 * shared memory, so that a misplaced tile shows in the numbers.
 */
#include "sim/sim_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { CHUNK = 16, MAX_K = 32, WAVEFRONT_BYTES = 128 };

/* One warpgroup's operands, gathered to matrices: A 64 x k, B and the sum by columns of D. */
struct product {
	float a[WGMMA_M * MAX_K], b[WGMMA_MAX_N * MAX_K];
	float sum[WGMMA_M * WGMMA_MAX_N];
};

/* ---- operands ---- */

/* A matrix in shared memory; its rows are m or n. */
struct matrix {
	const struct waddr *addr;
	const struct wgmma_matrix *desc;
	int64_t mn, k;
	struct dtype type;
};

/* Start address for a warpgroup: the same in all of its threads; -1 after a finding. */
static int64_t start_of(struct sim *sim, const struct lanes *offsets, uint32_t warpgroup)
{
	uint32_t first = warpgroup * WGMMA_THREADS;
	int64_t start = lanes_at(offsets, first).i;

	for (uint32_t t = first; t < first + WGMMA_THREADS; t++) {
		if (lanes_poison(offsets, t))
			return -1;
		if (lanes_at(offsets, t).i == start)
			continue;
		sim_find(sim, SIM_PARTIAL_WARP, who_thread(t),
		         "the matrix descriptor of thread %u differs from that of thread %u", t, first);
		return -1;
	}
	return start;
}

/* 16 bytes of the matrix that hold element (mn, k) and its neighbours. */
static const uint8_t *chunk_at(struct sim *sim, const struct matrix *matrix, uint32_t warpgroup,
                               int64_t at)
{
	const struct wshared *shared = matrix->addr->shared;
	int64_t offset = at - shared->offset_bytes;

	if (offset < 0 || offset > wshared_bytes(shared) - CHUNK) {
		sim_find(sim, SIM_OUT_OF_BOUNDS, who_thread(warpgroup * WGMMA_THREADS),
		         "wgmma reads byte %" PRId64 " of %s, which has %" PRId64, offset,
		         sym_text(sim->cx->names, shared->name), wshared_bytes(shared));
		return NULL;
	}
	shadow_read_product(sim, shared, at, warpgroup);
	return sim->shared + at;
}

/* Fills out[mn * k + ...]. */
static bool gather_shared(struct sim *sim, const struct matrix *matrix, uint32_t warpgroup,
                          const struct lanes *offsets, float *out)
{
	int64_t start = start_of(sim, offsets, warpgroup), n = CHUNK / matrix->desc->elem_bytes;
	bool mn_major = matrix->desc->mn_major;
	float values[CHUNK];

	if (start < 0)
		return false;
	start += matrix->addr->shared->offset_bytes;
	for (int64_t mn = 0; mn < matrix->mn; mn += mn_major ? n : 1)
		for (int64_t k = 0; k < matrix->k; k += mn_major ? 1 : n) {
			const uint8_t *at =
				chunk_at(sim, matrix, warpgroup, wgmma_address(matrix->desc, start, mn, k));
			if (!at)
				return false;
			sim_operand_values(sim, matrix->type, at, (uint32_t)n, values);
			for (int64_t i = 0; i < n; i++)
				out[mn_major ? (mn + i) * matrix->k + k : mn * matrix->k + k + i] = values[i];
		}
	return true;
}

/* Notes registers that belong to the instruction until its group is awaited. */
static void hold(struct sim *sim, const struct slots *slots, int64_t slot, uint32_t warpgroup,
                 uint8_t bit)
{
	struct products *products = &sim->products[warpgroup];
	struct busy_regs busy = { slots->file, slot, slots->regs->n, products->n_committed, bit };

	for (int64_t s = slot; s < slot + busy.n; s++)
		for (uint32_t t = 0; t < WGMMA_THREADS; t++)
			slots->file->async[s * sim->n_threads + warpgroup * WGMMA_THREADS + t] |= bit;
	vec_push(sim->arena, &products->busy, busy);
}

/* Were the registers written, and is a fence between that and now? */
static void check_regs(struct sim *sim, const struct slots *slots, int64_t slot, uint32_t warpgroup)
{
	for (int64_t s = slot; s < slot + slots->regs->n; s++)
		for (uint32_t t = warpgroup * WGMMA_THREADS; t < (warpgroup + 1) * WGMMA_THREADS; t++) {
			int64_t at = s * sim->n_threads + t;
			if (!slots->file->written[at])
				sim_find(sim, SIM_UNINITIALISED, who_thread(t),
				         "thread %u reads slot %" PRId64 " of %s, which nothing wrote", t, s,
				         sym_text(sim->cx->names, slots->regs->reg->name));
			slots->file->written[at] = 1;
			if (!(slots->file->async[at] & REG_UNFENCED))
				continue;
			sim_find(sim, SIM_SHARED_RACE, who_thread(t),
			         "wgmma uses slot %" PRId64 " of %s, which was written without a wgmma.fence "
			         "after it",
			         s, sym_text(sim->cx->names, slots->regs->reg->name));
			return;
		}
}

/* A in registers: each warp holds 16 rows, as for mma. */
static bool gather_registers(struct sim *sim, const struct slots *slots, enum mma_shape shape,
                             uint32_t warpgroup, float *out)
{
	int64_t slot = sim_slot_at(sim, slots, warpgroup * WGMMA_THREADS);
	int k = mma_shape_info(shape)->k;
	float values[WARP_LANES];

	if (slot < 0)
		return false;
	check_regs(sim, slots, slot, warpgroup);
	for (uint32_t warp = 0; warp < WGMMA_WARPS; warp++)
		for (int s = 0; s < slots->regs->n; s++) {
			uint32_t first = warpgroup * WGMMA_THREADS + warp * WARP_LANES;
			sim_operand_values(sim, slots->regs->reg->type,
			                   sim_reg(sim, slots->file, slot + s, first), WARP_LANES, values);
			for (int lane = 0; lane < WARP_LANES; lane++) {
				struct mma_element at = mma_fragment(shape, MMA_A, lane, s);
				out[((int)warp * 16 + at.row) * k + at.column] = values[lane];
			}
		}
	hold(sim, slots, slot, warpgroup, REG_OPERAND);
	return true;
}

/* ---- the product ---- */

static void multiply(struct product *product, int64_t n, int64_t k)
{
	for (int64_t i = 0; i < WGMMA_M; i++)
		for (int64_t j = 0; j < n; j++) {
			const float *a = &product->a[i * k], *b = &product->b[j * k];
			float sum = 0;
			for (int64_t l = 0; l < k; l++)
				sum += a[l] * b[l];
			product->sum[i * n + j] = sum;
		}
}

/*
 * Slot s of lane l in warp w of the warpgroup is row 16 w + l / 4 + 8 (s / 2 % 2), column
 * 8 (s / 4) + 2 (l % 4) + s % 2 of D.
 */
static void accumulate(struct sim *sim, const struct slots *slots, uint32_t warpgroup,
                       const struct product *product, int64_t n)
{
	int64_t slot = sim_slot_at(sim, slots, warpgroup * WGMMA_THREADS);
	float parts[WARP_LANES];

	if (slot < 0)
		return;
	check_regs(sim, slots, slot, warpgroup);
	for (uint32_t warp = 0; warp < WGMMA_WARPS; warp++)
		for (int64_t s = 0; s < slots->regs->n; s++) {
			uint32_t first = warpgroup * WGMMA_THREADS + warp * WARP_LANES;
			for (uint32_t lane = 0; lane < WARP_LANES; lane++)
				parts[lane] = product->sum[(warp * 16 + lane / 4 + 8 * (s / 2 % 2)) * n +
				                           s / 4 * 8 + lane % 4 * 2 + s % 2];
			sim_accumulate(slots->regs->reg->type, sim_reg(sim, slots->file, slot + s, first),
			               WARP_LANES, parts);
		}
	hold(sim, slots, slot, warpgroup, REG_PRODUCT);
}

/* True when all of the warpgroup takes part, false without any or with a finding. */
static bool whole_warpgroup(struct sim *sim, const struct lane_mask *taken, uint32_t warpgroup)
{
	uint32_t n = 0, first = warpgroup * WGMMA_WARPS;

	for (uint32_t w = first; w < first + WGMMA_WARPS; w++)
		n += (uint32_t)__builtin_popcount(taken->warps[w]);
	if (n && n < WGMMA_THREADS)
		sim_find(sim, SIM_PARTIAL_WARP, who_thread(warpgroup * WGMMA_THREADS),
		         "%s with %u threads of warpgroup %u", wop_info(sim->node->as.inst.kind)->text, n,
		         warpgroup);
	return n == WGMMA_THREADS;
}

static void count_access(struct sim *sim, int64_t bytes)
{
	struct sim_access *sum = &sim->result->accesses[sim->node->id];

	sum->executions += WGMMA_WARPS;
	sum->wavefronts += bytes / WAVEFRONT_BYTES;
	sum->wavefronts_max += bytes / WAVEFRONT_BYTES;
	sum->ideal += bytes / WAVEFRONT_BYTES;
}

void sim_wgmma(struct sim *sim, const struct winst *inst, const struct lane_mask *taken)
{
	struct winst_wgmma op;
	struct product *product;
	struct slots d, a_slots = { 0 };
	struct lanes a_offsets = { 0 }, b_offsets;

	(void)winst_wgmma(inst, &op);
	const struct mma_shape_info *info = mma_shape_info(op.shape);
	struct matrix a = { op.a, &op.a_matrix, WGMMA_M, info->k, info->ab };
	struct matrix b = { op.b, &op.b_matrix, op.n, info->k, info->ab };

	if (!sim->product)
		sim->product = arena_new(sim->arena, struct product);
	product = sim->product;
	d = sim_slots(sim, op.d, taken);
	b_offsets = lane_eval_run(sim->eval, op.b->offset);
	if (op.a)
		a_offsets = lane_eval_run(sim->eval, op.a->offset);
	else
		a_slots = sim_slots(sim, op.a_regs, taken);
	for (uint32_t g = 0; g < sim->n_warps / WGMMA_WARPS; g++) {
		if (!whole_warpgroup(sim, taken, g))
			continue;
		if (op.a ? !gather_shared(sim, &a, g, &a_offsets, product->a)
		         : !gather_registers(sim, &a_slots, op.shape, g, product->a))
			continue;
		if (!gather_shared(sim, &b, g, &b_offsets, product->b))
			continue;
		multiply(product, op.n, info->k);
		accumulate(sim, &d, g, product, op.n);
		if (op.a)
			count_access(sim, WGMMA_M * WGMMA_K_BYTES);
		count_access(sim, op.n * WGMMA_K_BYTES);
	}
}

/* ---- fences and groups ---- */

void sim_wgmma_fence(struct sim *sim, const struct wop_wgmma_fence *op,
                     const struct lane_mask *taken)
{
	(void)op;
	for (uint32_t g = 0; g < sim->n_warps / WGMMA_WARPS; g++) {
		if (!whole_warpgroup(sim, taken, g))
			continue;
		for (uint32_t r = 0; r < sim->program->regs.n; r++) {
			const struct reg_file *file = &sim->regs[r];
			for (int64_t s = 0; file->async && s < file->n_slots; s++)
				for (uint32_t t = 0; t < WGMMA_THREADS; t++)
					file->async[s * sim->n_threads + g * WGMMA_THREADS + t] &=
						(uint8_t)~REG_UNFENCED;
		}
	}
}

void sim_wgmma_commit(struct sim *sim, const struct lane_mask *taken)
{
	for (uint32_t g = 0; g < sim->n_warps / WGMMA_WARPS; g++)
		if (whole_warpgroup(sim, taken, g))
			sim->products[g].n_committed++;
}

static void release(const struct sim *sim, const struct busy_regs *busy, uint32_t warpgroup)
{
	for (int64_t s = busy->slot; s < busy->slot + busy->n; s++)
		for (uint32_t t = 0; t < WGMMA_THREADS; t++)
			busy->file->async[s * sim->n_threads + warpgroup * WGMMA_THREADS + t] &=
				(uint8_t)~busy->bit;
}

/* Registers of groups that are done are free, unless a later group holds them too. */
static void release_done(const struct sim *sim, struct products *products, uint32_t warpgroup)
{
	uint32_t n_left = 0;

	for (uint32_t i = 0; i < products->busy.n; i++) {
		if (products->busy.p[i].group < products->n_done)
			release(sim, &products->busy.p[i], warpgroup);
		else
			products->busy.p[n_left++] = products->busy.p[i];
	}
	products->busy.n = n_left;
	for (uint32_t i = 0; i < n_left; i++)
		for (int64_t s = 0; s < products->busy.p[i].n; s++)
			for (uint32_t t = 0; t < WGMMA_THREADS; t++)
				products->busy.p[i].file->async[(products->busy.p[i].slot + s) * sim->n_threads +
				                                warpgroup * WGMMA_THREADS + t] |=
					products->busy.p[i].bit;
}

void sim_wgmma_wait(struct sim *sim, const struct wop_wgmma_wait *op, const struct lane_mask *taken)
{
	for (uint32_t g = 0; g < sim->n_warps / WGMMA_WARPS; g++) {
		struct products *products = &sim->products[g];
		if (!whole_warpgroup(sim, taken, g))
			continue;
		while ((int64_t)products->n_committed - products->n_done > op->n_pending) {
			vec_push(sim->arena, &products->done_interval, sim->interval);
			products->n_done++;
		}
		release_done(sim, products, g);
	}
}

void sim_fence_async(struct sim *sim, const struct lane_mask *taken)
{
	for (uint32_t thread = mask_next(taken, 0); thread != NO_THREAD;
	     thread = mask_next(taken, thread + 1)) {
		sim->fences[thread]++;
		if (sim->phases)
			phases_fence(sim->phases, thread);
	}
}
