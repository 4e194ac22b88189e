/* Extents and offsets of annotated layouts in global memory; their digits. */
#include "analyzer/layout/place_map.h"

#include <assert.h>

enum { MAX_DEPTH = 64 };

/* ---- extents ---- */

/*
 * The largest value of a number of the map; NULL when it cannot be told. Indices run from 0, so
 * that sums, multiples and quotients are largest where the indices are.
 */
static const struct expr *largest(struct expr_pool *pool, const struct buffer *buffer,
                                  const struct expr *e, int depth)
{
	const struct expr *a, *b;
	int64_t min, max, factor;

	if (depth > MAX_DEPTH)
		return NULL;
	if (expr_range(e, &min, &max) && min >= 0 && max < INT32_MAX - 1)
		return expr_int(pool, max);
	for (uint32_t d = 0; e->kind == EXPR_VAR && d < buffer->map->rank; d++)
		if (e->as.var == buffer->map->index[d])
			return expr_add_int(pool, buffer->shape[d], -1);
	if (e->kind != EXPR_BINARY)
		return NULL;
	if (e->as.binary == BIN_ADD) {
		a = largest(pool, buffer, e->args[0], depth + 1);
		b = largest(pool, buffer, e->args[1], depth + 1);
		return a && b ? expr_add(pool, a, b) : NULL;
	}
	if (!expr_is_int(e->args[1], &factor) || factor < 1)
		return NULL;
	a = largest(pool, buffer, e->args[0], depth + 1);
	if (!a || (e->as.binary != BIN_MUL && e->as.binary != BIN_FLOORDIV))
		return NULL;
	return e->as.binary == BIN_MUL ? expr_mul_int(pool, a, factor) : expr_div_int(pool, a, factor);
}

uint32_t place_shape(struct expr_pool *pool, const struct buffer *buffer,
                     const struct expr **extents)
{
	if (!buffer->map) {
		for (uint32_t d = 0; d < buffer->rank; d++)
			extents[d] = buffer->shape[d];
		return buffer->rank;
	}
	for (uint32_t i = 0; i < buffer->map->n; i++) {
		const struct expr *most = largest(pool, buffer, buffer->map->place[i], 0);

		assert(most);
		extents[i] = expr_add_int(pool, most, 1);
	}
	return buffer->map->n;
}

bool place_is_known(struct expr_pool *pool, const struct buffer *buffer)
{
	for (uint32_t i = 0; buffer->map && i < buffer->map->n; i++)
		if (!largest(pool, buffer, buffer->map->place[i], 0))
			return false;
	return true;
}

/* ---- offsets ---- */

uint32_t place_index(struct expr_pool *pool, const struct buffer *buffer,
                     const struct expr *const *index, const struct expr **place)
{
	const struct layout_map *map = buffer->map;
	struct arena *arena = expr_pool_arena(pool);
	struct expr_subst subst = { 0 };

	if (!map) {
		for (uint32_t d = 0; d < buffer->rank; d++)
			place[d] = index[d];
		return buffer->rank;
	}
	for (uint32_t d = 0; d < map->rank; d++)
		map_set(arena, &subst.of_var, map->index[d]->id, (void *)(uintptr_t)index[d]);
	for (uint32_t i = 0; i < map->n; i++)
		place[i] = expr_substitute(pool, map->place[i], &subst);
	return map->n;
}

const struct expr *place_offset(struct expr_pool *pool, const struct buffer *buffer,
                                const struct expr *const *index)
{
	const struct expr *place[MAX_RANK], *extents[MAX_RANK];
	const struct expr *offset = expr_int(pool, 0), *pitch = expr_int(pool, 1);
	uint32_t rank = place_index(pool, buffer, index, place);

	place_shape(pool, buffer, extents);
	for (uint32_t d = rank; d-- > 0;) {
		const struct expr *stride = !buffer->map && buffer->strides[d] ? buffer->strides[d] : pitch;

		offset = expr_add(pool, offset, expr_binary(pool, BIN_MUL, place[d], stride));
		pitch = expr_binary(pool, BIN_MUL, pitch, extents[d]);
	}
	return offset;
}

