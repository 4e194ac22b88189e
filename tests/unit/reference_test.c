/*
 * The reference's operations on small hand-made kernels against plain loops, and the comparison's
 * verdicts.
 */
#include "sim/compare.h"
#include "sim/reference.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

/* A kernel under construction with one launch, then its run. */
struct kernel {
	struct arena *arena;
	struct cx cx;
	struct expr_pool *pool;
	struct tile_program *program;
	struct launch *launch;
	struct tensor_set inputs;
	struct reference result;
	bool ran;
};

static struct kernel *open_kernel(int64_t grid_x, int64_t grid_y)
{
	struct arena *arena = arena_open();
	struct kernel *kernel = arena_new(arena, struct kernel);
	static const char *const names[] = { "bx", "by", "bz" };

	kernel->arena = arena;
	cx_init(&kernel->cx, arena);
	kernel->pool = expr_pool_open(&kernel->cx);
	kernel->program = tile_new(&kernel->cx, kernel->pool);
	kernel->launch = arena_new(arena, struct launch);
	for (int i = 0; i < 3; i++) {
		struct var *var = expr_new_var(kernel->pool, VAR_BLOCK,
		                               intern_text(kernel->cx.names, names[i]), DTYPE_I32);
		var->axis = i;
		kernel->launch->block[i] = var;
		kernel->launch->grid[i] = expr_int(kernel->pool, i == 0 ? grid_x : i == 1 ? grid_y : 1);
		kernel->launch->threads[i] = i == 0 ? 32 : 1;
	}
	vec_push(arena, &kernel->program->launches, kernel->launch);
	return kernel;
}

static void close_kernel(struct kernel *kernel)
{
	if (kernel->ran)
		reference_close(&kernel->result);
	tensors_close(&kernel->inputs);
	arena_close(kernel->arena);
}

/* A buffer of up to two dimensions (columns 0: one). */
static struct buffer *add_buffer(struct kernel *kernel, enum scope scope, struct dtype type,
                                 int64_t rows, int64_t columns)
{
	char name[16];
	struct buffer *buffer;

	snprintf(name, sizeof(name), "b%u", kernel->program->buffers.n);
	buffer = tile_new_buffer(kernel->program, scope, intern_text(kernel->cx.names, name), type,
	                         (struct span){ 0 });
	buffer->rank = columns ? 2 : 1;
	buffer->shape[0] = expr_int(kernel->pool, rows);
	if (columns)
		buffer->shape[1] = expr_int(kernel->pool, columns);
	buffer->is_param = scope == SCOPE_GLOBAL;
	if (buffer->is_param)
		vec_push(kernel->arena, &kernel->program->params, buffer);
	return buffer;
}

static struct stmt *add_stmt(struct kernel *kernel, struct block *block, enum stmt_kind kind)
{
	struct stmt *stmt = tile_new_stmt(kernel->program, kind, (struct span){ 0 });

	vec_push(kernel->arena, &block->stmts, stmt);
	return stmt;
}

static struct op *add_op(struct kernel *kernel, enum op_kind kind)
{
	struct stmt *stmt = add_stmt(kernel, &kernel->launch->body, STMT_OP);

	stmt->as.op.kind = kind;
	return &stmt->as.op;
}

static struct region box(struct kernel *kernel, const struct buffer *buffer)
{
	return region_whole(kernel->pool, buffer, (struct span){ 0 });
}

/* rows x columns from (row, column). */
static struct region part(const struct buffer *buffer, const struct expr *row,
                          const struct expr *column, int64_t rows, int64_t columns)
{
	struct region region = { .buffer = buffer };

	region.min[0] = row;
	region.min[1] = column;
	region.extent[0] = rows;
	region.extent[1] = columns;
	return region;
}

static void add_copy(struct kernel *kernel, struct region src, struct region dst)
{
	struct op *op = add_op(kernel, OP_copy);

	op->as.copy.src = src;
	op->as.copy.dst = dst;
}

static void add_fill(struct kernel *kernel, const struct buffer *buffer, double value)
{
	struct op *op = add_op(kernel, OP_fill);

	op->as.fill.dst = box(kernel, buffer);
	op->as.fill.value = expr_float(kernel->pool, DTYPE_F32, value);
}

static const struct expr *var_expr(struct kernel *kernel, const struct var *var)
{
	return expr_of_var(kernel->pool, var);
}

