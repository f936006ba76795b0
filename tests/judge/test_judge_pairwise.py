"""Which of two runs is better: gate, length, both orders."""

from __future__ import annotations

import pytest
from judgekit import FIVE, LOOK, NOTE, PANEL, SUBMIT, case_of_calls

from envsynth.errors import ConfigError
from envsynth.judge import LengthRule, Preference, compare, length_of, ranked, rubric_of
from envsynth.llm.scripted import Received
from envsynth.llm.scripted_answers import Answer, answer_json

GOOD, BAD = PANEL["reference"][1], [LOOK, FIVE, NOTE, SUBMIT]
LONG = [*GOOD[:2], *[LOOK] * 25, *GOOD[2:]]


def blocks(prompt: str) -> tuple[str, str]:
    return prompt.split('name="first run"')[1].split("</quoted", maxsplit=1)[0], prompt.split('name="second run"')[1]


def fair(received: Received) -> Answer:
    """Prefers four lamps to five, wherever they stand."""
    first, second = ('"amount": 4' in block for block in blocks(received.prompt))
    better = "tie" if first == second else "first" if first else "second"
    return answer_json({"reading": "x", "better": better, "turn": 0 if better == "tie" else 2})


def says(better: str, turn: int = 1):
    return lambda received: answer_json({"reading": "x", "better": better, "turn": turn})


def test_the_better_one_wins_in_either_place(bench, rubric) -> None:
    judge, good, bad = bench.judge(fair), case_of_calls(GOOD), case_of_calls(BAD)
    assert compare(judge, good, bad, rubric) == Preference("first", "judge")
    assert compare(judge, bad, good, rubric) == Preference("second", "judge")
    assert compare(judge, good, good, rubric) == Preference("tie", "judge")
    assert len(bench.prompts) == 3  # two orders, and the same questions again are free
    assert "alternative" not in bench.prompts[0]


@pytest.mark.parametrize("place", ["first", "second"])
def test_a_judge_that_prefers_a_place_prefers_nobody(place: str, bench, rubric) -> None:
    judge = bench.judge(says(place))
    assert compare(judge, case_of_calls(GOOD), case_of_calls(BAD), rubric) == Preference("tie", "disagreement")


def test_a_preference_that_points_at_nothing_is_none(bench, rubric) -> None:
    judge = bench.judge(says("first", 99))
    assert compare(judge, case_of_calls(GOOD), case_of_calls(BAD), rubric) == Preference("tie", "void")


def test_a_longer_run_loses_and_nobody_is_asked(bench, rubric) -> None:
    judge, good, long = bench.judge([]), case_of_calls(GOOD), case_of_calls(LONG)
    assert length_of(long) > 1.5 * length_of(good)
    limit = LengthRule(sigma=1.5, baseline=length_of(good)).limit([long])
    assert compare(judge, long, good, rubric, limit=limit) == Preference("second", "length")
    assert compare(judge, good, long, rubric, limit=limit) == Preference("first", "length")
    assert compare(judge, long, long, rubric, limit=limit) == Preference("tie", "length")
    # What tools answered is not the agent's length: 25 looks are told in many words, and made in few.
    assert length_of(long) - length_of(good) == 25 * len("look{}")
    assert bench.prompts == []


def test_length_is_measured_by_the_group(bench, rubric) -> None:
    good, bad, long = case_of_calls(GOOD), case_of_calls(BAD), case_of_calls(LONG)
    assert LengthRule(sigma=2.0).limit([good, bad, long]) == 2.0 * length_of(good)
    assert ranked(bench.judge(fair), [bad, good, long], rubric, rule=LengthRule(sigma=1.5)) == [0.5, 1.0, 0.0]
    assert ranked(bench.judge(fair), [bad, good, long], rubric, rule=LengthRule(sigma=9.0)) == [0.0, 0.75, 0.75]


def test_no_transcript_beats_none(bench, rubric) -> None:
    good = case_of_calls(GOOD)
    broken = good._replace(gate=0.0)
    judge = bench.judge([])
    assert compare(judge, broken, good, rubric) == Preference("second", "gate")
    assert compare(judge, broken, broken, rubric) == Preference("tie", "gate")


def test_runs_of_other_instructions_are_not_compared(bench, rubric) -> None:
    good = case_of_calls(GOOD)
    with pytest.raises(ConfigError, match="another instruction"):
        compare(bench.judge([]), good, good._replace(instruction="Order two."), rubric)
    with pytest.raises(ConfigError, match="another instruction"):
        compare(bench.judge([]), good, good, rubric_of("Order two."))
    with pytest.raises(ConfigError, match="fewer than two"):
        ranked(bench.judge([]), [good], rubric)
