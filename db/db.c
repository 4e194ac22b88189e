/*
 * Opening, transactions and errors of the store of runs.
 *
 * One process writes at a time, readers do not wait for it (write-ahead log, sqlite.org/wal.html)
 * where the file system allows shared memory between processes; elsewhere the rollback journal
 * serves. Every write is one transaction, so that a run is stored whole or not at all. A file is
 * ours by its application_id, and its user_version is the schema's (sqlite.org/pragma.html).
 */
#include "db/db.h"

#if HAVE_SQLITE

#include "db/db_internal.h"
#include "db/schema.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static const struct span NOWHERE = { 0 };

/* ---- errors ---- */

/*
 * SQLite's primary result code to ours; the extended code (sqlite.org/rescode.html) keeps it in its
 * low byte.
 */
static enum diag_code code_of(int status)
{
	switch (status & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return DIAG_E0805;
	case SQLITE_NOTADB:
		return DIAG_E0803;
	case SQLITE_CORRUPT:
		return DIAG_E0806;
	case SQLITE_FULL:
	case SQLITE_IOERR:
		return DIAG_E0807;
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return DIAG_E0801;
	default:
		return DIAG_E0808;
	}
}

/* What to do about it; NULL when the message says it all. */
static const char *help_of(enum diag_code code)
{
	if (code == DIAG_E0805)
		return "another process holds the database; try again when it is done, or give this one "
			   "its own with --db PATH";
	if (code == DIAG_E0801 || code == DIAG_E0807)
		return "--db PATH stores elsewhere, --no-db stores nothing";
	if (code == DIAG_E0806)
		return "move the file away; `sqlite3 FILE .recover` may save its rows";
	return NULL;
}

/* "cannot WHAT PATH: WHY", with what helps. */
static void report(struct db *db, enum diag_code code, const char *what, const char *why)
{
	const char *help = help_of(code);

	diag_report(&db->cx->diags, code, NOWHERE, "cannot %s %s: %s", what, db->path, why);
	if (help)
		diag_help(&db->cx->diags, "%s", help);
}

/*
 * With the operating system's own words where a file or a disk is the cause: "disk I/O error" alone
 * does not say that the disk is full.
 */
bool db_failed(struct db *db, const char *what)
{
	int status = sqlite3_extended_errcode(db->sqlite);
	int os_error = sqlite3_system_errno(db->sqlite);
	enum diag_code code = code_of(status);
	const char *why = sqlite3_errmsg(db->sqlite);

	if ((code == DIAG_E0801 || code == DIAG_E0807) && os_error != 0)
		why = arena_printf(db->cx->arena, "%s (%s)", why, strerror(os_error));
	report(db, code, what, why);
	return false;
}

/* ---- write transactions ---- */

/* While a database is open, a file size limit gives an error and not a signal. */
static void block_file_size_signal(struct db *db)
{
	sigset_t signals, before;

	sigemptyset(&signals);
	sigaddset(&signals, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &signals, &before);
	db->signal_was_blocked = sigismember(&before, SIGXFSZ) == 1;
}

/* Takes a signal that came meanwhile, then lets later ones through again. */
static void restore_file_size_signal(const struct db *db)
{
	static const struct timespec at_once = { 0, 0 };
	sigset_t signals;

	if (db->signal_was_blocked)
		return;
	sigemptyset(&signals);
	sigaddset(&signals, SIGXFSZ);
	while (sigtimedwait(&signals, NULL, &at_once) > 0)
		continue;
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

/*
 * The busy handler waits for locks; what it does not wait for (a snapshot that moved on) is tried
 * again a few times, after 2, 4, ... ms, half a second in all.
 */
static int exec_retried(struct db *db, const char *sql)
{
	enum { MAX_TRIES = 8 };
	int status = SQLITE_ERROR;

	for (int i = 0; i < MAX_TRIES; i++) {
		status = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
		if (status == SQLITE_OK || (status & 0xff) != SQLITE_BUSY ||
		    sqlite3_extended_errcode(db->sqlite) == SQLITE_BUSY)
			break;
		usleep(2000U << i);
	}
	return status;
}

/*
 * BEGIN IMMEDIATE takes the write lock at once: a transaction that read first could find itself
 * behind another writer and would have to start anew (sqlite.org/lang_transaction.html).
 */
bool db_write_begin(struct db *db, const char *what, struct db_write *write)
{
	assert(db->mode == DB_WRITE);
	*write = (struct db_write){ .db = db, .what = what };
	if (exec_retried(db, "BEGIN IMMEDIATE") == SQLITE_OK)
		return true;
	return db_failed(db, what);
}

/*
 * Commits what went well, else rolls back; where SQLite has rolled back by itself already (a full
 * disk) there is nothing left to do.
 */
bool db_write_end(struct db_write *write, bool ok)
{
	struct db *db = write->db;

	assert(db->sqlite);
	if (ok && exec_retried(db, "COMMIT") != SQLITE_OK)
		ok = db_failed(db, write->what);
	if (!ok && sqlite3_get_autocommit(db->sqlite) == 0)
		sqlite3_exec(db->sqlite, "ROLLBACK", NULL, NULL, NULL);
	return ok;
}

/* ---- statements ---- */

sqlite3_stmt *db_prepare(struct db *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db->sqlite, sql, -1, &stmt, NULL) != SQLITE_OK)
		db_failed(db, "read");
	return stmt;
}

