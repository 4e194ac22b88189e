/* The store of runs: round trips, and every way a database file can be unusable. */
#include "db/db.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if HAVE_SQLITE

#include <sqlite3.h>

/* A folder of its own for each run of the program, removed at its end. */
struct fixture {
	struct check *check;
	struct cx cx;
	const char *folder;
};

static struct fixture open_fixture(struct check *check)
{
	struct fixture fixture = { .check = check };
	struct arena *arena = arena_open();
	const char *base = getenv("TMP");
	char *folder = arena_printf(arena, "%s/db_test_XXXXXX", base && *base ? base : "/tmp");

	cx_init(&fixture.cx, arena);
	CHECK(check, mkdtemp(folder) != NULL);
	fixture.folder = folder;
	return fixture;
}

static void close_fixture(struct fixture *fixture)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -rf '%s'", fixture->folder);
	CHECK_INT(fixture->check, system(command), 0);
	arena_close(fixture->cx.arena);
}

static const char *path_of(struct fixture *fixture, const char *name)
{
	return arena_printf(fixture->cx.arena, "%s/%s", fixture->folder, name);
}

/* The code of the diagnostic reported last. */
static const char *last_code(const struct fixture *fixture)
{
	return fixture->cx.diags.items.n ? diag_code_text(vec_last(&fixture->cx.diags.items)->code)
	                                 : "none";
}

/* A run with one of everything, NULLs included. */
static struct run_record *sample_run(struct fixture *fixture, const char *kernel)
{
	struct arena *arena = fixture->cx.arena;
	struct run_record *run = arena_new(arena, struct run_record);
	struct record_launch launch = {
		.threads = 128, .grid = { 8, -1, 1 }, .counted_grid = true, .shared_bytes = 49152
	};
	struct record_buffer shared = { 0,  "A_shared", "shared", "float16", "[128, 64]",
		                            20, 16384,      3,        0,         "swizzle128" };
	struct record_buffer global = {
		0, "A", "global", "float16", "[\"m\", 64]", 9, -1, 1, -1, NULL
	};
	struct record_site site = { 0,
		                        30,
		                        "A_shared",
		                        "ldmatrix.x4",
		                        16,
		                        4096,
		                        32768,
		                        16384,
		                        16384,
		                        8,
		                        "lanes 0 and 4 meet in bank 0" };
	struct record_site unmodelled = { 0, 31, "A_shared", "tma", 0, 12, -1, -1, -1, 0, NULL };

	*run = (struct run_record){ .tool_version = "0.1.0",
		                        .verb = "profile",
		                        .file = "k.tl",
		                        .file_hash = "0123456789abcdef",
		                        .kernel = kernel,
		                        .factory = "make",
		                        .target = "sm_80",
		                        .layouts = "solved",
		                        .params = "{\"M\": 1024}",
		                        .device = "NVIDIA H200",
		                        .driver = "13.0" };
	vec_push(arena, &run->launches, launch);
	vec_push(arena, &run->buffers, shared);
	vec_push(arena, &run->buffers, global);
	vec_push(arena, &run->sites, site);
	vec_push(arena, &run->sites, unmodelled);
	record_measure(arena, run,
	               (struct record_measurement){ 0, 0, "wavefronts", "wavefronts", 32768, NULL });
	record_measure(arena, run,
	               (struct record_measurement){ 0, -1, "duration", "ns", (double)NAN, NULL });
	record_measure(arena, run,
	               (struct record_measurement){ 0, -1, "bytes", "bytes", 0,
	                                            "the counter is not on this chip" });
	return run;
}

