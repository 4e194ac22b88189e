/*
 * Gemms: the instruction by operand types, the warp grid by policy, the accumulator's layout.
 *
 * A grid of warps_m x warps_n warps covers M x N when every warp gets whole instruction tiles: M %
 * (16 warps_m) == 0 and N % (8 warps_n) == 0; anything else leaves rows or columns that nobody
 * computes, so it is refused with the thread counts that would work. Among the grids that cover:
 * FullRow takes the most warps along M, FullCol along N, Square the one whose tiles a warp are
 * closest to the tile's own shape (as TileLang's GemmWarpPolicy), best the one that loads the
 * fewest operand bytes: (M warps_n + N warps_m) K. Warpgroup instructions count the grid in groups
 * of four warps along M, each with whole blocks of 64 rows.
 */
#include "analyzer/solve/solve_internal.h"

#include <inttypes.h>
#include <math.h>

enum { TILE_M = 16, TILE_N = 8, MAX_WARPS = 32, FP8_COMPUTE = 89 };

struct grid {
	int64_t m, n;
};

static bool covers(int64_t m, int64_t n, struct grid grid)
{
	return m % (TILE_M * grid.m) == 0 && n % (TILE_N * grid.n) == 0;
}

/* The problem of a grid: what is cut, into tiles of what size. */
struct cut {
	enum gemm_policy policy;
	int64_t m, n, tile_m;
};

/* Smaller is better; the first of equal grids (fewest warps along M) wins. */
static double grid_cost(const struct cut *cut, struct grid grid)
{
	double m = (double)cut->m, n = (double)cut->n;
	double tiles_m = m / (double)(TILE_M * grid.m), tiles_n = n / (double)(TILE_N * grid.n);

	switch (cut->policy) {
	case POLICY_SQUARE:
		return fabs(tiles_m / tiles_n - m / n);
	case POLICY_FULL_ROW:
		return -(double)grid.m;
	case POLICY_FULL_COL:
		return -(double)grid.n;
	case POLICY_BEST:
		return m * (double)grid.n + n * (double)grid.m;
	}
	return 0;
}

/* The policy's grid of `n_warps` warps (or groups of them); false when none covers. */
static bool choose_grid(const struct cut *cut, int64_t n_warps, struct grid *out)
{
	bool found = false;
	double best = 0;

	for (int64_t warps_m = 1; warps_m <= n_warps; warps_m++) {
		struct grid grid = { warps_m, n_warps / warps_m };
		double cost;

		if (n_warps % warps_m != 0 || cut->m % (cut->tile_m * grid.m) != 0 ||
		    cut->n % (TILE_N * grid.n) != 0)
			continue;
		cost = grid_cost(cut, grid);
		if (!found || cost < best) {
			best = cost;
			*out = grid;
		}
		found = true;
	}
	return found;
}

bool solve_warp_grid(struct solver *solver, enum gemm_policy policy, struct gemm_plan *plan)
{
	struct cut cut = { policy, plan->m, plan->n, TILE_M };
	struct grid grid;

	if (solver->n_threads % LANES != 0 || !choose_grid(&cut, solver->n_threads / LANES, &grid))
		return false;
	plan->warps_m = grid.m;
	plan->warps_n = grid.n;
	return true;
}

bool solve_group_grid(struct solver *solver, enum gemm_policy policy, struct gemm_plan *plan)
{
	struct cut cut = { policy, plan->m, plan->n, WGMMA_M };
	struct grid grid;

	if (solver->n_threads % WGMMA_THREADS != 0 ||
	    solver->roles.p[solver->role]->range.first % WGMMA_THREADS != 0 ||
	    !choose_grid(&cut, solver->n_threads / WGMMA_THREADS, &grid))
		return false;
	plan->warps_m = grid.m * WGMMA_WARPS;
	plan->warps_n = grid.n;
	return true;
}

/* ---- errors ---- */

/* The extent of M or N, nearest to what is written, that the block's warps do cover. */
static void help_with_extent(struct solver *solver, bool is_m, int64_t m, int64_t n)
{
	enum { MOST_STEPS = 64 };
	int64_t n_warps = solver->n_threads / LANES;
	int64_t *extent = is_m ? &m : &n;
	int64_t written = *extent, tile = is_m ? TILE_M : TILE_N;

	for (int64_t step = 1; step <= MOST_STEPS; step++)
		for (int sign = -1; sign <= 1; sign += 2) {
			struct grid grid;

			*extent = written + sign * step * tile;
			if (*extent <= 0 ||
			    !choose_grid(&(struct cut){ POLICY_SQUARE, m, n, TILE_M }, n_warps, &grid))
				continue;
			diag_help(&solver->cx->diags,
			          "%c=%" PRId64 " splits into %" PRId64 " x %" PRId64 " warps of these threads",
			          is_m ? 'M' : 'N', *extent, grid.m, grid.n);
			return;
		}
}

