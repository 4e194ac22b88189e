/*
 * stage: a launch as it is solved: reductions and scans of memory work on fragments, and memory of
 * several shapes has one (alias.h).
 */
#ifndef TL_TILE_STAGE_H
#define TL_TILE_STAGE_H

#include "analyzer/tile/tile.h"

/*
 * The launch without break and continue (exits.h), and with every T.reduce and scan on whole
 * fragments: what stands in shared memory, or is part of a fragment, is copied into a fragment of
 * the region's extents, made for it, and back. T.transpose, T.im2col and T.async_copy become
 * copies, some with a gather. Then tile_unalias. The result is `launch` itself when there is
 * nothing to do; else a launch whose statements are those of `launch` where they did not change
 * (with their ids) and new ones at the end of the program's numbers. It is made once and remembered
 * in launch->staged.
 */
const struct launch *tile_stage(struct tile_program *program, const struct launch *launch);

#endif
