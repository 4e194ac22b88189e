/*
 * Tensor maps by the driver. Numbers of its enumerations follow the CUDA driver API reference:
 * CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion.
 */
#include "profiler/tensor_map.h"

#include <assert.h>
#include <string.h>

typedef gpu_status encode_tiled(struct gpu_tensor_map *map, int type, uint32_t rank, void *address,
                                const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                                const uint32_t *steps, int interleave, int swizzle, int promotion,
                                int fill);

/* By size alone: copies keep the bits, and zeros outside are zeros of every type. */
static int type_of(uint32_t elem_bytes)
{
	enum { UINT8 = 0, UINT16 = 1, UINT32 = 2, UINT64 = 4 };

	return elem_bytes == 1 ? UINT8 : elem_bytes == 2 ? UINT16 : elem_bytes == 4 ? UINT32 : UINT64;
}

static int swizzle_of(int64_t span)
{
	return span == 128 ? 3 : span == 64 ? 2 : span == 32 ? 1 : 0;
}

bool gpu_encode_map(struct gpu *gpu, const struct tensor_map *map, const struct tensor *tensor,
                    gpu_pointer pointer, struct gpu_tensor_map *out)
{
	enum { NO_INTERLEAVE = 0, PROMOTE_128_BYTES = 2, ZEROS = 0 };
	uint64_t sizes[TMA_MAX_RANK], strides[TMA_MAX_RANK];
	uint32_t box[TMA_MAX_RANK], steps[TMA_MAX_RANK], rank = tensor->buffer->rank;
	void *symbol = dso_symbol(&gpu->library, "cuTensorMapEncodeTiled"), *address;
	encode_tiled *encode;

	assert(rank >= 1 && rank <= TMA_MAX_RANK);
	if (!symbol) {
		diag_report(&gpu->cx->diags, DIAG_E0703, (struct span){ 0 },
		            "the driver has no cuTensorMapEncodeTiled, which bulk copies need");
		diag_help(&gpu->cx->diags, "a driver of CUDA 12.0 or later has it");
		return false;
	}
	memcpy(&encode, &symbol, sizeof(encode));
	for (uint32_t d = 0; d < rank; d++) {
		sizes[d] = (uint64_t)tensor->shape[rank - 1 - d];
		strides[d] = (uint64_t)tensor->strides[rank - 1 - d] * tensor->elem_bytes;
		box[d] = (uint32_t)map->box[d];
		steps[d] = 1;
	}
	address = (void *)(uintptr_t)pointer;
	/* Pitches of all dimensions but the last, which is contiguous. */
	return gpu_ok(gpu,
	              encode(out, type_of(tensor->elem_bytes), rank, address, sizes, strides + 1, box,
	                     steps, NO_INTERLEAVE, swizzle_of(map->span), PROMOTE_128_BYTES, ZEROS),
	              "making a tensor map");
}
