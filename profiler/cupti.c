/*
 * CUPTI by dlopen, and why its calls fail. Parameters are the structures of cupti_abi.h, with their
 * size as first member, so that a newer library knows which fields there are.
 *
 * A failing call mostly has a cause outside the program: permissions, a container, another
 * profiler. The second half of the file looks at the surroundings and turns a status into words
 * that help.
 */
#include "profiler/cupti.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[N_CUPTI_FUNCTIONS] = {
#define CUPTI(id, name) [CUPTI_##id] = name,
#include "profiler/cupti.def"
#undef CUPTI
};

static const struct span NOWHERE = { 0 };

/* ---- the library ---- */

/* E0740 with every place that was searched. */
static void report_missing(struct cupti *cupti, struct cx *cx)
{
	struct buf tried = { 0 };

	dso_print_tried(&tried, &cupti->library);
	diag_report(&cx->diags, DIAG_E0740, NOWHERE, "libcupti was not found%s%s",
	            cupti->library.cause ? ": " : "", cupti->library.cause ? cupti->library.cause : "");
	diag_note(&cx->diags, NOWHERE, "tried %s", buf_cstr(&tried));
	diag_help(&cx->diags, "it comes with the CUDA toolkit and with the Python package "
	                      "nvidia-cuda-cupti; --cuda-path names a folder");
	buf_free(&tried);
}

/* All functions of cupti.def or none: a library without one of them is too old for everything. */
bool cupti_open(struct cupti *cupti, struct cx *cx, const char *cuda_path)
{
	int (*version)(uint32_t *);

	*cupti = (struct cupti){ .cx = cx, .library = dso_none(cx->arena) };
	if (!dso_try_cuda(&cupti->library, cuda_path, "libcupti")) {
		report_missing(cupti, cx);
		return false;
	}
	for (int i = 0; i < N_CUPTI_FUNCTIONS; i++) {
		cupti->functions[i] = dso_symbol(&cupti->library, names[i]);
		if (cupti->functions[i])
			continue;
		diag_report(&cx->diags, DIAG_E0740, NOWHERE, "%s has no %s: it is older than CUDA 12.6",
		            cupti->library.path, names[i]);
		diag_help(&cx->diags, "--cuda-path names the folder of a newer toolkit");
		return false;
	}
	memcpy(&version, &cupti->functions[CUPTI_VERSION], sizeof(version));
	if (version(&cupti->version) != CUPTI_OK)
		cupti->version = 0;
	return true;
}

void cupti_close(struct cupti *cupti)
{
	dso_close(&cupti->library);
}

const char *cupti_text(struct arena *arena, const struct cupti *cupti)
{
	/* Since CUDA 12.6 the version is that of the toolkit, major * 10000 + minor * 100. */
	return arena_printf(arena, "%u.%u (%s)", cupti->version / 10000, cupti->version / 100 % 100,
	                    cupti->library.path);
}

/* Through memcpy, as ISO C has no conversion from an object's address to a function's. */
int cupti_call(const struct cupti *cupti, enum cupti_function function, void *params)
{
	int (*call)(void *);

	assert(cupti->functions[function]);
	memcpy(&call, &cupti->functions[function], sizeof(call));
	return call(params);
}

/* CUPTI's own name of a status. */
static const char *status_name(const struct cupti *cupti, int status)
{
	int (*string)(int, const char **);
	const char *name = NULL;

	memcpy(&string, &cupti->functions[CUPTI_RESULT_STRING], sizeof(string));
	return string(status, &name) == CUPTI_OK && name ? name : "an unknown status";
}

/*
 * Reports the call's name, CUPTI's own word for the status, the likely cause and the library that
 * was used. The last of them matters where several toolkits are installed.
 */
bool cupti_ok(struct cupti *cupti, enum cupti_function function, void *params)
{
	int status = cupti_call(cupti, function, params);
	struct cupti_surroundings surroundings;
	struct cupti_cause cause;

	assert(function < N_CUPTI_FUNCTIONS && params);
	if (status == CUPTI_OK)
		return true;
	surroundings = cupti_surroundings(cupti->cx->arena);
	cause = cupti_cause(cupti->cx->arena, status, &surroundings);
	diag_report(&cupti->cx->diags, cause.code, NOWHERE, "%s gave %s (%d)%s%s", names[function],
	            status_name(cupti, status), status, cause.text ? ": " : "",
	            cause.text ? cause.text : "");
	diag_note(&cupti->cx->diags, NOWHERE, "CUPTI %s", cupti_text(cupti->cx->arena, cupti));
	if (cause.help)
		diag_help(&cupti->cx->diags, "%s", cause.help);
	return false;
}

/* ---- surroundings ---- */

/* The first bytes of a small file; "" when it cannot be read. */
static const char *read_small(struct arena *arena, const char *path)
{
	enum { MAX_BYTES = 1 << 16 };
	char *text = arena_alloc(arena, MAX_BYTES);
	FILE *file = fopen(path, "r");

	if (file) {
		text[fread(text, 1, MAX_BYTES - 1, file)] = '\0';
		fclose(file);
	}
	return text;
}

/*
 * Is this the name of a process that would hold CUPTI? The kernel cuts names after 15 characters,
 * as in "compute-saniti(zer)".
 */
static bool is_profiler(const char *name)
{
	static const char *const profilers[] = { "ncu",           "nv-nsight-cu-cli", "nsys",
		                                     "nsys-launcher", "cuda-gdb",         "compute-saniti",
		                                     "nvprof" };

	for (size_t i = 0; i < sizeof(profilers) / sizeof(*profilers); i++)
		if (strncmp(name, profilers[i], strlen(profilers[i])) == 0)
			return true;
	return false;
}

