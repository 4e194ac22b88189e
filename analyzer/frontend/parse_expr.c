/*
 * Expressions, one function a level of Python's grammar; binary operators by precedence climbing.
 * (Python reference, chapter 6 "Expressions" and chapter 10 "Full grammar specification"; the
 * rule's name there stands to the right.)
 *
 *     parse_test       lambda, yield, a if b else c      expression
 *     parse_or, _and, _not                               disjunction, conjunction, inversion
 *     parse_comparison a < b <= c, in, is                comparison
 *     parse_binary     | ^ & << >> + - * / // % @        bitwise_or ... term
 *     parse_unary      - + ~                             factor
 *     parse_power      a ** b                            power, await_primary
 *     parse_postfix    f(x), a[i], a.b                   primary
 *     parse_atom       names, constants, displays        atom
 *
 * Trees grow to the left in long sums and in chains of calls, so their height is bounded as well as
 * the nesting. After the first mistake the position is at the end of the text: every loop ends
 * there, and what is built on the way is thrown away with the tree.
 */
#include "analyzer/frontend/parser.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

/* Past the end: the end. */
const struct token *parser_peek(const struct parser *ps, uint32_t ahead)
{
	uint32_t at = ps->at + ahead;

	return &ps->tokens.p[at < ps->tokens.n ? at : ps->tokens.n - 1];
}

bool parser_is(const struct parser *ps, enum token_kind kind)
{
	return ps->tokens.p[ps->at].kind == kind;
}

/* TOK_END is never passed, so that peeking stays safe. */
bool parser_accept(struct parser *ps, enum token_kind kind)
{
	if (!parser_is(ps, kind))
		return false;
	if (ps->at + 1 < ps->tokens.n)
		ps->at++;
	return true;
}

struct span parser_token_span(const struct parser *ps, const struct token *token)
{
	return (struct span){ ps->file, token->begin, token->end };
}

/* From byte `begin` to the end of the last token read; nothing read yet gives an empty span. */
struct span parser_span(const struct parser *ps, uint32_t begin)
{
	uint32_t end = ps->at > 0 ? ps->tokens.p[ps->at - 1].end : begin;

	return (struct span){ ps->file, begin, end > begin ? end : begin };
}

/* The first mistake counts; the position moves to the end, which ends every loop. */
void parser_error(struct parser *ps, enum diag_code code, struct span span, const char *format, ...)
{
	va_list args;
	char text[300];

	if (ps->failed)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	diag_report(&ps->cx->diags, code, span, "%s", text);
	ps->failed = true;
	ps->at = ps->tokens.n - 1;
}

/* `where` completes "expected ')' ...". */
bool parser_expect(struct parser *ps, enum token_kind kind, const char *where)
{
	const struct token *found = parser_peek(ps, 0);

	if (parser_accept(ps, kind))
		return true;
	parser_error(ps, DIAG_E0108, parser_token_span(ps, found), "expected %s %s, found %s",
	             token_text(kind), where, token_text(found->kind));
	return false;
}

/* Counts also after a refusal, so that parser_leave always pairs. */
bool parser_enter(struct parser *ps)
{
	ps->depth++;
	if (ps->depth <= ps->max_depth)
		return true;
	parser_error(ps, DIAG_E0109, parser_token_span(ps, parser_peek(ps, 0)),
	             "this nests deeper than %u levels", ps->max_depth);
	return false;
}

void parser_leave(struct parser *ps)
{
	assert(ps->depth > 0);
	ps->depth--;
}

/* An expression from `begin` to the last token read. */
static struct ast_expr *new_expr(struct parser *ps, enum ast_expr_kind kind, uint32_t begin)
{
	struct ast_expr *e = arena_new(ps->cx->arena, struct ast_expr);

	e->kind = kind;
	e->height = 1;
	e->span = parser_span(ps, begin);
	return e;
}

/* Keeps e->height above that of its operand `below` and inside the limit. */
static void grow(struct parser *ps, struct ast_expr *e, const struct ast_expr *below)
{
	if (!below || below->height < e->height)
		return;
	e->height = below->height + 1;
	if (e->height > AST_MAX_HEIGHT)
		parser_error(ps, DIAG_E0109, e->span, "this expression nests deeper than %d levels",
		             AST_MAX_HEIGHT);
}

/* Adds an element; the display is taller than each. */
static void push_item(struct parser *ps, struct ast_exprs *items, struct ast_expr *e,
                      struct ast_expr *item)
{
	vec_push(ps->cx->arena, items, item);
	grow(ps, e, item);
}

/* Can the token begin an expression, or a starred one? */
static bool starts_test(const struct parser *ps)
{
	static const enum token_kind starts[] = {
		TOK_NAME,   TOK_INT,      TOK_FLOAT,  TOK_STRING,   TOK_FALSE, TOK_NONE, TOK_TRUE,
		TOK_NOT,    TOK_LAMBDA,   TOK_AWAIT,  TOK_YIELD,    TOK_ADD,   TOK_SUB,  TOK_INVERT,
		TOK_LPAREN, TOK_LBRACKET, TOK_LBRACE, TOK_ELLIPSIS, TOK_MUL,   TOK_POW,
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (parser_is(ps, starts[i]))
			return true;
	}
	return false;
}

/* Strings */

