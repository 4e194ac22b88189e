/*
 * Why an access wastes wavefronts, and what takes it out of TileLang's code.
 *
 *     8-way: lanes store to neighbouring rows of O_shared; a row is 128 bytes, a multiple of the
 *     128 bytes that the 32 banks hold
 */
#include "analyzer/describe/describe.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Bytes from a row to the next; 0 when the tile has no rows at one distance. */
static int64_t row_bytes(const struct layout *layout)
{
	int64_t index[MAX_RANK] = { 0 }, second;

	if (!layout || layout->kind != LAYOUT_MEMORY || layout->rank < 2 || layout->n_xors > 0 ||
	    layout->table || layout->shape[layout->rank - 2] < 2)
		return 0;
	index[layout->rank - 2] = 1;
	second = layout_at(layout, index, 0).offset;
	index[layout->rank - 2] = layout->shape[layout->rank - 2] - 1;
	return layout_at(layout, index, 0).offset == second * index[layout->rank - 2] ? second : 0;
}

/* "neighbouring rows of O_shared; a row is 128 bytes", "every 4th row ...; 4 rows are 128 bytes" */
static const char *rows_text(struct arena *arena, const char *name, int64_t n, int64_t pitch)
{
	static const char *const endings[] = { "th", "st", "nd", "rd" };
	int64_t last = n / 10 % 10 == 1 ? 0 : n % 10;

	if (n == 1)
		return arena_printf(arena, "neighbouring rows of %s; a row is %" PRId64 " bytes", name,
		                    pitch);
	return arena_printf(arena,
	                    "every %" PRId64 "%s row of %s; %" PRId64 " rows are %" PRId64 " bytes", n,
	                    endings[last < 4 ? last : 0], name, n, n * pitch);
}

const char *describe_cause(const struct compile *compile, const struct access_site *site)
{
	struct arena *arena = compile->cx.arena;
	const struct buffer *buffer = site->shared ? site->shared->buffer : NULL;
	int64_t step = site->meet_bytes < 0 ? -site->meet_bytes : site->meet_bytes, pitch;
	bool is_store = strncmp(site->instruction, "st", 2) == 0;
	const char *where;

	if (site->excess <= 0 || site->ways < 2 || step == 0 || !buffer)
		return NULL;
	pitch = row_bytes(describe_layout(compile, buffer));
	if (pitch > 0 && step % pitch == 0)
		where = rows_text(arena, site->buffer, step / pitch, pitch);
	else
		where = arena_printf(arena, "places of %s that are %" PRId64 " bytes apart", site->buffer,
		                     step);
	return arena_printf(arena,
	                    "%d-way: lanes %s %s, a multiple of the 128 bytes that the 32 banks hold",
	                    site->ways, is_store ? "store to" : "load from", where);
}

/* ---- edits of TileLang's code ---- */

static int64_t excess_of(const struct access_table *table, const char *buffer)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < table->sites.n; i++)
		if (strcmp(table->sites.p[i].buffer, buffer) == 0 && table->sites.p[i].excess > 0)
			sum += table->sites.p[i].excess;
	return sum;
}

/* "swizzle128", or the formula of a layout without such a name. */
static const char *layout_words(struct arena *arena, const struct layout *layout)
{
	const char *kind = layout_kind_text(layout), *words;
	struct buf text = { 0 };

	if (strcmp(kind, "other") != 0)
		return kind;
	layout_print(&text, layout);
	while (text.n > 0 && text.p[text.n - 1] == '\n')
		text.p[--text.n] = '\0';
	words = arena_strndup(arena, buf_cstr(&text), text.n);
	buf_free(&text);
	return words;
}

/* "without --parity O_shared is swizzle128, with an excess of 0"; NULL when that is not known. */
static const char *own_text(const struct compile *compile, const struct launch_result *launch,
                            const struct access_site *site)
{
	const struct compile *own = compile->own;
	const struct buffer *buffer = site->shared->buffer;
	const struct launch_result *same;
	const struct layout *layout;

	if (!own || own->program->buffers.n != compile->program->buffers.n ||
	    own->launches.n != compile->launches.n)
		return NULL;
	same = own->launches.p[launch->launch->index];
	layout = same->solution->buffers[buffer->id].layout;
	if (!layout)
		return NULL;
	return arena_printf(compile->cx.arena, "without --parity %s is %s, with an excess of %" PRId64,
	                    site->buffer, layout_words(compile->cx.arena, layout),
	                    excess_of(&same->accesses, site->buffer));
}

const char *describe_edit(const struct compile *compile, const struct launch_result *launch,
                          const struct access_site *site)
{
	struct arena *arena = compile->cx.arena;
	const struct buffer *buffer = site->shared ? site->shared->buffer : NULL;
	const struct parity_fix *fix = buffer ? parity_fix_of(launch->parity, buffer) : NULL;
	const char *own = buffer ? own_text(compile, launch, site) : NULL;

	assert(launch->parity);
	if (fix)
		return arena_printf(
			arena, "%s leaves %" PRId64 " of the launch's %" PRId64 " excess wavefronts%s%s",
			fix->edit, fix->left, fix->excess, own ? "; " : "", own ? own : "");
	return own ? arena_printf(arena, "no annotation that was tried helps here; %s", own) : NULL;
}
