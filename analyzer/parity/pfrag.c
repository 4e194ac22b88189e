/* Fragments as tables: see pfrag.h. Time of every question is elements x replicas. */
#include "analyzer/parity/pfrag.h"

#include <assert.h>
#include <string.h>

struct pfrag *pfrag_new(struct arena *arena, uint32_t rank, const int64_t *shape, int64_t n_reps)
{
	struct pfrag *fragment = arena_new(arena, struct pfrag);

	assert(rank >= 1 && rank <= MAX_RANK && n_reps >= 1);
	fragment->rank = rank;
	fragment->n_elems = 1;
	for (uint32_t d = 0; d < rank; d++) {
		fragment->shape[d] = shape[d];
		fragment->n_elems *= shape[d];
	}
	fragment->n_reps = n_reps;
	fragment->thread = arena_array(arena, int32_t, (size_t)(fragment->n_elems * n_reps));
	fragment->slot = arena_array(arena, int32_t, (size_t)fragment->n_elems);
	return fragment;
}

struct pfrag *pfrag_everywhere(struct arena *arena, uint32_t rank, const int64_t *shape,
                               int64_t n_threads)
{
	struct pfrag *fragment = pfrag_new(arena, rank, shape, 1);

	for (int64_t e = 0; e < fragment->n_elems; e++)
		fragment->slot[e] = (int32_t)e;
	fragment->n_reps = n_threads;
	fragment->n_threads = n_threads;
	fragment->n_slots = fragment->n_elems;
	fragment->everywhere = true;
	fragment->thread = NULL;
	fragment->form = PFRAG_BIJECTIVE;
	return fragment;
}

enum { MAX_THREADS = 1024 };

void pfrag_number_slots(struct pfrag *fragment)
{
	int32_t count[MAX_THREADS] = { 0 };

	for (int64_t e = 0; e < fragment->n_elems; e++) {
		int32_t thread = pfrag_thread(fragment, 0, e);

		assert(thread >= 0 && thread < MAX_THREADS);
		fragment->slot[e] = count[thread]++;
	}
}

void pfrag_finish(struct pfrag *fragment)
{
	bool everywhere = fragment->n_reps > 1;
	int32_t last_thread = 0, last_slot = 0;

	for (int64_t r = 0, at = 0; r < fragment->n_reps; r++)
		for (int64_t e = 0; e < fragment->n_elems; e++, at++) {
			everywhere &= fragment->thread[at] == r;
			if (fragment->thread[at] > last_thread)
				last_thread = fragment->thread[at];
		}
	for (int64_t e = 0; e < fragment->n_elems; e++)
		if (fragment->slot[e] > last_slot)
			last_slot = fragment->slot[e];
	fragment->n_threads = last_thread + 1;
	fragment->n_slots = last_slot + 1;
	fragment->everywhere = everywhere;
	fragment->form = everywhere ? PFRAG_BIJECTIVE : PFRAG_UNKNOWN;
}

/* ---- one to one ---- */

static void find_form(struct pfrag *fragment)
{
	int64_t n_places = fragment->n_threads * fragment->n_slots;
	struct arena *scratch = arena_open();
	uint8_t *taken = arena_array(scratch, uint8_t, (size_t)n_places);
	bool shares = false;

	for (int64_t r = 0; r < fragment->n_reps && !shares; r++)
		for (int64_t e = 0; e < fragment->n_elems && !shares; e++) {
			int64_t place =
				(int64_t)pfrag_thread(fragment, r, e) * fragment->n_slots + fragment->slot[e];

			shares = taken[place];
			taken[place] = 1;
		}
	arena_close(scratch);
	if (shares)
		fragment->form = PFRAG_SHARES;
	else
		fragment->form =
			n_places == fragment->n_elems * fragment->n_reps ? PFRAG_BIJECTIVE : PFRAG_INJECTIVE;
}

bool pfrag_injective(struct pfrag *fragment)
{
	if (fragment->form == PFRAG_UNKNOWN)
		find_form(fragment);
	return fragment->form != PFRAG_SHARES;
}

bool pfrag_bijective(struct pfrag *fragment)
{
	return pfrag_injective(fragment) && fragment->form == PFRAG_BIJECTIVE;
}

/* ---- replicas ---- */

enum { MAX_REP_DIGITS = 16 };

struct rep_digit {
	int64_t div, extent, stride;
};

