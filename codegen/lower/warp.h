/*
 * warp: the warp program, the one form that the CUDA printer, the CPU simulator and the bank table
 * read.
 *
 * It is the program of one thread: parameters in global memory, one block of shared memory with
 * named pieces, register arrays, and a tree of loops, ifs and instructions. What is printed,
 * simulated and predicted are the same accesses. Every instruction carries the span of the kernel
 * line that it came from and, for memory, the buffer.
 *
 * Variables: the block variables (VAR_BLOCK, axis 0..2), the flat thread number `tid` (VAR_THREAD,
 * axis 3), loop variables, symbols and scalar parameters. Threads beyond those written do not
 * exist yet.
 *
 * Register arrays hold elements of their type; slots are numbered from 0. 16- and 8-bit elements
 * are packed: consecutive slots share a 32-bit register, lowest slot in the low bits, so mma and
 * ldmatrix operands are ranges of slots that start on a 32-bit boundary. Slot expressions of
 * operands must become constants when all unrolled loops around are unrolled (the verifier checks
 * it).
 *
 * Addresses: shared in bytes from the piece's start (version included in the expression), global
 * in elements of the parameter's type from its start.
 *
 * Text form (warp_print, warp_read; docs/warp.md), one instruction a line, `@line` the kernel's
 * line:
 *     warp matmul_relu threads 128 grid (8, 8, 1) block (bx, by, bz) thread tid
 *     source "gemm_relu.py"
 *     shared_bytes 49152
 *     param A float16 (1024, 1024) @12
 *     shared A_shared float16 at 0 align 128 versions 3 x 16384 bytes @20
 *     reg C_local float32 [128] @22
 *
 *     for ko in 16: @27
 *         # load stage ko + 2
 *         cp.async A_shared[ko % 3 * 16384 + tid * 16] <- A[...] bytes=16 if by < 8 @28
 */
#ifndef TL_LOWER_WARP_H
#define TL_LOWER_WARP_H

#include "analyzer/layout/wgmma.h"
#include "analyzer/tile/tile.h"

enum mma_shape {
/* name, m, n, k, type of A and B, type of D */
#define MMA_SHAPE(id, text, m, n, k, ab, d) MMA_##id,
#include "codegen/lower/mma_shapes.def"
#undef MMA_SHAPE
	N_MMA_SHAPES
};
struct mma_shape_info {
	const char *text; /* "m16n8k16.f32.f16" */
	int m, n, k;
	struct dtype ab, d;
	int a_slots, b_slots, d_slots; /* elements a thread */
};
const struct mma_shape_info *mma_shape_info(enum mma_shape shape);

/* A per-thread register array. */
struct wreg {
	sym_t name;
	uint32_t id;
	struct dtype type;
	int64_t n_slots;
	bool is_uniform;             /* all threads of the block hold the same values */
	bool is_local;               /* slots are chosen at run time: local memory, no registers */
	const struct buffer *buffer; /* the fragment, local or scalar it holds; NULL for temporaries */
	struct span span;
};

/* A piece of the block's shared memory. */
struct wshared {
	sym_t name;
	uint32_t id;
	struct dtype type;
	int64_t offset_bytes;  /* of version 0; a multiple of `align_bytes` */
	int64_t version_bytes; /* distance between versions */
	int64_t n_versions;
	int64_t align_bytes;
	const struct buffer *buffer; /* NULL: a workspace of ours (reductions, conversions) */
	struct span span;
};

struct wparam {
	const struct buffer *buffer; /* NULL: scalar */
	const struct var *scalar;
};

enum wspace { WSPACE_SHARED, WSPACE_GLOBAL };

struct waddr {
	enum wspace space;
	const struct wshared *shared; /* WSPACE_SHARED */
	const struct buffer *global;  /* WSPACE_GLOBAL: a parameter */
	const struct expr *offset;    /* bytes (shared), elements (global); per thread */
};

struct wregs {
	const struct wreg *reg;
	const struct expr *slot; /* first slot */
	int64_t n;               /* slots */
};

