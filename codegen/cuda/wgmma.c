/*
 * Warpgroup instructions as CUDA text.
 *
 *     wgmma_fence();
 *     wgmma_m64n128k16_f32_f16(&C_local[0], wgmma_matrix(A_shared + ..., 16, 1024, 1), ..., 0, 1);
 *     wgmma_commit();
 *     wgmma_wait(0);
 *
 * `keep` ties the accumulator to a place between other statements, so that the compiler moves no
 * access to it past a fence or a wait. Instruction texts follow the PTX ISA, wgmma.mma_async.
 */
#include "codegen/cuda/writer.h"

#include <assert.h>

/* Types whose operands may be MN-major have the immediates imm-trans. */
static bool has_trans(const struct mma_shape_info *info)
{
	return info->ab.bits == 16;
}

/* "wgmma_m64n128k16_f32_f16", "..._ra" with A in registers. */
static void put_name(struct buf *out, const struct cuda_wgmma *wgmma)
{
	const struct mma_shape_info *info = mma_shape_info(wgmma->shape);

	buf_printf(out, "wgmma_m64n%dk%d_%s_%s%s", wgmma->n, info->k, cuda_mma_type(info->d),
	           cuda_mma_type(info->ab), wgmma->a_in_registers ? "_ra" : "");
}

static void use_wgmma(struct cuda_writer *writer, struct cuda_wgmma wgmma)
{
	cuda_use(writer, HELPER_wgmma_matrix);
	for (uint32_t i = 0; i < writer->wgmmas.n; i++) {
		const struct cuda_wgmma *known = &writer->wgmmas.p[i];
		if (known->shape == wgmma.shape && known->n == wgmma.n &&
		    known->a_in_registers == wgmma.a_in_registers)
			return;
	}
	vec_push(writer->cx->arena, &writer->wgmmas, wgmma);
}

/* ---- statements ---- */

static void put_matrix(struct cuda_writer *writer, struct buf *out, const struct waddr *addr,
                       const struct wgmma_matrix *matrix)
{
	buf_text(out, "wgmma_matrix(");
	cuda_address(writer, out, addr);
	buf_printf(out, ", %lld, %lld, %d)", (long long)matrix->leading, (long long)matrix->stride,
	           wgmma_swizzle_mode(matrix));
}

void cuda_wgmma(struct cuda_writer *writer, const struct winst *inst)
{
	struct winst_wgmma op;
	struct buf text = { 0 };

	(void)winst_wgmma(inst, &op);
	struct cuda_wgmma wgmma = { op.shape, (int)op.n, op.a == NULL };
	bool trans = has_trans(mma_shape_info(op.shape));

	use_wgmma(writer, wgmma);
	put_name(&text, &wgmma);
	buf_char(&text, '(');
	cuda_registers(writer, &text, op.d);
	buf_text(&text, ", ");
	if (op.a)
		put_matrix(writer, &text, op.a, &op.a_matrix);
	else
		cuda_words(writer, &text, op.a_regs);
	buf_text(&text, ", ");
	put_matrix(writer, &text, op.b, &op.b_matrix);
	if (trans && op.a)
		buf_printf(&text, ", %d", op.a_matrix.mn_major);
	if (trans)
		buf_printf(&text, ", %d", op.b_matrix.mn_major);
	cuda_line(writer, "%s);", buf_cstr(&text));
	buf_free(&text);
}

/* Every register of the accumulator once. */
static void keep(struct cuda_writer *writer, const struct wregs *regs)
{
	bool is_float = cuda_reg_word(regs->reg->type) == CUDA_WORD_F32;
	struct var *var =
		expr_new_var(writer->pool, VAR_LOOP, intern_text(writer->cx->names, "word"), DTYPE_I32);
	const char *name;

	cuda_use(writer, is_float ? HELPER_keep_f32 : HELPER_keep_b32);
	cuda_name_var(writer, var);
	name = cuda_var_name(writer, var);
	buf_text(&writer->body, "#pragma unroll\n");
	cuda_line(writer, "for (int %s = 0; %s < %lld; %s++)", name, name,
	          (long long)cuda_reg_words(regs->reg), name);
	writer->depth++;
	cuda_line(writer, "%s(%s[%s]);", is_float ? "keep_f32" : "keep_b32",
	          cuda_reg_name(writer, regs->reg), name);
	writer->depth--;
	cuda_release_name(writer, name);
}

