/*
 * Expressions: what they simplify to, and random ones against a plain evaluator. Simplified forms
 * were worked out by hand; that they have the same values is what expr_random_test shows.
 */
#include "analyzer/tile/expr.h"
#include "base/buf.h"
#include "codegen/lower/warp.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

/* ---- a pool with variables, buffers and a register array ---- */

enum { N_VARS = 12, N_BUFFERS = 3 };

/* A pool with the variables of var_rows, three buffers and a register array, for texts to name. */
struct fixture {
	struct arena *arena;
	struct cx cx;
	struct expr_pool *pool;
	struct var *vars[N_VARS];
	struct buffer buffers[N_BUFFERS];
	struct wreg reg;
};

/* A variable with its range and divisor. */
struct var_row {
	const char *name;
	enum var_kind kind;
	struct dtype type;
	int64_t min, max, divisor;
};

static const struct var_row var_rows[N_VARS] = {
	{ "tx", VAR_THREAD, { TYPE_INT, 32, 1 }, 0, 127, 1 },
	{ "i", VAR_LOOP, { TYPE_INT, 32, 1 }, 0, 15, 1 },
	{ "j", VAR_LOOP, { TYPE_INT, 32, 1 }, 0, 3, 1 },
	{ "k", VAR_LOOP, { TYPE_INT, 32, 1 }, 0, 7, 1 },
	{ "bx", VAR_BLOCK, { TYPE_INT, 32, 1 }, 0, INT64_MAX, 1 },
	{ "M", VAR_SYMBOL, { TYPE_INT, 32, 1 }, 1, INT64_MAX, 8 },
	{ "N", VAR_SYMBOL, { TYPE_INT, 32, 1 }, 1, INT64_MAX, 1 },
	{ "p", VAR_PARAM, { TYPE_INT, 32, 1 }, INT64_MIN, INT64_MAX, 1 },
	{ "w", VAR_PARAM, { TYPE_INT, 64, 1 }, INT64_MIN, INT64_MAX, 1 },
	{ "u", VAR_PARAM, { TYPE_UINT, 32, 1 }, 0, UINT32_MAX, 1 },
	{ "f", VAR_PARAM, { TYPE_FLOAT, 32, 1 }, INT64_MIN, INT64_MAX, 1 },
	{ "c", VAR_PARAM, { TYPE_BOOL, 8, 1 }, 0, 1, 1 },
};

static void open_fixture(struct fixture *fixture)
{
	static const char *const names[N_BUFFERS] = { "A", "B", "H" };
	static const struct dtype types[N_BUFFERS] = {
		{ TYPE_FLOAT, 32, 1 },
		{ TYPE_INT, 32, 1 },
		{ TYPE_FLOAT, 16, 1 },
	};
	memset(fixture, 0, sizeof(*fixture));
	fixture->arena = arena_open();
	cx_init(&fixture->cx, fixture->arena);
	fixture->pool = expr_pool_open(&fixture->cx);
	for (int i = 0; i < N_VARS; i++) {
		const struct var_row *row = &var_rows[i];
		sym_t name = intern_text(fixture->cx.names, row->name);
		fixture->vars[i] = expr_new_var(fixture->pool, row->kind, name, row->type);
		fixture->vars[i]->min = row->min;
		fixture->vars[i]->max = row->max;
		fixture->vars[i]->divisor = row->divisor;
	}
	for (int i = 0; i < N_BUFFERS; i++) {
		fixture->buffers[i].name = intern_text(fixture->cx.names, names[i]);
		fixture->buffers[i].type = types[i];
	}
	fixture->reg.name = intern_text(fixture->cx.names, "acc");
	fixture->reg.type = DTYPE_F32;
}

static void close_fixture(struct fixture *fixture)
{
	arena_close(fixture->arena);
}

/* Names of the fixture alone, or as buffers and registers with an index. */
static const struct expr *resolve(void *user, sym_t name, const struct expr *const *index,
                                  uint32_t n_index)
{
	struct fixture *fixture = user;
	for (int i = 0; i < N_VARS; i++)
		if (n_index == 0 && fixture->vars[i]->name == name)
			return expr_of_var(fixture->pool, fixture->vars[i]);
	for (int i = 0; i < N_BUFFERS; i++)
		if (n_index > 0 && fixture->buffers[i].name == name)
			return expr_load(fixture->pool, &fixture->buffers[i], fixture->buffers[i].type, index,
			                 n_index);
	if (n_index == 1 && fixture->reg.name == name)
		return expr_reg(fixture->pool, &fixture->reg, fixture->reg.type, index[0]);
	return NULL;
}

