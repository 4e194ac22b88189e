/*
 * The solver's budget, in counted work.
 *
 * A clock would make the answer depend on the machine and on what else runs there. So what takes
 * time is counted, and each kind has a price in nanoseconds: fitted by least squares to the CPU
 * time of solve_launch over 446 launches (223 kernels of TileLang's examples and benchmarks, sm_80
 * and sm_90a) on one core of an Intel Xeon server. Of the launches above 5 ms, 80 % took between
 * 0.7 and 1.3 times what the prices say.
 */
#include "analyzer/solve/solve_internal.h"

static const double nanoseconds[N_WORK] = {
	[WORK_ACCESS] = 45000, [WORK_LANE] = 16,        [WORK_PARTITION] = 1000,
	[WORK_SAMPLE] = 9000,  [WORK_CHECK] = 18000,    [WORK_CONVERSION] = 600000,
	[WORK_PLACE] = 12,     [WORK_SWIZZLE] = 150000, [WORK_ENTRY] = 13,
	[WORK_NODE] = 500,
};

void solve_spend(struct solver *solver, enum work kind, uint64_t times)
{
	solver->memo->work_ns += nanoseconds[kind] * (double)times;
}

bool solve_is_spent(const struct solver *solver)
{
	double ms = solver->options.budget_ms > 0 ? solver->options.budget_ms : DEFAULT_BUDGET_MS;

	return solver->memo->work_ns >= ms * 1e6;
}
