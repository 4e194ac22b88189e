/*
 * Strands on the contexts of the C library (getcontext, makecontext, swapcontext).
 */
#include "base/strands.h"

#include "base/diag.h"

#include <assert.h>
#include <ucontext.h>

enum { STACK_BYTES = 512 << 10 };

struct strand {
	struct strands *set;
	uint32_t number;
	ucontext_t context;
	char *stack;
	bool has_ended;
	strand_ready *ready; /* NULL: it can go on */
	void *ready_user;
};

struct strands {
	struct strand_work work;
	uint32_t n;
	struct strand *items;
	struct strand *running;
	ucontext_t scheduler;
	bool is_stuck; /* those that still wait are told */
};

struct strands *strands_open(struct arena *arena, uint32_t n, struct strand_work work)
{
	struct strands *set = arena_new(arena, struct strands);

	set->work = work;
	set->n = n;
	set->items = arena_array(arena, struct strand, n);
	for (uint32_t i = 0; i < n; i++) {
		set->items[i].set = set;
		set->items[i].number = i;
		set->items[i].stack = arena_alloc(arena, STACK_BYTES);
	}
	return set;
}

/* makecontext passes ints: the set is found by two halves of its address. */
static void enter(unsigned low, unsigned high)
{
	struct strand *strand = (struct strand *)((uintptr_t)low | (uintptr_t)high << 16 << 16);

	strand->set->work.run(strand->set->work.user, strand->number);
	strand->has_ended = true;
}

static void start(struct strand *strand)
{
	uintptr_t address = (uintptr_t)strand;

	strand->has_ended = false;
	strand->ready = NULL;
	if (getcontext(&strand->context) != 0)
		BUG("getcontext failed");
	strand->context.uc_stack.ss_sp = strand->stack;
	strand->context.uc_stack.ss_size = STACK_BYTES;
	strand->context.uc_link = &strand->set->scheduler;
	makecontext(&strand->context, (void (*)(void))enter, 2, (unsigned)address,
	            (unsigned)(address >> 16 >> 16));
}

static void go_on(struct strands *set, struct strand *strand)
{
	set->running = strand;
	if (set->work.resume)
		set->work.resume(set->work.user, strand->number);
	if (swapcontext(&set->scheduler, &strand->context) != 0)
		BUG("swapcontext failed");
	set->running = NULL;
}

/* The next one behind `last` that can go on; NULL: none. */
static struct strand *next_of(struct strands *set, uint32_t last)
{
	for (uint32_t i = 1; i <= set->n; i++) {
		struct strand *strand = &set->items[(last + i) % set->n];

		if (!strand->has_ended && (!strand->ready || strand->ready(strand->ready_user)))
			return strand;
	}
	return NULL;
}

bool strands_run(struct strands *set)
{
	struct strand *strand;
	uint32_t last = set->n - 1;

	assert(!set->running && set->n > 0);
	set->is_stuck = false;
	for (uint32_t i = 0; i < set->n; i++)
		start(&set->items[i]);
	while ((strand = next_of(set, last)) != NULL) {
		go_on(set, strand);
		last = strand->number;
	}
	for (uint32_t i = 0; i < set->n; i++)
		if (!set->items[i].has_ended) {
			set->is_stuck = true;
			go_on(set, &set->items[i]);
			assert(set->items[i].has_ended);
		}
	return !set->is_stuck;
}

bool strand_wait(struct strands *set, strand_ready *ready, void *user)
{
	struct strand *strand = set->running;

	assert(strand);
	if (ready(user))
		return true;
	if (set->is_stuck)
		return false;
	strand->ready = ready;
	strand->ready_user = user;
	if (swapcontext(&strand->context, &set->scheduler) != 0)
		BUG("swapcontext failed");
	strand->ready = NULL;
	return !set->is_stuck;
}
