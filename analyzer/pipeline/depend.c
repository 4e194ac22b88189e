/*
 * Reads and writes of statements, from the operand table of ops.def and the loads inside
 * expressions.
 */
#include "analyzer/pipeline/depend.h"

#include "analyzer/tile/alias.h"

struct load_visit {
	struct use_list *list;
	const struct stmt *stmt;
};

static void add_use(struct use_list *list, const struct stmt *stmt, const struct buffer *buffer,
                    bool reads, bool writes)
{
	struct buffer_use use = { alias_owner(buffer), buffer, stmt, reads, writes };

	vec_push(list->arena, &list->uses, use);
}

static void visit_load(void *user, const struct expr *e)
{
	struct load_visit *visit = user;

	if (e->kind == EXPR_LOAD)
		add_use(visit->list, visit->stmt, e->as.buffer, true, false);
}

void depend_expr(struct use_list *list, const struct stmt *stmt, const struct expr *e)
{
	struct load_visit visit = { list, stmt };

	if (e)
		expr_walk(e, visit_load, &visit);
}

const struct expr *region_index_expr(const struct region *region, uint32_t d)
{
	return region->gather ? region->gather->index[d] : region->min[d];
}

static void depend_op(struct use_list *list, struct stmt *stmt)
{
	struct op *op = &stmt->as.op;
	const struct op_info *info = op_info(op->kind);
	enum operand_role role;

	for (uint32_t i = 0; i < info->n_operands; i++)
		if (info->operands[i].role == ROLE_EXPR)
			depend_expr(
				list, stmt,
				*(const struct expr *const *)((const char *)&op->as + info->operands[i].offset));
	for (uint32_t i = 0;; i++) {
		struct region *region = op_region(op, i, &role);
		if (!region)
			break;
		if (!region->buffer)
			continue;
		for (uint32_t d = 0; d < region->buffer->rank; d++)
			depend_expr(list, stmt, region_index_expr(region, d));
		add_use(list, stmt, region->buffer, role != ROLE_WRITE, role != ROLE_READ);
	}
}

static void depend_store(struct use_list *list, struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer;

	for (uint32_t d = 0; d < buffer->rank; d++)
		depend_expr(list, stmt, stmt->as.store.index[d]);
	depend_expr(list, stmt, stmt->as.store.value);
	add_use(list, stmt, buffer, stmt->as.store.atomic != ATOMIC_NONE, true);
}

void depend_stmt(struct use_list *list, struct stmt *stmt)
{
	switch (stmt->kind) {
	case STMT_OP:
		depend_op(list, stmt);
		return;
	case STMT_LOOP:
		for (uint32_t d = 0; d < stmt->as.loop.n_vars; d++)
			depend_expr(list, stmt, stmt->as.loop.extents[d]);
		depend_block(list, &stmt->as.loop.body);
		return;
	case STMT_IF:
		depend_expr(list, stmt, stmt->as.if_.condition);
		depend_block(list, &stmt->as.if_.then);
		depend_block(list, &stmt->as.if_.otherwise);
		return;
	case STMT_WHILE:
		depend_expr(list, stmt, stmt->as.while_.condition);
		depend_block(list, &stmt->as.while_.body);
		return;
	case STMT_LET:
		depend_expr(list, stmt, stmt->as.let.value);
		return;
	case STMT_STORE:
		depend_store(list, stmt);
		return;
	case STMT_SYNC:
	case STMT_BREAK:
	case STMT_CONTINUE:
		return;
	}
}

void depend_block(struct use_list *list, struct block *block)
{
	for (uint32_t i = 0; i < block->stmts.n; i++)
		depend_stmt(list, block->stmts.p[i]);
}

bool use_list_reads(const struct use_list *list, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < list->uses.n; i++)
		if (list->uses.p[i].buffer == alias_owner(buffer) && list->uses.p[i].reads)
			return true;
	return false;
}

bool use_list_writes(const struct use_list *list, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < list->uses.n; i++)
		if (list->uses.p[i].buffer == alias_owner(buffer) && list->uses.p[i].writes)
			return true;
	return false;
}
