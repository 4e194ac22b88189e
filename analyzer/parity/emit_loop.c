/*
 * Partitioned loops: each thread runs its points slot by slot, in vectors as wide as all accesses
 * allow. Loads of one address by all slots are one load, since the loop is unrolled; loads of what
 * the same thread stored, with no barrier between, are none: the compiler keeps the value.
 * Facts: TileLang 0.1.15, src/transform/loop_partition.cc, src/transform/thread_storage_sync.cc.
 */
#include "analyzer/layout/place_map.h"
#include "analyzer/parity/emit.h"

#include <assert.h>
#include <string.h>

/*
 * The point at each (thread, slot). Places that run nothing (no point, or a replica that is not the
 * first where only one may act) are not `active`; their point is that of some thread that has one,
 * so that addresses keep their form.
 */
struct places {
	int64_t n_slots;
	int64_t *points;
	int64_t *active;
	bool is_full;
};

/* Slots that no thread has take the point of a slot that differs in one bit, lowest bits last. */
static void fill_slots(int64_t *any, int64_t n_slots, const bool *filled)
{
	for (int64_t s = 0; s < n_slots; s++)
		for (int64_t bit = 2; !filled[s] && bit < n_slots; bit *= 2)
			if ((s ^ bit) < n_slots && filled[s ^ bit]) {
				any[s] = any[s ^ bit];
				break;
			}
}

static struct places find_places(struct emitter *emitter, struct pfrag *partition, bool one_replica)
{
	struct pinfer *infer = emitter->infer;
	struct places places = { .n_slots = partition->n_slots, .is_full = true };
	int64_t n_slots = places.n_slots, n = infer->n_threads * n_slots;
	int64_t *any = arena_array(infer->arena, int64_t, (size_t)n_slots);
	bool *filled = arena_array(infer->arena, bool, (size_t)n_slots);

	places.points = arena_array(infer->arena, int64_t, (size_t)n);
	places.active = arena_array(infer->arena, int64_t, (size_t)n);
	memset(places.points, -1, (size_t)n * sizeof(int64_t));
	for (int64_t r = partition->n_reps - 1; r >= 0; r--)
		for (int64_t p = partition->n_elems - 1; p >= 0; p--) {
			int64_t thread = pfrag_thread(partition, r, p), slot = partition->slot[p];

			if (thread >= infer->n_threads)
				continue;
			places.points[thread * n_slots + slot] = p;
			places.active[thread * n_slots + slot] = r == 0 || !one_replica;
			any[slot] = p;
			filled[slot] = true;
		}
	fill_slots(any, n_slots, filled);
	for (int64_t i = 0; i < n; i++) {
		places.is_full &= places.active[i] != 0;
		if (places.points[i] < 0)
			places.points[i] = any[i % n_slots];
	}
	return places;
}

/* Loop variables as functions of thread and slot, added to the substitution. */
static const struct expr *bind_points(struct emitter *emitter, const struct ploop *loop,
                                      const struct places *places, struct expr_subst *subst,
                                      const struct expr *slot)
{
	struct pinfer *infer = emitter->infer;
	int64_t n = infer->n_threads * places->n_slots, inner = 1;
	int64_t *values;

	*subst = emitter->subst;
	subst->of_var = (struct map){ 0 };
	for (uint32_t i = 0; i < emitter->subst.of_var.n; i++) {
		const struct map_entry *entry = &emitter->subst.of_var.entries[i];

		map_set(infer->arena, &subst->of_var, entry->key, entry->value.pointer);
	}
	for (uint32_t d = loop->rank; d-- > 0;) {
		values = arena_array(infer->arena, int64_t, (size_t)n);
		for (int64_t i = 0; i < n; i++)
			values[i] = places->points[i] / inner % loop->shape[d];
		inner *= loop->shape[d];
		map_set(infer->arena, &subst->of_var, loop->vars[d]->id,
		        (void *)(uintptr_t)emit_table(emitter, values, places->n_slots, slot));
	}
	if (places->is_full)
		return NULL;
	return expr_binary(infer->pool, BIN_NE,
	                   emit_table(emitter, places->active, places->n_slots, slot),
	                   expr_int(infer->pool, 0));
}

/* ---- barriers and forwarded values ---- */

