/*
 * place_map: where a tensor argument's elements lie in global memory.
 *
 * Most lie row-major, or by the strides of T.StridedTensor. T.annotate_layout of an argument gives
 * a function instead: an element's index to `n` numbers, which are an index into an array that is
 * row-major and just large enough. Attention kernels keep the gradient of Q in the order in which
 * an accumulator's threads hold it:
 *
 *     T.Layout(dQ.shape,
 *              lambda b, l, h, d: [b, l // 8, h, d // 8, d % 2, 4 * (l % 8) + d % 8 // 2])
 *
 * Source: TileLang 0.1.15, Layout::OutputShape in src/layout/layout.cc: the extent of a number is
 * its largest value plus one.
 */
#ifndef TL_LAYOUT_PLACE_MAP_H
#define TL_LAYOUT_PLACE_MAP_H

#include "analyzer/layout/layout.h"
#include "analyzer/tile/tile.h"

/*
 * The array that global memory holds of the buffer, and the element's index in it: those of the
 * buffer, or of its map. Extents and index need room for MAX_RANK; gives the rank.
 */
uint32_t place_index(struct expr_pool *pool, const struct buffer *buffer,
                     const struct expr *const *index, const struct expr **place);
uint32_t place_shape(struct expr_pool *pool, const struct buffer *buffer,
                     const struct expr **extents);
/* Number of the element in storage. */
const struct expr *place_offset(struct expr_pool *pool, const struct buffer *buffer,
                                const struct expr *const *index);
/* Elements of storage, -1 when that depends on symbols. */
int64_t place_n_elems(struct expr_pool *pool, const struct buffer *buffer);
/*
 * Can the extents be told? Where the shape has symbols, only of sums of quotients, remainders and
 * multiples of indices.
 */
bool place_is_known(struct expr_pool *pool, const struct buffer *buffer);
/*
 * The same as a layout in bytes; NULL while a size has a symbol, elements are narrower than a byte,
 * or a map is no sum of digits of the index.
 */
struct layout *place_layout(struct arena *arena, struct expr_pool *pool,
                            const struct buffer *buffer);

#endif