/* A string under construction: adjacent tokens, f-strings and plain ones, add to it in turn. */
struct literal {
	struct ast_expr *e; /* STRING or FSTRING under construction */
	struct buf text;    /* pending plain text */
};

/* Plain text before a replacement field becomes a piece of its own. */
static void flush_text(struct parser *ps, struct literal *lit)
{
	struct ast_piece piece = { 0 };

	if (lit->text.n == 0)
		return;
	piece.text = (struct str){ arena_strndup(ps->cx->arena, lit->text.p, lit->text.n),
		                       (uint32_t)lit->text.n };
	vec_push(ps->cx->arena, &lit->e->as.pieces, piece);
	lit->text.n = 0;
}

/* End of the expression in a replacement field that starts at `at`: the first !, : or } outside
 * brackets and quotes. */
static uint32_t field_end(struct str text, uint32_t at, uint32_t end)
{
	uint32_t depth = 0;
	char quote = 0;

	for (; at < end; at++) {
		char c = text.p[at];

		if (quote) {
			if (c == quote)
				quote = 0;
		} else if (c == '"' || c == '\'') {
			quote = c;
		} else if (strchr("([{", c)) {
			depth++;
		} else if (depth > 0) {
			depth -= strchr(")]}", c) != NULL;
		} else if (c == '}' || (c == ':' && (at + 1 >= end || text.p[at + 1] != '='))) {
			return at;
		} else if (c == '!' && at + 1 < end && text.p[at + 1] != '=') {
			return at;
		}
	}
	return end;
}

/*
 * The expression in bytes [begin, end) of the source. A parser of its own on tokens of its own, so
 * that spans stay positions in the file; nesting goes on from the outer parser's depth.
 */
static struct ast_expr *parse_field(struct parser *ps, uint32_t begin, uint32_t end)
{
	struct parser inner = *ps;
	struct ast_expr *e;

	inner.tokens = (struct token_list){ 0 };
	inner.at = 0;
	if (!lex_range(ps->cx, ps->file, begin, end, &inner.tokens)) {
		ps->failed = true;
		ps->at = ps->tokens.n - 1;
		return new_expr(ps, EX_BAD, begin);
	}
	e = parse_test_list(&inner);
	parser_expect(&inner, TOK_END, "after the expression of an f-string");
	if (inner.failed && !ps->failed) {
		ps->failed = true;
		ps->at = ps->tokens.n - 1;
	}
	return e;
}

/*
 * A replacement field whose '{' is at `open`; the position behind its '}'. With `=` the source
 * itself is kept for the output, blanks included; a format may hold fields of its own, which are
 * kept as text. (Python reference, "Formatted string literals".)
 */
static uint32_t parse_replacement(struct parser *ps, struct literal *lit, uint32_t open,
                                  uint32_t end)
{
	struct str text = source_get(&ps->cx->sources, ps->file)->text;
	uint32_t at = field_end(text, open + 1, end), value_end = at, depth = 0;
	struct ast_piece piece = { 0 };

	while (value_end > open + 1 && (text.p[value_end - 1] == ' ' || text.p[value_end - 1] == '\n'))
		value_end--;
	if (value_end > open + 2 && text.p[value_end - 1] == '=' &&
	    !strchr("=!<>", text.p[value_end - 2])) {
		piece.source = (struct str){ text.p + open + 1, at - open - 1 };
		value_end--;
	}
	piece.value = parse_field(ps, open + 1, value_end);
	grow(ps, lit->e, piece.value);
	if (at + 1 < end && text.p[at] == '!') {
		piece.conversion = text.p[at + 1];
		at += 2;
	}
	if (at < end && text.p[at] == ':') {
		uint32_t begin = ++at;

		for (; at < end && (depth > 0 || text.p[at] != '}'); at++)
			depth = text.p[at] == '{' ? depth + 1 : text.p[at] == '}' ? depth - 1 : depth;
		piece.format = (struct str){ text.p + begin, at - begin };
	}
	if (at >= end || text.p[at] != '}') {
		parser_error(ps, DIAG_E0104, (struct span){ ps->file, open, open + 1 },
		             "this replacement field of an f-string has no '}'");
		return end;
	}
	vec_push(ps->cx->arena, &lit->e->as.pieces, piece);
	return at + 1;
}

/*
 * Adds the value of one string token. Doubled braces of an f-string stand for one; lex_string_value
 * turns them.
 */
static void add_string(struct parser *ps, struct literal *lit, const struct token *token)
{
	struct str text = source_get(&ps->cx->sources, ps->file)->text;
	uint32_t at = token->as.string.text_begin, end = token->as.string.text_end;

	while (at < end && !ps->failed) {
		uint32_t plain = at;

		while (at < end && token->as.string.is_format) {
			bool is_brace = text.p[at] == '{' || text.p[at] == '}';

			if (is_brace && (at + 1 >= end || text.p[at + 1] != text.p[at]))
				break;
			at += is_brace ? 2 : 1;
		}
		if (!token->as.string.is_format)
			at = end;
		if (!lex_string_value(ps->cx, token, (struct span){ ps->file, plain, at }, &lit->text)) {
			ps->failed = true;
			ps->at = ps->tokens.n - 1;
			return;
		}
		if (at >= end)
			return;
		if (text.p[at] == '}') {
			parser_error(ps, DIAG_E0104, (struct span){ ps->file, at, at + 1 },
			             "a single '}' in an f-string");
			return;
		}
		flush_text(ps, lit);
		at = parse_replacement(ps, lit, at, end);
	}
}

