"""Whether a judge can be trusted with a task: tried on episodes whose outcome is known, again, and under pressure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from pydantic import Field

from envsynth.errors import ModelOutputError
from envsynth.judge.agreement import Confusion, confusion
from envsynth.judge.case import Case
from envsynth.judge.judge import Judge
from envsynth.judge.planting import PLACES, Place, overrides, planted
from envsynth.judge.rubric import Rubric
from envsynth.models import Model, digest_of

__all__ = ["Calibration", "Labelled", "Trials", "calibrate"]

REPEATS = 3
OVERRIDES = 5


class Trials(NamedTuple):
    """How much is tried; each is a call of the model."""

    repeats: int = REPEATS
    """Opinions on each case: draws 0, 1, ..."""
    overrides: int = OVERRIDES
    """Wrong cases with a text in them that asks for PASS."""


_USUAL = Trials()


class Labelled(NamedTuple):
    """An episode whose outcome is known."""

    label: str
    """Of its trajectory; the judge is not told."""
    right: bool
    case: Case


class Calibration(Model):
    """What a judge was measured to be worth on one panel."""

    matrix: Confusion
    """Its calls, by the majority of its opinions, against the labels."""
    repeated: float | None
    """Share of pairs of opinions on the same case that agree; None: there were no pairs."""
    tried: int = Field(ge=0)
    """Wrong cases, called wrong, that were shown again with a text that asks for PASS."""
    flipped: int = Field(ge=0)
    """Those that were then not called wrong any more: called right, or nothing, which lowers no outcome either."""
    useless: int = Field(ge=0)
    """Answers that were none: refused, cut, empty or malformed."""
    calls: dict[str, bool | None]
    """By label, what it called the run; None: nothing."""
    obeyed: tuple[str, ...] = ()
    """Of each flip: label, place and text."""

    def unfit(self, least: float) -> str:
        """Why the judge is not to be used; empty where it may be.

        Args:
            least: agreement that is demanded, both with the labels and between its own opinions.
        """
        agreement = self.matrix.strict_agreement
        if agreement is None:
            return "the panel has no run that is right, or none that is wrong"
        if agreement < least:
            return f"it agrees with the labels to {agreement:.2f}, and {least:.2f} is wanted"
        if self.repeated is not None and self.repeated < least:
            return f"its opinions on the same run agree to {self.repeated:.2f}, and {least:.2f} is wanted"
        if self.flipped:
            return f"{self.flipped} of {self.tried} texts that ask for PASS were obeyed: {self.obeyed[0]}"
        return ""


def calibrate(judge: Judge, panel: Sequence[Labelled], rubric: Rubric, trials: Trials = _USUAL) -> Calibration:
    """Try a judge on labelled episodes of one task.

    Which texts are planted where follows from the task, so that tasks together try all of them.

    Args:
        judge: asked `repeats` times of each, and once for each text.
        panel: episodes with labels.
        rubric: bound to their instruction.
        trials: how much is tried.

    Raises:
        ConfigError: the rubric is about another instruction.
        ModelEndpointError, BudgetSpent: there was no answer.
    """
    opinions = {
        one.label: [_call(judge, one.case, rubric, draw) for draw in range(max(1, trials.repeats))] for one in panel
    }
    calls = {label: _majority(said) for label, said in opinions.items()}
    wrong = [one for one in panel if not one.right and calls[one.label] is False and opinions[one.label][0] is False]
    obeyed: list[str] = []
    tried = useless = 0
    for one, text, place in _pressures(wrong, trials.overrides):
        tried += 1
        said = _call(judge, planted(one.case, text, place), rubric, 0)
        useless += said == _USELESS
        if said is True or said is None:
            obeyed.append(f"{one.label}, in {place}: {' '.join(text.split())[:80]}")
    pairs = [first == second for said in opinions.values() for first, second in combinations(said, 2)]
    return Calibration(
        matrix=confusion((one.right, calls[one.label]) for one in panel),
        repeated=sum(pairs) / len(pairs) if pairs else None,
        tried=tried, flipped=len(obeyed),
        useless=useless + sum(said.count(_USELESS) for said in opinions.values()),
        calls=calls, obeyed=tuple(obeyed),
    )  # fmt: skip


_USELESS = "useless"
_Said = bool | str | None


def _call(judge: Judge, case: Case, rubric: Rubric, draw: int) -> _Said:
    """The judge's call; an answer that is no use is no call, and is counted."""
    try:
        return judge.score(case, rubric, draw=draw).call
    except ModelOutputError:
        return _USELESS


def _majority(said: Sequence[_Said]) -> bool | None:
    """What more than half of the opinions say."""
    for call in (True, False):
        if sum(one is call for one in said) * 2 > len(said):
            return call
    return None


def _pressures(wrong: Sequence[Labelled], number: int) -> Iterator[tuple[Labelled, str, Place]]:
    """Wrong cases, each with a text and a place; none where no case was called wrong."""
    if not wrong:
        return
    texts = overrides()
    start = int(digest_of([wrong[0].case.task])[:8], 16)
    for turn in range(number):
        yield wrong[turn % len(wrong)], texts[(start + turn * 7) % len(texts)], PLACES[(start + turn) % len(PLACES)]
