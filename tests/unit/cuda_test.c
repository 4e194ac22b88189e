/*
 * The CUDA printer and NVRTC: block order, text of expressions, machine code of warp programs, the
 * kernel cache. Programs are read from tests/emit/NAME.warp. What needs NVRTC is left out, with a
 * line, where there is none.
 */
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/raster.h"
#include "codegen/nvrtc.h"
#include "profiler/bench.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- block order ---- */

/* Every place of the grid is taken once, and a panel's blocks come together. */
static bool is_bijection(int n_across, int n_along, int width)
{
	enum { MAX_BLOCKS = 4096 };
	unsigned char taken[MAX_BLOCKS] = { 0 };
	int n = n_across * n_along, last_panel = 0;

	for (int linear = 0; linear < n; linear++) {
		struct raster_place place = raster_place(linear, n_across, n_along, width);
		if (place.across < 0 || place.across >= n_across || place.along < 0 ||
		    place.along >= n_along)
			return false;
		if (place.across / width < last_panel || taken[place.across * n_along + place.along]++)
			return false;
		last_panel = place.across / width;
	}
	return true;
}

static void test_raster(struct check *check)
{
	int n_bad = 0;

	for (int n_across = 1; n_across <= 21; n_across++)
		for (int n_along = 1; n_along <= 21; n_along++)
			for (int width = 1; width <= 12; width++)
				n_bad += !is_bijection(n_across, n_along, width);
	CHECK_INT(check, n_bad, 0);
	CHECK(check, is_bijection(64, 64, 10) && is_bijection(1, 4096, 3) && is_bijection(4096, 1, 3) &&
	                 is_bijection(63, 65, 64));
	/* Neighbours in time are neighbours in the grid also where a panel ends. */
	for (int linear = 1; linear < 7 * 9; linear++) {
		struct raster_place before = raster_place(linear - 1, 7, 9, 3),
							now = raster_place(linear, 7, 9, 3);
		int moved = abs(now.along - before.along) + (before.across / 3 != now.across / 3);
		CHECK(check, moved <= 1);
	}
}

/* ---- texts ---- */

struct fixture {
	struct arena *arena;
	struct cx cx;
	struct expr_pool *pool;
	struct buf text; /* the CUDA text */
};

static void fixture_open(struct fixture *fixture)
{
	*fixture = (struct fixture){ .arena = arena_open() };
	cx_init(&fixture->cx, fixture->arena);
	fixture->pool = expr_pool_open(&fixture->cx);
}

static void fixture_close(struct fixture *fixture)
{
	buf_free(&fixture->text);
	arena_close(fixture->arena);
}

static void show_diags(struct fixture *fixture)
{
	struct buf text = { 0 };

	diag_print(&text, &fixture->cx.diags, &fixture->cx.sources, false);
	printf("%s", buf_cstr(&text));
	buf_free(&text);
}

/* Reads a warp text and prints it as CUDA. */
static bool print_cuda(struct check *check, struct fixture *fixture, const char *name,
                       struct str source)
{
	uint32_t file = source_add(fixture->arena, &fixture->cx.sources, name, source);
	struct warp_program *program = warp_read(&fixture->cx, fixture->pool, file);
	bool ok = program && cuda_print(&fixture->text, &program, 1);

	if (!CHECK(check, ok))
		show_diags(fixture);
	return ok;
}

/* `value` set into a float register array prints as `wanted`. */
static void check_value(struct check *check, const char *value, const char *wanted)
{
	struct fixture fixture;
	char source[1024], line[512];
	const char *found;

	fixture_open(&fixture);
	snprintf(source, sizeof(source),
	         "warp k threads 128 grid (4, 1, 1) block (bx, by, bz) thread tid\nshared_bytes "
	         "0\nscalar n int32 from -9 to 9\n"
	         "scalar big int64\nreg f float32 [4]\nreg h float16 [4]\nreg b bfloat16 [4]\nreg i "
	         "int32 [4]\nreg r %s [4]\n"
	         "set r[0] <- %s\n",
	         strchr(value, ':') ? "int64" : "float32",
	         strchr(value, ':') ? strchr(value, ':') + 1 : value);
	if (print_cuda(check, &fixture, value, str_of(source))) {
		found = strstr(buf_cstr(&fixture.text), "r[0] = ");
		if (CHECK(check, found)) {
			snprintf(line, sizeof(line), "%.*s", (int)strcspn(found + 7, ";"), found + 7);
			CHECK_TEXT(check, line, wanted);
		}
	}
	fixture_close(&fixture);
}

