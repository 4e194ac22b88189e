/*
 * Predicted beside measured, as text and JSON. Text shows one figure where both agree, so that a
 * page of agreement is easy to read and a disagreement stands out; JSON always has both sides.
 */
#include "cli/profile.h"
#include "cli/table.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- text ---- */

/* "12" where both agree, "12 / 13" where they do not, "12 / -" without a measurement, "- / 13"
 * without a prediction. */
static const char *both_text(struct arena *arena, int64_t predicted, int64_t measured)
{
	const char *left = predicted < 0 ? "-" : count_text(arena, predicted);
	const char *right = measured < 0 ? "-" : count_text(arena, measured);

	return predicted == measured ? left : arena_printf(arena, "%s / %s", left, right);
}

/* Red is kept for disagreement. */
static enum table_style agreement_style(enum agreement agreement)
{
	switch (agreement) {
	case AGREE:
		return STYLE_GOOD;
	case DISAGREE:
		return STYLE_BAD;
	case NOT_PREDICTED:
	case NOT_MEASURED:
	case NOT_COUNTED:
	case N_AGREEMENTS:
		break;
	}
	return STYLE_DIM;
}

/* -1 where one of both is not known. */
static int64_t excess_of(int64_t wavefronts, int64_t ideal)
{
	return wavefronts < 0 || ideal < 0 ? -1 : wavefronts - ideal;
}

/* What is known of a group: -1 where nothing is. */
struct sums {
	int64_t predicted_executions, predicted_wavefronts, predicted_ideal;
	int64_t executions, wavefronts, ideal;
};

/* The figures of a group with -1 in place of those that mean nothing. */
static struct sums sums_of(const struct profile_group *group)
{
	bool measured = group->n_instructions > 0 && group->agreement != NOT_COUNTED;
	bool predicted = group->n_sites > 0;

	return (struct sums){
		.predicted_executions = predicted ? group->predicted_executions : -1,
		.predicted_wavefronts = predicted ? group->predicted_wavefronts : -1,
		.predicted_ideal = predicted ? group->predicted_ideal : -1,
		.executions = group->n_instructions > 0 ? group->executions : -1,
		.wavefronts = measured ? group->wavefronts : -1,
		.ideal = measured ? group->ideal : -1,
	};
}

/* Four cells. */
static void add_figures(struct table *table, const struct sums *sums)
{
	struct arena *arena = table->arena;
	int64_t predicted_excess = excess_of(sums->predicted_wavefronts, sums->predicted_ideal);
	int64_t excess = excess_of(sums->wavefronts, sums->ideal);
	enum table_style style =
		excess > 0 || (excess < 0 && predicted_excess > 0) ? STYLE_WARN : STYLE_PLAIN;

	table_add(table, STYLE_PLAIN, both_text(arena, sums->predicted_executions, sums->executions));
	table_add(table, STYLE_PLAIN, both_text(arena, sums->predicted_wavefronts, sums->wavefronts));
	table_add(table, STYLE_PLAIN, both_text(arena, sums->predicted_ideal, sums->ideal));
	table_add(table, style, both_text(arena, predicted_excess, excess));
}

/* Without any measurement the predictions stand alone. */
static void predicted_only(struct sums *sums)
{
	sums->executions = sums->predicted_executions;
	sums->wavefronts = sums->predicted_wavefronts;
	sums->ideal = sums->predicted_ideal;
}

/* One row of the table. */
static void add_group(struct table *table, const struct profile_group *group, bool measured)
{
	struct sums sums = sums_of(group);

	if (!measured)
		predicted_only(&sums);
	if (group->line > 0)
		table_addf(table, STYLE_PLAIN, "%u", group->line);
	else
		table_add(table, STYLE_PLAIN, "?");
	table_add(table, STYLE_PLAIN, group->buffers[0] ? group->buffers : "?");
	table_add(table, STYLE_PLAIN, group->instruction);
	add_figures(table, &sums);
	table_add(table, agreement_style(group->agreement), agreement_text(group->agreement));
}

/* -1 counts 0 in sums. */
static int64_t known(int64_t value)
{
	return value > 0 ? value : 0;
}

/* Sums over the sites that were compared; over all predictions where nothing was measured. */
static void add_total(struct table *table, const struct profile *profile)
{
	bool measured = profile->measured->sass.n > 0;
	struct sums total = { 0 };

	if (measured && profile->n_of[AGREE] + profile->n_of[DISAGREE] == 0)
		return;
	for (uint32_t i = 0; i < profile->groups.n; i++) {
		const struct profile_group *group = &profile->groups.p[i];
		struct sums sums = sums_of(group);

		if (measured && group->agreement != AGREE && group->agreement != DISAGREE)
			continue;
		total.predicted_executions += known(sums.predicted_executions);
		total.predicted_wavefronts += known(sums.predicted_wavefronts);
		total.predicted_ideal += known(sums.predicted_ideal);
		total.executions += known(sums.executions);
		total.wavefronts += known(sums.wavefronts);
		total.ideal += known(sums.ideal);
	}
	if (!measured)
		predicted_only(&total);
	table_add(table, STYLE_BOLD, "sum");
	table_add(table, STYLE_DIM, measured ? "(compared)" : "");
	table_add(table, STYLE_PLAIN, "");
	add_figures(table, &total);
	table_add(table, STYLE_PLAIN, "");
}

