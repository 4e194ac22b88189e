/*
 * What a partition costs, in cycles of one SM for one block, as far as it does not depend on shared
 * layouts.
 *
 * Global accesses cost issue slots, 32-byte sectors and 128-byte lines touched by each warp
 * instruction; shared accesses their issue slots and, as a bound, the wavefronts of a conflict-free
 * access; arithmetic the slots that each warp walks through (so idle lanes and replicas cost what
 * they waste); reductions their shuffles and, over several warps, the round trip through shared
 * memory with two barriers. Sectors and lines are counted on up to MAX_SAMPLES (warp, instruction)
 * pairs spread and scaled up; the first element of every row is taken to start a line, as far as
 * alignment allows.
 */
#include "analyzer/banks/traffic.h"
#include "analyzer/solve/solve_internal.h"

#include <assert.h>
#include <string.h>

enum { MAX_SAMPLES = 64, MAX_THREADS = 1024, SECTOR_BYTES = 32, LINE_BYTES = 128 };

/* Cycles: throughput figures of sm_80 to sm_90 rounded to what ranks partitions rightly. */
static const double LINE_CYCLES = 0.25;
static const double SLOT_CYCLES =
	0.10; /* an arithmetic instruction of a warp, overlapped with memory in part */
static const double DIVISION_INSTRUCTIONS = 6.0;
/* Latencies: hidden by the blocks that share the SM, so they count divided by their number. */
static const double SERIAL_LATENCY = 1.0; /* an instruction of one warp behind another */
static const double SHUFFLE_LATENCY = 25.0;
/* A fragment's slot that some threads leave empty, so that each warp asks who has one: 96
 * elements over 8 lanes of 8 took 42 us on an H200, over 8 lanes of 4, without a rest, 25. */
static const double GUARD_CYCLES = 1.0;
/*
 * What a block waits for, statement by statement; other blocks hide it, as many as its registers
 * leave room for, until global memory delivers no faster. Measured on an H200 by a layer norm of
 * 4 rows a block (three statements on global memory): with 54 registers a thread 85 us, with 32 of
 * them 47 us, both 5,100 cycles a block divided by the blocks that fit.
 */
static const double GLOBAL_LATENCY = 1500.0, LOCAL_LATENCY = 50.0;
static const double OTHER_REGISTERS = 24.0;    /* of a thread: addresses, indices, temporaries */
static const double GLOBAL_BYTES_CYCLE = 18.7; /* of an SM: 4.2 TB/s, 132 SMs, 1.7 GHz */
/* Cycles of the terms above for one on the card, where both were compared. */
static const double MODEL_CYCLES = 3.0;

/* Contribution of a thread, or of a slot, to the space's index. */
struct part {
	int64_t index[MAX_RANK];
};

struct sampler {
	const struct space *space;
	const struct layout *layout;
	int64_t n_warps;
	struct part threads[MAX_THREADS];
	/* The sampled instruction: each lane's index, and whether it is inside the shape. */
	struct part lanes[LANES];
	bool active[LANES];
	bool is_exact; /* no place lies outside the shape, and warps are whole */
	bool has_rest; /* some slots are empty in some threads and not in others */
	/* Elements from the first that each thread adds, for the use at hand. */
	int64_t moves[MAX_THREADS];
};

/* The same for all threads at once. */
static void add_threads(const struct layout *layout, struct part *threads)
{
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];
		int64_t value = 0, run = 0;

		if (digit->axis != AXIS_THREAD || digit->dim == DIM_REPLICA)
			continue;
		for (int64_t t = 0; t < layout->n_threads; t++) {
			threads[t].index[digit->dim] += value * digit->div;
			if (++run < digit->stride)
				continue;
			run = 0;
			value = value + 1 < digit->extent ? value + 1 : 0;
		}
	}
}

static void add_axis(const struct layout *layout, enum layout_axis axis, int64_t value,
                     int64_t *index)
{
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];

		if (digit->axis == axis && digit->dim != DIM_REPLICA)
			index[digit->dim] += value / digit->stride % digit->extent * digit->div;
	}
}

