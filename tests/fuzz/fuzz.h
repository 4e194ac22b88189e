/*
 * fuzz: what a fuzz target gives.
 *
 * A target NAME_fuzz.c runs under libFuzzer (`make fuzz`) and, linked with standalone.c, over its
 * seeds and damaged copies of them in `make check`.  It aborts when an invariant breaks.
 */
#ifndef TL_TESTS_FUZZ_FUZZ_H
#define TL_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* One input; always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/* Shell patterns of the seed files, from the repository root, ended by NULL. */
extern const char *const fuzz_seeds[];
/* How many damaged copies of each seed the standalone run tries; 0 where one input is slow. */
extern const uint32_t fuzz_copies;

#endif
