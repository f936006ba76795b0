from __future__ import annotations

import pytest

from envsynth.models import RewardSpec
from envsynth.runtime.rewards import combined, gate, in_words, outcome, process


def test_outcome_is_all_or_nothing_and_never_vacuous() -> None:
    assert outcome({"a": True, "b": True}) == 1.0
    assert outcome({"a": True, "b": False}) == 0.0
    with pytest.raises(ValueError, match="without checks"):
        outcome({})


def test_one_broken_condition_closes_the_gate() -> None:
    assert gate({"valid_transcript": True, "within_budget": True}) == 1.0
    assert gate({"valid_transcript": True, "within_budget": False}) == 0.0


HELD = {"valid_transcript": True, "within_budget": True}
OVERDRAWN = {"valid_transcript": True, "within_budget": False}


@pytest.mark.parametrize(
    ("spec", "conditions", "result", "reward"),
    [
        (RewardSpec(), HELD, 1.0, 1.0),
        (RewardSpec(), HELD, 0.25, 0.25),
        (RewardSpec(), OVERDRAWN, 1.0, 0.0),
        (RewardSpec(gate=("valid_transcript",)), OVERDRAWN, 1.0, 1.0),
        (RewardSpec(overdrawn=-1), OVERDRAWN, 1.0, -1.0),
        (RewardSpec(overdrawn=-1), HELD, 1.0, 1.0),
        (RewardSpec(overdrawn=-1), {"valid_transcript": False, "within_budget": True}, 1.0, 0.0),
    ],
)
def test_the_task_says_how_components_combine(spec: RewardSpec, conditions: dict, result: float, reward: float) -> None:
    found = combined(spec.document(), conditions, result)
    assert found.reward == reward
    assert found.penalties == ({"overdrawn": -1.0} if reward < 0 else {})


def test_words_follow_the_numbers() -> None:
    assert "budget of calls was not overdrawn, else 0." in in_words(RewardSpec().document())
    assert "reward -1" not in in_words(RewardSpec().document())
    assert "calls has the reward -1." in in_words(RewardSpec(overdrawn=-1).document())
    assert "always 1" in in_words(RewardSpec(gate=()).document())
    spec = {"weights": {"reward": 1, "process": 0.5}, "tokens": 900, "length": 0.2, "ranked_by": "process"}
    told = in_words(RewardSpec.model_validate({"group": spec}).document())
    for words in ("process 0.5, reward 1", "more than 900 tokens", "up to 0.1 more", "of the better process"):
        assert words in told


def test_a_penalty_for_what_the_gate_does_not_look_at_is_refused() -> None:
    with pytest.raises(ValueError, match="within_budget"):
        RewardSpec(gate=("valid_transcript",), overdrawn=-1)


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
