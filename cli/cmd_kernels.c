/*
 * kernels: what kernels a file holds, with what parameters, and how they are launched. A kernel
 * that lacks parameters is listed too, with what is missing:
 *
 *     main at line 6, made by scale
 *       parameter  value      from
 *       M          missing    give it with --set M=...
 *       dtype      "float32"  default
 */
#include "cli/cli.h"
#include "cli/table.h"

#include "analyzer/describe/describe.h"

/* The contract's word for where a value came from. */
static const char *origin_text(enum param_origin origin)
{
	switch (origin) {
	case PARAM_SET:
		return "set";
	case PARAM_CALL:
		return "call";
	case PARAM_DEFAULT:
		return "default";
	case PARAM_TENSOR:
		return "tensor";
	}
	return "";
}

/* A missing value is null and comes from nowhere. */
static void json_parameter(struct json *json, const struct host_param *param)
{
	json_object(json);
	json_kstring(json, "name", param->name);
	json_kbool(json, "required", param->required);
	json_key(json, "value");
	json_raw(json, param->value_json);
	json_kstring(json, "from", param->value_json ? origin_text(param->origin) : NULL);
	json_end(json);
}

/* An extent that depends on a symbol is null. */
static void json_launch(struct json *json, const struct launch *launch)
{
	json_object(json);
	json_kint(json, "threads", launch_n_threads(launch));
	json_key(json, "grid");
	json_array(json);
	for (int axis = 0; axis < 3; axis++) {
		int64_t extent;

		if (expr_is_int(launch->grid[axis], &extent))
			json_int(json, extent);
		else
			json_null(json);
	}
	json_end(json);
	json_end(json);
}

/* "launches" is null while a parameter is missing or what opens the launches has failed. */
static void json_kernel(struct json *json, const struct compile *compile,
                        const struct kernel_info *kernel)
{
	json_object(json);
	json_kstring(json, "name", kernel->name);
	json_kstring(json, "factory", kernel->factory);
	json_kint(json, "line", describe_line(compile, kernel->span));
	json_key(json, "parameters");
	json_array(json);
	for (uint32_t i = 0; i < kernel->params.n; i++)
		json_parameter(json, &kernel->params.p[i]);
	json_end(json);
	if (kernel->configs.n) {
		json_key(json, "configs");
		json_array(json);
		for (uint32_t i = 0; i < kernel->configs.n; i++)
			json_raw(json, kernel->configs.p[i]);
		json_end(json);
	}
	json_key(json, "launches");
	if (kernel->outline) {
		json_array(json);
		for (uint32_t i = 0; i < kernel->outline->launches.n; i++) {
			if (!kernel->outline->launches.p[i]->is_implicit)
				json_launch(json, kernel->outline->launches.p[i]);
		}
		json_end(json);
	} else {
		json_null(json);
	}
	json_key(json, "diagnostics");
	json_array(json);
	describe_json_diagnostics(json, &kernel->diags, &compile->cx.sources);
	json_end(json);
	json_end(json);
}

/* All kernels that --kernel selects, in file order. */
static void print_json(struct cli *cli, const struct compile *compile)
{
	struct json json;

	cli_json_begin(cli, &json);
	json_key(&json, "kernels");
	json_array(&json);
	for (uint32_t i = 0; i < compile->frontend.kernels.n; i++)
		json_kernel(&json, compile, compile->frontend.kernels.p[i]);
	json_end(&json);
	cli_json_end(cli, &json);
}

/* A table with what is missing in red, and how to give it. */
static void print_parameters(struct cli *cli, const struct kernel_info *kernel)
{
	struct table table;

	if (kernel->params.n == 0)
		return;
	table_init(&table, cli->arena, "lll");
	table_add(&table, STYLE_DIM, "parameter");
	table_add(&table, STYLE_DIM, "value");
	table_add(&table, STYLE_DIM, "from");
	for (uint32_t i = 0; i < kernel->params.n; i++) {
		const struct host_param *param = &kernel->params.p[i];

		table_add(&table, STYLE_PLAIN, param->name);
		table_add(&table, param->value_json ? STYLE_PLAIN : STYLE_BAD,
		          param->value_json ? param->value_json : "missing");
		if (param->value_json)
			table_add(&table, STYLE_DIM, origin_text(param->origin));
		else
			table_addf(&table, STYLE_DIM, "give it with --set %s=...", param->name);
	}
	table_print(&cli->out, &table, cli->colour_out);
}

/* One line a launch. */
static void print_launches(struct cli *cli, const struct compile *compile,
                           const struct tile_program *program)
{
	for (uint32_t i = 0; i < program->launches.n; i++) {
		const struct launch *launch = program->launches.p[i];

		if (launch->is_implicit) {
			buf_text(&cli->out, "  no launch: one thread runs it\n");
			continue;
		}
		buf_printf(&cli->out, "  launch at line %u: %lld threads, grid ",
		           describe_line(compile, launch->span), (long long)launch_n_threads(launch));
		for (int axis = 0; axis < 3; axis++) {
			buf_text(&cli->out, axis > 0 ? " x " : "");
			expr_print(&cli->out, &compile->cx, launch->grid[axis]);
		}
		buf_char(&cli->out, '\n');
	}
}

/* The same for people. */
static void print_text(struct cli *cli, const struct compile *compile)
{
	for (uint32_t i = 0; i < compile->frontend.kernels.n; i++) {
		const struct kernel_info *kernel = compile->frontend.kernels.p[i];

		buf_text(&cli->out, i > 0 ? "\n" : "");
		style_text(&cli->out, STYLE_BOLD, cli->colour_out, kernel->name);
		buf_printf(&cli->out, " at line %u", describe_line(compile, kernel->span));
		if (kernel->factory[0])
			buf_printf(&cli->out, ", made by %s", kernel->factory);
		buf_char(&cli->out, '\n');
		print_parameters(cli, kernel);
		if (kernel->outline)
			print_launches(cli, compile, kernel->outline);
	}
}

/*
 * What went wrong in single kernels joins the file's diagnostics: for the exit code, and for
 * standard error. In the document it stands with its kernel, so this comes after it is written.
 */
static void adopt_diagnostics(struct compile *compile)
{
	struct diag_list *all = &compile->cx.diags;

	for (uint32_t i = 0; i < compile->frontend.kernels.n; i++) {
		const struct diag_list *diags = &compile->frontend.kernels.p[i]->diags;

		for (uint32_t j = 0; j < diags->items.n; j++)
			vec_push(all->arena, &all->items, diags->items.p[j]);
		all->n_errors += diags->n_errors;
		all->n_dropped += diags->n_dropped;
	}
}

/* Runs the front end alone: the passes want exactly one kernel. */
int cmd_kernels(struct cli *cli)
{
	struct compile *compile = compile_open(cli->arena, &cli->compile_options);
	bool ok;

	cli->compile = compile;
	compile->options.frontend.list_configs = true;
	ok = compile_load(compile, cli->files.p[0]) &&
	     frontend_run(&compile->cx, compile->pool, compile->file, &compile->options.frontend,
	                  &compile->frontend);
	if (cli->options.json)
		print_json(cli, compile);
	else if (ok)
		print_text(cli, compile);
	adopt_diagnostics(compile);
	return cli_finish(cli, false);
}
