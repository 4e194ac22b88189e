/* swizzle: the construction over F2 against its bound on random pairs of accesses, both against all
 * linear layouts on small tiles, the search against all (B,M,S) swizzles and paddings, and cases
 * whose answers are known. */
#include "tests/unit/check.h"

#include "analyzer/layout/swizzle_internal.h"

#include <string.h>

enum { N_PAIRS = 10000, N_SETS = 3000, LANES = SWIZZLE_LANES, BUDGET = 1 << 20 };

struct world {
	struct check *check;
	struct arena *arena;
	uint64_t seed;
};

static int64_t draw(struct world *world, int64_t n)
{
	world->seed = world->seed * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((world->seed >> 33) % (uint64_t)n);
}

static struct swizzle_problem problem_of(int64_t rows, int64_t columns, uint32_t elem_bits)
{
	return (
		struct swizzle_problem){ .rank = 2, .shape = { rows, columns }, .elem_bits = elem_bits };
}

/* A new access of the problem with an empty table. */
static struct tile_access *add_access(struct world *world, struct swizzle_problem *problem,
                                      struct tile_access form)
{
	struct tile_access *access = &problem->accesses[problem->n_accesses++];

	*access = form;
	access->weight = 1;
	access->elems = arena_array(world->arena, int32_t, (size_t)form.n_steps * LANES * form.n_slots);
	return access;
}

static int32_t *elem(const struct tile_access *access, int64_t step, int64_t lane, int64_t slot)
{
	return (int32_t *)(uintptr_t)&access->elems[(step * LANES + lane) * access->n_slots + slot];
}

/* All elements in row-major (or column-major) order, `bytes` a lane. */
static struct tile_access *add_order(struct world *world, struct swizzle_problem *problem,
                                     enum bank_op op, uint32_t bytes, bool by_columns)
{
	int64_t rows = problem->shape[0], columns = problem->shape[1];
	uint32_t n_slots = bytes * 8 / problem->elem_bits;
	int64_t n_steps = rows * columns / n_slots / LANES;
	struct tile_access *access = add_access(
		world, problem,
		(struct tile_access){ .op = op, .bytes = bytes, .n_steps = n_steps, .n_slots = n_slots });

	for (int64_t i = 0; i < n_steps * LANES * n_slots; i++) {
		int64_t at = by_columns ? i % rows * columns + i / rows : i;

		*elem(access, 0, 0, i) = (int32_t)at;
	}
	return access;
}

/* ldmatrix.x4 of 16-bit elements: 16 x 16 blocks; `by_columns`: matrix rows run down a column. */
static void add_ldmatrix(struct world *world, struct swizzle_problem *problem, bool by_columns)
{
	int64_t rows = problem->shape[by_columns], columns = problem->shape[!by_columns];
	int64_t n_steps = rows / 16 * (columns / 16);
	struct tile_access *access = add_access(
		world, problem,
		(struct tile_access){ .op = BANK_LDMATRIX, .bytes = 16, .n_steps = n_steps, .n_slots = 8 });

	access->n_matrices = 4;
	for (int64_t step = 0; step < n_steps; step++)
		for (int64_t lane = 0; lane < LANES; lane++)
			for (int64_t s = 0; s < 8; s++) {
				int64_t row = step / (columns / 16) * 16 + lane % 16;
				int64_t column = step % (columns / 16) * 16 + lane / 16 * 8 + s;

				*elem(access, step, lane, s) =
					(int32_t)(by_columns ? column * rows + row : row * columns + column);
			}
}

/* ---- random pairs ---- */

static uint64_t apply(const uint64_t *columns, uint64_t bits)
{
	uint64_t value = 0;

	for (; bits; bits &= bits - 1)
		value ^= columns[__builtin_ctzll(bits)];
	return value;
}

/* A random basis of n bits: a permutation of unit vectors, in one case of four sums of them. */
static void random_basis(struct world *world, uint32_t n, uint64_t *out)
{
	bool general = draw(world, 4) == 0;

	for (uint32_t i = 0; i < n; i++)
		out[i] = (uint64_t)1 << i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = (uint32_t)draw(world, i);
		uint64_t t = out[k];

		out[k] = out[i - 1];
		out[i - 1] = t;
	}
	for (uint32_t i = 0; general && i < 2 * n; i++) {
		uint32_t a = (uint32_t)draw(world, n), b = (uint32_t)draw(world, n);

		if (a != b)
			out[a] ^= out[b];
	}
}

