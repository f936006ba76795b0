-- What the rules on traces read: every call of every run of one panel. Values are texts.
CREATE TABLE call (
    run INTEGER NOT NULL, turn INTEGER NOT NULL, tool TEXT NOT NULL, kind TEXT NOT NULL, arguments TEXT NOT NULL,
    ok INTEGER NOT NULL, answer INTEGER NOT NULL, PRIMARY KEY (run, turn)
) WITHOUT ROWID;
-- Which answers tell which of the values that name rows in calls that change something; a refusal tells why.
CREATE TABLE told (answer INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (answer, value)) WITHOUT ROWID;
-- Those that the instruction, the pages of the policies or the tools' descriptions tell.
CREATE TABLE stated (value TEXT PRIMARY KEY) WITHOUT ROWID;
-- Arguments that name a row.
CREATE TABLE naming (tool TEXT NOT NULL, argument TEXT NOT NULL, PRIMARY KEY (tool, argument)) WITHOUT ROWID;
-- Whether the world has a tool that hands in.
CREATE TABLE world (submits INTEGER NOT NULL);
