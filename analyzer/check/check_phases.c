/*
 * Programs whose groups of threads wait for each other: mbarriers and bulk copies.
 *
 * Each group (phases_groups) runs on a strand; one that waits lets the others run, so that one of
 * the possible schedules is executed. What it shows holds for all of them when every arrival knows
 * that the phase before is over and every phase ends after all waits for the one before
 * (phases_overrun): then nobody can see another phase than here, and order by clocks is order in
 * every schedule.
 */
#include "analyzer/check/check_run_internal.h"

#include <inttypes.h>
#include <string.h>

enum { HARDWARE_BARRIERS = 16, MAX_LOOPS = 64, MAX_WAITS = 32, LINE = 128, UNIT = 16 };

/* Where a group is, while others run. */
struct run_place {
	bool *active;
	const struct wnode *split;
	uint32_t n_unknown;
	uint32_t n_loops;
	const struct var *vars[MAX_LOOPS];
	int64_t values[MAX_LOOPS];
};

/* Threads that have come to a hardware barrier, and how often it has let them go. */
struct run_meeting {
	struct thread_set here;
	uint32_t round;
};

struct run_groups {
	struct strands *strands;
	struct thread_set *sets;
	uint32_t n, now;
	struct run_place *places;
	struct run_meeting meetings[HARDWARE_BARRIERS];
};

static bool is_mbarrier(enum wop_kind kind)
{
	return wop_is_mbarrier(kind);
}

static bool is_barrier(enum wop_kind kind)
{
	return wop_is_mbarrier(kind) || kind == WOP_barrier || kind == WOP_barrier_part;
}

static bool has_inst(const struct wblock *block, bool (*is_wanted)(enum wop_kind kind))
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];

		if (node->kind == WNODE_INST && is_wanted(node->as.inst.kind))
			return true;
		if (node->kind == WNODE_LOOP && has_inst(&node->as.loop.body, is_wanted))
			return true;
		if (node->kind == WNODE_WHILE && has_inst(&node->as.while_.body, is_wanted))
			return true;
		if (node->kind == WNODE_IF && (has_inst(&node->as.if_.then, is_wanted) ||
		                               has_inst(&node->as.if_.otherwise, is_wanted)))
			return true;
	}
	return false;
}

bool run_has_mbarrier(const struct wblock *block)
{
	return has_inst(block, is_mbarrier);
}

bool run_has_barrier(const struct wblock *block)
{
	return has_inst(block, is_barrier);
}

/* ---- groups ---- */

static void run_group(void *user, uint32_t group)
{
	struct run *run = user;

	(void)group;
	run_block(run, &run->warp->body);
}

static void resume(void *user, uint32_t group)
{
	struct run *run = user;
	const struct run_place *place = &run->groups_of->places[group];

	run->groups_of->now = group;
	run->active = place->active;
	run->split = place->split;
	run->n_unknown = place->n_unknown;
	for (uint32_t i = 0; i < place->n_loops; i++)
		run->values[place->vars[i]->id] = place->values[i];
}

void run_open_groups(struct run *run)
{
	struct arena *arena = run->check->cx->arena;
	struct run_groups *groups;

	if (!run_has_mbarrier(&run->warp->body))
		return;
	groups = arena_new(arena, struct run_groups);
	groups->n = phases_groups(run->warp, arena, &groups->sets);
	groups->places = arena_array(arena, struct run_place, groups->n);
	groups->strands =
		strands_open(arena, groups->n, (struct strand_work){ run, run_group, resume });
	run->groups_of = groups;
	run->phases = phases_open(arena, (uint32_t)run->warp->n_threads);
}

static bool is_in(const struct thread_set *set, int64_t thread)
{
	return set->warps[thread / 32] >> thread % 32 & 1;
}

static void report_overrun(struct run *run, int64_t at)
{
	const struct wshared *shared = NULL;

	for (uint32_t i = 0; i < run->warp->shareds.n; i++)
		if (run->warp->shareds.p[i]->offset_bytes <= at)
			shared = run->warp->shareds.p[i];
	run_give_up(
		&run->limit, shared ? shared->span : (struct span){ 0 },
		arena_printf(run->check->cx->arena,
	                 "another order of the threads could mistake a phase of %s for the next: "
	                 "an arrival or a phase's end is not ordered behind the waits before it",
	                 shared ? sym_text(run->check->cx->names, shared->name) : "a barrier"));
}

