/*
 * Accesses of elementwise loops and copies, and what they cost. The operands of gemms are in
 * access_gemm.c.
 *
 * Example: a copy of a 128 x 64 float16 tile by 128 threads, eight elements a thread and
 * instruction
 *
 *     loop    fragment (128, 64) thread = i%16*8 + j/8, slot = i/16*8 + j%8, vector_elems 8
 *     access  cp.async of 16 bytes, step < 8, offset = (tid//8 + 16*step)*128 + tid%8*16
 */
#include "analyzer/solve/access.h"

#include "analyzer/layout/place_map.h"

#include <assert.h>
#include <string.h>

void access_space_init(struct access_space *space, struct cx *cx, struct expr_pool *pool,
                       int64_t n_threads)
{
	struct var *tid = expr_new_var(pool, VAR_THREAD, intern_text(cx->names, "tid"), DTYPE_I32);

	*space = (struct access_space){ .pool = pool, .cx = cx, .n_threads = n_threads };
	tid->axis = 3;
	tid->min = 0;
	tid->max = n_threads - 1;
	space->tid = tid;
}

const struct var *access_iter_var(struct access_space *space, uint32_t position, int64_t extent)
{
	static const char *const names[MAX_ITERS] = { "step", "part", "c0", "c1", "c2", "c3", "c4" };

	assert(position < MAX_ITERS && extent >= 1);
	for (uint32_t i = 0; i < space->iters.n; i++)
		if (space->iters.p[i].position == position && space->iters.p[i].extent == extent)
			return space->iters.p[i].var;
	struct var *var = expr_new_var(space->pool, VAR_LOOP,
	                               intern_text(space->cx->names, names[position]), DTYPE_I32);
	var->min = 0;
	var->max = extent - 1;
	vec_push(space->cx->arena, &space->iters, (struct access_iter){ var, extent, position });
	return var;
}

const struct expr *access_iter_value(struct access_space *space, const struct access_iter *iter)
{
	return iter->extent == 1 ? expr_int(space->pool, 0) : expr_of_var(space->pool, iter->var);
}

const struct expr *access_substitute(struct access_space *space, const struct expr *e,
                                     const struct var *const *vars,
                                     const struct expr *const *values, uint32_t n)
{
	struct expr_subst subst = { 0 };

	for (uint32_t i = 0; i < n; i++)
		map_set(space->cx->arena, &subst.of_var, vars[i]->id, (void *)(uintptr_t)values[i]);
	return expr_substitute(space->pool, e, &subst);
}

void access_loop_index(struct access_space *space, const struct loop_plan *loop,
                       const struct expr *slot, const struct expr **index,
                       const struct expr **guard)
{
	const struct expr *tid = expr_of_var(space->pool, space->tid);

	*guard = NULL;
	if (!layout_inverse_expr(space->pool, loop->layout, (struct thread_slot){ tid, slot }, index,
	                         guard))
		BUG("the partition of a loop has no inverse");
}

const struct expr *access_offset(struct access_space *space, const struct buffer *buffer,
                                 const struct layout *layout, const struct expr *const *index)
{
	if (layout)
		return layout_axis_expr(space->pool, layout, AXIS_OFFSET, index, NULL);
	return place_offset(space->pool, buffer, index);
}

/* ---- elementwise accesses ---- */

/* What stays the same while vector widths are tried. */
struct elementwise {
	struct access_space *space;
	const struct elem_ref *ref;
	const struct layout *linear; /* the layout without its XOR terms */
};

/* Index of the buffer at loop slot `slot`; the loop's guard goes to `guard`. */
static void index_at_slot(struct access_space *space, const struct elem_ref *ref,
                          const struct expr *slot, const struct expr **index,
                          const struct expr **guard)
{
	const struct expr *loop_index[MAX_RANK];

	access_loop_index(space, ref->loop, slot, loop_index, guard);
	for (uint32_t d = 0; d < ref->buffer->rank; d++)
		index[d] =
			access_substitute(space, ref->index[d], ref->vars, loop_index, ref->loop->layout->rank);
}

