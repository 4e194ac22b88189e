/*
 * Layouts as digits: construction, evaluation and the questions that need every element.
 *
 * layout_finish brings the digits into a canonical order (axis, then stride descending), drops
 * digits of one value and joins neighbours, so that two layouts that were built alike are
 * structurally equal. The questions look at structure first and enumerate otherwise: time is
 * elements x replicas x digits.
 *
 *     fragment (16, 8)                        the accumulator of mma.m16n8 (PTX, m16n8k16):
 *         thread = i%8*4 + j/2                lane = group * 4 + thread in group
 *         slot = i/8*2 + j%2                  two rows of two neighbours
 *
 * In the file's order: making, asking for a place, comparing, injectivity and cover, and the names
 * of the common kinds.
 */
#include "analyzer/layout/layout.h"

#include <assert.h>
#include <string.h>

/* ---- making ---- */

/* An empty layout: every element at place 0 until digits are added. */
static struct layout *layout_new(struct arena *arena, enum layout_kind kind, uint32_t rank,
                                 const int64_t *shape)
{
	struct layout *layout = arena_new(arena, struct layout);

	assert(rank <= MAX_RANK);
	layout->kind = kind;
	layout->rank = rank;
	for (uint32_t d = 0; d < rank; d++) {
		assert(shape[d] >= 1);
		layout->shape[d] = shape[d];
	}
	layout->n_replicas = 1;
	return layout;
}

struct layout *layout_new_fragment(struct arena *arena, uint32_t rank, const int64_t *shape)
{
	return layout_new(arena, LAYOUT_FRAGMENT, rank, shape);
}

struct layout *layout_new_memory(struct arena *arena, uint32_t rank, const int64_t *shape,
                                 uint32_t elem_bits)
{
	struct layout *layout = layout_new(arena, LAYOUT_MEMORY, rank, shape);

	layout->elem_bits = elem_bits;
	return layout;
}

/* A digit of one value adds nothing; it is left out, so that MAX_DIGITS bounds what matters. */
void layout_add_digit(struct layout *layout, struct digit digit)
{
	assert(digit.dim == DIM_REPLICA || (digit.dim >= 0 && (uint32_t)digit.dim < layout->rank));
	assert(digit.div >= 1 && digit.extent >= 1 && digit.stride >= 0);
	if (digit.extent == 1)
		return;
	assert(layout->n_digits < MAX_DIGITS);
	layout->digits[layout->n_digits++] = digit;
}

/* Order of digits: axis, stride descending, then dimension and div so that the order is total. */
static bool digit_before(const struct digit *a, const struct digit *b)
{
	if (a->axis != b->axis)
		return a->axis < b->axis;
	if (a->stride != b->stride)
		return a->stride > b->stride;
	if (a->dim != b->dim)
		return a->dim < b->dim;
	return a->div > b->div;
}

/* Insertion: there are at most MAX_DIGITS, mostly in order already. */
static void sort_digits(struct layout *layout)
{
	for (uint32_t i = 1; i < layout->n_digits; i++) {
		struct digit digit = layout->digits[i];
		uint32_t at = i;

		for (; at > 0 && digit_before(&digit, &layout->digits[at - 1]); at--)
			layout->digits[at] = layout->digits[at - 1];
		layout->digits[at] = digit;
	}
}

/*
 * (x/div)%e*s + (x/(div*e))%f*(s*e) is (x/div)%(e*f)*s: joins such pairs. The pair stands side by
 * side, the higher one first, as both have the same axis and the strides follow each other; after a
 * join the digit before may fit the joined one, which is why the walk steps back.
 */
static void join_digits(struct layout *layout)
{
	for (uint32_t i = 0; i + 1 < layout->n_digits;) {
		struct digit *high = &layout->digits[i];
		struct digit *low = high + 1;

		if (high->axis == low->axis && high->dim == low->dim &&
		    high->div == low->div * low->extent && high->stride == low->stride * low->extent) {
			high->div = low->div;
			high->extent *= low->extent;
			high->stride = low->stride;
			layout->n_digits--;
			memmove(low, low + 1, (layout->n_digits - i - 1) * sizeof(*low));
			if (i > 0)
				i--;
		} else {
			i++;
		}
	}
}

