/*
 * check_run_internal: the state of check_run.c, shared with check_phases.c, which has the groups of
 * threads that wait for each other.
 */
#ifndef TL_CHECK_CHECK_RUN_INTERNAL_H
#define TL_CHECK_CHECK_RUN_INTERNAL_H

#include "analyzer/check/check_internal.h"
#include "base/strands.h"
#include "codegen/lower/phases.h"

enum { MAX_PERIOD = 8, MAX_STEPS = 1 << 22, NO_THREAD = -1, WARPGROUP = -2 };
enum { MAX_WARPGROUPS = PHASES_MAX_THREADS / WGMMA_THREADS };

/* A thread that read a granule, and when last. */
struct reader {
	struct reader *next;
	int32_t thread;
	uint32_t interval;
};

/* What happened to a granule of shared memory. */
struct granule {
	int32_t writer;                    /* thread or NO_THREAD */
	int32_t first_reader, last_reader; /* the least and the largest thread that read it */
	uint32_t write_interval, read_interval;
	const struct wnode *write_node, *read_node; /* what they ran */
	bool is_atomic;                             /* the write was */
	int32_t other_writer; /* another thread whose atomic is not ordered with writer's */
	uint32_t group;       /* cp.async group + 1 that is in flight or was last; 0: none */
	int32_t group_thread;
	uint32_t product[MAX_WARPGROUPS]; /* by warpgroup: its group of wgmma + 1 that read it last */
	uint32_t fences;                  /* proxy fences of its writer before it was written */
	bool write_is_sure, read_is_sure; /* no condition that data decide is around what did it */
	struct reader *readers; /* all since the last write; of programs with mbarriers only */
};

/* The last barrier of a part of the block that a thread came to, and whom it met there. */
struct meeting {
	uint32_t interval; /* that it began; 0: none */
	int64_t first, n;  /* the threads */
};

/* The groups of copies of a thread. */
struct copy_groups {
	uint32_t n;                     /* committed */
	uint32_t n_done;                /* that waits have covered */
	vec_of(uint32_t) done_interval; /* by group, of those */
	vec_of(uint32_t) done_fences;   /* likewise: its proxy fences before the wait */
};

/* A warpgroup's groups of wgmma, whose reads go on until they are awaited. */
struct product_groups {
	uint32_t n, n_done;
	vec_of(uint32_t) done_interval; /* by group */
};

struct piece {
	struct granule *granules;
	int64_t n, granule_bytes;
};

/* Who wrote an element of global memory last. */
struct global_write {
	int32_t thread;
	uint32_t interval;
	int64_t step; /* the instruction's number among those that were run */
	const struct wnode *node;
	bool is_sure;
};

/* A loop that may be shortened to its first 2 periods and its last one. */
struct shortened {
	const struct var *var;
	int64_t extent, period;
	struct expr_subst shift; /* var -> var + period */
};

/* Intervals that no barrier which surely happens has ended, although a later one is open. */
struct gap {
	uint32_t first, last;
};

/* The first thing that could not be decided, and where; `why` NULL: nothing. */
struct limit {
	struct span span;
	const char *why;
};

struct run {
	struct check *check;
	const struct warp_program *warp;
	int64_t *values;  /* of variables, by id */
	int64_t *threads; /* 0 .. n_threads-1 */
	bool *active;
	int64_t *offsets, *conditions; /* scratch, one a thread */
	bool *mask;
	struct piece *pieces;             /* by wshared id */
	bool is_uniform;                  /* no shared address and no condition depends on the block */
	vec_of(const struct var *) inner; /* loops around, while a longer one's period is sought */
	struct map codes;                 /* expression id -> struct expr_code * */
	uint32_t interval;                /* counts barriers of any kind */
	uint32_t block_interval;          /* that the last barrier of the whole block began */
	vec_of(struct gap) gaps;          /* before it, but not ordered by it */
	uint32_t n_unknown;               /* conditions around that data decide */
	bool is_unsure;                   /* such a one, or a predicate that data decide */
	struct meeting *meetings;         /* by thread */
	struct copy_groups *groups;       /* of cp.async, by thread */
	struct product_groups products[MAX_WARPGROUPS];
	int32_t matrix_thread; /* the first of the warpgroup whose operand is looked at */
	uint32_t *fences;      /* by thread: proxy fences */
	/* Groups of threads that wait for each other; NULL: the program has no mbarrier. */
	struct run_groups *groups_of;
	struct phases *phases;
	bool gave_up;              /* this block: a deadlock, or an unknown that decides who waits */
	const struct wnode *split; /* the innermost if or loop around that lets only some threads in */
	bool only_global;          /* another corner of the grid: shared memory is as in the first */
	int64_t n_steps;
	int64_t n_accesses;
	struct map globals; /* buffer id and element -> struct global_write * */
	bool is_write_told; /* two writes of one element */
	struct limit limit; /* something could not be decided at all */
	struct limit
		global_limit; /* an address in global memory could not: it has no bearing on order */
};

/* An access of one instruction. */
struct shared_touch {
	const struct wnode *node;
	const struct waddr *addr;
	int64_t bytes;
	bool is_write, async;
	bool is_atomic; /* a write that other atomics may meet */
	bool is_bulk;   /* of a bulk copy, by the number `bulk_writer` */
	int32_t bulk_writer;
};

void run_give_up(struct limit *limit, struct span span, const char *why);
/* Values of an index expression for all threads; false when it cannot be computed. */
bool run_evaluate(struct run *run, const struct expr *e, int64_t *out);
/* Threads that execute: `mask` gets active and predicate. An unknown predicate counts as true. */
void run_predicate(struct run *run, const struct expr *predicate, bool *mask);
void run_block(struct run *run, const struct wblock *block);
/* One thread's access: bounds, alignment, order. False after the first violation. */
bool run_touch(struct run *run, const struct shared_touch *touch, int32_t thread, int64_t offset);

/* Is what thread `other` did in `interval` ordered before what `thread` does now? */
bool run_is_ordered(const struct run *run, int32_t other, uint32_t interval, int32_t thread);

/* ---- check_stores.c ---- */

/* The thread stores to an element of a tensor, in the step that runs. */
void run_note_store(struct run *run, const struct wnode *node, const struct buffer *buffer,
                    int32_t thread, int64_t element);
/* Do the loop's iterations store to different elements, or each thread to the same ones? */
bool run_store_is_apart(struct run *run, const struct waddr *addr, const struct shortened *loop);

/* ---- check_phases.c ---- */

/* Fills phases and groups when the program has mbarriers. */
void run_open_groups(struct run *run);
/* Runs the block by groups; false: there are none, and nothing was run. */
bool run_by_groups(struct run *run);
/* Threads of run->mask come to a hardware barrier, which waits for n_threads of all groups. */
void run_meet(struct run *run, const struct wnode *node, uint32_t id, int64_t n_threads);
/* An instruction on an mbarrier, or a bulk copy. */
void run_mbarrier(struct run *run, const struct wnode *node);
/* Does an instruction of the block work on an mbarrier? */
bool run_has_mbarrier(const struct wblock *block);
/* Or is a barrier of the hardware? */
bool run_has_barrier(const struct wblock *block);
/* The loops around, that a group finds again after others ran. */
void run_enter_loop(struct run *run, const struct var *var);
void run_leave_loop(struct run *run);
/* The readers of a granule: the thread read it now; the first that is not ordered before a write
 * by `thread`, or NO_THREAD. */
void run_note_reader(struct run *run, struct granule *g, int32_t thread);
int32_t run_reader_not_before(const struct run *run, const struct granule *g, int32_t thread);

#endif
