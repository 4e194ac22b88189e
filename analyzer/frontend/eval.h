/*
 * eval: what the files of the evaluator share.
 *
 *   eval_expr.c   expressions             eval_stmt.c    statements
 *   eval_call.c   arguments and calls     host_*.c       Python's builtins and methods
 *   device.c      device arithmetic       lang_*.c       T.* operations
 *   trace.c       the kernel being built  kernels.c      which kernels there are, their parameters
 *
 * Errors: ev_error reports and gives V_ERROR, which every operation passes on in silence, so that
 * one mistake gives one message. Outside kernels and their factories the evaluator is lenient:
 * ev_error then gives an opaque value that remembers the trouble, as module code may use anything.
 */
#ifndef TL_FRONTEND_EVAL_H
#define TL_FRONTEND_EVAL_H

#include "analyzer/frontend/frontend.h"
#include "analyzer/frontend/value.h"

#include "base/map.h"

#include <stddef.h>

struct binding {
	struct value value;
	uint64_t serial;   /* order of binding, to find what a block bound */
	bool is_dead;      /* bound by a device block that has ended */
	struct span block; /* that block, when dead */
};

/* Names of one function call, of the module, or of a comprehension. */
struct frame {
	struct map names; /* sym -> struct binding */
	struct frame *parent;
	const struct function *function; /* NULL for the module and comprehensions */
	bool is_traced;
	const struct dict *config; /* of a factory's call: what --config sets; NULL nothing */
	vec_of(sym_t) globals;     /* `global` names */
	vec_of(sym_t) nonlocals;
	vec_of(struct host_param) settled; /* of a factory's call: its parameters */
};

/* The kernel being built. */
/* The innermost loop around what is evaluated, and whether a device branch stands inside it. */
struct inside {
	enum { INSIDE_NO_LOOP, INSIDE_HOST_LOOP, INSIDE_DEVICE_LOOP } loop;
	bool branch;
};

struct trace {
	struct kernel *kernel;
	struct tile_program *program;
	struct launch *launch; /* NULL between launches */
	struct block *block;   /* where statements go */
	struct inside inside;
	uint32_t n_parallel;             /* nesting of T.Parallel */
	struct map names;                /* sym of every name given so far -> how often */
	uint32_t n_failed;               /* statements with errors */
	uint32_t n_failed_outside;       /* of these, outside launches */
	bool is_missing;                 /* a size that T.const names is not known */
	bool is_probe;                   /* only looks for these sizes, see eager.c */
	vec_of(struct buffer *) outputs; /* of T.empty, T.alloc_global: arguments behind the others */
};

/* A tensor that a call passes to an eager kernel. */
struct tensor_arg {
	sym_t name;
	struct tensor_dims dims;
};

/* A size of T.const that the shape of a tensor tells, or a call such as k.compile(M=64). */
struct known_size {
	sym_t name;
	int64_t value;
	enum param_origin origin;
};

/* What --assume says of a symbol. */
struct assumption {
	sym_t name;
	int64_t min, max, divisor;
};

enum kernel_form { KERNEL_PRIM_FUNC, KERNEL_EAGER };

/* A kernel function of the file. */
struct kernel {
	const struct ast_stmt *def;
	enum kernel_form form;
	const char *name, *factory;             /* as in struct kernel_info */
	vec_of(const struct ast_stmt *) chain;  /* functions around it, outermost first */
	struct tile_program *program, *outline; /* as in struct kernel_info */
	struct diag_list diags;
	vec_of(struct host_param) params;  /* of the call that counts */
	vec_of(struct tensor_arg) tensors; /* eager: of that call */
	vec_of(struct known_size) sizes;   /* eager: what they tell */
	bool is_selected, is_traced, is_missing, is_failed;
	bool is_returned; /* a factory returned it */
};

struct eval_limits {
	uint64_t max_steps, max_stmts;
	uint32_t max_depth, max_calls;
	size_t max_bytes;
};

