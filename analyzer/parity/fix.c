/*
 * Edits that take bank conflicts out of TileLang's code: the annotation of another layout, each
 * tried by running the whole model with it. An annotated layout changes more than addresses: widths
 * of vectors, the partition of loops, whether TMA can move the tile. So nothing is promised that
 * was not counted.
 */
#include "analyzer/parity/parity_internal.h"

#include <assert.h>

/* Layouts tried for one buffer and, since each is a run of the model, for a launch. */
enum { MAX_TRIED = 5, MAX_TRIALS = 8, MAX_FIXED_BUFFERS = 4 };

struct proposal {
	const struct layout *layout;
	const char *call; /* TileLang's own function for it; NULL: as T.Layout */
};

struct fixer {
	struct parity *parity;
	const struct assumed_data *assumed;
	const struct layout *const *own;
	uint32_t n_trials;
};

/* Excess of all accesses; -1 when some are not modelled. */
static int64_t total_excess(const struct access_table *table)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < table->sites.n; i++) {
		if (table->sites.p[i].excess < 0)
			return -1;
		sum += table->sites.p[i].excess;
	}
	return sum;
}

static int64_t excess_of(const struct access_table *table, const struct buffer *buffer)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < table->sites.n; i++)
		if (table->sites.p[i].shared && table->sites.p[i].shared->buffer == buffer)
			sum += table->sites.p[i].excess > 0 ? table->sites.p[i].excess : 0;
	return sum;
}

/* Excess of the launch when the buffer is annotated; -1 when TileLang refuses, or it is not known.
 */
static int64_t try_layout(struct fixer *fixer, const struct buffer *buffer,
                          const struct layout *layout)
{
	struct pinfer *model = fixer->parity->model;
	struct buffer *annotated = (struct buffer *)(uintptr_t)buffer;
	const struct layout *before = buffer->annotation;
	struct diag_list diags = model->cx->diags;
	struct parity *trial;

	if (fixer->n_trials++ >= MAX_TRIALS)
		return -1;
	model->cx->diags = (struct diag_list){ .arena = diags.arena };
	annotated->annotation = layout;
	trial = parity_tilelang(model->program, model->launch, model->target);
	parity_accesses(trial, fixer->assumed);
	annotated->annotation = before;
	model->cx->diags = diags;
	return trial->solution->status == SOLVE_CONFLICT ? -1 : total_excess(&trial->accesses);
}

/* Does TMA fill the tile, or a warpgroup instruction read it? They want layouts of their own. */
static bool is_wanted_swizzled(const struct pinfer *model, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < model->ops.n; i++) {
		const struct pop *op = model->ops.p[i];

		if (op->kind == POP_GEMM && op->gemm.wgmma_n &&
		    (op->gemm_op.a.buffer == buffer || op->gemm_op.b.buffer == buffer))
			return true;
		if (op->kind == POP_COPY && op->copy.is_tma_load && op->copy_op.dst.buffer == buffer)
			return true;
	}
	return false;
}

/* TMA stores tiles without gaps only; what it cannot encode is copied by threads. */
static bool is_stored_by_tma(const struct pinfer *model, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < model->ops.n; i++)
		if (model->ops.p[i]->kind == POP_COPY && model->ops.p[i]->copy.bulk_store &&
		    model->ops.p[i]->copy_op.src.buffer == buffer)
			return true;
	return false;
}

/* TileLang's swizzles first, since every way of copying knows them; then what any layout can be. */
static uint32_t list_proposals(const struct fixer *fixer, const struct buffer *buffer,
                               struct proposal out[MAX_TRIED])
{
	static const struct {
		int64_t span;
		const char *call;
	} swizzles[] = { { 128, "make_full_bank_swizzled_layout" },
		             { 64, "make_half_bank_swizzled_layout" },
		             { 32, "make_quarter_bank_swizzled_layout" } };
	const struct pinfer *model = fixer->parity->model;
	int64_t shape[MAX_RANK], bits = dtype_bits(buffer->type), row_bits;
	uint32_t n = 0;

