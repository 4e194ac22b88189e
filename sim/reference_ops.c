/*
 * Tile operations of the reference: each gathers its regions' element numbers and is a plain loop
 * over them.
 */
#include "sim/reference_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Scratch of at least n elements in place of `p`; its contents are lost. */
static void *grow(void *p, size_t *cap, size_t n, size_t elem_bytes)
{
	if (n <= *cap)
		return p;
	free(p);
	*cap = n;
	p = malloc(n * elem_bytes);
	if (!p)
		BUG("out of memory");
	return p;
}

/* One row of a region: `base` is -1 when an outer index is outside. */
static void add_row(struct ref_elems *elems, int64_t base, int64_t min, int64_t extent)
{
	const struct ref_buffer *buffer = elems->buffer;
	uint32_t last = buffer->buffer->rank - 1;

	for (int64_t i = 0; i < extent; i++) {
		int64_t index = min + i;
		bool inside = base >= 0 && index >= 0 && index < buffer->shape[last];
		int64_t at = inside ? base + index * buffer->strides[last] : -1;
		elems->at[elems->n++] = inside && buffer->places ? buffer->places[at] : at;
	}
}

/* The element numbers of a region into scratch list `which`; NULL after a failure. */
static const struct ref_elems *gather(struct ref *ref, const struct region *region, int which)
{
	struct ref_elems *elems = &ref->elems[which];
	uint32_t rank = region->buffer->rank;
	int64_t min[MAX_RANK], index[MAX_RANK] = { 0 }, n = 1, n_outside = 0;

	elems->buffer = &ref->buffers[region->buffer->id];
	for (uint32_t d = 0; d < rank; d++) {
		struct lanes lanes = lane_eval_run(ref->eval, region->min[d]);
		union cell cell;
		if (!ref_agreed(ref, &lanes, "an index", &cell))
			return NULL;
		min[d] = cell.i;
		n *= region->extent[d];
	}
	assert(rank > 0 && n > 0);
	elems->at = grow(elems->at, &elems->cap, (size_t)n, sizeof(*elems->at));
	elems->n = 0;
	while (elems->n < n) {
		int64_t base = 0;
		uint32_t d;
		for (d = 0; d + 1 < rank; d++) {
			int64_t at = min[d] + index[d];
			bool inside = at >= 0 && at < elems->buffer->shape[d];
			base = inside && base >= 0 ? base + at * elems->buffer->strides[d] : -1;
		}
		add_row(elems, base, min[rank - 1], region->extent[rank - 1]);
		for (d = rank - 1; d-- > 0 && ++index[d] == region->extent[d];)
			index[d] = 0;
	}
	for (int64_t i = 0; i < n && region->buffer->scope != SCOPE_GLOBAL; i++)
		n_outside += elems->at[i] < 0;
	for (int64_t i = 0; i < n && elems->buffer->n_copies > 1; i++)
		elems->at[i] += elems->at[i] < 0 ? 0 : ref->thread * elems->buffer->n_elems;
	if (n_outside)
		ref_fail(ref, "%" PRId64 " elements of the region are outside %s", n_outside,
		         sym_text(ref->cx->names, region->buffer->name));
	ref_count(ref, (uint64_t)n);
	return ref->stop ? NULL : elems;
}

static union cell element(const struct ref_elems *elems, int64_t i)
{
	return elems->at[i] < 0 ? elems->buffer->outside : ref_get(elems->buffer, elems->at[i]);
}

static void run_copy(struct ref *ref, const struct op_copy *op)
{
	const struct ref_elems *src = gather(ref, &op->src, 0), *dst = gather(ref, &op->dst, 1);

	if (!src || !dst)
		return;
	if (src->n != dst->n) {
		ref_fail(ref, "the sides of the copy have %" PRId64 " and %" PRId64 " elements", src->n,
		         dst->n);
		return;
	}
	for (int64_t i = 0; i < dst->n; i++)
		if (dst->at[i] >= 0)
			ref_store(dst->buffer, dst->at[i], element(src, i), src->buffer->is_float);
}

/* dst[j, i] = src[i, j]: both lists are in row-major order. */
static void run_transpose(struct ref *ref, const struct op_transpose *op)
{
	const struct ref_elems *src = gather(ref, &op->src, 0), *dst = gather(ref, &op->dst, 1);
	int64_t columns = op->dst.extent[op->dst.buffer->rank - 1], rows;

	if (!src || !dst)
		return;
	assert(src->n == dst->n && columns > 0);
	rows = dst->n / columns;
	for (int64_t i = 0; i < dst->n; i++)
		if (dst->at[i] >= 0)
			ref_store(dst->buffer, dst->at[i], element(src, i % columns * rows + i / columns),
			          src->buffer->is_float);
}

