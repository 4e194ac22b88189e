/*
 * run: a kernel on generated inputs, on the CPU simulator or on the GPU, compared with the
 * tile-level reference.
 *
 * A grid too large to simulate in seconds is sampled: the first three blocks' steps tell how many
 * blocks the budget takes, and that many are run, evenly spread from the first to the last; the
 * comparison covers what these blocks write.
 */
#include "cli/cli.h"

#include "cli/table.h"
#include "profiler/gpu_run.h"
#include "sim/compare.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SAMPLE = 4096 };
static const uint64_t sim_budget_steps = 250000000;        /* some ten seconds */
static const uint64_t reference_budget_steps = 3000000000; /* as well */

/* One run from start to end; tensors are freed at the end whatever happened. */
struct run {
	struct cli *cli;
	struct compile *compile;
	struct cx *cx;
	bool on_gpu;
	int64_t *values;          /* of symbols and scalars, by variable id */
	struct tensor_set before; /* inputs and fill patterns */
	struct tensor_set got;    /* what the run leaves */
	const int64_t *blocks;    /* the sample; NULL: all */
	int64_t n_sample;
	int64_t n_blocks, n_blocks_run;
	vec_of(struct sim_result) sims; /* one a launch */
	struct reference reference;
	struct comparisons verdict;
	bool is_checked;
};

/* ---- symbols and scalars ---- */

/* The text behind "NAME=", or NULL. */
static const char *size_text(const struct run *run, const char *name)
{
	size_t n = strlen(name);

	for (uint32_t i = 0; i < run->cli->options.sizes.n; i++) {
		const char *text = run->cli->options.sizes.p[i];
		if (strncmp(text, name, n) == 0 && text[n] == '=')
			return text + n + 1;
	}
	return NULL;
}

/*
 * A value for a symbol or scalar argument: E0661 when there is none, E0904 when it is no number or
 * outside the variable's range.
 */
static bool read_size(struct run *run, const struct var *var)
{
	const char *name = sym_text(run->cx->names, var->name), *text = size_text(run, name);
	char *end = NULL;
	double number;

	if (!text) {
		diag_report(&run->cx->diags, DIAG_E0661, var->span, "%s has no value", name);
		diag_help(&run->cx->diags, "give it one: --size %s=1024", name);
		return false;
	}
	if (dtype_is_float(var->type)) {
		number = strtod(text, &end);
		memcpy(&run->values[var->id], &number, sizeof(number));
	} else {
		run->values[var->id] = strtoll(text, &end, 10);
	}
	if (end != text && *end == '\0' &&
	    (dtype_is_float(var->type) ||
	     (run->values[var->id] >= var->min && run->values[var->id] <= var->max)))
		return true;
	diag_report(&run->cx->diags, DIAG_E0904, (struct span){ 0 },
	            "--size %s=%s: no value that %s can have", name, text, name);
	return false;
}

/* All of them, so that all missing values are named at once. `values` is indexed by variable id. */
static bool read_sizes(struct run *run)
{
	const struct tile_program *program = run->compile->program;
	bool ok = true;

	run->values = arena_array(run->cx->arena, int64_t, expr_n_vars(run->compile->pool) + 1u);
	for (uint32_t i = 0; i < program->scalars.n; i++)
		ok = read_size(run, program->scalars.p[i]) && ok;
	return ok;
}

/* ---- running ---- */

/* Two sets: what the run starts from, which the reference needs too, and what it leaves. */
static bool open_tensors(struct run *run)
{
	struct tensor_uses uses = { 0 };
	uint64_t seed = run->cli->options.has_seed ? (uint64_t)run->cli->options.seed : 1;

	tensor_uses_of_tile(run->compile->program, &uses);
	if (!tensors_open(run->cx, &uses, run->values, &run->before) ||
	    !tensors_open(run->cx, &uses, run->values, &run->got))
		return false;
	tensors_fill(&run->before, seed);
	tensors_copy(&run->got, &run->before);
	return true;
}

/* `n` blocks from the first to the last. */
static const int64_t *spread_blocks(struct run *run, int64_t n)
{
	int64_t *blocks = arena_array(run->cx->arena, int64_t, (size_t)n);

	for (int64_t i = 0; i < n; i++)
		blocks[i] = n == 1 ? 0 : i * (run->n_blocks - 1) / (n - 1);
	return blocks;
}

/*
 * How many blocks a budget takes when three take `n_steps`; 0: all. At least three, the first, the
 * middle and the last.
 */