/* Bytes of one element of the buffer, 0 when it is narrower than a byte. */
static int64_t elem_bytes(const struct buffer *buffer)
{
	return dtype_bits(buffer->type) / 8;
}

/* XOR terms must leave the low `bytes` of every address alone. */
static bool swizzle_keeps(const struct layout *layout, int64_t bytes)
{
	if (!layout)
		return true;
	for (uint32_t i = 0; i < layout->n_xors; i++)
		if (((int64_t)1 << layout->xors[i].to_bit) < bytes)
			return false;
	return !layout->table;
}

/* The element behind slot `base` + k lies k elements behind the one at `base`, for all k < w. */
static bool is_contiguous(const struct elementwise *e, const struct expr *base,
                          const struct expr *first, int64_t w)
{
	struct expr_pool *pool = e->space->pool;
	int64_t unit = e->ref->layout ? elem_bytes(e->ref->buffer) : 1;
	const struct expr *k = expr_of_var(pool, access_iter_var(e->space, MAX_ITERS - 1, w)),
					  *index[MAX_RANK], *guard;

	index_at_slot(e->space, e->ref, expr_add(pool, base, k), index, &guard);
	const struct expr *next = access_offset(e->space, e->ref->buffer, e->linear, index);
	return expr_sub(pool, next, first) == expr_mul_int(pool, k, unit);
}

/*
 * The w elements are inside of the buffer all or none: an index stays the same, or counts on from a
 * multiple of w in a dimension of such an extent.
 */
static bool is_bounded_alike(const struct elementwise *e, const struct expr *base,
                             const struct expr *const *first, int64_t w)
{
	struct expr_pool *pool = e->space->pool;
	const struct buffer *buffer = e->ref->buffer;
	uint32_t last = buffer->rank - 1;

	/* Row-major neighbours differ in the last index. */
	if (!buffer->map)
		return expr_divisor(first[last]) % w == 0 && expr_divisor(buffer->shape[last]) % w == 0;
	const struct expr *k = expr_of_var(pool, access_iter_var(e->space, MAX_ITERS - 1, w)),
					  *next[MAX_RANK], *guard;

	index_at_slot(e->space, e->ref, expr_add(pool, base, k), next, &guard);
	for (uint32_t d = 0; d < buffer->rank; d++) {
		const struct expr *step = expr_sub(pool, next[d], first[d]);

		if (step != expr_int(pool, 0) && (step != k || expr_divisor(first[d]) % w != 0 ||
		                                  expr_divisor(buffer->shape[d]) % w != 0))
			return false;
	}
	return true;
}

/* Vectors of w elements end where the tile ends, in the dimension that they run along. */
static bool vectors_end(const struct layout *loop, int64_t w)
{
	for (uint32_t i = 0; i < loop->n_digits; i++) {
		const struct digit *digit = &loop->digits[i];

		if (digit->axis == AXIS_SLOT && digit->stride < w && digit->dim != DIM_REPLICA &&
		    loop->shape[digit->dim] % w != 0)
			return false;
	}
	return true;
}

/*
 * Elements 0 .. w-1 behind slot base are neighbours in memory, aligned as one access of w elements,
 * and guarded alike.
 */
static bool vector_fits(const struct elementwise *e, const struct expr *base, int64_t w)
{
	const struct elem_ref *ref = e->ref;
	const struct expr *index[MAX_RANK], *guard;
	int64_t bytes = w * elem_bytes(ref->buffer), unit = ref->layout ? elem_bytes(ref->buffer) : 1;

	if (w == 1)
		return true;
	if (bytes > 16 || !swizzle_keeps(ref->layout, bytes))
		return false;
	index_at_slot(e->space, ref, base, index, &guard);
	if (!vectors_end(ref->loop->layout, w))
		return false;
	if (!ref->layout && !is_bounded_alike(e, base, index, w))
		return false;
	const struct expr *first = access_offset(e->space, ref->buffer, e->linear, index);
	return expr_divisor(first) % (w * unit) == 0 && is_contiguous(e, base, first, w);
}

