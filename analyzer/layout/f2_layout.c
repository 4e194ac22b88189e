/*
 * Layouts as matrices over F2 and back.
 *
 * A matrix M has the form of digits and XOR terms when the columns' leading bits all differ: digit
 * of element bit j is the leading bit of column j, and what the column has below it is XORed from
 * there. The XOR terms are applied lowest target first, so that each reads bits that no earlier
 * term has changed; runs along a diagonal become one term of several bits.
 */
#include "analyzer/layout/f2.h"

#include <assert.h>
#include <string.h>

static int log2_exact(int64_t value)
{
	return value > 0 && (value & (value - 1)) == 0 ? __builtin_ctzll((uint64_t)value) : -1;
}

/* ---- layout to matrix ---- */

/* Bits of the element number; -1 when an extent is no power of two. */
static int number_bits(const struct layout *layout)
{
	int n = 0;

	for (uint32_t d = 0; d < layout->rank; d++) {
		if (log2_exact(layout->shape[d]) < 0)
			return -1;
		n += log2_exact(layout->shape[d]);
	}
	return n;
}

static void unpack_number(const struct layout *layout, uint64_t number, int64_t *index)
{
	for (uint32_t d = layout->rank; d-- > 0;) {
		index[d] = (int64_t)(number & (uint64_t)(layout->shape[d] - 1));
		number >>= log2_exact(layout->shape[d]);
	}
}

static uint64_t place_bits(const struct layout *layout, uint64_t number, int n_bits,
                           uint32_t n_thread_bits)
{
	int64_t index[MAX_RANK];
	struct place place;

	unpack_number(layout, number, index);
	place = layout_at(layout, index, (int64_t)(number >> n_bits));
	if (layout->kind == LAYOUT_MEMORY)
		return (uint64_t)place.offset;
	return (uint64_t)place.thread | (uint64_t)place.slot << n_thread_bits;
}

/* The layout agrees with the matrix everywhere: needed for tables and for strides with several
 * bits. */
static bool agrees(const struct layout *layout, const struct f2_map *map, int n_bits,
                   uint32_t n_thread_bits)
{
	uint64_t gray = 0, image = 0;

	for (uint64_t i = 1; i >> map->n_in == 0; i++) {
		int bit = __builtin_ctzll(i);

		gray ^= (uint64_t)1 << bit;
		image ^= map->columns[bit];
		if (place_bits(layout, gray, n_bits, n_thread_bits) != image)
			return false;
	}
	return true;
}

/* All digits and strides are powers of two and no two digits share bits: linear as it stands. */
static bool is_linear_by_form(const struct layout *layout)
{
	uint64_t used[N_LAYOUT_AXES] = { 0 };

	if (layout->table || layout->table_threads)
		return false;
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];
		uint64_t bits;

		if (log2_exact(digit->div) < 0 || log2_exact(digit->extent) < 0 ||
		    log2_exact(digit->stride) < 0)
			return false;
		bits = (uint64_t)(digit->extent - 1) << log2_exact(digit->stride);
		if (used[digit->axis] & bits)
			return false;
		used[digit->axis] |= bits;
	}
	return true;
}

static uint32_t bit_width(int64_t n)
{
	return n <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll((uint64_t)(n - 1));
}

bool f2_from_layout(const struct layout *layout, struct f2_map *out, uint32_t *n_thread_bits)
{
	int n_bits = number_bits(layout), n_replica_bits = log2_exact(layout->n_replicas);
	uint32_t thread_bits = layout->kind == LAYOUT_FRAGMENT ? bit_width(layout->n_threads) : 0;

	memset(out, 0, sizeof(*out));
	if (n_bits < 0 || n_replica_bits < 0 || n_bits + n_replica_bits > 30 ||
	    (layout->kind == LAYOUT_MEMORY && layout->elem_bits % 8 != 0))
		return false;
	out->n_in = (uint32_t)(n_bits + n_replica_bits);
	out->n_out = layout->kind == LAYOUT_FRAGMENT ? thread_bits + bit_width(layout->n_slots)
	                                             : bit_width(layout->n_bytes);
	for (uint32_t i = 0; i < out->n_in; i++)
		out->columns[i] = place_bits(layout, (uint64_t)1 << i, n_bits, thread_bits);
	if (n_thread_bits)
		*n_thread_bits = thread_bits;
	if (place_bits(layout, 0, n_bits, thread_bits) != 0)
		return false;
	return is_linear_by_form(layout) || agrees(layout, out, n_bits, thread_bits);
}

/* ---- matrix to layout ---- */

