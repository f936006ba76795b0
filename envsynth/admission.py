"""Which verdicts make a Task, and which tier. The only place where a Task is made."""

from __future__ import annotations

from collections.abc import Sequence

from envsynth.models import Candidate, Task, Tier, Trajectory, Verdict, VerdictStatus, VerdictSummary

VERSION = "1"
"""Raised whenever the rules below change: it is part of every ladder."""

REQUIRED = ("static", "determinism", "execution")
"""Validators without whose PASS nothing is admitted."""

CALIBRATING = ("solvability",)
"""Validators whose PASS lifts a verified task to `calibrated`."""


def admit(candidate: Candidate, verdicts: Sequence[Verdict], panel: Sequence[Trajectory]) -> Task | None:
    """A task, when every verdict is final, none is FAIL and every required validator said PASS.

    Args:
        candidate: what is proposed.
        verdicts: one a validator.
        panel: labelled trajectories; a reference and an idle one at least.
    """
    said = {verdict.validator: verdict for verdict in verdicts}
    if any(verdict.status not in (VerdictStatus.PASS, VerdictStatus.SKIP) for verdict in verdicts):
        return None
    if any(name not in said or said[name].status is not VerdictStatus.PASS for name in REQUIRED):
        return None
    if not {"reference", "idle"} <= {trajectory.label for trajectory in panel}:
        return None
    passed = {name for name, verdict in said.items() if verdict.status is VerdictStatus.PASS}
    return Task(
        candidate=candidate,
        tests=next((verdict.tests for verdict in verdicts if verdict.tests is not None), None),
        panel=tuple(panel),
        tier=Tier.CALIBRATED if passed.issuperset(CALIBRATING) else Tier.VERIFIED,
        verdicts=tuple(
            VerdictSummary(validator=verdict.validator, version=verdict.version, status=verdict.status.value)
            for verdict in verdicts
        ),
    )
