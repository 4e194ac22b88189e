/*
 * A CUPTI without a card, to see how measurements and refusals are told: every instruction executed
 * 64 times without shared wavefronts, every counter 50. FAKE_CUPTI chooses what goes wrong:
 * privileges, subscriber, mig, crash, nan, old_chip, ranges_only.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cupti_abi.h"

static int is(const char *what)
{
	const char *wanted = getenv("FAKE_CUPTI");

	return wanted && strcmp(wanted, what) == 0;
}

/* What reading counters is answered with. */
static int refusal(void)
{
	if (is("privileges"))
		return CUPTI_INSUFFICIENT_PRIVILEGES;
	if (is("subscriber"))
		return CUPTI_MULTIPLE_SUBSCRIBERS;
	return is("mig") ? CUPTI_MIG_NOT_SUPPORTED : CUPTI_OK;
}

#define CALL(name, type) \
	int name(struct type *params); \
	int name(struct type *params)

/* Each checks that it was given the structure of the size that CUPTI's headers have. */
#define SIZE_IS(bytes) \
	do { \
		if (params->size != (bytes)) \
			return CUPTI_INVALID_PARAMETER; \
	} while (0)

enum { N_RECORDS = 4096 };

int cuptiGetVersion(unsigned *version);
int cuptiGetVersion(unsigned *version)
{
	*version = 130000;
	return CUPTI_OK;
}

int cuptiGetResultString(int status, const char **text);
int cuptiGetResultString(int status, const char **text)
{
	*text = status == CUPTI_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
	                                                : "CUPTI_ERROR_OTHER";
	return CUPTI_OK;
}

CALL(cuptiProfilerInitialize, cupti_initialize)
{
	SIZE_IS(16);
	return is("subscriber") ? refusal() : CUPTI_OK;
}

CALL(cuptiProfilerDeviceSupported, cupti_device_supported)
{
	SIZE_IS(52);
	params->supported = CUPTI_SUPPORT_YES;
	return CUPTI_OK;
}

CALL(cuptiDeviceGetChipName, cupti_chip_name)
{
	SIZE_IS(32);
	params->name = "GH100";
	return CUPTI_OK;
}

CALL(cuptiProfilerGetCounterAvailability, cupti_availability)
{
	SIZE_IS(40);
	params->n_bytes = 8;
	return CUPTI_OK;
}

/* ---- SASS metrics ---- */

CALL(cuptiSassMetricsGetProperties, cupti_sass_properties)
{
	SIZE_IS(56);
	params->found.id = 100 + strlen(params->metric);
	return CUPTI_OK;
}

CALL(cuptiSassMetricsSetConfig, cupti_sass_set_config)
{
	SIZE_IS(36);
	return is("ranges_only")        ? CUPTI_NOT_SUPPORTED
	       : params->n_configs == 3 ? refusal()
	                                : CUPTI_INVALID_PARAMETER;
}

CALL(cuptiSassMetricsUnsetConfig, cupti_sass_unset_config)
{
	SIZE_IS(20);
	return CUPTI_OK;
}

CALL(cuptiSassMetricsEnable, cupti_sass_enable)
{
	SIZE_IS(25);
	return params->context && params->lazy ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}

CALL(cuptiSassMetricsDisable, cupti_sass_disable)
{
	SIZE_IS(32);
	return CUPTI_OK;
}

CALL(cuptiSassMetricsGetDataProperties, cupti_sass_data_properties)
{
	SIZE_IS(40);
	params->n_records = N_RECORDS;
	params->n_instances = 3;
	return CUPTI_OK;
}

CALL(cuptiSassMetricsFlushData, cupti_sass_flush)
{
	SIZE_IS(40);
	if (is("crash"))
		abort();
	for (size_t i = 0; i < params->n_records; i++) {
		struct cupti_sass_data *data = &params->data[i];

		data->function = "main_kernel";
		data->pc = (uint32_t)i * 16;
		data->values[0] = (struct cupti_sass_value){ 100 + strlen("smsp__sass_inst_executed"), 64 };
	}
	return CUPTI_OK;
}

