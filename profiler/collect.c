/*
 * The collections: a session, CUPTI around its launches, rows. Each kind runs in a process of its
 * own (cupti.h says why):
 *
 *     sass       patches instructions: executions and wavefronts of each shared-memory access
 *     counters   the range profiler: counters of counters.def for each launch, in several passes
 *     time       events only, without CUPTI
 */
#include "profiler/collect.h"

#include "codegen/cuda/cuda.h"
#include "profiler/bench.h"
#include "profiler/cupti.h"
#include "profiler/sass.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct span NOWHERE = { 0 };

/* ---- kinds ---- */

static const char *const kinds[N_COLLECT_KINDS] = { "sass", "counters", "time" };

const char *collect_kind_text(enum collect_kind kind)
{
	assert(kind < N_COLLECT_KINDS);
	return kinds[kind];
}

/* The words that a parent process gives its child. */
bool collect_kind_parse(const char *text, enum collect_kind *kind)
{
	for (int i = 0; i < N_COLLECT_KINDS; i++) {
		if (strcmp(text, kinds[i]) == 0) {
			*kind = (enum collect_kind)i;
			return true;
		}
	}
	return false;
}

/* ---- SASS metrics ---- */

/* What is asked of each instruction. */
enum sass_metric { SASS_EXECUTIONS, SASS_WAVEFRONTS, SASS_IDEAL, N_SASS_METRICS };

static const char *const sass_metrics[N_SASS_METRICS] = {
	"smsp__sass_inst_executed",
	"smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared",
	"smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared_ideal",
};

/* State of one collection; `sass_ids` are CUPTI's numbers of the metrics on this chip. */
struct collector {
	struct cx *cx;
	const struct collect_job *job;
	struct gpu_session *session;
	struct cupti cupti;
	const char *chip;
	struct collection *out;
	uint64_t sass_ids[N_SASS_METRICS];
};

/* Attaches CUPTI to the process and asks which chip the card has. */
static bool attach(struct collector *collector)
{
	struct cupti_initialize initialize = { CUPTI_SIZE(cupti_initialize, private), NULL };
	struct cupti_chip_name chip = { .size = CUPTI_SIZE(cupti_chip_name, name),
		                            .device = (size_t)collector->session->gpu.device };

	if (!cupti_open(&collector->cupti, collector->cx, collector->job->session.cuda_path))
		return false;
	collector->out->cupti = cupti_text(collector->cx->arena, &collector->cupti);
	if (!cupti_ok(&collector->cupti, CUPTI_INITIALIZE, &initialize) ||
	    !cupti_ok(&collector->cupti, CUPTI_CHIP_NAME, &chip))
		return false;
	collector->chip = arena_strndup(collector->cx->arena, chip.name, strlen(chip.name));
	return true;
}

/*
 * Chooses the metrics and enables patching, immediately before the launches: CUPTI patches a
 * function at its first launch behind that.
 */
static bool configure_sass(struct collector *collector)
{
	struct cupti_sass_metric_config configs[N_SASS_METRICS];
	struct cupti_sass_set_config set = { .size = CUPTI_SIZE(cupti_sass_set_config, device),
		                                 .n_configs = N_SASS_METRICS,
		                                 .configs = configs,
		                                 .device = (uint32_t)collector->session->gpu.device };
	struct cupti_sass_enable enable = { .size = CUPTI_SIZE(cupti_sass_enable, lazy),
		                                .context = collector->session->gpu.context,
		                                .lazy = 1 };

	for (int i = 0; i < N_SASS_METRICS; i++) {
		struct cupti_sass_properties properties = { .size =
			                                            CUPTI_SIZE(cupti_sass_properties, found),
			                                        .chip = collector->chip,
			                                        .metric = sass_metrics[i] };

		if (!cupti_ok(&collector->cupti, CUPTI_SASS_PROPERTIES, &properties))
			return false;
		collector->sass_ids[i] = properties.found.id;
		configs[i] = (struct cupti_sass_metric_config){ .id = properties.found.id };
	}
	return cupti_ok(&collector->cupti, CUPTI_SASS_SET_CONFIG, &set) &&
	       cupti_ok(&collector->cupti, CUPTI_SASS_ENABLE, &enable);
}

/* Kernel file and line of an instruction; line 0 when the cubin has none. */
static void locate(struct collector *collector, const struct cupti_sass_data *data,
                   struct sass_row *row)
{
	const struct gpu_session *session = collector->session;
	struct cupti_sass_to_source source = {
		.size = CUPTI_SIZE(cupti_sass_to_source, folder),
		.cubin = session->code.image.p,
		.cubin_bytes = session->code.image.n,
		.function = data->function,
		.pc = data->pc,
	};

