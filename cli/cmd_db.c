/* `tilelayout db list | show RUN | tag RUN NAME | export PATH`: the stored runs. */
#include "cli/cli.h"
#include "cli/table.h"

#include "db/db.h"

#include <assert.h>
#include <string.h>

static const struct span NOWHERE = { 0 };

/* ---- list ---- */

/* One run of `db list`; excess wavefronts stand out when there are any. */
static void list_row(struct table *table, const struct run_record *run)
{
	table_addf(table, STYLE_BOLD, "%lld", (long long)run->id);
	table_add(table, STYLE_PLAIN, run->created_at);
	table_add(table, STYLE_PLAIN, run->verb);
	table_add(table, STYLE_PLAIN, record_name(table->arena, run));
	table_add(table, STYLE_PLAIN, run->target);
	table_addf(table, STYLE_PLAIN, "%u", run->sites.n);
	table_add(table, record_excess(run) > 0 ? STYLE_WARN : STYLE_PLAIN,
	          count_text(table->arena, record_excess(run)));
	table_addf(table, STYLE_PLAIN, "%u", run->measurements.n);
	table_add(table, STYLE_PLAIN, run->file);
	table_add(table, STYLE_PLAIN, run->tags ? run->tags : "");
}

/* The keys of a run without its tables. "excess" is the sum over the sites that are modelled. */
static void json_head(struct json *json, const struct run_record *run)
{
	json_kint(json, "run", run->id);
	json_kstring(json, "created_at", run->created_at);
	json_kstring(json, "tool_version", run->tool_version);
	json_kstring(json, "verb", run->verb);
	json_kstring(json, "file", run->file);
	json_kstring(json, "file_hash", run->file_hash);
	json_kstring(json, "kernel", run->kernel);
	json_kstring(json, "factory", run->factory);
	json_kstring(json, "target", run->target);
	json_kstring(json, "params", run->params);
	json_kstring(json, "layouts", run->layouts);
	json_kstring(json, "device", run->device);
	json_kstring(json, "driver", run->driver);
	json_kstring(json, "nvrtc", run->nvrtc);
	json_kstring(json, "cupti", run->cupti);
	json_kstring(json, "tags", run->tags);
	json_kint(json, "excess", record_excess(run));
}

/* All runs, oldest first. */
static void print_list(struct cli *cli, struct json *json, struct run_record *const *runs,
                       uint32_t n)
{
	static const char *const headings[] = { "run",    "created (UTC)", "verb",   "kernel",
		                                    "target", "sites",         "excess", "measured",
		                                    "file",   "tags" };
	struct table table;

	if (cli->options.json) {
		json_key(json, "runs");
		json_array(json);
		for (uint32_t i = 0; i < n; i++) {
			json_object(json);
			json_head(json, runs[i]);
			json_end(json);
		}
		json_end(json);
		return;
	}
	table_init(&table, cli->arena, "rllllrrrll");
	for (size_t i = 0; i < sizeof(headings) / sizeof(*headings); i++)
		table_add(&table, STYLE_DIM, headings[i]);
	for (uint32_t i = 0; i < n; i++)
		list_row(&table, runs[i]);
	table_print(&cli->out, &table, cli->colour_out);
}

/* `db list` */
static void do_list(struct cli *cli, struct db *db, struct json *json)
{
	struct run_record **runs;
	struct db_ids ids;

	if (!db_list(db, &ids))
		return;
	runs = arena_array(cli->arena, struct run_record *, ids.items.n);
	for (uint32_t i = 0; i < ids.items.n; i++) {
		runs[i] = db_load(db, ids.items.p[i]);
		if (!runs[i])
			return;
	}
	print_list(cli, json, runs, ids.items.n);
}

/* ---- show ---- */

/* The first row of a table. */
static void headings(struct table *table, const char *const *texts)
{
	for (uint32_t i = 0; i < table->n_columns; i++)
		table_add(table, STYLE_DIM, texts[i]);
}

