/*
 * Which kernels a file holds, how their factories are called, and where parameters come from:
 * --set, else calls that the file makes, else defaults.
 *
 *     def outer(B):                     chain of the kernel: outer, outer.make
 *         @tilelang.jit
 *         def make(M, dtype="float16"):
 *             @T.prim_func
 *             def main(A: ...): ...     the kernel; parameters B, M, dtype
 *             return main
 *         return make
 *
 * Kernels are found in the tree, before anything runs. While the module runs, a call of a function
 * that has kernels inside (a factory) settles its parameters and runs it; a kernel is built when
 * its definition is reached, the first time with all that it needs. Factories that nothing in the
 * file calls are called at the end, with --set and defaults alone. Messages about a kernel are kept
 * with it, so that one broken kernel does not hide the others.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Discovery */

/* Calls and attributes are looked through. */
sym_t decorator_name(const struct ast_expr *e)
{
	while (e->kind == EX_CALL)
		e = e->as.call.callee;
	if (e->kind == EX_ATTRIBUTE)
		return e->as.attribute.name;
	return e->kind == EX_NAME ? e->as.name : 0;
}

/* Decorators are told by their last name, however the module was imported. */
bool decorator_is(const struct eval *ev, const struct ast_def *def, const char *name)
{
	for (uint32_t i = 0; i < def->decorators.n; i++) {
		sym_t sym = decorator_name(def->decorators.p[i]);

		if (sym && strcmp(sym_text(ev->cx->names, sym), name) == 0)
			return true;
	}
	return false;
}

/* Is there a `with T.Kernel(...)` directly in the function? */
static bool opens_launch(const struct eval *ev, const struct ast_body *body)
{
	for (uint32_t i = 0; i < body->n; i++) {
		const struct ast_stmt *st = body->p[i];

		for (uint32_t j = 0; st->kind == ST_WITH && j < st->as.with.items.n; j++) {
			sym_t name = decorator_name(st->as.with.items.p[j].context);

			if (name && strcmp(sym_text(ev->cx->names, name), "Kernel") == 0)
				return true;
		}
		for (uint32_t j = 0; st->kind == ST_IF && j < st->as.if_.arms.n; j++) {
			if (opens_launch(ev, &st->as.if_.arms.p[j].body))
				return true;
		}
		if (st->kind == ST_IF && opens_launch(ev, &st->as.if_.otherwise))
			return true;
	}
	return false;
}

/* Methods are never called, so kernels in classes are left out. */
static bool in_class(const struct ast_stmt *def)
{
	for (; def; def = def->as.def.parent) {
		if (def->as.def.in_class)
			return true;
	}
	return false;
}

/* outer.inner, the functions around it first. */
static const char *qualified_name(const struct eval *ev, const struct ast_stmt *def)
{
	const char *name = "";

	for (; def; def = def->as.def.parent)
		name = arena_printf(ev->cx->arena, "%s%s%s", sym_text(ev->cx->names, def->as.def.name),
		                    *name ? "." : "", name);
	return name;
}

/* The functions around a kernel, outermost first. */
static void push_outer_first(struct eval *ev, struct kernel *kernel, const struct ast_stmt *def)
{
	uint32_t depth = 0;

	assert(kernel->chain.n == 0);
	for (const struct ast_stmt *d = def; d; d = d->as.def.parent)
		depth++;
	for (uint32_t i = depth; i > 0; i--) {
		const struct ast_stmt *d = def;

		for (uint32_t up = 1; up < i; up++)
			d = d->as.def.parent;
		vec_push(ev->cx->arena, &kernel->chain, d);
	}
}

/* Names and the functions around it are known from the tree alone. */
static void add_kernel(struct eval *ev, const struct ast_stmt *def, enum kernel_form form)
{
	struct kernel *kernel = arena_new(ev->cx->arena, struct kernel);

	kernel->def = def;
	kernel->form = form;
	kernel->name = sym_text(ev->cx->names, def->as.def.name);
	kernel->factory = qualified_name(ev, def->as.def.parent);
	push_outer_first(ev, kernel, def->as.def.parent);
	vec_push(ev->cx->arena, &ev->kernels, kernel);
}