/* NULL when the text is none, or has more than one expression. */
static const struct expr *parse(struct fixture *fixture, const char *text)
{
	struct expr_names names = { resolve, fixture };
	uint32_t at = 0;
	uint32_t file = source_add(fixture->arena, &fixture->cx.sources, "test", str_of(text));
	const struct expr *e = expr_parse(&fixture->cx, fixture->pool, &names, file, &at);
	return e && at == strlen(text) ? e : NULL;
}

static const char *print(struct fixture *fixture, const struct expr *e)
{
	struct buf buf = { 0 };
	if (!e)
		return "(none)";
	expr_print(&buf, &fixture->cx, e);
	const char *text = arena_strndup(fixture->arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

/* ---- simplification ---- */

/* A text and the print of what it simplifies to. */
struct row {
	const char *from, *to;
};

static const struct row simplify_rows[] = {
	/* sums */
	{ "i + j + i", "i*2 + j" },
	{ "j + i", "i + j" },
	{ "(i + 1)*4 - 4", "i*4" },
	{ "i - i", "0" },
	{ "i - 3 - j", "i - j - 3" },
	{ "0 - i", "-i" },
	{ "5 - i", "5 - i" },
	{ "-(i - 5)", "5 - i" },
	{ "3*(i + 2*j)*2", "i*6 + j*12" },
	{ "bx*N*2 + N*bx", "bx*N*3" },
	{ "1073741824 + i + 1073741824", "i + 1073741824 + 1073741824" },
	{ "tx // 2*32 + tx % 2*16 + (k + 2) % 3*1024", "((k + 2) % 3)*1024 + tx*16" },
	{ "(bx + 2) % 3*7 + p // 5*10 + i*j + p % 5*2", "((bx + 2) % 3)*7 + i*j + p*2" },
	/* division */
	{ "(4*i + j) // 4", "i" },
	{ "(4*i + j) % 4", "j" },
	{ "(i*16 + j + 5) // 16", "i" },
	{ "(i*16 + j*2 + 24) // 16", "i + 1" },
	{ "tx // 8 // 4", "tx // 32" },
	{ "tx % 32 % 8", "tx % 8" },
	{ "tx % 8 % 32", "tx % 8" },
	{ "tx % 128", "tx" },
	{ "tx // 128", "0" },
	{ "(tx % 32) // 8", "(tx // 8) % 4" },
	{ "tx // 4 * 4 + tx % 4", "tx" },
	{ "tx // 32 * 32 + tx // 8 % 4 * 8 + tx % 8", "tx" },
	{ "tx // 8 % 4 * 8 + tx % 8", "tx % 32" },
	{ "(tx*8 + j) // 64", "tx // 8" },
	{ "(tx*8 + j) % 64", "j + (tx % 8)*8" },
	{ "(bx*128 + tx) // 128", "bx" },
	{ "(bx*128 + tx) % 128", "tx" },
	{ "(bx*128 + tx - 1) % 128", "(tx + 127) % 128" },
	{ "(tx - 130) // 128", "(tx + 126) // 128 - 2" },
	{ "(8 - k) % 8", "-k % 8" },
	{ "(7 - k) // 8", "0" },
	{ "(tx*2 + i*128) // 256", "(i*64 + tx) // 128" },
	{ "(k*2 + i*16) // 64", "i // 4" },
	{ "p // -4", "-p // 4" },
	{ "p % 8 + p // 8 * 8", "p" },
	{ "(tx % 32 + i*32) % 8", "tx % 8" },
	{ "M % 8", "0" },
	{ "(M + 5) // 8", "M // 8" },
	{ "(M*3 + 5) % 8", "5" },
	{ "(M + 7) // 8 * 8", "M" },
	{ "(M + 127) // 128", "(M + 127) // 128" },
	{ "(N*i + j % N) // N", "i" },
	{ "(N*i + p % N) % N", "p % N" },
	{ "p // N * N + p % N", "p" },
	{ "N // N", "1" },
	{ "truncdiv(tx, 4)", "tx // 4" },
	{ "truncdiv(p, 4)", "truncdiv(p, 4)" },
	{ "truncmod(M, 4)", "0" },
	{ "truncdiv(-7, 2)", "-3" },
	{ "truncmod(-7, 2)", "-1" },
	{ "-7 // 2", "-4" },
	{ "-7 % 2", "1" },
	{ "7 // 0", "7 // 0" },
	/* addresses of copies and matrix instructions */
	{ "(i*1024 + tx*8) // 64*128 + ((i*1024 + tx*8) % 64 // 8 ^ (i*1024 + tx*8) // 64 % 8)*16",
	  "i*2048 + (tx // 8)*128 + ((tx % 8) ^ ((tx // 8) % 8))*16" },
	{ "(bx*128 + (i*1024 + tx*8 + k) // 64)*N + (i*1024 + tx*8 + k) % 64",
	  "(bx*128 + i*16 + tx // 8)*N + k + (tx % 8)*8" },
	{ "((tx % 32 // 4 + i*8)*64 + tx % 4*2 + k % 2) % 64", "k % 2 + (tx % 4)*2" },
	{ "(tx*4 + j) // 96*96 + (tx*4 + j) % 96", "j + tx*4" },
	{ "(tx*4 + j) // 96", "tx // 24" },
	{ "(i*16 + j) % 48 // 16", "i % 3" },
	/* bits */
	{ "tx & 7", "tx % 8" },
	{ "tx >> 3 & 3", "(tx // 8) % 4" },
	{ "tx & 24", "((tx // 8) % 4)*8" },
	{ "tx & -8", "(tx // 8)*8" },
	{ "tx << 2", "tx*4" },
	{ "tx ^ tx", "0" },
	{ "tx ^ 0", "tx" },
	{ "tx ^ i ^ tx", "i" },
	{ "tx ^ 5 ^ 3", "tx ^ 6" },
	{ "i*16 ^ k", "i*16 + k" },
	{ "i*8 | k", "i*8 + k" },
	{ "i*8 & k", "0" },
	{ "(k ^ i % 8)*16 + j*4", "((i % 8) ^ k)*16 + j*4" },
	{ "(i*128 + k*16) ^ (i % 8)*16", "i*128 + ((i % 8) ^ k)*16" },
	{ "(i*64 + tx // 16 * 8) ^ (i % 8) * 8", "i*64 + ((i % 8) ^ (tx // 16))*8" },
	{ "((k ^ i % 8)*16 + j) // 16", "(i % 8) ^ k" },
	{ "((k ^ i % 8)*16 + j) % 16", "j" },
	{ "(tx ^ k*8) // 8", "k ^ (tx // 8)" },
	{ "(tx ^ k*8) % 8", "tx % 8" },
	/* comparisons */
	{ "i < 16", "True" },
	{ "i < 15", "i < 15" },
	{ "i >= 0", "True" },
	{ "i > 15", "False" },
	{ "i + 3 < j + i", "False" },
	{ "i + 1 <= i + j", "j >= 1" },
	{ "4*i + 3 < 4*j + 16", "i < j + 4" },
	{ "3 - i <= 0", "i >= 3" },
	{ "k + 8*i < 96", "i < 12" },
	{ "k + 8*i < 8*j", "i < j" },
	{ "k + 8*i < 97", "i*8 + k < 97" },
	{ "p >= 1", "p >= 1" },
	{ "bx*128 + tx < M", "bx*128 + tx < M" },
	{ "2*i == 5", "False" },
	{ "2*i == 6", "i == 3" },
	{ "i != i", "False" },
	{ "M == 12", "False" },
	{ "not i < j", "j <= i" },
	{ "c == True", "c" },
	{ "c == False", "not c" },
	/* logic, selection */
	{ "c and True", "c" },
	{ "c or True", "True" },
	{ "c and not c", "False" },
	{ "c and i < 3 and c", "c and i < 3" },
	{ "c and i < 9 and i < 3", "c and i < 3" },
	{ "i < 3 and c and i < 9", "i < 3 and c" },
	{ "i < 3 or i < 9", "i < 9" },
	{ "i >= 3 and i >= 9", "i >= 9" },
	{ "not not c", "c" },
	{ "select(True, i, j)", "i" },
	{ "select(c, i, i)", "i" },
	{ "select(c, True, False)", "c" },
	{ "select(not c, i, j)", "select(c, j, i)" },
	/* minimum, maximum */
	{ "min(i, 20)", "i" },
	{ "max(i, 20)", "20" },
	{ "min(min(p, 7), 5)", "min(p, 5)" },
	{ "min(p + 1, p + 3)", "p + 1" },
	{ "max(i, max(j, i))", "max(i, j)" },
	/* types */
	{ "c + c", "int32(c)*2" },
	{ "w + i", "int64(i) + w" },
	{ "w*2 + 1", "w*2 + 1" },
	{ "f + 1", "f + 1.0f32" },
	{ "f*i", "f*float32(i)" },
	{ "i / j", "float32(i) / float32(j)" },
	{ "u - 1 + 1", "u" },
	{ "u + uint32(4294967295)", "u - 1" },
	{ "u*2 // 2", "u*2 // 2" },
	{ "u + i", "uint32(i) + u" },
	{ "u < 0", "False" },
	{ "H[i] + f", "float32(H[i]) + f" },
	{ "min(B[i], w)", "min(int64(B[i]), w)" },
	{ "c & c", "c" },
	{ "c ^ True", "not c" },
	{ "int32(int64(i))", "i" },
	{ "float16(float32(H[i]))", "H[i]" },
	{ "int64(5)", "int64(5)" },
	{ "uint8(300)", "uint8(44)" },
	{ "bool(p)", "p != 0" },
	{ "0.5f32*4.0f32", "2.0f32" },
	{ "0.1f32 + 0.2f32", "0.1f32 + 0.2f32" },
	{ "f*1.0f32", "f" },
	{ "f - 0.0f32", "f" },
};

/* A pool a row: what one row makes must not help the next. */
static void test_simplify(struct check *check)
{
	for (size_t i = 0; i < sizeof(simplify_rows) / sizeof(simplify_rows[0]); i++) {
		struct fixture f;
		open_fixture(&f);
		const char *got = print(&f, parse(&f, simplify_rows[i].from));
		if (!CHECK_TEXT(check, got, simplify_rows[i].to))
			printf("from %s\n", simplify_rows[i].from);
		close_fixture(&f);
	}
}

/* ---- text ---- */

static const char *const texts[] = {
	"A[i, j + 1]",
	"acc[k]",
	"select(c, A[i, j], 0.0f32)",
	"exp2(f)*1.5f32 - fma(f, 2.0f32, 0.5f32)",
	"bitcast(int32, f)",
	"call(float32, tl_clock)",
	"call(int32, \"ns::f<1>\", i, f)",
	"float16(1.5f32) + H[i]",
	"0.1f16",
	"3.0bf16",
	"1e+300f64",
	"-0.0f32",
	"float32(\"inf\")",
	"float16(\"-inf\")",
	"float64(\"nan\")",
	"const(float8_e4m3, 1.5f64)",
	"const(float32x4, 1.0f64)",
	"const(int32x2, 7)",
	"float32x4(f)",
	"uint8(200)",
	"int64(5)",
	"-9223372036854775808",
	"uint64(-1)",
	"(i < j) == c",
	"not (c and i < 3)",
	"~p",
	"-p*q_unknown",
	"p & 5 | 3",
	"p << i",
	"(p << i) + 1",
	"(p | i) & (j ^ p)",
	"p - (p << i)",
	"i % N // (j + N)",
	"f - (f - 1.0f32)",
	"f / (f / f)",
	"max(min(p, N), 3)",
	"truncmod(p, N)",
	"isnan(f) or c",
	"tab0[p]",
};

/* Every printed form reads back as the same object. */
static void test_text(struct check *check)
{
	static const int64_t values[] = { 5, 1, 4 };
	struct fixture f;
	open_fixture(&f);
	expr_new_table(f.pool, values, 3);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const struct expr *e = parse(&f, texts[i]);
		bool known = strstr(texts[i], "unknown") == NULL;
		CHECK_INT(check, e != NULL, known);
		if (e && !CHECK(check, parse(&f, print(&f, e)) == e))
			printf("%s prints as %s\n", texts[i], print(&f, e));
	}
	CHECK_TEXT(check, print(&f, parse(&f, "(p<<i)+1")), "(p << i) + 1");
	CHECK_TEXT(check, print(&f, parse(&f, " A[ i ,j ]")), "A[i, j]");
	close_fixture(&f);
}

/* Each has one mistake, in a place where a reader might run on. */
static const char *const bad_texts[] = {
	"",
	"(",
	"i +",
	"i < j < k",
	"A[",
	"A[i",
	"min(i)",
	"exp2(i, j)",
	"nothing",
	"nothing(i)",
	"12345678901234567890",
	"1x",
	"float32(\"big\")",
	"call(",
	"call(foo, bar)",
	"bitcast(i, j)",
	"const(int32, f)",
	"tab7[i]",
	"select(c, i)",
	"not",
	"-",
	"i * * j",
	"call(int32, 3)",
};

/* One diagnostic a text, and none that runs the stack full: twenty thousand brackets, or signs. */
static void test_bad_text(struct check *check)
{
	struct fixture f;
	open_fixture(&f);
	for (size_t i = 0; i < sizeof(bad_texts) / sizeof(bad_texts[0]); i++) {
		uint32_t before = f.cx.diags.n_errors;
		if (!CHECK(check, parse(&f, bad_texts[i]) == NULL) ||
		    !CHECK(check, f.cx.diags.n_errors == before + 1))
			printf("text %s\n", bad_texts[i]);
	}
	char deep[20001];
	memset(deep, '(', 20000);
	deep[20000] = '\0';
	CHECK(check, parse(&f, deep) == NULL);
	memset(deep, '-', 20000);
	CHECK(check, parse(&f, deep) == NULL);
	close_fixture(&f);
}

/* Pieces of texts, put together at random: most of what comes is no expression. */
static const char *const tokens[] = {
	"i",
	"j",
	"p",
	"w",
	"u",
	"f",
	"c",
	"N",
	"A[",
	"H[",
	"acc[",
	"B[",
	"tab0[",
	"]",
	"(",
	")",
	",",
	"+",
	"-",
	"*",
	"/",
	"//",
	"%",
	"&",
	"|",
	"^",
	"<<",
	">>",
	"<",
	"<=",
	"==",
	"!=",
	">",
	">=",
	"and ",
	"or ",
	"not ",
	"~",
	"0",
	"1",
	"3",
	"8",
	"-4",
	"2.5f16",
	"1.0f32",
	"0.1f64",
	"3bf16",
	"True",
	"min(",
	"max(",
	"truncdiv(",
	"truncmod(",
	"select(",
	"exp2(",
	"fma(",
	"isnan(",
	"int8(",
	"uint8(",
	"int64(",
	"uint64(",
	"float16(",
	"bool(",
	"bitcast(int32,",
	"float32(",
	"2147483647",
	"9223372036854775807",
	"-9223372036854775808",
	"4294967295",
};

static uint32_t below(uint64_t *state, uint32_t n)
{
	return (uint32_t)check_random(state) % n;
}

/* An expression of random operators, types and constants. */
static void random_text(struct buf *buf, uint64_t *state, int depth)
{
	static const char *const leaves[] = {
		"i",           "j",       "p",          "w",
		"u",           "f",       "c",          "N",
		"A[i]",        "H[j]",    "B[p]",       "acc[2]",
		"0",           "1",       "3",          "8",
		"-4",          "2.5f16",  "1.0f32",     "0.1f64",
		"3bf16",       "True",    "int8(5)",    "uint64(7)",
		"uint8(B[i])", "int8(p)", "2147483647", "9223372036854775807",
		"4294967295",
	};
	static const char *const functions[] = {
		"min(", "max(", "truncdiv(", "truncmod(", "select(c, ", "fma(f, ", "pow(", "select(p < 3, ",
	};
	static const char *const casts[] = {
		"-(",
		"~(",
		"not (",
		"int8(",
		"uint8(",
		"int32(",
		"int64(",
		"uint64(",
		"float16(",
		"bool(",
		"bitcast(float32, ",
		"exp2(",
		"isnan(",
		"tab0[",
		"B[",
	};
	uint32_t choice = depth == 0 ? 9 : below(state, 10);
	if (choice < 5) {
		buf_char(buf, '(');
		random_text(buf, state, depth - 1);
		buf_printf(buf, ") %s (", binary_op_text((enum binary_op)below(state, BIN_TRUNCDIV)));
		random_text(buf, state, depth - 1);
		buf_char(buf, ')');
	} else if (choice < 6) {
		buf_text(buf, "(");
		random_text(buf, state, depth - 1);
		buf_printf(buf, ") %s (", binary_op_text(BIN_BITAND + below(state, 13)));
		random_text(buf, state, depth - 1);
		buf_char(buf, ')');
	} else if (choice < 7) {
		buf_text(buf, functions[below(state, 8)]);
		random_text(buf, state, depth - 1);
		buf_text(buf, ", ");
		random_text(buf, state, depth - 1);
		buf_char(buf, ')');
	} else if (choice < 8) {
		uint32_t cast = below(state, 15);
		buf_text(buf, casts[cast]);
		random_text(buf, state, depth - 1);
		buf_char(buf, cast >= 13 ? ']' : ')');
	} else {
		buf_text(buf, leaves[below(state, sizeof(leaves) / sizeof(leaves[0]))]);
	}
}

/* Of all types mixed: what can be read prints as a text that reads back as the same object. */
static void test_random_text(struct check *check)
{
	static const int64_t values[] = { 5, 1, 4, 4 };
	struct fixture f;
	uint64_t state = 7;
	int n_read = 0;
	open_fixture(&f);
	expr_new_table(f.pool, values, 4);
	for (int i = 0; i < 20000; i++) {
		struct buf buf = { 0 };
		if (i % 4 == 0) {
			for (uint32_t n = 1 + below(&state, 9); n > 0; n--)
				buf_text(&buf, tokens[below(&state, sizeof(tokens) / sizeof(tokens[0]))]);
		} else {
			random_text(&buf, &state, 1 + (int)below(&state, 4));
		}
		const struct expr *e = parse(&f, buf_cstr(&buf));
		n_read += e != NULL;
		if (e && !CHECK(check, parse(&f, print(&f, e)) == e))
			printf("%s\nprints as %s\nthen %s\n", buf_cstr(&buf), print(&f, e),
			       print(&f, parse(&f, print(&f, e))));
		buf_free(&buf);
	}
	CHECK(check, n_read > 12000);
	close_fixture(&f);
}

/* Reading stops in front of what cannot continue the expression. */
static void test_text_end(struct check *check)
{
	struct fixture f;
	struct expr_names names = { resolve, &f };
	uint32_t at = 4;
	open_fixture(&f);
	uint32_t file = source_add(f.arena, &f.cx.sources, "t", str_of("for i*2 if c: # i"));
	const struct expr *e = expr_parse(&f.cx, f.pool, &names, file, &at);
	CHECK_TEXT(check, print(&f, e), "i*2");
	CHECK(check, at == 7 || at == 8);
	close_fixture(&f);
}

/* ---- questions ---- */

/* Ranges and divisors by hand. Half-known ranges keep their open side at INT64_MIN or INT64_MAX. */
static void test_ranges(struct check *check)
{
	static const struct {
		const char *text;
		bool known;
		int64_t min, max, divisor;
	} rows[] = {
		{ "i*4 + j", true, 0, 63, 1 },
		{ "i*8 + j*4", true, 0, 132, 4 },
		{ "M", false, 1, INT64_MAX, 8 },
		{ "M*2 + 8", false, 10, INT64_MAX, 8 },
		{ "p % 8", true, 0, 7, 1 },
		{ "p*4 % 32", true, 0, 28, 4 },
		{ "p*4 % 32 ^ 3", true, 3, 31, 1 },
		{ "p % N", false, 0, INT64_MAX, 1 },
		{ "i // N", true, 0, 15, 1 },
		{ "i ^ tx", true, 0, 127, 1 },
		{ "i | 33", true, 33, 63, 1 },
		{ "p & i", true, 0, 15, 1 },
		{ "select(c, i*4, 100)", true, 0, 100, 4 },
		{ "min(p, 4)", false, INT64_MIN, 4, 1 },
		{ "max(i - 5, 0)", true, 0, 10, 1 },
		{ "uint8(p)", true, 0, 255, 1 },
		{ "int32(w)", true, INT32_MIN, INT32_MAX, 1 },
		{ "u*4", true, 0, UINT32_MAX, 4 },
		{ "c", true, 0, 1, 1 },
		{ "tab0[j]", true, 6, 9, 3 },
		{ "tab0[p]", true, 0, 9, 3 },
		{ "A[i]", false, INT64_MIN, INT64_MAX, 1 },
		{ "bx*9223372036854775807", false, 0, INT64_MAX, INT64_MAX },
	};
	static const int64_t values[] = { 6, 9, 6, 9 };
	struct fixture f;
	open_fixture(&f);
	expr_new_table(f.pool, values, 4);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct expr *e = parse(&f, rows[i].text);
		int64_t min, max;
		bool ok = CHECK(check, e != NULL) &&
		          CHECK_INT(check, expr_range(e, &min, &max), rows[i].known) &&
		          CHECK_INT(check, min, rows[i].min) && CHECK_INT(check, max, rows[i].max) &&
		          CHECK_INT(check, expr_divisor(e), rows[i].divisor);
		if (!ok)
			printf("of %s\n", rows[i].text);
	}
	close_fixture(&f);
}

