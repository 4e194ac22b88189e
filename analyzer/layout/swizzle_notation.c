/* Reads accesses of a tile and tabulates which element each lane touches. */
#include "analyzer/layout/swizzle_notation.h"

#include "analyzer/layout/algebra.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WEIGHT = 1 << 20 };

struct notation {
	struct cx *cx;
	struct swizzle_problem *problem;
	struct tile_access *access;
	const char *text, *at;
	uint32_t file;
};

static bool fail(struct notation *notation, const char *what)
{
	uint32_t begin = (uint32_t)(notation->at - notation->text);

	diag_report(&notation->cx->diags, DIAG_E0945, (struct span){ notation->file, begin, begin + 1 },
	            "access '%s': %s", notation->text, what);
	diag_help(&notation->cx->diags,
	          "write st.row.16, ld.col.4, ld.mma.8, cp.async.row.16, ldmatrix.x4[.trans][.col], "
	          "ld.16:((4,8),(2,2)):((32,1),(16,8)) or ld.8:thread=..., slot=...; N* in front for N "
	          "executions");
	return false;
}

static bool take(struct notation *notation, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(notation->at, word, n) != 0)
		return false;
	notation->at += n;
	return true;
}

static bool read_int(struct notation *notation, int64_t max, int64_t *out)
{
	int64_t value = 0;

	if (!isdigit((unsigned char)*notation->at))
		return fail(notation, "a number is expected here");
	while (isdigit((unsigned char)*notation->at)) {
		value = value * 10 + (*notation->at++ - '0');
		if (value > max)
			return fail(notation, "the number is too large");
	}
	if (value == 0)
		return fail(notation, "the number is 0");
	*out = value;
	return true;
}

/* ---- tables ---- */

static int64_t n_columns(const struct swizzle_problem *problem)
{
	return problem->shape[problem->rank - 1];
}

static int64_t n_elems(const struct swizzle_problem *problem)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < problem->rank; d++)
		n *= problem->shape[d];
	return n;
}

static int32_t *make_table(struct notation *notation, int64_t n_steps, uint32_t n_slots)
{
	size_t n = (size_t)n_steps * SWIZZLE_LANES * n_slots;
	int32_t *table = arena_array(notation->cx->arena, int32_t, n);

	for (size_t i = 0; i < n; i++)
		table[i] = -1;
	notation->access->n_steps = n_steps;
	notation->access->n_slots = n_slots;
	notation->access->elems = table;
	return table;
}

/* Vectors of `bytes` one after the other, along rows or down columns. */
static bool fill_order(struct notation *notation, bool by_columns)
{
	const struct swizzle_problem *problem = notation->problem;
	int64_t columns = n_columns(problem), rows = n_elems(problem) / columns;
	int64_t slots = notation->access->bytes * 8 / problem->elem_bits;
	int64_t n_vectors = rows * columns / slots;
	int32_t *table;

	if ((by_columns ? rows : columns) % slots != 0)
		return fail(notation, "its vectors do not divide a line of the tile");
	table = make_table(notation, (n_vectors + SWIZZLE_LANES - 1) / SWIZZLE_LANES, (uint32_t)slots);
	for (int64_t i = 0; i < n_vectors * slots; i++)
		table[i] = (int32_t)(by_columns ? i % rows * columns + i / rows : i);
	return true;
}

/* PTX ISA, "Matrix Fragments for mma.m16n8k16": the accumulator's register pairs. */
static bool fill_accumulator(struct notation *notation)
{
	const struct swizzle_problem *problem = notation->problem;
	int64_t columns = n_columns(problem), rows = n_elems(problem) / columns, n = 0;
	int64_t slots = notation->access->bytes * 8 / problem->elem_bits;
	int32_t *table;

	if (rows % 16 != 0 || columns % 8 != 0 || slots > 2)
		return fail(notation, "an accumulator has 16 x 8 tiles and two elements side by side");
	table = make_table(notation, rows * columns / slots / SWIZZLE_LANES, (uint32_t)slots);
	for (int64_t row = 0; row < rows; row += 8)
		for (int64_t column = 0; column < columns; column += 8)
			for (int64_t first = 0; first < 2; first += slots)
				for (int64_t lane = 0; lane < SWIZZLE_LANES; lane++)
					for (int64_t s = 0; s < slots; s++)
						table[n++] = (int32_t)((row + lane / 4) * columns + column + lane % 4 * 2 +
						                       first + s);
	return true;
}

