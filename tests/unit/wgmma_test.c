/*
 * wgmma: what an instruction reads by the descriptor of a layout is what the layout says lies
 * there.
 *
 * The reading is written here once more, from the PTX ISA's table of canonical layouts (CuTe's
 * shape:stride, in elements) and its descriptor format, for all swizzles, orders and widths.
 * Accumulators and operands in registers are compared with the register figures of wgmma.m64nNkK.
 */
#include "tests/unit/check.h"

#include "analyzer/layout/wgmma.h"

struct world {
	struct check *check;
	struct arena *arena;
};

/* ---- matrices in shared memory ---- */

/* The fields as they are encoded, in units of 16 bytes. */
struct descriptor {
	uint64_t start, leading, stride;
	int mode;
};

static struct descriptor encode(const struct wgmma_matrix *matrix, int64_t start)
{
	return (struct descriptor){ .start = (uint64_t)start >> 4 & 0x3fff,
		                        .leading = (uint64_t)matrix->leading >> 4 & 0x3fff,
		                        .stride = (uint64_t)matrix->stride >> 4 & 0x3fff,
		                        .mode = wgmma_swizzle_mode(matrix) };
}

/*
 * Row of the table "Canonical layouts": with T elements in 16 bytes and X such columns in a swizzle
 *     MN-major none    ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
 *     MN-major swizzle ((T,X,m),(8,k)):((1,T,LBO),(XT,SBO))
 *     K-major  none    ((8,m),(T,2k)):((1T,SBO),(1,LBO))
 *     K-major  swizzle ((8,m),(T,2k)):((XT,SBO),(1,T))
 * then Swizzle<B,4,3> on the byte address.
 */
static uint64_t read_at(const struct descriptor *descriptor, bool mn_major, int64_t bytes,
                        const int64_t at[2])
{
	static const int bits_of_mode[] = { 0, 3, 2, 1 };
	int b = bits_of_mode[descriptor->mode];
	uint64_t t = 16 / (uint64_t)bytes, x = 1ull << b, mn = (uint64_t)at[0], k = (uint64_t)at[1];
	uint64_t lbo = descriptor->leading * t, sbo = descriptor->stride * t, element, byte;

	if (mn_major && b == 0)
		element = mn % t + mn / t * sbo + k % 8 * t + k / 8 * lbo;
	else if (mn_major)
		element = mn % t + mn / t % x * t + mn / (t * x) * lbo + k % 8 * x * t + k / 8 * sbo;
	else if (b == 0)
		element = mn % 8 * t + mn / 8 * sbo + k % t + k / t * lbo;
	else
		element = mn % 8 * x * t + mn / 8 * sbo + k % t + k / t * t;
	byte = descriptor->start * 16 + element * (uint64_t)bytes;
	return byte ^ ((byte & ((x - 1) << 7)) >> 3);
}

/* A tile at `base`, read in parts of mn x 32 bytes. */
struct tile {
	const struct layout *layout;
	struct wgmma_view view;
	int64_t base;
};

static void check_part(struct world *world, const struct tile *tile,
                       const struct wgmma_matrix *matrix, const int64_t first[2])
{
	const struct layout *linear = wgmma_linear(world->arena, tile->layout);
	int64_t bytes = tile->layout->elem_bits / 8, n_k = WGMMA_K_BYTES / bytes, n_bad = 0;
	int mn_dim = tile->view.mn_major ? 1 : 0;
	int64_t index[MAX_RANK] = { 0 };
	struct descriptor descriptor;

	index[mn_dim] = first[0];
	index[1 - mn_dim] = first[1];
	descriptor = encode(matrix, tile->base + layout_at(linear, index, 0).offset);
	for (int64_t mn = 0; mn < tile->view.mn; mn++)
		for (int64_t k = 0; k < n_k; k++) {
			int64_t want, got, at[2] = { mn, k };

			index[mn_dim] = first[0] + mn;
			index[1 - mn_dim] = first[1] + k;
			want = tile->base + layout_at(tile->layout, index, 0).offset;
			got = (int64_t)read_at(&descriptor, tile->view.mn_major, bytes, at);
			n_bad += got != want;
			n_bad += wgmma_address(matrix, (int64_t)descriptor.start * 16, mn, k) != want;
		}
	CHECK_INT(world->check, n_bad, 0);
}

