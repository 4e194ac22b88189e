/*
 * The CUDA driver API by dlopen: one card, its context, modules and launches. No CUDA header is
 * needed to build: the types and numbers that are used are in driver.h, from the documentation of
 * the driver API.
 */
#include "profiler/driver.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

static const struct span nowhere;

/* ---- errors ---- */

/*
 * What most often is behind a status (CUresult), in words for people who did not write a CUDA
 * program.
 */
struct error_cause {
	gpu_status status;
	const char *cause;
};

/* "" for a status of which no more can be said than its name does. */
const char *gpu_error_cause(gpu_status status)
{
	static const struct error_cause causes[] = {
		{ 1,
		  "an argument of the launch is out of range, most often the grid or the shared memory" },
		{ 2, "the card's memory is full; see nvidia-smi for who holds it" },
		{ 3, "the driver could not start; see `nvidia-smi` and the kernel log" },
		{ 34, "this is the stub library that comes with the toolkit, not the driver" },
		{ 36, "the driver is older than the toolkit; update the driver" },
		{ 46, "another process holds the card exclusively, or it is being reset" },
		{ 100, "the driver sees no card: CUDA_VISIBLE_DEVICES may hide it, or /dev/nvidia* is "
		       "missing in this container" },
		{ 101, "there is no card with this number" },
		{ 200, "the compiled kernel is not a cubin that this driver reads" },
		{ 209, "the kernel was compiled for another architecture than this card's" },
		{ 218, "the driver's assembler rejected the PTX" },
		{ 221, "the driver's PTX compiler library (libnvidia-ptxjitcompiler) is missing in this "
		       "container" },
		{ 222, "the PTX is newer than the driver; update the driver or use an older NVRTC" },
		{ 500, "the compiled module has no kernel of this name" },
		{ 700, "the kernel accessed global memory outside its tensors" },
		{ 701, "too many registers or too much shared memory for one block" },
		{ 702, "the kernel ran longer than the display watchdog allows" },
		{ 715, "the kernel holds an instruction that this card does not have" },
		{ 716, "the kernel made an access that is not aligned to its width" },
		{ 717, "an address does not lie in the memory space of its instruction" },
		{ 719, "the kernel was stopped; an access to shared memory outside the block's is the "
		       "usual reason" },
		{ 800, "the system does not permit it" },
		{ 802, "the fabric manager of this multi-GPU system is not running" },
		{ 803, "the loaded libcuda and the kernel module are of different versions" },
		{ 804, "the forward-compatibility libcuda does not support this card" },
		{ 999, "an error inside the driver; see the kernel log" },
	};

	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++)
		if (causes[i].status == status)
			return causes[i].cause;
	return "";
}

/* `what` reads as the subject of the message: "launching the kernel failed: ...". */
bool gpu_ok(struct gpu *gpu, gpu_status status, const char *what)
{
	const char *name = NULL, *text = NULL, *cause = gpu_error_cause(status);
	struct diag_list *diags = &gpu->cx->diags;

	if (status == 0)
		return true;
	if (gpu->api.error_name)
		gpu->api.error_name(status, &name);
	if (gpu->api.error_text)
		gpu->api.error_text(status, &text);
	diag_report(diags, DIAG_E0703, nowhere, "%s failed: %s (%d)%s%s", what,
	            name ? name : "unknown error", status, text ? ", " : "", text ? text : "");
	if (*cause)
		diag_note(diags, nowhere, "%s", cause);
	return false;
}

/* ---- library and card ---- */

struct entry_point {
	const char *symbol;
	size_t offset; /* into struct driver_api */
};

#define ENTRY(field, symbol) \
	{ \
		symbol, offsetof(struct driver_api, field) \
	}

/*
 * The address of every function into gpu->api; the first name that is missing, or NULL. The suffix
 * _v2 is part of the name: without it stands the 32-bit form of CUDA 3.
 */
static const char *bind_symbols(struct gpu *gpu)
{
	static const struct entry_point entries[] = {
		ENTRY(error_name, "cuGetErrorName"),
		ENTRY(error_text, "cuGetErrorString"),
		ENTRY(init, "cuInit"),
		ENTRY(driver_version, "cuDriverGetVersion"),
		ENTRY(device_count, "cuDeviceGetCount"),
		ENTRY(device_get, "cuDeviceGet"),
		ENTRY(device_name, "cuDeviceGetName"),
		ENTRY(device_attribute, "cuDeviceGetAttribute"),
		ENTRY(device_memory, "cuDeviceTotalMem_v2"),
		ENTRY(context_retain, "cuDevicePrimaryCtxRetain"),
		ENTRY(context_release, "cuDevicePrimaryCtxRelease_v2"),
		ENTRY(context_set, "cuCtxSetCurrent"),
		ENTRY(context_synchronize, "cuCtxSynchronize"),
		ENTRY(module_load, "cuModuleLoadDataEx"),
		ENTRY(module_unload, "cuModuleUnload"),
		ENTRY(module_function, "cuModuleGetFunction"),
		ENTRY(function_set, "cuFuncSetAttribute"),
		ENTRY(function_get, "cuFuncGetAttribute"),
		ENTRY(launch, "cuLaunchKernel"),
		ENTRY(alloc, "cuMemAlloc_v2"),
		ENTRY(free, "cuMemFree_v2"),
		ENTRY(copy_to, "cuMemcpyHtoD_v2"),
		ENTRY(copy_from, "cuMemcpyDtoH_v2"),
		ENTRY(copy_within, "cuMemcpyDtoDAsync_v2"),
		ENTRY(fill, "cuMemsetD8Async"),
		ENTRY(event_create, "cuEventCreate"),
		ENTRY(event_record, "cuEventRecord"),
		ENTRY(event_synchronize, "cuEventSynchronize"),
		ENTRY(event_elapsed, "cuEventElapsedTime"),
		ENTRY(event_destroy, "cuEventDestroy_v2"),
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		void *address = dso_symbol(&gpu->library, entries[i].symbol);

		if (!address)
			return entries[i].symbol;
		memcpy((char *)&gpu->api + entries[i].offset, &address, sizeof(address));
	}
	return NULL;
}