static void sampler_open(struct sampler *sampler, const struct space *space,
                         const struct layout *layout)
{
	sampler->space = space;
	sampler->layout = layout;
	sampler->n_warps = (layout->n_threads + LANES - 1) / LANES;
	assert(layout->n_threads <= MAX_THREADS);
	memset(sampler->threads, 0, (size_t)layout->n_threads * sizeof(sampler->threads[0]));
	add_threads(layout, sampler->threads);
	sampler->is_exact = layout->n_threads % LANES == 0;
	sampler->has_rest = false;
	for (uint32_t d = 0; d < space->rank; d++) {
		int64_t last = 0, n_threads = 1;

		for (uint32_t i = 0; i < layout->n_digits; i++)
			if (layout->digits[i].dim == (int)d) {
				last += (layout->digits[i].extent - 1) * layout->digits[i].div;
				if (layout->digits[i].axis == AXIS_THREAD)
					n_threads *= layout->digits[i].extent;
			}
		sampler->is_exact = sampler->is_exact && last < space->shape[d];
		sampler->has_rest |= last >= space->shape[d] && n_threads > 1;
	}
}

/* Fills the sampler's lanes with the indices of (warp, slot). */
static void sample_warp(struct sampler *sampler, int64_t warp, int64_t slot)
{
	struct part base = { { 0 } };

	add_axis(sampler->layout, AXIS_SLOT, slot, base.index);
	for (int64_t lane = 0; lane < LANES; lane++) {
		int64_t thread = warp * LANES + lane;

		sampler->active[lane] = thread < sampler->layout->n_threads;
		for (uint32_t d = 0; sampler->active[lane] && d < sampler->space->rank; d++) {
			sampler->lanes[lane].index[d] = base.index[d] + sampler->threads[thread].index[d];
			sampler->active[lane] = sampler->lanes[lane].index[d] < sampler->space->shape[d];
		}
	}
}

/* Up to LANES values, found by a hash. */
struct distinct {
	uint64_t used; /* bit set over `values` */
	int64_t values[64];
};

/* False when it was there already. */
static bool add_distinct(struct distinct *set, int64_t value)
{
	uint32_t at = (uint32_t)((uint64_t)value * 0x9e3779b97f4a7c15u >> 58);

	for (; set->used >> at & 1; at = (at + 1) & 63)
		if (set->values[at] == value)
			return false;
	set->used |= (uint64_t)1 << at;
	set->values[at] = value;
	return true;
}

struct touched_lines {
	double instructions, sectors, lines;
};

/* Element number that the lane's iteration touches, up to what the space does not change. */
static int64_t element_at(const struct sampler *sampler, const struct use *use, int lane)
{
	const int64_t *index = sampler->lanes[lane].index;
	int64_t sum = 0;

	if (use->places) {
		for (uint32_t d = 0; d < sampler->space->rank; d++)
			sum = sum * sampler->space->shape[d] + index[d];
		return use->places[sum];
	}
	for (uint32_t d = 0; d < sampler->space->rank; d++)
		sum += index[d] * use->steps[d];
	return sum;
}

/* One warp instruction of the use: adds to `touched` when any lane is active. */
static void count_touched(const struct sampler *sampler, const struct use *use, int64_t elem_bytes,
                          struct touched_lines *touched)
{
	struct distinct sectors, lines;
	uint32_t n_sectors = 0, n_lines = 0;

	sectors.used = lines.used = 0;

	for (int lane = 0; lane < LANES; lane++) {
		int64_t address;

		if (!sampler->active[lane])
			continue;
		address = element_at(sampler, use, lane) * elem_bytes;
		if (!add_distinct(&sectors, address / SECTOR_BYTES))
			continue;
		n_sectors++;
		n_lines += add_distinct(&lines, address / LINE_BYTES);
	}
	touched->instructions += n_sectors > 0;
	touched->sectors += n_sectors;
	touched->lines += n_lines;
}

