/*
 * lanes: values of device expressions for many lanes at once (threads of a block in the
 * simulator, iterations of a parallel loop in the reference).
 *
 * A lane's value is a cell: a double for floating types, an int64 for all others. An expression
 * that no lane-dependent variable or load enters has one cell for all lanes. Values that are not
 * there (a register never written, an index out of bounds, a zero divisor) do not stop the
 * evaluation: they poison their lane, and only what a select or a short-circuit operator really
 * uses carries it on.
 *
 * Sub-expressions are remembered: one is computed again only when a variable or load below it
 * changed.
 */
#ifndef TL_SIM_LANES_H
#define TL_SIM_LANES_H

#include "analyzer/tile/tile.h"

union cell {
	int64_t i;
	double f;
};

enum poison {
	POISON_UNINIT = 1,  /* a value that nothing wrote */
	POISON_BOUNDS = 2,  /* an index outside its buffer, array or table */
	POISON_DIVISOR = 4, /* integer division by zero */
	POISON_UNKNOWN = 8, /* a builtin that is not modelled */
};
/* The words for the lowest set bit. */
const char *poison_text(uint8_t poison);

/* A value for every lane; valid until the next call for the same expression. */
struct lanes {
	const union cell *cells;
	const uint8_t *poison; /* NULL: none; else one of each cell */
	uint32_t stride;       /* 0: one cell for all lanes, 1: cells[lane] */
	bool is_float;
};
static inline union cell lanes_at(const struct lanes *lanes, uint32_t lane)
{
	return lanes->cells[lane * lanes->stride];
}
static inline uint8_t lanes_poison(const struct lanes *lanes, uint32_t lane)
{
	return lanes->poison ? lanes->poison[lane * lanes->stride] : 0;
}

struct lane_eval;

/*
 * A LOAD or REG to be read: `index` has one entry a dimension; fills out[0 .. n), ORs into poison[0
 * .. n).
 */
struct lane_load {
	const struct expr *load;
	const struct lanes *index;
	uint32_t n; /* 1, or the number of lanes when an index or the load itself depends on the lane */
	union cell *out;
	uint8_t *poison;
};
struct lane_loader {
	void *user;
	bool (*is_varying)(void *user,
	                   const struct expr *load); /* even under an index that is uniform */
	void (*load)(void *user, const struct lane_load *load);
};

/*
 * `max_lanes` bounds lane_eval_set_lanes. `exact`: integers do not wrap and floating results are
 * not rounded, except by casts to types other than float32 and float64 (the reference); else every
 * result is rounded to its type.
 */
struct lane_eval *lane_eval_open(struct arena *arena, const struct expr_pool *pool,
                                 uint32_t max_lanes, bool exact, struct lane_loader loader);
void lane_eval_set_lanes(struct lane_eval *eval, uint32_t n_lanes);
uint32_t lane_eval_n_lanes(const struct lane_eval *eval);
/* All variables start as the integer 0. */
void lane_eval_set(struct lane_eval *eval, const struct var *var, union cell value);
void lane_eval_set_int(struct lane_eval *eval, const struct var *var, int64_t value);
/* One value a lane; `cells` stays the caller's and must not change without another call. */
void lane_eval_set_lane_values(struct lane_eval *eval, const struct var *var,
                               const union cell *cells);

/* The variable has no value: what uses it is poisoned with POISON_UNKNOWN. */
void lane_eval_set_unknown(struct lane_eval *eval, const struct var *var);

struct lanes lane_eval_run(struct lane_eval *eval, const struct expr *e);
/* Uniform integer: the value of lane 0. */
int64_t lane_eval_int(struct lane_eval *eval, const struct expr *e);

/* `cell` of type `from` (floating or not) as it is after a store into an element of `to`. */
union cell cell_convert(union cell cell, bool from_float, struct dtype to, bool exact);
/* What is in memory after an atomic operation of this kind; cells of the type, rounded to it. */
union cell cell_combine(struct dtype type, enum atomic_kind kind, union cell old, union cell value);
/* Storage bits to a cell and back. */
union cell cell_decode(struct dtype type, uint64_t bits);
uint64_t cell_encode(struct dtype type, union cell cell);

#endif
