/* One instruction of the warp program as one line of CUDA C++. */
#include "codegen/cuda/writer.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

/* ---- lines ---- */

void cuda_line_directive(struct cuda_writer *writer)
{
	const struct source *source = source_get(&writer->cx->sources, writer->span.file);
	uint32_t line = source_line(&writer->cx->sources, writer->span);

	if (!source || line == 0)
		return;
	buf_printf(&writer->body, "#line %u", line);
	if (!writer->lines) {
		buf_text(&writer->body, " \"");
		for (const char *c = source->path; *c; c++) {
			if (*c == '"' || *c == '\\')
				buf_char(&writer->body, '\\');
			buf_char(&writer->body, (unsigned char)*c < ' ' ? '?' : *c);
		}
		buf_char(&writer->body, '"');
		writer->lines = true;
	}
	buf_char(&writer->body, '\n');
}

void cuda_line(struct cuda_writer *writer, const char *format, ...)
{
	va_list args, again;
	char *text;
	int n;

	cuda_line_directive(writer);
	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	text = arena_alloc(writer->cx->arena, (size_t)n + 1);
	vsnprintf(text, (size_t)n + 1, format, again);
	va_end(again);
	va_end(args);
	for (uint32_t i = 0; i <= writer->depth; i++)
		buf_char(&writer->body, '\t');
	buf_printf(&writer->body, "%s\n", text);
}

/* Prints `text` as a line and frees it. */
static void line_of(struct cuda_writer *writer, struct buf *text)
{
	cuda_line(writer, "%s", buf_cstr(text));
	buf_free(text);
}

/* ---- operands ---- */

void cuda_address(struct cuda_writer *writer, struct buf *out, const struct waddr *address)
{
	int64_t constant = 1;

	if (address->space == WSPACE_SHARED) {
		buf_text(out, (const char *)map_get(&writer->shareds, address->shared->id));
		if (expr_is_int(address->offset, &constant) && constant == 0)
			return;
		buf_text(out, " + ");
		cuda_value(writer, out, address->offset, LEVEL_ADD);
		return;
	}
	buf_printf(out, "&%s[", (const char *)map_get(&writer->buffers, address->global->id));
	cuda_index(writer, out, address->offset, LEVEL_ANY);
	buf_char(out, ']');
}

void cuda_registers(struct cuda_writer *writer, struct buf *out, const struct wregs *regs)
{
	uint32_t unit_bits = regs->reg->type.bits > 32 ? regs->reg->type.bits : 32;

	buf_printf(out, "&%s[", cuda_reg_name(writer, regs->reg));
	cuda_unit_index(writer, out, regs, unit_bits);
	buf_char(out, ']');
}

void cuda_words(struct cuda_writer *writer, struct buf *out, const struct wregs *regs)
{
	if (cuda_reg_word(regs->reg->type) == CUDA_WORD_F32)
		buf_text(out, "(unsigned *)");
	cuda_registers(writer, out, regs);
}

/* Opens a macro call: its name, and the condition when there is one. */
static void open_call(struct cuda_writer *writer, struct buf *out, const struct expr *predicate)
{
	buf_char(out, '(');
	if (expr_is_true(predicate))
		return;
	cuda_value(writer, out, predicate, LEVEL_ANY);
	buf_text(out, ", ");
}

/* The macro that moves `bytes` bytes between memory and the slots. */
static struct cuda_access access_of(const struct cuda_writer *writer, const struct waddr *address,
                                    const struct wregs *regs, int64_t bytes)
{
	struct cuda_access access = { 0 };

	access.is_shared = address->space == WSPACE_SHARED;
	access.word = bytes == 2   ? CUDA_WORD_B16
	              : bytes == 1 ? CUDA_WORD_B8
	                           : cuda_reg_word(regs->reg->type);
	access.n_words = bytes < 4 ? 1 : (int)(bytes / (regs->reg->type.bits == 64 ? 8 : 4));
	access.is_constant = !access.is_shared && !map_find(&writer->written, address->global->id);
	return access;
}

/* ---- memory ---- */

/* The index of a half or quarter word in its array: of halves, of bytes. */
static void print_part_index(struct cuda_writer *writer, struct buf *out, const struct wregs *regs,
                             int64_t bytes)
{
	cuda_unit_index(writer, out, regs, bytes == 2 ? 16 : 8);
}

static void print_ld(struct cuda_writer *writer, const struct winst *inst)
{
	const struct wop_ld *ld = &inst->as.ld;
	struct cuda_access access = access_of(writer, &ld->src, &ld->dst, ld->bytes);
	struct buf text = { 0 };

	access.is_predicated = !expr_is_true(inst->predicate);
	cuda_use_access(writer, &access);
	cuda_access_name(&text, &access);
	open_call(writer, &text, inst->predicate);
	if (ld->bytes < 4) {
		buf_printf(&text, "%s, ", cuda_reg_name(writer, ld->dst.reg));
		print_part_index(writer, &text, &ld->dst, ld->bytes);
	} else {
		cuda_registers(writer, &text, &ld->dst);
	}
	buf_text(&text, ", ");
	cuda_address(writer, &text, &ld->src);
	buf_text(&text, ");");
	line_of(writer, &text);
}

