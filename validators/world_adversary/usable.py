"""Tools that no call succeeds with: looked for with values that can be seen, guard by guard.

The guard that refuses a call says how far it came, and which arguments it speaks of: those are changed until a later
one refuses, or none. What is found holds for a world, and so for all its tasks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise
from random import Random

from envsynth.models import Finding, Tool, World
from envsynth.models.world import Parameter
from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.authority import open_database
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask
from envsynth.runtime.worlds.sqltext import Token, tokens
from envsynth.validators.worlds.opened import Opened
from envsynth.validators.worlds.target import Call, lies_within

MAX_TRIES = 1_500
"""Calls of one tool in each of two states: the untouched world, and after what was found for the others."""
_FEW = 60
"""Values of a bounded number, or of a column, that are all tried."""
_SIGNS = frozenset("=<>!|+-()")
_ENDLESS = "the call took too long"
_PATIENCE = 3
"""Calls of one tool that may run out of their budget of instructions before no more are tried: each takes a second."""
_AFRESH = 0.2
"""Share of calls whose arguments are all drawn anew."""
_AHEAD = (*range(1, 15), *range(15, 100, 7), 120, 180, 365, 400, 800)
"""Days from today."""
_NUMBERS = (1, 2, 3, 5, 10, 100, 0, 1000)
_TEXTS = ("a text of some length", "a", "someone@example.com", "2026-01-01")
_MESSAGE = (
    "no call of the panel, of any attack, or of {tries} with values that can be seen succeeded; mostly: {error}; seed a"
    " row that its guards let through, loosen them, or drop the tool"
)


def usable_findings(open_: Opened, succeeded: Collection[str]) -> Iterator[Finding]:
    """The tools that never succeed.

    Args:
        open_: the world.
        succeeded: tools of which some call is known to.
    """
    rest = [tool for tool in open_.world.tools if tool.name not in succeeded and tool.kind != "think"]
    if not rest:
        return
    errors = _unusable(open_.model)
    for tool in rest:
        if tool.name in errors:
            message = _MESSAGE.format(tries=2 * MAX_TRIES, error=errors[tool.name] or "no reason")
            yield Finding(rule="tool_never_succeeds", message=message, where=f"tool {tool.name}")


@lru_cache(maxsize=16)
def _unusable(model: WorldModel) -> dict[str, str]:
    """The tools of a world that no call was found for, with what was said last of the call that came furthest."""
    world = World.model_validate(model.document)
    document = {"instruction": "", "verifier": {}, "budget": {"turns": 10**9}}
    episode = WorldEpisode(WorldTask({"candidate": document}, model, task_id=world.id))
    found: list[Call] = []
    errors: dict[str, str] = {}
    try:
        for tool in world.tools:
            _Search(tool, world).run(episode, [], found, errors)
        ends = {tool.name for tool in world.tools if tool.kind == "submit"}
        for tool in world.tools:
            if tool.name in errors:
                before = [call for call in found if call[0] not in ends]
                _Search(tool, world).run(episode, before, found, errors)
    finally:
        episode.close()
    return errors


class _Search:
    """For one call of one tool that is accepted."""

    def __init__(self, tool: Tool, world: World) -> None:
        self._tool, self._world, self._random = tool, world, Random(f"{world.id}/{tool.name}")
        self._fields = [*(tool.each.fields if tool.each else ())]
        listed = tool.each.parameter if tool.each else ""
        self._parameters = [one for one in tool.parameters if one.name != listed]
        self._pools = {one.name: _pool(one, tool, world) for one in (*self._parameters, *self._fields)}
        self._spoken = [
            {piece.text[1:] for piece in tokens(guard.sql) if piece.kind == "parameter"} for guard in tool.guards
        ]

    def run(self, episode: WorldEpisode, before: Sequence[Call], found: list[Call], errors: dict[str, str]) -> None:
        """Try calls after others; what is accepted goes to `found`, else the best one's refusal to `errors`."""
        self._start(episode, before)
        if before:
            self._look_around(episode)
        best, furthest, error, endless = self._drawn(), -1, "", 0
        for _ in range(MAX_TRIES if self._pools else 1):
            values = self._changed(best, furthest)
            call = self._call(values)
            answer = episode.call(*call)
            if answer.ok:
                found.append(call)
                errors.pop(self._tool.name, None)
                return
            if answer.done:
                self._start(episode, before)
            reached = self._guard(answer.error)
            if reached >= furthest:
                best, furthest, error = values, reached, answer.error
            endless += _ENDLESS in answer.error
            if endless == _PATIENCE:
                break
        errors[self._tool.name] = error

    def _start(self, episode: WorldEpisode, before: Sequence[Call]) -> None:
        episode.reset()
        for call in before:
            if episode.over:
                episode.reset()
            episode.call(*call)
        if episode.over:
            episode.reset()

    def _look_around(self, episode: WorldEpisode) -> None:
        """Draw from the rows that are there now: calls before this one may have made what it is about."""
        world = self._world.model_copy(update={"rows": _rows_now(episode, self._world)})
        self._pools = {one.name: _pool(one, self._tool, world) for one in (*self._parameters, *self._fields)}

    def _drawn(self) -> dict[str, JSON]:
        return {name: self._random.choice(pool) for name, pool in self._pools.items()}

    def _changed(self, best: dict[str, JSON], furthest: int) -> dict[str, JSON]:
        if furthest < 0 or self._random.random() < _AFRESH:
            return self._drawn()
        spoken = self._spoken[furthest] & self._pools.keys() if furthest < len(self._spoken) else set()
        names = sorted(spoken or self._pools)
        chosen = self._random.sample(names, self._random.randint(1, len(names)))
        return best | {name: self._random.choice(self._pools[name]) for name in chosen}

    def _call(self, values: dict[str, JSON]) -> Call:
        given = {one.name: values[one.name] for one in self._parameters}
        if self._tool.each is not None:
            element = {one.name: values[one.name] for one in self._fields}
            given[self._tool.each.parameter] = json.dumps([element])
        return self._tool.name, {name: value for name, value in given.items() if value is not None}

    def _guard(self, error: str) -> int:
        """The number of the guard that refused; the last one's, and one, where it was something else."""
        numbers = (number for number, guard in enumerate(self._tool.guards) if error.endswith(guard.error))
        return next(numbers, len(self._tool.guards) if "the call" in error else -1)


