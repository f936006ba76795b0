"""`world_adversary`: every attack of the battery is played in the world as it is, and graded as any episode."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from envsynth.judging import verdict_of
from envsynth.models import Candidate, Finding, Source, Strength, ToolCall, Trajectory, Verdict, VerdictStatus
from envsynth.protocols import Context
from envsynth.timing import Stopwatch
from envsynth.validators.world_adversary.backwards import order_findings
from envsynth.validators.world_adversary.battery import Attack, battery
from envsynth.validators.world_adversary.field import Field, Played
from envsynth.validators.world_adversary.oracles import oracle_findings
from envsynth.validators.world_adversary.usable import usable_findings
from envsynth.validators.worlds.opened import opened, task_of
from envsynth.validators.worlds.plays import panel_plays
from envsynth.validators.worlds.target import Call, Target

__all__ = ["WorldAdversary"]

MAX_SHIPPED = 5
"""Attacks that go into a task's panel, so that every copy of the grader can be tried with them."""
MAX_SHIPPED_CALLS = 60
_RIGHT = ("reference", "alternative")
"""First words of labels of what is right."""


class WorldAdversary:
    """No attack gets the full outcome, no refused call changes anything, no gate stays open, nothing is foreseen.

    An attack whose calls are the reference's own, or those of another right trajectory, is no attack.
    """

    name = "world_adversary"
    version = "7"
    order = 40
    environment = "world"

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """Play, grade, and list what worked; a few attacks go into the panel with the outcomes they got."""
        watch = Stopwatch()
        open_ = opened(candidate, context)
        target = Target(open_.world, candidate.budget.turns)
        attacks = {attack.name: attack for attack in battery(target)}
        attacks |= {
            line.label: Attack(line.label, "the generator's own", _calls(line))
            for line in candidate.panel
            if _kind(line) not in (*_RIGHT, "idle")
        }
        plays = zip(candidate.panel, panel_plays(candidate, open_.model), strict=True)
        known = {line.label: json.loads(seen.grade) for line, seen in plays}
        field = Field(open_.world, task_of(candidate, open_.model))
        try:
            right = {
                field.effective(_calls(line)) for line in candidate.panel if line.label.partition(":")[0] in _RIGHT
            }
            played = {name: field.play(attack, known.get(name)) for name, attack in attacks.items()}
            gates = list(_gate_findings(candidate, field, played))
        finally:
            field.close()
        worked = [name for name, one in played.items() if one.outcome >= 1 and one.effective not in right]
        if candidate.verifier.utility is not None:
            worked = [name for name in worked if not _is_lucky(name, attacks, played)]
        findings = [
            Finding(rule="attack_worked", message=f"got {played[name].outcome}: {attacks[name].why}", where=name)
            for name in worked
        ]
        findings += [
            Finding(rule=rule, message=message, where=name)
            for name, one in played.items()
            for rule, message in one.faults
        ]
        findings += [*gates, *oracle_findings(candidate, open_, target), *order_findings(candidate, open_, target)]
        findings += usable_findings(open_, field.succeeded)
        evidence: dict[str, JsonValue] = {
            "attacks": {name: one.outcome for name, one in played.items()},
            "right_by_chance": [name for name, one in played.items() if one.outcome >= 1 and name not in worked],
            "distinct_plays": len({one.effective for one in played.values()}),
        }
        verdict = verdict_of(
            self, VerdictStatus.FAIL if findings else VerdictStatus.PASS, findings, watch,
            strength=Strength(attacks=len(played), attacks_worked=len(worked)), evidence=evidence,
        )  # fmt: skip
        return verdict.model_copy(update={"panel": tuple(_shipped(attacks, played))})


def _is_lucky(name: str, attacks: Mapping[str, Attack], played: Mapping[str, Played]) -> bool:
    """Whether an attack got all that it could by the value it guessed, where others of its kind did not.

    Rejecting such a task would tell what is hidden: in all that are left, that guess is wrong.
    """
    guess = attacks[name].guess
    return bool(guess) and any(played[other].outcome < 1 for other, one in attacks.items() if one.guess == guess)


def _kind(line: Trajectory) -> str:
    """First word of its label."""
    return line.label.partition(":")[0]


def _calls(line: Trajectory) -> tuple[Call, ...]:
    return tuple((call.tool, call.arguments) for call in line.calls)


def _gate_findings(candidate: Candidate, field: Field, played: Mapping[str, Played]) -> Iterator[Finding]:
    """Whether what is no valid episode gets anything, though it does what the reference does."""
    reference = next((_calls(line) for line in candidate.panel if line.label == "reference"), ())
    malformed = field.malformed(reference[:-1])
    if malformed.reward != 0:
        message = f"an action that is no tool call got reward {malformed.reward}"
        yield Finding(rule="gate_open", message=message, where="malformed")
    late = field.over_budget(reference)
    if late.reward != 0:
        message = f"more calls than the budget allows got reward {late.reward}"
        yield Finding(rule="gate_open", message=message, where="over_budget")
    every = played.get("every_tool")
    changed = field.after_the_end(reference, every.made[:20] if every else reference[:5])
    if changed:
        yield Finding(rule="acts_after_the_end", message=changed, where="after_the_end")


def _shipped(attacks: Mapping[str, Attack], played: Mapping[str, Played]) -> Iterator[Trajectory]:
    """The attacks of the battery that came furthest, each doing something else than the others and the panel's."""
    known = {one.effective for name, one in played.items() if ":" in name}
    left = MAX_SHIPPED
    for name, one in sorted(played.items(), key=lambda pair: (-pair[1].outcome, pair[0])):
        plain = ":" not in name and not attacks[name].must_be_refused
        if not left or not plain or one.outcome >= 1 or not one.in_budget or one.effective in known:
            continue
        if len(one.made) > MAX_SHIPPED_CALLS:
            continue
        known.add(one.effective)
        left -= 1
        calls = tuple(ToolCall(tool=tool, arguments=arguments) for tool, arguments in one.made)
        yield Trajectory(label=f"attack:{name}", calls=calls, outcome=one.outcome)
