/*
 * cupti_abi: parameters of CUPTI's calls as CUDA 13.0's cupti_profiler_target.h,
 * cupti_sass_metrics.h, cupti_profiler_host.h, cupti_range_profiler.h, cupti_target.h and
 * cupti_pcsampling.h declare them; nothing of CUPTI is needed to build.
 *
 * Every structure starts with its size up to its last field (not sizeof: padding does not count)
 * and a NULL pointer.
 */
#ifndef TL_PROFILER_CUPTI_ABI_H
#define TL_PROFILER_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* The value of a `size` field; initialiser of the structure's first member. */
#define CUPTI_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))

/* CUptiResult: those that have a cause of their own. */
enum cupti_status {
	CUPTI_OK = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_INVALID_OPERATION = 7,
	CUPTI_OUT_OF_MEMORY = 8,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_INVALID_METRIC_NAME = 17,
	CUPTI_HARDWARE_BUSY = 26,
	CUPTI_NOT_SUPPORTED = 27,
	CUPTI_VIRTUALIZED_NOT_SUPPORTED = 33,
	CUPTI_INSUFFICIENT_PRIVILEGES = 35,
	CUPTI_OLD_PROFILER_INITIALIZED = 36,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	CUPTI_VIRTUALIZED_PRIVILEGES = 40,
	CUPTI_CONFIDENTIAL_COMPUTING = 41,
	CUPTI_CMP_NOT_SUPPORTED = 42,
	CUPTI_MIG_NOT_SUPPORTED = 43,
	CUPTI_SLI_NOT_SUPPORTED = 44,
	CUPTI_WSL_NOT_SUPPORTED = 45,
	CUPTI_INVALID_CHIP = 46,
	CUPTI_UNKNOWN = 999,
};

struct cupti_initialize {
	size_t size;
	void *private;
};

struct cupti_chip_name {
	size_t size;
	void *private;
	size_t device;
	const char *name; /* out */
};

/* cuptiProfilerGetCounterAvailability: with image NULL gives the size. */
struct cupti_availability {
	size_t size;
	void *private;
	void *context;
	size_t n_bytes; /* in, out */
	uint8_t *image;
};

/* CUpti_Profiler_Support_Level */
enum cupti_support {
	CUPTI_SUPPORT_UNKNOWN,
	CUPTI_SUPPORT_NO,
	CUPTI_SUPPORT_DISABLED,
	CUPTI_SUPPORT_YES
};

struct cupti_device_supported {
	size_t size;
	void *private;
	int device;
	int supported, architecture, sli, vgpu, confidential_compute, cmp,
		wsl; /* out, enum cupti_support */
	int api; /* CUpti_Profiler_API: 0 ranges, 2 SASS metrics */
};

/* ---- SASS metrics ---- */

struct cupti_sass_properties {
	size_t size;
	void *private;
	const char *chip, *metric;
	/* CUpti_SassMetrics_MetricDetails, out */
	struct cupti_sass_metric {
		uint64_t id;
		const char *name, *description;
	} found;
};

struct cupti_sass_metric_config {
	uint64_t id;
	uint8_t granularity; /* 0: one value for the whole GPU */
};

struct cupti_sass_set_config {
	size_t size;
	void *private;
	size_t n_configs;
	struct cupti_sass_metric_config *configs;
	uint32_t device;
};

struct cupti_sass_unset_config {
	size_t size;
	void *private;
	uint32_t device;
};

struct cupti_sass_enable {
	size_t size;
	void *private;
	void *context;
	uint8_t lazy; /* patch a function at its first launch */
};

struct cupti_sass_disable {
	size_t size;
	void *private;
	void *context;
	size_t n_dropped; /* out */
};

struct cupti_sass_data_properties {
	size_t size;
	void *private;
	void *context;
	size_t n_records, n_instances; /* out */
};

struct cupti_sass_value {
	uint64_t metric, value;
};

