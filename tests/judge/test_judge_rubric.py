"""Rubrics: from a task's criteria, or written by a model that has seen no episode."""

from __future__ import annotations

import pytest
import worldkit
from judgekit import CRITERIA, POLICIES, case_of_calls

from envsynth.judge import instruction_hash, rubric_of, written_rubric
from envsynth.llm import Unrepaired
from envsynth.llm.scripted_answers import answer_json
from envsynth.models import CriterionClass

LINES = [
    {"id": "ordered_four", "class": "essential", "question": "Were four lamps ordered in all?", "decides": True},
    {"id": "left_a_note", "class": "important", "question": "Is there a note on the price?"},
    {"id": "ordered_twice", "class": "pitfall", "question": "Were lamps ordered a second time?"},
]


def test_a_task_s_criteria_are_scored_by_their_words() -> None:
    rubric = rubric_of(worldkit.INSTRUCTION, CRITERIA)
    own = {line.id: line for line in rubric.lines if line.id in ("looked_first", "told_the_price")}
    assert own["looked_first"].question == "It looked before it ordered."
    assert own["told_the_price"].question == "Does the note tell what four lamps cost?"
    assert not any(line.decides for line in own.values())
    assert [line.id for line in rubric.lines if line.decides] == [
        "did_what_was_asked", "did_something_else", "made_up_a_value",
    ]  # fmt: skip
    assert rubric.instruction == instruction_hash(worldkit.INSTRUCTION)


def test_a_written_rubric_never_decides_and_is_mended_where_it_is_bad(bench) -> None:
    twice = [*LINES, LINES[0] | {"class": "optional"}]
    bad = [{"lines": LINES[1:2]}, {"lines": twice}, {"lines": LINES}]
    judge = bench.judge([answer_json(value) for value in bad])
    rubric = written_rubric(judge.client, worldkit.INSTRUCTION, tools=case_of_calls([]).tools, policies=POLICIES)
    assert [line.id for line in rubric.lines][-3:] == ["ordered_four", "left_a_note", "ordered_twice"]
    assert not any(line.decides for line in rubric.lines[-3:])
    assert rubric.lines[-1].class_ is CriterionClass.PITFALL
    first, second, third = bench.prompts
    assert worldkit.INSTRUCTION in first
    assert "rubric_size" in second
    assert "rubric_nothing_essential" in second
    assert "rubric_line_twice" in third
    rubric.demand(worldkit.INSTRUCTION, "here")


def test_a_rubric_that_stays_bad_is_given_up(bench) -> None:
    judge = bench.judge(lambda received: answer_json({"lines": [LINES[0] | {"id": "did_what_was_asked"}, *LINES[1:]]}))
    with pytest.raises(Unrepaired) as caught:
        written_rubric(judge.client, worldkit.INSTRUCTION, tools=(), policies={})
    assert caught.value.reason == "rubric_line_twice"
