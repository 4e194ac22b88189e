#include "sim/compare.h"

#include <assert.h>
#include <math.h>
#include <string.h>

double compare_tolerance(struct dtype type)
{
	switch ((enum type_kind)type.kind) {
	case TYPE_FLOAT:
		return type.bits == 16 ? 1e-2 : type.bits == 32 ? 1e-4 : 1e-10;
	case TYPE_BFLOAT:
		return 2e-2;
	case TYPE_TFLOAT:
		return 1e-4;
	case TYPE_FLOAT8_E4M3:
	case TYPE_FLOAT8_E5M2:
	case TYPE_FLOAT4_E2M1:
		return 1e-1;
	case TYPE_VOID:
	case TYPE_BOOL:
	case TYPE_INT:
	case TYPE_UINT:
	case TYPE_HANDLE:
		return 0.0;
	}
	return 0.0;
}

static uint64_t bits_at(const struct tensor *tensor, int64_t element)
{
	uint64_t bits = 0;

	memcpy(&bits, tensor->bytes + element * tensor->elem_bytes, tensor->elem_bytes);
	return bits;
}

/*
 * |got - want|: 0 for equal infinities and two NaNs, infinite when only one side is finite or a
 * number.
 */
static double difference(double got, double want)
{
	if (isnan(got) && isnan(want))
		return 0.0;
	if (isnan(got) || isnan(want))
		return (double)INFINITY;
	return got == want ? 0.0 : fabs(got - want);
}

static double number_of(struct dtype type, union cell cell)
{
	return dtype_is_float(type) ? cell.f : (double)cell.i;
}

/* Both sides of an element that the reference stored. */
static void compare_element(struct comparison *comparison, const struct tensor *got, int64_t e,
                            union cell want_cell, double *largest)
{
	struct dtype type = got->buffer->type;
	union cell got_cell = cell_decode(type, bits_at(got, e));
	double got_value = number_of(type, got_cell), want = number_of(type, want_cell), error;

	if (dtype_is_float(type))
		want = number_of(type, cell_convert(want_cell, true, type, false));
	error = difference(got_value, want);
	if (!dtype_is_float(type) && error == 0.0 && got_cell.i != want_cell.i)
		error = 1.0;
	comparison->n_compared++;
	if (isfinite(want) && fabs(want) > *largest)
		*largest = fabs(want);
	if (error <= comparison->max_abs && comparison->worst >= 0)
		return;
	comparison->max_abs = error;
	comparison->worst = e;
	comparison->got = got_value;
	comparison->want = want;
}

static void note_stray(struct comparison *comparison, const struct tensor *got,
                       const struct tensor *before, int64_t e)
{
	struct dtype type = got->buffer->type;

	if (bits_at(got, e) == bits_at(before, e))
		return;
	if (!comparison->n_stray++) {
		comparison->worst = e;
		comparison->got = number_of(type, cell_decode(type, bits_at(got, e)));
		comparison->want = number_of(type, cell_decode(type, bits_at(before, e)));
	}
}

static struct comparison compare_tensor(const struct compare_input *input, uint32_t i)
{
	const struct tensor *got = &input->got->items[i], *before = &input->before->items[i];
	const struct reference_tensor *want = &input->reference->items[i];
	struct comparison comparison = { .tensor = got, .worst = -1 };
	double largest = 0.0;

	for (int64_t e = 0; e < got->n_elems; e++)
		if (want->written[e])
			compare_element(&comparison, got, e, want->cells[e], &largest);
	for (int64_t e = 0; e < got->n_elems && !input->is_partial; e++)
		if (!want->written[e])
			note_stray(&comparison, got, before, e);
	comparison.tolerance =
		input->tolerance >= 0.0 ? input->tolerance : compare_tolerance(got->buffer->type);
	if (comparison.max_abs > 0.0)
		comparison.max_rel = largest > 0.0 ? comparison.max_abs / largest : (double)INFINITY;
	comparison.ok = comparison.max_rel <= comparison.tolerance && comparison.n_stray == 0;
	return comparison;
}

/* Failed before passed, then the larger share of the tolerance. */
static bool is_worse(const struct comparison *a, const struct comparison *b)
{
	if (a->ok != b->ok)
		return !a->ok;
	return a->max_rel * b->tolerance > b->max_rel * a->tolerance;
}

void compare_run(struct arena *arena, const struct compare_input *input, struct comparisons *out)
{
	double max_abs = 0.0, max_rel = 0.0;

	assert(input->got->n == input->before->n && input->got->n == input->reference->n);
	*out = (struct comparisons){ .total = { .ok = true, .worst = -1 } };
	for (uint32_t i = 0; i < input->got->n; i++) {
		struct comparison comparison;
		if (!input->got->items[i].is_written)
			continue;
		comparison = compare_tensor(input, i);
		if (out->items.n == 0 || is_worse(&comparison, &out->total))
			out->total = comparison;
		vec_push(arena, &out->items, comparison);
		max_abs = fmax(max_abs, comparison.max_abs);
		max_rel = fmax(max_rel, comparison.max_rel);
	}
	out->total.max_abs = max_abs;
	out->total.max_rel = max_rel;
}
