/*
 * collection: what a measuring process found, as data and as text.
 *
 * `tilelayout profile FILE --collect NAME` measures in its own process and prints rows, one a line,
 * fields apart by tabs; `profile` starts such processes and reads their rows. A last row `end` says
 * that nothing was cut off.
 *
 *     sass     launch pc line file instruction executions wavefronts ideal
 *     counter  launch metric unit value        (value "nan": not a number)
 *     missing  launch metric unit reason
 *     kernel   launch registers local_bytes shared_bytes
 *     machine  device driver nvrtc cupti compute     ("-": not known)
 *     failure  code message ["note: ..." or "help: ..."]...
 *     end
 */
#ifndef TL_PROFILER_COLLECTION_H
#define TL_PROFILER_COLLECTION_H

#include "base/buf.h"
#include "base/diag.h"
#include "base/vec.h"

/* One machine instruction that accesses shared memory, summed over the launch. */
struct sass_row {
	uint32_t launch;
	uint64_t pc;   /* byte offset in the function */
	uint32_t line; /* of `file`; 0 not known */
	const char *file;
	const char *instruction; /* as in the bank table: "ldmatrix.x4"; "?" when the machine code is
	                            not known */
	int64_t executions;      /* by warps, those with no active lane too */
	int64_t wavefronts, ideal;
};

struct counter_row {
	uint32_t launch;
	const char *metric, *unit;
	double value;
	const char *missing; /* why there is no value; NULL when there is one (it can be NaN) */
};

/* What the compiler made of a launch. */
struct kernel_row {
	uint32_t launch;
	int64_t registers, local_bytes; /* of a thread */
	int64_t shared_bytes;           /* of a block */
};

struct failure_detail {
	bool is_help; /* else a note */
	const char *text;
};

struct failure_row {
	enum diag_code code;
	const char *message;
	const char *during; /* the collection; NULL: not known */
	vec_of(struct failure_detail) details;
};

struct collection {
	vec_of(struct sass_row) sass;
	vec_of(struct counter_row) counters;
	vec_of(struct kernel_row) kernels;
	vec_of(struct failure_row) failures;
	const char *device, *driver, *nvrtc, *cupti; /* NULL: not known */
	int compute;                                 /* of the card, 90; 0 not known */
	bool complete;                               /* the row `end` was there */
};

void collection_print(struct buf *out, const struct collection *collection);
/* Adds the rows of a text; rows that cannot be read are passed over, and leave `complete` false. */
void collection_read(struct arena *arena, struct str text, struct collection *collection);
/* Takes the errors that were reported to cx as failures. */
void collection_fail(struct collection *collection, const struct cx *cx);
/* The rows of both. `complete` is then that of `from`. */
void collection_add(struct arena *arena, struct collection *to, const struct collection *from);
/* NULL when the metric was not asked for. */
const struct counter_row *collection_counter(const struct collection *collection, uint32_t launch,
                                             const char *metric);

#endif
