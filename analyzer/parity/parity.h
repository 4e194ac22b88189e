/*
 * parity: what TileLang 0.1.15 does to a kernel: the layouts that its inference chooses, the buffer
 * versions of its pipeline, the producer warps that it adds on sm_90a, and the shared-memory
 * accesses of the code that it generates.
 *
 * A model of its rules, checked element by element against what it inferred for the kernels of
 * tests/data/tilelang_layouts.tar.gz and against counts from a card; docs/parity.md says how far it
 * reaches. Facts are those of its sources and run-time templates, version 0.1.15.
 */
#ifndef TL_PARITY_PARITY_H
#define TL_PARITY_PARITY_H

#include "analyzer/banks/traffic.h"
#include "analyzer/check/check.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/solve/solve.h"

/* Values that integers and bools in memory are taken to have, where they decide what runs. */
struct assumed_data {
	bool has_int, has_bool;
	int64_t int_value;
	bool bool_value;
};

/* A layout that takes excess wavefronts away, found by trying it on the model. */
struct parity_fix {
	const struct buffer *buffer;
	const struct layout *layout;
	const char *edit;     /* the statement to add: "T.annotate_layout({...})" */
	int64_t excess, left; /* of all accesses of the launch, as it is and with this one edit */
};

/* What TileLang makes of one launch. */
struct parity {
	struct solution *solution;  /* layouts of all buffers, plans of gemms and partitioned loops */
	struct schedule *schedule;  /* versions and places; pipelines with their stages */
	int64_t n_producer_threads; /* added in front of the block's own; 0 none */
	struct access_table accesses;
	vec_of(struct parity_fix) fixes; /* parity_find_fixes */
	struct pinfer *model;
};

/*
 * Models the launch. When TileLang would reject the kernel: status SOLVE_CONFLICT with a diagnostic
 * (E0420) that names the operation and the buffer. Never NULL.
 */
struct parity *parity_tilelang(struct tile_program *program, const struct launch *launch,
                               const struct target *target);
/* Name of the workspace through which a reduction's warps exchange their parts. */
const char *parity_workspace_name(struct cx *cx, const struct stmt *stmt);
/* The shared-memory accesses of the generated code; the solution must stand. */
void parity_accesses(struct parity *parity, const struct assumed_data *assumed);
/*
 * For each shared buffer at whose accesses wavefronts are wasted: the layout, of TileLang's
 * swizzles, a padding, and `own` (the solver's; by buffer id, NULL entries: none), with which
 * its code wastes
 * least. Every one is tried as an annotation. The accesses must be counted.
 */
void parity_find_fixes(struct parity *parity, const struct layout *const *own,
                       const struct assumed_data *assumed);
/*
 * The nine properties of TileLang's code: coverage, injectivity, owner, replicas and budget on the
 * model, exactly; the others are not proved, each with what is not modelled.
 */
void parity_check(struct parity *parity, struct property_list *out);
/* NULL when none is known for the buffer. */
const struct parity_fix *parity_fix_of(const struct parity *parity, const struct buffer *buffer);
/*
 * All that the generated code asks of memory, as its text has it: what the C compiler then keeps in
 * registers (docs/parity.md) counts here, so that it compares with code of which nothing is kept;
 * TMA and stmatrix, which this tool does not print, are the accesses by threads that TileLang makes
 * without them; nothing is assumed about data. True when that is over the grid, else it is of one
 * block.
 */
bool parity_traffic(const struct parity *parity, struct traffic *out);

#endif
