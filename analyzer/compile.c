/*
 * The pass table: the whole pipeline from text to the bank table.
 *
 *     tile       text -> tokens -> syntax tree -> host evaluation -> tile program
 *     solution   layouts, partitions, instructions
 *     schedule   stages, buffer versions, places in shared memory
 *     warp       the program of one thread
 *     accesses   predicted wavefronts of every shared access
 *     properties what is proved about it
 */
#include "analyzer/compile.h"

#include "codegen/lower/lower.h"

#include <errno.h>
#include <string.h>

static bool run_tile(struct compile *compile)
{
	struct cx *cx = &compile->cx;

	if (!frontend_run(cx, compile->pool, compile->file, &compile->options.frontend,
	                  &compile->frontend))
		return false;
	compile->program = frontend_require(cx, &compile->options.frontend, &compile->frontend);
	if (!compile->program || !tile_verify(compile->program))
		return false;
	for (uint32_t i = 0; i < compile->program->launches.n; i++) {
		struct launch_result *result = arena_new(cx->arena, struct launch_result);
		result->launch = compile->program->launches.p[i];
		vec_push(cx->arena, &compile->launches, result);
	}
	return true;
}

/* No layouts because an index is outside of its tile: told in place of what the solver met. */
static void explain_by_bounds(struct compile *compile, struct launch_result *result,
                              struct diag_mark mark)
{
	struct property_list *found = &result->properties;

	if (!check_unsolved(compile->program, result->launch, found))
		return;
	diag_rewind(&compile->cx.diags, mark);
	for (uint32_t i = 0; i < found->items.n; i++) {
		const struct property *property = &found->items.p[i];
		if (property->status == PROPERTY_VIOLATED)
			diag_report(&compile->cx.diags, DIAG_E0419, property->span, "%s: %s", property->buffer,
			            property->detail);
	}
	if (compile->options.without_code)
		diag_soften(&compile->cx.diags, mark, DIAG_W0419);
}

static bool run_solution(struct compile *compile)
{
	bool ok = true;

	for (uint32_t i = 0; i < compile->launches.n; i++) {
		struct launch_result *result = compile->launches.p[i];
		struct diag_mark mark = diag_mark(&compile->cx.diags);
		bool is_solved;

		if (compile->options.parity) {
			result->parity =
				parity_tilelang(compile->program, result->launch, compile->options.target);
			result->solution = result->parity->solution;
			ok = ok && result->solution->status != SOLVE_CONFLICT;
			continue;
		}
		result->solution = solve_launch(compile->program, result->launch, compile->options.target,
		                                &compile->options.solve);
		if (result->solution)
			result->launch = result->solution->launch;
		is_solved = result->solution && result->solution->status != SOLVE_CONFLICT &&
		            solution_verify(result->solution);
		if (!is_solved)
			explain_by_bounds(compile, result, mark);
		ok = ok && is_solved;
	}
	return ok;
}

static bool run_schedule(struct compile *compile)
{
	bool ok = true;

	for (uint32_t i = 0; i < compile->launches.n; i++) {
		struct launch_result *result = compile->launches.p[i];
		result->schedule =
			result->parity ? result->parity->schedule : schedule_make(result->solution);
		ok = ok && result->schedule && schedule_verify(result->schedule);
	}
	return ok;
}

/* Why the launch has no code: the first message about it, with its line. */
static const char *limit_text(struct compile *compile, struct diag_mark mark)
{
	const struct diag *diag;
	uint32_t line;

	if (mark.n_items >= compile->cx.diags.items.n)
		return "there is no code for it yet";
	diag = compile->cx.diags.items.p[mark.n_items];
	line = source_line(&compile->cx.sources, diag->span);
	return arena_printf(compile->cx.arena,
	                    "the code is checked, and there is none yet for line %u: %s", line,
	                    diag->message);
}

/* The launch without its code, which is not wanted: what stops it becomes a warning. */
static void run_warp_partly(struct compile *compile, struct launch_result *result)
{
	struct diag_mark mark = diag_mark(&compile->cx.diags);
	struct warp_program *warp;
	bool is_whole = false;

	warp = lower_launch_partly(result->schedule, &is_whole);
	if (is_whole && warp_verify(warp)) {
		result->warp = warp;
		return;
	}
	result->partial = warp;
	result->limit = limit_text(compile, mark);
	diag_soften(&compile->cx.diags, mark, DIAG_W0640);
}

static bool run_warp(struct compile *compile)
{
	bool ok = true;

	for (uint32_t i = 0; i < compile->launches.n && !compile->options.parity; i++) {
		struct launch_result *result = compile->launches.p[i];

		if (compile->options.without_code) {
			run_warp_partly(compile, result);
			continue;
		}
		result->warp = lower_launch(result->schedule);
		ok = ok && result->warp && warp_verify(result->warp);
	}
	return ok;
}

static bool run_accesses(struct compile *compile)
{
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		struct launch_result *result = compile->launches.p[i];

		if (result->parity) {
			parity_accesses(result->parity, &compile->options.assumed);
			result->accesses = result->parity->accesses;
			continue;
		}
		access_table_count(result->warp ? result->warp : result->partial, compile->cx.arena,
		                   &result->accesses);
	}
	return true;
}

static bool run_properties(struct compile *compile)
{
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		struct launch_result *result = compile->launches.p[i];
		if (result->warp)
			check_launch(result->schedule, result->warp, &result->properties);
		else if (result->partial)
			check_partial(result->schedule, result->partial, result->limit, &result->properties);
		else if (result->parity)
			parity_check(result->parity, &result->properties);
	}
	return true;
}

