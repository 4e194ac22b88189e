/* Attribution of machine instructions to kernel lines, and the verdict. */
#include "profiler/profile.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *agreement_text(enum agreement agreement)
{
	switch (agreement) {
	case AGREE:
		return "yes";
	case DISAGREE:
		return "NO";
	case NOT_PREDICTED:
		return "not predicted";
	case NOT_MEASURED:
		return "not measured";
	case NOT_COUNTED:
		return "not counted";
	case N_AGREEMENTS:
		break;
	}
	BUG("agreement %d", (int)agreement);
}

/* ---- groups ---- */

/* NULL when there is none. */
static struct profile_group *find_group(struct profile *profile, uint32_t launch, uint32_t line,
                                        const char *instruction)
{
	for (uint32_t i = 0; i < profile->groups.n; i++) {
		struct profile_group *group = &profile->groups.p[i];

		if (group->launch == launch && group->line == line &&
		    strcmp(group->instruction, instruction) == 0)
			return group;
	}
	return NULL;
}

/* Found or made. The pointer holds until the next group is made. */
static struct profile_group *group_at(struct arena *arena, struct profile *profile, uint32_t launch,
                                      uint32_t line, const char *instruction)
{
	struct profile_group *group = find_group(profile, launch, line, instruction);
	struct profile_group fresh = {
		.launch = launch, .line = line, .instruction = instruction, .buffers = "", .first_site = -1
	};

	if (group)
		return group;
	vec_push(arena, &profile->groups, fresh);
	return &vec_last(&profile->groups);
}

/* Adds where both are known. */
static void add_known(int64_t *sum, int64_t value)
{
	*sum = *sum < 0 || value < 0 ? -1 : *sum + value;
}

/* A predicted site. */
static void add_site(struct arena *arena, struct profile *profile, uint32_t index)
{
	const struct record_site *site = &profile->run->sites.p[index];
	struct profile_group *group =
		group_at(arena, profile, site->launch, site->line, site->instruction);

	if (group->n_sites++ == 0)
		group->first_site = index;
	group->buffers = group->buffers[0] ? arena_printf(arena, "%s, %s", group->buffers, site->buffer)
	                                   : site->buffer;
	add_known(&group->predicted_executions, site->executions);
	add_known(&group->predicted_wavefronts, site->wavefronts);
	add_known(&group->predicted_ideal, site->ideal);
}

/* The path behind its last slash. */
static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A line counts when it is one of the kernel file; text from standard input has no name to compare.
 */
static uint32_t kernel_line(const struct profile *profile, const struct sass_row *row)
{
	bool named = strcmp(profile->run->file, "-") != 0;

	return named && strcmp(base_name(profile->run->file), base_name(row->file)) != 0 ? 0
	                                                                                 : row->line;
}

/* A measured instruction; one of another file or without a line goes to line 0. */
static void add_sass(struct arena *arena, struct profile *profile, const struct sass_row *row)
{
	struct profile_group *group;

	if (row->launch >= profile->run->launches.n)
		return;
	group = group_at(arena, profile, row->launch, kernel_line(profile, row), row->instruction);
	group->n_instructions++;
	group->executions += row->executions;
	group->wavefronts += row->wavefronts;
	group->ideal += row->ideal;
}

/*
 * Accesses that the per-instruction counter does not count well: on an H200 it gave for one
 * cp.async of 16 bytes what was predicted, for another twice and for a third a quarter of it, while
 * the hardware counters saw no conflict (tests/data/profile_sites_h200.csv).
 */
static bool is_uncounted(const char *instruction)
{
	return strncmp(instruction, "cp.async", 8) == 0 || strncmp(instruction, "tma", 3) == 0;
}

/* The counter of the ideal gives 0 for what wgmma reads, that of the wavefronts all of it. */
static bool has_ideal(const char *instruction)
{
	return strcmp(instruction, "wgmma") != 0;
}

/* Equal means equal to the unit: both are exact. */
static enum agreement judge(const struct profile_group *group)
{
	if (group->n_instructions == 0)
		return NOT_MEASURED;
	if (group->n_sites > 0 && is_uncounted(group->instruction))
		return NOT_COUNTED;
	if (group->n_sites == 0 || group->predicted_wavefronts < 0)
		return NOT_PREDICTED;
	return group->wavefronts == group->predicted_wavefronts &&
	               (group->ideal == group->predicted_ideal || !has_ideal(group->instruction))
	           ? AGREE
	           : DISAGREE;
}

/* By launch, line, instruction. */
static int compare_groups(const void *a, const void *b)
{
	const struct profile_group *left = a, *right = b;

	if (left->launch != right->launch)
		return left->launch < right->launch ? -1 : 1;
	if (left->line != right->line)
		return left->line < right->line ? -1 : 1;
	return strcmp(left->instruction, right->instruction);
}

/* Instructions that were not predicted and did nothing (a guard that never holds) are left out. */
static void drop_idle(struct profile *profile)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < profile->groups.n; i++) {
		const struct profile_group *group = &profile->groups.p[i];

		if (group->n_sites > 0 || group->wavefronts > 0)
			profile->groups.p[n++] = *group;
	}
	profile->groups.n = n;
}

