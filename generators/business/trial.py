"""Goals of a company tried out: every plan, wrong plan and forbidden plan played in the neutral world."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.errors import EnvsynthError
from envsynth.generators.business.blueprint import Goal, Step
from envsynth.generators.business.compose import Company
from envsynth.models import Check, Verifier
from envsynth.runtime.contract import ToolResult
from envsynth.runtime.worlds.authority import open_database
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask
from envsynth.runtime.worlds.grading import WorldDatabase

TARGETS = 3
"""Targets of each goal that are played in every way; one more where only that can be mistaken."""
_TRIED = 16
"""Targets on which a goal's own plan, or a forbidden one, is tried: some of one may be for refusals of another."""
_NEAR = 2
_TURNS = 10_000
_VARIABLE = re.compile(r"\$([a-z_][a-z0-9_]*)")
_ANY = Verifier(checks=(Check(id="any", sql="SELECT 1"),)).document()

Values = Mapping[str, JsonValue]


class Played(NamedTuple):
    """What a plan came to."""

    kind: str
    """`reference`, `near`, `wrong NAME` or `forbidden NUMBER`."""
    succeeded: frozenset[str]
    """Tools of which a call was not refused."""
    refusal: str
    """The first refused call, with what was said; empty where none was."""
    violated: frozenset[str]
    """Ids of invariants that held at the start."""

    @property
    def clean(self) -> bool:
        """Whether nothing was refused and no invariant violated."""
        return not self.refusal and not self.violated


class Tried(NamedTuple):
    """One goal tried out."""

    targets: int
    """Rows of its pick."""
    near: int
    """Plausible wrong targets that were found."""
    plays: tuple[Played, ...]
    fault: str
    """Why it could not be tried; empty where it could."""

    @property
    def works(self) -> bool:
        """Whether its plan goes through on one target at least; others may be for refusals of other services."""
        return any(play.clean for play in self.plays if play.kind == "reference")


class Trial:
    """The goals of a company, each played on a few of its targets."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.model = WorldModel(company.neutral.document())
        document = {"candidate": {"instruction": "", "verifier": _ANY, "budget": {"turns": _TURNS}}}
        self._episode = WorldEpisode(WorldTask(document, self.model, task_id=company.neutral.id))
        self._database = open_database()
        self._database.deserialize(self.model.image)

    @cached_property
    def broken(self) -> frozenset[str]:
        """Invariants that are violated at the start, and so say nothing of any plan."""
        self.reset()
        return self.violated()

    @cached_property
    def goals(self) -> Mapping[str, Tried]:
        """All goals, tried out."""
        return {name: self._tried(goal) for name, goal in self.company.goals.items()}

    def violated(self) -> frozenset[str]:
        """Invariants that do not hold in the present state.

        Raises:
            SandboxError: one cannot be evaluated.
        """
        database = WorldDatabase(self._episode.ending())
        try:
            database.seal()
            return frozenset(one.id for one in self.company.neutral.invariants if database.rows(one.sql, where=one.id))
        finally:
            database.close()

    def reset(self) -> None:
        """Start afresh."""
        self._episode.reset()

    def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
        """One call in the neutral world."""
        return self._episode.call(tool, dict(arguments))

    def targets(self, goal: Goal, limit: int) -> list[dict[str, JsonValue]]:
        """The first targets of a goal.

        Raises:
            sqlite3.Error: its pick fails.
        """
        return self._rows(goal.pick, {})[:limit]

    def close(self) -> None:
        """Free everything."""
        self._episode.close()
        self._database.close()

    def arguments(self, step: Step, values: Values) -> dict[str, JsonValue]:
        """A step's arguments, in neutral names.

        Raises:
            KeyError, GeneratorError: it names what there is not.
        """
        return {name: self._argument(value, values) for name, value in step.arguments.items()}

    def _argument(self, value: JsonValue, values: Values) -> JsonValue:
        if not isinstance(value, str):
            return value
        named = _VARIABLE.fullmatch(value)
        return values[named[1]] if named else self.company.speaker.say(value, dict(values))

    def _tried(self, goal: Goal) -> Tried:
        try:
            rows = self._rows(goal.pick, {})
            references = self._references(goal, rows)
            clean = [(row, play) for row, play in references if play.clean][:TARGETS] or references[:TARGETS]
            chosen = [row for row, _ in clean]
            mistakable = next((row for row in rows if self._near(goal, row)), None)
            if mistakable is not None and mistakable not in chosen:
                chosen.append(mistakable)
            near = [{**row, **other} for row in chosen for other in self._near(goal, row)[:_NEAR]]
            plays = (*(play for _, play in clean), *self._wrong_plays(goal, chosen, near))
            return Tried(len(rows), len(near), (*plays, *self._further_plays(goal, rows, plays)), "")
        except (sqlite3.Error, KeyError, EnvsynthError) as exc:
            return Tried(0, 0, (), f"{type(exc).__name__}: {exc}")

    def _references(self, goal: Goal, rows: Sequence[Values]) -> list[tuple[Values, Played]]:
        """The goal's own plan on targets spread over all of them, until enough of its plays are clean."""
        steps = (*goal.reads, *goal.writes, goal.verify)
        found: list[tuple[Values, Played]] = []
        for row in _spread(rows):
            found.append((row, self._play("reference", steps, row)))
            if sum(1 for _, play in found if play.clean) == TARGETS:
                break
        return found

    def _wrong_plays(self, goal: Goal, chosen: Sequence[Values], near: Sequence[Values]) -> Iterator[Played]:
        for row in chosen:
            for name, changes in goal.wrong.items():
                changed = {variable: self._value(sql, row) for variable, sql in changes.items()}
                yield self._play(f"wrong {name}", goal.writes, {**row, **changed})
            for number, steps in enumerate(goal.forbidden, 1):
                yield self._play(f"forbidden {number}", steps, row)
        for row in near:
            yield self._play("near", goal.writes, row)

    def _further_plays(self, goal: Goal, rows: Sequence[Values], plays: Sequence[Played]) -> Iterator[Played]:
        """Forbidden plans that were refused so far, on further targets until one goes through: a rule may stop some."""
        through = {play.kind for play in plays if not play.refusal}
        for number, steps in enumerate(goal.forbidden, 1):
            kind = f"forbidden {number}"
            for row in _spread(rows) if kind not in through else ():
                play = self._play(kind, steps, row)
                yield play
                if not play.refusal:
                    break

    def _play(self, kind: str, steps: Sequence[Step], values: Values) -> Played:
        broken = self.broken
        self.reset()
        succeeded, refusal = set(), ""
        for step in steps:
            answer = self.call(step.tool, self.arguments(step, values))
            if answer.ok:
                succeeded.add(step.tool)
            elif not refusal:
                refusal = f"{step.tool}: {answer.error}"
        return Played(kind, frozenset(succeeded), refusal, self.violated() - broken)

    def _near(self, goal: Goal, row: Values) -> list[dict[str, JsonValue]]:
        return self._rows(goal.near, row) if goal.near else []

    def _value(self, expression: str, row: Values) -> JsonValue:
        found: JsonValue = next(iter(self._rows(f"SELECT {expression} AS found", row)[0].values()))
        return found

    def _rows(self, sql: str, values: Values) -> list[dict[str, JsonValue]]:
        cursor = self._database.execute(sql, {**values, "now": self.company.neutral.clock})
        names = [line[0] for line in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def _spread(rows: Sequence[Values]) -> list[Values]:
    tried = min(_TRIED, len(rows))
    return [rows[number * len(rows) // tried] for number in range(tried)]
