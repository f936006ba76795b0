"""A policy that calls tools by chance: what luck alone comes to."""

from __future__ import annotations

from envsynth.agents.base import Play, Played, Told
from envsynth.agents.values import Seen, drawn, schemas_of
from envsynth.models import Policy, digest_of
from envsynth.runtime.contract import Episode
from envsynth.seeds import stream

__all__ = ["BlindAgent"]

_VERSION = "1"


class BlindAgent:
    """Makes as many calls as the reference, each a tool by chance with values that fit, those it has seen first.

    Args:
        whole: make as many calls as the budget allows, instead.
    """

    policy = Policy.RANDOM

    def __init__(self, *, whole: bool = False) -> None:
        self.name = "whole budget" if whole else ""
        self._whole = whole

    def identity(self, told: Told) -> str:
        """Digest of its rules and of the number of calls."""
        return digest_of([_VERSION, "blind", self._length(told)])

    def play(self, episode: Episode, told: Told, k: int) -> Played:
        """Play draw `k`; tools that hand in are left for the last call."""
        rng = stream(f"{told.played}/{k}", "blind-agent")
        schemas = schemas_of(episode.tools())
        play, seen = Play(episode, told), Seen()
        acting = [name for name in schemas if name not in play.submits] or list(schemas)
        for left in reversed(range(self._length(told))):
            ending = [name for name in schemas if name in play.submits] if left == 0 else []
            tool = rng.choice(ending or acting)
            seen.look(play.call(tool, drawn(schemas[tool], rng, seen)).result)
            if play.ending is not None:
                break
        return Played(play.stop(), turns=play.calls)

    def _length(self, told: Told) -> int:
        reference = None if self._whole else told.panel.get("reference")
        return max(1, min(told.turns, len(reference.calls) if reference is not None else told.turns))
