/*
 * Layouts as text: printing, reading back, and the element lists of the `layout` verb. Reading
 * gives back what was printed, which tests hold for all kinds.
 *
 * Grammar of the text form (blanks between words are free):
 *
 *     layout    = (fragment | memory)
 *     fragment  = "fragment" shape ["of" N "replicas"] axis "," axis      thread, then slot
 *     memory    = "memory" shape "of" N "bits" axis {"," xor}             offset
 *     shape     = "(" [N {"," N}] ")"
 *     axis      = ("thread" | "slot" | "offset") "=" (term {"+" term} | "table" "[" {N} "]")
 *     term      = "0" | dimension ["/" N] ["%" N] ["*" N]
 *     dimension = "i" | "j" | "k" | "l" | "i4" ... | "r"                  "r": the replica
 *     xor       = "xor" N "bits" N "->" N
 */
#include "analyzer/layout/layout.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static const char *const axis_names[N_LAYOUT_AXES] = { "thread", "slot", "offset" };

/* Letters for the first four dimensions, as in the language's own layout functions. */
static void print_dim(struct buf *out, int dim)
{
	if (dim == DIM_REPLICA)
		buf_char(out, 'r');
	else if (dim < 4)
		buf_char(out, "ijkl"[dim]);
	else
		buf_printf(out, "i%d", dim);
}

/*
 * Values that the digit needs to have for its dimension: the extent that goes without saying.
 * Printing leaves it out and reading puts it back.
 */
static int64_t implied_extent(const struct layout *layout, int dim, int64_t div)
{
	int64_t extent = dim == DIM_REPLICA ? layout->n_replicas : layout->shape[dim];

	return (extent + div - 1) / div;
}

/* The digits of one axis as a sum, in canonical order; an axis without digits is 0. */
static void print_axis(struct buf *out, const struct layout *layout, enum layout_axis axis)
{
	bool empty = true;

	buf_printf(out, "%s = ", axis_names[axis]);
	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];

		if (digit->axis != axis)
			continue;
		buf_text(out, empty ? "" : " + ");
		empty = false;
		print_dim(out, digit->dim);
		if (digit->div != 1)
			buf_printf(out, "/%" PRId64, digit->div);
		if (digit->extent != implied_extent(layout, digit->dim, digit->div))
			buf_printf(out, "%%%" PRId64, digit->extent);
		if (digit->stride != 1)
			buf_printf(out, "*%" PRId64, digit->stride);
	}
	if (empty)
		buf_char(out, '0');
}

/* Entries of a table: all elements, for each replica. */
static int64_t n_places_listed(const struct layout *layout)
{
	int64_t n = layout->n_replicas;

	for (uint32_t d = 0; d < layout->rank; d++)
		n *= layout->shape[d];
	return n;
}

/* Row-major, replica by replica. */
static void print_table(struct buf *out, const char *name, const int64_t *table, int64_t n)
{
	buf_printf(out, "%s = table [", name);
	for (int64_t i = 0; i < n; i++)
		buf_printf(out, "%s%" PRId64, i > 0 ? " " : "", table[i]);
	buf_char(out, ']');
}

void layout_print(struct buf *out, const struct layout *layout)
{
	buf_text(out, layout->kind == LAYOUT_FRAGMENT ? "fragment (" : "memory (");
	for (uint32_t d = 0; d < layout->rank; d++)
		buf_printf(out, "%s%" PRId64, d > 0 ? ", " : "", layout->shape[d]);
	buf_text(out, ") ");
	if (layout->kind == LAYOUT_MEMORY)
		buf_printf(out, "of %u bits ", layout->elem_bits);
	else if (layout->n_replicas > 1)
		buf_printf(out, "of %" PRId64 " replicas ", layout->n_replicas);
	if (layout->table) {
		print_table(out, "offset", layout->table, n_places_listed(layout));
	} else if (layout->table_threads) {
		print_table(out, "thread", layout->table_threads, n_places_listed(layout));
		buf_text(out, ", ");
		print_table(out, "slot", layout->table_slots, n_places_listed(layout));
	} else if (layout->kind == LAYOUT_FRAGMENT) {
		print_axis(out, layout, AXIS_THREAD);
		buf_text(out, ", ");
		print_axis(out, layout, AXIS_SLOT);
	} else {
		print_axis(out, layout, AXIS_OFFSET);
	}
	for (uint32_t x = 0; x < layout->n_xors; x++)
		buf_printf(out, ", xor %u bits %u -> %u", layout->xors[x].n_bits, layout->xors[x].from_bit,
		           layout->xors[x].to_bit);
}

/* ---- reading ---- */

/* Texts come from outside: these keep products within int64_t and tables within memory. */
enum { MAX_TABLE_ELEMS = 1 << 22, MAX_NUMBER = 1 << 30 };

