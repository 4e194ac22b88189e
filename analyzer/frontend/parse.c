/*
 * Statements, by recursive descent; the first word tells which one it is. (Python reference,
 * "Simple statements" and "Compound statements".)
 *
 *     if a: b        IF with one arm
 *     elif c: d      another arm, so that a long chain does not nest
 *     else: e
 *
 * Definitions are also listed in the module, with the function around each, as kernels are looked
 * for before anything runs.
 */
#include "analyzer/frontend/parser.h"

#include <assert.h>
#include <string.h>

static void parse_stmt(struct parser *ps, struct ast_body *body);

/* A statement from `begin` to the last token read. */
static struct ast_stmt *new_stmt(struct parser *ps, enum ast_stmt_kind kind, uint32_t begin)
{
	struct ast_stmt *st = arena_new(ps->cx->arena, struct ast_stmt);

	assert(ps->module);
	st->kind = kind;
	st->span = parser_span(ps, begin);
	return st;
}

/* Nothing more belongs to the statement. */
static bool ends_simple_stmt(const struct parser *ps)
{
	return parser_is(ps, TOK_NEWLINE) || parser_is(ps, TOK_SEMICOLON) || parser_is(ps, TOK_END);
}

/* Simple statements */

/* +=, -= and the like; false when none stands here. */
static bool accept_augmented(struct parser *ps, enum ast_binary *op)
{
	static const struct {
		enum token_kind token;
		enum ast_binary op;
	} signs[] = {
		{ TOK_ADD_ASSIGN, AST_ADD },           { TOK_SUB_ASSIGN, AST_SUB },
		{ TOK_MUL_ASSIGN, AST_MUL },           { TOK_DIV_ASSIGN, AST_DIV },
		{ TOK_MOD_ASSIGN, AST_MOD },           { TOK_POW_ASSIGN, AST_POW },
		{ TOK_FLOORDIV_ASSIGN, AST_FLOORDIV }, { TOK_MATMUL_ASSIGN, AST_MATMUL },
		{ TOK_SHL_ASSIGN, AST_SHL },           { TOK_SHR_ASSIGN, AST_SHR },
		{ TOK_BITAND_ASSIGN, AST_BITAND },     { TOK_BITOR_ASSIGN, AST_BITOR },
		{ TOK_BITXOR_ASSIGN, AST_BITXOR },
	};

	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		*op = signs[i].op;
		if (parser_accept(ps, signs[i].token))
			return true;
	}
	return false;
}

/* a = b = value: all but the last are targets. */
static struct ast_stmt *parse_assign(struct parser *ps, struct ast_expr *first, uint32_t begin)
{
	struct ast_exprs targets = { 0 };
	struct ast_expr *value = first;
	struct ast_stmt *st;

	while (parser_accept(ps, TOK_ASSIGN)) {
		if (!parse_check_target(ps, value))
			break;
		vec_push(ps->cx->arena, &targets, value);
		value = parse_test_list(ps);
	}
	st = new_stmt(ps, ST_ASSIGN, begin);
	st->as.assign.targets = targets;
	st->as.assign.value = value;
	return st;
}

/* target: type, with or without a value. */
static struct ast_stmt *parse_annotated(struct parser *ps, struct ast_expr *target, uint32_t begin)
{
	struct ast_expr *annotation, *value = NULL;
	struct ast_stmt *st;

	parse_check_target(ps, target);
	annotation = parse_test(ps);
	if (parser_accept(ps, TOK_ASSIGN))
		value = parse_test_list(ps);
	st = new_stmt(ps, ST_ANNOTATED, begin);
	st->as.annotated.target = target;
	st->as.annotated.annotation = annotation;
	st->as.annotated.value = value;
	return st;
}

