/* view: layouts of a memory in another type against the bytes (and registers) of its elements. */
#include "tests/unit/check.h"

#include "analyzer/layout/view.h"

struct world {
	struct check *check;
	struct arena *arena;
	uint64_t seed;
	int n_torn, n_whole;
};

static int64_t draw(struct world *world, int64_t n)
{
	return (int64_t)(check_random(&world->seed) % (uint64_t)n);
}

static int64_t n_elems(uint32_t rank, const int64_t *shape)
{
	int64_t n = 1;

	for (uint32_t d = 0; d < rank; d++)
		n *= shape[d];
	return n;
}

static struct place place_of(const struct layout *layout, int64_t number, int64_t replica)
{
	int64_t index[MAX_RANK];

	for (uint32_t d = layout->rank; d-- > 0; number /= layout->shape[d])
		index[d] = number % layout->shape[d];
	return layout_at(layout, index, replica);
}

/* What is small enough that both keep it together: a byte of memory, 8 bits of a register. */
static struct place place_of_byte(const struct layout *layout, uint32_t bits, int64_t byte,
                                  int64_t replica)
{
	int64_t bytes = bits / 8;
	struct place at = place_of(layout, byte / bytes, replica);

	if (layout->kind == LAYOUT_MEMORY)
		at.offset += byte % bytes;
	else
		at.slot = at.slot * bytes + byte % bytes;
	return at;
}

/* Is an element of `bytes` bytes, from byte `first` of the memory on, in one piece? One that is
 * wider than the source's must be aligned too. */
static bool is_whole(const struct layout *source, uint32_t bits, int64_t first, int64_t bytes,
                     int64_t replica)
{
	struct place at = place_of_byte(source, bits, first, replica);

	for (int64_t b = 0; b < bytes; b++) {
		struct place next = place_of_byte(source, bits, first + b, replica);

		if (next.thread != at.thread ||
		    next.slot != at.slot + b * (source->kind != LAYOUT_MEMORY) ||
		    next.offset != at.offset + b * (source->kind == LAYOUT_MEMORY))
			return false;
	}
	return bytes * 8 <= bits || (at.offset % bytes == 0 && at.slot % bytes == 0);
}

static void compare(struct world *world, const struct layout *source, uint32_t bits,
                    const struct view_form *form)
{
	struct view_torn torn = { .part = 0 };
	const struct layout *view = layout_view(world->arena, source, bits, form, &torn);
	int64_t n = n_elems(form->rank, form->shape), bytes = form->bits / 8;
	bool whole = true;

	for (int64_t r = 0; r < source->n_replicas && whole; r++)
		for (int64_t e = 0; e < n && whole; e++) {
			whole = is_whole(source, bits, e * bytes, bytes, r);
			for (int64_t b = 0; view && b < bytes; b++) {
				struct place at = place_of_byte(source, bits, e * bytes + b, r),
							 got = place_of_byte(view, form->bits, e * bytes + b, r);

				CHECK(world->check,
				      at.thread == got.thread && at.slot == got.slot && at.offset == got.offset);
			}
			if (!whole && !view) {
				struct place at = place_of_byte(source, bits, e * bytes, r);
				int64_t number = 0;

				for (uint32_t d = 0; d < form->rank; d++)
					number = number * form->shape[d] + torn.index[d];
				CHECK_INT(world->check, number, e);
				CHECK_INT(world->check, torn.first.offset, at.offset);
			}
		}
	CHECK(world->check, whole == (view != NULL));
	world->n_torn += !whole;
	world->n_whole += whole;
	if (view && view->kind == LAYOUT_MEMORY)
		CHECK_INT(world->check, view->n_bytes, source->n_bytes);
}

static const uint32_t widths[] = { 8, 16, 32, 64 };

/* The same bits under another width, in one of three shapes. */
static struct view_form random_form(struct world *world, const struct layout *source, uint32_t bits)
{
	struct view_form form = { .rank = source->rank, .bits = widths[draw(world, 4)] };
	int64_t n = n_elems(source->rank, source->shape) * bits / form.bits;
	uint32_t last = source->rank - 1;

	for (uint32_t d = 0; d < source->rank; d++)
		form.shape[d] = source->shape[d];
	form.shape[last] = form.shape[last] * bits / form.bits;
	if (draw(world, 3) == 0) {
		form.rank = 1;
		form.shape[0] = n;
	} else if (draw(world, 3) == 0 && n % 4 == 0) {
		form.rank = 2;
		form.shape[0] = n / 4;
		form.shape[1] = 4;
	}
	return form;
}

