/*
 * The pool of expressions, leaves, operand types, casts, and the constructors that hand over to the
 * simplifiers of each operator group.
 *
 * Expressions are hash-consed: two with the same operator, type and operands are one object, so
 * that equality is a comparison of pointers, shared parts exist once, and facts (range, divisor,
 * order) are worked out once. The pool never shrinks; it lives in the compilation's arena.
 */
#include "analyzer/tile/expr_internal.h"

#include <math.h>
#include <string.h>

/* n_slots is a power of two; the table is replaced as it fills. */
struct expr_pool *expr_pool_open(struct cx *cx)
{
	struct expr_pool *pool = arena_new(cx->arena, struct expr_pool);
	pool->cx = cx;
	pool->arena = cx->arena;
	pool->n_slots = 1024;
	pool->slots = arena_array(pool->arena, const struct expr *, pool->n_slots);
	return pool;
}

struct arena *expr_pool_arena(const struct expr_pool *pool)
{
	return pool->arena;
}

/* ---- hash-consing ---- */

/* What is special to the kind, as one word: the union is zeroed before its member is set. */
static uint64_t payload_bits(const struct expr *e)
{
	uint64_t bits;
	memcpy(&bits, &e->as, sizeof(bits));
	return bits;
}

/*
 * Hash of everything that makes two expressions equal. Variables and tables count by id, so that
 * probing goes the same way in every run.
 */
static uint32_t hash_key(const struct expr *key)
{
	uint64_t type =
		(uint64_t)key->type.kind << 24 | (uint64_t)key->type.bits << 16 | key->type.lanes;
	uint64_t payload = payload_bits(key);
	/* Pointers would make the table's order differ between runs; ids do not. */
	if (key->kind == EXPR_VAR)
		payload = key->as.var->id;
	else if (key->kind == EXPR_TABLE)
		payload = key->as.table->id;
	uint64_t hash = hash_mix((uint64_t)key->kind << 32 | type, payload);
	for (uint32_t i = 0; i < key->n_args; i++)
		hash = hash_mix(hash, key->args[i]->id);
	return (uint32_t)(hash ^ hash >> 32);
}

/* Operands are hash-consed themselves, so comparing their pointers compares their trees. */
static bool same_key(const struct expr *a, const struct expr *b)
{
	return a->hash == b->hash && a->kind == b->kind && a->n_args == b->n_args &&
	       dtype_equal(a->type, b->type) && payload_bits(a) == payload_bits(b) &&
	       (a->n_args == 0 || memcmp(a->args, b->args, a->n_args * sizeof(a->args[0])) == 0);
}

/* Doubles the hash table; the old one stays behind in the arena. */
static void grow_slots(struct expr_pool *pool)
{
	uint32_t n = pool->n_slots * 2;
	const struct expr **slots = arena_array(pool->arena, const struct expr *, n);
	for (uint32_t i = 0; i < pool->n_slots; i++) {
		const struct expr *e = pool->slots[i];
		if (!e)
			continue;
		uint32_t at = e->hash & (n - 1);
		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = e;
	}
	pool->slots = slots;
	pool->n_slots = n;
}

/* Linear probing; the table is at most half full, so an empty slot ends every search. */
const struct expr *expr_intern(struct expr_pool *pool, const struct expr *key)
{
	struct expr probe = *key;
	probe.hash = hash_key(key);
	uint32_t at = probe.hash & (pool->n_slots - 1);
	while (pool->slots[at] && !same_key(pool->slots[at], &probe))
		at = (at + 1) & (pool->n_slots - 1);
	if (pool->slots[at])
		return pool->slots[at];
	struct expr *e = arena_new(pool->arena, struct expr);
	*e = probe;
	e->id = pool->n_exprs++;
	if (key->n_args > 0) {
		const struct expr **args = arena_array(pool->arena, const struct expr *, key->n_args);
		memcpy(args, key->args, key->n_args * sizeof(key->args[0]));
		e->args = args;
	}
	expr_set_facts(e);
	expr_set_order(pool, e);
	pool->slots[at] = e;
	if (pool->n_exprs * 2 > pool->n_slots)
		grow_slots(pool);
	return e;
}

