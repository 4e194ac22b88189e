/*
 * replicas: a reduction counts each element once.
 *
 * The exchange of the plan is carried out with numbers of times: after the shuffles, how often does
 * thread t have what thread o brought? Then, for each result element and each thread that owns it,
 * the parts that it reads (its own lanes', or those that the speakers of all parts wrote to shared
 * memory) hold each source element of the row exactly once. A reducer's partial results are counted
 * in the same way: its replicas are the row.
 */
#include "analyzer/check/check_internal.h"

#include <string.h>

struct replica_check {
	struct check *check;
	const struct stmt *stmt;
	const struct reduce_plan *plan;
	const struct buffer *src, *dst;
	const struct layout *result;
	int64_t n_threads;
	/* By thread: which part of a row its lanes hold; does it speak for them. */
	int64_t *part, *leader;
	uint8_t *times;   /* [origin * n_threads + thread]: after the shuffles */
	int64_t *owners;  /* of the result element at hand */
	int64_t *speaker; /* of each part of it, -1: nobody */
	/* [thread * n_slots + slot]: which result element lives there, -1: none. */
	int64_t *element;
};

enum { MAX_TIMES = 255 };

/* The lane that tells the others, and part and speaker, from the thread digits of the row. */
static void find_parts(struct replica_check *r, int64_t *first_lane)
{
	const struct layout *source = r->plan->source;

	for (int64_t t = 0; t < r->n_threads; t++) {
		int64_t scale = 1;
		r->leader[t] = 1;
		first_lane[t] = t;
		for (uint32_t i = 0; i < source->n_digits; i++) {
			const struct digit *digit = &source->digits[i];
			if (digit->axis != AXIS_THREAD)
				continue;
			if (digit->dim == DIM_REPLICA && t / digit->stride % digit->extent)
				r->leader[t] = 0;
			if (digit->dim != r->plan->dim)
				continue;
			struct reduce_split split = access_reduce_split(source, digit);
			int64_t lane = t / digit->stride % split.lanes;
			r->leader[t] &= lane == 0;
			first_lane[t] -= lane * digit->stride;
			r->part[t] += t / (digit->stride * split.lanes) % split.parts * scale;
			scale *= split.parts;
		}
	}
}

/* The shuffles, for what each thread brings. */
static void exchange(struct replica_check *r, const int64_t *first_lane)
{
	int64_t n = r->n_threads;
	uint8_t *before = arena_array(r->check->cx->arena, uint8_t, (size_t)n);

	for (int64_t origin = 0; origin < n; origin++) {
		uint8_t *times = &r->times[origin * n];
		times[origin] = 1;
		for (int64_t mask = 1; mask < 32; mask *= 2) {
			if (!(r->plan->lane_mask_bits & mask))
				continue;
			memcpy(before, times, (size_t)n);
			for (int64_t t = 0; t < n; t++) {
				int sum = before[t] + ((t ^ mask) < n ? before[t ^ mask] : 0);
				times[t] = (uint8_t)(sum < MAX_TIMES ? sum : MAX_TIMES);
			}
		}
		if (!r->plan->is_ragged || r->plan->n_parts > 1)
			continue;
		memcpy(before, times, (size_t)n);
		for (int64_t t = 0; t < n; t++)
			times[t] = before[first_lane[t]];
	}
}

/* How often `owner` ends up combining what `origin` brought. */
static int64_t times_combined(const struct replica_check *r, int64_t origin, int64_t owner)
{
	const uint8_t *times = &r->times[origin * r->n_threads];
	int64_t n = 0;

	if (r->plan->n_parts <= 1)
		return times[owner];
	for (int64_t p = 0; p < r->plan->n_parts; p++)
		n += times[r->speaker[p]];
	return n;
}

static void found(struct replica_check *r, const char *text)
{
	check_found(r->check,
	            (struct finding){ PROPERTY_REPLICAS, PROPERTY_VIOLATED, r->stmt->span,
	                              sym_text(r->check->cx->names, r->src->name) },
	            "%s", text);
}

/* Which result element each place holds. */
static void find_elements(struct replica_check *r)
{
	int64_t index[MAX_RANK] = { 0 }, number = 0, n = r->n_threads * r->result->n_slots;

	r->element = arena_array(r->check->cx->arena, int64_t, (size_t)n);
	for (int64_t i = 0; i < n; i++)
		r->element[i] = -1;
	do {
		for (int64_t c = 0; c < r->result->n_replicas; c++) {
			struct place place = layout_at(r->result, index, c);
			r->element[place.thread * r->result->n_slots + place.slot] = number;
		}
		number++;
	} while (layout_next_index(r->result, index));
}

