"""Verdict: what a validator says of a candidate, with measured evidence."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from pydantic import Field, JsonValue

from envsynth.models.base import Model
from envsynth.models.trajectory import Trajectory
from envsynth.models.verifier import Control, TestLists


class VerdictStatus(StrEnum):
    """Only PASS and FAIL are final; ERROR and TIMEOUT are the environment's fault and are retried."""

    PASS = "PASS"
    FAIL = "FAIL"
    ERROR = "ERROR"
    TIMEOUT = "TIMEOUT"
    SKIP = "SKIP"

    @property
    def final(self) -> bool:
        """Whether the verdict stands until the validator's version changes."""
        return self in (VerdictStatus.PASS, VerdictStatus.FAIL)


class Finding(Model):
    """One thing a validator noticed."""

    rule: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """Rule id; the first finding of a FAIL is its reason in the funnel."""
    message: str
    where: str = ""


class Cost(Model):
    """What a piece of work took."""

    wall_s: float = Field(default=0.0, ge=0)
    cpu_s: float = Field(default=0.0, ge=0)
    disk_bytes: int = Field(default=0, ge=0)
    cached: bool = False
    """Whether the work was taken from the cache; the figures are then those of the first time."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            wall_s=self.wall_s + other.wall_s,
            cpu_s=self.cpu_s + other.cpu_s,
            disk_bytes=self.disk_bytes + other.disk_bytes,
            cached=self.cached and other.cached,
        )


class TestStatus(StrEnum):
    """Outcome of one test in one run."""

    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"
    ABSENT = "absent"

    @property
    def fails(self) -> bool:
        """Whether a fail-to-pass test may be so at the start; skips and expected failures say neither."""
        return self in (TestStatus.FAILED, TestStatus.ERROR, TestStatus.ABSENT)


class TestRecord(Model):
    """One test in one run."""

    __test__: ClassVar[bool] = False

    key: str
    """Normalised id: equal between runs even when the verbatim id holds addresses, times or random values."""
    id: str
    """As the runner spells it."""
    status: TestStatus
    message: str = ""
    """What a failing test said, cut to a few kilobytes."""
    line: int = 0
    """1-based line in the test's file where it failed; 0: unknown."""


class TestRun(Model):
    """One run of the tests on one state of a tree, in a fresh sandbox."""

    __test__: ClassVar[bool] = False

    state: str
    """`start`, `reference`, or a panel label."""
    repeat: int = Field(ge=0)
    complete: bool
    """Whether the report was finished; where it was not, unreported tests are absent, never passed."""
    exit_code: int | None = None
    records: tuple[TestRecord, ...] = ()
    trouble: str = ""
    """Why the run says nothing about the candidate (an environment error); empty when it does."""
    timed_out: bool = False
    output_tail: str = ""
    """Last kilobytes of what the run printed."""
    cost: Cost = Cost()


class Strength(Model):
    """How strong a task's grader was measured to be. A validator fills in what it measured; None: not measured."""

    attacks: int | None = Field(default=None, ge=0)
    """Attacks played; each must get outcome 0, or less than 1 where a utility grades the outcome."""
    attacks_worked: int | None = Field(default=None, ge=0)
    """Those that got more, and not by chance."""
    controls: int | None = Field(default=None, ge=0)
    """Changed tests that grading can tell apart from true ones."""
    controlled: float | None = Field(default=None, ge=0, le=1)
    """Share of the fail-to-pass tests with a control that looks like any other test."""
    mutants: int | None = Field(default=None, ge=0)
    """Wrong variants of the reference, without the provably equivalent ones."""
    killed: int | None = Field(default=None, ge=0)
    """Those that got outcome 0."""
    equivalents: int | None = Field(default=None, ge=0)
    """Variants that provably behave like the reference; in neither of the two figures above."""
    rewrites: int | None = Field(default=None, ge=0)
    """Behaviour-preserving variants of the reference; each must get outcome 1."""
    rewrites_rejected: int | None = Field(default=None, ge=0)
    """Those that did not."""

    @property
    def kill_rate(self) -> float | None:
        """Share of the mutants that the grader noticed."""
        return None if not self.mutants or self.killed is None else self.killed / self.mutants

    @property
    def false_reject_rate(self) -> float | None:
        """Share of the rewrites that the grader rejected."""
        return None if not self.rewrites or self.rewrites_rejected is None else self.rewrites_rejected / self.rewrites

    def __or__(self, other: Strength) -> Strength:
        """Both measurements; what `other` measured replaces what stands here."""
        return self.model_copy(update=other.model_dump(exclude_none=True))


class Verdict(Model):
    """What one validator says of one candidate."""

    validator: str
    version: str
    """The validator's; where it asked a model, with `+` and the beginning of the digest of what decides its answers."""
    status: VerdictStatus
    findings: tuple[Finding, ...] = ()
    evidence: dict[str, JsonValue] = Field(default_factory=dict)
    """Measured figures, for the catalog; no core code reads them."""
    tests: TestLists | None = None
    """What `execution` measured; admission puts it into the task."""
    controls: tuple[Control, ...] = ()
    """What `controls` measured; admission puts it into the task."""
    strength: Strength | None = None
    """What this validator measured of the grader's strength; admission puts the sum into the task."""
    panel: tuple[Trajectory, ...] = ()
    """Labelled trajectories to ship with the task."""
    runs: tuple[TestRun, ...] = ()
    cost: Cost = Cost()

    @property
    def reason(self) -> str:
        """The rule that decided, for the funnel."""
        return self.findings[0].rule if self.findings else self.status.value.lower()
