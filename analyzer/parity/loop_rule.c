/*
 * What a parallel nest infers: its partition, from a fragment that is known or from the plain
 * partition, and then the fragments that are not known. Facts: TileLang 0.1.15, src/op/parallel.cc
 * and src/transform/loop_partition.cc.
 */
#include "analyzer/parity/parity_internal.h"

#include <assert.h>
#include <string.h>

static struct pfrag *known(const struct pinfer *infer, const struct pfused *use)
{
	return infer->state.frag[use->buffer->id];
}

/* ---- candidates ---- */

/* The partition in which every point runs where its element of the fragment is. */
static struct pfrag *from_buffer(struct pinfer *infer, const struct ploop *loop,
                                 const struct pfused *use)
{
	struct pfrag *fragment = known(infer, use), *out;

	if (!use->elems && use->is_plain)
		return fragment;
	out = pfrag_new(infer->arena, loop->rank, loop->shape, fragment->n_reps);
	for (int64_t r = 0; r < out->n_reps; r++)
		for (int64_t p = 0; p < out->n_elems; p++)
			out->thread[r * out->n_elems + p] =
				pfrag_thread(fragment, r, use->elems ? use->elems[p] : p);
	if (use->is_plain)
		for (int64_t p = 0; p < out->n_elems; p++)
			out->slot[p] = fragment->slot[use->elems ? use->elems[p] : p];
	else
		pfrag_number_slots(out);
	pfrag_finish(out);
	if (use->is_plain) { /* a part of the fragment's own map */
		(void)pfrag_injective(fragment);
		out->n_slots = fragment->n_slots;
		out->form = fragment->form;
	}
	return out;
}

/* Vectors are dealt to the threads round by round; with fragments, idle threads repeat. */
static struct pfrag *plain_partition(struct pinfer *infer, const struct ploop *loop, int64_t width)
{
	int64_t n_threads = infer->n_threads;
	int64_t n_vectors = (loop->n_points + width - 1) / width;
	int64_t used = n_vectors < n_threads ? n_vectors : n_threads;
	int64_t n_reps = loop->fragments.n > 0 ? n_threads / used : 1;
	struct pfrag *out = pfrag_new(infer->arena, loop->rank, loop->shape, n_reps ? n_reps : 1);

	for (int64_t p = 0; p < out->n_elems; p++) {
		out->slot[p] = (int32_t)(p / width / n_threads * width + p % width);
		for (int64_t r = 0; r < out->n_reps; r++)
			out->thread[r * out->n_elems + p] = (int32_t)(p / width % n_threads + used * r);
	}
	pfrag_finish(out);
	return out;
}

/* Of the halvings of `width`, the one that pads least; the widest of equals. */
static int64_t least_padding(int64_t width, int64_t n_points, int64_t n_threads)
{
	int64_t best = width, least = INT64_MAX;

	for (int64_t tried = width; tried >= 1; tried /= 2) {
		int64_t round = n_threads * tried;
		int64_t padding = (n_points + round - 1) / round * round - n_points;

		if (padding < least) {
			least = padding;
			best = tried;
		}
	}
	return best;
}

static struct pfrag *from_plan(struct pinfer *infer, const struct ploop *loop)
{
	int64_t width = parity_vector(infer, loop);

	if (loop->fragments.n > 0)
		while (width > 1 && loop->n_points % (infer->n_threads * width) != 0)
			width /= 2;
	else if (loop->coalesced_width == 0)
		width = least_padding(width, loop->n_points, infer->n_threads);
	if (loop->coalesced_width > 0) {
		int64_t wanted = loop->coalesced_width < width ? loop->coalesced_width : width;

		while (width % wanted != 0)
			wanted--;
		width = wanted;
	}
	return plain_partition(infer, loop, width);
}

/* ---- checks ---- */

/* Does every point find its elements, and store only its own? */
static enum pfrag_answer fits(const struct pinfer *infer, const struct ploop *loop,
                              struct pfrag *candidate)
{
	for (uint32_t i = 0; i < loop->fragments.n; i++) {
		const struct pfused *use = &loop->fragments.p[i];
		struct pfrag_view own = { candidate, NULL }, view = { known(infer, use), use->elems };
		enum pfrag_answer answer;

		if (!view.fragment)
			continue;
		if (use->is_read || use->is_write) {
			answer = pfrag_contains(&own, &view, loop->n_points);
			if (answer != PFRAG_YES)
				return answer;
		}
		if (use->is_write) {
			answer = pfrag_contains(&view, &own, loop->n_points);
			if (answer != PFRAG_YES)
				return answer;
		}
	}
	return PFRAG_YES;
}

/* Is some register of a known fragment addressed with a slot that differs between threads? */
static bool slot_needs_thread(const struct pinfer *infer, const struct ploop *loop,
                              struct pfrag *candidate)
{
	struct arena *scratch;
	bool found = false;

