/*
 * options: reads the command line into struct cli, and prints the help texts, both from options.def
 * and verbs.def.
 */
#ifndef TL_CLI_OPTIONS_H
#define TL_CLI_OPTIONS_H

#include "cli/cli.h"

/* The arguments behind the verb. False with E0902..E0905 in cli->cx, all of them, not only the
 * first. */
bool options_parse(struct cli *cli, int argc, char **argv);
void options_help_verb(struct buf *out, const struct verb *verb);
void options_help(struct buf *out);

/* The name most like `wanted` of those offered; `name` stays NULL when none is near. */
struct nearest {
	const char *wanted;
	const char *name;
	uint32_t distance;
};
void nearest_offer(struct nearest *nearest, const char *name);

#endif
