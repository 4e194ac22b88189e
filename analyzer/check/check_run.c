/*
 * happens-before, bounds and alignment, by executing the addresses of the warp program.
 *
 * All threads of a block run the program, but only addresses and predicates are computed. Shared
 * memory is kept in granules, each with its last writer, its readers and the barrier interval in
 * which that was; a read must not meet a write of another thread in the same interval, a write must
 * meet neither; bytes of cp.async in flight must not be touched at all, and become a write of the
 * issuing thread in the interval in which its wait covers them.
 *
 * Long loops run their first 2 P and last P + 1 iterations, where P is a period: with var + P in
 * place of var, no shared address in the body changes. What is in flight is at most P iterations
 * old, so the state after P iterations depends on var mod P only, and what holds in the second P
 * iterations holds in all that follow.  A loop without a period of at most 8 runs in full, up to a
 * limit. Conditions in the body must let the same threads through from the second period to the
 * last. Blocks: the corners of the grid, which is enough when addresses in shared memory do not
 * depend on the block and global offsets grow with the block numbers; predicates on global memory
 * only remove accesses.
 */
#include "analyzer/check/check_run_internal.h"

#include "analyzer/layout/place_map.h"

#include <string.h>

void run_give_up(struct limit *limit, struct span span, const char *why)
{
	if (!limit->why)
		*limit = (struct limit){ span, why };
}

bool run_evaluate(struct run *run, const struct expr *e, int64_t *out)
{
	struct expr_code *code = map_get(&run->codes, e->id);

	if (!e->is_index)
		return false;
	if (!code) {
		code = expr_compile(run->check->cx->arena, e);
		map_set(run->check->cx->arena, &run->codes, e->id, code);
	}
	expr_run_lanes(
		code, run->values,
		&(struct lane_values){ run->warp->tid->id, run->threads, (int)run->warp->n_threads }, out);
	return true;
}

/*
 * Threads that execute: `mask` gets active and predicate. An unknown predicate counts as true, and
 * what follows from it as unsure.
 */
void run_predicate(struct run *run, const struct expr *predicate, bool *mask)
{
	int64_t n = run->warp->n_threads;

	memcpy(mask, run->active, (size_t)n * sizeof *mask);
	run->is_unsure = run->n_unknown > 0;
	if (!predicate)
		return;
	if (!run_evaluate(run, predicate, run->conditions)) {
		run->is_unsure = true;
		return;
	}
	for (int64_t t = 0; t < n; t++)
		mask[t] = mask[t] && run->conditions[t];
}

/* ---- shared memory ---- */

/* What is wrong with an access, beside whose. */
struct order_fault {
	const char *what; /* NULL: nothing */
	int32_t other;
	const struct wnode *node; /* what the other one ran */
	bool is_sure;             /* that it ran it */
};

static bool is_in_gap(const struct run *run, uint32_t interval)
{
	for (uint32_t i = 0; i < run->gaps.n; i++)
		if (interval >= run->gaps.p[i].first && interval <= run->gaps.p[i].last)
			return true;
	return false;
}

/* Is what thread `other` did in `interval` ordered before what `thread` does now? */
bool run_is_ordered(const struct run *run, int32_t other, uint32_t interval, int32_t thread)
{
	const struct meeting *met = &run->meetings[thread == WARPGROUP ? run->matrix_thread : thread];

	if (run->phases && interval >= run->block_interval)
		return phases_ordered(run->phases, (uint32_t)other, interval,
		                      (uint32_t)(thread == WARPGROUP ? run->matrix_thread : thread));
	return other == thread || (interval < run->block_interval && !is_in_gap(run, interval)) ||
	       (interval < met->interval && other >= met->first && other < met->first + met->n);
}

/* A granule that a copy writes, in flight or not ordered with `thread`. */
static bool meets_copy(struct run *run, const struct granule *g, int32_t thread,
                       struct order_fault *fault)
{
	const struct copy_groups *groups = g->group ? &run->groups[g->group_thread] : NULL;

	if (!groups)
		return false;
	if (g->group > groups->n_done)
		fault->what = "while a copy into it is still in flight, issued by";
	else if (!run_is_ordered(run, g->group_thread, groups->done_interval.p[g->group - 1], thread))
		fault->what = "without a barrier behind the wait for the copy by";
	else
		return false;
	fault->other = g->group_thread;
	fault->node = g->write_node;
	fault->is_sure = g->write_is_sure;
	return true;
}

/* A granule that another thread has written since the last barrier. */
static bool meets_write(struct run *run, const struct granule *g, int32_t thread,
                        struct order_fault *fault)
{
	int32_t writer = g->writer;

	if (writer == NO_THREAD)
		return false;
	if (run_is_ordered(run, writer, g->write_interval, thread))
		writer = g->other_writer;
	if (writer == NO_THREAD || run_is_ordered(run, writer, g->write_interval, thread))
		return false;
	*fault = (struct order_fault){ "without a barrier behind the write by", writer, g->write_node,
		                           g->write_is_sure };
	return true;
}

static void touch_read(struct run *run, struct granule *g, int32_t thread, const struct wnode *node,
                       struct order_fault *fault)
{
	if (meets_copy(run, g, thread, fault) || meets_write(run, g, thread, fault))
		return;
	g->read_node = node;
	g->read_is_sure = !run->is_unsure;
	if (thread == WARPGROUP)
		return;
	if (run->phases) {
		run_note_reader(run, g, thread);
		return;
	}
	if (g->first_reader == NO_THREAD ||
	    (g->read_interval < run->block_interval && !is_in_gap(run, g->read_interval)))
		g->first_reader = g->last_reader = thread;
	if (thread < g->first_reader)
		g->first_reader = thread;
	if (thread > g->last_reader)
		g->last_reader = thread;
	g->read_interval = run->interval;
}

