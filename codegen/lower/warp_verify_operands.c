/*
 * The verifier's rules for operands. Slots are tried at every value of the unrolled loops when
 * bounds do not decide, addresses at sample points.
 */
#include "codegen/lower/warp_verify_internal.h"

#include "analyzer/layout/tma.h"

#include <assert.h>
#include <inttypes.h>

enum { MAX_POINTS = 1 << 14, MBARRIER_LIMIT = 1 << 20 };

/* ---- variables ---- */

static const struct wnode *find_loop(const struct wverifier *verifier, const struct var *var)
{
	for (uint32_t i = verifier->n_loops; i-- > 0;)
		if (verifier->loops[i]->as.loop.var == var)
			return verifier->loops[i];
	return NULL;
}

static bool in_scope(const struct wverifier *verifier, const struct var *var)
{
	const struct warp_program *program = verifier->program;

	for (int i = 0; i < 3; i++)
		if (program->block[i] == var)
			return true;
	return program->tid == var || find_loop(verifier, var) || map_find(&verifier->scalars, var->id);
}

static void check_slot(struct wverifier *verifier, const struct wregs *regs,
                       const struct expr *predicate);

/* Variables have a value here, and registers are read at constant slots. */
static void check_leaf(void *user, const struct expr *e)
{
	struct wverifier *verifier = user;

	if (e->kind == EXPR_REG) {
		struct wregs regs = { e->as.reg, e->args[0], 1 };
		if (!verifier->reported_scope)
			check_slot(verifier, &regs, verifier->predicate);
	}
	if (e->kind == EXPR_VAR && !in_scope(verifier, e->as.var) && !verifier->reported_scope) {
		verifier->reported_scope = true;
		WVERIFY_REPORT(verifier, E0619, "`%s` has no value here",
		               sym_text(verifier->program->cx->names, e->as.var->name));
	}
}

void wverify_expr(struct wverifier *verifier, const struct expr *e)
{
	if (e)
		expr_walk(e, check_leaf, verifier);
}

struct constant_check {
	const struct wverifier *verifier;
	bool ok;
};

static void check_unrolled_var(void *user, const struct expr *e)
{
	struct constant_check *check = user;
	const struct wnode *loop;

	if (e->kind != EXPR_VAR)
		return;
	loop = find_loop(check->verifier, e->as.var);
	if (!loop || !loop->as.loop.unroll)
		check->ok = false;
}

/* Is it a constant once the unrolled loops are unrolled? */
static bool is_constant(const struct wverifier *verifier, const struct expr *e)
{
	struct constant_check check = { verifier, e->is_index };

	if (check.ok)
		expr_walk(e, check_unrolled_var, &check);
	return check.ok;
}

/* ---- points at which facts are tried ---- */

/* Do the guards hold at verifier->values? `constant_only`: those that are no constants count as
 * holding. */
static bool guards_hold(const struct wverifier *verifier, const struct expr *predicate,
                        bool constant_only)
{
	for (uint32_t i = 0; i < verifier->n_guards; i++) {
		const struct wguard *guard = &verifier->guards[i];
		if (guard->is_extent || (constant_only && !is_constant(verifier, guard->e)))
			continue;
		if (!guard->e->is_index)
			return false;
		if ((expr_eval_int(guard->e, verifier->values) != 0) == guard->negated)
			return false;
	}
	if (!predicate || (constant_only && !is_constant(verifier, predicate)))
		return true;
	return predicate->is_index && expr_eval_int(predicate, verifier->values) != 0;
}

/* Moves the unrolled loops' variables to their next values; false after the last. */
static bool next_point(struct wverifier *verifier)
{
	for (uint32_t i = verifier->n_loops; i-- > 0;) {
		const struct wnode *loop = verifier->loops[i];
		int64_t extent, *value = &verifier->values[loop->as.loop.var->id];
		if (!loop->as.loop.unroll || !expr_is_int(loop->as.loop.extent, &extent))
			continue;
		if (++*value < extent)
			return true;
		*value = 0;
	}
	return false;
}

