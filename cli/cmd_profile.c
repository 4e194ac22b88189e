/*
 * `tilelayout profile FILE`: predictions beside measurements. Each collection is this program once
 * more with
 * `--collect NAME`, whose rows are read through a pipe: a crash, a hang or a refusal of one costs
 * that one only.
 */
#include "cli/profile.h"

#include "db/db.h"
#include "profiler/child.h"
#include "profiler/collect.h"

#include <assert.h>
#include <string.h>

enum { COLLECT_LIMIT_MS = 180000 };

static const struct span NOWHERE = { 0 };

/* ---- in the measuring process ---- */

/* What one collection runs on. */
struct measuring {
	struct gpu_session session;
	struct tensor_set tensors;
	struct collection rows;
};

/* Generated inputs on the card, one collection. The session stays open. */
static void measure_here(struct cli *cli, struct compile *compile, enum collect_kind kind,
                         struct measuring *measuring)
{
	struct cx *cx = &compile->cx;
	struct warp_program **programs =
		arena_array(cx->arena, struct warp_program *, compile->launches.n);
	int64_t *values = arena_array(cx->arena, int64_t, expr_n_vars(compile->pool) + 1u);
	struct tensor_uses uses = { 0 };
	struct collect_job job = {
		.kind = kind,
		.session = { .programs = programs,
		             .n_programs = compile->launches.n,
		             .arch_specific = compile->options.target->has_wgmma,
		             .cuda_path = cli->options.cuda_path,
		             .device = cli->options.device },
		.tensors = &measuring->tensors,
		.program = compile->program,
	};

	for (uint32_t i = 0; i < compile->launches.n; i++)
		programs[i] = compile->launches.p[i]->warp;
	tensor_uses_of_tile(compile->program, &uses);
	if (!tensors_open(cx, &uses, values, &measuring->tensors)) {
		collection_fail(&measuring->rows, cx);
		return;
	}
	tensors_fill(&measuring->tensors, cli->options.has_seed ? (uint64_t)cli->options.seed : 1);
	collect(&measuring->session, cx, &job, &measuring->rows);
}

/* `--collect NAME`: the rows, complete also when everything failed, are out before anything ends.
 */
static int collect_here(struct cli *cli, struct compile *compile)
{
	struct measuring *measuring = arena_new(cli->arena, struct measuring);
	enum collect_kind kind;
	int code;

	if (!collect_kind_parse(cli->options.collect, &kind)) {
		diag_report(&cli->cx.diags, DIAG_E0904, NOWHERE,
		            "--collect %s: it is sass, counters or time", cli->options.collect);
		return cli_finish(cli, false);
	}
	measure_here(cli, compile, kind, measuring);
	collection_print(&cli->out, &measuring->rows);
	code = cli_finish(cli, false);
	gpu_session_close(&measuring->session);
	tensors_close(&measuring->tensors);
	return code;
}

/* ---- in the process that the user started ---- */

/* This process's arguments with `--collect KIND` behind them; NULL when they cannot be read. */
static char **child_arguments(struct cli *cli, enum collect_kind kind)
{
	vec_of(char *) arguments = { 0 };
	struct buf line = { 0 };

	if (!buf_read_file(&line, "/proc/self/cmdline", 0)) {
		buf_free(&line);
		return NULL;
	}
	for (size_t at = 0; at < line.n;) {
		size_t n = strnlen(line.p + at, line.n - at);

		vec_push(cli->arena, &arguments, arena_strndup(cli->arena, line.p + at, n));
		at += n + 1;
	}
	buf_free(&line);
	vec_push(cli->arena, &arguments, arena_strndup(cli->arena, "--collect", 9));
	vec_push(cli->arena, &arguments,
	         arena_strndup(cli->arena, collect_kind_text(kind), strlen(collect_kind_text(kind))));
	vec_push(cli->arena, &arguments, NULL);
	return arguments.p;
}

/* A failure of the process itself, E0745. */
static void add_failure(struct cli *cli, struct collection *all, enum collect_kind kind,
                        const char *what)
{
	const char *name = collect_kind_text(kind);
	struct failure_row row = { .code = DIAG_E0745,
		                       .during = name,
		                       .message = arena_printf(
								   cli->arena, "the process that measures %s %s", name, what) };

	vec_push(cli->arena, &all->failures, row);
}

/* Runs one collection and adds what it found. */
static void collect_in_child(struct cli *cli, struct compile *compile, enum collect_kind kind,
                             struct collection *all)
{
	bool from_stdin = strcmp(cli->files.p[0], "-") == 0;
	struct str input = from_stdin ? source_get(&compile->cx.sources, compile->file)->text
	                              : (struct str){ NULL, 0 };
	char **arguments = child_arguments(cli, kind);
	struct collection found = { 0 };
	struct child_result result;
	const char *outcome;