/* A granule that a wgmma reads, or whose wait for it is not ordered with `thread`. */
static void meets_product(struct run *run, const struct granule *g, int32_t thread,
                          struct order_fault *fault)
{
	for (int32_t w = 0; w < MAX_WARPGROUPS && !fault->what; w++) {
		const struct product_groups *products = &run->products[w];
		int32_t first = w * WGMMA_THREADS;

		if (g->product[w] > products->n_done)
			*fault = (struct order_fault){ "while a wgmma that is not awaited reads it, of", first,
				                           g->read_node, g->read_is_sure };
		else if (g->product[w] &&
		         !run_is_ordered(run, first, products->done_interval.p[g->product[w] - 1], thread))
			*fault = (struct order_fault){ "without a barrier behind the wait for the wgmma of",
				                           first, g->read_node, g->read_is_sure };
	}
}

static void touch_write(struct run *run, struct granule *g, int32_t thread, bool is_atomic,
                        struct order_fault *fault)
{
	if (meets_copy(run, g, thread, fault) ||
	    (!(is_atomic && g->is_atomic) && meets_write(run, g, thread, fault)))
		return;
	meets_product(run, g, thread, fault);
	if (fault->what || (g->first_reader == NO_THREAD && !g->readers))
		return;
	if (run->phases)
		fault->other = run_reader_not_before(run, g, thread);
	if (run->phases && fault->other == NO_THREAD)
		return;
	if (run->phases)
		;
	else if (!run_is_ordered(run, g->first_reader, g->read_interval, thread))
		fault->other = g->first_reader;
	else if (!run_is_ordered(run, g->last_reader, g->read_interval, thread))
		fault->other = g->last_reader;
	else
		return;
	fault->what = "without a barrier behind the read by";
	fault->node = g->read_node;
	fault->is_sure = g->read_is_sure;
}

static void complete_write(struct run *run, struct granule *g, int32_t thread,
                           const struct shared_touch *touch)
{
	/* A store of the same thread stays what the atomics of others meet. */
	bool stored = !g->is_atomic && g->writer == thread && g->write_interval == run->interval;
	bool joins = touch->is_atomic && g->is_atomic && g->write_interval == run->interval;
	int32_t other = !joins ? NO_THREAD : g->writer != thread ? g->writer : g->other_writer;

	g->first_reader = g->last_reader = NO_THREAD;
	g->readers = NULL;
	g->other_writer = other;
	g->write_node = touch->node;
	g->write_is_sure = !run->is_unsure;
	g->is_atomic = touch->is_atomic && !stored;
	if (touch->async) {
		g->writer = NO_THREAD;
		g->group = run->groups[thread].n + 1;
		g->group_thread = thread;
		return;
	}
	g->group = 0;
	g->writer = touch->is_bulk ? touch->bulk_writer : thread;
	g->write_interval = run->interval;
	g->fences = run->fences[thread];
}

static const char *shared_name(const struct run *run, const struct wshared *shared)
{
	return sym_text(run->check->cx->names, shared->name);
}

static const char *actor_text(const struct run *run, int32_t thread)
{
	if (thread == WARPGROUP)
		return "a warpgroup";
	if (thread >= run->warp->n_threads)
		return "a bulk copy";
	return arena_printf(run->check->cx->arena, "thread %d", (int)thread);
}

static void report_order(struct run *run, const struct shared_touch *touch, int32_t thread,
                         int64_t offset, const struct order_fault *fault)
{
	const char *subject = touch->is_bulk ? "a bulk copy" : actor_text(run, thread);
	bool is_sure = !run->is_unsure && fault->is_sure;
	struct finding finding = { PROPERTY_HAPPENS_BEFORE,
		                       is_sure ? PROPERTY_VIOLATED : PROPERTY_NOT_PROVED, touch->node->span,
		                       shared_name(run, touch->addr->shared) };

	check_found(run->check, finding, "%s%s %s byte %lld %s %s in line %u",
	            is_sure ? "" : "where data let both happen, ", subject,
	            touch->is_write ? "writes" : "reads", (long long)offset, fault->what,
	            actor_text(run, fault->other),
	            source_line(&run->check->cx->sources, fault->node->span));
}

/* What an access does wrong by itself: a violation unless data decide whether it happens. */
static struct finding access_finding(const struct run *run, enum property_name name,
                                     const struct wnode *node, const char *buffer)
{
	return (struct finding){ name, run->is_unsure ? PROPERTY_NOT_PROVED : PROPERTY_VIOLATED,
		                     node->span, buffer };
}

bool run_touch(struct run *run, const struct shared_touch *touch, int32_t thread, int64_t offset)
{
	const struct wshared *shared = touch->addr->shared;
	struct piece *piece = &run->pieces[shared->id];
	struct order_fault fault = { NULL, NO_THREAD, NULL, false };

	run->n_accesses++;
	if (offset < 0 || offset + touch->bytes > wshared_bytes(shared)) {
		check_found(run->check,
		            access_finding(run, PROPERTY_BOUNDS, touch->node, shared_name(run, shared)),
		            "thread %d touches bytes %lld to %lld of %lld", (int)thread, (long long)offset,
		            (long long)(offset + touch->bytes - 1), (long long)wshared_bytes(shared));
		return false;
	}
	if ((shared->offset_bytes + offset) % touch->bytes) {
		check_found(run->check,
		            access_finding(run, PROPERTY_ALIGNMENT, touch->node, shared_name(run, shared)),
		            "thread %d accesses %lld bytes at offset %lld", (int)thread,
		            (long long)touch->bytes, (long long)offset);
		return false;
	}
	for (int64_t g = offset / piece->granule_bytes;
	     g <= (offset + touch->bytes - 1) / piece->granule_bytes && !fault.what; g++) {
		struct granule *granule = &piece->granules[g];
		if (touch->is_write)
			touch_write(run, granule, thread, touch->is_atomic, &fault);
		else
			touch_read(run, granule, thread, touch->node, &fault);
		if (!fault.what && touch->is_write)
			complete_write(run, granule, thread, touch);
	}
	if (fault.what)
		report_order(run, touch, thread, offset, &fault);
	return !fault.what;
}

/* Which lanes give an address that is used. */
static bool lane_counts(const struct winst *inst, int64_t thread)
{
	if (inst->kind == WOP_ldmatrix)
		return thread % 32 < 8 * inst->as.ldmatrix.n_matrices;
	if (inst->kind == WOP_stmatrix)
		return thread % 32 < 8 * inst->as.stmatrix.n_matrices;
	return true;
}

