"""From two measured runs to the failing tests' code."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from envsynth.generators.repository.excerpt import Excerpt, Failing, Surroundings, make_excerpt
from envsynth.generators.repository.testcode import TestModule, parse_module, same
from envsynth.models import TestRecord, TestRun, TestStatus
from envsynth.runtime.testkeys import locate

Reader = Callable[[str], str | None]
"""The text of a path, or None."""


class FailToPass(NamedTuple):
    """A test that the solution turns from failing to passing."""

    record: TestRecord
    """From the run that passes."""
    before: TestRecord | None
    """From the run at the start; None where it was not even collected."""


class Excerpts(NamedTuple):
    """The code of failing tests."""

    shown: tuple[Excerpt, ...]
    unreadable: tuple[str, ...]
    """Tests that cannot be shown; what they demand cannot be told."""


def fail_to_pass(start: TestRun, reference: TestRun) -> list[FailToPass]:
    """Tests that pass with the solution and fail, or are absent, without it."""
    before = {record.key: record for record in start.records}
    return [
        FailToPass(record, before.get(record.key))
        for record in reference.records
        if record.status is TestStatus.PASSED
        and (before[record.key].status if record.key in before else TestStatus.ABSENT).fails
    ]


def counts(run: TestRun) -> dict[str, int]:
    """How many tests ended in each way."""
    found: dict[str, int] = {}
    for record in run.records:
        found[record.status.value] = found.get(record.status.value, 0) + 1
    return dict(sorted(found.items()))


def failing_functions(tests: Sequence[FailToPass], start: TestRun, paths: Iterable[str]) -> list[Failing]:
    """The test functions behind the failing ids, each once, in the order of the run."""
    known = set(paths)
    by_id = {record.id: record for record in start.records}
    found: dict[tuple[str, tuple[str, ...]], list[tuple[str, TestRecord | None]]] = {}
    for test in tests:
        place = locate(test.record.id, known)
        if place is not None:
            path, names, case = place
            found.setdefault((path, names), []).append((case, test.before or by_id.get(path)))
    functions = []
    for (path, names), cases in found.items():
        record = cases[0][1]
        own = record is not None and record.id != path
        functions.append(
            Failing(
                path, names, tuple(case for case, _ in cases if case), record.message if record and own else "",
                record.line if record and own else 0,
            )
        )  # fmt: skip
    return functions


def outside(tests: Sequence[FailToPass], paths: Iterable[str]) -> list[str]:
    """Ids of failing tests that stand in no file of the grader's, such as doctests of the source."""
    known = set(paths)
    return [test.record.id for test in tests if locate(test.record.id, known) is None]


def excerpts_of(functions: Iterable[Failing], new: Reader, old: Reader) -> Excerpts:
    """The code of the failing tests.

    Where a module could not even be imported, all its tests fail; those that are as they were at the start and
    need nothing new say nothing about the task and are left out, unless nothing else is there.
    """
    modules: dict[str, Surroundings | None] = {}
    telling: list[Excerpt] = []
    unchanged: list[Excerpt] = []
    unreadable: list[str] = []
    for test in functions:
        if test.path not in modules:
            modules[test.path] = _surroundings(test.path, new, old)
        around = modules[test.path]
        excerpt = make_excerpt(test, around) if around is not None else None
        if around is None or excerpt is None:
            if around is None or not _as_it_was(test, around):
                unreadable.append("::".join((test.path, *test.names)))
            continue
        (unchanged if _as_it_was(test, around) else telling).append(excerpt)
    return Excerpts(tuple(telling or unchanged), tuple(unreadable))


def _as_it_was(test: Failing, around: Surroundings) -> bool:
    """Whether a test that was not collected reads as it did at the start."""
    if test.line or around.old is None:
        return False
    now, before = around.module.find(test.names), around.old.find(test.names)
    return now is not None and before is not None and same(now[1], before[1])


def _surroundings(path: str, new: Reader, old: Reader) -> Surroundings | None:
    module = parse_module(path, new(path))
    if module is None:
        return None
    conftests: list[tuple[TestModule, TestModule | None]] = []
    folder = posixpath.dirname(path)
    while True:
        name = posixpath.join(folder, "conftest.py")
        found = parse_module(name, new(name))
        if found is not None:
            conftests.append((found, parse_module(name, old(name))))
        if not folder:
            break
        folder = posixpath.dirname(folder)
    return Surroundings(module, parse_module(path, old(path)), tuple(conftests))


def hidden_files_used(excerpts: Iterable[Excerpt], hidden_only: Mapping[str, object]) -> list[str]:
    """Data files that only the grader has and that the shown code opens by name."""
    names = {posixpath.basename(path): path for path in hidden_only if not path.endswith(".py")}
    return sorted({
        path for excerpt in excerpts for name, path in names.items()
        if any(name in text for text in (excerpt.code, *excerpt.helpers))
    })  # fmt: skip
