"""Kinds of failures by rules over trace and grade."""

from __future__ import annotations

from typing import Any

import pytest

from envsynth.models import Attempt, AttemptGrade, AttemptStatus, Ending, FailureKind, Policy, TraceStep
from envsynth.rollout import failure_of, is_success

GOOD = TraceStep(tool="order", arguments={}, ok=True)
REFUSED = TraceStep(tool="order", arguments={}, ok=False, error="it has been ordered already")
MISFIT = TraceStep(tool="order", arguments={}, ok=False, error="order: missing argument 'item'; known: item")
UNKNOWN = TraceStep(tool="buy", arguments={}, ok=False, error="there is no tool 'buy'; use order")
CRASH = TraceStep(tool="bash", arguments={}, ok=True, result={"exit_code": 1})
RUN = TraceStep(tool="bash", arguments={}, ok=True, result={"exit_code": 0})


def attempt(trace: tuple[TraceStep, ...] = (), **changes: Any) -> Attempt:
    outcome, gate = changes.pop("outcome", 0.0), changes.pop("gate", 1.0)
    grade = AttemptGrade(reward=gate * outcome, outcome=outcome, process=None, gate=gate, checks={}, criteria={},
                         penalties={}, detail={})  # fmt: skip
    fields: dict[str, Any] = {
        "task": "t", "lead": "l", "played": "1" * 64, "policy": Policy.MODEL, "settings": "2" * 64, "k": 0,
        "status": AttemptStatus.FINISHED, "trace": trace, "ending": Ending.STOPPED, "grade": grade,
    }  # fmt: skip
    return Attempt(**fields | changes)


@pytest.mark.parametrize(
    ("trace", "kind"),
    [
        ((), "misread_state"), ((GOOD,), "misread_state"),
        ((REFUSED,), "no_recovery"), ((REFUSED, GOOD), "misread_state"), ((GOOD, REFUSED), "no_recovery"),
        ((MISFIT,), "tool_misuse"), ((MISFIT, GOOD), "misread_state"), ((MISFIT, RUN), "tool_misuse"),
        ((UNKNOWN, GOOD), "misread_state"), ((GOOD, UNKNOWN), "tool_misuse"),
        ((REFUSED, MISFIT), "tool_misuse"), ((CRASH,), "no_recovery"), ((CRASH, RUN), "misread_state"),
    ],
)  # fmt: skip
def test_what_was_never_made_good_decides(trace: tuple[TraceStep, ...], kind: str) -> None:
    assert failure_of(attempt(trace), 1.0) is FailureKind(kind)


def test_endings_come_first_and_successes_have_no_kind() -> None:
    assert failure_of(attempt((MISFIT,), ending=Ending.MALFORMED, gate=0.0), 1.0) is FailureKind.FORMAT
    for ending in (Ending.TURN_BUDGET, Ending.TOKEN_BUDGET, Ending.TIME_BUDGET):
        assert failure_of(attempt((MISFIT,), ending=ending), 1.0) is FailureKind.BUDGET
        assert failure_of(attempt(ending=ending, outcome=1.0), 1.0) is None
    assert failure_of(attempt((MISFIT,), outcome=1.0), 1.0) is None


def test_success_asks_for_the_gate_and_the_threshold() -> None:
    assert not is_success(attempt(outcome=1.0, gate=0.0), 1.0)
    assert not is_success(attempt(outcome=0.95), 1.0)
    assert is_success(attempt(outcome=0.95), 0.9)
    lost = attempt(status=AttemptStatus.ENVIRONMENT_ERROR, trouble="x", grade=None, ending=None)
    assert not is_success(lost, 0.0)
    assert failure_of(lost, 1.0) is None


def test_an_attempt_cannot_be_half_finished() -> None:
    with pytest.raises(ValueError, match="finished attempt has an ending and a grade"):
        attempt(grade=None)
    with pytest.raises(ValueError, match="finished attempt has an ending and a grade"):
        attempt(status=AttemptStatus.ENVIRONMENT_ERROR)