static int64_t inst_bytes(const struct winst *inst)
{
	switch (inst->kind) {
	case WOP_ld:
		return inst->as.ld.bytes;
	case WOP_st:
		return inst->as.st.bytes;
	case WOP_red:
		return inst->as.red.bytes;
	case WOP_cp_async:
		return inst->as.cp_async.bytes;
	case WOP_ldmatrix:
	case WOP_stmatrix:
	case WOP_wgmma:
	case WOP_wgmma_ra:
	case WOP_tma_load:
		return 16;
	case WOP_mbar_init:
	case WOP_mbar_arrive:
	case WOP_mbar_expect:
	case WOP_mbar_wait:
	case WOP_mbar_copies:
		return 8;
	case WOP_cp_async_commit:
	case WOP_cp_async_wait:
	case WOP_barrier:
	case WOP_barrier_part:
	case WOP_mma:
	case WOP_set:
	case WOP_shfl_xor:
	case WOP_wgmma_fence:
	case WOP_wgmma_commit:
	case WOP_wgmma_wait:
	case WOP_fence_async:
	case WOP_shfl_up:
	case WOP_shfl_down:
	case WOP_shfl_idx:
	case N_WOP_KINDS:
		break;
	}
	return 0;
}

static void run_shared(struct run *run, const struct wnode *node, const struct waddr *addr,
                       bool is_write)
{
	const struct winst *inst = &node->as.inst;
	struct shared_touch touch = { .node = node,
		                          .addr = addr,
		                          .bytes = inst_bytes(inst),
		                          .is_write = is_write,
		                          .async = inst->kind == WOP_cp_async,
		                          .is_atomic = inst->kind == WOP_red };
	bool ok = true;

	if (!run_evaluate(run, addr->offset, run->offsets)) {
		run_give_up(&run->limit, node->span,
		            "an address depends on values that the kernel computes");
		return;
	}
	/* A failing predicate of cp.async still writes zeros. */
	run_predicate(run, inst->kind == WOP_cp_async ? NULL : inst->predicate, run->mask);
	for (int64_t t = 0; t < run->warp->n_threads && ok; t++)
		if (run->mask[t] && lane_counts(inst, t))
			ok = run_touch(run, &touch, (int32_t)t, run->offsets[t]);
}

/* ---- global memory ---- */

static void run_global(struct run *run, const struct wnode *node, const struct waddr *addr)
{
	const struct winst *inst = &node->as.inst;
	const struct buffer *buffer = addr->global;
	int64_t n = run->warp->n_threads, elems = place_n_elems(run->warp->pool, buffer),
			elem_bytes = dtype_bits(buffer->type) / 8;
	int64_t *offsets = run->offsets, bytes = inst_bytes(inst);
	const char *name = sym_text(run->check->cx->names, buffer->name);
	bool watch = inst->kind == WOP_st && !run->only_global;

	if (elems < 0 || elem_bytes == 0 || !run_evaluate(run, addr->offset, offsets)) {
		run_give_up(&run->global_limit, node->span,
		            "a global address or its limit is only known at run time");
		return;
	}
	run_predicate(run, inst->predicate, run->mask);
	for (int64_t t = 0; t < n; t++) {
		if (!run->mask[t])
			continue;
		run->n_accesses++;
		if (offsets[t] < 0 || offsets[t] + bytes / elem_bytes > elems) {
			check_found(run->check, access_finding(run, PROPERTY_BOUNDS, node, name),
			            "thread %lld touches element %lld of %lld", (long long)t,
			            (long long)offsets[t], (long long)elems);
			return;
		}
		if (offsets[t] * elem_bytes % bytes) {
			check_found(run->check, access_finding(run, PROPERTY_ALIGNMENT, node, name),
			            "thread %lld accesses %lld bytes at element %lld", (long long)t,
			            (long long)bytes, (long long)offsets[t]);
			return;
		}
		for (int64_t i = 0; i < bytes / elem_bytes && watch && !run->is_write_told; i++)
			run_note_store(run, node, buffer, (int32_t)t, offsets[t] + i);
	}
}

/* ---- instructions ---- */

static void run_commit(struct run *run, const struct winst *inst)
{
	run_predicate(run, inst->predicate, run->mask);
	for (int64_t t = 0; t < run->warp->n_threads; t++)
		run->groups[t].n += run->mask[t];
}

static void run_wait_groups(struct run *run, const struct winst *inst, int64_t n_pending)
{
	run_predicate(run, inst->predicate, run->mask);
	for (int64_t t = 0; t < run->warp->n_threads; t++) {
		struct copy_groups *groups = &run->groups[t];
		while (run->mask[t] && groups->n - groups->n_done > n_pending) {
			vec_push(run->check->cx->arena, &groups->done_interval, run->interval);
			vec_push(run->check->cx->arena, &groups->done_fences, run->fences[t]);
			groups->n_done++;
		}
	}
}

/* The warpgroups whose first thread is active. */
static void run_wgmma_commit(struct run *run)
{
	for (int64_t t = 0; t < run->warp->n_threads; t += WGMMA_THREADS)
		run->products[t / WGMMA_THREADS].n += run->active[t];
}

static void run_wgmma_wait(struct run *run, int64_t n_pending)
{
	for (int64_t t = 0; t < run->warp->n_threads; t += WGMMA_THREADS) {
		struct product_groups *products = &run->products[t / WGMMA_THREADS];

		while (run->active[t] && (int64_t)products->n - products->n_done > n_pending) {
			vec_push(run->check->cx->arena, &products->done_interval, run->interval);
			products->n_done++;
		}
	}
}

static void run_fence(struct run *run, const struct winst *inst)
{
	run_predicate(run, inst->predicate, run->mask);
	for (int64_t t = 0; t < run->warp->n_threads; t++) {
		run->fences[t] += run->mask[t];
		if (run->mask[t] && run->phases)
			phases_fence(run->phases, (uint32_t)t);
	}
}

/* ---- warpgroup instructions ---- */

/* An operand of one warpgroup: its descriptor and how far it reaches. */
struct matrix_touch {
	struct shared_touch touch;
	struct wgmma_matrix matrix;
	int64_t mn; /* rows of A, columns of B */
};

