/*
 * Every statement against the rules of its op: ranks, shapes, types, memory. Constant indices are
 * held against the shapes; what depends on variables is left to the property `bounds`.
 *
 * A message names the operand that is wrong by its own span, and each buffer that has a part in it
 * by the place where it is allocated:
 *
 *     T.gemm(A_tile, B_tile, acc)    K of this gemm differs: 64 in A, 128 in B
 *            ^~~~~~                  note: A_tile is shared float16 (128, 64)
 */
#include "analyzer/tile/tile.h"
#include "analyzer/tile/sparse.h"

#include <assert.h>
#include <string.h>

struct verifier {
	struct tile_program *program;
	struct cx *cx;
	uint32_t n_parallel;
	const struct stmt *loop; /* the innermost around, or while; NULL: none */
	bool ok;
};

static const char *name_of(const struct verifier *vf, const struct buffer *buffer)
{
	return sym_text(vf->cx->names, buffer->name);
}

#define FAIL(vf, code, span, ...) \
	do { \
		(vf)->ok = false; \
		diag_report(&(vf)->cx->diags, (code), (span), __VA_ARGS__); \
	} while (0)

/* "float16 (128, 64)" */
static const char *type_text(const struct verifier *vf, const struct buffer *buffer)
{
	struct buf text = { 0 };
	char type[32];

	buf_printf(&text, "%s (", dtype_name(buffer->type, type));
	for (uint32_t i = 0; i < buffer->rank; i++) {
		buf_text(&text, i ? ", " : "");
		expr_print(&text, vf->cx, buffer->shape[i]);
	}
	buf_text(&text, buffer->rank == 1 ? ",)" : ")");
	return buf_keep(&text, vf->cx->arena);
}

/* Where the buffer comes from and what it is. */
static void note_buffer(struct verifier *vf, const struct buffer *buffer)
{
	diag_note(&vf->cx->diags, buffer->span, "%s is %s %s", name_of(vf, buffer),
	          scope_text(buffer->scope), type_text(vf, buffer));
}

/* Extents without ones, as text "128 x 64". */
static const char *extents_text(const struct verifier *vf, const int64_t *extents, uint32_t n)
{
	struct buf text = { 0 };
	const char *copy;

	for (uint32_t i = 0; i < n; i++)
		buf_printf(&text, "%s%lld", i ? " x " : "", (long long)extents[i]);
	copy = arena_strndup(vf->cx->arena, n ? text.p : "1", n ? text.n : 1);
	buf_free(&text);
	return copy;
}

/* Regions */

/* Is the region inside its buffer wherever both are constants? Out-of-range reads of global memory
 * give 0. */
static void check_range(struct verifier *vf, const struct region *region, bool is_write)
{
	for (uint32_t i = 0; i < region->buffer->rank; i++) {
		int64_t extent = buffer_extent(region->buffer, i), min, max;
		bool is_tile = region->buffer->scope != SCOPE_GLOBAL;

		if (extent < 0 || !expr_range(region->min[i], &min, &max))
			continue;
		if (max >= 0 && min < extent &&
		    (!is_tile ||
		     (min >= 0 && region->extent[i] <= extent && min <= extent - region->extent[i])))
			continue;
		FAIL(vf, DIAG_E0306, region->span,
		     "this %s %lld elements from %lld in dimension %u of %s, which has %lld",
		     is_write ? "writes" : "reads", (long long)region->extent[i], (long long)min, i,
		     name_of(vf, region->buffer), (long long)extent);
		note_buffer(vf, region->buffer);
		return;
	}
}

/*
 * Every dimension has a minimum and a positive extent, and lies in the buffer where that is known.
 */
static bool check_region(struct verifier *vf, const struct region *region, enum operand_role role)
{
	if (!region->buffer)
		return false;
	for (uint32_t i = 0; i < region->buffer->rank; i++) {
		if (region->extent[i] < 1 || !region->min[i] || !dtype_is_int(region->min[i]->type)) {
			FAIL(vf, DIAG_E0303, region->span, "this is no part of %s",
			     name_of(vf, region->buffer));
			return false;
		}
	}
	check_range(vf, region, role != ROLE_READ);
	return true;
}

