/*
 * The syntax tree as Python again: one statement a line, every operator in parentheses, so that
 * precedence can be read off. What is printed parses to the same tree.
 *
 *     a + b * c        prints as    (a + (b * c))
 *     if a: b          prints as    if a:
 *                                       b
 *
 * Bodies of classes are not kept, so a class prints as `class A: ...`; the clauses of a try
 * statement print as one.
 */
#include "analyzer/frontend/ast.h"

#include <assert.h>
#include <string.h>

/* Where the text goes, and where names are found. */
struct ast_printer {
	struct buf *out;
	const struct cx *cx;
};

static void print(const struct ast_printer *pr, const struct ast_expr *e);

static const char *name_of(const struct ast_printer *pr, sym_t name)
{
	return sym_text(pr->cx->names, name);
}

/* Items between commas; a tuple of one keeps its comma. */
static void print_items(const struct ast_printer *pr, const struct ast_exprs *items, bool is_tuple)
{
	for (uint32_t i = 0; i < items->n; i++) {
		buf_text(pr->out, i ? ", " : "");
		print(pr, items->p[i]);
	}
	if (is_tuple && items->n == 1)
		buf_char(pr->out, ',');
}

/* The text inside double quotes: what would end or break the string is escaped. */
static void print_text(const struct ast_printer *pr, struct str text)
{
	for (uint32_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c == '"' || c == '\\')
			buf_printf(pr->out, "\\%c", c);
		else if (c < 0x20)
			buf_printf(pr->out, "\\x%02x", c);
		else
			buf_char(pr->out, (char)c);
	}
}

/* Parameters with `/` and `*` where their kinds change. */
static void print_params(const struct ast_printer *pr, const struct ast_params *params)
{
	bool keyword_only = false, positional_only = false;

	for (uint32_t i = 0; i < params->n; i++) {
		const struct ast_param *param = &params->p[i];

		buf_text(pr->out, i ? ", " : "");
		if (positional_only && !param->positional_only)
			buf_text(pr->out, "/, ");
		positional_only = param->positional_only;
		if (param->kind == AST_KEYWORD_ONLY && !keyword_only)
			buf_text(pr->out, "*, ");
		keyword_only |= param->kind == AST_KEYWORD_ONLY || param->kind == AST_STAR;
		buf_printf(pr->out, "%s%s",
		           param->kind == AST_STAR          ? "*"
		           : param->kind == AST_DOUBLE_STAR ? "**"
		                                            : "",
		           name_of(pr, param->name));
		if (param->annotation) {
			buf_text(pr->out, ": ");
			print(pr, param->annotation);
		}
		if (param->default_value) {
			buf_text(pr->out, "=");
			print(pr, param->default_value);
		}
	}
	if (positional_only)
		buf_text(pr->out, ", /");
}

/* Arguments as they were given: stars, keywords, plain values. */
static void print_args(const struct ast_printer *pr, const struct ast_args *args)
{
	for (uint32_t i = 0; i < args->n; i++) {
		const struct ast_arg *arg = &args->p[i];

		buf_text(pr->out, i ? ", " : "");
		buf_text(pr->out, arg->is_star ? "*" : arg->is_double_star ? "**" : "");
		if (arg->name)
			buf_printf(pr->out, "%s=", name_of(pr, arg->name));
		print(pr, arg->value);
	}
}

/* [value for target in iterable if condition], in the brackets of its collection. */
static void print_comprehension(const struct ast_printer *pr, const struct ast_expr *e)
{
	static const char *const open[] = { "[", "{", "{", "(" }, *const close[] = { "]", "}", "}",
		                                                                         ")" };
	enum ast_collection collection = e->as.comprehension.collection;

	buf_text(pr->out, open[collection]);
	if (e->as.comprehension.key) {
		print(pr, e->as.comprehension.key);
		buf_text(pr->out, ": ");
	}
	print(pr, e->as.comprehension.value);
	for (uint32_t i = 0; i < e->as.comprehension.clauses.n; i++) {
		const struct ast_for *clause = &e->as.comprehension.clauses.p[i];

		buf_text(pr->out, " for ");
		print(pr, clause->target);
		buf_text(pr->out, " in ");
		print(pr, clause->iterable);
		for (uint32_t j = 0; j < clause->conditions.n; j++) {
			buf_text(pr->out, " if ");
			print(pr, clause->conditions.p[j]);
		}
	}
	buf_text(pr->out, close[collection]);
}

