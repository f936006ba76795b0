"""Verifier: what ships inside a task and grades an agent."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from envsynth.models.base import Model


class Check(Model):
    """An executable end-state test: SQL over the episode database whose first value must be true."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    kind: Literal["sql", "diff", "invariants"] = "sql"
    sql: str = ""
    """For kind `sql`: one SELECT; NULL, zero and no row are false."""


class CriterionClass(StrEnum):
    """How a criterion counts. A pitfall is met when its query is true, and that is bad."""

    ESSENTIAL = "essential"
    IMPORTANT = "important"
    OPTIONAL = "optional"
    PITFALL = "pitfall"


class Criterion(Model):
    """One graded line of a process rubric."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    class_: CriterionClass = Field(alias="class")
    sql: str
    """One SELECT; its first value true, false, or NULL for not applicable."""
    evidence: str
    """One SELECT whose rows show why."""
    text: str
    """The criterion in words."""

    model_config = {**Model.model_config, "populate_by_name": True}


class RewardSpec(Model):
    """How components combine, in words and data."""

    combine: Literal["gate*outcome"] = "gate*outcome"
    """`reward = gate × outcome`; the process score is reported beside it and never added."""
    gate: tuple[Literal["valid_transcript", "within_budget"], ...] = ("valid_transcript", "within_budget")
    """The gate is 1 when all of these hold, else 0."""


class TestLists(Model):
    """What the measured runs say about each test. Ids are normalised keys."""

    __test__: ClassVar[bool] = False

    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    flickering: tuple[str, ...] = ()
    """Differed between identical runs; in neither list."""


class Control(Model):
    """A change to one hidden test after which every right solution must fail it.

    Grading runs fail-to-pass tests again, some of them so changed, and demands that just these fail: a submission that
    makes its tests pass by any other way than being right makes these pass too.
    """

    path: str
    """Test file, relative."""
    function: str
    """The test as its runner spells it, without parameters."""
    first: int = Field(ge=1)
    """1-based first line of the function in the hidden file."""
    last: int = Field(ge=1)
    """1-based last line, inclusive."""
    text: str
    """What stands there instead, with its line ends."""
    kind: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """How the test was changed, such as `literal` or `negated`."""
    keys: tuple[str, ...]
    """Fail-to-pass keys of the function that were measured to fail with the reference; never empty."""


class Budget(Model):
    """What an episode may spend."""

    turns: int = Field(default=100, ge=1)
    """Tool calls."""
    command_s: float = Field(default=120.0, gt=0)
    """Wall seconds of one shell command."""


class Verifier(Model):
    """Checks and rubric of a task."""

    checks: tuple[Check, ...]
    rubric: tuple[Criterion, ...] = ()
    reward: RewardSpec = RewardSpec()

    @field_validator("checks")
    @classmethod
    def _not_empty(cls, checks: tuple[Check, ...]) -> tuple[Check, ...]:
        if not checks:
            raise ValueError("a verifier without checks would pass anything")
        return checks
