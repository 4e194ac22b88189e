/*
 * A fragment as one statement sees it: from a partition to the fragment's layout, and back.
 *
 * An index is plain when each of its parts is one variable v of the space, v / constant, something
 * that is the same for all iterations (k), or v + k with k a multiple of v's extent. What the
 * iterations tell apart is projected from the partition; along the rest every thread holds all
 * values, as slots:
 *
 *     for i, j in T.Parallel(4, 1024):        loop  thread = j/8, slot = i*8 + j%8
 *         for k in T.serial(4):
 *             x[i, j] += a[k, i] * b[k, j]     a    128 replicas, thread = r, slot = i*4 + j
 *                                              b    thread = j/8, slot = i*8 + j%8
 *
 * A statement outside of T.Parallel has one iteration, which every thread runs: it sees fragments
 * of which each thread holds everything.
 */
#include "analyzer/solve/solve_internal.h"

#include <assert.h>

/* ---- indices ---- */

static bool is_let(const struct space *space, const struct expr *e)
{
	for (uint32_t i = 0; i < space->lets.n; i++)
		if (expr_uses(e, space->lets.p[i]))
			return true;
	return false;
}

/* The one variable of the space that the index reads: its dimension, NO_DIM when it reads none, -2
 * when it reads several. */
static int dim_of(const struct space *space, const struct expr *index)
{
	int found = NO_DIM;

	for (uint32_t d = 0; d < space->rank; d++)
		if (expr_uses(index, space->vars[d]))
			found = found == NO_DIM ? (int)d : -2;
	return found;
}

/* v, v / constant or v + k. `shift` is what divides k, -1 when the index has another form. */
static bool plain_in(struct solver *solver, const struct space *space, int dim, struct use *use,
                     uint32_t at)
{
	struct projection *out = &use->dims[at];
	const struct expr *index = use->index[at], *rest;
	int64_t coefficient, extent = space->shape[dim];

	out->source_dim = dim;
	if (index->kind == EXPR_BINARY && index->as.binary == BIN_FLOORDIV &&
	    expr_is_int(index->args[1], &out->quotient)) {
		index = index->args[0];
		use->shift[at] = out->quotient >= 1 && index->kind == EXPR_VAR ? 0 : -1;
		return use->shift[at] == 0;
	}
	out->quotient = 1;
	if (index->kind == EXPR_VAR)
		return true;
	use->shift[at] = -1;
	if (!expr_linear_in(solver->pool, index, space->vars[dim], &coefficient, &rest) ||
	    coefficient != 1 || !rest->is_index)
		return false;
	use->shift[at] = expr_divisor(rest);
	if (use->shift[at] % extent != 0 || out->extent % extent != 0)
		return false;
	use->blocks[at] = out->extent / extent;
	out->extent = extent;
	return true;
}

/* One part of the index. */
static bool describe_dim(struct solver *solver, const struct space *space, struct use *use,
                         uint32_t d)
{
	const struct expr *index = use->index[d];
	int64_t extent = buffer_extent(use->buffer, d);
	int dim = dim_of(space, index);

	use->dims[d] = (struct projection){ -1, 1, extent };
	use->blocks[d] = 1;
	if (dim < NO_DIM || is_let(space, index)) {
		use->shift[d] = -1;
		return false;
	}
	if (dim >= 0)
		return plain_in(solver, space, dim, use, d);
	use->dims[d].extent = 1;
	use->blocks[d] = extent;
	return true;
}

