-- Which commands of an episode ran tests or code of the project, and which calls changed the solution's files. Read by
-- `verifier.toml`, where `{{runs}}` stands for this text. Long texts are looked at in part, so that no episode can make its
-- own grading too long.
-- Import names of what the known solution works in: the topmost packages, or the modules themselves.
WITH folders(path) AS (
  SELECT substr(path, 1, length(path) - length('/__init__.py')) FROM initial.files WHERE path GLOB '*/__init__.py'
), places(path, folder) AS (
  SELECT path, (SELECT folders.path FROM folders
    WHERE substr(reference_files.path, 1, length(folders.path) + 1) = folders.path || '/'
    ORDER BY length(folders.path) LIMIT 1)
  FROM reference_files WHERE role = 'source'
), names(name) AS (
  SELECT replace(folder, rtrim(folder, replace(folder, '/', '')), '') FROM places WHERE folder IS NOT NULL
  UNION
  SELECT substr(file, 1, instr(file || '.', '.') - 1)
  FROM (SELECT replace(path, rtrim(path, replace(path, '/', '')), '') AS file FROM places WHERE folder IS NULL)
), codes(turn, code) AS (
  SELECT turn, substr(arguments, 1, 5000) || ' ' || substr(arguments, max(5001, length(arguments) - 5000))
  FROM trace WHERE ok AND tool IN ('bash', 'write_file', 'edit_file')
), written(turn, code) AS (
  -- Code that imports the project: scripts, and commands with code in them.
  SELECT turn, code FROM codes
  WHERE EXISTS(
    SELECT 1 FROM names WHERE code GLOB '*import ' || name || '[^a-zA-Z0-9_]*'
      OR code GLOB '*from ' || name || '[^a-zA-Z0-9_]*'
      OR code GLOB '*import *' AND code GLOB '*, ' || name || '[^a-zA-Z0-9_]*')
), commands(turn, command, code, output) AS (
  SELECT turn, json_extract(arguments, '$.command'), json_extract(result, '$.exit_code'),
    coalesce(json_extract(result, '$.output'), '')
  FROM trace WHERE tool = 'bash' AND ok
), parts(turn, number, text) AS (
  -- A command line cut at its separators; none of them occurs in an escape of JSON.
  SELECT turn, key, ' ' || trim(value, ' (){}!' || char(9)) || ' '
  FROM commands, json_each('[' || replace(
    json_quote(replace(replace(replace(
      substr(command, 1, 2000) || ';' || substr(command, max(2001, length(command) - 2000)),
      char(10), ';'), '|', ';'), '&', ';')), ';', '","') || ']')
  WHERE length(value) > 3
), started(turn, number, text, nth) AS (
  SELECT turn, number, text, row_number() OVER (PARTITION BY turn ORDER BY number DESC)
  FROM (SELECT *, substr(text, 2, instr(substr(text, 2), ' ') - 1) AS word FROM parts)
  WHERE (word GLOB 'python*' OR word GLOB '*/python*' OR word GLOB '*=*' OR word IN ('pytest', 'py.test')
      OR word GLOB '*/pytest' OR word IN ('env', 'timeout', 'time', 'nice', 'exec', 'uv', 'poetry', 'pdm', 'hatch',
        'coverage', 'xvfb-run', 'then', 'do', 'if', 'make', 'tox', 'nox'))
    AND text NOT GLOB '* pip *' AND text NOT GLOB '* echo *' AND text NOT GLOB '* add *'
), ran(turn, number, kind) AS (
  SELECT turn, number, 'tests' FROM started
  WHERE nth <= 20 AND (text GLOB '* pytest *' OR text GLOB '*/pytest *' OR text GLOB '* py.test *' OR text GLOB '* unittest *'
      OR text GLOB '*.py test *' OR text GLOB ' make *test*' OR text GLOB ' make *check*'
      OR text GLOB ' tox *' OR text GLOB ' nox *')
    AND text NOT GLOB '*python* -c *' AND text NOT GLOB '* --version *' AND text NOT GLOB '* --help *'
    AND text NOT GLOB '* -h *' AND text NOT GLOB '* --co *' AND text NOT GLOB '* --collect-only *'
  UNION ALL
  SELECT turn, number, 'code' FROM started
  WHERE nth <= 20 AND (text GLOB '* python*' OR text GLOB '*/python*') AND (
    -- Code in the command itself, a module of the project, a script of the project, or one that was written before.
    ((text GLOB '*python* -c *' OR text GLOB '*<<*' OR text GLOB '*python* - *')
      AND turn IN (SELECT turn FROM written))
    OR EXISTS(SELECT 1 FROM names WHERE text GLOB '* -m ' || name || '[ .]*')
    OR EXISTS(
      SELECT 1 FROM (
        SELECT value AS file FROM json_each('[' || replace(json_quote(text), ' ', '","') || ']')
        WHERE value GLOB '*.py' LIMIT 1)
      WHERE EXISTS(SELECT 1 FROM initial.files WHERE path = ltrim(file, './'))
        OR EXISTS(SELECT 1 FROM written WHERE written.turn <= started.turn AND instr(written.code, file) > 0)))
), runs(turn, number, kind, failed, passed) AS (
  -- Codes 2 to 5 of pytest, 126 and 127 say that nothing was run, 124 that it was stopped; what was printed tells where
  -- a code was swallowed, or a module could not be collected.
  SELECT turn, number, kind,
    shown OR (code NOT IN (0, 2, 124, 126, 127) AND NOT (kind = 'tests' AND code IN (3, 4, 5)) AND NOT unready),
    code = 0 AND NOT shown
  FROM (
    SELECT ran.turn, number, kind, code, output GLOB '*No module named pytest*' AS unready,
      CASE kind WHEN 'code' THEN output GLOB '*Traceback (most recent call last)*' AND code <> 2
        ELSE output GLOB '*[1-9] failed*' OR output GLOB '*[0-9][0-9] failed*' OR output GLOB '*FAILED (*'
          OR output GLOB '*[1-9] error*' OR output GLOB '*[0-9][0-9] error*' END AS shown
    FROM ran JOIN commands USING (turn))
), changes(turn) AS (
  -- Only files that are part of what was handed in: no scratch files, no tests, nothing outside of the workspace.
  SELECT edits.turn FROM edits JOIN files USING (path)
  WHERE files.path IN (SELECT path FROM reference_files)
    OR files.role = 'source' AND (files.status <> 'added' OR instr(files.path, '/') > 0)
)
