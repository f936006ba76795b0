-- Tasks of solved mechanisms: what they are, for splits and comparisons, and what the reference policies realised.

CREATE VIEW mechanism AS
SELECT
    task AS id,
    candidate ->> '$.metadata.family' AS family,
    candidate ->> '$.metadata.kin' AS kin,
    candidate ->> '$.metadata.skin' AS skin,
    (candidate ->> '$.metadata.level')::INTEGER AS level,
    candidate ->> '$.metadata.presentation' AS presentation,
    candidate ->> '$.metadata.mechanism' AS mechanism,
    (candidate ->> '$.metadata.draws')::INTEGER AS draws,
    (candidate ->> '$.verifier.utility.realised.oracle')::DOUBLE AS u_oracle,
    (candidate ->> '$.verifier.utility.realised.bayes')::DOUBLE AS u_bayes,
    (candidate ->> '$.verifier.utility.realised.default')::DOUBLE AS u_default,
    (candidate ->> '$.verifier.utility.realised.idle')::DOUBLE AS u_idle,
    (candidate ->> '$.verifier.utility.hindsight')::DOUBLE AS u_hindsight,
    (candidate ->> '$.verifier.utility.reference')::DOUBLE AS u_reference
FROM outcome
WHERE status = 'admitted' AND generator = 'mechanism';

-- One row a task and policy: (u - u_default) / (u_reference - u_default), not clipped.
CREATE VIEW reference_score AS
SELECT id, family, level, presentation, policy, (utility - u_default) / (u_reference - u_default) AS score
FROM (
    UNPIVOT mechanism ON u_oracle, u_bayes, u_idle, u_hindsight INTO NAME policy VALUE utility
);