/* The largest place, which gives the number of threads, slots or bytes; 0 for an empty table. */
static int64_t table_max(const int64_t *table, int64_t n)
{
	int64_t max = 0;

	for (int64_t i = 0; i < n; i++)
		if (table[i] > max)
			max = table[i];
	return max;
}

static int64_t n_elems(const struct layout *layout)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < layout->rank; d++)
		n *= layout->shape[d];
	return n;
}

/*
 * Elements narrower than a byte (float4, int4) are packed; what asks for bytes then counts places
 * of one byte, each shared by 8 / elem_bits elements.
 */
static int64_t elem_bytes(const struct layout *layout)
{
	return layout->elem_bits < 8 ? 1 : layout->elem_bits / 8;
}

/*
 * Bytes of a memory layout: to the last element's end, and whole rows where rows are padded. An XOR
 * term moves offsets within a block of 2^(to_bit + n_bits) bytes, so that the size is rounded up to
 * it.
 */
static void finish_memory(struct layout *layout, int64_t max_offset)
{
	layout->n_bytes = max_offset + elem_bytes(layout);
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		int64_t end = layout->digits[i].stride * layout->digits[i].extent;

		if (end > layout->n_bytes)
			layout->n_bytes = end;
	}
	for (uint32_t x = 0; x < layout->n_xors; x++) {
		int64_t unit = (int64_t)1 << (layout->xors[x].to_bit + layout->xors[x].n_bits);

		assert(layout->xors[x].from_bit >= layout->xors[x].to_bit + layout->xors[x].n_bits);
		layout->n_bytes = (layout->n_bytes + unit - 1) / unit * unit;
	}
}

/*
 * The extents of the axes follow from the digits: the sum of the largest digit values, plus one. A
 * layout with tables tells its number of replicas itself.
 */
void layout_finish(struct layout *layout)
{
	int64_t max[N_LAYOUT_AXES] = { 0 };

	sort_digits(layout);
	join_digits(layout);
	if (!layout->table_threads)
		layout->n_replicas = 1;
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];

		assert((digit->axis == AXIS_OFFSET) == (layout->kind == LAYOUT_MEMORY));
		max[digit->axis] += (digit->extent - 1) * digit->stride;
		if (digit->dim == DIM_REPLICA && digit->div * digit->extent > layout->n_replicas)
			layout->n_replicas = digit->div * digit->extent;
	}
	if (layout->table_threads) {
		max[AXIS_THREAD] = table_max(layout->table_threads, n_elems(layout) * layout->n_replicas);
		max[AXIS_SLOT] = table_max(layout->table_slots, n_elems(layout) * layout->n_replicas);
	}
	if (layout->table)
		max[AXIS_OFFSET] = table_max(layout->table, n_elems(layout));
	if (layout->kind == LAYOUT_FRAGMENT) {
		layout->n_threads = max[AXIS_THREAD] + 1;
		layout->n_slots = max[AXIS_SLOT] + 1;
	} else {
		finish_memory(layout, max[AXIS_OFFSET]);
	}
}

/* ---- asking ---- */

/* (value / div) % extent; powers of two, the usual case, without dividing. */
static int64_t digit_of(int64_t value, int64_t div, int64_t extent)
{
	if ((div & (div - 1)) == 0)
		value >>= __builtin_ctzll((uint64_t)div);
	else
		value /= div;
	return (extent & (extent - 1)) == 0 ? value & (extent - 1) : value % extent;
}

/*
 * CuTe's swizzle on byte offsets: bits from_bit .. are XORed onto bits to_bit ..
 * (cute/swizzle.hpp).
 */
static int64_t xor_offset(const struct layout *layout, int64_t offset)
{
	for (uint32_t x = 0; x < layout->n_xors; x++) {
		const struct xor_term *term = &layout->xors[x];
		int64_t mask = ((int64_t)1 << term->n_bits) - 1;

		offset ^= ((offset >> term->from_bit) & mask) << term->to_bit;
	}
	return offset;
}

/* The element's place in the tables. */
static int64_t row_major_number(const struct layout *layout, const int64_t *index)
{
	int64_t number = 0;

	for (uint32_t d = 0; d < layout->rank; d++)
		number = number * layout->shape[d] + index[d];
	return number;
}

