/*
 * analyze --why BUFFER: which constraint decided the buffer's layout, by way of which other
 * fragments, which layouts were weighed, and what the whole block would cost with each. All of it
 * was written down by the solver; nothing is worked out anew here.
 */
#include "cli/analyze.h"
#include "cli/options.h"
#include "cli/table.h"

#include "analyzer/describe/describe.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The buffer's entry in the first launch that places it; NULL when there is none. */
static const struct buffer_solution *find_solved(const struct compile *compile, const char *name)
{
	for (uint32_t l = 0; l < compile->launches.n; l++) {
		const struct solution *solution = compile->launches.p[l]->solution;

		for (uint32_t b = 0; solution && b < solution->program->buffers.n; b++) {
			const struct buffer_solution *solved = &solution->buffers[b];

			if (solved->buffer && solved->layout &&
			    strcmp(sym_text(compile->cx.names, solved->buffer->name), name) == 0)
				return solved;
		}
	}
	return NULL;
}

/* Cut after 400 bytes: a table of every element tells a reader nothing. */
static const char *layout_text(struct cli *cli, const struct layout *layout)
{
	struct buf text = { 0 };
	const char *copy;

	layout_print(&text, layout);
	copy = arena_strndup(cli->arena, text.p, text.n < 400 ? text.n : 400);
	buf_free(&text);
	return copy;
}

/* The line of the statement that decided; 0 where nothing had to. */
static uint32_t fixed_line(const struct compile *compile, const struct buffer_solution *solved)
{
	return solved->fixed_by ? describe_line(compile, solved->fixed_by->span) : 0;
}

/* The rows of candidates; wavefronts only where memory is read. */
static void print_candidates(struct cli *cli, const struct buffer_solution *solved)
{
	bool memory = solved->layout->kind == LAYOUT_MEMORY;
	struct table table;

	table_init(&table, cli->arena, memory ? "lrrrr" : "lr");
	table_add(&table, STYLE_DIM, "candidate");
	for (int column = 0; memory && column < 3; column++)
		table_add(&table, STYLE_DIM, column == 0 ? "wavefronts" : column == 1 ? "ideal" : "bytes");
	table_add(&table, STYLE_DIM, "cycles a block");
	for (uint32_t c = 0; c < solved->candidates.n; c++) {
		const struct candidate *candidate = &solved->candidates.p[c];

		table_addf(&table, c == 0 ? STYLE_GOOD : STYLE_PLAIN, "%s%s",
		           candidate->edit ? candidate->edit : layout_kind_text(candidate->layout),
		           c == 0 ? " (chosen)" : "");
		if (memory) {
			table_add(&table, STYLE_PLAIN, count_text(cli->arena, candidate->wavefronts));
			table_add(&table, STYLE_PLAIN, count_text(cli->arena, candidate->ideal));
			table_add(&table, STYLE_PLAIN, count_text(cli->arena, candidate->layout->n_bytes));
		}
		table_addf(&table, STYLE_PLAIN, "%.0f", candidate->cost);
		table_note(&table, STYLE_DIM, layout_text(cli, candidate->layout));
	}
	table_print(&cli->out, &table, cli->colour_out);
}

/* An instruction decided. */
static bool is_of_gemm(const struct buffer_solution *solved)
{
	return solved->fixed_by && (solved->fixed_by->kind == CONSTRAINT_ACCUMULATOR ||
	                            solved->fixed_by->kind == CONSTRAINT_OPERAND);
}

/* Costs are cycles of one block. A cheaper layout can lose to what the program's text demands, or
 * to the end of the search. */
