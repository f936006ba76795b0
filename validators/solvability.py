"""`solvability`: whether attempts of the configured solver at a code task are neither always nor never right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from envsynth.judging import measured_tests, nothing_measured, verdict_of
from envsynth.models import Attempt, Candidate, Finding, Source, Verdict, VerdictStatus
from envsynth.protocols import Context
from envsynth.rollout.calibration import Trial, calibrate, solver_settings
from envsynth.rollout.playable import Measured, Playables
from envsynth.timing import Stopwatch

__all__ = ["Solvability"]


class Solvability:
    """PASS where the solver's attempts calibrate the task, as `envsynth.rollout.calibration` says; else SKIP.

    FAIL only where [llm.solver] has must_solve and no attempt got anything. Without a solver: SKIP.
    """

    name = "solvability"
    version = "1"
    order = 70
    models: ClassVar[tuple[str, ...]] = ("solver",)

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """Let the solver attempt the candidate in sandboxes of its own."""
        watch = Stopwatch()
        client = context.model("solver")
        if client is None:
            finding = Finding(rule="no_solver", message="the role solver has no model")
            return verdict_of(self, VerdictStatus.SKIP, [finding], watch)
        tests = measured_tests(earlier)
        if tests is None:
            return nothing_measured(self, watch)
        controls = next((verdict.controls for verdict in earlier if verdict.controls), ())
        task = Playables(context.blobs.get, context.cache_dir).of(
            candidate, (), Measured(tests, controls), lambda: context.backend(source)
        )

        def each(work: Callable[[int], Attempt], numbers: Iterable[int]) -> list[Attempt]:
            return context.each(work, numbers, source)

        found = calibrate(task, client, Trial(each, context.attempted, graded=False, luck=False))
        rejected = found.unsolved and solver_settings(client).must_solve
        status = VerdictStatus.FAIL if rejected else VerdictStatus.SKIP if found.findings else VerdictStatus.PASS
        return verdict_of(self, status, found.findings, watch, evidence=found.evidence)