/* Slot of the first element of vector `u` in group `g`. */
static const struct expr *slot_base(struct access_space *space, const struct access *access,
                                    int64_t vector_elems, int64_t w)
{
	struct expr_pool *pool = space->pool;
	const struct expr *slot =
		expr_mul_int(pool, access_iter_value(space, &access->iters[0]), vector_elems);

	return expr_add(pool, slot, expr_mul_int(pool, access_iter_value(space, &access->iters[1]), w));
}

static void set_iters(struct access_space *space, struct access *out, int64_t n_groups,
                      int64_t n_vectors)
{
	out->n_iters = 2;
	out->iters[0] = (struct access_iter){ access_iter_var(space, 0, n_groups), n_groups, 0 };
	out->iters[1] = (struct access_iter){ access_iter_var(space, 1, n_vectors), n_vectors, 1 };
}

static const struct layout *without_xors(struct access_space *space, const struct layout *layout)
{
	struct layout *linear;

	if (!layout || !layout->n_xors)
		return layout;
	linear = arena_new(space->cx->arena, struct layout);
	*linear = *layout;
	linear->n_xors = 0;
	return linear;
}

const struct expr *access_first_replica(struct access_space *space, const struct layout *layout)
{
	struct expr_pool *pool = space->pool;

	if (layout->n_replicas <= 1)
		return NULL;
	return expr_binary(pool, BIN_EQ,
	                   layout_replica_expr(pool, layout, expr_of_var(pool, space->tid)),
	                   expr_int(pool, 0));
}

/* All places of a vector read one element, and all or none do: one load serves them. */
static bool is_one_element(const struct access *access, const struct expr *const *index)
{
	const struct var *part = access->iters[1].var;

	if (access->guard && expr_uses(access->guard, part))
		return false;
	for (uint32_t d = 0; d < access->buffer->rank; d++)
		if (expr_uses(index[d], part))
			return false;
	return true;
}

void access_elementwise(struct access_space *space, const struct elem_ref *ref, bool is_store,
                        int64_t max_bytes, struct access *out)
{
	struct elementwise e = { space, ref, without_xors(space, ref->layout) };
	int64_t v = ref->loop->vector_elems, w = v, bytes = elem_bytes(ref->buffer),
			n_slots = ref->loop->layout->n_slots;
	const struct expr *at[MAX_RANK];

	assert(v >= 1 && n_slots % v == 0 && bytes >= 1);
	*out = (struct access){ .op = is_store ? BANK_ST : BANK_LD, .buffer = ref->buffer };
	for (;; w /= 2) {
		while (v % w != 0 || (w & (w - 1)) != 0)
			w--;
		set_iters(space, out, n_slots / v, v / w);
		if (w == 1 || (w * bytes <= (max_bytes ? max_bytes : 16) &&
		               vector_fits(&e, slot_base(space, out, v, w), w)))
			break;
	}
	out->bytes = w * bytes;
	out->slot = slot_base(space, out, v, w);
	index_at_slot(space, ref, out->slot, at, &out->guard);
	out->offset = access_offset(space, ref->buffer, ref->layout, at);
	out->replica = is_store ? access_first_replica(space, ref->loop->layout) : NULL;
	out->is_one = !is_store && w == 1 && v > 1 && is_one_element(out, at);
	if (out->is_one)
		out->iters[1].extent = 1;
}

int64_t access_atomic_bytes(const struct target *target, const struct buffer *buffer,
                            enum atomic_kind kind)
{
	struct dtype type = buffer->type;
	bool is_float = type.kind == TYPE_FLOAT || type.kind == TYPE_BFLOAT;

	if (type.lanes != 1 || (!is_float && type.kind != TYPE_INT && type.kind != TYPE_UINT) ||
	    (is_float && kind == ATOMIC_OR) || type.bits < 16)
		return 0;
	if (is_float && kind == ATOMIC_ADD) {
		if (type.bits == 16)
			return type.kind == TYPE_FLOAT || target->compute >= 90 ? 4 : 2;
		if (type.bits == 32 && target->compute >= 90 && buffer->scope == SCOPE_GLOBAL)
			return 16;
	}
	return type.bits / 8;
}

const struct expr *access_predicate(struct access_space *space, const struct access *access)
{
	return expr_and(space->pool, access->guard, access->replica);
}

