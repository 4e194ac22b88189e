/*
 * The bank table: walks the warp program, sets up a query for every shared-memory instruction,
 * counts it (sites_count.c) and sums the rows by kernel line.
 *
 * The lanes' addresses are taken without the terms that are alike for all lanes and whole words: a
 * shift of all lanes by words turns the banks and changes no count. What is left is all that a loop
 * or block variable can do to the wavefronts, so that in a pipelined GEMM neither the block nor the
 * stage matters.
 */
#include "analyzer/banks/sites_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LOOPS = MAX_DIMS - 3, MAX_NAMED_LANES = 4 };

/* ---- what is known ---- */

struct known_check {
	const struct walker *walker;
	bool ok;
};

static void check_known(void *user, const struct expr *e)
{
	struct known_check *check = user;

	if (e->kind == EXPR_VAR && (e->as.var->kind == VAR_SYMBOL || e->as.var->kind == VAR_PARAM ||
	                            e->as.var->kind == VAR_LET))
		check->ok = false;
}

/* Can it be evaluated from blocks, threads and loops alone? */
static bool is_known(const struct walker *walker, const struct expr *e)
{
	struct known_check check = { walker, e->is_index };

	if (check.ok && e->var_mask)
		expr_walk(e, check_known, &check);
	return check.ok;
}

static bool is_grid_known(const struct warp_program *program)
{
	for (int i = 0; i < 3; i++)
		if (!expr_is_int(program->grid[i], NULL))
			return false;
	return true;
}

/* ---- setting up a query ---- */

static void add_dim(struct site_query *query, const struct var *var, int64_t extent)
{
	struct site_dim *dim = &query->dims[query->n_dims++];

	dim->var = var;
	dim->low = 0;
	dim->high = extent - 1;
}

static uint64_t dims_of(const struct site_query *query, const struct expr *e)
{
	uint64_t dims = 0;

	for (uint32_t i = 0; i < query->n_dims; i++)
		if (expr_uses(e, query->dims[i].var))
			dims |= 1ull << i;
	return dims;
}

/* Conjunctions are taken apart; what cannot be evaluated is taken to hold. */
static void add_condition(const struct walker *walker, struct site_query *query,
                          const struct expr *e, bool is_source)
{
	struct site_condition *condition;

	if (e->kind == EXPR_BINARY && e->as.binary == BIN_AND &&
	    query->n_conditions + 2 < MAX_CONDITIONS) {
		add_condition(walker, query, e->args[0], is_source);
		add_condition(walker, query, e->args[1], is_source);
		return;
	}
	if (!is_known(walker, e) || query->n_conditions == MAX_CONDITIONS)
		return;
	condition = &query->conditions[query->n_conditions++];
	condition->e = e;
	condition->code = expr_compile(walker->arena, e);
	condition->dims = dims_of(query, e);
	condition->is_source = is_source;
}

static void add_guards(const struct walker *walker, struct site_query *query)
{
	for (uint32_t i = 0; i < walker->guards.n; i++) {
		const struct guard *guard = &walker->guards.p[i];
		const struct expr *e = guard->e;
		if (guard->negated)
			e = expr_unary(walker->program->pool, UN_NOT, e);
		add_condition(walker, query, e, false);
	}
}

/* Blocks and loops; an extent that is no constant becomes a condition on its variable. */
static void add_dims(const struct walker *walker, struct site_query *query)
{
	const struct warp_program *program = walker->program;
	uint32_t n_loops = walker->loops.n < MAX_LOOPS ? walker->loops.n : MAX_LOOPS;

	for (int i = 0; i < 3; i++) {
		int64_t extent = 1;
		if (walker->table->counted_grid)
			(void)expr_is_int(program->grid[i], &extent);
		add_dim(query, program->block[i], extent);
	}
	for (uint32_t i = 0; i < n_loops; i++) {
		const struct wnode *node = walker->loops.p[i];
		int64_t extent = 1, min, max;
		if (is_known(walker, node->as.loop.extent) && expr_range(node->as.loop.extent, &min, &max))
			extent = max;
		add_dim(query, node->as.loop.var, extent);
	}
	for (uint32_t i = 0; i < n_loops; i++) {
		const struct wnode *node = walker->loops.p[i];
		if (!expr_is_int(node->as.loop.extent, NULL) && is_known(walker, node->as.loop.extent))
			add_condition(walker, query,
			              expr_lt(program->pool, expr_of_var(program->pool, node->as.loop.var),
			                      node->as.loop.extent),
			              false);
	}
}