/* What follows the first expression tells which statement it is. */
static struct ast_stmt *parse_expr_stmt(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_expr *first = parse_test_list(ps);
	enum ast_binary op;
	struct ast_stmt *st;

	if (parser_is(ps, TOK_ASSIGN))
		return parse_assign(ps, first, begin);
	if (parser_accept(ps, TOK_COLON))
		return parse_annotated(ps, first, begin);
	if (accept_augmented(ps, &op)) {
		struct ast_expr *value = parse_test_list(ps);

		parse_check_target(ps, first);
		st = new_stmt(ps, ST_AUGMENTED, begin);
		st->as.augmented.target = first;
		st->as.augmented.value = value;
		st->as.augmented.op = op;
		return st;
	}
	if (parser_is(ps, TOK_WALRUS))
		parser_error(ps, DIAG_E0108, parser_token_span(ps, parser_peek(ps, 0)),
		             "':=' needs parentheses around it here");
	st = new_stmt(ps, ST_EXPR, begin);
	st->as.expr = first;
	return st;
}

/* A dotted name; relative ones begin with dots. */
static struct str parse_module_name(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct span span;

	while (parser_accept(ps, TOK_DOT) || parser_accept(ps, TOK_ELLIPSIS))
		;
	if (!parser_is(ps, TOK_IMPORT)) {
		parser_expect(ps, TOK_NAME, "as a module");
		while (parser_accept(ps, TOK_DOT))
			parser_expect(ps, TOK_NAME, "after '.'");
	}
	span = parser_span(ps, begin);
	return (struct str){ source_get(&ps->cx->sources, ps->file)->text.p + span.begin,
		                 span.end - span.begin };
}

/* The name behind `as`, or the other one. */
static sym_t accept_as(struct parser *ps, sym_t otherwise)
{
	sym_t name;

	if (!parser_accept(ps, TOK_AS))
		return otherwise;
	name = parser_peek(ps, 0)->as.name;
	return parser_expect(ps, TOK_NAME, "after 'as'") ? name : otherwise;
}

/* import a.b as c, d */
static struct ast_stmt *parse_import(struct parser *ps, uint32_t begin)
{
	struct ast_stmt *st = new_stmt(ps, ST_IMPORT, begin);

	parser_accept(ps, TOK_IMPORT);
	do {
		struct ast_import import = { 0 };
		uint32_t item_begin = parser_peek(ps, 0)->begin;

		if (!parser_is(ps, TOK_NAME) && !parser_expect(ps, TOK_NAME, "as a module"))
			break;
		import.module = parse_module_name(ps);
		import.bound = accept_as(ps, 0);
		import.span = parser_span(ps, item_begin);
		vec_push(ps->cx->arena, &st->as.imports, import);
	} while (parser_accept(ps, TOK_COMMA));
	st->span = parser_span(ps, begin);
	return st;
}

/* from a import b as c, (d,) */
static struct ast_stmt *parse_from_import(struct parser *ps, uint32_t begin)
{
	struct ast_stmt *st = new_stmt(ps, ST_IMPORT, begin);
	struct str module;
	bool paren;

	parser_accept(ps, TOK_FROM);
	module = parse_module_name(ps);
	parser_expect(ps, TOK_IMPORT, "after the module");
	paren = parser_accept(ps, TOK_LPAREN);
	do {
		const struct token *token = parser_peek(ps, 0);
		struct ast_import import = { .module = module };

		if (paren && parser_is(ps, TOK_RPAREN))
			break;
		if (parser_accept(ps, TOK_MUL)) {
			import.name = intern_text(ps->cx->names, "*");
		} else if (parser_expect(ps, TOK_NAME, "to import")) {
			import.name = token->as.name;
			import.bound = accept_as(ps, import.name);
		}
		import.span = parser_token_span(ps, token);
		vec_push(ps->cx->arena, &st->as.imports, import);
	} while (parser_accept(ps, TOK_COMMA));
	if (paren)
		parser_expect(ps, TOK_RPAREN, "after the imported names");
	st->span = parser_span(ps, begin);
	return st;
}

