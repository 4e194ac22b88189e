/*
 * happens-before, of values: an element of a tile is written before it is read.
 *
 * The launch is walked in program order; every element of a tile has no value, certainly one, or
 * one only where data let it. Conditions on loops, blocks and threads are evaluated for each
 * iteration of a parallel loop (and each thread, where a statement names its number):
 *
 *     for i in T.Parallel(64):
 *         if i > 3: f[i] = A[i]
 *     for i in T.Parallel(64): C[i] = f[i]               violated: f[0] has no value
 *
 * What data decide is walked as if it happened, and joined with the state in front of it: inside,
 * its own writes are certain; behind it, what not all branches have written may be missing:
 *
 *     if n[bx] > 0: T.copy(A, s); T.gemm(s, ...)         fine
 *     T.copy(s, C)                                       not proved
 *
 * Serial loops run iteration by iteration until the tiles that they use are full. Where something
 * depends on the block, the blocks along that axis of the grid are walked one after another.
 * Complexity: iterations of the loops that use tiles that are not written in full yet.
 */
#include "analyzer/check/check_internal.h"

#include "analyzer/pipeline/depend.h"
#include "analyzer/tile/alias.h"

#include <string.h>

enum {
	MAX_TILE = 1 << 20,
	MAX_STEPS = 1 << 23,
	MAX_TRIPS = 1 << 12, /* of a loop whose extent differs between threads */
	MAX_AROUND = 64,
	MAX_EXPR_NODES = 1 << 12
};

enum has_value { VALUE_NONE, VALUE_MAYBE, VALUE_WRITTEN };

/* The memory of all shapes and types of a buffer. */
struct tile {
	uint8_t *units; /* enum has_value by unit, row-major; NULL: not looked at */
	/* All units written: `units` does not say so. */
	int64_t n_units, n_written;
	uint32_t unit_bits;            /* of the narrowest element */
	bool is_own;                   /* every thread has one for itself */
	bool is_violated, is_unproved; /* that has been told */
};

/* How well a variable is known while a statement is walked. */
enum known { KNOWN_VALUE, KNOWN_BY_LANE /* an iteration or a thread has it */, KNOWN_NOT };

enum around_kind { AROUND_VAR, AROUND_LET, AROUND_CONDITION };
/* What stands around a statement and differs between lanes. */
struct around {
	enum around_kind kind;
	const struct var *var;
	const struct expr *e; /* the let's value, the condition */
	int64_t n;            /* values of the variable */
	bool holds;           /* which branch of the condition */
};

struct defined {
	struct check *check;
	struct arena *scratch;
	struct tile *tiles;     /* by buffer id of the owner */
	struct use_list **uses; /* by statement id, what it and its body use */
	int64_t *values;        /* of variables, by id */
	uint8_t *known;         /* enum known, by variable id */
	uint32_t epoch;         /* of `known`; expr_class's entries of another one are old */
	struct map classes;     /* expression id -> epoch * 4 + enum known */
	struct map codes;       /* expression id -> struct expr_code * */
	struct around around[MAX_AROUND];
	uint32_t n_around;
	uint32_t n_unknown; /* branches around that data decide */
	bool has_barriers;  /* that order the launch's roles, which then need not be in program order */
	bool uses_block[3]; /* an axis of the grid on which something depended */
	const struct stmt *stmt;
	int64_t n_steps;
	bool gave_up;
};

/* ---- tiles ---- */

static struct tile *tile_of(struct defined *d, const struct buffer *buffer)
{
	struct tile *tile = &d->tiles[alias_owner(buffer)->id];

	return tile->units ? tile : NULL;
}

static bool is_full(const struct tile *tile)
{
	return tile->n_written == tile->n_units;
}

static struct tile *open_tile(struct defined *d, const struct buffer *buffer)
{
	struct tile *tile = tile_of(d, buffer);

	return tile && !is_full(tile) ? tile : NULL;
}

static void write_all(struct tile *tile)
{
	tile->n_written = tile->n_units;
}

/* Some elements are written, it is not known which. */
static void write_some(struct tile *tile)
{
	for (int64_t at = 0; at < tile->n_units && !is_full(tile); at++)
		if (tile->units[at] == VALUE_NONE)
			tile->units[at] = VALUE_MAYBE;
}

/* Row-major number of an element; -1 outside, which is another property's matter. */
static int64_t element_at(const struct buffer *buffer, const int64_t *index)
{
	int64_t at = 0;

	for (uint32_t d = 0; d < buffer->rank; d++) {
		int64_t extent = buffer_extent(buffer, d);
		if (index[d] < 0 || index[d] >= extent)
			return -1;
		at = at * extent + index[d];
	}
	return at;
}

