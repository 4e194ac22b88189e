/*
 * Operations are the statements that move or compute tiles: ops, and parallel loops as one node
 * each. An edge's label has the bytes of one execution of the statement, and for shared memory the
 * instruction of the access table:
 *
 *     A  --16,384 B-->  copy, line 28  --16,384 B, cp.async.16-->  A_shared  --ldmatrix.x4-->  gemm
 *
 * What an operation reads and writes (an accumulator) is one edge with two heads.
 */
#include "viz/flow.h"

#include "analyzer/describe/describe.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct flow_builder {
	struct flow *flow;
	const struct compile *compile;
	const struct launch_result *launch;
	uint32_t *node_of_buffer; /* node number + 1, by buffer id */
	struct stmt *op;          /* the statement whose edges are collected */
	uint32_t op_node;
};

/* The buffer's name. */
static const char *name_of(const struct flow_builder *builder, const struct buffer *buffer)
{
	return sym_text(builder->compile->cx.names, buffer->name);
}

static uint32_t line_of(const struct flow_builder *builder, const struct stmt *stmt)
{
	return source_line(&builder->compile->cx.sources, stmt->span);
}

/* The solved layout; NULL before the solver ran or for unused buffers. */
static const struct layout *layout_of(const struct flow_builder *builder,
                                      const struct buffer *buffer)
{
	const struct solution *solution = builder->launch->solution;

	return solution && buffer->id < builder->compile->program->buffers.n
	           ? solution->buffers[buffer->id].layout
	           : NULL;
}

/* Everything that is not memory is drawn as registers. */
static enum flow_kind kind_of(const struct buffer *buffer)
{
	switch (buffer->scope) {
	case SCOPE_GLOBAL:
		return FLOW_GLOBAL;
	case SCOPE_SHARED:
		return FLOW_SHARED;
	case SCOPE_FRAGMENT:
	case SCOPE_LOCAL:
	case SCOPE_VAR:
	case N_SCOPES:
		break;
	}
	return FLOW_REGISTERS;
}

/* Third line of a buffer's label: where it lives. */
static void place_text(const struct flow_builder *builder, const struct buffer *buffer,
                       struct buf *out)
{
	const struct layout *layout = layout_of(builder, buffer);
	const struct shared_place *place =
		builder->launch->schedule ? schedule_place(builder->launch->schedule, buffer) : NULL;

	buf_text(out, scope_text(buffer->scope));
	if (layout && layout->kind == LAYOUT_FRAGMENT) {
		buf_printf(out, ", %lld slot%s", (long long)layout->n_slots,
		           layout->n_slots == 1 ? "" : "s");
		if (layout->n_replicas > 1)
			buf_printf(out, " ×%lld", (long long)layout->n_replicas);
	} else if (layout && buffer->scope == SCOPE_SHARED) {
		buf_printf(out, ", %s", layout_kind_text(layout));
	}
	if (place && place->n_versions > 1)
		buf_printf(out, ", %lld versions", (long long)place->n_versions);
}

/* The node of a buffer, made at its first use so that nodes stand in program order. */
static uint32_t buffer_node(struct flow_builder *builder, const struct buffer *buffer)
{
	struct flow *flow = builder->flow;
	struct buf label = { 0 };
	struct flow_node node = { .kind = kind_of(buffer), .stage = -1 };
	const struct layout *layout = layout_of(builder, buffer);
	char type[32];

	assert(buffer->id < builder->compile->program->buffers.n);
	if (builder->node_of_buffer[buffer->id] != 0)
		return builder->node_of_buffer[buffer->id] - 1;
	buf_printf(&label, "%s\n%s (", name_of(builder, buffer), dtype_name(buffer->type, type));
	for (uint32_t d = 0; d < buffer->rank; d++) {
		if (d > 0)
			buf_text(&label, ", ");
		expr_print(&label, &builder->compile->cx, buffer->shape[d]);
	}
	buf_text(&label, ")\n");
	place_text(builder, buffer, &label);
	node.label = buf_keep(&label, flow->arena);
	if (layout)
		layout_print(&label, layout);
	node.hover = buf_keep(&label, flow->arena);
	vec_push(flow->arena, &flow->nodes, node);
	builder->node_of_buffer[buffer->id] = flow->nodes.n;
	return flow->nodes.n - 1;
}

