/*
 * tilelayout: the program. Finds the verb, reads its command line, runs it, returns its exit code.
 *
 *     tilelayout analyze FILE --json  ->  verbs.def: cmd_analyze  ->  options.def:
 * cli->options.json = true
 *                                     ->  cli_prepare: compile options  ->  cmd_analyze(cli)  ->
 * cli_finish
 */
#include "cli/options.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A terminal, NO_COLOR (no-color.org) is not set, and the terminal is not dumb. */
static bool colour_on(int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(fd) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

/* NULL when there is none of that name. */
static const struct verb *find_verb(const char *name)
{
	for (const struct verb *verb = verb_all(); verb->name; verb++)
		if (strcmp(verb->name, name) == 0)
			return verb;
	return NULL;
}

/* E0901 with the nearest verb. */
static void report_unknown_verb(struct cli *cli, const char *name)
{
	struct nearest nearest = { name, NULL, 0 };

	for (const struct verb *verb = verb_all(); verb->name; verb++)
		nearest_offer(&nearest, verb->name);
	diag_report(&cli->cx.diags, DIAG_E0901, (struct span){ 0 }, "no verb '%s'", name);
	if (nearest.name)
		diag_help(&cli->cx.diags, "did you mean %s?", nearest.name);
	else
		diag_help(&cli->cx.diags, "tilelayout --help lists the verbs");
}

/* --help, --version and `help VERB`; false when the arguments are none of these. */
static bool answer_plain(struct cli *cli, int argc, char **argv)
{
	const struct verb *verb;

	assert(argc > 1);
	if (strcmp(argv[1], "--version") == 0) {
		buf_printf(&cli->out, "tilelayout %s\n", cli_version());
		return true;
	}
	if (strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0 &&
	    strcmp(argv[1], "help") != 0)
		return false;
	verb = argc > 2 ? find_verb(argv[2]) : NULL;
	if (verb)
		options_help_verb(&cli->out, verb);
	else
		options_help(&cli->out);
	return true;
}

/* Before the command line is read: is a document wanted, also for its own errors? */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

/* Everything that can be answered without a verb first; then the verb. */
static int run(struct cli *cli, int argc, char **argv)
{
	cli->options.json = wants_json(argc, argv);
	if (argc < 2) {
		diag_report(&cli->cx.diags, DIAG_E0901, (struct span){ 0 }, "a verb is missing");
		diag_help(&cli->cx.diags, "tilelayout --help lists the verbs");
		return cli_finish(cli, false);
	}
	if (answer_plain(cli, argc, argv))
		return cli_finish(cli, false);
	cli->verb = find_verb(argv[1]);
	if (!cli->verb) {
		report_unknown_verb(cli, argv[1]);
		return cli_finish(cli, false);
	}
	if (!options_parse(cli, argc - 2, argv + 2))
		return cli_finish(cli, false);
	if (cli->options.help) {
		options_help_verb(&cli->out, cli->verb);
		return cli_finish(cli, false);
	}
	if (!cli_prepare(cli))
		return cli_finish(cli, false);
	return cli->verb->run(cli);
}

int main(int argc, char **argv)
{
	struct cli cli = { 0 };
	int code;

	cli.arena = arena_open();
	cx_init(&cli.cx, cli.arena);
	cli.colour_out = colour_on(STDOUT_FILENO);
	cli.colour_err = colour_on(STDERR_FILENO);
	code = run(&cli, argc, argv);
	buf_free(&cli.out);
	arena_close(cli.arena);
	return code;
}