/* Units of an element of the buffer. */
static int64_t units_of(const struct tile *tile, const struct buffer *buffer)
{
	return dtype_bits(buffer->type) / tile->unit_bits;
}

static void write_element(struct tile *tile, const struct buffer *buffer, const int64_t *index)
{
	int64_t at = element_at(buffer, index), n = units_of(tile, buffer);

	for (int64_t u = at * n; at >= 0 && u < at * n + n && !is_full(tile); u++) {
		tile->n_written += tile->units[u] != VALUE_WRITTEN;
		tile->units[u] = VALUE_WRITTEN;
	}
}

/* Of the element's units the one that is worst off. */
static enum has_value value_of_element(const struct tile *tile, const struct buffer *buffer,
                                       int64_t at)
{
	int64_t n = units_of(tile, buffer);
	enum has_value worst = VALUE_WRITTEN;

	for (int64_t u = at * n; u < at * n + n; u++)
		if (tile->units[u] < worst)
			worst = (enum has_value)tile->units[u];
	return worst;
}

/* Is the buffer all of its memory? */
static bool is_all(const struct tile *tile, const struct buffer *buffer)
{
	return buffer_n_elems(buffer) * units_of(tile, buffer) == tile->n_units;
}

static void read_element(struct defined *d, const struct buffer *buffer, const int64_t *index)
{
	struct tile *tile = open_tile(d, buffer);
	int64_t at = element_at(buffer, index), units;
	struct finding finding = { PROPERTY_HAPPENS_BEFORE, PROPERTY_VIOLATED, d->stmt->span, "" };
	enum has_value value;

	if (!tile || at < 0 || tile->is_violated)
		return;
	value = value_of_element(tile, buffer, at);
	if (value == VALUE_MAYBE || d->n_unknown || d->has_barriers)
		finding.status = PROPERTY_NOT_PROVED;
	if (value == VALUE_WRITTEN || (finding.status == PROPERTY_NOT_PROVED && tile->is_unproved))
		return;
	tile->is_unproved = true;
	tile->is_violated = finding.status == PROPERTY_VIOLATED;
	finding.buffer = sym_text(d->check->cx->names, buffer->name);
	units = units_of(tile, buffer);
	if (value == VALUE_MAYBE)
		check_found(d->check, finding,
		            "element %s is read, and data decide whether anything has written it",
		            check_index_text(d->check, index, buffer->rank));
	else
		check_found(
			d->check, finding,
			"element %s is read%s, and nothing has written it: %lld of %lld elements have a value",
			check_index_text(d->check, index, buffer->rank),
			d->n_unknown ? " where data let it" : "", (long long)(tile->n_written / units),
			(long long)(tile->n_units / units));
}

/* An element of an index that is not known is read. */
static void read_some(struct defined *d, const struct buffer *buffer)
{
	struct tile *tile = open_tile(d, buffer);

	if (!tile || tile->is_unproved)
		return;
	tile->is_unproved = true;
	check_found(d->check,
	            (struct finding){ PROPERTY_HAPPENS_BEFORE, PROPERTY_NOT_PROVED, d->stmt->span,
	                              sym_text(d->check->cx->names, buffer->name) },
	            "data decide which element is read, and only %lld of %lld certainly have a value",
	            (long long)(tile->n_written / units_of(tile, buffer)),
	            (long long)(tile->n_units / units_of(tile, buffer)));
}

/* ---- what is known of variables and expressions ---- */

static void set_known(struct defined *d, const struct var *var, enum known known)
{
	d->epoch += d->known[var->id] != known;
	d->known[var->id] = (uint8_t)known;
}

static void set_value(struct defined *d, const struct var *var, int64_t value)
{
	set_known(d, var, KNOWN_VALUE);
	d->values[var->id] = value;
}

struct class_visit {
	struct defined *d;
	enum known known;
};

static void visit_var(void *user, const struct expr *e)
{
	struct class_visit *visit = user;

	if (e->kind != EXPR_VAR)
		return;
	if (e->as.var->kind == VAR_BLOCK)
		visit->d->uses_block[e->as.var->axis] = true;
	if (visit->d->known[e->as.var->id] > visit->known)
		visit->known = (enum known)visit->d->known[e->as.var->id];
}

/* How well the expression is known now. Its blocks count as something that matters. */
static enum known expr_class(struct defined *d, const struct expr *e)
{
	struct class_visit visit = { d, KNOWN_VALUE };
	struct map_entry *entry;

