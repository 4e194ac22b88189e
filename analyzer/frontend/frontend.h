/*
 * frontend: kernel text to tile programs.
 *
 *   text -> tokens (lex.c) -> syntax tree (parse.c) -> host evaluation (eval*.c), which runs the
 *   host part of the file and, when it meets T.* ops on device values, appends to a tile program.
 *
 * Nothing runs Python. What the host part cannot know (torch, argparse, the device) is an opaque
 * value that remembers its origin; it is an error only where it decides the kernel's structure.
 * Files are untrusted: steps, depth, memory and text size are bounded (struct frontend_limits).
 */
#ifndef TL_FRONTEND_FRONTEND_H
#define TL_FRONTEND_FRONTEND_H

#include "analyzer/tile/target.h"
#include "analyzer/tile/tile.h"

struct frontend_limits {
	uint64_t max_steps;      /* evaluated nodes; 0: the default of 20 million */
	uint32_t max_depth;      /* nesting and calls; 0: 200 */
	size_t max_source_bytes; /* 0: 8 MiB */
	uint64_t max_stmts;      /* statements of one tile program; 0: 200,000 */
};

/* One `--set NAME=VALUE` or `--set NAME@LINE=VALUE`, or `--tensor NAME=1024x512:float16`. */
struct frontend_set {
	const char *name;
	uint32_t line;     /* 0: any */
	const char *value; /* a Python literal or a bare word; a tensor spec for tensors */
};

struct frontend_options {
	const char
		*kernel; /* kernel or factory name, qualified with dots when nested; NULL: the only one */
	int64_t config; /* entry of the autotune configurations; -1 none */
	/* The device whose properties host code may ask for; NULL: they are unknown. */
	const struct target *target;
	const struct target *device; /* the card that host code finds; NULL: the target's */
	const char *import_root;     /* folder of files that `import` may open; NULL none */
	bool list_configs;           /* fill kernel_info.configs */
	vec_of(struct frontend_set) sets;
	vec_of(struct frontend_set) tensors;
	vec_of(const char *) assumes; /* "M%8==0", "64<=M<=4096" */
	struct frontend_limits limits;
};

/* Autotune configurations as JSON objects. */
struct config_texts {
	const char **p;
	uint32_t n, cap;
};

/* A kernel found in the file. */
struct kernel_info {
	const char *name; /* the kernel function */
	const char
		*factory; /* qualified name of the function that returns it ("" when it stands alone) */
	struct span span;
	vec_of(struct host_param) params;
	struct tile_program *program; /* NULL when a parameter is missing or it failed */
	struct tile_program
		*outline; /* `program`, or, when only operations inside launches failed, one whose launches
	               alone are sound; NULL when they are not known */
	bool missing_params;
	struct config_texts configs; /* when asked for: of the kernel or the nearest function around */
	struct diag_list diags; /* what went wrong in it; frontend_require passes it on to cx->diags */
};

struct frontend_result {
	vec_of(struct kernel_info *) kernels; /* those that options->kernel selects, in file order */
};

/*
 * Reads file number `file` of cx->sources. False when nothing useful came of it (syntax error, no
 * kernel). With `options->kernel` NULL every kernel of the file is tried. Kernels that lack
 * parameters are reported only through kernel_info (frontend_require turns that into an error), so
 * that `kernels` can list them.
 */
bool frontend_run(struct cx *cx, struct expr_pool *pool, uint32_t file,
                  const struct frontend_options *options, struct frontend_result *result);

/*
 * The one kernel that `analyze` and the others work on: NULL with diagnostics when there is none,
 * when several remain (their list, how to choose), or when parameters are missing (all of them in
 * one error, each with the place where it is declared, and a command line that would work).
 */
struct tile_program *frontend_require(struct cx *cx, const struct frontend_options *options,
                                      struct frontend_result *result);

#endif