/* ---- fragment operands of loops ---- */

/* A loop's places while its fragment operand is looked at: one (thread, slot) after another. */
struct places {
	struct access_space *space;
	const struct loop_plan *loop;
	const struct var *slot;
	const struct expr *guard;
	int64_t *values;
};

static struct places places_open(struct access_space *space, const struct loop_plan *loop,
                                 const struct var *slot, const struct expr *guard)
{
	int64_t *values = arena_array(space->cx->arena, int64_t, expr_n_vars(space->pool));

	return (struct places){ space, loop, slot, guard, values };
}

/* Moves to a place; false when it holds no element. */
static bool places_at(const struct places *places, int64_t thread, int64_t slot)
{
	places->values[places->space->tid->id] = thread;
	places->values[places->slot->id] = slot;
	return !places->guard || expr_eval_int(places->guard, places->values);
}

/*
 * Variables from outside the loop that an index reads: all their values count, so they are tried
 * one after another. `is_bounded` is false when there are too many.
 */
enum { MAX_OUTER = 4, MAX_OUTER_VALUES = 4096 };

struct outer {
	const struct places *places;
	const struct var *vars[MAX_OUTER];
	uint32_t n;
	int64_t n_values;
	bool is_bounded;
};

static void find_outer(void *user, const struct expr *e)
{
	struct outer *outer = user;
	const struct var *var = e->as.var;
	int64_t extent;

	if (e->kind == EXPR_REG || e->kind == EXPR_LOAD || e->kind == EXPR_CALL)
		outer->is_bounded = false;
	if (e->kind != EXPR_VAR || var == outer->places->space->tid || var == outer->places->slot)
		return;
	for (uint32_t i = 0; i < outer->n; i++)
		if (outer->vars[i] == var)
			return;
	if (outer->n == MAX_OUTER || var->min == INT64_MIN || var->max == INT64_MAX ||
	    __builtin_sub_overflow(var->max, var->min - 1, &extent) || extent < 1 ||
	    extent > MAX_OUTER_VALUES / outer->n_values) {
		outer->is_bounded = false;
		return;
	}
	outer->vars[outer->n++] = var;
	outer->n_values *= extent;
}

static struct outer outer_open(const struct places *places, const struct expr *e)
{
	struct outer outer = { .places = places, .n_values = 1, .is_bounded = true };

	expr_walk(e, find_outer, &outer);
	for (uint32_t i = 0; i < outer.n; i++)
		places->values[outer.vars[i]->id] = outer.vars[i]->min;
	return outer;
}

/* The next values; false after the last. */
static bool outer_next(const struct outer *outer)
{
	for (uint32_t i = 0; i < outer->n; i++) {
		int64_t *value = &outer->places->values[outer->vars[i]->id];

		if (++*value <= outer->vars[i]->max)
			return true;
		*value = outer->vars[i]->min;
	}
	return false;
}

/* For the present values of outer variables. */
static bool owners_match_at(const struct places *places, const struct expr *owner, int64_t n_owners,
                            struct owner_mismatch *mismatch)
{
	for (int64_t t = 0; t < places->loop->layout->n_threads; t++)
		for (int64_t s = 0; s < places->loop->layout->n_slots; s++) {
			if (!places_at(places, t, s))
				continue;
			int64_t found = expr_eval_int(owner, places->values);
			if (found == t && t < n_owners)
				continue;
			mismatch->thread = t;
			mismatch->owner = found == t ? 0 : found;
			return false;
		}
	return true;
}

/*
 * Every place finds its fragment element in its own thread, which is one of the fragment's
 * `n_owners`; else the first that does not is left in `places` and `mismatch`.
 */
static bool owners_match(const struct places *places, const struct expr *owner, int64_t n_owners,
                         struct owner_mismatch *mismatch)
{
	struct outer outer = outer_open(places, owner);

	do
		if (!owners_match_at(places, owner, n_owners, mismatch))
			return false;
	while (outer_next(&outer));
	*mismatch = (struct owner_mismatch){ .thread = -1, .owner = -1 };
	return outer.is_bounded;
}

