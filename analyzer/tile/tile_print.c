/*
 * The printed form of a tile program, one statement a line, indentation like Python:
 *
 *     kernel matmul_relu_kernel of matmul:
 *         given M = 1024 from call
 *         param A: float16[1024, 1024]
 *         launch bx: 8, by: 8, bz: 1, tx: 128, ty: 1, tz: 1:
 *             A_shared: shared float16[128, 64]
 *             fill(dst=C_local, value=0f32)
 *             for ko in pipelined(16, num_stages=3):
 *                 copy(src=A[by*128, ko*64; 128, 64], dst=A_shared)
 *
 * A region is written buffer[mins; extents], the whole buffer by its name alone. Operands that are
 * absent and attributes that are 0 are left out.
 */
#include "analyzer/layout/layout.h"
#include "analyzer/tile/tile.h"

#include <assert.h>
#include <string.h>

struct printer {
	struct buf *out;
	const struct tile_program *program;
	int indent;
};

/* Tabs, one a block. */
static void line_begin(const struct printer *pr)
{
	for (int i = 0; i < pr->indent; i++)
		buf_char(pr->out, '\t');
}

static const char *name_of(const struct printer *pr, sym_t name)
{
	return sym_text(pr->program->cx->names, name);
}

static void print_expr(const struct printer *pr, const struct expr *e)
{
	expr_print(pr->out, pr->program->cx, e);
}

/* Expressions between commas. */
static void print_list(const struct printer *pr, const struct expr *const *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			buf_text(pr->out, ", ");
		print_expr(pr, items[i]);
	}
}

/* Does the region cover all of its buffer? */
static bool is_whole(const struct region *region)
{
	for (uint32_t i = 0; i < region->buffer->rank; i++) {
		int64_t min;

		if (!expr_is_int(region->min[i], &min) || min != 0 ||
		    region->extent[i] != buffer_extent(region->buffer, i))
			return false;
	}
	return true;
}

/* buffer, or buffer[mins; extents]. */
static void print_region(const struct printer *pr, const struct region *region)
{
	assert(region->buffer && region->buffer->rank <= MAX_RANK);
	buf_text(pr->out, name_of(pr, region->buffer->name));
	if (is_whole(region))
		return;
	buf_char(pr->out, '[');
	print_list(pr, region->min, region->buffer->rank);
	buf_text(pr->out, "; ");
	for (uint32_t i = 0; i < region->buffer->rank; i++)
		buf_printf(pr->out, "%s%lld", i ? ", " : "", (long long)region->extent[i]);
	buf_char(pr->out, ']');
}

/* Attributes that are enums are written as words. */
static void print_attr(const struct printer *pr, const char *field, int64_t value)
{
	if (strcmp(field, "policy") == 0)
		buf_text(pr->out, gemm_policy_text((enum gemm_policy)value));
	else if (strcmp(field, "kind") == 0)
		buf_text(pr->out, reduce_kind_text((enum reduce_kind)value));
	else
		buf_printf(pr->out, "%lld", (long long)value);
}

/* One operand as `, field=...`; false when it is left out. */
static bool print_operand(const struct printer *pr, const struct op *op,
                          const struct operand_info *info, bool is_first)
{
	const char *at = (const char *)&op->as + info->offset;
	const struct region *region = (const void *)at;
	const struct expr *const *e = (const void *)at;
	const int64_t *attr = (const void *)at;
	bool is_attr = info->role == ROLE_ATTR, is_expr = info->role == ROLE_EXPR;

	if (is_attr ? *attr == 0 : is_expr ? !*e : !region->buffer)
		return false;
	buf_printf(pr->out, "%s%s=", is_first ? "" : ", ", info->name);
	if (is_attr)
		print_attr(pr, info->name, *attr);
	else if (is_expr)
		print_expr(pr, *e);
	else
		print_region(pr, region);
	return true;
}

/* id(field=operand, ...) */
static void print_op(const struct printer *pr, const struct op *op)
{
	const struct op_info *info = op_info(op->kind);
	bool is_first = true;

	buf_printf(pr->out, "%s(", info->id);
	for (uint32_t i = 0; i < info->n_operands; i++)
		is_first = !print_operand(pr, op, &info->operands[i], is_first) && is_first;
	buf_text(pr->out, ")\n");
}

static void print_block(struct printer *pr, const struct block *block);

