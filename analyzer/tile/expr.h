/*
 * expr: the one expression form of tile programs, layouts and warp programs.
 *
 * Expressions are immutable and hash-consed in a pool: two expressions are the same object
 * exactly when they are structurally equal, so equality is `==` and memo tables key on `id`.
 * Constructors simplify: constants fold, integer sums are kept as a canonical
 * c0 + c1*x1 + c2*x2 ..., floor division and modulo are reduced with the ranges and
 * divisors of their variables ((4*a + b) // 4 is a when 0 <= b < 4), comparisons that the ranges
 * decide fold to a constant. Integer arithmetic is exact in int64 (overflow gives up simplifying,
 * never wraps).
 *
 * Integer `//` and `%` are Python's (floor); TRUNCDIV and TRUNCMOD are C's.
 */
#ifndef TL_TILE_EXPR_H
#define TL_TILE_EXPR_H

#include "analyzer/tile/types.h"
#include "base/diag.h"
#include "base/map.h"

struct buffer;
struct wreg;

enum var_kind {
	VAR_BLOCK,  /* blockIdx.x, .y, .z: `axis` tells which */
	VAR_THREAD, /* threadIdx.x, .y, .z (tile level); the flat thread number in warp programs (axis
	               3) */
	VAR_LOOP,
	VAR_SYMBOL, /* a size known at launch (T.dynamic); range 1.. unless assumed otherwise */
	VAR_PARAM,  /* a scalar kernel parameter */
	VAR_LET,    /* a scalar bound once by a LET statement */
};

struct var {
	sym_t name;
	uint32_t id; /* dense in its pool: index of evaluation environments */
	enum var_kind kind;
	int axis;
	struct dtype type;
	int64_t min, max; /* inclusive; INT64_MIN / INT64_MAX when not known */
	int64_t divisor;  /* the value is a multiple of this (1 when nothing is known) */
	struct span span;
};

enum expr_kind {
	EXPR_INT, /* integer or bool constant */
	EXPR_FLOAT,
	EXPR_VAR,
	EXPR_LOAD, /* buffer[index...]: tile programs only */
	EXPR_REG,  /* register array element: warp programs only */
	EXPR_UNARY,
	EXPR_BINARY,
	EXPR_SELECT, /* condition, then, else: only the chosen side is evaluated */
	EXPR_CAST,   /* numeric conversion to `type` */
	EXPR_BITCAST,
	EXPR_MATH,  /* function of math.def */
	EXPR_TABLE, /* table[index]: a layout or map that has no closed form */
	EXPR_CALL,  /* named builtin that is none of these (T.call_extern, shuffles, clocks) */
};

enum unary_op { UN_NEG, UN_NOT /* logical */, UN_BITNOT, N_UNARY_OPS };

enum binary_op {
	BIN_ADD,
	BIN_SUB,
	BIN_MUL,
	BIN_DIV, /* floating division */
	BIN_FLOORDIV,
	BIN_FLOORMOD,
	BIN_TRUNCDIV,
	BIN_TRUNCMOD,
	BIN_MIN,
	BIN_MAX,
	BIN_BITAND,
	BIN_BITOR,
	BIN_BITXOR,
	BIN_SHL,
	BIN_SHR,
	BIN_EQ,
	BIN_NE,
	BIN_LT,
	BIN_LE,
	BIN_GT,
	BIN_GE,
	BIN_AND,
	BIN_OR, /* logical, short-circuit */
	N_BINARY_OPS
};

enum math_fn {
#define MATH(name, arity, result, c) MATH_##name,
#include "analyzer/tile/math.def"
#undef MATH
	N_MATH_FNS
};

enum { MAX_RANK = 8 };

/* A constant table that expressions and layouts index. */
struct int_table {
	const char *name; /* unique in its pool: tab0, tab1, ... */
	uint32_t id;
	const int64_t *values;
	uint64_t n;
	int64_t min, max;
	int64_t divisor; /* of all values; 0 when all are 0 */
};

