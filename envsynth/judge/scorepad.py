"""Scores with evidence: what a model may write, what of it stands, and the sums that are reckoned from it here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Literal

from pydantic import Field

from envsynth.errors import ConfigError
from envsynth.judge.case import Case
from envsynth.judge.rubric import Rubric, RubricLine, instruction_hash
from envsynth.models import CriterionClass, Digest, Model
from envsynth.runtime.rewards import process

__all__ = ["Given", "Mark", "Pointer", "Score", "Scorepad", "Scores", "entered"]


class Mark(StrEnum):
    """What a line comes to."""

    PASS = "PASS"
    FAIL = "FAIL"
    NA = "NA"
    VOID = "VOID"
    """The score does not stand: it points at nothing, is missing, or contradicts itself. Only we give this one."""


class Pointer(Model):
    """Where something is shown: a turn, or a cell of a table."""

    turn: int | None = None
    """Number of a turn; null: a cell is meant."""
    table: str = ""
    row: int | None = None
    """Number of a row, from 1."""
    column: str = ""

    def __str__(self) -> str:
        return f"turn {self.turn}" if self.turn is not None else f"{self.table}/{self.row}/{self.column}"

    def leads_somewhere(self, case: Case) -> bool:
        """Whether the case has what is pointed at."""
        if self.turn is not None:
            return any(turn.turn == self.turn for turn in case.trace)
        table = case.tables.get(self.table)
        return table is not None and self.row is not None and table.has(self.row, self.column)


class Given(Model):
    """One score, as a model writes it."""

    id: str
    """Of the rubric's line."""
    why: str = Field(max_length=2000)
    """In a sentence."""
    pointer: Pointer | None = None
    """What shows it; null for NA alone."""
    score: Literal["PASS", "FAIL", "NA"]


class Scores(Model):
    """A model's answer."""

    reading: str = Field(max_length=8000)
    """What happened."""
    scores: tuple[Given, ...]


class Score(Model):
    """One line of a scorepad."""

    id: str
    class_: CriterionClass = Field(alias="class")
    decides: bool
    mark: Mark
    pointer: str = ""
    why: str = ""
    void: str = ""
    """Why the score does not stand."""

    model_config = {**Model.model_config, "populate_by_name": True}

    @property
    def good(self) -> bool | None:
        """True: PASS; None: not applicable, or void."""
        return {Mark.PASS: True, Mark.FAIL: False}.get(self.mark)


class Scorepad(Model):
    """What a judge said of one episode, as far as it stands."""

    instruction: Digest
    """sha256 of the instruction of the episode's task."""
    rubric: Digest
    """Of the rubric by which it was scored."""
    gate: tuple[str, ...] = ()
    """Why it was not judged; no model is asked then."""
    scores: tuple[Score, ...] = ()
    strange: int = Field(default=0, ge=0)
    """Scores for lines that the rubric does not have."""

    def demand(self, rubric: Rubric, instruction: str, where: str = "") -> None:
        """Raise unless this was scored by this rubric, for this instruction.

        Raises:
            ConfigError: it was not.
        """
        rubric.demand(instruction, where)
        if self.instruction != instruction_hash(instruction) or self.rubric != rubric.digest():
            raise ConfigError(
                "the scorepad is of another instruction or rubric", where=where,
                cause="scores only count for what they were given for", next_step="score the episode again",
            )  # fmt: skip

    @property
    def process(self) -> float | None:
        """Share of the lines that are good; 0 where an essential one failed; None where nothing is said."""
        if self.gate:
            return 0.0
        return process((score.class_.value, score.good) for score in self.scores)

    @property
    def call(self) -> bool | None:
        """Whether the judge calls the episode right; None: no call, because a deciding score does not stand.

        Right: every deciding line is PASS or NA, an essential one of them PASS. All must hold: sums would let one line
        pay for another.
        """
        if self.gate:
            return False
        deciding = [score for score in self.scores if score.decides]
        if any(score.mark is Mark.FAIL for score in deciding):
            return False
        if any(score.mark is Mark.VOID for score in deciding):
            return None
        sure = any(score.mark is Mark.PASS and score.class_ is CriterionClass.ESSENTIAL for score in deciding)
        return True if sure else None

    def lowered(self, outcome: float) -> float:
        """The outcome, lowered to 0 where the judge calls the episode wrong; never raised."""
        return 0.0 if self.call is False else outcome

    @property
    def void(self) -> int:
        """Scores that do not stand."""
        return sum(score.mark is Mark.VOID for score in self.scores)


def entered(case: Case, rubric: Rubric, given: Sequence[Given], gate: tuple[str, ...] = ()) -> Scorepad:
    """The scorepad of a case.

    Args:
        case: what was judged.
        rubric: by which.
        given: the scores as they were written; each is checked against the case.
        gate: why nothing was judged.

    Raises:
        ConfigError: the rubric is about another instruction.
    """
    rubric.demand(case.instruction, case.task)
    known = {line.id for line in rubric.lines}
    return Scorepad(
        instruction=rubric.instruction, rubric=rubric.digest(), gate=gate,
        scores=() if gate else tuple(_entered(case, rubric.lines, given)),
        strange=sum(one.id not in known for one in given),
    )  # fmt: skip


def _entered(case: Case, lines: Sequence[RubricLine], given: Sequence[Given]) -> Iterator[Score]:
    for line in lines:
        mine = [one for one in given if one.id == line.id]
        void = _void(case, mine)
        first = mine[0] if mine else None
        yield Score(
            id=line.id, class_=line.class_, decides=line.decides,
            mark=Mark.VOID if void or first is None else Mark(first.score),
            pointer=str(first.pointer) if first and first.pointer else "", why=first.why if first else "", void=void,
        )  # fmt: skip


def _void(case: Case, given: Sequence[Given]) -> str:
    """Why a line's score does not stand; empty where it does."""
    if not given:
        return "it was not scored"
    if len({one.score for one in given}) > 1:
        return "it was scored twice, differently"
    first = given[0]
    if first.score == "NA":
        return ""
    if first.pointer is None or not first.pointer.leads_somewhere(case):
        return f"it points at nothing: {first.pointer}"
    return ""
