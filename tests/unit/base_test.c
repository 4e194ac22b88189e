/* base: the contracts of the arena, names, containers, buffers, JSON and diagnostics. */
#include "tests/unit/check.h"

#include "base/diag.h"
#include "base/json.h"
#include "base/map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Release drops what came after the mark, and reused memory is zero again. */
static void test_arena(struct check *check, struct arena *arena)
{
	struct arena_mark start = arena_mark(arena);
	size_t used = arena_used_bytes(arena);
	unsigned char *bytes = arena_alloc(arena, 100);
	unsigned char *nothing = arena_alloc(arena, 0);
	unsigned char *large;
	struct arena_mark inner;

	CHECK(check, nothing && nothing != arena_alloc(arena, 0));
	CHECK_INT(check, (intptr_t)bytes % 16, 0);
	memset(bytes, 0xff, 100);
	inner = arena_mark(arena);
	large = arena_alloc(arena, 1000 * 1000);
	memset(large, 0xff, 1000 * 1000);
	for (int i = 0; i < 100; i++)
		memset(arena_alloc(arena, 5000), 0xff, 5000);
	arena_release(arena, inner);
	CHECK_INT(check, bytes[99], 0xff);
	arena_release(arena, start);
	CHECK_INT(check, (int64_t)arena_used_bytes(arena), (int64_t)used);
	bytes = arena_alloc(arena, 60000);
	for (int i = 0; i < 60000; i++)
		if (!CHECK_INT(check, bytes[i], 0))
			break;
	CHECK_TEXT(check, arena_printf(arena, "%s-%d", "abc", 42), "abc-42");
	CHECK_TEXT(check, arena_strndup(arena, "abcdef", 3), "abc");
}

/*
 * The limit is asked about, not enforced, and counts what was handed out. Closing no arena is
 * allowed.
 */
static void test_arena_limit(struct check *check)
{
	struct arena *arena = arena_open();

	CHECK(check, !arena_over_limit(arena));
	arena_set_limit(arena, 1000);
	arena_alloc(arena, 500);
	CHECK(check, !arena_over_limit(arena));
	arena_alloc(arena, 600);
	CHECK(check, arena_over_limit(arena));
	arena_close(arena);
	arena_close(NULL);
}

/* Equal names have equal numbers, also after the table grew. */
static void test_names(struct check *check, struct arena *arena)
{
	struct interner *names = interner_open(arena);
	sym_t first = intern_text(names, "A_shared");
	sym_t syms[2000];
	char text[20];

	CHECK_INT(check, intern_text(names, ""), 0);
	CHECK_TEXT(check, sym_text(names, 0), "");
	for (int i = 0; i < 2000; i++) {
		snprintf(text, sizeof(text), "name%d", i);
		syms[i] = intern_text(names, text);
	}
	for (int i = 0; i < 2000; i++) {
		snprintf(text, sizeof(text), "name%d", i);
		if (!CHECK_INT(check, intern(names, str_of(text)), syms[i]) ||
		    !CHECK_TEXT(check, sym_text(names, syms[i]), text))
			break;
	}
	CHECK_INT(check, intern(names, (struct str){ "A_shared_too", 8 }), first);
	CHECK(check, str_starts(str_of("abc"), "ab") && !str_starts(str_of("a"), "ab"));
}

/*
 * One row a case: bytes, the first character, how far it moves. The malformed ones are the classes
 * of Unicode's table 3-7 (well-formed UTF-8 byte sequences), each just outside of it.
 */
