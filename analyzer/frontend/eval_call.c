/*
 * Calls: arguments, Python functions, and builtins by their signatures.
 *
 * Python functions bind as in Python: positional arguments, keywords, *args, **kwargs, defaults. A
 * builtin's signature is a text, "src dst | coalesced_width", which gives each parameter a slot;
 * the handlers in host_*.c and lang_*.c read the slots.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* One table for the functions of all modules and types. */
static uint64_t builtin_key(const char *module, const char *name)
{
	return hash_bytes(name, strlen(name), hash_bytes(module, strlen(module), 1));
}

/* Fills the table of builtins; a name that stands twice in it is a mistake of ours. */
void builtins_init(struct eval *ev)
{
	const struct builtin_table *const tables[] = {
		&host_builtins, &host_methods, &host_modules, &host_device,  &lang_scalars,  &lang_ops,
		&lang_shapes,   &lang_eager,   &lang_layouts, &lang_atomics, &lang_barriers, &lang_tiles,
		&lang_memory,   &lang_blocks,  &lang_calls,   &lang_hints,   &lang_logical,
	};

	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
		for (uint32_t i = 0; i < tables[t]->n; i++) {
			const struct builtin *builtin = &tables[t]->p[i];
			struct map_entry *entry =
				map_at(ev->cx->arena, &ev->builtins, builtin_key(builtin->module, builtin->name));

			assert(!entry->value.pointer && "two builtins of one name");
			entry->value.pointer = (void *)(uintptr_t)builtin;
		}
	}
}

/* The name is compared again, as two names may share a hash. */
const struct builtin *find_builtin(const struct eval *ev, const char *module, sym_t name)
{
	const char *text = sym_text(ev->cx->names, name);
	const struct builtin *found = map_get(&ev->builtins, builtin_key(module, text));

	return found && strcmp(found->name, text) == 0 && strcmp(found->module, module) == 0 ? found
	                                                                                     : NULL;
}

/* Defaults are evaluated where the function is defined, once, as in Python. */
struct function *new_function(struct eval *ev, struct frame *frame, const struct ast_params *params)
{
	struct function *function = arena_new(ev->cx->arena, struct function);

	function->params = params;
	function->closure = frame;
	function->defaults = arena_array(ev->cx->arena, struct value, params->n);
	for (uint32_t i = 0; i < params->n; i++) {
		if (!params->p[i].default_value)
			continue;
		function->defaults[i] = eval_expr(ev, frame, params->p[i].default_value);
		if (function->defaults[i].kind == V_ERROR)
			return NULL;
	}
	return function;
}

/* Arguments */

/* *args adds positional arguments, **kwargs named ones. */
static bool push_star_args(struct eval *ev, struct call *call, const struct ast_arg *arg,
                           struct value value)
{
	struct sequence items = { 0 };

	if (!arg->is_double_star) {
		if (!eval_elements(ev, value, arg->span, &items))
			return false;
		for (uint32_t i = 0; i < items.n; i++)
			vec_push(ev->cx->arena, &call->args,
			         (struct arg){ 0, items.p[i], arg->span, arg->span });
		return true;
	}
	if (value.kind != V_DICT) {
		ev_error(ev, DIAG_E0202, arg->span, "'**' needs a dict, not %s", value_type_text(value));
		return false;
	}
	for (uint32_t i = 0; i < value.as.dict->n; i++) {
		const struct dict_entry *entry = &value.as.dict->p[i];

		if (entry->key.kind != V_STR) {
			ev_error(ev, DIAG_E0202, arg->span, "keywords must be strings");
			return false;
		}
		vec_push(ev->cx->arena, &call->args,
		         (struct arg){ intern(ev->cx->names, entry->key.as.string), entry->value, arg->span,
		                       arg->span });
	}
	return true;
}

/* Evaluates the arguments. On an unknown *args or **kwargs gives false with *opaque set. */
static bool eval_args(struct eval *ev, struct frame *frame, const struct ast_args *args,
                      struct call *call, struct value *opaque)
{
	bool ok = true;

