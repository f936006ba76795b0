"""Episodes that are played in one place and graded in another, by a record of their calls.

What serves the tools writes each call down before it is made; where the checks are, the calls are made again. A world
answers the same calls alike, so nothing else needs to cross. A record that is not whole is no grade, never a bad one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import EnvsynthError, SandboxError, boundary
from .contract import JSON
from .pack import Pack
from .player import Player
from .replay import replay

SCHEMA = 1
MAX_CALL = 2**20
"""Bytes of one call in a record; a longer one is refused, and is no call."""
_LINES_BESIDE_CALLS = 3
"""The head, the one call that is too many, and a failure."""


class RecordedPlayer:
    """Plays one task for an agent elsewhere, and keeps a record of the calls. Not thread-safe."""

    def __init__(self, pack: Pack, task: str, record: Path) -> None:
        """Begin a task; where a record of it is there, make its calls again and go on where they ended.

        Args:
            pack: holds the task; its checks are not asked for.
            task: its id.
            record: the file, in a folder that nobody else writes to.

        Raises:
            EnvsynthError: there is no such task, the record is of another, or the environment failed.
        """
        self._player = Player(pack)
        self._record = record
        self._failed = False
        self.instruction = self._player.begin(task)
        if _is_begun(record):
            for call in read_calls(record, task, turns=pack.budgets[task]):
                self._player.call(call["tool"], call["arguments"])
        else:
            self._write({"schema": SCHEMA, "task": task})

    def tools(self) -> list[JSON]:
        """Name, description and JSON Schema parameters of the task's tools."""
        return self._player.tools()

    def call(self, tool: str, arguments: JSON) -> str:
        """One tool call: what the agent is shown of it.

        Raises:
            SandboxError: the environment failed; the record says so, and there is no grade.
        """
        if self._failed:
            raise SandboxError("the environment has failed", where=self._player.task)
        line = _line({"tool": tool, "arguments": arguments})
        if not line:
            return f"error: the arguments are no JSON, or longer than {MAX_CALL} bytes; nothing was done"
        try:
            if not self._player.done:
                _append(self._record, line)
            return self._player.call(tool, arguments)
        except Exception as exc:
            self._failed = True
            self._write({"failed": f"{type(exc).__name__}: {exc}"[:1000]})
            raise

    def _write(self, document: JSON) -> None:
        with boundary(SandboxError, "the record cannot be written", where=str(self._record)):
            _append(self._record, json.dumps(document).encode() + b"\n")


def read_calls(record: Path, task: str, *, turns: int) -> list[JSON]:
    """The calls of a record, in order; each has `tool` and `arguments`.

    Args:
        record: the file.
        task: which task's it must be.
        turns: calls that an episode of it may have; one more is where the budget was overdrawn.

    Raises:
        SandboxError: there is no record, it is not whole, it is of another task, or the environment had failed.
    """
    step = "look at the log of the service that plays the world"
    with boundary(SandboxError, "the record of the calls is no use", where=str(record), next_step=step):
        if record.is_symlink() or not record.is_file():
            raise ValueError("there is none")
        if record.stat().st_size > (turns + _LINES_BESIDE_CALLS) * (MAX_CALL + 1):
            raise ValueError("it is longer than a record can be")
        head, *lines = record.read_bytes().split(b"\n")
        if not lines or lines.pop():
            raise ValueError("its end is missing")
        if json.loads(head) != {"schema": SCHEMA, "task": task}:
            raise ValueError(f"it is none of the task {task}: {head[:200].decode('utf-8', 'replace')}")
        if any(len(line) > MAX_CALL for line in lines):
            raise ValueError("a line is longer than a call can be")
        calls = [json.loads(line) for line in lines]
        failed = next((call["failed"] for call in calls if "failed" in call), None)
        if failed is not None:
            raise ValueError(f"the environment failed: {failed}")
        if len(calls) > turns + 1:
            raise ValueError(f"it has {len(calls)} calls, and {turns} are allowed")
        if any(call.keys() != {"tool", "arguments"} for call in calls):
            raise ValueError("a line is no call")
        return calls


