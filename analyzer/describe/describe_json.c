/*
 * The document of `analyze --json`. Keys come in the order of its contract, optional ones last in
 * their object; what a pass did not reach is an empty array or null.
 *
 *     { "launches": [ { "threads": 128, "grid": [8, 8, 1], ... } ],
 *       "buffers": [ { "name": "A_shared", "bytes": 16384, "versions": 3, ... } ], ... }
 */
#include "analyzer/describe/describe.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Rows of a kernel with several launches say which; 0 is left out. */
static void json_launch(struct json *json, const struct launch_result *launch)
{
	if (launch->launch->index > 0)
		json_kint(json, "launch", launch->launch->index);
}

/* Extents that depend on a symbol are null. */
static void json_extent(struct json *json, const struct expr *extent)
{
	int64_t value;

	if (expr_is_int(extent, &value))
		json_int(json, value);
	else
		json_null(json);
}

/* Values are JSON texts already, as the front end found them. */
static void json_params(struct json *json, const struct compile *compile)
{
	json_key(json, "params");
	json_object(json);
	for (uint32_t i = 0; compile->program && i < compile->program->host_params.n; i++) {
		json_key(json, compile->program->host_params.p[i].name);
		json_raw(json, compile->program->host_params.p[i].value_json);
	}
	json_end(json);
}

/*
 * Registers are counted in the warp program; without one (a pass failed, or the choices are
 * TileLang's) only shared memory is known.
 */
static void json_resources(struct json *json, const struct compile *compile,
                           const struct launch_result *launch)
{
	struct launch_budget budget;
	bool known = launch->schedule && launch->warp;

	json_key(json, "resources");
	json_object(json);
	json_kcount(json, "shared_bytes", launch->schedule ? launch->schedule->shared_bytes : -1);
	if (known)
		budget = describe_budget(launch, compile->options.target);
	json_kcount(json, "registers_estimate", known ? budget.registers_estimate : -1);
	json_kcount(json, "blocks_per_sm", known ? budget.occupancy.blocks_per_sm : -1);
	json_kdouble(json, "occupancy", known ? budget.occupancy.fraction : (double)NAN);
	json_kstring(json, "limiter", known ? occupancy_limiter_text(budget.occupancy.limiter) : NULL);
	json_end(json);
}

/* How good the layouts are, as far as the search knows; null where they are not the solver's. */
static void json_search(struct json *json, const struct launch_result *launch)
{
	const struct solution *solution = launch->parity ? NULL : launch->solution;
	bool known = solution && solution->status != SOLVE_CONFLICT;

	json_key(json, "search");
	json_object(json);
	json_kstring(json, "status",
	             !known                              ? NULL
	             : solution->status == SOLVE_OPTIMAL ? "optimal"
	                                                 : "best found");
	json_kdouble(json, "cycles", known ? round(solution->cost * 10) / 10 : (double)NAN);
	json_kdouble(json, "bound", known ? round(solution->bound * 10) / 10 : (double)NAN);
	json_end(json);
}

/* Threads are the product of the extents as written. */
static void json_launches(struct json *json, const struct compile *compile)
{
	json_key(json, "launches");
	json_array(json);
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct launch_result *launch = compile->launches.p[i];

		json_object(json);
		json_kint(json, "threads", launch_n_threads(launch->launch));
		json_key(json, "grid");
		json_array(json);
		for (int axis = 0; axis < 3; axis++)
			json_extent(json, launch->launch->grid[axis]);
		json_end(json);
		json_kstring(json, "counted", launch->accesses.counted_grid ? "grid" : "block");
		json_search(json, launch);
		json_resources(json, compile, launch);
		json_end(json);
	}
	json_end(json);
}

/* "layout": its text and kind; buffers that every thread has for itself have none. */
static void json_layout(struct json *json, const struct layout *layout,
                        struct describe_places places)
{
	struct buf text = { 0 };

	json_key(json, "layout");
	json_object(json);
	if (layout)
		layout_print(&text, layout);
	while (text.n > 0 && text.p[text.n - 1] == '\n')
		text.p[--text.n] = '\0';
	json_kstring(json, "text", buf_cstr(&text));
	json_kstring(json, "kind", layout ? layout_kind_text(layout) : "other");
	json_kint(json, "replicas", layout ? layout->n_replicas : 1);
	json_kint(json, "slots", layout ? layout->n_slots : 0);
	if (places.n > 0)
		json_kint(json, "idle_places", places.idle);
	json_end(json);
	buf_free(&text);
}

