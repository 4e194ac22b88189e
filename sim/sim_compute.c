/* Instructions on registers: set, mma, shuffles. */
#include "sim/sim_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- register elements in expressions ---- */

static bool reg_is_varying(void *user, const struct expr *load)
{
	(void)user;
	(void)load;
	return true;
}

static uint64_t get_bits(const uint8_t *at, uint32_t n)
{
	uint64_t bits = 0;

	memcpy(&bits, at, n);
	return bits;
}

static void load_reg(void *user, const struct lane_load *load)
{
	struct sim *sim = user;
	const struct wreg *reg = load->load->as.reg;
	const struct reg_file *file = &sim->regs[reg->id];
	bool converts = !dtype_equal(reg->type, load->load->type);

	assert(load->load->n_args == 1);
	for (uint32_t t = 0; t < load->n; t++) {
		int64_t slot = lanes_at(load->index, t).i;
		union cell cell = { .i = 0 };
		if (slot < 0 || slot >= file->n_slots) {
			load->poison[t] |= POISON_BOUNDS;
		} else if (!file->written[slot * sim->n_threads + t]) {
			load->poison[t] |= POISON_UNINIT;
		} else if (file->async && file->async[slot * sim->n_threads + t] & REG_PRODUCT) {
			load->poison[t] |= POISON_UNINIT; /* not there yet */
		} else {
			uint64_t bits = get_bits(sim_reg(sim, file, slot, t), file->elem_bytes);
			cell = cell_decode(reg->type, bits);
			if (converts)
				cell = cell_convert(cell, dtype_is_float(reg->type), load->load->type, false);
		}
		load->out[t] = cell;
	}
}

struct lane_loader sim_loader(struct sim *sim)
{
	return (struct lane_loader){ sim, reg_is_varying, load_reg };
}

/*
 * A value that comes from registers that nothing wrote is no finding yet: the slot counts as not
 * written, and who stores it, multiplies it or takes it for an address or a condition is told. Idle
 * threads may compute on what they do not hold.
 */
void sim_set(struct sim *sim, const struct wop_set *op, const struct lane_mask *taken)
{
	struct lanes value = lane_eval_run(sim->eval, op->value);
	struct slots slots = sim_slots(sim, &op->dst, taken);
	struct dtype type = op->dst.reg->type;
	bool converts = !dtype_equal(op->value->type, type);

	sim_find_poison(sim, &value, taken, (uint8_t)~POISON_UNINIT, "the value");
	for (uint32_t thread = mask_next(taken, 0); thread != NO_THREAD;
	     thread = mask_next(taken, thread + 1)) {
		int64_t slot = sim_slot_at(sim, &slots, thread);
		union cell cell = lanes_at(&value, thread);
		uint64_t bits;
		if (slot < 0)
			continue;
		if (converts)
			cell = cell_convert(cell, value.is_float, type, false);
		bits = cell_encode(type, cell);
		sim_need_idle(sim, &slots, slot, thread, REG_PRODUCT | REG_OPERAND);
		for (int64_t s = slot; s < slot + op->dst.n; s++)
			memcpy(sim_reg(sim, slots.file, s, thread), &bits, slots.file->elem_bytes);
		sim_set_written(sim, slots.file, slot, op->dst.n, thread);
		if (lanes_poison(&value, thread) & POISON_UNINIT)
			slots.file->written[slot * sim->n_threads + thread] = 0;
	}
}

/* ---- shuffles ---- */

/* The lane that `lane` of the warp reads from; one outside of the warp is none. */
static int64_t source_lane(const struct winst *inst, const struct lanes *named, uint32_t warp,
                           uint32_t lane)
{
	if (inst->kind == WOP_shfl_xor)
		return lane ^ inst->as.shfl_xor.mask;
	if (inst->kind == WOP_shfl_up)
		return lane >= inst->as.shfl_up.delta ? lane - inst->as.shfl_up.delta : lane;
	if (inst->kind == WOP_shfl_down)
		return lane + inst->as.shfl_down.delta < WARP_LANES ? lane + inst->as.shfl_down.delta
		                                                    : lane;
	return lanes_at(named, warp * WARP_LANES + lane).i;
}

struct shuffle {
	const struct winst *inst;
	struct slots from, to;
	struct lanes named; /* shfl.idx: the lane that each thread names */
};

/*
 * One slot of one warp, all lanes at once; a slot that nothing wrote stays so on the other side,
 * and a lane that does not exist has nothing.
 */