/* Who touches each element; NULL when that cannot be told. */
static int16_t *owners(struct emitter *emitter, const struct paccess *access,
                       const struct places *places, const struct ploop *loop)
{
	struct pinfer *infer = emitter->infer;
	int64_t n_elems = buffer_n_elems(access->buffer), *values = parity_values(infer);
	int16_t *owner = arena_array(infer->arena, int16_t, (size_t)n_elems);
	struct expr_code *code[MAX_RANK];

	memset(owner, -1, (size_t)n_elems * sizeof(int16_t));
	for (uint32_t d = 0; d < access->buffer->rank; d++) {
		if (!access->index[d]->is_index)
			return NULL;
		code[d] = expr_compile(infer->arena, access->index[d]);
	}
	for (int64_t i = 0; i < infer->n_threads * places->n_slots; i++) {
		int64_t point = places->points[i], element = 0;

		if (!places->active[i])
			continue;
		for (uint32_t d = loop->rank; d-- > 0;) {
			values[loop->vars[d]->id] = point % loop->shape[d];
			point /= loop->shape[d];
		}
		for (uint32_t d = 0; d < access->buffer->rank; d++)
			element = element * buffer_extent(access->buffer, d) + expr_run(code[d], values);
		if (element < 0 || element >= n_elems)
			return NULL;
		if (owner[element] == -1)
			owner[element] = (int16_t)(i / places->n_slots);
		else if (owner[element] != i / places->n_slots)
			owner[element] = -2;
	}
	for (uint32_t d = 0; d < loop->rank; d++)
		values[loop->vars[d]->id] = 0;
	return owner;
}

/* Do two uses of one buffer need a barrier between them? */
static bool conflict(const struct touch *a, const struct touch *b)
{
	int64_t n = buffer_n_elems(a->buffer);

	if (a->buffer != b->buffer || !(a->is_write || b->is_write))
		return false;
	if (!a->owner || !b->owner)
		return true;
	for (int64_t e = 0; e < n; e++)
		if (a->owner[e] != -1 && b->owner[e] != -1 &&
		    (a->owner[e] != b->owner[e] || a->owner[e] == -2))
			return true;
	return false;
}

static bool same_elements(const struct touch *a, const struct touch *b)
{
	return a->owner && b->owner &&
	       !memcmp(a->owner, b->owner, (size_t)buffer_n_elems(a->buffer) * sizeof(*a->owner));
}

/*
 * Notes a use. True for a load of what the thread itself stored since the last barrier. A store of
 * the same elements that nobody else read is dropped when this one overwrites it.
 */
static bool note_touch(struct emitter *emitter, struct touch touch)
{
	bool forwarded = false;

	for (uint32_t i = 0; i < emitter->touches.n; i++) {
		struct touch *other = &emitter->touches.p[i];

		if (other->buffer != touch.buffer || !other->is_write || other->block != emitter->block)
			continue;
		forwarded |= !touch.is_write;
		if (touch.is_write && same_elements(other, &touch)) {
			emit_guard_nodes(emitter, other, expr_bool(emitter->infer->pool, false));
			other->last = other->first;
		}
	}
	vec_push(emitter->infer->arena, &emitter->touches, touch);
	return forwarded;
}

/* ---- accesses ---- */

struct body {
	const struct ploop *loop;   /* as written */
	const struct ploop *thread; /* in terms of thread and slot */
	struct places places;
	const struct var *slot;
	const struct expr *guard;
	int64_t width;
	bool stores_shared;
	bool is_cp_async;
};

/* Byte offsets by slot and thread, blocks and outer loops at their first value. */
static int64_t *find_offsets(struct emitter *emitter, const struct body *body,
                             const struct expr *offset)
{
	struct pinfer *infer = emitter->infer;
	int64_t n_threads = infer->n_threads, n_slots = body->places.n_slots;
	int64_t *values = parity_values(infer), *out, *lanes;
	struct expr_code *code;

	if (!offset->is_index)
		return NULL;
	code = expr_compile(infer->arena, offset);
	out = arena_array(infer->arena, int64_t, (size_t)(n_slots * n_threads));
	lanes = arena_array(infer->arena, int64_t, (size_t)n_threads);
	for (int64_t t = 0; t < n_threads; t++)
		lanes[t] = t + emitter->thread_min;
	for (int64_t s = 0; s < n_slots; s++) {
		values[body->slot->id] = s;
		for (int64_t t = 0; t < n_threads; t += 32) {
			int n = (int)(n_threads - t < 32 ? n_threads - t : 32);

			expr_run_lanes(code, values,
			               &(struct lane_values){ emitter->warp->tid->id, lanes + t, n },
			               out + s * n_threads + t);
		}
	}
	values[body->slot->id] = 0;
	return out;
}