/* The address without terms that shift all lanes alike by whole words. */
static const struct expr *without_shift(const struct warp_program *program, const struct expr *e)
{
	struct expr_pool *pool = program->pool;

	if (e->is_index && !expr_uses(e, program->tid))
		return expr_divisor(e) % 4 == 0 ? expr_int(pool, 0) : e;
	if (e->kind != EXPR_BINARY || e->type.kind != TYPE_INT)
		return e;
	if (e->as.binary == BIN_ADD || e->as.binary == BIN_SUB)
		return expr_binary(pool, e->as.binary, without_shift(program, e->args[0]),
		                   without_shift(program, e->args[1]));
	return e;
}

/* Compiles a per-lane address; NULL when it cannot be evaluated. */
static struct expr_code *compile_address(const struct walker *walker, struct site_query *query,
                                         const struct expr *bytes)
{
	const struct expr *rest = without_shift(walker->program, bytes);
	uint64_t dims;

	if (!is_known(walker, rest))
		return NULL;
	dims = dims_of(query, rest);
	for (uint32_t i = 0; i < query->n_dims; i++)
		if (dims >> i & 1)
			query->dims[i].moves_lanes = true;
	return expr_compile(walker->arena, rest);
}

/* The bank operation of an instruction on shared memory, and its name in the table. */
static void describe(const struct winst *inst, struct bank_access *access, struct access_site *site)
{
	const struct wop_info *info = wop_info(inst->kind);
	int64_t bytes = 0, n = 0;
	bool trans = false;

	switch (inst->kind) {
	case WOP_ld:
		access->op = BANK_LD;
		bytes = inst->as.ld.bytes;
		break;
	case WOP_st:
		access->op = BANK_ST;
		bytes = inst->as.st.bytes;
		break;
	case WOP_red:
		access->op = BANK_ATOMIC;
		bytes = inst->as.red.bytes;
		break;
	case WOP_cp_async:
		access->op = BANK_CP_ASYNC;
		bytes = inst->as.cp_async.bytes;
		break;
	case WOP_ldmatrix:
		access->op = BANK_LDMATRIX;
		n = inst->as.ldmatrix.n_matrices;
		trans = inst->as.ldmatrix.trans;
		break;
	case WOP_stmatrix:
		access->op = BANK_STMATRIX;
		n = inst->as.stmatrix.n_matrices;
		trans = inst->as.stmatrix.trans;
		break;
	case WOP_cp_async_commit:
	case WOP_cp_async_wait:
	case WOP_barrier:
	case WOP_barrier_part:
	case WOP_mma:
	case WOP_set:
	case WOP_shfl_xor:
	case WOP_wgmma:
	case WOP_wgmma_ra:
	case WOP_wgmma_fence:
	case WOP_wgmma_commit:
	case WOP_wgmma_wait:
	case WOP_fence_async:
	case WOP_mbar_init:
	case WOP_mbar_arrive:
	case WOP_mbar_expect:
	case WOP_mbar_wait:
	case WOP_mbar_copies:
	case WOP_tma_load:
	case WOP_shfl_up:
	case WOP_shfl_down:
	case WOP_shfl_idx:
	case N_WOP_KINDS:
		BUG("%s has no shared address of its lanes", info->text);
	}
	access->n_matrices = (uint32_t)n;
	access->bytes = n ? 16 : (uint32_t)bytes;
	site->bytes_per_thread = n ? 4 * n : bytes;
	if (n)
		snprintf(site->instruction, sizeof(site->instruction), "%s.x%" PRId64 "%s", info->text, n,
		         trans ? ".trans" : "");
	else
		snprintf(site->instruction, sizeof(site->instruction), "%s%s.%" PRId64, info->text,
		         inst->kind == WOP_cp_async ? "" : ".shared", bytes);
}