/* Coefficient and rest of a variable; not where it stands inside a quotient or beside a symbol. */
static void test_linear(struct check *check)
{
	struct fixture f;
	const struct expr *rest;
	int64_t coefficient;
	open_fixture(&f);
	CHECK(check, expr_linear_in(f.pool, parse(&f, "i*6 + j*2 + p % 4 - i*2"), f.vars[1],
	                            &coefficient, &rest));
	CHECK_INT(check, coefficient, 4);
	CHECK_TEXT(check, print(&f, rest), "j*2 + p % 4");
	CHECK(check, expr_linear_in(f.pool, parse(&f, "j*2"), f.vars[1], &coefficient, &rest));
	CHECK_INT(check, coefficient, 0);
	CHECK(check, !expr_linear_in(f.pool, parse(&f, "i // 2 + i"), f.vars[1], &coefficient, &rest));
	CHECK(check, !expr_linear_in(f.pool, parse(&f, "i*N"), f.vars[1], &coefficient, &rest));
	CHECK(check, expr_uses(parse(&f, "A[i // 2, 3]"), f.vars[1]));
	CHECK(check, !expr_uses(parse(&f, "A[i // 2, 3]"), f.vars[2]));
	close_fixture(&f);
}

/* ---- substitution and walks ---- */

/* Loads of A[i] become loads of B[2 i]; others stay. */
static const struct expr *double_index(void *user, const struct expr *load)
{
	struct fixture *f = user;
	if (load->as.buffer != &f->buffers[0])
		return NULL;
	const struct expr *index = expr_mul_int(f->pool, load->args[0], 2);
	return expr_load(f->pool, &f->buffers[1], DTYPE_I32, &index, 1);
}

