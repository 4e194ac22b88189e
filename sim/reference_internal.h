/*
 * reference_internal: the reference's state: reference.c has control flow and elements,
 * reference_ops.c the tile operations.
 */
#ifndef TL_SIM_REFERENCE_INTERNAL_H
#define TL_SIM_REFERENCE_INTERNAL_H

#include "sim/reference.h"

enum { REFERENCE_LANES = 1024 };

/* A buffer's elements. */
struct ref_buffer {
	const struct buffer *buffer;
	int64_t shape[MAX_RANK], strides[MAX_RANK]; /* elements */
	int64_t n_elems;
	const int64_t *places; /* of a mapped tensor: where the row-major element lies; else NULL */
	union cell *cells;
	uint8_t *written; /* tensor parameters only */
	bool is_float;
};

/* Element numbers of a region in row-major order, -1 outside the buffer. */
struct ref_elems {
	struct ref_buffer *buffer;
	int64_t *at;
	int64_t n;
	size_t cap;
};

struct ref {
	struct tile_program *program;
	const struct launch *launch;
	struct cx *cx;
	struct arena *arena;
	struct lane_eval *eval;
	struct ref_buffer *buffers;       /* by buffer id */
	union cell *loop_lanes[MAX_RANK]; /* values of a parallel loop's variables */
	struct map let_lanes;             /* variable id -> union cell * */
	struct ref_elems elems[3];
	double *matrices[3];
	size_t matrix_cap[3];
	const struct stmt *stmt;
	uint64_t n_steps, max_steps;
	bool stop; /* something was reported */
};

/* Reports E0660 once and stops the run. */
void ref_fail(struct ref *ref, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ref_count(struct ref *ref, uint64_t n_steps);
/* Stores a converted value; `from_float` tells the cell's kind. */
void ref_store(struct ref_buffer *buffer, int64_t at, union cell cell, bool from_float);
void ref_op(struct ref *ref, const struct op *op);

#endif
