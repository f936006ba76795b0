"""Runs that the environment disturbs are tried again, and never taken for a word on the candidate."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from envsynth.errors import SandboxError, SandboxTimeout
from envsynth.judging import TRIES, measured_tests, settled_run, tried_run
from envsynth.models import TestLists, TestRun, Verdict, VerdictStatus


def runs(troubles: int, *, timed_out: bool = False) -> Callable[[], TestRun]:
    """Runs of which so many fail; `repeat` says which it is."""
    made: list[TestRun] = []

    def run() -> TestRun:
        trouble = "no disk" if len(made) < troubles else ""
        made.append(TestRun(state="x", repeat=len(made), complete=True, trouble=trouble, timed_out=timed_out))
        return made[-1]

    return run


@pytest.mark.parametrize(("troubles", "repeat"), [(0, 0), (1, 1), (TRIES - 1, TRIES - 1), (TRIES + 1, TRIES - 1)])
def test_the_first_undisturbed_run_counts_else_the_last(troubles: int, repeat: int) -> None:
    assert tried_run(runs(troubles)).repeat == repeat


def test_a_run_that_never_settles_is_the_environments_fault() -> None:
    assert settled_run(runs(TRIES - 1), "x").trouble == ""
    with pytest.raises(SandboxError, match="no disk"):
        settled_run(runs(TRIES), "x")
    with pytest.raises(SandboxTimeout):
        settled_run(runs(TRIES, timed_out=True), "x")


def test_the_lists_are_those_of_the_first_that_measured_any() -> None:
    lists = TestLists(fail_to_pass=("t",), pass_to_pass=())
    silent = Verdict(validator="static", version="1", status=VerdictStatus.PASS)
    measured = Verdict(validator="execution", version="1", status=VerdictStatus.PASS, tests=lists)
    assert measured_tests([silent, measured]) == lists
    assert measured_tests([silent]) is None
