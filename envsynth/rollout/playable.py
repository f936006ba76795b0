"""A task, or a candidate that is to become one, ready for any number of episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from envsynth.agents import Told
from envsynth.models import Candidate, Control, Task, TestLists, Trajectory, WorldRef, played_digest
from envsynth.rollout.failures import threshold_of
from envsynth.runtime.contract import JSON, Backend, Episode
from envsynth.runtime.pack import world_model
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

__all__ = ["Playable", "Playables", "playable", "playing"]

_KEPT = 32
"""Worlds that are kept ready."""
_WORKSPACE_SUBMITS = frozenset({"submit"})


class Playable(NamedTuple):
    """What attempts are made at."""

    task: str
    """Id of the candidate."""
    lead: str
    """Key of its lead."""
    kind: str
    """`workspace` or `world`."""
    threshold: float
    """Least outcome of a success."""
    told: Told
    """What an agent may know, the hint included."""
    open: Callable[[], Episode]
    """A new episode; reset it next, close it in the end."""

    def without_hint(self) -> Playable:
        """The same without its hint."""
        return self._replace(told=self.told._replace(hint=""))


class Playables:
    """Makes tasks playable; worlds are made once, whatever the number of tasks in them."""

    def __init__(self, blobs: Callable[[str], bytes], cache_dir: Path) -> None:
        """From one store of contents.

        Args:
            blobs: contents by sha256.
            cache_dir: where trees and environments of workspaces are kept.
        """
        self._blobs = blobs
        self._cache_dir = cache_dir
        self._worlds: dict[str, WorldModel] = {}

    def of_task(self, task: Task, backend: Callable[[], Backend]) -> Playable:
        """An admitted task.

        Args:
            task: the task.
            backend: the sandbox of its source; asked for workspaces only.

        Raises:
            SandboxError: the world cannot be made.
        """
        return self.of(task.candidate, task.panel, (task.tests, task.controls), backend)

    def of(
        self,
        candidate: Candidate,
        panel: Sequence[Trajectory],
        measured: tuple[TestLists | None, Sequence[Control]],
        backend: Callable[[], Backend],
    ) -> Playable:
        """A candidate with what was measured of it: test lists and controls."""
        if isinstance(candidate.environment, WorldRef):
            model = self._world(candidate.environment.world)
            opens, submits = world_episodes(candidate, model)
        else:
            opens, submits = self._workspace(candidate, measured, backend), _WORKSPACE_SUBMITS
        return playable(candidate, panel, measured, (opens, submits))

    def _world(self, digest: str) -> WorldModel:
        model = self._worlds.pop(digest, None) or world_model(digest, self._blobs)
        self._worlds[digest] = model
        if len(self._worlds) > _KEPT:
            del self._worlds[next(iter(self._worlds))]
        return model

    def _workspace(
        self, candidate: Candidate, measured: tuple[TestLists | None, Sequence[Control]], backend: Callable[[], Backend]
    ) -> Callable[[], Episode]:
        document = playing(candidate, *measured)
        chosen = backend()

        def opened() -> Episode:
            from envsynth.runtime.workspace import open_task

            return open_task(document, self._blobs, self._cache_dir, chosen, task_id=candidate.id)

        return opened


def world_episodes(candidate: Candidate, model: WorldModel) -> tuple[Callable[[], Episode], frozenset[str]]:
    """What opens episodes of a world task, and the tools that hand in."""
    task = WorldTask(playing(candidate, None, ()), model, task_id=candidate.id)
    submits = frozenset(name for name, tool in model.tools.items() if tool.kind == "submit")
    return lambda: WorldEpisode(task), submits


def playable(
    candidate: Candidate,
    panel: Sequence[Trajectory],
    measured: tuple[TestLists | None, Sequence[Control]],
    episodes: tuple[Callable[[], Episode], frozenset[str]],
) -> Playable:
    """A candidate, ready.

    Args:
        candidate: what is played.
        panel: its labelled trajectories.
        measured: test lists and controls, for workspaces.
        episodes: what opens one, and the tools that hand in.
    """
    opens, submits = episodes
    told = Told(
        task=candidate.id, played=played_digest(candidate, *measured), instruction=candidate.instruction,
        turns=candidate.budget.turns, cost=candidate.budget.cost, hint=candidate.hint, panel=_by_label(panel),
        submits=submits, gated="valid_transcript" in candidate.verifier.reward.gate,
    )  # fmt: skip
    threshold = threshold_of(candidate.verifier)
    return Playable(
        candidate.id, candidate.provenance.lead.key, candidate.environment.kind, threshold, told, opens
    )  # fmt: skip


def playing(candidate: Candidate, tests: TestLists | None, controls: Sequence[Control]) -> JSON:
    """The document that an episode reads of a task, for a candidate that may not be one yet."""
    return {
        "candidate": candidate.document(),
        "tests": None if tests is None else tests.document(),
        "controls": [control.document() for control in controls],
    }


def _by_label(panel: Iterable[Trajectory]) -> Mapping[str, Trajectory]:
    return {line.label: line for line in reversed(tuple(panel))}
