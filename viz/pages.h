/*
 * pages: all drawings of a compile, as named SVG texts and an index.html that shows them.
 */
#ifndef TL_VIZ_PAGES_H
#define TL_VIZ_PAGES_H

#include "analyzer/compile.h"

struct page {
	const char *name;  /* "fragment_C_local.svg": letters, digits, '_' and '.' only */
	const char *title; /* "C_local, fragment" */
	struct buf text;
};

struct page_list {
	vec_of(struct page) pages; /* index.html last */
	bool without_graphviz;     /* the graph is the plain one */
};

/* Draws what the passes reached: laid-out fragments and shared buffers, and a graph for each
 * launch. pages_free releases the texts. */
void pages_draw(struct page_list *list, const struct compile *compile);
void pages_free(struct page_list *list);

#endif
