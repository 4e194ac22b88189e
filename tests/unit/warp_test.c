/* The warp program: text and back, the verifier's rules one by one. */
#include "codegen/lower/warp.h"

#include "analyzer/compile.h"
#include "tests/unit/check.h"

/* A program read from text, its context and what was reported. */
struct fixture {
	struct arena *arena;
	struct cx cx;
	struct warp_program *program;
	struct buf printed;
};

static struct fixture *open_text(struct str text)
{
	struct arena *arena = arena_open();
	struct fixture *fixture = arena_new(arena, struct fixture);
	uint32_t file;

	fixture->arena = arena;
	cx_init(&fixture->cx, arena);
	file = source_add(arena, &fixture->cx.sources, "test.warp", text);
	fixture->program = warp_read(&fixture->cx, expr_pool_open(&fixture->cx), file);
	if (fixture->program)
		warp_print(&fixture->printed, fixture->program);
	return fixture;
}

static void close_fixture(struct fixture *fixture)
{
	buf_free(&fixture->printed);
	arena_close(fixture->arena);
}

static void show_diags(const struct fixture *fixture)
{
	struct buf text = { 0 };

	diag_print(&text, &fixture->cx.diags, &fixture->cx.sources, false);
	printf("%s", buf_cstr(&text));
	buf_free(&text);
}

/* The file reads, passes the verifier, and prints the same text again. */
static void test_file(struct check *check, const char *path)
{
	struct buf text = { 0 };
	struct fixture *first, *second;

	if (!CHECK(check, buf_read_file(&text, path, 0)))
		return;
	first = open_text(buf_str(&text));
	if (CHECK(check, first->program != NULL)) {
		CHECK(check, warp_verify(first->program));
		second = open_text(buf_str(&first->printed));
		if (CHECK(check, second->program != NULL))
			CHECK_TEXT(check, buf_cstr(&second->printed), buf_cstr(&first->printed));
		else
			show_diags(second);
		close_fixture(second);
	}
	if (first->cx.diags.n_errors)
		show_diags(first);
	close_fixture(first);
	buf_free(&text);
}

/* A program of the lowering passes the verifier and reads back to its own text. */
static void test_lowered(struct check *check, const char *path, const char *name, const char *value)
{
	struct arena *arena = arena_open();
	struct compile_options options = { .frontend.config = -1, .target = target_find("sm_80") };
	struct frontend_set set = { .name = name, .value = value };
	struct compile *compile;
	struct buf text = { 0 };

	if (name)
		vec_push(arena, &options.frontend.sets, set);
	compile = compile_open(arena, &options);
	if (CHECK(check, compile_load(compile, path)) && CHECK(check, compile_run(compile, "warp"))) {
		struct warp_program *program = compile->launches.p[0]->warp;
		struct fixture *again;
		CHECK(check, warp_verify(program));
		warp_print(&text, program);
		again = open_text(buf_str(&text));
		show_diags(again);
		if (CHECK(check, again->program != NULL))
			CHECK_TEXT(check, buf_cstr(&again->printed), buf_cstr(&text));
		close_fixture(again);
	}
	buf_free(&text);
	arena_close(arena);
}

static const char header[] = "warp w threads 64 grid (n, 2, 1) block (bx, by, bz) thread tid\n"
							 "source \"k.py\"\n"
							 "shared_bytes 4096\n"
							 "param A float16 (n, 64)\n"
							 "symbol n int32 from 1\n"
							 "shared s float16 at 0 align 16 versions 2 x 1024 bytes\n"
							 "reg f float32 [8]\n"
							 "reg h float16 [16]\n"
							 "reg i8 int8 [8]\n"
							 "\n";

/* A warpgroup; t does not start where a swizzle of 64 or 128 bytes does. */
static const char group_header[] =
	"warp w threads 128 grid (1, 2, 1) block (bx, by, bz) thread tid\n"
	"source \"k.py\"\n"
	"shared_bytes 34048\n"
	"shared s float16 at 0 align 1024 versions 1 x 16384 bytes\n"
	"shared t float16 at 16640 align 128 versions 1 x 16384 bytes\n"
	"reg f float32 [32]\n"
	"reg h float16 [16]\n"
	"\n";

