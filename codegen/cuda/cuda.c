/* Warp programs to a CUDA module: the frame around kernels, their headers, loops and branches. */
#include "codegen/cuda/writer.h"

#include <assert.h>
#include <string.h>

static void print_block(struct cuda_writer *writer, const struct wblock *block);

/* ---- which tensors are written ---- */

static void find_written(struct cuda_writer *writer, const struct wblock *block);

static void find_written_inst(struct cuda_writer *writer, const struct winst *inst)
{
	const struct wop_info *info = wop_info(inst->kind);

	for (uint32_t i = 0; i < info->n_operands; i++) {
		const struct woperand_info *operand = &info->operands[i];
		const struct waddr *address;
		if (operand->role != WROLE_ADDR_WRITE && operand->role != WROLE_ADDR_UPDATE)
			continue;
		address = winst_operand(inst, operand).addr;
		if (address->space == WSPACE_GLOBAL)
			map_at(writer->cx->arena, &writer->written, address->global->id);
	}
}

static void find_written(struct cuda_writer *writer, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		switch (node->kind) {
		case WNODE_INST:
			find_written_inst(writer, &node->as.inst);
			break;
		case WNODE_LOOP:
			find_written(writer, &node->as.loop.body);
			break;
		case WNODE_IF:
			find_written(writer, &node->as.if_.then);
			find_written(writer, &node->as.if_.otherwise);
			break;
		case WNODE_WHILE:
			find_written(writer, &node->as.while_.body);
			break;
		}
	}
}

/* ---- the tree ---- */

static void close_block(struct cuda_writer *writer, const char *text)
{
	for (uint32_t i = 0; i <= writer->depth; i++)
		buf_char(&writer->body, '\t');
	buf_printf(&writer->body, "%s\n", text);
}

static void print_body(struct cuda_writer *writer, const struct wblock *block)
{
	writer->depth++;
	print_block(writer, block);
	writer->depth--;
}

static void note_no_register(void *user, const struct expr *e)
{
	*(bool *)user |= e->kind == EXPR_VAR || e->kind == EXPR_LOAD || e->kind == EXPR_CALL;
}

/*
 * The `if` that is all of a loop's body, when only registers decide: once it fails nothing changes
 * them any more, and the loop may end. Else NULL.
 */
static const struct wnode *loop_guard(const struct wnode *loop)
{
	const struct wnode *only =
		loop->as.loop.body.nodes.n == 1 ? loop->as.loop.body.nodes.p[0] : NULL;
	bool depends = false;

	if (!only || only->kind != WNODE_IF || only->as.if_.otherwise.nodes.n || loop->as.loop.unroll)
		return NULL;
	expr_walk(only->as.if_.condition, note_no_register, &depends);
	return depends ? NULL : only;
}

static void print_loop(struct cuda_writer *writer, const struct wnode *node)
{
	const struct wnode *guard = loop_guard(node);
	const struct var *var = node->as.loop.var;
	struct buf extent = { 0 };
	const char *name;

	cuda_value(writer, &extent, node->as.loop.extent, LEVEL_SHIFT);
	if (guard) {
		buf_text(&extent, " && ");
		cuda_value(writer, &extent, guard->as.if_.condition, LEVEL_SHIFT);
	}
	cuda_name_var(writer, var);
	name = cuda_var_name(writer, var);
	buf_printf(&writer->body, "#pragma unroll%s\n", node->as.loop.unroll ? "" : " 1");
	cuda_line(writer, "for (%s %s = 0; %s < %s; %s++) {", cuda_value_type(var->type), name, name,
	          buf_cstr(&extent), name);
	buf_free(&extent);
	print_body(writer, guard ? &guard->as.if_.then : &node->as.loop.body);
	close_block(writer, "}");
	cuda_release_name(writer, name);
}

static void print_if(struct cuda_writer *writer, const struct wnode *node)
{
	struct buf condition = { 0 };

	cuda_value(writer, &condition, node->as.if_.condition, LEVEL_ANY);
	cuda_line(writer, "if (%s) {", buf_cstr(&condition));
	buf_free(&condition);
	print_body(writer, &node->as.if_.then);
	if (node->as.if_.otherwise.nodes.n > 0) {
		close_block(writer, "} else {");
		print_body(writer, &node->as.if_.otherwise);
	}
	close_block(writer, "}");
}

static void print_while(struct cuda_writer *writer, const struct wnode *node)
{
	struct buf condition = { 0 };

	cuda_value(writer, &condition, node->as.while_.condition, LEVEL_ANY);
	buf_text(&writer->body, "#pragma unroll 1\n");
	cuda_line(writer, "while (%s) {", buf_cstr(&condition));
	buf_free(&condition);
	print_body(writer, &node->as.while_.body);
	close_block(writer, "}");
}

