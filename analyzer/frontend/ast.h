/*
 * ast: the syntax tree of a kernel file, as the parser makes it and the evaluator walks it.
 *
 * Every node has the span of its text. `height` is the longest path down from a node; the parser
 * keeps it below AST_MAX_HEIGHT, so that walks may recurse. Targets of assignments are expressions
 * (NAME, ATTRIBUTE, SUBSCRIPT, TUPLE, LIST, STARRED). Classes keep only their name: their bodies
 * are parsed and dropped.
 */
#ifndef TL_FRONTEND_AST_H
#define TL_FRONTEND_AST_H

#include "base/diag.h"

enum { AST_MAX_HEIGHT = 1000 };

enum ast_binary {
	AST_ADD,
	AST_SUB,
	AST_MUL,
	AST_DIV,
	AST_FLOORDIV,
	AST_MOD,
	AST_POW,
	AST_MATMUL,
	AST_BITAND,
	AST_BITOR,
	AST_BITXOR,
	AST_SHL,
	AST_SHR
};
enum ast_compare {
	AST_EQ,
	AST_NE,
	AST_LT,
	AST_LE,
	AST_GT,
	AST_GE,
	AST_IN,
	AST_NOT_IN,
	AST_IS,
	AST_IS_NOT
};
enum ast_unary { AST_NEG, AST_POS, AST_NOT, AST_INVERT };
enum ast_collection { AST_LIST_OF, AST_SET_OF, AST_DICT_OF, AST_GENERATOR_OF };

/* "+", "not in": as they are written. */
const char *ast_binary_text(enum ast_binary op);
const char *ast_compare_text(enum ast_compare op);

enum ast_expr_kind {
	EX_BAD, /* stands where a syntax error was reported */
	EX_NONE,
	EX_BOOL,
	EX_INT,
	EX_FLOAT,
	EX_STRING,
	EX_FSTRING,
	EX_ELLIPSIS,
	EX_NAME,
	EX_TUPLE,
	EX_LIST,
	EX_SET,
	EX_DICT,
	EX_UNARY,
	EX_BINARY,
	EX_AND, /* two operands; the right one is evaluated only when needed */
	EX_OR,
	EX_COMPARE,
	EX_TERNARY,
	EX_LAMBDA,
	EX_CALL,
	EX_ATTRIBUTE,
	EX_SUBSCRIPT,
	EX_SLICE,
	EX_STARRED,
	EX_COMPREHENSION,
	EX_WALRUS,
	EX_YIELD, /* yield and await: parsed, never evaluated */
};

struct ast_expr;
struct ast_stmt;

struct ast_exprs {
	struct ast_expr **p;
	uint32_t n, cap;
};

struct ast_body {
	struct ast_stmt **p;
	uint32_t n, cap;
};

/* f(value), f(name=value), f(*value), f(**value) */
struct ast_arg {
	sym_t name; /* 0: positional */
	bool is_star, is_double_star;
	struct ast_expr *value;
	struct span span; /* of name and value together */
};

struct ast_args {
	struct ast_arg *p;
	uint32_t n, cap;
};

enum ast_param_kind { AST_PLAIN, AST_KEYWORD_ONLY, AST_STAR, AST_DOUBLE_STAR };

struct ast_param {
	sym_t name;
	enum ast_param_kind kind;
	bool positional_only;
	struct ast_expr *annotation, *default_value; /* NULL when absent */
	struct span span;                            /* of the name */
};

struct ast_params {
	struct ast_param *p;
	uint32_t n, cap;
};

/* key: value, or **value with key NULL */
struct ast_pair {
	struct ast_expr *key, *value;
};

struct ast_pairs {
	struct ast_pair *p;
	uint32_t n, cap;
};

struct ast_comparison {
	enum ast_compare op;
	struct ast_expr *right;
};

/* `for target in iterable if condition...` of a comprehension */
struct ast_for {
	struct ast_expr *target, *iterable;
	struct ast_exprs conditions;
};

/* A piece of an f-string: text, or an expression with its conversion and format. */
struct ast_piece {
	struct str text; /* used when value is NULL */
	struct ast_expr *value;
	char conversion; /* 'r', 's', 'a' or 0 */
	struct str format;
	struct str source; /* text of `{value=}`, printed before the value */
};

