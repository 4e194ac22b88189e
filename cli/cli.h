/*
 * cli: what every verb gets from main, and what it gives back.
 *
 * main reads the command line by the tables options.def and verbs.def into struct cli and calls
 * `int cmd_NAME(struct cli *)`. A verb that reads a kernel calls cli_compile; it appends its data
 * to cli->out, reports failures through diag_report (on cli->cx, or on the compile's cx), and ends
 * with `return cli_finish(cli, findings)`:
 *
 *     int cmd_layout(struct cli *cli)
 *     {
 *             struct compile *compile;
 *
 *             if (cli_compile(cli, "solution", &compile))
 *                     layout_print_csv(&cli->out, ...);
 *             return cli_finish(cli, false);
 *     }
 *
 * Nothing but cli/ knows about argv, colours and exit codes. Data goes to standard output in one
 * piece when the verb is done; diagnostics go to standard error, or with --json into the document.
 */
#ifndef TL_CLI_CLI_H
#define TL_CLI_CLI_H

#include "analyzer/compile.h"
#include "base/diag.h"
#include "base/json.h"

enum exit_code {
	CODE_FINE = 0,
	CODE_FINDINGS = 1,    /* a violated property, a regression, a wrong result */
	CODE_INPUT = 2,       /* the kernel file or the command line is at fault */
	CODE_ENVIRONMENT = 3, /* GPU, driver, permission, library, disk: errors of E07 and E08 */
	CODE_BUG = 4,
};

/* Which verbs take which options. */
enum option_group {
	GROUP_COMMON = 1 << 0,
	GROUP_KERNEL = 1 << 1, /* the verb reads a kernel */
	GROUP_ANALYZE = 1 << 2,
	GROUP_BUFFER = 1 << 3,
	GROUP_OUTPUT = 1 << 4,
	GROUP_EMIT = 1 << 5,
	GROUP_RUN = 1 << 6,
	GROUP_BENCH = 1 << 7,
	GROUP_PROFILE = 1 << 8,
	GROUP_REPORT = 1 << 9,
	GROUP_DB = 1 << 10,
	GROUP_DB_VERB = 1 << 11,
	GROUP_CUDA = 1 << 12, /* the verb compiles CUDA or uses a card */
	GROUP_SWIZZLE = 1 << 13,
};

/* C declarations of the option kinds. */
#define OPTION_FIELD_FLAG(field) bool field;
#define OPTION_FIELD_TEXT(field) const char *field;
#define OPTION_FIELD_TEXTS(field) vec_of(const char *) field;
#define OPTION_FIELD_INT(field) \
	int64_t field; \
	bool has_##field;
#define OPTION_FIELD_NUMBER(field) \
	double field; \
	bool has_##field;

/* The values as typed; one field an option. */
struct cli_options {
#define OPTION(groups, pattern, kind, field, argument, help) OPTION_FIELD_##kind(field)
#include "cli/options.def"
#undef OPTION
};

struct cli;
struct verb {
	const char *name;
	int (*run)(struct cli *cli);
	uint32_t groups;
	uint32_t min_files, max_files;
	const char *arguments, *doc, *example;
};
const struct verb *verb_all(void); /* ended by one with name NULL */

struct cli {
	const struct verb *verb;
	struct cli_options options;
	vec_of(const char *) files; /* positional arguments; "-" is standard input */
	struct arena *arena;
	struct cx cx;                /* diagnostics of the command line and of verbs without a kernel */
	struct buf out;              /* data for standard output */
	bool colour_out, colour_err; /* a terminal, and NO_COLOR is not set */
	/* From the KERNEL options, ready for compile_open; a verb may change it (target) before
	 * cli_compile. */
	struct compile_options compile_options;
	struct compile *compile; /* of the last cli_compile; NULL before */
};

/* Prototypes of all verbs. */
#define VERB(name, groups, min, max, arguments, doc, example) int cmd_##name(struct cli *cli);
#include "cli/verbs.def"
#undef VERB

/* Typed options into compile_options (main calls it); false with E0904, E0906 or E0911. */
bool cli_prepare(struct cli *cli);

/*
 * Opens, loads cli->files.p[0] and runs the passes up to `last_pass` (NULL: all). `*out` is set
 * even when it fails, so that what was reached can be shown. False: diagnostics are in (*out)->cx.
 */
bool cli_compile(struct cli *cli, const char *last_pass, struct compile **out);

/* The context that errors go to: the compile's once there is one (its spans mean its sources), else
 * the command's. */
struct cx *cli_cx(struct cli *cli);

/*
 * The end of every verb: diagnostics to standard error (with --json, into a document of their own
 * when the verb wrote none), cli->out to standard output. Gives the exit code: input errors before
 * environment errors before `findings`, else fine.
 */
int cli_finish(struct cli *cli, bool findings);

/*
 * The document of --json: begin writes { "schema": 1, "version": "..." and leaves the object open
 * for the verb's keys; end adds "diagnostics": [...] of both contexts and closes it. Report all
 * diagnostics before end.
 */
void cli_json_begin(struct cli *cli, struct json *json);
void cli_json_end(struct cli *cli, struct json *json);

/*
 * Writes `text` to `path` by way of a temporary file; NULL or "-" appends it to cli->out instead.
 * False with E0790 (exit code 3) when it cannot be written.
 */
bool cli_write(struct cli *cli, const char *path, const struct buf *text);

/* The database's path: --db, else TILELAYOUT_DB, else "tilelayout.db"; NULL with --no-db. */
const char *cli_db_path(const struct cli *cli);

/* The launch's buffer of that name (solved one first); NULL with E0907, which lists the names. */
const struct buffer *cli_find_buffer(struct cli *cli, const char *name);

/* Is --buffer given? False with E0903. */
bool cli_require_buffer(struct cli *cli);
/* Of the buffer that --buffer names: itself and its layout; NULL with E0907 when it has none. After
 * cli_compile of "solution". */
const struct layout *cli_buffer_layout(struct cli *cli, const struct buffer **buffer);

/* "0.1.0+g0123456789" */
const char *cli_version(void);

#endif
