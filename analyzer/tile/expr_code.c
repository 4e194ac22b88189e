/*
 * Index expressions as straight-line code: instruction i puts its value into slot i and reads slots
 * below i, so a shared sub-expression is computed once. Both sides of SELECT, `and` and `or` are
 * computed; all operators are total, so that does no harm.
 *
 *     (tx // 4) * 8 + tx % 4      0: var tx       1: div_pow2 0, 2     2: mul_const 1, 8
 *                                 3: mod_pow2 0, 3                     4: add 2, 3
 *
 * The simulator and the bank model evaluate the same address for the 32 lanes of a warp over and
 * over: what does not depend on the lane is computed once a call, the rest in loops over the lanes.
 */
#include "analyzer/tile/expr_internal.h"

#include "analyzer/tile/expr_ops.h"

#include <stdlib.h>
#include <string.h>

/*
 * The operators of binary_op and unary_op, and forms with a constant operand, which most indices
 * have.
 */
enum opcode {
	OP_CONST,
	OP_VAR,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_MUL_CONST,
	OP_DIV,
	OP_MOD,
	OP_DIV_POW2,
	OP_MOD_POW2,
	OP_TRUNCDIV,
	OP_TRUNCMOD,
	OP_MIN,
	OP_MAX,
	OP_AND,
	OP_OR,
	OP_XOR,
	OP_SHL,
	OP_SHR,
	OP_EQ,
	OP_NE,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_LOGIC_AND,
	OP_LOGIC_OR,
	OP_NOT,
	OP_BITNOT,
	OP_SELECT,
	OP_STORE,
	OP_TABLE,
};

/* Operand slots a, b, c; `number` is a constant, a shift, a mask or a variable's id. */
struct instruction {
	enum opcode op;
	uint32_t a, b, c;
	int64_t number;
	struct dtype type; /* OP_STORE: the type the value wraps around to */
	const struct int_table *table;
};

struct expr_code {
	uint32_t n;
	struct instruction *instructions;
};

/* ---- compiling ---- */

/*
 * `slots` finds the slot of a sub-expression that was met before; it and `code` live in `scratch`.
 */
struct compiler {
	struct arena *arena, *scratch;
	struct map slots; /* expression id -> slot + 1 */
	vec_of(struct instruction) code;
};

/* The slot of the new instruction. */
static uint32_t emit(struct compiler *compiler, struct instruction instruction)
{
	vec_push(compiler->scratch, &compiler->code, instruction);
	return compiler->code.n - 1;
}

/* BIN_DIV is floating and never gets here. */
static enum opcode binary_opcode(enum binary_op op)
{
	static const enum opcode opcodes[N_BINARY_OPS] = {
		[BIN_ADD] = OP_ADD,
		[BIN_SUB] = OP_SUB,
		[BIN_MUL] = OP_MUL,
		[BIN_FLOORDIV] = OP_DIV,
		[BIN_FLOORMOD] = OP_MOD,
		[BIN_TRUNCDIV] = OP_TRUNCDIV,
		[BIN_TRUNCMOD] = OP_TRUNCMOD,
		[BIN_MIN] = OP_MIN,
		[BIN_MAX] = OP_MAX,
		[BIN_BITAND] = OP_AND,
		[BIN_BITOR] = OP_OR,
		[BIN_BITXOR] = OP_XOR,
		[BIN_SHL] = OP_SHL,
		[BIN_SHR] = OP_SHR,
		[BIN_EQ] = OP_EQ,
		[BIN_NE] = OP_NE,
		[BIN_LT] = OP_LT,
		[BIN_LE] = OP_LE,
		[BIN_GT] = OP_GT,
		[BIN_GE] = OP_GE,
		[BIN_AND] = OP_LOGIC_AND,
		[BIN_OR] = OP_LOGIC_OR,
	};
	assert(op != BIN_DIV && op < N_BINARY_OPS);
	return opcodes[op];
}

static uint32_t compile(struct compiler *compiler, const struct expr *e);

/* Products, quotients and remainders by constants take the constant from the instruction. */
static uint32_t compile_binary(struct compiler *compiler, const struct expr *e)
{
	struct instruction instruction = { .op = binary_opcode(e->as.binary) };
	int64_t constant;
	instruction.a = compile(compiler, e->args[0]);
	if (expr_match_const(e, BIN_MUL, &constant)) {
		instruction.op = OP_MUL_CONST;
		instruction.number = constant;
	} else if (expr_match_const(e, BIN_FLOORDIV, &constant) && is_power_of_two(constant)) {
		instruction.op = OP_DIV_POW2;
		instruction.number = __builtin_ctzll((uint64_t)constant);
	} else if (expr_match_const(e, BIN_FLOORMOD, &constant) && is_power_of_two(constant)) {
		instruction.op = OP_MOD_POW2;
		instruction.number = constant - 1;
	} else {
		instruction.b = compile(compiler, e->args[1]);
	}
	return emit(compiler, instruction);
}