	if (!arguments) {
		add_failure(cli, all, kind, "has no command line: /proc/self/cmdline cannot be read");
		return;
	}
	result = child_run("/proc/self/exe", arguments, input, COLLECT_LIMIT_MS);
	collection_read(cli->arena, buf_str(&result.out), &found);
	outcome = child_outcome(cli->arena, &result);
	for (uint32_t i = 0; i < found.failures.n; i++)
		found.failures.p[i].during = collect_kind_text(kind);
	collection_add(cli->arena, all, &found);
	if (!found.complete)
		add_failure(cli, all, kind, outcome ? outcome : "printed what could not be read");
	buf_free(&result.out);
}

/* Is the failure one that every collection would meet: no driver, card or compiler? */
static bool is_general(enum diag_code code)
{
	const char *text = diag_code_text(code);

	return strncmp(text, "E070", 4) == 0 || strncmp(text, "E071", 4) == 0 ||
	       strncmp(text, "E072", 4) == 0 || strncmp(text, "E0650", 5) == 0;
}

/* One collection after the other; none is started any more when there is no driver, card or
 * compiler. */
static void collect_all(struct cli *cli, struct compile *compile, struct collection *all)
{
	for (int kind = 0; kind < N_COLLECT_KINDS; kind++) {
		collect_in_child(cli, compile, (enum collect_kind)kind, all);
		for (uint32_t i = 0; i < all->failures.n; i++)
			if (is_general(all->failures.p[i].code))
				return;
	}
}

/* Is the same cause among the failures before this one? Its details are then not repeated. */
static bool is_repeated(const struct collection *all, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (all->failures.p[i].code == all->failures.p[index].code)
			return true;
	return false;
}

/* A collection that failed is a warning as long as another gave something. */
static void report_failures(struct cli *cli, const struct collection *all)
{
	bool partial = all->sass.n + all->counters.n > 0;
	struct cx *cx = cli_cx(cli);

	for (uint32_t i = 0; i < all->failures.n; i++) {
		const struct failure_row *row = &all->failures.p[i];

		if (partial)
			diag_report(&cx->diags, DIAG_W0740, NOWHERE, "%s not measured (%s): %s", row->during,
			            diag_code_text(row->code), row->message);
		else
			diag_report(&cx->diags, row->code, NOWHERE, "%s", row->message);
		for (uint32_t j = 0; !is_repeated(all, i) && j < row->details.n; j++) {
			if (row->details.p[j].is_help)
				diag_help(&cx->diags, "%s", row->details.p[j].text);
			else
				diag_note(&cx->diags, NOWHERE, "%s", row->details.p[j].text);
		}
	}
}

/* The table of limits for the card that was measured; the chosen target's when no row fits. */
static const struct target *card_target(const struct compile *compile, const struct collection *all)
{
	for (const struct target *target = target_all(); target->name; target++)
		if (target->compute == all->compute)
			return target;
	return all->compute ? NULL : compile->options.target;
}

/* What --parity describes is other people's code. */
static bool has_code(struct compile *compile)
{
	if (!compile->options.parity)
		return true;
	diag_report(&compile->cx.diags, DIAG_E0906, NOWHERE,
	            "profile runs tilelayout's own code, and --parity asks for that of TileLang");
	return false;
}

/* Symbols have no size in this version of profile. */
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

int cmd_profile(struct cli *cli)
{
	struct collection *all = arena_new(cli->arena, struct collection);
	struct compile *compile;
	struct run_record *run;
	struct profile *profile;
	struct json json;

	if (!cli_compile(cli, NULL, &compile) || !has_code(compile) || !sizes_are_known(compile))
		return cli_finish(cli, false);
	if (cli->options.collect)
		return collect_here(cli, compile);
	run = record_of_compile(compile, "profile", cli_version());
	collect_all(cli, compile, all);
	report_failures(cli, all);
	profile = profile_make(cli->arena, run, all, card_target(compile, all));
	if (all->sass.n + all->counters.n > 0 && cli_db_path(cli)) {
		profile_record(cli->arena, profile, run);
		db_save(cli_cx(cli), cli_db_path(cli), run);
	}
	if (cli->options.json) {
		cli_json_begin(cli, &json);
		profile_json(&json, profile);
		cli_json_end(cli, &json);
	} else {
		profile_text(cli, profile);
	}
	return cli_finish(cli, false);
}
