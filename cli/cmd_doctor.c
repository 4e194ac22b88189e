/*
 * doctor: what of the machine the verbs can use, where it lies, and what to do about what is
 * missing.
 *
 * Each probe uses the very functions that the verbs use, with a context of its own, so that what
 * doctor reports is what a verb will meet. Nothing is changed, and a missing part is no failure of
 * the verb.
 */
#include "cli/cli.h"

#include "cli/table.h"
#include "codegen/nvrtc.h"
#include "profiler/driver.h"
#include "viz/flow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if HAVE_SQLITE
#include <sqlite3.h>
#endif
#if HAVE_GRAPHVIZ
#include <graphviz/graphviz_version.h>
#endif

/* BLOCKED: it is there, but may not be used. */
enum probe_status { PROBE_PRESENT, PROBE_MISSING, PROBE_BLOCKED, N_PROBE_STATUSES };
static const char *const status_texts[N_PROBE_STATUSES] = { "present", "missing", "blocked" };

/* One row of the answer. */
struct probe {
	const char *name;
	enum probe_status status;
	const char *version, *detail; /* NULL: nothing to say */
	const char *tried;            /* paths, when it was searched for */
	const char *remedy;           /* what to do when it is not present */
};

/* What the probes are told, and the rows in order. */
struct doctor {
	struct arena *arena;
	const char *cuda_path;
	int64_t device;
	vec_of(struct probe) probes;
};

/* Where a library was looked for, separated by commas. */
static const char *tried_text(struct arena *arena, const struct dso *dso)
{
	struct buf text = { 0 };

	dso_print_tried(&text, dso);
	return buf_keep(&text, arena);
}

/* The first error of a probe's own context. */
static const char *first_error(const struct cx *cx)
{
	return cx->diags.items.n > 0 ? cx->diags.items.p[0]->message : "";
}

/* ---- driver and card ---- */

/* Two rows: the driver may be there without a card that it can open. */
static void probe_gpu(struct doctor *doctor)
{
	struct probe driver = {
		.name = "driver",
		.remedy = "install the NVIDIA driver; in a container, start it with the NVIDIA runtime"
	};
	struct probe card = { .name = "card",
		                  .status = PROBE_MISSING,
		                  .remedy = "see `nvidia-smi` and CUDA_VISIBLE_DEVICES" };
	struct gpu gpu;
	struct cx cx;
	bool ok;

	cx_init(&cx, doctor->arena);
	ok = gpu_open(&gpu, &cx, doctor->device);
	driver.tried = tried_text(doctor->arena, &gpu.library);
	driver.detail = gpu.library.path ? gpu.library.path : first_error(&cx);
	driver.status = gpu.library.handle && gpu.driver_version ? PROBE_PRESENT : PROBE_MISSING;
	if (gpu.driver_version)
		driver.version = arena_printf(doctor->arena, "CUDA %d.%d", gpu.driver_version / 1000,
		                              gpu.driver_version % 1000 / 10);
	if (ok) {
		card.status = PROBE_PRESENT;
		card.version = arena_printf(doctor->arena, "sm_%d", gpu.compute);
		card.detail =
			arena_printf(doctor->arena, "%s, %d SMs, %.1f GiB, %lld KiB shared memory a block",
		                 gpu.name, gpu.n_sms, (double)gpu.memory_bytes / (double)(1 << 30),
		                 (long long)(gpu.shared_bytes_block >> 10));
	} else {
		card.detail = first_error(&cx);
	}
	gpu_close(&gpu);
	vec_push(doctor->arena, &doctor->probes, driver);
	vec_push(doctor->arena, &doctor->probes, card);
}

/* ---- CUDA libraries ---- */

/* With the architectures that this NVRTC compiles for, lowest and highest. */
static void probe_nvrtc(struct doctor *doctor)
{
	struct probe probe = {
		.name = "NVRTC",
		.status = PROBE_MISSING,
		.remedy =
			"install the CUDA toolkit or the Python package nvidia-cuda-nvrtc, or give --cuda-path"
	};
	struct nvrtc nvrtc;
	struct cx cx;

	cx_init(&cx, doctor->arena);
	if (nvrtc_open(&nvrtc, &cx, doctor->cuda_path)) {
		probe.status = PROBE_PRESENT;
		probe.version = arena_printf(doctor->arena, "%d.%d", nvrtc.major, nvrtc.minor);
		probe.detail = nvrtc.n_archs > 0
		                   ? arena_printf(doctor->arena, "%s, sm_%d to sm_%d", nvrtc.library.path,
		                                  nvrtc.archs[0], nvrtc.archs[nvrtc.n_archs - 1])
		                   : nvrtc.library.path;
	} else {
		probe.detail = first_error(&cx);
	}
	probe.tried = tried_text(doctor->arena, &nvrtc.library);
	nvrtc_close(&nvrtc);
	vec_push(doctor->arena, &doctor->probes, probe);
}

