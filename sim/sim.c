/*
 * Blocks and control flow. Threads go through the tree in step; a loop or branch whose condition
 * differs between threads narrows the mask.
 */
#include "sim/sim_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t default_max_steps = 20000000000;
enum { MMA_STEPS = 8, WGMMA_STEPS = 64 };

static bool is_mask_empty(const struct sim *sim, const struct lane_mask *mask)
{
	for (uint32_t w = 0; w < sim->n_warps; w++)
		if (mask->warps[w])
			return false;
	return true;
}

static uint32_t mask_count(const struct sim *sim, const struct lane_mask *mask)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < sim->n_warps; w++)
		n += (uint32_t)__builtin_popcount(mask->warps[w]);
	return n;
}

static uint32_t mask_first(const struct sim *sim, const struct lane_mask *mask)
{
	for (uint32_t w = 0; w < sim->n_warps; w++)
		if (mask->warps[w])
			return w * WARP_LANES + (uint32_t)__builtin_ctz(mask->warps[w]);
	return 0;
}

static bool cell_is_true(const struct lanes *lanes, uint32_t lane)
{
	union cell cell = lanes_at(lanes, lane);

	return lanes->is_float ? cell.f != 0.0 : cell.i != 0;
}

/* The threads of `mask` for which the condition (NULL: true) holds. */
static struct lane_mask mask_where(struct sim *sim, const struct expr *condition,
                                   const struct lane_mask *mask)
{
	struct lane_mask taken = { { 0 } };
	struct lanes lanes;

	if (!condition)
		return *mask;
	lanes = lane_eval_run(sim->eval, condition);
	sim_find_poison(sim, &lanes, mask, UINT8_MAX, "the condition");
	if (!lanes.stride)
		return cell_is_true(&lanes, 0) ? *mask : taken;
	for (uint32_t thread = mask_next(mask, 0); thread != NO_THREAD;
	     thread = mask_next(mask, thread + 1))
		if (cell_is_true(&lanes, thread))
			taken.warps[thread / WARP_LANES] |= 1u << thread % WARP_LANES;
	return taken;
}

static struct lane_mask mask_without(const struct sim *sim, struct lane_mask mask,
                                     const struct lane_mask *other)
{
	for (uint32_t w = 0; w < sim->n_warps; w++)
		mask.warps[w] &= ~other->warps[w];
	return mask;
}

/* ---- registers ---- */

struct slots sim_slots(struct sim *sim, const struct wregs *regs, const struct lane_mask *mask)
{
	struct slots slots = { &sim->regs[regs->reg->id], regs, lane_eval_run(sim->eval, regs->slot) };

	sim_find_poison(sim, &slots.lanes, mask, UINT8_MAX, "the register slot");
	return slots;
}

int64_t sim_slot_at(struct sim *sim, const struct slots *slots, uint32_t thread)
{
	int64_t slot = lanes_at(&slots->lanes, thread).i;

	if (slot >= 0 && slot <= slots->file->n_slots - slots->regs->n)
		return slot;
	sim_find(sim, SIM_OUT_OF_BOUNDS, who_thread(thread),
	         "slots %" PRId64 " to %" PRId64 " of %s, which has %" PRId64, slot,
	         slot + slots->regs->n - 1, sym_text(sim->cx->names, slots->regs->reg->name),
	         slots->file->n_slots);
	return -1;
}

void sim_need_written(struct sim *sim, const struct slots *slots, int64_t slot, uint32_t thread)
{
	sim_need_idle(sim, slots, slot, thread, REG_PRODUCT);
	for (int64_t s = slot; s < slot + slots->regs->n; s++) {
		uint8_t *written = &slots->file->written[s * sim->n_threads + thread];
		if (*written)
			continue;
		sim_find(sim, SIM_UNINITIALISED, who_thread(thread),
		         "thread %u reads slot %" PRId64 " of %s, which nothing wrote", thread, s,
		         sym_text(sim->cx->names, slots->regs->reg->name));
		*written = 1;
	}
}

void sim_need_idle(struct sim *sim, const struct slots *slots, int64_t slot, uint32_t thread,
                   uint8_t bits)
{
	for (int64_t s = slot; slots->file->async && s < slot + slots->regs->n; s++)
		if (slots->file->async[s * sim->n_threads + thread] & bits)
			sim_find(sim, SIM_UNINITIALISED, who_thread(thread),
			         "thread %u uses slot %" PRId64 " of %s, which belongs to a wgmma that is not "
			         "awaited",
			         thread, s, sym_text(sim->cx->names, slots->regs->reg->name));
}