static int64_t blocks_in_budget(const struct run *run, uint64_t n_steps, uint64_t budget)
{
	uint64_t fits = budget / (n_steps / 3 + 1);

	return fits >= (uint64_t)run->n_blocks ? 0 : fits < 3 ? 3 : (int64_t)fits;
}

/* Takes `n` blocks of the launch, all when that is 0 or too many. */
static void take_blocks(struct run *run, int64_t n)
{
	if (n <= 0 || n >= run->n_blocks)
		return;
	run->n_sample = n > MAX_SAMPLE ? MAX_SAMPLE : n;
	run->blocks = spread_blocks(run, run->n_sample);
}

/*
 * Decides which blocks of the only launch are simulated. An empty run tells how many there are; a
 * trial of three tells what one costs. Several launches depend on each other's results and are run
 * whole.
 */
static bool choose_blocks(struct run *run, struct warp_program *program)
{
	static const int64_t none[1] = { 0 };
	struct sim_options options = { .blocks = none, .n_blocks = 0 };
	struct sim_result trial;
	int64_t n = run->cli->options.has_blocks ? run->cli->options.blocks : 0;

	if (!sim_run(program, &run->got, &options, &trial))
		return false;
	run->n_blocks = trial.n_blocks;
	if (run->n_blocks > 3 && n <= 0) {
		options = (struct sim_options){ spread_blocks(run, 3), 3, sim_budget_steps };
		if (!sim_run(program, &run->got, &options, &trial))
			return false;
		tensors_copy(&run->got, &run->before);
		n = blocks_in_budget(run, trial.n_steps, sim_budget_steps);
	}
	take_blocks(run, n);
	return true;
}

/* Launch after launch on the same tensors; findings of each are reported as they come. */
static bool simulate(struct run *run)
{
	struct sim_options options = { 0 };
	uint32_t n_launches = run->compile->launches.n;

	if (n_launches == 1 && !choose_blocks(run, run->compile->launches.p[0]->warp))
		return false;
	options.blocks = run->blocks;
	options.n_blocks = run->n_sample;
	run->n_blocks = 0;
	for (uint32_t i = 0; i < n_launches; i++) {
		struct sim_result result;
		if (!sim_run(run->compile->launches.p[i]->warp, &run->got, &options, &result))
			return false;
		vec_push(run->cx->arena, &run->sims, result);
		sim_report(run->cx, &result);
		run->n_blocks += result.n_blocks;
		run->n_blocks_run += result.n_blocks_run;
	}
	return true;
}

/* All launches, all blocks: a card is fast enough. */
static bool run_on_gpu(struct run *run)
{
	uint32_t n = run->compile->launches.n;
	struct warp_program **programs = arena_array(run->cx->arena, struct warp_program *, n);
	struct gpu_session_options options = {
		.programs = programs,
		.n_programs = n,
		.arch_specific = run->compile->options.target->has_wgmma,
		.cuda_path = run->cli->options.cuda_path,
		.device = run->cli->options.device,
	};

	for (uint32_t i = 0; i < n; i++)
		programs[i] = run->compile->launches.p[i]->warp;
	return gpu_run(run->cx, &options, &run->got);
}

/* ---- checking ---- */

/* One error an output, about its worst element, or about the first that should not have changed. */
static void report_wrong(struct run *run, const struct comparison *comparison)
{
	const struct tensor *tensor = comparison->tensor;
	struct buf where = { 0 };

	tensor_element_text(&where, run->cx, tensor, comparison->worst);
	if (comparison->n_stray)
		diag_report(&run->cx->diags, DIAG_E0659, tensor->buffer->span,
		            "%" PRId64
		            " elements changed that the kernel does not store, the first %s to %g",
		            comparison->n_stray, buf_cstr(&where), comparison->got);
	else
		diag_report(&run->cx->diags, DIAG_E0659, tensor->buffer->span,
		            "%s is %.9g, the reference has %.9g: a relative error of %.3g, tolerance %.3g",
		            buf_cstr(&where), comparison->got, comparison->want, comparison->max_rel,
		            comparison->tolerance);
	buf_free(&where);
}

/* The GPU ran all blocks of the only launch: decides which of them the reference repeats. */
static bool choose_checked_blocks(struct run *run)
{
	static const int64_t none[1] = { 0 };
	struct reference_options options = { .blocks = none, .n_blocks = 0 };
	struct tile_program *program = run->compile->program;
	int64_t n = run->cli->options.has_blocks ? run->cli->options.blocks : 0;
	bool ok = reference_run(program, &run->before, &options, &run->reference);

	run->n_blocks = run->n_blocks_run = run->reference.n_blocks;
	if (ok && run->n_blocks > 3 && n <= 0) {
		reference_close(&run->reference);
		options.blocks = spread_blocks(run, 3);
		options.n_blocks = 3;
		ok = reference_run(program, &run->before, &options, &run->reference);
		n = blocks_in_budget(run, run->reference.n_steps, reference_budget_steps);
	}
	reference_close(&run->reference);
	take_blocks(run, n);
	return ok;
}

