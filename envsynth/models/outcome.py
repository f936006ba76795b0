"""Outcome: everything one lead came to. The unit that is stored, resumed and merged."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from envsynth.models.base import Model
from envsynth.models.candidate import Candidate, Dropped, Lead
from envsynth.models.task import Task
from envsynth.models.verdict import Cost, Verdict, VerdictStatus


class OutcomeStatus(StrEnum):
    """How far a lead came."""

    ADMITTED = "admitted"
    REJECTED = "rejected"
    """A validator said FAIL."""
    DROPPED = "dropped"
    """No candidate was made of it."""
    OWED = "owed"
    """The environment failed; another build tries again."""


class Outcome(Model):
    """What became of a lead."""

    lead: Lead
    ladder: str
    """Digest of the versions and thresholds of everything that judged; another ladder means another judgement."""
    candidate: Candidate | None = None
    dropped: Dropped | None = None
    verdicts: tuple[Verdict, ...] = ()
    task: Task | None = None
    trouble: str = ""
    """The infrastructure error, where one kept the lead from a final outcome."""
    cost: Cost = Field(default_factory=Cost)

    @property
    def status(self) -> OutcomeStatus:
        """How far the lead came."""
        if self.task is not None:
            return OutcomeStatus.ADMITTED
        if any(verdict.status is VerdictStatus.FAIL for verdict in self.verdicts):
            return OutcomeStatus.REJECTED
        if self.dropped is not None and not self.dropped.retryable:
            return OutcomeStatus.DROPPED
        return OutcomeStatus.OWED

    @property
    def detail(self) -> str:
        """Why, in one line for people; empty for an admitted lead."""
        if self.task is not None:
            return ""
        stopped = self._stopped_by
        if stopped is not None and stopped.findings:
            return stopped.findings[0].message
        return self.dropped.detail if self.dropped is not None else self.trouble

    @property
    def reason(self) -> str:
        """Short reason for the funnel; empty for an admitted lead."""
        if self.task is not None:
            return ""
        if self._stopped_by is not None:
            return self._stopped_by.reason
        if self.dropped is not None:
            return self.dropped.reason
        return "environment_error"

    @property
    def _stopped_by(self) -> Verdict | None:
        """The verdict that ended the climb: what is skipped does not."""
        climbs = (VerdictStatus.PASS, VerdictStatus.SKIP)
        return next((verdict for verdict in self.verdicts if verdict.status not in climbs), None)
