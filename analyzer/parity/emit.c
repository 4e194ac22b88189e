/* The walk over the statements, and what the emitters share: see emit.h. */
#include "analyzer/parity/emit.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- pieces ---- */

const struct expr *emit_expr(struct emitter *emitter, const struct expr *e)
{
	return e ? expr_substitute(emitter->infer->pool, e, &emitter->subst) : NULL;
}

struct wblock *emit_open(struct emitter *emitter, const struct var *var, const struct expr *extent)
{
	struct wloop_head head = { "i", extent, true, emitter->span };
	struct wnode *node = warp_add_loop(emitter->warp, emitter->block, head);
	struct wblock *outer = emitter->block;

	node->as.loop.var = var;
	emitter->block = &node->as.loop.body;
	return outer;
}

struct wblock *emit_open_new(struct emitter *emitter, int64_t extent, const struct var **var)
{
	struct pinfer *infer = emitter->infer;
	struct var *fresh =
		expr_new_var(infer->pool, VAR_LOOP, intern_text(infer->cx->names, "i"), DTYPE_I32);

	fresh->max = extent - 1;
	*var = fresh;
	return emit_open(emitter, fresh, expr_int(infer->pool, extent));
}

const struct wshared *emit_shared(struct emitter *emitter, const struct buffer *buffer)
{
	struct wshared **shared = &emitter->shared_of[buffer->id];

	if (!*shared) {
		*shared = warp_new_shared(emitter->warp, buffer->name, buffer->type);
		(*shared)->buffer = buffer;
		(*shared)->n_versions = 1;
	}
	return *shared;
}

const struct wshared *emit_workspace(struct emitter *emitter, const char *name, struct dtype type)
{
	struct wshared *shared =
		warp_new_shared(emitter->warp, intern_text(emitter->infer->cx->names, name), type);

	shared->n_versions = 1;
	return shared;
}

static struct winst *add_inst(struct emitter *emitter, enum wop_kind kind,
                              const struct expr *predicate)
{
	struct wnode *node = warp_add_inst(emitter->warp, emitter->block, kind, emitter->span);

	node->as.inst.predicate = predicate;
	return &node->as.inst;
}

/* An address in global memory from one in bytes. */
static struct waddr global_addr(struct emitter *emitter, const struct buffer *buffer,
                                const struct expr *bytes)
{
	struct expr_pool *pool = emitter->infer->pool;
	uint32_t bits = dtype_bits(buffer->type);

	return (struct waddr){ .space = WSPACE_GLOBAL,
		                   .global = buffer,
		                   .offset = bits >= 8 ? expr_div_int(pool, bytes, bits / 8)
		                                       : expr_mul_int(pool, bytes, 8 / bits) };
}

static struct waddr address_of(struct emitter *emitter, const struct emit_access *access,
                               int64_t at)
{
	const struct expr *bytes = expr_add_int(emitter->infer->pool, access->offset, at);

	if (!access->shared)
		return global_addr(emitter, access->global, bytes);
	return (struct waddr){ .space = WSPACE_SHARED, .shared = access->shared, .offset = bytes };
}

/* cp.async has 4, 8 and 16 bytes; it zeroes what the source has not. */
static bool emit_cp_async(struct emitter *emitter, const struct emit_access *access, int64_t at,
                          int64_t bytes)
{
	struct wblock *outer = emitter->block;
	struct winst *inst;

	if (!access->source || (bytes != 4 && bytes != 8 && bytes != 16))
		return false;
	if (access->predicate)
		emitter->block =
			&warp_add_if(emitter->warp, outer, access->predicate, emitter->span)->as.if_.then;
	inst = add_inst(emitter, WOP_cp_async, access->source_predicate);
	inst->as.cp_async.dst = address_of(emitter, access, at);
	inst->as.cp_async.src = global_addr(
		emitter, access->source, expr_add_int(emitter->infer->pool, access->source_offset, at));
	inst->as.cp_async.bytes = bytes;
	emitter->block = outer;
	return true;
}

void emit_access(struct emitter *emitter, const struct emit_access *access)
{
	for (int64_t at = 0; at < access->bytes; at += 16) {
		int64_t bytes = access->bytes - at < 16 ? access->bytes - at : 16;
		struct waddr addr = address_of(emitter, access, at);
		struct winst *inst;

		if (emit_cp_async(emitter, access, at, bytes))
			continue;
		inst = add_inst(emitter, access->is_store ? WOP_st : WOP_ld, access->predicate);
		if (access->is_store) {
			inst->as.st.dst = addr;
			inst->as.st.bytes = bytes;
		} else {
			inst->as.ld.src = addr;
			inst->as.ld.bytes = bytes;
		}
	}
}

