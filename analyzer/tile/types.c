/* Element types: their names, and the bits of their values. */
#include "analyzer/tile/types.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* One row a spelling; the first row of a type is the one that is printed. */
struct type_name {
	const char *text;
	uint8_t kind, bits;
};

static const struct type_name type_names[] = {
	{ "void", TYPE_VOID, 0 },
	{ "bool", TYPE_BOOL, 8 },
	{ "int4", TYPE_INT, 4 },
	{ "int8", TYPE_INT, 8 },
	{ "int16", TYPE_INT, 16 },
	{ "int32", TYPE_INT, 32 },
	{ "int64", TYPE_INT, 64 },
	{ "uint4", TYPE_UINT, 4 },
	{ "uint8", TYPE_UINT, 8 },
	{ "uint16", TYPE_UINT, 16 },
	{ "uint32", TYPE_UINT, 32 },
	{ "uint64", TYPE_UINT, 64 },
	{ "float16", TYPE_FLOAT, 16 },
	{ "float32", TYPE_FLOAT, 32 },
	{ "float64", TYPE_FLOAT, 64 },
	{ "bfloat16", TYPE_BFLOAT, 16 },
	{ "tfloat32", TYPE_TFLOAT, 32 },
	{ "float8_e4m3", TYPE_FLOAT8_E4M3, 8 },
	{ "float8_e5m2", TYPE_FLOAT8_E5M2, 8 },
	{ "float4_e2m1", TYPE_FLOAT4_E2M1, 4 },
	{ "handle", TYPE_HANDLE, 64 },
	{ "int", TYPE_INT, 32 },
	{ "uint", TYPE_UINT, 32 },
	{ "half", TYPE_FLOAT, 16 },
	{ "float", TYPE_FLOAT, 32 },
	{ "double", TYPE_FLOAT, 64 },
	{ "float8_e4m3fn", TYPE_FLOAT8_E4M3, 8 },
	{ "e4m3_float8", TYPE_FLOAT8_E4M3, 8 },
	{ "e5m2_float8", TYPE_FLOAT8_E5M2, 8 },
	{ "float4_e2m1fn", TYPE_FLOAT4_E2M1, 4 },
};

enum { N_TYPE_NAMES = sizeof(type_names) / sizeof(type_names[0]), MAX_LANES = 1024 };

bool dtype_equal(struct dtype a, struct dtype b)
{
	return a.kind == b.kind && a.bits == b.bits && a.lanes == b.lanes;
}

/* By the enum's order: all floating kinds stand together. */
bool dtype_is_float(struct dtype type)
{
	return type.kind >= TYPE_FLOAT && type.kind <= TYPE_FLOAT4_E2M1;
}

bool dtype_is_int(struct dtype type)
{
	return type.kind == TYPE_BOOL || type.kind == TYPE_INT || type.kind == TYPE_UINT;
}

/* Of all lanes. */
uint32_t dtype_bits(struct dtype type)
{
	return (uint32_t)type.bits * type.lanes;
}

/*
 * Splits "float32x4" into its element's spelling and lanes (1 when there is no suffix); false when
 * the suffix is no number of lanes.
 */
static bool split_lanes(struct str text, struct str *element, uint32_t *lanes)
{
	uint32_t at = text.n;
	*element = text;
	*lanes = 1;
	while (at > 0 && text.p[at - 1] >= '0' && text.p[at - 1] <= '9')
		at--;
	if (at == 0 || at == text.n || text.p[at - 1] != 'x')
		return true;
	if (text.p[at] == '0' || text.n - at > 4)
		return false;
	*lanes = 0;
	for (uint32_t i = at; i < text.n; i++)
		*lanes = *lanes * 10 + (uint32_t)(text.p[i] - '0');
	element->n = at - 1;
	return *lanes >= 2 && *lanes <= MAX_LANES;
}

/* The table is short, so a linear search does. */
bool dtype_parse(struct str text, struct dtype *type)
{
	struct str element;
	uint32_t lanes;
	if (!split_lanes(text, &element, &lanes))
		return false;
	for (int i = 0; i < N_TYPE_NAMES; i++) {
		if (str_is(element, type_names[i].text)) {
			*type = DTYPE(type_names[i].kind, type_names[i].bits);
			type->lanes = (uint16_t)lanes;
			return true;
		}
	}
	return false;
}

/* "?" for a type without a name, which only a bug makes. */
const char *dtype_name(struct dtype type, char text[32])
{
	const char *element = "?";
	for (int i = 0; i < N_TYPE_NAMES; i++) {
		if (type_names[i].kind == type.kind && type_names[i].bits == type.bits) {
			element = type_names[i].text;
			break;
		}
	}
	if (type.lanes > 1)
		snprintf(text, 32, "%sx%u", element, (unsigned)type.lanes);
	else
		snprintf(text, 32, "%s", element);
	return text;
}