static void test_characters(struct check *check)
{
	static const struct {
		const char *text;
		uint32_t c, n;
	} cases[] = {
		{ "a", 'a', 1 },
		{ "\xc3\xa9", 0xe9, 2 },
		{ "\xe4\xbd\xa0", 0x4f60, 3 },
		{ "\xf0\x9f\x98\x80", 0x1f600, 4 },
		{ "\xc0\x80", 0xfffd, 1 },         /* overlong */
		{ "\xe0\x80\xaf", 0xfffd, 1 },     /* overlong */
		{ "\xed\xa0\x80", 0xfffd, 1 },     /* surrogate */
		{ "\xf4\x90\x80\x80", 0xfffd, 1 }, /* above U+10FFFF */
		{ "\xe4\xbd", 0xfffd, 1 },         /* cut off */
		{ "\x80", 0xfffd, 1 },
		{ "\xff", 0xfffd, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t at = 0;

		CHECK_INT(check, str_char_at(str_of(cases[i].text), &at), cases[i].c);
		CHECK_INT(check, at, cases[i].n);
	}
}

/* Elements survive growing; the last is the one pushed last. */
static void test_vec(struct check *check, struct arena *arena)
{
	vec_of(int) numbers = { 0 };

	for (int i = 0; i < 1000; i++)
		vec_push(arena, &numbers, i * i);
	CHECK_INT(check, numbers.n, 1000);
	CHECK_INT(check, numbers.p[31], 961);
	CHECK_INT(check, vec_last(&numbers), 999 * 999);
	CHECK_INT(check, vec_pop(&numbers), 999 * 999);
	CHECK_INT(check, numbers.n, 999);
}

/* Keys that differ in their high bits only; iteration is in insertion order. */
static void test_map(struct check *check, struct arena *arena)
{
	struct map map = { 0 };
	int value = 7;

	CHECK(check, !map_find(&map, 1) && !map_get(&map, 1));
	for (uint64_t i = 0; i < 3000; i++)
		map_at(arena, &map, i * 0x100000001u)->value.number = i;
	for (uint64_t i = 0; i < 3000; i++)
		map_at(arena, &map, i * 0x100000001u)->value.number += 1;
	CHECK_INT(check, map.n, 3000);
	for (uint32_t i = 0; i < map.n; i++)
		if (!CHECK(check, map.entries[i].value.number == i + 1))
			break;
	CHECK(check, !map_find(&map, 5));
	map_set(arena, &map, 5, &value);
	CHECK(check, map_get(&map, 5) == &value);
	CHECK(check, hash_bytes("abcdefghi", 9, 0) != hash_bytes("abcdefghj", 9, 0));
	CHECK(check, hash_bytes("abc", 3, 0) != hash_bytes("abc", 3, 1));
}

/* Indentation, texts longer than the first room, doubles that read back. */
static void test_buf(struct check *check)
{
	static const double values[] = { 0.1, 1.0 / 3.0, 1e300, -2.5, 128, 6.02214076e23 };
	struct buf buf = { 0 };
	char *end;

	CHECK_TEXT(check, buf_cstr(&buf), "");
	buf.indent = 2;
	buf_line(&buf, "x = %d;", 5);
	buf_printf(&buf, "%0400d", 1);
	CHECK_INT(check, (int64_t)buf.n, 2 + 7 + 400);
	CHECK(check, str_starts(buf_str(&buf), "\t\tx = 5;\n000"));
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		buf.n = 0;
		buf_double(&buf, values[i]);
		CHECK(check, !(strtod(buf_cstr(&buf), &end) < values[i]) &&
		                 !(strtod(buf_cstr(&buf), &end) > values[i]) && *end == 0);
	}
	buf.n = 0;
	buf_double(&buf, 0.1);
	CHECK_TEXT(check, buf_cstr(&buf), "0.1");
	buf_free(&buf);
}

