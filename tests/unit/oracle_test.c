/*
 * oracle: shared-memory access patterns whose wavefronts are known from papers, forums and other
 * tools, asked the way that the program answers them: a layout places the tile's elements, lanes
 * take the bytes at their elements' offsets, the bank model counts. A row is one warp instruction.
 */
#include "tests/unit/check.h"

#include "analyzer/banks/banks.h"
#include "analyzer/layout/atoms.h"

/* Which element lane `l` accesses. */
enum pattern {
	COLUMN,    /* (l, 0): down one column */
	MATRIX,    /* (l, 0) of 8 lanes: the rows of one ldmatrix, 16 bytes each */
	FRAGMENT,  /* the elements (l / 4, l % 4 * 2) of an mma accumulator's 8 rows */
	ROW_BY_16, /* lane l takes bytes 16 l of the tile, row after row */
};

struct row {
	enum pattern pattern;
	const char *op;   /* of the bank model */
	const char *tile; /* the tile, as layouts are written */
	int32_t wavefronts, ideal;
};

/* Columns of float32, at strides of 16, 32, 64 and 33 words, and Swizzle<5,0,5> on 32. */
static const struct row columns[] = {
	{ COLUMN, "ld32", "memory (32, 16) of 32 bits offset = i*64 + j*4", 16, 1 },
	{ COLUMN, "ld32", "memory (32, 32) of 32 bits offset = i*128 + j*4", 32, 1 },
	{ COLUMN, "ld32", "memory (32, 64) of 32 bits offset = i*256 + j*4", 32, 1 },
	{ COLUMN, "ld32", "memory (32, 33) of 32 bits offset = i*132 + j*4", 1, 1 },
	{ COLUMN, "ld32", "memory (32, 32) of 32 bits offset = i*128 + j*4, xor 5 bits 7 -> 2", 1, 1 },
};

/* One 8 x 16-byte matrix of float16 rows: as they are, then swizzled. */
static const struct row matrices[] = {
	{ MATRIX, "ldsm1", "memory (8, 16) of 16 bits offset = i*32 + j*2", 2, 1 },
	{ MATRIX, "ldsm1", "memory (8, 32) of 16 bits offset = i*64 + j*2", 4, 1 },
	{ MATRIX, "ldsm1", "memory (8, 64) of 16 bits offset = i*128 + j*2", 8, 1 },
	{ MATRIX, "ldsm1", "memory (8, 128) of 16 bits offset = i*256 + j*2", 8, 1 },
	{ MATRIX, "ldsm1", "memory (8, 192) of 16 bits offset = i*384 + j*2", 8, 1 },
	{ MATRIX, "ldsm1", "memory (8, 256) of 16 bits offset = i*512 + j*2", 8, 1 },
	{ MATRIX, "ldsm1", "memory (8, 48) of 16 bits offset = i*96 + j*2", 2, 1 },
	{ MATRIX, "ldsm1", "memory (8, 80) of 16 bits offset = i*160 + j*2", 2, 1 },
	{ MATRIX, "ldsm1", "memory (8, 96) of 16 bits offset = i*192 + j*2", 4, 1 },
	{ MATRIX, "ldsm1", "memory (8, 72) of 16 bits offset = i*144 + j*2", 1, 1 },
	{ MATRIX, "ldsm1", "memory (8, 104) of 16 bits offset = i*208 + j*2", 1, 1 },
	{ MATRIX, "ldsm1", "memory (8, 64) of 16 bits offset = i*128 + j*2, xor 3 bits 7 -> 4", 1, 1 },
	{ MATRIX, "ldsm1", "memory (8, 32) of 16 bits offset = i*64 + j*2, xor 2 bits 7 -> 4", 1, 1 },
	{ MATRIX, "ldsm1", "memory (8, 16) of 16 bits offset = i*32 + j*2, xor 1 bits 7 -> 4", 1, 1 },
};

/* 8 rows of an m16n8 accumulator, as half2 and as float2. */
static const struct row fragments[] = {
	{ FRAGMENT, "st32", "memory (8, 64) of 16 bits offset = i*128 + j*2", 8, 1 },
	{ FRAGMENT, "st32", "memory (8, 128) of 16 bits offset = i*256 + j*2", 8, 1 },
	{ FRAGMENT, "st32", "memory (8, 136) of 16 bits offset = i*272 + j*2", 1, 1 },
	{ FRAGMENT, "st64", "memory (8, 64) of 32 bits offset = i*256 + j*4", 8, 2 },
	{ FRAGMENT, "st64", "memory (8, 128) of 32 bits offset = i*512 + j*4", 8, 2 },
	{ FRAGMENT, "st64", "memory (8, 132) of 32 bits offset = i*528 + j*4", 4, 2 },
	{ FRAGMENT, "st64", "memory (8, 136) of 32 bits offset = i*544 + j*4", 2, 2 },
};