/* Negation is a product with -1. */
static uint32_t compile_unary(struct compiler *compiler, const struct expr *e)
{
	struct instruction instruction = { .a = compile(compiler, e->args[0]) };
	instruction.op = e->as.unary == UN_NOT ? OP_NOT : OP_BITNOT;
	if (e->as.unary == UN_NEG) {
		instruction.op = OP_MUL_CONST;
		instruction.number = -1;
	}
	return emit(compiler, instruction);
}

/* The node's own instruction behind those of its operands; its slot. */
static uint32_t compile_node(struct compiler *compiler, const struct expr *e)
{
	struct instruction instruction = { .type = e->type };
	switch (e->kind) {
	case EXPR_INT:
		instruction.op = OP_CONST;
		instruction.number = e->as.integer;
		return emit(compiler, instruction);
	case EXPR_VAR:
		instruction.op = OP_VAR;
		instruction.number = e->as.var->id;
		return emit(compiler, instruction);
	case EXPR_UNARY:
		return compile_unary(compiler, e);
	case EXPR_BINARY:
		return compile_binary(compiler, e);
	case EXPR_SELECT:
		instruction.op = OP_SELECT;
		instruction.a = compile(compiler, e->args[0]);
		instruction.b = compile(compiler, e->args[1]);
		instruction.c = compile(compiler, e->args[2]);
		return emit(compiler, instruction);
	case EXPR_CAST:
		return compile(compiler, e->args[0]);
	case EXPR_TABLE:
		instruction.op = OP_TABLE;
		instruction.a = compile(compiler, e->args[0]);
		instruction.table = e->as.table;
		return emit(compiler, instruction);
	case EXPR_FLOAT:
	case EXPR_LOAD:
	case EXPR_REG:
	case EXPR_BITCAST:
	case EXPR_MATH:
	case EXPR_CALL:
		break;
	}
	BUG("not an index expression");
}

/* Do results have to be cut to the type's width? Signed arithmetic is exact by contract. */
static bool needs_store(const struct expr *e)
{
	if (e->kind == EXPR_CAST)
		return true;
	return e->type.kind == TYPE_UINT && (e->kind == EXPR_BINARY || e->kind == EXPR_UNARY);
}

/* The slot of e, which is compiled the first time it is met. */
static uint32_t compile(struct compiler *compiler, const struct expr *e)
{
	struct map_entry *known = map_find(&compiler->slots, e->id);
	if (known)
		return (uint32_t)known->value.number;
	uint32_t slot = compile_node(compiler, e);
	if (needs_store(e))
		slot = emit(compiler, (struct instruction){ .op = OP_STORE, .a = slot, .type = e->type });
	map_at(compiler->scratch, &compiler->slots, e->id)->value.number = slot;
	return slot;
}

/* The result is in the last slot: operands always come first. */
struct expr_code *expr_compile(struct arena *arena, const struct expr *e)
{
	struct compiler compiler = { .arena = arena };
	struct expr_code *code = arena_new(arena, struct expr_code);
	assert(e->is_index);
	compiler.scratch = arena_open();
	uint32_t last = compile(&compiler, e);
	assert(last + 1 == compiler.code.n);
	(void)last;
	code->n = compiler.code.n;
	code->instructions = arena_array(arena, struct instruction, code->n);
	memcpy(code->instructions, compiler.code.p, code->n * sizeof(struct instruction));
	arena_close(compiler.scratch);
	return code;
}

/* ---- running ---- */

/* A warp's lanes; code of up to STACK_SLOTS instructions needs no memory from the arena. */
enum { LANES = 32, STACK_SLOTS = 128 };

/* A slot's value in each lane of a group. */
struct lanes {
	int64_t v[LANES];
};

/* One operator over n lanes; `A` and `B` are the operands of a lane. */
#define EACH(expression) \
	for (int i = 0; i < n; i++) { \
		const int64_t A = a->v[i], B = b->v[i]; \
		(void)A; \
		(void)B; \
		out->v[i] = (expression); \
	} \
	break