/* The tables of `db show`, each left out when it is empty. Registers have no offset. */
static void show_buffers(struct cli *cli, const struct run_record *run)
{
	static const char *const texts[] = { "buffer", "line",  "scope",    "type",
		                                 "shape",  "bytes", "versions", "offset" };
	struct table table;

	if (run->buffers.n == 0)
		return;
	table_init(&table, cli->arena, "lrlllrrr");
	headings(&table, texts);
	for (uint32_t i = 0; i < run->buffers.n; i++) {
		const struct record_buffer *row = &run->buffers.p[i];

		table_add(&table, STYLE_BOLD, row->name);
		table_addf(&table, STYLE_PLAIN, "%u", row->line);
		table_add(&table, STYLE_PLAIN, row->scope);
		table_add(&table, STYLE_PLAIN, row->dtype);
		table_add(&table, STYLE_PLAIN, row->shape);
		table_add(&table, STYLE_PLAIN, count_text(cli->arena, row->bytes));
		table_addf(&table, STYLE_PLAIN, "%lld", (long long)row->versions);
		table_add(&table, STYLE_PLAIN,
		          row->offset_bytes < 0 ? "" : count_text(cli->arena, row->offset_bytes));
	}
	buf_char(&cli->out, '\n');
	table_print(&cli->out, &table, cli->colour_out);
}

/* A site's reason, where the run has one, stands below it. */
static void show_sites(struct cli *cli, const struct run_record *run)
{
	static const char *const texts[] = { "line",       "buffer", "instruction", "executions",
		                                 "wavefronts", "ideal",  "excess",      "ways" };
	struct table table;

	if (run->sites.n == 0)
		return;
	table_init(&table, cli->arena, "rllrrrrr");
	headings(&table, texts);
	for (uint32_t i = 0; i < run->sites.n; i++) {
		const struct record_site *row = &run->sites.p[i];
		enum table_style style = row->excess > 0 ? STYLE_WARN : STYLE_PLAIN;

		table_addf(&table, STYLE_PLAIN, "%u", row->line);
		table_add(&table, STYLE_PLAIN, row->buffer);
		table_add(&table, STYLE_PLAIN, row->instruction);
		table_add(&table, STYLE_PLAIN, count_text(cli->arena, row->executions));
		table_add(&table, STYLE_PLAIN, count_text(cli->arena, row->wavefronts));
		table_add(&table, STYLE_PLAIN, count_text(cli->arena, row->ideal));
		table_add(&table, style, count_text(cli->arena, row->excess));
		table_addf(&table, style, "%lld", (long long)row->ways);
		if (row->reason)
			table_note(&table, STYLE_DIM, arena_printf(cli->arena, "  %s", row->reason));
	}
	buf_char(&cli->out, '\n');
	table_print(&cli->out, &table, cli->colour_out);
}

/*
 * A measurement of a site names it by line, buffer and instruction; a missing one gives its reason
 * in place of the unit.
 */
static void show_measurements(struct cli *cli, const struct run_record *run)
{
	static const char *const texts[] = { "metric", "at", "value", "unit" };
	struct table table;

	if (run->measurements.n == 0)
		return;
	table_init(&table, cli->arena, "llrl");
	headings(&table, texts);
	for (uint32_t i = 0; i < run->measurements.n; i++) {
		const struct record_measurement *row = &run->measurements.p[i];
		const struct record_site *site =
			row->site < 0 || row->site >= (int64_t)run->sites.n ? NULL : &run->sites.p[row->site];

		table_add(&table, STYLE_PLAIN, row->metric);
		table_add(&table, STYLE_PLAIN,
		          site ? arena_printf(cli->arena, "line %u %s %s", site->line, site->buffer,
		                              site->instruction)
		               : "launch");
		if (row->missing)
			table_add(&table, STYLE_DIM, "-");
		else
			table_addf(&table, STYLE_PLAIN, "%.10g", row->value);
		table_add(&table, STYLE_PLAIN, row->missing ? row->missing : row->unit);
	}
	buf_char(&cli->out, '\n');
	table_print(&cli->out, &table, cli->colour_out);
}