static void shuffle_slot(struct sim *sim, const struct shuffle *shuffle, uint32_t warp, int64_t s)
{
	const struct slots *from = &shuffle->from, *to = &shuffle->to;
	uint32_t n = from->file->elem_bytes, first = warp * WARP_LANES, n_lanes = WARP_LANES;
	uint8_t values[WARP_LANES][8] = { { 0 } };
	bool written[WARP_LANES] = { false };

	if (first + n_lanes > sim->n_threads)
		n_lanes = (uint32_t)sim->n_threads - first;
	for (uint32_t lane = 0; lane < n_lanes; lane++) {
		int64_t slot = sim_slot_at(sim, from, first + lane);
		if (slot < 0)
			return;
		memcpy(values[lane], sim_reg(sim, from->file, slot + s, first + lane), n);
		written[lane] = from->file->written[(slot + s) * sim->n_threads + first + lane];
	}
	for (uint32_t lane = 0; lane < n_lanes; lane++) {
		int64_t slot = sim_slot_at(sim, to, first + lane);
		int64_t source = source_lane(shuffle->inst, &shuffle->named, warp, lane);
		bool exists = source >= 0 && source < n_lanes;
		if (slot < 0)
			return;
		if (exists)
			memcpy(sim_reg(sim, to->file, slot + s, first + lane), values[source], n);
		to->file->written[(slot + s) * sim->n_threads + first + lane] = exists && written[source];
	}
}

void sim_shuffle(struct sim *sim, const struct winst *inst, const struct lane_mask *taken)
{
	/* All shuffles start with the same operands. */
	const struct wregs *dst = &inst->as.shfl_xor.dst, *src = &inst->as.shfl_xor.src;
	struct shuffle shuffle = {
		inst, sim_slots(sim, src, taken), sim_slots(sim, dst, taken), { 0 }
	};

	assert(shuffle.from.file->elem_bytes == shuffle.to.file->elem_bytes);
	assert(shuffle.from.file->elem_bytes <= 8 && src->n == dst->n);
	if (inst->kind == WOP_shfl_idx) {
		shuffle.named = lane_eval_run(sim->eval, inst->as.shfl_idx.lane);
		sim_find_poison(sim, &shuffle.named, taken, 0xff, "the lane");
	}
	for (uint32_t w = 0; w < sim->n_warps; w++)
		for (int64_t s = 0; sim_whole_warp(sim, taken, w) && s < src->n; s++)
			shuffle_slot(sim, &shuffle, w, s);
}

/* ---- mma ---- */

/*
 * With e elements of A and B in a 32-bit register, lane l's group g = l / 4 and place p = l % 4:
 * A's register r holds row g + 8 (r % 2), columns e p + 4 e (r / 2) onwards; B's register r holds
 * column g, rows e p + 4 e r onwards; D's slots 2 h and 2 h + 1 hold row g + 8 h, columns 2 p and 2
 * p + 1.
 */
struct mma_element mma_fragment(enum mma_shape shape, enum mma_operand operand, int lane, int slot)
{
	int per_reg = 32 / mma_shape_info(shape)->ab.bits;
	int group = lane / 4, place = lane % 4, reg = slot / per_reg, part = slot % per_reg;

	switch (operand) {
	case MMA_A:
		return (struct mma_element){ group + 8 * (reg % 2),
			                         place * per_reg + part + 4 * per_reg * (reg / 2) };
	case MMA_B:
		return (struct mma_element){ place * per_reg + part + 4 * per_reg * reg, group };
	case MMA_D:
		return (struct mma_element){ group + 8 * (slot / 2), 2 * place + slot % 2 };
	}
	return (struct mma_element){ 0, 0 };
}

enum { MMA_M = 16, MMA_N = 8, MMA_MAX_K = 32 };

static const struct mma_map *mma_map_of(struct sim *sim, enum mma_shape shape)
{
	const struct mma_shape_info *info = mma_shape_info(shape);
	struct mma_map *map = &sim->mma_maps[shape];

	if (map->ready)
		return map;
	assert(info->m == MMA_M && info->n == MMA_N && info->k <= MMA_MAX_K);
	for (int lane = 0; lane < WARP_LANES; lane++) {
		for (int slot = 0; slot < info->a_slots; slot++) {
			struct mma_element e = mma_fragment(shape, MMA_A, lane, slot);
			map->a[lane][slot] = (uint16_t)(e.row * info->k + e.column);
		}
		for (int slot = 0; slot < info->b_slots; slot++) {
			struct mma_element e = mma_fragment(shape, MMA_B, lane, slot);
			map->b[lane][slot] = (uint16_t)(e.row * MMA_N + e.column);
		}
		for (int slot = 0; slot < info->d_slots; slot++) {
			struct mma_element e = mma_fragment(shape, MMA_D, lane, slot);
			map->d[lane][slot] = (uint16_t)(e.row * MMA_N + e.column);
		}
	}
	map->ready = true;
	return map;
}

static const float *half_values(struct sim *sim)
{
	if (sim->half_values)
		return sim->half_values;
	sim->half_values = arena_array(sim->arena, float, 65536);
	for (uint32_t bits = 0; bits < 65536; bits++)
		sim->half_values[bits] = (float)cell_decode(DTYPE_F16, bits).f;
	return sim->half_values;
}