	if (!e->is_index)
		return KNOWN_NOT;
	if (e->kind == EXPR_INT)
		return KNOWN_VALUE;
	if (e->kind == EXPR_VAR) {
		visit_var(&visit, e);
		return visit.known;
	}
	entry = map_at(d->scratch, &d->classes, e->id);
	if (entry->value.number / 4 != d->epoch) {
		expr_walk(e, visit_var, &visit);
		entry->value.number = (uint64_t)d->epoch * 4 + visit.known;
	}
	return (enum known)(entry->value.number % 4);
}

static enum known index_class(struct defined *d, const struct expr *const *index, uint32_t rank)
{
	enum known known = KNOWN_VALUE;

	for (uint32_t k = 0; k < rank; k++)
		if (expr_class(d, index[k]) > known)
			known = expr_class(d, index[k]);
	return known;
}

static int64_t value_of(struct defined *d, const struct expr *e)
{
	struct expr_code *code;

	if (e->kind == EXPR_INT)
		return e->as.integer;
	if (e->kind == EXPR_VAR)
		return d->values[e->as.var->id];
	code = map_get(&d->codes, e->id);
	if (!code) {
		code = expr_compile(d->scratch, e);
		map_set(d->scratch, &d->codes, e->id, code);
	}
	return expr_run(code, d->values);
}

static void values_of(struct defined *d, const struct expr *const *index, uint32_t rank,
                      int64_t *out)
{
	for (uint32_t k = 0; k < rank; k++)
		out[k] = value_of(d, index[k]);
}

/* ---- lanes: iterations of parallel loops around, and threads where they are named ---- */

struct lanes {
	struct around items[MAX_AROUND + 3];
	uint32_t n;
	/* Gets d with the variables of one lane set; false stops. */
	bool (*visit)(struct defined *d, void *user);
	void *user;
};

static bool walk_lanes(struct defined *d, struct lanes *lanes, uint32_t at)
{
	const struct around *item = &lanes->items[at];

	if (at == lanes->n) {
		d->gave_up |= ++d->n_steps > MAX_STEPS;
		return !d->gave_up && lanes->visit(d, lanes->user);
	}
	switch (item->kind) {
	case AROUND_LET:
		d->values[item->var->id] = value_of(d, item->e);
		break;
	case AROUND_CONDITION:
		if ((value_of(d, item->e) != 0) != item->holds)
			return true;
		break;
	case AROUND_VAR:
		for (int64_t value = 0; value < item->n; value++) {
			d->values[item->var->id] = value;
			if (!walk_lanes(d, lanes, at + 1))
				return false;
		}
		return true;
	}
	return walk_lanes(d, lanes, at + 1);
}

struct thread_use {
	const struct launch *launch;
	bool axes[3];
};

static void visit_thread(void *user, const struct expr *e)
{
	struct thread_use *use = user;

	for (int k = 0; k < 3 && e->kind == EXPR_VAR; k++)
		use->axes[k] |= e->as.var == use->launch->thread[k];
}

/* Calls `visit` for every lane that gets to the statement; `n` expressions say what it uses. */
static void each_lane(struct defined *d, const struct expr *const *used, uint32_t n,
                      struct lanes *lanes)
{
	struct thread_use threads = { .launch = d->check->solution->launch };

	for (uint32_t i = 0; i < n; i++)
		expr_walk(used[i], visit_thread, &threads);
	for (uint32_t i = 0; i < d->n_around; i++)
		if (d->around[i].e)
			expr_walk(d->around[i].e, visit_thread, &threads);
	lanes->n = 0;
	for (int k = 0; k < 3; k++)
		if (threads.axes[k])
			lanes->items[lanes->n++] = (struct around){ AROUND_VAR, threads.launch->thread[k], NULL,
				                                        threads.launch->threads[k], false };
	for (uint32_t i = 0; i < d->n_around; i++)
		lanes->items[lanes->n++] = d->around[i];
	walk_lanes(d, lanes, 0);
}

/* Puts one more thing around; what does not fit makes all that follows unknown. */
static void push_around(struct defined *d, struct around item)
{
	if (d->n_around == MAX_AROUND)
		d->gave_up = true;
	else
		d->around[d->n_around++] = item;
}

static bool has_condition(const struct defined *d)
{
	for (uint32_t i = 0; i < d->n_around; i++)
		if (d->around[i].kind == AROUND_CONDITION)
			return true;
	return false;
}

/* ---- expressions ---- */

static void visit_open_load(void *user, const struct expr *e)
{
	struct class_visit *visit = user;

	if (e->kind == EXPR_LOAD && open_tile(visit->d, e->as.buffer) &&
	    !open_tile(visit->d, e->as.buffer)->is_violated)
		visit->known = KNOWN_NOT;
}