static void check_tile(struct world *world, struct tile *tile)
{
	int64_t n_k = WGMMA_K_BYTES / (tile->layout->elem_bits / 8);
	int64_t mn = tile->layout->shape[tile->view.mn_major ? 1 : 0];
	int64_t k = tile->layout->shape[tile->view.mn_major ? 0 : 1];
	struct wgmma_matrix matrix;

	if (!CHECK(world->check, wgmma_matrix_of(world->arena, tile->layout, &tile->view, &matrix)))
		return;
	CHECK(world->check, matrix.leading % 16 == 0 && matrix.leading > 0);
	CHECK(world->check, matrix.stride % 16 == 0 && matrix.stride > 0);
	tile->base = 3 * wgmma_alignment(&matrix);
	for (int64_t first = 0; first + tile->view.mn <= mn; first += tile->view.mn)
		for (int64_t step = 0; step + n_k <= k; step += n_k)
			check_part(world, tile, &matrix, (const int64_t[]){ first, step });
}

/* Every swizzle of the tile that its rows have room for. */
static void check_spans(struct world *world, const int64_t shape[2], uint32_t bits,
                        struct wgmma_view view)
{
	int n_expressed = 0;

	for (int64_t span = 16; span <= 128; span *= 2) {
		struct tile tile = { layout_swizzled(world->arena, 2, shape, bits, span), view, 0 };
		struct wgmma_matrix matrix;

		/* MN-major parts are whole spans; K-major rows are whole steps. */
		if (!tile.layout || (view.mn_major && view.mn * bits / 8 % span != 0))
			continue;
		check_tile(world, &tile);
		(void)wgmma_matrix_of(world->arena, tile.layout, &view, &matrix);
		CHECK_INT(world->check, matrix.span, span);
		n_expressed++;
	}
	CHECK(world->check, n_expressed > 0);
}

static void test_matrices(struct world *world)
{
	static const int64_t mns[] = { 8, 16, 24, 40, 64, 96, 128, 192, 256 };

	for (size_t i = 0; i < sizeof(mns) / sizeof(*mns); i++)
		for (uint32_t bits = 8; bits <= 32; bits *= 2)
			for (int64_t steps = 1; steps <= 6; steps++) {
				int64_t k = steps * WGMMA_K_BYTES * 8 / bits;

				check_spans(world, (const int64_t[]){ 2 * mns[i], k }, bits,
				            (struct wgmma_view){ false, mns[i] });
				if (bits == 16)
					check_spans(world, (const int64_t[]){ k, 2 * mns[i] }, bits,
					            (struct wgmma_view){ true, mns[i] });
			}
}

static void check_none(struct world *world, const struct layout *layout, struct wgmma_view view)
{
	struct wgmma_matrix matrix;

	CHECK(world->check, !wgmma_matrix_of(world->arena, layout, &view, &matrix));
}

static void test_not_expressed(struct world *world)
{
	const int64_t square[] = { 64, 64 }, wide[] = { 16, 96 };
	struct arena *arena = world->arena;
	struct wgmma_view k_major = { false, 64 }, mn_major = { true, 64 };

	check_none(world, layout_row_major(arena, 2, square, 16, 0), k_major);
	check_none(world, layout_row_major(arena, 2, square, 16, 16), k_major);
	check_none(world, layout_row_major(arena, 2, square, 16, 0), mn_major);
	/* 48 columns are no whole number of spans of 64. */
	check_none(world, layout_swizzled(arena, 2, wide, 16, 64), (struct wgmma_view){ true, 48 });
	/* 8- and 32-bit types have no MN-major form. */
	check_none(world, layout_swizzled(arena, 2, square, 32, 128), mn_major);
	check_none(world, layout_swizzled(arena, 2, square, 8, 64), mn_major);
	/* One row after another of a single 16-byte column is what "no swizzle" means. */
	CHECK(world->check,
	      wgmma_matrix_of(arena, layout_row_major(arena, 2, (const int64_t[]){ 16, 8 }, 16, 0),
	                      &(struct wgmma_view){ true, 8 }, &(struct wgmma_matrix){ 0 }));
}

