/*
 * Runs to rows and back. A table is a query and a function that puts or gets a row of it; both list
 * the columns in the same order, which schema.sql explains.
 */
#include "db/db.h"

#if HAVE_SQLITE

#include "db/db_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct span NOWHERE = { 0 };

/* ---- store ---- */

/* Now, or SOURCE_DATE_EPOCH where outputs are to be reproducible. */
static const char *utc_text(struct arena *arena)
{
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	time_t now = epoch && *epoch ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
	char text[32] = "1970-01-01T00:00:00Z";
	struct tm parts;

	if (gmtime_r(&now, &parts))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return arena_strndup(arena, text, strlen(text));
}

/* The row of `runs`; gives the run its number, which all other rows carry. */
static bool put_head(struct db *db, struct run_record *run, sqlite3_stmt *stmt)
{
	run->created_at = utc_text(db->cx->arena);
	if (!db_put(db, stmt, "tttttttttttttt", run->created_at, run->tool_version, run->verb,
	            run->file, run->file_hash, run->kernel, run->factory, run->target, run->params,
	            run->layouts, run->device, run->driver, run->nvrtc, run->cupti))
		return false;
	run->id = sqlite3_last_insert_rowid(db->sqlite);
	return true;
}

/* One row a launch. */
static bool put_launches(struct db *db, struct run_record *run, sqlite3_stmt *stmt)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < run->launches.n; i++) {
		const struct record_launch *row = &run->launches.p[i];

		ok = db_put(db, stmt, "iiinnnti", run->id, (int64_t)i, row->threads, row->grid[0],
		            row->grid[1], row->grid[2], row->counted_grid ? "grid" : "block",
		            row->shared_bytes);
	}
	return ok;
}

/* One row a buffer. */
static bool put_buffers(struct db *db, struct run_record *run, sqlite3_stmt *stmt)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < run->buffers.n; i++) {
		const struct record_buffer *row = &run->buffers.p[i];

		ok = db_put(db, stmt, "iiittttinint", run->id, (int64_t)row->launch, (int64_t)i, row->name,
		            row->scope, row->dtype, row->shape, (int64_t)row->line, row->bytes,
		            row->versions, row->offset_bytes, row->layout);
	}
	return ok;
}

/* One row an access site. */
static bool put_sites(struct db *db, struct run_record *run, sqlite3_stmt *stmt)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < run->sites.n; i++) {
		const struct record_site *row = &run->sites.p[i];

		ok = db_put(db, stmt, "iiiittinnnnit", run->id, (int64_t)i, (int64_t)row->launch,
		            (int64_t)row->line, row->buffer, row->instruction, row->bytes_per_thread,
		            row->executions, row->wavefronts, row->ideal, row->excess, row->ways,
		            row->reason);
	}
	return ok;
}

/* One row a measurement, with a value or a reason. */
static bool put_measurements(struct db *db, struct run_record *run, sqlite3_stmt *stmt)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < run->measurements.n; i++) {
		const struct record_measurement *row = &run->measurements.p[i];

		/* An absent value is bound as NaN, which SQLite stores as NULL. */
		ok = db_put(db, stmt, "iiinttdt", run->id, (int64_t)i, (int64_t)row->launch, row->site,
		            row->metric, row->unit, row->missing ? (double)NAN : row->value, row->missing);
	}
	return ok;
}

