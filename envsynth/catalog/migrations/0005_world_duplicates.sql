-- Tasks that nearly repeat another, of either kind: the fingerprint of a workspace is in the evidence of `leakage`, that
-- of a world in the evidence of `world_execution` (the digest of its tools and of the rows that the reference changes,
-- the digest of its tools, and a sketch of those rows). How they are compared is said where the view was first made.
CREATE OR REPLACE VIEW near_duplicate AS
WITH fingerprint AS (
    SELECT
        outcome.task AS id,
        verdict.validator AS kind,
        verdict.evidence ->> '$.fingerprint.patch' AS patch,
        from_json(verdict.evidence -> '$.fingerprint.symbols', '["VARCHAR"]') AS symbols,
        from_json(verdict.evidence -> '$.fingerprint.sketch', '["UBIGINT"]') AS sketch
    FROM verdict JOIN outcome USING (lead)
    WHERE verdict.validator IN ('leakage', 'world_execution') AND outcome.task IS NOT NULL
        AND json_exists(verdict.evidence, '$.fingerprint.patch')
), band AS (
    SELECT DISTINCT id, unnest([(i, sketch[4 * i + 1 : 4 * i + 4]) FOR i IN range(16)]) AS band FROM fingerprint
), met AS (
    SELECT DISTINCT one.id AS task, two.id AS other
    FROM band AS one JOIN band AS two ON one.band = two.band AND one.id < two.id
), compared AS (
    SELECT
        met.task, met.other, one.kind, one.patch = two.patch AS same_patch,
        len(one.symbols) > 0 AND one.symbols = two.symbols AS same_symbols,
        len(list_filter(range(64), lambda i: one.sketch[i + 1] = two.sketch[i + 1])) / 64.0 AS alike
    FROM met
    JOIN fingerprint AS one ON one.id = met.task
    JOIN fingerprint AS two ON two.id = met.other AND two.kind = one.kind
)
SELECT
    task, other,
    CASE WHEN same_patch THEN 1.0 ELSE round(alike, 3) END::DOUBLE AS similarity,
    CASE
        WHEN kind = 'leakage' THEN
            CASE WHEN same_patch THEN 'same patch' WHEN same_symbols THEN 'same symbols, like lines' ELSE 'like lines' END
        WHEN same_patch THEN 'same tools, same changes' ELSE 'same tools, like changes'
    END AS why
FROM compared
-- Rows of worlds with other tools may look alike by chance; they are not the same task.
WHERE same_patch OR (alike >= 0.8 AND (kind = 'leakage' OR same_symbols))
    OR (kind = 'leakage' AND same_symbols AND alike >= 0.5);
