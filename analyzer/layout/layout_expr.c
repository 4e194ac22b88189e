/*
 * Layouts as expressions: an axis from an index (where does element (i, j) live), and the inverse
 * (which element does slot s of thread t hold).
 *
 * The inverse reads each digit off its axis, value = (axis / stride) % extent, and adds value * div
 * to its dimension; the pool's simplifier removes the divisions that ranges decide. Example, 229
 * elements over 128 threads:
 *
 *     fragment (229) thread = i%128, slot = i/128        gives  i = thread + slot*128,  guard
 * thread + slot*128 < 229
 */
#include "analyzer/layout/layout.h"

#include <assert.h>

static int64_t max_of(const struct layout *layout, enum layout_axis axis)
{
	return axis == AXIS_THREAD ? layout->n_threads - 1 : layout->n_slots - 1;
}

/* The digit's value in the axis expression `at`; the highest digit of the axis needs no modulo. */
static const struct expr *digit_expr(struct expr_pool *pool, const struct layout *layout,
                                     const struct digit *digit, const struct expr *at)
{
	const struct expr *value = expr_div_int(pool, at, digit->stride);

	if (digit->stride * digit->extent > max_of(layout, digit->axis))
		return value;
	return expr_mod_int(pool, value, digit->extent);
}

/* Every digit's stride times extent is the next stride of its axis (digits are sorted: axis, stride
 * descending). */
static bool axes_are_compact(const struct layout *layout)
{
	int64_t next[N_LAYOUT_AXES] = { 1, 1, 1 };

	for (uint32_t i = layout->n_digits; i-- > 0;) {
		const struct digit *digit = &layout->digits[i];

		if (digit->stride != next[digit->axis])
			return false;
		next[digit->axis] = digit->stride * digit->extent;
	}
	return true;
}

/* The digits of each dimension are a mixed radix without gaps or overlaps. */
static bool dims_are_compact(const struct layout *layout)
{
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];
		bool follows = digit->div == 1;

		for (uint32_t k = 0; k < layout->n_digits; k++) {
			const struct digit *below = &layout->digits[k];

			if (below->dim == digit->dim && below->div * below->extent == digit->div)
				follows = true;
			if (k != i && below->dim == digit->dim && below->div == digit->div)
				return false;
		}
		if (!follows)
			return false;
	}
	return true;
}

static int64_t dim_reach(const struct layout *layout, uint32_t dim)
{
	int64_t reach = 1;

	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];

		if (digit->dim == (int)dim && digit->div * digit->extent > reach)
			reach = digit->div * digit->extent;
	}
	return reach;
}

/* NULL when `a` < limit always holds. */
static const struct expr *below(struct expr_pool *pool, const struct expr *a, int64_t limit)
{
	const struct expr *condition = expr_lt(pool, a, expr_int(pool, limit));

	return expr_is_true(condition) ? NULL : condition;
}

/* Has the inverse a form without a table? */
static bool is_compact(const struct layout *layout)
{
	if (layout->table_threads || !axes_are_compact(layout) || !dims_are_compact(layout))
		return false;
	for (uint32_t d = 0; d < layout->rank; d++)
		if (dim_reach(layout, d) < layout->shape[d])
			return false;
	return true;
}

enum { MAX_PLACES = 1 << 20 };

bool layout_has_inverse(const struct layout *layout)
{
	return layout->n_threads * layout->n_slots <= MAX_PLACES || is_compact(layout);
}

/* The element of each (thread, slot), row-major; -1 where there is none. NULL beyond the limit. */
static const int64_t *elements_of_places(struct expr_pool *pool, const struct layout *layout)
{
	int64_t n = layout->n_threads * layout->n_slots, element = 0, index[MAX_RANK] = { 0 };
	int64_t *elements;

	if (n > MAX_PLACES)
		return NULL;
	elements = arena_array(expr_pool_arena(pool), int64_t, (size_t)n);
	for (int64_t i = 0; i < n; i++)
		elements[i] = -1;
	do {
		for (int64_t r = 0; r < layout->n_replicas; r++) {
			struct place place = layout_at(layout, index, r);
			int64_t *at = &elements[place.thread * layout->n_slots + place.slot];

			if (*at < 0)
				*at = element;
		}
		element++;
	} while (layout_next_index(layout, index));
	return elements;
}

/* Layouts with gaps between threads, or without digits: the element is looked up. */
static bool inverse_by_table(struct expr_pool *pool, const struct layout *layout,
                             struct thread_slot at, const struct expr **index,
                             const struct expr **guard)
{
	const int64_t *elements = elements_of_places(pool, layout);
	int64_t n = layout->n_threads * layout->n_slots, below_dim = 1;
	const struct expr *element;

	if (!elements)
		return false;
	element = expr_table(pool, expr_new_table(pool, elements, (uint64_t)n),
	                     expr_add(pool, expr_mul_int(pool, at.thread, layout->n_slots), at.slot));
	*guard = expr_and(pool, below(pool, at.thread, layout->n_threads),
	                  below(pool, at.slot, layout->n_slots));
	*guard = expr_and(pool, *guard, expr_lt(pool, expr_int(pool, -1), element));
	for (uint32_t d = layout->rank; d-- > 0; below_dim *= layout->shape[d])
		index[d] = expr_mod_int(pool, expr_div_int(pool, element, below_dim), layout->shape[d]);
	return true;
}