bool run_by_groups(struct run *run)
{
	struct run_groups *groups = run->groups_of;
	size_t n_threads = (size_t)run->warp->n_threads;
	bool *all = run->active;

	if (!groups)
		return false;
	phases_reset(run->phases);
	memset(groups->meetings, 0, sizeof(groups->meetings));
	for (uint32_t g = 0; g < groups->n; g++) {
		groups->places[g] =
			(struct run_place){ .active = arena_array(run->check->cx->arena, bool, n_threads) };
		for (size_t t = 0; t < n_threads; t++)
			groups->places[g].active[t] = is_in(&groups->sets[g], (int64_t)t);
	}
	(void)strands_run(groups->strands);
	run->active = all;
	run->split = NULL;
	if (phases_overrun(run->phases) >= 0)
		report_overrun(run, phases_overrun(run->phases));
	return true;
}

void run_enter_loop(struct run *run, const struct var *var)
{
	struct run_place *place;

	if (!run->groups_of || run->only_global)
		return;
	place = &run->groups_of->places[run->groups_of->now];
	if (place->n_loops == MAX_LOOPS)
		BUG("loops deeper than %d", MAX_LOOPS);
	place->vars[place->n_loops++] = var;
}

void run_leave_loop(struct run *run)
{
	if (run->groups_of && !run->only_global)
		run->groups_of->places[run->groups_of->now].n_loops--;
}

/* Others run until `ready`; false, and the block is given up, when it never will be. */
static bool wait_for(struct run *run, strand_ready *ready, void *user)
{
	struct run_place *place = &run->groups_of->places[run->groups_of->now];

	place->active = run->active;
	place->split = run->split;
	place->n_unknown = run->n_unknown;
	for (uint32_t i = 0; i < place->n_loops; i++)
		place->values[i] = run->values[place->vars[i]->id];
	if (strand_wait(run->groups_of->strands, ready, user))
		return !run->gave_up;
	resume(run, run->groups_of->now);
	return false;
}

static void find_deadlock(struct run *run, const struct wnode *node, const char *text)
{
	if (!run->gave_up && !run->limit.why && !run->check->n_found[PROPERTY_TERMINATION])
		check_found(run->check,
		            (struct finding){ PROPERTY_TERMINATION, PROPERTY_VIOLATED, node->span, "" },
		            "%s", text);
	run_give_up(&run->limit, node->span, "the threads wait for each other here for ever");
	run->gave_up = true;
}

/* ---- hardware barriers ---- */

struct meet_wait {
	const struct run *run;
	const struct run_meeting *meeting;
	uint32_t round;
};

static bool has_met(void *user)
{
	const struct meet_wait *wait = user;

	return wait->meeting->round != wait->round || wait->run->gave_up;
}

static int64_t n_here(const struct run *run, const struct run_meeting *meeting)
{
	int64_t n = 0;

	for (int64_t t = 0; t < run->warp->n_threads; t++)
		n += is_in(&meeting->here, t);
	return n;
}

void run_meet(struct run *run, const struct wnode *node, uint32_t id, int64_t n_threads)
{
	struct run_meeting *meeting = &run->groups_of->meetings[id];
	struct meet_wait wait = { run, meeting, meeting->round };
	int64_t n, missing = 0;

	for (int64_t t = 0; t < run->warp->n_threads; t++)
		if (run->mask[t])
			meeting->here.warps[t / 32] |= 1u << t % 32;
	n = n_here(run, meeting);
	if (n == n_threads) {
		phases_meet(run->phases, &meeting->here, run->interval++);
		if (id == 0)
			run->block_interval = run->interval;
		memset(&meeting->here, 0, sizeof(meeting->here));
		meeting->round++;
		return;
	}
	if (n < n_threads && wait_for(run, has_met, &wait))
		return;
	n = n_here(run, meeting);
	while (missing + 1 < run->warp->n_threads && is_in(&meeting->here, missing))
		missing++;
	find_deadlock(run, node,
	              arena_printf(run->check->cx->arena,
	                           "deadlock: %" PRId64 " threads come to barrier %u, which waits for "
	                           "%" PRId64 "; thread %" PRId64 " does not come",
	                           n, id, n_threads, missing));
}

/* ---- readers ---- */

void run_note_reader(struct run *run, struct granule *g, int32_t thread)
{
	struct reader *reader = g->readers;

	while (reader && reader->thread != thread)
		reader = reader->next;
	if (!reader) {
		reader = arena_new(run->check->cx->arena, struct reader);
		reader->thread = thread;
		reader->next = g->readers;
		g->readers = reader;
	}
	reader->interval = run->interval;
}

int32_t run_reader_not_before(const struct run *run, const struct granule *g, int32_t thread)
{
	for (const struct reader *reader = g->readers; reader; reader = reader->next)
		if (reader->interval >= run->block_interval &&
		    !phases_ordered(run->phases, (uint32_t)reader->thread, reader->interval,
		                    (uint32_t)thread))
			return reader->thread;
	return NO_THREAD;
}

/* ---- mbarriers ---- */

