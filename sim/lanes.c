/*
 * Expressions over many lanes. Each distinct sub-expression of the pool that is ever asked for has
 * a node, which keeps its last cells and the tick at which they last changed; a root keeps the list
 * of its nodes, operands first. Running a root goes through that list and computes the nodes whose
 * operands changed since.
 */
#include "sim/lanes.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MAX_ARGS = MAX_RANK };

struct node {
	const struct expr *e;
	struct node *args[MAX_ARGS];
	uint32_t n_args;
	uint64_t changed;        /* tick of the last change; 0: never computed */
	const union cell *cells; /* `own` or `one`, or a variable's cells */
	union cell *own;         /* max_lanes cells; NULL while uniform */
	union cell one;
	uint8_t *poison; /* max_lanes entries, or NULL while never poisoned */
	bool varying, poisoned, is_float;
	struct node **code; /* of a root: the nodes below and itself; NULL before its first run */
	uint32_t n_code;
};

struct var_state {
	uint64_t changed;
	union cell one;
	const union cell *cells; /* NULL: uniform */
	bool is_unknown;
};

struct lane_eval {
	struct arena *arena;
	struct map nodes; /* expr id -> struct node * */
	struct var_state *vars;
	uint32_t n_vars, n_lanes, max_lanes;
	uint64_t tick, lanes_changed;
	bool exact;
	struct lane_loader loader;
	union cell *converted[3]; /* operands in the type of their operator */
};

const char *poison_text(uint8_t poison)
{
	if (poison & POISON_UNINIT)
		return "a value that nothing wrote";
	if (poison & POISON_BOUNDS)
		return "an index out of bounds";
	if (poison & POISON_DIVISOR)
		return "a division by zero";
	return "a builtin that is not modelled";
}

/* ---- cells and storage bits ---- */

static int64_t wrap_int(struct dtype type, int64_t value)
{
	switch (type.bits) {
	case 64:
		return value;
	case 32:
		return type.kind == TYPE_UINT ? (int64_t)(uint32_t)value : (int64_t)(int32_t)value;
	default:
		return dtype_decode_int(type, dtype_encode_int(type, value));
	}
}

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static double double_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Exponent and mantissa bits of the types of 16 bits, else 0. */
static int small_exponent_bits(struct dtype type)
{
	return type.kind == TYPE_BFLOAT ? 8 : type.kind == TYPE_FLOAT && type.bits == 16 ? 5 : 0;
}

/*
 * Bits of a 16-bit float, round to nearest even on the mantissa of the double: normal results only,
 * the caller takes all others to dtype_encode.
 */
static bool encode_small(int exponent_bits, double value, uint64_t *out)
{
	int mantissa_bits = 15 - exponent_bits, shift = 52 - mantissa_bits;
	int bias = (1 << (exponent_bits - 1)) - 1;
	uint64_t bits = bits_of(value);
	int exponent;

	bits += (bits >> shift & 1) + (((uint64_t)1 << (shift - 1)) - 1);
	exponent = (int)(bits >> 52 & 0x7ff) - 1023;
	if (exponent < 1 - bias || exponent > bias)
		return false;
	*out = (bits >> 63) << 15 | (uint64_t)(exponent + bias) << mantissa_bits |
	       (bits >> shift & (((uint64_t)1 << mantissa_bits) - 1));
	return true;
}

static bool decode_small(int exponent_bits, uint64_t code, double *out)
{
	int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
	int field = (int)(code >> mantissa_bits & ((1u << exponent_bits) - 1));

	if (field == 0 || field == (1 << exponent_bits) - 1)
		return false;
	*out = double_of((code >> 15 & 1) << 63 | (uint64_t)(field - bias + 1023) << 52 |
	                 (code & (((uint64_t)1 << mantissa_bits) - 1)) << (52 - mantissa_bits));
	return true;
}

static bool is_float32(struct dtype type)
{
	return type.kind == TYPE_FLOAT && type.bits == 32;
}

union cell cell_decode(struct dtype type, uint64_t bits)
{
	int small = small_exponent_bits(type);
	union cell cell;
	float narrow;

