UPDATE call SET state = :state, reason = :reason WHERE id = :id AND state IN ('reserved', 'uncertain');
