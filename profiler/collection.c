/*
 * Measured rows as text and back: how a child hands its measurements to its parent. One line a row,
 * fields separated by tabs, "end" last, so that a child that died is told from one that measured
 * nothing.
 *
 *     machine   DEVICE  DRIVER  NVRTC  CUPTI  COMPUTE
 *     kernel    LAUNCH  REGISTERS  LOCAL_BYTES  SHARED_BYTES
 *     sass      LAUNCH  PC  LINE  FILE  INSTRUCTION  EXECUTIONS  WAVEFRONTS  IDEAL
 *     counter   LAUNCH  METRIC  UNIT  VALUE
 *     missing   LAUNCH  METRIC  UNIT  REASON
 *     failure   CODE  MESSAGE  {"note: " TEXT | "help: " TEXT}
 */
#include "profiler/collection.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- print ---- */

/* What would end a field becomes a blank. */
static void put_text(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_char(out, strchr("\t\n\r", *text) ? ' ' : *text);
}

/* A field; an empty one is "-". */
static void put(struct buf *out, const char *text)
{
	buf_char(out, '\t');
	put_text(out, text && *text ? text : "-");
}

/* A row `counter` or `missing`. */
static void put_counter(struct buf *out, const struct counter_row *row)
{
	buf_printf(out, "%s\t%u", row->missing ? "missing" : "counter", row->launch);
	put(out, row->metric);
	put(out, row->unit);
	if (row->missing) {
		put(out, row->missing);
	} else if (isfinite(row->value)) {
		buf_char(out, '\t');
		buf_double(out, row->value);
	} else {
		put(out, "nan");
	}
	buf_char(out, '\n');
}

/* A row `sass`. */
static void put_sass(struct buf *out, const struct sass_row *row)
{
	buf_printf(out, "sass\t%u\t%llu\t%u", row->launch, (unsigned long long)row->pc, row->line);
	put(out, row->file);
	put(out, row->instruction);
	buf_printf(out, "\t%lld\t%lld\t%lld\n", (long long)row->executions, (long long)row->wavefronts,
	           (long long)row->ideal);
}

/* A row `failure`. */
static void put_failure(struct buf *out, const struct failure_row *row)
{
	buf_text(out, "failure");
	put(out, diag_code_text(row->code));
	put(out, row->message);
	for (uint32_t i = 0; i < row->details.n; i++) {
		put(out, row->details.p[i].is_help ? "help: " : "note: ");
		put_text(out, row->details.p[i].text);
	}
	buf_char(out, '\n');
}

/* Without a device there is no machine row: the session did not open. */
void collection_print(struct buf *out, const struct collection *collection)
{
	if (collection->device) {
		buf_text(out, "machine");
		put(out, collection->device);
		put(out, collection->driver);
		put(out, collection->nvrtc);
		put(out, collection->cupti);
		buf_printf(out, "\t%d\n", collection->compute);
	}
	for (uint32_t i = 0; i < collection->kernels.n; i++) {
		const struct kernel_row *row = &collection->kernels.p[i];

		buf_printf(out, "kernel\t%u\t%lld\t%lld\t%lld\n", row->launch, (long long)row->registers,
		           (long long)row->local_bytes, (long long)row->shared_bytes);
	}
	for (uint32_t i = 0; i < collection->sass.n; i++)
		put_sass(out, &collection->sass.p[i]);
	for (uint32_t i = 0; i < collection->counters.n; i++)
		put_counter(out, &collection->counters.p[i]);
	for (uint32_t i = 0; i < collection->failures.n; i++)
		put_failure(out, &collection->failures.p[i]);
	buf_text(out, "end\n");
}

/* ---- read ---- */

enum { MAX_FIELDS = 16 };

/* A line cut at its tabs; the texts are copies in the arena. */
struct fields {
	const char *at[MAX_FIELDS];
	int n;
};

/* The fields of a line; those behind the sixteenth are dropped. */
static struct fields split(struct arena *arena, struct str line)
{
	char *text = arena_strndup(arena, line.p, line.n);
	struct fields fields = { .n = 0 };

	while (text && fields.n < MAX_FIELDS) {
		char *tab = strchr(text, '\t');

		if (tab)
			*tab = '\0';
		fields.at[fields.n++] = text;
		text = tab ? tab + 1 : NULL;
	}
	return fields;
}

/* A whole number of at least 0; -1 when the field is none. */
static int64_t number(const char *text)
{
	char *end;
	long long value = strtoll(text, &end, 10);

	return *text && !*end && value >= 0 ? (int64_t)value : -1;
}

/* "-" stands for nothing. */
static const char *text_or_null(const char *text)
{
	return strcmp(text, "-") == 0 ? NULL : text;
}

/* The readers of one kind of row each give false for a row that is not of its form. */
static bool read_sass(struct arena *arena, const struct fields *fields,
                      struct collection *collection)
{
	struct sass_row row;

	if (fields->n != 9)
		return false;
	row = (struct sass_row){
		.launch = (uint32_t)number(fields->at[1]),
		.pc = (uint64_t)number(fields->at[2]),
		.line = (uint32_t)number(fields->at[3]),
		.file = fields->at[4],
		.instruction = fields->at[5],
		.executions = number(fields->at[6]),
		.wavefronts = number(fields->at[7]),
		.ideal = number(fields->at[8]),
	};
	if (number(fields->at[1]) < 0 || number(fields->at[3]) < 0 || row.executions < 0 ||
	    row.wavefronts < 0 || row.ideal < 0)
		return false;
	vec_push(arena, &collection->sass, row);
	return true;
}

/* `nan` is a value here; the record makes it a missing one. */
static bool read_counter(struct arena *arena, const struct fields *fields,
                         struct collection *collection)
{
	bool is_missing = strcmp(fields->at[0], "missing") == 0;
	struct counter_row row;
	char *end = NULL;

