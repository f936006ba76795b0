"""Grading a folder that was handed in from elsewhere, such as another container."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from ..sandbox.handed import HandedIn
from .contract import Backend, Grade, Sandbox
from .workspace import WorkspaceEpisode, WorkspaceTask

__all__ = ["UNSEEN", "HandedEpisode", "grade_folder", "without_unseen"]

UNSEEN = ("process", "criterion.", "penalty.", "gate.")
"""Beginnings of the components that are judged by the calls of an episode, of which a folder says nothing."""


class HandedEpisode(WorkspaceEpisode):
    """An episode that was played elsewhere; nothing is known of its calls."""

    def take(self, folder: Path) -> None:
        """Have a folder as the final state.

        Raises:
            SandboxError: nothing was handed in.
        """
        # Collecting a submission asks no more of a sandbox than a folder can give.
        self._sandbox = cast(Sandbox, HandedIn(folder, self.task.start_folder))
        self.stop()


def grade_folder(task: WorkspaceTask, folder: Path, backend: Backend, scratch: Path) -> Grade:
    """Grade what a folder holds as the final state of a workspace.

    There are no calls: the gate is open, and what the rubric says of them means nothing (`without_unseen`).

    Args:
        task: which task.
        folder: the final state.
        backend: where the tests run.
        scratch: host folder for temporary files.

    Raises:
        SandboxError: nothing was handed in, or the environment failed; there is no grade.
    """
    episode = HandedEpisode(task, backend, scratch=scratch)
    try:
        episode.take(folder)
        return episode.grade()
    finally:
        episode.close()


def without_unseen(rewards: Mapping[str, float]) -> dict[str, float]:
    """Components of `reward_vector` without those that are judged by an episode's calls."""
    return {name: value for name, value in rewards.items() if not name.startswith(UNSEEN)}
