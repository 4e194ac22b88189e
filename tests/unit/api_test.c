/* The C library as a program outside uses it: only the public header, a kernel from text, what
 * comes back. */
#include "include/tilelayout.h"

#include "tests/unit/check.h"

#include <stdlib.h>

static const char kernel[] =
	"import tilelang.language as T\n"
	"def matmul(M, N, K, dtype='float16'):\n"
	"    @T.prim_func\n"
	"    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype),\n"
	"             C: T.Tensor((M, N), dtype)):\n"
	"        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):\n"
	"            A_shared = T.alloc_shared((64, 32), dtype)\n"
	"            B_shared = T.alloc_shared((32, 64), dtype)\n"
	"            C_local = T.alloc_fragment((64, 64), 'float32')\n"
	"            T.clear(C_local)\n"
	"            for ko in T.Pipelined(T.ceildiv(K, 32), num_stages=2):\n"
	"                T.copy(A[by * 64, ko * 32], A_shared)\n"
	"                T.copy(B[ko * 32, bx * 64], B_shared)\n"
	"                T.gemm(A_shared, B_shared, C_local)\n"
	"            T.copy(C_local, C[by * 64, bx * 64])\n"
	"    return gemm\n";

static const char *const sizes[] = { "M=128", "N=192", "K=64" };

static struct tl_options options_of(const char *const *sets, size_t n)
{
	struct tl_options options = { .size = sizeof(options), .sets = sets, .n_sets = n };

	return options;
}

static struct tl_analysis *analyze(const struct tl_options *options)
{
	return tl_analyze_text("gemm.tl", kernel, strlen(kernel), options);
}

static uint32_t count_lines(const char *text)
{
	uint32_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static bool has(const char *text, const char *what)
{
	return text && strstr(text, what);
}

/*
 * A kernel that is right: no diagnostics, every element in the tables, the line of the gemm in JSON
 * and in CUDA; asked twice the answer is the same text.
 */
static void test_answers(struct check *check)
{
	struct tl_options options = options_of(sizes, 3);
	struct tl_analysis *analysis = analyze(&options);
	const char *csv, *json = tl_json(analysis);

	CHECK_INT(check, tl_status(analysis), TL_FINE);
	CHECK_TEXT(check, tl_diagnostics(analysis), "");
	CHECK(check, has(json, "\"kernel\": \"gemm\"") && has(json, "\"N\": 192") &&
	                 has(json, "\"line\": 14"));
	csv = tl_layout_csv(analysis, "C_local");
	CHECK(check, csv && strncmp(csv, "i,j,replica,thread,slot\n", 24) == 0 &&
	                 count_lines(csv) == 1 + 64 * 64);
	csv = tl_layout_csv(analysis, "A_shared");
	CHECK(check, csv && strncmp(csv, "i,j,offset_bytes\n0,0,0\n", 23) == 0 &&
	                 count_lines(csv) == 1 + 64 * 32);
	CHECK(check, tl_layout_csv(analysis, "no_such") == NULL);
	CHECK(check, has(tl_layout_svg(analysis, "B_shared"), "<svg"));
	CHECK(check, has(tl_emit(analysis, "warp"), "mma"));
	CHECK(check, has(tl_emit(analysis, "cuda"), "#line 14"));
	CHECK(check, tl_emit(analysis, "no_such") == NULL);
	CHECK_TEXT(check, tl_json(analysis), json);
	tl_close(analysis);
}

/*
 * Two of three sizes are missing: the message is in both forms, and there are no layouts and no
 * code.
 */
static void test_missing_parameters(struct check *check)
{
	struct tl_options options = options_of(sizes, 1);
	struct tl_analysis *analysis = analyze(&options);

	CHECK_INT(check, tl_status(analysis), TL_INPUT);
	CHECK(check, has(tl_diagnostics(analysis), "gemm.tl:2:") &&
	                 has(tl_diagnostics(analysis), "error[E0206]"));
	CHECK(check, has(tl_json(analysis), "\"E0206\""));
	CHECK(check, tl_layout_csv(analysis, "C_local") == NULL && tl_emit(analysis, "cuda") == NULL);
	tl_close(analysis);
}

/*
 * All bad options are reported, and a file that is not there is an error of the input. Closing
 * nothing is allowed.
 */
static void test_bad_options(struct check *check)
{
	static const char *const bad[] = { "M", "=3" };
	struct tl_options options = options_of(bad, 2);
	struct tl_analysis *analysis;

	options.target = "sm_1";
	analysis = analyze(&options);
	CHECK_INT(check, tl_status(analysis), TL_INPUT);
	CHECK(check, has(tl_diagnostics(analysis), "no such target 'sm_1'") &&
	                 has(tl_diagnostics(analysis), "'=3'"));
	CHECK(check, has(tl_json(analysis), "\"diagnostics\""));
	tl_close(analysis);
	analysis = tl_analyze_file("no_such_folder/k.tl", NULL);
	CHECK_INT(check, tl_status(analysis), TL_INPUT);
	tl_close(analysis);
	tl_close(NULL);
}

/* A caller that was built against a shorter struct: fields behind its size are not read. */
static void test_shorter_options(struct check *check)
{
	struct tl_options options = options_of(sizes, 3);
	struct tl_analysis *analysis;

	options.size = offsetof(struct tl_options, tensors);
	options.n_tensors = 1000;
	options.tensors = NULL;
	analysis = analyze(&options);
	CHECK_INT(check, tl_status(analysis), TL_FINE);
	tl_close(analysis);
}

int main(void)
{
	struct check check = { 0 };

	test_answers(&check);
	test_missing_parameters(&check);
	test_bad_options(&check);
	test_shorter_options(&check);
	CHECK(&check, tl_version()[0] != '\0');
	return check_end(&check);
}
