/*
 * The text of a warp program (docs/warp.md has the grammar). Instructions print by their operand
 * table: written operands, `<-`, read operands, numbers by name, predicate, kernel line.
 */
#include "codegen/lower/warp.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { INDENT = 4, TABLE_COLUMNS = 96 };

struct printer {
	struct buf *out;
	const struct warp_program *program;
	int depth;
};

static const char *name_of(const struct printer *printer, sym_t name)
{
	return sym_text(printer->program->cx->names, name);
}

static void put_expr(struct printer *printer, const struct expr *e)
{
	expr_print(printer->out, printer->program->cx, e);
}

static void put_indent(struct printer *printer)
{
	for (int i = 0; i < printer->depth * INDENT; i++)
		buf_char(printer->out, ' ');
}

/* Ends a line with its kernel line. */
static void put_line_end(struct printer *printer, struct span span)
{
	uint32_t line = source_line(&printer->program->cx->sources, span);

	if (line)
		buf_printf(printer->out, " @%u", line);
	buf_char(printer->out, '\n');
}

/* ---- header ---- */

static void put_quoted(struct buf *out, const char *text)
{
	buf_char(out, '"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < ' ')
			buf_printf(out, "\\x%02x", c);
		else
			buf_char(out, (char)c);
	}
	buf_char(out, '"');
}

static void put_exprs(struct printer *printer, const struct expr *const *exprs, uint32_t n)
{
	buf_char(printer->out, '(');
	for (uint32_t i = 0; i < n; i++) {
		buf_text(printer->out, i ? ", " : "");
		put_expr(printer, exprs[i]);
	}
	buf_char(printer->out, ')');
}

static void put_buffer_param(struct printer *printer, const struct buffer *buffer)
{
	char type[32];

	buf_printf(printer->out, "param %s %s ", name_of(printer, buffer->name),
	           dtype_name(buffer->type, type));
	put_exprs(printer, buffer->shape, buffer->rank);
	if (buffer->rank && buffer->strides[0]) {
		buf_text(printer->out, " strides ");
		put_exprs(printer, buffer->strides, buffer->rank);
	}
	put_line_end(printer, buffer->span);
}

static void put_scalar_param(struct printer *printer, const struct var *var)
{
	char type[32];

	buf_printf(printer->out, "%s %s %s", var->kind == VAR_SYMBOL ? "symbol" : "scalar",
	           name_of(printer, var->name), dtype_name(var->type, type));
	if (var->min != INT64_MIN)
		buf_printf(printer->out, " from %" PRId64, var->min);
	if (var->max != INT64_MAX)
		buf_printf(printer->out, " to %" PRId64, var->max);
	if (var->divisor > 1)
		buf_printf(printer->out, " step %" PRId64, var->divisor);
	put_line_end(printer, var->span);
}

static void put_shared(struct printer *printer, const struct wshared *shared)
{
	char type[32];

	buf_printf(printer->out,
	           "shared %s %s at %" PRId64 " align %" PRId64 " versions %" PRId64 " x %" PRId64
	           " bytes",
	           name_of(printer, shared->name), dtype_name(shared->type, type), shared->offset_bytes,
	           shared->align_bytes, shared->n_versions, shared->version_bytes);
	put_line_end(printer, shared->span);
}

static void put_reg(struct printer *printer, const struct wreg *reg)
{
	char type[32];

	buf_printf(printer->out, "reg %s %s [%" PRId64 "]", name_of(printer, reg->name),
	           dtype_name(reg->type, type), reg->n_slots);
	if (reg->is_uniform)
		buf_text(printer->out, " uniform");
	if (reg->is_local)
		buf_text(printer->out, " local");
	put_line_end(printer, reg->span);
}

static void put_table(struct printer *printer, const struct int_table *table)
{
	size_t line_begin = printer->out->n;

	buf_printf(printer->out, "table %s [", table->name);
	for (uint64_t i = 0; i < table->n; i++) {
		if (i && printer->out->n - line_begin > TABLE_COLUMNS) {
			buf_text(printer->out, ",\n    ");
			line_begin = printer->out->n - INDENT;
		} else {
			buf_text(printer->out, i ? ", " : "");
		}
		buf_printf(printer->out, "%" PRId64, table->values[i]);
	}
	buf_text(printer->out, "]\n");
}

/* ---- tables that the program's expressions use, by id ---- */

struct table_set {
	struct arena *arena;
	struct map of_id;
};

static void collect_table(void *user, const struct expr *e)
{
	struct table_set *set = user;

	if (e->kind == EXPR_TABLE)
		map_at(set->arena, &set->of_id, e->as.table->id)->value.pointer =
			(void *)(uintptr_t)e->as.table;
}

static void collect_block(struct table_set *set, const struct wblock *block);

static void collect_expr(struct table_set *set, const struct expr *e)
{
	if (e)
		expr_walk(e, collect_table, set);
}

