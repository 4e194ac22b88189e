/*
 * options: the command line by the tables options.def and verbs.def.
 *
 * One table drives the parser, the fields of struct cli_options and the help texts, so they cannot
 * drift apart. Options stand anywhere behind the verb, as `--name VALUE`, `--name=VALUE` or `-o
 * VALUE`; `--` ends them.
 */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_TEXTS, OPTION_INT, OPTION_NUMBER };

struct option_row {
	uint32_t groups;
	const char *pattern; /* "-o --output": spellings, separated by a space */
	enum option_kind kind;
	size_t field, has_field; /* offsets into struct cli_options */
	const char *argument, *help;
};

#define HAS_FLAG(field) 0
#define HAS_TEXT(field) 0
#define HAS_TEXTS(field) 0
#define HAS_INT(field) offsetof(struct cli_options, has_##field)
#define HAS_NUMBER(field) offsetof(struct cli_options, has_##field)

static const struct option_row rows[] = {
#define OPTION(groups, pattern, kind, field, argument, help) \
	{ groups,   pattern, OPTION_##kind, offsetof(struct cli_options, field), HAS_##kind(field), \
	  argument, help },
#include "cli/options.def"
#undef OPTION
};
enum { N_ROWS = sizeof(rows) / sizeof(*rows) };

static const struct verb verbs[] = {
#define VERB(name, groups, min, max, arguments, doc, example) \
	{ #name, cmd_##name, GROUP_COMMON | (groups), min, max, arguments, doc, example },
#include "cli/verbs.def"
#undef VERB
	{ NULL, NULL, 0, 0, 0, NULL, NULL, NULL },
};

const struct verb *verb_all(void)
{
	return verbs;
}

/* Edits (insert, delete, replace) that turn a into b; texts are cut at 31 characters. */
static uint32_t edit_distance(const char *a, const char *b)
{
	enum { MAX = 31 };
	uint32_t row[MAX + 1], n_a = (uint32_t)strnlen(a, MAX), n_b = (uint32_t)strnlen(b, MAX);

	for (uint32_t j = 0; j <= n_b; j++)
		row[j] = j;
	for (uint32_t i = 1; i <= n_a; i++) {
		uint32_t diagonal = row[0];

		row[0] = i;
		for (uint32_t j = 1; j <= n_b; j++) {
			uint32_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			row[j] = best;
		}
	}
	return row[n_b];
}

void nearest_offer(struct nearest *nearest, const char *name)
{
	uint32_t distance = edit_distance(nearest->wanted, name);
	uint32_t limit = (uint32_t)strlen(nearest->wanted) / 3 + 1;

	if (distance > limit || (nearest->name && distance >= nearest->distance))
		return;
	nearest->name = name;
	nearest->distance = distance;
}

/* The next spelling of a pattern, or NULL; `*at` starts as the pattern. */
static bool next_spelling(const char **at, struct str *spelling)
{
	const char *end;

	if (**at == '\0')
		return false;
	end = strchr(*at, ' ');
	end = end ? end : *at + strlen(*at);
	*spelling = (struct str){ *at, (uint32_t)(end - *at) };
	*at = *end ? end + 1 : end;
	return true;
}

/* The option of that spelling among those of the verb's groups; NULL without one. */
static const struct option_row *find_row(struct str name, uint32_t groups)
{
	for (uint32_t i = 0; i < N_ROWS; i++) {
		const char *at = rows[i].pattern;
		struct str spelling;

		while (rows[i].groups & groups && next_spelling(&at, &spelling))
			if (str_equal(spelling, name))
				return &rows[i];
	}
	return NULL;
}

/* E0902 with the nearest option of the verb. */
static void report_unknown_option(struct cli *cli, const char *name)
{
	struct nearest nearest = { name, NULL, 0 };

	for (uint32_t i = 0; i < N_ROWS; i++) {
		const char *at = rows[i].pattern;
		struct str spelling;

		while (rows[i].groups & cli->verb->groups && next_spelling(&at, &spelling))
			nearest_offer(&nearest, arena_strndup(cli->arena, spelling.p, spelling.n));
	}
	diag_report(&cli->cx.diags, DIAG_E0902, (struct span){ 0 }, "%s: no option %s", cli->verb->name,
	            name);
	if (nearest.name)
		diag_help(&cli->cx.diags, "did you mean %s?", nearest.name);
	else
		diag_help(&cli->cx.diags, "tilelayout %s --help lists the options", cli->verb->name);
}

/* Stores `value` (NULL for flags) into the row's field; false with E0904. */
static bool store_value(struct cli *cli, const struct option_row *row, const char *name,
                        const char *value)
{
	char *field = (char *)&cli->options + row->field;
	struct texts {
		const char **p;
		uint32_t n, cap;
	} *texts = (void *)field;
	char *end = NULL;

	errno = 0;
	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)(void *)field = true;
		return true;
	case OPTION_TEXT:
		*(const char **)(void *)field = value;
		return true;
	case OPTION_TEXTS:
		vec_push(cli->arena, texts, value);
		return true;
	case OPTION_INT:
		*(int64_t *)(void *)field = strtoll(value, &end, 10);
		break;
	case OPTION_NUMBER:
		*(double *)(void *)field = strtod(value, &end);
		break;
	}
	*(bool *)(void *)((char *)&cli->options + row->has_field) = true;
	if (end != value && *end == '\0' && errno == 0)
		return true;
	diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 }, "%s %s: not %s", name, value,
	            row->kind == OPTION_INT ? "an integer" : "a number");
	return false;
}

