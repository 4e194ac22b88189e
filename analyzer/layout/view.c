#include "analyzer/layout/view.h"

#include "analyzer/layout/fit.h"

#include <assert.h>
#include <string.h>

/* Source and view while one is derived from the other. */
struct viewing {
	struct arena *arena;
	const struct layout *source;
	const struct view_form *form;
	int64_t wider;    /* source elements to one of the view; 1: the view's are not wider */
	int64_t narrower; /* view elements to one of the source; 1: the view's are not narrower */
	int64_t unit;     /* on the axis, of a source element: bytes in memory, slots in fragments */
	struct view_torn *torn;
};

static enum layout_axis unit_axis(const struct layout *layout)
{
	return layout->kind == LAYOUT_MEMORY ? AXIS_OFFSET : AXIS_SLOT;
}

static int64_t *place_axis(struct place *place, enum layout_axis axis)
{
	switch (axis) {
	case AXIS_THREAD:
		return &place->thread;
	case AXIS_SLOT:
		return &place->slot;
	case AXIS_OFFSET:
	case N_LAYOUT_AXES:
		break;
	}
	return &place->offset;
}

static struct layout *new_view(const struct viewing *v)
{
	return v->source->kind == LAYOUT_MEMORY
	           ? layout_new_memory(v->arena, v->form->rank, v->form->shape, v->form->bits)
	           : layout_new_fragment(v->arena, v->form->rank, v->form->shape);
}

/* The view takes the memory that the source takes, its padding included. */
static void finish_view(const struct viewing *v, struct layout *out)
{
	layout_finish(out);
	if (out->kind == LAYOUT_MEMORY)
		out->n_bytes = v->source->n_bytes;
	else
		out->n_threads = v->source->n_threads;
}

/* ---- views that cut the last dimension only: digit by digit ---- */

static bool cuts_last_only(const struct viewing *v)
{
	uint32_t last = v->form->rank - 1;

	if (v->form->rank == 0 || v->form->rank != v->source->rank || v->source->table ||
	    v->source->table_threads)
		return false;
	for (uint32_t d = 0; d < last; d++)
		if (v->form->shape[d] != v->source->shape[d])
			return false;
	return v->form->shape[last] * v->wider == v->source->shape[last] * v->narrower;
}

/* XOR terms act on the same bytes; one that reads bits below the source's element, which were all
 * 0, would see those of the view. */
static bool keeps_xors(const struct viewing *v, int64_t view_unit)
{
	int64_t largest = view_unit > v->unit ? view_unit : v->unit;

	for (uint32_t x = 0; x < v->source->n_xors; x++)
		if ((int64_t)1 << v->source->xors[x].to_bit < largest)
			return false;
	return true;
}

static const struct layout *narrow_digits(const struct viewing *v)
{
	enum layout_axis axis = unit_axis(v->source);
	int64_t k = v->narrower, scale = axis == AXIS_SLOT ? k : 1;
	struct layout *out = new_view(v);
	int last = (int)v->form->rank - 1;

	if (!keeps_xors(v, v->unit) || v->source->n_digits == MAX_DIGITS)
		return NULL;
	for (uint32_t i = 0; i < v->source->n_digits; i++) {
		struct digit digit = v->source->digits[i];

		/* Adding a part's number must not carry into the bits that XOR terms act on. */
		if (v->source->n_xors && digit.axis == axis && digit.stride % v->unit != 0)
			return NULL;
		digit.div *= digit.dim == last ? k : 1;
		digit.stride *= digit.axis == axis ? scale : 1;
		layout_add_digit(out, digit);
	}
	layout_add_digit(out, (struct digit){ last, 1, k, axis, v->unit * scale / k });
	memcpy(out->xors, v->source->xors, sizeof(out->xors));
	out->n_xors = v->source->n_xors;
	finish_view(v, out);
	return out;
}

static const struct layout *widen_digits(const struct viewing *v)
{
	enum layout_axis axis = unit_axis(v->source);
	int64_t k = v->wider, scale = axis == AXIS_SLOT ? k : 1, unit = v->unit * k;
	struct layout *out = new_view(v);
	int last = (int)v->form->rank - 1;
	bool found = false;

	if (!keeps_xors(v, unit))
		return NULL;
	for (uint32_t i = 0; i < v->source->n_digits; i++) {
		struct digit digit = v->source->digits[i];

		if (digit.dim == last && digit.div == 1) {
			if (found || digit.axis != axis || digit.extent % k != 0 || digit.stride != v->unit)
				return NULL;
			found = true;
			digit.extent /= k;
			digit.stride = unit;
		} else if ((digit.axis == axis && digit.stride % unit != 0) ||
		           (digit.dim == last && digit.div % k != 0)) {
			return NULL;
		} else if (digit.dim == last) {
			digit.div /= k;
		}
		digit.stride /= digit.axis == axis ? scale : 1;
		layout_add_digit(out, digit);
	}
	memcpy(out->xors, v->source->xors, sizeof(out->xors));
	out->n_xors = v->source->n_xors;
	finish_view(v, out);
	return found ? out : NULL;
}