/* Extents other than 1, in order. */
static uint32_t squeeze(const struct region *region, int64_t out[MAX_RANK])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < region->buffer->rank; i++) {
		if (region->extent[i] != 1)
			out[n++] = region->extent[i];
	}
	return n;
}

/* `what` says who needs the buffer elsewhere. */
static bool need_scope(struct verifier *vf, const struct region *region, unsigned scopes,
                       const char *what)
{
	if (scopes & 1u << region->buffer->scope)
		return true;
	FAIL(vf, DIAG_E0304, region->span, "%s, but %s is in %s memory", what,
	     name_of(vf, region->buffer), scope_text(region->buffer->scope));
	note_buffer(vf, region->buffer);
	return false;
}

enum {
	IN_GLOBAL = 1u << SCOPE_GLOBAL,
	IN_SHARED = 1u << SCOPE_SHARED,
	IN_FRAGMENT = 1u << SCOPE_FRAGMENT,
	IN_LOCAL = 1u << SCOPE_LOCAL,
};

/* Ops */

/* Extents of 1 do not count: a row of a matrix may be copied to a vector. */
static void check_copy(struct verifier *vf, const struct stmt *stmt)
{
	const struct op_copy *op = &stmt->as.op.as.copy;
	int64_t src[MAX_RANK], dst[MAX_RANK];
	uint32_t n_src = squeeze(&op->src, src), n_dst = squeeze(&op->dst, dst), at = 0;

	while (at < n_src && at < n_dst && src[at] == dst[at])
		at++;
	if (at == n_src && at == n_dst)
		return;
	FAIL(vf, DIAG_E0301, op->dst.span, "the sides of this copy differ: %s and %s",
	     extents_text(vf, src, n_src), extents_text(vf, dst, n_dst));
	note_buffer(vf, op->src.buffer);
	note_buffer(vf, op->dst.buffer);
	if (at < n_src && at < n_dst && n_src == n_dst)
		diag_help(&vf->cx->diags, "make dimension %u agree: %lld is read, %lld is written", at,
		          (long long)src[at], (long long)dst[at]);
	else
		diag_help(
			&vf->cx->diags,
			"give one side as a corner, such as %s[...]: it takes the other side's extents",
			name_of(vf, op->src.buffer->scope == SCOPE_GLOBAL ? op->src.buffer : op->dst.buffer));
}

/* A matrix operand: the last two dimensions; those in front have extent 1. */
static bool gemm_matrix(struct verifier *vf, const struct region *region, int64_t size[2])
{
	uint32_t rank = region->buffer->rank;

	for (uint32_t i = 0; i + 2 < rank; i++) {
		if (region->extent[i] != 1) {
			FAIL(vf, DIAG_E0302, region->span,
			     "a gemm takes matrices: extents in front of the last two must be 1");
			note_buffer(vf, region->buffer);
			return false;
		}
	}
	if (rank < 2) {
		FAIL(vf, DIAG_E0303, region->span, "a gemm takes matrices, %s has %u dimension",
		     name_of(vf, region->buffer), rank);
		note_buffer(vf, region->buffer);
		return false;
	}
	size[0] = region->extent[rank - 2];
	size[1] = region->extent[rank - 1];
	return true;
}

struct gemm_side {
	const struct region *region;
	const char *name;
	int64_t size;
};

/* One of M, N, K as two operands have it. False when they differ. */
static bool gemm_agree(struct verifier *vf, const char *what, struct gemm_side x,
                       struct gemm_side y)
{
	if (x.size == y.size)
		return true;
	FAIL(vf, DIAG_E0302, y.region->span, "%s of this gemm differs: %lld in %s, %lld in %s", what,
	     (long long)x.size, x.name, (long long)y.size, y.name);
	note_buffer(vf, x.region->buffer);
	note_buffer(vf, y.region->buffer);
	return false;
}

/* Rows and columns of the three matrices as they are in memory. */
struct gemm_sizes {
	int64_t a[2], b[2], c[2];
};

