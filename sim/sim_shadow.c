/*
 * Who touched which byte, and when. A barrier ends an interval; within one, two threads that touch
 * the same byte, one of them writing, race. A copy in flight races with every access to its bytes
 * until its thread has awaited it.
 */
#include "sim/sim_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool sim_is_ordered(const struct sim *sim, uint32_t other, uint32_t interval, uint32_t thread)
{
	const struct meeting *met = &sim->meetings[thread];

	if (sim->phases)
		return interval < sim->block_interval ||
		       phases_ordered(sim->phases, other, interval, thread);
	return interval < sim->block_interval || other == thread ||
	       (interval < met->interval && other - met->first < met->n);
}

static const char *piece_name(const struct sim *sim, const struct wshared *shared)
{
	return sym_text(sim->cx->names, shared->name);
}

/* Where the byte is in its piece, for texts: "A_shared byte 40 of version 1". */
static const char *byte_text(const struct sim *sim, const struct wshared *shared, int64_t at)
{
	int64_t offset = at - shared->offset_bytes;
	int64_t size = shared->version_bytes > 0 ? shared->version_bytes : 1;

	if (shared->n_versions <= 1)
		return arena_printf(sim->arena, "%s byte %" PRId64, piece_name(sim, shared), offset);
	return arena_printf(sim->arena, "%s byte %" PRId64 " of version %" PRId64,
	                    piece_name(sim, shared), offset % size, offset / size);
}

static void find_race(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t thread,
                      const char *verb)
{
	const struct shadow_byte *byte = &sim->shadow[at];
	const char *where = byte_text(sim, shared, at);

	if (byte->copier)
		sim_find(sim, SIM_SHARED_RACE, who_meets(thread, byte->copy_node),
		         "thread %u %s %s, into which the copy of thread %u is still in flight", thread,
		         verb, where, byte->copier - 1u);
	else if (byte->write_interval && byte->other_writer &&
	         !sim_is_ordered(sim, byte->other_writer - 1u, byte->write_interval, thread))
		sim_find(
			sim, SIM_SHARED_RACE, who_meets(thread, byte->write_node),
			"thread %u %s %s, which atomics of several threads change without a barrier between",
			thread, verb, where);
	else if (byte->write_interval && byte->writer >= sim->n_threads &&
	         !sim_is_ordered(sim, byte->writer, byte->write_interval, thread))
		sim_find(sim, SIM_SHARED_RACE, who_meets(thread, byte->write_node),
		         "thread %u %s %s, which a bulk copy writes, without a wait for its barrier",
		         thread, verb, where);
	else if (byte->write_interval &&
	         !sim_is_ordered(sim, byte->writer, byte->write_interval, thread))
		sim_find(sim, SIM_SHARED_RACE, who_meets(thread, byte->write_node),
		         "thread %u %s %s, which thread %u writes without a barrier between", thread, verb,
		         where, byte->writer);
	else
		sim_find(sim, SIM_SHARED_RACE, who_meets(thread, byte->read_node),
		         "thread %u %s %s, which thread %u reads without a barrier between", thread, verb,
		         where, byte->reader != thread ? byte->reader : byte->other_reader - 1u);
}

/* Another thread than `thread` read the byte in this interval. */
static bool is_read_by_other(const struct sim *sim, const struct shadow_byte *byte, uint32_t thread)
{
	uint32_t interval = byte->read_interval;

	return interval && (!sim_is_ordered(sim, byte->reader, interval, thread) ||
	                    (byte->other_reader && !sim_is_ordered(sim, byte->other_reader - 1u,
	                                                           byte->other_interval, thread)));
}

static bool is_written_by_other(const struct sim *sim, const struct shadow_byte *byte,
                                uint32_t thread)
{
	uint32_t interval = byte->write_interval;

	if (!interval)
		return false;
	return !sim_is_ordered(sim, byte->writer, interval, thread) ||
	       (byte->other_writer && !sim_is_ordered(sim, byte->other_writer - 1u, interval, thread));
}

/* Keeps two readers that a write of another thread could meet. */
static void note_read(const struct sim *sim, struct shadow_byte *byte, uint32_t thread)
{
	uint32_t interval = byte->read_interval;

	if (byte->other_reader &&
	    sim_is_ordered(sim, byte->other_reader - 1u, byte->other_interval, thread))
		byte->other_reader = 0;
	if (!interval || sim_is_ordered(sim, byte->reader, interval, thread)) {
		byte->reader = (uint16_t)thread;
		byte->read_node = sim->node->id;
		byte->read_interval = sim->interval;
	} else {
		byte->other_reader = (uint16_t)(thread + 1);
		byte->other_interval = sim->interval;
	}
}

void shadow_read(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t n,
                 uint32_t thread)
{
	for (int64_t i = at; i < at + n; i++) {
		struct shadow_byte *byte = &sim->shadow[i];
		if (byte->copier || is_written_by_other(sim, byte, thread))
			find_race(sim, shared, i, thread, "reads");
		else if (!byte->is_written)
			sim_find(sim, SIM_UNINITIALISED, who_thread(thread),
			         "thread %u reads %s, which nothing wrote", thread, byte_text(sim, shared, i));
		note_read(sim, byte, thread);
	}
}

