/*
 * replicas: a reduction counts each element once.
 *
 * For each result element and each thread that owns it: the slots that its exchange reaches (its
 * own, those of the lanes that the shuffles connect, and the parts that other warps wrote to shared
 * memory) hold each source element of the row exactly once.
 */
#include "analyzer/check/check_internal.h"

#include <string.h>

struct replica_check {
	struct check *check;
	const struct stmt *stmt;
	const struct op_reduce *op;
	const struct reduce_plan *plan;
	int64_t *part,
		/* by thread: which part of a row its warp holds; is it the lane that writes the part */
		*leader;
	int64_t n_threads;
};

/* Lanes of the thread's exchange: same warp, lane numbers that differ in mask bits only. */
static bool exchanges(const struct replica_check *r, int64_t a, int64_t b)
{
	return a / 32 == b / 32 && ((a ^ b) % 32 & ~r->plan->lane_mask_bits) == 0;
}

/* Part numbers and leaders from the thread digits of the reduced dimension. */
static void find_parts(struct replica_check *r)
{
	const struct layout *source = r->plan->source;

	for (int64_t t = 0; t < r->n_threads; t++) {
		int64_t scale = 1;
		r->leader[t] = 1;
		for (uint32_t i = 0; i < source->n_digits; i++) {
			const struct digit *digit = &source->digits[i];
			if (digit->axis != AXIS_THREAD ||
			    (digit->dim != r->op->dim && digit->dim != DIM_REPLICA))
				continue;
			int64_t value = t / digit->stride % digit->extent;
			int64_t lanes = digit->stride >= 32                   ? 1
			                : digit->stride * digit->extent <= 32 ? digit->extent
			                                                      : 32 / digit->stride;
			if (digit->dim == DIM_REPLICA && value)
				r->leader[t] = 0;
			if (digit->dim == DIM_REPLICA)
				continue;
			if (value % lanes)
				r->leader[t] = 0;
			r->part[t] += value / lanes * scale;
			scale *= digit->extent / lanes;
		}
	}
}

/* How often thread `owner` ends up combining the element that lives at `place`. */
static int64_t reaches(const struct replica_check *r, int64_t owner, struct place place)
{
	int64_t n = 0;

	if (r->plan->n_warps <= 1)
		return exchanges(r, owner, place.thread);
	for (int64_t t = 0; t < r->n_threads; t++)
		n += r->leader[t] && exchanges(r, t, place.thread);
	return n;
}

static bool check_element(struct replica_check *r, const int64_t *source_index,
                          const int64_t *result_index)
{
	const struct layout *source = r->plan->source,
						*result = r->check->solution->buffers[r->op->dst.buffer->id].layout;

	for (int64_t c = 0; c < result->n_replicas; c++) {
		int64_t owner = layout_at(result, result_index, c).thread, n = 0;
		for (int64_t s = 0; s < source->n_replicas; s++)
			n += reaches(r, owner, layout_at(source, source_index, s));
		r->check->n_elems_seen[PROPERTY_REPLICAS]++;
		if (n == 1)
			continue;
		check_found(r->check,
		            (struct finding){ PROPERTY_REPLICAS, PROPERTY_VIOLATED, r->stmt->span,
		                              sym_text(r->check->cx->names, r->op->src.buffer->name) },
		            "thread %lld counts element %s %lld times", (long long)owner,
		            check_index_text(r->check, source_index, source->rank), (long long)n);
		return false;
	}
	return true;
}

static void result_index(const struct replica_check *r, const int64_t *source_index, int64_t *out)
{
	uint32_t n = 0;

	for (uint32_t d = 0; d < r->plan->source->rank; d++)
		if ((int64_t)d != r->op->dim)
			out[n++] = source_index[d];
		else if (r->op->dst.buffer->rank == r->plan->source->rank || r->plan->source->rank == 1)
			out[n++] = 0;
}

static void check_reduce(struct check *check, struct stmt *stmt)
{
	const struct stmt_plan *plan = &check->solution->plans[stmt->id];
	struct replica_check r = {
		.check = check, .stmt = stmt, .op = &stmt->as.op.as.reduce, .plan = &plan->as.reduce
	};
	const struct layout *source = plan->as.reduce.source;
	int64_t index[MAX_RANK] = { 0 }, result[MAX_RANK], n = 1;

	for (uint32_t d = 0; d < source->rank; d++)
		n *= source->shape[d];
	r.n_threads = plan->threads.n;
	if (n * source->n_replicas * r.n_threads > (int64_t)CHECK_MAX_ELEMS * 16) {
		check_found(check,
		            (struct finding){ PROPERTY_REPLICAS, PROPERTY_NOT_PROVED, stmt->span, "" },
		            "the reduction has more than %d pairs", CHECK_MAX_ELEMS * 16);
		return;
	}
	r.part = arena_array(check->cx->arena, int64_t, (size_t)r.n_threads);
	r.leader = arena_array(check->cx->arena, int64_t, (size_t)r.n_threads);
	find_parts(&r);
	for (bool more = true; more;) {
		result_index(&r, index, result);
		if (!check_element(&r, index, result))
			return;
		more = false;
		for (uint32_t d = source->rank; d-- > 0 && !more;) {
			more = ++index[d] < source->shape[d];
			if (!more)
				index[d] = 0;
		}
	}
}

static void visit_stmt(void *user, struct stmt *stmt)
{
	struct check *check = user;

	if (stmt->kind == STMT_OP && stmt->as.op.kind == OP_reduce &&
	    check->solution->plans[stmt->id].has_plan)
		check_reduce(check, stmt);
}

void check_replicas(struct check *check)
{
	tile_walk((struct block *)(uintptr_t)&check->solution->launch->body, visit_stmt, check);
	if (check->n_elems_seen[PROPERTY_REPLICAS])
		check_proved(check, PROPERTY_REPLICAS, "%lld pairs of element and owner, each counted once",
		             (long long)check->n_elems_seen[PROPERTY_REPLICAS]);
	else
		check_proved(check, PROPERTY_REPLICAS, "nothing is reduced across threads");
}