/*
 * The reference repeats the blocks that were run, from the same inputs. Elements may differ by a
 * tolerance that the type gives, or --tolerance.
 */
static bool check(struct run *run)
{
	struct reference_options options = { 0 };
	struct compare_input input = {
		.got = &run->got,
		.before = &run->before,
		.reference = &run->reference,
		.tolerance = run->cli->options.has_tolerance ? run->cli->options.tolerance : -1.0,
	};

	if (run->on_gpu && run->compile->launches.n == 1 && !choose_checked_blocks(run))
		return false;
	options.blocks = run->blocks;
	options.n_blocks = run->n_sample;
	input.is_partial = run->on_gpu && run->blocks;
	if (!reference_run(run->compile->program, &run->before, &options, &run->reference))
		return false;
	compare_run(run->cx->arena, &input, &run->verdict);
	run->is_checked = true;
	for (uint32_t i = 0; i < run->verdict.items.n; i++)
		if (!run->verdict.items.p[i].ok)
			report_wrong(run, &run->verdict.items.p[i]);
	return true;
}

/* Races, accesses out of bounds, uses of values that nothing wrote: of all launches. */
static uint64_t count_findings(const struct run *run)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < run->sims.n; i++)
		n += run->sims.p[i].n_findings;
	return n;
}

/* A run that was not compared is judged by its findings alone. */
static bool is_ok(const struct run *run)
{
	return count_findings(run) == 0 && (!run->is_checked || run->verdict.total.ok);
}

/* ---- output ---- */

/* Numbers of a comparison; null before a check. */
static void json_errors(struct json *json, const struct comparison *comparison, bool is_checked)
{
	static const char *const keys[] = { "max_abs", "max_rel", "tolerance" };
	const double numbers[] = { comparison->max_abs, comparison->max_rel, comparison->tolerance };

	for (int i = 0; i < 3; i++) {
		json_key(json, keys[i]);
		if (is_checked)
			json_double(json, numbers[i]);
		else
			json_null(json);
	}
}

/* "worst" is absent for an output of which nothing was compared. */
static void json_output(struct json *json, const struct run *run,
                        const struct comparison *comparison)
{
	const struct tensor *tensor = comparison->tensor;
	struct buf where = { 0 };
	char type[32];

	json_object(json);
	json_kstring(json, "name", sym_text(run->cx->names, tensor->buffer->name));
	json_kstring(json, "dtype", dtype_name(tensor->buffer->type, type));
	json_errors(json, comparison, true);
	json_kbool(json, "ok", comparison->ok);
	json_kint(json, "compared", comparison->n_compared);
	json_kint(json, "stray", comparison->n_stray);
	if (comparison->worst >= 0) {
		tensor_element_text(&where, run->cx, tensor, comparison->worst);
		json_kstring(json, "worst", buf_cstr(&where));
		json_kdouble(json, "got", comparison->got);
		json_kdouble(json, "want", comparison->want);
	}
	json_end(json);
	buf_free(&where);
}

/* Where, who, in which iteration, and how often it came. */
static void json_finding(struct json *json, const struct run *run,
                         const struct sim_finding *finding)
{
	json_object(json);
	json_kstring(json, "kind", sim_finding_text(finding->kind));
	json_kint(json, "line", source_line(&run->cx->sources, finding->span));
	json_kint(json, "other_line", source_line(&run->cx->sources, finding->other_span));
	json_key(json, "block");
	json_array(json);
	for (int i = 0; i < 3; i++)
		json_int(json, finding->block[i]);
	json_end(json);
	json_kint(json, "thread", finding->thread);
	json_kstring(json, "iteration", finding->iteration);
	json_kstring(json, "text", finding->text);
	json_kint(json, "count", (int64_t)finding->n);
	json_end(json);
}

