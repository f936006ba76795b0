"""Playing a fixed trajectory."""

from __future__ import annotations

from collections.abc import Iterable

from .contract import JSON, Episode, Grade


def play(episode: Episode, calls: Iterable[JSON], *, seed: int = 0) -> Grade:
    """Reset, make the calls until the episode is over, and grade.

    Args:
        episode: of either kind.
        calls: documents of `models.ToolCall`: `tool` and `arguments`.
        seed: of the reset.

    Raises:
        SandboxError: the environment failed; there is no grade.
    """
    episode.reset(seed)
    for call in calls:
        if episode.call(call["tool"], call["arguments"]).done:
            break
    return episode.grade()