/* The same where all lanes are active and addresses are linear. */
static struct touched_lines count_moves(const struct sampler *sampler, const struct use *use,
                                        int64_t at, int64_t width, int64_t elem_bytes)
{
	int64_t warp = at % sampler->n_warps, slot = at / sampler->n_warps * width;
	struct touched_lines touched = { 1, 0, 0 };
	struct distinct sectors, lines;
	struct part base = { { 0 } };
	int64_t first = 0;

	sectors.used = lines.used = 0;
	add_axis(sampler->layout, AXIS_SLOT, slot, base.index);
	for (uint32_t d = 0; d < sampler->space->rank; d++)
		first += base.index[d] * use->steps[d];
	for (int lane = 0; lane < LANES; lane++) {
		int64_t address = (first + sampler->moves[warp * LANES + lane]) * elem_bytes;

		if (!add_distinct(&sectors, address / SECTOR_BYTES))
			continue;
		touched.sectors++;
		touched.lines += add_distinct(&lines, address / LINE_BYTES);
	}
	return touched;
}

static void set_moves(struct sampler *sampler, const struct use *use)
{
	for (int64_t t = 0; t < sampler->layout->n_threads; t++) {
		sampler->moves[t] = 0;
		for (uint32_t d = 0; d < sampler->space->rank; d++)
			sampler->moves[t] += sampler->threads[t].index[d] * use->steps[d];
	}
}

/* Iterations that an instruction serves: the partition's vector where the use is consecutive along
 * it, or, when it only loads, where the vector's places share one element. */
static int64_t use_width(const struct use *use, const struct layout *layout, int64_t vector,
                         int64_t elem_bytes)
{
	int64_t width = vector;
	int inner = NO_DIM;

	for (uint32_t i = 0; i < layout->n_digits; i++)
		if (layout->digits[i].axis == AXIS_SLOT && layout->digits[i].stride == 1)
			inner = layout->digits[i].dim;
	if (inner >= 0 && inner != DIM_REPLICA && !use->is_store && !use->places &&
	    use->steps[inner] == 0)
		return vector;
	if (inner != use->contiguous_dim)
		return 1;
	while (width > 1 && (width > use->max_vector || width * elem_bytes > 16))
		width /= 2;
	return width;
}

/* The i-th of evenly spread numbers below n, without regard to n's divisors: multiples of the
 * golden ratio. */
static int64_t spread(int64_t i, int64_t n)
{
	uint32_t fraction = (uint32_t)i * 2654435769u;

	return (int64_t)(((uint64_t)fraction * (uint64_t)n) >> 32);
}

static struct touched_lines sample_use(struct sampler *sampler, const struct use *use,
                                       int64_t width, int64_t elem_bytes)
{
	int64_t n_groups = sampler->layout->n_slots / width, n = n_groups * sampler->n_warps;
	int64_t n_samples = n < MAX_SAMPLES ? n : MAX_SAMPLES;
	struct touched_lines touched = { 0, 0, 0 };
	double scale = (double)n / (double)n_samples;
	bool by_moves = sampler->is_exact && !use->places;

	if (by_moves)
		set_moves(sampler, use);
	for (int64_t i = 0; i < n_samples; i++) {
		int64_t at = n_samples == n ? i : spread(i, n);

		if (by_moves) {
			struct touched_lines one = count_moves(sampler, use, at, width, elem_bytes);

			touched.instructions += one.instructions;
			touched.sectors += one.sectors;
			touched.lines += one.lines;
			continue;
		}
		sample_warp(sampler, at % sampler->n_warps, at / sampler->n_warps * width);
		count_touched(sampler, use, elem_bytes, &touched);
	}
	touched.instructions *= scale;
	touched.sectors *= scale;
	touched.lines *= scale;
	return touched;
}

static int64_t n_elems_of(const struct space *space)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < space->rank; d++)
		n *= space->shape[d];
	return n;
}

static int64_t memory_bytes(const struct buffer *buffer)
{
	return dtype_bits(buffer->type) / 8 > 0 ? dtype_bits(buffer->type) / 8 : 1;
}

