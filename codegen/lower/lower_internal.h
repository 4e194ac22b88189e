/*
 * lower_internal: the state of one lowering, shared by lower_*.c.
 */
#ifndef TL_LOWER_LOWER_INTERNAL_H
#define TL_LOWER_LOWER_INTERNAL_H

#include "analyzer/pipeline/depend.h"
#include "analyzer/solve/access.h"
#include "codegen/lower/lower.h"

/*
 * What has happened to a piece of shared memory since the last barrier, and by which threads: a
 * bit for each role.
 */
struct hazard {
	uint64_t read, written;
	uint64_t async;    /* cp.async into it that nobody has waited for */
	uint64_t unfenced; /* written since the last fence.proxy.async; matters to operands of wgmma */
};

enum { MAX_LOWER_ROLES = 16 /* hardware barriers of a block; 0 is for all threads */ };

struct lower {
	struct cx *cx;
	struct expr_pool *pool;
	const struct schedule *schedule;
	const struct solution *solution;
	struct warp_program *warp;
	struct access_space space;
	struct wreg **reg_of;           /* by buffer id; NULL: not in registers */
	struct wshared **shared_of;     /* by buffer id */
	bool *is_uniform;               /* by buffer id: threads' own arrays that are alike in all */
	struct map workspace_of;        /* statement id -> struct wshared * */
	struct expr_subst subst;        /* tile variables -> expressions of the warp program */
	const struct expr **version_of; /* by buffer id: the version in use, NULL for 0 */
	struct hazard *hazards;         /* by wshared id */
	const struct expr *choice;      /* under which a scalar's part is evaluated; NULL: always */
	bool *wgmma_reads;              /* by wshared id: an operand of wgmma */
	bool holds_wait;                /* the next wgmma is left in flight ... */
	struct span held_span;
	const struct wreg *held; /* ... with this accumulator; NULL: none is */
	bool in_pipeline;        /* copies are issued by a pipeline, which commits and waits itself */
	int n_divergent;         /* ifs and loops around that differ between threads of the role */
	vec_of(const struct expr *) guards;         /* the conditions of those ifs, all true here */
	struct thread_range roles[MAX_LOWER_ROLES]; /* groups of threads with work of their own */
	uint32_t n_roles;                           /* the whole block is number 0 */
	uint32_t role;                              /* whose work is being lowered */
	uint32_t taken_barriers; /* hardware barriers that the kernel names, a bit each */
	bool is_manual;          /* the kernel orders its groups of threads itself */
	bool has_copy_reports;   /* cp.async of its own report to barriers */
	struct map misplaced; /* node id -> node: barriers that not all threads of their role reach */
	/* node id of an if -> node: whole groups of threads take its first, or its second, branch */
	struct map role_branches[2];
	bool failed;
	bool is_partial;      /* statements without a lowering are left out */
	bool left_out;        /* one was */
	struct wblock *block; /* where instructions go */
	struct span span;     /* of the statement being lowered */
};