/*
 * A position in a source; after the first error the reader stands still and every call returns at
 * once.
 */
struct reader {
	struct cx *cx;
	uint32_t file;
	struct str text;
	uint32_t at;
	bool failed;
};

/* E0401 at the position reached; only the first error is reported. */
static void fail(struct reader *reader, const char *what)
{
	if (!reader->failed)
		diag_report(&reader->cx->diags, DIAG_E0401,
		            (struct span){ reader->file, reader->at, reader->at + 1 }, "layout text: %s",
		            what);
	reader->failed = true;
}

/* Line breaks are no blanks: a layout is one line of a larger text. */
static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->text.n &&
	       (reader->text.p[reader->at] == ' ' || reader->text.p[reader->at] == '\t'))
		reader->at++;
}

/* Takes `word` when it comes next; a word of letters must end there. */
static bool take(struct reader *reader, const char *word)
{
	uint32_t n = (uint32_t)strlen(word);

	skip_blanks(reader);
	if (reader->text.n - reader->at < n || memcmp(reader->text.p + reader->at, word, n) != 0)
		return false;
	if (isalpha((unsigned char)word[n - 1]) && reader->at + n < reader->text.n &&
	    isalnum((unsigned char)reader->text.p[reader->at + n]))
		return false;
	reader->at += n;
	return true;
}

static void expect(struct reader *reader, const char *word)
{
	if (!reader->failed && !take(reader, word))
		fail(reader, "unexpected text");
}

static bool at_digit(const struct reader *reader)
{
	return reader->at < reader->text.n && isdigit((unsigned char)reader->text.p[reader->at]);
}

/* A number in min .. MAX_NUMBER; min after an error, so that what follows stays sound. */
static int64_t number(struct reader *reader, int64_t min)
{
	int64_t value = 0;

	skip_blanks(reader);
	if (!at_digit(reader))
		fail(reader, "a number is missing");
	while (!reader->failed && at_digit(reader)) {
		value = value * 10 + (reader->text.p[reader->at++] - '0');
		if (value > MAX_NUMBER)
			fail(reader, "the number is too large");
	}
	if (value < min)
		fail(reader, "the number is too small");
	return reader->failed ? min : value;
}

/* An empty shape is the layout of a scalar. */
static void read_shape(struct reader *reader, struct layout *layout)
{
	int64_t n = 1;

	expect(reader, "(");
	while (!reader->failed) {
		skip_blanks(reader);
		if (!at_digit(reader))
			break;
		if (layout->rank == MAX_RANK) {
			fail(reader, "too many dimensions");
			return;
		}
		layout->shape[layout->rank] = number(reader, 1);
		n *= layout->shape[layout->rank++];
		if (n > MAX_NUMBER)
			fail(reader, "the shape is too large");
		if (!take(reader, ","))
			break;
	}
	expect(reader, ")");
}

/* Dimension of a term; -1 when none comes. */
static int read_dim(struct reader *reader, const struct layout *layout)
{
	static const char *const names[] = { "i", "j", "k", "l", "i4", "i5", "i6", "i7" };

	if (take(reader, "r"))
		return DIM_REPLICA;
	for (uint32_t d = 0; d < layout->rank; d++)
		if (take(reader, names[d]))
			return (int)d;
	return -1;
}

/* Limits come before layout_add_digit, whose asserts are about our own mistakes. */
static void read_term(struct reader *reader, struct layout *layout, enum layout_axis axis)
{
	struct digit digit = { .div = 1, .stride = 1, .axis = axis };

	if (take(reader, "0"))
		return;
	digit.dim = read_dim(reader, layout);
	if (digit.dim < 0) {
		fail(reader, "a dimension of the shape is expected");
		return;
	}
	if (take(reader, "/"))
		digit.div = number(reader, 1);
	digit.extent = implied_extent(layout, digit.dim, digit.div);
	if (take(reader, "%"))
		digit.extent = number(reader, 1);
	if (take(reader, "*"))
		digit.stride = number(reader, 0);
	if (layout->n_digits == MAX_DIGITS)
		fail(reader, "too many terms");
	else if ((digit.extent - 1) * digit.stride > MAX_NUMBER ||
	         digit.div * digit.extent > 4 * (int64_t)MAX_NUMBER)
		fail(reader, "the term is too large");
	else if (digit.dim == DIM_REPLICA && digit.div * digit.extent > layout->n_replicas)
		fail(reader, "the term has more replicas than the layout");
	else
		layout_add_digit(layout, digit);
}

/* NULL after an error. The shape and the replicas stand before it, so that the length is known. */
static const int64_t *read_table(struct reader *reader, const struct layout *layout)
{
	int64_t n = n_places_listed(layout);
	int64_t *table;

	expect(reader, "[");
	if (n > MAX_TABLE_ELEMS)
		fail(reader, "the table is too large");
	if (reader->failed)
		return NULL;
	table = arena_array(reader->cx->arena, int64_t, (size_t)n);
	for (int64_t i = 0; i < n && !reader->failed; i++)
		table[i] = number(reader, 0);
	expect(reader, "]");
	return table;
}

