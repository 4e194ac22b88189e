/*
 * From a file to its kernels: the steps in order, the settings of the command line, and what is
 * said when no single kernel comes of it.
 *
 *     text -> parse_file -> find_kernels -> settings fit? -> the module runs -> one result a kernel
 *
 * Errors of one kernel stay with it (kernel_info.diags): a file of ten kernels with one bad one
 * still gives nine. frontend_require hands them on when that kernel is the one that is wanted.
 */
#include "analyzer/frontend/frontend.h"

#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

enum {
	DEFAULT_STEPS = 20000000,
	DEFAULT_DEPTH = 200,
	DEFAULT_SOURCE_BYTES = 8 << 20,
	DEFAULT_STMTS = 200000,
	EVAL_DEPTH_PER_LEVEL =
		15, /* nested expressions and statements that a level of nesting may hold */
	MAX_EVAL_BYTES = 256 << 20,
};

/* Defaults where the caller sets nothing. */
static struct eval_limits limits_of(const struct frontend_limits *limits)
{
	struct eval_limits out;

	out.max_steps = limits->max_steps ? limits->max_steps : DEFAULT_STEPS;
	out.max_stmts = limits->max_stmts ? limits->max_stmts : DEFAULT_STMTS;
	out.max_calls = limits->max_depth ? limits->max_depth : DEFAULT_DEPTH;
	out.max_depth = out.max_calls * EVAL_DEPTH_PER_LEVEL;
	out.max_bytes = MAX_EVAL_BYTES;
	return out;
}

/*
 * Is the value a call such as T.const("M, N") or T.dynamic("M") that names this size? Told from the
 * text alone, since settings are checked before anything runs.
 */
static bool is_size_call(const struct eval *ev, const struct ast_expr *e, const char *name)
{
	const struct ast_expr *callee = e->kind == EX_CALL ? e->as.call.callee : NULL;
	const char *function;
	size_t n = strlen(name);

	if (!callee || callee->kind != EX_ATTRIBUTE || e->as.call.args.n == 0 ||
	    e->as.call.args.p[0].value->kind != EX_STRING)
		return false;
	function = sym_text(ev->cx->names, callee->as.attribute.name);
	if (strcmp(function, "const") != 0 && strcmp(function, "dynamic") != 0 &&
	    strcmp(function, "symbolic") != 0)
		return false;
	for (struct str text = e->as.call.args.p[0].value->as.string; text.n >= n; text.p++, text.n--) {
		if (memcmp(text.p, name, n) == 0 && (text.n == n || text.p[n] == ',' || text.p[n] == ' '))
			return true;
	}
	return false;
}

/* Does a statement of the body, or of a function in it, name this size? */
static bool names_size(const struct eval *ev, const struct ast_body *body, const char *name)
{
	for (uint32_t i = 0; i < body->n; i++) {
		const struct ast_stmt *st = body->p[i];

		if (st->kind == ST_ASSIGN && is_size_call(ev, st->as.assign.value, name))
			return true;
		if (st->kind == ST_DEF && names_size(ev, &st->as.def.body, name))
			return true;
	}
	return false;
}

/* Does a selected kernel, or a function around it, have a parameter of this name? */
static bool has_param(const struct eval *ev, const char *name)
{
	for (uint32_t i = 0; i < ev->kernels.n; i++) {
		const struct kernel *kernel = ev->kernels.p[i];

		for (uint32_t c = 0; kernel->is_selected && c <= kernel->chain.n; c++) {
			const struct ast_stmt *def = c < kernel->chain.n ? kernel->chain.p[c] : kernel->def;

			for (uint32_t j = 0; j < def->as.def.params.n; j++) {
				if (strcmp(sym_text(ev->cx->names, def->as.def.params.p[j].name), name) == 0)
					return true;
			}
		}
	}
	return names_size(ev, &ev->module->body, name);
}

/* The parameter name nearest to a wrong one, or NULL. */
static const char *nearest_param(const struct eval *ev, const char *name)
{
	vec_of(const char *) names = { 0 };

	for (uint32_t i = 0; i < ev->kernels.n; i++) {
		const struct kernel *kernel = ev->kernels.p[i];

		for (uint32_t c = 0; c < kernel->chain.n; c++) {
			const struct ast_params *params = &kernel->chain.p[c]->as.def.params;

			for (uint32_t j = 0; j < params->n; j++)
				vec_push(ev->cx->arena, &names, sym_text(ev->cx->names, params->p[j].name));
		}
	}
	return nearest_name(name, names.p, names.n);
}