/* At least one wavefront for each instruction and for each 128 distinct bytes. */
double solve_shared_bound(const struct space *space, const struct use *use,
                          const struct layout *partition)
{
	int64_t elem_bytes = memory_bytes(use->buffer);
	int64_t vector = solve_loop_plan(space, partition).vector_elems;
	int64_t width = use_width(use, partition, vector, elem_bytes);
	double bytes = (double)(n_elems_of(space) * elem_bytes);
	double instructions = (double)n_elems_of(space) / (double)(width * LANES);
	int times = (int)use->is_load + (int)use->is_store;

	for (uint32_t d = 0; d < space->rank; d++)
		if (use->steps[d] == 0 && space->shape[d] > 1)
			bytes = 0;
	return times *
	       (instructions + (instructions > bytes / LINE_BYTES ? instructions : bytes / LINE_BYTES));
}

/* A use of global memory; loads and stores of one element count as two accesses. */
static double global_cost(struct sampler *sampler, const struct use *use, int64_t vector)
{
	int64_t elem_bytes = memory_bytes(use->buffer);
	int64_t width = use_width(use, sampler->layout, vector, elem_bytes);
	int times = (int)use->is_load + (int)use->is_store;
	struct touched_lines touched = sample_use(sampler, use, width, elem_bytes);

	return times * (touched.instructions * CYCLES_GLOBAL_ISSUE + touched.sectors * CYCLES_SECTOR +
	                touched.lines * LINE_CYCLES);
}

/* The layout of a reducer with its replicas, which hold partial results, as the last dimension. */
static const struct layout *with_replicas(const struct solver *solver, const struct layout *layout)
{
	struct layout *out;
	int64_t shape[MAX_RANK + 1];

	assert(layout->rank < MAX_RANK);
	for (uint32_t d = 0; d < layout->rank; d++)
		shape[d] = layout->shape[d];
	shape[layout->rank] = layout->n_replicas;
	out = layout_new_fragment(solver->arena, layout->rank + 1, shape);
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		struct digit digit = layout->digits[i];

		if (digit.dim == DIM_REPLICA)
			digit.dim = (int)layout->rank;
		layout_add_digit(out, digit);
	}
	layout_finish(out);
	return out;
}

bool solve_reduce_plan(const struct solver *solver, const struct space *space,
                       const struct layout *source, int64_t elem_bytes, struct reduce_plan *plan)
{
	int64_t n_results = 1;

	if (source->table_threads)
		return false;
	*plan = (struct reduce_plan){ .source = source, .dim = space->reduced_dim, .n_parts = 1 };
	if (space->kind == SPACE_FINALIZE) {
		plan->source = with_replicas(solver, source);
		plan->dim = source->rank;
		source = plan->source;
	}
	for (uint32_t d = 0; d < source->rank; d++)
		n_results *= d == plan->dim ? 1 : source->shape[d];
	for (uint32_t i = 0; i < source->n_digits; i++) {
		const struct digit *digit = &source->digits[i];
		struct reduce_split split;

		if (digit->axis != AXIS_THREAD || digit->dim != plan->dim)
			continue;
		split = access_reduce_split(source, digit);
		plan->lane_mask_bits |= (split.lanes - 1) * digit->stride;
		plan->is_ragged |=
			solver->n_threads % (split.lanes * digit->stride) != 0 && split.lanes > 1;
		plan->n_parts *= split.parts;
	}
	plan->workspace_bytes = plan->n_parts > 1 ? plan->n_parts * n_results * elem_bytes : 0;
	return true;
}

bool solve_scan_plan(const struct space *space, const struct layout *layout, int64_t elem_bytes,
                     struct scan_plan *plan)
{
	struct scan_level levels[MAX_DIGITS];
	uint32_t n_levels;

	*plan = (struct scan_plan){ .layout = layout };
	if (layout->table_threads)
		return false;
	n_levels = access_scan_levels(layout, space->reduced_dim, levels);
	for (uint32_t i = 0; i < n_levels; i++) {
		int64_t n = levels[i].split.parts * levels[i].n_groups * levels[i].n_blocks;

		if (levels[i].split.parts > 1 && n * elem_bytes > plan->workspace_bytes)
			plan->workspace_bytes = n * elem_bytes;
	}
	return true;
}

