"""`consistency`: trace rules, judge or fact-grounding, and read-back, each against the labels of the panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import JsonValue

from envsynth.judging import verdict_of
from envsynth.models import Candidate, Finding, Source, Verdict, VerdictStatus, canonical_json
from envsynth.protocols import Context
from envsynth.timing import Stopwatch
from envsynth.validators.consistency.grounding import Grounding
from envsynth.validators.consistency.instruments import (
    Instrument,
    by_grounding,
    by_judge,
    by_read_back,
    by_trace_rules,
)
from envsynth.validators.consistency.runs import Run, runs_of
from envsynth.validators.worlds.opened import opened
from envsynth.validators.worlds.plays import panel_plays

_SHOWN_RUNS = 8
"""Runs that are kept whole in the evidence."""
_SHOWN_CALLS = 1_500
"""Characters of the calls of one."""


class Consistency:
    """Three instruments that do not read the end-state checks judge the panel, and are held against its labels.

    FAIL is a defect of the task: a reference that breaks a rule on the way, a right run whose texts or names nothing
    tells, a reference that a judge rejects who is proved to tell right from wrong. A wrong run that an instrument calls
    right is that instrument's miss, and a finding. Where no judge is configured, or it proved unfit, fact-grounding
    stands in.
    """

    name = "consistency"
    version = "3"
    order = 60
    environment = "world"
    models: ClassVar[tuple[str, ...]] = ("judge",)

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """Compare; every matrix is in the evidence, with the instruments that were used."""
        watch = Stopwatch()
        open_ = opened(candidate, context)
        runs = runs_of(candidate, panel_plays(candidate, open_.model))
        facts = Grounding(candidate, open_.world)
        judge = by_judge(context.model("judge"), candidate, open_.world, open_.model, runs)
        grounding = by_grounding(runs, facts)
        if judge is not None and not judge.unused and not grounding.unused:
            grounding = grounding._replace(unused="the judge stands for it")
        instruments = [
            by_trace_rules(candidate, open_.world, runs, facts), *([judge] if judge else []), grounding,
            by_read_back(runs, earlier),
        ]  # fmt: skip
        faults = [finding for one in instruments for finding in one.faults]
        notes = [finding for one in instruments for finding in one.notes]
        apart = _disagreements(instruments, runs)
        findings = [*faults, *notes, *(_told(run, calls) for run, calls in apart)]
        status = VerdictStatus.FAIL if faults else VerdictStatus.PASS
        return verdict_of(self, status, findings, watch, evidence=_evidence(instruments, runs, apart))


_Apart = list[tuple[Run, dict[str, bool]]]


def _disagreements(instruments: Sequence[Instrument], runs: Sequence[Run]) -> _Apart:
    """Runs that an instrument in use calls otherwise than their labels, with all that was said of them."""
    found: _Apart = []
    for run in runs:
        said = {one.name: one.calls.get(run.label) for one in instruments if not one.unused}
        calls = {name: call for name, call in said.items() if call is not None}
        if run.right is not None and any(call is not run.right for call in calls.values()):
            found.append((run, calls))
    return found


def _told(run: Run, calls: Mapping[str, bool]) -> Finding:
    against = ", ".join(name for name, call in calls.items() if call is not run.right)
    rule = "right_called_wrong" if run.right else "wrong_called_right"
    told = "the label says right" if run.right else "the label says wrong"
    return Finding(rule=rule, message=f"{told}, and {against} the opposite", where=run.label)


def _evidence(instruments: Sequence[Instrument], runs: Sequence[Run], apart: _Apart) -> dict[str, JsonValue]:
    matrices: list[JsonValue] = [one.document(runs) for one in instruments]
    used: list[JsonValue] = [one.name for one in instruments if not one.unused]
    shown: dict[str, JsonValue] = {
        run.label: {"right": run.right, "said": dict(calls), "calls": _calls(run)}
        for run, calls in apart[:_SHOWN_RUNS]
    }  # fmt: skip
    return {"instruments": matrices, "used": used, "disagreements": len(apart), "apart": shown}


def _calls(run: Run) -> str:
    text = " ".join(f"{call.tool}{canonical_json(call.arguments)}" for call in run.line.calls)
    return text if len(text) <= _SHOWN_CALLS else f"{text[:_SHOWN_CALLS]}… ({len(text) - _SHOWN_CALLS} more characters)"