/* A setting that fits nothing is more likely a typing mistake than meant. */
static bool check_sets(struct eval *ev)
{
	for (uint32_t i = 0; i < ev->options->sets.n; i++) {
		const char *name = ev->options->sets.p[i].name, *nearest;

		if (has_param(ev, name))
			continue;
		diag_report(&ev->cx->diags, DIAG_E0209, (struct span){ 0 },
		            "--set %s: no kernel here has a parameter %s", name, name);
		nearest = nearest_param(ev, name);
		if (nearest)
			diag_help(&ev->cx->diags, "did you mean %s?", nearest);
		return false;
	}
	return true;
}

/* An assumption about a name that no kernel here has is a typing mistake. */
static bool check_assumptions(struct eval *ev)
{
	if (!assume_read(ev))
		return false;
	for (uint32_t i = 0; i < ev->assumptions.n; i++) {
		const char *name = sym_text(ev->cx->names, ev->assumptions.p[i].name);

		if (has_param(ev, name))
			continue;
		diag_report(&ev->cx->diags, DIAG_E0209, (struct span){ 0 },
		            "--assume: no kernel here has a size %s", name);
		return false;
	}
	return true;
}

/* --config needs a kernel with configurations. */
static bool check_config(struct eval *ev)
{
	if (ev->options->config < 0)
		return true;
	for (uint32_t i = 0; i < ev->kernels.n; i++) {
		if (ev->kernels.p[i]->is_selected && decorators_have_configs(ev, ev->kernels.p[i]))
			return true;
	}
	diag_report(&ev->cx->diags, DIAG_E0209, (struct span){ 0 },
	            "--config %lld: no kernel here has autotune configurations",
	            (long long)ev->options->config);
	return false;
}

/*
 * Parameters of a kernel that no call reached, as declared: which are required is all that is
 * known.
 */
static void declared_params(struct eval *ev, struct kernel *kernel)
{
	for (uint32_t c = 0; c < kernel->chain.n; c++) {
		const struct ast_params *params = &kernel->chain.p[c]->as.def.params;

		for (uint32_t j = 0; j < params->n; j++) {
			struct host_param param = { .name = sym_text(ev->cx->names, params->p[j].name),
				                        .required = !params->p[j].default_value,
				                        .span = params->p[j].span };

			if (params->p[j].kind == AST_PLAIN || params->p[j].kind == AST_KEYWORD_ONLY)
				vec_push(ev->cx->arena, &kernel->params, param);
		}
	}
	kernel->is_missing = !kernel->is_failed;
}

/* A factory's name stands for the kernel that it returns: others that the same name chose are left
 * out. */
static bool is_wanted(const struct eval *ev, const struct kernel *kernel)
{
	if (!kernel->is_selected)
		return false;
	if (!ev->options->kernel || kernel->is_returned || strstr(ev->options->kernel, kernel->name))
		return true;
	for (uint32_t i = 0; i < ev->kernels.n; i++) {
		const struct kernel *other = ev->kernels.p[i];

		if (other->is_selected && other->is_returned &&
		    strcmp(other->factory, kernel->factory) == 0)
			return false;
	}
	return true;
}

/*
 * What the caller learns of one kernel; a kernel that was not built has no program, but its
 * parameters.
 */
static void add_result(struct eval *ev, struct kernel *kernel, struct frontend_result *result)
{
	struct kernel_info *info = arena_new(ev->cx->arena, struct kernel_info);

	if (!kernel->is_traced && kernel->params.n == 0)
		declared_params(ev, kernel);
	if (!kernel->is_traced && kernel->form == KERNEL_EAGER)
		eager_declare_sizes(ev, kernel);
	info->name = kernel->name;
	info->factory = kernel->factory;
	info->span = kernel->def->as.def.name_span;
	info->program = kernel->program;
	info->outline = kernel->outline;
	info->missing_params = kernel->is_missing;
	if (ev->options->list_configs && !ev->is_fatal)
		decorators_list_configs(ev, kernel, &info->configs);
	info->diags = kernel->diags;
	for (uint32_t i = 0; i < kernel->params.n; i++)
		vec_push(ev->cx->arena, &info->params, kernel->params.p[i]);
	vec_push(ev->cx->arena, &result->kernels, info);
}

