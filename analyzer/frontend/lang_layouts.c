/*
 * Layouts that a kernel writes itself, for T.annotate_layout. A function of the indices is called
 * once, with variables; what it gives is worked out for every element.
 *
 *     T.annotate_layout({A_shared: T.Layout(A_shared.shape, lambda i, j: [i, j ^ (i % 8 * 8)]),
 *                        B_shared: make_swizzled_layout(B_shared),
 *                        acc: T.Fragment((128, 64), forward_thread_fn=lambda i, j: i)})
 *
 * Several results of a function are dimensions of the place, row-major. Offsets in elements become
 * bytes when the buffer is known.
 */
#include "analyzer/frontend/eval.h"
#include "analyzer/layout/fit.h"
#include "analyzer/layout/layout.h"

#include <assert.h>
#include <string.h>

enum { MAX_LAYOUT_ELEMS = 1 << 22 };

/*
 * A function of indices, and what it gives for each element: `vars` are the indices as variables,
 * which the function is called with once; its result is then computed for every element, row-major.
 */
struct tabulation {
	uint32_t n_dims; /* the indices, then the replica when there is one */
	int64_t shape[MAX_RANK + 1];
	int64_t n_elems;
	struct var *vars[MAX_RANK + 1];
};

/* Extents of a layout's shape; constants. */
static bool tabulation_shape(struct eval *ev, struct value shape, struct span span,
                             struct tabulation *out)
{
	struct tensor_type type = { .rank = 0 };

	*out = (struct tabulation){ .n_elems = 1 };
	if (!lang_shape(ev, shape, span, &type))
		return false;
	out->n_dims = type.rank;
	for (uint32_t i = 0; i < type.rank; i++) {
		if (!expr_is_int(type.shape[i], &out->shape[i]) ||
		    __builtin_mul_overflow(out->n_elems, out->shape[i], &out->n_elems) ||
		    out->n_elems > MAX_LAYOUT_ELEMS) {
			ev_error(ev, DIAG_E0308, span,
			         "a layout's shape has constant extents and at most %d elements",
			         MAX_LAYOUT_ELEMS);
			return false;
		}
	}
	return true;
}

/* One more dimension, slower than all others. */
static bool add_replica(struct eval *ev, struct tabulation *tab, int64_t n, struct span span)
{
	if (n >= 1 && n <= 1024 && tab->n_elems * n <= MAX_LAYOUT_ELEMS && tab->n_dims < MAX_RANK) {
		tab->shape[tab->n_dims++] = n;
		tab->n_elems *= n;
		return true;
	}
	ev_error(ev, DIAG_E0308, span, "a fragment has 1 to 1024 replicas and at most %d places",
	         MAX_LAYOUT_ELEMS);
	return false;
}

/* The function's result for symbolic indices. */
static struct value call_with_vars(struct eval *ev, struct call *outer, struct value function,
                                   struct tabulation *tab, uint32_t n_args)
{
	struct call call = {
		.span = outer->span, .callee_span = outer->span, .name = outer->name, .frame = outer->frame
	};

	for (uint32_t i = 0; i < tab->n_dims; i++) {
		char name[16];

		snprintf(name, sizeof(name), "i%u", i);
		tab->vars[i] =
			expr_new_var(ev->pool, VAR_LOOP, intern_text(ev->cx->names, name), DTYPE_I32);
		tab->vars[i]->min = 0;
		tab->vars[i]->max = tab->shape[i] - 1;
		if (i < n_args)
			vec_push(ev->cx->arena, &call.args,
			         (struct arg){ 0, VALUE_EXPR(expr_of_var(ev->pool, tab->vars[i])), outer->span,
			                       outer->span });
	}
	return call_value(ev, function, &call);
}

/* Values of one expression, row-major over the indices. */
static bool tabulate_one(struct eval *ev, const struct tabulation *tab, struct value value,
                         struct span span, int64_t *out)
{
	const struct expr *e = device_expr(ev, value, NULL, span);
	int64_t *values = arena_array(ev->cx->arena, int64_t, expr_n_vars(ev->pool)),
			index[MAX_RANK + 1] = { 0 };
	struct expr_code *code;

