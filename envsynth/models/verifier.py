"""Verifier: what ships inside a task and grades an agent."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, JsonValue, field_validator, model_validator

from envsynth.models.base import Model

_COMPONENT = re.compile(r"reward|outcome|process|gate|(check|criterion|gate|penalty)\..+")
"""Names in a `runtime.rewards.reward_vector`."""


class ChangedRow(Model):
    """A row that the episode must have changed."""

    key: tuple[JsonValue, ...]
    """Values of the table's key columns."""
    values: dict[str, JsonValue]
    """New values by column; every changed column that is compared must be here."""


def _changed(value: Any) -> Any:
    """A mapping `key: {column: value}` as a list, for tables with one key column."""
    if isinstance(value, Mapping):
        return [{"key": [key], "values": values} for key, values in value.items()]
    return value


class TableChange(Model):
    """What the episode must have done to one table; nothing else may have happened to it."""

    added: tuple[dict[str, JsonValue], ...] = ()
    """New rows, each by column; columns that are not named are not compared."""
    changed: Annotated[tuple[ChangedRow, ...], BeforeValidator(_changed)] = ()
    removed: tuple[tuple[JsonValue, ...] | dict[str, JsonValue], ...] = ()
    """Keys of the rows that are gone; of a table without a key, the rows themselves, each by column."""


class Check(Model):
    """An executable end-state test.

    `sql`: a query over the episode database whose first value must be true. `diff` (worlds): the exact change from
    the initial state, compared in this order: changed tables, counts, columns, values, answer. `invariants` (worlds):
    none of the world's invariants is violated.
    """

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    kind: Literal["sql", "diff", "invariants"] = "sql"
    sql: str = ""
    """For kind `sql`: one SELECT; NULL, zero and no row are false."""
    expect: dict[str, TableChange] = Field(default_factory=dict)
    """For kind `diff`: by table; tables that are not named must be unchanged, unless they are tolerated."""
    answer: dict[str, JsonValue] | None = None
    """For kind `diff`: the submitted answer by key; None: it is not compared."""

    @model_validator(mode="after")
    def _kind_fits(self) -> Check:
        if (self.kind == "sql") != bool(self.sql):
            raise ValueError(f"check {self.id}: SQL belongs to kind `sql`, and to no other")
        if self.kind != "diff" and (self.expect or self.answer is not None):
            raise ValueError(f"check {self.id}: only kind `diff` expects changes or an answer")
        return self


class CriterionClass(StrEnum):
    """How a criterion counts. A pitfall is met when its query is true, and that is bad."""

    ESSENTIAL = "essential"
    IMPORTANT = "important"
    OPTIONAL = "optional"
    PITFALL = "pitfall"


class Criterion(Model):
    """One graded line of a process rubric: a query decides it or, where a prompt stands instead, a judge.

    A judge criterion does not apply where no judge speaks.
    """

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    class_: CriterionClass = Field(alias="class")
    sql: str = ""
    """One SELECT; its first value true, false, or NULL for not applicable. Empty: a judge decides."""
    evidence: str
    """One SELECT whose rows show why; a judge sees them."""
    text: str
    """The criterion in words."""
    prompt: str = ""
    """Of a judge criterion: what a judge is asked of the episode; of a pitfall, whether it was fallen into."""

    model_config = {**Model.model_config, "populate_by_name": True}

    @model_validator(mode="after")
    def _one_decides(self) -> Criterion:
        if bool(self.sql) == bool(self.prompt):
            raise ValueError(f"criterion {self.id}: either a query decides it, or a judge who is asked its prompt")
        return self