/* Reads header + body; gives "ok" or the first code reported, by the reader or the verifier. */
static const char *verdict(struct arena *arena, const char *head, const char *body, uint32_t *line)
{
	struct fixture *fixture = open_text(str_of(arena_printf(arena, "%s%s", head, body)));
	const char *code = "ok";

	if (fixture->program)
		warp_verify(fixture->program);
	if (fixture->cx.diags.items.n) {
		const struct diag *diag = fixture->cx.diags.items.p[0];
		code = diag_code_text(diag->code);
		*line = source_line(&fixture->cx.sources, diag->span);
	}
	close_fixture(fixture);
	return code;
}

/* A body and what becomes of it; `line` is the kernel's line of the report (0: none, or the
 * reader's own). */
struct body_case {
	const char *body, *verdict;
	uint32_t line;
};

static const struct body_case verifier_cases[] = {
	{ "barrier\n", "ok", 0 },
	{ "ld f[0; 4] <- s[tid * 16] bytes=16 @7\n", "ok", 0 },
	{ "ld f[0; 4] <- s[tid * 16] bytes=12 @7\n", "E0611", 7 },
	{ "ld f[0; 2] <- s[tid * 16] bytes=16 @7\n", "E0610", 7 },
	{ "ld f[5; 4] <- s[tid * 16] bytes=16 @7\n", "E0612", 7 },
	{ "unroll for i in 3:\n    set f[i * 4] <- 0.0f32 @8\n", "E0612", 8 },
	{ "unroll for i in 3:\n    set f[i * 4] <- 0.0f32 if i < 2 @8\n", "ok", 0 },
	{ "for i in 2:\n    set f[i] <- 0.0f32 @8\n", "E0613", 8 },
	{ "for i in 2:\n    set f[0] <- f[i] @8\n", "E0613", 8 },
	{ "set f[tid % 2] <- 0.0f32 @8\n", "E0613", 8 },
	{ "unroll for i in n:\n    set f[0] <- 0.0f32\n", "E0613", 0 },
	{ "ld h[1; 2] <- s[tid * 4] bytes=4 @9\n", "E0614", 9 },
	{ "ld h[1] <- s[tid * 4] bytes=2 @9\n", "ok", 0 },
	{ "ld i8[1; 2] <- s[tid * 4] bytes=2 @9\n", "E0614", 9 },
	{ "ld f[0; 2] <- s[tid * 4] bytes=8 @10\n", "E0615", 10 },
	{ "ld f[0; 2] <- s[tid * 4] bytes=8 if tid % 2 == 0 @10\n", "ok", 0 },
	{ "ld f[0; 2] <- A[bx * 64 + tid * 2] bytes=8 @10\n", "E0615", 10 },
	{ "ld f[0; 2] <- A[bx * 64 + tid * 4] bytes=8 @10\n", "ok", 0 },
	{ "ldmatrix h[0; 8] <- s[tid * 8] n_matrices=4 trans=0 @10\n", "E0615", 10 },
	{ "st s[tid * 64] <- f[0; 4] bytes=16 @11\n", "E0616", 11 },
	{ "st s[tid * 64] <- f[0; 4] bytes=16 if tid < 32 @11\n", "ok", 0 },
	{ "if tid < 32:\n    st s[tid * 64] <- f[0; 4] bytes=16 @11\n", "ok", 0 },
	{ "if tid < 30:\n    pass\nelse:\n    st s[(tid - 32) * 64] <- f[0; 4] bytes=16 @11\n", "E0616",
	  11 },
	{ "mma f[0; 4] <- h[0; 8], h[8; 4] shape=m16n8k16.f32.f16\n", "ok", 0 },
	{ "mma f[0; 4] <- h[0; 8], h[8; 8] shape=m16n8k16.f32.f16 @12\n", "E0610", 12 },
	{ "mma f[0; 4] <- h[0; 8], h[8; 4] shape=m16n8k16.f32.bf16 @12\n", "E0610", 12 },
	{ "ldmatrix h[0; 4] <- s[tid * 16] n_matrices=4 trans=0 @12\n", "E0610", 12 },
	{ "ldmatrix h[0; 6] <- s[tid * 16] n_matrices=3 trans=0 @12\n", "E0611", 12 },
	{ "shfl.xor f[0] <- f[1] mask=32 @13\n", "E0611", 13 },
	{ "if tid < 32:\n    barrier.part id=1 n_threads=32 @13\n", "ok", 0 },
	{ "if tid < 20:\n    barrier.part id=1 n_threads=32 @13\n", "E0617", 13 },
	{ "barrier.part id=0 n_threads=32 @13\n", "E0611", 13 },
	{ "barrier.part id=1 n_threads=48 @13\n", "E0611", 13 },
	{ "shfl.xor f[0] <- h[1] mask=1 @13\n", "E0610", 13 },
	{ "shfl.up f[0] <- f[1] delta=4\nshfl.down f[0] <- f[1] delta=31\n", "ok", 0 },
	{ "shfl.idx f[0] <- f[1], tid % 32 // 4 * 4\n", "ok", 0 },
	{ "shfl.up f[0] <- f[1] delta=32 @13\n", "E0611", 13 },
	{ "shfl.down f[0] <- f[1] delta=0 @13\n", "E0611", 13 },
	{ "if tid < 40:\n    shfl.idx f[0] <- f[1], 0 @15\n", "E0617", 15 },
	{ "set f[0; 2] <- 0.0f32 @13\n", "E0611", 13 },
	{ "if tid < 32:\n    barrier @14\n", "ok", 0 },
	{ "barrier if tid == 3 @14\n", "ok", 0 },
	{ "for i in tid % 5:\n    barrier @14\n", "ok", 0 },
	{ "if bx < 3:\n    barrier @14\n", "ok", 0 },
	{ "if tid < 32:\n    shfl.xor f[0] <- f[1] mask=1\n", "ok", 0 },
	{ "if tid < 40:\n    shfl.xor f[0] <- f[1] mask=1 @15\n", "E0617", 15 },
	{ "cp.async s[tid * 16] <- A[tid * 8] bytes=16 @16\n", "E0618", 16 },
	{ "cp.async s[tid * 16] <- A[tid * 8] bytes=16\ncp.async.commit @16\n", "E0618", 16 },
	{ "cp.async.wait n_pending=0 @16\n", "E0618", 16 },
	{ "for k in 4:\n    cp.async.wait n_pending=0\n    cp.async s[tid * 16] <- A[tid * 8] "
	  "bytes=16\n"
	  "    cp.async.commit\n",
	  "ok", 0 },
	{ "cp.async A[tid * 8] <- s[tid * 16] bytes=16 @17\n", "E0610", 17 },
	{ "for i in 8:\n    for j in i + 1:\n        st s[(i - j)*256] <- f[0] bytes=4\n", "ok", 0 },
	{ "for i in 9:\n    for j in i + 1:\n        st s[(i - j)*256] <- f[0] bytes=4 @18\n", "E0616",
	  18 },
};

