/*
 * check: what a unit-test program needs.
 *
 *     static void test_push(struct check *check) { CHECK(check, 1 + 1 == 2); }
 *
 *     int main(void)
 *     {
 *         struct check check = { 0 };
 *         test_push(&check);
 *         return check_end(&check);
 *     }
 *
 * A failed check prints its place and the program goes on; check_end gives the exit code.
 */
#ifndef TL_TESTS_UNIT_CHECK_H
#define TL_TESTS_UNIT_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { CHECK_EXIT_SKIPPED = 77, CHECK_MAX_SHOWN = 50 };

struct check {
	uint32_t n_checks;
	uint32_t n_failed;
};

/* True, or prints `what` with its place (the first 50 times). */
static inline bool check_true(struct check *check, bool ok, const char *what, const char *file,
                              int line)
{
	check->n_checks++;
	if (ok)
		return true;
	if (check->n_failed++ < CHECK_MAX_SHOWN)
		printf("%s:%d: failed: %s\n", file, line, what);
	return false;
}

/*
 * The next of a sequence of 31-bit numbers that is the same in every run: the high bits of Knuth's
 * linear congruential generator MMIX (The Art of Computer Programming, 3.3.4). Any *state begins
 * one.
 */
static inline uint64_t check_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static inline bool check_int(struct check *check, int64_t got, int64_t want, const char *file,
                             int line)
{
	char what[80];

	snprintf(what, sizeof(what), "%" PRId64 " is not %" PRId64, got, want);
	return check_true(check, got == want, what, file, line);
}

static inline bool check_text(struct check *check, const char *got, const char *want,
                              const char *file, int line)
{
	bool equal = got && want && strcmp(got, want) == 0;

	if (!equal && check->n_failed < CHECK_MAX_SHOWN)
		printf("--- got\n%s\n--- wanted\n%s\n---\n", got ? got : "(NULL)", want ? want : "(NULL)");
	return check_true(check, equal, "texts differ", file, line);
}

/* A program that checked nothing fails. */
static inline int check_end(const struct check *check)
{
	printf("%u checks, %u failed\n", check->n_checks, check->n_failed);
	return check->n_failed > 0 || check->n_checks == 0;
}

/* Ends the program as skipped: its last line is the reason. */
static inline int check_skip(const char *reason)
{
	printf("%s\n", reason);
	return CHECK_EXIT_SKIPPED;
}

#define CHECK(check, condition) check_true((check), (condition), #condition, __FILE__, __LINE__)
#define CHECK_INT(check, got, want) check_int((check), (got), (want), __FILE__, __LINE__)
#define CHECK_TEXT(check, got, want) check_text((check), (got), (want), __FILE__, __LINE__)

#endif
