/*
 * One pass over the bytes. The whole text is checked for NUL and invalid UTF-8 first, so that the
 * scanner below only meets whole characters. (Python reference, chapter 2 "Lexical analysis".)
 *
 *     x = f(a,      NAME '=' NAME '(' NAME ',' NAME ')' NEWLINE
 *           b)
 *
 * Lines become NEWLINE, INDENT and DEDENT tokens: columns of the open blocks are on a stack, and
 * between brackets line ends are blanks. A string token holds positions in the source;
 * lex_string_value works out its text when the parser wants it.
 */
#include "analyzer/frontend/lex.h"

#include "base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The state of one run. `brackets` is the stack of what is open, with places for the messages. */
struct lexer {
	struct cx *cx;
	uint32_t file;
	struct str text; /* up to where tokens are read */
	uint32_t at;
	bool is_expression;  /* no lines and no indentation */
	struct map keywords; /* sym -> token kind */
	struct token_list *tokens;
	struct {
		char sign;
		uint32_t at;
	} brackets[LEX_MAX_BRACKETS];
	uint32_t n_brackets;
	struct {
		uint32_t column;     /* tabs go to multiples of 8 */
		uint32_t alt_column; /* tabs count as 1: both must agree on the order */
	} indents[LEX_MAX_INDENTS];
	uint32_t n_indents;
};

/* Of bytes of the file. */
static struct span span_of(const struct lexer *lx, uint32_t begin, uint32_t end)
{
	return (struct span){ lx->file, begin, end };
}

/* The byte `ahead` of the position; 0 past the end. */
static unsigned char peek(const struct lexer *lx, uint32_t ahead)
{
	return ahead < lx->text.n - lx->at ? (unsigned char)lx->text.p[lx->at + ahead] : 0;
}

/* A token from `begin` to the position. */
static struct token *push(struct lexer *lx, enum token_kind kind, uint32_t begin)
{
	assert(begin <= lx->at && lx->at <= lx->text.n);
	vec_push(lx->cx->arena, lx->tokens,
	         (struct token){ .kind = kind, .begin = begin, .end = lx->at });
	return &vec_last(lx->tokens);
}

/* One look at the whole text, so that the scanner need not check characters again. */
static bool check_bytes(struct lexer *lx)
{
	uint32_t at = lx->at;

	while (at < lx->text.n) {
		uint32_t begin = at;

		if (lx->text.p[at] == 0) {
			diag_report(&lx->cx->diags, DIAG_E0103, span_of(lx, at, at + 1),
			            "the text holds a NUL byte");
			return false;
		}
		if (str_char_at(lx->text, &at) == 0xfffd && at == begin + 1) {
			diag_report(&lx->cx->diags, DIAG_E0102, span_of(lx, begin, begin + 1),
			            "the text is not UTF-8: byte 0x%02x starts no character",
			            (unsigned char)lx->text.p[begin]);
			diag_help(&lx->cx->diags, "save the file as UTF-8");
			return false;
		}
	}
	return true;
}

/* ASCII only: Python's grammar has no other digits in numbers. */
static bool is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

/* Value of a digit of any base up to 16; 99 for other characters. */
static uint32_t digit_value(unsigned char c)
{
	unsigned char lower = c | 0x20;

	if (is_digit(c))
		return c - (uint32_t)'0';
	return lower >= 'a' && lower <= 'f' ? lower - (uint32_t)'a' + 10 : 99;
}

