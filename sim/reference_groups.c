/*
 * Launches whose groups of threads wait for each other (T.barrier_wait): each group of whole warps
 * that takes the same branches goes through the launch on a strand of its own. What all threads do
 * together, outside of branches on the thread's number, is done once, when all groups have come.
 */
#include "sim/reference_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { WARP = 32, WARPGROUP = 128, MAX_LOOPS = 64 };

/* A barrier as the tile program has it: arrivals of threads; bytes are there at once. */
struct ref_barrier {
	const struct buffer *buffer;
	int64_t element, count, pending;
	uint32_t n_done;
};

/* Where a group is, while others run. */
struct ref_place {
	const struct stmt *stmt;
	const struct ref_mask *mask;
	struct ref_exits *exits;
	uint32_t n_loops, depth, n_met;
	const struct var *vars[MAX_LOOPS];
	int64_t values[MAX_LOOPS];
};

struct ref_groups {
	struct strands *strands;
	uint32_t n, now; /* groups; the one that runs */
	struct ref_mask *masks;
	uint32_t *first; /* threads */
	struct ref_place *places;
	uint32_t n_here, n_met; /* groups that came to the present meeting; meetings that are over */
	vec_of(struct ref_barrier) barriers;
	const struct ref_mask *all;
};

/* ---- which groups ---- */

struct group_search {
	const struct launch *launch;
	struct arena *arena;
	bool waits, is_mixed;
	vec_of(const struct expr *) conditions;
};

struct thread_reads {
	const struct launch *launch;
	bool thread, other;
};

static void visit_read(void *user, const struct expr *e)
{
	struct thread_reads *reads = user;
	bool is_thread = false;

	for (int axis = 0; axis < 3; axis++)
		is_thread |= e->kind == EXPR_VAR && e->as.var == reads->launch->thread[axis];
	reads->thread |= is_thread;
	reads->other |=
		(e->kind == EXPR_VAR && !is_thread) || e->kind == EXPR_LOAD || e->kind == EXPR_CALL;
}

static struct thread_reads reads_of(const struct launch *launch, const struct expr *e)
{
	struct thread_reads reads = { launch, false, false };

	expr_walk(e, visit_read, &reads);
	return reads;
}

static void visit_stmt(void *user, struct stmt *stmt)
{
	struct group_search *search = user;
	struct thread_reads reads;

	search->waits |= stmt->kind == STMT_OP && stmt->as.op.kind == OP_barrier_wait;
	if (stmt->kind != STMT_IF)
		return;
	reads = reads_of(search->launch, stmt->as.if_.condition);
	if (reads.thread && !reads.other && stmt->as.if_.condition->is_index)
		vec_push(search->arena, &search->conditions, stmt->as.if_.condition);
	else
		search->is_mixed |= reads.thread;
}

static bool holds(const struct launch *launch, const struct expr *condition, int64_t *values,
                  int64_t t)
{
	for (int axis = 0; axis < 3; axis++) {
		if (launch->thread[axis])
			values[launch->thread[axis]->id] = t % launch->threads[axis];
		t /= launch->threads[axis];
	}
	return expr_eval_int(condition, values) != 0;
}

static bool go_alike(const struct group_search *search, int64_t *values, int64_t a, int64_t b)
{
	for (uint32_t i = 0; i < search->conditions.n; i++)
		if (holds(search->launch, search->conditions.p[i], values, a) !=
		    holds(search->launch, search->conditions.p[i], values, b))
			return false;
	return !search->is_mixed;
}

static void run_strand(void *user, uint32_t group);
static void resume(void *user, uint32_t group);

/* Units of threads, each of which the last thread stands for: single ones are chosen in front. */
static void find_groups(struct ref *ref, const struct group_search *search,
                        struct ref_groups *groups)
{
	int64_t n_threads = launch_n_threads(ref->launch);
	int64_t unit = n_threads > WARPGROUP ? WARPGROUP : WARP, before = 0;
	int64_t *values = arena_array(ref->arena, int64_t, expr_n_vars(ref->program->pool) + 1u);
	size_t most = (size_t)(n_threads / unit + 1);