/* The kernel that a function is, or NULL. */
struct kernel *kernel_of(const struct eval *ev, const struct ast_stmt *def)
{
	for (uint32_t i = 0; i < ev->kernels.n; i++) {
		if (ev->kernels.p[i]->def == def)
			return ev->kernels.p[i];
	}
	return NULL;
}

/* Is the kernel defined inside `def`? */
static bool chain_has(const struct kernel *kernel, const struct ast_stmt *def)
{
	for (uint32_t i = 0; i < kernel->chain.n; i++) {
		if (kernel->chain.p[i] == def)
			return true;
	}
	return false;
}

/* Is the function a factory, or does it hold one? */
bool def_has_kernel(const struct eval *ev, const struct ast_stmt *def)
{
	for (uint32_t i = 0; i < ev->kernels.n; i++) {
		if (chain_has(ev->kernels.p[i], def))
			return true;
	}
	return false;
}

/* Does the text (without @LINE) name the function, plain or qualified? */
static bool names_def(const struct eval *ev, struct str text, const struct ast_stmt *def)
{
	return str_is(text, sym_text(ev->cx->names, def->as.def.name)) ||
	       str_is(text, qualified_name(ev, def));
}

/* Does the function stand at this line, decorators included? 0 is any line. */
static bool stands_at(const struct eval *ev, const struct ast_stmt *def, uint32_t line)
{
	struct span first =
		def->as.def.decorators.n ? def->as.def.decorators.p[0]->span : def->as.def.name_span;

	return line == 0 || (source_line(&ev->cx->sources, first) <= line &&
	                     line <= source_line(&ev->cx->sources, def->as.def.name_span));
}

/* Does --kernel choose this kernel? */
static bool is_chosen(const struct eval *ev, const struct kernel *kernel)
{
	struct str text;
	const char *at;
	uint32_t line = 0;

	if (!ev->options->kernel)
		return true;
	text = str_of(ev->options->kernel);
	at = strrchr(ev->options->kernel, '@');
	if (at) {
		line = (uint32_t)strtoul(at + 1, NULL, 10);
		text.n = (uint32_t)(at - ev->options->kernel);
	}
	for (uint32_t i = 0; i <= kernel->chain.n; i++) {
		const struct ast_stmt *def = i < kernel->chain.n ? kernel->chain.p[i] : kernel->def;

		if (names_def(ev, text, def) && stands_at(ev, def, line))
			return true;
	}
	return false;
}

/* prim_funcs first: a jit function that holds one is its factory, not an eager kernel. */
bool find_kernels(struct eval *ev)
{
	const struct ast_module *module = ev->module;
	uint32_t n_selected = 0;

	for (uint32_t i = 0; i < module->defs.n; i++) {
		const struct ast_stmt *def = module->defs.p[i];

		if (!in_class(def) && decorator_is(ev, &def->as.def, "prim_func"))
			add_kernel(ev, def, KERNEL_PRIM_FUNC);
	}
	for (uint32_t i = 0; i < module->defs.n; i++) {
		const struct ast_stmt *def = module->defs.p[i];

		if (!in_class(def) && decorator_is(ev, &def->as.def, "jit") && !def_has_kernel(ev, def) &&
		    (opens_launch(ev, &def->as.def.body) || eager_has_tensors(ev, def)))
			add_kernel(ev, def, KERNEL_EAGER);
	}
	for (uint32_t i = 0; i < ev->kernels.n; i++) {
		ev->kernels.p[i]->is_selected = is_chosen(ev, ev->kernels.p[i]);
		n_selected += ev->kernels.p[i]->is_selected;
	}
	if (n_selected)
		return true;
	if (ev->kernels.n == 0) {
		diag_report(&ev->cx->diags, DIAG_E0207, (struct span){ module->file, 0, 0 },
		            "this file holds no kernel");
		diag_help(&ev->cx->diags, "a kernel is a function with @T.prim_func, or one with "
		                          "@tilelang.jit that opens T.Kernel");
		return false;
	}
	diag_report(&ev->cx->diags, DIAG_E0207, (struct span){ module->file, 0, 0 },
	            "no kernel or factory is named %s", ev->options->kernel);
	for (uint32_t i = 0; i < ev->kernels.n; i++)
		diag_note(&ev->cx->diags, ev->kernels.p[i]->def->as.def.name_span, "there is %s",
		          qualified_name(ev, ev->kernels.p[i]->def));
	return false;
}

