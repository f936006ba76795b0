"""Orders that nobody states: found by reading tables from the other end, and breaking ties the other way.

SQLite gives rows that no ORDER BY tells apart in whatever order it comes to them; another version, or another plan,
comes to them in another one. Two worlds are played that do so in opposite ways: what differs depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache

from envsynth.models import Candidate, Finding
from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.authority import Connection
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask
from envsynth.validators.world_adversary.ties import with_ties_broken
from envsynth.validators.worlds.opened import Opened, task_of
from envsynth.validators.worlds.target import LADDER, Call, Target

_CONTEXT = 40
"""Characters shown before what differs."""
_MESSAGE = (
    "{call} can show {one!r} or {other!r}: its ORDER BY leaves ties, or what it joins, limits or inserts has none; add"
    " a key to every ORDER BY"
)
_STATE = (
    "the same calls can leave different rows: an effect depends on an order that is not stated; order what it inserts,"
    " and what its subqueries take the first of, by a key"
)


class Turned(WorldModel):
    """A world in which what no ORDER BY tells apart comes in one order, or in the opposite one."""

    def __init__(self, model: WorldModel, *, backwards: bool) -> None:
        direction = "DESC" if backwards else "ASC"
        tools = [_turned(tool, direction) for tool in model.document["tools"]]
        # Rows are not made again: their image is there.
        super().__init__({**model.document, "tools": tools, "rows": {}})
        self.image = model.image
        self._backwards = backwards

    def connection(self) -> Connection:
        """One that reads from the other end, where it is so."""
        found = super().connection()
        if self._backwards:
            found.sql.execute("PRAGMA reverse_unordered_selects = ON")
        return found


@lru_cache(maxsize=4)
def _both(model: WorldModel) -> tuple[Turned, Turned]:
    """A world in both orders, made once for all its tasks."""
    return Turned(model, backwards=False), Turned(model, backwards=True)


def _turned(tool: JSON, direction: str) -> JSON:
    return {
        **tool,
        "guards": [{**guard, "sql": with_ties_broken(guard["sql"], direction)} for guard in tool["guards"]],
        "effects": [with_ties_broken(effect, direction) for effect in tool["effects"]],
        "result": with_ties_broken(tool["result"], direction),
    }


def order_findings(candidate: Candidate, open_: Opened, target: Target) -> Iterator[Finding]:
    """The first difference that the direction of reading makes: in the untouched world, and along the reference."""
    looks = [target.call(tool, step) for tool in target.tools("read") for step in LADDER]
    looks = list({json.dumps(call): call for call in looks}.values())
    reference = next((line.calls for line in candidate.panel if line.label == "reference"), ())
    acts = [(call.tool, call.arguments) for call in reference]
    plays = [looks, [*acts, *looks]]
    forwards, backwards = (_played(task_of(candidate, turned), plays) for turned in _both(open_.model))
    found: dict[str, Finding] = {}
    for calls, one, other in zip(plays, forwards, backwards, strict=True):
        finding = _difference(calls, one, other)
        if finding is not None:
            found.setdefault(finding.where, finding)
    yield from found.values()


def _played(task: WorldTask, plays: Sequence[Sequence[Call]]) -> list[list[str]]:
    """What the calls of each play are answered, and the state that they leave."""
    episode = WorldEpisode(task)
    found = []
    try:
        for calls in plays:
            episode.reset()
            answers = []
            for call in calls:
                answer = episode.call(*call)
                answers.append(json.dumps([answer.ok, answer.result, answer.error], ensure_ascii=False))
            found.append([*answers, episode.state_hash()])
    finally:
        episode.close()
    return found


def _difference(calls: Sequence[Call], one: Sequence[str], other: Sequence[str]) -> Finding | None:
    for call, left, right in zip(calls, one, other, strict=False):
        if left != right:
            at = next((at for at, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), 0)
            part = slice(max(0, at - _CONTEXT), at + _CONTEXT)
            text = f"{call[0]} {json.dumps(call[1])[:100]}"
            message = _MESSAGE.format(call=text, other=right[part], one=left[part])
            return Finding(rule="order_by_chance", message=message, where=f"tool {call[0]}")
    if one[-1] != other[-1]:
        return Finding(rule="order_by_chance", message=_STATE, where="reference")
    return None