int64_t place_n_elems(struct expr_pool *pool, const struct buffer *buffer)
{
	const struct expr *extents[MAX_RANK];
	uint32_t rank = place_shape(pool, buffer, extents);
	int64_t n = 1, last = 0, extent, stride;

	for (uint32_t d = rank; d-- > 0;) {
		bool is_strided = !buffer->map && buffer->strides[d];

		stride = n;
		if (!expr_is_int(extents[d], &extent) || extent < 0 ||
		    (is_strided && !expr_is_int(buffer->strides[d], &stride)) ||
		    __builtin_mul_overflow(n, extent, &n))
			return -1;
		last += (extent - 1) * stride;
	}
	return buffer->map || rank == 0 || !buffer->strides[0] ? n : last + 1;
}

/* ---- digits ---- */

/* index[dim] / div % extent; extent 0: all that is left. */
struct part {
	int dim;
	int64_t div, extent;
};

/* Is the expression a digit of one index? */
static bool part_of(const struct layout_map *map, const struct expr *e, int depth, struct part *out)
{
	int64_t n;

	for (uint32_t d = 0; e->kind == EXPR_VAR && d < map->rank; d++)
		if (e->as.var == map->index[d]) {
			*out = (struct part){ (int)d, 1, 0 };
			return true;
		}
	if (e->kind != EXPR_BINARY || depth > MAX_DEPTH || !expr_is_int(e->args[1], &n) || n < 1 ||
	    !part_of(map, e->args[0], depth + 1, out))
		return false;
	if (out->extent % n != 0 || (e->as.binary != BIN_FLOORDIV && e->as.binary != BIN_FLOORMOD))
		return false;
	if (e->as.binary == BIN_FLOORDIV) {
		out->div *= n;
		out->extent /= n;
	} else {
		out->extent = n;
	}
	return true;
}

/* Adds coefficient * e as digits in bytes; false when it has another form. */
static bool add_digits(struct layout *layout, const struct layout_map *map, const struct expr *e,
                       int64_t coefficient)
{
	struct part part;
	int64_t n, rest;

	if (e->kind == EXPR_BINARY && e->as.binary == BIN_ADD)
		return add_digits(layout, map, e->args[0], coefficient) &&
		       add_digits(layout, map, e->args[1], coefficient);
	if (e->kind == EXPR_BINARY && e->as.binary == BIN_MUL && expr_is_int(e->args[1], &n) && n > 0)
		return add_digits(layout, map, e->args[0], coefficient * n);
	if (expr_is_int(e, &n))
		return n == 0;
	if (!part_of(map, e, 0, &part) || layout->n_digits + 1 >= MAX_DIGITS)
		return false;
	rest = (layout->shape[part.dim] + part.div - 1) / part.div;
	if (part.extent == 0 || part.extent > rest)
		part.extent = rest;
	layout_add_digit(layout,
	                 (struct digit){ part.dim, part.div, part.extent, AXIS_OFFSET, coefficient });
	return true;
}

struct layout *place_layout(struct arena *arena, struct expr_pool *pool,
                            const struct buffer *buffer)
{
	const struct expr *extents[MAX_RANK];
	int64_t shape[MAX_RANK], elem_bytes = dtype_bits(buffer->type) / 8, pitch = elem_bytes, extent;
	struct layout *layout;
	uint32_t rank;

	for (uint32_t d = 0; d < buffer->rank; d++) {
		shape[d] = buffer_extent(buffer, d);
		if (shape[d] < 1)
			return NULL;
	}
	if (elem_bytes == 0 || (!buffer->map && (buffer->rank == 0 || !buffer->strides[0])))
		return buffer->map || buffer->rank == 0
		           ? NULL
		           : layout_row_major(arena, buffer->rank, shape, dtype_bits(buffer->type), 0);
	layout = layout_new_memory(arena, buffer->rank, shape, dtype_bits(buffer->type));
	rank = place_shape(pool, buffer, extents);
	for (uint32_t d = rank; d-- > 0;) {
		int64_t stride = 0;

		if (buffer->map && !add_digits(layout, buffer->map, buffer->map->place[d], pitch))
			return NULL;
		if (!buffer->map &&
		    (!buffer->strides[d] || !expr_is_int(buffer->strides[d], &stride) || stride < 0))
			return NULL;
		if (!buffer->map)
			layout_add_digit(
				layout, (struct digit){ (int)d, 1, shape[d], AXIS_OFFSET, stride * elem_bytes });
		if (!expr_is_int(extents[d], &extent))
			return NULL;
		pitch *= extent;
	}
	layout_finish(layout);
	return layout;
}