/*
 * A binary floating-point format: sign, exponent, mantissa from the top. `max_code` is the largest
 * finite magnitude, `over_code` what larger magnitudes become, `nan_code` what NaN becomes.
 *
 * Sources: IEEE 754 (float16, float32); OCP 8-bit Floating Point Specification (E4M3, E5M2); OCP
 * Microscaling Formats (E2M1). PTX ISA, section cvt: conversions to the formats of 8 bits and less
 * always saturate (.satfinite), so larger values become the largest finite one, and NaN becomes
 * +6 in E2M1, which has no NaN.
 */
struct fp_format {
	int exponent_bits, mantissa_bits;
	uint64_t max_code, over_code, nan_code;
};

/* The codes are magnitudes, without the sign bit. */
static struct fp_format fp_format_of(struct dtype type)
{
	switch ((enum type_kind)type.kind) {
	case TYPE_FLOAT:
		if (type.bits == 16)
			return (struct fp_format){ 5, 10, 0x7bff, 0x7c00, 0x7e00 };
		return (struct fp_format){ 8, 23, 0x7f7fffff, 0x7f800000, 0x7fc00000 };
	case TYPE_BFLOAT:
		return (struct fp_format){ 8, 7, 0x7f7f, 0x7f80, 0x7fc0 };
	case TYPE_TFLOAT:
		return (struct fp_format){ 8, 10, 0x3fbff, 0x3fc00, 0x3fe00 };
	case TYPE_FLOAT8_E4M3:
		return (struct fp_format){ 4, 3, 0x7e, 0x7e, 0x7f };
	case TYPE_FLOAT8_E5M2:
		return (struct fp_format){ 5, 2, 0x7b, 0x7b, 0x7f };
	case TYPE_FLOAT4_E2M1:
		return (struct fp_format){ 2, 1, 0x7, 0x7, 0x7 };
	case TYPE_VOID:
	case TYPE_BOOL:
	case TYPE_INT:
	case TYPE_UINT:
	case TYPE_HANDLE:
		break;
	}
	assert(!"a floating type");
	return (struct fp_format){ 0, 0, 0, 0, 0 };
}

/* Magnitude scaled to units of the last place at its exponent, rounded to nearest even by
 * nearbyint. */
static uint64_t fp_encode(struct fp_format format, double value)
{
	int bias = (1 << (format.exponent_bits - 1)) - 1;
	uint64_t sign = signbit(value) ? 1ULL << (format.exponent_bits + format.mantissa_bits) : 0;
	double magnitude = fabs(value);
	if (isnan(value))
		return format.nan_code;
	if (isinf(value))
		return sign | format.over_code;
	if (magnitude == 0.0)
		return sign;
	int exponent;
	frexp(magnitude, &exponent);
	exponent--;
	if (exponent < 1 - bias)
		exponent = 1 - bias;
	if (exponent > bias + 1)
		return sign | format.over_code;
	/* A carry out of the mantissa moves into the exponent field by itself. */
	uint64_t units = (uint64_t)nearbyint(ldexp(magnitude, format.mantissa_bits - exponent));
	uint64_t code = ((uint64_t)(exponent + bias - 1) << format.mantissa_bits) + units;
	return sign | (code > format.max_code ? format.over_code : code);
}

/* Codes above the largest finite one are infinity (mantissa 0) and NaN. */
static double fp_decode(struct fp_format format, uint64_t bits)
{
	int width = format.exponent_bits + format.mantissa_bits;
	int bias = (1 << (format.exponent_bits - 1)) - 1;
	uint64_t code = bits & ((1ULL << width) - 1);
	uint64_t mantissa = code & ((1ULL << format.mantissa_bits) - 1);
	int exponent = (int)(code >> format.mantissa_bits);
	double value;
	if (code > format.max_code) {
		bool is_inf = mantissa == 0;
		value = is_inf ? (double)INFINITY : (double)NAN;
	} else if (exponent == 0) {
		value = ldexp((double)mantissa, 1 - bias - format.mantissa_bits);
	} else {
		mantissa |= 1ULL << format.mantissa_bits;
		value = ldexp((double)mantissa, exponent - bias - format.mantissa_bits);
	}
	return bits >> width & 1 ? -value : value;
}

/* Truncated towards zero, modulo 2^64; NaN and infinity give 0. */
static uint64_t wrap_double(double value)
{
	if (!isfinite(value))
		return 0;
	double rest = fmod(trunc(value), 18446744073709551616.0);
	return rest < 0 ? -(uint64_t)-rest : (uint64_t)rest;
}

/* The n low bits, n from 0 to 64 and more. */
static uint64_t low_bits(uint64_t bits, uint32_t n)
{
	return n >= 64 ? bits : bits & ((1ULL << n) - 1);
}

