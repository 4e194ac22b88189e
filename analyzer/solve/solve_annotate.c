/*
 * An annotated layout of a shared buffer beside the one that the solver would choose: how many
 * wavefronts each takes, where the two differ, and what ldmatrix makes of the annotated one.
 */
#include "analyzer/solve/solve_internal.h"

#include <inttypes.h>

enum { PIECE_BYTES = 16 };

/* "0, 8" */
static const char *index_text(struct solver *solver, uint32_t rank, const int64_t *index)
{
	const char *text = "";

	for (uint32_t d = 0; d < rank; d++)
		text = arena_printf(solver->arena, "%s%s%" PRId64, text, d > 0 ? ", " : "", index[d]);
	return text;
}

/* The first element that the two place differently, and how many there are. */
static void note_difference(struct solver *solver, const struct buffer_solution *solved,
                            const struct layout *other)
{
	const struct layout *mine = solved->layout;
	int64_t index[MAX_RANK] = { 0 }, n_elems = 1;

	if (layout_equal(mine, other, index))
		return;
	for (uint32_t d = 0; d < mine->rank; d++)
		n_elems *= mine->shape[d];
	diag_note(&solver->cx->diags, solved->buffer->span,
	          "the annotation puts element (%s) at byte %" PRId64 ", %s puts it at byte %" PRId64
	          "; %" PRId64 " of %" PRId64 " elements differ",
	          index_text(solver, mine->rank, index), layout_at(mine, index, 0).offset,
	          layout_kind_text(other), layout_at(other, index, 0).offset,
	          layout_count_differences(mine, other), n_elems);
}

/*
 * The first 16 bytes of a row, counted from a multiple of 16 bytes, that are not together at an
 * address that is a multiple of 16: `index` is the element at fault. False when there are none.
 * PTX ISA, ldmatrix: each lane's address is that of 16 contiguous, aligned bytes.
 */
static bool torn_piece(const struct layout *layout, int64_t *index)
{
	int64_t last = layout->rank - 1, elem_bytes = layout->elem_bits / 8, base = 0;

	do {
		int64_t within = index[last] * elem_bytes % PIECE_BYTES;
		int64_t at = layout_at(layout, index, 0).offset;

		if (within == 0)
			base = at;
		if (at % PIECE_BYTES != within || at - base != within)
			return true;
	} while (layout_next_index(layout, index));
	return false;
}

/* The gemm that reads the buffer as an operand; NULL when none does. */
static const struct stmt *gemm_of(const struct solver *solver, const struct buffer *buffer)
{
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct op_gemm *gemm = &solver->gemms.p[g]->stmt->as.op.as.gemm;

		if (gemm->a.buffer == buffer || gemm->b.buffer == buffer)
			return solver->gemms.p[g]->stmt;
	}
	return NULL;
}

/* Said when it is the annotation that keeps ldmatrix away: the other layout takes it. */
static void note_ldmatrix(struct solver *solver, const struct buffer_solution *solved,
                          const struct layout *other)
{
	const struct layout *mine = solved->layout;
	const struct stmt *gemm = gemm_of(solver, solved->buffer);
	int64_t index[MAX_RANK] = { 0 }, unused[MAX_RANK] = { 0 };

	if (!gemm || mine->elem_bits < 8 || torn_piece(other, unused) || !torn_piece(mine, index))
		return;
	diag_note(&solver->cx->diags, gemm->span,
	          "ldmatrix cannot read %s then: it wants 16 bytes of a row together at a multiple of "
	          "16, and element (%s) is at byte %" PRId64 "; single elements are loaded instead",
	          sym_text(solver->cx->names, solved->buffer->name),
	          index_text(solver, mine->rank, index), layout_at(mine, index, 0).offset);
}

void solve_warn_annotation(struct solver *solver, const struct buffer_solution *solved)
{
	const struct candidate *mine = &solved->candidates.p[0], *best = &solved->candidates.p[1];
	const char *name = sym_text(solver->cx->names, solved->buffer->name);

	if (!solver->annotated[solved->buffer->id] || solved->candidates.n < 2 ||
	    best->wavefronts >= mine->wavefronts)
		return;
	diag_report(&solver->cx->diags, DIAG_W0410, solved->buffer->span,
	            "the layout that T.annotate_layout gives %s takes %" PRId64
	            " wavefronts a block, ideal %" PRId64 "; %s would take %" PRId64,
	            name, mine->wavefronts, mine->ideal, layout_kind_text(best->layout),
	            best->wavefronts);
	note_difference(solver, solved, best->layout);
	note_ldmatrix(solver, solved, best->layout);
	diag_help(&solver->cx->diags, "leave %s out of T.annotate_layout: %s is chosen then", name,
	          layout_kind_text(best->layout));
}
