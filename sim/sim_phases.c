/*
 * Groups of threads that wait for each other: mbarrier objects, hardware barriers, bulk copies.
 *
 * Each group of threads (phases_groups) goes through the program on a strand of its own; one that
 * waits lets the others run. A bulk copy brings its bytes when it is issued, but whoever reads them
 * without having waited for the barrier's phase races with it.
 */
#include "sim/sim_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { LINE = 128, UNIT = 16, MAX_WAITS = 32 };

/* ---- strands ---- */

/* Where a strand is, while others run. */
struct sim_place {
	const struct wnode *node, *loops[MAX_LOOP_DEPTH];
	int64_t values[MAX_LOOP_DEPTH];
	uint32_t n_loops;
};

static void leave(struct sim *sim)
{
	struct sim_place *place = &sim->places[sim->group];

	place->node = sim->node;
	place->n_loops = sim->n_loops;
	memcpy(place->loops, sim->loops, sizeof(place->loops));
	memcpy(place->values, sim->loop_values, sizeof(place->values));
}

void sim_resume(void *user, uint32_t group)
{
	struct sim *sim = user;
	const struct sim_place *place = &sim->places[group];

	sim->group = group;
	sim->node = place->node;
	sim->n_loops = place->n_loops;
	memcpy(sim->loops, place->loops, sizeof(place->loops));
	memcpy(sim->loop_values, place->values, sizeof(place->values));
	for (uint32_t i = 0; i < sim->n_loops; i++)
		lane_eval_set_int(sim->eval, sim->loops[i]->as.loop.var, sim->loop_values[i]);
}

void sim_open_groups(struct sim *sim)
{
	struct thread_set *groups;

	sim->n_groups = phases_groups(sim->program, sim->arena, &groups);
	sim->groups = arena_array(sim->arena, struct lane_mask, sim->n_groups);
	for (uint32_t g = 0; g < sim->n_groups; g++)
		memcpy(sim->groups[g].warps, groups[g].warps, sizeof(sim->groups[g].warps));
	for (uint32_t i = 0; i < sim->program->n_nodes; i++)
		if (sim->nodes[i] && sim->nodes[i]->kind == WNODE_INST &&
		    wop_is_mbarrier(sim->nodes[i]->as.inst.kind) && !sim->phases)
			sim->phases = phases_open(sim->arena, sim->n_threads);
	if (!sim->phases)
		return;
	sim->places = arena_array(sim->arena, struct sim_place, sim->n_groups);
	sim->strands = strands_open(sim->arena, sim->n_groups,
	                            (struct strand_work){ sim, sim_run_group, sim_resume });
}

void sim_begin_groups(struct sim *sim)
{
	if (!sim->phases)
		return;
	phases_reset(sim->phases);
	memset(sim->places, 0, sim->n_groups * sizeof(*sim->places));
	memset(sim->meets, 0, sizeof(sim->meets));
}

/* Others run until `ready`; false, and the block is given up, when it never will be. */
static bool wait_for(struct sim *sim, strand_ready *ready, void *user)
{
	bool goes_on;

	leave(sim);
	goes_on = strand_wait(sim->strands, ready, user);
	if (!goes_on)
		sim_resume(sim, sim->group);
	sim->gave_up |= !goes_on;
	return goes_on;
}

/* ---- hardware barriers ---- */

struct meet_wait {
	const struct sim_meet *meet;
	uint32_t round;
};

static bool has_met(void *user)
{
	const struct meet_wait *wait = user;

	return wait->meet->round != wait->round;
}

static uint32_t count(const struct sim *sim, const struct lane_mask *mask)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < sim->n_warps; w++)
		n += (uint32_t)__builtin_popcount(mask->warps[w]);
	return n;
}

static uint32_t first_without(const struct sim *sim, const struct lane_mask *mask)
{
	uint32_t t = 0;

	while (t < sim->n_threads && mask->warps[t / WARP_LANES] >> t % WARP_LANES & 1)
		t++;
	return t;
}

static void end_meet(struct sim *sim, uint32_t id)
{
	struct sim_meet *meet = &sim->meets[id];
	struct thread_set set;

	memcpy(set.warps, meet->here.warps, sizeof(set.warps));
	phases_meet(sim->phases, &set, sim->interval++);
	if (id == 0)
		sim->block_interval = sim->interval;
	memset(&meet->here, 0, sizeof(meet->here));
	meet->round++;
}

