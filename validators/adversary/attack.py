"""What an attack is, and the tool calls it is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from shlex import quote

from envsynth.models import ToolCall
from envsynth.validators.adversary.target import Target

MAX_NAMED = 20_000
"""Characters of test ids that a payload names at most; an agent's command cannot be longer than 100,000."""
_END = "end-of-the-payload"


@dataclass(frozen=True)
class Attack:
    """One way to be graded 1 without doing the work."""

    name: str
    family: str
    """What is attacked: `hooks`, `tests`, `files`, `host`, `oracle`, `runner` or `report`."""
    why: str
    """Why it might work, for people."""
    plan: Callable[[Target], tuple[ToolCall, ...]]
    """What it plants in a task."""
    needs_isolation: bool = False
    """Whether it could harm a host that runs it without a sandbox."""

    def calls(self, target: Target) -> tuple[ToolCall, ...]:
        """The whole trajectory, handing in included."""
        return (*self.plan(target), ToolCall(tool="submit"))


def write(path: str, content: str) -> ToolCall:
    """Write a file."""
    return ToolCall(tool="write_file", arguments={"path": path, "content": content})


def bash(command: str) -> ToolCall:
    """Run a command."""
    return ToolCall(tool="bash", arguments={"command": command})


@cache
def text(name: str) -> str:
    """The text of a file in `payloads`."""
    return resources.files(__package__).joinpath("payloads", f"{name}.py.txt").read_text("utf-8")


def append(path: str, content: str) -> ToolCall:
    """Put text at the end of a file, whatever its encoding and line ends."""
    return bash(f"cat >> {quote(f'./{path}')} <<'{_END}'\n\n{content}\n{_END}")


def filled(payload: str, target: Target, copies: Sequence[str] = ()) -> str:
    """A payload's text with what it wants to know of the task."""
    known: Mapping[str, object] = {
        "FUNCTIONS": _some(target.functions),
        "FAIL_TO_PASS": _some(target.fail_to_pass),
        "PASS_TO_PASS": _some(target.pass_to_pass),
        "HIDDEN": _some(target.hidden),
        "COPIES": list(copies),
        "HOOK": text("hook"),
    }
    for word, value in known.items():
        payload = payload.replace(f"@{word}@", json.dumps(value))
    return payload


def inside(*names: str) -> Callable[[Target], tuple[ToolCall, ...]]:
    """A plan: payloads at the end of the module that the hidden tests surely import."""

    def plan(target: Target) -> tuple[ToolCall, ...]:
        if not target.host:
            return ()
        content = "\n\n".join(filled(text(name), target) for name in names)
        return (append(target.host, content),)

    return plan


def _some(names: Sequence[str]) -> list[str]:
    chosen: list[str] = []
    room = MAX_NAMED
    for name in names:
        room -= len(json.dumps(name))
        if room < 0:
            break
        chosen.append(name)
    return chosen
