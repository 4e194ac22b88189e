/*
 * The top of the CUDA text: small functions, and one macro for each kind of memory access, matrix
 * load and mma that is used.
 *
 * Macros, not functions: an inlined function would leave its own line in the machine code's line
 * table where a macro leaves that of the kernel line that uses it. Instruction texts follow the
 * PTX ISA (ld, st, cp.async, ldmatrix, stmatrix, mma).
 */
#include "codegen/cuda/writer.h"

#include <assert.h>
#include <string.h>

struct helper_text {
	const char *name, *text;
};

static const struct helper_text helpers[N_CUDA_HELPERS] = {
#define HELPER(id, text) { #id, text },
#include "codegen/cuda/helpers.def"
#undef HELPER
};

void cuda_use(struct cuda_writer *writer, enum cuda_helper helper)
{
	writer->uses[helper] = true;
}

static bool is_same_access(const struct cuda_access *a, const struct cuda_access *b)
{
	return a->is_store == b->is_store && a->is_shared == b->is_shared &&
	       a->is_predicated == b->is_predicated && a->is_constant == b->is_constant &&
	       a->word == b->word && a->n_words == b->n_words;
}

void cuda_use_access(struct cuda_writer *writer, const struct cuda_access *access)
{
	for (uint32_t i = 0; i < writer->accesses.n; i++)
		if (is_same_access(&writer->accesses.p[i], access))
			return;
	if (!access->is_store && access->word == CUDA_WORD_B16)
		cuda_use(writer, HELPER_set16);
	if (!access->is_store && access->word == CUDA_WORD_B8)
		cuda_use(writer, HELPER_set8);
	vec_push(writer->cx->arena, &writer->accesses, *access);
}

/* ---- memory accesses ---- */

struct word_text {
	const char *type;   /* of the PTX instruction */
	const char *letter; /* of the asm constraint */
	const char *zero;   /* the PTX mov that clears a register */
};

static const struct word_text words[N_CUDA_WORDS] = {
	[CUDA_WORD_B32] = { "b32", "r", "mov.b32" }, [CUDA_WORD_F32] = { "f32", "f", "mov.b32" },
	[CUDA_WORD_B64] = { "b64", "l", "mov.b64" }, [CUDA_WORD_F64] = { "f64", "d", "mov.b64" },
	[CUDA_WORD_B16] = { "b16", "h", "mov.b16" }, [CUDA_WORD_B8] = { "b8", "r", "mov.b32" },
};

const char *cuda_asm_letter(enum cuda_word word)
{
	return words[word].letter;
}

void cuda_access_name(struct buf *out, const struct cuda_access *access)
{
	const char *space = access->is_shared ? "shared" : access->is_constant ? "constant" : "global";

	buf_printf(out, "%s_%s_", access->is_store ? "st" : "ld", space);
	if (access->n_words > 1)
		buf_printf(out, "v%d_", access->n_words);
	buf_printf(out, "%s%s", words[access->word].type, access->is_predicated ? "_if" : "");
}

/* `{%0, %1}` or `%0`. */
void cuda_asm_operands(struct buf *out, int first, int n)
{
	buf_text(out, n > 1 ? "{" : "");
	for (int i = 0; i < n; i++)
		buf_printf(out, "%s%%%d", i > 0 ? ", " : "", first + i);
	buf_text(out, n > 1 ? "}" : "");
}

/* `"=r"((x)[0]), "=r"((x)[1])`; without words, of a single value `x`. */
static void print_registers(struct buf *out, const char *constraint, const char *letter,
                            const char *x, int n)
{
	for (int i = 0; i < n; i++)
		buf_printf(out, "%s\"%s%s\"((%s)[%d])", i > 0 ? ", " : "", constraint, letter, x, i);
}

static bool is_packed_part(const struct cuda_access *access)
{
	return access->word == CUDA_WORD_B16 || access->word == CUDA_WORD_B8;
}