bool layout_inverse_expr(struct expr_pool *pool, const struct layout *layout, struct thread_slot at,
                         const struct expr **index, const struct expr **guard)
{
	assert(layout->kind == LAYOUT_FRAGMENT);
	if (!is_compact(layout))
		return inverse_by_table(pool, layout, at, index, guard);
	*guard = below(pool, at.thread, layout->n_threads);
	*guard = expr_and(pool, *guard, below(pool, at.slot, layout->n_slots));
	for (uint32_t d = 0; d < layout->rank; d++) {
		int64_t reach = dim_reach(layout, d);

		index[d] = expr_int(pool, 0);
		for (uint32_t i = 0; i < layout->n_digits; i++) {
			const struct digit *digit = &layout->digits[i];
			const struct expr *value;

			if (digit->dim != (int)d)
				continue;
			value =
				digit_expr(pool, layout, digit, digit->axis == AXIS_THREAD ? at.thread : at.slot);
			index[d] = expr_add(pool, index[d], expr_mul_int(pool, value, digit->div));
		}
		if (reach > layout->shape[d])
			*guard = expr_and(pool, *guard, below(pool, index[d], layout->shape[d]));
	}
	return true;
}

const struct expr *layout_replica_expr(struct expr_pool *pool, const struct layout *layout,
                                       const struct expr *thread)
{
	const struct expr *replica = expr_int(pool, 0);

	assert(layout->kind == LAYOUT_FRAGMENT);
	if (layout->n_replicas == 1)
		return NULL;
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];

		if (digit->dim != DIM_REPLICA)
			continue;
		assert(digit->axis == AXIS_THREAD);
		replica = expr_add(pool, replica,
		                   expr_mul_int(pool, digit_expr(pool, layout, digit, thread), digit->div));
	}
	return replica;
}

static const struct expr *row_major_expr(struct expr_pool *pool, const struct layout *layout,
                                         const struct expr *const *index,
                                         const struct expr *replica)
{
	const struct expr *number = replica && layout->n_replicas > 1 ? replica : expr_int(pool, 0);

	for (uint32_t d = 0; d < layout->rank; d++)
		number = expr_add(pool, expr_mul_int(pool, number, layout->shape[d]), index[d]);
	return number;
}

static const struct expr *table_expr(struct expr_pool *pool, const struct layout *layout,
                                     const int64_t *values, const struct expr *number)
{
	uint64_t n = (uint64_t)layout->n_replicas;

	for (uint32_t d = 0; d < layout->rank; d++)
		n *= (uint64_t)layout->shape[d];
	return expr_table(pool, expr_new_table(pool, values, n), number);
}

static const struct expr *xor_expr(struct expr_pool *pool, const struct xor_term *term,
                                   const struct expr *offset)
{
	const struct expr *bits = expr_div_int(pool, offset, (int64_t)1 << term->from_bit);

	bits = expr_mod_int(pool, bits, (int64_t)1 << term->n_bits);
	return expr_xor(pool, offset, expr_mul_int(pool, bits, (int64_t)1 << term->to_bit));
}

const struct expr *layout_axis_expr(struct expr_pool *pool, const struct layout *layout,
                                    enum layout_axis axis, const struct expr *const *index,
                                    const struct expr *replica)
{
	const struct expr *sum = expr_int(pool, 0);

	if (layout->table)
		return table_expr(pool, layout, layout->table, row_major_expr(pool, layout, index, NULL));
	if (layout->table_threads)
		return table_expr(pool, layout,
		                  axis == AXIS_THREAD ? layout->table_threads : layout->table_slots,
		                  row_major_expr(pool, layout, index, replica));
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];
		const struct expr *value;
		int64_t extent = digit->dim == DIM_REPLICA ? layout->n_replicas : layout->shape[digit->dim];

		if (digit->axis != axis || (digit->dim == DIM_REPLICA && !replica))
			continue;
		value = digit->dim == DIM_REPLICA ? replica : index[digit->dim];
		value = expr_div_int(pool, value, digit->div);
		if (digit->div * digit->extent < extent)
			value = expr_mod_int(pool, value, digit->extent);
		sum = expr_add(pool, sum, expr_mul_int(pool, value, digit->stride));
	}
	for (uint32_t x = 0; axis == AXIS_OFFSET && x < layout->n_xors; x++)
		sum = xor_expr(pool, &layout->xors[x], sum);
	return sum;
}
