/*
 * Plain records of runs: what the store keeps, free of the compiler's types, so that a run read
 * back and one just made are the same to whoever compares or prints them.
 */
#include "db/record.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/*
 * A value that is not finite becomes a missing one with its reason: rows hold numbers or say why
 * not.
 */
void record_measure(struct arena *arena, struct run_record *run,
                    struct record_measurement measurement)
{
	assert(measurement.launch < run->launches.n);
	assert(measurement.site < (int64_t)run->sites.n);
	if (!measurement.missing && !isfinite(measurement.value))
		measurement.missing = isnan(measurement.value) ? "the counter gave not a number"
		                                               : "the counter gave infinity";
	vec_push(arena, &run->measurements, measurement);
}

/* Of the sites that are modelled. */
int64_t record_excess(const struct run_record *run)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < run->sites.n; i++)
		if (run->sites.p[i].excess > 0)
			sum += run->sites.p[i].excess;
	return sum;
}

/* "factory.kernel" where a factory made the kernel under another name. */
const char *record_name(struct arena *arena, const struct run_record *run)
{
	if (run->factory[0] && strcmp(run->factory, run->kernel) != 0)
		return arena_printf(arena, "%s.%s", run->factory, run->kernel);
	return run->kernel;
}
