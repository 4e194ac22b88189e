/*
 * The tile program as it is written: control flow and elements. A parallel loop runs in chunks of
 * lanes, each statement for all lanes before the next; where it changes a thread's own array or
 * scalar, iteration by iteration. In a launch that names its threads these are the lanes outside
 * parallel loops, again one statement after the other.
 */
#include "sim/reference_internal.h"

#include "analyzer/tile/alias.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t default_max_steps = 100000000000;

void ref_fail(struct ref *ref, const char *format, ...)
{
	char text[256];
	va_list args;

	if (ref->stop)
		return;
	ref->stop = true;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	diag_report(&ref->cx->diags, DIAG_E0660, ref->stmt ? ref->stmt->span : (struct span){ 0 },
	            "the reference cannot go on: %s", text);
}

void ref_count(struct ref *ref, uint64_t n_steps)
{
	ref->n_steps += n_steps;
	if (ref->n_steps <= ref->max_steps || ref->stop)
		return;
	ref->stop = true;
	diag_report(&ref->cx->diags, DIAG_E0658, ref->stmt ? ref->stmt->span : (struct span){ 0 },
	            "the reference took more than %" PRIu64 " steps", ref->max_steps);
}

union cell ref_get(const struct ref_buffer *buffer, int64_t at)
{
	uint64_t bits = 0;

	if (!buffer->units)
		return buffer->cells[at];
	for (uint32_t p = 0; p < buffer->per_elem; p++)
		bits |= buffer->units[at * buffer->per_elem + p] << p * buffer->unit_bits;
	return cell_decode(buffer->buffer->type, bits);
}

/* A value of the buffer's type. */
static void put(struct ref_buffer *buffer, int64_t at, union cell cell)
{
	uint64_t mask = ~(uint64_t)0 >> (64 - buffer->unit_bits) % 64, bits;

	if (!buffer->units) {
		buffer->cells[at] = cell;
		return;
	}
	bits = cell_encode(buffer->buffer->type, cell);
	for (uint32_t p = 0; p < buffer->per_elem; p++)
		buffer->units[at * buffer->per_elem + p] = bits >> p * buffer->unit_bits & mask;
}

void ref_store(struct ref_buffer *buffer, int64_t at, union cell cell, bool from_float)
{
	assert(at >= 0 && at < buffer->n_elems * buffer->n_copies);
	put(buffer, at, cell_convert(cell, from_float, buffer->buffer->type, true));
	for (uint32_t p = 0; buffer->written && p < buffer->per_elem; p++)
		buffer->written[at * buffer->per_elem + p] = 1;
}

/* ---- elements ---- */

/* Element number under the lane's indices, -1 outside. */
static int64_t element_at(const struct ref *ref, const struct ref_buffer *buffer,
                          const struct lanes *index, uint32_t lane)
{
	uint32_t copy = ref->in_parallel ? ref->first_thread : lane;
	int64_t at = buffer->n_copies > 1 ? copy * buffer->n_elems : 0;

	for (uint32_t d = 0; d < buffer->buffer->rank; d++) {
		int64_t i = lanes_at(&index[d], lane).i;
		if (i < 0 || i >= buffer->shape[d])
			return -1;
		at += i * buffer->strides[d];
	}
	return buffer->places ? buffer->places[at] : at;
}

static bool load_is_varying(void *user, const struct expr *load)
{
	const struct ref *ref = user;

	return ref->by_thread && !ref->in_parallel && ref_is_private(load->as.buffer);
}

/* Which thread runs an iteration of a parallel loop is not known: all must have one value. */
static bool copies_differ(const struct ref *ref, const struct ref_buffer *buffer, int64_t at)
{
	int64_t within = at % buffer->n_elems;
	union cell first = { .i = 0 };

	if (ref->in_parallel && buffer->n_copies > 1)
		first = ref_get(buffer, at);
	for (uint32_t t = 0; ref->in_parallel && buffer->n_copies > 1 && t < buffer->n_copies; t++)
		if (ref_in_group(ref, t) &&
		    memcmp(&first, &(union cell[]){ ref_get(buffer, t * buffer->n_elems + within) },
		           sizeof(first)) != 0)
			return true;
	return false;
}