/* What a name may begin with, besides the letters above ASCII. */
static bool is_ascii_name_start(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Ranges of punctuation, spaces, arrows, symbols and emoji: what no name may hold (Unicode blocks).
 */
static bool is_name_char(uint32_t c)
{
	static const uint32_t no_names[][2] = {
		{ 0x80, 0xa9 },     { 0xab, 0xb4 },     { 0xb6, 0xb6 },       { 0xb8, 0xb9 },
		{ 0xbb, 0xbf },     { 0xd7, 0xd7 },     { 0xf7, 0xf7 },       { 0x2000, 0x206f },
		{ 0x20a0, 0x20cf }, { 0x2190, 0x2bff }, { 0x3000, 0x3004 },   { 0x3008, 0x3020 },
		{ 0xe000, 0xf8ff }, { 0xfe10, 0xfe1f }, { 0xfe30, 0xfe6f },   { 0xfeff, 0xff0f },
		{ 0xff1a, 0xff20 }, { 0xfff0, 0xffff }, { 0x1f000, 0x1faff },
	};

	for (size_t i = 0; i < sizeof(no_names) / sizeof(*no_names); i++) {
		if (c >= no_names[i][0] && c <= no_names[i][1])
			return false;
	}
	return c >= 0x80;
}

/* The help names the plain character that was probably meant. */
static bool bad_char(struct lexer *lx)
{
	uint32_t begin = lx->at, end = lx->at;
	uint32_t c = str_char_at(lx->text, &end);

	diag_report(&lx->cx->diags, DIAG_E0101, span_of(lx, begin, end),
	            "%.*s (U+%04X) has no meaning here", c < 0x20 ? 0 : (int)(end - begin),
	            lx->text.p + begin, c);
	if (c >= 0x2018 && c <= 0x201f)
		diag_help(&lx->cx->diags, "write a plain quote: \" or '");
	else if (c == 0xa0 || (c >= 0x2000 && c <= 0x200f) || c == 0x3000)
		diag_help(&lx->cx->diags, "write a plain space");
	return false;
}

/* Moves behind a name: ASCII letters, digits and "_", and what is_name_char takes above ASCII. */
static void skip_name(struct lexer *lx)
{
	while (lx->at < lx->text.n) {
		uint32_t next = lx->at;
		unsigned char c = (unsigned char)lx->text.p[lx->at];

		if (is_ascii_name_start(c) || is_digit(c)) {
			lx->at++;
			continue;
		}
		if (c < 0x80 || !is_name_char(str_char_at(lx->text, &next)))
			return;
		lx->at = next;
	}
}

/* Names and keywords. */
static void lex_name(struct lexer *lx)
{
	uint32_t begin = lx->at;
	const struct map_entry *keyword;
	struct token *token;
	sym_t name;

	skip_name(lx);
	name = intern(lx->cx->names, (struct str){ lx->text.p + begin, lx->at - begin });
	keyword = map_find(&lx->keywords, name);
	token = push(lx, keyword ? (enum token_kind)keyword->value.number : TOK_NAME, begin);
	token->as.name = name;
}

/*
 * Moves behind digits of `base` with single underscores between them; the number of digits. After
 * 0x, 0o, 0b an underscore may come first (Python reference, "Integer literals").
 */
static uint32_t skip_digits(struct lexer *lx, uint32_t base)
{
	uint32_t n = 0;

	for (;;) {
		unsigned char c = peek(lx, 0);

		if (c == '_' && (n > 0 || base != 10) && digit_value(peek(lx, 1)) < base)
			lx->at++;
		else if (digit_value(c) < base)
			n++, lx->at++;
		else
			return n;
	}
}

/*
 * Integer value of the digits in [begin, at). Beyond 64 bits the token is marked: the number is an
 * error only where it is used.
 */
static void int_value(struct lexer *lx, struct token *token, uint32_t begin, uint32_t base)
{
	uint64_t value = 0;

	for (uint32_t i = begin; i < token->end; i++) {
		unsigned char c = (unsigned char)lx->text.p[i];
		uint64_t digit = digit_value(c);

		if (c == '_')
			continue;
		if (value > ((uint64_t)INT64_MAX - digit) / base) {
			token->is_huge = true;
			return;
		}
		value = value * base + digit;
	}
	token->as.integer = (int64_t)value;
}

/* strtod knows no underscores. */
static void float_value(struct lexer *lx, struct token *token)
{
	struct buf digits = { 0 };

	for (uint32_t i = token->begin; i < token->end; i++) {
		if (lx->text.p[i] != '_')
			buf_char(&digits, lx->text.p[i]);
	}
	token->as.number = strtod(buf_cstr(&digits), NULL);
	buf_free(&digits);
}

/* The whole run of letters and digits is marked. */
static bool bad_number(struct lexer *lx, uint32_t begin, const char *why)
{
	skip_name(lx);
	diag_report(&lx->cx->diags, DIAG_E0105, span_of(lx, begin, lx->at), "%s", why);
	return false;
}

/* 0x, 0o, 0b. */
static bool lex_based_int(struct lexer *lx, uint32_t base)
{
	uint32_t begin = lx->at;

	lx->at += 2;
	if (skip_digits(lx, base) == 0)
		return bad_number(lx, begin, "digits are missing after the base");
	if (is_ascii_name_start(peek(lx, 0)) || is_digit(peek(lx, 0)))
		return bad_number(lx, begin, "this is no number: a digit does not fit its base");
	int_value(lx, push(lx, TOK_INT, begin), begin + 2, base);
	return true;
}

/* A name right behind a number is a mistake, not two tokens. */
static bool lex_number(struct lexer *lx)
{
	uint32_t begin = lx->at;
	unsigned char second = peek(lx, 1) | 0x20;
	bool is_float = false;

	if (peek(lx, 0) == '0' && (second == 'x' || second == 'o' || second == 'b'))
		return lex_based_int(lx, second == 'x' ? 16 : second == 'o' ? 8 : 2);
	skip_digits(lx, 10);
	if (peek(lx, 0) == '.') {
		is_float = true;
		lx->at++;
		skip_digits(lx, 10);
	}
	if ((peek(lx, 0) | 0x20) == 'e') {
		uint32_t sign = peek(lx, 1) == '+' || peek(lx, 1) == '-';

		if (is_digit(peek(lx, 1 + sign))) {
			is_float = true;
			lx->at += 1 + sign;
			skip_digits(lx, 10);
		}
	}
	if ((peek(lx, 0) | 0x20) == 'j')
		return bad_number(lx, begin, "complex numbers are not supported");
	if (is_ascii_name_start(peek(lx, 0)))
		return bad_number(lx, begin, "a number runs into a name");
	if (is_float)
		float_value(lx, push(lx, TOK_FLOAT, begin));
	else
		int_value(lx, push(lx, TOK_INT, begin), begin, 10);
	return true;
}

/*
 * Length of a string prefix (r, b, f, u and pairs) that a quote follows; -1 when there is none.
 * Pairs that Python refuses (ub) come through: their text is read the same way.
 */
static int string_prefix(const struct lexer *lx)
{
	for (int n = 0; n <= 2; n++) {
		unsigned char c = peek(lx, (uint32_t)n);

		if (c == '"' || c == '\'')
			return n;
		if (c == 0 || !strchr("rRbBfFuU", c))
			return -1;
	}
	return -1;
}

/* Points at the opening quotes: where the end is missing nobody can tell. */
static bool unterminated(struct lexer *lx, uint32_t begin, uint32_t quote_bytes)
{
	diag_report(&lx->cx->diags, DIAG_E0104, span_of(lx, begin, begin + quote_bytes),
	            quote_bytes >= 3 ? "this string has no end" : "this string has no end on its line");
	return false;
}

/*
 * The closing quotes are the first that no backslash precedes; a string in single quotes ends on
 * its line.
 */
static bool lex_string(struct lexer *lx, int prefix)
{
	uint32_t begin = lx->at, n_quotes = 1, text_begin;
	struct token *token;
	unsigned char quote;

	lx->at += (uint32_t)prefix;
	quote = peek(lx, 0);
	if (peek(lx, 1) == quote && peek(lx, 2) == quote)
		n_quotes = 3;
	lx->at += n_quotes;
	text_begin = lx->at;
	for (;; lx->at++) {
		unsigned char c = peek(lx, 0);

		if (lx->at >= lx->text.n || (n_quotes == 1 && (c == '\n' || c == '\r')))
			return unterminated(lx, begin, (uint32_t)prefix + n_quotes);
		if (c == '\\' && lx->at + 1 < lx->text.n) {
			if (peek(lx, 1) == '\r' && peek(lx, 2) == '\n')
				lx->at++;
			lx->at++;
		} else if (c == quote &&
		           (n_quotes == 1 || (peek(lx, 1) == quote && peek(lx, 2) == quote))) {
			break;
		}
	}
	lx->at += n_quotes;
	token = push(lx, TOK_STRING, begin);
	token->as.string.text_begin = text_begin;
	token->as.string.text_end = lx->at - n_quotes;
	for (int i = 0; i < prefix; i++) {
		char c = (char)(lx->text.p[begin + (uint32_t)i] | 0x20);

		token->as.string.is_raw |= c == 'r';
		token->as.string.is_bytes |= c == 'b';
		token->as.string.is_format |= c == 'f';
	}
	return true;
}

/* Remembers the bracket for close_bracket and for the end of the file. */
static bool open_bracket(struct lexer *lx, char sign, uint32_t at)
{
	if (lx->n_brackets == LEX_MAX_BRACKETS) {
		diag_report(&lx->cx->diags, DIAG_E0109, span_of(lx, at, at + 1),
		            "brackets nest deeper than %d", LEX_MAX_BRACKETS);
		return false;
	}
	lx->brackets[lx->n_brackets].sign = sign;
	lx->brackets[lx->n_brackets++].at = at;
	return true;
}

/* The bracket must close the innermost open one. */
static bool close_bracket(struct lexer *lx, char sign, uint32_t at)
{
	char open = sign == ')' ? '(' : sign == ']' ? '[' : '{';

	if (lx->n_brackets && lx->brackets[lx->n_brackets - 1].sign == open) {
		lx->n_brackets--;
		return true;
	}
	diag_report(&lx->cx->diags, DIAG_E0107, span_of(lx, at, at + 1),
	            lx->n_brackets ? "'%c' closes another kind of bracket" : "'%c' closes nothing",
	            sign);
	if (lx->n_brackets) {
		uint32_t opened = lx->brackets[lx->n_brackets - 1].at;

		diag_note(&lx->cx->diags, span_of(lx, opened, opened + 1),
		          "the innermost open bracket is this '%c'", lx->brackets[lx->n_brackets - 1].sign);
	}
	return false;
}

/* The longest sign that fits: the table has longer ones first. */
static bool lex_sign(struct lexer *lx)
{
	static const struct {
		enum token_kind kind;
		uint32_t n;
		const char *text;
	} signs[] = {
#define KEYWORD(id, text)
#define SIGN(id, text) { TOK_##id, sizeof(text) - 1, text },
#include "analyzer/frontend/tokens.def"
#undef KEYWORD
#undef SIGN
	};
	uint32_t begin = lx->at;

	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		if (signs[i].text[0] != lx->text.p[lx->at] || signs[i].n > lx->text.n - lx->at ||
		    memcmp(signs[i].text, lx->text.p + lx->at, signs[i].n) != 0)
			continue;
		lx->at += signs[i].n;
		push(lx, signs[i].kind, begin);
		if (strchr("([{", signs[i].text[0]))
			return open_bracket(lx, signs[i].text[0], begin);
		if (strchr(")]}", signs[i].text[0]))
			return close_bracket(lx, signs[i].text[0], begin);
		return true;
	}
	return bad_char(lx);
}

