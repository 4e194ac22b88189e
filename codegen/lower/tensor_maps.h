/*
 * tensor_maps: what the host must describe to the driver before a program's bulk copies can run:
 * one map for each tensor, box and swizzle that they use, passed behind the kernel's arguments.
 */
#ifndef TL_LOWER_TENSOR_MAPS_H
#define TL_LOWER_TENSOR_MAPS_H

#include "analyzer/layout/tma.h"
#include "codegen/lower/warp.h"

/* One map: cuTensorMapEncodeTiled's tensor, boxDim (innermost first) and swizzle. */
struct tensor_map {
	const struct buffer *tensor;
	int64_t box[TMA_MAX_RANK];
	int64_t span; /* of the swizzle in bytes; 0: none */
};
struct tensor_maps {
	vec_of(struct tensor_map) items;
};

/* The program's maps, in the order in which they are met. */
void tensor_maps_of(const struct warp_program *program, struct arena *arena,
                    struct tensor_maps *out);
/* The number of the copy's map. */
uint32_t tensor_map_of(const struct tensor_maps *maps, const struct wop_tma_load *op);

#endif