/* for v in extent; the body is the statement's. */
static struct stmt *add_loop(struct kernel *kernel, struct block *block, enum loop_kind kind,
                             const struct expr *extent)
{
	struct stmt *stmt = add_stmt(kernel, block, STMT_LOOP);

	stmt->as.loop.kind = kind;
	stmt->as.loop.n_vars = 1;
	stmt->as.loop.vars[0] =
		expr_new_var(kernel->pool, VAR_LOOP, intern_text(kernel->cx.names, "i"), DTYPE_I32);
	stmt->as.loop.extents[0] = extent;
	return stmt;
}

static void add_store(struct kernel *kernel, struct block *block, const struct buffer *buffer,
                      const struct expr *index, const struct expr *value)
{
	struct stmt *stmt = add_stmt(kernel, block, STMT_STORE);

	stmt->as.store.buffer = buffer;
	stmt->as.store.index[0] = index;
	stmt->as.store.value = value;
}

static bool run_kernel(struct check *check, struct kernel *kernel,
                       const struct reference_options *options)
{
	struct tensor_uses uses = { 0 };
	int64_t *values = arena_array(kernel->arena, int64_t, expr_n_vars(kernel->pool));
	struct reference_options all = { 0 };

	tensor_uses_of_tile(kernel->program, &uses);
	CHECK(check, tensors_open(&kernel->cx, &uses, values, &kernel->inputs));
	kernel->ran = true;
	return reference_run(kernel->program, &kernel->inputs, options ? options : &all,
	                     &kernel->result);
}

/* An element of an input as a number. */
static double input_at(const struct kernel *kernel, uint32_t tensor, int64_t element)
{
	const struct tensor *t = &kernel->inputs.items[tensor];
	uint64_t bits = 0;

	memcpy(&bits, t->bytes + element * t->elem_bytes, t->elem_bytes);
	return dtype_decode(t->buffer->type, bits);
}

/* An element of a result as a number. */
static double output_at(const struct kernel *kernel, uint32_t tensor, int64_t element)
{
	const struct reference_tensor *t = &kernel->result.items[tensor];

	return dtype_is_float(t->tensor->buffer->type) ? t->cells[element].f
	                                               : (double)t->cells[element].i;
}

/* ---- copies: 5 x 7 in blocks of 4 x 4 through shared memory of another type ---- */

/*
 * Elements arrive rounded to the type in between; the tile's part outside the tensor is 0; tensors
 * are marked as read and written.
 */
static void test_copy(struct check *check)
{
	struct kernel *kernel = open_kernel(2, 2);
	struct buffer *a = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F32, 5, 7);
	struct buffer *c = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F32, 5, 7);
	struct buffer *tile = add_buffer(kernel, SCOPE_SHARED, DTYPE_F16, 4, 4);
	struct buffer *sum = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F32, 4, 4);
	const struct expr *row, *column, *zero = expr_int(kernel->pool, 0);
	int n_wrong = 0;

	row = expr_mul_int(kernel->pool, var_expr(kernel, kernel->launch->block[1]), 4);
	column = expr_mul_int(kernel->pool, var_expr(kernel, kernel->launch->block[0]), 4);
	add_copy(kernel, part(a, row, column, 4, 4), box(kernel, tile));
	add_copy(kernel, box(kernel, tile), part(c, row, column, 4, 4));
	add_copy(kernel, box(kernel, tile), part(sum, zero, zero, 4, 4));
	CHECK(check, run_kernel(check, kernel, NULL));
	CHECK_INT(check, kernel->result.n_blocks_run, 4);
	for (int i = 0; i < 35; i++) {
		n_wrong += output_at(kernel, 1, i) != dtype_round(DTYPE_F16, input_at(kernel, 0, i));
		n_wrong += !kernel->result.items[1].written[i];
	}
	/* the last block's tile: one row and three columns are inside, the rest is 0 */
	for (int i = 0; i < 16; i++) {
		double inside = i < 3 ? dtype_round(DTYPE_F16, input_at(kernel, 0, 4 * 7 + 4 + i)) : 0.0;
		n_wrong += output_at(kernel, 2, i) != inside;
	}
	CHECK_INT(check, n_wrong, 0);
	CHECK(check, kernel->inputs.items[0].is_read && !kernel->inputs.items[0].is_written);
	CHECK(check, !kernel->inputs.items[1].is_read && kernel->inputs.items[1].is_written);
	close_kernel(kernel);
}