	for (uint32_t i = 0; i < args->n; i++) {
		const struct ast_arg *arg = &args->p[i];
		struct value value = eval_expr(ev, frame, arg->value);

		if (value.kind == V_ERROR) {
			ok = false;
		} else if ((arg->is_star || arg->is_double_star) && value.kind == V_OPAQUE) {
			*opaque = value;
			ok = false;
		} else if (arg->is_star || arg->is_double_star) {
			ok = push_star_args(ev, call, arg, value) && ok;
		} else {
			vec_push(ev->cx->arena, &call->args,
			         (struct arg){ arg->name, value, arg->value->span, arg->span });
		}
	}
	return ok;
}

/* User functions */

/* The parameter that a keyword may name, or -1. */
static int find_param(const struct ast_params *params, sym_t name)
{
	for (uint32_t i = 0; i < params->n; i++) {
		if (params->p[i].name == name && params->p[i].kind != AST_STAR &&
		    params->p[i].kind != AST_DOUBLE_STAR)
			return (int)i;
	}
	return -1;
}

/* The first parameter of this kind, or -1: there is at most one with a star. */
static int find_param_kind(const struct ast_params *params, enum ast_param_kind kind)
{
	for (uint32_t i = 0; i < params->n; i++) {
		if (params->p[i].kind == kind)
			return (int)i;
	}
	return -1;
}

struct binder {
	const struct function *function;
	struct call *call;
	struct frame *frame;
	bool *given;
	struct value star;        /* tuple for *args; V_NONE without */
	struct value double_star; /* dict for **kwargs */
	uint32_t next;            /* positional parameter to fill next */
};

/* The next plain parameter, or *args when all are taken. */
static bool bind_positional(struct eval *ev, struct binder *b, const struct arg *arg)
{
	const struct ast_params *params = b->function->params;

	if (b->next < params->n && params->p[b->next].kind == AST_PLAIN) {
		bind_name(ev, b->frame, params->p[b->next].name, arg->value);
		b->given[b->next++] = true;
		return true;
	}
	if (b->star.kind == V_TUPLE) {
		vec_push(ev->cx->arena, b->star.as.sequence, arg->value);
		return true;
	}
	ev_error(ev, DIAG_E0210, arg->span, "%s takes %u positional arguments, this is one more",
	         b->call->name, b->next);
	return false;
}

/* The parameter of that name, or **kwargs. */
static bool bind_keyword(struct eval *ev, struct binder *b, const struct arg *arg)
{
	const struct ast_params *params = b->function->params;
	const char *text = sym_text(ev->cx->names, arg->name);
	int i = find_param(params, arg->name);

	if (i >= 0 && b->given[i]) {
		ev_error(ev, DIAG_E0210, arg->whole, "%s gets %s twice", b->call->name, text);
		return false;
	}
	if (i >= 0) {
		bind_name(ev, b->frame, arg->name, arg->value);
		b->given[i] = true;
		return true;
	}
	if (b->double_star.kind == V_DICT) {
		dict_set(ev->cx->arena, b->double_star.as.dict, VALUE_STR(str_of(text)), arg->value);
		return true;
	}
	if (b->function->is_factory && strncmp(text, "__", 2) == 0)
		return true; /* for the decorator, not for the factory */
	ev_error(ev, DIAG_E0210, arg->whole, "%s has no parameter %s", b->call->name, text);
	return false;
}

/* All arguments of the call in the frame of the function; false after an error. */
static bool bind_params(struct eval *ev, struct binder *b)
{
	const struct ast_params *params = b->function->params;
	int star = find_param_kind(params, AST_STAR),
		double_star = find_param_kind(params, AST_DOUBLE_STAR);

	b->star = b->double_star = VALUE_NONE;
	if (star >= 0)
		b->star = value_sequence(ev->cx->arena, V_TUPLE);
	if (double_star >= 0) {
		b->double_star.kind = V_DICT;
		b->double_star.as.dict = arena_new(ev->cx->arena, struct dict);
	}
	for (uint32_t i = 0; i < b->call->args.n; i++) {
		const struct arg *arg = &b->call->args.p[i];

		if (!(arg->name ? bind_keyword(ev, b, arg) : bind_positional(ev, b, arg)))
			return false;
	}
	if (star >= 0)
		bind_name(ev, b->frame, params->p[star].name, b->star);
	if (double_star >= 0)
		bind_name(ev, b->frame, params->p[double_star].name, b->double_star);
	return true;
}

