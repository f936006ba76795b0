-- name: begin_build
INSERT INTO build
SELECT coalesce(max(id), 0) + 1, uuid(), $envsynth, $now, NULL, 'running', $configuration, 0, 0, 0 FROM build
RETURNING id

-- name: end_build
UPDATE build
SET ended_at = $now, status = $status, wall_s = $wall_s, cpu_s = $cpu_s, disk_bytes = $disk_bytes
WHERE id = $build

-- name: record_source
INSERT OR REPLACE INTO source_run VALUES ($build, $uri, $revision, $planned, $document)

-- name: standing
SELECT lead, ladder, status FROM outcome WHERE lead IN (SELECT unnest($keys))

-- name: insert_outcome
INSERT INTO outcome VALUES (
    $lead, $ladder, $build, $now, $status, $reason, $task, $source, $name, $generator, $generator_version, $strategy,
    $revision, $ref, $title, $trouble, $lead_document, $candidate, $dropped, $admitted,
    $wall_s, $cpu_s, $disk_bytes, $cached
)

-- name: insert_verdict
INSERT INTO verdict VALUES (
    $lead, $position, $validator, $version, $status, $reason, $findings, $evidence, $tests,
    $wall_s, $cpu_s, $disk_bytes, $cached, $controls, $strength, $panel
)

-- name: insert_run
INSERT INTO run VALUES (
    $lead, $verdict, $position, $state, $repeat, $complete, $exit_code, $trouble, $timed_out, $output_tail, $roster,
    $statuses, from_json($details, '[{"position": "INTEGER", "id": "VARCHAR", "message": "VARCHAR", "line": "INTEGER"}]'),
    $wall_s, $cpu_s, $disk_bytes, $cached
)

-- name: insert_roster
INSERT OR IGNORE INTO roster VALUES ($digest, $keys)

-- name: insert_blobs
INSERT OR IGNORE INTO blob SELECT unnest($digests), unnest($sizes), unnest($contents)

-- name: delete_runs
DELETE FROM run WHERE lead IN (SELECT unnest($keys))

-- name: delete_verdicts
DELETE FROM verdict WHERE lead IN (SELECT unnest($keys))

-- name: delete_outcomes
DELETE FROM outcome WHERE lead IN (SELECT unnest($keys))

-- name: delete_unused_rosters
DELETE FROM roster WHERE digest NOT IN (SELECT roster FROM run)

-- name: delete_blobs
DELETE FROM blob WHERE digest IN (SELECT unnest($digests))

-- One list a column: a statement a row would take longer than the attempts themselves.
-- name: insert_attempts
INSERT OR REPLACE INTO attempt
SELECT
    unnest($key), unnest($lead), unnest($task), unnest($played), unnest($policy), unnest($model), unnest($settings),
    unnest($hinted), unnest($k), unnest($status), unnest($trouble), unnest($ending::VARCHAR[]),
    unnest($failure::VARCHAR[]), unnest($success::BOOLEAN[]), unnest($reward::DOUBLE[]), unnest($outcome::DOUBLE[]),
    unnest($turns), unnest($calls), unnest($prompt_tokens), unnest($cached_tokens), unnest($completion_tokens),
    unnest($cost_usd::DOUBLE[]), unnest($wall_s::DOUBLE[]), unnest($model_s::DOUBLE[]), $now,
    unnest($grade::VARCHAR[])::JSON, unnest($trace)::JSON, unnest($rest)

-- name: delete_attempts
DELETE FROM attempt WHERE lead IN (SELECT unnest($keys))

-- name: delete_outdated_attempts
DELETE FROM attempt WHERE lead = $lead AND played <> $played