/* The table of lines. */
static void text_sites(struct cli *cli, const struct profile *profile)
{
	static const char *const headings[] = { "line",       "buffer", "instruction", "executions",
		                                    "wavefronts", "ideal",  "excess",      "match" };
	struct table table;

	if (profile->groups.n == 0)
		return;
	buf_char(&cli->out, '\n');
	style_text(&cli->out, STYLE_BOLD, cli->colour_out, "Shared memory");
	style_text(
		&cli->out, STYLE_DIM, cli->colour_out,
		profile->measured->sass.n > 0
			? "  one figure: predicted and measured are equal; a / b: a predicted, b measured"
			: "  predicted");
	buf_char(&cli->out, '\n');
	table_init(&table, cli->arena, "rllrrrrl");
	for (size_t i = 0; i < sizeof(headings) / sizeof(*headings); i++)
		table_add(&table, STYLE_DIM, headings[i]);
	for (uint32_t i = 0; i < profile->groups.n; i++)
		add_group(&table, &profile->groups.p[i], profile->measured->sass.n > 0);
	add_total(&table, profile);
	table_print(&cli->out, &table, cli->colour_out);
}

/* Registers and occupancy. */
static void text_launches(struct cli *cli, const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->launches.n; i++) {
		const struct profile_launch *launch = &profile->launches.p[i];

		if (launch->registers < 0)
			continue;
		buf_printf(&cli->out,
		           "\nlaunch %u: %lld threads, %lld registers a thread, %lld bytes of local "
		           "memory, %s bytes of shared memory\n",
		           i, (long long)profile->run->launches.p[i].threads, (long long)launch->registers,
		           (long long)launch->local_bytes, count_text(cli->arena, launch->shared_bytes));
		if (launch->occupancy.blocks_per_sm > 0)
			buf_printf(&cli->out,
			           "  occupancy  predicted %.1f %% (%lld blocks an SM, limited by %s)",
			           100 * launch->occupancy.fraction, (long long)launch->occupancy.blocks_per_sm,
			           occupancy_limiter_text(launch->occupancy.limiter));
		else
			buf_text(&cli->out, "  occupancy  not predicted");
		if (isfinite(launch->achieved_occupancy))
			buf_printf(&cli->out, ", achieved %.1f %%\n", launch->achieved_occupancy);
		else
			buf_text(&cli->out, ", achieved not measured\n");
	}
}

/* Every counter, with the reason where it has no value. */
static void text_counters(struct cli *cli, const struct profile *profile)
{
	struct table table;

	if (profile->measured->counters.n == 0)
		return;
	table_init(&table, cli->arena, "rlrl");
	table_add(&table, STYLE_DIM, "launch");
	table_add(&table, STYLE_DIM, "counter");
	table_add(&table, STYLE_DIM, "value");
	table_add(&table, STYLE_DIM, "unit");
	for (uint32_t i = 0; i < profile->measured->counters.n; i++) {
		const struct counter_row *row = &profile->measured->counters.p[i];
		const char *missing = row->missing           ? row->missing
		                      : isfinite(row->value) ? NULL
		                                             : "the counter gave not a number";

		table_addf(&table, STYLE_DIM, "%u", row->launch);
		table_add(&table, STYLE_PLAIN, row->metric);
		if (missing)
			table_add(&table, STYLE_DIM, "-");
		else if (row->value >= 100 && row->value < 1e15)
			table_add(&table, STYLE_PLAIN, count_text(cli->arena, (int64_t)llround(row->value)));
		else
			table_addf(&table, STYLE_PLAIN, "%.4g", row->value);
		table_add(&table, missing ? STYLE_WARN : STYLE_PLAIN, missing ? missing : row->unit);
	}
	buf_char(&cli->out, '\n');
	style_text(&cli->out, STYLE_BOLD, cli->colour_out, "Counters");
	style_text(&cli->out, STYLE_DIM, cli->colour_out,
	           "  bank conflicts here hold arbitration with other traffic too\n");
	table_print(&cli->out, &table, cli->colour_out);
}