/* for i, j in kind(extents, num_stages=..., coalesced_width=...): */
static void print_loop(struct printer *pr, const struct loop *loop)
{
	buf_text(pr->out, "for ");
	for (uint32_t i = 0; i < loop->n_vars; i++)
		buf_printf(pr->out, "%s%s", i ? ", " : "", name_of(pr, loop->vars[i]->name));
	buf_printf(pr->out, " in %s(", loop_kind_text(loop->kind));
	print_list(pr, loop->extents, loop->n_vars);
	if (loop->num_stages)
		buf_printf(pr->out, ", num_stages=%lld", (long long)loop->num_stages);
	if (loop->coalesced_width)
		buf_printf(pr->out, ", coalesced_width=%lld", (long long)loop->coalesced_width);
	buf_text(pr->out, "):\n");
	print_block(pr, &loop->body);
}

/* elif does not exist here: an if in the else block. */
static void print_if(struct printer *pr, const struct stmt *stmt)
{
	buf_text(pr->out, "if ");
	print_expr(pr, stmt->as.if_.condition);
	buf_text(pr->out, ":\n");
	print_block(pr, &stmt->as.if_.then);
	if (stmt->as.if_.otherwise.stmts.n == 0)
		return;
	line_begin(pr);
	buf_text(pr->out, "else:\n");
	print_block(pr, &stmt->as.if_.otherwise);
}

/* let name: type = value */
static void print_let(const struct printer *pr, const struct stmt *stmt)
{
	char type[32];

	buf_printf(pr->out, "let %s: %s = ", name_of(pr, stmt->as.let.var->name),
	           dtype_name(stmt->as.let.var->type, type));
	print_expr(pr, stmt->as.let.value);
	buf_char(pr->out, '\n');
}

/* buffer[index] = value; of a variable, name[] = value. */
static void print_store(const struct printer *pr, const struct stmt *stmt)
{
	buf_printf(pr->out, "%s[", name_of(pr, stmt->as.store.buffer->name));
	print_list(pr, stmt->as.store.index, stmt->as.store.buffer->rank);
	if (stmt->as.store.atomic)
		buf_printf(pr->out, "] = atomic_%s ", atomic_kind_text(stmt->as.store.atomic));
	else
		buf_text(pr->out, "] = ");
	print_expr(pr, stmt->as.store.value);
	buf_char(pr->out, '\n');
}

/* One statement of any kind. */
static void print_stmt(struct printer *pr, const struct stmt *stmt)
{
	line_begin(pr);
	switch (stmt->kind) {
	case STMT_OP:
		print_op(pr, &stmt->as.op);
		break;
	case STMT_LOOP:
		print_loop(pr, &stmt->as.loop);
		break;
	case STMT_IF:
		print_if(pr, stmt);
		break;
	case STMT_WHILE:
		buf_text(pr->out, "while ");
		print_expr(pr, stmt->as.while_.condition);
		buf_text(pr->out, ":\n");
		print_block(pr, &stmt->as.while_.body);
		break;
	case STMT_LET:
		print_let(pr, stmt);
		break;
	case STMT_STORE:
		print_store(pr, stmt);
		break;
	case STMT_SYNC:
		buf_text(pr->out, "sync()\n");
		break;
	case STMT_BREAK:
		buf_text(pr->out, "break\n");
		break;
	case STMT_CONTINUE:
		buf_text(pr->out, "continue\n");
		break;
	}
}

/* An empty block holds `pass`. */
static void print_block(struct printer *pr, const struct block *block)
{
	pr->indent++;
	for (uint32_t i = 0; i < block->stmts.n; i++)
		print_stmt(pr, block->stmts.p[i]);
	if (block->stmts.n == 0) {
		line_begin(pr);
		buf_text(pr->out, "pass\n");
	}
	pr->indent--;
}

/* `float16[128, 64]`, with the strides of a strided tensor behind it. */
static void print_shape(const struct printer *pr, const struct buffer *buffer)
{
	char type[32];

	buf_printf(pr->out, "%s[", dtype_name(buffer->type, type));
	print_list(pr, buffer->shape, buffer->rank);
	buf_char(pr->out, ']');
	if (buffer->rank && buffer->strides[0]) {
		buf_text(pr->out, " strides [");
		print_list(pr, buffer->strides, buffer->rank);
		buf_char(pr->out, ']');
	}
	if (buffer->outside) {
		buf_text(pr->out, " outside ");
		print_expr(pr, buffer->outside);
	}
	if (buffer->is_reducer)
		buf_printf(pr->out, " reducer %s", reduce_kind_text(buffer->reducer));
	if (buffer->alias_of)
		buf_printf(pr->out, " in %s", name_of(pr, buffer->alias_of->name));
	if (buffer->base) {
		buf_text(pr->out, " at ");
		print_expr(pr, buffer->base);
	}
	if (buffer->map) {
		buf_text(pr->out, " map ");
		for (uint32_t i = 0; i < buffer->map->rank; i++)
			buf_printf(pr->out, "%s%s", i ? ", " : "", name_of(pr, buffer->map->index[i]->name));
		buf_text(pr->out, " to ");
		print_list(pr, buffer->map->place, buffer->map->n);
	}
	if (buffer->annotation) {
		buf_text(pr->out, " layout ");
		layout_print(pr->out, buffer->annotation);
	}
	buf_char(pr->out, '\n');
}

