/*
 * The printed form of tile programs: what is read prints to a form that reads back as the same, and
 * what is refused has a message.
 */
#include "analyzer/tile/tile.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char *const fuzz_seeds[] = { "tests/tile/*.out", NULL };
const uint32_t fuzz_copies = 500;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct buf first = { 0 }, second = { 0 };
	struct tile_program *program, *again;
	struct arena *arena = arena_open();
	struct cx cx = { 0 };
	struct expr_pool *pool;

	cx_init(&cx, arena);
	pool = expr_pool_open(&cx);
	program = tile_read(&cx, pool,
	                    source_add(arena, &cx.sources, "input",
	                               (struct str){ (const char *)bytes, (uint32_t)n_bytes }));
	if (!program && cx.diags.n_errors == 0)
		abort();
	if (program) {
		tile_print(&first, program);
		again = tile_read(&cx, pool, source_add(arena, &cx.sources, "printed", buf_str(&first)));
		if (!again)
			abort();
		tile_print(&second, again);
		if (strcmp(buf_cstr(&first), buf_cstr(&second)) != 0)
			abort();
	}
	buf_free(&first);
	buf_free(&second);
	arena_close(arena);
	return 0;
}
