/*
 * A chain of blocks; the newest serves allocations. In a build with AddressSanitizer what is not
 * handed out is poisoned and a gap stands between objects, so that a use after arena_release or
 * past an object's end is caught as with malloc.
 *
 * Blocks of BLOCK_BYTES keep the number of calls of malloc small; an object that is larger has a
 * block of its own. Everything is aligned to 16 bytes, which is what malloc promises for any type
 * (C11, 7.22.3 with max_align_t on the machines that this runs on).
 */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif

#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
enum { GAP_BYTES = 16 };
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
enum { GAP_BYTES = 0 };
#endif

enum { ALIGN_BYTES = 16, BLOCK_BYTES = 64 * 1024 };

/* One piece of memory from malloc; `used_bytes` of it are handed out, from the front. */
struct block {
	struct block *older;
	size_t size_bytes; /* of data */
	size_t used_bytes;
	size_t unused; /* keeps data aligned to 16 */
	unsigned char data[];
};

/*
 * `used_bytes` counts what callers hold, not what the blocks take: the limit is about a kernel
 * file's demands, and must not depend on how allocations happen to fall into blocks.
 */
struct arena {
	struct block *newest;
	struct block
		*spare;         /* one released block of BLOCK_BYTES, so that backtracking does not churn */
	size_t used_bytes;  /* handed out and not released, gaps included */
	size_t limit_bytes; /* 0: none */
};

/* The one place where running out of memory ends; nothing above an arena checks for it. */
static _Noreturn void out_of_memory(size_t bytes)
{
	fprintf(stderr, "tilelayout: out of memory (%zu bytes)\n", bytes);
	abort();
}

struct arena *arena_open(void)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		out_of_memory(sizeof(*arena));
	return arena;
}

/* Gives a block back; its poison must not outlive it. */
static void block_free(struct block *block)
{
	UNPOISON(block->data, block->size_bytes);
	free(block);
}

void arena_close(struct arena *arena)
{
	if (!arena)
		return;
	while (arena->newest) {
		struct block *older = arena->newest->older;

		block_free(arena->newest);
		arena->newest = older;
	}
	if (arena->spare)
		block_free(arena->spare);
	free(arena);
}

/*
 * Puts a block with room for `bytes` in front.  What is left of the block before it is not
 * used any more; objects larger than a block get one of their own size.
 */
static struct block *block_add(struct arena *arena, size_t bytes)
{
	size_t size_bytes = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
	struct block *block = arena->spare;

	if (block && size_bytes == BLOCK_BYTES) {
		arena->spare = NULL;
	} else {
		if (size_bytes > SIZE_MAX - sizeof(*block))
			out_of_memory(size_bytes);
		block = malloc(sizeof(*block) + size_bytes);
		if (!block)
			out_of_memory(size_bytes);
		block->size_bytes = size_bytes;
		POISON(block->data, size_bytes);
	}
	block->older = arena->newest;
	block->used_bytes = 0;
	arena->newest = block;
	return block;
}

/*
 * Blocks come from malloc and may be reused after a release, so that zeroing happens here, for
 * the bytes that are asked for only.
 */
void *arena_alloc(struct arena *arena, size_t bytes)
{
	struct block *block = arena->newest;
	size_t total_bytes;
	void *p;

	if (bytes > SIZE_MAX / 2)
		out_of_memory(bytes);
	total_bytes = (bytes + GAP_BYTES + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
	if (total_bytes == 0)
		total_bytes = ALIGN_BYTES;
	if (!block || block->size_bytes - block->used_bytes < total_bytes)
		block = block_add(arena, total_bytes);
	p = block->data + block->used_bytes;
	block->used_bytes += total_bytes;
	arena->used_bytes += total_bytes;
	UNPOISON(p, bytes);
	memset(p, 0, bytes);
	assert(((uintptr_t)p & (ALIGN_BYTES - 1)) == 0);
	return p;
}

void *arena_alloc_array(struct arena *arena, size_t elem_bytes, size_t n)
{
	if (elem_bytes && n > SIZE_MAX / elem_bytes)
		out_of_memory(SIZE_MAX);
	return arena_alloc(arena, elem_bytes * n);
}

char *arena_strndup(struct arena *arena, const char *text, size_t n)
{
	char *copy = arena_alloc(arena, n + 1);

	if (n)
		memcpy(copy, text, n);
	return copy;
}

/* Formats twice, first for the length alone: the text is allocated in its final size. */
char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args, again;
	char *text;
	int n;

	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	assert(n >= 0);
	text = arena_alloc(arena, (size_t)n + 1);
	vsnprintf(text, (size_t)n + 1, format, again);
	va_end(again);
	return text;
}

/* The mark of an arena without blocks is { NULL, 0 }. */
struct arena_mark arena_mark(struct arena *arena)
{
	struct block *block = arena->newest;

	return (struct arena_mark){ block, block ? block->used_bytes : 0 };
}

/*
 * Blocks younger than the mark's go, one of them into the spare; the mark's own block is cut
 * back.  A mark of an empty arena has no block and drops all.
 */
void arena_release(struct arena *arena, struct arena_mark mark)
{
	struct block *block = arena->newest;

	while (block != mark.block) {
		struct block *older;

		assert(block && "the mark belongs to another arena or was released already");
		older = block->older;
		arena->used_bytes -= block->used_bytes;
		if (!arena->spare && block->size_bytes == BLOCK_BYTES) {
			POISON(block->data, block->size_bytes);
			arena->spare = block;
		} else {
			block_free(block);
		}
		block = older;
	}
	arena->newest = block;
	if (!block)
		return;
	assert(mark.used_bytes <= block->used_bytes);
	arena->used_bytes -= block->used_bytes - mark.used_bytes;
	block->used_bytes = mark.used_bytes;
	POISON(block->data + block->used_bytes, block->size_bytes - block->used_bytes);
}

size_t arena_used_bytes(const struct arena *arena)
{
	return arena->used_bytes;
}

void arena_set_limit(struct arena *arena, size_t limit_bytes)
{
	arena->limit_bytes = limit_bytes;
}

/* Allocations go on past the limit: whoever works on untrusted input asks here between steps. */
int arena_over_limit(const struct arena *arena)
{
	return arena->limit_bytes != 0 && arena->used_bytes > arena->limit_bytes;
}
