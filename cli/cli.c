/*
 * What all verbs share: settings of a compile from the typed options, the compile itself, outputs,
 * and the end: diagnostics, data and the exit code.
 *
 * Nothing is printed while a verb works: it fills cli->out, and cli_finish writes diagnostics to
 * standard error and data to standard output, once. Two contexts collect diagnostics: the command's
 * own (bad options, the data base) and that of the compile.
 */
#include "cli/options.h"

#include "analyzer/describe/describe.h"
#include "analyzer/session.h"
#include "include/tilelayout.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cli_version(void)
{
	return tl_version();
}

/* ---- before a verb: typed options into compile options ---- */

/* False with E0904. */
static bool parse_set(struct cli *cli, const char *option, const char *text,
                      struct frontend_set *set)
{
	if (setting_parse(cli->arena, text, set))
		return true;
	diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 }, "%s %s: not of the form NAME=VALUE",
	            option, text);
	return false;
}

/* All settings, so that all malformed ones are reported at once. */
static bool parse_sets(struct cli *cli)
{
	struct frontend_options *frontend = &cli->compile_options.frontend;
	struct frontend_set set;
	bool ok = true;

	for (uint32_t i = 0; i < cli->options.sets.n; i++) {
		ok &= parse_set(cli, "--set", cli->options.sets.p[i], &set);
		vec_push(cli->arena, &frontend->sets, set);
	}
	for (uint32_t i = 0; i < cli->options.tensors.n; i++) {
		ok &= parse_set(cli, "--tensor", cli->options.tensors.p[i], &set);
		vec_push(cli->arena, &frontend->tensors, set);
	}
	return ok;
}

/* The name must be one of the table; sm_90 stands for sm_90a there. */
static const struct target *find_target(struct cli *cli, const char *option, const char *name)
{
	const struct target *found = target_find(name);
	struct nearest nearest = { name, NULL, 0 };

	if (found)
		return found;
	for (const struct target *target = target_all(); target->name; target++)
		nearest_offer(&nearest, target->name);
	diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 }, "%s %s: no such target", option,
	            name);
	if (nearest.name)
		diag_help(&cli->cx.diags, "did you mean %s?", nearest.name);
	return NULL;
}

static bool prepare_target(struct cli *cli)
{
	struct compile_options *options = &cli->compile_options;
	const char *device = cli->options.host_device;

	options->target =
		find_target(cli, "--target", cli->options.target ? cli->options.target : "sm_80");
	options->frontend.target = options->target;
	if (device)
		options->frontend.device = find_target(cli, "--host-device", device);
	return options->target && (!device || options->frontend.device);
}

/* "int=0,bool=1" */
static bool parse_assumed(struct cli *cli, struct assumed_data *assumed)
{
	const char *at = cli->options.assume_data;

	while (at && *at) {
		bool is_int = strncmp(at, "int=", 4) == 0, is_bool = strncmp(at, "bool=", 5) == 0;
		char *end;
		long long value = strtoll(at + (is_int ? 4 : is_bool ? 5 : 0), &end, 10);

		if ((!is_int && !is_bool) || (*end != '\0' && *end != ',')) {
			diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 },
			            "--assume-data %s: it takes int=VALUE and bool=VALUE",
			            cli->options.assume_data);
			return false;
		}
		assumed->has_int |= is_int;
		assumed->has_bool |= is_bool;
		if (is_int)
			assumed->int_value = value;
		else
			assumed->bool_value = value != 0;
		at = end + (*end == ',');
	}
	return true;
}

/*
 * All options are looked at before the first refusal, so that one run shows all that is wrong with
 * them.
 */
