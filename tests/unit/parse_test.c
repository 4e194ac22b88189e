/*
 * Trees of texts, printed with every operator in parentheses, so that a row shows precedence and
 * associativity. The trees are worked out by hand from Python's reference, chapters 6 to 8; what is
 * printed must parse to the same print again.
 */
#include "analyzer/frontend/ast.h"
#include "tests/unit/check.h"
#include "tests/unit/kernel_text.h"

/* The tree of a text, printed; the first diagnostic when it is not Python. */
static const char *reprint(struct kernel_text *kt)
{
	struct ast_module *module = parse_file(&kt->cx, kt->file, 200);
	struct buf out = { 0 };
	const char *text;

	if (!module)
		return kernel_text_first(kt);
	ast_print(&out, &kt->cx, module);
	text = arena_strndup(kt->arena, buf_cstr(&out), out.n);
	buf_free(&out);
	return text;
}

/* A text, and its tree printed or "CODE line:column" of its first diagnostic. */
struct parse_case {
	const char *text, *tree;
};

/* Parses, prints and compares; with `reads_back` the print is parsed and printed once more. */
static void check_case(struct check *check, const struct parse_case *c, bool reads_back)
{
	struct kernel_text kt, again;
	const char *tree;

	kernel_text_open(&kt, c->text, strlen(c->text));
	tree = reprint(&kt);
	CHECK_TEXT(check, tree, c->tree);
	if (reads_back) {
		kernel_text_open(&again, tree, strlen(tree));
		CHECK_TEXT(check, reprint(&again), tree);
		kernel_text_close(&again);
	}
	kernel_text_close(&kt);
}

/*
 * Operators of every level, displays, comprehensions, calls, slices, strings. Rows with braces or
 * await are not read back: their prints are no Python.
 */