void cuda_wgmma_fence(struct cuda_writer *writer, const struct wop_wgmma_fence *fence)
{
	keep(writer, &fence->d);
	cuda_use(writer, HELPER_wgmma_fence);
	cuda_line(writer, "wgmma_fence();");
}

void cuda_wgmma_wait(struct cuda_writer *writer, const struct wop_wgmma_wait *wait)
{
	cuda_use(writer, HELPER_wgmma_wait);
	cuda_line(writer, "wgmma_wait(%d);", (int)wait->n_pending);
	if (!wait->n_pending)
		keep(writer, &wait->d);
}

/* ---- macros ---- */

/* `"+f"((d)[0]), "+f"((d)[1])`, eight a line. */
static void put_constraints(struct buf *out, const char *constraint, const char *name, int n)
{
	for (int i = 0; i < n; i++)
		buf_printf(out, "%s\"%s\"((%s)[%d])",
		           i == 0       ? ""
		           : i % 8 == 0 ? ", \\\n\t               "
		                        : ", ",
		           constraint, name, i);
}

/* `{%0, %1, ...}` */
static void put_group(struct buf *out, int first, int n)
{
	for (int i = 0; i < n; i++)
		buf_printf(out, "%s%%%d", i == 0 ? "{" : ", ", first + i);
	buf_char(out, '}');
}

static void put_macro(struct buf *out, const struct cuda_wgmma *wgmma)
{
	const struct mma_shape_info *info = mma_shape_info(wgmma->shape);
	int n_d = wgmma->n / 2 / cuda_slots_per_word(info->d);
	int n_a = wgmma->a_in_registers ? info->a_slots / cuda_slots_per_word(info->ab) : 1;
	int at = n_d + n_a + 1; /* the first immediate */
	const char *ab = cuda_mma_type(info->ab);
	bool trans = has_trans(info);

	buf_text(out, "#define ");
	put_name(out, wgmma);
	buf_printf(out, "(d, a, b%s%s) \\\n", trans && !wgmma->a_in_registers ? ", a_mn" : "",
	           trans ? ", b_mn" : "");
	buf_printf(out,
	           "\tasm volatile(\"wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s \" \\\n\t"
	           "             \"",
	           wgmma->n, info->k, cuda_mma_type(info->d), ab, ab);
	put_group(out, 0, n_d);
	buf_text(out, ", \" \\\n\t             \"");
	if (wgmma->a_in_registers)
		put_group(out, n_d, n_a);
	else
		buf_printf(out, "%%%d", n_d);
	buf_printf(out, ", %%%d, 1", n_d + n_a);
	if (dtype_is_float(info->ab) || info->ab.kind == TYPE_TFLOAT)
		buf_text(out, ", 1, 1");
	for (int i = 0; trans && i < (wgmma->a_in_registers ? 1 : 2); i++)
		buf_printf(out, ", %%%d", at + i);
	buf_text(out, ";\" \\\n\t             : ");
	put_constraints(out, cuda_reg_word(info->d) == CUDA_WORD_F32 ? "+f" : "+r", "d", n_d);
	buf_text(out, " \\\n\t             : ");
	if (wgmma->a_in_registers)
		put_constraints(out, "r", "a", n_a);
	else
		buf_text(out, "\"l\"(a)");
	buf_text(out, ", \"l\"(b)");
	if (trans && !wgmma->a_in_registers)
		buf_text(out, ", \"n\"(a_mn)");
	buf_printf(out, "%s)\n", trans ? ", \"n\"(b_mn)" : "");
}

void cuda_print_wgmma_macros(const struct cuda_writer *writer, struct buf *out)
{
	for (uint32_t i = 0; i < writer->wgmmas.n; i++)
		put_macro(out, &writer->wgmmas.p[i]);
}
