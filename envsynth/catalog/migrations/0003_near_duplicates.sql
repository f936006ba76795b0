-- Tasks of nearly the same change, from the fingerprints that the `leakage` validator puts into its evidence: the digest
-- of the patch's lines, the changed symbols, and a sketch (MinHash) of 64 numbers. The share of equal positions in two
-- sketches estimates how much of the two changes is the same. Only tasks that agree in one of 16 bands of 4 positions
-- are compared: pairs as alike as 0.8 meet in one almost surely (1 - (1 - 0.8^4)^16 = 0.9998), and a catalog of
-- many thousand tasks is not compared pair by pair.
CREATE VIEW near_duplicate AS
WITH fingerprint AS (
    SELECT
        outcome.task AS id,
        verdict.evidence ->> '$.fingerprint.patch' AS patch,
        from_json(verdict.evidence -> '$.fingerprint.symbols', '["VARCHAR"]') AS symbols,
        from_json(verdict.evidence -> '$.fingerprint.sketch', '["UBIGINT"]') AS sketch
    FROM verdict JOIN outcome USING (lead)
    WHERE verdict.validator = 'leakage' AND outcome.task IS NOT NULL
        AND json_exists(verdict.evidence, '$.fingerprint.patch')
), band AS (
    SELECT DISTINCT id, unnest([(i, sketch[4 * i + 1 : 4 * i + 4]) FOR i IN range(16)]) AS band FROM fingerprint
), met AS (
    SELECT DISTINCT one.id AS task, two.id AS other
    FROM band AS one JOIN band AS two ON one.band = two.band AND one.id < two.id
), compared AS (
    SELECT
        met.task, met.other, one.patch = two.patch AS same_patch,
        len(one.symbols) > 0 AND one.symbols = two.symbols AS same_symbols,
        len(list_filter(range(64), lambda i: one.sketch[i + 1] = two.sketch[i + 1])) / 64.0 AS alike
    FROM met
    JOIN fingerprint AS one ON one.id = met.task
    JOIN fingerprint AS two ON two.id = met.other
)
SELECT
    task, other,
    CASE WHEN same_patch THEN 1.0 ELSE round(alike, 3) END::DOUBLE AS similarity,
    CASE WHEN same_patch THEN 'same patch' WHEN same_symbols THEN 'same symbols, like lines' ELSE 'like lines' END AS why
FROM compared
WHERE same_patch OR alike >= 0.8 OR (same_symbols AND alike >= 0.5);