const struct expr *site_global_bytes(const struct walker *walker, const struct waddr *addr)
{
	uint32_t elem_bits = dtype_bits(addr->global->type);

	if (elem_bits % 8 == 0)
		return expr_mul_int(walker->program->pool, addr->offset, elem_bits / 8);
	return expr_div_int(walker->program->pool, addr->offset, 8 / elem_bits);
}

/* The terms of a sum in which the thread number stands. */
static const struct expr *lane_terms(const struct warp_program *program, const struct expr *e)
{
	struct expr_pool *pool = program->pool;

	if (!expr_uses(e, program->tid))
		return expr_int(pool, 0);
	if (e->kind != EXPR_BINARY || e->type.kind != TYPE_INT ||
	    (e->as.binary != BIN_ADD && e->as.binary != BIN_SUB))
		return e;
	return expr_binary(pool, e->as.binary, lane_terms(program, e->args[0]),
	                   lane_terms(program, e->args[1]));
}

struct expr_code *site_lane_bytes(const struct walker *walker, struct site_query *query,
                                  const struct expr *bytes)
{
	return compile_address(walker, query, lane_terms(walker->program, bytes));
}

/* The global side of cp.async through L1: bytes, and lanes that read nothing. */
static void add_source(const struct walker *walker, struct site_query *query,
                       const struct winst *inst)
{
	query->source =
		compile_address(walker, query, site_global_bytes(walker, &inst->as.cp_async.src));
	if (!query->source)
		query->address = NULL;
	if (inst->predicate)
		add_condition(walker, query, inst->predicate, true);
}

void site_surround(const struct walker *walker, struct site_query *query,
                   const struct expr *predicate)
{
	query->program = walker->program;
	query->values = walker->values;
	add_dims(walker, query);
	add_guards(walker, query);
	if (predicate)
		add_condition(walker, query, predicate, false);
}

static void set_up(const struct walker *walker, struct site_query *query, const struct winst *inst)
{
	bool through_l1 = inst->kind == WOP_cp_async && inst->as.cp_async.bytes < 16;

	site_surround(walker, query, inst->kind == WOP_cp_async ? NULL : inst->predicate);
	query->offset = winst_shared_addr(inst, NULL)->offset;
	query->address = compile_address(walker, query, query->offset);
	if (through_l1)
		add_source(walker, query, inst);
	if (walker->loops.n > MAX_LOOPS || (inst->kind == WOP_red && !wred_is_counted(&inst->as.red)))
		query->address = NULL;
}

/* ---- the reason ---- */

static uint32_t lanes_in_phase(const struct bank_access *access)
{
	if (access->op == BANK_ATOMIC || access->bytes <= 4)
		return 32;
	return access->bytes == 8 ? 16 : 8;
}

/* The lane's word that lies in the bank; -1: none. */
static int64_t word_in_bank(const struct bank_access *access, int64_t offset, int32_t bank)
{
	int64_t first = offset >> 2;
	uint32_t n_words = access->bytes <= 4 ? 1 : access->bytes / 4;

	for (uint32_t i = 0; i < n_words; i++)
		if (((first + i) & 31) == bank)
			return first + i;
	return -1;
}

/* The lanes from `first` on that meet in the bank, one a word (atomics: all); gives their number.
 */
