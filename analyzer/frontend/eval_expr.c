/*
 * Expressions at both levels: what is known on the host folds, what depends on the device becomes
 * an expression of the tile program.
 *
 *     T.ceildiv(M, 128)    8, when M is 1024
 *     by * 128 + i         an expression
 *     a if M > 64 else b   one of the two
 *     a if i < n else b    select(i < n, a, b)
 *
 * An operation on something unknown is unknown, from the same place; one that has failed gives an
 * error value, which all others pass on in silence.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* Empty containers and zero are false; what the device decides has no truth here. */
int eval_truth(struct value value)
{
	double number;

	if (value_number(value, &number))
		return number != 0;
	if (value.kind == V_NONE)
		return 0;
	if (value.kind == V_STR)
		return value.as.string.n != 0;
	if (value_is_sequence(value))
		return value.as.sequence->n != 0;
	if (value.kind == V_DICT)
		return value.as.dict->n != 0;
	if (value.kind == V_RANGE)
		return range_count(value.as.range) != 0;
	if (value.kind == V_ERROR || value.kind == V_OPAQUE || value.kind == V_EXPR ||
	    value.kind == V_REGION)
		return -1;
	if (value.kind == V_BUFFER)
		return value.as.buffer->scope == SCOPE_VAR ? -1 : 1;
	return 1;
}

/* Is the name in the list? */
static bool holds(const sym_t *names, uint32_t n, sym_t name)
{
	for (uint32_t i = 0; i < n; i++) {
		if (names[i] == name)
			return true;
	}
	return false;
}

/*
 * The binding that a name refers to, or NULL: in the innermost frame that has it, in the module's
 * for names that are declared global there.
 */
static struct binding *find_binding(struct eval *ev, struct frame *frame, sym_t name)
{
	for (; frame; frame = frame->parent) {
		struct binding *binding;

		if (holds(frame->globals.p, frame->globals.n, name))
			return frame_find(ev->globals, name);
		binding = frame_find(frame, name);
		if (binding)
			return binding;
	}
	return NULL;
}

/* The nearest name that is bound, or NULL. */
static const char *nearest_binding(struct eval *ev, struct frame *frame, sym_t name)
{
	vec_of(const char *) names = { 0 };

	for (; frame; frame = frame->parent) {
		for (uint32_t i = 0; i < frame->names.n; i++)
			vec_push(ev->cx->arena, &names,
			         sym_text(ev->cx->names, (sym_t)frame->names.entries[i].key));
	}
	for (uint32_t i = 0; i < host_builtins.n; i++)
		vec_push(ev->cx->arena, &names, host_builtins.p[i].name);
	return nearest_name(sym_text(ev->cx->names, name), names.p, names.n);
}

/* Python's order: the function, those around it, the module, the builtins. */
struct value eval_name(struct eval *ev, struct frame *frame, sym_t name, struct span span)
{
	const struct binding *binding = find_binding(ev, frame, name);
	const struct builtin *builtin;
	const char *text = sym_text(ev->cx->names, name), *nearest;
	struct value result;

	if (binding && binding->is_dead) {
		result =
			ev_error(ev, DIAG_E0218, span, "%s is bound only inside a block that has ended", text);
		ev_note(ev, binding->block, "the block is this one");
		ev_help(
			ev,
			"keep the value in a T.alloc_var or in a buffer, or bind the name before the block");
		return result;
	}
	if (binding)
		return binding->value;
	builtin = find_builtin(ev, "", name);
	if (builtin)
		return (struct value){ .kind = V_BUILTIN, .as.builtin = builtin };
	if (strcmp(text, "__name__") == 0)
		return VALUE_STR(str_of("__main__"));
	if (strcmp(text, "__file__") == 0)
		return ev_opaque(ev, span, NULL);
	result = ev_error(ev, DIAG_E0201, span, "%s is not defined", text);
	nearest = ev->has_reported ? nearest_binding(ev, frame, name) : NULL;
	if (nearest)
		ev_help(ev, "did you mean %s?", nearest);
	return result;
}