/* What is stored comes back, unknown numbers and absent texts as such. */
static void test_round_trip(struct fixture *fixture)
{
	struct check *check = fixture->check;
	const char *path = path_of(fixture, "round.db");
	struct run_record *run = sample_run(fixture, "matmul"), *back;
	struct db *db;

	CHECK(check, db_save(&fixture->cx, path, run));
	CHECK_INT(check, run->id, 1);
	db = db_open(&fixture->cx, path, DB_READ, 0);
	if (!CHECK(check, db != NULL))
		return;
	back = db_load(db, 1);
	if (CHECK(check, back != NULL)) {
		CHECK_TEXT(check, back->kernel, "matmul");
		CHECK_TEXT(check, back->params, run->params);
		CHECK_TEXT(check, back->created_at, run->created_at);
		CHECK(check, back->nvrtc == NULL && back->tags == NULL);
		CHECK_INT(check, back->launches.p[0].grid[0], 8);
		CHECK_INT(check, back->launches.p[0].grid[1], -1);
		CHECK(check, back->launches.p[0].counted_grid);
		CHECK_INT(check, back->buffers.n, 2);
		CHECK_INT(check, back->buffers.p[0].versions, 3);
		CHECK_INT(check, back->buffers.p[1].bytes, -1);
		CHECK_INT(check, back->buffers.p[1].offset_bytes, -1);
		CHECK(check, back->buffers.p[1].layout == NULL);
		CHECK_TEXT(check, back->buffers.p[1].shape, "[\"m\", 64]");
		CHECK_INT(check, back->sites.n, 2);
		CHECK_INT(check, back->sites.p[0].excess, 16384);
		CHECK_TEXT(check, back->sites.p[0].reason, "lanes 0 and 4 meet in bank 0");
		CHECK_INT(check, back->sites.p[1].wavefronts, -1);
		CHECK_INT(check, record_excess(back), 16384);
	}
	db_close(db);
}

/* What could not be measured is NULL with a reason, in the file itself; never 0. */
static void test_missing_is_null(struct fixture *fixture)
{
	struct check *check = fixture->check;
	const char *path = path_of(fixture, "null.db");
	struct db *db;
	struct run_record *back;
	sqlite3 *raw = NULL;
	sqlite3_stmt *stmt = NULL;

	CHECK(check, db_save(&fixture->cx, path, sample_run(fixture, "k")));
	db = db_open(&fixture->cx, path, DB_READ, 0);
	back = db ? db_load(db, 1) : NULL;
	if (CHECK(check, back && back->measurements.n == 3)) {
		CHECK(check, back->measurements.p[0].missing == NULL);
		CHECK_INT(check, (int64_t)back->measurements.p[0].value, 32768);
		CHECK_TEXT(check, back->measurements.p[1].missing, "the counter gave not a number");
		CHECK_TEXT(check, back->measurements.p[2].missing, "the counter is not on this chip");
	}
	db_close(db);
	CHECK_INT(check, sqlite3_open(path, &raw), SQLITE_OK);
	CHECK_INT(check,
	          sqlite3_prepare_v2(raw, "SELECT count(*) FROM measurements WHERE value IS NULL", -1,
	                             &stmt, NULL),
	          SQLITE_OK);
	CHECK_INT(check, sqlite3_step(stmt), SQLITE_ROW);
	CHECK_INT(check, sqlite3_column_int(stmt, 0), 2);
	sqlite3_finalize(stmt);
	CHECK(check,
	      sqlite3_exec(raw, "INSERT INTO measurements VALUES (1, 9, 0, NULL, 'x', 'x', NULL, NULL)",
	                   NULL, NULL, NULL) != SQLITE_OK);
	sqlite3_close(raw);
}

/* Each way to name a run; a tag moves; names that would be ambiguous are refused. */
static void test_find_and_tag(struct fixture *fixture)
{
	struct check *check = fixture->check;
	const char *path = path_of(fixture, "find.db");
	struct db *db = db_open(&fixture->cx, path, DB_WRITE, 0);
	struct db_ids ids;
	int64_t id = 0;

	if (!CHECK(check, db != NULL))
		return;
	CHECK(check, db_store(db, sample_run(fixture, "a")));
	CHECK(check, db_store(db, sample_run(fixture, "b")));
	CHECK(check, db_store(db, sample_run(fixture, "a")));
	CHECK(check, db_find(db, "latest", &id) && id == 3);
	CHECK(check, db_find(db, "latest:b", &id) && id == 2);
	CHECK(check, db_find(db, "latest:make", &id) && id == 3);
	CHECK(check, db_find(db, "1", &id) && id == 1);
	CHECK(check, db_tag(db, 1, "main") && db_find(db, "main", &id) && id == 1);
	CHECK(check, db_tag(db, 2, "main") && db_find(db, "main", &id) && id == 2);
	CHECK(check, !db_find(db, "4", &id));
	CHECK_TEXT(check, last_code(fixture), "E0920");
	CHECK(check, !db_find(db, "nightly", &id));
	CHECK(check, !db_tag(db, 1, "latest"));
	CHECK_TEXT(check, last_code(fixture), "E0922");
	CHECK(check, !db_tag(db, 1, "12") && !db_tag(db, 1, "a/b") && !db_tag(db, 1, "x.db") &&
	                 !db_tag(db, 1, "a:b") && !db_tag(db, 1, ""));
	CHECK(check, db_list(db, &ids) && ids.items.n == 3);
	CHECK(check, db_list_latest(db, &ids) && ids.items.n == 2 && ids.items.p[0] == 3 &&
	                 ids.items.p[1] == 2);
	db_close(db);
}

