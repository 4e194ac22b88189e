/*
 * Two runs of one kernel, site by site.
 *
 * Sites have no names that last: lines move, accesses come and go. Two rounds find partners: first
 * equal launch, buffer, instruction and width, then equal launch, buffer and direction; within a
 * group an alignment in program order decides. What stays alone is new or removed. A pair is judged
 * by its excess wavefronts; the largest growth comes first.
 *
 *     before              now                   answer
 *     ldmatrix As  768    ldmatrix As  1536     regressed by 768
 *     st.shared Cs  64                          removed
 */
#include "db/compare.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *site_status_text(enum site_status status)
{
	switch (status) {
	case SITE_REGRESSED:
		return "regressed";
	case SITE_IMPROVED:
		return "improved";
	case SITE_SAME:
		return "same";
	case SITE_NEW:
		return "new";
	case SITE_REMOVED:
		return "removed";
	case SITE_INCOMPARABLE:
		return "incomparable";
	case N_SITE_STATUSES:
		break;
	}
	BUG("site status %d", (int)status);
}

/* ---- may they be compared? ---- */

/* Adds a reason when two texts are not equal; an empty one reads "none". */
static void differ(struct arena *arena, struct text_list *reasons, const char *what,
                   const char *before, const char *after)
{
	if (strcmp(before, after) != 0)
		vec_push(arena, &reasons->items,
		         arena_printf(arena, "%s: %s before, %s now", what, before[0] ? before : "none",
		                      after[0] ? after : "none"));
}

/* The next `"name": value` of a flat view of a JSON object whose keys are sorted; false at its end.
 * `*at` starts at "{". */
static bool next_param(struct arena *arena, const char **at, const char **name, const char **value)
{
	const char *begin = *at + strspn(*at, "{, "), *end = begin, *colon = NULL;
	bool in_text = false;

	for (int depth = 0; *end && (in_text || depth > 0 || !strchr(",}", *end)); end++) {
		if (*end == '"')
			in_text = !in_text;
		else if (in_text && *end == '\\' && end[1])
			end++;
		else if (!in_text && !colon && *end == ':')
			colon = end;
		else if (!in_text)
			depth += (strchr("[{", *end) != NULL) - (strchr("]}", *end) != NULL);
	}
	*at = end;
	if (!colon)
		return false;
	*name = arena_strndup(arena, begin + 1, (size_t)(colon - begin) - 2);
	*value = arena_strndup(arena, colon + 2, (size_t)(end - colon) - 2);
	return true;
}

/* One line for each parameter that is not equal. */
static void differ_params(struct arena *arena, struct text_list *reasons, const char *before,
                          const char *after)
{
	const char *old_name, *old_value, *new_name, *new_value;
	bool has_old = next_param(arena, &before, &old_name, &old_value);
	bool has_new = next_param(arena, &after, &new_name, &new_value);

	while (has_old || has_new) {
		int order = !has_old ? 1 : !has_new ? -1 : strcmp(old_name, new_name);

		differ(arena, reasons, order > 0 ? new_name : old_name, order > 0 ? "" : old_value,
		       order < 0 ? "" : new_value);
		if (order <= 0)
			has_old = next_param(arena, &before, &old_name, &old_value);
		if (order >= 0)
			has_new = next_param(arena, &after, &new_name, &new_value);
	}
}

/* Threads, grid and way of counting of a launch. */
static const char *launch_text(struct arena *arena, const struct record_launch *launch)
{
	struct buf text = { 0 };

	buf_printf(&text, "%lld threads, grid (", (long long)launch->threads);
	for (int i = 0; i < 3; i++) {
		buf_text(&text, i > 0 ? ", " : "");
		if (launch->grid[i] < 0)
			buf_char(&text, '?');
		else
			buf_printf(&text, "%lld", (long long)launch->grid[i]);
	}
	buf_printf(&text, "), counted over the %s", launch->counted_grid ? "grid" : "block");
	return buf_keep(&text, arena);
}

/* How a launch is cut into threads may change between versions of a kernel; only the way of
 * counting must not. */