/*
 * Adjacent string tokens: one value, an FSTRING when any of them is a format (Python reference,
 * "String literal concatenation").
 */
static struct ast_expr *parse_strings(struct parser *ps)
{
	struct literal lit = { 0 };
	uint32_t begin = parser_peek(ps, 0)->begin;
	bool is_format = false;

	if (!parser_enter(ps))
		return new_expr(ps, EX_BAD, begin);
	lit.e = new_expr(ps, EX_FSTRING, begin);
	while (parser_is(ps, TOK_STRING) && !ps->failed) {
		const struct token *token = parser_peek(ps, 0);

		is_format |= token->as.string.is_format;
		parser_accept(ps, TOK_STRING);
		add_string(ps, &lit, token);
	}
	flush_text(ps, &lit);
	if (!is_format) {
		struct str text = lit.e->as.pieces.n ? lit.e->as.pieces.p[0].text : str_of("");

		lit.e->kind = EX_STRING;
		lit.e->as.string = text;
	}
	buf_free(&lit.text);
	lit.e->span = parser_span(ps, begin);
	parser_leave(ps);
	return lit.e;
}

/* Displays and comprehensions */

static struct ast_expr *parse_or(struct parser *ps);

/* `for a in b if c for ...` behind the element of `e`. Clauses nest from left to right. */
static void parse_clauses(struct parser *ps, struct ast_expr *e)
{
	while (parser_is(ps, TOK_FOR) || parser_is(ps, TOK_ASYNC)) {
		struct ast_for clause = { 0 };

		parser_accept(ps, TOK_ASYNC);
		parser_expect(ps, TOK_FOR, "in a comprehension");
		clause.target = parse_target_list(ps);
		parse_check_target(ps, clause.target);
		parser_expect(ps, TOK_IN, "in a comprehension");
		clause.iterable = parse_or(ps);
		grow(ps, e, clause.target);
		grow(ps, e, clause.iterable);
		while (parser_accept(ps, TOK_IF)) {
			struct ast_expr *condition = parse_or(ps);

			push_item(ps, &clause.conditions, e, condition);
		}
		vec_push(ps->cx->arena, &e->as.comprehension.clauses, clause);
	}
}

/* The element is parsed already; clauses follow. */
static struct ast_expr *comprehension(struct parser *ps, enum ast_collection collection,
                                      struct ast_expr *key, struct ast_expr *value)
{
	struct ast_expr *e = new_expr(ps, EX_COMPREHENSION, key ? key->span.begin : value->span.begin);

	e->as.comprehension.collection = collection;
	e->as.comprehension.key = key;
	e->as.comprehension.value = value;
	grow(ps, e, key);
	grow(ps, e, value);
	parse_clauses(ps, e);
	return e;
}

/* test, *test or name := test: an element of a display. */
static struct ast_expr *parse_element(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_expr *e, *value;

	if (!parser_accept(ps, TOK_MUL))
		return parse_named_test(ps);
	value = parse_test(ps);
	e = new_expr(ps, EX_STARRED, begin);
	e->as.starred = value;
	grow(ps, e, value);
	return e;
}

/* Elements up to `end`, which is consumed. */
static void parse_elements(struct parser *ps, struct ast_expr *e, enum token_kind end)
{
	while (!parser_is(ps, end) && !ps->failed) {
		struct ast_expr *item = parse_element(ps);

		push_item(ps, &e->as.items, e, item);
		if (!parser_accept(ps, TOK_COMMA))
			break;
	}
	parser_expect(ps, end, "in a list of values");
}

/*
 * Behind '(': a tuple, a generator, or an expression in parentheses. The comma makes the tuple, not
 * the parentheses (Python reference, "Parenthesized forms").
 */
static struct ast_expr *parse_paren(struct parser *ps, uint32_t begin)
{
	struct ast_expr *e, *first;

	if (parser_accept(ps, TOK_RPAREN))
		return new_expr(ps, EX_TUPLE, begin);
	first = parse_element(ps);
	if (parser_is(ps, TOK_FOR) || parser_is(ps, TOK_ASYNC)) {
		e = comprehension(ps, AST_GENERATOR_OF, NULL, first);
		parser_expect(ps, TOK_RPAREN, "after a generator");
		return e;
	}
	if (parser_is(ps, TOK_RPAREN) && first->kind != EX_STARRED) {
		parser_accept(ps, TOK_RPAREN);
		return first;
	}
	e = new_expr(ps, EX_TUPLE, begin);
	push_item(ps, &e->as.items, e, first);
	if (parser_accept(ps, TOK_COMMA))
		parse_elements(ps, e, TOK_RPAREN);
	else
		parser_expect(ps, TOK_RPAREN, "to close '('");
	e->span = parser_span(ps, begin);
	return e;
}

/* Behind '[': a list or a list comprehension. */
static struct ast_expr *parse_list_display(struct parser *ps, uint32_t begin)
{
	struct ast_expr *e, *first;