/* ---- registers ---- */

/* Thread and register of element (row, column) of D, by the figure of wgmma.m64nN's accumulator. */
static void test_accumulator(struct world *world)
{
	static const int64_t grids[][4] = {
		{ 64, 8, 4, 1 },   { 128, 64, 4, 1 },  { 256, 128, 8, 1 },
		{ 128, 96, 8, 1 }, { 128, 256, 4, 2 }, { 256, 256, 8, 2 },
	};

	for (size_t g = 0; g < sizeof(grids) / sizeof(*grids); g++) {
		int64_t m = grids[g][0], n = grids[g][1], warps_m = grids[g][2], warps_n = grids[g][3];
		int64_t group_rows = m / (warps_m / 4), columns = n / warps_n, n_bad = 0;
		const struct layout *layout =
			layout_wgmma_accumulator(world->arena, (const int64_t[]){ m, n }, warps_m, warps_n);

		for (int64_t thread = 0; thread < 32 * warps_m * warps_n; thread++)
			for (int64_t slot = 0; slot < layout->n_slots; slot++) {
				int64_t group = thread / 128, in_group = thread % 128, lane = thread % 32;
				int64_t block = slot / (columns / 2), reg = slot % (columns / 2);
				int64_t index[MAX_RANK] = { 0 };
				struct place place;

				index[0] = group % (warps_m / 4) * group_rows + 64 * block + 16 * (in_group / 32) +
				           lane / 4 + 8 * (reg / 2 % 2);
				index[1] =
					group / (warps_m / 4) * columns + 8 * (reg / 4) + 2 * (lane % 4) + reg % 2;
				place = layout_at(layout, index, 0);
				n_bad += place.thread != thread || place.slot != slot;
			}
		CHECK_INT(world->check, n_bad, 0);
		CHECK_INT(world->check, layout->n_slots * 32 * warps_m * warps_n, m * n);
	}
}

/* A in registers: the accumulator of one product, cast to 16 bits, is the operand of the next. */
static void test_operand(struct world *world)
{
	const int64_t shape[] = { 128, 64 };
	struct operand_form form = { .rows = 128, .k = 64, .warps_m = 4, .warps_n = 1, .per_reg = 2 };
	const struct layout *a = layout_wgmma_operand(world->arena, &form);
	const struct layout *c = layout_wgmma_accumulator(world->arena, shape, 4, 1);
	int64_t index[MAX_RANK] = { 0 };

	CHECK(world->check, layout_equal(a, c, NULL));
	/* k32 of 8 bits: 4 neighbours a register; a12 .. a15 are row + 8 of the second half of k. */
	form.per_reg = 4;
	a = layout_wgmma_operand(world->arena, &form);
	index[0] = 64 + 16 * 2 + 8 + 5;
	index[1] = 32 + 16 + 4 * 3 + 1;
	CHECK_INT(world->check, layout_at(a, index, 0).thread, 2 * 32 + 5 * 4 + 3);
	CHECK_INT(world->check, layout_at(a, index, 0).slot, 2 * 16 + 16 + 12 + 1);
}

static void test_split(struct world *world)
{
	CHECK_INT(world->check, wgmma_split(256, false), 256);
	CHECK_INT(world->check, wgmma_split(320, false), 160);
	CHECK_INT(world->check, wgmma_split(264, false), 88);
	CHECK_INT(world->check, wgmma_split(24, false), 24);
	CHECK_INT(world->check, wgmma_split(24, true), 24);
	CHECK_INT(world->check, wgmma_split(40, true), 8);
	CHECK_INT(world->check, wgmma_split(72, true), 24);
	CHECK_INT(world->check, wgmma_split(12, false), 0);
}

int main(void)
{
	struct check check = { 0 };
	struct world world = { .check = &check, .arena = arena_open() };

	test_matrices(&world);
	test_not_expressed(&world);
	test_accumulator(&world);
	test_operand(&world);
	test_split(&world);
	arena_close(world.arena);
	return check_end(&check);
}
