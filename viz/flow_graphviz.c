/*
 * flow_graphviz: the graph through cgraph and gvc.
 *
 * The dot and core plugins are loaded from Graphviz's own folder and handed to the context, without
 * plugin discovery: so texts are measured with the built-in metrics (no pango, no font
 * configuration), an empty plugin registry does not matter, and nodes have fixed sizes with room to
 * spare. Where that folder is not found, the ordinary context with discovery is used.
 */
#include "viz/flow.h"

#if HAVE_GRAPHVIZ

#include <assert.h>
#include <dlfcn.h>
#include <graphviz/cgraph.h>
#include <graphviz/gvc.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A label for Graphviz: backslashes doubled, newlines as \n, the title centred. */
static char *escape_label(struct arena *arena, const char *text)
{
	struct buf out = { 0 };

	for (; *text; text++) {
		if (*text == '\\')
			buf_text(&out, "\\\\");
		else if (*text == '\n')
			buf_text(&out, "\\n");
		else
			buf_char(&out, *text);
	}
	return buf_keep(&out, arena);
}

/* An edge's label with blanks around each line: they keep wider fonts than the built-in one off the
 * edge. */
static char *pad_lines(struct arena *arena, const char *text)
{
	struct buf out = { 0 };
	char *copy;

	while (*text) {
		size_t n = strcspn(text, "\n");

		buf_printf(&out, "%s    %.*s    ", out.n > 0 ? "\n" : "", (int)n, text);
		text += n + (text[n] == '\n');
	}
	copy = escape_label(arena, buf_cstr(&out));
	buf_free(&out);
	return copy;
}

/* cgraph's prototypes take char * without changing it. */
static void set_attribute(void *object, const char *name, const char *value)
{
	agsafeset(object, (char *)(uintptr_t)name, (char *)(uintptr_t)value, (char *)(uintptr_t) "");
}

/* Width and height in inches for fixed nodes: generous for any sans-serif font of 11 points. */
static void set_node_size(Agnode_t *node, const char *label)
{
	uint32_t n_lines = 1, longest = 0, at = 0;
	char text[32];

	for (const char *c = label; *c; c++) {
		at = *c == '\n' ? 0 : at + ((*c & 0xC0) != 0x80);
		n_lines += *c == '\n';
		longest = at > longest ? at : longest;
	}
	snprintf(text, sizeof(text), "%u.%02u", (40 + longest * 9) / 100, (40 + longest * 9) % 100);
	set_attribute(node, "width", text);
	snprintf(text, sizeof(text), "%u.%02u", (20 + n_lines * 20) / 100, (20 + n_lines * 20) % 100);
	set_attribute(node, "height", text);
	set_attribute(node, "fixedsize", "true");
}

/* A box of fixed size; hover text is the layout, or the label where there is none. */
static void add_node(Agraph_t *graph, const struct flow *flow, uint32_t number, Agnode_t **out)
{
	const struct flow_node *node = &flow->nodes.p[number];
	char name[32];
	Agnode_t *made;

	snprintf(name, sizeof(name), "n%u", number);
	made = agnode(graph, name, 1);
	set_attribute(made, "label", escape_label(flow->arena, node->label));
	set_attribute(made, "id", name);
	set_attribute(made, "shape", "box");
	set_attribute(made, "style", node->kind == FLOW_OP ? "filled,rounded" : "filled");
	set_attribute(made, "fillcolor", flow_fill(node));
	set_attribute(made, "color", flow_line(node));
	set_attribute(made, "fontname", "Helvetica");
	set_attribute(made, "fontsize", "11");
	set_attribute(made, "tooltip",
	              escape_label(flow->arena, node->hover[0] ? node->hover : node->label));
	set_node_size(made, node->label);
	*out = made;
}

/* Red where the access has bank conflicts. */
static void add_edge(Agraph_t *graph, const struct flow *flow, uint32_t number, Agnode_t **nodes)
{
	const struct flow_edge *edge = &flow->edges.p[number];
	Agedge_t *made;
	char name[32];

	assert(edge->from < flow->nodes.n && edge->to < flow->nodes.n);
	snprintf(name, sizeof(name), "e%u", number);
	made = agedge(graph, nodes[edge->from], nodes[edge->to], name, 1);
	set_attribute(made, "id", name);
	set_attribute(made, "label", pad_lines(flow->arena, edge->label));
	set_attribute(made, "fontname", "Helvetica");
	set_attribute(made, "fontsize", "9");
	set_attribute(made, "color", edge->has_excess ? "#c0392b" : "#5a6272");
	set_attribute(made, "fontcolor", edge->has_excess ? "#c0392b" : "#555c6b");
	set_attribute(made, "arrowsize", "0.7");
	set_attribute(made, "dir", edge->both ? "both" : "forward");
}