	if (is_float32(type)) {
		uint32_t word = (uint32_t)bits;
		memcpy(&narrow, &word, sizeof(narrow));
		cell.f = (double)narrow;
		return cell;
	}
	if (!dtype_is_float(type))
		cell.i = dtype_decode_int(type, bits);
	else if (!small || !decode_small(small, bits, &cell.f))
		cell.f = dtype_decode(type, bits);
	return cell;
}

uint64_t cell_encode(struct dtype type, union cell cell)
{
	int small = small_exponent_bits(type);
	uint64_t bits;

	if (is_float32(type) && !isnan(cell.f)) {
		float narrow = (float)cell.f;
		uint32_t word;
		memcpy(&word, &narrow, sizeof(word));
		return word;
	}
	if (!dtype_is_float(type))
		return dtype_encode_int(type, cell.i);
	if (small && encode_small(small, cell.f, &bits))
		return bits;
	return dtype_encode(type, cell.f);
}

static double round_float(struct dtype type, double value)
{
	int small = small_exponent_bits(type);
	uint64_t bits;

	if (type.kind == TYPE_FLOAT && type.bits == 64)
		return value;
	if (is_float32(type))
		return (double)(float)value;
	if (small && encode_small(small, value, &bits) && decode_small(small, bits, &value))
		return value;
	return dtype_round(type, value);
}

static bool is_wide_float(struct dtype type)
{
	return type.kind == TYPE_FLOAT && type.bits >= 32;
}

/*
 * As the GPU converts: towards zero, the ends of int64 for what is outside, 0 for NaN; then modulo
 * the type's range.
 */
static int64_t float_to_int(struct dtype type, double value)
{
	if (isnan(value))
		return 0;
	if (value >= 9223372036854775807.0)
		return wrap_int(type, INT64_MAX);
	if (value <= -9223372036854775808.0)
		return wrap_int(type, INT64_MIN);
	return wrap_int(type, (int64_t)value);
}

union cell cell_convert(union cell cell, bool from_float, struct dtype to, bool exact)
{
	union cell result;

	if (to.kind == TYPE_BOOL) {
		result.i = from_float ? cell.f != 0.0 : cell.i != 0;
	} else if (dtype_is_float(to)) {
		result.f = from_float ? cell.f : (double)cell.i;
		if (!exact || !is_wide_float(to))
			result.f = round_float(to, result.f);
	} else {
		result.i = from_float ? float_to_int(to, cell.f) : wrap_int(to, cell.i);
	}
	return result;
}

/* ---- operators ---- */

/* An operand while an operator runs. */
struct operand {
	const union cell *cells;
	uint32_t stride;
};

struct operands {
	struct operand a, b;
	bool is_u64; /* one of them is an unsigned 64-bit integer */
};

#define EACH(statement) \
	do { \
		for (uint32_t l = 0; l < n; l++) { \
			statement; \
		} \
	} while (0)
#define A(l) (a.cells[(l)*a.stride])
#define B(l) (b.cells[(l)*b.stride])
#define WRAP(l, op) (int64_t)((uint64_t)A(l).i op(uint64_t) B(l).i)

