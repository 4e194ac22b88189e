/* The profiler without a GPU: machine code, rows, processes, causes, attribution and verdict. */
#include "analyzer/tile/target.h"
#include "profiler/child.h"
#include "profiler/collection.h"
#include "profiler/cupti.h"
#include "profiler/profile.h"
#include "profiler/sass.h"
#include "tests/unit/check.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

/* ---- machine code ---- */

/* Instructions that ptxas 13.0 made for one access each. */
static const struct {
	int compute;
	uint64_t low, high;
	const char *name; /* NULL: no shared access */
} words[] = {
	{ 80, 0x5057984, 0xe280000004400, "ld.shared.2" },
	{ 80, 0x5057984, 0xe280000004800, "ld.shared.4" },
	{ 80, 0x4047984, 0xe240000008a00, "ld.shared.8" },
	{ 80, 0x5047984, 0xe24000000cc00, "ld.shared.16" },
	{ 80, 0x300007388, 0x1fe20000004000, "st.shared.1" },
	{ 80, 0x300007388, 0x1fe20000004400, "st.shared.2" },
	{ 80, 0x7388, 0xfe20000004800, "st.shared.4" },
	{ 80, 0x202007388, 0xfe20000008a00, "st.shared.8" },
	{ 80, 0x404007388, 0xfe2000000cc00, "st.shared.16" },
	{ 80, 0x4ff05783b, 0xe220008000000, "ldmatrix.x1" },
	{ 80, 0x4ff04783b, 0xe220008000100, "ldmatrix.x2" },
	{ 80, 0x4ff04783b, 0xe220008000200, "ldmatrix.x4" },
	{ 80, 0x4ff05783b, 0xe220008004000, "ldmatrix.x1.trans" },
	{ 80, 0x4ff04783b, 0xe220008004200, "ldmatrix.x4.trans" },
	{ 80, 0x2057fae, 0xfe2000b921844, "cp.async.4" },
	{ 80, 0x2057fae, 0xfe2000b921a44, "cp.async.8" },
	{ 80, 0x2057fae, 0xfe2000b901c44, "cp.async.16" },
	{ 80, 0xff07098c, 0xe620008000004, "atom.shared.4" },
	{ 80, 0x40405738d, 0xe280000004005, "atom.shared.4" },
	{ 80, 0x580002027625, 0xfca00078e0203, NULL },
	{ 90, 0x4ff057984, 0xe620008000400, "ld.shared.2" },
	{ 90, 0x4ff047984, 0xe220008000c00, "ld.shared.16" },
	{ 90, 0xff007988, 0x2fe20008000004, "st.shared.1" },
	{ 90, 0x300007388, 0xfe20000000800, "st.shared.4" },
	{ 90, 0x400007844, 0xfe20000000200, "stmatrix.x4" },
	{ 90, 0x400007844, 0xfe20000004200, "stmatrix.x4.trans" },
	{ 90, 0x2057fae, 0xfe2000b901c44, "cp.async.16" },
	{ 90, 0x1600000084879f0, 0xfe2000c7008ff, "wgmma" }, /* float16 */
	{ 90, 0x2a00000044879f1, 0xfe20008741048, "wgmma" }, /* int8 */
	{ 90, 0x1600000044879f3, 0xfe2000c7008ff, "wgmma" }, /* float8_e4m3 */
	{ 90, 0xfffff984, 0xfe20000000800, NULL }, /* never executed: a filler in front of cp.async */
	{ 100, 0x2057fae, 0x2fe2000b9a1006, "cp.async.4" },
	{ 100, 0x2057fae, 0x2fe2000b9a1406, "cp.async.8" },
	{ 100, 0x2057fae, 0x2fe2000b981806, "cp.async.16" },
	{ 120, 0x4ff04783b, 0xe240008004200, "ldmatrix.x4.trans" },
	{ 120, 0x400007388, 0xfe20000000c00, "st.shared.16" },
};

/* Each word is the access that its row names, on its architecture. */
static void test_words(struct check *check)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct sass_word word = { words[i].low, words[i].high };
		char name[32] = "";
		bool is_access = sass_access(word, words[i].compute, name);

		CHECK(check, is_access == (words[i].name != NULL));
		if (words[i].name)
			CHECK_TEXT(check, name, words[i].name);
	}
}

/* Little-endian. */
static void put_number(uint8_t *bytes, size_t at, uint64_t value, int n)
{
	for (int i = 0; i < n; i++)
		bytes[at + (size_t)i] = (uint8_t)(value >> (8 * i));
}