	if (parser_accept(ps, TOK_RBRACKET))
		return new_expr(ps, EX_LIST, begin);
	first = parse_element(ps);
	if (parser_is(ps, TOK_FOR) || parser_is(ps, TOK_ASYNC)) {
		e = comprehension(ps, AST_LIST_OF, NULL, first);
		parser_expect(ps, TOK_RBRACKET, "after a comprehension");
	} else {
		e = new_expr(ps, EX_LIST, begin);
		push_item(ps, &e->as.items, e, first);
		if (parser_accept(ps, TOK_COMMA))
			parse_elements(ps, e, TOK_RBRACKET);
		else
			parser_expect(ps, TOK_RBRACKET, "to close '['");
	}
	e->span = parser_span(ps, begin);
	return e;
}

/* One `key: value` or `**value`. */
static struct ast_pair parse_pair(struct parser *ps)
{
	struct ast_pair pair = { 0 };

	if (parser_accept(ps, TOK_POW)) {
		pair.value = parse_test(ps);
		return pair;
	}
	pair.key = parse_test(ps);
	parser_expect(ps, TOK_COLON, "after a key");
	pair.value = parse_test(ps);
	return pair;
}

/* Adds a pair; the dict is taller than both. */
static void push_pair(struct parser *ps, struct ast_expr *e, struct ast_pair pair)
{
	vec_push(ps->cx->arena, &e->as.pairs, pair);
	grow(ps, e, pair.key);
	grow(ps, e, pair.value);
}

/* Behind the first pair: more pairs, or the clauses of a comprehension. */
static struct ast_expr *parse_dict_rest(struct parser *ps, uint32_t begin, struct ast_pair first)
{
	struct ast_expr *e;

	if (first.key && (parser_is(ps, TOK_FOR) || parser_is(ps, TOK_ASYNC))) {
		e = comprehension(ps, AST_DICT_OF, first.key, first.value);
	} else {
		e = new_expr(ps, EX_DICT, begin);
		push_pair(ps, e, first);
		while (parser_accept(ps, TOK_COMMA) && !parser_is(ps, TOK_RBRACE) && !ps->failed)
			push_pair(ps, e, parse_pair(ps));
	}
	parser_expect(ps, TOK_RBRACE, "to close '{'");
	e->span = parser_span(ps, begin);
	return e;
}

/*
 * Behind '{': a dict, a set or a comprehension of either. What follows the first element tells
 * which; "{}" is a dict.
 */
static struct ast_expr *parse_brace(struct parser *ps, uint32_t begin)
{
	struct ast_expr *e, *first;

	if (parser_accept(ps, TOK_RBRACE))
		return new_expr(ps, EX_DICT, begin);
	if (parser_is(ps, TOK_POW))
		return parse_dict_rest(ps, begin, parse_pair(ps));
	first = parse_element(ps);
	if (parser_accept(ps, TOK_COLON))
		return parse_dict_rest(ps, begin, (struct ast_pair){ first, parse_test(ps) });
	if (parser_is(ps, TOK_FOR) || parser_is(ps, TOK_ASYNC)) {
		e = comprehension(ps, AST_SET_OF, NULL, first);
		parser_expect(ps, TOK_RBRACE, "after a comprehension");
	} else {
		e = new_expr(ps, EX_SET, begin);
		push_item(ps, &e->as.items, e, first);
		if (parser_accept(ps, TOK_COMMA))
			parse_elements(ps, e, TOK_RBRACE);
		else
			parser_expect(ps, TOK_RBRACE, "to close '{'");
	}
	e->span = parser_span(ps, begin);
	return e;
}

/* A bracket is a level of nesting. */
static struct ast_expr *parse_bracketed(struct parser *ps, enum token_kind open)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_expr *e;

	parser_accept(ps, open);
	if (!parser_enter(ps))
		return new_expr(ps, EX_BAD, begin);
	if (open == TOK_LPAREN)
		e = parse_paren(ps, begin);
	else if (open == TOK_LBRACKET)
		e = parse_list_display(ps, begin);
	else
		e = parse_brace(ps, begin);
	parser_leave(ps);
	return e;
}

/* One token that is a whole expression. */
static struct ast_expr *parse_constant(struct parser *ps, enum ast_expr_kind kind)
{
	const struct token *token = parser_peek(ps, 0);
	struct ast_expr *e;

	parser_accept(ps, token->kind);
	e = new_expr(ps, kind, token->begin);
	if (kind == EX_BOOL)
		e->as.boolean = token->kind == TOK_TRUE;
	else if (kind == EX_FLOAT)
		e->as.number = token->as.number;
	else if (kind == EX_NAME)
		e->as.name = token->as.name;
	if (kind == EX_INT) {
		e->as.integer.value = token->as.integer;
		e->as.integer.is_huge = token->is_huge;
	}
	return e;
}

/* What operators cannot cut into. */
static struct ast_expr *parse_atom(struct parser *ps)
{
	const struct token *token = parser_peek(ps, 0);

	if (token->kind == TOK_NAME)
		return parse_constant(ps, EX_NAME);
	if (token->kind == TOK_INT)
		return parse_constant(ps, EX_INT);
	if (token->kind == TOK_FLOAT)
		return parse_constant(ps, EX_FLOAT);
	if (token->kind == TOK_STRING)
		return parse_strings(ps);
	if (token->kind == TOK_LPAREN || token->kind == TOK_LBRACKET || token->kind == TOK_LBRACE)
		return parse_bracketed(ps, token->kind);
	if (token->kind == TOK_TRUE || token->kind == TOK_FALSE)
		return parse_constant(ps, EX_BOOL);
	if (token->kind == TOK_NONE)
		return parse_constant(ps, EX_NONE);
	if (token->kind == TOK_ELLIPSIS)
		return parse_constant(ps, EX_ELLIPSIS);
	parser_error(ps, DIAG_E0108, parser_token_span(ps, token), "expected an expression, found %s",
	             token_text(token->kind));
	return new_expr(ps, EX_BAD, token->begin);
}