/*
 * `kinds` names the values: i an int64_t, n the same with -1 for NULL, t a text (NULL is NULL), d a
 * double. The statement is ready for the next row afterwards, also after an error.
 */
bool db_put(struct db *db, sqlite3_stmt *stmt, const char *kinds, ...)
{
	va_list values;
	bool ok;

	assert(sqlite3_bind_parameter_count(stmt) == (int)strlen(kinds));
	va_start(values, kinds);
	for (int i = 1; kinds[i - 1]; i++) {
		int64_t number = 0;
		const char *text = NULL;

		if (kinds[i - 1] == 'i' || kinds[i - 1] == 'n')
			number = va_arg(values, int64_t);
		else if (kinds[i - 1] == 't')
			text = va_arg(values, const char *);
		if (kinds[i - 1] == 'd')
			sqlite3_bind_double(stmt, i, va_arg(values, double));
		else if (kinds[i - 1] == 't')
			sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC);
		else if (kinds[i - 1] == 'n' && number == -1)
			sqlite3_bind_null(stmt, i);
		else
			sqlite3_bind_int64(stmt, i, number);
	}
	va_end(values);
	ok = sqlite3_step(stmt) == SQLITE_DONE || db_failed(db, "write to");
	sqlite3_reset(stmt);
	return ok;
}

/* False at the end and after an error; `*failed` tells them apart. */
bool db_next(struct db *db, sqlite3_stmt *stmt, bool *failed)
{
	int status = sqlite3_step(stmt);

	if (status == SQLITE_ROW)
		return true;
	if (status != SQLITE_DONE) {
		db_failed(db, "read");
		*failed = true;
	}
	return false;
}

/* SQLite's own text ends with the next step: it is copied. NULL for NULL. */
const char *db_text_at(struct db *db, sqlite3_stmt *stmt, int column)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	return text ? arena_strndup(db->cx->arena, text, (size_t)sqlite3_column_bytes(stmt, column))
	            : NULL;
}

const char *db_word_at(struct db *db, sqlite3_stmt *stmt, int column)
{
	const char *text = db_text_at(db, stmt, column);

	return text ? text : "";
}

/* -1 for NULL, as the records have it. */
int64_t db_int_at(sqlite3_stmt *stmt, int column)
{
	return sqlite3_column_type(stmt, column) == SQLITE_NULL ? -1
	                                                        : sqlite3_column_int64(stmt, column);
}

/* One number of a query that gives one row; false with SQLite's error set. */
static bool query_number(struct db *db, const char *sql, int64_t *value)
{
	sqlite3_stmt *stmt = NULL;
	bool ok = sqlite3_prepare_v2(db->sqlite, sql, -1, &stmt, NULL) == SQLITE_OK &&
	          sqlite3_step(stmt) == SQLITE_ROW;

	if (ok)
		*value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return ok;
}

/* ---- what kind of file is it? ---- */

/* Whose file is it, by its header and tables? */
enum db_state { STATE_OURS, STATE_EMPTY, STATE_OTHER, STATE_NEWER, STATE_FAILED };