/* Does it load a tile that is not full? */
static bool loads_open(struct defined *d, const struct expr *e)
{
	struct class_visit visit = { d, KNOWN_VALUE };

	expr_walk(e, visit_open_load, &visit);
	return visit.known == KNOWN_NOT;
}

static void read_loads(struct defined *d, const struct expr *e);

/* Operands of which another one decides whether they are computed. */
static void read_chosen(struct defined *d, const struct expr *e)
{
	const struct expr *first = e->args[0];
	bool is_select = e->kind == EXPR_SELECT, holds;

	read_loads(d, first);
	if (expr_class(d, first) == KNOWN_NOT) {
		d->n_unknown++;
		for (uint32_t i = 1; i < e->n_args; i++)
			read_loads(d, e->args[i]);
		d->n_unknown--;
		return;
	}
	holds = value_of(d, first) != 0;
	if (is_select)
		read_loads(d, e->args[holds ? 1 : 2]);
	else if (holds == (e->as.binary == BIN_AND))
		read_loads(d, e->args[1]);
}

/* The loads of one lane's expression. */
static void read_loads(struct defined *d, const struct expr *e)
{
	int64_t index[MAX_RANK];

	if (e->kind == EXPR_SELECT ||
	    (e->kind == EXPR_BINARY && (e->as.binary == BIN_AND || e->as.binary == BIN_OR))) {
		read_chosen(d, e);
		return;
	}
	for (uint32_t i = 0; i < e->n_args; i++)
		read_loads(d, e->args[i]);
	if (e->kind != EXPR_LOAD || !open_tile(d, e->as.buffer))
		return;
	if (index_class(d, e->args, e->as.buffer->rank) == KNOWN_NOT) {
		read_some(d, e->as.buffer);
		return;
	}
	values_of(d, e->args, e->as.buffer->rank, index);
	read_element(d, e->as.buffer, index);
}

static bool visit_reads(struct defined *d, void *user)
{
	read_loads(d, user);
	return true;
}

/* What an expression outside of stores and operations reads. */
static void meet_expr(struct defined *d, const struct expr *e)
{
	struct lanes lanes = { .visit = visit_reads, .user = (void *)(uintptr_t)e };

	if (!e || !loads_open(d, e))
		return;
	if (e->n_nodes > MAX_EXPR_NODES)
		d->gave_up = true;
	else
		each_lane(d, &e, 1, &lanes);
}

/* ---- stores ---- */

static bool visit_store_reads(struct defined *d, void *user)
{
	const struct stmt *stmt = user;
	const struct buffer *buffer = stmt->as.store.buffer;
	int64_t index[MAX_RANK];

	read_loads(d, stmt->as.store.value);
	for (uint32_t k = 0; k < buffer->rank; k++)
		read_loads(d, stmt->as.store.index[k]);
	if (stmt->as.store.atomic == ATOMIC_NONE || stmt->as.store.atomic == ATOMIC_STORE ||
	    !open_tile(d, buffer))
		return true;
	if (index_class(d, stmt->as.store.index, buffer->rank) == KNOWN_NOT) {
		read_some(d, buffer);
		return true;
	}
	values_of(d, stmt->as.store.index, buffer->rank, index);
	read_element(d, buffer, index);
	return true;
}

static bool visit_store_write(struct defined *d, void *user)
{
	const struct stmt *stmt = user;
	const struct buffer *buffer = stmt->as.store.buffer;
	struct tile *tile = tile_of(d, buffer);
	int64_t index[MAX_RANK];

	values_of(d, stmt->as.store.index, buffer->rank, index);
	write_element(tile, buffer, index);
	return !is_full(tile);
}

/* An iteration of the loops around for each element, whatever the order of the loops. */
static bool writes_whole(struct defined *d, const struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer;
	uint32_t n_found = 0;

	if (has_condition(d) || !is_all(tile_of(d, buffer), buffer))
		return false;
	for (uint32_t k = 0; k < buffer->rank; k++) {
		const struct expr *index = stmt->as.store.index[k];
		for (uint32_t i = 0; i < d->n_around; i++)
			n_found += index->kind == EXPR_VAR && d->around[i].kind == AROUND_VAR &&
			           d->around[i].var == index->as.var &&
			           d->around[i].n == buffer_extent(buffer, k);
		for (uint32_t j = 0; j < k; j++)
			if (stmt->as.store.index[j] == index)
				return false;
	}
	return n_found == buffer->rank;
}