/* An f-string in double quotes; plain pieces are escaped, fields are printed as expressions. */
static void print_fstring(const struct ast_printer *pr, const struct ast_expr *e)
{
	buf_text(pr->out, "f\"");
	for (uint32_t i = 0; i < e->as.pieces.n; i++) {
		const struct ast_piece *piece = &e->as.pieces.p[i];

		if (!piece->value) {
			print_text(pr, piece->text);
			continue;
		}
		buf_char(pr->out, '{');
		print(pr, piece->value);
		if (piece->source.n)
			buf_char(pr->out, '=');
		if (piece->conversion)
			buf_printf(pr->out, "!%c", piece->conversion);
		if (piece->format.n)
			buf_printf(pr->out, ":%.*s", STR_ARGS(piece->format));
		buf_char(pr->out, '}');
	}
	buf_char(pr->out, '"');
}

/* {key: value, **more} */
static void print_dict(const struct ast_printer *pr, const struct ast_pairs *pairs)
{
	buf_char(pr->out, '{');
	for (uint32_t i = 0; i < pairs->n; i++) {
		buf_text(pr->out, i ? ", " : "");
		if (pairs->p[i].key)
			print(pr, pairs->p[i].key);
		buf_text(pr->out, pairs->p[i].key ? ": " : "**");
		print(pr, pairs->p[i].value);
	}
	buf_char(pr->out, '}');
}

/* begin:end:step with absent parts left out. */
static void print_slice(const struct ast_printer *pr, const struct ast_expr *e)
{
	if (e->as.slice.begin)
		print(pr, e->as.slice.begin);
	buf_char(pr->out, ':');
	if (e->as.slice.end)
		print(pr, e->as.slice.end);
	if (e->as.slice.step) {
		buf_char(pr->out, ':');
		print(pr, e->as.slice.step);
	}
}

/* (a < b <= c): a chain stays one expression. */
static void print_compare(const struct ast_printer *pr, const struct ast_expr *e)
{
	buf_char(pr->out, '(');
	print(pr, e->as.compare.left);
	for (uint32_t i = 0; i < e->as.compare.rest.n; i++) {
		buf_printf(pr->out, " %s ", ast_compare_text(e->as.compare.rest.p[i].op));
		print(pr, e->as.compare.rest.p[i].right);
	}
	buf_char(pr->out, ')');
}

/* Unary, binary, logical and conditional expressions, each in its parentheses. */
static void print_operators(const struct ast_printer *pr, const struct ast_expr *e)
{
	static const char *const unary[] = { "-", "+", "not ", "~" };

	buf_char(pr->out, '(');
	if (e->kind == EX_UNARY) {
		buf_text(pr->out, unary[e->as.unary.op]);
		print(pr, e->as.unary.operand);
	} else if (e->kind == EX_TERNARY) {
		print(pr, e->as.ternary.then);
		buf_text(pr->out, " if ");
		print(pr, e->as.ternary.condition);
		buf_text(pr->out, " else ");
		print(pr, e->as.ternary.otherwise);
	} else {
		print(pr, e->as.binary.left);
		buf_printf(pr->out, " %s ",
		           e->kind == EX_AND  ? "and"
		           : e->kind == EX_OR ? "or"
		                              : ast_binary_text(e->as.binary.op));
		print(pr, e->as.binary.right);
	}
	buf_char(pr->out, ')');
}

/*
 * A float keeps a point or an exponent, so that it reads back as a float. A number beyond 64 bits
 * prints as another one: its digits are not kept.
 */