/* The launch that allocates the buffer; parameters belong to the first. */
static const struct launch_result *launch_of(const struct compile *compile,
                                             const struct buffer *buffer)
{
	return buffer->launch < compile->launches.n ? compile->launches.p[buffer->launch] : NULL;
}

/* A row of "buffers": what the kernel allocates or takes as an argument. */
static void json_buffer(struct json *json, const struct compile *compile,
                        const struct buffer *buffer)
{
	const struct launch_result *launch = launch_of(compile, buffer);
	const struct shared_place *place =
		launch && launch->schedule ? schedule_place(launch->schedule, buffer) : NULL;
	char type[32];

	json_object(json);
	json_kstring(json, "name", sym_text(compile->cx.names, buffer->name));
	json_kstring(json, "scope", scope_text(buffer->scope));
	json_kstring(json, "dtype", dtype_name(buffer->type, type));
	json_key(json, "shape");
	json_array(json);
	for (uint32_t d = 0; d < buffer->rank; d++)
		json_extent(json, buffer->shape[d]);
	json_end(json);
	json_kint(json, "line", describe_line(compile, buffer->span));
	json_kcount(json, "bytes", describe_bytes(compile, buffer));
	json_kint(json, "versions", place ? place->n_versions : 1);
	json_kcount(json, "offset_bytes", place ? place->offset_bytes : -1);
	json_layout(json, describe_layout(compile, buffer), describe_places(compile, buffer));
	if (launch && !buffer->is_param)
		json_launch(json, launch);
	json_end(json);
}

/* A piece of shared memory that the tool added, in bytes. */
static void json_workspace(struct json *json, const struct compile *compile,
                           const struct launch_result *launch, const struct shared_place *place)
{
	const struct layout *layout =
		layout_row_major(compile->cx.arena, 1, &place->version_bytes, 8, 0);

	assert(!place->buffer && place->n_versions > 0);
	json_object(json);
	json_kstring(json, "name", describe_workspace(launch, place));
	json_kstring(json, "scope", "shared");
	json_kstring(json, "dtype", "uint8");
	json_key(json, "shape");
	json_array(json);
	json_int(json, place->version_bytes);
	json_end(json);
	json_kint(json, "line",
	          place->workspace_of ? describe_line(compile, place->workspace_of->span) : 0);
	json_kint(json, "bytes", place->version_bytes);
	json_kint(json, "versions", place->n_versions);
	json_kint(json, "offset_bytes", place->offset_bytes);
	json_layout(json, layout, (struct describe_places){ 0 });
	json_launch(json, launch);
	json_end(json);
}

/* The kernel's own buffers by number, then the workspaces by launch and place. */
static void json_buffers(struct json *json, const struct compile *compile)
{
	json_key(json, "buffers");
	json_array(json);
	for (uint32_t i = 0; compile->program && i < compile->program->buffers.n; i++)
		json_buffer(json, compile, compile->program->buffers.p[i]);
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct launch_result *launch = compile->launches.p[i];

		for (uint32_t j = 0; launch->schedule && j < launch->schedule->places.n; j++)
			if (!launch->schedule->places.p[j].buffer)
				json_workspace(json, compile, launch, &launch->schedule->places.p[j]);
	}
	json_end(json);
}

/* ---- gemms ---- */

struct gemm_writer {
	struct json *json;
	const struct compile *compile;
	const struct launch_result *launch;
};

