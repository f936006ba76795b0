"""What an outcome says of itself."""

from __future__ import annotations

from envsynth.models import Finding, Lead, Outcome, OutcomeStatus, Verdict, VerdictStatus

LEAD = Lead(
    generator="g", generator_version="1", source="s", name="n", revision="r", strategy="t", ref="f", index=0
)  # fmt: skip


def verdict(validator: str, status: VerdictStatus, rule: str) -> Verdict:
    return Verdict(validator=validator, version="1", status=status, findings=(Finding(rule=rule, message=f"{rule}!"),))


def test_the_reason_is_that_of_the_verdict_which_ended_the_climb() -> None:
    verdicts = (
        verdict("one", VerdictStatus.PASS, "noted"),
        verdict("two", VerdictStatus.SKIP, "nothing_to_do"),
        verdict("three", VerdictStatus.FAIL, "attack_worked"),
    )
    outcome = Outcome(lead=LEAD, ladder="l", verdicts=verdicts)
    assert (outcome.status, outcome.reason, outcome.detail) == (
        OutcomeStatus.REJECTED,
        "attack_worked",
        "attack_worked!",
    )