/* Written by the generic proxy, and not fenced since. */
static bool is_unfenced(const struct run *run, const struct granule *g)
{
	int32_t writer = g->group ? g->group_thread : g->writer;
	uint32_t fences = g->fences, interval = g->write_interval;

	if (writer == NO_THREAD || writer >= run->warp->n_threads)
		return false; /* nobody's, or a bulk copy's */
	if (g->group) {
		fences = run->groups[writer].done_fences.p[g->group - 1];
		interval = run->groups[writer].done_interval.p[g->group - 1];
	}
	return fences == run->fences[writer] &&
	       !(run->phases &&
	         phases_fenced(run->phases, (uint32_t)writer, interval, (uint32_t)run->matrix_thread));
}

/* The 16 bytes at `offset`: order as for any read, the fence, and the read that goes on. */
static bool touch_matrix(struct run *run, const struct matrix_touch *matrix, int64_t offset)
{
	const struct shared_touch *touch = &matrix->touch;
	struct piece *piece = &run->pieces[touch->addr->shared->id];

	if (!run_touch(run, touch, WARPGROUP, offset))
		return false;
	for (int64_t g = offset / piece->granule_bytes;
	     g <= (offset + touch->bytes - 1) / piece->granule_bytes; g++) {
		struct granule *granule = &piece->granules[g];
		struct order_fault fault = { "without a proxy fence behind the write by",
			                         granule->group ? granule->group_thread : granule->writer,
			                         granule->write_node, granule->write_is_sure };
		granule->product[run->matrix_thread / WGMMA_THREADS] =
			run->products[run->matrix_thread / WGMMA_THREADS].n + 1;
		if (!is_unfenced(run, granule))
			continue;
		report_order(run, touch, WARPGROUP, offset, &fault);
		return false;
	}
	return true;
}

static bool check_descriptor(struct run *run, const struct matrix_touch *matrix, int64_t start)
{
	const struct wshared *shared = matrix->touch.addr->shared;
	int64_t align = wgmma_alignment(&matrix->matrix), base = shared->offset_bytes;

	if (base % align == 0 && start % align < matrix->matrix.span)
		return true;
	check_found(run->check,
	            (struct finding){ PROPERTY_ALIGNMENT, PROPERTY_VIOLATED, matrix->touch.node->span,
	                              shared_name(run, shared) },
	            "a descriptor with %lld bytes of swizzle starts at byte %lld of shared memory: the "
	            "swizzle's pattern begins at multiples of %lld",
	            (long long)matrix->matrix.span, (long long)(base + start), (long long)align);
	return false;
}

/* What one warpgroup reads of an operand, in units of 16 bytes. */
static bool run_matrix(struct run *run, const struct matrix_touch *matrix, int64_t start)
{
	int64_t elems = 16 / matrix->matrix.elem_bytes, base = matrix->touch.addr->shared->offset_bytes;
	int64_t k = WGMMA_K_BYTES / matrix->matrix.elem_bytes;
	int64_t mn_step = matrix->matrix.mn_major ? elems : 1,
			k_step = matrix->matrix.mn_major ? 1 : elems;

	if (!check_descriptor(run, matrix, start))
		return false;
	for (int64_t i = 0; i < matrix->mn; i += mn_step)
		for (int64_t j = 0; j < k; j += k_step) {
			int64_t at = wgmma_address(&matrix->matrix, base + start, i, j);
			if (!touch_matrix(run, matrix, at - base))
				return false;
		}
	return true;
}

static bool run_operand(struct run *run, const struct wnode *node,
                        const struct matrix_touch *matrix)
{
	int64_t n = run->warp->n_threads;

	if (!run_evaluate(run, matrix->touch.addr->offset, run->offsets)) {
		run_give_up(&run->limit, node->span,
		            "an address depends on values that the kernel computes");
		return false;
	}
	run_predicate(run, node->as.inst.predicate, run->mask);
	for (int64_t t = 0; t < n; t += WGMMA_THREADS) {
		run->matrix_thread = (int32_t)t;
		if (run->mask[t] && !run_matrix(run, matrix, run->offsets[t]))
			return false;
	}
	return true;
}

static void run_wgmma(struct run *run, const struct wnode *node)
{
	struct matrix_touch a = { .mn = WGMMA_M }, b;
	struct winst_wgmma op;

	(void)winst_wgmma(&node->as.inst, &op);
	a.matrix = op.a_matrix;
	a.touch = (struct shared_touch){ .node = node, .addr = op.a, .bytes = 16 };
	b = (struct matrix_touch){ { .node = node, .addr = op.b, .bytes = 16 }, op.b_matrix, op.n };
	if (!op.a || run_operand(run, node, &a))
		run_operand(run, node, &b);
}

static void run_memory(struct run *run, const struct wnode *node)
{
	const struct winst *inst = &node->as.inst;
	const struct wop_info *info = wop_info(inst->kind);

	for (uint32_t i = 0; i < info->n_operands; i++) {
		const struct woperand_info *operand = &info->operands[i];
		if (operand->role != WROLE_ADDR_READ && operand->role != WROLE_ADDR_WRITE &&
		    operand->role != WROLE_ADDR_UPDATE)
			continue;
		const struct waddr *addr = winst_operand(inst, operand).addr;
		if (addr->space == WSPACE_SHARED && run->only_global)
			continue;
		if (addr->space == WSPACE_SHARED)
			run_shared(run, node, addr, operand->role != WROLE_ADDR_READ);
		else
			run_global(run, node, addr);
	}
}

/* The first thread whose mask has this value; NO_THREAD: none. */
static int64_t first_thread(const struct run *run, bool value)
{
	for (int64_t t = 0; t < run->warp->n_threads; t++)
		if (run->mask[t] == value)
			return t;
	return NO_THREAD;
}

