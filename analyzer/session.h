/*
 * session: what the program and the C library share: reading settings, and what diagnostics mean
 * for the caller.
 */
#ifndef TL_ANALYZER_SESSION_H
#define TL_ANALYZER_SESSION_H

#include "analyzer/compile.h"

/* NAME=VALUE or NAME@LINE=VALUE (--set, --tensor). False when the text has another form. */
bool setting_parse(struct arena *arena, const char *text, struct frontend_set *set);

/* Who is at fault for the errors of a context. */
struct session_failures {
	bool input;       /* the kernel file or the command line */
	bool environment; /* E07 and E08: GPU, driver, library, disk */
};
/* Adds the context's errors to `failures`. */
void session_count_failures(const struct cx *cx, struct session_failures *failures);

#endif
