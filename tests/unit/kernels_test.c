/*
 * The example kernels from text to numbers: at sizes that leave ragged tiles the simulator must
 * find nothing, match the reference, and count the wavefronts that the bank table predicts, line by
 * line.
 */
#include "analyzer/compile.h"
#include "sim/compare.h"
#include "sim/sim.h"
#include "tests/unit/check.h"

#include <stdlib.h>

enum { MAX_SETS = 10, MAX_LINES = 128 };

/* A kernel at one setting: "NAME=VALUE NAME=VALUE ...". */
struct run {
	struct arena *arena;
	struct compile *compile;
	const char *path, *sets;
	struct tensor_set before, got;
	struct reference reference;
};

static void add_sets(struct arena *arena, struct compile_options *options, const char *sets)
{
	for (const char *at = sets; *at;) {
		size_t n = strcspn(at, " "), name = strcspn(at, "=");
		struct frontend_set set = { arena_strndup(arena, at, name), 0,
			                        arena_strndup(arena, at + name + 1, n - name - 1) };
		vec_push(arena, &options->frontend.sets, set);
		at += n + (at[n] == ' ');
	}
}

/* The kernel, its setting and the diagnostics, for a failed check. */
static void show(struct run *run)
{
	struct buf text = { 0 };

	printf("%s %s\n", run->path, run->sets);
	diag_print(&text, &run->compile->cx.diags, &run->compile->cx.sources, false);
	printf("%s", buf_cstr(&text));
	buf_free(&text);
}

/* Wavefronts of one line and direction, simulated and predicted. */
struct line_sums {
	int64_t executions, wavefronts, wavefronts_max, ideal;
};

static void add_simulated(struct run *run, const struct wblock *block,
                          const struct sim_result *result, struct line_sums *sums)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		const struct sim_access *access = &result->accesses[node->id];
		uint32_t line = source_line(&run->compile->cx.sources, node->span);
		switch (node->kind) {
		case WNODE_LOOP:
			add_simulated(run, &node->as.loop.body, result, sums);
			break;
		case WNODE_IF:
			add_simulated(run, &node->as.if_.then, result, sums);
			add_simulated(run, &node->as.if_.otherwise, result, sums);
			break;
		case WNODE_WHILE:
			add_simulated(run, &node->as.while_.body, result, sums);
			break;
		case WNODE_INST:
			if (line >= MAX_LINES)
				break;
			sums[line].executions += access->executions;
			sums[line].wavefronts += access->wavefronts;
			sums[line].wavefronts_max += access->wavefronts_max;
			sums[line].ideal += access->ideal;
			break;
		}
	}
}

static bool sums_equal(const struct line_sums *a, const struct line_sums *b)
{
	return a->executions == b->executions && a->wavefronts == b->wavefronts &&
	       a->wavefronts_max == b->wavefronts_max && a->ideal == b->ideal;
}

/* The bank table of a launch against what its simulation counted. */
static void check_wavefronts(struct check *check, struct run *run, struct warp_program *program,
                             const struct sim_result *result)
{
	struct line_sums simulated[MAX_LINES] = { { 0 } }, predicted[MAX_LINES] = { { 0 } };
	struct access_table table = { 0 };

	access_table_count(program, run->arena, &table);
	CHECK(check, table.counted_grid);
	for (uint32_t i = 0; i < table.sites.n; i++) {
		const struct access_site *site = &table.sites.p[i];
		if (!CHECK(check, site->line < MAX_LINES && site->wavefronts >= 0))
			continue;
		predicted[site->line].executions += site->executions;
		predicted[site->line].wavefronts += site->wavefronts;
		predicted[site->line].wavefronts_max += site->wavefronts_max;
		predicted[site->line].ideal += site->ideal;
	}
	add_simulated(run, &program->body, result, simulated);
	for (uint32_t line = 0; line < MAX_LINES; line++)
		if (!CHECK(check, sums_equal(&simulated[line], &predicted[line])))
			printf("%s %s line %u: simulated %" PRId64 " %" PRId64 " %" PRId64
			       ", predicted %" PRId64 " %" PRId64 " %" PRId64
			       " (executions, wavefronts, ideal)\n",
			       run->path, run->sets, line, simulated[line].executions,
			       simulated[line].wavefronts, simulated[line].ideal, predicted[line].executions,
			       predicted[line].wavefronts, predicted[line].ideal);
}

