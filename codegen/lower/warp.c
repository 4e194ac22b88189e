/* Construction of warp programs and the tables of instructions and mma shapes. */
#include "codegen/lower/warp.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

static bool is_loop_on_path(const struct wblock *at, const struct wblock *target, sym_t name,
                            bool *found);

/* Does `target` lie in the node's blocks, and does a loop around it have the name? */
static bool node_path(const struct wnode *node, const struct wblock *target, sym_t name,
                      bool *found)
{
	switch (node->kind) {
	case WNODE_INST:
		return false;
	case WNODE_LOOP:
		if (!is_loop_on_path(&node->as.loop.body, target, name, found))
			return false;
		*found = *found || node->as.loop.var->name == name;
		return true;
	case WNODE_IF:
		return is_loop_on_path(&node->as.if_.then, target, name, found) ||
		       is_loop_on_path(&node->as.if_.otherwise, target, name, found);
	case WNODE_WHILE:
		return is_loop_on_path(&node->as.while_.body, target, name, found);
	}
	return false;
}

static bool is_loop_on_path(const struct wblock *at, const struct wblock *target, sym_t name,
                            bool *found)
{
	if (at == target)
		return true;
	for (uint32_t i = 0; i < at->nodes.n; i++)
		if (node_path(at->nodes.p[i], target, name, found))
			return true;
	return false;
}

static bool is_var_named(const struct var *var, sym_t name)
{
	return var && var->name == name;
}

/* Taken by something that the whole program sees? */
static bool is_global_name(const struct warp_program *program, sym_t name)
{
	for (int i = 0; i < 3; i++)
		if (is_var_named(program->block[i], name))
			return true;
	for (uint32_t i = 0; i < program->params.n; i++) {
		const struct wparam *param = &program->params.p[i];
		if (param->buffer ? param->buffer->name == name : is_var_named(param->scalar, name))
			return true;
	}
	for (uint32_t i = 0; i < program->shareds.n; i++)
		if (program->shareds.p[i]->name == name)
			return true;
	for (uint32_t i = 0; i < program->regs.n; i++)
		if (program->regs.p[i]->name == name)
			return true;
	return is_var_named(program->tid, name);
}

/* `name`, or the first of name_1, name_2, ... that is free; `block` is where a loop begins, NULL
 * for pieces and arrays. */
static sym_t free_name(const struct warp_program *program, sym_t name, const struct wblock *block)
{
	sym_t candidate = name;

	for (int i = 1;; i++) {
		char text[256];
		bool on_path = false;
		if (block)
			is_loop_on_path(&program->body, block, candidate, &on_path);
		if (!on_path && !is_global_name(program, candidate))
			return candidate;
		snprintf(text, sizeof(text), "%.200s_%d", sym_text(program->cx->names, name), i);
		candidate = intern_text(program->cx->names, text);
	}
}

/* ---- construction ---- */

struct warp_program *warp_new(struct cx *cx, struct expr_pool *pool, sym_t name)
{
	struct warp_program *program = arena_new(cx->arena, struct warp_program);

	program->cx = cx;
	program->pool = pool;
	program->name = name;
	for (int i = 0; i < 3; i++)
		program->grid[i] = expr_int(pool, 1);
	return program;
}

static struct var *new_launch_var(struct warp_program *program, enum var_kind kind, sym_t name,
                                  int axis)
{
	struct var *var = expr_new_var(program->pool, kind, free_name(program, name, NULL), DTYPE_I32);

	var->axis = axis;
	var->min = 0;
	return var;
}

void warp_set_launch_named(struct warp_program *program, int64_t n_threads,
                           const struct expr *const *grid, const sym_t names[4])
{
	struct var *var;

	assert(n_threads > 0);
	program->n_threads = n_threads;
	for (int i = 0; i < 3; i++) {
		int64_t min, max;
		if (grid && grid[i])
			program->grid[i] = grid[i];
		if (program->block[i])
			continue;
		var = new_launch_var(program, VAR_BLOCK, names[i], i);
		if (expr_range(program->grid[i], &min, &max) && max < INT64_MAX)
			var->max = max > 0 ? max - 1 : 0;
		program->block[i] = var;
	}
	var = new_launch_var(program, VAR_THREAD, names[3], 3);
	var->max = n_threads - 1;
	program->tid = var;
}

void warp_set_launch(struct warp_program *program, int64_t n_threads,
                     const struct expr *const *grid)
{
	static const char *const texts[4] = { "bx", "by", "bz", "tid" };
	sym_t names[4];

	for (int i = 0; i < 4; i++)
		names[i] = intern_text(program->cx->names, texts[i]);
	warp_set_launch_named(program, n_threads, grid, names);
}

struct wreg *warp_new_reg(struct warp_program *program, sym_t name, struct dtype type,
                          int64_t n_slots)
{
	struct wreg *reg = arena_new(program->cx->arena, struct wreg);

	reg->name = free_name(program, name, NULL);
	reg->id = program->regs.n;
	reg->type = type;
	reg->n_slots = n_slots;
	vec_push(program->cx->arena, &program->regs, reg);
	return reg;
}