/* The replica's part of the thread number: the same for every element? */
static bool replica_part(const struct pfrag *fragment, int32_t *part)
{
	for (int64_t r = 0; r < fragment->n_reps; r++) {
		part[r] = pfrag_thread(fragment, r, 0) - pfrag_thread(fragment, 0, 0);
		for (int64_t e = 1; e < fragment->n_elems; e++)
			if (pfrag_thread(fragment, r, e) - pfrag_thread(fragment, 0, e) != part[r])
				return false;
	}
	return true;
}

/* A function of 0 .. n-1 as digits; 0 when it has none. Digits of stride 0 are kept. */
static uint32_t digits_of(const int32_t *values, int64_t n, struct rep_digit *out)
{
	uint32_t n_digits = 0;

	for (int64_t div = 1; div < n;) {
		int64_t stride = values[div], extent = 2;

		while (div * extent < n && values[div * extent] == stride * extent)
			extent++;
		while (n % (div * extent) != 0)
			extent--;
		if (n_digits == MAX_REP_DIGITS || stride < 0 || extent < 2)
			return 0;
		out[n_digits++] = (struct rep_digit){ div, extent, stride };
		div *= extent;
	}
	for (int64_t x = 0; x < n; x++) {
		int64_t value = 0;

		for (uint32_t i = 0; i < n_digits; i++)
			value += x / out[i].div % out[i].extent * out[i].stride;
		if (value != values[x])
			return 0;
	}
	return n_digits;
}

/* Without the digits of stride 0, largest stride first; the number of replicas that remain. */
static int64_t sort_rep_digits(struct rep_digit *digits, uint32_t *n)
{
	uint32_t kept = 0;
	int64_t n_reps = 1;

	for (uint32_t i = 0; i < *n; i++) {
		struct rep_digit digit = digits[i];
		uint32_t at = kept;

		if (digit.stride == 0)
			continue;
		for (; at > 0 && digits[at - 1].stride < digit.stride; at--)
			digits[at] = digits[at - 1];
		digits[at] = digit;
		kept++;
		n_reps *= digit.extent;
	}
	*n = kept;
	return n_reps;
}

struct pfrag *pfrag_condense(struct arena *arena, struct pfrag *fragment)
{
	struct rep_digit digits[MAX_REP_DIGITS];
	int32_t *part = arena_array(arena, int32_t, (size_t)fragment->n_reps);
	struct pfrag *out;
	int64_t n_reps;
	uint32_t n;

	if (fragment->n_reps == 1 || fragment->everywhere || !replica_part(fragment, part))
		return fragment;
	n = digits_of(part, fragment->n_reps, digits);
	if (n == 0)
		return fragment;
	n_reps = sort_rep_digits(digits, &n);
	out = pfrag_new(arena, fragment->rank, fragment->shape, n_reps);
	memcpy(out->slot, fragment->slot, sizeof(int32_t) * (size_t)fragment->n_elems);
	for (int64_t r = 0; r < n_reps; r++) {
		int64_t source = 0, rest = r;

		for (uint32_t i = 0; i < n; i++) {
			source += rest % digits[i].extent * digits[i].div;
			rest /= digits[i].extent;
		}
		memcpy(out->thread + r * out->n_elems, fragment->thread + source * out->n_elems,
		       sizeof(int32_t) * (size_t)out->n_elems);
	}
	pfrag_finish(out);
	return out;
}

/* ---- who owns what ---- */

enum pfrag_answer pfrag_contains(const struct pfrag_view *small, const struct pfrag_view *large,
                                 int64_t n_points)
{
	int64_t stamp[MAX_THREADS], last = -1;

	if (large->fragment->everywhere)
		return PFRAG_YES;
	if (!pfrag_bijective(large->fragment))
		return PFRAG_NO_INVERSE;
	memset(stamp, -1, sizeof(stamp));
	for (int64_t p = 0; p < n_points; p++) {
		int64_t element = pfrag_view_at(large, p), own = pfrag_view_at(small, p);

		if (element != last)
			for (int64_t r = 0; r < large->fragment->n_reps; r++)
				stamp[pfrag_thread(large->fragment, r, element)] = element;
		last = element;
		for (int64_t r = 0; r < small->fragment->n_reps; r++)
			if (stamp[pfrag_thread(small->fragment, r, own)] != element)
				return PFRAG_NO;
	}
	return PFRAG_YES;
}

