/*
 * tile: the tile program, what a kernel means before anybody decides where its elements live.
 *
 * A program has parameters (global buffers and scalars) and one or more launches; a launch has
 * a grid, threads, buffers and a body of statements. Statements and buffers have dense ids in
 * their program: later records (solution, schedule) are arrays indexed by them.
 */
#ifndef TL_TILE_TILE_H
#define TL_TILE_TILE_H

#include "analyzer/tile/expr.h"

enum scope {
	SCOPE_GLOBAL,
	SCOPE_SHARED,
	SCOPE_FRAGMENT, /* a tile spread over the threads' registers */
	SCOPE_LOCAL,    /* an array that every thread has for itself */
	SCOPE_VAR,      /* a mutable scalar of a thread (T.alloc_var) */
	N_SCOPES
};
const char *scope_text(enum scope scope); /* "global", "shared", "fragment", "local", "var" */

enum reduce_kind {
	REDUCE_SUM,
	REDUCE_MAX,
	REDUCE_MIN,
	REDUCE_ABSSUM,
	REDUCE_ABSMAX,
	REDUCE_BITAND,
	REDUCE_BITOR,
	REDUCE_BITXOR
};
const char *reduce_kind_text(enum reduce_kind kind);
/* The value of the type that changes nothing; of absmax and abssum 0. */
const struct expr *reduce_identity(struct expr_pool *pool, enum reduce_kind kind,
                                   struct dtype type);
/* The operator that combines two values, which are absolute already for absmax and abssum. */
enum binary_op reduce_operator(enum reduce_kind kind);

struct layout;

/* Places of a global buffer's elements: `n` numbers, row-major, as functions of the index. */
struct layout_map {
	uint32_t rank, n;
	const struct var *index[MAX_RANK];
	const struct expr *place[MAX_RANK];
};

struct buffer {
	sym_t name;
	uint32_t id;
	enum scope scope;
	struct dtype type;
	uint32_t rank;
	const struct expr *shape[MAX_RANK];   /* constants except in global buffers */
	const struct expr *strides[MAX_RANK]; /* global only, in elements; NULL: row-major */
	bool is_param;
	uint32_t launch;  /* index of the launch that allocates it; 0 for parameters */
	struct span span; /* of the name where it is allocated or declared */
	/* Where the kernel itself says that its elements live (T.annotate_layout); NULL: not said.
	   Offsets of shared memory in bytes. */
	const struct layout *annotation;
	const struct layout_map *map; /* the same for global memory, whose extents may be symbols */
	/* T.alloc_reducer: loops combine values into it, T.finalize_reducer makes it whole. */
	bool is_reducer;
	enum reduce_kind reducer;
	const struct buffer *alias_of; /* T.view, T.reshape: the buffer whose memory this is; or NULL */
	/* Whose layout decides where this one's elements lie (alias.h); NULL: its own. */
	const struct buffer *owner;
	const struct expr *outside; /* global: what a read past its ends gives; NULL: 0 */
	const struct expr *base; /* T.make_tensor: the address that it stands at; NULL: an argument */
};
/* Constant extent of dimension `dim`; -1 when it is symbolic. */
int64_t buffer_extent(const struct buffer *buffer, uint32_t dim);
/* Product of the extents; -1 when symbolic or over int64. */
int64_t buffer_n_elems(const struct buffer *buffer);

/*
 * The source of a staged copy whose elements do not form a box: the index of the element that goes
 * to position `vars` of the target's dimensions of extent > 1, in order.
 */
struct gather {
	uint32_t n_vars;
	const struct var *vars[MAX_RANK];
	const struct expr *index[MAX_RANK];
};

/* A box of a buffer: one min and one extent a dimension. Extents are constants in all tile ops. */
struct region {
	const struct buffer *buffer; /* NULL: absent operand */
	const struct expr *min[MAX_RANK];
	int64_t extent[MAX_RANK];
	const struct gather *gather; /* NULL: a box */
	struct span span;
};

enum gemm_policy { POLICY_SQUARE, POLICY_FULL_ROW, POLICY_FULL_COL, POLICY_BEST };
const char *gemm_policy_text(enum gemm_policy policy); /* "Square", "FullRow", "FullCol", "best" */

