/*
 * fit: digits and XOR terms for a layout that is only a table.
 *
 * A user's lambda is tabulated over the tile; this finds the closed form when there is one: mixed
 * radix digits of each dimension; the same under one XOR term (also where extents are no powers of
 * two); or any map that is linear over F2 with at most MAX_XORS terms. Tables that have none stay
 * tables.
 */
#ifndef TL_LAYOUT_FIT_H
#define TL_LAYOUT_FIT_H

#include "analyzer/layout/layout.h"

/* An equal layout without a table, or NULL. Time: elements x dimensions, times about 150 for XOR
 * terms, most of which fail at their first elements. */
struct layout *layout_fit(struct arena *arena, const struct layout *table);

#endif