static void meet_store(struct defined *d, struct stmt *stmt)
{
	const struct buffer *buffer = stmt->as.store.buffer;
	struct tile *tile = open_tile(d, buffer);
	struct lanes lanes = { .visit = visit_store_reads, .user = stmt };
	const struct expr *used[MAX_RANK + 1] = { stmt->as.store.value };
	bool reads = loads_open(d, stmt->as.store.value) || (tile && stmt->as.store.atomic);

	for (uint32_t k = 0; k < buffer->rank; k++) {
		used[k + 1] = stmt->as.store.index[k];
		reads |= loads_open(d, used[k + 1]);
	}
	for (uint32_t k = 0; k <= buffer->rank && reads; k++)
		d->gave_up |= used[k]->n_nodes > MAX_EXPR_NODES;
	if (reads && !d->gave_up)
		each_lane(d, used, buffer->rank + 1, &lanes);
	if (!tile || d->gave_up)
		return;
	lanes.visit = visit_store_write;
	if (index_class(d, stmt->as.store.index, buffer->rank) == KNOWN_NOT)
		write_some(tile);
	else if (writes_whole(d, stmt))
		write_all(tile);
	else
		each_lane(d, used + 1, buffer->rank, &lanes);
}

/* ---- operations ---- */

struct region_visit {
	const struct region *region;
	bool is_read;
};

static bool visit_region(struct defined *d, void *user)
{
	const struct region_visit *visit = user;
	const struct buffer *buffer = visit->region->buffer;
	struct tile *tile = tile_of(d, buffer);
	int64_t min[MAX_RANK], index[MAX_RANK];
	bool whole = is_all(tile, buffer);

	values_of(d, visit->region->min, buffer->rank, min);
	for (uint32_t k = 0; k < buffer->rank; k++) {
		index[k] = min[k];
		whole &= min[k] == 0 && visit->region->extent[k] == buffer_extent(buffer, k);
	}
	if (whole && !visit->is_read)
		write_all(tile);
	for (bool more = !is_full(tile); more;) {
		if (visit->is_read)
			read_element(d, buffer, index);
		else
			write_element(tile, buffer, index);
		d->gave_up |= ++d->n_steps > MAX_STEPS;
		more = false;
		for (uint32_t k = buffer->rank; k-- > 0 && !more && !d->gave_up;) {
			more = ++index[k] < min[k] + visit->region->extent[k];
			if (!more)
				index[k] = min[k];
		}
	}
	return index_class(d, visit->region->min, buffer->rank) == KNOWN_BY_LANE;
}

static void meet_region(struct defined *d, const struct region *region, bool is_read)
{
	struct tile *tile = region->buffer ? open_tile(d, region->buffer) : NULL;
	struct region_visit visit = { region, is_read };
	struct lanes lanes = { .visit = visit_region, .user = &visit };

	if (!tile)
		return;
	if (index_class(d, region->min, region->buffer->rank) != KNOWN_NOT)
		each_lane(d, region->min, region->buffer->rank, &lanes);
	else if (is_read)
		read_some(d, region->buffer);
	else
		write_some(tile);
}

/* Does a gemm, a reduction or a scan read what it also writes? */
static bool reads_target(struct defined *d, const struct op *op)
{
	const struct expr *clear = op_is_gemm(op) ? op->as.gemm.clear_accum : NULL;

	if (op->kind == OP_reduce)
		return !op->as.reduce.clear;
	if (clear)
		return expr_class(d, clear) != KNOWN_VALUE || !value_of(d, clear);
	return true;
}

static void meet_op(struct defined *d, struct stmt *stmt)
{
	struct op *op = &stmt->as.op;
	const struct use_list *uses = d->uses[stmt->id];
	enum operand_role role;
	struct region *region;

	if (op->kind == OP_evaluate) {
		for (uint32_t i = 0; i < uses->uses.n; i++)
			if (open_tile(d, uses->uses.p[i].buffer))
				write_all(open_tile(d, uses->uses.p[i].buffer));
		return;
	}
	for (uint32_t i = 0; (region = op_region(op, i, &role)) != NULL; i++)
		if (role == ROLE_READ || (role == ROLE_UPDATE && reads_target(d, op)))
			meet_region(d, region, true);
	for (uint32_t i = 0; (region = op_region(op, i, &role)) != NULL; i++)
		if (role != ROLE_READ)
			meet_region(d, region, false);
}

/* ---- branches ---- */

static void meet_block(struct defined *d, const struct block *block);

/* The tiles that a statement writes, as they were. */
struct saved {
	uint32_t n;
	uint32_t *buffers;
	struct tile *tiles;
};

static struct saved save_tiles(struct defined *d, const struct stmt *stmt, bool only_own)
{
	const struct use_list *uses = d->uses[stmt->id];
	struct saved saved = { .buffers = arena_array(d->scratch, uint32_t, uses->uses.n + 1),
		                   .tiles = arena_array(d->scratch, struct tile, uses->uses.n + 1) };

