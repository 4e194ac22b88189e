/* A comparison of runs as text, Markdown and JSON. */
#include "cli/report.h"
#include "cli/table.h"

#include <assert.h>
#include <string.h>

/* ---- words ---- */

/* "3" or, where it changed, "3 -> 5". */
static const char *change_text(struct arena *arena, const struct site_change *change,
                               int64_t before, int64_t after)
{
	const char *old = count_text(arena, change->before ? before : after);
	const char *new = count_text(arena, change->after ? after : before);

	return strcmp(old, new) == 0 ? new : arena_printf(arena, "%s -> %s", old, new);
}

/* A field of both sides; 0 for a missing one. */
#define BOTH(change, field) \
	(int64_t)((change)->before ? (change)->before->field : 0), \
		(int64_t)((change)->after ? (change)->after->field : 0)

/* The side whose names are printed. */
static const struct record_site *shown(const struct site_change *change)
{
	return change->after ? change->after : change->before;
}

/* The instruction, or what became of it. */
static const char *instruction_text(struct arena *arena, const struct site_change *change)
{
	const char *new = shown(change)->instruction;

	if (!change->before || strcmp(change->before->instruction, new) == 0)
		return new;
	return arena_printf(arena, "%s -> %s", change->before->instruction, new);
}

/* With its sign. */
static const char *growth_text(struct arena *arena, int64_t growth)
{
	if (growth == 0)
		return "0";
	return arena_printf(arena, "%c%s", growth > 0 ? '+' : '-',
	                    count_text(arena, growth > 0 ? growth : -growth));
}

/* What the sums are of, when it is not the grid. */
static const char *counted_text(const struct run_comparison *kernel)
{
	for (uint32_t i = 0; i < kernel->after->launches.n; i++)
		if (!kernel->after->launches.p[i].counted_grid)
			return " of one block";
	return "";
}

/* The line that stands first: what grew, where it grew most. */
static const char *verdict_text(struct arena *arena, const struct report *report)
{
	const struct run_comparison *worst = NULL;
	int64_t before = 0, after = 0;
	uint32_t n_sites = 0;

	for (uint32_t i = 0; i < report->kernels.n; i++) {
		const struct run_comparison *kernel = report->kernels.p[i];

		before += kernel->excess_before;
		after += kernel->excess_after;
		n_sites += kernel->sites.n;
		if (comparison_failed(kernel) &&
		    (!worst || kernel->sites.p[0].growth > worst->sites.p[0].growth))
			worst = kernel;
	}
	if (worst) {
		const struct site_change *site = &worst->sites.p[0];
		const char *where =
			report->kernels.n == 1
				? arena_printf(arena, "%u of %u sites", worst->n_of[SITE_REGRESSED], worst->sites.n)
				: arena_printf(arena, "%u of %u kernels", report->n_failed, report->kernels.n);

		return arena_printf(
			arena, "FAIL excess grew at %s: %s line %u %s %s, %s ways, %s wavefronts%s", where,
			record_name(arena, worst->after), site->after->line, site->after->buffer,
			instruction_text(arena, site), change_text(arena, site, BOTH(site, ways)),
			growth_text(arena, site->growth), counted_text(worst));
	}
	if (after < before)
		return arena_printf(arena,
		                    "PASS excess fell from %s to %s wavefronts and grew nowhere (%u sites)",
		                    count_text(arena, before), count_text(arena, after), n_sites);
	return arena_printf(arena, "PASS excess grew nowhere (%u sites); it is %s wavefronts", n_sites,
	                    count_text(arena, after));
}

/* "6 sites: 1 regressed, 5 same" */
static const char *counts_text(struct arena *arena, const struct run_comparison *kernel)
{
	struct buf text = { 0 };

	buf_printf(&text, "%u sites", kernel->sites.n);
	for (int i = 0; i < N_SITE_STATUSES; i++)
		if (kernel->n_of[i] > 0)
			buf_printf(&text, "%s%u %s", strchr(buf_cstr(&text), ':') ? ", " : ": ",
			           kernel->n_of[i], site_status_text((enum site_status)i));
	return buf_keep(&text, arena);
}

