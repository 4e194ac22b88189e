/*
 * Partitions of a space that are worth weighing: row fragments.
 *
 * For the dimension along which memory is consecutive (N elements), vectors of v elements, t
 * threads side by side along it and the other threads along the remaining dimensions, what is left
 * in slots:
 *
 *     (R, N), v = 8, t = 8, 128 threads:  thread = i%16*8 + j/8%8,  slot = (i/16 * N/64 + j/64)*8 +
 * j%8
 *
 * v runs over the powers of two that divide N and that alignment allows (down to a quarter of the
 * widest), t over powers of two (so that a row's partial results meet in xor shuffles), whole
 * warps, and the row's own number of vectors. Digits may reach further than the shape: such places
 * are empty and guarded. A partition that uses less than a quarter of the threads it could use is
 * left out.
 */
#include "analyzer/solve/solve_internal.h"

#include <assert.h>

enum { NARROWEST = 4 }; /* vectors below a quarter of the widest are not weighed */

struct family {
	struct solver *solver;
	const struct space *space;
	int inner;                     /* the dimension of vectors */
	int64_t inner_extent, n_outer; /* iterations along it and across it */
	int64_t reach[MAX_RANK]; /* extents that the digits must span: fragments may be larger than the
	                            loop */
	bool has_reduction, reduces_outer; /* outer: along another dimension than a space's innermost */
	const struct layout **out;
	uint32_t n, max;
};

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Widest vector that any memory use of the component's spaces allows along its rows; at least 4. */
static int64_t component_vector(const struct component *component)
{
	int64_t max = 4;

	for (uint32_t s = 0; s < component->spaces.n; s++) {
		const struct space *space = component->spaces.p[s];

		for (uint32_t u = 0; u < space->uses.n; u++) {
			const struct use *use = &space->uses.p[u];

			if (use->buffer->scope != SCOPE_FRAGMENT && use->contiguous_dim != NO_DIM &&
			    use->contiguous_dim + 1 == (int)space->rank && use->max_vector > max)
				max = use->max_vector;
		}
	}
	return max;
}

/*
 * Widest vector that any memory use along the dimension allows. A space of fragments alone takes
 * what the others want that share them: its partition decides theirs.
 */
static int64_t max_vector(const struct family *family, int inner)
{
	const struct space *space = family->space;
	int64_t max = 1;
	bool has_memory = false;

	for (uint32_t u = 0; u < space->uses.n; u++) {
		const struct use *use = &space->uses.p[u];

		if (use->buffer->scope == SCOPE_FRAGMENT)
			continue;
		has_memory = true;
		if (use->contiguous_dim == inner && use->max_vector > max)
			max = use->max_vector;
	}
	return has_memory ? max : component_vector(family->solver->components.p[space->component]);
}

/* `mark`: taken before the layout was made. */
static void add_candidate(struct family *family, const struct layout *layout,
                          struct arena_mark mark)
{
	layout = solve_intern(family->solver, layout, mark);
	for (uint32_t i = 0; i < family->n; i++)
		if (layout_equal_structure(family->out[i], layout))
			return;
	if (family->n < family->max)
		family->out[family->n++] = layout;
	else
		family->solver->exhausted = true;
}

/* The largest divisor of n that is at most `limit`. */
static int64_t divisor_below(int64_t n, int64_t limit)
{
	int64_t divisor = n < limit ? n : limit;

	while (n % divisor != 0)
		divisor--;
	return divisor;
}

/* How the threads that a row leaves are dealt to the other dimensions. */
enum dealing {
	DEAL_ALL,   /* as many as the dimension has elements */
	DEAL_EVEN,  /* a divisor of its extent: no empty places */
	DEAL_POWER, /* a power of two: partial results along it can meet in shuffles */
	DEAL_NONE,  /* all its elements in one thread */
	N_DEALINGS
};

static int64_t deal(enum dealing dealing, int64_t reach, int64_t left)
{
	int64_t power = 1;

	switch (dealing) {
	case DEAL_ALL:
		return reach < left ? reach : left;
	case DEAL_EVEN:
		return divisor_below(reach, left);
	case DEAL_POWER:
		while (power < reach && power * 2 <= left)
			power *= 2;
		return power;
	case DEAL_NONE:
	case N_DEALINGS:
		break;
	}
	return 1;
}

