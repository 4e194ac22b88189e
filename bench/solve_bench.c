/*
 * solve_bench: what solve_launch costs, kernel by kernel.
 *
 *     build/bench/solve_bench [--repeats N] [--target T] [--passes] FILE... | --list CASES
 *
 * A line of CASES holds words that `tilelayout analyze` takes, with tabs between them: FILE [--kernel K] [--set N=V]
 * [--tensor N=...] [--import-root D] [--target T]. Each repeat reads the kernel anew, because equal
 * expressions are equal objects and a second solve of one program would find its own. The time is
 * the thread's CPU time of solve_launch alone, summed over the launches: the median of the repeats.
 * A line a case: status, milliseconds, instructions, optimality gap, file. Instructions are the
 * processor's user-space count where perf_event_open allows it, else "-" (bench/solve.sh can ask
 * callgrind instead, which counts inside solve_launch). Exit 2: the command line is at fault.
 */
#include "analyzer/session.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WORDS = 128, MAX_REPEATS = 101, N_PASSES = 6 };

struct bench {
	uint32_t n_repeats;
	const char *target;
	bool by_pass; /* the whole analysis, pass by pass */
	int counter;  /* a perf event, -1: there is none */
};

/* One case, as the command line or a line of the list gives it. */
struct words {
	int n;
	char *p[MAX_WORDS];
};

struct measured {
	double ms;
	uint64_t instructions;
	double passes[N_PASSES];
	const char
		*status; /* optimal, best, partial (not all candidates looked at), conflict, refused */
	double gap;  /* (cost - bound) / cost, of all launches together */
};

static double cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static int open_counter(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
		                            .size = sizeof(attr),
		                            .config = PERF_COUNT_HW_INSTRUCTIONS,
		                            .exclude_kernel = 1,
		                            .exclude_hv = 1 };

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static uint64_t instructions(const struct bench *bench)
{
	uint64_t count = 0;

	if (bench->counter < 0 || read(bench->counter, &count, sizeof(count)) != sizeof(count))
		return 0;
	return count;
}

/* ---- one case ---- */

/* False when a word has no meaning here. */
static bool read_words(const struct bench *bench, struct arena *arena, const struct words *words,
                       struct compile_options *out)
{
	const char *target = bench->target;

	out->frontend.config = -1;
	for (int i = 1; i < words->n; i += 2) {
		const char *name = words->p[i], *value = i + 1 < words->n ? words->p[i + 1] : NULL;
		struct frontend_set set;

		if (!value)
			return false;
		if (strcmp(name, "--kernel") == 0)
			out->frontend.kernel = value;
		else if (strcmp(name, "--import-root") == 0)
			out->frontend.import_root = value;
		else if (strcmp(name, "--target") == 0)
			target = value;
		else if (strcmp(name, "--set") == 0 && setting_parse(arena, value, &set))
			vec_push(arena, &out->frontend.sets, set);
		else if (strcmp(name, "--tensor") == 0 && setting_parse(arena, value, &set))
			vec_push(arena, &out->frontend.tensors, set);
		else
			return false;
	}
	out->target = target_find(target);
	return out->target != NULL;
}

static void judge(const struct compile *compile, double cost, double bound, struct measured *out)
{
	out->status = "optimal";
	out->gap = cost > 0 ? (cost - bound) / cost : 0;
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		const struct solution *solution = compile->launches.p[i]->solution;

		if (!solution || solution->status == SOLVE_CONFLICT)
			out->status = "conflict";
		else if (solution->status == SOLVE_BEST_FOUND && strcmp(out->status, "conflict") != 0)
			out->status = solution->is_partial ? "partial" : "best";
	}
}

/* The launches, solved; times and counts of solve_launch go to `out`. */
static void solve_once(const struct bench *bench, struct compile *compile, struct measured *out)
{
	double cost = 0, bound = 0;

	for (uint32_t i = 0; i < compile->launches.n; i++) {
		struct launch_result *launch = compile->launches.p[i];
		uint64_t first = instructions(bench);
		double start = cpu_ms();

		launch->solution = solve_launch(compile->program, launch->launch, compile->options.target,
		                                &compile->options.solve);
		out->ms += cpu_ms() - start;
		out->instructions += instructions(bench) - first;
		if (launch->solution) {
			cost += launch->solution->cost;
			bound += launch->solution->bound;
		}
	}
	judge(compile, cost, bound, out);
}