static void print_runner_up(struct cli *cli, const struct buffer_solution *solved)
{
	const struct candidate *chosen = &solved->candidates.p[0], *next = &solved->candidates.p[1];
	bool is_written =
		is_of_gemm(solved) || (solved->fixed_by && solved->fixed_by->kind == CONSTRAINT_ANNOTATION);
	const char *kind;
	double more;

	kind = next->edit ? next->edit : layout_kind_text(next->layout);
	more = round(next->cost) - round(chosen->cost);
	if (next->cost == chosen->cost)
		buf_printf(&cli->out, "The runner-up, %s, costs the same%s.\n", kind,
		           next->layout->n_bytes > chosen->layout->n_bytes ? " and takes more bytes" : "");
	else if (more > 0)
		buf_printf(&cli->out, "The runner-up, %s, would cost %.0f cycles a block more.\n", kind,
		           more);
	else if (is_written)
		buf_printf(&cli->out,
		           "The next, %s, would cost %.0f cycles a block less, but what is written "
		           "decides.\n",
		           kind, -more);
	else
		buf_printf(&cli->out,
		           "The next, %s, would cost %.0f cycles a block less: the search ended before it "
		           "came there; T.annotate_layout takes it.\n",
		           kind, -more);
}

/* The fragments whose layouts were carried over, up to the one where they started. */
static const struct buffer_solution *print_chain(struct cli *cli, const struct compile *compile,
                                                 const struct buffer_solution *solved)
{
	enum { MOST_LINKS = 16 };

	for (int i = 0; solved->follows && i < MOST_LINKS; i++) {
		const char *name = sym_text(compile->cx.names, solved->follows->name);

		solved = find_solved(compile, name);
		if (!solved || !solved->fixed_by)
			break;
		buf_printf(&cli->out, "  which follows %s, decided on line %" PRIu32 " by %s\n", name,
		           fixed_line(compile, solved), solved->fixed_by->text);
	}
	return solved;
}

/* Global tensors have no candidates: the caller laid them out. */
static void why_text(struct cli *cli, const struct compile *compile,
                     const struct buffer_solution *solved)
{
	const struct buffer *buffer = solved->buffer;
	const struct buffer_solution *first = solved;
	uint32_t line = fixed_line(compile, solved);

	buf_printf(&cli->out, "%s, %s, line %" PRIu32 ": %s\n  %s\n",
	           sym_text(compile->cx.names, buffer->name), scope_text(buffer->scope),
	           describe_line(compile, buffer->span), layout_kind_text(solved->layout),
	           layout_text(cli, solved->layout));
	if (!solved->fixed_by) {
		buf_text(&cli->out, "Tensors in global memory lie as they are declared.\n");
		return;
	}
	buf_printf(&cli->out, "Decided on line %" PRIu32 " by %s\n", line, solved->fixed_by->text);
	first = print_chain(cli, compile, solved);
	if (solved->candidates.n > 0) {
		buf_char(&cli->out, '\n');
		print_candidates(cli, solved);
	}
	if (solved->candidates.n > 1)
		print_runner_up(cli, solved);
	else if (first && first != solved)
		buf_printf(&cli->out, "No other layout goes with %s: --why %s says what that could be.\n",
		           sym_text(compile->cx.names, first->buffer->name),
		           sym_text(compile->cx.names, first->buffer->name));
	else if (is_of_gemm(solved))
		buf_text(&cli->out, "The gemm's other policies give no other layout.\n");
	else
		buf_text(&cli->out, "No other layout was possible.\n");
}

