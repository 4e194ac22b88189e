/* `tilelayout report BASELINE CURRENT`: which stored runs are meant, and what became of each
 * kernel. */
#include "cli/report.h"

#include "db/db.h"

#include <assert.h>
#include <string.h>

static const struct span NOWHERE = { 0 };

/* The runs that one argument means. */
struct side {
	const char *text;
	vec_of(const struct run_record *) runs;
};

/* Plain suffix test. */
static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/*
 * PATH or PATH:RUN, where PATH has a slash or ends in .db; else a run of the database of --db.
 * `name` is NULL when only a path is given.
 */
static void split_argument(const struct cli *cli, const char *text, const char **path,
                           const char **name)
{
	const char *slash = strrchr(text, '/');
	const char *colon = strchr(slash ? slash : text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	const char *head = arena_strndup(cli->arena, text, n);

	if (slash || ends_with(head, ".db")) {
		*path = head;
		*name = colon && colon[1] ? colon + 1 : NULL;
		return;
	}
	*path = cli_db_path(cli);
	*name = text;
}

/* Appends the runs with these numbers. */
static bool load_runs(struct db *db, const struct db_ids *ids, struct arena *arena,
                      struct side *side)
{
	for (uint32_t i = 0; i < ids->items.n; i++) {
		const struct run_record *run = db_load(db, ids->items.p[i]);

		if (!run)
			return false;
		vec_push(arena, &side->runs, run);
	}
	return true;
}

/* The runs of one argument; false with a diagnostic. */
static bool load_side(struct cli *cli, const char *text, struct side *side)
{
	struct db_ids ids = { 0 };
	const char *path, *name;
	struct db *db;
	int64_t id = 0;
	bool ok;

	*side = (struct side){ .text = text };
	split_argument(cli, text, &path, &name);
	if (!path) {
		diag_report(&cli->cx.diags, DIAG_E0906, NOWHERE,
		            "'%s' is a run of a database, and --no-db forbids one", text);
		return false;
	}
	db = db_open(&cli->cx, path, DB_READ, 0);
	if (!db)
		return false;
	if (!name) {
		ok = db_list_latest(db, &ids);
	} else {
		ok = db_find(db, name, &id);
		if (ok)
			vec_push(cli->arena, &ids.items, id);
	}
	ok = ok && load_runs(db, &ids, cli->arena, side);
	db_close(db);
	return ok;
}

/* ---- pairs ---- */

/* The key by which two databases are compared. */
static bool same_kernel(const struct run_record *a, const struct run_record *b)
{
	return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->factory, b->factory) == 0 &&
	       strcmp(a->target, b->target) == 0 && strcmp(a->params, b->params) == 0;
}

/* E0921 with one note a difference. */
static void report_incomparable(struct cli *cli, const struct side sides[2],
                                const struct text_list *reasons)
{
	diag_report(&cli->cx.diags, DIAG_E0921, NOWHERE, "'%s' and '%s' cannot be compared",
	            sides[0].text, sides[1].text);
	for (uint32_t i = 0; i < reasons->items.n; i++)
		diag_note(&cli->cx.diags, NOWHERE, "%s", reasons->items.p[i]);
	diag_help(&cli->cx.diags,
	          "latest:KERNEL is the newest run of a kernel; give both runs the same --set values");
}

/* Compares a pair and counts it. */
static void add_comparison(struct cli *cli, struct report *report, const struct run_record *before,
                           const struct run_record *after)
{
	struct run_comparison *comparison = compare_runs(cli->arena, before, after);

	vec_push(cli->arena, &report->kernels, comparison);
	report->n_failed += comparison_failed(comparison);
}

/* Two runs that were named: whatever keeps them apart is an error. */
static bool pair_single(struct cli *cli, const struct side sides[2], struct report *report)
{
	struct text_list reasons;

	assert(sides[0].runs.n == 1 && sides[1].runs.n == 1);
	if (!runs_comparable(cli->arena, sides[0].runs.p[0], sides[1].runs.p[0], &reasons)) {
		report_incomparable(cli, sides, &reasons);
		return false;
	}
	add_comparison(cli, report, sides[0].runs.p[0], sides[1].runs.p[0]);
	return true;
}

/* Every kernel of a database: those without a partner are listed. */
static bool pair_all(struct cli *cli, const struct side sides[2], struct report *report)
{
	bool *used = arena_array(cli->arena, bool, sides[1].runs.n);
	struct text_list reasons = { 0 };

	for (uint32_t i = 0; i < sides[0].runs.n; i++) {
		const struct run_record *before = sides[0].runs.p[i];
		uint32_t j = 0;

		while (j < sides[1].runs.n && !same_kernel(before, sides[1].runs.p[j]))
			j++;
		if (j < sides[1].runs.n &&
		    runs_comparable(cli->arena, before, sides[1].runs.p[j], &reasons)) {
			used[j] = true;
			add_comparison(cli, report, before, sides[1].runs.p[j]);
		} else {
			vec_push(cli->arena, &report->only_before, before);
		}
	}
	for (uint32_t j = 0; j < sides[1].runs.n; j++)
		if (!used[j])
			vec_push(cli->arena, &report->only_after, sides[1].runs.p[j]);
	if (report->kernels.n > 0)
		return true;
	vec_push(cli->arena, &reasons.items, "no kernel with equal parameters and target is in both");
	report_incomparable(cli, sides, &reasons);
	return false;
}

/* Both sides, paired; false when nothing could be compared. */
static bool make_report(struct cli *cli, struct report *report)
{
	struct side sides[2];

	assert(cli->files.n == 2);
	*report = (struct report){ 0 };
	if (cli->options.json && cli->options.markdown) {
		diag_report(&cli->cx.diags, DIAG_E0906, NOWHERE,
		            "--json and --markdown exclude each other");
		return false;
	}
	if (!load_side(cli, cli->files.p[0], &sides[0]) || !load_side(cli, cli->files.p[1], &sides[1]))
		return false;
	if (sides[0].runs.n == 1 && sides[1].runs.n == 1)
		return pair_single(cli, sides, report);
	return pair_all(cli, sides, report);
}

int cmd_report(struct cli *cli)
{
	struct report report;
	struct json json;

	if (!make_report(cli, &report))
		return cli_finish(cli, false);
	if (cli->options.json) {
		cli_json_begin(cli, &json);
		report_json(&json, &report);
		cli_json_end(cli, &json);
	} else if (cli->options.markdown) {
		report_markdown(cli, &report);
	} else {
		report_text(cli, &report);
	}
	return cli_finish(cli, report.n_failed > 0);
}