enum { ELF_BYTES = 0x200, CODE_AT = 0x140, NAMES_AT = 0x100 };

/* An ELF file with section names (1) and the code of kernels `k` (2): two instructions. */
static void make_elf(uint8_t bytes[ELF_BYTES])
{
	static const char names[] = "\0.text.k\0.text.kk";

	memset(bytes, 0, ELF_BYTES);
	memcpy(bytes, "\177ELF", 4);
	put_number(bytes, 0x28, 64, 8);
	put_number(bytes, 0x3a, 64, 2);
	put_number(bytes, 0x3c, 3, 2);
	put_number(bytes, 0x3e, 1, 2);
	put_number(bytes, 64 + 64 + 0x18, NAMES_AT, 8);
	put_number(bytes, 64 + 64 + 0x20, sizeof(names), 8);
	put_number(bytes, 64 + 128 + 0, 1, 4);
	put_number(bytes, 64 + 128 + 0x18, CODE_AT, 8);
	put_number(bytes, 64 + 128 + 0x20, 32, 8);
	memcpy(bytes + NAMES_AT, names, sizeof(names));
	put_number(bytes, CODE_AT + 16, 0x4ff04783b, 8);
	put_number(bytes, CODE_AT + 24, 0xe220008000200, 8);
}

/*
 * The instruction at an address of a kernel; nothing outside its code; and no file, however cut or
 * with whatever offsets, makes it read outside.
 */
static void test_find(struct check *check)
{
	uint8_t bytes[ELF_BYTES];
	struct str file = { (const char *)bytes, ELF_BYTES };
	struct sass_word word = { 0, 0 };

	make_elf(bytes);
	CHECK(check, sass_find(file, "k", 16, &word) && word.low == 0x4ff04783b &&
	                 word.high == 0xe220008000200);
	CHECK(check, !sass_find(file, "k", 32, &word));
	CHECK(check, !sass_find(file, "k", 8, &word));
	CHECK(check, !sass_find(file, "kk", 0, &word));
	CHECK(check, !sass_find(file, "", 0, &word));
	/* Files cut off anywhere, and headers that point outside. */
	for (uint32_t n = 0; n < ELF_BYTES; n++)
		sass_find((struct str){ (const char *)bytes, n }, "k", 16, &word);
	for (size_t at = 0x28; at < 256; at += 4) {
		make_elf(bytes);
		put_number(bytes, at, 0xfffffff0, 4);
		sass_find(file, "k", 16, &word);
		put_number(bytes, at, UINT64_MAX, 8);
		sass_find(file, "k", 16, &word);
	}
}

/* ---- rows ---- */

static const char recorded[] =
	"machine\tNVIDIA H200\tCUDA 13.0\t13.0\t13.0 (/usr/lib/libcupti.so)\t90\n"
	"kernel\t0\t128\t0\t49152\n"
	"sass\t0\t1024\t28\tgemm.tl\tcp.async.16\t4096\t0\t0\n"
	"sass\t0\t2048\t30\tgemm.tl\tldmatrix.x4\t1000\t4000\t4000\n"
	"sass\t0\t2064\t30\tgemm.tl\tldmatrix.x4\t1000\t4000\t4000\n"
	"sass\t0\t2080\t30\tgemm.tl\tldmatrix.x4.trans\t2000\t16000\t8000\n"
	"sass\t0\t4096\t40\tgemm.tl\tst.shared.4\t500\t500\t500\n"
	"sass\t0\t4112\t40\tgemm.tl\tst.shared.4\t500\t501\t500\n"
	"sass\t0\t5000\t7\thelpers.h\tld.shared.4\t3\t3\t3\n"
	"sass\t0\t5016\t41\tgemm.tl\tld.shared.4\t9\t0\t0\n"
	"counter\t0\tgpu__time_duration.sum\tns\t12345\n"
	"counter\t0\tsm__warps_active.avg.pct_of_peak_sustained_active\t%\t18.5\n"
	"counter\t0\tdram__throughput.avg.pct_of_peak_sustained_elapsed\t%\t71.25\n"
	"counter\t0\tsm__inst_issued.avg.pct_of_peak_sustained_elapsed\t%\tnan\n"
	"missing\t0\tdram__bytes_read.sum\tbytes\tnot on this chip (GB202)\n"
	"failure\tE0741\tno permission\thelp: run as root\n"
	"end\n";