/* Elements of a display in order; a starred one adds its own elements. */
static struct value eval_items(struct eval *ev, struct frame *frame, const struct ast_expr *e,
                               enum value_kind kind)
{
	struct value result = value_sequence(ev->cx->arena, kind);
	struct sequence *out = result.as.sequence;

	for (uint32_t i = 0; i < e->as.items.n; i++) {
		const struct ast_expr *item = e->as.items.p[i];
		bool is_starred = item->kind == EX_STARRED;
		struct value value = eval_expr(ev, frame, is_starred ? item->as.starred : item);

		if (value.kind == V_ERROR)
			return value;
		if (is_starred && value.kind == V_OPAQUE)
			return value;
		if (is_starred && !eval_elements(ev, value, item->span, out))
			return VALUE_ERROR;
		if (!is_starred)
			vec_push(ev->cx->arena, out, value);
	}
	return result;
}

/* Later keys win, also those of **more. */
static struct value eval_dict(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct value result = { .kind = V_DICT };

	result.as.dict = arena_new(ev->cx->arena, struct dict);
	for (uint32_t i = 0; i < e->as.pairs.n; i++) {
		const struct ast_pair *pair = &e->as.pairs.p[i];
		struct value key = pair->key ? eval_expr(ev, frame, pair->key) : VALUE_NONE;
		struct value value = eval_expr(ev, frame, pair->value);

		if (key.kind == V_ERROR || value.kind == V_ERROR)
			return VALUE_ERROR;
		if (pair->key) {
			dict_set(ev->cx->arena, result.as.dict, key, value);
			continue;
		}
		if (value.kind != V_DICT)
			return value.kind == V_OPAQUE
			           ? value
			           : ev_error(ev, DIAG_E0202, pair->value->span, "'**' needs a dict, not %s",
			                      value_type_text(value));
		for (uint32_t j = 0; j < value.as.dict->n; j++)
			dict_set(ev->cx->arena, result.as.dict, value.as.dict->p[j].key,
			         value.as.dict->p[j].value);
	}
	return result;
}

/*
 * Applies a format such as "4d", ".3f" or "x" to a number; other formats are left out. Only
 * characters that cannot make the C format dangerous come through: digits, signs and the point,
 * then one conversion.
 */
static void format_value(struct buf *out, struct value value, struct str format)
{
	char spec[24], text[80];
	char last = format.n ? format.p[format.n - 1] : 0;
	double number;
	int64_t integer;

	if (format.n == 0 || format.n > 12 || !last ||
	    strspn(format.p, "0123456789.-+") < format.n - 1u) {
		value_print(out, value, false, 0);
	} else if (strchr("dxXo", last) && value_int(value, &integer)) {
		snprintf(spec, sizeof(spec), "%%%.*sll%c", (int)format.n - 1, format.p, last);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), spec, (long long)integer);
		buf_text(out, text);
	} else if (strchr("eEfFgG", last) && value_number(value, &number)) {
		snprintf(spec, sizeof(spec), "%%%.*s", (int)format.n, format.p);
		snprintf(text, sizeof(text), spec, number);
#pragma GCC diagnostic pop
		buf_text(out, text);
	} else {
		value_print(out, value, false, 0);
	}
}

/* An unknown piece makes the whole string unknown. */
static struct value eval_fstring(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct buf out = { 0 };
	struct value result = VALUE_NONE;

	for (uint32_t i = 0; i < e->as.pieces.n && result.kind == V_NONE; i++) {
		const struct ast_piece *piece = &e->as.pieces.p[i];
		struct value value;

		if (!piece->value) {
			buf_add(&out, piece->text.p, piece->text.n);
			continue;
		}
		value = eval_expr(ev, frame, piece->value);
		if (value.kind == V_ERROR || value.kind == V_OPAQUE)
			result = value;
		buf_add(&out, piece->source.p ? piece->source.p : "", piece->source.n);
		if (piece->conversion == 'r' || piece->source.n)
			value_print(&out, value, true, 0);
		else
			format_value(&out, value, piece->format);
	}
	if (result.kind == V_NONE)
		result = value_text(ev->cx->arena, buf_cstr(&out), out.n);
	buf_free(&out);
	return result;
}

