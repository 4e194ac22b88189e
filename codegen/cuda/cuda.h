/*
 * cuda: warp programs to CUDA C++ text that a person can read.
 *
 * The text needs no header: it compiles with nvcc and with NVRTC, for any architecture that has
 * the program's instructions. Each memory access and each mma of the warp program is one asm
 * statement of its width, written by a macro at the top of the text, so that the assembler neither
 * merges nor splits it and its machine code carries the line where the macro is used. `#line`
 * before each statement makes that the kernel file's own line (the file is named once, where a
 * kernel begins).
 *
 * Registers: arrays of float, int, unsigned, double and 64-bit integers hold one slot an element;
 * types of 16 and 8 bits and tfloat32 are arrays of `unsigned` words, lowest slot in the low bits.
 * All indices become constants when the unrolled loops are. Arithmetic on float16 and bfloat16 is
 * done in float and rounded to the type after each operation.
 */
#ifndef TL_CUDA_CUDA_H
#define TL_CUDA_CUDA_H

#include "codegen/lower/warp.h"

/*
 * One module with a kernel for each of the `n` programs (the launches of one kernel file). False
 * with E0690 when something has no CUDA form; the text is then to be thrown away.
 */
bool cuda_print(struct buf *out, struct warp_program *const *programs, uint32_t n);

/*
 * The name of a program's kernel in that text: an identifier that C++ allows. A launch behind the
 * first of its kernel gets its index as a suffix. Lives in the program's arena.
 */
const char *cuda_kernel_name(const struct warp_program *program);

#endif