/* Tables of fragments are ordered replica by replica, each in row-major order of the elements. */
struct place layout_at(const struct layout *layout, const int64_t *index, int64_t replica)
{
	int64_t axes[N_LAYOUT_AXES] = { 0 };

	if (layout->table)
		return (struct place){ 0, 0, layout->table[row_major_number(layout, index)] };
	if (layout->table_threads) {
		int64_t at = replica * n_elems(layout) + row_major_number(layout, index);

		return (struct place){ layout->table_threads[at], layout->table_slots[at], 0 };
	}
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];
		int64_t value = digit->dim == DIM_REPLICA ? replica : index[digit->dim];

		axes[digit->axis] += digit_of(value, digit->div, digit->extent) * digit->stride;
	}
	if (layout->n_xors > 0)
		axes[AXIS_OFFSET] = xor_offset(layout, axes[AXIS_OFFSET]);
	return (struct place){ axes[AXIS_THREAD], axes[AXIS_SLOT], axes[AXIS_OFFSET] };
}

/* The next index in row-major order; false after the last. */
bool layout_next_index(const struct layout *layout, int64_t *index)
{
	for (uint32_t d = layout->rank; d-- > 0;) {
		if (++index[d] < layout->shape[d])
			return true;
		index[d] = 0;
	}
	return false;
}

static bool place_equal(struct place a, struct place b)
{
	return a.thread == b.thread && a.slot == b.slot && a.offset == b.offset;
}

/* Is the place one of the element's replicas? */
static bool has_place(const struct layout *layout, const int64_t *index, struct place place)
{
	for (int64_t r = 0; r < layout->n_replicas; r++)
		if (place_equal(layout_at(layout, index, r), place))
			return true;
	return false;
}

/* Every place of `a`'s element is a place of b's. */
static bool places_within(const struct layout *a, const struct layout *b, const int64_t *index)
{
	for (int64_t r = 0; r < a->n_replicas; r++)
		if (!has_place(b, index, layout_at(a, index, r)))
			return false;
	return true;
}

/*
 * True is final. False says nothing: other digits may give the same map, and tables are not
 * compared.
 */
bool layout_equal_structure(const struct layout *a, const struct layout *b)
{
	if (a->table || b->table || a->table_threads || b->table_threads)
		return false;
	if (a->n_digits != b->n_digits || a->n_xors != b->n_xors || a->n_replicas != b->n_replicas)
		return false;
	for (uint32_t i = 0; i < a->n_digits; i++) {
		const struct digit *x = &a->digits[i], *y = &b->digits[i];

		if (x->dim != y->dim || x->div != y->div || x->extent != y->extent || x->axis != y->axis ||
		    x->stride != y->stride)
			return false;
	}
	return memcmp(a->xors, b->xors, a->n_xors * sizeof(a->xors[0])) == 0;
}

/* Replicas have no order: the same set of places counts as equal. */
static bool element_equal(const struct layout *a, const struct layout *b, const int64_t *index)
{
	if (a->n_replicas == 1 && b->n_replicas == 1)
		return place_equal(layout_at(a, index, 0), layout_at(b, index, 0));
	return places_within(a, b, index) && places_within(b, a, index);
}

/*
 * `index` (may be NULL) gets the first element, in row-major order, that the layouts place
 * differently; zeros when they are layouts of different kinds or shapes.
 */
bool layout_equal(const struct layout *a, const struct layout *b, int64_t *index)
{
	int64_t at[MAX_RANK] = { 0 };

	if (a == b)
		return true;
	if (a->kind != b->kind || a->rank != b->rank ||
	    memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0])) != 0) {
		if (index)
			memset(index, 0, a->rank * sizeof(index[0]));
		return false;
	}
	if (layout_equal_structure(a, b))
		return true;
	do {
		if (!element_equal(a, b, at)) {
			if (index)
				memcpy(index, at, a->rank * sizeof(index[0]));
			return false;
		}
	} while (layout_next_index(a, at));
	return true;
}

