/*
 * Register arrays whose elements are chosen at run time.
 *
 * A register has no address, so x[k] with k from data, from the thread or from a loop that stays a
 * loop makes the compiler keep the array in local memory: memory of the thread's own, cached, and
 * slower than registers by an order of magnitude. Which arrays these are follows from the slots of
 * the finished warp program (design of registers: CUDA C++ Programming Guide, "Local Memory"). Each
 * is marked, and named in a warning at the first such access.
 */
#include "codegen/lower/lower_internal.h"

#include <inttypes.h>

struct locals {
	struct lower *l;
	vec_of(const struct var *) unrolled; /* of the loops around */
	struct span span;                    /* of the instruction being looked at */
};

struct constant {
	const struct locals *locals;
	bool ok;
};

static void visit_constant(void *user, const struct expr *e)
{
	struct constant *constant = user;
	bool found = e->kind != EXPR_VAR;

	for (uint32_t i = 0; !found && i < constant->locals->unrolled.n; i++)
		found = constant->locals->unrolled.p[i] == e->as.var;
	constant->ok &= found && e->kind != EXPR_REG && e->kind != EXPR_CALL;
}

static bool is_constant(const struct locals *locals, const struct expr *e)
{
	struct constant constant = { locals, true };

	expr_walk(e, visit_constant, &constant);
	return constant.ok;
}

static void note_slot(struct locals *locals, const struct wreg *reg, const struct expr *slot)
{
	struct lower *l = locals->l;
	struct wreg *own = l->warp->regs.p[reg->id];
	int64_t bits;

	if (own->is_local || is_constant(locals, slot))
		return;
	own->is_local = true;
	bits = own->n_slots * (int64_t)dtype_bits(own->type);
	diag_report(&l->cx->diags, DIAG_W0613, locals->span,
	            "which element of %s this is shows at run time only: its %" PRId64
	            " bytes a thread are local memory, not registers",
	            sym_text(l->cx->names, own->name), (bits + 7) / 8);
	diag_help(&l->cx->diags,
	          "put %s into shared memory, or make the index a constant: a variable of "
	          "T.unroll, or of a serial loop of few trips",
	          sym_text(l->cx->names, own->name));
}

static void visit_reg(void *user, const struct expr *e)
{
	if (e->kind == EXPR_REG)
		note_slot(user, e->as.reg, e->args[0]);
}

static void note_expr(struct locals *locals, const struct expr *e)
{
	if (e)
		expr_walk(e, visit_reg, locals);
}

/* Operands of instructions of a whole warp are registers whatever happens: the verifier says so. */
static bool needs_registers(enum wop_kind kind)
{
	return kind == WOP_mma || kind == WOP_wgmma || kind == WOP_ldmatrix || kind == WOP_stmatrix;
}

static void note_inst(struct locals *locals, const struct winst *inst)
{
	const struct wop_info *info = wop_info(inst->kind);

	note_expr(locals, inst->predicate);
	for (uint32_t i = 0; i < info->n_operands; i++) {
		union woperand operand = winst_operand(inst, &info->operands[i]);

		switch (info->operands[i].role) {
		case WROLE_ADDR_READ:
		case WROLE_ADDR_WRITE:
		case WROLE_ADDR_UPDATE:
			note_expr(locals, operand.addr->offset);
			break;
		case WROLE_REGS_READ:
		case WROLE_REGS_WRITE:
		case WROLE_REGS_UPDATE:
			note_expr(locals, operand.regs->slot);
			if (!needs_registers(inst->kind))
				note_slot(locals, operand.regs->reg, operand.regs->slot);
			break;
		case WROLE_VALUE:
			note_expr(locals, operand.value);
			break;
		case WROLE_NUM:
			break;
		}
	}
}

static void note_block(struct locals *locals, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];

		locals->span = node->span;
		switch (node->kind) {
		case WNODE_INST:
			note_inst(locals, &node->as.inst);
			break;
		case WNODE_LOOP:
			note_expr(locals, node->as.loop.extent);
			if (node->as.loop.unroll)
				vec_push(locals->l->cx->arena, &locals->unrolled, node->as.loop.var);
			note_block(locals, &node->as.loop.body);
			if (node->as.loop.unroll)
				locals->unrolled.n--;
			break;
		case WNODE_IF:
			note_expr(locals, node->as.if_.condition);
			note_block(locals, &node->as.if_.then);
			note_block(locals, &node->as.if_.otherwise);
			break;
		case WNODE_WHILE:
			note_expr(locals, node->as.while_.condition);
			note_block(locals, &node->as.while_.body);
			break;
		}
	}
}

void lower_locals(struct lower *l)
{
	struct locals locals = { .l = l };

	note_block(&locals, &l->warp->body);
}