	if (!e)
		return false;
	if (!e->is_index) {
		ev_error(ev, DIAG_E0202, span, "a layout is integer arithmetic of the indices");
		return false;
	}
	code = expr_compile(ev->cx->arena, e);
	for (int64_t at = 0; at < tab->n_elems; at++) {
		for (uint32_t d = 0; d < tab->n_dims; d++)
			values[tab->vars[d]->id] = index[d];
		out[at] = expr_run(code, values);
		for (uint32_t d = tab->n_dims; d-- > 0 && ++index[d] == tab->shape[d];)
			index[d] = 0;
	}
	return true;
}

/* Several results are dimensions, row-major: each counts up to its largest value. */
static int64_t *tabulate(struct eval *ev, const struct tabulation *tab, struct value result,
                         struct span span)
{
	int64_t *places = arena_array(ev->cx->arena, int64_t, (size_t)tab->n_elems);
	int64_t *part = arena_array(ev->cx->arena, int64_t, (size_t)tab->n_elems);
	struct sequence items = { &result, 1, 1 };

	if (value_is_sequence(result))
		items = *result.as.sequence;
	for (uint32_t k = 0; k < items.n; k++) {
		int64_t extent = 1;

		if (!tabulate_one(ev, tab, items.p[k], span, part))
			return NULL;
		for (int64_t at = 0; at < tab->n_elems; at++) {
			if (part[at] < 0 || part[at] > INT32_MAX) {
				ev_error(ev, DIAG_E0306, span, "this layout gives %lld for an element",
				         (long long)part[at]);
				return NULL;
			}
			extent = part[at] >= extent ? part[at] + 1 : extent;
		}
		for (int64_t at = 0; at < tab->n_elems; at++)
			places[at] = places[at] * extent + part[at];
	}
	return places;
}

/* A function for each element of a shape, or V_ERROR. */
static struct value layout_of_function(struct eval *ev, struct call *call, struct value shape,
                                       struct value function)
{
	struct layout_value *layout = arena_new(ev->cx->arena, struct layout_value);
	struct layout_map *map = arena_new(ev->cx->arena, struct layout_map);
	struct tensor_type type = { .rank = 0 };
	struct tabulation tab = { .n_elems = 1 };
	struct value result;
	struct sequence items = { &result, 1, 1 };

	if (!lang_shape(ev, shape, call->span, &type))
		return VALUE_ERROR;
	tab.n_dims = layout->rank = map->rank = type.rank;
	for (uint32_t i = 0; i < type.rank; i++) {
		layout->shape[i] = -1;
		expr_is_int(type.shape[i], &layout->shape[i]);
		tab.shape[i] = layout->shape[i] < 0 ? INT32_MAX : layout->shape[i];
	}
	result = call_with_vars(ev, call, function, &tab, tab.n_dims);
	if (result.kind == V_ERROR)
		return result;
	if (value_is_sequence(result))
		items = *result.as.sequence;
	if (items.n < 1 || items.n > MAX_RANK)
		return ev_error(ev, DIAG_E0311, call->span, "a layout gives 1 to %d numbers", MAX_RANK);
	for (uint32_t i = 0; i < type.rank; i++)
		map->index[i] = tab.vars[i];
	for (map->n = 0; map->n < items.n; map->n++) {
		map->place[map->n] = device_expr(ev, items.p[map->n], NULL, call->span);
		if (!map->place[map->n])
			return VALUE_ERROR;
	}
	layout->map = map;
	return (struct value){ .kind = V_LAYOUT, .as.layout = layout };
}

/* T.Layout(shape, forward_fn) */
static struct value t_layout(struct eval *ev, struct call *call)
{
	return layout_of_function(ev, call, call->slot[0]->value, call->slot[1]->value);
}

/* Slots in the order in which a thread meets its elements. */
static int64_t *count_slots(struct eval *ev, const int64_t *threads, int64_t n_elems, int64_t n)
{
	int64_t *slots = arena_array(ev->cx->arena, int64_t, (size_t)n), most = 0, *used;

	for (int64_t at = 0; at < n; at++)
		most = threads[at] > most ? threads[at] : most;
	used = arena_array(ev->cx->arena, int64_t, (size_t)most + 1);
	for (int64_t at = 0; at < n; at++) {
		if (at % n_elems == 0)
			memset(used, 0, sizeof(*used) * ((size_t)most + 1));
		slots[at] = used[threads[at]]++;
	}
	return slots;
}

