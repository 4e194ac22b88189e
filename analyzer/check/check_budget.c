/*
 * budget and termination, from the structure of the program.
 *
 * termination: every thread of a block meets the same barriers, whatever the trip counts, when no
 * barrier stands under a condition or in a loop whose extent may differ between threads; waits for
 * cp.async groups end by themselves.
 */
#include "analyzer/check/check_internal.h"

enum { MAX_BLOCK_THREADS = 1024 };

/* Registers a thread can have: the target's limit, and its share of the block's register file in
 * steps of 8 (256 a warp). */
static int64_t registers_limit(const struct target *target, int64_t n_threads)
{
	int64_t n_warps = (n_threads + 31) / 32, share = target->registers_sm / n_warps / 256 * 8;

	return share < target->registers_thread_max ? share : target->registers_thread_max;
}

/* More register slots than a thread has: no error, the assembler may overlay or spill them. */
static void check_registers(struct check *check)
{
	const struct target *target = check->solution->target;
	int64_t limit = registers_limit(target, check->warp->n_threads);
	int64_t estimate = warp_registers_estimate(check->warp);

	if (estimate > limit)
		check_found(check,
		            (struct finding){ PROPERTY_BUDGET, PROPERTY_NOT_PROVED,
		                              check->solution->launch->span, "" },
		            "about %lld registers a thread, %s has %lld with %lld threads a block: what "
		            "lives at the same time beyond that spills",
		            (long long)estimate, target->name, (long long)limit,
		            (long long)check->warp->n_threads);
}

void check_budget(struct check *check)
{
	const struct target *target = check->solution->target;
	long long shared = (long long)check->warp->shared_bytes,
			  limit = (long long)target->shared_bytes_block;
	struct span span = check->solution->launch->span;

	if (shared > limit)
		check_found(check, (struct finding){ PROPERTY_BUDGET, PROPERTY_VIOLATED, span, "" },
		            "%lld bytes of shared memory, %s gives a block %lld", shared, target->name,
		            limit);
	if (check->warp->n_threads > MAX_BLOCK_THREADS)
		check_found(check, (struct finding){ PROPERTY_BUDGET, PROPERTY_VIOLATED, span, "" },
		            "%lld threads, a block has at most %d", (long long)check->warp->n_threads,
		            MAX_BLOCK_THREADS);
	check_registers(check);
	check_proved(check, PROPERTY_BUDGET, "%lld of %lld bytes of shared memory, %lld of %d threads",
	             shared, limit, (long long)check->warp->n_threads, MAX_BLOCK_THREADS);
}

struct varies {
	const struct var *tid;
	bool found;
};

static void visit_expr(void *user, const struct expr *e)
{
	struct varies *varies = user;

	if ((e->kind == EXPR_REG && !e->as.reg->is_uniform) || e->kind == EXPR_CALL ||
	    (e->kind == EXPR_VAR && e->as.var == varies->tid))
		varies->found = true;
}

static bool may_differ(const struct check *check, const struct expr *e)
{
	struct varies varies = { check->warp->tid, false };

	expr_walk(e, visit_expr, &varies);
	return varies.found;
}

/* Number of barriers in a block; `divergent` when threads may disagree on getting there. */
static uint64_t walk_barriers(struct check *check, const struct wblock *block, bool divergent)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		switch (node->kind) {
		case WNODE_INST:
			if (node->as.inst.kind != WOP_barrier)
				break;
			n++;
			if (divergent)
				check_found(
					check,
					(struct finding){ PROPERTY_TERMINATION, PROPERTY_VIOLATED, node->span, "" },
					"a barrier under a condition that differs between threads");
			break;
		case WNODE_LOOP:
			n += walk_barriers(check, &node->as.loop.body,
			                   divergent || may_differ(check, node->as.loop.extent));
			break;
		case WNODE_IF:
			n += walk_barriers(check, &node->as.if_.then,
			                   divergent || may_differ(check, node->as.if_.condition));
			n += walk_barriers(check, &node->as.if_.otherwise,
			                   divergent || may_differ(check, node->as.if_.condition));
			break;
		case WNODE_WHILE:
			check_found(
				check,
				(struct finding){ PROPERTY_TERMINATION, PROPERTY_NOT_PROVED, node->span, "" },
				"how often a while loop runs is not known");
			n += walk_barriers(check, &node->as.while_.body,
			                   divergent || may_differ(check, node->as.while_.condition));
			break;
		}
	}
	return n;
}

void check_termination(struct check *check)
{
	uint64_t n = walk_barriers(check, &check->warp->body, false);

	check_proved(check, PROPERTY_TERMINATION,
	             "%llu barriers, all met by every thread at any trip count", (unsigned long long)n);
}