struct cupti_sass_data {
	size_t size;
	void *private;
	uint32_t cubin_crc, function_index; /* out, all */
	const char *function;
	uint32_t pc;
	struct cupti_sass_value *values; /* room for n_instances */
};

/* Its size ends before `data` (the header's own definition). */
struct cupti_sass_flush {
	size_t size;
	void *private;
	void *context;
	size_t n_records, n_instances;
	struct cupti_sass_data *data;
};

/* Texts come from malloc and are the caller's. */
struct cupti_sass_to_source {
	size_t size;
	const void *cubin;
	const char *function;
	size_t cubin_bytes;
	uint32_t line; /* out */
	uint64_t pc;
	char *file, *folder; /* out */
};

/* ---- host: metric names, configuration images, values ---- */

struct cupti_host_initialize {
	size_t size;
	void *private;
	int profiler; /* CUpti_ProfilerType: 0 the range profiler */
	const char *chip;
	const uint8_t *availability;
	void *host; /* out */
};

struct cupti_host_deinitialize {
	size_t size;
	void *private;
	void *host;
};

struct cupti_host_metric_properties {
	size_t size;
	void *private;
	void *host;
	const char *metric;
	const char *description, *hardware_unit, *dimension; /* out */
	int type;                                            /* out */
};

struct cupti_host_add_metrics {
	size_t size;
	void *private;
	void *host;
	const char **metrics;
	size_t n_metrics;
};

struct cupti_host_config_size {
	size_t size;
	void *private;
	void *host;
	size_t n_bytes; /* out */
};

struct cupti_host_config {
	size_t size;
	void *private;
	void *host;
	size_t n_bytes;
	uint8_t *image; /* filled */
};

struct cupti_host_passes {
	size_t size;
	void *private;
	size_t n_bytes;
	uint8_t *image;
	size_t n_passes; /* out */
};

struct cupti_host_evaluate {
	size_t size;
	void *private;
	void *host;
	const uint8_t *data;
	size_t n_bytes;
	size_t range;
	const char **metrics;
	size_t n_metrics;
	double *values; /* filled */
};

/* ---- ranges ---- */

/* Enable (profiler out), disable, start and decode have one shape up to here. */
struct cupti_range_enable {
	size_t size;
	void *private;
	void *context;
	void *profiler; /* out */
};

struct cupti_range_object {
	size_t size;
	void *private;
	void *profiler;
};

struct cupti_range_data_size {
	size_t size;
	void *private;
	void *profiler;
	const char **metrics;
	size_t n_metrics;
	size_t max_ranges;
	uint32_t max_nodes;
	size_t n_bytes; /* out */
};

struct cupti_range_data_initialize {
	size_t size;
	void *private;
	void *profiler;
	size_t n_bytes;
	uint8_t *data;
};

enum {
	CUPTI_RANGE_AUTO = 1,
	CUPTI_REPLAY_KERNEL = 2
}; /* CUpti_ProfilerRange, CUpti_ProfilerReplayMode */

struct cupti_range_set_config {
	size_t size;
	void *private;
	void *profiler;
	size_t n_config_bytes;
	const uint8_t *config;
	size_t n_data_bytes;
	uint8_t *data;
	int range, replay;
	size_t max_ranges_per_pass;
	uint16_t n_nesting_levels, min_nesting_level;
	size_t pass;
	uint16_t target_nesting_level;
};

struct cupti_range_stop {
	size_t size;
	void *private;
	void *profiler;
	size_t pass, target_nesting_level; /* out, all */
	uint8_t all_passes_submitted;
};

struct cupti_range_decode {
	size_t size;
	void *private;
	void *profiler;
	size_t n_dropped; /* out */
};

struct cupti_range_data_info {
	size_t size;
	void *private;
	const uint8_t *data;
	size_t n_bytes;
	size_t n_ranges; /* out */
};

#endif
