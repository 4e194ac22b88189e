/*
 * record: one run as plain data, the form in which it is stored, loaded and compared.
 *
 * A run is one kernel with one set of parameters: what was predicted for it and, on a machine with
 * a GPU, what was measured. Texts live in the arena of whoever made the record. -1 stands for "not
 * known" in the integer fields that say so.
 */
#ifndef TL_DB_RECORD_H
#define TL_DB_RECORD_H

#include "analyzer/compile.h"

struct record_launch {
	int64_t threads;
	int64_t grid[3];   /* -1: depends on a symbol */
	bool counted_grid; /* sites are sums over the grid; else of one block */
	int64_t shared_bytes;
};

struct record_buffer {
	uint32_t launch;
	const char *name, *scope, *dtype;
	const char *shape; /* JSON array; a symbolic extent is a string */
	uint32_t line;
	int64_t bytes; /* one version; -1 not known */
	int64_t versions;
	int64_t offset_bytes; /* -1 outside shared memory */
	const char *layout;   /* NULL: none */
};

/* One row of the bank table. */
struct record_site {
	uint32_t launch;
	uint32_t line;
	const char *buffer, *instruction;
	int64_t bytes_per_thread;
	int64_t executions;                /* -1: not counted */
	int64_t wavefronts, ideal, excess; /* -1: not modelled */
	int64_t ways;
	const char *reason; /* why there is excess, or NULL */
};

struct record_measurement {
	uint32_t launch;
	int64_t site; /* index into sites; -1: of the whole launch */
	const char *metric, *unit;
	double value;
	const char *missing; /* why there is no value; NULL when there is one */
};

struct run_record {
	int64_t id;             /* 0 before it is stored */
	const char *created_at; /* UTC text; NULL before it is stored */
	const char *tool_version, *verb;
	const char *file, *file_hash, *kernel, *target;
	const char *factory; /* "" when the kernel stands alone */
	const char *params;  /* JSON object, keys sorted */
	const char *layouts; /* "solved", or "tilelang" of --parity tilelang */
	/* NULL when nothing was measured. */
	const char *device, *driver, *nvrtc, *cupti;
	const char *tags; /* "main, v2", NULL without; on loading only */
	vec_of(struct record_launch) launches;
	vec_of(struct record_buffer) buffers;
	vec_of(struct record_site) sites;
	vec_of(struct record_measurement) measurements;
};

/* The predictions of a compile that went through all passes; `verb` and `tool_version` are kept as
 * given. */
struct run_record *record_of_compile(const struct compile *compile, const char *verb,
                                     const char *tool_version);
/* Appends; a NaN or infinite value becomes a missing one with that reason. */
void record_measure(struct arena *arena, struct run_record *run,
                    struct record_measurement measurement);
/* "gemm_relu.main": the kernel behind its factory, or alone. */
const char *record_name(struct arena *arena, const struct run_record *run);
/* Sum of excess over the modelled sites. */
int64_t record_excess(const struct run_record *run);

#endif