static void collect_inst(struct table_set *set, const struct winst *inst)
{
	const struct wop_info *info = wop_info(inst->kind);

	collect_expr(set, inst->predicate);
	for (uint32_t i = 0; i < info->n_operands; i++) {
		union woperand operand = winst_operand(inst, &info->operands[i]);
		switch (info->operands[i].role) {
		case WROLE_ADDR_READ:
		case WROLE_ADDR_WRITE:
		case WROLE_ADDR_UPDATE:
			collect_expr(set, operand.addr->offset);
			break;
		case WROLE_REGS_READ:
		case WROLE_REGS_WRITE:
		case WROLE_REGS_UPDATE:
			collect_expr(set, operand.regs->slot);
			break;
		case WROLE_VALUE:
			collect_expr(set, operand.value);
			break;
		case WROLE_NUM:
			break;
		}
	}
}

static void collect_block(struct table_set *set, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		switch (node->kind) {
		case WNODE_INST:
			collect_inst(set, &node->as.inst);
			break;
		case WNODE_LOOP:
			collect_expr(set, node->as.loop.extent);
			collect_block(set, &node->as.loop.body);
			break;
		case WNODE_IF:
			collect_expr(set, node->as.if_.condition);
			collect_block(set, &node->as.if_.then);
			collect_block(set, &node->as.if_.otherwise);
			break;
		case WNODE_WHILE:
			collect_expr(set, node->as.while_.condition);
			collect_block(set, &node->as.while_.body);
			break;
		}
	}
}

static void put_tables(struct printer *printer)
{
	struct table_set set = { printer->program->cx->arena, { 0 } };
	const struct int_table *last = NULL;

	collect_block(&set, &printer->program->body);
	for (uint32_t n = 0; n < set.of_id.n; n++) {
		const struct int_table *next = NULL;
		for (uint32_t i = 0; i < set.of_id.n; i++) {
			const struct int_table *table = set.of_id.entries[i].value.pointer;
			if ((!last || table->id > last->id) && (!next || table->id < next->id))
				next = table;
		}
		put_table(printer, next);
		last = next;
	}
}

/* The first file that a node's span names. */
static uint32_t find_file(const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		uint32_t file = node->span.file;
		if (!file && node->kind == WNODE_LOOP)
			file = find_file(&node->as.loop.body);
		if (!file && node->kind == WNODE_IF)
			file = find_file(&node->as.if_.then);
		if (!file && node->kind == WNODE_WHILE)
			file = find_file(&node->as.while_.body);
		if (file)
			return file;
	}
	return 0;
}

static void put_launch(struct printer *printer)
{
	const struct warp_program *program = printer->program;
	struct buf *out = printer->out;
	uint32_t file = find_file(&program->body);

	buf_printf(out, "warp %s threads %" PRId64 " grid ", name_of(printer, program->name),
	           program->n_threads);
	put_exprs(printer, program->grid, 3);
	buf_printf(out, " block (%s, %s, %s) thread %s\n", name_of(printer, program->block[0]->name),
	           name_of(printer, program->block[1]->name), name_of(printer, program->block[2]->name),
	           name_of(printer, program->tid->name));
	if (file) {
		buf_text(out, "source ");
		put_quoted(out, source_get(&program->cx->sources, file)->path);
		buf_char(out, '\n');
	}
	if (program->rasterization.panel_size) {
		buf_printf(out, "rasterize %" PRId64 " by %s", program->rasterization.panel_size,
		           program->rasterization.by_column ? "column" : "row");
		put_line_end(printer, program->rasterization.span);
	}
	buf_printf(out, "shared_bytes %" PRId64 "\n", program->shared_bytes);
}

/* ---- nodes ---- */

static void put_regs(struct printer *printer, const struct wregs *regs)
{
	assert(regs->reg && regs->slot);
	buf_printf(printer->out, "%s[", name_of(printer, regs->reg->name));
	put_expr(printer, regs->slot);
	if (regs->n != 1)
		buf_printf(printer->out, "; %" PRId64, regs->n);
	buf_char(printer->out, ']');
}

static void put_addr(struct printer *printer, const struct waddr *addr)
{
	sym_t name = addr->space == WSPACE_SHARED ? addr->shared->name : addr->global->name;

	buf_printf(printer->out, "%s[", name_of(printer, name));
	put_expr(printer, addr->offset);
	buf_char(printer->out, ']');
}