static bool gemm_fits(const struct gemm_sizes *is, bool ta, bool tb)
{
	return is->a[!ta] == is->b[tb] && is->a[ta] == is->c[0] && is->b[!tb] == is->c[1];
}

/* The transpositions under which all three sizes agree: of A, of B, then of both. */
static bool help_transpose(struct verifier *vf, const struct op_gemm *op,
                           const struct gemm_sizes *is)
{
	for (int change = 1; change <= 3; change++) {
		bool of_a = change & 1, of_b = change & 2;

		if (!gemm_fits(is, op->transpose_a != of_a, op->transpose_b != of_b))
			continue;
		diag_help(&vf->cx->diags, "%s%s%s",
		          !of_a             ? ""
		          : op->transpose_a ? "leave transpose_A out"
		                            : "write transpose_A=True",
		          of_a && of_b ? ", " : "",
		          !of_b             ? ""
		          : op->transpose_b ? "leave transpose_B out"
		                            : "write transpose_B=True");
		return true;
	}
	return false;
}

/* One matrix as the two others want it; `swap`: it is transposed. */
static void help_shape(struct verifier *vf, const struct region *region, bool swap, int64_t rows,
                       int64_t columns)
{
	diag_help(&vf->cx->diags, "%s as %lld x %lld goes with the others", name_of(vf, region->buffer),
	          (long long)(swap ? columns : rows), (long long)(swap ? rows : columns));
}

/* Edits after which all three sizes agree: transpositions, else one matrix of another shape. */
static void gemm_help(struct verifier *vf, const struct op_gemm *op, const struct gemm_sizes *is)
{
	bool ta = op->transpose_a, tb = op->transpose_b;
	bool k = is->a[!ta] == is->b[tb], m = is->a[ta] == is->c[0], n = is->b[!tb] == is->c[1];

	if (help_transpose(vf, op, is))
		return;
	if (m)
		help_shape(vf, &op->b, tb, is->a[!ta], is->c[1]);
	if (n)
		help_shape(vf, &op->a, ta, is->c[0], is->b[tb]);
	if (k)
		help_shape(vf, &op->c, false, is->a[ta], is->b[!tb]);
	if (!k && !m && !n)
		diag_help(&vf->cx->diags, "the shapes must be A: M x K, B: K x N, C: M x N%s",
		          ta || tb ? " after transposing" : "");
}

/* Types that tensor cores multiply, and what they add up in. */
static void check_gemm_types(struct verifier *vf, const struct op_gemm *op)
{
	struct dtype a = op->a.buffer->type, b = op->b.buffer->type, c = op->c.buffer->type;
	char a_text[32], b_text[32];
	bool fp8 = dtype_bits(a) == 8 && dtype_bits(b) == 8;

	if (!dtype_equal(a, b) && !fp8) {
		FAIL(vf, DIAG_E0305, op->b.span, "the factors of a gemm have types %s and %s",
		     dtype_name(a, a_text), dtype_name(b, b_text));
		note_buffer(vf, op->a.buffer);
		note_buffer(vf, op->b.buffer);
	} else if (dtype_is_float(a) != dtype_is_float(c) || a.kind == TYPE_BOOL) {
		FAIL(vf, DIAG_E0305, op->c.span, "products of %s cannot be summed in %s",
		     dtype_name(a, a_text), dtype_name(c, b_text));
		note_buffer(vf, op->c.buffer);
	}
}

/* Memory, then sizes, then types: each needs the one before it. */
static void check_gemm(struct verifier *vf, const struct stmt *stmt)
{
	const struct op_gemm *op = &stmt->as.op.as.gemm;
	struct gemm_sizes is;
	bool ta = op->transpose_a, tb = op->transpose_b;

	if (!need_scope(vf, &op->a, IN_SHARED | IN_FRAGMENT,
	                "a gemm reads A from shared memory or a fragment") ||
	    !need_scope(vf, &op->b, IN_SHARED | IN_FRAGMENT,
	                "a gemm reads B from shared memory or a fragment") ||
	    !need_scope(vf, &op->c, IN_FRAGMENT, "a gemm sums in a fragment") ||
	    !gemm_matrix(vf, &op->a, is.a) || !gemm_matrix(vf, &op->b, is.b) ||
	    !gemm_matrix(vf, &op->c, is.c))
		return;
	if (!gemm_agree(vf, "K", (struct gemm_side){ &op->a, "A", is.a[!ta] },
	                (struct gemm_side){ &op->b, "B", is.b[tb] }) ||
	    !gemm_agree(vf, "M", (struct gemm_side){ &op->a, "A", is.a[ta] },
	                (struct gemm_side){ &op->c, "C", is.c[0] }) ||
	    !gemm_agree(vf, "N", (struct gemm_side){ &op->b, "B", is.b[!tb] },
	                (struct gemm_side){ &op->c, "C", is.c[1] })) {
		gemm_help(vf, op, &is);
		return;
	}
	check_gemm_types(vf, op);
}