	row->file = "-";
	if (session->code.is_ptx ||
	    cupti_call(&collector->cupti, CUPTI_SASS_TO_SOURCE, &source) != CUPTI_OK)
		return;
	row->line = source.line;
	if (source.file)
		row->file = arena_strndup(collector->cx->arena, source.file, strlen(source.file));
	free(source.file);
	free(source.folder);
}

/* The index of the launch whose kernel has this name; -1 for code of others. */
static int64_t launch_of(const struct collector *collector, const char *function)
{
	for (uint32_t i = 0; i < collector->job->session.n_programs; i++)
		if (function &&
		    strcmp(cuda_kernel_name(collector->job->session.programs[i]), function) == 0)
			return i;
	return -1;
}

/* One patched instruction to a row. Those that are no shared-memory access and counted nothing are
 * left out. */
static void add_sass(struct collector *collector, const struct cupti_sass_data *data,
                     size_t n_values)
{
	const struct gpu_session *session = collector->session;
	int64_t sums[N_SASS_METRICS] = { 0 }, launch = launch_of(collector, data->function);
	struct sass_row row = { .launch = (uint32_t)launch, .pc = data->pc, .instruction = "?" };
	struct sass_word word;
	char name[32];

	for (size_t i = 0; i < n_values; i++)
		for (int metric = 0; metric < N_SASS_METRICS; metric++)
			if (data->values[i].metric == collector->sass_ids[metric])
				sums[metric] += (int64_t)data->values[i].value;
	if (launch < 0)
		return;
	if (!session->code.is_ptx && sass_find(session->code.image, data->function, data->pc, &word)) {
		if (!sass_access(word, session->code.compute, name) && sums[SASS_WAVEFRONTS] == 0)
			return;
		if (sass_access(word, session->code.compute, name))
			row.instruction = arena_strndup(collector->cx->arena, name, strlen(name));
	} else if (sums[SASS_WAVEFRONTS] == 0) {
		return;
	}
	row.executions = sums[SASS_EXECUTIONS];
	row.wavefronts = sums[SASS_WAVEFRONTS];
	row.ideal = sums[SASS_IDEAL];
	locate(collector, data, &row);
	vec_push(collector->cx->arena, &collector->out->sass, row);
}

/* By launch, then address. */
static int compare_sass(const void *a, const void *b)
{
	const struct sass_row *left = a, *right = b;

	if (left->launch != right->launch)
		return left->launch < right->launch ? -1 : 1;
	return left->pc < right->pc ? -1 : left->pc > right->pc;
}

/*
 * Fetches the counts of all patched instructions. No record at all is an error, as zeros would be
 * taken for a result.
 */
static bool flush_sass(struct collector *collector)
{
	struct arena *arena = collector->cx->arena;
	void *context = collector->session->gpu.context;
	struct cupti_sass_data_properties properties = {
		.size = CUPTI_SIZE(cupti_sass_data_properties, n_instances), .context = context
	};
	struct cupti_sass_flush flush = { .size = CUPTI_SIZE(cupti_sass_flush, n_instances),
		                              .context = context };
	size_t n_values;

	if (!cupti_ok(&collector->cupti, CUPTI_SASS_DATA_PROPERTIES, &properties))
		return false;
	if (properties.n_records == 0) {
		diag_report(&collector->cx->diags, DIAG_E0744, NOWHERE,
		            "CUPTI patched no instruction of the launches");
		return false;
	}
	/* Room for each metric of each instance, whichever of the two n_instances counts. */
	n_values = properties.n_instances * N_SASS_METRICS;
	flush.n_records = properties.n_records;
	flush.n_instances = properties.n_instances;
	flush.data = arena_array(arena, struct cupti_sass_data, properties.n_records);
	for (size_t i = 0; i < properties.n_records; i++) {
		flush.data[i].size = CUPTI_SIZE(cupti_sass_data, values);
		flush.data[i].values = arena_array(arena, struct cupti_sass_value, n_values);
	}
	if (!cupti_ok(&collector->cupti, CUPTI_SASS_FLUSH, &flush))
		return false;
	for (size_t i = 0; i < properties.n_records; i++)
		add_sass(collector, &flush.data[i], n_values);
	if (collector->out->sass.n > 1)
		qsort(collector->out->sass.p, collector->out->sass.n, sizeof(struct sass_row),
		      compare_sass);
	return true;
}