int64_t layout_count_differences(const struct layout *a, const struct layout *b)
{
	int64_t at[MAX_RANK] = { 0 };
	int64_t n = 0;

	assert(a->kind == b->kind && a->rank == b->rank);
	do
		n += !element_equal(a, b, at);
	while (layout_next_index(a, at));
	return n;
}

int64_t layout_count_moves(const struct layout *a, const struct layout *b)
{
	int64_t at[MAX_RANK] = { 0 };
	int64_t n = 0;

	assert(a->kind == LAYOUT_FRAGMENT && b->kind == LAYOUT_FRAGMENT && a->rank == b->rank);
	do
		n += layout_at(a, at, 0).thread != layout_at(b, at, 0).thread;
	while (layout_next_index(a, at));
	return n;
}

/* Number of a place among all places. */
static int64_t place_number(const struct layout *layout, struct place place)
{
	if (layout->kind == LAYOUT_FRAGMENT)
		return place.thread * layout->n_slots + place.slot;
	return place.offset / elem_bytes(layout);
}

/* One more in memory: the bytes need not be a whole number of elements. */
static int64_t n_places(const struct layout *layout)
{
	if (layout->kind == LAYOUT_FRAGMENT)
		return layout->n_threads * layout->n_slots;
	return layout->n_bytes / elem_bytes(layout) + 1;
}

/* Writes element number (row-major) and replica as an index of MAX_RANK + 1 entries. */
static void unpack_element(const struct layout *layout, int64_t number, int64_t *index)
{
	int64_t n = n_elems(layout);

	index[DIM_REPLICA] = number / n;
	number %= n;
	for (uint32_t d = layout->rank; d-- > 0;) {
		index[d] = number % layout->shape[d];
		number /= layout->shape[d];
	}
}

/*
 * Digits of an axis, lowest stride first, each stride at least the span of those below. `unit` is
 * the span of one element: 1 thread, 1 slot or its bytes. The canonical order is by stride
 * descending, hence the loop from the end.
 */
static bool axis_is_separated(const struct layout *layout, enum layout_axis axis, int64_t unit)
{
	int64_t span = unit;

	for (uint32_t i = layout->n_digits; i-- > 0;) {
		const struct digit *digit = &layout->digits[i];

		if (digit->axis != axis)
			continue;
		if (digit->stride < span)
			return false;
		span = digit->stride * digit->extent;
	}
	return true;
}

/*
 * Digits of a dimension that leave no gap: every index has its own digit values. `reach` grows over
 * digits that begin at or below it; overlapping digits (i%8 and i/4) do not hurt. At most one step
 * a digit.
 */
static bool dim_is_covered(const struct layout *layout, int dim, int64_t extent)
{
	int64_t reach = 1;

	for (bool grew = true; grew && reach < extent;) {
		grew = false;
		for (uint32_t i = 0; i < layout->n_digits; i++) {
			const struct digit *digit = &layout->digits[i];

			if (digit->dim == dim && digit->div <= reach && digit->div * digit->extent > reach) {
				reach = digit->div * digit->extent;
				grew = true;
			}
		}
	}
	return reach >= extent;
}

/* Injective by structure: no digit overlaps another on its axis, and no value of a dimension is
 * lost. */
static bool is_mixed_radix(const struct layout *layout)
{
	if (layout->table || layout->table_threads || layout->elem_bits % 8 != 0)
		return false;
	for (int axis = 0; axis < N_LAYOUT_AXES; axis++)
		if (!axis_is_separated(layout, axis, axis == AXIS_OFFSET ? elem_bytes(layout) : 1))
			return false;
	for (uint32_t d = 0; d < layout->rank; d++)
		if (!dim_is_covered(layout, (int)d, layout->shape[d]))
			return false;
	return dim_is_covered(layout, DIM_REPLICA, layout->n_replicas);
}

/*
 * Visits all (replica, element) pairs; false at the first place that `owner` (n_places entries, 0
 * free) has already. Elements narrower than a byte share one: neighbours in row-major order may.
 */