/* ---- any view: element by element ---- */

/* Where bits of the source's element `number` lie; `part` of `narrower`. */
static struct place source_place(const struct viewing *v, int64_t number, int64_t part,
                                 int64_t replica)
{
	int64_t index[MAX_RANK];
	struct place at;

	for (uint32_t d = v->source->rank; d-- > 0; number /= v->source->shape[d])
		index[d] = number % v->source->shape[d];
	at = layout_at(v->source, index, replica);
	if (v->source->kind == LAYOUT_MEMORY)
		at.offset += part * (v->unit / v->narrower);
	else
		at.slot = at.slot * v->narrower + part;
	return at;
}

/* The place of the view's element; false when it is torn. */
static bool gather(const struct viewing *v, const int64_t *index, int64_t number, int64_t replica,
                   struct place *out)
{
	enum layout_axis axis = unit_axis(v->source);
	int64_t start, part = 0;
	struct place at = { 0 };

	*out = source_place(v, number * v->wider / v->narrower, number % v->narrower, replica);
	start = *place_axis(out, axis);
	for (int64_t p = 1; p < v->wider && part == 0; p++) {
		at = source_place(v, number * v->wider + p, 0, replica);
		if (at.thread != out->thread || *place_axis(&at, axis) != start + p * v->unit)
			part = p;
	}
	if (part == 0 && (v->wider == 1 || start % (v->unit * v->wider) == 0)) {
		if (axis == AXIS_SLOT)
			out->slot /= v->wider;
		return true;
	}
	memcpy(v->torn->index, index, v->form->rank * sizeof(*index));
	v->torn->first = *out;
	v->torn->second = at;
	v->torn->part = part;
	v->torn->part_bits = v->form->bits / v->wider;
	return false;
}

static const struct layout *gather_all(const struct viewing *v)
{
	struct layout *out = new_view(v);
	bool is_memory = v->source->kind == LAYOUT_MEMORY;
	int64_t n = 1, number, index[MAX_RANK] = { 0 }, *a, *b = NULL;
	const struct layout *fitted;

	for (uint32_t d = 0; d < v->form->rank; d++)
		n *= v->form->shape[d];
	a = arena_array(v->arena, int64_t, (size_t)(n * v->source->n_replicas));
	if (!is_memory)
		b = arena_array(v->arena, int64_t, (size_t)(n * v->source->n_replicas));
	for (int64_t r = 0; r < v->source->n_replicas; r++) {
		number = 0;
		do {
			struct place at;

			if (!gather(v, index, number, r, &at))
				return NULL;
			a[r * n + number] = is_memory ? at.offset : at.thread;
			if (b)
				b[r * n + number] = at.slot;
			number++;
		} while (layout_next_index(out, index));
	}
	out->table = is_memory ? a : NULL;
	out->table_threads = is_memory ? NULL : a;
	out->table_slots = b;
	out->n_replicas = v->source->n_replicas;
	finish_view(v, out);
	fitted = layout_fit(v->arena, out);
	if (fitted)
		finish_view(v, (struct layout *)(uintptr_t)fitted);
	return fitted ? fitted : out;
}

const struct layout *layout_view(struct arena *arena, const struct layout *source,
                                 uint32_t source_bits, const struct view_form *form,
                                 struct view_torn *torn)
{
	struct view_torn unused;
	struct viewing v = {
		.arena = arena, .source = source, .form = form, .torn = torn ? torn : &unused
	};
	const struct layout *out = NULL;

	assert(source_bits % form->bits == 0 || form->bits % source_bits == 0);
	v.wider = form->bits > source_bits ? form->bits / source_bits : 1;
	v.narrower = form->bits < source_bits ? source_bits / form->bits : 1;
	v.unit = source->kind == LAYOUT_MEMORY ? source_bits / 8 : 1;
	if (cuts_last_only(&v))
		out = v.wider > 1 ? widen_digits(&v) : narrow_digits(&v);
	return out ? out : gather_all(&v);
}
