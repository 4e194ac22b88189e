/*
 * Counts instructions that are not shared accesses with the walk and the boxes of the bank table.
 *
 * Global addresses keep only the terms in which the thread number stands: rows and blocks are taken
 * to start on a sector, as far as alignment allows, so that blocks and iterations need not be told
 * apart. Where even those are not known (strides that are symbols, indices from memory), the lanes
 * are taken to lie side by side.
 */
#include "analyzer/banks/sites_internal.h"

#include <assert.h>
#include <string.h>

/* The first operand that is an address in global memory, or NULL. */
static const struct waddr *global_addr(const struct winst *inst)
{
	const struct wop_info *info = wop_info(inst->kind);

	for (uint32_t i = 0; i < info->n_operands; i++) {
		enum wrole role = info->operands[i].role;
		const struct waddr *addr;

		if (role != WROLE_ADDR_READ && role != WROLE_ADDR_WRITE && role != WROLE_ADDR_UPDATE)
			continue;
		addr = winst_operand(inst, &info->operands[i]).addr;
		if (addr->space == WSPACE_GLOBAL)
			return addr;
	}
	return NULL;
}

/* Bytes that a lane moves: the operand of that name. */
static int64_t bytes_of(const struct winst *inst, const struct waddr *addr)
{
	const struct wop_info *info = wop_info(inst->kind);

	for (uint32_t i = 0; i < info->n_operands; i++)
		if (info->operands[i].role == WROLE_NUM && strcmp(info->operands[i].name, "bytes") == 0)
			return winst_operand(inst, &info->operands[i]).num;
	return (dtype_bits(addr->global->type) + 7) / 8;
}

static bool touches_workspace(const struct wnode *node)
{
	const struct waddr *addr =
		node->kind == WNODE_INST ? winst_shared_addr(&node->as.inst, NULL) : NULL;

	if (node->kind == WNODE_LOOP)
		for (uint32_t i = 0; i < node->as.loop.body.nodes.n; i++)
			if (touches_workspace(node->as.loop.body.nodes.p[i]))
				return true;
	return addr && !addr->shared->buffer;
}

/* Does the barrier stand next to accesses of a workspace, other barriers apart? */
static bool is_exchange(const struct wblock *block, uint32_t at)
{
	for (int step = -1; step <= 1; step += 2)
		for (int64_t i = (int64_t)at + step; i >= 0 && i < (int64_t)block->nodes.n; i += step) {
			const struct wnode *node = block->nodes.p[i];

			if (touches_workspace(node))
				return true;
			if (node->kind == WNODE_INST && node->as.inst.kind != WOP_barrier &&
			    winst_shared_addr(&node->as.inst, NULL))
				break;
			if (node->kind == WNODE_LOOP)
				break;
		}
	return false;
}

static struct site_query *run_query(struct walker *walker, const struct winst *inst,
                                    const struct waddr *global)
{
	struct site_query *query = arena_new(walker->arena, struct site_query);

	site_surround(walker, query, inst->predicate);
	query->is_global = true;
	if (global) {
		query->access.bytes = (uint32_t)bytes_of(inst, global);
		query->address = site_lane_bytes(walker, query, site_global_bytes(walker, global));
	}
	site_count(query);
	return query;
}

static void count_global(struct walker *walker, const struct winst *inst,
                         const struct waddr *global)
{
	struct traffic *traffic = walker->traffic;
	const struct site_query *query;

	if (!expr_uses(global->offset, walker->program->tid))
		return;
	query = run_query(walker, inst, global);
	traffic->global_instructions += query->executions;
	traffic->global_sectors +=
		query->address ? query->sectors : query->executions * query->access.bytes;
	traffic->n_not_modelled += query->gave_up;
}

void traffic_visit(struct walker *walker, const struct wblock *block, uint32_t at)
{
	const struct winst *inst = &block->nodes.p[at]->as.inst;
	const struct waddr *global = global_addr(inst);

	if (global)
		count_global(walker, inst, global);
	else if (inst->kind == WOP_shfl_xor)
		walker->traffic->shuffles += run_query(walker, inst, NULL)->executions;
	else if (inst->kind == WOP_barrier && is_exchange(block, at))
		walker->traffic->barriers += run_query(walker, inst, NULL)->executions;
}

static void add_shared(const struct access_table *table, struct traffic *out)
{
	for (uint32_t i = 0; i < table->sites.n; i++) {
		const struct access_site *site = &table->sites.p[i];

		if (site->executions < 0 || site->wavefronts < 0) {
			out->n_not_modelled++;
			continue;
		}
		out->shared_instructions += site->executions;
		out->shared_wavefronts += site->wavefronts;
		out->wavefronts_open += site->wavefronts_max - site->wavefronts;
	}
}

/* Blocks that share an SM as far as threads allow. */
static double resident_blocks(const struct target *target, int64_t n_threads)
{
	int64_t n = target->threads_sm / n_threads;

	if (n > target->blocks_sm)
		n = target->blocks_sm;
	return n < 1 ? 1 : (double)n;
}

void traffic_count(const struct warp_program *program, const struct access_table *table,
                   struct arena *arena, struct traffic *out)
{
	struct access_table copy = *table;
	struct walker walker = { .program = program, .arena = arena, .table = &copy, .traffic = out };

	assert(program->n_threads > 0);
	*out = (struct traffic){ 0 };
	walker.values = arena_array(arena, int64_t, expr_n_vars(program->pool) + 1);
	add_shared(table, out);
	site_walk(&walker);
}

double traffic_cycles(const struct traffic *traffic, const struct target *target, int64_t n_threads)
{
	int64_t n_warps = (n_threads + 31) / 32;

	return (double)(traffic->shared_wavefronts + traffic->shared_instructions) +
	       (double)traffic->global_instructions * CYCLES_GLOBAL_ISSUE +
	       (double)traffic->global_sectors * CYCLES_SECTOR +
	       (double)traffic->shuffles * CYCLES_SHUFFLE +
	       (double)traffic->barriers / (double)n_warps * CYCLES_BARRIER_LATENCY /
	           resident_blocks(target, n_threads);
}
