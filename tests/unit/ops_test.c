/*
 * The longer table of operations, through the front end: each kernel of tests/ops/all.tl becomes a
 * tile program whose text reads back as the same text; annotated layouts place every element where
 * their functions say.
 */
#include "analyzer/layout/layout.h"
#include "tests/unit/check.h"
#include "tests/unit/kernel_text.h"

#include <stdlib.h>

/* All of a file, or NULL. */
static char *read_file(const char *path, size_t *n)
{
	FILE *file = fopen(path, "rb");
	char *text = calloc(1, 1 << 16);

	*n = file && text ? fread(text, 1, (1 << 16) - 1, file) : 0;
	if (file)
		fclose(file);
	return text;
}

/* The path of a file of the tests, wherever they run. */
static const char *test_path(struct arena *arena, const char *name)
{
	const char *root = getenv("ROOT");

	return arena_printf(arena, "%s/tests/ops/%s", root ? root : ".", name);
}

/* print(read(print(program))) is print(program). */
static void check_round_trip(struct check *check, const struct tile_program *program)
{
	struct kernel_text again;
	struct tile_program *copy;
	struct buf first = { 0 }, second = { 0 };

	tile_print(&first, program);
	kernel_text_open(&again, buf_cstr(&first), first.n);
	copy = tile_read(&again.cx, again.pool, again.file);
	if (!CHECK(check, copy != NULL))
		printf("%s\n%s", buf_cstr(&first), kernel_text_diags(&again));
	if (copy)
		tile_print(&second, copy);
	CHECK_TEXT(check, buf_cstr(&second), buf_cstr(&first));
	kernel_text_close(&again);
	buf_free(&first);
	buf_free(&second);
}

/* The buffer of that name. */
static const struct buffer *find_buffer(const struct tile_program *program, const char *name)
{
	for (uint32_t i = 0; i < program->buffers.n; i++) {
		if (strcmp(sym_text(program->cx->names, program->buffers.p[i]->name), name) == 0)
			return program->buffers.p[i];
	}
	return NULL;
}

/* The layouts of the kernel `layouts`, element by element. */
static void check_layouts(struct check *check, const struct tile_program *program)
{
	const struct layout *b = find_buffer(program, "b")->annotation,
						*odd = find_buffer(program, "odd")->annotation,
						*c = find_buffer(program, "c")->annotation,
						*d = find_buffer(program, "d")->annotation;
	int64_t index[MAX_RANK] = { 0 };

	CHECK(check, b && odd && c && d && find_buffer(program, "B")->map);
	do {
		int64_t i = index[0], j = index[1];

		CHECK_INT(check, layout_at(b, index, 0).offset,
		          2 * ((i % 8 * 8 + i / 8) * 32 + (j ^ (i % 4 * 8))));
		CHECK_INT(check, layout_at(c, index, 0).thread, i);
		CHECK_INT(check, layout_at(c, index, 0).slot, j);
	} while (layout_next_index(b, index));
	do
		CHECK_INT(check, layout_at(odd, index, 0).offset, 2 * (index[0] * 5 + index[1] * 2 % 5));
	while (layout_next_index(odd, index));
	do {
		for (int64_t r = 0; r < 2; r++) {
			CHECK_INT(check, layout_at(d, index, r).thread, index[0] / 2 + 32 * r);
			CHECK_INT(check, layout_at(d, index, r).slot, index[0] % 2);
		}
	} while (layout_next_index(d, index));
}

/* Every kernel of the file. */
static void test_all(struct check *check)
{
	struct frontend_options options = { .config = -1 };
	struct frontend_result result = { .kernels = { 0 } };
	struct kernel_text kt;
	struct arena *arena = arena_open();
	size_t n;
	char *text = read_file(test_path(arena, "all.tl"), &n);

	CHECK(check, n > 0);
	kernel_text_open(&kt, text, n);
	CHECK(check, frontend_run(&kt.cx, kt.pool, kt.file, &options, &result));
	CHECK_INT(check, result.kernels.n, 4);
	for (uint32_t i = 0; i < result.kernels.n; i++) {
		const struct tile_program *program = result.kernels.p[i]->program;

		if (!CHECK(check, program != NULL))
			continue;
		check_round_trip(check, program);
		if (strcmp(result.kernels.p[i]->name, "layouts_kernel") == 0)
			check_layouts(check, program);
	}
	kernel_text_close(&kt);
	arena_close(arena);
	free(text);
}

int main(void)
{
	struct check check = { 0 };

	test_all(&check);
	return check_end(&check);
}
