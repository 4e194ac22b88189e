/* Comparing two runs: which sites belong together, and what counts as growth. */
#include "db/compare.h"
#include "tests/unit/check.h"

/* A run without sites. */
static struct run_record *new_run(struct arena *arena)
{
	struct run_record *run = arena_new(arena, struct run_record);
	struct record_launch launch = { .threads = 128, .grid = { 8, 8, 1 }, .counted_grid = true };

	*run = (struct run_record){ .tool_version = "0.1.0",
		                        .verb = "analyze",
		                        .file = "k.tl",
		                        .file_hash = "00",
		                        .kernel = "matmul",
		                        .factory = "",
		                        .target = "sm_80",
		                        .layouts = "solved",
		                        .params = "{\"M\": 1024}" };
	vec_push(arena, &run->launches, launch);
	return run;
}

/* A site of 16 bytes a thread with 100 executions; ideal 100. */
static void add(struct arena *arena, struct run_record *run, uint32_t line, const char *buffer,
                int64_t excess)
{
	struct record_site site = { .line = line,
		                        .buffer = buffer,
		                        .instruction = "ldmatrix.x4",
		                        .bytes_per_thread = 16,
		                        .executions = 100,
		                        .wavefronts = 100 + excess,
		                        .ideal = 100,
		                        .excess = excess,
		                        .ways = 1 };

	vec_push(arena, &run->sites, site);
}

/* The change whose site is at that line today; NULL when there is none. */
static const struct site_change *find(const struct run_comparison *comparison, uint32_t line)
{
	for (uint32_t i = 0; i < comparison->sites.n; i++) {
		const struct record_site *after = comparison->sites.p[i].after;

		if (after && after->line == line)
			return &comparison->sites.p[i];
	}
	return NULL;
}

static void check_status(struct check *check, const struct run_comparison *comparison,
                         uint32_t line, enum site_status status)
{
	const struct site_change *change = find(comparison, line);

	if (CHECK(check, change != NULL))
		CHECK_TEXT(check, site_status_text(change->status), site_status_text(status));
}

/* Lines moved, nothing else: all the same. */
static void test_equal_runs(struct check *check, struct arena *arena)
{
	struct run_record *before = new_run(arena), *after = new_run(arena);
	struct run_comparison *comparison;

	add(arena, before, 20, "A", 0);
	add(arena, before, 21, "B", 300);
	add(arena, after, 40, "A", 0);
	add(arena, after, 41, "B", 300);
	comparison = compare_runs(arena, before, after);
	CHECK_INT(check, comparison->n_of[SITE_SAME], 2);
	CHECK_INT(check, comparison->sites.n, 2);
	CHECK(check, !comparison_failed(comparison));
}

/* One site of each fate, and the order: largest growth first, new conflicts count as growth. */
static void test_growth(struct check *check, struct arena *arena)
{
	struct run_record *before = new_run(arena), *after = new_run(arena);
	struct run_comparison *comparison;

	add(arena, before, 1, "zero_to_n", 0);
	add(arena, before, 2, "n_to_zero", 700);
	add(arena, before, 3, "n_to_more", 100);
	add(arena, before, 4, "zero", 0);
	add(arena, before, 5, "gone", 50);
	add(arena, after, 1, "zero_to_n", 1);
	add(arena, after, 2, "n_to_zero", 0);
	add(arena, after, 3, "n_to_more", 101);
	add(arena, after, 4, "zero", 0);
	add(arena, after, 6, "fresh", 0);
	add(arena, after, 7, "fresh_conflict", 9);
	comparison = compare_runs(arena, before, after);
	check_status(check, comparison, 1, SITE_REGRESSED);
	check_status(check, comparison, 2, SITE_IMPROVED);
	check_status(check, comparison, 3, SITE_REGRESSED);
	check_status(check, comparison, 4, SITE_SAME);
	check_status(check, comparison, 6, SITE_NEW);
	check_status(check, comparison, 7, SITE_REGRESSED);
	CHECK_INT(check, comparison->n_of[SITE_REMOVED], 1);
	CHECK_INT(check, comparison->sites.p[0].growth, 9);
	CHECK_INT(check, vec_last(&comparison->sites).growth, -700);
	CHECK(check, comparison_failed(comparison));
	CHECK_INT(check, comparison->excess_before, 850);
	CHECK_INT(check, comparison->excess_after, 111);
}

/* Three reads of one buffer; one without conflicts is put in front: the others keep their partners.
 */
static void test_inserted_site(struct check *check, struct arena *arena)
{
	struct run_record *before = new_run(arena), *after = new_run(arena);
	struct run_comparison *comparison;

	add(arena, before, 10, "A", 100);
	add(arena, before, 11, "A", 200);
	add(arena, before, 12, "A", 300);
	add(arena, after, 9, "A", 0);
	add(arena, after, 11, "A", 100);
	add(arena, after, 12, "A", 200);
	add(arena, after, 13, "A", 300);
	comparison = compare_runs(arena, before, after);
	check_status(check, comparison, 9, SITE_NEW);
	CHECK_INT(check, comparison->n_of[SITE_SAME], 3);
	CHECK(check, !comparison_failed(comparison));
	/* Equal numbers of accesses are matched in order, whatever became of them. */
	after->sites.n = 3;
	comparison = compare_runs(arena, before, after);
	CHECK_INT(check, comparison->n_of[SITE_IMPROVED], 3);
}