enum wop_kind {
#define WOP(id, text, doc) WOP_##id,
#define ADDR(id, field, space, role)
#define REGS(id, field, role)
#define VALUE(id, field)
#define NUM(id, field)
#define WEND(id)
#include "codegen/lower/wops.def"
#undef WOP
#undef ADDR
#undef REGS
#undef VALUE
#undef NUM
#undef WEND
	N_WOP_KINDS
};

/* C needs a member, so every operand struct starts with one that is not used. */
#define WOP(id, text, doc) \
	struct wop_##id { \
		char unused_;
#define ADDR(id, field, space, role) struct waddr field;
#define REGS(id, field, role) struct wregs field;
#define VALUE(id, field) const struct expr *field;
#define NUM(id, field) int64_t field;
#define WEND(id) \
	} \
	;
#include "codegen/lower/wops.def"
#undef WOP
#undef ADDR
#undef REGS
#undef VALUE
#undef NUM
#undef WEND

enum wnode_kind { WNODE_INST, WNODE_LOOP, WNODE_IF, WNODE_WHILE };

struct wnode;
struct wblock {
	vec_of(struct wnode *) nodes;
};

struct winst {
	enum wop_kind kind;
	const struct expr *predicate; /* NULL: all threads that get here */
	union {
#define WOP(id, text, doc) struct wop_##id id;
#define ADDR(id, field, space, role)
#define REGS(id, field, role)
#define VALUE(id, field)
#define NUM(id, field)
#define WEND(id)
#include "codegen/lower/wops.def"
#undef WOP
#undef ADDR
#undef REGS
#undef VALUE
#undef NUM
#undef WEND
	} as;
};

struct wnode {
	enum wnode_kind kind;
	uint32_t id; /* dense in the program */
	struct span span;
	const char *comment; /* a heading in the printed CUDA ("load stage ko + 2"); may be NULL */
	union {
		struct winst inst;
		struct {
			const struct var *var; /* from 0 */
			const struct expr *extent;
			bool unroll;
			struct wblock body;
		} loop;
		struct {
			const struct expr *condition; /* may differ between threads; no barrier inside then */
			struct wblock then, otherwise;
		} if_;
		struct {
			const struct expr *condition;
			struct wblock body;
		} while_;
	} as;
};

struct warp_program {
	struct cx *cx;
	struct expr_pool *pool;
	sym_t name;
	const struct tile_program *tile; /* NULL when read from text */
	const struct launch *launch;     /* NULL when read from text */
	int64_t n_threads;
	const struct expr *grid[3];
	const struct var *block[3];
	const struct var *tid;
	/* block order; block variables are those after it is applied */
	struct rasterization rasterization;
	vec_of(struct wparam) params;
	vec_of(struct wshared *) shareds;
	int64_t shared_bytes; /* of the whole block */
	vec_of(struct wreg *) regs;
	struct wblock body;
	uint32_t n_nodes;
};

struct warp_program *warp_new(struct cx *cx, struct expr_pool *pool, sym_t name);
/*
 * Sets threads and grid (extents 1 where NULL), makes `tid`, and block variables bx, by, bz where
 * program->block holds none yet, with the ranges that follow. Give the tile program's block
 * variables before, when their expressions are taken over.
 */
void warp_set_launch(struct warp_program *program, int64_t n_threads,
                     const struct expr *const *grid);
/* The same with names for bx, by, bz and tid. */
void warp_set_launch_named(struct warp_program *program, int64_t n_threads,
                           const struct expr *const *grid, const sym_t names[4]);
/* A name that is taken already gets a suffix (_1, _2, ...), so that texts can be read back. */
struct wreg *warp_new_reg(struct warp_program *program, sym_t name, struct dtype type,
                          int64_t n_slots);
struct wshared *warp_new_shared(struct warp_program *program, sym_t name, struct dtype type);
/* Appends to `block`; the caller fills the node's fields. */
struct wnode *warp_add_inst(struct warp_program *program, struct wblock *block, enum wop_kind kind,
                            struct span span);
/* Heading of a loop: its variable's wanted name, trip count, whether it is unrolled. */
struct wloop_head {
	const char *name;
	const struct expr *extent;
	bool unroll;
	struct span span;
};
struct wnode *warp_add_loop(struct warp_program *program, struct wblock *block,
                            struct wloop_head head);
