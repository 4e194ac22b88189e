/*
 * alias: one buffer for all shapes of one memory (T.view, T.reshape), one layout for all its types.
 *
 * The shapes of a shared tile, fragment or thread's array are one family: the buffer that is
 * allocated and those made of it. The statements of a launch are rewritten to speak of one member
 * only, so that it has one layout, chosen with the accesses of all shapes:
 *
 *     flat = T.reshape(x, (M * N,))
 *     for i in T.Parallel(M * N):      ->    for i in T.Parallel(M * N):
 *         flat[i] += b[i % N]                    x[i // N, i % N] += b[i % N]
 *
 * Members in another type, and operands of T.gemm in another shape, stay: their elements lie where
 * the owner's layout puts their bytes (layout/view.h).
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
 * The buffer that the memory belongs to: dependences and hazards are those of the owner. Of a
 * global buffer the argument that it is made of, in whatever type; else the member that
 * tile_unalias made its owner; else the buffer itself.
 */
const struct buffer *alias_owner(const struct buffer *buffer);
/* A family's first member: the buffer that was allocated. */
const struct buffer *alias_root(const struct buffer *buffer);

/*
 * The launch with every access of a family as one of the member that stands for it: the one that
 * most operations take as a whole, else the one that most copies do, else the allocated buffer; a
 * member with an annotated layout before all others. A copy of another member becomes a parallel
 * loop. Of fragments it is the shape that the others split further. What cannot be rewritten keeps
 * its buffer: another element type, fragments in shapes that do not split each other, an operand of
 * an operation such as T.gemm; in shared memory it gets the member that stands for it as its owner.
 * The result is `launch` itself when it uses no alias; else statements keep their ids where they
 * stand for the same.
 */
const struct launch *tile_unalias(struct tile_program *program, const struct launch *launch);

#endif
