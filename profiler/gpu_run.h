/*
 * gpu_run: compiled launches on given inputs.
 *
 * A session is a card, the launches of one kernel compiled for it, and tensors on it. `run --gpu`
 * goes through gpu_run; bench and profile keep a session and launch many times:
 *
 *     struct gpu_session session;
 *     bool ok = gpu_session_open(&session, cx, &options) && gpu_session_bind(&session, &tensors);
 *     for (...) ok = ok && gpu_session_launch(&session);
 *     ok = ok && gpu_session_fetch(&session, &tensors);
 *     gpu_session_close(&session);   // in any case
 */
#ifndef TL_PROFILER_GPU_RUN_H
#define TL_PROFILER_GPU_RUN_H

#include "codegen/nvrtc.h"
#include "profiler/driver.h"
#include "sim/tensors.h"

struct gpu_session_options {
	struct warp_program *const *programs; /* one a launch, in order */
	uint32_t n_programs;
	const char *cuda_path; /* a toolkit's folder, or NULL */
	int64_t device;        /* the card's number */
	bool arch_specific;    /* the programs hold instructions of sm_90a and the like */
};

struct gpu_session {
	struct gpu_session_options options;
	struct gpu gpu;
	struct nvrtc nvrtc;
	struct nvrtc_result code;         /* the cubin, or PTX when NVRTC is older than the card */
	const char *text;                 /* the CUDA text */
	struct gpu_kernel *kernels;       /* one a program */
	const struct tensor_set *tensors; /* of the last bind */
	gpu_pointer *pointers;            /* one a tensor */
	uint32_t n_pointers;
};

/*
 * Opens the card, prints, compiles and loads the programs. False with E0701..E0704, E0710..E0712
 * or E0690.
 */
bool gpu_session_open(struct gpu_session *session, struct cx *cx,
                      const struct gpu_session_options *options);
/*
 * Puts the tensors' bytes on the card; `tensors` stays borrowed for the launches (sizes and scalar
 * values). Replaces an earlier bind.
 */
bool gpu_session_bind(struct gpu_session *session, const struct tensor_set *tensors);
/* Queues all launches in order and does not wait. False with E0703..E0705. */
bool gpu_session_launch(struct gpu_session *session);
/*
 * Waits, then copies the tensors that the kernel writes into `tensors`, opened like those that
 * were bound.
 */
bool gpu_session_fetch(struct gpu_session *session, struct tensor_set *tensors);
/* Frees everything; fine on a session whose open failed, and twice. */
void gpu_session_close(struct gpu_session *session);

/* What a card was, for a stored measurement: "CUDA 13.0", "13.0". */
const char *gpu_driver_text(struct arena *arena, const struct gpu *gpu);
const char *gpu_nvrtc_text(struct arena *arena, const struct nvrtc *nvrtc);

/* Runs the launches once on `tensors`, which then hold what the kernel wrote. */
bool gpu_run(struct cx *cx, const struct gpu_session_options *options, struct tensor_set *tensors);

#endif
