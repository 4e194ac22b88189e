/* The wavefront model: closed forms, the measured cp.async rows, and the `banks` verb's text. */
#include "analyzer/banks/banks.h"
#include "analyzer/banks/banks_csv.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

static int64_t gcd(int64_t a, int64_t b)
{
	return b ? gcd(b, a % b) : a;
}

/* Lane l accesses `stride` * l. */
static struct bank_access access_of(const char *op, uint32_t bytes, int64_t stride)
{
	struct bank_access access = { 0 };

	if (!bank_op_parse(op, bytes, &access))
		printf("no operation %s of %u bytes\n", op, bytes);
	access.mask = UINT32_MAX;
	for (int64_t lane = 0; lane < 32; lane++)
		access.offsets[lane] = lane * stride;
	return access;
}

/* Exact wavefronts: the least and the most agree. */
static void check_row(struct check *check, const struct bank_access *access, int32_t wavefronts,
                      int32_t ideal, int32_t ways)
{
	struct bank_result result = bank_wavefronts(access);

	CHECK_INT(check, result.min, wavefronts);
	CHECK_INT(check, result.max, wavefronts);
	CHECK_INT(check, result.ideal, ideal);
	CHECK_INT(check, result.ways, ways);
}

/* A stride of s words makes gcd(s, 32) lanes meet; rows of P bytes make gcd(P / 16, 8) matrix rows
 * meet. */
static void test_strides(struct check *check)
{
	for (int64_t words = 1; words <= 64; words++) {
		struct bank_access load = access_of("ld32", 4, 4 * words);
		struct bank_access store = access_of("st32", 4, 4 * words);
		int32_t ways = (int32_t)gcd(words, 32);
		check_row(check, &load, ways, 1, ways);
		check_row(check, &store, ways, 1, ways);
	}
	for (int64_t chunks = 1; chunks <= 32; chunks++) {
		struct bank_access four = access_of("ldsm4", 16, 16 * chunks);
		struct bank_access one = access_of("stsm1", 16, 16 * chunks);
		struct bank_access wide = access_of("st128", 16, 16 * chunks);
		struct bank_access load = access_of("ld128", 16, 16 * chunks);
		int32_t ways = (int32_t)gcd(chunks, 8);
		check_row(check, &four, 4 * ways, 4, ways);
		check_row(check, &one, ways, 1, ways);
		check_row(check, &wide, 4 * ways, 4, ways);
		check_row(check, &load, 4 * ways, 4, ways);
	}
}

/*
 * No lane, one lane, all lanes on one word (a broadcast; an atomic has none), accesses narrower
 * than a word, copies; and the two lanes that a result names do meet.
 */
static void test_corners(struct check *check)
{
	struct bank_access access = access_of("ld32", 4, 128);
	struct bank_result result;

	access.mask = 0;
	check_row(check, &access, 0, 0, 0);
	access.mask = 1;
	check_row(check, &access, 1, 1, 1);
	access = access_of("ld32", 4, 0);
	check_row(check, &access, 1, 1, 1);
	access = access_of("atom32", 4, 0);
	check_row(check, &access, 32, 1, 32);
	access = access_of("ld8", 1, 1);
	check_row(check, &access, 1, 1, 1);
	access = access_of("cpasync16", 16, 128);
	check_row(check, &access, 4, 4, 1);
	access = access_of("cpasync4", 4, 128);
	check_row(check, &access, 32, 1, 32);
	/* All lanes on one 8-byte word: the two phases merge, stores' do not. */
	access = access_of("ld64", 8, 0);
	check_row(check, &access, 1, 1, 1);
	access = access_of("st64", 8, 0);
	check_row(check, &access, 2, 2, 1);
	/* The two lanes named meet in the bank named. */
	access = access_of("ld32", 4, 8);
	result = bank_wavefronts(&access);
	CHECK_INT(check, result.lane_a != result.lane_b, 1);
	CHECK_INT(check, access.offsets[result.lane_a] / 4 % 32, result.bank);
	CHECK_INT(check, access.offsets[result.lane_b] / 4 % 32, result.bank);
	CHECK(check, !bank_op_parse("ld32", 8, &access));
	CHECK(check, !bank_op_parse("ld256", 16, &access));
}

/* ---- cp.async against the counters ---- */

/* 32 numbers separated by blanks. */
static void read_numbers(char *text, int64_t *numbers)
{
	for (int i = 0; i < 32; i++)
		numbers[i] = strtoll(text, &text, 10);
}

