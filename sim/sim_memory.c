/* Instructions that touch memory. */
#include "sim/sim_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { MATRIX_ROWS = 8, MATRIX_ROW_BYTES = 16, COPY_MAX_BYTES = 16 };

/* An address operand, evaluated for all threads. */
struct target {
	const struct waddr *addr;
	struct tensor *tensor; /* global */
	struct lanes offsets;
};

static struct target find_target(struct sim *sim, const struct waddr *addr,
                                 const struct lane_mask *taken)
{
	struct target target = { addr, NULL, lane_eval_run(sim->eval, addr->offset) };

	sim_find_poison(sim, &target.offsets, taken, UINT8_MAX, "the address");
	if (addr->space == WSPACE_GLOBAL) {
		target.tensor = tensor_of(sim->tensors, addr->global);
		if (!target.tensor)
			BUG("no tensor for %s", sym_text(sim->cx->names, addr->global->name));
	}
	return target;
}

/* Absolute byte of shared memory that the thread's n bytes start at, or -1 after a finding. */
static int64_t shared_at(struct sim *sim, const struct target *target, uint32_t thread, int64_t n)
{
	const struct wshared *shared = target->addr->shared;
	int64_t offset = lanes_at(&target->offsets, thread).i, at = shared->offset_bytes + offset;
	const char *name = sym_text(sim->cx->names, shared->name);

	if (offset < 0 || offset > wshared_bytes(shared) - n) {
		sim_find(sim, SIM_OUT_OF_BOUNDS, who_thread(thread),
		         "thread %u accesses %" PRId64 " bytes at byte %" PRId64
		         " of %s, which has %" PRId64,
		         thread, n, offset, name, wshared_bytes(shared));
		return -1;
	}
	if (at % n == 0)
		return at;
	sim_find(sim, SIM_MISALIGNED, who_thread(thread),
	         "thread %u accesses %" PRId64 " bytes at byte %" PRId64 " of %s, byte %" PRId64
	         " of shared memory",
	         thread, n, offset, name, at);
	return -1;
}

/* Element of the tensor that the thread's n bytes start at, or -1 after a finding. */
static int64_t global_at(struct sim *sim, const struct target *target, uint32_t thread, int64_t n)
{
	const struct tensor *tensor = target->tensor;
	int64_t at = lanes_at(&target->offsets, thread).i;
	int64_t n_elems = n / tensor->elem_bytes;
	const char *name = sym_text(sim->cx->names, tensor->buffer->name);

	if (at < 0 || at > tensor->n_elems - n_elems) {
		sim_find(sim, SIM_OUT_OF_BOUNDS, who_thread(thread),
		         "thread %u accesses element %" PRId64 " of %s, which has %" PRId64, thread, at,
		         name, tensor->n_elems);
		return -1;
	}
	if (at * tensor->elem_bytes % n == 0)
		return at;
	sim_find(sim, SIM_MISALIGNED, who_thread(thread),
	         "thread %u accesses %" PRId64 " bytes at element %" PRId64 " of %s", thread, n, at,
	         name);
	return -1;
}

static struct elem_range elems_at(const struct tensor *tensor, int64_t at, int64_t n_bytes)
{
	return (struct elem_range){ tensor, at, n_bytes / tensor->elem_bytes };
}

/* The bytes that the thread reads, noted as read; NULL after a finding. */
static const uint8_t *read_bytes(struct sim *sim, const struct target *target, uint32_t thread,
                                 int64_t n)
{
	int64_t at;

	if (target->addr->space == WSPACE_SHARED) {
		at = shared_at(sim, target, thread, n);
		if (at < 0)
			return NULL;
		shadow_read(sim, target->addr->shared, at, (uint32_t)n, thread);
		return sim->shared + at;
	}
	at = global_at(sim, target, thread, n);
	if (at < 0)
		return NULL;
	shadow_global_read(sim, elems_at(target->tensor, at, n), thread);
	return target->tensor->bytes + at * target->tensor->elem_bytes;
}