static void print_comment(struct cuda_writer *writer, const char *comment)
{
	buf_char(&writer->body, '\n');
	for (uint32_t i = 0; i <= writer->depth; i++)
		buf_char(&writer->body, '\t');
	buf_text(&writer->body, "// ");
	for (const char *c = comment; *c; c++)
		buf_char(&writer->body, *c == '\n' || *c == '\\' ? ' ' : *c);
	buf_char(&writer->body, '\n');
}

static void print_block(struct cuda_writer *writer, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		struct span outer = writer->span;

		if (node->comment)
			print_comment(writer, node->comment);
		if (node->span.file)
			writer->span = node->span;
		switch (node->kind) {
		case WNODE_INST:
			cuda_inst(writer, &node->as.inst);
			break;
		case WNODE_LOOP:
			print_loop(writer, node);
			break;
		case WNODE_IF:
			print_if(writer, node);
			break;
		case WNODE_WHILE:
			print_while(writer, node);
			break;
		}
		writer->span = outer;
	}
}

/* ---- the frame of a kernel ---- */

/* What it is, for whoever reads the text. */
static void print_heading(struct cuda_writer *writer)
{
	const struct warp_program *program = writer->program;
	const struct tile_program *tile = program->tile;
	struct buf *out = &writer->kernels;
	char type[32];

	buf_printf(out, "// %s", cuda_kernel_name(program));
	if (tile && source_get(&program->cx->sources, tile->span.file)) {
		buf_text(out, ", from ");
		for (const char *c = source_get(&program->cx->sources, tile->span.file)->path; *c; c++)
			buf_char(out, (unsigned char)*c < ' ' || *c == '\\' ? '?' : *c);
		buf_printf(out, ":%u", source_line(&program->cx->sources, tile->span));
	}
	buf_printf(out, "\n// %lld threads a block, grid ", (long long)program->n_threads);
	for (int i = 0; i < 3; i++) {
		buf_text(out, i > 0 ? " x " : "");
		expr_print(out, program->cx, program->grid[i]);
	}
	buf_printf(out, ", %lld bytes of shared memory a block%s\n", (long long)program->shared_bytes,
	           program->shareds.n > 0 ? ":" : "");
	for (uint32_t i = 0; i < program->shareds.n; i++) {
		const struct wshared *shared = program->shareds.p[i];
		buf_printf(out, "// %8lld  %s, %s, %lld x %lld bytes\n", (long long)shared->offset_bytes,
		           sym_text(program->cx->names, shared->name), dtype_name(shared->type, type),
		           (long long)shared->n_versions, (long long)shared->version_bytes);
	}
}

/* `const f16 *__restrict__ A`; tensors that the kernel does not write are const. */
static void print_param(struct cuda_writer *writer, struct buf *out, const struct wparam *param)
{
	if (!param->buffer) {
		buf_printf(out, "%s %s", cuda_tensor_type(writer, param->scalar->type),
		           cuda_var_name(writer, param->scalar));
		return;
	}
	buf_printf(out, "%s%s *__restrict__ %s",
	           map_find(&writer->written, param->buffer->id) ? "" : "const ",
	           cuda_tensor_type(writer, param->buffer->type),
	           (const char *)map_get(&writer->buffers, param->buffer->id));
}

/* Tensor maps lie in the parameters themselves, where bulk copies read them. */
static void print_map(struct cuda_writer *writer, struct buf *out, uint32_t map)
{
	cuda_use(writer, HELPER_tensor_map);
	buf_printf(out, "const __grid_constant__ tensor_map %s", cuda_map_name(writer, map));
}

/* The parameters in lines of at most 100 columns. */
static void print_signature(struct cuda_writer *writer)
{
	enum { WIDTH = 100 };
	const struct warp_program *program = writer->program;
	const char *name = cuda_kernel_name(program);
	struct buf *out = &writer->kernels;
	size_t column = strlen(name) + 1;

	buf_printf(out, "extern \"C\" __global__ void __launch_bounds__(%lld)\n%s(",
	           (long long)program->n_threads, name);
	for (uint32_t i = 0; i < program->params.n + writer->maps.items.n; i++) {
		struct buf text = { 0 };
		if (i < program->params.n)
			print_param(writer, &text, &program->params.p[i]);
		else
			print_map(writer, &text, i - program->params.n);
		if (i > 0 && column + text.n + 2 > WIDTH) {
			buf_printf(out, ",\n%*s", (int)strlen(name) + 1, "");
			column = strlen(name) + 1;
		} else {
			buf_text(out, i > 0 ? ", " : "");
		}
		buf_text(out, buf_cstr(&text));
		column += text.n + 2;
		buf_free(&text);
	}
	buf_text(out, ")\n");
}