static void differ_launches(struct arena *arena, struct text_list *reasons,
                            const struct run_record *before, const struct run_record *after)
{
	if (before->launches.n != after->launches.n) {
		vec_push(arena, &reasons->items,
		         arena_printf(arena, "launches: %u before, %u now", before->launches.n,
		                      after->launches.n));
		return;
	}
	for (uint32_t i = 0; i < before->launches.n; i++) {
		const struct record_launch *old = &before->launches.p[i], *new = &after->launches.p[i];

		differ(arena, reasons, arena_printf(arena, "counting of launch %u", i),
		       old->counted_grid ? "grid" : "block", new->counted_grid ? "grid" : "block");
	}
}

/*
 * Another kernel is a reason by itself; the others are all named, so that one message says
 * everything.
 */
bool runs_comparable(struct arena *arena, const struct run_record *before,
                     const struct run_record *after, struct text_list *reasons)
{
	*reasons = (struct text_list){ 0 };
	differ(arena, reasons, "kernel", before->kernel, after->kernel);
	differ(arena, reasons, "factory", before->factory, after->factory);
	if (reasons->items.n > 0)
		return false;
	differ(arena, reasons, "target", before->target, after->target);
	differ_params(arena, reasons, before->params, after->params);
	differ_launches(arena, reasons, before, after);
	return reasons->items.n == 0;
}

/* ---- matching sites ---- */

/* Which sites of a run still lack a partner. */
struct side {
	const struct run_record *run;
	bool *matched; /* by site */
};

/* Indices of sites that one key picks, in program order. */
struct picked {
	vec_of(uint32_t) items;
};

typedef bool same_key(const struct record_site *a, const struct record_site *b);

/* The key of the first round. */
static bool same_access(const struct record_site *a, const struct record_site *b)
{
	return a->launch == b->launch && a->bytes_per_thread == b->bytes_per_thread &&
	       strcmp(a->buffer, b->buffer) == 0 && strcmp(a->instruction, b->instruction) == 0;
}

/* Does the access write shared memory? */
static bool is_store(const struct record_site *site)
{
	return strncmp(site->instruction, "st", 2) == 0 ||
	       strncmp(site->instruction, "cp.async", 8) == 0;
}

/* The key of the second round, for accesses whose instruction or width changed. */
static bool same_direction(const struct record_site *a, const struct record_site *b)
{
	return a->launch == b->launch && strcmp(a->buffer, b->buffer) == 0 &&
	       is_store(a) == is_store(b);
}

/* The unmatched sites of one side that have the key of `like`. */
static struct picked pick(struct arena *arena, const struct side *side,
                          const struct record_site *like, same_key *same)
{
	struct picked picked = { 0 };

	for (uint32_t i = 0; i < side->run->sites.n; i++)
		if (!side->matched[i] && same(&side->run->sites.p[i], like))
			vec_push(arena, &picked.items, i);
	return picked;
}

/* Was nothing about the access changed but its line? */
static bool same_figures(const struct record_site *a, const struct record_site *b)
{
	return a->executions == b->executions && a->wavefronts == b->wavefronts && a->ideal == b->ideal;
}

/*
 * Which of the longer list's entries stay alone: an alignment in order that matches every entry of
 * the shorter list and, among those, the most with equal figures. best[i][j] is that number for the
 * first i and j entries; the caller walks back.
 */
struct alignment {
	const struct side *before, *after;
	const struct picked *old, *new;
	uint32_t *best; /* (n_old + 1) x (n_new + 1) */
};

/* A match outweighs equal figures as long as a group has fewer than a thousand sites. */
enum { MATCHED_SCORE = 1000, EQUAL_SCORE = 1 };

/* The cell of the first i old and j new entries. */
static uint32_t *best_at(const struct alignment *alignment, uint32_t i, uint32_t j)
{
	assert(i <= alignment->old->items.n && j <= alignment->new->items.n);
	return &alignment->best[(size_t)i * (alignment->new->items.n + 1) + j];
}

