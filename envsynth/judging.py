"""What validators share: the lists measured below them, runs that say something, and the verdict with its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import JsonValue

from envsynth.errors import SandboxError, SandboxTimeout
from envsynth.models import Finding, Strength, TestLists, TestRun, Verdict, VerdictStatus
from envsynth.protocols import Validator
from envsynth.timing import Stopwatch

TRIES = 3
"""How often a run is tried that failed for the environment's sake."""


def measured_tests(earlier: Iterable[Verdict]) -> TestLists | None:
    """The tests that decide, as far as one of the verdicts measured them."""
    return next((verdict.tests for verdict in earlier if verdict.tests is not None), None)


def nothing_measured(by: Validator, watch: Stopwatch) -> Verdict:
    """SKIP: no step below says which tests decide."""
    finding = Finding(rule="no_tests_measured", message="no earlier step says which tests decide")
    return verdict_of(by, VerdictStatus.SKIP, [finding], watch)


def tried_run(run: Callable[[], TestRun]) -> TestRun:
    """The first of at most `TRIES` runs that the environment did not disturb, else the last."""
    result = run()
    for _ in range(TRIES - 1):
        if not result.trouble:
            break
        result = run()
    return result


def settled_run(run: Callable[[], TestRun], where: str) -> TestRun:
    """A run that says something about the candidate, of at most `TRIES`.

    Raises:
        SandboxError, SandboxTimeout: each failed for the environment's sake.
    """
    result = tried_run(run)
    if not result.trouble:
        return result
    error = SandboxTimeout if result.timed_out else SandboxError
    raise error("the tests could not be run", where=where, cause=result.trouble)


def verdict_of(
    by: Validator,
    status: VerdictStatus,
    findings: Sequence[Finding],
    watch: Stopwatch,
    *,
    strength: Strength | None = None,
    evidence: Mapping[str, JsonValue] | None = None,
) -> Verdict:
    """What a validator says of a candidate.

    Args:
        by: the validator.
        status: what it came to.
        findings: the reasons, the decisive one first.
        watch: started when the validator was asked; its time is the verdict's cost.
        strength: what it measured of the grader's strength.
        evidence: measured figures, for the catalog.
    """
    return Verdict(
        validator=by.name, version=by.version, status=status, findings=tuple(findings), strength=strength,
        evidence=dict(evidence or {}), cost=watch.cost(),
    )  # fmt: skip
