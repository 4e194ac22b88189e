-- The store of runs, version 1 (PRAGMA user_version, set by the program in the same transaction).
-- A run is one kernel, analysed once with one set of parameters; all its rows are written in one transaction and never change.
-- Lines are 1-based lines of the kernel file; sizes are in bytes; NULL means "not known", never 0.

CREATE TABLE runs (
	id           INTEGER PRIMARY KEY AUTOINCREMENT,
	created_at   TEXT NOT NULL,             -- UTC, 2026-01-31T23:59:59Z
	tool_version TEXT NOT NULL,
	verb         TEXT NOT NULL,             -- analyze, profile, bench
	file         TEXT NOT NULL,             -- the path as it was given
	file_hash    TEXT NOT NULL,             -- of the kernel file's content, 16 hex digits
	kernel       TEXT NOT NULL,             -- the kernel function
	factory      TEXT NOT NULL,             -- the function around it, '' when there is none
	target       TEXT NOT NULL,             -- sm_80
	params       TEXT NOT NULL,             -- JSON object, keys sorted
	layouts      TEXT NOT NULL,             -- solved: tilelayout's own; tilelang: --parity tilelang
	device       TEXT,                      -- what was measured on; NULL when nothing was
	driver       TEXT,
	nvrtc        TEXT,
	cupti        TEXT
) STRICT;

CREATE INDEX runs_by_kernel ON runs (kernel, id);

CREATE TABLE tags (
	name TEXT PRIMARY KEY,
	run  INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX tags_by_run ON tags (run);

CREATE TABLE launches (
	run          INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	launch       INTEGER NOT NULL,          -- 0, 1, ... in the kernel's order
	threads      INTEGER NOT NULL,
	grid_x       INTEGER,                   -- NULL: depends on a symbol
	grid_y       INTEGER,
	grid_z       INTEGER,
	counted      TEXT NOT NULL CHECK (counted IN ('grid', 'block')),
	shared_bytes INTEGER NOT NULL,
	PRIMARY KEY (run, launch)
) STRICT, WITHOUT ROWID;

CREATE TABLE buffers (
	run          INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	launch       INTEGER NOT NULL,
	number       INTEGER NOT NULL,          -- 0, 1, ... in the run
	name         TEXT NOT NULL,
	scope        TEXT NOT NULL,             -- global, shared, fragment, local, var
	dtype        TEXT NOT NULL,
	shape        TEXT NOT NULL,             -- JSON array; a symbolic extent is a string
	line         INTEGER NOT NULL,
	bytes        INTEGER,                   -- one version, one block
	versions     INTEGER NOT NULL,
	offset_bytes INTEGER,                   -- in shared memory only
	layout       TEXT,
	PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- Predicted shared-memory traffic of one (launch, line, buffer, instruction, bytes_per_thread), summed as launches.counted says.
CREATE TABLE sites (
	run              INTEGER NOT NULL,
	site             INTEGER NOT NULL,      -- 0, 1, ... in program order
	launch           INTEGER NOT NULL,
	line             INTEGER NOT NULL,
	buffer           TEXT NOT NULL,
	instruction      TEXT NOT NULL,
	bytes_per_thread INTEGER NOT NULL,
	executions       INTEGER,               -- NULL: not counted
	wavefronts       INTEGER,               -- NULL: not modelled
	ideal            INTEGER,
	excess           INTEGER,
	ways             INTEGER NOT NULL,
	reason           TEXT,                  -- why there is excess
	PRIMARY KEY (run, site),
	FOREIGN KEY (run, launch) REFERENCES launches (run, launch) ON DELETE CASCADE,
	CHECK ((wavefronts IS NULL) = (excess IS NULL)),
	CHECK (excess IS NULL OR excess = wavefronts - ideal)
) STRICT, WITHOUT ROWID;

-- A value without a reason, or a reason for its absence; never neither.
CREATE TABLE measurements (
	run    INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	number INTEGER NOT NULL,                -- 0, 1, ... in the run
	launch INTEGER NOT NULL,
	site   INTEGER,                         -- NULL: of the whole launch
	metric TEXT NOT NULL,
	unit   TEXT NOT NULL,
	value  REAL,
	reason TEXT,
	PRIMARY KEY (run, number),
	FOREIGN KEY (run, launch) REFERENCES launches (run, launch) ON DELETE CASCADE,
	FOREIGN KEY (run, site) REFERENCES sites (run, site) ON DELETE CASCADE,
	CHECK ((value IS NULL) = (reason IS NOT NULL))
) STRICT, WITHOUT ROWID;