static void load_elements(void *user, const struct lane_load *load)
{
	struct ref *ref = user;
	const struct expr *e = load->load;
	const struct ref_buffer *buffer = &ref->buffers[e->as.buffer->id];

	assert(e->kind == EXPR_LOAD && e->n_args == buffer->buffer->rank);
	for (uint32_t lane = 0; lane < load->n; lane++) {
		int64_t at = element_at(ref, buffer, load->index, lane);
		union cell cell = at < 0 ? buffer->outside : ref_get(buffer, at);
		if (at < 0 && buffer->buffer->scope != SCOPE_GLOBAL)
			load->poison[lane] |= POISON_BOUNDS;
		if (at >= 0 && copies_differ(ref, buffer, at))
			load->poison[lane] |= POISON_UNKNOWN;
		if (!dtype_equal(e->type, buffer->buffer->type))
			cell = cell_convert(cell, buffer->is_float, e->type, true);
		load->out[lane] = cell;
	}
}

/* Fails when a lane that takes part is poisoned. */
static void check_poison(struct ref *ref, const struct lanes *lanes, const struct ref_mask *mask,
                         const char *what)
{
	for (uint32_t lane = 0; lanes->poison && lane < lane_eval_n_lanes(ref->eval); lane++)
		if (mask->on[lane] && lanes_poison(lanes, lane))
			ref_fail(ref, "%s comes from %s", what, poison_text(lanes_poison(lanes, lane)));
}

/*
 * What each lane brings to a reducer: its value as if the old element were the one that changes
 * nothing. Lanes that share an element bring it one after another.
 */
static struct lanes contributions(struct ref *ref, const struct stmt *stmt)
{
	struct ref_buffer *buffer = &ref->buffers[stmt->as.store.buffer->id];
	union cell none = ref_identity(buffer->buffer->reducer, buffer->is_float);
	size_t n = (size_t)buffer->n_elems * buffer->n_copies;
	union cell *before = malloc(n * sizeof(*before));
	struct lanes value;

	if (!before)
		BUG("out of memory");
	assert(!buffer->units);
	memcpy(before, buffer->cells, n * sizeof(*before));
	for (size_t i = 0; i < n; i++)
		buffer->cells[i] = none;
	value = lane_eval_run(ref->eval, stmt->as.store.value);
	memcpy(buffer->cells, before, n * sizeof(*before));
	free(before);
	return value;
}

/* An atomic combines the value with what is there. */
static void store_cell(struct ref_buffer *buffer, int64_t at, enum atomic_kind atomic,
                       union cell cell, bool from_float)
{
	struct dtype type = buffer->buffer->type;

	if (atomic == ATOMIC_NONE) {
		ref_store(buffer, at, cell, from_float);
		return;
	}
	cell =
		cell_combine(type, atomic, ref_get(buffer, at), cell_convert(cell, from_float, type, true));
	ref_store(buffer, at, cell, buffer->is_float);
}

/* To a reducer a contribution is added, anything else gets the value. */
static void store_element(struct ref_buffer *buffer, int64_t at, enum atomic_kind atomic,
                          const struct lanes *value, uint32_t lane)
{
	if (buffer->buffer->is_reducer)
		ref_store(buffer, at, ref_combine(buffer, ref_get(buffer, at), lanes_at(value, lane)),
		          buffer->is_float);
	else
		store_cell(buffer, at, atomic, lanes_at(value, lane), value->is_float);
}

/* Outside of parallel loops every thread of the block makes the store: atomics show it. */
static void run_store(struct ref *ref, const struct stmt *stmt, const struct ref_mask *mask)
{
	struct ref_buffer *buffer = &ref->buffers[stmt->as.store.buffer->id];
	bool contributes = buffer->buffer->is_reducer;
	struct lanes index[MAX_RANK];
	struct lanes value =
		contributes ? contributions(ref, stmt) : lane_eval_run(ref->eval, stmt->as.store.value);
	uint32_t n = lane_eval_n_lanes(ref->eval);
	int64_t times = stmt->as.store.atomic && !ref->in_parallel && !ref->by_thread
	                    ? launch_n_threads(ref->launch)
	                    : 1;

	check_poison(ref, &value, mask, "the value");
	for (uint32_t d = 0; d < buffer->buffer->rank; d++) {
		index[d] = lane_eval_run(ref->eval, stmt->as.store.index[d]);
		check_poison(ref, &index[d], mask, "an index");
	}
	ref_count(ref, n);
	for (uint32_t lane = 0; lane < n && !ref->stop; lane++) {
		int64_t at;
		if (!mask->on[lane])
			continue;
		at = element_at(ref, buffer, index, lane);
		uint32_t n_copies = ref->in_parallel ? buffer->n_copies : 1;
		int64_t within = n_copies > 1 ? at % buffer->n_elems : at;
		for (uint32_t t = 0; at >= 0 && t < n_copies; t++)
			for (int64_t i = 0; i < times && (n_copies == 1 || ref_in_group(ref, t)); i++)
				store_element(buffer, t * buffer->n_elems + within, stmt->as.store.atomic, &value,
				              lane);
		if (at < 0 && buffer->buffer->scope != SCOPE_GLOBAL)
			ref_fail(ref, "a store outside %s", sym_text(ref->cx->names, buffer->buffer->name));
	}
}