static void test_rows(struct check *check, struct arena *arena)
{
	struct collection collection = { 0 };
	struct buf again = { 0 };

	collection_read(arena, str_of(recorded), &collection);
	CHECK(check, collection.complete);
	CHECK_INT(check, collection.sass.n, 8);
	CHECK_INT(check, collection.counters.n, 5);
	CHECK(check, isnan(collection.counters.p[3].value) && !collection.counters.p[3].missing);
	CHECK_TEXT(check, collection.counters.p[4].missing, "not on this chip (GB202)");
	CHECK_TEXT(check, diag_code_text(collection.failures.p[0].code), "E0741");
	CHECK(check,
	      collection.failures.p[0].details.n == 1 && collection.failures.p[0].details.p[0].is_help);
	CHECK_TEXT(check, collection.failures.p[0].details.p[0].text, "run as root");
	collection_print(&again, &collection);
	CHECK_TEXT(check, buf_cstr(&again), recorded);
	buf_free(&again);
}

/* What a process that died left behind is taken as far as it goes, and known to be cut off. */
static void test_cut_rows(struct check *check, struct arena *arena)
{
	for (uint32_t n = 0; n < sizeof(recorded) - 2; n += 7) {
		struct collection collection = { 0 };

		collection_read(arena, (struct str){ recorded, n }, &collection);
		CHECK(check, !collection.complete);
	}
	static const char *const bad[] = { "nonsense\nend\n",
		                               "sass\t0\t1\nend\n",
		                               "sass\tx\t1\t1\tf\tld\t1\t1\t1\nend\n",
		                               "counter\t0\ta\tb\tc\nend\n",
		                               "end\nsass\t0\t1\t1\tf\tld\t1\t1\t1\n",
		                               "failure\tE9999\tx\nend\n",
		                               "\t\t\t\nend\n" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct collection collection = { 0 };

		collection_read(arena, str_of(bad[i]), &collection);
		CHECK(check, !collection.complete);
	}
}

/* ---- processes ---- */

/* A script by /bin/sh. */
static struct child_result shell(const char *script, const char *input, int limit_ms)
{
	char *const arguments[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
		                        (char *)(uintptr_t)script, NULL };

	return child_run("/bin/sh", arguments, str_of(input), limit_ms);
}

/*
 * Output, input, signals, time limits and a program that is not there: what came until then is
 * kept, and the outcome is said in words.
 */
static void test_child(struct check *check, struct arena *arena)
{
	char *const arguments[] = { (char *)(uintptr_t) "x", NULL };
	struct child_result result = shell("cat; echo done; echo lost >&2", "text\n", 10000);

	CHECK_TEXT(check, buf_cstr(&result.out), "text\ndone\n");
	CHECK_INT(check, result.exit_code, 0);
	CHECK(check, child_outcome(arena, &result) == NULL);
	buf_free(&result.out);
	result = shell("echo part; kill -SEGV $$", "", 10000);
	CHECK_TEXT(check, buf_cstr(&result.out), "part\n");
	CHECK_INT(check, result.signal, SIGSEGV);
	CHECK(check, strstr(child_outcome(arena, &result), "killed by signal 11") != NULL);
	buf_free(&result.out);
	result = shell("echo part; sleep 60", "", 200);
	CHECK(check, result.timed_out);
	CHECK_TEXT(check, buf_cstr(&result.out), "part\n");
	buf_free(&result.out);
	result = shell("exec >&-; sleep 60", "", 200);
	CHECK(check, result.timed_out);
	buf_free(&result.out);
	result = shell("exit 3", "", 10000);
	CHECK_TEXT(check, child_outcome(arena, &result), "ended with exit code 3");
	buf_free(&result.out);
	result = child_run("/no/such/program", arguments, str_of(""), 1000);
	CHECK(check,
	      strstr(child_outcome(arena, &result), "could not be started: No such file") != NULL);
	buf_free(&result.out);
}

/* ---- causes ---- */

/* Code, and words that stand in the cause or its help. */
static void check_cause(struct check *check, struct arena *arena, int status,
                        struct cupti_surroundings surroundings, const char *wanted[2])
{
	struct cupti_cause cause = cupti_cause(arena, status, &surroundings);
	const char *words_of =
		arena_printf(arena, "%s %s", cause.text ? cause.text : "", cause.help ? cause.help : "");

