/*
 * Conversions within warps: rounds of shuffles.
 *
 *     set x_give[0] = x[2] if lanes 0..15            what each lane gives, where that differs
 *     set x_give[0] = x[0] if lanes 16..31
 *     shfl.idx x_take[0] <- x_give[0], tid % 32 ^ 16
 *     set x_c[0] = x_take[0] if ...                  where it goes, where that differs
 *
 * Which lanes do what comes from access_shuffle. A set of lanes is one bit a lane, the same in all
 * warps, or else a table over the threads.
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

struct shuffler {
	struct lower *l;
	struct shuffle_plan plan;
	const struct wreg *from, *to, *give, *take; /* give and take hold one word */
	const struct expr *tid, *lane;
};

/* ---- functions of the lane ---- */

static bool is_same_in_warps(const int16_t *values, int64_t n)
{
	for (int64_t t = 32; t < n; t++)
		if (values[t] != values[t % 32])
			return false;
	return true;
}

static const struct expr *table_of(struct shuffler *s, const int16_t *values)
{
	int64_t n = is_same_in_warps(values, s->plan.n_threads) ? 32 : s->plan.n_threads;
	int64_t *numbers = arena_array(s->l->cx->arena, int64_t, (size_t)n);

	for (int64_t t = 0; t < n; t++)
		numbers[t] = values[t] < 0 ? 0 : values[t];
	return expr_table(s->l->pool, expr_new_table(s->l->pool, numbers, (uint64_t)n),
	                  n == 32 ? s->lane : s->tid);
}

/* The lane that each reads: lane ^ constant, lane + constant, or a table; any lane where none. */
static const struct expr *lane_expr(struct shuffler *s, const int16_t *lanes)
{
	struct expr_pool *pool = s->l->pool;

	for (int64_t x = 0; x < 64; x++) {
		bool fits = true;

		for (int64_t t = 0; t < s->plan.n_threads && fits; t++)
			fits = lanes[t] < 0 || lanes[t] == (x < 32 ? t % 32 ^ x : (t % 32 + x - 32) % 32);
		if (fits && x < 32)
			return expr_binary(pool, BIN_BITXOR, s->lane, expr_int(pool, x));
		if (fits)
			return expr_mod_int(pool, expr_add_int(pool, s->lane, x - 32), 32);
	}
	return table_of(s, lanes);
}

/* The threads whose word is `word`: NULL when all are. */
static const struct expr *threads_with(struct shuffler *s, const int16_t *words, int16_t word)
{
	struct expr_pool *pool = s->l->pool;
	int64_t n = s->plan.n_threads, n_with = 0;
	int16_t *is_one = arena_array(s->l->cx->arena, int16_t, (size_t)n);
	uint32_t bits = 0;

	for (int64_t t = 0; t < n; t++) {
		is_one[t] = words[t] == word;
		n_with += is_one[t];
		bits |= t < 32 ? (uint32_t)is_one[t] << t : 0;
	}
	if (n_with == n)
		return NULL;
	if (!is_same_in_warps(is_one, n))
		return expr_binary(pool, BIN_NE, table_of(s, is_one), expr_int(pool, 0));
	const struct expr *shifted = expr_binary(pool, BIN_SHR, expr_int(pool, (int32_t)bits), s->lane);
	return expr_binary(pool, BIN_NE, expr_binary(pool, BIN_BITAND, shifted, expr_int(pool, 1)),
	                   expr_int(pool, 0));
}

/* ---- words ---- */

static void set_word(struct shuffler *s, struct wregs to, struct wregs from,
                     const struct expr *predicate)
{
	struct expr_pool *pool = s->l->pool;

	for (int64_t i = 0; i < s->plan.per; i++)
		lower_set(s->l, to.reg, expr_add_int(pool, to.slot, i),
		          expr_reg(pool, from.reg, from.reg->type, expr_add_int(pool, from.slot, i)),
		          predicate);
}

static struct wregs word_of(struct shuffler *s, const struct wreg *reg, int64_t word)
{
	return (struct wregs){ reg, expr_int(s->l->pool, word * s->plan.per), s->plan.per };
}

/* The next word above `last` that a thread has; -1 after the last. */
static int16_t next_word(const int16_t *words, int64_t n, int16_t last)
{
	int16_t found = -1;

	for (int64_t t = 0; t < n; t++)
		if (words[t] > last && (found < 0 || words[t] < found))
			found = words[t];
	return found;
}

/* What the lanes give: one word of all, or the one that each chooses. */
static struct wregs given(struct shuffler *s, const int16_t *words)
{
	int64_t n = s->plan.n_threads;
	int16_t first = next_word(words, n, -1);
	bool none;

	if (shuffle_values(words, n, &none) == 1)
		return word_of(s, s->from, first);
	for (int16_t word = first; word >= 0; word = next_word(words, n, word))
		set_word(s, word_of(s, s->give, 0), word_of(s, s->from, word),
		         threads_with(s, words, word));
	return word_of(s, s->give, 0);
}

static void shuffle_round(struct shuffler *s, int64_t round)
{
	int64_t n = s->plan.n_threads, at = round * n;
	const int16_t *take = &s->plan.take[at];
	struct wregs give = given(s, &s->plan.give[at]);
	int16_t first = next_word(take, n, -1);
	bool none, all = shuffle_values(take, n, &none) == 1 && !none;
	struct winst *inst = lower_inst(s->l, WOP_shfl_idx);

	inst->as.shfl_idx.dst = all ? word_of(s, s->to, first) : word_of(s, s->take, 0);
	inst->as.shfl_idx.src = give;
	inst->as.shfl_idx.lane = lane_expr(s, &s->plan.lane[at]);
	for (int16_t word = first; !all && word >= 0; word = next_word(take, n, word))
		set_word(s, word_of(s, s->to, word), word_of(s, s->take, 0), threads_with(s, take, word));
}

/* Words that stay in their threads. */
static void move_own(struct shuffler *s)
{
	int64_t n = s->plan.n_threads;

	for (int64_t d = 0; d < s->plan.n_words; d++) {
		const int16_t *own = &s->plan.own[d * n];

		for (int16_t word = next_word(own, n, -1); word >= 0; word = next_word(own, n, word))
			set_word(s, word_of(s, s->to, d), word_of(s, s->from, word),
			         threads_with(s, own, word));
	}
}

static const struct wreg *word_reg(struct shuffler *s, const char *suffix)
{
	const char *name =
		arena_printf(s->l->cx->arena, "%s_%s", sym_text(s->l->cx->names, s->from->name), suffix);

	return warp_new_reg(s->l->warp, intern_text(s->l->cx->names, name), s->from->type, s->plan.per);
}

bool lower_shuffles(struct lower *l, const struct conversion *conversion, const struct wreg *from,
                    const struct wreg *to)
{
	struct shuffler s = { .l = l, .from = from, .to = to };

	if (!access_shuffle(&l->space, conversion, &s.plan))
		BUG("a conversion by shuffles leaves its warps");
	assert(s.plan.n_rounds == conversion->n_rounds);
	s.tid = expr_of_var(l->pool, l->space.tid);
	s.lane = expr_mod_int(l->pool, s.tid, 32);
	s.give = word_reg(&s, "give");
	s.take = word_reg(&s, "take");
	move_own(&s);
	for (int64_t round = 0; round < s.plan.n_rounds; round++)
		shuffle_round(&s, round);
	return true;
}
