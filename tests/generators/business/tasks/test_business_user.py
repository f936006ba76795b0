from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from envsynth.generators.business.plans import Plan, Planner
from envsynth.generators.business.scene import Scene
from envsynth.generators.business.stage import Stage
from envsynth.generators.business.tasks import Wish, Written, talks
from envsynth.generators.business.user import ASK, TELL, on_the_line
from envsynth.models import ToolCall
from envsynth.runtime.worlds.episode import WorldModel
from envsynth.seeds import stream


@pytest.fixture(scope="module")
def line(written: Mapping[str, Written]) -> Iterator[Stage]:
    world = written["on_the_line"].world
    found = Stage(world, WorldModel(world.document()))
    yield found
    found.close()


def ask(topic: str) -> ToolCall:
    return ToolCall(tool=ASK, arguments={"topic": topic})


def topics(written: Mapping[str, Written]) -> list[str]:
    calls = written["on_the_line"].panel[0].calls
    return [str(call.arguments["topic"]) for call in calls if call.tool == ASK]


def test_a_fact_is_told_when_asked_for_and_only_then(line: Stage, written: Mapping[str, Written]) -> None:
    known = topics(written)
    assert known
    answers = {topic: line.play([ask(topic)]).answers[0].result["line"] for topic in known}
    for topic, answer in answers.items():
        assert answer.startswith("It is ")
        fact = answer.rstrip(".").removeprefix("It is about ").removeprefix("It is ")
        assert fact not in written["on_the_line"].instruction, topic


def test_nothing_is_invented(line: Stage, written: Mapping[str, Written]) -> None:
    tool = next(tool for tool in written["on_the_line"].world.tools if tool.name == ASK)
    others = [str(topic) for topic in tool.parameters[0].enum if topic not in topics(written)]
    assert others
    said = {line.play([ask(topic)]).answers[0].result["line"] for topic in others}
    assert said == {"I cannot tell you that, I am afraid."}
    assert not line.play([ask("the weather")]).answers[0].ok


def test_the_same_is_said_again(line: Stage, written: Mapping[str, Written]) -> None:
    calls = [ask(topic) for topic in topics(written)] * 2
    answers = line.play(calls).answers
    half = len(calls) // 2
    assert answers[:half] == answers[half:]


def test_talking_changes_nothing_that_counts(line: Stage, written: Mapping[str, Written]) -> None:
    played = line.play([*map(ask, topics(written)), ToolCall(tool=TELL, arguments={"text": "Done, goodbye."})])
    assert line.changes(played) == {}
    talker = next(one for one in written["on_the_line"].panel if one.label == "mutant:polite_talker")
    assert talker.outcome == 0


def test_who_writes_without_asking_misses_an_essential(line: Stage, written: Mapping[str, Written]) -> None:
    task = written["on_the_line"]
    silent = [call for call in task.panel[0].calls if call.tool != ASK]
    grade = line.grade(line.play(silent), task.verifier)
    assert grade.outcome == 1
    assert grade.criteria["asked_what_only_they_know"] is False
    assert grade.process == 0


def test_a_no_is_protested_once_and_then_taken(desk: Scene, stage: Stage) -> None:
    goal = desk.goals["too_late"]
    part = Planner(desk, stage, stream("no", "plan")).solved(goal, desk.reader.targets(goal)[3], 3)
    plan = Plan(1, 3, "counter", (part,), stage.play(part.calls), part.change)
    found = on_the_line(desk, plan, stream("no", "words"))
    assert "too late" not in found.instruction
    with_person = Stage.of(found.scene)
    told = [ToolCall(tool=TELL, arguments={"text": f"No, for the {number}. time."}) for number in range(3)]
    said = [answer.result["line"] for answer in with_person.play(told).answers]
    with_person.close()
    assert "no other way" in said[0]
    assert said[1] == said[2] == "Very well, then it is so. Goodbye."


def test_a_third_of_short_vague_tasks_are_conversations() -> None:
    share = sum(talks(Wish(1, 2, "x"), str(number)) for number in range(600)) / 600
    assert 0.27 < share < 0.40
    for wish in (Wish(3, 2, "x"), Wish(1, 0, "x")):
        assert not any(talks(wish, str(number)) for number in range(50))
