/*
 * collect: one measurement of a kernel's launches, in this process.
 *
 * sass: executions, wavefronts and ideal of every machine instruction that accesses shared memory
 * (patched code, slow, exact). counters: the hardware counters of counters.def for each launch (the
 * driver runs each launch several times). time: the duration of unprofiled launches.
 */
#ifndef TL_PROFILER_COLLECT_H
#define TL_PROFILER_COLLECT_H

#include "analyzer/tile/tile.h"
#include "profiler/collection.h"
#include "profiler/gpu_run.h"

enum collect_kind { COLLECT_SASS, COLLECT_COUNTERS, COLLECT_TIME, N_COLLECT_KINDS };
const char *collect_kind_text(enum collect_kind kind); /* "sass", "counters", "time" */
bool collect_kind_parse(const char *text, enum collect_kind *kind);

struct collect_job {
	enum collect_kind kind;
	struct gpu_session_options session;
	const struct tensor_set *tensors;
	const struct tile_program *program; /* for the work that times are set against */
};

/*
 * Measures; what failed stands in out->failures too. False when nothing was measured. The session,
 * opened here, is left open: with a profiler attached its end is a risk, which is better run once
 * the rows are out. gpu_session_close is due.
 */
bool collect(struct gpu_session *session, struct cx *cx, const struct collect_job *job,
             struct collection *out);

#endif
