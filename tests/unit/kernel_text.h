/*
 * kernel_text: a text in a context of its own, for tests of what reads text.
 */
#ifndef TL_TESTS_UNIT_KERNEL_TEXT_H
#define TL_TESTS_UNIT_KERNEL_TEXT_H

#include "analyzer/frontend/frontend.h"

#include <string.h>

struct kernel_text {
	struct arena *arena;
	struct cx cx;
	struct expr_pool *pool;
	uint32_t file;
};

static inline void kernel_text_open(struct kernel_text *kt, const char *text, size_t n)
{
	memset(kt, 0, sizeof(*kt));
	kt->arena = arena_open();
	cx_init(&kt->cx, kt->arena);
	kt->pool = expr_pool_open(&kt->cx);
	kt->file = source_add(kt->arena, &kt->cx.sources, "k.py", (struct str){ text, (uint32_t)n });
}

static inline void kernel_text_close(struct kernel_text *kt)
{
	arena_close(kt->arena);
}

/* "E0101 2:5" of the first diagnostic, "" when there is none. */
static inline const char *kernel_text_first(struct kernel_text *kt)
{
	const struct diag *diag;
	struct line_column at;

	if (kt->cx.diags.items.n == 0)
		return "";
	diag = kt->cx.diags.items.p[0];
	at = source_locate(&kt->cx.sources, diag->span);
	return arena_printf(kt->arena, "%s %u:%u", diag_code_text(diag->code), at.line, at.column);
}

/* All diagnostics as the user sees them. */
static inline const char *kernel_text_diags(struct kernel_text *kt)
{
	struct buf out = { 0 };
	const char *text;

	diag_print(&out, &kt->cx.diags, &kt->cx.sources, false);
	text = arena_strndup(kt->arena, buf_cstr(&out), out.n);
	buf_free(&out);
	return text;
}

#endif
