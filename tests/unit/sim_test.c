/*
 * The simulator: values of each instruction, each kind of finding, a pipelined gemm and what
 * breaking it shows.
 */
#include "sim/sim.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

/* A program from text with its tensors, after a run. */
struct fixture {
	struct arena *arena;
	struct cx cx;
	struct warp_program *program;
	struct tensor_set tensors;
	struct sim_result result;
};

static void show_diags(const struct fixture *fixture)
{
	struct buf text = { 0 };

	diag_print(&text, &fixture->cx.diags, &fixture->cx.sources, false);
	printf("%s", buf_cstr(&text));
	buf_free(&text);
}

/* Reads and opens; NULL (with what was reported printed) when that fails. */
static struct fixture *open_text(const char *text)
{
	struct arena *arena = arena_open();
	struct fixture *fixture = arena_new(arena, struct fixture);
	struct tensor_uses uses = { 0 };
	int64_t *values;
	struct expr_pool *pool;

	fixture->arena = arena;
	cx_init(&fixture->cx, arena);
	pool = expr_pool_open(&fixture->cx);
	fixture->program = warp_read(
		&fixture->cx, pool, source_add(arena, &fixture->cx.sources, "test.warp", str_of(text)));
	if (!fixture->program) {
		show_diags(fixture);
		arena_close(arena);
		return NULL;
	}
	tensor_uses_of_warp(fixture->program, &uses);
	values = arena_array(arena, int64_t, expr_n_vars(pool));
	if (!tensors_open(&fixture->cx, &uses, values, &fixture->tensors)) {
		show_diags(fixture);
		arena_close(arena);
		return NULL;
	}
	return fixture;
}

static void close_fixture(struct fixture *fixture)
{
	tensors_close(&fixture->tensors);
	arena_close(fixture->arena);
}

/* max_steps 0: no limit. */
static void run_fixture(struct check *check, struct fixture *fixture, uint64_t max_steps)
{
	struct sim_options options = { .max_steps = max_steps };

	CHECK(check, sim_run(fixture->program, &fixture->tensors, &options, &fixture->result));
}

/* A tensor of float32. */
static float *floats_of(struct fixture *fixture, uint32_t tensor)
{
	return (float *)(void *)fixture->tensors.items[tensor].bytes;
}

/* An element of a float16 tensor. */
static double half_at(const struct fixture *fixture, uint32_t tensor, int64_t element)
{
	uint16_t bits;

	memcpy(&bits, fixture->tensors.items[tensor].bytes + 2 * element, 2);
	return dtype_decode(DTYPE_F16, bits);
}

static const char header[] = "warp w threads 64 grid (1, 1, 1) block (bx, by, bz) thread tid\n"
							 "source \"k.tl\"\n"
							 "shared_bytes 1024\n"
							 "param A float32 (64)\n"
							 "param C float32 (64)\n"
							 "param H float16 (64)\n"
							 "shared s float32 at 0 align 16 versions 2 x 256 bytes\n"
							 "shared t float16 at 512 align 16 versions 1 x 512 bytes\n"
							 "reg x float32 [8]\n"
							 "reg h float16 [8]\n"
							 "reg n int32 [4]\n"
							 "table twice [0, 2, 4, 6]\n"
							 "\n";

/* ---- findings ---- */

/*
 * A body, the first finding's kind (-1: none), its kernel line and that of the other side (0:
 * none).
 */
struct finding_case {
	const char *body;
	int kind;
	uint32_t line, other_line;
};

#define LOAD_A "ld x[0] <- A[tid] bytes=4 @1\n"
#define ZERO_H "unroll for z in 8:\n    set h[z] <- 0.0f16 @1\n"
#define ZERO_S "st s[tid * 4] <- x[0] bytes=4 @2\n"
#define ADD_ALL "red s[tid % 2 * 4] <- x[0] bytes=4 kind=1 @3\n"
#define COPY_IN "cp.async s[tid * 4] <- A[tid] bytes=4 @1\n"
#define READ_NEXT "ld x[0] <- s[(tid + 1) % 64 * 4] bytes=4 @3\n"

