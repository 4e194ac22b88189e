/*
 * flow_plain: the graph in layers from top to bottom, without Graphviz: a row of boxes for each
 * layer, straight arrows between them. Layers are the longest ways from the inputs, which
 * flow_build computes; within a layer boxes keep program order. Crossings are not minimised.
 */
#include "viz/draw.h"
#include "viz/flow.h"
#include "viz/svg.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { LINE_HEIGHT = 15, CHAR_WIDTH = 7, BOX_PAD = 12, GAP_X = 40, GAP_Y = 70, TOP = 70 };

struct plain_box {
	double x, y, width, height;
};

/* Size of a box from its lines and its longest line. */
static void measure(const struct flow_node *node, struct plain_box *box)
{
	uint32_t n_lines = 1, longest = 0, at = 0;

	for (const char *c = node->label; *c; c++) {
		at = *c == '\n' ? 0 : at + ((*c & 0xC0) != 0x80);
		n_lines += *c == '\n';
		longest = at > longest ? at : longest;
	}
	box->width = longest * CHAR_WIDTH + 2 * BOX_PAD;
	box->height = n_lines * LINE_HEIGHT + BOX_PAD;
}

/* Moves a layer's boxes to the middle of the drawing. */
static void centre_layer(const struct flow *flow, struct plain_box *boxes, uint32_t layer,
                         double width)
{
	double right = 0;

	for (uint32_t i = 0; i < flow->nodes.n; i++)
		if (flow->nodes.p[i].layer == layer && boxes[i].x + boxes[i].width > right)
			right = boxes[i].x + boxes[i].width;
	for (uint32_t i = 0; i < flow->nodes.n; i++)
		if (flow->nodes.p[i].layer == layer)
			boxes[i].x += (width - right - DRAW_MARGIN) / 2;
}

/* Puts each layer's boxes side by side; gives the size of the whole. */
static void place_boxes(const struct flow *flow, struct plain_box *boxes, double *width,
                        double *height)
{
	double y = TOP;
	uint32_t n_placed = 0, layer;

	*width = 500;
	for (layer = 0; n_placed < flow->nodes.n; layer++) {
		double x = DRAW_MARGIN, tallest = 0;

		for (uint32_t i = 0; i < flow->nodes.n; i++) {
			if (flow->nodes.p[i].layer != layer)
				continue;
			measure(&flow->nodes.p[i], &boxes[i]);
			boxes[i].x = x;
			boxes[i].y = y;
			x += boxes[i].width + GAP_X;
			tallest = boxes[i].height > tallest ? boxes[i].height : tallest;
			n_placed++;
		}
		*width = x > *width ? x : *width;
		y += tallest > 0 ? tallest + GAP_Y : 0;
	}
	*height = y;
	while (layer-- > 0)
		centre_layer(flow, boxes, layer, *width);
}

/* The lines of a text, centred at x, the first baseline at y. */
static void add_lines(struct svg *svg, double x, double y, const char *class, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		struct buf line = { 0 };

		buf_add(&line, text, n);
		svg_text(svg, x, y, class, buf_cstr(&line));
		buf_free(&line);
		y += LINE_HEIGHT - 2;
		text += n + (text[n] == '\n');
	}
}

/* Rounded for operations, square for memory. */
static void add_box(struct svg *svg, const struct flow_node *node, const struct plain_box *box)
{
	buf_printf(&svg->body, "<g><title>");
	svg_escape(&svg->body, node->hover);
	buf_printf(&svg->body,
	           "</title><rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"%d\" "
	           "fill=\"%s\" stroke=\"%s\"/>\n",
	           box->x, box->y, box->width, box->height, node->kind == FLOW_OP ? 12 : 2,
	           flow_fill(node), flow_line(node));
	add_lines(svg, box->x + box->width / 2, box->y + LINE_HEIGHT + 2, "node", node->label);
	buf_text(&svg->body, "</g>\n");
}

/* From edge to edge of the boxes, downwards or upwards; the label sits on it. */
static void add_arrow(struct svg *svg, const struct flow_edge *edge, const struct plain_box *boxes)
{
	const struct plain_box *from = &boxes[edge->from], *to = &boxes[edge->to];
	bool down = from->y <= to->y;
	double x1 = from->x + from->width / 2, x2 = to->x + to->width / 2;
	double y1 = down ? from->y + from->height : from->y, y2 = down ? to->y : to->y + to->height;

	buf_printf(&svg->body,
	           "<path class=\"arrow\" d=\"M%.0f %.0fL%.0f %.0f\" stroke=\"%s\" "
	           "marker-end=\"url(#tip)\"%s/>\n",
	           x1, y1, x2, y2, edge->has_excess ? "#c0392b" : "#5a6272",
	           edge->both ? " marker-start=\"url(#tip)\"" : "");
	add_lines(svg, x1 + (x2 - x1) * 0.4, y1 + (y2 - y1) * 0.4, "edge", edge->label);
}

/* Arrows first, so that boxes cover their ends. */
void flow_draw_plain(struct buf *out, const struct flow *flow)
{
	struct svg svg = { 0 };
	struct plain_box *boxes = arena_array(flow->arena, struct plain_box, flow->nodes.n + 1);
	double width, height;

	buf_text(&svg.style,
	         ".node{font-size:12px;text-anchor:middle}.edge{font-size:10px;text-anchor:middle;fill:"
	         "#555c6b;paint-order:stroke;stroke:#fff;stroke-width:3px}.arrow{fill:none}");
	buf_text(&svg.body, "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
	                    "markerWidth=\"8\" markerHeight=\"8\" "
	                    "orient=\"auto-start-reverse\"><path d=\"M0 0L8 4L0 8z\" "
	                    "fill=\"#5a6272\"/></marker></defs>\n");
	place_boxes(flow, boxes, &width, &height);
	svg_text(&svg, DRAW_MARGIN, DRAW_MARGIN + 12, "title", flow->title);
	for (uint32_t i = 0; i < flow->edges.n; i++)
		add_arrow(&svg, &flow->edges.p[i], boxes);
	for (uint32_t i = 0; i < flow->nodes.n; i++)
		add_box(&svg, &flow->nodes.p[i], &boxes[i]);
	svg_finish(&svg, out, width, height, flow->title);
}
