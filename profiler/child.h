/*
 * child: runs a program, reads what it prints, and survives whatever becomes of it.
 */
#ifndef TL_PROFILER_CHILD_H
#define TL_PROFILER_CHILD_H

#include "base/buf.h"

struct child_result {
	struct buf out;  /* its standard output; buf_free is due */
	int exit_code;   /* -1 when it did not exit by itself */
	int signal;      /* that ended it; 0 none */
	bool timed_out;  /* it was killed after the time limit */
	int start_errno; /* why it did not start; 0 when it did */
};

/*
 * Runs `path` with the arguments (ended by NULL). Standard input is `input` (empty: nothing to
 * read), standard error is dropped. After `limit_ms` the child and its own children are killed. At
 * most 64 MiB of output are kept.
 */
struct child_result child_run(const char *path, char *const arguments[], struct str input,
                              int limit_ms);

/* The outcome in words: "was killed by signal 11 (Segmentation fault)"; NULL when it exited with 0.
 * Static or in the arena. */
const char *child_outcome(struct arena *arena, const struct child_result *result);

#endif