/* The verdict first, then the evidence: lines, launches, counters. */
void profile_text(struct cli *cli, const struct profile *profile)
{
	const struct collection *measured = profile->measured;

	assert(profile->launches.n == profile->run->launches.n);
	style_text(&cli->out, STYLE_BOLD, cli->colour_out, record_name(cli->arena, profile->run));
	if (measured->device)
		buf_printf(&cli->out, "  on %s (sm_%d), driver %s, NVRTC %s, CUPTI %s\n", measured->device,
		           measured->compute, measured->driver ? measured->driver : "?",
		           measured->nvrtc ? measured->nvrtc : "?",
		           measured->cupti ? measured->cupti : "-");
	else
		buf_text(&cli->out, "  not measured\n");
	style_text(&cli->out, profile->n_of[DISAGREE] > 0 ? STYLE_BAD : STYLE_PLAIN, cli->colour_out,
	           profile->verdict);
	buf_char(&cli->out, '\n');
	if (profile->where)
		buf_printf(&cli->out, "%s\n", profile->where);
	if (profile->limit)
		buf_printf(&cli->out, "%s\n", profile->limit);
	text_sites(cli, profile);
	text_launches(cli, profile);
	text_counters(cli, profile);
}

/* ---- JSON ---- */

/* One side of a site. */
static void json_figures(struct json *json, const char *key, int64_t executions, int64_t wavefronts,
                         int64_t ideal)
{
	json_key(json, key);
	json_object(json);
	json_kcount(json, "executions", executions);
	json_kcount(json, "wavefronts", wavefronts);
	json_kcount(json, "ideal", ideal);
	json_kcount(json, "excess", excess_of(wavefronts, ideal));
	json_end(json);
}

/* As the table, with null where it has "-". */
static void json_sites(struct json *json, const struct profile *profile)
{
	json_key(json, "sites");
	json_array(json);
	for (uint32_t i = 0; i < profile->groups.n; i++) {
		const struct profile_group *group = &profile->groups.p[i];
		struct sums sums = sums_of(group);

		json_object(json);
		json_kint(json, "launch", group->launch);
		json_kint(json, "line", group->line);
		json_kstring(json, "buffer", group->buffers);
		json_kstring(json, "instruction", group->instruction);
		json_kint(json, "n_sites", group->n_sites);
		json_kint(json, "n_instructions", group->n_instructions);
		json_figures(json, "predicted", sums.predicted_executions, sums.predicted_wavefronts,
		             sums.predicted_ideal);
		json_figures(json, "measured", sums.executions, sums.wavefronts, sums.ideal);
		json_kstring(json, "match", agreement_text(group->agreement));
		json_end(json);
	}
	json_end(json);
}

/* Fractions of 1, null where not known. */
static void json_launches(struct json *json, const struct profile *profile)
{
	json_key(json, "launches");
	json_array(json);
	for (uint32_t i = 0; i < profile->launches.n; i++) {
		const struct profile_launch *launch = &profile->launches.p[i];

		json_object(json);
		json_kcount(json, "registers", launch->registers);
		json_kcount(json, "local_bytes", launch->local_bytes);
		json_kint(json, "shared_bytes", launch->shared_bytes);
		json_key(json, "occupancy_predicted");
		if (launch->occupancy.blocks_per_sm > 0)
			json_double(json, launch->occupancy.fraction);
		else
			json_null(json);
		json_kdouble(json, "occupancy_achieved", launch->achieved_occupancy / 100);
		json_end(json);
	}
	json_end(json);
}

/* Every counter. */
static void json_counters(struct json *json, const struct profile *profile)
{
	json_key(json, "counters");
	json_array(json);
	for (uint32_t i = 0; i < profile->measured->counters.n; i++) {
		const struct counter_row *row = &profile->measured->counters.p[i];

		json_object(json);
		json_kint(json, "launch", row->launch);
		json_kstring(json, "metric", row->metric);
		json_kstring(json, "unit", row->unit);
		json_kdouble(json, "value", row->missing ? (double)NAN : row->value);
		json_kstring(json, "missing",
		             row->missing           ? row->missing
		             : isfinite(row->value) ? NULL
		                                    : "the counter gave not a number");
		json_end(json);
	}
	json_end(json);
}

/* The same content as the text; what is not known is null. */
void profile_json(struct json *json, const struct profile *profile)
{
	const struct collection *measured = profile->measured;

	json_kstring(json, "file", profile->run->file);
	json_kstring(json, "kernel", profile->run->kernel);
	json_kstring(json, "target", profile->run->target);
	json_kstring(json, "device", measured->device);
	json_kcount(json, "compute_capability", measured->compute ? measured->compute : -1);
	json_kstring(json, "driver", measured->driver);
	json_kstring(json, "nvrtc", measured->nvrtc);
	json_kstring(json, "cupti", measured->cupti);
	json_kstring(json, "verdict", profile->verdict);
	json_kstring(json, "where", profile->where);
	json_kstring(json, "limit", profile->limit);
	json_kint(json, "n_agree", profile->n_of[AGREE]);
	json_kint(json, "n_disagree", profile->n_of[DISAGREE]);
	json_sites(json, profile);
	json_launches(json, profile);
	json_counters(json, profile);
}
