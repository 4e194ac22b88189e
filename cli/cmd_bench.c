/*
 * bench: times a kernel on the card, beside what a plain copy reaches there. All launches of the
 * kernel count together; compute and memory rates are work of the program over the median time.
 * Nothing is said about right or wrong: that is `run --gpu --check`.
 */
#include "cli/cli.h"

#include "cli/table.h"
#include "db/db.h"
#include "profiler/bench.h"

#include <string.h>

/* What was compiled, on what it ran, and the figures. */
struct bench_report {
	struct compile *compile;
	struct gpu_session session;
	struct bench_result result;
};

/* ---- the measurement ---- */

/* Generated inputs, compiled launches, times. */
static bool measure(struct cli *cli, struct bench_report *report)
{
	struct compile *compile = report->compile;
	struct cx *cx = &compile->cx;
	struct warp_program **programs =
		arena_array(cx->arena, struct warp_program *, compile->launches.n);
	struct gpu_session_options options = {
		.programs = programs,
		.n_programs = compile->launches.n,
		.arch_specific = compile->options.target->has_wgmma,
		.cuda_path = cli->options.cuda_path,
		.device = cli->options.device,
	};
	struct bench_options bench = { .repeats = cli->options.repeats };
	struct tensor_uses uses = { 0 };
	struct tensor_set tensors;
	bool ok;

	for (uint32_t i = 0; i < compile->launches.n; i++)
		programs[i] = compile->launches.p[i]->warp;
	if (!gpu_session_open(&report->session, cx, &options))
		return false;
	tensor_uses_of_tile(compile->program, &uses);
	if (!tensors_open(cx, &uses, arena_array(cx->arena, int64_t, expr_n_vars(compile->pool) + 1u),
	                  &tensors))
		return false;
	tensors_fill(&tensors, cli->options.has_seed ? (uint64_t)cli->options.seed : 1);
	ok = gpu_session_bind(&report->session, &tensors) &&
	     bench_run(&report->session, compile->program, &bench, &report->result);
	tensors_close(&tensors);
	return ok;
}

/* Symbols have no size in this version of bench. */
static bool sizes_are_known(struct compile *compile)
{
	struct cx *cx = &compile->cx;

	if (compile->program->scalars.n == 0)
		return true;
	diag_report(&cx->diags, DIAG_E0705, compile->program->scalars.p[0]->span, "%s has no value",
	            sym_text(cx->names, compile->program->scalars.p[0]->name));
	diag_help(&cx->diags, "write a number in its place");
	return false;
}

/* ---- output ---- */

/* One measurement a row; nothing without a data base (--no-db). */
static void store(struct cli *cli, const struct bench_report *report)
{
	const struct bench_result *result = &report->result;
	struct run_record *run;
	struct record_measurement rows[] = {
		{ .site = -1, .metric = "duration_median", .unit = "us", .value = result->times.median_us },
		{ .site = -1, .metric = "duration_p10", .unit = "us", .value = result->times.p10_us },
		{ .site = -1, .metric = "duration_p90", .unit = "us", .value = result->times.p90_us },
		{ .site = -1, .metric = "throughput", .unit = "GB/s", .value = result->gbytes_s },
		{ .site = -1, .metric = "copy_bandwidth", .unit = "GB/s", .value = result->copy_gbytes_s },
		{ .site = -1,
		  .metric = "compute",
		  .unit = "TFLOP/s",
		  .value = result->tflops_s,
		  .missing = result->work.has_flops ? NULL : "no gemm whose work is known" },
	};

	if (!cli_db_path(cli))
		return;
	run = record_of_compile(report->compile, "bench", cli_version());
	run->device = report->session.gpu.name;
	run->driver = gpu_driver_text(cli->arena, &report->session.gpu);
	run->nvrtc = gpu_nvrtc_text(cli->arena, &report->session.nvrtc);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		record_measure(cli->arena, run, rows[i]);
	db_save(cli_cx(cli), cli_db_path(cli), run);
}

