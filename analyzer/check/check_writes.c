/*
 * happens-before of what blocks write: no two blocks of a grid, which nothing orders, leave
 * different values in one element of a tensor.
 *
 *     T.copy(f, C[bx * 32, 0])         a tile of 64 rows: blocks 0 and 1 both write C[32, 0]
 *
 * First an axis of the grid is sought out of the indices: where, in some dimension, the index is
 * D(b) + rest, the same D for all that write the tensor, and rest takes fewer values than
 * D's steps, D tells which block wrote an element; so do several dimensions together (b // 8 and
 * b % 8). Axes that are found are the same for both blocks, and drop out of the rest. Where an axis
 * is not found, elements are enumerated: of all blocks when there are few, else of the first ones,
 * which can show a violation only. Stores of a value that has nothing of the axis are alike.
 */
#include "analyzer/check/check_internal.h"

#include "analyzer/layout/place_map.h"
#include "analyzer/tile/alias.h"

#include <inttypes.h>
#include <string.h>

enum {
	MAX_AROUND = 96,
	MAX_BLOCKS = 1 << 16,
	MAX_ELEMS = 1 << 19,
	MAX_TENSOR = 1 << 25,
	MAX_ROUNDS = 64
};

enum around_kind { AROUND_VAR, AROUND_CONDITION };
struct around {
	enum around_kind kind;
	const struct var *var;
	const struct expr *e; /* extent, condition */
	bool holds;
};

/* A statement that writes a tensor: an element, or a region of `extent`. */
struct site {
	const struct stmt *stmt, *parallel;
	const struct buffer *buffer;
	const struct expr *index[MAX_RANK]; /* names put in */
	int64_t extent[MAX_RANK];
	bool is_tainted[3]; /* by axis: what it stores, or whether, differs between blocks */
	uint32_t n_around;
	struct around *around;
};

struct writes {
	struct check *check;
	const struct launch *launch;
	struct arena *scratch;
	struct expr_pool *pool;
	struct around around[MAX_AROUND];
	uint32_t n_around;
	bool too_deep;
	const struct stmt *parallel;
	struct expr_subst lets;
	bool *tainted[3]; /* by axis, by buffer id: its values may differ between blocks */
	bool moved;
	bool is_collecting; /* else taint spreads */
	vec_of(struct site) sites;
	int64_t grid[3];
	bool found[3]; /* axes that the indices of the tensor tell */
	int64_t *values;
};

/* ---- which values differ between blocks ---- */

struct taint_visit {
	const struct writes *w;
	int axis;
	bool found;
};

static void visit_taint(void *user, const struct expr *e)
{
	struct taint_visit *visit = user;

	visit->found |=
		(e->kind == EXPR_VAR && e->as.var == visit->w->launch->block[visit->axis]) ||
		e->kind == EXPR_CALL ||
		(e->kind == EXPR_LOAD && visit->w->tainted[visit->axis][alias_owner(e->as.buffer)->id]);
}

static bool is_tainted(struct writes *w, const struct expr *e, int axis)
{
	struct taint_visit visit = { w, axis, false };

	if (e)
		expr_walk(expr_substitute(w->pool, e, &w->lets), visit_taint, &visit);
	return visit.found;
}

static bool around_is_tainted(struct writes *w, int axis)
{
	for (uint32_t i = 0; i < w->n_around; i++)
		if (w->around[i].kind == AROUND_CONDITION || w->around[i].e)
			if (is_tainted(w, w->around[i].e, axis))
				return true;
	return false;
}

static void taint(struct writes *w, const struct buffer *buffer, int axis)
{
	bool *tainted = &w->tainted[axis][alias_owner(buffer)->id];

	w->moved |= !*tainted;
	*tainted = true;
}

static bool region_is_tainted(struct writes *w, const struct region *region, int axis)
{
	bool found = w->tainted[axis][alias_owner(region->buffer)->id];

	for (uint32_t k = 0; k < region->buffer->rank; k++)
		found |= is_tainted(w, region->min[k], axis);
	return found;
}

