/*
 * bench: how long the launches take, and what that is worth.
 *
 * Each timed launch stands between two CUDA events on one stream. Before it, a working set smaller
 * than four times the L2 cache is driven out by writing twice the cache's size elsewhere; a larger
 * one evicts itself. The copy bandwidth is that of a device-to-device copy on the same card in the
 * same run, bytes read plus bytes written.
 */
#ifndef TL_PROFILER_BENCH_H
#define TL_PROFILER_BENCH_H

#include "profiler/gpu_run.h"

struct bench_options {
	int64_t repeats; /* timed launches; 0: 50 */
	int64_t warmups; /* 0: 5 */
};

/* What the launches do once, by the tile program. */
struct bench_work {
	bool has_flops; /* false: a gemm runs as often as data decides, or there is none */
	double flops;   /* 2 m n k of every gemm, whole tiles */
	double bytes;   /* every tensor that is read once, and every one that is written once */
};

struct bench_times {
	int64_t n;
	double median_us, p10_us, p90_us, min_us, max_us;
};

struct bench_result {
	struct bench_times times;
	struct bench_work work;
	bool flushed;              /* the L2 cache, before each launch */
	double tflops_s, gbytes_s; /* of the median; tflops_s 0 without gemms */
	double copy_gbytes_s;      /* of the card in this run; 0 when it could not be measured */
};

/* Percentiles of `n` >= 1 times (nearest rank), which are sorted in place. */
struct bench_times bench_times_of(double *times_us, int64_t n);
struct bench_work bench_work_of(const struct tile_program *program,
                                const struct tensor_set *tensors);

/* Times a session whose tensors are bound. False with E0703..E0705. */
bool bench_run(struct gpu_session *session, const struct tile_program *program,
               const struct bench_options *options, struct bench_result *result);

#endif