/* The range and the divisor only where they are known. */
static void print_scalar(const struct printer *pr, const struct var *var)
{
	char type[32];

	line_begin(pr);
	buf_printf(pr->out, "%s %s: %s", var->kind == VAR_SYMBOL ? "symbol" : "scalar",
	           name_of(pr, var->name), dtype_name(var->type, type));
	if (var->min != INT64_MIN || var->max != INT64_MAX)
		buf_printf(pr->out, " range %lld to %lld", (long long)var->min, (long long)var->max);
	if (var->divisor > 1)
		buf_printf(pr->out, " multiple %lld", (long long)var->divisor);
	buf_char(pr->out, '\n');
}

/* The kernel, the values that made it, and its arguments. */
static void print_head(struct printer *pr)
{
	static const char *const origins[] = {
		[PARAM_SET] = "set",
		[PARAM_CALL] = "call",
		[PARAM_DEFAULT] = "default",
		[PARAM_TENSOR] = "tensor",
	};
	const struct tile_program *program = pr->program;

	assert(pr->indent == 0);
	buf_printf(pr->out, "kernel %s", name_of(pr, program->name));
	if (program->factory)
		buf_printf(pr->out, " of %s", name_of(pr, program->factory));
	buf_text(pr->out, ":\n");
	pr->indent++;
	for (uint32_t i = 0; i < program->host_params.n; i++) {
		const struct host_param *param = &program->host_params.p[i];

		line_begin(pr);
		buf_printf(pr->out, "given %s = %s from %s\n", param->name,
		           param->value_json ? param->value_json : "?", origins[param->origin]);
	}
	for (uint32_t i = 0; i < program->scalars.n; i++)
		print_scalar(pr, program->scalars.p[i]);
	for (uint32_t i = 0; i < program->params.n; i++) {
		line_begin(pr);
		buf_printf(pr->out, "param %s: ", name_of(pr, program->params.p[i]->name));
		print_shape(pr, program->params.p[i]);
	}
	pr->indent--;
}

/* Grid and threads with their variables, then the launch's buffers, then the body. */
static void print_launch(struct printer *pr, const struct launch *launch)
{
	line_begin(pr);
	buf_text(pr->out, launch->is_implicit ? "implicit launch " : "launch ");
	for (int i = 0; i < 3; i++) {
		buf_printf(pr->out, "%s: ", name_of(pr, launch->block[i]->name));
		print_expr(pr, launch->grid[i]);
		buf_text(pr->out, ", ");
	}
	for (int i = 0; i < 3; i++)
		buf_printf(pr->out, "%s: %lld%s", name_of(pr, launch->thread[i]->name),
		           (long long)launch->threads[i], i < 2 ? ", " : ":\n");
	pr->indent++;
	if (launch->rasterization.panel_size) {
		line_begin(pr);
		buf_printf(pr->out, "swizzle %s %lld\n", launch->rasterization.by_column ? "column" : "row",
		           (long long)launch->rasterization.panel_size);
	}
	for (uint32_t i = 0; i < pr->program->buffers.n; i++) {
		const struct buffer *buffer = pr->program->buffers.p[i];

		if (buffer->is_param || buffer->launch != launch->index)
			continue;
		line_begin(pr);
		buf_printf(pr->out, "%s: %s ", name_of(pr, buffer->name), scope_text(buffer->scope));
		print_shape(pr, buffer);
	}
	pr->indent--;
	print_block(pr, &launch->body);
}

/* Head, then launches. */
void tile_print(struct buf *out, const struct tile_program *program)
{
	struct printer pr = { .out = out, .program = program };

	print_head(&pr);
	pr.indent++;
	for (uint32_t i = 0; i < program->launches.n; i++)
		print_launch(&pr, program->launches.p[i]);
}