static const char *place_text(const struct run *run, const struct waddr *addr, int64_t at)
{
	return arena_printf(run->check->cx->arena, "%s[%" PRId64 "]",
	                    sym_text(run->check->cx->names, addr->shared->name),
	                    (at - addr->shared->offset_bytes) / 8);
}

/* Values for all threads; false when they are not known, which ends the block. */
static bool must_evaluate(struct run *run, const struct wnode *node, const struct expr *e,
                          int64_t *out)
{
	if (run_evaluate(run, e, out))
		return true;
	run_give_up(&run->limit, node->span,
	            "which barrier or phase is meant depends on values that the kernel computes");
	run->gave_up = true;
	return false;
}

/* Does it touch the barrier's bytes in order and in bounds? */
static bool touch_barrier(struct run *run, const struct wnode *node, const struct waddr *addr,
                          int64_t thread, int64_t offset)
{
	struct shared_touch touch = { .node = node, .addr = addr, .bytes = 8 };

	touch.is_write = node->as.inst.kind == WOP_mbar_init;
	return run_touch(run, &touch, (int32_t)thread, offset);
}

static void find_fault(struct run *run, const struct wnode *node, const struct waddr *addr,
                       enum phases_fault fault)
{
	struct finding finding = { PROPERTY_TERMINATION, PROPERTY_VIOLATED, node->span,
		                       sym_text(run->check->cx->names, addr->shared->name) };

	if (fault == PHASES_FINE || run->gave_up)
		return;
	run_give_up(&run->limit, node->span, "a barrier is not used as it was made");
	run->gave_up = true;
	check_found(run->check, finding, "%s",
	            fault == PHASES_NOT_MADE
	                ? "a barrier is used that nobody made"
	                : "more threads arrive at a barrier than its phase waits for");
}

/* One thread's step at its barrier; whether it arrived. */
static bool step(struct run *run, const struct wnode *node, int64_t at, int64_t thread,
                 const int64_t *bytes)
{
	const struct winst *inst = &node->as.inst;
	const struct waddr *addr = winst_shared_addr(inst, NULL);
	enum phases_fault fault = PHASES_FINE;
	bool arrives = true;

	if (inst->kind == WOP_mbar_init) {
		find_fault(run, node, addr, phases_init(run->phases, at, inst->as.mbar_init.count));
		return false;
	}
	if (inst->kind == WOP_mbar_expect) {
		fault = phases_expect(run->phases, at, bytes[thread]);
		arrives = inst->as.mbar_expect.arrives && !fault;
	}
	if (arrives)
		fault = phases_arrive(run->phases, at, (uint32_t)thread, run->interval);
	find_fault(run, node, addr, fault);
	return arrives;
}

static void run_arrivals(struct run *run, const struct wnode *node)
{
	const struct winst *inst = &node->as.inst;
	const struct waddr *addr = winst_shared_addr(inst, NULL);
	int64_t n = run->warp->n_threads, *bytes = NULL;
	bool arrived = false;

	if (!must_evaluate(run, node, addr->offset, run->offsets))
		return;
	if (inst->kind == WOP_mbar_expect) {
		bytes = arena_array(run->check->cx->arena, int64_t, (size_t)n);
		if (!must_evaluate(run, node, inst->as.mbar_expect.bytes, bytes))
			return;
	}
	for (int64_t t = 0; t < n && !run->gave_up; t++)
		if (run->mask[t] && touch_barrier(run, node, addr, t, run->offsets[t]))
			arrived |= step(run, node, addr->shared->offset_bytes + run->offsets[t], t, bytes);
	run->interval += arrived;
}

/* The phases that the threads of one instruction wait for. */
struct phase_wait {
	struct run *run;
	uint32_t n;
	int64_t at[MAX_WAITS], parity[MAX_WAITS];
};

