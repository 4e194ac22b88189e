/*
 * Which thread of a block wrote an element of global memory last. Two that write one, with no
 * barrier between, leave one value or the other, unless what they store follows from the index.
 */
#include "analyzer/check/check_run_internal.h"

struct alike_visit {
	const struct run *run;
	struct span store_span;
	const struct stmt *store; /* that the instruction came from */
	bool differs;
	bool is_unknown; /* whether what threads have of their own differs */
};

struct other_visit {
	const struct var *var;
	bool found;
};

static bool is_of_block(const struct var *var)
{
	return var->kind == VAR_BLOCK || var->kind == VAR_SYMBOL || var->kind == VAR_PARAM;
}

static void visit_other(void *user, const struct expr *e)
{
	struct other_visit *visit = user;

	visit->found |= e->kind == EXPR_LOAD ||
	                (e->kind == EXPR_VAR && e->as.var != visit->var && !is_of_block(e->as.var));
}

/* Have threads of a block that store to one element the same value of the variable? */
static bool is_pinned(const struct alike_visit *visit, const struct var *var)
{
	const struct expr *rest;
	int64_t factor;

	for (uint32_t k = 0; k < visit->store->as.store.buffer->rank; k++) {
		const struct expr *index = visit->store->as.store.index[k];
		struct other_visit other = { var, false };
		expr_walk(index, visit_other, &other);
		if (!other.found && expr_linear_in(visit->run->check->pool, index, var, &factor, &rest) &&
		    factor != 0)
			return true;
	}
	return is_of_block(var);
}

/* Does the part of a stored value follow from the index alone, or from nothing of the thread? */
static void find_difference(struct alike_visit *visit, const struct expr *e)
{
	for (uint32_t k = 0; k < visit->store->as.store.buffer->rank; k++)
		if (e == visit->store->as.store.index[k])
			return;
	visit->is_unknown |= e->kind == EXPR_CALL ||
	                     (e->kind == EXPR_VAR && e->as.var->kind == VAR_LET) ||
	                     (e->kind == EXPR_LOAD &&
	                      (e->as.buffer->scope == SCOPE_LOCAL || e->as.buffer->scope == SCOPE_VAR));
	visit->differs |=
		e->kind == EXPR_VAR && e->as.var->kind != VAR_LET && !is_pinned(visit, e->as.var);
	for (uint32_t i = 0; i < e->n_args && !visit->differs; i++)
		find_difference(visit, e->args[i]);
}

static void visit_store(void *user, struct stmt *stmt)
{
	struct alike_visit *visit = user;

	if (stmt->kind == STMT_STORE && !visit->store && stmt->span.file == visit->store_span.file &&
	    stmt->span.begin == visit->store_span.begin)
		visit->store = stmt;
}

enum alike { ALIKE, ALIKE_UNKNOWN, ALIKE_NOT };

/* Do all threads that store to one element in this instruction store the same? */
static enum alike stores_alike(const struct run *run, const struct wnode *node)
{
	struct alike_visit visit = { .run = run, .store_span = node->span };

	if (node->as.inst.as.st.src.reg->is_uniform)
		return ALIKE;
	tile_walk((struct block *)(uintptr_t)&run->check->solution->launch->body, visit_store, &visit);
	if (!visit.store)
		return ALIKE_UNKNOWN;
	find_difference(&visit, visit.store->as.store.value);
	return visit.differs ? ALIKE_NOT : visit.is_unknown ? ALIKE_UNKNOWN : ALIKE;
}

/* Two threads of a block leave values in one element, in no order. */
void run_note_store(struct run *run, const struct wnode *node, const struct buffer *buffer,
                    int32_t thread, int64_t element)
{
	struct arena *arena = run->check->cx->arena;
	struct map_entry *entry =
		map_at(arena, &run->globals, (uint64_t)buffer->id << 44 | (uint64_t)element);
	struct global_write *write = entry->value.pointer;
	enum alike alike = ALIKE;

	if (!write)
		entry->value.pointer = write = arena_new(arena, struct global_write);
	else if (write->thread != thread &&
	         !run_is_ordered(run, write->thread, write->interval, thread))
		alike = write->node == node && write->step == run->n_steps ? stores_alike(run, node)
		                                                           : ALIKE_NOT;
	if (alike != ALIKE && check_is_told(run->check, PROPERTY_HAPPENS_BEFORE,
	                                    sym_text(run->check->cx->names, buffer->name))) {
		run->is_write_told = true;
	} else if (alike != ALIKE) {
		bool is_sure = write->is_sure && !run->is_unsure && alike == ALIKE_NOT;
		run->is_write_told = true;
		check_found(run->check,
		            (struct finding){ PROPERTY_HAPPENS_BEFORE,
		                              is_sure ? PROPERTY_VIOLATED : PROPERTY_NOT_PROVED, node->span,
		                              sym_text(run->check->cx->names, buffer->name) },
		            "%sthread %d writes element %lld without a barrier behind the write by thread "
		            "%d in line %u, which may leave another value",
		            is_sure || alike == ALIKE_UNKNOWN ? "" : "where data let both happen, ",
		            (int)thread, (long long)element, (int)write->thread,
		            source_line(&run->check->cx->sources, write->node->span));
	}
	*write = (struct global_write){ thread, run->interval, run->n_steps, node, !run->is_unsure };
}

/*
 * Do iterations of the loop write different elements of global memory, or the same ones alike? The
 * address moves by more than it varies inside an iteration, or not at all.
 */
bool run_store_is_apart(struct run *run, const struct waddr *addr, const struct shortened *loop)
{
	struct expr_pool *pool = run->check->pool;
	struct expr_subst fixed = { .on_load = NULL };
	const struct expr *moved =
		expr_sub(pool, expr_substitute(pool, addr->offset, &loop->shift), addr->offset);
	int64_t step, min, max;

	if (!expr_is_int(moved, &step))
		return false;
	for (int axis = 0; axis < 3; axis++) {
		const struct var *block = run->warp->block[axis];
		map_set(run->check->cx->arena, &fixed.of_var, block->id,
		        (void *)(uintptr_t)expr_int(pool, run->values[block->id]));
	}
	map_set(run->check->cx->arena, &fixed.of_var, loop->var->id,
	        (void *)(uintptr_t)expr_int(pool, 0));
	return step == 0 || (expr_range(expr_substitute(pool, addr->offset, &fixed), &min, &max) &&
	                     max - min < (step < 0 ? -step : step) / loop->period);
}
