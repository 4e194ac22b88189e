/*
 * driver: the CUDA driver API, opened at run time (libcuda.so.1); no CUDA header is needed to
 * build.
 *
 * One `struct gpu` is one card with its primary context current on the calling thread. Every
 * failing call reports a diagnostic with the driver's own error name and the usual cause of it
 * (E0701..E0705), and gives false. Types and numbers follow the CUDA driver API reference.
 */
#ifndef TL_PROFILER_DRIVER_H
#define TL_PROFILER_DRIVER_H

#include "base/diag.h"
#include "base/dso.h"

typedef uint64_t gpu_pointer; /* CUdeviceptr */
typedef int gpu_status;       /* CUresult; 0 is success */

enum gpu_attribute { /* CUdevice_attribute */
	                 GPU_ATTRIBUTE_CLOCK_KHZ = 13,
	                 GPU_ATTRIBUTE_SM_COUNT = 16,
	                 GPU_ATTRIBUTE_MEMORY_CLOCK_KHZ = 36,
	                 GPU_ATTRIBUTE_MEMORY_BUS_BITS = 37,
	                 GPU_ATTRIBUTE_L2_BYTES = 38,
	                 GPU_ATTRIBUTE_COMPUTE_MAJOR = 75,
	                 GPU_ATTRIBUTE_COMPUTE_MINOR = 76,
	                 GPU_ATTRIBUTE_SHARED_BYTES_BLOCK = 97, /* what a block may ask for */
};

enum gpu_function_attribute { /* CUfunction_attribute */
	                          GPU_FUNCTION_LOCAL_BYTES = 3,
	                          GPU_FUNCTION_REGISTERS = 4,
	                          GPU_FUNCTION_DYNAMIC_SHARED_BYTES = 8, /* settable */
};

/*
 * The entry points that are used; CUcontext, CUmodule, CUfunction, CUevent and CUstream are opaque
 * pointers.
 */
struct driver_api {
	gpu_status (*init)(unsigned flags);
	gpu_status (*driver_version)(int *version);
	gpu_status (*device_count)(int *n);
	gpu_status (*device_get)(int *device, int index);
	gpu_status (*device_name)(char *name, int n, int device);
	gpu_status (*device_attribute)(int *value, int attribute, int device);
	gpu_status (*device_memory)(size_t *bytes, int device);
	gpu_status (*context_retain)(void **context, int device);
	gpu_status (*context_release)(int device);
	gpu_status (*context_set)(void *context);
	gpu_status (*context_synchronize)(void);
	gpu_status (*module_load)(void **module, const void *image, unsigned n, int *options,
	                          void **values);
	gpu_status (*module_unload)(void *module);
	gpu_status (*module_function)(void **function, void *module, const char *name);
	gpu_status (*function_set)(void *function, int attribute, int value);
	gpu_status (*function_get)(int *value, int attribute, void *function);
	gpu_status (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	                     unsigned block_x, unsigned block_y, unsigned block_z,
	                     unsigned shared_bytes, void *stream, void **params, void **extra);
	gpu_status (*alloc)(gpu_pointer *pointer, size_t bytes);
	gpu_status (*free)(gpu_pointer pointer);
	gpu_status (*copy_to)(gpu_pointer to, const void *from, size_t bytes);
	gpu_status (*copy_from)(void *to, gpu_pointer from, size_t bytes);
	gpu_status (*copy_within)(gpu_pointer to, gpu_pointer from, size_t bytes, void *stream);
	gpu_status (*fill)(gpu_pointer pointer, unsigned char byte, size_t bytes, void *stream);
	gpu_status (*event_create)(void **event, unsigned flags);
	gpu_status (*event_record)(void *event, void *stream);
	gpu_status (*event_synchronize)(void *event);
	gpu_status (*event_elapsed)(float *milliseconds, void *begin, void *end);
	gpu_status (*event_destroy)(void *event);
	gpu_status (*error_name)(gpu_status status, const char **name);
	gpu_status (*error_text)(gpu_status status, const char **text);
};

struct gpu {
	struct cx *cx; /* where errors go */
	struct dso library;
	struct driver_api api;
	int driver_version; /* as 13000: CUDA 13.0 */
	int device;
	void *context;
	char name[128];
	int compute; /* 90 for compute capability 9.0 */
	int n_sms;
	int clock_khz, memory_clock_khz;
	int64_t l2_bytes, memory_bytes, shared_bytes_block;
};

/*
 * Opens card number `index`, its primary context current. False with E0701 (no driver), E0702 (no
 * card) or E0703; what was learnt before (library, driver_version) stays readable. gpu_close is
 * due in either case.
 */
bool gpu_open(struct gpu *gpu, struct cx *cx, int64_t index);
void gpu_close(struct gpu *gpu);

/*
 * Gives status == 0; else reports `what` failed with E0703, the error's name, text and likely
 * cause.
 */
bool gpu_ok(struct gpu *gpu, gpu_status status, const char *what);
/* What usually stands behind an error, as one sentence; "" when there is nothing to add. */
const char *gpu_error_cause(gpu_status status);

/* A kernel that is loaded and ready to launch. */
struct gpu_kernel {
	void *module, *function;
	int registers, local_bytes; /* of a thread */
	int64_t shared_bytes;       /* dynamic, of a block */
	int64_t n_threads;
};
/*
 * Loads a cubin or PTX text (NUL behind it) and finds `name`; sets the dynamic shared memory,
 * `shared_bytes`, of the launch. False with E0703 or, when a block has too little shared memory,
 * E0704.
 */
bool gpu_load(struct gpu *gpu, struct str image, const char *name, int64_t shared_bytes,
              struct gpu_kernel *kernel);
void gpu_unload(struct gpu *gpu, struct gpu_kernel *kernel);
/*
 * Launches on the default stream without waiting; params[i] points to the i-th argument's value.
 * False with E0703, or E0704 when the grid is larger than a launch may be.
 */
bool gpu_launch(struct gpu *gpu, const struct gpu_kernel *kernel, const int64_t grid[3],
                void **params);
bool gpu_synchronize(struct gpu *gpu);

#endif
