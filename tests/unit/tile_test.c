#include "tests/unit/check.h"
#include "tests/unit/kernel_text.h"

/* The printed form of what was read; the diagnostics when it was refused. */
static const char *reread(struct kernel_text *kt)
{
	struct tile_program *program = tile_read(&kt->cx, kt->pool, kt->file);
	struct buf out = { 0 };
	const char *text;

	if (!program)
		return kernel_text_diags(kt);
	tile_print(&out, program);
	text = arena_strndup(kt->arena, buf_cstr(&out), out.n);
	buf_free(&out);
	return text;
}

/* Every form of statement and declaration: reads back as itself. */
static void test_round_trip(struct check *check)
{
	static const char text[] =
		"kernel main of make:\n"
		"\tgiven M = 1024 from call\n"
		"\tgiven names = [\"a from b\", null] from set\n"
		"\tsymbol n: int32 range 1 to 4096 multiple 8\n"
		"\tscalar alpha: float32\n"
		"\tparam A: float16[n, 64]\n"
		"\tparam B: float32[64, 64] strides [128, 1]\n"
		"\tlaunch bx: (n + 127) // 128, by: 2, bz: 1, tx: 128, ty: 1, tz: 1:\n"
		"\t\tswizzle row 8\n"
		"\t\tS: shared float16[128, 64]\n"
		"\t\tF: fragment float32[128, 128]\n"
		"\t\tR: fragment float32[128]\n"
		"\t\tL: local int8[4]\n"
		"\t\tv: var int32[]\n"
		"\t\tv[] = 0\n"
		"\t\tcopy(src=A[bx*128, 0; 128, 64], dst=S, coalesced_width=8)\n"
		"\t\tgemm(a=S, b=S, c=F, transpose_b=1, policy=FullRow)\n"
		"\t\tfill(dst=F[0, 0; 64, 128], value=0.0f32)\n"
		"\t\treduce(src=F, dst=R, kind=absmax, dim=1, clear=1)\n"
		"\t\tfor k in pipelined(16, num_stages=3):\n"
		"\t\t\tcopy(src=A[bx*128, 0; 128, 64], dst=S)\n"
		"\t\tfor i, j in parallel(128, 128, coalesced_width=4):\n"
		"\t\t\tF[i, j] = F[i, j] + alpha\n"
		"\t\tfor u in unroll(4):\n"
		"\t\t\tlet x: int32 = v[]\n"
		"\t\t\tif x < u:\n"
		"\t\t\t\tv[] = u + v[]\n"
		"\t\t\telse:\n"
		"\t\t\t\tsync()\n"
		"\t\t\t\tcontinue\n"
		"\t\twhile v[] < 3:\n"
		"\t\t\tv[] = v[] + 1\n"
		"\t\t\tbreak\n"
		"\tlaunch cx: 1, cy: 1, cz: 1, ux: 32, uy: 1, uz: 1:\n"
		"\t\tpass\n";
	struct kernel_text kt;
	const char *read;

	kernel_text_open(&kt, text, sizeof(text) - 1);
	read = reread(&kt);
	CHECK_TEXT(check, read, text);
	kernel_text_close(&kt);
}