static uint32_t lanes_that_meet(const struct bank_access *access, const int64_t *offsets,
                                uint32_t first, int32_t bank, uint32_t lanes[32])
{
	int64_t words[32];
	uint32_t n = 0;

	for (uint32_t lane = first; lane < first + lanes_in_phase(access); lane++) {
		int64_t word = word_in_bank(access, offsets[lane], bank);
		bool is_new = word >= 0 && access->mask >> lane & 1;
		for (uint32_t i = 0; i < n && access->op != BANK_ATOMIC; i++)
			is_new = is_new && words[i] != word;
		if (!is_new)
			continue;
		words[n] = word;
		lanes[n++] = lane;
	}
	return n;
}

/* "lanes 0, 1, 2, 3, ... of warp 0 meet in bank 0 at bytes 0, 128, 256, 384, ... of A_shared (8
 * ways)" */
static const char *explain(struct arena *arena, struct site_query *query, const char *buffer)
{
	struct site_worst *worst = &query->worst;
	bool in_source = worst->result.in_source;
	const int64_t *offsets = in_source ? worst->sources : worst->access.offsets;
	int32_t bank = (int32_t)(offsets[worst->result.lane_a] >> 2 & 31);
	uint32_t first = (uint32_t)worst->result.lane_a;
	uint32_t lanes[32], n;
	struct buf text = { 0 };
	const char *copy;

	if (worst->result.ways <= 1)
		return arena_printf(
			arena,
			"no lanes meet in a bank: %d lanes of warp %u are active, in more phases "
			"than their bytes need",
			__builtin_popcount(worst->access.mask), worst->warp);
	first -= first % lanes_in_phase(&worst->access);
	n = lanes_that_meet(&worst->access, offsets, first, bank, lanes);
	if (n > 1 && !in_source)
		worst->meet_bytes = offsets[lanes[1]] - offsets[lanes[0]];
	buf_text(&text, "lanes ");
	for (uint32_t i = 0; i < n && i < MAX_NAMED_LANES; i++)
		buf_printf(&text, "%s%u", i ? ", " : "", lanes[i]);
	buf_printf(&text, "%s of warp %u meet in bank %d at bytes ", n > MAX_NAMED_LANES ? ", ..." : "",
	           worst->warp, bank);
	for (uint32_t i = 0; i < n && i < MAX_NAMED_LANES; i++)
		buf_printf(&text, "%s%" PRId64, i ? ", " : "", offsets[lanes[i]]);
	buf_printf(&text, "%s of %s (%d ways)", n > MAX_NAMED_LANES ? ", ..." : "",
	           in_source ? "the source" : buffer, worst->result.ways);
	copy = arena_strndup(arena, buf_cstr(&text), text.n);
	buf_free(&text);
	return copy;
}

/* ---- rows ---- */

static struct access_site *find_row(const struct access_table *table, const struct access_site *key)
{
	for (uint32_t i = 0; i < table->sites.n; i++) {
		struct access_site *site = &table->sites.p[i];
		if (site->line == key->line && strcmp(site->buffer, key->buffer) == 0 &&
		    site->bytes_per_thread == key->bytes_per_thread &&
		    strcmp(site->instruction, key->instruction) == 0)
			return site;
	}
	return NULL;
}

static void add_counts(struct access_site *site, const struct site_query *query, const char *reason)
{
	bool modelled = site->wavefronts >= 0 && query->address && !query->gave_up;

	site->executions =
		query->gave_up || site->executions < 0 ? -1 : site->executions + query->executions;
	site->wavefronts = modelled ? site->wavefronts + query->wavefronts : -1;
	site->wavefronts_max = modelled ? site->wavefronts_max + query->wavefronts_max : -1;
	site->ideal = modelled ? site->ideal + query->ideal : -1;
	site->excess = modelled ? site->wavefronts - site->ideal : -1;
	if (query->ways > site->ways) {
		site->ways = query->ways;
		site->reason = reason ? reason : site->reason;
		site->meet_bytes = reason ? query->worst.meet_bytes : site->meet_bytes;
	}
	if (!site->reason) {
		site->reason = reason;
		site->meet_bytes = query->worst.meet_bytes;
	}
}

