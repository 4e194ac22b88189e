/*
 * compare: a run's tensors against the reference.
 *
 * An output's error is its largest absolute difference; relative is that over the largest magnitude
 * of the reference. An output passes when the relative error is at most the tolerance of its type:
 * float64 1e-10, float32 and tfloat32 1e-4, float16 1e-2, bfloat16 2e-2, 8-bit floats 1e-1,
 * integers 0. NaN equals NaN only. Elements that the reference does not store must keep the bits
 * that they began with.
 */
#ifndef TL_SIM_COMPARE_H
#define TL_SIM_COMPARE_H

#include "sim/reference.h"

/* One tensor, or the worst of all. */
struct comparison {
	const struct tensor *tensor;
	double max_abs, max_rel; /* infinite where a NaN or an infinity has no partner */
	double tolerance;
	bool ok;
	int64_t n_compared, n_stray; /* stray: changed though the reference does not store there */
	int64_t worst;    /* element number of the largest difference or of a stray, -1: none */
	double got, want; /* there */
};

struct comparisons {
	vec_of(struct comparison) items; /* the tensors that the kernel writes, in order */
	struct comparison total;         /* the largest errors; tolerance of the worst tensor */
};

/* Relative tolerance of a type. */
double compare_tolerance(struct dtype type);

struct compare_input {
	const struct tensor_set *got;    /* the run's bytes */
	const struct tensor_set *before; /* what they were */
	const struct reference *reference;
	double tolerance; /* below 0: that of each tensor's type */
	bool is_partial;  /* the reference ran a sample of the run's blocks: what it does not store is
	                     not looked at */
};
/* All three sets were opened alike. */
void compare_run(struct arena *arena, const struct compare_input *input, struct comparisons *out);

#endif