/* Predictions first, then what was measured beside them. */
static void make_groups(struct arena *arena, struct profile *profile)
{
	for (uint32_t i = 0; i < profile->run->sites.n; i++)
		add_site(arena, profile, i);
	for (uint32_t i = 0; i < profile->measured->sass.n; i++)
		add_sass(arena, profile, &profile->measured->sass.p[i]);
	drop_idle(profile);
	if (profile->groups.n > 1)
		qsort(profile->groups.p, profile->groups.n, sizeof(*profile->groups.p), compare_groups);
	for (uint32_t i = 0; i < profile->groups.n; i++) {
		struct profile_group *group = &profile->groups.p[i];

		group->agreement = judge(group);
		profile->n_of[group->agreement]++;
	}
}

/* ---- launches ---- */

/* NaN when the counter was not measured. */
static double counter_value(const struct collection *measured, uint32_t launch, const char *metric)
{
	const struct counter_row *row = collection_counter(measured, launch, metric);

	return row && !row->missing ? row->value : (double)NAN;
}

static const char *const metric_names[] = {
#define COUNTER(id, metric, unit) metric,
#include "profiler/counters.def"
#undef COUNTER
};

enum counter_id {
#define COUNTER(id, metric, unit) COUNTER_##id,
#include "profiler/counters.def"
#undef COUNTER
};

/* Occupancy from the registers that the compiler took, not from the estimate. */
static void make_launches(struct arena *arena, struct profile *profile, const struct target *target)
{
	for (uint32_t i = 0; i < profile->run->launches.n; i++) {
		struct profile_launch launch = { .registers = -1,
			                             .local_bytes = -1,
			                             .shared_bytes = profile->run->launches.p[i].shared_bytes };

		for (uint32_t j = 0; j < profile->measured->kernels.n; j++) {
			const struct kernel_row *row = &profile->measured->kernels.p[j];

			if (row->launch != i)
				continue;
			launch.registers = row->registers;
			launch.local_bytes = row->local_bytes;
		}
		if (target && launch.registers > 0)
			launch.occupancy = target_occupancy(target, profile->run->launches.p[i].threads,
			                                    launch.registers, launch.shared_bytes);
		launch.achieved_occupancy =
			counter_value(profile->measured, i, metric_names[COUNTER_OCCUPANCY]);
		vec_push(arena, &profile->launches, launch);
	}
}

/* ---- verdict ---- */

/* Measured where it can be, else predicted. */
static int64_t known_excess(const struct profile_group *group)
{
	if (group->n_instructions > 0 && group->agreement != NOT_COUNTED)
		return has_ideal(group->instruction) ? group->wavefronts - group->ideal : 0;
	return group->predicted_wavefronts < 0 ? 0
	                                       : group->predicted_wavefronts - group->predicted_ideal;
}

/* The same of all wavefronts. */
static int64_t known_wavefronts(const struct profile_group *group)
{
	if (group->n_instructions > 0 && group->agreement != NOT_COUNTED)
		return group->wavefronts;
	return group->predicted_wavefronts < 0 ? 0 : group->predicted_wavefronts;
}

/* Do the predictions hold, and where do they first not? */
static const char *agreement_verdict(struct arena *arena, const struct profile *profile)
{
	uint32_t n_compared = profile->n_of[AGREE] + profile->n_of[DISAGREE];
	const struct profile_group *first = NULL;

	if (profile->groups.n == 0)
		return "the kernel does not access shared memory";
	if (n_compared == 0)
		return "no site was both predicted and measured";
	for (uint32_t i = 0; i < profile->groups.n && !first; i++)
		if (profile->groups.p[i].agreement == DISAGREE)
			first = &profile->groups.p[i];
	if (!first && n_compared == profile->groups.n)
		return arena_printf(arena, "prediction matches on all %u sites", n_compared);
	if (!first)
		return arena_printf(
			arena, "prediction matches on all %u compared sites (%u more could not be compared)",
			n_compared, profile->groups.n - n_compared);
	return arena_printf(arena,
	                    "prediction differs on %u of %u sites, first at line %u %s %s: %lld "
	                    "wavefronts predicted, %lld measured",
	                    profile->n_of[DISAGREE], n_compared, first->line,
	                    first->buffers[0] ? first->buffers : "?", first->instruction,
	                    (long long)first->predicted_wavefronts, (long long)first->wavefronts);
}

/* The site that wastes most. */
static const char *excess_verdict(struct arena *arena, struct profile *profile)
{
	const struct profile_group *worst = NULL;

	for (uint32_t i = 0; i < profile->groups.n; i++) {
		const struct profile_group *group = &profile->groups.p[i];
		int64_t excess = known_excess(group);

		profile->excess += excess;
		profile->wavefronts += known_wavefronts(group);
		if (excess > 0 && (!worst || excess > known_excess(worst)))
			worst = group;
	}
	if (!worst)
		return NULL;
	return arena_printf(
		arena,
		"%.1f %% of the shared-memory wavefronts are excess; most at line %u, %s %s: %lld of %lld",
		100.0 * (double)profile->excess / (double)profile->wavefronts, worst->line,
		worst->buffers[0] ? worst->buffers : "?", worst->instruction,
		(long long)known_excess(worst), (long long)known_wavefronts(worst));
}