static void print_constant(const struct ast_printer *pr, const struct ast_expr *e)
{
	size_t begin = pr->out->n;

	if (e->kind == EX_BOOL)
		buf_text(pr->out, e->as.boolean ? "True" : "False");
	else if (e->kind == EX_INT && e->as.integer.is_huge)
		buf_text(pr->out, "99999999999999999999");
	else if (e->kind == EX_INT)
		buf_printf(pr->out, "%lld", (long long)e->as.integer.value);
	else if (e->kind == EX_FLOAT)
		buf_double(pr->out, e->as.number);
	else
		buf_text(pr->out, e->kind == EX_NONE ? "None" : "...");
	if (e->kind == EX_FLOAT && !strpbrk(pr->out->p + begin, ".en"))
		buf_text(pr->out, ".0");
}

/* One expression of any kind. */
static void print(const struct ast_printer *pr, const struct ast_expr *e)
{
	switch (e->kind) {
	case EX_BAD:
		buf_text(pr->out, "<bad>");
		break;
	case EX_NONE:
	case EX_BOOL:
	case EX_INT:
	case EX_FLOAT:
	case EX_ELLIPSIS:
		print_constant(pr, e);
		break;
	case EX_STRING:
		buf_char(pr->out, '"');
		print_text(pr, e->as.string);
		buf_char(pr->out, '"');
		break;
	case EX_FSTRING:
		print_fstring(pr, e);
		break;
	case EX_NAME:
		buf_text(pr->out, name_of(pr, e->as.name));
		break;
	case EX_TUPLE:
		buf_char(pr->out, '(');
		print_items(pr, &e->as.items, true);
		buf_char(pr->out, ')');
		break;
	case EX_LIST:
		buf_char(pr->out, '[');
		print_items(pr, &e->as.items, false);
		buf_char(pr->out, ']');
		break;
	case EX_SET:
		buf_char(pr->out, '{');
		print_items(pr, &e->as.items, false);
		buf_char(pr->out, '}');
		break;
	case EX_DICT:
		print_dict(pr, &e->as.pairs);
		break;
	case EX_UNARY:
	case EX_BINARY:
	case EX_AND:
	case EX_OR:
	case EX_TERNARY:
		print_operators(pr, e);
		break;
	case EX_COMPARE:
		print_compare(pr, e);
		break;
	case EX_LAMBDA:
		buf_text(pr->out, e->as.lambda.params.n ? "(lambda " : "(lambda");
		print_params(pr, &e->as.lambda.params);
		buf_text(pr->out, ": ");
		print(pr, e->as.lambda.body);
		buf_char(pr->out, ')');
		break;
	case EX_CALL:
		print(pr, e->as.call.callee);
		buf_char(pr->out, '(');
		print_args(pr, &e->as.call.args);
		buf_char(pr->out, ')');
		break;
	case EX_ATTRIBUTE:
		print(pr, e->as.attribute.object);
		buf_printf(pr->out, ".%s", name_of(pr, e->as.attribute.name));
		break;
	case EX_SUBSCRIPT:
		print(pr, e->as.subscript.object);
		buf_char(pr->out, '[');
		if (e->as.subscript.index->kind == EX_TUPLE && e->as.subscript.index->as.items.n)
			print_items(pr, &e->as.subscript.index->as.items, true);
		else
			print(pr, e->as.subscript.index);
		buf_char(pr->out, ']');
		break;
	case EX_SLICE:
		print_slice(pr, e);
		break;
	case EX_STARRED:
		buf_char(pr->out, '*');
		print(pr, e->as.starred);
		break;
	case EX_COMPREHENSION:
		print_comprehension(pr, e);
		break;
	case EX_WALRUS:
		buf_printf(pr->out, "(%s := ", name_of(pr, e->as.walrus.name));
		print(pr, e->as.walrus.value);
		buf_char(pr->out, ')');
		break;
	case EX_YIELD:
		buf_text(pr->out, "(yield ");
		if (e->as.starred)
			print(pr, e->as.starred);
		buf_char(pr->out, ')');
		break;
	}
}

/* Statements */

static void print_body(const struct ast_printer *pr, const struct ast_body *body);

/* The indentation of the statement that follows. */
static void tabs(const struct ast_printer *pr)
{
	for (int i = 0; i < pr->out->indent; i++)
		buf_char(pr->out, '\t');
}

