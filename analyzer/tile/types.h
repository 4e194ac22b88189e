/*
 * types: element types and their arithmetic on the host.
 *
 * Names as in TileLang: float16, bfloat16, tfloat32, float32, float64, float8_e4m3, float8_e5m2,
 * int4, int8..int64, uint8..uint64, bool. `lanes` > 1 is a short vector (float32x4).
 */
#ifndef TL_TILE_TYPES_H
#define TL_TILE_TYPES_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum type_kind {
	TYPE_VOID,
	TYPE_BOOL,
	TYPE_INT,
	TYPE_UINT,
	TYPE_FLOAT,       /* IEEE: 16, 32, 64 bits */
	TYPE_BFLOAT,      /* 16 bits */
	TYPE_TFLOAT,      /* tf32: stored in 32 bits, 10 bits of mantissa count */
	TYPE_FLOAT8_E4M3, /* finite only ("fn"), OCP FP8 */
	TYPE_FLOAT8_E5M2,
	TYPE_FLOAT4_E2M1,
	TYPE_HANDLE, /* pointers, barriers */
};

struct dtype {
	uint8_t kind; /* enum type_kind */
	uint8_t bits; /* of one lane; bool is stored in 8 */
	uint16_t lanes;
};

#define DTYPE(kind_, bits_) ((struct dtype){ (kind_), (bits_), 1 })
#define DTYPE_BOOL DTYPE(TYPE_BOOL, 8)
#define DTYPE_I32 DTYPE(TYPE_INT, 32)
#define DTYPE_I64 DTYPE(TYPE_INT, 64)
#define DTYPE_U32 DTYPE(TYPE_UINT, 32)
#define DTYPE_F16 DTYPE(TYPE_FLOAT, 16)
#define DTYPE_BF16 DTYPE(TYPE_BFLOAT, 16)
#define DTYPE_F32 DTYPE(TYPE_FLOAT, 32)
#define DTYPE_F64 DTYPE(TYPE_FLOAT, 64)

bool dtype_equal(struct dtype a, struct dtype b);
bool dtype_is_float(struct dtype type); /* any floating kind */
bool dtype_is_int(struct dtype type);   /* int, uint or bool */
/* Bits of all lanes together. */
uint32_t dtype_bits(struct dtype type);
/* TileLang's spelling; "float" and "half" are read as float32 and float16. False when unknown. */
bool dtype_parse(struct str text, struct dtype *type);
/* Writes the spelling ("float16", "float32x4") into `text`, which holds 32 bytes, and returns it.
 */
const char *dtype_name(struct dtype type, char text[32]);

/*
 * Storage of one element (of types of 8 bits and more) to and from a double: round to nearest even
 * for floats, truncation towards zero and wrap-around for integers (NaN and infinity give 0).
 * Formats of 8 bits and less saturate as the GPU's conversions do (PTX ISA, section cvt,
 * .satfinite): E4M3 to 448, E5M2 to 57344, E2M1 to 6; tfloat32 keeps 10 bits of mantissa.
 * Bits sit in the low end of the word. 64-bit integers go through the _int forms.
 */
uint64_t dtype_encode(struct dtype type, double value);
double dtype_decode(struct dtype type, uint64_t bits);
uint64_t dtype_encode_int(struct dtype type, int64_t value);
int64_t dtype_decode_int(struct dtype type, uint64_t bits);
/* The value that remains after storing it in `type`. */
double dtype_round(struct dtype type, double value);

#endif