/* 16 bytes a lane: side by side in rows of any width, and the worst that there is. */
static const struct row wide[] = {
	{ ROW_BY_16, "st128", "memory (32, 8) of 16 bits offset = i*16 + j*2", 4, 4 },
	{ ROW_BY_16, "ld128", "memory (4, 64) of 16 bits offset = i*128 + j*2", 4, 4 },
	{ ROW_BY_16, "ld128", "memory (1, 256) of 16 bits offset = j*2", 4, 4 },
	{ ROW_BY_16, "cpasync16", "memory (2, 64) of 32 bits offset = i*256 + j*4", 4, 4 },
	{ COLUMN, "ld128", "memory (32, 32) of 32 bits offset = i*128 + j*4", 32, 4 },
};

static struct layout *read_tile(struct cx *cx, const char *text)
{
	uint32_t position = 0;

	return layout_parse(cx, source_add(cx->arena, &cx->sources, "tile", str_of(text)), &position);
}

/* The byte offset that lane `l` of the pattern accesses. */
static int64_t lane_offset(const struct layout *tile, enum pattern pattern, int64_t l)
{
	int64_t per_16 = 128 / tile->elem_bits, first = l * per_16;
	int64_t index[MAX_RANK + 1] = { 0 };

	switch (pattern) {
	case COLUMN:
	case MATRIX:
		index[0] = l;
		break;
	case FRAGMENT:
		index[0] = l / 4;
		index[1] = l % 4 * 2;
		break;
	case ROW_BY_16:
		index[0] = first / tile->shape[1];
		index[1] = first % tile->shape[1];
		break;
	}
	return layout_at(tile, index, 0).offset;
}

static struct bank_result count(struct check *check, const struct layout *tile,
                                const struct row *row)
{
	static const char digits[] = "0123456789";
	const char *bits = row->op + strcspn(row->op, digits);
	struct bank_access access = { 0 };
	uint32_t n_lanes = row->pattern == MATRIX ? 8 : 32;
	uint32_t bytes = 0;

	for (const char *at = bits; *at; at++)
		bytes = bytes * 10 + (uint32_t)(*at - '0');
	bytes = row->pattern == MATRIX || row->op[0] == 'c' ? 16 : bytes / 8;
	CHECK(check, bank_op_parse(row->op, bytes, &access));
	access.mask = n_lanes == 32 ? UINT32_MAX : (1u << n_lanes) - 1;
	for (uint32_t l = 0; l < n_lanes; l++)
		access.offsets[l] = lane_offset(tile, row->pattern, l);
	return bank_wavefronts(&access);
}

static void check_rows(struct check *check, struct cx *cx, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct layout *tile = read_tile(cx, rows[i].tile);
		struct bank_result result;

		if (!CHECK(check, tile && layout_injective(tile, NULL, NULL)))
			continue;
		result = count(check, tile, &rows[i]);
		if (result.min != rows[i].wavefronts || result.ideal != rows[i].ideal)
			printf("%s of %s:\n", rows[i].op, rows[i].tile);
		CHECK_INT(check, result.min, rows[i].wavefronts);
		CHECK_INT(check, result.max, rows[i].wavefronts);
		CHECK_INT(check, result.ideal, rows[i].ideal);
	}
}

/* The lanes of FRAGMENT are those of the accumulator's own layout. */
static void test_fragment_lanes(struct check *check, struct arena *arena)
{
	const struct layout *atom = atom_mma(arena, MMA_C, 16, 16, 16);

	for (int64_t l = 0; l < 32; l++) {
		int64_t index[MAX_RANK + 1] = { l / 4, l % 4 * 2 };

		CHECK_INT(check, layout_at(atom, index, 0).thread, l);
		CHECK_INT(check, layout_at(atom, index, 0).slot, 0);
	}
}

/* The swizzles that have names: the 128-byte one of 64 elements, Swizzle<2,3,3> and <1,3,3>. */
static void test_named_swizzles(struct check *check, struct cx *cx)
{
	for (int64_t span = 32; span <= 128; span *= 2) {
		const int64_t shape[] = { 8, span / 2 };
		const struct row *row = &matrices[span == 128 ? 11 : span == 64 ? 12 : 13];
		const struct layout *named = layout_swizzled(cx->arena, 2, shape, 16, span);

		CHECK(check, layout_equal(named, read_tile(cx, row->tile), NULL));
	}
}

/* 28 of the worst 16-byte load's 32 wavefronts are conflicts. */
static void test_worst(struct check *check, struct cx *cx)
{
	const struct row *worst = &wide[sizeof(wide) / sizeof(*wide) - 1];
	struct bank_result result = count(check, read_tile(cx, worst->tile), worst);

	CHECK_INT(check, result.min - result.ideal, 28);
	CHECK_INT(check, result.ways, 8);
}

#define ROWS(check, cx, rows) check_rows(check, cx, rows, sizeof(rows) / sizeof(*(rows)))

int main(void)
{
	struct check check = { 0 };
	struct cx cx = { 0 };

	cx_init(&cx, arena_open());
	ROWS(&check, &cx, columns);
	ROWS(&check, &cx, matrices);
	ROWS(&check, &cx, fragments);
	ROWS(&check, &cx, wide);
	test_fragment_lanes(&check, cx.arena);
	test_named_swizzles(&check, &cx);
	test_worst(&check, &cx);
	arena_close(cx.arena);
	return check_end(&check);
}