/* Wraps values around to a type. */
static void run_store(const struct instruction *in, const struct lanes *a, struct lanes *out, int n)
{
	for (int i = 0; i < n; i++)
		out->v[i] = in->type.kind == TYPE_BOOL ? a->v[i] != 0
		                                       : dtype_decode_int(in->type, (uint64_t)a->v[i]);
}

/*
 * One instruction over lanes 0 .. n-1. The switch stands outside the loops, so each of them is a
 * plain loop over arrays that compilers turn into vector code.
 */
static void run_instruction(const struct instruction *in, struct lanes *slots, struct lanes *out,
                            int n)
{
	const struct lanes *a = &slots[in->a], *b = &slots[in->b], *c = &slots[in->c];
	const int64_t number = in->number;
	switch (in->op) {
	case OP_CONST:
		EACH(number);
	case OP_VAR:
		break;
	case OP_ADD:
		EACH(op_add(A, B));
	case OP_SUB:
		EACH(op_sub(A, B));
	case OP_MUL:
		EACH(op_mul(A, B));
	case OP_MUL_CONST:
		EACH(op_mul(A, number));
	case OP_DIV:
		EACH(floor_div(A, B));
	case OP_MOD:
		EACH(floor_mod(A, B));
	case OP_DIV_POW2:
		EACH(A >> number);
	case OP_MOD_POW2:
		EACH(A & number);
	case OP_TRUNCDIV:
		EACH(op_truncdiv(A, B));
	case OP_TRUNCMOD:
		EACH(op_truncmod(A, B));
	case OP_MIN:
		EACH(A < B ? A : B);
	case OP_MAX:
		EACH(A > B ? A : B);
	case OP_AND:
		EACH(A & B);
	case OP_OR:
		EACH(A | B);
	case OP_XOR:
		EACH(A ^ B);
	case OP_SHL:
		EACH(op_shl(A, B));
	case OP_SHR:
		EACH(op_shr(A, B));
	case OP_EQ:
		EACH(A == B);
	case OP_NE:
		EACH(A != B);
	case OP_LT:
		EACH(A < B);
	case OP_LE:
		EACH(A <= B);
	case OP_GT:
		EACH(A > B);
	case OP_GE:
		EACH(A >= B);
	case OP_LOGIC_AND:
		EACH((A != 0) & (B != 0));
	case OP_LOGIC_OR:
		EACH((A != 0) | (B != 0));
	case OP_NOT:
		EACH(A == 0);
	case OP_BITNOT:
		EACH(~A);
	case OP_SELECT:
		EACH(A ? B : c->v[i]);
	case OP_TABLE:
		EACH(op_table(in->table, A));
	case OP_STORE:
		run_store(in, a, out, n);
		break;
	}
}

#undef EACH

/* Does an operand of the instruction differ from lane to lane? */
static bool reads_varying(const struct instruction *in, const unsigned char *varying)
{
	switch (in->op) {
	case OP_CONST:
	case OP_VAR:
		return false;
	case OP_SELECT:
		return varying[in->a] || varying[in->b] || varying[in->c];
	case OP_MUL_CONST:
	case OP_DIV_POW2:
	case OP_MOD_POW2:
	case OP_NOT:
	case OP_BITNOT:
	case OP_STORE:
	case OP_TABLE:
		return varying[in->a];
	case OP_ADD:
	case OP_SUB:
	case OP_MUL:
	case OP_DIV:
	case OP_MOD:
	case OP_TRUNCDIV:
	case OP_TRUNCMOD:
	case OP_MIN:
	case OP_MAX:
	case OP_AND:
	case OP_OR:
	case OP_XOR:
	case OP_SHL:
	case OP_SHR:
	case OP_EQ:
	case OP_NE:
	case OP_LT:
	case OP_LE:
	case OP_GT:
	case OP_GE:
	case OP_LOGIC_AND:
	case OP_LOGIC_OR:
		break;
	}
	return varying[in->a] || varying[in->b];
}

/* The same value in every lane. */
static void fill(struct lanes *lanes, int64_t value)
{
	for (int i = 0; i < LANES; i++)
		lanes->v[i] = value;
}

/*
 * What does not vary with the lane is computed in lane 0 and spread; done before the first group.
 * `varying` gets a flag for each slot.
 */
