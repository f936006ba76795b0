"""Whether an agent that knows no more than the instruction can find everything that a plan writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.generators.business.blueprint import Goal, Step
from envsynth.generators.business.scene import Scene, Values, braces, variable_of, variables_in
from envsynth.generators.business.stage import Stage, scalars
from envsynth.models import ToolCall
from envsynth.runtime.worlds.sqltext import Token, tokens

_SMALL = 100
"""A smaller number may stand in a result for any reason: it counts as read only under a name of its own."""


class Path(NamedTuple):
    """The reads that can be made, and what is still not known after them."""

    reads: tuple[ToolCall, ...]
    unknown: tuple[str, ...]
    """Variables that the writes need and that nothing tells."""
    unread: tuple[str, ...]
    """Variables that the other reads need and that nothing tells."""
    verifiable: bool
    """Whether the call that shows the result can be made."""


class _Known:
    """Values that an agent has been told or shown."""

    def __init__(self, said: Iterable[JsonValue]) -> None:
        self.said = set(said)
        self.seen: set[JsonValue] = set()
        self.named: set[tuple[str, JsonValue]] = set()
        """Values of results with the name of their column, in the industry's names."""

    def show(self, result: JsonValue) -> None:
        self.seen |= scalars(result)
        for row in result if isinstance(result, list) else [result]:
            if isinstance(row, Mapping):
                self.named |= {(name, value) for name, value in row.items() if not isinstance(value, list | dict)}

    def has(self, value: JsonValue, names: Iterable[str] = ()) -> bool:
        """Whether a value is known; a small number, under one of the names."""
        if value in self.said:
            return True
        if isinstance(value, int | float) and abs(value) < _SMALL:
            return any((name, value) in self.named for name in names)
        if value in self.seen:
            return True
        return isinstance(value, str) and any(_within(value, text) for text in (*self.said, *self.seen))

    def shows_number(self, number: int) -> bool:
        """Whether a text that was read holds a number, as a policy does."""
        pattern = re.compile(rf"(?<![\d.,]){number}(?![\d])")
        return any(isinstance(text, str) and pattern.search(text) for text in self.seen)


def find_path(scene: Scene, stage: Stage, goal: Goal, values: Values, said: Iterable[JsonValue]) -> Path:
    """Play the goal's reads as far as their arguments are known.

    Args:
        scene: the world.
        stage: on which they are played.
        goal: with its reads and writes.
        values: its variables.
        said: values that the instruction tells.
    """
    known = _Known({*said, scene.today, scene.world.clock})
    made: dict[int, ToolCall] = {}
    while True:
        ready = [
            (number, step) for number, step in enumerate(goal.reads)
            if number not in made and _knows_step(scene, goal, step, values, known)
        ]  # fmt: skip
        if not ready:
            break
        number, step = ready[0]
        made[number] = scene.call(step, values)
        answer = stage.look(stage.model.image, [made[number]])[0]
        if answer.ok:
            known.show(answer.result)
    return Path(
        tuple(made[number] for number in sorted(made)),
        _unknown(scene, goal, goal.writes, values, known),
        _unknown(scene, goal, goal.reads, values, known),
        not _unknown(scene, goal, [goal.verify], values, known),
    )


def _unknown(scene: Scene, goal: Goal, steps: Iterable[Step], values: Values, known: _Known) -> tuple[str, ...]:
    """Variables of steps that nothing tells, each once."""
    needed = dict.fromkeys(name for step in steps for name in _variables(step))
    return tuple(name for name in needed if not _knows(scene, goal, name, values, known))


def _knows_step(scene: Scene, goal: Goal, step: Step, values: Values, known: _Known) -> bool:
    return all(_knows(scene, goal, name, values, known) for name in _variables(step))


def _knows(scene: Scene, goal: Goal, name: str, values: Values, known: _Known) -> bool:
    """Whether a variable is told, shown, or can be worked out from what is."""
    if name in goal.computed and values[name] not in known.said:
        expression = goal.computed[name]
        numbers = [scene.company.settings[one] for one in braces(expression) if one in scene.company.settings]
        return all(map(known.shows_number, numbers)) and all(
            _knows(scene, goal, one, values, known) for one in variables_in(expression)
        )
    names = {scene.rename(word) for word in _sources(goal.pick).get(name, ())} | {scene.rename(name)}
    return known.has(values[name], names)


def _variables(step: Step) -> Sequence[str]:
    """Variables that a step's arguments need; those in braces of a free text are a matter of wording."""
    return [name for value in step.arguments.values() if (name := variable_of(value))]


def _within(value: str, text: JsonValue) -> bool:
    return (
        isinstance(text, str) and len(value) >= 3
        and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _sources(pick: str) -> Mapping[str, frozenset[str]]:
    """By column of a SELECT: the names that it is made from."""
    pieces = tokens(pick)
    start = next((place for place, one in enumerate(pieces) if one.depth == 0 and one.text == "SELECT"), 0)
    end = next((place for place, one in enumerate(pieces) if one.depth == 0 and one.text == "FROM"), len(pieces))
    columns: list[list[Token]] = [[]]
    for piece in pieces[start + 1 : end]:
        if piece.text == "," and piece.depth == 0:
            columns.append([])
        else:
            columns[-1].append(piece)
    return {
        words[-1]: frozenset(words)
        for column in columns
        if (words := [piece.text.lower() for piece in column if piece.kind == "word"])
    }
