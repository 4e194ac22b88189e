/*
 * analyze_text: the analysis as one reads it in a terminal: the verdict first, then what it rests
 * on.
 *
 *     gemm.tl:7 gemm for sm_80
 *       M=128 N=128 K=128
 *
 *       launch         128 threads, grid 2 x 2 x 1
 *       shared memory  no bank conflicts (3,072 wavefronts, ideal 3,072)
 *       properties     9 proved
 *
 *     Shared-memory accesses  warp executions, summed over the grid
 *             buffer    instruction  executions  wavefronts  ideal  excess  ways
 *         16 | T.gemm(A_shared, B_shared, C_local)
 *             A_shared  ldmatrix.x4         256       1,024  1,024       0     1
 *
 * Nothing is wider than 100 columns unless a single word is. Colour only marks what the words say
 * as well.
 */
#include "cli/analyze.h"
#include "cli/table.h"

#include "analyzer/describe/describe.h"
#include "analyzer/solve/access.h"

#include <assert.h>
#include <stdio.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 100 };

struct text {
	struct cli *cli;
	const struct compile *compile;
	const struct launch_result *launch;
	struct buf *out;
	struct arena *arena;
	bool colour;
};

/* An empty line, the section's title, and dim words behind it. */
static void heading(struct text *text, const char *title, const char *remark)
{
	buf_char(text->out, '\n');
	style_text(text->out, STYLE_BOLD, text->colour, title);
	if (remark && remark[0]) {
		buf_text(text->out, "  ");
		style_text(text->out, STYLE_DIM, text->colour, remark);
	}
	buf_char(text->out, '\n');
}

/* `words` wrapped at WIDTH, lines behind `indent` blanks; `first` blanks before the first line,
 * whose beginning is there already. */
static void wrapped(struct text *text, enum table_style style, uint32_t first, uint32_t indent,
                    const char *words)
{
	for (uint32_t blanks = first; *words; blanks = indent) {
		size_t n = strlen(words), cut;
		struct buf line = { 0 };

		if (n > WIDTH - indent) {
			for (cut = WIDTH - indent; cut > 0 && words[cut] != ' '; cut--)
				;
			n = cut > 0 ? cut : strcspn(words, " ");
		}
		buf_add(&line, words, n);
		buf_printf(text->out, "%*s", (int)blanks, "");
		style_text(text->out, style, text->colour, buf_cstr(&line));
		buf_char(text->out, '\n');
		buf_free(&line);
		words += n;
		words += strspn(words, " ");
	}
}

/* An extent as it would be written: a number, or an expression of symbols. */
static const char *extent_text(const struct text *text, const struct expr *extent)
{
	struct buf out = { 0 };

	expr_print(&out, &text->compile->cx, extent);
	return buf_keep(&out, text->arena);
}

/* The kernel's line without its indentation, cut to `width` characters. */
static const char *source_text(const struct text *text, uint32_t line, uint32_t width)
{
	const struct source *source = source_get(&text->compile->cx.sources, text->compile->file);
	uint32_t begin, end, at, n = 0;

	if (!source || line == 0 || line > source->line_begins.n)
		return "";
	begin = source->line_begins.p[line - 1];
	end = line < source->line_begins.n ? source->line_begins.p[line] : source->text.n;
	while (begin < end && strchr(" \t", source->text.p[begin]))
		begin++;
	while (end > begin && strchr(" \t\r\n", source->text.p[end - 1]))
		end--;
	for (at = begin; at < end && n < width; n++)
		str_char_at(source->text, &at);
	return arena_printf(text->arena, "%.*s%s", (int)(at - begin), source->text.p + begin,
	                    at < end ? "…" : "");
}

/* Lines below a table's row: `label` and words, wrapped, the label's width free before the rest. */
static void note(struct text *text, struct table *table, enum table_style style, const char *label,
                 const char *words)
{
	uint32_t indent = text_width(label);

	while (*words) {
		size_t n = strlen(words), cut;

		if (n > WIDTH - 2 - indent) {
			for (cut = WIDTH - 2 - indent; cut > 0 && words[cut] != ' '; cut--)
				;
			n = cut > 0 ? cut : strcspn(words, " ");
		}
		table_note(table, style,
		           arena_printf(text->arena, "%*s%.*s", (int)indent, label, (int)n, words));
		words += n;
		words += strspn(words, " ");
		label = "";
	}
}