/*
 * Only whether it is there and how old: attaching it to this process would get in the way of
 * others.
 */
static void probe_cupti(struct doctor *doctor)
{
	struct probe probe = { .name = "CUPTI",
		                   .status = PROBE_MISSING,
		                   .remedy = "install the CUDA toolkit or the Python package "
		                             "nvidia-cuda-cupti; bench and run need none" };
	struct dso dso = dso_none(doctor->arena);
	int (*get_version)(uint32_t * version);
	void *address;
	uint32_t version = 0;

	if (dso_try_cuda(&dso, doctor->cuda_path, "libcupti")) {
		probe.status = PROBE_PRESENT;
		probe.detail = dso.path;
		address = dso_symbol(&dso, "cuptiGetVersion");
		memcpy(&get_version, &address, sizeof(get_version));
		if (address && get_version(&version) == 0)
			probe.version = arena_printf(doctor->arena, "API %u", version);
	} else {
		probe.detail = "libcupti.so is not found";
	}
	probe.tried = tried_text(doctor->arena, &dso);
	dso_close(&dso);
	vec_push(doctor->arena, &doctor->probes, probe);
}

/* False also for a file that cannot be read. */
static bool file_contains(const char *path, const char *word)
{
	struct buf text = { 0 };
	bool found = buf_read_file(&text, path, 1 << 20) && strstr(buf_cstr(&text), word);

	buf_free(&text);
	return found;
}

/*
 * Hardware counters: the driver's policy, Windows' driver under WSL, another profiler that holds
 * CUPTI.
 */
static void probe_counters(struct doctor *doctor)
{
	struct probe probe = { .name = "counters", .status = PROBE_PRESENT };
	const char *injected = getenv("CUDA_INJECTION64_PATH");

	if (file_contains("/proc/version", "icrosoft")) {
		probe.detail =
			"WSL: the counters' permission is set in Windows (NVIDIA Control Panel, Developer)";
	} else if (access("/proc/driver/nvidia/params", R_OK) != 0) {
		probe.status = PROBE_MISSING;
		probe.detail = "no NVIDIA kernel module";
		probe.remedy = "see driver";
	} else if (file_contains("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1") &&
	           geteuid() != 0) {
		probe.status = PROBE_BLOCKED;
		probe.detail =
			"the driver gives counters to root alone (NVreg_RestrictProfilingToAdminUsers=1)";
		probe.remedy =
			"run as root, with --cap-add=SYS_ADMIN in a container, or load the module with "
			"NVreg_RestrictProfilingToAdminUsers=0";
	} else {
		probe.detail = "the driver's policy lets this user read them";
	}
	if (injected && *injected && probe.status == PROBE_PRESENT) {
		probe.status = PROBE_BLOCKED;
		probe.detail = arena_printf(
			doctor->arena, "another profiler is loaded (CUDA_INJECTION64_PATH=%s)", injected);
		probe.remedy = "profile outside of nsys, ncu and compute-sanitizer";
	}
	vec_push(doctor->arena, &doctor->probes, probe);
}

/* ---- the rest ---- */

/* Draws an empty graph: Graphviz may be built in while its plugins are not registered. */
static void probe_graphviz(struct doctor *doctor)
{
	struct probe probe = {
		.name = "Graphviz",
		.status = PROBE_MISSING,
		.remedy = "install libgraphviz-dev and build again; graphs are drawn plainly without it"
	};
#if HAVE_GRAPHVIZ
	struct flow flow = { .arena = doctor->arena, .title = "probe" };
	struct buf svg = { 0 };

	probe.version = PACKAGE_VERSION;
	if (flow_draw_graphviz(&svg, &flow)) {
		probe.status = PROBE_PRESENT;
		probe.detail = "lays out and writes SVG";
	} else {
		probe.detail = "built in, but it cannot write SVG";
		probe.remedy = "run `dot -c` as root, which registers Graphviz's plugins";
	}
	buf_free(&svg);
#else
	probe.detail = "not built in";
#endif
	vec_push(doctor->arena, &doctor->probes, probe);
}