static const struct finding_case finding_cases[] = {
	{ LOAD_A "st s[tid * 4] <- x[0] bytes=4 @2\nbarrier\n" READ_NEXT, -1, 0, 0 },
	{ LOAD_A "st s[tid * 4] <- x[0] bytes=4 @2\n" READ_NEXT, SIM_SHARED_RACE, 3, 2 },
	{ LOAD_A "st s[tid * 4] <- x[0] bytes=4 @2\nld x[1] <- s[tid * 4] bytes=4 @3\n", -1, 0, 0 },
	{ LOAD_A "st s[tid * 4] <- x[0] bytes=4\nbarrier\n" READ_NEXT
	         "st s[tid * 4] <- x[0] bytes=4 @4\n",
	  SIM_SHARED_RACE, 4, 3 },
	{ LOAD_A "st s[tid * 4] <- x[0] bytes=4\nbarrier\n" READ_NEXT
	         "barrier\nst s[tid * 4] <- x[0] bytes=4 @4\n",
	  -1, 0, 0 },
	{ LOAD_A "st s[tid * 4] <- x[0] bytes=4\nbarrier\nld x[0] <- s[0] bytes=4 @3\n"
	         "st s[tid * 4] <- x[0] bytes=4 if tid == 0 @4\n",
	  SIM_SHARED_RACE, 4, 3 },
	{ LOAD_A "st s[tid // 2 * 4] <- x[0] bytes=4 @2\n", SIM_SHARED_RACE, 2, 2 },
	{ LOAD_A "st s[tid * 4] <- x[0] bytes=4 @2\nshfl.xor x[1] <- x[0] mask=1\n" READ_NEXT,
	  SIM_SHARED_RACE, 3, 2 },

	/* Atomics meet atomics, but neither stores nor reads without a barrier. */
	{ LOAD_A ZERO_S "barrier\n" ADD_ALL ADD_ALL, -1, 0, 0 },
	{ LOAD_A ZERO_S "barrier\n" ADD_ALL "barrier\nld x[0] <- s[0] bytes=4 @4\n", -1, 0, 0 },
	{ LOAD_A ZERO_S ADD_ALL, SIM_SHARED_RACE, 3, 2 },
	{ LOAD_A ZERO_S "barrier\n" ADD_ALL "ld x[0] <- s[0] bytes=4 if tid == 63 @4\n",
	  SIM_SHARED_RACE, 4, 3 },
	{ LOAD_A ZERO_S "barrier\n" ADD_ALL "st s[0] <- x[0] bytes=4 if tid == 63 @4\n",
	  SIM_SHARED_RACE, 4, 3 },
	{ LOAD_A ZERO_S "barrier\nld x[0] <- s[0] bytes=4 @4\n" ADD_ALL, SIM_SHARED_RACE, 3, 4 },
	{ LOAD_A ADD_ALL, SIM_UNINITIALISED, 3, 0 },
	{ LOAD_A "red C[0] <- x[0] bytes=4 kind=1 @3\n", -1, 0, 0 },
	{ LOAD_A "st C[tid] <- x[0] bytes=4 @2\nred C[0] <- x[0] bytes=4 kind=1 @3\n", SIM_GLOBAL_RACE,
	  3, 2 },
	{ LOAD_A "red C[0] <- x[0] bytes=4 kind=1 @3\nld x[0] <- C[0] bytes=4 if tid == 1 @4\n",
	  SIM_GLOBAL_RACE, 4, 3 },

	{ COPY_IN "cp.async.commit\ncp.async.wait n_pending=0\nbarrier\n" READ_NEXT, -1, 0, 0 },
	{ COPY_IN "cp.async.commit\ncp.async.wait n_pending=0\n" READ_NEXT, SIM_SHARED_RACE, 3, 1 },
	{ COPY_IN "cp.async.commit\ncp.async.wait n_pending=1\nbarrier\n" READ_NEXT, SIM_SHARED_RACE, 3,
	  1 },
	{ COPY_IN "cp.async.commit\ncp.async.commit\ncp.async.wait n_pending=1\nbarrier\n" READ_NEXT,
	  -1, 0, 0 },
	{ COPY_IN "cp.async.wait n_pending=0\nbarrier\n" READ_NEXT, SIM_SHARED_RACE, 3, 1 },
	{ COPY_IN "cp.async.commit\nld x[0] <- s[tid * 4] bytes=4 @3\n", SIM_SHARED_RACE, 3, 1 },
	{ COPY_IN COPY_IN, SIM_SHARED_RACE, 1, 1 },
	{ LOAD_A COPY_IN "st s[tid * 4] <- x[0] bytes=4 @2\n", SIM_SHARED_RACE, 2, 1 },
	{ LOAD_A "st s[tid * 4] <- x[0] bytes=4\nbarrier\n" READ_NEXT COPY_IN, SIM_SHARED_RACE, 1, 3 },

	{ "set x[0] <- x[1] @1\n", -1, 0, 0 },
	{ "set x[0] <- x[1] @1\nst C[tid] <- x[0] bytes=4 @2\n", SIM_UNINITIALISED, 2, 0 },
	{ "set x[0] <- select(tid < 64, 1.0f32, x[1]) @1\n", -1, 0, 0 },
	{ "st C[tid] <- x[0] bytes=4 @1\n", SIM_UNINITIALISED, 1, 0 },
	{ "shfl.xor x[0] <- x[1] mask=1 @1\n", -1, 0, 0 },
	{ "set x[1] <- 0.0f32 if tid != 5\nshfl.xor x[0] <- x[1] mask=1\nst C[tid] <- x[0] bytes=4 "
	  "@2\n",
	  SIM_UNINITIALISED, 2, 0 },
	{ "set n[0] <- n[1]\nif n[0] < 3: @1\n    set n[1] <- 0\n", SIM_UNINITIALISED, 1, 0 },
	{ "ld x[0] <- A[n[0]] bytes=4 @1\n", SIM_UNINITIALISED, 1, 0 },
	{ ZERO_H "unroll for z in 4:\n    set x[z] <- 0.0f32\n"
	         "mma x[0; 4] <- h[0; 8], h[0; 4] shape=m16n8k16.f32.f16\n",
	  -1, 0, 0 },
	{ ZERO_H "mma x[0; 4] <- h[0; 8], h[0; 4] shape=m16n8k16.f32.f16 @2\n", SIM_UNINITIALISED, 2,
	  0 },
	{ "ld x[0] <- s[tid * 4] bytes=4 @1\n", SIM_UNINITIALISED, 1, 0 },
	{ "ldmatrix h[0; 8] <- t[tid % 32 * 16] n_matrices=4 trans=0 @1\n", SIM_UNINITIALISED, 1, 0 },
	{ "ld h[0; 2] <- H[tid] bytes=4 if tid % 2 == 0 @1\nst H[tid] <- h[0] bytes=2 if tid < 0\n", -1,
	  0, 0 },

	{ "ld x[0] <- A[tid + 1] bytes=4 @1\n", SIM_OUT_OF_BOUNDS, 1, 0 },
	{ "ld x[0] <- A[tid + 1] bytes=4 if tid < 63 @1\n", -1, 0, 0 },
	{ "ld x[0] <- A[tid - 1] bytes=4 @1\n", SIM_OUT_OF_BOUNDS, 1, 0 },
	{ LOAD_A "st s[tid * 8 + 4] <- x[0] bytes=4 @1\n", -1, 0, 0 },
	{ LOAD_A "st s[tid * 8 + 8] <- x[0] bytes=4 @1\n", SIM_OUT_OF_BOUNDS, 1, 0 },
	{ "cp.async s[tid * 16] <- A[0] bytes=16 @1\n", SIM_OUT_OF_BOUNDS, 1, 0 },
	{ "for i in 9:\n    set x[i] <- 0.0f32 @1\n", SIM_OUT_OF_BOUNDS, 1, 0 },
	{ "set n[0] <- twice[tid] @1\n", SIM_OUT_OF_BOUNDS, 1, 0 },
	{ "ld x[0; 2] <- A[tid % 32] bytes=8 @1\n", SIM_MISALIGNED, 1, 0 },
	{ LOAD_A "st s[tid * 4 + 2] <- x[0] bytes=4 if tid < 60 @2\n", SIM_MISALIGNED, 2, 0 },
	{ "set h[0] <- 0.0f16\nunroll for i in 4:\n    st t[tid * 8 + i * 2] <- h[0] bytes=2\nbarrier\n"
	  "ldmatrix h[0; 8] <- t[tid % 32 * 8] n_matrices=4 trans=0 @1\n",
	  SIM_MISALIGNED, 1, 0 },
	{ "cp.async s[tid * 4] <- A[tid] bytes=8 @1\n", SIM_MISALIGNED, 1, 0 },

	{ LOAD_A "st C[0] <- x[0] bytes=4 @2\n", SIM_GLOBAL_RACE, 2, 2 },
	{ "set x[0] <- 1.0f32\nst C[0] <- x[0] bytes=4 @2\n", -1, 0, 0 },
	{ LOAD_A "st C[tid] <- x[0] bytes=4 @2\nld x[0] <- C[63 - tid] bytes=4 @3\n", SIM_GLOBAL_RACE,
	  3, 2 },
	{ LOAD_A "st C[tid] <- x[0] bytes=4\nbarrier\nld x[0] <- C[63 - tid] bytes=4\n", -1, 0, 0 },

	{ "if tid < 32:\n    barrier @1\n", SIM_BARRIER, 1, 0 },
	{ "barrier if tid != 5 @1\n", SIM_BARRIER, 1, 0 },
	{ "if tid < 32:\n    barrier.part id=1 n_threads=32\n", -1, 0, 0 },
	{ "if tid < 32:\n    barrier.part id=1 n_threads=64 @1\n", SIM_BARRIER, 1, 0 },
	/* a barrier of the first warp orders that warp and no other */
	{ LOAD_A "st s[tid * 4] <- x[0] bytes=4 @2\nif tid < 32:\n"
	         "    barrier.part id=1 n_threads=32\n    ld x[0] <- s[124 - tid * 4] bytes=4 @3\n",
	  -1, 0, 0 },
	{ LOAD_A "st s[tid * 4] <- x[0] bytes=4 @2\nif tid < 32:\n"
	         "    barrier.part id=1 n_threads=32\n    ld x[0] <- s[252 - tid * 4] bytes=4 @3\n",
	  SIM_SHARED_RACE, 3, 2 },
	{ "for i in 1 + tid % 2:\n    barrier @1\n", SIM_BARRIER, 1, 0 },
	{ "set n[0] <- 0\nwhile n[0] < tid // 63 + 1:\n    set n[0] <- n[0] + 1\n    barrier @1\n",
	  SIM_BARRIER, 1, 0 },
	{ LOAD_A "if tid < 32:\n    shfl.xor x[0] <- x[0] mask=1\n", -1, 0, 0 },
	{ LOAD_A "if tid < 40:\n    shfl.xor x[0] <- x[0] mask=1 @1\n", SIM_PARTIAL_WARP, 1, 0 },
	{ "set n[0] <- 1 // (tid // 64) @1\n", SIM_UNDEFINED, 1, 0 },
	{ "set n[0] <- 0\nwhile n[0] < 1:\n    set n[1] <- 0 @1\n", SIM_STEP_LIMIT, 1, 0 },
};