void emit_matrix(struct emitter *emitter, const struct emit_access *access, int64_t n_matrices,
                 bool trans)
{
	struct waddr addr = { .space = WSPACE_SHARED,
		                  .shared = access->shared,
		                  .offset = access->offset };
	struct winst *inst =
		add_inst(emitter, access->is_store ? WOP_stmatrix : WOP_ldmatrix, access->predicate);

	if (access->is_store) {
		inst->as.stmatrix.dst = addr;
		inst->as.stmatrix.n_matrices = n_matrices;
		inst->as.stmatrix.trans = trans;
	} else {
		inst->as.ldmatrix.src = addr;
		inst->as.ldmatrix.n_matrices = n_matrices;
		inst->as.ldmatrix.trans = trans;
	}
}

/* ---- addresses ---- */

const struct expr *emit_offset(struct emitter *emitter, const struct buffer *buffer,
                               const struct expr *const *index)
{
	struct pinfer *infer = emitter->infer;
	const struct layout *layout = infer->state.shared[buffer->id];
	int64_t shape[MAX_RANK];

	if (!layout) {
		for (uint32_t d = 0; d < buffer->rank; d++)
			shape[d] = buffer_extent(buffer, d);
		layout = layout_row_major(infer->arena, buffer->rank, shape, dtype_bits(buffer->type), 0);
	}
	return layout_axis_expr(infer->pool, layout, AXIS_OFFSET, index, NULL);
}

const struct expr *emit_table(struct emitter *emitter, const int64_t *values, int64_t n,
                              const struct expr *at)
{
	struct expr_pool *pool = emitter->infer->pool;
	int64_t n_all = emitter->infer->n_threads * n;
	const struct int_table *table = expr_new_table(pool, values, (uint64_t)n_all);

	return expr_table(pool, table, expr_add(pool, expr_mul_int(pool, emitter->thread, n), at));
}

/* ---- the walk ---- */

static uint32_t op_of(const struct emitter *emitter, const struct stmt *stmt)
{
	uint32_t at = 0;

	while (at < emitter->infer->ops.n && emitter->infer->ops.p[at]->stmt != stmt)
		at++;
	return at;
}

static void emit_op(struct emitter *emitter, const struct stmt *stmt)
{
	uint32_t at = op_of(emitter, stmt);
	struct pop *op;

	if (at == emitter->infer->ops.n)
		return;
	op = emitter->infer->ops.p[at];
	emitter->span = stmt->span;
	emitter->infer->n_threads = op->n_threads;
	emitter->thread =
		expr_add_int(emitter->infer->pool, expr_of_var(emitter->infer->pool, emitter->warp->tid),
	                 -op->thread_min);
	emitter->thread_min = op->thread_min;
	switch (op->kind) {
	case POP_LOOP:
		emit_partitioned(emitter, at);
		break;
	case POP_ATOMIC:
		if (op->bulk_source)
			emit_barrier(emitter);
		else
			emit_partitioned(emitter, at);
		break;
	case POP_COPY:
		emit_copy(emitter, at);
		break;
	case POP_GEMM:
		emit_barrier(emitter);
		emit_gemm(emitter, op);
		break;
	case POP_REDUCE:
		emit_reduce(emitter, op);
		break;
	case POP_SCAN:
	case POP_OTHER:
		emit_barrier(emitter);
		break;
	}
}

static void emit_block(struct emitter *emitter, const struct block *block);

/*
 * A short loop without a barrier is unrolled by the compiler, and what the next iteration
 * overwrites is never stored.
 */
static void keep_last_stores(struct emitter *emitter, const struct var *var,
                             const struct expr *extent)
{
	enum { MAX_UNROLLED = 4 };
	struct expr_pool *pool = emitter->infer->pool;
	int64_t n;

	if (!expr_is_int(extent, &n) || n > MAX_UNROLLED || emitter->as_written)
		return;
	for (uint32_t i = 0; i < emitter->touches.n; i++) {
		const struct touch *touch = &emitter->touches.p[i];
		const struct expr *is_last =
			expr_binary(pool, BIN_EQ, expr_of_var(pool, var), expr_int(pool, n - 1));

		if (touch->is_write && touch->owner && touch->block == emitter->block)
			emit_guard_nodes(emitter, touch, is_last);
	}
}

