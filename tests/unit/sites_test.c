/* The bank table against full enumeration of blocks, iterations and warps, and the words of its
 * reasons. */
#include "analyzer/banks/sites.h"
#include "tests/unit/check.h"

/* Sums of one kernel line. */
struct line_sums {
	int64_t executions, wavefronts, ideal;
	int32_t ways;
};

enum { MAX_LINES = 64 };

/* Walks the program as a warp does, for every block and warp. */
struct enumeration {
	const struct warp_program *program;
	int64_t *values;
	struct line_sums lines[MAX_LINES];
};

/* The lanes of `mask` for which the expression holds in that warp; NULL always holds. */
static uint32_t lanes_where(struct enumeration *all, const struct expr *e, int64_t warp,
                            uint32_t mask)
{
	uint32_t result = 0;

	for (uint32_t lane = 0; lane < 32; lane++) {
		all->values[all->program->tid->id] = warp * 32 + lane;
		if (mask >> lane & 1 && (!e || expr_eval_int(e, all->values)))
			result |= 1u << lane;
	}
	return result;
}

/*
 * Adds the wavefronts of one execution by one warp, with the addresses of its lanes worked out one
 * by one.
 */
static void run_inst(struct enumeration *all, const struct wnode *node, int64_t warp, uint32_t mask)
{
	const struct winst *inst = &node->as.inst;
	const struct waddr *addr = winst_shared_addr(inst, NULL);
	struct bank_access access = { 0 };
	struct bank_result result;
	struct line_sums *sums;
	int64_t sources[32];

	if (!addr)
		return;
	switch ((int)inst->kind) {
	case WOP_ld:
		bank_op_parse(inst->as.ld.bytes == 16 ? "ld128" : "ld32", inst->as.ld.bytes == 16 ? 16 : 4,
		              &access);
		break;
	case WOP_st:
		bank_op_parse(inst->as.st.bytes == 4 ? "st32" : "st64", inst->as.st.bytes == 4 ? 4 : 8,
		              &access);
		break;
	case WOP_ldmatrix:
		bank_op_parse("ldsm4", 16, &access);
		break;
	case WOP_cp_async:
		bank_op_parse(inst->as.cp_async.bytes == 16 ? "cpasync16" : "cpasync4",
		              inst->as.cp_async.bytes == 16 ? 16 : 4, &access);
		break;
	}
	access.mask = inst->kind == WOP_cp_async ? mask : lanes_where(all, inst->predicate, warp, mask);
	if (!access.mask)
		return;
	for (uint32_t lane = 0; lane < 32; lane++) {
		all->values[all->program->tid->id] = warp * 32 + lane;
		access.offsets[lane] =
			expr_eval_int(addr->offset, all->values) + addr->shared->offset_bytes;
		if (inst->kind != WOP_cp_async)
			continue;
		sources[lane] = 2 * expr_eval_int(inst->as.cp_async.src.offset, all->values);
		access.sources = sources;
	}
	result = bank_wavefronts(&access);
	sums = &all->lines[source_line(&all->program->cx->sources, node->span)];
	sums->executions++;
	sums->wavefronts += result.min;
	sums->ideal += result.ideal;
	if (result.ways > sums->ways)
		sums->ways = result.ways;
}

/* As a warp runs it: both sides of a branch when its lanes differ. */
static void run_block(struct enumeration *all, const struct wblock *block, int64_t warp,
                      uint32_t mask)
{
	for (uint32_t i = 0; i < block->nodes.n; i++) {
		const struct wnode *node = block->nodes.p[i];
		int64_t *value, extent;
		uint32_t then;
		switch (node->kind) {
		case WNODE_INST:
			run_inst(all, node, warp, mask);
			break;
		case WNODE_LOOP:
			extent = expr_eval_int(node->as.loop.extent, all->values);
			value = &all->values[node->as.loop.var->id];
			for (*value = 0; *value < extent; ++*value)
				run_block(all, &node->as.loop.body, warp, mask);
			break;
		case WNODE_IF:
			then = lanes_where(all, node->as.if_.condition, warp, mask);
			if (then)
				run_block(all, &node->as.if_.then, warp, then);
			if (mask & ~then)
				run_block(all, &node->as.if_.otherwise, warp, mask & ~then);
			break;
		case WNODE_WHILE:
			break;
		}
	}
}