/* Units whose use is compared; one that is busy more than BUSY_PERCENT of the time limits the
 * launch. */
static const struct unit {
	enum counter_id counter;
	const char *name;
} units[] = {
	{ COUNTER_DRAM, "DRAM bandwidth" },
	{ COUNTER_L2, "the L2 cache" },
	{ COUNTER_SHARED, "shared-memory bandwidth" },
	{ COUNTER_TENSOR, "the tensor cores" },
	{ COUNTER_ISSUE, "instruction issue" },
};

enum { BUSY_PERCENT = 60 };

/* The busiest unit, or latency; NULL without counters. */
static const char *limit_verdict(struct arena *arena, const struct profile *profile,
                                 uint32_t launch)
{
	const struct unit *busiest = NULL;
	double most = 0;

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		double value = counter_value(profile->measured, launch, metric_names[units[i].counter]);

		if (isfinite(value) && value > most) {
			most = value;
			busiest = &units[i];
		}
	}
	if (!busiest)
		return NULL;
	if (most >= BUSY_PERCENT)
		return arena_printf(arena, "limited by %s (%.0f %% of its peak)", busiest->name, most);
	return arena_printf(
		arena,
		"limited by latency: no unit is busy more than %d %% of the time (%s most, %.0f %%)%s",
		BUSY_PERCENT, busiest->name, most,
		profile->launches.p[launch].achieved_occupancy < 25 ? "; few warps are resident to hide it"
															: "");
}

/* The launch that takes longest. */
static uint32_t longest_launch(const struct profile *profile)
{
	uint32_t longest = 0;

	for (uint32_t i = 1; i < profile->launches.n; i++)
		if (counter_value(profile->measured, i, metric_names[COUNTER_DURATION]) >
		    counter_value(profile->measured, longest, metric_names[COUNTER_DURATION]))
			longest = i;
	return longest;
}

struct profile *profile_make(struct arena *arena, const struct run_record *run,
                             const struct collection *measured, const struct target *target)
{
	struct profile *profile = arena_new(arena, struct profile);

	assert(run->launches.n > 0);
	profile->run = run;
	profile->measured = measured;
	make_groups(arena, profile);
	make_launches(arena, profile, target);
	profile->verdict = agreement_verdict(arena, profile);
	profile->where = excess_verdict(arena, profile);
	profile->limit = limit_verdict(arena, profile, longest_launch(profile));
	return profile;
}

/* ---- storing ---- */

/* Three measurements at the group's first site. */
static void record_group(struct arena *arena, const struct profile_group *group,
                         struct run_record *run)
{
	assert(group->first_site >= 0 && group->n_sites > 0);
	/* A group of several sites stands at its first one, under a name that says so. */
	const char *suffix = group->n_sites > 1 ? "_of_line" : "";
	const struct {
		const char *metric;
		int64_t value;
	} rows[] = { { "executions", group->executions },
		         { "wavefronts", group->wavefronts },
		         { "ideal", group->ideal } };
	const char *missing = NULL;

	if (group->agreement == NOT_MEASURED)
		missing = "no machine instruction at this line was measured";
	else if (group->agreement == NOT_COUNTED)
		missing = "the counter does not see this kind of access";
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct record_measurement row = { .launch = group->launch,
			                              .site = group->first_site,
			                              .metric =
			                                  arena_printf(arena, "%s%s", rows[i].metric, suffix),
			                              .unit = rows[i].metric,
			                              .value = (double)rows[i].value,
			                              .missing = missing };

		record_measure(arena, run, row);
	}
}

void profile_record(struct arena *arena, const struct profile *profile, struct run_record *run)
{
	const struct collection *measured = profile->measured;

	assert(run == profile->run);
	run->device = measured->device;
	run->driver = measured->driver;
	run->nvrtc = measured->nvrtc;
	run->cupti = measured->cupti;
	for (uint32_t i = 0; measured->sass.n > 0 && i < profile->groups.n; i++)
		if (profile->groups.p[i].first_site >= 0)
			record_group(arena, &profile->groups.p[i], run);
	for (uint32_t i = 0; i < measured->counters.n; i++) {
		const struct counter_row *row = &measured->counters.p[i];
		struct record_measurement copy = { .launch = row->launch,
			                               .site = -1,
			                               .metric = row->metric,
			                               .unit = row->unit,
			                               .value = row->value,
			                               .missing = row->missing };

		if (row->launch < run->launches.n)
			record_measure(arena, run, copy);
	}
	for (uint32_t i = 0; i < profile->launches.n; i++) {
		const struct profile_launch *launch = &profile->launches.p[i];
		struct record_measurement row = { .launch = i,
			                              .site = -1,
			                              .metric = "registers",
			                              .unit = "registers a thread",
			                              .value = (double)launch->registers };

		if (launch->registers >= 0)
			record_measure(arena, run, row);
	}
}