/* Adds to the row of the key's line, buffer and instruction. */
static void add_to_row(struct walker *walker, const struct access_site *key,
                       const struct site_query *query, const char *reason)
{
	struct access_site *site = find_row(walker->table, key);

	if (!site) {
		vec_push(walker->arena, &walker->table->sites, *key);
		site = &vec_last(&walker->table->sites);
	}
	add_counts(site, query, reason);
}

static struct access_site start_row(const struct walker *walker, const struct wnode *node,
                                    const struct waddr *addr)
{
	struct access_site key = { 0 };

	key.span = node->span;
	key.line = source_line(&walker->program->cx->sources, node->span);
	key.shared = addr->shared;
	key.buffer = sym_text(walker->program->cx->names,
	                      addr->shared->buffer ? addr->shared->buffer->name : addr->shared->name);
	return key;
}

/* How often warps execute the instruction: as for a word that all lanes read, which has one
 * wavefront. */
static struct site_query *count_executions(struct walker *walker, const struct wnode *node)
{
	enum { WORD_BYTES = 4 };
	struct site_query *query = arena_new(walker->arena, struct site_query);

	query->access = (struct bank_access){ .op = BANK_LD, .bytes = WORD_BYTES };
	site_surround(walker, query, node->as.inst.predicate);
	query->offset = expr_int(walker->program->pool, 0);
	query->address =
		walker->loops.n > MAX_LOOPS ? NULL : expr_compile(walker->arena, query->offset);
	site_count(query);
	return query;
}

/*
 * An operand of a warpgroup instruction: one execution a warp, wavefronts = ideal = bytes / 128 an
 * instruction.
 */
static void count_matrix(struct walker *walker, const struct wnode *node, const struct waddr *addr,
                         int64_t bytes)
{
	enum { WAVEFRONT_BYTES = 128 };
	struct site_query *query = count_executions(walker, node);
	struct access_site key = start_row(walker, node, addr);

	snprintf(key.instruction, sizeof(key.instruction), "wgmma");
	key.bytes_per_thread = bytes / WGMMA_THREADS;
	query->wavefronts = query->wavefronts_max = query->ideal =
		query->executions * bytes / (WGMMA_WARPS * WAVEFRONT_BYTES);
	add_to_row(walker, &key, query, NULL);
}

/*
 * A bulk copy: one thread's instruction, whose bytes do not pass through the memory unit that
 * counts wavefronts. Executions as for a matrix.
 */
static void count_tma(struct walker *walker, const struct wnode *node)
{
	const struct wop_tma_load *op = &node->as.inst.as.tma_load;
	int64_t n_elems = op->e0 * op->e1 * op->e2 * op->e3 * op->e4;
	struct site_query *query = count_executions(walker, node);
	struct access_site key = start_row(walker, node, &op->dst);

	snprintf(key.instruction, sizeof(key.instruction), "tma");
	key.bytes_per_thread = n_elems * (int64_t)dtype_bits(op->src.global->type) / 8;
	query->wavefronts = query->wavefronts_max = query->ideal = 0;
	add_to_row(walker, &key, query, NULL);
}

static void count_inst(struct walker *walker, const struct wnode *node)
{
	const struct winst *inst = &node->as.inst;
	const struct waddr *addr = winst_shared_addr(inst, NULL);
	struct access_site key = start_row(walker, node, addr);
	struct site_query *query = arena_new(walker->arena, struct site_query);
	struct winst_wgmma wgmma;

	if (winst_wgmma(inst, &wgmma)) {
		if (wgmma.a)
			count_matrix(walker, node, wgmma.a, WGMMA_M * WGMMA_K_BYTES);
		count_matrix(walker, node, wgmma.b, wgmma.n * WGMMA_K_BYTES);
		return;
	}
	if (inst->kind == WOP_tma_load) {
		count_tma(walker, node);
		return;
	}
	describe(inst, &query->access, &key);
	set_up(walker, query, inst);
	site_count(query);
	add_to_row(walker, &key, query,
	           query->has_excess ? explain(walker->arena, query, key.buffer) : NULL);
}