/* The slot as a table over loop slots, when all threads agree on it; NULL when they do not. */
static const struct expr *slot_table(const struct places *places, const struct expr *e)
{
	struct access_space *space = places->space;
	int64_t n_slots = places->loop->layout->n_slots;
	int64_t *table = arena_array(space->cx->arena, int64_t, (size_t)n_slots);
	struct outer outer = outer_open(places, e);

	if (outer.n > 0 || !outer.is_bounded)
		return NULL;
	for (int64_t s = 0; s < n_slots; s++) {
		bool seen = false;
		for (int64_t t = 0; t < places->loop->layout->n_threads; t++) {
			if (!places_at(places, t, s))
				continue;
			int64_t found = expr_eval_int(e, places->values);
			if (seen && found != table[s])
				return NULL;
			table[s] = found;
			seen = true;
		}
	}
	const struct int_table *made = expr_new_table(space->pool, table, (uint64_t)n_slots);
	return expr_table(space->pool, made, expr_of_var(space->pool, places->slot));
}

/* The index in the fragment is the loop's own variables, one by one. */
static bool is_identity(const struct elem_ref *ref)
{
	const struct layout *loop = ref->loop->layout;

	if (ref->layout->rank != loop->rank)
		return false;
	for (uint32_t d = 0; d < loop->rank; d++)
		if (ref->index[d]->kind != EXPR_VAR || ref->index[d]->as.var != ref->vars[d])
			return false;
	return ref->layout == loop || layout_equal(ref->layout, loop, NULL);
}

/*
 * The slot of the element at `at`, for the threads that the loop runs on: the others, if the block
 * has more, do not get there.
 */
static const struct expr *own_slot(struct access_space *space, const struct elem_ref *ref,
                                   const struct expr *const *at, const struct expr *replica)
{
	struct expr_pool *pool = space->pool;
	int64_t n_threads = ref->loop->layout->n_threads;
	const struct expr *slot = layout_axis_expr(pool, ref->layout, AXIS_SLOT, at, replica);
	const struct expr *tid = expr_of_var(pool, space->tid), *runs;

	if (n_threads >= space->n_threads || !expr_uses(slot, space->tid))
		return slot;
	runs = expr_of_var(pool, access_iter_var(space, MAX_ITERS - 2, n_threads));
	slot = access_substitute(space, slot, &space->tid, &runs, 1);
	return access_substitute(space, slot, &runs->as.var, &tid, 1);
}

bool access_fragment_slot(struct access_space *space, const struct elem_ref *ref,
                          const struct var *slot, const struct expr **out_slot,
                          struct owner_mismatch *mismatch)
{
	struct expr_pool *pool = space->pool;
	const struct expr *tid = expr_of_var(pool, space->tid), *at[MAX_RANK], *guard, *replica;

	*out_slot = expr_of_var(pool, slot);
	if (is_identity(ref))
		return true;
	index_at_slot(space, ref, *out_slot, at, &guard);
	replica = layout_replica_expr(pool, ref->layout, tid);
	const struct expr *owner = layout_axis_expr(pool, ref->layout, AXIS_THREAD, at, replica);
	struct places places = places_open(space, ref->loop, slot, guard);
	bool all_own = owner == tid && ref->loop->layout->n_threads <= ref->layout->n_threads;
	if (!all_own && !owners_match(&places, owner, ref->layout->n_threads, mismatch)) {
		for (uint32_t d = 0; d < ref->buffer->rank; d++)
			mismatch->element[d] = expr_eval_int(at[d], places.values);
		return false;
	}
	*out_slot = own_slot(space, ref, at, replica);
	if (!expr_uses(*out_slot, space->tid))
		return true;
	*out_slot = slot_table(&places, *out_slot);
	*mismatch = (struct owner_mismatch){ .thread = -1, .owner = -1 };
	return *out_slot != NULL;
}

void access_index_vars(struct access_space *space, uint32_t rank, const int64_t *shape,
                       const struct var **vars)
{
	for (uint32_t d = 0; d < rank; d++) {
		if (d < 3) {
			vars[d] = access_iter_var(space, 2 + d, shape[d]);
			continue;
		}
		struct var *var =
			expr_new_var(space->pool, VAR_LOOP, intern_text(space->cx->names, "z"), DTYPE_I32);
		var->min = 0;
		var->max = shape[d] - 1;
		vars[d] = var;
	}
}