/* The elements' numbers for all lanes under an address_of(load); false: another kind of address. */
static bool address_lanes(struct ref *ref, const struct expr *address, struct lanes *index,
                          struct ref_buffer **buffer)
{
	const struct expr *load =
		address->kind == EXPR_CALL && address->n_args == 1 ? address->args[0] : NULL;

	if (!load || load->kind != EXPR_LOAD)
		return false;
	*buffer = &ref->buffers[load->as.buffer->id];
	for (uint32_t d = 0; d < load->n_args; d++)
		index[d] = lane_eval_run(ref->eval, load->args[d]);
	return true;
}

bool ref_copy_elements(struct ref *ref, const struct expr *call)
{
	struct lanes to_index[MAX_RANK], from_index[MAX_RANK];
	struct ref_buffer *to, *from;
	int64_t n;

	if (call->n_args != 3 || !expr_is_int(call->args[2], &n) ||
	    !address_lanes(ref, call->args[0], to_index, &to) ||
	    !address_lanes(ref, call->args[1], from_index, &from))
		return false;
	for (uint32_t lane = 0; lane < lane_eval_n_lanes(ref->eval) && !ref->stop; lane++) {
		int64_t at, source;

		if (!ref->mask->on[lane])
			continue;
		at = element_at(ref, to, to_index, lane);
		source = element_at(ref, from, from_index, lane);
		if (at < 0 || source < 0 || at + n > to->n_elems || source + n > from->n_elems)
			ref_fail(ref, "a copy outside %s",
			         sym_text(ref->cx->names, (at < 0 ? to : from)->buffer->name));
		for (int64_t i = 0; i < n && !ref->stop; i++)
			ref_store(to, at + i, ref_get(from, source + i), from->is_float);
	}
	return true;
}

static void run_let(struct ref *ref, const struct stmt *stmt, const struct ref_mask *mask)
{
	const struct var *var = stmt->as.let.var;
	struct lanes value = lane_eval_run(ref->eval, stmt->as.let.value);
	struct map_entry *entry;
	union cell *cells;

	check_poison(ref, &value, mask, "the value");
	if (!value.stride && (!ref->by_thread || ref->in_parallel)) {
		lane_eval_set(ref->eval, var,
		              cell_convert(value.cells[0], value.is_float, var->type, true));
		return;
	}
	entry = map_at(ref->arena, &ref->let_lanes, var->id);
	if (!entry->value.pointer)
		entry->value.pointer = arena_array(ref->arena, union cell, REFERENCE_LANES);
	cells = entry->value.pointer;
	for (uint32_t lane = 0; lane < lane_eval_n_lanes(ref->eval); lane++)
		if (mask->on[lane] || !ref->groups)
			cells[lane] = cell_convert(lanes_at(&value, lane), value.is_float, var->type, true);
	lane_eval_set_lane_values(ref->eval, var, cells);
}

/* ---- control flow ---- */

static void run_block(struct ref *ref, const struct block *block, const struct ref_mask *mask);

void ref_run_block(struct ref *ref, const struct block *block, const struct ref_mask *mask)
{
	run_block(ref, block, mask);
}

/* Narrows the mask to the lanes where the condition holds; false when none is left. */
static bool narrow(struct ref *ref, struct ref_mask *mask, const struct expr *condition)
{
	struct lanes lanes = lane_eval_run(ref->eval, condition);
	bool any = false;

	check_poison(ref, &lanes, mask, "the condition");
	for (uint32_t lane = 0; lane < lane_eval_n_lanes(ref->eval); lane++) {
		union cell cell = lanes_at(&lanes, lane);
		mask->on[lane] &= lanes.is_float ? cell.f != 0.0 : cell.i != 0;
		any = any || mask->on[lane];
	}
	return any;
}