/* global and nonlocal. */
static struct ast_stmt *parse_names(struct parser *ps, enum ast_stmt_kind kind, uint32_t begin)
{
	struct ast_stmt *st = new_stmt(ps, kind, begin);

	parser_accept(ps, parser_peek(ps, 0)->kind);
	do {
		sym_t name = parser_peek(ps, 0)->as.name;

		if (parser_expect(ps, TOK_NAME, "in this list"))
			vec_push(ps->cx->arena, &st->as.names, name);
	} while (parser_accept(ps, TOK_COMMA));
	st->span = parser_span(ps, begin);
	return st;
}

/* The value may be absent. */
static struct ast_stmt *parse_return(struct parser *ps, uint32_t begin)
{
	struct ast_expr *value = NULL;
	struct ast_stmt *st;

	parser_accept(ps, TOK_RETURN);
	if (!ends_simple_stmt(ps))
		value = parse_test_list(ps);
	st = new_stmt(ps, ST_RETURN, begin);
	st->as.expr = value;
	return st;
}

/* The cause behind `from` is parsed and dropped. */
static struct ast_stmt *parse_raise(struct parser *ps, uint32_t begin)
{
	struct ast_expr *value = NULL;
	struct ast_stmt *st;

	parser_accept(ps, TOK_RAISE);
	if (!ends_simple_stmt(ps))
		value = parse_test(ps);
	if (parser_accept(ps, TOK_FROM))
		parse_test(ps);
	st = new_stmt(ps, ST_RAISE, begin);
	st->as.expr = value;
	return st;
}

/* assert condition, message */
static struct ast_stmt *parse_assert(struct parser *ps, uint32_t begin)
{
	struct ast_expr *condition, *message = NULL;
	struct ast_stmt *st;

	parser_accept(ps, TOK_ASSERT);
	condition = parse_test(ps);
	if (parser_accept(ps, TOK_COMMA))
		message = parse_test(ps);
	st = new_stmt(ps, ST_ASSERT, begin);
	st->as.assert_.condition = condition;
	st->as.assert_.message = message;
	return st;
}

/* Several targets are one tuple. */
static struct ast_stmt *parse_delete(struct parser *ps, uint32_t begin)
{
	struct ast_stmt *st = new_stmt(ps, ST_DELETE, begin);
	struct ast_expr *list;

	parser_accept(ps, TOK_DEL);
	list = parse_test_list(ps);
	parse_check_target(ps, list);
	if (list->kind == EX_TUPLE)
		st->as.targets = list->as.items;
	else
		vec_push(ps->cx->arena, &st->as.targets, list);
	st->span = parser_span(ps, begin);
	return st;
}

/* pass, break, continue. */
static struct ast_stmt *parse_word(struct parser *ps, enum ast_stmt_kind kind, uint32_t begin)
{
	parser_accept(ps, parser_peek(ps, 0)->kind);
	return new_stmt(ps, kind, begin);
}

/* By its first word; all others are expressions or assignments. */
static struct ast_stmt *parse_simple_stmt(struct parser *ps)
{
	const struct token *token = parser_peek(ps, 0);

#define IS(kind_) (token->kind == TOK_##kind_)
	if (IS(RETURN))
		return parse_return(ps, token->begin);
	if (IS(IMPORT))
		return parse_import(ps, token->begin);
	if (IS(FROM))
		return parse_from_import(ps, token->begin);
	if (IS(ASSERT))
		return parse_assert(ps, token->begin);
	if (IS(RAISE))
		return parse_raise(ps, token->begin);
	if (IS(GLOBAL) || IS(NONLOCAL))
		return parse_names(ps, IS(GLOBAL) ? ST_GLOBAL : ST_NONLOCAL, token->begin);
	if (IS(DEL))
		return parse_delete(ps, token->begin);
	if (IS(PASS))
		return parse_word(ps, ST_PASS, token->begin);
	if (IS(BREAK))
		return parse_word(ps, ST_BREAK, token->begin);
	if (IS(CONTINUE))
		return parse_word(ps, ST_CONTINUE, token->begin);
	return parse_expr_stmt(ps);
#undef IS
}

