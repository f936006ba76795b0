"""From an episode's end to its grade: run the hidden tests, build the episode database, query it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ..errors import SandboxError
from .contract import JSON, Grade
from .controls import NOT_RUN, ControlRow, ControlRun, met, rows_of
from .edits import EditRow
from .episode_db import EpisodeDatabase, ListedTest, TraceRow
from .rewards import combined, outcome, process
from .roles import Roles
from .submission import FileRow, Submission
from .suspicion import Suspicion
from .testkeys import functions_of
from .testrun import TestReport
from .trees import Manifest

_SHOWN_TESTS = 50


class Evidence(NamedTuple):
    """Everything that a workspace's episode is graded on."""

    start: Manifest
    roles: Roles
    submission: Submission
    reference: Sequence[FileRow]
    tests: Sequence[ListedTest]
    controls: Sequence[ControlRow]
    suspicions: Sequence[Suspicion]
    trace: Sequence[TraceRow]
    edits: Sequence[EditRow]


def test_rows(lists: JSON, report: TestReport) -> list[ListedTest]:
    """The measured lists with what each test did now; a test that reported nothing is absent, never passed.

    Args:
        lists: the document of `models.TestLists`, or None for a task without tests.
        report: the run on the submission.
    """
    after: dict[str, str] = {}
    for result in report.results:
        if after.get(result.key, "passed") == "passed":
            after[result.key] = result.status
    kinds = (("F2P", "failed", "fail_to_pass"), ("P2P", "passed", "pass_to_pass"))
    return [
        ListedTest(key, kind, before, after.get(key, "absent"))
        for kind, before, name in kinds
        for key in sorted(set((lists or {}).get(name, ())))
    ]


class Run(Protocol):
    """Runs tests on the submission."""

    def __call__(self, files: Mapping[str, bytes], select: Sequence[str]) -> TestReport:
        """Run the functions of `select` (all where it is empty), with test files replaced by `files`."""


class Measured(NamedTuple):
    """What the tests said of a submission."""

    report: TestReport
    """The run that decided."""
    tests: list[ListedTest]
    controls: list[ControlRow]


def measure(run: Run, lists: JSON, controls: Sequence[ControlRun], *, quick: bool) -> Measured:
    """The control runs, up to the first that is not as it must be, and then all tests.

    The run that is known to hold the true tests comes last: what it could leave behind for the others, by whatever
    way, would tell them which tests were changed.

    Args:
        run: runs tests on the submission.
        lists: the document of `models.TestLists`, or None for a task without tests.
        controls: the runs that this grading has drawn.
        quick: as for `WorkspaceEpisode.grade`; what did not run is then absent.
    """
    if quick:
        controls = sorted(controls, key=lambda control: _demanded_failures(control, lists))
    proven: list[TestReport] = []
    for control in controls:
        proven.append(run(control.files, control.select))
        rows = rows_of(controls, proven)
        if not all(met(row) for row in rows if row.after != NOT_RUN):
            if quick:
                return Measured(proven[-1], test_rows(lists, proven[-1]._replace(results=())), rows)
            break
    first = functions_of((lists or {}).get("fail_to_pass", ())) if quick and not controls else ()
    if first:
        report = run({}, first)
        tests = test_rows(lists, report)
        if any(row.after != "passed" for row in tests if row.list == "F2P"):
            return Measured(report, tests, rows_of(controls, ()))
    report = run({}, ())
    return Measured(report, test_rows(lists, report), rows_of(controls, proven))


def _demanded_failures(control: ControlRun, lists: JSON) -> int:
    """How many fail-to-pass tests a run changes; the order by it, where the first unmet run decides.

    Who does not pass the true tests is found out by the first run then. It makes nothing harder for an attack: one that
    makes use of earlier runs knows that those came first that tell the most.
    """
    wanted = frozenset((lists or {}).get("fail_to_pass", ()))
    return sum(expected == "failed" and key in wanted for key, expected in control.expected.items())