/* Host numbers fold, device values become expressions. */
static struct value eval_unary(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct value a = eval_expr(ev, frame, e->as.unary.operand);
	int64_t i;
	int truth;

	if (a.kind == V_ERROR || a.kind == V_OPAQUE)
		return a;
	if (e->as.unary.op == AST_NOT) {
		truth = eval_truth(a);
		return truth >= 0 ? VALUE_BOOL(!truth) : device_unary(ev, AST_NOT, a, e->span);
	}
	if (value_is_device(a))
		return device_unary(ev, e->as.unary.op, a, e->span);
	if (value_int(a, &i)) {
		if (e->as.unary.op == AST_INVERT)
			return VALUE_INT(~i);
		if (e->as.unary.op == AST_POS)
			return VALUE_INT(i);
		return i == INT64_MIN
		           ? ev_error(ev, DIAG_E0214, e->span, "this result does not fit 64 bits")
		           : VALUE_INT(-i);
	}
	if (a.kind == V_FLOAT && e->as.unary.op != AST_INVERT)
		return VALUE_FLOAT(e->as.unary.op == AST_NEG ? -a.as.number : a.as.number);
	return ev_error(ev, DIAG_E0202, e->span, "%s has no unary '%s'", value_type_text(a),
	                e->as.unary.op == AST_INVERT ? "~" : "-");
}

/*
 * and, or: the right side only when it counts. With a device value on the left both sides are
 * computed and joined, as the device has no other way to decide.
 */
static struct value eval_logical(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	bool is_and = e->kind == EX_AND;
	struct value a = eval_expr(ev, frame, e->as.binary.left), b;
	int truth = eval_truth(a);

	if (a.kind == V_ERROR || a.kind == V_OPAQUE)
		return a;
	if (truth >= 0)
		return truth == (int)is_and ? eval_expr(ev, frame, e->as.binary.right) : a;
	ev->n_lazy++;
	b = eval_expr(ev, frame, e->as.binary.right);
	ev->n_lazy--;
	if (b.kind == V_ERROR)
		return b;
	truth = eval_truth(b);
	if (truth >= 0 && b.kind == V_BOOL)
		return truth == (int)is_and ? a : b;
	return device_logical(ev, is_and, a, b, e->span);
}

/* a < b < c is a < b and b < c, with b evaluated once. */
static struct value eval_comparison(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct value left = eval_expr(ev, frame, e->as.compare.left), all = VALUE_BOOL(true);

	for (uint32_t i = 0; i < e->as.compare.rest.n; i++) {
		const struct ast_comparison *c = &e->as.compare.rest.p[i];
		struct value right = eval_expr(ev, frame, c->right);
		struct value one = eval_compare(ev, c->op, left, right, e->span);

		if (one.kind == V_ERROR || one.kind == V_OPAQUE)
			return one;
		if (eval_truth(one) == 0)
			return one;
		if (all.kind == V_BOOL)
			all = one;
		else if (eval_truth(one) < 0)
			all = device_logical(ev, true, all, one, e->span);
		left = right;
	}
	return all;
}

/* Only the chosen side is evaluated when the host knows the condition. */
static struct value eval_ternary(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct value condition = eval_expr(ev, frame, e->as.ternary.condition), a, b;
	int truth = eval_truth(condition);

	if (condition.kind == V_ERROR)
		return condition;
	if (condition.kind == V_OPAQUE)
		return ev->trace ? ev_unsettled(ev, condition, e->as.ternary.condition->span, "this choice")
		                 : condition;
	if (truth >= 0)
		return eval_expr(ev, frame, truth ? e->as.ternary.then : e->as.ternary.otherwise);
	ev->n_lazy++;
	a = eval_expr(ev, frame, e->as.ternary.then);
	b = eval_expr(ev, frame, e->as.ternary.otherwise);
	ev->n_lazy--;
	if (a.kind == V_ERROR || b.kind == V_ERROR)
		return VALUE_ERROR;
	return device_select(ev, condition, a, b, e->span);
}

/*
 * Elements of an iterable behind those that `out` has. Every element counts as a step, so that an
 * endless range ends with a message.
 */
