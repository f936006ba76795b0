SELECT role, model, endpoint,
       count(*) FILTER (WHERE state = 'settled') AS settled,
       count(*) FILTER (WHERE state = 'reserved') AS reserved,
       count(*) FILTER (WHERE state = 'uncertain') AS uncertain,
       count(*) FILTER (WHERE state = 'released') AS released,
       coalesce(sum(cost) FILTER (WHERE state = 'settled'), 0) AS settled_cost,
       coalesce(sum(bound) FILTER (WHERE state = 'reserved'), 0) AS reserved_bound,
       coalesce(sum(bound) FILTER (WHERE state = 'uncertain'), 0) AS uncertain_bound,
       coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
       coalesce(sum(cached_tokens), 0) AS cached_tokens,
       coalesce(sum(completion_tokens), 0) AS completion_tokens
FROM call
GROUP BY role, model, endpoint
ORDER BY role, model, endpoint;