/* A whole copy, which opens; never over an existing file. */
static void test_export(struct fixture *fixture)
{
	struct check *check = fixture->check;
	const char *path = path_of(fixture, "from.db"), *copy = path_of(fixture, "copy.db");
	struct db *db;

	CHECK(check, db_save(&fixture->cx, path, sample_run(fixture, "k")));
	db = db_open(&fixture->cx, path, DB_READ, 0);
	CHECK(check, db && db_export(db, copy));
	CHECK(check, db && !db_export(db, copy));
	CHECK_TEXT(check, last_code(fixture), "E0923");
	CHECK(check, db && !db_export(db, path_of(fixture, "no/such/folder.db")));
	db_close(db);
	db = db_open(&fixture->cx, copy, DB_READ, 0);
	CHECK(check, db && db_load(db, 1) != NULL);
	db_close(db);
}

/* A file of these bytes. */
static void write_text(const char *path, const char *text, size_t n)
{
	FILE *file = fopen(path, "wb");

	if (file) {
		fwrite(text, 1, n, file);
		fclose(file);
	}
}

/* Statements by SQLite itself, past our checks. */
static void exec_raw(const char *path, const char *sql)
{
	sqlite3 *raw = NULL;

	sqlite3_open(path, &raw);
	sqlite3_exec(raw, sql, NULL, NULL, NULL);
	sqlite3_close(raw);
}

/* Opening for both modes gives the code, and leaves the file as it is. */
static void check_refused(struct fixture *fixture, const char *path, const char *code)
{
	for (int mode = DB_READ; mode <= DB_WRITE; mode++) {
		CHECK(fixture->check, db_open(&fixture->cx, path, (enum db_mode)mode, 0) == NULL);
		CHECK_TEXT(fixture->check, last_code(fixture), code);
	}
}

/* Noise, another program's database, a newer schema, a folder: each with its code, unchanged. */
static void test_refused_files(struct fixture *fixture)
{
	const char *text = path_of(fixture, "text.db"), *other = path_of(fixture, "other.db"),
			   *newer = path_of(fixture, "newer.db");
	char noise[5000];

	memset(noise, 'x', sizeof(noise));
	write_text(text, noise, sizeof(noise));
	check_refused(fixture, text, "E0803");
	exec_raw(other, "CREATE TABLE songs (name TEXT)");
	check_refused(fixture, other, "E0803");
	CHECK(fixture->check, db_save(&fixture->cx, newer, sample_run(fixture, "k")));
	exec_raw(newer, "PRAGMA user_version = 99");
	check_refused(fixture, newer, "E0804");
	check_refused(fixture, fixture->folder, "E0801");
}