static const struct body_case reader_cases[] = {
	{ "frobnicate f[0]\n", "E0602", 11 },
	{ "set g[0] <- 0.0f32\n", "E0602", 11 },
	{ "set s[0] <- 0.0f32\n", "E0602", 11 },
	{ "ld f[0; 4] s[tid * 16] bytes=16\n", "E0601", 11 },
	{ "ld f[0; 4] <- s[tid * 16]\n", "E0601", 11 },
	{ "mma f[0; 4] <- h[0; 8], h[8; 4] shape=m1n1k1\n", "E0602", 11 },
	{ "for i in 4:\nbarrier\n", "E0601", 12 },
	{ "barrier\n    barrier\n", "E0601", 12 },
	{ "reg f float32 [1]\n", "E0603", 11 },
	{ "for f in 4:\n    barrier\n", "E0603", 11 },
	{ "barrier barrier\n", "E0601", 11 },
	{ "barrier @99999999999999999999\n", "E0601", 11 },
	{ "set f[0; 99999999999999999999] <- 0.0f32\n", "E0601", 11 },
};

/* The product of the tests, its N, its operands' places and the rest of its numbers. */
#define PRODUCT(d, n, a, b, a_span, b_mn) \
	"wgmma " d " <- s[" a "], " b " shape=m16n8k16.f32.f16 n=" n " a_mn=0 a_span=" a_span \
	" a_leading=16 a_stride=1024 b_mn=" b_mn " b_span=128 b_leading=16 b_stride=1024"
