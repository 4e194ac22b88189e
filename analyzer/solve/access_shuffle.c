/*
 * Conversions whose elements stay within their warps, as rounds of shuffles.
 *
 * In one round every lane of a warp gives one 32-bit word (one element of 32 bits, or several
 * smaller ones that both layouts keep together) and takes the word that another lane gives. The
 * words that change lanes are the edges of a bipartite multigraph from lanes to lanes; a round is a
 * matching, in which several lanes may take one given word. Three ways to split the edges into
 * rounds are tried, and the one of least cost is kept:
 *
 *     by source   round w moves what is word w of its giver: no lane chooses what it gives
 *     by target   round d moves what becomes word d of its taker: no lane chooses where it goes
 *     coloured    as many rounds as some lane has words to give or to take, the least there can be:
 *                 a bipartite multigraph has an edge colouring with as many colours as its largest
 *                 degree (D. König, "Über Graphen und ihre Anwendung auf Determinantentheorie und
 *                 Mengenlehre", Math. Ann. 77, 1916), found by alternating paths; where lanes share
 *                 a given word, first fit
 *
 * Nothing needs powers of two. Complexity: elements for the edges, edges times rounds to colour.
 */
#include "analyzer/solve/access.h"

#include <assert.h>
#include <string.h>

enum { MAX_WORDS = 128, MAX_PLACES = 1 << 17, LANES_A_WARP = 32, NONE = -1 };

static const double SHUFFLE_COST = 2.0, SET_COST = 0.5;

/* Word w of lane u becomes word d of lane v. */
struct edge {
	int16_t u, w, v, d;
	int16_t round;
};

struct shuffling {
	struct access_space *space;
	struct arena *arena;
	const struct conversion *conversion;
	int64_t bits, per, n_threads, n_from, n_to; /* words a thread */
	/* By element: where it is in `from`, for each replica. */
	const struct place *held;
	/* By thread and word of `to`: the thread and word of `from` that it comes from; NONE: empty. */
	int32_t *thread, *word;
	struct edge *edges; /* of one warp */
	uint32_t n_edges;
};

/* ---- where each word comes from ---- */

/* The replica to take an element from: the thread's own, else one of its warp; NULL: none. */
static const struct place *nearest(const struct shuffling *s, int64_t element, int64_t thread)
{
	int64_t n = s->conversion->from->n_replicas;
	const struct place *found = NULL;

	for (int64_t r = 0; r < n; r++) {
		const struct place *place = &s->held[element * n + r];

		if (place->thread == thread)
			return place;
		if (!found && place->thread / LANES_A_WARP == thread / LANES_A_WARP)
			found = place;
	}
	return found;
}

static int64_t n_elems_of(const struct layout *layout)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < layout->rank; d++)
		n *= layout->shape[d];
	return n;
}

static void find_held(struct shuffling *s)
{
	const struct layout *from = s->conversion->from;
	struct place *held =
		arena_array(s->arena, struct place, (size_t)(n_elems_of(from) * from->n_replicas));
	int64_t index[MAX_RANK] = { 0 }, at = 0;

	do
		for (int64_t r = 0; r < from->n_replicas; r++)
			held[at++] = layout_at(from, index, r);
	while (layout_next_index(from, index));
	s->held = held;
}

/* One element's place in `to`; false when its warp does not hold it, or words do not stay whole. */
static bool place_element(struct shuffling *s, int64_t element, struct place to)
{
	const struct place *from = nearest(s, element, to.thread);
	int64_t at;

	if (!from || from->slot % s->per != to.slot % s->per || to.thread >= s->n_threads)
		return false;
	at = to.thread * s->n_to + to.slot / s->per;
	if (s->thread[at] != NONE &&
	    (s->thread[at] != from->thread || s->word[at] != from->slot / s->per))
		return false;
	s->thread[at] = (int32_t)from->thread;
	s->word[at] = (int32_t)(from->slot / s->per);
	return true;
}

