/*
 * api: the public C interface over compile and describe.
 *
 * Diagnostics of the options (which have no source) are in a context of their own, as in the
 * program.
 */
#include "include/tilelayout.h"

#include "analyzer/describe/describe.h"
#include "analyzer/session.h"
#include "codegen/cuda/cuda.h"
#include "viz/draw.h"

#include <assert.h>
#include <string.h>

#ifndef TL_VERSION
#define TL_VERSION "unknown"
#endif

struct tl_analysis {
	struct arena *arena;
	struct cx cx;            /* of the options */
	struct compile *compile; /* NULL when the options are at fault */
};

const char *tl_version(void)
{
	return TL_VERSION;
}

/* ---- opening ---- */

/* Reads the texts of `sets` or `tensors` into the compile options; reports those of another form.
 */
static void add_settings(struct tl_analysis *analysis, const char *const *texts, size_t n,
                         const char *what, struct compile_options *out)
{
	struct frontend_set set;
	bool is_set = strcmp(what, "sets") == 0;

	assert(is_set || strcmp(what, "tensors") == 0);
	for (size_t i = 0; i < n; i++) {
		if (!setting_parse(analysis->arena, texts[i], &set))
			diag_report(&analysis->cx.diags, DIAG_E0904, (struct span){ 0 },
			            "%s: '%s' is not of the form NAME=VALUE", what, texts[i]);
		else if (is_set)
			vec_push(analysis->arena, &out->frontend.sets, set);
		else
			vec_push(analysis->arena, &out->frontend.tensors, set);
	}
}

/* False with E0904. Fields that a caller built against an older header does not have are taken as
 * zero. */
static bool read_options(struct tl_analysis *analysis, const struct tl_options *given,
                         struct compile_options *out)
{
	struct tl_options options = { 0 };
	const char *target;

	if (given)
		memcpy(&options, given, given->size < sizeof(options) ? given->size : sizeof(options));
	target = options.target ? options.target : "sm_80";
	out->target = target_find(target);
	if (!out->target)
		diag_report(&analysis->cx.diags, DIAG_E0904, (struct span){ 0 },
		            "target: no such target '%s'", target);
	out->frontend.kernel = options.kernel;
	out->frontend.config = -1;
	out->solve.strict = options.strict != 0;
	out->solve.budget_ms = options.solve_budget_ms;
	out->without_code = true;
	out->parity = options.parity != NULL;
	if (options.parity && strcmp(options.parity, "tilelang") != 0)
		diag_report(&analysis->cx.diags, DIAG_E0904, (struct span){ 0 },
		            "parity: the one choice is tilelang, not '%s'", options.parity);
	add_settings(analysis, options.sets, options.n_sets, "sets", out);
	add_settings(analysis, options.tensors, options.n_tensors, "tensors", out);
	return analysis->cx.diags.n_errors == 0;
}

/* An analysis with an open compile, or without one when the options are at fault. */
static struct tl_analysis *open_analysis(const struct tl_options *options)
{
	struct arena *arena = arena_open();
	struct tl_analysis *analysis = arena_new(arena, struct tl_analysis);
	struct compile_options *compile = arena_new(arena, struct compile_options);

	analysis->arena = arena;
	cx_init(&analysis->cx, arena);
	if (read_options(analysis, options, compile))
		analysis->compile = compile_open(arena, compile);
	return analysis;
}

struct tl_analysis *tl_analyze_file(const char *path, const struct tl_options *options)
{
	struct tl_analysis *analysis = open_analysis(options);

	if (analysis->compile && compile_load(analysis->compile, path))
		compile_run(analysis->compile, NULL);
	return analysis;
}

struct tl_analysis *tl_analyze_text(const char *name, const char *text, size_t n,
                                    const struct tl_options *options)
{
	struct tl_analysis *analysis = open_analysis(options);
	struct compile *compile = analysis->compile;

	if (compile && n > UINT32_MAX / 2) {
		diag_report(&analysis->cx.diags, DIAG_E0910, (struct span){ 0 }, "%s is too large", name);
	} else if (compile) {
		compile->file = source_add(analysis->arena, &compile->cx.sources, name,
		                           (struct str){ text, (uint32_t)n });
		compile_run(compile, NULL);
	}
	return analysis;
}

void tl_close(struct tl_analysis *analysis)
{
	if (analysis)
		arena_close(analysis->arena);
}

/* ---- asking ---- */