/* One element of a convolution's matrix: 0 in the padding and behind the last window. */
static union cell im2col_element(const struct ref_buffer *image, const struct op_im2col *op,
                                 const int64_t *min, int64_t position, int64_t tap)
{
	int64_t step = op->dilation * (op->kernel - 1) + 1;
	int64_t rows = (image->shape[1] + 2 * op->pad - step) / op->stride + 1;
	int64_t columns = (image->shape[2] + 2 * op->pad - step) / op->stride + 1;
	int64_t channel = tap % image->shape[3], kx = tap / image->shape[3] % op->kernel;
	int64_t ky = tap / image->shape[3] / op->kernel;
	int64_t at[4] = { position / columns / rows,
		              position / columns % rows * op->stride + ky * op->dilation - op->pad,
		              position % columns * op->stride + kx * op->dilation - op->pad, channel };
	int64_t offset = 0;

	if (position < 0 || tap < 0 || ky >= op->kernel)
		return (union cell){ .i = 0 };
	for (uint32_t d = 0; d < 4; d++) {
		int64_t i = at[d] + min[d];
		if (i < 0 || i >= image->shape[d])
			return (union cell){ .i = 0 };
		offset += i * image->strides[d];
	}
	return ref_get(image, image->places ? image->places[offset] : offset);
}

static void run_im2col(struct ref *ref, const struct op_im2col *op)
{
	const struct ref_buffer *image = &ref->buffers[op->src.buffer->id];
	const struct ref_elems *dst = gather(ref, &op->dst, 0);
	const struct expr *scalars[6] = { op->nhw_step,   op->c_step,     op->src.min[0],
		                              op->src.min[1], op->src.min[2], op->src.min[3] };
	int64_t columns = op->dst.extent[op->dst.buffer->rank - 1], values[6];
	int64_t rows = op->dst.extent[op->dst.buffer->rank - 2];

	for (int i = 0; i < 6; i++) {
		struct lanes lanes = lane_eval_run(ref->eval, scalars[i]);
		union cell cell;
		if (!ref_agreed(ref, &lanes, "a step", &cell))
			return;
		values[i] = cell.i;
	}
	for (int64_t i = 0; dst && i < dst->n; i++)
		if (dst->at[i] >= 0)
			ref_store(dst->buffer, dst->at[i],
			          im2col_element(image, op, &values[2], values[0] * rows + i / columns % rows,
			                         values[1] * columns + i % columns),
			          image->is_float);
}

static void run_fill(struct ref *ref, const struct op_fill *op)
{
	const struct ref_elems *dst = gather(ref, &op->dst, 0);
	struct lanes value = lane_eval_run(ref->eval, op->value);

	union cell cell;

	if (!dst || !ref_agreed(ref, &value, "the value", &cell))
		return;
	for (int64_t i = 0; i < dst->n; i++)
		if (dst->at[i] >= 0)
			ref_store(dst->buffer, dst->at[i], cell, value.is_float);
}

/* ---- gemm ---- */

/* A float32 operand as the tensor cores read it: tf32, the low 13 bits of the mantissa ignored. */
static double as_tf32(double value)
{
	float narrow = (float)value;
	uint32_t bits;

	memcpy(&bits, &narrow, sizeof(bits));
	bits &= 0xffffe000u;
	memcpy(&narrow, &bits, sizeof(narrow));
	return (double)narrow;
}

/*
 * A region's last two extents as a dense matrix of doubles, transposed when asked; NULL after a
 * failure. Matrices 0 and 1 are operands, 2 the accumulator.
 */
static double *gather_matrix(struct ref *ref, const struct region *region, bool transpose,
                             int which)
{
	const struct ref_elems *elems = gather(ref, region, which);
	uint32_t rank = region->buffer->rank;
	int64_t rows, columns;
	double *matrix;
	bool is_tf32 =
		which < 2 && dtype_is_float(region->buffer->type) && dtype_bits(region->buffer->type) == 32;

	if (!elems)
		return NULL;
	assert(rank >= 2);
	rows = region->extent[rank - 2];
	columns = region->extent[rank - 1];
	assert(rows * columns == elems->n);
	matrix = grow(ref->matrices[which], &ref->matrix_cap[which], (size_t)elems->n, sizeof(double));
	ref->matrices[which] = matrix;
	for (int64_t i = 0; i < rows; i++) {
		for (int64_t j = 0; j < columns; j++) {
			union cell cell = element(elems, i * columns + j);
			double value = elems->buffer->is_float ? cell.f : (double)cell.i;
			matrix[transpose ? j * rows + i : i * columns + j] = is_tf32 ? as_tf32(value) : value;
		}
	}
	return matrix;
}