/* What matching two entries is worth: any match outweighs all equal figures together. */
static uint32_t pair_score(const struct alignment *alignment, uint32_t i, uint32_t j)
{
	const struct record_site *a = &alignment->before->run->sites.p[alignment->old->items.p[i]];
	const struct record_site *b = &alignment->after->run->sites.p[alignment->new->items.p[j]];

	return MATCHED_SCORE + (same_figures(a, b) ? EQUAL_SCORE : 0);
}

/* Longest-common-subsequence recurrence over the two lists. */
static void fill_best(const struct alignment *alignment)
{
	for (uint32_t i = 1; i <= alignment->old->items.n; i++) {
		for (uint32_t j = 1; j <= alignment->new->items.n; j++) {
			uint32_t score =
				*best_at(alignment, i - 1, j - 1) + pair_score(alignment, i - 1, j - 1);
			uint32_t skip_old = *best_at(alignment, i - 1, j),
					 skip_new = *best_at(alignment, i, j - 1);

			if (skip_old > score)
				score = skip_old;
			*best_at(alignment, i, j) = skip_new > score ? skip_new : score;
		}
	}
}

/* ---- judging a pair ---- */

/*
 * Status and growth of a matched pair. With other numbers of executions totals alone decide
 * nothing: the rate has to move the same way.
 */
static void judge(struct site_change *change)
{
	const struct record_site *a = change->before, *b = change->after;
	double rate_before, rate_after;

	if (a->excess < 0 || b->excess < 0) {
		change->status = a->excess == b->excess ? SITE_SAME : SITE_INCOMPARABLE;
		change->note =
			a->excess == b->excess ? "not modelled in either run" : "modelled in one run only";
		return;
	}
	change->growth = b->excess - a->excess;
	if (a->executions == b->executions || (a->excess == 0) != (b->excess == 0) ||
	    change->growth == 0) {
		change->status = change->growth > 0   ? SITE_REGRESSED
		                 : change->growth < 0 ? SITE_IMPROVED
		                                      : SITE_SAME;
		return;
	}
	rate_before = (double)a->excess / (double)a->executions;
	rate_after = (double)b->excess / (double)b->executions;
	if (rate_after > rate_before && change->growth > 0)
		change->status = SITE_REGRESSED;
	else if (rate_after < rate_before && change->growth < 0)
		change->status = SITE_IMPROVED;
	else
		change->status = SITE_INCOMPARABLE;
	change->note = "the number of executions changed";
}

/* Appends a matched pair. */
static void add_pair(struct arena *arena, struct run_comparison *out, const struct record_site *a,
                     const struct record_site *b)
{
	struct site_change change = { .before = a, .after = b };

	judge(&change);
	if (!same_access(a, b))
		change.note = "the instruction changed";
	vec_push(arena, &out->sites, change);
}

/* Appends a site that has no partner; one of the two is NULL. What is new and conflicts counts as
 * growth. */
static void add_alone(struct arena *arena, struct run_comparison *out, const struct record_site *a,
                      const struct record_site *b)
{
	struct site_change change = { .before = a, .after = b };

	assert(!a != !b);
	if (b) {
		change.growth = b->excess > 0 ? b->excess : 0;
		change.status = change.growth > 0 ? SITE_REGRESSED : SITE_NEW;
		change.note = change.growth > 0 ? "a new access" : NULL;
	} else {
		change.growth = a->excess > 0 ? -a->excess : 0;
		change.status = SITE_REMOVED;
	}
	vec_push(arena, &out->sites, change);
}

/* Matches two lists of one key; entries of the longer one may stay alone. */
static void align(struct arena *arena, struct run_comparison *out, struct alignment *alignment)
{
	uint32_t i = alignment->old->items.n, j = alignment->new->items.n;

	alignment->best = arena_array(arena, uint32_t, (size_t)(i + 1) * (j + 1));
	fill_best(alignment);
	while (i > 0 && j > 0) {
		if (*best_at(alignment, i, j) ==
		    *best_at(alignment, i - 1, j - 1) + pair_score(alignment, i - 1, j - 1)) {
			uint32_t old = alignment->old->items.p[--i], new = alignment->new->items.p[--j];

			alignment->before->matched[old] = true;
			alignment->after->matched[new] = true;
			add_pair(arena, out, &alignment->before->run->sites.p[old],
			         &alignment->after->run->sites.p[new]);
		} else if (*best_at(alignment, i, j) == *best_at(alignment, i - 1, j)) {
			i--;
		} else {
			j--;
		}
	}
}

