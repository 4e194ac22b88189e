/* analyze: the parts of the verb: its text, its drawings. */
#ifndef TL_CLI_ANALYZE_H
#define TL_CLI_ANALYZE_H

#include "cli/cli.h"

/* The analysis in at most 100 columns; sections that the passes did not reach are left out. */
void analyze_text(struct cli *cli, const struct compile *compile);

/* Why the buffer has its layout: text, or JSON where the options say so. False with E0908. */
bool analyze_why(struct cli *cli, const struct compile *compile, const char *name);

/*
 * Writes fragment_NAME.svg, shared_NAME.svg, graph.svg and an index.html that shows them into the
 * folder, which is made when it does not exist. Several launches are told apart by a number behind
 * the name. False with E0790.
 */
bool analyze_draw(struct cli *cli, const struct compile *compile, const char *folder);

#endif
