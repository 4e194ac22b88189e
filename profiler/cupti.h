/*
 * cupti: NVIDIA's profiling library, opened at run time; no header of it is needed to build.
 *
 * A process can use it for one collection only (ranges give not-a-number behind SASS metrics, and
 * SASS metrics can be set up once), so each collection runs in a process of its own (profile.h).
 */
#ifndef TL_PROFILER_CUPTI_H
#define TL_PROFILER_CUPTI_H

#include "base/diag.h"
#include "base/dso.h"
#include "profiler/cupti_abi.h"

enum cupti_function {
#define CUPTI(id, name) CUPTI_##id,
#include "profiler/cupti.def"
#undef CUPTI
	N_CUPTI_FUNCTIONS
};

struct cupti {
	struct cx *cx;
	struct dso library;
	void *functions[N_CUPTI_FUNCTIONS];
	uint32_t version; /* CUPTI_API_VERSION: 130000 in CUDA 13.0 */
};

/* Opens libcupti; `cuda_path` (NULL: none) is searched first. False with E0740, which lists what
 * was tried. */
bool cupti_open(struct cupti *cupti, struct cx *cx, const char *cuda_path);
void cupti_close(struct cupti *cupti);
/* "13.0 (/usr/local/cuda/lib64/libcupti.so.13)" */
const char *cupti_text(struct arena *arena, const struct cupti *cupti);

/* Calls a function with its parameters (cupti_abi.h) and gives its status. */
int cupti_call(const struct cupti *cupti, enum cupti_function function, void *params);
/* The same; true when it succeeded, else the failure with its likely cause is reported
 * (E0741..E0744). */
bool cupti_ok(struct cupti *cupti, enum cupti_function function, void *params);

/* What around the process decides why a call failed. */
struct cupti_surroundings {
	bool is_wsl, is_container;
	bool admin_only;    /* the driver's parameters restrict counters to administrators */
	const char *holder; /* a profiler or debugger that seems to hold CUPTI; NULL */
};
struct cupti_surroundings cupti_surroundings(struct arena *arena);

struct cupti_cause {
	enum diag_code code;
	const char *text; /* what it means; NULL when the status says it all */
	const char *help; /* what to do; NULL */
};
/* Status of a failed call to its cause. */
struct cupti_cause cupti_cause(struct arena *arena, int status,
                               const struct cupti_surroundings *surroundings);

#endif