/* ---- reductions ---- */

static bool is_power_of_two(int64_t n)
{
	return (n & (n - 1)) == 0;
}

struct reduce_split access_reduce_split(const struct layout *source, const struct digit *digit)
{
	int64_t end = digit->stride * digit->extent, lanes_end = 32;
	struct reduce_split through_memory = { 1, digit->extent };

	if (digit->stride >= 32 || !is_power_of_two(digit->stride))
		return through_memory;
	while (lanes_end / 2 >= end)
		lanes_end /= 2;
	/* Behind the topmost digit's threads nobody else's follow. */
	if (end % lanes_end != 0 && end != source->n_threads)
		return through_memory;
	return (struct reduce_split){ lanes_end / digit->stride, (end + lanes_end - 1) / lanes_end };
}

uint32_t access_scan_levels(const struct layout *layout, int64_t dim, struct scan_level *out)
{
	int64_t n_within = 1;
	uint32_t n = 0;

	for (uint32_t i = 0; i < layout->n_digits; i++) {
		uint32_t to = n;

		if (layout->digits[i].dim != dim)
			continue;
		for (; to > 0 && out[to - 1].digit->div > layout->digits[i].div; to--)
			out[to] = out[to - 1];
		out[to] = (struct scan_level){ .digit = &layout->digits[i] };
		n++;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct digit *digit = out[i].digit;
		int64_t span = digit->stride * digit->extent;

		out[i].n_within = n_within;
		out[i].is_last = i + 1 == n;
		if (digit->axis == AXIS_SLOT)
			n_within *= digit->extent;
		out[i].n_blocks = layout->n_slots / n_within;
		if (digit->axis != AXIS_THREAD)
			continue;
		out[i].split = access_reduce_split(layout, digit);
		out[i].n_groups = (layout->n_threads + span - 1) / span * digit->stride;
	}
	return n;
}

/* ---- conversions ---- */

/* The whole tile, element by element, seen by one side of a conversion. */
struct side {
	struct loop_plan loop;
	struct buffer buffer; /* the workspace as a tile */
	const struct var *vars[MAX_RANK];
	const struct expr *index[MAX_RANK];
};

static void side_open(struct access_space *space, const struct conversion *conversion,
                      const struct layout *layout, struct side *side)
{
	*side = (struct side){ .loop = { layout, solve_vector_elems(layout) },
		                   .buffer = *conversion->buffer };
	side->buffer.scope = SCOPE_SHARED;
	access_index_vars(space, layout->rank, layout->shape, side->vars);
	for (uint32_t d = 0; d < layout->rank; d++)
		side->index[d] = expr_of_var(space->pool, side->vars[d]);
}

bool access_convert_slot(struct access_space *space, const struct conversion *conversion,
                         const struct var *slot, const struct expr **out_slot,
                         const struct expr **guard)
{
	struct side side;
	struct owner_mismatch mismatch;
	const struct expr *unused[MAX_RANK];

	side_open(space, conversion, conversion->to, &side);
	access_loop_index(space, &side.loop, expr_of_var(space->pool, slot), unused, guard);
	struct elem_ref ref = { &side.loop, side.vars, conversion->buffer, conversion->from,
		                    side.index };
	return access_fragment_slot(space, &ref, slot, out_slot, &mismatch);
}

void access_convert(struct access_space *space, const struct conversion *conversion, bool is_store,
                    struct access *out)
{
	struct side side;

	side_open(space, conversion, is_store ? conversion->from : conversion->to, &side);
	struct elem_ref ref = { &side.loop, side.vars, &side.buffer, conversion->workspace,
		                    side.index };
	access_elementwise(space, &ref, is_store, 0, out);
	out->buffer = conversion->buffer;
}

/* ---- copies ---- */