/* float32 and float64 as the host converts them, the others bit by bit. */
static uint64_t encode_float(struct dtype type, double value)
{
	uint64_t bits;
	float narrow;
	uint32_t word;
	assert(dtype_is_float(type));
	if (type.kind == TYPE_FLOAT && type.bits == 64) {
		memcpy(&bits, &value, sizeof(bits));
		return bits;
	}
	if (type.kind == TYPE_FLOAT && type.bits == 32 && !isnan(value)) {
		narrow = (float)value;
		memcpy(&word, &narrow, sizeof(word));
		return word;
	}
	bits = fp_encode(fp_format_of(type), value);
	return type.kind == TYPE_TFLOAT ? bits << 13 : bits;
}

/*
 * Integers wrap around, as a conversion to unsigned does in C; bool is whether the value is not 0.
 * One element, whatever the type's lanes.
 */
uint64_t dtype_encode(struct dtype type, double value)
{
	switch ((enum type_kind)type.kind) {
	case TYPE_VOID:
		return 0;
	case TYPE_BOOL:
		return value != 0.0;
	case TYPE_INT:
	case TYPE_UINT:
	case TYPE_HANDLE:
		return low_bits(wrap_double(value), type.bits);
	case TYPE_FLOAT:
	case TYPE_BFLOAT:
	case TYPE_TFLOAT:
	case TYPE_FLOAT8_E4M3:
	case TYPE_FLOAT8_E5M2:
	case TYPE_FLOAT4_E2M1:
		return encode_float(type, value);
	}
	return 0;
}

/*
 * float64 and float32 are the host's own formats (IEEE 754); the others have a few bits of
 * mantissa, which a double holds exactly.
 */
static double decode_float(struct dtype type, uint64_t bits)
{
	uint32_t word = (uint32_t)bits;
	double wide;
	float narrow;
	assert(dtype_is_float(type));
	if (type.kind == TYPE_FLOAT && type.bits == 64) {
		memcpy(&wide, &bits, sizeof(wide));
		return wide;
	}
	if (type.kind == TYPE_FLOAT && type.bits == 32) {
		memcpy(&narrow, &word, sizeof(narrow));
		return (double)narrow;
	}
	return fp_decode(fp_format_of(type), type.kind == TYPE_TFLOAT ? bits >> 13 : bits);
}

/* uint64 and int64 beyond 2^53 are rounded; dtype_decode_int keeps them. */
double dtype_decode(struct dtype type, uint64_t bits)
{
	switch ((enum type_kind)type.kind) {
	case TYPE_VOID:
		return 0.0;
	case TYPE_BOOL:
	case TYPE_INT:
		return (double)dtype_decode_int(type, bits);
	case TYPE_UINT:
	case TYPE_HANDLE:
		return (double)low_bits(bits, type.bits);
	case TYPE_FLOAT:
	case TYPE_BFLOAT:
	case TYPE_TFLOAT:
	case TYPE_FLOAT8_E4M3:
	case TYPE_FLOAT8_E5M2:
	case TYPE_FLOAT4_E2M1:
		return decode_float(type, bits);
	}
	return 0.0;
}

/*
 * An integer as a double; when it does not fit, rounded to odd, so that rounding it once more to a
 * narrower format gives what rounding the integer once would.
 */
static double int_to_double_odd(int64_t value)
{
	uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
	int shift = magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude) - 53;
	if (shift > 0) {
		uint64_t lost = magnitude & ((1ULL << shift) - 1);
		magnitude = (magnitude >> shift | (lost != 0)) << shift;
	}
	return value < 0 ? -(double)magnitude : (double)magnitude;
}

/* Rounds once, as the hardware's own conversion of an int64 does. */
uint64_t dtype_encode_int(struct dtype type, int64_t value)
{
	if (type.kind == TYPE_BOOL)
		return value != 0;
	if (!dtype_is_float(type))
		return low_bits((uint64_t)value, type.bits);
	bool is_wide = type.kind == TYPE_FLOAT && type.bits == 64;
	return encode_float(type, is_wide ? (double)value : int_to_double_odd(value));
}

/* Floats are truncated towards zero; what is narrower than 64 bits is extended by its sign. */
int64_t dtype_decode_int(struct dtype type, uint64_t bits)
{
	if (dtype_is_float(type))
		return (int64_t)wrap_double(decode_float(type, bits));
	if (type.kind == TYPE_BOOL)
		return (bits & 0xff) != 0;
	bits = low_bits(bits, type.bits);
	if (type.kind == TYPE_INT && type.bits < 64 && bits >> (type.bits - 1) & 1)
		bits |= ~0ULL << type.bits;
	return (int64_t)bits;
}

/* The value nearest to it that the type has. */
double dtype_round(struct dtype type, double value)
{
	return dtype_decode(type, dtype_encode(type, value));
}