/* Every output equals the reference within the type's tolerance, and nothing else changed. */
static void check_numbers(struct check *check, struct run *run)
{
	struct reference_options options = { 0 };
	struct compare_input input = {
		.got = &run->got, .before = &run->before, .reference = &run->reference, .tolerance = -1.0
	};
	struct comparisons verdict;

	if (!CHECK(check,
	           reference_run(run->compile->program, &run->before, &options, &run->reference))) {
		show(run);
		return;
	}
	compare_run(run->arena, &input, &verdict);
	CHECK(check, verdict.items.n > 0 && verdict.total.n_compared > 0);
	if (!CHECK(check, verdict.total.ok))
		printf("%s %s: relative error %g, %" PRId64 " stray\n", run->path, run->sets,
		       verdict.total.max_rel, verdict.total.n_stray);
}

static void simulate(struct check *check, struct run *run)
{
	struct sim_options options = { 0 };

	for (uint32_t i = 0; i < run->compile->launches.n; i++) {
		struct warp_program *program = run->compile->launches.p[i]->warp;
		struct sim_result result;
		if (!CHECK(check, sim_run(program, &run->got, &options, &result) && result.finished))
			return;
		if (!CHECK(check, result.n_findings == 0)) {
			sim_report(&run->compile->cx, &result);
			show(run);
		}
		check_wavefronts(check, run, program, &result);
	}
}

/* Compiles and generates inputs; false with the diagnostics shown, and nothing to close. */
static bool open_run(struct check *check, struct run *run, const char *path, const char *sets,
                     const char *target)
{
	struct compile_options options = { .frontend.config = -1, .target = target_find(target) };
	struct tensor_uses uses = { 0 };
	int64_t *values;

	*run = (struct run){ .arena = arena_open(), .path = path, .sets = sets };
	add_sets(run->arena, &options, sets);
	run->compile = compile_open(run->arena, &options);
	if (!CHECK(check, compile_load(run->compile, path) && compile_run(run->compile, "warp"))) {
		show(run);
		arena_close(run->arena);
		return false;
	}
	tensor_uses_of_tile(run->compile->program, &uses);
	values = arena_array(run->arena, int64_t, expr_n_vars(run->compile->pool) + 1u);
	return CHECK(check, tensors_open(&run->compile->cx, &uses, values, &run->before) &&
	                        tensors_open(&run->compile->cx, &uses, values, &run->got));
}

static void close_run(struct run *run)
{
	reference_close(&run->reference);
	tensors_close(&run->before);
	tensors_close(&run->got);
	arena_close(run->arena);
}

static void test_kernel(struct check *check, const char *path, const char *sets)
{
	struct run run;

	if (!open_run(check, &run, path, sets, "sm_80"))
		return;
	simulate(check, &run);
	check_numbers(check, &run);
	close_run(&run);
}

/* ---- breaking a lowered program, one instruction at a time ---- */

/* Collects the instructions of some kinds. */
struct insts {
	vec_of(struct wnode *) nodes;
};

static void collect(struct arena *arena, const struct wblock *block, uint32_t kinds,
                    struct insts *out)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		struct wnode *node = block->nodes.p[i];
		if (node->kind == WNODE_LOOP)
			collect(arena, &node->as.loop.body, kinds, out);
		else if (node->kind == WNODE_IF)
			collect(arena, &node->as.if_.then, kinds, out);
		else if (node->kind == WNODE_INST && kinds >> node->as.inst.kind & 1)
			vec_push(arena, &out->nodes, node);
	}
}

/*
 * Leaves out a synchronisation, lets one more group be pending, or moves an operand's address by 16
 * bytes.
 */
static void break_inst(struct warp_program *program, struct winst *inst)
{
	struct expr_pool *pool = program->pool;

	if (inst->kind == WOP_cp_async_wait)
		inst->as.cp_async_wait.n_pending++;
	else if (inst->kind == WOP_ldmatrix)
		inst->as.ldmatrix.src.offset =
			expr_xor(pool, inst->as.ldmatrix.src.offset, expr_int(pool, 16));
	else if (inst->kind == WOP_mma)
		inst->as.mma.b.slot = expr_xor(pool, inst->as.mma.b.slot, expr_int(pool, 2));
	else if (inst->kind == WOP_wgmma_wait)
		inst->as.wgmma_wait.n_pending++;
	else if (inst->kind == WOP_wgmma)
		inst->as.wgmma.a.offset = expr_xor(pool, inst->as.wgmma.a.offset, expr_int(pool, 16));
	else if (inst->kind == WOP_wgmma_ra)
		inst->as.wgmma_ra.b.offset = expr_xor(pool, inst->as.wgmma_ra.b.offset, expr_int(pool, 16));
	else
		inst->predicate = expr_bool(pool, false);
}