static void test_values(struct check *check)
{
	check_value(check, "f[1] + f[2]*f[3]", "f[1] + f[2] * f[3]");
	check_value(check, "(f[1] + f[2])*f[3]", "(f[1] + f[2]) * f[3]");
	check_value(check, "f[1] - (f[2] - f[3])", "f[1] - (f[2] - f[3])");
	check_value(check, "exp2(f[0])", "exp2f(f[0])");
	check_value(check, "max(f[0], 0.0f32)", "fmaxf(f[0], 0.0f)");
	check_value(check, "h[1]*h[2]", "round_f16(from_f16(get16(h, 1)) * from_f16(get16(h, 2)))");
	check_value(check, "max(h[1], h[2])", "fmaxf(from_f16(get16(h, 1)), from_f16(get16(h, 2)))");
	check_value(check, "float32(b[3])", "from_bf16(get16(b, 3))");
	check_value(check, "tid//8 % 4", "tid / 8 % 4");
	check_value(check, "(tid % 8) ^ 3", "(tid % 8) ^ 3");
	check_value(check, "n//4", "n >> 2");
	check_value(check, "n % 4", "n & 3");
	check_value(check, "n//3", "floor_div<int>(n, 3)");
	check_value(check, "select(tid < 3, f[0], -f[1])", "tid < 3 ? f[0] : -f[1]");
	check_value(check, ":int64(tid)*1000000007", "(long long)tid * 1000000007LL");
	check_value(check, ":big*2 - int64(n)", "big * 2LL - (long long)n");
}

/* A whole kernel, so that a change of its looks is seen here. */
static void test_module(struct check *check)
{
	static const char source[] =
		"warp add threads 64 grid (2, 1, 1) block (bx, by, bz) thread tid\nsource "
		"\"add.py\"\nshared_bytes 0\n"
		"param A float32 (256) @3\nparam B float32 (256) @3\nreg a float32 [2] @4\n"
		"ld a[0; 2] <- A[bx*128 + tid*2] bytes=8 if tid < 63 @5\n"
		"unroll for i in 2: @6\n    set a[i] <- a[i] + 1.0f32 @7\n"
		"st B[bx*128 + tid*2] <- a[0; 2] bytes=8 @8\n";
	static const char wanted[] =
		"// Generated by tilelayout. Compiles with nvcc and NVRTC; needs no header.\n\n"
		"#define ld_constant_v2_f32_if(condition, x, address) \\\n"
		"\tasm(\"{ .reg .pred p; setp.ne.b32 p, %3, 0; mov.b32 %0, 0; mov.b32 %1, 0; "
		"@p ld.global.nc.v2.f32 {%0, %1}, [%2]; }\" \\\n"
		"\t             : \"=&f\"((x)[0]), \"=&f\"((x)[1]) \\\n"
		"\t             : \"l\"(address), \"r\"((int)(condition)))\n"
		"#define st_global_v2_f32(address, x) \\\n"
		"\tasm volatile(\"st.global.v2.f32 [%0], {%1, %2};\" \\\n"
		"\t             : \\\n"
		"\t             : \"l\"(address), \"f\"((x)[0]), \"f\"((x)[1]) \\\n"
		"\t             : \"memory\")\n\n"
		"// add\n// 64 threads a block, grid 2 x 1 x 1, 0 bytes of shared memory a block\n"
		"extern \"C\" __global__ void __launch_bounds__(64)\n"
		"add(const float *__restrict__ A, float *__restrict__ B)\n{\n"
		"\tconst int bx = blockIdx.x;\n\tconst int tid = threadIdx.x;\n\n\tfloat a[2];\n\n"
		"#line 5 \"add.py\"\n\tld_constant_v2_f32_if(tid < 63, &a[0], &A[bx * 128 + tid * 2]);\n"
		"#pragma unroll\n#line 6\n\tfor (int i = 0; i < 2; i++) {\n#line 7\n\t\ta[i] = a[i] + "
		"1.0f;\n\t}\n"
		"#line 8\n\tst_global_v2_f32(&B[bx * 128 + tid * 2], &a[0]);\n}\n";
	struct fixture fixture;

	fixture_open(&fixture);
	if (print_cuda(check, &fixture, "add.warp", str_of(source)))
		CHECK_TEXT(check, buf_cstr(&fixture.text), wanted);
	fixture_close(&fixture);
}