bool eval_elements(struct eval *ev, struct value iterable, struct span span, struct sequence *out)
{
	struct arena *arena = ev->cx->arena;

	if (iterable.kind == V_DTYPE) /* types are strings in TileLang */
		iterable = eval_attribute(ev, iterable, intern_text(ev->cx->names, "name"), span);
	if (value_is_sequence(iterable)) {
		for (uint32_t i = 0; i < iterable.as.sequence->n && ev_step(ev, span); i++)
			vec_push(arena, out, iterable.as.sequence->p[i]);
	} else if (iterable.kind == V_RANGE) {
		int64_t n = range_count(iterable.as.range);

		for (int64_t i = 0; i < n && ev_step(ev, span); i++)
			vec_push(arena, out, VALUE_INT(iterable.as.range->begin + i * iterable.as.range->step));
	} else if (iterable.kind == V_DICT) {
		for (uint32_t i = 0; i < iterable.as.dict->n && ev_step(ev, span); i++)
			vec_push(arena, out, iterable.as.dict->p[i].key);
	} else if (iterable.kind == V_STR) {
		for (uint32_t at = 0; at < iterable.as.string.n && ev_step(ev, span);) {
			uint32_t begin = at;

			str_char_at(iterable.as.string, &at);
			vec_push(arena, out,
			         VALUE_STR(((struct str){ iterable.as.string.p + begin, at - begin })));
		}
	} else {
		if (iterable.kind == V_OPAQUE && ev->is_strict)
			ev_unsettled(ev, iterable, span, "this list");
		else if (iterable.kind != V_ERROR)
			ev_error(ev, DIAG_E0202, span, "%s is not iterable on the host",
			         value_type_text(iterable));
		return false;
	}
	return !ev->is_fatal;
}

/* A comprehension in progress. */
struct comprehension {
	const struct ast_expr *e;
	struct value result;
	struct value stopped; /* V_NONE while all is well */
};

/* Adds one element to the result. */
static void comprehension_element(struct eval *ev, struct frame *frame, struct comprehension *c)
{
	const struct ast_expr *e = c->e;
	struct value key = VALUE_NONE, value;

	if (e->as.comprehension.collection == AST_DICT_OF)
		key = eval_expr(ev, frame, e->as.comprehension.key);
	value = eval_expr(ev, frame, e->as.comprehension.value);
	if (key.kind == V_ERROR || value.kind == V_ERROR)
		c->stopped = VALUE_ERROR;
	else if (e->as.comprehension.collection == AST_DICT_OF)
		dict_set(ev->cx->arena, c->result.as.dict, key, value);
	else
		vec_push(ev->cx->arena, c->result.as.sequence, value);
}

/* One `for` of the comprehension with all that is inside it. */
static void comprehension_clause(struct eval *ev, struct frame *frame, struct comprehension *c,
                                 uint32_t clause)
{
	const struct ast_for *loop = &c->e->as.comprehension.clauses.p[clause];
	struct value iterable = eval_expr(ev, frame, loop->iterable);
	struct sequence items = { 0 };

	if (iterable.kind == V_OPAQUE || iterable.kind == V_ERROR ||
	    !eval_elements(ev, iterable, loop->iterable->span, &items)) {
		c->stopped = iterable.kind == V_OPAQUE ? iterable : VALUE_ERROR;
		return;
	}
	for (uint32_t i = 0; i < items.n && c->stopped.kind == V_NONE; i++) {
		bool is_kept = true;

		if (!assign_target(ev, frame, loop->target, items.p[i]))
			c->stopped = VALUE_ERROR;
		for (uint32_t j = 0; j < loop->conditions.n && is_kept && c->stopped.kind == V_NONE; j++) {
			struct value condition = eval_expr(ev, frame, loop->conditions.p[j]);
			int truth = eval_truth(condition);

			is_kept = truth == 1;
			if (truth < 0)
				c->stopped = condition.kind == V_OPAQUE ? condition : VALUE_ERROR;
		}
		if (!is_kept || c->stopped.kind != V_NONE)
			continue;
		if (clause + 1 < c->e->as.comprehension.clauses.n)
			comprehension_clause(ev, frame, c, clause + 1);
		else
			comprehension_element(ev, frame, c);
	}
}