/* "16,384 B" with thousands separated. */
static void bytes_text(struct buf *out, int64_t bytes)
{
	char digits[32];
	int n = snprintf(digits, sizeof(digits), "%lld", (long long)bytes);

	for (int i = 0; i < n; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			buf_char(out, ',');
		buf_char(out, digits[i]);
	}
	buf_text(out, " B");
}

/* Second part of an edge's label: how the statement touches the buffer in shared memory. */
static bool access_text(const struct flow_builder *builder, const struct buffer *buffer,
                        struct buf *out)
{
	const struct access_table *table = &builder->launch->accesses;
	const char *name = name_of(builder, buffer);
	bool excess = false;

	for (uint32_t i = 0; i < table->sites.n; i++) {
		const struct access_site *site = &table->sites.p[i];

		if (site->line != line_of(builder, builder->op) || strcmp(site->buffer, name) != 0)
			continue;
		buf_printf(out, "%s%s", out->n > 0 ? "\n" : "", site->instruction);
		excess = excess || site->excess > 0;
	}
	return excess;
}

static struct flow_edge *find_edge(struct flow *flow, uint32_t from, uint32_t to)
{
	for (uint32_t i = flow->edges.n; i-- > 0;)
		if (flow->edges.p[i].from == from && flow->edges.p[i].to == to)
			return &flow->edges.p[i];
	return NULL;
}

/* The current op reads (or writes) `bytes` of the buffer; a read and a write of one buffer share an
 * edge. */
static void add_edge(struct flow_builder *builder, const struct buffer *buffer, bool is_write,
                     int64_t bytes)
{
	struct flow *flow = builder->flow;
	uint32_t node = buffer_node(builder, buffer), op = builder->op_node;
	struct flow_edge edge = { is_write ? op : node, is_write ? node : op, NULL, false, false };
	struct flow_edge *back = find_edge(flow, edge.to, edge.from);
	struct buf label = { 0 };

	if (find_edge(flow, edge.from, edge.to))
		return;
	if (back && is_write) {
		back->from = edge.from;
		back->to = edge.to;
	}
	if (back) {
		back->both = true;
		return;
	}
	if (bytes > 0)
		bytes_text(&label, bytes);
	if (buffer->scope == SCOPE_SHARED)
		edge.has_excess = access_text(builder, buffer, &label);
	edge.label = buf_keep(&label, flow->arena);
	vec_push(flow->arena, &flow->edges, edge);
}

/* Bytes of a box; -1 when they do not fit 64 bits. */
static int64_t region_bytes(const struct region *region)
{
	int64_t bits = dtype_bits(region->buffer->type);

	assert(region->buffer->rank <= MAX_RANK);
	for (uint32_t d = 0; d < region->buffer->rank; d++)
		if (__builtin_mul_overflow(bits, region->extent[d], &bits))
			return -1;
	return bits / 8;
}

/* Operands by their roles; absent ones have no buffer. */
static void add_op_edges(struct flow_builder *builder, struct stmt *stmt)
{
	enum operand_role role;
	struct region *region;

	for (uint32_t i = 0; (region = op_region(&stmt->as.op, i, &role)) != NULL; i++) {
		if (!region->buffer)
			continue;
		if (role == ROLE_READ || role == ROLE_UPDATE)
			add_edge(builder, region->buffer, false, region_bytes(region));
		if (role == ROLE_WRITE || role == ROLE_UPDATE)
			add_edge(builder, region->buffer, true, region_bytes(region));
	}
}

/* Called for every sub-expression. */
static void visit_load(void *user, const struct expr *e)
{
	struct flow_builder *builder = user;

	if (e->kind == EXPR_LOAD)
		add_edge(builder, e->as.buffer, false, -1);
}