/* Candidates in the solver's order, the chosen one first. */
static void why_json(struct cli *cli, const struct compile *compile,
                     const struct buffer_solution *solved)
{
	struct json json;

	cli_json_begin(cli, &json);
	json_key(&json, "why");
	json_object(&json);
	json_kstring(&json, "buffer", sym_text(compile->cx.names, solved->buffer->name));
	json_kstring(&json, "kind", layout_kind_text(solved->layout));
	json_kstring(&json, "text", layout_text(cli, solved->layout));
	json_kint(&json, "line", fixed_line(compile, solved));
	json_kstring(&json, "constraint", solved->fixed_by ? solved->fixed_by->text : "");
	json_key(&json, "follows");
	if (solved->follows)
		json_string(&json, sym_text(compile->cx.names, solved->follows->name));
	else
		json_null(&json);
	json_key(&json, "candidates");
	json_array(&json);
	for (uint32_t c = 0; c < solved->candidates.n; c++) {
		const struct candidate *candidate = &solved->candidates.p[c];

		json_object(&json);
		json_kstring(&json, "kind", layout_kind_text(candidate->layout));
		json_kstring(&json, "text", layout_text(cli, candidate->layout));
		json_kint(&json, "wavefronts", candidate->wavefronts);
		json_kint(&json, "ideal", candidate->ideal);
		json_kint(&json, "bytes", candidate->layout->n_bytes);
		json_kdouble(&json, "cost", candidate->cost);
		json_key(&json, "edit");
		if (candidate->edit)
			json_string(&json, candidate->edit);
		else
			json_null(&json);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
	cli_json_end(cli, &json);
}

/* What is no choice of the solver's. */
struct unplaced {
	const char *name, *scope, *text;
	uint32_t line;
};

static const char *unplaced_text(enum scope scope)
{
	switch (scope) {
	case SCOPE_GLOBAL:
		return "Tensors in global memory lie as they are declared.";
	case SCOPE_LOCAL:
	case SCOPE_VAR:
		return "Every thread has its own, in its registers: there is no layout to choose.";
	case SCOPE_SHARED:
	case SCOPE_FRAGMENT:
	case N_SCOPES:
		break;
	}
	return "Nothing uses it: it has no layout.";
}

/* A buffer without a layout, or memory that the tool added. */
static bool find_unplaced(const struct compile *compile, const char *name, struct unplaced *out)
{
	const struct tile_program *program = compile->program;

	for (uint32_t b = 0; program && b < program->buffers.n; b++) {
		const struct buffer *buffer = program->buffers.p[b];

		*out = (struct unplaced){ name, scope_text(buffer->scope), unplaced_text(buffer->scope),
			                      describe_line(compile, buffer->span) };
		if (strcmp(sym_text(compile->cx.names, buffer->name), name) == 0)
			return true;
	}
	for (uint32_t l = 0; l < compile->launches.n; l++) {
		const struct launch_result *launch = compile->launches.p[l];

		for (uint32_t i = 0; launch->schedule && i < launch->schedule->places.n; i++) {
			const struct shared_place *place = &launch->schedule->places.p[i];

			if (place->buffer || !place->workspace_of ||
			    strcmp(describe_workspace(launch, place), name) != 0)
				continue;
			*out =
				(struct unplaced){ name, scope_text(SCOPE_SHARED),
				                   "Room that the statement on this line needs: partial results of "
				                   "a reduction or a scan, or a fragment between two layouts.",
				                   describe_line(compile, place->workspace_of->span) };
			return true;
		}
	}
	return false;
}

/* In the form of a buffer that has a layout. */
static void why_unplaced(struct cli *cli, const struct unplaced *unplaced)
{
	struct json json;

	if (!cli->options.json) {
		buf_printf(&cli->out, "%s, %s, line %" PRIu32 "\n%s\n", unplaced->name, unplaced->scope,
		           unplaced->line, unplaced->text);
		return;
	}
	cli_json_begin(cli, &json);
	json_key(&json, "why");
	json_object(&json);
	json_kstring(&json, "buffer", unplaced->name);
	json_key(&json, "kind");
	json_null(&json);
	json_kint(&json, "line", 0);
	json_kstring(&json, "constraint", unplaced->text);
	json_key(&json, "candidates");
	json_array(&json);
	json_end(&json);
	json_end(&json);
	cli_json_end(cli, &json);
}

/* E0908 when the kernel has no buffer of that name. */
bool analyze_why(struct cli *cli, const struct compile *compile, const char *name)
{
	const struct buffer_solution *solved = find_solved(compile, name);
	struct unplaced unplaced;

	if (!solved && !find_unplaced(compile, name, &unplaced)) {
		diag_report(&cli->cx.diags, DIAG_E0908, (struct span){ 0 },
		            "--why %s: the kernel has no buffer of that name", name);
		return false;
	}
	if (!solved)
		why_unplaced(cli, &unplaced);
	else if (cli->options.json)
		why_json(cli, compile, solved);
	else
		why_text(cli, compile, solved);
	return true;
}
