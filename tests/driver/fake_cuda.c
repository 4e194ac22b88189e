/*
 * A CUDA driver without a card, to see how failures and measurements are reported: memory is the
 * host's, launches do nothing, each event is 125 microseconds behind the last. FAKE_CUDA chooses
 * what goes wrong: no_device, init, memory, launch, fault, shared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long pointer;

static int fails(const char *what)
{
	const char *wanted = getenv("FAKE_CUDA");

	return wanted && strcmp(wanted, what) == 0;
}

int cuGetErrorName(int status, const char **name);
int cuGetErrorName(int status, const char **name)
{
	*name = status == 100   ? "CUDA_ERROR_NO_DEVICE"
	        : status == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
	        : status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
	        : status == 1   ? "CUDA_ERROR_INVALID_VALUE"
	                        : "CUDA_ERROR_UNKNOWN";
	return 0;
}

#define SIMPLE(name, parameters, body) \
	int name parameters; \
	int name parameters \
	{ \
		body; \
		return 0; \
	}

SIMPLE(cuGetErrorString, (int status, const char **text),
       *text = status ? "fake failure" : "no error")
/* NVRTC asks the driver for tables of its own. */
SIMPLE(cuGetExportTable, (const void **table, const void *id), (void)id; *table = NULL; return 500)
SIMPLE(cuInit, (unsigned flags), (void)flags; if (fails("init")) return 999;
       if (fails("no_device")) return 100)
SIMPLE(cuDriverGetVersion, (int *version), *version = 13000)
SIMPLE(cuDeviceGetCount, (int *n), *n = 1)
SIMPLE(cuDeviceGet, (int *device, int index), *device = index)
SIMPLE(cuDeviceGetName, (char *name, int n, int device), (void)device;
       snprintf(name, (size_t)n, "Fake GPU"))
SIMPLE(cuDeviceTotalMem_v2, (size_t * bytes, int device), (void)device; *bytes = (size_t)1 << 24)
SIMPLE(cuDevicePrimaryCtxRetain, (void **context, int device), (void)device; *context = stdout)
SIMPLE(cuDevicePrimaryCtxRelease_v2, (int device), (void)device)
SIMPLE(cuCtxSetCurrent, (void *context), (void)context)
SIMPLE(cuCtxSynchronize, (void), if (fails("fault")) return 700)
SIMPLE(cuModuleLoadDataEx,
       (void **module, const void *image, unsigned n, int *options, void **values), (void)image;
       (void)n; (void)options; (void)values; *module = stdout)
SIMPLE(cuModuleUnload, (void *module), (void)module)
SIMPLE(cuModuleGetFunction, (void **function, void *module, const char *name), (void)module;
       (void)name; *function = stdout)
SIMPLE(cuFuncSetAttribute, (void *function, int attribute, int value), (void)function;
       (void)attribute; (void)value)
SIMPLE(cuFuncGetAttribute, (int *value, int attribute, void *function), (void)function;
       *value = attribute == 4 ? 96 : 0)
SIMPLE(cuMemAlloc_v2, (pointer * to, size_t bytes), if (fails("memory")) return 2;
       *to = (pointer)malloc(bytes))
SIMPLE(cuMemFree_v2, (pointer to), free((void *)to))
SIMPLE(cuMemcpyHtoD_v2, (pointer to, const void *from, size_t bytes),
       memcpy((void *)to, from, bytes))
SIMPLE(cuMemcpyDtoH_v2, (void *to, pointer from, size_t bytes), memcpy(to, (void *)from, bytes))
SIMPLE(cuMemcpyDtoDAsync_v2, (pointer to, pointer from, size_t bytes, void *stream), (void)stream;
       memcpy((void *)to, (void *)from, bytes))
SIMPLE(cuMemsetD8Async, (pointer to, unsigned char byte, size_t bytes, void *stream), (void)stream;
       memset((void *)to, byte, bytes))
SIMPLE(cuEventCreate, (void **event, unsigned flags), (void)flags; *event = stdout)
SIMPLE(cuEventRecord, (void *event, void *stream), (void)event; (void)stream)
SIMPLE(cuEventSynchronize, (void *event), (void)event; if (fails("fault")) return 700)
SIMPLE(cuEventElapsedTime, (float *milliseconds, void *begin, void *end), (void)begin; (void)end;
       *milliseconds = 0.125f)
SIMPLE(cuEventDestroy_v2, (void *event), (void)event)
SIMPLE(cuLaunchKernel,
       (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
        unsigned bz, unsigned shared, void *stream, void **params, void **extra),
       (void)function;
       (void)gx; (void)gy; (void)gz; (void)bx; (void)by; (void)bz; (void)shared; (void)stream;
       (void)params; (void)extra; if (fails("launch")) return 1)

int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)device;
	switch (attribute) {
	case 16:
		*value = 132;
		break;
	case 38:
		*value = 1 << 20;
		break;
	case 75:
		*value = 9;
		break;
	case 97:
		*value = fails("shared") ? 16 << 10 : 227 << 10;
		break;
	default:
		*value = 0;
	}
	return 0;
}