/* Slots, lanes and steps take a random basis in turn; loads have lanes that read the same. */
static void add_random(struct world *world, struct swizzle_problem *problem, uint32_t n_bits)
{
	uint64_t basis[16], lanes[5] = { 0 };
	uint32_t elem_bytes = problem->elem_bits / 8, n_slot_bits = (uint32_t)draw(world, 5), at;
	bool is_load = draw(world, 2);
	uint32_t bytes = elem_bytes;
	struct tile_access *access;

	if (n_slot_bits > n_bits)
		n_slot_bits = n_bits;
	random_basis(world, n_bits, basis);
	at = n_slot_bits;
	for (int i = 0; i < 5; i++)
		if (at < n_bits && !(is_load && draw(world, 6) == 0))
			lanes[i] = basis[at++];
	while (bytes < 16 && bytes < elem_bytes << n_slot_bits && draw(world, 4) > 0)
		bytes *= 2;
	access = add_access(world, problem,
	                    (struct tile_access){ .op = is_load ? BANK_LD : BANK_ST,
	                                          .bytes = bytes,
	                                          .n_steps = (int64_t)1 << (n_bits - at),
	                                          .n_slots = 1u << n_slot_bits });
	for (int64_t step = 0; step < access->n_steps; step++)
		for (int64_t lane = 0; lane < LANES; lane++)
			for (int64_t s = 0; s < access->n_slots; s++)
				*elem(access, step, lane, s) =
					(int32_t)(apply(basis + at, (uint64_t)step) ^ apply(lanes, (uint64_t)lane) ^
				              apply(basis, (uint64_t)s));
}

/* Lanes beyond the basis write the same element: only loads may. */
static bool is_sound(const struct tile_access *access, uint32_t n_bits)
{
	return access->op == BANK_LD || access->n_steps * LANES * access->n_slots == (int64_t)1
	                                                                                 << n_bits;
}

static struct swizzle_problem random_problem(struct world *world, uint32_t n_bits,
                                             uint32_t elem_bits, uint32_t n_accesses)
{
	struct swizzle_problem problem =
		problem_of((int64_t)1 << n_bits / 2, (int64_t)1 << (n_bits - n_bits / 2), elem_bits);

	while (problem.n_accesses < n_accesses) {
		add_random(world, &problem, n_bits);
		if (!is_sound(&problem.accesses[problem.n_accesses - 1], n_bits))
			problem.n_accesses--;
	}
	return problem;
}

/* What swizzle_joint finds; its layout, counted exactly by the bank model, costs what it says. */
static struct joint_answer joint_of(struct world *world, const struct swizzle_problem *problem)
{
	struct linear_access linear[SWIZZLE_MAX_ACCESSES];
	struct joint_answer joint = { .cost = -1 };
	struct swizzle_candidate candidate;
	const struct layout *layout;

	for (uint32_t a = 0; a < problem->n_accesses; a++)
		if (!CHECK(world->check, swizzle_linear(problem, &problem->accesses[a], &linear[a])))
			return joint;
	swizzle_joint(problem, linear, BUDGET, &joint);
	if (!CHECK(world->check, joint.found))
		return joint;
	CHECK_INT(world->check, f2_rank(&joint.map), joint.map.n_in);
	layout =
		f2_to_memory(world->arena, problem->shape, problem->rank, problem->elem_bits, &joint.map);
	if (CHECK(world->check, swizzle_weigh(problem, layout, &candidate)))
		CHECK_INT(world->check, candidate.cost, joint.cost);
	CHECK(world->check, joint.bound <= joint.linear_bound && joint.linear_bound <= joint.cost);
	return joint;
}

