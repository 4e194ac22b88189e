/* algebra_internal: what the files of the layout algebra share. */
#ifndef TL_LAYOUT_ALGEBRA_INTERNAL_H
#define TL_LAYOUT_ALGEBRA_INTERNAL_H

#include "analyzer/layout/algebra.h"

/* The leaves of a tree in order. */
struct leaves {
	uint32_t n;
	int64_t shape[CUTE_MAX_LEAVES], stride[CUTE_MAX_LEAVES];
};

/* The tree must have at most CUTE_MAX_LEAVES. */
void cute_leaves(const struct cute *a, struct leaves *out);
int64_t leaves_at(const struct leaves *leaves, int64_t coordinate);
/* Neighbours joined and extents of 1 dropped; 1:0 when nothing is left. */
void leaves_coalesce(struct leaves *leaves);
/* By (stride, shape); `places` (may be NULL) is permuted alike. */
void leaves_sort(struct leaves *leaves, int64_t *places);
/* A leaf when there is one. */
const struct cute *leaves_tree(struct arena *arena, const struct leaves *leaves);

#endif
