/*
 * solve_internal: what the files of the solver share.
 *
 * solve.c             the passes in order
 * solve_collect.c     statements -> spaces (who touches what in one iteration), constraints,
 *                     components
 * solve_gemm.c        warp grids, instructions, accumulators
 * solve_wgmma.c       which gemms use warpgroup instructions
 * solve_candidates.c  partitions of a space that are worth weighing
 * solve_propagate.c   from one partition to all layouts of a component
 * solve_cost.c        what a partition costs without knowing the shared layouts
 * solve_touch.c       what touches a shared buffer, and what that costs under a layout
 * solve_shared.c      shared layouts against exact wavefronts
 * solve_search.c      one choice a component: branch and bound
 * solve_work.c        the budget
 * solve_record.c      the solution's plans; solve_print.c its text and invariants
 * solve_explain.c     conflicts in words; solve_trial.c what would solve them
 * solve_memo.c        what was asked before
 */
#ifndef TL_SOLVE_SOLVE_INTERNAL_H
#define TL_SOLVE_SOLVE_INTERNAL_H

#include "analyzer/solve/access.h"
#include "analyzer/solve/solve.h"

enum {
	LANES = 32,
	UNKNOWN_TRIPS = 16,    /* weight of a loop whose trip count is not known */
	MAX_CANDIDATES = 160,  /* partitions weighed for one space */
	MAX_ASSIGNMENTS = 400, /* kept for one component */
	DEFAULT_BUDGET_MS = 50,
	NO_DIM = -1,
	MAX_TOUCH_ACCESSES = MAX_OPERAND_ACCESSES,
};

/* A range of the block's threads that runs a part of the kernel; number 0 is the whole block. */
struct role {
	struct thread_range range;
	struct access_space *access; /* its thread counts from the range's first */
};
#define NO_ROLE UINT32_MAX

/* One operand of a space's iteration: buffer[index(vars)]. */
/* Where an index reads a variable of the space: in which part, multiplied by what. */
struct place_in_index {
	int dim; /* NO_DIM: nowhere */
	int64_t factor;
	bool is_top; /* the variable of the number's highest digit */
};

struct use {
	const struct buffer *buffer;
	const struct expr *index[MAX_RANK]; /* in the space's variables */
	bool is_load, is_store;
	bool is_update;          /* several iterations store different values into one element */
	bool is_selected;        /* stored by some of the iterations that share the element */
	bool is_partial;         /* a contribution to a reducer: owners hold partial results */
	bool is_conditional;     /* a store under an `if` */
	enum atomic_kind atomic; /* of the store */
	bool is_converted; /* goes through a conversion: it does not tie its fragment to the space */
	struct span span;
	/* Fragments: the layout is the space's layout seen through `dims`; not `is_plain`: the index
	   has another form. The fragment's dimension d is `blocks[d]` times the dims[d].extent values
	   that the space tells apart (v + 64 * k, or k alone): every thread holds all blocks. `shift`:
	   of an index v + rest, what divides the rest; 0: nothing is added; -1: another form. */
	bool is_plain;
	struct projection dims[MAX_RANK];
	int64_t blocks[MAX_RANK], shift[MAX_RANK];
	/* Not plain, but each part is a number whose digits are variables: g * 16 + j, j below 16. */
	bool is_number;
	struct place_in_index digits[MAX_RANK]; /* by dimension of the space */
	/* Memory: the dimension of the space along which addresses are consecutive (NO_DIM: none),
	   elements from step to step of each dimension, and how many consecutive elements alignment
	   lets one access take. */
	int contiguous_dim;
	int64_t steps[MAX_RANK];
	const int64_t *places; /* instead of steps: element number of each iteration, row-major */
	int64_t max_vector;
};

enum space_kind {
	SPACE_PARALLEL,
	SPACE_COPY,
	SPACE_FILL,
	SPACE_REDUCE,
	SPACE_SCALAR,   /* a statement outside T.Parallel: one iteration, which every thread runs */
	SPACE_FINALIZE, /* the replicas of a reducer are reduced */
	SPACE_SCAN,
};

