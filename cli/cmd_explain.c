/* explain: what a diagnostic code means; without a code, the list of all. */
#include "cli/options.h"

#include <string.h>

/* One row of the table of codes. */
static void json_code(struct json *json, enum diag_code code)
{
	json_object(json);
	json_kstring(json, "code", diag_code_text(code));
	json_kstring(json, "title", diag_code_title(code));
	json_kstring(json, "explanation", diag_code_explain(code));
	json_end(json);
}

/* All codes, or `only` one. */
static void print_json(struct cli *cli, const enum diag_code *only)
{
	struct json json;

	cli_json_begin(cli, &json);
	json_key(&json, "codes");
	json_array(&json);
	for (int code = 0; code < N_DIAG_CODES; code++)
		if (!only || code == (int)*only)
			json_code(&json, (enum diag_code)code);
	json_end(&json);
	cli_json_end(cli, &json);
}

/* Words of `text` in lines of at most 90 characters. */
static void print_wrapped(struct buf *out, const char *text)
{
	size_t at = 0;

	while (*text) {
		size_t n = strcspn(text, " \n");

		if (at > 0 && at + 1 + n > 90) {
			buf_char(out, '\n');
			at = 0;
		}
		if (at > 0)
			buf_char(out, ' ');
		buf_add(out, text, n);
		at += n + (at > 0);
		text += n;
		text += strspn(text, " \n");
	}
	buf_char(out, '\n');
}

/* A code with its explanation, or the list of titles. */
static void print_text(struct cli *cli, const enum diag_code *only)
{
	if (only) {
		buf_printf(&cli->out, "%s: %s\n\n", diag_code_text(*only), diag_code_title(*only));
		print_wrapped(&cli->out, diag_code_explain(*only));
		return;
	}
	for (int code = 0; code < N_DIAG_CODES; code++)
		buf_printf(&cli->out, "%s  %s\n", diag_code_text((enum diag_code)code),
		           diag_code_title((enum diag_code)code));
}

/* A code in any case of letters; a near miss is named. */
int cmd_explain(struct cli *cli)
{
	const char *text = cli->files.n > 0 ? cli->files.p[0] : NULL;
	struct nearest nearest = { text, NULL, 0 };
	enum diag_code code;

	if (text && !diag_code_find(text, &code)) {
		for (int i = 0; i < N_DIAG_CODES; i++)
			nearest_offer(&nearest, diag_code_text((enum diag_code)i));
		diag_report(&cli->cx.diags, DIAG_E0909, (struct span){ 0 }, "no diagnostic code '%s'",
		            text);
		diag_help(&cli->cx.diags,
		          nearest.name ? "did you mean %s?" : "tilelayout explain lists them",
		          nearest.name);
		return cli_finish(cli, false);
	}
	if (cli->options.json)
		print_json(cli, text ? &code : NULL);
	else
		print_text(cli, text ? &code : NULL);
	return cli_finish(cli, false);
}
