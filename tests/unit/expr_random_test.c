/*
 * Random integer expressions, built twice: as plain trees that are evaluated as they stand, and
 * through the simplifying constructors. Over all values of the variables both must agree, the
 * value must lie in the range and be a multiple of the divisor, the compiled forms must agree, and
 * the text must read back as the same object.
 */
#include "analyzer/tile/expr.h"
#include "base/buf.h"
#include "tests/unit/check.h"

#include <stdlib.h>

enum { N_VARS = 4, MAX_TREE = 160, N_TRIES = 8000 };

/* A number beyond this makes an expression unfit for comparison: int64 may wrap on either way. */
#define TOO_LARGE (1LL << 45)

/* Values of a variable: all multiples of the divisor from min to max. */
struct domain {
	const char *name;
	int64_t min, max, divisor;
};

static const struct domain signed_domains[N_VARS] = {
	{ "a", 0, 7, 1 },
	{ "b", -3, 2, 1 },
	{ "d", 0, 16, 4 },
	{ "e", 1, 4, 1 },
};
static const struct domain unsigned_domains[N_VARS] = {
	{ "a", 0, 7, 1 },
	{ "b", 0, 3, 1 },
	{ "d", 0, 16, 4 },
	{ "e", 1, 4, 1 },
};

enum tree_kind { TREE_CONST, TREE_VAR, TREE_UNARY, TREE_BINARY, TREE_SELECT, TREE_TABLE };

/* A node of a plain tree; `args` are indices into world.trees. */
struct tree {
	enum tree_kind kind;
	int op;
	int64_t value; /* constant, or variable */
	int args[3];
};

/* A pool, and the plain tree of one expression. */
struct world {
	struct arena *arena;
	struct cx cx;
	struct expr_pool *pool;
	struct dtype type;
	const struct domain *domains;
	struct var *vars[N_VARS];
	const struct int_table *table;
	uint64_t state;
	struct tree trees[MAX_TREE];
	int n_trees;
	uint32_t used; /* bit i: the tree reads variable i */
	bool too_large;
};

static const int64_t table_values[8] = { 0, 12, 4, 8, 24, 20, 16, 28 };

static uint32_t below(struct world *world, uint32_t n)
{
	return (uint32_t)check_random(&world->state) % n;
}

static void open_world(struct world *world, struct dtype type, uint64_t seed)
{
	memset(world, 0, sizeof(*world));
	world->arena = arena_open();
	cx_init(&world->cx, world->arena);
	world->pool = expr_pool_open(&world->cx);
	world->type = type;
	world->state = seed;
	world->domains = type.kind == TYPE_UINT ? unsigned_domains : signed_domains;
	for (int i = 0; i < N_VARS; i++) {
		const struct domain *domain = &world->domains[i];
		sym_t name = intern_text(world->cx.names, domain->name);
		struct var *var = expr_new_var(world->pool, VAR_PARAM, name, type);
		var->min = domain->min;
		var->max = domain->max;
		var->divisor = domain->divisor;
		world->vars[i] = var;
	}
	world->table = expr_new_table(world->pool, table_values, 8);
}

/* ---- plain trees ---- */

/* The value as the type keeps it; too_large when it is beyond what both ways compute alike. */
static int64_t store(struct world *world, int64_t value)
{
	if (value > TOO_LARGE || value < -TOO_LARGE)
		world->too_large = true;
	return world->type.kind == TYPE_UINT ? (int64_t)(uint32_t)value : value;
}

/* Rounded down, by its definition. */
static int64_t plain_div(int64_t a, int64_t b)
{
	int64_t quotient = 0;
	if (b == 0)
		return 0;
	if (b < 0) {
		a = -a;
		b = -b;
	}
	quotient = (a >= 0 ? a : a - b + 1) / b;
	return quotient;
}

/* int64 wraps around, as the evaluators have it. */
static int64_t plain_binary(int op, int64_t a, int64_t b)
{
	switch ((enum binary_op)op) {
	case BIN_ADD:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case BIN_SUB:
		return (int64_t)((uint64_t)a - (uint64_t)b);
	case BIN_MUL:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case BIN_FLOORDIV:
		return plain_div(a, b);
	case BIN_FLOORMOD:
		return b == 0 ? 0 : a - b * plain_div(a, b);
	case BIN_TRUNCDIV:
		return b == 0 ? 0 : a / b;
	case BIN_TRUNCMOD:
		return b == 0 ? 0 : a % b;
	case BIN_MIN:
		return a < b ? a : b;
	case BIN_MAX:
		return a > b ? a : b;
	case BIN_BITAND:
		return a & b;
	case BIN_BITOR:
		return a | b;
	case BIN_BITXOR:
		return a ^ b;
	case BIN_SHL:
		return b < 0 || b > 40 ? (b < 0 || b > 63 ? 0 : TOO_LARGE * 2) : a * (1LL << b);
	case BIN_SHR:
		return plain_div(a, b < 0 || b > 61 ? 1LL << 61 : 1LL << b);
	case BIN_EQ:
		return a == b;
	case BIN_NE:
		return a != b;
	case BIN_LT:
		return a < b;
	case BIN_LE:
		return a <= b;
	case BIN_GT:
		return a > b;
	case BIN_GE:
		return a >= b;
	case BIN_AND:
		return a != 0 && b != 0;
	case BIN_OR:
		return a != 0 || b != 0;
	case BIN_DIV:
	case N_BINARY_OPS:
		break;
	}
	return 0;
}