/* A probe for expr_intern; the caller sets the union's member. */
static struct expr new_key(enum expr_kind kind, struct dtype type, const struct expr *const *args,
                           uint32_t n)
{
	struct expr key;
	memset(&key, 0, sizeof(key));
	key.kind = kind;
	key.type = type;
	key.args = args;
	key.n_args = n;
	return key;
}

/* Without simplifying: for simplifiers, which have done that. */
const struct expr *expr_raw_unary(struct expr_pool *pool, enum unary_op op, struct dtype type,
                                  const struct expr *a)
{
	struct expr key = new_key(EXPR_UNARY, type, &a, 1);
	key.as.unary = op;
	return expr_intern(pool, &key);
}

/* The operands have one type already; comparisons and logic give bool with as many lanes. */
const struct expr *expr_raw_binary(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                                   const struct expr *b)
{
	const struct expr *args[2] = { a, b };
	struct dtype type = a->type;
	assert(dtype_equal(a->type, b->type));
	if (is_comparison(op) || op == BIN_AND || op == BIN_OR) {
		type = DTYPE_BOOL;
		type.lanes = a->type.lanes;
	}
	struct expr key = new_key(EXPR_BINARY, type, args, 2);
	key.as.binary = op;
	return expr_intern(pool, &key);
}

/* ---- variables and tables ---- */

/* The range by kind is what holds for any launch: indices start at 0, sizes at 1. */
struct var *expr_new_var(struct expr_pool *pool, enum var_kind kind, sym_t name, struct dtype type)
{
	struct var *var = arena_new(pool->arena, struct var);
	struct bounds bounds = bounds_of_type(type);
	var->name = name;
	var->id = pool->vars.n;
	var->kind = kind;
	var->type = type;
	var->min = bounds.min;
	var->max = bounds.max;
	var->divisor = 1;
	switch (kind) {
	case VAR_BLOCK:
	case VAR_THREAD:
	case VAR_LOOP:
		var->min = 0;
		break;
	case VAR_SYMBOL:
		var->min = 1;
		break;
	case VAR_PARAM:
	case VAR_LET:
		break;
	}
	vec_push(pool->arena, &pool->vars, var);
	return var;
}

uint32_t expr_n_vars(const struct expr_pool *pool)
{
	return pool->vars.n;
}

const struct var *expr_var_by_id(const struct expr_pool *pool, uint32_t id)
{
	assert(id < pool->vars.n);
	return pool->vars.p[id];
}

/*
 * Least, greatest and common divisor are worked out here, so that ranges need not read the table.
 * The values are copied.
 */
const struct int_table *expr_new_table(struct expr_pool *pool, const int64_t *values, uint64_t n)
{
	struct int_table *table;
	int64_t *copy;

	assert(n > 0);
	for (uint32_t i = 0; i < pool->tables.n; i++)
		if (pool->tables.p[i]->n == n &&
		    memcmp(pool->tables.p[i]->values, values, n * sizeof(values[0])) == 0)
			return pool->tables.p[i];
	table = arena_new(pool->arena, struct int_table);
	copy = arena_array(pool->arena, int64_t, n);
	memcpy(copy, values, n * sizeof(values[0]));
	table->id = pool->tables.n;
	table->name = arena_printf(pool->arena, "tab%u", (unsigned)table->id);
	table->values = copy;
	table->n = n;
	table->min = table->max = copy[0];
	for (uint64_t i = 0; i < n; i++) {
		table->min = copy[i] < table->min ? copy[i] : table->min;
		table->max = copy[i] > table->max ? copy[i] : table->max;
		table->divisor = gcd_int(table->divisor, copy[i]);
	}
	vec_push(pool->arena, &pool->tables, table);
	return table;
}

/* ---- leaves ---- */

/* Does the value survive being stored as the type? */
bool int_fits(struct dtype type, int64_t value)
{
	return dtype_decode_int(type, dtype_encode_int(type, value)) == value;
}

