"""Whole tasks: instruction, checks, rubric, panel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from envsynth.generators.business.instruction import articled
from envsynth.generators.business.scene import Scene
from envsynth.generators.business.stage import Stage
from envsynth.generators.business.tasks import NoTask, Wish, Written, write_task
from envsynth.models import Candidate, CriterionClass, Invariant, ToolCall
from envsynth.runtime.worlds.episode import WorldModel
from envsynth.validators.world_adversary import WorldAdversary
from envsynth.validators.world_execution import WorldExecution
from envsynth.validators.world_readback import WorldReadback
from envsynth.validators.world_static import WorldStatic

NAMES = ["plain", "named", "described", "by_policy", "on_the_line"]
CandidateOf = Callable[[Written], Candidate]


@pytest.mark.parametrize("name", NAMES)
def test_right_trajectories_get_1_and_all_others_0(written: Mapping[str, Written], name: str) -> None:
    outcomes = {line.label: line.outcome for line in written[name].panel}
    for label, outcome in outcomes.items():
        assert outcome == (1 if label.partition(":")[0] in ("reference", "alternative") else 0), label
    assert {"reference", "idle", "mutant:only_looks", "attack:override_text"} <= outcomes.keys()
    assert sum(label.startswith("alternative:") for label in outcomes) >= 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("validator", [WorldStatic, WorldExecution, WorldReadback, WorldAdversary])
def test_every_validator_passes(
    written: Mapping[str, Written], name: str, validator: type, candidate_of: CandidateOf, lent: Any
) -> None:
    verdict = validator().validate(candidate_of(written[name]), None, lent, ())
    assert (verdict.status.value, verdict.findings) == ("PASS", ())


@pytest.mark.parametrize("name", NAMES)
def test_a_rubric_has_six_to_twelve_criteria_that_tell_apart(written: Mapping[str, Written], name: str) -> None:
    task = written[name]
    assert 6 <= len(task.verifier.rubric) <= 12
    stage = Stage(task.world, WorldModel(task.world.document()))
    grades = [stage.grade(stage.play(line.calls), task.verifier) for line in task.panel]
    stage.close()
    for line in task.verifier.rubric:
        assert {grade.criteria[line.id] for grade in grades} >= {True, False}, line.id
    assert any(line.class_ is CriterionClass.PITFALL for line in task.verifier.rubric)
    assert grades[0].process == 1.0
    careless = next(g for g, line in zip(grades, task.panel, strict=True) if line.label == "alternative:careless")
    assert careless.process is not None
    assert careless.outcome == 1
    assert careless.process < 1


@pytest.mark.parametrize("name", NAMES)
def test_an_instruction_is_finished_and_tells_no_more_than_it_should(written: Mapping[str, Written], name: str) -> None:
    text = written[name].instruction
    assert not re.search(r"[{}$]|_id|None", text)
    assert "Today is " in text
    assert not re.search(r"(^|[.!?] )[a-z]", text.replace("ask_user", "").replace("tell_user", ""), re.MULTILINE)
    if int(str(written[name].metadata["vagueness"])) >= 2:
        calls = written[name].panel[0].calls
        keys = [value for call in calls for value in call.arguments.values() if isinstance(value, int)]
        assert keys
        assert not any(re.search(rf"(?<![\w-]){key}\b", text) for key in keys)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Buy it from Lengyel Nyrt.. Handle a order.", "Buy it from Lengyel Nyrt. Handle an order."),
        ("It is from Kovács Kft..", "It is from Kovács Kft."),
        ("He said ... and went.", "He said ... and went."),
    ],
)
def test_sentences_end_once(written: str, said: str) -> None:
    assert articled(written) == said


def test_a_breach_that_comes_to_the_same_end_is_seen_in_the_trace(desk: Scene, stage: Stage) -> None:
    found = None
    for number in range(6):
        task = write_task(desk, stage, Wish(2, 3, "counter"), f"breach/{number}")
        if task.metadata["refuses"]:
            found = task
            break
    assert found is not None
    breach = next(line for line in found.panel if re.fullmatch(r"mutant:against_the_rules_\d_2", line.label))
    grade = stage.grade(stage.play(breach.calls), found.verifier)
    assert grade.checks["end_state"]
    assert not grade.checks["within_the_rules_1"]
    assert grade.outcome == 0


def test_an_empty_remark_is_none(desk: Scene, stage: Stage) -> None:
    task = write_task(desk, stage, Wish(1, 1, "number_only"), "empty/0")
    calls = [
        ToolCall(tool=call.tool, arguments={**call.arguments, "body": "     "}) if call.tool == "add_remark" else call
        for call in task.panel[0].calls
    ]
    grade = stage.grade(stage.play(calls), task.verifier)
    assert grade.checks["end_state"]
    assert grade.outcome == 0


def test_equal_seeds_give_equal_tasks(desk: Scene, stage: Stage, written: Mapping[str, Written]) -> None:
    wish = Wish(3, 2, "counter")
    assert write_task(desk, stage, wish, "test/described") == written["described"]
    other = write_task(desk, stage, wish, "test/described2")
    assert other.panel[0] != written["described"].panel[0]


def test_who_finds_nothing_says_why(desk: Scene, stage: Stage) -> None:
    with pytest.raises(NoTask) as none:
        write_task(desk, stage, Wish(4, 1, "counter", conversation=True), "none/1")
    assert none.value.last.reason == "nothing_to_ask"


def test_a_world_that_breaks_its_own_rules_is_named_at_once(desk: Scene) -> None:
    rule = Invariant(id="nobody_lives_here", sql="SELECT id FROM buyers")
    broken = Scene(replace(desk.company, world=desk.world.model_copy(update={"invariants": (rule,)})))
    stage = Stage.of(broken)
    with pytest.raises(NoTask, match="broken_at_start: the untouched world violates nobody_lives_here"):
        write_task(broken, stage, Wish(1, 0, "counter"), "broken")
    stage.close()


def test_uniqueness_travels_with_the_task(desk: Scene, written: Mapping[str, Written]) -> None:
    unique = written["described"].metadata["unique"]
    assert isinstance(unique, dict)
    assert unique
    for phrase, sql in unique.items():
        assert phrase[1:] in written["described"].instruction
        assert desk.reader.dressed(str(sql)) == [(1,)]