/* A file with our mark whose tables hold nothing that they should: nothing crashes. */
static void test_strange_tables(struct fixture *fixture)
{
	static const char tables[] =
		"PRAGMA application_id = 1414289748; PRAGMA user_version = 1;"
		"CREATE TABLE runs (id, created_at, tool_version, verb, file, file_hash, kernel, factory, "
		"target, "
		"params, layouts, device, driver, nvrtc, cupti);"
		"CREATE TABLE tags (name, run);"
		"CREATE TABLE launches (run, launch, threads, grid_x, grid_y, grid_z, counted, "
		"shared_bytes);"
		"CREATE TABLE buffers (run, launch, number, name, scope, dtype, shape, line, bytes, "
		"versions, "
		"offset_bytes, layout);"
		"CREATE TABLE sites (run, site, launch, line, buffer, instruction, bytes_per_thread, "
		"executions, "
		"wavefronts, ideal, excess, ways, reason);"
		"CREATE TABLE measurements (run, number, launch, site, metric, unit, value, reason);"
		"INSERT INTO runs (id, kernel) VALUES (-1, x'00ff'), (1, NULL); INSERT INTO tags VALUES "
		"(NULL, 1);"
		"INSERT INTO launches (run, launch) VALUES (1, -7); INSERT INTO buffers (run) VALUES (1);"
		"INSERT INTO sites (run, launch, line) VALUES (1, 99, 'x');"
		"INSERT INTO measurements (run, site) VALUES (1, 77)";
	struct check *check = fixture->check;
	const char *path = path_of(fixture, "strange.db");
	struct run_record *run;
	struct db_ids ids;
	struct db *db;

	exec_raw(path, tables);
	db = db_open(&fixture->cx, path, DB_READ, 0);
	run = db ? db_load(db, 1) : NULL;
	if (CHECK(check, run != NULL)) {
		CHECK_TEXT(check, run->kernel, "");
		CHECK_TEXT(check, run->sites.p[0].buffer, "");
		CHECK_TEXT(check, run->measurements.p[0].metric, "");
		CHECK(check, !run->launches.p[0].counted_grid);
	}
	CHECK(check, db && db_list(db, &ids) && ids.items.n == 2 && db_load(db, -1) != NULL);
	db_close(db);
	exec_raw(path, "DROP TABLE sites");
	db = db_open(&fixture->cx, path, DB_READ, 0);
	CHECK(check, db && db_load(db, 1) == NULL);
	CHECK_TEXT(check, last_code(fixture), "E0808");
	db_close(db);
}

/* Reading makes no file; an empty one is no database to read, but one to write into. */
static void test_missing_files(struct fixture *fixture)
{
	struct check *check = fixture->check;
	const char *nowhere = path_of(fixture, "no/such/folder.db"),
			   *absent = path_of(fixture, "absent.db");
	const char *empty = path_of(fixture, "empty.db");

	CHECK(check, db_open(&fixture->cx, nowhere, DB_WRITE, 0) == NULL);
	CHECK_TEXT(check, last_code(fixture), "E0801");
	CHECK(check, db_open(&fixture->cx, absent, DB_READ, 0) == NULL);
	CHECK_TEXT(check, last_code(fixture), "E0910");
	CHECK(check, access(absent, F_OK) != 0);
	write_text(empty, "", 0);
	CHECK(check, db_open(&fixture->cx, empty, DB_READ, 0) == NULL);
	CHECK_TEXT(check, last_code(fixture), "E0920");
	CHECK(check, db_save(&fixture->cx, empty, sample_run(fixture, "k")));
}

/* Pages of the tables overwritten: the damage is found while reading, and said. */
static void test_damaged(struct fixture *fixture)
{
	struct check *check = fixture->check;
	const char *path = path_of(fixture, "damaged.db");
	struct run_record *run = sample_run(fixture, "k");
	char noise[4096];
	struct stat info;
	FILE *file;
	struct db *db;

	memset(noise, 0x5a, sizeof(noise));
	CHECK(check, db_save(&fixture->cx, path, run));
	file = fopen(path, "r+b");
	if (!CHECK(check, file && stat(path, &info) == 0))
		return;
	for (long at = 4096; at + 4096 <= info.st_size; at += 4096) {
		fseek(file, at, SEEK_SET);
		fwrite(noise, 1, sizeof(noise), file);
	}
	fclose(file);
	db = db_open(&fixture->cx, path, DB_READ, 0);
	CHECK(check, !db || db_load(db, 1) == NULL);
	CHECK_TEXT(check, last_code(fixture), "E0806");
	db_close(db);
	CHECK(check, !db_save(&fixture->cx, path, run));
	CHECK_TEXT(check, last_code(fixture), "E0806");
}

/*
 * While another process holds the lock the write fails after the time given, and works behind it.
 */