	if (!pfrag_bijective(candidate))
		return false;
	scratch = arena_open();
	for (uint32_t i = 0; i < loop->fragments.n && !found; i++) {
		const struct pfused *use = &loop->fragments.p[i];
		const struct pfrag *fragment = known(infer, use);
		int32_t *slot = arena_array(scratch, int32_t, (size_t)candidate->n_slots);

		for (int64_t p = 0; fragment && p < loop->n_points && !found; p++) {
			int32_t wanted = fragment->slot[use->elems ? use->elems[p] : p] + 1;
			int32_t *at = &slot[candidate->slot[p]];

			found = *at != 0 && *at != wanted;
			*at = wanted;
		}
	}
	arena_close(scratch);
	return found;
}

static bool contains(const struct ploop *loop, struct pfrag *big, struct pfrag *small,
                     bool *no_inverse)
{
	struct pfrag_view a = { small, NULL }, b = { big, NULL };
	enum pfrag_answer answer = pfrag_contains(&a, &b, loop->n_points);

	*no_inverse |= answer == PFRAG_NO_INVERSE;
	return answer == PFRAG_YES;
}

/* The better of two partitions; NULL when one of them cannot be inverted. */
static struct pfrag *choose(const struct pinfer *infer, const struct ploop *loop,
                            struct pfrag *buffer, struct pfrag *plan)
{
	enum pfrag_answer buffer_fits = fits(infer, loop, buffer);
	enum pfrag_answer plan_fits = fits(infer, loop, plan);
	bool buffer_thread, plan_thread, buffer_has, plan_has, no_inverse = false;

	if (buffer_fits == PFRAG_NO_INVERSE || plan_fits == PFRAG_NO_INVERSE)
		return NULL;
	if (buffer_fits != plan_fits)
		return buffer_fits == PFRAG_YES ? buffer : plan;
	if (buffer_fits != PFRAG_YES)
		return buffer;
	buffer_thread = slot_needs_thread(infer, loop, buffer);
	plan_thread = slot_needs_thread(infer, loop, plan);
	if (buffer_thread != plan_thread)
		return buffer_thread ? plan : buffer;
	buffer_has = contains(loop, buffer, plan, &no_inverse);
	plan_has = contains(loop, plan, buffer, &no_inverse);
	if (no_inverse)
		return NULL;
	if (buffer_has != plan_has)
		return buffer_has ? plan : buffer;
	return plan->n_reps <= buffer->n_reps ? plan : buffer;
}

/* ---- fragments from the partition ---- */

/* Points of each element, in order: `first` by element into `points`. False: uneven. */
struct groups {
	int64_t n_each;
	int32_t *points; /* [element * n_each + number] */
};

static bool group_points(struct arena *arena, const struct ploop *loop, const struct pfused *use,
                         int64_t n_elems, struct groups *groups)
{
	int32_t *count = arena_array(arena, int32_t, (size_t)n_elems);
	int64_t most = 0;

	for (int64_t p = 0; p < loop->n_points; p++)
		if (++count[use->elems[p]] > most)
			most = count[use->elems[p]];
	groups->n_each = most;
	groups->points = arena_array(arena, int32_t, (size_t)(most * n_elems));
	memset(count, 0, sizeof(int32_t) * (size_t)n_elems);
	for (int64_t p = 0; p < loop->n_points; p++)
		groups->points[use->elems[p] * most + count[use->elems[p]]++] = (int32_t)p;
	for (int64_t e = 0; e < n_elems; e++) {
		if (count[e] == 0 && e > 0)
			memcpy(groups->points + e * most, groups->points, sizeof(int32_t) * (size_t)most);
		else if (count[e] != most)
			return false;
	}
	return true;
}

/* Where the loop puts a fragment that is not known; NULL when the index has no inverse. */
static struct pfrag *complete(struct pinfer *infer, const struct ploop *loop,
                              const struct pfused *use, struct pfrag *partition)
{
	int64_t shape[MAX_RANK], n_elems = buffer_n_elems(use->buffer);
	struct groups groups;
	struct pfrag *out;

	if (use->is_plain && !use->elems)
		return partition;
	for (uint32_t d = 0; d < use->buffer->rank; d++)
		shape[d] = buffer_extent(use->buffer, d);
	if (!group_points(infer->arena, loop, use, n_elems, &groups))
		return NULL;
	out = pfrag_new(infer->arena, use->buffer->rank, shape, groups.n_each * partition->n_reps);
	for (int64_t r = 0; r < out->n_reps; r++)
		for (int64_t e = 0; e < n_elems; e++) {
			int64_t point = groups.points[e * groups.n_each + r % groups.n_each];

			out->thread[r * n_elems + e] = pfrag_thread(partition, r / groups.n_each, point);
		}
	pfrag_number_slots(out);
	pfrag_finish(out);
	out = pfrag_condense(infer->arena, out);
	if (groups.n_each > 1 && !use->is_write && !pfrag_injective(out))
		return pfrag_everywhere(infer->arena, use->buffer->rank, shape, partition->n_threads);
	return out;
}

