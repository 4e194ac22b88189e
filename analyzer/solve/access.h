/*
 * access: which memory accesses an op makes, as a function of layouts, instruction and partition.
 *
 * This is the only place that knows. The solver costs candidates with it, the lowering emits from
 * it, and so the simulator and the bank table see the same addresses.
 *
 * An access is one instruction inside a nest of unrolled iterations. Its offset is an expression of
 * `tid` (flat thread number) and the iteration variables.
 */
#ifndef TL_SOLVE_ACCESS_H
#define TL_SOLVE_ACCESS_H

#include "analyzer/banks/banks.h"
#include "analyzer/layout/wgmma.h"
#include "analyzer/solve/solve.h"

enum { MAX_ITERS = 7 };

/* An unrolled iteration around an access. */
struct access_iter {
	const struct var *var;
	int64_t extent;
	uint32_t position; /* nesting level, 0 outermost */
};

struct access {
	enum bank_op op;
	int64_t bytes; /* a lane; 16 for the matrix ops */
	int64_t n_matrices;
	bool trans;
	bool is_one;  /* loads of loops: one element for all places of a vector, loaded once */
	bool is_rest; /* gemm operands: of the last k step, which K fills only partly */
	const struct buffer *buffer;
	const struct expr *offset; /* bytes in version 0 (shared), elements (global) */
	const struct expr
		*slot; /* first register slot that it fills or empties (of a fragment or a temporary) */
	const struct expr *guard;   /* the place holds an element; NULL: always */
	const struct expr *replica; /* stores: the first of several replicas; NULL: all threads */
	uint32_t n_iters;
	struct access_iter iters[MAX_ITERS]; /* outermost first */
};

/* Slots that are consecutive along one dimension, from slot 0: a power of two up to 16. */
int64_t solve_vector_elems(const struct layout *layout);

/* The variables that accesses are written in, made once a launch. */
struct access_space {
	struct expr_pool *pool;
	struct cx *cx;
	const struct var *tid; /* VAR_THREAD, axis 3, 0 .. n_threads-1 */
	int64_t n_threads;
	vec_of(struct access_iter)
		iters; /* iteration variables made so far, reused by (position, extent) */
};
/*
 * The iteration variable of nesting level `position` that runs over `extent` values; the same one
 * for equal arguments.
 */
const struct var *access_iter_var(struct access_space *space, uint32_t position, int64_t extent);
/* Its value as an expression: constant 0 when the extent is 1. */
const struct expr *access_iter_value(struct access_space *space, const struct access_iter *iter);
void access_space_init(struct access_space *space, struct cx *cx, struct expr_pool *pool,
                       int64_t n_threads);

/* `e` with each of `n` variables replaced. */
const struct expr *access_substitute(struct access_space *space, const struct expr *e,
                                     const struct var *const *vars,
                                     const struct expr *const *values, uint32_t n);
/*
 * The loop's index of the element at `slot` of thread `tid`: one expression a dimension, plus the
 * condition under which the place holds an element (NULL: always).
 */
void access_loop_index(struct access_space *space, const struct loop_plan *loop,
                       const struct expr *slot, const struct expr **index,
                       const struct expr **guard);
/*
 * Offset of an element of a buffer: bytes by `layout` in shared memory, elements by the strides in
 * global memory (layout NULL).
 */
const struct expr *access_offset(struct access_space *space, const struct buffer *buffer,
                                 const struct layout *layout, const struct expr *const *index);

/* Shared wavefronts of one block executing the access once through all its iterations. */
struct access_cost {
	int64_t executions, wavefronts, ideal; /* warp-level */
	int64_t n_looked_at;                   /* addresses of threads, to find that out */
};
struct access_cost access_count(struct access_space *space, const struct access *access);

/* Threads and iterations that take part: guard and replica together, NULL when all do. */
const struct expr *access_predicate(struct access_space *space, const struct access *access);