/* `db show` for a terminal. */
static void show_text(struct cli *cli, const struct run_record *run)
{
	buf_printf(&cli->out, "run %lld%s%s  %s %s %s\n", (long long)run->id,
	           run->tags ? "  tagged " : "", run->tags ? run->tags : "",
	           record_name(cli->arena, run), run->target, run->params);
	buf_printf(&cli->out, "%s of %s (%s), layouts %s, by tilelayout %s at %s\n", run->verb,
	           run->file, run->file_hash, run->layouts, run->tool_version, run->created_at);
	if (run->device)
		buf_printf(&cli->out, "on %s, driver %s, NVRTC %s, CUPTI %s\n", run->device,
		           run->driver ? run->driver : "?", run->nvrtc ? run->nvrtc : "?",
		           run->cupti ? run->cupti : "?");
	show_buffers(cli, run);
	show_sites(cli, run);
	show_measurements(cli, run);
}

/* The arrays of `db show --json`, one a table. */
static void show_json_launches(struct json *json, const struct run_record *run)
{
	json_key(json, "launches");
	json_array(json);
	for (uint32_t i = 0; i < run->launches.n; i++) {
		const struct record_launch *row = &run->launches.p[i];

		json_object(json);
		json_kint(json, "threads", row->threads);
		json_kcount(json, "grid_x", row->grid[0]);
		json_kcount(json, "grid_y", row->grid[1]);
		json_kcount(json, "grid_z", row->grid[2]);
		json_kstring(json, "counted", row->counted_grid ? "grid" : "block");
		json_kint(json, "shared_bytes", row->shared_bytes);
		json_end(json);
	}
	json_end(json);
}

/* Sizes that depend on symbols are null. */
static void show_json_buffers(struct json *json, const struct run_record *run)
{
	json_key(json, "buffers");
	json_array(json);
	for (uint32_t i = 0; i < run->buffers.n; i++) {
		const struct record_buffer *row = &run->buffers.p[i];

		json_object(json);
		json_kint(json, "launch", row->launch);
		json_kstring(json, "name", row->name);
		json_kstring(json, "scope", row->scope);
		json_kstring(json, "dtype", row->dtype);
		json_kstring(json, "shape", row->shape);
		json_kint(json, "line", row->line);
		json_kcount(json, "bytes", row->bytes);
		json_kint(json, "versions", row->versions);
		json_kcount(json, "offset_bytes", row->offset_bytes);
		json_kstring(json, "layout", row->layout);
		json_end(json);
	}
	json_end(json);
}

/* Counts of accesses that are not modelled are null. */
static void show_json_sites(struct json *json, const struct run_record *run)
{
	json_key(json, "sites");
	json_array(json);
	for (uint32_t i = 0; i < run->sites.n; i++) {
		const struct record_site *row = &run->sites.p[i];

		json_object(json);
		json_kint(json, "launch", row->launch);
		json_kint(json, "line", row->line);
		json_kstring(json, "buffer", row->buffer);
		json_kstring(json, "instruction", row->instruction);
		json_kint(json, "bytes_per_thread", row->bytes_per_thread);
		json_kcount(json, "executions", row->executions);
		json_kcount(json, "wavefronts", row->wavefronts);
		json_kcount(json, "ideal", row->ideal);
		json_kcount(json, "excess", row->excess);
		json_kint(json, "ways", row->ways);
		json_kstring(json, "reason", row->reason);
		json_end(json);
	}
	json_end(json);
}

/* A missing value is null, with "missing" saying why. */
static void show_json_measurements(struct json *json, const struct run_record *run)
{
	json_key(json, "measurements");
	json_array(json);
	for (uint32_t i = 0; i < run->measurements.n; i++) {
		const struct record_measurement *row = &run->measurements.p[i];

		json_object(json);
		json_kint(json, "launch", row->launch);
		json_kcount(json, "site", row->site);
		json_kstring(json, "metric", row->metric);
		json_kstring(json, "unit", row->unit);
		json_key(json, "value");
		if (row->missing)
			json_null(json);
		else
			json_double(json, row->value);
		json_kstring(json, "missing", row->missing);
		json_end(json);
	}
	json_end(json);
}