static void print_json(struct run *run)
{
	struct json json;

	cli_json_begin(run->cli, &json);
	json_kstring(&json, "file", run->cli->files.p[0]);
	json_kstring(&json, "kernel", sym_text(run->cx->names, run->compile->program->name));
	json_kstring(&json, "target", run->compile->options.target->name);
	json_kstring(&json, "runs_on", run->on_gpu ? "gpu" : "sim");
	if (run->n_blocks) {
		json_kint(&json, "blocks", run->n_blocks);
		json_kint(&json, "blocks_run", run->n_blocks_run);
	}
	json_kbool(&json, "checked", run->is_checked);
	if (run->is_checked && run->n_blocks)
		json_kint(&json, "blocks_checked", run->blocks ? run->n_sample : run->n_blocks);
	json_errors(&json, &run->verdict.total, run->is_checked);
	json_kbool(&json, "ok", is_ok(run));
	json_key(&json, "outputs");
	json_array(&json);
	for (uint32_t i = 0; i < run->verdict.items.n; i++)
		json_output(&json, run, &run->verdict.items.p[i]);
	json_end(&json);
	json_key(&json, "findings");
	json_array(&json);
	for (uint32_t i = 0; i < run->sims.n; i++)
		for (uint32_t j = 0; j < run->sims.p[i].findings.n; j++)
			json_finding(&json, run, &run->sims.p[i].findings.p[j]);
	json_end(&json);
	cli_json_end(run->cli, &json);
}

static void print_output(struct run *run, const struct comparison *comparison)
{
	const struct tensor *tensor = comparison->tensor;
	struct buf *out = &run->cli->out;
	char type[32];

	buf_printf(out, "  %-12s %s (", sym_text(run->cx->names, tensor->buffer->name),
	           dtype_name(tensor->buffer->type, type));
	for (uint32_t d = 0; d < tensor->buffer->rank; d++)
		buf_printf(out, "%s%" PRId64, d ? ", " : "", tensor->shape[d]);
	buf_printf(out, ")  largest error %.3g absolute, %.3g relative, tolerance %.3g: ",
	           comparison->max_abs, comparison->max_rel, comparison->tolerance);
	style_text(out, comparison->ok ? STYLE_GOOD : STYLE_BAD, run->cli->colour_out,
	           comparison->ok ? "ok" : "wrong");
	buf_char(out, '\n');
}

static void print_text(struct run *run)
{
	struct buf *out = &run->cli->out;
	uint64_t n_findings = count_findings(run);

	style_text(out, STYLE_BOLD, run->cli->colour_out,
	           sym_text(run->cx->names, run->compile->program->name));
	if (run->on_gpu && run->blocks)
		buf_printf(out,
		           "  on the GPU, compared for a sample of %" PRId64 " of %" PRId64 " blocks\n",
		           run->n_sample, run->n_blocks);
	else if (run->on_gpu)
		buf_text(out, "  on the GPU\n");
	else if (run->n_blocks_run == run->n_blocks)
		buf_printf(out, "  simulated, %" PRId64 " block%s\n", run->n_blocks,
		           run->n_blocks == 1 ? "" : "s");
	else
		buf_printf(out, "  simulated, a sample of %" PRId64 " of %" PRId64 " blocks\n",
		           run->n_blocks_run, run->n_blocks);
	if (n_findings)
		buf_printf(out, "  %" PRIu64 " finding%s\n", n_findings, n_findings == 1 ? "" : "s");
	else if (!run->on_gpu)
		buf_text(out, "  no race, no access out of bounds, no value that nothing wrote\n");
	for (uint32_t i = 0; i < run->verdict.items.n; i++)
		print_output(run, &run->verdict.items.p[i]);
	if (!run->is_checked)
		buf_text(out, "  not compared (--check)\n");
}

/* ---- the verb ---- */

/* Stops at the first step that fails; its diagnostics say why. */
static bool run_kernel(struct run *run)
{
	return read_sizes(run) && open_tensors(run) &&
	       (run->on_gpu ? run_on_gpu(run) : simulate(run)) &&
	       (!run->cli->options.check || check(run));
}

/* Findings are errors in the list but not the input's fault: they alone give exit code 1. */
static int finish(struct run *run, bool done)
{
	bool only_findings = done && !is_ok(run);
	int code = cli_finish(run->cli, only_findings);

	return only_findings && code == CODE_INPUT ? CODE_FINDINGS : code;
}

int cmd_run(struct cli *cli)
{
	struct run *run = arena_new(cli->arena, struct run);
	bool done = false;

	run->cli = cli;
	run->on_gpu = cli->options.gpu;
	if (cli->options.gpu && cli->options.sim)
		diag_report(&cli->cx.diags, DIAG_E0906, (struct span){ 0 },
		            "--sim and --gpu exclude each other");
	else if (cli_compile(cli, "warp", &run->compile)) {
		run->cx = &run->compile->cx;
		done = run_kernel(run);
		if (done && cli->options.json)
			print_json(run);
		else if (done)
			print_text(run);
		tensors_close(&run->before);
		tensors_close(&run->got);
		reference_close(&run->reference);
	}
	return finish(run, done);
}
