/*
 * writer: what the files of the CUDA printer share while one module is printed.
 *
 * Statements are printed first, into `body`; what they use of variables, helpers and tables is
 * collected and printed in front of them.
 */
#ifndef TL_CUDA_WRITER_H
#define TL_CUDA_WRITER_H

#include "codegen/cuda/cuda.h"
#include "codegen/lower/tensor_maps.h"

enum cuda_helper {
#define HELPER(id, text) HELPER_##id,
#include "codegen/cuda/helpers.def"
#undef HELPER
	N_CUDA_HELPERS
};

/* How a register array's elements are held: the asm constraint letter follows from it. */
enum cuda_word {
	CUDA_WORD_B32, /* unsigned or int: "r" */
	CUDA_WORD_F32, /* float: "f" */
	CUDA_WORD_B64, /* long long or unsigned long long: "l" */
	CUDA_WORD_F64, /* double: "d" */
	CUDA_WORD_B16, /* half a word of an array of packed words: "h" */
	CUDA_WORD_B8,  /* a quarter of one */
	N_CUDA_WORDS
};

/* A macro for one memory access. */
struct cuda_access {
	bool is_store, is_shared, is_predicated;
	bool is_constant; /* a load from a tensor that the kernel does not write */
	enum cuda_word word;
	int n_words;
};

/* A macro for one form of warpgroup instruction. */
struct cuda_wgmma {
	enum mma_shape shape; /* types and k */
	int n;
	bool a_in_registers;
};

/* An atomic operation that the text uses: its macro or function. */
struct cuda_red {
	enum atomic_kind kind;
	struct dtype type;
	int64_t n; /* elements */
	bool is_shared;
};

struct cuda_writer {
	struct cx *cx;
	struct expr_pool *pool;
	struct buf kernels; /* kernels printed so far */
	struct buf body;    /* statements of the kernel being printed */
	bool failed;        /* something was reported */
	bool uses[N_CUDA_HELPERS];
	vec_of(struct cuda_access) accesses;
	vec_of(struct cuda_red) reds;
	bool uses_cp_async[17][2]; /* by bytes; predicated */
	bool uses_ldmatrix[5][2];  /* by matrices; transposed */
	bool uses_stmatrix[5][2];
	bool uses_mma[N_MMA_SHAPES];
	vec_of(struct cuda_wgmma) wgmmas;
	vec_of(const struct int_table *) tables;

	/* Of the kernel being printed. */
	struct tensor_maps maps;
	vec_of(const char *) map_names;
	const struct warp_program *program;
	struct map taken;                        /* identifiers in use, by symbol */
	struct map vars, regs, shareds, buffers; /* identifiers, by id */
	struct map used_vars;                    /* ids of the variables that a statement reads */
	struct map written;                      /* ids of the tensors that the kernel writes */
	uint32_t depth;                          /* nesting of blocks */
	bool lines;                              /* a #line with the file's name was printed */
	struct span span;                        /* of the statement being printed */
};

/* ---- names.c ---- */

/* An identifier like `name` that is not in use yet; marks it. */
const char *cuda_take_name(struct cuda_writer *writer, const char *name);
void cuda_release_name(struct cuda_writer *writer, const char *name);
/* Takes names for everything that the whole kernel sees. */
void cuda_name_program(struct cuda_writer *writer);
void cuda_name_var(struct cuda_writer *writer, const struct var *var);
const char *cuda_var_name(const struct cuda_writer *writer, const struct var *var);
const char *cuda_reg_name(const struct cuda_writer *writer, const struct wreg *reg);

/* ---- types.c ---- */