/* `db show RUN` */
static void do_show(struct cli *cli, struct db *db, struct json *json)
{
	const struct run_record *run;
	int64_t id;

	if (!db_find(db, cli->files.p[1], &id))
		return;
	run = db_load(db, id);
	if (!run)
		return;
	if (!cli->options.json) {
		show_text(cli, run);
		return;
	}
	json_head(json, run);
	show_json_launches(json, run);
	show_json_buffers(json, run);
	show_json_sites(json, run);
	show_json_measurements(json, run);
}

/* ---- tag, export ---- */

/* `db tag RUN NAME` */
static void do_tag(struct cli *cli, struct db *db, struct json *json)
{
	const char *name = cli->files.p[2];
	int64_t id;

	if (!db_find(db, cli->files.p[1], &id) || !db_tag(db, id, name))
		return;
	if (cli->options.json) {
		json_kint(json, "run", id);
		json_kstring(json, "tag", name);
	} else {
		buf_printf(&cli->out, "run %lld is %s\n", (long long)id, name);
	}
}

/* `db export PATH` */
static void do_export(struct cli *cli, struct db *db, struct json *json)
{
	const char *path = cli->files.p[1];

	if (!db_export(db, path))
		return;
	if (cli->options.json)
		json_kstring(json, "path", path);
	else
		buf_printf(&cli->out, "wrote %s\n", path);
}

/* ---- the verb ---- */

/* A row a command: how many arguments it takes, and whether it writes. */
static const struct db_command {
	const char *name;
	uint32_t n_arguments;
	enum db_mode mode;
	void (*run)(struct cli *cli, struct db *db, struct json *json);
	const char *usage;
} commands[] = {
	{ "list", 0, DB_READ, do_list, "tilelayout db list" },
	{ "show", 1, DB_READ, do_show, "tilelayout db show RUN" },
	{ "tag", 2, DB_WRITE, do_tag, "tilelayout db tag RUN NAME" },
	{ "export", 1, DB_READ, do_export, "tilelayout db export PATH" },
};

/* The command that the arguments name; NULL with a diagnostic. */
static const struct db_command *find_command(struct cli *cli)
{
	const char *name = cli->files.n > 0 ? cli->files.p[0] : "list";

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		const struct db_command *command = &commands[i];

		if (strcmp(command->name, name) != 0)
			continue;
		if ((cli->files.n > 0 ? cli->files.n - 1 : 0) == command->n_arguments)
			return command;
		diag_report(&cli->cx.diags, DIAG_E0905, NOWHERE, "db %s takes %u arguments", name,
		            command->n_arguments);
		diag_help(&cli->cx.diags, "%s", command->usage);
		return NULL;
	}
	diag_report(&cli->cx.diags, DIAG_E0924, NOWHERE, "no command '%s' of db", name);
	diag_help(&cli->cx.diags, "list, show RUN, tag RUN NAME, export PATH");
	return NULL;
}

/* Only `analyze` and its like make a database: a mistyped path is not to leave an empty one behind.
 */
static struct db *open_existing(struct cli *cli, enum db_mode mode)
{
	const char *path = cli_db_path(cli);
	struct db *db;

	if (!path) {
		diag_report(&cli->cx.diags, DIAG_E0906, NOWHERE,
		            "db works on a database, and --no-db forbids one");
		return NULL;
	}
	db = db_open(&cli->cx, path, DB_READ, 0);
	if (!db || mode == DB_READ)
		return db;
	db_close(db);
	return db_open(&cli->cx, path, mode, 0);
}

/*
 * The JSON document is begun before the command runs and ended after it, so that it is one even
 * when the command fails.
 */
int cmd_db(struct cli *cli)
{
	const struct db_command *command = find_command(cli);
	struct db *db = command ? open_existing(cli, command->mode) : NULL;
	struct json json;

	if (!db)
		return cli_finish(cli, false);
	if (cli->options.json)
		cli_json_begin(cli, &json);
	command->run(cli, db, &json);
	if (cli->options.json)
		cli_json_end(cli, &json);
	db_close(db);
	return cli_finish(cli, false);
}
