/*
 * view: the layout of a memory, or of registers, seen as elements of another type or shape.
 *
 * A view's element number e (row-major) is made of the bits e * bits .. of the source's elements,
 * taken in row-major order, the lowest bits first. Where the source keeps those together, the view
 * has a layout of its own over the same bytes (or registers); where it does not, the element is
 * torn:
 *
 *     memory (16, 64) of 16 bits offset = i*128 + j*2, xor 3 bits 7 -> 4
 *     as (16, 32) of 32 bits:    offset = i*128 + j*4, xor 3 bits 7 -> 4
 *     with xor 1 bits 7 -> 1 instead, element (1, 0) has its halves at bytes 130 and 128: torn
 */
#ifndef TL_LAYOUT_VIEW_H
#define TL_LAYOUT_VIEW_H

#include "analyzer/layout/layout.h"

/* What the view's elements are. */
struct view_form {
	uint32_t rank;
	int64_t shape[MAX_RANK];
	uint32_t bits; /* of an element: a multiple of 8, or 8 divided by 2 */
};

/* The first element that the source does not keep together. */
struct view_torn {
	int64_t index[MAX_RANK]; /* of the view */
	struct place first;      /* of its lowest bits */
	/* The first part that does not follow, of `part_bits` each; 0: all do, but the element does not
	   start at a multiple of its size. */
	int64_t part;
	int64_t part_bits;
	struct place second; /* of that part; undefined when it is 0 */
};

/*
 * The view's layout: exactly the source's places. NULL when an element is torn; then `torn` (may be
 * NULL) tells the first. `source_bits` are those of the source's elements (a fragment's layout does
 * not know them). In memory the parts of a wider element must follow each other and start at a
 * multiple of its size; in a fragment they must be in adjacent slots of one register of one thread,
 * the first at a multiple of their number. The source holds as many bits as the form. Time: the
 * view's elements, except for views that cut the last dimension only.
 */
const struct layout *layout_view(struct arena *arena, const struct layout *source,
                                 uint32_t source_bits, const struct view_form *form,
                                 struct view_torn *torn);

#endif
