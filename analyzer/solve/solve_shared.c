/*
 * Shared layouts: for each buffer the candidate that costs least over all its readers and writers
 * together.
 *
 * Cost of a candidate = sum over accesses of weight x (wavefronts + instructions), counted exactly
 * on one block and one iteration (access_count). Candidates are tried in the order of preference
 * between equals: linear, the swizzles, then paddings (which take more bytes); the first that
 * reaches every access's ideal ends the search, since none can do better. Where all leave excess,
 * one more is made for the accesses (solve_swizzle.c). Rows of 72 or 104 float16 elements are such
 * a case without any swizzle: their pitch is an odd multiple of 16 bytes. Operands of warpgroup
 * instructions take only what a matrix descriptor expresses: the swizzles and the core matrices.
 */
#include "analyzer/solve/solve_internal.h"

#include "analyzer/tile/alias.h"

#include <assert.h>
#include <string.h>

enum { MAX_BUFFER_ACCESSES = 64 };

/* ---- weighing ---- */

static struct candidate weigh(struct solver *solver, const struct buffer *buffer,
                              const struct layout *layout)
{
	const struct touched *touched = &solver->touched[buffer->id];
	struct candidate candidate = { .layout = layout };

	solver->solution->n_visited++;
	for (uint32_t i = 0; i < touched->by.n; i++) {
		const struct touch *touch = &touched->by.p[i];
		const struct access_cost *cost = &solve_touch(solver, touch, layout)->cost;
		int64_t weight = solve_touch_weight(touch);

		candidate.wavefronts += weight * cost->wavefronts;
		candidate.ideal += weight * cost->ideal;
		candidate.cost += (double)weight * (double)(cost->wavefronts + cost->executions);
	}
	return candidate;
}

static bool is_gemm_operand(const struct solver *solver, const struct buffer *buffer)
{
	for (uint32_t g = 0; g < solver->gemms.n; g++) {
		const struct op_gemm *gemm = &solver->gemms.p[g]->stmt->as.op.as.gemm;

		if (alias_owner(gemm->a.buffer) == buffer || alias_owner(gemm->b.buffer) == buffer)
			return true;
	}
	return false;
}

static int64_t row_bytes(const struct buffer *buffer)
{
	return buffer_extent(buffer, buffer->rank - 1) * dtype_bits(buffer->type) / 8;
}

/* Rows that ldmatrix cannot read until they are padded to a multiple of 16 bytes. */
static bool is_ragged_operand(const struct solver *solver, const struct buffer *buffer)
{
	return row_bytes(buffer) % 16 != 0 && is_gemm_operand(solver, buffer);
}

enum { WHOLE_16 = 1 << 20 }; /* a padding up to the next multiple of 16 bytes, and what is more */

const struct layout *solve_nth_layout(struct solver *solver, const struct buffer *buffer, int which,
                                      bool *end)
{
	static const struct {
		int64_t span, pad;
	} forms[] = { { 0, 0 },  { 128, 0 },      { 64, 0 },
		          { 32, 0 }, { 0, 16 },       { 0, 8 },
		          { 0, 4 },  { 0, WHOLE_16 }, { 0, WHOLE_16 + 16 },
		          { 16, 0 } };
	int64_t shape[MAX_RANK];
	uint32_t bits = dtype_bits(buffer->type);
	struct arena_mark mark = arena_mark(solver->arena);
	const struct layout *layout;
	int64_t pad;

	*end = which == (int)(sizeof(forms) / sizeof(forms[0]));
	if (*end || (forms[which].span == 16 && !solve_wgmma_operand(solver, buffer)))
		return NULL;
	for (uint32_t d = 0; d < buffer->rank; d++)
		shape[d] = buffer_extent(buffer, d);
	if (forms[which].span > 0) {
		layout = layout_swizzled(solver->arena, buffer->rank, shape, bits, forms[which].span);
		return solve_intern(solver, layout, mark);
	}
	pad = forms[which].pad;
	if (pad >= WHOLE_16)
		pad = is_ragged_operand(solver, buffer) ? pad - WHOLE_16 + 16 - row_bytes(buffer) % 16 : -1;
	else if (pad > 0 && pad < 16 && is_gemm_operand(solver, buffer))
		pad = -1;
	if (pad < 0 || (pad > 0 && (buffer->rank < 2 || bits % 8 != 0 || pad * 8 % bits != 0)))
		return NULL;
	layout = layout_row_major(solver->arena, buffer->rank, shape, bits, pad);
	return solve_intern(solver, layout, mark);
}

static bool better(const struct candidate *a, const struct candidate *b)
{
	if (a->cost != b->cost)
		return a->cost < b->cost;
	return a->layout->n_bytes < b->layout->n_bytes;
}

/* Candidates sorted by `better`; equal ones stay in order of preference. */
static void insert_candidate(struct solver *solver, struct buffer_solution *out,
                             struct candidate candidate)
{
	uint32_t at;

	vec_push(solver->arena, &out->candidates, candidate);
	for (at = out->candidates.n - 1; at > 0 && better(&candidate, &out->candidates.p[at - 1]); at--)
		out->candidates.p[at] = out->candidates.p[at - 1];
	out->candidates.p[at] = candidate;
}

/* All candidates are weighed when somebody asks why, and where one without excess may still cost
 * more than another: element by element against ldmatrix. Else up to the first without excess. */