/* Threads and slots of a fragment, by its functions; NULL after an error. */
static const struct layout *fragment_of(struct eval *ev, struct call *call, struct tabulation *tab,
                                        int64_t replicas)
{
	bool is_joint = lang_is_given(call, 1);
	const struct arg *of_thread = is_joint ? call->slot[1] : call->slot[2],
					 *of_slot = call->slot[4];
	struct layout *layout = layout_new_fragment(ev->cx->arena, tab->n_dims, tab->shape), *fitted;
	int64_t n_elems = tab->n_elems, *threads, *slots = NULL;
	uint32_t rank = tab->n_dims;
	struct value result, thread, slot = VALUE_NONE;
	struct tabulation order = *tab;

	/* The replica is the slowest index. */
	if (replicas > 1 && !add_replica(ev, &order, replicas, call->span))
		return NULL;
	result = call_with_vars(ev, call, of_thread->value, &order, order.n_dims);
	thread = result;
	if (is_joint && value_is_sequence(result) && result.as.sequence->n == 2) {
		thread = result.as.sequence->p[0];
		slot = result.as.sequence->p[1];
	}
	if (replicas > 1) {
		struct tabulation turned = { .n_dims = order.n_dims, .n_elems = order.n_elems };

		for (uint32_t i = 0; i < order.n_dims; i++) {
			turned.shape[i] = order.shape[(i + rank) % order.n_dims];
			turned.vars[i] = order.vars[(i + rank) % order.n_dims];
		}
		order = turned;
	}
	threads = thread.kind == V_ERROR ? NULL : tabulate(ev, &order, thread, call->span);
	if (!threads)
		return NULL;
	if (slot.kind == V_NONE && of_slot && of_slot->value.kind != V_NONE && !is_joint) {
		struct tabulation plain = *tab;

		slot = call_with_vars(ev, call, of_slot->value, &plain, plain.n_dims);
		for (uint32_t i = 0; i < rank; i++)
			order.vars[replicas > 1 ? i + 1 : i] = plain.vars[i];
	}
	if (slot.kind == V_ERROR)
		return NULL;
	slots = slot.kind == V_NONE ? count_slots(ev, threads, n_elems, order.n_elems)
	                            : tabulate(ev, &order, slot, call->span);
	if (!slots)
		return NULL;
	layout->n_replicas = replicas;
	layout->table_threads = threads;
	layout->table_slots = slots;
	layout_finish(layout);
	fitted = layout_fit(ev->cx->arena, layout);
	return fitted ? fitted : layout;
}

/* T.Fragment(shape, forward_fn, forward_thread_fn, replicate, forward_index_fn) */
static struct value t_fragment(struct eval *ev, struct call *call)
{
	struct layout_value *layout = arena_new(ev->cx->arena, struct layout_value);
	struct tabulation tab;
	int64_t replicas = 1;

	if (!tabulation_shape(ev, call->slot[0]->value, call->slot[0]->span, &tab) ||
	    !arg_int(ev, call, 3, &replicas))
		return VALUE_ERROR;
	if (!call->slot[1] && !call->slot[2])
		return ev_error(ev, DIAG_E0210, call->span,
		                "a fragment needs forward_fn or forward_thread_fn");
	layout->rank = tab.n_dims;
	memcpy(layout->shape, tab.shape, sizeof(layout->shape));
	layout->layout = fragment_of(ev, call, &tab, replicas);
	return layout->layout ? (struct value){ .kind = V_LAYOUT, .as.layout = layout } : VALUE_ERROR;
}

/* Swizzles by name */

/* The buffer that an argument names, with constant extents and at least `rank` of them. */
static const struct buffer *tile_arg(struct eval *ev, const struct call *call, uint32_t rank)
{
	struct value value = call->slot[0]->value;
	const struct buffer *buffer = NULL;

	if (value.kind == V_BUFFER)
		buffer = value.as.buffer;
	else if (value.kind == V_REGION)
		buffer = value.as.region->buffer;
	else if (value.kind == V_EXPR && value.as.expr->kind == EXPR_LOAD)
		buffer = value.as.expr->as.buffer;
	if (buffer && buffer->rank >= rank && buffer_n_elems(buffer) > 0)
		return buffer;
	if (value.kind != V_ERROR)
		ev_error(ev, DIAG_E0202, call->slot[0]->span, "%s takes a tile of at least %u dimensions",
		         call->name, rank);
	return NULL;
}

