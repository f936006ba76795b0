"""Plays of a panel as the instruments read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from envsynth.models import Candidate, Trajectory
from envsynth.runtime.contract import JSON
from envsynth.validators.worlds.replayer import Seen

__all__ = ["Made", "Run", "runs_of"]


class Made(NamedTuple):
    """A call that counted: none of those after the end."""

    turn: int
    """1, 2, ..."""
    tool: str
    arguments: Mapping[str, JSON]
    ok: bool
    result: JSON
    error: str
    said: str
    """The whole answer as it was observed: equal texts tell the same."""


class Run(NamedTuple):
    """One trajectory, played and graded."""

    line: Trajectory
    made: tuple[Made, ...]
    checks: Mapping[str, bool]
    criteria: Mapping[str, bool | None]
    """True: good (met, or a pitfall avoided)."""
    gate: float
    outcome: float

    @property
    def label(self) -> str:
        """The trajectory's."""
        return self.line.label

    @property
    def right(self) -> bool | None:
        """What the label says: full outcome, none, or None for something in between."""
        claimed = self.line.outcome
        return True if claimed >= 1 else False if claimed <= 0 else None


def runs_of(candidate: Candidate, plays: Sequence[Seen]) -> list[Run]:
    """The panel of a candidate, with its plays."""
    return [_run(line, seen) for line, seen in zip(candidate.panel, plays, strict=True)]


def _run(line: Trajectory, seen: Seen) -> Run:
    observed = seen.observations[-len(line.calls) :] if line.calls else []
    made: list[Made] = []
    for call, said in zip(line.calls, observed, strict=True):
        answer = json.loads(said)
        made.append(
            Made(len(made) + 1, call.tool, call.arguments, answer["ok"], answer["result"], answer["error"], said)
        )
        if answer["done"]:
            break
    grade = json.loads(seen.grade)
    return Run(line, tuple(made), grade["checks"], grade["criteria"], grade["gate"], grade["outcome"])
