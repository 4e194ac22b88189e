/*
 * A fuzz target without libFuzzer: every seed as it is, then copies of it with a few bytes
 * changed, removed or repeated, by a fixed sequence of numbers.
 *
 *     NAME_fuzz            the seeds
 *     NAME_fuzz --list     their paths
 *     NAME_fuzz FILE...    these files as they are (to repeat a finding)
 */
#include "tests/fuzz/fuzz.h"

#include "base/buf.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xorshift64 (Marsaglia, "Xorshift RNGs"). */
static uint64_t next_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One piece of damage: another byte, a stretch removed, a stretch repeated, or the end cut off. */
static void damage(struct buf *text, uint64_t *state)
{
	size_t at = next_number(state) % text->n;
	size_t n = 1 + next_number(state) % 16;

	if (n > text->n - at)
		n = text->n - at;
	switch (next_number(state) % 4) {
	case 0:
		text->p[at] = (char)next_number(state);
		break;
	case 1:
		memmove(text->p + at, text->p + at + n, text->n - at - n);
		text->n -= n;
		break;
	case 2:
		buf_add(text, "0123456789abcdef", n);
		memmove(text->p + at + n, text->p + at, text->n - at - n);
		break;
	case 3:
		text->n = next_number(state) % 8 ? text->n : at;
		break;
	}
}

static uint32_t run_seed(const char *path, uint32_t n_copies)
{
	struct buf seed = { 0 };
	uint64_t state = 0x9e3779b97f4a7c15u;

	if (!buf_read_file(&seed, path, 0)) {
		perror(path);
		exit(1);
	}
	LLVMFuzzerTestOneInput((const uint8_t *)buf_cstr(&seed), seed.n);
	for (uint32_t i = 0; i < n_copies; i++) {
		struct buf copy = { 0 };

		buf_add(&copy, buf_cstr(&seed), seed.n);
		for (uint64_t k = 1 + next_number(&state) % 4; k > 0 && copy.n > 0; k--)
			damage(&copy, &state);
		LLVMFuzzerTestOneInput((const uint8_t *)buf_cstr(&copy), copy.n);
		buf_free(&copy);
	}
	buf_free(&seed);
	return 1 + n_copies;
}

int main(int argc, char **argv)
{
	bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
	uint32_t n_seeds = 0, n_inputs = 0;

	for (int i = 1; i < argc && !list; i++)
		n_inputs += run_seed(argv[i], 0);
	for (size_t i = 0; fuzz_seeds[i] && (argc == 1 || list); i++) {
		glob_t found;

		if (glob(fuzz_seeds[i], 0, NULL, &found) != 0)
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++, n_seeds++) {
			if (list)
				puts(found.gl_pathv[k]);
			else
				n_inputs += run_seed(found.gl_pathv[k], fuzz_copies);
		}
		globfree(&found);
	}
	if (!list)
		printf("%u seeds, %u inputs\n", n_seeds, n_inputs);
	return list || n_inputs ? 0 : 1;
}