void sim_meet(struct sim *sim, uint32_t id, uint32_t n_threads, const struct lane_mask *taken)
{
	struct sim_meet *meet = &sim->meets[id];
	struct meet_wait wait = { meet, meet->round };
	uint32_t thread = mask_next(taken, 0), n;

	if (thread == NO_THREAD)
		return;
	for (uint32_t w = 0; w < sim->n_warps; w++)
		meet->here.warps[w] |= taken->warps[w];
	n = count(sim, &meet->here);
	if (n > n_threads)
		sim_find(sim, SIM_BARRIER, who_thread(thread),
		         "%u threads reach barrier %u, which waits for %u", n, id, n_threads);
	if (n >= n_threads) {
		end_meet(sim, id);
		return;
	}
	if (!wait_for(sim, has_met, &wait))
		sim_find(sim, SIM_BARRIER, who_thread(thread),
		         "deadlock: %u of %u threads reach barrier %u; thread %u does not come",
		         count(sim, &meet->here), n_threads, id, first_without(sim, &meet->here));
}

/* ---- mbarriers ---- */

/* The byte of the thread's barrier, noted as read or written; -1 after a finding. */
static int64_t barrier_at(struct sim *sim, const struct waddr *addr, const struct lanes *offsets,
                          uint32_t thread)
{
	enum { BYTES = 8 };
	const struct wshared *shared = addr->shared;
	int64_t offset = lanes_at(offsets, thread).i, at = shared->offset_bytes + offset;

	if (offset < 0 || offset > wshared_bytes(shared) - BYTES || at % BYTES) {
		sim_find(sim, offset % BYTES ? SIM_MISALIGNED : SIM_OUT_OF_BOUNDS, who_thread(thread),
		         "thread %u uses byte %" PRId64 " of %s as a barrier", thread, offset,
		         sym_text(sim->cx->names, shared->name));
		return -1;
	}
	if (sim->node->as.inst.kind == WOP_mbar_init)
		shadow_write(sim, shared, at, BYTES, thread);
	else
		shadow_read(sim, shared, at, BYTES, thread);
	return at;
}

static void check_fault(struct sim *sim, enum phases_fault fault, const struct waddr *addr,
                        uint32_t thread)
{
	const char *name = sym_text(sim->cx->names, addr->shared->name);

	if (fault == PHASES_NOT_MADE)
		sim_find(sim, SIM_BARRIER, who_thread(thread),
		         "thread %u uses a barrier of %s that nobody made", thread, name);
	else if (fault == PHASES_COUNT)
		sim_find(sim, SIM_BARRIER, who_thread(thread),
		         "thread %u arrives at a barrier of %s whose phase waits for bytes only: there are "
		         "more arrivals than it counts",
		         thread, name);
}

static bool step_arrive(struct sim *sim, const struct wop_mbar_expect *expect, int64_t at,
                        uint32_t thread, enum phases_fault *fault)
{
	if (expect) {
		struct lanes bytes = lane_eval_run(sim->eval, expect->bytes);

		*fault = phases_expect(sim->phases, at, lanes_at(&bytes, thread).i);
		if (*fault || !expect->arrives)
			return false;
	}
	*fault = phases_arrive(sim->phases, at, thread, sim->interval);
	return true;
}

void sim_mbar(struct sim *sim, const struct winst *inst, const struct lane_mask *taken)
{
	const struct waddr *addr = winst_shared_addr(inst, NULL);
	struct lanes offsets = lane_eval_run(sim->eval, addr->offset);
	bool arrived = false;

	if (inst->kind == WOP_mbar_copies)
		sim_land_copies(sim, taken);
	for (uint32_t t = mask_next(taken, 0); t != NO_THREAD; t = mask_next(taken, t + 1)) {
		int64_t at = barrier_at(sim, addr, &offsets, t);
		enum phases_fault fault;

		if (at < 0)
			continue;
		if (inst->kind == WOP_mbar_init)
			fault = phases_init(sim->phases, at, inst->as.mbar_init.count);
		else
			arrived |= step_arrive(
				sim, inst->kind == WOP_mbar_expect ? &inst->as.mbar_expect : NULL, at, t, &fault);
		check_fault(sim, fault, addr, t);
	}
	sim->interval += arrived;
}