/* index[d] as a number whose digits are variables of the space: g * 16 + j with j below 16. */
static bool find_digits(struct solver *solver, const struct space *space, struct use *use)
{
	struct place_in_index *places = use->digits;

	for (uint32_t s = 0; s < space->rank; s++)
		places[s] = (struct place_in_index){ NO_DIM, 1, false };
	for (uint32_t d = 0; d < use->buffer->rank; d++) {
		const struct expr *rest = use->index[d];
		int64_t left = buffer_extent(use->buffer, d), factor, zero;

		for (uint32_t s = 0; s < space->rank; s++) {
			if (!expr_uses(rest, space->vars[s]))
				continue;
			if (places[s].dim != NO_DIM ||
			    !expr_linear_in(solver->pool, rest, space->vars[s], &factor, &rest) || factor < 1 ||
			    factor * space->shape[s] != left)
				return false;
			places[s] =
				(struct place_in_index){ (int)d, factor, left == buffer_extent(use->buffer, d) };
			left = factor;
		}
		if (left != 1 || !expr_is_int(rest, &zero) || zero != 0)
			return false;
	}
	for (uint32_t s = 0; s < space->rank; s++)
		if (places[s].dim == NO_DIM && space->shape[s] > 1)
			return false;
	return true;
}

void solve_describe_fragment(struct solver *solver, const struct space *space, struct use *use)
{
	use->is_plain = true;
	for (uint32_t d = 0; d < use->buffer->rank; d++) {
		if (!describe_dim(solver, space, use, d))
			use->is_plain = false;
		for (uint32_t k = 0; k < d; k++)
			if (use->dims[k].source_dim == use->dims[d].source_dim && use->dims[d].source_dim >= 0)
				use->is_plain = false;
	}
	use->is_number = !use->is_plain && find_digits(solver, space, use);
}

bool solve_sets_all(const struct space *space, const struct use *use)
{
	if (!use->is_store || use->is_load || use->is_conditional || !use->is_plain)
		return false;
	for (uint32_t d = 0; d < use->buffer->rank; d++) {
		const struct projection *dim = &use->dims[d];

		if (use->blocks[d] > 1 ||
		    (dim->source_dim >= 0 && space->shape[dim->source_dim] < dim->extent * dim->quotient))
			return false;
	}
	return true;
}

/* ---- from the partition to the fragment ---- */

/* What dimension d's digits tell apart, from 1 up. */
static int64_t reach_of(const struct layout *layout, uint32_t d)
{
	int64_t reach = 1;

	for (uint32_t i = 0; i < layout->n_digits; i++)
		if (layout->digits[i].dim == (int)d &&
		    layout->digits[i].div * layout->digits[i].extent > reach)
			reach = layout->digits[i].div * layout->digits[i].extent;
	return reach;
}

/* The fragment whose dimensions are `blocks` times those of `low`; every thread holds all blocks,
 * the last dimension's side by side. */
static const struct layout *with_blocks(struct solver *solver, const struct layout *low,
                                        const struct use *use)
{
	int64_t shape[MAX_RANK], stride = low->n_slots;
	struct layout *out;

	for (uint32_t d = 0; d < low->rank; d++)
		shape[d] = low->shape[d] * use->blocks[d];
	out = layout_new_fragment(solver->arena, low->rank, shape);
	for (uint32_t i = 0; i < low->n_digits; i++)
		layout_add_digit(out, low->digits[i]);
	for (uint32_t d = low->rank; d-- > 0;) {
		if (use->blocks[d] == 1)
			continue;
		if (reach_of(low, d) != low->shape[d] || out->n_digits == MAX_DIGITS)
			return NULL;
		layout_add_digit(
			out, (struct digit){ (int)d, low->shape[d], use->blocks[d], AXIS_SLOT, stride });
		stride *= use->blocks[d];
	}
	layout_finish(out);
	return out;
}

static bool has_blocks(const struct use *use)
{
	for (uint32_t d = 0; d < use->buffer->rank; d++)
		if (use->blocks[d] > 1)
			return true;
	return false;
}

