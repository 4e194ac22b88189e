/*
 * Kernel text: each kernel that comes of it prints to a form that reads back as the same, and what
 * is refused has a message.
 */
#include "analyzer/frontend/frontend.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char *const fuzz_seeds[] = { "examples/*.tl", "tests/frontend/*.tl", "tests/frontend/*.py",
	                               NULL };
const uint32_t fuzz_copies = 1000;

/* A program whose printed form is refused, or differs when read, breaks the invariant. */
static void check_round_trip(struct cx *cx, struct expr_pool *pool, struct tile_program *program)
{
	struct buf first = { 0 }, second = { 0 };
	struct tile_program *again;

	tile_print(&first, program);
	again = tile_read(cx, pool, source_add(cx->arena, &cx->sources, "printed", buf_str(&first)));
	if (!again)
		abort();
	tile_print(&second, again);
	if (strcmp(buf_cstr(&first), buf_cstr(&second)) != 0)
		abort();
	buf_free(&first);
	buf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct frontend_options options = { .config = -1,
		                                .limits = { .max_steps = 100000, .max_stmts = 2000 } };
	struct frontend_result result;
	struct arena *arena = arena_open();
	struct cx cx = { 0 };
	struct expr_pool *pool;
	struct buf text = { 0 };
	uint32_t file;

	cx_init(&cx, arena);
	pool = expr_pool_open(&cx);
	file = source_add(arena, &cx.sources, "input",
	                  (struct str){ (const char *)bytes, (uint32_t)n_bytes });
	if (!frontend_run(&cx, pool, file, &options, &result) && cx.diags.n_errors == 0)
		abort();
	for (uint32_t i = 0; i < result.kernels.n; i++) {
		const struct kernel_info *info = result.kernels.p[i];

		if (info->program)
			check_round_trip(&cx, pool, info->program);
		else if (info->diags.n_errors == 0 && !info->missing_params && cx.diags.n_errors == 0)
			abort();
	}
	diag_print(&text, &cx.diags, &cx.sources, false);
	buf_free(&text);
	arena_close(arena);
	return 0;
}
