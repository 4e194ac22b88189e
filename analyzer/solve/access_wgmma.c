/*
 * How warpgroup instructions read the operands of a gemm from shared memory.
 *
 * A warpgroup's tile of m rows and n columns is cut into blocks of 64 rows and parts of wgmma_n
 * columns; one instruction multiplies one block by one part along 32 bytes of k. Each names its
 * matrices by descriptors, whose start address is the offset of the part's first element without
 * the layout's XOR terms.
 */
#include "analyzer/solve/access.h"

#include <assert.h>

enum { WARP_LANES = 32, WAVEFRONT_BYTES = 128 };

static bool is_mn_major(const struct op_gemm *gemm, int which)
{
	return which == 0 ? gemm->transpose_a : !gemm->transpose_b;
}

/* Elements of k in one instruction. */
static int64_t step_elems(const struct gemm_plan *plan)
{
	return mma_shape_info(plan->shape)->k;
}

static struct wgmma_view view_of(const struct op_gemm *gemm, const struct gemm_plan *plan,
                                 int which)
{
	return (struct wgmma_view){ is_mn_major(gemm, which), which == 0 ? WGMMA_M : plan->wgmma_n };
}

/* Parts start where the descriptor's pattern does. */
static bool starts_fit(const struct operand_ref *ref, const struct wgmma_matrix *matrix)
{
	const struct gemm_plan *plan = ref->plan;
	const struct region *region = ref->which == 0 ? &ref->gemm->a : &ref->gemm->b;
	uint32_t last = region->buffer->rank - 1;
	int64_t tile =
		ref->which == 0 ? plan->m / (plan->warps_m / WGMMA_WARPS) : plan->n / plan->warps_n;
	int64_t row_unit = 8, column_unit = WGMMA_K_BYTES / matrix->elem_bytes;

	if (matrix->mn_major)
		column_unit = matrix->span / matrix->elem_bytes;
	return expr_divisor(region->min[last - 1]) % row_unit == 0 &&
	       expr_divisor(region->min[last]) % column_unit == 0 &&
	       tile % (matrix->mn_major ? column_unit : row_unit) == 0;
}

bool access_wgmma_matrix(struct access_space *space, const struct operand_ref *ref,
                         struct wgmma_matrix *out)
{
	struct wgmma_view view = view_of(ref->gemm, ref->plan, ref->which);

	return wgmma_matrix_of(space->cx->arena, ref->layout, &view, out) && starts_fit(ref, out);
}

/* First row of A, or column of B, of the thread's warpgroup. */
static const struct expr *group_start(struct access_space *space, const struct operand_ref *ref)
{
	const struct gemm_plan *plan = ref->plan;
	struct expr_pool *pool = space->pool;
	const struct expr *tid = expr_of_var(pool, space->tid);
	int64_t groups_m = plan->warps_m / WGMMA_WARPS;

	if (ref->which == 0)
		return expr_mul_int(pool,
		                    expr_mod_int(pool, expr_div_int(pool, tid, WGMMA_THREADS), groups_m),
		                    plan->m / groups_m);
	return expr_mul_int(pool, expr_div_int(pool, tid, WARP_LANES * plan->warps_m),
	                    plan->n / plan->warps_n);
}

void access_wgmma_operand(struct access_space *space, const struct operand_ref *ref,
                          struct wgmma_operand *out)
{
	const struct gemm_plan *plan = ref->plan;
	struct expr_pool *pool = space->pool;
	const struct region *region = ref->which == 0 ? &ref->gemm->a : &ref->gemm->b;
	int64_t unit = ref->which == 0 ? WGMMA_M : plan->wgmma_n;
	int64_t tile =
		ref->which == 0 ? plan->m / (plan->warps_m / WGMMA_WARPS) : plan->n / plan->warps_n;
	int64_t n_steps = plan->k / step_elems(plan), n_parts = tile / unit;
	uint32_t position = ref->which == 0 ? 2 : 3, rank = region->buffer->rank;
	const struct expr *index[MAX_RANK], *mn, *k;

	if (!access_wgmma_matrix(space, ref, &out->matrix))
		BUG("operand %d of a wgmma has a layout without a descriptor", ref->which);
	out->steps = (struct access_iter){ access_iter_var(space, 0, n_steps), n_steps, 0 };
	out->parts =
		(struct access_iter){ access_iter_var(space, position, n_parts), n_parts, position };
	k = expr_mul_int(pool, access_iter_value(space, &out->steps), step_elems(plan));
	mn = expr_add(pool, group_start(space, ref),
	              expr_mul_int(pool, access_iter_value(space, &out->parts), unit));
	for (uint32_t d = 0; d < rank; d++)
		index[d] = region->min[d];
	index[rank - 2] = expr_add(pool, index[rank - 2], out->matrix.mn_major ? k : mn);
	index[rank - 1] = expr_add(pool, index[rank - 1], out->matrix.mn_major ? mn : k);
	out->start =
		access_offset(space, region->buffer, wgmma_linear(space->cx->arena, ref->layout), index);
}

struct access_cost access_wgmma_count(const struct gemm_plan *plan, int which)
{
	int64_t n_instructions =
		plan->m / WGMMA_M * (plan->n / plan->wgmma_n) * (plan->k / step_elems(plan));
	int64_t bytes = (which == 0 ? WGMMA_M : plan->wgmma_n) * WGMMA_K_BYTES;
	struct access_cost cost = { .executions = WGMMA_WARPS * n_instructions };

	assert(plan->wgmma_n > 0);
	cost.wavefronts = cost.ideal = n_instructions * bytes / WAVEFRONT_BYTES;
	return cost;
}
