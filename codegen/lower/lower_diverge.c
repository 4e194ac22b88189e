/*
 * Barriers out of control flow that only some threads of a block take.
 *
 * Lowering puts a barrier where a hazard asks for one, also inside an `if` that differs between
 * threads. All threads must come there, so the `if` is split around it:
 *
 *     if tid < 48:                     if tid < 48:
 *         st S[tid*4] <- x_s[0]            st S[tid*4] <- x_s[0]
 *         barrier                      barrier
 *         ld S_s[0] <- S[188 - tid*4]  if tid < 48:
 *                                          ld S_s[0] <- S[188 - tid*4]
 *
 * The `if` moves into a loop inside it that holds a barrier. A loop whose extent differs between
 * threads runs to the largest extent, its body under `var < extent`. The condition is kept in a
 * register when it reads registers, which the body may change. Waiting more often than threads that
 * do nothing would have to is always legal. Barriers that the kernel writes itself stay where they
 * are: whether all threads come to them is the kernel's claim, which the properties check.
 */
#include "codegen/lower/lower_internal.h"

#include <assert.h>

/* Barriers, and the waits and fences in front of them: each thread waits for the copies that it
 * issued, and fences what it wrote. */
static bool is_inserted(const struct lower *l, const struct wnode *node)
{
	return node->kind == WNODE_INST && map_get(&l->misplaced, node->id);
}

static bool has_inserted(const struct lower *l, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		if (is_inserted(l, node) ||
		    (node->kind == WNODE_LOOP && has_inserted(l, &node->as.loop.body)) ||
		    (node->kind == WNODE_WHILE && has_inserted(l, &node->as.while_.body)) ||
		    (node->kind == WNODE_IF &&
		     (has_inserted(l, &node->as.if_.then) || has_inserted(l, &node->as.if_.otherwise))))
			return true;
	}
	return false;
}

static bool node_has_inserted(const struct lower *l, struct wnode *node)
{
	struct wblock one = { 0 };

	vec_push(l->cx->arena, &one.nodes, node);
	return has_inserted(l, &one);
}

static void append(struct lower *l, struct wblock *block, struct wnode *node)
{
	vec_push(l->cx->arena, &block->nodes, node);
}

static void cannot(struct lower *l, const struct wnode *node, const char *what)
{
	l->span = node->span;
	lower_error(
		l,
		"a barrier is needed inside %s, where only some threads of the block come: a thread "
		"reads there what another one writes",
		what);
}

/* Statements that stay together under the condition. */
struct distribution {
	struct lower *l;
	const struct expr *condition;
	struct span span;
	struct wblock *out;
	struct wnode *group; /* the `if` that takes the next statement; NULL: none is open */
};

static void distribute(struct distribution *d, const struct wblock *block);

/* `block` under the condition, into a block of its own. */
static struct wblock distributed(const struct distribution *d, const struct wblock *block)
{
	struct wblock out = { 0 };
	struct distribution inner = { d->l, d->condition, d->span, &out, NULL };

	distribute(&inner, block);
	return out;
}

/* A node with a barrier inside that all threads reach: the condition goes into it. */
static void push_down(struct distribution *d, struct wnode *node)
{
	switch (node->kind) {
	case WNODE_LOOP:
		node->as.loop.body = distributed(d, &node->as.loop.body);
		break;
	case WNODE_IF:
		if (!lower_is_uniform(node->as.if_.condition))
			BUG("a divergent if kept its barrier");
		node->as.if_.then = distributed(d, &node->as.if_.then);
		node->as.if_.otherwise = distributed(d, &node->as.if_.otherwise);
		break;
	case WNODE_WHILE:
		cannot(d->l, node, "this while loop");
		break;
	case WNODE_INST:
		break;
	}
	append(d->l, d->out, node);
}

static void distribute(struct distribution *d, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n && !d->l->failed; i++) {
		struct wnode *node = block->nodes.p[i];
		if (node_has_inserted(d->l, node)) {
			push_down(d, node);
			d->group = NULL;
			continue;
		}
		if (!d->group)
			d->group = warp_add_if(d->l->warp, d->out, d->condition, d->span);
		append(d->l, &d->group->as.if_.then, node);
	}
}

static void visit_register(void *user, const struct expr *e)
{
	*(bool *)user |= e->kind == EXPR_REG;
}