	for (uint32_t d = 0; d < buffer->rank; d++)
		shape[d] = buffer_extent(buffer, d);
	row_bits = shape[buffer->rank - 1] * bits;
	for (int i = 0; i < 3 && buffer->rank >= 2; i++)
		if (row_bits % (swizzles[i].span * 8) == 0 && shape[buffer->rank - 2] % 8 == 0)
			out[n++] = (struct proposal){ parity_swizzle(model->arena, buffer, swizzles[i].span),
				                          swizzles[i].call };
	if (is_wanted_swizzled(model, buffer))
		return n;
	if (fixer->own && fixer->own[buffer->id] &&
	    !(is_stored_by_tma(model, buffer) && fixer->own[buffer->id]->n_xors == 0))
		out[n++] = (struct proposal){ fixer->own[buffer->id], NULL };
	if (buffer->rank >= 2 && !is_stored_by_tma(model, buffer))
		out[n++] = (struct proposal){
			layout_row_major(model->arena, buffer->rank, shape, (uint32_t)bits, 16), NULL
		};
	return n;
}

/* NULL when the layout has no short text. */
static const char *edit_text(struct pinfer *model, const struct buffer *buffer,
                             const struct proposal *proposal)
{
	const char *name = sym_text(model->cx->names, buffer->name);
	struct buf text = { 0 };
	const char *edit = NULL;

	if (proposal->call)
		return arena_printf(model->arena, "T.annotate_layout({%s: tilelang.layout.%s(%s)})", name,
		                    proposal->call, name);
	if (layout_print_python(&text, proposal->layout))
		edit = arena_printf(model->arena, "T.annotate_layout({%s: T.Layout(%s.shape, %s)})", name,
		                    name, buf_cstr(&text));
	buf_free(&text);
	return edit;
}

/* The proposal that leaves least; the first of equal ones. */
static void fix_buffer(struct fixer *fixer, const struct buffer *buffer)
{
	struct parity *parity = fixer->parity;
	struct parity_fix fix = { .buffer = buffer, .excess = total_excess(&parity->accesses) };
	int64_t own_excess = excess_of(&parity->accesses, buffer);
	struct proposal proposals[MAX_TRIED];
	uint32_t n = list_proposals(fixer, buffer, proposals);

	fix.left = fix.excess;
	assert(n <= MAX_TRIED);
	for (uint32_t i = 0; i < n && fix.left > fix.excess - own_excess; i++) {
		const char *edit = edit_text(parity->model, buffer, &proposals[i]);
		int64_t left = edit ? try_layout(fixer, buffer, proposals[i].layout) : -1;

		if (left < 0 || left >= fix.left)
			continue;
		fix.left = left;
		fix.layout = proposals[i].layout;
		fix.edit = edit;
	}
	if (fix.layout)
		vec_push(parity->model->arena, &parity->fixes, fix);
}

void parity_find_fixes(struct parity *parity, const struct layout *const *own,
                       const struct assumed_data *assumed)
{
	struct fixer fixer = { parity, assumed, own, 0 };
	const struct pinfer *model = parity->model;
	uint32_t n = 0;

	if (parity->solution->status == SOLVE_CONFLICT || total_excess(&parity->accesses) <= 0)
		return;
	for (uint32_t i = 0; i < model->program->buffers.n && n < MAX_FIXED_BUFFERS; i++) {
		const struct buffer *buffer = model->program->buffers.p[i];

		if (buffer->scope != SCOPE_SHARED || excess_of(&parity->accesses, buffer) <= 0)
			continue;
		n++;
		fix_buffer(&fixer, buffer);
	}
}

const struct parity_fix *parity_fix_of(const struct parity *parity, const struct buffer *buffer)
{
	for (uint32_t i = 0; i < parity->fixes.n; i++)
		if (parity->fixes.p[i].buffer == buffer)
			return &parity->fixes.p[i];
	return NULL;
}
