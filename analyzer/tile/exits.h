/*
 * exits: break and continue as conditions.
 *
 * A loop that may be left early keeps its extent; a variable of each thread says whether it goes
 * on. What follows a statement that may leave stands under a condition, so that layouts, barriers
 * and properties see ordinary control flow:
 *
 *     for i in serial(n):            go_on[] = 1
 *         if a: continue             for i in serial(n):
 *         x                              if go_on[] != 0:
 *         if b: break                        if a: pass
 *         y                                  else:
 *                                                x
 *                                                if b: go_on[] = 0
 *                                                else: y
 */
#ifndef TL_TILE_EXITS_H
#define TL_TILE_EXITS_H

#include "analyzer/tile/tile.h"

/*
 * The launch without STMT_BREAK and STMT_CONTINUE; `launch` itself when it has none. Statements
 * that stay as they are keep their numbers; new variables are of scope SCOPE_VAR.
 */
const struct launch *tile_without_exits(struct tile_program *program, const struct launch *launch);

#endif