/* Loads and stores of one statement inside a parallel loop. */
static void visit_loop_stmt(void *user, struct stmt *stmt)
{
	struct flow_builder *builder = user;

	switch (stmt->kind) {
	case STMT_STORE:
		expr_walk(stmt->as.store.value, visit_load, user);
		for (uint32_t d = 0; d < stmt->as.store.buffer->rank; d++)
			expr_walk(stmt->as.store.index[d], visit_load, user);
		add_edge(builder, stmt->as.store.buffer, true, -1);
		break;
	case STMT_LET:
		expr_walk(stmt->as.let.value, visit_load, user);
		break;
	case STMT_IF:
		expr_walk(stmt->as.if_.condition, visit_load, user);
		break;
	case STMT_WHILE:
		expr_walk(stmt->as.while_.condition, visit_load, user);
		break;
	case STMT_OP:
	case STMT_LOOP:
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		break;
	}
}

/* The stage in whichever pipeline holds the statement; -1 outside of them. */
static int64_t stage_of(const struct flow_builder *builder, const struct stmt *stmt, bool *async)
{
	const struct schedule *schedule = builder->launch->schedule;

	*async = false;
	for (uint32_t p = 0; schedule && p < schedule->pipelines.n; p++) {
		const struct pipeline *pipeline = &schedule->pipelines.p[p];

		for (uint32_t i = 0; i < pipeline->ops.n; i++) {
			if (pipeline->ops.p[i].stmt != stmt)
				continue;
			*async = pipeline->ops.p[i].async;
			return pipeline->ops.p[i].stage;
		}
	}
	return -1;
}

/* Second line of an op's label: the instruction or partition that was chosen. */
static void plan_text(const struct flow_builder *builder, const struct stmt *stmt, struct buf *out)
{
	const struct solution *solution = builder->launch->solution;
	const struct stmt_plan *plan = solution ? &solution->plans[stmt->id] : NULL;

	if (!plan || !plan->has_plan)
		return;
	if (stmt->kind == STMT_LOOP) {
		if (plan->as.loop.vector_elems > 1)
			buf_printf(out, "\n%lld elements a vector", (long long)plan->as.loop.vector_elems);
		return;
	}
	switch (stmt->as.op.kind) {
	case OP_gemm:
	case OP_wgmma_gemm:
		buf_char(out, '\n');
		describe_instruction(out, &plan->as.gemm);
		buf_printf(out, "\n%lld x %lld warps", (long long)plan->as.gemm.warps_m,
		           (long long)plan->as.gemm.warps_n);
		break;
	case OP_copy:
		if (plan->as.copy.bytes > 0)
			buf_printf(out, "\n%lld B a thread", (long long)plan->as.copy.bytes);
		break;
	case OP_reduce:
	case OP_finalize_reducer:
		buf_printf(out, "\nover %lld lanes",
		           (long long)1 << __builtin_popcountll(
					   (unsigned long long)plan->as.reduce.lane_mask_bits));
		break;
	case OP_fill:
	case OP_scan:
	case OP_tma_copy:
	CASES_OF_BARRIER_OPS:
	CASES_OF_TILE_ONLY_OPS:
	CASES_OF_STAGED_OPS:
	case N_OP_KINDS:
		break;
	}
}

/* A node for the statement; later edges start and end there. */
static void add_op(struct flow_builder *builder, struct stmt *stmt, const char *what)
{
	struct flow *flow = builder->flow;
	struct flow_node node = { .kind = FLOW_OP, .hover = "" };
	struct buf label = { 0 };
	bool async;

	if (flow->nodes.n >= MAX_FLOW_NODES) {
		flow->cut = true;
		return;
	}
	node.stage = stage_of(builder, stmt, &async);
	buf_printf(&label, "%s · line %u", what, line_of(builder, stmt));
	plan_text(builder, stmt, &label);
	if (node.stage >= 0)
		buf_printf(&label, "\nstage %lld%s", (long long)node.stage, async ? ", async" : "");
	node.label = buf_keep(&label, flow->arena);
	vec_push(flow->arena, &flow->nodes, node);
	builder->op = stmt;
	builder->op_node = flow->nodes.n - 1;
}

/* Is the statement inside a parallel loop that is a node already? tile_walk visits it all the same.
 */