/* ---- the rule ---- */

/* A fragment indexed by constants is in every thread. */
static enum presult strict(struct pinfer *infer, const struct ploop *loop, struct pupdates *updates)
{
	for (uint32_t i = 0; i < loop->fragments.n; i++) {
		const struct pfused *use = &loop->fragments.p[i];
		int64_t shape[MAX_RANK];

		if (known(infer, use) || !use->is_const)
			continue;
		for (uint32_t d = 0; d < use->buffer->rank; d++)
			shape[d] = buffer_extent(use->buffer, d);
		updates->items[updates->n++] = (struct pupdate){
			.buffer = use->buffer,
			.frag = pfrag_everywhere(infer->arena, use->buffer->rank, shape, infer->n_threads),
		};
	}
	return P_OK;
}

/* The known fragments that a partition may be taken from. */
struct sources {
	const struct pfused *source, *read;
	bool is_write;
	bool may_propagate;
};

static struct sources find_sources(const struct pinfer *infer, const struct ploop *loop)
{
	struct sources sources = { 0 };
	uint32_t n_const = 0;

	for (uint32_t i = 0; i < loop->fragments.n; i++) {
		const struct pfused *use = &loop->fragments.p[i];
		const struct pfrag *fragment = known(infer, use);

		n_const += use->is_const;
		if (!fragment)
			continue;
		if (use->is_write) {
			sources.source = use;
			sources.is_write = true;
			continue;
		}
		if (!sources.read || use->buffer->rank > sources.read->buffer->rank)
			sources.read = use;
		if (fragment->n_reps == 1 && !sources.source) {
			sources.source = use;
			sources.is_write = false;
		}
	}
	sources.may_propagate = n_const == 0 || loop->fragments.n > n_const;
	return sources;
}

/* The partition at this level; NULL: none yet, or with *died that the attempt cannot go on. */
static struct pfrag *partition_of(struct pinfer *infer, uint32_t at, const struct ploop *loop,
                                  enum plevel level, bool *died)
{
	struct sources sources = find_sources(infer, loop);
	struct pfrag *buffer = NULL, *plan, *chosen;

	if (sources.source && (sources.may_propagate || sources.is_write))
		return from_buffer(infer, loop, sources.source);
	if (level != LEVEL_FREE)
		return NULL;
	if (sources.read && sources.may_propagate)
		buffer = from_buffer(infer, loop, sources.read);
	plan = from_plan(infer, loop);
	chosen = buffer ? choose(infer, loop, buffer, plan) : plan;
	*died = !chosen;
	infer->state.padded[at] = chosen == plan && loop->fragments.n == 0;
	return chosen;
}

enum presult parity_loop(struct pinfer *infer, uint32_t at, enum plevel level,
                         struct pupdates *updates)
{
	const struct ploop *loop = infer->ops.p[at]->loop;
	struct pfrag *partition = infer->state.loop[at];
	bool died = false;

	if (partition) {
		if (level == LEVEL_FREE && fits(infer, loop, partition) != PFRAG_YES)
			return parity_fail(infer, P_CONFLICT, loop->stmt, NULL, "owners differ");
		return P_OK;
	}
	if (level == LEVEL_STRICT)
		return strict(infer, loop, updates);
	partition = partition_of(infer, at, loop, level, &died);
	if (died)
		return parity_fail(infer, P_CONFLICT, loop->stmt, NULL, "a partition has no inverse");
	if (!partition)
		return P_OK;
	if (!pfrag_injective(partition))
		return parity_fail(infer, P_CONFLICT, loop->stmt, NULL, "two points share a thread's slot");
	if (fits(infer, loop, partition) != PFRAG_YES)
		return parity_fail(infer, P_CONFLICT, loop->stmt, NULL, "owners differ");
	for (uint32_t i = 0; i < loop->fragments.n; i++) {
		const struct pfused *use = &loop->fragments.p[i];
		struct pfrag *fragment;

		if (known(infer, use))
			continue;
		fragment = complete(infer, loop, use, partition);
		if (!fragment)
			return parity_fail(infer, P_CONFLICT, loop->stmt, use->buffer,
			                   "the index has no inverse");
		if (!use->is_free)
			updates->items[updates->n++] =
				(struct pupdate){ .buffer = use->buffer, .frag = fragment };
	}
	infer->state.loop[at] = partition;
	return P_OK;
}

/* Loops of T.Parallel keep what was inferred; copies are partitioned anew. */
struct pfrag *parity_final_partition(struct pinfer *infer, uint32_t at)
{
	const struct pop *op = infer->ops.p[at];
	struct pfrag *partition;
	bool died = false;

	if (op->kind == POP_LOOP)
		return infer->state.loop[at];
	partition = partition_of(infer, at, op->loop, LEVEL_COMMON, &died);
	if (!partition)
		partition = partition_of(infer, at, op->loop, LEVEL_FREE, &died);
	return died ? NULL : partition;
}
