/* Machine instructions of shared-memory accesses. */
#include "profiler/sass.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- the cubin ---- */

/* The fields of ELF64 headers that are needed (System V ABI, ELF-64 object file format). */
enum {
	ELF_HEADER_BYTES = 64,
	ELF_SECTION_BYTES = 64,
	ELF_SECTIONS_AT = 0x28,     /* e_shoff, 8 bytes */
	ELF_SECTION_SIZE_AT = 0x3a, /* e_shentsize, 2 bytes */
	ELF_N_SECTIONS_AT = 0x3c,   /* e_shnum, 2 bytes */
	ELF_NAMES_AT = 0x3e,        /* e_shstrndx, 2 bytes */
	SECTION_NAME_AT = 0,        /* sh_name, 4 bytes */
	SECTION_OFFSET_AT = 0x18,   /* sh_offset, 8 bytes */
	SECTION_BYTES_AT = 0x20,    /* sh_size, 8 bytes */
};

/* A little-endian number; 0 outside the bytes. */
static uint64_t read_number(struct str bytes, uint64_t at, int n)
{
	uint64_t value = 0;

	if (at > bytes.n || bytes.n - at < (uint64_t)n)
		return 0;
	for (int i = n - 1; i >= 0; i--)
		value = value << 8 | (unsigned char)bytes.p[at + (uint64_t)i];
	return value;
}

/* The contents of section `index`; empty when they are not inside the file. */
static struct str section(struct str cubin, uint64_t index)
{
	uint64_t table = read_number(cubin, ELF_SECTIONS_AT, 8);
	uint64_t header = table + index * ELF_SECTION_BYTES;
	uint64_t at = read_number(cubin, header + SECTION_OFFSET_AT, 8),
			 n = read_number(cubin, header + SECTION_BYTES_AT, 8);

	if (table > cubin.n || at > cubin.n || n > cubin.n - at)
		return (struct str){ NULL, 0 };
	return (struct str){ cubin.p + at, (uint32_t)n };
}

/* Is the section's name ".text." followed by `function`? */
static bool is_text_of(struct str names, uint64_t name, const char *function)
{
	static const char prefix[] = ".text.";
	size_t n_prefix = sizeof(prefix) - 1, n = n_prefix + strlen(function) + 1;

	return name < names.n && names.n - name >= n && memcmp(names.p + name, prefix, n_prefix) == 0 &&
	       memcmp(names.p + name + n_prefix, function, n - n_prefix) == 0;
}

bool sass_find(struct str cubin, const char *function, uint64_t pc, struct sass_word *word)
{
	uint64_t table = read_number(cubin, ELF_SECTIONS_AT, 8);
	uint64_t n_sections = read_number(cubin, ELF_N_SECTIONS_AT, 2);
	struct str names;

	assert(function && word);
	if (cubin.n < ELF_HEADER_BYTES || memcmp(cubin.p, "\177ELF", 4) != 0 ||
	    read_number(cubin, ELF_SECTION_SIZE_AT, 2) != ELF_SECTION_BYTES)
		return false;
	names = section(cubin, read_number(cubin, ELF_NAMES_AT, 2));
	for (uint64_t i = 0; i < n_sections; i++) {
		uint64_t name = read_number(cubin, table + i * ELF_SECTION_BYTES + SECTION_NAME_AT, 4);
		struct str code;

		if (!is_text_of(names, name, function))
			continue;
		code = section(cubin, i);
		if (pc % 16 != 0 || pc > code.n || code.n - pc < 16)
			return false;
		*word = (struct sass_word){ read_number(code, pc, 8), read_number(code, pc + 8, 8) };
		return true;
	}
	return false;
}

/* ---- the instruction ---- */

/* The lowest nine bits: the operation without the form of its operands. */
enum {
	SASS_LDSM = 0x03b,
	SASS_STSM = 0x044,
	SASS_LDS = 0x184,
	SASS_STS = 0x188,
	SASS_ATOMS = 0x18c,
	SASS_ATOMS_CAS = 0x18d,
	SASS_LDGSTS = 0x1ae,
	SASS_HGMMA = 0x1f0, /* wgmma of 16-bit types and tf32; then integers and 8-bit floats */
	SASS_IGMMA = 0x1f1,
	SASS_QGMMA = 0x1f3,
};

/* Bits 73 to 75: unsigned and signed 8, unsigned and signed 16, 32, 64, 128 bits. */
static int width_bytes(uint64_t high)
{
	static const int bytes[8] = { 1, 1, 2, 2, 4, 8, 16, 0 };

	return bytes[high >> 9 & 7];
}

/* Of LDGSTS the field moved by one bit with sm_100. */
static int async_bytes(uint64_t high, int compute)
{
	return compute >= 100 ? 4 << (high >> 10 & 3) : width_bytes(high);
}

/* Bits 72 and 73: 1, 2 or 4 matrices; bit 78: transposed. */
static void matrix_name(char name[32], const char *stem, uint64_t high)
{
	snprintf(name, 32, "%s.x%d%s", stem, 1 << (high >> 8 & 3), high >> 14 & 1 ? ".trans" : "");
}

bool sass_access(struct sass_word word, int compute, char name[32])
{
	bool never = (word.low >> 12 & 15) == 15; /* the guard !PT */

	switch (word.low & 0x1ff) {
	case SASS_LDSM:
		matrix_name(name, "ldmatrix", word.high);
		break;
	case SASS_STSM:
		matrix_name(name, "stmatrix", word.high);
		break;
	case SASS_LDS:
		snprintf(name, 32, "ld.shared.%d", width_bytes(word.high));
		break;
	case SASS_STS:
		snprintf(name, 32, "st.shared.%d", width_bytes(word.high));
		break;
	case SASS_ATOMS:
	case SASS_ATOMS_CAS:
		snprintf(name, 32, "atom.shared.4");
		break;
	case SASS_LDGSTS:
		snprintf(name, 32, "cp.async.%d", async_bytes(word.high, compute));
		break;
	case SASS_HGMMA:
	case SASS_IGMMA:
	case SASS_QGMMA:
		snprintf(name, 32, "wgmma");
		break;
	default:
		return false;
	}
	return !never;
}
