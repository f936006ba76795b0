-- name: schema_version
SELECT max(number) FROM migration

-- name: settled
SELECT lead, status FROM outcome WHERE lead IN (SELECT unnest($keys)) AND ladder = $ladder AND status <> 'owed'

-- name: tasks
SELECT outcome.admitted, outcome.candidate FROM outcome WHERE outcome.task IN (SELECT unnest($ids)) ORDER BY outcome.task

-- name: task
SELECT admitted, candidate FROM outcome WHERE task = $name

-- name: tasks_of
SELECT admitted, candidate FROM outcome
WHERE task IS NOT NULL AND lead IN (SELECT unnest($keys)) ORDER BY task

-- name: funnel_of
SELECT source, status::VARCHAR, reason, count(*) FROM outcome WHERE lead IN (SELECT unnest($keys))
GROUP BY source, status, reason ORDER BY source, status, count(*) DESC, reason

-- name: task_ids
SELECT task FROM outcome WHERE task IS NOT NULL ORDER BY task

-- name: keys_of
SELECT lead FROM outcome
WHERE task = $name OR lead = $name
    OR (candidate IS NOT NULL AND concat_ws('-', name, lower(left(ref, 8)), left(lead, 6)) = $name)
ORDER BY lead

-- name: keys_like
SELECT lead FROM outcome
WHERE starts_with(task, $name) OR (len($name) >= 6 AND (starts_with(lead, $name) OR starts_with(ref, $name)))
ORDER BY lead

-- name: keys
SELECT lead FROM outcome ORDER BY lead

-- name: admitted_keys
SELECT lead FROM outcome WHERE status = 'admitted' ORDER BY lead

-- name: outcomes
SELECT lead, ladder, trouble, lead_document, candidate, dropped, admitted, wall_s, cpu_s, disk_bytes, cached
FROM outcome WHERE lead IN (SELECT unnest($keys)) ORDER BY lead

-- name: verdicts
SELECT
    lead, position, validator, version, status, findings, evidence, tests, controls, strength, panel,
    wall_s, cpu_s, disk_bytes, cached
FROM verdict WHERE lead IN (SELECT unnest($keys)) ORDER BY lead, position

-- name: runs
SELECT
    lead, verdict, position, state, repeat, complete, exit_code, trouble, timed_out, output_tail,
    keys, statuses, details, wall_s, cpu_s, disk_bytes, cached
FROM run JOIN roster ON roster.digest = run.roster
WHERE lead IN (SELECT unnest($keys)) ORDER BY lead, verdict, position

-- name: blob
SELECT content FROM blob WHERE digest = $digest

-- name: blobs
SELECT digest, content FROM blob WHERE digest IN (SELECT unnest($digests))

-- name: known_blobs
SELECT digest FROM blob WHERE digest IN (SELECT unnest($digests))

-- name: all_blobs
SELECT digest FROM blob ORDER BY digest

-- name: candidates
SELECT candidate FROM outcome WHERE candidate IS NOT NULL

-- name: source_of
SELECT document FROM source_run WHERE uri = $uri ORDER BY build DESC LIMIT 1

-- name: sources
SELECT DISTINCT uri, revision, planned FROM source_run ORDER BY ALL

-- name: stats_totals
SELECT
    (SELECT count(*) FROM outcome), (SELECT count(*) FROM build), (SELECT coalesce(sum(size), 0)::BIGINT FROM blob),
    (SELECT count(*) FROM blob), coalesce(sum(wall_s), 0), coalesce(sum(cpu_s), 0), coalesce(sum(disk_bytes), 0)::BIGINT
FROM outcome

-- name: stats_strength
SELECT
    (SELECT count(*) FROM strength WHERE attacks IS NOT NULL OR mutants IS NOT NULL OR rewrites IS NOT NULL) AS tasks,
    count(DISTINCT lead) FILTER ((strength ->> '$.attacks') IS NOT NULL) AS attacked,
    coalesce(sum((strength ->> '$.attacks')::INTEGER), 0)::BIGINT AS attacks,
    coalesce(sum((strength ->> '$.attacks_worked')::INTEGER), 0)::BIGINT AS attacks_worked,
    (SELECT median(kill_rate) FROM strength) AS median_kill_rate,
    (SELECT coalesce(sum(mutants - killed), 0)::BIGINT FROM strength) AS survivors,
    coalesce(sum((strength ->> '$.rewrites')::INTEGER), 0)::BIGINT AS rewrites,
    coalesce(sum((strength ->> '$.rewrites_rejected')::INTEGER), 0)::BIGINT AS rewrites_rejected
FROM verdict

-- name: stats_funnel
SELECT source, status::VARCHAR, reason, leads FROM funnel ORDER BY source, status, leads DESC, reason

-- name: stats_flicker
SELECT source, count(DISTINCT test)::BIGINT FROM flicker GROUP BY source ORDER BY source

-- name: stats_cost
SELECT source, tasks, wall_s, cpu_s, disk_bytes FROM cost_per_task ORDER BY source

-- name: stats_near_duplicates
SELECT count(DISTINCT other)::BIGINT FROM near_duplicate

-- name: attempt_states
SELECT key, status FROM attempt WHERE key IN (SELECT unnest($keys))

-- name: attempts
SELECT rest, grade, trace FROM attempt WHERE key IN (SELECT unnest($keys))
ORDER BY task, policy, model, settings, hinted, k

-- name: attempt_figures
SELECT key, task, policy, model, hinted, k, status, failure, success, outcome, turns, calls,
    prompt_tokens + completion_tokens AS tokens, cost_usd, wall_s, model_s, trouble
FROM attempt WHERE key IN (SELECT unnest($keys)) ORDER BY task, hinted, k

-- name: shared
WITH one AS (SELECT unnest($one) AS id), two AS (SELECT unnest($two) AS id)
SELECT 'task' AS trait, one.id AS value, one.id AS task, two.id AS other FROM one JOIN two USING (id)
UNION ALL
SELECT 'near-duplicate', why, task, other FROM near_duplicate
WHERE (task IN (FROM one) AND other IN (FROM two)) OR (task IN (FROM two) AND other IN (FROM one))
UNION ALL
SELECT a.trait, a.value, min(a.id), min(b.id)
FROM trait AS a JOIN trait AS b ON a.trait = b.trait AND a.value = b.value
WHERE a.id IN (FROM one) AND b.id IN (FROM two)
GROUP BY a.trait, a.value
ORDER BY ALL

-- name: solve_rates
SELECT policy, model, hinted, n, c AS solved, round(pass_at_1, 2) AS pass_at_1, round(mean_outcome, 2) AS mean_outcome,
    round(mean_calls, 1) AS mean_calls, environment_errors
FROM solve_rate WHERE key = $key ORDER BY policy, model, hinted, settings