/*
 * A parent process that is a profiler, or a library that one injects; NULL for none. proc(5): the
 * second field of /proc/PID/stat is the name in brackets, which may hold brackets itself, the
 * fourth the parent.
 */
static const char *find_holder(struct arena *arena)
{
	enum { MAX_PARENTS = 8 };
	const char *injected = getenv("CUDA_INJECTION64_PATH");
	long pid = (long)getppid();

	for (int i = 0; i < MAX_PARENTS && pid > 1; i++) {
		const char *stat = read_small(arena, arena_printf(arena, "/proc/%ld/stat", pid));
		const char *open = strchr(stat, '('), *close = strrchr(stat, ')');

		if (!open || !close || close < open)
			break;
		if (is_profiler(open + 1))
			return arena_printf(arena, "%.*s (process %ld)", (int)(close - open - 1), open + 1,
			                    pid);
		if (sscanf(close + 1, " %*c %ld", &pid) != 1)
			break;
	}
	return injected && *injected ? arena_printf(arena, "CUDA_INJECTION64_PATH=%s", injected) : NULL;
}

/* Only files that anybody may read; what is missing counts as absent. */
struct cupti_surroundings cupti_surroundings(struct arena *arena)
{
	const char *version = read_small(arena, "/proc/version");

	return (struct cupti_surroundings){
		.is_wsl = strstr(version, "icrosoft") != NULL,
		.is_container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0,
		.admin_only = strstr(read_small(arena, "/proc/driver/nvidia/params"),
		                     "RmProfilingAdminOnly: 1") != NULL,
		.holder = find_holder(arena),
	};
}

/* ---- causes ---- */

/* Error 35 means the same everywhere; what helps does not. */
static struct cupti_cause no_permission(const struct cupti_surroundings *surroundings)
{
	struct cupti_cause cause = {
		.code = DIAG_E0741, .text = "the driver lets only administrators read performance counters"
	};

	if (surroundings->is_wsl)
		cause.help = "under WSL the Windows driver decides: NVIDIA Control Panel, Developer, "
					 "Manage GPU Performance Counters";
	else if (surroundings->is_container)
		cause.help = "start the container with --cap-add=SYS_ADMIN and be root in it, or on the "
					 "host load the driver with "
					 "NVreg_RestrictProfilingToAdminUsers=0";
	else
		cause.help = "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0 "
					 "(a line `options nvidia NVreg_RestrictProfilingToAdminUsers=0` in "
					 "/etc/modprobe.d, then a restart)";
	return cause;
}

/* Another subscriber. */
static struct cupti_cause held(struct arena *arena, const struct cupti_surroundings *surroundings)
{
	const char *text = "another profiler or debugger holds the counters; there can be only one";

	if (surroundings->holder)
		text = arena_printf(arena, "%s; it is likely %s", text, surroundings->holder);
	return (struct cupti_cause){ DIAG_E0742, text,
		                         "run it outside ncu, nsys, compute-sanitizer and cuda-gdb" };
}

/* A configuration without counters; nothing the user could set. */
static struct cupti_cause not_offered(const char *text)
{
	return (struct cupti_cause){ DIAG_E0743, text, NULL };
}

/* A status that says nothing about its cause gets E0744 and no words. */
struct cupti_cause cupti_cause(struct arena *arena, int status,
                               const struct cupti_surroundings *surroundings)
{
	switch (status) {
	case CUPTI_INSUFFICIENT_PRIVILEGES:
		return no_permission(surroundings);
	case CUPTI_VIRTUALIZED_PRIVILEGES:
		return (struct cupti_cause){
			DIAG_E0741, "the hypervisor does not let this virtual machine read counters",
			"whoever runs the host can allow profiling for this virtual GPU"
		};
	case CUPTI_MULTIPLE_SUBSCRIBERS:
	case CUPTI_OLD_PROFILER_INITIALIZED:
	case CUPTI_HARDWARE_BUSY:
		return held(arena, surroundings);
	case CUPTI_VIRTUALIZED_NOT_SUPPORTED:
		return not_offered("this kind of virtual GPU has no counters");
	case CUPTI_CONFIDENTIAL_COMPUTING:
		return not_offered("confidential computing is on, which forbids profiling");
	case CUPTI_CMP_NOT_SUPPORTED:
		return not_offered("this is a mining card, which has no counters");
	case CUPTI_MIG_NOT_SUPPORTED:
		return not_offered("the card is divided (MIG), and this division has no counters");
	case CUPTI_SLI_NOT_SUPPORTED:
		return not_offered("the cards are joined (SLI), which forbids profiling");
	case CUPTI_WSL_NOT_SUPPORTED:
		return not_offered("WSL offers no counters with this driver; no setting changes that");
	case CUPTI_NOT_SUPPORTED:
		return not_offered(surroundings->is_wsl ? "WSL does not offer these counters"
		                                        : "the card or its driver does not offer them");
	case CUPTI_INVALID_CHIP:
		return (struct cupti_cause){ DIAG_E0743, "this CUPTI does not know the chip",
			                         "--cuda-path names the folder of a newer toolkit" };
	case CUPTI_NOT_INITIALIZED:
		if (surroundings->holder)
			return held(arena, surroundings);
		return (struct cupti_cause){ DIAG_E0744, "CUPTI could not attach to the driver",
			                         "a sandbox may hide the driver's interfaces" };
	default:
		return (struct cupti_cause){ DIAG_E0744, NULL, NULL };
	}
}
