/*
 * swizzle_search: the layout of one shared tile that serves a set of warp accesses best.
 *
 * Each access is a table: which element of the tile each (step, lane, slot) touches; a step is one
 * warp in one iteration with all its slots, which are cut into instructions of at most `bytes` a
 * lane, narrower where the layout does not keep a lane's elements together. The cost of a layout is
 * the sum over the accesses of weight x wavefronts, counted by the bank model (banks.h).
 *
 * Candidates, in order of preference between equals: row-major and column-major; panels with the
 * 32-, 64- and 128-byte swizzles of TMA; every Swizzle<B,M,S>; layouts that are linear over F2
 * (docs/swizzles.md); paddings, also with every swizzle. The search ends early when a candidate
 * reaches the lower bound, which holds for every layout whatever its form.
 *
 * Related work: the generic swizzling of Triton's linear layouts, arXiv 2505.23819.
 */
#ifndef TL_LAYOUT_SWIZZLE_SEARCH_H
#define TL_LAYOUT_SWIZZLE_SEARCH_H

#include "analyzer/banks/banks.h"
#include "analyzer/layout/f2.h"

enum { SWIZZLE_LANES = 32, SWIZZLE_MAX_ACCESSES = 16, SWIZZLE_MAX_SLOTS = 256 };

struct tile_access {
	enum bank_op op;     /* BANK_LD, BANK_ST, BANK_LDMATRIX, BANK_STMATRIX or BANK_CP_ASYNC */
	uint32_t bytes;      /* of the widest instruction a lane; 16 for the matrix ops */
	uint32_t n_matrices; /* matrix ops: lanes 0 .. 8 * n - 1 give the row addresses */
	int64_t weight;      /* times that the steps run */
	int64_t n_steps;
	uint32_t n_slots; /* elements of a lane in a step; matrix ops: the 16 bytes of its row */
	/* [step][lane][slot]: row-major element number; -1 in all slots of an inactive lane */
	const int32_t *elems;
};

struct swizzle_problem {
	uint32_t rank;
	int64_t shape[MAX_RANK];
	uint32_t elem_bits; /* 8, 16, 32, 64 or 128 */
	uint32_t n_accesses;
	struct tile_access accesses[SWIZZLE_MAX_ACCESSES];
	int64_t max_bytes;   /* of the layout; 0: no limit, padding may take what it needs */
	int64_t max_layouts; /* candidates to count exactly; 0: no limit */
	int64_t known_cost; /* of a layout that is there already: others must not cost more, and none is
	                        looked for when this is the bound; 0: there is none */
	int64_t budget;     /* of the search over F2, vectors looked at; 0: the default of 2^20 */
};

/* Warp-level instructions of an access under a layout; wavefronts -1 when it cannot be served
 * (matrix ops whose rows the layout breaks). */
struct swizzle_count {
	int64_t executions, wavefronts, ideal;
	uint32_t bytes; /* a lane, as the layout allows */
};

struct swizzle_candidate {
	const struct layout *layout; /* NULL: none found */
	int64_t cost;                /* sum of weight x wavefronts */
	struct swizzle_count counts[SWIZZLE_MAX_ACCESSES];
};

struct swizzle_answer {
	struct swizzle_candidate row_major;
	struct swizzle_candidate best;
	struct swizzle_candidate best_simple; /* of one Swizzle<B,M,S> on rows with any padding */
	int64_t bounds[SWIZZLE_MAX_ACCESSES]; /* no layout serves access i with fewer wavefronts */
	int64_t bound;                        /* of the cost; at least the weighted sum of bounds */
	int64_t linear_bound; /* no layout that is linear over F2 costs less; at least `bound` */
	bool is_linear;       /* all accesses are linear over F2, so such layouts were searched */
	bool widths_compete;  /* no layout serves two of the accesses at their full widths */
	int64_t n_layouts;    /* counted */
};

/*
 * Lives in `arena`. Without a layout that serves all accesses (matrix ops along rows and along
 * columns of one tile) answer->best.layout is NULL. Time: candidates x elements of the accesses.
 */
void swizzle_search(struct arena *arena, const struct swizzle_problem *problem,
                    struct swizzle_answer *answer);

/* Exact cost of one layout; false when some access cannot be served. */
bool swizzle_weigh(const struct swizzle_problem *problem, const struct layout *layout,
                   struct swizzle_candidate *out);

/* ---- the construction over F2 ---- */

/*
 * An access as a linear map: columns are element numbers as bit vectors. False when the tile's
 * extents, the steps or the slots are no powers of two, a lane is inactive, or the table is not
 * linear.
 */
struct linear_access {
	uint32_t n_slot_bits, n_lane_bits, n_step_bits;
	uint64_t slots[16], lanes[5], steps[32];
};
bool swizzle_linear(const struct swizzle_problem *problem, const struct tile_access *access,
                    struct linear_access *out);

/*
 * Wavefronts of the access under every injective layout, at instructions of `bytes` a lane: at
 * least this.
 */
int64_t swizzle_bound(const struct swizzle_problem *problem, const struct tile_access *access,
                      uint32_t bytes);
#endif
