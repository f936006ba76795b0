"""Task: an admitted candidate. Only `envsynth.admission.admit` makes one."""

from __future__ import annotations

from enum import StrEnum

from envsynth.models.base import SCHEMA_VERSION, Model
from envsynth.models.candidate import Candidate
from envsynth.models.trajectory import Trajectory
from envsynth.models.verdict import Strength
from envsynth.models.verifier import Control, TestLists


class Tier(StrEnum):
    """How far a task was proven."""

    VERIFIED = "verified"
    CALIBRATED = "calibrated"


class VerdictSummary(Model):
    """What a task keeps of a verdict."""

    validator: str
    version: str
    status: str


class Task(Model):
    """An admitted candidate."""

    schema_version: int = SCHEMA_VERSION
    candidate: Candidate
    tests: TestLists | None
    """For workspaces: the measured lists."""
    controls: tuple[Control, ...] = ()
    """For workspaces: changed tests that a right solution fails."""
    strength: Strength = Strength()
    """How strong the grader was measured to be."""
    panel: tuple[Trajectory, ...]
    tier: Tier
    verdicts: tuple[VerdictSummary, ...]

    @property
    def id(self) -> str:
        """The candidate's id."""
        return self.candidate.id