/* The maker casts the value; a difference is a mistake in a text that was read. */
static void check_fill(struct verifier *vf, const struct stmt *stmt)
{
	const struct op_fill *op = &stmt->as.op.as.fill;

	if (op->value && !dtype_equal(op->value->type, op->dst.buffer->type))
		FAIL(vf, DIAG_E0305, op->dst.span, "the value of this fill has another type than %s",
		     name_of(vf, op->dst.buffer));
}

/* The result keeps the reduced dimension with extent 1, or loses it. */
static void check_reduce(struct verifier *vf, const struct stmt *stmt)
{
	const struct op_reduce *op = &stmt->as.op.as.reduce;
	const struct region *src = &op->src, *dst = &op->dst;
	uint32_t rank = src->buffer->rank, at = 0;
	bool keeps = dst->buffer->rank == rank, ok = keeps || dst->buffer->rank + 1 == rank;

	if (!need_scope(vf, src, IN_FRAGMENT | IN_SHARED,
	                "a reduction reads a fragment or shared memory") ||
	    !need_scope(vf, dst, IN_FRAGMENT | IN_SHARED,
	                "a reduction writes a fragment or shared memory"))
		return;
	assert(op->dim >= 0 && op->dim < (int64_t)rank);
	ok |= rank == 1 && dst->buffer->rank == 1 && dst->extent[0] == 1;
	for (uint32_t i = 0; ok && i < rank; i++) {
		bool is_reduced = i == op->dim;

		if (is_reduced && !keeps)
			continue;
		ok = dst->extent[at++] == (is_reduced ? 1 : src->extent[i]);
	}
	if (ok)
		return;
	FAIL(vf, DIAG_E0307, dst->span, "reducing dimension %lld of %s does not give the shape of %s",
	     (long long)op->dim, name_of(vf, src->buffer), name_of(vf, dst->buffer));
	note_buffer(vf, src->buffer);
	note_buffer(vf, dst->buffer);
	diag_help(&vf->cx->diags,
	          "the result has the source's extents without dimension %lld, or with 1 there",
	          (long long)op->dim);
}

/* Both sides have the same extents, in every dimension. */
static bool same_extents(struct verifier *vf, const struct region *x, const struct region *y,
                         const char *what)
{
	bool ok = x->buffer->rank == y->buffer->rank;

	for (uint32_t i = 0; ok && i < x->buffer->rank; i++)
		ok = x->extent[i] == y->extent[i];
	if (ok)
		return true;
	FAIL(vf, DIAG_E0301, y->span, "the sides of this %s differ: %s and %s", what,
	     extents_text(vf, x->extent, x->buffer->rank),
	     extents_text(vf, y->extent, y->buffer->rank));
	note_buffer(vf, x->buffer);
	note_buffer(vf, y->buffer);
	return false;
}

/* A scan writes as many elements as it reads. */
static void check_scan(struct verifier *vf, const struct stmt *stmt)
{
	const struct op_scan *op = &stmt->as.op.as.scan;

	if (!need_scope(vf, &op->src, IN_FRAGMENT | IN_SHARED,
	                "a scan reads a fragment or shared memory") ||
	    !need_scope(vf, &op->dst, IN_FRAGMENT | IN_SHARED,
	                "a scan writes a fragment or shared memory") ||
	    !same_extents(vf, &op->src, &op->dst, "scan"))
		return;
	if (op->dim < 0 || op->dim >= (int64_t)op->src.buffer->rank)
		FAIL(vf, DIAG_E0307, op->src.span, "dimension %lld does not exist: %s has %u",
		     (long long)op->dim, name_of(vf, op->src.buffer), op->src.buffer->rank);
	if (op->kind != REDUCE_SUM && op->kind != REDUCE_MAX)
		FAIL(vf, DIAG_E0307, op->src.span, "a scan sums or takes the maximum");
}

