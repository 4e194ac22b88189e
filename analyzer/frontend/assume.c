/*
 * --assume: what the user knows of sizes that are given at launch.
 *
 *     M % 8 == 0        M is a multiple of 8
 *     M <= 4096         also <, >=, >, and 64 <= M < 4096
 *
 * Symbols and scalar parameters of that name take the range and the divisor when they are made, so
 * that index arithmetic simplifies with them.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* An integer literal, with or without a sign. */
static bool literal_int(const struct ast_expr *e, int64_t *value)
{
	bool is_negative = e->kind == EX_UNARY && e->as.unary.op == AST_NEG;

	if (is_negative)
		e = e->as.unary.operand;
	if (e->kind != EX_INT || e->as.integer.is_huge)
		return false;
	*value = is_negative ? -e->as.integer.value : e->as.integer.value;
	return true;
}

/* `name % d == 0` */
static bool divisibility(const struct ast_expr *e, struct assumption *out)
{
	const struct ast_expr *left = e->as.compare.left;
	int64_t zero;

	if (e->as.compare.rest.n != 1 || left->kind != EX_BINARY || left->as.binary.op != AST_MOD ||
	    left->as.binary.left->kind != EX_NAME || e->as.compare.rest.p[0].op != AST_EQ)
		return false;
	out->name = left->as.binary.left->as.name;
	return literal_int(left->as.binary.right, &out->divisor) && out->divisor > 0 &&
	       literal_int(e->as.compare.rest.p[0].right, &zero) && zero == 0;
}

/* The comparison with its sides exchanged. */
static enum ast_compare mirrored(enum ast_compare op)
{
	return op == AST_LT   ? AST_GT
	       : op == AST_LE ? AST_GE
	       : op == AST_GT ? AST_LT
	       : op == AST_GE ? AST_LE
	                      : op;
}

/* `name op value` narrows the range; false for other operators. */
static bool narrow(struct assumption *out, enum ast_compare op, int64_t value)
{
	const int64_t limit = (int64_t)1 << 40;

	value = value > limit ? limit : value < -limit ? -limit : value;
	if (op == AST_LT || op == AST_LE || op == AST_EQ) {
		int64_t max = value - (op == AST_LT);

		out->max = max < out->max ? max : out->max;
	}
	if (op == AST_GT || op == AST_GE || op == AST_EQ) {
		int64_t min = value + (op == AST_GT);

		out->min = min > out->min ? min : out->min;
	}
	return op == AST_LT || op == AST_LE || op == AST_GT || op == AST_GE || op == AST_EQ;
}

/* Comparisons of one name with numbers. */
static bool bounds(const struct ast_expr *e, struct assumption *out)
{
	const struct ast_expr *left = e->as.compare.left;

	for (uint32_t i = 0; i < e->as.compare.rest.n; i++) {
		const struct ast_comparison *c = &e->as.compare.rest.p[i];
		bool is_left = left->kind == EX_NAME;
		const struct ast_expr *name = is_left ? left : c->right;
		int64_t value;

		if (name->kind != EX_NAME || (out->name && out->name != name->as.name) ||
		    !literal_int(is_left ? c->right : left, &value) ||
		    !narrow(out, is_left ? c->op : mirrored(c->op), value))
			return false;
		out->name = name->as.name;
		left = c->right;
	}
	return out->min <= out->max;
}

/* Every assumption must be readable, used or not. */
bool assume_read(struct eval *ev)
{
	for (uint32_t i = 0; i < ev->options->assumes.n; i++) {
		const char *text = ev->options->assumes.p[i];
		uint32_t file = source_add(ev->cx->arena, &ev->cx->sources, "--assume", str_of(text));
		struct ast_expr *e = parse_expression(ev->cx, file, ev->limits.max_calls);
		struct assumption found = { .min = INT32_MIN, .max = INT32_MAX, .divisor = 1 };
		struct assumption range = found;

		if (!e)
			return false;
		if (e->kind == EX_COMPARE && (divisibility(e, &found) || bounds(e, &range))) {
			vec_push(ev->cx->arena, &ev->assumptions, range.name ? range : found);
			continue;
		}
		diag_report(&ev->cx->diags, DIAG_E0209, e->span,
		            "an assumption compares one name with numbers");
		diag_help(&ev->cx->diags, "write --assume 'M%%8==0' or --assume '64<=M<=4096'");
		return false;
	}
	return true;
}

void assume_of_var(const struct eval *ev, struct var *var)
{
	assert(var->divisor >= 0);
	for (uint32_t i = 0; i < ev->assumptions.n; i++) {
		const struct assumption *a = &ev->assumptions.p[i];

		if (a->name != var->name)
			continue;
		var->min = a->min > var->min ? a->min : var->min;
		var->max = a->max < var->max ? a->max : var->max;
		if (a->divisor > 1)
			var->divisor = a->divisor;
	}
}