/* The tree's value, node by node; operations of both sides are always evaluated. */
static int64_t plain_value(struct world *world, int at, const int64_t *values)
{
	const struct tree *tree = &world->trees[at];
	int64_t a, b;
	switch (tree->kind) {
	case TREE_CONST:
		return tree->value;
	case TREE_VAR:
		return values[tree->value];
	case TREE_UNARY:
		a = plain_value(world, tree->args[0], values);
		return tree->op == UN_NOT ? a == 0 : store(world, tree->op == UN_NEG ? -a : ~a);
	case TREE_BINARY:
		a = plain_value(world, tree->args[0], values);
		b = plain_value(world, tree->args[1], values);
		if (world->too_large)
			return 0;
		return store(world, plain_binary(tree->op, a, b));
	case TREE_SELECT:
		a = plain_value(world, tree->args[0], values);
		b = plain_value(world, tree->args[1], values);
		int64_t c = plain_value(world, tree->args[2], values);
		return a != 0 ? b : c;
	case TREE_TABLE:
		a = plain_value(world, tree->args[0], values);
		return a >= 0 && a < 8 ? table_values[a] : 0;
	}
	return 0;
}

static int new_tree(struct world *world, struct tree tree)
{
	world->trees[world->n_trees] = tree;
	return world->n_trees++;
}

/* ---- both at once ---- */

struct pair {
	int tree;
	const struct expr *e;
};

static struct pair make_const(struct world *world)
{
	static const int64_t values[] = { 0,  1,  2,  3,  4,  5,  7,  8,  12, 15,
		                              16, 24, 32, 64, -1, -2, -4, -7, -8, 100 };
	int64_t value = values[below(world, world->type.kind == TYPE_UINT ? 14 : 20)];
	struct tree tree = { .kind = TREE_CONST, .value = value };
	return (struct pair){ new_tree(world, tree), expr_int_typed(world->pool, world->type, value) };
}

static struct pair make_leaf(struct world *world)
{
	if (below(world, 3) == 0 || world->n_trees > 56)
		return make_const(world);
	uint32_t var = below(world, N_VARS);
	struct tree tree = { .kind = TREE_VAR, .value = var };
	world->used |= 1u << var;
	return (struct pair){ new_tree(world, tree), expr_of_var(world->pool, world->vars[var]) };
}

static struct pair make(struct world *world, int depth);

static struct pair make_binary(struct world *world, int depth)
{
	/* the operators of index arithmetic more often */
	static const enum binary_op ops[] = {
		BIN_ADD,      BIN_ADD,      BIN_ADD,      BIN_SUB,      BIN_SUB,      BIN_MUL,
		BIN_MUL,      BIN_MUL,      BIN_FLOORDIV, BIN_FLOORDIV, BIN_FLOORDIV, BIN_FLOORMOD,
		BIN_FLOORMOD, BIN_FLOORMOD, BIN_TRUNCDIV, BIN_TRUNCMOD, BIN_MIN,      BIN_MAX,
		BIN_BITAND,   BIN_BITOR,    BIN_BITXOR,   BIN_BITXOR,   BIN_SHL,      BIN_SHR,
		BIN_EQ,       BIN_NE,       BIN_LT,       BIN_LE,       BIN_GT,       BIN_GE,
		BIN_AND,      BIN_OR,
	};
	enum binary_op op = ops[below(world, sizeof(ops) / sizeof(ops[0]))];
	struct pair a = make(world, depth - 1);
	bool by_const = op >= BIN_MUL && op <= BIN_SHR && below(world, 4) != 0;
	struct pair b = by_const ? make_const(world) : make(world, depth - 1);
	struct tree tree = { .kind = TREE_BINARY, .op = (int)op, .args = { a.tree, b.tree } };
	const struct expr *e = expr_binary(world->pool, op, a.e, b.e);
	return (struct pair){ new_tree(world, tree), expr_cast(world->pool, world->type, e) };
}