static void test_random_pairs(struct world *world)
{
	static const uint32_t widths[] = { 8, 16, 16, 32, 32, 64 };

	for (int i = 0; i < N_PAIRS; i++) {
		struct arena_mark mark = arena_mark(world->arena);
		uint32_t n_bits = i % 16 == 0 ? 12 : 4 + (uint32_t)draw(world, 7);
		struct swizzle_problem problem = random_problem(world, n_bits, widths[draw(world, 6)], 2);

		struct joint_answer joint = joint_of(world, &problem);

		if (!CHECK_INT(world->check, joint.cost, joint.bound))
			printf("pair %d: %u bits, elements of %u bits, %u and %u bytes\n", i, n_bits,
			       problem.elem_bits, problem.accesses[0].bytes, problem.accesses[1].bytes);
		arena_release(world->arena, mark);
	}
}

/* Three and four accesses with weights: never below the bound; how often it is met, and how often
 * the answer is proved among linear layouts, is printed. */
static void test_random_sets(struct world *world)
{
	static const uint32_t widths[] = { 8, 16, 16, 32, 32, 64 };
	int n_met = 0, n_linear = 0;
	double worst = 0;

	for (int i = 0; i < N_SETS; i++) {
		struct arena_mark mark = arena_mark(world->arena);
		uint32_t n_bits = i % 16 == 0 ? 12 : 4 + (uint32_t)draw(world, 7);
		struct swizzle_problem problem =
			random_problem(world, n_bits, widths[draw(world, 6)], 3 + (uint32_t)(i % 2));
		struct joint_answer joint;
		double gap;

		for (uint32_t a = 0; a < problem.n_accesses; a++)
			problem.accesses[a].weight = 1 + draw(world, 20);
		joint = joint_of(world, &problem);
		gap = (double)(joint.cost - joint.linear_bound) / (double)joint.cost;
		n_met += joint.cost == joint.bound;
		n_linear += joint.cost == joint.linear_bound;
		worst = gap > worst ? gap : worst;
		arena_release(world->arena, mark);
	}
	printf("%d sets of 3 or 4 accesses: %d meet the bound, %d are the best linear layout, largest "
	       "gap %.1f %%\n",
	       N_SETS, n_met, n_linear, 100 * worst);
	CHECK(world->check, n_met * 100 >= N_SETS * 90);
	CHECK(world->check, n_linear * 100 >= N_SETS * 95);
}

/* ---- all linear layouts ---- */

/* All invertible matrices of n bits, columns chosen one after the other; the least cost. */
static void least_of_all(struct world *world, const struct swizzle_problem *problem,
                         struct f2_map *map, uint32_t n, int64_t *least)
{
	if (map->n_in == n) {
		struct arena_mark mark = arena_mark(world->arena);
		int64_t *table = arena_array(world->arena, int64_t, (size_t)1 << n);
		struct layout *layout =
			layout_new_memory(world->arena, problem->rank, problem->shape, problem->elem_bits);
		struct swizzle_candidate candidate;

		for (uint64_t x = 0; x >> n == 0; x++)
			table[x] = (int64_t)f2_apply(map, x) * (problem->elem_bits / 8);
		layout->table = table;
		layout_finish(layout);
		if (swizzle_weigh(problem, layout, &candidate) && (*least < 0 || candidate.cost < *least))
			*least = candidate.cost;
		arena_release(world->arena, mark);
		return;
	}
	for (uint64_t column = 1; column >> n == 0; column++) {
		struct f2_space span = f2_span(map->columns, map->n_in);

		if (f2_contains(&span, column))
			continue;
		map->columns[map->n_in++] = column;
		least_of_all(world, problem, map, n, least);
		map->n_in--;
	}
}

static void test_all_linear_layouts(struct world *world)
{
	static const struct {
		uint32_t n_bits, elem_bits;
		int n;
	} rows[] = { { 3, 8, 20 }, { 3, 32, 40 }, { 3, 64, 40 }, { 4, 128, 12 }, { 4, 32, 3 } };

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
		for (int i = 0; i < rows[r].n; i++) {
			struct arena_mark mark = arena_mark(world->arena);
			struct swizzle_problem problem =
				random_problem(world, rows[r].n_bits, rows[r].elem_bits, 2 + (uint32_t)(i % 3));
			struct f2_map map = { .n_out = rows[r].n_bits };
			struct joint_answer joint;
			int64_t least = -1;

			least_of_all(world, &problem, &map, rows[r].n_bits, &least);
			joint = joint_of(world, &problem);
			CHECK_INT(world->check, joint.cost, least);
			CHECK(world->check, joint.linear_bound <= least);
			CHECK(world->check, problem.n_accesses > 2 || joint.bound == least);
			arena_release(world->arena, mark);
		}
}

