/*
 * check: the nine properties of a solution and its warp program.
 *
 * coverage (every element written has an owner), injectivity (no two elements in one place), owner
 * (who writes is who the layout says), replicas (a reduction counts each element once),
 * happens-before (every read is ordered after its write, across threads and stages), bounds (no
 * access outside), alignment, budget (shared bytes, registers, barriers), termination (every
 * barrier drains at trip counts 0, 1, ..., stages + 1). Each is proved, violated with the concrete
 * element, or not proved with the limit that was hit.
 */
#ifndef TL_CHECK_CHECK_H
#define TL_CHECK_CHECK_H

#include "analyzer/pipeline/pipeline.h"
#include "codegen/lower/warp.h"

enum property_name {
	PROPERTY_COVERAGE,
	PROPERTY_INJECTIVITY,
	PROPERTY_OWNER,
	PROPERTY_REPLICAS,
	PROPERTY_HAPPENS_BEFORE,
	PROPERTY_BOUNDS,
	PROPERTY_ALIGNMENT,
	PROPERTY_BUDGET,
	PROPERTY_TERMINATION,
	N_PROPERTIES
};
enum property_status { PROPERTY_PROVED, PROPERTY_VIOLATED, PROPERTY_NOT_PROVED };

struct property {
	enum property_name name;
	enum property_status status;
	struct span span;   /* 0 when it holds for the whole launch */
	const char *buffer; /* "" when not about one buffer */
	const char *
		/* one sentence: how it was proved, or the concrete element, threads and iteration */
		detail;
};

struct property_list {
	vec_of(struct property) items; /* at least one of each name */
};

const char *property_name_text(enum property_name name);
const char *
property_status_text(enum property_status status); /* "proved", "violated", "not proved" */

/* One row a name, "not proved", with the reason. */
void check_nothing(struct arena *arena, struct property_list *out, const char *reason);
/*
 * A launch of which only a part could be lowered: what the part exceeds already, and what the tile
 * program alone shows, is violated, all else is not proved, for the reason `limit`.
 */
void check_partial(const struct schedule *schedule, const struct warp_program *warp,
                   const char *limit, struct property_list *out);
/*
 * A launch that has no layouts: true when an index of a tile of registers is outside, which
 * explains it; then bounds is violated and all else not proved.
 */
bool check_unsolved(const struct tile_program *program, const struct launch *launch,
                    struct property_list *out);
/* Checks one launch. Never fails: what cannot be decided is PROPERTY_NOT_PROVED. */
void check_launch(const struct schedule *schedule, const struct warp_program *warp,
                  struct property_list *out);

#endif