/* ".v4.b32"; bytes are loaded and stored as .u8. */
static void print_suffix(struct buf *out, const struct cuda_access *access)
{
	if (access->n_words > 1)
		buf_printf(out, ".v%d", access->n_words);
	buf_printf(out, ".%s", access->word == CUDA_WORD_B8 ? "u8" : words[access->word].type);
}

/* The instruction text of a load between quotes. */
static void print_load_text(struct buf *out, const struct cuda_access *access)
{
	int n = access->n_words;

	buf_char(out, '"');
	if (access->is_predicated) {
		buf_printf(out, "{ .reg .pred p; setp.ne.b32 p, %%%d, 0; ", n + 1);
		for (int i = 0; i < n; i++)
			buf_printf(out, "%s %%%d, 0; ", words[access->word].zero, i);
		buf_text(out, "@p ");
	}
	buf_printf(out, "ld.%s",
	           access->is_shared     ? "shared"
	           : access->is_constant ? "global.nc"
	                                 : "global");
	print_suffix(out, access);
	buf_char(out, ' ');
	cuda_asm_operands(out, 0, n);
	buf_printf(out, ", [%%%d];%s\"", n, access->is_predicated ? " }" : "");
}

static void print_load_macro(struct buf *out, const struct cuda_access *access)
{
	bool part = is_packed_part(access);
	const char *constraint = access->is_predicated ? "=&" : "=";
	const char *pad = part ? "\t\t" : "\t";

	buf_text(out, "#define ");
	cuda_access_name(out, access);
	buf_printf(out, "(%sx, %saddress) \\\n", access->is_predicated ? "condition, " : "",
	           part ? "slot, " : "");
	if (part)
		buf_printf(out, "\tdo { \\\n\t\tunsigned%s bits_; \\\n",
		           access->word == CUDA_WORD_B16 ? " short" : "");
	buf_printf(out, "%sasm%s(", pad, access->is_constant ? "" : " volatile");
	print_load_text(out, access);
	buf_printf(out, " \\\n%s             : ", pad);
	if (part)
		buf_printf(out, "\"%s%s\"(bits_)", constraint, words[access->word].letter);
	else
		print_registers(out, constraint, words[access->word].letter, "x", access->n_words);
	buf_printf(out, " \\\n%s             : \"%s\"(address)%s)", pad, access->is_shared ? "r" : "l",
	           access->is_predicated ? ", \"r\"((int)(condition))" : "");
	if (part)
		buf_printf(out, "; \\\n\t\t%s(x, slot, bits_); \\\n\t} while (0)",
		           access->word == CUDA_WORD_B16 ? "set16" : "set8");
	buf_char(out, '\n');
}

static void print_store_macro(struct buf *out, const struct cuda_access *access)
{
	int n = access->n_words;
	const char *letter = words[access->word].letter;

	buf_text(out, "#define ");
	cuda_access_name(out, access);
	buf_printf(out, "(%saddress, x) \\\n\tasm volatile(\"",
	           access->is_predicated ? "condition, " : "");
	if (access->is_predicated)
		buf_printf(out, "{ .reg .pred p; setp.ne.b32 p, %%%d, 0; @p ", n + 1);
	buf_printf(out, "st.%s", access->is_shared ? "shared" : "global");
	print_suffix(out, access);
	buf_text(out, " [%0], ");
	cuda_asm_operands(out, 1, n);
	buf_printf(out, ";%s\" \\\n\t             : \\\n\t             : \"%s\"(address), ",
	           access->is_predicated ? " }" : "", access->is_shared ? "r" : "l");
	if (is_packed_part(access))
		buf_printf(out, "\"%s\"(%s(x))", letter,
		           access->word == CUDA_WORD_B16 ? "(unsigned short)" : "(unsigned)");
	else
		print_registers(out, "", letter, "x", n);
	buf_printf(out, "%s \\\n\t             : \"memory\")\n",
	           access->is_predicated ? ", \"r\"((int)(condition))" : "");
}

/* ---- copies and matrices ---- */

