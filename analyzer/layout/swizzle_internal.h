/* swizzle_internal: what the files of the swizzle search share. */
#ifndef TL_LAYOUT_SWIZZLE_INTERNAL_H
#define TL_LAYOUT_SWIZZLE_INTERNAL_H

#include "analyzer/layout/swizzle_search.h"

/* Steps of an access that cost the same: one of each kind, and how many there are. */
struct step_classes {
	int64_t n;
	const int32_t *steps;
	const int64_t *times;
};

/* Where a step starts, and (as a hash) what it looks like from there. */
struct step_form {
	uint64_t shape;
	int64_t start;
};
struct step_form *swizzle_step_forms(struct arena *arena, const struct tile_access *access,
                                     const int32_t *offsets);
/*
 * Two steps cost the same with any XOR term below bit `period_log` (at least 7) when one is the
 * other moved by a multiple of 2^period_log bytes: the move touches neither a bit that the term
 * reads nor a bank.
 */
struct step_classes *swizzle_step_classes(struct arena *arena, const struct tile_access *access,
                                          const struct step_form *forms, uint32_t period_log);

/* Which slots of a lane form one instruction, and where in it each is. */
struct grouping {
	uint32_t bytes; /* of an instruction, a lane; 0: the slots form none of that width */
	uint32_t n_groups;
	uint8_t group[SWIZZLE_MAX_SLOTS]; /* by slot: the number of its instruction */
	uint8_t place[SWIZZLE_MAX_SLOTS]; /* by slot: bytes from the instruction's first */
	uint8_t first[SWIZZLE_MAX_SLOTS]; /* by instruction: one of its slots */
};

/* A layout as byte offsets of all elements. */
struct offset_table {
	const int32_t *offsets; /* row-major */
	struct xor_term term;   /* applied to them; n_bits 0: none */
	bool is_linear;         /* it and the access are linear over F2: all steps cost the same */
	const struct step_classes *classes; /* of the access; NULL: each step by itself */
	/* By log2 of the bytes: of the access under the offsets without the term; NULL entries: not
	 * known. NULL: none is known. */
	const struct grouping *const *groupings;
	/* By log2 of the bytes: wavefronts that every instruction of the access takes, at least; NULL:
	 * not known. */
	const int64_t *least;
};

/* Instructions of `bytes` a lane; false when the slots form none. */
bool swizzle_group(const struct swizzle_problem *problem, const struct tile_access *access,
                   const struct offset_table *table, uint32_t bytes, struct grouping *out);
/* False when the access cannot be served (wavefronts -1), or when it takes more than `limit`
 * wavefronts, which is found early. */
bool swizzle_count_access(const struct swizzle_problem *problem, const struct tile_access *access,
                          const struct offset_table *table, int64_t limit,
                          struct swizzle_count *out);
int64_t swizzle_n_elems(const struct swizzle_problem *problem);
/* Byte offsets of `layout`, row-major; `out` has an entry for each element. */
void swizzle_fill_offsets(const struct layout *layout, int32_t *out);
int swizzle_log2(int64_t value); /* -1: no power of two */
int64_t problem_elem_bytes(const struct swizzle_problem *problem);

/* ---- linear accesses over F2; docs/swizzles.md ---- */

enum { BANK_BITS = 5, WORD_LOG = 2, MAX_FLAG = 8 };

/* What a layout must respect of an access, in atoms. */
struct f2_access {
	struct f2_space slots;  /* of one lane */
	struct f2_space others; /* lanes and steps: they may not move a slot inside its instruction */
	bool is_in_order;       /* the instruction's elements keep their order */
	uint32_t min_level, max_level; /* an instruction takes 2^level atoms a lane */
};

struct f2_tile {
	const struct swizzle_problem *problem;
	const struct linear_access *accesses;
	uint32_t atom_log;   /* bytes of an atom: the element, or 4 of it when it is wider */
	uint32_t inner;      /* bits of atoms inside an element */
	uint32_t word_bits;  /* bits of atoms inside a word */
	uint32_t n_bits;     /* bits of atom numbers */
	uint32_t n_accesses; /* the first of the problem's that take part */
	struct f2_access spaces[SWIZZLE_MAX_ACCESSES];
};
void swizzle_open_tile(const struct swizzle_problem *problem, const struct linear_access *accesses,
                       struct f2_tile *out);
bool swizzle_is_in_order(const struct tile_access *access);

/* Phases of one instruction before any merge. */
uint32_t swizzle_phases(const struct tile_access *access, uint32_t bytes);

/* The atoms in the lowest bits of the offset: the first k vectors span an aligned block of 2^k. */
struct f2_flag {
	uint32_t n;
	uint64_t vectors[MAX_FLAG];
	struct f2_space fixed[MAX_FLAG]; /* offset bit i must be 0 on these */
	bool is_unique;                  /* no other flag gives these widths */
	uint32_t variant;                /* which of several flags of equal widths */
};
/* A flag that gives each access its level; false when no layout does, whatever the variant. */
bool swizzle_make_flag(const struct f2_tile *tile, const uint32_t *levels, uint32_t variant,
                       struct f2_flag *flag);

/* Banks for a flag: the map of least cost that was found. */
struct bank_answer {
	struct f2_map map;   /* atom numbers to atom offsets */
	int64_t cost, bound; /* wavefronts by weight; no layout that is linear, of these widths, costs
	                        less than `bound` */
};
/* Wavefronts by weight of any layout of these widths, at least: none of any form costs less. */
int64_t swizzle_conflict_bound(const struct f2_tile *tile, const uint32_t *levels,
                               const struct f2_flag *flag);
/* `budget`: vectors to look at; what is left is given back. False when the order that an access
 * keeps cannot be had. */
bool swizzle_choose_banks(const struct f2_tile *tile, const uint32_t *levels,
                          const struct f2_flag *flag, int64_t *budget, struct bank_answer *out);

/* What swizzle_joint finds over all widths that go together. */
struct joint_answer {
	bool found;
	struct f2_map map;    /* element numbers to byte offsets */
	int64_t cost;         /* of the map */
	int64_t bound;        /* no layout of any form costs less */
	int64_t linear_bound; /* no layout that is linear over F2 costs less */
};
/* For accesses that are all linear. `budget`: of vectors to look at; 0: out->bound alone is wanted.
 */
void swizzle_joint(const struct swizzle_problem *problem, const struct linear_access *accesses,
                   int64_t budget, struct joint_answer *out);

#endif
