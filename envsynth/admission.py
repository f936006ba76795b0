"""Which verdicts make a Task, and which tier. The only place where a Task is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from envsynth.judging import measured_tests
from envsynth.models import Candidate, Strength, Task, Tier, Trajectory, Verdict, VerdictStatus, VerdictSummary

VERSION = "6"
"""Raised whenever the rules below change: it is part of every ladder."""

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "workspace": ("static", "determinism", "execution", "controls", "leakage", "adversary"),
    "world": ("world_static", "world_determinism", "world_execution", "world_adversary"),
}
"""Validators without whose PASS nothing is admitted, by kind of environment."""

HEARD: Mapping[str, tuple[str, ...]] = {
    "workspace": ("mutation", "strictness"),
    "world": ("world_readback", "world_mutation", "consistency"),
}
"""Validators that must have been asked, and may say that a candidate gives them nothing to measure."""

CALIBRATING: Mapping[str, tuple[str, ...]] = {
    "workspace": ("solvability",),
    "world": ("world_solvability",),
}
"""Validators whose PASS lifts a verified task to `calibrated`, by kind of environment."""


def admit(
    candidate: Candidate,
    verdicts: Sequence[Verdict],
    panel: Sequence[Trajectory],
    required: Sequence[str] | None = None,
) -> Task | None:
    """A task, when every verdict is final, none is FAIL and every required validator said PASS.

    Args:
        candidate: what is proposed.
        verdicts: one a validator, in the order of the ladder.
        panel: labelled trajectories; a reference and an idle one at least. Those of the verdicts are added.
        required: validators that must have said PASS; None: REQUIRED, and HEARD must have spoken, of its kind. Fewer
            only for a task that was admitted before some of these were there.
    """
    said = {verdict.validator: verdict for verdict in verdicts}
    if any(verdict.status not in (VerdictStatus.PASS, VerdictStatus.SKIP) for verdict in verdicts):
        return None
    kind = candidate.environment.kind
    wanted, heard = (REQUIRED[kind], HEARD[kind]) if required is None else (required, ())
    if any(name not in said or said[name].status is not VerdictStatus.PASS for name in wanted):
        return None
    if any(name not in said for name in heard):
        return None
    if not {"reference", "idle"} <= {trajectory.label for trajectory in panel}:
        return None
    passed = {name for name, verdict in said.items() if verdict.status is VerdictStatus.PASS}
    measured = (verdict.strength for verdict in verdicts if verdict.strength is not None)
    return Task(
        candidate=candidate,
        tests=measured_tests(verdicts),
        controls=next((verdict.controls for verdict in verdicts if verdict.controls), ()),
        strength=reduce(or_, measured, Strength()),
        panel=_labelled([*panel, *(line for verdict in verdicts for line in verdict.panel)]),
        tier=Tier.CALIBRATED if passed.issuperset(CALIBRATING[kind]) else Tier.VERIFIED,
        verdicts=tuple(
            VerdictSummary(validator=verdict.validator, version=verdict.version, status=verdict.status.value)
            for verdict in verdicts
        ),
    )


def _labelled(panel: Sequence[Trajectory]) -> tuple[Trajectory, ...]:
    """Each label once: what a validator labels as another did before gets a number."""
    lines: dict[str, Trajectory] = {}
    for line in panel:
        label, number = line.label, 1
        while label in lines:
            number += 1
            label = f"{line.label}:{number}"
        lines[label] = line.model_copy(update={"label": label})
    return tuple(lines.values())