/* The fragment whose elements are the partition's iterations, under another shape. */
static const struct layout *as_number(struct solver *solver, const struct layout *partition,
                                      const struct use *use)
{
	struct projection dims[MAX_RANK];
	int64_t shape[MAX_RANK];
	struct layout *out;

	for (uint32_t d = 0; d < use->buffer->rank; d++) {
		shape[d] = buffer_extent(use->buffer, d);
		dims[d] = (struct projection){ (int)d, 1, shape[d] };
	}
	out = layout_new_fragment(solver->arena, use->buffer->rank, shape);
	for (uint32_t i = 0; i < partition->n_digits; i++) {
		struct digit digit = partition->digits[i];

		if (digit.dim != DIM_REPLICA) {
			const struct place_in_index *place = &use->digits[digit.dim];

			if (place->dim == NO_DIM ||
			    (!place->is_top && digit.div * digit.extent > partition->shape[digit.dim]))
				return NULL;
			digit.dim = place->dim;
			digit.div *= place->factor;
		}
		layout_add_digit(out, digit);
	}
	layout_finish(out);
	return solve_project(solver, out, out->rank, dims);
}

const struct layout *solve_seen_through(struct solver *solver, const struct layout *partition,
                                        const struct use *use)
{
	const struct layout *low;

	if (use->is_number && !partition->table_threads)
		return as_number(solver, partition, use);
	if (!use->is_plain || partition->table_threads)
		return NULL;
	low = solve_project(solver, partition, use->buffer->rank, use->dims);
	return low && has_blocks(use) ? with_blocks(solver, low, use) : low;
}

/* ---- from the fragment to the partition ---- */

/* Does the fragment's thread depend on index[d] only as long as `shift` does not change it? */
static bool is_periodic(const struct layout *fragment, uint32_t d, int64_t shift)
{
	for (uint32_t i = 0; i < fragment->n_digits; i++) {
		const struct digit *digit = &fragment->digits[i];

		if (digit->dim == (int)d && digit->axis == AXIS_THREAD &&
		    shift % (digit->div * digit->extent) != 0)
			return false;
	}
	return true;
}

/* A thread digit of the dimension above `div`: without what lies between there is a hole. */
static bool has_thread_above(const struct layout *layout, int dim, int64_t div)
{
	for (uint32_t i = 0; i < layout->n_digits; i++)
		if (layout->digits[i].dim == dim && layout->digits[i].axis == AXIS_THREAD &&
		    layout->digits[i].div > div)
			return true;
	return false;
}

const struct layout *solve_without_blocks(struct solver *solver, const struct layout *fragment,
                                          const struct use *use)
{
	struct projection dims[MAX_RANK];
	struct layout *low;
	int64_t shape[MAX_RANK];

	if (!has_blocks(use))
		return fragment;
	for (uint32_t d = 0; d < fragment->rank; d++) {
		shape[d] = use->dims[d].extent;
		dims[d] = (struct projection){ (int)d, 1, shape[d] };
	}
	low = layout_new_fragment(solver->arena, fragment->rank, shape);
	for (uint32_t i = 0; i < fragment->n_digits; i++) {
		const struct digit *digit = &fragment->digits[i];
		bool is_block = digit->dim != DIM_REPLICA && use->blocks[digit->dim] > 1 &&
		                digit->div >= shape[digit->dim];

		if (is_block && digit->axis == AXIS_THREAD)
			return NULL;
		if (!is_block)
			layout_add_digit(low, *digit);
	}
	layout_finish(low);
	return solve_project(solver, low, low->rank, dims);
}

/* The fragment without the slot digits that are 0 for all indices of a space of `shape`; the others
 * close up when layout_project packs them. */
static const struct layout *without_high_slots(struct solver *solver, const struct layout *fragment,
                                               const struct projection *dims, uint32_t rank)
{
	struct layout *out = layout_new_fragment(solver->arena, fragment->rank, fragment->shape);

	for (uint32_t i = 0; i < fragment->n_digits; i++) {
		struct digit digit = fragment->digits[i];
		int64_t extent = INT64_MAX;

		for (uint32_t d = 0; d < rank; d++)
			if (dims[d].source_dim == digit.dim && dims[d].extent < fragment->shape[digit.dim])
				extent = dims[d].extent;
		bool is_last = !has_thread_above(fragment, digit.dim, digit.div);

		if (digit.axis == AXIS_SLOT && digit.div >= extent && is_last)
			continue;
		if (digit.axis == AXIS_SLOT && digit.extent > (extent - 1) / digit.div + 1 && is_last)
			digit.extent = (extent - 1) / digit.div + 1;
		layout_add_digit(out, digit);
	}
	layout_finish(out);
	return out;
}