/*
 * The launches once, patched. The order (synchronize, configure, launch, flush) is that of CUPTI's
 * documentation, "SASS Metrics API"; after an error the process ends anyway.
 */
static bool collect_sass(struct collector *collector)
{
	struct cupti_sass_disable disable = { .size = CUPTI_SIZE(cupti_sass_disable, n_dropped),
		                                  .context = collector->session->gpu.context };
	struct cupti_sass_unset_config unset = { .size = CUPTI_SIZE(cupti_sass_unset_config, device),
		                                     .device = (uint32_t)collector->session->gpu.device };
	bool ok = attach(collector) && gpu_synchronize(&collector->session->gpu) &&
	          configure_sass(collector) && gpu_session_launch(collector->session) &&
	          gpu_synchronize(&collector->session->gpu) && flush_sass(collector);

	if (ok) {
		cupti_call(&collector->cupti, CUPTI_SASS_DISABLE, &disable);
		cupti_call(&collector->cupti, CUPTI_SASS_UNSET_CONFIG, &unset);
	}
	return ok;
}

/* ---- counters ---- */

static const struct counter {
	const char *metric, *unit;
} counters[] = {
#define COUNTER(id, metric, unit) { metric, unit },
#include "profiler/counters.def"
#undef COUNTER
};

enum { N_COUNTERS = sizeof(counters) / sizeof(*counters) };

/* What one range collection needs. */
struct range {
	void *host, *profiler;
	const char *metrics[N_COUNTERS]; /* those that the chip has */
	const char *units[N_COUNTERS];
	size_t n_metrics;
	uint8_t *config, *data, *availability;
	size_t n_config_bytes, n_data_bytes, n_passes;
};

/* Which counters this card gives; the image stays NULL where CUPTI has none, which it takes as
 * "all". */
static void read_availability(struct collector *collector, struct range *range)
{
	struct cupti_availability availability = { .size = CUPTI_SIZE(cupti_availability, image),
		                                       .context = collector->session->gpu.context };

	if (cupti_call(&collector->cupti, CUPTI_AVAILABILITY, &availability) != CUPTI_OK)
		return;
	availability.image = arena_alloc(collector->cx->arena, availability.n_bytes);
	if (cupti_call(&collector->cupti, CUPTI_AVAILABILITY, &availability) == CUPTI_OK)
		range->availability = availability.image;
}

/* Splits the counters into those that the chip has and, as missing rows, the others. */
static void choose_metrics(struct collector *collector, struct range *range)
{
	for (int i = 0; i < N_COUNTERS; i++) {
		struct cupti_host_metric_properties properties = { .size = CUPTI_SIZE(
															   cupti_host_metric_properties, type),
			                                               .host = range->host,
			                                               .metric = counters[i].metric };

		if (cupti_call(&collector->cupti, CUPTI_HOST_METRIC_PROPERTIES, &properties) == CUPTI_OK) {
			range->units[range->n_metrics] = counters[i].unit;
			range->metrics[range->n_metrics++] = counters[i].metric;
			continue;
		}
		for (uint32_t launch = 0; launch < collector->job->session.n_programs; launch++) {
			struct counter_row row = { launch, counters[i].metric, counters[i].unit, 0,
				                       arena_printf(collector->cx->arena, "not on this chip (%s)",
				                                    collector->chip) };

			vec_push(collector->cx->arena, &collector->out->counters, row);
		}
	}
}

/*
 * The configuration image: which counters in which pass. Needs no GPU. Counters that the chip lacks
 * were taken out before: one unknown name fails the whole image.
 */
static bool make_config(struct collector *collector, struct range *range)
{
	struct cupti *cupti = &collector->cupti;
	struct cupti_host_initialize initialize = { .size = CUPTI_SIZE(cupti_host_initialize, host),
		                                        .chip = collector->chip,
		                                        .availability = range->availability };
	struct cupti_host_add_metrics add = { .size = CUPTI_SIZE(cupti_host_add_metrics, n_metrics) };
	struct cupti_host_config_size size = { .size = CUPTI_SIZE(cupti_host_config_size, n_bytes) };
	struct cupti_host_config config = { .size = CUPTI_SIZE(cupti_host_config, image) };
	struct cupti_host_passes passes = { .size = CUPTI_SIZE(cupti_host_passes, n_passes) };

	if (!cupti_ok(cupti, CUPTI_HOST_INITIALIZE, &initialize))
		return false;
	range->host = add.host = size.host = config.host = initialize.host;
	choose_metrics(collector, range);
	add.metrics = range->metrics;
	add.n_metrics = range->n_metrics;
	if (!cupti_ok(cupti, CUPTI_HOST_ADD_METRICS, &add) ||
	    !cupti_ok(cupti, CUPTI_HOST_CONFIG_SIZE, &size))
		return false;
	range->n_config_bytes = config.n_bytes = passes.n_bytes = size.n_bytes;
	range->config = config.image = passes.image = arena_alloc(collector->cx->arena, size.n_bytes);
	if (!cupti_ok(cupti, CUPTI_HOST_CONFIG, &config) ||
	    !cupti_ok(cupti, CUPTI_HOST_PASSES, &passes))
		return false;
	range->n_passes = passes.n_passes;
	return true;
}