/* The version is that of the library that was loaded, not of the headers. */
static void probe_sqlite(struct doctor *doctor)
{
	struct probe probe = {
		.name = "SQLite",
		.status = PROBE_MISSING,
		.remedy = "install libsqlite3-dev and build again; nothing is stored without it"
	};
#if HAVE_SQLITE
	probe.status = PROBE_PRESENT;
	probe.version = sqlite3_libversion();
#else
	probe.detail = "not built in";
#endif
	vec_push(doctor->arena, &doctor->probes, probe);
}

/*
 * Compiled kernels are kept by their text's hash; a folder that does not exist yet is made when
 * needed.
 */
static void probe_cache(struct doctor *doctor)
{
	struct probe probe = { .name = "kernel cache",
		                   .status = PROBE_PRESENT,
		                   .detail = nvrtc_cache_folder(doctor->arena) };

	if (!probe.detail) {
		probe.status = PROBE_MISSING;
		probe.detail = "off: neither XDG_CACHE_HOME nor HOME is set, or TILELAYOUT_CACHE=0";
		probe.remedy = "kernels are compiled anew each time; set XDG_CACHE_HOME to keep them";
	} else if (access(probe.detail, F_OK) == 0 && access(probe.detail, W_OK) != 0) {
		probe.status = PROBE_BLOCKED;
		probe.remedy = "make the folder writable, or set XDG_CACHE_HOME";
	}
	vec_push(doctor->arena, &doctor->probes, probe);
}

/* ---- output ---- */

/* A remedy is null for what needs none. */
static void print_json(struct cli *cli, const struct doctor *doctor)
{
	struct json json;

	cli_json_begin(cli, &json);
	json_key(&json, "checks");
	json_array(&json);
	for (uint32_t i = 0; i < doctor->probes.n; i++) {
		const struct probe *probe = &doctor->probes.p[i];
		json_object(&json);
		json_kstring(&json, "name", probe->name);
		json_kstring(&json, "status", status_texts[probe->status]);
		json_kstring(&json, "version", probe->version);
		json_kstring(&json, "detail", probe->detail);
		json_kstring(&json, "tried", probe->tried);
		json_kstring(&json, "remedy", probe->status == PROBE_PRESENT ? NULL : probe->remedy);
		json_end(&json);
	}
	json_end(&json);
	cli_json_end(cli, &json);
}

/* Notes below a row say where was looked and what helps. */
static void print_text(struct cli *cli, const struct doctor *doctor)
{
	static const enum table_style styles[N_PROBE_STATUSES] = { STYLE_GOOD, STYLE_DIM, STYLE_WARN };
	struct table table;

	table_init(&table, cli->arena, "llll");
	table_add(&table, STYLE_PLAIN, "what");
	table_add(&table, STYLE_PLAIN, "status");
	table_add(&table, STYLE_PLAIN, "version");
	table_add(&table, STYLE_PLAIN, "detail");
	for (uint32_t i = 0; i < doctor->probes.n; i++) {
		const struct probe *probe = &doctor->probes.p[i];
		table_add(&table, STYLE_PLAIN, probe->name);
		table_add(&table, styles[probe->status], status_texts[probe->status]);
		table_add(&table, STYLE_PLAIN, probe->version ? probe->version : "");
		table_add(&table, STYLE_PLAIN, probe->detail ? probe->detail : "");
		if (probe->status == PROBE_PRESENT)
			continue;
		if (probe->tried && *probe->tried)
			table_note(&table, STYLE_DIM, arena_printf(cli->arena, "  tried %s", probe->tried));
		if (probe->remedy)
			table_note(&table, STYLE_DIM, arena_printf(cli->arena, "  to do: %s", probe->remedy));
	}
	table_print(&cli->out, &table, cli->colour_out);
}

int cmd_doctor(struct cli *cli)
{
	struct doctor doctor = { .arena = cli->arena,
		                     .cuda_path = cli->options.cuda_path,
		                     .device = cli->options.device };

	probe_gpu(&doctor);
	probe_nvrtc(&doctor);
	probe_cupti(&doctor);
	probe_counters(&doctor);
	probe_graphviz(&doctor);
	probe_sqlite(&doctor);
	probe_cache(&doctor);
	if (cli->options.json)
		print_json(cli, &doctor);
	else
		print_text(cli, &doctor);
	return cli_finish(cli, false);
}