/* Iterations that each run on one thread; the variable is which. */
struct space {
	uint32_t id;
	enum space_kind kind;
	const struct stmt *stmt;
	uint32_t rank;
	int64_t shape[MAX_RANK];
	const struct var *vars[MAX_RANK];
	int64_t weight;      /* times a block runs it */
	int64_t n_ops;       /* operators of an iteration, roughly */
	int64_t reduced_dim; /* SPACE_REDUCE, SPACE_SCAN */
	vec_of(struct use) uses;
	vec_of(const struct var *) lets; /* scalars that an iteration binds for itself */
	bool keeps_order;                /* an iteration changes an array or scalar of its thread's */
	uint32_t component;
	uint32_t role;
	bool touches_shared;
	uint64_t key; /* equal ones make the same accesses under equal partitions and layouts */
	const struct constraint *constraint;
};

struct gemm_use {
	const struct stmt *stmt;
	struct gemm_plan plan;
	uint32_t role;
	int64_t weight;
	const struct constraint *accumulator, *operands[2];
	bool converts[2];      /* the operand in registers comes through a conversion */
	bool converts_c;       /* and the accumulator goes through one, there and back */
	const char *not_wgmma; /* why it uses mma.sync on a target with wgmma; NULL: it does not */
};

/* A T.tma_copy. */
struct tma_use {
	const struct stmt *stmt;
	const struct region *shared, *global;
	bool is_load;
	uint32_t role;
	const struct constraint *constraint;
};

/* A complete choice for one component. */
struct assignment {
	const struct layout **spaces;    /* of the component's spaces, in its order */
	const struct layout **fragments; /* likewise */
	double
		fixed_cost; /* all but accesses of shared buffers, cycles a block; conversions included */
	double shared_bound; /* of shared accesses: no shared layout can do better */
	uint32_t order;      /* in which it was found: breaks ties */
};

/* Spaces that share fragments, directly or not. */
struct component {
	uint32_t id;
	vec_of(struct space *) spaces;
	vec_of(const struct buffer *) fragments;
	uint32_t role;                         /* of all of them */
	vec_of(struct assignment) assignments; /* by fixed_cost + shared_bound */
	const struct assignment *chosen;
};

/* What a trial changes; everything else is as written. */
struct trial {
	const bool *only;        /* by statement id: the statements that take part; NULL: all */
	int64_t n_threads;       /* 0: as written */
	const struct stmt *gemm; /* has this policy; NULL: none */
	enum gemm_policy policy;
	struct buffer *shared;          /* a fragment that is put into shared memory; NULL: none */
	const struct buffer *annotated; /* has this layout instead of an annotated one; NULL: none */
	const struct layout *layout;    /* NULL: its annotation is left out */
	const struct target *target;    /* another one; NULL: the same */
	bool strict;
	bool has_budget; /* of its own: what others spent does not count */
	double limit;    /* only solutions that cost less are wanted, tensor cores included; 0: any */
};

/* What takes the solver's time: the budget is spent by counting these, not by a clock, so that the
 * same input gives the same answer on every machine (solve_work.c). */
enum work {
	WORK_ACCESS,     /* accesses of one space, or operand, derived under one layout */
	WORK_LANE,       /* one thread's address in one iteration of a counted access */
	WORK_PARTITION,  /* a partition's fixed cost, for one space */
	WORK_SAMPLE,     /* its sectors, for one use of global memory */
	WORK_CHECK,      /* a use's owners compared */
	WORK_CONVERSION, /* a conversion between two layouts */
	WORK_PLACE,      /* one place of it */
	WORK_SWIZZLE,    /* a layout made for a buffer */
	WORK_ENTRY,      /* one element of one access while it is made */
	WORK_NODE,       /* a node of the search */
	N_WORK
};

/* Answers of questions about layouts that come again, also in the trials of one launch. */
struct solve_memo {
	struct map layouts;     /* value -> const struct layout *, the first of equal ones */
	struct map checks;      /* (use, partition, fragment) -> const struct use_check * */
	struct map conversions; /* (buffer, layout, layout) -> struct known_conversion * */
	struct map partitions;  /* (space, partition) -> struct space_cost * */
	struct map workspaces;  /* (buffer, layout, workspace) -> struct access_cost * */
	struct map owners;      /* (layout, layout) -> const struct use_check * */
	double work_ns;         /* spent so far */
	struct map swizzles;    /* accesses -> const struct layout ** */
	struct map ranges;      /* threads of a role -> struct access_space * */
	struct map touches;     /* (touch, partition, layout) -> struct known_touch * */
	struct map wavefronts;  /* access fingerprint -> struct access_cost * */
};

