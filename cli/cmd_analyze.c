/*
 * analyze: everything that can be said about a kernel without running it.
 *
 * Three forms of the answer: text, the JSON document, or with --dump the records between the
 * passes. The order is compile, store, draw, print, so that a failure to store or draw is part of
 * what is printed.
 */
#include "cli/analyze.h"
#include "cli/options.h"

#include "analyzer/describe/describe.h"
#include "db/db.h"
#include "viz/pages.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* The pass of that name; NULL with E0908 and the nearest one. */
static const struct pass *find_pass(struct cli *cli, const char *name, const char *option)
{
	struct nearest nearest = { name, NULL, 0 };

	for (const struct pass *pass = compile_passes(); pass->name; pass++) {
		if (strcmp(pass->name, name) == 0)
			return pass;
		nearest_offer(&nearest, pass->name);
	}
	diag_report(&cli->cx.diags, DIAG_E0908, (struct span){ 0 }, "%s: no pass '%s'", option, name);
	diag_help(&cli->cx.diags,
	          nearest.name ? "did you mean %s?" : "tilelayout analyze --list-passes lists them",
	          nearest.name);
	return NULL;
}

/* The table of passes with what each does. */
static void list_passes(struct cli *cli)
{
	struct json json;

	if (!cli->options.json) {
		for (const struct pass *pass = compile_passes(); pass->name; pass++)
			buf_printf(&cli->out, "%-12s %s\n", pass->name, pass->doc);
		return;
	}
	cli_json_begin(cli, &json);
	json_key(&json, "passes");
	json_array(&json);
	for (const struct pass *pass = compile_passes(); pass->name; pass++) {
		json_object(&json);
		json_kstring(&json, "name", pass->name);
		json_kstring(&json, "doc", pass->doc);
		json_end(&json);
	}
	json_end(&json);
	cli_json_end(cli, &json);
}

/* ---- dumps ---- */

enum { MAX_DUMPS = 64 };

struct dump_list {
	const struct pass *passes[MAX_DUMPS];
	uint32_t n;
};

/* "tile,warp" or "all"; false with E0908. */
static bool parse_dumps(struct cli *cli, const char *text, struct dump_list *dumps)
{
	if (strcmp(text, "all") == 0) {
		for (const struct pass *pass = compile_passes(); pass->name; pass++)
			dumps->passes[dumps->n++] = pass;
		return true;
	}
	while (*text && dumps->n < MAX_DUMPS) {
		size_t n = strcspn(text, ",");
		const struct pass *pass = find_pass(cli, arena_strndup(cli->arena, text, n), "--dump");

		if (!pass)
			return false;
		dumps->passes[dumps->n++] = pass;
		text += n + (text[n] == ',');
	}
	return true;
}

/* One dump is printed bare, so that it can be read back; several have a heading each. */
static void print_dumps(struct cli *cli, const struct compile *compile,
                        const struct dump_list *dumps)
{
	struct json json;

	if (!cli->options.json) {
		for (uint32_t i = 0; i < dumps->n; i++) {
			if (dumps->n > 1)
				buf_printf(&cli->out, "%s# %s\n", i > 0 ? "\n" : "", dumps->passes[i]->name);
			dumps->passes[i]->dump(&cli->out, compile);
		}
		return;
	}
	cli_json_begin(cli, &json);
	json_key(&json, "dumps");
	json_object(&json);
	for (uint32_t i = 0; i < dumps->n; i++) {
		struct buf text = { 0 };

		dumps->passes[i]->dump(&text, compile);
		json_kstring(&json, dumps->passes[i]->name, buf_cstr(&text));
		buf_free(&text);
	}
	json_end(&json);
	cli_json_end(cli, &json);
}

/* ---- the analysis ---- */

/* The folder may exist: files of the same names are replaced, others stay. */
bool analyze_draw(struct cli *cli, const struct compile *compile, const char *folder)
{
	struct diag_list *diags = &cli_cx(cli)->diags;
	struct page_list list = { 0 };
	bool ok = true;

	if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
		diag_report(diags, DIAG_E0790, (struct span){ 0 }, "cannot make the folder %s: %s", folder,
		            strerror(errno));
		return false;
	}
	pages_draw(&list, compile);
	for (uint32_t i = 0; i < list.pages.n && ok; i++)
		ok = cli_write(cli, arena_printf(cli->arena, "%s/%s", folder, list.pages.p[i].name),
		               &list.pages.p[i].text);
	if (list.without_graphviz)
		diag_report(
			diags, DIAG_W0790, (struct span){ 0 },
			"the graph was drawn without Graphviz: install libgraphviz-dev and build again, "
			"or run `dot -c` as root when its plugins are not registered");
	pages_free(&list);
	return ok;
}

/* The contract's document. */
static void print_json(struct cli *cli, const struct compile *compile)
{
	struct json json;

	cli_json_begin(cli, &json);
	describe_json(&json, compile);
	cli_json_end(cli, &json);
}

/* A kernel that went through all passes is stored, unless --no-db. */
static void store(struct cli *cli, const struct compile *compile)
{
	const char *path = cli_db_path(cli);

	if (path)
		db_save(cli_cx(cli), path, record_of_compile(compile, "analyze", cli_version()));
}

/* What was reached is shown in the document even when a pass failed; as text only when all went
 * well. */
static int analyze(struct cli *cli, const char *last_pass)
{
	struct compile *compile;
	bool ok = cli_compile(cli, last_pass, &compile);
	bool violated = describe_totals(compile).n_violated > 0;

	if (ok && cli->options.why) {
		analyze_why(cli, compile, cli->options.why);
		return cli_finish(cli, false);
	}
	if (ok && !last_pass)
		store(cli, compile);
	if (ok && cli->options.out_dir)
		analyze_draw(cli, compile, cli->options.out_dir);
	if (cli->options.json)
		print_json(cli, compile);
	else if (ok)
		analyze_text(cli, compile);
	return cli_finish(cli, violated);
}

/* Passes up to the last that is dumped (or --stop-after); what was reached is dumped even when one
 * failed. */
static int dump(struct cli *cli, const char *last_pass)
{
	struct dump_list dumps = { .n = 0 };
	struct compile *compile;
	const struct pass *last = NULL;

	assert(cli->options.dump);
	if (!parse_dumps(cli, cli->options.dump, &dumps))
		return cli_finish(cli, false);
	for (uint32_t i = 0; i < dumps.n; i++)
		last = !last || dumps.passes[i] > last ? dumps.passes[i] : last;
	cli_compile(cli, last_pass || !last ? last_pass : last->name, &compile);
	print_dumps(cli, compile, &dumps);
	return cli_finish(cli, false);
}

/* Without a file only --list-passes makes sense. */
int cmd_analyze(struct cli *cli)
{
	const char *last_pass = cli->options.stop_after;

	if (cli->options.list_passes) {
		list_passes(cli);
		return cli_finish(cli, false);
	}
	if (cli->files.n == 0) {
		diag_report(&cli->cx.diags, DIAG_E0905, (struct span){ 0 },
		            "analyze: an argument is missing");
		diag_help(&cli->cx.diags, "usage: tilelayout analyze FILE");
		return cli_finish(cli, false);
	}
	if (last_pass && !find_pass(cli, last_pass, "--stop-after"))
		return cli_finish(cli, false);
	cli->compile_options.without_code = !cli->options.dump;
	return cli->options.dump ? dump(cli, last_pass) : analyze(cli, last_pass);
}