/* The cost of the layout whose words on bank 0 are `lines`; words of 4 bytes, 4-byte accesses. */
static int64_t cost_of_lines(struct world *world, const struct swizzle_problem *problem,
                             const struct f2_space *lines, uint32_t n_bits)
{
	struct f2_space banks = f2_complement(lines, n_bits);
	struct f2_map basis = { .n_in = n_bits, .n_out = n_bits }, map;
	struct swizzle_candidate candidate = { .cost = -1 };

	memcpy(basis.columns, banks.basis, banks.n * sizeof(uint64_t));
	memcpy(basis.columns + banks.n, lines->basis, lines->n * sizeof(uint64_t));
	CHECK(world->check, f2_inverse(&basis, &map));
	for (uint32_t b = 0; b < n_bits; b++)
		map.columns[b] <<= 2;
	map.n_out = n_bits + 2;
	CHECK(world->check,
	      swizzle_weigh(problem, f2_to_memory(world->arena, problem->shape, 2, 32, &map),
	                    &candidate));
	return candidate.cost;
}

/* Least over all layouts of 64 words (63 lines spaces) or 128 words (2,667 of them). */
static int64_t least_of_lines(struct world *world, const struct swizzle_problem *problem,
                              uint32_t n_bits)
{
	int64_t least = -1;

	for (uint64_t first = 1; first >> n_bits == 0; first++)
		for (uint64_t second = n_bits == 7 ? first + 1 : 0; second >> n_bits == 0; second++) {
			uint64_t vectors[2] = { first, second };
			struct f2_space lines = f2_span(vectors, n_bits - 5);
			struct arena_mark mark = arena_mark(world->arena);
			int64_t cost;

			if (n_bits == 6 && second > 0)
				break;
			/* Each plane once: its two smallest vectors. */
			if (n_bits == 7 && ((first ^ second) < second || lines.n != 2))
				continue;
			cost = cost_of_lines(world, problem, &lines, n_bits);
			if (least < 0 || cost < least)
				least = cost;
			arena_release(world->arena, mark);
		}
	return least;
}

/* The wavefronts of 4-byte accesses to 4-byte elements depend on the line space alone, so that few
 * layouts stand for all that are linear. */
static void test_all_line_spaces(struct world *world)
{
	int n_linear = 0;

	for (int i = 0; i < 320; i++) {
		struct arena_mark mark = arena_mark(world->arena);
		uint32_t n_bits = i < 300 ? 6 : 7, n = i < 100 ? 2 : 2 + (uint32_t)(i % 4);
		struct swizzle_problem problem = random_problem(world, n_bits, 32, n);
		struct joint_answer joint;
		int64_t least;

		for (uint32_t a = 0; a < n; a++) {
			problem.accesses[a].bytes = 4;
			problem.accesses[a].weight = 1 + draw(world, 5);
		}
		least = least_of_lines(world, &problem, n_bits);
		joint = joint_of(world, &problem);
		CHECK_INT(world->check, joint.cost, least);
		CHECK_INT(world->check, joint.linear_bound, least);
		CHECK(world->check, n > 2 || joint.bound == least);
		n_linear += joint.bound < least;
		arena_release(world->arena, mark);
	}
	printf("320 sets against all line spaces: %d have a best linear layout above the bound\n",
	       n_linear);
}

/* 64 words, three accesses whose lanes are the three hyperplanes through one space: their union is
 * everything, so that the one vector that meets bank 0 again lies in one of them. */