/* Calls and subscripts */

/*
 * name=value, *value, **value, a value, or a generator without its own parentheses. Which argument
 * may stand behind which is looked at when the call is evaluated.
 */
static struct ast_arg parse_arg(struct parser *ps)
{
	const struct token *token = parser_peek(ps, 0);
	struct ast_arg arg = { 0 };

	arg.is_star = parser_accept(ps, TOK_MUL);
	arg.is_double_star = !arg.is_star && parser_accept(ps, TOK_POW);
	if (token->kind == TOK_NAME && parser_peek(ps, 1)->kind == TOK_ASSIGN) {
		arg.name = token->as.name;
		parser_accept(ps, TOK_NAME);
		parser_accept(ps, TOK_ASSIGN);
		arg.value = parse_test(ps);
	} else {
		arg.value = parse_named_test(ps);
		if (!arg.is_star && (parser_is(ps, TOK_FOR) || parser_is(ps, TOK_ASYNC)))
			arg.value = comprehension(ps, AST_GENERATOR_OF, NULL, arg.value);
	}
	arg.span = parser_span(ps, token->begin);
	return arg;
}

/* A trailing comma may stand. */
void parse_args(struct parser *ps, struct ast_args *args)
{
	while (!parser_is(ps, TOK_RPAREN) && !ps->failed) {
		struct ast_arg arg = parse_arg(ps);

		vec_push(ps->cx->arena, args, arg);
		if (!parser_accept(ps, TOK_COMMA))
			break;
	}
	parser_expect(ps, TOK_RPAREN, "to close the arguments");
}

/* A part of begin:end:step may be absent. */
static bool ends_slice_part(const struct parser *ps)
{
	return parser_is(ps, TOK_COLON) || parser_is(ps, TOK_COMMA) || parser_is(ps, TOK_RBRACKET);
}

/* An index or begin:end:step, with a NULL for each part that is absent. */
static struct ast_expr *parse_subscript_item(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_expr *parts[3] = { 0 }, *e;

	if (!parser_is(ps, TOK_COLON)) {
		e = parse_element(ps);
		if (!parser_is(ps, TOK_COLON))
			return e;
		parts[0] = e;
	}
	parser_accept(ps, TOK_COLON);
	if (!ends_slice_part(ps))
		parts[1] = parse_test(ps);
	if (parser_accept(ps, TOK_COLON) && !ends_slice_part(ps))
		parts[2] = parse_test(ps);
	e = new_expr(ps, EX_SLICE, begin);
	e->as.slice.begin = parts[0];
	e->as.slice.end = parts[1];
	e->as.slice.step = parts[2];
	for (int i = 0; i < 3; i++)
		grow(ps, e, parts[i]);
	return e;
}

/*
 * The index behind '[': one item, or a TUPLE of them; consumes ']'. a[i, j] and a[(i, j)] are the
 * same.
 */
static struct ast_expr *parse_index(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_expr *first = parse_subscript_item(ps), *e;

	if (!parser_is(ps, TOK_COMMA)) {
		parser_expect(ps, TOK_RBRACKET, "to close the index");
		return first;
	}
	e = new_expr(ps, EX_TUPLE, begin);
	push_item(ps, &e->as.items, e, first);
	while (parser_accept(ps, TOK_COMMA) && !parser_is(ps, TOK_RBRACKET) && !ps->failed)
		push_item(ps, &e->as.items, e, parse_subscript_item(ps));
	e->span = parser_span(ps, begin);
	parser_expect(ps, TOK_RBRACKET, "to close the index");
	return e;
}

/* Behind the dot. */
static struct ast_expr *parse_attribute(struct parser *ps, struct ast_expr *object)
{
	const struct token *token = parser_peek(ps, 0);
	struct ast_expr *e;

	parser_expect(ps, TOK_NAME, "after '.'");
	e = new_expr(ps, EX_ATTRIBUTE, object->span.begin);
	e->as.attribute.object = object;
	e->as.attribute.name = token->as.name;
	e->as.attribute.name_span = parser_token_span(ps, token);
	return e;
}

/* atom with calls, indices and attributes behind it. */
static struct ast_expr *parse_postfix(struct parser *ps)
{
	struct ast_expr *object = parse_atom(ps), *e;

	for (; !ps->failed; object = e) {
		if (parser_accept(ps, TOK_DOT)) {
			e = parse_attribute(ps, object);
		} else if (parser_is(ps, TOK_LPAREN) || parser_is(ps, TOK_LBRACKET)) {
			bool is_call = parser_is(ps, TOK_LPAREN);

			parser_accept(ps, parser_peek(ps, 0)->kind);
			if (!parser_enter(ps))
				break;
			e = new_expr(ps, is_call ? EX_CALL : EX_SUBSCRIPT, object->span.begin);
			if (is_call) {
				e->as.call.callee = object;
				parse_args(ps, &e->as.call.args);
				for (uint32_t i = 0; i < e->as.call.args.n; i++)
					grow(ps, e, e->as.call.args.p[i].value);
			} else {
				e->as.subscript.object = object;
				e->as.subscript.index = parse_index(ps);
				grow(ps, e, e->as.subscript.index);
			}
			e->span = parser_span(ps, object->span.begin);
			parser_leave(ps);
		} else {
			break;
		}
		grow(ps, e, object);
	}
	return object;
}

