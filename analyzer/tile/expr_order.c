/*
 * The order of operands that commute: by the variables' kinds and names, then by size and
 * structure.
 *
 * It does not depend on when expressions were made, so a text that is read back into a new pool
 * keeps its sums as they were written: by*128 + ko*32 + tid // 4, blocks before loops before
 * threads. Two expressions that differ in nothing of this (variables of one name) go by id.
 */
#include "analyzer/tile/expr_internal.h"

#include "analyzer/tile/tile.h"
#include "codegen/lower/warp.h"

#include <string.h>

enum { NAME_BYTES = 7 };

static int kind_rank(enum var_kind kind)
{
	switch (kind) {
	case VAR_BLOCK:
		return 1;
	case VAR_LET:
		return 2;
	case VAR_LOOP:
		return 3;
	case VAR_THREAD:
		return 4;
	case VAR_SYMBOL:
	case VAR_PARAM:
		return 5;
	}
	return 0;
}

/* A rank and the name's first letters, so that smaller means earlier. */
static uint64_t lead_of(const struct expr_pool *pool, int rank, sym_t name)
{
	const char *text = sym_text(pool->cx->names, name);
	uint64_t lead = (uint64_t)rank;

	for (int i = 0; i < NAME_BYTES; i++) {
		lead = lead << 8 | (unsigned char)*text;
		text += *text != 0;
	}
	return lead;
}

static uint64_t hash_name(const struct expr_pool *pool, sym_t name)
{
	const char *text = sym_text(pool->cx->names, name);

	return hash_bytes(text, strlen(text), 0);
}

/* What the node itself says, beside its operands. */
static uint64_t node_hash(const struct expr_pool *pool, const struct expr *e)
{
	uint64_t bits = 0;

	switch (e->kind) {
	case EXPR_INT:
		return (uint64_t)e->as.integer;
	case EXPR_FLOAT:
		memcpy(&bits, &e->as.number, sizeof(bits));
		return bits;
	case EXPR_VAR:
		return hash_mix(hash_name(pool, e->as.var->name), (uint64_t)e->as.var->axis);
	case EXPR_LOAD:
		return hash_name(pool, e->as.buffer->name);
	case EXPR_REG:
		return hash_name(pool, e->as.reg->name);
	case EXPR_UNARY:
		return (uint64_t)e->as.unary;
	case EXPR_BINARY:
		return (uint64_t)e->as.binary;
	case EXPR_MATH:
		return (uint64_t)e->as.math;
	case EXPR_TABLE:
		return hash_bytes(e->as.table->values, e->as.table->n * sizeof(int64_t), 1);
	case EXPR_CALL:
		return hash_name(pool, e->as.callee);
	case EXPR_SELECT:
	case EXPR_CAST:
	case EXPR_BITCAST:
		break;
	}
	return 0;
}

void expr_set_order(const struct expr_pool *pool, struct expr *e)
{
	uint64_t type = (uint64_t)e->type.kind << 24 | (uint64_t)e->type.bits << 16 | e->type.lanes;
	uint64_t hash = hash_mix((uint64_t)e->kind << 32 | type, node_hash(pool, e));

	e->lead = UINT64_MAX;
	if (e->kind == EXPR_VAR)
		e->lead = lead_of(pool, kind_rank(e->as.var->kind), e->as.var->name);
	else if (e->kind == EXPR_REG)
		e->lead = lead_of(pool, 6, e->as.reg->name);
	else if (e->kind == EXPR_LOAD)
		e->lead = lead_of(pool, 7, e->as.buffer->name);
	for (uint32_t i = 0; i < e->n_args; i++) {
		if (e->args[i]->lead < e->lead)
			e->lead = e->args[i]->lead;
		hash = hash_mix(hash, e->args[i]->shape_hash);
	}
	e->shape_hash = hash;
}

bool expr_before(const struct expr *a, const struct expr *b)
{
	if (a->lead != b->lead)
		return a->lead < b->lead;
	if (a->n_nodes != b->n_nodes)
		return a->n_nodes < b->n_nodes;
	if (a->shape_hash != b->shape_hash)
		return a->shape_hash < b->shape_hash;
	return a->id < b->id;
}