/* A row of "gemms"; the instruction is that of the plan, the policy that of the text. */
static void json_gemm(void *user, struct stmt *stmt)
{
	struct gemm_writer *writer = user;
	struct json *json = writer->json;
	const struct gemm_plan *plan;
	struct buf instruction = { 0 };

	if (stmt->kind != STMT_OP || !op_is_gemm(&stmt->as.op) ||
	    !writer->launch->solution->plans[stmt->id].has_plan)
		return;
	plan = &writer->launch->solution->plans[stmt->id].as.gemm;
	describe_instruction(&instruction, plan);
	json_object(json);
	json_kint(json, "line", describe_line(writer->compile, stmt->span));
	json_kint(json, "m", plan->m);
	json_kint(json, "n", plan->n);
	json_kint(json, "k", plan->k);
	json_kstring(json, "instruction", buf_cstr(&instruction));
	json_kstring(json, "policy", gemm_policy_text((enum gemm_policy)stmt->as.op.as.gemm.policy));
	json_key(json, "warps");
	json_array(json);
	json_int(json, plan->warps_m);
	json_int(json, plan->warps_n);
	json_end(json);
	json_kstring(json, "a", plan->a_is_fragment ? "fragment" : "shared");
	json_kstring(json, "b", plan->b_is_fragment ? "fragment" : "shared");
	json_launch(json, writer->launch);
	json_end(json);
	buf_free(&instruction);
}

/* In program order, launch after launch. */
static void json_gemms(struct json *json, const struct compile *compile)
{
	struct gemm_writer writer = { .json = json, .compile = compile };

	json_key(json, "gemms");
	json_array(json);
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		writer.launch = compile->launches.p[i];
		if (writer.launch->solution)
			tile_walk((struct block *)(uintptr_t)&writer.launch->launch->body, json_gemm, &writer);
	}
	json_end(json);
}

/* ---- conversions ---- */

static void json_conversion(struct json *json, const struct compile *compile,
                            const struct launch_result *launch, const struct stmt_plan *plan,
                            const struct conversion *conversion)
{
	json_object(json);
	json_kint(json, "line", describe_line(compile, plan->stmt->span));
	json_kstring(json, "buffer", sym_text(compile->cx.names, conversion->buffer->name));
	json_kstring(json, "kind", conversion_kind_text(conversion->kind));
	json_kstring(json, "when", conversion->is_after ? "after" : "before");
	json_kint(json, "bytes", conversion->workspace_bytes);
	json_kint(json, "wavefronts", conversion->wavefronts);
	json_kint(json, "ideal", conversion->ideal);
	json_kint(json, "barriers", conversion->n_barriers);
	json_kint(json, "shuffles", conversion->n_rounds);
	json_kint(json, "cycles", (int64_t)conversion->cost);
	json_launch(json, launch);
	json_end(json);
}

/* In program order, launch after launch; the key is there when there are any. */
static void json_conversions(struct json *json, const struct compile *compile)
{
	bool any = false;

	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct launch_result *launch = compile->launches.p[i];
		uint32_t n = launch->solution ? launch->solution->program->n_stmts : 0;

		for (uint32_t s = 0; s < n; s++) {
			const struct stmt_plan *plan = &launch->solution->plans[s];

			for (uint32_t c = 0; c < plan->conversions.n; c++) {
				if (!any) {
					json_key(json, "conversions");
					json_array(json);
				}
				any = true;
				json_conversion(json, compile, launch, plan, &plan->conversions.p[c]);
			}
		}
	}
	if (any)
		json_end(json);
}

/* ---- the rest ---- */

/* A row of "pipelines"; an op of stage s of iteration k runs in iteration k + s. */
static void json_pipeline(struct json *json, const struct compile *compile,
                          const struct launch_result *launch, const struct pipeline *pipeline)
{
	json_object(json);
	json_kint(json, "line", describe_line(compile, pipeline->loop->span));
	json_kint(json, "num_stages", pipeline->num_stages);
	json_key(json, "ops");
	json_array(json);
	for (uint32_t i = 0; i < pipeline->ops.n; i++) {
		const struct pipeline_op *op = &pipeline->ops.p[i];

		json_object(json);
		json_kint(json, "line", describe_line(compile, op->stmt->span));
		json_kstring(json, "op", describe_stmt(op->stmt));
		json_kint(json, "stage", op->stage);
		json_kint(json, "order", op->order);
		json_kbool(json, "async", op->async);
		json_end(json);
	}
	json_end(json);
	if (pipeline->reason)
		json_kstring(json, "reason", pipeline->reason);
	json_launch(json, launch);
	json_end(json);
}