struct eval {
	struct cx *cx;
	struct expr_pool *pool;
	const struct frontend_options *options;
	const struct ast_module *module;
	struct frame *globals;
	struct map builtins;  /* hash of module and name -> const struct builtin * */
	struct map weights;   /* id of a device expression -> its nodes as a tree << 32 | its height */
	struct map functions; /* address of a DEF -> its last struct function * */
	struct map imports;   /* sym of a path -> struct frame * of that file, NULL while it runs */
	uint32_t n_importing; /* files that are being imported, nested */
	struct eval_limits limits;
	uint64_t steps, serial;
	uint64_t n_effects; /* changes of containers and calls of factories so far */
	uint32_t depth, n_calls;
	size_t begin_bytes;
	bool is_strict;
	bool is_fatal;     /* a limit was exceeded: everything unwinds */
	bool has_reported; /* the last ev_error became a diagnostic */
	struct trace *trace;
	uint32_t n_lazy; /* > 0: in an expression that the device may skip, or computes again */
	vec_of(struct kernel *) kernels;
	vec_of(struct assumption) assumptions;
};

enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN, FLOW_STOP /* error: unwind */ };

/* A call in progress. */
struct arg {
	sym_t name; /* 0: positional */
	struct value value;
	struct span span;  /* of the value */
	struct span whole; /* with its keyword */
};

enum { MAX_SLOTS = 16 };

struct call {
	struct span span, callee_span;
	const char *name;              /* of the callee, for messages */
	const struct builtin *builtin; /* NULL for Python functions */
	struct value self;             /* methods */
	struct frame *frame;           /* of the caller */
	vec_of(struct arg) args;
	/* By the builtin's signature: */
	const struct arg *slot[MAX_SLOTS]; /* NULL: not given */
	const struct arg *rest;            /* what "*" took */
	uint32_t n_rest;
};

/*
 * A builtin function. The signature lists its parameters in order, blank-separated: "x" required,
 * "x?" optional,
 * "*" takes all further positional ones, what follows "*" or "|" is by keyword only and optional.
 * The handler finds them in call->slot in that order ("*" and "|" have no slot). "**": whatever
 * there is, in call->args.
 */
struct builtin {
	const char
		*module; /* "", "tilelang.language", "math"; for methods the type: "str", "list", "dict" */
	const char *name;
	const char *signature;
	struct value (*handler)(struct eval *ev, struct call *call);
};

struct builtin_table {
	const struct builtin *p;
	uint32_t n;
};

extern const struct builtin_table host_builtins, host_methods, host_modules, host_device,
	lang_scalars, lang_ops, lang_shapes, lang_eager, lang_layouts, lang_atomics, lang_barriers,
	lang_tiles, lang_memory, lang_blocks, lang_calls, lang_hints, lang_logical;

/* eval_expr.c */
struct value eval_expr(struct eval *ev, struct frame *frame, const struct ast_expr *e);
/* Truth of a host value: 1, 0, or -1 when it is not a host value (or an error). */
int eval_truth(struct value value);
struct value eval_binary(struct eval *ev, enum ast_binary op, struct value a, struct value b,
                         struct span span);
struct value eval_compare(struct eval *ev, enum ast_compare op, struct value a, struct value b,
                          struct span span);
struct value eval_attribute(struct eval *ev, struct value object, sym_t name, struct span span);
struct value eval_subscript(struct eval *ev, struct value object, struct value index,
                            const struct ast_expr *e);
/* Elements of an iterable into a new sequence; false after an error. */
bool eval_elements(struct eval *ev, struct value iterable, struct span span, struct sequence *out);
/* The value a name stands for; V_ERROR after an error. */
struct value eval_name(struct eval *ev, struct frame *frame, sym_t name, struct span span);

/* eval_stmt.c */
enum flow exec_body(struct eval *ev, struct frame *frame, const struct ast_body *body,
                    struct value *result);
void bind_name(struct eval *ev, struct frame *frame, sym_t name, struct value value);
bool assign_target(struct eval *ev, struct frame *frame, const struct ast_expr *target,
                   struct value value);