	groups->masks = arena_array(ref->arena, struct ref_mask, most);
	groups->first = arena_array(ref->arena, uint32_t, most);
	for (int64_t first = 0; first < n_threads; first += unit) {
		int64_t last = first + unit < n_threads ? first + unit - 1 : n_threads - 1;

		if (first == 0 || !go_alike(search, values, before, last)) {
			groups->first[groups->n] = (uint32_t)first;
			groups->n++;
		}
		before = last;
		memset(groups->masks[groups->n - 1].on + first, 1, (size_t)(last - first + 1));
	}
}

void ref_open_groups(struct ref *ref)
{
	struct group_search search = { .launch = ref->launch, .arena = ref->arena };
	struct ref_groups *groups;

	ref->groups = NULL;
	ref->first_thread = 0;
	tile_walk((struct block *)(uintptr_t)&ref->launch->body, visit_stmt, &search);
	if (!search.waits || !ref->by_thread)
		return;
	groups = arena_new(ref->arena, struct ref_groups);
	find_groups(ref, &search, groups);
	groups->places = arena_array(ref->arena, struct ref_place, groups->n);
	groups->strands =
		strands_open(ref->arena, groups->n, (struct strand_work){ ref, run_strand, resume });
	ref->groups = groups;
}

/* ---- running ---- */

static void run_strand(void *user, uint32_t group)
{
	struct ref *ref = user;

	ref_run_block(ref, &ref->launch->body, &ref->groups->masks[group]);
}

static void resume(void *user, uint32_t group)
{
	struct ref *ref = user;
	const struct ref_place *place = &ref->groups->places[group];

	ref->groups->now = group;
	ref->first_thread = ref->thread = ref->groups->first[group];
	ref->stmt = place->stmt;
	ref->mask = place->mask;
	ref->exits = place->exits;
	for (uint32_t i = 0; i < place->n_loops; i++)
		lane_eval_set_int(ref->eval, place->vars[i], place->values[i]);
}

bool ref_run_groups(struct ref *ref, const struct ref_mask *all)
{
	struct ref_groups *groups = ref->groups;

	if (!groups)
		return false;
	groups->all = all;
	groups->n_here = groups->n_met = groups->barriers.n = 0;
	memset(groups->places, 0, groups->n * sizeof(*groups->places));
	(void)strands_run(groups->strands);
	return true;
}

bool ref_in_group(const struct ref *ref, uint32_t thread)
{
	return !ref->groups || ref->groups->masks[ref->groups->now].on[thread];
}

static struct ref_place *place_of(struct ref *ref)
{
	return ref->groups ? &ref->groups->places[ref->groups->now] : NULL;
}

void ref_enter_loop(struct ref *ref, const struct var *var)
{
	struct ref_place *place = place_of(ref);

	if (!place || ref->in_parallel)
		return;
	if (place->n_loops == MAX_LOOPS)
		BUG("loops deeper than %d", MAX_LOOPS);
	place->vars[place->n_loops++] = var;
}

void ref_set_loop(struct ref *ref, int64_t value)
{
	struct ref_place *place = place_of(ref);

	if (place && !ref->in_parallel)
		place->values[place->n_loops - 1] = value;
}

void ref_leave_loop(struct ref *ref)
{
	struct ref_place *place = place_of(ref);

	if (place && !ref->in_parallel)
		place->n_loops--;
}

void ref_enter_branch(struct ref *ref, const struct expr *condition, int step)
{
	struct ref_place *place = place_of(ref);

	if (place && reads_of(ref->launch, condition).thread)
		place->depth += (uint32_t)step;
}

static bool wait_for(struct ref *ref, strand_ready *ready, void *user)
{
	struct ref_place *place = place_of(ref);

	place->stmt = ref->stmt;
	place->mask = ref->mask;
	place->exits = ref->exits;
	if (strand_wait(ref->groups->strands, ready, user))
		return true;
	resume(ref, ref->groups->now);
	return false;
}

/* ---- what all threads do together ---- */

struct meet_wait {
	const struct ref_groups *groups;
	uint32_t number;
};

static bool is_over(void *user)
{
	const struct meet_wait *wait = user;

	return wait->groups->n_met > wait->number;
}

enum ref_meeting ref_meet(struct ref *ref)
{
	struct ref_place *place = place_of(ref);
	struct meet_wait wait;

	if (!place || place->depth || ref->groups->n == 1)
		return REF_ALONE;
	wait = (struct meet_wait){ ref->groups, place->n_met++ };
	if (++ref->groups->n_here == ref->groups->n) {
		ref->mask = ref->groups->all;
		return REF_LAST;
	}
	if (!wait_for(ref, is_over, &wait))
		ref_fail(ref, "not all threads come to what they do together here");
	return REF_DONE;
}

