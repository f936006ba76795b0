-- Instruments that judge panels beside the checks, from the evidence of `consistency`: one row a task and instrument,
-- with its confusion matrix against the labels (positive: right; silent: it could not say). Of rejected candidates too,
-- whose task is null. `used`: whether it counted; where not, `unused` says why.
CREATE VIEW instrument AS
WITH found AS (
    SELECT
        lead,
        unnest(from_json(
            evidence -> '$.instruments',
            '[{"instrument": "VARCHAR", "tp": "INTEGER", "fp": "INTEGER", "tn": "INTEGER", "fn": "INTEGER",
               "silent_right": "INTEGER", "silent_wrong": "INTEGER", "used": "BOOLEAN", "agreement": "DOUBLE",
               "unused": "VARCHAR", "model": "VARCHAR", "repeated": "DOUBLE", "overrides": "INTEGER",
               "overrides_obeyed": "INTEGER"}]'
        )) AS one
    FROM verdict
    WHERE json_exists(evidence, '$.instruments')
)
SELECT
    outcome.task, one.instrument, one.tp, one.fp, one.tn, one.fn, one.used, one.agreement,
    one.silent_right + one.silent_wrong AS silent, one.unused, one.model, one.repeated, one.overrides,
    one.overrides_obeyed, found.lead AS key
FROM found JOIN outcome USING (lead);