static void run_if(struct ref *ref, const struct stmt *stmt, const struct ref_mask *mask)
{
	struct ref_mask then = *mask, otherwise = *mask;
	bool any = narrow(ref, &then, stmt->as.if_.condition), any_other = false;

	ref_enter_branch(ref, stmt->as.if_.condition, 1);
	if (any)
		run_block(ref, &stmt->as.if_.then, &then);
	for (uint32_t lane = 0; lane < lane_eval_n_lanes(ref->eval); lane++) {
		otherwise.on[lane] &= !then.on[lane];
		any_other = any_other || otherwise.on[lane];
	}
	if (any_other)
		run_block(ref, &stmt->as.if_.otherwise, &otherwise);
	ref_enter_branch(ref, stmt->as.if_.condition, -1);
}

/* Lanes of the mask that break or continue. */
static void run_exit(struct ref *ref, const struct stmt *stmt, const struct ref_mask *mask)
{
	struct ref_mask *left = stmt->kind == STMT_BREAK ? &ref->exits->left : &ref->exits->skipped;

	for (uint32_t lane = 0; lane < lane_eval_n_lanes(ref->eval); lane++)
		left->on[lane] |= mask->on[lane];
	ref->exits->any = true;
}

/* Takes lanes that have left out of the mask; false when none remains. */
static bool without_left(struct ref *ref, struct ref_mask *mask)
{
	bool any = false;

	for (uint32_t lane = 0; lane < lane_eval_n_lanes(ref->eval); lane++) {
		mask->on[lane] &= !ref->exits->left.on[lane] && !ref->exits->skipped.on[lane];
		any |= mask->on[lane];
	}
	return any;
}

/* One iteration of a loop's body; lanes that leave the loop are taken out of its mask. */
static void run_body(struct ref *ref, const struct block *body, struct ref_mask *mask)
{
	struct ref_exits *outer = ref->exits, exits;

	exits.any = false;
	memset(exits.left.on, 0, lane_eval_n_lanes(ref->eval));
	memset(exits.skipped.on, 0, lane_eval_n_lanes(ref->eval));
	ref->exits = &exits;
	run_block(ref, body, mask);
	memset(exits.skipped.on, 0, lane_eval_n_lanes(ref->eval));
	if (exits.any)
		without_left(ref, mask);
	ref->exits = outer;
}

static void run_while(struct ref *ref, const struct stmt *stmt, struct ref_mask mask)
{
	while (!ref->stop && narrow(ref, &mask, stmt->as.while_.condition)) {
		ref_count(ref, lane_eval_n_lanes(ref->eval));
		run_body(ref, &stmt->as.while_.body, &mask);
	}
}

/* One variable, in order; lanes whose extent is smaller drop out. */
static void run_serial(struct ref *ref, const struct loop *loop, struct ref_mask mask)
{
	struct lanes lanes = lane_eval_run(ref->eval, loop->extents[0]);
	int64_t extents[REFERENCE_LANES], most = 0;
	uint32_t n = lane_eval_n_lanes(ref->eval);

	assert(loop->n_vars == 1);
	check_poison(ref, &lanes, &mask, "the extent");
	for (uint32_t lane = 0; lane < n; lane++) {
		extents[lane] = lanes_at(&lanes, lane).i;
		if (mask.on[lane] && extents[lane] > most)
			most = extents[lane];
	}
	ref_enter_loop(ref, loop->vars[0]);
	for (int64_t i = 0; i < most && !ref->stop; i++) {
		bool any = false;
		for (uint32_t lane = 0; lane < n; lane++) {
			mask.on[lane] &= i < extents[lane];
			any |= mask.on[lane];
		}
		if (!any)
			break;
		lane_eval_set_int(ref->eval, loop->vars[0], i);
		ref_set_loop(ref, i);
		ref_count(ref, 1);
		run_body(ref, &loop->body, &mask);
	}
	ref_leave_loop(ref);
}

static void note_private_store(void *user, struct stmt *stmt)
{
	bool *found = user;

	if (stmt->kind == STMT_STORE &&
	    (stmt->as.store.buffer->scope == SCOPE_LOCAL || stmt->as.store.buffer->scope == SCOPE_VAR))
		*found = true;
}

