/*
 * analyze --why BUFFER: which constraint decided the buffer's layout, which others were weighed,
 * and what the runner-up would have cost. All of it was written down by the solver while it
 * decided; nothing is worked out anew here.
 */
#include "cli/analyze.h"
#include "cli/options.h"
#include "cli/table.h"

#include "analyzer/describe/describe.h"

#include <inttypes.h>
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
		           layout_kind_text(candidate->layout), c == 0 ? " (chosen)" : "");
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

/* Costs are cycles of one block. A cheaper layout can lose to what the program's text demands. */
static void print_runner_up(struct cli *cli, const struct buffer_solution *solved)
{
	const struct candidate *chosen, *next;

	if (solved->candidates.n < 2) {
		buf_text(&cli->out, "No other layout was possible.\n");
		return;
	}
	chosen = &solved->candidates.p[0];
	next = &solved->candidates.p[1];
	if (next->cost == chosen->cost)
		buf_printf(&cli->out, "The runner-up, %s, costs the same%s.\n",
		           layout_kind_text(next->layout),
		           next->layout->n_bytes > chosen->layout->n_bytes ? " and takes more bytes" : "");
	else if (next->cost < chosen->cost)
		buf_printf(
			&cli->out,
			"The next, %s, would cost %.0f cycles a block less, but what is written decides.\n",
			layout_kind_text(next->layout), chosen->cost - next->cost);
	else
		buf_printf(&cli->out, "The runner-up, %s, would cost %.0f cycles a block more.\n",
		           layout_kind_text(next->layout), next->cost - chosen->cost);
}

/* Global tensors have no candidates: the caller laid them out. */
static void why_text(struct cli *cli, const struct compile *compile,
                     const struct buffer_solution *solved)
{
	const struct buffer *buffer = solved->buffer;
	uint32_t line = fixed_line(compile, solved);

	buf_printf(&cli->out, "%s, %s, line %" PRIu32 ": %s\n  %s\n",
	           sym_text(compile->cx.names, buffer->name), scope_text(buffer->scope),
	           describe_line(compile, buffer->span), layout_kind_text(solved->layout),
	           layout_text(cli, solved->layout));
	if (solved->fixed_by)
		buf_printf(&cli->out, "Decided on line %" PRIu32 " by %s\n", line, solved->fixed_by->text);
	else
		buf_text(&cli->out, "Tensors in global memory lie as they are declared.\n");
	if (buffer->scope == SCOPE_GLOBAL)
		return;
	buf_char(&cli->out, '\n');
	if (solved->candidates.n > 0)
		print_candidates(cli, solved);
	print_runner_up(cli, solved);
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
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
	cli_json_end(cli, &json);
}

/* E0908 when no launch gives a buffer of that name a layout. */
bool analyze_why(struct cli *cli, const struct compile *compile, const char *name)
{
	const struct buffer_solution *solved = find_solved(compile, name);

	if (!solved) {
		diag_report(&cli->cx.diags, DIAG_E0908, (struct span){ 0 },
		            "--why %s: the kernel has no buffer of that name with a layout", name);
		return false;
	}
	if (cli->options.json)
		why_json(cli, compile, solved);
	else
		why_text(cli, compile, solved);
	return true;
}