/* Moves over blanks, comments and joined lines; in brackets over newlines as well. */
static bool skip_blanks(struct lexer *lx)
{
	for (;;) {
		unsigned char c = peek(lx, 0);

		if (c == ' ' || c == '\t' || c == '\f') {
			lx->at++;
		} else if (c == '#') {
			while (lx->at < lx->text.n && peek(lx, 0) != '\n' && peek(lx, 0) != '\r')
				lx->at++;
		} else if (c == '\\' && (peek(lx, 1) == '\n' || peek(lx, 1) == '\r')) {
			lx->at += peek(lx, 1) == '\r' && peek(lx, 2) == '\n' ? 3 : 2;
		} else if ((c == '\n' || c == '\r') && (lx->n_brackets || lx->is_expression)) {
			lx->at++;
		} else {
			return true;
		}
	}
}

/* Marks the blanks in front of the line. */
static bool bad_indent(struct lexer *lx, uint32_t begin, const char *why)
{
	diag_report(&lx->cx->diags, DIAG_E0106, span_of(lx, begin, lx->at), "%s", why);
	return false;
}

/*
 * INDENT or DEDENTs for a line that starts at the given columns. Two columns are kept for each
 * block, with tabs to multiples of 8 and with tabs as 1: where they disagree the indentation
 * depends on the width of tabs (Python reference, "Indentation").
 */
