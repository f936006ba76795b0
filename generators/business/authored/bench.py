"""Where drafts are tried out: worlds that calls are played in, and the ladder before anything is handed in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from envsynth.generators.business.stage import Played, Stage
from envsynth.models import Candidate, Check, Lead, Provenance, ToolCall, Trajectory, Verdict, Verifier, World, WorldRef
from envsynth.protocols import BlobStore
from envsynth.runtime.worlds.episode import WorldModel

__all__ = ["Bench"]

_LOOKS = (ToolCall(tool="list_pages"),)
_PROBE = "Look at the manual and at what the tools show, change nothing, and leave everything as it stands."
_LOOKED = Verifier(checks=(Check(id="looked", sql="SELECT EXISTS (SELECT 1 FROM trace WHERE ok)"),))


class Bench:
    """What examinations work with; keeps the world that was opened last."""

    def __init__(self, blobs: BlobStore, judge: Callable[[Candidate], Sequence[Verdict]], lead: Lead) -> None:
        """A bench.

        Args:
            blobs: where worlds are put.
            judge: climbs the ladder with a candidate.
            lead: for which everything is written.
        """
        self.judge = judge
        self.lead = lead
        self._blobs = blobs
        self._open: tuple[World, Stage] | None = None
        self._probed: dict[tuple[str, bool], tuple[Verdict, ...]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            self._open[1].close()

    def stage(self, world: World) -> Stage:
        """A stage of a world.

        Raises:
            ValueError: its tables cannot be made or filled.
        """
        if self._open is None or self._open[0] != world:
            model = WorldModel(world.document())
            if self._open is not None:
                self._open[1].close()
            self._open = (world, Stage(world, model))
        return self._open[1]

    def play(self, world: World, calls: Sequence[ToolCall]) -> Played:
        """Make calls in a world from its start."""
        return self.stage(world).play(calls)

    def put(self, world: World) -> WorldRef:
        """A world as tasks name it."""
        return WorldRef(world=self._blobs.put(world.to_json().encode()))

    def probe(self, world: World, *, played: bool) -> Sequence[Verdict]:
        """What the ladder says of a task in which nothing is wanted: what is wrong then is wrong with the world.

        Args:
            world: to be looked at.
            played: whether it is also attacked; else only its statements are read.
        """
        key = (world.digest(), played)
        if key not in self._probed:
            panel = (
                (Trajectory(label="reference", calls=_LOOKS, outcome=1), Trajectory(label="idle", outcome=0))
                if played
                else ()
            )
            candidate = Candidate(
                instruction=_PROBE, environment=self.put(world), verifier=_LOOKED, panel=panel,
                provenance=Provenance(lead=self.lead),
            )  # fmt: skip
            self._probed[key] = tuple(self.judge(candidate))
        return self._probed[key]
