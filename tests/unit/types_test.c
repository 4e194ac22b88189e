/* Element types: names, and storage against independent conversions, exhaustively for 16 bits and
 * less. */
#include "analyzer/tile/types.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

static const struct dtype all_types[] = {
	{ TYPE_BOOL, 8, 1 },        { TYPE_INT, 4, 1 },         { TYPE_INT, 8, 1 },
	{ TYPE_INT, 16, 1 },        { TYPE_INT, 32, 1 },        { TYPE_INT, 64, 1 },
	{ TYPE_UINT, 4, 1 },        { TYPE_UINT, 8, 1 },        { TYPE_UINT, 16, 1 },
	{ TYPE_UINT, 32, 1 },       { TYPE_UINT, 64, 1 },       { TYPE_FLOAT, 16, 1 },
	{ TYPE_FLOAT, 32, 1 },      { TYPE_FLOAT, 64, 1 },      { TYPE_BFLOAT, 16, 1 },
	{ TYPE_TFLOAT, 32, 1 },     { TYPE_FLOAT8_E4M3, 8, 1 }, { TYPE_FLOAT8_E5M2, 8, 1 },
	{ TYPE_FLOAT4_E2M1, 4, 1 }, { TYPE_HANDLE, 64, 1 },     { TYPE_VOID, 0, 1 },
};

/*
 * Every type's name reads back as the type, alone and with lanes; other spellings are known; texts
 * that are nearly names are refused.
 */