static void read_axis(struct reader *reader, struct layout *layout, enum layout_axis axis)
{
	expect(reader, axis_names[axis]);
	expect(reader, "=");
	if (reader->failed)
		return;
	if (take(reader, "table")) {
		const int64_t *table = read_table(reader, layout);

		if (axis == AXIS_OFFSET)
			layout->table = table;
		else if (axis == AXIS_THREAD)
			layout->table_threads = table;
		else
			layout->table_slots = table;
		return;
	}
	do
		read_term(reader, layout, axis);
	while (!reader->failed && take(reader, "+"));
}

/* A term must not move bits onto themselves: then it is its own inverse, as swizzles are. */
static void read_xor(struct reader *reader, struct layout *layout)
{
	int64_t n_bits = number(reader, 1), from, to;

	expect(reader, "bits");
	from = number(reader, 0);
	expect(reader, "->");
	to = number(reader, 0);
	if (layout->n_xors == MAX_XORS || from + n_bits > 40 || from < to + n_bits)
		fail(reader, "the xor term is not its own inverse");
	if (!reader->failed)
		layout->xors[layout->n_xors++] =
			(struct xor_term){ (uint8_t)from, (uint8_t)to, (uint8_t)n_bits };
}

static void read_memory(struct reader *reader, struct layout *layout)
{
	expect(reader, "of");
	layout->elem_bits = (uint32_t)number(reader, 1);
	if (layout->elem_bits > 4096)
		fail(reader, "the element is too wide");
	expect(reader, "bits");
	read_axis(reader, layout, AXIS_OFFSET);
	while (!reader->failed && !layout->table && take(reader, ",")) {
		expect(reader, "xor");
		read_xor(reader, layout);
	}
}

static void read_fragment(struct reader *reader, struct layout *layout)
{
	if (take(reader, "of")) {
		layout->n_replicas = number(reader, 1);
		expect(reader, "replicas");
	}
	read_axis(reader, layout, AXIS_THREAD);
	expect(reader, ",");
	read_axis(reader, layout, AXIS_SLOT);
	if (!reader->failed && (layout->table_threads != NULL) != (layout->table_slots != NULL))
		fail(reader, "thread and slot are both tables or neither is");
}

/* Reads from *position on and leaves it behind the layout; NULL with E0401 otherwise. */
struct layout *layout_parse(struct cx *cx, uint32_t file, uint32_t *position)
{
	struct reader reader = {
		.cx = cx, .file = file, .text = source_get(&cx->sources, file)->text, .at = *position
	};
	struct layout *layout = arena_new(cx->arena, struct layout);

	layout->n_replicas = 1;
	if (take(&reader, "fragment")) {
		layout->kind = LAYOUT_FRAGMENT;
		read_shape(&reader, layout);
		if (!reader.failed)
			read_fragment(&reader, layout);
	} else {
		layout->kind = LAYOUT_MEMORY;
		expect(&reader, "memory");
		read_shape(&reader, layout);
		if (!reader.failed)
			read_memory(&reader, layout);
	}
	*position = reader.at;
	if (reader.failed)
		return NULL;
	layout_finish(layout);
	return layout;
}

/* ---- element lists ---- */

/* Decimal digits and the end character by hand: a million-element list is mostly this. */
static void print_number(struct buf *out, int64_t value, char end)
{
	char text[24];
	size_t at = sizeof(text);
	uint64_t rest = (uint64_t)value;

	assert(value >= 0);
	text[--at] = end;
	do {
		text[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	buf_add(out, text + at, sizeof(text) - at);
}

/*
 * A header and a line per replica and element, in row-major order: the form in which other tools'
 * layouts are compared.
 */
void layout_print_csv(struct buf *out, const struct layout *layout)
{
	for (uint32_t d = 0; d < layout->rank; d++) {
		print_dim(out, (int)d);
		buf_char(out, ',');
	}
	buf_text(out, layout->kind == LAYOUT_FRAGMENT ? "replica,thread,slot\n" : "offset_bytes\n");
	for (int64_t r = 0; r < layout->n_replicas; r++) {
		int64_t index[MAX_RANK] = { 0 };

		do {
			struct place place = layout_at(layout, index, r);

			for (uint32_t d = 0; d < layout->rank; d++)
				print_number(out, index[d], ',');
			if (layout->kind == LAYOUT_MEMORY) {
				print_number(out, place.offset, '\n');
				continue;
			}
			print_number(out, r, ',');
			print_number(out, place.thread, ',');
			print_number(out, place.slot, '\n');
		} while (layout_next_index(layout, index));
	}
}