/* Iterations [first, first + n) of a parallel loop, row-major, as lanes. */
static void run_chunk(struct ref *ref, const struct loop *loop, const int64_t *extents,
                      int64_t first, uint32_t n)
{
	struct ref_mask mask;

	memset(mask.on, 1, n);
	for (uint32_t lane = 0; lane < n; lane++) {
		int64_t rest = first + lane;
		for (uint32_t d = loop->n_vars; d-- > 0;) {
			ref->loop_lanes[d][lane].i = rest % extents[d];
			rest /= extents[d];
		}
	}
	lane_eval_set_lanes(ref->eval, n);
	for (uint32_t d = 0; d < loop->n_vars; d++)
		lane_eval_set_lane_values(ref->eval, loop->vars[d], ref->loop_lanes[d]);
	run_block(ref, &loop->body, &mask);
}

static void run_parallel(struct ref *ref, const struct loop *loop)
{
	int64_t extents[MAX_RANK], n = 1;
	uint32_t chunk = REFERENCE_LANES;
	bool is_private = false;

	if (ref->in_parallel) {
		ref_fail(ref, "a parallel loop inside another");
		return;
	}
	for (uint32_t d = 0; d < loop->n_vars; d++) {
		struct lanes lanes = lane_eval_run(ref->eval, loop->extents[d]);
		union cell cell;
		if (!ref_agreed(ref, &lanes, "the extent", &cell))
			return;
		extents[d] = cell.i;
		n = extents[d] > 0 ? n * extents[d] : 0;
	}
	tile_walk((struct block *)(uintptr_t)&loop->body, note_private_store, &is_private);
	if (is_private)
		chunk = 1;
	ref_leave_threads(ref);
	for (int64_t first = 0; first < n && !ref->stop; first += chunk) {
		int64_t left = n - first;
		run_chunk(ref, loop, extents, first, left < chunk ? (uint32_t)left : chunk);
	}
	ref_enter_threads(ref);
	for (uint32_t d = 0; d < loop->n_vars; d++)
		lane_eval_set_int(ref->eval, loop->vars[d], 0);
}

static void run_loop(struct ref *ref, const struct loop *loop, const struct ref_mask *mask)
{
	switch (loop->kind) {
	case LOOP_PARALLEL:
		run_parallel(ref, loop);
		break;
	case LOOP_SERIAL:
	case LOOP_UNROLL:
	case LOOP_PIPELINED:
	case LOOP_VECTORIZED:
		run_serial(ref, loop, *mask);
		break;
	}
}

/* One thing that all threads do, not each for itself: tiles, and barriers when they are made. */
static bool is_common(const struct ref *ref, const struct stmt *stmt)
{
	if (ref->in_parallel)
		return false;
	if (stmt->kind == STMT_LOOP)
		return stmt->as.loop.kind == LOOP_PARALLEL;
	if (stmt->kind != STMT_OP)
		return false;
	switch (stmt->as.op.kind) {
	case OP_barrier_arrive:
	case OP_barrier_wait:
	case OP_barrier_expect_tx:
	case OP_evaluate:
		return false;
	case OP_barrier_init:
	case OP_copy:
	case OP_gemm:
	case OP_fill:
	case OP_reduce:
	case OP_scan:
	case OP_finalize_reducer:
	case OP_transpose:
	case OP_im2col:
	case OP_tma_copy:
	case OP_async_copy:
	case OP_wgmma_gemm:
	case OP_gemm_sp:
	case N_OP_KINDS:
		break;
	}
	return true;
}

static void run_kind(struct ref *ref, const struct stmt *stmt, const struct ref_mask *mask);

static void run_stmt(struct ref *ref, const struct stmt *stmt, const struct ref_mask *mask)
{
	enum ref_meeting meeting;

	ref->stmt = stmt;
	ref->mask = mask;
	meeting = is_common(ref, stmt) ? ref_meet(ref) : REF_ALONE;
	if (meeting == REF_DONE || ref->stop)
		return;
	run_kind(ref, stmt, meeting == REF_LAST ? ref->mask : mask);
	if (meeting == REF_LAST)
		ref_met(ref);
}