/* Blocks that share an SM as far as threads allow. */
static double resident_blocks(const struct solver *solver)
{
	int64_t n = solver->target->threads_sm / solver->n_threads;

	if (n > solver->target->blocks_sm)
		n = solver->target->blocks_sm;
	return n < 1 ? 1 : (double)n;
}

/* Bytes of global memory that the use touches, once through the space. */
static double global_bytes(const struct space *space, const struct use *use)
{
	double bytes = dtype_bits(use->buffer->type) / 8.0;

	for (uint32_t d = 0; d < space->rank; d++)
		if (use->places || use->steps[d] != 0)
			bytes *= (double)space->shape[d];
	return bytes;
}

void solve_measure_latency(struct solver *solver)
{
	solver->latency = solver->transfer = 0;
	for (uint32_t s = 0; s < solver->spaces.n; s++) {
		const struct space *space = solver->spaces.p[s];
		bool has_fragment = false, has_global = false;

		for (uint32_t u = 0; u < space->uses.n; u++) {
			const struct use *use = &space->uses.p[u];

			has_fragment |= use->buffer->scope == SCOPE_FRAGMENT;
			if (use->buffer->scope != SCOPE_GLOBAL)
				continue;
			has_global = true;
			solver->transfer +=
				(double)space->weight * global_bytes(space, use) / GLOBAL_BYTES_CYCLE;
		}
		if (has_fragment)
			solver->latency +=
				(double)space->weight * (has_global ? GLOBAL_LATENCY : LOCAL_LATENCY);
	}
}

double solve_register_cost(const struct solver *solver, const struct component *component,
                           const struct layout *const *fragments)
{
	double threads = (double)launch_n_threads(solver->launch), waiting;
	double registers = OTHER_REGISTERS, most = resident_blocks(solver);
	double sm = (double)solver->target->registers_sm;

	for (uint32_t f = 0; f < component->fragments.n; f++)
		registers += (double)fragments[f]->n_slots *
		             (double)dtype_bits(component->fragments.p[f]->type) / 32.0;
	waiting = solver->latency / most;
	if (registers * threads * most > sm)
		waiting = solver->latency * registers * threads / sm;
	return waiting > solver->transfer ? MODEL_CYCLES * (waiting - solver->transfer) : 0;
}

static void add_reduce_cost(struct solver *solver, const struct space *space,
                            const struct layout *layout, struct space_cost *cost)
{
	struct reduce_plan plan;
	double result_slots = (double)layout->n_slots, latency = 0;
	int64_t n_warps = (layout->n_threads + LANES - 1) / LANES;
	int n_shuffles;

	if (!solve_reduce_plan(solver, space, layout, 4, &plan)) {
		cost->fixed += 1e9; /* never chosen: solve_propagate refuses it */
		return;
	}
	for (uint32_t i = 0; i < layout->n_digits; i++)
		if (layout->digits[i].axis == AXIS_SLOT && layout->digits[i].dim == plan.dim)
			result_slots /= (double)layout->digits[i].extent;
	n_shuffles = __builtin_popcountll((unsigned long long)plan.lane_mask_bits);
	n_shuffles += plan.is_ragged && plan.n_parts == 1; /* the first lane tells the others */
	cost->fixed += n_shuffles * result_slots * (double)n_warps * CYCLES_SHUFFLE;
	latency += n_shuffles * SHUFFLE_LATENCY;
	if (plan.n_parts > 1) {
		cost->fixed += result_slots * (double)(n_warps * (2 + plan.n_parts)) * CYCLES_GLOBAL_ISSUE;
		latency += 2 * CYCLES_BARRIER_LATENCY + (double)plan.n_parts * SHUFFLE_LATENCY;
	}
	cost->fixed += latency / resident_blocks(solver);
}

