/*
 * Errors, limits and frames of the evaluator.
 *
 * Strict code (kernels, their factories, what these call) reports its mistakes; lenient code (the
 * rest of the module) turns them into unknown values, which matter only when a kernel needs them.
 * A limit that is exceeded is reported in both and ends the evaluation.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

enum { MAX_TEXT_BYTES = 60 };

/* What a span covers, cut at the end of its line and in the middle of no character. */
const char *ev_source_text(struct eval *ev, struct span span)
{
	const struct source *source;
	uint32_t n, at = 0;

	if (span.file == 0)
		return "";
	source = source_get(&ev->cx->sources, span.file);
	n = span.end - span.begin;
	while (at < n && at < MAX_TEXT_BYTES && source->text.p[span.begin + at] != '\n')
		at++;
	while (at > 0 && at < n && ((unsigned char)source->text.p[span.begin + at] & 0xc0) == 0x80)
		at--;
	if (at == n)
		return arena_strndup(ev->cx->arena, source->text.p + span.begin, at);
	return arena_printf(ev->cx->arena, "%.*s...", (int)at, source->text.p + span.begin);
}

/* The file's own words say best what a value is. */
struct value ev_opaque(struct eval *ev, struct span span, const char *text)
{
	struct opaque *opaque = arena_new(ev->cx->arena, struct opaque);

	opaque->text = text ? text : ev_source_text(ev, span);
	opaque->span = span;
	return (struct value){ .kind = V_OPAQUE, .as.opaque = opaque };
}

/*
 * In lenient parts the message becomes the origin of an unknown value, and is told only if that
 * value matters.
 */
struct value ev_error(struct eval *ev, enum diag_code code, struct span span, const char *format,
                      ...)
{
	va_list args;
	char text[400];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ev->has_reported = ev->is_strict && !ev->is_fatal;
	if (ev->has_reported)
		diag_report(&ev->cx->diags, code, span, "%s", text);
	if (ev->is_strict || ev->is_fatal)
		return VALUE_ERROR;
	return ev_opaque(ev, span, arena_strndup(ev->cx->arena, text, strlen(text)));
}

/* Silent after an error that was not reported. */
void ev_note(struct eval *ev, struct span span, const char *format, ...)
{
	va_list args;
	char text[400];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (ev->has_reported)
		diag_note(&ev->cx->diags, span, "%s", text);
}

/* Silent after an error that was not reported. */
void ev_help(struct eval *ev, const char *format, ...)
{
	va_list args;
	char text[400];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (ev->has_reported)
		diag_help(&ev->cx->diags, "%s", text);
}

/* Names the origin that the value has carried along. */
struct value ev_unsettled(struct eval *ev, struct value value, struct span span, const char *what)
{
	const struct opaque *opaque = value.as.opaque;
	struct value result;

	assert(value.kind == V_OPAQUE);
	result = ev_error(ev, DIAG_E0205, span,
	                  "%s depends on a value that the file alone does not settle", what);
	ev_note(ev, opaque->span, "it comes from here: %s", opaque->text);
	ev_help(
		ev,
		"give the parameter that it is computed from (--set NAME=VALUE), or write into this file "
		"what computes it");
	return result;
}

/* The origin is noted when it is not the call itself. */
struct value ev_unknown_effect(struct eval *ev, struct span span, struct value origin)
{
	struct value result;

	result =
		ev_error(ev, DIAG_E0217, span, "nothing is known of what this call does to the kernel");
	if (origin.kind == V_OPAQUE &&
	    (origin.as.opaque->span.file != span.file || origin.as.opaque->span.begin < span.begin ||
	     origin.as.opaque->span.end > span.end))
		ev_note(ev, origin.as.opaque->span, "it comes from here: %s", origin.as.opaque->text);
	ev_help(ev, "write the operations themselves, or a T.macro in this file");
	return result;
}

/* Reported in lenient parts too, once. */
static bool out_of_limit(struct eval *ev, struct span span, const char *what)
{
	if (ev->is_fatal)
		return false;
	ev->is_fatal = true;
	ev->has_reported = true;
	diag_report(&ev->cx->diags, DIAG_E0212, span, "evaluation stopped here: %s", what);
	return false;
}

/* Memory is looked at only now and then. */
bool ev_step(struct eval *ev, struct span span)
{
	enum { CHECK_MEMORY_EVERY = 1024 };

	if (ev->is_fatal)
		return false;
	if (++ev->steps > ev->limits.max_steps)
		return out_of_limit(ev, span, "it needs too many steps");
	if (ev->steps % CHECK_MEMORY_EVERY == 0 &&
	    arena_used_bytes(ev->cx->arena) - ev->begin_bytes > ev->limits.max_bytes)
		return out_of_limit(ev, span, "it needs too much memory");
	return true;
}

/* Pairs with ev_leave; not to be left when it was refused. */
bool ev_enter(struct eval *ev, struct span span)
{
	if (!ev_step(ev, span))
		return false;
	if (ev->depth >= ev->limits.max_depth)
		return out_of_limit(ev, span, "it nests too deeply");
	ev->depth++;
	return true;
}

void ev_leave(struct eval *ev)
{
	assert(ev->depth > 0);
	ev->depth--;
}

/* A comprehension belongs to the kernel language when the function around it does. */
struct frame *new_frame(struct eval *ev, struct frame *parent, const struct function *function)
{
	struct frame *frame = arena_new(ev->cx->arena, struct frame);

	frame->parent = parent;
	frame->function = function;
	frame->is_traced = function ? function->is_traced : parent && parent->is_traced;
	return frame;
}

struct binding *frame_find(struct frame *frame, sym_t name)
{
	assert(frame && name);
	return map_get(&frame->names, name);
}

/* Levenshtein distance of two short words, case ignored; large when either is long. */
static uint32_t word_distance(const char *a, const char *b)
{
	enum { MAX_WORD = 40 };
	size_t n_a = strlen(a), n_b = strlen(b);
	uint32_t row[MAX_WORD + 1];

	if (n_a > MAX_WORD || n_b > MAX_WORD)
		return MAX_WORD;
	for (size_t j = 0; j <= n_b; j++)
		row[j] = (uint32_t)j;
	for (size_t i = 1; i <= n_a; i++) {
		uint32_t corner = row[0];

		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= n_b; j++) {
			uint32_t change = corner + ((a[i - 1] | 0x20) != (b[j - 1] | 0x20));
			uint32_t least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

			corner = row[j];
			row[j] = change < least ? change : least;
		}
	}
	return row[n_b];
}

/* Near is: at most a third of the letters differ. */
const char *nearest_name(const char *name, const char *const *candidates, uint32_t n)
{
	uint32_t best = (uint32_t)strlen(name) / 3 + 1;
	const char *nearest = NULL;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t distance = word_distance(name, candidates[i]);

		if (distance < best || (distance == best && !nearest)) {
			best = distance;
			nearest = candidates[i];
		}
	}
	return nearest;
}