/* A visitor that counts. */
static void count(void *user, const struct expr *e)
{
	(void)e;
	(*(int *)user)++;
}

/* Variables and loads at once, with the result simplified. A walk meets each shared part once. */
static void test_substitute(struct check *check)
{
	struct fixture f;
	struct expr_subst subst = { .on_load = NULL };
	open_fixture(&f);
	const struct expr *value = parse(&f, "tx // 8");
	map_set(f.arena, &subst.of_var, f.vars[1]->id, (void *)(uintptr_t)value);
	const struct expr *e = parse(&f, "i*8 + tx % 8 + A[i]");
	CHECK_TEXT(check, print(&f, expr_substitute(f.pool, e, &subst)), "float32(tx) + A[tx // 8]");
	subst.on_load = double_index;
	subst.user = &f;
	CHECK_TEXT(check, print(&f, expr_substitute(f.pool, parse(&f, "A[j] + H[i]"), &subst)),
	           "float32(B[j*2]) + float32(H[tx // 8])");
	int n = 0;
	expr_walk(parse(&f, "i*j + i*j*N"), count, &n);
	CHECK_INT(check, n, 6); /* i, j, N, i*j, i*j*N and the sum */
	close_fixture(&f);
}

/* Doubling a shared operand 5000 times: a tree of 2^5000 nodes, yet every pass is quick. */
static void test_depth(struct check *check)
{
	struct fixture f;
	struct expr_subst subst = { .on_load = NULL };
	open_fixture(&f);
	const struct expr *e = parse(&f, "p");
	for (int i = 0; i < 5000; i++)
		e = expr_binary(f.pool, i % 2 ? BIN_BITXOR : BIN_MUL, e,
		                expr_binary(f.pool, BIN_SHL, e, parse(&f, "i")));
	CHECK(check, e->depth > 5000);
	CHECK_INT(check, e->n_nodes, UINT32_MAX);
	CHECK(check, !expr_uses(e, f.vars[2]));
	CHECK(check, expr_uses(e, f.vars[1]));
	map_set(f.arena, &subst.of_var, f.vars[1]->id, (void *)(uintptr_t)parse(&f, "j"));
	const struct expr *other = expr_substitute(f.pool, e, &subst);
	CHECK(check, other != e && !expr_uses(other, f.vars[1]));
	int64_t values[N_VARS] = { 0 }, lane_values[3] = { 1, 2, 3 }, out[3];
	struct expr_code *code = expr_compile(f.arena, e);
	values[7] = 3;
	int64_t at_zero = expr_run(code, values);
	CHECK_INT(check, at_zero, 0); /* x ^ x << 0 */
	expr_run_lanes(code, values, &(struct lane_values){ f.vars[1]->id, lane_values, 3 }, out);
	values[1] = 2;
	CHECK_INT(check, out[1], expr_run(code, values));
	close_fixture(&f);
}