/* One operand of a gemm in shared memory: `which` 0 is A, 1 is B. */
struct operand_ref {
	const struct op_gemm *gemm;
	const struct gemm_plan *plan;
	int which;
	const struct layout *layout;
};
/* Elements of K behind the last whole k step of mma.sync: the rest, one more step whose registers
 * beyond K are zero. 0: none. */
int64_t gemm_k_rest(const struct gemm_plan *plan);
enum { MAX_OPERAND_ACCESSES = 3 };
/*
 * How mma.sync reads it from shared memory: by ldmatrix (x4 and, when the warp's number of n8 tiles
 * is odd, a trailing x2), or element by element where ldmatrix has no form; then, when K has a
 * rest, the loads of that step (`is_rest`): by ldmatrix when the rest is half a step, else element
 * by element under a guard. Fills up to MAX_OPERAND_ACCESSES accesses and returns their number, 0
 * when there is no form. Iterations: k step, tile; of plain loads also register and element. PTX
 * ISA, ldmatrix and the fragment figures of mma.
 */
uint32_t access_gemm_operand(struct access_space *space, const struct operand_ref *ref,
                             struct access *out);

/*
 * How wgmma reads it: the descriptor without its start address. False when the operand's layout, or
 * where its parts start, is none that a descriptor can express.
 */
bool access_wgmma_matrix(struct access_space *space, const struct operand_ref *ref,
                         struct wgmma_matrix *out);
/* The same with the start address of each instruction; the plan says wgmma. */
struct wgmma_operand {
	struct wgmma_matrix matrix;
	const struct expr *start; /* bytes in version 0, in tid and the iterations */
	struct access_iter steps; /* along k */
	struct access_iter parts; /* blocks of 64 rows of A, parts of wgmma_n columns of B */
};
void access_wgmma_operand(struct access_space *space, const struct operand_ref *ref,
                          struct wgmma_operand *out);
/*
 * Shared wavefronts of one block's reads of operand `which`: bytes / 128 an instruction, which is
 * the ideal; an instruction is four executions, one a warp. Measured: docs/banks.md.
 */
struct access_cost access_wgmma_count(const struct gemm_plan *plan, int which);

/* An element of a buffer that each iteration of a partitioned space touches. */
struct elem_ref {
	const struct loop_plan *loop;
	const struct var *const *vars; /* of the space, one a dimension */
	const struct buffer *buffer;
	const struct layout *layout;     /* NULL: global, by its strides */
	const struct expr *const *index; /* in `vars` and outer variables */
};
/*
 * The access to it in shared or global memory. The widest vector that the partition, the layout and
 * the alignment allow is used, at most loop->vector_elems elements and 16 bytes; `max_bytes` limits
 * it further (0: no limit). Iterations: slot groups, vectors of a group; a load that is the same
 * element for a whole group is made once (`is_one`).
 */
void access_elementwise(struct access_space *space, const struct elem_ref *ref, bool is_store,
                        int64_t max_bytes, struct access *out);

/*
 * Bytes that one atomic operation on the buffer may take: an element, or several where the target
 * has a vector form (PTX ISA red: .f16x2; sm_90 also .bf16x2 and, in global memory, .v2 and .v4 of
 * .f32). 0: there is none for its type.
 */
int64_t access_atomic_bytes(const struct target *target, const struct buffer *buffer,
                            enum atomic_kind kind);

/*
 * Where a fragment element that iteration `vars` touches sits in the executing thread's registers:
 * its slot as an expression of the loop's slot variable, the same for all threads. False when some
 * thread would need an element that another thread owns; then `element` (rank of the buffer),
 * `thread` and `owner` tell the first one (owner -1: the slot differs between threads).
 */
struct owner_mismatch {
	int64_t element[MAX_RANK];
	int64_t thread, owner;
};
bool access_fragment_slot(struct access_space *space, const struct elem_ref *ref,
                          const struct var *slot, const struct expr **out_slot,
                          struct owner_mismatch *mismatch);

