/*
 * tensor_map: describes tensors to the driver, for a kernel's bulk copies.
 */
#ifndef TL_PROFILER_TENSOR_MAP_H
#define TL_PROFILER_TENSOR_MAP_H

#include "codegen/lower/tensor_maps.h"
#include "profiler/driver.h"
#include "sim/tensors.h"

/* A CUtensorMap: opaque, 128 bytes at a multiple of 64. */
struct gpu_tensor_map {
	_Alignas(64) uint64_t words[16];
};

/*
 * Fills `out` for the tensor at `pointer` (cuTensorMapEncodeTiled of the CUDA driver API, 12.0 or
 * later). False with E0703.
 */
bool gpu_encode_map(struct gpu *gpu, const struct tensor_map *map, const struct tensor *tensor,
                    gpu_pointer pointer, struct gpu_tensor_map *out);

#endif