/* What the reader refuses, with the place. */
static void test_bad_text(struct check *check)
{
	static const struct {
		const char *body, *first;
	} cases[] = {
		{ "nonsense(a=S)\n", "E0310 5:3" },
		{ "copy(src=S)\n", "E0310 5:3" },
		{ "copy(src=S, dest=S)\n", "E0310 5:15" },
		{ "copy(src=S, dst=Q)\n", "E0310 5:19" },
		{ "copy(src=S[0; 4], dst=S)\n", "E0310 5:12" },
		{ "S[0, 0] = q\n", "E0191 5:13" },
		{ "S[0] = 1.0f16\n", "E0310 5:3" },
		{ "for i, j in serial(1, 2):\n", "E0310 5:7" },
		{ "for i in parallel(1, 2):\n", "E0310 5:24" },
		{ "for i in around(1):\n", "E0310 5:7" },
		{ "reduce(src=S, dst=S, kind=product)\n", "E0310 5:29" },
		{ "reduce(src=S, dst=S, dim=7)\n", "E0310 5:3" },
		{ "T: shared float17[1]\n", "E0310 5:13" },
		{ "T: shared float16[0]\n", "E0311 5:3" },
		{ "S[0, 0] = 1.0f32\n", "E0305 5:3" },
		{ "S[8, 0] = 1.0f16\n", "E0306 5:3" },
		{ "copy(src=S[4, 0; 8, 8], dst=S)\n", "E0306 5:12" },
		{ "for i in parallel(8):\n\t\t\tsync()\n", "E0312 6:4" },
		{ "for i in parallel(8):\n\t\t\tbreak\n", "E0312 6:4" },
		{ "continue\n", "E0312 5:3" },
		{ "for i in parallel(8):\n\t\t\tfor j in parallel(8):\n\t\t\t\tpass\n", "E0312 6:4" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf text = { 0 };
		struct kernel_text kt;

		buf_printf(&text,
		           "kernel k:\n\tparam A: float16[8, 8]\n\tlaunch bx: 1, by: 1, bz: 1, tx: 32, ty: "
		           "1, tz: 1:\n"
		           "\t\tS: shared float16[8, 8]\n\t\t%s",
		           cases[i].body);
		kernel_text_open(&kt, text.p, text.n);
		CHECK(check, !tile_read(&kt.cx, kt.pool, kt.file));
		CHECK_TEXT(check, kernel_text_first(&kt), cases[i].first);
		kernel_text_close(&kt);
		buf_free(&text);
	}
}

/* Every prefix of a program, and a program with each byte in turn replaced: an answer, never a
 * crash. */
static void test_damaged_text(struct check *check)
{
	static const char text[] =
		"kernel k of f:\n\tgiven M = 8 from set\n\tparam A: float16[8, 8]\n"
		"\tlaunch bx: 1, by: 1, bz: 1, tx: 32, ty: 1, tz: 1:\n\t\tS: shared float16[8, 8]\n"
		"\t\tfor k in pipelined(2, num_stages=2):\n\t\t\tcopy(src=A[0, k*4; 8, 4], dst=S[0, 0; 8, "
		"4])\n"
		"\t\tif bx < 1:\n\t\t\tfill(dst=S, value=0.0f16)\n";
	static const char bytes[] = { 0, '\n', '\t', ' ', '(', '0', '-', '\xff' };
	uint32_t n_ok = 0;

	for (size_t n = 0; n < sizeof(text); n++) {
		struct kernel_text kt;

		kernel_text_open(&kt, text, n);
		n_ok += tile_read(&kt.cx, kt.pool, kt.file) != NULL;
		kernel_text_close(&kt);
	}
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		for (size_t b = 0; b < sizeof(bytes); b++) {
			char damaged[sizeof(text)];
			struct kernel_text kt;

			memcpy(damaged, text, sizeof(text));
			damaged[i] = bytes[b];
			kernel_text_open(&kt, damaged, sizeof(text) - 1);
			n_ok += tile_read(&kt.cx, kt.pool, kt.file) != NULL;
			kernel_text_close(&kt);
		}
	}
	CHECK(check, n_ok > 0);
}

static void test_op_table(struct check *check)
{
	for (int i = 0; i < N_OP_KINDS; i++) {
		const struct op_info *info = op_info((enum op_kind)i);
		struct op op = { .kind = (enum op_kind)i };
		enum operand_role role;
		uint32_t n_regions = 0;

		CHECK(check, strncmp(info->name, "T.", 2) == 0 && *info->doc && *info->example);
		while (op_region(&op, n_regions, &role))
			n_regions++;
		CHECK(check, n_regions <= info->n_operands);
	}
	CHECK(check, strcmp(op_info(OP_gemm)->operands[2].name, "c") == 0);
	CHECK(check, op_info(OP_gemm)->operands[2].role == ROLE_UPDATE);
}

static void count(void *user, struct stmt *stmt)
{
	*(uint32_t *)user = *(uint32_t *)user * 10 + stmt->id;
}

/* Outer statements first, in program order. */
static void test_walk(struct check *check)
{
	static const char text[] = "kernel k:\n\tlaunch bx: 1, by: 1, bz: 1, tx: 32, ty: 1, tz: 1:\n"
							   "\t\tfor i in serial(2):\n\t\t\tif i < "
							   "1:\n\t\t\t\tsync()\n\t\t\telse:\n\t\t\t\tsync()\n\t\tsync()\n";
	struct kernel_text kt;
	struct tile_program *program;
	uint32_t order = 9;

	kernel_text_open(&kt, text, sizeof(text) - 1);
	program = tile_read(&kt.cx, kt.pool, kt.file);
	CHECK(check, program && program->n_stmts == 5 && program->launches.n == 1);
	if (program)
		tile_walk(&program->launches.p[0]->body, count, &order);
	CHECK_INT(check, order, 901234);
	kernel_text_close(&kt);
}

int main(void)
{
	struct check check = { 0 };

	test_round_trip(&check);
	test_bad_text(&check);
	test_damaged_text(&check);
	test_op_table(&check);
	test_walk(&check);
	return check_end(&check);
}
