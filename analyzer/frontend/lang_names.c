/*
 * Which names of tilelang.language the tables of lang_*.c have, and which are only known. The
 * tables that call the functions are the source, so that the list that `ops` prints is never out of
 * date.
 */
#include "analyzer/frontend/lang_names.h"
#include "analyzer/frontend/eval.h"

#include <stdlib.h>
#include <string.h>

/* The T.* names of one table. */
static void add_table(struct arena *arena, const struct builtin_table *table,
                      enum lang_status status, struct lang_name_list *out)
{
	for (uint32_t i = 0; i < table->n; i++) {
		if (strcmp(table->p[i].module, "tilelang.language") == 0)
			vec_push(arena, &out->names, (struct lang_name){ table->p[i].name, status });
	}
}

/* For qsort. */
static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct lang_name *)a)->name, ((const struct lang_name *)b)->name);
}

/* Sorted by name. */
void lang_names(struct arena *arena, struct lang_name_list *out)
{
	static const char *const known[] = {
#define KNOWN(name) #name,
#include "analyzer/frontend/known_names.def"
#undef KNOWN
	};
	const struct builtin_table *const taken[] = {
		&lang_scalars,  &lang_ops,   &lang_shapes, &lang_eager,  &lang_layouts, &lang_atomics,
		&lang_barriers, &lang_tiles, &lang_memory, &lang_blocks, &lang_calls,   &lang_logical,
	};

	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		add_table(arena, taken[i], LANG_TAKEN, out);
	add_table(arena, &lang_hints, LANG_HINT, out);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		vec_push(arena, &out->names, (struct lang_name){ known[i], LANG_NOT_SUPPORTED });
	qsort(out->names.p, out->names.n, sizeof(*out->names.p), by_name);
}
