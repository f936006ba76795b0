-- The episode database of a workspace. `initial` is attached before this runs.
CREATE TABLE files (path TEXT PRIMARY KEY, role TEXT NOT NULL, status TEXT NOT NULL, added INTEGER NOT NULL, removed INTEGER NOT NULL) STRICT;
CREATE TABLE reference_files (path TEXT PRIMARY KEY, role TEXT NOT NULL, status TEXT NOT NULL, added INTEGER NOT NULL, removed INTEGER NOT NULL) STRICT;
CREATE TABLE tests (id TEXT NOT NULL, list TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL, PRIMARY KEY (list, id)) STRICT;
-- Fail-to-pass tests run again, some so changed that a right solution fails them; `after` is 'not run' where others failed.
CREATE TABLE controls (run INTEGER NOT NULL, id TEXT NOT NULL, expected TEXT NOT NULL, after TEXT NOT NULL, PRIMARY KEY (run, id)) STRICT;
-- What submitted source newly touches; class 'framework' is a test framework, 'unusual' is for people.
CREATE TABLE suspicions (path TEXT NOT NULL, line INTEGER NOT NULL, class TEXT NOT NULL, what TEXT NOT NULL) STRICT;
CREATE TABLE trace (turn INTEGER PRIMARY KEY, tool TEXT NOT NULL, arguments TEXT NOT NULL, ok INTEGER NOT NULL, result TEXT NOT NULL, error TEXT, cost REAL NOT NULL) STRICT;
-- Files that a call changed, whatever tool did it.
CREATE TABLE edits (turn INTEGER NOT NULL, path TEXT NOT NULL, role TEXT NOT NULL) STRICT;
CREATE TABLE answer (key TEXT PRIMARY KEY, value TEXT) STRICT;
CREATE TABLE initial.files (path TEXT PRIMARY KEY, role TEXT NOT NULL, digest TEXT NOT NULL) STRICT;