/* All threads of the block must come, or none. */
static void run_barrier(struct run *run, const struct wnode *node)
{
	struct finding finding = { PROPERTY_TERMINATION, PROPERTY_VIOLATED, node->span, "" };
	const char *where = "its condition";

	run_predicate(run, node->as.inst.predicate, run->mask);
	int64_t here = first_thread(run, true), elsewhere = first_thread(run, false);
	if (here == NO_THREAD)
		return;
	if (run->phases && !run->only_global) {
		run_meet(run, node, 0, run->warp->n_threads);
		return;
	}
	run->block_interval = ++run->interval;
	run->gaps.n = 0;
	if (elsewhere == NO_THREAD || run->check->n_found[PROPERTY_TERMINATION])
		return;
	if (!node->as.inst.predicate && run->split)
		where = arena_printf(run->check->cx->arena, "the %s in line %u",
		                     run->split->kind == WNODE_IF ? "if" : "loop",
		                     source_line(&run->check->cx->sources, run->split->span));
	check_found(run->check, finding,
	            "deadlock: thread %lld waits at this barrier, thread %lld never comes, %s keeps it "
	            "away",
	            (long long)here, (long long)elsewhere, where);
}

/* As many threads must come as the barrier waits for. */
static void run_barrier_part(struct run *run, const struct wnode *node)
{
	struct finding finding = { PROPERTY_TERMINATION, PROPERTY_VIOLATED, node->span, "" };
	const struct wop_barrier_part *op = &node->as.inst.as.barrier_part;
	int64_t n = 0, first;

	run_predicate(run, node->as.inst.predicate, run->mask);
	first = first_thread(run, true);
	for (int64_t t = 0; t < run->warp->n_threads; t++)
		n += run->mask[t];
	if (n == 0)
		return;
	if (run->phases && !run->only_global) {
		run_meet(run, node, (uint32_t)op->id, op->n_threads);
		return;
	}
	run->interval++;
	for (int64_t t = 0; t < run->warp->n_threads; t++)
		if (run->mask[t])
			run->meetings[t] = (struct meeting){ run->interval, first, n };
	if (n != op->n_threads && !run->check->n_found[PROPERTY_TERMINATION])
		check_found(run->check, finding, "%lld threads come to barrier %lld, which waits for %lld",
		            (long long)n, (long long)op->id, (long long)op->n_threads);
}

static void run_inst(struct run *run, const struct wnode *node)
{
	const struct winst *inst = &node->as.inst;

	switch (inst->kind) {
	case WOP_barrier:
		run_barrier(run, node);
		return;
	case WOP_barrier_part:
		run_barrier_part(run, node);
		return;
	case WOP_cp_async_commit:
		run_commit(run, inst);
		return;
	case WOP_cp_async_wait:
		run_wait_groups(run, inst, inst->as.cp_async_wait.n_pending);
		return;
	case WOP_ld:
	case WOP_st:
	case WOP_red:
	case WOP_ldmatrix:
	case WOP_stmatrix:
	case WOP_cp_async:
		run_memory(run, node);
		return;
	case WOP_wgmma:
	case WOP_wgmma_ra:
		if (!run->only_global)
			run_wgmma(run, node);
		return;
	case WOP_wgmma_commit:
		run_wgmma_commit(run);
		return;
	case WOP_wgmma_wait:
		run_wgmma_wait(run, inst->as.wgmma_wait.n_pending);
		return;
	case WOP_fence_async:
		run_fence(run, inst);
		return;
	case WOP_mbar_init:
	case WOP_mbar_arrive:
	case WOP_mbar_expect:
	case WOP_mbar_wait:
	case WOP_tma_load:
		run_mbarrier(run, node);
		return;
	case WOP_mbar_copies:
		run_commit(run, inst);
		run_wait_groups(run, inst, 0);
		run_mbarrier(run, node);
		return;
	case WOP_mma:
	case WOP_set:
	case WOP_shfl_xor:
	case WOP_wgmma_fence:
	case WOP_shfl_up:
	case WOP_shfl_down:
	case WOP_shfl_idx:
	case N_WOP_KINDS:
		return;
	}
}

/* ---- loops ---- */

static bool inst_touches_global(const struct winst *inst)
{
	const struct wop_info *info = wop_info(inst->kind);

	for (uint32_t i = 0; i < info->n_operands; i++)
		if (info->operands[i].role <= WROLE_ADDR_UPDATE &&
		    winst_operand(inst, &info->operands[i]).addr->space == WSPACE_GLOBAL)
			return true;
	return false;
}

static bool touches_global(const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		if (node->kind == WNODE_INST && inst_touches_global(&node->as.inst))
			return true;
		if (node->kind == WNODE_LOOP && touches_global(&node->as.loop.body))
			return true;
		if (node->kind == WNODE_IF &&
		    (touches_global(&node->as.if_.then) || touches_global(&node->as.if_.otherwise)))
			return true;
		if (node->kind == WNODE_WHILE)
			return true;
	}
	return false;
}

static bool uses_block(const struct run *run, const struct expr *e)
{
	for (int axis = 0; axis < 3; axis++)
		if (e && expr_uses(e, run->warp->block[axis]))
			return true;
	return false;
}

static bool inst_depends_on_block(const struct run *run, const struct winst *inst)
{
	const struct waddr *addr;

	for (uint32_t i = 0; (addr = winst_shared_nth(inst, i, NULL)); i++)
		if (uses_block(run, addr->offset) ||
		    (inst->kind != WOP_cp_async && uses_block(run, inst->predicate)))
			return true;
	return false;
}

/* Does what happens in shared memory depend on the block's number? */
static bool depends_on_block(const struct run *run, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		if (node->kind == WNODE_INST && inst_depends_on_block(run, &node->as.inst))
			return true;
		if (node->kind == WNODE_LOOP &&
		    (uses_block(run, node->as.loop.extent) || depends_on_block(run, &node->as.loop.body)))
			return true;
		if (node->kind == WNODE_IF &&
		    (uses_block(run, node->as.if_.condition) || depends_on_block(run, &node->as.if_.then) ||
		     depends_on_block(run, &node->as.if_.otherwise)))
			return true;
		if (node->kind == WNODE_WHILE)
			return true;
	}
	return false;
}