static bool wants_all(const struct solver *solver, const struct buffer *buffer)
{
	const char *why = solver->options.why;

	return solver->annotated[buffer->id] || is_ragged_operand(solver, buffer) ||
	       (why && strcmp(why, sym_text(solver->cx->names, buffer->name)) == 0);
}

/* The annotated layout comes first, whatever it costs. */
static void put_annotation_first(struct solver *solver, const struct buffer *buffer,
                                 struct buffer_solution *out)
{
	const struct layout *annotation = solver->annotated[buffer->id]->layout;
	struct candidate candidate = weigh(solver, buffer, annotation);
	uint32_t at = 0;

	while (at < out->candidates.n && !layout_equal(out->candidates.p[at].layout, annotation, NULL))
		at++;
	if (at == out->candidates.n)
		vec_push(solver->arena, &out->candidates, candidate);
	for (; at > 0; at--)
		out->candidates.p[at] = out->candidates.p[at - 1];
	out->candidates.p[0] = candidate;
}

static bool is_candidate(const struct buffer_solution *out, const struct layout *layout)
{
	for (uint32_t i = 0; i < out->candidates.n; i++)
		if (layout_equal_structure(out->candidates.p[i].layout, layout))
			return true;
	return false;
}

/* The usual candidates leave excess: one that is made for these accesses. */
static void try_swizzle(struct solver *solver, const struct buffer *buffer,
                        struct buffer_solution *out)
{
	const struct touched *touched = &solver->touched[buffer->id];
	struct weighted_access accesses[MAX_BUFFER_ACCESSES];
	const struct layout *rows, *layout;
	uint32_t n = 0;
	bool end;

	if (solve_wgmma_operand(solver, buffer) || solve_tma_operand(solver, buffer))
		return; /* their swizzles are the usual ones */
	rows = solve_nth_layout(solver, buffer, 0, &end);
	for (uint32_t i = 0; i < touched->by.n; i++) {
		const struct touch *touch = &touched->by.p[i];
		const struct known_touch *known = solve_touch(solver, touch, rows);

		for (uint32_t a = 0; a < known->n && n < MAX_BUFFER_ACCESSES; a++)
			accesses[n++] = (struct weighted_access){ solver->role, known->accesses[a],
				                                      solve_touch_weight(touch) };
	}
	layout = solve_swizzle(solver, buffer, accesses, n, out->candidates.p[0].wavefronts);
	if (layout && !is_candidate(out, layout) && solve_keeps_views(solver, buffer, layout))
		insert_candidate(solver, out, weigh(solver, buffer, layout));
}

/* The usual candidates, up to the first without excess. */
static void weigh_usual(struct solver *solver, const struct buffer *buffer,
                        struct shared_choice *out)
{
	bool end = false, all = wants_all(solver, buffer);

	for (int which = 0; !end; which++) {
		const struct layout *layout = solve_nth_layout(solver, buffer, which, &end);
		struct candidate candidate;
		double least;

		if (!layout || !solve_keeps_views(solver, buffer, layout) ||
		    !solve_wgmma_reads(solver, buffer, layout) || !solve_tma_takes(solver, buffer, layout))
			continue;
		candidate = weigh(solver, buffer, layout);
		least = candidate.cost - (double)(candidate.wavefronts - candidate.ideal);
		if (out->solution.candidates.n == 0 || least < out->least)
			out->least = least;
		insert_candidate(solver, &out->solution, candidate);
		if (candidate.wavefronts == candidate.ideal && !all)
			break;
	}
	if (solver->annotated[buffer->id])
		put_annotation_first(solver, buffer, &out->solution);
	assert(out->solution.candidates.n > 0);
	out->is_settled = solver->annotated[buffer->id] || out->solution.candidates.p[0].wavefronts <=
	                                                       out->solution.candidates.p[0].ideal;
	if (out->is_settled)
		out->least = out->solution.candidates.p[0].cost;
}

void solve_settle(struct solver *solver, const struct buffer *buffer, struct shared_choice *choice)
{
	if (!choice->is_settled)
		try_swizzle(solver, buffer, &choice->solution);
	choice->is_settled = true;
	choice->least = choice->solution.candidates.p[0].cost;
}

/* What a buffer's accesses depend on: the partitions of the spaces that touch it. */
static uint64_t touched_key(const struct solver *solver, const struct buffer *buffer)
{
	const struct touched *touched = &solver->touched[buffer->id];
	uint64_t key = hash_mix(buffer->id, 0);

	for (uint32_t i = 0; i < touched->by.n; i++)
		if (touched->by.p[i].space) {
			uint32_t s = touched->by.p[i].space->id;

			key = hash_mix(key, hash_mix(s, solve_layout_hash(solver->space_layout[s])));
		}
	return key;
}

struct shared_choice *solve_shared(struct solver *solver, const struct buffer *buffer)
{
	uint64_t key = touched_key(solver, buffer);
	struct shared_choice *known = map_get(&solver->shared_layouts, key);

	if (!known) {
		known = arena_new(solver->arena, struct shared_choice);
		weigh_usual(solver, buffer, known);
		map_set(solver->arena, &solver->shared_layouts, key, known);
	}
	return known;
}

bool solve_uses_shared(const struct solver *solver, const struct buffer *buffer)
{
	return buffer->scope == SCOPE_SHARED && buffer->launch == solver->launch->index &&
	       alias_owner(buffer) == buffer &&
	       (solver->touched[buffer->id].by.n > 0 || solver->by_element[buffer->id] ||
	        solve_tma_operand(solver, buffer));
}