struct wnode *warp_add_if(struct warp_program *program, struct wblock *block,
                          const struct expr *condition, struct span span);
struct wnode *warp_add_while(struct warp_program *program, struct wblock *block,
                             const struct expr *condition, struct span span);

/* The table at run time, as for tile ops. */
enum wrole {
	WROLE_ADDR_READ,
	WROLE_ADDR_WRITE,
	WROLE_ADDR_UPDATE,
	WROLE_REGS_READ,
	WROLE_REGS_WRITE,
	WROLE_REGS_UPDATE,
	WROLE_VALUE,
	WROLE_NUM
};
enum wspaces { WSPACES_SHARED, WSPACES_GLOBAL, WSPACES_ANY };
struct woperand_info {
	const char *name;
	enum wrole role;
	enum wspaces spaces; /* address operands: where they may point */
	size_t offset;       /* from &inst->as */
};
struct wop_info {
	const char *text, *doc;
	uint32_t n_operands;
	const struct woperand_info *operands;
};
const struct wop_info *wop_info(enum wop_kind kind);
bool wop_find(struct str text, enum wop_kind *kind); /* by mnemonic */
bool wop_is_shuffle(enum wop_kind kind);
/* Does it work on an mbarrier object, its first address in shared memory but for a bulk copy? */
bool wop_is_mbarrier(enum wop_kind kind);
/* Order of operands in the text form: what is written, what is read (values too), numbers. */
enum wgroup { WGROUP_WRITTEN, WGROUP_READ, WGROUP_NUM, N_WGROUPS };
enum wgroup wrole_group(enum wrole role);
uint32_t wop_count(const struct wop_info *info, enum wgroup group); /* operands of the group */
/* An operand of an instruction by its table row; the role says which member is the one. */
union woperand {
	const struct waddr *addr;
	const struct wregs *regs;
	const struct expr *value;
	int64_t num;
};
union woperand winst_operand(const struct winst *inst, const struct woperand_info *info);
/*
 * The first operand that is an address in shared memory, or NULL; `is_write` is set for WRITE and
 * UPDATE.
 */
const struct waddr *winst_shared_addr(const struct winst *inst, bool *is_write);
/* The `which`-th of them, from 0; NULL behind the last. */
const struct waddr *winst_shared_nth(const struct winst *inst, uint32_t which, bool *is_write);
/* A warpgroup instruction of either form; false for all others. */
struct winst_wgmma {
	const struct wregs *d, *a_regs; /* a_regs NULL: A is in shared memory */
	const struct waddr *a, *b;      /* a NULL: A is in registers */
	enum mma_shape shape;
	int64_t n;
	struct wgmma_matrix a_matrix, b_matrix;
};
bool winst_wgmma(const struct winst *inst, struct winst_wgmma *out);
/*
 * Does a `red` on shared memory take the wavefronts of BANK_ATOMIC? Only what the memory unit does
 * by itself, on 32-bit integers; other types are loops whose length depends on the data.
 */
bool wred_is_counted(const struct wop_red *red);
/* Bytes of shared memory that the address may reach: of all versions. */
int64_t wshared_bytes(const struct wshared *shared);
/*
 * Registers that a thread will need, an estimate: 32-bit registers of all register arrays of the
 * program (slots x bits / 32, each array rounded up) plus WARP_TEMPORARIES for addresses,
 * predicates and loop counters. The assembler may use fewer where arrays do not live at the same
 * time.
 */
enum { WARP_TEMPORARIES = 24 };
int64_t warp_registers_estimate(const struct warp_program *program);

/*
 * Types, slot ranges, alignment of every constant part, constant slots under unrolling, barriers
 * outside thread-dependent ifs, commit/wait pairing. False with diagnostics (E06..).
 */
bool warp_verify(struct warp_program *program);
void warp_print(struct buf *out, const struct warp_program *program);
/* Reads warp_print's text; warp_print of the result gives the same text. NULL with diagnostics. */
struct warp_program *warp_read(struct cx *cx, struct expr_pool *pool, uint32_t file);

#endif