/* `word expression:` and a block. */
static void print_block(const struct ast_printer *pr, const char *word, const struct ast_expr *head,
                        const struct ast_body *body)
{
	buf_text(pr->out, word);
	if (head)
		print(pr, head);
	buf_text(pr->out, ":\n");
	print_body(pr, body);
}

/* `else:` and the like, when the statement has it. */
static void print_tail(const struct ast_printer *pr, const char *word, const struct ast_body *body)
{
	if (body->n == 0)
		return;
	tabs(pr);
	print_block(pr, word, NULL, body);
}

/* The three forms of assignment: a = b = value, a += value, a: type = value. */
static void print_assign(const struct ast_printer *pr, const struct ast_stmt *st)
{
	for (uint32_t i = 0; st->kind == ST_ASSIGN && i < st->as.assign.targets.n; i++) {
		print(pr, st->as.assign.targets.p[i]);
		buf_text(pr->out, " = ");
	}
	if (st->kind == ST_ASSIGN) {
		print(pr, st->as.assign.value);
	} else if (st->kind == ST_AUGMENTED) {
		print(pr, st->as.augmented.target);
		buf_printf(pr->out, " %s= ", ast_binary_text(st->as.augmented.op));
		print(pr, st->as.augmented.value);
	} else {
		print(pr, st->as.annotated.target);
		buf_text(pr->out, ": ");
		print(pr, st->as.annotated.annotation);
		if (st->as.annotated.value) {
			buf_text(pr->out, " = ");
			print(pr, st->as.annotated.value);
		}
	}
	buf_char(pr->out, '\n');
}

/* All items on one line. */
static void print_with(const struct ast_printer *pr, const struct ast_stmt *st)
{
	buf_text(pr->out, "with ");
	for (uint32_t i = 0; i < st->as.with.items.n; i++) {
		const struct ast_with_item *item = &st->as.with.items.p[i];

		buf_text(pr->out, i ? ", " : "");
		print(pr, item->context);
		if (item->target) {
			buf_text(pr->out, " as ");
			print(pr, item->target);
		}
	}
	buf_text(pr->out, ":\n");
	print_body(pr, &st->as.with.body);
}

/* Decorators on lines of their own, then the head and the body. */
static void print_def(const struct ast_printer *pr, const struct ast_def *def)
{
	for (uint32_t i = 0; i < def->decorators.n; i++) {
		buf_char(pr->out, '@');
		print(pr, def->decorators.p[i]);
		buf_char(pr->out, '\n');
		tabs(pr);
	}
	buf_printf(pr->out, "def %s(", name_of(pr, def->name));
	print_params(pr, &def->params);
	buf_text(pr->out, "):\n");
	print_body(pr, &def->body);
}

/* One line a name: `from a import b, c` becomes two. */
static void print_imports(const struct ast_printer *pr, const struct ast_stmt *st)
{
	for (uint32_t i = 0; i < st->as.imports.n; i++) {
		const struct ast_import *import = &st->as.imports.p[i];

		if (i)
			tabs(pr);
		if (import->name)
			buf_printf(pr->out, "from %.*s import %s", STR_ARGS(import->module),
			           name_of(pr, import->name));
		else
			buf_printf(pr->out, "import %.*s", STR_ARGS(import->module));
		if (import->bound && import->bound != import->name)
			buf_printf(pr->out, " as %s", name_of(pr, import->bound));
		buf_char(pr->out, '\n');
	}
}

/* `return value` and the like; with an empty word the expression alone. */
static void print_word(const struct ast_printer *pr, const char *word, const struct ast_expr *e)
{
	buf_text(pr->out, word);
	if (e) {
		buf_text(pr->out, *word ? " " : "");
		print(pr, e);
	}
	buf_char(pr->out, '\n');
}

/* global and nonlocal. */
static void print_names(const struct ast_printer *pr, const struct ast_stmt *st)
{
	buf_text(pr->out, st->kind == ST_GLOBAL ? "global " : "nonlocal ");
	for (uint32_t i = 0; i < st->as.names.n; i++)
		buf_printf(pr->out, "%s%s", i ? ", " : "", name_of(pr, st->as.names.p[i]));
	buf_char(pr->out, '\n');
}

