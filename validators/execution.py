"""`execution`: the start tree must fail, the reference must pass, repeatedly, each run in a fresh sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from envsynth.judging import tried_run
from envsynth.models import (
    Candidate,
    Cost,
    Finding,
    Source,
    TestLists,
    TestRun,
    TestStatus,
    Tree,
    Verdict,
    VerdictStatus,
)  # fmt: skip
from envsynth.panel import reference_tree
from envsynth.protocols import Context
from envsynth.timing import Stopwatch

__all__ = ["Execution"]

START_RUNS = 2
REFERENCE_RUNS = 3


class Measured(NamedTuple):
    """What the runs say together."""

    lists: TestLists
    broken: tuple[str, ...]
    """Tests that passed at the start and never with the reference."""


class Execution:
    """Start ×2 must fail, reference ×3 must pass; tests that flicker leave both lists."""

    name = "execution"
    version = "1"
    order = 30

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """Run, compare, and list the tests; a missing report is never a pass."""
        watch = Stopwatch()
        start = context.blobs.get_tree(candidate.workspace.tree)
        reference = reference_tree(candidate, context.blobs)
        runs: list[TestRun] = []
        # Alternating, so that a candidate without a single fail-to-pass test costs two runs and not five.
        plan: list[tuple[str, Tree, int]] = []
        for repeat in range(max(START_RUNS, REFERENCE_RUNS)):
            plan += [("reference", reference, repeat)] if repeat < REFERENCE_RUNS else []
            plan += [("start", start, repeat)] if repeat < START_RUNS else []
        for state, tree, repeat in plan:
            run = _run(candidate, tree, (state, repeat), source, context)
            runs.append(run)
            verdict = self._early(runs)
            if verdict is not None:
                return self._finish(verdict, runs, watch)
        measured = measure(
            [run for run in runs if run.state == "start"], [run for run in runs if run.state == "reference"]
        )
        return self._finish(self._judge(measured), runs, watch, measured)

    def _early(self, runs: Sequence[TestRun]) -> Verdict | None:
        """A verdict that further runs could not change."""
        last = runs[-1]
        if last.trouble:
            status = VerdictStatus.TIMEOUT if last.timed_out else VerdictStatus.ERROR
            return self._verdict(status, "environment_error", last.trouble)
        if last.state == "reference":
            if last.timed_out:
                return self._verdict(VerdictStatus.FAIL, "tests_time_out", "the tests hang with the reference applied")
            if not last.complete:
                message = f"the tests end early with the reference applied (exit code {last.exit_code})"
                return self._verdict(VerdictStatus.FAIL, "reference_report_incomplete", message)
            if not any(record.status is TestStatus.PASSED for record in last.records):
                return self._verdict(VerdictStatus.FAIL, "tests_pass_nothing", "no test passes with the reference")
        if len(runs) == 2 and not measure([runs[1]], [runs[0]]).lists.fail_to_pass:
            return self._verdict(VerdictStatus.FAIL, "no_fail_to_pass", "no test fails at the start and passes after")
        return None

    def _judge(self, measured: Measured) -> Verdict:
        lists = measured.lists
        if not lists.fail_to_pass:
            return self._verdict(
                VerdictStatus.FAIL, "fail_to_pass_flickers", "every fail-to-pass test flickers", tests=lists
            )
        return self._verdict(VerdictStatus.PASS, tests=lists)

    def _verdict(
        self, status: VerdictStatus, rule: str = "", message: str = "", *, tests: TestLists | None = None
    ) -> Verdict:
        findings = (Finding(rule=rule, message=message),) if rule else ()
        return Verdict(validator=self.name, version=self.version, status=status, findings=findings, tests=tests)

    def _finish(
        self, verdict: Verdict, runs: Sequence[TestRun], watch: Stopwatch, measured: Measured | None = None
    ) -> Verdict:
        fresh = [run for run in runs if not run.cost.cached]
        own = watch.cost()
        findings = list(verdict.findings)
        evidence: dict[str, object] = {"runs": len(runs)}
        if measured is not None:
            lists = measured.lists
            evidence |= {
                "fail_to_pass": len(lists.fail_to_pass),
                "pass_to_pass": len(lists.pass_to_pass),
                "flickering": list(lists.flickering),
                "broken_by_reference": list(measured.broken),
            }
            findings += [Finding(rule="flickering", message="differs between equal runs", where=key)
                         for key in lists.flickering]  # fmt: skip
            findings += [Finding(rule="broken_by_reference", message="passes at the start, not after", where=key)
                         for key in measured.broken]  # fmt: skip
        cost = Cost(wall_s=own.wall_s, cpu_s=own.cpu_s, disk_bytes=sum(run.cost.disk_bytes for run in fresh))
        return verdict.model_copy(
            update={"runs": tuple(runs), "findings": tuple(findings), "evidence": evidence, "cost": cost}
        )


def _run(candidate: Candidate, tree: Tree, which: tuple[str, int], source: Source, context: Context) -> TestRun:
    state, repeat = which
    return tried_run(lambda: context.run_tests(candidate.workspace, tree, state, repeat, source))


def measure(start: Sequence[TestRun], reference: Sequence[TestRun]) -> Measured:
    """FAIL_TO_PASS and PASS_TO_PASS from per-test statuses; what is not reported is absent."""
    before, after = [_statuses(run) for run in start], [_statuses(run) for run in reference]
    fail_to_pass, pass_to_pass, flickering, broken = [], [], [], []
    for key in sorted({key for statuses in (*before, *after) for key in statuses}):
        was, became = _seen(key, before), _seen(key, after)
        if len(was) > 1 or len(became) > 1:
            flickering.append(key)
        elif became == {TestStatus.PASSED}:
            (status,) = was
            if status.fails:
                fail_to_pass.append(key)
            elif status is TestStatus.PASSED:
                pass_to_pass.append(key)
        elif was == {TestStatus.PASSED}:
            broken.append(key)
    lists = TestLists(fail_to_pass=tuple(fail_to_pass), pass_to_pass=tuple(pass_to_pass), flickering=tuple(flickering))
    return Measured(lists=lists, broken=tuple(broken))


def _statuses(run: TestRun) -> Mapping[str, TestStatus]:
    return {record.key: record.status for record in run.records}


def _seen(key: str, runs: Sequence[Mapping[str, TestStatus]]) -> set[TestStatus]:
    return {statuses.get(key, TestStatus.ABSENT) for statuses in runs}