def open_database(evidence: Evidence) -> EpisodeDatabase:
    """The sealed database of one episode."""
    database = EpisodeDatabase()
    database.insert("files", evidence.submission.rows)
    database.insert("reference_files", evidence.reference)
    database.insert("tests", evidence.tests)
    database.insert("controls", evidence.controls)
    database.insert("suspicions", evidence.suspicions)
    database.insert("trace", evidence.trace)
    database.insert("edits", evidence.edits)
    database.insert(
        "initial.files", ((path, evidence.roles.role(path), entry.blob) for path, entry in evidence.start.items())
    )
    database.seal()
    return database


def judge(evidence: Evidence, verifier: JSON, conditions: dict[str, bool], report: TestReport, *, where: str) -> Grade:
    """Every component of the grade.

    Args:
        evidence: what the queries see.
        verifier: the document of `models.Verifier`.
        conditions: what the gate may ask for, by name.
        report: the test run, for people.
        where: the task's id, for messages.

    Raises:
        SandboxError: the verifier cannot be evaluated; there is no grade.
    """
    database = open_database(evidence)
    try:
        checks = {check["id"]: _check(database, check, where) for check in verifier["checks"]}
        rubric = verifier.get("rubric", ())
        criteria = {line["id"]: _criterion(database, line, where) for line in rubric}
    finally:
        database.close()
    if not checks:
        raise SandboxError("the task has no checks", where=where, cause="anything would pass", retryable=False)
    result = outcome(checks)
    total = combined(verifier["reward"], conditions, result)
    return Grade(
        reward=total.reward,
        outcome=result,
        process=process((line["class"], criteria[line["id"]]) for line in rubric),
        gate=total.gate,
        checks=checks,
        criteria=criteria,
        penalties=total.penalties,
        detail=_detail(evidence, conditions, report),
        conditions=dict(conditions),
    )


def _check(database: EpisodeDatabase, check: JSON, where: str) -> bool:
    if check["kind"] != "sql":
        raise SandboxError(
            f"a workspace has no checks of kind {check['kind']}", where=f"{where}: check {check['id']}", retryable=False
        )
    return bool(database.truth(check["sql"], where=f"{where}: check {check['id']}"))


def _criterion(database: EpisodeDatabase, line: JSON, where: str) -> bool | None:
    if not line["sql"]:
        return None  # for a judge to say
    met = database.truth(line["sql"], where=f"{where}: criterion {line['id']}")
    return (not met) if met is not None and line["class"] == "pitfall" else met


def _detail(evidence: Evidence, conditions: dict[str, bool], report: TestReport) -> dict[str, JSON]:
    # What control runs ask is drawn anew by each grading, but equal episodes must have equal details: what surprised is
    # told only of a submission whose tests pass.
    forged = all(row.after == "passed" for row in evidence.tests)
    surprising = [row for row in evidence.controls if forged and row.after != NOT_RUN and not met(row)]
    return {
        "transcript": dict(conditions),
        "report": "complete" if report.complete else "timed out" if report.timed_out else "incomplete",
        "tests": {
            kind: {
                "passed": sum(row.after == "passed" for row in evidence.tests if row.list == kind),
                "not_passed": _shown(row for row in evidence.tests if row.list == kind and row.after != "passed"),
            }
            for kind in ("F2P", "P2P")
        },
        "controls": {
            "held": bool(evidence.controls) and all(met(row) for row in evidence.controls),
            "unexpected": [row._asdict() for row in surprising[:_SHOWN_TESTS]],
        },
        "suspicions": [row._asdict() for row in evidence.suspicions[:_SHOWN_TESTS]],
        "left_out": [
            {"path": ascii(path)[1:-1], "why": why} for path, why in evidence.submission.left_out[:_SHOWN_TESTS]
        ],
    }


def _shown(rows: Iterable[ListedTest]) -> list[JSON]:
    found = [{"id": row.id, "after": row.after} for row in rows]
    more = len(found) - _SHOWN_TESTS
    return found[:_SHOWN_TESTS] + ([{"id": f"and {more} more", "after": ""}] if more > 0 else [])