/* The instructions of one access: from which slots, and how many bytes each. */
struct access_plan {
	int64_t n_vectors, n_scalars;
	int64_t *vectors, *scalars; /* slots */
};

/* Are slots from, from + 1, ... at consecutive elements (step = their bytes) or at one (step 0)? */
static bool is_run(const struct body *body, const int64_t *offsets, int64_t from, int64_t step,
                   int64_t n_threads)
{
	for (int64_t lane = 1; lane < body->width; lane++)
		for (int64_t t = 0; t < n_threads; t++)
			if (offsets[(from + lane) * n_threads + t] !=
			    offsets[from * n_threads + t] + lane * step)
				return false;
	return true;
}

/* Is slot `at` at the address of a slot of the list, in every thread? */
static bool is_repeated(const int64_t *offsets, const int64_t *list, int64_t n, int64_t at,
                        int64_t n_threads)
{
	for (int64_t i = 0; i < n; i++)
		if (!memcmp(offsets + list[i] * n_threads, offsets + at * n_threads,
		            (size_t)n_threads * sizeof(int64_t)))
			return true;
	return false;
}

/* Loads of an address that was loaded already are left out when nothing is stored in between. */
static struct access_plan plan_access(struct emitter *emitter, const struct body *body,
                                      const struct paccess *access, const int64_t *offsets)
{
	struct arena *arena = emitter->infer->arena;
	int64_t n_slots = body->places.n_slots, n_threads = emitter->infer->n_threads;
	int64_t elem = dtype_bits(access->buffer->type) / 8;
	bool once = !access->is_store && !body->stores_shared;
	struct access_plan plan = {
		.vectors = arena_array(arena, int64_t, (size_t)n_slots),
		.scalars = arena_array(arena, int64_t, (size_t)n_slots),
	};

	for (int64_t from = 0; from + body->width <= n_slots; from += body->width) {
		bool is_vector = !offsets || is_run(body, offsets, from, elem, n_threads);
		bool is_one = offsets && !is_vector && is_run(body, offsets, from, 0, n_threads);

		if (is_vector) {
			if (!once || !offsets ||
			    !is_repeated(offsets, plan.vectors, plan.n_vectors, from, n_threads))
				plan.vectors[plan.n_vectors++] = from;
			continue;
		}
		for (int64_t lane = 0; lane < (is_one ? 1 : body->width); lane++)
			if (!once ||
			    !is_repeated(offsets, plan.scalars, plan.n_scalars, from + lane, n_threads))
				plan.scalars[plan.n_scalars++] = from + lane;
	}
	return plan;
}

/* The expression with the body's slot replaced; NULL stays NULL. */
static const struct expr *at_slot(struct emitter *emitter, const struct expr *e,
                                  const struct expr_subst *subst)
{
	return e ? expr_substitute(emitter->infer->pool, e, subst) : NULL;
}

/* One instruction a slot of the list. */
static void emit_slots(struct emitter *emitter, const struct body *body, struct emit_access out,
                       const int64_t *slots, int64_t n)
{
	struct expr_pool *pool = emitter->infer->pool;
	struct expr_subst subst = { 0 };
	const struct var *step;
	struct wblock *outer;
	const struct expr *slot;

	if (n == 0)
		return;
	outer = emit_open_new(emitter, n, &step);
	slot = expr_table(pool, expr_new_table(pool, slots, (uint64_t)n), expr_of_var(pool, step));
	map_set(emitter->infer->arena, &subst.of_var, body->slot->id, (void *)(uintptr_t)slot);
	out.offset = at_slot(emitter, out.offset, &subst);
	out.predicate = at_slot(emitter, out.predicate, &subst);
	out.source_offset = at_slot(emitter, out.source_offset, &subst);
	out.source_predicate = at_slot(emitter, out.source_predicate, &subst);
	emit_access(emitter, &out);
	emitter->block = outer;
}