/* A memory layout as a value. */
static struct value layout_value_of(struct eval *ev, const struct layout *layout)
{
	struct layout_value *value = arena_new(ev->cx->arena, struct layout_value);

	value->rank = layout->rank;
	memcpy(value->shape, layout->shape, sizeof(value->shape));
	value->layout = layout;
	return (struct value){ .kind = V_LAYOUT, .as.layout = value };
}

/* span 0: row-major with `pad` bytes behind each row. */
static struct value swizzle_value(struct eval *ev, const struct call *call, int64_t span,
                                  int64_t pad)
{
	const struct buffer *buffer = tile_arg(ev, call, span || pad ? 2 : 1);
	const struct layout *layout;
	int64_t shape[MAX_RANK];

	if (!buffer)
		return VALUE_ERROR;
	for (uint32_t i = 0; i < buffer->rank; i++)
		shape[i] = buffer_extent(buffer, i);
	layout =
		span ? layout_swizzled(ev->cx->arena, buffer->rank, shape, dtype_bits(buffer->type), span)
			 : layout_row_major(ev->cx->arena, buffer->rank, shape, dtype_bits(buffer->type), pad);
	if (!layout)
		return ev_error(ev, DIAG_E0304, call->slot[0]->span,
		                "rows of %s are no multiple of %lld bytes, which this swizzle needs",
		                sym_text(ev->cx->names, buffer->name), (long long)span);
	return layout_value_of(ev, layout);
}

/* The widest swizzle, in bytes, whose span divides a row; 0: none. */
static int64_t widest_span(const struct buffer *buffer)
{
	int64_t row_bits = buffer_extent(buffer, buffer->rank - 1) * dtype_bits(buffer->type);

	for (int64_t span = 128; span >= 32; span /= 2) {
		if (row_bits % (span * 8) == 0)
			return span;
	}
	return 0;
}

/* make_swizzled_layout(buffer, k_major=True, allow_pad=True): padded where nothing else fits. */
static struct value make_swizzled(struct eval *ev, struct call *call)
{
	const struct buffer *buffer = tile_arg(ev, call, 2);
	bool allow_pad = strcmp(call->builtin->name, "make_swizzled_layout") == 0;
	int64_t span;

	if (!buffer || (allow_pad && !arg_bool(ev, call, 2, &allow_pad)))
		return VALUE_ERROR;
	span = dtype_bits(buffer->type) < 64 ? widest_span(buffer) : 0;
	if (!span && allow_pad &&
	    buffer_extent(buffer, buffer->rank - 1) * dtype_bits(buffer->type) % 256 == 0)
		return swizzle_value(ev, call, 0, 16);
	return swizzle_value(ev, call, span, 0);
}

/* make_full_bank_swizzled_layout(buffer): 128 bytes, all banks. */
static struct value make_full(struct eval *ev, struct call *call)
{
	return swizzle_value(ev, call, 128, 0);
}

/* make_half_bank_swizzled_layout(buffer): 64 bytes. */
static struct value make_half(struct eval *ev, struct call *call)
{
	return swizzle_value(ev, call, 64, 0);
}

/* make_quarter_bank_swizzled_layout(buffer): 32 bytes. */
static struct value make_quarter(struct eval *ev, struct call *call)
{
	return swizzle_value(ev, call, 32, 0);
}

/* make_linear_layout(buffer): row-major. */
static struct value make_linear(struct eval *ev, struct call *call)
{
	return swizzle_value(ev, call, 0, 0);
}

/* make_mma_swizzle_layout(buffer, is_smooth=False): for rows of a multiple of 64 bytes. */
static struct value make_mma_swizzle(struct eval *ev, struct call *call)
{
	const struct buffer *buffer = tile_arg(ev, call, 2);
	bool is_smooth = false;
	int64_t row_bits;

	if (!buffer || !arg_bool(ev, call, 1, &is_smooth))
		return VALUE_ERROR;
	row_bits = buffer_extent(buffer, buffer->rank - 1) * dtype_bits(buffer->type);
	if (is_smooth || row_bits % 512 != 0)
		return swizzle_value(ev, call, 0, 0);
	return swizzle_value(ev, call, row_bits == 512 ? 64 : 128, 0);
}