bool pfrag_same_slots(const struct pfrag *a, const struct pfrag *b)
{
	return a->rank == b->rank && !memcmp(a->shape, b->shape, sizeof(int64_t) * a->rank) &&
	       a->n_slots == b->n_slots &&
	       !memcmp(a->slot, b->slot, sizeof(int32_t) * (size_t)a->n_elems);
}

/* ---- as a layout ---- */

struct axis_part {
	enum layout_axis axis;
	int dim;
	int64_t n;
};

/* Adds the digits of a function of one dimension; false when it has none. */
static bool add_digits(struct layout *layout, const int32_t *values, struct axis_part part)
{
	struct rep_digit digits[MAX_REP_DIGITS];
	uint32_t n = digits_of(values, part.n, digits);

	if (part.n > 1 && n == 0)
		return false;
	if (layout->n_digits + n > MAX_DIGITS)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (digits[i].stride > 0)
			layout_add_digit(layout, (struct digit){ part.dim, digits[i].div, digits[i].extent,
			                                         part.axis, digits[i].stride });
	return true;
}

/* Each dimension's own part of thread and slot, from the elements along its axis through 0. */
static bool add_dimensions(struct layout *layout, const struct pfrag *fragment,
                           struct arena *scratch)
{
	int64_t step = fragment->n_elems;

	for (uint32_t d = 0; d < fragment->rank; d++) {
		int64_t n = fragment->shape[d];
		int32_t *values = arena_array(scratch, int32_t, (size_t)n);

		step /= n;
		for (int64_t x = 0; x < n; x++)
			values[x] = pfrag_thread(fragment, 0, x * step) - pfrag_thread(fragment, 0, 0);
		if (!add_digits(layout, values, (struct axis_part){ AXIS_THREAD, (int)d, n }))
			return false;
		for (int64_t x = 0; x < n; x++)
			values[x] = fragment->slot[x * step] - fragment->slot[0];
		if (!add_digits(layout, values, (struct axis_part){ AXIS_SLOT, (int)d, n }))
			return false;
	}
	return true;
}

static bool same_map(const struct layout *layout, const struct pfrag *fragment)
{
	for (int64_t r = 0; r < fragment->n_reps; r++) {
		int64_t index[MAX_RANK] = { 0 }, e = 0;

		do {
			struct place place = layout_at(layout, index, r);

			if (place.thread != pfrag_thread(fragment, r, e) || place.slot != fragment->slot[e])
				return false;
			e++;
		} while (layout_next_index(layout, index));
	}
	return true;
}

/* NULL when the map has no digits. */
static struct layout *digit_layout(struct arena *arena, const struct pfrag *fragment)
{
	struct layout *layout = layout_new_fragment(arena, fragment->rank, fragment->shape);
	struct arena *scratch = arena_open();
	int32_t *part = arena_array(scratch, int32_t, (size_t)fragment->n_reps);
	bool ok = add_dimensions(layout, fragment, scratch);

	for (int64_t r = 0; r < fragment->n_reps; r++)
		part[r] = pfrag_thread(fragment, r, 0) - pfrag_thread(fragment, 0, 0);
	ok = ok && pfrag_thread(fragment, 0, 0) == 0 && fragment->slot[0] == 0 &&
	     add_digits(layout, part, (struct axis_part){ AXIS_THREAD, DIM_REPLICA, fragment->n_reps });
	arena_close(scratch);
	if (!ok)
		return NULL;
	layout->n_replicas = fragment->n_reps;
	layout_finish(layout);
	return layout->n_replicas == fragment->n_reps && same_map(layout, fragment) ? layout : NULL;
}

struct layout *pfrag_layout(struct arena *arena, const struct pfrag *fragment)
{
	struct layout *layout = digit_layout(arena, fragment);
	int64_t n = fragment->n_elems * fragment->n_reps;
	int64_t *threads, *slots;

	if (layout)
		return layout;
	layout = layout_new_fragment(arena, fragment->rank, fragment->shape);
	threads = arena_array(arena, int64_t, (size_t)n);
	slots = arena_array(arena, int64_t, (size_t)n);
	for (int64_t at = 0; at < n; at++) {
		threads[at] = pfrag_thread(fragment, at / fragment->n_elems, at % fragment->n_elems);
		slots[at] = fragment->slot[at % fragment->n_elems];
	}
	layout->table_threads = threads;
	layout->table_slots = slots;
	layout->n_replicas = fragment->n_reps;
	layout->n_threads = fragment->n_threads;
	layout->n_slots = fragment->n_slots;
	return layout;
}