/* Does the operation read something that differs along the axis? Expressions count as such. */
static bool op_is_tainted(struct writes *w, struct op *op, int axis)
{
	const struct op_info *info = op_info(op->kind);
	enum operand_role role;
	struct region *region;
	bool found = around_is_tainted(w, axis);

	for (uint32_t i = 0; (region = op_region(op, i, &role)) != NULL; i++)
		found |= region->buffer && role != ROLE_WRITE && region_is_tainted(w, region, axis);
	for (uint32_t i = 0; i < info->n_operands; i++)
		if (info->operands[i].role == ROLE_EXPR)
			found |= is_tainted(
				w, *(const struct expr *const *)((const char *)&op->as + info->operands[i].offset),
				axis);
	return found;
}

/* ---- collecting ---- */

static struct site *add_site(struct writes *w, const struct stmt *stmt, const struct buffer *buffer,
                             const struct expr *const *index)
{
	struct site site = { .stmt = stmt, .parallel = w->parallel, .buffer = buffer };

	site.n_around = w->n_around;
	site.around = arena_array(w->scratch, struct around, w->n_around + 1);
	memcpy(site.around, w->around, w->n_around * sizeof *site.around);
	for (uint32_t k = 0; k < buffer->rank; k++) {
		site.index[k] = expr_substitute(w->pool, index[k], &w->lets);
		site.extent[k] = 1;
	}
	vec_push(w->scratch, &w->sites, site);
	return &vec_last(&w->sites);
}

static void meet_op(struct writes *w, struct stmt *stmt)
{
	struct op *op = &stmt->as.op;
	enum operand_role role;
	struct region *region;

	for (uint32_t i = 0; (region = op_region(op, i, &role)) != NULL; i++) {
		if (!region->buffer || role == ROLE_READ)
			continue;
		for (int axis = 0; axis < 3; axis++)
			if (op_is_tainted(w, op, axis))
				taint(w, region->buffer, axis);
		if (!w->is_collecting || region->buffer->scope != SCOPE_GLOBAL)
			continue;
		struct site *site = add_site(w, stmt, region->buffer, region->min);
		memcpy(site->extent, region->extent, sizeof site->extent);
		for (int axis = 0; axis < 3; axis++)
			site->is_tainted[axis] = op_is_tainted(w, op, axis);
	}
}

static void meet_store(struct writes *w, struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer;
	struct site *site = NULL;

	if (w->is_collecting && buffer->scope == SCOPE_GLOBAL && stmt->as.store.atomic == ATOMIC_NONE)
		site = add_site(w, stmt, buffer, stmt->as.store.index);
	for (int axis = 0; axis < 3; axis++) {
		bool found = is_tainted(w, stmt->as.store.value, axis) || around_is_tainted(w, axis);
		for (uint32_t k = 0; k < buffer->rank && buffer->scope != SCOPE_GLOBAL; k++)
			found |= is_tainted(w, stmt->as.store.index[k], axis);
		if (found)
			taint(w, buffer, axis);
		if (site)
			site->is_tainted[axis] = found;
	}
}

static void push_around(struct writes *w, struct around item)
{
	if (w->n_around == MAX_AROUND)
		w->too_deep = true;
	else
		w->around[w->n_around++] = item;
}

static void meet_block(struct writes *w, const struct block *block);

static void meet_condition(struct writes *w, const struct expr *condition, bool holds,
                           const struct block *block)
{
	uint32_t n_around = w->n_around;

	push_around(w, (struct around){ AROUND_CONDITION, NULL,
	                                expr_substitute(w->pool, condition, &w->lets), holds });
	meet_block(w, block);
	w->n_around = n_around;
}