/* Does the program as it is now show a finding or wrong numbers? */
static bool is_caught(struct run *run, struct warp_program *program)
{
	struct compare_input input = {
		.got = &run->got, .before = &run->before, .reference = &run->reference, .tolerance = -1.0
	};
	struct sim_options options = { 0 };
	struct comparisons verdict;
	struct sim_result result;

	tensors_copy(&run->got, &run->before);
	if (!sim_run(program, &run->got, &options, &result) || result.n_findings)
		return true;
	compare_run(run->arena, &input, &verdict);
	return !verdict.total.ok;
}

/*
 * Breaks every instruction in turn. `n_spare` synchronisations may go unnoticed: those that another
 * one makes superfluous (the drain behind a loop, a fence at a loop's head, a commit before the
 * next one, a barrier between a thread's write and its own read).
 */
static void test_mutations(struct check *check, const char *target, const char *path,
                           const char *sets, int n_spare)
{
	struct run run;
	struct insts insts = { { 0 } };
	struct warp_program *program;
	uint32_t syncs = 1u << WOP_barrier | 1u << WOP_cp_async_wait | 1u << WOP_cp_async_commit |
	                 1u << WOP_fence_async;
	uint32_t others = 1u << WOP_ldmatrix | 1u << WOP_mma | 1u << WOP_shfl_xor | 1u << WOP_wgmma |
	                  1u << WOP_wgmma_ra | 1u << WOP_wgmma_fence | 1u << WOP_wgmma_commit |
	                  1u << WOP_wgmma_wait;
	struct reference_options options = { 0 };

	if (!open_run(check, &run, path, sets, target))
		return;
	program = run.compile->launches.p[0]->warp;
	CHECK(check, reference_run(run.compile->program, &run.before, &options, &run.reference));
	CHECK(check, !is_caught(&run, program));
	collect(run.arena, &program->body, syncs | others, &insts);
	CHECK(check, (int)insts.nodes.n > n_spare);
	for (uint32_t i = 0; i < insts.nodes.n; i++) {
		struct wnode *node = insts.nodes.p[i];
		struct winst whole = node->as.inst;
		bool is_caught_now, may_pass = syncs >> whole.kind & 1 && n_spare > 0;
		break_inst(program, &node->as.inst);
		is_caught_now = is_caught(&run, program);
		node->as.inst = whole;
		if (!is_caught_now && may_pass)
			n_spare--;
		else if (!CHECK(check, is_caught_now))
			printf("%s %s: not noticed: %s at line %u (node %u) broken\n", path, sets,
			       wop_info(whole.kind)->text, source_line(&run.compile->cx.sources, node->span),
			       node->id);
	}
	close_run(&run);
}

/* ---- sizes ---- */

/* 1, one less and one more than a tile, a prime, in each dimension. */
static void test_gemm_sizes(struct check *check)
{
	static const int m[] = { 1, 127, 129, 131 }, k[] = { 1, 31, 33, 37 };

	for (int i = 0; i < 4 * 4 * 4; i++) {
		char sets[64];
		snprintf(sets, sizeof(sets), "M=%d N=%d K=%d", m[i / 16], m[i / 4 % 4], k[i % 4]);
		test_kernel(check, "examples/gemm_relu.tl", sets);
	}
}

/* The same for elements, whose tiles are guarded in both dimensions. */
static void test_add_sizes(struct check *check)
{
	static const int m[] = { 1, 31, 33, 37 }, n[] = { 1, 127, 129, 131 };

	for (int i = 0; i < 4 * 4; i++) {
		char sets[64];
		snprintf(sets, sizeof(sets), "M=%d N=%d", m[i / 4], n[i % 4]);
		test_kernel(check, "examples/elementwise_add.tl", sets);
	}
}

/*
 * Rows up to and around multiples of a warp's lanes and of the tile, where a reduction is ragged.
 */
static void test_norm_sizes(struct check *check)
{
	static const int m[] = { 1, 3, 5, 7 };
	static const int n[] = { 1, 2, 31, 95, 96, 97, 131, 192, 320, 384, 1023, 1024 };

	for (int i = 0; i < 4 * 12; i++) {
		char sets[64];
		snprintf(sets, sizeof(sets), "M=%d N=%d", m[i / 12], n[i % 12]);
		test_kernel(check, "examples/rms_norm.tl", sets);
	}
}