/* Fills thread and word for words of `per` elements. */
static bool find_sources(struct shuffling *s, int64_t per)
{
	const struct layout *to = s->conversion->to;
	int64_t index[MAX_RANK] = { 0 }, element = 0;

	s->per = per;
	s->n_from = (s->conversion->from->n_slots + per - 1) / per;
	s->n_to = (to->n_slots + per - 1) / per;
	memset(s->thread, 0xff, (size_t)(s->n_threads * to->n_slots) * sizeof(*s->thread));
	do {
		for (int64_t r = 0; r < to->n_replicas; r++)
			if (!place_element(s, element, layout_at(to, index, r)))
				return false;
		element++;
	} while (layout_next_index(to, index));
	return s->conversion->from->n_slots % per == 0 && to->n_slots % per == 0;
}

static void find_edges(struct shuffling *s, int64_t warp)
{
	s->n_edges = 0;
	for (int64_t lane = 0; lane < LANES_A_WARP; lane++)
		for (int64_t d = 0; d < s->n_to; d++) {
			int64_t thread = warp * LANES_A_WARP + lane, at = thread * s->n_to + d;

			if (s->thread[at] == NONE || s->thread[at] == thread)
				continue;
			s->edges[s->n_edges++] =
				(struct edge){ (int16_t)(s->thread[at] % LANES_A_WARP), (int16_t)s->word[at],
				               (int16_t)lane, (int16_t)d, NONE };
		}
}

/* ---- rounds ---- */

/* Which edge gives and takes, by lane and round. */
struct rounds {
	struct shuffling *s;
	int16_t gives[LANES_A_WARP][MAX_WORDS * 2], takes[LANES_A_WARP][MAX_WORDS * 2];
	int n;
};

static struct rounds *rounds_open(struct shuffling *s)
{
	struct rounds *rounds = arena_new(s->arena, struct rounds);

	rounds->s = s;
	memset(rounds->gives, 0xff, sizeof(rounds->gives));
	memset(rounds->takes, 0xff, sizeof(rounds->takes));
	return rounds;
}

static void put(struct rounds *rounds, int16_t e, int round)
{
	struct edge *edge = &rounds->s->edges[e];

	edge->round = (int16_t)round;
	rounds->gives[edge->u][round] = e;
	rounds->takes[edge->v][round] = e;
	if (round >= rounds->n)
		rounds->n = round + 1;
}

/* Can the edge go into the round: its taker is free, its giver free or gives the same word? */
static bool fits(const struct rounds *rounds, const struct edge *edge, int round)
{
	int16_t given = rounds->gives[edge->u][round];

	return rounds->takes[edge->v][round] == NONE &&
	       (given == NONE || rounds->s->edges[given].w == edge->w);
}

/* Round w, or d, for all; false when two meet. */
static bool by_word(struct shuffling *s, bool by_target)
{
	struct rounds *rounds = rounds_open(s);

	for (uint32_t e = 0; e < s->n_edges; e++) {
		int round = by_target ? s->edges[e].d : s->edges[e].w;

		if (!fits(rounds, &s->edges[e], round))
			return false;
		put(rounds, (int16_t)e, round);
	}
	return true;
}

static bool shares_words(const struct shuffling *s)
{
	bool given[LANES_A_WARP][MAX_WORDS] = { { false } };

	for (uint32_t e = 0; e < s->n_edges; e++) {
		if (given[s->edges[e].u][s->edges[e].w])
			return true;
		given[s->edges[e].u][s->edges[e].w] = true;
	}
	return false;
}

static int free_round(const int16_t *of_lane)
{
	int round = 0;

	while (of_lane[round] != NONE)
		round++;
	return round;
}

