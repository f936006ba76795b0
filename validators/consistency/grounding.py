"""The fact-grounding instrument: what a run writes and answers is told somewhere, or follows from what is told.

A value is grounded where it stands in the instruction, in a page of the policies or in an earlier answer of a tool, or
is one step of reckoning away: a difference, sum or product within a row, a percentage, a sum or count of a list, a day
so long after another. What a tool's schema lists is told by the schema. Where arguments are choices, because the
outcome is a utility, there is nothing to ground.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from typing import NamedTuple

from envsynth.judge import policies_of
from envsynth.models import Candidate, ColumnRole, Tool, ToolKind, World
from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.sqltext import tokens
from envsynth.validators.consistency.facts import Told, as_day, later, read, seen
from envsynth.validators.consistency.runs import Made, Run

__all__ = ["Grounding", "Ungrounded", "naming"]

_ROUNDED = 100
"""Shares of amounts from here on may be rounded to whole units."""
_FREE_WORDS = 3
"""Words of a text that nobody compares, in a tool that no right trajectory calls."""


class Ungrounded(NamedTuple):
    """A value that nothing tells."""

    turn: int
    tool: str
    argument: str
    value: JSON

    def __str__(self) -> str:
        said = json.dumps(self.value, ensure_ascii=False)[:80]
        return f"call {self.turn}, {self.tool}: nothing that was told before gives {self.argument} = {said}"


class Slot(NamedTuple):
    """An argument of a call that does something."""

    tool: str
    argument: str
    value: JSON
    enum: bool


class Grounding:
    """Says of each run of one task which of its values nothing tells.

    Args:
        candidate: the task; of its checks only what they compare is read, to tell free texts from values that count.
        world: its world.
    """

    def __init__(self, candidate: Candidate, world: World) -> None:
        self._tools = {tool.name: tool for tool in world.tools}
        self._compared = frozenset(_compared(candidate))
        self._today = as_day(world.clock)
        self._always = [
            read(text) for text in (candidate.instruction, *policies_of(world).values(), _documented(world))
        ]
        self._read: dict[str, Told] = {}
        self._naming = naming(world)
        self._choices = candidate.verifier.utility is not None

    def free(self, right: Sequence[Run]) -> frozenset[tuple[str, str]]:
        """Arguments of right runs whose values no check compares, such as the wording of a note."""
        given: dict[tuple[str, str], list[JSON]] = {}
        for run in right:
            for made in run.made:
                for slot in self._slots(made):
                    given.setdefault((slot.tool, slot.argument), []).append(slot.value)
        return frozenset(
            place for place, values in given.items() if not any(_plain(value) in self._compared for value in values)
        )

    def known_places(self, right: Sequence[Run]) -> frozenset[tuple[str, str]]:
        """Every argument of a call that does something in a right run."""
        return frozenset((slot.tool, slot.argument) for run in right for made in run.made for slot in self._slots(made))

    def ungrounded(
        self, run: Run, free: Collection[tuple[str, str]], known: Collection[tuple[str, str]], also: Sequence[Run] = ()
    ) -> list[Ungrounded] | None:
        """The values of a run that nothing tells; None where there is nothing to ground.

        Args:
            run: played.
            free: arguments whose values count nowhere.
            known: arguments that right runs use.
            also: runs whose answers count as told too.
        """
        if self._choices:
            return None
        told = [*self._always, *(self.told(made) for other in also for made in other.made)]
        found: list[Ungrounded] = []
        values = 0
        for made in run.made:
            for slot in self._slots(made):
                place = (slot.tool, slot.argument)
                if place in free or (place not in known and _wordy(slot.value)):
                    continue
                values += 1
                if not slot.enum and not self._grounds(told, slot.value):
                    found.append(Ungrounded(made.turn, slot.tool, slot.argument, slot.value))
            told.append(self.told(made))
        return found if values else None

    def is_name(self, value: Ungrounded) -> bool:
        """Whether a value is a text or names a row: nobody can reckon it out."""
        if isinstance(value.value, str):
            return as_day(value.value) is None and not _is_number(value.value)
        return (value.tool, value.argument) in self._naming

    def _slots(self, made: Made) -> Iterator[Slot]:
        """Every value of a call that did something, elements of lists one by one."""
        tool = self._tools.get(made.tool)
        if tool is None or not made.ok or tool.kind in (ToolKind.READ, ToolKind.THINK):
            return
        enums = {one.name: bool(one.enum) or one.type == "boolean" for one in tool.parameters}
        for name, value in made.arguments.items():
            if tool.each is not None and name == tool.each.parameter:
                yield from _elements(tool, value)
            elif value is not None:
                yield Slot(tool.name, name, value, enums.get(name, False))

    def stated(self, value: JSON) -> bool:
        """Whether the instruction, the pages or the tools' descriptions tell a value."""
        return any(one.tells(value) for one in self._always)

    def told(self, made: Made) -> Told:
        """What the answer to a call tells; a refusal tells why."""
        found = self._read.get(made.said)
        if found is None:
            found = self._read[made.said] = seen(made.result) if made.ok else read(made.error)
        return found

    def _grounds(self, told: Sequence[Told], value: JSON) -> bool:
        if isinstance(value, bool) or value == "":
            return True
        if isinstance(value, int | float):
            return any(one.tells(value) for one in told) or _reckoned(told, float(value))
        day = as_day(str(value))
        if day is not None and self._day(told, day):
            return True
        if any(one.tells(str(value)) for one in told):
            return True
        return _is_number(str(value)) and any(one.tells(float(value)) for one in told)

    def _day(self, told: Sequence[Told], day: date) -> bool:
        if any(day in one.days for one in told) or day == self._today:
            return True
        bases = {known for one in told for known in one.days} | ({self._today} if self._today else set())
        if self._today is not None:
            away = (day - self._today).days
            if any(away in one.relative for one in told):
                return True
            if abs(away) <= 7 and any(day.weekday() in one.weekdays for one in told):
                return True
        spans = {count for one in told for count in one.whole}
        return any(
            day in (later(base, count, unit), later(base, -count, unit))
            for base in bases
            if abs((day - base).days) <= 20 * 366
            for count, unit in _spans((day - base).days, spans)
        )