/* dst[j, i] = src[i, j] */
static void check_transpose(struct verifier *vf, const struct stmt *stmt)
{
	const struct op_transpose *op = &stmt->as.op.as.transpose;
	int64_t src[MAX_RANK], dst[MAX_RANK];
	uint32_t n_src = squeeze(&op->src, src), n_dst = squeeze(&op->dst, dst);

	if (n_src == n_dst && (n_src < 2 ? n_src == 0 || src[0] == dst[0]
	                                 : n_src == 2 && src[0] == dst[1] && src[1] == dst[0]))
		return;
	FAIL(vf, DIAG_E0301, op->dst.span, "this is no transposed shape: %s and %s",
	     extents_text(vf, src, n_src), extents_text(vf, dst, n_dst));
	note_buffer(vf, op->src.buffer);
	note_buffer(vf, op->dst.buffer);
}

/* As T.copy. */
static void check_bulk_copy(struct verifier *vf, const struct region *src, const struct region *dst)
{
	struct stmt copy = { .kind = STMT_OP, .as.op.kind = OP_copy };

	copy.as.op.as.copy.src = *src;
	copy.as.op.as.copy.dst = *dst;
	check_copy(vf, &copy);
}

/* As T.gemm. */
static void check_wgmma(struct verifier *vf, const struct stmt *stmt)
{
	const struct op_wgmma_gemm *op = &stmt->as.op.as.wgmma_gemm;
	struct stmt gemm = { .kind = STMT_OP, .span = stmt->span, .as.op.kind = OP_gemm };

	gemm.as.op.as.gemm = (struct op_gemm){ .a = op->a,
		                                   .b = op->b,
		                                   .c = op->c,
		                                   .transpose_a = op->transpose_a,
		                                   .transpose_b = op->transpose_b };
	check_gemm(vf, &gemm);
}

/* K of B is twice that of A, of which half is stored. */
static void check_gemm_sp(struct verifier *vf, const struct stmt *stmt)
{
	const struct op_gemm_sp *op = &stmt->as.op.as.gemm_sp;
	int64_t a[2], b[2], c[2], e[2], per_word;
	bool ta = op->transpose_a, tb = op->transpose_b, te = op->transpose_e;

	if (!need_scope(vf, &op->c, IN_FRAGMENT, "a gemm sums in a fragment") ||
	    !gemm_matrix(vf, &op->a, a) || !gemm_matrix(vf, &op->b, b) || !gemm_matrix(vf, &op->c, c))
		return;
	if (dtype_bits(op->a.buffer->type) < 8 || dtype_bits(op->a.buffer->type) > 32 ||
	    !dtype_is_int(op->e.buffer->type)) {
		FAIL(vf, DIAG_E0305, stmt->span,
		     "a sparse gemm takes elements of 8 to 32 bits and integers as metadata");
		return;
	}
	if (!need_scope(vf, &op->e, IN_SHARED | IN_GLOBAL, "metadata are read from memory") ||
	    !gemm_matrix(vf, &op->e, e))
		return;
	per_word = sparsity_of(op->a.buffer->type, op->e.buffer->type).per_word;
	(void)(gemm_agree(vf, "K", (struct gemm_side){ &op->a, "A", 2 * a[!ta] },
	                  (struct gemm_side){ &op->b, "B", b[tb] }) &&
	       gemm_agree(vf, "K", (struct gemm_side){ &op->a, "A", 2 * a[!ta] },
	                  (struct gemm_side){ &op->e, "E", per_word * e[!te] }) &&
	       gemm_agree(vf, "M", (struct gemm_side){ &op->a, "A", a[ta] },
	                  (struct gemm_side){ &op->e, "E", e[te] }) &&
	       gemm_agree(vf, "M", (struct gemm_side){ &op->a, "A", a[ta] },
	                  (struct gemm_side){ &op->c, "C", c[0] }) &&
	       gemm_agree(vf, "N", (struct gemm_side){ &op->b, "B", b[!tb] },
	                  (struct gemm_side){ &op->c, "C", c[1] }));
}