/* Left-leaning chains of 5000 distinct operands are evaluated, printed and read back. */
static void test_long_chain(struct check *check)
{
	struct fixture f;
	struct buf buf = { 0 };
	int64_t values[N_VARS] = { 0 }, want = 0;
	open_fixture(&f);
	const struct expr *e = parse(&f, "p");
	values[7] = want = 123;
	for (int i = 0; i < 4900; i++) {
		e = expr_binary(f.pool, i % 2 ? BIN_TRUNCMOD : BIN_ADD, e, expr_int(f.pool, i + 1000));
		want = i % 2 ? want % (i + 1000) : want + i + 1000;
	}
	CHECK_INT(check, expr_eval_int(e, values), want);
	expr_print(&buf, &f.cx, e);
	CHECK(check, buf.n > 4900 * 7);
	buf_free(&buf);
	close_fixture(&f);
}

/* A loop that never runs has an empty range; expressions of its variable are as good as any. */
static void test_empty_range(struct check *check)
{
	struct fixture f;
	int64_t min, max;
	open_fixture(&f);
	f.vars[1]->max = -1;
	f.vars[2]->max = -1;
	static const char *const rows[] = { "i ^ j", "i | 5", "j << i", "i % 4 + i // 4", "tab0[i]" };
	expr_new_table(f.pool, &(int64_t){ 3 }, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct expr *e = parse(&f, rows[i]);
		CHECK(check, e != NULL);
		expr_bounds(e, &min, &max);
		CHECK(check, min <= max);
	}
	close_fixture(&f);
}

