/* atoms: every instruction's fragments against the register formulas of the PTX ISA; fitting of
 * tabulated layouts. */
#include "tests/unit/check.h"

#include "analyzer/layout/atoms.h"
#include "analyzer/layout/fit.h"

#include <string.h>

struct world {
	struct check *check;
	struct arena *arena;
	uint64_t seed;
};

static int64_t draw(struct world *world, int64_t n)
{
	return (int64_t)(check_random(&world->seed) % (uint64_t)n);
}

/* What the formulas of mma_element need to know of an instruction. */
struct register_form {
	enum mma_operand operand;
	int64_t m, e; /* elements of a register */
};

/*
 * The element that slot `s` of `lane` holds, as the PTX ISA's "Matrix Fragments for mma" has it,
 * register by register: groupID = lane >> 2, threadID_in_group = lane % 4. The formulas of all
 * shapes agree in this form.
 */
static void mma_element(struct register_form form, int64_t lane, int64_t s, int64_t *index)
{
	int64_t m = form.m, e = form.e, group = lane >> 2, in_group = lane % 4, reg = s / e;

	if (form.operand == MMA_C) {
		index[0] = group + (s >= 2 ? 8 : 0);
		index[1] = in_group * 2 + (s & 1);
	} else if (form.operand == MMA_A) {
		index[0] = m == 16 && reg % 2 == 1 ? group + 8 : group;
		index[1] = in_group * e + s % e + (m == 16 ? reg / 2 : reg) * 4 * e;
	} else {
		index[0] = in_group * e + s % e + reg * 4 * e;
		index[1] = group;
	}
}

/* Each slot of each lane has the element of the formula, and all elements are somewhere. */
static void check_mma(struct world *world, enum mma_operand operand, int64_t m, int64_t k,
                      uint32_t bits)
{
	int64_t e = operand == MMA_C ? 1 : bits >= 32 ? 1 : 32 / bits;
	const struct layout *layout = atom_mma(world->arena, operand, m, k, bits);

	if (!CHECK(world->check, layout != NULL))
		return;
	CHECK_INT(world->check, layout->n_threads, 32);
	CHECK_INT(world->check, layout->n_slots * 32, layout->shape[0] * layout->shape[1]);
	CHECK(world->check, layout_covers_places(layout));
	for (int64_t lane = 0; lane < 32; lane++)
		for (int64_t s = 0; s < layout->n_slots; s++) {
			int64_t index[MAX_RANK] = { 0 };
			struct place place;

			mma_element((struct register_form){ operand, m, e }, lane, s, index);
			place = layout_at(layout, index, 0);
			CHECK_INT(world->check, place.thread, lane);
			CHECK_INT(world->check, place.slot, s);
		}
}

/* Shapes of mma by m, k and bits, and two that do not exist. */
static void test_mma(struct world *world)
{
	static const struct {
		int64_t m, k;
		uint32_t bits;
	} shapes[] = { { 16, 8, 16 }, { 16, 16, 16 }, { 16, 4, 32 }, { 16, 8, 32 }, { 16, 16, 8 },
		           { 16, 32, 8 }, { 16, 32, 4 },  { 16, 64, 4 }, { 8, 16, 8 },  { 8, 32, 4 },
		           { 8, 4, 64 },  { 16, 4, 64 },  { 16, 8, 64 }, { 16, 16, 64 } };

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (int operand = MMA_A; operand <= MMA_C; operand++)
			check_mma(world, (enum mma_operand)operand, shapes[i].m, shapes[i].k, shapes[i].bits);
	CHECK(world->check, !atom_mma(world->arena, MMA_A, 16, 12, 16));
	CHECK(world->check, !atom_mma(world->arena, MMA_A, 32, 16, 16));
}

/* Thread l of ldmatrix receives row l / 4, elements 2 * (l % 4) and on; .trans: the element at
 * (row, column) of the transposed matrix. */