	for (uint32_t i = 0; i < uses->uses.n; i++) {
		const struct buffer_use *use = &uses->uses.p[i];
		struct tile *tile = open_tile(d, use->buffer);
		bool is_new = tile && use->writes && (tile->is_own || !only_own);

		for (uint32_t k = 0; k < saved.n && is_new; k++)
			is_new = saved.buffers[k] != alias_owner(use->buffer)->id;
		if (!is_new)
			continue;
		saved.tiles[saved.n] = *tile;
		saved.tiles[saved.n].units = arena_array(d->scratch, uint8_t, (size_t)tile->n_units);
		memcpy(saved.tiles[saved.n].units, tile->units, (size_t)tile->n_units);
		saved.buffers[saved.n++] = alias_owner(use->buffer)->id;
	}
	return saved;
}

static uint8_t value_at(const struct tile *tile, int64_t at)
{
	return is_full(tile) ? VALUE_WRITTEN : tile->units[at];
}

/* Sets the tile to `state` and gives what it was in `state`. */
static void swap_tile(struct tile *tile, struct tile *state)
{
	struct tile was = *tile;

	if (is_full(&was))
		memset(was.units, VALUE_WRITTEN, (size_t)was.n_units);
	*tile = *state;
	tile->is_violated |= was.is_violated;
	tile->is_unproved |= was.is_unproved;
	*state = was;
}

/*
 * What holds behind two branches, of which one ended in `other` and one in the present state. The
 * bytes of `other` are the tile's own, its present ones are about to be dropped.
 */
static void join_tile(struct tile *tile, const struct tile *other)
{
	int64_t n_written = 0;

	for (int64_t at = 0; at < tile->n_units; at++) {
		uint8_t a = value_at(tile, at), b = value_at(other, at);
		other->units[at] = a == b ? a : VALUE_MAYBE;
		n_written += other->units[at] == VALUE_WRITTEN;
	}
	tile->units = other->units;
	tile->n_written = n_written;
}

/* One branch or the other, NULL: nothing. `item`: the condition where lanes decide it. */
static void meet_branches(struct defined *d, const struct stmt *stmt, const struct block *blocks[2],
                          const struct around *item)
{
	struct arena_mark mark = arena_mark(d->scratch);
	struct saved saved = save_tiles(d, stmt, item != NULL);
	uint32_t n_around = d->n_around;

	d->n_unknown += !item;
	for (int branch = 0; branch < 2; branch++) {
		if (item) {
			push_around(d, *item);
			d->around[d->n_around - 1].holds = branch == 0;
		}
		if (blocks[branch])
			meet_block(d, blocks[branch]);
		d->n_around = n_around;
		for (uint32_t i = 0; branch == 0 && i < saved.n; i++)
			swap_tile(&d->tiles[saved.buffers[i]], &saved.tiles[i]);
	}
	d->n_unknown -= !item;
	for (uint32_t i = 0; i < saved.n; i++)
		join_tile(&d->tiles[saved.buffers[i]], &saved.tiles[i]);
	/* Codes and classes that were made meanwhile stand in the same arena. */
	d->codes = d->classes = (struct map){ 0 };
	arena_release(d->scratch, mark);
}

static void meet_if(struct defined *d, const struct stmt *stmt)
{
	const struct expr *condition = stmt->as.if_.condition;
	const struct block *blocks[2] = { &stmt->as.if_.then, &stmt->as.if_.otherwise };
	struct around item = { AROUND_CONDITION, NULL, condition, 0, true };

	meet_expr(d, condition);
	switch (expr_class(d, condition)) {
	case KNOWN_VALUE:
		meet_block(d, blocks[value_of(d, condition) == 0]);
		return;
	case KNOWN_BY_LANE:
		meet_branches(d, stmt, blocks, &item);
		return;
	case KNOWN_NOT:
		meet_branches(d, stmt, blocks, NULL);
		return;
	}
}

/* ---- loops ---- */

static bool uses_open(struct defined *d, const struct stmt *stmt)
{
	const struct use_list *uses = d->uses[stmt->id];

	for (uint32_t i = 0; i < uses->uses.n; i++)
		if (open_tile(d, uses->uses.p[i].buffer))
			return true;
	return false;
}

/* How often is not known: the first iteration, and one that stands for all others. */
static void meet_unknown_loop(struct defined *d, const struct stmt *stmt)
{
	const struct loop *loop = &stmt->as.loop;
	const struct block *once[2] = { &loop->body, NULL };
	int64_t min, max;

	expr_bounds(loop->extents[0], &min, &max);
	set_value(d, loop->vars[0], 0);
	if (min > 0)
		meet_block(d, &loop->body);
	else
		meet_branches(d, stmt, once, NULL);
	set_known(d, loop->vars[0], KNOWN_NOT);
	if (uses_open(d, stmt))
		meet_branches(d, stmt, once, NULL);
}