/*
 * get_swizzle_layout(row, column, row_size, dtype, swizzle_bytes=None): panel, row, place. The
 * 16-byte chunk of a column is XORed with the row's number within 8 rows of 128 bytes.
 */
static struct value get_swizzle(struct eval *ev, struct call *call)
{
	struct value row = call->slot[0]->value, column = call->slot[1]->value, out;
	struct value chunk, inside, panel, shift;
	int64_t row_size = 0, span = 0, per_chunk;
	struct dtype type = DTYPE_F16;

	if (!arg_int(ev, call, 2, &row_size) || !arg_dtype(ev, call, 3, &type))
		return VALUE_ERROR;
	span = row_size * dtype_bits(type) / 8 < 128 ? row_size * dtype_bits(type) / 8 : 128;
	if (!arg_int(ev, call, 4, &span))
		return VALUE_ERROR;
	if ((span != 32 && span != 64 && span != 128) || dtype_bits(type) > 128)
		return ev_error(ev, DIAG_E0304, call->span, "a swizzle spans 32, 64 or 128 bytes");
	per_chunk = 128 / dtype_bits(type);
	chunk = eval_binary(ev, AST_FLOORDIV, column, VALUE_INT(per_chunk), call->span);
	inside = eval_binary(ev, AST_MOD, column, VALUE_INT(per_chunk), call->span);
	panel = eval_binary(ev, AST_FLOORDIV, chunk, VALUE_INT(span / 16), call->span);
	chunk = eval_binary(ev, AST_MOD, chunk, VALUE_INT(span / 16), call->span);
	shift = eval_binary(ev, AST_FLOORDIV, eval_binary(ev, AST_MOD, row, VALUE_INT(8), call->span),
	                    VALUE_INT(128 / span), call->span);
	chunk = eval_binary(ev, AST_BITXOR, chunk, shift, call->span);
	chunk = eval_binary(ev, AST_MUL, chunk, VALUE_INT(per_chunk), call->span);
	out = value_sequence(ev->cx->arena, V_TUPLE);
	vec_push(ev->cx->arena, out.as.sequence, panel);
	vec_push(ev->cx->arena, out.as.sequence, row);
	vec_push(ev->cx->arena, out.as.sequence, eval_binary(ev, AST_ADD, chunk, inside, call->span));
	return out;
}

/* make_fully_replicated_layout_fragment(buffer, threads): every thread has all of it. */
static struct value make_replicated(struct eval *ev, struct call *call)
{
	const struct buffer *buffer = tile_arg(ev, call, 1);
	int64_t shape[MAX_RANK], threads = 1, stride = 1;
	struct layout *layout;

	if (!buffer || !arg_int(ev, call, 1, &threads))
		return VALUE_ERROR;
	if (threads < 1 || threads > 1024)
		return ev_error(ev, DIAG_E0309, call->span, "a thread block has 1 to 1024 threads");
	for (uint32_t i = 0; i < buffer->rank; i++)
		shape[i] = buffer_extent(buffer, i);
	layout = layout_new_fragment(ev->cx->arena, buffer->rank, shape);
	for (uint32_t i = buffer->rank; i-- > 0;) {
		layout_add_digit(layout, (struct digit){ (int)i, 1, shape[i], AXIS_SLOT, stride });
		stride *= shape[i];
	}
	layout_add_digit(layout, (struct digit){ DIM_REPLICA, 1, threads, AXIS_THREAD, 1 });
	layout_finish(layout);
	return layout_value_of(ev, layout);
}

/* Annotations */

/* Places of a map in elements, for a shape without symbols; NULL after an error. */
static int64_t *offsets_of(struct eval *ev, const struct layout_value *layout, struct span span)
{
	struct tabulation tab = { .n_dims = layout->rank, .n_elems = 1 };
	struct value places = value_sequence(ev->cx->arena, V_TUPLE);

	for (uint32_t i = 0; i < layout->rank; i++) {
		tab.shape[i] = layout->shape[i];
		tab.vars[i] = (struct var *)(uintptr_t)layout->map->index[i];
		if (layout->shape[i] < 0 ||
		    __builtin_mul_overflow(tab.n_elems, layout->shape[i], &tab.n_elems) ||
		    tab.n_elems > MAX_LAYOUT_ELEMS) {
			ev_error(ev, DIAG_E0308, span, "a tile's layout has at most %d elements",
			         MAX_LAYOUT_ELEMS);
			return NULL;
		}
	}
	for (uint32_t i = 0; i < layout->map->n; i++)
		vec_push(ev->cx->arena, places.as.sequence, VALUE_EXPR(layout->map->place[i]));
	return tabulate(ev, &tab, places, span);
}