static void report_coverage(struct solver *solver, const struct stmt *stmt, int64_t m, int64_t n)
{
	struct diag_list *diags = &solver->cx->diags;
	int64_t n_warps = solver->n_threads / LANES;
	struct cut cut = { POLICY_SQUARE, m, n, TILE_M };
	struct buf splits = { 0 };
	struct grid grid;
	int n_listed = 0;

	diag_report(diags, DIAG_E0402, stmt->span,
	            "no covering split of %" PRId64 " warps: M=%" PRId64 " is %" PRId64
	            " row group%s of %d, N=%" PRId64 " is %" PRId64
	            " column group%s of %d, and no factors of %" PRId64 " divide both",
	            n_warps, m, m / TILE_M, m / TILE_M == 1 ? "" : "s", TILE_M, n, n / TILE_N,
	            n / TILE_N == 1 ? "" : "s", TILE_N, n_warps);
	for (int64_t warps = 1; warps <= MAX_WARPS; warps++)
		for (int64_t warps_m = 1; warps_m <= warps; warps_m++) {
			grid = (struct grid){ warps_m, warps / warps_m };
			if (warps % warps_m != 0 || !covers(m, n, grid))
				continue;
			buf_printf(&splits, "%s%" PRId64 " x %" PRId64 " (threads=%" PRId64 ")",
			           n_listed++ > 0 ? ", " : "", grid.m, grid.n, warps * LANES);
		}
	diag_note(diags, stmt->span, "warp grids that cover: %s", buf_cstr(&splits));
	buf_free(&splits);
	n_listed = 0;
	for (int64_t distance = 1; distance < MAX_WARPS && n_listed < 2; distance++)
		for (int sign = -1; sign <= 1; sign += 2)
			if (n_warps + sign * distance >= 1 && n_warps + sign * distance <= MAX_WARPS &&
			    n_listed < 2 && choose_grid(&cut, n_warps + sign * distance, &grid)) {
				diag_help(diags, "threads=%" PRId64 " splits into %" PRId64 " x %" PRId64 " warps",
				          (n_warps + sign * distance) * LANES, grid.m, grid.n);
				n_listed++;
			}
	help_with_extent(solver, m > n, m, n);
}

static bool report_operand(struct solver *solver, const struct stmt *stmt,
                           const struct region *region, const char *why)
{
	diag_report(&solver->cx->diags, DIAG_E0404, stmt->span, "T.gemm: %s %s",
	            sym_text(solver->cx->names, region->buffer->name), why);
	diag_note(&solver->cx->diags, region->buffer->span, "%s is allocated here",
	          sym_text(solver->cx->names, region->buffer->name));
	return false;
}

/* T.wgmma_gemm never falls back to mma.sync, so that what it says about time stays true. */
static bool report_no_wgmma(struct solver *solver, const struct gemm_use *use)
{
	diag_report(&solver->cx->diags, DIAG_E0415, use->stmt->span,
	            "T.wgmma_gemm of %" PRId64 " x %" PRId64 " x %" PRId64
	            " cannot use warpgroup instructions: %s",
	            use->plan.m, use->plan.n, use->plan.k, use->not_wgmma);
	diag_help(&solver->cx->diags, "T.gemm takes mma.sync where wgmma is not possible");
	return false;
}

/* ---- planning ---- */

/* Instructions of the target for operands a and b and accumulator d; float32 runs as tf32. */
static bool find_shape(const struct target *target, const struct op_gemm *gemm, enum mma_shape *out)
{
	struct dtype a = gemm->a.buffer->type, d = gemm->c.buffer->type;

	if (!dtype_equal(a, gemm->b.buffer->type))
		return false;
	if (dtype_equal(a, DTYPE_F32))
		a = DTYPE(TYPE_TFLOAT, 32);
	for (int shape = 0; shape < N_MMA_SHAPES; shape++) {
		const struct mma_shape_info *info = mma_shape_info((enum mma_shape)shape);
		bool is_fp8 = info->ab.kind == TYPE_FLOAT8_E4M3 || info->ab.kind == TYPE_FLOAT8_E5M2;

		if (is_fp8 && target->compute < FP8_COMPUTE)
			continue;
		if (dtype_equal(info->ab, a) && dtype_equal(info->d, d)) {
			*out = (enum mma_shape)shape;
			return true;
		}
	}
	return false;
}