class GroupSpec(Model):
    """What a trainer is to learn from a group of attempts at the task: the steps of `runtime.groups.learned`."""

    weights: dict[str, float] = Field(default_factory=lambda: {"reward": 1.0}, min_length=1)
    """Of components (`reward`, which must be one, `process`, `check.ID`, ...), larger than 0: each is normalised in its
    group on its own, then they are summed so, the others as far as no wrong attempt comes out above a right one. With
    `reward` alone that is GRPO."""
    scaled: bool = True
    """False: advantages are not divided by the standard deviation of their group."""
    tokens: int | None = Field(default=None, ge=1)
    """Budget of tokens that the policy may write; an attempt that takes more has the reward -1. None: unlimited."""
    length: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """What the bonus for being short is multiplied by before it is added to `reward`; less is where it would bring a
    right attempt down to a wrong one."""
    ranked_by: Literal["", "process", "short"] = ""
    """By what advantage is moved among the attempts that passed, their sum being kept; empty: it is not."""
    spread: float = Field(default=0.5, ge=0, le=1)
    """How much of it is moved."""

    @field_validator("weights")
    @classmethod
    def _weigh_what_there_is(cls, weights: dict[str, float]) -> dict[str, float]:
        unknown = [name for name in weights if not _COMPONENT.fullmatch(name)]
        if unknown:
            raise ValueError(
                f"{unknown[0]!r} is no component, such as reward, outcome, process, check.ID, criterion.ID"
            )
        if not all(math.isfinite(weight) and weight > 0 for weight in weights.values()):
            raise ValueError("a weight is larger than 0 and finite; leave out what does not count")
        if "reward" not in weights:
            raise ValueError(
                "`reward` must be among them: without it wrong attempts may count for more than right ones"
            )
        return weights


class RewardSpec(Model):
    """How components combine, as data; `runtime.rewards.in_words` says it in words.

    `reward = gate × outcome`, plus the penalties. The process score is reported beside it and never added.
    """

    combine: Literal["gate*outcome"] = "gate*outcome"
    gate: tuple[Literal["valid_transcript", "within_budget"], ...] = ("valid_transcript", "within_budget")
    """The gate is 1 when all of these hold, else 0."""
    overdrawn: Literal[-1, 0] = 0
    """The reward of an episode that overdraws its budget of calls: -1 makes giving up better than going on for ever."""
    group: GroupSpec = GroupSpec()

    @model_validator(mode="after")
    def _gate_counts_calls(self) -> RewardSpec:
        if self.overdrawn and "within_budget" not in self.gate:
            raise ValueError("`overdrawn` is of the gate's condition `within_budget`")
        return self


class Utility(Model):
    """A graded outcome: `(u - default) / (reference - default)`, clipped to [0, 1]; it counts where all checks hold.

    Utilities are those that the reference policies realised, played through the task's own tools on its own tape.
    """

    sql: str
    """One SELECT over the final state; larger is better."""
    default: float
    """Realised by the policy that believes what it is told at first sight."""
    reference: float
    """Realised by the policy that scores 1: the best that a player can do who knows what the agent may know."""
    realised: dict[str, float] = Field(default_factory=dict)
    """By policy: `oracle`, `bayes`, `default`, `idle`."""
    expected: dict[str, float] = Field(default_factory=dict)
    """Expectation over tapes by policy, where it is computable."""
    hindsight: float | None = None
    """The most that anyone could have got on this tape."""
    band: tuple[float, float] | None = None
    """Where `(default - idle) / (reference - idle)` must lie, so that the default is neither lost nor nearly right."""
    solved: float | None = None
    """What the oracle's policy has on this tape by the solver's own arithmetic, without any world."""

    @model_validator(mode="after")
    def _orders(self) -> Utility:
        if not self.reference > self.default:
            raise ValueError("the reference must be better than the default")
        return self


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
    cost: float | None = Field(default=None, ge=0)
    """Sum of the costs of a world's tools; a call that would exceed it is refused. None: unlimited."""


class Verifier(Model):
    """Checks and rubric of a task."""

    checks: tuple[Check, ...]
    rubric: tuple[Criterion, ...] = ()
    reward: RewardSpec = RewardSpec()
    utility: Utility | None = None
    """Graded outcome of a mechanism; None: the outcome is 1 where all checks hold."""
    read_back: str = ""
    """A pytest file that judges the end state of a world by its read tools alone; empty: there is none."""

    @field_validator("checks")
    @classmethod
    def _not_empty(cls, checks: tuple[Check, ...]) -> tuple[Check, ...]:
        if not checks:
            raise ValueError("a verifier without checks would pass anything")
        return checks