/* ---- sections ---- */

/* Where the kernel stands, for which target, and the values of its parameters. */
static void title(struct text *text)
{
	const struct compile *compile = text->compile;
	const struct tile_program *program = compile->program;
	const struct source *source = source_get(&compile->cx.sources, compile->file);
	struct buf line = { 0 };

	buf_printf(&line, "%s:%u %s", source->path, describe_line(compile, program->span),
	           sym_text(compile->cx.names, program->name));
	style_text(text->out, STYLE_BOLD, text->colour, buf_cstr(&line));
	buf_printf(text->out, " for %s%s\n", compile->options.target->name,
	           compile->options.parity ? ", as TileLang lays it out" : "");
	buf_free(&line);
	for (uint32_t i = 0; i < program->host_params.n; i++)
		buf_printf(&line, "%s%s=%s", i > 0 ? " " : "", program->host_params.p[i].name,
		           program->host_params.p[i].value_json ? program->host_params.p[i].value_json
		                                                : "?");
	wrapped(text, STYLE_DIM, 2, 2, buf_cstr(&line));
	buf_free(&line);
}

/* The verdict on bank conflicts over all launches. */
static void summary_banks(struct text *text)
{
	struct describe_totals totals = describe_totals(text->compile);

	if (totals.n_sites == 0)
		return;
	buf_text(text->out, "  shared memory  ");
	if (totals.n_with_excess == 0)
		style_text(text->out, STYLE_GOOD, text->colour, "no bank conflicts");
	else
		style_text(text->out, STYLE_BAD, text->colour,
		           arena_printf(text->arena, "%s excess wavefronts at %u of %u accesses",
		                        count_text(text->arena, totals.excess), totals.n_with_excess,
		                        totals.n_sites));
	buf_printf(text->out, " (%s wavefronts, ideal %s)", count_text(text->arena, totals.wavefronts),
	           count_text(text->arena, totals.ideal));
	if (totals.n_not_modelled > 0)
		buf_printf(text->out, ", %u not modelled", totals.n_not_modelled);
	buf_char(text->out, '\n');
}

/* "1,234 of 5,678 wavefronts", or what is more than theirs. */
static const char *saved_text(struct text *text, int64_t theirs, int64_t own, const char *what)
{
	if (own > theirs)
		return arena_printf(text->arena, "%s %s more", count_text(text->arena, own - theirs), what);
	if (own == theirs)
		return arena_printf(text->arena, "no %s", what);
	return arena_printf(text->arena, "%s of %s %s", count_text(text->arena, theirs - own),
	                    count_text(text->arena, theirs), what);
}

/* Excess, cycles and bytes that the solver's layouts save. */
static void summary_saved(struct text *text, const struct describe_savings *savings)
{
	const struct describe_side *theirs = &savings->tilelang, *own = &savings->own;
	double cycles = describe_saved_cycles(savings);

	buf_text(text->out, "  saves          ");
	if (theirs->counted_grid == own->counted_grid) {
		style_text(text->out, own->excess < theirs->excess ? STYLE_GOOD : STYLE_PLAIN, text->colour,
		           saved_text(text, theirs->excess, own->excess, "excess wavefronts"));
		buf_text(text->out, ", ");
	}
	if (!isnan(cycles))
		buf_printf(text->out, "%s, ",
		           saved_text(text, (int64_t)(theirs->cycles + 0.5),
		                      (int64_t)(own->cycles_max + 0.5), "predicted cycles"));
	buf_printf(text->out, "%s\n",
	           saved_text(text, theirs->shared_bytes, own->shared_bytes, "bytes of shared memory"));
}

/* The solver's own layouts beside TileLang's. */
static void summary_own(struct text *text)
{
	struct describe_savings savings;
	const struct describe_side *own = &savings.own;

	if (!text->compile->options.parity)
		return;
	savings = describe_savings(text->compile);
	buf_text(text->out, "  own layouts    ");
	if (!own->is_known) {
		buf_text(text->out,
		         "not known: without --parity this version does not compile the kernel\n");
		return;
	}
	buf_printf(text->out, "%s wavefronts, %s excess, %s B shared%s\n",
	           count_text(text->arena, own->wavefronts), count_text(text->arena, own->excess),
	           count_text(text->arena, own->shared_bytes),
	           own->counted_grid ? "" : ", of one block");
	summary_saved(text, &savings);
}

