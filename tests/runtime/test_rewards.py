from __future__ import annotations

import pytest

from envsynth.runtime.rewards import combined, gate, outcome, process


def test_outcome_is_all_or_nothing_and_never_vacuous() -> None:
    assert outcome({"a": True, "b": True}) == 1.0
    assert outcome({"a": True, "b": False}) == 0.0
    with pytest.raises(ValueError, match="without checks"):
        outcome({})


def test_one_broken_condition_closes_the_gate() -> None:
    assert gate({"valid_transcript": True, "within_budget": True}) == 1.0
    assert gate({"valid_transcript": True, "within_budget": False}) == 0.0
    assert (combined(0.0, 1.0), combined(1.0, 1.0), combined(1.0, 0.0)) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("criteria", "share"),
    [
        ([], None),
        ([("essential", None), ("optional", None)], None),
        ([("essential", True), ("important", False), ("pitfall", None)], 0.5),
        ([("essential", False), ("important", True)], 0.0),
        ([("pitfall", False), ("optional", True), ("optional", True)], 2 / 3),
    ],
)
def test_process_is_the_share_of_what_applies(criteria: list, share: float | None) -> None:
    assert process(criteria) == share
