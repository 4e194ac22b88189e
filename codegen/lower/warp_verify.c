/*
 * Checks a warp program between lowering and its readers (CUDA text, simulator, bank table).
 *
 * Facts about expressions are proved by bounds and divisors where these suffice; slots under
 * unrolled loops are enumerated; what remains of addresses is tried at sample points, so that a
 * report always names a real fault. That every address is in bounds is proved elsewhere.
 */
#include "codegen/lower/warp_verify_internal.h"

#include <assert.h>
#include <inttypes.h>

/* ---- threads that act together ---- */

/* Does the condition differ within `n` neighbouring threads (a warp, a warpgroup) at the sample? */
static bool differs_within(struct wverifier *verifier, const struct expr *e, int64_t n)
{
	int64_t *tid = &verifier->values[verifier->program->tid->id], first = 0;

	for (*tid = 0; *tid < verifier->program->n_threads; ++*tid) {
		int64_t value = expr_eval_int(e, verifier->values);
		if (*tid % n == 0)
			first = value;
		if ((value != 0) != (first != 0))
			return true;
	}
	return false;
}

/* `n_threads`: how many act together. */
static void check_uniform(struct wverifier *verifier, const char *what, const struct expr *e,
                          int64_t n_threads)
{
	uint64_t state = 1;

	if (!expr_uses(e, verifier->program->tid))
		return;
	for (int sample = 0; e->is_index && sample < WVERIFY_SAMPLES; sample++) {
		wverify_set_sample(verifier, sample, &state);
		if (!differs_within(verifier, e, n_threads))
			continue;
		WVERIFY_REPORT(verifier, E0617, "%s under a condition that differs within a %s", what,
		               n_threads == WGMMA_THREADS ? "warpgroup" : "warp");
		return;
	}
}

/* Neighbouring threads that execute the instruction together; 1: each for itself. */
static int64_t threads_together(enum wop_kind kind)
{
	switch (kind) {
	case WOP_mma:
	case WOP_ldmatrix:
	case WOP_stmatrix:
	case WOP_shfl_xor:
	case WOP_barrier_part:
	case WOP_shfl_up:
	case WOP_shfl_down:
	case WOP_shfl_idx:
		return 32;
	case WOP_wgmma:
	case WOP_wgmma_ra:
	case WOP_wgmma_fence:
	case WOP_wgmma_commit:
	case WOP_wgmma_wait:
		return WGMMA_THREADS;
	case WOP_ld:
	case WOP_st:
	case WOP_red:
	case WOP_cp_async:
	case WOP_cp_async_commit:
	case WOP_cp_async_wait:
	case WOP_set:
	case WOP_barrier: /* whether all threads come to it is proved elsewhere */
	case WOP_fence_async:
	case WOP_mbar_init:
	case WOP_mbar_arrive:
	case WOP_mbar_expect:
	case WOP_mbar_wait:
	case WOP_mbar_copies:
	case WOP_tma_load:
	case N_WOP_KINDS:
		break;
	}
	return 1;
}

static void check_convergence(struct wverifier *verifier, const struct winst *inst)
{
	int64_t n_threads = threads_together(inst->kind);
	const char *what = wop_info(inst->kind)->text;

	if (n_threads == 1)
		return;
	if (n_threads == WGMMA_THREADS && verifier->program->n_threads % WGMMA_THREADS != 0)
		WVERIFY_REPORT(verifier, E0617, "%s with %" PRId64 " threads, no whole warpgroups", what,
		               verifier->program->n_threads);
	for (uint32_t i = 0; i < verifier->n_guards; i++)
		check_uniform(verifier, what, verifier->guards[i].e, n_threads);
	if (inst->predicate)
		check_uniform(verifier, what, inst->predicate, n_threads);
}

/* ---- copies, commits, waits ---- */

/* The three steps of what runs on its own, and how each is called. */
struct async_words {
	enum wop_kind begin[2], commit, wait;
	const char *what;
};

static const struct async_words async_words[] = {
	{ { WOP_cp_async, WOP_cp_async }, WOP_cp_async_commit, WOP_cp_async_wait, "copy" },
	{ { WOP_wgmma, WOP_wgmma_ra }, WOP_wgmma_commit, WOP_wgmma_wait, "product" },
};

static const struct async_words *async_words_of(enum wop_kind kind)
{
	for (size_t i = 0; i < sizeof(async_words) / sizeof(*async_words); i++)
		if (kind == async_words[i].begin[0] || kind == async_words[i].begin[1] ||
		    kind == async_words[i].commit || kind == async_words[i].wait)
			return &async_words[i];
	return NULL;
}

