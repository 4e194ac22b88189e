/*
 * tilelayout: layouts, pipelines and bank conflicts of GPU tile kernels, as a library.
 *
 *     struct tl_options options = { .size = sizeof(options), .target = "sm_80" };
 *     struct tl_analysis *analysis = tl_analyze_file("gemm_relu.py", &options);
 *
 *     if (tl_status(analysis) == TL_INPUT)
 *             fputs(tl_diagnostics(analysis), stderr);
 *     else
 *             puts(tl_json(analysis));
 *     tl_close(analysis);
 *
 * A kernel is text in TileLang's Python syntax; nothing runs Python and no GPU is needed. All texts
 * that a function returns are UTF-8, NUL-terminated, belong to the analysis, and live until
 * tl_close. An analysis is used by one thread at a time; different ones are independent. Running
 * out of memory aborts the process. Link with -ltilelayout (pkg-config tilelayout).
 */
#ifndef TILELAYOUT_H
#define TILELAYOUT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TL_API __attribute__((visibility("default")))
#else
#define TL_API
#endif

/* What to analyse and for what. Set `size`, zero the rest, fill in what is wanted: later versions
 * append fields. */
struct tl_options {
	size_t size; /* sizeof(struct tl_options) */
	const char
		*kernel; /* kernel or factory, with dots where it is nested; NULL: the file's only one */
	const char *target;      /* "sm_80", ...; NULL: sm_80 */
	const char *const *sets; /* "NAME=VALUE": host parameters, as --set takes them */
	size_t n_sets;
	const char *const *tensors; /* "A=1024x512:float16", as --tensor takes them */
	size_t n_tensors;
	int strict;             /* not 0: no layout conversions */
	double solve_budget_ms; /* work for the layout search, counted, in ms of one core; 0: 50 */
	const char *parity;     /* "tilelang": its layouts in place of ours; NULL: ours */
};

enum tl_status {
	TL_FINE = 0,
	TL_FINDINGS = 1,    /* a property is violated */
	TL_INPUT = 2,       /* the kernel or the options are at fault: see tl_diagnostics */
	TL_ENVIRONMENT = 3, /* the machine lacks something */
};

struct tl_analysis;

/* "0.1.0+g0123456789" */
TL_API const char *tl_version(void);

/* Analyses a file ("-": standard input), or `n` bytes of text that messages call `name`. Options
 * may be NULL. Never NULL. */
TL_API struct tl_analysis *tl_analyze_file(const char *path, const struct tl_options *options);
TL_API struct tl_analysis *tl_analyze_text(const char *name, const char *text, size_t n,
                                           const struct tl_options *options);
TL_API void tl_close(struct tl_analysis *analysis); /* NULL is fine */

TL_API enum tl_status tl_status(const struct tl_analysis *analysis);
/* Errors and warnings for people, with source lines and carets; "" when there are none. */
TL_API const char *tl_diagnostics(struct tl_analysis *analysis);
/* The document of `tilelayout analyze --json`; also after errors, with what was reached. */
TL_API const char *tl_json(struct tl_analysis *analysis);

/*
 * Where each element of a buffer lives: a header line, then a row an element in row-major order,
 * replica outermost; fragments have columns i,j,...,replica,thread,slot, memory has
 * i,j,...,offset_bytes. NULL when the kernel has no such buffer or it has no layout.
 */
TL_API const char *tl_layout_csv(struct tl_analysis *analysis, const char *buffer);
/* The same as an SVG drawing. */
TL_API const char *tl_layout_svg(struct tl_analysis *analysis, const char *buffer);

/* The record of a stage as text: "tile", "solution", "schedule", "warp", "accesses", "properties",
   or "cuda". NULL when there is no such stage or it was not reached. */
TL_API const char *tl_emit(struct tl_analysis *analysis, const char *stage);

#ifdef __cplusplus
}
#endif

#endif
