-- How strong the graders are: what validators measured of it, and the views that say so.

ALTER TABLE verdict ADD COLUMN controls JSON;  -- models.Control[]; null: none
ALTER TABLE verdict ADD COLUMN strength JSON;  -- models.Strength; null: not measured by this validator
ALTER TABLE verdict ADD COLUMN panel JSON;  -- models.Trajectory[]; null: none

-- One row a task. Null: not measured.
CREATE VIEW strength AS
WITH measured AS (
    SELECT
        task,
        (admitted ->> '$.strength.attacks')::INTEGER AS attacks,
        (admitted ->> '$.strength.attacks_worked')::INTEGER AS attacks_worked,
        (admitted ->> '$.strength.controls')::INTEGER AS controls,
        (admitted ->> '$.strength.controlled')::DOUBLE AS controlled,
        (admitted ->> '$.strength.mutants')::INTEGER AS mutants,
        (admitted ->> '$.strength.killed')::INTEGER AS killed,
        (admitted ->> '$.strength.equivalents')::INTEGER AS equivalents,
        (admitted ->> '$.strength.rewrites')::INTEGER AS rewrites,
        (admitted ->> '$.strength.rewrites_rejected')::INTEGER AS rewrites_rejected
    FROM outcome
    WHERE status = 'admitted'
)
SELECT
    task, attacks, attacks_worked, controls, controlled,
    mutants, killed, killed / nullif(mutants, 0) AS kill_rate, equivalents,
    rewrites, rewrites_rejected, rewrites_rejected / nullif(rewrites, 0) AS false_reject_rate
FROM measured;

-- Wrong variants of the reference that the tests do not notice; of rejected candidates too, whose task is null.
CREATE VIEW survivor AS
WITH found AS (
    SELECT lead, unnest(from_json(findings, '[{"rule": "VARCHAR", "message": "VARCHAR", "where": "VARCHAR"}]')) AS finding
    FROM verdict
)
SELECT
    outcome.task,
    regexp_replace(finding.where, ':[0-9]+$', '') AS path,
    coalesce(try_cast(nullif(regexp_extract(finding.where, ':([0-9]+)$', 1), '') AS INTEGER), 0) AS line,
    finding.message AS description,
    found.lead AS key
FROM found JOIN outcome USING (lead)
WHERE finding.rule IN ('mutant_survived', 'part_survived');

CREATE OR REPLACE VIEW task AS
SELECT
    outcome.task AS id,
    source, name, generator, strategy, revision, ref, title,
    admitted ->> '$.tier' AS tier,
    candidate ->> '$.instruction' AS instruction,
    coalesce(json_array_length(admitted, '$.tests.fail_to_pass'), 0)::INTEGER AS fail_to_pass,
    coalesce(json_array_length(admitted, '$.tests.pass_to_pass'), 0)::INTEGER AS pass_to_pass,
    coalesce(json_array_length(admitted, '$.tests.flickering'), 0)::INTEGER AS flickering,
    attacks, attacks_worked, controlled, mutants, kill_rate, rewrites, false_reject_rate,
    -- for people: worked/played, killed/made, rejected/made
    concat_ws(' ',
        'attacks ' || attacks_worked || '/' || attacks,
        'killed ' || killed || '/' || mutants,
        'rejected ' || rewrites_rejected || '/' || rewrites
    ) AS strength,
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
FROM outcome JOIN strength ON strength.task = outcome.task
WHERE status = 'admitted';