/* c += a b, row-major, eight columns at a time. */
static void multiply(const double *a, const double *b, double *c, const int64_t size[3])
{
	int64_t m = size[0], n = size[1], k = size[2];

	for (int64_t i = 0; i < m; i++) {
		int64_t j = 0;
		for (; j + 8 <= n; j += 8) {
			double sum[8];
			memcpy(sum, &c[i * n + j], sizeof(sum));
			for (int64_t l = 0; l < k; l++)
				for (int q = 0; q < 8; q++)
					sum[q] += a[i * k + l] * b[l * n + j + q];
			memcpy(&c[i * n + j], sum, sizeof(sum));
		}
		for (; j < n; j++)
			for (int64_t l = 0; l < k; l++)
				c[i * n + j] += a[i * k + l] * b[l * n + j];
	}
}

static void run_gemm(struct ref *ref, const struct op_gemm *op)
{
	double *a = gather_matrix(ref, &op->a, op->transpose_a != 0, 0);
	double *b = a ? gather_matrix(ref, &op->b, op->transpose_b != 0, 1) : NULL;
	double *c = b ? gather_matrix(ref, &op->c, false, 2) : NULL;
	uint32_t ra = op->a.buffer->rank, rc = op->c.buffer->rank;
	int64_t size[3];
	struct ref_elems *out = &ref->elems[2];

	if (!c)
		return;
	size[0] = op->c.extent[rc - 2];
	size[1] = op->c.extent[rc - 1];
	size[2] = op->a.extent[op->transpose_a ? ra - 2 : ra - 1];
	ref_count(ref, (uint64_t)(size[0] * size[1] * size[2]) / 4);
	if (op->clear_accum && lane_eval_int(ref->eval, op->clear_accum) != 0)
		memset(c, 0, (size_t)(size[0] * size[1]) * sizeof(*c));
	multiply(a, b, c, size);
	for (int64_t i = 0; i < out->n; i++)
		if (out->at[i] >= 0)
			ref_store(out->buffer, out->at[i], (union cell){ .f = c[i] }, true);
}

/* The dense A: of every group the elements that the metadata name. */
static double *expand(struct ref *ref, const struct op_gemm_sp *op, int64_t m, int64_t k)
{
	struct dtype type = op->a.buffer->type;
	int64_t group = type.bits == 32 ? 2 : 4, bits = op->e.buffer->type.bits;
	int64_t per_word = bits / 4 * group;
	double *a = gather_matrix(ref, &op->a, op->transpose_a != 0, 0), *dense;
	double *e = a ? gather_matrix(ref, &op->e, op->transpose_e != 0, 1) : NULL;

	if (!e)
		return NULL;
	dense = calloc((size_t)(m * k), sizeof(*dense));
	if (!dense)
		BUG("out of memory");
	for (int64_t row = 0; row < m; row++)
		for (int64_t g = 0; g < k / group; g++) {
			int64_t word = (int64_t)e[row * (k / per_word) + g * group / per_word];
			int64_t code = word >> (g % (bits / 4) * 4) & 15;
			double *out = &dense[row * k + g * group];
			const double *in = &a[row * k / 2 + g * group / 2];

			if (group == 2) {
				out[code >> 1 & 1] = in[0];
				continue;
			}
			out[code >> 2] = in[1];
			out[code & 3] = in[0];
		}
	return dense;
}

static void run_gemm_sp(struct ref *ref, const struct op_gemm_sp *op)
{
	uint32_t ra = op->a.buffer->rank, rc = op->c.buffer->rank;
	int64_t size[3] = { op->c.extent[rc - 2], op->c.extent[rc - 1],
		                2 * op->a.extent[op->transpose_a ? ra - 2 : ra - 1] };
	double *a = expand(ref, op, size[0], size[2]);
	double *b = a ? gather_matrix(ref, &op->b, op->transpose_b != 0, 1) : NULL;
	double *c = b ? gather_matrix(ref, &op->c, false, 2) : NULL;
	struct ref_elems *out = &ref->elems[2];

	if (c) {
		ref_count(ref, (uint64_t)(size[0] * size[1] * size[2]) / 4);
		if (op->clear_accum && lane_eval_int(ref->eval, op->clear_accum) != 0)
			memset(c, 0, (size_t)(size[0] * size[1]) * sizeof(*c));
		multiply(a, b, c, size);
		for (int64_t i = 0; i < out->n; i++)
			if (out->at[i] >= 0)
				ref_store(out->buffer, out->at[i], (union cell){ .f = c[i] }, true);
	}
	free(a);
}