/* Does it touch shared memory, or count intervals, groups or fences? */
static bool inst_has_effect(const struct winst *inst)
{
	return (inst->kind == WOP_st && inst->as.st.dst.space == WSPACE_GLOBAL) ||
	       winst_shared_addr(inst, NULL) || inst->kind == WOP_barrier ||
	       inst->kind == WOP_barrier_part || inst->kind == WOP_cp_async_commit ||
	       inst->kind == WOP_cp_async_wait || inst->kind == WOP_wgmma_commit ||
	       inst->kind == WOP_wgmma_wait || inst->kind == WOP_fence_async;
}

static bool has_effect(const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		switch (node->kind) {
		case WNODE_INST:
			if (inst_has_effect(&node->as.inst))
				return true;
			break;
		case WNODE_LOOP:
			if (has_effect(&node->as.loop.body))
				return true;
			break;
		case WNODE_IF:
			if (has_effect(&node->as.if_.then) || has_effect(&node->as.if_.otherwise))
				return true;
			break;
		case WNODE_WHILE:
			return true;
		}
	}
	return false;
}

/* Does a condition let the same threads through in all iterations left out or next to them? */
static bool is_steady(struct run *run, const struct shortened *loop, const struct expr *condition)
{
	bool by_thread = expr_uses(condition, run->warp->tid);
	int64_t *values = run->values, n_threads = by_thread ? run->warp->n_threads : 1;
	int64_t first = loop->period, end = loop->extent - loop->period, tid = run->warp->tid->id;

	if (expr_substitute(run->check->pool, condition, &loop->shift) == condition)
		return true;
	if (!condition->is_index || (end - first) * n_threads > MAX_STEPS / 16)
		return false;
	for (uint32_t i = 0; i < run->inner.n; i++)
		if (expr_uses(condition, run->inner.p[i]))
			return false;
	for (int64_t t = 0; t < n_threads; t++) {
		values[tid] = t;
		values[loop->var->id] = first;
		bool wanted = expr_eval_int(condition, values) != 0;
		for (int64_t i = first; i < end; i++) {
			values[loop->var->id] = i;
			if ((expr_eval_int(condition, values) != 0) != wanted)
				return false;
		}
	}
	return true;
}

static bool is_periodic(struct run *run, const struct wblock *block, const struct shortened *loop);

static bool is_inst_periodic(struct run *run, const struct winst *inst,
                             const struct shortened *loop)
{
	const struct waddr *addr = winst_shared_addr(inst, NULL);

	if (inst->kind == WOP_st && inst->as.st.dst.space == WSPACE_GLOBAL && !run->only_global &&
	    !run_store_is_apart(run, &inst->as.st.dst, loop))
		return false;
	if ((inst->kind == WOP_barrier || inst->kind == WOP_barrier_part) && inst->predicate)
		return is_steady(run, loop, inst->predicate);
	if (!addr)
		return true;
	if (inst->kind != WOP_cp_async && inst->predicate && !is_steady(run, loop, inst->predicate))
		return false;
	for (uint32_t i = 0; (addr = winst_shared_nth(inst, i, NULL)) != NULL; i++)
		if (expr_substitute(run->check->pool, addr->offset, &loop->shift) != addr->offset)
			return false;
	return true;
}

static bool is_node_periodic(struct run *run, const struct wnode *node,
                             const struct shortened *loop)
{
	bool ok = true;

	switch (node->kind) {
	case WNODE_INST:
		return is_inst_periodic(run, &node->as.inst, loop);
	case WNODE_LOOP:
		if (!has_effect(&node->as.loop.body))
			return true;
		vec_push(run->check->cx->arena, &run->inner, node->as.loop.var);
		ok = expr_substitute(run->check->pool, node->as.loop.extent, &loop->shift) ==
		         node->as.loop.extent &&
		     is_periodic(run, &node->as.loop.body, loop);
		run->inner.n--;
		return ok;
	case WNODE_IF:
		if (!has_effect(&node->as.if_.then) && !has_effect(&node->as.if_.otherwise))
			return true;
		return is_steady(run, loop, node->as.if_.condition) &&
		       is_periodic(run, &node->as.if_.then, loop) &&
		       is_periodic(run, &node->as.if_.otherwise, loop);
	case WNODE_WHILE:
		return false;
	}
	return ok;
}

/* Does replacing var by var + period change what the block does to shared memory? */
static bool is_periodic(struct run *run, const struct wblock *block, const struct shortened *loop)
{
	for (uint32_t i = 0; i < block->nodes.n; i++)
		if (!is_node_periodic(run, block->nodes.p[i], loop))
			return false;
	return true;
}

/* The smallest period of a loop that is long enough to skip its middle; 0: all iterations run. */
static int64_t period_of(struct run *run, const struct wnode *node, int64_t extent)
{
	struct expr_pool *pool = run->check->pool;
	struct shortened loop = { .var = node->as.loop.var, .extent = extent };

	if (run->phases)
		return 0; /* groups must do their rounds together */
	for (loop.period = 1; loop.period <= MAX_PERIOD && extent > 4 * loop.period + 1;
	     loop.period++) {
		const struct expr *next = expr_add_int(pool, expr_of_var(pool, loop.var), loop.period);
		map_set(run->check->cx->arena, &loop.shift.of_var, loop.var->id, (void *)(uintptr_t)next);
		if (is_periodic(run, &node->as.loop.body, &loop))
			return loop.period;
	}
	return 0;
}

/* Threads that `mask` leaves of those that got here; `any` tells whether there are some. */
static bool narrow(struct run *run, const struct wnode *node, const bool *before, bool *mask)
{
	bool any = false, all = true;

	for (int64_t t = 0; t < run->warp->n_threads; t++) {
		mask[t] = mask[t] && before[t];
		any |= mask[t];
		all &= mask[t] == before[t];
	}
	run->active = mask;
	if (!all)
		run->split = node;
	return any;
}

/* The threads' trip counts; their largest. */
static int64_t trip_counts(struct run *run, const struct expr *extent, int64_t *counts)
{
	int64_t most = 0;

	run_evaluate(run, extent, counts);
	for (int64_t t = 0; t < run->warp->n_threads; t++)
		if (run->active[t] && counts[t] > most)
			most = counts[t];
	return most;
}