static void meet_loop(struct writes *w, const struct stmt *stmt)
{
	const struct loop *loop = &stmt->as.loop;
	const struct stmt *outer = w->parallel;
	uint32_t n_around = w->n_around;

	for (uint32_t k = 0; k < loop->n_vars; k++)
		push_around(w,
		            (struct around){ AROUND_VAR, loop->vars[k],
		                             expr_substitute(w->pool, loop->extents[k], &w->lets), true });
	if (loop->kind == LOOP_PARALLEL)
		w->parallel = stmt;
	meet_block(w, &loop->body);
	w->parallel = outer;
	w->n_around = n_around;
}

static void meet_stmt(struct writes *w, struct stmt *stmt)
{
	const struct expr *value;

	switch (stmt->kind) {
	case STMT_OP:
		meet_op(w, stmt);
		break;
	case STMT_LOOP:
		meet_loop(w, stmt);
		break;
	case STMT_IF:
		meet_condition(w, stmt->as.if_.condition, true, &stmt->as.if_.then);
		meet_condition(w, stmt->as.if_.condition, false, &stmt->as.if_.otherwise);
		break;
	case STMT_WHILE:
		meet_condition(w, stmt->as.while_.condition, true, &stmt->as.while_.body);
		break;
	case STMT_LET:
		value = expr_substitute(w->pool, stmt->as.let.value, &w->lets);
		map_set(w->scratch, &w->lets.of_var, stmt->as.let.var->id, (void *)(uintptr_t)value);
		break;
	case STMT_STORE:
		meet_store(w, stmt);
		break;
	case STMT_SYNC:
	case STMT_BREAK: /* a staged launch has none */
	case STMT_CONTINUE:
		break;
	}
}

static void meet_block(struct writes *w, const struct block *block)
{
	for (uint32_t i = 0; i < block->stmts.n; i++)
		meet_stmt(w, block->stmts.p[i]);
}

/* ---- finding an axis in the indices ---- */

static const struct expr *without(struct writes *w, const struct expr *e, const struct var *var)
{
	struct expr_subst zero = { .on_load = NULL };

	map_set(w->scratch, &zero.of_var, var->id, (void *)(uintptr_t)expr_int(w->pool, 0));
	return expr_substitute(w->pool, e, &zero);
}

struct only_visit {
	const struct writes *w;
	const struct var *var; /* NULL: any block */
	bool other;
};

static void visit_only(void *user, const struct expr *e)
{
	struct only_visit *visit = user;

	if (e->kind == EXPR_VAR)
		visit->other |= visit->var ? e->as.var != visit->var : e->as.var->kind != VAR_BLOCK;
}

/* Has the expression no variable but this one (NULL: but blocks)? */
static bool uses_only(const struct writes *w, const struct expr *e, const struct var *var)
{
	struct only_visit visit = { w, var, false };

	expr_walk(e, visit_only, &visit);
	return e->is_index && !visit.other;
}

/* What a dimension tells of an axis. */
struct clue {
	const struct expr *steps; /* D, of the axis alone */
	int64_t unit;             /* that divides D's values; the rest takes fewer values */
	bool is_linear;           /* each block has another value of D */
};

static int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t t = a % b;
		a = b;
		b = t;
	}
	return a < 0 ? -a : a;
}

static bool find_clue(struct writes *w, const struct buffer *buffer, int axis, uint32_t dim,
                      struct clue *clue)
{
	const struct var *var = w->launch->block[axis];
	const struct expr *constant;
	int64_t low = INT64_MAX, high = INT64_MIN, min, max;