struct solver {
	struct tile_program *program;
	const struct launch *launch;
	const struct target *target;
	struct solve_options options;
	struct cx *cx;
	struct arena *arena;
	struct expr_pool *pool;
	vec_of(struct role *) roles;
	uint32_t role; /* the one that `n_threads` and `access` are of */
	int64_t n_threads;
	struct access_space *access; /* of the role */
	struct solution *solution;
	vec_of(struct space *) spaces;
	vec_of(struct gemm_use *) gemms;
	vec_of(struct tma_use) tmas; /* in program order, known before everything else */
	vec_of(struct component *) components;
	const struct constraint *
		*pinned_by; /* by buffer id: the constraint that fixes a fragment, NULL free */
	const struct constraint **annotated; /* by buffer id: T.annotate_layout, NULL none */
	bool *by_element; /* by buffer id: threads touch single elements outside parallel loops */
	struct touched *touched; /* by buffer id */
	/* The choice while it is built: by space id, by buffer id. */
	const struct layout **space_layout, **fragment_layout;
	const struct constraint **fragment_from; /* by buffer id: what gave fragment_layout its value */
	const struct buffer **space_from; /* by space id: the fragment that gave space_layout its value,
	                                        NULL: a candidate */
	const struct buffer *
		*fragment_follows; /* by buffer id: the space_from of fragment_from's space */
	struct map
		shared_layouts; /* memo: (buffer, partitions that touch it) -> struct shared_choice * */
	struct map views;   /* memo of solve_view_layout */
	vec_of(const struct buffer *) used_views; /* that statements name beside their owners */
	struct map global_bytes;   /* memo: (space, partition) -> bytes of a copy's global side */
	struct map copies;         /* memo: (space, partition, shared layout) -> copy plan and access */
	struct solve_memo *memo;   /* its own, or that of the solver whose trial this is */
	bool needs_hopper;         /* E0413 was reported: once for a launch */
	double latency, transfer;  /* cycles that a block waits all in all, and that its share of
	                             global memory's bandwidth takes */
	double cutoff;             /* assignments that cost as much are not wanted; 0: all are */
	bool exhausted;            /* a limit kept partitions or assignments out of the search */
	const struct trial *trial; /* NULL: this is the solution itself */
	const bool *no_wgmma;      /* by statement id: the gemm uses mma.sync; NULL: none must */
	struct mismatch *mismatch; /* the first inconsistency met, for the explanation */
};

/* Why a partition does not serve a use. */
struct mismatch {
	const struct space *space;
	const struct use *use;
	const struct layout *space_layout, *fragment;
	const struct constraint *fragment_from;
	struct owner_mismatch owner;
	bool many_writers;
};

/* ---- solve.c ---- */

/* Sets up everything for a launch; solver->target, options and trial are set already. */
void solve_open(struct solver *solver, struct tile_program *program, const struct launch *launch,
                struct cx *cx);
/* Chooses all layouts and partitions; false, with diagnostics, when nothing fits. */
bool solve_decide(struct solver *solver);
/* Fills solver->solution from what was decided. */
void solve_finish(struct solver *solver);
/* Both. */
void solve_run(struct solver *solver);

/* ---- solve_work.c ---- */

void solve_spend(struct solver *solver, enum work kind, uint64_t times);
/* The budget of the launch, trials included, is used up. */
bool solve_is_spent(const struct solver *solver);

/* ---- solve_search.c ---- */

/*
 * One choice for each component and the layouts of all shared buffers: fills component->chosen,
 * space_layout, fragment_layout and the solution's cost, bound and status. False when nothing costs
 * less than the trial's limit.
 */
bool solve_search(struct solver *solver);

/* ---- solve_memo.c ---- */

/* Whether a use finds its elements with their owners; else the first that it does not. */
struct use_check {
	bool ok;
	struct owner_mismatch owner;
};
/* By digits, shape and XOR terms; tables by identity. */
uint64_t solve_layout_hash(const struct layout *layout);
/* The first layout of this value that the solver met. `mark` was taken before `layout` was made: a
 * second copy's memory is given back. NULL stays NULL. */
const struct layout *solve_intern(struct solver *solver, const struct layout *layout,
                                  struct arena_mark mark);