static void add_scan_cost(struct solver *solver, const struct space *space,
                          const struct layout *layout, struct space_cost *cost)
{
	struct scan_level levels[MAX_DIGITS];
	uint32_t n_levels = access_scan_levels(layout, space->reduced_dim, levels);
	double n_warps = (double)((layout->n_threads + LANES - 1) / LANES), latency = 0;

	for (uint32_t i = 0; i < n_levels; i++) {
		double blocks = (double)levels[i].n_blocks;
		int64_t parts = levels[i].split.parts;
		int n_shuffles = 2;

		cost->fixed += (double)layout->n_slots * n_warps * SLOT_CYCLES * 2;
		if (levels[i].digit->axis != AXIS_THREAD)
			continue;
		for (int64_t reach = 1; reach < levels[i].split.lanes; reach *= 2)
			n_shuffles++;
		if (levels[i].split.lanes > 1) {
			cost->fixed += n_shuffles * blocks * n_warps * CYCLES_SHUFFLE;
			latency += n_shuffles * SHUFFLE_LATENCY;
		}
		if (parts > 1) {
			cost->fixed += blocks * n_warps * (double)(2 + parts) * CYCLES_GLOBAL_ISSUE;
			latency += 2 * CYCLES_BARRIER_LATENCY + (double)parts * SHUFFLE_LATENCY;
		}
	}
	cost->fixed += latency / resident_blocks(solver);
}

/* Dividing the thread number by something else than a power of two, once a thread. */
static int n_real_divisions(const struct layout *layout)
{
	int n = 0;

	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];

		if (digit->axis != AXIS_THREAD)
			continue;
		n += (digit->stride & (digit->stride - 1)) != 0;
		n += (digit->extent & (digit->extent - 1)) != 0 &&
		     digit->stride * digit->extent < layout->n_threads;
	}
	return n;
}

static struct space_cost find_space_cost(struct solver *solver, const struct space *space,
                                         const struct layout *layout)
{
	struct sampler sampler;
	struct space_cost cost = { 0, 0 };
	int64_t vector = solve_loop_plan(space, layout).vector_elems;
	bool has_fragment = false;
	double slots;

	assert(layout->n_slots % vector == 0);
	solve_spend(solver, WORK_PARTITION, 1);
	sampler_open(&sampler, space, layout);
	for (uint32_t u = 0; u < space->uses.n; u++) {
		const struct use *use = &space->uses.p[u];

		has_fragment |= use->buffer->scope == SCOPE_FRAGMENT;
		if (use->buffer->scope == SCOPE_GLOBAL) {
			solve_spend(solver, WORK_SAMPLE, 1);
			cost.fixed += global_cost(&sampler, use, vector);
		} else if (use->buffer->scope == SCOPE_SHARED)
			cost.shared_bound += solve_shared_bound(space, use, layout);
	}
	slots = (double)layout->n_slots * (double)(1 + space->n_ops);
	cost.fixed +=
		slots * ((double)sampler.n_warps * SLOT_CYCLES + SERIAL_LATENCY / resident_blocks(solver));
	if (sampler.has_rest && has_fragment)
		cost.fixed += GUARD_CYCLES * (double)layout->n_slots * (double)sampler.n_warps;
	cost.fixed +=
		n_real_divisions(layout) * DIVISION_INSTRUCTIONS * SLOT_CYCLES * (double)sampler.n_warps;
	if (space->kind == SPACE_REDUCE || space->kind == SPACE_FINALIZE)
		add_reduce_cost(solver, space, layout, &cost);
	if (space->kind == SPACE_SCAN)
		add_scan_cost(solver, space, layout, &cost);
	cost.fixed *= (double)space->weight;
	cost.shared_bound *= (double)space->weight;
	return cost;
}

struct space_cost solve_space_cost(struct solver *solver, const struct space *space,
                                   const struct layout *layout)
{
	uint64_t key = hash_mix(space->key, solve_layout_hash(layout));
	struct space_cost *cost = map_get(&solver->memo->partitions, key);

	if (!cost) {
		cost = arena_new(solver->arena, struct space_cost);
		*cost = find_space_cost(solver, space, layout);
		map_set(solver->arena, &solver->memo->partitions, key, cost);
	}
	return *cost;
}
