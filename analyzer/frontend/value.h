/*
 * value: what names stand for while a kernel file is evaluated.
 *
 * Host values (numbers, strings, containers, functions) fold as in Python, with integers of 64
 * bits. Device values (EXPR, BUFFER, REGION) exist only at run time and become tile program. An
 * OPAQUE value is one that the file alone does not settle; it remembers where it came from.
 */
#ifndef TL_FRONTEND_VALUE_H
#define TL_FRONTEND_VALUE_H

#include "analyzer/frontend/ast.h"
#include "analyzer/tile/tile.h"

#include "base/map.h"

enum value_kind {
	V_ERROR, /* stands where an error was reported; swallowed silently */
	V_NONE,
	V_BOOL,
	V_INT,
	V_FLOAT,
	V_STR,
	V_TUPLE,
	V_LIST,
	V_SET,
	V_DICT,
	V_RANGE,
	V_SLICE,
	V_ELLIPSIS,
	V_FUNCTION, /* def or lambda with its closure */
	V_BUILTIN,  /* function of a table: len, T.copy */
	V_METHOD,   /* builtin method bound to its object */
	V_MODULE,
	V_DTYPE,
	V_ARGUMENTS, /* an argparse parser and what it parses: names to defaults, in `dict` */
	V_POLICY,    /* T.GemmWarpPolicy.X: `integer` is enum gemm_policy */
	V_OPAQUE,
	V_KERNEL, /* what a factory returns: a kernel that was evaluated */
	V_TENSOR, /* T.Tensor(shape, dtype): a parameter's type */
	V_EXPR,
	V_BUFFER,
	V_REGION,
	V_LOOP,    /* T.Parallel(...) and its kin, before `for` takes it */
	V_LAUNCH,  /* T.Kernel(...), before `with` takes it */
	V_LAYOUT,  /* T.Layout(...), T.Fragment(...), make_swizzled_layout(...) */
	V_CONTEXT, /* what else a `with` in a kernel may take: T.ws(0), T.attr(...); `context` NULL: it
	              changes nothing */
};

struct value;
struct frame;
struct builtin;
struct kernel;

struct sequence {
	struct value *p;
	uint32_t n, cap;
};

struct dict_entry;
struct dict {
	struct dict_entry *p; /* in insertion order */
	uint32_t n, cap;
	struct map first; /* hash of a key -> 1 + the first entry with that hash */
};

struct host_range {
	int64_t begin, end, step;
};

/* Shape of a host tensor. */
struct tensor_dims {
	uint32_t rank;
	int64_t extent[MAX_RANK];
};

struct opaque {
	const char *text; /* where it comes from, as the file writes it: "torch.cuda.device_count()" */
	struct span span;
	const struct tensor_dims *dims; /* of a tensor whose shape is known, else NULL */
};

struct function {
	const struct ast_stmt *def; /* NULL for a lambda */
	const struct ast_expr *lambda;
	const struct ast_params *params;
	struct frame *closure;
	struct value *defaults; /* one a parameter; V_ERROR kind where there is none */
	bool is_macro;
	bool is_traced;        /* its body is kernel language: `range` is T.serial there */
	bool is_factory;       /* a kernel is defined inside it */
	struct kernel *kernel; /* set when calling it gives this kernel */
};

struct method {
	struct value *self;
	const struct builtin *builtin;
};

struct tensor_type {
	uint32_t rank;
	const struct expr *shape[MAX_RANK], *strides[MAX_RANK];
	bool has_strides;
	struct dtype type;
};

/* Part of a buffer. A point has one index a dimension and no extents. */
struct region_value {
	const struct buffer *buffer;
	const struct expr *min[MAX_RANK];
	int64_t extent[MAX_RANK];
};

