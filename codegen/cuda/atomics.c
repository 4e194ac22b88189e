/*
 * Atomic operations in the CUDA text: one `red` of the PTX ISA where there is one, else a loop of
 * compare-and-swap. In shared memory `red` on floating numbers is such a loop in the machine code
 * too.
 */
#include "codegen/cuda/writer.h"

#include <assert.h>

static bool is_float(const struct cuda_red *red)
{
	return dtype_is_float(red->type);
}

/* "f32", "f16x2", "s32"; two elements of 16 bits are one operand. */
static const char *type_text(const struct cuda_red *red)
{
	if (red->type.bits == 16 && is_float(red) && red->n >= 2)
		return red->type.kind == TYPE_BFLOAT ? "bf16x2" : "f16x2";
	if (is_float(red))
		return red->type.kind == TYPE_BFLOAT ? "bf16"
		       : red->type.bits == 16        ? "f16"
		       : red->type.bits == 32        ? "f32"
		                                     : "f64";
	if (red->type.kind == TYPE_INT)
		return red->type.bits == 16 ? "s16" : red->type.bits == 32 ? "s32" : "s64";
	return red->type.bits == 16 ? "u16" : red->type.bits == 32 ? "u32" : "u64";
}

/* Operands of the instruction. */
static int n_operands(const struct cuda_red *red)
{
	return red->type.bits == 16 && red->n >= 2 ? (int)red->n / 2 : (int)red->n;
}

void cuda_red_name(struct buf *out, const struct cuda_red *red)
{
	buf_printf(out, "red_%s_%s_", red->is_shared ? "shared" : "global",
	           atomic_kind_text(red->kind));
	if (n_operands(red) > 1)
		buf_printf(out, "v%d_", n_operands(red));
	buf_text(out, type_text(red));
}

void cuda_use_red(struct cuda_writer *writer, const struct cuda_red *red)
{
	for (uint32_t i = 0; i < writer->reds.n; i++) {
		const struct cuda_red *known = &writer->reds.p[i];

		if (known->kind == red->kind && dtype_equal(known->type, red->type) && known->n == red->n &&
		    known->is_shared == red->is_shared)
			return;
	}
	if (red->type.bits == 16 && is_float(red) && red->n == 1) {
		bool is_bf16 = red->type.kind == TYPE_BFLOAT;

		cuda_use(writer, is_bf16 ? HELPER_from_bf16 : HELPER_from_f16);
		cuda_use(writer, is_bf16 ? HELPER_to_bf16 : HELPER_to_f16);
	}
	vec_push(writer->cx->arena, &writer->reds, *red);
}

/* Does `red` know it on every target? */
static bool is_native(const struct cuda_red *red)
{
	if (red->kind == ATOMIC_STORE || red->n > 1)
		return true;
	if (is_float(red))
		return red->kind == ATOMIC_ADD && red->type.kind != TYPE_BFLOAT;
	return red->type.bits >= 32;
}

/* "red.global.add.noftz.f16", "fence.sc.gpu; st.relaxed.gpu.global.b32". */
static void print_mnemonic(struct buf *out, const struct cuda_red *red)
{
	const char *space = red->is_shared ? "shared" : "global";
	const char *scope = red->is_shared ? "cta" : "gpu";

	if (red->kind == ATOMIC_STORE) {
		buf_printf(out, "fence.sc.%s; st.relaxed.%s.%s.b%u", scope, scope, space, red->type.bits);
		return;
	}
	buf_printf(out, "red.%s.%s", space, atomic_kind_text(red->kind));
	if (is_float(red) && red->type.bits == 16)
		buf_text(out, ".noftz");
	if (n_operands(red) > 1)
		buf_printf(out, ".v%d", n_operands(red));
	if (red->kind == ATOMIC_OR)
		buf_printf(out, ".b%u", red->type.bits);
	else if (red->kind == ATOMIC_ADD && !is_float(red))
		buf_printf(out, ".u%u", red->type.bits);
	else
		buf_printf(out, ".%s", type_text(red));
}

static void print_native(struct buf *out, const struct cuda_red *red)
{
	bool is_half = red->type.bits == 16 && red->n == 1;
	const char *letter = is_half ? "h" : cuda_asm_letter(cuda_reg_word(red->type));

	buf_text(out, "#define ");
	cuda_red_name(out, red);
	buf_text(out, "(address, x) \\\n\tasm volatile(\"");
	print_mnemonic(out, red);
	buf_text(out, " [%0], ");
	cuda_asm_operands(out, 1, n_operands(red));
	buf_printf(out, ";\" \\\n\t             : \\\n\t             : \"%s\"(address)",
	           red->is_shared ? "r" : "l");
	for (int i = 0; i < n_operands(red); i++)
		if (is_half)
			buf_text(out, ", \"h\"((unsigned short)(x))");
		else
			buf_printf(out, ", \"%s\"((x)[%d])", letter, i);
	buf_text(out, " \\\n\t             : \"memory\")\n");
}