/* The different phases that threads of one instruction wait for. */
struct phase_wait {
	struct sim *sim;
	uint32_t n;
	int64_t at[MAX_WAITS], parity[MAX_WAITS];
};

static bool is_over(void *user)
{
	const struct phase_wait *wait = user;

	for (uint32_t i = 0; i < wait->n; i++)
		if (!phases_is_over(wait->sim->phases, wait->at[i], wait->parity[i]))
			return false;
	return true;
}

static void add_wait(struct phase_wait *wait, int64_t at, int64_t parity)
{
	for (uint32_t i = 0; i < wait->n; i++)
		if (wait->at[i] == at && wait->parity[i] == parity)
			return;
	if (wait->n == MAX_WAITS)
		BUG("one instruction waits for more than %d barriers", MAX_WAITS);
	wait->at[wait->n] = at;
	wait->parity[wait->n++] = parity;
}

static void report_deadlock(struct sim *sim, const struct phase_wait *wait,
                            const struct waddr *addr, uint32_t thread)
{
	uint32_t i = 0;

	while (i + 1 < wait->n && phases_is_over(sim->phases, wait->at[i], wait->parity[i]))
		i++;
	sim_find(sim, SIM_BARRIER, who_thread(thread),
	         "deadlock: thread %u waits for parity %" PRId64 " of %s[%" PRId64 "], which is in %s",
	         thread, wait->parity[i] & 1, sym_text(sim->cx->names, addr->shared->name),
	         (wait->at[i] - addr->shared->offset_bytes) / 8,
	         phases_text(sim->phases, sim->arena, wait->at[i]));
}

void sim_mbar_wait(struct sim *sim, const struct wop_mbar_wait *op, const struct lane_mask *taken)
{
	struct lanes offsets = lane_eval_run(sim->eval, op->bar.offset);
	struct lanes parity = lane_eval_run(sim->eval, op->parity);
	struct phase_wait wait = { .sim = sim };
	int64_t at[WARP_LANES * MAX_WARPS];
	uint32_t first = mask_next(taken, 0);

	for (uint32_t t = first; t != NO_THREAD; t = mask_next(taken, t + 1)) {
		at[t] = barrier_at(sim, &op->bar, &offsets, t);
		if (at[t] >= 0)
			add_wait(&wait, at[t], lanes_at(&parity, t).i);
		if (at[t] >= 0 && !phases_is_made(sim->phases, at[t]))
			check_fault(sim, PHASES_NOT_MADE, &op->bar, t);
	}
	if (first == NO_THREAD)
		return;
	if (!is_over(&wait) && !wait_for(sim, is_over, &wait)) {
		report_deadlock(sim, &wait, &op->bar, first);
		return;
	}
	for (uint32_t t = first; t != NO_THREAD; t = mask_next(taken, t + 1))
		if (at[t] >= 0)
			(void)phases_waited(sim->phases, at[t], t, sim->interval);
}

/* ---- bulk copies ---- */

/* One thread's copy. */
struct bulk {
	const struct wop_tma_load *op;
	const struct tensor *tensor;
	uint32_t thread, writer;
	int64_t start; /* absolute byte */
	int64_t c[5], e[5];
};

/* Where the packed byte lies: the swizzle acts on the bits of the address itself. */
static int64_t swizzled(const struct bulk *bulk, int64_t packed)
{
	int64_t at = bulk->start + packed, span = bulk->op->span;

	return span ? at ^ ((at / LINE & (span / UNIT - 1)) * UNIT) : at;
}

/* The element's number in the tensor; -1 outside. */
static int64_t element_at(const struct bulk *bulk, const int64_t *i)
{
	uint32_t rank = bulk->tensor->buffer->rank;
	int64_t at = 0;

	for (uint32_t d = 0; d < rank; d++) {
		int64_t index = bulk->c[d] + i[d];

		if (index < 0 || index >= bulk->tensor->shape[rank - 1 - d])
			return -1;
		at += index * bulk->tensor->strides[rank - 1 - d];
	}
	return at;
}

