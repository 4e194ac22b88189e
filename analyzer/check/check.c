/*
 * The nine properties, each by the file that knows how.
 */
#include "analyzer/check/check_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *property_name_text(enum property_name name)
{
	static const char *const texts[N_PROPERTIES] = {
		"coverage", "injectivity", "owner",  "replicas",    "happens-before",
		"bounds",   "alignment",   "budget", "termination",
	};

	return texts[name];
}

const char *property_status_text(enum property_status status)
{
	static const char *const texts[] = { "proved", "violated", "not proved" };

	return texts[status];
}

static void add_row(struct check *check, struct property property)
{
	vec_push(check->cx->arena, &check->out->items, property);
}

void check_found(struct check *check, struct finding finding, const char *format, ...)
{
	char text[512];
	va_list args;

	if (check->n_found[finding.name]++ >= CHECK_MAX_ROWS)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	add_row(check, (struct property){ finding.name, finding.status, finding.span, finding.buffer,
	                                  arena_printf(check->cx->arena, "%s", text) });
}

bool check_is_told(const struct check *check, enum property_name name, const char *buffer)
{
	for (uint32_t i = 0; i < check->out->items.n; i++)
		if (check->out->items.p[i].name == name &&
		    strcmp(check->out->items.p[i].buffer, buffer) == 0)
			return true;
	return false;
}

void check_proved(struct check *check, enum property_name name, const char *format, ...)
{
	char text[512];
	va_list args;
	struct span none = { 0, 0, 0 };

	if (check->n_found[name])
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	add_row(check, (struct property){ name, PROPERTY_PROVED, none, "",
	                                  arena_printf(check->cx->arena, "%s", text) });
}

const char *check_index_text(struct check *check, const int64_t *index, uint32_t rank)
{
	char *text = arena_printf(check->cx->arena, "(");

	for (uint32_t d = 0; d < rank; d++)
		text = arena_printf(check->cx->arena, "%s%s%lld", text, d ? ", " : "", (long long)index[d]);
	return arena_printf(check->cx->arena, "%s)", text);
}

void check_nothing(struct arena *arena, struct property_list *out, const char *reason)
{
	for (int name = 0; name < N_PROPERTIES; name++)
		vec_push(arena, &out->items,
		         (struct property){ .name = (enum property_name)name,
		                            .status = PROPERTY_NOT_PROVED,
		                            .buffer = "",
		                            .detail = reason });
}

/* The rows of the launch in the order of the names, those of a name as they were found. */
static void sort_rows(struct check *check, struct property_list *out, uint32_t first)
{
	struct property_list sorted = { 0 };

	for (int name = 0; name < N_PROPERTIES; name++)
		for (uint32_t i = first; i < out->items.n; i++)
			if (out->items.p[i].name == (enum property_name)name)
				vec_push(check->cx->arena, &sorted.items, out->items.p[i]);
	for (uint32_t i = 0; i < sorted.items.n; i++)
		out->items.p[first + i] = sorted.items.p[i];
}

void check_partial(const struct schedule *schedule, const struct warp_program *warp,
                   const char *limit, struct property_list *out)
{
	const struct tile_program *program = schedule->solution->program;
	struct property_list found = { 0 }, nothing = { 0 };
	struct check check = { .cx = program->cx,
		                   .pool = program->pool,
		                   .schedule = schedule,
		                   .solution = schedule->solution,
		                   .warp = warp,
		                   .out = &found };
	bool is_violated[N_PROPERTIES] = { false };
	uint32_t first = out->items.n;

	check_global(&check);
	check_writes(&check);
	check_bounds(&check, check.solution->launch, program->buffers.n);
	check_defined(&check);
	check_budget(&check);
	check_nothing(program->cx->arena, &nothing, limit);
	for (uint32_t i = 0; i < found.items.n; i++)
		is_violated[found.items.p[i].name] |= found.items.p[i].status == PROPERTY_VIOLATED;
	for (uint32_t i = 0; i < nothing.items.n; i++)
		if (!is_violated[nothing.items.p[i].name])
			vec_push(program->cx->arena, &out->items, nothing.items.p[i]);
	for (uint32_t i = 0; i < found.items.n; i++)
		if (found.items.p[i].status == PROPERTY_VIOLATED)
			vec_push(program->cx->arena, &out->items, found.items.p[i]);
	sort_rows(&check, out, first);
}

bool check_unsolved(const struct tile_program *program, const struct launch *launch,
                    struct property_list *out)
{
	struct property_list nothing = { 0 };
	struct check check = { .cx = program->cx, .pool = program->pool, .out = out };
	uint32_t first = out->items.n;
	bool is_violated = false;

	check_bounds(&check, launch->staged ? launch->staged : launch, program->buffers.n);
	for (uint32_t i = first; i < out->items.n; i++)
		is_violated |= out->items.p[i].status == PROPERTY_VIOLATED;
	if (!is_violated) {
		out->items.n = first;
		return false;
	}
	check_nothing(program->cx->arena, &nothing, "an index outside of its tile leaves no layout");
	for (uint32_t i = 0; i < nothing.items.n; i++)
		if (nothing.items.p[i].name != PROPERTY_BOUNDS)
			vec_push(program->cx->arena, &out->items, nothing.items.p[i]);
	sort_rows(&check, out, first);
	return true;
}

void check_launch(const struct schedule *schedule, const struct warp_program *warp,
                  struct property_list *out)
{
	const struct tile_program *program = schedule->solution->program;
	struct check check = {
		.cx = program->cx, .pool = program->pool, .schedule = schedule, .warp = warp, .out = out
	};
	uint32_t first = out->items.n;

	check.solution = schedule->solution;
	check_global(&check);
	check_writes(&check);
	check_layouts(&check);
	check_replicas(&check);
	check_bounds(&check, check.solution->launch, program->buffers.n);
	check_defined(&check);
	check_run(&check);
	check_budget(&check);
	check_termination(&check);
	sort_rows(&check, out, first);
}
