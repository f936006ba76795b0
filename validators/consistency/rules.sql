-- name: id_not_seen
-- Something was changed whose name nothing had told: no earlier answer, no page, not the instruction.
SELECT w.run, w.turn, w.tool || ': ' || a.key || ' = ' || a.value
FROM call w, json_each(w.arguments) a
WHERE w.ok AND w.kind IN ('write', 'clock')
  AND EXISTS (SELECT 1 FROM naming n WHERE n.tool = w.tool AND n.argument = a.key)
  AND NOT EXISTS (SELECT 1 FROM stated s WHERE s.value = CAST(a.value AS TEXT))
  AND NOT EXISTS (
    SELECT 1 FROM call r JOIN told t ON t.answer = r.answer
    WHERE r.run = w.run AND r.turn < w.turn AND t.value = CAST(a.value AS TEXT)
  )
ORDER BY 1, 2, 3

-- name: refused_twice
-- The same call was refused a second time.
SELECT run, min(turn), tool || ' was refused ' || count(*) || ' times, unchanged'
FROM call WHERE NOT ok GROUP BY run, tool, arguments HAVING count(*) > 1 ORDER BY 1, 2

-- name: not_handed_in
-- There is a tool that hands in, and the last call that succeeded is another one.
SELECT run, max(turn), 'nothing was handed in at the end'
FROM call WHERE (SELECT submits FROM world)
GROUP BY run HAVING coalesce(max(turn) FILTER (WHERE ok AND kind = 'submit'), 0) < coalesce(max(turn) FILTER (WHERE ok), 0)
ORDER BY 1