/* How a store combines with what is there, as one indivisible step; ATOMIC_STORE replaces it. */
enum atomic_kind {
	ATOMIC_NONE, /* an ordinary store */
	ATOMIC_ADD,
	ATOMIC_MAX,
	ATOMIC_MIN,
	ATOMIC_OR,
	ATOMIC_STORE,
};
const char *atomic_kind_text(enum atomic_kind kind); /* "", "add", "max", ... */

enum op_kind {
#define OP(id, name, doc, example) OP_##id,
#define REGION(id, field, role, doc)
#define EXPR(id, field, doc)
#define ATTR(id, field, doc)
#define END(id)
#include "analyzer/tile/ops.def"
#undef OP
#undef REGION
#undef EXPR
#undef ATTR
#undef END
	N_OP_KINDS
};

/* clang-format off */
#define OP(id, name, doc, example) struct op_##id {
#define REGION(id, field, role, doc) struct region field;
#define EXPR(id, field, doc) const struct expr *field;
#define ATTR(id, field, doc) int64_t field;
#define END(id) };
/* clang-format on */
#include "analyzer/tile/ops.def"
#undef OP
#undef REGION
#undef EXPR
#undef ATTR
#undef END

struct op {
	enum op_kind kind;
	union {
#define OP(id, name, doc, example) struct op_##id id;
#define REGION(id, field, role, doc)
#define EXPR(id, field, doc)
#define ATTR(id, field, doc)
#define END(id)
#include "analyzer/tile/ops.def"
#undef OP
#undef REGION
#undef EXPR
#undef ATTR
#undef END
	} as;
};

/*
 * T.gemm and T.wgmma_gemm have the same operands in the same order, so that `as.gemm` is either's
 * (C11 6.5.2.3, a common initial sequence). The second is done by warpgroup instructions only, and
 * the kernel waits for it.
 */
static inline bool op_is_gemm(const struct op *op)
{
	return op->kind == OP_gemm || op->kind == OP_wgmma_gemm;
}

/*
 * Ops that end at the tile program so far: it says what they mean, but neither the solver nor code
 * generation takes them. Both report DIAG_E0640 with the op's name.
 */
/* clang-format off */
#define CASES_OF_TILE_ONLY_OPS \
	case OP_evaluate
/* Arrivals and waits at mbarrier objects: they move no elements. */
#define CASES_OF_BARRIER_OPS \
	case OP_barrier_init: \
	case OP_barrier_arrive: \
	case OP_barrier_expect_tx: \
	case OP_barrier_wait
/* Ops that a staged launch has no more (stage.h): the solver and all behind it never see them. */
#define CASES_OF_STAGED_OPS \
	case OP_transpose: \
	case OP_im2col: \
	case OP_gemm_sp: \
	case OP_async_copy
/* clang-format on */

/* The table at run time. */
enum operand_role { ROLE_READ, ROLE_WRITE, ROLE_UPDATE, ROLE_EXPR, ROLE_ATTR };
struct operand_info {
	const char *name;
	enum operand_role role;
	size_t offset; /* into the op's struct, i.e. from &op->as */
	const char *doc;
};
struct op_info {
	const char *id;   /* "copy": the word of the printed form */
	const char *name; /* "T.copy" */
	const char *doc, *example;
	uint32_t n_operands;
	const struct operand_info *operands;
};
const struct op_info *op_info(enum op_kind kind);
/* What messages call the operation: "T.copy"; of an EVALUATE the function that it calls. */
const char *op_title(const struct cx *cx, const struct op *op);
/* Regions of an op by role; `index` counts the op's region operands. NULL past the end. */
struct region *op_region(struct op *op, uint32_t index, enum operand_role *role);

enum loop_kind { LOOP_SERIAL, LOOP_UNROLL, LOOP_PIPELINED, LOOP_PARALLEL, LOOP_VECTORIZED };
const char *loop_kind_text(enum loop_kind kind);

enum stmt_kind {
	STMT_OP,
	STMT_LOOP,
	STMT_IF,
	STMT_WHILE,
	STMT_LET,   /* var = value, once */
	STMT_STORE, /* buffer[index] = value: in parallel loops an element of a tile */
	STMT_SYNC,  /* T.sync_threads() */
	/* Of the loop around that is no T.Parallel. A staged launch has none (exits.h). */
	STMT_BREAK,
	STMT_CONTINUE,
};

struct stmt;
struct block {
	vec_of(struct stmt *) stmts;
};