	*clue = (struct clue){ NULL, 0, false };
	for (uint32_t s = 0; s < w->sites.n; s++) {
		const struct site *site = &w->sites.p[s];
		if (site->buffer != buffer)
			continue;
		const struct expr *rest = without(w, site->index[dim], var);
		const struct expr *steps = expr_sub(w->pool, site->index[dim], rest);
		if (!site->index[dim]->is_index || !uses_only(w, steps, var) ||
		    (clue->steps && clue->steps != steps))
			return false;
		clue->steps = steps;
		for (int k = 0; k < 3; k++)
			if (w->found[k]) {
				const struct expr *less = without(w, rest, w->launch->block[k]);
				if (uses_only(w, expr_sub(w->pool, rest, less), NULL))
					rest = less;
			}
		if (!expr_range(rest, &min, &max))
			return false;
		low = min < low ? min : low;
		high = max + site->extent[dim] - 1 > high ? max + site->extent[dim] - 1 : high;
	}
	clue->is_linear = expr_linear_in(w->pool, clue->steps, var, &clue->unit, &constant) &&
	                  expr_is_int(constant, NULL) && clue->unit != 0;
	if (clue->is_linear)
		return gcd(clue->unit, 0) > high - low;
	if (w->grid[axis] > MAX_BLOCKS)
		return false;
	clue->unit = 0;
	for (int64_t b = 0; b < w->grid[axis]; b++) {
		w->values[var->id] = b;
		clue->unit = gcd(clue->unit, expr_eval_int(clue->steps, w->values));
	}
	return clue->unit > high - low;
}

/* Do the dimensions tell which block along the axis wrote an element? */
static bool find_axis(struct writes *w, const struct buffer *buffer, int axis)
{
	struct clue clues[MAX_RANK];
	struct map seen = { 0 };
	uint32_t n = 0;

	for (uint32_t dim = 0; dim < buffer->rank; dim++) {
		n += find_clue(w, buffer, axis, dim, &clues[n]);
		if (n && clues[n - 1].is_linear)
			return true;
	}
	for (int64_t b = 0; b < w->grid[axis] && n; b++) {
		int64_t key = 0, step;
		w->values[w->launch->block[axis]->id] = b;
		for (uint32_t i = 0; i < n; i++) {
			step = expr_eval_int(clues[i].steps, w->values) / clues[i].unit;
			if (__builtin_mul_overflow(key, (int64_t)1 << 20, &key) || step < 0 || step >> 20)
				return false;
			key += step;
		}
		if (map_find(&seen, (uint64_t)key))
			return false;
		map_set(w->scratch, &seen, (uint64_t)key, w);
	}
	return n > 0;
}

/* Does only one block along the axis, the same for all statements, get to them? */
static bool is_one_block(struct writes *w, const struct buffer *buffer, int axis)
{
	const struct var *var = w->launch->block[axis];
	int64_t the_block = -1;

	for (int64_t b = 0; b < w->grid[axis] && b < MAX_BLOCKS; b++)
		for (uint32_t s = 0; s < w->sites.n; s++) {
			const struct site *site = &w->sites.p[s];
			bool gets_there = site->buffer == buffer;
			w->values[var->id] = b;
			for (uint32_t i = 0; i < site->n_around && gets_there; i++)
				if (site->around[i].kind == AROUND_CONDITION &&
				    uses_only(w, site->around[i].e, var))
					gets_there =
						(expr_eval_int(site->around[i].e, w->values) != 0) == site->around[i].holds;
			if (gets_there && the_block >= 0 && the_block != b)
				return false;
			if (gets_there)
				the_block = b;
		}
	return w->grid[axis] <= MAX_BLOCKS;
}

/* Axes along which blocks are told apart, one after the other. */
static void find_axes(struct writes *w, const struct buffer *buffer)
{
	for (bool moved = true; moved;) {
		moved = false;
		for (int axis = 0; axis < 3; axis++) {
			if (w->found[axis])
				continue;
			w->found[axis] = find_axis(w, buffer, axis) || is_one_block(w, buffer, axis);
			moved |= w->found[axis];
		}
	}
}

/* ---- enumerating elements ---- */

struct writer {
	const struct site *site;
	int64_t block[3];
	bool is_sure;
};

struct search {
	struct writes *w;
	const struct buffer *buffer;
	const struct site *site;
	struct writer **elements; /* who wrote each unit last */
	int64_t unit[MAX_RANK];   /* that all regions consist of, from multiples of it on */
	struct writer *now;
	int64_t limit[3]; /* blocks that are looked at, by axis */
	int64_t n_elems;
	bool is_unsure; /* something was not decided, or left out */
	struct writer first, second;
	int64_t element[MAX_RANK];
	bool is_hit;
};