static void meet_serial(struct defined *d, const struct stmt *stmt)
{
	const struct loop *loop = &stmt->as.loop;
	const struct expr *extent = loop->extents[0];
	enum known known = expr_class(d, extent);
	uint32_t n_around = d->n_around;
	int64_t min, n;

	meet_expr(d, extent);
	expr_bounds(extent, &min, &n);
	if (known == KNOWN_NOT || (known == KNOWN_BY_LANE && n > MAX_TRIPS)) {
		meet_unknown_loop(d, stmt);
		return;
	}
	if (known == KNOWN_VALUE)
		n = value_of(d, extent);
	for (int64_t i = 0; i < n && uses_open(d, stmt) && !d->gave_up; i++) {
		set_value(d, loop->vars[0], i);
		if (known == KNOWN_BY_LANE)
			push_around(
				d, (struct around){ AROUND_CONDITION, NULL,
			                        expr_lt(d->check->pool, expr_int(d->check->pool, i), extent), 0,
			                        true });
		meet_block(d, &loop->body);
		d->n_around = n_around;
	}
	set_known(d, loop->vars[0], KNOWN_NOT);
}

static void meet_parallel(struct defined *d, const struct stmt *stmt)
{
	const struct loop *loop = &stmt->as.loop;
	const struct block *once[2] = { &loop->body, NULL };
	uint32_t n_around = d->n_around;
	bool is_known = true;

	for (uint32_t k = 0; k < loop->n_vars; k++)
		is_known &= expr_class(d, loop->extents[k]) == KNOWN_VALUE;
	for (uint32_t k = 0; k < loop->n_vars && is_known; k++) {
		push_around(d, (struct around){ AROUND_VAR, loop->vars[k], NULL,
		                                value_of(d, loop->extents[k]), false });
		set_known(d, loop->vars[k], KNOWN_BY_LANE);
	}
	if (is_known)
		meet_block(d, &loop->body);
	else
		meet_branches(d, stmt, once, NULL);
	d->n_around = n_around;
	for (uint32_t k = 0; k < loop->n_vars; k++)
		set_known(d, loop->vars[k], KNOWN_NOT);
}

static void meet_while(struct defined *d, const struct stmt *stmt)
{
	const struct block *once[2] = { &stmt->as.while_.body, NULL };

	meet_expr(d, stmt->as.while_.condition);
	meet_branches(d, stmt, once, NULL);
}

static void meet_let(struct defined *d, const struct stmt *stmt)
{
	const struct var *var = stmt->as.let.var;
	const struct expr *value = stmt->as.let.value;
	enum known known = expr_class(d, value);

	if (known == KNOWN_VALUE)
		set_value(d, var, value_of(d, value));
	else
		set_known(d, var, known);
	if (known == KNOWN_BY_LANE)
		push_around(d, (struct around){ AROUND_LET, var, value, 0, false });
}

static void meet_stmt(struct defined *d, struct stmt *stmt)
{
	d->stmt = stmt;
	switch (stmt->kind) {
	case STMT_OP:
		meet_op(d, stmt);
		break;
	case STMT_LOOP:
		if (stmt->as.loop.kind == LOOP_PARALLEL)
			meet_parallel(d, stmt);
		else
			meet_serial(d, stmt);
		break;
	case STMT_IF:
		meet_if(d, stmt);
		break;
	case STMT_WHILE:
		meet_while(d, stmt);
		break;
	case STMT_STORE:
		meet_store(d, stmt);
		break;
	case STMT_LET:
		meet_expr(d, stmt->as.let.value);
		break;
	case STMT_SYNC:
	case STMT_BREAK: /* a staged launch has none */
	case STMT_CONTINUE:
		break;
	}
}

/* Statements that use no open tile change nothing; what a LET names is kept. */
static void meet_block(struct defined *d, const struct block *block)
{
	uint32_t n_around = d->n_around;

	for (uint32_t i = 0; i < block->stmts.n && !d->gave_up; i++) {
		struct stmt *stmt = block->stmts.p[i];
		if (uses_open(d, stmt))
			meet_stmt(d, stmt);
		if (stmt->kind == STMT_LET)
			meet_let(d, stmt);
	}
	d->n_around = n_around;
}

/* ---- blocks of the grid ---- */

static void visit_uses(void *user, struct stmt *stmt)
{
	struct defined *d = user;
	struct use_list *list = arena_new(d->scratch, struct use_list);

	list->arena = d->scratch;
	depend_stmt(list, stmt);
	d->uses[stmt->id] = list;
	d->has_barriers |= stmt->kind == STMT_OP &&
	                   (stmt->as.op.kind == OP_barrier_wait || stmt->as.op.kind == OP_evaluate);
}