static void test_names(struct check *check)
{
	struct dtype type;
	char text[32];
	for (size_t i = 0; i < sizeof(all_types) / sizeof(all_types[0]); i++) {
		struct dtype wide = all_types[i];
		CHECK(check, dtype_parse(str_of(dtype_name(wide, text)), &type));
		CHECK(check, dtype_equal(type, wide));
		wide.lanes = 4;
		CHECK(check, dtype_parse(str_of(dtype_name(wide, text)), &type));
		CHECK(check, dtype_equal(type, wide));
		CHECK_INT(check, dtype_bits(wide), 4 * all_types[i].bits);
	}
	CHECK_TEXT(check, dtype_name((struct dtype){ TYPE_FLOAT, 32, 4 }, text), "float32x4");
	CHECK(check, dtype_parse(str_of("half"), &type) && dtype_equal(type, DTYPE_F16));
	CHECK(check, dtype_parse(str_of("float"), &type) && dtype_equal(type, DTYPE_F32));
	static const char *const wrong[] = { "",          "float", "int33",      "float32x",
		                                 "float32x1", "x4",    "float32x04", "float32x9999",
		                                 "float32 ",  "4" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_INT(check, dtype_parse(str_of(wrong[i]), &type), i == 1);
	CHECK(check, dtype_is_float(DTYPE_BF16) && !dtype_is_float(DTYPE_I32));
	CHECK(check, dtype_is_int(DTYPE_BOOL) && !dtype_is_int(DTYPE_F16));
}

/* A format by its definition; `saturates`: too large values become the largest finite one. */
struct format {
	struct dtype type;
	int exponent_bits, mantissa_bits, shift;
	int n_finite; /* magnitudes 0 .. n_finite - 1 are finite */
	bool saturates;
};

static const struct format formats[] = {
	{ { TYPE_FLOAT, 16, 1 }, 5, 10, 0, 0x7c00, false },
	{ { TYPE_BFLOAT, 16, 1 }, 8, 7, 0, 0x7f80, false },
	{ { TYPE_TFLOAT, 32, 1 }, 8, 10, 13, 0x3fc00, false },
	{ { TYPE_FLOAT8_E4M3, 8, 1 }, 4, 3, 0, 0x7f, true },
	{ { TYPE_FLOAT8_E5M2, 8, 1 }, 5, 2, 0, 0x7c, true },
	{ { TYPE_FLOAT4_E2M1, 4, 1 }, 2, 1, 0, 8, true },
};

/* The value of a magnitude, by repeated doubling and halving. */
static double magnitude_value(const struct format *format, int code)
{
	int fraction = code & ((1 << format->mantissa_bits) - 1);
	int exponent = code >> format->mantissa_bits;
	double value = fraction;
	int power = 1 - ((1 << (format->exponent_bits - 1)) - 1) - format->mantissa_bits;
	if (exponent > 0) {
		value += 1 << format->mantissa_bits;
		power += exponent - 1;
	}
	for (; power > 0; power--)
		value *= 2;
	for (; power < 0; power++)
		value /= 2;
	return value;
}

/* The code of a magnitude and a sign in the type's bits. */
static uint64_t bits_of(const struct format *format, int magnitude, bool negative)
{
	int width = format->exponent_bits + format->mantissa_bits;
	return ((uint64_t)magnitude | (uint64_t)negative << width) << format->shift;
}

/* The value is stored as that magnitude, and its negative as the same with the sign. */
static bool stores_as(const struct format *format, double value, int magnitude)
{
	bool ok = dtype_encode(format->type, value) == bits_of(format, magnitude, false) &&
	          dtype_encode(format->type, -value) == bits_of(format, magnitude, true);
	if (!ok)
		printf("%a gives %llx, not magnitude %x\n", value,
		       (unsigned long long)dtype_encode(format->type, value), magnitude);
	return ok;
}

/* Every value, the midpoint above it (to the even neighbour), and the doubles beside the midpoint.
 */
static void test_format(struct check *check, const struct format *format)
{
	for (int code = 0; code < format->n_finite; code++) {
		double value = magnitude_value(format, code);
		double above = magnitude_value(format, code + 1);
		double middle = (value + above) / 2;
		int next = code + 1;
		if (next == format->n_finite && format->saturates)
			next = code;
		bool decodes = dtype_decode(format->type, bits_of(format, code, false)) == value &&
		               dtype_decode(format->type, bits_of(format, code, true)) == -value;
		CHECK(check, decodes);
		CHECK(check, stores_as(format, value, code));
		CHECK(check, stores_as(format, middle, code % 2 ? next : code));
		CHECK(check, stores_as(format, nextafter(middle, 0), code));
		CHECK(check, stores_as(format, nextafter(middle, INFINITY), next));
	}
}

/*
 * Infinity, values far out of range and NaN, for formats with and without them (PTX ISA, cvt:
 * .satfinite); and a few codes by their definition.
 */
static void test_special(struct check *check)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const struct format *format = &formats[i];
		int huge = format->saturates ? format->n_finite - 1 : format->n_finite;
		CHECK(check, stores_as(format, (double)INFINITY, huge));
		CHECK(check, stores_as(format, 1e300, huge));
		CHECK(check, stores_as(format, 5e-324, 0));
		double stored = dtype_round(format->type, (double)NAN);
		CHECK(check, format->type.kind == TYPE_FLOAT4_E2M1 ? stored == 6.0 : isnan(stored));
	}
	CHECK(check, isinf(dtype_decode(DTYPE_F16, 0x7c00)));
	CHECK(check, dtype_decode(DTYPE_F16, 0xfc00) < 0);
	CHECK(check, isnan(dtype_decode(DTYPE_F16, 0x7c01)));
	CHECK(check, isinf(dtype_decode(DTYPE(TYPE_FLOAT8_E5M2, 8), 0x7c)));
	CHECK(check, isnan(dtype_decode(DTYPE(TYPE_FLOAT8_E4M3, 8), 0xff)));
	CHECK(check, dtype_round(DTYPE(TYPE_FLOAT8_E4M3, 8), 460.0) == 448.0);
	CHECK(check, dtype_round(DTYPE(TYPE_FLOAT8_E5M2, 8), -1e6) == -57344.0);
	CHECK(check, dtype_round(DTYPE_F32, 1e300) == (double)INFINITY);
	CHECK(check, dtype_round(DTYPE_F32, 0.1) == (double)0.1f);
	CHECK(check, dtype_round(DTYPE_F64, 0.1) == 0.1);
	/* the low 13 bits of a tfloat32 do not count */
	CHECK(check, dtype_decode(DTYPE(TYPE_TFLOAT, 32), 0x3f801fff) == 1.0);
}

#ifdef __FLT16_MANT_DIG__
__extension__ typedef _Float16 half_t;