static bool is_over(void *user)
{
	const struct phase_wait *wait = user;

	for (uint32_t i = 0; i < wait->n; i++)
		if (!phases_is_over(wait->run->phases, wait->at[i], wait->parity[i]))
			return wait->run->gave_up;
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

static void report_wait(struct run *run, const struct wnode *node, const struct phase_wait *wait,
                        int64_t thread)
{
	uint32_t i = 0;

	while (i + 1 < wait->n && phases_is_over(run->phases, wait->at[i], wait->parity[i]))
		i++;
	find_deadlock(run, node,
	              arena_printf(run->check->cx->arena,
	                           "deadlock: thread %" PRId64 " waits for parity %" PRId64
	                           " of %s, which is in %s; nobody will arrive",
	                           thread, wait->parity[i] & 1,
	                           place_text(run, &node->as.inst.as.mbar_wait.bar, wait->at[i]),
	                           phases_text(run->phases, run->check->cx->arena, wait->at[i])));
}

static void run_wait(struct run *run, const struct wnode *node)
{
	const struct wop_mbar_wait *op = &node->as.inst.as.mbar_wait;
	struct arena *arena = run->check->cx->arena;
	int64_t n = run->warp->n_threads, first = NO_THREAD;
	int64_t *at = arena_array(arena, int64_t, (size_t)n),
			*parity = arena_array(arena, int64_t, (size_t)n);
	bool *mask = arena_array(arena, bool, (size_t)n);
	struct phase_wait wait = { .run = run };

	if (!must_evaluate(run, node, op->bar.offset, at) ||
	    !must_evaluate(run, node, op->parity, parity))
		return;
	memcpy(mask, run->mask, (size_t)n * sizeof(*mask));
	for (int64_t t = n; t-- > 0;) {
		mask[t] = mask[t] && touch_barrier(run, node, &op->bar, t, at[t]);
		if (!mask[t])
			continue;
		first = t;
		at[t] += op->bar.shared->offset_bytes;
		add_wait(&wait, at[t], parity[t]);
		if (!phases_is_made(run->phases, at[t]))
			find_fault(run, node, &op->bar, PHASES_NOT_MADE);
	}
	if (first == NO_THREAD || run->gave_up)
		return;
	if (!is_over(&wait) && !wait_for(run, is_over, &wait)) {
		report_wait(run, node, &wait, first);
		return;
	}
	for (int64_t t = 0; t < n && !run->gave_up; t++)
		if (mask[t])
			(void)phases_waited(run->phases, at[t], (uint32_t)t, run->interval);
}

/* ---- bulk copies ---- */

static int64_t box_bytes(const struct wop_tma_load *op)
{
	return op->e0 * op->e1 * op->e2 * op->e3 * op->e4 * (int64_t)dtype_bits(op->src.global->type) /
	       8;
}

/* One thread's copy: where it may go, and what it meets there. */
static void run_copy(struct run *run, const struct wnode *node, int64_t thread, int64_t bar,
                     int64_t offset)
{
	const struct wop_tma_load *op = &node->as.inst.as.tma_load;
	const struct wshared *shared = op->dst.shared;
	struct shared_touch touch = { .node = node, .addr = &op->dst, .bytes = UNIT, .is_write = true };
	int64_t bytes = box_bytes(op), start = shared->offset_bytes + offset;
	const char *name = sym_text(run->check->cx->names, shared->name);
	uint32_t writer;
	bool ok = true;

	if (start % LINE) {
		check_found(run->check,
		            (struct finding){ PROPERTY_ALIGNMENT, PROPERTY_VIOLATED, node->span, name },
		            "a bulk copy goes to byte %" PRId64 " of shared memory, no multiple of %d",
		            start, LINE);
		return;
	}
	find_fault(run, node, &op->bar,
	           phases_copied(run->phases, op->bar.shared->offset_bytes + bar,
	                         (struct phases_copy){ (uint32_t)thread, run->interval, bytes },
	                         &writer));
	touch.is_bulk = true;
	touch.bulk_writer = (int32_t)writer;
	/* The swizzle moves pieces within the box. */
	for (int64_t at = 0; at < bytes && ok; at += UNIT)
		ok = run_touch(run, &touch, (int32_t)thread, offset + at);
}

static void run_tma(struct run *run, const struct wnode *node)
{
	const struct wop_tma_load *op = &node->as.inst.as.tma_load;
	int64_t n = run->warp->n_threads;
	int64_t *to = arena_array(run->check->cx->arena, int64_t, (size_t)n);
	bool any = false;

	if (!must_evaluate(run, node, op->dst.offset, to) ||
	    !must_evaluate(run, node, op->bar.offset, run->offsets))
		return;
	for (int64_t t = 0; t < n && !run->gave_up; t++) {
		if (!run->mask[t] || !touch_barrier(run, node, &op->bar, t, run->offsets[t]))
			continue;
		run_copy(run, node, t, run->offsets[t], to[t]);
		any = true;
	}
	run->interval += any;
}

void run_mbarrier(struct run *run, const struct wnode *node)
{
	const struct winst *inst = &node->as.inst;

	if (run->only_global)
		return;
	if (inst->predicate && !run_evaluate(run, inst->predicate, run->conditions)) {
		run_give_up(&run->limit, node->span,
		            "which threads arrive depends on values that the kernel computes");
		run->gave_up = true;
		return;
	}
	run_predicate(run, inst->predicate, run->mask);
	if (inst->kind == WOP_mbar_wait)
		run_wait(run, node);
	else if (inst->kind == WOP_tma_load)
		run_tma(run, node);
	else
		run_arrivals(run, node);
}