static bool indent_to(struct lexer *lx, uint32_t begin, uint32_t column, uint32_t alt_column)
{
	uint32_t top = lx->n_indents - 1;

	assert(lx->n_indents > 0 && lx->n_brackets == 0);
	if (column == lx->indents[top].column) {
		return alt_column == lx->indents[top].alt_column ||
		       bad_indent(lx, begin, "tabs and spaces are mixed in the indentation");
	}
	if (column > lx->indents[top].column) {
		if (alt_column <= lx->indents[top].alt_column)
			return bad_indent(lx, begin, "tabs and spaces are mixed in the indentation");
		if (lx->n_indents == LEX_MAX_INDENTS)
			return bad_indent(lx, begin, "too many levels of indentation");
		lx->indents[lx->n_indents].column = column;
		lx->indents[lx->n_indents++].alt_column = alt_column;
		push(lx, TOK_INDENT, begin);
		return true;
	}
	while (column < lx->indents[lx->n_indents - 1].column) {
		lx->n_indents--;
		push(lx, TOK_DEDENT, lx->at);
	}
	if (column != lx->indents[lx->n_indents - 1].column)
		return bad_indent(lx, begin, "this line's indentation fits no enclosing block");
	return alt_column == lx->indents[lx->n_indents - 1].alt_column ||
	       bad_indent(lx, begin, "tabs and spaces are mixed in the indentation");
}