/* The compiler's own float16, over all halves and a sample of doubles. */
static void test_half(struct check *check)
{
	uint64_t state = 1;
	for (uint32_t bits = 0; bits < 65536; bits++) {
		uint16_t word = (uint16_t)bits, again;
		half_t half;
		memcpy(&half, &word, sizeof(half));
		double value = dtype_decode(DTYPE_F16, bits);
		CHECK(check, isnan(value) ? half != half : value == (double)half);
		if (!isnan(value))
			CHECK(check, dtype_encode(DTYPE_F16, value) == bits);
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		double sample = ldexp((double)(state >> 11), (int)(state % 50) - 90);
		half = (half_t)sample;
		memcpy(&again, &half, sizeof(again));
		CHECK_INT(check, dtype_encode(DTYPE_F16, sample), again);
	}
}
#else
static void test_half(struct check *check)
{
	CHECK(check, dtype_decode(DTYPE_F16, 0x3c00) == 1.0);
}
#endif

/* Against C's own conversions of the compiler that builds the test; four bits by hand. */
static void test_integers(struct check *check)
{
	struct dtype i8 = DTYPE(TYPE_INT, 8), u8 = DTYPE(TYPE_UINT, 8), i4 = DTYPE(TYPE_INT, 4);
	for (int value = -1000; value <= 1000; value++) {
		CHECK_INT(check, dtype_decode_int(i8, dtype_encode_int(i8, value)), (int8_t)value);
		CHECK_INT(check, dtype_decode_int(u8, dtype_encode_int(u8, value)), (uint8_t)value);
		CHECK(check, dtype_round(i8, value + (value < 0 ? -0.75 : 0.75)) == (int8_t)value);
		int low = value & 15;
		CHECK_INT(check, dtype_decode_int(i4, dtype_encode_int(i4, value)),
		          low >= 8 ? low - 16 : low);
	}
	CHECK_INT(check, dtype_decode_int(DTYPE_I64, dtype_encode_int(DTYPE_I64, INT64_MIN)),
	          INT64_MIN);
	CHECK(check, dtype_encode_int(DTYPE_I32, -1) == 0xffffffff);
	CHECK(check, dtype_encode(DTYPE_U32, -1.0) == 0xffffffff);
	CHECK(check,
	      dtype_encode(DTYPE(TYPE_UINT, 64), 1.8446744073709550e19) == 18446744073709549568ULL);
	CHECK(check, dtype_encode(DTYPE_I32, 4294967296.0 * 4 + 7) == 7);
	CHECK(check, dtype_encode(DTYPE_I32, (double)NAN) == 0);
	CHECK(check, dtype_encode(DTYPE_BOOL, 0.25) == 1 && dtype_encode(DTYPE_BOOL, -0.0) == 0);
	CHECK(check, dtype_decode(DTYPE_U32, 0xffffffff) == 4294967295.0);
	CHECK(check, dtype_decode(DTYPE_I32, 0xffffffff) == -1.0);
}

/* Integers into floats round once: this one would go up when rounded to double first. */
static void test_int_to_float(struct check *check)
{
	int64_t value = (1LL << 60) + (1LL << 36) + 1;
	float want = (float)value;
	uint32_t bits;
	memcpy(&bits, &want, sizeof(bits));
	CHECK_INT(check, dtype_encode_int(DTYPE_F32, value), bits);
	CHECK_INT(check, dtype_encode_int(DTYPE_F32, -value), bits | 0x80000000);
	CHECK_INT(check, dtype_decode_int(DTYPE_F32, dtype_encode_int(DTYPE_F32, 12345)), 12345);
	CHECK_INT(check, dtype_decode_int(DTYPE_F64, dtype_encode_int(DTYPE_F64, -3)), -3);
	CHECK_INT(check, dtype_encode_int(DTYPE_F16, 1), 0x3c00);
}

int main(void)
{
	struct check check = { 0 };
	test_names(&check);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		test_format(&check, &formats[i]);
	test_special(&check);
	test_half(&check);
	test_integers(&check);
	test_int_to_float(&check);
	return check_end(&check);
}