/* All blocks, all warps. */
static void enumerate(struct enumeration *all)
{
	const struct warp_program *program = all->program;
	int64_t grid[3] = { 1, 1, 1 }, *values[3];

	for (int i = 0; i < 3; i++) {
		expr_is_int(program->grid[i], &grid[i]);
		values[i] = &all->values[program->block[i]->id];
	}
	for (*values[2] = 0; *values[2] < grid[2]; ++*values[2])
		for (*values[1] = 0; *values[1] < grid[1]; ++*values[1])
			for (*values[0] = 0; *values[0] < grid[0]; ++*values[0])
				for (int64_t warp = 0; warp * 32 < program->n_threads; warp++) {
					int64_t left = program->n_threads - warp * 32;
					run_block(all, &program->body, warp,
					          left >= 32 ? UINT32_MAX : (1u << left) - 1);
				}
}

static struct warp_program *read_program(struct cx *cx, const char *text)
{
	uint32_t file = source_add(cx->arena, &cx->sources, "test.warp", str_of(text));
	struct warp_program *program = warp_read(cx, expr_pool_open(cx), file);
	struct buf report = { 0 };

	diag_print(&report, &cx->diags, &cx->sources, false);
	printf("%s", buf_cstr(&report));
	buf_free(&report);
	return program;
}

static const char *const programs[] = {
	/* Ragged rows and columns, a pipelined stage, an XOR with a loop variable. */
	"warp a threads 128 grid (3, 9, 2) block (bx, by, bz) thread tid\n"
	"shared_bytes 65536\n"
	"param A float16 (1100, 64)\n"
	"shared s float16 at 64 align 16 versions 3 x 16384 bytes\n"
	"reg h float16 [8]\n"
	"reg f float32 [4]\n"
	"for ko in 7:\n"
	"    cp.async s[ko % 3*16384 + tid*16] <- A[tid*8] bytes=16 if by*128 + tid < 1100 @1\n"
	"    unroll for k in 4:\n"
	"        ldmatrix h[0; 8] <- s[ko % 3*16384 + tid % 16*128 + (tid % 8 ^ k*2 + tid // 16 % "
	"2)*16]"
	" n_matrices=4 trans=0 @2\n"
	"        ldmatrix h[0; 8] <- s[tid % 16*128 + k*32 + tid // 16 % 2*16] n_matrices=4 trans=0 "
	"@3\n"
	"    if by*128 + tid < 1100:\n"
	"        st s[tid*8 + ko*16] <- f[0; 2] bytes=8 if bx*100 + ko < 250 @4\n"
	"    else:\n"
	"        st s[tid*68 + ko*4] <- f[0] bytes=4 @5\n"
	"    ld f[0; 4] <- s[tid // 4*144 + tid % 4*16] bytes=16 if tid // 32 + by*4 < 13 @6\n",
	/* Loop extents that depend on the block; few threads; addresses that depend on the block. */
	"warp b threads 40 grid (6, 5, 1) block (bx, by, bz) thread tid\n"
	"shared_bytes 65536\n"
	"param A float16 (64, 64)\n"
	"shared s float32 at 0 align 16 versions 1 x 32768 bytes\n"
	"reg f float32 [4]\n"
	"for i in bx + 1:\n"
	"    for j in i + by % 2 + 1:\n"
	"        st s[tid*4*(by + 1)] <- f[0] bytes=4 if tid + j < 39 @1\n"
	"        ld f[0] <- s[(tid ^ i)*128] bytes=4 if not tid % (j + 1) == 0 @2\n"
	"for i in 4:\n"
	"    cp.async s[tid*4] <- A[tid*bx*2 + i*2] bytes=4 @3\n"
	"    cp.async s[(tid*64 + i*4) % 4096] <- A[tid*2] bytes=4 @4\n"
	"if bx < 4 and by*bx < 7 or tid < 3:\n"
	"    ld f[0] <- s[tid*8 + bx*2 // 3*4] bytes=4 @5\n",
};

/* What is counted by classes and multiplied is what counting one by one gives, for each line. */
static void test_enumeration(struct check *check, const char *text)
{
	struct arena *arena = arena_open();
	struct cx cx;
	struct enumeration all = { 0 };
	struct access_table table = { 0 };
	uint32_t n_lines = 0;

	cx_init(&cx, arena);
	all.program = read_program(&cx, text);
	if (!CHECK(check, all.program != NULL))
		return;
	access_table_count(all.program, arena, &table);
	CHECK(check, table.counted_grid);
	all.values = arena_array(arena, int64_t, expr_n_vars(all.program->pool));
	enumerate(&all);
	for (uint32_t i = 0; i < table.sites.n; i++) {
		const struct access_site *site = &table.sites.p[i];
		const struct line_sums *sums = &all.lines[site->line];
		CHECK_INT(check, site->executions, sums->executions);
		CHECK_INT(check, site->wavefronts, sums->wavefronts);
		CHECK_INT(check, site->ideal, sums->ideal);
		CHECK_INT(check, site->excess, sums->wavefronts - sums->ideal);
		CHECK_INT(check, site->ways, sums->ways);
		CHECK(check, site->excess == 0 || site->reason != NULL);
	}
	for (uint32_t i = 0; i < MAX_LINES; i++)
		n_lines += all.lines[i].executions > 0;
	CHECK_INT(check, table.sites.n, n_lines);
	arena_close(arena);
}