/* How many properties are proved, violated, not proved. */
static void summary_properties(struct text *text)
{
	struct describe_totals totals = describe_totals(text->compile);

	if (totals.n_proved + totals.n_violated + totals.n_not_proved == 0)
		return;
	buf_text(text->out, "  properties     ");
	style_text(text->out, STYLE_GOOD, text->colour,
	           arena_printf(text->arena, "%u proved", totals.n_proved));
	if (totals.n_violated > 0)
		buf_text(text->out, ", ");
	if (totals.n_violated > 0)
		style_text(text->out, STYLE_BAD, text->colour,
		           arena_printf(text->arena, "%u violated", totals.n_violated));
	if (totals.n_not_proved > 0)
		buf_text(text->out, ", ");
	if (totals.n_not_proved > 0)
		style_text(text->out, STYLE_WARN, text->colour,
		           arena_printf(text->arena, "%u not proved", totals.n_not_proved));
	buf_char(text->out, '\n');
}

/* Whether something better is possible, as far as the search knows. */
static void summary_search(struct text *text, const struct solution *solution)
{
	double gap = (solution->cost - solution->bound) / solution->cost * 100;
	const char *cycles = count_text(text->arena, (int64_t)(solution->cost + 0.5));

	if (solution->status == SOLVE_CONFLICT || solution->cost <= 0)
		return;
	if (solution->status == SOLVE_OPTIMAL)
		buf_printf(text->out, "  layouts        optimal, %s cycles a block\n", cycles);
	else
		buf_printf(text->out,
		           "  layouts        best found, %s cycles a block, %.1f %% above the bound%s\n",
		           cycles, gap, solution->is_partial ? " of those looked at" : "");
}

/* Threads, grid, what a block takes and how many blocks an SM holds. */
static void summary_launch(struct text *text)
{
	const struct launch *launch = text->launch->launch;
	struct launch_budget budget;

	buf_printf(text->out, "  launch         %lld threads, grid %s x %s x %s\n",
	           (long long)launch_n_threads(launch), extent_text(text, launch->grid[0]),
	           extent_text(text, launch->grid[1]), extent_text(text, launch->grid[2]));
	if (text->launch->parity && text->launch->parity->n_producer_threads > 0)
		buf_printf(text->out, "  producers      %lld threads more, which TileLang adds\n",
		           (long long)text->launch->parity->n_producer_threads);
	if (!text->launch->parity && text->launch->solution)
		summary_search(text, text->launch->solution);
	if (text->launch->schedule && !text->launch->warp)
		buf_printf(text->out, "  resources      %s B shared\n",
		           count_text(text->arena, text->launch->schedule->shared_bytes));
	if (!text->launch->schedule || !text->launch->warp)
		return;
	budget = describe_budget(text->launch, text->compile->options.target);
	buf_printf(text->out, "  resources      %s B shared, about %lld registers a thread\n",
	           count_text(text->arena, budget.shared_bytes), (long long)budget.registers_estimate);
	buf_text(text->out, "  occupancy      ");
	if (!budget.fits) {
		style_text(text->out, STYLE_BAD, text->colour, "does not fit");
		buf_printf(text->out, ": too much %s\n", occupancy_limiter_text(budget.occupancy.limiter));
		return;
	}
	buf_printf(text->out, "%.1f %%: %lld block%s an SM, limited by %s\n",
	           budget.occupancy.fraction * 100, (long long)budget.occupancy.blocks_per_sm,
	           budget.occupancy.blocks_per_sm == 1 ? "" : "s",
	           occupancy_limiter_text(budget.occupancy.limiter));
}