/* Operators */

static struct ast_expr *parse_unary(struct parser *ps);

/* As tall as its taller side and one more. */
static struct ast_expr *new_binary(struct parser *ps, enum ast_expr_kind kind,
                                   struct ast_expr *left, struct ast_expr *right)
{
	struct ast_expr *e = new_expr(ps, kind, left->span.begin);

	e->as.binary.left = left;
	e->as.binary.right = right;
	grow(ps, e, left);
	grow(ps, e, right);
	return e;
}

/* `left ** right`, right to left: the right side is a factor, which may be a power again. */
static struct ast_expr *parse_power_rest(struct parser *ps, struct ast_expr *left)
{
	struct span sign = parser_token_span(ps, parser_peek(ps, 0));
	struct ast_expr *e;

	parser_accept(ps, TOK_POW);
	if (!parser_enter(ps))
		return left;
	e = new_binary(ps, EX_BINARY, left, parse_unary(ps));
	e->as.binary.op = AST_POW;
	e->as.binary.sign = sign;
	e->span = parser_span(ps, left->span.begin);
	parser_leave(ps);
	return e;
}

/* ** binds tighter than a sign on its left, weaker than one on its right. */
static struct ast_expr *parse_power(struct parser *ps)
{
	struct ast_expr *left, *e;

	if (parser_is(ps, TOK_AWAIT)) {
		uint32_t begin = parser_peek(ps, 0)->begin;

		parser_accept(ps, TOK_AWAIT);
		left = parse_postfix(ps);
		e = new_expr(ps, EX_YIELD, begin);
		e->as.starred = left;
		grow(ps, e, left);
		return e;
	}
	left = parse_postfix(ps);
	return parser_is(ps, TOK_POW) ? parse_power_rest(ps, left) : left;
}

/* One taller than its operand. */
static struct ast_expr *new_unary(struct parser *ps, enum ast_unary op, uint32_t begin,
                                  struct ast_expr *operand)
{
	struct ast_expr *e = new_expr(ps, EX_UNARY, begin);

	e->as.unary.op = op;
	e->as.unary.operand = operand;
	grow(ps, e, operand);
	return e;
}

/* Signs may be many: each is a level of nesting. */
static struct ast_expr *parse_unary(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	enum ast_unary op;
	struct ast_expr *e;

	if (parser_is(ps, TOK_SUB))
		op = AST_NEG;
	else if (parser_is(ps, TOK_ADD))
		op = AST_POS;
	else if (parser_is(ps, TOK_INVERT))
		op = AST_INVERT;
	else
		return parse_power(ps);
	parser_accept(ps, parser_peek(ps, 0)->kind);
	if (!parser_enter(ps))
		return new_expr(ps, EX_BAD, begin);
	e = new_unary(ps, op, begin, parse_unary(ps));
	parser_leave(ps);
	return e;
}

/* A row an operator: the higher its precedence, the tighter it binds. */
struct binary_level {
	enum token_kind token;
	int precedence;
	enum ast_binary op;
};

/* Precedence as in Python's reference, "Operator precedence"; NULL for any other token. */
static const struct binary_level *binary_level(enum token_kind token)
{
	static const struct binary_level levels[] = {
		{ TOK_BITOR, 1, AST_BITOR },   { TOK_BITXOR, 2, AST_BITXOR },
		{ TOK_BITAND, 3, AST_BITAND }, { TOK_SHL, 4, AST_SHL },
		{ TOK_SHR, 4, AST_SHR },       { TOK_ADD, 5, AST_ADD },
		{ TOK_SUB, 5, AST_SUB },       { TOK_MUL, 6, AST_MUL },
		{ TOK_DIV, 6, AST_DIV },       { TOK_FLOORDIV, 6, AST_FLOORDIV },
		{ TOK_MOD, 6, AST_MOD },       { TOK_MATMUL, 6, AST_MATMUL },
	};

	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		if (levels[i].token == token)
			return &levels[i];
	}
	return NULL;
}

/* Binary operators of at least this precedence, left to right. */
static struct ast_expr *parse_binary(struct parser *ps, int precedence)
{
	struct ast_expr *left = parse_unary(ps);
	const struct binary_level *level;

	while ((level = binary_level(parser_peek(ps, 0)->kind)) != NULL &&
	       level->precedence >= precedence) {
		struct span sign = parser_token_span(ps, parser_peek(ps, 0));

		parser_accept(ps, level->token);
		left = new_binary(ps, EX_BINARY, left, parse_binary(ps, level->precedence + 1));
		left->as.binary.op = level->op;
		left->as.binary.sign = sign;
		left->span = parser_span(ps, left->as.binary.left->span.begin);
	}
	return left;
}