struct loop_value {
	enum loop_kind kind;
	uint32_t n;
	const struct expr *begin[MAX_RANK]; /* first value; NULL: 0 */
	const struct expr *extent[MAX_RANK];
	int64_t step;
	int64_t num_stages, coalesced_width;
	struct span span;
	struct span extent_span[MAX_RANK];
	const struct expr *bound; /* T.thread_binding: the index that the target names; no loop */
	/*
	 * T.Persistent: the targets are `coords`, guarded by `guard`, and the loop variable is `wave`.
	 */
	const struct var *wave;
	const struct expr *coords[MAX_RANK], *guard;
	uint32_t n_coords;
};

struct launch_value {
	uint32_t n_grid;
	const struct expr *grid[3];
	int64_t threads[3];
	struct span span;
};

/*
 * Where the elements of a shape live, as the file says it: a layout of bytes or of threads and
 * slots, or, before it meets a buffer, numbers for each index.
 */
struct layout_value {
	uint32_t rank;
	int64_t shape[MAX_RANK];      /* -1: a symbol */
	const struct layout *layout;  /* NULL: `map` */
	const struct layout_map *map; /* its places count elements */
};

/* A block that is no launch. */
struct context_value {
	const struct expr *condition; /* which threads run it; NULL: all */
	const struct value *bound;    /* what `as` binds; NULL: nothing */
};

struct value {
	enum value_kind kind;
	union {
		bool boolean;
		int64_t integer;
		double number;
		struct str string;
		struct sequence *sequence;
		struct dict *dict;
		const struct host_range *range;
		struct value *slice; /* three values: begin, end, step */
		struct function *function;
		const struct builtin *builtin;
		const struct method *method;
		sym_t module;
		struct dtype dtype;
		const struct opaque *opaque;
		struct kernel *kernel;
		const struct tensor_type *tensor;
		const struct expr *expr;
		struct buffer *buffer;
		const struct region_value *region;
		const struct loop_value *loop;
		const struct launch_value *launch;
		const struct layout_value *layout;
		const struct context_value *context;
	} as;
};

struct dict_entry {
	struct value key, value;
	uint32_t next; /* 1 + the next entry whose key has the same hash, 0 at the end */
};

#define VALUE_ERROR ((struct value){ .kind = V_ERROR })
#define VALUE_NONE ((struct value){ .kind = V_NONE })
#define VALUE_BOOL(b) ((struct value){ .kind = V_BOOL, .as.boolean = (b) })
#define VALUE_INT(i) ((struct value){ .kind = V_INT, .as.integer = (i) })
#define VALUE_FLOAT(x) ((struct value){ .kind = V_FLOAT, .as.number = (x) })
#define VALUE_STR(s) ((struct value){ .kind = V_STR, .as.string = (s) })
#define VALUE_EXPR(e) ((struct value){ .kind = V_EXPR, .as.expr = (e) })

/* "int", "tuple", "a device expression": how messages call the value's type. */
const char *value_type_text(struct value value);
struct value value_sequence(struct arena *arena, enum value_kind kind);
struct value value_text(struct arena *arena, const char *text, size_t n); /* copies */
bool value_is_sequence(struct value value);                               /* tuple, list or set */
bool value_is_device(struct value value); /* depends on the device: EXPR, REGION, BUFFER */
/* The number that an int, bool or float is. */
bool value_number(struct value value, double *number);
/* int or bool. */
bool value_int(struct value value, int64_t *integer);
/* Python's ==; false for what cannot be compared. `depth` bounds nesting. */
bool value_equal(struct value a, struct value b, uint32_t depth);
/* The entry of a key, or NULL. */
struct dict_entry *dict_find(struct dict *dict, struct value key);
void dict_set(struct arena *arena, struct dict *dict, struct value key, struct value value);
void dict_remove(struct arena *arena, struct dict *dict, struct dict_entry *entry);
/* str() of Python (is_repr: repr()); what has no text prints as <kind>. */
void value_print(struct buf *out, struct value value, bool is_repr, uint32_t depth);
/* JSON text; types and unknown things become strings. */
void value_json(struct buf *out, struct value value, uint32_t depth);
int64_t range_count(const struct host_range *range);

#endif
