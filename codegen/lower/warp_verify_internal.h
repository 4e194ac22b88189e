/*
 * warp_verify_internal: what the files of the warp program's verifier share.
 *
 * warp_verify.c           the walk, threads that act together, copies, the header
 * warp_verify_operands.c  variables, slots, addresses, sizes
 */
#ifndef TL_LOWER_WARP_VERIFY_INTERNAL_H
#define TL_LOWER_WARP_VERIFY_INTERNAL_H

#include "codegen/lower/warp.h"

enum { WVERIFY_SAMPLES = 12, WVERIFY_MAX_NESTED = 128 };

/* A condition around an instruction. */
struct wguard {
	const struct expr *e;
	bool negated;
	bool is_extent; /* a loop's trip count or a while's condition: matters to convergence only */
};

/* What begins, commits and awaits copies and wgmma, in program order. */
struct copy_event {
	enum wop_kind kind;
	struct span span;
	uint32_t at;         /* position in program order */
	uint32_t loop_begin; /* position where the outermost loop around it begins; `at` without one */
};

struct wverifier {
	struct warp_program *program;
	struct diag_list *diags;
	const struct wnode *loops[WVERIFY_MAX_NESTED];
	uint32_t n_loops;
	struct wguard guards[WVERIFY_MAX_NESTED];
	uint32_t n_guards;
	int64_t *values;    /* by var id */
	struct map scalars; /* var id -> the variable: symbols and parameters */
	vec_of(struct copy_event) copies;
	uint32_t at, loop_begin;
	struct span span;             /* of the node that is checked */
	const struct expr *predicate; /* its, or NULL */
	bool reported_scope;          /* at this node */
};

#define WVERIFY_REPORT(verifier, code, ...) \
	diag_report((verifier)->diags, DIAG_##code, (verifier)->span, __VA_ARGS__)

/* Variables have a value here, registers are read at constant slots. NULL is fine. */
void wverify_expr(struct wverifier *verifier, const struct expr *e);
void wverify_regs(struct wverifier *verifier, const struct wregs *regs);
void wverify_addr(struct wverifier *verifier, const struct winst *inst,
                  const struct woperand_info *info);
/* Bytes, slots, types and numbers of the instruction's operands. */
void wverify_sizes(struct wverifier *verifier, const struct winst *inst);
/*
 * Gives every variable but tid a value: lower ends for sample 0, upper ends for 1, then any, from
 * `state`.
 */
void wverify_set_sample(struct wverifier *verifier, int sample, uint64_t *state);

#endif
