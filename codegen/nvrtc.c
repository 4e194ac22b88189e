/* NVRTC by dlopen, and the folder of what it compiled. */
#include "codegen/nvrtc.h"

#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct span nowhere;

/* ---- the library ---- */

struct entry_point {
	const char *symbol;
	size_t offset; /* into struct nvrtc_api */
};

#define ENTRY(field, symbol) \
	{ \
		symbol, offsetof(struct nvrtc_api, field) \
	}

static const char *bind_symbols(struct nvrtc *nvrtc)
{
	static const struct entry_point entries[] = {
		ENTRY(version, "nvrtcVersion"),
		ENTRY(n_archs, "nvrtcGetNumSupportedArchs"),
		ENTRY(archs, "nvrtcGetSupportedArchs"),
		ENTRY(create, "nvrtcCreateProgram"),
		ENTRY(destroy, "nvrtcDestroyProgram"),
		ENTRY(compile, "nvrtcCompileProgram"),
		ENTRY(ptx_size, "nvrtcGetPTXSize"),
		ENTRY(ptx, "nvrtcGetPTX"),
		ENTRY(cubin_size, "nvrtcGetCUBINSize"),
		ENTRY(cubin, "nvrtcGetCUBIN"),
		ENTRY(log_size, "nvrtcGetProgramLogSize"),
		ENTRY(log, "nvrtcGetProgramLog"),
		ENTRY(error_text, "nvrtcGetErrorString"),
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		void *address = dso_symbol(&nvrtc->library, entries[i].symbol);

		if (!address)
			return entries[i].symbol;
		memcpy((char *)&nvrtc->api + entries[i].offset, &address, sizeof(address));
	}
	return NULL;
}

static bool report_missing(struct nvrtc *nvrtc, const char *missing)
{
	struct diag_list *diags = &nvrtc->cx->diags;
	struct buf tried = { 0 };

	if (missing) {
		diag_report(diags, DIAG_E0710, nowhere, "%s has no %s: NVRTC older than CUDA 11.2",
		            nvrtc->library.path, missing);
	} else {
		dso_print_tried(&tried, &nvrtc->library);
		diag_report(diags, DIAG_E0710, nowhere, "NVRTC (libnvrtc.so) is not found");
		diag_note(diags, nowhere, "tried %s", buf_cstr(&tried));
		if (nvrtc->library.cause)
			diag_note(diags, nowhere, "%s", nvrtc->library.cause);
		buf_free(&tried);
	}
	diag_help(diags, "install the CUDA toolkit or the Python package nvidia-cuda-nvrtc, or set "
	                 "CUDA_HOME to a toolkit's folder");
	return false;
}

bool nvrtc_open(struct nvrtc *nvrtc, struct cx *cx, const char *cuda_path)
{
	const char *missing;
	int n = 0;

	*nvrtc = (struct nvrtc){ .cx = cx, .library = dso_none(cx->arena) };
	if (!dso_try_cuda(&nvrtc->library, cuda_path, "libnvrtc"))
		return report_missing(nvrtc, NULL);
	missing = bind_symbols(nvrtc);
	if (missing)
		return report_missing(nvrtc, missing);
	nvrtc->api.version(&nvrtc->major, &nvrtc->minor);
	if (nvrtc->api.n_archs(&n) == 0 && n > 0 &&
	    n <= (int)(sizeof(nvrtc->archs) / sizeof(*nvrtc->archs)) &&
	    nvrtc->api.archs(nvrtc->archs) == 0)
		nvrtc->n_archs = n;
	return true;
}

void nvrtc_close(struct nvrtc *nvrtc)
{
	dso_close(&nvrtc->library);
}

/* ---- the cache ---- */

enum { MAX_CACHED_BYTES = 64 << 20 };
static const char cache_magic[] = "tilelayout-kernel-1\n";

const char *nvrtc_cache_folder(struct arena *arena)
{
	const char *wanted = getenv("TILELAYOUT_CACHE"), *base = getenv("XDG_CACHE_HOME"),
			   *home = getenv("HOME");

	if (wanted && strcmp(wanted, "0") == 0)
		return NULL;
	if (base && *base == '/')
		return arena_printf(arena, "%s/tilelayout", base);
	return home && *home ? arena_printf(arena, "%s/.cache/tilelayout", home) : NULL;
}