/* The arms in order, then else. */
static void print_if(const struct ast_printer *pr, const struct ast_stmt *st)
{
	for (uint32_t i = 0; i < st->as.if_.arms.n; i++) {
		if (i)
			tabs(pr);
		print_block(pr, i ? "elif " : "if ", st->as.if_.arms.p[i].condition,
		            &st->as.if_.arms.p[i].body);
	}
	print_tail(pr, "else", &st->as.if_.otherwise);
}

/* The else block of a loop too. */
static void print_for(const struct ast_printer *pr, const struct ast_stmt *st)
{
	buf_text(pr->out, "for ");
	print(pr, st->as.for_.target);
	print_block(pr, " in ", st->as.for_.iterable, &st->as.for_.body);
	print_tail(pr, "else", &st->as.for_.otherwise);
}

/* The bodies of all except clauses stand in one. */
static void print_try(const struct ast_printer *pr, const struct ast_stmt *st)
{
	print_block(pr, "try", NULL, &st->as.try_.body);
	print_tail(pr, "except", &st->as.try_.handlers);
	print_tail(pr, "else", &st->as.try_.otherwise);
	print_tail(pr, "finally", &st->as.try_.finally);
}

/* The message, when there is one. */
static void print_assert(const struct ast_printer *pr, const struct ast_stmt *st)
{
	buf_text(pr->out, "assert ");
	print(pr, st->as.assert_.condition);
	if (st->as.assert_.message) {
		buf_text(pr->out, ", ");
		print(pr, st->as.assert_.message);
	}
	buf_char(pr->out, '\n');
}

/* One statement of any kind behind the tabs of its block. */
static void print_stmt(const struct ast_printer *pr, const struct ast_stmt *st)
{
	tabs(pr);
	switch (st->kind) {
	case ST_EXPR:
		print_word(pr, "", st->as.expr);
		break;
	case ST_ASSIGN:
	case ST_AUGMENTED:
	case ST_ANNOTATED:
		print_assign(pr, st);
		break;
	case ST_IF:
		print_if(pr, st);
		break;
	case ST_FOR:
		print_for(pr, st);
		break;
	case ST_WHILE:
		print_block(pr, "while ", st->as.while_.condition, &st->as.while_.body);
		print_tail(pr, "else", &st->as.while_.otherwise);
		break;
	case ST_WITH:
		print_with(pr, st);
		break;
	case ST_DEF:
		print_def(pr, &st->as.def);
		break;
	case ST_CLASS:
		buf_printf(pr->out, "class %s: ...\n", name_of(pr, st->as.name));
		break;
	case ST_RETURN:
		print_word(pr, "return", st->as.expr);
		break;
	case ST_ASSERT:
		print_assert(pr, st);
		break;
	case ST_RAISE:
		print_word(pr, "raise", st->as.expr);
		break;
	case ST_TRY:
		print_try(pr, st);
		break;
	case ST_IMPORT:
		print_imports(pr, st);
		break;
	case ST_GLOBAL:
	case ST_NONLOCAL:
		print_names(pr, st);
		break;
	case ST_DELETE:
		buf_text(pr->out, "del ");
		print_items(pr, &st->as.targets, false);
		buf_char(pr->out, '\n');
		break;
	case ST_PASS:
		buf_text(pr->out, "pass\n");
		break;
	case ST_BREAK:
		buf_text(pr->out, "break\n");
		break;
	case ST_CONTINUE:
		buf_text(pr->out, "continue\n");
		break;
	}
}

/* A block, one tab deeper. */
static void print_body(const struct ast_printer *pr, const struct ast_body *body)
{
	pr->out->indent++;
	for (uint32_t i = 0; i < body->n; i++)
		print_stmt(pr, body->p[i]);
	pr->out->indent--;
}

void ast_print_expr(struct buf *out, const struct cx *cx, const struct ast_expr *e)
{
	struct ast_printer pr = { out, cx };

	print(&pr, e);
}

void ast_print(struct buf *out, const struct cx *cx, const struct ast_module *module)
{
	struct ast_printer pr = { out, cx };

	assert(out->indent == 0);
	for (uint32_t i = 0; i < module->body.n; i++)
		print_stmt(&pr, module->body.p[i]);
}