static void put_operand(struct printer *printer, const struct winst *inst,
                        const struct woperand_info *info)
{
	union woperand operand = winst_operand(inst, info);

	switch (info->role) {
	case WROLE_ADDR_READ:
	case WROLE_ADDR_WRITE:
	case WROLE_ADDR_UPDATE:
		put_addr(printer, operand.addr);
		break;
	case WROLE_REGS_READ:
	case WROLE_REGS_WRITE:
	case WROLE_REGS_UPDATE:
		put_regs(printer, operand.regs);
		break;
	case WROLE_VALUE:
		put_expr(printer, operand.value);
		break;
	case WROLE_NUM:
		buf_printf(printer->out, "%s=", info->name);
		if (strcmp(info->name, "shape") == 0)
			buf_text(printer->out, mma_shape_info((enum mma_shape)operand.num)->text);
		else
			buf_printf(printer->out, "%" PRId64, operand.num);
		break;
	}
}

/* Operands of one group, in table order. */
static void put_group(struct printer *printer, const struct winst *inst, enum wgroup group)
{
	const struct wop_info *info = wop_info(inst->kind);
	const char *separator = " ";

	if (group == WGROUP_READ && wop_count(info, WGROUP_READ) && wop_count(info, WGROUP_WRITTEN))
		buf_text(printer->out, " <-");
	for (uint32_t i = 0; i < info->n_operands; i++) {
		if (wrole_group(info->operands[i].role) != group)
			continue;
		buf_text(printer->out, separator);
		put_operand(printer, inst, &info->operands[i]);
		separator = group == WGROUP_NUM ? " " : ", ";
	}
}

static void put_inst(struct printer *printer, const struct winst *inst)
{
	buf_text(printer->out, wop_info(inst->kind)->text);
	for (int group = 0; group < N_WGROUPS; group++)
		put_group(printer, inst, (enum wgroup)group);
	if (inst->predicate) {
		buf_text(printer->out, " if ");
		put_expr(printer, inst->predicate);
	}
}

static void put_block(struct printer *printer, const struct wblock *block);

/* `HEAD CONDITION:`, the kernel's line, the block. */
static void put_branch(struct printer *printer, const char *head, const struct expr *condition,
                       struct span span, const struct wblock *block)
{
	put_indent(printer);
	buf_text(printer->out, head);
	if (condition)
		put_expr(printer, condition);
	buf_char(printer->out, ':');
	put_line_end(printer, span);
	put_block(printer, block);
}

static void put_loop(struct printer *printer, const struct wnode *node)
{
	put_indent(printer);
	buf_printf(printer->out, "%sfor %s in ", node->as.loop.unroll ? "unroll " : "",
	           name_of(printer, node->as.loop.var->name));
	put_expr(printer, node->as.loop.extent);
	buf_char(printer->out, ':');
	put_line_end(printer, node->span);
	put_block(printer, &node->as.loop.body);
}

static void put_node(struct printer *printer, const struct wnode *node)
{
	switch (node->kind) {
	case WNODE_INST:
		put_indent(printer);
		put_inst(printer, &node->as.inst);
		put_line_end(printer, node->span);
		break;
	case WNODE_LOOP:
		put_loop(printer, node);
		break;
	case WNODE_IF:
		put_branch(printer, "if ", node->as.if_.condition, node->span, &node->as.if_.then);
		if (node->as.if_.otherwise.nodes.n)
			put_branch(printer, "else", NULL, (struct span){ 0 }, &node->as.if_.otherwise);
		break;
	case WNODE_WHILE:
		put_branch(printer, "while ", node->as.while_.condition, node->span, &node->as.while_.body);
		break;
	}
}

/* A heading above a node, on one line, with an empty line above when something precedes it. */
static void put_comment(struct printer *printer, const char *comment, bool is_first)
{
	if (!is_first)
		buf_char(printer->out, '\n');
	put_indent(printer);
	buf_text(printer->out, "# ");
	for (; *comment; comment++)
		buf_char(printer->out, *comment == '\n' || *comment == '\r' ? ' ' : *comment);
	buf_char(printer->out, '\n');
}

static void put_block(struct printer *printer, const struct wblock *block)
{
	printer->depth++;
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		if (node->comment)
			put_comment(printer, node->comment, i == 0);
		put_node(printer, node);
	}
	if (!block->nodes.n) {
		put_indent(printer);
		buf_text(printer->out, "pass\n");
	}
	printer->depth--;
}

void warp_print(struct buf *out, const struct warp_program *program)
{
	struct printer printer = { out, program, 0 };

	assert(program->tid && program->block[0]);
	put_launch(&printer);
	for (uint32_t i = 0; i < program->params.n; i++)
		if (program->params.p[i].buffer)
			put_buffer_param(&printer, program->params.p[i].buffer);
		else
			put_scalar_param(&printer, program->params.p[i].scalar);
	for (uint32_t i = 0; i < program->shareds.n; i++)
		put_shared(&printer, program->shareds.p[i]);
	for (uint32_t i = 0; i < program->regs.n; i++)
		put_reg(&printer, program->regs.p[i]);
	put_tables(&printer);
	buf_char(out, '\n');
	printer.depth = -1;
	put_block(&printer, &program->body);
}