/* The last two dimensions are the tile, those before have extent 1. */
static bool is_matrix(const struct region *region)
{
	uint32_t rank = region->buffer->rank;

	if (rank < 2)
		return false;
	for (uint32_t d = 0; d + 2 < rank; d++)
		if (region->extent[d] != 1)
			return false;
	return true;
}

/* The whole of a fragment, as it is loaded or computed. */
static bool is_whole(const struct region *region)
{
	for (uint32_t d = 0; d < region->buffer->rank; d++)
		if (region->extent[d] != buffer_extent(region->buffer, d))
			return false;
	return true;
}

static bool check_operand(struct solver *solver, const struct stmt *stmt,
                          const struct region *region)
{
	enum scope scope = region->buffer->scope;

	if (scope != SCOPE_SHARED && scope != SCOPE_FRAGMENT)
		return report_operand(solver, stmt, region,
		                      "is an operand outside shared memory and fragments: copy it to "
		                      "shared memory first");
	if (!is_matrix(region))
		return report_operand(solver, stmt, region, "is not a matrix in its last two dimensions");
	if (scope == SCOPE_FRAGMENT && (region->buffer->rank != 2 || !is_whole(region)))
		return report_operand(solver, stmt, region,
		                      "is an operand of which only a part is used: not supported yet");
	return true;
}

static bool check_accumulator(struct solver *solver, const struct stmt *stmt,
                              const struct region *region)
{
	if (region->buffer->scope != SCOPE_FRAGMENT)
		return report_operand(solver, stmt, region,
		                      "is an accumulator outside fragments, which is not supported yet");
	if (region->buffer->rank != 2 || !is_whole(region))
		return report_operand(solver, stmt, region,
		                      "is an accumulator of which only a part is used: not supported yet");
	return true;
}

/* Which targets have an instruction for float8 operands, and which of them solve the launch. */
static void help_float8(struct solver *solver, const struct op_gemm *gemm)
{
	const struct target *first = NULL;
	enum mma_shape shape;

	if (gemm->c.buffer->type.bits != 32) {
		diag_help(&solver->cx->diags, "float8 operands need a float32 accumulator");
		return;
	}
	for (const struct target *t = target_all(); t->name && !first; t++)
		if (find_shape(t, gemm, &shape))
			first = t;
	if (!first)
		return;
	diag_help(&solver->cx->diags, "mma.sync takes float8 operands from %s on", first->name);
	for (const struct target *t = first; t->name && !solver->trial; t++) {
		struct trial trial = { .strict = solver->options.strict, .target = t };

		if ((t == first || t->has_wgmma) && solve_trial(solver, &trial))
			diag_help(&solver->cx->diags, "--target %s solves it", t->name);
	}
}

static bool check_types(struct solver *solver, const struct stmt *stmt, const struct op_gemm *gemm,
                        enum mma_shape *shape)
{
	struct dtype type = gemm->a.buffer->type;
	char a[32], b[32], c[32];

	if (find_shape(solver->target, gemm, shape))
		return true;
	diag_report(&solver->cx->diags, DIAG_E0404, stmt->span,
	            "no tensor-core instruction of %s for %s x %s -> %s in this version",
	            solver->target->name, dtype_name(type, a), dtype_name(gemm->b.buffer->type, b),
	            dtype_name(gemm->c.buffer->type, c));
	if (!dtype_equal(type, gemm->b.buffer->type))
		diag_help(&solver->cx->diags, "convert one operand, so that both have one type");
	else if (dtype_bits(type) == 64)
		diag_help(&solver->cx->diags,
		          "mma.m8n8k4 has another accumulator and is not generated; multiply in a "
		          "T.Parallel loop, or use float32");
	else if (type.kind == TYPE_INT || type.kind == TYPE_UINT)
		diag_help(&solver->cx->diags, "int8 or uint8 operands need an int32 accumulator");
	else if (type.kind == TYPE_FLOAT8_E4M3 || type.kind == TYPE_FLOAT8_E5M2)
		help_float8(solver, gemm);
	else
		diag_help(&solver->cx->diags,
		          "use float16 or bfloat16 operands with a float32 accumulator");
	return false;
}

