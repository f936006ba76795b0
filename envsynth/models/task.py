"""Task: an admitted candidate. Only `envsynth.admission.admit` makes one."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, JsonValue

from envsynth.models.base import SCHEMA_VERSION, Model
from envsynth.models.candidate import Candidate
from envsynth.models.verifier import TestLists


class Tier(StrEnum):
    """How far a task was proven."""

    VERIFIED = "verified"
    CALIBRATED = "calibrated"


class ToolCall(Model):
    """One call of a tool."""

    tool: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class Trajectory(Model):
    """A labelled trajectory of a task's panel, with the outcome it must get."""

    label: str
    """`reference`, `alternative:*`, `idle`, `mutant:*` or `attack:*`."""
    calls: tuple[ToolCall, ...] = ()
    outcome: float = Field(ge=0, le=1)


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
    panel: tuple[Trajectory, ...]
    tier: Tier
    verdicts: tuple[VerdictSummary, ...]

    @property
    def id(self) -> str:
        """The candidate's id."""
        return self.candidate.id