/*
 * The image that values are written to, and the configuration of the card. Automatic ranges with
 * kernel replay: each launch is a range, repeated with its memory restored until every pass was
 * made.
 */
static bool prepare_card(struct collector *collector, struct range *range)
{
	struct cupti *cupti = &collector->cupti;
	uint32_t n_launches = collector->job->session.n_programs;
	struct cupti_range_data_size size = { .size = CUPTI_SIZE(cupti_range_data_size, n_bytes),
		                                  .profiler = range->profiler,
		                                  .metrics = range->metrics,
		                                  .n_metrics = range->n_metrics,
		                                  .max_ranges = n_launches,
		                                  .max_nodes = n_launches };
	struct cupti_range_data_initialize initialize = {
		.size = CUPTI_SIZE(cupti_range_data_initialize, data), .profiler = range->profiler
	};
	struct cupti_range_set_config set = { .size = CUPTI_SIZE(cupti_range_set_config,
		                                                     target_nesting_level),
		                                  .profiler = range->profiler,
		                                  .n_config_bytes = range->n_config_bytes,
		                                  .config = range->config,
		                                  .range = CUPTI_RANGE_AUTO,
		                                  .replay = CUPTI_REPLAY_KERNEL,
		                                  .max_ranges_per_pass = n_launches,
		                                  .n_nesting_levels = 1,
		                                  .min_nesting_level = 1,
		                                  .target_nesting_level = 1 };

	if (!cupti_ok(cupti, CUPTI_RANGE_DATA_SIZE, &size))
		return false;
	range->n_data_bytes = initialize.n_bytes = set.n_data_bytes = size.n_bytes;
	range->data = initialize.data = set.data = arena_alloc(collector->cx->arena, size.n_bytes);
	return cupti_ok(cupti, CUPTI_RANGE_DATA_INITIALIZE, &initialize) &&
	       cupti_ok(cupti, CUPTI_RANGE_SET_CONFIG, &set);
}

/* The launches inside the profiled range; CUPTI repeats each as often as it needs passes. */
static bool run_range(struct collector *collector, struct range *range)
{
	struct cupti *cupti = &collector->cupti;
	struct cupti_range_object start = { CUPTI_SIZE(cupti_range_object, profiler), NULL,
		                                range->profiler };
	struct cupti_range_stop stop = { .size = CUPTI_SIZE(cupti_range_stop, all_passes_submitted),
		                             .profiler = range->profiler };
	struct cupti_range_decode decode = { .size = CUPTI_SIZE(cupti_range_decode, n_dropped),
		                                 .profiler = range->profiler };

	assert(range->config && range->data && range->n_passes > 0);
	return cupti_ok(cupti, CUPTI_RANGE_START, &start) && gpu_session_launch(collector->session) &&
	       gpu_synchronize(&collector->session->gpu) && cupti_ok(cupti, CUPTI_RANGE_STOP, &stop) &&
	       cupti_ok(cupti, CUPTI_RANGE_DECODE, &decode);
}

/* The values of each launch from the data image; ranges stand in launch order. */
static bool evaluate(struct collector *collector, struct range *range)
{
	struct cupti_range_data_info info = { .size = CUPTI_SIZE(cupti_range_data_info, n_ranges),
		                                  .data = range->data,
		                                  .n_bytes = range->n_data_bytes };
	double values[N_COUNTERS];

	if (!cupti_ok(&collector->cupti, CUPTI_RANGE_DATA_INFO, &info))
		return false;
	for (uint32_t launch = 0; launch < collector->job->session.n_programs && launch < info.n_ranges;
	     launch++) {
		struct cupti_host_evaluate evaluation = { .size = CUPTI_SIZE(cupti_host_evaluate, values),
			                                      .host = range->host,
			                                      .data = range->data,
			                                      .n_bytes = range->n_data_bytes,
			                                      .range = launch,
			                                      .metrics = range->metrics,
			                                      .n_metrics = range->n_metrics,
			                                      .values = values };

		if (!cupti_ok(&collector->cupti, CUPTI_HOST_EVALUATE, &evaluation))
			return false;
		for (size_t i = 0; i < range->n_metrics; i++) {
			struct counter_row row = { launch, range->metrics[i], range->units[i], values[i],
				                       NULL };

			vec_push(collector->cx->arena, &collector->out->counters, row);
		}
	}
	return info.n_ranges > 0;
}

