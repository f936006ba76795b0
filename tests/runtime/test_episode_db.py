from __future__ import annotations

import pytest

from envsynth.errors import SandboxError
from envsynth.runtime.episode_db import EpisodeDatabase, ListedTest, TraceRow, validate_sql
from envsynth.runtime.submission import FileRow


@pytest.fixture
def database() -> EpisodeDatabase:
    database = EpisodeDatabase()
    database.insert("files", [FileRow("a\udcff.py", "source", "added", 2, 0)])
    database.insert("tests", [ListedTest("t", "F2P", "failed", "passed")])
    database.insert("trace", [TraceRow(1, "bash", r'{"command":"\ud800"}', True, '{"exit_code":1}', None, 1.0)])
    database.insert("initial.files", [("a.py", "source", "0" * 64)])
    database.seal()
    return database


@pytest.mark.parametrize(
    ("sql", "truth"),
    [
        ("SELECT 1", True),
        ("SELECT 0", False),
        ("SELECT 0.5", True),
        ("SELECT NULL", None),
        ("SELECT 1 FROM files WHERE role = 'test'", None),
        ("SELECT 'yes'", False),
        ("SELECT count(*) > 0 AND min(after = 'passed') FROM tests WHERE list = 'F2P'", True),
        ("SELECT count(*) > 0 AND min(after = 'passed') FROM tests WHERE list = 'P2P'", False),
        ("SELECT coalesce(min(after = 'passed'), 1) FROM tests WHERE list = 'P2P'", True),
        ("SELECT json_extract(result, '$.exit_code') FROM trace", True),
        ("SELECT count(*) FROM initial.files JOIN json_each('[1]')", True),
    ],
)
def test_truth_of_a_query(database: EpisodeDatabase, sql: str, truth: bool | None) -> None:
    assert database.truth(sql, where="x") is truth


def test_text_that_is_no_unicode_can_be_stored_and_read(database: EpisodeDatabase) -> None:
    assert database.rows("SELECT path FROM files", where="x") == [(r"a\udcff.py".replace("udcff", "xff"),)]
    ((text,),) = database.rows("SELECT json_extract(arguments, '$.command') FROM trace", where="x")
    assert set(text) == {"\ufffd"}


FORBIDDEN = [
    ("", "no query"),
    ("DROP TABLE files", "no query"),
    ("INSERT INTO files VALUES ('x', 'source', 'added', 1, 1)", "no query"),
    ("WITH x AS (SELECT 1) DELETE FROM files", "only reading"),
    ("PRAGMA query_only = OFF", "no query"),
    ("ATTACH 'x.db' AS x", "no query"),
    ("SELECT 1; SELECT 2", "one statement"),
    ("SELECT random()", "random is not allowed"),
    ("SELECT date('now')", "date is not allowed"),
    ("SELECT current_timestamp", "current_timestamp is not allowed"),
    ("SELECT load_extension('x')", "load_extension is not allowed"),
    ("SELECT sqlite_version()", "sqlite_version is not allowed"),
    ("SELECT count(*) FROM sqlite_master", "only reading"),
    ("SELECT count(*) FROM pragma_database_list", "only reading"),
    ("SELECT x FROM files", "no such column"),
    ("SELECT 1 FROM nowhere", "no such table"),
    ("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT count(*) FROM n", "too many steps"),
    ("SELECT json_extract('{', '$.a')", "JSON"),
    ("SELECT '\udcff'", "surrogates"),
]


@pytest.mark.parametrize(("sql", "cause"), FORBIDDEN)
def test_a_query_that_cannot_be_evaluated_is_the_environments_failure(
    database: EpisodeDatabase, sql: str, cause: str
) -> None:
    with pytest.raises(SandboxError, match="cannot be evaluated") as caught:
        database.truth(sql, where="task: check x")
    assert cause in caught.value.cause
    assert not caught.value.retryable
    assert database.truth("SELECT count(*) = 1 FROM files", where="x") is True


@pytest.mark.parametrize(("sql", "cause"), FORBIDDEN)
def test_the_validator_says_the_same_without_an_episode(sql: str, cause: str) -> None:
    assert cause in validate_sql(sql)


def test_a_check_has_one_column_and_evidence_any() -> None:
    assert validate_sql("SELECT path, role FROM files") == "it gives 2 columns, where one is wanted"
    assert validate_sql("SELECT path, role FROM files", single_value=False) == ""