struct wshared *warp_new_shared(struct warp_program *program, sym_t name, struct dtype type)
{
	struct wshared *shared = arena_new(program->cx->arena, struct wshared);

	shared->name = free_name(program, name, NULL);
	shared->id = program->shareds.n;
	shared->type = type;
	shared->n_versions = 1;
	shared->align_bytes = 16;
	vec_push(program->cx->arena, &program->shareds, shared);
	return shared;
}

static struct wnode *add_node(struct warp_program *program, struct wblock *block,
                              enum wnode_kind kind, struct span span)
{
	struct wnode *node = arena_new(program->cx->arena, struct wnode);

	node->kind = kind;
	node->id = program->n_nodes++;
	node->span = span;
	vec_push(program->cx->arena, &block->nodes, node);
	return node;
}

struct wnode *warp_add_inst(struct warp_program *program, struct wblock *block, enum wop_kind kind,
                            struct span span)
{
	struct wnode *node = add_node(program, block, WNODE_INST, span);

	node->as.inst.kind = kind;
	return node;
}

struct wnode *warp_add_loop(struct warp_program *program, struct wblock *block,
                            struct wloop_head head)
{
	sym_t wanted = intern_text(program->cx->names, head.name);
	struct var *var;
	struct wnode *node;
	int64_t min, max;

	var = expr_new_var(program->pool, VAR_LOOP, free_name(program, wanted, block), DTYPE_I32);
	var->min = 0;
	if (expr_range(head.extent, &min, &max) && max < INT64_MAX)
		var->max = max > 0 ? max - 1 : 0;
	var->span = head.span;
	node = add_node(program, block, WNODE_LOOP, head.span);
	node->as.loop.var = var;
	node->as.loop.extent = head.extent;
	node->as.loop.unroll = head.unroll;
	return node;
}

struct wnode *warp_add_if(struct warp_program *program, struct wblock *block,
                          const struct expr *condition, struct span span)
{
	struct wnode *node = add_node(program, block, WNODE_IF, span);

	node->as.if_.condition = condition;
	return node;
}

struct wnode *warp_add_while(struct warp_program *program, struct wblock *block,
                             const struct expr *condition, struct span span)
{
	struct wnode *node = add_node(program, block, WNODE_WHILE, span);

	node->as.while_.condition = condition;
	return node;
}

bool wred_is_counted(const struct wop_red *red)
{
	struct dtype type = red->src.reg->type;

	return red->bytes == 4 && type.bits == 32 && red->kind != ATOMIC_STORE &&
	       (type.kind == TYPE_INT || type.kind == TYPE_UINT);
}

int64_t wshared_bytes(const struct wshared *shared)
{
	return shared->version_bytes * shared->n_versions;
}

/* Packed types share a register, so an array of 16-bit elements counts half its slots. */
int64_t warp_registers_estimate(const struct warp_program *program)
{
	int64_t n = WARP_TEMPORARIES;

	for (uint32_t i = 0; i < program->regs.n; i++) {
		const struct wreg *reg = program->regs.p[i];

		if (!program->regs.p[i]->is_local)
			n += (reg->n_slots * (int64_t)dtype_bits(reg->type) + 31) / 32;
	}
	return n;
}

/* ---- the instruction table ---- */

