/*
 * Names are numbered in the order in which they are first seen, so that the same input gives
 * the same numbers.  Their texts are copied, the interner outlives the sources.
 */
#include "base/str.h"

#include "base/map.h"
#include "base/vec.h"

#include <assert.h>
#include <string.h>

/* Texts of the program itself or of an arena: 4 GiB and more is a bug. */
struct str str_of(const char *text)
{
	size_t n = strlen(text);

	assert(n <= UINT32_MAX);
	return (struct str){ text, (uint32_t)n };
}

bool str_equal(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_is(struct str a, const char *text)
{
	return str_equal(a, str_of(text));
}

bool str_starts(struct str a, const char *prefix)
{
	size_t n = strlen(prefix);

	return a.n >= n && (n == 0 || memcmp(a.p, prefix, n) == 0);
}

/* Bytes of the character that starts with `first`; 0 when none does (Unicode, table 3-7). */
static uint32_t utf8_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	if (first >= 0xf0 && first <= 0xf4)
		return 4;
	return 0;
}

/*
 * Overlong forms, surrogates and what lies above U+10FFFF are no characters (Unicode, section
 * 3.9); each byte of such a sequence gives one U+FFFD.
 */
uint32_t str_char_at(struct str text, uint32_t *at)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)text.p + *at;
	uint32_t n, c;

	assert(*at < text.n);
	n = utf8_length(p[0]);
	if (n == 0 || n > text.n - *at) {
		*at += 1;
		return 0xfffd;
	}
	c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
	for (uint32_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			*at += 1;
			return 0xfffd;
		}
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
		*at += 1;
		return 0xfffd;
	}
	*at += n;
	return c;
}

/* An interned name and its hash, which is compared before the bytes. */
struct name {
	struct str text;
	uint64_t hash;
};

/* Open addressing over `names`; slots hold symbol numbers, 0 is free. */
struct interner {
	struct arena *arena;
	vec_of(struct name) names; /* indexed by symbol; names.p[0] is the empty name */
	sym_t *slots;
	uint32_t n_slots;
};

/* Replaces the slots by `n_slots` (a power of two) and places all names anew. */
static void interner_grow(struct interner *names, uint32_t n_slots)
{
	names->slots = arena_array(names->arena, sym_t, n_slots);
	names->n_slots = n_slots;
	for (sym_t sym = 1; sym < names->names.n; sym++) {
		uint32_t slot = (uint32_t)names->names.p[sym].hash & (n_slots - 1);

		while (names->slots[slot])
			slot = (slot + 1) & (n_slots - 1);
		names->slots[slot] = sym;
	}
}

struct interner *interner_open(struct arena *arena)
{
	struct interner *names = arena_new(arena, struct interner);

	names->arena = arena;
	vec_push(arena, &names->names, (struct name){ str_of(""), 0 });
	interner_grow(names, 256);
	return names;
}

/* The empty name is symbol 0, so that a zeroed symbol means "no name". */
sym_t intern(struct interner *names, struct str name)
{
	uint64_t hash = hash_bytes(name.p, name.n, 0);
	uint32_t slot;
	struct str copy;
	sym_t sym;

	if (name.n == 0)
		return 0;
	if (2 * names->names.n >= names->n_slots)
		interner_grow(names, 2 * names->n_slots);
	slot = (uint32_t)hash & (names->n_slots - 1);
	while ((sym = names->slots[slot]) != 0) {
		const struct name *old = &names->names.p[sym];

		if (old->hash == hash && str_equal(old->text, name))
			return sym;
		slot = (slot + 1) & (names->n_slots - 1);
	}
	copy = (struct str){ arena_strndup(names->arena, name.p, name.n), name.n };
	sym = names->names.n;
	vec_push(names->arena, &names->names, (struct name){ copy, hash });
	names->slots[slot] = sym;
	return sym;
}

sym_t intern_text(struct interner *names, const char *text)
{
	return intern(names, str_of(text));
}

const char *sym_text(const struct interner *names, sym_t sym)
{
	assert(sym < names->names.n);
	return names->names.p[sym].text.p;
}