/* eval_call.c */
struct value eval_call(struct eval *ev, struct frame *frame, const struct ast_expr *e);
struct value call_value(struct eval *ev, struct value callee, struct call *call);
/* Calls a user function with arguments bound already; for factories see kernels.c. */
struct value call_body(struct eval *ev, const struct function *function, struct frame *frame,
                       struct span span);
struct function *new_function(struct eval *ev, struct frame *frame,
                              const struct ast_params *params);
const struct builtin *find_builtin(const struct eval *ev, const char *module, sym_t name);
void builtins_init(struct eval *ev);
/* Slots by the signature; false after an error. */
bool bind_slots(struct eval *ev, struct call *call, const char *signature);
/* Values of an argument, with the default when it was not given; false after an error. */
bool arg_int(struct eval *ev, const struct call *call, uint32_t slot, int64_t *value);
bool arg_bool(struct eval *ev, const struct call *call, uint32_t slot, bool *value);
bool arg_str(struct eval *ev, const struct call *call, uint32_t slot, struct str *value);
bool arg_dtype(struct eval *ev, const struct call *call, uint32_t slot, struct dtype *value);
bool arg_expr(struct eval *ev, const struct call *call, uint32_t slot, const struct expr **value);
/* The element type that a value names. */
bool value_dtype(struct value value, struct dtype *type);

