"""Laws of what a group of attempts is worth."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.models import RewardSpec
from envsynth.runtime.groups import (
    Rolled,
    Step,
    budget_override,
    chance_still_mixed,
    decoupled_advantages,
    group_advantages,
    learned,
    length_bonus,
    mixed,
    ranked_advantages,
    recovered,
    rubric_reward,
    step_credit,
    telling_criteria,
    whitened,
)

REWARDS = st.lists(st.floats(-10, 10).map(lambda value: round(value, 6)), min_size=2, max_size=16)


def test_over_the_budget_is_minus_one_and_at_it_is_not() -> None:
    assert budget_override(1.0, 100, 100) == 1.0
    assert budget_override(1.0, 101, 100) == -1.0
    assert budget_override(1.0, 150, 100, slack=1.5) == 1.0


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 10_000)), min_size=1, max_size=16))
def test_wrong_is_never_paid_for_being_short(group: list[tuple[bool, int]]) -> None:
    passed, lengths = [one[0] for one in group], [one[1] for one in group]
    bonus = length_bonus(passed, lengths)
    assert all(-0.5 <= value <= 0.5 for value in bonus)
    assert all(value <= 0 for value, right in zip(bonus, passed, strict=True) if not right)
    for one in range(len(group)):
        for two in range(len(group)):
            if passed[one] == passed[two] and lengths[one] < lengths[two]:
                assert bonus[one] >= bonus[two]


def test_the_shortest_right_one_gets_a_half() -> None:
    assert length_bonus([True, True, False], [10, 30, 20]) == (0.5, -0.5, 0.0)
    assert length_bonus([True, False], [7, 7]) == (0.0, 0.0)


@given(REWARDS)
def test_advantages_sum_to_nothing_and_keep_the_order(rewards: list[float]) -> None:
    found = group_advantages(rewards)
    assert math.isclose(math.fsum(found.values), 0.0, abs_tol=1e-6)
    assert found.flat == (max(rewards) - min(rewards) <= 1e-9)
    if not found.flat:
        assert math.isclose(statistics.pstdev(found.values), 1.0, rel_tol=1e-6)
        assert sorted(range(len(rewards)), key=lambda n: (rewards[n], n)) == sorted(
            range(len(rewards)), key=lambda n: (found.values[n], n)
        )


def test_a_group_of_equals_or_of_one_is_flagged() -> None:
    assert group_advantages([1.0, 1.0, 1.0]) == ((0.0, 0.0, 0.0), True)
    assert group_advantages([1.0]) == ((0.0,), True)
    assert group_advantages([]) == ((), True)


@given(REWARDS, st.floats(0.01, 100), st.floats(-50, 50))
def test_scale_and_offset_of_a_reward_do_not_count(rewards: list[float], by: float, more: float) -> None:
    if max(rewards) - min(rewards) < 1e-3:
        return
    moved = group_advantages([by * reward + more for reward in rewards])
    for one, two in zip(group_advantages(rewards).values, moved.values, strict=True):
        assert math.isclose(one, two, rel_tol=1e-5, abs_tol=1e-5)


def test_summed_rewards_collapse_where_decoupled_ones_do_not() -> None:
    right, form = [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]
    summed = group_advantages([one + two for one, two in zip(right, form, strict=True)]).values
    apart = decoupled_advantages({"right": right, "form": form}, {"right": 1.0, "form": 1.0}).values
    assert summed[0] == summed[1]
    assert apart[0] != apart[1]


def test_a_flat_reward_leaves_the_others_alone() -> None:
    both = decoupled_advantages({"a": [1.0, 0.0], "b": [3.0, 3.0]}, {"a": 2.0, "b": 5.0})
    assert both == ((2.0, -2.0), False)
    assert decoupled_advantages({"b": [3.0, 3.0]}, {"b": 5.0}).flat


@pytest.mark.parametrize(
    ("rewards", "weights"), [({}, {}), ({"a": [1.0]}, {"b": 1.0}), ({"a": [1.0, 0.0], "b": [1.0]}, {"a": 1, "b": 1})]
)
def test_what_does_not_belong_together_is_refused(rewards: dict[str, list[float]], weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"rewards|attempts"):
        decoupled_advantages(rewards, weights)


def test_a_batch_is_whitened() -> None:
    assert whitened([4.0, 4.0]) == (0.0, 0.0)
    assert whitened([1.0, 3.0]) == (-1.0, 1.0)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=16), st.floats(0, 1), st.floats(0.1, 3)
)
def test_what_is_moved_among_the_passing_sums_to_what_was(
    group: list[tuple[bool, int]], spread: float, height: float
) -> None:
    passed, merits = [one[0] for one in group], [float(one[1]) for one in group]
    before = [height if right else -height for right in passed]
    after = ranked_advantages(before, passed, merits, spread)
    assert math.isclose(math.fsum(after), math.fsum(before), abs_tol=1e-9)
    for place, right in enumerate(passed):
        if right:
            assert after[place] >= -1e-12
        else:
            assert after[place] == before[place]
        for other in range(len(group)):
            if right and passed[other] and merits[place] == merits[other]:
                assert math.isclose(after[place], after[other], abs_tol=1e-12)
            if right and passed[other] and merits[place] > merits[other]:
                assert after[place] >= after[other]


def test_no_spread_moves_nothing_and_a_wrong_one_is_refused() -> None:
    assert ranked_advantages([1.0, 1.0], [True, True], [0.0, 1.0], 0.0) == (1.0, 1.0)
    assert ranked_advantages([1.0, 1.0, -2.0], [True, True, False], [0.0, 1.0, 9.0], 1.0) == (0.0, 2.0, -2.0)
    with pytest.raises(ValueError, match="spread"):
        ranked_advantages([1.0], [True], [0.0], 1.5)


def test_a_rubric_counts_passes_against_fails() -> None:
    assert rubric_reward([True, True, False, None]) == pytest.approx(1 / 3)
    assert rubric_reward([False]) == -1.0
    assert rubric_reward([None]) is None


def test_criteria_that_nobody_failed_tell_nothing() -> None:
    assert telling_criteria([{"a": True, "b": None, "c": False}, {"a": True, "b": True, "c": True}]) == {"c"}


@given(
    st.floats(-3, 3),
    st.lists(st.tuples(st.integers(1, 500), st.sampled_from([0.0, 0.5, 1.0, 4.0])), min_size=1, max_size=20),
)
def test_credit_to_steps_is_the_credit_of_the_whole(advantage: float, drawn: list[tuple[int, float]]) -> None:
    steps = [Step(*one) for one in drawn]
    credit = step_credit(advantage, steps)
    total = math.fsum(step.tokens * value for step, value in zip(steps, credit, strict=True))
    assert math.isclose(total, advantage * sum(step.tokens for step in steps), rel_tol=1e-9, abs_tol=1e-9)
    if any(step.weight for step in steps):
        assert all(value == 0 for step, value in zip(steps, credit, strict=True) if not step.weight)


def test_only_mixed_groups_are_worth_training_on() -> None:
    assert mixed([0.0, 1.0])
    assert not mixed([1.0, 1.0])
    assert not mixed([1.0])
    assert not mixed([])


@given(st.lists(st.booleans(), min_size=1, max_size=16))
def test_a_group_is_made_whole_or_dropped(failed: list[bool]) -> None:
    attempts = list(range(len(failed)))
    whole = recovered(attempts, failed)
    left = [attempt for attempt in attempts if not failed[attempt]]
    if left and 2 * len(left) >= len(attempts):
        assert len(whole) == len(attempts)
        assert set(whole) == set(left)
        counts = [whole.count(attempt) for attempt in left]
        assert max(counts) - min(counts) <= 1
    else:
        assert whole == ()


def test_the_chance_of_a_mixed_group_falls_with_each_equal_outcome() -> None:
    assert chance_still_mixed([], 8) == chance_still_mixed([True], 8) == pytest.approx(1 - 2 / 9)
    assert chance_still_mixed([True] * 7, 8) == pytest.approx(1 / 9)
    assert chance_still_mixed([True] * 8, 8) == 0.0
    assert chance_still_mixed([True, False], 8) == 1.0
    with pytest.raises(ValueError, match="9 outcomes"):
        chance_still_mixed([True] * 9, 8)


def rolled(reward: float, tokens: int = 10, process: float | None = None) -> Rolled:
    more = {} if process is None else {"process": process}
    return Rolled({"reward": reward, "outcome": max(0.0, reward), "gate": 1.0, **more}, tokens)


def spec_of(**group: object) -> dict:
    return RewardSpec.model_validate({"group": group}).document()


LOST = Rolled({}, failed=True)


@given(REWARDS)
def test_what_is_learned_without_wishes_is_grpo(rewards: list[float]) -> None:
    found = learned(spec_of(), [rolled(reward) for reward in rewards])
    assert found.advantages == group_advantages(rewards).values
    assert found.rewards == tuple(rewards)
    assert found.places == tuple(range(len(rewards)))


def test_failed_environments_are_replaced_and_never_count_as_zero() -> None:
    found = learned(spec_of(), [rolled(1.0), LOST, rolled(0.0), LOST])
    assert found.places == (0, 2, 0, 2)
    assert found.rewards == (1.0, 0.0, 1.0, 0.0)
    assert learned(spec_of(), [rolled(1.0), LOST, LOST]) == ((), (), (), True)


def test_short_and_right_is_better_and_short_and_wrong_is_not() -> None:
    found = learned(spec_of(length=0.2), [rolled(1.0, 10), rolled(1.0, 30), rolled(0.0, 10), rolled(0.0, 30)])
    assert found.rewards == (1.1, 0.9, 0.0, -0.1)


def test_a_budget_of_tokens_overrides_everything() -> None:
    found = learned(spec_of(tokens=20, length=0.2), [rolled(1.0, 21), rolled(0.0, 5), rolled(1.0, 20)])
    assert found.rewards[0] == -1.0
    assert found.advantages[0] < found.advantages[1] < found.advantages[2]


def test_a_process_that_does_not_apply_moves_nothing() -> None:
    group = [rolled(1.0, process=1.0), rolled(1.0, process=0.0), rolled(1.0)]
    found = learned(spec_of(weights={"reward": 1.0, "process": 1.0}), group)
    assert found.advantages[0] > found.advantages[2] > found.advantages[1]
    assert found.advantages[2] == pytest.approx(0.0)
    assert not found.flat
    plain = learned(spec_of(), [rolled(1.0), rolled(0.0)])
    assert learned(spec_of(weights={"reward": 1.0, "process": 1.0}), [rolled(1.0), rolled(0.0)]) == plain


@pytest.mark.parametrize(
    ("weights", "group", "told"),
    [
        ({"reward": 1.0, "check.none": 1.0}, [rolled(1.0), rolled(0.0)], "no attempt has the component 'check.none'"),
        ({"reward": 1.0}, [rolled(1.0), rolled(math.nan)], "'reward' of an attempt is no finite number"),
        ({"reward": 1.0}, [rolled(1.0), Rolled({"outcome": 1.0})], "an attempt has no component 'reward'"),
        ({"reward": 1.0, "process": 1.0}, [rolled(1.0, process=math.inf)], "'process' of an attempt is no finite"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(weights: dict, group: list[Rolled], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        learned(spec_of(weights=weights), group)


def test_an_attempt_without_rewards_is_one_whose_environment_failed() -> None:
    assert learned(spec_of(), [rolled(1.0), Rolled({}), rolled(0.0)]).places == (0, 2, 0)


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ({"reward": -1.0}, "larger than 0"),
        ({"reward": 0.0}, "larger than 0"),
        ({"reward": math.nan}, "larger than 0"),
        ({"reward": math.inf}, "larger than 0"),
        ({"process": 1.0}, "`reward` must be among them"),
        ({"reward": 1.0, "nonsense": 1.0}, "'nonsense' is no component"),
    ],
)
def test_weights_that_would_teach_the_wrong_thing_are_refused(weights: dict, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        spec_of(weights=weights)


GRADED = st.one_of(st.sampled_from([-1.0, 0.0, 0.3, 0.1 + 0.2, 0.89, 0.9, 0.95, 1.0]), st.floats(0, 1))
ATTEMPTS = st.lists(
    st.tuples(GRADED, st.integers(0, 10_000), st.sampled_from([None, 0.0, 0.5, 1.0])), min_size=2, max_size=9
)
WISHES = st.fixed_dictionaries({
    "weights": st.sampled_from([{"reward": 1.0}, {"reward": 1.0, "process": 0.2}, {"reward": 0.1, "process": 9.0}]),
    "scaled": st.booleans(),
    "tokens": st.sampled_from([None, 1, 5_000]),
    "length": st.sampled_from([0.0, 0.2, 2.0, 50.0]),
    "ranked_by": st.sampled_from(["", "process", "short"]),
    "spread": st.sampled_from([0.0, 0.5, 1.0]),
})  # fmt: skip


@given(ATTEMPTS, WISHES)
def test_no_wish_lifts_a_wrong_attempt_above_a_right_one(group: list[tuple], wishes: dict) -> None:
    attempts = [rolled(reward, tokens, process) for reward, tokens, process in group]
    found = learned(spec_of(**wishes), attempts)
    budget = wishes["tokens"] or math.inf
    right = [reward >= 0.9 and tokens <= budget for reward, tokens, _ in group]
    for one in range(len(group)):
        for two in range(len(group)):
            if right[one] and not right[two]:
                assert found.rewards[one] > found.rewards[two]
                assert found.advantages[one] >= found.advantages[two] - 1e-9
    assert math.fsum(found.advantages) == pytest.approx(0.0, abs=1e-6)


def test_giving_up_early_is_not_learned_where_all_are_wrong() -> None:
    found = learned(spec_of(length=0.2), [rolled(0.0, 1), rolled(0.0, 900)])
    assert found == ((0, 1), (0.0, 0.0), (0.0, 0.0), True)


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.integers(0, 4)), min_size=2, max_size=12))
def test_rank_moves_advantage_among_the_right_ones_alone(group: list[tuple[float, int]]) -> None:
    attempts = [rolled(reward, process=merit / 4) for reward, merit in group]
    plain, found = learned(spec_of(), attempts), learned(spec_of(ranked_by="process"), attempts)
    assert math.fsum(found.advantages) == pytest.approx(0.0, abs=1e-9)
    for (reward, _), before, after in zip(group, plain.advantages, found.advantages, strict=True):
        assert after == before or reward == 1.0
        assert before * after >= 0
