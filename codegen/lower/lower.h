/*
 * lower: tile program + solution + schedule -> warp program.
 */
#ifndef TL_LOWER_LOWER_H
#define TL_LOWER_LOWER_H

#include "analyzer/pipeline/pipeline.h"
#include "codegen/lower/warp.h"

/* NULL with diagnostics (E06..) when an op has no lowering for the target. */
struct warp_program *lower_launch(const struct schedule *schedule);
/*
 * The same without the statements that have no lowering; each is reported. `is_whole`: none was
 * left out. The program of an incomplete launch is for counting its accesses, not for running.
 */
struct warp_program *lower_launch_partly(const struct schedule *schedule, bool *is_whole);

#endif
