/*
 * banks_csv: the `banks` verb. Rows of a CSV text in, rows out.
 *
 * In: a header line, then `op,access_bytes,mask,offsets`: an op of bank_op_parse, its bytes a lane
 * (16 for the matrix ops), 8 hex digits with lane 0 the lowest bit, 32 byte offsets separated by
 * spaces. Out: `op,wavefronts,ideal`, a header line first, in the order read; wavefronts is
 * `LO..HI` where the model gives an interval.
 */
#ifndef TL_BANKS_BANKS_CSV_H
#define TL_BANKS_BANKS_CSV_H

#include "base/diag.h"

#include <stdbool.h>

/*
 * Reads source `file` of the context. False with E0940 at each bad row (by line); `out` is
 * incomplete then.
 */
bool banks_csv(struct cx *cx, uint32_t file, struct buf *out);

#endif