static void write_bytes(struct sim *sim, const struct target *target, uint32_t thread,
                        const uint8_t *bytes, int64_t n)
{
	int64_t at;

	if (target->addr->space == WSPACE_SHARED) {
		at = shared_at(sim, target, thread, n);
		if (at < 0)
			return;
		shadow_write(sim, target->addr->shared, at, (uint32_t)n, thread);
		memcpy(sim->shared + at, bytes, (size_t)n);
		return;
	}
	at = global_at(sim, target, thread, n);
	if (at < 0)
		return;
	shadow_global_write(sim, elems_at(target->tensor, at, n), thread, bytes);
	memcpy(target->tensor->bytes + at * target->tensor->elem_bytes, bytes, (size_t)n);
}

/* ---- registers as bytes ---- */

static void copy_elem(uint8_t *to, const uint8_t *from, uint32_t n)
{
	switch (n) {
	case 1:
		*to = *from;
		break;
	case 2:
		memcpy(to, from, 2);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	default:
		memcpy(to, from, n);
		break;
	}
}

/* `bytes` NULL: zeros. */
static void put_regs(struct sim *sim, const struct slots *slots, int64_t slot, uint32_t thread,
                     const uint8_t *bytes)
{
	static const uint8_t zeros[16] = { 0 };
	uint32_t n = slots->file->elem_bytes;

	sim_need_idle(sim, slots, slot, thread, REG_PRODUCT | REG_OPERAND);
	for (int64_t s = 0; s < slots->regs->n; s++)
		copy_elem(sim_reg(sim, slots->file, slot + s, thread), bytes ? bytes + s * n : zeros, n);
	sim_set_written(sim, slots->file, slot, slots->regs->n, thread);
}

static void get_regs(struct sim *sim, const struct slots *slots, int64_t slot, uint32_t thread,
                     uint8_t *bytes)
{
	uint32_t n = slots->file->elem_bytes;

	sim_need_written(sim, slots, slot, thread);
	for (int64_t s = 0; s < slots->regs->n; s++)
		copy_elem(bytes + s * n, sim_reg(sim, slots->file, slot + s, thread), n);
}

/* ---- wavefronts ---- */

/*
 * Where a warp's lanes read for cp.async, in bytes; lanes that read nothing add no word to their
 * phase.
 */
static void source_offsets(const struct target *source, const struct lane_mask *reads,
                           uint32_t warp, uint32_t bytes, int64_t out[WARP_LANES])
{
	uint32_t per_phase = bytes <= 4 ? WARP_LANES : WARP_LANES / 2;

	for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
		uint32_t first = lane / per_phase * per_phase, thread = warp * WARP_LANES + lane;
		if (!(reads->warps[warp] >> lane & 1))
			thread = mask_next(reads, warp * WARP_LANES + first);
		out[lane] = (int64_t)lane * bytes;
		if (thread < warp * WARP_LANES + first + per_phase)
			out[lane] = lanes_at(&source->offsets, thread).i * source->tensor->elem_bytes;
	}
}

/* A shared access to be counted; `source` and `reads` of cp.async only. */
struct counted {
	enum bank_op op;
	int64_t bytes, n_matrices;
	const struct target *target, *source;
	const struct lane_mask *taken, *reads;
};

static void count_wavefronts(struct sim *sim, const struct counted *counted)
{
	struct sim_access *sum = &sim->result->accesses[sim->node->id];
	struct bank_access access = { .op = counted->op,
		                          .bytes = (uint32_t)counted->bytes,
		                          .n_matrices = (uint32_t)counted->n_matrices };
	int64_t base = counted->target->addr->shared->offset_bytes, sources[WARP_LANES];

	for (uint32_t w = 0; w < sim->n_warps; w++) {
		struct bank_result result;
		access.mask = counted->taken->warps[w];
		if (!access.mask)
			continue;
		for (uint32_t bits = access.mask; bits; bits &= bits - 1) {
			uint32_t lane = (uint32_t)__builtin_ctz(bits), thread = w * WARP_LANES + lane;
			access.offsets[lane] = base + lanes_at(&counted->target->offsets, thread).i;
		}
		if (counted->source)
			source_offsets(counted->source, counted->reads, w, access.bytes, sources);
		access.sources = counted->source ? sources : NULL;
		result = bank_wavefronts(&access);
		sum->executions++;
		sum->wavefronts += result.min;
		sum->wavefronts_max += result.max;
		sum->ideal += result.ideal;
	}
}