/* What comes to `thread` for the element in its slot is of that element, or of none. */
static bool keeps_to_row(struct replica_check *r, int64_t thread, int64_t slot)
{
	int64_t n_slots = r->result->n_slots, mine = r->element[thread * n_slots + slot];

	for (int64_t origin = 0; origin < r->n_threads; origin++) {
		int64_t theirs = r->element[origin * n_slots + slot];
		if (!r->times[origin * r->n_threads + thread] || theirs == mine || theirs < 0)
			continue;
		found(r, arena_printf(r->check->cx->arena,
		                      "thread %lld combines what thread %lld holds of another result",
		                      (long long)thread, (long long)origin));
		return false;
	}
	return true;
}

/* Who owns the result element, and who speaks for each part of it. */
static bool find_owners(struct replica_check *r, const int64_t *result_index)
{
	for (int64_t p = 0; p < r->plan->n_parts; p++)
		r->speaker[p] = -1;
	for (int64_t c = 0; c < r->result->n_replicas; c++) {
		struct place place = layout_at(r->result, result_index, c);
		int64_t t = place.thread;
		r->owners[c] = t;
		if (!keeps_to_row(r, t, place.slot))
			return false;
		if (r->leader[t] && r->part[t] < r->plan->n_parts)
			r->speaker[r->part[t]] = t;
	}
	for (int64_t p = 0; p < r->plan->n_parts && r->plan->n_parts > 1; p++)
		if (r->speaker[p] < 0) {
			found(r, arena_printf(r->check->cx->arena,
			                      "nobody writes part %lld of the result %s, which is read",
			                      (long long)p,
			                      check_index_text(r->check, result_index, r->dst->rank)));
			return false;
		}
	return true;
}

static bool check_element(struct replica_check *r, const int64_t *source_index)
{
	const struct layout *source = r->plan->source;

	for (int64_t c = 0; c < r->result->n_replicas; c++) {
		int64_t n = 0;
		for (int64_t s = 0; s < source->n_replicas; s++)
			n += times_combined(r, layout_at(source, source_index, s).thread, r->owners[c]);
		r->check->n_elems_seen[PROPERTY_REPLICAS]++;
		if (n == 1)
			continue;
		found(r,
		      arena_printf(r->check->cx->arena, "thread %lld counts element %s %lld times",
		                   (long long)r->owners[c],
		                   check_index_text(r->check, source_index, source->rank), (long long)n));
		return false;
	}
	return true;
}

static void result_index(const struct replica_check *r, const int64_t *source_index, int64_t *out)
{
	uint32_t n = 0;

	for (uint32_t d = 0; d < r->plan->source->rank; d++)
		if (d != r->plan->dim)
			out[n++] = source_index[d];
		else if (r->dst->rank == r->plan->source->rank || r->plan->source->rank == 1)
			out[n++] = 0;
}

/* All rows; stops at the first finding. */
static void check_rows(struct replica_check *r)
{
	const struct layout *source = r->plan->source;
	int64_t index[MAX_RANK] = { 0 }, result[MAX_RANK];

	do {
		if (index[r->plan->dim] != 0)
			continue;
		result_index(r, index, result);
		if (!find_owners(r, result))
			return;
		for (int64_t i = 0; i < source->shape[r->plan->dim]; i++) {
			index[r->plan->dim] = i;
			if (!check_element(r, index))
				return;
		}
		index[r->plan->dim] = 0;
	} while (layout_next_index(source, index));
}

static bool is_small(const struct replica_check *r)
{
	int64_t n = r->plan->source->n_replicas * r->result->n_replicas * r->plan->n_parts;

	for (uint32_t d = 0; d < r->plan->source->rank; d++)
		if (__builtin_mul_overflow(n, r->plan->source->shape[d], &n))
			return false;
	return n <= (int64_t)CHECK_MAX_ELEMS * 16;
}