static void print_cp_async(struct cuda_writer *writer, struct buf *out)
{
	for (int bytes = 4; bytes <= 16; bytes *= 2) {
		const char *via = bytes == 16 ? "cg.shared.global.L2::128B" : "ca.shared.global";
		if (writer->uses_cp_async[bytes][0])
			buf_printf(out,
			           "#define cp_async_%d(to, from) \\\n\tasm volatile(\"cp.async.%s [%%0], "
			           "[%%1], %d;\" \\\n"
			           "\t             : \\\n\t             : \"r\"(to), \"l\"(from) \\\n\t        "
			           "     : \"memory\")\n",
			           bytes, via, bytes);
		if (writer->uses_cp_async[bytes][1])
			buf_printf(out,
			           "// Zeros where the condition fails: nothing is read there.\n"
			           "#define cp_async_%d_if(condition, to, from) \\\n"
			           "\tasm volatile(\"cp.async.%s [%%0], [%%1], %d, %%2;\" \\\n"
			           "\t             : \\\n\t             : \"r\"(to), \"l\"(from), "
			           "\"r\"((condition) ? %d : 0) \\\n"
			           "\t             : \"memory\")\n",
			           bytes, via, bytes, bytes);
	}
}

static void print_ldmatrix(struct buf *out, int n, bool trans)
{
	buf_printf(out,
	           "#define ldmatrix_x%d%s(x, address) \\\n\tasm "
	           "volatile(\"ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 ",
	           n, trans ? "_trans" : "", n, trans ? ".trans" : "");
	buf_text(out, n == 1 ? "{" : "");
	cuda_asm_operands(out, 0, n);
	buf_printf(out, "%s, [%%%d];\" \\\n\t             : ", n == 1 ? "}" : "", n);
	print_registers(out, "=", "r", "x", n);
	buf_text(out, " \\\n\t             : \"r\"(address))\n");
}

static void print_stmatrix(struct buf *out, int n, bool trans)
{
	buf_printf(out,
	           "#define stmatrix_x%d%s(address, x) \\\n\tasm "
	           "volatile(\"stmatrix.sync.aligned.m8n8.x%d%s.shared.b16 [%%0], ",
	           n, trans ? "_trans" : "", n, trans ? ".trans" : "");
	buf_text(out, n == 1 ? "{" : "");
	cuda_asm_operands(out, 1, n);
	buf_printf(out, "%s;\" \\\n\t             : \\\n\t             : \"r\"(address), ",
	           n == 1 ? "}" : "");
	print_registers(out, "", "r", "x", n);
	buf_text(out, " \\\n\t             : \"memory\")\n");
}

const char *cuda_mma_type(struct dtype type)
{
	if (type.kind == TYPE_BFLOAT)
		return "bf16";
	if (type.kind == TYPE_TFLOAT)
		return "tf32";
	if (type.kind == TYPE_FLOAT)
		return type.bits == 16 ? "f16" : "f32";
	if (type.kind == TYPE_FLOAT8_E4M3)
		return "e4m3";
	if (type.kind == TYPE_FLOAT8_E5M2)
		return "e5m2";
	return type.bits == 8 ? (type.kind == TYPE_INT ? "s8" : "u8") : "s32";
}

void cuda_mma_name(struct buf *out, enum mma_shape shape)
{
	const struct mma_shape_info *info = mma_shape_info(shape);

	buf_printf(out, "mma_m%dn%dk%d_%s_%s", info->m, info->n, info->k, cuda_mma_type(info->d),
	           cuda_mma_type(info->ab));
}