void sim_set_written(const struct sim *sim, const struct reg_file *file, int64_t slot, int64_t n,
                     uint32_t thread)
{
	for (int64_t s = slot; s < slot + n; s++) {
		file->written[s * sim->n_threads + thread] = 1;
		if (file->async)
			file->async[s * sim->n_threads + thread] |= REG_UNFENCED;
	}
}

bool sim_whole_warp(struct sim *sim, const struct lane_mask *mask, uint32_t warp)
{
	uint32_t lanes = mask->warps[warp];

	if (lanes == UINT32_MAX)
		return true;
	/* Of the last warp of a block only the threads that exist can come; a matrix needs all 32. */
	if (lanes && lanes == sim->all.warps[warp] && wop_is_shuffle(sim->node->as.inst.kind))
		return true;
	if (lanes)
		sim_find(sim, SIM_PARTIAL_WARP,
		         who_thread(warp * WARP_LANES + (uint32_t)__builtin_ctz(lanes)),
		         "%s with %d lanes of warp %u", wop_info(sim->node->as.inst.kind)->text,
		         __builtin_popcount(lanes), warp);
	return false;
}

/* ---- control flow ---- */

static void run_barrier(struct sim *sim, const struct lane_mask *taken)
{
	struct lane_mask missing = mask_without(sim, sim->all, taken);

	if (is_mask_empty(sim, taken))
		return;
	if (sim->phases) {
		sim_meet(sim, 0, sim->n_threads, taken);
		return;
	}
	if (!is_mask_empty(sim, &missing))
		sim_find(sim, SIM_BARRIER, who_thread(mask_first(sim, &missing)),
		         "%u of %u threads reach the barrier; thread %u does not", mask_count(sim, taken),
		         sim->n_threads, mask_first(sim, &missing));
	sim->block_interval = ++sim->interval;
}

/* The threads of the mask meet; they must be as many as the barrier waits for. */
static void run_barrier_part(struct sim *sim, const struct wop_barrier_part *op,
                             const struct lane_mask *taken)
{
	uint32_t n = mask_count(sim, taken), first = mask_first(sim, taken);

	if (is_mask_empty(sim, taken))
		return;
	if (sim->phases) {
		sim_meet(sim, (uint32_t)op->id, (uint32_t)op->n_threads, taken);
		return;
	}
	if (n != op->n_threads)
		sim_find(sim, SIM_BARRIER, who_thread(first),
		         "%u threads reach barrier %d, which waits for %d", n, (int)op->id,
		         (int)op->n_threads);
	sim->interval++;
	for (uint32_t t = mask_next(taken, 0); t != NO_THREAD; t = mask_next(taken, t + 1))
		sim->meetings[t] = (struct meeting){ sim->interval, first, n };
}

static void count_steps(struct sim *sim, const struct lane_mask *mask, uint32_t factor)
{
	sim->result->n_steps += (uint64_t)mask_count(sim, mask) * factor;
	if (sim->result->n_steps <= sim->max_steps || sim->stop)
		return;
	sim->stop = true;
	sim->result->finished = false;
	sim_find(sim, SIM_STEP_LIMIT, who_thread(mask_first(sim, mask)),
	         "the run ends after %" PRIu64 " steps", sim->result->n_steps);
}

static uint32_t steps_of(enum wop_kind kind)
{
	return kind == WOP_mma                             ? MMA_STEPS
	       : kind == WOP_wgmma || kind == WOP_wgmma_ra ? WGMMA_STEPS
	                                                   : 1;
}