struct expr {
	enum expr_kind kind;
	uint32_t id; /* dense in its pool */
	struct dtype type;
	uint32_t n_args;
	const struct expr *const *args; /* operands; indices for LOAD, REG and TABLE */
	union {
		int64_t integer;
		double number;
		const struct var *var;
		const struct buffer *buffer;
		const struct wreg *reg;
		enum unary_op unary;
		enum binary_op binary;
		enum math_fn math;
		const struct int_table *table;
		sym_t callee;
	} as;
	/*
	 * What the pool works out once. Limits for whoever takes expressions from users: operands
	 * may be shared, so a small depth can print as a text of n_nodes words.
	 */
	int64_t min, max, divisor; /* of integers; read them through expr_bounds and expr_divisor */
	uint64_t var_mask;         /* bit id % 64 of every variable inside */
	uint32_t depth;            /* 1 for leaves; above 200 nothing is simplified any more */
	uint32_t n_nodes;          /* size as a tree; UINT32_MAX: that or more */
	uint32_t hash;
	uint64_t lead, shape_hash; /* order of operands that commute (expr_order.c) */
	bool is_index;             /* fit for expr_eval_int: integers, no LOAD, REG, MATH, CALL */
};

struct expr_pool;

/* Lives in cx->arena. */
struct expr_pool *expr_pool_open(struct cx *cx);
struct arena *expr_pool_arena(const struct expr_pool *pool); /* where its expressions live */
/*
 * Range 0.. for BLOCK, THREAD and LOOP, 1.. for SYMBOL, else that of the type. Set min, max and
 * divisor before the variable is used: expressions remember what they were built with.
 */
struct var *expr_new_var(struct expr_pool *pool, enum var_kind kind, sym_t name, struct dtype type);
uint32_t expr_n_vars(const struct expr_pool *pool);
const struct var *expr_var_by_id(const struct expr_pool *pool, uint32_t id);

const struct expr *expr_int(struct expr_pool *pool,
                            int64_t value); /* int32 when it fits, else int64 */
/* The value wraps around to the type; floating types give a float constant. */
const struct expr *expr_int_typed(struct expr_pool *pool, struct dtype type, int64_t value);
const struct expr *expr_bool(struct expr_pool *pool, bool value);
const struct expr *expr_float(struct expr_pool *pool, struct dtype type, double value);
const struct expr *expr_of_var(struct expr_pool *pool, const struct var *var);
const struct expr *expr_load(struct expr_pool *pool, const struct buffer *buffer, struct dtype type,
                             const struct expr *const *index, uint32_t n);
const struct expr *expr_reg(struct expr_pool *pool, const struct wreg *reg, struct dtype type,
                            const struct expr *index);
const struct expr *expr_unary(struct expr_pool *pool, enum unary_op op, const struct expr *a);
/*
 * Result type: bool for comparisons and logic, else the promoted type of both: float over int,
 * wider over narrower, unsigned over signed of the same width, float32 for two float kinds of one
 * width; bool counts as int32 except in &, |, ^ of two bools; integers divided by `/` as float32.
 * Both operands are brought to one type: constants in place, others by a CAST.
 * Integers are exact except that unsigned types wrap around at their width.
 */
const struct expr *expr_binary(struct expr_pool *pool, enum binary_op op, const struct expr *a,
                               const struct expr *b);
const struct expr *expr_select(struct expr_pool *pool, const struct expr *condition,
                               const struct expr *then, const struct expr *otherwise);
const struct expr *expr_cast(struct expr_pool *pool, struct dtype type, const struct expr *a);
const struct expr *expr_bitcast(struct expr_pool *pool, struct dtype type, const struct expr *a);
const struct expr *expr_math(struct expr_pool *pool, enum math_fn fn,
                             const struct expr *const *args, uint32_t n);
const struct expr *expr_call(struct expr_pool *pool, struct dtype type, sym_t callee,
                             const struct expr *const *args, uint32_t n);
const struct int_table *expr_new_table(struct expr_pool *pool, const int64_t *values, uint64_t n);
const struct expr *expr_table(struct expr_pool *pool, const struct int_table *table,
                              const struct expr *index);

/* Shorthand for integer arithmetic. */
const struct expr *expr_add(struct expr_pool *pool, const struct expr *a, const struct expr *b);
const struct expr *expr_sub(struct expr_pool *pool, const struct expr *a, const struct expr *b);
const struct expr *expr_mul_int(struct expr_pool *pool, const struct expr *a, int64_t factor);
const struct expr *expr_add_int(struct expr_pool *pool, const struct expr *a, int64_t term);
const struct expr *expr_div_int(struct expr_pool *pool, const struct expr *a,
                                int64_t divisor); /* floor */
