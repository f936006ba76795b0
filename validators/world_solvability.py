"""`world_solvability`: whether attempts of the configured solver at a world task are neither always nor never right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from envsynth.judging import verdict_of
from envsynth.models import Attempt, Candidate, Finding, Source, Verdict, VerdictStatus
from envsynth.parallel import in_order
from envsynth.protocols import Context
from envsynth.rollout.calibration import Trial, calibrate, solver_settings
from envsynth.rollout.playable import Measured, Playables
from envsynth.runtime.worlds.episode import WorldEpisode
from envsynth.timing import Stopwatch
from envsynth.validators.worlds.opened import opened, task_of

__all__ = ["WorldSolvability"]


class WorldSolvability:
    """PASS where the solver's attempts calibrate the task, as `envsynth.rollout.calibration` says; else SKIP.

    FAIL only where [llm.solver] has must_solve and no attempt got anything. Without a solver: SKIP.
    """

    name = "world_solvability"
    version = "2"
    order = 70
    environment = "world"
    models: ClassVar[tuple[str, ...]] = ("solver",)

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """Let the solver attempt the candidate, as many attempts at once as it may be asked at once."""
        watch = Stopwatch()
        client = context.model("solver")
        if client is None:
            finding = Finding(rule="no_solver", message="the role solver has no model")
            return verdict_of(self, VerdictStatus.SKIP, [finding], watch)
        played = task_of(candidate, opened(candidate, context).model)
        playables = Playables(context.blobs.get, context.cache_dir)
        task = playables.of(candidate, candidate.panel, Measured(), lambda: context.backend(source))
        task = task._replace(open=lambda: WorldEpisode(played))

        def each(work: Callable[[int], Attempt], numbers: Iterable[int]) -> list[Attempt]:
            return in_order(work, numbers, client.settings.concurrency)

        graded = candidate.verifier.utility is not None
        found = calibrate(task, client, Trial(each, context.attempted, graded=graded, luck=True))
        rejected = found.unsolved and solver_settings(client).must_solve
        status = VerdictStatus.FAIL if rejected else VerdictStatus.SKIP if found.findings else VerdictStatus.PASS
        return verdict_of(self, status, found.findings, watch, evidence=found.evidence)