static void run_uniform(const struct expr_code *code, const int64_t *values, uint32_t lane_var_id,
                        struct lanes *slots, unsigned char *varying)
{
	for (uint32_t at = 0; at < code->n; at++) {
		const struct instruction *in = &code->instructions[at];
		varying[at] = (in->op == OP_VAR && in->number == lane_var_id) || reads_varying(in, varying);
		if (varying[at])
			continue;
		if (in->op == OP_VAR)
			slots[at].v[0] = values[in->number];
		else
			run_instruction(in, slots, &slots[at], 1);
		fill(&slots[at], slots[at].v[0]);
	}
}

/* Groups of 32 lanes; slots of uniform values are written once and only read afterwards. */
void expr_run_lanes(const struct expr_code *code, const int64_t *values,
                    const struct lane_values *lanes, int64_t *out)
{
	struct lanes stack_slots[STACK_SLOTS], *slots = stack_slots;
	unsigned char stack_varying[STACK_SLOTS], *varying = stack_varying;
	struct arena *scratch = NULL;
	if (code->n > STACK_SLOTS) {
		scratch = arena_open();
		slots = arena_array(scratch, struct lanes, code->n);
		varying = arena_array(scratch, unsigned char, code->n);
	}
	assert(lanes->n >= 0 && code->n > 0);
	run_uniform(code, values, lanes->var_id, slots, varying);
	for (int begin = 0; begin < lanes->n; begin += LANES) {
		int count = lanes->n - begin < LANES ? lanes->n - begin : LANES;
		for (uint32_t at = 0; at < code->n; at++) {
			const struct instruction *in = &code->instructions[at];
			if (!varying[at])
				continue;
			if (in->op == OP_VAR)
				memcpy(slots[at].v, lanes->values + begin, (size_t)count * sizeof(int64_t));
			else
				run_instruction(in, slots, &slots[at], count);
		}
		memcpy(out + begin, slots[code->n - 1].v, (size_t)count * sizeof(int64_t));
	}
	arena_close(scratch);
}

/* One instruction of expr_run. */
static int64_t run_scalar(const struct instruction *in, const int64_t *slots, const int64_t *values)
{
	int64_t a = slots[in->a], b = slots[in->b];
	switch (in->op) {
	case OP_CONST:
		return in->number;
	case OP_VAR:
		return values[in->number];
	case OP_ADD:
		return op_add(a, b);
	case OP_SUB:
		return op_sub(a, b);
	case OP_MUL:
		return op_mul(a, b);
	case OP_MUL_CONST:
		return op_mul(a, in->number);
	case OP_DIV:
		return floor_div(a, b);
	case OP_MOD:
		return floor_mod(a, b);
	case OP_DIV_POW2:
		return a >> in->number;
	case OP_MOD_POW2:
		return a & in->number;
	case OP_TRUNCDIV:
		return op_truncdiv(a, b);
	case OP_TRUNCMOD:
		return op_truncmod(a, b);
	case OP_MIN:
		return a < b ? a : b;
	case OP_MAX:
		return a > b ? a : b;
	case OP_AND:
		return a & b;
	case OP_OR:
		return a | b;
	case OP_XOR:
		return a ^ b;
	case OP_SHL:
		return op_shl(a, b);
	case OP_SHR:
		return op_shr(a, b);
	case OP_EQ:
		return a == b;
	case OP_NE:
		return a != b;
	case OP_LT:
		return a < b;
	case OP_LE:
		return a <= b;
	case OP_GT:
		return a > b;
	case OP_GE:
		return a >= b;
	case OP_LOGIC_AND:
		return a && b;
	case OP_LOGIC_OR:
		return a || b;
	case OP_NOT:
		return a == 0;
	case OP_BITNOT:
		return ~a;
	case OP_SELECT:
		return a ? b : slots[in->c];
	case OP_TABLE:
		return op_table(in->table, a);
	case OP_STORE:
		return in->type.kind == TYPE_BOOL ? a != 0 : dtype_decode_int(in->type, (uint64_t)a);
	}
	return 0;
}

/*
 * As expr_run_lanes for one lane. Slot 0 is set because instructions without operands name it too.
 */
int64_t expr_run(const struct expr_code *code, const int64_t *values)
{
	int64_t stack_slots[STACK_SLOTS * 8], *slots = stack_slots;
	struct arena *scratch = NULL;
	if (code->n > STACK_SLOTS * 8) {
		scratch = arena_open();
		slots = arena_array(scratch, int64_t, code->n);
	}
	slots[0] = 0;
	for (uint32_t at = 0; at < code->n; at++)
		slots[at] = run_scalar(&code->instructions[at], slots, values);
	int64_t value = slots[code->n - 1];
	arena_close(scratch);
	return value;
}