static bool may_differ(const struct search *search, const struct writer *a, const struct writer *b)
{
	for (int axis = 0; axis < 3; axis++)
		if (a->block[axis] != b->block[axis] &&
		    (a->site != b->site || a->site->is_tainted[axis] || search->w->found[axis]))
			return true;
	return false;
}

static void meet_element(struct search *search, const int64_t *index)
{
	struct writer *before;
	int64_t at = 0;

	for (uint32_t k = 0; k < search->buffer->rank; k++) {
		int64_t extent = buffer_extent(search->buffer, k);
		if (index[k] < 0 || index[k] >= extent)
			return;
		at = at * ((extent + search->unit[k] - 1) / search->unit[k]) + index[k] / search->unit[k];
	}
	before = search->elements[at];
	search->elements[at] = search->now;
	if (!before || !may_differ(search, before, search->now))
		return;
	if (!search->now->is_sure || !before->is_sure) {
		search->is_unsure = true;
		return;
	}
	search->is_hit = true;
	search->first = *before;
	search->second = *search->now;
	memcpy(search->element, index, search->buffer->rank * sizeof *index);
}

/* The block and statement that write now: one record as long as they stay the same. */
static void note_writer(struct search *search, bool is_sure)
{
	const struct writes *w = search->w;
	struct writer now = { .site = search->site, .is_sure = is_sure };

	for (int k = 0; k < 3; k++)
		now.block[k] = w->values[w->launch->block[k]->id];
	if (search->now && search->now->site == now.site && search->now->is_sure == now.is_sure &&
	    memcmp(search->now->block, now.block, sizeof now.block) == 0)
		return;
	search->now = arena_new(w->scratch, struct writer);
	*search->now = now;
}

static void meet_region(struct search *search, bool is_sure)
{
	const struct site *site = search->site;
	uint32_t rank = site->buffer->rank;
	int64_t min[MAX_RANK], index[MAX_RANK];

	for (uint32_t k = 0; k < rank; k++)
		index[k] = min[k] = expr_eval_int(site->index[k], search->w->values);
	note_writer(search, is_sure);
	for (bool more = true; more && !search->is_hit;) {
		if (++search->n_elems > MAX_ELEMS)
			return;
		meet_element(search, index);
		more = false;
		for (uint32_t k = rank; k-- > 0 && !more;) {
			index[k] += search->unit[k];
			more = index[k] < min[k] + site->extent[k];
			if (!more)
				index[k] = min[k];
		}
	}
}

static bool is_over(const struct search *search)
{
	return search->is_hit || search->n_elems > MAX_ELEMS;
}

/* Has anything that decides where and whether it writes the variable? Blocks always count. */
static bool is_used(const struct site *site, const struct var *var)
{
	bool used = var->kind == VAR_BLOCK;

	for (uint32_t k = 0; k < site->buffer->rank; k++)
		used |= expr_uses(site->index[k], var);
	for (uint32_t i = 0; i < site->n_around; i++)
		used |= site->around[i].e && expr_uses(site->around[i].e, var);
	return used;
}

static void enumerate(struct search *search, uint32_t at, bool is_sure)
{
	struct writes *w = search->w;
	const struct around *item = &search->site->around[at];
	int64_t n = 1, min, max;

	if (at == search->site->n_around) {
		meet_region(search, is_sure);
		return;
	}
	if (item->kind == AROUND_CONDITION) {
		if (!item->e->is_index)
			is_sure = false;
		else if ((expr_eval_int(item->e, w->values) != 0) != item->holds)
			return;
		enumerate(search, at + 1, is_sure);
		return;
	}
	if (item->e->is_index) {
		n = expr_eval_int(item->e, w->values);
	} else {
		expr_bounds(item->e, &min, &max);
		is_sure &= min > 0;
		search->is_unsure = true;
	}
	if (n > 1 && !is_used(search->site, item->var))
		n = 1;
	for (int k = 0; k < 3; k++)
		if (item->var == w->launch->block[k] && n > search->limit[k]) {
			n = search->limit[k];
			search->is_unsure = true;
		}
	for (int64_t value = 0; value < n && !is_over(search); value++) {
		w->values[item->var->id] = value;
		enumerate(search, at + 1, is_sure);
	}
}

