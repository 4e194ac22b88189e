/* The store of a build without SQLite: every call says so. */
#include "db/db.h"

#if !HAVE_SQLITE

/* The one failure of this build. */
static bool no_sqlite(struct cx *cx)
{
	diag_report(&cx->diags, DIAG_E0802, (struct span){ 0 },
	            "this tilelayout was built without SQLite");
	diag_help(&cx->diags, "install libsqlite3-dev and build again, or use --no-db");
	return false;
}

struct db *db_open(struct cx *cx, const char *path, enum db_mode mode, int timeout_ms)
{
	(void)path, (void)mode, (void)timeout_ms;
	no_sqlite(cx);
	return NULL;
}

bool db_save(struct cx *cx, const char *path, struct run_record *run)
{
	(void)path, (void)run;
	return no_sqlite(cx);
}

/* db_open gives no database, so that nothing below can be called; this one takes its NULL. */
void db_close(struct db *db)
{
	(void)db;
}

bool db_store(struct db *db, struct run_record *run)
{
	BUG("store %p of run %p without SQLite", (void *)db, (void *)run);
}

bool db_find(struct db *db, const char *name, int64_t *id)
{
	BUG("store %p: find %s into %p without SQLite", (void *)db, name, (void *)id);
}

struct run_record *db_load(struct db *db, int64_t id)
{
	BUG("store %p: load %lld without SQLite", (void *)db, (long long)id);
}

bool db_list(struct db *db, struct db_ids *ids)
{
	BUG("store %p: list into %p without SQLite", (void *)db, (void *)ids);
}

bool db_list_latest(struct db *db, struct db_ids *ids)
{
	BUG("store %p: list into %p without SQLite", (void *)db, (void *)ids);
}

bool db_tag(struct db *db, int64_t id, const char *name)
{
	BUG("store %p: tag %lld as %s without SQLite", (void *)db, (long long)id, name);
}

bool db_export(struct db *db, const char *path)
{
	BUG("store %p: export to %s without SQLite", (void *)db, path);
}

#else

/* ISO C wants a declaration in every file. */
struct db_is_built_with_sqlite;

#endif