/* Sizes as the regions say; A is M x K, or K x M when transposed. */
static void gemm_sizes(const struct op_gemm *gemm, struct gemm_plan *plan)
{
	uint32_t last = gemm->a.buffer->rank - 1;

	plan->m = gemm->c.extent[0];
	plan->n = gemm->c.extent[1];
	plan->k = gemm->transpose_a ? gemm->a.extent[last - 1] : gemm->a.extent[last];
}

/* K may have a rest: it is filled up with zeros. */
static bool check_sizes(struct solver *solver, const struct stmt *stmt,
                        const struct gemm_plan *plan)
{
	const struct mma_shape_info *info = mma_shape_info(plan->shape);
	const struct {
		char name;
		int64_t size, unit;
	} sizes[] = { { 'M', plan->m, info->m }, { 'N', plan->n, info->n } };

	for (int i = 0; i < 2; i++)
		if (sizes[i].size % sizes[i].unit != 0) {
			diag_report(&solver->cx->diags, DIAG_E0403, stmt->span,
			            "%c=%" PRId64 " of the gemm is not a multiple of %" PRId64
			            ", the instruction's %c (mma.m%dn%dk%d)",
			            sizes[i].name, sizes[i].size, sizes[i].unit, sizes[i].name, info->m,
			            info->n, info->k);
			diag_help(&solver->cx->diags,
			          "make the tile's %c %" PRId64 " and fill the rest with zeros", sizes[i].name,
			          (sizes[i].size + sizes[i].unit - 1) / sizes[i].unit * sizes[i].unit);
			return false;
		}
	return true;
}

void solve_pin(struct solver *solver, const struct buffer *buffer)
{
	const struct constraint *pin = solver->annotated[buffer->id];

	for (uint32_t g = solver->gemms.n; g-- > 0 && !solver->annotated[buffer->id];) {
		const struct gemm_use *use = solver->gemms.p[g];
		const struct op_gemm *gemm = &use->stmt->as.op.as.gemm;

		if (pin && pin->kind == CONSTRAINT_ACCUMULATOR && gemm->c.buffer != buffer)
			continue;
		if (gemm->c.buffer == buffer && use->accumulator && !use->converts_c)
			pin = use->accumulator;
		else if (gemm->c.buffer == buffer)
			continue;
		else if (gemm->a.buffer == buffer && !use->converts[0])
			pin = use->operands[0];
		else if (gemm->b.buffer == buffer && !use->converts[1])
			pin = use->operands[1];
	}
	solver->pinned_by[buffer->id] = pin;
}

/* "mma.m16n8k16, 2 x 2 warps", with the reason when it could not be wgmma. */
static const char *instruction_text(const struct solver *solver, const struct gemm_use *use)
{
	const struct mma_shape_info *info = mma_shape_info(use->plan.shape);
	const struct gemm_plan *plan = &use->plan;

	if (plan->wgmma_n)
		return arena_printf(solver->arena,
		                    "wgmma.m64n%" PRId64 "k%d, %" PRId64 " x %" PRId64 " warps",
		                    plan->wgmma_n, info->k, plan->warps_m, plan->warps_n);
	return arena_printf(solver->arena, "mma.m%dn%dk%d, %" PRId64 " x %" PRId64 " warps%s%s%s",
	                    info->m, info->n, info->k, plan->warps_m, plan->warps_n,
	                    use->not_wgmma ? " (not wgmma: " : "", use->not_wgmma ? use->not_wgmma : "",
	                    use->not_wgmma ? ")" : "");
}

/* The accumulator's constraint; when something else fixed the fragment before, it is converted. */
static bool pin_accumulator(struct solver *solver, const struct stmt *stmt, struct gemm_use *use)
{
	const struct buffer *buffer = stmt->as.op.as.gemm.c.buffer;
	const struct constraint *known = solver->pinned_by[buffer->id];
	struct constraint *constraint =
		solve_add_constraint(solver, CONSTRAINT_ACCUMULATOR, stmt, buffer);

	constraint->layout = use->plan.c;
	constraint->text =
		arena_printf(solver->arena, "T.gemm: %s is the accumulator of %s",
	                 sym_text(solver->cx->names, buffer->name), instruction_text(solver, use));
	use->accumulator = constraint;
	solve_pin(solver, buffer);
	if (!known || !solver->options.strict || layout_equal(known->layout, constraint->layout, NULL))
		return true;
	solve_explain_accumulators(solver, known, constraint);
	return false;
}

/* An operand in registers: its layout is the instruction's. When something else fixed the fragment
 * before, it is converted. */
