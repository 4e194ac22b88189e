/* profile: what `tilelayout profile` prints. */
#ifndef TL_CLI_PROFILE_H
#define TL_CLI_PROFILE_H

#include "cli/cli.h"
#include "profiler/profile.h"

/* Verdict, lines, totals, counters and occupancy for a terminal. */
void profile_text(struct cli *cli, const struct profile *profile);
/* The keys of the document of --json. */
void profile_json(struct json *json, const struct profile *profile);

#endif
