/*
 * nvrtc: CUDA text to PTX or to a cubin by NVIDIA's run-time compiler, opened at run time; no CUDA
 * header is needed to build.
 *
 * What was compiled once is kept in $XDG_CACHE_HOME/tilelayout (~/.cache/tilelayout). The key is
 * everything that decides the output, each field with its length in front: text, options,
 * architecture, the compiler's version, and the path, size and time of its file; a cached file
 * holds its whole key, so two inputs never share an entry. A cache that cannot be read or written
 * is no error.
 */
#ifndef TL_CODEGEN_NVRTC_H
#define TL_CODEGEN_NVRTC_H

#include "base/diag.h"
#include "base/dso.h"

typedef int nvrtc_status; /* nvrtcResult; 0 is success */
typedef struct nvrtc_opaque *nvrtc_program;

/* The entry points that are used (NVRTC documentation). */
struct nvrtc_api {
	nvrtc_status (*version)(int *major, int *minor);
	nvrtc_status (*n_archs)(int *n);
	nvrtc_status (*archs)(int *archs);
	nvrtc_status (*create)(nvrtc_program *program, const char *text, const char *name,
	                       int n_headers, const char *const *headers,
	                       const char *const *include_names);
	nvrtc_status (*destroy)(nvrtc_program *program);
	nvrtc_status (*compile)(nvrtc_program program, int n_options, const char *const *options);
	nvrtc_status (*ptx_size)(nvrtc_program program, size_t *bytes);
	nvrtc_status (*ptx)(nvrtc_program program, char *text);
	nvrtc_status (*cubin_size)(nvrtc_program program, size_t *bytes);
	nvrtc_status (*cubin)(nvrtc_program program, char *bytes_out);
	nvrtc_status (*log_size)(nvrtc_program program, size_t *bytes);
	nvrtc_status (*log)(nvrtc_program program, char *text);
	const char *(*error_text)(nvrtc_status status);
};

struct nvrtc {
	struct cx *cx;
	struct dso library;
	struct nvrtc_api api;
	int major, minor;        /* 13, 0 */
	int archs[128], n_archs; /* compute capabilities that it compiles for, as 80, ascending */
};

/*
 * Opens the library; `cuda_path` (NULL: none) is searched first. False with E0710, which lists
 * what was tried.
 */
bool nvrtc_open(struct nvrtc *nvrtc, struct cx *cx, const char *cuda_path);
void nvrtc_close(struct nvrtc *nvrtc);

struct nvrtc_request {
	const char *text;
	const char *name;   /* of the text in messages: "matmul.cu" */
	int compute;        /* 90: for compute capability 9.0 */
	bool arch_specific; /* sm_90a instead of sm_90 */
	bool as_ptx;        /* PTX instead of a cubin */
	bool exact; /* an architecture that this NVRTC does not know is an error (E0712), not clamped */
};

struct nvrtc_result {
	struct str image; /* cubin or PTX text in the arena, with a NUL behind it (not counted) */
	bool is_ptx;      /* also when a cubin was asked for but this NVRTC is older than the card: the
	                     driver then compiles it */
	int compute;      /* what it was compiled for */
	bool from_cache;
};

/*
 * Compiles. An architecture newer than this NVRTC gives PTX for its newest one, for the driver to
 * translate, and a note; with `exact` it is E0712. False with E0711, which shows the compiler's
 * first error, or E0712.
 */
bool nvrtc_compile(struct nvrtc *nvrtc, const struct nvrtc_request *request,
                   struct nvrtc_result *result);

/*
 * The folder of compiled kernels; NULL when neither XDG_CACHE_HOME nor HOME is set or
 * TILELAYOUT_CACHE is "0".
 */
const char *nvrtc_cache_folder(struct arena *arena);

#endif