/* ---- identity ---- */

/*
 * Equal expressions are one object; types, signs of zero and casts tell them apart, the bits of a
 * NaN do not.
 */
static void test_identity(struct check *check)
{
	struct fixture f;
	open_fixture(&f);
	const struct expr *e = parse(&f, "i*4 + j");
	CHECK(check, e == parse(&f, "j + 4*i"));
	CHECK(check, e != parse(&f, "int64(j + 4*i)"));
	CHECK(check, parse(&f, "int64(1)") != parse(&f, "1"));
	CHECK(check, parse(&f, "0.0f32") != parse(&f, "-0.0f32"));
	CHECK(check, parse(&f, "float32(\"nan\")") == expr_float(f.pool, DTYPE_F32, -(double)NAN));
	CHECK(check, expr_and(f.pool, NULL, NULL) == NULL);
	CHECK(check, expr_and(f.pool, e, NULL) == e);
	CHECK(check, expr_is_true(NULL) && expr_is_true(parse(&f, "i < 16")));
	CHECK(check, !expr_is_true(e) && expr_is_int(parse(&f, "i - i"), NULL));
	CHECK_INT(check, math_fn_arity(MATH_fma), 3);
	enum math_fn fn = MATH_exp;
	CHECK(check, math_fn_find("rsqrt", &fn) && fn == MATH_rsqrt && !math_fn_find("none", &fn));
	close_fixture(&f);
}

int main(void)
{
	struct check check = { 0 };
	test_simplify(&check);
	test_text(&check);
	test_bad_text(&check);
	test_random_text(&check);
	test_text_end(&check);
	test_ranges(&check);
	test_linear(&check);
	test_substitute(&check);
	test_depth(&check);
	test_long_chain(&check);
	test_empty_range(&check);
	test_identity(&check);
	return check_end(&check);
}