/* "tflops" is null for kernels without gemms, whose operations nobody counts. */
static void print_json(struct cli *cli, const struct bench_report *report)
{
	const struct bench_result *result = &report->result;
	const struct gpu *gpu = &report->session.gpu;
	struct json json;

	cli_json_begin(cli, &json);
	json_kstring(&json, "file", cli->files.p[0]);
	json_kstring(&json, "kernel", sym_text(cli_cx(cli)->names, report->compile->program->name));
	json_kstring(&json, "target", report->compile->options.target->name);
	json_kstring(&json, "device", gpu->name);
	json_kint(&json, "compute_capability", gpu->compute);
	json_kstring(&json, "driver", gpu_driver_text(cli->arena, gpu));
	json_kstring(&json, "nvrtc", gpu_nvrtc_text(cli->arena, &report->session.nvrtc));
	json_kint(&json, "repeats", result->times.n);
	json_kdouble(&json, "median_us", result->times.median_us);
	json_kdouble(&json, "p10_us", result->times.p10_us);
	json_kdouble(&json, "p90_us", result->times.p90_us);
	json_kdouble(&json, "min_us", result->times.min_us);
	json_kdouble(&json, "max_us", result->times.max_us);
	json_kbool(&json, "cache_flushed", result->flushed);
	json_key(&json, "tflops");
	if (result->work.has_flops)
		json_double(&json, result->tflops_s);
	else
		json_null(&json);
	json_kdouble(&json, "gbytes_s", result->gbytes_s);
	json_kdouble(&json, "copy_gbytes_s", result->copy_gbytes_s);
	json_key(&json, "launches");
	json_array(&json);
	for (uint32_t i = 0; i < report->compile->launches.n; i++) {
		const struct gpu_kernel *kernel = &report->session.kernels[i];
		json_object(&json);
		json_kint(&json, "registers", kernel->registers);
		json_kint(&json, "local_bytes", kernel->local_bytes);
		json_kint(&json, "shared_bytes", kernel->shared_bytes);
		json_end(&json);
	}
	json_end(&json);
	cli_json_end(cli, &json);
}

/*
 * Rates stand beside what they can be compared with: a copy on the same card, registers that
 * spilled.
 */
static void print_text(struct cli *cli, const struct bench_report *report)
{
	const struct bench_result *result = &report->result;
	const struct gpu *gpu = &report->session.gpu;
	struct buf *out = &cli->out;

	style_text(out, STYLE_BOLD, cli->colour_out,
	           sym_text(cli_cx(cli)->names, report->compile->program->name));
	buf_printf(out, "  on %s (sm_%d), driver %s, NVRTC %s%s\n", gpu->name, gpu->compute,
	           gpu_driver_text(cli->arena, gpu), gpu_nvrtc_text(cli->arena, &report->session.nvrtc),
	           report->session.code.is_ptx ? ", PTX translated by the driver" : "");
	buf_printf(out, "  median       %10.2f us   p10 %.2f, p90 %.2f, of %lld launches%s\n",
	           result->times.median_us, result->times.p10_us, result->times.p90_us,
	           (long long)result->times.n, result->flushed ? ", L2 flushed before each" : "");
	if (result->work.has_flops)
		buf_printf(out, "  compute      %10.2f TFLOP/s\n", result->tflops_s);
	buf_printf(out, "  memory       %10.2f GB/s", result->gbytes_s);
	if (result->copy_gbytes_s > 0)
		buf_printf(out, "      %.1f %% of a copy's %.0f GB/s",
		           100 * result->gbytes_s / result->copy_gbytes_s, result->copy_gbytes_s);
	buf_char(out, '\n');
	for (uint32_t i = 0; i < report->compile->launches.n; i++) {
		const struct gpu_kernel *kernel = &report->session.kernels[i];
		buf_printf(out,
		           "  launch %u     %10d registers a thread, %d bytes of local memory, %lld bytes "
		           "of shared memory a block\n",
		           i, kernel->registers, kernel->local_bytes, (long long)kernel->shared_bytes);
	}
}

/* Everything is compiled and checked for sizes before the card is touched. */
int cmd_bench(struct cli *cli)
{
	struct bench_report *report = arena_new(cli->arena, struct bench_report);

	if (cli_compile(cli, "accesses", &report->compile) && sizes_are_known(report->compile)) {
		if (measure(cli, report)) {
			store(cli, report);
			if (cli->options.json)
				print_json(cli, report);
			else
				print_text(cli, report);
		}
		gpu_session_close(&report->session);
	}
	return cli_finish(cli, false);
}
