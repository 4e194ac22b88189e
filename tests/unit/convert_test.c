/*
 * Conversions between random fragment layouts.
 *
 * Each case is a kernel that copies a tile into one fragment, that into a second one, and that out
 * again, where T.annotate_layout gives both fragments layouts drawn at random: mixed radix digits
 * in any order, extents that are no powers of two, replicas. What comes out must be what went in,
 * bit by bit, and the simulator must find neither a race nor a value that nothing wrote. Shuffles
 * and shared memory must both occur, and pairs that need neither: the same threads with other
 * slots. The reference knows no layouts.
 */
#include "analyzer/compile.h"
#include "sim/compare.h"
#include "sim/sim.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <unistd.h>

enum { N_CASES = 400, MAX_PARTS = 8, MAX_TEXT = 1024 };

/* One digit: dimension, divisor, extent. */
struct part {
	int dim;
	int64_t div, extent;
};

struct shape {
	int64_t rows, columns, n_threads;
};

/* A layout: its digits, lowest stride first, each of the thread or of the slot. */
struct drawing {
	struct part parts[2 * MAX_PARTS];
	bool is_thread[2 * MAX_PARTS];
	uint32_t n;
	int64_t threads, replicas;
};

static int64_t pick(uint64_t *state, int64_t n)
{
	return (int64_t)(check_random(state) % (uint64_t)n);
}

/* Splits an extent into prime factors, lowest first. */
static uint32_t split(int dim, int64_t extent, struct part *parts)
{
	uint32_t n = 0;
	int64_t div = 1;

	for (int64_t p = 2; extent > 1; p++)
		while (extent % p == 0 && n < MAX_PARTS) {
			parts[n++] = (struct part){ dim, div, p };
			div *= p;
			extent /= p;
		}
	return n;
}

static void shuffle(uint64_t *state, struct part *parts, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)pick(state, i);
		struct part other = parts[j];

		parts[j] = parts[i - 1];
		parts[i - 1] = other;
	}
}

/* Random digits; replicas where they fill the block. */
static void draw(uint64_t *state, const struct shape *shape, struct drawing *out)
{
	out->n = split(0, shape->rows, out->parts);
	out->n += split(1, shape->columns, out->parts + out->n);
	out->threads = out->replicas = 1;
	shuffle(state, out->parts, out->n);
	for (uint32_t i = 0; i < out->n; i++) {
		int64_t threads = out->threads * out->parts[i].extent;

		out->is_thread[i] = threads <= shape->n_threads && pick(state, 4) > 0;
		if (out->is_thread[i])
			out->threads = threads;
	}
	if (shape->n_threads % out->threads == 0 && pick(state, 2))
		out->replicas = shape->n_threads / out->threads;
}

/* The same threads, the slots in another order. */
static void redraw_slots(uint64_t *state, struct drawing *drawing)
{
	struct part slots[2 * MAX_PARTS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < drawing->n; i++)
		if (!drawing->is_thread[i])
			slots[n++] = drawing->parts[i];
	shuffle(state, slots, n);
	for (uint32_t i = drawing->n; i-- > 0;)
		if (!drawing->is_thread[i])
			drawing->parts[i] = slots[--n];
}

/* T.Fragment(...) of the drawing. */
static void put_fragment(const struct shape *shape, const struct drawing *drawing, char *out,
                         size_t size)
{
	char text[2][MAX_TEXT] = { "0", "0" }, replica[64] = "";
	size_t at[2] = { 1, 1 };
	int64_t stride[2] = { 1, 1 };

	for (uint32_t i = 0; i < drawing->n; i++) {
		const struct part *part = &drawing->parts[i];
		int axis = drawing->is_thread[i] ? 0 : 1;

		at[axis] += (size_t)snprintf(text[axis] + at[axis], MAX_TEXT - at[axis],
		                             " + %c // %" PRId64 " %% %" PRId64 " * %" PRId64,
		                             part->dim ? 'j' : 'i', part->div, part->extent, stride[axis]);
		stride[axis] *= part->extent;
	}
	if (drawing->replicas > 1)
		snprintf(replica, sizeof(replica), " + r * %" PRId64, drawing->threads);
	snprintf(out, size,
	         "T.Fragment((%" PRId64 ", %" PRId64 "), forward_thread_fn=lambda i, j%s: %s%s, "
	         "forward_index_fn=lambda i, j: %s, replicate=%" PRId64 ")",
	         shape->rows, shape->columns, drawing->replicas > 1 ? ", r" : "", text[0], replica,
	         text[1], drawing->replicas);
}