/* A field with its length in front, so that no two lists of fields give the same bytes. */
static void add_field(struct buf *key, const char *text)
{
	buf_printf(key, "%zu:", strlen(text));
	buf_text(key, text);
}

/* Everything that decides what comes out. */
static void make_key(struct buf *key, const struct nvrtc *nvrtc,
                     const struct nvrtc_request *request, const char *const *options, int n_options)
{
	struct stat file;
	char text[128];

	add_field(key, request->text);
	add_field(key, request->name);
	for (int i = 0; i < n_options; i++)
		add_field(key, options[i]);
	add_field(key, request->as_ptx ? "ptx" : "cubin");
	snprintf(text, sizeof(text), "nvrtc %d.%d", nvrtc->major, nvrtc->minor);
	add_field(key, text);
	add_field(key, nvrtc->library.path);
	if (stat(nvrtc->library.path, &file) == 0) {
		snprintf(text, sizeof(text), "%lld bytes %lld.%09ld", (long long)file.st_size,
		         (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
		add_field(key, text);
	}
}

static const char *cache_path(struct arena *arena, const struct buf *key)
{
	const char *folder = nvrtc_cache_folder(arena);

	if (!folder)
		return NULL;
	return arena_printf(arena, "%s/%016" PRIx64 "%016" PRIx64 ".bin", folder,
	                    hash_bytes(key->p, key->n, 1), hash_bytes(key->p, key->n, 2));
}

/* A cached file: magic, key length and key, image length and image, hash of the image. */
static void write_cache(const char *path, const struct buf *key, struct str image)
{
	struct buf file = { 0 };
	char *slash;

	buf_text(&file, cache_magic);
	buf_printf(&file, "%zu\n", key->n);
	buf_add(&file, key->p, key->n);
	buf_printf(&file, "\n%" PRIu32 " %016" PRIx64 "\n", image.n, hash_bytes(image.p, image.n, 3));
	buf_add(&file, image.p, image.n);
	slash = strrchr(path, '/');
	for (const char *at = path + 1; at <= slash; at++) {
		char folder[4096];
		if (*at != '/' || (size_t)(at - path) >= sizeof(folder))
			continue;
		memcpy(folder, path, (size_t)(at - path));
		folder[at - path] = '\0';
		mkdir(folder, 0777);
	}
	buf_write_file(&file, path);
	buf_free(&file);
}

/* False unless the file is whole and holds exactly this key. */
static bool read_cache(struct arena *arena, const char *path, const struct buf *key,
                       struct str *image)
{
	struct buf file = { 0 };
	struct buf head = { 0 };
	uint32_t n = 0;
	uint64_t hash = 0;
	int used = 0;
	bool ok = false;

	buf_text(&head, cache_magic);
	buf_printf(&head, "%zu\n", key->n);
	buf_add(&head, key->p, key->n);
	if (buf_read_file(&file, path, MAX_CACHED_BYTES) && file.n > head.n &&
	    memcmp(file.p, head.p, head.n) == 0 &&
	    sscanf(file.p + head.n, "\n%" SCNu32 " %" SCNx64 "%n", &n, &hash, &used) == 2 &&
	    file.n - head.n - (size_t)used - 1 == n) {
		const char *bytes = file.p + head.n + used + 1;
		if (hash_bytes(bytes, n, 3) == hash) {
			*image = (struct str){ arena_strndup(arena, bytes, n), n };
			ok = true;
		}
	}
	buf_free(&head);
	buf_free(&file);
	return ok;
}

/* ---- compiling ---- */

/* The newest architecture of this NVRTC that is not above `compute`; 0: it knows none. */
static int clamp_arch(const struct nvrtc *nvrtc, int compute)
{
	int best = 0;

	for (int i = 0; i < nvrtc->n_archs; i++)
		if (nvrtc->archs[i] <= compute && nvrtc->archs[i] > best)
			best = nvrtc->archs[i];
	return best;
}

/* The first line of the log that is an error, else its first line. */
static struct str first_error(const char *log)
{
	const char *error = strstr(log, "error");
	const char *begin = error ? error : log;

	while (begin > log && begin[-1] != '\n')
		begin--;
	return (struct str){ begin, (uint32_t)strcspn(begin, "\n") };
}

static void report_rejection(struct nvrtc *nvrtc, nvrtc_program program, nvrtc_status status)
{
	size_t bytes = 0;
	char *log = NULL;
	struct str line = str_of("");

	if (nvrtc->api.log_size(program, &bytes) == 0 && bytes > 0) {
		log = arena_alloc(nvrtc->cx->arena, bytes + 1);
		nvrtc->api.log(program, log);
		line = first_error(log);
	}
	diag_report(&nvrtc->cx->diags, DIAG_E0711, nowhere, "NVRTC %d.%d: %s", nvrtc->major,
	            nvrtc->minor, nvrtc->api.error_text(status));
	if (line.n > 0)
		diag_note(&nvrtc->cx->diags, nowhere, "%.*s", STR_ARGS(line));
}

/* The result of a compiled program into the arena. */
static bool take_image(struct nvrtc *nvrtc, nvrtc_program program, bool as_ptx, struct str *image)
{
	size_t bytes = 0;
	char *text;
	nvrtc_status status =
		as_ptx ? nvrtc->api.ptx_size(program, &bytes) : nvrtc->api.cubin_size(program, &bytes);

	if (status == 0 && bytes > 0 && bytes <= MAX_CACHED_BYTES) {
		text = arena_alloc(nvrtc->cx->arena, bytes + 1);
		status = as_ptx ? nvrtc->api.ptx(program, text) : nvrtc->api.cubin(program, text);
		*image = (struct str){ text, (uint32_t)(as_ptx ? bytes - 1 : bytes) };
	}
	if (status == 0 && bytes > 0)
		return true;
	diag_report(&nvrtc->cx->diags, DIAG_E0711, nowhere, "NVRTC gave nothing: %s",
	            nvrtc->api.error_text(status));
	return false;
}

static bool compile(struct nvrtc *nvrtc, const struct nvrtc_request *request,
                    const char *const *options, int n_options, struct str *image)
{
	nvrtc_program program = NULL;
	nvrtc_status status = nvrtc->api.create(&program, request->text, request->name, 0, NULL, NULL);
	bool ok = false;

	if (status == 0)
		status = nvrtc->api.compile(program, n_options, options);
	if (status != 0)
		report_rejection(nvrtc, program, status);
	else
		ok = take_image(nvrtc, program, request->as_ptx, image);
	if (program)
		nvrtc->api.destroy(&program);
	return ok;
}

static bool choose_arch(struct nvrtc *nvrtc, struct nvrtc_request *request)
{
	int known = clamp_arch(nvrtc, request->compute);

	if (known == request->compute || nvrtc->n_archs == 0)
		return true;
	if (known == 0 || request->exact) {
		diag_report(&nvrtc->cx->diags, DIAG_E0712, nowhere,
		            "NVRTC %d.%d (%s) does not compile for sm_%d; it knows sm_%d to sm_%d",
		            nvrtc->major, nvrtc->minor, nvrtc->library.path, request->compute,
		            nvrtc->archs[0], nvrtc->archs[nvrtc->n_archs - 1]);
		diag_help(&nvrtc->cx->diags, "use a CUDA toolkit that has it, by CUDA_HOME");
		return false;
	}
	request->compute = known;
	request->arch_specific = false;
	request->as_ptx = true;
	return true;
}

bool nvrtc_compile(struct nvrtc *nvrtc, const struct nvrtc_request *wanted,
                   struct nvrtc_result *result)
{
	struct arena *arena = nvrtc->cx->arena;
	struct nvrtc_request request = *wanted;
	const char *options[4];
	struct buf key = { 0 };
	const char *path;
	bool ok = true;

	assert(request.text && request.name && request.compute > 0);
	if (!choose_arch(nvrtc, &request))
		return false;
	options[0] =
		arena_printf(arena, "--gpu-architecture=%s_%d%s", request.as_ptx ? "compute" : "sm",
	                 request.compute, request.arch_specific ? "a" : "");
	options[1] = "--std=c++17";
	options[2] = "-lineinfo";
	*result = (struct nvrtc_result){ .is_ptx = request.as_ptx, .compute = request.compute };
	make_key(&key, nvrtc, &request, options, 3);
	path = cache_path(arena, &key);
	if (path && read_cache(arena, path, &key, &result->image)) {
		result->from_cache = true;
	} else {
		ok = compile(nvrtc, &request, options, 3, &result->image);
		if (ok && path)
			write_cache(path, &key, result->image);
	}
	buf_free(&key);
	return ok;
}
