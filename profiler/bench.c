/*
 * Timing by events, work by the tile program, copy bandwidth of the card.
 *
 * In the file's order: percentiles of the times, floating-point operations and bytes of a kernel,
 * and the runs between two events. Figures that need no card are in functions of their own, which
 * tests call.
 */
#include "profiler/bench.h"

#include <assert.h>
#include <stdlib.h>

/* ---- statistics ---- */

/* Ascending, for qsort. */
static int compare_doubles(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/*
 * Nearest rank: the smallest value with at least `percent` of all at or below it. `sorted` has at
 * least one.
 */
static double percentile(const double *sorted, int64_t n, int64_t percent)
{
	int64_t rank = (n * percent + 99) / 100;

	return sorted[rank > 0 ? rank - 1 : 0];
}

/* Sorts in place. The median of an even number is the mean of the two in the middle. */
struct bench_times bench_times_of(double *times_us, int64_t n)
{
	assert(n >= 1);
	qsort(times_us, (size_t)n, sizeof(*times_us), compare_doubles);
	return (struct bench_times){
		.n = n,
		.median_us = (times_us[(n - 1) / 2] + times_us[n / 2]) / 2,
		.p10_us = percentile(times_us, n, 10),
		.p90_us = percentile(times_us, n, 90),
		.min_us = times_us[0],
		.max_us = times_us[n - 1],
	};
}

/* ---- work ---- */

/*
 * The walk over a program: `known` turns false where a gemm may run more or less often than the
 * trip counts say.
 */
struct work_walk {
	const int64_t *values; /* of symbols, by variable id */
	double flops;
	bool known;
	uint32_t n_gemms;
};

/* Set to false by an expression's first part that depends on more than sizes. */
struct var_check {
	bool only_symbols;
};

/*
 * A visitor of expr_walk: loop and thread variables, and what is loaded, change while the kernel
 * runs.
 */
static void check_var(void *user, const struct expr *e)
{
	struct var_check *check = user;

	if (e->kind == EXPR_LOAD ||
	    (e->kind == EXPR_VAR && e->as.var->kind != VAR_SYMBOL && e->as.var->kind != VAR_PARAM))
		check->only_symbols = false;
}

/* An extent's value when it depends on sizes alone. */
static bool extent_value(const struct work_walk *walk, const struct expr *extent, double *value)
{
	struct var_check check = { true };
	int64_t integer;

	if (expr_is_int(extent, &integer)) {
		*value = (double)integer;
		return true;
	}
	expr_walk(extent, check_var, &check);
	if (!check.only_symbols || !walk->values)
		return false;
	*value = (double)expr_eval_int(extent, walk->values);
	return true;
}

static void count_block(struct work_walk *walk, const struct block *block, double times,
                        bool certain);

/*
 * 2 * M * N * K operations a gemm, the convention of all such figures; elementwise work is not
 * counted. `times` is how often the statement runs, over the whole grid, `certain` whether that is
 * known.
 */
static void count_op(struct work_walk *walk, const struct op *op, double times, bool certain)
{
	const struct region *a = &op->as.gemm.a, *c = &op->as.gemm.c;
	uint32_t a_rank, c_rank;

	if (!op_is_gemm(op))
		return;
	walk->n_gemms++;
	walk->known = walk->known && certain;
	a_rank = a->buffer->rank;
	c_rank = c->buffer->rank;
	walk->flops += times * 2.0 * (double)c->extent[c_rank - 2] * (double)c->extent[c_rank - 1] *
	               (double)a->extent[op->as.gemm.transpose_a ? a_rank - 2 : a_rank - 1];
}

/*
 * Extents of a parallel loop multiply; an unknown one leaves the count as a lower bound and makes
 * it uncertain.
 */
static void count_loop(struct work_walk *walk, const struct loop *loop, double times, bool certain)
{
	for (uint32_t i = 0; i < loop->n_vars; i++) {
		double extent = 1;
		certain = certain && extent_value(walk, loop->extents[i], &extent);
		times *= extent;
	}
	count_block(walk, &loop->body, times, certain);
}

/* What stands under a condition may or may not run: gemms there make the sum uncertain. */
static void count_block(struct work_walk *walk, const struct block *block, double times,
                        bool certain)
{
	for (uint32_t i = 0; i < block->stmts.n; i++) {
		const struct stmt *stmt = block->stmts.p[i];
		switch (stmt->kind) {
		case STMT_OP:
			count_op(walk, &stmt->as.op, times, certain);
			break;
		case STMT_LOOP:
			count_loop(walk, &stmt->as.loop, times, certain);
			break;
		case STMT_IF:
			count_block(walk, &stmt->as.if_.then, times, false);
			count_block(walk, &stmt->as.if_.otherwise, times, false);
			break;
		case STMT_WHILE:
			count_block(walk, &stmt->as.while_.body, times, false);
			break;
		case STMT_LET:
		case STMT_STORE:
		case STMT_SYNC:
		case STMT_BREAK:
		case STMT_CONTINUE:
			break;
		}
	}
}

/*
 * Bytes are those of the tensors, once a direction, whatever a kernel reads twice: the least that
 * it could move. `has_flops` is false without gemms and where their number is not known.
 */
struct bench_work bench_work_of(const struct tile_program *program,
                                const struct tensor_set *tensors)
{
	struct work_walk walk = { .values = tensors->values, .known = true };
	struct bench_work work = { 0 };

	for (uint32_t i = 0; i < program->launches.n; i++) {
		const struct launch *launch = program->launches.p[i];
		double blocks = 1;
		bool certain = true;
		for (int axis = 0; axis < 3; axis++) {
			double extent = 1;
			certain = certain && extent_value(&walk, launch->grid[axis], &extent);
			blocks *= extent;
		}
		count_block(&walk, &launch->body, blocks, certain);
	}
	for (uint32_t i = 0; i < tensors->n; i++) {
		const struct tensor *tensor = &tensors->items[i];
		double bytes = (double)tensor->n_elems * tensor->elem_bytes;
		work.bytes += bytes * ((tensor->is_read ? 1 : 0) + (tensor->is_written ? 1 : 0));
	}
	work.has_flops = walk.known && walk.n_gemms > 0;
	work.flops = work.has_flops ? walk.flops : 0;
	return work;
}

/* ---- timing ---- */

/*
 * Working sets below FLUSH_BELOW times the L2 cache are driven out by writing FLUSH_FACTOR times
 * its size.
 */
enum { FLUSH_BELOW = 4, FLUSH_FACTOR = 2, N_COPIES = 20, MAX_REPEATS = 100000 };
/* Far beyond any L2 cache, so that the copy runs at the memory's speed. */
static const int64_t max_copy_bytes = (int64_t)1 << 30;

/* Two events on the default stream, and the memory that is written to empty the cache. */
struct stopwatch {
	struct gpu *gpu;
	void *begin, *end;
	gpu_pointer flush; /* 0: the cache is left alone */
	size_t flush_bytes;
};

static bool stopwatch_open(struct stopwatch *watch, struct gpu *gpu)
{
	*watch = (struct stopwatch){ .gpu = gpu };
	return gpu_ok(gpu, gpu->api.event_create(&watch->begin, 0), "making an event") &&
	       gpu_ok(gpu, gpu->api.event_create(&watch->end, 0), "making an event");
}

static void stopwatch_close(struct stopwatch *watch)
{
	if (watch->begin)
		watch->gpu->api.event_destroy(watch->begin);
	if (watch->end)
		watch->gpu->api.event_destroy(watch->end);
	if (watch->flush)
		watch->gpu->api.free(watch->flush);
}

/*
 * Time of what `queue` puts on the stream. The flush goes before the first event, so that it is not
 * timed; events have a resolution of about half a microsecond (CUDA driver API,
 * cuEventElapsedTime).
 */
static bool stopwatch_time(struct stopwatch *watch, bool (*queue)(void *user), void *user,
                           double *time_us)
{
	struct gpu *gpu = watch->gpu;
	float milliseconds = 0;

	if (watch->flush && !gpu_ok(gpu, gpu->api.fill(watch->flush, 0, watch->flush_bytes, NULL),
	                            "flushing the cache"))
		return false;
	if (!gpu_ok(gpu, gpu->api.event_record(watch->begin, NULL), "recording an event") ||
	    !queue(user) ||
	    !gpu_ok(gpu, gpu->api.event_record(watch->end, NULL), "recording an event") ||
	    !gpu_ok(gpu, gpu->api.event_synchronize(watch->end), "running the kernel") ||
	    !gpu_ok(gpu, gpu->api.event_elapsed(&milliseconds, watch->begin, watch->end),
	            "reading a time"))
		return false;
	*time_us = (double)milliseconds * 1e3;
	return true;
}

/* All launches of the kernel: what one call of it takes. */
static bool queue_launch(void *user)
{
	return gpu_session_launch(user);
}

/* A copy between two places of the card's memory. */
struct copy_run {
	struct gpu *gpu;
	gpu_pointer from, to;
	size_t bytes;
};

/* Each byte is read once and written once. */
static bool queue_copy(void *user)
{
	struct copy_run *copy = user;

	return gpu_ok(copy->gpu, copy->gpu->api.copy_within(copy->to, copy->from, copy->bytes, NULL),
	              "copying on the card");
}

/*
 * Bytes read and written a second by a large copy, the median of N_COPIES after one that is not
 * counted; 0 when the card has no room for it.
 */
static bool measure_copy(struct stopwatch *watch, double *gbytes_s)
{
	struct gpu *gpu = watch->gpu;
	struct copy_run copy = { .gpu = gpu };
	double times_us[N_COPIES], first;
	bool ok = true;

	*gbytes_s = 0;
	copy.bytes =
		(size_t)(gpu->memory_bytes / 16 < max_copy_bytes ? gpu->memory_bytes / 16 : max_copy_bytes);
	if (gpu->api.alloc(&copy.from, copy.bytes) == 0 && gpu->api.alloc(&copy.to, copy.bytes) == 0) {
		ok = gpu_ok(gpu, gpu->api.fill(copy.from, 0x5a, copy.bytes, NULL), "filling memory") &&
		     stopwatch_time(watch, queue_copy, &copy, &first);
		for (int i = 0; ok && i < N_COPIES; i++)
			ok = stopwatch_time(watch, queue_copy, &copy, &times_us[i]);
		if (ok)
			*gbytes_s =
				2.0 * (double)copy.bytes / bench_times_of(times_us, N_COPIES).median_us / 1e3;
	}
	if (copy.from)
		gpu->api.free(copy.from);
	if (copy.to)
		gpu->api.free(copy.to);
	return ok;
}

/* A card that does not tell its cache's size is left alone. */
static bool prepare_flush(struct stopwatch *watch, const struct bench_work *work)
{
	struct gpu *gpu = watch->gpu;

	if (gpu->l2_bytes <= 0 || work->bytes > (double)(FLUSH_BELOW * gpu->l2_bytes))
		return true;
	watch->flush_bytes = (size_t)(FLUSH_FACTOR * gpu->l2_bytes);
	return gpu_ok(gpu, gpu->api.alloc(&watch->flush, watch->flush_bytes), "allocating memory");
}

/* Warm-ups first: the first launches load the module and raise the clocks. */
static bool time_launches(struct stopwatch *watch, struct gpu_session *session,
                          const struct bench_options *options, struct bench_times *times)
{
	int64_t wanted = options->repeats > 0 ? options->repeats : 50,
			n_warmups = options->warmups > 0 ? options->warmups : 5;
	int64_t n = wanted < MAX_REPEATS ? wanted : MAX_REPEATS;
	double *times_us = arena_array(session->gpu.cx->arena, double, (size_t)n);
	double ignored;

	for (int64_t i = 0; i < n_warmups; i++)
		if (!stopwatch_time(watch, queue_launch, session, &ignored))
			return false;
	for (int64_t i = 0; i < n; i++)
		if (!stopwatch_time(watch, queue_launch, session, &times_us[i]))
			return false;
	*times = bench_times_of(times_us, n);
	return true;
}

/* The copy is measured in the same session as the launches: same clocks, same temperature. */
bool bench_run(struct gpu_session *session, const struct tile_program *program,
               const struct bench_options *options, struct bench_result *result)
{
	struct stopwatch watch;
	double seconds;
	bool ok;

	assert(session->tensors);
	*result = (struct bench_result){ .work = bench_work_of(program, session->tensors) };
	ok = stopwatch_open(&watch, &session->gpu) && measure_copy(&watch, &result->copy_gbytes_s) &&
	     prepare_flush(&watch, &result->work) &&
	     time_launches(&watch, session, options, &result->times);
	result->flushed = watch.flush != 0;
	stopwatch_close(&watch);
	if (!ok)
		return false;
	seconds = result->times.median_us * 1e-6;
	result->tflops_s = seconds > 0 ? result->work.flops / seconds * 1e-12 : 0;
	result->gbytes_s = seconds > 0 ? result->work.bytes / seconds * 1e-9 : 0;
	return true;
}
