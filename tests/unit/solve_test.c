/*
 * solve: whole kernels built by hand, the solution's invariants, and known answers: warp grids,
 * swizzles, vector widths, conflicts.
 */
#include "tests/unit/check.h"

#include "analyzer/check/check.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/solve/access.h"
#include "codegen/lower/lower.h"

#include <stdlib.h>

/* ---- building tile programs ---- */

struct maker {
	struct check *check;
	struct cx cx;
	struct expr_pool *pool;
	struct tile_program *program;
	struct launch *launch;
	struct block *block; /* where statements go */
	uint32_t file;
	uint32_t line; /* each statement gets its own */
	struct solve_options options;
};

static struct span next_span(struct maker *m)
{
	m->line++;
	return (struct span){ m->file, m->line * 2, m->line * 2 + 1 };
}

static void maker_open(struct maker *m, struct check *check, int64_t threads, int64_t grid_x,
                       int64_t grid_y)
{
	char lines[1000];

	for (size_t i = 0; i < sizeof(lines); i++)
		lines[i] = i % 2 ? '\n' : 'x';
	*m = (struct maker){ .check = check };
	cx_init(&m->cx, arena_open());
	m->file =
		source_add(m->cx.arena, &m->cx.sources, "kernel.tl", (struct str){ lines, sizeof(lines) });
	m->pool = expr_pool_open(&m->cx);
	m->program = tile_new(&m->cx, m->pool);
	m->program->name = intern_text(m->cx.names, "kernel");
	m->launch = arena_new(m->cx.arena, struct launch);
	m->launch->threads[0] = threads;
	m->launch->threads[1] = m->launch->threads[2] = 1;
	for (int axis = 0; axis < 3; axis++) {
		int64_t extent = axis == 0 ? grid_x : axis == 1 ? grid_y : 1;
		struct var *var =
			expr_new_var(m->pool, VAR_BLOCK, intern_text(m->cx.names, "b"), DTYPE_I32);

		var->axis = axis;
		var->min = 0;
		var->max = extent - 1;
		m->launch->block[axis] = var;
		m->launch->grid[axis] = expr_int(m->pool, extent);
	}
	m->block = &m->launch->body;
	vec_push(m->cx.arena, &m->program->launches, m->launch);
}

static void maker_close(struct maker *m)
{
	arena_close(m->cx.arena);
}

/* Rows and columns; no columns: one dimension. */
struct extents {
	int64_t rows, cols;
};
#define EXTENTS(rows_, cols_) ((struct extents){ (rows_), (cols_) })

static struct buffer *buffer(struct maker *m, enum scope scope, const char *name, struct dtype type,
                             struct extents extents)
{
	struct buffer *made =
		tile_new_buffer(m->program, scope, intern_text(m->cx.names, name), type, next_span(m));

	made->rank = extents.cols > 0 ? 2 : 1;
	made->shape[0] = expr_int(m->pool, extents.rows);
	if (extents.cols > 0)
		made->shape[1] = expr_int(m->pool, extents.cols);
	if (scope == SCOPE_GLOBAL) {
		made->is_param = true;
		vec_push(m->cx.arena, &m->program->params, made);
	}
	return made;
}

static struct stmt *add(struct maker *m, enum stmt_kind kind)
{
	struct stmt *stmt = tile_new_stmt(m->program, kind, next_span(m));

	vec_push(m->cx.arena, &m->block->stmts, stmt);
	return stmt;
}

static const struct expr *num(struct maker *m, int64_t value)
{
	return expr_int(m->pool, value);
}

static const struct expr *block_at(struct maker *m, int axis, int64_t step)
{
	return expr_mul_int(m->pool, expr_of_var(m->pool, m->launch->block[axis]), step);
}

static struct region whole(struct maker *m, const struct buffer *b)
{
	return region_whole(m->pool, b, b->span);
}

static struct region box(const struct buffer *b, const struct expr *row, int64_t rows,
                         const struct expr *col, int64_t cols)
{
	return (struct region){
		.buffer = b, .min = { row, col }, .extent = { rows, cols }, .span = b->span
	};
}

static struct stmt *copy(struct maker *m, struct region src, struct region dst)
{
	struct stmt *stmt = add(m, STMT_OP);

	stmt->as.op.kind = OP_copy;
	stmt->as.op.as.copy = (struct op_copy){ .src = src, .dst = dst };
	return stmt;
}

static struct stmt *fill(struct maker *m, const struct buffer *b)
{
	struct stmt *stmt = add(m, STMT_OP);

	stmt->as.op.kind = OP_fill;
	stmt->as.op.as.fill =
		(struct op_fill){ .dst = whole(m, b), .value = expr_float(m->pool, b->type, 0) };
	return stmt;
}

static struct stmt *gemm(struct maker *m, struct op_gemm op)
{
	struct stmt *stmt = add(m, STMT_OP);

	stmt->as.op.kind = OP_gemm;
	stmt->as.op.as.gemm = op;
	return stmt;
}

static struct stmt *reduce(struct maker *m, const struct buffer *src, const struct buffer *dst,
                           int64_t dim)
{
	struct stmt *stmt = add(m, STMT_OP);

	stmt->as.op.kind = OP_reduce;
	stmt->as.op.as.reduce = (struct op_reduce){
		.src = whole(m, src), .dst = whole(m, dst), .kind = REDUCE_SUM, .dim = dim, .clear = 1
	};
	return stmt;
}

/* A T.Parallel loop; statements go into it until end_loop. */
static struct stmt *begin_loop(struct maker *m, enum loop_kind kind, int64_t rows, int64_t cols)
{
	struct stmt *stmt = add(m, STMT_LOOP);
	const int64_t extents[] = { rows, cols };

