/* Findings: one record for each kind and place, counted when they repeat. */
#include "sim/sim_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *sim_finding_text(enum sim_finding_kind kind)
{
	static const char *const texts[N_SIM_FINDING_KINDS] = {
		"access out of bounds",
		"misaligned access",
		"value that nothing wrote",
		"race in shared memory",
		"race in global memory",
		"barrier that not all threads reach",
		"warp instruction without its whole warp",
		"value that is not defined",
		"step limit",
	};

	assert(kind < N_SIM_FINDING_KINDS);
	return texts[kind];
}

uint32_t sim_line(const struct sim *sim, uint32_t node)
{
	return source_line(&sim->cx->sources, sim->nodes[node]->span);
}

/* "ko=3, i=0": the loops around, outermost first. */
static const char *iteration_text(const struct sim *sim)
{
	const char *text = "";

	for (uint32_t i = 0; i < sim->n_loops; i++)
		text = arena_printf(sim->cx->arena, "%s%s%s=%" PRId64, text, i ? ", " : "",
		                    sym_text(sim->cx->names, sim->loops[i]->as.loop.var->name),
		                    sim->loop_values[i]);
	return text;
}

static const char *format_text(struct arena *arena, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static const char *format_text(struct arena *arena, const char *format, va_list args)
{
	char text[512];

	vsnprintf(text, sizeof(text), format, args);
	return arena_printf(arena, "%s", text);
}

void sim_find(struct sim *sim, enum sim_finding_kind kind, struct sim_who who, const char *format,
              ...)
{
	struct sim_result *result = sim->result;
	uint64_t place = (uint64_t)sim->node->id << 32 | (who.has_other ? who.other_node + 1 : 0);
	struct map_entry *entry = map_at(sim->arena, &sim->seen, hash_mix(place, kind));
	struct sim_finding *finding;
	va_list args;

	result->n_findings++;
	if (entry->value.number) {
		result->findings.p[entry->value.number - 1].n++;
		return;
	}
	if (result->findings.n >= SIM_MAX_FINDINGS)
		return;
	vec_push(sim->cx->arena, &result->findings, (struct sim_finding){ .kind = kind });
	entry->value.number = result->findings.n;
	finding = &vec_last(&result->findings);
	finding->node = sim->node->id;
	finding->span = sim->node->span;
	if (who.has_other)
		finding->other_span = sim->nodes[who.other_node]->span;
	for (int i = 0; i < 3; i++)
		finding->block[i] = sim->block[i];
	finding->thread = (int32_t)who.thread;
	finding->iteration = iteration_text(sim);
	finding->n = 1;
	va_start(args, format);
	finding->text = format_text(sim->cx->arena, format, args);
	va_end(args);
}

void sim_find_poison(struct sim *sim, const struct lanes *lanes, const struct lane_mask *mask,
                     uint8_t kinds, const char *what)
{
	if (!lanes->poison)
		return;
	for (uint32_t thread = mask_next(mask, 0); thread != NO_THREAD;
	     thread = mask_next(mask, thread + 1)) {
		uint8_t poison = lanes_poison(lanes, thread) & kinds;
		enum sim_finding_kind kind = poison & POISON_UNINIT   ? SIM_UNINITIALISED
		                             : poison & POISON_BOUNDS ? SIM_OUT_OF_BOUNDS
		                                                      : SIM_UNDEFINED;
		if (!poison)
			continue;
		sim_find(sim, kind, who_thread(thread), "%s comes from %s", what, poison_text(poison));
		return;
	}
}

static enum diag_code code_of(enum sim_finding_kind kind)
{
	switch (kind) {
	case SIM_OUT_OF_BOUNDS:
		return DIAG_E0652;
	case SIM_MISALIGNED:
		return DIAG_E0653;
	case SIM_UNINITIALISED:
		return DIAG_E0654;
	case SIM_SHARED_RACE:
	case SIM_GLOBAL_RACE:
		return DIAG_E0655;
	case SIM_BARRIER:
		return DIAG_E0656;
	case SIM_PARTIAL_WARP:
		return DIAG_E0657;
	case SIM_UNDEFINED:
	case SIM_STEP_LIMIT:
	case N_SIM_FINDING_KINDS:
		break;
	}
	return DIAG_E0658;
}

void sim_report(struct cx *cx, const struct sim_result *result)
{
	for (uint32_t i = 0; i < result->findings.n; i++) {
		const struct sim_finding *finding = &result->findings.p[i];
		const int64_t *block = finding->block;
		diag_report(&cx->diags, code_of(finding->kind), finding->span, "%s: %s",
		            sim_finding_text(finding->kind), finding->text);
		if (finding->other_span.file)
			diag_note(&cx->diags, finding->other_span, "the other access");
		diag_note(&cx->diags, (struct span){ 0 },
		          "thread %d of block (%" PRId64 ", %" PRId64 ", %" PRId64 ")%s%s, %" PRIu64
		          " time%s in all",
		          finding->thread, block[0], block[1], block[2], finding->iteration[0] ? ", " : "",
		          finding->iteration, finding->n, finding->n == 1 ? "" : "s");
	}
}
