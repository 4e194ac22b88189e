/*
 * The text of warp programs: what is read either breaks a rule, with a message, or prints to a text
 * that reads back as the same.
 */
#include "codegen/lower/warp.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char *const fuzz_seeds[] = { "tests/warp/*.warp", "tests/sim/*.warp", NULL };
const uint32_t fuzz_copies = 300;

static struct warp_program *read_text(struct cx *cx, struct expr_pool *pool, struct str text)
{
	struct warp_program *program =
		warp_read(cx, pool, source_add(cx->arena, &cx->sources, "input", text));

	if (!program && cx->diags.n_errors == 0)
		abort();
	return program;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct buf first = { 0 }, second = { 0 };
	struct arena *arena = arena_open();
	struct cx cx = { 0 };

	cx_init(&cx, arena);
	struct expr_pool *pool = expr_pool_open(&cx);
	struct str text = { (const char *)bytes, (uint32_t)n_bytes };
	struct warp_program *program = read_text(&cx, pool, text);
	if (program && warp_verify(program)) {
		warp_print(&first, program);
		program = read_text(&cx, pool, buf_str(&first));
		if (!program)
			abort();
		warp_print(&second, program);
		if (strcmp(buf_cstr(&first), buf_cstr(&second)) != 0)
			abort();
	}
	buf_free(&first);
	buf_free(&second);
	arena_close(arena);
	return 0;
}