static void json_pipelines(struct json *json, const struct compile *compile)
{
	json_key(json, "pipelines");
	json_array(json);
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct launch_result *launch = compile->launches.p[i];

		for (uint32_t j = 0; launch->schedule && j < launch->schedule->pipelines.n; j++)
			json_pipeline(json, compile, launch, &launch->schedule->pipelines.p[j]);
	}
	json_end(json);
}

/* A row of "accesses". An interval gives null for the counts, and its ends under names of their
 * own. */
static void json_access(struct json *json, const struct compile *compile,
                        const struct launch_result *launch, const struct access_site *site)
{
	bool exact = site->wavefronts >= 0 && site->wavefronts_max == site->wavefronts;
	const char *fix = describe_fix(compile, launch, site);
	const char *cause = describe_cause(compile, site);

	json_object(json);
	json_kint(json, "line", site->line);
	json_kstring(json, "buffer", site->buffer);
	json_kstring(json, "instruction", site->instruction);
	json_kint(json, "bytes_per_thread", site->bytes_per_thread);
	json_kcount(json, "executions", site->executions);
	json_kcount(json, "wavefronts", exact ? site->wavefronts : -1);
	json_kcount(json, "ideal", exact ? site->ideal : -1);
	json_kcount(json, "excess", exact ? site->excess : -1);
	json_kint(json, "ways", site->ways);
	if (!exact && site->wavefronts >= 0) {
		json_kint(json, "wavefronts_min", site->wavefronts);
		json_kint(json, "wavefronts_max", site->wavefronts_max);
	}
	if (site->excess > 0 && site->reason)
		json_kstring(json, "reason", site->reason);
	if (cause)
		json_kstring(json, "cause", cause);
	if (fix)
		json_kstring(json, "fix", fix);
	json_launch(json, launch);
	json_end(json);
}

static void json_accesses(struct json *json, const struct compile *compile)
{
	json_key(json, "accesses");
	json_array(json);
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct launch_result *launch = compile->launches.p[i];

		for (uint32_t j = 0; j < launch->accesses.sites.n; j++)
			json_access(json, compile, launch, &launch->accesses.sites.p[j]);
	}
	json_end(json);
}

/* At least one row for each of the nine names, once the checks ran. */
static void json_properties(struct json *json, const struct compile *compile)
{
	json_key(json, "properties");
	json_array(json);
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct launch_result *launch = compile->launches.p[i];

		for (uint32_t j = 0; j < launch->properties.items.n; j++) {
			const struct property *property = &launch->properties.items.p[j];

			json_object(json);
			json_kstring(json, "name", property_name_text(property->name));
			json_kstring(json, "status", property_status_text(property->status));
			json_kint(json, "line", describe_line(compile, property->span));
			json_kstring(json, "buffer", property->buffer ? property->buffer : "");
			json_kstring(json, "detail", property->detail ? property->detail : "");
			json_launch(json, launch);
			json_end(json);
		}
	}
	json_end(json);
}

/* Budgets of the first launch, or of all: whether each target could run it, and with how many
 * stages. */
static void json_targets(struct json *json, const struct compile *compile)
{
	json_key(json, "targets");
	json_array(json);
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct launch_result *launch = compile->launches.p[i];

		for (const struct target *target = target_all();
		     launch->schedule && launch->warp && target->name; target++) {
			struct launch_budget budget = describe_budget(launch, target);

			json_object(json);
			json_kstring(json, "target", target->name);
			json_kbool(json, "fits", budget.fits);
			json_kint(json, "blocks_per_sm", budget.occupancy.blocks_per_sm);
			json_kint(json, "shared_bytes_limit", target->shared_bytes_block);
			json_key(json, "max_stages");
			json_array(json);
			for (uint32_t j = 0; j < launch->schedule->pipelines.n; j++)
				json_int(json,
				         describe_max_stages(launch, &launch->schedule->pipelines.p[j], target));
			json_end(json);
			json_launch(json, launch);
			json_end(json);
		}
	}
	json_end(json);
}