/* The low 13 bits of a tf32 operand are ignored. */
void sim_operand_values(struct sim *sim, struct dtype type, const uint8_t *at, uint32_t n,
                        float *values)
{
	const float *halves = type.kind == TYPE_FLOAT && type.bits == 16 ? half_values(sim) : NULL;

	for (uint32_t lane = 0; lane < n; lane++) {
		uint32_t word;
		uint16_t half;
		if (type.bits == 16) {
			memcpy(&half, at + 2 * lane, 2);
			word = (uint32_t)half << 16;
			if (halves)
				values[lane] = halves[half];
			else
				memcpy(&values[lane], &word, sizeof(word));
		} else if (type.bits == 32) {
			memcpy(&word, at + 4 * lane, 4);
			word &= 0xffffe000u;
			memcpy(&values[lane], &word, sizeof(word));
		} else if (dtype_is_float(type)) {
			values[lane] = (float)dtype_decode(type, at[lane]);
		} else {
			values[lane] = (float)dtype_decode_int(type, at[lane]);
		}
	}
}

/*
 * Operands of one warp, gathered to matrices; integers are exact in float (|sum| < 2^24 for k =
 * 32).
 */
struct mma_tile {
	float a[MMA_M * MMA_MAX_K], b[MMA_MAX_K * MMA_N], sum[MMA_M * MMA_N];
};

static void multiply(struct mma_tile *tile, int k)
{
	for (int i = 0; i < MMA_M; i++) {
		float row[MMA_N] = { 0 };
		for (int l = 0; l < k; l++) {
			float a = tile->a[i * k + l];
			for (int j = 0; j < MMA_N; j++)
				row[j] += a * tile->b[l * MMA_N + j];
		}
		memcpy(&tile->sum[i * MMA_N], row, sizeof(row));
	}
}

/* First slot of an operand, the same for all lanes, written by all of the warp; -1 after a finding.
 */
static int64_t operand_slot(struct sim *sim, const struct slots *slots, uint32_t warp)
{
	uint32_t first = warp * WARP_LANES;
	int64_t slot = sim_slot_at(sim, slots, first);

	assert(!slots->lanes.stride);
	for (int64_t s = slot; slot >= 0 && s < slot + slots->regs->n; s++) {
		const uint8_t *written = &slots->file->written[s * sim->n_threads + first];
		const uint8_t *zero = memchr(written, 0, WARP_LANES);
		if (zero)
			sim_need_written(sim, slots, slot, first + (uint32_t)(zero - written));
	}
	return slot;
}

/* One operand's slots of a whole warp into `matrix` by the map. */
static bool gather(struct sim *sim, const struct slots *slots, uint32_t warp,
                   const uint16_t (*map)[32], float *matrix)
{
	int64_t slot = operand_slot(sim, slots, warp);
	float values[WARP_LANES];

	for (int64_t s = 0; slot >= 0 && s < slots->regs->n; s++) {
		const uint8_t *at = sim_reg(sim, slots->file, slot + s, warp * WARP_LANES);
		sim_operand_values(sim, slots->regs->reg->type, at, WARP_LANES, values);
		for (int lane = 0; lane < WARP_LANES; lane++)
			matrix[map[lane][s]] = values[lane];
	}
	return slot >= 0;
}

void sim_accumulate(struct dtype type, uint8_t *at, uint32_t n, const float *sums)
{
	for (uint32_t i = 0; i < n; i++, at += type.bits / 8) {
		union cell cell = cell_decode(type, get_bits(at, type.bits / 8));
		uint64_t bits;
		if (dtype_is_float(type))
			cell.f = (double)((float)cell.f + sums[i]);
		else
			cell.i += (int64_t)sums[i];
		bits = cell_encode(type, cell);
		memcpy(at, &bits, type.bits / 8);
	}
}

static void accumulate(struct sim *sim, const struct slots *slots, uint32_t warp,
                       const uint16_t (*map)[32], const float *sum)
{
	int64_t slot = operand_slot(sim, slots, warp);
	float parts[WARP_LANES];

	for (int64_t s = 0; slot >= 0 && s < slots->regs->n; s++) {
		uint8_t *at = sim_reg(sim, slots->file, slot + s, warp * WARP_LANES);
		memset(&slots->file->written[(slot + s) * sim->n_threads + warp * WARP_LANES], 1,
		       WARP_LANES);
		for (uint32_t lane = 0; lane < WARP_LANES; lane++)
			parts[lane] = sum[map[lane][s]];
		sim_accumulate(slots->regs->reg->type, at, WARP_LANES, parts);
	}
}

void sim_mma(struct sim *sim, const struct wop_mma *op, const struct lane_mask *taken)
{
	const struct mma_shape_info *info = mma_shape_info((enum mma_shape)op->shape);
	const struct mma_map *map = mma_map_of(sim, (enum mma_shape)op->shape);
	struct slots a = sim_slots(sim, &op->a, taken), b = sim_slots(sim, &op->b, taken);
	struct slots d = sim_slots(sim, &op->d, taken);
	struct mma_tile tile;

	assert(op->a.n == info->a_slots && op->b.n == info->b_slots && op->d.n == info->d_slots);
	for (uint32_t w = 0; w < sim->n_warps; w++) {
		if (!sim_whole_warp(sim, taken, w) || !gather(sim, &a, w, map->a, tile.a) ||
		    !gather(sim, &b, w, map->b, tile.b))
			continue;
		multiply(&tile, info->k);
		accumulate(sim, &d, w, map->d, tile.sum);
	}
}