static bool pin_operand(struct solver *solver, struct gemm_use *use, int which)
{
	const struct stmt *stmt = use->stmt;
	const struct op_gemm *gemm = &stmt->as.op.as.gemm;
	const struct buffer *buffer = which == 0 ? gemm->a.buffer : gemm->b.buffer;
	const struct constraint *known = solver->pinned_by[buffer->id];
	struct constraint *constraint = solve_add_constraint(solver, CONSTRAINT_OPERAND, stmt, buffer);
	const struct mma_shape_info *info = mma_shape_info(use->plan.shape);

	use->operands[which] = constraint;
	if (buffer->scope != SCOPE_FRAGMENT) {
		constraint->text = arena_printf(solver->arena, "T.gemm: %s is read by %s",
		                                sym_text(solver->cx->names, buffer->name),
		                                use->plan.wgmma_n ? "wgmma" : "ldmatrix");
		return true;
	}
	constraint->layout = gemm_operand_layout(solver->arena, gemm, &use->plan, which);
	constraint->text = arena_printf(solver->arena,
	                                "T.gemm: %s is operand %c of %s.m%dn%" PRId64
	                                "k%d in registers, %" PRId64 " x %" PRId64 " warps",
	                                sym_text(solver->cx->names, buffer->name),
	                                which == 0 ? 'A' : 'B', use->plan.wgmma_n ? "wgmma" : "mma",
	                                use->plan.wgmma_n ? (int)WGMMA_M : info->m,
	                                use->plan.wgmma_n ? use->plan.wgmma_n : info->n, info->k,
	                                use->plan.warps_m, use->plan.warps_n);
	use->converts[which] = known && !layout_equal(known->layout, constraint->layout, NULL);
	solve_pin(solver, buffer);
	if (!use->converts[which] || !solver->options.strict)
		return true;
	solve_explain_accumulators(solver, known, constraint);
	return false;
}

/* As written, unless a trial changes it. */
static enum gemm_policy policy_of(const struct solver *solver, const struct stmt *stmt)
{
	if (solver->trial && solver->trial->gemm == stmt)
		return solver->trial->policy;
	return (enum gemm_policy)stmt->as.op.as.gemm.policy;
}

static const struct layout *accumulator_of(struct solver *solver, const struct gemm_plan *plan)
{
	if (plan->wgmma_n)
		return layout_wgmma_accumulator(solver->arena, (const int64_t[]){ plan->m, plan->n },
		                                plan->warps_m, plan->warps_n);
	return layout_mma_accumulator(solver->arena, plan->m, plan->n, plan->warps_m, plan->warps_n);
}

bool solve_gemm(struct solver *solver, const struct stmt *stmt, int64_t weight)
{
	const struct op_gemm *gemm = &stmt->as.op.as.gemm;
	struct gemm_use *use = arena_new(solver->arena, struct gemm_use);

	use->stmt = stmt;
	use->weight = weight;
	use->role = solver->role;
	if (!check_operand(solver, stmt, &gemm->a) || !check_operand(solver, stmt, &gemm->b) ||
	    !check_accumulator(solver, stmt, &gemm->c) ||
	    !check_types(solver, stmt, gemm, &use->plan.shape))
		return false;
	gemm_sizes(gemm, &use->plan);
	use->plan.a_is_fragment = gemm->a.buffer->scope == SCOPE_FRAGMENT;
	use->plan.b_is_fragment = gemm->b.buffer->scope == SCOPE_FRAGMENT;
	if (!check_sizes(solver, stmt, &use->plan))
		return false;
	if (solver->n_threads % LANES != 0) {
		diag_report(&solver->cx->diags, DIAG_E0402, stmt->span,
		            "tensor-core instructions need whole warps: %" PRId64
		            " threads are not a multiple of 32",
		            solver->n_threads);
		diag_help(&solver->cx->diags, "threads=%" PRId64,
		          (solver->n_threads + LANES - 1) / LANES * LANES);
		return false;
	}
	if (!solve_wgmma(solver, policy_of(solver, stmt), use) && stmt->as.op.kind == OP_wgmma_gemm)
		return report_no_wgmma(solver, use);
	if (!use->plan.wgmma_n && !solve_warp_grid(solver, policy_of(solver, stmt), &use->plan)) {
		report_coverage(solver, stmt, use->plan.m, use->plan.n);
		return false;
	}
	use->plan.c = accumulator_of(solver, &use->plan);
	vec_push(solver->arena, &solver->gemms, use);
	return pin_operand(solver, use, 0) && pin_operand(solver, use, 1) &&
	       pin_accumulator(solver, stmt, use);
}