/* Dimensions of extent > 1, in order. */
static uint32_t wide_dims(const struct region *region, uint32_t dims[MAX_RANK])
{
	uint32_t n = 0;

	for (uint32_t d = 0; d < region->buffer->rank; d++)
		if (region->extent[d] > 1)
			dims[n++] = d;
	return n;
}

/* Index of `region` in the copy's variables. */
static void region_index(struct access_space *space, const struct region *region,
                         const struct copy_space *copy, const struct expr **index)
{
	uint32_t next = 0;

	for (uint32_t d = 0; d < region->buffer->rank; d++) {
		index[d] = region->min[d];
		if (region->extent[d] > 1)
			index[d] =
				expr_add(space->pool, region->min[d], expr_of_var(space->pool, copy->vars[next++]));
	}
}

static void gather_index(struct access_space *space, const struct region *region,
                         const struct copy_space *copy, const struct expr **index)
{
	const struct gather *gather = region->gather;
	const struct expr *values[MAX_RANK];

	for (uint32_t i = 0; i < gather->n_vars; i++)
		values[i] = expr_of_var(space->pool, copy->vars[i]);
	for (uint32_t d = 0; d < region->buffer->rank; d++)
		index[d] = access_substitute(space, gather->index[d], gather->vars, values, gather->n_vars);
}

bool access_copy_space(struct access_space *space, const struct op_copy *copy,
                       struct copy_space *out)
{
	const struct gather *gather = copy->src.gather;
	uint32_t src[MAX_RANK], dst[MAX_RANK], n = wide_dims(&copy->dst, dst);

	if (gather ? gather->n_vars != n : wide_dims(&copy->src, src) != n)
		return false;
	*out = (struct copy_space){ .rank = n ? n : 1, .shape = { 1 } };
	for (uint32_t d = 0; d < n; d++) {
		if (!gather && copy->src.extent[src[d]] != copy->dst.extent[dst[d]])
			return false;
		out->shape[d] = copy->dst.extent[dst[d]];
	}
	access_index_vars(space, out->rank, out->shape, out->vars);
	if (gather)
		gather_index(space, &copy->src, out, out->src_index);
	else
		region_index(space, &copy->src, out, out->src_index);
	region_index(space, &copy->dst, out, out->dst_index);
	return true;
}

/* ---- cost ---- */

enum { N_KNOWN = 64 };

/* What a warp's access costs, by moved_key. */
struct known_count {
	uint64_t key;
	struct bank_result result; /* ideal 0: none yet */
};

/* An access compiled, with room for one value a thread. */
struct counter {
	struct known_count known[N_KNOWN];
	struct access_space *space;
	const struct access *access;
	struct expr_code *offset, *guard, *replica;
	int64_t *values; /* of variables, by id */
	int64_t *threads, *offsets, *guards, *replicas;
};

static struct counter counter_open(struct access_space *space, const struct access *access)
{
	struct arena *arena = space->cx->arena;
	size_t n = (size_t)space->n_threads;
	struct counter c = { .space = space, .access = access };

	c.offset = expr_compile(arena, access->offset);
	c.guard = access->guard ? expr_compile(arena, access->guard) : NULL;
	c.replica = access->replica ? expr_compile(arena, access->replica) : NULL;
	c.values = arena_array(arena, int64_t, expr_n_vars(space->pool));
	c.threads = arena_array(arena, int64_t, n);
	c.offsets = arena_array(arena, int64_t, n);
	c.guards = arena_array(arena, int64_t, n);
	c.replicas = arena_array(arena, int64_t, n);
	for (size_t t = 0; t < n; t++) {
		c.threads[t] = (int64_t)t;
		c.guards[t] = c.replicas[t] = 1;
	}
	return c;
}

/* Values of `code` for all threads; `out` stays as it is when there is none. */
static void run_threads(const struct counter *c, const struct expr_code *code, int64_t *out)
{
	int n = (int)c->space->n_threads;

	if (code)
		expr_run_lanes(code, c->values, &(struct lane_values){ c->space->tid->id, c->threads, n },
		               out);
}

