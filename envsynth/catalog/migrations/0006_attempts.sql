-- Rollouts: one row an attempt. The key is what is played, by which policy with which settings, with or without the hint,
-- and the number of the draw. Attempts go with their lead, and with what is played: where a task is admitted that is
-- played or graded otherwise than before, its earlier attempts say nothing of it any more.
CREATE TABLE attempt (
    key VARCHAR PRIMARY KEY,
    lead VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    played VARCHAR NOT NULL,  -- digest of everything that is played and graded
    policy VARCHAR NOT NULL,
    model VARCHAR NOT NULL,  -- or the name of a scripted policy; empty for others
    settings VARCHAR NOT NULL,  -- digest of what decides how the policy plays
    hinted BOOLEAN NOT NULL,
    k INTEGER NOT NULL,
    status VARCHAR NOT NULL,  -- finished, or environment_error, which counts for nothing
    trouble VARCHAR NOT NULL,
    ending VARCHAR,
    failure VARCHAR,  -- null: a success, or not finished
    success BOOLEAN,  -- null: not finished
    reward DOUBLE,
    outcome DOUBLE,
    turns INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    completion_tokens BIGINT NOT NULL,
    cost_usd DOUBLE,  -- null: not known
    wall_s DOUBLE NOT NULL,
    model_s DOUBLE NOT NULL,
    recorded_at TIMESTAMP NOT NULL,
    grade JSON,
    trace JSON NOT NULL,
    rest BLOB NOT NULL  -- everything else of the models.Attempt: zlib of its JSON
);

-- One row a task, policy, model, settings and hint: how many attempts were made, and how many succeeded.
CREATE VIEW solve_rate AS
SELECT
    task, lead AS key, policy, model, hinted, settings,
    count(*) FILTER (status = 'finished') AS n,
    count(*) FILTER (success) AS c,
    c / nullif(n, 0) AS pass_at_1,
    avg(outcome) AS mean_outcome,
    avg(reward) AS mean_reward,
    avg(calls) FILTER (status = 'finished') AS mean_calls,
    count(*) FILTER (status <> 'finished') AS environment_errors,
    sum(completion_tokens)::BIGINT AS completion_tokens,
    sum(cost_usd) AS cost_usd
FROM attempt
GROUP BY ALL;

-- What a hint is worth: one row a task, policy and model with attempts of both kinds.
CREATE VIEW regret AS
WITH rate AS (
    SELECT task, policy, model, hinted, sum(c) / nullif(sum(n), 0) AS rate FROM solve_rate GROUP BY ALL
)
SELECT hinted.task, hinted.policy, hinted.model, hinted.rate AS with_hint, plain.rate AS without_hint,
    hinted.rate - plain.rate AS regret
FROM rate AS hinted
JOIN rate AS plain ON plain.task = hinted.task AND plain.policy = hinted.policy AND plain.model = hinted.model
WHERE hinted.hinted AND NOT plain.hinted AND hinted.rate IS NOT NULL AND plain.rate IS NOT NULL;

-- One row a failed attempt of a policy, for counting kinds.
CREATE VIEW failure AS
SELECT task, policy, model, hinted, k, failure AS kind, ending, outcome, calls, key
FROM attempt
WHERE failure IS NOT NULL;
