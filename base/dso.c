/*
 * Vendor libraries by dlopen, and where NVIDIA's may lie. Nothing links against CUDA: the program
 * runs without it, and finds it in a toolkit, on the loader's path, or in the wheels of a Python.
 *
 * A library that was tried is written down (dso->tried), so that a message can say where it looked.
 * A file that exists but cannot be loaded leaves the loader's words in dso->cause.
 */
#include "base/dso.h"

#include <assert.h>
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No library yet: every dso_try of it adds to what was tried. */
struct dso dso_none(struct arena *arena)
{
	struct dso dso = { .arena = arena };

	return dso;
}

/* The file behind a handle, as the loader found it. */
static const char *loaded_path(struct dso *dso, const char *name)
{
	struct link_map *map = NULL;

	if (dlinfo(dso->handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name)
		name = map->l_name;
	return arena_strndup(dso->arena, name, strlen(name));
}

/*
 * RTLD_NODELETE: a driver may leave threads and exit handlers behind, which must not lose their
 * code.
 */
bool dso_try(struct dso *dso, const char *name)
{
	if (dso->handle)
		return true;
	vec_push(dso->arena, &dso->tried, arena_strndup(dso->arena, name, strlen(name)));
	dso->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (dso->handle) {
		dso->path = loaded_path(dso, name);
		return true;
	}
	if (strchr(name, '/') && access(name, F_OK) == 0) {
		const char *cause = dlerror();
		dso->cause = cause ? arena_strndup(dso->arena, cause, strlen(cause)) : NULL;
	}
	return false;
}

/* The last match first: of libnvrtc.so.12 and libnvrtc.so.13 the newer one. */
bool dso_try_glob(struct dso *dso, const char *pattern)
{
	glob_t found;

	if (dso->handle)
		return true;
	if (glob(pattern, 0, NULL, &found) != 0) {
		vec_push(dso->arena, &dso->tried, arena_strndup(dso->arena, pattern, strlen(pattern)));
		return false;
	}
	for (size_t i = found.gl_pathc; i > 0 && !dso->handle; i--)
		dso_try(dso, found.gl_pathv[i - 1]);
	globfree(&found);
	return dso->handle != NULL;
}

/* A toolkit's folders below `root`, which may itself be a pattern; an unset variable is no root. */
static bool try_toolkit(struct dso *dso, const char *root, const char *stem)
{
	static const char *const folders[] = { "lib64", "lib", "targets/*/lib", "extras/CUPTI/lib64" };

	if (!root || !*root)
		return false;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (dso_try_glob(dso, arena_printf(dso->arena, "%s/%s/%s.so*", root, folders[i], stem)))
			return true;
	return false;
}

/*
 * The NVIDIA wheels below a Python prefix: nvidia/cuda_nvrtc/lib of CUDA 12, nvidia/cu13/lib of
 * CUDA 13.
 */
static bool try_python(struct dso *dso, const char *prefix, const char *stem)
{
	static const char *const packages[] = { "site-packages", "dist-packages" };

	if (!prefix || !*prefix)
		return false;
	for (size_t i = 0; i < sizeof(packages) / sizeof(*packages); i++)
		if (dso_try_glob(dso, arena_printf(dso->arena, "%s/lib/python3*/%s/nvidia/*/lib/%s.so*",
		                                   prefix, packages[i], stem)))
			return true;
	return false;
}

/* The prefix of the first python3 on PATH; NULL when there is none. */
static const char *python_prefix(struct arena *arena)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		const char *python = arena_printf(arena, "%.*s/python3", (int)n, path);

		if (n > 0 && access(python, X_OK) == 0)
			return arena_printf(arena, "%.*s/..", (int)n, path);
		path += n + (path[n] == ':');
	}
	return NULL;
}

/*
 * The order is the user's wish before the machine's habits: --cuda-path, CUDA_HOME and CUDA_PATH,
 * the usual folders, the loader's own search, then Pythons, the active one first.
 */
bool dso_try_cuda(struct dso *dso, const char *cuda_path, const char *stem)
{
	const char *home = getenv("HOME");

	assert(stem);
	return try_toolkit(dso, cuda_path, stem) || try_toolkit(dso, getenv("CUDA_HOME"), stem) ||
	       try_toolkit(dso, getenv("CUDA_PATH"), stem) ||
	       try_toolkit(dso, "/usr/local/cuda", stem) ||
	       try_toolkit(dso, "/usr/local/cuda-*", stem) ||
	       dso_try(dso, arena_printf(dso->arena, "%s.so", stem)) ||
	       dso_try(dso, arena_printf(dso->arena, "%s.so.13", stem)) ||
	       dso_try(dso, arena_printf(dso->arena, "%s.so.12", stem)) ||
	       try_python(dso, getenv("VIRTUAL_ENV"), stem) ||
	       try_python(dso, getenv("CONDA_PREFIX"), stem) ||
	       try_python(dso, python_prefix(dso->arena), stem) ||
	       try_python(dso, "/usr/local", stem) || try_python(dso, "/usr", stem) ||
	       (home && try_python(dso, arena_printf(dso->arena, "%s/.local", home), stem));
}

void *dso_symbol(const struct dso *dso, const char *name)
{
	return dso->handle ? dlsym(dso->handle, name) : NULL;
}

/* What was tried stays, for dso_print_tried. */
void dso_close(struct dso *dso)
{
	if (dso->handle)
		dlclose(dso->handle);
	dso->handle = NULL;
	dso->path = NULL;
}

void dso_print_tried(struct buf *out, const struct dso *dso)
{
	for (uint32_t i = 0; i < dso->tried.n; i++)
		buf_printf(out, "%s%s", i > 0 ? ", " : "", dso->tried.p[i]);
}
