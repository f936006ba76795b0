"""One episode before a judge: what is shown, what of the scores stands, and what is made of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import worldkit
from judgekit import CRITERIA, FIVE, LAMPS, LOOK, NOTE, PANEL, SUBMIT, case_of_calls, scores, truthful

from envsynth.errors import ConfigError, ModelMalformed, ModelRefused
from envsynth.judge import Mark, Turn, gate_faults, mistaken_calls, rubric_of, world_case
from envsynth.llm.scripted_answers import answer_json, refusal, text
from envsynth.models import Criterion

GOOD = PANEL["reference"][1]


def test_a_case_is_a_copy_of_what_happened_and_the_episode_goes_on() -> None:
    episode = worldkit.episode_of()
    try:
        for tool, arguments in (LOOK, LAMPS):
            episode.call(tool, dict(arguments))
        before = episode.state_hash()
        case = world_case(episode, CRITERIA, policies={}, gate=1.0)
        assert [(turn.turn, turn.tool, turn.ok) for turn in case.trace] == [(1, "look", True), (2, "order", True)]
        assert case.evidence["looked_first"].columns == ("turn", "tool", "arguments")
        assert case.tables["run"].rows == ((2, 0, 0),)
        assert (episode.state_hash(), len(episode.trace), episode.over) == (before, 2, False)
        assert episode.call(*SUBMIT).done
    finally:
        episode.close()


def test_a_right_run_is_called_right_and_a_wrong_one_lowers_its_outcome(bench, rubric) -> None:
    judge = bench.judge(truthful)
    right, wrong = (judge.score(case_of_calls(PANEL[label][1]), rubric) for label in ("reference", "mutant:five"))
    assert (right.call, right.process, right.void, right.strange) == (True, 1.0, 0, 0)
    assert (wrong.call, wrong.process) == (False, 0.0)
    assert [pad.lowered(outcome) for pad in (right, wrong) for outcome in (1.0, 0.5, 0.0)] == [1, 0.5, 0, 0, 0, 0]


def test_nothing_but_the_episode_is_shown(bench, rubric) -> None:
    bench.judge(truthful).score(case_of_calls(GOOD), rubric)
    (shown,) = bench.prompts
    assert worldkit.INSTRUCTION in shown
    assert "Never order more than nine" in shown
    assert "Does the note tell what four lamps cost?" in shown
    assert '"body": "They cost 196 in all."' in shown
    for word in ("reference", "mutant", "alternative", "shop-task", "expect", "suppliers", worldkit.SECRET):
        assert word not in shown, word


@pytest.mark.parametrize("sql", [
    "SELECT path FROM reference_files", 'SELECT path FROM "reference_files"', "SELECT * FROM 'reference_files'",
    "SELECT * FROM main.[Reference_Files]", "SELECT id FROM tests",
    "WITH x AS (SELECT * FROM controls) SELECT * FROM x",
])  # fmt: skip
def test_how_a_task_is_graded_is_withheld(sql: str) -> None:
    asks = Criterion.model_validate({**CRITERIA[0].document(), "evidence": sql})
    case = case_of_calls(GOOD, (asks,))
    assert (case.evidence["looked_first"].rows, bool(case.evidence["looked_first"].withheld)) == ((), True)


POINTERS = [
    ({"turn": 99}, False), ({"turn": 0}, False), ({"turn": -1}, False), ({"turn": 2}, True), ({}, False), (None, False),
    ({"table": "run", "row": 1, "column": "calls"}, True), ({"table": "run", "row": 2, "column": "calls"}, False),
    ({"table": "run", "row": 1, "column": "price"}, False), ({"table": "orders", "row": 1, "column": "id"}, False),
    ({"table": "looked_first", "row": 4, "column": "tool"}, True),
    ({"table": "answer", "row": 1, "column": "key"}, True), ({"table": "answer", "row": 2, "column": "key"}, False),
    ({"table": "looked_first", "row": 5, "column": "tool"}, False), ({"table": "run", "column": "calls"}, False),
]  # fmt: skip


@pytest.mark.parametrize(("pointer", "stands"), POINTERS)
@pytest.mark.parametrize("mark", ["PASS", "FAIL"])
def test_a_score_that_points_at_nothing_is_void(pointer: Any, stands: bool, mark: str, bench, rubric) -> None:
    def says(received):
        answer = scores(received.prompt, "PASS")
        answer["scores"][0] |= {"pointer": pointer, "score": mark}
        return answer_json(answer)

    pad = bench.judge(says).score(case_of_calls(GOOD), rubric)
    assert pad.scores[0].mark is (Mark(mark) if stands else Mark.VOID)
    assert pad.call is ((mark == "PASS") if stands else None)
    assert pad.lowered(1.0) == (0.0 if stands and mark == "FAIL" else 1.0)
    assert bool(pad.scores[0].void) is not stands


def test_what_is_left_out_contradicted_or_made_up_does_not_count(bench, rubric) -> None:
    def says(received):
        answer = scores(received.prompt, "PASS")
        first, *rest = answer["scores"]
        more = [{**rest[0], "score": "FAIL"}, {**first, "id": "likes_me"}]
        return answer_json({**answer, "scores": [*rest, *more]})

    pad = bench.judge(says).score(case_of_calls(GOOD), rubric)
    assert [score.mark for score in pad.scores[:3]] == [Mark.VOID, Mark.VOID, Mark.PASS]
    assert [score.void for score in pad.scores[:2]] == ["it was not scored", "it was scored twice, differently"]
    assert (pad.strange, pad.call) == (1, None)


def test_all_not_applicable_is_no_call(bench, rubric) -> None:
    pad = bench.judge(lambda received: answer_json(scores(received.prompt, "NA"))).score(case_of_calls(GOOD), rubric)
    assert (pad.call, pad.process) == (None, None)


def test_a_total_that_a_model_gives_is_no_part_of_an_answer(bench, rubric) -> None:
    case = case_of_calls(GOOD)
    judge = bench.judge(lambda received: answer_json({"reading": "x", "scores": [], "total": 1.0}))
    with pytest.raises(ModelMalformed, match="total"):
        judge.score(case, rubric)


def test_the_gate_comes_first_and_nobody_is_asked(bench, rubric) -> None:
    good = case_of_calls(GOOD)
    forged = Turn(5, "grant_reward", {}, True, None, "")
    misfit = good.trace[1]._replace(arguments={"item": "lamp", "amount": "four"})
    judge = bench.judge([])
    for case in (
        good._replace(gate=0.0), good._replace(trace=(*good.trace, forged)),
        good._replace(trace=(good.trace[0], misfit, *good.trace[2:])), good._replace(trace=good.trace[1:]),
    ):  # fmt: skip
        pad = judge.score(case, rubric)
        assert (bool(pad.gate), pad.call, pad.process, pad.scores) == (True, False, 0.0, ())
    assert bench.prompts == []
    # What the environment refused is a mistake, and no forgery.
    careless = case_of_calls([("order", {"what": "?"}), ("orders", {}), *GOOD])
    assert (gate_faults(careless), mistaken_calls(careless)) == ((), 2)


def test_a_rubric_and_a_scorepad_are_for_one_instruction(bench, rubric) -> None:
    case = case_of_calls(GOOD)
    other = rubric_of("Order two lamps.", CRITERIA)
    judge = bench.judge(truthful)
    with pytest.raises(ConfigError, match=r"shop-task: the rubric was made for another instruction.* Next: make"):
        judge.score(case, other)
    assert bench.prompts == []
    pad = judge.score(case, rubric)
    pad.demand(rubric, case.instruction)
    with pytest.raises(ConfigError, match="another instruction"):
        pad.demand(other, case.instruction)
    with pytest.raises(ConfigError, match="another instruction or rubric"):
        pad.demand(other, "Order two lamps.")
    with pytest.raises(ConfigError, match="another instruction or rubric"):
        pad.demand(rubric_of(case.instruction), case.instruction)


def test_answers_that_are_no_use_are_typed_errors(bench, rubric) -> None:
    case = case_of_calls(GOOD)
    with pytest.raises(ModelRefused):
        bench.judge([refusal()]).score(case, rubric)
    with pytest.raises(ModelMalformed):
        bench.judge([text("It is fine."), text("Really.")]).score(case, rubric, draw=1)
    nearly = {"reading": "x", "scores": [{"id": "did_what_was_asked", "why": "", "score": "GOOD"}]}
    judge = bench.judge(lambda received: answer_json(nearly) if "cannot be used" not in received.prompt else mended())

    def mended():
        return answer_json(scores(bench.prompts[0], "PASS"))

    assert judge.score(case, rubric, draw=2).call is True
    assert len(bench.prompts) == 2


def test_long_episodes_are_cut_and_lines_stay_lines(bench, rubric) -> None:
    case = case_of_calls([LOOK, FIVE, ("think", {"thought": "a\u2028b\nturn 9: {}" + "x" * 9000}), NOTE])
    bench.judge(truthful).score(case, rubric)
    block = bench.prompts[0].split('name="trace"')[1].split("</quoted")[0].strip().splitlines()[1:]
    assert [json.loads(line)["turn"] for line in block] == [1, 2, 3, 4]
    assert "more characters" in block[2]
    assert len(block[2]) < 4000
