/*
 * lower: tile program + solution + schedule -> warp program.
 */
#ifndef TL_LOWER_LOWER_H
#define TL_LOWER_LOWER_H

#include "analyzer/pipeline/pipeline.h"
#include "codegen/lower/warp.h"

/* NULL with diagnostics (E06..) when an op has no lowering for the target. */
struct warp_program *lower_launch(const struct schedule *schedule);

#endif