static void print_st(struct cuda_writer *writer, const struct winst *inst)
{
	const struct wop_st *st = &inst->as.st;
	struct cuda_access access = access_of(writer, &st->dst, &st->src, st->bytes);
	struct buf text = { 0 };

	access.is_store = true;
	access.is_predicated = !expr_is_true(inst->predicate);
	cuda_use_access(writer, &access);
	cuda_access_name(&text, &access);
	open_call(writer, &text, inst->predicate);
	cuda_address(writer, &text, &st->dst);
	buf_text(&text, ", ");
	if (st->bytes < 4) {
		cuda_use(writer, st->bytes == 2 ? HELPER_get16 : HELPER_get8);
		buf_printf(&text, "%s(%s, ", st->bytes == 2 ? "get16" : "get8",
		           cuda_reg_name(writer, st->src.reg));
		print_part_index(writer, &text, &st->src, st->bytes);
		buf_char(&text, ')');
	} else {
		cuda_registers(writer, &text, &st->src);
	}
	buf_text(&text, ");");
	line_of(writer, &text);
}

static void print_red(struct cuda_writer *writer, const struct winst *inst)
{
	const struct wop_red *op = &inst->as.red;
	struct cuda_red red = { (enum atomic_kind)op->kind, op->src.reg->type, op->src.n,
		                    op->dst.space == WSPACE_SHARED };
	struct buf text = { 0 };

	cuda_use_red(writer, &red);
	cuda_red_name(&text, &red);
	buf_char(&text, '(');
	cuda_address(writer, &text, &op->dst);
	buf_text(&text, ", ");
	if (op->bytes == 2) {
		cuda_use(writer, HELPER_get16);
		buf_printf(&text, "get16(%s, ", cuda_reg_name(writer, op->src.reg));
		print_part_index(writer, &text, &op->src, op->bytes);
		buf_char(&text, ')');
	} else {
		cuda_registers(writer, &text, &op->src);
	}
	buf_text(&text, ");");
	line_of(writer, &text);
}

static void print_cp_async(struct cuda_writer *writer, const struct winst *inst)
{
	const struct wop_cp_async *copy = &inst->as.cp_async;
	bool is_predicated = !expr_is_true(inst->predicate);
	struct buf text = { 0 };

	assert(copy->bytes == 4 || copy->bytes == 8 || copy->bytes == 16);
	writer->uses_cp_async[copy->bytes][is_predicated] = true;
	buf_printf(&text, "cp_async_%d%s", (int)copy->bytes, is_predicated ? "_if" : "");
	open_call(writer, &text, inst->predicate);
	cuda_address(writer, &text, &copy->dst);
	buf_text(&text, ", ");
	cuda_address(writer, &text, &copy->src);
	buf_text(&text, ");");
	line_of(writer, &text);
}

static void print_matrix_move(struct cuda_writer *writer, const struct winst *inst)
{
	bool is_load = inst->kind == WOP_ldmatrix;
	const struct waddr *address = is_load ? &inst->as.ldmatrix.src : &inst->as.stmatrix.dst;
	const struct wregs *regs = is_load ? &inst->as.ldmatrix.dst : &inst->as.stmatrix.src;
	int64_t n = is_load ? inst->as.ldmatrix.n_matrices : inst->as.stmatrix.n_matrices;
	bool trans = (is_load ? inst->as.ldmatrix.trans : inst->as.stmatrix.trans) != 0;
	struct buf text = { 0 };

	assert(n == 1 || n == 2 || n == 4);
	buf_printf(&text, "%s_x%d%s(", is_load ? "ldmatrix" : "stmatrix", (int)n,
	           trans ? "_trans" : "");
	if (is_load) {
		writer->uses_ldmatrix[n][trans] = true;
		cuda_registers(writer, &text, regs);
		buf_text(&text, ", ");
		cuda_address(writer, &text, address);
	} else {
		writer->uses_stmatrix[n][trans] = true;
		cuda_address(writer, &text, address);
		buf_text(&text, ", ");
		cuda_registers(writer, &text, regs);
	}
	buf_text(&text, ");");
	line_of(writer, &text);
}

/* ---- arithmetic ---- */

