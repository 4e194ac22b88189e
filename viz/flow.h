/*
 * flow: how data moves through a launch, as a graph of buffers and operations.
 *
 * flow_build makes the record from what the passes found; flow_draw lays it out with Graphviz's dot
 * and gives SVG, or, where Graphviz is not built in or has no SVG plugin, draws it in plain layers.
 * Graphviz is used with its built-in font metrics and one context a call, so that the same launch
 * gives the same bytes on every machine with the same Graphviz.
 */
#ifndef TL_VIZ_FLOW_H
#define TL_VIZ_FLOW_H

#include "analyzer/compile.h"

enum flow_kind { FLOW_GLOBAL, FLOW_SHARED, FLOW_REGISTERS, FLOW_OP };

struct flow_node {
	enum flow_kind kind;
	const char *label; /* lines separated by \n, at most MAX_FLOW_LINES */
	const char *hover;
	int64_t stage;  /* of an op in a pipelined loop; -1 none */
	uint32_t layer; /* plain drawing: longest way from the inputs */
};

/* Data that goes from `from` to `to`; `both`: read and written (accumulators). */
struct flow_edge {
	uint32_t from, to;
	const char *label; /* "16,384 B\ncp.async.16" */
	bool both;
	bool has_excess; /* the access has bank conflicts */
};

struct flow {
	struct arena *arena;
	const char *title;
	vec_of(struct flow_node) nodes; /* in program order */
	vec_of(struct flow_edge) edges;
	bool cut; /* more than MAX_FLOW_NODES; the rest is left out */
};

enum { MAX_FLOW_NODES = 200, MAX_FLOW_LINES = 4 };

/* The graph of one launch; solution, schedule and accesses may be missing (NULL, empty). */
struct flow *flow_build(struct arena *arena, const struct compile *compile,
                        const struct launch_result *launch);

/* SVG text. Gives false when Graphviz could not be used and the plain form was drawn. */
bool flow_draw(struct buf *out, const struct flow *flow);

/* ---- the two ways ---- */

/* False, with nothing written, when Graphviz is missing or cannot write SVG. */
bool flow_draw_graphviz(struct buf *out, const struct flow *flow);
void flow_draw_plain(struct buf *out, const struct flow *flow);

/* Fill and edge colours, "#rrggbb". */
const char *flow_fill(const struct flow_node *node);
const char *flow_line(const struct flow_node *node);

#endif
