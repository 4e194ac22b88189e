/*
 * Fitting digits: along each dimension, with all others at 0, the values rise by one stride up to
 * some extent, there the next digit begins, and so on. What was read off the axes is then compared
 * with the whole table. Example: 0 1 64 65 128 129 is i%2 + i/2*64.
 */
#include "analyzer/layout/fit.h"

#include "analyzer/layout/f2.h"

#include <assert.h>

/* One axis of a table, with the dimensions in the order of its row-major numbering. */
struct column {
	const int64_t *values;
	enum layout_axis axis;
	struct xor_term term; /* taken off the values; n_bits 0: none */
};

static int64_t column_at(const struct column *column, int64_t number)
{
	int64_t value = column->values[number];
	int64_t mask = ((int64_t)1 << column->term.n_bits) - 1;

	return value ^ (((value >> column->term.from_bit) & mask) << column->term.to_bit);
}

/* Digits of the dimension whose steps are `step` numbers apart. */
static bool fit_dimension(const struct column *column, int dim, int64_t extent, int64_t step,
                          struct layout *out)
{
	for (int64_t div = 1; div < extent;) {
		int64_t stride = column_at(column, div * step), n = 2;

		while (n * div < extent && column_at(column, n * div * step) == n * stride)
			n++;
		if (stride < 0 || out->n_digits == MAX_DIGITS)
			return false;
		if (stride > 0)
			layout_add_digit(out, (struct digit){ dim, div, n, column->axis, stride });
		div *= n;
	}
	return true;
}

/* All dimensions and the replicas. */
static bool fit_column(const struct column *column, const struct layout *table, struct layout *out)
{
	int64_t step = 1;

	if (column_at(column, 0) != 0)
		return false;
	for (uint32_t d = table->rank; d-- > 0;) {
		if (!fit_dimension(column, (int)d, table->shape[d], step, out))
			return false;
		step *= table->shape[d];
	}
	return fit_dimension(column, DIM_REPLICA, table->n_replicas, step, out);
}

static struct layout *empty_like(struct arena *arena, const struct layout *table)
{
	if (table->kind == LAYOUT_FRAGMENT)
		return layout_new_fragment(arena, table->rank, table->shape);
	return layout_new_memory(arena, table->rank, table->shape, table->elem_bits);
}

static bool same_everywhere(const struct layout *a, const struct layout *b)
{
	int64_t index[MAX_RANK] = { 0 };

	if (a->n_replicas != b->n_replicas)
		return false;
	do
		for (int64_t r = 0; r < a->n_replicas; r++) {
			struct place p = layout_at(a, index, r), q = layout_at(b, index, r);

			if (p.thread != q.thread || p.slot != q.slot || p.offset != q.offset)
				return false;
		}
	while (layout_next_index(a, index));
	return true;
}

static struct layout *fit_memory(struct arena *arena, const struct layout *table,
                                 struct xor_term term)
{
	struct layout *out = empty_like(arena, table);
	struct column column = { table->table, AXIS_OFFSET, term };

	if (!fit_column(&column, table, out))
		return NULL;
	if (term.n_bits > 0)
		out->xors[out->n_xors++] = term;
	layout_finish(out);
	return same_everywhere(out, table) ? out : NULL;
}

static struct layout *fit_fragment(struct arena *arena, const struct layout *table)
{
	struct layout *out = empty_like(arena, table);
	struct column threads = { table->table_threads, AXIS_THREAD, { 0 } };
	struct column slots = { table->table_slots, AXIS_SLOT, { 0 } };

	if (!fit_column(&threads, table, out) || !fit_column(&slots, table, out))
		return NULL;
	layout_finish(out);
	return same_everywhere(out, table) ? out : NULL;
}

static struct layout *fit_swizzle(struct arena *arena, const struct layout *table)
{
	int top = 64 - __builtin_clzll((uint64_t)table->n_bytes);

	for (int n = 5; n >= 1; n--)
		for (int to = 0; to + n <= 7; to++)
			for (int from = to + n; from + n <= top; from++) {
				struct xor_term term = { (uint8_t)from, (uint8_t)to, (uint8_t)n };
				struct layout *layout = fit_memory(arena, table, term);

				if (layout)
					return layout;
			}
	return NULL;
}

struct layout *layout_fit(struct arena *arena, const struct layout *table)
{
	struct layout *layout;
	struct f2_map map;

	assert(table->table || table->table_threads);
	if (table->kind == LAYOUT_FRAGMENT)
		return fit_fragment(arena, table);
	layout = fit_memory(arena, table, (struct xor_term){ 0 });
	if (layout)
		return layout;
	if (f2_from_layout(table, &map, NULL)) {
		layout = f2_to_memory(arena, table->shape, table->rank, table->elem_bits, &map);
		if (!layout->table)
			return layout;
	}
	return fit_swizzle(arena, table);
}