/* Only the blocks that were asked for run, and only their elements count as written. */
static void test_blocks(struct check *check)
{
	static const int64_t blocks[] = { 0, 3 };
	struct reference_options some = { .blocks = blocks, .n_blocks = 2 };
	struct kernel *kernel = open_kernel(2, 2);
	struct buffer *c = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_I32, 2, 2);
	const struct expr *by = var_expr(kernel, kernel->launch->block[1]);
	struct stmt *stmt = add_stmt(kernel, &kernel->launch->body, STMT_STORE);

	stmt->as.store.buffer = c;
	stmt->as.store.index[0] = by;
	stmt->as.store.index[1] = var_expr(kernel, kernel->launch->block[0]);
	stmt->as.store.value = expr_add_int(kernel->pool, by, 7);
	CHECK(check, run_kernel(check, kernel, &some));
	CHECK(check, kernel->result.items[0].written[0] && kernel->result.items[0].written[3]);
	CHECK(check, !kernel->result.items[0].written[1] && !kernel->result.items[0].written[2]);
	CHECK(check, output_at(kernel, 0, 3) == 8.0);
	close_kernel(kernel);
}

/* ---- gemm: 5 x 9 x 3 with every transposition, into float32 and float16, twice or cleared ---- */

/*
 * `variant` has a bit each for transposed A, transposed B, clearing and float16. Against three
 * plain loops in double; float16 is rounded once a gemm.
 */
static void test_gemm(struct check *check, int variant)
{
	enum { M = 5, N = 9, K = 3 };
	bool ta = variant & 1, tb = variant & 2, clear = variant & 4, half = variant & 8;
	struct dtype type = half ? DTYPE_F16 : DTYPE_F32;
	struct kernel *kernel = open_kernel(1, 1);
	struct buffer *a = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F16, ta ? K : M, ta ? M : K);
	struct buffer *b = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F16, tb ? N : K, tb ? K : N);
	struct buffer *c = add_buffer(kernel, SCOPE_GLOBAL, type, M, N);
	struct buffer *acc = add_buffer(kernel, SCOPE_FRAGMENT, type, M, N);
	int n_wrong = 0;

	add_fill(kernel, acc, 1.0);
	for (int i = 0; i < 2; i++) {
		struct op *op = add_op(kernel, OP_gemm);
		op->as.gemm.a = box(kernel, a);
		op->as.gemm.b = box(kernel, b);
		op->as.gemm.c = box(kernel, acc);
		op->as.gemm.transpose_a = ta;
		op->as.gemm.transpose_b = tb;
		op->as.gemm.clear_accum = clear ? expr_bool(kernel->pool, true) : NULL;
	}
	add_copy(kernel, box(kernel, acc), box(kernel, c));
	CHECK(check, run_kernel(check, kernel, NULL));
	for (int i = 0; i < M; i++) {
		for (int j = 0; j < N; j++) {
			double sum = 0.0, want;
			for (int k = 0; k < K; k++)
				sum += input_at(kernel, 0, ta ? k * M + i : i * K + k) *
				       input_at(kernel, 1, tb ? j * K + k : k * N + j);
			want = clear ? sum : half ? dtype_round(type, 1.0 + sum) + sum : 1.0 + 2 * sum;
			if (half)
				want = dtype_round(type, want);
			n_wrong += !(fabs(output_at(kernel, 2, i * N + j) - want) < 1e-12);
		}
	}
	CHECK_INT(check, n_wrong, 0);
	close_kernel(kernel);
}

/* ---- reductions of 3 x 4 over either dimension ---- */

/* One step of a reduction. */
static double reduced(enum reduce_kind kind, double a, double b)
{
	if (kind == REDUCE_SUM || kind == REDUCE_ABSSUM)
		return a + (kind == REDUCE_SUM ? b : fabs(b));
	if (kind == REDUCE_MIN)
		return b < a ? b : a;
	b = kind == REDUCE_ABSMAX ? fabs(b) : b;
	return b > a ? b : a;
}

