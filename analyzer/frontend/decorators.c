/*
 * What decorators say about a kernel besides that it is one:
 *
 *     @tilelang.autotune(configs=[dict(block=64), dict(block=128)])     --config 1 takes block=128
 *     @tilelang.jit(pass_configs={"tl.disable_tma_lower": True})        tile_program.pass_configs
 *
 * Their arguments are evaluated where the function is defined, when they are needed; what is
 * unknown in them is left out.
 */
#include "analyzer/frontend/eval.h"

#include <assert.h>
#include <string.h>

/* The keyword argument of a decorator whose last name is `decorator`, or NULL. */
static const struct ast_expr *decorator_argument(const struct eval *ev, const struct ast_def *def,
                                                 const char *decorator, const char *keyword)
{
	for (uint32_t i = 0; i < def->decorators.n; i++) {
		const struct ast_expr *e = def->decorators.p[i];
		sym_t name = decorator_name(e);

		if (e->kind != EX_CALL || !name || strcmp(sym_text(ev->cx->names, name), decorator) != 0)
			continue;
		for (uint32_t j = 0; j < e->as.call.args.n; j++) {
			const struct ast_arg *arg = &e->as.call.args.p[j];

			if (arg->name && strcmp(sym_text(ev->cx->names, arg->name), keyword) == 0)
				return arg->value;
		}
	}
	return NULL;
}

/* The value of a decorator's argument; mistakes in it concern nobody. */
static struct value lenient_value(struct eval *ev, struct frame *frame, const struct ast_expr *e)
{
	struct trace *trace = ev->trace;
	bool was_strict = ev->is_strict;
	struct value value;

	ev->trace = NULL;
	ev->is_strict = false;
	value = eval_expr(ev, frame, e);
	ev->trace = trace;
	ev->is_strict = was_strict;
	return value;
}

/* Entries of the dict that are known booleans and integers. */
static void note_pass_configs(struct eval *ev, struct tile_program *program, struct value configs)
{
	for (uint32_t i = 0; configs.kind == V_DICT && i < configs.as.dict->n; i++) {
		const struct dict_entry *entry = &configs.as.dict->p[i];
		struct pass_config config;

		if (entry->key.kind != V_STR || !value_int(entry->value, &config.value))
			continue;
		config.name = intern(ev->cx->names, entry->key.as.string);
		vec_push(ev->cx->arena, &program->pass_configs, config);
	}
}

/* Of the kernel itself and of the functions around it, outermost first. */
void decorators_pass_configs(struct eval *ev, const struct kernel *kernel,
                             struct tile_program *program)
{
	for (uint32_t i = 0; i <= kernel->chain.n; i++) {
		const struct ast_stmt *def = i < kernel->chain.n ? kernel->chain.p[i] : kernel->def;
		const struct function *function = map_get(&ev->functions, (uintptr_t)def);
		const struct ast_expr *e = decorator_argument(ev, &def->as.def, "jit", "pass_configs");

		if (e && function)
			note_pass_configs(ev, program, lenient_value(ev, function->closure, e));
	}
}

/* Configurations */

/* `configs` may be a function of the factory's arguments: it gets those that are known by name. */
static struct value call_configs(struct eval *ev, const struct function *function,
                                 struct frame *frame, struct value callee)
{
	const struct ast_params *params = callee.as.function->params;
	struct call call = { .span = function->def->as.def.name_span, .name = "configs" };
	bool was_strict = ev->is_strict;
	struct value result;

	call.callee_span = call.span;
	for (uint32_t i = 0; i < params->n; i++) {
		const struct binding *binding = frame ? frame_find(frame, params->p[i].name) : NULL;
		const struct frontend_set *set =
			find_set_named(ev, sym_text(ev->cx->names, params->p[i].name));

		if (set || binding)
			vec_push(ev->cx->arena, &call.args,
			         (struct arg){ params->p[i].name, set ? set_value(ev, set) : binding->value,
			                       call.span, call.span });
	}
	ev->is_strict = false;
	result = call_value(ev, callee, &call);
	ev->is_strict = was_strict;
	return result;
}

/* The configurations of a function, V_NONE when it has none. `frame`: of a call, or NULL. */
static struct value config_list(struct eval *ev, const struct function *function,
                                struct frame *frame)
{
	const struct ast_expr *e =
		function->def ? decorator_argument(ev, &function->def->as.def, "autotune", "configs")
					  : NULL;
	struct value configs;

	if (!e || ev->trace)
		return VALUE_NONE;
	configs = lenient_value(ev, function->closure, e);
	if (configs.kind == V_FUNCTION)
		configs = call_configs(ev, function, frame, configs);
	return value_is_sequence(configs) ? configs : VALUE_NONE;
}

/* Is the name that of the decorator of configurations, on the kernel or around it? */
bool decorators_have_configs(const struct eval *ev, const struct kernel *kernel)
{
	for (uint32_t i = 0; i <= kernel->chain.n; i++) {
		const struct ast_stmt *def = i < kernel->chain.n ? kernel->chain.p[i] : kernel->def;

		if (decorator_argument(ev, &def->as.def, "autotune", "configs"))
			return true;
	}
	return false;
}

/* The entry that --config names; NULL without --config or configurations. */
const struct dict *decorators_chosen_config(struct eval *ev, const struct function *function,
                                            struct frame *frame)
{
	int64_t at = ev->options->config;
	struct value configs;

	if (at < 0)
		return NULL;
	configs = config_list(ev, function, frame);
	if (configs.kind == V_NONE)
		return NULL;
	if (at < configs.as.sequence->n && configs.as.sequence->p[at].kind == V_DICT)
		return configs.as.sequence->p[at].as.dict;
	diag_report(&ev->cx->diags, DIAG_E0209, function->def->as.def.name_span,
	            "--config %lld: %s has %u configurations", (long long)at,
	            sym_text(ev->cx->names, function->def->as.def.name), configs.as.sequence->n);
	diag_help(&ev->cx->diags, "they are numbered from 0; `kernels --json` lists them");
	ev->is_fatal = true;
	return NULL;
}

/* The configurations as JSON objects, those of the innermost function that has some. */
void decorators_list_configs(struct eval *ev, const struct kernel *kernel, struct config_texts *out)
{
	for (uint32_t i = kernel->chain.n + 1; i-- > 0 && out->n == 0;) {
		const struct ast_stmt *def = i < kernel->chain.n ? kernel->chain.p[i] : kernel->def;
		const struct function *function = map_get(&ev->functions, (uintptr_t)def);
		struct value configs = function ? config_list(ev, function, NULL) : VALUE_NONE;

		for (uint32_t j = 0; configs.kind != V_NONE && j < configs.as.sequence->n; j++) {
			struct buf text = { 0 };

			value_json(&text, configs.as.sequence->p[j], 0);
			vec_push(ev->cx->arena, out, buf_keep(&text, ev->cx->arena));
		}
	}
}