static bool is_used(const struct cuda_writer *writer, const struct var *var)
{
	return var && map_find(&writer->used_vars, var->id);
}

static void print_block_variables(struct cuda_writer *writer)
{
	static const char axes[] = "xyz";
	const struct warp_program *program = writer->program;
	const struct rasterization *order = &program->rasterization;
	bool in_panels = order->panel_size > 0 && program->block[0] && program->block[1];
	struct buf *out = &writer->kernels;

	if (in_panels) {
		const char *bx = cuda_var_name(writer, program->block[0]),
				   *by = cuda_var_name(writer, program->block[1]);
		cuda_use(writer, HELPER_panel_order);
		buf_printf(out,
		           "\tint %s, %s;\n\tpanel_order(blockIdx.y * gridDim.x + blockIdx.x, %s, %lld, "
		           "%s, %s);\n",
		           bx, by, order->by_column ? "gridDim.x, gridDim.y" : "gridDim.y, gridDim.x",
		           (long long)order->panel_size, order->by_column ? bx : by,
		           order->by_column ? by : bx);
	}
	for (int i = in_panels ? 2 : 0; i < 3; i++)
		if (is_used(writer, program->block[i]))
			buf_printf(out, "\tconst int %s = blockIdx.%c;\n",
			           cuda_var_name(writer, program->block[i]), axes[i]);
	if (is_used(writer, program->tid))
		buf_printf(out, "\tconst int %s = threadIdx.x;\n", cuda_var_name(writer, program->tid));
}

static void print_declarations(struct cuda_writer *writer)
{
	const struct warp_program *program = writer->program;
	struct buf *out = &writer->kernels;
	char type[32];

	if (program->shareds.n > 0) {
		buf_text(
			out,
			"\textern __shared__ __align__(1024) unsigned char shared_memory[];\n"
			"\tconst unsigned shared_base = (unsigned)__cvta_generic_to_shared(shared_memory);\n");
		for (uint32_t i = 0; i < program->shareds.n; i++)
			buf_printf(out, "\tconst unsigned %s = shared_base + %lld;\n",
			           (const char *)map_get(&writer->shareds, program->shareds.p[i]->id),
			           (long long)program->shareds.p[i]->offset_bytes);
	}
	print_block_variables(writer);
	if (program->regs.n > 0)
		buf_char(out, '\n');
	for (uint32_t i = 0; i < program->regs.n; i++) {
		const struct wreg *reg = program->regs.p[i];
		buf_printf(out, "\t%s %s[%lld];", cuda_reg_type(reg->type), cuda_reg_name(writer, reg),
		           (long long)cuda_reg_words(reg));
		if (cuda_slots_per_word(reg->type) > 1 || reg->type.kind == TYPE_TFLOAT)
			buf_printf(out, " // %lld x %s", (long long)reg->n_slots, dtype_name(reg->type, type));
		buf_char(out, '\n');
	}
	buf_char(out, '\n');
}

static void print_kernel(struct cuda_writer *writer, const struct warp_program *program)
{
	struct span whole = program->launch ? program->launch->span : (struct span){ 0 };

	assert(program->n_threads > 0);
	writer->program = program;
	writer->pool = program->pool;
	writer->written = writer->used_vars = (struct map){ 0 };
	writer->lines = false;
	writer->depth = 0;
	writer->span = whole;
	cuda_name_program(writer);
	tensor_maps_of(program, writer->cx->arena, &writer->maps);
	writer->map_names.n = 0;
	find_written(writer, &program->body);
	print_block(writer, &program->body);
	writer->span = whole;
	cuda_line_directive(writer);
	print_heading(writer);
	cuda_map_heading(writer, &writer->kernels);
	print_signature(writer);
	buf_text(&writer->kernels, "{\n");
	print_declarations(writer);
	buf_add(&writer->kernels, buf_cstr(&writer->body), writer->body.n);
	buf_text(&writer->kernels, "}\n");
	buf_free(&writer->body);
}

bool cuda_print(struct buf *out, struct warp_program *const *programs, uint32_t n)
{
	struct cuda_writer *writer;

	if (n == 0)
		return true;
	writer = arena_new(programs[0]->cx->arena, struct cuda_writer);
	writer->cx = programs[0]->cx;
	for (uint32_t i = 0; i < n; i++) {
		if (i > 0)
			buf_char(&writer->kernels, '\n');
		print_kernel(writer, programs[i]);
	}
	buf_text(out, "// Generated by tilelayout. Compiles with nvcc and NVRTC; needs no header.\n\n");
	cuda_print_helpers(writer, out);
	buf_add(out, buf_cstr(&writer->kernels), writer->kernels.n);
	buf_free(&writer->kernels);
	return !writer->failed;
}