/*
 * The first finding is of that kind, at that line and against that other line; each finding becomes
 * one diagnostic.
 */
static void test_finding(struct check *check, const struct finding_case *c)
{
	struct arena *arena = arena_open();
	struct fixture *fixture = open_text(arena_printf(arena, "%s%s", header, c->body));
	const struct sim_finding *finding;
	bool ok = true;

	if (!CHECK(check, fixture != NULL)) {
		printf("%s\n", c->body);
		arena_close(arena);
		return;
	}
	run_fixture(check, fixture, 100000);
	finding = fixture->result.findings.n ? fixture->result.findings.p : NULL;
	ok = CHECK_INT(check, finding ? (int)finding->kind : -1, c->kind) && ok;
	if (finding) {
		const struct source_set *sources = &fixture->cx.sources;
		ok = CHECK_INT(check, source_line(sources, finding->span), c->line) && ok;
		ok = CHECK_INT(check, source_line(sources, finding->other_span), c->other_line) && ok;
		CHECK(check, finding->text[0] && finding->n > 0);
		sim_report(&fixture->cx, &fixture->result);
		CHECK_INT(check, fixture->cx.diags.n_errors, fixture->result.findings.n);
	}
	if (!ok) {
		printf("%s", c->body);
		show_diags(fixture);
	}
	close_fixture(fixture);
	arena_close(arena);
}