/* A barrier is an element of shared memory, or a number that stands for one. */
static void check_barrier(struct verifier *vf, const struct expr *barrier, struct span span)
{
	if (barrier && (dtype_is_int(barrier->type) || barrier->type.kind == TYPE_HANDLE) &&
	    (barrier->kind != EXPR_LOAD || barrier->as.buffer->scope == SCOPE_SHARED))
		return;
	FAIL(vf, DIAG_E0304, span, "this is no barrier");
	diag_help(&vf->cx->diags, "a barrier is what T.alloc_barrier gives, or an element of it");
}

/* An operand that must be there. */
static void check_value(struct verifier *vf, const struct expr *value, struct span span)
{
	if (!value)
		FAIL(vf, DIAG_E0310, span, "the operation misses an operand");
}

/* An image of four dimensions, a tile of two. */
static void check_im2col(struct verifier *vf, const struct stmt *stmt)
{
	const struct op_im2col *op = &stmt->as.op.as.im2col;

	check_value(vf, op->nhw_step, stmt->span);
	check_value(vf, op->c_step, stmt->span);
	need_scope(vf, &op->src, IN_GLOBAL, "im2col reads global memory");
	need_scope(vf, &op->dst, IN_SHARED, "im2col writes shared memory");
	if (op->src.buffer->rank != 4 || op->dst.buffer->rank < 2)
		FAIL(vf, DIAG_E0303, stmt->span,
		     "im2col takes an image (batch, height, width, channels) and a tile of two dimensions");
	if (op->kernel < 1 || op->stride < 1 || op->dilation < 1 || op->pad < 0)
		FAIL(vf, DIAG_E0310, stmt->span,
		     "a window of %lld, stride %lld, dilation %lld and padding %lld is none",
		     (long long)op->kernel, (long long)op->stride, (long long)op->dilation,
		     (long long)op->pad);
}

/* Regions first, then what the op itself asks for. */
static void check_op(struct verifier *vf, struct stmt *stmt)
{
	enum operand_role role;
	const struct region *region;

	for (uint32_t i = 0; (region = op_region(&stmt->as.op, i, &role)) != NULL; i++) {
		if (!check_region(vf, region, role))
			return;
	}
	switch (stmt->as.op.kind) {
	case OP_copy:
		check_copy(vf, stmt);
		break;
	case OP_gemm:
		check_gemm(vf, stmt);
		break;
	case OP_fill:
		check_fill(vf, stmt);
		break;
	case OP_reduce:
		check_reduce(vf, stmt);
		break;
	case OP_scan:
		check_scan(vf, stmt);
		break;
	case OP_finalize_reducer:
		need_scope(vf, &stmt->as.op.as.finalize_reducer.dst, IN_FRAGMENT,
		           "a reducer is a fragment");
		break;
	case OP_transpose:
		check_transpose(vf, stmt);
		break;
	case OP_im2col:
		check_im2col(vf, stmt);
		break;
	case OP_tma_copy:
		check_bulk_copy(vf, &stmt->as.op.as.tma_copy.src, &stmt->as.op.as.tma_copy.dst);
		break;
	case OP_async_copy:
		check_bulk_copy(vf, &stmt->as.op.as.async_copy.src, &stmt->as.op.as.async_copy.dst);
		break;
	case OP_wgmma_gemm:
		check_wgmma(vf, stmt);
		break;
	case OP_gemm_sp:
		check_gemm_sp(vf, stmt);
		break;
	case OP_barrier_init:
		check_barrier(vf, stmt->as.op.as.barrier_init.barrier, stmt->span);
		check_value(vf, stmt->as.op.as.barrier_init.arrive_count, stmt->span);
		break;
	case OP_barrier_arrive:
		check_barrier(vf, stmt->as.op.as.barrier_arrive.barrier, stmt->span);
		break;
	case OP_barrier_expect_tx:
		check_barrier(vf, stmt->as.op.as.barrier_expect_tx.barrier, stmt->span);
		check_value(vf, stmt->as.op.as.barrier_expect_tx.bytes, stmt->span);
		break;
	case OP_barrier_wait:
		check_barrier(vf, stmt->as.op.as.barrier_wait.barrier, stmt->span);
		check_value(vf, stmt->as.op.as.barrier_wait.parity, stmt->span);
		break;
	case OP_evaluate:
		check_value(vf, stmt->as.op.as.evaluate.value, stmt->span);
		break;
	case N_OP_KINDS:
		BUG("op kind %d", (int)stmt->as.op.kind);
	}
}