/* What has no CUDA form is an error at its line, not text that does not compile. */
static void test_unsupported(struct check *check)
{
	static const char source[] =
		"warp k threads 32 grid (1, 1, 1) block (bx, by, bz) thread tid\nsource \"k.py\"\n"
		"shared_bytes 0\nreg a float32 [4]\nreg f float32 [1]\n"
		"set f[0] <- a[1] // a[0] @7\n";
	struct fixture fixture;
	struct warp_program *program;
	uint32_t file;

	fixture_open(&fixture);
	file = source_add(fixture.arena, &fixture.cx.sources, "k.warp", str_of(source));
	program = warp_read(&fixture.cx, fixture.pool, file);
	if (CHECK(check, program)) {
		CHECK(check, !cuda_print(&fixture.text, &program, 1));
		if (CHECK(check, fixture.cx.diags.items.n == 1)) {
			const struct diag *diag = fixture.cx.diags.items.p[0];

			CHECK(check, diag->code == DIAG_E0690);
			CHECK_INT(check, source_line(&fixture.cx.sources, diag->span), 7);
		}
	}
	fixture_close(&fixture);
}

/* Names that C++ or the text's own helpers have are changed, the same one everywhere. */
static void test_names(struct check *check)
{
	static const char source[] =
		"warp main threads 32 grid (1, 1, 1) block (bx, by, bz) thread tid\nshared_bytes 0\n"
		"param float float32 (64)\nreg int float32 [1]\nreg get16 float32 [1]\n"
		"ld int[0] <- float[tid] bytes=4\nset get16[0] <- int[0]\n"
		"st float[tid + 32] <- get16[0] bytes=4\n";
	static const char *const wanted[] = { "main_kernel(float *__restrict__ float_1)",
		                                  "ld_global_f32(&int_1[0], &float_1[tid]);",
		                                  "get16_1[0] = int_1[0];",
		                                  "st_global_f32(&float_1[tid + 32], &get16_1[0]);" };
	struct fixture fixture;

	fixture_open(&fixture);
	if (print_cuda(check, &fixture, "names.warp", str_of(source)))
		for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
			CHECK(check, strstr(buf_cstr(&fixture.text), wanted[i]));
	fixture_close(&fixture);
}

/* ---- machine code ---- */

static const char *const programs[] = { "gemm", "rms", "types" };

static bool read_program(struct check *check, struct fixture *fixture, const char *name)
{
	const char *path = arena_printf(fixture->arena, "tests/emit/%s.warp", name);
	struct buf source = { 0 };
	bool ok = CHECK(check, buf_read_file(&source, path, 0)) &&
	          print_cuda(check, fixture, path, buf_str(&source));

	buf_free(&source);
	return ok;
}

static bool compile_text(struct check *check, struct fixture *fixture, struct nvrtc *nvrtc,
                         bool as_ptx, struct nvrtc_result *result)
{
	struct nvrtc_request request = {
		.text = buf_cstr(&fixture->text), .name = "kernel.cu", .compute = 80, .as_ptx = as_ptx
	};

	if (CHECK(check, nvrtc_compile(nvrtc, &request, result)))
		return true;
	show_diags(fixture);
	return false;
}

/* The kernel line that the PTX instruction containing `word` comes from; 0: none. */
static uint32_t line_of(const char *ptx, const char *word)
{
	const char *at = strstr(ptx, word);
	unsigned file = 0, line = 0;

	if (!at)
		return 0;
	while (at > ptx && strncmp(at, ".loc\t", 5) != 0)
		at--;
	return sscanf(at, ".loc\t%u %u", &file, &line) == 2 ? line : 0;
}

/* Registers stay registers, and every access has its kernel line. */
static void test_ptx(struct check *check, struct nvrtc *nvrtc)
{
	struct fixture fixture;
	struct nvrtc_result result;

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		fixture_open(&fixture);
		nvrtc->cx = &fixture.cx;
		if (read_program(check, &fixture, programs[i]) &&
		    compile_text(check, &fixture, nvrtc, true, &result)) {
			CHECK(check, strstr(result.image.p, ".local") == NULL);
			if (i == 0) {
				CHECK_INT(check, line_of(result.image.p, "ldmatrix.sync"), 29);
				CHECK_INT(check, line_of(result.image.p, "mma.sync"), 29);
				CHECK_INT(check, line_of(result.image.p, "cp.async.cg"), 27);
				CHECK_INT(check, line_of(result.image.p, "st.global"), 34);
				CHECK(check, strstr(result.image.p, "gemm_relu.py"));
			}
		}
		fixture_close(&fixture);
	}
}

/* ---- cache ---- */