	CHECK_TEXT(check, diag_code_text(cause.code), wanted[0]);
	if (!strstr(words_of, wanted[1]))
		CHECK_TEXT(check, words_of, wanted[1]);
}

/* Every refusal has its own code and words. */
static void test_causes(struct check *check, struct arena *arena)
{
	static const struct {
		int status;
		struct cupti_surroundings surroundings;
		const char *wanted[2];
	} cases[] = {
		{ CUPTI_INSUFFICIENT_PRIVILEGES,
		  { .is_container = false },
		  { "E0741", "/etc/modprobe.d" } },
		{ CUPTI_INSUFFICIENT_PRIVILEGES,
		  { .is_container = true },
		  { "E0741", "--cap-add=SYS_ADMIN" } },
		{ CUPTI_INSUFFICIENT_PRIVILEGES, { .is_wsl = true }, { "E0741", "NVIDIA Control Panel" } },
		{ CUPTI_VIRTUALIZED_PRIVILEGES, { 0 }, { "E0741", "hypervisor" } },
		{ CUPTI_MULTIPLE_SUBSCRIBERS,
		  { .holder = "ncu (process 7)" },
		  { "E0742", "ncu (process 7)" } },
		{ CUPTI_MULTIPLE_SUBSCRIBERS, { 0 }, { "E0742", "there can be only one" } },
		{ CUPTI_HARDWARE_BUSY, { 0 }, { "E0742", "another profiler" } },
		{ CUPTI_NOT_INITIALIZED, { .holder = "nsys (process 9)" }, { "E0742", "nsys" } },
		{ CUPTI_NOT_INITIALIZED, { 0 }, { "E0744", "sandbox" } },
		{ CUPTI_WSL_NOT_SUPPORTED, { .is_wsl = true }, { "E0743", "no setting changes that" } },
		{ CUPTI_NOT_SUPPORTED, { .is_wsl = true }, { "E0743", "WSL" } },
		{ CUPTI_NOT_SUPPORTED, { 0 }, { "E0743", "driver does not offer" } },
		{ CUPTI_MIG_NOT_SUPPORTED, { 0 }, { "E0743", "MIG" } },
		{ CUPTI_VIRTUALIZED_NOT_SUPPORTED, { 0 }, { "E0743", "virtual GPU" } },
		{ CUPTI_CONFIDENTIAL_COMPUTING, { 0 }, { "E0743", "confidential" } },
		{ CUPTI_CMP_NOT_SUPPORTED, { 0 }, { "E0743", "mining" } },
		{ CUPTI_INVALID_CHIP, { 0 }, { "E0743", "newer toolkit" } },
		{ CUPTI_UNKNOWN, { 0 }, { "E0744", "" } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *wanted[2] = { cases[i].wanted[0], cases[i].wanted[1] };

		check_cause(check, arena, cases[i].status, cases[i].surroundings, wanted);
	}
}

/* ---- attribution ---- */

static void add_site(struct arena *arena, struct run_record *run, struct record_site site)
{
	site.excess = site.wavefronts < 0 ? -1 : site.wavefronts - site.ideal;
	vec_push(arena, &run->sites, site);
}

/*
 * What was predicted for the kernel of `recorded`: the lines below are chosen so that each
 * agreement comes up.
 */
static struct run_record *predicted(struct arena *arena)
{
	struct run_record *run = arena_new(arena, struct run_record);
	struct record_launch launch = {
		.threads = 128, .grid = { 8, 8, 1 }, .counted_grid = true, .shared_bytes = 49152
	};

	*run = (struct run_record){ .tool_version = "0",
		                        .verb = "profile",
		                        .file = "dir/gemm.tl",
		                        .file_hash = "",
		                        .kernel = "gemm",
		                        .factory = "",
		                        .target = "sm_80",
		                        .layouts = "solved",
		                        .params = "{}" };
	vec_push(arena, &run->launches, launch);
	add_site(arena, run,
	         (struct record_site){ .line = 28,
	                               .buffer = "A",
	                               .instruction = "cp.async.16",
	                               .executions = 4096,
	                               .wavefronts = 16384,
	                               .ideal = 16384 });
	add_site(arena, run,
	         (struct record_site){ .line = 30,
	                               .buffer = "A",
	                               .instruction = "ldmatrix.x4",
	                               .executions = 1000,
	                               .wavefronts = 4000,
	                               .ideal = 4000 });
	add_site(arena, run,
	         (struct record_site){ .line = 30,
	                               .buffer = "C",
	                               .instruction = "ldmatrix.x4",
	                               .executions = 1000,
	                               .wavefronts = 4000,
	                               .ideal = 4000 });
	add_site(arena, run,
	         (struct record_site){ .line = 30,
	                               .buffer = "B",
	                               .instruction = "ldmatrix.x4.trans",
	                               .executions = 2000,
	                               .wavefronts = 16000,
	                               .ideal = 8000 });
	add_site(arena, run,
	         (struct record_site){ .line = 40,
	                               .buffer = "D",
	                               .instruction = "st.shared.4",
	                               .executions = 1000,
	                               .wavefronts = 1000,
	                               .ideal = 1000 });
	add_site(arena, run,
	         (struct record_site){ .line = 50,
	                               .buffer = "D",
	                               .instruction = "ld.shared.16",
	                               .executions = 7,
	                               .wavefronts = 28,
	                               .ideal = 28 });
	return run;
}

/* NULL when there is none. */
static const struct profile_group *group_of(const struct profile *profile, uint32_t line,
                                            const char *instruction)
{
	for (uint32_t i = 0; i < profile->groups.n; i++)
		if (profile->groups.p[i].line == line &&
		    strcmp(profile->groups.p[i].instruction, instruction) == 0)
			return &profile->groups.p[i];
	return NULL;
}

/* How the group agrees, and the wavefronts that were measured for it. */
static void check_group(struct check *check, const struct profile_group *group,
                        enum agreement agreement, int64_t wavefronts)
{
	if (!CHECK(check, group != NULL))
		return;
	CHECK_TEXT(check, agreement_text(group->agreement), agreement_text(agreement));
	CHECK_INT(check, group->wavefronts, wavefronts);
}

/*
 * Instructions of one line and kind are summed and set against the sites of that line; verdict, the
 * worst place and the limit are said in words.
 */
static void test_attribution(struct check *check, struct arena *arena)
{
	struct collection collection = { 0 };
	struct profile *profile;

	collection_read(arena, str_of(recorded), &collection);
	profile = profile_make(arena, predicted(arena), &collection, target_find("sm_90a"));
	check_group(check, group_of(profile, 28, "cp.async.16"), NOT_COUNTED, 0);
	check_group(check, group_of(profile, 30, "ldmatrix.x4"), AGREE, 8000);
	CHECK_TEXT(check, group_of(profile, 30, "ldmatrix.x4")->buffers, "A, C");
	check_group(check, group_of(profile, 30, "ldmatrix.x4.trans"), AGREE, 16000);
	check_group(check, group_of(profile, 40, "st.shared.4"), DISAGREE, 1001);
	check_group(check, group_of(profile, 50, "ld.shared.16"), NOT_MEASURED, 0);
	check_group(check, group_of(profile, 0, "ld.shared.4"), NOT_PREDICTED, 3);
	CHECK(check, group_of(profile, 41, "ld.shared.4") == NULL); /* did nothing */
	CHECK_INT(check, profile->groups.n, 6);
	CHECK_TEXT(check, profile->verdict,
	           "prediction differs on 1 of 3 sites, first at line 40 D st.shared.4: 1000 "
	           "wavefronts predicted, 1001 measured");
	CHECK(check, profile->where &&
	                 strstr(profile->where, "most at line 30, B ldmatrix.x4.trans: 8000 of 16000"));
	CHECK_TEXT(check, profile->limit, "limited by DRAM bandwidth (71 % of its peak)");
	CHECK_INT(check, profile->launches.p[0].registers, 128);
	CHECK_INT(check, profile->launches.p[0].occupancy.blocks_per_sm, 4);
	CHECK(check, profile->launches.p[0].achieved_occupancy > 18.4 &&
	                 profile->launches.p[0].achieved_occupancy < 18.6);
}

/*
 * All compared sites agree, and what could not be compared is counted; without counters there is no
 * limit.
 */
static void test_all_agree(struct check *check, struct arena *arena)
{
	struct collection collection = { 0 };
	struct run_record *run = predicted(arena);

	run->sites.n = 4;
	collection_read(arena,
	                str_of("sass\t0\t2048\t30\t/x/gemm.tl\tldmatrix.x4\t1000\t8000\t8000\n"
	                       "sass\t0\t2080\t30\t/x/gemm.tl\tldmatrix.x4.trans\t2000\t16000\t8000\n"
	                       "sass\t0\t1024\t28\t/x/gemm.tl\tcp.async.16\t4096\t16384\t16384\nend\n"),
	                &collection);
	CHECK_TEXT(check, profile_make(arena, run, &collection, NULL)->verdict,
	           "prediction matches on all 2 compared sites (1 more could not be compared)");
	CHECK(check, profile_make(arena, run, &collection, NULL)->limit == NULL);
}

/* Predictions stand alone, and nothing is stored. */
static void test_nothing_measured(struct check *check, struct arena *arena)
{
	struct collection collection = { 0 };
	struct run_record *run = predicted(arena);
	struct profile *profile = profile_make(arena, run, &collection, target_find("sm_80"));

	CHECK_INT(check, profile->n_of[NOT_MEASURED], 5);
	CHECK_TEXT(check, profile->verdict, "no site was both predicted and measured");
	CHECK(check, profile->where && strstr(profile->where, "line 30, B"));
	profile_record(arena, profile, run);
	CHECK_INT(check, run->measurements.n, 0);
}

/* Stored values: what is missing has a reason, and a group's values do not pose as one site's. */
static void test_stored(struct check *check, struct arena *arena)
{
	struct collection collection = { 0 };
	struct run_record *run = predicted(arena);
	uint32_t n_missing = 0, n_of_line = 0;

	collection_read(arena, str_of(recorded), &collection);
	profile_record(arena, profile_make(arena, run, &collection, NULL), run);
	for (uint32_t i = 0; i < run->measurements.n; i++) {
		const struct record_measurement *row = &run->measurements.p[i];

		n_missing += row->missing != NULL;
		n_of_line += strstr(row->metric, "_of_line") != NULL;
		CHECK(check, row->missing || isfinite(row->value));
	}
	CHECK_INT(check, n_missing, 3 + 3 + 2); /* cp.async, line 50, two counters */
	CHECK_INT(check, n_of_line, 3);
	CHECK_TEXT(check, run->device, "NVIDIA H200");
}

/* ---- CUPTI's own lists, which need no GPU ---- */

/*
 * Every counter of counters.def is known to CUPTI for every chip generation; needs the library, no
 * card.
 */
static void test_metric_names(struct check *check, struct arena *arena)
{
	static const char *const metrics[] = {
#define COUNTER(id, metric, unit) metric,
#include "profiler/counters.def"
#undef COUNTER
	};
	static const char *const chips[] = { "TU102", "GA100", "GA102", "AD102", "GH100", "GB100" };
	struct cupti cupti;
	struct cx cx;

	cx_init(&cx, arena);
#ifdef __SANITIZE_ADDRESS__
	printf("skipped: the names of counters (CUPTI does not load beside AddressSanitizer)\n");
	return;
#endif
	if (!cupti_open(&cupti, &cx, NULL)) {
		printf("skipped: the names of counters (no CUPTI)\n");
		return;
	}
	for (size_t chip = 0; chip < sizeof(chips) / sizeof(*chips); chip++) {
		struct cupti_host_initialize initialize = { .size = CUPTI_SIZE(cupti_host_initialize, host),
			                                        .chip = chips[chip] };
		struct cupti_sass_properties sass = {
			.size = CUPTI_SIZE(cupti_sass_properties, found),
			.chip = chips[chip],
			.metric = "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared_ideal"
		};

		if (!CHECK_INT(check, cupti_call(&cupti, CUPTI_HOST_INITIALIZE, &initialize), CUPTI_OK))
			continue;
		CHECK_INT(check, cupti_call(&cupti, CUPTI_SASS_PROPERTIES, &sass), CUPTI_OK);
		for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
			struct cupti_host_metric_properties properties = {
				.size = CUPTI_SIZE(cupti_host_metric_properties, type),
				.host = initialize.host,
				.metric = metrics[i]
			};

			CHECK_INT(check, cupti_call(&cupti, CUPTI_HOST_METRIC_PROPERTIES, &properties),
			          CUPTI_OK);
		}
	}
	cupti_close(&cupti);
}

int main(void)
{
	struct check check = { 0 };
	struct arena *arena = arena_open();

	test_words(&check);
	test_find(&check);
	test_rows(&check, arena);
	test_cut_rows(&check, arena);
	test_child(&check, arena);
	test_causes(&check, arena);
	test_attribution(&check, arena);
	test_all_agree(&check, arena);
	test_nothing_measured(&check, arena);
	test_stored(&check, arena);
	test_metric_names(&check, arena);
	arena_close(arena);
	return check_end(&check);
}