/* ---- reductions ---- */

static double reduce_float(enum reduce_kind kind, double a, double b)
{
	switch (kind) {
	case REDUCE_SUM:
		return a + b;
	case REDUCE_MAX:
		return fmax(a, b);
	case REDUCE_MIN:
		return fmin(a, b);
	case REDUCE_ABSSUM:
		return a + fabs(b);
	case REDUCE_ABSMAX:
		return fmax(a, fabs(b));
	case REDUCE_BITAND:
	case REDUCE_BITOR:
	case REDUCE_BITXOR:
		break;
	}
	return (double)NAN;
}

static int64_t reduce_int(enum reduce_kind kind, int64_t a, int64_t b)
{
	int64_t magnitude = b < 0 ? (int64_t) - (uint64_t)b : b;

	switch (kind) {
	case REDUCE_SUM:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case REDUCE_MAX:
		return a > b ? a : b;
	case REDUCE_MIN:
		return a < b ? a : b;
	case REDUCE_ABSSUM:
		return (int64_t)((uint64_t)a + (uint64_t)magnitude);
	case REDUCE_ABSMAX:
		return a > magnitude ? a : magnitude;
	case REDUCE_BITAND:
		return a & b;
	case REDUCE_BITOR:
		return a | b;
	case REDUCE_BITXOR:
		return a ^ b;
	}
	return 0;
}

union cell ref_identity(enum reduce_kind kind, bool is_float)
{
	union cell cell = { .i = 0 };

	if (kind == REDUCE_MAX || kind == REDUCE_MIN) {
		if (is_float)
			cell.f = kind == REDUCE_MAX ? (double)-INFINITY : (double)INFINITY;
		else
			cell.i = kind == REDUCE_MAX ? INT64_MIN : INT64_MAX;
	}
	if (kind == REDUCE_BITAND)
		cell.i = -1;
	return cell;
}

union cell ref_combine(const struct ref_buffer *reducer, union cell a, union cell b)
{
	enum reduce_kind kind = reducer->buffer->reducer;

	if (reducer->is_float)
		a.f = reduce_float(kind, a.f, b.f);
	else
		a.i = reduce_int(kind, a.i, b.i);
	return a;
}

static void run_reduce(struct ref *ref, const struct op_reduce *op)
{
	const struct ref_elems *src = gather(ref, &op->src, 0), *dst = gather(ref, &op->dst, 1);
	enum reduce_kind kind = (enum reduce_kind)op->kind;
	int64_t n_inner = 1, n_reduced = op->src.extent[op->dim];

	if (!src || !dst)
		return;
	for (uint32_t d = (uint32_t)op->dim + 1; d < op->src.buffer->rank; d++)
		n_inner *= op->src.extent[d];
	if (dst->n * n_reduced != src->n) {
		ref_fail(ref, "the reduction of %" PRId64 " elements has %" PRId64 " results", src->n,
		         dst->n);
		return;
	}
	for (int64_t i = 0; i < dst->n; i++) {
		bool is_float = src->buffer->is_float;
		union cell sum = op->clear ? ref_identity(kind, is_float)
		                           : cell_convert(element(dst, i), dst->buffer->is_float,
		                                          src->buffer->buffer->type, true);
		for (int64_t r = 0; r < n_reduced; r++) {
			int64_t at = (i / n_inner * n_reduced + r) * n_inner + i % n_inner;
			union cell cell = element(src, at);
			if (is_float)
				sum.f = reduce_float(kind, sum.f, cell.f);
			else
				sum.i = reduce_int(kind, sum.i, cell.i);
		}
		if (dst->at[i] >= 0)
			ref_store(dst->buffer, dst->at[i], sum, is_float);
	}
}