def _rows_now(episode: WorldEpisode, world: World) -> dict[str, tuple[tuple[JSON, ...], ...]]:
    """Rows of every visible table, as they are at this moment of an episode."""
    database = open_database()
    try:
        database.deserialize(episode.image())
        found = {}
        for table in world.tables:
            if not table.hidden:
                columns = ", ".join(f'"{column.name}"' for column in table.columns)
                found[table.name] = tuple(
                    database.execute(f'SELECT {columns} FROM "{table.name}" ORDER BY 1').fetchall()
                )
        return found
    finally:
        database.close()


def _pool(parameter: Parameter, tool: Tool, world: World) -> list[JSON]:
    """Values to draw from: the likeliest ones are there more than once."""
    if parameter.enum:
        return list(parameter.enum)
    if parameter.type == "boolean":
        return [False, True]
    near = [value for value in _near_values(parameter.name, tool, world) if lies_within(parameter, value)]
    low, high = parameter.minimum, parameter.maximum
    if parameter.type == "string":
        usual: list[JSON] = [
            *_TEXTS,
            *_days(tool, world),
            *("x" * size for size in (parameter.min_length or 1, parameter.max_length or 1)),
        ]
    elif low is not None and high is not None and high - low <= _FEW and parameter.type == "integer":
        usual = list(range(int(low), int(high) + 1))
    else:
        usual = [*_NUMBERS, *(int(bound) for bound in (low, high) if bound is not None)]
    found = near * 3 + [value for value in usual if lies_within(parameter, value)] or [None]
    return found if parameter.required else [*found, None]


def _days(tool: Tool, world: World) -> list[JSON]:
    """Days to come, where the tool speaks of days."""
    if not any("date(" in sql for sql in (*(guard.sql for guard in tool.guards), *tool.effects)):
        return []
    today = date.fromisoformat(world.clock[:10])
    return [(today + timedelta(days=days)).isoformat() for days in _AHEAD]


def _near_values(name: str, tool: Tool, world: World) -> list[JSON]:
    """Values of visible columns that a parameter is compared with, or that are called like it."""
    found: dict[JSON, None] = {}
    beside: dict[str, set[str]] = {}
    for sql in (*(guard.sql for guard in tool.guards), *tool.effects, tool.result):
        pieces = tokens(sql)
        columns = set(_compared(pieces, name))
        for word in {_plain(piece) for piece in pieces} if columns else ():
            beside.setdefault(word, set()).update(columns)
    for table in world.tables:
        if table.hidden:
            continue
        compared = beside.get(table.name, set())
        for place, column in enumerate(table.columns):
            if not column.hidden and (column.name == name or column.name in compared):
                found.update((row[place], None) for row in world.rows.get(table.name, ()) if row[place] is not None)
    return list(found)


def _compared(pieces: Sequence[Token], name: str) -> Iterator[str]:
    """Names of columns that stand beside a parameter with one sign in between."""
    wanted = f":{name}"
    if all(piece.text != wanted for piece in pieces):
        return
    for one, two in pairwise(piece for piece in pieces if piece.text not in _SIGNS):
        if wanted in (one.text, two.text):
            yield _plain(two if one.text == wanted else one)


def _plain(piece: Token) -> str:
    """A name without quotes, in lower case."""
    return piece.text.strip('"`[]').lower()