/* ---- the walk ---- */

static void walk_block(struct walker *walker, const struct wblock *block, bool count);

static void walk_guarded(struct walker *walker, const struct wblock *block, struct guard guard,
                         bool count)
{
	vec_push(walker->arena, &walker->guards, guard);
	walk_block(walker, block, count);
	(void)vec_pop(&walker->guards);
}

/* A shared access under counts that are not known? Only the first walk asks. */
static void check_counts(struct walker *walker, const struct winst *inst)
{
	bool is_masked = inst->predicate && inst->kind != WOP_cp_async;

	if (walker->n_whiles || walker->loops.n > MAX_LOOPS ||
	    (is_masked && !is_known(walker, inst->predicate)))
		walker->unknown_count = true;
	for (uint32_t i = 0; i < walker->loops.n; i++) {
		const struct expr *extent = walker->loops.p[i]->as.loop.extent;
		int64_t min, max;
		if (!is_known(walker, extent) || !expr_range(extent, &min, &max))
			walker->unknown_count = true;
	}
	for (uint32_t i = 0; i < walker->guards.n; i++)
		if (!is_known(walker, walker->guards.p[i].e))
			walker->unknown_count = true;
}

static void walk_node(struct walker *walker, const struct wnode *node, bool count)
{
	struct guard guard = { NULL, false };

	switch (node->kind) {
	case WNODE_INST:
		if (!winst_shared_addr(&node->as.inst, NULL) ||
		    (wop_is_mbarrier(node->as.inst.kind) && node->as.inst.kind != WOP_tma_load))
			return; /* barriers are no loads or stores */
		if (count)
			count_inst(walker, node);
		else
			check_counts(walker, &node->as.inst);
		return;
	case WNODE_LOOP:
		vec_push(walker->arena, &walker->loops, node);
		walk_block(walker, &node->as.loop.body, count);
		(void)vec_pop(&walker->loops);
		return;
	case WNODE_IF:
		guard.e = node->as.if_.condition;
		walk_guarded(walker, &node->as.if_.then, guard, count);
		guard.negated = true;
		walk_guarded(walker, &node->as.if_.otherwise, guard, count);
		return;
	case WNODE_WHILE:
		walker->n_whiles++;
		walk_block(walker, &node->as.while_.body, count);
		walker->n_whiles--;
		return;
	}
}

static void walk_block(struct walker *walker, const struct wblock *block, bool count)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		if (walker->traffic && block->nodes.p[i]->kind == WNODE_INST)
			traffic_visit(walker, block, i);
		else
			walk_node(walker, block->nodes.p[i], count);
	}
}

void site_walk(struct walker *walker)
{
	walk_block(walker, &walker->program->body, true);
}

/* Instructions that are never reached are no accesses. */
static void drop_unreached(struct access_table *table)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->sites.n; i++)
		if (table->sites.p[i].executions != 0)
			table->sites.p[n++] = table->sites.p[i];
	table->sites.n = n;
}

void access_table_count(const struct warp_program *program, struct arena *arena,
                        struct access_table *table)
{
	struct walker walker = { .program = program, .arena = arena, .table = table };

	assert(program->tid && program->block[0]);
	walker.values = arena_array(arena, int64_t, expr_n_vars(program->pool) + 1);
	walk_block(&walker, &program->body, false);
	table->counted_grid = is_grid_known(program) && !walker.unknown_count;
	walk_block(&walker, &program->body, true);
	drop_unreached(table);
}