/* One row: op,mask,kind,wavefronts,conflicts,bank_writes,bank_reads,l1_wavefronts,offsets,sources
 */
static void check_copy(struct check *check, char *line, int *n_exact, int *n_bounded)
{
	char *fields[10], *save = NULL;
	struct bank_access access;
	struct bank_result result;
	int64_t sources[32];
	long conflicts;
	int n = 0;

	for (char *field = strtok_r(line, ",", &save); field && n < 10;
	     field = strtok_r(NULL, ",", &save))
		fields[n++] = field;
	/* 16 bytes through L1 is no operation of ours; the header is no row. */
	if (n < 10 || strncmp(fields[0], "cpasync", 7) || strstr(fields[0], "ca"))
		return;
	if (!CHECK(check, bank_op_parse(fields[0], (uint32_t)atoi(fields[0] + 7), &access)))
		return;
	access.mask = (uint32_t)strtoul(fields[1], NULL, 16);
	read_numbers(fields[8], access.offsets);
	read_numbers(fields[9], sources);
	access.sources = sources;
	result = bank_wavefronts(&access);
	conflicts = lround(strtod(fields[4], NULL));
	CHECK(check, result.min - result.ideal <= conflicts && conflicts <= result.max - result.ideal);
	*n_exact += result.min == result.max;
	*n_bounded += result.min != result.max;
}

/*
 * Rows of cp.async that were counted on an H200 (tests/data/cpasync_h200.csv.gz): the bounds hold
 * the counter's conflicts in every row, and in 150 at least they are one number.
 */
static void test_copies(struct check *check)
{
	FILE *rows = popen("gzip -dc tests/data/cpasync_h200.csv.gz", "r");
	char *line = NULL;
	size_t cap = 0;
	int n_exact = 0, n_bounded = 0;

	if (!CHECK(check, rows != NULL))
		return;
	while (getline(&line, &cap, rows) > 0)
		check_copy(check, line, &n_exact, &n_bounded);
	free(line);
	CHECK_INT(check, pclose(rows), 0);
	printf("cp.async: %d rows exact, %d within bounds\n", n_exact, n_bounded);
	CHECK(check, n_exact >= 150);
}

/* ---- the verb's text ---- */

/* A table in, a table out, or a diagnostic. */
static void check_csv(struct check *check, const char *in, bool ok, const char *out)
{
	struct arena *arena = arena_open();
	struct cx cx;
	struct buf text = { 0 };

	cx_init(&cx, arena);
	CHECK_INT(check, banks_csv(&cx, source_add(arena, &cx.sources, "t.csv", str_of(in)), &text),
	          ok);
	if (ok)
		CHECK_TEXT(check, buf_cstr(&text), out);
	else
		CHECK(check, cx.diags.n_errors > 0);
	buf_free(&text);
	arena_close(arena);
}

#define ZEROS "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"

/* Line ends and blanks of any kind; each way in which a row can be malformed. */
static void test_csv(struct check *check)
{
	check_csv(check, "", true, "op,wavefronts,ideal\n");
	check_csv(check, "op,access_bytes,mask,offsets\r\nld32,4,ffffffff," ZEROS "\r\n\n", true,
	          "op,wavefronts,ideal\nld32,1,1\n");
	check_csv(check, "atom32 , 4, 0000000f ,  " ZEROS " ", true,
	          "op,wavefronts,ideal\natom32,4,1\n");
	check_csv(check, "ld32,4,ffffffff", false, NULL);
	check_csv(check, "ld32,8,ffffffff," ZEROS, false, NULL);
	check_csv(check, "ld32,4,fffffff," ZEROS, false, NULL);
	check_csv(check, "ld32,4,fffffffg," ZEROS, false, NULL);
	check_csv(check, "ld32,4,ffffffff," ZEROS " 0", false, NULL);
	check_csv(check, "ld32,4,ffffffff,2 " ZEROS, false, NULL);
	check_csv(check, "ld32,4,ffffffff,-4 " ZEROS, false, NULL);
	check_csv(check, "ld32,4,ffffffff,99999999999999999999 " ZEROS, false, NULL);
	check_csv(check, "frob,4,ffffffff," ZEROS, false, NULL);
}

int main(void)
{
	struct check check = { 0 };

	test_strides(&check);
	test_corners(&check);
	test_copies(&check);
	test_csv(&check);
	return check_end(&check);
}