/* A value that does not fit is a bug of the caller's; expr_int_typed wraps around. */
const struct expr *expr_int_exact(struct expr_pool *pool, struct dtype type, int64_t value)
{
	struct expr key = new_key(EXPR_INT, type, NULL, 0);
	assert(dtype_is_int(type) && int_fits(type, value));
	key.as.integer = value;
	return expr_intern(pool, &key);
}

/* Wraps around to the type's width; a float type makes a float, any other int64. */
const struct expr *expr_int_typed(struct expr_pool *pool, struct dtype type, int64_t value)
{
	if (dtype_is_float(type))
		return expr_float(pool, type, dtype_decode(type, dtype_encode_int(type, value)));
	if (!dtype_is_int(type))
		type = DTYPE_I64;
	return expr_int_exact(pool, type, dtype_decode_int(type, dtype_encode_int(type, value)));
}

/* int32 where it fits, else int64: the types that Python's literals take in the language. */
const struct expr *expr_int(struct expr_pool *pool, int64_t value)
{
	bool fits = value >= INT32_MIN && value <= INT32_MAX;
	return expr_int_exact(pool, fits ? DTYPE_I32 : DTYPE_I64, value);
}

const struct expr *expr_bool(struct expr_pool *pool, bool value)
{
	return expr_int_exact(pool, DTYPE_BOOL, value);
}

/* All NaNs are one: which bits a NaN has is never looked at. */
const struct expr *expr_float(struct expr_pool *pool, struct dtype type, double value)
{
	struct expr key = new_key(EXPR_FLOAT, type, NULL, 0);
	assert(dtype_is_float(type));
	value = dtype_round(type, value);
	key.as.number = isnan(value) ? (double)NAN : value;
	return expr_intern(pool, &key);
}

/* A variable with one value only is that constant. */
const struct expr *expr_of_var(struct expr_pool *pool, const struct var *var)
{
	struct expr key = new_key(EXPR_VAR, var->type, NULL, 0);
	if (dtype_is_int(var->type) && var->min == var->max && int_fits(var->type, var->min))
		return expr_int_exact(pool, var->type, var->min);
	key.as.var = var;
	return expr_intern(pool, &key);
}

/* Not simplified: memory changes between two loads of one element. */
const struct expr *expr_load(struct expr_pool *pool, const struct buffer *buffer, struct dtype type,
                             const struct expr *const *index, uint32_t n)
{
	struct expr key = new_key(EXPR_LOAD, type, index, n);
	key.as.buffer = buffer;
	return expr_intern(pool, &key);
}

/* A register of a warp program; `index` is its slot. */
const struct expr *expr_reg(struct expr_pool *pool, const struct wreg *reg, struct dtype type,
                            const struct expr *index)
{
	struct expr key = new_key(EXPR_REG, type, &index, 1);
	key.as.reg = reg;
	return expr_intern(pool, &key);
}

/* A constant index inside the table gives the value itself. */
const struct expr *expr_table(struct expr_pool *pool, const struct int_table *table,
                              const struct expr *index)
{
	bool narrow = int_fits(DTYPE_I32, table->min) && int_fits(DTYPE_I32, table->max);
	struct dtype type = narrow ? DTYPE_I32 : DTYPE_I64;
	struct expr key = new_key(EXPR_TABLE, type, &index, 1);
	int64_t at;
	if (expr_is_int(index, &at) && at >= 0 && (uint64_t)at < table->n)
		return expr_int_exact(pool, type, table->values[at]);
	key.as.table = table;
	return expr_intern(pool, &key);
}

/* A function that is only named: of its value nothing is known but the type. */
const struct expr *expr_call(struct expr_pool *pool, struct dtype type, sym_t callee,
                             const struct expr *const *args, uint32_t n)
{
	struct expr key = new_key(EXPR_CALL, type, args, n);
	key.as.callee = callee;
	return expr_intern(pool, &key);
}

bool expr_is_int(const struct expr *e, int64_t *value)
{
	if (e->kind != EXPR_INT)
		return false;
	if (value)
		*value = e->as.integer;
	return true;
}

/* NULL counts as a condition that always holds. */
bool expr_is_true(const struct expr *e)
{
	return !e || (e->kind == EXPR_INT && e->as.integer != 0);
}