/*
 * Element-wise stores that always happen: the compiler joins those of neighbouring slots that lie
 * side by side. The number of elements that it can join.
 */
static int64_t joined_width(struct emitter *emitter, const struct body *scalar,
                            const struct paccess *access, const int64_t *offsets)
{
	int64_t elem = dtype_bits(access->buffer->type) / 8, n_threads = emitter->infer->n_threads;
	struct body body = *scalar;

	if (!offsets || !access->is_store || access->condition || body.guard || body.width > 1 ||
	    elem < 1)
		return body.width;
	for (body.width = 16 / elem; body.width > 1; body.width /= 2) {
		bool joins = body.places.n_slots % body.width == 0;

		for (int64_t from = 0; joins && from < body.places.n_slots; from += body.width)
			joins = offsets[from * n_threads] % (body.width * elem) == 0 &&
			        is_run(&body, offsets, from, elem, n_threads);
		if (joins)
			break;
	}
	return body.width > 1 ? body.width : 1;
}

/* Bytes from the buffer's start, by its layout or where global memory has the element. */
static const struct expr *offset_of(struct emitter *emitter, const struct paccess *access)
{
	struct expr_pool *pool = emitter->infer->pool;
	const struct buffer *buffer = access->buffer;
	uint32_t bits = dtype_bits(buffer->type);
	const struct expr *offset;

	if (buffer->scope == SCOPE_SHARED)
		return emit_offset(emitter, buffer, access->index);
	offset = place_offset(pool, buffer, access->index);
	return bits >= 8 ? expr_mul_int(pool, offset, bits / 8) : expr_div_int(pool, offset, 8 / bits);
}

/* What a copy by cp.async reads. */
static const struct paccess *source_of(const struct body *body)
{
	for (uint32_t i = 0; i < body->thread->accesses.n; i++)
		if (!body->thread->accesses.p[i].is_store)
			return &body->thread->accesses.p[i];
	return NULL;
}

static void emit_one(struct emitter *emitter, const struct body *loop_body,
                     const struct paccess *access)
{
	const struct expr *offset = offset_of(emitter, access);
	const int64_t *offsets = find_offsets(emitter, loop_body, offset);
	const struct paccess *source = loop_body->is_cp_async ? source_of(loop_body) : NULL;
	int64_t elem = dtype_bits(access->buffer->type) / 8;
	struct body body = *loop_body;
	struct access_plan plan;
	struct emit_access out = {
		.global = access->buffer,
		.offset = offset,
		.predicate = expr_and(emitter->infer->pool, body.guard, access->condition),
		.bytes = elem > 0 ? elem : 1,
		.is_store = access->is_store,
	};

	if (access->buffer->scope == SCOPE_SHARED)
		out.shared = emit_shared(emitter, access->buffer);
	if (source) {
		out.source = source->buffer;
		out.source_offset = offset_of(emitter, source);
		out.source_predicate = source->condition;
	}
	emitter->span = access->span;
	body.width = joined_width(emitter, loop_body, access, offsets);
	plan = plan_access(emitter, &body, access, offsets);
	emit_slots(emitter, &body, out, plan.scalars, plan.n_scalars);
	out.bytes *= body.width;
	emit_slots(emitter, &body, out, plan.vectors, plan.n_vectors);
}

static bool seen_before(const struct ploop *loop, uint32_t at)
{
	const struct paccess *access = &loop->accesses.p[at];

	for (uint32_t i = 0; i < at; i++) {
		const struct paccess *other = &loop->accesses.p[i];
		bool same = other->buffer == access->buffer && other->is_store == access->is_store;

		for (uint32_t d = 0; d < access->buffer->rank && same; d++)
			same = other->index[d] == access->index[d];
		if (same && !access->is_store)
			return true;
	}
	return false;
}

/* Accesses to shared memory, or to all memory; what cp.async reads is part of its store. */
static bool is_emitted(const struct emitter *emitter, const struct body *body,
                       const struct paccess *access)
{
	if (access->buffer->scope == SCOPE_SHARED)
		return true;
	return emitter->as_written && access->buffer->scope == SCOPE_GLOBAL && !body->is_cp_async;
}