def _documented(world: World) -> str:
    """What the tools say of themselves."""
    docs = [tool.doc for tool in world.tools]
    for tool in world.tools:
        docs += [one.doc for one in (*tool.parameters, *(tool.each.fields if tool.each else ()))]
    return "\n".join(docs)


def naming(world: World) -> frozenset[tuple[str, str]]:
    """Arguments that are called as a visible column is that names rows, at home or elsewhere: (tool, argument)."""
    keys = {
        column.name
        for table in world.tables
        for column in table.columns
        if not table.hidden and not column.hidden and (column.role is ColumnRole.KEY or column.references)
    }
    return frozenset(
        (tool.name, one.name) for tool in world.tools for one in tool.parameters if one.name in keys and not one.enum
    )


def _elements(tool: Tool, value: JSON) -> Iterator[Slot]:
    assert tool.each is not None
    enums = {one.name: bool(one.enum) or one.type == "boolean" for one in tool.each.fields}
    elements = json.loads(value) if isinstance(value, str) else value
    for element in elements:
        for name, given in element.items():
            if given is not None:
                yield Slot(tool.name, f"{tool.each.parameter}.{name}", given, enums.get(name, False))


def _compared(candidate: Candidate) -> Iterator[JSON]:
    """Every value that a check compares: what is expected, and the literals of queries."""
    for check in candidate.verifier.checks:
        for change in check.expect.values():
            for row in change.added:
                yield from map(_plain, row.values())
            for changed in change.changed:
                yield from map(_plain, (*changed.key, *changed.values.values()))
            for gone in change.removed:
                yield from map(_plain, gone.values() if isinstance(gone, dict) else gone)
        yield from map(_plain, (check.answer or {}).values())
        for token in tokens(check.sql):
            if token.kind == "string":
                yield _plain(token.text.strip("'").replace("''", "'"))
            elif token.kind == "other" and _is_number(token.text):
                yield _plain(float(token.text))


def _plain(value: JSON) -> JSON:
    if isinstance(value, bool):
        return value
    return float(value) if isinstance(value, int | float) else " ".join(str(value).split()).casefold()


def _wordy(value: JSON) -> bool:
    return isinstance(value, str) and len(value.split()) >= _FREE_WORDS


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(?:\.\d+)?", text) is not None


def _reckoned(told: Sequence[Told], wanted: float) -> bool:
    """Whether a number follows from numbers that are told: two of a row, a list as a whole, a share or a multiple.

    A share may be taken of what two numbers of a row give, as in quantity times price less five per cent.
    """
    if any(wanted in one.combined for one in told):
        return True
    rates = {rate for one in told for rate in one.rates}
    slack = 1 - 1e-9 if abs(wanted) >= _ROUNDED else 1e-9
    for share in {share for rate in rates for share in (rate / 100, 1 - rate / 100, 1 + rate / 100) if share > 0}:
        low, high = (wanted - slack) / share, (wanted + slack) / share
        for one in told:
            place = bisect_left(one.ordered, low)
            if place < len(one.ordered) and one.ordered[place] <= high:
                return True
    counts = {count for one in told if not one.rows for count in one.whole if count > 1}
    return any(wanted / count in one.numbers for one in told if one.rows for count in counts)


def _spans(days: int, told: Collection[int]) -> Iterator[tuple[int, str]]:
    """Lengths of time that could lie between two days and that are told, in each unit."""
    away = abs(days)
    for unit, size in (("day", 1), ("week", 7), ("fortnight", 14), ("month", 30.4), ("year", 365.2)):
        guess = round(away / size)
        if guess and guess in told and abs(guess * size - away) <= (3 if size > 14 else 0):
            yield guess, unit
