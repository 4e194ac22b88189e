/*
 * budget and termination, from the structure of the program.
 *
 * termination: every thread of a block meets the same barriers, whatever the trip counts, when no
 * barrier stands under a condition or in a loop whose extent may differ between threads; waits for
 * cp.async groups end by themselves. A barrier under a condition on the thread number has been
 * executed by then (check_run.c), which found all threads there or names one that is not.
 */
#include "analyzer/check/check_internal.h"

enum { MAX_BLOCK_THREADS = 1024 };

/* More register slots than a thread has: no error, the assembler may overlay or spill them. */
static void check_registers(struct check *check)
{
	const struct target *target = check->solution->target;
	int64_t limit = target_thread_registers(target, check->warp->n_threads);
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

/* What decides whether a thread gets somewhere. */
enum reach {
	REACH_ALL,     /* nothing that differs between threads */
	REACH_NUMBERS, /* thread numbers and loop variables */
	REACH_DATA,    /* values that threads computed or loaded */
};

struct varies {
	const struct var *tid;
	enum reach reach;
};

static void visit_expr(void *user, const struct expr *e)
{
	struct varies *varies = user;

	if ((e->kind == EXPR_REG && !e->as.reg->is_uniform) || e->kind == EXPR_CALL)
		varies->reach = REACH_DATA;
	else if (e->kind == EXPR_VAR && e->as.var == varies->tid && varies->reach == REACH_ALL)
		varies->reach = REACH_NUMBERS;
}

/* What decides below a condition or an extent `e`. */
static enum reach below(const struct check *check, const struct expr *e, enum reach around)
{
	struct varies varies = { check->warp->tid, around };

	expr_walk(e, visit_expr, &varies);
	return varies.reach;
}

static void find_barrier(struct check *check, const struct wnode *node, enum reach reach)
{
	struct finding finding = { PROPERTY_TERMINATION, PROPERTY_NOT_PROVED, node->span, "" };

	if (reach == REACH_DATA)
		check_found(check, finding, "whether all threads come to this barrier depends on data");
	else if (reach == REACH_NUMBERS && !check->run_is_whole)
		check_found(check, finding,
		            "whether all threads come to this barrier depends on their numbers and on "
		            "sizes known at run time");
}

/* A wait for an mbarrier's phase is known to end where the whole program was executed. */
static uint64_t find_wait(struct check *check, const struct wnode *node)
{
	check->has_waits = true;
	if (!check->run_is_whole && !check->n_found[PROPERTY_TERMINATION])
		check_found(check,
		            (struct finding){ PROPERTY_TERMINATION, PROPERTY_NOT_PROVED, node->span, "" },
		            "whether the phase that is waited for ends: %s", check->run_limit);
	return 1;
}

/* Number of barriers in a block, each looked at. */
static uint64_t walk_barriers(struct check *check, const struct wblock *block, enum reach reach)
{
	uint64_t n = 0;
	enum reach inner;

	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		switch (node->kind) {
		case WNODE_INST:
			if (node->as.inst.kind == WOP_mbar_wait)
				n += find_wait(check, node);
			if (node->as.inst.kind != WOP_barrier && node->as.inst.kind != WOP_barrier_part)
				break;
			n++;
			inner = node->as.inst.predicate ? below(check, node->as.inst.predicate, reach) : reach;
			find_barrier(check, node, inner);
			break;
		case WNODE_LOOP:
			inner = below(check, node->as.loop.extent, reach);
			n += walk_barriers(check, &node->as.loop.body, inner);
			break;
		case WNODE_IF:
			inner = below(check, node->as.if_.condition, reach);
			n += walk_barriers(check, &node->as.if_.then, inner);
			n += walk_barriers(check, &node->as.if_.otherwise, inner);
			break;
		case WNODE_WHILE:
			check_found(
				check,
				(struct finding){ PROPERTY_TERMINATION, PROPERTY_NOT_PROVED, node->span, "" },
				"how often a while loop runs is not known");
			inner = below(check, node->as.while_.condition, reach);
			n += walk_barriers(check, &node->as.while_.body, inner);
			break;
		}
	}
	return n;
}

void check_termination(struct check *check)
{
	uint64_t n = walk_barriers(check, &check->warp->body, REACH_ALL);

	if (check->has_waits) {
		check_proved(
			check, PROPERTY_TERMINATION,
			"%llu barriers and waits for phases: all groups of threads were executed to the "
			"end",
			(unsigned long long)n);
		return;
	}
	check_proved(check, PROPERTY_TERMINATION,
	             "%llu barriers, all met by every thread at any trip count", (unsigned long long)n);
}