/* A loop nest: T.Parallel has one variable a dimension, all other kinds exactly one. */
struct loop {
	enum loop_kind kind;
	uint32_t n_vars;
	const struct var *vars[MAX_RANK];
	const struct expr *extents[MAX_RANK]; /* trip counts; variables run from 0 */
	int64_t num_stages;                   /* pipelined: as written, 0 none */
	int64_t coalesced_width;              /* parallel: forced vector width, 0 none */
	struct block body;
};

struct stmt {
	enum stmt_kind kind;
	uint32_t id; /* dense in the program */
	struct span span;
	union {
		struct op op;
		struct loop loop;
		struct {
			const struct expr *condition;
			struct block then, otherwise; /* `otherwise` may be empty */
		} if_;
		struct {
			const struct expr *condition;
			struct block body;
		} while_;
		struct {
			const struct var *var;
			const struct expr *value;
		} let;
		struct {
			const struct buffer *buffer;
			const struct expr *index[MAX_RANK];
			const struct expr *value;
			enum atomic_kind atomic;
			bool is_bulk; /* of a tile's atomic with use_tma=True: TileLang reduces with TMA */
		} store;
	} as;
};

/* Order in which blocks are taken up, for L2 reuse (T.use_swizzle). */
struct rasterization {
	int64_t panel_size; /* 0: none */
	bool by_column;     /* order="col" */
	struct span span;
};

struct launch {
	uint32_t index;
	const struct expr *grid[3];  /* x, y, z extents, 1 when not written */
	int64_t threads[3];          /* as written */
	const struct var *block[3];  /* VAR_BLOCK */
	const struct var *thread[3]; /* VAR_THREAD */
	struct rasterization rasterization;
	bool is_implicit; /* the kernel opens no T.Kernel: its body runs once, in one thread */
	const struct launch *staged; /* the form that is solved, once tile_stage made it */
	struct block body;
	struct span span;
};
int64_t launch_n_threads(const struct launch *launch);

/* A value that fixed one of the kernel's host parameters. */
enum param_origin { PARAM_SET, PARAM_CALL, PARAM_DEFAULT, PARAM_TENSOR };
struct host_param {
	const char *name;
	const char *value_json; /* JSON text of the value; NULL while it is missing */
	enum param_origin origin;
	bool required;
	struct span span;
};

/*
 * A setting for TileLang's compiler: "tl.disable_tma_lower" and 1. Only --parity tilelang reads it.
 */
struct pass_config {
	sym_t name;
	int64_t value;
};

/* A T.any_of or T.all_of that the kernel wrote; its elements stand in the statements. Only --parity
 * tilelang reads it: TileLang scans addresses. */
struct element_scan {
	const char *name; /* "T.any_of" */
	struct region region;
};

struct tile_program {
	struct cx *cx;
	struct expr_pool *pool;
	sym_t name;    /* the kernel function */
	sym_t factory; /* the function around it; 0 when there is none */
	const char *path;
	struct span span;
	vec_of(struct host_param) host_params;
	vec_of(struct buffer *) params;     /* tensor arguments, in call order */
	vec_of(const struct var *) scalars; /* scalar arguments and symbols, in call order */
	vec_of(struct buffer *) buffers;    /* all, indexed by id; params included */
	vec_of(struct launch *) launches;
	vec_of(struct pass_config) pass_configs; /* that the file gives with the kernel */
	vec_of(struct element_scan) scans;
	uint32_t n_stmts;
};

struct tile_program *tile_new(struct cx *cx, struct expr_pool *pool);
struct buffer *tile_new_buffer(struct tile_program *program, enum scope scope, sym_t name,
                               struct dtype type, struct span span);
struct stmt *tile_new_stmt(struct tile_program *program, enum stmt_kind kind, struct span span);
struct region region_whole(struct expr_pool *pool, const struct buffer *buffer, struct span span);

/* Calls `visit` for every statement, outer ones first, in program order. */
void tile_walk(struct block *block, void (*visit)(void *user, struct stmt *stmt), void *user);

/* Ranks, shapes, types and scopes of every statement; false with diagnostics (E03..). */
bool tile_verify(struct tile_program *program);
/* The form of `emit --stage=tile`; tile_read gives the same program back. */
void tile_print(struct buf *out, const struct tile_program *program);
struct tile_program *tile_read(struct cx *cx, struct expr_pool *pool, uint32_t file);

#endif
