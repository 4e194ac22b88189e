/* swizzle_internal: what the files of the swizzle search share. */
#ifndef TL_LAYOUT_SWIZZLE_INTERNAL_H
#define TL_LAYOUT_SWIZZLE_INTERNAL_H

#include "analyzer/layout/swizzle_search.h"

/* A layout as byte offsets of all elements. */
struct offset_table {
	const int32_t *offsets; /* row-major */
	bool is_linear;         /* it and the access are linear over F2: all steps cost the same */
};

/* False when the access cannot be served (wavefronts -1). */
bool swizzle_count_access(const struct swizzle_problem *problem, const struct tile_access *access,
                          const struct offset_table *table, struct swizzle_count *out);
int64_t swizzle_n_elems(const struct swizzle_problem *problem);
/* Byte offsets of `layout`, row-major; `out` has an entry for each element. */
void swizzle_fill_offsets(const struct layout *layout, int32_t *out);
int swizzle_log2(int64_t value); /* -1: no power of two */
int64_t problem_elem_bytes(const struct swizzle_problem *problem);

#endif
