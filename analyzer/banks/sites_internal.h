/*
 * sites_internal: one shared-memory instruction with all that decides its executions, and their
 * sum.
 *
 * An execution is given by the block, the loop variables around the instruction (both called
 * dimensions here) and the warp. A box is a range of every dimension. Boxes are halved until every
 * condition is the same over a box or depends on the thread alone, and until the dimensions that
 * move the lanes against each other have one value; then the warps are evaluated once and
 * multiplied by the box's size.
 */
#ifndef TL_BANKS_SITES_INTERNAL_H
#define TL_BANKS_SITES_INTERNAL_H

#include "analyzer/banks/sites.h"
#include "analyzer/banks/traffic.h"

enum { MAX_DIMS = 60, MAX_CONDITIONS = 60 };

/* A block or loop variable and the range of the present box. */
struct site_dim {
	const struct var *var;
	int64_t low, high;
	bool moves_lanes; /* the address depends on it in more than a shift of all lanes alike */
};

struct site_condition {
	const struct expr *e;
	struct expr_code *code;
	uint64_t dims; /* bit i: it reads dims[i] */
	/* where it fails, cp.async reads nothing and writes zeros: the lane stays active */
	bool is_source;
};

/* The worst execution seen, for the reason. */
struct site_worst {
	struct bank_access access; /* offsets from the piece's start */
	struct bank_result result;
	int64_t sources[32];
	uint32_t warp;
	int64_t meet_bytes; /* explain's: between the first two lanes that meet in shared memory */
};

struct site_query {
	const struct warp_program *program;
	struct bank_access access; /* operation and sizes */
	const struct expr *offset; /* bytes, as written */
	/* bytes without the terms that shift all lanes alike; NULL: not modelled */
	struct expr_code *address;
	bool is_global;           /* 32-byte sectors are counted in place of wavefronts */
	struct expr_code *source; /* cp.async through L1: bytes in global memory, likewise */
	struct site_dim dims[MAX_DIMS];
	uint32_t n_dims;
	struct site_condition conditions[MAX_CONDITIONS];
	uint32_t n_conditions;
	int64_t *values; /* by var id: the point that is evaluated */
	/* The sums. */
	int64_t executions, wavefronts, wavefronts_max, ideal, sectors;
	int32_t ways;
	bool has_excess;
	struct site_worst worst;
	uint32_t n_leaves;
	bool gave_up; /* more boxes than MAX_LEAVES: the sums are incomplete */
};

/* Bounds of an expression when every dimension is within its box; sound, not always tight. */
struct site_bounds {
	int64_t min, max;
};
struct site_bounds site_bounds_of(const struct site_query *query, const struct expr *e);

/* Sums over the whole box; fills the sums of the query. */
void site_count(struct site_query *query);

/* ---- the walk (sites.c) ---- */

/* A condition that holds where the instruction is reached. */
struct guard {
	const struct expr *e;
	bool negated;
};

/* The way to the present node of the program. */
struct walker {
	const struct warp_program *program;
	struct arena *arena;
	struct access_table *table;
	int64_t *values; /* by var id */
	vec_of(const struct wnode *) loops;
	vec_of(struct guard) guards;
	uint32_t n_whiles;       /* around the present node */
	bool unknown_count;      /* some count around a shared access is not known */
	struct traffic *traffic; /* set: every instruction goes there and not into the table */
};
/* Walks the body; the table says whether over the grid or in one block. */
void site_walk(struct walker *walker);
/* Blocks, loops and guards around the present node, and the instruction's own predicate (may be
 * NULL). */
void site_surround(const struct walker *walker, struct site_query *query,
                   const struct expr *predicate);
/* Bytes of an address in global memory. */
const struct expr *site_global_bytes(const struct walker *walker, const struct waddr *addr);
/* Code for a lane's address without the terms in which no thread number stands; NULL when it cannot
 * be evaluated. */
struct expr_code *site_lane_bytes(const struct walker *walker, struct site_query *query,
                                  const struct expr *bytes);

/* ---- traffic.c ---- */

/* Adds the instruction at nodes[at] of the block, where the walk stands, to walker->traffic. */
void traffic_visit(struct walker *walker, const struct wblock *block, uint32_t at);

#endif
