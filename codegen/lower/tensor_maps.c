/*
 * The maps of a program's bulk copies.
 */
#include "codegen/lower/tensor_maps.h"

#include <string.h>

static struct tensor_map map_of(const struct wop_tma_load *op)
{
	return (
		struct tensor_map){ op->src.global, { op->e0, op->e1, op->e2, op->e3, op->e4 }, op->span };
}

static bool is_same(const struct tensor_map *a, const struct tensor_map *b)
{
	return a->tensor == b->tensor && a->span == b->span &&
	       memcmp(a->box, b->box, sizeof(a->box)) == 0;
}

uint32_t tensor_map_of(const struct tensor_maps *maps, const struct wop_tma_load *op)
{
	struct tensor_map wanted = map_of(op);

	for (uint32_t i = 0; i < maps->items.n; i++)
		if (is_same(&maps->items.p[i], &wanted))
			return i;
	return maps->items.n;
}

static void collect(const struct wblock *block, struct arena *arena, struct tensor_maps *out)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];

		switch (node->kind) {
		case WNODE_INST:
			if (node->as.inst.kind == WOP_tma_load &&
			    tensor_map_of(out, &node->as.inst.as.tma_load) == out->items.n)
				vec_push(arena, &out->items, map_of(&node->as.inst.as.tma_load));
			break;
		case WNODE_LOOP:
			collect(&node->as.loop.body, arena, out);
			break;
		case WNODE_IF:
			collect(&node->as.if_.then, arena, out);
			collect(&node->as.if_.otherwise, arena, out);
			break;
		case WNODE_WHILE:
			collect(&node->as.while_.body, arena, out);
			break;
		}
	}
}

void tensor_maps_of(const struct warp_program *program, struct arena *arena,
                    struct tensor_maps *out)
{
	*out = (struct tensor_maps){ { 0 } };
	collect(&program->body, arena, out);
}