static bool claim_places(const struct layout *layout, int64_t *owner, int64_t *first,
                         int64_t *second)
{
	int64_t number = 0;
	int64_t per_place =
		layout->kind == LAYOUT_MEMORY && layout->elem_bits < 8 ? 8 / layout->elem_bits : 1;

	for (int64_t r = 0; r < layout->n_replicas; r++) {
		int64_t index[MAX_RANK] = { 0 };

		do {
			int64_t at = place_number(layout, layout_at(layout, index, r));

			if (owner[at] != 0 && number / per_place != (owner[at] - 1) / per_place) {
				if (first)
					unpack_element(layout, owner[at] - 1, first);
				if (second)
					unpack_element(layout, number, second);
				return false;
			}
			owner[at] = ++number;
		} while (layout_next_index(layout, index));
	}
	return true;
}

/*
 * `first` and `second` (MAX_RANK + 1 entries each, the last is the replica; may be NULL) get two
 * elements in one place. Structure decides for nearly all layouts; otherwise memory is 8 bytes a
 * place.
 */
bool layout_injective(const struct layout *layout, int64_t *first, int64_t *second)
{
	struct arena *scratch;
	bool ok;

	if (is_mixed_radix(layout))
		return true;
	scratch = arena_open();
	ok = claim_places(layout, arena_array(scratch, int64_t, (size_t)n_places(layout)), first,
	                  second);
	arena_close(scratch);
	return ok;
}

/* Counts the places that are taken, a byte of memory each; replicas take one each. */
int64_t layout_idle_places(const struct layout *layout)
{
	struct arena *scratch = arena_open();
	unsigned char *seen = arena_array(scratch, unsigned char, (size_t)n_places(layout));
	int64_t n = 0;

	assert(layout->kind == LAYOUT_FRAGMENT);
	for (int64_t r = 0; r < layout->n_replicas; r++) {
		int64_t index[MAX_RANK] = { 0 };

		do {
			int64_t at = place_number(layout, layout_at(layout, index, r));

			n += !seen[at];
			seen[at] = 1;
		} while (layout_next_index(layout, index));
	}
	arena_close(scratch);
	return n_places(layout) - n;
}

bool layout_covers_places(const struct layout *layout)
{
	return layout_idle_places(layout) == 0;
}

/* Offset digits as row-major with `pitch_bytes` rows: every other stride is a product of extents
 * and the pitch. */
static bool is_row_major(const struct layout *layout, int64_t *pitch_bytes)
{
	int64_t stride = elem_bytes(layout);
	int64_t index[MAX_RANK] = { 0 };

	*pitch_bytes = stride * (layout->rank > 0 ? layout->shape[layout->rank - 1] : 1);
	for (uint32_t d = layout->rank; d-- > 0;) {
		index[d] = 1;
		if (layout->shape[d] > 1 && layout_at(layout, index, 0).offset != stride) {
			int64_t at = layout_at(layout, index, 0).offset;

			if (d + 1 == layout->rank || stride != *pitch_bytes || at < stride)
				return false;
			*pitch_bytes = stride = at;
		}
		index[d] = 0;
		stride *= layout->shape[d];
	}
	/* Whole dimensions only: a digit that splits one is not row-major. */
	for (uint32_t i = 0; i < layout->n_digits; i++)
		if (layout->digits[i].div != 1 && layout->elem_bits >= 8)
			return false;
	return true;
}

/*
 * The words that reports and the data base use. The three swizzles are those of TMA and wgmma's
 * descriptors (PTX, tensors, "Swizzling Modes"): 16-byte units (to_bit 4) of 128-byte rows
 * (from_bit 7) XORed by 1, 2 or 3 bits of the row's number.
 */
const char *layout_kind_text(const struct layout *layout)
{
	static const char *const swizzles[] = { "swizzle32", "swizzle64", "swizzle128" };
	int64_t pitch;

	if (layout->kind == LAYOUT_FRAGMENT)
		return "fragment";
	if (layout->table)
		return "table";
	if (layout->n_xors == 1) {
		const struct xor_term *term = &layout->xors[0];

		if (term->from_bit == 7 && term->to_bit == 4 && term->n_bits >= 1 && term->n_bits <= 3)
			return swizzles[term->n_bits - 1];
		return "other";
	}
	if (layout->n_xors > 0 || !is_row_major(layout, &pitch))
		return "other";
	if (layout->rank > 0 && pitch * 8 != layout->shape[layout->rank - 1] * layout->elem_bits)
		return "padded";
	return "linear";
}