/* ---- values ---- */

/* Runs header + body; the result must be without findings. */
static struct fixture *run_clean(struct check *check, const char *text)
{
	struct fixture *fixture = open_text(text);

	if (!CHECK(check, fixture != NULL))
		return NULL;
	run_fixture(check, fixture, 0);
	if (!CHECK(check, fixture->result.n_findings == 0)) {
		sim_report(&fixture->cx, &fixture->result);
		show_diags(fixture);
	}
	return fixture;
}

/* A body that writes C, and the value of C[t]. */
struct value_case {
	const char *body;
	double (*want)(const float *a, int t);
};

/* Five steps of a butterfly, in the order of the instructions: bit for bit. */
static double want_warp_sum(const float *a, int t)
{
	float v[32], w[32];

	for (int l = 0; l < 32; l++)
		v[l] = a[t / 32 * 32 + l];
	for (int mask = 16; mask; mask /= 2) {
		for (int l = 0; l < 32; l++)
			w[l] = v[l] + v[l ^ mask];
		memcpy(v, w, sizeof(v));
	}
	return (double)v[t % 32];
}

/* A predicate that is false leaves 0 in the register. */
static double want_guarded(const float *a, int t)
{
	return t < 10 ? (double)a[t] : 0.0;
}

/* Loops, branches and while loops whose trip counts differ from lane to lane. */
static double want_loops(const float *a, int t)
{
	(void)a;
	return t % 5 + 100 * (t < 7) + 1000 * (t % 3);
}

