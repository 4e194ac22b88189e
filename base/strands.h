/*
 * strands: functions that run in turns on stacks of their own.
 *
 * A strand runs until it waits or ends; then the next one that can go on does, in order of their
 * numbers. What runs when depends on nothing else, so that the same input gives the same run.
 */
#ifndef TL_BASE_STRANDS_H
#define TL_BASE_STRANDS_H

#include "base/arena.h"

#include <stdbool.h>

struct strands;

/* What a strand does; `resume` is called when it goes on after others ran (NULL: nothing). */
struct strand_work {
	void *user;
	void (*run)(void *user, uint32_t strand);
	void (*resume)(void *user, uint32_t strand);
};

/* n strands with their stacks, which live as long as the arena. */
struct strands *strands_open(struct arena *arena, uint32_t n, struct strand_work work);
/*
 * Runs all of them until they have ended; may be called again. False when some could not: nothing
 * that they wait for will come, each of these was told so by strand_wait.
 */
bool strands_run(struct strands *strands);
/*
 * Called by the strand that runs: goes on when `ready` says so, which is asked after others ran.
 * False when nobody can go on any more; the strand must end then without waiting again.
 */
typedef bool strand_ready(void *user);
bool strand_wait(struct strands *strands, strand_ready *ready, void *user);

#endif
