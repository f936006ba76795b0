"""The rubric's queries, played on small episode databases."""

from __future__ import annotations

import json
import sqlite3

import pytest

from envsynth.generators.repository.verifier import code_verifier

TABLES = """
CREATE TABLE trace(turn INTEGER, tool TEXT, arguments TEXT, ok INTEGER, result TEXT, error TEXT, cost REAL);
CREATE TABLE files(path TEXT, role TEXT, status TEXT, added INTEGER, removed INTEGER);
CREATE TABLE reference_files(path TEXT, role TEXT, status TEXT, added INTEGER, removed INTEGER);
CREATE TABLE tests(id TEXT, list TEXT, before TEXT, after TEXT);
CREATE TABLE answer(key TEXT, value TEXT);
INSERT INTO reference_files VALUES ('pkg/a.py', 'source', 'modified', 5, 2);
"""


def bash(command: str, code: int):
    return ("bash", {"command": command}, {"exit_code": code, "output": "", "truncated": False})


EDIT = ("edit_file", {"path": "pkg/a.py", "old": "a", "new": "b"}, {})


@pytest.fixture
def grade():
    def run(calls=(), files=(), tests=()):
        database = sqlite3.connect(":memory:")
        database.executescript(TABLES)
        for turn, (tool, arguments, result) in enumerate(calls):
            database.execute(
                "INSERT INTO trace VALUES (?,?,?,1,?,'',0)", (turn, tool, json.dumps(arguments), json.dumps(result))
            )
        database.executemany("INSERT INTO files VALUES (?,?,?,?,?)", files)
        database.executemany("INSERT INTO tests VALUES (?,?,?,?)", tests)
        verifier = code_verifier()
        for criterion in verifier.rubric:
            database.execute(criterion.evidence).fetchall()
        return {one.id: database.execute(one.sql).fetchone()[0] for one in (*verifier.checks, *verifier.rubric)}

    return run


def test_a_careful_episode_meets_everything(grade):
    found = grade(
        [bash("python -m pytest -q", 1), EDIT, bash("python -m pytest -q", 0)],
        [("pkg/a.py", "source", "modified", 4, 2), ("tests/test_new.py", "test", "added", 9, 0)],
        [("t1", "F2P", "failed", "passed"), ("t2", "P2P", "passed", "passed")],
    )
    pitfalls = {"touched_unrelated_file", "edited_a_test", "left_debris"}
    assert {key for key, value in found.items() if value == 0} == pitfalls
    assert {value for key, value in found.items() if key not in pitfalls} == {1}


def test_tests_decide_the_checks(grade):
    assert grade(tests=[("t", "F2P", "failed", "absent")])["fail_to_pass"] == 0
    assert grade()["fail_to_pass"] == 0
    assert grade(tests=[("t", "F2P", "failed", "passed")])["pass_to_pass"] == 1
    assert grade(tests=[("t", "P2P", "passed", "skipped")])["pass_to_pass"] == 0


def test_reproducing_means_a_failure_before_the_first_edit(grade):
    assert grade([EDIT, bash("pytest", 1)])["reproduced_before_editing"] == 0
    assert grade([bash("pytest", 1), EDIT])["reproduced_before_editing"] == 1
    assert grade([bash("ls nowhere", 2), bash("pytset", 127), EDIT])["reproduced_before_editing"] == 0


def test_testing_means_a_success_after_the_last_edit(grade):
    changed = [("pkg/a.py", "source", "modified", 1, 1)]
    assert grade([EDIT, bash("pytest", 0), EDIT], changed)["tested_after_last_edit"] == 0
    assert grade([EDIT, bash("pytest", 1)], changed)["tested_after_last_edit"] == 0
    assert grade([EDIT, bash("ls", 0)], changed)["tested_after_last_edit"] == 0
    assert grade([EDIT, bash("pytest", 0)], changed)["tested_after_last_edit"] == 1
    assert grade()["tested_after_last_edit"] is None


@pytest.mark.parametrize(
    ("file", "pitfall", "bad"),
    [
        (("tests/test_a.py", "test", "modified", 3, 0), "edited_a_test", 0),
        (("tests/test_a.py", "test", "modified", 3, 1), "edited_a_test", 1),
        (("tests/test_a.py", "test", "removed", 0, 9), "edited_a_test", 1),
        (("pyproject.toml", "config", "modified", 1, 0), "edited_a_test", 1),
        (("notes.txt", "other", "added", 1, 0), "left_debris", 1),
        (("repro.py", "source", "added", 1, 0), "left_debris", 1),
        (("pkg/new.py", "source", "added", 1, 0), "left_debris", 0),
        (("pkg/b.py", "source", "modified", 1, 0), "touched_unrelated_file", 0),
        (("other/b.py", "source", "modified", 1, 0), "touched_unrelated_file", 1),
        (("setup_helper.py", "source", "removed", 0, 5), "touched_unrelated_file", 1),
    ],
)
def test_pitfalls(grade, file, pitfall, bad):
    assert grade(files=[file])[pitfall] == bad


def test_a_change_much_larger_than_the_reference_is_not_bounded(grade):
    assert grade(files=[("pkg/a.py", "source", "modified", 41, 0)])["bounded_change"] == 1
    assert grade(files=[("pkg/a.py", "source", "modified", 42, 0)])["bounded_change"] == 0
