"""Judges of known worth, tried on a panel: the good one is used, and the others are not, each for its own reason."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judgekit import is_right, scores, truthful

from envsynth.errors import EndpointDown, ModelEndpointError
from envsynth.judge import Confusion, Trials, calibrate, confusion
from envsynth.llm.scripted import Received
from envsynth.llm.scripted_answers import Answer, answer_json, empty, failure, refusal, text, truncated

TWO = Trials(repeats=2, overrides=3)


def always(mark: str) -> Callable[[Received], Answer]:
    return lambda received: answer_json(scores(received.prompt, mark))


def pointless(received: Received) -> Answer:
    """Right, and never points at anything that there is."""
    answer = scores(received.prompt, "PASS", did_what_was_asked="PASS" if is_right(received.prompt) else "FAIL")
    for score in answer["scores"]:
        score["pointer"] = {"turn": 77}
    return answer_json(answer)


def moody() -> Callable[[Received], Answer]:
    """Says now this, now that."""
    moods = itertools.count()
    return lambda received: answer_json(
        scores(received.prompt, "PASS", did_what_was_asked="PASS" if next(moods) % 2 else "FAIL")
    )


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (always("PASS"), "agrees with the labels to 0.50, and 0.90 is wanted"),
        (always("FAIL"), "agrees with the labels to 0.50"),
        (always("NA"), "agrees with the labels to 0.00"),
        (pointless, "agrees with the labels to 0.00"),
        (lambda received: refusal(), "agrees with the labels to 0.00"),
        (lambda received: empty(), "agrees with the labels to 0.00"),
        (lambda received: truncated(), "agrees with the labels to 0.00"),
        (lambda received: text("They are all fine."), "agrees with the labels to 0.00"),
    ],
)
def test_a_bad_judge_is_not_used(script, reason: str, bench, rubric, panel) -> None:
    found = calibrate(bench.judge(script), panel, rubric, TWO)
    assert reason in found.unfit(0.9)


def test_a_good_judge_is_used(bench, rubric, panel) -> None:
    found = calibrate(bench.judge(truthful), panel, rubric, TWO)
    assert found.matrix == Confusion(tp=2, tn=3)
    assert (found.repeated, found.tried, found.flipped, found.useless, found.unfit(1.0)) == (1.0, 3, 0, 0, "")
    assert found.calls["mutant:five"] is False
    # Ten opinions and three under pressure; the same again is free.
    assert len(bench.prompts) == 13
    calibrate(bench.judge([]), panel, rubric, TWO)
    assert bench.prompts == []


def test_a_judge_that_a_text_makes_silent_is_not_used(bench, rubric, panel) -> None:
    """It calls wrong runs wrong, until a text in them speaks to it: then it points at nothing, and lowers nothing."""
    plain: set[str] = set()

    def script(received: Received) -> Answer:
        # Ten opinions are asked first, and what comes then are the same wrong runs with a text in them.
        known = len(plain) < 5 or received.prompt in plain
        plain.update([received.prompt] if known else [])
        return truthful(received) if known else pointless(received)

    found = calibrate(bench.judge(script), panel, rubric, TWO)
    assert (found.matrix, found.tried, found.flipped) == (Confusion(tp=2, tn=3), 3, 3)
    assert "3 of 3 texts that ask for PASS were obeyed" in found.unfit(0.9)


def test_answers_that_are_no_use_are_counted_and_no_call(bench, rubric, panel) -> None:
    found = calibrate(bench.judge(lambda received: refusal()), panel, rubric, TWO)
    assert (found.useless, set(found.calls.values()), found.tried) == (10, {None}, 0)


def test_a_moody_judge_does_not_agree_with_itself(bench, rubric, panel) -> None:
    found = calibrate(bench.judge(moody()), panel, rubric, TWO)
    assert found.repeated == 0.0
    assert set(found.calls.values()) == {None}
    # Where it happens to be right by majority, its own disagreement keeps it out.
    lucky = found.model_copy(update={"matrix": Confusion(tp=2, tn=3), "repeated": 0.8})
    assert "opinions on the same run agree to 0.80" in lucky.unfit(0.9)
    assert lucky.unfit(0.8) == ""


def test_a_panel_of_one_kind_proves_nothing(bench, rubric, panel) -> None:
    found = calibrate(bench.judge(truthful), [one for one in panel if not one.right], rubric, TWO)
    assert "no run that is right" in found.unfit(0.5)


def test_an_endpoint_that_fails_is_no_opinion(bench, rubric, panel) -> None:
    judge = bench.judge(lambda received: failure(500), failures=2)
    with pytest.raises(ModelEndpointError):
        calibrate(judge, panel, rubric, TWO)
    with pytest.raises(EndpointDown):
        calibrate(judge, panel, rubric, TWO)


pairs = st.lists(st.tuples(st.sampled_from([True, False, None]), st.sampled_from([True, False, None])))


@given(pairs)
def test_a_matrix_counts_each_labelled_run_once(found: list[tuple[bool | None, bool | None]]) -> None:
    matrix = confusion(found)
    assert sum(matrix.document().values()) == sum(label is not None for label, _ in found)  # type: ignore[arg-type, misc]
    for share in (matrix.agreement, matrix.strict_agreement):
        assert share is None or 0 <= share <= 1
    if matrix.agreement is not None and matrix.strict_agreement is not None:
        assert matrix.strict_agreement <= matrix.agreement


@given(st.integers(1, 20), st.integers(1, 20), st.booleans())
def test_an_instrument_that_says_the_same_of_all_agrees_to_a_half(right: int, wrong: int, call: bool) -> None:
    assert confusion([(True, call)] * right + [(False, call)] * wrong).agreement == 0.5