static void put_kernel(uint64_t *state, char *out, size_t size)
{
	static const char *const types[] = { "float32", "float16", "int32", "int8" };
	static const int64_t rows[] = { 4, 6, 8, 12, 16, 20, 32 },
						 columns[] = { 8, 16, 24, 32, 40, 48 };
	struct shape shape = { rows[pick(state, 7)], columns[pick(state, 6)],
		                   32 * (1 + pick(state, 4)) };
	const char *type = types[pick(state, 4)];
	char first[3 * MAX_TEXT], second[3 * MAX_TEXT];
	struct drawing drawing;

	draw(state, &shape, &drawing);
	put_fragment(&shape, &drawing, first, sizeof(first));
	if (pick(state, 4))
		draw(state, &shape, &drawing);
	else
		redraw_slots(state, &drawing);
	put_fragment(&shape, &drawing, second, sizeof(second));
	snprintf(out, size,
	         "import tilelang.language as T\n\n\n@T.prim_func\n"
	         "def move(X: T.Tensor((%" PRId64 ", %" PRId64 "), \"%s\"), "
	         "Y: T.Tensor((%" PRId64 ", %" PRId64 "), \"%s\")):\n"
	         "    with T.Kernel(1, threads=%" PRId64 ") as bx:\n"
	         "        f = T.alloc_fragment((%" PRId64 ", %" PRId64 "), \"%s\")\n"
	         "        g = T.alloc_fragment((%" PRId64 ", %" PRId64 "), \"%s\")\n"
	         "        T.annotate_layout({f: %s,\n            g: %s})\n"
	         "        T.copy(X, f)\n        T.copy(f, g)\n        T.copy(g, Y)\n",
	         shape.rows, shape.columns, type, shape.rows, shape.columns, type, shape.n_threads,
	         shape.rows, shape.columns, type, shape.rows, shape.columns, type, first, second);
}

/* ---- running a kernel ---- */

struct counts {
	int kinds[3]; /* by enum conversion_kind */
	int none;
};

static void count_kinds(const struct solution *solution, struct counts *counts)
{
	bool any = false;

	for (uint32_t s = 0; s < solution->program->n_stmts; s++)
		for (uint32_t c = 0; c < solution->plans[s].conversions.n; c++) {
			counts->kinds[solution->plans[s].conversions.p[c].kind]++;
			any = true;
		}
	counts->none += !any;
}

static bool run_kernel(struct arena *arena, const char *path, struct counts *counts)
{
	struct compile_options options = { .frontend.config = -1, .target = target_find("sm_80") };
	struct compile *compile = compile_open(arena, &options);
	struct tensor_uses uses = { 0 };
	struct tensor_set before, got;
	struct reference reference;
	struct reference_options reference_options = { 0 };
	struct sim_options sim_options = { 0 };
	struct sim_result result;
	struct comparisons verdict = { 0 };
	bool ok = compile_load(compile, path) && compile_run(compile, "warp");

	if (ok) {
		struct compare_input input = {
			.got = &got, .before = &before, .reference = &reference, .tolerance = 0.0
		};
		int64_t *values;

		count_kinds(compile->launches.p[0]->solution, counts);
		tensor_uses_of_tile(compile->program, &uses);
		values = arena_array(arena, int64_t, expr_n_vars(compile->pool) + 1u);
		ok = tensors_open(&compile->cx, &uses, values, &before) &&
		     tensors_open(&compile->cx, &uses, values, &got) &&
		     reference_run(compile->program, &before, &reference_options, &reference) &&
		     sim_run(compile->launches.p[0]->warp, &got, &sim_options, &result) &&
		     result.finished && result.n_findings == 0;
		if (ok) {
			compare_run(arena, &input, &verdict);
			ok = verdict.total.ok && verdict.total.n_compared > 0;
		}
		reference_close(&reference);
		tensors_close(&before);
		tensors_close(&got);
	}
	if (!ok) {
		struct buf text = { 0 };

		diag_print(&text, &compile->cx.diags, &compile->cx.sources, false);
		printf("%s", buf_cstr(&text));
		buf_free(&text);
	}
	return ok;
}

static void test_random(struct check *check)
{
	char path[] = "/tmp/convert_test_XXXXXX", text[8 * MAX_TEXT];
	struct counts counts = { { 0 }, 0 };
	uint64_t state = 7;
	int file = mkstemp(path);

	if (!CHECK(check, file >= 0))
		return;
	for (int i = 0; i < N_CASES; i++) {
		struct arena *arena = arena_open();

		put_kernel(&state, text, sizeof(text));
		if (CHECK(check, pwrite(file, text, strlen(text), 0) == (ssize_t)strlen(text) &&
		                     ftruncate(file, (off_t)strlen(text)) == 0) &&
		    !CHECK(check, run_kernel(arena, path, &counts)))
			printf("%s\n", text);
		arena_close(arena);
	}
	close(file);
	unlink(path);
	CHECK(check, counts.kinds[CONVERT_SHUFFLE] > 0 && counts.kinds[CONVERT_SHARED] > 0);
	CHECK(check, counts.none > 0);
	if (getenv("SHOW"))
		printf("registers %d, shuffles %d, shared %d, none %d\n", counts.kinds[CONVERT_REGISTERS],
		       counts.kinds[CONVERT_SHUFFLE], counts.kinds[CONVERT_SHARED], counts.none);
}

int main(void)
{
	struct check check = { 0 };

	test_random(&check);
	return check_end(&check);
}
