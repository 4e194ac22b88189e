/*
 * db: the SQLite store of runs (schema.sql).
 *
 * Writers take BEGIN IMMEDIATE behind a busy timeout, so several processes may store at once; a run
 * is written in one transaction or not at all. Readers never create, migrate or lock. Write-ahead
 * logging is used on file systems that are known to be local, a rollback journal elsewhere.
 * Failures are E0801..E0808 (the environment) and E0920..E0923 (what was asked for).
 */
#ifndef TL_DB_DB_H
#define TL_DB_DB_H

#include "db/record.h"

enum {
	DB_SCHEMA_VERSION = 1,
	DB_APPLICATION_ID = 0x544c5954, /* "TLYT", in the file's header */
	DB_TIMEOUT_MS = 15000,          /* how long a lock of another process is waited for */
};

struct db;

enum db_mode {
	DB_READ,  /* the file must exist and be ours */
	DB_WRITE, /* made when it does not exist; its schema too */
};

/* Opens; NULL with a diagnostic. `timeout_ms` 0 means DB_TIMEOUT_MS. */
struct db *db_open(struct cx *cx, const char *path, enum db_mode mode, int timeout_ms);
void db_close(struct db *db); /* NULL is fine */

/* Stores a run; sets run->id and run->created_at. False with a diagnostic, and nothing of the run
 * is in the file. */
bool db_store(struct db *db, struct run_record *run);
/* Opens, stores and closes. */
bool db_save(struct cx *cx, const char *path, struct run_record *run);

/*
 * The run that a text names: its number, a tag, `latest`, or `latest:KERNEL` (a kernel's or a
 * factory's name). False with E0920, which lists what there is.
 */
bool db_find(struct db *db, const char *name, int64_t *id);
/* The whole run, in the arena of the context; NULL with a diagnostic. */
struct run_record *db_load(struct db *db, int64_t id);

struct db_ids {
	vec_of(int64_t) items;
};
/* All runs, oldest first. */
bool db_list(struct db *db, struct db_ids *ids);
/* The newest run of each (factory, kernel, target, params), by kernel name. */
bool db_list_latest(struct db *db, struct db_ids *ids);

/* Points a tag at a run, which it leaves for another one when it was taken; E0922 when the name
 * cannot be one. */
bool db_tag(struct db *db, int64_t id, const char *name);
/* Copies the database into one new file at `path`; E0923 when it exists. */
bool db_export(struct db *db, const char *path);

/* Is write-ahead logging safe on a file system with this statfs type? Network file systems break
 * its shared memory. */
bool db_wal_is_safe(int64_t file_system_type);

#endif