/*
 * At the start of a line: skips blank lines and handles indentation. Lines of a comment alone do
 * not count.
 */
static bool line_start(struct lexer *lx)
{
	for (;;) {
		uint32_t begin = lx->at, column = 0, alt_column = 0;

		for (;; lx->at++) {
			unsigned char c = peek(lx, 0);

			if (c == ' ')
				column++, alt_column++;
			else if (c == '\t')
				column = (column / 8 + 1) * 8, alt_column++;
			else if (c == '\f')
				column = alt_column = 0;
			else
				break;
		}
		if (peek(lx, 0) == '#')
			skip_blanks(lx);
		if (lx->at >= lx->text.n)
			return true;
		if (peek(lx, 0) != '\n' && peek(lx, 0) != '\r')
			return indent_to(lx, begin, column, alt_column);
		lx->at++;
	}
}

/* The next token of a line; false on an error. */
static bool lex_token(struct lexer *lx)
{
	unsigned char c = peek(lx, 0);
	int prefix = string_prefix(lx);

	if (prefix >= 0)
		return lex_string(lx, prefix);
	if (is_digit(c) || (c == '.' && is_digit(peek(lx, 1))))
		return lex_number(lx);
	if (is_ascii_name_start(c)) {
		lex_name(lx);
		return true;
	}
	if (c >= 0x80) {
		uint32_t next = lx->at;

		if (!is_name_char(str_char_at(lx->text, &next)))
			return bad_char(lx);
		lex_name(lx);
		return true;
	}
	return lex_sign(lx);
}

/* Line by line, until the text or the patience with it ends. */
static bool lex_lines(struct lexer *lx)
{
	bool at_line_start = !lx->is_expression;

	while (lx->at < lx->text.n) {
		if (at_line_start && !line_start(lx))
			return false;
		at_line_start = false;
		skip_blanks(lx);
		if (lx->at >= lx->text.n)
			break;
		if (peek(lx, 0) == '\n' || peek(lx, 0) == '\r') {
			push(lx, TOK_NEWLINE, lx->at);
			lx->at++;
			at_line_start = true;
		} else if (!lex_token(lx)) {
			return false;
		}
	}
	return true;
}

/* Closes what is open at the end: the last line and all blocks. */
static bool lex_all(struct lexer *lx)
{
	lx->n_indents = 1;
	if (!lex_lines(lx))
		return false;
	if (lx->n_brackets) {
		uint32_t at = lx->brackets[lx->n_brackets - 1].at;

		diag_report(&lx->cx->diags, DIAG_E0107, span_of(lx, at, at + 1), "'%c' is never closed",
		            lx->brackets[lx->n_brackets - 1].sign);
		return false;
	}
	if (!lx->is_expression && lx->tokens->n && vec_last(lx->tokens).kind != TOK_NEWLINE)
		push(lx, TOK_NEWLINE, lx->at);
	while (lx->n_indents > 1) {
		lx->n_indents--;
		push(lx, TOK_DEDENT, lx->at);
	}
	push(lx, TOK_END, lx->at);
	return true;
}

/* Keywords are interned, so that finding one is a look at a number. */
static void lexer_init(struct lexer *lx, struct cx *cx, uint32_t file, struct token_list *tokens)
{
	static const struct {
		enum token_kind kind;
		const char *text;
	} keywords[] = {
#define KEYWORD(id, text) { TOK_##id, text },
#define SIGN(id, text)
#include "analyzer/frontend/tokens.def"
#undef KEYWORD
#undef SIGN
	};

	*lx = (struct lexer){ .cx = cx, .file = file, .tokens = tokens };
	lx->text = source_get(&cx->sources, file)->text;
	for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++) {
		sym_t name = intern_text(cx->names, keywords[i].text);

		map_at(cx->arena, &lx->keywords, name)->value.number = keywords[i].kind;
	}
}