/* Offsets in elements as a layout in bytes: digits where there is a closed form. */
static const struct layout *memory_layout(struct eval *ev, const struct buffer *buffer,
                                          const int64_t *offsets)
{
	uint32_t bits = dtype_bits(buffer->type);
	int64_t shape[MAX_RANK], n = buffer_n_elems(buffer);
	int64_t *bytes = arena_array(ev->cx->arena, int64_t, (size_t)n);
	struct layout *table, *fitted;

	for (uint32_t i = 0; i < buffer->rank; i++)
		shape[i] = buffer_extent(buffer, i);
	for (int64_t i = 0; i < n; i++)
		bytes[i] = offsets[i] * bits / 8;
	table = layout_new_memory(ev->cx->arena, buffer->rank, shape, bits);
	table->table = bytes;
	layout_finish(table);
	fitted = layout_fit(ev->cx->arena, table);
	return fitted ? fitted : table;
}

/* Does the layout have the buffer's shape? */
static bool has_shape(const struct layout_value *value, const struct buffer *buffer)
{
	bool same = value->rank == buffer->rank;

	for (uint32_t i = 0; same && i < value->rank; i++)
		same = value->shape[i] == buffer_extent(buffer, i);
	return same;
}

/* Says that the layout is for another tile. */
static bool wrong_shape(struct eval *ev, const struct buffer *buffer, struct span span)
{
	ev_error(ev, DIAG_E0303, span, "this layout has another shape than %s",
	         sym_text(ev->cx->names, buffer->name));
	ev_note(ev, buffer->span, "%s is declared here", sym_text(ev->cx->names, buffer->name));
	return false;
}

/* By the memory that the buffer is in. */
static bool set_annotation(struct eval *ev, struct buffer *buffer,
                           const struct layout_value *layout, struct span span)
{
	bool is_fragment = layout->layout && layout->layout->kind == LAYOUT_FRAGMENT;
	int64_t n = 1, *offsets;

	if (layout->layout && !has_shape(layout, buffer))
		return wrong_shape(ev, buffer, span);
	if (is_fragment != (buffer->scope == SCOPE_FRAGMENT)) {
		ev_error(ev, DIAG_E0304, span, "this is no layout for %s memory",
		         scope_text(buffer->scope));
		return false;
	}
	if (layout->layout) {
		buffer->annotation = layout->layout;
		return true;
	}
	if (buffer->scope == SCOPE_GLOBAL) {
		if (layout->rank != buffer->rank)
			return wrong_shape(ev, buffer, span);
		buffer->map = layout->map;
		return true;
	}
	for (uint32_t i = 0; i < layout->rank; i++)
		n *= layout->shape[i];
	if (n != buffer_n_elems(buffer))
		return wrong_shape(ev, buffer, span);
	offsets = offsets_of(ev, layout, span);
	buffer->annotation = offsets ? memory_layout(ev, buffer, offsets) : NULL;
	return offsets != NULL;
}

/* One entry of the map. */
static bool annotate(struct eval *ev, struct call *call, struct value key, struct value value)
{
	struct buffer *buffer = key.kind == V_BUFFER ? key.as.buffer : NULL;
	struct value shape = value_sequence(ev->cx->arena, V_TUPLE);

	if (!buffer || buffer->scope == SCOPE_VAR) {
		ev_error(ev, DIAG_E0202, call->slot[0]->span, "layouts are annotated to tiles, not to %s",
		         value_type_text(key));
		return false;
	}
	trace_use(ev, buffer);
	for (uint32_t i = 0; i < buffer->rank; i++)
		vec_push(ev->cx->arena, shape.as.sequence, device_value(buffer->shape[i]));
	if (value.kind == V_FUNCTION)
		value = layout_of_function(ev, call, shape, value);
	if (value.kind == V_OPAQUE)
		ev_unsettled(ev, value, call->slot[0]->span, "this layout");
	else if (value.kind != V_LAYOUT && value.kind != V_ERROR)
		ev_error(ev, DIAG_E0202, call->slot[0]->span, "a layout is needed here, not %s",
		         value_type_text(value));
	if (value.kind != V_LAYOUT)
		return false;
	return set_annotation(ev, buffer, value.as.layout, call->slot[0]->span);
}

