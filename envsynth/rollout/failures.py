"""When an attempt is a success, and why it is none: rules over its trace and grade alone."""

from __future__ import annotations

from collections.abc import Sequence

from envsynth.models import Attempt, Ending, FailureKind, TraceStep, Verifier

__all__ = ["MECHANISM_SUCCESS", "failure_of", "is_success", "threshold_of"]

MECHANISM_SUCCESS = 0.9
"""Least outcome of a success where the outcome is graded: nine tenths of the way from the default to the reference."""

_ROUNDING = 1e-9
_BUDGETS = (Ending.TURN_BUDGET, Ending.TOKEN_BUDGET, Ending.TIME_BUDGET)


def threshold_of(verifier: Verifier) -> float:
    """Least outcome of a success: 1 where checks decide, `MECHANISM_SUCCESS` where a utility does."""
    return 1.0 if verifier.utility is None else MECHANISM_SUCCESS


def is_success(attempt: Attempt, threshold: float) -> bool:
    """Whether the gate is open and the outcome large enough. An attempt without a grade is no success, and no failure.

    Args:
        attempt: finished.
        threshold: as `threshold_of`.
    """
    grade = attempt.grade
    return grade is not None and grade.gate >= 1.0 and grade.outcome >= threshold - _ROUNDING


def failure_of(attempt: Attempt, threshold: float) -> FailureKind | None:
    """Why a finished attempt is no success; the first of these that is so.

    - `format`: a turn that was no valid tool call, or no usable answer, ended it.
    - `budget`: it ran out of calls, tokens or time.
    - `tool_misuse`: a call that its tool's schema refuses (no such tool, unknown, missing or unfitting arguments),
      after which the same tool was never called well. Calls of tools that there are not count for all tools.
    - `no_recovery`: a call that the tool itself refused or that failed (a guard of the world; an exit code other than
      0), after which the same tool never succeeded.
    - `misread_state`: none of these: every mistake was made good, or none was noticed, and it ended by itself in a
      state that is not what was asked for.

    None: a success, or not finished.
    """
    if not attempt.finished or is_success(attempt, threshold):
        return None
    if attempt.ending is Ending.MALFORMED:
        return FailureKind.FORMAT
    if attempt.ending in _BUDGETS:
        return FailureKind.BUDGET
    open_ended = _never_made_good(attempt.trace)
    if any(_misused(step) for step in open_ended):
        return FailureKind.TOOL_MISUSE
    return FailureKind.NO_RECOVERY if open_ended else FailureKind.MISREAD_STATE


def _never_made_good(trace: Sequence[TraceStep]) -> list[TraceStep]:
    """The calls that failed after the last success of their tool; of unknown tools, after the last of any."""
    last_good: dict[str, int] = {}
    last_any = -1
    for place, step in enumerate(trace):
        if not _failed(step):
            last_good[step.tool] = last_any = place
    return [
        step
        for place, step in enumerate(trace)
        if _failed(step) and place > (last_any if _unknown(step) else last_good.get(step.tool, -1))
    ]


def _failed(step: TraceStep) -> bool:
    if not step.ok:
        return True
    code = step.result.get("exit_code", 0) if isinstance(step.result, dict) else 0
    return isinstance(code, int) and code != 0


def _unknown(step: TraceStep) -> bool:
    return not step.ok and step.error.startswith("there is no tool ")


def _misused(step: TraceStep) -> bool:
    """Whether the runtime refused the call before the tool saw it; its own words for that are these."""
    return not step.ok and (_unknown(step) or step.error.startswith(f"{step.tool}: "))
