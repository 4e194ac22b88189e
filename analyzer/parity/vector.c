/*
 * How many elements a partitioned loop moves at once. Facts: TileLang 0.1.15,
 * src/transform/loop_vectorize.cc. Every access has a widest vector along the innermost variable;
 * memory accesses decide, registers only where nothing else does or where the loop's body has
 * several statements.
 *
 * TileLang proves that offsets are consecutive and aligned with its arithmetic; the model evaluates
 * them: at every value of the innermost variable, and at several values of all other variables.
 */
#include "analyzer/parity/parity_internal.h"

#include <string.h>

enum { VECTOR_BITS = 128, N_SAMPLES = 5, MAX_EXTENT = 1 << 12 };

/* An offset in elements as a function of the innermost variable. */
struct offset {
	struct expr_code *code;
	const int32_t *map; /* slot of an element, when the buffer's layout is known */
	const struct layout *shared;
	int64_t n_map;
	uint32_t var_id;
	int64_t extent;
	int64_t *samples[N_SAMPLES]; /* values of all variables */
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Loads inside an index are values that nothing is known of. */
static const struct expr *unknown_load(void *user, const struct expr *load)
{
	struct pinfer *infer = user;
	struct var *var = expr_new_var(infer->pool, VAR_PARAM, load->as.buffer->name, DTYPE_I32);

	return expr_of_var(infer->pool, var);
}

static const struct expr *flat_offset(struct pinfer *infer, const struct paccess *access)
{
	const struct buffer *buffer = access->buffer;
	const struct expr *sum = expr_int(infer->pool, 0), *stride = expr_int(infer->pool, 1);

	for (uint32_t d = buffer->rank; d-- > 0;) {
		const struct expr *own = buffer->strides[d] ? buffer->strides[d] : stride;

		sum = expr_add(infer->pool, sum, expr_binary(infer->pool, BIN_MUL, access->index[d], own));
		stride = expr_binary(infer->pool, BIN_MUL, stride, buffer->shape[d]);
	}
	return sum;
}

static void draw_samples(struct pinfer *infer, struct offset *offset)
{
	uint32_t n = expr_n_vars(infer->pool);
	uint64_t state = 12345;

	for (int s = 0; s < N_SAMPLES; s++) {
		offset->samples[s] = arena_array(infer->arena, int64_t, n);
		for (uint32_t id = 0; id < n; id++) {
			const struct var *var = expr_var_by_id(infer->pool, id);
			int64_t min = var->min > -1000000 ? var->min : 0;
			int64_t max = var->max < 1000000 ? var->max : min + 999983;
			int64_t divisor = var->divisor > 1 ? var->divisor : 1;
			int64_t value = min + (int64_t)(next_random(&state) % (uint64_t)(max - min + 1));

			offset->samples[s][id] = s == 0 && min >= 0 ? min : value / divisor * divisor;
		}
	}
}

static bool make_offset(struct pinfer *infer, const struct ploop *loop, const struct expr *e,
                        struct offset *offset)
{
	struct expr_subst subst = { .on_load = unknown_load, .user = infer };