static void dump_tile(struct buf *out, const struct compile *compile)
{
	if (compile->program)
		tile_print(out, compile->program);
}

static void dump_solution(struct buf *out, const struct compile *compile)
{
	for (uint32_t i = 0; i < compile->launches.n; i++)
		if (compile->launches.p[i]->solution)
			solution_print(out, compile->launches.p[i]->solution);
}

static void dump_schedule(struct buf *out, const struct compile *compile)
{
	for (uint32_t i = 0; i < compile->launches.n; i++)
		if (compile->launches.p[i]->schedule)
			schedule_print(out, compile->launches.p[i]->schedule);
}

static void dump_warp(struct buf *out, const struct compile *compile)
{
	for (uint32_t i = 0; i < compile->launches.n; i++)
		if (compile->launches.p[i]->warp)
			warp_print(out, compile->launches.p[i]->warp);
}

static void dump_accesses(struct buf *out, const struct compile *compile)
{
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct access_table *table = &compile->launches.p[i]->accesses;
		buf_line(out, "accesses launch %u counted %s", i, table->counted_grid ? "grid" : "block");
		for (uint32_t j = 0; j < table->sites.n; j++) {
			const struct access_site *site = &table->sites.p[j];
			buf_line(out, "\t@%u %s %s %lld executions %lld wavefronts %lld ideal %lld ways %d",
			         site->line, site->buffer, site->instruction, (long long)site->bytes_per_thread,
			         (long long)site->executions, (long long)site->wavefronts,
			         (long long)site->ideal, site->ways);
		}
	}
}

static void dump_properties(struct buf *out, const struct compile *compile)
{
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct property_list *list = &compile->launches.p[i]->properties;
		for (uint32_t j = 0; j < list->items.n; j++) {
			const struct property *property = &list->items.p[j];
			buf_line(out, "property %s %s %s %s", property_name_text(property->name),
			         property_status_text(property->status), property->buffer, property->detail);
		}
	}
}

static const struct pass passes[] = {
	{ "tile", "kernel text to a verified tile program", run_tile, dump_tile },
	{ "solution", "layouts, partitions and instructions", run_solution, dump_solution },
	{ "schedule", "pipeline stages, buffer versions, shared memory", run_schedule, dump_schedule },
	{ "warp", "the program of one thread", run_warp, dump_warp },
	{ "accesses", "predicted wavefronts of every shared access", run_accesses, dump_accesses },
	{ "properties", "what is proved", run_properties, dump_properties },
	{ NULL, NULL, NULL, NULL },
};

const struct pass *compile_passes(void)
{
	return passes;
}

struct compile *compile_open(struct arena *arena, const struct compile_options *options)
{
	struct compile *compile = arena_new(arena, struct compile);

	cx_init(&compile->cx, arena);
	compile->pool = expr_pool_open(&compile->cx);
	compile->options = *options;
	compile->options.frontend.target = options->target;
	return compile;
}

bool compile_load(struct compile *compile, const char *path)
{
	enum { MAX_FILE_BYTES = 64 << 20 };
	struct buf text = { 0 };

	if (!buf_read_file(&text, strcmp(path, "-") == 0 ? "/dev/stdin" : path, MAX_FILE_BYTES)) {
		struct span none = { 0, 0, 0 };
		diag_report(&compile->cx.diags, DIAG_E0910, none, "cannot read %s: %s", path,
		            strerror(errno));
		buf_free(&text);
		return false;
	}
	compile->file = source_add(compile->cx.arena, &compile->cx.sources, path, buf_str(&text));
	buf_free(&text);
	return true;
}

static bool run_passes(struct compile *compile, const char *last)
{
	for (const struct pass *pass = passes; pass->name; pass++) {
		if (!pass->run(compile) || compile->cx.diags.n_errors)
			return false;
		if (last && !strcmp(last, pass->name))
			return true;
	}
	return true;
}

/* The same file and options with the solver's layouts in place of TileLang's, up to the accesses;
 * NULL when that fails (its diagnostics are dropped). */
static struct compile *compile_own(const struct compile *parity)
{
	const struct source *source = source_get(&parity->cx.sources, parity->file);
	struct compile_options options = parity->options;
	struct compile *own;

	options.parity = false;
	own = compile_open(parity->cx.arena, &options);
	own->file = source_add(own->cx.arena, &own->cx.sources, source->path, source->text);
	if (!run_passes(own, "accesses"))
		return NULL;
	for (uint32_t i = 0; i < own->launches.n; i++)
		if (!own->launches.p[i]->warp)
			return NULL;
	return own;
}

/* The solver's layouts of shared buffers by id: both compiles read the same text alike. */
static const struct layout **own_layouts(const struct compile *compile, uint32_t launch)
{
	const struct compile *own = compile->own;
	uint32_t n = compile->program->buffers.n;
	const struct layout **layouts = arena_array(compile->cx.arena, const struct layout *, n + 1);

	if (!own || own->program->buffers.n != n || own->launches.n != compile->launches.n)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		if (own->program->buffers.p[i]->scope == SCOPE_SHARED)
			layouts[i] = own->launches.p[launch]->solution->buffers[i].layout;
	return layouts;
}

/* What the solver makes of the kernel, and the edits that its layouts suggest. */
static void compare_own(struct compile *compile)
{
	compile->own = compile_own(compile);
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		struct parity *parity = compile->launches.p[i]->parity;

		if (parity)
			parity_find_fixes(parity, own_layouts(compile, i), &compile->options.assumed);
	}
}

bool compile_run(struct compile *compile, const char *last)
{
	bool ok = run_passes(compile, last);

	if (compile->options.parity && !last && compile->program)
		compare_own(compile);
	return ok;
}