/* Is a warpgroup instruction reading the byte, or was it awaited in this interval only? */
static bool is_read_by_product(const struct sim *sim, const struct shadow_byte *byte,
                               uint32_t thread)
{
	for (uint32_t g = 0; byte->product && g < MAX_WARPGROUPS; g++) {
		const struct products *products = &sim->products[g];
		if (!(byte->product_groups >> g & 1))
			continue;
		if (products->n_done < byte->product ||
		    !sim_is_ordered(sim, g * WGMMA_THREADS, products->done_interval.p[byte->product - 1],
		                    thread))
			return true;
	}
	return false;
}

/* A write or the begin of a copy: what it must not meet. */
static void check_write(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t thread)
{
	const struct shadow_byte *byte = &sim->shadow[at];

	if (is_read_by_product(sim, byte, thread))
		sim_find(sim, SIM_SHARED_RACE, who_meets(thread, byte->product_node),
		         "thread %u writes %s, which a wgmma reads: it needs a wait and a barrier between",
		         thread, byte_text(sim, shared, at));

	if (byte->copier || is_written_by_other(sim, byte, thread) ||
	    is_read_by_other(sim, byte, thread))
		find_race(sim, shared, at, thread, "writes");
}

static void note_write(struct sim *sim, int64_t at, uint32_t thread)
{
	struct shadow_byte *byte = &sim->shadow[at];

	byte->write_interval = sim->interval;
	byte->writer = (uint16_t)thread;
	byte->write_node = sim->node->id;
	byte->is_written = true;
	byte->fences = sim->fences[thread];
	byte->is_atomic = false;
	byte->other_writer = 0;
}

void shadow_bulk(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t n,
                 struct bulk_writer by)
{
	for (int64_t i = at; i < at + n; i++) {
		check_write(sim, shared, i, by.thread);
		note_write(sim, i, by.thread);
		sim->shadow[i].writer = (uint16_t)by.writer;
	}
}

void shadow_write(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t n,
                  uint32_t thread)
{
	for (int64_t i = at; i < at + n; i++) {
		check_write(sim, shared, i, thread);
		note_write(sim, i, thread);
	}
}

void shadow_atomic(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t n,
                   uint32_t thread)
{
	for (int64_t i = at; i < at + n; i++) {
		struct shadow_byte *byte = &sim->shadow[i];
		bool joins = byte->is_atomic && is_written_by_other(sim, byte, thread);
		uint16_t other = !joins                   ? 0
		                 : byte->writer != thread ? (uint16_t)(byte->writer + 1)
		                                          : byte->other_writer;
		/* A store of the same thread stays what the atomics of others meet. */
		bool stored = byte->is_written && !byte->is_atomic && byte->writer == thread &&
		              byte->write_interval == sim->interval;
		if (!joins)
			check_write(sim, shared, i, thread);
		else if (byte->copier || is_read_by_other(sim, byte, thread))
			find_race(sim, shared, i, thread, "writes");
		if (!byte->is_written)
			sim_find(sim, SIM_UNINITIALISED, who_thread(thread),
			         "thread %u changes %s, which nothing wrote", thread,
			         byte_text(sim, shared, i));
		if (stored)
			continue;
		note_write(sim, i, thread);
		byte->is_atomic = true;
		byte->other_writer = other;
	}
}

void shadow_copy_begin(struct sim *sim, const struct wshared *shared, int64_t at, uint32_t n,
                       uint32_t thread)
{
	for (int64_t i = at; i < at + n; i++) {
		check_write(sim, shared, i, thread);
		sim->shadow[i].copier = (uint16_t)(thread + 1);
		sim->shadow[i].copy_node = sim->node->id;
	}
}

void shadow_copy_land(struct sim *sim, const struct pending_copy *copy)
{
	const struct wnode *waiting = sim->node;

	sim->node = sim->nodes[copy->node];
	for (int64_t i = copy->to; i < copy->to + copy->bytes; i++) {
		struct shadow_byte *byte = &sim->shadow[i];
		if (byte->copier == copy->thread + 1 && byte->copy_node == copy->node)
			byte->copier = 0;
		note_write(sim, i, copy->thread);
	}
	sim->node = waiting;
}

/* Written for ordinary reads only: no proxy fence stands behind the write, of its writer or of the
 * warpgroup that reads it now. */
static bool is_unfenced(const struct sim *sim, const struct shadow_byte *byte, uint32_t thread)
{
	if (byte->writer >= sim->n_threads)
		return false; /* a bulk copy's */
	return byte->fences == sim->fences[byte->writer] &&
	       !(sim->phases && phases_fenced(sim->phases, byte->writer, byte->write_interval, thread));
}

