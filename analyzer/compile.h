/*
 * compile: the passes in order, from a file to warp programs. compile.c's table is the whole
 * pipeline.
 *
 *   text -> tile program -> solution -> schedule -> warp program -> {CUDA text, simulation, bank
 * table}
 */
#ifndef TL_ANALYZER_COMPILE_H
#define TL_ANALYZER_COMPILE_H

#include "analyzer/banks/sites.h"
#include "analyzer/check/check.h"
#include "analyzer/frontend/frontend.h"
#include "analyzer/parity/parity.h"
#include "analyzer/pipeline/pipeline.h"

struct compile_options {
	struct frontend_options frontend;
	struct solve_options solve;
	const struct target *target;
	bool parity; /* TileLang's choices in place of the solver's */
	/* No code is wanted: a launch that has none yet is analysed all the same, with W0640. */
	bool without_code;
	struct assumed_data assumed;
};

/* What the passes made of one launch. */
struct launch_result {
	const struct launch *launch;
	struct solution *solution;
	struct schedule *schedule;
	struct warp_program *warp;
	/* What could be lowered and why not all, when `warp` is NULL (options.without_code); or NULL */
	struct warp_program *partial;
	const char *limit;
	struct access_table accesses;
	struct property_list properties;
	struct parity *parity; /* with options.parity: what TileLang makes of the launch, else NULL */
};

struct compile {
	struct cx cx;
	struct expr_pool *pool;
	struct compile_options options;
	uint32_t file;
	struct frontend_result frontend;
	struct tile_program *program;
	vec_of(struct launch_result *) launches;
	/* with options.parity, after all passes: the same kernel with the solver's layouts, up to its
	 * accesses; NULL when that fails */
	struct compile *own;
};

/* A pass: its name is the name of its dump (`--dump=NAME`, `emit --stage=NAME`). */
struct pass {
	const char *name;
	const char *doc;
	bool (*run)(struct compile *compile);
	void (*dump)(struct buf *out, const struct compile *compile);
};
/* All passes in order, ended by one with name NULL. */
const struct pass *compile_passes(void);

/* Arena, interner and pool; options are copied. */
struct compile *compile_open(struct arena *arena, const struct compile_options *options);
/* Reads `path` ("-" is standard input) and registers it as the file; false with E07xx/E09xx
 * diagnostics. */
bool compile_load(struct compile *compile, const char *path);
/* Runs the passes up to and including `last` (NULL: all). False when one failed; diagnostics are in
 * compile->cx. */
bool compile_run(struct compile *compile, const char *last);

#endif
