-- The catalog's first schema. Migrations are never edited once released: a change is the next number.

CREATE TABLE migration (
    number INTEGER PRIMARY KEY,
    name VARCHAR NOT NULL,
    applied_at TIMESTAMP NOT NULL  -- UTC, as every moment here
);

CREATE TYPE outcome_status AS ENUM ('admitted', 'rejected', 'dropped', 'owed');
CREATE TYPE verdict_status AS ENUM ('PASS', 'FAIL', 'ERROR', 'TIMEOUT', 'SKIP');
CREATE TYPE run_status AS ENUM ('passed', 'failed', 'error', 'skipped', 'xfailed', 'xpassed', 'absent');

CREATE TABLE build (
    id INTEGER PRIMARY KEY,
    uid UUID NOT NULL UNIQUE,  -- the same build keeps it through merges
    envsynth VARCHAR NOT NULL,  -- version
    started_at TIMESTAMP NOT NULL,
    ended_at TIMESTAMP,
    status VARCHAR NOT NULL,  -- 'running' for ever when it was killed
    configuration JSON NOT NULL,
    wall_s DOUBLE NOT NULL,
    cpu_s DOUBLE NOT NULL,
    disk_bytes BIGINT NOT NULL
);

CREATE TABLE source_run (
    build INTEGER NOT NULL,
    uri VARCHAR NOT NULL,
    revision VARCHAR NOT NULL,  -- resolved
    planned INTEGER NOT NULL,  -- leads
    document JSON NOT NULL,  -- models.Source
    PRIMARY KEY (build, uri, revision)
);

-- Contents by sha256, zlib-compressed, each once; documents of trees are contents too.
CREATE TABLE blob (
    digest VARCHAR PRIMARY KEY,
    size BIGINT NOT NULL,  -- bytes, uncompressed
    content BLOB NOT NULL
);

-- One row a lead: the latest word on it.
CREATE TABLE outcome (
    lead VARCHAR PRIMARY KEY,  -- content key
    ladder VARCHAR NOT NULL,
    build INTEGER NOT NULL,
    recorded_at TIMESTAMP NOT NULL,
    status outcome_status NOT NULL,
    reason VARCHAR NOT NULL,  -- rule id; empty for admitted
    task VARCHAR,  -- id, when admitted
    source VARCHAR NOT NULL,  -- URI, as written
    name VARCHAR NOT NULL,
    generator VARCHAR NOT NULL,
    generator_version VARCHAR NOT NULL,
    strategy VARCHAR NOT NULL,
    revision VARCHAR NOT NULL,
    ref VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    trouble VARCHAR NOT NULL,
    lead_document JSON NOT NULL,  -- models.Lead
    candidate JSON,  -- models.Candidate
    dropped JSON,  -- models.Dropped
    admitted JSON,  -- models.Task without its candidate
    wall_s DOUBLE NOT NULL,
    cpu_s DOUBLE NOT NULL,
    disk_bytes BIGINT NOT NULL,
    cached BOOLEAN NOT NULL
);

CREATE TABLE verdict (
    lead VARCHAR NOT NULL,
    position INTEGER NOT NULL,  -- in the ladder, from 0
    validator VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    status verdict_status NOT NULL,
    reason VARCHAR NOT NULL,
    findings JSON NOT NULL,  -- models.Finding[]
    evidence JSON NOT NULL,
    tests JSON,  -- models.TestLists
    wall_s DOUBLE NOT NULL,
    cpu_s DOUBLE NOT NULL,
    disk_bytes BIGINT NOT NULL,
    cached BOOLEAN NOT NULL
);

-- The tests that a run reported, in its order; runs of one project mostly share one roster.
CREATE TABLE roster (
    digest VARCHAR PRIMARY KEY,
    keys VARCHAR[] NOT NULL
);

CREATE TABLE run (
    lead VARCHAR NOT NULL,
    verdict INTEGER NOT NULL,  -- position of its verdict
    position INTEGER NOT NULL,  -- in the verdict, from 0
    state VARCHAR NOT NULL,
    repeat INTEGER NOT NULL,
    complete BOOLEAN NOT NULL,
    exit_code INTEGER,
    trouble VARCHAR NOT NULL,
    timed_out BOOLEAN NOT NULL,
    output_tail VARCHAR NOT NULL,
    roster VARCHAR NOT NULL,
    statuses run_status[] NOT NULL,  -- one a key of the roster
    -- what only some tests have: an id that is not the key, a message, a line
    details STRUCT(position INTEGER, id VARCHAR, message VARCHAR, line INTEGER)[] NOT NULL,
    wall_s DOUBLE NOT NULL,
    cpu_s DOUBLE NOT NULL,
    disk_bytes BIGINT NOT NULL,
    cached BOOLEAN NOT NULL
);