/*
 * Reads the header and counts tables, without writing, all of one moment: between two transactions
 * another process could make the schema, and half of it would look like somebody else's file. An
 * empty file counts as an empty database; a table in it, or a foreign number, makes it somebody
 * else's.
 */
static enum db_state read_state(struct db *db)
{
	int64_t application, version, n_tables;
	bool ok;

	if (sqlite3_exec(db->sqlite, "SAVEPOINT look", NULL, NULL, NULL) != SQLITE_OK)
		return STATE_FAILED;
	ok = query_number(db, "PRAGMA application_id", &application) &&
	     query_number(db, "PRAGMA user_version", &version) &&
	     query_number(db, "SELECT count(*) FROM sqlite_master", &n_tables);
	if (ok)
		ok = sqlite3_exec(db->sqlite, "RELEASE look", NULL, NULL, NULL) == SQLITE_OK;
	if (!ok)
		return STATE_FAILED;
	if (application == 0 && version == 0 && n_tables == 0)
		return STATE_EMPTY;
	if (application != DB_APPLICATION_ID)
		return STATE_OTHER;
	return version > DB_SCHEMA_VERSION ? STATE_NEWER : STATE_OURS;
}

/* True for a database of ours; else the diagnostic. */
static bool refuse_state(struct db *db, enum db_state state)
{
	struct diag_list *diags = &db->cx->diags;

	switch (state) {
	case STATE_OURS:
		return true;
	case STATE_EMPTY:
		diag_report(diags, DIAG_E0920, NOWHERE, "%s holds no runs", db->path);
		return false;
	case STATE_OTHER:
		diag_report(diags, DIAG_E0803, NOWHERE, "%s is an SQLite database of some other program",
		            db->path);
		diag_help(diags, "--db PATH names another file");
		return false;
	case STATE_NEWER:
		diag_report(diags, DIAG_E0804, NOWHERE,
		            "%s was written by a newer tilelayout; this one reads schema version %d",
		            db->path, DB_SCHEMA_VERSION);
		diag_help(diags, "use the newer tilelayout, or another file: --db PATH");
		return false;
	case STATE_FAILED:
		return db_failed(db, "open");
	}
	BUG("database state %d", (int)state);
}

/* Takes the lock and looks again, since another process may have made the schema meanwhile. */
static bool create_schema(struct db *db)
{
	struct db_write write;
	enum db_state state;
	bool ok = true;

	if (!db_write_begin(db, "create", &write))
		return false;
	state = read_state(db);
	if (state == STATE_EMPTY) {
		const char *header =
			arena_printf(db->cx->arena, "PRAGMA application_id = %d; PRAGMA user_version = %d",
		                 DB_APPLICATION_ID, DB_SCHEMA_VERSION);

		if (sqlite3_exec(db->sqlite, schema_sql, NULL, NULL, NULL) != SQLITE_OK ||
		    sqlite3_exec(db->sqlite, header, NULL, NULL, NULL) != SQLITE_OK)
			ok = db_failed(db, "create");
	} else {
		ok = refuse_state(db, state);
	}
	return db_write_end(&write, ok);
}

/* ---- journals ---- */

bool db_wal_is_safe(int64_t file_system_type)
{
	/* statfs(2): ext2/3/4, xfs, btrfs, tmpfs, f2fs, zfs, overlayfs, bcachefs, ramfs, reiserfs, jfs
	 */
	static const int64_t local[] = { 0xef53,     0x58465342, 0x9123683e, 0x01021994,
		                             0xf2f52010, 0x2fc12fc1, 0x794c7630, 0xca451a4e,
		                             0x858458f6, 0x52654973, 0x3153464a };

	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		if (local[i] == (file_system_type & 0xffffffff))
			return true;
	return false;
}

/* Picks the journal. Never an error: the database works with either, only slower and with readers
 * waiting. */
