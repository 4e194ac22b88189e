/*
 * raster: the block order of raster.def as a C function, the same formula that the CUDA text has.
 */
#ifndef TL_CUDA_RASTER_H
#define TL_CUDA_RASTER_H

struct raster_place {
	int across, along;
};

/* linear < n_across * n_along; all extents and `width` at least 1. */
struct raster_place raster_place(int linear, int n_across, int n_along, int width);

#endif
