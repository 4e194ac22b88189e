/*
 * arena: the memory of one compilation.
 *
 * Every syntax tree, tile program, layout and warp program lives in an arena and is
 * dropped with it; single objects are never freed.  Allocation never fails: running out
 * of memory prints a message and aborts, so constructors have no error branch.
 * Memory comes back zeroed and aligned to 16 bytes.
 */
#ifndef TL_BASE_ARENA_H
#define TL_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena;

/* A point to which an arena can be rolled back (scratch work, backtracking). */
struct arena_mark {
	void *block;
	size_t used_bytes;
};

struct arena *arena_open(void);
void arena_close(struct arena *arena); /* NULL is fine */

/* `bytes` zeroed bytes; 0 bytes gives a valid, unique pointer. */
void *arena_alloc(struct arena *arena, size_t bytes);
/* `n` zeroed elements of `elem_bytes`; aborts when the product overflows. */
void *arena_alloc_array(struct arena *arena, size_t elem_bytes, size_t n);
/* A copy of `n` bytes with a NUL behind it. */
char *arena_strndup(struct arena *arena, const char *text, size_t n);
/* printf into the arena; the result is NUL-terminated. */
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

struct arena_mark arena_mark(struct arena *arena);
/* Drops all that was allocated since `mark`; it must be read no more. */
void arena_release(struct arena *arena, struct arena_mark mark);
/* Bytes handed out so far, for limits and statistics. */
size_t arena_used_bytes(const struct arena *arena);
/* After `limit_bytes` are handed out arena_over_limit turns true (0: no limit). */
void arena_set_limit(struct arena *arena, size_t limit_bytes);
int arena_over_limit(const struct arena *arena);

#define arena_new(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define arena_array(arena, type, n) ((type *)arena_alloc_array((arena), sizeof(type), (n)))

#endif
