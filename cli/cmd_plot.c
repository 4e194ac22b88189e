/* plot: a buffer's layout as an SVG drawing. */
#include "cli/cli.h"

#include "viz/draw.h"

/* Global memory is drawn as shared memory is: both have byte offsets. */
static void draw(struct cli *cli, const struct buffer *buffer, const struct layout *layout,
                 struct buf *out)
{
	const struct cx *cx = cli_cx(cli);
	struct draw_tile tile = { sym_text(cx->names, buffer->name),
		                      sym_text(cx->names, cli->compile->program->name), buffer->type,
		                      layout };

	if (layout->kind == LAYOUT_FRAGMENT)
		draw_fragment(out, &tile);
	else
		draw_shared(out, &tile);
}

/* The drawing as a text in the document, when no file was asked for. */
static void print_json(struct cli *cli, const struct buf *svg)
{
	struct json json;

	cli_json_begin(cli, &json);
	json_kstring(&json, "buffer", cli->options.buffer);
	json_kstring(&json, "svg", buf_cstr(svg));
	cli_json_end(cli, &json);
}

/* The file of -o, else standard output. */
int cmd_plot(struct cli *cli)
{
	struct compile *compile;
	const struct layout *layout = NULL;
	const struct buffer *buffer = NULL;
	struct buf svg = { 0 };

	if (cli_require_buffer(cli) && cli_compile(cli, "solution", &compile))
		layout = cli_buffer_layout(cli, &buffer);
	if (layout)
		draw(cli, buffer, layout, &svg);
	if (layout && (cli->options.output || !cli->options.json))
		cli_write(cli, cli->options.output, &svg);
	else if (layout)
		print_json(cli, &svg);
	buf_free(&svg);
	return cli_finish(cli, false);
}