/*
 * A generator is built as a list: nothing that kernels do can tell them apart. Its variables live
 * in a frame of their own (Python reference, "Displays for lists, sets and dictionaries").
 */
static struct value eval_comprehension(struct eval *ev, struct frame *frame,
                                       const struct ast_expr *e)
{
	static const enum value_kind kinds[] = {
		[AST_LIST_OF] = V_LIST,
		[AST_SET_OF] = V_SET,
		[AST_DICT_OF] = V_DICT,
		[AST_GENERATOR_OF] = V_LIST,
	};
	struct comprehension c = { .e = e, .stopped = VALUE_NONE };
	struct frame *inner = new_frame(ev, frame, NULL);

	c.result = value_sequence(ev->cx->arena, kinds[e->as.comprehension.collection]);
	if (c.result.kind == V_DICT)
		c.result.as.dict = arena_new(ev->cx->arena, struct dict);
	comprehension_clause(ev, inner, &c, 0);
	return c.stopped.kind == V_NONE ? c.result : c.stopped;
}

/* Three values; None where a part is absent. */
static struct value eval_slice(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	const struct ast_expr *const parts[3] = { e->as.slice.begin, e->as.slice.end,
		                                      e->as.slice.step };
	struct value result = { .kind = V_SLICE };

	result.as.slice = arena_array(ev->cx->arena, struct value, 3);
	for (int i = 0; i < 3; i++) {
		result.as.slice[i] = parts[i] ? eval_expr(ev, frame, parts[i]) : VALUE_NONE;
		if (result.as.slice[i].kind == V_ERROR)
			return VALUE_ERROR;
	}
	return result;
}

/* An element of something unknown is unknown. */
static struct value eval_subscript_expr(struct eval *ev, struct frame *frame,
                                        const struct ast_expr *e)
{
	struct value object = eval_expr(ev, frame, e->as.subscript.object), index;

	if (object.kind == V_ERROR || object.kind == V_OPAQUE || object.kind == V_KERNEL)
		return object.kind == V_KERNEL ? ev_opaque(ev, e->span, NULL) : object;
	index = eval_expr(ev, frame, e->as.subscript.index);
	if (index.kind == V_ERROR)
		return index;
	return eval_subscript(ev, object, index, e);
}

/* A function whose body is an expression. */
static struct value eval_lambda(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct function *function = new_function(ev, frame, &e->as.lambda.params);

	if (!function)
		return VALUE_ERROR;
	function->lambda = e;
	return (struct value){ .kind = V_FUNCTION, .as.function = function };
}

/* The known shape of a host tensor. */
static struct value shape_of(struct eval *ev, const struct tensor_dims *dims)
{
	struct value shape = value_sequence(ev->cx->arena, V_TUPLE);

	for (uint32_t i = 0; i < dims->rank; i++)
		vec_push(ev->cx->arena, shape.as.sequence, VALUE_INT(dims->extent[i]));
	return shape;
}