/* Consumes a comparison operator, of one or two tokens; false when there is none. */
static bool accept_compare(struct parser *ps, enum ast_compare *op)
{
	static const struct {
		enum token_kind token;
		enum ast_compare op;
	} signs[] = {
		{ TOK_EQ, AST_EQ }, { TOK_NE, AST_NE }, { TOK_LT, AST_LT }, { TOK_LE, AST_LE },
		{ TOK_GT, AST_GT }, { TOK_GE, AST_GE }, { TOK_IN, AST_IN },
	};

	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		*op = signs[i].op;
		if (parser_accept(ps, signs[i].token))
			return true;
	}
	if (parser_is(ps, TOK_NOT) && parser_peek(ps, 1)->kind == TOK_IN) {
		parser_accept(ps, TOK_NOT);
		*op = AST_NOT_IN;
		return parser_accept(ps, TOK_IN);
	}
	if (!parser_accept(ps, TOK_IS))
		return false;
	*op = parser_accept(ps, TOK_NOT) ? AST_IS_NOT : AST_IS;
	return true;
}

/* a < b < c is one expression of three operands. */
static struct ast_expr *parse_comparison(struct parser *ps)
{
	struct ast_expr *left = parse_binary(ps, 1), *e = NULL;
	enum ast_compare op;

	while (accept_compare(ps, &op)) {
		struct ast_comparison next = { op, parse_binary(ps, 1) };

		if (!e) {
			e = new_expr(ps, EX_COMPARE, left->span.begin);
			e->as.compare.left = left;
			grow(ps, e, left);
		}
		vec_push(ps->cx->arena, &e->as.compare.rest, next);
		grow(ps, e, next.right);
		e->span = parser_span(ps, left->span.begin);
	}
	return e ? e : left;
}

/* `not` binds weaker than comparisons. */
static struct ast_expr *parse_not(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_expr *e;

	if (!parser_accept(ps, TOK_NOT))
		return parse_comparison(ps);
	if (!parser_enter(ps))
		return new_expr(ps, EX_BAD, begin);
	e = new_unary(ps, AST_NOT, begin, parse_not(ps));
	parser_leave(ps);
	return e;
}

/* From left to right. */
static struct ast_expr *parse_and(struct parser *ps)
{
	struct ast_expr *left = parse_not(ps);

	while (parser_accept(ps, TOK_AND)) {
		left = new_binary(ps, EX_AND, left, parse_not(ps));
		left->span = parser_span(ps, left->as.binary.left->span.begin);
	}
	return left;
}

/* From left to right. */
static struct ast_expr *parse_or(struct parser *ps)
{
	struct ast_expr *left = parse_and(ps);

	while (parser_accept(ps, TOK_OR)) {
		left = new_binary(ps, EX_OR, left, parse_and(ps));
		left->span = parser_span(ps, left->as.binary.left->span.begin);
	}
	return left;
}

/* Parameters without annotations, then one expression. */
static struct ast_expr *parse_lambda(struct parser *ps, uint32_t begin)
{
	struct ast_expr *e;

	parser_accept(ps, TOK_LAMBDA);
	e = new_expr(ps, EX_LAMBDA, begin);
	parse_params(ps, &e->as.lambda.params, TOK_COLON, false);
	parser_expect(ps, TOK_COLON, "after a lambda's parameters");
	e->as.lambda.body = parse_test(ps);
	grow(ps, e, e->as.lambda.body);
	e->span = parser_span(ps, begin);
	return e;
}

/* Makes the function around it a generator, which is never run. */
static struct ast_expr *parse_yield(struct parser *ps, uint32_t begin)
{
	struct ast_expr *e = new_expr(ps, EX_YIELD, begin);

	parser_accept(ps, TOK_YIELD);
	parser_accept(ps, TOK_FROM);
	if (starts_test(ps))
		e->as.starred = parse_test_list(ps);
	grow(ps, e, e->as.starred);
	if (ps->def)
		ps->def->as.def.is_generator = true;
	e->span = parser_span(ps, begin);
	return e;
}

/* then if condition else otherwise; otherwise may be another one. */
static struct ast_expr *parse_ternary(struct parser *ps, uint32_t begin)
{
	struct ast_expr *then = parse_or(ps), *e;

	if (!parser_accept(ps, TOK_IF))
		return then;
	e = new_expr(ps, EX_TERNARY, begin);
	e->as.ternary.then = then;
	e->as.ternary.condition = parse_or(ps);
	parser_expect(ps, TOK_ELSE, "in a conditional expression");
	e->as.ternary.otherwise = parse_test(ps);
	grow(ps, e, then);
	grow(ps, e, e->as.ternary.condition);
	grow(ps, e, e->as.ternary.otherwise);
	e->span = parser_span(ps, begin);
	return e;
}

/* A level of nesting. */
struct ast_expr *parse_test(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_expr *e;

	if (!parser_enter(ps))
		return new_expr(ps, EX_BAD, begin);
	if (parser_is(ps, TOK_LAMBDA))
		e = parse_lambda(ps, begin);
	else if (parser_is(ps, TOK_YIELD))
		e = parse_yield(ps, begin);
	else
		e = parse_ternary(ps, begin);
	parser_leave(ps);
	return e;
}

/* name := test, where Python allows it without parentheses. */
struct ast_expr *parse_named_test(struct parser *ps)
{
	const struct token *token = parser_peek(ps, 0);
	struct ast_expr *e, *value;

	if (token->kind != TOK_NAME || parser_peek(ps, 1)->kind != TOK_WALRUS)
		return parse_test(ps);
	parser_accept(ps, TOK_NAME);
	parser_accept(ps, TOK_WALRUS);
	value = parse_test(ps);
	e = new_expr(ps, EX_WALRUS, token->begin);
	e->as.walrus.name = token->as.name;
	e->as.walrus.value = value;
	grow(ps, e, value);
	return e;
}

