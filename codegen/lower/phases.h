/*
 * phases: the mbarrier objects of a block, and which thread's work comes before which other's.
 *
 * Time is the number of an interval: everything a thread does has one, and whoever calls here
 * counts it up after each arrival and meeting. For each pair of threads it is known up to which
 * interval the one's work comes before the other's next step (a vector clock a thread). An
 * arrival hands the thread's clock to the barrier's phase; who waits for that phase takes it over.
 *
 * A bulk copy is a thread of its own here: what it writes comes before nobody's work until its
 * barrier's phase is awaited.
 *
 * Source: PTX ISA, "Parallel synchronization and communication instructions: mbarrier": phases,
 * pending arrivals and tx-count.
 */
#ifndef TL_LOWER_PHASES_H
#define TL_LOWER_PHASES_H

#include "codegen/lower/warp.h"

/* A set of threads, a bit each. */
enum { PHASES_MAX_THREADS = 1024 };
struct thread_set {
	uint32_t warps[PHASES_MAX_THREADS / 32];
};

struct phases;

struct phases *phases_open(struct arena *arena, uint32_t n_threads);
/* Forgets everything: a new block. */
void phases_reset(struct phases *phases);

/* Is what `other`, a thread or copy, did in `interval` ordered before what `thread` does now? */
bool phases_ordered(const struct phases *phases, uint32_t other, uint32_t interval,
                    uint32_t thread);
/*
 * A proxy fence of the thread: what is ordered before it now may be read by warpgroup instructions
 * that it issues. Kept for the first thread of each warpgroup.
 */
void phases_fence(struct phases *phases, uint32_t thread);
bool phases_fenced(const struct phases *phases, uint32_t other, uint32_t interval, uint32_t thread);
/* The threads met at a barrier; all that they did up to `interval` is ordered. */
void phases_meet(struct phases *phases, const struct thread_set *set, uint32_t interval);

/* What may be wrong with a use of a barrier. */
enum phases_fault {
	PHASES_FINE,
	PHASES_NOT_MADE, /* no mbarrier.init at this address */
	PHASES_COUNT,    /* more arrivals than the phase waits for, or a count that it cannot have */
};

/* mbarrier.init; `at` is the byte of shared memory. */
enum phases_fault phases_init(struct phases *phases, int64_t at, int64_t count);
/* One arrival of a thread. */
enum phases_fault phases_arrive(struct phases *phases, int64_t at, uint32_t thread,
                                uint32_t interval);
enum phases_fault phases_expect(struct phases *phases, int64_t at, int64_t bytes);
/* A bulk copy has brought its bytes; `*writer` is the number by which it counts as a thread. */
struct phases_copy {
	uint32_t thread; /* that issued it */
	uint32_t interval;
	int64_t bytes;
};
enum phases_fault phases_copied(struct phases *phases, int64_t at, struct phases_copy copy,
                                uint32_t *writer);
/* Would mbarrier.try_wait.parity succeed? */
bool phases_is_over(const struct phases *phases, int64_t at, int64_t parity);
/* It did: the thread takes the phase's clock over. */
enum phases_fault phases_waited(struct phases *phases, int64_t at, uint32_t thread,
                                uint32_t interval);
/* "phase 3, 1 of 128 arrivals and 4096 bytes missing", for texts. */
const char *phases_text(const struct phases *phases, struct arena *arena, int64_t at);
bool phases_is_made(const struct phases *phases, int64_t at);

/*
 * Did every arrival come after the phase before was over, and every phase end after all waits for
 * the one before? Then each schedule of the threads does the same; else another one may mistake a
 * phase for the next. The byte of the first barrier where not, else -1.
 */
int64_t phases_overrun(const struct phases *phases);

/*
 * The threads that go their own ways: they may wait for each other. Each has whole warpgroups when
 * the program has warpgroup instructions, else whole warps; those that take the same side of every
 * condition on the thread's number are one. Their number; 1 when the program has no mbarrier.
 */
uint32_t phases_groups(const struct warp_program *program, struct arena *arena,
                       struct thread_set **out);

#endif