/* One line: simple statements between semicolons. */
static void parse_line(struct parser *ps, struct ast_body *body)
{
	do {
		if (parser_is(ps, TOK_NEWLINE))
			break;
		vec_push(ps->cx->arena, body, parse_simple_stmt(ps));
	} while (parser_accept(ps, TOK_SEMICOLON));
	if (!parser_is(ps, TOK_END))
		parser_expect(ps, TOK_NEWLINE, "after a statement");
}

/* Compound statements */

/* ':' and a block, or simple statements on the same line. */
static struct ast_body parse_suite(struct parser *ps)
{
	struct ast_body body = { 0 };

	parser_expect(ps, TOK_COLON, "before the block");
	if (!parser_enter(ps))
		return body;
	if (!parser_accept(ps, TOK_NEWLINE)) {
		parse_line(ps, &body);
	} else if (parser_expect(ps, TOK_INDENT, "after ':'")) {
		while (!parser_is(ps, TOK_DEDENT) && !parser_is(ps, TOK_END))
			parse_stmt(ps, &body);
		parser_accept(ps, TOK_DEDENT);
	}
	parser_leave(ps);
	return body;
}

/* Empty when there is none. */
static struct ast_body parse_else(struct parser *ps)
{
	return parser_accept(ps, TOK_ELSE) ? parse_suite(ps) : (struct ast_body){ 0 };
}

/* elif arms stand beside the first, not inside its else. */
static struct ast_stmt *parse_if(struct parser *ps, uint32_t begin)
{
	struct ast_stmt *st = new_stmt(ps, ST_IF, begin);

	parser_accept(ps, TOK_IF);
	do {
		struct ast_arm arm;

		arm.condition = parse_named_test(ps);
		if (st->as.if_.arms.n == 0)
			st->span = parser_span(ps, begin);
		arm.body = parse_suite(ps);
		vec_push(ps->cx->arena, &st->as.if_.arms, arm);
	} while (parser_accept(ps, TOK_ELIF));
	st->as.if_.otherwise = parse_else(ps);
	return st;
}

/* for target in iterable: ... else: ... */
static struct ast_stmt *parse_for(struct parser *ps, uint32_t begin)
{
	struct ast_stmt *st = new_stmt(ps, ST_FOR, begin);

	parser_accept(ps, TOK_FOR);
	st->as.for_.target = parse_target_list(ps);
	parse_check_target(ps, st->as.for_.target);
	parser_expect(ps, TOK_IN, "in a for loop");
	st->as.for_.iterable = parse_test_list(ps);
	st->span = parser_span(ps, begin);
	st->as.for_.body = parse_suite(ps);
	st->as.for_.otherwise = parse_else(ps);
	return st;
}

/* while condition: ... else: ... */
static struct ast_stmt *parse_while(struct parser *ps, uint32_t begin)
{
	struct ast_stmt *st = new_stmt(ps, ST_WHILE, begin);

	parser_accept(ps, TOK_WHILE);
	st->as.while_.condition = parse_named_test(ps);
	st->span = parser_span(ps, begin);
	st->as.while_.body = parse_suite(ps);
	st->as.while_.otherwise = parse_else(ps);
	return st;
}

/* Does the parenthesis at the position hold `with` items, i.e. does ':' follow its end? */
static bool with_is_parenthesised(const struct parser *ps)
{
	uint32_t depth = 0;
	bool has_as = false;

	for (uint32_t i = 0;; i++) {
		enum token_kind kind = parser_peek(ps, i)->kind;

		if (kind == TOK_END || kind == TOK_NEWLINE)
			return false;
		has_as |= kind == TOK_AS && depth == 1;
		if (kind == TOK_LPAREN || kind == TOK_LBRACKET || kind == TOK_LBRACE)
			depth++;
		else if (kind == TOK_RPAREN || kind == TOK_RBRACKET || kind == TOK_RBRACE)
			depth--;
		if (depth == 0)
			return parser_peek(ps, i + 1)->kind == TOK_COLON && has_as;
	}
}

