/*
 * Vector clocks, and the state of each mbarrier.
 */
#include "codegen/lower/phases.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { MAX_BARRIERS = 256, WARP = 32 };

struct mbarrier {
	int64_t at;
	uint32_t count, pending; /* arrivals of a phase, and how many are missing */
	int64_t tx;              /* bytes announced and not there */
	uint32_t n_done;         /* phases */
	uint32_t *next, *last;   /* clocks: of the phase that runs, of the one before */
	uint32_t *waited;        /* by thread: interval + 1 in which it found the last phase over */
};

struct phases {
	struct arena *arena;
	uint32_t n_threads, width; /* of a clock: threads, then a copy for each barrier */
	uint32_t *clocks;          /* [thread * width + other]: ordered are intervals below */
	uint32_t *fenced;          /* likewise, for the first thread of each warpgroup */
	struct mbarrier barriers[MAX_BARRIERS];
	uint32_t n_barriers, n_made; /* in use; with memory */
	int64_t overrun;
};

static size_t fenced_n(const struct phases *phases)
{
	return (size_t)(phases->n_threads / WGMMA_THREADS + 1) * phases->width;
}

struct phases *phases_open(struct arena *arena, uint32_t n_threads)
{
	struct phases *phases = arena_new(arena, struct phases);

	assert(n_threads <= PHASES_MAX_THREADS);
	phases->arena = arena;
	phases->n_threads = n_threads;
	phases->width = n_threads + MAX_BARRIERS;
	phases->clocks = arena_array(arena, uint32_t, (size_t)n_threads * phases->width);
	phases->fenced = arena_array(arena, uint32_t, fenced_n(phases));
	phases->overrun = -1;
	return phases;
}

void phases_reset(struct phases *phases)
{
	memset(phases->clocks, 0, (size_t)phases->n_threads * phases->width * sizeof(uint32_t));
	memset(phases->fenced, 0, fenced_n(phases) * sizeof(uint32_t));
	phases->n_barriers = 0;
	phases->overrun = -1;
}

static uint32_t *clock_of(const struct phases *phases, uint32_t thread)
{
	assert(thread < phases->n_threads);
	return phases->clocks + (size_t)thread * phases->width;
}

static void take_over(const struct phases *phases, uint32_t *to, const uint32_t *from)
{
	for (uint32_t i = 0; i < phases->width; i++)
		to[i] = from[i] > to[i] ? from[i] : to[i];
}

bool phases_ordered(const struct phases *phases, uint32_t other, uint32_t interval, uint32_t thread)
{
	return other == thread || interval < clock_of(phases, thread)[other];
}

void phases_fence(struct phases *phases, uint32_t thread)
{
	if (thread % WGMMA_THREADS == 0)
		memcpy(phases->fenced + (size_t)(thread / WGMMA_THREADS) * phases->width,
		       clock_of(phases, thread), phases->width * sizeof(uint32_t));
}

bool phases_fenced(const struct phases *phases, uint32_t other, uint32_t interval, uint32_t thread)
{
	return interval < phases->fenced[(size_t)(thread / WGMMA_THREADS) * phases->width + other];
}

static bool is_in(const struct thread_set *set, uint32_t thread)
{
	return set->warps[thread / WARP] >> thread % WARP & 1;
}

void phases_meet(struct phases *phases, const struct thread_set *set, uint32_t interval)
{
	uint32_t *all = NULL;

	for (uint32_t t = 0; t < phases->n_threads; t++) {
		if (!is_in(set, t))
			continue;
		if (!all)
			all = clock_of(phases, t);
		take_over(phases, all, clock_of(phases, t));
		all[t] = interval + 1;
	}
	for (uint32_t t = 0; t < phases->n_threads; t++)
		if (is_in(set, t) && clock_of(phases, t) != all)
			memcpy(clock_of(phases, t), all, phases->width * sizeof(uint32_t));
}

/* ---- barriers ---- */

static struct mbarrier *find(const struct phases *phases, int64_t at)
{
	for (uint32_t i = 0; i < phases->n_barriers; i++)
		if (phases->barriers[i].at == at)
			return (struct mbarrier *)(uintptr_t)&phases->barriers[i];
	return NULL;
}

static struct mbarrier *make(struct phases *phases)
{
	struct mbarrier *made;