#define DRAIN "wgmma.commit\nwgmma.wait f[0; 32] n_pending=0\n"

static const struct body_case group_cases[] = {
	{ "wgmma.fence f[0; 32]\n" PRODUCT("f[0; 32]", "64", "0", "s[8192]", "128", "0") "\n" DRAIN,
	  "ok", 0 },
	{ "wgmma.ra f[0; 32] <- h[0; 8], s[0] shape=m16n8k16.f32.f16 n=64 b_mn=1 b_span=32 "
	  "b_leading=512 "
	  "b_stride=256\n" DRAIN,
	  "ok", 0 },
	{ "fence.proxy.async\n", "ok", 0 },
	{ PRODUCT("f[0; 16]", "64", "0", "s[8192]", "128", "0") " @7\n" DRAIN, "E0610", 7 },
	{ PRODUCT("f[0; 6]", "12", "0", "s[8192]", "128", "0") " @7\n" DRAIN, "E0611", 7 },
	{ PRODUCT("f[0; 32]", "64", "0", "s[8192]", "48", "0") " @7\n" DRAIN, "E0611", 7 },
	{ PRODUCT("f[0; 32]", "64", "0", "t[0]", "128", "0") " @7\n" DRAIN, "E0615", 7 },
	{ PRODUCT("f[0; 32]", "64", "8", "s[8192]", "128", "0") " @7\n" DRAIN, "E0615", 7 },
	{ PRODUCT("f[0; 32]", "64", "16384", "s[8192]", "128", "0") " @7\n" DRAIN, "E0616", 7 },
	{ "if tid < 64:\n    " PRODUCT("f[0; 32]", "64", "0", "s[0]", "128", "0") " @7\n" DRAIN,
	  "E0617", 7 },
	{ PRODUCT("f[0; 32]", "64", "0", "s[8192]", "128", "0") " @7\n", "E0618", 7 },
	{ PRODUCT("f[0; 32]", "64", "0", "s[8192]", "128", "0") "\nwgmma.commit @7\n", "E0618", 7 },
	{ "wgmma.wait f[0; 32] n_pending=0 @7\n", "E0618", 7 },
};

static void test_cases(struct check *check, const char *head, const struct body_case *cases,
                       size_t n)
{
	struct arena *arena = arena_open();

	for (size_t i = 0; i < n; i++) {
		uint32_t line = 0;
		const char *got = verdict(arena, head, cases[i].body, &line);
		if (!CHECK_TEXT(check, got, cases[i].verdict) || !CHECK_INT(check, line, cases[i].line))
			printf("in: %s\n", cases[i].body);
	}
	arena_close(arena);
}

/* A variable of a loop that does not enclose its use cannot come from text. */
static void test_scope(struct check *check)
{
	struct fixture *fixture = open_text(str_of(header));
	struct warp_program *program = fixture->program;
	struct wnode *loop, *inst;

	if (!CHECK(check, program != NULL))
		return;
	loop = warp_add_loop(
		program, &program->body,
		(struct wloop_head){ "i", expr_int(program->pool, 4), true, (struct span){ 0 } });
	inst = warp_add_inst(program, &program->body, WOP_set, (struct span){ 0 });
	inst->as.inst.as.set.dst = (struct wregs){ program->regs.p[0], expr_int(program->pool, 0), 1 };
	inst->as.inst.as.set.value = expr_of_var(program->pool, loop->as.loop.var);
	CHECK(check, !warp_verify(program));
	CHECK_TEXT(check, diag_code_text(fixture->cx.diags.items.p[0]->code), "E0619");
	close_fixture(fixture);
}