/* Defaults for what was not given; an error for what has none. */
static bool bind_defaults(struct eval *ev, const struct binder *b)
{
	const struct ast_params *params = b->function->params;

	for (uint32_t i = 0; i < params->n; i++) {
		if (b->given[i] || params->p[i].kind == AST_STAR || params->p[i].kind == AST_DOUBLE_STAR)
			continue;
		if (!params->p[i].default_value) {
			ev_error(ev, DIAG_E0210, b->call->span, "%s misses its argument %s", b->call->name,
			         sym_text(ev->cx->names, params->p[i].name));
			ev_note(ev, params->p[i].span, "the parameter is declared here");
			return false;
		}
		bind_name(ev, b->frame, params->p[i].name, b->function->defaults[i]);
	}
	return true;
}

/* A failed statement in a helper of a kernel makes its result an error, which stays silent. */
struct value call_body(struct eval *ev, const struct function *function, struct frame *frame,
                       struct span span)
{
	uint32_t n_failed = ev->trace ? ev->trace->n_failed : 0;
	struct value result = VALUE_NONE;

	assert(frame && (function->def || function->lambda));
	if (function->def && function->def->as.def.is_generator)
		return ev_opaque(ev, span, NULL);
	if (ev->n_calls >= ev->limits.max_calls) {
		ev->limits.max_depth = 0; /* reported as too deep by ev_enter */
		ev_enter(ev, span);
		return VALUE_ERROR;
	}
	ev->n_calls++;
	if (function->lambda)
		result = eval_expr(ev, frame, function->lambda->as.lambda.body);
	else if (exec_body(ev, frame, &function->def->as.def.body, &result) == FLOW_STOP)
		result = ev->is_strict || ev->is_fatal ? VALUE_ERROR : ev_opaque(ev, span, NULL);
	ev->n_calls--;
	return ev->trace && ev->trace->n_failed != n_failed ? VALUE_ERROR : result;
}

/* Factories go their own way, since --set may fill what the call leaves open. */
static struct value call_function(struct eval *ev, const struct function *function,
                                  struct call *call)
{
	struct binder b = { .function = function, .call = call };

	b.frame = new_frame(ev, function->closure, function);
	b.given = arena_array(ev->cx->arena, bool, function->params->n);
	if (!bind_params(ev, &b))
		return ev->is_strict ? VALUE_ERROR : ev_opaque(ev, call->span, NULL);
	if ((function->is_factory || function->kernel) && !ev->trace)
		return call_factory(ev, function, b.frame, b.given, call->span);
	if (!bind_defaults(ev, &b))
		return ev->is_strict ? VALUE_ERROR : ev_opaque(ev, call->span, NULL);
	return call_body(ev, function, b.frame, call->span);
}

/* Builtins */

/* The next parameter of a signature. */
struct signature_word {
	struct str name;
	bool is_star, is_bar, is_optional;
};

/* Moves *at behind the word; false at the end. */
static bool next_word(const char **at, struct signature_word *word)
{
	const char *begin = *at + strspn(*at, " ");
	size_t n = strcspn(begin, " ");

	if (n == 0)
		return false;
	*at = begin + n;
	*word = (struct signature_word){ .is_star = begin[0] == '*',
		                             .is_bar = begin[0] == '|',
		                             .is_optional = begin[n - 1] == '?' };
	word->name = (struct str){ begin, (uint32_t)(n - word->is_optional) };
	return true;
}

/* The argument given by this keyword, or NULL. */
static const struct arg *find_keyword(const struct eval *ev, const struct call *call,
                                      struct str name)
{
	for (uint32_t i = 0; i < call->args.n; i++) {
		if (call->args.p[i].name && str_is(name, sym_text(ev->cx->names, call->args.p[i].name)))
			return &call->args.p[i];
	}
	return NULL;
}

/* Every keyword must stand in the signature. */
static bool check_keywords(struct eval *ev, const struct call *call, const char *signature)
{
	for (uint32_t i = 0; i < call->args.n; i++) {
		const char *at = signature;
		struct signature_word word;
		bool is_known = call->args.p[i].name == 0;

		while (!is_known && next_word(&at, &word))
			is_known =
				!word.is_star && str_is(word.name, sym_text(ev->cx->names, call->args.p[i].name));
		if (!is_known) {
			ev_error(ev, DIAG_E0210, call->args.p[i].whole, "%s has no parameter %s", call->name,
			         sym_text(ev->cx->names, call->args.p[i].name));
			return false;
		}
	}
	return true;
}