/* Links stay links, devices stay devices, a limit holds, errno tells. */
static void test_files(struct check *check)
{
	char folder[] = "/tmp/tilelayout-base-XXXXXX";
	char path[64], link_path[64];
	struct buf out = { 0 }, in = { 0 };
	struct stat st;

	CHECK(check, mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(link_path, sizeof(link_path), "%s/link", folder);
	buf_add(&out, "a\0b\n", 4);
	CHECK(check, buf_write_file(&out, path) && buf_read_file(&in, path, 4));
	CHECK(check, in.n == 4 && memcmp(in.p, "a\0b\n", 4) == 0);
	CHECK(check, !buf_read_file(&in, path, 3) && errno == EFBIG);
	CHECK(check, symlink("file", link_path) == 0);
	buf_text(&out, "more\n");
	CHECK(check, buf_write_file(&out, link_path));
	CHECK(check, lstat(link_path, &st) == 0 && S_ISLNK(st.st_mode));
	CHECK(check, stat(path, &st) == 0 && st.st_size == 9);
	CHECK(check, !buf_write_file(&out, folder) && errno == EISDIR);
	CHECK(check, buf_write_file(&out, "/dev/null"));
	CHECK(check, stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
	CHECK(check, unlink(link_path) == 0 && unlink(path) == 0 && rmdir(folder) == 0);
	CHECK(check, !buf_write_file(&out, path) && errno == ENOENT);
	CHECK(check, !buf_read_file(&in, path, 0) && errno == ENOENT);
	buf_free(&out);
	buf_free(&in);
}

/*
 * Escapes, empty containers, nesting, and numbers that JSON does not have. The text is written by
 * hand from RFC 8259.
 */
static void test_json(struct check *check)
{
	struct buf out = { 0 };
	struct json json;

	json_init(&json, &out);
	json_object(&json);
	json_kstring(&json, "text", "a\"\\\n\x01\xff \xc3\xa9");
	json_kstring(&json, "none", NULL);
	json_kint(&json, "least", INT64_MIN);
	json_kdouble(&json, "half", 0.5);
	json_kdouble(&json, "nan", (double)NAN);
	json_kbool(&json, "yes", true);
	json_key(&json, "empty");
	json_array(&json);
	json_end(&json);
	json_key(&json, "list");
	json_array(&json);
	json_int(&json, 1);
	json_object(&json);
	json_end(&json);
	json_end(&json);
	json_end(&json);
	CHECK_TEXT(check, buf_cstr(&out),
	           "{\n"
	           "  \"text\": \"a\\\"\\\\\\n\\u0001\xef\xbf\xbd \xc3\xa9\",\n"
	           "  \"none\": null,\n"
	           "  \"least\": -9223372036854775808,\n"
	           "  \"half\": 0.5,\n"
	           "  \"nan\": null,\n"
	           "  \"yes\": true,\n"
	           "  \"empty\": [],\n"
	           "  \"list\": [\n"
	           "    1,\n"
	           "    {}\n"
	           "  ]\n"
	           "}\n");
	buf_free(&out);
}

/* Lines and columns count characters. */
static void test_locate(struct check *check, struct arena *arena)
{
	/* byte offset, line, column; "é" has two bytes, "\r\n" and a lone "\r" end a line. */
	static const uint32_t cases[][3] = {
		{ 0, 1, 1 }, { 1, 1, 2 }, { 3, 1, 3 },  { 4, 1, 4 },   { 6, 2, 1 },
		{ 7, 3, 1 }, { 9, 4, 1 }, { 10, 4, 2 }, { 999, 4, 2 },
	};
	struct source_set set = { 0 };
	uint32_t file = source_add(arena, &set, "k.tl", str_of("x\xc3\xa9y\r\n\n1\rz"));

	CHECK_INT(check, file, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct span span = { file, cases[i][0], cases[i][0] };
		struct line_column where = source_locate(&set, span);

		CHECK_INT(check, where.line, cases[i][1]);
		CHECK_INT(check, where.column, cases[i][2]);
		CHECK_INT(check, source_line(&set, span), cases[i][1]);
	}
	CHECK_INT(check, source_locate(&set, (struct span){ 0, 0, 0 }).line, 0);
	CHECK_INT(check, source_line(&set, (struct span){ 9, 0, 0 }), 0);
	CHECK(check, !source_get(&set, 2));
	CHECK_INT(check, span_join((struct span){ 1, 2, 3 }, (struct span){ 1, 5, 9 }).end, 9);
	CHECK_INT(check, span_join((struct span){ 0, 0, 0 }, (struct span){ 1, 5, 9 }).begin, 5);
}

/* The caret stands under a wide character behind a tab; the escape sequence is defused. */
static void test_diag_print(struct check *check)
{
	static const char text[] = "if x:\n\tT.gemm(\xe4\xbd\xa0, B\x1b[2J)\n";
	struct arena *arena = arena_open();
	struct buf out = { 0 };
	struct cx cx;
	enum diag_code code;
	char wanted[500];
	uint32_t file;

	cx_init(&cx, arena);
	if (!CHECK(check, N_DIAG_CODES > 0))
		return;
	code = (enum diag_code)0;
	file = source_add(arena, &cx.sources, "a/k.tl", str_of(text));
	diag_report(&cx.diags, code, (struct span){ file, 14, 19 }, "sizes differ: %d and %d", 64, 32);
	diag_note(&cx.diags, (struct span){ file, 0, 2 }, "declared here");
	diag_help(&cx.diags, "write transpose_B=True");
	diag_print(&out, &cx.diags, &cx.sources, false);
	snprintf(wanted, sizeof(wanted),
	         "a/k.tl:2:9: %s[%s]: sizes differ: 64 and 32\n"
	         "    2 | \tT.gemm(\xe4\xbd\xa0, B?[2J)\n"
	         "      | \t       ^~~~\n"
	         "a/k.tl:1:1: note: declared here\n"
	         "help: write transpose_B=True\n",
	         severity_text(cx.diags.items.p[0]->severity), diag_code_text(code));
	CHECK_TEXT(check, buf_cstr(&out), wanted);
	buf_free(&out);
	arena_close(arena);
}

/* The excerpt of a very long line is cut, and any span is safe to print. */
static void test_diag_excerpts(struct check *check)
{
	struct arena *arena = arena_open();
	struct buf out = { 0 }, line = { 0 };
	struct cx cx;
	uint32_t file;

	cx_init(&cx, arena);
	for (int i = 0; i < 3000; i++)
		buf_text(&line, i % 3 ? "\xc3\xa9" : "x");
	file = source_add(arena, &cx.sources, "long.tl", buf_str(&line));
	for (uint32_t begin = 0; begin < line.n + 10; begin += 37) {
		struct span span = { file, begin, begin + begin % 500 };

		diag_report(&cx.diags, (enum diag_code)0, span, "here");
	}
	diag_report(&cx.diags, (enum diag_code)0, (struct span){ 0, 0, 0 }, "nowhere");
	diag_print(&out, &cx.diags, &cx.sources, true);
	for (const char *at = buf_cstr(&out), *end; (end = strchr(at, '\n')) != NULL; at = end + 1)
		if (!CHECK(check, end - at < 400))
			break;
	buf_free(&out);
	buf_free(&line);
	arena_close(arena);
}

/*
 * From the 201st on diagnostics are counted, not kept, and the printed text says how many there
 * were.
 */
static void test_diag_limit(struct check *check)
{
	struct arena *arena = arena_open();
	struct span nowhere = { 0, 0, 0 };
	struct buf out = { 0 };
	struct cx cx;

	cx_init(&cx, arena);
	for (int i = 0; i < 230; i++) {
		diag_report(&cx.diags, (enum diag_code)0, nowhere, "number %d", i);
		diag_note(&cx.diags, nowhere, "about %d", i);
	}
	CHECK_INT(check, cx.diags.items.n, 200);
	CHECK_INT(check, cx.diags.n_dropped, 30);
	CHECK_INT(check, vec_last(&cx.diags.items)->attachments.n, 1);
	diag_print(&out, &cx.diags, &cx.sources, false);
	CHECK(check, strstr(buf_cstr(&out), "30 more diagnostics") != NULL);
	buf_free(&out);
	arena_close(arena);
}

/* The table: sorted within a letter, codes well formed, every text there, found in any case. */
static void test_diag_table(struct check *check)
{
	for (int i = 0; i < N_DIAG_CODES; i++) {
		const char *text = diag_code_text((enum diag_code)i);
		enum diag_code found = N_DIAG_CODES;
		char lower[8];

		CHECK(check, strlen(text) == 5 && strspn(text + 1, "0123456789") == 4);
		CHECK(check, text[0] == 'E' || text[0] == 'W');
		CHECK(check, diag_code_title((enum diag_code)i)[0] != 0);
		CHECK(check, diag_code_explain((enum diag_code)i)[0] != 0);
		snprintf(lower, sizeof(lower), "%c%s", text[0] | 0x20, text + 1);
		CHECK(check, diag_code_find(lower, &found) && found == (enum diag_code)i);
		if (i > 0 && !CHECK(check, strcmp(diag_code_text((enum diag_code)(i - 1)), text) < 0))
			printf("%s is out of order\n", text);
	}
	CHECK(check, !diag_code_find("E9999", &(enum diag_code){ 0 }));
	CHECK(check, !diag_code_find("", &(enum diag_code){ 0 }));
}

int main(void)
{
	struct arena *arena = arena_open();
	struct check check = { 0 };

	test_arena(&check, arena);
	test_arena_limit(&check);
	test_names(&check, arena);
	test_characters(&check);
	test_vec(&check, arena);
	test_map(&check, arena);
	test_buf(&check);
	test_files(&check);
	test_json(&check);
	test_locate(&check, arena);
	test_diag_print(&check);
	test_diag_excerpts(&check);
	test_diag_limit(&check);
	test_diag_table(&check);
	arena_close(arena);
	return check_end(&check);
}