static void copy_unit(struct sim *sim, const struct bulk *bulk, const int64_t *i, int64_t packed)
{
	uint32_t bytes = bulk->tensor->elem_bytes;
	int64_t to = swizzled(bulk, packed), at[5];

	memcpy(at, i, sizeof(at));
	shadow_bulk(sim, bulk->op->dst.shared, to, UNIT,
	            (struct bulk_writer){ bulk->thread, bulk->writer });
	for (int64_t k = 0; k < UNIT / bytes; k++) {
		int64_t from;

		at[0] = i[0] + k;
		from = element_at(bulk, at);
		memset(sim->shared + to + k * bytes, 0, bytes);
		if (from < 0)
			continue;
		shadow_global_read(sim, (struct elem_range){ bulk->tensor, from, 1 }, bulk->thread);
		memcpy(sim->shared + to + k * bytes, bulk->tensor->bytes + from * bytes, bytes);
	}
}

static void copy_box(struct sim *sim, const struct bulk *bulk)
{
	int64_t i[5] = { 0 }, packed = 0;
	int64_t step = UNIT / bulk->tensor->elem_bytes;
	uint32_t d = 0;

	while (d < 5) {
		copy_unit(sim, bulk, i, packed);
		packed += UNIT;
		i[0] += step;
		for (d = 0; d < 5 && i[d] >= bulk->e[d]; d++) {
			i[d] = 0;
			if (d < 4)
				i[d + 1]++;
		}
	}
}

static int64_t box_bytes(const struct bulk *bulk)
{
	int64_t n = bulk->tensor->elem_bytes;

	for (int d = 0; d < 5; d++)
		n *= bulk->e[d];
	return n;
}

/* Inside its piece, and where boxes may start. */
static bool is_placed(struct sim *sim, const struct bulk *bulk, int64_t offset)
{
	const struct wshared *shared = bulk->op->dst.shared;
	const char *name = sym_text(sim->cx->names, shared->name);

	if (offset < 0 || offset + box_bytes(bulk) > wshared_bytes(shared))
		sim_find(sim, SIM_OUT_OF_BOUNDS, who_thread(bulk->thread),
		         "a bulk copy writes bytes %" PRId64 " to %" PRId64 " of %s, which has %" PRId64,
		         offset, offset + box_bytes(bulk) - 1, name, wshared_bytes(shared));
	else if (bulk->start % LINE)
		sim_find(sim, SIM_MISALIGNED, who_thread(bulk->thread),
		         "a bulk copy goes to byte %" PRId64 " of %s, byte %" PRId64
		         " of shared memory, which is no multiple of %d",
		         offset, name, bulk->start, LINE);
	else
		return true;
	return false;
}

void sim_tma_load(struct sim *sim, const struct wop_tma_load *op, const struct lane_mask *taken)
{
	const struct expr *c[] = { op->c0, op->c1, op->c2, op->c3, op->c4 };
	struct lanes to = lane_eval_run(sim->eval, op->dst.offset),
				 bar = lane_eval_run(sim->eval, op->bar.offset), coordinates[5];
	struct bulk bulk = { .op = op, .e = { op->e0, op->e1, op->e2, op->e3, op->e4 } };
	struct phases_copy copy;
	bool any = false;

	bulk.tensor = tensor_of(sim->tensors, op->src.global);
	for (int d = 0; d < 5; d++)
		coordinates[d] = lane_eval_run(sim->eval, c[d]);
	for (uint32_t t = mask_next(taken, 0); t != NO_THREAD; t = mask_next(taken, t + 1)) {
		int64_t at = barrier_at(sim, &op->bar, &bar, t);
		int64_t offset = lanes_at(&to, t).i;

		for (int d = 0; d < 5; d++)
			bulk.c[d] = lanes_at(&coordinates[d], t).i;
		bulk.thread = t;
		bulk.start = op->dst.shared->offset_bytes + offset;
		if (at < 0 || !is_placed(sim, &bulk, offset))
			continue;
		copy = (struct phases_copy){ t, sim->interval, box_bytes(&bulk) };
		check_fault(sim, phases_copied(sim->phases, at, copy, &bulk.writer), &op->bar, t);
		copy_box(sim, &bulk);
		sim->result->accesses[sim->node->id].executions++;
		any = true;
	}
	sim->interval += any;
}
