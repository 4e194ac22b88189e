/* How element types are held in registers, in memory and while computing. */
#include "codegen/cuda/writer.h"

#include <stdarg.h>

void cuda_unsupported(struct cuda_writer *writer, const char *format, ...)
{
	char what[512];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	diag_report(&writer->cx->diags, DIAG_E0690, writer->span, "no CUDA form: %s", what);
	writer->failed = true;
}

int cuda_slots_per_word(struct dtype type)
{
	return type.bits == 16 ? 2 : type.bits == 8 ? 4 : 1;
}

enum cuda_word cuda_reg_word(struct dtype type)
{
	if (type.bits == 64)
		return type.kind == TYPE_FLOAT ? CUDA_WORD_F64 : CUDA_WORD_B64;
	return type.kind == TYPE_FLOAT && type.bits == 32 ? CUDA_WORD_F32 : CUDA_WORD_B32;
}

const char *cuda_reg_type(struct dtype type)
{
	if (type.bits == 64)
		return type.kind == TYPE_FLOAT ? "double"
		       : type.kind == TYPE_INT ? "long long"
		                               : "unsigned long long";
	if (type.bits == 32 && type.kind != TYPE_TFLOAT)
		return type.kind == TYPE_FLOAT ? "float" : type.kind == TYPE_INT ? "int" : "unsigned";
	return "unsigned";
}

int64_t cuda_reg_words(const struct wreg *reg)
{
	int per_word = cuda_slots_per_word(reg->type);

	return (reg->n_slots + per_word - 1) / per_word;
}

const char *cuda_tensor_type(struct cuda_writer *writer, struct dtype type)
{
	bool is_signed = type.kind == TYPE_INT;

	if (type.kind == TYPE_BFLOAT) {
		cuda_use(writer, HELPER_bf16);
		return "bf16";
	}
	if (type.kind == TYPE_FLOAT && type.bits == 16) {
		cuda_use(writer, HELPER_f16);
		return "f16";
	}
	switch (type.bits) {
	case 64:
		return cuda_reg_type(type);
	case 32:
		return type.kind == TYPE_TFLOAT ? "float" : cuda_reg_type(type);
	case 16:
		return is_signed ? "short" : "unsigned short";
	case 8:
		return type.kind == TYPE_BOOL ? "bool" : is_signed ? "signed char" : "unsigned char";
	}
	cuda_unsupported(writer, "elements of %d bits in global memory", type.bits);
	return "unsigned char";
}

const char *cuda_value_type(struct dtype type)
{
	if (type.kind == TYPE_BOOL)
		return "bool";
	if (dtype_is_float(type))
		return type.bits == 64 ? "double" : "float";
	if (type.bits == 64)
		return cuda_reg_type(type);
	return type.kind == TYPE_UINT ? "unsigned" : "int";
}