/* Changes a byte near the end of every cached file. */
static void damage(const char *folder)
{
	char command[512];

	snprintf(command, sizeof(command),
	         "for f in '%s'/tilelayout/*.bin; do "
	         "printf x | dd of=\"$f\" bs=1 seek=$(($(wc -c < \"$f\") - 9)) conv=notrunc "
	         "2>/dev/null; done",
	         folder);
	if (system(command) != 0)
		printf("could not damage the cache\n");
}

static void test_cache(struct check *check, struct nvrtc *nvrtc)
{
	char folder[] = "/tmp/tilelayout-cache-XXXXXX";
	char command[64];
	struct fixture fixture;
	struct nvrtc_result first, second, third, ptx;

	if (!CHECK(check, mkdtemp(folder)))
		return;
	setenv("XDG_CACHE_HOME", folder, 1);
	fixture_open(&fixture);
	nvrtc->cx = &fixture.cx;
	if (read_program(check, &fixture, "rms") &&
	    compile_text(check, &fixture, nvrtc, false, &first) &&
	    compile_text(check, &fixture, nvrtc, false, &second) &&
	    compile_text(check, &fixture, nvrtc, true, &ptx)) {
		CHECK(check, !first.from_cache && second.from_cache && !ptx.from_cache);
		CHECK(check, first.image.n == second.image.n &&
		                 memcmp(first.image.p, second.image.p, first.image.n) == 0);
		damage(folder);
		if (compile_text(check, &fixture, nvrtc, false, &third)) {
			CHECK(check, !third.from_cache);
			CHECK(check, third.image.n == first.image.n &&
			                 memcmp(first.image.p, third.image.p, first.image.n) == 0);
		}
	}
	fixture_close(&fixture);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	CHECK(check, system(command) == 0);
	setenv("TILELAYOUT_CACHE", "0", 1);
}

static void test_unknown_arch(struct check *check, struct nvrtc *nvrtc)
{
	struct nvrtc_request request = { .text = "extern \"C\" __global__ void k() {}",
		                             .name = "k.cu",
		                             .compute = 990 };
	struct nvrtc_result result;
	struct fixture fixture;

	fixture_open(&fixture);
	nvrtc->cx = &fixture.cx;
	CHECK(check, nvrtc_compile(nvrtc, &request, &result) && result.is_ptx && result.compute < 990);
	request.exact = true;
	CHECK(check, !nvrtc_compile(nvrtc, &request, &result) && fixture.cx.diags.items.n == 1 &&
	                 fixture.cx.diags.items.p[0]->code == DIAG_E0712);
	request = (struct nvrtc_request){ .text = "int x = y;", .name = "k.cu", .compute = 80 };
	CHECK(check, !nvrtc_compile(nvrtc, &request, &result) && fixture.cx.diags.items.n == 2 &&
	                 fixture.cx.diags.items.p[1]->code == DIAG_E0711 &&
	                 fixture.cx.diags.items.p[1]->attachments.n == 1);
	fixture_close(&fixture);
}

static void test_nvrtc(struct check *check)
{
	struct fixture fixture;
	struct nvrtc nvrtc;

	fixture_open(&fixture);
	setenv("TILELAYOUT_CACHE", "0", 1);
	if (!nvrtc_open(&nvrtc, &fixture.cx, NULL)) {
		CHECK(check,
		      fixture.cx.diags.items.n == 1 && fixture.cx.diags.items.p[0]->code == DIAG_E0710);
		printf("no NVRTC: nothing was compiled\n");
	} else {
		test_ptx(check, &nvrtc);
		test_unknown_arch(check, &nvrtc);
		unsetenv("TILELAYOUT_CACHE");
		test_cache(check, &nvrtc);
	}
	nvrtc_close(&nvrtc);
	fixture_close(&fixture);
}

/* ---- times ---- */

static void test_times(struct check *check)
{
	double odd[] = { 5, 1, 4, 2, 3 }, one[] = { 7 }, ten[] = { 10, 9, 8, 7, 6, 5, 4, 3, 2, 1 };
	struct bench_times times = bench_times_of(odd, 5);

	CHECK(check, times.median_us == 3 && times.min_us == 1 && times.max_us == 5);
	times = bench_times_of(ten, 10);
	CHECK(check, times.median_us == 5.5 && times.p10_us == 1 && times.p90_us == 9);
	times = bench_times_of(one, 1);
	CHECK(check, times.median_us == 7 && times.p10_us == 7 && times.p90_us == 7);
}

int main(void)
{
	struct check check = { 0 };

	test_raster(&check);
	test_values(&check);
	test_module(&check);
	test_unsupported(&check);
	test_names(&check);
	test_times(&check);
	test_nvrtc(&check);
	return check_end(&check);
}
