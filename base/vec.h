/*
 * vec: a typed growing array in an arena.
 *
 *     vec_of(int) numbers = {0};
 *     vec_push(arena, &numbers, 7);              // statement
 *     for (uint32_t i = 0; i < numbers.n; i++) use(numbers.p[i]);
 *
 * Growing doubles the capacity and leaves the old block in the arena.
 */
#ifndef TL_BASE_VEC_H
#define TL_BASE_VEC_H

#include "base/arena.h"

#include <stdint.h>

#define vec_of(type) \
	struct { \
		type *p; \
		uint32_t n; \
		uint32_t cap; \
	}

/* Room for one more element of `elem_bytes`; the new array (used by vec_push only). */
void *vec_grow(struct arena *arena, void *p, uint32_t n, uint32_t *cap, size_t elem_bytes);

/* Statement: appends `value`. */
#define vec_push(arena, v, ...) \
	do { \
		if ((v)->n == (v)->cap) \
			(v)->p = vec_grow((arena), (v)->p, (v)->n, &(v)->cap, sizeof(*(v)->p)); \
		(v)->p[(v)->n++] = __VA_ARGS__; \
	} while (0)

/* Expression: the last element; the vector must not be empty. */
#define vec_last(v) ((v)->p[(v)->n - 1])
/* Expression: removes and gives the last element. */
#define vec_pop(v) ((v)->p[--(v)->n])

#endif