static void run_inst(struct sim *sim, const struct winst *inst, const struct lane_mask *mask)
{
	struct lane_mask taken = mask_where(sim, inst->predicate, mask);

	count_steps(sim, mask, steps_of(inst->kind));
	switch (inst->kind) {
	case WOP_ld:
		sim_ld(sim, &inst->as.ld, mask, &taken);
		break;
	case WOP_st:
		sim_st(sim, &inst->as.st, &taken);
		break;
	case WOP_red:
		sim_red(sim, &inst->as.red, &taken);
		break;
	case WOP_ldmatrix:
		sim_ldmatrix(sim, &inst->as.ldmatrix, &taken);
		break;
	case WOP_stmatrix:
		sim_stmatrix(sim, &inst->as.stmatrix, &taken);
		break;
	case WOP_cp_async:
		sim_cp_async(sim, &inst->as.cp_async, mask, &taken);
		break;
	case WOP_cp_async_commit:
		sim_cp_async_commit(sim, &taken);
		break;
	case WOP_cp_async_wait:
		sim_cp_async_wait(sim, &inst->as.cp_async_wait, &taken);
		break;
	case WOP_barrier:
		run_barrier(sim, &taken);
		break;
	case WOP_barrier_part:
		run_barrier_part(sim, &inst->as.barrier_part, &taken);
		break;
	case WOP_mma:
		sim_mma(sim, &inst->as.mma, &taken);
		break;
	case WOP_set:
		sim_set(sim, &inst->as.set, &taken);
		break;
	case WOP_shfl_xor:
	case WOP_shfl_up:
	case WOP_shfl_down:
	case WOP_shfl_idx:
		sim_shuffle(sim, inst, &taken);
		break;
	case WOP_wgmma:
	case WOP_wgmma_ra:
		sim_wgmma(sim, inst, &taken);
		break;
	case WOP_wgmma_fence:
		sim_wgmma_fence(sim, &inst->as.wgmma_fence, &taken);
		break;
	case WOP_wgmma_commit:
		sim_wgmma_commit(sim, &taken);
		break;
	case WOP_wgmma_wait:
		sim_wgmma_wait(sim, &inst->as.wgmma_wait, &taken);
		break;
	case WOP_fence_async:
		sim_fence_async(sim, &taken);
		break;
	case WOP_mbar_init:
	case WOP_mbar_arrive:
	case WOP_mbar_expect:
	case WOP_mbar_copies:
		sim_mbar(sim, inst, &taken);
		break;
	case WOP_mbar_wait:
		sim_mbar_wait(sim, &inst->as.mbar_wait, &taken);
		break;
	case WOP_tma_load:
		sim_tma_load(sim, &inst->as.tma_load, &taken);
		break;
	case N_WOP_KINDS:
		break;
	}
}

static void run_block(struct sim *sim, const struct wblock *block, const struct lane_mask *mask);

static bool is_stopped(const struct sim *sim)
{
	return sim->stop || sim->gave_up;
}

/* Threads whose extent is larger go on while the others wait behind the loop. */
static void run_loop(struct sim *sim, const struct wnode *node, struct lane_mask mask)
{
	struct lanes extent = lane_eval_run(sim->eval, node->as.loop.extent);
	int64_t *extents = NULL;
	int64_t most = lanes_at(&extent, 0).i;

	sim_find_poison(sim, &extent, &mask, UINT8_MAX, "the loop's extent");
	if (sim->n_loops >= MAX_LOOP_DEPTH)
		BUG("loops deeper than %d", MAX_LOOP_DEPTH);
	if (extent.stride) {
		extents = malloc(sim->n_threads * sizeof(*extents));
		if (!extents)
			BUG("out of memory");
		most = 0;
		for (uint32_t thread = mask_next(&mask, 0); thread != NO_THREAD;
		     thread = mask_next(&mask, thread + 1)) {
			extents[thread] = extent.cells[thread].i;
			most = extents[thread] > most ? extents[thread] : most;
		}
	}
	sim->loops[sim->n_loops++] = node;
	for (int64_t i = 0; i < most && !is_stopped(sim); i++) {
		if (extents)
			for (uint32_t thread = mask_next(&mask, 0); thread != NO_THREAD;
			     thread = mask_next(&mask, thread + 1))
				if (i >= extents[thread])
					mask.warps[thread / WARP_LANES] &= ~(1u << thread % WARP_LANES);
		sim->loop_values[sim->n_loops - 1] = i;
		lane_eval_set_int(sim->eval, node->as.loop.var, i);
		run_block(sim, &node->as.loop.body, &mask);
	}
	sim->n_loops--;
	free(extents);
}

static void run_while(struct sim *sim, const struct wnode *node, struct lane_mask mask)
{
	while (!is_stopped(sim)) {
		sim->node = node;
		mask = mask_where(sim, node->as.while_.condition, &mask);
		if (is_mask_empty(sim, &mask))
			break;
		count_steps(sim, &mask, 1);
		run_block(sim, &node->as.while_.body, &mask);
	}
}

static void run_if(struct sim *sim, const struct wnode *node, const struct lane_mask *mask)
{
	struct lane_mask then = mask_where(sim, node->as.if_.condition, mask);
	struct lane_mask otherwise = mask_without(sim, *mask, &then);

	run_block(sim, &node->as.if_.then, &then);
	run_block(sim, &node->as.if_.otherwise, &otherwise);
}

