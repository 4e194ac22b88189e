/*
 * Entries stand in an array in the order in which they came; a second array, at most half
 * full, maps hash slots to entry numbers (linear probing).  Nothing is ever removed, so that
 * a free slot ends every search.
 */
#include "base/map.h"

#include <assert.h>
#include <string.h>

/* Mixing constants: the finaliser of splitmix64. */
uint64_t hash_mix(uint64_t a, uint64_t b)
{
	uint64_t h = a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2));

	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
	return h ^ (h >> 31);
}

/* Eight bytes a step; the length goes in first, so that trailing zeros count. */
uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
	const unsigned char *p = bytes;
	uint64_t h = hash_mix(seed, n);
	uint64_t word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		h = hash_mix(h, word);
	}
	word = 0;
	if (n) {
		memcpy(&word, p, n);
		h = hash_mix(h, word);
	}
	return h;
}

/* The slot that holds `key`, or the free one where it belongs; there is always a free slot. */
static uint32_t slot_of(const struct map *map, uint64_t key)
{
	uint32_t mask = map->n_slots - 1;
	uint32_t slot = (uint32_t)hash_mix(key, 0) & mask;

	while (map->slots[slot] && map->entries[map->slots[slot] - 1].key != key)
		slot = (slot + 1) & mask;
	return slot;
}

/* The entry is good until the next map_at, which may move all entries. */
struct map_entry *map_find(const struct map *map, uint64_t key)
{
	uint32_t entry;

	if (map->n == 0)
		return NULL;
	entry = map->slots[slot_of(map, key)];
	return entry ? &map->entries[entry - 1] : NULL;
}

/* Doubles the room; slots are kept at most half full. */
static void map_grow(struct arena *arena, struct map *map)
{
	uint32_t cap = map->cap ? map->cap * 2 : 8;
	struct map_entry *entries;

	assert(cap <= UINT32_MAX / 2);
	entries = arena_array(arena, struct map_entry, cap);
	if (map->n)
		memcpy(entries, map->entries, map->n * sizeof(*entries));
	map->entries = entries;
	map->cap = cap;
	map->n_slots = 2 * cap;
	map->slots = arena_array(arena, uint32_t, map->n_slots);
	for (uint32_t i = 0; i < map->n; i++)
		map->slots[slot_of(map, entries[i].key)] = i + 1;
}

/* A new entry's value is zero: the arena gives zeroed memory, and nothing is ever removed. */
struct map_entry *map_at(struct arena *arena, struct map *map, uint64_t key)
{
	struct map_entry *entry = map_find(map, key);

	if (entry)
		return entry;
	if (map->n == map->cap)
		map_grow(arena, map);
	entry = &map->entries[map->n++];
	entry->key = key;
	map->slots[slot_of(map, key)] = map->n;
	return entry;
}

/* NULL both for no entry and for an entry that holds NULL. */
void *map_get(const struct map *map, uint64_t key)
{
	const struct map_entry *entry = map_find(map, key);

	return entry ? entry->value.pointer : NULL;
}

void map_set(struct arena *arena, struct map *map, uint64_t key, void *pointer)
{
	map_at(arena, map, key)->value.pointer = pointer;
}