/* One side of "savings"; null when it does not compile. */
static void json_side(struct json *json, const char *key, const struct describe_side *side)
{
	bool exact;

	json_key(json, key);
	if (!side->is_known) {
		json_null(json);
		return;
	}
	exact = side->has_cycles && side->cycles == side->cycles_max;
	json_object(json);
	json_kstring(json, "counted", side->counted_grid ? "grid" : "block");
	json_kbool(json, "exact", side->is_exact);
	json_kint(json, "shared_wavefronts", side->wavefronts);
	json_kint(json, "shared_ideal", side->ideal);
	json_kint(json, "shared_excess", side->excess);
	json_kint(json, "shared_bytes", side->shared_bytes);
	json_kstring(json, "cycles_counted", side->cycles_grid ? "grid" : "block");
	json_kdouble(json, "cycles", exact ? side->cycles : (double)NAN);
	if (side->has_cycles && !exact) {
		json_kdouble(json, "cycles_min", side->cycles);
		json_kdouble(json, "cycles_max", side->cycles_max);
	}
	json_kint(json, "global_instructions", side->global_instructions);
	json_kint(json, "global_sectors", side->global_sectors);
	json_kint(json, "shuffles", side->shuffles);
	json_kint(json, "exchange_barriers", side->exchange_barriers);
	json_end(json);
}

/* What the solver's layouts save beside TileLang's, at least; negative where they cost more, null
 * where the two are not counted alike. */
static void json_savings(struct json *json, const struct compile *compile)
{
	struct describe_savings savings = describe_savings(compile);
	const struct describe_side *theirs = &savings.tilelang, *own = &savings.own;
	bool alike = theirs->counted_grid == own->counted_grid;

	json_key(json, "savings");
	json_object(json);
	json_side(json, "tilelang", theirs);
	json_side(json, "own", own);
	json_key(json, "saved");
	if (!theirs->is_known || !own->is_known) {
		json_null(json);
	} else {
		json_object(json);
		if (alike) {
			json_kint(json, "shared_wavefronts", theirs->wavefronts - own->wavefronts);
			json_kint(json, "shared_excess", theirs->excess - own->excess);
		}
		json_kint(json, "shared_bytes", theirs->shared_bytes - own->shared_bytes);
		json_kdouble(json, "cycles", describe_saved_cycles(&savings));
		json_end(json);
	}
	json_end(json);
}

void describe_json(struct json *json, const struct compile *compile)
{
	const struct source *source = source_get(&compile->cx.sources, compile->file);
	const struct tile_program *program = compile->program;

	assert(compile->options.target && json->depth == 1);
	json_kstring(json, "file", source ? source->path : NULL);
	json_kstring(json, "kernel", program ? sym_text(compile->cx.names, program->name) : NULL);
	json_kstring(json, "target", compile->options.target->name);
	if (compile->options.parity)
		json_kstring(json, "parity", "tilelang");
	json_params(json, compile);
	json_launches(json, compile);
	json_buffers(json, compile);
	json_gemms(json, compile);
	json_conversions(json, compile);
	json_pipelines(json, compile);
	json_accesses(json, compile);
	json_targets(json, compile);
	json_properties(json, compile);
	if (compile->options.parity)
		json_savings(json, compile);
}

/* Notes point to another place, helps say what to change. */
static void json_attachment(struct json *json, const struct source_set *sources,
                            const struct diag_attachment *attachment)
{
	struct line_column where = source_locate(sources, attachment->span);

	json_object(json);
	json_kstring(json, "kind", attachment->is_help ? "help" : "note");
	json_kint(json, "line", where.line);
	json_kint(json, "column", where.column);
	json_kstring(json, "message", attachment->text);
	json_end(json);
}

/* In the order in which they were reported, as on a terminal. */
void describe_json_diagnostics(struct json *json, const struct diag_list *diags,
                               const struct source_set *sources)
{
	for (uint32_t i = 0; i < diags->items.n; i++) {
		const struct diag *diag = diags->items.p[i];
		struct line_column where = source_locate(sources, diag->span);

		json_object(json);
		json_kstring(json, "code", diag_code_text(diag->code));
		json_kstring(json, "severity", severity_text(diag->severity));
		json_kint(json, "line", where.line);
		json_kint(json, "column", where.column);
		json_kstring(json, "message", diag->message);
		if (diag->attachments.n > 0) {
			json_key(json, "notes");
			json_array(json);
			for (uint32_t j = 0; j < diag->attachments.n; j++)
				json_attachment(json, sources, &diag->attachments.p[j]);
			json_end(json);
		}
		json_end(json);
	}
}