/* PTX ISA, "ldmatrix": lanes 8m .. 8m+7 give the rows of matrix m; two matrices down, two right. */
static bool fill_matrices(struct notation *notation, bool by_columns)
{
	const struct swizzle_problem *problem = notation->problem;
	int64_t columns = n_columns(problem), rows = n_elems(problem) / columns, step = 0;
	int64_t n = notation->access->n_matrices, down = n > 1 ? 16 : 8, right = n > 2 ? 16 : 8;
	int64_t height = by_columns ? columns : rows, width = by_columns ? rows : columns;
	int32_t *table;

	if (problem->elem_bits != 16)
		return fail(notation, "matrix instructions take elements of 2 bytes");
	if (height % down != 0 || width % right != 0)
		return fail(notation, "its matrices of 8 x 8 elements do not divide the tile");
	table = make_table(notation, height / down * (width / right), 8);
	for (int64_t y = 0; y < height; y += down)
		for (int64_t x = 0; x < width; x += right, step++)
			for (int64_t lane = 0; lane < 8 * n; lane++)
				for (int64_t s = 0; s < 8; s++) {
					int64_t row = y + lane % down, column = x + lane / down * 8 + s;

					table[(step * SWIZZLE_LANES + lane) * 8 + s] =
						(int32_t)(by_columns ? column * columns + row : row * columns + column);
				}
	return true;
}

/* Element number with the first dimension fastest -> row-major. */
static int64_t row_major_of(const struct swizzle_problem *problem, int64_t colex)
{
	int64_t index[MAX_RANK], number = 0;

	for (uint32_t d = 0; d < problem->rank; d++) {
		index[d] = colex % problem->shape[d];
		colex /= problem->shape[d];
	}
	for (uint32_t d = 0; d < problem->rank; d++)
		number = number * problem->shape[d] + index[d];
	return number;
}

static bool check_slots(struct notation *notation, int64_t threads, int64_t slots)
{
	if (slots > SWIZZLE_MAX_SLOTS || slots * threads > SWIZZLE_MAX_ELEMS)
		return fail(notation, "it has too many slots");
	if (slots * notation->problem->elem_bits % (notation->access->bytes * 8) != 0)
		return fail(notation, "its slots are no whole number of instructions of that width");
	return true;
}

static bool fill_thread_value(struct notation *notation)
{
	uint32_t position = (uint32_t)(notation->at - notation->text);
	struct cute_composed a;
	int64_t threads, slots;
	int32_t *table;

	if (!cute_parse(notation->cx, notation->file, &position, &a))
		return false;
	notation->at = notation->text + position;
	if (*notation->at != '\0')
		return fail(notation, "text behind the layout");
	if (cute_rank(a.layout) != 2 || a.swizzle.bits > 0)
		return fail(notation, "a thread-value layout has two modes");
	threads = cute_size(cute_mode(a.layout, 0));
	slots = cute_size(cute_mode(a.layout, 1));
	if (cute_cosize(a.layout) > n_elems(notation->problem))
		return fail(notation, "the layout reaches outside the tile");
	if (!check_slots(notation, threads, slots))
		return false;
	table = make_table(notation, (threads + SWIZZLE_LANES - 1) / SWIZZLE_LANES, (uint32_t)slots);
	for (int64_t t = 0; t < threads; t++)
		for (int64_t s = 0; s < slots; s++)
			table[t * slots + s] =
				(int32_t)row_major_of(notation->problem, cute_at(a.layout, t + threads * s));
	return true;
}

