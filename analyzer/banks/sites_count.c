/*
 * Sums of one instruction over blocks, iterations and warps, by boxes (sites_internal.h).
 *
 * Example: grid 9 x 8, rows guarded by by*128 + r < 1100 with r below 128. The box by 0..8 is
 * undecided and is halved; 0..7 is decided (true) and counts as 8 executions a warp, by 8 alone is
 * evaluated lane by lane. Complexity: a condition that is monotone in a dimension costs log2 of its
 * range boxes.
 */
#include "analyzer/banks/sites_internal.h"

#include <assert.h>
#include <string.h>

enum { MAX_LEAVES = 1 << 17, MAX_NODES = 1 << 10 };

/* ---- bounds over a box ---- */

static int64_t min_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t floor_quotient(int64_t a, int64_t b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Bounds whose ends stay far from int64's, so that sums and products of two cannot overflow. */
static bool are_small(struct site_bounds a, struct site_bounds b)
{
	const int64_t limit = (int64_t)1 << 30;

	return a.min > -limit && a.max < limit && b.min > -limit && b.max < limit;
}

static struct site_bounds truth(bool may_fail, bool may_hold)
{
	return (struct site_bounds){ !may_fail, may_hold };
}

static bool is_never(struct site_bounds a)
{
	return a.min == 0 && a.max == 0;
}

static bool is_always(struct site_bounds a)
{
	return a.min > 0 || a.max < 0;
}

static struct site_bounds product_bounds(struct site_bounds a, struct site_bounds b)
{
	int64_t p = a.min * b.min, q = a.min * b.max, r = a.max * b.min, s = a.max * b.max;

	return (struct site_bounds){ min_of(min_of(p, q), min_of(r, s)),
		                         max_of(max_of(p, q), max_of(r, s)) };
}

/* Of an operator whose operands have the bounds a and b; `fallback` where nothing better is known.
 */
static struct site_bounds binary_bounds(enum binary_op op, struct site_bounds a,
                                        struct site_bounds b, struct site_bounds fallback)
{
	bool small = are_small(a, b);

	switch (op) {
	case BIN_ADD:
		return small ? (struct site_bounds){ a.min + b.min, a.max + b.max } : fallback;
	case BIN_SUB:
		return small ? (struct site_bounds){ a.min - b.max, a.max - b.min } : fallback;
	case BIN_MUL:
		return small ? product_bounds(a, b) : fallback;
	case BIN_FLOORDIV:
		if (!small || b.min != b.max || b.min <= 0)
			return fallback;
		return (struct site_bounds){ floor_quotient(a.min, b.min), floor_quotient(a.max, b.min) };
	case BIN_FLOORMOD:
		if (!small || b.min != b.max || b.min <= 0 ||
		    floor_quotient(a.min, b.min) != floor_quotient(a.max, b.min))
			return fallback;
		return (struct site_bounds){ a.min - floor_quotient(a.min, b.min) * b.min,
			                         a.max - floor_quotient(a.max, b.min) * b.min };
	case BIN_MIN:
		return (struct site_bounds){ min_of(a.min, b.min), min_of(a.max, b.max) };
	case BIN_MAX:
		return (struct site_bounds){ max_of(a.min, b.min), max_of(a.max, b.max) };
	case BIN_EQ:
		return truth(a.min != a.max || b.min != b.max || a.min != b.min,
		             a.min <= b.max && b.min <= a.max);
	case BIN_NE:
		return truth(a.min <= b.max && b.min <= a.max,
		             a.min != a.max || b.min != b.max || a.min != b.min);
	case BIN_LT:
		return truth(a.max >= b.min, a.min < b.max);
	case BIN_LE:
		return truth(a.max > b.min, a.min <= b.max);
	case BIN_GT:
		return truth(a.min <= b.max, a.max > b.min);
	case BIN_GE:
		return truth(a.min < b.max, a.max >= b.min);
	case BIN_AND:
		return truth(!is_always(a) || !is_always(b), !is_never(a) && !is_never(b));
	case BIN_OR:
		return truth(!is_always(a) && !is_always(b), !is_never(a) || !is_never(b));
	case BIN_DIV:
	case BIN_TRUNCDIV:
	case BIN_TRUNCMOD:
	case BIN_BITAND:
	case BIN_BITOR:
	case BIN_BITXOR:
	case BIN_SHL:
	case BIN_SHR:
	case N_BINARY_OPS:
		break;
	}
	return fallback;
}

struct site_bounds site_bounds_of(const struct site_query *query, const struct expr *e)
{
	struct site_bounds all;

	expr_bounds(e, &all.min, &all.max);
	if (e->n_nodes > MAX_NODES)
		return all;
	switch (e->kind) {
	case EXPR_VAR:
		for (uint32_t i = 0; i < query->n_dims; i++)
			if (query->dims[i].var == e->as.var)
				return (struct site_bounds){ query->dims[i].low, query->dims[i].high };
		break;
	case EXPR_BINARY:
		/* The operands of logic are 0 or 1; other types than int wrap around. */
		if (e->type.kind != TYPE_INT && e->type.kind != TYPE_BOOL)
			break;
		return binary_bounds(e->as.binary, site_bounds_of(query, e->args[0]),
		                     site_bounds_of(query, e->args[1]), all);
	case EXPR_UNARY:
		if (e->as.unary == UN_NOT) {
			struct site_bounds a = site_bounds_of(query, e->args[0]);
			return truth(!is_never(a), a.min <= 0 && a.max >= 0);
		}
		break;
	case EXPR_SELECT: {
		struct site_bounds a = site_bounds_of(query, e->args[1]);
		struct site_bounds b = site_bounds_of(query, e->args[2]);
		return (struct site_bounds){ min_of(a.min, b.min), max_of(a.max, b.max) };
	}
	case EXPR_CAST:
		if (e->type.kind == TYPE_INT && e->args[0]->type.kind == TYPE_INT &&
		    e->type.bits >= e->args[0]->type.bits)
			return site_bounds_of(query, e->args[0]);
		break;
	case EXPR_INT:
	case EXPR_FLOAT:
	case EXPR_LOAD:
	case EXPR_REG:
	case EXPR_BITCAST:
	case EXPR_MATH:
	case EXPR_TABLE:
	case EXPR_CALL:
		break;
	}
	return all;
}

/* ---- one box, evaluated ---- */

/* Lanes' values while a warp is evaluated. */
struct warp_lanes {
	uint32_t warp;
	int n;
	int64_t threads[32];
};

/* The lanes for which the condition holds. */
static uint32_t lanes_where(const struct site_query *query, const struct warp_lanes *lanes,
                            const struct site_condition *condition)
{
	int64_t holds[32];
	uint32_t mask = 0;

	expr_run_lanes(condition->code, query->values,
	               &(struct lane_values){ query->program->tid->id, lanes->threads, lanes->n },
	               holds);
	for (int i = 0; i < lanes->n; i++)
		mask |= (uint32_t)(holds[i] != 0) << i;
	return mask;
}

/* Lanes that read nothing take part in the write only: they must not add a word to their phase. */
static void hide_idle_sources(const struct bank_access *access, int64_t *sources, uint32_t reads)
{
	uint32_t n_lanes = access->bytes == 4 ? 32 : 16;

	for (uint32_t lane = 0; lane < 32; lane++) {
		uint32_t first = lane / n_lanes * n_lanes;
		uint32_t phase = (n_lanes == 32 ? UINT32_MAX : 0xffffu << first) & reads & access->mask;
		if (reads >> lane & 1)
			continue;
		sources[lane] = phase ? sources[__builtin_ctz(phase)] : (int64_t)lane * access->bytes;
	}
}

static void note_execution(struct site_query *query, const struct bank_access *access,
                           struct bank_result result, uint32_t warp)
{
	struct site_worst *worst = &query->worst;
	bool is_worse =
		!query->has_excess || result.min - result.ideal > worst->result.min - worst->result.ideal;

	if (result.ways > query->ways)
		query->ways = result.ways;
	if (result.min <= result.ideal || !is_worse)
		return;
	query->has_excess = true;
	worst->access = *access;
	worst->result = result;
	worst->warp = warp;
	if (access->sources)
		memcpy(worst->sources, access->sources, sizeof(worst->sources));
	worst->access.sources = NULL;
	for (uint32_t lane = 0; lane < 32; lane++) {
		query->values[query->program->tid->id] = warp * 32 + lane;
		worst->access.offsets[lane] = expr_eval_int(query->offset, query->values);
	}
}

/* Distinct 32-byte pieces of global memory that the active lanes touch. */
static int64_t n_sectors(const struct bank_access *access)
{
	enum { SECTOR_BYTES = 32, MAX_SECTORS = 64 };
	int64_t seen[MAX_SECTORS];
	int n = 0;

	for (uint32_t lane = 0; lane < 32; lane++) {
		int64_t first = floor_quotient(access->offsets[lane], SECTOR_BYTES);
		int64_t last = floor_quotient(access->offsets[lane] + access->bytes - 1, SECTOR_BYTES);

		for (int64_t at = first; access->mask >> lane & 1 && at <= last; at++) {
			int i = n;

			while (i > 0 && seen[i - 1] != at)
				i--;
			if (i == 0 && n < MAX_SECTORS)
				seen[n++] = at;
		}
	}
	return n;
}

/* One warp of the present box, which stands for `times` executions. */
static void count_warp(struct site_query *query, const struct warp_lanes *lanes, uint64_t undecided,
                       uint64_t failed, int64_t times)
{
	struct bank_access access = query->access;
	struct bank_result result;
	uint32_t reads = failed ? 0 : UINT32_MAX;
	int64_t sources[32] = { 0 };

	access.mask = lanes->n == 32 ? UINT32_MAX : (1u << lanes->n) - 1;
	for (; undecided; undecided &= undecided - 1) {
		const struct site_condition *condition = &query->conditions[__builtin_ctzll(undecided)];
		uint32_t mask = lanes_where(query, lanes, condition);
		if (condition->is_source)
			reads &= mask;
		else
			access.mask &= mask;
	}
	if (!access.mask)
		return;
	query->executions += times;
	if (!query->address)
		return;
	expr_run_lanes(query->address, query->values,
	               &(struct lane_values){ query->program->tid->id, lanes->threads, lanes->n },
	               access.offsets);
	if (query->source) {
		expr_run_lanes(query->source, query->values,
		               &(struct lane_values){ query->program->tid->id, lanes->threads, lanes->n },
		               sources);
		hide_idle_sources(&access, sources, reads);
		access.sources = sources;
	}
	if (query->is_global) {
		query->sectors += times * n_sectors(&access);
		return;
	}
	result = bank_wavefronts(&access);
	query->wavefronts += times * result.min;
	query->wavefronts_max += times * result.max;
	query->ideal += times * result.ideal;
	note_execution(query, &access, result, lanes->warp);
}

static void count_leaf(struct site_query *query, uint64_t undecided, uint64_t failed)
{
	int64_t n_threads = query->program->n_threads, times = 1;

	if (query->n_leaves++ >= MAX_LEAVES) {
		query->gave_up = true;
		return;
	}
	for (uint32_t i = 0; i < query->n_dims; i++) {
		times *= query->dims[i].high - query->dims[i].low + 1;
		query->values[query->dims[i].var->id] = query->dims[i].low;
	}
	for (int64_t first = 0; first < n_threads; first += 32) {
		struct warp_lanes lanes = { (uint32_t)(first / 32), 0, { 0 } };
		lanes.n = (int)min_of(32, n_threads - first);
		for (int i = 0; i < lanes.n; i++)
			lanes.threads[i] = first + i;
		count_warp(query, &lanes, undecided, failed, times);
	}
}

/* ---- halving ---- */

/* A dimension to halve: of an undecided condition, else one that moves lanes; -1: none. */
static int find_split(const struct site_query *query, uint64_t undecided)
{
	uint64_t wanted = 0;
	int widest = -1;

	for (; undecided; undecided &= undecided - 1)
		wanted |= query->conditions[__builtin_ctzll(undecided)].dims;
	for (uint32_t i = 0; i < query->n_dims; i++) {
		const struct site_dim *dim = &query->dims[i];
		if (dim->low == dim->high || !(wanted >> i & 1 || dim->moves_lanes))
			continue;
		if (widest < 0 || dim->high - dim->low > query->dims[widest].high - query->dims[widest].low)
			widest = (int)i;
	}
	return widest;
}

/* `failed`: source conditions that hold nowhere in the box. The depth is at most 64 halvings a
 * dimension. */
static void count_box(struct site_query *query, uint64_t undecided, uint64_t failed)
{
	int split;
	int64_t low, high, middle;

	for (uint64_t left = undecided; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		const struct site_condition *condition = &query->conditions[i];
		struct site_bounds bounds = site_bounds_of(query, condition->e);
		bool never = is_never(bounds);
		if (never && !condition->is_source)
			return;
		if (never)
			failed |= 1ull << i;
		if (never || is_always(bounds))
			undecided &= ~(1ull << i);
	}
	split = query->gave_up ? -1 : find_split(query, undecided);
	if (split < 0) {
		count_leaf(query, undecided, failed);
		return;
	}
	low = query->dims[split].low;
	high = query->dims[split].high;
	middle = low + (high - low) / 2;
	query->dims[split].high = middle;
	count_box(query, undecided, failed);
	query->dims[split].low = middle + 1;
	query->dims[split].high = high;
	count_box(query, undecided, failed);
	query->dims[split].low = low;
}

void site_count(struct site_query *query)
{
	uint64_t all = query->n_conditions ? ~0ull >> (64 - query->n_conditions) : 0;

	assert(query->program->n_threads > 0);
	assert(query->n_dims <= MAX_DIMS && query->n_conditions <= MAX_CONDITIONS);
	for (uint32_t i = 0; i < query->n_dims; i++)
		if (query->dims[i].high < query->dims[i].low)
			return;
	count_box(query, all, 0);
}