/* Reports E0690 at the statement's span. */
void cuda_unsupported(struct cuda_writer *writer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Slots that share one 32-bit word: 1, 2 or 4. */
int cuda_slots_per_word(struct dtype type);
enum cuda_word cuda_reg_word(struct dtype type);
const char *cuda_reg_type(struct dtype type);   /* "unsigned" */
int64_t cuda_reg_words(const struct wreg *reg); /* length of the array */
const char *cuda_tensor_type(struct cuda_writer *writer,
                             struct dtype type); /* "f16": an element in global memory */
const char *cuda_value_type(struct dtype type);  /* "float": what arithmetic is done in */

/* ---- value.c ---- */

/* C's levels of precedence, loosest first. */
enum cuda_level {
	LEVEL_ANY,
	LEVEL_SELECT,
	LEVEL_OR,
	LEVEL_AND,
	LEVEL_BITOR,
	LEVEL_BITXOR,
	LEVEL_BITAND,
	LEVEL_EQUAL,
	LEVEL_ORDER,
	LEVEL_SHIFT,
	LEVEL_ADD,
	LEVEL_MUL,
	LEVEL_UNARY,
	LEVEL_PRIMARY
};

/* Prints an expression; in parentheses when its level is below `level`. */
void cuda_value(struct cuda_writer *writer, struct buf *out, const struct expr *e,
                enum cuda_level level);
/* An integer in 64 bits unless all of it provably fits 32. */
void cuda_index(struct cuda_writer *writer, struct buf *out, const struct expr *e,
                enum cuda_level level);
/* Without the outermost rounding to the expression's type, for a store that rounds anyway. */
void cuda_value_unrounded(struct cuda_writer *writer, struct buf *out, const struct expr *e);
/* For a variable of `type`: integers in 64 bits where the type has them. */
void cuda_value_as(struct cuda_writer *writer, struct buf *out, const struct expr *e,
                   struct dtype type);

/* ---- slots.c ---- */

/* A slot in arithmetic: `x[4]`, `from_f16(get16(x, 3))`. */
void cuda_slot_value(struct cuda_writer *writer, struct buf *out, const struct wreg *reg,
                     const struct expr *slot);
/*
 * The statement (no newline) that sets slot `slot` of `reg`, an index expression as text, to a
 * value that is converted.
 */
void cuda_set_slot(struct cuda_writer *writer, struct buf *out, const struct wregs *regs,
                   const struct expr *value);
/* The slot's bits or value for moving: `x[4]`, `get16(x, 3)`. */
void cuda_raw_slot(struct cuda_writer *writer, struct buf *out, const struct wreg *reg,
                   const struct expr *slot);
/*
 * The index of the element or word that holds `slot`; reports E0690 when the slots do not start on
 * a unit of `unit_bits`.
 */
void cuda_unit_index(struct cuda_writer *writer, struct buf *out, const struct wregs *regs,
                     uint32_t unit_bits);

/* ---- inst.c ---- */

void cuda_inst(struct cuda_writer *writer, const struct winst *inst);
/* `A_shared + ko % 3 * 16384 + tid * 16` or `&A[by * 128 + tid]`. */
void cuda_address(struct cuda_writer *writer, struct buf *out, const struct waddr *address);
/* The array element where the operand's slots begin: `&C_local[4 * i]`. */
void cuda_registers(struct cuda_writer *writer, struct buf *out, const struct wregs *regs);
/* The same for an operand that must be 32-bit words, as mma's tf32 ones. */
void cuda_words(struct cuda_writer *writer, struct buf *out, const struct wregs *regs);
/* `#line` for the statement that follows, when its kernel line is known. */
void cuda_line_directive(struct cuda_writer *writer);
/* An indented line of the body, after its #line. */
void cuda_line(struct cuda_writer *writer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- wgmma.c ---- */

void cuda_wgmma(struct cuda_writer *writer, const struct winst *inst);
void cuda_wgmma_fence(struct cuda_writer *writer, const struct wop_wgmma_fence *fence);
void cuda_wgmma_wait(struct cuda_writer *writer, const struct wop_wgmma_wait *wait);
/* One macro for each form that was used. */
void cuda_print_wgmma_macros(const struct cuda_writer *writer, struct buf *out);

/* ---- hopper.c ---- */

/* An instruction on an mbarrier, or a bulk copy. */
void cuda_hopper(struct cuda_writer *writer, const struct winst *inst);
/* The parameter that holds the tensor map. */
const char *cuda_map_name(struct cuda_writer *writer, uint32_t map);
/* What each of the kernel's tensor maps describes, as comments. */
void cuda_map_heading(struct cuda_writer *writer, struct buf *out);

/* ---- helpers.c ---- */

void cuda_use(struct cuda_writer *writer, enum cuda_helper helper);
void cuda_use_access(struct cuda_writer *writer, const struct cuda_access *access);
/* "ld_shared_v4_b32", "st_global_b16_if", "ld_constant_v2_f32". */
void cuda_access_name(struct buf *out, const struct cuda_access *access);
const char *cuda_mma_type(struct dtype type); /* PTX's name of a type in mma: "bf16", "tf32" */
/* "mma_m16n8k16_f32_f16" */
void cuda_mma_name(struct buf *out, enum mma_shape shape);
/* All that was used, dependences first. */
void cuda_print_helpers(struct cuda_writer *writer, struct buf *out);

/* ---- atomics.c ---- */

void cuda_use_red(struct cuda_writer *writer, const struct cuda_red *red);
/* "red_global_add_v4_f32", "red_shared_max_s32"; (address, x): x are the registers. */
void cuda_red_name(struct buf *out, const struct cuda_red *red);
void cuda_print_red(struct buf *out, const struct cuda_red *red);
/* "%0", "{%0, %1}"; `"r"((x)[0]), ...` */
void cuda_asm_operands(struct buf *out, int first, int n);
const char *cuda_asm_letter(enum cuda_word word); /* the asm constraint of a register */

#endif