	e = expr_substitute(infer->pool, e, &subst);
	if (!e->is_index)
		return false;
	offset->code = expr_compile(infer->arena, e);
	offset->var_id = loop->inner_var->id;
	offset->extent = loop->inner_extent < MAX_EXTENT ? loop->inner_extent : MAX_EXTENT;
	draw_samples(infer, offset);
	return true;
}

static int64_t shared_offset(const struct offset *offset, int64_t element)
{
	const struct layout *layout = offset->shared;
	int64_t index[MAX_RANK];

	for (uint32_t d = layout->rank; d-- > 0;) {
		index[d] = element % layout->shape[d];
		element /= layout->shape[d];
	}
	return layout_at(layout, index, 0).offset * 8 / layout->elem_bits;
}

static int64_t offset_at(const struct offset *offset, int sample, int64_t x)
{
	int64_t value;

	offset->samples[sample][offset->var_id] = x;
	value = expr_run(offset->code, offset->samples[sample]);
	if (!offset->map && !offset->shared)
		return value;
	value = value >= 0 ? value % offset->n_map : 0;
	return offset->map ? offset->map[value] : shared_offset(offset, value);
}

/* The same for all lanes of each vector of `width`. */
static bool is_invariant(const struct offset *offset, int64_t width)
{
	for (int s = 0; s < N_SAMPLES; s++)
		for (int64_t x = 0; x < offset->extent; x++)
			if (x % width != 0 &&
			    offset_at(offset, s, x) != offset_at(offset, s, x / width * width))
				return false;
	return true;
}

static bool can_vectorize(const struct offset *offset, int64_t width, bool broadcast)
{
	if (width == 1)
		return true;
	if (offset->extent % width != 0)
		return false;
	if (broadcast && is_invariant(offset, width))
		return true;
	for (int s = 0; s < N_SAMPLES; s++) {
		if (offset_at(offset, s, 0) % width != 0)
			return false;
		for (int64_t x = 0; x < offset->extent; x++)
			if (offset_at(offset, s, x) != offset_at(offset, s, x / width * width) + x % width)
				return false;
	}
	return true;
}

static int64_t gcd(int64_t a, int64_t b)
{
	while (b != 0) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* ---- constraints ---- */

struct plan {
	struct pinfer *infer;
	const struct ploop *loop;
	int64_t loop_width; /* gcd of the extent with the widest vector */
	int64_t local, memory, broadcast, call, other_call;
	bool scalar, has_memory;
	vec_of(struct offset) deferred;
	vec_of(int64_t) deferred_width;
};

/* Registers: by the layout that is known. */
static void set_map(struct plan *plan, const struct buffer *buffer, struct offset *offset)
{
	const struct pstate *state = &plan->infer->state;

	offset->n_map = buffer_n_elems(buffer);
	if (buffer->scope == SCOPE_FRAGMENT && state->frag[buffer->id])
		offset->map = state->frag[buffer->id]->slot;
	if (buffer->scope == SCOPE_SHARED)
		offset->shared = state->shared[buffer->id];
}

/* The widest vector of one access; -1: its store must stay scalar. */
static int64_t access_width(struct plan *plan, const struct paccess *access,
                            const struct offset *offset)
{
	int64_t width = plan->loop_width;
	int64_t least = gcd(width, VECTOR_BITS / (int64_t)dtype_bits(access->buffer->type));
	bool invariant = false;

	for (int64_t tried = width; tried >= least && !invariant && tried > 0; tried /= 2) {
		invariant = is_invariant(offset, tried);
		if (invariant)
			width = tried;
		if (tried == 1)
			break;
	}
	if (!invariant)
		width = least;
	if (access->is_store && invariant)
		return -1;
	while (width > 1 && !can_vectorize(offset, width, true))
		width /= 2;
	return width;
}

static void add_access_width(struct plan *plan, const struct paccess *access)
{
	struct offset offset = { 0 }, plain;
	const struct buffer *buffer = access->buffer;
	bool is_local = buffer->scope != SCOPE_SHARED && buffer->scope != SCOPE_GLOBAL;
	int64_t width;

	if (!access->is_store && buffer->rank == 1 && buffer_extent(buffer, 0) == 1)
		return;
	if (!make_offset(plan->infer, plan->loop, flat_offset(plan->infer, access), &offset)) {
		plan->scalar = true;
		return;
	}
	plain = offset;
	set_map(plan, buffer, &offset);
	width = access_width(plan, access, &offset);
	if (width < 0) {
		plan->scalar = true;
	} else if (is_local || (!access->is_store && is_invariant(&plain, VECTOR_BITS))) {
		int64_t *least = is_local ? &plan->local : &plan->broadcast;

		*least = gcd(*least, width);
		vec_push(plan->infer->arena, &plan->deferred, plain);
		vec_push(plan->infer->arena, &plan->deferred_width, width);
	} else {
		plan->memory = gcd(plan->memory, width);
		plan->has_memory = true;
	}
}

/* A condition, or the arguments of a call, must be the same for all lanes. */
static void add_condition(struct plan *plan, const struct expr *condition)
{
	struct offset offset = { 0 };
	int64_t width = plan->loop_width;

	if (!make_offset(plan->infer, plan->loop, condition, &offset))
		width = expr_uses(condition, plan->loop->inner_var) ? 1 : width;
	else
		while (width > 1 && !is_invariant(&offset, width))
			width /= 2;
	plan->call = gcd(plan->call, width);
	plan->other_call = gcd(plan->other_call, width);
}

static int64_t revalidate(const struct plan *plan, int64_t width)
{
	for (uint32_t i = 0; i < plan->deferred.n; i++)
		if (width > plan->deferred_width.p[i] && !can_vectorize(&plan->deferred.p[i], width, true))
			width = gcd(width, plan->deferred_width.p[i]);
	return width;
}

static int64_t select_width(const struct plan *plan)
{
	int64_t deferred = gcd(plan->local, plan->broadcast);

	if (plan->scalar)
		return 1;
	if (plan->loop->many_statements)
		return gcd(gcd(deferred, plan->memory), plan->call);
	if (plan->has_memory)
		return revalidate(plan, gcd(plan->memory, plan->other_call));
	return gcd(deferred, plan->call);
}

/* ---- fused nests ---- */

static bool is_power_of_two(int64_t n)
{
	return n > 0 && (n & (n - 1)) == 0;
}

/* Nests of memory accesses alone run over one number when their extents are powers of two. */
static bool is_fused(const struct ploop *loop)
{
	if (loop->fragments.n > 0 || loop->rank < 2 || loop->serial_vars.n > 0)
		return false;
	for (uint32_t d = 0; d < loop->rank; d++)
		if (!is_power_of_two(loop->shape[d]))
			return false;
	return true;
}

static const struct expr *replace(struct pinfer *infer, const struct expr *e,
                                  const struct expr_subst *subst)
{
	return e ? expr_substitute(infer->pool, e, subst) : NULL;
}

struct ploop *parity_rewrite(struct pinfer *infer, const struct ploop *loop,
                             const struct expr_subst *subst)
{
	struct ploop *out = arena_new(infer->arena, struct ploop);

	*out = *loop;
	memset(&out->accesses, 0, sizeof(out->accesses));
	memset(&out->conditions, 0, sizeof(out->conditions));
	memset(&out->calls, 0, sizeof(out->calls));
	for (uint32_t i = 0; i < loop->accesses.n; i++) {
		struct paccess access = loop->accesses.p[i];

		for (uint32_t d = 0; d < access.buffer->rank; d++)
			access.index[d] = replace(infer, access.index[d], subst);
		access.condition = replace(infer, access.condition, subst);
		vec_push(infer->arena, &out->accesses, access);
	}
	for (uint32_t i = 0; i < loop->conditions.n; i++)
		vec_push(infer->arena, &out->conditions, replace(infer, loop->conditions.p[i], subst));
	for (uint32_t i = 0; i < loop->calls.n; i++)
		vec_push(infer->arena, &out->calls, replace(infer, loop->calls.p[i], subst));
	return out;
}

/* The nest over one variable. */
static const struct ploop *fused(struct pinfer *infer, const struct ploop *loop)
{
	struct var *var = expr_new_var(infer->pool, VAR_LOOP, loop->vars[0]->name, DTYPE_I32);
	struct expr_subst subst = { 0 };
	struct ploop *out;
	int64_t stride = loop->n_points;

	var->max = loop->n_points - 1;
	for (uint32_t d = 0; d < loop->rank; d++) {
		const struct expr *e = expr_of_var(infer->pool, var);

		stride /= loop->shape[d];
		e = expr_mod_int(infer->pool, expr_div_int(infer->pool, e, stride), loop->shape[d]);
		map_set(infer->arena, &subst.of_var, loop->vars[d]->id, (void *)(uintptr_t)e);
	}
	out = parity_rewrite(infer, loop, &subst);
	out->inner_var = var;
	out->inner_extent = loop->n_points;
	return out;
}

int64_t parity_vector(struct pinfer *infer, const struct ploop *loop)
{
	return parity_loop_vector(infer, is_fused(loop) ? fused(infer, loop) : loop);
}

int64_t parity_loop_vector(struct pinfer *infer, const struct ploop *loop)
{
	struct plan plan = {
		.infer = infer,
		.loop = loop,
		.local = VECTOR_BITS,
		.memory = VECTOR_BITS,
		.broadcast = VECTOR_BITS,
		.call = VECTOR_BITS,
		.other_call = VECTOR_BITS,
	};

	if (!loop->inner_var)
		return 1;
	plan.loop_width = gcd(VECTOR_BITS, loop->inner_extent);
	for (uint32_t i = 0; i < loop->accesses.n; i++)
		add_access_width(&plan, &loop->accesses.p[i]);
	for (uint32_t i = 0; i < loop->conditions.n; i++)
		add_condition(&plan, loop->conditions.p[i]);
	for (uint32_t i = 0; i < loop->calls.n; i++)
		add_condition(&plan, loop->calls.p[i]);
	if (loop->cast_lanes > 0)
		plan.call = gcd(plan.call, loop->cast_lanes);
	return gcd(plan.loop_width, select_width(&plan));
}
