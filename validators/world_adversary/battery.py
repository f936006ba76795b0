"""The one list of attacks on worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import chain, cycle, islice

from envsynth.models import Tool
from envsynth.validators.worlds.target import LADDER, Call, Target, misfits, with_text

MAX_CALLS = 300
"""Of one attack; more of the same shows nothing new."""


@dataclass(frozen=True)
class Attack:
    """One way to be graded well without solving the task."""

    name: str
    why: str
    """Why it might work, for people."""
    calls: tuple[Call, ...]
    reads_only: bool = False
    """Whether none of its calls changes anything; it may then see nothing that is hidden."""
    guess: str = ""
    """Equal for attacks that are one, but for which thing they name; there, nothing but luck decides."""
    must_be_refused: bool = False
    """Whether no tool may accept any of its calls but the last, which hands in."""


def battery(target: Target) -> list[Attack]:
    """Every attack that makes sense in a world."""
    return [attack for make in _ATTACKS for attack in make(target) if attack.calls]


def _nothing(target: Target) -> Iterator[Attack]:
    for tool in target.tools("submit"):
        why = "handing in at once might be taken for having done the work"
        calls = target.calls(tool)
        if tool.each is not None:
            calls.insert(0, target.call(tool, "low", **{tool.each.parameter: "[]"}))
        for number, call in enumerate(calls):
            yield Attack(f"{tool.name}_at_once_{number}", why, (call,), guess=_guess(target, tool, "at_once"))


def _constant(target: Target) -> Iterator[Attack]:
    clocks = target.tools("clock")
    for tool in target.tools("write", "clock"):
        for number, call in enumerate(target.calls(tool)):
            why = f"always the same {tool.name} might do"
            name = f"constant_{tool.name}_{number}"
            yield Attack(name, why, _repeated(target, [call]), guess=_guess(target, tool, "constant"))
            if tool.kind == "write" and clocks:
                daily = _repeated(target, [call, target.call(clocks[0], "low")])
                yield Attack(f"{name}_daily", why, daily, guess=_guess(target, tool, "daily"))


def _guess(target: Target, tool: Tool, kind: str) -> str:
    return f"{kind} {tool.name}" if target.names_things(tool) else ""


def _clock(target: Target) -> Iterator[Attack]:
    clocks = [target.call(tool, "high") for tool in target.tools("clock")]
    yield Attack("clock_skipped", "time might pass without what it should bring", _repeated(target, clocks))


def _spam(target: Target) -> Iterator[Attack]:
    tools = [tool for tool in target.world.tools if tool.kind != "submit"]
    calls = [target.call(tool, step) for step in LADDER for tool in tools]
    yield Attack("every_tool", "doing everything might do what is wanted among it", _repeated(target, calls))


def _plans(target: Target) -> Iterator[Attack]:
    for tool in target.world.tools:
        if tool.each is None:
            continue
        parameter, most = tool.each.parameter, tool.each.maximum
        large = target.call(tool, "middle", **{parameter: target.plan(tool, "middle", most + 1)})
        yield Attack(
            f"plan_too_long_{tool.name}", "a plan might be longer than allowed", (large,), must_be_refused=True
        )
        one = target.call(tool, "middle", **{parameter: target.plan(tool, "middle", 1)})
        yield Attack(f"plan_of_one_{tool.name}", "a plan might be too short to fail", (one, *target.ending()))


def _misfits(target: Target) -> Iterator[Attack]:
    calls = tuple(chain.from_iterable(map(misfits, target.world.tools)))
    unknown: tuple[Call, ...] = (("no_such_tool", {}), ("", {}), ("sqlite_master", {"sql": "SELECT 1"}), ("\ud800", {}))
    why = "wrong types and values out of bounds might be taken"
    yield Attack("misfits", why, (*calls, *unknown)[:MAX_CALLS], must_be_refused=True)


def _texts(target: Target) -> Iterator[Attack]:
    for name, why in (("sql", "a text might be run as SQL"), ("override", "a text might talk a grader round")):
        texts = (resources.files(__package__) / "payloads" / f"{name}.txt").read_text("utf-8").splitlines()
        found = [with_text(target, tool, text) for tool in target.world.tools for text in texts]
        calls = [call for call in found if call is not None]
        if calls:
            yield Attack(f"texts_{name}", why, (*calls, *target.ending()))


def _wandering(target: Target) -> Iterator[Attack]:
    calls = [call for tool in target.tools("read", "think") for call in target.calls(tool)]
    yield Attack("only_reading", "looking at everything might be enough", tuple(calls), reads_only=True)


def _repeated(target: Target, calls: list[Call]) -> tuple[Call, ...]:
    """The calls again and again while the budget lasts, then handing in."""
    ending = target.ending()
    most = max(1, min(target.turns, MAX_CALLS) - len(ending))
    return (*islice(cycle(calls), most), *ending) if calls else ()


_ATTACKS: tuple[Callable[[Target], Iterator[Attack]], ...] = (
    _nothing, _constant, _clock, _spam, _plans, _misfits, _texts, _wandering,
)  # fmt: skip
