/* report: the comparison of stored runs that `tilelayout report` prints. */
#ifndef TL_CLI_REPORT_H
#define TL_CLI_REPORT_H

#include "cli/cli.h"
#include "db/compare.h"

struct report {
	vec_of(struct run_comparison *) kernels;
	vec_of(const struct run_record *) only_before, only_after;
	uint32_t n_failed; /* kernels with a site whose excess grew */
};

/* Verdict, table and sums for a terminal. */
void report_text(struct cli *cli, const struct report *report);
/* The same as Markdown of less than 64 KiB; what does not fit is counted. */
void report_markdown(struct cli *cli, const struct report *report);
/* The document of --json, without its diagnostics. */
void report_json(struct json *json, const struct report *report);

#endif
