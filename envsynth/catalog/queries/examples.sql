-- name: Yield by reason
SELECT status, reason, sum(leads) AS leads FROM funnel GROUP BY ALL ORDER BY leads DESC, status, reason

-- name: Flickering tests by repository
SELECT source, count(DISTINCT test) AS tests, count(DISTINCT key) AS leads FROM flicker GROUP BY source ORDER BY tests DESC, source

-- name: CPU seconds per admitted task
SELECT source, tasks, round(cpu_s_per_task, 1) AS cpu_s_per_task FROM cost_per_task ORDER BY source

-- name: Tasks with the weakest tests, and what these do not notice
SELECT task, round(kill_rate, 2) AS kill_rate, path, line, description FROM strength LEFT JOIN survivor USING (task) ORDER BY kill_rate, task, path, line LIMIT 20

-- name: Near-duplicates; export without them: --where "id NOT IN (SELECT other FROM near_duplicate)"
SELECT task, other, similarity, why FROM near_duplicate ORDER BY similarity DESC, task, other

-- name: Hold out two families, and a skin of the others: --where with this for training, with NOT (...) for evaluation
SELECT count(*) AS tasks FROM mechanism WHERE family NOT IN ('pandora', 'pricing') AND skin NOT LIKE 'port%'

-- name: References by family and level, between default (0) and reference (1)
SELECT family, level, policy, round(avg(score), 2) AS score, count(*) AS tasks FROM reference_score WHERE presentation = 'hidden' GROUP BY ALL ORDER BY family, level, policy

-- name: Tasks for training a model: neither always nor never solved by it in its attempts; export --where "id IN (...)"
SELECT task, model, n, c, round(pass_at_1, 2) AS pass_at_1 FROM solve_rate WHERE policy = 'model' AND NOT hinted AND c BETWEEN 1 AND n - 1 ORDER BY task, model

-- name: Why attempts fail, by model
SELECT model, kind, count(*) AS attempts FROM failure WHERE policy = 'model' GROUP BY ALL ORDER BY model, attempts DESC, kind

-- name: What a hint is worth, by task
SELECT task, model, round(without_hint, 2) AS without_hint, round(with_hint, 2) AS with_hint, round(regret, 2) AS regret FROM regret ORDER BY regret DESC, task

-- name: How well trace rules, grounding, read-back and judge tell right runs from wrong ones, and how often they are used
SELECT instrument, count(*) AS tasks, count(*) FILTER (used) AS used, sum(tp) AS tp, sum(fp) AS fp, sum(tn) AS tn, sum(fn) AS fn, round(avg(agreement), 2) AS agreement FROM instrument WHERE task IS NOT NULL GROUP BY instrument ORDER BY instrument