static void run_kind(struct ref *ref, const struct stmt *stmt, const struct ref_mask *mask)
{
	switch (stmt->kind) {
	case STMT_OP:
		if (ref->in_parallel)
			ref_fail(ref, "a tile operation inside a parallel loop");
		else
			ref_op_of_threads(ref, &stmt->as.op);
		break;
	case STMT_LOOP:
		run_loop(ref, &stmt->as.loop, mask);
		break;
	case STMT_IF:
		run_if(ref, stmt, mask);
		break;
	case STMT_WHILE:
		run_while(ref, stmt, *mask);
		break;
	case STMT_LET:
		run_let(ref, stmt, mask);
		break;
	case STMT_STORE:
		run_store(ref, stmt, mask);
		break;
	case STMT_SYNC:
		break;
	case STMT_BREAK:
	case STMT_CONTINUE:
		run_exit(ref, stmt, mask);
		break;
	}
}

/* What is left of a block once some lanes have left the loop around it. */
static void run_rest(struct ref *ref, const struct block *block, uint32_t i, struct ref_mask mask)
{
	for (; i < block->stmts.n && !ref->stop; i++)
		if (without_left(ref, &mask))
			run_stmt(ref, block->stmts.p[i], &mask);
}

/* Nesting is bounded by the front end's limit. */
static void run_block(struct ref *ref, const struct block *block, const struct ref_mask *mask)
{
	for (uint32_t i = 0; i < block->stmts.n && !ref->stop; i++) {
		if (ref->exits && ref->exits->any) {
			run_rest(ref, block, i, *mask);
			return;
		}
		run_stmt(ref, block->stmts.p[i], mask);
	}
}

/* ---- launches ---- */

/* The bits that all members of the buffer's family are multiples of. */
static uint32_t unit_bits_of(const struct ref *ref, const struct buffer *buffer)
{
	uint32_t bits = dtype_bits(buffer->type);

	for (uint32_t i = 0; i < ref->program->buffers.n; i++) {
		const struct buffer *other = ref->program->buffers.p[i];

		if (alias_root(other) == alias_root(buffer) && dtype_bits(other->type) < bits)
			bits = dtype_bits(other->type);
	}
	return bits;
}

static bool has_other_types(const struct ref *ref, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < ref->program->buffers.n; i++) {
		const struct buffer *other = ref->program->buffers.p[i];

		if (alias_root(other) == alias_root(buffer) && !dtype_equal(other->type, buffer->type))
			return true;
	}
	return false;
}

/* On-chip buffers start without a value: NaN, or a number that stands out. */
static void clear_buffers(struct ref *ref)
{
	for (uint32_t i = 0; i < ref->program->buffers.n; i++) {
		struct ref_buffer *buffer = &ref->buffers[i];
		union cell cell = { .i = 0x5a5a5a5a };
		if (buffer->buffer->is_param || buffer->buffer->alias_of ||
		    buffer->buffer->launch != ref->launch->index)
			continue;
		if (buffer->is_float)
			cell.f = (double)NAN;
		for (int64_t e = 0; e < buffer->n_elems * buffer->n_copies; e++)
			put(buffer, e, cell);
	}
}

/* Room for its elements, where they are not those of a tensor. */
static void open_cells(struct ref *ref, struct ref_buffer *buffer)
{
	size_t n = (size_t)buffer->n_elems * buffer->n_copies;

	if (has_other_types(ref, buffer->buffer))
		buffer->units = arena_array(ref->arena, uint64_t, n * buffer->per_elem);
	else
		buffer->cells = arena_array(ref->arena, union cell, n);
}

/* All threads take part; a launch that does not name them runs as one. */
static void open_threads(struct ref *ref, struct ref_mask *mask)
{
	const struct launch *launch = ref->launch;
	int64_t n_threads = launch_n_threads(launch);

	ref->by_thread = ref_names_threads(launch);
	if (n_threads > REFERENCE_LANES) {
		ref_fail(ref, "a block of more than %d threads", REFERENCE_LANES);
		return;
	}
	for (uint32_t i = 0; i < ref->program->buffers.n; i++) {
		struct ref_buffer *buffer = &ref->buffers[i];
		if (!ref_is_private(buffer->buffer) || buffer->buffer->launch != launch->index)
			continue;
		buffer->n_copies = ref->by_thread ? (uint32_t)n_threads : 1;
		if (buffer->buffer->alias_of) {
			buffer->cells = ref->buffers[buffer->buffer->alias_of->id].cells;
			buffer->units = ref->buffers[buffer->buffer->alias_of->id].units;
			continue;
		}
		open_cells(ref, buffer);
	}
	if (ref->by_thread)
		memset(mask->on, 1, (size_t)n_threads);
	ref_enter_threads(ref);
	ref_open_groups(ref);
}