bool expr_is_int_binary(const struct expr *e, enum binary_op op)
{
	return e->kind == EXPR_BINARY && e->as.binary == op && dtype_is_int(e->args[0]->type);
}

/* Is it `x op constant`? The constant stands to the right in simplified expressions. */
bool expr_match_const(const struct expr *e, enum binary_op op, int64_t *constant)
{
	return expr_is_int_binary(e, op) && expr_is_int(e->args[1], constant);
}

bool is_comparison(enum binary_op op)
{
	return op >= BIN_EQ && op <= BIN_GE;
}

/* ---- casts ---- */

/* Does every value of `from` survive in `to`? Both floating, or both integers. */
static bool is_widening(struct dtype from, struct dtype to)
{
	if (from.lanes != to.lanes)
		return false;
	if (dtype_is_int(from) && dtype_is_int(to)) {
		if (from.kind == TYPE_BOOL)
			return true;
		if (from.kind == to.kind)
			return to.bits >= from.bits;
		return from.kind == TYPE_UINT && to.kind == TYPE_INT && to.bits > from.bits;
	}
	if (!dtype_is_float(from) || to.kind != TYPE_FLOAT)
		return false;
	return to.bits > from.bits || (to.bits == from.bits && from.kind == TYPE_TFLOAT);
}

/*
 * The constant converted, or NULL. Floats beyond 2^53 stay casts when they go to integers: C leaves
 * the result open when it does not fit, so the device decides.
 */
static const struct expr *cast_constant(struct expr_pool *pool, struct dtype type,
                                        const struct expr *a)
{
	if (type.lanes != 1)
		return NULL;
	if (a->kind == EXPR_INT && (dtype_is_int(type) || dtype_is_float(type)))
		return expr_int_typed(pool, type, a->as.integer);
	if (a->kind != EXPR_FLOAT)
		return NULL;
	if (dtype_is_float(type))
		return expr_float(pool, type, a->as.number);
	if (dtype_is_int(type) && fabs(a->as.number) < 9e15)
		return expr_int_typed(pool, type, dtype_decode_int(type, dtype_encode(type, a->as.number)));
	return NULL;
}

/* The value before a widening cast that this one undoes or extends. */
static const struct expr *cast_of_cast(struct expr_pool *pool, struct dtype type,
                                       const struct expr *a)
{
	if (a->kind != EXPR_CAST || !is_widening(a->args[0]->type, a->type))
		return NULL;
	struct dtype inner = a->args[0]->type;
	if (dtype_equal(inner, type) || (dtype_is_int(inner) && dtype_is_int(type)) ||
	    (dtype_is_float(inner) && dtype_is_float(type)))
		return expr_cast(pool, type, a->args[0]);
	return NULL;
}

/*
 * In this order: constants, a cast that undoes or extends a widening one, integer to bool as a
 * comparison with 0, else a CAST node.
 */
const struct expr *expr_cast(struct expr_pool *pool, struct dtype type, const struct expr *a)
{
	struct expr key = new_key(EXPR_CAST, type, &a, 1);
	if (dtype_equal(type, a->type))
		return a;
	const struct expr *simple = cast_constant(pool, type, a);
	if (!simple && a->depth <= MAX_SIMPLIFY_DEPTH)
		simple = cast_of_cast(pool, type, a);
	if (!simple && type.kind == TYPE_BOOL && type.lanes == 1 && dtype_is_int(a->type))
		simple = expr_binary(pool, BIN_NE, a, expr_int_exact(pool, a->type, 0));
	return simple ? simple : expr_intern(pool, &key);
}

/* The same bits as another type: of two in a row the inner one does not matter. */
const struct expr *expr_bitcast(struct expr_pool *pool, struct dtype type, const struct expr *a)
{
	if (a->kind == EXPR_BITCAST)
		a = a->args[0];
	if (dtype_equal(type, a->type))
		return a;
	struct expr key = new_key(EXPR_BITCAST, type, &a, 1);
	return expr_intern(pool, &key);
}

/* ---- operand types ---- */

