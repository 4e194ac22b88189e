/*
 * TileLang's code and this tool's for one kernel, side by side. Wavefronts are what a profiler
 * counts; cycles are those of the code as it is written, on either side (parity_traffic).
 */
#include "analyzer/describe/describe.h"

#include <assert.h>
#include <math.h>

static void add_launch(struct describe_side *side, const struct launch_result *launch)
{
	int64_t bytes = launch->schedule ? launch->schedule->shared_bytes : 0;

	side->counted_grid &= launch->accesses.counted_grid;
	side->shared_bytes = bytes > side->shared_bytes ? bytes : side->shared_bytes;
}

static void add_traffic(struct describe_side *side, const struct compile *compile,
                        const struct launch_result *launch)
{
	struct traffic traffic = { 0 };
	bool grid = launch->accesses.counted_grid;
	double cycles;

	if (launch->parity)
		grid = parity_traffic(launch->parity, &traffic);
	else
		traffic_count(launch->warp, &launch->accesses, compile->cx.arena, &traffic);
	side->cycles_grid &= grid;
	side->has_cycles &= traffic.n_not_modelled == 0;
	cycles = traffic_cycles(&traffic, compile->options.target, launch_n_threads(launch->launch));
	side->global_instructions += traffic.global_instructions;
	side->global_sectors += traffic.global_sectors;
	side->shuffles += traffic.shuffles;
	side->exchange_barriers += traffic.barriers;
	side->cycles += cycles;
	side->cycles_max += cycles + (double)traffic.wavefronts_open;
}

/* All launches were compiled up to their accesses. */
static struct describe_side side_of(const struct compile *compile)
{
	struct describe_totals totals = describe_totals(compile);
	struct describe_side side = {
		.is_known = true, .counted_grid = true, .has_cycles = true, .cycles_grid = true
	};

	side.wavefronts = totals.wavefronts;
	side.ideal = totals.ideal;
	side.excess = totals.excess;
	side.is_exact = totals.n_not_modelled == 0;
	for (uint32_t i = 0; i < compile->launches.n; i++) {
		add_launch(&side, compile->launches.p[i]);
		add_traffic(&side, compile, compile->launches.p[i]);
	}
	return side;
}

static bool stands(const struct compile *compile)
{
	for (uint32_t i = 0; i < compile->launches.n; i++)
		if (!compile->launches.p[i]->schedule ||
		    compile->launches.p[i]->solution->status == SOLVE_CONFLICT)
			return false;
	return compile->launches.n > 0;
}

struct describe_savings describe_savings(const struct compile *parity)
{
	struct describe_savings savings = { 0 };

	assert(parity->options.parity);
	if (parity->program && stands(parity))
		savings.tilelang = side_of(parity);
	if (parity->own)
		savings.own = side_of(parity->own);
	return savings;
}

double describe_saved_cycles(const struct describe_savings *savings)
{
	const struct describe_side *theirs = &savings->tilelang, *own = &savings->own;

	if (!theirs->has_cycles || !own->has_cycles || !theirs->cycles_grid || !own->cycles_grid)
		return (double)NAN;
	return theirs->cycles - own->cycles_max;
}