bool cli_prepare(struct cli *cli)
{
	struct compile_options *compile = &cli->compile_options;
	bool ok = parse_sets(cli);

	ok &= prepare_target(cli);
	ok &= parse_assumed(cli, &compile->assumed);
	compile->frontend.kernel = cli->options.kernel;
	compile->frontend.import_root = cli->options.import_root;
	for (uint32_t i = 0; i < cli->options.assumes.n; i++)
		vec_push(cli->arena, &compile->frontend.assumes, cli->options.assumes.p[i]);
	compile->frontend.config = cli->options.has_config ? cli->options.config : -1;
	compile->solve.strict = cli->options.strict;
	compile->solve.why = cli->options.why;
	compile->solve.budget_ms = cli->options.solve_budget_ms;
	compile->parity = cli->options.parity != NULL;
	if (cli->options.parity && strcmp(cli->options.parity, "tilelang") != 0) {
		diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 },
		            "--parity %s: the one choice is tilelang", cli->options.parity);
		ok = false;
	}
	if (cli->options.db_path && cli->options.no_db) {
		diag_report(&cli->cx.diags, DIAG_E0906, (struct span){ 0 },
		            "--db and --no-db exclude each other");
		ok = false;
	}
	return ok;
}

/* ---- services ---- */

/*
 * False when a pass failed; its diagnostics are in the compile's context, which cli_cx gives from
 * here on.
 */
bool cli_compile(struct cli *cli, const char *last_pass, struct compile **out)
{
	assert(cli->files.n > 0);
	cli->compile = compile_open(cli->arena, &cli->compile_options);
	*out = cli->compile;
	return compile_load(cli->compile, cli->files.p[0]) && compile_run(cli->compile, last_pass);
}

/* The compile's context once there is one. */
struct cx *cli_cx(struct cli *cli)
{
	return cli->compile ? &cli->compile->cx : &cli->cx;
}

/* `path` NULL or "-" is standard output. E0790 when the file cannot be written. */
bool cli_write(struct cli *cli, const char *path, const struct buf *text)
{
	if (!path || strcmp(path, "-") == 0) {
		buf_add(&cli->out, buf_cstr(text), text->n);
		return true;
	}
	if (buf_write_file(text, path))
		return true;
	diag_report(&cli_cx(cli)->diags, DIAG_E0790, (struct span){ 0 }, "cannot write %s: %s", path,
	            strerror(errno));
	return false;
}

/*
 * --no-db before --db before TILELAYOUT_DB before a file in this folder; NULL: nothing is stored.
 */
const char *cli_db_path(const struct cli *cli)
{
	const char *path = getenv("TILELAYOUT_DB");

	if (cli->options.no_db)
		return NULL;
	if (cli->options.db_path)
		return cli->options.db_path;
	return path && *path ? path : "tilelayout.db";
}

/* E0907 with the names that there are. */
static void report_no_buffer(struct cx *cx, const struct tile_program *program, const char *name)
{
	struct nearest nearest = { name, NULL, 0 };
	struct buf names = { 0 };

	for (uint32_t i = 0; i < program->buffers.n; i++) {
		const char *text = sym_text(cx->names, program->buffers.p[i]->name);

		nearest_offer(&nearest, text);
		buf_printf(&names, "%s%s", i > 0 ? ", " : "", text);
	}
	diag_report(&cx->diags, DIAG_E0907, (struct span){ 0 }, "no buffer '%s' in %s; it has %s", name,
	            sym_text(cx->names, program->name), buf_cstr(&names));
	if (nearest.name)
		diag_help(&cx->diags, "did you mean %s?", nearest.name);
	buf_free(&names);
}

/* Names are unique but for buffers of different launches: the first is taken. */
const struct buffer *cli_find_buffer(struct cli *cli, const char *name)
{
	const struct tile_program *program = cli->compile->program;
	struct cx *cx = cli_cx(cli);

	assert(program);
	for (uint32_t i = 0; i < program->buffers.n; i++)
		if (strcmp(sym_text(cx->names, program->buffers.p[i]->name), name) == 0)
			return program->buffers.p[i];
	report_no_buffer(cx, program, name);
	return NULL;
}