static void test_locked(struct fixture *fixture)
{
	struct check *check = fixture->check;
	const char *path = path_of(fixture, "locked.db");
	sqlite3 *other = NULL;
	struct db *db;

	CHECK(check, db_save(&fixture->cx, path, sample_run(fixture, "k")));
	sqlite3_open(path, &other);
	CHECK_INT(check, sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	db = db_open(&fixture->cx, path, DB_WRITE, 50);
	CHECK(check, db && !db_store(db, sample_run(fixture, "k")));
	CHECK_TEXT(check, last_code(fixture), "E0805");
	CHECK_INT(check, sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(other);
	CHECK(check, db && db_store(db, sample_run(fixture, "k")));
	db_close(db);
}

/* A full disk: the run is not in the file, those before it are, and the next one goes in. */
static void test_full(struct fixture *fixture)
{
	struct check *check = fixture->check;
	const char *path = path_of(fixture, "full.db");
	struct run_record *big = sample_run(fixture, "big");
	struct record_site site = big->sites.p[0];
	struct db_ids ids;
	struct db *db;
	pid_t child;
	int status = -1;

	CHECK(check, db_save(&fixture->cx, path, sample_run(fixture, "k")));
	for (int i = 0; i < 5000; i++)
		vec_push(fixture->cx.arena, &big->sites, site);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		const struct rlimit limit = { 100 << 10, 100 << 10 };

		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(db_save(&fixture->cx, path, big)           ? 1
		      : strcmp(last_code(fixture), "E0807") == 0 ? 0
		                                                 : 2);
	}
	waitpid(child, &status, 0);
	CHECK(check, WIFEXITED(status));
	CHECK_INT(check, WEXITSTATUS(status), 0);
	db = db_open(&fixture->cx, path, DB_WRITE, 0);
	CHECK(check, db && db_list(db, &ids) && ids.items.n == 1);
	CHECK(check, db && db_store(db, big));
	CHECK(check, db && db_list(db, &ids) && ids.items.n == 2);
	db_close(db);
}

/* Several processes store at once into a file that does not exist yet: all runs are there. */
static void test_concurrent(struct fixture *fixture)
{
	enum { N_PROCESSES = 6, N_RUNS = 5 };
	struct check *check = fixture->check;
	const char *path = path_of(fixture, "many.db");
	struct db_ids ids;
	struct db *db;
	int status, n_ok = 0;

	fflush(NULL);
	for (int i = 0; i < N_PROCESSES; i++) {
		if (fork() == 0) {
			bool ok = true;

			for (int j = 0; j < N_RUNS; j++)
				ok = db_save(&fixture->cx, path, sample_run(fixture, "k")) && ok;
			_exit(ok ? 0 : 1);
		}
	}
	while (wait(&status) > 0)
		n_ok += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	CHECK_INT(check, n_ok, N_PROCESSES);
	db = db_open(&fixture->cx, path, DB_READ, 0);
	CHECK(check, db && db_list(db, &ids) && ids.items.n == N_PROCESSES * N_RUNS);
	db_close(db);
}

/* The numbers of statfs(2) for ext4 and tmpfs, and those of network file systems. */
static void test_journal_choice(struct check *check)
{
	CHECK(check, db_wal_is_safe(0xef53));
	CHECK(check, db_wal_is_safe(0x01021994));
	CHECK(check, !db_wal_is_safe(0x6969));              /* NFS */
	CHECK(check, !db_wal_is_safe(0x517b));              /* SMB */
	CHECK(check, !db_wal_is_safe((int64_t)0xff534d42)); /* CIFS */
	CHECK(check, !db_wal_is_safe(0x65735546));          /* FUSE */
}

int main(void)
{
	struct check check = { 0 };
	struct fixture fixture = open_fixture(&check);

	test_round_trip(&fixture);
	test_missing_is_null(&fixture);
	test_find_and_tag(&fixture);
	test_export(&fixture);
	test_refused_files(&fixture);
	test_strange_tables(&fixture);
	test_missing_files(&fixture);
	test_damaged(&fixture);
	test_locked(&fixture);
	test_full(&fixture);
	test_concurrent(&fixture);
	test_journal_choice(&check);
	close_fixture(&fixture);
	return check_end(&check);
}

#else

int main(void)
{
	return check_skip("built without SQLite");
}

#endif