/* The loader's own search, then where containers, WSL and NixOS put the driver. */
static bool open_library(struct gpu *gpu)
{
	struct buf tried = { 0 };
	const char *missing;

	dso_try(&gpu->library, "libcuda.so.1");
	dso_try(&gpu->library, "/usr/local/nvidia/lib64/libcuda.so.1");
	dso_try(&gpu->library, "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
	dso_try(&gpu->library, "/usr/lib/wsl/lib/libcuda.so.1");
	dso_try(&gpu->library, "/run/opengl-driver/lib/libcuda.so.1");
	if (!gpu->library.handle) {
		dso_print_tried(&tried, &gpu->library);
		diag_report(&gpu->cx->diags, DIAG_E0701, nowhere,
		            "no NVIDIA driver: libcuda.so.1 is not found");
		diag_note(&gpu->cx->diags, nowhere, "tried %s", buf_cstr(&tried));
		if (gpu->library.cause)
			diag_note(&gpu->cx->diags, nowhere, "%s", gpu->library.cause);
		diag_help(
			&gpu->cx->diags,
			"run it on a machine with an NVIDIA GPU; without one, `run --sim` and `analyze` work");
		buf_free(&tried);
		return false;
	}
	missing = bind_symbols(gpu);
	if (missing) {
		diag_report(&gpu->cx->diags, DIAG_E0701, nowhere, "%s has no %s: the driver is too old",
		            gpu->library.path, missing);
		diag_help(&gpu->cx->diags, "update the NVIDIA driver to CUDA 11.4 or newer");
	}
	return !missing;
}

/* 0 where an older driver does not know the attribute. */
static int attribute(const struct gpu *gpu, enum gpu_attribute which)
{
	int value = 0;

	return gpu->api.device_attribute(&value, (int)which, gpu->device) == 0 ? value : 0;
}

/* What reports say of the card; nothing here can fail in a way that matters. */
static void describe(struct gpu *gpu)
{
	size_t memory_bytes = 0;

	gpu->api.device_name(gpu->name, (int)sizeof(gpu->name) - 1, gpu->device);
	gpu->api.device_memory(&memory_bytes, gpu->device);
	gpu->memory_bytes = (int64_t)memory_bytes;
	gpu->compute = attribute(gpu, GPU_ATTRIBUTE_COMPUTE_MAJOR) * 10 +
	               attribute(gpu, GPU_ATTRIBUTE_COMPUTE_MINOR);
	gpu->n_sms = attribute(gpu, GPU_ATTRIBUTE_SM_COUNT);
	gpu->clock_khz = attribute(gpu, GPU_ATTRIBUTE_CLOCK_KHZ);
	gpu->memory_clock_khz = attribute(gpu, GPU_ATTRIBUTE_MEMORY_CLOCK_KHZ);
	gpu->l2_bytes = attribute(gpu, GPU_ATTRIBUTE_L2_BYTES);
	gpu->shared_bytes_block = attribute(gpu, GPU_ATTRIBUTE_SHARED_BYTES_BLOCK);
}

/* The primary context, which others in the process (CUPTI among them) share. */
static bool open_device(struct gpu *gpu, int64_t index)
{
	int n = 0;

	gpu->api.driver_version(&gpu->driver_version);
	if (!gpu_ok(gpu, gpu->api.init(0), "starting the CUDA driver") ||
	    !gpu_ok(gpu, gpu->api.device_count(&n), "counting the cards"))
		return false;
	if (index < 0 || index >= n) {
		diag_report(&gpu->cx->diags, DIAG_E0702, nowhere, "no CUDA device %lld: the driver sees %d",
		            (long long)index, n);
		return false;
	}
	if (!gpu_ok(gpu, gpu->api.device_get(&gpu->device, (int)index), "opening the card"))
		return false;
	describe(gpu);
	if (!gpu_ok(gpu, gpu->api.context_retain(&gpu->context, gpu->device), "making a context"))
		return false;
	return gpu_ok(gpu, gpu->api.context_set(gpu->context), "making the context current");
}

bool gpu_open(struct gpu *gpu, struct cx *cx, int64_t index)
{
	*gpu = (struct gpu){ .cx = cx, .library = dso_none(cx->arena) };
	return open_library(gpu) && open_device(gpu, index);
}

/* The library stays mapped: the driver's own threads may still run. */
void gpu_close(struct gpu *gpu)
{
	if (gpu->context)
		gpu->api.context_release(gpu->device);
	gpu->context = NULL;
}

/* ---- kernels ---- */

enum {
	JIT_ERROR_LOG = 5, /* CU_JIT_ERROR_LOG_BUFFER */
	JIT_ERROR_LOG_BYTES = 6,
	JIT_LINE_INFO = 13, /* CU_JIT_GENERATE_LINE_INFO */
	LOG_BYTES = 4096,
};

/*
 * The driver's own log is asked for because the status alone does not say which instruction it
 * refused. Line tables are kept, for the profile by source line.
 */
static bool load_module(struct gpu *gpu, struct str image, struct gpu_kernel *kernel)
{
	char log[LOG_BYTES] = "";
	int options[] = { JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES, JIT_LINE_INFO };
	void *values[] = { log, (void *)(uintptr_t)LOG_BYTES, (void *)(uintptr_t)1 };
	gpu_status status = gpu->api.module_load(&kernel->module, image.p, 3, options, values);

	if (gpu_ok(gpu, status, "loading the compiled kernel"))
		return true;
	if (log[0])
		diag_note(&gpu->cx->diags, nowhere, "the driver says: %.*s", (int)strcspn(log, "\n"), log);
	return false;
}

/*
 * The driver takes dynamic shared memory above 48 KiB only when it was asked for (CUDA programming
 * guide, compute capability 7.x and later).
 */
static bool set_shared_bytes(struct gpu *gpu, struct gpu_kernel *kernel)
{
	if (kernel->shared_bytes > gpu->shared_bytes_block) {
		diag_report(&gpu->cx->diags, DIAG_E0704, nowhere,
		            "the kernel needs %lld bytes of shared memory a block; %s has %lld",
		            (long long)kernel->shared_bytes, gpu->name, (long long)gpu->shared_bytes_block);
		diag_help(&gpu->cx->diags, "use fewer stages or smaller tiles");
		return false;
	}
	return gpu_ok(gpu,
	              gpu->api.function_set(kernel->function, GPU_FUNCTION_DYNAMIC_SHARED_BYTES,
	                                    (int)kernel->shared_bytes),
	              "asking for shared memory");
}

/* On failure nothing stays loaded. */
bool gpu_load(struct gpu *gpu, struct str image, const char *name, int64_t shared_bytes,
              struct gpu_kernel *kernel)
{
	*kernel = (struct gpu_kernel){ .shared_bytes = shared_bytes };
	if (!load_module(gpu, image, kernel))
		return false;
	if (gpu_ok(gpu, gpu->api.module_function(&kernel->function, kernel->module, name),
	           "finding the kernel") &&
	    set_shared_bytes(gpu, kernel)) {
		gpu->api.function_get(&kernel->registers, GPU_FUNCTION_REGISTERS, kernel->function);
		gpu->api.function_get(&kernel->local_bytes, GPU_FUNCTION_LOCAL_BYTES, kernel->function);
		return true;
	}
	gpu_unload(gpu, kernel);
	return false;
}

void gpu_unload(struct gpu *gpu, struct gpu_kernel *kernel)
{
	if (kernel->module)
		gpu->api.module_unload(kernel->module);
	kernel->module = NULL;
}

/*
 * Limits of the grid: CUDA programming guide, "Compute capabilities". An empty grid runs nothing
 * and is no error, as a kernel of zero rows is none.
 */
bool gpu_launch(struct gpu *gpu, const struct gpu_kernel *kernel, const int64_t grid[3],
                void **params)
{
	static const int64_t max_grid[3] = { INT_MAX, 65535, 65535 };

	assert(kernel->function && kernel->n_threads > 0);
	for (int i = 0; i < 3; i++) {
		if (grid[i] <= max_grid[i])
			continue;
		diag_report(&gpu->cx->diags, DIAG_E0704, nowhere,
		            "the grid's %s extent is %lld; a launch has at most %lld",
		            i == 0   ? "first"
		            : i == 1 ? "second"
		                     : "third",
		            (long long)grid[i], (long long)max_grid[i]);
		return false;
	}
	if (grid[0] <= 0 || grid[1] <= 0 || grid[2] <= 0)
		return true;
	return gpu_ok(gpu,
	              gpu->api.launch(kernel->function, (unsigned)grid[0], (unsigned)grid[1],
	                              (unsigned)grid[2], (unsigned)kernel->n_threads, 1, 1,
	                              (unsigned)kernel->shared_bytes, NULL, params, NULL),
	              "launching the kernel");
}

/* Errors of kernels that run behind come out here, or with any later call. */
bool gpu_synchronize(struct gpu *gpu)
{
	return gpu_ok(gpu, gpu->api.context_synchronize(), "running the kernel");
}