struct symbol_visit {
	bool found;
};

static void visit_symbol(void *user, const struct expr *e)
{
	struct symbol_visit *visit = user;

	visit->found |=
		e->kind == EXPR_VAR && (e->as.var->kind == VAR_SYMBOL || e->as.var->kind == VAR_PARAM);
}

/* Are all indices and conditions of the statement computable from blocks, threads and loops? */
static bool is_computable(const struct site *site)
{
	struct symbol_visit visit = { false };

	for (uint32_t k = 0; k < site->buffer->rank; k++) {
		visit.found |= !site->index[k]->is_index || buffer_extent(site->buffer, k) < 0;
		expr_walk(site->index[k], visit_symbol, &visit);
	}
	for (uint32_t i = 0; i < site->n_around; i++)
		if (site->around[i].e)
			expr_walk(site->around[i].e, visit_symbol, &visit);
	return !visit.found;
}

static void search_sites(struct search *search)
{
	for (uint32_t s = 0; s < search->w->sites.n && !is_over(search); s++) {
		const struct site *site = &search->w->sites.p[s];
		if (site->buffer != search->buffer)
			continue;
		search->site = site;
		if (is_computable(site))
			enumerate(search, 0, true);
		else
			search->is_unsure = true;
	}
	search->is_unsure |= search->n_elems > MAX_ELEMS;
}

/* Sets the units; their number, -1: the tensor's size is not known. */
static int64_t n_units(struct search *search)
{
	const struct writes *w = search->w;
	int64_t n = 1;

	if (buffer_n_elems(search->buffer) < 1)
		return -1;
	for (uint32_t k = 0; k < search->buffer->rank; k++) {
		int64_t extent = buffer_extent(search->buffer, k);
		search->unit[k] = 0;
		for (uint32_t s = 0; s < w->sites.n; s++) {
			const struct site *site = &w->sites.p[s];
			if (site->buffer == search->buffer && site->index[k]->is_index)
				search->unit[k] =
					gcd(gcd(search->unit[k], site->extent[k]), expr_divisor(site->index[k]));
		}
		search->unit[k] = search->unit[k] ? search->unit[k] : 1;
		n *= (extent + search->unit[k] - 1) / search->unit[k];
	}
	return n;
}

/* All blocks, and when these are too many, the first along the axes that are not found. */
static void search_blocks(struct search *search)
{
	int64_t n_elems = n_units(search);

	if (n_elems < 1 || n_elems > MAX_TENSOR) {
		search->is_unsure = true;
		return;
	}
	search->elements = arena_array(search->w->scratch, struct writer *, (size_t)n_elems);
	for (int k = 0; k < 3; k++)
		search->limit[k] = INT64_MAX;
	search_sites(search);
	if (search->is_hit || search->n_elems <= MAX_ELEMS)
		return;
	for (int64_t n = 4; n >= 2 && !search->is_hit; n -= 2) {
		memset(search->elements, 0, (size_t)n_elems * sizeof(*search->elements));
		search->n_elems = 0;
		for (int k = 0; k < 3; k++)
			search->limit[k] = search->w->found[k] ? 1 : n;
		search_sites(search);
	}
}

/* ---- a tensor ---- */