/* Against a plain loop that starts from 0.25, or with `clear` from what changes nothing. */
static void test_reduce(struct check *check, enum reduce_kind kind, int dim, bool clear)
{
	enum { ROWS = 3, COLUMNS = 4 };
	struct kernel *kernel = open_kernel(1, 1);
	struct buffer *a = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F32, ROWS, COLUMNS);
	struct buffer *c = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F32, dim ? ROWS : COLUMNS, 0);
	struct buffer *tile = add_buffer(kernel, SCOPE_FRAGMENT, DTYPE_F32, ROWS, COLUMNS);
	struct buffer *sum = add_buffer(kernel, SCOPE_FRAGMENT, DTYPE_F32, dim ? ROWS : COLUMNS, 0);
	struct op *op;
	int n_wrong = 0;

	add_copy(kernel, box(kernel, a), box(kernel, tile));
	add_fill(kernel, sum, 0.25);
	op = add_op(kernel, OP_reduce);
	op->as.reduce.src = box(kernel, tile);
	op->as.reduce.dst = box(kernel, sum);
	op->as.reduce.kind = kind;
	op->as.reduce.dim = dim;
	op->as.reduce.clear = clear;
	add_copy(kernel, box(kernel, sum), box(kernel, c));
	CHECK(check, run_kernel(check, kernel, NULL));
	for (int i = 0; i < (dim ? ROWS : COLUMNS); i++) {
		double want = !clear               ? 0.25
		              : kind == REDUCE_MAX ? (double)-INFINITY
		              : kind == REDUCE_MIN ? (double)INFINITY
		                                   : 0.0;
		for (int r = 0; r < (dim ? COLUMNS : ROWS); r++)
			want =
				reduced(kind, want, input_at(kernel, 0, dim ? i * COLUMNS + r : r * COLUMNS + i));
		n_wrong += !(fabs(output_at(kernel, 1, i) - want) < 1e-12);
	}
	CHECK_INT(check, n_wrong, 0);
	close_kernel(kernel);
}

/* ---- loops and elements ---- */

/* C[i] = let(2 A[i] if i < n else -1), in a parallel loop longer than a chunk, guarded at its end.
 */
static void test_parallel(struct check *check)
{
	enum { SIZE = 2500, EXTENT = 2560, LIMIT = 1300 };
	struct kernel *kernel = open_kernel(1, 1);
	struct buffer *a = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F32, SIZE, 0);
	struct buffer *c = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F32, SIZE, 0);
	struct stmt *loop =
		add_loop(kernel, &kernel->launch->body, LOOP_PARALLEL, expr_int(kernel->pool, EXTENT));
	const struct expr *i = var_expr(kernel, loop->as.loop.vars[0]);
	const struct expr *load = expr_load(kernel->pool, a, DTYPE_F32, &i, 1);
	struct var *twice =
		expr_new_var(kernel->pool, VAR_LET, intern_text(kernel->cx.names, "t"), DTYPE_F32);
	struct stmt *let = add_stmt(kernel, &loop->as.loop.body, STMT_LET), *branch;
	int n_wrong = 0;

	let->as.let.var = twice;
	let->as.let.value = expr_binary(kernel->pool, BIN_ADD, load, load);
	branch = add_stmt(kernel, &loop->as.loop.body, STMT_IF);
	branch->as.if_.condition = expr_lt(kernel->pool, i, expr_int(kernel->pool, LIMIT));
	add_store(kernel, &branch->as.if_.then, c, i, var_expr(kernel, twice));
	add_store(kernel, &branch->as.if_.otherwise, c, i, expr_int(kernel->pool, -1));
	CHECK(check, run_kernel(check, kernel, NULL));
	for (int e = 0; e < SIZE; e++)
		n_wrong += output_at(kernel, 1, e) != (e < LIMIT ? 2 * input_at(kernel, 0, e) : -1.0);
	CHECK_INT(check, n_wrong, 0);
	close_kernel(kernel);
}

/*
 * A thread's own scalar inside a parallel loop: C[i] = 0 + 1 + ... + i, by an inner loop of i + 1
 * trips.
 */
static void test_private(struct check *check)
{
	struct kernel *kernel = open_kernel(1, 1);
	struct buffer *c = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_I32, 20, 0);
	struct buffer *v = add_buffer(kernel, SCOPE_LOCAL, DTYPE_I32, 1, 0);
	struct stmt *loop =
		add_loop(kernel, &kernel->launch->body, LOOP_PARALLEL, expr_int(kernel->pool, 20));
	const struct expr *i = var_expr(kernel, loop->as.loop.vars[0]), *j;
	const struct expr *zero = expr_int(kernel->pool, 0);
	const struct expr *load = expr_load(kernel->pool, v, DTYPE_I32, &zero, 1);
	struct stmt *inner;
	int n_wrong = 0;

	add_store(kernel, &loop->as.loop.body, v, zero, zero);
	inner = add_loop(kernel, &loop->as.loop.body, LOOP_SERIAL, expr_add_int(kernel->pool, i, 1));
	j = var_expr(kernel, inner->as.loop.vars[0]);
	add_store(kernel, &inner->as.loop.body, v, zero, expr_add(kernel->pool, load, j));
	add_store(kernel, &loop->as.loop.body, c, i, load);
	CHECK(check, run_kernel(check, kernel, NULL));
	for (int e = 0; e < 20; e++)
		n_wrong += output_at(kernel, 0, e) != e * (e + 1) / 2;
	CHECK_INT(check, n_wrong, 0);
	close_kernel(kernel);
}