/* Every element combined with those before it, or behind it. */
static void run_scan(struct ref *ref, const struct op_scan *op)
{
	const struct ref_elems *src = gather(ref, &op->src, 0), *dst = gather(ref, &op->dst, 1);
	enum reduce_kind kind = (enum reduce_kind)op->kind;
	int64_t n_inner = 1, n = op->src.extent[op->dim];
	union cell *sums;

	if (!src || !dst)
		return;
	for (uint32_t d = (uint32_t)op->dim + 1; d < op->src.buffer->rank; d++)
		n_inner *= op->src.extent[d];
	assert(src->n == dst->n && src->n % (n * n_inner) == 0);
	/* The result may be the source: it is stored when all are there. */
	sums = malloc((size_t)src->n * sizeof(*sums));
	if (!sums)
		BUG("out of memory");
	for (int64_t i = 0; i < src->n; i++) {
		int64_t k = i / n_inner % n, at = op->reverse ? i + (n - 1 - 2 * k) * n_inner : i;
		int64_t last = op->reverse ? at + n_inner : at - n_inner;

		sums[at] = element(src, at);
		if (k == 0)
			continue;
		if (src->buffer->is_float)
			sums[at].f = reduce_float(kind, sums[last].f, sums[at].f);
		else
			sums[at].i = reduce_int(kind, sums[last].i, sums[at].i);
	}
	for (int64_t i = 0; i < dst->n; i++)
		if (dst->at[i] >= 0)
			ref_store(dst->buffer, dst->at[i], sums[i], src->buffer->is_float);
	free(sums);
}

/* Calls that order, where every statement is done before the next; copies that report. */
static bool only_orders(const struct ref *ref, const struct op *op)
{
	const struct expr *call = op->kind == OP_evaluate ? op->as.evaluate.value : NULL;
	const char *name =
		call && call->kind == EXPR_CALL ? sym_text(ref->cx->names, call->as.callee) : "";

	static const char *const orders[] = {
		"named_barrier_sync",
		"sync_warp",
		"wait_wgmma",
		"warpgroup_wait",
		"warpgroup_arrive",
		"warpgroup_commit_batch",
		"fence_proxy_async",
		"warpgroup_fence_operand",
		"ptx_fence_barrier_init",
	};

	for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
		if (!strcmp(name, orders[i]))
			return true;
	return false;
}

/* cp.async that the kernel writes, and their arrivals. */
static bool copies(struct ref *ref, const struct op *op)
{
	const struct expr *call = op->kind == OP_evaluate ? op->as.evaluate.value : NULL;
	const char *name =
		call && call->kind == EXPR_CALL ? sym_text(ref->cx->names, call->as.callee) : "";

	if (!strcmp(name, "ptx_cp_async"))
		return ref_copy_elements(ref, call);
	if (strcmp(name, "cp_async_barrier_noinc") != 0 || call->n_args != 1)
		return !strcmp(name, "ptx_commit_group") || !strcmp(name, "ptx_wait_group");
	ref_copies_arrive(ref, call->args[0]);
	return true;
}

void ref_op(struct ref *ref, const struct op *op)
{
	if (only_orders(ref, op) || copies(ref, op))
		return;
	switch (op->kind) {
	case OP_copy:
		run_copy(ref, &op->as.copy);
		break;
	case OP_wgmma_gemm:
	case OP_gemm:
		run_gemm(ref, &op->as.gemm);
		break;
	case OP_fill:
		run_fill(ref, &op->as.fill);
		break;
	case OP_reduce:
		run_reduce(ref, &op->as.reduce);
		break;
	case OP_scan:
		run_scan(ref, &op->as.scan);
		break;
	case OP_finalize_reducer: /* a tile's elements are whole at all times */
		break;
	case OP_transpose:
		run_transpose(ref, &op->as.transpose);
		break;
	case OP_gemm_sp:
		run_gemm_sp(ref, &op->as.gemm_sp);
		break;
	case OP_im2col:
		run_im2col(ref, &op->as.im2col);
		break;
	case OP_async_copy:
		run_copy(ref,
		         &(struct op_copy){ .src = op->as.async_copy.src, .dst = op->as.async_copy.dst });
		break;
	case OP_tma_copy: {
		const struct op_copy copy = { .src = op->as.tma_copy.src, .dst = op->as.tma_copy.dst };
		run_copy(ref, &copy);
		break;
	}
	CASES_OF_BARRIER_OPS:
		ref_barrier_op(ref, op);
		break;
	CASES_OF_TILE_ONLY_OPS:
		ref_fail(ref, "%s, which the reference does not know yet", op_info(op->kind)->name);
		break;
	case N_OP_KINDS:
		break;
	}
}
