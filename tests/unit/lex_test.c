/*
 * Tokens of texts, and the places of lexical errors. What is right was worked out by hand from
 * Python's reference, chapter 2; each row is a rule there or one of its corners.
 */
#include "analyzer/frontend/lex.h"
#include "tests/unit/check.h"
#include "tests/unit/kernel_text.h"

/* Tokens on one line: names and signs as they are, ints and floats by value, strings in bars. */
static const char *dump(struct kernel_text *kt)
{
	struct token_list tokens = { 0 };
	struct buf out = { 0 };
	const char *text;

	if (!lex_file(&kt->cx, kt->file, &tokens))
		return kernel_text_first(kt);
	for (uint32_t i = 0; i < tokens.n; i++) {
		const struct token *t = &tokens.p[i];

		buf_text(&out, i ? " " : "");
		if (t->kind == TOK_INT && t->is_huge)
			buf_text(&out, "huge");
		else if (t->kind == TOK_INT)
			buf_printf(&out, "%lld", (long long)t->as.integer);
		else if (t->kind == TOK_FLOAT)
			buf_double(&out, t->as.number);
		else if (t->kind == TOK_NAME)
			buf_text(&out, sym_text(kt->cx.names, t->as.name));
		else if (t->kind == TOK_STRING) {
			buf_char(&out, '|');
			lex_string_value(
				&kt->cx, t,
				(struct span){ kt->file, t->as.string.text_begin, t->as.string.text_end }, &out);
			buf_char(&out, '|');
		} else if (t->kind <= TOK_DEDENT)
			buf_char(&out, "$;><"[t->kind]);
		else
			buf_add(&out, token_text(t->kind) + 1, strlen(token_text(t->kind)) - 2);
	}
	text = arena_strndup(kt->arena, buf_cstr(&out), out.n);
	buf_free(&out);
	return text;
}

/* A text, and its tokens in the form of dump() or "CODE line:column" of its first diagnostic. */
struct lex_case {
	const char *text, *tokens;
};

/*
 * One row a rule: byte order mark, joined lines, indentation, numbers, prefixes, escapes, longest
 * signs, keywords inside names.
 */
static void test_tokens(struct check *check)
{
	static const struct lex_case cases[] = {
		{ "", "$" },
		{ "\xef\xbb\xbfx", "x ; $" },
		{ "a = f(b,\n   c) # comment\n", "a = f ( b , c ) ; $" },
		{ "if a:\n\tb\n\n  # note\n\tc\nd", "if a : ; > b ; c ; < d ; $" },
		{ "if a:\r\n  if b:\r\n    c\r\nd\r\n", "if a : ; > if b : ; > c ; < < d ; $" },
		{ "x = 1 + \\\n  2", "x = 1 + 2 ; $" },
		{ "0x_fF 0b101 0o17 1_000 00", "255 5 15 1000 0 ; $" },
		{ "9223372036854775807 9223372036854775808", "9223372036854775807 huge ; $" },
		{ "1. .5 1e3 1.5E-2 1_0.0_1", "1 0.5 1000 0.015 10.01 ; $" },
		{ "1.real if 1 else 2", "E0105 1:1" },
		{ "'a' \"b\" r'\\n' b'x' f'{y}' rb'\\'' ''", "|a| |b| |\\n| |x| |{y}| |\\'| || ; $" },
		{ "'''a\n'b''' \"\"\"\"c\"\"\"", "|a\n'b| |\"c| ; $" },
		{ "'\\x41\\u00e9\\101\\t\\q\\\nz'", "|A\xc3\xa9"
		                                    "A\t\\qz| ; $" },
		{ "d\xc3\xa9j\xc3\xa0 \xe5\x90\x8d", "d\xc3\xa9j\xc3\xa0 \xe5\x90\x8d ; $" },
		{ "a<<=b>>c**=d//e!=f->g:=h...", "a <<= b >> c **= d // e != f -> g := h ... ; $" },
		{ "notx not x", "notx not x ; $" },
		{ "(\n[\n{\n}\n]\n)", "( [ { } ] ) ; $" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct kernel_text kt;

		kernel_text_open(&kt, cases[i].text, strlen(cases[i].text));
		CHECK_TEXT(check, dump(&kt), cases[i].tokens);
		kernel_text_close(&kt);
	}
}

/*
 * The first error of a text and where it points: the character, the opening quotes, the line, the
 * bracket.
 */
static void test_errors(struct check *check)
{
	static const struct lex_case cases[] = {
		{ "a = $", "E0101 1:5" },
		{ "\na = \xe2\x80\x9cx\xe2\x80\x9d", "E0101 2:5" },
		{ "a\xc2\xa0= 1", "E0101 1:2" },
		{ "# caf\xe9", "E0102 1:6" },
		{ "a = 'x", "E0104 1:5" },
		{ "a = '''x\n\n", "E0104 1:5" },
		{ "a = 0b12", "E0105 1:5" },
		{ "a = 0x", "E0105 1:5" },
		{ "a = 12ab", "E0105 1:5" },
		{ "a = 1j", "E0105 1:5" },
		{ "if a:\n    b\n  c", "E0106 3:1" },
		{ "if a:\n        b\n\tc", "E0106 3:1" },
		{ "f(a]", "E0107 1:4" },
		{ "f(a\nb", "E0107 1:2" },
		{ "a)", "E0107 1:2" },
		{ "'\\x4'", "E0104 1:2" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct kernel_text kt;
		const char *tokens;

		kernel_text_open(&kt, cases[i].text, strlen(cases[i].text));
		tokens = dump(&kt);
		CHECK_TEXT(check, kt.cx.diags.n_errors ? kernel_text_first(&kt) : tokens, cases[i].tokens);
		kernel_text_close(&kt);
	}
}

/* A NUL, and every single byte alone: an answer, never a crash. */
static void test_bytes(struct check *check)
{
	for (int byte = 0; byte < 256; byte++) {
		char text[2] = { (char)byte, 'a' };
		struct token_list tokens = { 0 };
		struct kernel_text kt;
		bool ok;

		kernel_text_open(&kt, text, 2);
		ok = lex_file(&kt.cx, kt.file, &tokens);
		CHECK(check, ok == (kt.cx.diags.n_errors == 0));
		CHECK(check, byte != 0 || strcmp(kernel_text_first(&kt), "E0103 1:1") == 0);
		CHECK(check, byte < 0x80 || !ok);
		kernel_text_close(&kt);
	}
}

int main(void)
{
	struct check check = { 0 };

	test_tokens(&check);
	test_errors(&check);
	test_bytes(&check);
	return check_end(&check);
}