/*
 * Inner loops of different lengths in step, without private stores: C[i] becomes i + 1 by adding 1
 * each trip.
 */
static void test_uneven(struct check *check)
{
	struct kernel *kernel = open_kernel(1, 1);
	struct buffer *c = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_I32, 20, 0);
	struct stmt *loop =
		add_loop(kernel, &kernel->launch->body, LOOP_PARALLEL, expr_int(kernel->pool, 20));
	const struct expr *i = var_expr(kernel, loop->as.loop.vars[0]);
	const struct expr *load = expr_load(kernel->pool, c, DTYPE_I32, &i, 1);
	struct stmt *inner, *until;
	int n_wrong = 0;

	add_store(kernel, &loop->as.loop.body, c, i, expr_int(kernel->pool, 0));
	inner = add_loop(kernel, &loop->as.loop.body, LOOP_SERIAL, expr_add_int(kernel->pool, i, 1));
	add_store(kernel, &inner->as.loop.body, c, i, expr_add_int(kernel->pool, load, 1));
	until = add_stmt(kernel, &loop->as.loop.body, STMT_WHILE);
	until->as.while_.condition = expr_lt(kernel->pool, load, expr_int(kernel->pool, 10));
	add_store(kernel, &until->as.while_.body, c, i, expr_add_int(kernel->pool, load, 3));
	CHECK(check, run_kernel(check, kernel, NULL));
	for (int e = 0; e < 20; e++) {
		int want = e + 1;
		while (want < 10)
			want += 3;
		n_wrong += output_at(kernel, 0, e) != want;
	}
	CHECK_INT(check, n_wrong, 0);
	close_kernel(kernel);
}

/* A thread's number inside a parallel loop, or an element outside a buffer, is an error. */
static void test_undefined(struct check *check)
{
	for (int variant = 0; variant < 3; variant++) {
		struct kernel *kernel = open_kernel(1, 1);
		struct buffer *c = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_I32, 4, 0);
		struct buffer *s = add_buffer(kernel, SCOPE_SHARED, DTYPE_I32, 4, 0);
		const struct expr *zero = expr_int(kernel->pool, 0);
		const struct expr *four = expr_int(kernel->pool, 4);
		struct var *tx =
			expr_new_var(kernel->pool, VAR_THREAD, intern_text(kernel->cx.names, "tx"), DTYPE_I32);
		struct block *body = &kernel->launch->body;
		kernel->launch->thread[0] = tx;
		if (variant == 0)
			add_store(kernel, &add_loop(kernel, body, LOOP_PARALLEL, four)->as.loop.body, c, zero,
			          var_expr(kernel, tx));
		else if (variant == 1)
			add_store(kernel, body, s, four, zero);
		else
			add_store(kernel, body, c, zero, expr_load(kernel->pool, s, DTYPE_I32, &four, 1));
		CHECK(check, !run_kernel(check, kernel, NULL));
		CHECK_INT(check, kernel->cx.diags.n_errors, 1);
		CHECK_INT(check, kernel->cx.diags.items.p[0]->code, DIAG_E0660);
		close_kernel(kernel);
	}
}

/* ---- comparison ---- */

/* A copy of 8 float32 elements of which the kernel stores 6; `change` spoils the result. */
struct compare_case {
	int element;
	double value;
	double tolerance; /* below 0: the type's */
	bool ok;
	int stray;
	bool is_partial;
};

static const struct compare_case compare_cases[] = {
	{ -1, 0.0, -1.0, true, 0, false },
	{ 3, 0.5, -1.0, false, 0, false },
	{ 3, 0.5, 10.0, true, 0, false },
	{ 3, (double)NAN, 10.0, false, 0, false },
	{ 3, (double)INFINITY, 10.0, false, 0, false },
	{ 7, 1.0, -1.0, false, 1, false },
	{ 7, 1.0, -1.0, true, 0, true },
	{ 3, 0.5, -1.0, false, 0, true },
};

/*
 * A right result passes; a wrong, infinite or undefined element is found, at its place; one that
 * should not have changed is stray, except where only some blocks were compared.
 */