/* One run on one line. */
static const char *run_text(struct arena *arena, const struct run_record *run)
{
	return arena_printf(arena, "run %lld%s%s%s  %s  %s  %s  %s", (long long)run->id,
	                    run->tags ? " (" : "", run->tags ? run->tags : "", run->tags ? ")" : "",
	                    record_name(arena, run), run->target, run->file, run->created_at);
}

/* Why a site has the excess that it has, where that is worth a line. */
static const char *reason_text(struct arena *arena, const struct site_change *change)
{
	const char *reason =
		change->after && change->status == SITE_REGRESSED ? change->after->reason : NULL;

	if (change->note && reason)
		return arena_printf(arena, "%s; %s", change->note, reason);
	return change->note ? change->note : reason;
}

/* ---- text ---- */

/* Colours of the first and last column. */
static enum table_style status_style(enum site_status status)
{
	switch (status) {
	case SITE_REGRESSED:
		return STYLE_BAD;
	case SITE_IMPROVED:
		return STYLE_GOOD;
	case SITE_INCOMPARABLE:
		return STYLE_WARN;
	case SITE_NEW:
	case SITE_REMOVED:
	case SITE_SAME:
	case N_SITE_STATUSES:
		break;
	}
	return STYLE_PLAIN;
}

/* One site; its reason stands below. */
static void add_row(struct table *table, const struct site_change *change)
{
	struct arena *arena = table->arena;
	const char *reason = reason_text(arena, change);
	enum table_style style = status_style(change->status);

	table_add(table, style, site_status_text(change->status));
	table_add(table, STYLE_PLAIN, change_text(arena, change, BOTH(change, line)));
	table_add(table, STYLE_PLAIN, shown(change)->buffer);
	table_add(table, STYLE_PLAIN, instruction_text(arena, change));
	table_add(table, STYLE_PLAIN, change_text(arena, change, BOTH(change, ways)));
	table_add(table, STYLE_PLAIN, change_text(arena, change, BOTH(change, wavefronts)));
	table_add(table, STYLE_PLAIN, change_text(arena, change, BOTH(change, ideal)));
	table_add(table, STYLE_PLAIN, count_text(arena, change->after ? change->after->excess : 0));
	table_add(table, style, growth_text(arena, change->growth));
	if (reason)
		table_note(table, STYLE_DIM, arena_printf(arena, "  %s", reason));
}

/* One comparison: the runs, what differs, the sites, the sums. */
static void text_kernel(struct cli *cli, const struct run_comparison *kernel)
{
	static const char *const headings[] = { "status",     "line",  "buffer", "instruction", "ways",
		                                    "wavefronts", "ideal", "excess", "growth" };
	struct table table;

	buf_printf(&cli->out, "\nbaseline  %s\n", run_text(cli->arena, kernel->before));
	buf_printf(&cli->out, "current   %s\n", run_text(cli->arena, kernel->after));
	if (strcmp(kernel->after->params, "{}") != 0)
		buf_printf(&cli->out, "with      %s\n", kernel->after->params);
	for (uint32_t i = 0; i < kernel->environment.n; i++)
		buf_printf(&cli->out, "differs   %s\n", kernel->environment.p[i]);
	if (kernel->sites.n == 0) {
		buf_text(&cli->out, "no shared-memory accesses in either run\n");
		return;
	}
	table_init(&table, cli->arena, "lrllrrrrr");
	for (size_t i = 0; i < sizeof(headings) / sizeof(*headings); i++)
		table_add(&table, STYLE_DIM, headings[i]);
	for (uint32_t i = 0; i < kernel->sites.n; i++)
		add_row(&table, &kernel->sites.p[i]);
	buf_char(&cli->out, '\n');
	table_print(&cli->out, &table, cli->colour_out);
	buf_printf(&cli->out, "\n%s; excess %s -> %s wavefronts%s\n", counts_text(cli->arena, kernel),
	           count_text(cli->arena, kernel->excess_before),
	           count_text(cli->arena, kernel->excess_after), counted_text(kernel));
}

