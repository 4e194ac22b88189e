/*
 * check_internal: shared by check_*.c.
 */
#ifndef TL_CHECK_CHECK_INTERNAL_H
#define TL_CHECK_CHECK_INTERNAL_H

#include "analyzer/check/check.h"
#include "analyzer/solve/access.h"

struct check {
	struct cx *cx;
	struct expr_pool *pool;
	const struct schedule *schedule;
	const struct solution *solution;
	const struct warp_program *warp;
	struct property_list *out;
	uint32_t n_found[N_PROPERTIES]; /* rows so far that are not "proved" */
	int64_t n_elems_seen[N_PROPERTIES];
	bool run_is_whole;     /* check_run executed every address and condition that the program has */
	const char *run_limit; /* why not, else NULL */
	bool has_waits;        /* for phases of mbarriers */
	uint32_t n_atomics;    /* parallel loops with atomics */
};

/* At most this many elements times replicas are enumerated for one question. */
enum { CHECK_MAX_ELEMS = 1 << 22, CHECK_MAX_ROWS = 8 };

/* Where a finding is and how bad: the row without its sentence. */
struct finding {
	enum property_name name;
	enum property_status status;
	struct span span;
	const char *buffer; /* "" when not about one buffer */
};
/* Adds a row that is not "proved" (at most CHECK_MAX_ROWS a name). */
void check_found(struct check *check, struct finding finding, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds the "proved" row when nothing was found for `name`. */
void check_proved(struct check *check, enum property_name name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Is there a row of that name about the buffer already? */
bool check_is_told(const struct check *check, enum property_name name, const char *buffer);
const char *check_index_text(struct check *check, const int64_t *index,
                             uint32_t rank); /* "(3, 17)" */

/* check_layout.c: coverage, injectivity, owner. */
void check_layouts(struct check *check);
/* check_replicas.c */
void check_replicas(struct check *check);
/*
 * check_bounds.c: bounds of tiles, on the tile program. Without check->solution, threads have no
 * names; `n_buffers`: of the program.
 */
void check_bounds(struct check *check, const struct launch *launch, uint32_t n_buffers);
/* check_defined.c: happens-before of values. */
void check_defined(struct check *check);
/* check_global.c: happens-before in global memory, owner of threads' own arrays. */
void check_global(struct check *check);
/* check_writes.c: happens-before of what blocks write; after check_global. */
void check_writes(struct check *check);
/* check_run.c: happens-before, bounds, alignment; barriers that only some threads reach. */
void check_run(struct check *check);
/* check_budget.c: budget, termination. */
void check_budget(struct check *check);
void check_termination(struct check *check);

#endif