static void run_launch(struct ref *ref, const struct reference_options *options,
                       struct reference *out)
{
	const struct launch *launch = ref->launch;
	struct ref_mask mask = { { 1 } };
	int64_t grid[3], n_blocks = 1, n_run;

	open_threads(ref, &mask);
	for (int i = 0; i < 3; i++) {
		grid[i] = lane_eval_int(ref->eval, launch->grid[i]);
		if (__builtin_mul_overflow(n_blocks, grid[i] > 0 ? grid[i] : 0, &n_blocks))
			n_blocks = INT64_MAX;
	}
	out->n_blocks += n_blocks;
	n_run = options->blocks ? options->n_blocks : n_blocks;
	for (int64_t b = 0; b < n_run && !ref->stop; b++) {
		int64_t number = options->blocks ? options->blocks[b] : b;
		assert(number >= 0 && number < n_blocks);
		for (int i = 0; i < 3; i++) {
			if (launch->block[i])
				lane_eval_set_int(ref->eval, launch->block[i], number % grid[i]);
			number /= grid[i];
		}
		clear_buffers(ref);
		if (!ref_run_groups(ref, &mask))
			run_block(ref, &launch->body, &mask);
		out->n_blocks_run++;
	}
}

/* ---- opening and closing ---- */

static void open_parameter(struct ref *ref, struct ref_buffer *buffer,
                           struct reference_tensor *item)
{
	const struct tensor *tensor = item->tensor;
	struct dtype type = tensor->buffer->type;

	item->cells = malloc((size_t)tensor->n_elems * sizeof(*item->cells));
	item->written = calloc((size_t)tensor->n_elems * buffer->per_elem, 1);
	if (!item->cells || !item->written)
		BUG("out of memory");
	memcpy(buffer->shape, tensor->shape, sizeof(buffer->shape));
	memcpy(buffer->strides, tensor->strides, sizeof(buffer->strides));
	buffer->n_elems = tensor->n_elems;
	buffer->places = tensor->places;
	buffer->cells = item->cells;
	if (has_other_types(ref, buffer->buffer))
		open_cells(ref, buffer);
	buffer->written = item->written;
	for (int64_t e = 0; e < tensor->n_elems; e++) {
		uint64_t bits = 0;
		memcpy(&bits, tensor->bytes + e * tensor->elem_bytes, tensor->elem_bytes);
		put(buffer, e, cell_decode(type, bits));
	}
}

/* What is kept as bits goes back to the tensor's cells: an element counts as written when a part of
 * it was. */
static void close_parameter(const struct ref_buffer *buffer, struct reference_tensor *item)
{
	for (int64_t e = 0; buffer->units && e < buffer->n_elems; e++) {
		uint8_t written = 0;

		item->cells[e] = ref_get(buffer, e);
		for (uint32_t p = 0; p < buffer->per_elem; p++)
			written |= item->written[e * buffer->per_elem + p];
		item->written[e] = written;
	}
}

static void open_buffer(struct ref *ref, struct ref_buffer *buffer)
{
	int64_t n = 1;

	for (uint32_t d = buffer->buffer->rank; d-- > 0;) {
		buffer->shape[d] = buffer_extent(buffer->buffer, d);
		buffer->strides[d] = n;
		assert(buffer->shape[d] > 0);
		n *= buffer->shape[d];
	}
	buffer->n_elems = n;
	open_cells(ref, buffer);
}

/*
 * Another shape of a buffer's memory: the same cells, by the same number in row-major order. Of
 * another type: the same bits.
 */
static void open_alias(struct ref *ref, struct ref_buffer *alias)
{
	const struct ref_buffer *base = &ref->buffers[alias->buffer->alias_of->id];
	int64_t n = 1, *places = NULL, row_major = 1;

	for (uint32_t d = alias->buffer->rank; d-- > 0;) {
		alias->shape[d] = lane_eval_int(ref->eval, alias->buffer->shape[d]);
		alias->strides[d] = n;
		n *= alias->shape[d];
	}
	for (uint32_t d = base->buffer->rank; d-- > 0; row_major *= base->shape[d])
		if (base->strides[d] != row_major && base->shape[d] > 1)
			places = arena_array(ref->arena, int64_t, (size_t)n);
	if (base->units && (places || base->places))
		ref_fail(ref, "%s is a tensor with strides in another type",
		         sym_text(ref->cx->names, alias->buffer->name));
	for (int64_t e = 0; places && !base->units && e < n; e++) {
		int64_t rest = e, at = 0;
		for (uint32_t d = base->buffer->rank; d-- > 0; rest /= base->shape[d])
			at += rest % base->shape[d] * base->strides[d];
		places[e] = base->places ? base->places[at] : at;
	}
	alias->places = places ? places : base->places;
	alias->n_elems = base->units ? n : base->n_elems;
	alias->cells = base->cells;
	alias->units = base->units;
	alias->written = base->written;
}