const struct expr *expr_mod_int(struct expr_pool *pool, const struct expr *a, int64_t divisor);
const struct expr *expr_xor(struct expr_pool *pool, const struct expr *a, const struct expr *b);
const struct expr *expr_lt(struct expr_pool *pool, const struct expr *a, const struct expr *b);
/* NULL stands for true on either side and in the result. */
const struct expr *expr_and(struct expr_pool *pool, const struct expr *a, const struct expr *b);

bool expr_is_int(const struct expr *e, int64_t *value); /* constant integer? `value` may be NULL */
bool expr_is_true(const struct expr *e);                /* NULL or a constant that is not 0 */
/* Inclusive bounds from the ranges of the variables; false when not known. */
bool expr_range(const struct expr *e, int64_t *min, int64_t *max);
/* The same with INT64_MIN or INT64_MAX for a side that is not known. */
void expr_bounds(const struct expr *e, int64_t *min, int64_t *max);
/* The largest d known such that the value is always a multiple of d (0 for constant 0). */
int64_t expr_divisor(const struct expr *e);
/* Does it read the variable? */
bool expr_uses(const struct expr *e, const struct var *var);
/* Sum form: the coefficient of `var` when e = coefficient * var + rest and rest does not read var.
 */
bool expr_linear_in(struct expr_pool *pool, const struct expr *e, const struct var *var,
                    int64_t *coefficient, const struct expr **rest);

/* Variables (keyed by var id) replaced by expressions, rebuilt through the simplifying
 * constructors. */
struct expr_subst {
	struct map of_var; /* var id -> const struct expr * */
	/* When set: called for every LOAD as it stands, before anything inside it is replaced; what it
	   gives is taken as it is. NULL keeps the load, with its indices substituted. */
	const struct expr *(*on_load)(void *user, const struct expr *load);
	/* When set: the same for every SELECT and every logical AND and OR, whose last operands are not
	   always evaluated. */
	const struct expr *(*on_choice)(void *user, const struct expr *choice);
	void *user;
};
const struct expr *expr_substitute(struct expr_pool *pool, const struct expr *e,
                                   const struct expr_subst *subst);
/* Calls `visit` for every distinct sub-expression, operands first. */
void expr_walk(const struct expr *e, void (*visit)(void *user, const struct expr *e), void *user);

/*
 * Integer value under `values` (indexed by var id). e->is_index must hold: only INT, VAR, integer
 * operators, SELECT, CAST, TABLE. Division by 0 gives 0, a table read outside its bounds too,
 * int64 wraps around.
 */
int64_t expr_eval_int(const struct expr *e, const int64_t *values);

/* The same as straight-line code: one instruction for every distinct sub-expression. */
struct expr_code;
/* e->is_index must hold. Lives in `arena`. */
struct expr_code *expr_compile(struct arena *arena, const struct expr *e);
int64_t expr_run(const struct expr_code *code, const int64_t *values);
/* The n values that one variable takes, e.g. a warp's thread numbers. */
struct lane_values {
	uint32_t var_id;
	const int64_t *values;
	int n;
};
/*
 * out[i] for the i-th value of the lanes' variable, all other variables as in `values`. What does
 * not depend on that variable is computed once.
 */
void expr_run_lanes(const struct expr_code *code, const int64_t *values,
                    const struct lane_values *lanes, int64_t *out);

/*
 * Python-like text that expr_parse reads back: `by*128 + (tx // 8) % 16`, `max(x, 0)`,
 * `float32(acc[i, j])`, `select(c, a, b)`, `exp2(x)`, `truncdiv(x, 2)`, `bitcast(int32, x)`,
 * `call(int32, clock)`, `tab0[i]`, float constants as `1.5f32`, integers that are not int32 as
 * `int64(5)` unless the other operand says so. Names come from vars, buffers and regs.
 */
void expr_print(struct buf *out, const struct cx *cx, const struct expr *e);

/* What names mean while expressions are read back. */
struct expr_names {
	const struct expr *(*resolve)(void *user, sym_t name, const struct expr *const *index,
	                              uint32_t n_index); /* n_index 0: a plain name; NULL: unknown */
	void *user;
};
/* Reads one expression from text at *position (advanced). NULL with a diagnostic at file/offset. */
const struct expr *expr_parse(struct cx *cx, struct expr_pool *pool, const struct expr_names *names,
                              uint32_t file, uint32_t *position);

const char *binary_op_text(enum binary_op op);
const char *math_fn_name(enum math_fn fn);
int math_fn_arity(enum math_fn fn);
bool math_fn_find(const char *name, enum math_fn *fn);

#endif