/* Values of --set */

/* Is it built of literals alone? */
static bool is_plain(const struct ast_expr *e)
{
	if (e->kind == EX_UNARY)
		return is_plain(e->as.unary.operand);
	if (e->kind == EX_BINARY)
		return is_plain(e->as.binary.left) && is_plain(e->as.binary.right);
	for (uint32_t i = 0; (e->kind == EX_TUPLE || e->kind == EX_LIST) && i < e->as.items.n; i++) {
		if (!is_plain(e->as.items.p[i]))
			return false;
	}
	for (uint32_t i = 0; e->kind == EX_DICT && i < e->as.pairs.n; i++) {
		if (!e->as.pairs.p[i].key || !is_plain(e->as.pairs.p[i].key) ||
		    !is_plain(e->as.pairs.p[i].value))
			return false;
	}
	return e->kind == EX_NONE || e->kind == EX_BOOL || e->kind == EX_INT || e->kind == EX_FLOAT ||
	       e->kind == EX_STRING || e->kind == EX_TUPLE || e->kind == EX_LIST || e->kind == EX_DICT;
}

/*
 * A bare word: letters, digits, dots, dashes. `T.float16` and `torch.float16` mean float16,
 * `T.exp` the function, `T.GemmWarpPolicy.FullRow` the policy, custom[tfloat32] tfloat32.
 */
static bool bare_word(struct eval *ev, const char *text, struct value *value)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	if (strncmp(text, "custom[", 7) == 0 && text[strlen(text) - 1] == ']') {
		*value = VALUE_STR(((struct str){ text + 7, (uint32_t)strlen(text) - 8 }));
		return true;
	}
	if (!*text || text[strspn(text, allowed)])
		return false;
	if (strncmp(text, "T.", 2) == 0) {
		const struct builtin *builtin =
			text[2] ? find_builtin(ev, "tilelang.language", intern_text(ev->cx->names, text + 2))
					: NULL;

		*value = (struct value){ .kind = V_BUILTIN, .as.builtin = builtin };
		if (builtin)
			return true;
		text += 2;
	} else if (strncmp(text, "torch.", 6) == 0) {
		text += 6;
	}
	if (strncmp(text, "GemmWarpPolicy.", 15) == 0) {
		for (int policy = POLICY_SQUARE; policy <= POLICY_FULL_COL; policy++) {
			*value = (struct value){ .kind = V_POLICY, .as.integer = policy };
			if (strcmp(gemm_policy_text((enum gemm_policy)policy), text + 15) == 0)
				return true;
		}
	}
	*value = VALUE_STR(str_of(text));
	return true;
}

/* The text becomes a source of its own, so that a message can point into it. */
struct value set_value(struct eval *ev, const struct frontend_set *set)
{
	struct diag_list outer = ev->cx->diags;
	const char *path = arena_printf(ev->cx->arena, "--set %s", set->name);
	uint32_t file = source_add(ev->cx->arena, &ev->cx->sources, path, str_of(set->value));
	struct value value = VALUE_ERROR;
	struct ast_expr *e;

