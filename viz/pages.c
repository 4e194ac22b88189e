/*
 * All drawings of a compile. Names are made of the buffer's name and the launch, and are the same
 * in every run; a second buffer of a name in the same launch gets its number.
 */
#include "viz/pages.h"

#include "viz/draw.h"
#include "viz/flow.h"
#include "viz/svg.h"

#include <assert.h>
#include <stdio.h>

/* "graph.svg", "graph_1.svg" for launch 1; characters that a file name should not have become '_'.
 */
static const char *page_name(struct arena *arena, const char *kind, const char *name,
                             uint32_t launch, uint32_t number)
{
	struct buf out = { 0 };

	buf_text(&out, kind);
	for (const char *c = name; *c; c++)
		buf_char(&out,
		         (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z')
		             ? *c
		             : '_');
	if (launch > 0)
		buf_printf(&out, "_%u", launch);
	if (number > 0)
		buf_printf(&out, "_b%u", number);
	buf_text(&out, ".svg");
	return buf_keep(&out, arena);
}

/* Has a page that name already? */
static bool is_taken(const struct page_list *list, const char *name)
{
	for (uint32_t i = 0; i < list->pages.n; i++)
		if (str_is(str_of(list->pages.p[i].name), name))
			return true;
	return false;
}

/* A fragment or a shared buffer. */
static void add_buffer(struct page_list *list, const struct compile *compile,
                       const struct buffer *buffer, const struct layout *layout)
{
	struct arena *arena = compile->cx.arena;
	bool fragment = layout->kind == LAYOUT_FRAGMENT;
	const char *name = sym_text(compile->cx.names, buffer->name),
			   *kind = fragment ? "fragment_" : "shared_";
	struct draw_tile tile = { name, sym_text(compile->cx.names, compile->program->name),
		                      buffer->type, layout };
	struct page page = { 0 };

	page.name = page_name(arena, kind, name, buffer->launch, 0);
	if (is_taken(list, page.name))
		page.name = page_name(arena, kind, name, buffer->launch, buffer->id);
	page.title = arena_printf(arena, "%s, %s", name, fragment ? "fragment" : "shared memory");
	if (fragment)
		draw_fragment(&page.text, &tile);
	else
		draw_shared(&page.text, &tile);
	vec_push(arena, &list->pages, page);
}

/* The data flow of one launch. */
static void add_graph(struct page_list *list, const struct compile *compile,
                      const struct launch_result *launch)
{
	struct arena *arena = compile->cx.arena;
	struct page page = { .title = "data flow" };

	page.name = page_name(arena, "graph", "", launch->launch->index, 0);
	if (!flow_draw(&page.text, flow_build(arena, compile, launch)))
		list->without_graphviz = true;
	vec_push(arena, &list->pages, page);
}

/* Every drawing below its title, as an image that links to the file. */
static void add_index(struct page_list *list, const struct compile *compile)
{
	struct page page = { .name = "index.html", .title = "index" };
	struct buf *out = &page.text;
	const char *kernel = sym_text(compile->cx.names, compile->program->name);

	buf_text(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
	svg_escape(out, kernel);
	buf_text(out,
	         "</"
	         "title>\n<style>body{font-family:Helvetica,Arial,sans-serif;color:#1f2430;margin:24px;"
	         "max-width:1400px}"
	         "figure{margin:0 0 32px}figcaption{font-weight:bold;margin-bottom:6px}a{color:#2a5f96}"
	         "img{max-width:100%;border:1px solid #d5d9e0}</style>\n</head>\n<body>\n<h1>");
	svg_escape(out, kernel);
	buf_printf(out, "</h1>\n<p>%s. Open a drawing by itself for its hover texts.</p>\n",
	           compile->options.target->name);
	for (uint32_t i = 0; i < list->pages.n; i++) {
		const struct page *shown = &list->pages.p[i];

		buf_printf(out, "<figure>\n<figcaption><a href=\"%s\">", shown->name);
		svg_escape(out, shown->title);
		buf_printf(out, "</a></figcaption>\n<a href=\"%s\"><img src=\"%s\" alt=\"", shown->name,
		           shown->name);
		svg_escape(out, shown->title);
		buf_text(out, "\"></a>\n</figure>\n");
	}
	buf_text(out, "</body>\n</html>\n");
	vec_push(compile->cx.arena, &list->pages, page);
}

/* Graphs first: they are the overview. */
void pages_draw(struct page_list *list, const struct compile *compile)
{
	assert(compile->program && list->pages.n == 0);
	for (uint32_t i = 0; i < compile->launches.n; i++)
		add_graph(list, compile, compile->launches.p[i]);
	for (uint32_t i = 0; i < compile->program->buffers.n; i++) {
		const struct buffer *buffer = compile->program->buffers.p[i];
		const struct solution *solution = buffer->launch < compile->launches.n
		                                      ? compile->launches.p[buffer->launch]->solution
		                                      : NULL;
		const struct layout *layout = solution ? solution->buffers[buffer->id].layout : NULL;

		if (layout && (buffer->scope == SCOPE_FRAGMENT || buffer->scope == SCOPE_SHARED))
			add_buffer(list, compile, buffer, layout);
	}
	add_index(list, compile);
}

void pages_free(struct page_list *list)
{
	for (uint32_t i = 0; i < list->pages.n; i++)
		buf_free(&list->pages.p[i].text);
	list->pages.n = 0;
}