/* The wider one; float16 and bfloat16 meet in float32. */
static struct dtype promote_floats(struct dtype a, struct dtype b)
{
	if (a.bits != b.bits)
		return a.bits > b.bits ? a : b;
	return a.kind == b.kind ? a : DTYPE_F32;
}

/* As in C, except that types below 32 bits stay as narrow as the wider of the two. */
static struct dtype promote_ints(struct dtype a, struct dtype b)
{
	if (a.kind == TYPE_BOOL)
		a = DTYPE_I32;
	if (b.kind == TYPE_BOOL)
		b = DTYPE_I32;
	if (a.bits != b.bits)
		return a.bits > b.bits ? a : b;
	return a.kind == TYPE_UINT ? a : b;
}

/* Floating beats integer, whatever their widths. Lanes: a scalar joins a vector. */
static struct dtype promote(struct dtype a, struct dtype b)
{
	struct dtype type = a;
	if (dtype_is_float(a) && dtype_is_float(b))
		type = promote_floats(a, b);
	else if (dtype_is_int(a) && dtype_is_int(b))
		type = promote_ints(a, b);
	else if (dtype_is_float(b))
		type = b;
	type.lanes = a.lanes > b.lanes ? a.lanes : b.lanes;
	return type;
}

/* The one type to which both operands of `op` are brought. */
static struct dtype operand_type(enum binary_op op, struct dtype a, struct dtype b)
{
	bool bools = a.kind == TYPE_BOOL && b.kind == TYPE_BOOL;
	struct dtype type = promote(a, b);
	if (op == BIN_AND || op == BIN_OR)
		type = (struct dtype){ TYPE_BOOL, 8, type.lanes };
	else if (bools && (op == BIN_EQ || op == BIN_NE || (op >= BIN_BITAND && op <= BIN_BITXOR)))
		type = (struct dtype){ TYPE_BOOL, 8, type.lanes };
	else if (op == BIN_DIV && dtype_is_int(type))
		type = (struct dtype){ TYPE_FLOAT, 32, type.lanes };
	return type;
}

/* To the simplifier of the operator's group. */
static const struct expr *binary_of_ints(struct expr_pool *pool, enum binary_op op,
                                         const struct expr *a, const struct expr *b)
{
	switch (op) {
	case BIN_ADD:
	case BIN_SUB:
		return make_sum(pool, op, a, b);
	case BIN_MUL:
		return make_mul(pool, a, b);
	case BIN_FLOORDIV:
		return make_floordiv(pool, a, b);
	case BIN_FLOORMOD:
		return make_floormod(pool, a, b);
	case BIN_TRUNCDIV:
	case BIN_TRUNCMOD:
		return make_trunc(pool, op, a, b);
	case BIN_MIN:
	case BIN_MAX:
		return make_min_max(pool, op, a, b);
	case BIN_BITAND:
	case BIN_BITOR:
	case BIN_BITXOR:
		return make_bits(pool, op, a, b);
	case BIN_SHL:
	case BIN_SHR:
		return make_shift(pool, op, a, b);
	case BIN_EQ:
	case BIN_NE:
	case BIN_LT:
	case BIN_LE:
	case BIN_GT:
	case BIN_GE:
		return make_compare(pool, op, a, b);
	case BIN_AND:
	case BIN_OR:
		return make_logic(pool, op, a, b);
	case BIN_DIV:
	case N_BINARY_OPS:
		break;
	}
	BUG("operator %d on integers", (int)op);
}

/*
 * Vectors, handles and expressions deeper than MAX_SIMPLIFY_DEPTH are built as they stand: the
 * simplifiers recurse with the depth of their operands.
 */
const struct expr *expr_binary(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                               const struct expr *b)
{
	struct dtype type = operand_type(op, a->type, b->type);
	a = expr_cast(pool, type, a);
	b = expr_cast(pool, type, b);
	uint32_t depth = a->depth > b->depth ? a->depth : b->depth;
	if (depth > MAX_SIMPLIFY_DEPTH || type.lanes != 1)
		return expr_raw_binary(pool, op, a, b);
	if (dtype_is_float(type))
		return make_float(pool, op, a, b);
	if (!dtype_is_int(type))
		return expr_raw_binary(pool, op, a, b);
	return binary_of_ints(pool, op, a, b);
}