/* What a loop knows of its type. */
struct word {
	const char *type, *letter;   /* of the bits */
	const char *decode, *encode; /* to what is computed with, and back */
};

static struct word word_of(const struct cuda_red *red)
{
	if (red->type.kind == TYPE_BFLOAT)
		return (struct word){ "unsigned short", "h", "from_bf16", "to_bf16" };
	if (red->type.bits == 16 && is_float(red))
		return (struct word){ "unsigned short", "h", "from_f16", "to_f16" };
	if (red->type.bits == 16)
		return (struct word){ "unsigned short", "h", red->type.kind == TYPE_INT ? "(short)" : "",
			                  "(unsigned short)" };
	if (red->type.bits == 32)
		return (struct word){ "unsigned", "r", "__uint_as_float", "__float_as_uint" };
	return (struct word){ "unsigned long long", "l", "__longlong_as_double",
		                  "__double_as_longlong" };
}

/* decode(seen) and decode(x), combined. */
static void print_combination(struct buf *out, const struct cuda_red *red, const struct word *word)
{
	bool is_double = red->type.bits == 64;
	const char *f = is_double ? "" : "f";

	if (red->kind == ATOMIC_ADD || red->kind == ATOMIC_OR)
		buf_printf(out, "%s(seen) %s %s(x)", word->decode, red->kind == ATOMIC_ADD ? "+" : "|",
		           word->decode);
	else if (is_float(red))
		buf_printf(out, "f%s%s(%s(seen), %s(x))", red->kind == ATOMIC_MAX ? "max" : "min", f,
		           word->decode, word->decode);
	else
		buf_printf(out, "%s(seen) %s %s(x) ? seen : x", word->decode,
		           red->kind == ATOMIC_MAX ? ">" : "<", word->decode);
}

static void print_loop(struct buf *out, const struct cuda_red *red)
{
	struct word word = word_of(red);
	const char *space = red->is_shared ? "shared" : "global", *at = red->is_shared ? "r" : "l";
	bool is_half = red->type.bits == 16;

	buf_text(out, "static __device__ __forceinline__ void ");
	cuda_red_name(out, red);
	buf_printf(out, "_loop(%s address, %s x)\n{\n\t%s seen, old;\n",
	           red->is_shared ? "unsigned" : "void *", word.type, word.type);
	buf_printf(
		out,
		"\tasm volatile(\"ld.volatile.%s.b%u %%0, [%%1];\" : \"=%s\"(old) : \"%s\"(address) : "
		"\"memory\");\n",
		space, red->type.bits, word.letter, at);
	buf_printf(out, "\tdo {\n\t\tseen = old;\n\t\tconst %s next = %s(", word.type, word.encode);
	print_combination(out, red, &word);
	buf_text(out, ");\n");
	buf_printf(out,
	           "\t\tasm volatile(\"atom.%s.cas.b%u %%0, [%%1], %%2, %%3;\"\n"
	           "\t\t             : \"=%s\"(old)\n\t\t             : \"%s\"(address), "
	           "\"%s\"(seen), \"%s\"(next)\n\t\t             : \"memory\");\n",
	           space, red->type.bits, word.letter, at, word.letter, word.letter);
	buf_text(out, "\t} while (old != seen);\n}\n\n#define ");
	cuda_red_name(out, red);
	buf_text(out, "(address, x) ");
	cuda_red_name(out, red);
	if (is_half)
		buf_text(out, "_loop(address, x)\n");
	else
		buf_printf(out, "_loop(address, *(const %s *)(x))\n", word.type);
}

void cuda_print_red(struct buf *out, const struct cuda_red *red)
{
	bool since_sm_90 = red->type.kind == TYPE_BFLOAT && red->kind == ATOMIC_ADD && red->n == 1;

	if (since_sm_90)
		buf_text(out, "#if __CUDA_ARCH__ >= 900\n");
	if (is_native(red) || since_sm_90)
		print_native(out, red);
	if (since_sm_90)
		buf_text(out, "#else\n");
	if (!is_native(red))
		print_loop(out, red);
	if (since_sm_90)
		buf_text(out, "#endif\n");
}