/* Positional arguments stand before keywords in call->args, as in Python. */
static uint32_t count_positional(const struct call *call)
{
	uint32_t n = 0;

	while (n < call->args.n && !call->args.p[n].name)
		n++;
	return n;
}

/* Positional arguments fill the words in order up to "*" or "|", keywords go by name. */
bool bind_slots(struct eval *ev, struct call *call, const char *signature)
{
	uint32_t n_positional = count_positional(call), taken = 0, slot = 0;
	bool keyword_only = false;
	struct signature_word word;
	const char *at = signature;

	if (!check_keywords(ev, call, signature))
		return false;
	while (next_word(&at, &word)) {
		if (word.is_star) {
			call->rest = n_positional > taken ? &call->args.p[taken] : NULL;
			call->n_rest = n_positional - taken;
			taken = n_positional;
		}
		keyword_only |= word.is_star || word.is_bar;
		if (word.is_star || word.is_bar)
			continue;
		assert(slot < MAX_SLOTS);
		if (!keyword_only && taken < n_positional)
			call->slot[slot] = &call->args.p[taken++];
		else
			call->slot[slot] = find_keyword(ev, call, word.name);
		if (!call->slot[slot] && !word.is_optional && !keyword_only) {
			ev_error(ev, DIAG_E0210, call->span, "%s misses its argument %.*s", call->name,
			         STR_ARGS(word.name));
			return false;
		}
		slot++;
	}
	if (taken < n_positional) {
		ev_error(ev, DIAG_E0210, call->args.p[taken].span,
		         "%s takes %u positional arguments, this is one more", call->name, taken);
		return false;
	}
	return true;
}

/* Host functions of unknown values give unknown values. */
static struct value call_builtin(struct eval *ev, const struct builtin *builtin, struct call *call)
{
	bool is_host = builtin->module[0] == 0 || strcmp(builtin->module, "math") == 0;

	for (uint32_t i = 0; i < call->args.n && is_host; i++) {
		if (call->args.p[i].value.kind == V_OPAQUE && strcmp(builtin->name, "isinstance") != 0)
			return call->args.p[i].value;
	}
	if (strcmp(builtin->signature, "**") != 0 && !bind_slots(ev, call, builtin->signature))
		return ev->is_strict ? VALUE_ERROR : ev_opaque(ev, call->span, NULL);
	ev->n_effects += strcmp(builtin->module, "list") == 0 || strcmp(builtin->module, "dict") == 0 ||
	                 strcmp(builtin->module, "set") == 0;
	call->builtin = builtin;
	return builtin->handler(ev, call);
}

/*
 * A function of which nothing is known, called in a kernel with one of its buffers, may write to
 * it: what it returns being unknown is not all there is to it.
 */
static bool may_change_kernel(const struct eval *ev, const struct call *call)
{
	if (!ev->trace || !ev->trace->launch || !call->frame || !call->frame->is_traced)
		return false;
	for (uint32_t i = 0; i < call->args.n; i++) {
		enum value_kind kind = call->args.p[i].value.kind;

		if (kind == V_BUFFER || kind == V_REGION)
			return true;
	}
	return false;
}

/* Calls whatever a name may stand for. */
struct value call_value(struct eval *ev, struct value callee, struct call *call)
{
	if (callee.kind == V_FUNCTION)
		return call_function(ev, callee.as.function, call);
	if (callee.kind == V_BUILTIN)
		return call_builtin(ev, callee.as.builtin, call);
	if (callee.kind == V_METHOD) {
		call->self = *callee.as.method->self;
		return call_builtin(ev, callee.as.method->builtin, call);
	}
	if (callee.kind == V_DTYPE)
		return call_dtype(ev, callee.as.dtype, call);
	if (callee.kind == V_OPAQUE || callee.kind == V_KERNEL || callee.kind == V_MODULE) {
		struct value result = ev_opaque(ev, call->span, NULL);

		if (may_change_kernel(ev, call))
			return ev_unknown_effect(ev, call->span, callee);
		if (callee.kind == V_OPAQUE)
			((struct opaque *)(uintptr_t)result.as.opaque)->dims = callee.as.opaque->dims;
		return result;
	}
	return ev_error(ev, DIAG_E0202, call->callee_span, "%s cannot be called",
	                value_type_text(callee));
}