/* The buffer's text moves into the arena. */
static const char *keep(struct tl_analysis *analysis, struct buf *text)
{
	const char *copy = arena_strndup(analysis->arena, buf_cstr(text), text->n);

	buf_free(text);
	return copy;
}

/* Errors before findings: a kernel with errors has no properties to judge. */
enum tl_status tl_status(const struct tl_analysis *analysis)
{
	struct session_failures failures = { false, false };

	session_count_failures(&analysis->cx, &failures);
	if (analysis->compile)
		session_count_failures(&analysis->compile->cx, &failures);
	if (failures.input)
		return TL_INPUT;
	if (failures.environment)
		return TL_ENVIRONMENT;
	assert(analysis->compile);
	return describe_totals(analysis->compile).n_violated > 0 ? TL_FINDINGS : TL_FINE;
}

const char *tl_diagnostics(struct tl_analysis *analysis)
{
	struct buf text = { 0 };

	diag_print(&text, &analysis->cx.diags, &analysis->cx.sources, false);
	if (analysis->compile)
		diag_print(&text, &analysis->compile->cx.diags, &analysis->compile->cx.sources, false);
	return keep(analysis, &text);
}

/* The same document as the program writes, key for key. */
const char *tl_json(struct tl_analysis *analysis)
{
	struct buf text = { 0 };
	struct json json;

	json_init(&json, &text);
	json_object(&json);
	json_kint(&json, "schema", 1);
	json_kstring(&json, "version", tl_version());
	if (analysis->compile)
		describe_json(&json, analysis->compile);
	json_key(&json, "diagnostics");
	json_array(&json);
	describe_json_diagnostics(&json, &analysis->cx.diags, &analysis->cx.sources);
	if (analysis->compile)
		describe_json_diagnostics(&json, &analysis->compile->cx.diags,
		                          &analysis->compile->cx.sources);
	json_end(&json);
	json_end(&json);
	return keep(analysis, &text);
}

/* The first buffer of that name in the program, NULL without one. */
static const struct buffer *find_buffer(const struct tl_analysis *analysis, const char *name)
{
	const struct tile_program *program = analysis->compile ? analysis->compile->program : NULL;

	for (uint32_t i = 0; program && i < program->buffers.n; i++)
		if (strcmp(sym_text(analysis->compile->cx.names, program->buffers.p[i]->name), name) == 0)
			return program->buffers.p[i];
	return NULL;
}

const char *tl_layout_csv(struct tl_analysis *analysis, const char *name)
{
	const struct buffer *buffer = find_buffer(analysis, name);
	const struct layout *layout = buffer ? describe_layout(analysis->compile, buffer) : NULL;
	struct buf text = { 0 };

	if (!layout)
		return NULL;
	layout_print_csv(&text, layout);
	return keep(analysis, &text);
}

const char *tl_layout_svg(struct tl_analysis *analysis, const char *name)
{
	const struct buffer *buffer = find_buffer(analysis, name);
	struct draw_tile tile = { .name = name };
	struct buf text = { 0 };

	tile.layout = buffer ? describe_layout(analysis->compile, buffer) : NULL;
	if (!tile.layout)
		return NULL;
	tile.kernel = sym_text(analysis->compile->cx.names, analysis->compile->program->name);
	tile.type = buffer->type;
	if (tile.layout->kind == LAYOUT_FRAGMENT)
		draw_fragment(&text, &tile);
	else
		draw_shared(&text, &tile);
	return keep(analysis, &text);
}

/* All launches as one CUDA text; nothing when lowering was not reached or something has no CUDA
 * form. */
static void emit_cuda(struct tl_analysis *analysis, struct buf *out)
{
	const struct compile *compile = analysis->compile;
	struct warp_program **programs =
		arena_array(analysis->arena, struct warp_program *, compile->launches.n);

	for (uint32_t i = 0; i < compile->launches.n; i++) {
		programs[i] = compile->launches.p[i]->warp;
		if (!programs[i])
			return;
	}
	if (compile->launches.n > 0 && !cuda_print(out, programs, compile->launches.n))
		buf_free(out);
}

const char *tl_emit(struct tl_analysis *analysis, const char *stage)
{
	struct buf text = { 0 };

	if (!analysis->compile)
		return NULL;
	if (strcmp(stage, "cuda") == 0)
		emit_cuda(analysis, &text);
	for (const struct pass *pass = compile_passes(); pass->name; pass++)
		if (strcmp(pass->name, stage) == 0)
			pass->dump(&text, analysis->compile);
	if (text.n == 0)
		return NULL;
	return keep(analysis, &text);
}
