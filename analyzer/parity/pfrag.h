/*
 * pfrag: fragments as tables, for the model of TileLang's inference.
 *
 * A fragment says for each (replica, element) which thread owns it and for each element which
 * register slot holds it. TileLang keeps expressions of the element's index and of one replica
 * variable; its rules (which replicas are dropped, when a map can be inverted, who owns what) are
 * functions of the map alone, so the model works on the values. Facts: TileLang 0.1.15,
 * src/layout/layout.cc (Fragment), src/layout/utils.cc (ProveFragmentContains, CompressIterator).
 */
#ifndef TL_PARITY_PFRAG_H
#define TL_PARITY_PFRAG_H

#include "analyzer/layout/layout.h"

struct pfrag {
	uint32_t rank;
	int64_t shape[MAX_RANK];
	int64_t n_elems, n_reps;
	int64_t n_threads; /* largest thread + 1 */
	int64_t n_slots;   /* largest slot + 1 */
	bool everywhere;   /* every thread has all of it: thread = replica; `thread` is NULL */
	int32_t *thread;   /* [replica * n_elems + element] */
	int32_t *slot;     /* [element] */
	/* (element, replica) to (thread, slot) is one to one, and onto all places up to the largest */
	enum { PFRAG_UNKNOWN, PFRAG_SHARES, PFRAG_INJECTIVE, PFRAG_BIJECTIVE } form;
};

/* Tables to fill; call pfrag_finish then. */
struct pfrag *pfrag_new(struct arena *arena, uint32_t rank, const int64_t *shape, int64_t n_reps);
/* All elements in all of n_threads threads, slots row-major. */
struct pfrag *pfrag_everywhere(struct arena *arena, uint32_t rank, const int64_t *shape,
                               int64_t n_threads);
/* Slots: an element's number among those of its thread (replica 0), row-major. */
void pfrag_number_slots(struct pfrag *fragment);
/* n_threads, n_slots, everywhere. */
void pfrag_finish(struct pfrag *fragment);
static inline int32_t pfrag_thread(const struct pfrag *fragment, int64_t replica, int64_t element)
{
	return fragment->everywhere ? (int32_t)replica
	                            : fragment->thread[replica * fragment->n_elems + element];
}

/*
 * Replica digits that no thread number depends on are dropped, the others are renumbered, the one
 * with the largest stride fastest. Unchanged when the replica's part of the thread number cannot be
 * told from the element's (a fused iterator).
 */
struct pfrag *pfrag_condense(struct arena *arena, struct pfrag *fragment);
bool pfrag_injective(struct pfrag *fragment);
bool pfrag_bijective(struct pfrag *fragment);

/* Elements seen through an index: element of point p, NULL: p itself. */
struct pfrag_view {
	struct pfrag *fragment;
	const int32_t *elems;
};
static inline int64_t pfrag_view_at(const struct pfrag_view *view, int64_t point)
{
	return view->elems ? view->elems[point] : point;
}
/*
 * At each of n points, are all threads that own the small fragment's element owners of the large
 * one's? PFRAG_NO_INVERSE: the large one cannot be inverted, so nothing can be said.
 */
enum pfrag_answer { PFRAG_NO, PFRAG_YES, PFRAG_NO_INVERSE };
enum pfrag_answer pfrag_contains(const struct pfrag_view *small, const struct pfrag_view *large,
                                 int64_t n_points);
/* Equal shapes and slots: what TileLang compares when an op demands a layout again. */
bool pfrag_same_slots(const struct pfrag *a, const struct pfrag *b);

/* As a layout for the solution: digits where they fit, else a table. */
struct layout *pfrag_layout(struct arena *arena, const struct pfrag *fragment);

#endif