/* Other tiles, stages, threads and types. */
static const char *const gemm_settings[] = {
	"M=192 N=192 K=256 block_M=64 block_N=64 block_K=32 num_stages=2",
	"M=192 N=192 K=256 block_M=64 block_N=64 block_K=32 num_stages=4",
	"M=192 N=192 K=256 block_M=64 block_N=64 block_K=32 num_stages=1",
	"M=192 N=192 K=256 block_M=64 block_N=64 block_K=32 num_stages=0",
	"M=128 N=256 K=96 block_M=128 block_N=256 block_K=32 threads=256",
	"M=128 N=128 K=80 block_M=64 block_N=64 block_K=16 threads=64",
	"M=128 N=128 K=128 block_M=32 block_N=64 block_K=64 threads=32",
	"M=96 N=96 K=96 block_M=96 block_N=96 block_K=48 threads=128",
	"M=100 N=72 K=200 block_M=64 block_N=64 block_K=64 dtype=bfloat16",
	"M=64 N=64 K=64 block_M=64 block_N=64 block_K=32 accum_dtype=float16",
};
static const char *const norm_settings[] = {
	"M=9 N=96 block_M=1",
	"M=9 N=160 block_M=2 threads=64",
	"M=9 N=512 block_M=3",
	"M=40 N=256 block_M=16",
	"M=40 N=640 block_M=8 threads=256",
	"M=9 N=100 dtype=float32 block_M=4",
};
static const char *const add_settings[] = {
	"M=40 N=300 block_M=8 block_N=256 dtype=float16",
	"M=64 N=64 block_M=16 block_N=16 threads=64",
	"M=33 N=129 block_M=32 block_N=128 dtype=int8",
	"M=33 N=65 block_M=4 block_N=64 dtype=int32 threads=256",
};

/* Sums that cross warps, once and again in the same workspace. */
static const char *const column_settings[] = {
	"M=64 N=128 block_M=64 block_N=64",
	"M=256 N=128 block_M=64 block_N=64",
	"M=70 N=100 block_M=32 block_N=32",
	"M=33 N=5 block_M=16 block_N=64 threads=256",
	"M=256 N=16 block_M=64 block_N=16 threads=256",
};

#define TEST_SETTINGS(check, path, settings) \
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) \
	test_kernel(check, path, settings[i])

int main(void)
{
	struct check check = { 0 };

	test_gemm_sizes(&check);
	test_add_sizes(&check);
	test_norm_sizes(&check);
	TEST_SETTINGS(&check, "examples/gemm_relu.tl", gemm_settings);
	TEST_SETTINGS(&check, "examples/rms_norm.tl", norm_settings);
	TEST_SETTINGS(&check, "examples/elementwise_add.tl", add_settings);
	TEST_SETTINGS(&check, "tests/sim/column_sum.tl", column_settings);
	test_mutations(&check, "sm_80", "examples/gemm_relu.tl",
	               "M=64 N=64 K=160 block_M=64 block_N=64 block_K=32 num_stages=3", 1);
	test_mutations(&check, "sm_80", "examples/gemm_relu.tl",
	               "M=64 N=64 K=96 block_M=64 block_N=64 block_K=32 num_stages=2", 1);
	test_mutations(&check, "sm_80", "examples/gemm_relu.tl",
	               "M=64 N=64 K=96 block_M=64 block_N=64 block_K=32 num_stages=1", 1);
	test_mutations(&check, "sm_80", "examples/gemm_relu.tl",
	               "M=61 N=67 K=101 block_M=64 block_N=64 block_K=32 num_stages=3", 0);
	test_mutations(&check, "sm_80", "examples/rms_norm.tl", "M=8 N=320", 1);
	test_mutations(&check, "sm_80", "examples/rms_norm.tl", "M=5 N=97", 1);
	test_mutations(&check, "sm_80", "tests/sim/column_sum.tl",
	               "M=256 N=16 block_M=64 block_N=16 threads=256", 0);
	test_mutations(&check, "sm_90a", "examples/gemm_relu.tl",
	               "M=64 N=64 K=160 block_M=64 block_N=64 block_K=32 num_stages=3", 1);
	test_mutations(&check, "sm_90a", "examples/gemm_relu.tl",
	               "M=128 N=64 K=96 block_M=128 block_N=64 block_K=32 num_stages=1", 2);
	test_mutations(&check, "sm_90a", "tests/solve/wgmma.tl",
	               "M=64 N=64 K=192 block_M=64 block_N=64 block_K=32 threads=128 stages=4", 1);
	test_mutations(&check, "sm_90a", "tests/solve/gemm_types.tl",
	               "M=64 N=64 K=64 a='fragment' ta=True", 1);
	return check_end(&check);
}