	ev->cx->diags = (struct diag_list){ .arena = ev->cx->arena };
	e = parse_expression(ev->cx, file, ev->limits.max_calls);
	if (e && is_plain(e))
		value = eval_expr(ev, ev->globals, e);
	ev->cx->diags = outer;
	if (value.kind != V_ERROR && value.kind != V_OPAQUE)
		return value;
	if (bare_word(ev, set->value, &value))
		return value;
	diag_report(&ev->cx->diags, DIAG_E0209, (struct span){ file, 0, (uint32_t)strlen(set->value) },
	            "the value of %s is neither a Python literal nor a bare word", set->name);
	return VALUE_ERROR;
}

/* Sizes of T.const and T.dynamic have no line to tell them apart by. */
const struct frontend_set *find_set_named(const struct eval *ev, const char *name)
{
	const struct frontend_set *found = NULL;

	for (uint32_t i = 0; i < ev->options->sets.n; i++) {
		if (strcmp(ev->options->sets.p[i].name, name) == 0)
			found = &ev->options->sets.p[i];
	}
	return found;
}

/* The --set that fills this parameter, the last one when there are several. */
static const struct frontend_set *find_set(struct eval *ev, const struct ast_stmt *def,
                                           const struct ast_param *param)
{
	const struct frontend_set *found = NULL;

	for (uint32_t i = 0; i < ev->options->sets.n; i++) {
		const struct frontend_set *set = &ev->options->sets.p[i];

		if (strcmp(set->name, sym_text(ev->cx->names, param->name)) != 0)
			continue;
		if (set->line == 0 || set->line == source_line(&ev->cx->sources, param->span) ||
		    set->line == source_line(&ev->cx->sources, def->as.def.name_span))
			found = set;
	}
	return found;
}

/* Calls of factories */

/* The value's JSON in the arena. */
static const char *json_of(struct eval *ev, struct value value)
{
	struct buf text = { 0 };

	value_json(&text, value, 0);
	return buf_keep(&text, ev->cx->arena);
}

/* Settles one parameter in the frame; its value_json stays NULL when it is missing. */
static struct host_param settle_param(struct eval *ev, const struct function *function,
                                      struct frame *frame, uint32_t i, bool given)
{
	const struct ast_param *param = &function->params->p[i];
	const struct frontend_set *set = find_set(ev, function->def, param);
	struct host_param settled = { .name = sym_text(ev->cx->names, param->name),
		                          .required = !param->default_value,
		                          .span = param->span };
	const struct dict_entry *config = NULL;
	struct value value = VALUE_ERROR;

	if (frame->config)
		config =
			dict_find((struct dict *)(uintptr_t)frame->config, VALUE_STR(str_of(settled.name)));
	if (set) {
		value = set_value(ev, set);
		settled.origin = PARAM_SET;
	} else if (config) {
		value = config->value;
		settled.origin = PARAM_SET;
	} else if (given && frame_find(frame, param->name)->value.kind != V_OPAQUE) {
		value = frame_find(frame, param->name)->value;
		settled.origin = PARAM_CALL;
	} else if (param->default_value) {
		value = function->defaults[i];
		settled.origin = PARAM_DEFAULT;
	}
	if (value.kind != V_ERROR) {
		bind_name(ev, frame, param->name, value);
		settled.value_json = json_of(ev, value);
	}
	return settled;
}

/* Parameters of the functions around the kernel, outermost first. */
static void note_params(struct eval *ev, struct kernel *kernel, const struct frame *frame)
{
	if (!frame)
		return;
	note_params(ev, kernel, frame->parent);
	for (uint32_t i = 0; i < frame->settled.n; i++)
		vec_push(ev->cx->arena, &kernel->params, frame->settled.p[i]);
}

/* Also forgets what an earlier call was missing. */
void kernel_started(struct eval *ev, struct kernel *kernel, const struct frame *frame)
{
	assert(!kernel->is_traced && "the first call that builds a kernel counts");
	kernel->is_missing = false;
	kernel->params.n = 0;
	note_params(ev, kernel, frame);
}