/* Is it a method of tensors that leaves the shape alone? Names of PyTorch's methods. */
static bool keeps_shape(const char *name)
{
	static const char *const names[] = { "cuda",     "to",         "half",          "float",
		                                 "bfloat16", "clone",      "clamp",         "detach",
		                                 "normal_",  "contiguous", "requires_grad_" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* Of a host tensor the shape is known, also behind .cuda() and its kin. */
static struct value opaque_attribute(struct eval *ev, struct value object, const struct ast_expr *e)
{
	const char *name = sym_text(ev->cx->names, e->as.attribute.name);
	const struct tensor_dims *dims = object.as.opaque->dims;
	struct value result = ev_opaque(ev, e->span, NULL);

	if (dims && strcmp(name, "shape") == 0)
		return shape_of(ev, dims);
	if (dims && keeps_shape(name))
		((struct opaque *)(uintptr_t)result.as.opaque)->dims = dims;
	return result;
}

/* An attribute of something unknown is unknown, and says so in its own words. */
static struct value eval_attribute_expr(struct eval *ev, struct frame *frame,
                                        const struct ast_expr *e)
{
	struct value object = eval_expr(ev, frame, e->as.attribute.object);

	if (object.kind == V_ERROR)
		return object;
	if (object.kind == V_OPAQUE)
		return opaque_attribute(ev, object, e);
	return eval_attribute(ev, object, e->as.attribute.name, e->as.attribute.name_span);
}

/* Both operands, left first. */
static struct value eval_binary_expr(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct value a = eval_expr(ev, frame, e->as.binary.left);
	struct value b = eval_expr(ev, frame, e->as.binary.right);

	return eval_binary(ev, e->as.binary.op, a, b, e->span);
}

/* Binds in the function, not in a comprehension inside it. */
static struct value eval_walrus(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct value value = eval_expr(ev, frame, e->as.walrus.value);

	while (frame->parent && !frame->function)
		frame = frame->parent; /* a comprehension binds in the function around it */
	bind_name(ev, frame, e->as.walrus.name, value);
	return value;
}

/* One expression of any kind. */
static struct value eval_kind(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	switch (e->kind) {
	case EX_BAD:
		return VALUE_ERROR;
	case EX_NONE:
		return VALUE_NONE;
	case EX_BOOL:
		return VALUE_BOOL(e->as.boolean);
	case EX_INT:
		if (e->as.integer.is_huge)
			return ev_error(ev, DIAG_E0214, e->span, "this number does not fit 64 bits");
		return VALUE_INT(e->as.integer.value);
	case EX_FLOAT:
		return VALUE_FLOAT(e->as.number);
	case EX_STRING:
		return VALUE_STR(e->as.string);
	case EX_FSTRING:
		return eval_fstring(ev, frame, e);
	case EX_ELLIPSIS:
		return (struct value){ .kind = V_ELLIPSIS };
	case EX_NAME:
		return eval_name(ev, frame, e->as.name, e->span);
	case EX_TUPLE:
		return eval_items(ev, frame, e, V_TUPLE);
	case EX_LIST:
		return eval_items(ev, frame, e, V_LIST);
	case EX_SET:
		return eval_items(ev, frame, e, V_SET);
	case EX_DICT:
		return eval_dict(ev, frame, e);
	case EX_UNARY:
		return eval_unary(ev, frame, e);
	case EX_BINARY:
		return eval_binary_expr(ev, frame, e);
	case EX_AND:
	case EX_OR:
		return eval_logical(ev, frame, e);
	case EX_COMPARE:
		return eval_comparison(ev, frame, e);
	case EX_TERNARY:
		return eval_ternary(ev, frame, e);
	case EX_LAMBDA:
		return eval_lambda(ev, frame, e);
	case EX_CALL:
		return eval_call(ev, frame, e);
	case EX_ATTRIBUTE:
		return eval_attribute_expr(ev, frame, e);
	case EX_SUBSCRIPT:
		return eval_subscript_expr(ev, frame, e);
	case EX_SLICE:
		return eval_slice(ev, frame, e);
	case EX_STARRED:
		return ev_error(ev, DIAG_E0108, e->span, "a starred expression has no meaning here");
	case EX_COMPREHENSION:
		return eval_comprehension(ev, frame, e);
	case EX_WALRUS:
		return eval_walrus(ev, frame, e);
	case EX_YIELD:
		return ev_error(ev, DIAG_E0217, e->span, "yield and await are not supported");
	}
	BUG("expression kind %d", (int)e->kind);
}

/* Device expressions share their parts, but are written out as trees: the tree must stay small. */
static struct value bounded(struct eval *ev, struct value value, struct span span)
{
	enum { MAX_NODES = 20000, MAX_HEIGHT = 500 };
	uint32_t height, nodes = device_weight(ev, value.as.expr, &height);
	struct value result;

	if (nodes <= MAX_NODES && height <= MAX_HEIGHT)
		return value;
	result = ev_error(ev, DIAG_E0212, span, "this device expression has too many parts");
	ev_help(ev, "give parts of it names, or keep them in a T.alloc_var");
	return result;
}

/* Every expression is a step and a level of nesting. */
struct value eval_expr(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct value value;

	if (!ev_enter(ev, e->span))
		return VALUE_ERROR;
	value = eval_kind(ev, frame, e);
	ev_leave(ev);
	return value.kind == V_EXPR ? bounded(ev, value, e->span) : value;
}
