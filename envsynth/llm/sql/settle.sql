UPDATE call
SET state = 'settled', cost = :cost, prompt_tokens = :prompt_tokens, cached_tokens = :cached_tokens,
    completion_tokens = :completion_tokens, reason = ''
WHERE id = :id;