/* ---- instructions ---- */

void sim_ld(struct sim *sim, const struct wop_ld *op, const struct lane_mask *mask,
            const struct lane_mask *taken)
{
	struct target target = find_target(sim, &op->src, taken);
	struct slots slots = sim_slots(sim, &op->dst, mask);

	assert(slots.file->elem_bytes * op->dst.n == op->bytes);
	for (uint32_t thread = mask_next(mask, 0); thread != NO_THREAD;
	     thread = mask_next(mask, thread + 1)) {
		int64_t slot = sim_slot_at(sim, &slots, thread);
		bool is_taken = taken->warps[thread / WARP_LANES] >> thread % WARP_LANES & 1;
		if (slot >= 0)
			put_regs(sim, &slots, slot, thread,
			         is_taken ? read_bytes(sim, &target, thread, op->bytes) : NULL);
	}
	if (op->src.space == WSPACE_SHARED)
		count_wavefronts(
			sim, &(struct counted){
					 .op = BANK_LD, .bytes = op->bytes, .target = &target, .taken = taken });
}

void sim_st(struct sim *sim, const struct wop_st *op, const struct lane_mask *taken)
{
	struct target target = find_target(sim, &op->dst, taken);
	struct slots slots = sim_slots(sim, &op->src, taken);
	uint8_t bytes[16];

	assert(slots.file->elem_bytes * op->src.n == op->bytes && op->bytes <= 16);
	for (uint32_t thread = mask_next(taken, 0); thread != NO_THREAD;
	     thread = mask_next(taken, thread + 1)) {
		int64_t slot = sim_slot_at(sim, &slots, thread);
		if (slot < 0)
			continue;
		get_regs(sim, &slots, slot, thread, bytes);
		write_bytes(sim, &target, thread, bytes, op->bytes);
	}
	if (op->dst.space == WSPACE_SHARED)
		count_wavefronts(
			sim, &(struct counted){
					 .op = BANK_ST, .bytes = op->bytes, .target = &target, .taken = taken });
}

/* Elements in memory, changed one by one by the thread's. */
static void combine_bytes(struct dtype type, enum atomic_kind kind, uint8_t *memory,
                          const uint8_t *bytes, int64_t n_bytes)
{
	size_t n = type.bits / 8;

	for (int64_t at = 0; at < n_bytes; at += (int64_t)n) {
		uint64_t old = 0, value = 0, sum;

		memcpy(&old, memory + at, n);
		memcpy(&value, bytes + at, n);
		sum = cell_encode(
			type, cell_combine(type, kind, cell_decode(type, old), cell_decode(type, value)));
		memcpy(memory + at, &sum, n);
	}
}

void sim_red(struct sim *sim, const struct wop_red *op, const struct lane_mask *taken)
{
	struct target target = find_target(sim, &op->dst, taken);
	struct slots slots = sim_slots(sim, &op->src, taken);
	bool is_shared = op->dst.space == WSPACE_SHARED;
	uint8_t bytes[16];

	assert(slots.file->elem_bytes * op->src.n == op->bytes);
	for (uint32_t thread = mask_next(taken, 0); thread != NO_THREAD;
	     thread = mask_next(taken, thread + 1)) {
		int64_t slot = sim_slot_at(sim, &slots, thread);
		int64_t at = is_shared ? shared_at(sim, &target, thread, op->bytes)
		                       : global_at(sim, &target, thread, op->bytes);
		uint8_t *memory;

		if (slot < 0 || at < 0)
			continue;
		get_regs(sim, &slots, slot, thread, bytes);
		if (is_shared)
			shadow_atomic(sim, op->dst.shared, at, (uint32_t)op->bytes, thread);
		else
			shadow_global_atomic(sim, elems_at(target.tensor, at, op->bytes), thread);
		memory =
			is_shared ? sim->shared + at : target.tensor->bytes + at * target.tensor->elem_bytes;
		combine_bytes(op->src.reg->type, (enum atomic_kind)op->kind, memory, bytes, op->bytes);
	}
	if (is_shared && wred_is_counted(op))
		count_wavefronts(
			sim, &(struct counted){
					 .op = BANK_ATOMIC, .bytes = op->bytes, .target = &target, .taken = taken });
}