	stmt->as.loop.kind = kind;
	stmt->as.loop.n_vars = cols > 0 ? 2 : 1;
	for (uint32_t d = 0; d < stmt->as.loop.n_vars; d++) {
		struct var *var =
			expr_new_var(m->pool, VAR_LOOP, intern_text(m->cx.names, d ? "j" : "i"), DTYPE_I32);

		var->min = 0;
		var->max = extents[d] - 1;
		stmt->as.loop.vars[d] = var;
		stmt->as.loop.extents[d] = num(m, extents[d]);
	}
	m->block = &stmt->as.loop.body;
	return stmt;
}

static void end_loop(struct maker *m)
{
	m->block = &m->launch->body;
}

static const struct expr *var_of(struct maker *m, const struct stmt *loop, int d)
{
	return expr_of_var(m->pool, loop->as.loop.vars[d]);
}

static const struct expr *load(struct maker *m, const struct buffer *b, const struct expr *i,
                               const struct expr *j)
{
	return expr_load(m->pool, b, b->type, (const struct expr *const[]){ i, j }, b->rank);
}

static struct stmt *store(struct maker *m, const struct buffer *b, const struct expr *i,
                          const struct expr *j, const struct expr *value)
{
	struct stmt *stmt = add(m, STMT_STORE);

	stmt->as.store.buffer = b;
	stmt->as.store.index[0] = i;
	stmt->as.store.index[1] = j;
	stmt->as.store.value = expr_cast(m->pool, b->type, value);
	return stmt;
}

/* ---- solving ---- */

static const struct solution *solve(struct maker *m)
{
	const struct solution *solution =
		solve_launch(m->program, m->launch, target_find("sm_80"), &m->options);
	struct buf text = { 0 };

	if (getenv("SHOW")) {
		if (solution)
			solution_print(&text, solution);
		diag_print(&text, &m->cx.diags, &m->cx.sources, false);
		printf("%s\n", buf_cstr(&text));
		buf_free(&text);
	}
	return solution;
}

static const struct solution *solve_ok(struct maker *m)
{
	const struct solution *solution = solve(m);
	bool ok = solution && solution->status != SOLVE_CONFLICT;

	CHECK(m->check, ok);
	CHECK(m->check, ok && solution_verify(solution));
	CHECK_INT(m->check, m->cx.diags.n_errors, 0);
	return ok ? solution : NULL;
}

/* Solving fails with exactly this error, whose text holds `words`, and notes or helps that hold
 * `more`. */
static void check_conflict(struct maker *m, enum diag_code code, const char *words,
                           const char *more)
{
	const struct solution *solution = solve(m);
	const struct diag *diag = m->cx.diags.items.n ? m->cx.diags.items.p[0] : NULL;
	bool found = false;

	CHECK(m->check, !solution || solution->status == SOLVE_CONFLICT);
	if (!CHECK(m->check, diag != NULL))
		return;
	CHECK_INT(m->check, diag->code, code);
	CHECK_INT(m->check, m->cx.diags.n_errors, 1);
	if (!CHECK(m->check, strstr(diag->message, words) != NULL))
		printf("%s\n", diag->message);
	for (uint32_t a = 0; a < diag->attachments.n; a++)
		found |= strstr(diag->attachments.p[a].text, more) != NULL;
	CHECK(m->check, found);
}

static const struct layout *layout_of(const struct solution *solution, const struct buffer *b)
{
	return solution->buffers[b->id].layout;
}

/* ---- gemm ---- */

struct gemm_kernel {
	struct buffer *a, *b, *c, *a_shared, *b_shared, *c_local;
	struct stmt *copy_a, *copy_b, *gemm, *copy_c;
};

struct gemm_tile {
	int64_t m, n, k;
	enum gemm_policy policy;
};

static void make_gemm(struct maker *m, struct gemm_kernel *k, struct gemm_tile tile)
{
	struct stmt *ko, *relu;

	k->a = buffer(m, SCOPE_GLOBAL, "A", DTYPE_F16, EXTENTS(1024, 1024));
	k->b = buffer(m, SCOPE_GLOBAL, "B", DTYPE_F16, EXTENTS(1024, 1024));
	k->c = buffer(m, SCOPE_GLOBAL, "C", DTYPE_F16, EXTENTS(1024, 1024));
	k->a_shared = buffer(m, SCOPE_SHARED, "A_shared", DTYPE_F16, EXTENTS(tile.m, tile.k));
	k->b_shared = buffer(m, SCOPE_SHARED, "B_shared", DTYPE_F16, EXTENTS(tile.k, tile.n));
	k->c_local = buffer(m, SCOPE_FRAGMENT, "C_local", DTYPE_F32, EXTENTS(tile.m, tile.n));
	fill(m, k->c_local);
	ko = begin_loop(m, LOOP_PIPELINED, 1024 / tile.k, 0);
	k->copy_a = copy(m,
	                 box(k->a, block_at(m, 1, tile.m), tile.m,
	                     expr_mul_int(m->pool, var_of(m, ko, 0), tile.k), tile.k),
	                 whole(m, k->a_shared));
	k->copy_b = copy(m,
	                 box(k->b, expr_mul_int(m->pool, var_of(m, ko, 0), tile.k), tile.k,
	                     block_at(m, 0, tile.n), tile.n),
	                 whole(m, k->b_shared));
	k->gemm = gemm(m, (struct op_gemm){ .a = whole(m, k->a_shared),
	                                    .b = whole(m, k->b_shared),
	                                    .c = whole(m, k->c_local),
	                                    .transpose_b = false,
	                                    .policy = tile.policy });
	end_loop(m);
	relu = begin_loop(m, LOOP_PARALLEL, tile.m, tile.n);
	store(m, k->c_local, var_of(m, relu, 0), var_of(m, relu, 1),
	      expr_binary(m->pool, BIN_MAX, load(m, k->c_local, var_of(m, relu, 0), var_of(m, relu, 1)),
	                  expr_float(m->pool, DTYPE_F32, 0)));
	end_loop(m);
	k->copy_c = copy(m, whole(m, k->c_local),
	                 box(k->c, block_at(m, 1, tile.m), tile.m, block_at(m, 0, tile.n), tile.n));
}