/* Swaps rounds a and b along the path that begins at the taker `v` with its edge of round a. */
static void flip(struct rounds *rounds, int16_t v, int a, int b)
{
	struct shuffling *s = rounds->s;
	int16_t *path = arena_array(s->arena, int16_t, s->n_edges + 1);
	uint32_t n = 0;
	int16_t e = rounds->takes[v][a];

	while (e != NONE) {
		bool at_taker = n % 2 == 0; /* came from a taker: go on at the giver */
		path[n++] = e;
		e = at_taker ? rounds->gives[s->edges[e].u][b] : rounds->takes[s->edges[e].v][a];
	}
	for (uint32_t i = 0; i < n; i++) {
		rounds->gives[s->edges[path[i]].u][s->edges[path[i]].round] = NONE;
		rounds->takes[s->edges[path[i]].v][s->edges[path[i]].round] = NONE;
	}
	for (uint32_t i = 0; i < n; i++)
		put(rounds, path[i], s->edges[path[i]].round == a ? b : a);
}

static void coloured(struct shuffling *s)
{
	struct rounds *rounds = rounds_open(s);
	bool shares = shares_words(s);

	for (uint32_t e = 0; e < s->n_edges; e++) {
		struct edge *edge = &s->edges[e];
		int round = 0;

		if (shares) {
			while (!fits(rounds, edge, round))
				round++;
		} else {
			int b = free_round(rounds->takes[edge->v]);

			round = free_round(rounds->gives[edge->u]);
			if (rounds->takes[edge->v][round] != NONE)
				flip(rounds, edge->v, round, b);
		}
		put(rounds, (int16_t)e, round);
	}
}

/* ---- the plan ---- */

static void plan_open(const struct shuffling *s, struct shuffle_plan *plan)
{
	size_t n = (size_t)(MAX_WORDS * 2 * s->n_threads);

	*plan = (struct shuffle_plan){ .per = s->per, .n_threads = s->n_threads, .n_words = s->n_to };
	plan->give = arena_array(s->arena, int16_t, n);
	plan->lane = arena_array(s->arena, int16_t, n);
	plan->take = arena_array(s->arena, int16_t, n);
	memset(plan->give, 0xff, n * sizeof(*plan->give));
	memset(plan->lane, 0xff, n * sizeof(*plan->lane));
	memset(plan->take, 0xff, n * sizeof(*plan->take));
}

static void keep_warp(const struct shuffling *s, int64_t warp, struct shuffle_plan *plan)
{
	for (uint32_t e = 0; e < s->n_edges; e++) {
		const struct edge *edge = &s->edges[e];
		int64_t at = edge->round * s->n_threads + warp * LANES_A_WARP;

		plan->give[at + edge->u] = edge->w;
		plan->lane[at + edge->v] = edge->u;
		plan->take[at + edge->v] = edge->d;
		if (edge->round >= plan->n_rounds)
			plan->n_rounds = edge->round + 1;
	}
}

/* Rounds in which nothing moves are left out. */
static void close_up(struct shuffle_plan *plan)
{
	int64_t n = 0, size = plan->n_threads;

	for (int64_t r = 0; r < plan->n_rounds; r++) {
		bool moves = false;

		for (int64_t t = 0; t < size; t++)
			moves |= plan->take[r * size + t] != NONE;
		if (!moves)
			continue;
		memmove(&plan->give[n * size], &plan->give[r * size], (size_t)size * sizeof(int16_t));
		memmove(&plan->lane[n * size], &plan->lane[r * size], (size_t)size * sizeof(int16_t));
		memmove(&plan->take[n * size], &plan->take[r * size], (size_t)size * sizeof(int16_t));
		n++;
	}
	plan->n_rounds = n;
}

int64_t shuffle_values(const int16_t *words, int64_t n, bool *has_none)
{
	bool seen[MAX_WORDS * 2] = { false };
	int64_t n_values = 0;

	*has_none = false;
	for (int64_t t = 0; t < n; t++) {
		*has_none |= words[t] == NONE;
		if (words[t] == NONE || seen[words[t]])
			continue;
		seen[words[t]] = true;
		n_values++;
	}
	return n_values;
}