void emit_guard_nodes(struct emitter *emitter, const struct touch *touch,
                      const struct expr *condition)
{
	struct expr_pool *pool = emitter->infer->pool;

	for (uint32_t i = touch->first; i < touch->last; i++) {
		struct wnode *node = touch->block->nodes.p[i];

		if (node->kind == WNODE_LOOP)
			node->as.loop.extent =
				expr_select(pool, condition, node->as.loop.extent, expr_int(pool, 0));
	}
}

/* What an iteration leaves without a barrier meets the next iteration's first accesses. */
static void rehearse(struct emitter *emitter, const struct block *body)
{
	struct wblock aside = { 0 }, *outer = emitter->block;

	emitter->block = arena_new(emitter->infer->arena, struct wblock);
	*emitter->block = aside;
	emitter->n_rehearsals++;
	emit_block(emitter, body);
	emitter->n_rehearsals--;
	emitter->block = outer;
}

static void emit_loop(struct emitter *emitter, const struct stmt *stmt)
{
	const struct loop *loop = &stmt->as.loop;
	struct wblock *outer;
	const struct expr *extent = emit_expr(emitter, loop->extents[0]);
	uint32_t n_barriers, n_outer = emitter->touches.n;
	struct touch *pending = arena_array(emitter->infer->arena, struct touch, n_outer + 1);

	emitter->span = stmt->span;
	if (n_outer > 0)
		memcpy(pending, emitter->touches.p, n_outer * sizeof(*pending));
	rehearse(emitter, &loop->body);
	n_barriers = emitter->n_barriers;
	outer = emit_open(emitter, loop->vars[0], extent);
	emit_block(emitter, &loop->body);
	if (n_barriers == emitter->n_barriers)
		keep_last_stores(emitter, loop->vars[0], extent);
	else /* a barrier in a loop's body is none for what follows the loop */
		for (uint32_t i = 0; i < n_outer; i++)
			vec_push(emitter->infer->arena, &emitter->touches, pending[i]);
	emitter->block = outer;
}

static void emit_if(struct emitter *emitter, const struct stmt *stmt)
{
	struct wblock *outer = emitter->block;
	struct wnode *node =
		warp_add_if(emitter->warp, outer, emit_expr(emitter, stmt->as.if_.condition), stmt->span);

	emitter->block = &node->as.if_.then;
	emit_block(emitter, &stmt->as.if_.then);
	emitter->block = &node->as.if_.otherwise;
	emit_block(emitter, &stmt->as.if_.otherwise);
	emitter->block = outer;
}

static void emit_block(struct emitter *emitter, const struct block *block)
{
	for (uint32_t i = 0; i < block->stmts.n; i++) {
		const struct stmt *stmt = block->stmts.p[i];

		switch (stmt->kind) {
		case STMT_OP:
			emit_op(emitter, stmt);
			break;
		case STMT_LOOP:
			if (stmt->as.loop.kind == LOOP_PARALLEL)
				emit_op(emitter, stmt);
			else
				emit_loop(emitter, stmt);
			break;
		case STMT_IF:
			emit_if(emitter, stmt);
			break;
		case STMT_LET:
			map_set(emitter->infer->arena, &emitter->subst.of_var, stmt->as.let.var->id,
			        (void *)(uintptr_t)emit_expr(emitter, stmt->as.let.value));
			break;
		case STMT_WHILE:
			emit_block(emitter, &stmt->as.while_.body);
			break;
		case STMT_STORE:
		case STMT_SYNC:
			emit_barrier(emitter);
			break;
		case STMT_BREAK:
		case STMT_CONTINUE:
			break;
		}
	}
}

/* The kernel's thread numbers in terms of the flat one. */
static void set_threads(struct emitter *emitter)
{
	const struct launch *launch = emitter->infer->launch;
	struct expr_pool *pool = emitter->infer->pool;
	const struct expr *rest = expr_of_var(pool, emitter->warp->tid);

	for (int axis = 0; axis < 3; axis++) {
		const struct expr *own = expr_mod_int(pool, rest, launch->threads[axis]);

		if (launch->thread[axis])
			map_set(emitter->infer->arena, &emitter->subst.of_var, launch->thread[axis]->id,
			        (void *)(uintptr_t)own);
		rest = expr_div_int(pool, rest, launch->threads[axis]);
	}
}

/* ---- the table ---- */