static void note_copy(struct wverifier *verifier, const struct winst *inst)
{
	struct copy_event event = { inst->kind, verifier->span, verifier->at, verifier->loop_begin };

	if (!async_words_of(inst->kind) && inst->kind != WOP_mbar_copies)
		return;
	if (!verifier->n_loops)
		event.loop_begin = event.at;
	vec_push(verifier->program->cx->arena, &verifier->copies, event);
}

/* Does an event of the kind come after `event`, or before it within its outermost loop? */
static bool has_later(const struct wverifier *verifier, const struct copy_event *event,
                      enum wop_kind kind)
{
	for (uint32_t i = 0; i < verifier->copies.n; i++)
		if (verifier->copies.p[i].kind == kind && verifier->copies.p[i].at >= event->loop_begin)
			return true;
	return false;
}

static bool has_commit_for(const struct wverifier *verifier, const struct copy_event *wait,
                           enum wop_kind commit)
{
	for (uint32_t i = 0; i < verifier->copies.n; i++) {
		const struct copy_event *event = &verifier->copies.p[i];
		if (event->kind == commit && (event->at < wait->at || wait->loop_begin < wait->at))
			return true;
	}
	return false;
}

static void check_copies(struct wverifier *verifier)
{
	for (uint32_t i = 0; i < verifier->copies.n; i++) {
		const struct copy_event *event = &verifier->copies.p[i];
		const struct async_words *words = async_words_of(event->kind);
		if (!words || (event->kind == WOP_cp_async && has_later(verifier, event, WOP_mbar_copies)))
			continue; /* an arrival is told */
		const char *commit = wop_info(words->commit)->text, *wait = wop_info(words->wait)->text;
		verifier->span = event->span;
		if (event->kind == words->commit && !has_later(verifier, event, words->wait))
			WVERIFY_REPORT(verifier, E0618, "no %s follows this commit", wait);
		else if (event->kind == words->wait && !has_commit_for(verifier, event, words->commit))
			WVERIFY_REPORT(verifier, E0618, "nothing was committed before this wait");
		else if (event->kind != words->commit && event->kind != words->wait &&
		         !has_later(verifier, event, words->commit))
			WVERIFY_REPORT(verifier, E0618, "no %s follows this %s", commit, words->what);
	}
}

/* ---- nodes ---- */

static void check_inst(struct wverifier *verifier, const struct winst *inst)
{
	const struct wop_info *info = wop_info(inst->kind);

	verifier->predicate = inst->predicate;
	wverify_expr(verifier, inst->predicate);
	wverify_sizes(verifier, inst);
	for (uint32_t i = 0; i < info->n_operands; i++) {
		const struct woperand_info *operand = &info->operands[i];
		switch (operand->role) {
		case WROLE_ADDR_READ:
		case WROLE_ADDR_WRITE:
		case WROLE_ADDR_UPDATE:
			wverify_addr(verifier, inst, operand);
			break;
		case WROLE_REGS_READ:
		case WROLE_REGS_WRITE:
		case WROLE_REGS_UPDATE:
			wverify_regs(verifier, winst_operand(inst, operand).regs);
			break;
		case WROLE_VALUE:
			wverify_expr(verifier, winst_operand(inst, operand).value);
			break;
		case WROLE_NUM:
			break;
		}
	}
	check_convergence(verifier, inst);
	note_copy(verifier, inst);
}

static void check_block(struct wverifier *verifier, const struct wblock *block);

static void check_guarded(struct wverifier *verifier, struct wguard guard,
                          const struct wblock *block)
{
	assert(verifier->n_guards < WVERIFY_MAX_NESTED);
	verifier->guards[verifier->n_guards++] = guard;
	check_block(verifier, block);
	verifier->n_guards--;
}

static void check_loop(struct wverifier *verifier, const struct wnode *node)
{
	wverify_expr(verifier, node->as.loop.extent);
	if (node->as.loop.unroll && !expr_is_int(node->as.loop.extent, NULL))
		WVERIFY_REPORT(verifier, E0613, "an unrolled loop without a constant extent");
	if (!verifier->n_loops)
		verifier->loop_begin = verifier->at;
	verifier->loops[verifier->n_loops++] = node;
	check_guarded(verifier, (struct wguard){ node->as.loop.extent, false, true },
	              &node->as.loop.body);
	verifier->n_loops--;
}

