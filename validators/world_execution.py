"""`world_execution`: every trajectory of the panel gets exactly the outcome that is claimed, and utilities agree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.judging import verdict_of
from envsynth.models import Candidate, Finding, Source, Trajectory, Utility, Verdict, VerdictStatus
from envsynth.protocols import Context
from envsynth.runtime.worlds.episode import WorldEpisode, WorldTask
from envsynth.timing import Stopwatch
from envsynth.validators.worlds.opened import opened, task_of
from envsynth.validators.worlds.plays import panel_plays
from envsynth.validators.worlds.replayer import Call, Seen, replay
from envsynth.validators.worlds.surface import surface

__all__ = ["WorldExecution"]

REPEATS = 3
"""Fresh episodes in which the reference must get 1."""
_TOLERANCE = 1e-9
"""Relative; utilities are sums of a few numbers."""


class Played(NamedTuple):
    """What one trajectory came to."""

    outcome: float
    reward: float
    utility: float | None
    fault: str
    """What was said of its first refused call; empty where none was."""


class WorldExecution:
    """Idle gets what it should, the reference 1 in fresh episodes, every other trajectory what it claims."""

    name = "world_execution"
    version = "2"
    order = 30
    environment = "world"

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """FAIL where an outcome is not the claimed one, the reference fails, or utilities contradict each other."""
        watch = Stopwatch()
        open_ = opened(candidate, context)
        model = open_.model
        panel = {line.label: line for line in candidate.panel}
        findings = [*_of_labels(candidate.panel, candidate.verifier.utility)]
        if findings:
            return verdict_of(self, VerdictStatus.FAIL, findings, watch)
        plays = panel_plays(candidate, model)
        played = {line.label: _read(seen, line) for line, seen in zip(candidate.panel, plays, strict=True)}
        task, reference = task_of(candidate, model), panel["reference"]
        calls: list[Call] = [(call.tool, call.arguments) for call in reference.calls]
        fresh = [_fresh(task, calls, reference) for _ in range(REPEATS)]
        findings += _of_reference([*fresh, played["reference"]])
        findings += _of_claims(panel, played)
        evidence: dict[str, JsonValue] = {
            "outcomes": {label: one.outcome for label, one in played.items()},
            "fingerprint": surface(open_.world, task, calls).document(),
        }
        if candidate.verifier.utility is not None:
            utilities = {label: one.utility for label, one in played.items() if one.utility is not None}
            findings += utility_findings(candidate.verifier.utility, utilities)
            evidence["utilities"] = dict(utilities)
        status = VerdictStatus.FAIL if findings else VerdictStatus.PASS
        return verdict_of(self, status, findings, watch, evidence=evidence)


def _fresh(task: WorldTask, calls: Sequence[Call], line: Trajectory) -> Played:
    """Play a trajectory in an episode that was never used."""
    episode = WorldEpisode(task)
    try:
        return _read(replay(episode, calls, exact=False), line)
    finally:
        episode.close()


def _read(seen: Seen, line: Trajectory) -> Played:
    """What a play of a trajectory came to."""
    answers = [json.loads(text) for text in seen.observations[-len(line.calls) :]] if line.calls else []
    refused = next((turn for turn, answer in enumerate(answers) if not answer["ok"]), None)
    fault = ""
    if refused is not None:
        tool = line.calls[refused].tool
        fault = f"call {refused + 1}, {tool}: {answers[refused]['error'].removeprefix(f'{tool}: ')}"
    grade = json.loads(seen.grade)
    return Played(grade["outcome"], grade["reward"], grade["detail"].get("utility"), fault)


def _of_labels(panel: Sequence[Trajectory], utility: Utility | None) -> Iterator[Finding]:
    """Whether the panel has what every panel must have, with claims that make sense."""
    claims = {line.label: line.outcome for line in panel}
    if len(claims) < len(panel):
        yield Finding(rule="panel_label_twice", message="two trajectories have the same label")
    for label in ("reference", "idle"):
        if label not in claims:
            yield Finding(rule="panel_incomplete", message=f"there is no trajectory {label!r}")
    if claims.get("reference", 1) != 1:
        yield Finding(rule="reference_claims_less", message=f"the reference claims {claims['reference']}")
    if utility is None and claims.get("idle", 0) != 0:
        yield Finding(rule="idle_claims_more", message=f"doing nothing claims {claims['idle']}")
    for label, outcome in claims.items():
        if outcome >= 1 and label.partition(":")[0] in ("idle", "mutant"):
            yield Finding(rule="wrong_claims_full", message="it claims the full outcome", where=label)


def _of_reference(plays: Sequence[Played]) -> Iterator[Finding]:
    for number, one in enumerate(plays, 1):
        if one.fault:
            yield Finding(rule="reference_call_failed", message=one.fault, where=f"reference, episode {number}")
        if one.outcome != 1 or one.reward != 1:
            message = f"it got outcome {one.outcome} and reward {one.reward}"
            yield Finding(rule="reference_not_graded_1", message=message, where=f"reference, episode {number}")
        if one.utility != plays[0].utility:
            message = f"{one.utility} after {plays[0].utility}"
            yield Finding(rule="reference_differs", message=message, where=f"reference, episode {number}")


def _of_claims(panel: Mapping[str, Trajectory], played: Mapping[str, Played]) -> Iterator[Finding]:
    for label, line in panel.items():
        if label != "reference" and played[label].outcome != line.outcome:
            rule = "idle_not_as_claimed" if label == "idle" else "outcome_not_as_claimed"
            message = f"it claims {line.outcome} and got {played[label].outcome}"
            yield Finding(rule=rule, message=message, where=label)


def utility_findings(utility: Utility, utilities: Mapping[str, float]) -> Iterator[Finding]:
    """What contradicts what in a graded outcome.

    Args:
        utility: the verifier's; an oracle that is not the reference is played as `alternative:oracle`.
        utilities: realised through the tools, by label.
    """
    reference, idle = utilities["reference"], utilities["idle"]
    if not _equal(reference, utility.reference):
        message = f"it realised {reference:g}, and the verifier says {utility.reference:g}"
        yield Finding(rule="reference_utility_differs", message=message, where="reference")
    default = utilities.get("mutant:default", utility.default)
    if not _equal(default, utility.default):
        message = f"it realised {default:g}, and the verifier says {utility.default:g}"
        yield Finding(rule="default_utility_differs", message=message, where="mutant:default")
    if utility.hindsight is not None:
        for label, value in utilities.items():
            if value > utility.hindsight and not _equal(value, utility.hindsight):
                message = f"it realised {value:g}, and nobody could have more than {utility.hindsight:g}"
                yield Finding(rule="better_than_hindsight", message=message, where=label)
    if utility.band is not None:
        yield from _of_band(utility.band, default, reference, idle)
    if utility.solved is not None:
        yield from _of_solver(utility.solved, utilities)


def _of_band(band: tuple[float, float], default: float, reference: float, idle: float) -> Iterator[Finding]:
    low, high = band
    if reference <= idle:
        message = f"the reference has {reference:g}, and doing nothing {idle:g}"
        yield Finding(rule="reference_not_above_idle", message=message)
        return
    place = (default - idle) / (reference - idle)
    if not low <= place <= high:
        message = f"the default lies at {place:.3f} between idle and reference, outside {low:g} to {high:g}"
        yield Finding(rule="default_outside_band", message=message)


def _of_solver(solved: float, utilities: Mapping[str, float]) -> Iterator[Finding]:
    label = "alternative:oracle" if "alternative:oracle" in utilities else "reference"
    if not _equal(utilities[label], solved):
        message = f"it realised {utilities[label]:g} through the tools, and the solver says {solved:g}"
        yield Finding(rule="oracle_not_reproduced", message=message, where=label)


def _equal(left: float, right: float) -> bool:
    return abs(left - right) <= _TOLERANCE * max(1.0, abs(left), abs(right))
