"""Where attacks on a world are played, and what is looked at while they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from envsynth.models import World
from envsynth.runtime.contract import JSON, Grade, ToolResult
from envsynth.runtime.worlds.episode import Transcript, WorldEpisode, WorldSnapshot, WorldTask
from envsynth.validators.world_adversary.battery import Attack
from envsynth.validators.worlds.hidden_values import hidden_values
from envsynth.validators.worlds.opened import effective_calls, reads_trace
from envsynth.validators.worlds.target import Call


class Played(NamedTuple):
    """What became of an attack."""

    outcome: float
    made: tuple[Call, ...]
    """The calls up to the end of the episode."""
    effective: tuple[str, ...]
    """Those that could change anything, as canonical JSON."""
    in_budget: bool
    faults: tuple[tuple[str, str], ...]
    """Rule and message of what a world must never do, whatever the outcome."""


class Field:
    """One episode, reset for each attack."""

    def __init__(self, world: World, task: WorldTask) -> None:
        self._world, self._task = world, task
        verifier, invariants = task.verifier, task.model.document["invariants"]
        graded = [*verifier["checks"], *invariants, verifier["utility"] or {"sql": ""}]
        self._reads_trace = any(reads_trace(one["sql"]) for one in graded)
        self._idle: float | None = None
        self._episode = WorldEpisode(task)
        self._hidden = hidden_values(world)
        self.succeeded: set[str] = set()
        """Tools of which some call was accepted."""

    def close(self) -> None:
        """Free the episode."""
        self._episode.close()

    def play(self, attack: Attack, grade: JSON = None) -> Played:
        """Play an attack from the start and grade it.

        Calls that must be refused are begun anew where the budget is spent, because each of them is to be seen.

        Args:
            attack: what is played.
            grade: of these calls in this task, where they were graded before.
        """
        episode = self._episode
        episode.reset()
        made: list[Call] = []
        faults: dict[str, str] = {}
        refused: Call | None = None
        before, changes = episode.image(), episode.changes
        start = changes
        for number, call in enumerate(attack.calls, 1):
            if call is refused:
                # Nothing has changed since it was refused.
                continue
            if attack.must_be_refused and len(episode.trace) == self._task.turns:
                episode.reset()
            answer = episode.call(*call)
            made.append(call)
            if answer.ok:
                self.succeeded.add(call[0])
            # Images cost more than most calls; without a row written there is no other one.
            after = before if episode.changes == changes else episode.image()
            changes = episode.changes
            for rule, message in self._faults(attack, call, answer, (before, after)):
                faults.setdefault(rule, f"call {number}, {message}")
            before, refused = after, None if answer.ok else call
            if answer.done:
                break
        effective = effective_calls(self._world, episode)
        still = changes == start and not effective
        outcome = self._outcome(still=still) if grade is None else grade["outcome"]
        return Played(outcome, tuple(made), effective, episode.within_budget, tuple(faults.items()))

    def _outcome(self, *, still: bool) -> float:
        """Of the episode as it stands: that of idling, where nothing was written and no check reads the trace."""
        if not still or self._reads_trace:
            return self._episode.grade().outcome
        if self._idle is None:
            self._idle = self._episode.grade().outcome
        return self._idle

    def effective(self, calls: Sequence[Call]) -> tuple[str, ...]:
        """What a trajectory's calls come to."""
        self._episode.reset()
        for call in calls:
            answer = self._episode.call(*call)
            if answer.ok:
                self.succeeded.add(call[0])
            if answer.done:
                break
        return effective_calls(self._world, self._episode)

    def _faults(
        self, attack: Attack, call: Call, answer: ToolResult, images: tuple[bytes, bytes]
    ) -> list[tuple[str, str]]:
        found = []
        if not answer.ok and images[0] != images[1] and self._hash(images[0]) != self._hash(images[1]):
            found.append(("refused_call_changes", f"{call[0]}: it was refused and changed the state"))
        if answer.ok and attack.must_be_refused:
            found.append(("misfit_accepted", f"{call[0]}: {str(call[1])[:100]} was accepted"))
        if self._hidden.texts and (attack.reads_only or not answer.ok):
            seen = self._hidden.texts_in(json.dumps([answer.result, answer.error], ensure_ascii=False))
            if seen:
                found.append(
                    ("hidden_value_shown", f"{call[0]}: it shows {seen[0][:60]!r}, which only hidden rows hold")
                )
        return found

    def _hash(self, image: bytes) -> str:
        twin = WorldEpisode(self._task)
        try:
            twin.restore(WorldSnapshot(twin.task.id, image, Transcript()))
            return twin.state_hash()
        finally:
            twin.close()

    def after_the_end(self, calls: Sequence[Call], more: Sequence[Call]) -> str:
        """What calls change that are made after an episode has ended; empty where they change nothing.

        Args:
            calls: they end the episode; where they do not, there is nothing to be seen.
            more: made after that.
        """
        episode = self._episode
        episode.reset()
        for call in calls:
            episode.call(*call)
        if not episode.over:
            return ""
        image, grade = episode.image(), episode.grade()
        for call in more:
            if episode.call(*call).ok:
                return f"{call[0]} was accepted"
        episode.malformed("what")
        return "" if (episode.image(), episode.grade()) == (image, grade) else "the state or the grade changed"

    def malformed(self, calls: Sequence[Call]) -> Grade:
        """The grade of calls that are followed by an action that is no tool call."""
        self._episode.reset()
        for call in calls:
            self._episode.call(*call)
        self._episode.malformed("I am done.")
        return self._episode.grade()

    def over_budget(self, calls: Sequence[Call]) -> Grade:
        """The grade of calls that are preceded by so many useless ones that they do not fit into the budget."""
        self._episode.reset()
        for _ in range(self._task.turns):
            self._episode.call("no_such_tool", {})
        for call in calls:
            self._episode.call(*call)
        return self._episode.grade()
