-- name: attach_version
SELECT max(number) FROM other.migration

-- name: builds
INSERT INTO build
SELECT
    (SELECT coalesce(max(id), 0) FROM main.build) + row_number() OVER (ORDER BY theirs.started_at, theirs.id),
    theirs.* EXCLUDE (id)
FROM other.build AS theirs
WHERE theirs.uid NOT IN (SELECT uid FROM main.build)

-- name: source_runs
INSERT OR IGNORE INTO source_run
SELECT ours.id, theirs.* EXCLUDE (build)
FROM other.source_run AS theirs
JOIN other.build AS made ON made.id = theirs.build
JOIN main.build AS ours ON ours.uid = made.uid

-- Theirs wins where we have nothing, or something owed, or an older judgement under another ladder.
-- name: incoming
SELECT theirs.lead, (ours.lead IS NOT NULL) AS replaces
FROM other.outcome AS theirs
LEFT JOIN main.outcome AS ours USING (lead)
WHERE ours.lead IS NULL
    OR (ours.status = 'owed' AND theirs.status::VARCHAR <> 'owed')
    OR (
        theirs.status::VARCHAR <> 'owed' AND theirs.ladder <> ours.ladder AND theirs.recorded_at > ours.recorded_at
    )
ORDER BY theirs.lead

-- name: outcomes
INSERT INTO outcome
SELECT theirs.* REPLACE (ours.id AS build, theirs.status::VARCHAR::outcome_status AS status)
FROM other.outcome AS theirs
JOIN other.build AS made ON made.id = theirs.build
JOIN main.build AS ours ON ours.uid = made.uid
WHERE theirs.lead IN (SELECT unnest($keys))

-- name: verdicts
INSERT INTO verdict
SELECT theirs.* REPLACE (theirs.status::VARCHAR::verdict_status AS status)
FROM other.verdict AS theirs WHERE theirs.lead IN (SELECT unnest($keys))

-- name: rosters
INSERT OR IGNORE INTO roster
SELECT theirs.* FROM other.roster AS theirs
WHERE theirs.digest IN (SELECT roster FROM other.run WHERE lead IN (SELECT unnest($keys)))

-- name: runs
INSERT INTO run
SELECT theirs.* REPLACE (theirs.statuses::VARCHAR[]::run_status[] AS statuses)
FROM other.run AS theirs WHERE theirs.lead IN (SELECT unnest($keys))

-- Theirs wins where we have nothing, or only what the environment kept from an end.
-- name: attempts
INSERT OR REPLACE INTO attempt
SELECT theirs.*
FROM other.attempt AS theirs
LEFT JOIN main.attempt AS ours ON ours.key = theirs.key
WHERE theirs.lead IN (SELECT lead FROM main.outcome)
    AND (ours.key IS NULL OR (ours.status <> 'finished' AND theirs.status = 'finished'))

-- name: attempted_leads
SELECT DISTINCT lead FROM main.attempt ORDER BY lead

-- name: blobs
INSERT OR IGNORE INTO blob SELECT theirs.* FROM other.blob AS theirs

-- name: count
SELECT count(*) FROM other.outcome