/* Nesting is bounded by the verifier's and the front end's limits. */
static void run_block(struct sim *sim, const struct wblock *block, const struct lane_mask *mask)
{
	if (is_mask_empty(sim, mask))
		return;
	for (uint32_t i = 0; i < block->nodes.n && !is_stopped(sim); i++) {
		const struct wnode *node = block->nodes.p[i];
		sim->node = node;
		switch (node->kind) {
		case WNODE_INST:
			run_inst(sim, &node->as.inst, mask);
			break;
		case WNODE_LOOP:
			run_loop(sim, node, *mask);
			break;
		case WNODE_IF:
			run_if(sim, node, mask);
			break;
		case WNODE_WHILE:
			run_while(sim, node, *mask);
			break;
		}
	}
}

/* ---- blocks ---- */

static void begin_block(struct sim *sim, int64_t number, const int64_t *grid)
{
	sim->block_number = (uint32_t)number;
	sim->block_interval = ++sim->interval;
	memset(sim->meetings, 0, sim->n_threads * sizeof(*sim->meetings));
	sim->pending.n = 0;
	sim->gave_up = false;
	sim_begin_groups(sim);
	for (int i = 0; i < 3; i++) {
		sim->block[i] = number % grid[i];
		number /= grid[i];
		lane_eval_set_int(sim->eval, sim->program->block[i], sim->block[i]);
	}
	memset(sim->shadow, 0, (size_t)sim->shared_bytes * sizeof(*sim->shadow));
	memset(sim->open_group, 0, sim->n_threads * sizeof(*sim->open_group));
	memset(sim->fences, 0, sim->n_threads * sizeof(*sim->fences));
	for (uint32_t g = 0; g < MAX_WARPGROUPS; g++) {
		struct products *products = &sim->products[g];
		products->n_committed = products->n_done = 0;
		products->done_interval.n = products->busy.n = 0;
	}
	for (uint32_t i = 0; i < sim->program->regs.n; i++) {
		size_t n = (size_t)sim->regs[i].n_slots * sim->n_threads;
		memset(sim->regs[i].written, 0, n);
		if (sim->regs[i].async)
			memset(sim->regs[i].async, 0, n);
	}
}

void sim_run_group(void *user, uint32_t group)
{
	struct sim *sim = user;

	run_block(sim, &sim->program->body, &sim->groups[group]);
}

/* Each group of threads on its own, or all in step. */
static void run_groups(struct sim *sim)
{
	if (sim->strands)
		(void)strands_run(sim->strands);
	else
		run_block(sim, &sim->program->body, &sim->all);
}

static void collect_nodes(struct sim *sim, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		assert(node->id < sim->program->n_nodes);
		sim->nodes[node->id] = node;
		switch (node->kind) {
		case WNODE_INST:
			break;
		case WNODE_LOOP:
			collect_nodes(sim, &node->as.loop.body);
			break;
		case WNODE_IF:
			collect_nodes(sim, &node->as.if_.then);
			collect_nodes(sim, &node->as.if_.otherwise);
			break;
		case WNODE_WHILE:
			collect_nodes(sim, &node->as.while_.body);
			break;
		}
	}
}

/* Symbols, scalar parameters and thread numbers. */
static void set_variables(struct sim *sim)
{
	union cell *threads = arena_array(sim->arena, union cell, sim->n_threads);
	const struct expr_pool *pool = sim->program->pool;

	for (uint32_t i = 0; i < expr_n_vars(pool); i++) {
		const struct var *var = expr_var_by_id(pool, i);
		if (sim->tensors->values && (var->kind == VAR_SYMBOL || var->kind == VAR_PARAM))
			lane_eval_set_int(sim->eval, var, sim->tensors->values[i]);
	}
	for (uint32_t t = 0; t < sim->n_threads; t++) {
		threads[t].i = t;
		sim->all.warps[t / WARP_LANES] |= 1u << t % WARP_LANES;
	}
	lane_eval_set_lane_values(sim->eval, sim->program->tid, threads);
}

/* Registers are watched for warpgroup instructions where there are any. */
static void open_async_regs(struct sim *sim)
{
	const struct warp_program *program = sim->program;
	struct winst_wgmma op;
	bool any = false;

	for (uint32_t i = 0; i < program->n_nodes; i++)
		any |= sim->nodes[i] && sim->nodes[i]->kind == WNODE_INST &&
		       winst_wgmma(&sim->nodes[i]->as.inst, &op);
	for (uint32_t i = 0; any && i < program->regs.n; i++)
		sim->regs[i].async =
			arena_array(sim->arena, uint8_t, (size_t)sim->regs[i].n_slots * sim->n_threads);
}