static void test_gemm(struct check *check)
{
	struct maker m;
	struct gemm_kernel k;
	const struct solution *solution;
	const struct stmt_plan *plans;

	maker_open(&m, check, 128, 8, 8);
	make_gemm(&m, &k, (struct gemm_tile){ 128, 128, 64, POLICY_SQUARE });
	solution = solve_ok(&m);
	if (!solution)
		return;
	plans = solution->plans;
	CHECK_INT(check, solution->status, SOLVE_OPTIMAL);
	CHECK_TEXT(check, layout_kind_text(layout_of(solution, k.a_shared)), "swizzle128");
	CHECK_TEXT(check, layout_kind_text(layout_of(solution, k.b_shared)), "swizzle128");
	for (int i = 0; i < 2; i++) {
		const struct buffer_solution *solved =
			&solution->buffers[i ? k.a_shared->id : k.b_shared->id];

		CHECK_INT(check, solved->candidates.p[0].wavefronts, solved->candidates.p[0].ideal);
		CHECK(check, solved->candidates.n == 2 &&
		                 solved->candidates.p[1].wavefronts > solved->candidates.p[1].ideal);
	}
	CHECK_INT(check, plans[k.gemm->id].as.gemm.warps_m, 2);
	CHECK_INT(check, plans[k.gemm->id].as.gemm.warps_n, 2);
	CHECK(check, layout_equal(layout_of(solution, k.c_local),
	                          layout_mma_accumulator(m.cx.arena, 128, 128, 2, 2), NULL));
	CHECK_INT(check, plans[k.copy_a->id].as.copy.kind, COPY_CP_ASYNC);
	CHECK_INT(check, plans[k.copy_a->id].as.copy.bytes, 16);
	CHECK_INT(check, plans[k.copy_b->id].as.copy.kind, COPY_CP_ASYNC);
	CHECK_INT(check, plans[k.copy_b->id].as.copy.bytes, 16);
	CHECK_INT(check, plans[k.copy_c->id].as.copy.kind, COPY_LOOP);
	CHECK_INT(check, plans[k.copy_c->id].as.copy.bytes, 4);
	CHECK_INT(check, plans[k.copy_a->id].as.copy.loop.layout->n_threads, 128);
	maker_close(&m);
}

struct grid_case {
	int64_t m, n, k, threads;
	enum gemm_policy policy;
	int64_t warps_m, warps_n;
};

