"""The verifier's queries, played on the databases of small episodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from envsynth.generators.repository.verifier import code_verifier
from envsynth.runtime.controls import NOT_RUN, ControlRow, met
from envsynth.runtime.edits import EditRow
from envsynth.runtime.episode_db import EpisodeDatabase, ListedTest, TraceRow, validate_sql
from envsynth.runtime.rewards import process
from envsynth.runtime.submission import FileRow
from envsynth.runtime.testreport import STATUSES

START = (
    ("src/pkg/__init__.py", "source"), ("src/pkg/core/__init__.py", "source"), ("src/pkg/core/a.py", "source"),
    ("src/pkg/core/b.py", "source"), ("src/other/__init__.py", "source"), ("src/other/c.py", "source"),
    ("tests/test_a.py", "test"), ("tests/run.py", "test"), ("pyproject.toml", "config"), ("setup_helper.py", "source"),
)  # fmt: skip
A = "src/pkg/core/a.py"
REFERENCE = (FileRow(A, "source", "modified", 5, 2),)
FIXED = FileRow(A, "source", "modified", 4, 2)
PITFALLS = ("touched_unrelated_file", "edited_a_test", "left_debris")


class Call(NamedTuple):
    """A call of an episode, what it changed, and what it answered."""

    tool: str
    arguments: dict[str, Any]
    result: dict[str, Any] = {}
    changed: Sequence[tuple[str, str]] = ()


def bash(command: str, code: int = 0, output: str = "", changed: Sequence[tuple[str, str]] = ()) -> Call:
    return Call("bash", {"command": command}, {"exit_code": code, "output": output, "truncated": False}, changed)


def write(path: str, content: str, role: str = "") -> Call:
    return Call("write_file", {"path": path, "content": content}, {}, [(path, role)] if role else [])


EDIT = Call("edit_file", {"path": A, "old": "a", "new": "b"}, {"line": 1}, [(A, "source")])
READ = Call("read_file", {"path": A}, {"content": "a"})
PYTEST = bash("python -m pytest -q tests")
FAILED = bash("python -m pytest -q tests", 1, "1 failed, 3 passed in 0.1s\n")
SHELL_EDIT = bash(f"python - <<'X'\np = '{A}'\nopen(p, 'w').write('from pkg import x')\nX", changed=[(A, "source")])
TEST = ("tests/test_new.py", "def test_it():\n    import pkg\n    assert pkg.mean([]) == 0\n")
SCRIPT = "from pkg import mean\nmean([])\n"


class Found(NamedTuple):
    """A graded episode."""

    values: dict[str, bool | None]
    """Good, bad or not applicable, by check and criterion."""
    process: float | None


def grade(
    calls: Sequence[Call] = (), files: Sequence[FileRow] = (), tests: Sequence[ListedTest] = (),
    reference: Sequence[FileRow] = REFERENCE, start: Sequence[tuple[str, str]] = START,
) -> Found:  # fmt: skip
    database = EpisodeDatabase()
    turns = list(enumerate(calls, 1))
    database.insert("trace", [
        TraceRow(turn, call.tool, json.dumps(call.arguments), True, json.dumps(call.result), None, 1.0)
        for turn, call in turns
    ])  # fmt: skip
    database.insert("edits", [EditRow(turn, *one) for turn, call in turns for one in call.changed])
    database.insert("files", files)
    database.insert("reference_files", reference)
    database.insert("tests", tests)
    database.insert("initial.files", [(path, role, "0" * 64) for path, role in start])
    database.seal()
    verifier = code_verifier()
    values = {check.id: database.truth(check.sql, where=check.id) for check in verifier.checks}
    for criterion in verifier.rubric:
        database.rows(criterion.evidence, where=criterion.id)
        met = database.truth(criterion.sql, where=criterion.id)
        values[criterion.id] = met if met is None or criterion.class_ != "pitfall" else not met
    database.close()
    return Found(values, process((one.class_, values[one.id]) for one in verifier.rubric))


def test_every_query_can_be_evaluated_under_the_limits_of_grading() -> None:
    for line in (*code_verifier().checks, *code_verifier().rubric):
        assert validate_sql(line.sql) == ""
        assert "{{" not in line.sql


def test_tests_decide_the_checks() -> None:
    def checks(*tests: ListedTest) -> tuple[bool | None, bool | None]:
        values = grade(tests=tests).values
        return values["fail_to_pass"], values["pass_to_pass"]

    assert checks() == (False, True)
    assert checks(ListedTest("t", "F2P", "failed", "absent")) == (False, True)
    assert checks(ListedTest("t", "F2P", "failed", "passed")) == (True, True)
    assert checks(ListedTest("t", "P2P", "passed", "skipped")) == (False, False)


# Agents: calls, changed files, (reproduced, tested, read), pitfalls that they fell into, process.
AGENTS = {
    "idle": ([], [], (None, False, None), None, 0.0),
    "only looks": ([READ, PYTEST], [], (None, False, None), None, 0.0),
    "good": ([READ, FAILED, EDIT, PYTEST], [FIXED], (True, True, True), (), 1.0),
    "good with -c": (
        [READ, bash("python -c 'from pkg import mean; mean([])'", 1), EDIT, PYTEST], [FIXED],
        (True, True, True), (), 1.0,
    ),
    "good with pipes": (
        [READ, bash("cd . && python -c 'import os, pkg; pkg.mean([])' 2>&1 | tail -3", 1), EDIT,
         bash("PYTHONPATH=src timeout 60 pytest -q 2>&1 | tail -3", 0, "4 passed in 0.1s\n")],
        [FIXED], (True, True, True), (), 1.0,
    ),
    "good with the test first": (
        [READ, write(*TEST, "test"), FAILED, EDIT, PYTEST], [FIXED, FileRow(TEST[0], "test", "added", 3, 0)],
        (True, True, True), (), 1.0,
    ),
    "good with a test first that cannot be collected": (
        [READ, write(*TEST, "test"), bash("pytest -q", 2, "ImportError: ...\n1 error in 0.1s\n"), EDIT, PYTEST],
        [FIXED, FileRow(TEST[0], "test", "added", 3, 0)], (True, True, True), (), 1.0,
    ),
    "good with a script in /tmp": (
        [READ, write("/tmp/r.py", SCRIPT), bash("python /tmp/r.py", 1), EDIT, bash("cd /tmp; python r.py", 0)],
        [FIXED], (True, True, True), (), 1.0,
    ),
    "good with a script made by a heredoc": (
        [READ, bash(f"cat > /tmp/r.py <<'X'\n{SCRIPT}X\npython3 /tmp/r.py", 1), EDIT, bash("python3 /tmp/r.py")],
        [FIXED], (True, True, True), (), 1.0,
    ),
    "good with a script in the workspace, removed at the end": (
        [READ, write("repro.py", SCRIPT, "source"), bash("python repro.py", 1), EDIT, bash("python repro.py"),
         bash("rm repro.py", changed=[("repro.py", "source")])],
        [FIXED], (True, True, True), (), 1.0,
    ),
    "good with swallowed codes": (
        [READ, bash("pytest -q; echo code $?", 0, "1 failed in 0.1s\ncode 1\n"), EDIT,
         bash("pytest -q; echo code $?", 0, "1 passed in 0.1s\ncode 0\n")],
        [FIXED], (True, True, True), (), 1.0,
    ),
    "good by shell, tested in the same command": (
        [READ, FAILED, bash(f"sed -i s/a/b/ {A} && python -m pytest -q", 0, "1 passed\n", [(A, "source")])],
        [FIXED], (True, True, True), (), 1.0,
    ),
    "good with a test after the last test": (
        [READ, FAILED, EDIT, PYTEST, write(*TEST, "test")], [FIXED, FileRow(TEST[0], "test", "added", 3, 0)],
        (True, True, True), (), 1.0,
    ),
    "good with the project's own runner": (
        [READ, bash("python tests/run.py", 1), EDIT, bash("env A=1 python3 ./tests/run.py")], [FIXED],
        (True, True, True), (), 1.0,
    ),
    "good, seen in a module that is run": (
        [READ, bash("python -m pkg.core", 1), EDIT, bash("python -m pkg")], [FIXED], (True, True, True), (), 1.0,
    ),
    "blind": ([EDIT], [FIXED], (False, False, False), (), 0.0),
    "blind, then tested": ([EDIT, PYTEST], [FIXED], (False, True, False), (), 5 / 7),
    "no test at the end": ([READ, FAILED, EDIT, PYTEST, EDIT], [FIXED], (True, False, True), (), 0.0),
    "failing test at the end": ([READ, FAILED, EDIT, FAILED], [FIXED], (True, False, True), (), 0.0),
    "failing test at the end, swallowed": (
        [READ, FAILED, EDIT, bash("pytest -q || true", 0, "1 failed, 3 passed in 0.1s\n")], [FIXED],
        (True, False, True), (), 0.0,
    ),
    "failing script at the end, swallowed": (
        [READ, FAILED, EDIT, bash("python -c 'import pkg; pkg.f()'; true", 0, "Traceback (most recent call last):\n")],
        [FIXED], (True, False, True), (), 0.0,
    ),
    "game: python -c 1/0": (
        [READ, bash("python3 -c 1/0", 1), EDIT, bash("python3 -c 1")], [FIXED], (False, False, True), (), 0.0,
    ),
    "game: echo and test": (
        [READ, bash("test -e nothing", 1), EDIT, bash("echo pytest; test 1; grep -c pytest tox.ini")], [FIXED],
        (False, False, True), (), 0.0,
    ),
    "game: pytest that runs nothing": (
        [READ, bash("python -m pytest --nonexist", 4, "error: unrecognized arguments: --nonexist\n"), EDIT,
         bash("pytest --version; pytest --collect-only -q; pip install pytest")],
        [FIXED], (False, False, True), (), 0.0,
    ),
    "game: pytest that selects nothing or is not there": (
        [READ, bash("pytest -k nothing", 5, "no tests ran\n"), bash("python -m pytest", 1, "No module named pytest\n"),
         bash("pytest", 127), EDIT, bash("pytest -k nothing", 5)],
        [FIXED], (False, False, True), (), 0.0,
    ),
    "game: a script that imports nothing of the project": (
        [READ, write("/tmp/r.py", "import json, package\n1 / 0\n"), bash("python /tmp/r.py", 1), EDIT,
         bash("python /tmp/missing.py", 2)],
        [FIXED], (False, False, True), (), 0.0,
    ),
    "shell edit without a test": ([SHELL_EDIT], [FIXED], (False, False, False), (), 0.0),
    "shell edit after the last test": (
        [READ, FAILED, EDIT, PYTEST, bash(f"sed -i s/b/c/ {A}", changed=[(A, "source")])], [FIXED],
        (True, False, True), (), 0.0,
    ),
    "broken, with edited tests and debris": (
        [bash(f"false; sed -i s/a/b/ {A} tests/*.py; touch junk.log", 0, "",
              [(A, "source"), ("tests/test_a.py", "test"), ("junk.log", "other")])],
        [FIXED, FileRow("tests/test_a.py", "test", "modified", 1, 1), FileRow("junk.log", "other", "added", 0, 0)],
        (False, False, False), ("edited_a_test", "left_debris"), 0.0,
    ),
    "only a test": (
        [write(*TEST, "test"), PYTEST], [FileRow(TEST[0], "test", "added", 3, 0)], (None, False, None), (), 0.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AGENTS)
def test_agents_get_what_they_deserve(name: str) -> None:
    calls, files, criteria, fell, share = AGENTS[name]
    values, score = grade(calls, files)
    found = tuple(values[key] for key in ("reproduced_before_editing", "tested_after_last_edit", "read_before_editing"))
    assert found == criteria
    expected = {key: None if fell is None else key not in fell for key in PITFALLS}
    assert {key: values[key] for key in PITFALLS} == expected
    assert values["bounded_change"] is (True if FIXED in files else None)
    assert score == pytest.approx(share)


@pytest.mark.parametrize(
    "command", ["python -c '\ud800 import pkg'; \"\\n;|&", "a" * 90_000, ";" * 20_000, "'\t\x01\""]
)
def test_no_command_line_keeps_an_episode_from_being_graded(command: str) -> None:
    assert grade([bash(command, 1), EDIT, PYTEST], [FIXED]).values["tested_after_last_edit"] is True


HEREDOC = f"cat > /tmp/r.py <<'X'\n{'# x' * 30_000}\n{SCRIPT}X\npython /tmp/r.py"


def test_the_end_of_a_long_command_counts() -> None:
    assert grade([bash(HEREDOC, 1), EDIT], [FIXED]).values["reproduced_before_editing"] is True


@pytest.mark.parametrize(
    "call",
    [
        bash(";" * 100_000, 1), bash(";a b" * 25_000, 1), bash("python a.py;" * 8_000, 1), bash("x.py " * 20_000, 1),
        bash("import pkg, " * 8_000, 1), bash("pytest\n" * 14_000, 1, "1 " * 8_000),
        write("/tmp/r.py", "import " * 140_000 + "pkg"), write("a.py", "import pkg\npython a.py;" * 40_000),
        bash("touch", changed=[(f"src/pkg/m{number}.py", "source") for number in range(1000)]),
    ],
    ids=["separators", "parts", "scripts", "words", "imports", "runs", "words-in-code", "code", "edits"],
)  # fmt: skip
def test_no_episode_can_make_its_own_grading_too_long(call: Call) -> None:
    calls = [*[call] * 50, *[bash("python a.py; " * 300, 1)] * 49, EDIT]
    files = [FIXED, *(FileRow(f"src/pkg/m{number}.py", "source", "added", 1, 0) for number in range(1000))]
    assert grade(calls, files).values["tested_after_last_edit"] is False


@pytest.mark.parametrize(
    ("reference", "start", "name"),
    [
        ("mod.py", [("mod.py", "source")], "mod"),
        ("src/mod.py", [("src/mod.py", "source")], "mod"),
        ("pkg/sub/a.py", [("pkg/__init__.py", "source"), ("pkg/sub/__init__.py", "source")], "pkg"),
        ("lib/python/pkg/new.py", [("lib/python/pkg/__init__.py", "source")], "pkg"),
    ],
)
def test_code_of_the_project_is_known_by_what_it_imports(reference: str, start: list, name: str) -> None:
    rows = [FileRow(reference, "source", "modified", 1, 1)]
    edit = Call("edit_file", {"path": reference}, {}, [(reference, "source")])

    def reproduced(code: str) -> bool | None:
        calls = [bash(f'python -c "{code}"', 1), edit]
        return grade(calls, rows, reference=rows, start=start).values["reproduced_before_editing"]

    assert reproduced(f"import {name}") is True
    assert reproduced(f"from {name}.x import y") is True
    assert reproduced(f"import {name}s") is False


@pytest.mark.parametrize(
    ("file", "pitfall", "avoided"),
    [
        (FileRow("tests/test_a.py", "test", "modified", 3, 0), "edited_a_test", True),
        (FileRow("tests/test_a.py", "test", "modified", 3, 1), "edited_a_test", False),
        (FileRow("tests/test_a.py", "test", "removed", 0, 9), "edited_a_test", False),
        (FileRow("pyproject.toml", "config", "modified", 1, 0), "edited_a_test", False),
        (FileRow("notes.txt", "other", "added", 1, 0), "left_debris", False),
        (FileRow("repro.py", "source", "added", 1, 0), "left_debris", False),
        (FileRow("src/pkg/core/new.py", "source", "added", 1, 0), "left_debris", True),
        (FileRow("src/pkg/core/b.py", "source", "modified", 1, 0), "touched_unrelated_file", True),
        (FileRow("src/other/c.py", "source", "modified", 1, 0), "touched_unrelated_file", False),
        (FileRow("setup_helper.py", "source", "removed", 0, 5), "touched_unrelated_file", False),
    ],
)
def test_pitfalls(file: FileRow, pitfall: str, avoided: bool) -> None:
    assert grade(files=[file]).values[pitfall] is avoided


def test_a_change_much_larger_than_the_reference_is_not_bounded() -> None:
    assert grade(files=[FileRow(A, "source", "modified", 41, 0)]).values["bounded_change"] is True
    assert grade(files=[FileRow(A, "source", "modified", 42, 0)]).values["bounded_change"] is False


CONTROLS = next(check.sql for check in code_verifier().checks if check.id == "controls")


def held(*rows: ControlRow) -> bool | None:
    database = EpisodeDatabase()
    try:
        database.insert("controls", rows)
        database.seal()
        return database.truth(CONTROLS, where="test")
    finally:
        database.close()


@pytest.mark.parametrize("expected", ["passed", "failed"])
@pytest.mark.parametrize("after", [*STATUSES, NOT_RUN])
def test_the_check_of_control_runs_says_what_grading_goes_by(expected: str, after: str) -> None:
    row, good = ControlRow(0, "t.py::test", expected, after), ControlRow(1, "t.py::test", "passed", "passed")
    assert held(row) is held(row, good) is met(row)


def test_control_runs_that_were_not_drawn_hold_nothing() -> None:
    assert not held()
