/*
 * map: 64-bit keys to 64-bit values, open addressing, iterated in insertion order
 * (so that nothing is ever printed in hash order).
 */
#ifndef TL_BASE_MAP_H
#define TL_BASE_MAP_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct map_entry {
	uint64_t key;
	union {
		uint64_t number;
		void *pointer;
	} value;
};

/* Zero-initialised is an empty map. */
struct map {
	struct map_entry *entries; /* in insertion order, n of them */
	uint32_t n, cap;
	uint32_t *slots; /* index + 1 into entries, 0 free */
	uint32_t n_slots;
};

/* The entry of `key`, or NULL. */
struct map_entry *map_find(const struct map *map, uint64_t key);
/* The entry of `key`, made with value 0 when it is new. */
struct map_entry *map_at(struct arena *arena, struct map *map, uint64_t key);
/* Pointer convenience: NULL when absent. */
void *map_get(const struct map *map, uint64_t key);
void map_set(struct arena *arena, struct map *map, uint64_t key, void *pointer);
uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed);
uint64_t hash_mix(uint64_t a, uint64_t b);

#endif
