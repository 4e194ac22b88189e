/*
 * compare: two runs of one kernel, site by site.
 *
 * Sites are matched by launch, buffer, instruction, bytes a thread and their order among equals,
 * never by line: a kernel line that moved is no regression. What is left over is matched by launch,
 * buffer and direction, so that an instruction that changed (ldmatrix to narrow loads) shows as one
 * row. Excess is exact and does not vary from run to run, so any growth counts.
 */
#ifndef TL_DB_COMPARE_H
#define TL_DB_COMPARE_H

#include "db/record.h"

enum site_status {
	SITE_REGRESSED, /* excess grew, from 0 too; or a new site has excess */
	SITE_IMPROVED,  /* excess fell */
	SITE_SAME,
	SITE_NEW,          /* only in the current run, without excess */
	SITE_REMOVED,      /* only in the baseline */
	SITE_INCOMPARABLE, /* executions differ and the excess of one execution did not grow; or not
	                      modelled on one side */
	N_SITE_STATUSES
};
const char *site_status_text(enum site_status status); /* "regressed", ... */

struct site_change {
	enum site_status status;
	const struct record_site *before, *after; /* NULL: none */
	int64_t growth;   /* excess after - before, a missing or unmodelled side counting 0 */
	const char *note; /* why the status, where it is not plain from the figures; NULL */
};

/* What became of one kernel. */
struct run_comparison {
	const struct run_record *before, *after;
	vec_of(struct site_change) sites; /* largest growth first, then by line */
	uint32_t n_of[N_SITE_STATUSES];
	int64_t excess_before, excess_after;
	vec_of(const char *)
		environment; /* differences that do not forbid the comparison: tool version, file path */
};

/*
 * Can their sums be set side by side? False when kernel, parameters, target or launches differ;
 * `reasons` gets one line for each difference.
 */
struct text_list {
	vec_of(const char *) items;
};
bool runs_comparable(struct arena *arena, const struct run_record *before,
                     const struct run_record *after, struct text_list *reasons);
/* The two must be comparable. */
struct run_comparison *compare_runs(struct arena *arena, const struct run_record *before,
                                    const struct run_record *after);
/* Did excess grow at any site? */
bool comparison_failed(const struct run_comparison *comparison);

#endif
