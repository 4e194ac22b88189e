/* The `banks` verb's text: see banks_csv.h for the columns. Linear in the text. */
#include "analyzer/banks/banks_csv.h"

#include "analyzer/banks/banks.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

enum { N_FIELDS = 4, MAX_FIELD = 32 };

/* One row while it is taken apart. */
struct row {
	struct cx *cx;
	uint32_t file;
	uint32_t begin; /* of the row in the source */
	struct str fields[N_FIELDS];
	bool ok;
};

static void bad_row(struct row *row, struct str field, const char *base, const char *what)
{
	uint32_t at = field.p ? (uint32_t)(field.p - base) : row->begin;
	struct span span = { row->file, at, at + (field.p ? field.n : 0) };

	if (row->ok)
		diag_report(&row->cx->diags, DIAG_E0940, span, "%s", what);
	row->ok = false;
}

/* Cuts `line` at commas; blanks around a field do not count. */
static uint32_t split(struct str line, struct str *fields, uint32_t max)
{
	uint32_t n = 0, at = 0;

	while (n < max) {
		uint32_t begin = at, end;
		while (at < line.n && (line.p[at] != ',' || n == max - 1))
			at++;
		end = at;
		while (begin < end && isspace((unsigned char)line.p[begin]))
			begin++;
		while (end > begin && isspace((unsigned char)line.p[end - 1]))
			end--;
		fields[n++] = (struct str){ line.p + begin, end - begin };
		if (at++ >= line.n)
			break;
	}
	return n;
}

/* Digits of `radix` from *at on; false when there are none or the value passes 2^48. */
static bool read_number(struct str text, uint32_t *at, int radix, int64_t *value)
{
	uint32_t begin = *at;

	*value = 0;
	for (; *at < text.n && isxdigit((unsigned char)text.p[*at]); ++*at) {
		int c = tolower((unsigned char)text.p[*at]);
		int digit = c <= '9' ? c - '0' : c - 'a' + 10;
		if (digit >= radix || *value >= (int64_t)1 << 44)
			return false;
		*value = *value * radix + digit;
	}
	return *at > begin;
}

static bool read_whole(struct str text, int radix, int64_t *value)
{
	uint32_t at = 0;

	return read_number(text, &at, radix, value) && at == text.n;
}

static bool read_offsets(struct str text, struct bank_access *access)
{
	uint32_t at = 0;

	for (int lane = 0; lane < 32; lane++) {
		while (at < text.n && text.p[at] == ' ')
			at++;
		if (!read_number(text, &at, 10, &access->offsets[lane]))
			return false;
		if (at < text.n && text.p[at] != ' ')
			return false;
	}
	return at == text.n;
}

static bool offsets_aligned(const struct bank_access *access)
{
	for (uint32_t lane = 0; lane < 32; lane++)
		if (access->mask >> lane & 1 && access->offsets[lane] % access->bytes)
			return false;
	return true;
}

/* One row's access; reports the first thing that is wrong with it. */
static bool read_row(struct row *row, const char *base, struct bank_access *access)
{
	char op[MAX_FIELD];
	int64_t bytes = 0, mask = 0;
	const struct str *field = row->fields;

	memset(access, 0, sizeof(*access));
	if (!field[0].n || field[0].n >= sizeof(op)) {
		bad_row(row, field[0], base, "an operation is expected, such as ld32");
		return false;
	}
	assert(row->ok);
	memcpy(op, field[0].p, field[0].n);
	op[field[0].n] = 0;
	if (!read_whole(field[1], 10, &bytes) || bytes > 16)
		bad_row(row, field[1], base, "bytes a lane are expected, 1 to 16");
	else if (!bank_op_parse(op, (uint32_t)bytes, access))
		bad_row(row, field[0], base, "no such operation with this many bytes a lane");
	else if (field[2].n != 8 || !read_whole(field[2], 16, &mask))
		bad_row(row, field[2], base, "the mask of active lanes is expected as 8 hex digits");
	else if (!read_offsets(field[3], access))
		bad_row(row, field[3], base, "32 byte offsets separated by spaces are expected");
	access->mask = (uint32_t)mask;
	if (row->ok && !offsets_aligned(access))
		bad_row(row, field[3], base,
		        "an offset is not a multiple of the access's size, which faults");
	return row->ok;
}

static void write_row(struct buf *out, struct str op, struct bank_result result)
{
	buf_add(out, op.p, op.n);
	if (result.min < 0)
		buf_printf(out, ",?,%d\n", result.ideal);
	else if (result.min != result.max)
		buf_printf(out, ",%d..%d,%d\n", result.min, result.max, result.ideal);
	else
		buf_printf(out, ",%d,%d\n", result.min, result.ideal);
}

bool banks_csv(struct cx *cx, uint32_t file, struct buf *out)
{
	struct str text = source_get(&cx->sources, file)->text;
	bool ok = true, is_first = true;

	buf_text(out, "op,wavefronts,ideal\n");
	for (uint32_t at = 0, end; at < text.n; at = end + 1) {
		struct row row = { cx, file, at, { { 0 } }, true };
		struct bank_access access;
		uint32_t n_fields;
		for (end = at; end < text.n && text.p[end] != '\n';)
			end++;
		n_fields = split((struct str){ text.p + at, end - at }, row.fields, N_FIELDS);
		if (n_fields == 1 && !row.fields[0].n)
			continue;
		if (is_first && str_is(row.fields[0], "op")) {
			is_first = false;
			continue;
		}
		is_first = false;
		if (n_fields < N_FIELDS)
			bad_row(&row, (struct str){ text.p + at, end - at }, text.p,
			        "a row has four fields: op,access_bytes,mask,offsets");
		else if (read_row(&row, text.p, &access))
			write_row(out, row.fields[0], bank_wavefronts(&access));
		ok = ok && row.ok;
	}
	return ok;
}