/* layout_project, interned. */
const struct layout *solve_project(struct solver *solver, const struct layout *source,
                                   uint32_t rank, const struct projection *dims);
/*
 * Every owner of an element under `a` is one under `b`. Remembered; both may be seen as they are.
 */
const struct use_check *solve_owners_within(struct solver *solver, const struct layout *a,
                                            const struct layout *b);

/* ---- solve_roles.c ---- */

/* The number of the role of these threads, made when it is new. */
uint32_t solve_role(struct solver *solver, struct thread_range range);
/* n_threads and access are from now on those of the role. */
void solve_enter_role(struct solver *solver, uint32_t role);
/* One role for each component and fragment; false with E0411. */
bool solve_assign_roles(struct solver *solver);

/* ---- solve_trial.c ---- */

/* The launch solved again, silently; NULL when the trial has no solution. */
struct solution *solve_trial(const struct solver *solver, const struct trial *trial);
/* Attaches to the last diagnostic: the minimal set of statements that conflict over the buffer, and
 * edits that were tried and work. */
void solve_suggest(struct solver *solver, const struct buffer *buffer);

/* ---- solve_collect.c ---- */

/* Fills spaces, gemms, components. False with diagnostics. */
bool solve_collect(struct solver *solver);

/* ---- solve_refuse.c ---- */

/* False with diagnostics when the launch uses what the solver does not take yet. */
bool solve_supported(struct solver *solver);
struct constraint *solve_add_constraint(struct solver *solver, enum constraint_kind kind,
                                        const struct stmt *stmt, const struct buffer *buffer);

/* ---- solve_gemm.c ---- */

/* Plans the gemm of `stmt` and pins its accumulator. False with diagnostics (E0402 .. E0404,
 * E0406). */
bool solve_gemm(struct solver *solver, const struct stmt *stmt, int64_t weight);

/* Sets pinned_by of a fragment that gemms use: its accumulator's constraint, else that of the first
 * gemm that reads it without a conversion. */
void solve_pin(struct solver *solver, const struct buffer *buffer);

/* The policy's warp grid for plan's m and n; false when none covers. */
bool solve_warp_grid(struct solver *solver, enum gemm_policy policy, struct gemm_plan *plan);

/* The same for the plan's warpgroups of 64 rows and 8 columns. */
bool solve_group_grid(struct solver *solver, enum gemm_policy policy, struct gemm_plan *plan);

/* ---- solve_wgmma.c ---- */

/* Plans the gemm with warpgroup instructions; false leaves the plan and says why in not_wgmma. */
bool solve_wgmma(struct solver *solver, enum gemm_policy policy, struct gemm_use *use);
/* Is the buffer in shared memory an operand of a wgmma? Can all of them read it in this layout? */
bool solve_wgmma_operand(const struct solver *solver, const struct buffer *buffer);
bool solve_wgmma_reads(struct solver *solver, const struct buffer *buffer,
                       const struct layout *layout);
/* The tensor cores' cycles a block, which a solution's cost leaves out. */
double solve_tensor_cost(const struct solver *solver);
/*
 * Decides which gemms use mma.sync although they could use wgmma: fills solver->no_wgmma. Gives the
 * launch's solution when it is known already, else NULL. The solver is open and has not run.
 */
struct solution *solve_choose_wgmma(struct solver *solver);

/* ---- solve_tma.c ---- */

/* Finds the launch's bulk copies. False with diagnostics (E0413, E0414). */
bool solve_find_tmas(struct solver *solver);
/* Notes who does the copy. */
void solve_tma(struct solver *solver, const struct stmt *stmt);
/* Is the buffer filled or read by bulk copies? Can all of them, in this layout? */
bool solve_tma_operand(const struct solver *solver, const struct buffer *buffer);
bool solve_tma_takes(struct solver *solver, const struct buffer *buffer,
                     const struct layout *layout);
/* Annotated layouts that bulk copies cannot have: false with E0414. */
bool solve_tma_annotated(struct solver *solver);
/* Fills their plans, once all layouts are chosen. */
void solve_record_tmas(struct solver *solver);
/* E0413 about the launch's first operation that needs Hopper's instructions; false. */
bool solve_need_hopper(struct solver *solver, const struct stmt *stmt);

/* ---- solve_candidates.c ---- */