-- ---------------------------------------------------------------------------------------------------------------
-- What people query. `envsynth catalog sql` describes them.
-- ---------------------------------------------------------------------------------------------------------------

CREATE VIEW lead AS
SELECT
    lead AS key, status, reason, source, name, generator, generator_version, strategy, revision, ref, title, task,
    trouble, coalesce(dropped ->> '$.detail', '') AS detail, ladder, build, recorded_at,
    wall_s, cpu_s, disk_bytes, cached
FROM outcome;

CREATE VIEW task AS
SELECT
    task AS id,
    source, name, generator, strategy, revision, ref, title,
    admitted ->> '$.tier' AS tier,
    candidate ->> '$.instruction' AS instruction,
    coalesce(json_array_length(admitted, '$.tests.fail_to_pass'), 0)::INTEGER AS fail_to_pass,
    coalesce(json_array_length(admitted, '$.tests.pass_to_pass'), 0)::INTEGER AS pass_to_pass,
    coalesce(json_array_length(admitted, '$.tests.flickering'), 0)::INTEGER AS flickering,
    json_array_length(candidate, '$.verifier.rubric')::INTEGER AS criteria,
    candidate ->> '$.environment.kind' AS kind,
    candidate ->> '$.environment.recipe.language' AS language,
    candidate ->> '$.environment.recipe.interpreter' AS interpreter,
    candidate ->> '$.provenance.base_commit' AS base_commit,
    candidate ->> '$.provenance.reference_commit' AS reference_commit,
    candidate ->> '$.provenance.authored_at' AS authored_at,
    candidate ->> '$.provenance.author' AS author,
    candidate ->> '$.provenance.licence_files' AS licence_files,
    (SELECT size FROM blob WHERE digest = outcome.candidate ->> '$.reference.patch') AS patch_bytes,
    lead AS key, ladder, build, recorded_at, wall_s, cpu_s, disk_bytes
FROM outcome
WHERE status = 'admitted';

CREATE VIEW test_run AS
SELECT
    run.lead AS key, outcome.source, outcome.task, verdict.validator, run.state, run.repeat, run.complete,
    run.exit_code, run.trouble, run.timed_out, len(run.statuses) AS tests,
    len(list_filter(run.statuses, lambda status: status = 'passed')) AS passed,
    run.output_tail, run.wall_s, run.cpu_s, run.disk_bytes, run.cached
FROM run
JOIN outcome USING (lead)
JOIN verdict ON verdict.lead = run.lead AND verdict.position = run.verdict;

CREATE VIEW test_status AS
WITH told AS (
    SELECT lead, verdict, position AS run, unnest(details, recursive := true) FROM run
), every AS (
    SELECT
        run.lead, run.verdict, run.position AS run, run.state, run.repeat, run.complete, run.trouble,
        unnest(range(len(run.statuses)))::INTEGER AS position, unnest(roster.keys) AS test, unnest(run.statuses) AS status
    FROM run JOIN roster ON roster.digest = run.roster
)
SELECT
    every.lead AS key, outcome.source, outcome.task, verdict.validator, every.state, every.repeat, every.complete,
    every.trouble, every.test, coalesce(told.id, every.test) AS id, every.status,
    coalesce(told.message, '') AS message, coalesce(told.line, 0) AS line
FROM every
JOIN outcome USING (lead)
JOIN verdict ON verdict.lead = every.lead AND verdict.position = every.verdict
LEFT JOIN told
    ON told.lead = every.lead AND told.verdict = every.verdict AND told.run = every.run AND told.position = every.position;

-- A test that flickers: identical runs of one state, different statuses. Runs that say nothing do not count.
CREATE VIEW flicker AS
SELECT source, key, task, state, test, list_sort(list(DISTINCT status::VARCHAR)) AS statuses, count(*) AS runs
FROM test_status
WHERE trouble = '' AND complete
GROUP BY source, key, task, state, test
HAVING count(DISTINCT status) > 1;

CREATE VIEW funnel AS
SELECT
    source, status, reason, count(*) AS leads,
    round(100.0 * count(*) / sum(count(*)) OVER (PARTITION BY source), 1) AS percent
FROM outcome
GROUP BY source, status, reason;

CREATE VIEW cost_per_task AS
SELECT
    source,
    count(*) AS leads,
    count(*) FILTER (status = 'admitted') AS tasks,
    sum(wall_s) AS wall_s, sum(cpu_s) AS cpu_s, sum(disk_bytes)::BIGINT AS disk_bytes,
    sum(wall_s) / nullif(tasks, 0) AS wall_s_per_task,
    sum(cpu_s) / nullif(tasks, 0) AS cpu_s_per_task,
    sum(disk_bytes) / nullif(tasks, 0) AS disk_bytes_per_task
FROM outcome
GROUP BY source;