/* T.annotate_layout({buffer: layout, ...}) */
static struct value t_annotate_layout(struct eval *ev, struct call *call)
{
	struct value map = call->slot[0]->value;
	bool ok = true;

	if (!trace_require(ev, call->span, call->name))
		return VALUE_ERROR;
	if (map.kind != V_DICT)
		return ev_error(ev, DIAG_E0202, call->slot[0]->span, "%s takes a dict, not %s", call->name,
		                value_type_text(map));
	for (uint32_t i = 0; i < map.as.dict->n; i++)
		ok = annotate(ev, call, map.as.dict->p[i].key, map.as.dict->p[i].value) && ok;
	return ok ? VALUE_NONE : VALUE_ERROR;
}

/* T.annotate_safe_value({tensor: value, ...}): what reads past a tensor's ends give. */
static struct value t_annotate_safe_value(struct eval *ev, struct call *call)
{
	struct value map = call->slot[0]->value;

	if (!trace_require(ev, call->span, call->name))
		return VALUE_ERROR;
	if (map.kind != V_DICT)
		return ev_error(ev, DIAG_E0202, call->slot[0]->span, "%s takes a dict, not %s", call->name,
		                value_type_text(map));
	for (uint32_t i = 0; i < map.as.dict->n; i++) {
		struct value key = map.as.dict->p[i].key;
		struct buffer *buffer = key.kind == V_BUFFER ? key.as.buffer : NULL;
		const struct expr *value;

		if (!buffer || buffer->scope != SCOPE_GLOBAL)
			return ev_error(ev, DIAG_E0202, call->slot[0]->span,
			                "values past the ends are annotated to tensors, not to %s",
			                value_type_text(key));
		value = device_expr(ev, map.as.dict->p[i].value, &buffer->type, call->slot[0]->span);
		if (!value)
			return VALUE_ERROR;
		value = expr_cast(ev->pool, buffer->type, value);
		if (value->kind != EXPR_INT && value->kind != EXPR_FLOAT)
			return ev_error(ev, DIAG_E0202, call->slot[0]->span, "this value must be constant");
		buffer->outside = value;
	}
	return VALUE_NONE;
}

static const struct builtin rows[] = {
#define T "tilelang.language"
#define LAYOUT(module) \
	{ module, "make_swizzled_layout", "buffer k_major? allow_pad?", make_swizzled }, \
		{ module, "make_wgmma_swizzled_layout", "buffer continuity? k_major?", make_swizzled }, \
		{ module, "make_full_bank_swizzled_layout", "buffer", make_full }, \
		{ module, "make_half_bank_swizzled_layout", "buffer", make_half }, \
		{ module, "make_quarter_bank_swizzled_layout", "buffer", make_quarter }, \
		{ module, "make_linear_layout", "buffer", make_linear }, \
		{ module, "make_fully_replicated_layout_fragment", "buffer threads", make_replicated }, \
		{ module, "Layout", "shape forward_fn", t_layout }, \
	{ \
		module, "Fragment", "shape forward_fn? forward_thread_fn? replicate? forward_index_fn?", \
			t_fragment \
	}
#define INTRINSICS(module) \
	{ module, "make_mma_swizzle_layout", "shared_buf is_smooth?", make_mma_swizzle }, \
	{ \
		module, "get_swizzle_layout", "row_idx col_idx row_size dtype swizzle_bytes?", get_swizzle \
	}
	LAYOUT("tilelang.layout"),
	INTRINSICS("tilelang.intrinsics"),
	INTRINSICS("tilelang.cuda.intrinsics"),
	INTRINSICS("tilelang.cuda.intrinsics.layout"),
	INTRINSICS("tilelang.cuda.intrinsics.layout.mma_layout"),
#undef INTRINSICS
	LAYOUT(T),
	{ T, "annotate_layout", "layout_map", t_annotate_layout },
	{ T, "annotate_safe_value", "safe_value_map", t_annotate_safe_value },
#undef LAYOUT
#undef T
};

const struct builtin_table lang_layouts = { rows, sizeof(rows) / sizeof(*rows) };