/* E0903 when --buffer is missing. */
bool cli_require_buffer(struct cli *cli)
{
	if (cli->options.buffer)
		return true;
	diag_report(&cli->cx.diags, DIAG_E0903, (struct span){ 0 }, "%s needs --buffer NAME",
	            cli->verb->name);
	return false;
}

/* Says which of the reasons it is when there is none. */
const struct layout *cli_buffer_layout(struct cli *cli, const struct buffer **buffer)
{
	const struct layout *layout;
	struct cx *cx = cli_cx(cli);

	assert(cli->options.buffer && cli->compile);
	*buffer = cli_find_buffer(cli, cli->options.buffer);
	if (!*buffer)
		return NULL;
	layout = describe_layout(cli->compile, *buffer);
	if (layout)
		return layout;
	if ((*buffer)->scope == SCOPE_GLOBAL)
		diag_report(&cx->diags, DIAG_E0907, (*buffer)->span,
		            "%s has extents or strides that are not known here", cli->options.buffer);
	else if ((*buffer)->scope == SCOPE_LOCAL || (*buffer)->scope == SCOPE_VAR)
		diag_report(&cx->diags, DIAG_E0907, (*buffer)->span,
		            "%s is %s: every thread has its own, there is nothing to lay out",
		            cli->options.buffer, scope_text((*buffer)->scope));
	else
		diag_report(&cx->diags, DIAG_E0907, (*buffer)->span,
		            "%s has no layout: no statement uses it", cli->options.buffer);
	return NULL;
}

/* ---- the end of a verb ---- */

/* Every document names the schema that it follows and the version that wrote it. */
void cli_json_begin(struct cli *cli, struct json *json)
{
	json_init(json, &cli->out);
	json_object(json);
	json_kint(json, "schema", 1);
	json_kstring(json, "version", cli_version());
}

/* Diagnostics come last, as in the text form they go to another stream. */
void cli_json_end(struct cli *cli, struct json *json)
{
	json_key(json, "diagnostics");
	json_array(json);
	describe_json_diagnostics(json, &cli->cx.diags, &cli->cx.sources);
	if (cli->compile)
		describe_json_diagnostics(json, &cli->compile->cx.diags, &cli->compile->cx.sources);
	json_end(json);
	json_end(json);
}

/* The command's own first, then those of the compile: the order in which they arose. */
static void print_diagnostics(const struct cli *cli)
{
	struct buf text = { 0 };

	diag_print(&text, &cli->cx.diags, &cli->cx.sources, cli->colour_err);
	if (cli->compile)
		diag_print(&text, &cli->compile->cx.diags, &cli->compile->cx.sources, cli->colour_err);
	fwrite(buf_cstr(&text), 1, text.n, stderr);
	buf_free(&text);
}

/*
 * An error of the input outweighs one of the surroundings, and either outweighs findings. With
 * --json the document holds the diagnostics, and there is one even when the verb produced none.
 */
int cli_finish(struct cli *cli, bool findings)
{
	struct session_failures failures = { false, false };
	struct json json;

	session_count_failures(&cli->cx, &failures);
	if (cli->compile)
		session_count_failures(&cli->compile->cx, &failures);
	if (cli->options.json && cli->out.n == 0) {
		cli_json_begin(cli, &json);
		cli_json_end(cli, &json);
	} else if (!cli->options.json) {
		print_diagnostics(cli);
	}
	if (fwrite(buf_cstr(&cli->out), 1, cli->out.n, stdout) != cli->out.n || fflush(stdout) != 0) {
		fprintf(stderr, "error[E0790]: cannot write standard output: %s\n", strerror(errno));
		return CODE_ENVIRONMENT;
	}
	if (failures.input)
		return CODE_INPUT;
	if (failures.environment)
		return CODE_ENVIRONMENT;
	return findings ? CODE_FINDINGS : CODE_FINE;
}