/* An access of the same buffer and direction is the same access with another instruction. */
static void test_changed_instruction(struct check *check, struct arena *arena)
{
	struct run_record *before = new_run(arena), *after = new_run(arena);
	struct run_comparison *comparison;

	add(arena, before, 10, "A", 0);
	add(arena, after, 10, "A", 64);
	after->sites.p[0].instruction = "ld.shared.4";
	after->sites.p[0].executions = 400;
	comparison = compare_runs(arena, before, after);
	CHECK_INT(check, comparison->sites.n, 1);
	check_status(check, comparison, 10, SITE_REGRESSED);
	CHECK_TEXT(check, comparison->sites.p[0].note, "the instruction changed");
	/* A store of the same buffer is another access. */
	after->sites.p[0].instruction = "st.shared.4";
	comparison = compare_runs(arena, before, after);
	CHECK_INT(check, comparison->sites.n, 2);
	CHECK_INT(check, comparison->n_of[SITE_REMOVED], 1);
}

/*
 * From 100 executions with 100 excess: totals and rate must both move one way, or nothing is said.
 */
static void test_changed_executions(struct check *check, struct arena *arena)
{
	static const struct {
		int64_t executions, excess;
		enum site_status status;
	} cases[] = {
		{ 200, 200, SITE_INCOMPARABLE }, /* twice the work, as many conflicts in each */
		{ 200, 201, SITE_REGRESSED },    { 200, 150, SITE_INCOMPARABLE },
		{ 50, 60, SITE_INCOMPARABLE },   { 50, 40, SITE_IMPROVED },
		{ 50, 100, SITE_SAME },          { 200, 0, SITE_IMPROVED },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct run_record *before = new_run(arena), *after = new_run(arena);

		add(arena, before, 10, "A", 100);
		add(arena, after, 10, "A", cases[i].excess);
		after->sites.p[0].executions = cases[i].executions;
		check_status(check, compare_runs(arena, before, after), 10, cases[i].status);
	}
}

/* Modelled in one run only cannot be compared; in neither it is the same. */
static void test_unmodelled(struct check *check, struct arena *arena)
{
	struct run_record *before = new_run(arena), *after = new_run(arena);

	add(arena, before, 10, "A", 100);
	add(arena, after, 10, "A", -1);
	check_status(check, compare_runs(arena, before, after), 10, SITE_INCOMPARABLE);
	before->sites.p[0].excess = -1;
	check_status(check, compare_runs(arena, before, after), 10, SITE_SAME);
}

/*
 * Target and parameters must agree, and each difference is one reason; JSON values are compared as
 * texts, with braces and commas inside them. Threads may differ.
 */
static void test_comparable(struct check *check, struct arena *arena)
{
	struct run_record *before = new_run(arena), *after = new_run(arena);
	struct text_list reasons;

	CHECK(check, runs_comparable(arena, before, after, &reasons));
	after->params = "{\"M\": 2048}";
	after->target = "sm_90a";
	CHECK(check, !runs_comparable(arena, before, after, &reasons));
	CHECK_INT(check, reasons.items.n, 2);
	CHECK_TEXT(check, reasons.items.p[1], "M: 1024 before, 2048 now");
	CHECK_TEXT(check, reasons.items.p[0], "target: sm_80 before, sm_90a now");
	*after = *before;
	before->params = "{\"a\": [1, {\"x\": 2}], \"b\": \"p, \\\"q\\\": 3\", \"d\": null}";
	after->params = "{\"a\": [1, {\"x\": 3}], \"b\": \"p, \\\"q\\\": 3\", \"c\": 7}";
	CHECK(check, !runs_comparable(arena, before, after, &reasons));
	CHECK_INT(check, reasons.items.n, 3);
	CHECK_TEXT(check, reasons.items.p[0], "a: [1, {\"x\": 2}] before, [1, {\"x\": 3}] now");
	CHECK_TEXT(check, reasons.items.p[1], "c: none before, 7 now");
	CHECK_TEXT(check, reasons.items.p[2], "d: null before, none now");
	*after = *before;
	after->launches.p = arena_new(arena, struct record_launch);
	after->launches.p[0] = before->launches.p[0];
	after->launches.p[0].counted_grid = false;
	CHECK(check, !runs_comparable(arena, before, after, &reasons));
	after->launches.p[0].counted_grid = true;
	after->launches.p[0].threads = 256;
	CHECK(check, runs_comparable(arena, before, after, &reasons));
	CHECK_INT(check, compare_runs(arena, before, after)->environment.n, 1);
}

int main(void)
{
	struct check check = { 0 };
	struct arena *arena = arena_open();

	test_equal_runs(&check, arena);
	test_growth(&check, arena);
	test_inserted_site(&check, arena);
	test_changed_instruction(&check, arena);
	test_changed_executions(&check, arena);
	test_unmodelled(&check, arena);
	test_comparable(&check, arena);
	arena_close(arena);
	return check_end(&check);
}