	if (phases->n_barriers == MAX_BARRIERS)
		return NULL;
	made = &phases->barriers[phases->n_barriers++];
	if (phases->n_barriers > phases->n_made) {
		phases->n_made = phases->n_barriers;
		made->next = arena_array(phases->arena, uint32_t, phases->width);
		made->last = arena_array(phases->arena, uint32_t, phases->width);
		made->waited = arena_array(phases->arena, uint32_t, phases->n_threads);
	}
	return made;
}

static void forget(const struct phases *phases, struct mbarrier *barrier)
{
	memset(barrier->next, 0, phases->width * sizeof(uint32_t));
	memset(barrier->last, 0, phases->width * sizeof(uint32_t));
	memset(barrier->waited, 0, phases->n_threads * sizeof(uint32_t));
	barrier->n_done = 0;
	barrier->tx = 0;
}

enum phases_fault phases_init(struct phases *phases, int64_t at, int64_t count)
{
	enum { MAX_COUNT = (1 << 20) - 1 };
	struct mbarrier *barrier = find(phases, at);

	if (count < 1 || count > MAX_COUNT)
		return PHASES_COUNT;
	if (!barrier)
		barrier = make(phases);
	if (!barrier)
		return PHASES_COUNT;
	barrier->at = at;
	barrier->count = barrier->pending = (uint32_t)count;
	forget(phases, barrier);
	return PHASES_FINE;
}

static void overrun(struct phases *phases, const struct mbarrier *barrier)
{
	if (phases->overrun < 0)
		phases->overrun = barrier->at;
}

static void end_phase(struct phases *phases, struct mbarrier *barrier)
{
	uint32_t *next = barrier->next;

	if (barrier->pending || barrier->tx)
		return;
	for (uint32_t t = 0; t < phases->n_threads; t++)
		if (barrier->waited[t] > next[t])
			overrun(phases, barrier);
	memset(barrier->waited, 0, phases->n_threads * sizeof(uint32_t));
	barrier->next = barrier->last;
	barrier->last = next;
	memset(barrier->next, 0, phases->width * sizeof(uint32_t));
	barrier->pending = barrier->count;
	barrier->n_done++;
}

/* The thread's clock goes to the phase that runs; it must know that the one before is over. */
static void hand_over(struct phases *phases, struct mbarrier *barrier, uint32_t thread)
{
	const uint32_t *clock = clock_of(phases, thread);

	for (uint32_t t = 0; t < phases->n_threads; t++)
		if (t != thread && barrier->last[t] > clock[t]) {
			overrun(phases, barrier);
			break;
		}
	take_over(phases, barrier->next, clock);
}

enum phases_fault phases_arrive(struct phases *phases, int64_t at, uint32_t thread,
                                uint32_t interval)
{
	struct mbarrier *barrier = find(phases, at);

	if (!barrier)
		return PHASES_NOT_MADE;
	if (!barrier->pending)
		return PHASES_COUNT;
	hand_over(phases, barrier, thread);
	barrier->next[thread] = interval + 1;
	barrier->pending--;
	end_phase(phases, barrier);
	return PHASES_FINE;
}

enum phases_fault phases_expect(struct phases *phases, int64_t at, int64_t bytes)
{
	struct mbarrier *barrier = find(phases, at);

	if (!barrier)
		return PHASES_NOT_MADE;
	barrier->tx += bytes;
	return PHASES_FINE;
}

enum phases_fault phases_copied(struct phases *phases, int64_t at, struct phases_copy copy,
                                uint32_t *writer)
{
	struct mbarrier *barrier = find(phases, at);

	*writer = phases->n_threads;
	if (!barrier)
		return PHASES_NOT_MADE;
	*writer += (uint32_t)(barrier - phases->barriers);
	hand_over(phases, barrier, copy.thread);
	barrier->next[*writer] = copy.interval + 1;
	barrier->tx -= copy.bytes;
	end_phase(phases, barrier);
	return PHASES_FINE;
}

bool phases_is_over(const struct phases *phases, int64_t at, int64_t parity)
{
	const struct mbarrier *barrier = find(phases, at);

	return !barrier || (barrier->n_done & 1) != (parity & 1);
}

enum phases_fault phases_waited(struct phases *phases, int64_t at, uint32_t thread,
                                uint32_t interval)
{
	struct mbarrier *barrier = find(phases, at);

	if (!barrier)
		return PHASES_NOT_MADE;
	take_over(phases, clock_of(phases, thread), barrier->last);
	barrier->waited[thread] = interval + 1;
	return PHASES_FINE;
}