/* The expression in a form that keeps its value while the body runs. */
static const struct expr *kept(struct lower *l, struct wblock *out, const struct expr *e,
                               struct dtype type)
{
	bool reads_register = false;
	struct wblock *block = l->block;

	expr_walk(e, visit_register, &reads_register);
	if (!reads_register)
		return e;
	struct wreg *reg = warp_new_reg(l->warp, intern_text(l->cx->names, "taken"), type, 1);
	l->block = out;
	lower_set(l, reg, expr_int(l->pool, 0), expr_cast(l->pool, type, e), NULL);
	l->block = block;
	return expr_reg(l->pool, reg, type, expr_int(l->pool, 0));
}

static void split_if(struct lower *l, struct wnode *node, struct wblock *out)
{
	struct distribution d = { .l = l, .span = node->span, .out = out };

	l->span = node->span;
	d.condition = kept(l, out, node->as.if_.condition, DTYPE_BOOL);
	distribute(&d, &node->as.if_.then);
	d.condition = expr_unary(l->pool, UN_NOT, d.condition);
	d.group = NULL;
	distribute(&d, &node->as.if_.otherwise);
}

/* A loop to the largest of the threads' extents, its body under `var < extent`. */
static void widen_loop(struct lower *l, struct wnode *node, struct wblock *out)
{
	struct wblock body = { 0 };
	struct distribution d = { .l = l, .span = node->span, .out = &body };
	int64_t min, max;

	if (!expr_range(node->as.loop.extent, &min, &max) || max >= INT32_MAX) {
		cannot(l, node, "this loop");
		return;
	}
	l->span = node->span;
	const struct expr *extent = kept(l, out, node->as.loop.extent, DTYPE_I32);
	d.condition = expr_lt(l->pool, expr_of_var(l->pool, node->as.loop.var), extent);
	distribute(&d, &node->as.loop.body);
	node->as.loop.extent = expr_int(l->pool, max > 0 ? max : 0);
	node->as.loop.body = body;
	append(l, out, node);
}

static void converge(struct lower *l, struct wblock *block);

/* The barriers of the block are where all threads of their role come. */
static void settle(struct lower *l, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		switch (node->kind) {
		case WNODE_INST:
			map_set(l->cx->arena, &l->misplaced, node->id, NULL);
			break;
		case WNODE_LOOP:
			settle(l, &node->as.loop.body);
			break;
		case WNODE_IF:
			settle(l, &node->as.if_.then);
			settle(l, &node->as.if_.otherwise);
			break;
		case WNODE_WHILE:
			settle(l, &node->as.while_.body);
			break;
		}
	}
}

static void converge_if(struct lower *l, struct wnode *node)
{
	converge(l, &node->as.if_.then);
	converge(l, &node->as.if_.otherwise);
	if (map_get(&l->role_branches[0], node->id))
		settle(l, &node->as.if_.then);
	if (map_get(&l->role_branches[1], node->id))
		settle(l, &node->as.if_.otherwise);
}

static void converge_node(struct lower *l, struct wnode *node, struct wblock *out)
{
	switch (node->kind) {
	case WNODE_INST:
		break;
	case WNODE_LOOP:
		converge(l, &node->as.loop.body);
		if (!lower_is_uniform(node->as.loop.extent) && node_has_inserted(l, node)) {
			widen_loop(l, node, out);
			return;
		}
		break;
	case WNODE_IF:
		converge_if(l, node);
		if (!lower_is_uniform(node->as.if_.condition) && node_has_inserted(l, node)) {
			split_if(l, node, out);
			return;
		}
		break;
	case WNODE_WHILE:
		converge(l, &node->as.while_.body);
		if (!lower_is_uniform(node->as.while_.condition) && node_has_inserted(l, node))
			cannot(l, node, "this while loop");
		break;
	}
	append(l, out, node);
}

/* Nesting is that of the tile program, which the front end bounds. */
static void converge(struct lower *l, struct wblock *block)
{
	struct wblock out = { 0 };

	if (!has_inserted(l, block))
		return;
	for (uint32_t i = 0; i < block->nodes.n && !l->failed; i++)
		converge_node(l, block->nodes.p[i], &out);
	*block = out;
}

void lower_converge(struct lower *l)
{
	converge(l, &l->warp->body);
}
