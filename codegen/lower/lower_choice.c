/*
 * Reads that are made only where their value is wanted.
 *
 *     while i < 64 and S[i] < x:        ld S_s[0] <- S[i*4] bytes=4 if i < 64
 *     y = S[i - 1] if i > 0 else 0      ld S_s[0] <- S[i*4 - 4] bytes=4 if i > 0
 *
 * Global memory needs none of it: it is read under its bounds anyway. Nor do reads whose index is
 * inside for certain.
 */
#include "codegen/lower/lower_internal.h"

static void note_shared(void *user, const struct expr *e)
{
	*(bool *)user |= e->kind == EXPR_LOAD && e->as.buffer->scope == SCOPE_SHARED;
}

static const struct expr *part_under(const struct choice_lowering *c, const struct expr *part,
                                     const struct expr *condition)
{
	const struct expr *before = *c->condition, *value;

	*c->condition = expr_and(c->l->pool, before, condition);
	value = c->value(c->user, part);
	*c->condition = before;
	return value;
}

const struct expr *lower_choice(const struct choice_lowering *c, const struct expr *choice)
{
	struct expr_pool *pool = c->l->pool;
	const struct expr *first, *not_first, *then, *otherwise;
	bool reads = false;

	for (uint32_t i = 1; i < choice->n_args; i++)
		expr_walk(choice->args[i], note_shared, &reads);
	if (!reads)
		return NULL;
	first = c->value(c->user, choice->args[0]);
	if (!first)
		return NULL;
	not_first = expr_unary(pool, UN_NOT, first);
	if (choice->kind == EXPR_BINARY) {
		then = part_under(c, choice->args[1], choice->as.binary == BIN_AND ? first : not_first);
		return then ? expr_binary(pool, choice->as.binary, first, then) : NULL;
	}
	then = part_under(c, choice->args[1], first);
	otherwise = part_under(c, choice->args[2], not_first);
	return then && otherwise ? expr_select(pool, first, then, otherwise) : NULL;
}

const struct expr *lower_read_predicate(const struct buffer *buffer,
                                        const struct expr *const *index,
                                        const struct expr *condition)
{
	int64_t min, max;

	if (buffer->scope != SCOPE_SHARED)
		return NULL;
	for (uint32_t d = 0; d < buffer->rank; d++)
		if (!expr_range(index[d], &min, &max) || min < 0 || max >= buffer_extent(buffer, d))
			return condition;
	return NULL;
}