/* A kernel without a partner. */
static void text_alone(struct cli *cli, const char *where, const struct run_record *run)
{
	buf_printf(&cli->out, "\nonly in the %s: %s  %s\n", where, run_text(cli->arena, run),
	           run->params);
}

void report_text(struct cli *cli, const struct report *report)
{
	style_text(&cli->out, report->n_failed > 0 ? STYLE_BAD : STYLE_GOOD, cli->colour_out,
	           verdict_text(cli->arena, report));
	buf_char(&cli->out, '\n');
	for (uint32_t i = 0; i < report->kernels.n; i++)
		text_kernel(cli, report->kernels.p[i]);
	for (uint32_t i = 0; i < report->only_before.n; i++)
		text_alone(cli, "baseline", report->only_before.p[i]);
	for (uint32_t i = 0; i < report->only_after.n; i++)
		text_alone(cli, "current", report->only_after.p[i]);
}

/* ---- Markdown ---- */

enum { MARKDOWN_LIMIT_BYTES = 60000 };

/* Text of a cell: no character that ends it or starts markup. */
static void cell(struct buf *out, const char *text)
{
	buf_text(out, " ");
	for (; *text; text++) {
		if (strchr("|\\`*_<[]", *text))
			buf_char(out, '\\');
		buf_char(out, *text == '\n' ? ' ' : *text);
	}
	buf_text(out, " |");
}

/* One site as a row of a Markdown table. */
static void markdown_row(struct cli *cli, const struct site_change *change)
{
	struct arena *arena = cli->arena;
	const char *reason = reason_text(arena, change);

	buf_text(&cli->out, "|");
	cell(&cli->out, site_status_text(change->status));
	cell(&cli->out, change_text(arena, change, BOTH(change, line)));
	cell(&cli->out, shown(change)->buffer);
	cell(&cli->out, instruction_text(arena, change));
	cell(&cli->out, change_text(arena, change, BOTH(change, ways)));
	cell(&cli->out, change_text(arena, change, BOTH(change, wavefronts)));
	cell(&cli->out, change_text(arena, change, BOTH(change, ideal)));
	cell(&cli->out, change_text(arena, change, BOTH(change, excess)));
	cell(&cli->out, growth_text(arena, change->growth));
	cell(&cli->out, reason ? reason : "");
	buf_char(&cli->out, '\n');
}

/* One comparison; folded when nothing grew. */
static void markdown_kernel(struct cli *cli, const struct run_comparison *kernel,
                            uint32_t *n_left_out)
{
	bool folded = !comparison_failed(kernel);

	if (cli->out.n > MARKDOWN_LIMIT_BYTES) {
		*n_left_out += kernel->sites.n;
		return;
	}
	buf_printf(&cli->out, "\n%s%s: %s%s\n\n", folded ? "<details><summary>" : "### ",
	           record_name(cli->arena, kernel->after), counts_text(cli->arena, kernel),
	           folded ? "</summary>" : "");
	buf_printf(&cli->out, "- baseline: `%s`\n- current: `%s`\n",
	           run_text(cli->arena, kernel->before), run_text(cli->arena, kernel->after));
	for (uint32_t i = 0; i < kernel->environment.n; i++)
		buf_printf(&cli->out, "- differs: `%s`\n", kernel->environment.p[i]);
	buf_text(&cli->out, "\n| status | line | buffer | instruction | ways | wavefronts | ideal | "
	                    "excess | growth | why |\n"
	                    "|---|--:|---|---|--:|--:|--:|--:|--:|---|\n");
	for (uint32_t i = 0; i < kernel->sites.n; i++) {
		if (cli->out.n > MARKDOWN_LIMIT_BYTES)
			++*n_left_out;
		else
			markdown_row(cli, &kernel->sites.p[i]);
	}
	buf_text(&cli->out, folded ? "\n</details>\n" : "");
}

