/* The part of vec.h that need not be a macro. */
#include "base/vec.h"

#include <assert.h>
#include <string.h>

/* Doubling keeps the old blocks below the size of the new one in sum. */
void *vec_grow(struct arena *arena, void *p, uint32_t n, uint32_t *cap, size_t elem_bytes)
{
	uint32_t new_cap = *cap ? *cap * 2 : 8;
	void *grown;

	assert(n <= *cap && *cap <= UINT32_MAX / 2);
	grown = arena_alloc_array(arena, elem_bytes, new_cap);
	if (n)
		memcpy(grown, p, (size_t)n * elem_bytes);
	*cap = new_cap;
	return grown;
}