/* The callee first, then the arguments from left to right. */
struct value eval_call(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct call call = { .span = e->span, .callee_span = e->as.call.callee->span, .frame = frame };
	struct value callee = eval_expr(ev, frame, e->as.call.callee), opaque = VALUE_NONE;

	call.name = ev_source_text(ev, call.callee_span);
	if (callee.kind == V_ERROR)
		return callee;
	if (!eval_args(ev, frame, &e->as.call.args, &call, &opaque))
		return opaque.kind == V_OPAQUE         ? opaque
		       : ev->is_strict || ev->is_fatal ? VALUE_ERROR
		                                       : ev_opaque(ev, e->span, NULL);
	return call_value(ev, callee, &call);
}

/* Values of slots */

/* Says what the parameter needs and what it got. */
static bool wrong_arg(struct eval *ev, const struct call *call, uint32_t slot, const char *wanted)
{
	const struct arg *arg = call->slot[slot];

	assert(slot < MAX_SLOTS && arg);
	if (arg->value.kind == V_OPAQUE && ev->is_strict)
		ev_unsettled(ev, arg->value, arg->span, "this argument");
	else if (arg->value.kind != V_ERROR)
		ev_error(ev, DIAG_E0202, arg->span, "%s needs %s here, not %s", call->name, wanted,
		         value_type_text(arg->value));
	return false;
}

/* bool is an int, as in Python; None leaves the default. */
bool arg_int(struct eval *ev, const struct call *call, uint32_t slot, int64_t *value)
{
	const struct arg *arg = call->slot[slot];

	return !arg || arg->value.kind == V_NONE || value_int(arg->value, value) ||
	       wrong_arg(ev, call, slot, "an integer");
}

/* Anything that has a truth on the host. */
bool arg_bool(struct eval *ev, const struct call *call, uint32_t slot, bool *value)
{
	const struct arg *arg = call->slot[slot];
	int truth;

	if (!arg)
		return true;
	truth = eval_truth(arg->value);
	if (truth < 0)
		return wrong_arg(ev, call, slot, "True or False");
	*value = truth;
	return true;
}

/* None leaves the default. */
bool arg_str(struct eval *ev, const struct call *call, uint32_t slot, struct str *value)
{
	const struct arg *arg = call->slot[slot];

	if (!arg || arg->value.kind == V_NONE)
		return true;
	if (arg->value.kind != V_STR)
		return wrong_arg(ev, call, slot, "a string");
	*value = arg->value.as.string;
	return true;
}

/* The builtins int, float and bool name types too, as in TileLang. */
bool value_dtype(struct value value, struct dtype *type)
{
	if (value.kind == V_STR)
		return dtype_parse(value.as.string, type);
	if (value.kind == V_BUILTIN && value.as.builtin->module[0] == 0) {
		const char *name = value.as.builtin->name;

		*type = strcmp(name, "int") == 0     ? DTYPE_I32
		        : strcmp(name, "float") == 0 ? DTYPE_F32
		                                     : DTYPE_BOOL;
		return strcmp(name, "int") == 0 || strcmp(name, "float") == 0 || strcmp(name, "bool") == 0;
	}
	if (value.kind != V_DTYPE)
		return false;
	*type = value.as.dtype;
	return true;
}

/* A type, its name, or a builtin that names one; None leaves the default. */
bool arg_dtype(struct eval *ev, const struct call *call, uint32_t slot, struct dtype *value)
{
	const struct arg *arg = call->slot[slot];

	return !arg || arg->value.kind == V_NONE || value_dtype(arg->value, value) ||
	       wrong_arg(ev, call, slot, "an element type such as \"float16\"");
}

/* A number or a device value. */
bool arg_expr(struct eval *ev, const struct call *call, uint32_t slot, const struct expr **value)
{
	const struct arg *arg = call->slot[slot];

	if (!arg)
		return true;
	*value = device_expr(ev, arg->value, NULL, arg->span);
	return *value != NULL;
}