static void open_state(struct sim *sim)
{
	const struct warp_program *program = sim->program;

	sim->shared_bytes = program->shared_bytes;
	for (uint32_t i = 0; i < program->shareds.n; i++) {
		const struct wshared *shared = program->shareds.p[i];
		int64_t end = shared->offset_bytes + wshared_bytes(shared);
		sim->shared_bytes = end > sim->shared_bytes ? end : sim->shared_bytes;
	}
	sim->shared = arena_array(sim->arena, uint8_t, (size_t)sim->shared_bytes);
	sim->shadow = arena_array(sim->arena, struct shadow_byte, (size_t)sim->shared_bytes);
	sim->meetings = arena_array(sim->arena, struct meeting, sim->n_threads);
	sim->open_group = arena_array(sim->arena, uint32_t, sim->n_threads);
	sim->globals = arena_array(sim->arena, struct shadow_elem *, sim->tensors->n);
	sim->regs = arena_array(sim->arena, struct reg_file, program->regs.n);
	for (uint32_t i = 0; i < program->regs.n; i++) {
		const struct wreg *reg = program->regs.p[i];
		size_t n = (size_t)reg->n_slots * sim->n_threads;
		assert(reg->id == i && reg->type.bits % 8 == 0);
		sim->regs[i].elem_bytes = reg->type.bits / 8;
		sim->regs[i].n_slots = reg->n_slots;
		sim->regs[i].bytes = arena_alloc(sim->arena, n * sim->regs[i].elem_bytes);
		sim->regs[i].written = arena_alloc(sim->arena, n);
	}
	sim->fences = arena_array(sim->arena, uint32_t, sim->n_threads);
	sim->nodes = arena_array(sim->arena, const struct wnode *, program->n_nodes);
	collect_nodes(sim, &program->body);
	sim_open_groups(sim);
	open_async_regs(sim);
	sim->eval = lane_eval_open(sim->arena, program->pool, sim->n_threads, false, sim_loader(sim));
	set_variables(sim);
}

/* The grid's extents; false with E0651. */
static bool find_grid(struct sim *sim, int64_t grid[3])
{
	int64_t n = 1;

	for (int i = 0; i < 3; i++) {
		grid[i] = lane_eval_int(sim->eval, sim->program->grid[i]);
		if (grid[i] < 0 || __builtin_mul_overflow(n, grid[i], &n) || n > INT32_MAX) {
			diag_report(&sim->cx->diags, DIAG_E0651, (struct span){ 0 },
			            "the grid has %" PRId64 " blocks in dimension %d", grid[i], i);
			return false;
		}
	}
	sim->result->n_blocks = n;
	return true;
}

static bool is_program_usable(const struct warp_program *program)
{
	struct cx *cx = program->cx;

	if (program->n_threads < 1 || program->n_threads > WARP_LANES * MAX_WARPS) {
		diag_report(&cx->diags, DIAG_E0651, (struct span){ 0 }, "a block has %" PRId64 " threads",
		            program->n_threads);
		return false;
	}
	return true;
}

static bool run_grid(struct sim *sim, const struct sim_options *options)
{
	int64_t grid[3], n_run;

	if (!find_grid(sim, grid))
		return false;
	n_run = options->blocks ? options->n_blocks : sim->result->n_blocks;
	for (int64_t i = 0; i < n_run && !sim->stop; i++) {
		int64_t number = options->blocks ? options->blocks[i] : i;
		assert(number >= 0 && number < sim->result->n_blocks);
		begin_block(sim, number, grid);
		run_groups(sim);
		sim->result->n_blocks_run++;
	}
	return true;
}

bool sim_run(const struct warp_program *program, struct tensor_set *tensors,
             const struct sim_options *options, struct sim_result *result)
{
	struct sim sim = {
		.program = program, .cx = program->cx, .tensors = tensors, .result = result
	};
	bool ok;

	*result = (struct sim_result){ .finished = true };
	result->accesses = arena_array(program->cx->arena, struct sim_access, program->n_nodes);
	if (!is_program_usable(program))
		return false;
	sim.arena = arena_open();
	sim.max_steps = options->max_steps ? options->max_steps : default_max_steps;
	sim.n_threads = (uint32_t)program->n_threads;
	sim.n_warps = (sim.n_threads + WARP_LANES - 1) / WARP_LANES;
	open_state(&sim);
	ok = run_grid(&sim, options);
	for (uint32_t i = 0; i < tensors->n; i++)
		free(sim.globals[i]);
	arena_close(sim.arena);
	return ok;
}