static int64_t floor_div(int64_t a, int64_t b)
{
	int64_t q;

	if (b == -1)
		return (int64_t) - (uint64_t)a;
	q = a / b;
	return q - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t floor_mod(int64_t a, int64_t b)
{
	int64_t r = b == -1 ? 0 : a % b;

	return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t trunc_div(int64_t a, int64_t b)
{
	return b == -1 ? (int64_t) - (uint64_t)a : a / b;
}

static int64_t trunc_mod(int64_t a, int64_t b)
{
	return b == -1 ? 0 : a % b;
}

/*
 * The four integer divisions; a zero divisor gives 0 and poison. Unsigned 64-bit operands divide as
 * such.
 */
static int64_t divide(enum binary_op op, int64_t a, int64_t b, bool is_u64)
{
	bool is_mod = op == BIN_FLOORMOD || op == BIN_TRUNCMOD;

	if (b == 0)
		return 0;
	if (is_u64)
		return (int64_t)(is_mod ? (uint64_t)a % (uint64_t)b : (uint64_t)a / (uint64_t)b);
	if (op == BIN_FLOORDIV || op == BIN_DIV)
		return floor_div(a, b);
	if (op == BIN_FLOORMOD)
		return floor_mod(a, b);
	return is_mod ? trunc_mod(a, b) : trunc_div(a, b);
}

static int64_t shift(enum binary_op op, int64_t a, int64_t by, bool is_u64)
{
	if (by < 0 || by > 63)
		return op == BIN_SHR && a < 0 && !is_u64 ? -1 : 0;
	if (op == BIN_SHL)
		return (int64_t)((uint64_t)a << by);
	return is_u64 ? (int64_t)((uint64_t)a >> by) : a >> by;
}

/* Operands as they order: unsigned 64-bit integers with the top bit flipped. */
static int64_t order_key(int64_t value, bool is_u64)
{
	return is_u64 ? value ^ INT64_MIN : value;
}
#define KA(l) order_key(A(l).i, is_u64)
#define KB(l) order_key(B(l).i, is_u64)

static void binary_int(enum binary_op op, const struct operands *args, uint32_t n, union cell *out)
{
	struct operand a = args->a, b = args->b;
	bool is_u64 = args->is_u64;

	switch (op) {
	case BIN_ADD:
		EACH(out[l].i = WRAP(l, +));
		break;
	case BIN_SUB:
		EACH(out[l].i = WRAP(l, -));
		break;
	case BIN_MUL:
		EACH(out[l].i = WRAP(l, *));
		break;
	case BIN_DIV:
	case BIN_FLOORDIV:
	case BIN_FLOORMOD:
	case BIN_TRUNCDIV:
	case BIN_TRUNCMOD:
		EACH(out[l].i = divide(op, A(l).i, B(l).i, is_u64));
		break;
	case BIN_MIN:
		EACH(out[l].i = KA(l) < KB(l) ? A(l).i : B(l).i);
		break;
	case BIN_MAX:
		EACH(out[l].i = KA(l) > KB(l) ? A(l).i : B(l).i);
		break;
	case BIN_BITAND:
		EACH(out[l].i = A(l).i & B(l).i);
		break;
	case BIN_BITOR:
		EACH(out[l].i = A(l).i | B(l).i);
		break;
	case BIN_BITXOR:
		EACH(out[l].i = A(l).i ^ B(l).i);
		break;
	case BIN_SHL:
	case BIN_SHR:
		EACH(out[l].i = shift(op, A(l).i, B(l).i, is_u64));
		break;
	case BIN_EQ:
		EACH(out[l].i = A(l).i == B(l).i);
		break;
	case BIN_NE:
		EACH(out[l].i = A(l).i != B(l).i);
		break;
	case BIN_LT:
		EACH(out[l].i = KA(l) < KB(l));
		break;
	case BIN_LE:
		EACH(out[l].i = KA(l) <= KB(l));
		break;
	case BIN_GT:
		EACH(out[l].i = KA(l) > KB(l));
		break;
	case BIN_GE:
		EACH(out[l].i = KA(l) >= KB(l));
		break;
	case BIN_AND:
		EACH(out[l].i = A(l).i && B(l).i);
		break;
	case BIN_OR:
		EACH(out[l].i = A(l).i || B(l).i);
		break;
	case N_BINARY_OPS:
		break;
	}
}

static void binary_float(enum binary_op op, const struct operands *args, uint32_t n,
                         union cell *out)
{
	struct operand a = args->a, b = args->b;

	switch (op) {
	case BIN_ADD:
		EACH(out[l].f = A(l).f + B(l).f);
		break;
	case BIN_SUB:
		EACH(out[l].f = A(l).f - B(l).f);
		break;
	case BIN_MUL:
		EACH(out[l].f = A(l).f * B(l).f);
		break;
	case BIN_DIV:
		EACH(out[l].f = A(l).f / B(l).f);
		break;
	case BIN_FLOORDIV:
		EACH(out[l].f = floor(A(l).f / B(l).f));
		break;
	case BIN_FLOORMOD:
		EACH(out[l].f = A(l).f - floor(A(l).f / B(l).f) * B(l).f);
		break;
	case BIN_TRUNCDIV:
		EACH(out[l].f = trunc(A(l).f / B(l).f));
		break;
	case BIN_TRUNCMOD:
		EACH(out[l].f = fmod(A(l).f, B(l).f));
		break;
	case BIN_MIN:
		EACH(out[l].f = fmin(A(l).f, B(l).f));
		break;
	case BIN_MAX:
		EACH(out[l].f = fmax(A(l).f, B(l).f));
		break;
	case BIN_EQ:
		EACH(out[l].i = A(l).f == B(l).f);
		break;
	case BIN_NE:
		EACH(out[l].i = A(l).f != B(l).f);
		break;
	case BIN_LT:
		EACH(out[l].i = A(l).f < B(l).f);
		break;
	case BIN_LE:
		EACH(out[l].i = A(l).f <= B(l).f);
		break;
	case BIN_GT:
		EACH(out[l].i = A(l).f > B(l).f);
		break;
	case BIN_GE:
		EACH(out[l].i = A(l).f >= B(l).f);
		break;
	case BIN_AND:
		EACH(out[l].i = A(l).f != 0.0 && B(l).f != 0.0);
		break;
	case BIN_OR:
		EACH(out[l].i = A(l).f != 0.0 || B(l).f != 0.0);
		break;
	case BIN_BITAND:
	case BIN_BITOR:
	case BIN_BITXOR:
	case BIN_SHL:
	case BIN_SHR:
		EACH(out[l].f = (double)NAN);
		break;
	case N_BINARY_OPS:
		break;
	}
}

static double math_value(enum math_fn fn, double a, double b, double c)
{
	(void)b;
	(void)c;
	switch (fn) {
#define MATH(name, arity, result, expression) \
	case MATH_##name: \
		return (double)(expression);
#include "analyzer/tile/math.def"
#undef MATH
	case N_MATH_FNS:
		break;
	}
	return (double)NAN;
}

/* ---- nodes ---- */

static struct lanes node_lanes(const struct node *node)
{
	return (struct lanes){ node->cells, node->poisoned ? node->poison : NULL, node->varying,
		                   node->is_float };
}

static struct node *node_of(struct lane_eval *eval, const struct expr *e)
{
	struct map_entry *entry = map_at(eval->arena, &eval->nodes, e->id);
	struct node *node = entry->value.pointer;

	if (node)
		return node;
	node = arena_new(eval->arena, struct node);
	entry->value.pointer = node;
	node->e = e;
	node->is_float = dtype_is_float(e->type);
	node->cells = &node->one;
	node->n_args = e->n_args < MAX_ARGS ? e->n_args : MAX_ARGS;
	if (e->kind == EXPR_INT)
		node->one.i = e->as.integer;
	if (e->kind == EXPR_INT && node->is_float)
		node->one.f = (double)e->as.integer;
	if (e->kind == EXPR_FLOAT)
		node->one.f = eval->exact ? e->as.number : round_float(e->type, e->as.number);
	if (e->kind == EXPR_INT || e->kind == EXPR_FLOAT)
		node->changed = 1;
	return node;
}

struct code_builder {
	struct lane_eval *eval;
	vec_of(struct node *) nodes;
};

static void add_to_code(void *user, const struct expr *e)
{
	struct code_builder *builder = user;
	struct node *node = node_of(builder->eval, e);

	for (uint32_t i = 0; i < node->n_args; i++)
		node->args[i] = node_of(builder->eval, e->args[i]);
	vec_push(builder->eval->arena, &builder->nodes, node);
}

static void build_code(struct lane_eval *eval, struct node *root)
{
	struct code_builder builder = { eval, { 0 } };

	expr_walk(root->e, add_to_code, &builder);
	root->code = builder.nodes.p;
	root->n_code = builder.nodes.n;
	assert(root->n_code && root->code[root->n_code - 1] == root);
}

/* Where the node's n cells go: n is the number of lanes when it varies, else 1. */
static union cell *node_output(struct lane_eval *eval, struct node *node, bool varying, uint32_t *n)
{
	node->varying = varying;
	*n = varying ? eval->n_lanes : 1;
	if (varying && !node->own)
		node->own = arena_array(eval->arena, union cell, eval->max_lanes);
	node->cells = varying ? node->own : &node->one;
	return varying ? node->own : &node->one;
}

/* The node's poison, all zero, for n lanes. */
static uint8_t *node_poison(struct lane_eval *eval, struct node *node, uint32_t n)
{
	if (!node->poison)
		node->poison = arena_array(eval->arena, uint8_t, eval->max_lanes);
	memset(node->poison, 0, n);
	node->poisoned = true;
	return node->poison;
}

static bool any_poison(const uint8_t *poison, uint32_t n)
{
	uint8_t all = 0;

	for (uint32_t i = 0; i < n; i++)
		all |= poison[i];
	return all != 0;
}

/* The operators' own rule: an operand's poison poisons the result. */
static void merge_poison(struct lane_eval *eval, struct node *node, uint32_t n)
{
	node->poisoned = false;
	for (uint32_t k = 0; k < node->n_args; k++) {
		const struct node *arg = node->args[k];
		if (!arg->poisoned)
			continue;
		if (!node->poisoned)
			node_poison(eval, node, n);
		for (uint32_t l = 0; l < n; l++)
			node->poison[l] |= arg->poison[l * arg->varying];
	}
}

/* Operand k, as doubles when `as_float`. */
static struct operand operand_of(struct lane_eval *eval, const struct node *node, uint32_t k,
                                 bool as_float)
{
	const struct node *arg = node->args[k];
	struct operand operand = { arg->cells, arg->varying };
	bool is_u64 = arg->e->type.kind == TYPE_UINT && arg->e->type.bits == 64;
	uint32_t n = arg->varying ? eval->n_lanes : 1;

	if (!as_float || arg->is_float)
		return operand;
	for (uint32_t l = 0; l < n; l++)
		eval->converted[k][l].f =
			is_u64 ? (double)(uint64_t)arg->cells[l].i : (double)arg->cells[l].i;
	operand.cells = eval->converted[k];
	return operand;
}

/* Operand k as 0 or 1. */
static bool truth_at(const struct node *arg, uint32_t lane)
{
	union cell cell = arg->cells[lane * arg->varying];

	return arg->is_float ? cell.f != 0.0 : cell.i != 0;
}

static void round_result(struct lane_eval *eval, struct node *node, uint32_t n, union cell *out)
{
	struct dtype type = node->e->type;

	if (eval->exact || type.kind == TYPE_BOOL)
		return;
	if (!node->is_float) {
		if (type.bits < 64)
			EACH(out[l].i = wrap_int(type, out[l].i));
	} else if (is_float32(type)) {
		EACH(out[l].f = (double)(float)out[l].f);
	} else if (!is_wide_float(type)) {
		EACH(out[l].f = round_float(type, out[l].f));
	}
}

static bool is_comparison(enum binary_op op)
{
	return op >= BIN_EQ && op <= BIN_GE;
}

static bool is_division(enum binary_op op)
{
	return op == BIN_DIV || (op >= BIN_FLOORDIV && op <= BIN_TRUNCMOD);
}

/* `a and b`, `a or b`: what a decides alone is not poisoned by b. */
static void run_logical(struct lane_eval *eval, struct node *node, uint32_t n, union cell *out)
{
	const struct node *first = node->args[0], *second = node->args[1];
	bool is_and = node->e->as.binary == BIN_AND;

	node->poisoned = false;
	if (first->poisoned || second->poisoned)
		node_poison(eval, node, n);
	for (uint32_t l = 0; l < n; l++) {
		bool a = truth_at(first, l), decided = a != is_and;
		out[l].i = decided ? a : truth_at(second, l);
		if (node->poisoned && first->poisoned)
			node->poison[l] |= first->poison[l * first->varying];
		if (node->poisoned && second->poisoned && !decided)
			node->poison[l] |= second->poison[l * second->varying];
	}
}

static bool is_u64(struct dtype type)
{
	return type.kind == TYPE_UINT && type.bits == 64;
}

/* Integer divisors of 0 poison their lanes. */
static void poison_divisors(struct lane_eval *eval, struct node *node, struct operand b, uint32_t n)
{
	if (!node->poisoned)
		node_poison(eval, node, n);
	EACH(node->poison[l] |= B(l).i == 0 ? POISON_DIVISOR : 0);
	node->poisoned = any_poison(node->poison, n);
}

static void run_binary(struct lane_eval *eval, struct node *node, uint32_t n, union cell *out)
{
	enum binary_op op = node->e->as.binary;
	struct dtype ta = node->args[0]->e->type, tb = node->args[1]->e->type;
	bool is_float = is_comparison(op) ? dtype_is_float(ta) || dtype_is_float(tb) : node->is_float;
	struct operands args;

	if (op == BIN_AND || op == BIN_OR) {
		run_logical(eval, node, n, out);
		return;
	}
	merge_poison(eval, node, n);
	args.a = operand_of(eval, node, 0, is_float);
	args.b = operand_of(eval, node, 1, is_float);
	args.is_u64 = is_u64(ta) || is_u64(tb);
	if (is_float)
		binary_float(op, &args, n, out);
	else
		binary_int(op, &args, n, out);
	if (!is_float && is_division(op))
		poison_divisors(eval, node, args.b, n);
	round_result(eval, node, n, out);
}

static void run_unary(struct lane_eval *eval, struct node *node, uint32_t n, union cell *out)
{
	struct operand a = operand_of(eval, node, 0, node->is_float);

	merge_poison(eval, node, n);
	switch (node->e->as.unary) {
	case UN_NEG:
		if (node->is_float)
			EACH(out[l].f = -A(l).f);
		else
			EACH(out[l].i = (int64_t) - (uint64_t)A(l).i);
		break;
	case UN_NOT:
		EACH(out[l].i = !truth_at(node->args[0], l));
		return;
	case UN_BITNOT:
		EACH(out[l].i = ~A(l).i);
		break;
	case N_UNARY_OPS:
		break;
	}
	round_result(eval, node, n, out);
}

static void run_select(struct lane_eval *eval, struct node *node, uint32_t n, union cell *out)
{
	const struct node *condition = node->args[0];
	struct operand a = operand_of(eval, node, 1, node->is_float);
	struct operand b = operand_of(eval, node, 2, node->is_float);

	node->poisoned = false;
	if (condition->poisoned || node->args[1]->poisoned || node->args[2]->poisoned)
		node_poison(eval, node, n);
	for (uint32_t l = 0; l < n; l++) {
		bool taken = truth_at(condition, l);
		const struct node *chosen = node->args[taken ? 1 : 2];
		out[l] = taken ? A(l) : B(l);
		if (node->poisoned && condition->poisoned)
			node->poison[l] |= condition->poison[l * condition->varying];
		if (node->poisoned && chosen->poisoned)
			node->poison[l] |= chosen->poison[l * chosen->varying];
	}
}

static void run_cast(struct lane_eval *eval, struct node *node, uint32_t n, union cell *out)
{
	const struct node *arg = node->args[0];
	struct operand a = { arg->cells, arg->varying };

	merge_poison(eval, node, n);
	if (node->e->kind == EXPR_BITCAST)
		EACH(out[l] = cell_decode(node->e->type, cell_encode(arg->e->type, A(l))));
	else
		EACH(out[l] = cell_convert(A(l), arg->is_float, node->e->type, eval->exact));
}

static void run_math(struct lane_eval *eval, struct node *node, uint32_t n, union cell *out)
{
	enum math_fn fn = node->e->as.math;
	struct operand args[3];
	bool is_abs = fn == MATH_abs && !node->is_float;

	merge_poison(eval, node, n);
	for (uint32_t k = 0; k < 3; k++)
		args[k] = operand_of(eval, node, k < node->n_args ? k : 0, !is_abs);
	for (uint32_t l = 0; l < n; l++) {
		union cell a = args[0].cells[l * args[0].stride];
		union cell b = args[1].cells[l * args[1].stride];
		union cell c = args[2].cells[l * args[2].stride];
		if (is_abs)
			out[l].i = a.i < 0 ? (int64_t) - (uint64_t)a.i : a.i;
		else if (node->is_float)
			out[l].f = math_value(fn, a.f, b.f, c.f);
		else
			out[l].i = float_to_int(node->e->type, math_value(fn, a.f, b.f, c.f));
	}
	round_result(eval, node, n, out);
}

static void run_table(struct lane_eval *eval, struct node *node, uint32_t n, union cell *out)
{
	const struct int_table *table = node->e->as.table;
	struct operand a = operand_of(eval, node, 0, false);

	merge_poison(eval, node, n);
	for (uint32_t l = 0; l < n; l++) {
		bool inside = A(l).i >= 0 && (uint64_t)A(l).i < table->n;
		out[l].i = inside ? table->values[A(l).i] : 0;
		if (inside)
			continue;
		if (!node->poisoned)
			node_poison(eval, node, n);
		node->poison[l] |= POISON_BOUNDS;
	}
}

static void run_load(struct lane_eval *eval, struct node *node, uint32_t n, union cell *out)
{
	struct lanes index[MAX_ARGS];

	merge_poison(eval, node, n);
	for (uint32_t k = 0; k < node->n_args; k++)
		index[k] = node_lanes(node->args[k]);
	if (!node->poisoned)
		node_poison(eval, node, n);
	eval->loader.load(eval->loader.user,
	                  &(struct lane_load){ node->e, index, n, out, node->poison });
	node->poisoned = any_poison(node->poison, n);
}

static void run_unknown(struct lane_eval *eval, struct node *node, uint32_t n, union cell *out)
{
	uint8_t *poison = node_poison(eval, node, n);

	EACH(out[l].i = 0; poison[l] = POISON_UNKNOWN);
}

static void run_var(struct lane_eval *eval, struct node *node)
{
	const struct var_state *state;
	uint64_t changed;

	assert(node->e->as.var->id < eval->n_vars);
	state = &eval->vars[node->e->as.var->id];
	changed = state->changed;
	if (state->cells && eval->lanes_changed > changed)
		changed = eval->lanes_changed;
	if (node->changed == changed)
		return;
	node->changed = changed;
	node->varying = state->cells != NULL;
	node->one = state->one;
	node->cells = state->cells ? state->cells : &node->one;
	node->poisoned = false;
	if (state->is_unknown)
		node_poison(eval, node, 1)[0] = POISON_UNKNOWN;
}

/* Brings a node up to date; its operands are. */
static void update(struct lane_eval *eval, struct node *node)
{
	enum expr_kind kind = node->e->kind;
	bool is_load = kind == EXPR_LOAD || kind == EXPR_REG;
	bool varying = is_load && eval->loader.is_varying(eval->loader.user, node->e);
	uint64_t needed = is_load ? ++eval->tick : 1;
	union cell *out;
	uint32_t n;

	for (uint32_t k = 0; k < node->n_args; k++) {
		if (node->args[k]->changed > needed)
			needed = node->args[k]->changed;
		varying = varying || node->args[k]->varying;
	}
	if (node->changed == needed)
		return;
	node->changed = needed;
	out = node_output(eval, node, varying, &n);
	switch (kind) {
	case EXPR_INT:
	case EXPR_FLOAT:
	case EXPR_VAR:
		break;
	case EXPR_LOAD:
	case EXPR_REG:
		run_load(eval, node, n, out);
		break;
	case EXPR_UNARY:
		run_unary(eval, node, n, out);
		break;
	case EXPR_BINARY:
		run_binary(eval, node, n, out);
		break;
	case EXPR_SELECT:
		run_select(eval, node, n, out);
		break;
	case EXPR_CAST:
	case EXPR_BITCAST:
		run_cast(eval, node, n, out);
		break;
	case EXPR_MATH:
		run_math(eval, node, n, out);
		break;
	case EXPR_TABLE:
		run_table(eval, node, n, out);
		break;
	case EXPR_CALL:
		run_unknown(eval, node, n, out);
		break;
	}
}

/* ---- the interface ---- */

struct lane_eval *lane_eval_open(struct arena *arena, const struct expr_pool *pool,
                                 uint32_t max_lanes, bool exact, struct lane_loader loader)
{
	struct lane_eval *eval = arena_new(arena, struct lane_eval);

	assert(max_lanes > 0 && loader.load && loader.is_varying);
	eval->arena = arena;
	eval->n_vars = expr_n_vars(pool);
	eval->vars = arena_array(arena, struct var_state, eval->n_vars);
	eval->n_lanes = eval->max_lanes = max_lanes;
	eval->exact = exact;
	eval->loader = loader;
	eval->tick = 1;
	for (uint32_t i = 0; i < eval->n_vars; i++)
		eval->vars[i].changed = 1;
	for (uint32_t k = 0; k < 3; k++)
		eval->converted[k] = arena_array(arena, union cell, max_lanes);
	return eval;
}

void lane_eval_set_lanes(struct lane_eval *eval, uint32_t n_lanes)
{
	assert(n_lanes > 0 && n_lanes <= eval->max_lanes);
	if (n_lanes == eval->n_lanes)
		return;
	eval->n_lanes = n_lanes;
	eval->lanes_changed = ++eval->tick;
}

uint32_t lane_eval_n_lanes(const struct lane_eval *eval)
{
	return eval->n_lanes;
}

void lane_eval_set(struct lane_eval *eval, const struct var *var, union cell value)
{
	struct var_state *state = &eval->vars[var->id];

	assert(var->id < eval->n_vars);
	if (!state->cells && !state->is_unknown && state->one.i == value.i)
		return;
	state->is_unknown = false;
	state->cells = NULL;
	state->one = value;
	state->changed = ++eval->tick;
}

void lane_eval_set_int(struct lane_eval *eval, const struct var *var, int64_t value)
{
	lane_eval_set(eval, var, (union cell){ .i = value });
}

void lane_eval_set_lane_values(struct lane_eval *eval, const struct var *var,
                               const union cell *cells)
{
	struct var_state *state = &eval->vars[var->id];

	assert(var->id < eval->n_vars && cells);
	state->cells = cells;
	state->is_unknown = false;
	state->changed = ++eval->tick;
}

void lane_eval_set_unknown(struct lane_eval *eval, const struct var *var)
{
	lane_eval_set_int(eval, var, 0);
	eval->vars[var->id].is_unknown = true;
	eval->vars[var->id].changed = ++eval->tick;
}

struct lanes lane_eval_run(struct lane_eval *eval, const struct expr *e)
{
	struct node *root = node_of(eval, e);

	if (!root->code)
		build_code(eval, root);
	for (uint32_t i = 0; i < root->n_code; i++)
		if (root->code[i]->e->kind == EXPR_VAR)
			run_var(eval, root->code[i]);
		else
			update(eval, root->code[i]);
	return node_lanes(root);
}

int64_t lane_eval_int(struct lane_eval *eval, const struct expr *e)
{
	struct lanes lanes = lane_eval_run(eval, e);

	return lanes.is_float ? (int64_t)lanes.cells[0].f : lanes.cells[0].i;
}

static int64_t combine_ints(enum atomic_kind kind, bool is_signed, int64_t old, int64_t value)
{
	bool is_less = is_signed ? value < old : (uint64_t)value < (uint64_t)old;

	switch (kind) {
	case ATOMIC_ADD:
		return (int64_t)((uint64_t)old + (uint64_t)value);
	case ATOMIC_MAX:
		return is_less ? old : value;
	case ATOMIC_MIN:
		return is_less ? value : old;
	case ATOMIC_OR:
		return old | value;
	case ATOMIC_NONE:
	case ATOMIC_STORE:
		break;
	}
	return value;
}

static double combine_floats(enum atomic_kind kind, double old, double value)
{
	switch (kind) {
	case ATOMIC_ADD:
		return old + value;
	case ATOMIC_MAX:
		return fmax(old, value);
	case ATOMIC_MIN:
		return fmin(old, value);
	case ATOMIC_OR:
		BUG("a bitwise atomic on floating numbers");
	case ATOMIC_NONE:
	case ATOMIC_STORE:
		break;
	}
	return value;
}

union cell cell_combine(struct dtype type, enum atomic_kind kind, union cell old, union cell value)
{
	union cell cell;
	bool is_float = dtype_is_float(type);

	if (is_float)
		cell.f = combine_floats(kind, old.f, value.f);
	else
		cell.i = combine_ints(kind, type.kind == TYPE_INT, old.i, value.i);
	return cell_convert(cell, is_float, type, false);
}
