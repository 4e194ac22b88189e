/*
 * sass: which shared-memory access a machine instruction is.
 *
 * CUPTI counts per address of the machine code; one kernel line can hold several instructions, so
 * the words at that address in the cubin say which access it was. Instructions have 16 bytes since
 * Volta; the fields below were read off code that NVIDIA's assembler made for sm_80, sm_89, sm_90,
 * sm_100 and sm_120.
 */
#ifndef TL_PROFILER_SASS_H
#define TL_PROFILER_SASS_H

#include "base/str.h"

struct sass_word {
	uint64_t low, high;
};

/* The instruction at byte `pc` of a function in a cubin (an ELF file); false when there is none.
 * Any bytes are safe. */
bool sass_find(struct str cubin, const char *function, uint64_t pc, struct sass_word *word);

/*
 * The name of a shared-memory access as the bank table spells it: "ld.shared.16", "st.shared.4",
 * "ldmatrix.x4.trans", "stmatrix.x2", "cp.async.16", "atom.shared.4". False for other instructions
 * and for those that never execute (predicate !PT). `compute`: of the code, 90 for sm_90.
 */
bool sass_access(struct sass_word word, int compute, char name[32]);

#endif
