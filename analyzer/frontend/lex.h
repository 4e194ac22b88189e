/*
 * lex: kernel text to Python tokens.
 *
 * Indentation gives INDENT and DEDENT; newlines inside brackets and after a backslash vanish;
 * comments and blank lines leave nothing. A string is one token (its text is decoded by
 * lex_string_value); an f-string too: the parser cuts it up. Every bad byte is an error with its
 * position (E01..), after which reading stops.
 */
#ifndef TL_FRONTEND_LEX_H
#define TL_FRONTEND_LEX_H

#include "base/diag.h"

enum token_kind {
	TOK_END,
	TOK_NEWLINE,
	TOK_INDENT,
	TOK_DEDENT,
	TOK_NAME,
	TOK_INT,
	TOK_FLOAT,
	TOK_STRING,
#define KEYWORD(id, text) TOK_##id,
#define SIGN(id, text) TOK_##id,
#include "analyzer/frontend/tokens.def"
#undef KEYWORD
#undef SIGN
	N_TOKEN_KINDS
};

struct token {
	enum token_kind kind;
	uint32_t begin, end; /* byte offsets in the source */
	union {
		sym_t name;
		int64_t integer;
		double number;
		struct {
			uint32_t text_begin, text_end; /* between the quotes */
			bool is_raw, is_bytes, is_format;
		} string;
	} as;
	bool is_huge; /* INT: the value does not fit int64 */
};

struct token_list {
	struct token *p; /* ends with TOK_END */
	uint32_t n, cap;
};

/* Brackets and indentation may nest this deep, as in Python itself. */
enum { LEX_MAX_BRACKETS = 200, LEX_MAX_INDENTS = 100 };

/* Tokens of the whole file; false with a diagnostic. */
bool lex_file(struct cx *cx, uint32_t file, struct token_list *tokens);
/* Tokens of one expression inside the bytes [begin, end) of the file (f-strings). */
bool lex_range(struct cx *cx, uint32_t file, uint32_t begin, uint32_t end,
               struct token_list *tokens);
/*
 * The value of a part of a string token: escapes decoded unless it is raw. `{{` and `}}` become
 * single braces when the token is an f-string. False with E0104 on a bad escape.
 */
bool lex_string_value(struct cx *cx, const struct token *token, struct span part, struct buf *out);
/* "name", "'+='", "end of line": how messages call a token. */
const char *token_text(enum token_kind kind);

#endif
