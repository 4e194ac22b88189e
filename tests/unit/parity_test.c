/* The fragment tables under the model of TileLang: replicas, owners, digits. */
#include "analyzer/parity/pfrag.h"
#include "base/arena.h"
#include "tests/unit/check.h"

#include <string.h>

/* thread = i % 8 * 16 + j / 8 of an 64 x 128 tile: a row's 16 threads are replicas of its sum. */
static void reduced_rows(struct check *check, struct arena *arena)
{
	struct pfrag *sum = pfrag_new(arena, 1, (const int64_t[]){ 64 }, 128), *condensed;

	for (int64_t r = 0; r < 128; r++)
		for (int64_t i = 0; i < 64; i++)
			sum->thread[r * 64 + i] = (int32_t)(i % 8 * 16 + r / 8);
	pfrag_number_slots(sum);
	pfrag_finish(sum);
	CHECK(check, !pfrag_injective(sum));
	condensed = pfrag_condense(arena, sum);
	CHECK(check, condensed->n_reps == 16);
	CHECK(check, condensed->n_threads == 128 && condensed->n_slots == 8);
	CHECK(check, pfrag_thread(condensed, 3, 9) == 19);
	CHECK(check, condensed->slot[9] == 1);
	CHECK(check, pfrag_bijective(condensed));
}

/* Two replica digits: the one with the larger stride becomes the fastest. */
static void order_of_replicas(struct check *check, struct arena *arena)
{
	struct pfrag *f = pfrag_new(arena, 1, (const int64_t[]){ 1 }, 16), *condensed;

	for (int64_t r = 0; r < 16; r++)
		f->thread[r] = (int32_t)(r % 8 / 2 + r / 8 * 64);
	pfrag_number_slots(f);
	pfrag_finish(f);
	condensed = pfrag_condense(arena, f);
	CHECK(check, condensed->n_reps == 8);
	CHECK(check, pfrag_thread(condensed, 1, 0) == 64);
	CHECK(check, pfrag_thread(condensed, 2, 0) == 1);
}

/* A row of 320 in vectors of 4 over 128 threads wraps around: its replicas cannot be told apart. */
static void fused_replicas(struct check *check, struct arena *arena)
{
	struct pfrag *f = pfrag_new(arena, 1, (const int64_t[]){ 8 }, 320);

	for (int64_t r = 0; r < 320; r++)
		for (int64_t i = 0; i < 8; i++)
			f->thread[r * 8 + i] = (int32_t)((i * 320 + r) / 4 % 128);
	pfrag_number_slots(f);
	pfrag_finish(f);
	CHECK(check, pfrag_condense(arena, f) == f);
	CHECK(check, !pfrag_injective(f));
}

/* 960 elements over 128 threads: one to one, but the last round is not full, so not onto. */
static void ragged(struct check *check, struct arena *arena)
{
	struct pfrag *f = pfrag_new(arena, 2, (const int64_t[]){ 5, 192 }, 1);
	struct pfrag *whole = pfrag_everywhere(arena, 2, (const int64_t[]){ 5, 192 }, 128);
	struct pfrag_view ragged_view = { f, NULL }, whole_view = { whole, NULL };

	for (int64_t e = 0; e < 960; e++) {
		f->thread[e] = (int32_t)(e % 128);
		f->slot[e] = (int32_t)(e / 128);
	}
	pfrag_finish(f);
	CHECK(check, pfrag_injective(f) && !pfrag_bijective(f));
	CHECK(check, pfrag_contains(&ragged_view, &ragged_view, 960) == PFRAG_NO_INVERSE);
	CHECK(check, pfrag_contains(&ragged_view, &whole_view, 960) == PFRAG_YES);
}

/* Owners: rows by thread against columns by thread. */
static void owners(struct check *check, struct arena *arena)
{
	struct pfrag *rows = pfrag_new(arena, 2, (const int64_t[]){ 4, 4 }, 1);
	struct pfrag *columns = pfrag_new(arena, 2, (const int64_t[]){ 4, 4 }, 1);
	int32_t turned[16];
	struct pfrag_view a = { rows, NULL }, b = { columns, NULL }, c = { columns, turned };

	for (int32_t e = 0; e < 16; e++) {
		rows->thread[e] = e / 4;
		columns->thread[e] = e % 4;
		turned[e] = e % 4 * 4 + e / 4;
	}
	pfrag_number_slots(rows);
	pfrag_number_slots(columns);
	pfrag_finish(rows);
	pfrag_finish(columns);
	CHECK(check, pfrag_contains(&a, &b, 16) == PFRAG_NO);
	CHECK(check, pfrag_contains(&a, &c, 16) == PFRAG_YES);
	CHECK(check, !pfrag_same_slots(rows, columns));
}

/* What has digits is given as digits, everything else as a table; both hold the same map. */
static void as_layouts(struct check *check, struct arena *arena)
{
	struct pfrag *plain = pfrag_new(arena, 2, (const int64_t[]){ 4, 8 }, 1);
	struct pfrag *wrapped = pfrag_new(arena, 2, (const int64_t[]){ 4, 6 }, 1);
	struct layout *layout;

	for (int32_t e = 0; e < 32; e++)
		plain->thread[e] = e / 2;
	pfrag_number_slots(plain);
	pfrag_finish(plain);
	layout = pfrag_layout(arena, plain);
	CHECK(check, !layout->table_threads && layout->n_threads == 16 && layout->n_slots == 2);
	CHECK(check, layout_at(layout, (const int64_t[]){ 3, 5 }, 0).thread == 14);
	for (int32_t e = 0; e < 24; e++)
		wrapped->thread[e] = e % 16;
	pfrag_number_slots(wrapped);
	pfrag_finish(wrapped);
	layout = pfrag_layout(arena, wrapped);
	CHECK(check, layout->table_threads);
	CHECK(check, layout_at(layout, (const int64_t[]){ 3, 2 }, 0).thread == 4);
	CHECK(check, layout_at(layout, (const int64_t[]){ 3, 2 }, 0).slot == 1);
}

int main(void)
{
	struct arena *arena = arena_open();
	struct check check = { 0 };

	reduced_rows(&check, arena);
	order_of_replicas(&check, arena);
	fused_replicas(&check, arena);
	ragged(&check, arena);
	owners(&check, arena);
	as_layouts(&check, arena);
	arena_close(arena);
	return check_end(&check);
}