static void check_plan(struct replica_check *r)
{
	struct arena *arena = r->check->cx->arena;
	size_t n = (size_t)r->check->solution->plans[r->stmt->id].threads.n;
	int64_t *first_lane;

	r->n_threads = (int64_t)n;
	r->result = plan_layout(&r->check->solution->plans[r->stmt->id], r->dst);
	if (!r->result)
		r->result = r->check->solution->buffers[r->dst->id].layout;
	if (!is_small(r)) {
		check_found(r->check,
		            (struct finding){ PROPERTY_REPLICAS, PROPERTY_NOT_PROVED, r->stmt->span, "" },
		            "the reduction has more than %d pairs", CHECK_MAX_ELEMS * 16);
		return;
	}
	first_lane = arena_array(arena, int64_t, n);
	r->part = arena_array(arena, int64_t, n);
	r->leader = arena_array(arena, int64_t, n);
	r->times = arena_array(arena, uint8_t, n * n);
	r->owners = arena_array(arena, int64_t, (size_t)r->result->n_replicas);
	r->speaker = arena_array(arena, int64_t, (size_t)r->plan->n_parts);
	find_parts(r, first_lane);
	exchange(r, first_lane);
	find_elements(r);
	check_rows(r);
}

/* ---- atomics ---- */

static void find_atomic(void *user, struct stmt *stmt)
{
	bool *found = user;

	*found |= stmt->kind == STMT_STORE && stmt->as.store.atomic;
}

/* Of the threads that run an iteration exactly one counts as its first, which makes the atomics. */
static void check_atomics(struct check *check, struct stmt *stmt)
{
	const struct layout *layout = check->solution->plans[stmt->id].as.loop.layout;
	const struct expr *tid = expr_of_var(check->pool, check->warp->tid);
	int64_t index[MAX_RANK] = { 0 }, *values;
	struct expr_code *replica;
	bool more = true, any = false;

	tile_walk(&stmt->as.loop.body, find_atomic, &any);
	if (!any)
		return;
	check->n_atomics++;
	if (layout->n_replicas == 1)
		return;
	values = arena_array(check->cx->arena, int64_t, expr_n_vars(check->pool));
	replica = expr_compile(check->cx->arena, layout_replica_expr(check->pool, layout, tid));
	for (; more; more = layout_next_index(layout, index)) {
		int64_t n = 0;

		for (int64_t r = 0; r < layout->n_replicas; r++) {
			values[check->warp->tid->id] = layout_at(layout, index, r).thread;
			n += expr_run(replica, values) == 0;
		}
		if (n == 1)
			continue;
		check_found(check, (struct finding){ PROPERTY_REPLICAS, PROPERTY_VIOLATED, stmt->span, "" },
		            "iteration %s makes its atomics %lld times",
		            check_index_text(check, index, layout->rank), (long long)n);
		return;
	}
}

static void visit_stmt(void *user, struct stmt *stmt)
{
	struct check *check = user;
	struct replica_check r = { .check = check, .stmt = stmt };

	if (stmt->kind == STMT_LOOP && stmt->as.loop.kind == LOOP_PARALLEL &&
	    check->solution->plans[stmt->id].has_plan)
		check_atomics(check, stmt);
	if (stmt->kind != STMT_OP || !check->solution->plans[stmt->id].has_plan)
		return;
	r.plan = &check->solution->plans[stmt->id].as.reduce;
	if (stmt->as.op.kind == OP_reduce) {
		r.src = stmt->as.op.as.reduce.src.buffer;
		r.dst = stmt->as.op.as.reduce.dst.buffer;
	} else if (stmt->as.op.kind == OP_finalize_reducer) {
		r.src = r.dst = stmt->as.op.as.finalize_reducer.dst.buffer;
	} else {
		return;
	}
	check_plan(&r);
}

void check_replicas(struct check *check)
{
	tile_walk((struct block *)(uintptr_t)&check->solution->launch->body, visit_stmt, check);
	if (check->n_elems_seen[PROPERTY_REPLICAS])
		check_proved(check, PROPERTY_REPLICAS,
		             "%lld pairs of element and owner, each counted once%s",
		             (long long)check->n_elems_seen[PROPERTY_REPLICAS],
		             check->n_atomics ? "; every atomic is made by one thread" : "");
	else if (check->n_atomics)
		check_proved(check, PROPERTY_REPLICAS,
		             "every atomic of %u loops is made by one thread an iteration",
		             check->n_atomics);
	else
		check_proved(check, PROPERTY_REPLICAS, "nothing is reduced across threads");
}