/* A row for the buffer, and its layout below when it is the solver's. */
static void buffer_row(struct text *text, struct table *table, const struct buffer *buffer)
{
	const struct compile *compile = text->compile;
	const struct layout *layout = describe_layout(compile, buffer);
	const struct shared_place *place =
		text->launch->schedule ? schedule_place(text->launch->schedule, buffer) : NULL;
	struct describe_places places = describe_places(compile, buffer);
	struct buf out = { 0 };
	char type[32];

	table_addf(table, STYLE_DIM, "%u", describe_line(compile, buffer->span));
	table_add(table, STYLE_PLAIN, sym_text(compile->cx.names, buffer->name));
	table_add(table, STYLE_PLAIN, scope_text(buffer->scope));
	table_addf(table, STYLE_PLAIN, "%s", dtype_name(buffer->type, type));
	for (uint32_t d = 0; d < buffer->rank; d++)
		buf_printf(&out, "%s%s", d > 0 ? " x " : "", extent_text(text, buffer->shape[d]));
	table_addf(table, STYLE_PLAIN, "%s", buf_cstr(&out));
	buf_free(&out);
	table_add(table, STYLE_PLAIN, count_text(text->arena, describe_bytes(compile, buffer)));
	table_add(table, STYLE_PLAIN, place ? count_text(text->arena, place->n_versions) : "");
	table_add(table, STYLE_PLAIN, place ? count_text(text->arena, place->offset_bytes) : "");
	table_add(table, STYLE_PLAIN, layout ? layout_kind_text(layout) : "");
	if (!layout || buffer->scope == SCOPE_GLOBAL)
		return;
	layout_print(&out, layout);
	while (out.n > 0 && out.p[out.n - 1] == '\n')
		out.p[--out.n] = '\0';
	note(text, table, STYLE_DIM, "      ", buf_keep(&out, text->arena));
	if (places.idle > 0)
		note(text, table, STYLE_DIM, "      ",
		     arena_printf(text->arena, "%s of %s places (thread, slot) idle (%.1f %%)",
		                  count_text(text->arena, places.idle), count_text(text->arena, places.n),
		                  100.0 * (double)places.idle / (double)places.n));
}

/* Shared memory that the tool added, for reductions and conversions. */
static void workspace_row(struct text *text, struct table *table, const struct shared_place *place)
{
	table_addf(table, STYLE_DIM, "%u",
	           place->workspace_of ? describe_line(text->compile, place->workspace_of->span) : 0);
	table_add(table, STYLE_PLAIN, describe_workspace(text->launch, place));
	table_add(table, STYLE_PLAIN, "shared");
	table_add(table, STYLE_PLAIN, "");
	table_add(table, STYLE_PLAIN, "workspace");
	table_add(table, STYLE_PLAIN, count_text(text->arena, place->version_bytes));
	table_add(table, STYLE_PLAIN, count_text(text->arena, place->n_versions));
	table_add(table, STYLE_PLAIN, count_text(text->arena, place->offset_bytes));
	table_add(table, STYLE_PLAIN, "linear");
}