static const struct layout *random_memory(struct world *world, uint32_t bits)
{
	static const int64_t spans[] = { 32, 64, 128 }, pads[] = { 0, 4, 8, 16 };
	int64_t shape[] = { 8 << draw(world, 2), 64 << draw(world, 2) };
	struct layout *layout = NULL;
	int low = 0;

	if (draw(world, 3) == 0)
		layout = layout_swizzled(world->arena, 2, shape, bits, spans[draw(world, 3)]);
	if (!layout)
		layout = layout_row_major(world->arena, 2, shape, bits, pads[draw(world, 4)]);
	while ((8u << low) < bits)
		low++;
	if (draw(world, 2) == 0 && layout->n_xors == 0)
		layout->xors[layout->n_xors++] =
			(struct xor_term){ (uint8_t)(7 + draw(world, 2)), (uint8_t)(low + draw(world, 3)), 2 };
	layout_finish(layout);
	return layout;
}

static void test_memory(struct world *world)
{
	for (int i = 0; i < 1000; i++) {
		struct arena_mark mark = arena_mark(world->arena);
		uint32_t bits = widths[draw(world, 4)];
		const struct layout *source = random_memory(world, bits);
		struct view_form form = random_form(world, source, bits);

		compare(world, source, bits, &form);
		arena_release(world->arena, mark);
	}
}

/* Rows over threads, columns over slots and threads, in random digits. */
static const struct layout *random_fragment(struct world *world)
{
	int64_t shape[] = { 8, 64 }, within = 1 << draw(world, 5), lanes = 1 << draw(world, 3);
	struct layout *layout = layout_new_fragment(world->arena, 2, shape);
	int64_t rest = 64 / (within * lanes), inner = draw(world, 4) == 0 ? 2 : 1;

	if (rest < 1)
		rest = 1;
	layout_add_digit(layout, (struct digit){ 0, 1, 8, AXIS_THREAD, lanes });
	layout_add_digit(layout, (struct digit){ 1, 1, within, AXIS_SLOT, inner });
	layout_add_digit(layout, (struct digit){ 1, within, lanes, AXIS_THREAD, 1 });
	layout_add_digit(layout, (struct digit){ 1, within * lanes, rest, AXIS_SLOT, within * inner });
	if (draw(world, 3) == 0)
		layout_add_digit(layout, (struct digit){ DIM_REPLICA, 1, 2, AXIS_THREAD, 8 * lanes });
	layout_finish(layout);
	return layout;
}

static void test_fragments(struct world *world)
{
	for (int i = 0; i < 800; i++) {
		struct arena_mark mark = arena_mark(world->arena);
		uint32_t bits = widths[draw(world, 3)];
		const struct layout *source = random_fragment(world);
		struct view_form form = random_form(world, source, bits);

		compare(world, source, bits, &form);
		arena_release(world->arena, mark);
	}
}

/* float16 16 x 64 with a swizzle of 128 bytes as float32 16 x 32 is that swizzle of float32; one
 * that swaps neighbours tears element (1, 0) into bytes 130 and 128. */
static void test_known(struct world *world)
{
	int64_t halves[] = { 16, 64 }, floats[] = { 16, 32 };
	struct layout *source = layout_swizzled(world->arena, 2, halves, 16, 128);
	struct view_form form = { .rank = 2, .shape = { 16, 32 }, .bits = 32 };
	struct view_torn torn;

	CHECK(world->check, layout_equal_structure(layout_view(world->arena, source, 16, &form, NULL),
	                                           layout_swizzled(world->arena, 2, floats, 32, 128)));
	source = layout_row_major(world->arena, 2, halves, 16, 0);
	source->xors[source->n_xors++] = (struct xor_term){ 7, 1, 1 };
	CHECK(world->check, !layout_view(world->arena, source, 16, &form, &torn));
	CHECK_INT(world->check, torn.index[0], 1);
	CHECK_INT(world->check, torn.index[1], 0);
	CHECK_INT(world->check, torn.first.offset, 130);
	CHECK_INT(world->check, torn.second.offset, 128);
	CHECK_INT(world->check, torn.part, 1);
}

int main(void)
{
	struct check check = { 0 };
	struct world world = { .check = &check, .arena = arena_open(), .seed = 11 };

	test_known(&world);
	test_memory(&world);
	CHECK(&check, world.n_torn > 50 && world.n_whole > 100);
	world.n_torn = world.n_whole = 0;
	test_fragments(&world);
	CHECK(&check, world.n_torn > 50 && world.n_whole > 100);
	arena_close(world.arena);
	return check_end(&check);
}