static void print_mma(struct buf *out, enum mma_shape shape)
{
	const struct mma_shape_info *info = mma_shape_info(shape);
	int a = info->a_slots / cuda_slots_per_word(info->ab);
	int b = info->b_slots / cuda_slots_per_word(info->ab);
	int d = info->d_slots / cuda_slots_per_word(info->d);
	const char *ab_type = cuda_mma_type(info->ab), *d_type = cuda_mma_type(info->d);

	buf_text(out, "#define ");
	cuda_mma_name(out, shape);
	buf_text(out, "(d, a, b) \\\n");
	buf_printf(
		out,
		"\tasm volatile(\"mma.sync.aligned.m%dn%dk%d.row.col.%s.%s.%s.%s \" \\\n\t             \"",
		info->m, info->n, info->k, d_type, ab_type, ab_type, d_type);
	cuda_asm_operands(out, 0, d);
	buf_text(out, ", ");
	cuda_asm_operands(out, d, a);
	buf_text(out, ", ");
	cuda_asm_operands(out, d + a, b);
	buf_text(out, ", ");
	cuda_asm_operands(out, 0, d);
	buf_text(out, ";\" \\\n\t             : ");
	print_registers(out, "+", words[cuda_reg_word(info->d)].letter, "d", d);
	buf_text(out, " \\\n\t             : ");
	print_registers(out, "", "r", "a", a);
	buf_text(out, ", ");
	print_registers(out, "", "r", "b", b);
	buf_text(out, ")\n");
}

static void print_matrix_macros(struct cuda_writer *writer, struct buf *out)
{
	for (int n = 1; n <= 4; n *= 2) {
		for (int trans = 0; trans < 2; trans++) {
			if (writer->uses_ldmatrix[n][trans])
				print_ldmatrix(out, n, trans != 0);
			if (writer->uses_stmatrix[n][trans])
				print_stmatrix(out, n, trans != 0);
		}
	}
	for (int shape = 0; shape < N_MMA_SHAPES; shape++)
		if (writer->uses_mma[shape])
			print_mma(out, (enum mma_shape)shape);
	cuda_print_wgmma_macros(writer, out);
}

/* ---- the rest ---- */

static void print_panel_order(struct buf *out)
{
	buf_text(
		out,
		"// Block `linear` of the launch takes this place: the grid is worked off in panels of "
		"`width`, for reuse in L2.\n"
		"static __device__ __forceinline__ void panel_order(int linear, int n_across, int n_along, "
		"int width,\n"
		"                                                   int &across_out, int &along_out)\n{\n");
#define RASTER(name, expression) buf_text(out, "\tconst int " #name " = " #expression ";\n");
#include "codegen/cuda/raster.def"
#undef RASTER
	buf_text(out, "\tacross_out = across;\n\talong_out = along;\n}\n\n");
}

static void print_table(struct buf *out, const struct int_table *table)
{
	bool is_wide = table->min < INT32_MIN || table->max > INT32_MAX;

	buf_printf(out, "static __device__ const %s %s[%llu] = {", is_wide ? "long long" : "int",
	           table->name, (unsigned long long)table->n);
	for (uint64_t i = 0; i < table->n; i++)
		buf_printf(out, "%s%lld%s,", i % 16 == 0 ? "\n\t" : " ", (long long)table->values[i],
		           is_wide ? "LL" : "");
	buf_text(out, "\n};\n");
}

void cuda_print_helpers(struct cuda_writer *writer, struct buf *out)
{
	size_t begin = out->n;

	for (int i = 0; i < N_CUDA_HELPERS; i++) {
		if (!writer->uses[i])
			continue;
		buf_text(out, helpers[i].text);
		if (strstr(helpers[i].text, "}\n"))
			buf_char(out, '\n');
	}
	if (writer->uses[HELPER_panel_order])
		print_panel_order(out);
	for (uint32_t i = 0; i < writer->tables.n; i++)
		print_table(out, writer->tables.p[i]);
	for (uint32_t i = 0; i < writer->accesses.n; i++) {
		if (writer->accesses.p[i].is_store)
			print_store_macro(out, &writer->accesses.p[i]);
		else
			print_load_macro(out, &writer->accesses.p[i]);
	}
	for (uint32_t i = 0; i < writer->reds.n; i++)
		cuda_print_red(out, &writer->reds.p[i]);
	print_cp_async(writer, out);
	print_matrix_macros(writer, out);
	if (out->n > begin)
		buf_char(out, '\n');
}