/* Elements */

struct access_check {
	struct verifier *vf;
	struct span span;
};

/* An element index whose whole range lies outside is a mistake. */
static void check_index(struct verifier *vf, const struct buffer *buffer,
                        const struct expr *const *index, struct span span)
{
	for (uint32_t i = 0; i < buffer->rank; i++) {
		int64_t extent = buffer_extent(buffer, i), min, max;

		if (extent < 0 || !expr_range(index[i], &min, &max) || (max >= 0 && min < extent))
			continue;
		FAIL(vf, DIAG_E0306, span, "index %lld in dimension %u is outside %s, which has %lld",
		     (long long)(max < 0 ? max : min), i, name_of(vf, buffer), (long long)extent);
		note_buffer(vf, buffer);
		return;
	}
}

/* Called for each part of an expression. */
static void check_load(void *user, const struct expr *e)
{
	const struct access_check *check = user;

	if (e->kind == EXPR_LOAD)
		check_index(check->vf, e->as.buffer, e->args, check->span);
}

/* Every load in it; NULL is fine. */
static void check_expr(struct verifier *vf, const struct expr *e, struct span span)
{
	struct access_check check = { vf, span };

	if (e)
		expr_walk(e, check_load, &check);
}

/* The buffer's type, with as many lanes as the index has (T.Ramp). */
static struct dtype store_type(const struct stmt *stmt)
{
	struct dtype type = stmt->as.store.buffer->type;

	for (uint32_t i = 0; i < stmt->as.store.buffer->rank; i++) {
		if (stmt->as.store.index[i]->type.lanes > 1)
			type.lanes = (uint16_t)(type.lanes * stmt->as.store.index[i]->type.lanes);
	}
	return type;
}

/* Indices, the place, the value, its type. */
static void check_store(struct verifier *vf, const struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer;

	assert(stmt->kind == STMT_STORE && buffer->rank <= MAX_RANK);
	for (uint32_t i = 0; i < buffer->rank; i++)
		check_expr(vf, stmt->as.store.index[i], stmt->span);
	check_index(vf, buffer, stmt->as.store.index, stmt->span);
	check_expr(vf, stmt->as.store.value, stmt->span);
	if (!dtype_equal(stmt->as.store.value->type, store_type(stmt)))
		FAIL(vf, DIAG_E0305, stmt->span, "the stored value has another type than %s",
		     name_of(vf, buffer));
}

/* Blocks */

static void check_block(struct verifier *vf, struct block *block);

/* The body of a loop or while statement. */
static void check_body(struct verifier *vf, const struct stmt *loop, struct block *body)
{
	const struct stmt *outer = vf->loop;

	vf->loop = loop;
	check_block(vf, body);
	vf->loop = outer;
}

/* Only serial loops may have extents that the device decides. */
static void check_loop(struct verifier *vf, struct stmt *stmt)
{
	struct loop *loop = &stmt->as.loop;
	bool is_parallel = loop->kind == LOOP_PARALLEL;

	for (uint32_t i = 0; i < loop->n_vars; i++) {
		check_expr(vf, loop->extents[i], stmt->span);
		if ((is_parallel || loop->kind == LOOP_VECTORIZED) && !expr_is_int(loop->extents[i], NULL))
			FAIL(vf, DIAG_E0312, loop->vars[i]->span,
			     "extent %u of this parallel loop is not constant", i);
	}
	if (is_parallel && vf->n_parallel) {
		FAIL(vf, DIAG_E0312, stmt->span, "T.Parallel stands inside T.Parallel");
		diag_help(&vf->cx->diags, "write one loop over all extents: for i, j in T.Parallel(M, N)");
	}
	vf->n_parallel += is_parallel;
	check_body(vf, stmt, &loop->body);
	vf->n_parallel -= is_parallel;
}