/* Reads argv[*at], an option, and its value; moves *at behind them. */
static bool parse_option(struct cli *cli, int argc, char **argv, int *at)
{
	const char *text = argv[(*at)++];
	const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
	const char *value = equals ? equals + 1 : NULL;
	char *name = arena_strndup(cli->arena, text, equals ? (size_t)(equals - text) : strlen(text));
	const struct option_row *row = find_row(str_of(name), cli->verb->groups);

	if (!row) {
		report_unknown_option(cli, name);
		return false;
	}
	if (row->kind == OPTION_FLAG && value) {
		diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 }, "%s takes no value", name);
		return false;
	}
	if (row->kind != OPTION_FLAG && !value && *at < argc)
		value = argv[(*at)++];
	if (row->kind != OPTION_FLAG && !value) {
		diag_report(&cli->cx.diags, DIAG_E0903, (struct span){ 0 }, "%s needs a value: %s %s", name,
		            name, row->argument);
		return false;
	}
	return store_value(cli, row, name, value);
}

/* All options are read even when one is wrong, so that all mistakes are told at once. */
bool options_parse(struct cli *cli, int argc, char **argv)
{
	bool ok = true, only_files = false;

	assert(cli->verb && cli->files.n == 0);
	for (int at = 0; at < argc;) {
		const char *text = argv[at];

		if (!only_files && strcmp(text, "--") == 0) {
			only_files = true;
			at++;
		} else if (!only_files && text[0] == '-' && text[1] != '\0') {
			ok &= parse_option(cli, argc, argv, &at);
		} else {
			vec_push(cli->arena, &cli->files, text);
			at++;
		}
	}
	if (!ok || cli->options.help)
		return ok;
	if (cli->files.n >= cli->verb->min_files && cli->files.n <= cli->verb->max_files)
		return true;
	if (cli->verb->max_files == 0)
		diag_report(&cli->cx.diags, DIAG_E0905, (struct span){ 0 },
		            "%s takes no arguments, not '%s'", cli->verb->name, cli->files.p[0]);
	else
		diag_report(&cli->cx.diags, DIAG_E0905, (struct span){ 0 }, "%s: %s", cli->verb->name,
		            cli->files.n < cli->verb->min_files ? "an argument is missing"
		                                                : "too many arguments");
	diag_help(&cli->cx.diags, "usage: tilelayout %s %s", cli->verb->name, cli->verb->arguments);
	return false;
}

/* ---- help ---- */

enum { HELP_COLUMN = 30, HELP_WIDTH = 100 };

/* `text` from column `column` on, wrapped at words. */
static void print_wrapped(struct buf *out, const char *text, uint32_t column)
{
	for (uint32_t at = column; *text;) {
		uint32_t n = (uint32_t)strcspn(text, " ");

		if (at > column && at + 1 + n > HELP_WIDTH) {
			buf_printf(out, "\n%*s", (int)column, "");
			at = column;
		}
		if (at > column)
			buf_char(out, ' ');
		at += n + (at > column);
		buf_add(out, text, n);
		text += n;
		text += strspn(text, " ");
	}
	buf_char(out, '\n');
}

/* Spellings and argument in the left column, help in the right; a wide left part gets a line of its
 * own. */
static void print_option(struct buf *out, const struct option_row *row)
{
	const char *at = row->pattern;
	struct str spelling;
	size_t begin = out->n;
	bool first = true;

	buf_text(out, row->pattern[1] == '-' ? "      " : "  ");
	while (next_spelling(&at, &spelling)) {
		buf_printf(out, "%s%.*s", first ? "" : ", ", STR_ARGS(spelling));
		first = false;
	}
	if (row->argument)
		buf_printf(out, " %s", row->argument);
	if (out->n - begin > HELP_COLUMN - 2)
		buf_printf(out, "\n%*s", HELP_COLUMN, "");
	else
		buf_printf(out, "%*s", (int)(HELP_COLUMN - (out->n - begin)), "");
	print_wrapped(out, row->help, HELP_COLUMN);
}

/* Usage, what it does, its options in table order, its example. */
void options_help_verb(struct buf *out, const struct verb *verb)
{
	buf_printf(out, "usage: tilelayout %s%s%s [OPTION ...]\n\n%s\n", verb->name,
	           verb->arguments[0] ? " " : "", verb->arguments, verb->doc);
	buf_text(out, "\noptions\n");
	for (uint32_t i = 0; i < N_ROWS; i++)
		if (rows[i].groups & verb->groups)
			print_option(out, &rows[i]);
	buf_printf(out, "\nexample\n  %s\n", verb->example);
}

/* The verbs in table order. */
void options_help(struct buf *out)
{
	buf_text(out, "usage: tilelayout VERB [ARGUMENT ...] [OPTION ...]\n\n"
	              "Layouts, pipelines and bank conflicts of GPU tile kernels: inferred, proved, "
	              "generated, measured.\n\nverbs\n");
	for (const struct verb *verb = verbs; verb->name; verb++)
		buf_printf(out, "  %-9s %s\n", verb->name, verb->doc);
	buf_text(out, "\n`tilelayout VERB --help` has a verb's options and an example; `tilelayout "
	              "--version` the version.\n"
	              "Exit codes: 0 fine, 1 findings, 2 input or command line at fault, 3 "
	              "environment, 4 a bug of tilelayout.\n"
	              "\nexample\n  tilelayout analyze examples/gemm_relu.tl\n");
}