/* eval.c: errors, limits, frames */
struct value ev_error(struct eval *ev, enum diag_code code, struct span span, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));
/* Attached to the error just reported, when one was. */
void ev_note(struct eval *ev, struct span span, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ev_help(struct eval *ev, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A value that nothing is known of. `text` NULL: the text of the span. */
struct value ev_opaque(struct eval *ev, struct span span, const char *text);
/* E0205 about an opaque value; `what` says what it decides. */
struct value ev_unsettled(struct eval *ev, struct value value, struct span span, const char *what);
/* E0217 about a call in a kernel of something of which nothing is known; `origin`: what it is. */
struct value ev_unknown_effect(struct eval *ev, struct span span, struct value origin);
/* Counts work; false when a limit is exceeded. */
bool ev_step(struct eval *ev, struct span span);
bool ev_enter(struct eval *ev, struct span span);
void ev_leave(struct eval *ev);
struct frame *new_frame(struct eval *ev, struct frame *parent, const struct function *function);
struct binding *frame_find(struct frame *frame, sym_t name);   /* in this frame alone */
const char *ev_source_text(struct eval *ev, struct span span); /* one line, shortened */
/* The candidate nearest to `name`, or NULL when none is near. */
const char *nearest_name(const char *name, const char *const *candidates, uint32_t n);

/* device.c */
/* A scalar expression of the value; NULL after an error. `hint`: the type that literals take (NULL:
 * int32, float32). */
const struct expr *device_expr(struct eval *ev, struct value value, const struct dtype *hint,
                               struct span span);
/* Nodes of an expression written out as a tree, saturating; `height`: its longest path (may be
 * NULL). */
uint32_t device_weight(struct eval *ev, const struct expr *e, uint32_t *height);
/* Constants of type int32 and bool become host values. */
struct value device_value(const struct expr *e);
struct value device_binary(struct eval *ev, enum ast_binary op, struct value a, struct value b,
                           struct span span);
struct value device_compare(struct eval *ev, enum ast_compare op, struct value a, struct value b,
                            struct span span);
struct value device_unary(struct eval *ev, enum ast_unary op, struct value a, struct span span);
struct value device_logical(struct eval *ev, bool is_and, struct value a, struct value b,
                            struct span span);
struct value device_select(struct eval *ev, struct value condition, struct value a, struct value b,
                           struct span span);
/* Both sides of an operation in the type that TileLang promotes them to. */
bool device_pair(struct eval *ev, struct value a, struct value b, struct span span,
                 const struct expr *pair[2]);
const struct expr *device_cast(struct eval *ev, struct dtype type, const struct expr *e);
/* buffer[index]: a load when all dimensions have an index, else a region. */
struct value device_subscript(struct eval *ev, struct buffer *buffer, struct value index,
                              const struct ast_expr *e);
/* The type of buffer[index]. */
struct dtype device_element_type(const struct buffer *buffer, const struct expr *const *index);
/* Does an index have a part that stands for several elements? */
bool device_has_slice(const struct value *index);
/* A V_REGION of such an index; V_ERROR after an error. */
struct value device_region(struct eval *ev, struct buffer *buffer, const struct value *index,
                           struct span span);
/* A vector of equal elements, as many as the region has. */
const struct expr *device_broadcast(struct eval *ev, const struct expr *e,
                                    const struct region_value *region);
/* Index expressions of an element; false after an error. */
bool device_index(struct eval *ev, const struct buffer *buffer, struct value index,
                  struct span span, const struct expr *out[MAX_RANK]);

/* Flat number of the thread in its block: x fastest. */
const struct expr *trace_flat_thread(struct eval *ev, const struct launch *launch);

/* trace.c */
/* A name that no other buffer or variable of the program has. */
sym_t trace_name(struct eval *ev, sym_t wanted);
/* Names a buffer that is used before an assignment has given it a name. */
void trace_use(struct eval *ev, struct buffer *buffer);
/* Appends a statement to the current block; NULL after an error (outside a launch, too many). */
struct stmt *trace_stmt(struct eval *ev, enum stmt_kind kind, struct span span);
/* The trace when inside T.Kernel, else NULL with E0213 about `what`. */
struct trace *trace_require(struct eval *ev, struct span span, const char *what);
enum flow trace_for(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                    struct value loop);
/* Arm number `arm` of an `if` statement, whose condition the device decides. */
struct branch {
	const struct ast_stmt *st;
	uint32_t arm;
	const struct expr *condition;
};
enum flow trace_if(struct eval *ev, struct frame *frame, const struct branch *branch);
enum flow trace_while(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                      const struct expr *condition);
enum flow trace_launch(struct eval *ev, struct frame *frame, const struct ast_with_item *item,
                       const struct launch_value *launch, const struct ast_body *body);
/* `name: annotation` without a value: types a parameter of an eager kernel. */
bool trace_annotation(struct eval *ev, struct frame *frame, const struct ast_stmt *st);
bool trace_store(struct eval *ev, struct buffer *buffer, struct value index, struct value value,
                 struct span span);
/* What a name gets: device expressions that read memory become LET variables, buffers get their
 * names. */
struct value trace_named(struct eval *ev, sym_t name, struct value value, struct span span);
/*
 * Builds the kernel's tile program. `frame`: of the call that binds an eager kernel's host
 * parameters, NULL for a prim_func.
 */
void trace_kernel(struct eval *ev, struct kernel *kernel, const struct function *function,
                  struct frame *frame);

/* host_device.c: the one name of a module that is known by several */
const char *module_alias(const char *path);

/* Around the body of a loop: for break and continue. `loop` is INSIDE_HOST_LOOP or
 * INSIDE_DEVICE_LOOP; what was before is given to trace_leave_loop. */
struct inside trace_enter_loop(struct eval *ev, int loop);
void trace_leave_loop(struct eval *ev, struct inside outer);
/* break or continue in a kernel. */
enum flow trace_exit(struct eval *ev, const struct ast_stmt *st);

/* trace_blocks.c */
/* A body of the file that becomes a block of the program. */
struct body_run {
	struct block *block;
	const struct ast_body *body;
	uint64_t serial;  /* device values bound after this end with the block */
	struct span span; /* of its head */
};
enum flow trace_run_block(struct eval *ev, struct frame *frame, const struct body_run *run);
/* T.grid: one serial loop inside the other. */
enum flow trace_nest(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                     const struct loop_value *loop);
/* T.thread_binding and T.Persistent. */
enum flow trace_bound_loop(struct eval *ev, struct frame *frame, const struct ast_stmt *st,
                           const struct loop_value *loop);
/* `with T.ws(0):` and its kin. */
enum flow trace_context(struct eval *ev, struct frame *frame, const struct ast_with_item *item,
                        const struct context_value *context, const struct ast_body *body);
/* A call whose value nobody takes: an EVALUATE statement when it may have an effect. */
bool trace_evaluate(struct eval *ev, struct value value, struct span span);
/* lang_ops.c */
/* An operand before its extents are settled. */
struct tile_operand {
	struct region region;
	bool is_point; /* A[i, j]: a corner, whose extents the other side gives */
};
/* Buffers, parts of buffers and points; false after an error. */
bool lang_operand(struct eval *ev, const struct call *call, const struct arg *arg,
                  struct tile_operand *out);
/* Extents of a point from the other side: aligned at the end, ones in front. */
bool lang_extents_from(struct eval *ev, struct tile_operand *point,
                       const struct tile_operand *other);
/* Both operands of a copy, with their extents; false after an error. */
bool lang_pair(struct eval *ev, const struct call *call, struct region *src, struct region *dst);
/* A statement for the operation, where operations may stand; NULL after an error. */
struct op *lang_new_op(struct eval *ev, const struct call *call, enum op_kind kind);

/* lang_args.c: the arguments of operations, read by a table */
enum param_kind {
	PARAM_UNREAD,    /* accepted, says nothing here */
	PARAM_TILE,      /* a buffer, a part of one or a point: struct region */
	PARAM_EXPR,      /* a number or a device value: const struct expr * */
	PARAM_CONDITION, /* the same; one that never holds becomes NULL */
	PARAM_BARRIER,   /* an element of a barrier buffer, or the buffer: const struct expr * */
	PARAM_INT,       /* a host integer: int64_t; None leaves what is there */
	PARAM_BOOL,      /* anything with a truth on the host: int64_t, 0 or 1 */
	PARAM_POLICY,    /* a member of T.GemmWarpPolicy: int64_t */
	PARAM_REFUSED,   /* an option that only False and None may be given for */
};

/* How one slot of a call is read. */
struct op_param {
	enum param_kind kind;
	size_t offset;    /* of the field in struct op */
	bool may_be_none; /* None counts as not given */
};

/* PARAM(TILE, gemm.a): a slot that fills that field of struct op. */
#define PARAM(kind, field) \
	{ \
		PARAM_##kind, offsetof(struct op, as.field), false \
	}
/* The same for a slot that may be None. */
#define PARAM_OR_NONE(kind, field) \
	{ \
		PARAM_##kind, offsetof(struct op, as.field), true \
	}

/*
 * Fills the fields of `op`, whose kind is set, from the slots; what is not given leaves its field
 * as it is. False after an error: DIAG_E0202 about a wrong value, E0204 about a refused option.
 */
bool lang_read(struct eval *ev, const struct call *call, const struct op_param params[MAX_SLOTS],
               struct op *op);
/* Appends the operation as a statement; V_NONE, or V_ERROR after an error (see lang_new_op). */
struct value lang_put(struct eval *ev, const struct call *call, const struct op *op);
/* Both in turn. */
struct value lang_read_and_put(struct eval *ev, const struct call *call,
                               const struct op_param params[MAX_SLOTS], struct op *op);
/* Was the argument given, as something else than None? */
bool lang_is_given(const struct call *call, uint32_t slot);
/* device_expr of a required slot; NULL after an error. */
const struct expr *lang_slot_expr(struct eval *ev, const struct call *call, uint32_t slot,
                                  const struct dtype *hint);
/*
 * Turns a dimension of the buffer that may count from the end (-1 is the last) into 0, 1, ...;
 * false after an error, E0307 at the slot's argument, or at the call when it was not given.
 */
bool lang_dim(struct eval *ev, const struct call *call, uint32_t slot, const struct buffer *buffer,
              int64_t *dim);

/* lang_calls.c */
/* A call of a device function by name, with any arguments; V_ERROR after an error. */
struct value lang_device_call(struct eval *ev, const struct call *call, const char *name,
                              struct dtype type);
/* An argument of such a call: numbers, addresses of buffers, texts. NULL after an error. */
const struct expr *lang_call_arg(struct eval *ev, struct value value, struct span span);
/* The address of an element. */
const struct expr *lang_address(struct eval *ev, const struct expr *load);

/* lang_memory.c */
/* "shared", "shared.dyn", "local.fragment", ...; false when it is none. */
bool lang_scope(struct str text, enum scope *scope);
/* The buffer whose memory the argument `data=` is (A, or A.data), or NULL. */
struct buffer *lang_data(const struct arg *data);
/* The same memory under another shape or type. */
struct value lang_alias(struct eval *ev, const struct call *call, struct buffer *buffer,
                        const struct tensor_type *type);

/* lang_scalars.c */
/* T.float16(x): a cast, or a constant of that type. */
struct value call_dtype(struct eval *ev, struct dtype type, struct call *call);

/* lang_shapes.c */
struct value lang_attribute(struct eval *ev, sym_t name, struct span span);
struct value lang_tensor_subscript(struct eval *ev, const struct builtin *builtin,
                                   struct value index, struct span span);

/* A new tile of the launch; the assignment gives it its name. */
struct value lang_new_buffer(struct eval *ev, const struct call *call, enum scope scope,
                             const struct tensor_type *type);
/* Extents that a shape argument lists; false after an error. */
bool lang_shape(struct eval *ev, struct value shape, struct span span, struct tensor_type *out);

/* eager.c */
/* Is the parameter a tensor, by its annotation in the signature or in the body? */
bool eager_is_tensor(const struct eval *ev, const struct ast_stmt *def, sym_t name);
bool eager_has_tensors(const struct eval *ev, const struct ast_stmt *def);
/* In a probe: what a tensor's known extents tell of the sizes that its annotation names. */
void eager_note_sizes(struct eval *ev, sym_t name, const struct tensor_type *type);
/* Finds the sizes of T.const that the tensors' shapes tell. */
void eager_probe(struct eval *ev, const struct function *function, const struct frame *frame);
void eager_note_tensors(struct eval *ev, const struct function *function, struct frame *frame);
bool eager_check_tensors(struct eval *ev);
/* Adds the sizes that T.const names in the body to the parameters of a kernel that was not built.
 */
void eager_declare_sizes(struct eval *ev, struct kernel *kernel);

/* assume.c */
/* Reads all of --assume; false after an error. */
bool assume_read(struct eval *ev);
/* Narrows a new variable by the assumptions about its name. */
void assume_of_var(const struct eval *ev, struct var *var);

/* imports.c */
void exec_imports(struct eval *ev, struct frame *frame, const struct ast_stmt *st);

/* decorators.c */
/* Pass configurations of jit decorators, into the program. */
void decorators_pass_configs(struct eval *ev, const struct kernel *kernel,
                             struct tile_program *program);
bool decorators_have_configs(const struct eval *ev, const struct kernel *kernel);
/* Entry --config of the function's autotune configurations: parameters to values, or NULL. */
const struct dict *decorators_chosen_config(struct eval *ev, const struct function *function,
                                            struct frame *frame);
void decorators_list_configs(struct eval *ev, const struct kernel *kernel,
                             struct config_texts *out);

/* kernels.c */
/* The last name of a decorator: `@tilelang.jit(out_idx=-1)` gives jit; 0 when it has none. */
sym_t decorator_name(const struct ast_expr *e);
bool find_kernels(struct eval *ev);
struct kernel *kernel_of(const struct eval *ev, const struct ast_stmt *def);
bool def_has_kernel(const struct eval *ev, const struct ast_stmt *def);
bool decorator_is(const struct eval *ev, const struct ast_def *def, const char *name);
/*
 * Calls a factory or an eager kernel: `given` tells which parameters the call has bound in `frame`;
 * --set goes before them, defaults come last. When parameters stay open its kernels remember which,
 * and nothing runs.
 */
struct value call_factory(struct eval *ev, const struct function *function, struct frame *frame,
                          bool *given, struct span span);
/* The kernel is about to be built inside `frame`: takes the parameters of the calls around it. */
void kernel_started(struct eval *ev, struct kernel *kernel, const struct frame *frame);
/* Calls factories that nothing in the file called. */
void run_uncalled(struct eval *ev);
/* The last --set of this name, or NULL. */
const struct frontend_set *find_set_named(const struct eval *ev, const char *name);
struct value set_value(struct eval *ev, const struct frontend_set *set);

#endif