/* Dimension and position in it of element bit `bit`. */
static void locate_bit(const int64_t *shape, uint32_t rank, uint32_t bit, struct digit *digit)
{
	for (uint32_t d = rank; d-- > 0;) {
		uint32_t n = (uint32_t)log2_exact(shape[d]);

		if (bit < n) {
			digit->dim = (int)d;
			digit->div = (int64_t)1 << bit;
			digit->extent = 2;
			return;
		}
		bit -= n;
	}
	digit->dim = DIM_REPLICA;
	digit->div = (int64_t)1 << bit;
	digit->extent = 2;
}

static bool shape_is_power(const int64_t *shape, uint32_t rank)
{
	for (uint32_t d = 0; d < rank; d++)
		if (log2_exact(shape[d]) < 0)
			return false;
	return true;
}

/* The XOR terms that turn leading bits into whole columns; false when MAX_XORS are not enough. */
static bool add_xor_terms(struct layout *layout, const struct f2_map *map)
{
	uint64_t rest[F2_MAX_DIM] = { 0 }; /* by leading bit: what is to be XORed from there */

	for (uint32_t i = 0; i < map->n_in; i++) {
		int lead = 63 - __builtin_clzll(map->columns[i]);

		rest[lead] = map->columns[i] ^ (uint64_t)1 << lead;
	}
	for (int to = 0; to < F2_MAX_DIM; to++)
		for (int from = to + 1; from < F2_MAX_DIM; from++) {
			int n = 0;

			while (from + n < F2_MAX_DIM && n < from - to && rest[from + n] >> (to + n) & 1)
				n++;
			if (n == 0)
				continue;
			/* Bits below the run's targets must be done before it changes them. */
			for (int k = 0; k < n; k++)
				if (k > 0 && (rest[to + k] & (((uint64_t)1 << (to + k)) - 1)) != 0)
					n = k;
			if (layout->n_xors == MAX_XORS)
				return false;
			layout->xors[layout->n_xors++] =
				(struct xor_term){ (uint8_t)from, (uint8_t)to, (uint8_t)n };
			for (int k = 0; k < n; k++)
				rest[from + k] &= ~((uint64_t)1 << (to + k));
		}
	return true;
}

static struct layout *table_layout(struct arena *arena, struct layout *layout,
                                   const struct f2_map *map)
{
	int64_t n = (int64_t)1 << map->n_in;
	int64_t *table = arena_array(arena, int64_t, (size_t)n);

	for (int64_t x = 0; x < n; x++)
		table[x] = (int64_t)f2_apply(map, (uint64_t)x);
	layout->table = table;
	layout->n_digits = layout->n_xors = 0;
	layout_finish(layout);
	return layout;
}

struct layout *f2_to_memory(struct arena *arena, const int64_t *shape, uint32_t rank,
                            uint32_t elem_bits, const struct f2_map *map)
{
	struct layout *layout = layout_new_memory(arena, rank, shape, elem_bits);
	struct layout *form = layout_new_memory(arena, rank, shape, elem_bits);
	struct f2_map back;
	uint64_t leads = 0;
	bool ok = map->n_in <= MAX_DIGITS;

	assert(shape_is_power(shape, rank));
	for (uint32_t i = 0; i < map->n_in && ok; i++) {
		uint64_t lead;
		struct digit digit = { .axis = AXIS_OFFSET };

		ok = map->columns[i] != 0;
		if (!ok)
			break;
		lead = (uint64_t)1 << (63 - __builtin_clzll(map->columns[i]));
		ok = (leads & lead) == 0;
		leads |= lead;
		locate_bit(shape, rank, i, &digit);
		digit.stride = (int64_t)lead;
		layout_add_digit(form, digit);
	}
	ok = ok && add_xor_terms(form, map);
	if (ok) {
		layout_finish(form);
		ok = f2_from_layout(form, &back, NULL) &&
		     memcmp(back.columns, map->columns, map->n_in * sizeof(map->columns[0])) == 0;
	}
	return ok ? form : table_layout(arena, layout, map);
}

struct layout *f2_to_fragment(struct arena *arena, const int64_t *shape, uint32_t rank,
                              const struct f2_map *map, uint32_t n_thread_bits)
{
	struct layout *layout = layout_new_fragment(arena, rank, shape);

	if (map->n_in > MAX_DIGITS || !shape_is_power(shape, rank))
		return NULL;
	for (uint32_t i = 0; i < map->n_in; i++) {
		struct digit digit = { 0 };
		int bit;

		if (map->columns[i] == 0)
			continue;
		if ((map->columns[i] & (map->columns[i] - 1)) != 0)
			return NULL;
		bit = __builtin_ctzll(map->columns[i]);
		locate_bit(shape, rank, i, &digit);
		digit.axis = bit < (int)n_thread_bits ? AXIS_THREAD : AXIS_SLOT;
		digit.stride = (int64_t)1 << (bit < (int)n_thread_bits ? bit : bit - (int)n_thread_bits);
		layout_add_digit(layout, digit);
	}
	layout_finish(layout);
	return layout;
}