/* Items may stand in parentheses of their own. */
static struct ast_stmt *parse_with(struct parser *ps, uint32_t begin)
{
	struct ast_stmt *st = new_stmt(ps, ST_WITH, begin);
	bool paren;

	parser_accept(ps, TOK_WITH);
	paren = parser_is(ps, TOK_LPAREN) && with_is_parenthesised(ps);
	if (paren)
		parser_accept(ps, TOK_LPAREN);
	do {
		struct ast_with_item item = { 0 };

		if (paren && parser_is(ps, TOK_RPAREN))
			break;
		item.context = parse_test(ps);
		if (parser_accept(ps, TOK_AS)) {
			item.target = parse_target(ps);
			parse_check_target(ps, item.target);
		}
		vec_push(ps->cx->arena, &st->as.with.items, item);
	} while (parser_accept(ps, TOK_COMMA));
	if (paren)
		parser_expect(ps, TOK_RPAREN, "after the with items");
	st->span = parser_span(ps, begin);
	st->as.with.body = parse_suite(ps);
	return st;
}

/* Which exceptions a clause names does not matter: none is ever raised. */
static void parse_handlers(struct parser *ps, struct ast_stmt *st)
{
	while (parser_accept(ps, TOK_EXCEPT)) {
		struct ast_body body;

		parser_accept(ps, TOK_MUL);
		if (!parser_is(ps, TOK_COLON))
			parse_test_list(ps);
		accept_as(ps, 0);
		body = parse_suite(ps);
		for (uint32_t i = 0; i < body.n; i++)
			vec_push(ps->cx->arena, &st->as.try_.handlers, body.p[i]);
	}
}

/* try, except, else, finally. */
static struct ast_stmt *parse_try(struct parser *ps, uint32_t begin)
{
	struct ast_stmt *st = new_stmt(ps, ST_TRY, begin);

	parser_accept(ps, TOK_TRY);
	st->as.try_.body = parse_suite(ps);
	parse_handlers(ps, st);
	st->as.try_.otherwise = parse_else(ps);
	if (parser_accept(ps, TOK_FINALLY))
		st->as.try_.finally = parse_suite(ps);
	return st;
}

/* The function knows the one around it, so that kernels know their factories. */
static struct ast_stmt *parse_def(struct parser *ps, uint32_t begin,
                                  const struct ast_exprs *decorators)
{
	struct ast_stmt *st = new_stmt(ps, ST_DEF, begin), *outer = ps->def;
	struct ast_def *def = &st->as.def;
	bool was_in_class = ps->in_class;
	const struct token *name;

	parser_accept(ps, TOK_DEF);
	name = parser_peek(ps, 0);
	parser_expect(ps, TOK_NAME, "after 'def'");
	def->name = name->as.name;
	def->name_span = parser_token_span(ps, name);
	def->decorators = *decorators;
	def->parent = outer;
	def->in_class = ps->in_class;
	parser_expect(ps, TOK_LPAREN, "after the function's name");
	parse_params(ps, &def->params, TOK_RPAREN, true);
	parser_expect(ps, TOK_RPAREN, "after the parameters");
	if (parser_accept(ps, TOK_ARROW))
		parse_test_list(ps);
	st->span = parser_span(ps, begin);
	vec_push(ps->cx->arena, &ps->module->defs, st);
	ps->def = st;
	ps->in_class = false;
	def->body = parse_suite(ps);
	ps->def = outer;
	ps->in_class = was_in_class;
	return st;
}