static struct pair make(struct world *world, int depth)
{
	uint32_t choice = below(world, 20);
	if (depth == 0 || world->n_trees > 52)
		return make_leaf(world);
	if (choice == 0) {
		struct pair a = make(world, depth - 1), b = make_leaf(world), c = make_leaf(world);
		struct tree tree = { .kind = TREE_SELECT, .args = { a.tree, b.tree, c.tree } };
		return (struct pair){ new_tree(world, tree), expr_select(world->pool, a.e, b.e, c.e) };
	}
	if (choice == 1) {
		struct pair a = make(world, depth - 1);
		struct tree tree = { .kind = TREE_TABLE, .args = { a.tree } };
		const struct expr *e = expr_table(world->pool, world->table, a.e);
		return (struct pair){ new_tree(world, tree), expr_cast(world->pool, world->type, e) };
	}
	if (choice == 2) {
		int op = (int)below(world, N_UNARY_OPS);
		struct pair a = make(world, depth - 1);
		struct tree tree = { .kind = TREE_UNARY, .op = op, .args = { a.tree } };
		const struct expr *e = expr_unary(world->pool, (enum unary_op)op, a.e);
		return (struct pair){ new_tree(world, tree), expr_cast(world->pool, world->type, e) };
	}
	return make_binary(world, depth);
}

/* ---- sums as layouts make them ---- */

static struct pair combine(struct world *world, enum binary_op op, struct pair a, struct pair b)
{
	struct tree tree = { .kind = TREE_BINARY, .op = (int)op, .args = { a.tree, b.tree } };
	const struct expr *e = expr_binary(world->pool, op, a.e, b.e);
	return (struct pair){ new_tree(world, tree), expr_cast(world->pool, world->type, e) };
}

static struct pair with_number(struct world *world, enum binary_op op, struct pair a, int64_t value)
{
	struct tree tree = { .kind = TREE_CONST, .value = value };
	struct pair number = { new_tree(world, tree), expr_int_typed(world->pool, world->type, value) };
	return combine(world, op, a, number);
}

static struct pair make_var(struct world *world)
{
	uint32_t var = below(world, N_VARS);
	struct tree tree = { .kind = TREE_VAR, .value = var };
	world->used |= 1u << var;
	return (struct pair){ new_tree(world, tree), expr_of_var(world->pool, world->vars[var]) };
}

/* A dividend: a variable or two of them as digits of one number. */
static struct pair make_number(struct world *world)
{
	struct pair x = make_var(world);
	if (below(world, 2) == 0)
		return x;
	x = with_number(world, BIN_MUL, x, 1LL << (1 + below(world, 4)));
	return combine(world, BIN_ADD, x, make_var(world));
}

/*
 * Shuffled terms among which are the quotient and the remainder, or two remainders, of one division
 * with coefficients that mostly fit together; then an operator on the whole.
 */
static struct pair make_index(struct world *world)
{
	static const int64_t divisors[] = { 2, 3, 4, 8, 6, 16 };
	struct pair terms[8], x = make_number(world), total;
	uint32_t n = 0, n_others = 1 + below(world, 4);
	int64_t c = divisors[below(world, 6)], d = divisors[below(world, 6)];
	int64_t k = 1LL << below(world, 5), off = below(world, 8) == 0;
	struct pair high = with_number(world, BIN_FLOORDIV, x, c);
	if (below(world, 2) == 0)
		high = with_number(world, BIN_FLOORMOD, high, d);
	terms[n++] = with_number(world, BIN_MUL, high, k * c + off);
	terms[n++] = with_number(world, BIN_MUL, with_number(world, BIN_FLOORMOD, x, c), k);
	for (uint32_t i = 0; i < n_others; i++) {
		struct pair other = make_number(world);
		if (below(world, 2) == 0)
			other = with_number(world, below(world, 2) ? BIN_FLOORDIV : BIN_FLOORMOD, other,
			                    divisors[below(world, 6)]);
		terms[n++] = with_number(world, BIN_MUL, other, divisors[below(world, 6)]);
	}
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = below(world, i);
		struct pair swapped = terms[j];
		terms[j] = terms[i - 1];
		terms[i - 1] = swapped;
	}
	total = terms[0];
	for (uint32_t i = 1; i < n; i++)
		total = combine(world, below(world, 6) ? BIN_ADD : BIN_SUB, total, terms[i]);
	switch (below(world, 6)) {
	case 0:
		return with_number(world, BIN_FLOORDIV, total, divisors[below(world, 6)] * k);
	case 1:
		return with_number(world, BIN_FLOORMOD, total, divisors[below(world, 6)] * k);
	case 2:
		return combine(world, BIN_BITXOR, total, with_number(world, BIN_MUL, make_var(world), k));
	case 3:
		return combine(world, BIN_LT, total, with_number(world, BIN_MUL, make_number(world), k));
	default:
		return total;
	}
}

/* ---- comparison ---- */