/* All passes in turn, as `analyze` runs them; a failed one ends it. */
static void run_passes(struct compile *compile, struct measured *out)
{
	const struct pass *pass = compile_passes();

	out->status = "solved";
	for (int i = 0; i < N_PASSES && pass[i].name; i++) {
		double start = cpu_ms();
		bool ok = pass[i].run(compile) && compile->cx.diags.n_errors == 0;

		out->passes[i] = cpu_ms() - start;
		out->ms += out->passes[i];
		if (!ok) {
			out->status = i == 0 ? "refused" : pass[i].name;
			return;
		}
	}
}

static bool run_once(const struct bench *bench, const struct words *words, struct measured *out)
{
	struct arena *arena = arena_open();
	struct compile_options *options = arena_new(arena, struct compile_options);
	struct compile *compile = NULL;
	bool ok = read_words(bench, arena, words, options);

	*out = (struct measured){ .status = "refused" };
	if (ok) {
		compile = compile_open(arena, options);
		if (!compile_load(compile, words->p[0]))
			ok = false;
		else if (bench->by_pass)
			run_passes(compile, out);
		else if (compile_run(compile, "tile"))
			solve_once(bench, compile, out);
	}
	arena_close(arena);
	return ok;
}

static int by_time(const void *a, const void *b)
{
	const struct measured *x = a, *y = b;

	return x->ms < y->ms ? -1 : x->ms > y->ms;
}

static bool run_case(const struct bench *bench, const struct words *words)
{
	struct measured runs[MAX_REPEATS];
	const struct measured *median = &runs[bench->n_repeats / 2];

	for (uint32_t i = 0; i < bench->n_repeats; i++)
		if (!run_once(bench, words, &runs[i])) {
			fprintf(stderr, "solve_bench: cannot run %s\n", words->p[0]);
			return false;
		}
	qsort(runs, bench->n_repeats, sizeof(runs[0]), by_time);
	printf("%-9s %9.3f ", median->status, median->ms);
	if (bench->by_pass)
		for (int i = 0; i < N_PASSES; i++)
			printf("%8.2f ", median->passes[i]);
	else if (median->instructions > 0)
		printf("%12llu ", (unsigned long long)median->instructions);
	else
		printf("%12s ", "-");
	if (!bench->by_pass)
		printf("%7.4f ", median->gap);
	for (int i = 0; i < words->n; i++)
		printf("%s%s", i ? "\t" : " ", words->p[i]);
	printf("\n");
	fflush(stdout);
	return true;
}

/* ---- the command line ---- */

static bool run_list(const struct bench *bench, const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	bool ok = file != NULL;

	while (ok && getline(&line, &room, file) >= 0) {
		struct words words = { 0 };
		char *rest = NULL;

		for (char *word = strtok_r(line, "\t\n", &rest); word && words.n < MAX_WORDS;
		     word = strtok_r(NULL, "\t\n", &rest))
			words.p[words.n++] = word;
		if (words.n > 0)
			ok = run_case(bench, &words);
	}
	free(line);
	if (file)
		fclose(file);
	else
		perror(path);
	return ok;
}

static int usage(void)
{
	fprintf(stderr, "usage: solve_bench [--repeats N] [--target T] [--passes] FILE... | --list "
	                "CASES\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct bench bench = { .n_repeats = 5, .target = "sm_80", .counter = open_counter() };
	bool ok = true;

	if (argc < 2)
		return usage();
	for (int i = 1; i < argc && ok; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		struct words words = { 1, { argv[i] } };

		if (strcmp(argv[i], "--repeats") == 0) {
			bench.n_repeats = (uint32_t)strtoul(value, NULL, 10);
			ok = bench.n_repeats >= 1 && bench.n_repeats <= MAX_REPEATS;
			i++;
		} else if (strcmp(argv[i], "--target") == 0) {
			bench.target = value;
			i++;
		} else if (strcmp(argv[i], "--passes") == 0) {
			bench.by_pass = true;
		} else if (strcmp(argv[i], "--list") == 0) {
			ok = run_list(&bench, value);
			i++;
		} else {
			ok = argv[i][0] != '-' && run_case(&bench, &words);
		}
	}
	if (bench.counter >= 0)
		close(bench.counter);
	return ok ? 0 : usage();
}