const char *phases_text(const struct phases *phases, struct arena *arena, int64_t at)
{
	const struct mbarrier *barrier = find(phases, at);

	if (!barrier)
		return "which nobody made";
	if (barrier->tx)
		return arena_printf(arena,
		                    "phase %" PRIu32 " of which misses %" PRIu32 " of %" PRIu32
		                    " arrivals and %" PRId64 " bytes",
		                    barrier->n_done, barrier->pending, barrier->count, barrier->tx);
	return arena_printf(arena,
	                    "phase %" PRIu32 " of which misses %" PRIu32 " of %" PRIu32 " arrivals",
	                    barrier->n_done, barrier->pending, barrier->count);
}

bool phases_is_made(const struct phases *phases, int64_t at)
{
	return find(phases, at) != NULL;
}

int64_t phases_overrun(const struct phases *phases)
{
	return phases->overrun;
}

/* ---- groups ---- */

struct group_search {
	const struct warp_program *program;
	struct arena *arena;
	bool has_mbarrier, has_wgmma;
	vec_of(const struct expr *) conditions; /* on the thread's number alone */
	bool is_mixed;                          /* some are on it and on something else */
};

struct expr_kinds {
	const struct warp_program *program;
	bool reads_tid, reads_other;
};

static void visit_kind(void *user, const struct expr *e)
{
	struct expr_kinds *kinds = user;

	if (e->kind == EXPR_VAR && e->as.var == kinds->program->tid)
		kinds->reads_tid = true;
	else if (e->kind == EXPR_VAR || e->kind == EXPR_REG || e->kind == EXPR_LOAD ||
	         e->kind == EXPR_CALL)
		kinds->reads_other = true;
}

static void add_condition(struct group_search *search, const struct expr *e)
{
	struct expr_kinds kinds = { search->program, false, false };

	expr_walk(e, visit_kind, &kinds);
	if (!kinds.reads_tid)
		return;
	if (kinds.reads_other || !e->is_index)
		search->is_mixed = true;
	else
		vec_push(search->arena, &search->conditions, e);
}

static void search_block(struct group_search *search, const struct wblock *block)
{
	struct winst_wgmma wgmma;

	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];

		switch (node->kind) {
		case WNODE_INST:
			search->has_mbarrier |= wop_is_mbarrier(node->as.inst.kind);
			search->has_wgmma |= winst_wgmma(&node->as.inst, &wgmma);
			break;
		case WNODE_LOOP:
			add_condition(search, node->as.loop.extent);
			search_block(search, &node->as.loop.body);
			break;
		case WNODE_IF:
			add_condition(search, node->as.if_.condition);
			search_block(search, &node->as.if_.then);
			search_block(search, &node->as.if_.otherwise);
			break;
		case WNODE_WHILE:
			search_block(search, &node->as.while_.body);
			break;
		}
	}
}

/* Do two threads take the same side everywhere? */
static bool go_alike(const struct group_search *search, int64_t *values, int64_t a, int64_t b)
{
	int64_t *tid = &values[search->program->tid->id];

	for (uint32_t i = 0; i < search->conditions.n; i++) {
		int64_t first;

		*tid = a;
		first = expr_eval_int(search->conditions.p[i], values);
		*tid = b;
		if (expr_eval_int(search->conditions.p[i], values) != first)
			return false;
	}
	return true;
}

uint32_t phases_groups(const struct warp_program *program, struct arena *arena,
                       struct thread_set **out)
{
	struct group_search search = { .program = program, .arena = arena };
	int64_t *values = arena_array(arena, int64_t, expr_n_vars(program->pool) + 1u);
	int64_t unit, first = 0;
	uint32_t n = 0;

	search_block(&search, &program->body);
	unit = !search.has_mbarrier ? program->n_threads : search.has_wgmma ? WGMMA_THREADS : WARP;
	*out = arena_array(arena, struct thread_set, (size_t)(program->n_threads / unit + 1));
	for (int64_t t = 0; t < program->n_threads; t++) {
		/* The last thread of each unit stands for it: single ones are chosen at its begin. */
		int64_t end = first / unit * unit + unit - 1, here = t / unit * unit + unit - 1;
		bool starts_unit = t % unit == 0;

		end = end < program->n_threads ? end : program->n_threads - 1;
		here = here < program->n_threads ? here : program->n_threads - 1;
		if (t == 0 || (starts_unit && (search.is_mixed || !go_alike(&search, values, end, here)))) {
			first = t;
			n++;
		}
		(*out)[n - 1].warps[t / WARP] |= 1u << t % WARP;
	}
	return n;
}
