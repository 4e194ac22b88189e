/*
 * reference_internal: the reference's state: reference.c has control flow and elements,
 * reference_ops.c the tile operations.
 */
#ifndef TL_SIM_REFERENCE_INTERNAL_H
#define TL_SIM_REFERENCE_INTERNAL_H

#include "base/strands.h"
#include "sim/reference.h"

enum { REFERENCE_LANES = 1024 };

/* A buffer's elements. */
struct ref_buffer {
	const struct buffer *buffer;
	int64_t shape[MAX_RANK], strides[MAX_RANK]; /* elements */
	int64_t n_elems;
	const int64_t *places; /* of a mapped tensor: where the row-major element lies; else NULL */
	union cell *cells;     /* of a thread's own array: one copy after another, by thread */
	/* Memory that has views of another type is kept as bits instead: `per_elem` units of
	   `unit_bits` an element, its lowest bits first, alike for all the views. NULL: cells. */
	uint64_t *units;
	uint32_t unit_bits, per_elem;
	uint32_t n_copies; /* 1, or the number of threads */
	uint8_t *written;  /* tensor parameters only */
	bool is_float;
	union cell outside; /* what reads past the ends give */
};

/* Element numbers of a region in row-major order, -1 outside the buffer. */
struct ref_elems {
	struct ref_buffer *buffer;
	int64_t *at;
	int64_t n;
	size_t cap;
};

/* Lanes that take part. */
struct ref_mask {
	uint8_t on[REFERENCE_LANES];
};

/* What lanes left of a loop: the loop itself, or its present iteration. */
struct ref_exits {
	bool any;
	struct ref_mask left, skipped;
};

struct ref {
	struct tile_program *program;
	const struct launch *launch;
	struct cx *cx;
	struct arena *arena;
	struct lane_eval *eval;
	struct ref_buffer *buffers;       /* by buffer id */
	union cell *loop_lanes[MAX_RANK]; /* values of a parallel loop's variables */
	struct map let_lanes;             /* variable id -> union cell * */
	struct ref_elems elems[3];
	double *matrices[3];
	size_t matrix_cap[3];
	/* A launch that names its threads: lanes are threads, and each has its own arrays. */
	bool by_thread;
	bool in_parallel;            /* lanes are iterations of a parallel loop */
	uint32_t thread;             /* the one whose own arrays an operation means */
	const struct ref_mask *mask; /* of the statement that runs */
	union cell *thread_lanes[3]; /* threadIdx.x, .y, .z */
	struct ref_exits *exits;     /* of the innermost loop that runs in order; NULL: none */
	struct ref_groups *groups;   /* that wait for each other; NULL: all threads run in step */
	uint32_t first_thread;       /* of the group that runs */
	const struct stmt *stmt;
	uint64_t n_steps, max_steps;
	bool stop; /* something was reported */
};

/* Reports E0660 once and stops the run. */
void ref_fail(struct ref *ref, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ref_count(struct ref *ref, uint64_t n_steps);
union cell ref_get(const struct ref_buffer *buffer, int64_t at);
/* Stores a converted value; `from_float` tells the cell's kind. */
void ref_store(struct ref_buffer *buffer, int64_t at, union cell cell, bool from_float);
/* The cell that a reduction starts from. */
union cell ref_identity(enum reduce_kind kind, bool is_float);
/* Two cells of a reducer, by its operator. */
union cell ref_combine(const struct ref_buffer *reducer, union cell a, union cell b);
void ref_op(struct ref *ref, const struct op *op);
/*
 * The value of an expression that the threads of the mask must agree on; false after a failure.
 * `what` names it: "an index".
 */
bool ref_agreed(struct ref *ref, const struct lanes *lanes, const char *what, union cell *out);
/* ---- reference_threads.c ---- */

/* Does a statement of the launch read the number of its thread? */
bool ref_names_threads(const struct launch *launch);
/* Makes lanes threads again: at the begin of a launch, and behind a parallel loop. */
void ref_enter_threads(struct ref *ref);
/* Before a parallel loop: what differs between threads has no value in it. */
void ref_leave_threads(struct ref *ref);
/* Is the buffer an array of which each thread has its own? */
bool ref_is_private(const struct buffer *buffer);

/* ---- reference_groups.c ---- */

/* Fills ref->groups for the launch. */
void ref_open_groups(struct ref *ref);
/* Runs a block by groups; false: there are none, and nothing was run. */
bool ref_run_groups(struct ref *ref, const struct ref_mask *all);
/* What a group has to find again after others ran: its loops, and whether it is inside a branch on
 * the thread's number (step 1 and -1). */
void ref_enter_loop(struct ref *ref, const struct var *var);
void ref_set_loop(struct ref *ref, int64_t value);
void ref_leave_loop(struct ref *ref);
void ref_enter_branch(struct ref *ref, const struct expr *condition, int step);
/*
 * Before a statement that is one for all threads that come: the group does it alone; it is the last
 * one and does it for all (ref_met follows); or it was done meanwhile.
 */
enum ref_meeting { REF_ALONE, REF_LAST, REF_DONE };
enum ref_meeting ref_meet(struct ref *ref);
void ref_met(struct ref *ref);
/* Arrivals and waits of the threads of ref->mask. */
void ref_barrier_op(struct ref *ref, const struct op *op);
void ref_copies_arrive(struct ref *ref, const struct expr *barrier);
/* Is the thread one of the group that runs? All are when there are no groups. */
bool ref_in_group(const struct ref *ref, uint32_t thread);
/* T.ptx_cp_async(to, from, n) of the threads of the mask; false: in another form. reference.c */
bool ref_copy_elements(struct ref *ref, const struct expr *call);
/* reference.c */
void ref_run_block(struct ref *ref, const struct block *block, const struct ref_mask *mask);

/* An operation of the threads of ref->mask: once, or once a thread on arrays of their own. */
void ref_op_of_threads(struct ref *ref, const struct op *op);

#endif
