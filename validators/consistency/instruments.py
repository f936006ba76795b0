"""The instruments, and what each of them says of every run of a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.judge import (
    Calibration,
    Judge,
    Labelled,
    Trials,
    calibrate,
    confusion,
    policies_of,
    rubric_of,
    world_case,
)
from envsynth.llm import Client, JudgeSettings
from envsynth.models import Candidate, Finding, Verdict, VerdictStatus, World
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel
from envsynth.validators.consistency.grounding import Grounding
from envsynth.validators.consistency.rules import broken_rules
from envsynth.validators.consistency.runs import Run
from envsynth.validators.worlds.opened import task_of

__all__ = ["Instrument", "by_grounding", "by_judge", "by_read_back", "by_trace_rules"]

_SHOWN = 3
"""Reasons that a finding names."""
_RIGHT = ("reference", "alternative")


class Instrument(NamedTuple):
    """What one instrument says."""

    name: str
    calls: Mapping[str, bool | None]
    """By label, whether it calls the run right; None: it cannot say."""
    faults: tuple[Finding, ...] = ()
    """What of it is a defect of the task."""
    unused: str = ""
    """Why it does not count; empty where it does."""
    notes: tuple[Finding, ...] = ()
    """What else is to be known."""
    measured: Mapping[str, JsonValue] = {}
    """Figures of its own."""

    def document(self, runs: Sequence[Run]) -> dict[str, JsonValue]:
        """Its confusion matrix against the labels, for the catalog."""
        matrix = confusion((run.right, self.calls.get(run.label)) for run in runs)
        return {
            "instrument": self.name, **matrix.document(), "agreement": matrix.agreement, "used": not self.unused,
            "unused": self.unused, **self.measured,
        }  # fmt: skip


def by_trace_rules(candidate: Candidate, world: World, runs: Sequence[Run], grounding: Grounding) -> Instrument:
    """Rules on the way. Only a reference that breaks one is the task's fault: an alternative may be careless."""
    broken = dict(zip((run.label for run in runs), broken_rules(candidate, world, runs, grounding), strict=True))
    faults = tuple(
        Finding(rule="reference_breaks_rules", message="; ".join(map(str, broken[run.label][:_SHOWN])), where=run.label)
        for run in runs if run.label == "reference" and broken[run.label]
    )  # fmt: skip
    return Instrument("trace_rules", {label: not rules for label, rules in broken.items()}, faults)


def by_grounding(runs: Sequence[Run], grounding: Grounding) -> Instrument:
    """Facts that are told. A text or a name that nothing tells an agent cannot be demanded of it.

    An amount or a day may follow by a longer reckoning than this instrument knows: that is noted, and no fault.
    An alternative may leave out to look: what the reference was told counts for it.
    """
    right = [run for run in runs if run.right and run.label.partition(":")[0] in _RIGHT]
    free, known = grounding.free(right), grounding.known_places(right)
    reference = [run for run in right if run.label == "reference"]
    calls: dict[str, bool | None] = {}
    faults: list[Finding] = []
    notes: list[Finding] = []
    for run in runs:
        found = grounding.ungrounded(run, free, known)
        calls[run.label] = None if found is None else not found
        if not found or run not in right:
            continue
        if run.label != "reference":
            found = grounding.ungrounded(run, free, known, reference) or []
        for hard, kept in ((True, faults), (False, notes)):
            values = [one for one in found if grounding.is_name(one) is hard]
            if values:
                kind = "reference" if run.label == "reference" else "alternative"
                rule = f"{kind}_ungrounded" if hard else f"{kind}_not_reckoned"
                kept.append(Finding(rule=rule, message="; ".join(map(str, values[:_SHOWN])), where=run.label))
    silent = "" if any(call is not None for call in calls.values()) else "there is nothing to ground"
    return Instrument("grounding", calls, tuple(faults), silent, tuple(notes))


def by_read_back(runs: Sequence[Run], earlier: Sequence[Verdict]) -> Instrument:
    """What `world_readback` said of each end; it reads end states, and not the way there."""
    said = next((verdict for verdict in earlier if verdict.validator == "world_readback"), None)
    passes = said.evidence.get("passes") if said is not None and said.status is VerdictStatus.PASS else None
    if not isinstance(passes, list):
        return Instrument("read_back", {}, unused="the task has no read-back that passed")
    return Instrument("read_back", {run.label: run.label in passes for run in runs})


def by_judge(
    client: Client | None, candidate: Candidate, world: World, model: WorldModel, runs: Sequence[Run]
) -> Instrument | None:
    """The configured judge, calibrated on this panel; None: the role has no model, or could not tell right from wrong.

    Where the outcome is a utility, right and wrong differ in luck and foresight, which no reader of a trace sees.

    Raises:
        ModelEndpointError, BudgetSpent: there was no answer.
    """
    if client is None or candidate.verifier.utility is not None:
        return None
    demanded = _demanded(client)
    panel = _labelled(candidate, world, model, _chosen(runs, demanded.runs))
    trials = Trials(demanded.repeats, demanded.overrides)
    found = calibrate(Judge(client), panel, rubric_of(candidate.instruction, candidate.verifier.rubric), trials)
    unused = found.unfit(demanded.agreement)
    faults: tuple[Finding, ...] = ()
    if not unused and found.calls.get("reference") is False:
        message = f"{client.settings.model}, which tells right runs of this task from wrong ones, calls it wrong"
        faults = (Finding(rule="judge_rejects_reference", message=message, where="reference"),)
    notes = (Finding(rule="judge_not_used", message=unused, where=client.settings.model),) if unused else ()
    return Instrument("judge", found.calls, faults, unused, notes, _figures(client, found))


def _demanded(client: Client) -> JudgeSettings:
    settings = client.settings
    return settings if isinstance(settings, JudgeSettings) else JudgeSettings(**settings.model_dump())


def _figures(client: Client, found: Calibration) -> dict[str, JsonValue]:
    obeyed: list[JsonValue] = list(found.obeyed[:_SHOWN])
    return {
        "model": client.settings.model, "repeated": found.repeated, "overrides": found.tried,
        "overrides_obeyed": found.flipped, "useless_answers": found.useless, "obeyed": obeyed,
        "strict_agreement": found.matrix.strict_agreement,
    }  # fmt: skip


def _chosen(runs: Sequence[Run], most: int) -> list[Run]:
    """Runs to try a judge on: the reference, other right ones up to half, and wrong ones from all over the panel."""
    right = sorted((run for run in runs if run.right), key=lambda run: run.label != "reference")
    wrong = [run for run in runs if run.right is False]
    kept = right[: max(1, most // 2)]
    room = min(len(wrong), most - len(kept))
    return [*kept, *(wrong[place * len(wrong) // room] for place in range(room))]


def _labelled(candidate: Candidate, world: World, model: WorldModel, runs: Sequence[Run]) -> list[Labelled]:
    """Cases of runs, each from the end of a play of its own."""
    policies = policies_of(world)
    episode = WorldEpisode(task_of(candidate, model))
    try:
        found = []
        for run in runs:
            episode.reset()
            for call in run.line.calls:
                episode.call(call.tool, dict(call.arguments))
            case = world_case(episode, candidate.verifier.rubric, policies=policies, gate=run.gate)
            found.append(Labelled(run.label, bool(run.right), case))
        return found
    finally:
        episode.close()
