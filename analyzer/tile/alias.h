/*
 * alias: one buffer for all shapes of one memory (T.view, T.reshape).
 *
 * The shapes of a shared tile, fragment or thread's array are one family: the buffer that is
 * allocated and those made of it. The statements of a launch are rewritten to speak of one member
 * only, so that it has one layout, chosen with the accesses of all shapes:
 *
 *     flat = T.reshape(x, (M * N,))
 *     for i in T.Parallel(M * N):      ->    for i in T.Parallel(M * N):
 *         flat[i] += b[i % N]                    x[i // N, i % N] += b[i % N]
 */
#ifndef TL_TILE_ALIAS_H
#define TL_TILE_ALIAS_H

#include "analyzer/tile/tile.h"

/*
 * The buffer that memory in the device's global memory belongs to: the argument that a T.view or
 * T.reshape is made of, where both lie row-major; else the buffer itself. An element's number is
 * the same in both.
 */
const struct buffer *alias_argument(const struct buffer *buffer);

/*
 * The launch with every access of a family as one of the member that stands for it: the one that
 * most operations take as a whole, else the one that most copies do, else the allocated buffer. A
 * copy of another member becomes a parallel loop. Of fragments it is the shape that the
 * others split further. What cannot be rewritten keeps its buffer: another element type, fragments
 * in shapes that do not split each other, an operand of an operation such as T.gemm. The result is
 * `launch` itself when it uses no alias; else statements keep their ids where they stand for the
 * same.
 */
const struct launch *tile_unalias(struct tile_program *program, const struct launch *launch);

#endif
