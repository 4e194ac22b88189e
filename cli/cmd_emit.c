/* emit: the kernel as it is after a pass, as CUDA text, as PTX or as a cubin. */
#include "cli/cli.h"

#include "codegen/cuda/cuda.h"
#include "codegen/nvrtc.h"

#include <string.h>

/* The stages behind the warp program; those before are passes with a dump. */
enum code_stage { STAGE_CUDA, STAGE_PTX, STAGE_CUBIN, N_CODE_STAGES };
static const char *const code_stages[N_CODE_STAGES] = { "cuda", "ptx", "cubin" };

static const struct pass *find_pass(const char *name)
{
	static const char *const stages[] = { "tile", "solution", "schedule", "warp" };

	for (size_t i = 0; i < sizeof(stages) / sizeof(*stages); i++)
		if (strcmp(stages[i], name) == 0)
			for (const struct pass *pass = compile_passes(); pass->name; pass++)
				if (strcmp(pass->name, name) == 0)
					return pass;
	return NULL;
}

/* All launches of the kernel as one module. */
static bool print_cuda(struct compile *compile, struct buf *out)
{
	struct warp_program **programs =
		arena_array(compile->cx.arena, struct warp_program *, compile->launches.n);

	for (uint32_t i = 0; i < compile->launches.n; i++)
		programs[i] = compile->launches.p[i]->warp;
	return cuda_print(out, programs, compile->launches.n);
}

/*
 * PTX or a cubin for the target, whatever card is there, so that the output depends on the command
 * line alone.
 */
static bool compile_cuda(struct cli *cli, struct compile *compile, bool as_ptx, struct buf *out)
{
	struct cx *cx = &compile->cx;
	struct nvrtc nvrtc;
	struct nvrtc_result result;
	struct nvrtc_request request = {
		.text = buf_cstr(out),
		.name = arena_printf(cx->arena, "%s.cu", sym_text(cx->names, compile->program->name)),
		.compute = compile->options.target->compute,
		.arch_specific = compile->options.target->has_wgmma,
		.as_ptx = as_ptx,
		.exact = true,
	};
	bool ok =
		nvrtc_open(&nvrtc, cx, cli->options.cuda_path) && nvrtc_compile(&nvrtc, &request, &result);

	buf_free(out);
	if (ok)
		buf_add(out, result.image.p, result.image.n);
	nvrtc_close(&nvrtc);
	return ok;
}

static bool emit_code(struct cli *cli, enum code_stage stage, struct buf *out)
{
	struct compile *compile;

	if (!cli_compile(cli, "warp", &compile) || !print_cuda(compile, out))
		return false;
	return stage == STAGE_CUDA || compile_cuda(cli, compile, stage == STAGE_PTX, out);
}

static bool emit(struct cli *cli, const char *stage, struct buf *out)
{
	const struct pass *pass = find_pass(stage);
	struct compile *compile;

	if (cli->options.parity && (!pass || strcmp(stage, "warp") == 0)) {
		diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 },
		            "--stage %s: with --parity the stages are tile, solution and schedule", stage);
		diag_help(
			&cli->cx.diags,
			"the code behind the schedule is TileLang's own; without --parity emit prints that "
			"of this tool");
		return false;
	}
	if (pass) {
		bool ok = cli_compile(cli, pass->name, &compile);
		if (ok)
			pass->dump(out, compile);
		return ok;
	}
	for (int i = 0; i < N_CODE_STAGES; i++)
		if (strcmp(stage, code_stages[i]) == 0)
			return emit_code(cli, (enum code_stage)i, out);
	diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 }, "--stage %s: no such stage", stage);
	diag_help(&cli->cx.diags, "the stages are tile, solution, schedule, warp, cuda, ptx and cubin");
	return false;
}

static void print_json(struct cli *cli, const char *stage, const struct buf *text)
{
	struct json json;

	cli_json_begin(cli, &json);
	json_kstring(&json, "stage", stage);
	json_kint(&json, "bytes", (int64_t)text->n);
	if (strcmp(stage, "cubin") != 0)
		json_kstring(&json, "text", buf_cstr(text));
	cli_json_end(cli, &json);
}

int cmd_emit(struct cli *cli)
{
	const char *stage = cli->options.stage ? cli->options.stage : "cuda";
	struct buf text = { 0 };

	if (emit(cli, stage, &text)) {
		bool written = !cli->options.output || cli_write(cli, cli->options.output, &text);
		if (cli->options.json)
			print_json(cli, stage, &text);
		else if (!cli->options.output && written)
			cli_write(cli, NULL, &text);
	}
	buf_free(&text);
	return cli_finish(cli, false);
}