/*
 * Index variables of a box, one a dimension; the same for equal extents in the first three
 * dimensions.
 */
void access_index_vars(struct access_space *space, uint32_t rank, const int64_t *shape,
                       const struct var **vars);

/*
 * A fragment on its way from one layout to another. In registers when every thread holds what it
 * needs: access_fragment_slot's answer for `to` read from `from`, in the variable `slot` of extent
 * to->n_slots; else through shared memory.
 */
bool access_convert_slot(struct access_space *space, const struct conversion *conversion,
                         const struct var *slot, const struct expr **out_slot,
                         const struct expr **guard);
/*
 * The store to (is_store, laid out as `from`) and the load from (as `to`) the conversion's
 * workspace. `out->slot` is in `from`, or `to`.
 */
void access_convert(struct access_space *space, const struct conversion *conversion, bool is_store,
                    struct access *out);

/*
 * How the threads of one digit of a fragment's reduced dimension come together: `lanes` neighbours
 * (a power of two of one warp, 1: none) by xor shuffles, then `parts` groups of them through shared
 * memory. The digit of a row's last threads may be padded to whole lanes: threads that hold nothing
 * bring the value that changes nothing.
 */
struct reduce_split {
	int64_t lanes, parts;
};
struct reduce_split access_reduce_split(const struct layout *source, const struct digit *digit);

/*
 * The digits of a dimension along which a tile is scanned, the innermost first. A level's blocks
 * are what the digits before it span: `n_within` slots of a thread each, of which a thread has
 * `n_blocks` (for a slot digit: of the first block of each run). Threads that differ in this digit
 * only are one of `n_groups`.
 */
struct scan_level {
	const struct digit *digit;
	struct reduce_split split; /* thread digits */
	int64_t n_within, n_blocks, n_groups;
	bool is_last;
};
/* Fills `out` (MAX_DIGITS entries) and gives their number. */
uint32_t access_scan_levels(const struct layout *layout, int64_t dim, struct scan_level *out);

/* The first of several replicas; NULL when there is one. */
const struct expr *access_first_replica(struct access_space *space, const struct layout *layout);

/*
 * A conversion within warps, in rounds: in each, every lane gives one word of `per` slots and takes
 * the word that another lane gives. Words are numbered slot / per. -1: nothing.
 */
struct shuffle_plan {
	int64_t per, n_threads;
	int64_t n_rounds;
	int16_t *give, *lane, *take; /* by [round * n_threads + thread]: a word of `from`, the lane that
	                                is read, a word of `to` */
	int64_t n_words;             /* of `to` a thread */
	int16_t *own; /* by [word of `to` * n_threads + thread]: a word of `from` that the thread has */
	int64_t n_sets; /* moves between registers that go with the shuffles */
	double cost;    /* cycles a block */
};
/* False when an element leaves its warp, or a warp is not whole. */
bool access_shuffle(struct access_space *space, const struct conversion *conversion,
                    struct shuffle_plan *plan);
/* Different words among `n` threads' and whether some have none. */
int64_t shuffle_values(const int16_t *words, int64_t n, bool *has_none);

/*
 * The iteration space of a copy: its dimensions of extent > 1 (at least one), in order, as loop
 * variables; `src_index` and `dst_index` give both sides' indices in them (region mins included).
 * Of a source that is gathered `src_index` is what the gather says.
 */
struct copy_space {
	uint32_t rank;
	int64_t shape[MAX_RANK];
	const struct var *vars[MAX_RANK];
	const struct expr *src_index[MAX_RANK], *dst_index[MAX_RANK];
};
/*
 * False when the two regions do not have the same extents after those of 1 are dropped (the
 * verifier reported it).
 */
bool access_copy_space(struct access_space *space, const struct op_copy *copy,
                       struct copy_space *out);

#endif
