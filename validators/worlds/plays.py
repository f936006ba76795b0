"""The panel of a candidate, played once here: every validator that asks reads the same plays."""

from __future__ import annotations

from collections.abc import Sequence

from envsynth.models import Candidate
from envsynth.runtime.worlds.episode import WorldModel
from envsynth.validators.worlds.opened import task_of
from envsynth.validators.worlds.replayer import Call, Seen, replay_all

_latest: list[tuple[Candidate, tuple[Seen, ...]]] = []
"""Of the candidate that was asked for last: a worker judges one after the other."""


def panel_calls(candidate: Candidate) -> list[list[Call]]:
    """The calls of each trajectory of the panel, in its order."""
    return [[(call.tool, call.arguments) for call in line.calls] for line in candidate.panel]


def panel_plays(candidate: Candidate, model: WorldModel) -> Sequence[Seen]:
    """Each trajectory of the panel, played in this process.

    Raises:
        SandboxError: an end cannot be graded.
    """
    kept = next((plays for other, plays in _latest if other is candidate), None)
    if kept is None:
        kept = tuple(replay_all(task_of(candidate, model), panel_calls(candidate), exact=False))
        _latest[:] = [(candidate, kept)]
    return kept