CALL(cuptiGetSassToSourceCorrelation, cupti_sass_to_source)
{
	if (params->size != 64)
		return CUPTI_INVALID_PARAMETER;
	params->line = 18;
	params->file = strdup("rms_norm.tl");
	params->folder = strdup("/");
	return CUPTI_OK;
}

/* ---- counters ---- */

CALL(cuptiProfilerHostInitialize, cupti_host_initialize)
{
	SIZE_IS(48);
	params->host = params;
	return CUPTI_OK;
}

CALL(cuptiProfilerHostDeinitialize, cupti_host_deinitialize)
{
	SIZE_IS(24);
	return CUPTI_OK;
}

CALL(cuptiProfilerHostGetMetricProperties, cupti_host_metric_properties)
{
	SIZE_IS(60);
	return is("old_chip") && strncmp(params->metric, "dram__bytes", 11) == 0
	           ? CUPTI_INVALID_METRIC_NAME
	           : CUPTI_OK;
}

CALL(cuptiProfilerHostConfigAddMetrics, cupti_host_add_metrics)
{
	SIZE_IS(40);
	return params->n_metrics > 0 ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}

CALL(cuptiProfilerHostGetConfigImageSize, cupti_host_config_size)
{
	SIZE_IS(32);
	params->n_bytes = 64;
	return CUPTI_OK;
}

CALL(cuptiProfilerHostGetConfigImage, cupti_host_config)
{
	SIZE_IS(40);
	memset(params->image, 1, params->n_bytes);
	return CUPTI_OK;
}

CALL(cuptiProfilerHostGetNumOfPasses, cupti_host_passes)
{
	SIZE_IS(40);
	params->n_passes = 2;
	return CUPTI_OK;
}

CALL(cuptiProfilerHostEvaluateToGpuValues, cupti_host_evaluate)
{
	SIZE_IS(72);
	for (size_t i = 0; i < params->n_metrics; i++)
		params->values[i] = is("nan") && i % 2 ? (double)NAN : 50;
	return CUPTI_OK;
}

CALL(cuptiRangeProfilerEnable, cupti_range_enable)
{
	SIZE_IS(32);
	params->profiler = params->context;
	return refusal();
}

CALL(cuptiRangeProfilerDisable, cupti_range_object)
{
	SIZE_IS(24);
	return CUPTI_OK;
}

CALL(cuptiRangeProfilerGetCounterDataSize, cupti_range_data_size)
{
	SIZE_IS(64);
	params->n_bytes = 64;
	return CUPTI_OK;
}

CALL(cuptiRangeProfilerCounterDataImageInitialize, cupti_range_data_initialize)
{
	SIZE_IS(40);
	return CUPTI_OK;
}

CALL(cuptiRangeProfilerSetConfig, cupti_range_set_config)
{
	SIZE_IS(90);
	return params->range == CUPTI_RANGE_AUTO && params->replay == CUPTI_REPLAY_KERNEL
	           ? CUPTI_OK
	           : CUPTI_INVALID_PARAMETER;
}

CALL(cuptiRangeProfilerStart, cupti_range_object)
{
	SIZE_IS(24);
	return CUPTI_OK;
}

CALL(cuptiRangeProfilerStop, cupti_range_stop)
{
	SIZE_IS(41);
	params->all_passes_submitted = 1;
	return CUPTI_OK;
}

CALL(cuptiRangeProfilerDecodeData, cupti_range_decode)
{
	SIZE_IS(32);
	return CUPTI_OK;
}

CALL(cuptiRangeProfilerGetCounterDataInfo, cupti_range_data_info)
{
	SIZE_IS(40);
	params->n_ranges = 1;
	return CUPTI_OK;
}
