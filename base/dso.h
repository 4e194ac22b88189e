/*
 * dso: vendor libraries that are opened at run time, so that nothing but a C library is needed to
 * build or start.
 *
 * Every path that was tried is kept, in order, to be shown when none works.
 */
#ifndef TL_BASE_DSO_H
#define TL_BASE_DSO_H

#include "base/buf.h"
#include "base/vec.h"

struct dso {
	struct arena *arena;
	void *handle;      /* NULL: not found */
	const char *path;  /* of the file that the loader took; NULL without a handle */
	const char *cause; /* what the loader said about the last candidate that exists but does not
	                      load; NULL */
	vec_of(const char *) tried;
};

struct dso dso_none(struct arena *arena);
/*
 * Loads `name` (a path, or a soname for the loader's own search) unless something is loaded
 * already. True when something is.
 */
bool dso_try(struct dso *dso, const char *name);
/*
 * The same for every file that the shell pattern matches, the last in sorted order (the newest
 * version) first.
 */
bool dso_try_glob(struct dso *dso, const char *pattern);
/*
 * A CUDA toolkit library: `cuda_path` (NULL: none given), CUDA_HOME, CUDA_PATH, /usr/local/cuda*,
 * the loader's search, then the NVIDIA wheels of Python environments (VIRTUAL_ENV, CONDA_PREFIX,
 * that of python3 on PATH, the system's and the user's). `stem` as "libnvrtc".
 */
bool dso_try_cuda(struct dso *dso, const char *cuda_path, const char *stem);
/* NULL when the library lacks it. */
void *dso_symbol(const struct dso *dso, const char *name);
/* The library stays mapped: such libraries keep state that outlives their handle. */
void dso_close(struct dso *dso);
/* The tried paths as "a, b, c". */
void dso_print_tried(struct buf *out, const struct dso *dso);

#endif
