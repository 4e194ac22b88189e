/*
 * swizzle: the best layout of one shared tile for a set of accesses, with the bound that proves it.
 *
 * The answer is written in the forms that people paste: the layout's own text, CuTe's Swizzle o
 * shape:stride, C statements, and a TileLang annotation.
 */
#include "cli/cli.h"
#include "cli/table.h"

#include "analyzer/layout/algebra.h"
#include "analyzer/layout/swizzle_notation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The most that a layout may take, padding included, unless --max-bytes says otherwise. */
enum { MAX_TILE_BYTES = 1 << 20 };

/* ---- the question ---- */

/* "64x64"; E0904 for what is no list of extents, or has too many elements for the search. */
static bool read_shape(struct cli *cli, struct swizzle_problem *problem)
{
	const char *at = cli->options.shape;
	int64_t n = 1;

	for (;;) {
		char *end;
		long extent = strtol(at, &end, 10);

		if (end == at || extent < 1 || problem->rank == MAX_RANK ||
		    (n *= extent < SWIZZLE_MAX_ELEMS ? extent : SWIZZLE_MAX_ELEMS + 1) >
		        SWIZZLE_MAX_ELEMS) {
			diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 },
			            "--shape '%s' is no tile of at most %d elements", cli->options.shape,
			            SWIZZLE_MAX_ELEMS);
			diag_help(&cli->cx.diags, "write the extents with x between them, as --shape 64x64");
			return false;
		}
		problem->shape[problem->rank++] = extent;
		if (*end == '\0')
			return true;
		at = *end == 'x' ? end + 1 : "";
	}
}

/*
 * float16 when nothing is given. Elements below a byte have no layout of their own: a pair of them
 * has.
 */
static bool read_dtype(struct cli *cli, struct swizzle_problem *problem)
{
	const char *name = cli->options.dtype ? cli->options.dtype : "float16";
	struct dtype type;
	uint32_t bits;

	if (!dtype_parse(str_of(name), &type)) {
		diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 }, "--dtype '%s' is no type",
		            name);
		diag_help(&cli->cx.diags, "write float16, bfloat16, float32, float8_e4m3, int8, float64");
		return false;
	}
	bits = dtype_bits(type);
	if (bits < 8 || (bits & (bits - 1)) != 0) {
		diag_report(&cli->cx.diags, DIAG_E0904, (struct span){ 0 },
		            "--dtype '%s': elements below a byte are placed in pairs", name);
		diag_help(&cli->cx.diags, "give --dtype uint8 and a shape in bytes");
		return false;
	}
	problem->elem_bits = bits < 8 ? 8 : bits;
	return true;
}

/*
 * All accesses are read before the first refusal, so that one run shows all that is wrong with
 * them.
 */
static bool read_problem(struct cli *cli, struct swizzle_problem *problem)
{
	bool ok = true;

	if (!cli->options.shape || cli->options.access.n == 0) {
		diag_report(&cli->cx.diags, DIAG_E0903, (struct span){ 0 }, "%s is missing",
		            cli->options.shape ? "--access" : "--shape");
		diag_help(&cli->cx.diags, "%s", cli->verb->example);
		return false;
	}
	if (!read_shape(cli, problem) || !read_dtype(cli, problem))
		return false;
	for (uint32_t i = 0; i < cli->options.access.n; i++)
		ok = swizzle_read_access(&cli->cx, problem, cli->options.access.p[i]) && ok;
	problem->max_bytes = MAX_TILE_BYTES;
	if (cli->options.has_max_bytes)
		problem->max_bytes = cli->options.max_bytes;
	return ok;
}

/* ---- the layout in other notations ---- */

/* Elements: digits as terms with `/` or `//`; the names of the dimensions are i, j, k, ... */
static void print_terms(struct buf *out, const struct layout *layout, const char *divide)
{
	int64_t unit = layout->elem_bits / 8;
	bool any = false;

	for (uint32_t n = 0; n < layout->n_digits; n++) {
		const struct digit *digit = &layout->digits[n];
		int64_t rest = (layout->shape[digit->dim] + digit->div - 1) / digit->div;

		buf_text(out, any ? " + " : "");
		any = true;
		if (digit->dim < 4)
			buf_char(out, "ijkl"[digit->dim]);
		else
			buf_printf(out, "i%d", digit->dim);
		if (digit->div != 1)
			buf_printf(out, "%s%" PRId64, divide, digit->div);
		if (digit->extent != rest)
			buf_printf(out, "%%%" PRId64, digit->extent);
		if (digit->stride != unit)
			buf_printf(out, "*%" PRId64, digit->stride / unit);
	}
	if (!any)
		buf_char(out, '0');
}