/* "i//8" is written "i/8" in layout texts. */
static const char *fragment_text(struct notation *notation)
{
	struct buf buf = { 0 };
	const char *text;

	buf_text(&buf, "fragment (");
	for (uint32_t d = 0; d < notation->problem->rank; d++)
		buf_printf(&buf, "%s%" PRId64, d ? ", " : "", notation->problem->shape[d]);
	buf_text(&buf, ") ");
	for (const char *c = notation->at; *c; c++)
		if (!(c[0] == '/' && c[1] == '/'))
			buf_char(&buf, *c);
	text = arena_strndup(notation->cx->arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

static bool fill_fragment(struct notation *notation)
{
	const char *text = fragment_text(notation);
	uint32_t file =
		source_add(notation->cx->arena, &notation->cx->sources, "--access", str_of(text));
	uint32_t position = 0;
	const struct layout *layout = layout_parse(notation->cx, file, &position);
	int64_t index[MAX_RANK] = { 0 }, number = 0, n_filled = 0;
	int32_t *table;

	if (!layout)
		return false;
	if (text[position] != '\0')
		return fail(notation, "text behind the fragment");
	if (!check_slots(notation, layout->n_threads, layout->n_slots))
		return false;
	table = make_table(notation, (layout->n_threads + SWIZZLE_LANES - 1) / SWIZZLE_LANES,
	                   (uint32_t)layout->n_slots);
	do {
		struct place place = layout_at(layout, index, 0);
		int32_t *entry = &table[place.thread * layout->n_slots + place.slot];

		n_filled += *entry < 0;
		*entry = (int32_t)number++;
	} while (layout_next_index(layout, index));
	if (n_filled != number || n_filled % layout->n_slots != 0)
		return fail(notation, "each thread's slots hold one element each, all or none");
	return true;
}

/* ---- the text ---- */

static bool read_bytes(struct notation *notation)
{
	int64_t bytes;

	if (!read_int(notation, 64, &bytes))
		return false;
	if (bytes > 16 || (bytes & (bytes - 1)) != 0)
		return fail(notation, "an instruction moves 1, 2, 4, 8 or 16 bytes a lane");
	if (bytes * 8 < notation->problem->elem_bits)
		return fail(notation, "the width is less than an element");
	notation->access->bytes = (uint32_t)bytes;
	return true;
}

static bool read_matrix_access(struct notation *notation)
{
	struct tile_access *access = notation->access;
	int64_t n;

	access->bytes = 16;
	if (!take(notation, ".x") || !read_int(notation, 8, &n) || (n != 1 && n != 2 && n != 4))
		return fail(notation, "matrix instructions are .x1, .x2 or .x4");
	access->n_matrices = (uint32_t)n;
	take(notation, ".trans");
	return fill_matrices(notation, take(notation, ".col"));
}

static bool read_plain_access(struct notation *notation)
{
	bool rows = take(notation, ".row."), columns = !rows && take(notation, ".col.");
	bool accumulator = !rows && !columns && take(notation, ".mma.");

	if (!rows && !columns && !accumulator && !take(notation, "."))
		return fail(notation, "a width is expected here");
	if (!read_bytes(notation))
		return false;
	if (notation->access->op == BANK_CP_ASYNC && notation->access->bytes < 4)
		return fail(notation, "cp.async moves 4, 8 or 16 bytes a lane");
	if (rows || columns)
		return fill_order(notation, columns);
	if (accumulator)
		return fill_accumulator(notation);
	if (!take(notation, ":"))
		return fail(notation, "an order (row, col, mma) or a thread-value layout is expected");
	while (take(notation, " "))
		;
	return *notation->at == 't' ? fill_fragment(notation) : fill_thread_value(notation);
}

static bool read_op(struct notation *notation)
{
	static const struct {
		const char *text;
		enum bank_op op;
	} ops[] = { { "ldmatrix", BANK_LDMATRIX },
		        { "stmatrix", BANK_STMATRIX },
		        { "cp.async", BANK_CP_ASYNC },
		        { "ld", BANK_LD },
		        { "st", BANK_ST } };

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (take(notation, ops[i].text)) {
			notation->access->op = ops[i].op;
			return ops[i].op == BANK_LDMATRIX || ops[i].op == BANK_STMATRIX
			           ? read_matrix_access(notation)
			           : read_plain_access(notation);
		}
	return fail(notation, "no such access");
}

bool swizzle_read_access(struct cx *cx, struct swizzle_problem *problem, const char *text)
{
	struct notation notation = { .cx = cx, .problem = problem, .text = text, .at = text };
	struct tile_access access = { .weight = 1 };

	notation.access = &access;
	notation.file = source_add(cx->arena, &cx->sources, "--access", str_of(text));
	if (problem->n_accesses == SWIZZLE_MAX_ACCESSES)
		return fail(&notation, "too many accesses");
	if (isdigit((unsigned char)*text) &&
	    (!read_int(&notation, MAX_WEIGHT, &access.weight) || !take(&notation, "*")))
		return fail(&notation, "'*' is expected behind the number of executions");
	if (!read_op(&notation))
		return false;
	if (access.op != BANK_LD && access.op != BANK_ST && *notation.at)
		return fail(&notation, "text behind the access");
	problem->accesses[problem->n_accesses++] = access;
	return true;
}

const char *swizzle_instruction(struct arena *arena, const struct tile_access *access,
                                uint32_t bytes)
{
	switch (access->op) {
	case BANK_LD:
		return arena_printf(arena, "ld.shared.%u", bytes);
	case BANK_ST:
		return arena_printf(arena, "st.shared.%u", bytes);
	case BANK_LDMATRIX:
		return arena_printf(arena, "ldmatrix.x%u", access->n_matrices);
	case BANK_STMATRIX:
		return arena_printf(arena, "stmatrix.x%u", access->n_matrices);
	case BANK_CP_ASYNC:
		return arena_printf(arena, "cp.async.%u", bytes);
	case BANK_ATOMIC:
		break;
	}
	return "atom.shared.4";
}
