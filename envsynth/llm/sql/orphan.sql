UPDATE call SET state = 'uncertain', reason = 'the process ended during the call' WHERE state = 'reserved' AND owner = ?;