/* ---- lower.c ---- */
void lower_block(struct lower *l, struct block *block);
void lower_stmt(struct lower *l, struct stmt *stmt);
/* A tile expression without loads, in the variables of the warp program. */
const struct expr *lower_expr(struct lower *l, const struct expr *e);
/* Does the expression have one value for all threads of a block? */
bool lower_is_uniform(const struct expr *e);
void lower_error(struct lower *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- lower_emit.c: instructions and loops at l->block ---- */
struct winst *lower_inst(struct lower *l, enum wop_kind kind);
void lower_set(struct lower *l, const struct wreg *reg, const struct expr *slot,
               const struct expr *value, const struct expr *predicate);
/* False with an error when there is no atomic of the kind on the buffer's type and memory. */
bool lower_takes_atomic(struct lower *l, const struct buffer *buffer, enum atomic_kind atomic);
/* A store, or an atomic of the kind; the caller adds the predicate. */
struct winst *lower_write(struct lower *l, enum atomic_kind atomic, struct waddr to,
                          struct wregs from);
/*
 * Opens a loop over an iteration (none when its extent is 1) and gives the block to go back to with
 * lower_close.
 */
struct wblock *lower_open(struct lower *l, const struct access_iter *iter);
struct wblock *lower_open_if(struct lower *l, const struct expr *condition); /* NULL: no if */
void lower_close(struct lower *l, struct wblock *outer);
/*
 * When the condition is the same in all iterations: opens an if around them and sets it to NULL.
 * Gives the block to go back to.
 */
struct wblock *lower_open_guard(struct lower *l, const struct expr **condition,
                                const struct access_iter *iters, uint32_t n_iters);
/* `var` becomes `value` in all nodes of `block` from `first` on. */
void lower_rebind(struct lower *l, struct wblock *block, uint32_t first, const struct var *var,
                  const struct expr *value);
/* Row-major number of an element of a register array. */
const struct expr *lower_flat_index(struct lower *l, const struct buffer *buffer,
                                    const struct expr *const *index);
struct waddr lower_shared_addr(struct lower *l, const struct buffer *buffer,
                               const struct expr *offset); /* version included */
/*
 * `offset` in the buffer's elements; of a view in another type it becomes one in the argument's.
 * `bytes`: of the access, which must be whole elements of the argument.
 */
struct waddr lower_global_addr(struct lower *l, const struct buffer *buffer,
                               const struct expr *offset, int64_t bytes);
/*
 * What becomes of a SELECT, AND or OR of the tile program by `value` (lower a part): parts that are
 * not always evaluated are lowered with *condition narrowed. NULL when no part reads shared memory.
 */
struct choice_lowering {
	struct lower *l;
	const struct expr **condition;
	const struct expr *(*value)(void *user, const struct expr *e);
	void *user;
};
const struct expr *lower_choice(const struct choice_lowering *lowering, const struct expr *choice);
/* The predicate of a read of shared memory at `index`: the condition, where the index may be
 * outside without it. */
const struct expr *lower_read_predicate(const struct buffer *buffer,
                                        const struct expr *const *index,
                                        const struct expr *condition);
/* Condition under which index is inside the buffer; NULL when that is certain. */
const struct expr *lower_bounds(struct lower *l, const struct buffer *buffer,
                                const struct expr *const *index);

/* Barriers: say what is about to be touched, then that it was. */
void lower_before_read(struct lower *l, const struct wshared *shared);
void lower_before_write(struct lower *l, const struct wshared *shared);
void lower_did(struct lower *l, const struct wshared *shared, bool read, bool written, bool async);
void lower_barrier(struct lower *l);
/* The threads of the role have met: what they did before is ordered. */
void lower_met(struct lower *l);
/* A barrier that the kernel writes: it stays where it is, whoever comes there. */
void lower_written_barrier(struct lower *l);
/* Waits for all copies of cp.async that nothing has waited for: at the end of the launch. */
void lower_wait_all(struct lower *l);
/* Before the threads of the role arrive: their copies are awaited, their writes fenced. */
void lower_settle(struct lower *l);
/* Before a branch of the role `inner`, with these uses: what the whole role here must wait for. */
void lower_before_role(struct lower *l, const struct use_list *uses, uint32_t inner);
/* Before and after a statement whose shared uses are in `uses`. */
void lower_before_uses(struct lower *l, const struct use_list *uses);
void lower_did_uses(struct lower *l, const struct use_list *uses);
/* Hazard states, for loops and branches. */
struct hazard *lower_save_hazards(struct lower *l);
/*
 * At the head of a loop, whose statements' uses are in `uses`: whatever the body writes may be in
 * flight when an iteration begins.
 */
void lower_enter_body(struct lower *l, struct block *body, const struct use_list *uses);
void lower_merge_hazards(struct lower *l, const struct hazard *other);

/* ---- lower_uniform.c ---- */

/* Fills l->is_uniform. */
void lower_find_uniform(struct lower *l, const struct launch *launch, uint32_t n_buffers);

/* ---- lower_roles.c ---- */

/* The role of these threads; 0 when there are no barriers left for it. */
uint32_t lower_role(struct lower *l, struct thread_range range);
/*
 * A statement whose work is spread over the threads of its role is lowered as if these were all;
 * lower_role_end puts the block's thread numbers in. False after an error.
 */
struct role_state {
	struct access_space space;
	struct wblock *block; /* NULL: nothing to put in */
	uint32_t first_node;
};
bool lower_role_begin(struct lower *l, const struct stmt *stmt, struct role_state *before);
void lower_role_end(struct lower *l, const struct role_state *before);
/* The hardware barrier of a role; false when the kernel uses it, and for the whole block. */
bool lower_barrier_number(const struct lower *l, uint32_t role, int64_t *id);
/* Fills l->taken_barriers; the whole block is role 0 already. */
void lower_find_numbered(struct lower *l, const struct launch *launch);
/* T.sync_threads(id, count), T.sync_warp(). */
void lower_evaluate(struct lower *l, const struct stmt *stmt);
/* Does the kernel make its own barriers between groups of threads? */
bool lower_is_manual(const struct launch *launch);

/* ---- lower_hopper.c ---- */

/* T.tma_copy and the operations of barriers. */
void lower_hopper(struct lower *l, struct stmt *stmt);
/* Calls of T.evaluate that stand for Hopper's instructions; false: it is none of them. */
bool lower_hopper_call(struct lower *l, const struct stmt *stmt);
/* Fills l->has_copy_reports, adds to l->wgmma_reads. */
void lower_find_hopper(struct lower *l, const struct launch *launch);

/* ---- lower_diverge.c ---- */

/* Takes the barriers that lowering put in out of control flow that differs between threads. */
void lower_converge(struct lower *l);

/* ---- lower_elementwise.c ---- */
void lower_parallel(struct lower *l, struct stmt *stmt);
void lower_scalar_store(struct lower *l, struct stmt *stmt);
void lower_let(struct lower *l, struct stmt *stmt);
void lower_fill(struct lower *l, struct stmt *stmt);
/* A scalar expression that may load; emits the loads. */
const struct expr *lower_scalar(struct lower *l, const struct expr *e);
/* dst[...] = src[...] through registers, partitioned by `loop`. */
void lower_copy_loop(struct lower *l, const struct op_copy *copy, const struct loop_plan *loop,
                     const struct copy_space *space);

/* ---- lower_convert.c ---- */

/*
 * A fragment in its other layout, in new registers; `shared` is the workspace, NULL for moves
 * between registers. NULL after an error.
 */
const struct wreg *lower_convert(struct lower *l, const struct conversion *conversion,
                                 const struct wshared *shared);
/*
 * Before a statement: emits its conversions, and from then on their buffers are the new registers
 * in the new layouts. What was there before goes to the list that lower_convert_end takes after the
 * statement, where what it stored is brought back.
 */
struct converted {
	const struct buffer *buffer;
	struct wreg *reg;
	const struct layout *layout;
};
struct converted_list {
	vec_of(struct converted) items;
};
bool lower_convert_begin(struct lower *l, const struct stmt *stmt, struct converted_list *before);
void lower_convert_end(struct lower *l, const struct stmt *stmt,
                       const struct converted_list *before);
/* lower_scalar of a condition or trip count of `stmt`, with the statement's conversions around it
 * alone. */
const struct expr *lower_condition(struct lower *l, const struct stmt *stmt, const struct expr *e);

/* ---- lower_shuffle.c ---- */

/* Moves all elements from one register array to the other by a CONVERT_SHUFFLE. */
bool lower_shuffles(struct lower *l, const struct conversion *conversion, const struct wreg *from,
                    const struct wreg *to);

/* ---- lower_unroll.c ---- */

/* How a loop that is no T.Parallel is lowered; `extent` is its lowered trip count. */
enum unroll {
	UNROLL_NONE,
	UNROLL_LOOP,     /* a loop of the warp program that is unrolled */
	UNROLL_EXPANDED, /* the body once for each trip, the variable a constant */
};
enum unroll lower_unroll(struct lower *l, const struct loop *loop, const struct expr *extent);

/* ---- lower_locals.c ---- */

/* Arrays whose slots are chosen at run time are marked as local memory, with a warning each. */
void lower_locals(struct lower *l);

/* ---- lower_copy.c, lower_gemm.c, lower_reduce.c, lower_pipeline.c ---- */
void lower_copy(struct lower *l, struct stmt *stmt);
void lower_gemm(struct lower *l, struct stmt *stmt);
/* A gemm with warpgroup instructions, its positions resolved; `a` is A in registers, else NULL.
 * `is_explicit`: the kernel awaits it. */
void lower_wgmma(struct lower *l, const struct op_gemm *gemm, const struct gemm_plan *plan,
                 const struct wreg *a, bool is_explicit);
/* wgmma.wait for one accumulator. */
void lower_wgmma_await(struct lower *l, const struct wreg *d, int64_t n_pending);
/* Awaits what was left in flight, if anything, but for the last `n_pending` groups. */
void lower_wgmma_wait(struct lower *l, int64_t n_pending);
void lower_reduce(struct lower *l, struct stmt *stmt);
void lower_finalize(struct lower *l, struct stmt *stmt);
void lower_scan(struct lower *l, struct stmt *stmt);
/* In which reductions and scans compute: narrow floats in float32. */
struct dtype lower_working_type(struct dtype type);
void lower_pipelined(struct lower *l, struct stmt *stmt);
void lower_loop(struct lower *l, struct stmt *stmt);
/* A loop variable's name that cannot be mistaken for one of our iteration variables. */
const char *lower_loop_name(struct lower *l, const struct var *var);

#endif