void shadow_read_product(struct sim *sim, const struct wshared *shared, int64_t at,
                         uint32_t warpgroup)
{
	enum { BYTES = 16 };
	uint32_t first = warpgroup * WGMMA_THREADS, group = sim->products[warpgroup].n_committed + 1;

	/* Two threads stand for all of them: a write of any single one races. */
	shadow_read(sim, shared, at, BYTES, first);
	shadow_read(sim, shared, at, BYTES, first + 1);
	for (int64_t i = at; i < at + BYTES; i++) {
		struct shadow_byte *byte = &sim->shadow[i];
		if (byte->is_written && is_unfenced(sim, byte, first))
			sim_find(sim, SIM_SHARED_RACE, who_meets(first, byte->write_node),
			         "a wgmma reads %s, which thread %u wrote without a proxy fence after it",
			         byte_text(sim, shared, i), byte->writer);
		byte->product_groups =
			(uint8_t)((byte->product == group ? byte->product_groups : 0) | 1u << warpgroup);
		byte->product = group;
		byte->product_node = sim->node->id;
	}
}

/* ---- global tensors ---- */

static uint32_t tensor_number(const struct sim *sim, const struct tensor *tensor)
{
	return (uint32_t)(tensor - sim->tensors->items);
}

static struct shadow_elem *elems_of(struct sim *sim, const struct tensor *tensor)
{
	uint32_t number = tensor_number(sim, tensor);

	if (sim->globals[number])
		return sim->globals[number];
	sim->globals[number] = calloc((size_t)tensor->n_elems, sizeof(struct shadow_elem));
	if (!sim->globals[number])
		BUG("out of memory for the shadow of %" PRId64 " elements", tensor->n_elems);
	return sim->globals[number];
}

static const char *elem_text(const struct sim *sim, const struct tensor *tensor, int64_t at)
{
	struct buf text = { 0 };
	const char *copy;

	tensor_element_text(&text, sim->cx, tensor, at);
	copy = arena_printf(sim->arena, "%s", buf_cstr(&text));
	buf_free(&text);
	return copy;
}

/* Is the element's last write by another thread, with no barrier between? */
static bool is_unordered(const struct sim *sim, const struct shadow_elem *elem, uint32_t thread)
{
	if (!elem->writer)
		return false;
	if (elem->block != sim->block_number)
		return true;
	return !sim_is_ordered(sim, elem->writer - 1, elem->interval, thread);
}

void shadow_global_read(struct sim *sim, struct elem_range range, uint32_t thread)
{
	const struct tensor *tensor = range.tensor;
	const struct shadow_elem *elems = sim->globals[tensor_number(sim, tensor)];

	if (!elems && tensor->is_read)
		return;
	elems = elems_of(sim, tensor);
	for (int64_t i = range.at; i < range.at + range.n; i++) {
		if (!elems[i].writer && !tensor->is_read)
			sim_find(sim, SIM_UNINITIALISED, who_thread(thread),
			         "thread %u reads %s, which nothing wrote", thread, elem_text(sim, tensor, i));
		else if (is_unordered(sim, &elems[i], thread))
			sim_find(sim, SIM_GLOBAL_RACE, who_meets(thread, elems[i].node),
			         "thread %u reads %s, which thread %u of block %u writes", thread,
			         elem_text(sim, tensor, i), elems[i].writer - 1, elems[i].block);
	}
}

void shadow_global_write(struct sim *sim, struct elem_range range, uint32_t thread,
                         const uint8_t *bytes)
{
	const struct tensor *tensor = range.tensor;
	struct shadow_elem *elems = elems_of(sim, tensor);
	uint32_t n = tensor->elem_bytes;

	for (int64_t i = range.at; i < range.at + range.n; i++, bytes += n) {
		if (is_unordered(sim, &elems[i], thread) && memcmp(tensor->bytes + i * n, bytes, n) != 0)
			sim_find(sim, SIM_GLOBAL_RACE, who_meets(thread, elems[i].node),
			         "thread %u writes %s, to which thread %u of block %u wrote another value",
			         thread, elem_text(sim, tensor, i), elems[i].writer - 1, elems[i].block);
		elems[i] = (struct shadow_elem){ thread + 1,    sim->block_number,
			                             sim->interval, sim->node->id,
			                             false,         true };
	}
}

void shadow_global_atomic(struct sim *sim, struct elem_range range, uint32_t thread)
{
	const struct tensor *tensor = range.tensor;
	struct shadow_elem *elems = elems_of(sim, tensor);

	for (int64_t i = range.at; i < range.at + range.n; i++) {
		bool is_mine = elems[i].writer && elems[i].block == sim->block_number;
		bool stored = is_mine && !elems[i].is_atomic && elems[i].interval == sim->interval;
		bool meets = is_unordered(sim, &elems[i], thread) &&
		             (!elems[i].is_atomic || (!is_mine && elems[i].was_stored));
		if (meets)
			sim_find(sim, SIM_GLOBAL_RACE, who_meets(thread, elems[i].node),
			         "thread %u changes %s, to which thread %u of block %u writes", thread,
			         elem_text(sim, tensor, i), elems[i].writer - 1, elems[i].block);
		if (stored && !meets)
			continue;
		elems[i] = (struct shadow_elem){ .writer = thread + 1,
			                             .block = sim->block_number,
			                             .interval = sim->interval,
			                             .node = sim->node->id,
			                             .is_atomic = true,
			                             .was_stored = is_mine && elems[i].was_stored };
	}
}