static void tell(struct writes *w, const struct search *search, const char *name)
{
	struct check *check = w->check;
	const struct source_set *sources = &check->cx->sources;

	if (search->is_hit)
		check_found(check,
		            (struct finding){ PROPERTY_HAPPENS_BEFORE, PROPERTY_VIOLATED,
		                              search->second.site->stmt->span, name },
		            "block %s writes element %s, to which block %s writes another value in line "
		            "%u: nothing orders blocks",
		            check_index_text(check, search->second.block, 3),
		            check_index_text(check, search->element, search->buffer->rank),
		            check_index_text(check, search->first.block, 3),
		            source_line(sources, search->first.site->stmt->span));
	else
		check_found(
			check,
			(struct finding){ PROPERTY_HAPPENS_BEFORE, PROPERTY_NOT_PROVED,
		                      search->site->stmt->span, name },
			"whether two blocks write different values into one element is not decided: "
			"its index depends on data, or more than %d elements would have to be looked at",
			MAX_ELEMS);
}

/* Do all statements store the same along the axes that are not found? */
static bool all_alike(const struct writes *w, const struct buffer *buffer)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < w->sites.n; s++) {
		const struct site *site = &w->sites.p[s];
		if (site->buffer != buffer)
			continue;
		n++;
		for (int k = 0; k < 3; k++) {
			bool moves = site->is_tainted[k];
			for (uint32_t d = 0; d < site->buffer->rank; d++)
				moves |= expr_uses(site->index[d], w->launch->block[k]);
			if (!w->found[k] && moves)
				return false;
		}
	}
	return n == 1;
}

static void check_tensor(struct writes *w, const struct buffer *buffer)
{
	const char *name = sym_text(w->check->cx->names, buffer->name);
	struct search search = { .w = w };
	bool is_mixed = false;

	search.buffer = NULL;
	for (uint32_t s = 0; s < w->sites.n; s++) {
		const struct site *site = &w->sites.p[s];
		if (alias_owner(site->buffer) != buffer)
			continue;
		is_mixed |= search.buffer && search.buffer != site->buffer;
		search.buffer = site->buffer;
		search.site = site;
	}
	if (!search.buffer || check_is_told(w->check, PROPERTY_HAPPENS_BEFORE, name))
		return;
	if (is_mixed) {
		tell(w, &search, name);
		return;
	}
	buffer = search.buffer;
	for (int k = 0; k < 3; k++)
		w->found[k] = w->grid[k] <= 1;
	find_axes(w, buffer);
	if ((w->found[0] && w->found[1] && w->found[2]) || all_alike(w, buffer))
		return;
	search_blocks(&search);
	if (search.is_hit || search.is_unsure)
		tell(w, &search, name);
}

void check_writes(struct check *check)
{
	const struct launch *launch = check->solution->launch;
	const struct tile_program *program = check->solution->program;
	struct writes *w = arena_new(check->cx->arena, struct writes);

	w->check = check;
	w->launch = launch;
	w->pool = check->pool;
	w->scratch = arena_open();
	for (int k = 0; k < 3; k++) {
		w->tainted[k] = arena_array(w->scratch, bool, program->buffers.n);
		if (!launch->block[k] || !expr_is_int(launch->grid[k], &w->grid[k])) {
			arena_close(w->scratch); /* check_run says that the grid is not known */
			return;
		}
		push_around(w, (struct around){ AROUND_VAR, launch->block[k], launch->grid[k], true });
	}
	for (int k = 0; k < 3; k++)
		if (launch->thread[k])
			push_around(w, (struct around){ AROUND_VAR, launch->thread[k],
			                                expr_int(w->pool, launch->threads[k]), true });
	for (int round = 0; (round == 0 || w->moved) && round < MAX_ROUNDS; round++) {
		w->moved = false;
		meet_block(w, &launch->body);
	}
	w->is_collecting = true;
	meet_block(w, &launch->body);
	w->values = arena_array(w->scratch, int64_t, expr_n_vars(w->pool) + 64);
	for (uint32_t b = 0; b < program->buffers.n && !w->too_deep; b++)
		if (program->buffers.p[b]->scope == SCOPE_GLOBAL)
			check_tensor(w, program->buffers.p[b]);
	if (w->too_deep)
		check_found(
			check,
			(struct finding){ PROPERTY_HAPPENS_BEFORE, PROPERTY_NOT_PROVED, launch->span, "" },
			"what blocks write is nested too deeply");
	arena_close(w->scratch);
}