/* A trailing comma makes a tuple of one. */
struct ast_expr *parse_test_list(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_expr *first = parse_element(ps), *e;

	if (!parser_is(ps, TOK_COMMA))
		return first;
	e = new_expr(ps, EX_TUPLE, begin);
	push_item(ps, &e->as.items, e, first);
	while (parser_accept(ps, TOK_COMMA) && starts_test(ps) && !ps->failed)
		push_item(ps, &e->as.items, e, parse_element(ps));
	e->span = parser_span(ps, begin);
	return e;
}

/* A name, attribute, element or bracketed list of them, with or without a star. */
struct ast_expr *parse_target(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_expr *e, *value;

	if (!parser_accept(ps, TOK_MUL))
		return parse_postfix(ps);
	value = parse_postfix(ps);
	e = new_expr(ps, EX_STARRED, begin);
	e->as.starred = value;
	grow(ps, e, value);
	return e;
}

/* `in` ends it. */
struct ast_expr *parse_target_list(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_expr *first = parse_target(ps), *e;

	if (!parser_is(ps, TOK_COMMA))
		return first;
	e = new_expr(ps, EX_TUPLE, begin);
	push_item(ps, &e->as.items, e, first);
	while (parser_accept(ps, TOK_COMMA) && !parser_is(ps, TOK_IN) && !ps->failed)
		push_item(ps, &e->as.items, e, parse_target(ps));
	e->span = parser_span(ps, begin);
	return e;
}

/* Looks into tuples and lists. */
bool parse_check_target(struct parser *ps, const struct ast_expr *target)
{
	if (target->kind == EX_TUPLE || target->kind == EX_LIST) {
		for (uint32_t i = 0; i < target->as.items.n; i++) {
			if (!parse_check_target(ps, target->as.items.p[i]))
				return false;
		}
		return true;
	}
	if (target->kind == EX_STARRED)
		return parse_check_target(ps, target->as.starred);
	if (target->kind == EX_NAME || target->kind == EX_ATTRIBUTE || target->kind == EX_SUBSCRIPT)
		return true;
	parser_error(ps, DIAG_E0108, target->span, "this cannot be assigned to");
	return false;
}

/* Is the name taken by an earlier parameter? */
static bool has_param(const struct ast_params *params, sym_t name)
{
	for (uint32_t i = 0; i < params->n; i++) {
		if (params->p[i].name == name)
			return true;
	}
	return false;
}

/* One parameter after its stars. */
static void parse_param(struct parser *ps, struct ast_params *params, enum ast_param_kind kind,
                        bool typed)
{
	const struct token *token = parser_peek(ps, 0);
	struct ast_param param = { .kind = kind };

	if (!parser_expect(ps, TOK_NAME, "as a parameter"))
		return;
	param.name = token->as.name;
	param.span = parser_token_span(ps, token);
	if (has_param(params, param.name))
		parser_error(ps, DIAG_E0108, param.span, "two parameters have the name %s",
		             sym_text(ps->cx->names, param.name));
	if (typed && parser_accept(ps, TOK_COLON))
		param.annotation = parse_test(ps);
	if (parser_accept(ps, TOK_ASSIGN))
		param.default_value = parse_test(ps);
	vec_push(ps->cx->arena, params, param);
}

/*
 * A plain `*` only changes the kind of those behind it; `/` makes those before it positional-only.
 * `typed`: annotations may stand (not in a lambda, whose colon ends the parameters).
 */
void parse_params(struct parser *ps, struct ast_params *params, enum token_kind end, bool typed)
{
	enum ast_param_kind kind = AST_PLAIN;

	while (!parser_is(ps, end) && !ps->failed) {
		if (parser_accept(ps, TOK_DIV)) {
			for (uint32_t i = 0; i < params->n; i++)
				params->p[i].positional_only = true;
		} else if (parser_accept(ps, TOK_POW)) {
			parse_param(ps, params, AST_DOUBLE_STAR, typed);
		} else if (parser_accept(ps, TOK_MUL)) {
			kind = AST_KEYWORD_ONLY;
			if (!parser_is(ps, TOK_COMMA))
				parse_param(ps, params, AST_STAR, typed);
		} else {
			parse_param(ps, params, kind, typed);
		}
		if (!parser_accept(ps, TOK_COMMA))
			break;
	}
}

/* Newlines end it: the text is one line of a command. NULL after an error. */
struct ast_expr *parse_expression(struct cx *cx, uint32_t file, uint32_t max_depth)
{
	struct parser ps = { .cx = cx, .file = file, .max_depth = max_depth };
	struct ast_expr *e;

	if (!lex_file(cx, file, &ps.tokens))
		return NULL;
	e = parse_test_list(&ps);
	parser_accept(&ps, TOK_NEWLINE);
	parser_expect(&ps, TOK_END, "after the expression");
	return ps.failed ? NULL : e;
}

/* In the enum's order. */
const char *ast_binary_text(enum ast_binary op)
{
	static const char *const texts[] = {
		"+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>",
	};

	assert(op < sizeof(texts) / sizeof(*texts));
	return texts[op];
}

/* In the enum's order. */
const char *ast_compare_text(enum ast_compare op)
{
	static const char *const texts[] = {
		"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not",
	};

	assert(op < sizeof(texts) / sizeof(*texts));
	return texts[op];
}