#define WOP(id, text, doc) static const struct woperand_info operands_##id[] = {
#define ADDR(id, field, space, role) \
	{ #field, WROLE_ADDR_##role, WSPACES_##space, offsetof(struct wop_##id, field) },
#define REGS(id, field, role) \
	{ #field, WROLE_REGS_##role, WSPACES_ANY, offsetof(struct wop_##id, field) },
#define VALUE(id, field) { #field, WROLE_VALUE, WSPACES_ANY, offsetof(struct wop_##id, field) },
#define NUM(id, field) { #field, WROLE_NUM, WSPACES_ANY, offsetof(struct wop_##id, field) },
#define WEND(id) \
	{ \
		NULL, WROLE_NUM, WSPACES_ANY, 0 \
	} \
	} \
	;
#include "codegen/lower/wops.def"
#undef WOP
#undef ADDR
#undef REGS
#undef VALUE
#undef NUM
#undef WEND

const struct wop_info *wop_info(enum wop_kind kind)
{
	static const struct wop_info table[N_WOP_KINDS] = {
#define WOP(id, text, doc) \
	{ text, doc, sizeof(operands_##id) / sizeof(*operands_##id) - 1, operands_##id },
#define ADDR(id, field, space, role)
#define REGS(id, field, role)
#define VALUE(id, field)
#define NUM(id, field)
#define WEND(id)
#include "codegen/lower/wops.def"
#undef WOP
#undef ADDR
#undef REGS
#undef VALUE
#undef NUM
#undef WEND
	};

	assert(kind < N_WOP_KINDS);
	return &table[kind];
}

bool wop_is_shuffle(enum wop_kind kind)
{
	return kind == WOP_shfl_xor || kind == WOP_shfl_up || kind == WOP_shfl_down ||
	       kind == WOP_shfl_idx;
}

bool wop_is_mbarrier(enum wop_kind kind)
{
	return kind == WOP_mbar_init || kind == WOP_mbar_arrive || kind == WOP_mbar_expect ||
	       kind == WOP_mbar_wait || kind == WOP_mbar_copies || kind == WOP_tma_load;
}

bool wop_find(struct str text, enum wop_kind *kind)
{
	for (uint32_t i = 0; i < N_WOP_KINDS; i++) {
		if (!str_is(text, wop_info((enum wop_kind)i)->text))
			continue;
		*kind = (enum wop_kind)i;
		return true;
	}
	return false;
}

enum wgroup wrole_group(enum wrole role)
{
	switch (role) {
	case WROLE_ADDR_WRITE:
	case WROLE_ADDR_UPDATE:
	case WROLE_REGS_WRITE:
	case WROLE_REGS_UPDATE:
		return WGROUP_WRITTEN;
	case WROLE_ADDR_READ:
	case WROLE_REGS_READ:
	case WROLE_VALUE:
		return WGROUP_READ;
	case WROLE_NUM:
		return WGROUP_NUM;
	}
	return WGROUP_NUM;
}

uint32_t wop_count(const struct wop_info *info, enum wgroup group)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < info->n_operands; i++)
		n += wrole_group(info->operands[i].role) == group;
	return n;
}

union woperand winst_operand(const struct winst *inst, const struct woperand_info *info)
{
	const char *at = (const char *)&inst->as + info->offset;
	union woperand operand = { .num = 0 };

	switch (info->role) {
	case WROLE_ADDR_READ:
	case WROLE_ADDR_WRITE:
	case WROLE_ADDR_UPDATE:
		operand.addr = (const struct waddr *)(const void *)at;
		break;
	case WROLE_REGS_READ:
	case WROLE_REGS_WRITE:
	case WROLE_REGS_UPDATE:
		operand.regs = (const struct wregs *)(const void *)at;
		break;
	case WROLE_VALUE:
		memcpy(&operand.value, at, sizeof(operand.value));
		break;
	case WROLE_NUM:
		memcpy(&operand.num, at, sizeof(operand.num));
		break;
	}
	return operand;
}

const struct waddr *winst_shared_nth(const struct winst *inst, uint32_t which, bool *is_write)
{
	const struct wop_info *info = wop_info(inst->kind);

	for (uint32_t i = 0; i < info->n_operands; i++) {
		const struct woperand_info *operand = &info->operands[i];
		const struct waddr *addr;
		if (operand->role > WROLE_ADDR_UPDATE)
			continue;
		addr = winst_operand(inst, operand).addr;
		if (addr->space != WSPACE_SHARED || which-- > 0)
			continue;
		if (is_write)
			*is_write = operand->role != WROLE_ADDR_READ;
		return addr;
	}
	return NULL;
}

const struct waddr *winst_shared_addr(const struct winst *inst, bool *is_write)
{
	return winst_shared_nth(inst, 0, is_write);
}

bool winst_wgmma(const struct winst *inst, struct winst_wgmma *out)
{
	const struct wop_wgmma *ss = &inst->as.wgmma;
	const struct wop_wgmma_ra *rs = &inst->as.wgmma_ra;

	*out = (struct winst_wgmma){ 0 };
	if (inst->kind == WOP_wgmma) {
		out->d = &ss->d;
		out->a = &ss->a;
		out->b = &ss->b;
		out->shape = (enum mma_shape)ss->shape;
		out->n = ss->n;
		out->a_matrix =
			(struct wgmma_matrix){ ss->a_mn != 0, 0, ss->a_span, ss->a_leading, ss->a_stride };
		out->b_matrix =
			(struct wgmma_matrix){ ss->b_mn != 0, 0, ss->b_span, ss->b_leading, ss->b_stride };
	} else if (inst->kind == WOP_wgmma_ra) {
		out->d = &rs->d;
		out->a_regs = &rs->a;
		out->b = &rs->b;
		out->shape = (enum mma_shape)rs->shape;
		out->n = rs->n;
		out->b_matrix =
			(struct wgmma_matrix){ rs->b_mn != 0, 0, rs->b_span, rs->b_leading, rs->b_stride };
	} else {
		return false;
	}
	if (out->shape < N_MMA_SHAPES)
		out->a_matrix.elem_bytes = out->b_matrix.elem_bytes =
			mma_shape_info(out->shape)->ab.bits / 8;
	return true;
}

/* ---- the mma shapes ---- */

/* In a constant initialiser a dtype is a plain brace list. */
#undef DTYPE
#define DTYPE(kind_, bits_) \
	{ \
		(kind_), (bits_), 1 \
	}

const struct mma_shape_info *mma_shape_info(enum mma_shape shape)
{
	static const struct mma_shape_info table[N_MMA_SHAPES] = {
#define MMA_SHAPE(id, text, m, n, k, ab, d) \
	{ text, m, n, k, ab, d, (m) * (k) / 32, (k) * (n) / 32, (m) * (n) / 32 },
#include "codegen/lower/mma_shapes.def"
#undef MMA_SHAPE
	};

	assert(shape < N_MMA_SHAPES);
	return &table[shape];
}
