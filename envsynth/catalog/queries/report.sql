-- name: totals
SELECT
    (SELECT count(*) FROM build)::BIGINT AS builds,
    count(*)::BIGINT AS leads,
    count(*) FILTER (status = 'admitted')::BIGINT AS tasks,
    count(*) FILTER (admitted ->> '$.tier' = 'calibrated')::BIGINT AS calibrated,
    count(DISTINCT source)::BIGINT AS sources,
    (SELECT count(*) FROM attempt)::BIGINT AS attempts,
    (SELECT count(*) FROM attempt WHERE status <> 'finished')::BIGINT AS environment_errors
FROM outcome

-- name: funnel
SELECT generator, status::VARCHAR AS status, reason, count(*)::BIGINT AS leads
FROM outcome GROUP BY generator, outcome.status, reason ORDER BY generator, outcome.status, leads DESC, reason

-- name: families
SELECT generator, name AS family, coalesce(candidate ->> '$.metadata.level', strategy) AS level, count(*)::BIGINT AS tasks
FROM outcome WHERE status = 'admitted' GROUP BY ALL ORDER BY ALL

-- name: strength
WITH found AS MATERIALIZED (
    SELECT generator, from_json(admitted -> '$.strength',
        '{"attacks": "INTEGER", "attacks_worked": "INTEGER", "controls": "INTEGER", "controlled": "DOUBLE",
          "mutants": "INTEGER", "killed": "INTEGER", "rewrites": "INTEGER", "rewrites_rejected": "INTEGER"}') AS s
    FROM outcome WHERE status = 'admitted'
)
SELECT
    generator,
    count(*)::BIGINT AS tasks,
    count(s.attacks)::BIGINT AS attacked,
    coalesce(sum(s.attacks), 0)::BIGINT AS attacks,
    coalesce(sum(s.attacks_worked), 0)::BIGINT AS attacks_worked,
    coalesce(sum(s.mutants), 0)::BIGINT AS mutants,
    coalesce(sum(s.killed), 0)::BIGINT AS killed,
    min(s.killed / nullif(s.mutants, 0)) AS least_kill_rate,
    median(s.killed / nullif(s.mutants, 0)) AS median_kill_rate,
    coalesce(sum(s.rewrites), 0)::BIGINT AS rewrites,
    coalesce(sum(s.rewrites_rejected), 0)::BIGINT AS rewrites_rejected,
    coalesce(sum(s.controls), 0)::BIGINT AS controls,
    median(s.controlled) AS median_controlled
FROM found GROUP BY generator ORDER BY generator

-- name: distributions
-- Attacks in steps of 8, shares in steps of a tenth: the last step holds 1 itself.
WITH found AS MATERIALIZED (
    SELECT generator, from_json(admitted -> '$.strength',
        '{"attacks": "INTEGER", "controlled": "DOUBLE", "mutants": "INTEGER", "killed": "INTEGER",
          "rewrites": "INTEGER", "rewrites_rejected": "INTEGER"}') AS s
    FROM outcome WHERE status = 'admitted'
), measured AS (
    SELECT generator, unnest([
        {'measure': 'attacks', 'value': s.attacks::DOUBLE, 'step': 8.0},
        {'measure': 'kill_rate', 'value': s.killed / nullif(s.mutants, 0), 'step': 0.1},
        {'measure': 'false_reject_rate', 'value': s.rewrites_rejected / nullif(s.rewrites, 0), 'step': 0.1},
        {'measure': 'controlled', 'value': s.controlled, 'step': 0.1}
    ], recursive := true)
    FROM found
), placed AS (
    SELECT generator, measure, step, CASE
        WHEN measure = 'attacks' THEN floor(value / step)
        ELSE least(floor(value / step + 1e-9), 9)
    END AS place
    FROM measured WHERE value IS NOT NULL
)
SELECT measure, generator, round(place * step, 6) AS low, round((place + 1) * step, 6) AS high, count(*)::BIGINT AS tasks
FROM placed GROUP BY ALL ORDER BY ALL

-- name: rates
SELECT policy, model, hinted, task, sum(n)::BIGINT AS n, sum(c)::BIGINT AS c
FROM solve_rate WHERE n > 0 GROUP BY policy, model, hinted, task ORDER BY policy, model, hinted, task

-- name: references
SELECT
    family, presentation, policy, count(*)::BIGINT AS tasks,
    round(min(score), 6) AS least, round(median(score), 6) AS median, round(max(score), 6) AS most
FROM (
    SELECT family, presentation, policy, score FROM reference_score
    UNION ALL
    SELECT family, presentation, 'u_default', 0.0 FROM mechanism
)
WHERE policy IN ('u_oracle', 'u_bayes', 'u_default', 'u_idle') AND score IS NOT NULL
GROUP BY family, presentation, policy ORDER BY ALL

-- name: flicker
SELECT source, test, state, count(DISTINCT key)::BIGINT AS leads, sum(runs)::BIGINT AS runs,
    list_sort(list_distinct(flatten(list(statuses)))) AS statuses
FROM flicker GROUP BY source, test, state ORDER BY source, test, state

-- name: instruments
SELECT
    instrument, model, used, unused, count(*)::BIGINT AS tasks, sum(tp)::BIGINT AS tp, sum(fp)::BIGINT AS fp,
    sum(tn)::BIGINT AS tn, sum(fn)::BIGINT AS fn, sum(silent)::BIGINT AS silent
FROM instrument GROUP BY instrument, model, used, unused ORDER BY instrument, model, used DESC, unused

-- name: near_duplicates
SELECT task, other, similarity, why FROM near_duplicate ORDER BY similarity DESC, task, other

-- name: pages
-- Those asked for first, then those that somebody played, then a few of every family and level.
WITH one AS (
    SELECT
        task, name, coalesce(candidate ->> '$.metadata.level', strategy) AS level,
        task IN (SELECT unnest($first)) AS named, lead IN (SELECT lead FROM attempt) AS played
    FROM outcome WHERE status = 'admitted'
)
SELECT task FROM one
ORDER BY
    named DESC, played DESC, row_number() OVER (PARTITION BY named, played, name, level ORDER BY task), name, level, task
LIMIT $most

-- name: attempts_of
SELECT key FROM attempt WHERE task = $task AND status = 'finished'
ORDER BY policy, model, settings, hinted, k