/* One round: every group of sites with one key is aligned, once, when its first member comes by. */
static void match_by(struct arena *arena, struct run_comparison *out, struct side sides[2],
                     same_key *same)
{
	for (uint32_t i = 0; i < sides[0].run->sites.n; i++) {
		const struct record_site *like = &sides[0].run->sites.p[i];
		struct picked old, new;

		if (sides[0].matched[i])
			continue;
		old = pick(arena, &sides[0], like, same);
		new = pick(arena, &sides[1], like, same);
		if (old.items.p[0] == i && new.items.n > 0)
			align(arena, out, &(struct alignment){ &sides[0], &sides[1], &old, &new, NULL });
	}
}

/* ---- the whole comparison ---- */

/* The line to sort by: today's, or the one it had. */
static uint32_t line_of(const struct site_change *change)
{
	return change->after ? change->after->line : change->before->line;
}

/* Largest growth first; ties by status, line, buffer, so that the order is the same everywhere. */
static int compare_changes(const void *a, const void *b)
{
	const struct site_change *left = a, *right = b;

	if (left->growth != right->growth)
		return left->growth > right->growth ? -1 : 1;
	if (left->status != right->status)
		return left->status < right->status ? -1 : 1;
	if (line_of(left) != line_of(right))
		return line_of(left) < line_of(right) ? -1 : 1;
	return strcmp((left->after ? left->after : left->before)->buffer,
	              (right->after ? right->after : right->before)->buffer);
}

/* What may differ without making the runs incomparable. */
static void compare_environment(struct arena *arena, struct run_comparison *out)
{
	struct text_list texts = { 0 };

	differ(arena, &texts, "tilelayout", out->before->tool_version, out->after->tool_version);
	differ(arena, &texts, "layouts", out->before->layouts, out->after->layouts);
	differ(arena, &texts, "file", out->before->file, out->after->file);
	for (uint32_t i = 0; i < out->before->launches.n; i++)
		differ(arena, &texts, arena_printf(arena, "launch %u", i),
		       launch_text(arena, &out->before->launches.p[i]),
		       launch_text(arena, &out->after->launches.p[i]));
	for (uint32_t i = 0; i < texts.items.n; i++)
		vec_push(arena, &out->environment, texts.items.p[i]);
}

struct run_comparison *compare_runs(struct arena *arena, const struct run_record *before,
                                    const struct run_record *after)
{
	struct run_comparison *out = arena_new(arena, struct run_comparison);
	struct side sides[2] = { { before, arena_array(arena, bool, before->sites.n) },
		                     { after, arena_array(arena, bool, after->sites.n) } };

	out->before = before;
	out->after = after;
	out->excess_before = record_excess(before);
	out->excess_after = record_excess(after);
	match_by(arena, out, sides, same_access);
	match_by(arena, out, sides, same_direction);
	for (uint32_t i = 0; i < before->sites.n; i++)
		if (!sides[0].matched[i])
			add_alone(arena, out, &before->sites.p[i], NULL);
	for (uint32_t i = 0; i < after->sites.n; i++)
		if (!sides[1].matched[i])
			add_alone(arena, out, NULL, &after->sites.p[i]);
	if (out->sites.n > 1)
		qsort(out->sites.p, out->sites.n, sizeof(*out->sites.p), compare_changes);
	for (uint32_t i = 0; i < out->sites.n; i++)
		out->n_of[out->sites.p[i].status]++;
	assert(out->sites.n >= before->sites.n && out->sites.n >= after->sites.n);
	compare_environment(arena, out);
	return out;
}

/* What `db compare` and CI exit with: one site that regressed is enough. */
bool comparison_failed(const struct run_comparison *comparison)
{
	return comparison->n_of[SITE_REGRESSED] > 0;
}
