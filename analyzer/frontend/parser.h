/*
 * parser: what parse.c (statements) and parse_expr.c (expressions) share.
 *
 * Recursive descent without backtracking. The first error is reported, then the position jumps to
 * the end of the tokens, so that every loop ends; `failed` tells. Functions never return NULL:
 * after an error they give an EX_BAD node.
 */
#ifndef TL_FRONTEND_PARSER_H
#define TL_FRONTEND_PARSER_H

#include "analyzer/frontend/ast.h"
#include "analyzer/frontend/lex.h"

struct parser {
	struct cx *cx;
	uint32_t file;
	struct token_list tokens;
	uint32_t at;
	uint32_t depth, max_depth;
	bool failed;
	struct ast_module *module; /* NULL for a single expression */
	struct ast_stmt *def;      /* the DEF whose body is being parsed */
	bool in_class;
};

const struct token *parser_peek(const struct parser *ps, uint32_t ahead);
bool parser_is(const struct parser *ps, enum token_kind kind);
/* Moves behind the token when it is of this kind. */
bool parser_accept(struct parser *ps, enum token_kind kind);
/* The same, an error otherwise: "expected ')' ..., found ...". */
bool parser_expect(struct parser *ps, enum token_kind kind, const char *where);
struct span parser_span(const struct parser *ps,
                        uint32_t begin); /* from `begin` to the last token's end */
struct span parser_token_span(const struct parser *ps, const struct token *token);
/* Reports a syntax error (once). */
void parser_error(struct parser *ps, enum diag_code code, struct span span, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* One level of nesting: false with an error past the limit. Pairs with parser_leave. */
bool parser_enter(struct parser *ps);
void parser_leave(struct parser *ps);

/* test: ternary, lambda and all below. */
struct ast_expr *parse_test(struct parser *ps);
/* The same or `name := test`. */
struct ast_expr *parse_named_test(struct parser *ps);
/* tests and *tests separated by commas: a TUPLE when there is a comma. */
struct ast_expr *parse_test_list(struct parser *ps);
/* Targets of `for` and comprehensions: no `in` inside. */
struct ast_expr *parse_target_list(struct parser *ps);
/* One of them. */
struct ast_expr *parse_target(struct parser *ps);
/* Parameters up to `end` (RPAREN or COLON), which stays; annotations when `typed`. */
void parse_params(struct parser *ps, struct ast_params *params, enum token_kind end, bool typed);
/* Arguments up to and with the closing parenthesis. */
void parse_args(struct parser *ps, struct ast_args *args);
/* False, with an error, when the expression cannot be assigned to. */
bool parse_check_target(struct parser *ps, const struct ast_expr *target);

#endif