/* Bases and body are parsed for their syntax alone. */
static struct ast_stmt *parse_class(struct parser *ps, uint32_t begin)
{
	struct ast_stmt *st = new_stmt(ps, ST_CLASS, begin);
	bool was_in_class = ps->in_class;

	parser_accept(ps, TOK_CLASS);
	st->as.name = parser_peek(ps, 0)->as.name;
	parser_expect(ps, TOK_NAME, "after 'class'");
	if (parser_accept(ps, TOK_LPAREN)) {
		struct ast_args bases = { 0 };

		parse_args(ps, &bases);
	}
	st->span = parser_span(ps, begin);
	ps->in_class = true;
	parse_suite(ps);
	ps->in_class = was_in_class;
	return st;
}

/* Decorators of classes are dropped with the class. */
static struct ast_stmt *parse_decorated(struct parser *ps)
{
	uint32_t begin = parser_peek(ps, 0)->begin;
	struct ast_exprs decorators = { 0 };

	while (parser_accept(ps, TOK_MATMUL)) {
		vec_push(ps->cx->arena, &decorators, parse_named_test(ps));
		parser_expect(ps, TOK_NEWLINE, "after a decorator");
	}
	if (parser_is(ps, TOK_CLASS))
		return parse_class(ps, begin);
	begin = parser_peek(ps, 0)->begin;
	parser_accept(ps, TOK_ASYNC);
	if (parser_is(ps, TOK_DEF))
		return parse_def(ps, begin, &decorators);
	parser_expect(ps, TOK_DEF, "after the decorators");
	return new_stmt(ps, ST_PASS, begin);
}

/* The compound statement that the token begins; NULL when it begins none. */
static struct ast_stmt *parse_compound(struct parser *ps)
{
	static const struct ast_exprs no_decorators = { 0 };
	const struct token *token = parser_peek(ps, 0);

	if (token->kind == TOK_ASYNC)
		parser_accept(ps, TOK_ASYNC);
	if (parser_is(ps, TOK_IF))
		return parse_if(ps, token->begin);
	if (parser_is(ps, TOK_FOR))
		return parse_for(ps, token->begin);
	if (parser_is(ps, TOK_WHILE))
		return parse_while(ps, token->begin);
	if (parser_is(ps, TOK_WITH))
		return parse_with(ps, token->begin);
	if (parser_is(ps, TOK_TRY))
		return parse_try(ps, token->begin);
	if (parser_is(ps, TOK_DEF))
		return parse_def(ps, token->begin, &no_decorators);
	if (parser_is(ps, TOK_CLASS))
		return parse_class(ps, token->begin);
	if (parser_is(ps, TOK_MATMUL))
		return parse_decorated(ps);
	return NULL;
}

/* A compound statement or a line of simple ones. */
static void parse_stmt(struct parser *ps, struct ast_body *body)
{
	struct ast_stmt *st;

	if (parser_is(ps, TOK_INDENT)) {
		parser_error(ps, DIAG_E0106, parser_token_span(ps, parser_peek(ps, 0)),
		             "this line is indented, but no block begins here");
		return;
	}
	st = parse_compound(ps);
	if (st)
		vec_push(ps->cx->arena, body, st);
	else
		parse_line(ps, body);
}

/* The tree holds spans of the source, which must outlive it. */
struct ast_module *parse_file(struct cx *cx, uint32_t file, uint32_t max_depth)
{
	struct parser ps = { .cx = cx, .file = file, .max_depth = max_depth };
	struct ast_module *module = arena_new(cx->arena, struct ast_module);

	if (!lex_file(cx, file, &ps.tokens))
		return NULL;
	assert(ps.tokens.n > 0 && vec_last(&ps.tokens).kind == TOK_END);
	ps.module = module;
	module->file = file;
	while (!parser_is(&ps, TOK_END))
		parse_stmt(&ps, &module->body);
	return ps.failed ? NULL : module;
}