/*
 * A grid of a thousand million blocks: counts by hand; two instructions of one line and kind are
 * one row, and what never runs has none.
 */
static void test_rows(struct check *check)
{
	struct arena *arena = arena_open();
	struct cx cx;
	struct access_table table = { 0 };
	const struct warp_program *program;

	cx_init(&cx, arena);
	program = read_program(
		&cx, "warp c threads 32 grid (1000000, 1000, 1) block (bx, by, bz) thread tid\n"
			 "shared_bytes 8192\n"
			 "shared s float32 at 0 align 16 versions 1 x 8192 bytes\n"
			 "reg f float32 [4]\n"
			 "ld f[0] <- s[tid*128] bytes=4 @1\n"
			 "ld f[0] <- s[tid*4] bytes=4 @1\n"
			 "ld f[0; 4] <- s[tid*16] bytes=16 @1\n"
			 "ld f[0] <- s[tid*4] bytes=4 if bx < 0 @2\n"
			 "if by > 1000:\n"
			 "    ld f[0] <- s[tid*4] bytes=4 @3\n");
	if (!CHECK(check, program != NULL))
		return;
	access_table_count(program, arena, &table);
	CHECK_INT(check, table.sites.n, 2);
	CHECK_TEXT(check, table.sites.p[0].instruction, "ld.shared.4");
	CHECK_TEXT(check, table.sites.p[1].instruction, "ld.shared.16");
	CHECK_TEXT(check, table.sites.p[0].buffer, "s");
	CHECK_INT(check, table.sites.p[0].executions, 2000000000);
	CHECK_INT(check, table.sites.p[0].wavefronts, 33000000000);
	CHECK_INT(check, table.sites.p[0].ideal, 2000000000);
	CHECK_INT(check, table.sites.p[0].ways, 32);
	CHECK_TEXT(check, table.sites.p[0].reason,
	           "lanes 0, 1, 2, 3, ... of warp 0 meet in bank 0 at bytes 0, 128, 256, 384, ... of s "
	           "(32 ways)");
	CHECK(check, table.sites.p[1].reason == NULL);
	arena_close(arena);
}

/* Counts that are not known are taken as one, of one block. */
static void test_unknown(struct check *check)
{
	struct arena *arena = arena_open();
	struct cx cx;
	struct access_table table = { 0 };
	const struct warp_program *program;

	cx_init(&cx, arena);
	program = read_program(&cx, "warp d threads 64 grid (n, 4, 1) block (bx, by, bz) thread tid\n"
	                            "shared_bytes 8192\n"
	                            "symbol n int32 from 1\n"
	                            "shared s float32 at 0 align 16 versions 1 x 8192 bytes\n"
	                            "reg f float32 [4]\n"
	                            "reg r int32 [1]\n"
	                            "for i in n:\n"
	                            "    for j in 3:\n"
	                            "        ld f[0] <- s[tid*4] bytes=4 if bx*64 + tid < n @1\n"
	                            "while r[0] < 3:\n"
	                            "    ld f[0] <- s[tid*4 + n*4] bytes=4 @2\n"
	                            "ld f[0] <- s[r[0]*4] bytes=4 @3\n"
	                            "ld f[0] <- s[tid*n*4] bytes=4 @4\n");
	if (!CHECK(check, program != NULL))
		return;
	access_table_count(program, arena, &table);
	CHECK(check, !table.counted_grid);
	CHECK_INT(check, table.sites.n, 4);
	CHECK_INT(check, table.sites.p[0].executions, 6);
	CHECK_INT(check, table.sites.p[0].wavefronts, 6);
	CHECK_INT(check, table.sites.p[1].wavefronts, 2);
	CHECK_INT(check, table.sites.p[2].executions, 2);
	CHECK_INT(check, table.sites.p[2].wavefronts, -1);
	CHECK_INT(check, table.sites.p[3].excess, -1);
	arena_close(arena);
}

int main(void)
{
	struct check check = { 0 };

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		test_enumeration(&check, programs[i]);
	test_rows(&check);
	test_unknown(&check);
	return check_end(&check);
}