static void test_three_hyperplanes(struct world *world)
{
	static const uint64_t lanes[3][6] = { { 1, 2, 4, 8, 16, 32 },
		                                  { 1, 2, 4, 8, 32, 16 },
		                                  { 1, 2, 4, 8, 48, 32 } };
	struct swizzle_problem problem = problem_of(8, 8, 32);
	struct joint_answer joint;

	for (int a = 0; a < 3; a++) {
		struct tile_access *access = add_access(
			world, &problem,
			(struct tile_access){ .op = BANK_LD, .bytes = 4, .n_steps = 2, .n_slots = 1 });

		access->weight = 1 + a;
		for (int64_t step = 0; step < 2; step++)
			for (int64_t lane = 0; lane < LANES; lane++)
				*elem(access, step, lane, 0) =
					(int32_t)(apply(lanes[a], (uint64_t)(step << 5 | lane)));
	}
	joint = joint_of(world, &problem);
	CHECK_INT(world->check, joint.bound, 2 * (1 + 2 + 3));
	CHECK_INT(world->check, joint.cost, joint.bound + 2);
	CHECK_INT(world->check, joint.linear_bound, joint.cost);
}

/* ---- the search ---- */

/* Exhaustive: every XOR of a run of bits onto bits of the bank, on rows with every padding. */
static int64_t best_simple_cost(struct world *world, const struct swizzle_problem *problem)
{
	int64_t best = INT64_MAX, unit = problem->elem_bits / 8;

	for (int64_t pad = 0; pad < 128; pad += unit)
		for (int n = 0; n <= 5; n++)
			for (int to = 0; to + n <= 7; to++)
				for (int from = to + n; from < 13; from++) {
					struct arena_mark mark = arena_mark(world->arena);
					struct layout *layout =
						layout_row_major(world->arena, 2, problem->shape, problem->elem_bits, pad);
					struct swizzle_candidate candidate;

					if (n > 0 && (int64_t)1 << to >= unit) {
						layout->xors[layout->n_xors++] =
							(struct xor_term){ (uint8_t)from, (uint8_t)to, (uint8_t)n };
						layout_finish(layout);
					}
					if (swizzle_weigh(problem, layout, &candidate) && candidate.cost < best)
						best = candidate.cost;
					arena_release(world->arena, mark);
					if (n == 0)
						goto next;
				}
next:;
	return best;
}

static void test_never_worse(struct world *world)
{
	for (int i = 0; i < 6; i++) {
		struct arena_mark mark = arena_mark(world->arena);
		struct swizzle_problem problem = random_problem(world, 9, i % 2 ? 32 : 16, 3);
		struct swizzle_answer answer;

		for (uint32_t a = 0; a < 3; a++)
			problem.accesses[a].weight = 1 + draw(world, 20);
		swizzle_search(world->arena, &problem, &answer);
		CHECK(world->check, answer.best.cost >= answer.bound);
		CHECK(world->check, answer.best.cost <= best_simple_cost(world, &problem));
		arena_release(world->arena, mark);
	}
}

static struct swizzle_answer search(struct world *world, const struct swizzle_problem *problem)
{
	struct swizzle_answer answer;
	struct swizzle_candidate again;

	swizzle_search(world->arena, problem, &answer);
	if (CHECK(world->check, answer.best.layout != NULL)) {
		CHECK(world->check, layout_injective(answer.best.layout, NULL, NULL));
		CHECK(world->check, swizzle_weigh(problem, answer.best.layout, &again));
		CHECK_INT(world->check, answer.best.cost, again.cost);
		CHECK(world->check, answer.best.cost >= answer.bound);
	}
	return answer;
}

/* One warp, 16 x 32 fp32: rows are written, columns are read. */
static void test_transpose(struct world *world)
{
	struct swizzle_problem problem = problem_of(16, 32, 32);
	struct swizzle_answer answer;

	add_order(world, &problem, BANK_ST, 4, false);
	add_order(world, &problem, BANK_LD, 4, true);
	answer = search(world, &problem);
	CHECK_INT(world->check, answer.row_major.counts[0].wavefronts, 16);
	CHECK_INT(world->check, answer.row_major.counts[1].wavefronts, 256);
	CHECK_INT(world->check, answer.best.counts[0].wavefronts, 16);
	CHECK_INT(world->check, answer.best.counts[1].wavefronts, 16);
	CHECK_INT(world->check, answer.bound, 32);
}