static void test_ldmatrix(struct world *world)
{
	for (int64_t n = 1; n <= 4; n *= 2)
		for (int trans = 0; trans < 2; trans++) {
			const struct layout *layout = atom_ldmatrix(world->arena, n, trans);
			const struct layout *rows = atom_ldmatrix_rows(world->arena, n);

			for (int64_t matrix = 0; matrix < n; matrix++)
				for (int64_t lane = 0; lane < 32; lane++)
					for (int64_t half = 0; half < 2; half++) {
						int64_t r = lane / 4, c = lane % 4 * 2 + half;
						int64_t index[MAX_RANK] = { 8 * matrix + (trans ? c : r), trans ? r : c };
						struct place place = layout_at(layout, index, 0);

						CHECK_INT(world->check, place.thread, lane);
						CHECK_INT(world->check, place.slot, 2 * matrix + half);
					}
			for (int64_t row = 0; row < 8 * n; row++) {
				int64_t index[MAX_RANK] = { row };

				CHECK_INT(world->check, layout_at(rows, index, 0).thread, row);
			}
		}
}

/*
 * PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma: D for every n, A for 8,
 * 16 and 32 bits, which is mma's A in each warp.
 */
static void test_wgmma(struct world *world)
{
	for (int64_t n = 8; n <= 256; n += 8) {
		const struct layout *layout = atom_wgmma_accumulator(world->arena, n);

		for (int64_t t = 0; t < 128; t++)
			for (int64_t s = 0; s < n / 2; s++) {
				int64_t index[MAX_RANK] = { t / 32 * 16 + t % 32 / 4 + s / 2 % 2 * 8,
					                        s / 4 * 8 + t % 4 * 2 + s % 2 };
				struct place place = layout_at(layout, index, 0);

				CHECK_INT(world->check, place.thread, t);
				CHECK_INT(world->check, place.slot, s);
			}
	}
	CHECK(world->check, !atom_wgmma_accumulator(world->arena, 12));
	for (uint32_t bits = 8; bits <= 32; bits *= 2) {
		const struct layout *layout = atom_wgmma_a(world->arena, bits);
		int64_t e = 32 / bits;

		CHECK(world->check, layout_covers_places(layout));
		for (int64_t t = 0; t < 128; t++)
			for (int64_t s = 0; s < layout->n_slots; s++) {
				int64_t index[MAX_RANK] = { 0 };

				mma_element((struct register_form){ MMA_A, 16, e }, t % 32, s, index);
				index[0] += t / 32 * 16;
				CHECK_INT(world->check, layout_at(layout, index, 0).thread, t);
				CHECK_INT(world->check, layout_at(layout, index, 0).slot, s);
			}
	}
}

/* Chunk c of 16 bytes in row r of a panel sits at c ^ (r / (128 / span) % (span / 16)), and the
 * pattern repeats after the alignment. */
static void test_swizzles(struct world *world)
{
	for (int64_t span = 32; span <= 128; span *= 2) {
		const struct layout *layout = atom_wgmma_shared(world->arena, 64, 64, 16, span);

		for (int64_t r = 0; r < 64; r++)
			for (int64_t c = 0; c < 64; c++) {
				int64_t index[MAX_RANK] = { r, c }, chunk = c * 2 % span / 16;
				int64_t at = c * 2 / span * span * 64 + r * span +
				             (chunk ^ (r / (128 / span) % (span / 16))) * 16 + c * 2 % 16;

				CHECK_INT(world->check, layout_at(layout, index, 0).offset, at);
			}
		CHECK_INT(world->check, atom_swizzle_alignment(span), span * 8);
	}
	CHECK(world->check,
	      layout_injective(atom_wgmma_shared(world->arena, 64, 32, 16, 0), NULL, NULL));
	CHECK(world->check, !atom_wgmma_shared(world->arena, 64, 24, 16, 128));
	CHECK_INT(world->check, atom_swizzle_alignment(0), 128);
}

/* ---- fitting ---- */