/*
 * Element (row, column) of an 8x8 matrix of 16-bit elements belongs to lane 4 row + column / 2,
 * half column % 2 of its register; with .trans rows and columns change places. PTX ISA, section
 * ldmatrix.
 */
static uint32_t matrix_lane(uint32_t row, uint32_t column, bool trans, uint32_t *half)
{
	uint32_t r = trans ? column : row, c = trans ? row : column;

	*half = c % 2;
	return 4 * r + c / 2;
}

/* The address register of 32 lanes' matrix `m`, as the bytes of each thread's slots: [lane][m]. */
struct matrix_words {
	uint8_t bytes[WARP_LANES][16];
};

static void load_matrices(struct sim *sim, const struct wop_ldmatrix *op,
                          const struct target *target, uint32_t warp, struct matrix_words *words)
{
	for (uint32_t i = 0; i < MATRIX_ROWS * (uint32_t)op->n_matrices; i++) {
		uint32_t thread = warp * WARP_LANES + i, m = i / MATRIX_ROWS, row = i % MATRIX_ROWS;
		int64_t at = shared_at(sim, target, thread, MATRIX_ROW_BYTES);
		for (uint32_t column = 0; at >= 0 && column < 8; column++) {
			uint32_t half, lane = matrix_lane(row, column, op->trans != 0, &half);
			shadow_read(sim, op->src.shared, at + 2 * column, 2, warp * WARP_LANES + lane);
			memcpy(&words->bytes[lane][4 * m + 2 * half], sim->shared + at + 2 * column, 2);
		}
	}
}

/* Lanes that give no row address do not count. */
static struct lane_mask row_lanes(const struct sim *sim, const struct lane_mask *taken,
                                  int64_t n_matrices)
{
	struct lane_mask rows = *taken;

	for (uint32_t w = 0; w < sim->n_warps && n_matrices < 4; w++)
		rows.warps[w] &= (1u << MATRIX_ROWS * n_matrices) - 1;
	return rows;
}

void sim_ldmatrix(struct sim *sim, const struct wop_ldmatrix *op, const struct lane_mask *taken)
{
	struct lane_mask rows = row_lanes(sim, taken, op->n_matrices);
	struct target target = find_target(sim, &op->src, &rows);
	struct slots slots = sim_slots(sim, &op->dst, taken);
	struct counted counted = { .op = BANK_LDMATRIX,
		                       .bytes = MATRIX_ROW_BYTES,
		                       .n_matrices = op->n_matrices,
		                       .target = &target,
		                       .taken = &rows };

	assert(slots.file->elem_bytes * op->dst.n == 4 * op->n_matrices && op->n_matrices <= 4);
	for (uint32_t w = 0; w < sim->n_warps; w++) {
		struct matrix_words words = { { { 0 } } };
		if (!sim_whole_warp(sim, taken, w))
			continue;
		load_matrices(sim, op, &target, w, &words);
		for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
			uint32_t thread = w * WARP_LANES + lane;
			int64_t slot = sim_slot_at(sim, &slots, thread);
			if (slot >= 0)
				put_regs(sim, &slots, slot, thread, words.bytes[lane]);
		}
	}
	count_wavefronts(sim, &counted);
}

static void store_matrices(struct sim *sim, const struct wop_stmatrix *op,
                           const struct target *target, uint32_t warp,
                           const struct matrix_words *words)
{
	for (uint32_t i = 0; i < MATRIX_ROWS * (uint32_t)op->n_matrices; i++) {
		uint32_t thread = warp * WARP_LANES + i, m = i / MATRIX_ROWS, row = i % MATRIX_ROWS;
		int64_t at = shared_at(sim, target, thread, MATRIX_ROW_BYTES);
		for (uint32_t column = 0; at >= 0 && column < 8; column++) {
			uint32_t half, lane = matrix_lane(row, column, op->trans != 0, &half);
			shadow_write(sim, op->dst.shared, at + 2 * column, 2, warp * WARP_LANES + lane);
			memcpy(sim->shared + at + 2 * column, &words->bytes[lane][4 * m + 2 * half], 2);
		}
	}
}