	if (fields->n != 5 || number(fields->at[1]) < 0)
		return false;
	row = (struct counter_row){ .launch = (uint32_t)number(fields->at[1]),
		                        .metric = fields->at[2],
		                        .unit = fields->at[3] };
	if (is_missing)
		row.missing = fields->at[4];
	else
		row.value = strtod(fields->at[4], &end);
	if (!is_missing && (end == fields->at[4] || *end))
		return false;
	vec_push(arena, &collection->counters, row);
	return true;
}

/* -1 where the driver did not tell. */
static bool read_kernel(struct arena *arena, const struct fields *fields,
                        struct collection *collection)
{
	struct kernel_row row;

	if (fields->n != 5 || number(fields->at[1]) < 0)
		return false;
	row = (struct kernel_row){ (uint32_t)number(fields->at[1]), number(fields->at[2]),
		                       number(fields->at[3]), number(fields->at[4]) };
	vec_push(arena, &collection->kernels, row);
	return true;
}

/* A code that this version does not know makes the row a bad one. */
static bool read_failure(struct arena *arena, const struct fields *fields,
                         struct collection *collection)
{
	struct failure_row row = { 0 };

	if (fields->n < 3 || !diag_code_find(fields->at[1], &row.code))
		return false;
	row.message = fields->at[2];
	for (int i = 3; i < fields->n; i++) {
		struct failure_detail detail = { strncmp(fields->at[i], "help: ", 6) == 0,
			                             fields->at[i] + 6 };

		if (strlen(fields->at[i]) > 6)
			vec_push(arena, &row.details, detail);
	}
	vec_push(arena, &collection->failures, row);
	return true;
}

/* By the first field. */
static bool read_row(struct arena *arena, const struct fields *fields,
                     struct collection *collection)
{
	const char *kind = fields->at[0];

	if (strcmp(kind, "sass") == 0)
		return read_sass(arena, fields, collection);
	if (strcmp(kind, "counter") == 0 || strcmp(kind, "missing") == 0)
		return read_counter(arena, fields, collection);
	if (strcmp(kind, "kernel") == 0)
		return read_kernel(arena, fields, collection);
	if (strcmp(kind, "failure") == 0)
		return read_failure(arena, fields, collection);
	if (strcmp(kind, "machine") != 0 || fields->n != 6)
		return false;
	collection->device = text_or_null(fields->at[1]);
	collection->driver = text_or_null(fields->at[2]);
	collection->nvrtc = text_or_null(fields->at[3]);
	collection->cupti = text_or_null(fields->at[4]);
	collection->compute = (int)number(fields->at[5]);
	return true;
}

/*
 * Complete only when every line was understood and "end" came last; rows that were read stay either
 * way.
 */
void collection_read(struct arena *arena, struct str text, struct collection *collection)
{
	bool bad = false;

	collection->complete = false;
	while (text.n > 0) {
		const char *newline = memchr(text.p, '\n', text.n);
		struct str line = { text.p, newline ? (uint32_t)(newline - text.p) : text.n };
		uint32_t n = line.n + (newline != NULL);

		if (str_is(line, "end"))
			collection->complete = !bad;
		else if (collection->complete || !newline)
			bad = true;
		else if (line.n > 0) {
			struct fields fields = split(arena, line);
			bad |= !read_row(arena, &fields, collection);
		}
		text = (struct str){ text.p + n, text.n - n };
	}
	if (bad)
		collection->complete = false;
}

/* ---- more ---- */

/* The session's errors as rows; warnings stay behind. */
void collection_fail(struct collection *collection, const struct cx *cx)
{
	for (uint32_t i = 0; i < cx->diags.items.n; i++) {
		const struct diag *diag = cx->diags.items.p[i];
		struct failure_row row = { .code = diag->code, .message = diag->message };

		if (diag->severity != SEVERITY_ERROR)
			continue;
		for (uint32_t j = 0; j < diag->attachments.n; j++) {
			struct failure_detail detail = { diag->attachments.p[j].is_help,
				                             diag->attachments.p[j].text };

			vec_push(cx->arena, &row.details, detail);
		}
		vec_push(cx->arena, &collection->failures, row);
	}
}

/*
 * What one child measured beside what another did. Both describe the same machine and kernels, so
 * that these are taken once.
 */
void collection_add(struct arena *arena, struct collection *to, const struct collection *from)
{
	assert(to != from);
	for (uint32_t i = 0; i < from->sass.n; i++)
		vec_push(arena, &to->sass, from->sass.p[i]);
	for (uint32_t i = 0; i < from->counters.n; i++)
		vec_push(arena, &to->counters, from->counters.p[i]);
	for (uint32_t i = 0; i < from->kernels.n && to->kernels.n < from->kernels.n; i++)
		vec_push(arena, &to->kernels, from->kernels.p[i]);
	for (uint32_t i = 0; i < from->failures.n; i++)
		vec_push(arena, &to->failures, from->failures.p[i]);
	to->device = to->device ? to->device : from->device;
	to->driver = to->driver ? to->driver : from->driver;
	to->nvrtc = to->nvrtc ? to->nvrtc : from->nvrtc;
	to->cupti = to->cupti ? to->cupti : from->cupti;
	to->compute = to->compute ? to->compute : from->compute;
	to->complete = from->complete;
}

/* NULL when it was not asked for. */
const struct counter_row *collection_counter(const struct collection *collection, uint32_t launch,
                                             const char *metric)
{
	for (uint32_t i = 0; i < collection->counters.n; i++) {
		const struct counter_row *row = &collection->counters.p[i];

		if (row->launch == launch && strcmp(row->metric, metric) == 0)
			return row;
	}
	return NULL;
}
