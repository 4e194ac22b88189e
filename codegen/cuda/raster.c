/* The block order on the host. */
#include "codegen/cuda/raster.h"

#include <assert.h>

struct raster_place raster_place(int linear, int n_across, int n_along, int width)
{
	assert(width > 0 && linear >= 0 && linear < n_across * n_along);
#define RASTER(name, expression) const int name = expression;
#include "codegen/cuda/raster.def"
#undef RASTER
	return (struct raster_place){ across, along };
}
