/* layout: where each element of a buffer lives, as CSV or JSON. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* Lines of decimal numbers separated by commas, as layout_print_csv writes them. */
static void json_rows(struct json *json, const char *csv)
{
	while (*csv) {
		json_array(json);
		while (*csv && *csv != '\n') {
			json_int(json, strtoll(csv, (char **)(uintptr_t)&csv, 10));
			csv += *csv == ',';
		}
		json_end(json);
		csv += *csv == '\n';
	}
}

/* The CSV as a document: its header as "columns", its rows as arrays of numbers. */
static void print_json(struct cli *cli, const struct buffer *buffer, const struct layout *layout,
                       const struct buf *csv)
{
	const char *at = buf_cstr(csv);
	struct buf text = { 0 };
	struct json json;

	cli_json_begin(cli, &json);
	json_kstring(&json, "buffer", sym_text(cli_cx(cli)->names, buffer->name));
	json_kstring(&json, "scope", scope_text(buffer->scope));
	layout_print(&text, layout);
	json_kstring(&json, "layout", buf_cstr(&text));
	json_key(&json, "columns");
	json_array(&json);
	while (*at && *at != '\n') {
		size_t n = strcspn(at, ",\n");

		json_string(&json, arena_strndup(cli->arena, at, n));
		at += n;
		at += *at == ',';
	}
	json_end(&json);
	json_key(&json, "rows");
	json_array(&json);
	json_rows(&json, *at ? at + 1 : at);
	json_end(&json);
	cli_json_end(cli, &json);
	buf_free(&text);
}

/* The layouts are known after the pass "solution"; no more is run. */
int cmd_layout(struct cli *cli)
{
	struct compile *compile;
	const struct layout *layout = NULL;
	const struct buffer *buffer = NULL;
	struct buf csv = { 0 };

	if (cli_require_buffer(cli) && cli_compile(cli, "solution", &compile))
		layout = cli_buffer_layout(cli, &buffer);
	if (layout)
		layout_print_csv(&csv, layout);
	if (layout && cli->options.json)
		print_json(cli, buffer, layout, &csv);
	else if (layout)
		cli_write(cli, cli->options.output, &csv);
	buf_free(&csv);
	return cli_finish(cli, false);
}