void ref_met(struct ref *ref)
{
	ref->groups->n_here = 0;
	ref->groups->n_met++;
}

/* ---- barriers ---- */

static struct ref_barrier *barrier_of(struct ref *ref, const struct expr *e, bool makes)
{
	struct ref_barrier made = { .buffer = e->kind == EXPR_LOAD ? e->as.buffer : NULL };
	struct ref_groups *groups = ref->groups;
	struct lanes lanes;
	union cell cell;

	if (!made.buffer || e->n_args != 1) {
		ref_fail(ref, "a barrier that is no element of a buffer");
		return NULL;
	}
	lanes = lane_eval_run(ref->eval, e->args[0]);
	if (!ref_agreed(ref, &lanes, "the barrier", &cell))
		return NULL;
	made.element = cell.i;
	for (uint32_t i = 0; i < groups->barriers.n; i++)
		if (groups->barriers.p[i].buffer == made.buffer &&
		    groups->barriers.p[i].element == made.element)
			return &groups->barriers.p[i];
	if (!makes) {
		ref_fail(ref, "a barrier that nobody made");
		return NULL;
	}
	vec_push(ref->arena, &groups->barriers, made);
	return &vec_last(&groups->barriers);
}

static bool value_of(struct ref *ref, const struct expr *e, const char *what, int64_t *out)
{
	struct lanes lanes = lane_eval_run(ref->eval, e);
	union cell cell;

	if (!ref_agreed(ref, &lanes, what, &cell))
		return false;
	*out = cell.i;
	return true;
}

static int64_t n_threads_here(const struct ref *ref)
{
	int64_t n = 0;

	for (uint32_t t = 0; t < lane_eval_n_lanes(ref->eval); t++)
		n += ref->mask->on[t];
	return n;
}

static void arrive(struct ref *ref, struct ref_barrier *barrier)
{
	for (int64_t n = n_threads_here(ref); barrier && n > 0; n--)
		if (--barrier->pending == 0) {
			barrier->pending = barrier->count;
			barrier->n_done++;
		}
}

struct phase_wait {
	struct ref *ref;
	const struct buffer *buffer;
	int64_t element, parity;
};

static bool phase_is_over(void *user)
{
	const struct phase_wait *wait = user;
	const struct ref_groups *groups = wait->ref->groups;

	for (uint32_t i = 0; i < groups->barriers.n; i++)
		if (groups->barriers.p[i].buffer == wait->buffer &&
		    groups->barriers.p[i].element == wait->element)
			return (groups->barriers.p[i].n_done & 1) != (wait->parity & 1);
	return false;
}

static void wait_at(struct ref *ref, const struct op_barrier_wait *op)
{
	const struct ref_barrier *barrier = barrier_of(ref, op->barrier, false);
	struct phase_wait wait = { .ref = ref };

	if (!barrier || !value_of(ref, op->parity, "the parity", &wait.parity))
		return;
	wait.buffer = barrier->buffer;
	wait.element = barrier->element;
	if (!phase_is_over(&wait) && !wait_for(ref, phase_is_over, &wait))
		ref_fail(ref, "deadlock: nobody ends the phase that is waited for here");
}

static void make(struct ref *ref, const struct op_barrier_init *op)
{
	struct ref_barrier *barrier = barrier_of(ref, op->barrier, true);
	int64_t count;

	if (!barrier || !value_of(ref, op->arrive_count, "the number of arrivals", &count))
		return;
	barrier->count = barrier->pending = count;
	barrier->n_done = 0;
}

void ref_barrier_op(struct ref *ref, const struct op *op)
{
	if (!ref->groups) /* nobody waits */
		return;
	if (op->kind == OP_barrier_init)
		make(ref, &op->as.barrier_init);
	else if (op->kind == OP_barrier_arrive)
		arrive(ref, barrier_of(ref, op->as.barrier_arrive.barrier, false));
	else if (op->kind == OP_barrier_wait)
		wait_at(ref, &op->as.barrier_wait);
	else if (op->as.barrier_expect_tx.arrives)
		arrive(ref, barrier_of(ref, op->as.barrier_expect_tx.barrier, false));
}

void ref_copies_arrive(struct ref *ref, const struct expr *barrier)
{
	if (ref->groups)
		arrive(ref, barrier_of(ref, barrier, false));
}