/* A register of float16 rounds. */
static double want_half(const float *a, int t)
{
	return dtype_round(DTYPE_F16, (double)a[t]) + 1.0;
}

/* cp.async whose predicate is false writes zeros (PTX ISA, cp.async: ignore-src). */
static double want_zero_filled(const float *a, int t)
{
	return t % 2 ? (double)a[t] : 0.0;
}

/* Two versions of a buffer, a barrier between write and read: no race, and the last value. */
static double want_blocks(const float *a, int t)
{
	(void)a;
	return (t - 1 + 64) % 64 * 3;
}

static const struct value_case value_cases[] = {
	{ LOAD_A "unroll for i in 5:\n    shfl.xor x[1] <- x[0] mask=1\n", NULL },
	{ LOAD_A "shfl.xor x[1] <- x[0] mask=16\nset x[0] <- x[0] + x[1]\n"
	         "shfl.xor x[1] <- x[0] mask=8\nset x[0] <- x[0] + x[1]\n"
	         "shfl.xor x[1] <- x[0] mask=4\nset x[0] <- x[0] + x[1]\n"
	         "shfl.xor x[1] <- x[0] mask=2\nset x[0] <- x[0] + x[1]\n"
	         "shfl.xor x[1] <- x[0] mask=1\nset x[0] <- x[0] + x[1]\nst C[tid] <- x[0] bytes=4\n",
	  want_warp_sum },
	{ "ld x[0] <- A[tid] bytes=4 if tid < 10\nst C[tid] <- x[0] bytes=4\n", want_guarded },
	{ "set n[0] <- 0\nset n[1] <- 0\nfor i in tid % 5:\n    set n[0] <- n[0] + 1\n"
	  "if tid < 7:\n    set n[0] <- n[0] + 100\nelse:\n    set n[0] <- n[0] + 0\n"
	  "while n[1] < tid % 3:\n    set n[0] <- n[0] + 1000\n    set n[1] <- n[1] + 1\n"
	  "set x[0] <- float32(n[0])\nst C[tid] <- x[0] bytes=4\n",
	  want_loops },
	{ LOAD_A "set h[0] <- x[0]\nset x[0] <- float32(h[0]) + 1.0f32\nst C[tid] <- x[0] bytes=4\n",
	  want_half },
	{ "cp.async s[tid * 4] <- A[tid] bytes=4 if tid % 2 == 1\ncp.async.commit\n"
	  "cp.async.wait n_pending=0\nld x[0] <- s[tid * 4] bytes=4\nst C[tid] <- x[0] bytes=4\n",
	  want_zero_filled },
	{ "for v in 3:\n    set x[0] <- float32(tid * (v + 1))\n"
	  "    st s[v % 2 * 256 + tid * 4] <- x[0] bytes=4\n    barrier\n"
	  "    ld x[1] <- s[v % 2 * 256 + (tid + 63) % 64 * 4] bytes=4\n"
	  "st C[tid] <- x[1] bytes=4\n",
	  want_blocks },
};

/* C[t] is what the function of plain C computes for each t, and the run has no finding. */
static void test_values(struct check *check, const struct value_case *c)
{
	struct arena *arena = arena_open();
	struct fixture *fixture = run_clean(check, arena_printf(arena, "%s%s", header, c->body));
	int n_wrong = 0;

	for (int t = 0; fixture && c->want && t < 64; t++) {
		float want = (float)c->want(floats_of(fixture, 0), t);
		n_wrong += floats_of(fixture, 1)[t] != want;
	}
	if (!CHECK_INT(check, n_wrong, 0))
		printf("%s", c->body);
	if (fixture)
		close_fixture(fixture);
	arena_close(arena);
}