static void check_node(struct wverifier *verifier, const struct wnode *node)
{
	verifier->at++;
	verifier->span = node->span;
	verifier->predicate = NULL;
	verifier->reported_scope = false;
	if (verifier->n_loops == WVERIFY_MAX_NESTED || verifier->n_guards == WVERIFY_MAX_NESTED) {
		WVERIFY_REPORT(verifier, E0610, "blocks nest deeper than %d", WVERIFY_MAX_NESTED);
		return;
	}
	switch (node->kind) {
	case WNODE_INST:
		check_inst(verifier, &node->as.inst);
		break;
	case WNODE_LOOP:
		check_loop(verifier, node);
		break;
	case WNODE_IF:
		wverify_expr(verifier, node->as.if_.condition);
		check_guarded(verifier, (struct wguard){ node->as.if_.condition, false, false },
		              &node->as.if_.then);
		check_guarded(verifier, (struct wguard){ node->as.if_.condition, true, false },
		              &node->as.if_.otherwise);
		break;
	case WNODE_WHILE:
		wverify_expr(verifier, node->as.while_.condition);
		check_guarded(verifier, (struct wguard){ node->as.while_.condition, false, true },
		              &node->as.while_.body);
		break;
	}
}

static void check_block(struct wverifier *verifier, const struct wblock *block)
{
	for (uint32_t i = 0; i < block->nodes.n; i++)
		check_node(verifier, block->nodes.p[i]);
}

/* ---- the header ---- */

static void check_name(struct wverifier *verifier, struct map *seen, sym_t name, struct span span)
{
	struct map_entry *entry = map_at(verifier->program->cx->arena, seen, name);

	verifier->span = span;
	if (entry->value.number++)
		WVERIFY_REPORT(verifier, E0603, "`%s` is declared twice",
		               sym_text(verifier->program->cx->names, name));
}

static void check_names(struct wverifier *verifier)
{
	const struct warp_program *program = verifier->program;
	struct map seen = { 0 };

	for (int i = 0; i < 3; i++)
		check_name(verifier, &seen, program->block[i]->name, (struct span){ 0 });
	check_name(verifier, &seen, program->tid->name, (struct span){ 0 });
	for (uint32_t i = 0; i < program->params.n; i++) {
		const struct wparam *param = &program->params.p[i];
		check_name(verifier, &seen, param->buffer ? param->buffer->name : param->scalar->name,
		           param->buffer ? param->buffer->span : param->scalar->span);
	}
	for (uint32_t i = 0; i < program->shareds.n; i++)
		check_name(verifier, &seen, program->shareds.p[i]->name, program->shareds.p[i]->span);
	for (uint32_t i = 0; i < program->regs.n; i++)
		check_name(verifier, &seen, program->regs.p[i]->name, program->regs.p[i]->span);
}

static void check_shared(struct wverifier *verifier, const struct wshared *shared)
{
	const char *name = sym_text(verifier->program->cx->names, shared->name);

	verifier->span = shared->span;
	if (shared->align_bytes < 1 || shared->offset_bytes % shared->align_bytes ||
	    (shared->n_versions > 1 && shared->version_bytes % shared->align_bytes))
		WVERIFY_REPORT(verifier, E0620, "`%s` is not at a multiple of %" PRId64 " bytes", name,
		               shared->align_bytes);
	if (shared->offset_bytes < 0 ||
	    shared->offset_bytes + wshared_bytes(shared) > verifier->program->shared_bytes)
		WVERIFY_REPORT(verifier, E0620, "`%s` ends at byte %" PRId64 " of %" PRId64, name,
		               shared->offset_bytes + wshared_bytes(shared),
		               verifier->program->shared_bytes);
}

bool warp_verify(struct warp_program *program)
{
	struct wverifier verifier = { .program = program, .diags = &program->cx->diags };
	uint32_t n_errors = verifier.diags->n_errors;

	assert(program->tid && program->block[0] && program->block[1] && program->block[2]);
	verifier.values = arena_array(program->cx->arena, int64_t, expr_n_vars(program->pool) + 1);
	for (uint32_t i = 0; i < program->params.n; i++) {
		const struct var *var = program->params.p[i].scalar;
		if (var)
			map_set(program->cx->arena, &verifier.scalars, var->id, (void *)(uintptr_t)var);
	}
	check_names(&verifier);
	for (uint32_t i = 0; i < program->shareds.n; i++)
		check_shared(&verifier, program->shareds.p[i]);
	check_block(&verifier, &program->body);
	check_copies(&verifier);
	return verifier.diags->n_errors == n_errors;
}
