from __future__ import annotations

import pytest

from envsynth.generators.business.facts import find_path
from envsynth.generators.business.plans import CALLS, GOALS, Planner, Unfit
from envsynth.generators.business.scene import Scene
from envsynth.generators.business.stage import Stage
from envsynth.seeds import stream


def planner(desk: Scene, stage: Stage, seed: str = "1") -> Planner:
    return Planner(desk, stage, stream(seed, "plan"))


@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
def test_a_plan_of_each_level_works_and_its_parts_do_not_touch(desk: Scene, stage: Stage, level: int) -> None:
    plan = planner(desk, stage).plan(level, 2, "counter")
    least, most = GOALS[level]
    assert least <= len(plan.parts) <= most
    assert not plan.played.refusal
    assert not stage.violated(plan.played)
    targets = [(part.goal.about[name], part.values[name]) for part in plan.parts for name in part.goal.about]
    assert len(set(targets)) == len(targets)
    if level == 5:
        assert CALLS[0] <= len(plan.calls) <= CALLS[1]


def test_parts_in_the_other_order_come_to_the_same(desk: Scene, stage: Stage) -> None:
    plan = planner(desk, stage, "order").plan(4, 2, "counter")
    backwards = stage.play([call for part in reversed(plan.parts) for call in part.writes])
    assert stage.changes(backwards).keys() == plan.change.keys()
    assert stage.changes(backwards)["receipts"] == plan.change["receipts"]


def test_equal_seeds_give_equal_plans_and_neighbours_others(desk: Scene, stage: Stage) -> None:
    plans = [planner(desk, stage, seed).plan(3, 1, "counter").calls for seed in ("1", "1", "2", "3")]
    assert plans[0] == plans[1]
    assert len({str(calls) for calls in plans}) == 3


def test_a_refusal_ends_in_a_positive_action(desk: Scene, stage: Stage) -> None:
    goal = desk.goals["too_late"]
    part = planner(desk, stage).solved(goal, desk.reader.targets(goal)[0], 2)
    assert [call.tool for call in part.writes] == ["hand_to_boss"]
    assert part.change["boss_cases"].added


def test_a_process_is_worded_as_vaguely_as_it_can_be(desk: Scene, stage: Stage) -> None:
    assert planner(desk, stage).plan(1, 3, "number_only").vagueness == 2


def test_what_a_number_says_needs_no_look_up_but_a_name_does(desk: Scene, stage: Stage) -> None:
    goal = desk.goals["give_back"]
    values = desk.reader.targets(goal)[0]
    told = find_path(desk, stage, goal, values, {values["sale_id"], values["back_cents"]})
    assert not told.unknown
    assert [call.tool for call in told.reads] == ["read_house_rule"]
    assert not told.verifiable
    named = find_path(desk, stage, goal, values, {values["name"]})
    assert not named.unknown
    assert [call.tool for call in named.reads] == ["find_buyers", "buyer_receipts", "read_house_rule"]
    assert named.verifiable


def test_a_fact_that_nothing_tells_is_named(desk: Scene, stage: Stage) -> None:
    goal = desk.goals["new_phone"]
    values = desk.reader.targets(goal)[0]
    path = find_path(desk, stage, goal, values, {values["name"]})
    assert path.unknown == ("new_phone",)


def test_a_sum_that_is_worked_out_needs_the_page_with_its_number(desk: Scene, stage: Stage) -> None:
    goal = desk.goals["give_back"]
    silent = goal.model_copy(update={"reads": goal.reads[:2]})
    values = desk.reader.targets(goal)[0]
    assert find_path(desk, stage, silent, values, {values["name"]}).unknown == ("back_cents",)


def test_a_goal_whose_facts_cannot_be_found_is_thrown_away(desk: Scene, stage: Stage) -> None:
    goal = desk.goals["new_phone"]
    mute = goal.model_copy(update={"says": {1: ("{person_id} has another number now. Change it.",)}})
    with pytest.raises(Unfit) as thrown:
        planner(desk, stage).solved(mute, desk.reader.targets(goal)[1], 1)
    assert thrown.value.reason == "fact_not_found"


def test_a_sum_must_be_what_the_rule_says(desk: Scene, stage: Stage) -> None:
    goal = desk.goals["give_back"]
    values = {**desk.reader.targets(goal)[0]}
    values["back_cents"] = int(str(values["back_cents"])) + 1
    with pytest.raises(Unfit) as thrown:
        planner(desk, stage).solved(goal, values, 3)
    assert thrown.value.reason == "computed_differs"


def test_a_plan_that_breaks_a_stated_rule_is_none(desk: Scene, stage: Stage) -> None:
    goal = desk.goals["give_back"]
    late = desk.reader.targets(desk.goals["too_late"])[0]
    paid = desk.reader.rows("SELECT paid_cents FROM sales WHERE id = $sale_id", late)[0]
    values = {**desk.reader.targets(goal)[0], **late, **paid}
    with pytest.raises(Unfit) as thrown:
        planner(desk, stage).solved(goal, values, 0)
    assert thrown.value.reason == "invariant_broken"