/* What a read past the ends gives. */
static union cell outside_of(const struct buffer *buffer)
{
	const struct expr *e = buffer->outside;
	union cell cell = { .i = 0 };

	if (e && dtype_is_float(buffer->type))
		cell.f = e->kind == EXPR_FLOAT ? e->as.number : (double)e->as.integer;
	else if (e)
		cell.i = e->as.integer;
	return cell;
}

static void open_state(struct ref *ref, const struct tensor_set *inputs, struct reference *out)
{
	struct tile_program *program = ref->program;

	ref->eval = lane_eval_open(ref->arena, program->pool, REFERENCE_LANES, true,
	                           (struct lane_loader){ ref, load_is_varying, load_elements });
	lane_eval_set_lanes(ref->eval, 1);
	ref->buffers = arena_array(ref->arena, struct ref_buffer, program->buffers.n);
	for (uint32_t d = 0; d < MAX_RANK; d++)
		ref->loop_lanes[d] = arena_array(ref->arena, union cell, REFERENCE_LANES);
	for (uint32_t i = 0; i < expr_n_vars(program->pool); i++) {
		const struct var *var = expr_var_by_id(program->pool, i);
		if (inputs->values && (var->kind == VAR_SYMBOL || var->kind == VAR_PARAM))
			lane_eval_set_int(ref->eval, var, inputs->values[i]);
	}
	for (uint32_t i = 0; i < program->buffers.n; i++) {
		struct ref_buffer *buffer = &ref->buffers[i];
		const struct tensor *tensor;
		buffer->buffer = program->buffers.p[i];
		buffer->n_copies = 1;
		buffer->is_float = dtype_is_float(buffer->buffer->type);
		buffer->outside = outside_of(buffer->buffer);
		buffer->unit_bits = unit_bits_of(ref, buffer->buffer);
		buffer->per_elem =
			buffer->unit_bits ? dtype_bits(buffer->buffer->type) / buffer->unit_bits : 1;
		if (buffer->buffer->alias_of) {
			open_alias(ref, buffer);
			continue;
		}
		tensor = tensor_of(inputs, buffer->buffer);
		if (!tensor) {
			open_buffer(ref, buffer);
			continue;
		}
		out->items[tensor - inputs->items].tensor = tensor;
		open_parameter(ref, buffer, &out->items[tensor - inputs->items]);
	}
}

bool reference_run(struct tile_program *program, const struct tensor_set *inputs,
                   const struct reference_options *options, struct reference *out)
{
	struct ref ref = { .program = program, .cx = program->cx };

	*out = (struct reference){ .n = inputs->n };
	out->items = arena_array(program->cx->arena, struct reference_tensor, inputs->n);
	ref.arena = arena_open();
	ref.max_steps = options->max_steps ? options->max_steps : default_max_steps;
	open_state(&ref, inputs, out);
	assert(!options->blocks || program->launches.n == 1);
	for (uint32_t i = 0; i < program->launches.n && !ref.stop; i++) {
		ref.launch = program->launches.p[i];
		run_launch(&ref, options, out);
	}
	for (uint32_t i = 0; i < inputs->n; i++)
		close_parameter(&ref.buffers[inputs->items[i].buffer->id], &out->items[i]);
	out->n_steps = ref.n_steps;
	for (int i = 0; i < 3; i++) {
		free(ref.elems[i].at);
		free(ref.matrices[i]);
	}
	arena_close(ref.arena);
	return !ref.stop;
}

void reference_close(struct reference *reference)
{
	for (uint32_t i = 0; i < reference->n && reference->items; i++) {
		free(reference->items[i].cells);
		free(reference->items[i].written);
		reference->items[i].cells = NULL;
		reference->items[i].written = NULL;
	}
}