static bool next_values(const struct world *world, int64_t *values)
{
	for (int i = 0; i < N_VARS; i++) {
		if (!(world->used >> i & 1))
			continue;
		values[i] += world->domains[i].divisor;
		if (values[i] <= world->domains[i].max)
			return true;
		values[i] = world->domains[i].min;
	}
	return false;
}

static void describe(struct world *world, const struct expr *e, const char *what, int64_t got,
                     int64_t want)
{
	struct buf buf = { 0 };
	expr_print(&buf, &world->cx, e);
	printf("%s: %s: got %" PRId64 ", want %" PRId64 "\n", buf_cstr(&buf), what, got, want);
	buf_free(&buf);
}

static bool same(struct world *world, const struct expr *e, const char *what, int64_t got,
                 int64_t want)
{
	if (got != want)
		describe(world, e, what, got, want);
	return got == want;
}

/* The lanes form over all values of variable 0 with the others fixed. */
static bool lanes_agree(struct world *world, const struct expr *e, const struct expr_code *code,
                        const int64_t *values)
{
	int64_t inputs[40], outputs[40], point[N_VARS];
	int n = 0;
	memcpy(point, values, sizeof(point));
	for (; n < 40; n++)
		inputs[n] = world->domains[0].min + n % 8;
	expr_run_lanes(code, values, &(struct lane_values){ 0, inputs, n }, outputs);
	for (int i = 0; i < n; i++) {
		point[0] = inputs[i];
		if (!same(world, e, "lanes", outputs[i], expr_eval_int(e, point)))
			return false;
	}
	return true;
}

static bool values_agree(struct world *world, const struct pair *pair)
{
	int64_t values[N_VARS], min, max, divisor = expr_divisor(pair->e);
	const struct expr *e = pair->e;
	struct expr_code *code = expr_compile(world->arena, e);
	expr_bounds(e, &min, &max);
	for (int i = 0; i < N_VARS; i++)
		values[i] = world->domains[i].min;
	do {
		int64_t want = plain_value(world, pair->tree, values);
		if (world->too_large)
			return true;
		int64_t got = expr_eval_int(e, values);
		bool ok = same(world, e, "value", got, want) &&
		          same(world, e, "compiled", expr_run(code, values), want) &&
		          same(world, e, "least", want >= min ? want : min, want) &&
		          same(world, e, "largest", want <= max ? want : max, want) &&
		          same(world, e, "divisor", divisor ? want % divisor : want, 0);
		if (!ok) {
			printf("  at a=%" PRId64 " b=%" PRId64 " d=%" PRId64 " e=%" PRId64 "\n", values[0],
			       values[1], values[2], values[3]);
			return false;
		}
	} while (next_values(world, values));
	return lanes_agree(world, e, code, values);
}

static const struct expr *resolve(void *user, sym_t name, const struct expr *const *index,
                                  uint32_t n_index)
{
	struct world *world = user;
	(void)index;
	for (int i = 0; i < N_VARS; i++)
		if (n_index == 0 && world->vars[i]->name == name)
			return expr_of_var(world->pool, world->vars[i]);
	return NULL;
}

static bool reads_back(struct world *world, const struct expr *e)
{
	struct buf buf = { 0 }, again = { 0 };
	struct expr_names names = { resolve, world };
	uint32_t at = 0;
	expr_print(&buf, &world->cx, e);
	uint32_t file = source_add(world->arena, &world->cx.sources, "text", buf_str(&buf));
	const struct expr *read = expr_parse(&world->cx, world->pool, &names, file, &at);
	if (read)
		expr_print(&again, &world->cx, read);
	if (read != e)
		printf("%s reads back as %s\n", buf_cstr(&buf), buf_cstr(&again));
	buf_free(&buf);
	buf_free(&again);
	return read == e;
}

static void test_random(struct check *check, struct dtype type, uint64_t seed)
{
	struct world world;
	uint32_t n_compared = 0;
	open_world(&world, type, seed);
	for (int i = 0; i < N_TRIES; i++) {
		world.n_trees = 0;
		world.used = 0;
		world.too_large = false;
		struct pair pair = i % 2 ? make(&world, 2 + (int)below(&world, 4)) : make_index(&world);
		if (!CHECK(check, values_agree(&world, &pair)))
			break;
		CHECK(check, reads_back(&world, pair.e));
		n_compared += !world.too_large;
		if (i % 2000 == 1999) {
			uint64_t state = world.state;
			arena_close(world.arena);
			open_world(&world, type, state);
		}
	}
	CHECK(check, n_compared > N_TRIES * 3 / 4);
	arena_close(world.arena);
}

int main(int argc, char **argv)
{
	struct check check = { 0 };
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	test_random(&check, DTYPE_I32, seed);
	test_random(&check, DTYPE_U32, seed + 1);
	test_random(&check, DTYPE_I64, seed + 2);
	return check_end(&check);
}