/* The same layout as a table of all its places. */
static struct layout *tabulate(struct world *world, const struct layout *layout)
{
	struct layout *out = arena_new(world->arena, struct layout);
	int64_t n = layout->n_replicas, at = 0;
	int64_t *first, *second;

	for (uint32_t d = 0; d < layout->rank; d++)
		n *= layout->shape[d];
	first = arena_array(world->arena, int64_t, (size_t)n);
	second = arena_array(world->arena, int64_t, (size_t)n);
	for (int64_t r = 0; r < layout->n_replicas; r++) {
		int64_t index[MAX_RANK] = { 0 };

		do {
			struct place place = layout_at(layout, index, r);

			first[at] = layout->kind == LAYOUT_MEMORY ? place.offset : place.thread;
			second[at++] = place.slot;
		} while (layout_next_index(layout, index));
	}
	*out = *layout;
	out->n_digits = out->n_xors = 0;
	if (layout->kind == LAYOUT_MEMORY) {
		out->table = first;
	} else {
		out->table_threads = first;
		out->table_slots = second;
	}
	layout_finish(out);
	return out;
}

/* The table of a layout that has digits gives digits again, with the same places. */
static void check_fit(struct world *world, const struct layout *layout)
{
	const struct layout *fitted = layout_fit(world->arena, tabulate(world, layout));

	if (!CHECK(world->check, fitted != NULL))
		return;
	CHECK(world->check, !fitted->table && !fitted->table_threads);
	CHECK(world->check, layout_equal(fitted, layout, NULL));
}

/*
 * Row-major, padded, swizzled, accumulators, replicas, random XOR terms; and a shuffled table, for
 * which there are no digits.
 */
static void test_fit(struct world *world)
{
	const int64_t shape[] = { 32, 64 }, odd[] = { 24, 96 }, small[] = { 5, 7, 3 };
	struct layout *random;
	int64_t *table;

	check_fit(world, layout_row_major(world->arena, 2, shape, 16, 0));
	check_fit(world, layout_row_major(world->arena, 2, odd, 16, 16));
	check_fit(world, layout_row_major(world->arena, 3, small, 32, 4));
	for (int64_t span = 32; span <= 128; span *= 2) {
		check_fit(world, layout_swizzled(world->arena, 2, shape, 16, span));
		if (span < 128)
			check_fit(world, layout_swizzled(world->arena, 2, odd, 16, span));
	}
	check_fit(world, layout_mma_accumulator(world->arena, 64, 32, 2, 2));
	check_fit(world, layout_mma_accumulator(world->arena, 96, 48, 3, 1));
	check_fit(world, layout_reduce(world->arena, layout_mma_accumulator(world->arena, 64, 32, 2, 2),
	                               1, false));
	for (int i = 0; i < 40; i++) {
		struct layout *layout = layout_row_major(world->arena, 2, shape, 16, 0);
		uint8_t n = (uint8_t)(1 + draw(world, 3)), to = (uint8_t)(1 + draw(world, 4));

		layout->xors[layout->n_xors++] = (struct xor_term){ (uint8_t)(7 + draw(world, 3)), to, n };
		layout_finish(layout);
		check_fit(world, layout);
	}
	random = layout_row_major(world->arena, 2, shape, 16, 0);
	random = tabulate(world, random);
	table = (int64_t *)(uintptr_t)random->table;
	for (int64_t i = 2047; i > 0; i--) {
		int64_t k = draw(world, i + 1), t = table[i];

		table[i] = table[k];
		table[k] = t;
	}
	CHECK(world->check, layout_fit(world->arena, random) == NULL);
}

int main(void)
{
	struct check check = { 0 };
	struct world world = { .check = &check, .arena = arena_open(), .seed = 9 };

	test_mma(&world);
	test_ldmatrix(&world);
	test_wgmma(&world);
	test_swizzles(&world);
	test_fit(&world);
	arena_close(world.arena);
	return check_end(&check);
}