static void choose_journal(struct db *db)
{
	struct statfs info;
	bool local = statfs(db->path, &info) == 0 && db_wal_is_safe((int64_t)info.f_type);

	sqlite3_exec(db->sqlite, local ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE",
	             NULL, NULL, NULL);
	sqlite3_exec(db->sqlite, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
}

/* ---- open and close ---- */

/* The signal mask last: closing may write the log back. */
void db_close(struct db *db)
{
	if (!db)
		return;
	sqlite3_close(db->sqlite);
	db->sqlite = NULL;
	restore_file_size_signal(db);
}

/* Opens and sets what every connection needs: the busy timeout first, so that the rest waits for
 * locks. */
static bool connect_file(struct db *db, const char *name, int flags)
{
	if (sqlite3_open_v2(name, &db->sqlite, flags, NULL) != SQLITE_OK)
		return false;
	sqlite3_extended_result_codes(db->sqlite, 1);
	sqlite3_busy_timeout(db->sqlite, db->timeout_ms);
	return sqlite3_exec(db->sqlite, "PRAGMA foreign_keys = ON", NULL, NULL, NULL) == SQLITE_OK;
}

/* "file:PATH?immutable=1" with PATH's special characters escaped. */
static const char *immutable_uri(struct db *db)
{
	struct buf uri = { 0 };

	buf_text(&uri, "file:");
	for (const char *at = db->path; *at; at++)
		if (strchr("%?#", *at))
			buf_printf(&uri, "%%%02x", (unsigned)(unsigned char)*at);
		else
			buf_char(&uri, *at);
	buf_text(&uri, "?immutable=1");
	return buf_keep(&uri, db->cx->arena);
}

/*
 * A reader of a write-ahead-logging database wants a -shm file beside it. In a folder that may not
 * be written, and when no log is left to be read, the file is taken as it is (sqlite.org/wal.html,
 * read-only databases). Always true: `*state` tells the rest.
 */
static bool connect_reader(struct db *db, enum db_state *state)
{
	const char *log = arena_printf(db->cx->arena, "%s-wal", db->path);
	struct stat info;

	*state = connect_file(db, db->path, SQLITE_OPEN_READONLY) ? read_state(db) : STATE_FAILED;
	if (*state != STATE_FAILED || code_of(sqlite3_errcode(db->sqlite)) != DIAG_E0801 ||
	    (stat(log, &info) == 0 && info.st_size > 0))
		return true;
	sqlite3_close(db->sqlite);
	*state = connect_file(db, immutable_uri(db), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
	             ? read_state(db)
	             : STATE_FAILED;
	return true;
}

/* An existing file, never changed. */
static bool open_reader(struct db *db)
{
	enum db_state state;

	if (access(db->path, F_OK) != 0) {
		diag_report(&db->cx->diags, DIAG_E0910, NOWHERE, "no database %s: %s", db->path,
		            strerror(errno));
		diag_help(&db->cx->diags, "`tilelayout analyze FILE --db %s` makes it", db->path);
		return false;
	}
	return connect_reader(db, &state) && refuse_state(db, state);
}

/* An existing or new file; the schema is made when there is none. */
static bool open_writer(struct db *db)
{
	enum db_state state;

	if (!connect_file(db, db->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE))
		return db_failed(db, "open");
	if (sqlite3_db_readonly(db->sqlite, "main") == 1) {
		report(db, DIAG_E0801, "write", "the file is read-only");
		return false;
	}
	state = read_state(db);
	if (state == STATE_EMPTY || state == STATE_OURS)
		choose_journal(db);
	if (state != STATE_EMPTY)
		return refuse_state(db, state);
	return create_schema(db);
}

/*
 * NULL with a diagnostic: E0801 a file that cannot be opened, E0803 not ours, E0804 newer, E0910
 * none to read, E0920 without runs.
 */
struct db *db_open(struct cx *cx, const char *path, enum db_mode mode, int timeout_ms)
{
	struct db *db = arena_new(cx->arena, struct db);
	struct stat info;
	bool ok;

	assert(path);
	*db = (struct db){ .cx = cx,
		               .path = path,
		               .mode = mode,
		               .timeout_ms = timeout_ms > 0 ? timeout_ms : DB_TIMEOUT_MS };
	if (!*path) {
		report(db, DIAG_E0801, "open", "the path is empty");
		return NULL;
	}
	if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
		report(db, DIAG_E0801, "open",
		       S_ISDIR(info.st_mode) ? "it is a folder" : "it is no regular file");
		return NULL;
	}
	block_file_size_signal(db);
	ok = mode == DB_READ ? open_reader(db) : open_writer(db);
	if (ok)
		return db;
	db_close(db);
	return NULL;
}

#else

bool db_wal_is_safe(int64_t file_system_type)
{
	return file_system_type < 0;
}

#endif
