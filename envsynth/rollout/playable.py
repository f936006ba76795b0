"""A task, or a candidate that is to become one, ready for any number of episodes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from envsynth.agents import Told
from envsynth.models import Candidate, Control, Task, TestLists, Trajectory, WorldRef, played_digest
from envsynth.rollout.failures import threshold_of
from envsynth.runtime.contract import JSON, Backend, Episode
from envsynth.runtime.pack import world_model
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

__all__ = ["Measured", "Playable", "Playables", "playing"]

_KEPT = 64
"""Worlds that are kept ready."""


class Measured(NamedTuple):
    """What validators found out of a workspace that grading needs."""

    tests: TestLists | None = None
    controls: Sequence[Control] = ()


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
    """A new episode; reset it next, close it in the end. Any thread may ask."""

    def without_hint(self) -> Playable:
        """The same without its hint."""
        return self._replace(told=self.told._replace(hint=""))


class Playables:
    """Makes tasks playable. Worlds are made when they are first played, once for all tasks in them."""

    def __init__(self, blobs: Callable[[str], bytes], cache_dir: Path) -> None:
        """From one store of contents.

        Args:
            blobs: contents by sha256; asked from several threads.
            cache_dir: where trees and environments of workspaces are kept.
        """
        self._blobs = blobs
        self._cache_dir = cache_dir
        self._worlds: dict[str, WorldModel] = {}
        self._making = threading.Lock()

    def of_task(self, task: Task, backend: Callable[[], Backend]) -> Playable:
        """An admitted task; arguments as for `of`."""
        return self.of(task.candidate, task.panel, Measured(task.tests, task.controls), backend)

    def of(
        self, candidate: Candidate, panel: Sequence[Trajectory], measured: Measured, backend: Callable[[], Backend]
    ) -> Playable:
        """A candidate.

        Args:
            candidate: what is played.
            panel: its labelled trajectories.
            measured: for workspaces.
            backend: the sandbox of its source; asked for workspaces only, and at once.
        """
        told = Told(
            task=candidate.id, played=played_digest(candidate, *measured), instruction=candidate.instruction,
            turns=candidate.budget.turns, cost=candidate.budget.cost, hint=candidate.hint,
            panel={line.label: line for line in panel}, gated="valid_transcript" in candidate.verifier.reward.gate,
        )  # fmt: skip
        document = cache(lambda: playing(candidate, measured))
        if isinstance(candidate.environment, WorldRef):
            opens = self._world(candidate.id, document, candidate.environment.world)
        else:
            opens = self._workspace(candidate.id, document, backend())
        threshold = threshold_of(candidate.verifier)
        return Playable(
            candidate.id, candidate.provenance.lead.key, candidate.environment.kind, threshold, told, opens
        )  # fmt: skip

    def _world(self, name: str, document: Callable[[], JSON], digest: str) -> Callable[[], Episode]:
        return lambda: WorldEpisode(WorldTask(document(), self._model(digest), task_id=name))

    def _model(self, digest: str) -> WorldModel:
        with self._making:
            model = self._worlds.pop(digest, None) or world_model(digest, self._blobs)
            self._worlds[digest] = model
            if len(self._worlds) > _KEPT:
                del self._worlds[next(iter(self._worlds))]
            return model

    def _workspace(self, name: str, document: Callable[[], JSON], backend: Backend) -> Callable[[], Episode]:
        def opened() -> Episode:
            from envsynth.runtime.workspace import open_task

            return open_task(document(), self._blobs, self._cache_dir, backend, task_id=name)

        return opened


def playing(candidate: Candidate, measured: Measured) -> JSON:
    """The document that an episode reads of a task, for a candidate that may not be one yet."""
    return {
        # The panel is not played from here, and may be large.
        "candidate": {**candidate.document(), "panel": []},
        "tests": None if measured.tests is None else measured.tests.document(),
        "controls": [control.document() for control in measured.controls],
    }