/* All buffers of the launch, by number, then its workspaces. */
static void buffers(struct text *text)
{
	static const char *const columns[] = { "line",  "buffer",   "scope",  "type",  "shape",
		                                   "bytes", "versions", "offset", "layout" };
	const struct tile_program *program = text->compile->program;
	const struct schedule *schedule = text->launch->schedule;
	struct table table;

	heading(text, "Buffers", NULL);
	table_init(&table, text->arena, "rllllrrrl");
	for (uint32_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		table_add(&table, STYLE_DIM, columns[i]);
	for (uint32_t i = 0; i < program->buffers.n; i++)
		if (program->buffers.p[i]->is_param ||
		    program->buffers.p[i]->launch == text->launch->launch->index)
			buffer_row(text, &table, program->buffers.p[i]);
	for (uint32_t i = 0; schedule && i < schedule->places.n; i++)
		if (!schedule->places.p[i].buffer)
			workspace_row(text, &table, &schedule->places.p[i]);
	table_print(text->out, &table, text->colour);
}

/* The source line above the first access of each line of the kernel. */
static void access_row(struct text *text, struct table *table, const struct access_site *site,
                       bool new_line)
{
	bool exact = site->wavefronts == site->wavefronts_max;
	enum table_style style = site->excess > 0 ? STYLE_BAD : STYLE_PLAIN;
	const char *fix = describe_fix(text->compile, text->launch, site);
	const char *cause = describe_cause(text->compile, site);

	if (new_line)
		table_note(table, STYLE_DIM,
		           arena_printf(text->arena, "%4u | %s", site->line,
		                        source_text(text, site->line, WIDTH - 12)));
	table_addf(table, style, "      %s", site->buffer);
	table_add(table, style, site->instruction);
	table_add(table, style, count_text(text->arena, site->executions));
	if (exact)
		table_add(table, style, count_text(text->arena, site->wavefronts));
	else
		table_addf(table, style, "%s..%s", count_text(text->arena, site->wavefronts),
		           count_text(text->arena, site->wavefronts_max));
	table_add(table, style, count_text(text->arena, site->ideal));
	table_add(table, style, exact ? count_text(text->arena, site->excess) : "?");
	table_addf(table, style, "%d", site->ways);
	if (site->excess > 0 && site->reason)
		note(text, table, STYLE_WARN, "      why: ", site->reason);
	if (cause)
		note(text, table, STYLE_WARN, "      cause: ", cause);
	if (fix)
		note(text, table, STYLE_WARN, "      fix: ", fix);
}

/* The bank table, grouped by the kernel's lines; accesses with excess have the reason and what
 * helps. */
static void accesses(struct text *text)
{
	static const char *const columns[] = { "      buffer", "instruction", "executions",
		                                   "wavefronts",   "ideal",       "excess",
		                                   "ways" };
	const struct access_table *sites = &text->launch->accesses;
	struct table table;

	if (sites->sites.n == 0)
		return;
	heading(text, "Shared-memory accesses",
	        sites->counted_grid ? "warp executions, summed over the grid"
	                            : "warp executions of one block, unknown counts taken as one");
	table_init(&table, text->arena, "llrrrrr");
	for (uint32_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		table_add(&table, STYLE_DIM, columns[i]);
	for (uint32_t i = 0; i < sites->sites.n; i++)
		access_row(text, &table, &sites->sites.p[i],
		           i == 0 || sites->sites.p[i - 1].line != sites->sites.p[i].line);
	table_print(text->out, &table, text->colour);
}

static void conversion_row(struct text *text, struct table *table, const struct stmt_plan *plan,
                           const struct conversion *conversion)
{
	table_addf(table, STYLE_DIM, "%u", describe_line(text->compile, plan->stmt->span));
	table_add(table, STYLE_PLAIN, sym_text(text->compile->cx.names, conversion->buffer->name));
	table_add(table, STYLE_PLAIN, conversion->is_after ? "after" : "before");
	table_add(table, STYLE_PLAIN, conversion_kind_text(conversion->kind));
	table_add(table, STYLE_PLAIN, count_text(text->arena, conversion->workspace_bytes));
	table_add(table, STYLE_PLAIN, count_text(text->arena, conversion->wavefronts));
	table_add(table, STYLE_PLAIN, count_text(text->arena, conversion->ideal));
	table_add(table, STYLE_PLAIN, count_text(text->arena, conversion->n_barriers));
	table_add(table, STYLE_PLAIN, count_text(text->arena, conversion->n_rounds));
	table_add(table, STYLE_PLAIN, count_text(text->arena, (int64_t)conversion->cost));
}

/* Fragments that statements touch in another layout than they live in. */
static void conversions(struct text *text)
{
	static const char *const columns[] = {
		"line",       "buffer", "when",     "kind",     "bytes",
		"wavefronts", "ideal",  "barriers", "shuffles", "cycles"
	};
	const struct solution *solution = text->launch->solution;
	struct table table;
	uint32_t n = 0;

	table_init(&table, text->arena, "rlllrrrrrr");
	for (uint32_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		table_add(&table, STYLE_DIM, columns[i]);
	for (uint32_t s = 0; s < solution->program->n_stmts; s++)
		for (uint32_t c = 0; c < solution->plans[s].conversions.n; c++, n++)
			conversion_row(text, &table, &solution->plans[s], &solution->plans[s].conversions.p[c]);
	if (n == 0)
		return;
	heading(text, "Conversions between layouts", "of one block, each time");
	table_print(text->out, &table, text->colour);
}

/* A gemm's instruction and how its warps share the tile. */
static void gemm(void *user, struct stmt *stmt)
{
	struct text *text = user;
	const struct gemm_plan *plan;
	struct buf instruction = { 0 };

	if (stmt->kind != STMT_OP || !op_is_gemm(&stmt->as.op) ||
	    !text->launch->solution->plans[stmt->id].has_plan)
		return;
	plan = &text->launch->solution->plans[stmt->id].as.gemm;
	describe_instruction(&instruction, plan);
	heading(text,
	        arena_printf(text->arena, "Gemm at line %u", describe_line(text->compile, stmt->span)),
	        NULL);
	buf_printf(text->out, "  %lld x %lld x %lld with %s, A from %s, B from %s\n",
	           (long long)plan->m, (long long)plan->n, (long long)plan->k, buf_cstr(&instruction),
	           plan->a_is_fragment ? "a fragment" : "shared",
	           plan->b_is_fragment ? "a fragment" : "shared");
	if (plan->wgmma_n == 0 && gemm_k_rest(plan))
		buf_printf(text->out, "  the last k step has %lld of %d elements, the others are zero\n",
		           (long long)gemm_k_rest(plan), mma_shape_info(plan->shape)->k);
	buf_printf(text->out, "  %lld x %lld warps of %lld x %lld (policy %s)\n",
	           (long long)plan->warps_m, (long long)plan->warps_n,
	           (long long)(plan->m / plan->warps_m), (long long)(plan->n / plan->warps_n),
	           gemm_policy_text((enum gemm_policy)stmt->as.op.as.gemm.policy));
	buf_free(&instruction);
}

/* The steady state in the order in which its statements run, with their stage. */
static void pipeline(struct text *text, const struct pipeline *pipeline)
{
	static const char *const columns[] = { "order", "stage", "line", "op", "" };
	struct table table;

	heading(text,
	        arena_printf(text->arena, "Pipeline at line %u",
	                     describe_line(text->compile, pipeline->loop->span)),
	        arena_printf(text->arena, "%lld stage%s", (long long)pipeline->num_stages,
	                     pipeline->num_stages == 1 ? "" : "s"));
	table_init(&table, text->arena, "rrrll");
	for (uint32_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		table_add(&table, STYLE_DIM, columns[i]);
	for (uint32_t i = 0; i < pipeline->ops.n; i++) {
		const struct pipeline_op *op = &pipeline->ops.p[i];
		uint32_t line = describe_line(text->compile, op->stmt->span);

		table_addf(&table, STYLE_PLAIN, "%lld", (long long)op->order);
		table_addf(&table, STYLE_PLAIN, "%lld", (long long)op->stage);
		table_addf(&table, STYLE_DIM, "%u", line);
		table_addf(&table, STYLE_PLAIN, "%s%s", describe_stmt(op->stmt),
		           op->async ? ", async" : "");
		table_add(&table, STYLE_DIM, source_text(text, line, 64));
	}
	table_print(text->out, &table, text->colour);
	if (pipeline->reason)
		wrapped(text, STYLE_WARN, 2, 2,
		        arena_printf(text->arena, "fewer stages than written: %s", pipeline->reason));
}

/* The largest number of stages of each pipeline, "5" or "5, 3". */
static const char *max_stages_text(struct text *text, const struct target *target)
{
	struct buf out = { 0 };

	for (uint32_t i = 0; i < text->launch->schedule->pipelines.n; i++) {
		int64_t n =
			describe_max_stages(text->launch, &text->launch->schedule->pipelines.p[i], target);

		buf_text(&out, i > 0 ? ", " : "");
		if (n < 0)
			buf_text(&out, "any");
		else
			buf_printf(&out, "%lld", (long long)n);
	}
	return buf_keep(&out, text->arena);
}

/* Would the launch fit each target, and with how many stages at most? */
static void budget(struct text *text)
{
	static const char *const columns[] = { "target",       "fits",      "shared of a block",
		                                   "blocks an SM", "occupancy", "limit",
		                                   "most stages" };
	struct table table;

	if (!text->launch->schedule || !text->launch->warp)
		return;
	heading(text, "Targets", NULL);
	table_init(&table, text->arena, "llrrrlr");
	for (uint32_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		table_add(&table, STYLE_DIM, columns[i]);
	for (const struct target *target = target_all(); target->name; target++) {
		struct launch_budget launch = describe_budget(text->launch, target);

		table_add(&table, target == text->compile->options.target ? STYLE_BOLD : STYLE_PLAIN,
		          target->name);
		table_add(&table, launch.fits ? STYLE_GOOD : STYLE_BAD, launch.fits ? "yes" : "no");
		table_addf(&table, STYLE_PLAIN, "%s of %s", count_text(text->arena, launch.shared_bytes),
		           count_text(text->arena, target->shared_bytes_block));
		table_addf(&table, STYLE_PLAIN, "%lld", (long long)launch.occupancy.blocks_per_sm);
		table_addf(&table, STYLE_PLAIN, "%.1f %%", launch.occupancy.fraction * 100);
		table_add(&table, STYLE_PLAIN, occupancy_limiter_text(launch.occupancy.limiter));
		table_add(&table, STYLE_PLAIN, max_stages_text(text, target));
	}
	table_print(text->out, &table, text->colour);
}

/* Green, red, yellow. */
static enum table_style status_style(enum property_status status)
{
	switch (status) {
	case PROPERTY_PROVED:
		return STYLE_GOOD;
	case PROPERTY_VIOLATED:
		return STYLE_BAD;
	case PROPERTY_NOT_PROVED:
		break;
	}
	return STYLE_WARN;
}

enum { NAME_WIDTH = 15, STATUS_WIDTH = 12 };

/* "  coverage       proved      C_local (line 22): ..." with the detail wrapped in its own column.
 */
static void property(struct text *text, const struct property *property)
{
	uint32_t line = describe_line(text->compile, property->span);
	const char *status = property_status_text(property->status);
	struct buf detail = { 0 };

	if (property->buffer && property->buffer[0])
		buf_printf(&detail, "%s: ", property->buffer);
	buf_text(&detail, property->detail ? property->detail : "");
	if (line > 0)
		buf_printf(&detail, " (line %u)", line);
	buf_printf(text->out, "  %-*s", NAME_WIDTH, property_name_text(property->name));
	style_text(text->out, status_style(property->status), text->colour, status);
	wrapped(text, STYLE_PLAIN, STATUS_WIDTH - (uint32_t)strlen(status),
	        2 + NAME_WIDTH + STATUS_WIDTH, detail.n > 0 ? buf_cstr(&detail) : "-");
	buf_free(&detail);
}

/* One row for each checked property, in the order of the checks. */
static void properties(struct text *text)
{
	const struct property_list *list = &text->launch->properties;

	if (list->items.n == 0)
		return;
	heading(text, "Properties", NULL);
	for (uint32_t i = 0; i < list->items.n; i++)
		property(text, &list->items.p[i]);
}

/* Everything about one launch, in the order in which one asks. */
static void launch_sections(struct text *text)
{
	const struct schedule *schedule = text->launch->schedule;

	buffers(text);
	accesses(text);
	if (text->launch->solution) {
		conversions(text);
		tile_walk((struct block *)(uintptr_t)&text->launch->launch->body, gemm, text);
	}
	for (uint32_t i = 0; schedule && i < schedule->pipelines.n; i++)
		pipeline(text, &schedule->pipelines.p[i]);
	budget(text);
	properties(text);
}

/* The summary covers all launches; with several, each has its sections under a heading. */
void analyze_text(struct cli *cli, const struct compile *compile)
{
	struct text text = { .cli = cli,
		                 .compile = compile,
		                 .out = &cli->out,
		                 .arena = cli->arena,
		                 .colour = cli->colour_out };

	assert(compile->program);
	title(&text);
	buf_char(text.out, '\n');
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		text.launch = compile->launches.p[i];
		summary_launch(&text);
	}
	summary_banks(&text);
	summary_own(&text);
	summary_properties(&text);
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		text.launch = compile->launches.p[i];
		if (compile->launches.n > 1)
			heading(&text,
			        arena_printf(text.arena, "Launch %u at line %u", i,
			                     describe_line(compile, text.launch->launch->span)),
			        NULL);
		launch_sections(&text);
	}
}