void report_markdown(struct cli *cli, const struct report *report)
{
	uint32_t n_left_out = 0;

	buf_printf(&cli->out, "**%s**\n", verdict_text(cli->arena, report));
	for (uint32_t i = 0; i < report->kernels.n; i++)
		if (comparison_failed(report->kernels.p[i]))
			markdown_kernel(cli, report->kernels.p[i], &n_left_out);
	for (uint32_t i = 0; i < report->kernels.n; i++)
		if (!comparison_failed(report->kernels.p[i]))
			markdown_kernel(cli, report->kernels.p[i], &n_left_out);
	if (report->only_before.n + report->only_after.n > 0)
		buf_printf(&cli->out, "\n%u kernels only in the baseline, %u only in the current runs.\n",
		           report->only_before.n, report->only_after.n);
	if (n_left_out > 0)
		buf_printf(&cli->out, "\n%u rows left out.\n", n_left_out);
}

/* ---- JSON ---- */

/* A run's identity. */
static void json_run(struct json *json, const char *key, const struct run_record *run)
{
	if (key)
		json_key(json, key);
	json_object(json);
	json_kint(json, "run", run->id);
	json_kstring(json, "kernel", run->kernel);
	json_kstring(json, "factory", run->factory);
	json_kstring(json, "target", run->target);
	json_kstring(json, "params", run->params);
	json_kstring(json, "layouts", run->layouts);
	json_kstring(json, "file", run->file);
	json_kstring(json, "file_hash", run->file_hash);
	json_kstring(json, "tool_version", run->tool_version);
	json_kstring(json, "created_at", run->created_at);
	json_kstring(json, "tags", run->tags);
	json_end(json);
}

/* One side of a site, or null. */
static void json_side(struct json *json, const char *key, const struct record_site *site)
{
	json_key(json, key);
	if (!site) {
		json_null(json);
		return;
	}
	json_object(json);
	json_kint(json, "line", site->line);
	json_kstring(json, "instruction", site->instruction);
	json_kint(json, "bytes_per_thread", site->bytes_per_thread);
	json_kcount(json, "executions", site->executions);
	json_kcount(json, "wavefronts", site->wavefronts);
	json_kcount(json, "ideal", site->ideal);
	json_kcount(json, "excess", site->excess);
	json_kint(json, "ways", site->ways);
	json_kstring(json, "reason", site->reason);
	json_end(json);
}

/* One comparison. */
static void json_kernel(struct json *json, const struct run_comparison *kernel)
{
	json_object(json);
	json_run(json, "baseline", kernel->before);
	json_run(json, "current", kernel->after);
	json_kbool(json, "regressed", comparison_failed(kernel));
	json_kint(json, "excess_before", kernel->excess_before);
	json_kint(json, "excess_after", kernel->excess_after);
	json_key(json, "differs");
	json_array(json);
	for (uint32_t i = 0; i < kernel->environment.n; i++)
		json_string(json, kernel->environment.p[i]);
	json_end(json);
	json_key(json, "sites");
	json_array(json);
	for (uint32_t i = 0; i < kernel->sites.n; i++) {
		const struct site_change *change = &kernel->sites.p[i];

		json_object(json);
		json_kstring(json, "status", site_status_text(change->status));
		json_kstring(json, "buffer", shown(change)->buffer);
		json_kint(json, "launch", shown(change)->launch);
		json_kint(json, "growth", change->growth);
		json_kstring(json, "note", change->note);
		json_side(json, "before", change->before);
		json_side(json, "after", change->after);
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

void report_json(struct json *json, const struct report *report)
{
	json_kstring(json, "verdict", report->n_failed > 0 ? "regressed" : "passed");
	json_kint(json, "n_regressed", report->n_failed);
	json_key(json, "kernels");
	json_array(json);
	for (uint32_t i = 0; i < report->kernels.n; i++)
		json_kernel(json, report->kernels.p[i]);
	json_end(json);
	json_key(json, "only_in_baseline");
	json_array(json);
	for (uint32_t i = 0; i < report->only_before.n; i++)
		json_run(json, NULL, report->only_before.p[i]);
	json_end(json);
	json_key(json, "only_in_current");
	json_array(json);
	for (uint32_t i = 0; i < report->only_after.n; i++)
		json_run(json, NULL, report->only_after.p[i]);
	json_end(json);
}