/* Partitions of the space over the block's threads; their number (at most `max`). */
uint32_t solve_candidates(struct solver *solver, const struct space *space,
                          const struct layout **out, uint32_t max);
/* The partition with the vectors that the loop takes: none, where each iteration has to be done
 * with a thread's own scalars before the next begins. */
struct loop_plan solve_loop_plan(const struct space *space, const struct layout *partition);

/* ---- solve_alias.c ---- */

/* Fills used_views. */
void solve_find_views(struct solver *solver);
/*
 * The layout of a buffer in shared memory when its owner has the layout `owner`: that itself when
 * it owns its memory; NULL when an element of the view is torn. Remembered.
 */
const struct layout *solve_view_layout(struct solver *solver, const struct buffer *view,
                                       const struct layout *owner);
/* Does the layout keep the elements of all views of the buffer's memory together? */
bool solve_keeps_views(struct solver *solver, const struct buffer *owner,
                       const struct layout *layout);
/* False, with E0416 or E0410, when an annotated layout tears a view's element, or two differ. */
bool solve_annotated_views(struct solver *solver);

/* ---- solve_view.c ---- */

/* Fills a fragment use's is_plain, dims, blocks and shift from its index. */
void solve_describe_fragment(struct solver *solver, const struct space *space, struct use *use);
/* The layout that the use's fragment has when the space runs as `partition`; NULL when the digits
 * do not divide or the index is not plain. */
const struct layout *solve_seen_through(struct solver *solver, const struct layout *partition,
                                        const struct use *use);
/* The partition that a fragment dictates to a space all of whose dimensions the use's index has;
 * NULL when it has not. */
const struct layout *solve_partition_from(struct solver *solver, const struct space *space,
                                          const struct use *use, const struct layout *fragment);
/* The fragment without what the use's blocks tell apart; NULL when threads do. */
const struct layout *solve_without_blocks(struct solver *solver, const struct layout *fragment,
                                          const struct use *use);
/* Does the space set every element of the use's fragment, whatever was there? */
bool solve_sets_all(const struct space *space, const struct use *use);

/* ---- solve_propagate.c ---- */

/* All assignments of the component. False with diagnostics when there is none. */
bool solve_component(struct solver *solver, struct component *component);
/* The same without a word: finds the assignments under the present conversions. */
void solve_enumerate(struct solver *solver, struct component *component);
/* The component's chosen assignment reached once more in the order of the search: fills
 * fragment_from and fragment_follows of its fragments. */
void solve_trace(struct solver *solver, const struct component *component);

/* ---- solve_cost.c ---- */

struct space_cost {
	double fixed, shared_bound;
};
struct space_cost solve_space_cost(struct solver *solver, const struct space *space,
                                   const struct layout *layout);
/* Fills solver->latency and solver->transfer. */
void solve_measure_latency(struct solver *solver);
/*
 * Cycles a block that the registers of a component's fragments cost: the blocks of an SM share its
 * registers, and hide what a block waits for only as far as these let them in; nothing as long as
 * the transfer of the block's global memory takes longer.
 */
double solve_register_cost(const struct solver *solver, const struct component *component,
                           const struct layout *const *fragments);
/* The use's share of shared_bound, once through the space. */
double solve_shared_bound(const struct space *space, const struct use *use,
                          const struct layout *partition);
/*
 * How the reduction runs when its source (of SPACE_FINALIZE the reducer) has this layout; false
 * when it has no such form.
 */
bool solve_reduce_plan(const struct solver *solver, const struct space *space,
                       const struct layout *source, int64_t elem_bytes, struct reduce_plan *plan);

/* How the scan runs in this layout; false when it has no such form. */
bool solve_scan_plan(const struct space *space, const struct layout *layout, int64_t elem_bytes,
                     struct scan_plan *plan);

/* ---- solve_reducers.c ---- */

/* Reducers get their value, contributions and result in turn. False with diagnostics (E0412). */
bool solve_reducers(struct solver *solver);
/* A contribution to a reducer: the element combined with something else. */
bool solve_is_contribution(const struct stmt *store);

/* ---- solve_swizzle.c ---- */

struct weighted_access {
	uint32_t role;
	struct access access;
	int64_t weight;
};
/*
 * A layout made for the buffer's accesses, which are those under its row-major layout; NULL when
 * there is none of digits and XOR terms, or none of at most `known_cost` wavefronts: those of the
 * best known layout. It need not be better than others: weigh it.
 */