def graded(pack: Pack, task: str, record: Path) -> dict[str, float]:
    """Every component of what a record's calls came to.

    Args:
        pack: holds the task with its checks.
        task: its id.
        record: as `RecordedPlayer` wrote it.

    Raises:
        SandboxError: the record is no use, or the environment failed; there is no grade.
    """
    player = Player(pack)
    try:
        player.begin(task)
        for call in read_calls(record, task, turns=pack.budgets[task]):
            if player.done:
                raise SandboxError("the record goes on after the end of the episode", where=task)
            player.call(call["tool"], call["arguments"])
        return player.rewards()
    finally:
        player.close()


def write_components(place: Path, components: Mapping[str, float]) -> None:
    """Write components of a reward as a flat JSON object of finite numbers, in one step.

    Raises:
        SandboxError: they cannot be written, or one is not finite.
    """
    with boundary(SandboxError, "the rewards cannot be written", where=str(place)):
        if not all(map(math.isfinite, components.values())):
            raise ValueError("a component is not finite")
        aside = place.with_name(f".{place.name}.{os.getpid()}")
        aside.write_text(json.dumps(components, sort_keys=True), "utf-8")
        aside.replace(place)


def _line(call: JSON) -> bytes:
    """A call as a record has it; empty where it would not be read as the same call."""
    try:
        line = json.dumps(call, allow_nan=False).encode() + b"\n"
        same = json.loads(line) == call
    except (ValueError, RecursionError):
        return b""
    return line if same and len(line) <= MAX_CALL else b""


def _append(record: Path, line: bytes) -> None:
    with record.open("ab", buffering=0) as file:
        written = file.write(line)
        if written != len(line):
            raise OSError(f"{written} of {len(line)} bytes were written")


def _is_begun(record: Path) -> bool:
    """Whether calls may be in a record; what a killed process had only begun to write is taken away.

    A call is written before it is made, so one that is not whole was never made.
    """
    if not record.exists():
        return False
    whole = record.read_bytes().rpartition(b"\n")
    with boundary(SandboxError, "the record cannot be written", where=str(record)):
        os.truncate(record, len(whole[0] + whole[1]))
    return bool(whole[1])


def _grade(options: argparse.Namespace, pack: Pack, task: str) -> None:
    rewards = options.logs / "reward.json"
    rewards.unlink(missing_ok=True)
    components = graded(pack, task, options.record)
    write_components(rewards, components)
    print(json.dumps(components, indent=1))


def _prepare(pack: Pack, task: str) -> None:
    """Show that the panel earns here what it earned where the task was made."""
    played = list(replay(pack, only=task))
    differing = [line for line in played if line.verdict != "same"]
    if differing or not played:
        cause = f"{differing[0].label}: {differing[0].got}, not {differing[0].expected}" if played else "no panel"
        raise SandboxError(
            "the world is graded otherwise here than where the task was made", where=task, cause=cause,
            next_step="give the export another base image with the option `base`", retryable=False,
        )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: PACK is the folder of a pack with one task.

    Returns:
        0: done. Else there is no grade, and the reason is on standard error.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    prepare = commands.add_parser("prepare", help="show that PACK can be graded here")
    grade = commands.add_parser("grade", help="grade RECORD and write LOGS/reward.json")
    for command in (prepare, grade):
        command.add_argument("pack", type=Path)
    grade.add_argument("record", type=Path)
    grade.add_argument("logs", type=Path)
    options = parser.parse_args(arguments)
    try:
        pack = Pack(options.pack, name=options.pack.name)
        (task,) = pack.budgets
        if options.command == "prepare":
            _prepare(pack, task)
        else:
            _grade(options, pack, task)
    except EnvsynthError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return exc.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