/* What break and continue leave is a loop that runs in order. */
static void check_exit(struct verifier *vf, const struct stmt *stmt)
{
	const char *word = stmt->kind == STMT_BREAK ? "break" : "continue";

	if (!vf->loop)
		FAIL(vf, DIAG_E0312, stmt->span, "%s stands outside a loop", word);
	else if (vf->loop->kind == STMT_LOOP && vf->loop->as.loop.kind == LOOP_PARALLEL)
		FAIL(vf, DIAG_E0312, stmt->span, "%s of a T.Parallel loop, whose iterations have no order",
		     word);
}

/* One statement of any kind. */
static void check_stmt(struct verifier *vf, struct stmt *stmt)
{
	switch (stmt->kind) {
	case STMT_OP:
		if (vf->n_parallel && stmt->as.op.kind != OP_evaluate)
			FAIL(vf, DIAG_E0312, stmt->span, "a tile operation stands inside a T.Parallel loop");
		check_op(vf, stmt);
		break;
	case STMT_LOOP:
		check_loop(vf, stmt);
		break;
	case STMT_IF:
		check_expr(vf, stmt->as.if_.condition, stmt->span);
		check_block(vf, &stmt->as.if_.then);
		check_block(vf, &stmt->as.if_.otherwise);
		break;
	case STMT_WHILE:
		check_expr(vf, stmt->as.while_.condition, stmt->span);
		check_body(vf, stmt, &stmt->as.while_.body);
		break;
	case STMT_LET:
		check_expr(vf, stmt->as.let.value, stmt->span);
		break;
	case STMT_STORE:
		check_store(vf, stmt);
		break;
	case STMT_SYNC:
		if (vf->n_parallel)
			FAIL(vf, DIAG_E0312, stmt->span, "T.sync_threads stands inside a T.Parallel loop");
		break;
	case STMT_BREAK:
	case STMT_CONTINUE:
		check_exit(vf, stmt);
		break;
	}
}

/* All its statements, whatever is wrong with some. */
static void check_block(struct verifier *vf, struct block *block)
{
	for (uint32_t i = 0; i < block->stmts.n; i++)
		check_stmt(vf, block->stmts.p[i]);
}

/* Tiles have constant positive extents; tensors may have symbols. */
static void check_buffer(struct verifier *vf, const struct buffer *buffer)
{
	assert(buffer->id < vf->program->buffers.n && vf->program->buffers.p[buffer->id] == buffer);
	for (uint32_t i = 0; i < buffer->rank; i++) {
		int64_t extent;

		if (expr_is_int(buffer->shape[i], &extent) ? extent < 1 : buffer->scope != SCOPE_GLOBAL) {
			FAIL(vf, DIAG_E0311, buffer->span, "extent %u of %s is no positive constant", i,
			     name_of(vf, buffer));
			return;
		}
	}
}

/* Goes on after a mistake, so that one run shows them all. */
bool tile_verify(struct tile_program *program)
{
	struct verifier vf = { .program = program, .cx = program->cx, .ok = true };

	for (uint32_t i = 0; i < program->buffers.n; i++)
		check_buffer(&vf, program->buffers.p[i]);
	for (uint32_t i = 0; i < program->launches.n; i++) {
		struct launch *launch = program->launches.p[i];
		int64_t n_threads = launch_n_threads(launch);

		if (n_threads < 1 || n_threads > 1024)
			FAIL(&vf, DIAG_E0309, launch->span, "a thread block has 1 to 1024 threads, not %lld",
			     (long long)n_threads);
		check_block(&vf, &launch->body);
	}
	return vf.ok;
}