static void visit_stmt(void *user, struct stmt *stmt)
{
	struct flow_builder *builder = user;

	if (stmt->kind == STMT_OP) {
		add_op(builder, stmt, op_info(stmt->as.op.kind)->id);
		if (!builder->flow->cut)
			add_op_edges(builder, stmt);
	} else if (stmt->kind == STMT_LOOP && stmt->as.loop.kind == LOOP_PARALLEL) {
		add_op(builder, stmt, "parallel");
		if (!builder->flow->cut)
			tile_walk(&stmt->as.loop.body, visit_loop_stmt, builder);
	}
}

/*
 * The layer below everything that the op reads. `below` has for each buffer the first layer in
 * which its present content can be read, 0 when nothing was written yet.
 */
static uint32_t op_layer(const struct flow *flow, uint32_t op, uint32_t *below)
{
	uint32_t layer = 0;

	for (uint32_t e = 0; e < flow->edges.n; e++) {
		const struct flow_edge *edge = &flow->edges.p[e];
		uint32_t buffer = edge->both ? edge->to : edge->from;

		if (edge->both ? edge->from != op : edge->to != op)
			continue;
		/* Read before anything wrote it: an input, in the first layer. */
		if (below[buffer] == 0 && !edge->both)
			below[buffer] = 1;
		layer = below[buffer] > layer ? below[buffer] : layer;
	}
	return layer;
}

/*
 * Longest way from the inputs, in program order: an op is below what it reads and below the ops
 * that wrote it, a buffer below the first op that writes it.
 */
static void set_layers(struct flow *flow)
{
	uint32_t *below = arena_array(flow->arena, uint32_t, flow->nodes.n + 1);

	for (uint32_t i = 0; i < flow->nodes.n; i++) {
		uint32_t layer;

		if (flow->nodes.p[i].kind != FLOW_OP)
			continue;
		layer = flow->nodes.p[i].layer = op_layer(flow, i, below);
		for (uint32_t e = 0; e < flow->edges.n; e++) {
			uint32_t buffer = flow->edges.p[e].to;

			if (flow->edges.p[e].from != i)
				continue;
			if (below[buffer] == 0)
				flow->nodes.p[buffer].layer = layer + 1;
			below[buffer] =
				flow->nodes.p[buffer].layer > layer ? flow->nodes.p[buffer].layer + 1 : layer + 1;
		}
	}
}

/* Buffers that no statement touches do not appear. */
struct flow *flow_build(struct arena *arena, const struct compile *compile,
                        const struct launch_result *launch)
{
	struct flow *flow = arena_new(arena, struct flow);
	struct flow_builder builder = { .flow = flow, .compile = compile, .launch = launch };

	assert(compile->program && launch->launch);
	flow->arena = arena;
	flow->title = arena_printf(arena, "%s", sym_text(compile->cx.names, compile->program->name));
	builder.node_of_buffer = arena_array(arena, uint32_t, compile->program->buffers.n + 1);
	tile_walk((struct block *)&launch->launch->body, visit_stmt, &builder);
	set_layers(flow);
	return flow;
}

/* One colour a kind of memory; operations by stage, white outside pipelines. */
const char *flow_fill(const struct flow_node *node)
{
	static const char *const stages[] = { "#ffe1b3", "#c9e4c5", "#d9d2f0", "#f6c9d0" };

	switch (node->kind) {
	case FLOW_GLOBAL:
		return "#e6e9ef";
	case FLOW_SHARED:
		return "#cfe3f7";
	case FLOW_REGISTERS:
		return "#f3ddea";
	case FLOW_OP:
		break;
	}
	return node->stage < 0 ? "#ffffff" : stages[node->stage % 4];
}

/* The darker tone of the same. */
const char *flow_line(const struct flow_node *node)
{
	switch (node->kind) {
	case FLOW_GLOBAL:
		return "#7b8494";
	case FLOW_SHARED:
		return "#3a78b5";
	case FLOW_REGISTERS:
		return "#a8518a";
	case FLOW_OP:
		break;
	}
	return "#39404f";
}

bool flow_draw(struct buf *out, const struct flow *flow)
{
	if (flow_draw_graphviz(out, flow))
		return true;
	flow_draw_plain(out, flow);
	return false;
}