/* A warp's access moved by whole lines costs the same: `key` is that of all such. */
static uint64_t moved_key(const struct bank_access *bank)
{
	int64_t base = bank->offsets[__builtin_ctz(bank->mask)] & ~(int64_t)127;
	uint64_t key = bank->mask;

	for (uint32_t lanes = bank->mask; lanes; lanes &= lanes - 1)
		key = (key ^ (uint64_t)(bank->offsets[__builtin_ctz(lanes)] - base)) * 0x9e3779b97f4a7c15u;
	return key ^ key >> 32;
}

static struct bank_result count_bank(struct counter *c, const struct bank_access *bank)
{
	uint64_t key = moved_key(bank);
	struct known_count *known = &c->known[key % N_KNOWN];

	if (!known->result.ideal || known->key != key) {
		known->key = key;
		known->result = bank_wavefronts(bank);
	}
	return known->result;
}

static void count_warp(struct counter *c, int64_t first, struct access_cost *cost)
{
	const struct access *access = c->access;
	struct bank_access bank = { .op = access->op,
		                        .bytes = (uint32_t)access->bytes,
		                        .n_matrices = (uint32_t)access->n_matrices };

	for (int64_t lane = 0; lane < 32 && first + lane < c->space->n_threads; lane++) {
		if (!c->guards[first + lane] || !c->replicas[first + lane])
			continue;
		bank.mask |= 1u << lane;
		bank.offsets[lane] = c->offsets[first + lane];
	}
	if (!bank.mask)
		return;
	struct bank_result result = count_bank(c, &bank);
	cost->executions++;
	cost->wavefronts += result.max;
	cost->ideal += result.ideal;
}

static void count_iteration(struct counter *c, struct access_cost *cost)
{
	run_threads(c, c->guard, c->guards);
	run_threads(c, c->replica, c->replicas);
	run_threads(c, c->offset, c->offsets);
	for (int64_t first = 0; first < c->space->n_threads; first += 32)
		count_warp(c, first, cost);
}

/* Where data decides the places or who takes part, each warp is taken to need one wavefront. */
static bool depends_on_data(const struct access *access)
{
	return !access->offset->is_index || (access->guard && !access->guard->is_index) ||
	       (access->replica && !access->replica->is_index);
}

/* All values of the iteration's variable move all addresses by whole lines alike, and nobody comes
 * or goes. */
static bool moves_by_lines(struct access_space *space, const struct access *access,
                           const struct var *var)
{
	const struct expr *zero = expr_int(space->pool, 0), *moved;

	if ((access->guard && expr_uses(access->guard, var)) ||
	    (access->replica && expr_uses(access->replica, var)))
		return false;
	if (!expr_uses(access->offset, var))
		return true;
	moved = expr_sub(space->pool, access->offset,
	                 access_substitute(space, access->offset, &var, &zero, 1));
	return !expr_uses(moved, space->tid) && expr_divisor(moved) % 128 == 0;
}

struct access_cost access_count(struct access_space *space, const struct access *access)
{
	struct access_cost cost = { 0 };
	struct arena_mark mark;
	struct counter c;
	int64_t n = 1, times = 1, extents[MAX_ITERS];

	for (uint32_t i = 0; i < access->n_iters; i++) {
		extents[i] = access->iters[i].extent;
		if (extents[i] > 1 && moves_by_lines(space, access, access->iters[i].var)) {
			times *= extents[i];
			extents[i] = 1;
		}
		n *= extents[i];
	}
	if (depends_on_data(access)) {
		n *= times * ((space->n_threads + 31) / 32);
		return (struct access_cost){ .executions = n, .wavefronts = n, .ideal = n };
	}
	mark = arena_mark(space->cx->arena);
	c = counter_open(space, access);
	for (int64_t flat = 0; flat < n; flat++) {
		int64_t rest = flat;
		for (uint32_t i = access->n_iters; i-- > 0;) {
			c.values[access->iters[i].var->id] = rest % extents[i];
			rest /= extents[i];
		}
		count_iteration(&c, &cost);
	}
	arena_release(space->cx->arena, mark);
	return (struct access_cost){ .executions = cost.executions * times,
		                         .wavefronts = cost.wavefronts * times,
		                         .ideal = cost.ideal * times,
		                         .n_looked_at = n * space->n_threads };
}