static void test_compare(struct check *check, const struct compare_case *c)
{
	struct kernel *kernel = open_kernel(1, 1);
	struct buffer *a = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F32, 8, 0);
	struct buffer *out = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F32, 8, 0);
	struct tensor_uses uses = { 0 };
	struct tensor_set got;
	struct comparisons verdict;
	struct compare_input input = { .got = &got,
		                           .before = &kernel->inputs,
		                           .reference = &kernel->result,
		                           .tolerance = c->tolerance,
		                           .is_partial = c->is_partial };
	struct region src = box(kernel, a), dst = box(kernel, out);
	float *bytes, changed = (float)c->value;

	src.extent[0] = dst.extent[0] = 6;
	add_copy(kernel, src, dst);
	CHECK(check, run_kernel(check, kernel, NULL));
	tensor_uses_of_tile(kernel->program, &uses);
	CHECK(check, tensors_open(&kernel->cx, &uses, kernel->inputs.values, &got));
	tensors_copy(&got, &kernel->inputs);
	bytes = (float *)(void *)got.items[1].bytes;
	memcpy(bytes, got.items[0].bytes, 6 * sizeof(float));
	if (c->element >= 0)
		bytes[c->element] = changed;
	compare_run(kernel->arena, &input, &verdict);
	CHECK_INT(check, verdict.items.n, 1);
	CHECK_INT(check, verdict.total.ok, c->ok);
	CHECK_INT(check, verdict.total.n_compared, 6);
	CHECK_INT(check, verdict.total.n_stray, c->stray);
	if (!c->ok)
		CHECK_INT(check, verdict.total.worst, c->element);
	else if (c->tolerance < 0)
		CHECK(check, verdict.total.max_abs == 0.0);
	tensors_close(&got);
	close_kernel(kernel);
}

/* Those that sim/compare.h names. */
static void test_tolerances(struct check *check)
{
	CHECK(check, compare_tolerance(DTYPE_F32) == 1e-4);
	CHECK(check, compare_tolerance(DTYPE_F16) == 1e-2);
	CHECK(check, compare_tolerance(DTYPE_BF16) == 2e-2);
	CHECK(check, compare_tolerance(DTYPE(TYPE_FLOAT8_E4M3, 8)) == 1e-1);
	CHECK(check, compare_tolerance(DTYPE_I32) == 0.0);
}

/* Inputs depend on seed, parameter and element alone, and fill their range. */
static void test_inputs(struct check *check)
{
	struct kernel *kernel = open_kernel(1, 1);
	struct buffer *a = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_F32, 1000, 0);
	struct buffer *b = add_buffer(kernel, SCOPE_GLOBAL, DTYPE_I32, 1000, 0);
	double sum = 0.0, least = 1.0, most = -1.0, first;
	int n_outside = 0;

	add_copy(kernel, box(kernel, a), box(kernel, a));
	add_copy(kernel, box(kernel, b), box(kernel, b));
	CHECK(check, run_kernel(check, kernel, NULL));
	first = input_at(kernel, 0, 0);
	for (int i = 0; i < 1000; i++) {
		double value = input_at(kernel, 0, i), integer = input_at(kernel, 1, i);
		sum += value;
		least = fmin(least, value);
		most = fmax(most, value);
		n_outside += !(integer >= -4.0 && integer <= 4.0);
	}
	CHECK(check, fabs(sum) < 60.0 && least < -0.98 && most > 0.98 && least >= -1.0 && most <= 1.0);
	CHECK_INT(check, n_outside, 0);
	tensors_fill(&kernel->inputs, 2);
	CHECK(check, input_at(kernel, 0, 0) != first);
	tensors_fill(&kernel->inputs, 1);
	CHECK(check, input_at(kernel, 0, 0) == first);
	close_kernel(kernel);
}

int main(void)
{
	struct check check = { 0 };

	test_copy(&check);
	test_blocks(&check);
	for (int variant = 0; variant < 16; variant++)
		test_gemm(&check, variant);
	for (int kind = REDUCE_SUM; kind <= REDUCE_ABSMAX; kind++)
		for (int i = 0; i < 4; i++)
			test_reduce(&check, (enum reduce_kind)kind, i % 2, i / 2);
	test_parallel(&check);
	test_private(&check);
	test_uneven(&check);
	test_undefined(&check);
	for (size_t i = 0; i < sizeof(compare_cases) / sizeof(*compare_cases); i++)
		test_compare(&check, &compare_cases[i]);
	test_tolerances(&check);
	test_inputs(&check);
	return check_end(&check);
}
