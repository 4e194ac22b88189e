/* Identifiers of the CUDA text: the kernel's own names, unless C++ or a helper has them. */
#include "codegen/cuda/writer.h"

#include <ctype.h>
#include <string.h>

/* Words that a kernel's names must not be: C++, CUDA, and what the printed text uses itself. */
static const char *const reserved[] = {
	"alignas",      "alignof",     "and",
	"and_eq",       "asm",         "auto",
	"bitand",       "bitor",       "bool",
	"break",        "case",        "catch",
	"char",         "class",       "compl",
	"const",        "const_cast",  "constexpr",
	"continue",     "decltype",    "default",
	"delete",       "do",          "double",
	"dynamic_cast", "else",        "enum",
	"explicit",     "export",      "extern",
	"false",        "float",       "for",
	"friend",       "goto",        "if",
	"inline",       "int",         "int2",
	"int4",         "long",        "main",
	"mutable",      "namespace",   "new",
	"noexcept",     "not",         "not_eq",
	"nullptr",      "operator",    "or",
	"or_eq",        "private",     "protected",
	"public",       "register",    "reinterpret_cast",
	"return",       "short",       "signed",
	"sizeof",       "static",      "static_assert",
	"static_cast",  "struct",      "switch",
	"template",     "this",        "throw",
	"true",         "try",         "typedef",
	"typeid",       "typename",    "uint2",
	"uint4",        "union",       "unsigned",
	"using",        "virtual",     "void",
	"volatile",     "wchar_t",     "while",
	"xor",          "xor_eq",      "threadIdx",
	"blockIdx",     "blockDim",    "gridDim",
	"warpSize",     "min",         "max",
	"abs",          "shared_base", "shared_memory",
	"linux",        "unix",
#define MATH(name, arity, result, c) #name,
#include "analyzer/tile/math.def"
#undef MATH
#define HELPER(id, text) #id,
#include "codegen/cuda/helpers.def"
#undef HELPER
};

/* The macros for accesses are named by these. */
static bool is_macro_like(const char *name)
{
	static const char *const prefixes[] = { "ld_",       "st_",  "ldmatrix_",
		                                    "stmatrix_", "mma_", "cp_async_" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Letters, digits and single underscores; non-ASCII bytes become hexadecimal digits. */
static const char *identifier_like(struct arena *arena, const char *name)
{
	struct buf text = { 0 };
	const char *result;

	if (!*name || isdigit((unsigned char)*name) || strncmp(name, "__", 2) == 0)
		buf_char(&text, 'v');
	for (const char *c = name; *c; c++) {
		if (isascii((unsigned char)*c) && (isalnum((unsigned char)*c) || *c == '_'))
			buf_char(&text, *c);
		else if (isascii((unsigned char)*c))
			buf_char(&text, '_');
		else
			buf_printf(&text, "u%02x", (unsigned char)*c);
	}
	if (is_macro_like(buf_cstr(&text)))
		buf_char(&text, '_');
	result = arena_strndup(arena, buf_cstr(&text), text.n);
	buf_free(&text);
	return result;
}

static bool is_taken(const struct cuda_writer *writer, const char *name)
{
	const struct map_entry *entry = map_find(&writer->taken, intern_text(writer->cx->names, name));

	return entry && entry->value.number;
}

const char *cuda_take_name(struct cuda_writer *writer, const char *name)
{
	const char *base = identifier_like(writer->cx->arena, name);
	const char *candidate = base;

	for (int i = 1; is_taken(writer, candidate); i++)
		candidate = arena_printf(writer->cx->arena, "%s_%d", base, i);
	map_at(writer->cx->arena, &writer->taken, intern_text(writer->cx->names, candidate))
		->value.number = 1;
	return candidate;
}

void cuda_release_name(struct cuda_writer *writer, const char *name)
{
	map_at(writer->cx->arena, &writer->taken, intern_text(writer->cx->names, name))->value.number =
		0;
}

static void set_name(struct cuda_writer *writer, struct map *map, uint64_t id, sym_t name)
{
	const char *identifier = cuda_take_name(writer, sym_text(writer->cx->names, name));

	map_at(writer->cx->arena, map, id)->value.pointer =
		arena_strndup(writer->cx->arena, identifier, strlen(identifier));
}

void cuda_name_var(struct cuda_writer *writer, const struct var *var)
{
	set_name(writer, &writer->vars, var->id, var->name);
}

void cuda_name_program(struct cuda_writer *writer)
{
	const struct warp_program *program = writer->program;

	writer->taken = writer->vars = writer->regs = writer->shareds = writer->buffers =
		(struct map){ 0 };
	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++)
		map_at(writer->cx->arena, &writer->taken, intern_text(writer->cx->names, reserved[i]))
			->value.number = 1;
	cuda_take_name(writer, cuda_kernel_name(program));
	for (uint32_t i = 0; i < program->params.n; i++) {
		const struct wparam *param = &program->params.p[i];
		if (param->buffer)
			set_name(writer, &writer->buffers, param->buffer->id, param->buffer->name);
		else
			cuda_name_var(writer, param->scalar);
	}
	for (uint32_t i = 0; i < program->shareds.n; i++)
		set_name(writer, &writer->shareds, program->shareds.p[i]->id, program->shareds.p[i]->name);
	if (program->tid)
		cuda_name_var(writer, program->tid);
	for (int i = 0; i < 3; i++)
		if (program->block[i])
			cuda_name_var(writer, program->block[i]);
	for (uint32_t i = 0; i < program->regs.n; i++)
		set_name(writer, &writer->regs, program->regs.p[i]->id, program->regs.p[i]->name);
}

const char *cuda_var_name(const struct cuda_writer *writer, const struct var *var)
{
	const char *name = map_get(&writer->vars, var->id);

	return name ? name : sym_text(writer->cx->names, var->name);
}

const char *cuda_reg_name(const struct cuda_writer *writer, const struct wreg *reg)
{
	const char *name = map_get(&writer->regs, reg->id);

	return name ? name : sym_text(writer->cx->names, reg->name);
}

const char *cuda_kernel_name(const struct warp_program *program)
{
	struct arena *arena = program->cx->arena;
	const char *name = identifier_like(arena, sym_text(program->cx->names, program->name));

	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
		if (strcmp(reserved[i], name) != 0)
			continue;
		name = arena_printf(arena, "%s_kernel", name);
		break;
	}
	if (program->launch && program->launch->index > 0)
		return arena_printf(arena, "%s_%u", name, program->launch->index);
	return name;
}