/* Bits of the narrowest type that the buffer's memory has in this launch. */
static uint32_t narrowest(const struct tile_program *program, const struct buffer *owner)
{
	uint32_t bits = dtype_bits(owner->type);

	for (uint32_t b = 0; b < program->buffers.n; b++)
		if (alias_owner(program->buffers.p[b]) == owner &&
		    dtype_bits(program->buffers.p[b]->type) < bits)
			bits = dtype_bits(program->buffers.p[b]->type);
	return bits;
}

/* Memory on the chip, which nothing outside the kernel fills. */
static void open_tiles(struct defined *d)
{
	const struct solution *solution = d->check->solution;
	const struct tile_program *program = solution->program;

	for (uint32_t b = 0; b < program->buffers.n; b++) {
		const struct buffer *buffer = program->buffers.p[b];
		struct tile *tile = &d->tiles[b];
		int64_t n = buffer_n_elems(buffer);

		if (buffer->scope == SCOPE_GLOBAL || buffer->launch != solution->launch->index || n < 1 ||
		    n > MAX_TILE || alias_owner(buffer) != buffer)
			continue;
		tile->unit_bits = narrowest(program, buffer);
		if (tile->unit_bits == 0)
			continue;
		tile->n_units = n * units_of(tile, buffer);
		tile->is_own = buffer->scope == SCOPE_LOCAL || buffer->scope == SCOPE_VAR;
		tile->units = arena_array(d->scratch, uint8_t, (size_t)tile->n_units);
	}
}

/* One block; those along an axis whose extent is not known stand for one that is not known. */
static void walk_block(struct defined *d, const int64_t *block)
{
	const struct launch *launch = d->check->solution->launch;
	uint32_t n = d->check->solution->program->buffers.n;

	for (uint32_t b = 0; b < n; b++) {
		struct tile *tile = &d->tiles[b];
		if (tile->units)
			memset(tile->units, VALUE_NONE, (size_t)tile->n_units);
		tile->n_written = 0;
	}
	for (int k = 0; k < 3; k++)
		if (launch->block[k] && expr_is_int(launch->grid[k], NULL))
			set_value(d, launch->block[k], block[k]);
	meet_block(d, &launch->body);
}

/* Blocks along some axes of the grid, the first of the others. */
static void walk_axes(struct defined *d, const bool *axes)
{
	const struct launch *launch = d->check->solution->launch;
	int64_t block[3] = { 0 }, extent[3];

	for (int k = 0; k < 3; k++)
		if (!expr_is_int(launch->grid[k], &extent[k]))
			extent[k] = 1;
	for (bool more = true; more && !d->gave_up;) {
		walk_block(d, block);
		more = false;
		for (int k = 0; k < 3 && !more; k++) {
			more = axes[k] && ++block[k] < extent[k];
			if (!more)
				block[k] = 0;
		}
	}
}

/* Until no further axis turns out to matter. */
static void walk_grid(struct defined *d)
{
	bool axes[3];

	do {
		memcpy(axes, d->uses_block, sizeof axes);
		walk_axes(d, axes);
	} while (memcmp(axes, d->uses_block, sizeof axes) != 0 && !d->gave_up);
}

void check_defined(struct check *check)
{
	struct arena *scratch = arena_open();
	size_t n_vars = expr_n_vars(check->pool) + 64;
	struct defined d = { .check = check, .scratch = scratch, .epoch = 1 };
	struct block *body = (struct block *)(uintptr_t)&check->solution->launch->body;

	d.tiles = arena_array(scratch, struct tile, check->solution->program->buffers.n);
	d.values = arena_array(scratch, int64_t, n_vars);
	d.known = arena_array(scratch, uint8_t, n_vars);
	d.uses = arena_array(scratch, struct use_list *, check->solution->program->n_stmts + 1);
	memset(d.known, KNOWN_NOT, n_vars);
	for (int k = 0; k < 3; k++)
		if (check->solution->launch->thread[k])
			d.known[check->solution->launch->thread[k]->id] = KNOWN_BY_LANE;
	tile_walk(body, visit_uses, &d);
	open_tiles(&d);
	walk_grid(&d);
	if (d.gave_up)
		check_found(check,
		            (struct finding){ PROPERTY_HAPPENS_BEFORE, PROPERTY_NOT_PROVED,
		                              d.stmt ? d.stmt->span : (struct span){ 0, 0, 0 }, "" },
		            "whether all that is read has a value takes more steps than the limit");
	arena_close(scratch);
}
