/*
 * pipeline: the order in time of a launch: stages of pipelined loops, buffer versions,
 * shared-memory placement.
 */
#ifndef TL_PIPELINE_PIPELINE_H
#define TL_PIPELINE_PIPELINE_H

#include "analyzer/solve/solve.h"

struct pipeline_op {
	const struct stmt *stmt;
	int64_t
		/*
		 * an op of stage s of iteration k runs in the loop's iteration k + s; 0: the first copy is
		 * issued
		 */
		stage;
	int64_t order; /* position inside one iteration of the steady state */
	bool async;
};

struct pipeline {
	const struct stmt *loop;
	int64_t num_stages; /* as applied; 1: nothing overlaps */
	const char *reason; /* why fewer stages than written, else NULL */
	/*
	 * Iterations that copies run ahead: num_stages - 1, one less when the product of an iteration
	 * goes on during the next.
	 */
	int64_t ahead;
	bool in_flight;
	vec_of(struct pipeline_op) ops;
};

/* A shared buffer's place in the block's shared memory. */
struct shared_place {
	const struct buffer *buffer; /* NULL: a workspace of ours, of `workspace_of` */
	const struct stmt *workspace_of;
	int64_t n_versions;
	int64_t version_bytes;
	int64_t offset_bytes;
	int64_t align_bytes;
};

struct schedule {
	const struct solution *solution;
	vec_of(struct pipeline) pipelines;
	vec_of(struct shared_place) places; /* by offset */
	int64_t shared_bytes;               /* static plus dynamic, without the reserved 1 KiB */
};

/* Dependence analysis, stages, versions, placement. NULL with diagnostics (E05..). */
struct schedule *schedule_make(const struct solution *solution);
/* NULL when the buffer has no place. */
const struct shared_place *schedule_place(const struct schedule *schedule,
                                          const struct buffer *buffer);
const struct pipeline *schedule_pipeline(const struct schedule *schedule, const struct stmt *loop);
bool schedule_verify(const struct schedule *schedule);
void schedule_print(struct buf *out, const struct schedule *schedule);

#endif