/* Copies of TMA are no instructions of the threads, but their sectors are moved all the same. */
static void take_bulk_rows(const struct emitter *emitter, const struct access_table *table,
                           struct traffic *out)
{
	int64_t n_warps = (emitter->warp->n_threads + 31) / 32;

	for (uint32_t i = 0; i < table->sites.n; i++) {
		const struct access_site *site = &table->sites.p[i];

		for (uint32_t j = 0; j < emitter->bulks.n; j++)
			if (emitter->bulks.p[j].shared == site->shared && site->executions > 0) {
				out->global_sectors += site->executions / n_warps * emitter->bulks.p[j].bytes / 32;
				out->shared_instructions -= site->executions;
				out->shared_wavefronts -= site->wavefronts;
			}
	}
}

static const struct marker *marker_of(const struct emitter *emitter, const struct access_site *site)
{
	for (uint32_t i = 0; i < emitter->markers.n; i++)
		if (emitter->markers.p[i].shared == site->shared)
			return &emitter->markers.p[i];
	return NULL;
}

/* Rows of markers become rows of wgmma: bytes / 128 wavefronts for four warps' executions. */
static void finish_rows(struct emitter *emitter, struct access_table *table)
{
	for (uint32_t i = 0; i < table->sites.n; i++) {
		struct access_site *site = &table->sites.p[i];
		const struct marker *marker = marker_of(emitter, site);

		if (!marker)
			continue;
		site->buffer = sym_text(emitter->infer->cx->names, marker->buffer->name);
		site->shared = emit_shared(emitter, marker->buffer);
		snprintf(site->instruction, sizeof(site->instruction), "wgmma");
		site->bytes_per_thread = marker->bytes / 128;
		site->wavefronts = site->executions * marker->bytes / (4 * 128);
		site->wavefronts_max = site->ideal = site->wavefronts;
		site->excess = 0;
		site->ways = 1;
	}
}

/* What is read from memory, where a value is assumed. */
static const struct expr *assumed_load(void *user, const struct expr *load)
{
	const struct emitter *emitter = user;
	const struct assumed_data *assumed = emitter->assumed;

	if (load->type.kind == TYPE_BOOL && assumed->has_bool)
		return expr_bool(emitter->infer->pool, assumed->bool_value);
	if ((load->type.kind == TYPE_INT || load->type.kind == TYPE_UINT) && assumed->has_int)
		return expr_int_typed(emitter->infer->pool, load->type, assumed->int_value);
	return NULL;
}

/* The warp program that is counted, and its table. */
static void run_emitter(struct emitter *emitter, struct access_table *table)
{
	struct pinfer *infer = emitter->infer;

	emitter->warp = warp_new(infer->cx, infer->pool, infer->program->name);
	emitter->warp->tile = infer->program;
	emitter->warp->launch = infer->launch;
	memcpy(emitter->warp->block, infer->launch->block, sizeof(emitter->warp->block));
	warp_set_launch(emitter->warp, launch_n_threads(infer->launch), infer->launch->grid);
	emitter->block = &emitter->warp->body;
	emitter->waits = arena_array(infer->arena, bool, infer->program->n_stmts + 1);
	emitter->shared_of = arena_array(infer->arena, struct wshared *, infer->program->buffers.n);
	emitter->subst.on_load = assumed_load;
	emitter->subst.user = emitter;
	set_threads(emitter);
	emit_block(emitter, &infer->launch->body);
	access_table_count(emitter->warp, infer->arena, table);
	finish_rows(emitter, table);
}

void parity_accesses(struct parity *parity, const struct assumed_data *assumed)
{
	struct emitter emitter = { .infer = parity->model,
		                       .schedule = parity->schedule,
		                       .assumed = assumed };

	if (parity->solution->status != SOLVE_CONFLICT)
		run_emitter(&emitter, &parity->accesses);
}

bool parity_traffic(const struct parity *parity, struct traffic *out)
{
	static const struct assumed_data nothing = { 0 };
	struct schedule scratch = *parity->schedule;
	struct emitter emitter = {
		.infer = parity->model, .schedule = &scratch, .assumed = &nothing, .as_written = true
	};
	struct access_table table = { 0 };

	*out = (struct traffic){ 0 };
	if (parity->solution->status == SOLVE_CONFLICT)
		return false;
	run_emitter(&emitter, &table);
	traffic_count(emitter.warp, &table, emitter.infer->arena, out);
	take_bulk_rows(&emitter, &table, out);
	return table.counted_grid;
}