/* Names that are taken get a suffix, nested loops too. */
static void test_names(struct check *check)
{
	struct fixture *fixture = open_text(str_of(header));
	struct warp_program *program = fixture->program;
	struct interner *names = fixture->cx.names;
	struct wnode *outer, *inner, *next;
	const struct expr *four;

	if (!CHECK(check, program != NULL))
		return;
	four = expr_int(program->pool, 4);
	outer = warp_add_loop(program, &program->body,
	                      (struct wloop_head){ "i", four, false, { 0, 0, 0 } });
	inner = warp_add_loop(program, &outer->as.loop.body,
	                      (struct wloop_head){ "i", four, false, { 0, 0, 0 } });
	next = warp_add_loop(program, &program->body,
	                     (struct wloop_head){ "i", four, false, { 0, 0, 0 } });
	CHECK_TEXT(check, sym_text(names, outer->as.loop.var->name), "i");
	CHECK_TEXT(check, sym_text(names, inner->as.loop.var->name), "i_1");
	CHECK_TEXT(check, sym_text(names, next->as.loop.var->name), "i");
	CHECK_TEXT(check,
	           sym_text(names, warp_new_reg(program, intern_text(names, "f"), DTYPE_F32, 1)->name),
	           "f_1");
	CHECK_INT(check, inner->as.loop.var->max, 3);
	close_fixture(fixture);
}

/* No text crashes the reader, the verifier or the printer: bytes of a good one are changed, cut and
 * doubled. */
static void test_mutations(struct check *check, const char *path)
{
	struct buf text = { 0 };
	uint64_t state = 1;
	uint32_t n_read = 0;

	if (!CHECK(check, buf_read_file(&text, path, 0)))
		return;
	for (int round = 0; round < 3000; round++) {
		struct buf mutant = { 0 };
		struct fixture *fixture;
		size_t at, n;
		state = state * 6364136223846793005u + 1442695040888963407u;
		at = (size_t)(state >> 33) % text.n;
		n = (size_t)(state >> 20) % 12;
		n = at + n > text.n ? text.n - at : n;
		buf_add(&mutant, text.p, at);
		if (round % 3 == 0)
			buf_char(&mutant, (char)(state >> 50));
		else if (round % 3 == 1)
			buf_add(&mutant, text.p + at, n);
		buf_add(&mutant, text.p + at + (round % 3 == 1 ? 0 : n),
		        text.n - at - (round % 3 == 1 ? 0 : n));
		fixture = open_text(buf_str(&mutant));
		if (fixture->program) {
			n_read++;
			warp_verify(fixture->program);
		} else {
			CHECK(check, fixture->cx.diags.n_errors > 0);
		}
		close_fixture(fixture);
		buf_free(&mutant);
	}
	CHECK(check, n_read > 100);
	buf_free(&text);
}

/* The tables agree with themselves. */
static void test_tables(struct check *check)
{
	const struct mma_shape_info *shape = mma_shape_info(MMA_M16N8K16_F16_F32);

	CHECK_INT(check, shape->a_slots, 8);
	CHECK_INT(check, shape->b_slots, 4);
	CHECK_INT(check, shape->d_slots, 4);
	CHECK(check, dtype_equal(shape->ab, DTYPE_F16) && dtype_equal(shape->d, DTYPE_F32));
	for (uint32_t i = 0; i < N_WOP_KINDS; i++) {
		enum wop_kind kind;
		CHECK(check, wop_find(str_of(wop_info((enum wop_kind)i)->text), &kind) && kind == i);
	}
}

int main(void)
{
	struct check check = { 0 };

	test_tables(&check);
	test_file(&check, "tests/warp/gemm.warp");
	test_file(&check, "tests/warp/wgmma.warp");
	test_lowered(&check, "examples/gemm_relu.tl", NULL, NULL);
	test_lowered(&check, "examples/gemm_relu.tl", "M", "1000");
	test_lowered(&check, "examples/gemm_relu.tl", "K", "33");
	test_lowered(&check, "examples/gemm_relu.tl", "N", "1");
	test_lowered(&check, "examples/elementwise_add.tl", NULL, NULL);
	test_lowered(&check, "examples/rms_norm.tl", NULL, NULL);
	test_lowered(&check, "examples/rms_norm.tl", "N", "97");
	test_cases(&check, header, verifier_cases, sizeof(verifier_cases) / sizeof(*verifier_cases));
	test_cases(&check, group_header, group_cases, sizeof(group_cases) / sizeof(*group_cases));
	test_cases(&check, header, reader_cases, sizeof(reader_cases) / sizeof(*reader_cases));
	test_mutations(&check, "tests/warp/gemm.warp");
	test_scope(&check);
	test_names(&check);
	return check_end(&check);
}
