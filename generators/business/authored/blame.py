"""From what the ladder found to the one artefact that it concerns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from envsynth.generators.business.authored.artefacts import (
    Checks,
    Instruction,
    Plan,
    Policies,
    Rows,
    Rubric,
    Schema,
    Tools,
)
from envsynth.generators.business.authored.faults import Fault
from envsynth.models import Finding, Model, Verdict, VerdictStatus

__all__ = ["WORLDLY", "faults_of"]

Kind = type[Model]
WORLDLY: frozenset[Kind] = frozenset({Schema, Policies, Tools, Rows})
"""Artefacts of a world, which are at fault whatever its tasks are."""

_BY_PLACE: Mapping[str, Kind] = MappingProxyType(
    {
        "tool": Tools, "invariant": Policies, "table": Rows, "world": Rows, "over": Tools, "check": Checks,
        "criterion": Rubric, "instruction": Instruction, "utility": Checks,
    }
)  # fmt: skip
"""By the first word of where a finding is."""
_BY_RULE: Mapping[str, Kind] = MappingProxyType(
    {
        "refers_to_hidden": Schema, "semantic_no_text": Schema, "tolerance_too_large": Schema,
        "value_not_compared": Schema, "nothing_to_decide": Tools, "world_invalid": Rows,
        "checks_ask_for_nothing": Checks, "hidden_copied": Rows,
        "observations_differ": Tools, "states_differ": Tools, "grades_differ": Checks, "reference_call_failed": Plan,
        "reference_differs": Tools, "reference_not_graded_1": Checks, "idle_not_as_claimed": Checks,
        "outcome_not_as_claimed": Checks, "panel_label_twice": Plan, "wrong_claims_full": Plan,
        "attack_worked": Checks, "acts_after_the_end": Tools, "mutant_survived": Checks,
    }
)  # fmt: skip
"""By rule, where the place does not say it or says it wrongly."""
_MUTANTS: Mapping[str, str] = MappingProxyType(
    {
        "left_out": "does one thing less than is wanted", "twice": "does one thing twice",
        "other_value": "does one thing with another value", "refused": "has one thing refused",
        "other_tool": "does another thing instead", "undone": "takes one thing back", "extra": "does one thing more",
    }
)  # fmt: skip


def faults_of(verdicts: Sequence[Verdict]) -> list[Fault]:
    """What keeps a candidate from climbing, each with its artefact; empty where no verdict is FAIL."""
    failed = next((verdict for verdict in verdicts if verdict.status is VerdictStatus.FAIL), None)
    return list(_blamed(failed)) if failed is not None else []


def _blamed(verdict: Verdict) -> Iterator[Fault]:
    for finding in verdict.findings:
        if finding.rule == "parameter_unused":  # noted, and no reason
            continue
        artefact = _artefact(finding)
        yield Fault(artefact, _untold(finding) if artefact is Checks else finding)


def _artefact(finding: Finding) -> Kind:
    kind = _BY_RULE.get(finding.rule)
    if kind is not None:
        if finding.rule == "hidden_copied":
            return _BY_PLACE.get(_first_word(finding), kind)
        return kind
    return _BY_PLACE.get(_first_word(finding), Plan)


def _first_word(finding: Finding) -> str:
    return finding.where.replace(",", " ").partition(" ")[0]


def _untold(finding: Finding) -> Finding:
    """A finding as the verifier's author may read it: without the calls of the plan."""
    if finding.rule != "mutant_survived":
        return finding
    kind, _, rest = finding.message.partition(":")
    table = rest.partition("(")[2].partition(")")[0].partition(":")[0]
    what = _MUTANTS.get(kind, "differs")
    message = f"a way that {what} ends otherwise ({table or 'another end'}), and all checks hold"
    return Finding(rule=finding.rule, message=message)
