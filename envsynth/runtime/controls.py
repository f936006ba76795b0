"""Control runs: shows that a submission's tests can still fail, so that passing them means something.

Code under test runs in the process that runs the tests, and could make every test pass from inside: by replacing the
runner's functions, by answering every comparison with yes, by reading what the calling test expects. So the
fail-to-pass tests and some others run several times in fresh processes before the whole suite does, with a secret part
of them changed so that every right solution must fail just these (see `models.Control`). Whoever passes a changed test,
or fails an unchanged one, does not pass by being right. The changed and the true test have one name and differ in what
they assert alone, so telling them apart takes knowing what is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from .contract import JSON
from .testrun import TestReport

MAX_FUNCTIONS = 24
"""Fail-to-pass tests that one grading puts to the question; more are drawn from."""
MAX_OTHERS = 6
"""The same for tests that passed before: who breaks them could forge just these."""
_RUNS = ((0, 0), (1, 6), (2, 4), (4, 3))
"""Up to so many functions to pass, so many runs: the chance to guess all is 1 in 62 with one, and 1 in 32 or less."""
FEWEST_RUNS = 2
MOST_RUNS = max(runs for _, runs in _RUNS)
NOT_RUN = "not run"


class ControlRow(NamedTuple):
    """A row of the episode database's `controls`."""

    run: int
    id: str
    """Key of a test."""
    expected: str
    """`passed` where the test was left as it is, `failed` where it was changed."""
    after: str
    """What it did: a test's status, or `not run`."""


class ControlRun(NamedTuple):
    """One run to be made."""

    files: dict[str, bytes]
    """The test files, with the changes of this run."""
    select: tuple[str, ...]
    """The functions to run."""
    expected: dict[str, str]
    """Key → `passed` or `failed`."""


def plan(
    controls: Sequence[JSON], lists: JSON, hidden: Callable[[str], bytes], draw: random.Random
) -> list[ControlRun]:
    """Draw the runs of one grading.

    Each function is changed in one run at least and left alone in one at least, so that neither forging everywhere nor
    being honest in control runs is enough. With one function to pass there are six runs: guessing is right once in 62
    times.

    Args:
        controls: documents of `models.Control`.
        lists: document of `models.TestLists`, or None.
        hidden: content of a hidden file by path.
        draw: source of the secret; a system one when grading.
    """
    wanted = frozenset((lists or {}).get("fail_to_pass", ()))
    by_function: dict[str, list[JSON]] = {}
    for control in controls:
        by_function.setdefault(control["function"], []).append(control)
    demanded = [name for name, those in sorted(by_function.items()) if wanted.intersection(those[0]["keys"])]
    others = sorted(by_function.keys() - set(demanded))
    count = _runs(len(demanded))
    functions = [*_drawn(demanded, MAX_FUNCTIONS, draw), *_drawn(others, MAX_OTHERS, draw)]
    patterns = {name: _pattern(count, draw) for name in functions if count}
    runs = []
    for number in range(count):
        chosen = {
            name: draw.choice(by_function[name]) if patterns[name][number] else None for name in functions
        }  # fmt: skip
        runs.append(_run(chosen, by_function, hidden))
    return runs


def _drawn(names: Sequence[str], most: int, draw: random.Random) -> list[str]:
    return sorted(draw.sample(names, most)) if len(names) > most else list(names)


def _runs(functions: int) -> int:
    return next((runs for most, runs in _RUNS if functions <= most), FEWEST_RUNS)


def _pattern(count: int, draw: random.Random) -> list[bool]:
    """In which runs a function is changed: not in all and not in none."""
    number = draw.randrange(1, 2**count - 1)
    return [bool(number >> place & 1) for place in range(count)]


def _run(
    chosen: Mapping[str, JSON | None], by_function: Mapping[str, list[JSON]], hidden: Callable[[str], bytes]
) -> ControlRun:
    changes: dict[str, list[JSON]] = {}
    expected: dict[str, str] = {}
    for name, control in chosen.items():
        for known in by_function[name]:
            expected.update(dict.fromkeys(known["keys"], "passed"))
            changes.setdefault(known["path"], [])
        if control is not None:
            # Only what this change was measured on is asked about: of a parametrised test it may spare some cases.
            for key in {key for known in by_function[name] for key in known["keys"]} - set(control["keys"]):
                del expected[key]
            expected.update(dict.fromkeys(control["keys"], "failed"))
            changes[control["path"]].append(control)
    # Files without a change are laid as well: their dates and places would tell them from changed ones.
    files = {path: changed_file(hidden(path), these) for path, these in changes.items()}
    return ControlRun(files, tuple(chosen), expected)


def changed_file(content: bytes, controls: Iterable[JSON]) -> bytes:
    """A test file with functions replaced; lines end at LF, as in the numbers of `models.Control`."""
    lines = content.split(b"\n")
    for control in sorted(controls, key=lambda control: int(control["first"]), reverse=True):
        text = control["text"].encode("utf-8").removesuffix(b"\n")
        lines[control["first"] - 1 : control["last"]] = text.split(b"\n")
    return b"\n".join(lines)


def rows_of(runs: Sequence[ControlRun], reports: Sequence[TestReport]) -> list[ControlRow]:
    """What the runs say; a run without a report was not made."""
    rows = []
    for number, run in enumerate(runs):
        after: dict[str, str] = {}
        if number < len(reports):
            after = {result.key: result.status for result in reports[number].results}
        missing = "absent" if number < len(reports) else NOT_RUN
        rows += [ControlRow(number, key, run.expected[key], after.get(key, missing)) for key in sorted(run.expected)]
    return rows


def met(row: ControlRow) -> bool:
    """Whether a test did what it must; a changed one has to fail, and not to disappear."""
    return row.after == "passed" if row.expected == "passed" else row.after in ("failed", "error")
