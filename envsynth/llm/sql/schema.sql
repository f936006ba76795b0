-- One row a request to an endpoint. Money is in picodollars (1e-12 US dollars); NULL where prices are not known.
--   reserved   under way: counts with its upper bound
--   settled    answered: counts with what it cost
--   uncertain  it may have been answered, and nobody was there to hear: counts with its upper bound
--   released   certainly not billed: counts nothing
CREATE TABLE IF NOT EXISTS call (
    id INTEGER PRIMARY KEY,
    role TEXT NOT NULL,
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    request TEXT NOT NULL,          -- digest of what was asked
    owner TEXT NOT NULL,            -- the process that asked
    started REAL NOT NULL,          -- seconds since 1970
    state TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'uncertain', 'released')),
    bound INTEGER,
    cost INTEGER,
    prompt_tokens INTEGER,
    cached_tokens INTEGER,
    completion_tokens INTEGER,
    reason TEXT NOT NULL DEFAULT '' -- why it is uncertain or was released
);
CREATE INDEX IF NOT EXISTS call_reserved ON call (owner) WHERE state = 'reserved';