/* Rows of 72 and 104 half words are an odd multiple of 16 bytes; 96 are not. */
static void test_row_widths(struct world *world)
{
	static const struct {
		int64_t width, wavefronts;
	} rows[] = { { 16, 2 }, { 32, 4 }, { 64, 8 }, { 48, 2 },
		         { 80, 2 }, { 96, 4 }, { 72, 1 }, { 104, 1 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct swizzle_problem problem = problem_of(64, rows[i].width, 16);
		struct tile_access *access = add_access(
			world, &problem,
			(struct tile_access){ .op = BANK_LDMATRIX, .bytes = 16, .n_steps = 1, .n_slots = 8 });
		struct swizzle_answer answer;

		access->n_matrices = 1;
		for (int64_t lane = 0; lane < LANES; lane++)
			for (int64_t s = 0; s < 8; s++)
				*elem(access, 0, lane, s) = lane < 8 ? (int32_t)(lane * rows[i].width + s) : -1;
		answer = search(world, &problem);
		CHECK_INT(world->check, answer.row_major.cost, rows[i].wavefronts);
		CHECK_INT(world->check, answer.best.cost, 1);
		CHECK_INT(world->check, answer.bound, 1);
		CHECK(world->check, rows[i].wavefronts > 1 ||
		                        strcmp(layout_kind_text(answer.best.layout), "linear") == 0);
	}
}

static void test_gemm_operand(struct world *world)
{
	struct swizzle_problem problem = problem_of(64, 64, 16);
	struct swizzle_answer answer;

	add_order(world, &problem, BANK_ST, 16, false);
	add_ldmatrix(world, &problem, false);
	answer = search(world, &problem);
	CHECK_INT(world->check, answer.row_major.counts[1].wavefronts, 16 * 32);
	CHECK_INT(world->check, answer.best.counts[1].wavefronts, 16 * 4);
	CHECK_INT(world->check, answer.best.cost, answer.bound);
	CHECK_TEXT(world->check, layout_kind_text(answer.best.layout), "swizzle128");
}

/* A 128 x 32 tile of half words whose columns are contiguous, read by transposing ldmatrix. */
static void test_column_operand(struct world *world)
{
	struct swizzle_problem problem = problem_of(128, 32, 16);
	struct swizzle_answer answer;

	add_order(world, &problem, BANK_ST, 16, true);
	add_ldmatrix(world, &problem, true);
	answer = search(world, &problem);
	CHECK_INT(world->check, answer.best.cost, answer.bound);
	CHECK_INT(world->check, answer.bound, 2 * 128 * 32 * 2 / 128);
}

/* Matrix rows along both dimensions of one tile cannot be contiguous at once. */
static void test_impossible(struct world *world)
{
	struct swizzle_problem problem = problem_of(32, 32, 16);
	struct swizzle_answer answer;

	add_ldmatrix(world, &problem, false);
	add_ldmatrix(world, &problem, true);
	swizzle_search(world->arena, &problem, &answer);
	CHECK(world->check, answer.best.layout == NULL);
}

/* Vectors along rows and along columns: one side has to go element by element. */
static void test_widths_compete(struct world *world)
{
	struct swizzle_problem problem = problem_of(64, 64, 32);
	struct swizzle_answer answer;

	add_order(world, &problem, BANK_ST, 16, false);
	add_order(world, &problem, BANK_LD, 16, true);
	answer = search(world, &problem);
	CHECK_INT(world->check, answer.best.cost, answer.bound);
	CHECK_INT(world->check, answer.bound, 2 * 64 * 64 * 4 / 128);
	/* 16 bytes on one side would leave the other 8 banks: 4 words would meet in each. */
	CHECK_INT(world->check, answer.best.counts[0].bytes + answer.best.counts[1].bytes, 12);
}

int main(void)
{
	struct check check = { 0 };
	struct world world = { .check = &check, .arena = arena_open(), .seed = 5 };

	test_transpose(&world);
	test_row_widths(&world);
	test_gemm_operand(&world);
	test_column_operand(&world);
	test_impossible(&world);
	test_widths_compete(&world);
	test_all_linear_layouts(&world);
	test_all_line_spaces(&world);
	test_three_hyperplanes(&world);
	test_never_worse(&world);
	test_random_pairs(&world);
	test_random_sets(&world);
	arena_close(world.arena);
	return check_end(&check);
}