static void run_loop(struct run *run, const struct wnode *node)
{
	const struct expr *extent = node->as.loop.extent;
	struct arena *arena = run->check->cx->arena;
	bool *before = run->active, *mask = before;
	const struct wnode *split = run->split;
	size_t n_threads = (size_t)run->warp->n_threads;
	bool differs = expr_uses(extent, run->warp->tid);

	if (run->only_global && !touches_global(&node->as.loop.body))
		return;
	if (!extent->is_index) {
		run_give_up(&run->limit, node->span, "how often a loop runs is only known at run time");
		return;
	}
	int64_t *counts = arena_array(arena, int64_t, n_threads);
	int64_t n = trip_counts(run, extent, counts),
			period = node->as.loop.unroll || differs ? 0 : period_of(run, node, n);
	if (differs)
		mask = arena_array(arena, bool, n_threads);
	run_enter_loop(run, node->as.loop.var);
	for (int64_t i = 0; i < n && !run->gave_up; i++) {
		if (period && i == 2 * period)
			i += (n - period - 1 - i) / period * period;
		for (size_t t = 0; differs && t < n_threads; t++)
			mask[t] = i < counts[t];
		if (differs)
			narrow(run, node, before, mask);
		run->values[node->as.loop.var->id] = i;
		run_block(run, &node->as.loop.body);
	}
	run_leave_loop(run);
	run->active = before;
	run->split = split;
}

struct uniform_visit {
	const struct run *run;
	bool differs;
};

static void visit_uniform(void *user, const struct expr *e)
{
	struct uniform_visit *visit = user;

	visit->differs |= (e->kind == EXPR_REG && !e->as.reg->is_uniform) || e->kind == EXPR_CALL ||
	                  (e->kind == EXPR_VAR && e->as.var == visit->run->warp->tid);
}

/* Do all threads find the same, although it is not known what? */
static bool is_uniform(const struct run *run, const struct expr *e)
{
	struct uniform_visit visit = { run, false };

	expr_walk(e, visit_uniform, &visit);
	return !visit.differs;
}

/* One of two branches: what of it is not ordered behind them, and whether it has a barrier. */
struct branch {
	struct gap tail;
	bool has_barrier;
};

static struct branch run_branch(struct run *run, const struct wblock *block)
{
	uint32_t first = run->interval, barriers = run->block_interval;
	struct branch branch;

	run->n_unknown++;
	run_block(run, block);
	run->n_unknown--;
	branch.has_barrier = run->block_interval != barriers;
	branch.tail = (struct gap){ branch.has_barrier ? run->block_interval : first, run->interval };
	return branch;
}

/*
 * In a program whose groups wait for each other: both branches, as unsure; what is ordered before
 * an access that may be left out is ordered before what comes behind it all the same.
 */
static void run_unknown_of_group(struct run *run, const struct wnode *node)
{
	if (run_has_barrier(&node->as.if_.then) || run_has_barrier(&node->as.if_.otherwise)) {
		run_give_up(&run->limit, node->span,
		            "whether threads come to a barrier depends on values that the kernel computes");
		run->gave_up = true;
		return;
	}
	run->n_unknown++;
	run_block(run, &node->as.if_.then);
	run_block(run, &node->as.if_.otherwise);
	run->n_unknown--;
}

/*
 * Branches that data decide: a barrier inside orders what is in its branch, and behind both
 * nothing that stood in front, unless both have one. When all threads take the same branch, what
 * is in one does not meet what is in the other.
 */
static void run_unknown(struct run *run, const struct wnode *node)
{
	struct arena *arena = run->check->cx->arena;
	struct gap before = { run->block_interval, run->interval };
	vec_of(struct gap) saved = { 0 };
	struct branch then, otherwise;

	if (run->phases) {
		run_unknown_of_group(run, node);
		return;
	}
	for (uint32_t i = 0; i < run->gaps.n; i++)
		vec_push(arena, &saved, run->gaps.p[i]);
	run->interval++;
	then = run_branch(run, &node->as.if_.then);
	run->block_interval = ++run->interval;
	run->gaps.n = 0;
	for (uint32_t i = 0; i < saved.n; i++)
		vec_push(arena, &run->gaps, saved.p[i]);
	vec_push(arena, &run->gaps, before);
	if (!is_uniform(run, node->as.if_.condition))
		vec_push(arena, &run->gaps, then.tail);
	otherwise = run_branch(run, &node->as.if_.otherwise);
	run->block_interval = ++run->interval;
	run->gaps.n = 0;
	for (uint32_t i = 0; i < saved.n && !(then.has_barrier && otherwise.has_barrier); i++)
		vec_push(arena, &run->gaps, saved.p[i]);
	if (!(then.has_barrier && otherwise.has_barrier))
		vec_push(arena, &run->gaps, before);
	vec_push(arena, &run->gaps, then.tail);
	vec_push(arena, &run->gaps, otherwise.tail);
}

static void run_if(struct run *run, const struct wnode *node)
{
	int64_t n = run->warp->n_threads;
	bool *before = run->active, *mask = arena_array(run->check->cx->arena, bool, (size_t)n);
	int64_t *values = arena_array(run->check->cx->arena, int64_t, (size_t)n);
	const struct wnode *split = run->split;

	if (!run_evaluate(run, node->as.if_.condition, values)) {
		run_unknown(run, node);
		return;
	}
	for (int64_t t = 0; t < n; t++)
		mask[t] = values[t] != 0;
	if (narrow(run, node, before, mask))
		run_block(run, &node->as.if_.then);
	for (int64_t t = 0; t < n; t++)
		mask[t] = values[t] == 0;
	run->split = split;
	if (narrow(run, node, before, mask))
		run_block(run, &node->as.if_.otherwise);
	run->active = before;
	run->split = split;
}

void run_block(struct run *run, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n && !run->gave_up; i++) {
		const struct wnode *node = block->nodes.p[i];
		if (run->n_steps++ > (run->phases ? 4 : 1) * (int64_t)MAX_STEPS / run->warp->n_threads) {
			run_give_up(&run->limit, node->span, "more steps than the limit");
			run->gave_up = run->phases != NULL;
			return;
		}
		switch (node->kind) {
		case WNODE_INST:
			run_inst(run, node);
			break;
		case WNODE_LOOP:
			run_loop(run, node);
			break;
		case WNODE_IF:
			run_if(run, node);
			break;
		case WNODE_WHILE:
			run_give_up(&run->limit, node->span, "how often a while loop runs is not known");
			break;
		}
	}
}