/* The launches once for the caller, as often as counters need passes for the card. */
static bool collect_counters(struct collector *collector)
{
	struct range range = { 0 };
	struct cupti_range_enable enable = { .size = CUPTI_SIZE(cupti_range_enable, profiler),
		                                 .context = collector->session->gpu.context };
	struct cupti_range_object disable = { .size = CUPTI_SIZE(cupti_range_object, profiler) };
	bool ok;

	if (!attach(collector))
		return false;
	read_availability(collector, &range);
	if (!make_config(collector, &range) ||
	    !cupti_ok(&collector->cupti, CUPTI_RANGE_ENABLE, &enable))
		return false;
	range.profiler = disable.profiler = enable.profiler;
	ok = prepare_card(collector, &range) && run_range(collector, &range) &&
	     evaluate(collector, &range);
	cupti_call(&collector->cupti, CUPTI_RANGE_DISABLE, &disable);
	return ok;
}

/* ---- time ---- */

/*
 * The launches as they are, timed by events. The rows are about all launches together and stand at
 * the first.
 */
static bool collect_time(struct collector *collector)
{
	struct bench_options options = { .repeats = 20 };
	struct bench_result result;
	const char *no_flops;

	if (!bench_run(collector->session, collector->job->program, &options, &result))
		return false;
	no_flops = result.work.has_flops ? NULL : "no gemm whose work is known";
	struct counter_row rows[] = {
		{ 0, "duration_median", "us", result.times.median_us, NULL },
		{ 0, "duration_p10", "us", result.times.p10_us, NULL },
		{ 0, "duration_p90", "us", result.times.p90_us, NULL },
		{ 0, "throughput", "GB/s", result.gbytes_s, NULL },
		{ 0, "copy_bandwidth", "GB/s", result.copy_gbytes_s, NULL },
		{ 0, "compute", "TFLOP/s", result.tflops_s, no_flops },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		vec_push(collector->cx->arena, &collector->out->counters, rows[i]);
	return true;
}

/* ---- all ---- */

/* What was measured on, and what the compiler made of the launches. */
static void describe_machine(struct collector *collector)
{
	struct gpu_session *session = collector->session;
	struct arena *arena = collector->cx->arena;

	collector->out->device = arena_strndup(arena, session->gpu.name, strlen(session->gpu.name));
	collector->out->driver = gpu_driver_text(arena, &session->gpu);
	collector->out->nvrtc = gpu_nvrtc_text(arena, &session->nvrtc);
	collector->out->compute = session->gpu.compute;
	for (uint32_t i = 0; i < collector->job->session.n_programs; i++) {
		const struct gpu_kernel *kernel = &session->kernels[i];
		struct kernel_row row = { i, kernel->registers, kernel->local_bytes, kernel->shared_bytes };

		vec_push(arena, &collector->out->kernels, row);
	}
}

/* The collection that the job names. */
static bool run_kind(struct collector *collector)
{
	switch (collector->job->kind) {
	case COLLECT_SASS:
		return collect_sass(collector);
	case COLLECT_COUNTERS:
		return collect_counters(collector);
	case COLLECT_TIME:
		return collect_time(collector);
	case N_COLLECT_KINDS:
		break;
	}
	BUG("collection %d", (int)collector->job->kind);
}

/* Rows and failures go to `out`, whatever happens: the parent gets what there is. */
bool collect(struct gpu_session *session, struct cx *cx, const struct collect_job *job,
             struct collection *out)
{
	struct collector collector = { .cx = cx, .job = job, .session = session, .out = out };
	bool ok = gpu_session_open(session, cx, &job->session);

	assert(job->session.n_programs > 0 && job->tensors && job->program);
	if (ok) {
		describe_machine(&collector);
		ok = gpu_session_bind(session, job->tensors) && run_kind(&collector);
	}
	collection_fail(out, cx);
	return ok;
}
