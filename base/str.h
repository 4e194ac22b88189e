/*
 * str: borrowed slices and interned names.
 *
 * `struct str` borrows; it owns nothing.  `sym_t` is an interned name: two names are equal
 * when their numbers are.  Symbol 0 is the empty name and means "none".
 */
#ifndef TL_BASE_STR_H
#define TL_BASE_STR_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
	const char *p;
	uint32_t n;
};

/* Printf arguments for "%.*s". */
#define STR_ARGS(s) (int)(s).n, (s).p

struct str str_of(const char *text); /* borrows a NUL-terminated text */
bool str_equal(struct str a, struct str b);
bool str_is(struct str a, const char *text);
bool str_starts(struct str a, const char *prefix);
/*
 * The UTF-8 character at byte `*at` (below text.n), which moves behind it.  A byte that starts
 * no valid character gives U+FFFD and moves by one.
 */
uint32_t str_char_at(struct str text, uint32_t *at);

typedef uint32_t sym_t;
struct interner;

struct interner *interner_open(struct arena *arena);
sym_t intern(struct interner *names, struct str name);
sym_t intern_text(struct interner *names, const char *text);
/* NUL-terminated and valid as long as the arena; sym 0 gives "". */
const char *sym_text(const struct interner *names, sym_t sym);

#endif