/* ---- matrices ---- */

/*
 * ldmatrix of four 8x8 matrices, plain and transposed, against the figure: lane 4r + c/2, half c
 * % 2.
 */
static void test_ldmatrix(struct check *check)
{
	static const char format[] = "warp w threads 32 grid (1, 1, 1) block (bx, by, bz) thread tid\n"
								 "shared_bytes 512\n"
								 "param A float16 (256)\n"
								 "param C float16 (256)\n"
								 "shared s float16 at 0 align 16 versions 1 x 512 bytes\n"
								 "reg h float16 [8]\n"
								 "reg g float16 [8]\n"
								 "\n"
								 "ld g[0; 8] <- A[tid * 8] bytes=16\n"
								 "%s"
								 "st C[tid * 8] <- h[0; 8] bytes=16\n";
	static const char load[] = "st s[tid * 16] <- g[0; 8] bytes=16\nbarrier\n"
							   "ldmatrix h[0; 8] <- s[tid * 16] n_matrices=4 trans=%d\n";
	static const char store[] = "stmatrix s[tid * 16] <- g[0; 8] n_matrices=4 trans=%d\nbarrier\n"
								"ld h[0; 8] <- s[tid * 16] bytes=16\n";

	for (int i = 0; i < 4; i++) {
		struct arena *arena = arena_open();
		bool trans = i % 2, is_store = i / 2;
		const char *body =
			is_store ? arena_printf(arena, store, trans) : arena_printf(arena, load, trans);
		struct fixture *fixture = run_clean(check, arena_printf(arena, format, body));
		int n_wrong = 0;
		for (int e = 0; fixture && e < 256; e++) {
			int matrix = e / 64, row = e % 64 / 8, column = e % 8;
			int lane = trans ? 4 * column + row / 2 : 4 * row + column / 2;
			int slot = 2 * matrix + (trans ? row : column) % 2;
			double in_memory = half_at(fixture, is_store ? 1 : 0, e);
			double in_register = half_at(fixture, is_store ? 0 : 1, lane * 8 + slot);
			n_wrong += in_memory != in_register;
		}
		CHECK_INT(check, n_wrong, 0);
		if (fixture)
			close_fixture(fixture);
		arena_close(arena);
	}
}

/*
 * The figures of the PTX ISA, sections of mma.m16n8k16 (16-bit), m16n8k8 (tf32) and m16n8k32
 * (8-bit), case by case.
 */
static void test_fragments(struct check *check)
{
	for (int lane = 0; lane < 32; lane++) {
		int group = lane >> 2, place = lane % 4;
		for (int i = 0; i < 16; i++) {
			struct mma_element a = mma_fragment(MMA_M16N8K32_S8_S32, MMA_A, lane, i);
			CHECK_INT(check, a.row, i < 4 || (i >= 8 && i < 12) ? group : group + 8);
			CHECK_INT(check, a.column, place * 4 + (i & 3) + (i < 8 ? 0 : 16));
		}
		for (int i = 0; i < 8; i++) {
			struct mma_element a = mma_fragment(MMA_M16N8K16_F16_F32, MMA_A, lane, i);
			struct mma_element b = mma_fragment(MMA_M16N8K32_S8_S32, MMA_B, lane, i);
			CHECK_INT(check, a.row, i < 2 || (i >= 4 && i < 6) ? group : group + 8);
			CHECK_INT(check, a.column, place * 2 + (i & 1) + (i < 4 ? 0 : 8));
			CHECK_INT(check, b.row, place * 4 + (i & 3) + (i < 4 ? 0 : 16));
			CHECK_INT(check, b.column, group);
		}
		for (int i = 0; i < 4; i++) {
			struct mma_element a = mma_fragment(MMA_M16N8K8_TF32_F32, MMA_A, lane, i);
			struct mma_element b = mma_fragment(MMA_M16N8K16_BF16_F32, MMA_B, lane, i);
			struct mma_element d = mma_fragment(MMA_M16N8K16_F16_F16, MMA_D, lane, i);
			CHECK_INT(check, a.row, i == 0 || i == 2 ? group : group + 8);
			CHECK_INT(check, a.column, i < 2 ? place : place + 4);
			CHECK_INT(check, b.row, place * 2 + (i & 1) + (i < 2 ? 0 : 8));
			CHECK_INT(check, b.column, group);
			CHECK_INT(check, d.row, i < 2 ? group : group + 8);
			CHECK_INT(check, d.column, place * 2 + (i & 1));
		}
		for (int i = 0; i < 2; i++) {
			struct mma_element b = mma_fragment(MMA_M16N8K8_TF32_F32, MMA_B, lane, i);
			CHECK_INT(check, b.row, i == 0 ? place : place + 4);
			CHECK_INT(check, b.column, group);
		}
	}
}