static void clear_loops(struct wverifier *verifier)
{
	for (uint32_t i = 0; i < verifier->n_loops; i++)
		verifier->values[verifier->loops[i]->as.loop.var->id] = 0;
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

/* A value of the variable: its ends first, then any. */
static int64_t sample_value(const struct var *var, int sample, uint64_t *state)
{
	int64_t min = var->min == INT64_MIN ? 0 : var->min;
	int64_t max = var->max < min + 4096 ? var->max : min + 4096;
	int64_t value = min;

	if (max < min)
		max = min;
	if (sample == 1)
		value = max;
	else if (sample > 1)
		value = min + next_random(state) % (max - min + 1);
	return var->divisor > 1 ? value / var->divisor * var->divisor : value;
}

/* All variables but tid; loop variables stay below their extents. */
void wverify_set_sample(struct wverifier *verifier, int sample, uint64_t *state)
{
	struct warp_program *program = verifier->program;

	for (int i = 0; i < 3; i++)
		verifier->values[program->block[i]->id] = sample_value(program->block[i], sample, state);
	for (uint32_t i = 0; i < verifier->scalars.n; i++) {
		const struct var *var = verifier->scalars.entries[i].value.pointer;
		verifier->values[var->id] = sample_value(var, sample, state);
	}
	for (uint32_t i = 0; i < verifier->n_loops; i++)
		verifier->values[verifier->loops[i]->as.loop.var->id] =
			sample_value(verifier->loops[i]->as.loop.var, sample, state);
}

/* ---- register operands ---- */

static bool slot_is_good(const struct wregs *regs, int64_t slot)
{
	int64_t bits = dtype_bits(regs->reg->type);
	int64_t unit_bits = regs->n * bits < 32 ? regs->n * bits : 32;

	return slot >= 0 && slot + regs->n <= regs->reg->n_slots &&
	       (bits >= 32 || regs->n == 1 || slot * bits % unit_bits == 0);
}

/* Tries every value of the unrolled loops. */
static void check_slots(struct wverifier *verifier, const struct wregs *regs,
                        const struct expr *predicate)
{
	const char *name = sym_text(verifier->program->cx->names, regs->reg->name);

	clear_loops(verifier);
	for (int n = 0; n < MAX_POINTS; n++) {
		int64_t slot = expr_eval_int(regs->slot, verifier->values);
		if (!slot_is_good(regs, slot) && guards_hold(verifier, predicate, true)) {
			if (slot < 0 || slot + regs->n > regs->reg->n_slots)
				WVERIFY_REPORT(verifier, E0612,
				               "slots %" PRId64 " to %" PRId64 " of `%s`, which has %" PRId64, slot,
				               slot + regs->n - 1, name, regs->reg->n_slots);
			else
				WVERIFY_REPORT(verifier, E0614, "%" PRId64 " slots of `%s` from slot %" PRId64,
				               regs->n, name, slot);
			return;
		}
		if (!next_point(verifier))
			return;
	}
}

static void check_slot(struct wverifier *verifier, const struct wregs *regs,
                       const struct expr *predicate)
{
	int64_t min, max, bits = dtype_bits(regs->reg->type);
	int64_t unit = regs->n > 1 && bits < 32 ? (regs->n * bits < 32 ? regs->n : 32 / bits) : 1;

	if (!is_constant(verifier, regs->slot) && regs->reg->is_local)
		return;
	if (!is_constant(verifier, regs->slot))
		WVERIFY_REPORT(verifier, E0613, "the slot of `%s` changes at run time",
		               sym_text(verifier->program->cx->names, regs->reg->name));
	else if (!expr_range(regs->slot, &min, &max) || min < 0 || max + regs->n > regs->reg->n_slots ||
	         expr_divisor(regs->slot) % unit != 0)
		check_slots(verifier, regs, predicate);
}

void wverify_regs(struct wverifier *verifier, const struct wregs *regs)
{
	wverify_expr(verifier, regs->slot);
	if (verifier->reported_scope)
		return;
	if (regs->n < 1)
		WVERIFY_REPORT(verifier, E0610, "an operand of %" PRId64 " slots", regs->n);
	else
		check_slot(verifier, regs, verifier->predicate);
}

/* ---- addresses ---- */

struct address_check {
	const struct waddr *addr;
	int64_t bytes;      /* of one lane's access */
	int64_t elem_bits;  /* the offset's unit */
	int64_t size_bytes; /* of the piece; -1: bounds are not checked */
	const struct expr *predicate;
};

static bool is_below(const struct wverifier *verifier, const struct var *var,
                     const struct expr *extent)
{
	return extent->is_index && verifier->values[var->id] < expr_eval_int(extent, verifier->values);
}

/* Are block and loop variables below their extents at the point? */
static bool is_point_real(const struct wverifier *verifier)
{
	const struct warp_program *program = verifier->program;

	for (int i = 0; i < 3; i++)
		if (!is_below(verifier, program->block[i], program->grid[i]))
			return false;
	for (uint32_t i = 0; i < verifier->n_loops; i++)
		if (!is_below(verifier, verifier->loops[i]->as.loop.var,
		              verifier->loops[i]->as.loop.extent))
			return false;
	return true;
}

/* At one point; true when it is fine or not reached. */
static bool check_address_at(struct wverifier *verifier, const struct address_check *check)
{
	int64_t at = expr_eval_int(check->addr->offset, verifier->values);
	bool aligned, inside;

	assert(check->bytes > 0 && check->elem_bits > 0);
	if (__builtin_mul_overflow(at, check->elem_bits, &at))
		return true;
	at /= 8;
	aligned = at % check->bytes == 0;
	inside = check->size_bytes < 0 || (at >= 0 && at + check->bytes <= check->size_bytes);
	if ((aligned && inside) || !is_point_real(verifier) ||
	    !guards_hold(verifier, check->predicate, false))
		return true;
	if (!aligned)
		WVERIFY_REPORT(verifier, E0615, "%" PRId64 " bytes at byte %" PRId64 ", thread %" PRId64,
		               check->bytes, at, verifier->values[verifier->program->tid->id]);
	else
		WVERIFY_REPORT(verifier, E0616, "byte %" PRId64 " of %" PRId64 ", thread %" PRId64, at,
		               check->size_bytes, verifier->values[verifier->program->tid->id]);
	return false;
}

static bool is_address_proved(const struct address_check *check)
{
	int64_t min, max, divisor = expr_divisor(check->addr->offset);

	if (divisor && (divisor * check->elem_bits / 8) % check->bytes != 0)
		return false;
	return check->size_bytes < 0 || (expr_range(check->addr->offset, &min, &max) && min >= 0 &&
	                                 max + check->bytes <= check->size_bytes);
}

static void check_address(struct wverifier *verifier, const struct address_check *check)
{
	int64_t *tid = &verifier->values[verifier->program->tid->id];
	int64_t n_threads = verifier->program->n_threads;
	uint64_t state = 1;

	wverify_expr(verifier, check->addr->offset);
	if (verifier->reported_scope || !check->addr->offset->is_index || check->bytes < 1 ||
	    is_address_proved(check))
		return;
	for (int sample = 0; sample < WVERIFY_SAMPLES; sample++) {
		wverify_set_sample(verifier, sample, &state);
		for (*tid = 0; *tid < n_threads; ++*tid)
			if (!check_address_at(verifier, check))
				return;
	}
}

/* Bytes that a lane moves. */
static int64_t access_bytes(const struct winst *inst)
{
	switch (inst->kind) {
	case WOP_ld:
		return inst->as.ld.bytes;
	case WOP_st:
		return inst->as.st.bytes;
	case WOP_red:
		return inst->as.red.bytes;
	case WOP_cp_async:
		return inst->as.cp_async.bytes;
	case WOP_ldmatrix:
	case WOP_stmatrix:
	case WOP_wgmma: /* a descriptor counts in units of 16 bytes */
	case WOP_wgmma_ra:
		return 16;
	case WOP_tma_load: /* checked in wverify_sizes and as it runs */
		return 0;
	case WOP_mbar_init:
	case WOP_mbar_arrive:
	case WOP_mbar_expect:
	case WOP_mbar_wait:
	case WOP_mbar_copies:
		return 8;
	case WOP_cp_async_commit:
	case WOP_cp_async_wait:
	case WOP_barrier:
	case WOP_barrier_part:
	case WOP_mma:
	case WOP_set:
	case WOP_shfl_xor:
	case WOP_wgmma_fence:
	case WOP_wgmma_commit:
	case WOP_wgmma_wait:
	case WOP_fence_async:
	case WOP_shfl_up:
	case WOP_shfl_down:
	case WOP_shfl_idx:
	case N_WOP_KINDS:
		break;
	}
	return 0;
}

void wverify_addr(struct wverifier *verifier, const struct winst *inst,
                  const struct woperand_info *info)
{
	const struct waddr *addr = winst_operand(inst, info).addr;
	bool is_shared = addr->space == WSPACE_SHARED;
	bool is_copy = inst->kind == WOP_cp_async;
	struct address_check check = { addr, access_bytes(inst), 8, -1, inst->predicate };

	if ((info->spaces == WSPACES_SHARED && !is_shared) ||
	    (info->spaces == WSPACES_GLOBAL && is_shared)) {
		WVERIFY_REPORT(verifier, E0610, "%s of %s lies in %s memory", info->name,
		               wop_info(inst->kind)->text, is_shared ? "shared" : "global");
		return;
	}
	if (is_shared) {
		check.size_bytes = wshared_bytes(addr->shared);
		/* The write happens whatever the predicate says: it only chooses zeros. */
		check.predicate = is_copy ? NULL : inst->predicate;
	} else {
		check.elem_bits = dtype_bits(addr->global->type);
	}
	check_address(verifier, &check);
}

/* ---- what each instruction asks for ---- */

static bool is_one_of(int64_t value, int64_t first, int64_t last)
{
	for (int64_t v = first; v <= last; v *= 2)
		if (v == value)
			return true;
	return false;
}

static void check_number(struct wverifier *verifier, bool ok, const char *name, int64_t value)
{
	if (!ok)
		WVERIFY_REPORT(verifier, E0611, "%s is %" PRId64, name, value);
}

static void check_bits(struct wverifier *verifier, const struct wregs *regs, int64_t bits)
{
	int64_t got = regs->n * dtype_bits(regs->reg->type);

	if (got != bits)
		WVERIFY_REPORT(verifier, E0610, "%" PRId64 " bits of `%s` for %" PRId64 " bits of data",
		               got, sym_text(verifier->program->cx->names, regs->reg->name), bits);
}

/* tf32 operands may be float32 registers: the hardware reads the bits that count. */
static bool mma_type_fits(struct dtype got, struct dtype want)
{
	return dtype_equal(got, want) || (want.kind == TYPE_TFLOAT && dtype_equal(got, DTYPE_F32));
}

static void check_fragment(struct wverifier *verifier, const struct wregs *regs, struct dtype type,
                           int64_t n_slots)
{
	char got[32], want[32];

	if (regs->n != n_slots || !mma_type_fits(regs->reg->type, type))
		WVERIFY_REPORT(verifier, E0610,
		               "%" PRId64 " %s slots of `%s` where the shape has %" PRId64 " of %s",
		               regs->n, dtype_name(regs->reg->type, got),
		               sym_text(verifier->program->cx->names, regs->reg->name), n_slots,
		               dtype_name(type, want));
}

static void check_mma(struct wverifier *verifier, const struct wop_mma *mma)
{
	const struct mma_shape_info *shape;

	if (mma->shape < 0 || mma->shape >= N_MMA_SHAPES) {
		check_number(verifier, false, "shape", mma->shape);
		return;
	}
	shape = mma_shape_info((enum mma_shape)mma->shape);
	check_fragment(verifier, &mma->d, shape->d, shape->d_slots);
	check_fragment(verifier, &mma->a, shape->ab, shape->a_slots);
	check_fragment(verifier, &mma->b, shape->ab, shape->b_slots);
}

static void check_matrix(struct wverifier *verifier, const struct wregs *regs, int64_t n_matrices,
                         int64_t trans)
{
	check_number(verifier, is_one_of(n_matrices, 1, 4), "n_matrices", n_matrices);
	check_number(verifier, trans == 0 || trans == 1, "trans", trans);
	check_bits(verifier, regs, 32 * n_matrices);
}

static void check_shfl(struct wverifier *verifier, const struct wregs *dst, const struct wregs *src)
{
	if (dst->n != src->n || !dtype_equal(dst->reg->type, src->reg->type))
		WVERIFY_REPORT(verifier, E0610, "a shuffle between different slots or types");
}

/* Strides are 14 bits in units of 16 bytes; mn-major operands have 16 bits. */
static void check_matrix_operand(struct wverifier *verifier, const struct wgmma_matrix *matrix)
{
	enum { STRIDE_LIMIT = 1 << 18 };

	check_number(verifier, is_one_of(matrix->span, 16, 128), "span", matrix->span);
	check_number(verifier,
	             matrix->leading >= 0 && matrix->leading % 16 == 0 &&
	                 matrix->leading < STRIDE_LIMIT,
	             "leading", matrix->leading);
	check_number(verifier,
	             matrix->stride >= 0 && matrix->stride % 16 == 0 && matrix->stride < STRIDE_LIMIT,
	             "stride", matrix->stride);
	check_number(verifier, !matrix->mn_major || matrix->elem_bytes == 2, "mn", matrix->mn_major);
}

/* The swizzle acts on absolute addresses, so the piece must start where its pattern does. */
static void check_base(struct wverifier *verifier, const struct waddr *addr,
                       const struct wgmma_matrix *matrix)
{
	int64_t align = wgmma_alignment(matrix);

	if (addr->space == WSPACE_SHARED && addr->shared->offset_bytes % align != 0)
		WVERIFY_REPORT(verifier, E0615,
		               "a swizzle of %" PRId64 " bytes from byte %" PRId64
		               ", which is no multiple of %" PRId64,
		               matrix->span, addr->shared->offset_bytes, align);
}

static void check_wgmma(struct wverifier *verifier, const struct winst *inst)
{
	const struct mma_shape_info *shape;
	struct winst_wgmma op;

	(void)winst_wgmma(inst, &op);
	if (op.shape >= N_MMA_SHAPES) {
		check_number(verifier, false, "shape", op.shape);
		return;
	}
	shape = mma_shape_info(op.shape);
	check_number(verifier, op.n >= 8 && wgmma_split(op.n, shape->d.kind == TYPE_INT) == op.n, "n",
	             op.n);
	check_fragment(verifier, op.d, shape->d, op.n / 2);
	if (op.a_regs)
		check_fragment(verifier, op.a_regs, shape->ab, shape->a_slots);
	else {
		check_matrix_operand(verifier, &op.a_matrix);
		check_base(verifier, op.a, &op.a_matrix);
	}
	check_matrix_operand(verifier, &op.b_matrix);
	check_base(verifier, op.b, &op.b_matrix);
}

/* A box of the tensor's dimensions, and where it may start in shared memory. */
static void check_tma(struct wverifier *verifier, const struct wop_tma_load *op)
{
	const struct buffer *tensor = op->src.global;
	const int64_t extents[] = { op->e0, op->e1, op->e2, op->e3, op->e4 };
	int64_t row = op->e0 * (int64_t)dtype_bits(tensor->type) / 8;
	struct tma_box box = { .span = op->span };

	check_number(verifier, op->span == 0 || is_one_of(op->span, 32, 128), "span", op->span);
	for (uint32_t d = 0; d < TMA_MAX_RANK; d++)
		check_number(verifier,
		             extents[d] >= 1 && extents[d] <= (d < tensor->rank ? TMA_MAX_BOX : 1),
		             "an extent of the box", extents[d]);
	if (row % TMA_UNIT != 0 || (op->span && row > op->span))
		WVERIFY_REPORT(verifier, E0611,
		               "a box's row of %" PRId64 " bytes, swizzled within %" PRId64, row, op->span);
	if (op->dst.shared->offset_bytes % tma_alignment(&box) != 0)
		WVERIFY_REPORT(verifier, E0615,
		               "a box with %" PRId64 " bytes of swizzle goes to byte %" PRId64
		               ", which is no multiple of %" PRId64,
		               op->span, op->dst.shared->offset_bytes, tma_alignment(&box));
}

void wverify_sizes(struct wverifier *verifier, const struct winst *inst)
{
	switch (inst->kind) {
	case WOP_ld:
		check_number(verifier, is_one_of(inst->as.ld.bytes, 1, 16), "bytes", inst->as.ld.bytes);
		check_bits(verifier, &inst->as.ld.dst, 8 * inst->as.ld.bytes);
		break;
	case WOP_st:
		check_number(verifier, is_one_of(inst->as.st.bytes, 1, 16), "bytes", inst->as.st.bytes);
		check_bits(verifier, &inst->as.st.src, 8 * inst->as.st.bytes);
		break;
	case WOP_red:
		check_number(verifier, is_one_of(inst->as.red.bytes, 2, 16), "bytes", inst->as.red.bytes);
		check_number(verifier, inst->as.red.kind > ATOMIC_NONE && inst->as.red.kind <= ATOMIC_STORE,
		             "kind", inst->as.red.kind);
		check_bits(verifier, &inst->as.red.src, 8 * inst->as.red.bytes);
		break;
	case WOP_ldmatrix:
		check_matrix(verifier, &inst->as.ldmatrix.dst, inst->as.ldmatrix.n_matrices,
		             inst->as.ldmatrix.trans);
		break;
	case WOP_stmatrix:
		check_matrix(verifier, &inst->as.stmatrix.src, inst->as.stmatrix.n_matrices,
		             inst->as.stmatrix.trans);
		break;
	case WOP_cp_async:
		check_number(verifier, is_one_of(inst->as.cp_async.bytes, 4, 16), "bytes",
		             inst->as.cp_async.bytes);
		break;
	case WOP_cp_async_wait:
		check_number(verifier, inst->as.cp_async_wait.n_pending >= 0, "n_pending",
		             inst->as.cp_async_wait.n_pending);
		break;
	case WOP_mma:
		check_mma(verifier, &inst->as.mma);
		break;
	case WOP_set:
		check_number(verifier, inst->as.set.dst.n == 1, "the number of slots", inst->as.set.dst.n);
		break;
	case WOP_shfl_xor:
		check_number(verifier, inst->as.shfl_xor.mask >= 1 && inst->as.shfl_xor.mask <= 31, "mask",
		             inst->as.shfl_xor.mask);
		check_shfl(verifier, &inst->as.shfl_xor.dst, &inst->as.shfl_xor.src);
		break;
	case WOP_shfl_down:
		check_number(verifier, inst->as.shfl_down.delta >= 1 && inst->as.shfl_down.delta <= 31,
		             "delta", inst->as.shfl_down.delta);
		check_shfl(verifier, &inst->as.shfl_down.dst, &inst->as.shfl_down.src);
		break;
	case WOP_shfl_up:
		check_number(verifier, inst->as.shfl_up.delta >= 1 && inst->as.shfl_up.delta <= 31, "delta",
		             inst->as.shfl_up.delta);
		check_shfl(verifier, &inst->as.shfl_up.dst, &inst->as.shfl_up.src);
		break;
	case WOP_shfl_idx:
		check_shfl(verifier, &inst->as.shfl_idx.dst, &inst->as.shfl_idx.src);
		break;
	case WOP_wgmma:
	case WOP_wgmma_ra:
		check_wgmma(verifier, inst);
		break;
	case WOP_wgmma_wait:
		check_number(verifier, inst->as.wgmma_wait.n_pending >= 0, "n_pending",
		             inst->as.wgmma_wait.n_pending);
		break;
	case WOP_barrier_part:
		check_number(verifier, inst->as.barrier_part.id >= 1 && inst->as.barrier_part.id <= 15,
		             "id", inst->as.barrier_part.id);
		check_number(verifier,
		             inst->as.barrier_part.n_threads >= 32 &&
		                 inst->as.barrier_part.n_threads <= 1024 &&
		                 inst->as.barrier_part.n_threads % 32 == 0,
		             "n_threads", inst->as.barrier_part.n_threads);
		break;
	case WOP_mbar_init:
		check_number(verifier,
		             inst->as.mbar_init.count >= 1 && inst->as.mbar_init.count < MBARRIER_LIMIT,
		             "count", inst->as.mbar_init.count);
		break;
	case WOP_mbar_expect:
		check_number(verifier, inst->as.mbar_expect.arrives >> 1 == 0, "arrives",
		             inst->as.mbar_expect.arrives);
		break;
	case WOP_tma_load:
		check_tma(verifier, &inst->as.tma_load);
		break;
	case WOP_mbar_arrive:
	case WOP_mbar_wait:
	case WOP_mbar_copies:
	case WOP_cp_async_commit:
	case WOP_barrier:
	case WOP_wgmma_fence:
	case WOP_wgmma_commit:
	case WOP_fence_async:
	case N_WOP_KINDS:
		break;
	}
}
