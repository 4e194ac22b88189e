/* Lane-wise evaluation against the one-value evaluator and the element types' own functions. */
#include "sim/lanes.h"
#include "tests/unit/check.h"

#include <math.h>

enum { N_LANES = 40, N_VARS = 4, N_EXPRS = 3000 };

/* Four variables and a stream of random numbers. */
struct space {
	struct arena *arena;
	struct cx cx;
	struct expr_pool *pool;
	struct var *vars[N_VARS];
	uint64_t random;
};

static bool never_varying(void *user, const struct expr *load)
{
	(void)user;
	(void)load;
	return false;
}

static void no_load(void *user, const struct lane_load *load)
{
	(void)user;
	for (uint32_t l = 0; l < load->n; l++) {
		load->out[l].i = 0;
		load->poison[l] = POISON_UNINIT;
	}
}

static const struct lane_loader loader = { NULL, never_varying, no_load };

static void open_space(struct space *space)
{
	static const char *const names[N_VARS] = { "a", "b", "c", "d" };

	space->arena = arena_open();
	cx_init(&space->cx, space->arena);
	space->pool = expr_pool_open(&space->cx);
	space->random = 1;
	for (int i = 0; i < N_VARS; i++) {
		sym_t name = intern_text(space->cx.names, names[i]);
		space->vars[i] = expr_new_var(space->pool, VAR_LOOP, name, DTYPE_I64);
		space->vars[i]->min = -1000;
		space->vars[i]->max = 1000;
	}
}

/* Below n. */
static uint64_t next_random(struct space *space, uint64_t n)
{
	return check_random(&space->random) % n;
}

/* A random integer expression; divisors are positive constants. */
static const struct expr *random_expr(struct space *space, int depth)
{
	static const enum binary_op ops[] = { BIN_ADD, BIN_SUB,    BIN_MUL,    BIN_MIN,
		                                  BIN_MAX, BIN_BITAND, BIN_BITXOR, BIN_LT,
		                                  BIN_EQ,  BIN_AND,    BIN_OR,     BIN_GE };
	static const enum binary_op divisions[] = { BIN_FLOORDIV, BIN_FLOORMOD, BIN_TRUNCDIV,
		                                        BIN_TRUNCMOD };
	struct expr_pool *pool = space->pool;
	const struct expr *a, *b;
	uint64_t which = next_random(space, 10);

	if (depth == 0 || which == 0)
		return next_random(space, 3)
		           ? expr_of_var(pool, space->vars[next_random(space, N_VARS)])
		           : expr_int_typed(pool, DTYPE_I64, (int64_t)next_random(space, 41) - 20);
	a = random_expr(space, depth - 1);
	if (which == 1) {
		int64_t divisor = (int64_t)next_random(space, 9) + 1;
		return expr_binary(pool, divisions[next_random(space, 4)], a,
		                   expr_int_typed(pool, DTYPE_I64, divisor));
	}
	b = random_expr(space, depth - 1);
	if (which == 2)
		return expr_select(pool, expr_lt(pool, a, b), b, random_expr(space, depth - 1));
	return expr_binary(pool, ops[next_random(space, sizeof(ops) / sizeof(*ops))], a, b);
}

/* Two variables a lane, two uniform ones that change between expressions. */
static void test_integers(struct check *check)
{
	struct space space;
	struct lane_eval *eval;
	union cell lanes[2][N_LANES];
	int64_t values[N_VARS];
	int n_wrong = 0;

	open_space(&space);
	eval = lane_eval_open(space.arena, space.pool, N_LANES, true, loader);
	for (int v = 0; v < 2; v++) {
		for (int l = 0; l < N_LANES; l++)
			lanes[v][l].i = (int64_t)next_random(&space, 2001) - 1000;
		lane_eval_set_lane_values(eval, space.vars[v], lanes[v]);
	}
	for (int i = 0; i < N_EXPRS; i++) {
		const struct expr *e = random_expr(&space, 4);
		for (int v = 2; v < N_VARS; v++) {
			values[v] = (int64_t)next_random(&space, 2001) - 1000;
			lane_eval_set_int(eval, space.vars[v], values[v]);
		}
		for (int repeat = 0; repeat < 2; repeat++) {
			struct lanes got = lane_eval_run(eval, e);
			for (uint32_t l = 0; l < N_LANES; l++) {
				values[0] = lanes[0][l].i;
				values[1] = lanes[1][l].i;
				n_wrong += lanes_at(&got, l).i != expr_eval_int(e, values);
			}
			n_wrong += got.poison != NULL;
			values[2] = values[2] / 2 + 1;
			lane_eval_set_int(eval, space.vars[2], values[2]);
		}
	}
	CHECK_INT(check, n_wrong, 0);
	arena_close(space.arena);
}