struct ast_expr {
	enum ast_expr_kind kind;
	uint32_t height;
	struct span span;
	union {
		bool boolean;
		struct {
			int64_t value;
			bool is_huge;
		} integer;
		double number;
		struct str string;
		struct {
			struct ast_piece *p;
			uint32_t n, cap;
		} pieces;
		sym_t name;
		struct ast_exprs items; /* TUPLE, LIST, SET */
		struct ast_pairs pairs; /* DICT */
		struct {
			enum ast_unary op;
			struct ast_expr *operand;
		} unary;
		struct {
			enum ast_binary op;
			struct ast_expr *left, *right;
			struct span sign;
		} binary; /* AND and OR too, without `op` */
		struct {
			struct ast_expr *left;
			struct {
				struct ast_comparison *p;
				uint32_t n, cap;
			} rest;
		} compare;
		struct {
			struct ast_expr *condition, *then, *otherwise;
		} ternary;
		struct {
			struct ast_params params;
			struct ast_expr *body;
		} lambda;
		struct {
			struct ast_expr *callee;
			struct ast_args args;
		} call;
		struct {
			struct ast_expr *object;
			sym_t name;
			struct span name_span;
		} attribute;
		struct {
			struct ast_expr *object, *index; /* index: a TUPLE when there are several */
		} subscript;
		struct {
			struct ast_expr *begin, *end, *step; /* NULL when absent */
		} slice;
		struct ast_expr *starred; /* STARRED, YIELD (may be NULL there) */
		struct {
			enum ast_collection collection;
			struct ast_expr *key, *value; /* key: DICT_OF only */
			struct {
				struct ast_for *p;
				uint32_t n, cap;
			} clauses;
		} comprehension;
		struct {
			sym_t name;
			struct ast_expr *value;
		} walrus;
	} as;
};

enum ast_stmt_kind {
	ST_EXPR,
	ST_ASSIGN,
	ST_AUGMENTED,
	ST_ANNOTATED,
	ST_IF,
	ST_FOR,
	ST_WHILE,
	ST_WITH,
	ST_DEF,
	ST_CLASS,
	ST_RETURN,
	ST_ASSERT,
	ST_RAISE,
	ST_TRY,
	ST_IMPORT,
	ST_GLOBAL,
	ST_NONLOCAL,
	ST_DELETE,
	ST_PASS,
	ST_BREAK,
	ST_CONTINUE,
};

struct ast_arm {
	struct ast_expr *condition;
	struct ast_body body;
};

struct ast_with_item {
	struct ast_expr *context, *target; /* target may be NULL */
};

/* `import module as bound` (name 0), or `from module import name as bound` (name "*": all) */
struct ast_import {
	struct str module; /* dots included; relative imports begin with dots */
	sym_t name, bound;
	struct span span;
};

struct ast_def {
	sym_t name;
	struct span name_span;
	struct ast_params params;
	struct ast_exprs decorators;
	struct ast_body body;
	bool is_generator;
	struct ast_stmt *parent; /* the DEF around it, NULL at module level or in a class */
	bool in_class;
};

struct ast_stmt {
	enum ast_stmt_kind kind;
	struct span span; /* of the whole statement; of a compound one, of its head */
	union {
		struct ast_expr *expr; /* EXPR, RETURN, RAISE (both may be NULL) */
		struct {
			struct ast_exprs targets; /* a = b = value has two */
			struct ast_expr *value;
		} assign;
		struct {
			struct ast_expr *target, *value;
			enum ast_binary op;
		} augmented;
		struct {
			struct ast_expr *target, *annotation, *value; /* value may be NULL */
		} annotated;
		struct {
			struct {
				struct ast_arm *p;
				uint32_t n, cap;
			} arms;
			struct ast_body otherwise;
		} if_;
		struct {
			struct ast_expr *target, *iterable;
			struct ast_body body, otherwise;
		} for_;
		struct {
			struct ast_expr *condition;
			struct ast_body body, otherwise;
		} while_;
		struct {
			struct {
				struct ast_with_item *p;
				uint32_t n, cap;
			} items;
			struct ast_body body;
		} with;
		struct ast_def def;
		sym_t name; /* CLASS */
		struct {
			struct ast_expr *condition, *message;
		} assert_;
		struct {
			struct ast_body body;
			struct ast_body handlers; /* the bodies of all except clauses, one after the other */
			struct ast_body otherwise, finally;
		} try_;
		struct {
			struct ast_import *p;
			uint32_t n, cap;
		} imports;
		struct {
			sym_t *p;
			uint32_t n, cap;
		} names;
		struct ast_exprs targets; /* DELETE */
	} as;
};

struct ast_module {
	uint32_t file;
	struct ast_body body;
	struct {
		struct ast_stmt **p;
		uint32_t n, cap;
	} defs; /* every DEF of the file, in text order */
};

/*
 * Parses file number `file`. NULL with one diagnostic (E01..) when it is not Python.
 * `max_depth` bounds the nesting of blocks and brackets.
 */
struct ast_module *parse_file(struct cx *cx, uint32_t file, uint32_t max_depth);
/* Parses the whole text of `file` as one expression (values of --set). */
struct ast_expr *parse_expression(struct cx *cx, uint32_t file, uint32_t max_depth);

/* Python text in which every operator has its parentheses; it parses to the same tree. */
void ast_print(struct buf *out, const struct cx *cx, const struct ast_module *module);
void ast_print_expr(struct buf *out, const struct cx *cx, const struct ast_expr *e);

#endif