/* v elements a vector, t threads along the inner dimension. */
static void add_partition(struct family *family, int64_t v, int64_t t, enum dealing dealing)
{
	const struct space *space = family->space;
	struct arena_mark mark = arena_mark(family->solver->arena);
	struct layout *layout = layout_new_fragment(family->solver->arena, space->rank, space->shape);
	int64_t threads = t, left = family->solver->n_threads / t, slots = v;
	int64_t n_vectors = ceil_div(family->reach[family->inner], v * t), could_use;

	layout_add_digit(layout, (struct digit){ family->inner, 1, v, AXIS_SLOT, 1 });
	layout_add_digit(layout, (struct digit){ family->inner, v, t, AXIS_THREAD, 1 });
	layout_add_digit(layout, (struct digit){ family->inner, v * t, n_vectors, AXIS_SLOT, slots });
	slots *= n_vectors;
	for (int d = (int)space->rank; d-- > 0;) {
		int64_t along = deal(dealing, family->reach[d], left);

		if (d == family->inner)
			continue;
		layout_add_digit(layout, (struct digit){ d, 1, along, AXIS_THREAD, threads });
		layout_add_digit(layout, (struct digit){ d, along, ceil_div(family->reach[d], along),
		                                         AXIS_SLOT, slots });
		threads *= along;
		left /= along;
		slots *= ceil_div(family->reach[d], along);
	}
	could_use = ceil_div(family->inner_extent, v) * family->n_outer;
	if (could_use > family->solver->n_threads)
		could_use = family->solver->n_threads;
	layout_finish(layout);
	if (threads * 4 >= could_use)
		add_candidate(family, layout, mark);
}

static void add_row_fragment(struct family *family, int64_t v, int64_t t)
{
	int n_dealings = family->reduces_outer ? N_DEALINGS : DEAL_EVEN + 1;

	for (int dealing = DEAL_ALL; dealing < n_dealings; dealing++)
		add_partition(family, v, t, (enum dealing)dealing);
}

static void add_vector_width(struct family *family, int64_t v)
{
	int64_t n_threads = family->solver->n_threads, n_vectors = ceil_div(family->inner_extent, v);

	if (n_threads % LANES == 0 && n_vectors > LANES && n_threads < 2 * n_vectors)
		add_row_fragment(family, v, n_threads);
	/* All threads of a block of 48: the tree of partial results is padded. */
	if (n_threads % LANES != 0 && n_threads < 2 * n_vectors)
		add_row_fragment(family, v, n_threads);
	/* The most threads along a row first: a conflict is explained with the first partition. */
	for (int64_t t = 1024; t >= 1; t /= 2)
		if (t <= n_threads && t < 2 * n_vectors)
			add_row_fragment(family, v, t);
	if (!family->has_reduction && n_vectors <= n_threads)
		add_row_fragment(family, v, n_vectors);
	if (!family->has_reduction)
		add_row_fragment(family, v, n_threads < n_vectors ? n_threads : n_vectors);
}

static void add_family(struct family *family, int inner)
{
	const struct space *space = family->space;
	int64_t widest;

	family->inner = inner;
	family->inner_extent = space->shape[inner];
	family->n_outer = 1;
	for (uint32_t d = 0; d < space->rank; d++)
		if ((int)d != inner)
			family->n_outer *= space->shape[d];
	widest = max_vector(family, inner);
	while (space->shape[inner] % widest != 0)
		widest /= 2;
	for (int64_t v = widest; v >= 1 && v * NARROWEST >= widest; v /= 2)
		add_vector_width(family, v);
}

/* Extents of the fragments that the space touches, where they are larger than its own. */
static void find_reach(struct family *family)
{
	const struct space *space = family->space;

	for (uint32_t d = 0; d < space->rank; d++)
		family->reach[d] = space->shape[d];
	for (uint32_t u = 0; u < space->uses.n; u++) {
		const struct use *use = &space->uses.p[u];

		if (use->buffer->scope != SCOPE_FRAGMENT || !use->is_plain)
			continue;
		for (uint32_t d = 0; d < use->buffer->rank; d++) {
			int source = use->dims[d].source_dim;
			int64_t extent = buffer_extent(use->buffer, d) * use->dims[d].quotient;

			if (source >= 0 && extent > family->reach[source])
				family->reach[source] = extent;
		}
	}
}

static void find_reductions(struct family *family)
{
	const struct component *component = family->solver->components.p[family->space->component];

	for (uint32_t s = 0; s < component->spaces.n; s++) {
		const struct space *space = component->spaces.p[s];

		if (space->kind != SPACE_REDUCE && space->kind != SPACE_SCAN)
			continue;
		family->has_reduction = true;
		if (space->reduced_dim + 1 != (int64_t)space->rank)
			family->reduces_outer = true;
	}
}

/* The dimension of the space, or the part of one, that a fragment's index does not tell apart. */
struct missing {
	int dim;
	int64_t extent; /* of f[j // 4] the 4 values of j % 4; of an index without j all of them */
};