static void test_expressions(struct check *check)
{
	static const struct parse_case cases[] = {
		{ "a + b * c - d", "((a + (b * c)) - d)\n" },
		{ "-a ** -b ** c", "(-(a ** (-(b ** c))))\n" },
		{ "a << b + c & d | e ^ f", "(((a << (b + c)) & d) | (e ^ f))\n" },
		{ "not a in b and c or d", "(((not (a in b)) and c) or d)\n" },
		{ "a < b <= c is not d", "(a < b <= c is not d)\n" },
		{ "a not in b", "(a not in b)\n" },
		{ "x if c else y if d else z", "(x if c else (y if d else z))\n" },
		{ "lambda: 0", "(lambda: 0)\n" },
		{ "lambda i, j=1, *a, k, **b: i // 2", "(lambda i, j=1, *a, k, **b: (i // 2))\n" },
		{ "f(a, *b, c=1, **d)(e)[f].g", "f(a, *b, c=1, **d)(e)[f].g\n" },
		{ "A[i, 0:4, :, ::2, ...]", "A[i, 0:4, :, ::2, ...]\n" },
		{ "A[i,]", "A[i,]\n" },
		{ "[x * y for x in a if x if y for y in b]",
		  "[(x * y) for x in a if x if y for y in b]\n" },
		{ "{k: v for k, v in d}", "{k: v for (k, v) in d}\n" },
		{ "{1, 2}", "{1, 2}\n" },
		{ "{1: 2, **d}", "{1: 2, **d}\n" },
		{ "sum(x for x in y)", "sum((x for x in y))\n" },
		{ "()", "()\n" },
		{ "(a,)", "(a,)\n" },
		{ "a, *b", "(a, *b)\n" },
		{ "(y := f(x)) + 1", "((y := f(x)) + 1)\n" },
		{ "f\"a{b}c{d!r:>{w}}{{}}\"", "f\"a{b}c{d!r:>{w}}{}\"\n" },
		{ "f'{x=}' 'tail'", "f\"{x=}tail\"\n" },
		{ "f'{a[\"k\"]}{f(1, 2):.3f}'", "f\"{a[\"k\"]}{f(1, 2):.3f}\"\n" },
		{ "'a' \"b\"", "\"ab\"\n" },
		{ "True, False, None, 1.5, 0x10", "(True, False, None, 1.5, 16)\n" },
		{ "a @ b % c", "((a @ b) % c)\n" },
		{ "~a + +b", "((~a) + (+b))\n" },
		{ "await f(x)", "(yield f(x))\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_case(check, &cases[i],
		           !strchr(cases[i].text, '{') && !strstr(cases[i].text, "await"));
}

/* One row a kind of statement, with its optional parts. */
static void test_statements(struct check *check)
{
	static const struct parse_case cases[] = {
		{ "a = b = c, d\n", "a = b = (c, d)\n" },
		{ "a, (b, *c) = d\n", "(a, (b, *c)) = d\n" },
		{ "a.b[c] += 1; x: T.int32 = 2; y: int\n", "a.b[c] += 1\nx: T.int32 = 2\ny: int\n" },
		{ "if a: b\nelif c:\n  d\nelse: e\n", "if a:\n\tb\nelif c:\n\td\nelse:\n\te\n" },
		{ "for i, j in T.Parallel(a, b):\n  pass\nelse:\n  pass\n",
		  "for (i, j) in T.Parallel(a, b):\n\tpass\nelse:\n\tpass\n" },
		{ "while a:\n  break\n", "while a:\n\tbreak\n" },
		{ "with T.Kernel(a, threads=b) as (x, y), f() as z:\n  continue\n",
		  "with T.Kernel(a, threads=b) as (x, y), f() as z:\n\tcontinue\n" },
		{ "with (\n  f() as a,\n  g(),\n):\n  pass\n", "with f() as a, g():\n\tpass\n" },
		{ "@a.b(1)\n@c\ndef f(x: T.Tensor((1,), d), /, y=2, *, z) -> int:\n  return x\n",
		  "@a.b(1)\n@c\ndef f(x: T.Tensor((1,), d), /, y=2, *, z):\n\treturn x\n" },
		{ "class A(B):\n  def m(self): pass\nx = 1\n", "class A: ...\nx = 1\n" },
		{ "try:\n  a\nexcept (B, C) as e:\n  d\nfinally:\n  f\n",
		  "try:\n\ta\nexcept:\n\td\nfinally:\n\tf\n" },
		{ "import a.b as c, d\nfrom . import e\nfrom ..f import (g as h, i,)\nfrom j import *\n",
		  "import a.b as c\nimport d\nfrom . import e\nfrom ..f import g as h\nfrom ..f import "
		  "i\nfrom j import *\n" },
		{ "assert a, b\nraise C(d) from e\nglobal x, y\nnonlocal z\ndel p, q[1]\nreturn\n",
		  "assert a, b\nraise C(d)\nglobal x, y\nnonlocal z\ndel p, q[1]\nreturn\n" },
		{ "def f():\n  \"\"\"text\"\"\"\n  def g():\n    pass\n",
		  "def f():\n\t\"text\"\n\tdef g():\n\t\tpass\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_case(check, &cases[i], !strstr(cases[i].text, "class"));
}

/* The first error is at the token that the grammar does not take there. */
static void test_errors(struct check *check)
{
	static const struct parse_case cases[] = {
		{ "a = ", "E0108 1:5" },
		{ "a b", "E0108 1:3" },
		{ "f(a b)", "E0108 1:5" },
		{ "f() = 1", "E0108 1:1" },
		{ "for 1 in a:\n  b", "E0108 1:5" },
		{ "if a\n  b", "E0108 1:5" },
		{ "if a:\nb", "E0108 2:1" },
		{ "  a", "E0106 1:1" },
		{ "def f(a, a): pass", "E0108 1:10" },
		{ "x if y", "E0108 1:7" },
		{ "f'{a'", "E0104 1:3" },
		{ "f'a}'", "E0104 1:4" },
		{ "f'{1 +}'", "E0108 1:7" },
		{ "lambda x", "E0108 1:9" },
		{ "import", "E0108 1:7" },
		{ "a[1", "E0107 1:2" },
		{ "@a\nx = 1", "E0108 2:1" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_case(check, &cases[i], false);
}

/* n copies of a piece of text around a middle. */
static const char *repeated(struct buf *out, const char *before, const char *middle,
                            const char *after, int n)
{
	out->n = 0;
	for (int i = 0; i < n; i++)
		buf_text(out, before);
	buf_text(out, middle);
	for (int i = 0; i < n; i++)
		buf_text(out, after);
	return buf_cstr(out);
}

/* Deep nesting of every kind: E0109, not a full stack. */
static void test_depth(struct check *check)
{
	static const struct {
		const char *before, *middle, *after;
	} kinds[] = {
		{ "(", "a", ")" },           { "[", "a", "]" }, { "f(", "a", ")" },
		{ "a[", "a", "]" },          { "-", "a", "" },  { "not ", "a", "" },
		{ "", "a", "**a" },          { "", "a", "+a" }, { "lambda: ", "a", "" },
		{ "a if b else ", "a", "" }, { "", "a", ".b" }, { "", "a", "()" },
		{ "", "a", " and a" },
	};
	struct buf text = { 0 };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct kernel_text kt;

		repeated(&text, kinds[i].before, kinds[i].middle, kinds[i].after, 20000);
		kernel_text_open(&kt, text.p, text.n);
		CHECK(check, !parse_file(&kt.cx, kt.file, 200));
		CHECK(check, strncmp(kernel_text_first(&kt), "E0109", 5) == 0);
		kernel_text_close(&kt);
	}
	buf_free(&text);
}

int main(void)
{
	struct check check = { 0 };

	test_expressions(&check);
	test_statements(&check);
	test_errors(&check);
	test_depth(&check);
	return check_end(&check);
}
