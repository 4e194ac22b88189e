/*
 * The conversions of the generated CUDA text, compiled for the host: every code of both formats,
 * and floats around every pair of neighbours. Expected values come from a search over all codes.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define __device__
#define __forceinline__ inline

static float __uint_as_float(unsigned bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static unsigned __float_as_uint(float x)
{
	unsigned bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static unsigned __float2uint_rn(float x)
{
	return (unsigned)lrintf(x);
}

static float from_f16(unsigned short bits)
{
	int exponent = bits >> 10 & 31, mantissa = bits & 1023;
	float x = exponent == 31 ? (mantissa ? NAN : INFINITY)
	          : exponent     ? ldexpf((float)(1024 + mantissa), exponent - 25)
	                         : ldexpf((float)mantissa, -24);

	return bits >> 15 ? -x : x;
}

#include "helpers.h"

struct format {
	unsigned (*to)(float x);
	float (*from)(unsigned bits);
	int mantissa, bias;
	unsigned largest;
};

/* A code's value by the definition of the format; codes above the largest are no numbers. */
static double value_of(const struct format *f, unsigned code)
{
	int exponent = (int)(code >> f->mantissa), mantissa = (int)code & ((1 << f->mantissa) - 1);

	return exponent ? ldexp((1 << f->mantissa) + mantissa, exponent - f->bias - f->mantissa)
	                : ldexp(mantissa, 1 - f->bias - f->mantissa);
}

/* The nearest code, of two equally near ones the even one. */
static unsigned nearest(const struct format *f, float x)
{
	unsigned best = 0;

	if (isnan(x))
		return 0x7f;
	for (unsigned code = 1; code <= f->largest; code++) {
		double is = fabs(value_of(f, code) - fabs((double)x)),
			   was = fabs(value_of(f, best) - fabs((double)x));
		if (is < was || (is == was && code % 2 == 0))
			best = code;
	}
	if (fabs((double)x) >= value_of(f, f->largest))
		best = f->largest;
	return best | (signbit(x) ? 0x80u : 0);
}

static int check(const struct format *f, float x)
{
	unsigned is = f->to(x), want = nearest(f, x);

	if (is != want)
		printf("%a: %02x, expected %02x\n", (double)x, is, want);
	return is != want;
}

static int check_format(const struct format *f)
{
	static const float special[] = { 0.0f,   -0.0f,   INFINITY, -INFINITY, NAN,
		                             1e-45f, -1e-45f, 1e-38f,   3.4e38f,   448.0f,
		                             464.0f, 463.9f,  57344.0f, 61440.0f,  65536.0f };
	uint64_t random = 1;
	int n_wrong = 0;

	for (unsigned code = 0; code <= f->largest; code++) {
		float low = f->from(code),
			  middle = (float)((value_of(f, code) + value_of(f, code + 1)) / 2);
		n_wrong += (double)low != value_of(f, code) || f->from(code | 0x80) != -low;
		n_wrong += check(f, low) + check(f, middle) + check(f, nextafterf(middle, 0.0f)) +
		           check(f, nextafterf(middle, INFINITY)) + check(f, -middle);
	}
	for (unsigned i = 0; i < sizeof(special) / sizeof(*special); i++)
		n_wrong += check(f, special[i]);
	for (int i = 0; i < 200000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		n_wrong += check(f, __uint_as_float((unsigned)(random >> 32)));
	}
	return n_wrong;
}

int main(void)
{
	struct format e4m3 = { to_e4m3, from_e4m3, 3, 7, 0x7e },
				  e5m2 = { to_e5m2, from_e5m2, 2, 15, 0x7b };
	int n_wrong = check_format(&e4m3) + check_format(&e5m2) + !isnan(from_e4m3(0x7f)) +
	              !isnan(from_e5m2(0x7f));

	printf("%d wrong\n", n_wrong);
	return n_wrong != 0;
}