/* Double negation cancels; bools are negated as int32, as in Python. */
const struct expr *expr_unary(struct expr_pool *pool, enum unary_op op, const struct expr *a)
{
	struct dtype bool_type = { TYPE_BOOL, 8, a->type.lanes };
	if (op == UN_NOT)
		a = expr_cast(pool, bool_type, a);
	else if (a->type.kind == TYPE_BOOL)
		a = expr_cast(pool, (struct dtype){ TYPE_INT, 32, a->type.lanes }, a);
	if (a->depth > MAX_SIMPLIFY_DEPTH || a->type.lanes != 1)
		return expr_raw_unary(pool, op, a->type, a);
	if (op == UN_NOT)
		return make_not(pool, a);
	if (op == UN_NEG && a->kind == EXPR_FLOAT)
		return expr_float(pool, a->type, -a->as.number);
	if (op == UN_NEG && dtype_is_int(a->type))
		return make_neg(pool, a);
	if (op == UN_BITNOT && a->kind == EXPR_INT)
		return expr_int_typed(pool, a->type, ~a->as.integer);
	if (a->kind == EXPR_UNARY && a->as.unary == op)
		return a->args[0];
	return expr_raw_unary(pool, op, a->type, a);
}

/* ---- functions ---- */

/* A row of math.def. */
struct math_info {
	const char *name;
	int arity;
	bool gives_bool;
};

enum { RESULT_SAME = 0, RESULT_BOOL = 1 };

static const struct math_info math_table[N_MATH_FNS] = {
#define MATH(name, arity, result, c) { #name, arity, RESULT_##result },
#include "analyzer/tile/math.def"
#undef MATH
};

/* Rounding functions of constants, which are exact. */
static const struct expr *fold_math(struct expr_pool *pool, enum math_fn fn, const struct expr *a)
{
	double value;
	if (a->kind != EXPR_FLOAT || math_table[fn].arity != 1)
		return NULL;
	if (fn == MATH_abs)
		value = fabs(a->as.number);
	else if (fn == MATH_floor)
		value = floor(a->as.number);
	else if (fn == MATH_ceil)
		value = ceil(a->as.number);
	else if (fn == MATH_trunc)
		value = trunc(a->as.number);
	else
		return NULL;
	return expr_float(pool, a->type, value);
}

/* Arguments are brought to one type as operands are: fma(x16, y32, 1) works in float32. */
const struct expr *expr_math(struct expr_pool *pool, enum math_fn fn,
                             const struct expr *const *args, uint32_t n)
{
	const struct expr *same[3];
	assert(n == (uint32_t)math_table[fn].arity && n <= 3);
	struct dtype type = args[0]->type;
	for (uint32_t i = 1; i < n; i++)
		type = promote(type, args[i]->type);
	if (type.kind == TYPE_BOOL)
		type = DTYPE_I32;
	for (uint32_t i = 0; i < n; i++)
		same[i] = expr_cast(pool, type, args[i]);
	const struct expr *folded = fold_math(pool, fn, same[0]);
	if (folded)
		return folded;
	if (math_table[fn].gives_bool)
		type = (struct dtype){ TYPE_BOOL, 8, type.lanes };
	struct expr key = new_key(EXPR_MATH, type, same, n);
	key.as.math = fn;
	return expr_intern(pool, &key);
}

const char *math_fn_name(enum math_fn fn)
{
	return math_table[fn].name;
}

/* Operands that the function takes, 1 to 3. */
int math_fn_arity(enum math_fn fn)
{
	return math_table[fn].arity;
}

bool math_fn_find(const char *name, enum math_fn *fn)
{
	for (int i = 0; i < N_MATH_FNS; i++) {
		if (strcmp(math_table[i].name, name) == 0) {
			*fn = (enum math_fn)i;
			return true;
		}
	}
	return false;
}