/* False when the index leaves out none, or more than one. */
static bool find_missing(const struct space *space, const struct use *use, struct missing *missing)
{
	missing->dim = NO_DIM;
	for (uint32_t d = 0; d < space->rank; d++) {
		int64_t extent = space->shape[d];

		for (uint32_t k = 0; k < use->buffer->rank; k++)
			if (use->dims[k].source_dim == (int)d && use->dims[k].quotient < extent)
				extent = use->dims[k].quotient;
		if (extent == 1)
			continue;
		if (missing->dim != NO_DIM)
			return false;
		*missing = (struct missing){ (int)d, extent };
	}
	return missing->dim != NO_DIM;
}

/* The partition whose threads are the fragment's: those that share an element split what is
 * missing, in vectors of `v`; the rest of it is in slots. NULL when they do not divide it. */
static struct layout *extend(const struct family *family, const struct use *use,
                             const struct layout *fragment, struct missing missing, int64_t v)
{
	const struct space *space = family->space;
	struct layout *layout = layout_new_fragment(family->solver->arena, space->rank, space->shape);
	bool is_part = missing.extent < space->shape[missing.dim];
	int64_t div = v, slots;

	layout_add_digit(layout, (struct digit){ missing.dim, 1, v, AXIS_SLOT, 1 });
	/* Digits are sorted with the largest stride first. */
	for (uint32_t i = fragment->n_digits; i-- > 0;)
		if (fragment->digits[i].dim == DIM_REPLICA) {
			layout_add_digit(layout, (struct digit){ missing.dim, div, fragment->digits[i].extent,
			                                         AXIS_THREAD, fragment->digits[i].stride });
			div *= fragment->digits[i].extent;
		}
	if (is_part && missing.extent % div != 0)
		return NULL;
	slots = ceil_div(missing.extent, div);
	layout_add_digit(layout, (struct digit){ missing.dim, div, slots, AXIS_SLOT, v });
	slots *= v;
	for (uint32_t i = 0; i < fragment->n_digits; i++) {
		struct digit digit = fragment->digits[i];
		const struct projection *seen = &use->dims[digit.dim == DIM_REPLICA ? 0 : digit.dim];

		if (digit.dim == DIM_REPLICA)
			continue;
		digit.dim = seen->source_dim;
		digit.div *= seen->quotient;
		digit.stride *= digit.axis == AXIS_SLOT ? slots : 1;
		layout_add_digit(layout, digit);
	}
	layout_finish(layout);
	return layout;
}

static void add_extensions(struct family *family, const struct use *use,
                           const struct layout *fragment)
{
	struct missing missing;

	fragment = solve_without_blocks(family->solver, fragment, use);
	if (!fragment || !find_missing(family->space, use, &missing))
		return;
	for (int64_t v = max_vector(family, missing.dim); v >= 1; v /= 2) {
		struct arena_mark mark = arena_mark(family->solver->arena);
		struct layout *layout;

		if (missing.extent % v != 0)
			continue;
		layout = extend(family, use, fragment, missing, v);
		if (layout)
			add_candidate(family, layout, mark);
	}
}

uint32_t solve_candidates(struct solver *solver, const struct space *space,
                          const struct layout **out, uint32_t max)
{
	struct family family = { .solver = solver, .space = space, .out = out, .max = max };
	int innermost = (int)space->rank - 1;

	assert(space->rank >= 1);
	while (innermost > 0 && space->shape[innermost] == 1)
		innermost--;
	find_reach(&family);
	find_reductions(&family);
	add_family(&family, innermost);
	for (uint32_t u = 0; u < space->uses.n; u++) {
		const struct use *use = &space->uses.p[u];

		if (use->buffer->scope != SCOPE_FRAGMENT && use->contiguous_dim != NO_DIM &&
		    use->contiguous_dim != innermost)
			add_family(&family, use->contiguous_dim);
		if (use->buffer->scope == SCOPE_FRAGMENT && use->is_plain &&
		    solver->fragment_layout[use->buffer->id])
			add_extensions(&family, use, solver->fragment_layout[use->buffer->id]);
	}
	return family.n;
}

struct loop_plan solve_loop_plan(const struct space *space, const struct layout *partition)
{
	return (struct loop_plan){ partition, space->keeps_order ? 1 : solve_vector_elems(partition) };
}

int64_t solve_vector_elems(const struct layout *layout)
{
	int64_t vector = 1;

	for (uint32_t i = 0; i < layout->n_digits; i++) {
		const struct digit *digit = &layout->digits[i];

		if (digit->axis == AXIS_SLOT && digit->stride == 1 && digit->div == 1 &&
		    digit->dim != DIM_REPLICA)
			while (vector < 16 && digit->extent % (vector * 2) == 0)
				vector *= 2;
	}
	return vector;
}
