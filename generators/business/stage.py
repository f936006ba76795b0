"""Calls tried out in a world, each time from the start, and what they changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.generators.business.scene import Scene
from envsynth.models import Check, ToolCall, Verifier, World
from envsynth.runtime.contract import Grade, ToolResult
from envsynth.runtime.worlds.episode import Transcript, WorldEpisode, WorldModel, WorldSnapshot, WorldTask
from envsynth.runtime.worlds.grading import Ending, WorldDatabase, judge
from envsynth.runtime.worlds.states import TableDiff

MAX_TURNS = 10_000
_ANY = Verifier(checks=(Check(id="any", sql="SELECT 1"),)).document()


class Played(NamedTuple):
    """What calls came to."""

    calls: tuple[ToolCall, ...]
    answers: tuple[ToolResult, ...]
    ending: Ending

    @property
    def refusal(self) -> str:
        """The first call that was refused, with what was said of it; empty where none was."""
        pairs = zip(self.calls, self.answers, strict=True)
        return next((f"{call.tool}: {answer.error}" for call, answer in pairs if not answer.ok), "")


class Stage:
    """One world, on which calls are played one trajectory after the other."""

    def __init__(self, world: World, model: WorldModel) -> None:
        document = {"candidate": {"instruction": "", "verifier": _ANY, "budget": {"turns": MAX_TURNS, "cost": None}}}
        self.world = world
        self.model = model
        self._episode = WorldEpisode(WorldTask(document, model, task_id=world.id))

    @classmethod
    def of(cls, scene: Scene) -> Stage:
        """A stage of a scene's world."""
        return cls(scene.world, scene.model)

    def play(self, calls: Iterable[ToolCall]) -> Played:
        """Make calls from the start."""
        self._episode.reset()
        made = tuple(calls)
        answers = tuple(self._episode.call(call.tool, dict(call.arguments)) for call in made)
        return Played(made, answers, self._episode.ending())

    def look(self, image: bytes, calls: Iterable[ToolCall]) -> list[ToolResult]:
        """The answers to calls in a state, which is not changed by this."""
        self._episode.restore(WorldSnapshot(self._episode.task.id, image, Transcript()))
        return [self._episode.call(call.tool, dict(call.arguments)) for call in calls]

    def changes(self, played: Played) -> dict[str, TableDiff]:
        """What differs from the initial state, by table; tolerated tables are left out."""
        database = WorldDatabase(played.ending)
        try:
            found = database.diff()
        finally:
            database.close()
        tolerated = {table.name for table in self.world.tables if table.tolerated}
        return {name: diff for name, diff in found.items() if name not in tolerated}

    def violated(self, played: Played) -> list[str]:
        """Invariants that do not hold at the end."""
        database = WorldDatabase(played.ending)
        try:
            database.seal()
            return [one.id for one in self.world.invariants if database.rows(one.sql, where=one.id)]
        finally:
            database.close()

    @cached_property
    def broken(self) -> Sequence[str]:
        """Invariants that do not hold before anybody has done anything; nothing can be planned in such a world."""
        return self.violated(self.play(()))

    def grade(self, played: Played, verifier: Verifier) -> Grade:
        """The grade of a play."""
        conditions = {"valid_transcript": True, "within_budget": True}
        return judge(played.ending, verifier.document(), conditions, where=self.world.id)

    def close(self) -> None:
        """Free the episode."""
        self._episode.close()


def scalars(result: JsonValue) -> set[JsonValue]:
    """Every value in a result, however nested."""
    if isinstance(result, Mapping):
        return set().union(*(scalars(value) for value in result.values())) if result else set()
    if isinstance(result, Sequence) and not isinstance(result, str):
        return set().union(*(scalars(value) for value in result)) if result else set()
    return {result}