/* Operators as Python writes them; those without one are names of functions. */
const char *binary_op_text(enum binary_op op)
{
	static const char *const texts[N_BINARY_OPS] = {
		[BIN_ADD] = "+",
		[BIN_SUB] = "-",
		[BIN_MUL] = "*",
		[BIN_DIV] = "/",
		[BIN_FLOORDIV] = "//",
		[BIN_FLOORMOD] = "%",
		[BIN_TRUNCDIV] = "truncdiv",
		[BIN_TRUNCMOD] = "truncmod",
		[BIN_MIN] = "min",
		[BIN_MAX] = "max",
		[BIN_BITAND] = "&",
		[BIN_BITOR] = "|",
		[BIN_BITXOR] = "^",
		[BIN_SHL] = "<<",
		[BIN_SHR] = ">>",
		[BIN_EQ] = "==",
		[BIN_NE] = "!=",
		[BIN_LT] = "<",
		[BIN_LE] = "<=",
		[BIN_GT] = ">",
		[BIN_GE] = ">=",
		[BIN_AND] = "and",
		[BIN_OR] = "or",
	};
	assert(op < N_BINARY_OPS);
	return texts[op];
}

/* ---- select and shorthand ---- */

/* A select between the two truth values is the condition itself or its negation. */
const struct expr *expr_select(struct expr_pool *pool, const struct expr *condition,
                               const struct expr *then, const struct expr *otherwise)
{
	int64_t value;
	struct dtype type = then->type;
	if (!dtype_equal(then->type, otherwise->type))
		type = promote(then->type, otherwise->type);
	condition = expr_cast(pool, (struct dtype){ TYPE_BOOL, 8, condition->type.lanes }, condition);
	then = expr_cast(pool, type, then);
	otherwise = expr_cast(pool, type, otherwise);
	if (expr_is_int(condition, &value))
		return value ? then : otherwise;
	if (then == otherwise)
		return then;
	if (condition->kind == EXPR_UNARY && condition->as.unary == UN_NOT)
		return expr_select(pool, condition->args[0], otherwise, then);
	if (type.kind == TYPE_BOOL && type.lanes == 1 && then->kind == EXPR_INT &&
	    otherwise->kind == EXPR_INT)
		return expr_is_true(then) ? condition : expr_unary(pool, UN_NOT, condition);
	const struct expr *args[3] = { condition, then, otherwise };
	struct expr key = new_key(EXPR_SELECT, type, args, 3);
	return expr_intern(pool, &key);
}

const struct expr *expr_add(struct expr_pool *pool, const struct expr *a, const struct expr *b)
{
	return expr_binary(pool, BIN_ADD, a, b);
}

const struct expr *expr_sub(struct expr_pool *pool, const struct expr *a, const struct expr *b)
{
	return expr_binary(pool, BIN_SUB, a, b);
}

const struct expr *expr_mul_int(struct expr_pool *pool, const struct expr *a, int64_t factor)
{
	return expr_binary(pool, BIN_MUL, a, expr_int(pool, factor));
}

const struct expr *expr_add_int(struct expr_pool *pool, const struct expr *a, int64_t term)
{
	return expr_binary(pool, BIN_ADD, a, expr_int(pool, term));
}

const struct expr *expr_div_int(struct expr_pool *pool, const struct expr *a, int64_t divisor)
{
	return expr_binary(pool, BIN_FLOORDIV, a, expr_int(pool, divisor));
}

const struct expr *expr_mod_int(struct expr_pool *pool, const struct expr *a, int64_t divisor)
{
	return expr_binary(pool, BIN_FLOORMOD, a, expr_int(pool, divisor));
}

const struct expr *expr_xor(struct expr_pool *pool, const struct expr *a, const struct expr *b)
{
	return expr_binary(pool, BIN_BITXOR, a, b);
}

const struct expr *expr_lt(struct expr_pool *pool, const struct expr *a, const struct expr *b)
{
	return expr_binary(pool, BIN_LT, a, b);
}

/* Either side may be NULL, for no condition. */
const struct expr *expr_and(struct expr_pool *pool, const struct expr *a, const struct expr *b)
{
	if (!a || !b)
		return a ? a : b;
	return expr_binary(pool, BIN_AND, a, b);
}