/* The dimension of the fragment that tells dimension `dim` of the space apart; NO_DIM when none
 * does. */
static int source_of(const struct use *use, const struct layout *fragment, int dim)
{
	for (uint32_t k = 0; k < use->buffer->rank; k++) {
		bool is_shifted = use->shift[k] != 0 && !is_periodic(fragment, k, use->shift[k]);

		if (use->dims[k].source_dim == dim && use->dims[k].quotient == 1 && !is_shifted)
			return (int)k;
	}
	return NO_DIM;
}

/* Every part of the index is plain, or a variable with something added. */
static bool can_dictate(const struct use *use)
{
	for (uint32_t d = 0; d < use->buffer->rank; d++)
		if (use->shift[d] < 0)
			return false;
	return true;
}

/* ---- several variables in one part of the index ---- */

/* The part of a fragment's digit that lies in a variable's; false when it is cut with a remainder.
 * What reaches beyond the shape goes to the highest variable. */
static bool add_part(struct layout *out, const struct digit *digit, int dim,
                     const struct place_in_index *place)
{
	int64_t factor = place->factor;
	int64_t end = digit->div * digit->extent, last = place->is_top ? end : factor * out->shape[dim];
	int64_t low = digit->div > factor ? digit->div : factor, high = end < last ? end : last;

	if (high <= low)
		return true;
	if (low % digit->div != 0 || low % factor != 0 || high % low != 0)
		return false;
	if (out->n_digits == MAX_DIGITS)
		return false;
	layout_add_digit(out, (struct digit){ dim, low / factor, high / low, digit->axis,
	                                      digit->stride * (low / digit->div) });
	return true;
}

/* The partition whose iterations are the fragment's elements, under another shape. */
static const struct layout *reshaped(struct solver *solver, const struct space *space,
                                     const struct use *use, const struct layout *fragment)
{
	const struct place_in_index *places = use->digits;
	struct projection dims[MAX_RANK];
	struct layout *out;

	if (fragment->table_threads || !use->is_number)
		return NULL;
	out = layout_new_fragment(solver->arena, space->rank, space->shape);
	for (uint32_t i = 0; i < fragment->n_digits; i++) {
		const struct digit *digit = &fragment->digits[i];

		if (digit->dim == DIM_REPLICA)
			layout_add_digit(out, *digit);
		for (uint32_t s = 0; s < space->rank; s++)
			if (digit->dim != DIM_REPLICA && places[s].dim == digit->dim &&
			    !add_part(out, digit, (int)s, &places[s]))
				return NULL;
	}
	layout_finish(out);
	for (uint32_t s = 0; s < space->rank; s++)
		dims[s] = (struct projection){ (int)s, 1, space->shape[s] };
	return solve_project(solver, out, space->rank, dims);
}

static const struct layout *partition_from(struct solver *solver, const struct space *space,
                                           const struct use *use, const struct layout *fragment)
{
	struct projection dims[MAX_RANK];

	if (!can_dictate(use))
		return reshaped(solver, space, use, fragment);
	if (fragment->table_threads)
		return NULL;
	for (uint32_t d = 0; d < space->rank; d++) {
		dims[d] = (struct projection){ source_of(use, fragment, (int)d), 1, space->shape[d] };
		if (dims[d].source_dim == NO_DIM && space->shape[d] > 1)
			return NULL;
	}
	return solve_project(solver, without_high_slots(solver, fragment, dims, space->rank),
	                     space->rank, dims);
}

const struct layout *solve_partition_from(struct solver *solver, const struct space *space,
                                          const struct use *use, const struct layout *fragment)
{
	const struct layout *partition = partition_from(solver, space, use, fragment);

	/* Threads must know their iterations: an annotated fragment may leave threads out. */
	return partition && layout_has_inverse(partition) ? partition : NULL;
}