/* Moves of words within threads: those of each word of `to`. */
static void plan_own(const struct shuffling *s, struct shuffle_plan *plan)
{
	size_t n = (size_t)(s->n_threads * s->n_to);

	plan->own = arena_array(s->arena, int16_t, n);
	for (int64_t d = 0; d < s->n_to; d++)
		for (int64_t t = 0; t < s->n_threads; t++) {
			int64_t at = t * s->n_to + d;

			plan->own[d * s->n_threads + t] =
				s->thread[at] == t ? (int16_t)s->word[at] : (int16_t)NONE;
		}
}

/* Sets that go with the shuffles: choices of what is given and where it goes. */
static void count_sets(struct shuffle_plan *plan)
{
	bool none;

	plan->n_sets = 0;
	for (int64_t r = 0; r < plan->n_rounds; r++) {
		int64_t at = r * plan->n_threads,
				n = shuffle_values(&plan->give[at], plan->n_threads, &none);

		plan->n_sets += n > 1 ? n * plan->per : 0;
		n = shuffle_values(&plan->take[at], plan->n_threads, &none);
		plan->n_sets += n > 1 || none ? n * plan->per : 0;
	}
	for (int64_t d = 0; d < plan->n_words; d++)
		plan->n_sets +=
			shuffle_values(&plan->own[d * plan->n_threads], plan->n_threads, &none) * plan->per;
	plan->cost = SHUFFLE_COST * (double)plan->n_rounds + SET_COST * (double)plan->n_sets;
}

enum way { BY_SOURCE, BY_TARGET, COLOURED, N_WAYS };

static bool plan_way(struct shuffling *s, enum way way, struct shuffle_plan *plan)
{
	plan_open(s, plan);
	for (int64_t warp = 0; warp < s->n_threads / LANES_A_WARP; warp++) {
		find_edges(s, warp);
		if (way == COLOURED)
			coloured(s);
		else if (!by_word(s, way == BY_TARGET))
			return false;
		keep_warp(s, warp, plan);
	}
	close_up(plan);
	plan_own(s, plan);
	count_sets(plan);
	return true;
}

/* Whole registers where both sides keep them together, else elements; false when they leave their
 * warps. */
static bool open_words(struct shuffling *s)
{
	return find_sources(s, 32 / s->bits) || (s->bits < 32 && find_sources(s, 1));
}

bool access_shuffle(struct access_space *space, const struct conversion *conversion,
                    struct shuffle_plan *plan)
{
	const struct layout *from = conversion->from, *to = conversion->to;
	struct shuffling s = { .space = space,
		                   .arena = space->cx->arena,
		                   .conversion = conversion,
		                   .bits = dtype_bits(conversion->buffer->type),
		                   .n_threads = space->n_threads };
	struct shuffle_plan tried;
	bool found = false;

	if (space->n_threads % LANES_A_WARP != 0 || s.bits < 8 || s.bits > 32 ||
	    from->n_slots > MAX_WORDS || to->n_slots > MAX_WORDS ||
	    n_elems_of(from) > MAX_PLACES / (from->n_replicas + to->n_replicas))
		return false;
	find_held(&s);
	s.thread = arena_array(s.arena, int32_t, (size_t)(s.n_threads * to->n_slots));
	s.word = arena_array(s.arena, int32_t, (size_t)(s.n_threads * to->n_slots));
	if (!open_words(&s))
		return false;
	s.edges = arena_array(s.arena, struct edge, (size_t)(LANES_A_WARP * s.n_to));
	for (int way = 0; way < N_WAYS; way++) {
		if (!plan_way(&s, (enum way)way, &tried) || (found && tried.cost >= plan->cost))
			continue;
		*plan = tried;
		found = true;
	}
	plan->cost *= (double)(space->n_threads / LANES_A_WARP);
	return found;
}