/* A byte order mark is no part of the text. */
bool lex_file(struct cx *cx, uint32_t file, struct token_list *tokens)
{
	struct lexer lx;

	lexer_init(&lx, cx, file, tokens);
	if (str_starts(lx.text, "\xef\xbb\xbf"))
		lx.at = 3;
	return check_bytes(&lx) && lex_all(&lx);
}

/* Newlines count as blanks here. */
bool lex_range(struct cx *cx, uint32_t file, uint32_t begin, uint32_t end,
               struct token_list *tokens)
{
	struct lexer lx;

	lexer_init(&lx, cx, file, tokens);
	assert(begin <= end && end <= lx.text.n);
	lx.at = begin;
	lx.text.n = end;
	lx.is_expression = true;
	return lex_all(&lx);
}

/* The bytes of one character. */
static void add_utf8(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_char(out, (char)c);
	} else if (c < 0x800) {
		buf_char(out, (char)(0xc0 | c >> 6));
		buf_char(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_char(out, (char)(0xe0 | c >> 12));
		buf_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_char(out, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_char(out, (char)(0xf0 | c >> 18));
		buf_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_char(out, (char)(0x80 | (c & 0x3f)));
	}
}

/* Reads up to `n` digits of `base` at *at. The number of digits read. */
static uint32_t escape_digits(struct str text, uint32_t *at, uint32_t n, uint32_t base,
                              uint32_t *value)
{
	uint32_t i = 0;

	*value = 0;
	for (; i < n && *at < text.n; i++, (*at)++) {
		uint32_t digit = digit_value((unsigned char)text.p[*at]);

		if (digit >= base)
			break;
		*value = *value * base + digit;
	}
	return i;
}

/*
 * One escape at *at, which stands behind the backslash. False when it is malformed. (Python
 * reference, "Escape sequences"; names of characters, \N{...}, stay as they are.)
 */
static bool decode_escape(struct str text, uint32_t *at, struct buf *out)
{
	static const char plain[] = "\\'\"abfnrtv";
	static const char meaning[] = "\\'\"\a\b\f\n\r\t\v";
	char c = text.p[*at];
	const char *found = strchr(plain, c);
	uint32_t value, n_digits;

	if (c && found) {
		buf_char(out, meaning[found - plain]);
		*at += 1;
		return true;
	}
	if (c == '\n' || c == '\r') {
		*at += c == '\r' && *at + 1 < text.n && text.p[*at + 1] == '\n' ? 2 : 1;
		return true;
	}
	if (c >= '0' && c <= '7') {
		escape_digits(text, at, 3, 8, &value);
		add_utf8(out, value);
		return true;
	}
	n_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
	if (n_digits == 0) {
		buf_char(out, '\\');
		return true;
	}
	*at += 1;
	if (escape_digits(text, at, n_digits, 16, &value) != n_digits || value > 0x10ffff)
		return false;
	add_utf8(out, value);
	return true;
}

/* Unknown escapes stay as they are, as in Python. */
bool lex_string_value(struct cx *cx, const struct token *token, struct span part, struct buf *out)
{
	struct str text = { source_get(&cx->sources, part.file)->text.p, part.end };
	uint32_t at = part.begin, end = part.end;

	while (at < end) {
		char c = text.p[at];
		uint32_t escape = at;

		if (token->as.string.is_format && (c == '{' || c == '}') && at + 1 < end &&
		    text.p[at + 1] == c) {
			buf_char(out, c);
			at += 2;
		} else if (c != '\\' || token->as.string.is_raw || at + 1 >= end) {
			buf_char(out, c);
			at++;
		} else {
			at++;
			if (decode_escape(text, &at, out))
				continue;
			diag_report(&cx->diags, DIAG_E0104, (struct span){ part.file, escape, at },
			            "this escape is malformed");
			return false;
		}
	}
	return true;
}

/* For messages: what was expected, what was found. */
const char *token_text(enum token_kind kind)
{
	static const char *const texts[] = {
		"the end of the file",
		"the end of the line",
		"an indented block",
		"the end of the block",
		"a name",
		"a number",
		"a number",
		"a string",
#define KEYWORD(id, text) "'" text "'",
#define SIGN(id, text) "'" text "'",
#include "analyzer/frontend/tokens.def"
#undef KEYWORD
#undef SIGN
	};

	assert(kind < N_TOKEN_KINDS);
	return texts[kind];
}