/* Top to bottom. nslimit bounds the network simplex on large graphs. */
static Agraph_t *build_graph(const struct flow *flow)
{
	Agraph_t *graph = agopen((char *)(uintptr_t) "flow", Agdirected, NULL);
	Agnode_t **nodes = arena_array(flow->arena, Agnode_t *, flow->nodes.n + 1);

	set_attribute(graph, "label", escape_label(flow->arena, flow->title));
	set_attribute(graph, "labelloc", "t");
	set_attribute(graph, "fontname", "Helvetica");
	set_attribute(graph, "fontsize", "15");
	set_attribute(graph, "rankdir", "TB");
	set_attribute(graph, "nodesep", "0.4");
	set_attribute(graph, "ranksep", "0.45");
	set_attribute(graph, "pad", "0.2");
	set_attribute(graph, "nslimit", "4");
	for (uint32_t i = 0; i < flow->nodes.n; i++)
		add_node(graph, flow, i, &nodes[i]);
	for (uint32_t i = 0; i < flow->edges.n; i++)
		add_edge(graph, flow, i, nodes);
	return graph;
}

/* The plugin's table from Graphviz's plugin folder beside libgvc; NULL when it is not there. */
static void *load_plugin(const char *folder, const char *library, const char *symbol)
{
	char path[1024];
	void *handle;

	snprintf(path, sizeof(path), "%s/graphviz/%s", folder, library);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		snprintf(path, sizeof(path), "%s/graphviz/%s.6", folder, library);
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return handle ? dlsym(handle, symbol) : NULL;
}

/* The plugins' folder is "graphviz" beside the library itself. */
static GVC_t *open_context(struct arena *arena)
{
	lt_symlist_t *plugins = arena_array(arena, lt_symlist_t, 3);
	Dl_info info;
	char folder[1024];

	if (dladdr((void *)(uintptr_t)gvContext, &info) == 0 || !info.dli_fname ||
	    strlen(info.dli_fname) >= sizeof(folder))
		return gvContext();
	strcpy(folder, info.dli_fname);
	plugins[0].name = "gvplugin_dot_layout_LTX_library";
	plugins[0].address = load_plugin(dirname(folder), "libgvplugin_dot_layout.so", plugins[0].name);
	strcpy(folder, info.dli_fname);
	plugins[1].name = "gvplugin_core_LTX_library";
	plugins[1].address = load_plugin(dirname(folder), "libgvplugin_core.so", plugins[1].name);
	if (!plugins[0].address || !plugins[1].address)
		return gvContext();
	return gvContextPlugins(plugins, 0);
}

/* Has the context a plugin for this? The list's texts are the library's to make, ours to free. */
static bool has_plugin(GVC_t *context, const char *kind, const char *wanted)
{
	int n = 0;
	char **names = gvPluginList(context, kind, &n, NULL);
	bool found = false;

	for (int i = 0; names && i < n; i++) {
		found = found || strcmp(names[i], wanted) == 0;
		free(names[i]);
	}
	free(names);
	return found;
}

/* The SVG element without XML head and comments, which name the Graphviz version. */
static void copy_svg(struct buf *out, const char *text)
{
	const char *svg = strstr(text, "<svg");

	for (text = svg ? svg : text; *text;) {
		const char *comment = strstr(text, "<!--");
		const char *end = comment ? strstr(comment, "-->") : NULL;

		if (!end) {
			buf_text(out, text);
			break;
		}
		buf_add(out, text, (size_t)(comment - text));
		text = end + 3;
		text += *text == '\n';
	}
}

/* Lays out and renders; the layout is freed only where it was made. */
static bool render(GVC_t *context, const struct flow *flow, struct buf *out)
{
	Agraph_t *graph = build_graph(flow);
	bool ok = gvLayout(context, graph, "dot") == 0;
	char *text = NULL;
	unsigned int n = 0;

	if (ok) {
		ok = gvRenderData(context, graph, "svg", &text, &n) == 0 && text;
		if (ok)
			copy_svg(out, text);
		if (text)
			gvFreeRenderData(text);
		gvFreeLayout(context, graph);
	}
	agclose(graph);
	return ok;
}

bool flow_draw_graphviz(struct buf *out, const struct flow *flow)
{
	GVC_t *context = open_context(flow->arena);
	bool ok = context && has_plugin(context, "device", "svg") &&
	          has_plugin(context, "layout", "dot") && render(context, flow, out);

	if (context)
		gvFreeContext(context);
	return ok;
}

#else

bool flow_draw_graphviz(struct buf *out, const struct flow *flow)
{
	(void)out;
	(void)flow;
	return false;
}

#endif