/* What is not used does not poison; what is used does. */
static void test_poison(struct check *check)
{
	struct space space;
	struct lane_eval *eval;
	union cell lanes[2] = { { .i = 0 }, { .i = 5 } };
	const struct expr *a, *zero, *quotient, *guarded, *either;
	struct lanes got;

	open_space(&space);
	a = expr_of_var(space.pool, space.vars[0]);
	zero = expr_int_typed(space.pool, DTYPE_I64, 0);
	quotient = expr_binary(space.pool, BIN_FLOORDIV, expr_int_typed(space.pool, DTYPE_I64, 10), a);
	guarded = expr_select(space.pool, expr_binary(space.pool, BIN_EQ, a, zero), zero, quotient);
	either = expr_binary(space.pool, BIN_OR, expr_binary(space.pool, BIN_EQ, a, zero),
	                     expr_binary(space.pool, BIN_GT, quotient, zero));
	eval = lane_eval_open(space.arena, space.pool, 2, true, loader);
	lane_eval_set_lane_values(eval, space.vars[0], lanes);
	got = lane_eval_run(eval, quotient);
	CHECK_INT(check, lanes_poison(&got, 0), POISON_DIVISOR);
	CHECK_INT(check, lanes_poison(&got, 1), 0);
	CHECK_INT(check, lanes_at(&got, 1).i, 2);
	got = lane_eval_run(eval, guarded);
	CHECK_INT(check, lanes_poison(&got, 0), 0);
	CHECK_INT(check, lanes_at(&got, 0).i, 0);
	CHECK_INT(check, lanes_at(&got, 1).i, 2);
	got = lane_eval_run(eval, either);
	CHECK_INT(check, lanes_poison(&got, 0), 0);
	CHECK_INT(check, lanes_at(&got, 0).i, 1);
	lane_eval_set_unknown(eval, space.vars[1]);
	got = lane_eval_run(eval, expr_of_var(space.pool, space.vars[1]));
	CHECK_INT(check, lanes_poison(&got, 1), POISON_UNKNOWN);
	lane_eval_set_int(eval, space.vars[1], 3);
	got = lane_eval_run(eval, expr_of_var(space.pool, space.vars[1]));
	CHECK_INT(check, lanes_poison(&got, 1), 0);
	arena_close(space.arena);
}

/*
 * float32 arithmetic rounds in the simulator and not in the reference; casts to float16 round in
 * both.
 */
static void test_rounding(struct check *check)
{
	struct space space;
	const struct expr *third, *narrow, *args[1];

	open_space(&space);
	third = expr_binary(space.pool, BIN_DIV, expr_float(space.pool, DTYPE_F32, 1.0),
	                    expr_cast(space.pool, DTYPE_F32, expr_of_var(space.pool, space.vars[0])));
	narrow = expr_cast(space.pool, DTYPE_F16, third);
	args[0] = third;
	for (int exact = 0; exact < 2; exact++) {
		struct lane_eval *eval = lane_eval_open(space.arena, space.pool, 2, exact, loader);
		struct lanes got;
		lane_eval_set_int(eval, space.vars[0], 3);
		got = lane_eval_run(eval, third);
		CHECK(check, got.is_float && got.stride == 0);
		CHECK(check, got.cells[0].f == (exact ? 1.0 / 3.0 : (double)(float)(1.0 / 3.0)));
		got = lane_eval_run(eval, narrow);
		CHECK(check, got.cells[0].f == dtype_round(DTYPE_F16, 1.0 / 3.0));
		got = lane_eval_run(eval, expr_math(space.pool, MATH_exp2, args, 1));
		CHECK(check, fabs(got.cells[0].f - exp2(1.0 / 3.0)) < 1e-6);
	}
	arena_close(space.arena);
}

/* The quick paths of 16-bit floats agree with types.h on all bits and around all values. */
static void test_storage(struct check *check)
{
	const struct dtype types[] = { DTYPE_F16, DTYPE_BF16 };
	int n_wrong = 0;

	for (int t = 0; t < 2; t++) {
		for (uint32_t bits = 0; bits < 65536; bits++) {
			union cell cell = cell_decode(types[t], bits);
			double value = dtype_decode(types[t], bits), next = dtype_decode(types[t], bits + 1);
			double near[] = { value, (value + next) / 2, value * 1.0001,
				              (value + next) / 2 * (1 + 1e-12) };
			n_wrong += memcmp(&cell.f, &value, sizeof(value)) != 0 && !isnan(value);
			for (int i = 0; i < 4 && bits != 65535; i++)
				n_wrong += cell_encode(types[t], (union cell){ .f = near[i] }) !=
				           dtype_encode(types[t], near[i]);
		}
	}
	CHECK_INT(check, n_wrong, 0);
	CHECK_INT(check, cell_convert((union cell){ .f = 300.7 }, true, DTYPE(TYPE_INT, 8), true).i,
	          44);
	CHECK_INT(check, cell_convert((union cell){ .f = -1.5 }, true, DTYPE_I32, true).i, -1);
	CHECK_INT(check, cell_convert((union cell){ .f = 0.25 }, true, DTYPE_BOOL, true).i, 1);
	CHECK(check, cell_convert((union cell){ .i = 3 }, false, DTYPE_F16, true).f == 3.0);
}

int main(void)
{
	struct check check = { 0 };

	test_integers(&check);
	test_poison(&check);
	test_rounding(&check);
	test_storage(&check);
	return check_end(&check);
}
