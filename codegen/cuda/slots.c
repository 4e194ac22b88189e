/*
 * Slots of register arrays as C++: `x[4]` where a slot is an element, get16(x, 3) and set16(x, 3,
 * bits) where several share a word.
 */
#include "codegen/cuda/writer.h"

#include <assert.h>

void cuda_raw_slot(struct cuda_writer *writer, struct buf *out, const struct wreg *reg,
                   const struct expr *slot)
{
	int per_word = cuda_slots_per_word(reg->type);

	if (per_word == 1) {
		buf_printf(out, "%s[", cuda_reg_name(writer, reg));
		cuda_value(writer, out, slot, LEVEL_ANY);
		buf_char(out, ']');
		return;
	}
	cuda_use(writer, per_word == 2 ? HELPER_get16 : HELPER_get8);
	buf_printf(out, "%s(%s, ", per_word == 2 ? "get16" : "get8", cuda_reg_name(writer, reg));
	cuda_value(writer, out, slot, LEVEL_ANY);
	buf_char(out, ')');
}

/*
 * What turns a slot's bits into a value of its type, with its parenthesis; "" when nothing is
 * needed.
 */
static const char *unpacking(struct cuda_writer *writer, struct dtype type)
{
	if (type.bits < 8)
		cuda_unsupported(writer, "arithmetic on elements of %d bits", type.bits);
	if (type.kind == TYPE_FLOAT8_E4M3) {
		cuda_use(writer, HELPER_from_e4m3);
		return "from_e4m3(";
	}
	if (type.kind == TYPE_FLOAT8_E5M2) {
		cuda_use(writer, HELPER_from_f16);
		cuda_use(writer, HELPER_from_e5m2);
		return "from_e5m2(";
	}
	if (type.kind == TYPE_BFLOAT) {
		cuda_use(writer, HELPER_from_bf16);
		return "from_bf16(";
	}
	if (type.kind == TYPE_FLOAT && type.bits == 16) {
		cuda_use(writer, HELPER_from_f16);
		return "from_f16(";
	}
	if (type.kind == TYPE_TFLOAT)
		return "__uint_as_float(";
	if (type.kind == TYPE_BOOL)
		return "bool(";
	if (type.kind == TYPE_INT && type.bits < 32)
		return type.bits == 16 ? "short(" : "(signed char)(";
	return "";
}

void cuda_slot_value(struct cuda_writer *writer, struct buf *out, const struct wreg *reg,
                     const struct expr *slot)
{
	const char *open = unpacking(writer, reg->type);

	buf_text(out, open);
	cuda_raw_slot(writer, out, reg, slot);
	buf_text(out, *open ? ")" : "");
}

void cuda_unit_index(struct cuda_writer *writer, struct buf *out, const struct wregs *regs,
                     uint32_t unit_bits)
{
	int64_t per_unit = unit_bits / regs->reg->type.bits;
	const struct expr *slot = regs->slot;

	if (per_unit > 1) {
		if (expr_divisor(slot) % per_unit != 0)
			cuda_unsupported(writer, "%d-bit access to %s at a slot that is no multiple of %d",
			                 (int)unit_bits, cuda_reg_name(writer, regs->reg), (int)per_unit);
		slot = expr_div_int(writer->pool, slot, per_unit);
	}
	cuda_value(writer, out, slot, LEVEL_ANY);
}

/* The helper that gives a value's bits in the type. */
static const char *packing(struct cuda_writer *writer, struct dtype type)
{
	if (type.kind == TYPE_TFLOAT) {
		cuda_use(writer, HELPER_to_tf32);
		return "to_tf32";
	}
	if (type.kind == TYPE_BFLOAT) {
		cuda_use(writer, HELPER_to_bf16);
		return "to_bf16";
	}
	if (type.kind == TYPE_FLOAT) {
		cuda_use(writer, HELPER_to_f16);
		return "to_f16";
	}
	cuda_use(writer, HELPER_round_to_f8);
	cuda_use(writer, type.kind == TYPE_FLOAT8_E4M3 ? HELPER_to_e4m3 : HELPER_to_e5m2);
	return type.kind == TYPE_FLOAT8_E4M3 ? "to_e4m3" : "to_e5m2";
}

/* The bits of a value in a type of 16 or 8 bits, or of tf32; `value` is rounded only here. */
static void print_bits(struct cuda_writer *writer, struct buf *out, const struct expr *value,
                       struct dtype type)
{
	if (value->kind == EXPR_REG && dtype_equal(value->as.reg->type, type)) {
		cuda_raw_slot(writer, out, value->as.reg, value->args[0]);
		return;
	}
	if (!dtype_is_float(type)) {
		cuda_value(writer, out, value, LEVEL_ANY);
		return;
	}
	if (type.bits == 8 && value->kind == EXPR_FLOAT && value->as.number == 0.0) {
		buf_char(out, '0');
		return;
	}
	if (type.bits < 8) {
		cuda_unsupported(writer, "conversion to a float of %d bits", type.bits);
		return;
	}
	buf_printf(out, "%s(", packing(writer, type));
	if (dtype_equal(value->type, type))
		cuda_value_unrounded(writer, out, value);
	else
		cuda_value(writer, out, value, LEVEL_ANY);
	buf_char(out, ')');
}

void cuda_set_slot(struct cuda_writer *writer, struct buf *out, const struct wregs *regs,
                   const struct expr *value)
{
	struct dtype type = regs->reg->type;
	int per_word = cuda_slots_per_word(type);

	assert(value);
	if (per_word > 1) {
		cuda_use(writer, per_word == 2 ? HELPER_set16 : HELPER_set8);
		buf_printf(out, "%s(%s, ", per_word == 2 ? "set16" : "set8",
		           cuda_reg_name(writer, regs->reg));
		cuda_value(writer, out, regs->slot, LEVEL_ANY);
		buf_text(out, ", ");
		print_bits(writer, out, value, type);
		buf_text(out, ");");
		return;
	}
	cuda_raw_slot(writer, out, regs->reg, regs->slot);
	buf_text(out, " = ");
	if (type.kind == TYPE_TFLOAT)
		print_bits(writer, out, value, type);
	else
		cuda_value_as(writer, out, value, type);
	buf_char(out, ';');
}