/* The module from top to bottom, as `python FILE` would, then what it left uncalled. */
static void run_module(struct eval *ev)
{
	struct value result = VALUE_NONE;

	builtins_init(ev);
	ev->globals = new_frame(ev, NULL, NULL);
	exec_body(ev, ev->globals, &ev->module->body, &result);
	run_uncalled(ev);
}

/* Text, tree, kernels, values: each step only when the one before it went well. */
bool frontend_run(struct cx *cx, struct expr_pool *pool, uint32_t file,
                  const struct frontend_options *options, struct frontend_result *result)
{
	size_t max_bytes =
		options->limits.max_source_bytes ? options->limits.max_source_bytes : DEFAULT_SOURCE_BYTES;
	struct eval ev = { .cx = cx, .pool = pool, .options = options };

	*result = (struct frontend_result){ 0 };
	ev.limits = limits_of(&options->limits);
	ev.begin_bytes = arena_used_bytes(cx->arena);
	if (source_get(&cx->sources, file)->text.n > max_bytes) {
		diag_report(&cx->diags, DIAG_E0110, (struct span){ file, 0, 0 },
		            "the file has more than %zu bytes", max_bytes);
		return false;
	}
	ev.module = parse_file(cx, file, ev.limits.max_calls);
	if (!ev.module || !find_kernels(&ev) || !check_sets(&ev) || !check_config(&ev) ||
	    !check_assumptions(&ev) || !eager_check_tensors(&ev))
		return false;
	run_module(&ev);
	for (uint32_t i = 0; i < ev.kernels.n; i++) {
		if (is_wanted(&ev, ev.kernels.p[i]))
			add_result(&ev, ev.kernels.p[i], result);
	}
	assert(result->kernels.n > 0);
	return !ev.is_fatal || ev.cx->diags.n_errors == 0;
}

/* One kernel among several is needed. */
static void report_several(struct cx *cx, const struct frontend_result *result)
{
	const struct kernel_info *first = result->kernels.p[0];

	diag_report(&cx->diags, DIAG_E0208, first->span, "there are %u kernels to choose from",
	            result->kernels.n);
	for (uint32_t i = 0; i < result->kernels.n; i++) {
		const struct kernel_info *info = result->kernels.p[i];

		diag_note(&cx->diags, info->span, "%s%s%s", info->factory, *info->factory ? "." : "",
		          info->name);
	}
	diag_help(&cx->diags, "choose one: --kernel %s%s%s", first->factory, *first->factory ? "." : "",
	          first->name);
}

/* One message for all of them. */
static void report_missing(struct cx *cx, const struct kernel_info *info)
{
	struct buf names = { 0 }, sets = { 0 };

	for (uint32_t i = 0; i < info->params.n; i++) {
		const struct host_param *param = &info->params.p[i];

		if (param->value_json || !param->required)
			continue;
		buf_printf(&names, "%s%s", names.n ? ", " : "", param->name);
		buf_printf(&sets, " --set %s=VALUE", param->name);
	}
	diag_report(&cx->diags, DIAG_E0206, info->span, "%s lacks values for %s", info->name,
	            buf_cstr(&names));
	for (uint32_t i = 0; i < info->params.n; i++) {
		const struct host_param *param = &info->params.p[i];

		if (!param->value_json && param->required)
			diag_note(&cx->diags, param->span, "%s is declared here", param->name);
	}
	diag_help(&cx->diags, "add%s", buf_cstr(&sets));
	buf_free(&names);
	buf_free(&sets);
}

/* Hands on the diagnostics of the one kernel that is left. */
struct tile_program *frontend_require(struct cx *cx, const struct frontend_options *options,
                                      struct frontend_result *result)
{
	const struct kernel_info *info;

	(void)options;
	if (result->kernels.n == 0)
		return NULL;
	if (result->kernels.n > 1) {
		report_several(cx, result);
		return NULL;
	}
	info = result->kernels.p[0];
	for (uint32_t i = 0; i < info->diags.items.n; i++) {
		struct diag *diag = info->diags.items.p[i];

		vec_push(cx->arena, &cx->diags.items, diag);
		cx->diags.n_errors += diag->severity == SEVERITY_ERROR;
	}
	if (info->missing_params && !info->program && info->diags.n_errors == 0)
		report_missing(cx, info);
	return info->program;
}