/* log2 of an element's bytes: XOR terms are on bytes, the notations below on elements. */
static int unit_log(const struct layout *layout)
{
	return __builtin_ctz(layout->elem_bits / 8);
}

/* "int offset = i*64 + j; offset ^= (offset >> 6 & 7) << 3;"; NULL for tables. */
static const char *c_text(struct arena *arena, const struct layout *layout)
{
	struct buf buf = { 0 };
	const char *text;

	if (layout->table)
		return NULL;
	buf_text(&buf, "int offset = ");
	print_terms(&buf, layout, "/");
	buf_char(&buf, ';');
	for (uint32_t x = 0; x < layout->n_xors; x++) {
		const struct xor_term *term = &layout->xors[x];

		buf_printf(&buf, " offset ^= (offset >> %d & %d) << %d;", term->from_bit - unit_log(layout),
		           (1 << term->n_bits) - 1, term->to_bit - unit_log(layout));
	}
	text = arena_strndup(arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

/* One expression of the offset in elements, each XOR term around what came before it. */
static const char *python_offset(struct arena *arena, const struct layout *layout)
{
	struct buf buf = { 0 };
	const char *text;

	print_terms(&buf, layout, "//");
	text = arena_strndup(arena, buf.p, buf.n);
	buf_free(&buf);
	for (uint32_t x = 0; x < layout->n_xors; x++) {
		const struct xor_term *term = &layout->xors[x];

		text = arena_printf(arena, "(%s) ^ ((((%s) >> %d) & %d) << %d)", text, text,
		                    term->from_bit - unit_log(layout), (1 << term->n_bits) - 1,
		                    term->to_bit - unit_log(layout));
	}
	return text;
}

/* NULL for tables, and where nested XOR terms would make the text explode. */
static const char *annotation_text(struct arena *arena, const struct layout *layout)
{
	struct buf shape = { 0 }, names = { 0 };
	const char *text;

	if (layout->table || layout->n_xors > 4)
		return NULL;
	for (uint32_t d = 0; d < layout->rank; d++) {
		buf_printf(&shape, "%s%" PRId64, d ? ", " : "", layout->shape[d]);
		if (d < 4)
			buf_printf(&names, "%s%c", d ? ", " : "", "ijkl"[d]);
		else
			buf_printf(&names, ", i%u", d);
	}
	text = arena_printf(arena, "T.annotate_layout({tile: T.Layout([%s], lambda %s: %s)})",
	                    buf_cstr(&shape), buf_cstr(&names), python_offset(arena, layout));
	buf_free(&shape);
	buf_free(&names);
	return text;
}

/* NULL where CuTe has no form: several XOR terms, tables. */
static const char *cute_text(struct arena *arena, const struct layout *layout)
{
	struct cute_composed a;
	struct buf buf = { 0 };
	const char *text;

	if (!cute_from_memory(arena, layout, &a))
		return NULL;
	if (a.swizzle.bits > 0)
		buf_printf(&buf, "Swizzle<%d,%d,%d> o ", a.swizzle.bits, a.swizzle.base, a.swizzle.shift);
	cute_print(&buf, a.layout);
	text = arena_strndup(arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

/* The layout's own text form. */
static const char *layout_text(struct arena *arena, const struct layout *layout)
{
	struct buf buf = { 0 };
	const char *text;

	layout_print(&buf, layout);
	text = arena_strndup(arena, buf.p, buf.n);
	buf_free(&buf);
	return text;
}

/* ---- the answer ---- */

/* The bound was reached, so that no layout of any form is better. */
static bool is_optimal(const struct swizzle_answer *answer)
{
	return answer->best.layout && answer->best.cost == answer->bound;
}

/* What there is to say beside the numbers. */
static const char *remark(struct cli *cli, const struct swizzle_problem *problem,
                          const struct swizzle_answer *answer)
{
	int64_t pitch = problem->shape[problem->rank - 1] * problem->elem_bits / 8;

	if (!answer->best.layout)
		return "no layout serves all of these accesses: matrix instructions need 16 bytes along a "
			   "row and 16 bytes along a column in one place; keep two copies of the tile, or use "
			   ".trans on one side";
	if (answer->best.cost == answer->row_major.cost && pitch % 32 == 16)
		return arena_printf(cli->arena,
		                    "no swizzle is needed: rows of %" PRId64
		                    " bytes are an odd multiple of 16 bytes, so that 8 rows lie on 8 "
		                    "different groups of banks",
		                    pitch);
	if (answer->best.cost == answer->row_major.cost && is_optimal(answer))
		return "no swizzle is needed: row-major reaches the bound";
	if (answer->best.cost == answer->row_major.cost)
		return "no layout was found that is better than row-major";
	if (answer->widths_compete)
		return "vectors of two accesses run in different directions: no layout serves both at "
			   "their full widths";
	return NULL;
}

/* What the answer is worth: proved, proved among linear layouts, or the gap that is left. */
static const char *proof(struct cli *cli, const struct swizzle_answer *answer)
{
	if (is_optimal(answer))
		return arena_printf(cli->arena,
		                    "proved optimal: no layout takes fewer than %" PRId64 " wavefronts",
		                    answer->bound);
	if (answer->is_linear && answer->best.cost == answer->linear_bound)
		return arena_printf(cli->arena,
		                    "proved optimal among layouts linear over F2 (all XOR swizzles without "
		                    "padding): none takes fewer than %" PRId64
		                    " wavefronts; for layouts of other forms %" PRId64 " is proved",
		                    answer->linear_bound, answer->bound);
	return arena_printf(
		cli->arena,
		"best found: %" PRId64 " wavefronts, no layout takes fewer than %" PRId64 " (gap %.1f %%)",
		answer->best.cost, answer->bound,
		100.0 * (double)(answer->best.cost - answer->bound) / (double)answer->best.cost);
}

/* Red above the bound; "-" where the layout does not serve the access. */
static void add_count(struct table *table, const struct swizzle_count *count, int64_t bound)
{
	if (count->wavefronts < 0)
		table_add(table, STYLE_BAD, "-");
	else
		table_addf(table, count->wavefronts > bound ? STYLE_BAD : STYLE_GOOD, "%" PRId64,
		           count->wavefronts);
}

/*
 * An access a row: how often it runs, by which instruction, and wavefronts of the tile row-major,
 * at best, and at the bound.
 */
static void print_counts(struct cli *cli, const struct swizzle_problem *problem,
                         const struct swizzle_answer *answer)
{
	struct table table;

	table_init(&table, cli->arena, "lrlrrr");
	for (size_t i = 0; i < 6; i++)
		table_add(&table, STYLE_DIM,
		          ((const char *const[]){ "access", "runs", "instruction", "row-major", "best",
		                                  "bound" })[i]);
	for (uint32_t a = 0; a < problem->n_accesses; a++) {
		const struct tile_access *access = &problem->accesses[a];
		const struct swizzle_count *best = &answer->best.counts[a];

		table_add(&table, STYLE_PLAIN, cli->options.access.p[a]);
		table_addf(&table, STYLE_PLAIN, "%" PRId64, access->weight);
		table_add(&table, STYLE_PLAIN,
		          swizzle_instruction(cli->arena, access,
		                              answer->best.layout ? best->bytes : access->bytes));
		add_count(&table, &answer->row_major.counts[a], answer->bounds[a]);
		if (answer->best.layout)
			add_count(&table, best, answer->bounds[a]);
		else
			table_add(&table, STYLE_BAD, "-");
		table_addf(&table, STYLE_PLAIN, "%" PRId64, answer->bounds[a]);
	}
	table_print(&cli->out, &table, cli->colour_out);
}

/* Counts, then the layout in every notation; a notation that cannot say it says so. */
static void print_answer(struct cli *cli, const struct swizzle_problem *problem,
                         const struct swizzle_answer *answer)
{
	const struct layout *layout = answer->best.layout;
	const char *words = remark(cli, problem, answer);

	buf_text(&cli->out, "wavefronts of the whole tile, a run\n");
	print_counts(cli, problem, answer);
	if (layout) {
		const char *cute = cute_text(cli->arena, layout), *c = c_text(cli->arena, layout);
		const char *annotation = annotation_text(cli->arena, layout);

		buf_printf(&cli->out, "\n%s\n", proof(cli, answer));
		buf_printf(&cli->out, "layout    %s (%" PRId64 " bytes)\n", layout_kind_text(layout),
		           layout->n_bytes);
		buf_printf(&cli->out, "text      %s\n", layout_text(cli->arena, layout));
		buf_printf(&cli->out, "CuTe      %s\n",
		           cute ? cute : "has no form of shape:stride and one Swizzle");
		buf_printf(&cli->out, "C         %s\n", c ? c : "a table");
		buf_printf(&cli->out, "TileLang  %s\n", annotation ? annotation : "a table");
	}
	if (words)
		buf_printf(&cli->out, "%s%s\n", layout ? "remark    " : "\n", words);
}

/* One access under one layout; "wavefronts" is null where the layout does not serve it. */
static void json_counts(struct json *json, const char *key, const struct swizzle_count *count)
{
	json_key(json, key);
	json_object(json);
	json_kint(json, "bytes_per_thread", count->bytes);
	json_kint(json, "executions", count->executions);
	json_key(json, "wavefronts");
	if (count->wavefronts < 0)
		json_null(json);
	else
		json_int(json, count->wavefronts);
	json_kint(json, "ideal", count->ideal);
	json_end(json);
}

/* The layout in every notation; null for those that cannot say it. */
static void json_layout(struct cli *cli, struct json *json, const struct layout *layout)
{
	json_key(json, "layout");
	if (!layout) {
		json_null(json);
		return;
	}
	json_object(json);
	json_kstring(json, "text", layout_text(cli->arena, layout));
	json_kstring(json, "kind", layout_kind_text(layout));
	json_kint(json, "bytes", layout->n_bytes);
	json_kstring(json, "cute", cute_text(cli->arena, layout));
	json_kstring(json, "c", c_text(cli->arena, layout));
	json_kstring(json, "annotate_layout", annotation_text(cli->arena, layout));
	json_end(json);
}

/* The same content as the text, with the number of layouts that were counted. */
static void print_json(struct cli *cli, const struct swizzle_problem *problem,
                       const struct swizzle_answer *answer)
{
	struct json json;

	cli_json_begin(cli, &json);
	json_key(&json, "shape");
	json_array(&json);
	for (uint32_t d = 0; d < problem->rank; d++)
		json_int(&json, problem->shape[d]);
	json_end(&json);
	json_kint(&json, "elem_bits", problem->elem_bits);
	json_layout(cli, &json, answer->best.layout);
	json_key(&json, "accesses");
	json_array(&json);
	for (uint32_t a = 0; a < problem->n_accesses; a++) {
		json_object(&json);
		json_kstring(&json, "access", cli->options.access.p[a]);
		json_kint(&json, "weight", problem->accesses[a].weight);
		json_counts(&json, "row_major", &answer->row_major.counts[a]);
		if (answer->best.layout)
			json_counts(&json, "best", &answer->best.counts[a]);
		json_kint(&json, "bound", answer->bounds[a]);
		json_end(&json);
	}
	json_end(&json);
	json_kint(&json, "bound", answer->bound);
	json_key(&json, "linear_bound");
	if (answer->is_linear)
		json_int(&json, answer->linear_bound);
	else
		json_null(&json);
	json_kbool(&json, "optimal", is_optimal(answer));
	json_kint(&json, "layouts_counted", answer->n_layouts);
	json_kstring(&json, "remark", remark(cli, problem, answer));
	cli_json_end(cli, &json);
}

/* Exit code 1 when no layout serves all accesses. */
int cmd_swizzle(struct cli *cli)
{
	struct swizzle_problem problem = { 0 };
	struct swizzle_answer *answer = arena_new(cli->arena, struct swizzle_answer);
	bool found = true;

	if (read_problem(cli, &problem)) {
		swizzle_search(cli->arena, &problem, answer);
		found = answer->best.layout != NULL;
		if (cli->options.json)
			print_json(cli, &problem, answer);
		else
			print_answer(cli, &problem, answer);
	}
	return cli_finish(cli, !found);
}