static void print_mma(struct cuda_writer *writer, const struct winst *inst)
{
	enum mma_shape shape = (enum mma_shape)inst->as.mma.shape;
	struct buf text = { 0 };

	assert(shape < N_MMA_SHAPES);
	writer->uses_mma[shape] = true;
	cuda_mma_name(&text, shape);
	buf_char(&text, '(');
	cuda_registers(writer, &text, &inst->as.mma.d);
	buf_text(&text, ", ");
	cuda_words(writer, &text, &inst->as.mma.a);
	buf_text(&text, ", ");
	cuda_words(writer, &text, &inst->as.mma.b);
	buf_text(&text, ");");
	line_of(writer, &text);
}

static struct wregs slot_of(struct cuda_writer *writer, const struct wregs *regs,
                            const struct expr *step)
{
	return (struct wregs){ regs->reg, expr_add(writer->pool, regs->slot, step), 1 };
}

/* The lanes that take part: all, in the last warp of a block those that exist. */
static void member_mask(struct cuda_writer *writer, struct buf *out)
{
	int64_t n = writer->program->n_threads, rest = n % 32;
	unsigned last = (1u << rest) - 1;

	if (rest == 0)
		buf_text(out, "0xffffffffu");
	else if (n < 32)
		buf_printf(out, "0x%xu", last);
	else {
		cuda_value(writer, out, expr_of_var(writer->pool, writer->program->tid), LEVEL_ANY);
		buf_printf(out, " < %lld ? 0xffffffffu : 0x%xu", (long long)(n - rest), last);
	}
}

/* dst[slot + step] = another lane's src[slot + step]. */
static void print_shuffle(struct cuda_writer *writer, struct buf *text, const struct winst *inst,
                          const struct expr *step)
{
	/* All shuffles start with the same operands. */
	struct wregs dst = slot_of(writer, &inst->as.shfl_xor.dst, step);
	struct wregs src = slot_of(writer, &inst->as.shfl_xor.src, step);
	bool packed = cuda_slots_per_word(dst.reg->type) > 1;

	if (packed) {
		bool is_16 = cuda_slots_per_word(dst.reg->type) == 2;
		cuda_use(writer, is_16 ? HELPER_set16 : HELPER_set8);
		buf_printf(text, "%s(%s, ", is_16 ? "set16" : "set8", cuda_reg_name(writer, dst.reg));
		cuda_value(writer, text, dst.slot, LEVEL_ANY);
		buf_text(text, ", ");
	} else {
		buf_printf(text, "%s[", cuda_reg_name(writer, dst.reg));
		cuda_value(writer, text, dst.slot, LEVEL_ANY);
		buf_text(text, "] = ");
	}
	buf_printf(text, "__shfl_%ssync(",
	           inst->kind == WOP_shfl_xor    ? "xor_"
	           : inst->kind == WOP_shfl_up   ? "up_"
	           : inst->kind == WOP_shfl_down ? "down_"
	                                         : "");
	member_mask(writer, text);
	buf_printf(text, ", %s", packed ? "(unsigned)" : "");
	cuda_raw_slot(writer, text, src.reg, src.slot);
	buf_text(text, ", ");
	if (inst->kind == WOP_shfl_idx)
		cuda_value(writer, text, inst->as.shfl_idx.lane, LEVEL_ANY);
	else
		buf_printf(text, "%d",
		           (int)(inst->kind == WOP_shfl_xor  ? inst->as.shfl_xor.mask
		                 : inst->kind == WOP_shfl_up ? inst->as.shfl_up.delta
		                                             : inst->as.shfl_down.delta));
	buf_printf(text, ")%s;", packed ? ")" : "");
}

/* dst[slot + step] = value or the neighbour's src[slot + step]. */
static void print_slot(struct cuda_writer *writer, const struct winst *inst,
                       const struct expr *step)
{
	struct buf text = { 0 };

	if (inst->kind == WOP_set) {
		struct wregs dst = slot_of(writer, &inst->as.set.dst, step);
		cuda_set_slot(writer, &text, &dst, inst->as.set.value);
	} else {
		print_shuffle(writer, &text, inst, step);
	}
	line_of(writer, &text);
}

/* The slots of one 32-bit register, which move together. */
static void print_word_shuffle(struct cuda_writer *writer, const struct wop_shfl_idx *shfl)
{
	struct buf text = { 0 };

	buf_printf(&text, "%s[", cuda_reg_name(writer, shfl->dst.reg));
	cuda_unit_index(writer, &text, &shfl->dst, 32);
	buf_text(&text, "] = __shfl_sync(");
	member_mask(writer, &text);
	buf_printf(&text, ", %s[", cuda_reg_name(writer, shfl->src.reg));
	cuda_unit_index(writer, &text, &shfl->src, 32);
	buf_text(&text, "], ");
	cuda_value(writer, &text, shfl->lane, LEVEL_ANY);
	buf_text(&text, ");");
	line_of(writer, &text);
}

