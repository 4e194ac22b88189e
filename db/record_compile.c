/*
 * From a compile to the plain record of a run: what `analyze`, `profile` and their kin store. Texts
 * are copied; the record outlives the compile's buffers, though not its arena.
 */
#include "db/record.h"

#include "base/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters: a JSON object with sorted keys, so that equal parameters are equal texts ---- */

/* By name. */
static int compare_params(const void *a, const void *b)
{
	const struct host_param *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

/* Appends a JSON string; the JSON writer breaks lines, and this text must stay on one. */
static void add_json_text(struct buf *out, const char *text)
{
	struct buf piece = { 0 };
	struct json json;

	json_init(&json, &piece);
	json_string(&json, text);
	buf_add(out, buf_cstr(&piece), strcspn(buf_cstr(&piece), "\n"));
	buf_free(&piece);
}

/* {"K": 64, "M": 128}; null for what has no value. */
static const char *params_text(struct arena *arena, const struct tile_program *program)
{
	uint32_t n = program->host_params.n;
	const struct host_param **sorted = arena_array(arena, const struct host_param *, n);
	struct buf text = { 0 };

	for (uint32_t i = 0; i < n; i++)
		sorted[i] = &program->host_params.p[i];
	qsort(sorted, n, sizeof(*sorted), compare_params);
	buf_char(&text, '{');
	for (uint32_t i = 0; i < n; i++) {
		buf_text(&text, i > 0 ? ", " : "");
		add_json_text(&text, sorted[i]->name);
		buf_printf(&text, ": %s", sorted[i]->value_json ? sorted[i]->value_json : "null");
	}
	buf_char(&text, '}');
	return buf_keep(&text, arena);
}

/* ---- buffers ---- */

/* [128, 64]; a symbolic extent is a string. */
static const char *shape_text(const struct compile *compile, const struct buffer *buffer)
{
	struct arena *arena = compile->cx.arena;
	struct buf text = { 0 };

	buf_char(&text, '[');
	for (uint32_t i = 0; i < buffer->rank; i++) {
		struct buf extent = { 0 };

		buf_text(&text, i > 0 ? ", " : "");
		expr_print(&extent, &compile->cx, buffer->shape[i]);
		if (expr_is_int(buffer->shape[i], NULL))
			buf_text(&text, buf_cstr(&extent));
		else
			add_json_text(&text, buf_cstr(&extent));
		buf_free(&extent);
	}
	buf_char(&text, ']');
	return buf_keep(&text, arena);
}

/* The printed layout without its last line break; NULL without one. */
static const char *layout_text(struct arena *arena, const struct layout *layout)
{
	struct buf text = { 0 };

	if (!layout)
		return NULL;
	layout_print(&text, layout);
	while (text.n > 0 && text.p[text.n - 1] == '\n')
		text.n--;
	return buf_keep(&text, arena);
}

/*
 * Bytes of the whole buffer, rounded up for elements narrower than a byte; -1 when symbolic or too
 * many.
 */
static int64_t buffer_bytes(const struct buffer *buffer)
{
	int64_t n = buffer_n_elems(buffer);
	int64_t bits = dtype_bits(buffer->type);

	return n < 0 || n > (INT64_MAX - 7) / bits ? -1 : (n * bits + 7) / 8;
}

/* The record of one buffer as launch `index` places it. */
static void add_buffer(const struct compile *compile, struct run_record *run, uint32_t index,
                       const struct buffer *buffer)
{
	const struct launch_result *result = compile->launches.p[index];
	const struct shared_place *place = schedule_place(result->schedule, buffer);
	struct arena *arena = compile->cx.arena;
	char type[32];
	struct record_buffer row = {
		.launch = index,
		.name = sym_text(compile->cx.names, buffer->name),
		.scope = scope_text(buffer->scope),
		.shape = shape_text(compile, buffer),
		.line = source_line(&compile->cx.sources, buffer->span),
		.bytes = place ? place->version_bytes : buffer_bytes(buffer),
		.versions = place ? place->n_versions : 1,
		.offset_bytes = place ? place->offset_bytes : -1,
		.layout = layout_text(arena, result->solution->buffers[buffer->id].layout),
	};

	dtype_name(buffer->type, type);
	row.dtype = arena_strndup(arena, type, strlen(type));
	vec_push(arena, &run->buffers, row);
}

/* ---- launches and sites ---- */

/* A launch with its buffers (parameters with the first) and sites. */
static void add_launch(const struct compile *compile, struct run_record *run, uint32_t index)
{
	const struct launch_result *result = compile->launches.p[index];
	struct arena *arena = compile->cx.arena;
	struct record_launch row = {
		.threads = launch_n_threads(result->launch),
		.counted_grid = result->accesses.counted_grid,
		.shared_bytes = result->schedule->shared_bytes,
	};

	for (int i = 0; i < 3; i++)
		if (!expr_is_int(result->launch->grid[i], &row.grid[i]))
			row.grid[i] = -1;
	vec_push(arena, &run->launches, row);
	for (uint32_t i = 0; i < compile->program->buffers.n; i++) {
		const struct buffer *buffer = compile->program->buffers.p[i];

		if (buffer->is_param ? index == 0 : buffer->launch == index)
			add_buffer(compile, run, index, buffer);
	}
	for (uint32_t i = 0; i < result->accesses.sites.n; i++) {
		const struct access_site *site = &result->accesses.sites.p[i];
		struct record_site copy = {
			.launch = index,
			.line = site->line,
			.buffer = site->buffer,
			.instruction = arena_strndup(arena, site->instruction, strlen(site->instruction)),
			.bytes_per_thread = site->bytes_per_thread,
			.executions = site->executions,
			.wavefronts = site->wavefronts,
			.ideal = site->ideal,
			.excess = site->excess,
			.ways = site->ways,
			.reason = site->reason,
		};

		vec_push(arena, &run->sites, copy);
	}
}

/* The file's hash tells whether two runs are of the same text; `layouts` says whose they are. */
struct run_record *record_of_compile(const struct compile *compile, const char *verb,
                                     const char *tool_version)
{
	struct arena *arena = compile->cx.arena;
	struct run_record *run = arena_new(arena, struct run_record);
	const struct source *source = source_get(&compile->cx.sources, compile->file);
	const struct tile_program *program = compile->program;

	assert(program && compile->launches.n > 0);
	run->verb = verb;
	run->tool_version = tool_version;
	run->file = source->path;
	run->file_hash = arena_printf(
		arena, "%016llx", (unsigned long long)hash_bytes(source->text.p, source->text.n, 0));
	run->kernel = sym_text(compile->cx.names, program->name);
	run->factory = sym_text(compile->cx.names, program->factory);
	run->target = compile->options.target->name;
	run->layouts = compile->options.parity ? "tilelang" : "solved";
	run->params = params_text(arena, program);
	for (uint32_t i = 0; i < compile->launches.n; i++)
		add_launch(compile, run, i);
	return run;
}