/* ---- a pipelined gemm, whole and broken ---- */

static double gemm_error(const struct fixture *fixture)
{
	const float *c = (const float *)(const void *)fixture->tensors.items[2].bytes;
	double worst = 0.0;

	for (int i = 0; i < 64; i++) {
		for (int j = 0; j < 16; j++) {
			double sum = 0.0, error;
			for (int k = 0; k < 128; k++)
				sum += half_at(fixture, 0, i * 128 + k) * half_at(fixture, 1, k * 16 + j);
			error = fabs(sum - (double)c[i * 16 + j]);
			if (!(error <= worst))
				worst = error;
		}
	}
	return worst;
}

/*
 * An edit of the text and what it leads to: a finding's kind at a line, or -1: wrong numbers
 * without one.
 */
struct mutation {
	const char *find, *put;
	int kind;
	uint32_t line;
};

static const struct mutation mutations[] = {
	{ "    barrier @14\n", "", SIM_SHARED_RACE, 15 },
	{ "n_pending=1 @14", "n_pending=2 @14", SIM_SHARED_RACE, 15 },
	{ "    cp.async.wait n_pending=1 @14\n", "", SIM_SHARED_RACE, 15 },
	{ "    cp.async.commit @13\n    unroll for kk", "    unroll for kk", SIM_SHARED_RACE, 15 },
	/* the version that is being read */
	{ "(ko + 2) % 3 * 2048", "ko % 3 * 2048", SIM_SHARED_RACE, 15 },
	{ "(ko + 2) % 3 * 1024", "(ko + 1) % 3 * 1024", SIM_SHARED_RACE, 13 },
	/* one side's swizzle, both operands */
	{ "kk * 2 + tid % 32 // 16 ^ tid % 16 // 2 % 4", "kk * 2 + tid % 32 // 16", -1, 0 },
	{ "tid % 32 // 16 ^ tid % 16 // 4 % 2", "tid % 32 // 16", -1, 0 },
	{ "(tid % 2 ^ tid // 8 % 2) * 16] <- B[((ko", "tid % 2 * 16] <- B[((ko", -1, 0 },
	/* fragments: rows and columns of A's quarters, B's tiles, not transposed, D's halves */
	{ "(tid // 32 * 16 + tid % 16) * 64 + (kk * 2 + tid % 32 // 16 ^",
	  "(tid // 32 * 16 + tid % 8 + tid % 32 // 16 * 8) * 64 + (kk * 2 + tid // 8 % 2 ^", -1, 0 },
	{ "b[j * 4; 4] shape", "b[4 - j * 4; 4] shape", -1, 0 },
	{ "trans=1", "trans=0", -1, 0 },
	{ "h * 8 + tid % 32 // 4) * 16", "8 - h * 8 + tid % 32 // 4) * 16", -1, 0 },
	{ "h * 8 + tid % 32 // 4) * 16", "h * 9 + tid % 32 // 4) * 16", SIM_GLOBAL_RACE, 18 },
	{ "set C_local[z]", "set C_local[z // 2]", SIM_UNINITIALISED, 17 },
	{ "if ko + 2 < 4", "if ko + 2 < 5", SIM_OUT_OF_BOUNDS, 13 },
};

/* All places of `find` replaced; the mutations' texts are chosen to stand where they should. */
static const char *replace_all(struct arena *arena, const char *text, const char *find,
                               const char *put)
{
	struct buf out = { 0 };
	const char *copy;

	for (const char *at = text; *at;) {
		if (strncmp(at, find, strlen(find)) == 0) {
			buf_text(&out, put);
			at += strlen(find);
		} else {
			buf_char(&out, *at++);
		}
	}
	copy = arena_printf(arena, "%s", buf_cstr(&out));
	buf_free(&out);
	return copy;
}

/*
 * The changed program is found out: by the finding of that kind and line, or without one by wrong
 * numbers.
 */
