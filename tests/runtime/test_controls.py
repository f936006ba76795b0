"""Control runs: what they demand, and what they catch."""

from __future__ import annotations

import random

import pytest
import tiny_task as tiny
from hypothesis import given
from hypothesis import strategies as st

from envsynth.runtime.controls import changed_file, met, plan, rows_of
from envsynth.runtime.grading import measure
from envsynth.runtime.play import play
from envsynth.runtime.testrun import TestReport as Report
from envsynth.runtime.testrun import TestResult as Result
from envsynth.runtime.workspace import WorkspaceEpisode


def control(function: str, text: str = "x\n", *, keys: tuple[str, ...] = (), first: int = 1, last: int = 1) -> dict:
    return {"path": function.partition("::")[0], "function": function, "first": first, "last": last, "text": text,
            "kind": "literal", "keys": list(keys or (function,))}  # fmt: skip


def report(**after: str) -> Report:
    results = tuple(Result(key, key, status, "", 0) for key, status in after.items())
    return Report(True, 0, results, "", False, "", 0.0, 0.0)


def drawn(controls: list[dict], seed: int, others: tuple[str, ...] = ()) -> list:
    lists = {"fail_to_pass": [key for one in controls for key in one["keys"] if key not in others]}
    return plan(controls, lists, lambda _: b"old\n", random.Random(seed))


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_every_function_is_changed_at_least_once_and_left_alone_at_least_once(count: int, seed: int) -> None:
    runs = drawn([control(f"t.py::test_{n}") for n in range(count)], seed)
    assert len(runs) == {1: 6, 2: 4, 3: 3, 4: 3}.get(count, 2)
    for key in {key for run in runs for key in run.expected}:
        assert {run.expected[key] for run in runs} == {"passed", "failed"}
    # A file without a change cannot be told from one with a change by whether it was laid.
    assert all(set(run.files) == {"t.py"} for run in runs)
    assert all(set(run.expected) <= set(run.select) for run in runs)


def test_tests_that_passed_before_are_asked_too_and_do_not_make_guessing_easier() -> None:
    others = tuple(f"t.py::test_old_{n}" for n in range(30))
    runs = drawn([control(name) for name in ("t.py::test", *others)], 3, others)
    assert len(runs) == 6
    assert all(len(run.expected) == 7 for run in runs)


def test_without_controls_there_is_nothing_to_run() -> None:
    assert drawn([], 0) == []
    assert plan([control("t.py::test")], None, lambda _: b"", random.Random(0)) == []


def test_which_runs_change_a_test_is_a_secret_of_each_grading() -> None:
    one = [control("t.py::test")]
    seen = {tuple(run.expected["t.py::test"] for run in drawn(one, n)) for n in range(900)}
    assert len(seen) == 62


def test_a_change_is_asked_about_the_cases_it_was_measured_on_alone() -> None:
    both = control("t.py::test", keys=("t.py::test[1]", "t.py::test[2]"))
    half = control("t.py::test", keys=("t.py::test[2]",))
    seen = [run.expected for n in range(50) for run in drawn([both, half], n)]
    assert {"t.py::test[2]": "failed"} in seen
    assert {"t.py::test[1]": "failed", "t.py::test[2]": "failed"} in seen
    assert {"t.py::test[1]": "passed", "t.py::test[2]": "passed"} in seen


def test_functions_of_one_file_are_replaced_together() -> None:
    these = [control("t.py::a", "A\nA\n", first=2, last=2), control("t.py::c", "C\n", first=4, last=5)]
    assert changed_file(b"1\n2\n3\n4\n5\n6\n", these) == b"1\nA\nA\n3\nC\n6\n"
    assert changed_file("1\r\nä\r\n".encode(), [control("t.py::a", "é\r\n", first=2, last=2)]) == "1\r\né\r\n".encode()


def test_a_test_that_disappears_has_not_failed() -> None:
    runs = drawn([control("t.py::test")], 1)
    rows = rows_of(runs, [report()] * len(runs))
    assert {row.after for row in rows} == {"absent"}
    assert not any(met(row) for row in rows)
    assert {row.after for row in rows_of(runs, [])} == {"not run"}
    assert not any(met(row) for row in rows_of(runs, []))


@pytest.mark.parametrize("functions", [1, 2, 4, 9])
def test_a_quick_grading_asks_first_what_the_idle_cannot_pass(functions: int) -> None:
    keys = [f"t.py::test_{number}" for number in range(functions)]
    controls, lists = [control(key) for key in keys], {"fail_to_pass": keys, "pass_to_pass": []}
    lengths = {False: 0, True: 0}
    for seed in range(50):
        for quick in lengths:
            asked: list[tuple[str, ...]] = []

            def run(files: dict[str, bytes], select: tuple[str, ...], asked: list[tuple[str, ...]] = asked) -> Report:
                asked.append(tuple(select))
                return report(**dict.fromkeys(keys, "failed"))

            drawn_runs = plan(controls, lists, lambda _: b"old\n", random.Random(seed))
            measured = measure(run, lists, drawn_runs, quick=quick)
            assert not all(met(row) for row in measured.controls)
            lengths[quick] += len(asked)
            # A whole grading keeps the secret order, and ends with the true tests.
            assert quick or asked[-1] == ()
            assert not quick or len(measured.controls) == sum(len(one.expected) for one in drawn_runs)
    assert lengths[True] == 50
    assert lengths[False] >= 100


ORACLE = """\
import ast, linecache, sys


def total(prices, discount=0):
    \"\"\"Whatever the calling line compares with.\"\"\"
    frame = sys._getframe(1)
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    try:
        return ast.literal_eval(line.split("==")[1].strip())
    except (IndexError, SyntaxError, ValueError):
        return sum(prices)
"""
EQUAL_TO_ALL = """\
class Yes:
    def __eq__(self, other): return True
    def __hash__(self): return 1


def total(prices, discount=0):
    return Yes()
"""
ONLY_IN_THE_WHOLE_SUITE = (
    """\
import sys
import _pytest.python

if not any("test_prices" in word for word in sys.argv):
    _pytest.python.Function.runtest = lambda self: None
"""
    + tiny.BROKEN
)


@pytest.mark.sandbox
@pytest.mark.parametrize("source", [ORACLE, EQUAL_TO_ALL, ONLY_IN_THE_WHOLE_SUITE])
def test_passing_by_other_means_than_being_right_is_seen(episode: WorkspaceEpisode, source: str) -> None:
    grade = play(episode, [{**tiny.SOLVE, "arguments": {"path": "shop/prices.py", "content": source}}, tiny.SUBMIT])
    assert (grade.checks["fail_to_pass"], grade.checks["pass_to_pass"]) == (True, True)
    assert not grade.checks["controls"]
    assert grade.outcome == 0.0
    assert grade.detail["controls"]["unexpected"]


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_quick_grade_leaves_out_what_cannot_change_the_outcome(episode: WorkspaceEpisode) -> None:
    episode.reset(0)
    quick = episode.grade(quick=True)
    assert (quick.outcome, quick.checks["pass_to_pass"]) == (0.0, False)
    assert quick.detail["tests"]["P2P"]["not_passed"][0]["after"] == "absent"
    episode.call("write_file", tiny.SOLVE["arguments"])
    assert episode.grade(quick=True).outcome == episode.grade().outcome == 1.0