/* Loads first, then stores, as a statement does: the numbers of the accesses. */
static uint32_t order_accesses(const struct emitter *emitter, const struct body *body,
                               uint32_t *order)
{
	uint32_t n = 0;

	for (int stores = 0; stores < 2; stores++)
		for (uint32_t i = 0; i < body->thread->accesses.n; i++) {
			const struct paccess *access = &body->thread->accesses.p[i];

			if (is_emitted(emitter, body, access) && access->is_store == (stores == 1) &&
			    !seen_before(body->thread, i))
				order[n++] = i;
		}
	return n;
}

/* A barrier stands in front of the loop when any of its accesses needs one. */
static void emit_accesses(struct emitter *emitter, const struct body *body)
{
	struct arena *arena = emitter->infer->arena;
	uint32_t *order = arena_array(arena, uint32_t, body->thread->accesses.n + 1);
	uint32_t n = order_accesses(emitter, body, order), at;
	struct touch *touches = arena_array(arena, struct touch, n + 1);
	bool *wait = &emitter->waits[body->loop->stmt->id];

	for (uint32_t k = 0; k < n; k++) {
		const struct paccess *written = &body->loop->accesses.p[order[k]];

		touches[k] = (struct touch){ .buffer = written->buffer, .is_write = written->is_store };
		if (written->buffer->scope != SCOPE_SHARED)
			continue;
		touches[k].owner = owners(emitter, written, &body->places, body->loop);
		for (uint32_t i = 0; i < emitter->touches.n; i++)
			*wait |= conflict(&emitter->touches.p[i], &touches[k]);
	}
	if (*wait)
		emit_barrier(emitter);
	for (uint32_t k = 0; k < n; k++) {
		if (emitter->as_written) {
			emit_one(emitter, body, &body->thread->accesses.p[order[k]]);
			continue;
		}
		if (note_touch(emitter, touches[k]))
			continue;
		at = emitter->touches.n - 1;
		emitter->touches.p[at].block = emitter->block;
		emitter->touches.p[at].first = emitter->block->nodes.n;
		emit_one(emitter, body, &body->thread->accesses.p[order[k]]);
		emitter->touches.p[at].last = emitter->block->nodes.n;
	}
}

void emit_partitioned(struct emitter *emitter, uint32_t at)
{
	struct pinfer *infer = emitter->infer;
	const struct ploop *loop = infer->ops.p[at]->loop;
	struct pfrag *partition = parity_final_partition(infer, at);
	struct body body = { .loop = loop };
	struct expr_subst subst;
	struct ploop *thread;
	struct var *slot;
	struct wblock *outer = emitter->block;
	bool touches = false;

	body.is_cp_async = infer->ops.p[at]->copy.is_cp_async || infer->ops.p[at]->copy.is_tma_load;
	for (uint32_t i = 0; i < loop->accesses.n; i++) {
		bool is_shared = loop->accesses.p[i].buffer->scope == SCOPE_SHARED;

		touches |= is_emitted(emitter, &body, &loop->accesses.p[i]);
		body.stores_shared |= is_shared && loop->accesses.p[i].is_store;
	}
	if (!partition || !touches)
		return;
	body.places = find_places(emitter, partition, partition->n_reps > 1 && !loop->stores_fragment);
	slot = expr_new_var(infer->pool, VAR_LOOP, intern_text(infer->cx->names, "s"), DTYPE_I32);
	slot->max = body.places.n_slots - 1;
	body.slot = slot;
	body.guard = bind_points(emitter, loop, &body.places, &subst, expr_of_var(infer->pool, slot));
	thread = parity_rewrite(infer, loop, &subst);
	if (loop->serial_vars.n == 0) {
		thread->inner_var = slot;
		thread->inner_extent = body.places.n_slots;
	}
	body.thread = thread;
	body.width = loop->serial_vars.n ? 1 : parity_loop_vector(infer, thread);
	for (uint32_t i = 0; i < loop->serial_vars.n; i++)
		emit_open(emitter, loop->serial_vars.p[i], emit_expr(emitter, loop->serial_extents.p[i]));
	emit_accesses(emitter, &body);
	if (body.is_cp_async) /* what arrives is there after the wait and the barrier */
		emit_barrier(emitter);
	emitter->block = outer;
}