/* ---- blocks ---- */

/* The narrowest access of each piece decides its granules. */
static void narrow_granules(struct run *run, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		const struct waddr *addr =
			node->kind == WNODE_INST ? winst_shared_addr(&node->as.inst, NULL) : NULL;
		/* Those of warpgroup instructions are as wide as granules are at first. */
		if (addr && inst_bytes(&node->as.inst) < run->pieces[addr->shared->id].granule_bytes)
			run->pieces[addr->shared->id].granule_bytes = inst_bytes(&node->as.inst);
		if (node->kind == WNODE_LOOP)
			narrow_granules(run, &node->as.loop.body);
		if (node->kind == WNODE_WHILE)
			narrow_granules(run, &node->as.while_.body);
		if (node->kind == WNODE_IF) {
			narrow_granules(run, &node->as.if_.then);
			narrow_granules(run, &node->as.if_.otherwise);
		}
	}
}

static void reset_memory(struct run *run)
{
	run->interval = run->block_interval = 1;
	run->gaps.n = 0;
	run->globals = (struct map){ 0 };
	memset(run->meetings, 0, (size_t)run->warp->n_threads * sizeof(*run->meetings));
	for (int32_t w = 0; w < MAX_WARPGROUPS; w++)
		run->products[w].n = run->products[w].n_done = run->products[w].done_interval.n = 0;
	memset(run->fences, 0, (size_t)run->warp->n_threads * sizeof(*run->fences));
	run->gave_up = false;
	for (int64_t t = 0; t < run->warp->n_threads; t++) {
		struct copy_groups *groups = &run->groups[t];
		groups->n = groups->n_done = groups->done_interval.n = groups->done_fences.n = 0;
	}
	for (uint32_t i = 0; i < run->warp->shareds.n; i++)
		for (int64_t g = 0; g < run->pieces[i].n; g++)
			run->pieces[i].granules[g] = (struct granule){ .writer = NO_THREAD,
				                                           .other_writer = NO_THREAD,
				                                           .first_reader = NO_THREAD,
				                                           .last_reader = NO_THREAD,
				                                           .group_thread = NO_THREAD };
}

static void open_memory(struct run *run)
{
	struct arena *arena = run->check->cx->arena;

	run->pieces = arena_array(arena, struct piece, run->warp->shareds.n);
	for (uint32_t i = 0; i < run->warp->shareds.n; i++)
		run->pieces[i].granule_bytes = 16;
	narrow_granules(run, &run->warp->body);
	for (uint32_t i = 0; i < run->warp->shareds.n; i++) {
		run->pieces[i].n =
			wshared_bytes(run->warp->shareds.p[i]) / run->pieces[i].granule_bytes + 1;
		run->pieces[i].granules = arena_array(arena, struct granule, (size_t)run->pieces[i].n);
	}
}

static uint32_t n_findings(const struct check *check)
{
	return check->n_found[PROPERTY_HAPPENS_BEFORE] + check->n_found[PROPERTY_BOUNDS] +
	       check->n_found[PROPERTY_ALIGNMENT];
}

/* The corners of the grid, each run once. */
static void run_corners(struct run *run)
{
	uint32_t n_before = n_findings(run->check);
	int64_t last[3];

	for (int axis = 0; axis < 3; axis++)
		if (!expr_is_int(run->warp->grid[axis], &last[axis])) {
			run_give_up(&run->limit, run->check->solution->launch->span,
			            "the grid is only known at run time");
			return;
		}
	for (int corner = 0; corner < 8; corner++) {
		bool skip = false;
		for (int axis = 0; axis < 3; axis++) {
			skip |= (corner >> axis & 1) && last[axis] == 1;
			run->values[run->warp->block[axis]->id] = corner >> axis & 1 ? last[axis] - 1 : 0;
		}
		if (skip)
			continue;
		reset_memory(run);
		run->only_global = corner > 0 && run->is_uniform;
		if (run->only_global || !run_by_groups(run))
			run_block(run, &run->warp->body);
		if (n_findings(run->check) > n_before)
			return;
	}
}

void check_run(struct check *check)
{
	struct run run = { .check = check, .warp = check->warp };
	struct arena *arena = check->cx->arena;
	size_t n = (size_t)check->warp->n_threads;
	static const enum property_name names[] = { PROPERTY_HAPPENS_BEFORE, PROPERTY_BOUNDS,
		                                        PROPERTY_ALIGNMENT };

	run.threads = arena_array(arena, int64_t, n);
	run.active = arena_array(arena, bool, n);
	for (size_t t = 0; t < n; t++) {
		run.threads[t] = (int64_t)t;
		run.active[t] = true;
	}
	run.offsets = arena_array(arena, int64_t, n);
	run.conditions = arena_array(arena, int64_t, n);
	run.mask = arena_array(arena, bool, n);
	run.meetings = arena_array(arena, struct meeting, n);
	run.groups = arena_array(arena, struct copy_groups, n);
	run.fences = arena_array(arena, uint32_t, n);
	run_open_groups(&run);
	run.is_uniform = !depends_on_block(&run, &run.warp->body);
	open_memory(&run);
	run.values = arena_array(arena, int64_t, expr_n_vars(check->pool) + 64);
	run_corners(&run);
	check->run_is_whole = !run.limit.why;
	check->run_limit = run.limit.why;
	for (size_t i = 0; i < 3; i++) {
		const struct limit *limit =
			run.limit.why || names[i] == PROPERTY_HAPPENS_BEFORE ? &run.limit : &run.global_limit;
		if (limit->why && !check->n_found[names[i]])
			check_found(check, (struct finding){ names[i], PROPERTY_NOT_PROVED, limit->span, "" },
			            "%s", limit->why);
		check_proved(check, names[i],
		             "%lld accesses of the corner blocks executed; loops by their period",
		             (long long)run.n_accesses);
	}
}
