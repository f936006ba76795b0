"""The gate before any judge: is this a valid, executable transcript of tool calls (after A.X K2's binary gate)."""

from __future__ import annotations

from collections.abc import Iterator

from envsynth.judge.case import Case
from envsynth.runtime.arguments import check_arguments

__all__ = ["gate_faults", "mistaken_calls"]


def gate_faults(case: Case) -> tuple[str, ...]:
    """Why a transcript is not judged at all; empty where it may be.

    A call that the environment refused is an agent's mistake, which the reward's own rules deal with. One that is
    recorded as done although no such tool could have done it makes the record worthless.
    """
    return tuple(_faults(case))


def mistaken_calls(case: Case) -> int:
    """Calls of tools that there are not, or with arguments that do not fit: refused ones too."""
    schemas = {tool["name"]: tool["parameters"] for tool in case.tools}
    return sum(
        turn.tool not in schemas or bool(check_arguments(schemas[turn.tool], turn.arguments).error)
        for turn in case.trace
    )


def _faults(case: Case) -> Iterator[str]:
    if not case.gate:
        yield "its grade's gate is 0"
    schemas = {tool["name"]: tool["parameters"] for tool in case.tools}
    for expected, turn in enumerate(case.trace, 1):
        if turn.turn != expected:
            yield f"turn {turn.turn} stands where turn {expected} is wanted"
        if not turn.ok:
            continue
        if turn.tool not in schemas:
            yield f"turn {turn.turn}: there is no tool {turn.tool[:60]!r}"
        elif error := check_arguments(schemas[turn.tool], turn.arguments).error:
            yield f"turn {turn.turn}, {turn.tool}: {error}"