/* The kernels inside `def` that no call has built so far learn what became of this one. */
static void note_failure(struct eval *ev, const struct ast_stmt *def, const struct frame *frame,
                         const struct diag_list *diags)
{
	for (uint32_t i = 0; i < ev->kernels.n; i++) {
		struct kernel *kernel = ev->kernels.p[i];

		if (kernel->is_traced || kernel->is_failed ||
		    (!chain_has(kernel, def) && kernel->def != def))
			continue;
		if (!diags && kernel->is_missing)
			continue; /* the first call counts */
		kernel->params.n = 0;
		note_params(ev, kernel, frame);
		kernel->is_missing = !diags;
		kernel->is_failed = diags != NULL;
		if (diags)
			kernel->diags = *diags;
	}
}

/* Mistakes in a factory belong to the kernels in it that were not built. */
static struct value run_factory(struct eval *ev, const struct function *function,
                                struct frame *frame, struct span span)
{
	struct diag_list outer = ev->cx->diags, inner;
	bool was_strict = ev->is_strict;
	struct value result;

	ev->cx->diags = (struct diag_list){ .arena = ev->cx->arena };
	ev->is_strict = true;
	result = call_body(ev, function, frame, span);
	ev->is_strict = was_strict;
	inner = ev->cx->diags;
	ev->cx->diags = outer;
	if (inner.n_errors)
		note_failure(ev, function->def, frame, &inner);
	return result.kind == V_ERROR ? ev_opaque(ev, span, NULL) : result;
}

/* The first call with all it needs builds the kernel. */
static void run_eager(struct eval *ev, const struct function *function, struct frame *frame)
{
	struct kernel *kernel = function->kernel;

	if (!kernel->is_selected || kernel->is_traced || ev->trace)
		return;
	eager_note_tensors(ev, function, frame);
	eager_probe(ev, function, frame);
	trace_kernel(ev, kernel, function, frame);
	if (!kernel->is_traced)
		kernel->sizes.n = 0; /* of this call alone */
}

/* Tensor arguments of an eager kernel are no parameters: their shapes are noted instead. */
struct value call_factory(struct eval *ev, const struct function *function, struct frame *frame,
                          bool *given, struct span span)
{
	struct value result = ev_opaque(ev, span, NULL);
	bool is_missing = false;

	assert(function->def);
	ev->n_effects++;
	frame->config = decorators_chosen_config(ev, function, frame);
	for (uint32_t i = 0; i < function->params->n; i++) {
		struct host_param settled;

		if (function->params->p[i].kind == AST_STAR ||
		    function->params->p[i].kind == AST_DOUBLE_STAR)
			continue;
		if (function->kernel && eager_is_tensor(ev, function->def, function->params->p[i].name))
			continue;
		settled = settle_param(ev, function, frame, i, given[i]);
		is_missing |= !settled.value_json;
		vec_push(ev->cx->arena, &frame->settled, settled);
	}
	if (is_missing)
		note_failure(ev, function->def, frame, NULL);
	else if (function->kernel)
		run_eager(ev, function, frame);
	else
		result = run_factory(ev, function, frame, span);
	return result;
}

/* Outer factories first: running one may already call the inner one. */
void run_uncalled(struct eval *ev)
{
	for (uint32_t i = 0; i < ev->kernels.n && !ev->is_fatal; i++) {
		struct kernel *kernel = ev->kernels.p[i];

		uint32_t n = kernel->chain.n + (kernel->form == KERNEL_EAGER);

		for (uint32_t c = 0; c < n && !ev->is_fatal; c++) {
			const struct ast_stmt *def = c < kernel->chain.n ? kernel->chain.p[c] : kernel->def;
			const struct function *function = map_get(&ev->functions, (uintptr_t)def);
			struct frame *frame;
			bool *given;

			if (kernel->is_traced || kernel->is_failed || kernel->is_missing ||
			    !kernel->is_selected || !function)
				break;
			frame = new_frame(ev, function->closure, function);
			given = arena_array(ev->cx->arena, bool, function->params->n);
			call_factory(ev, function, frame, given, function->def->as.def.name_span);
		}
	}
}