/* Once for each slot: written out when they are few, else as an unrolled loop. */
static void print_slots(struct cuda_writer *writer, const struct winst *inst)
{
	enum { MAX_WRITTEN_OUT = 4 };
	int64_t n = inst->kind == WOP_set ? inst->as.set.dst.n : inst->as.shfl_xor.dst.n;
	struct var *var;

	if (inst->kind == WOP_shfl_idx && n > 1 &&
	    n == cuda_slots_per_word(inst->as.shfl_idx.dst.reg->type)) {
		print_word_shuffle(writer, &inst->as.shfl_idx);
		return;
	}
	if (n <= MAX_WRITTEN_OUT) {
		for (int64_t i = 0; i < n; i++)
			print_slot(writer, inst, expr_int(writer->pool, i));
		return;
	}
	var = expr_new_var(writer->pool, VAR_LOOP, intern_text(writer->cx->names, "slot"), DTYPE_I32);
	var->min = 0;
	var->max = n - 1;
	cuda_name_var(writer, var);
	buf_text(&writer->body, "#pragma unroll\n");
	cuda_line(writer, "for (int %s = 0; %s < %lld; %s++)", cuda_var_name(writer, var),
	          cuda_var_name(writer, var), (long long)n, cuda_var_name(writer, var));
	writer->depth++;
	print_slot(writer, inst, expr_of_var(writer->pool, var));
	writer->depth--;
	cuda_release_name(writer, cuda_var_name(writer, var));
}

static void print_any(struct cuda_writer *writer, const struct winst *inst)
{
	switch (inst->kind) {
	case WOP_ld:
		print_ld(writer, inst);
		break;
	case WOP_st:
		print_st(writer, inst);
		break;
	case WOP_red:
		print_red(writer, inst);
		break;
	case WOP_ldmatrix:
	case WOP_stmatrix:
		print_matrix_move(writer, inst);
		break;
	case WOP_cp_async:
		print_cp_async(writer, inst);
		break;
	case WOP_cp_async_commit:
		cuda_use(writer, HELPER_cp_async_commit);
		cuda_line(writer, "cp_async_commit();");
		break;
	case WOP_cp_async_wait:
		cuda_use(writer, HELPER_cp_async_wait);
		cuda_line(writer, "cp_async_wait(%d);", (int)inst->as.cp_async_wait.n_pending);
		break;
	case WOP_barrier:
		cuda_line(writer, "__syncthreads();");
		break;
	case WOP_barrier_part:
		cuda_line(writer, "asm volatile(\"bar.sync %d, %d;\" ::: \"memory\");",
		          (int)inst->as.barrier_part.id, (int)inst->as.barrier_part.n_threads);
		break;
	case WOP_mma:
		print_mma(writer, inst);
		break;
	case WOP_set:
	case WOP_shfl_xor:
	case WOP_shfl_up:
	case WOP_shfl_down:
	case WOP_shfl_idx:
		print_slots(writer, inst);
		break;
	case WOP_wgmma:
	case WOP_wgmma_ra:
		cuda_wgmma(writer, inst);
		break;
	case WOP_wgmma_fence:
		cuda_wgmma_fence(writer, &inst->as.wgmma_fence);
		break;
	case WOP_wgmma_commit:
		cuda_use(writer, HELPER_wgmma_commit);
		cuda_line(writer, "wgmma_commit();");
		break;
	case WOP_wgmma_wait:
		cuda_wgmma_wait(writer, &inst->as.wgmma_wait);
		break;
	case WOP_fence_async:
		cuda_use(writer, HELPER_fence_async);
		cuda_line(writer, "fence_async();");
		break;
	case WOP_mbar_init:
	case WOP_mbar_arrive:
	case WOP_mbar_expect:
	case WOP_mbar_wait:
	case WOP_mbar_copies:
	case WOP_tma_load:
		cuda_hopper(writer, inst);
		break;
	case N_WOP_KINDS:
		break;
	}
}

/* Loads, stores and copies take their predicate as an operand. */
static bool takes_predicate(enum wop_kind kind)
{
	return kind == WOP_ld || kind == WOP_st || kind == WOP_cp_async;
}

void cuda_inst(struct cuda_writer *writer, const struct winst *inst)
{
	struct buf condition = { 0 };

	if (expr_is_true(inst->predicate) || takes_predicate(inst->kind)) {
		print_any(writer, inst);
		return;
	}
	cuda_value(writer, &condition, inst->predicate, LEVEL_ANY);
	cuda_line(writer, "if (%s) {", buf_cstr(&condition));
	buf_free(&condition);
	writer->depth++;
	print_any(writer, inst);
	writer->depth--;
	for (uint32_t i = 0; i <= writer->depth; i++)
		buf_char(&writer->body, '\t');
	buf_text(&writer->body, "}\n");
}