static void test_mutation(struct check *check, const char *text, const struct mutation *mutation)
{
	struct arena *arena = arena_open();
	const char *changed = replace_all(arena, text, mutation->find, mutation->put);
	struct fixture *fixture = open_text(changed);
	const struct sim_finding *finding;
	bool ok;

	CHECK(check, strcmp(changed, text) != 0);
	if (!CHECK(check, fixture != NULL)) {
		arena_close(arena);
		return;
	}
	run_fixture(check, fixture, 0);
	finding = fixture->result.findings.n ? fixture->result.findings.p : NULL;
	ok = CHECK_INT(check, finding ? (int)finding->kind : -1, mutation->kind);
	if (finding)
		ok = CHECK_INT(check, source_line(&fixture->cx.sources, finding->span), mutation->line) &&
		     ok;
	else
		ok = CHECK(check, gemm_error(fixture) > 0.1) && ok;
	if (!ok) {
		printf("%s -> %s\n", mutation->find, mutation->put);
		sim_report(&fixture->cx, &fixture->result);
		show_diags(fixture);
	}
	close_fixture(fixture);
	arena_close(arena);
}

/* Sums over the instructions of one kernel line. */
static struct sim_access line_access(const struct fixture *fixture, const struct wblock *block,
                                     uint32_t line)
{
	struct sim_access sum = { 0, 0, 0, 0 };

	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		struct sim_access part = { 0, 0, 0, 0 };
		if (node->kind == WNODE_LOOP)
			part = line_access(fixture, &node->as.loop.body, line);
		else if (node->kind == WNODE_IF)
			part = line_access(fixture, &node->as.if_.then, line);
		else if (source_line(&fixture->cx.sources, node->span) == line)
			part = fixture->result.accesses[node->id];
		sum.executions += part.executions;
		sum.wavefronts += part.wavefronts;
		sum.ideal += part.ideal;
	}
	return sum;
}

/*
 * The hand-written pipelined gemm is right, and counts the wavefronts that stand beside the checks;
 * without its swizzle the numbers stay right and the conflicts come; every mutation is found.
 */
static void test_gemm(struct check *check)
{
	struct arena *arena = arena_open();
	struct buf text = { 0 };
	struct fixture *fixture;
	struct sim_access access;

	CHECK(check, buf_read_file(&text, "tests/sim/gemm.warp", 0));
	fixture = run_clean(check, buf_cstr(&text));
	if (fixture) {
		CHECK(check, warp_verify(fixture->program));
		CHECK(check, gemm_error(fixture) < 1e-4);
		CHECK_INT(check, fixture->result.n_blocks_run, 2);
		/* 2 blocks x 2 warps x 4 iterations x 2 steps, no conflicts with the swizzle */
		access = line_access(fixture, &fixture->program->body, 15);
		CHECK_INT(check, access.executions, 32);
		CHECK_INT(check, access.wavefronts, 128);
		CHECK_INT(check, access.ideal, 128);
		access = line_access(fixture, &fixture->program->body, 12);
		CHECK_INT(check, access.executions, 2 * 2 * 4 * 2);
		CHECK_INT(check, access.wavefronts, 4 * 2 * 2 * 4 * 2);
		close_fixture(fixture);
	}
	/* without it on either side, rows of 64 bytes meet in half of the banks */
	fixture = run_clean(check, replace_all(arena, buf_cstr(&text), "^", "+ 0 *"));
	if (fixture) {
		CHECK(check, gemm_error(fixture) < 1e-4);
		access = line_access(fixture, &fixture->program->body, 15);
		CHECK_INT(check, access.wavefronts, 32 * 16);
		CHECK_INT(check, access.ideal, 128);
		close_fixture(fixture);
	}
	for (size_t i = 0; i < sizeof(mutations) / sizeof(*mutations); i++)
		test_mutation(check, buf_cstr(&text), &mutations[i]);
	buf_free(&text);
	arena_close(arena);
}

int main(void)
{
	struct check check = { 0 };

	for (size_t i = 0; i < sizeof(finding_cases) / sizeof(*finding_cases); i++)
		test_finding(&check, &finding_cases[i]);
	for (size_t i = 0; i < sizeof(value_cases) / sizeof(*value_cases); i++)
		test_values(&check, &value_cases[i]);
	test_ldmatrix(&check);
	test_fragments(&check);
	test_gemm(&check);
	return check_end(&check);
}