void sim_stmatrix(struct sim *sim, const struct wop_stmatrix *op, const struct lane_mask *taken)
{
	struct lane_mask rows = row_lanes(sim, taken, op->n_matrices);
	struct target target = find_target(sim, &op->dst, &rows);
	struct slots slots = sim_slots(sim, &op->src, taken);
	struct counted counted = { .op = BANK_STMATRIX,
		                       .bytes = MATRIX_ROW_BYTES,
		                       .n_matrices = op->n_matrices,
		                       .target = &target,
		                       .taken = &rows };

	assert(slots.file->elem_bytes * op->src.n == 4 * op->n_matrices && op->n_matrices <= 4);
	for (uint32_t w = 0; w < sim->n_warps; w++) {
		struct matrix_words words = { { { 0 } } };
		if (!sim_whole_warp(sim, taken, w))
			continue;
		for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
			int64_t slot = sim_slot_at(sim, &slots, w * WARP_LANES + lane);
			if (slot >= 0)
				get_regs(sim, &slots, slot, w * WARP_LANES + lane, words.bytes[lane]);
		}
		store_matrices(sim, op, &target, w, &words);
	}
	count_wavefronts(sim, &counted);
}

/* ---- copies in flight ---- */

void sim_cp_async(struct sim *sim, const struct wop_cp_async *op, const struct lane_mask *mask,
                  const struct lane_mask *taken)
{
	struct target to = find_target(sim, &op->dst, mask);
	struct target from = find_target(sim, &op->src, taken);

	assert(op->bytes <= COPY_MAX_BYTES);
	for (uint32_t thread = mask_next(mask, 0); thread != NO_THREAD;
	     thread = mask_next(mask, thread + 1)) {
		struct pending_copy copy = { .thread = thread, .bytes = (uint32_t)op->bytes };
		const uint8_t *bytes = NULL;
		copy.to = shared_at(sim, &to, thread, op->bytes);
		copy.node = sim->node->id;
		copy.group = sim->open_group[thread];
		if (copy.to < 0)
			continue;
		if (taken->warps[thread / WARP_LANES] >> thread % WARP_LANES & 1)
			bytes = read_bytes(sim, &from, thread, op->bytes);
		if (bytes)
			memcpy(copy.data, bytes, (size_t)op->bytes);
		shadow_copy_begin(sim, op->dst.shared, copy.to, copy.bytes, thread);
		vec_push(sim->arena, &sim->pending, copy);
	}
	count_wavefronts(sim, &(struct counted){ .op = BANK_CP_ASYNC,
	                                         .bytes = op->bytes,
	                                         .target = &to,
	                                         .source = &from,
	                                         .taken = mask,
	                                         .reads = taken });
}

void sim_cp_async_commit(struct sim *sim, const struct lane_mask *taken)
{
	for (uint32_t thread = mask_next(taken, 0); thread != NO_THREAD;
	     thread = mask_next(taken, thread + 1))
		sim->open_group[thread]++;
}

void sim_land_copies(struct sim *sim, const struct lane_mask *taken)
{
	const struct wop_cp_async_wait all = { .n_pending = 0 };

	sim_cp_async_commit(sim, taken);
	sim_cp_async_wait(sim, &all, taken);
}

/* Copies of committed groups but the last n_pending land, in the order in which they were issued.
 */
void sim_cp_async_wait(struct sim *sim, const struct wop_cp_async_wait *op,
                       const struct lane_mask *taken)
{
	uint32_t n_left = 0;

	for (uint32_t i = 0; i < sim->pending.n; i++) {
		const struct pending_copy copy = sim->pending.p[i];
		uint32_t t = copy.thread;
		bool waits = taken->warps[t / WARP_LANES] >> t % WARP_LANES & 1;
		if (!waits || copy.group + op->n_pending >= sim->open_group[t]) {
			sim->pending.p[n_left++] = copy;
			continue;
		}
		shadow_copy_land(sim, &copy);
		memcpy(sim->shared + copy.to, copy.data, copy.bytes);
	}
	sim->pending.n = n_left;
}