const struct layout *solve_swizzle(struct solver *solver, const struct buffer *buffer,
                                   const struct weighted_access *accesses, uint32_t n,
                                   int64_t known_cost);

/* ---- solve_touch.c ---- */

/* A space's use of a shared buffer, or a gemm's operand in it. */
struct touch {
	struct space *space; /* NULL: `gemm` */
	const struct gemm_use *gemm;
	uint32_t which; /* use of the space; operand of the gemm */
};
/* All touches of a buffer, gemms first. */
struct touched {
	vec_of(struct touch) by;
};
/* What one touch does under one layout, once through. */
struct known_touch {
	uint32_t n;
	struct access accesses[MAX_TOUCH_ACCESSES];
	struct access_cost cost; /* of all */
};
/* Fills solver->touched and the spaces' keys. */
void solve_find_touches(struct solver *solver);
/* Under the space's present partition; remembered. The touch's role is entered. */
const struct known_touch *solve_touch(struct solver *solver, const struct touch *touch,
                                      const struct layout *layout);
/* Times a block does it. */
int64_t solve_touch_weight(const struct touch *touch);
/* access_count, remembered: equal expressions are equal objects. */
struct access_cost solve_count(struct solver *solver, const struct access *access);

/* ---- solve_shared.c ---- */

/* A buffer under the partitions that touch it, as far as it was looked at. */
struct shared_choice {
	struct buffer_solution solution;
	double least;    /* no layout costs less: instructions and ideal of the best usual candidate */
	bool is_settled; /* nothing more will be tried: the first candidate costs `least` */
};
/* The buffer's usual candidates under the partitions in space_layout, weighed; remembered. */
struct shared_choice *solve_shared(struct solver *solver, const struct buffer *buffer);
/* Tries a layout made for the accesses where the usual ones leave excess. */
void solve_settle(struct solver *solver, const struct buffer *buffer, struct shared_choice *choice);
/* The launch has this buffer in shared memory, and something touches it. */
bool solve_uses_shared(const struct solver *solver, const struct buffer *buffer);

/* The `which`-th layout of a tile in order of preference, NULL when it cannot have it; `end` is set
 * past the last. */
const struct layout *solve_nth_layout(struct solver *solver, const struct buffer *buffer, int which,
                                      bool *end);

/* ---- solve_convert.c ---- */

/* The cheapest way from one layout of a fragment to another; false when there is none. */
bool solve_conversion(struct solver *solver, struct conversion *conversion);
/*
 * Conversions that the component's converted uses and operands need under space_layout and
 * fragment_layout: their cycles a block are added to `cost`. False when one is not possible.
 */
bool solve_conversion_cost(struct solver *solver, const struct component *component, double *cost);
/* Where several gemms want one accumulator in different layouts: the fragment lives in the one that
 * costs least, the others convert it. */
void solve_choose_homes(struct solver *solver);
/* Fills the plans' conversions. */
void solve_record_conversions(struct solver *solver);

/* ---- solve_untie.c ---- */

/* Tries conversions on the component's uses until it has assignments; false when none helps. */
bool solve_with_conversions(struct solver *solver, struct component *component);

/* ---- solve_record.c ---- */

/*
 * How a copy moves its data under its partition; `shared` is the layout of its shared side (NULL
 * when it has none), whose access goes to `shared_access`. A copy from shared to shared: `shared`
 * is taken for both.
 */
struct copy_plan solve_copy_plan(struct solver *solver, const struct space *space,
                                 const struct layout *shared, struct access *shared_access);
/* Fills the solution's plans and fragment layouts from space_layout and fragment_layout. */
void solve_record(struct solver *solver);

/* ---- solve_annotate.c ---- */

/* W0410 when another candidate takes fewer wavefronts than the buffer's annotated layout: the first
 * element that they place differently, and whether the annotation keeps ldmatrix away. */
void solve_warn_annotation(struct solver *solver, const struct buffer_solution *solved);

/* ---- solve_explain.c ---- */

void solve_explain(struct solver *solver, const struct component *component);
/* A fragment that two gemms want differently. */
void solve_explain_accumulators(struct solver *solver, const struct constraint *first,
                                const struct constraint *second);

#endif
