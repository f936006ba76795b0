"""The tools of a workspace: a shell, files, and handing in."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from .contract import JSON, ExecResult, Limits, Sandbox

SHOWN_CHARACTERS = 16_000
"""Longest text that a result holds; the middle of a longer one is left out."""
_KEPT_BYTES = 4 * 2**20
_MAX_COMMAND_BYTES = 120_000
"""Linux takes no single argument of 128 KiB."""
_LIMIT_WORDS = {
    "wall": "it ran longer than {wall:g} s",
    "memory": "it used more than {memory} MiB of memory",
    "processes": "it started more than {processes} processes",
    "disk": "it wrote more than {disk} MiB",
    "output": "it printed too much",
}


class Answer(NamedTuple):
    """What a tool did: a result, or an error for the agent."""

    result: JSON
    error: str = ""


class Workbench(NamedTuple):
    """What the tools work with."""

    sandbox: Sandbox
    variables: Mapping[str, str]
    command_s: float
    """Longest time of one command, and the time of a command that names none."""
    memory_bytes: int


def workspace_tools(command_s: float) -> list[JSON]:
    """Name, description and JSON Schema parameters of each tool; a fresh copy."""
    tools: list[JSON] = json.loads(Path(__file__).with_name("workspace_tools.json").read_text("utf-8"))
    timeout = tools[0]["parameters"]["properties"]["timeout_s"]
    timeout["maximum"] = timeout["default"] = max(1, int(command_s))
    return tools


def run_tool(bench: Workbench, tool: str, values: Mapping[str, JSON]) -> Answer:
    """Run a tool on checked arguments.

    Raises:
        SandboxError: the environment failed.
    """
    if tool == "bash":
        return _bash(bench, **values)
    if tool == "submit":
        return Answer({"submitted": True})
    if "\0" in values["path"]:
        return Answer(None, "a path cannot hold a NUL character")
    try:
        if tool == "read_file":
            return _read_file(bench, **values)
        return _write_file(bench, **values) if tool == "write_file" else _edit_file(bench, **values)
    except OSError as exc:
        return Answer(None, f"{values['path']}: {os.strerror(exc.errno) if exc.errno else 'cannot be opened'}")
    except ValueError:
        return Answer(None, f"{values['path']}: too large, or not a regular file")


def _bash(bench: Workbench, command: str, timeout_s: int | None = None) -> Answer:
    if "\0" in command:
        return Answer(None, "a command cannot hold a NUL character")
    if len(command.encode()) > _MAX_COMMAND_BYTES:
        return Answer(None, f"the command is longer than {_MAX_COMMAND_BYTES} bytes: write a file and run it")
    limits = Limits(wall_s=timeout_s or bench.command_s, memory_bytes=bench.memory_bytes, output_bytes=_KEPT_BYTES)
    # The outer shell joins the two streams, so that the agent reads them in the order they were written. With pipefail,
    # a pipe into `tail` does not hide a failure from the agent or from a rubric.
    wrapped = ["bash", "-c", 'exec bash -o pipefail -c "$1" 2>&1', "bash", command]
    ended = bench.sandbox.exec(wrapped, limits=limits, variables=bench.variables)
    text, cut = _shown(ended)
    result: JSON = {"exit_code": ended.exit_code, "output": text, "truncated": cut}
    if ended.ended_by in _LIMIT_WORDS:
        result["stopped"] = "the command was stopped: " + _LIMIT_WORDS[ended.ended_by].format(
            wall=limits.wall_s, memory=limits.memory_bytes >> 20, processes=limits.processes,
            disk=limits.disk_bytes >> 20,
        )  # fmt: skip
    return Answer(result)


def _shown(ended: ExecResult) -> tuple[str, bool]:
    kept = ended.stdout + ended.stderr
    text, cut = shorten(kept.decode("utf-8", "replace"))
    lost = ended.output_bytes - len(kept)
    if lost > 0:
        text += f"\n[{lost} further bytes were printed and not kept]"
    return text, cut or lost > 0


def shorten(text: str) -> tuple[str, bool]:
    """A text with its middle left out where it is too long, and whether it was."""
    if len(text) <= SHOWN_CHARACTERS:
        return text, False
    half = SHOWN_CHARACTERS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}", True


def _read_file(bench: Workbench, path: str, start: int = 1, lines: int | None = None) -> Answer:
    content = StringIO(bench.sandbox.read(path).decode("utf-8", "replace"), newline="\n").readlines()
    if start > max(1, len(content)):
        return Answer(None, f"{path}: it has {len(content)} lines")
    wanted = content[start - 1 : None if lines is None else start - 1 + lines]
    text, cut = shorten("".join(wanted))
    return Answer({"content": text, "start": start, "total_lines": len(content), "truncated": cut})


def _write_file(bench: Workbench, path: str, content: str) -> Answer:
    raw = content.encode()
    bench.sandbox.write(path, raw)
    return Answer({"written_bytes": len(raw)})


def _edit_file(bench: Workbench, path: str, old: str, new: str) -> Answer:
    if old == new:
        return Answer(None, "'old' and 'new' are the same")
    content, passage = bench.sandbox.read(path), old.encode()
    place = content.find(passage)
    if place < 0:
        return Answer(None, f"{path}: 'old' does not occur{_hint(content, passage)}")
    if content.find(passage, place + 1) >= 0:
        return Answer(None, f"{path}: 'old' occurs more than once; give more of the text around the passage")
    before, after = content[:place], content[place + len(passage) :]
    bench.sandbox.write(path, before + new.encode() + after)
    return Answer({"line": before.count(b"\n") + 1})


def _hint(content: bytes, passage: bytes) -> str:
    if content.replace(b"\r\n", b"\n").count(passage):
        return ": the file's lines end in CR LF"
    if b" ".join(passage.split()) in b" ".join(content.split()):
        return ": it does with other white space"
    return ""