static void test_warp_grids(struct check *check)
{
	static const struct grid_case cases[] = {
		{ 128, 128, 64, 256, POLICY_SQUARE, 2, 4 },   { 128, 128, 32, 128, POLICY_FULL_ROW, 4, 1 },
		{ 128, 128, 32, 128, POLICY_FULL_COL, 1, 4 }, { 64, 256, 32, 128, POLICY_BEST, 1, 4 },
		{ 16, 96, 32, 384, POLICY_SQUARE, 1, 12 },    { 16, 104, 32, 416, POLICY_SQUARE, 1, 13 },
		{ 64, 24, 16, 128, POLICY_FULL_COL, 4, 1 },   { 256, 16, 32, 512, POLICY_SQUARE, 8, 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct maker m;
		struct gemm_kernel k;
		const struct solution *solution;

		maker_open(&m, check, cases[i].threads, 8, 8);
		make_gemm(&m, &k,
		          (struct gemm_tile){ cases[i].m, cases[i].n, cases[i].k, cases[i].policy });
		solution = solve_ok(&m);
		if (solution) {
			CHECK_INT(check, solution->plans[k.gemm->id].as.gemm.warps_m, cases[i].warps_m);
			CHECK_INT(check, solution->plans[k.gemm->id].as.gemm.warps_n, cases[i].warps_n);
		}
		maker_close(&m);
	}
}

static void test_gemm_errors(struct check *check)
{
	struct maker m;
	struct gemm_kernel k;

	maker_open(&m, check, 384, 8, 8);
	make_gemm(&m, &k, (struct gemm_tile){ 16, 104, 32, POLICY_SQUARE });
	check_conflict(&m, DIAG_E0402, "no covering split of 12 warps", "threads=416");
	maker_close(&m);
	maker_open(&m, check, 544, 8, 8);
	make_gemm(&m, &k, (struct gemm_tile){ 288, 8, 32, POLICY_SQUARE });
	check_conflict(&m, DIAG_E0402, "17 warps", "threads=576");
	maker_close(&m);
	maker_open(&m, check, 128, 8, 8);
	make_gemm(&m, &k, (struct gemm_tile){ 64, 64, 20, POLICY_SQUARE });
	solve_ok(&m);
	maker_close(&m);
	maker_open(&m, check, 128, 8, 8);
	make_gemm(&m, &k, (struct gemm_tile){ 24, 64, 32, POLICY_SQUARE });
	check_conflict(&m, DIAG_E0403, "M=24", "make the tile's M 32");
	maker_close(&m);
}

/* Two accumulators of different warp grids meet in one loop. */
static void test_accumulator_conflict(struct check *check)
{
	struct maker m;
	const struct solution *solution;
	struct buffer *q, *k, *s, *p;
	struct stmt *loop;

	maker_open(&m, check, 256, 1, 1);
	q = buffer(&m, SCOPE_SHARED, "Q", DTYPE_BF16, EXTENTS(64, 128));
	k = buffer(&m, SCOPE_SHARED, "K", DTYPE_BF16, EXTENTS(128, 128));
	s = buffer(&m, SCOPE_FRAGMENT, "acc_s", DTYPE_F32, EXTENTS(64, 128));
	p = buffer(&m, SCOPE_FRAGMENT, "acc_p", DTYPE_F32, EXTENTS(64, 128));
	gemm(&m, (struct op_gemm){ .a = whole(&m, q),
	                           .b = whole(&m, k),
	                           .c = whole(&m, s),
	                           .transpose_b = true,
	                           .policy = POLICY_FULL_ROW });
	gemm(&m, (struct op_gemm){ .a = whole(&m, q),
	                           .b = whole(&m, k),
	                           .c = whole(&m, p),
	                           .transpose_b = true,
	                           .policy = POLICY_FULL_COL });
	loop = begin_loop(&m, LOOP_PARALLEL, 64, 128);
	store(&m, p, var_of(&m, loop, 0), var_of(&m, loop, 1),
	      load(&m, s, var_of(&m, loop, 0), var_of(&m, loop, 1)));
	end_loop(&m);
	m.options.strict = true;
	check_conflict(&m, DIAG_E0406, "is wanted in two layouts", "elements differ");
	CHECK_INT(check, m.cx.diags.items.n, 1);
	/* Without --strict the loop reads a converted copy. */
	m.options.strict = false;
	m.cx.diags = (struct diag_list){ .arena = m.cx.arena };
	solution = solve_ok(&m);
	if (solution) {
		const struct conversion *conversion = plan_conversion(&solution->plans[loop->id], s);

		CHECK(check, conversion && conversion->kind == CONVERT_SHARED);
		CHECK(check, conversion && conversion->wavefronts == conversion->ideal);
		CHECK_INT(check, conversion ? conversion->n_barriers : 0, 2);
		CHECK(check, conversion && layout_count_differences(conversion->from, conversion->to) > 0);
	}
	maker_close(&m);
	/* The same fragment, directly. */
	maker_open(&m, check, 256, 1, 1);
	q = buffer(&m, SCOPE_SHARED, "Q", DTYPE_BF16, EXTENTS(64, 128));
	k = buffer(&m, SCOPE_SHARED, "K", DTYPE_BF16, EXTENTS(128, 128));
	s = buffer(&m, SCOPE_FRAGMENT, "acc_s", DTYPE_F32, EXTENTS(64, 128));
	gemm(&m, (struct op_gemm){ .a = whole(&m, q),
	                           .b = whole(&m, k),
	                           .c = whole(&m, s),
	                           .transpose_b = true,
	                           .policy = POLICY_FULL_ROW });
	gemm(&m, (struct op_gemm){ .a = whole(&m, q),
	                           .b = whole(&m, k),
	                           .c = whole(&m, s),
	                           .transpose_b = true,
	                           .policy = POLICY_FULL_COL });
	m.options.strict = true;
	check_conflict(&m, DIAG_E0406, "acc_s is wanted in two layouts",
	               "policy=T.GemmWarpPolicy.FullCol on line");
	/* Without --strict one of the two converts it, there and back. */
	m.options.strict = false;
	m.cx.diags = (struct diag_list){ .arena = m.cx.arena };
	solution = solve_ok(&m);
	if (solution) {
		const struct stmt_plan *plan = &solution->plans[vec_last(&m.block->stmts)->id];

		CHECK_INT(check, plan->conversions.n, 2);
		CHECK(check, plan->conversions.n == 2 && !plan->conversions.p[0].is_after &&
		                 plan->conversions.p[1].is_after);
		CHECK(check,
		      plan->conversions.n == 2 &&
		          layout_equal(plan->conversions.p[1].to, solution->buffers[s->id].layout, NULL));
	}
	maker_close(&m);
}

/* The scores of one gemm, cast, are operand A of the next one. */
struct chain {
	struct buffer *scores, *cast;
	struct stmt *loop, *second;
};

static struct chain make_chain(struct maker *m, bool transpose_a)
{
	struct buffer *q = buffer(m, SCOPE_SHARED, "Q", DTYPE_BF16, EXTENTS(64, 128));
	struct buffer *k = buffer(m, SCOPE_SHARED, "K", DTYPE_BF16, EXTENTS(128, 128));
	struct buffer *v =
		buffer(m, SCOPE_SHARED, "V", DTYPE_BF16, EXTENTS(transpose_a ? 64 : 128, 64));
	struct buffer *o =
		buffer(m, SCOPE_FRAGMENT, "O", DTYPE_F32, EXTENTS(transpose_a ? 128 : 64, 64));
	struct chain chain = { 0 };

	chain.scores = buffer(m, SCOPE_FRAGMENT, "scores", DTYPE_F32, EXTENTS(64, 128));
	chain.cast = buffer(m, SCOPE_FRAGMENT, "cast", DTYPE_BF16, EXTENTS(64, 128));
	gemm(m, (struct op_gemm){ .a = whole(m, q),
	                          .b = whole(m, k),
	                          .c = whole(m, chain.scores),
	                          .transpose_b = true,
	                          .policy = POLICY_FULL_ROW });
	chain.loop = begin_loop(m, LOOP_PARALLEL, 64, 128);
	store(m, chain.cast, var_of(m, chain.loop, 0), var_of(m, chain.loop, 1),
	      load(m, chain.scores, var_of(m, chain.loop, 0), var_of(m, chain.loop, 1)));
	end_loop(m);
	gemm(m, (struct op_gemm){ .a = whole(m, chain.cast),
	                          .b = whole(m, v),
	                          .c = whole(m, o),
	                          .transpose_a = transpose_a,
	                          .policy = POLICY_FULL_ROW });
	chain.second = vec_last(&m->block->stmts);
	return chain;
}

static void test_operand_chain(struct check *check)
{
	const struct solution *solution;
	const struct conversion *conversion;
	struct maker m;
	struct chain chain;
	int64_t first[MAX_RANK] = { 0 };

	/* m16n8k16: an accumulator is the next gemm's operand A as it is. */
	maker_open(&m, check, 128, 1, 1);
	chain = make_chain(&m, false);
	m.options.strict = true;
	solution = solve_ok(&m);
	if (solution) {
		CHECK(check, layout_equal(solution->buffers[chain.scores->id].layout,
		                          solution->buffers[chain.cast->id].layout, NULL));
		CHECK(check, solution->plans[chain.second->id].as.gemm.a_is_fragment);
		CHECK_INT(check, solution->plans[chain.second->id].conversions.n, 0);
	}
	maker_close(&m);
	/* Read transposed by 8 warps, after 4 x 2 warps made it: nearly all elements move. */
	maker_open(&m, check, 256, 1, 1);
	chain = make_chain(&m, true);
	solution = solve_ok(&m);
	conversion = solution ? plan_conversion(&solution->plans[chain.second->id], chain.cast) : NULL;
	if (CHECK(check, conversion != NULL)) {
		CHECK(check, conversion->kind == CONVERT_SHARED);
		CHECK_INT(check, conversion->workspace_bytes, 64 * 128 * 2);
		CHECK_INT(check, conversion->wavefronts, conversion->ideal);
		CHECK_INT(check, layout_count_differences(conversion->from, conversion->to), 8064);
		CHECK(check, !layout_equal(conversion->from, conversion->to, first));
		CHECK(check, first[0] == 0 && first[1] == 1);
	}
	m.options.strict = true;
	m.cx.diags = (struct diag_list){ .arena = m.cx.arena };
	check_conflict(&m, DIAG_E0406, "cast is wanted in two layouts",
	               "thread 4 slot 0 in the first, thread 0 slot 1 in the second; 8064 of 8192");
	maker_close(&m);
}

/* Operand rows whose pitch is an odd multiple of 16 bytes need no swizzle; others get one that
 * reaches the ideal. */
static void test_operand_widths(struct check *check)
{
	static const struct {
		int64_t n;
		const char *kind;
	} cases[] = { { 72, "linear" },     { 104, "linear" },   { 40, "linear" },
		          { 64, "swizzle128" }, { 96, "swizzle64" }, { 192, "swizzle128" },
		          { 32, "swizzle64" },  { 16, "swizzle32" }, { 48, "swizzle32" },
		          { 80, "swizzle32" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct maker m;
		struct buffer *a, *b, *c;
		const struct solution *solution;

		maker_open(&m, check, 32, 1, 1);
		a = buffer(&m, SCOPE_SHARED, "a", DTYPE_F16, EXTENTS(64, 64));
		b = buffer(&m, SCOPE_SHARED, "b", DTYPE_F16, EXTENTS(64, cases[i].n));
		c = buffer(&m, SCOPE_FRAGMENT, "c", DTYPE_F32, EXTENTS(64, cases[i].n));
		gemm(&m, (struct op_gemm){ .a = whole(&m, a),
		                           .b = whole(&m, b),
		                           .c = whole(&m, c),
		                           .transpose_b = false,
		                           .policy = POLICY_SQUARE });
		solution = solve_ok(&m);
		if (solution) {
			const struct candidate *first = &solution->buffers[b->id].candidates.p[0];

			CHECK_TEXT(check, layout_kind_text(layout_of(solution, b)), cases[i].kind);
			CHECK_INT(check, first->wavefronts, first->ideal);
		}
		maker_close(&m);
	}
}

/* ---- row kernels ---- */

struct row_kernel {
	struct buffer *x, *y, *x_shared, *x_local, *square, *sum;
	struct stmt *load_x, *reduce, *store_y, *scale;
};

/* y = x / sqrt(mean(x^2)); through shared memory or directly. */
static void make_rms(struct maker *m, struct row_kernel *k, int64_t rows, int64_t width,
                     bool through_shared)
{
	struct stmt *loop;
	const struct expr *i, *j;
	struct region source;

	k->x = buffer(m, SCOPE_GLOBAL, "x", DTYPE_F16, EXTENTS(4096, width));
	k->y = buffer(m, SCOPE_GLOBAL, "y", DTYPE_F16, EXTENTS(4096, width));
	k->x_shared = through_shared
	                  ? buffer(m, SCOPE_SHARED, "x_shared", DTYPE_F16, EXTENTS(rows, width))
	                  : NULL;
	k->x_local = buffer(m, SCOPE_FRAGMENT, "x_local", DTYPE_F16, EXTENTS(rows, width));
	k->square = buffer(m, SCOPE_FRAGMENT, "square", DTYPE_F32, EXTENTS(rows, width));
	k->sum = buffer(m, SCOPE_FRAGMENT, "sum", DTYPE_F32, EXTENTS(rows, 0));
	source = box(k->x, block_at(m, 0, rows), rows, num(m, 0), width);
	if (through_shared) {
		k->load_x = copy(m, source, whole(m, k->x_shared));
		copy(m, whole(m, k->x_shared), whole(m, k->x_local));
	} else {
		k->load_x = copy(m, source, whole(m, k->x_local));
	}
	loop = begin_loop(m, LOOP_PARALLEL, rows, width);
	i = var_of(m, loop, 0);
	j = var_of(m, loop, 1);
	store(m, k->square, i, j,
	      expr_binary(m->pool, BIN_MUL, expr_cast(m->pool, DTYPE_F32, load(m, k->x_local, i, j)),
	                  expr_cast(m->pool, DTYPE_F32, load(m, k->x_local, i, j))));
	end_loop(m);
	k->reduce = reduce(m, k->square, k->sum, 1);
	loop = begin_loop(m, LOOP_PARALLEL, rows, 0);
	i = var_of(m, loop, 0);
	store(m, k->sum, i, NULL,
	      expr_math(m->pool, MATH_rsqrt, (const struct expr *const[]){ load(m, k->sum, i, NULL) },
	                1));
	end_loop(m);
	k->scale = loop = begin_loop(m, LOOP_PARALLEL, rows, width);
	i = var_of(m, loop, 0);
	j = var_of(m, loop, 1);
	store(m, k->x_local, i, j,
	      expr_binary(m->pool, BIN_MUL, expr_cast(m->pool, DTYPE_F32, load(m, k->x_local, i, j)),
	                  load(m, k->sum, i, NULL)));
	end_loop(m);
	k->store_y =
		copy(m, whole(m, k->x_local), box(k->y, block_at(m, 0, rows), rows, num(m, 0), width));
}

/* Share of (thread, slot) places of the partition's used warps that hold an element. */
static double fill_share(const struct layout *layout)
{
	double n = (double)layout->n_replicas;
	int64_t n_warps = (layout->n_threads + 31) / 32;

	for (uint32_t d = 0; d < layout->rank; d++)
		n *= (double)layout->shape[d];
	return n / (double)(n_warps * 32 * layout->n_slots);
}

/* Every thread that computes with sum[i] in the scaling loop owns it, in one slot for all threads.
 */
static void check_owners(struct maker *m, const struct solution *solution,
                         const struct row_kernel *k)
{
	struct access_space space;
	const struct loop_plan *plan = &solution->plans[k->scale->id].as.loop;
	const struct expr *index[] = { var_of(m, k->scale, 0) }, *slot;
	struct owner_mismatch mismatch;

	access_space_init(&space, &m->cx, m->pool, launch_n_threads(m->launch));
	struct elem_ref ref = { plan, k->scale->as.loop.vars, k->sum, layout_of(solution, k->sum),
		                    index };
	CHECK(m->check,
	      access_fragment_slot(&space, &ref, access_iter_var(&space, 5, plan->layout->n_slots),
	                           &slot, &mismatch));
}

static void check_rms(struct check *check, int64_t rows, int64_t width, int64_t threads,
                      bool through_shared)
{
	struct maker m;
	struct row_kernel k;
	const struct solution *solution;

	maker_open(&m, check, threads, 4096 / rows, 1);
	make_rms(&m, &k, rows, width, through_shared);
	solution = solve_ok(&m);
	if (solution) {
		const struct copy_plan *load = &solution->plans[k.load_x->id].as.copy,
							   *out = &solution->plans[k.store_y->id].as.copy;
		const struct reduce_plan *plan = &solution->plans[k.reduce->id].as.reduce;
		int64_t widest = width % 8 == 0 ? 16 : width % 4 == 0 ? 8 : width % 2 == 0 ? 4 : 2;

		/* With less than one widest vector a thread, narrower ones on more threads may win; without
		   a rest, 4 bytes a thread and 16 took an H200 the same time. */
		if (rows * width * 2 >= threads * widest) {
			CHECK(check, out->bytes * 4 >= widest);
			CHECK(check, load->bytes * 4 >= widest);
		}
		if (getenv("TABLE")) {
			printf("%5d x %5d, %4d threads: load %d store %d bytes, fill %.2f, warps %d: ",
			       (int)rows, (int)width, (int)threads, (int)load->bytes, (int)out->bytes,
			       fill_share(layout_of(solution, k.x_local)), (int)plan->n_parts);
			struct buf b = { 0 };
			layout_print(&b, layout_of(solution, k.x_local));
			printf("%s\n", buf_cstr(&b));
			buf_free(&b);
		}
		CHECK(check, layout_equal(plan->result, layout_of(solution, k.sum), NULL));
		check_owners(&m, solution, &k);
		if (rows * width >= threads * 8 && width > 32)
			CHECK(check, fill_share(layout_of(solution, k.x_local)) > 0.6);
		if (through_shared)
			CHECK_INT(check, load->kind, widest >= 4 ? COPY_CP_ASYNC : COPY_STAGED);
	}
	if (check->n_failed > 0)
		printf("rows %d width %d threads %d shared %d\n", (int)rows, (int)width, (int)threads,
		       through_shared);
	maker_close(&m);
}

static void test_rms(struct check *check)
{
	static const int64_t widths[] = { 96,  160, 192,  229,  257,  320, 448,
		                              640, 768, 1000, 1024, 4096, 1,   7 };
	static const int64_t rows[] = { 1, 2, 3, 4, 8, 16 };
	static const int64_t threads[] = { 32, 64, 96, 128, 256, 1024 };

	for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
		for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
			for (size_t t = 0; t < sizeof(threads) / sizeof(threads[0]); t++)
				if ((w + r + t) % 3 == 0 && check->n_failed == 0)
					check_rms(check, rows[r], widths[w], threads[t], (w + t) % 2);
}

/* One row of N elements on 128 threads: element j sits in thread j % 128 when no vectors fit. */
static void test_one_row(struct check *check)
{
	static const int64_t widths[] = { 128, 192, 229, 256, 257, 384 };

	for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
		struct maker m;
		struct buffer *x, *y, *f;
		struct stmt *loop;
		const struct solution *solution;

		maker_open(&m, check, 128, 1, 1);
		x = buffer(&m, SCOPE_GLOBAL, "x", DTYPE_F32, EXTENTS(1, widths[w]));
		y = buffer(&m, SCOPE_GLOBAL, "y", DTYPE_F32, EXTENTS(1, widths[w]));
		f = buffer(&m, SCOPE_FRAGMENT, "f", DTYPE_F32, EXTENTS(1, widths[w]));
		copy(&m, whole(&m, x), whole(&m, f));
		loop = begin_loop(&m, LOOP_PARALLEL, 1, widths[w]);
		store(&m, f, num(&m, 0), var_of(&m, loop, 1),
		      expr_binary(m.pool, BIN_ADD, load(&m, f, num(&m, 0), var_of(&m, loop, 1)),
		                  expr_float(m.pool, DTYPE_F32, 1)));
		end_loop(&m);
		copy(&m, whole(&m, f), whole(&m, y));
		solution = solve_ok(&m);
		if (solution && widths[w] == 229) {
			int64_t index[] = { 0, 200 };

			CHECK_INT(check, layout_of(solution, f)->n_slots, 2);
			CHECK_INT(check, layout_at(layout_of(solution, f), index, 0).thread, 72);
		}
		maker_close(&m);
	}
}

/* The larger of two loops decides, whichever comes first. */
static void test_smaller_loop(struct check *check)
{
	struct maker m;
	struct buffer *f, *c;
	struct stmt *loop;
	const struct solution *solution;

	maker_open(&m, check, 256, 1, 1);
	f = buffer(&m, SCOPE_FRAGMENT, "f", DTYPE_F32, EXTENTS(256, 0));
	c = buffer(&m, SCOPE_GLOBAL, "c", DTYPE_F32, EXTENTS(256, 0));
	loop = begin_loop(&m, LOOP_PARALLEL, 100, 0);
	store(&m, f, var_of(&m, loop, 0), NULL, expr_float(m.pool, DTYPE_F32, 5));
	end_loop(&m);
	loop = begin_loop(&m, LOOP_PARALLEL, 256, 0);
	store(&m, c, var_of(&m, loop, 0), NULL, load(&m, f, var_of(&m, loop, 0), NULL));
	end_loop(&m);
	solution = solve_ok(&m);
	CHECK(check, solution && layout_of(solution, f)->shape[0] == 256);
	maker_close(&m);
}

/* a[i, j/32] is read by the 32 iterations that share it; accumulating into it from them is refused.
 */
static void test_broadcast(struct check *check, bool good)
{
	struct maker m;
	struct buffer *a, *b, *ga, *gb;
	struct stmt *loop;
	const struct expr *i, *j, *group;

	maker_open(&m, check, 128, 1, 1);
	ga = buffer(&m, SCOPE_GLOBAL, "A", DTYPE_I32, EXTENTS(16, 14));
	gb = buffer(&m, SCOPE_GLOBAL, "B", DTYPE_I32, EXTENTS(16, 448));
	a = buffer(&m, SCOPE_FRAGMENT, "a", DTYPE_I32, EXTENTS(16, 14));
	b = buffer(&m, SCOPE_FRAGMENT, "b", DTYPE_I32, EXTENTS(16, 448));
	copy(&m, whole(&m, ga), whole(&m, a));
	copy(&m, whole(&m, gb), whole(&m, b));
	loop = begin_loop(&m, LOOP_PARALLEL, 16, 448);
	i = var_of(&m, loop, 0);
	j = var_of(&m, loop, 1);
	group = expr_div_int(m.pool, j, 32);
	if (good)
		store(&m, b, i, j, expr_add(m.pool, load(&m, b, i, j), load(&m, a, i, group)));
	else
		store(&m, a, i, group, expr_add(m.pool, load(&m, a, i, group), load(&m, b, i, j)));
	end_loop(&m);
	if (good) {
		const struct solution *solution = solve_ok(&m);

		CHECK(check, solution && layout_of(solution, a)->n_replicas > 1);
	} else {
		check_conflict(&m, DIAG_E0405, "several iterations", "a[0, 0]");
	}
	maker_close(&m);
}

/* A neighbour's element sits in another thread. */
static void test_neighbour(struct check *check)
{
	struct maker m;
	struct buffer *f, *g, *c;
	struct stmt *loop;
	const struct expr *i, *next;

	maker_open(&m, check, 128, 1, 1);
	c = buffer(&m, SCOPE_GLOBAL, "c", DTYPE_F32, EXTENTS(128, 0));
	f = buffer(&m, SCOPE_FRAGMENT, "f", DTYPE_F32, EXTENTS(128, 0));
	g = buffer(&m, SCOPE_FRAGMENT, "g", DTYPE_F32, EXTENTS(128, 0));
	copy(&m, whole(&m, c), whole(&m, f));
	loop = begin_loop(&m, LOOP_PARALLEL, 128, 0);
	i = var_of(&m, loop, 0);
	next = expr_mod_int(m.pool, expr_add_int(m.pool, i, 1), 128);
	store(&m, g, i, NULL,
	      expr_binary(m.pool, BIN_ADD, load(&m, f, i, NULL), load(&m, f, next, NULL)));
	end_loop(&m);
	check_conflict(&m, DIAG_E0405, "owns", "shared memory");
	maker_close(&m);
}

/* A per-column vector beside a per-row sum: both become replicas of the loop's partition. */
static void test_gamma(struct check *check)
{
	struct maker m;
	struct row_kernel k;
	struct buffer *gamma, *gamma_local;
	struct stmt *loop;
	const struct solution *solution;

	maker_open(&m, check, 128, 512, 1);
	make_rms(&m, &k, 8, 320, false);
	gamma = buffer(&m, SCOPE_GLOBAL, "gamma", DTYPE_F16, EXTENTS(320, 0));
	gamma_local = buffer(&m, SCOPE_FRAGMENT, "gamma_local", DTYPE_F16, EXTENTS(320, 0));
	copy(&m, whole(&m, gamma), whole(&m, gamma_local));
	loop = begin_loop(&m, LOOP_PARALLEL, 8, 320);
	store(&m, k.x_local, var_of(&m, loop, 0), var_of(&m, loop, 1),
	      expr_binary(m.pool, BIN_MUL,
	                  load(&m, k.x_local, var_of(&m, loop, 0), var_of(&m, loop, 1)),
	                  load(&m, gamma_local, var_of(&m, loop, 1), NULL)));
	end_loop(&m);
	solution = solve_ok(&m);
	CHECK(check, solution && layout_of(solution, gamma_local)->n_replicas > 1);
	maker_close(&m);
}

/* c = a + b over a 2-D tile, without fragments. */
static void test_elementwise(struct check *check)
{
	struct maker m;
	struct buffer *a, *b, *c;
	struct stmt *loop;
	const struct expr *row, *col;
	const struct solution *solution;

	maker_open(&m, check, 128, 8, 8);
	a = buffer(&m, SCOPE_GLOBAL, "a", DTYPE_F32, EXTENTS(1000, 1000));
	b = buffer(&m, SCOPE_GLOBAL, "b", DTYPE_F32, EXTENTS(1000, 1000));
	c = buffer(&m, SCOPE_GLOBAL, "c", DTYPE_F32, EXTENTS(1000, 1000));
	loop = begin_loop(&m, LOOP_PARALLEL, 32, 96);
	row = expr_add(m.pool, block_at(&m, 1, 32), var_of(&m, loop, 0));
	col = expr_add(m.pool, block_at(&m, 0, 96), var_of(&m, loop, 1));
	store(&m, c, row, col,
	      expr_binary(m.pool, BIN_ADD, load(&m, a, row, col), load(&m, b, row, col)));
	end_loop(&m);
	solution = solve_ok(&m);
	if (solution) {
		CHECK_INT(check, solution->plans[loop->id].as.loop.vector_elems % 4, 0);
		CHECK(check, fill_share(solution->plans[loop->id].as.loop.layout) > 0.9);
	}
	maker_close(&m);
}

/* ---- a broken exchange is found ---- */

/* How the property came out; `breaks` changes the plan of the reduction before. */
struct exchange {
	int64_t rows, width, threads;
	int64_t toggled_bits; /* of the shuffles */
	int64_t parts;        /* 0: as planned */
	enum property_status want;
};

static void test_exchange(struct check *check, const struct exchange *e)
{
	struct maker m;
	struct buffer *x, *y, *x_local, *total;
	struct stmt *sum;
	const struct solution *solution;
	const struct schedule *schedule;
	struct property_list list = { { 0 } };

	maker_open(&m, check, e->threads, 1, 1);
	x = buffer(&m, SCOPE_GLOBAL, "x", DTYPE_F32, EXTENTS(e->rows, e->width));
	y = buffer(&m, SCOPE_GLOBAL, "y", DTYPE_F32, EXTENTS(e->rows, 0));
	x_local = buffer(&m, SCOPE_FRAGMENT, "x_local", DTYPE_F32, EXTENTS(e->rows, e->width));
	total = buffer(&m, SCOPE_FRAGMENT, "total", DTYPE_F32, EXTENTS(e->rows, 0));
	copy(&m, whole(&m, x), whole(&m, x_local));
	sum = reduce(&m, x_local, total, 1);
	copy(&m, whole(&m, total), whole(&m, y));
	solution = solve_ok(&m);
	if (!CHECK(check, solution != NULL))
		return;
	struct reduce_plan *plan = &solution->plans[sum->id].as.reduce;
	schedule = schedule_make(solution);
	const struct warp_program *warp = lower_launch(schedule);
	plan->lane_mask_bits ^= e->toggled_bits;
	if (e->parts)
		plan->n_parts = e->parts;
	check_launch(schedule, warp, &list);
	for (uint32_t i = 0; i < list.items.n; i++) {
		if (list.items.p[i].name != PROPERTY_REPLICAS)
			continue;
		CHECK_INT(check, list.items.p[i].status, e->want);
		if (getenv("SHOW"))
			printf("bits 0x%x, %d parts: %s\n", (unsigned)plan->lane_mask_bits, (int)plan->n_parts,
			       list.items.p[i].detail);
	}
	maker_close(&m);
}

static void test_exchanges(struct check *check)
{
	static const struct exchange cases[] = {
		{ 8, 128, 128, 0, 0, PROPERTY_PROVED },
		{ 8, 100, 48, 0, 0, PROPERTY_PROVED },
		{ 8, 128, 128, 1, 0, PROPERTY_VIOLATED },  /* half of the lanes are left out */
		{ 8, 128, 128, 16, 0, PROPERTY_VIOLATED }, /* another row's lanes come in */
		{ 1, 4096, 128, 0, 0, PROPERTY_PROVED },
		{ 1, 4096, 128, 8, 0, PROPERTY_VIOLATED }, /* half of the lanes are left out */
		{ 1, 4096, 128, 0, 5, PROPERTY_VIOLATED }, /* a part that nobody writes is read */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		test_exchange(check, &cases[i]);
}

int main(void)
{
	struct check check = { 0 };

	test_gemm(&check);
	test_warp_grids(&check);
	test_gemm_errors(&check);
	test_operand_chain(&check);
	test_accumulator_conflict(&check);
	test_operand_widths(&check);
	test_rms(&check);
	test_one_row(&check);
	test_smaller_loop(&check);
	test_broadcast(&check, true);
	test_broadcast(&check, false);
	test_neighbour(&check);
	test_gamma(&check);
	test_elementwise(&check);
	test_exchanges(&check);
	return check_end(&check);
}
