/* db_internal: what db.c (opening, transactions, errors) gives to db_rows.c (statements). */
#ifndef TL_DB_DB_INTERNAL_H
#define TL_DB_DB_INTERNAL_H

#include "db/db.h"

#include <sqlite3.h>

struct db {
	struct cx *cx;
	const char *path;
	sqlite3 *sqlite;
	enum db_mode mode;
	int timeout_ms;
	bool signal_was_blocked; /* SIGXFSZ, before db_open */
};

/* Reports SQLite's last error of `what` ("store the run") under the code that fits; gives false. */
bool db_failed(struct db *db, const char *what);

/*
 * A write transaction: begin waits for other writers; end commits when `ok`, else rolls back. Both
 * give false with a diagnostic when they fail, end also when `ok` was false.
 */
struct db_write {
	struct db *db;
	const char *what;
};
bool db_write_begin(struct db *db, const char *what, struct db_write *write);
bool db_write_end(struct db_write *write, bool ok);

/* A compiled statement; NULL with a diagnostic. sqlite3_finalize is due. */
sqlite3_stmt *db_prepare(struct db *db, const char *sql);
/*
 * Binds values by `kinds`, one letter each, and runs a statement that gives no rows: i int64_t, n
 * int64_t (-1 is NULL), t text (NULL is NULL), d double. False with a diagnostic.
 */
bool db_put(struct db *db, sqlite3_stmt *stmt, const char *kinds, ...);
/* Steps to the next row; false at the end, or on failure with a diagnostic and *failed set. */
bool db_next(struct db *db, sqlite3_stmt *stmt, bool *failed);
/*
 * Column values: texts copied into the context's arena (text_at gives NULL for NULL, word_at ""),
 * numbers with -1 for NULL. A file may have been made by anybody: no column is relied on.
 */
const char *db_text_at(struct db *db, sqlite3_stmt *stmt, int column);
const char *db_word_at(struct db *db, sqlite3_stmt *stmt, int column);
int64_t db_int_at(sqlite3_stmt *stmt, int column);

#endif