/* One table: how its rows are written. `runs` stands first, as the others refer to its row. */
static const struct table_writer {
	const char *sql;
	bool (*put)(struct db *db, struct run_record *run, sqlite3_stmt *stmt);
} writers[] = {
	{ "INSERT INTO runs (created_at, tool_version, verb, file, file_hash, kernel, factory, target, "
	  "params, layouts, device, driver, nvrtc, "
	  "cupti) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	  put_head },
	{ "INSERT INTO launches (run, launch, threads, grid_x, grid_y, grid_z, counted, shared_bytes) "
	  "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	  put_launches },
	{ "INSERT INTO buffers (run, launch, number, name, scope, dtype, shape, line, bytes, versions, "
	  "offset_bytes, layout) "
	  "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	  put_buffers },
	{ "INSERT INTO sites (run, site, launch, line, buffer, instruction, bytes_per_thread, "
	  "executions, wavefronts, ideal, excess, "
	  "ways, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	  put_sites },
	{ "INSERT INTO measurements (run, number, launch, site, metric, unit, value, reason) VALUES "
	  "(?, ?, ?, ?, ?, ?, ?, ?)",
	  put_measurements },
};

/* All rows or none; a run that was not stored has no number. */
bool db_store(struct db *db, struct run_record *run)
{
	struct db_write write;
	bool ok = true;

	assert(run->kernel && run->tool_version);
	if (!db_write_begin(db, "write to", &write))
		return false;
	for (size_t i = 0; ok && i < sizeof(writers) / sizeof(*writers); i++) {
		sqlite3_stmt *stmt = db_prepare(db, writers[i].sql);

		ok = stmt && writers[i].put(db, run, stmt);
		sqlite3_finalize(stmt);
	}
	ok = db_write_end(&write, ok);
	if (!ok)
		run->id = 0;
	return ok;
}

bool db_save(struct cx *cx, const char *path, struct run_record *run)
{
	struct db *db = db_open(cx, path, DB_WRITE, 0);
	bool ok = db && db_store(db, run);

	db_close(db);
	return ok;
}

/* ---- load ---- */

/* Steps a statement with the run's number as its one parameter through all rows. */
static bool for_rows(struct db *db, struct run_record *run, const char *sql,
                     void (*get)(struct db *db, struct run_record *run, sqlite3_stmt *stmt))
{
	sqlite3_stmt *stmt = db_prepare(db, sql);
	bool failed = false;

	if (!stmt)
		return false;
	sqlite3_bind_int64(stmt, 1, run->id);
	while (db_next(db, stmt, &failed))
		get(db, run, stmt);
	sqlite3_finalize(stmt);
	return !failed;
}

/* Columns in the order of db_load's first query. */
static void get_head(struct db *db, struct run_record *run, sqlite3_stmt *stmt)
{
	enum { N_REQUIRED = 10 };
	const char **const fields[] = { &run->created_at, &run->tool_version, &run->verb,
		                            &run->file,       &run->file_hash,    &run->kernel,
		                            &run->factory,    &run->target,       &run->params,
		                            &run->layouts,    &run->device,       &run->driver,
		                            &run->nvrtc,      &run->cupti,        &run->tags };

	for (int i = 0; i < (int)(sizeof(fields) / sizeof(*fields)); i++)
		*fields[i] = i < N_REQUIRED ? db_word_at(db, stmt, i) : db_text_at(db, stmt, i);
}

/* Columns in the order of db_load's query, as in the four below. */
static void get_launch(struct db *db, struct run_record *run, sqlite3_stmt *stmt)
{
	struct record_launch row = {
		.threads = db_int_at(stmt, 0),
		.grid = { db_int_at(stmt, 1), db_int_at(stmt, 2), db_int_at(stmt, 3) },
		.counted_grid = strcmp(db_word_at(db, stmt, 4), "grid") == 0,
		.shared_bytes = db_int_at(stmt, 5),
	};

	vec_push(db->cx->arena, &run->launches, row);
}

/* Numbers that are unknown are -1: symbolic extents have no bytes, registers no offset. */
static void get_buffer(struct db *db, struct run_record *run, sqlite3_stmt *stmt)
{
	struct record_buffer row = {
		.launch = (uint32_t)db_int_at(stmt, 0),
		.name = db_word_at(db, stmt, 1),
		.scope = db_word_at(db, stmt, 2),
		.dtype = db_word_at(db, stmt, 3),
		.shape = db_word_at(db, stmt, 4),
		.line = (uint32_t)db_int_at(stmt, 5),
		.bytes = db_int_at(stmt, 6),
		.versions = db_int_at(stmt, 7),
		.offset_bytes = db_int_at(stmt, 8),
		.layout = db_text_at(db, stmt, 9),
	};

	vec_push(db->cx->arena, &run->buffers, row);
}

/* `excess` is -1 for an access that is not modelled, and `reason` says why. */
static void get_site(struct db *db, struct run_record *run, sqlite3_stmt *stmt)
{
	struct record_site row = {
		.launch = (uint32_t)db_int_at(stmt, 0),
		.line = (uint32_t)db_int_at(stmt, 1),
		.buffer = db_word_at(db, stmt, 2),
		.instruction = db_word_at(db, stmt, 3),
		.bytes_per_thread = db_int_at(stmt, 4),
		.executions = db_int_at(stmt, 5),
		.wavefronts = db_int_at(stmt, 6),
		.ideal = db_int_at(stmt, 7),
		.excess = db_int_at(stmt, 8),
		.ways = db_int_at(stmt, 9),
		.reason = db_text_at(db, stmt, 10),
	};

	vec_push(db->cx->arena, &run->sites, row);
}

/* A missing value is NULL with a reason, never 0. */
static void get_measurement(struct db *db, struct run_record *run, sqlite3_stmt *stmt)
{
	struct record_measurement row = {
		.launch = (uint32_t)db_int_at(stmt, 0),
		.site = db_int_at(stmt, 1),
		.metric = db_word_at(db, stmt, 2),
		.unit = db_word_at(db, stmt, 3),
		.value = sqlite3_column_double(stmt, 4),
		.missing = db_text_at(db, stmt, 5),
	};

	vec_push(db->cx->arena, &run->measurements, row);
}

struct run_record *db_load(struct db *db, int64_t id)
{
	struct run_record *run = arena_new(db->cx->arena, struct run_record);
	bool ok;

	run->id = id;
	ok = for_rows(db, run,
	              "SELECT created_at, tool_version, verb, file, file_hash, kernel, factory, "
	              "target, params, layouts, device, driver, nvrtc, "
	              "cupti, (SELECT group_concat(name, ', ') FROM (SELECT name FROM tags WHERE run = "
	              "runs.id ORDER BY name)) "
	              "FROM runs WHERE id = ?",
	              get_head) &&
	     for_rows(db, run,
	              "SELECT threads, grid_x, grid_y, grid_z, counted, shared_bytes FROM launches "
	              "WHERE run = ? ORDER BY launch",
	              get_launch) &&
	     for_rows(db, run,
	              "SELECT launch, name, scope, dtype, shape, line, bytes, versions, offset_bytes, "
	              "layout FROM buffers "
	              "WHERE run = ? ORDER BY number",
	              get_buffer) &&
	     for_rows(db, run,
	              "SELECT launch, line, buffer, instruction, bytes_per_thread, executions, "
	              "wavefronts, ideal, excess, ways, reason "
	              "FROM sites WHERE run = ? ORDER BY site",
	              get_site) &&
	     for_rows(db, run,
	              "SELECT launch, site, metric, unit, value, reason FROM measurements WHERE run = "
	              "? ORDER BY number",
	              get_measurement);
	if (ok && !run->kernel) {
		diag_report(&db->cx->diags, DIAG_E0920, NOWHERE, "no run %lld in %s", (long long)id,
		            db->path);
		ok = false;
	}
	return ok ? run : NULL;
}

/* ---- find and list ---- */

/* The first column of all rows of a query. */
static bool list_ids(struct db *db, const char *sql, struct db_ids *ids)
{
	sqlite3_stmt *stmt = db_prepare(db, sql);
	bool failed = false;

	*ids = (struct db_ids){ 0 };
	if (!stmt)
		return false;
	while (db_next(db, stmt, &failed))
		vec_push(db->cx->arena, &ids->items, sqlite3_column_int64(stmt, 0));
	sqlite3_finalize(stmt);
	return !failed;
}

/* Oldest first. */
bool db_list(struct db *db, struct db_ids *ids)
{
	return list_ids(db, "SELECT id FROM runs ORDER BY id", ids);
}

/* The last run of each kernel, target and parameters: what a report is about. */
bool db_list_latest(struct db *db, struct db_ids *ids)
{
	return list_ids(db,
	                "SELECT max(id) FROM runs GROUP BY factory, kernel, target, params ORDER BY "
	                "factory, kernel, target, params",
	                ids);
}

/* What the user could have meant, as one note. */
static void note_names(struct db *db)
{
	sqlite3_stmt *stmt = db_prepare(db, "SELECT text FROM (SELECT 0 AS kind, name AS text FROM "
	                                    "tags UNION SELECT 1, 'latest:' || kernel "
	                                    "FROM runs) ORDER BY kind, text LIMIT 20");
	struct buf names = { 0 };
	bool failed = false;

	while (stmt && db_next(db, stmt, &failed))
		buf_printf(&names, "%s%s", names.n > 0 ? ", " : "",
		           (const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	if (names.n > 0)
		diag_note(&db->cx->diags, NOWHERE, "there are run numbers (tilelayout db list), latest, %s",
		          buf_cstr(&names));
	buf_free(&names);
}

/*
 * A number, `latest`, `latest:KERNEL` (or its factory's name), or a tag. E0920 with what there is.
 */
bool db_find(struct db *db, const char *name, int64_t *id)
{
	bool is_number = *name && strspn(name, "0123456789") == strlen(name);
	bool is_latest = strncmp(name, "latest", 6) == 0 && (name[6] == '\0' || name[6] == ':');
	const char *text = is_latest ? name + 6 + (name[6] == ':') : name;
	bool found = false, failed = false;
	sqlite3_stmt *stmt;

	assert(db->sqlite && id);
	if (is_number)
		stmt = db_prepare(db, "SELECT id FROM runs WHERE id = CAST(? AS INTEGER)");
	else if (is_latest && *text)
		stmt = db_prepare(
			db, "SELECT id FROM runs WHERE kernel = ?1 OR factory = ?1 ORDER BY id DESC LIMIT 1");
	else if (is_latest)
		stmt = db_prepare(db, "SELECT id FROM runs WHERE ?1 = '' ORDER BY id DESC LIMIT 1");
	else
		stmt = db_prepare(db, "SELECT run FROM tags WHERE name = ?");
	if (!stmt)
		return false;
	sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC);
	found = db_next(db, stmt, &failed);
	if (found)
		*id = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	if (!found && !failed) {
		diag_report(&db->cx->diags, DIAG_E0920, NOWHERE, "no run '%s' in %s", name, db->path);
		note_names(db);
	}
	return found;
}

/* ---- tags and export ---- */

/* Names that the other ways to name a run leave free: no digits alone, no `latest`, no characters
 * of paths. */
static bool is_tag_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= 64 && strcmp(name, "latest") != 0 && strspn(name, "0123456789") < n &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+@") ==
	           n &&
	       name[0] != '-' && !(n > 3 && strcmp(name + n - 3, ".db") == 0);
}

/* A tag moves when it is given again: "baseline" is what it was last put on. */
bool db_tag(struct db *db, int64_t id, const char *name)
{
	struct db_write write;
	sqlite3_stmt *stmt;
	bool ok;

	assert(db->mode == DB_WRITE);
	if (!is_tag_name(name)) {
		diag_report(&db->cx->diags, DIAG_E0922, NOWHERE, "'%s' cannot be a tag", name);
		diag_help(
			&db->cx->diags,
			"letters, digits and . _ - + @, not digits alone, not 'latest', not ending in .db");
		return false;
	}
	if (!db_write_begin(db, "write to", &write))
		return false;
	stmt = db_prepare(db, "INSERT INTO tags (name, run) VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
	                      "SET run = excluded.run");
	ok = stmt && db_put(db, stmt, "ti", name, id);
	sqlite3_finalize(stmt);
	return db_write_end(&write, ok);
}

/*
 * VACUUM INTO writes a whole and compact copy without locking writers out
 * (sqlite.org/lang_vacuum.html).
 */
bool db_export(struct db *db, const char *path)
{
	sqlite3_stmt *stmt;
	bool ok;

	if (access(path, F_OK) == 0) {
		diag_report(&db->cx->diags, DIAG_E0923, NOWHERE, "%s exists; export writes a new file",
		            path);
		return false;
	}
	stmt = db_prepare(db, "VACUUM INTO ?");
	if (!stmt)
		return false;
	sqlite3_bind_text(stmt, 1, path, -1, SQLITE_STATIC);
	ok = sqlite3_step(stmt) == SQLITE_DONE ||
	     db_failed(db, arena_printf(db->cx->arena, "export to %s from", path));
	sqlite3_finalize(stmt);
	if (!ok)
		unlink(path);
	return ok;
}

#endif
