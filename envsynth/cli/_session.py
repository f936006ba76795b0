"""A person plays an episode: lines in, tables out, the score at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

import typer

from envsynth.cli._call_lines import Misread, read_call, words_of
from envsynth.cli._output import clean, heading, print_prose, print_table
from envsynth.runtime.contract import Episode, ToolResult
from envsynth.runtime.observe import render

_QUITS = ("quit", "exit", "end", "bye", "q")
_WIDE = 60
"""Characters of a value that is read more easily below its name than in a table."""
_REFUSALS = {
    "undo": "there is no undo: what is done is done",
    "state": "the state is not shown: find out with the tools",
    "reset": "there is no way back: quit, and play again",
}


class Budget(NamedTuple):
    """What the episode may spend."""

    turns: int
    """Calls."""
    cost: float | None
    """Of the tools' costs; None: unlimited."""


class Session:
    """One episode at a prompt. What is no call costs nothing; what the tools refuse is a call like any other."""

    def __init__(self, episode: Episode, budget: Budget) -> None:
        """Begin an episode.

        Args:
            episode: not yet reset.
            budget: what it may spend.
        """
        self._episode = episode
        self._budget = budget
        self._instruction = episode.reset()
        self._tools: Sequence[Mapping[str, Any]] = episode.tools()
        self.calls = 0
        """Calls made so far."""
        self.over = False

    @property
    def prompt(self) -> str:
        """What stands before a line: calls made, and allowed."""
        return f"{self.calls}/{self._budget.turns}> "

    def introduce(self) -> None:
        """Show what an agent is told, and how to play."""
        self._task("")
        self._list("")
        typer.echo(f"\n{_help_text()}")

    def play(self, lines: Iterable[str]) -> None:
        """Play lines until the episode is over, somebody quits, or there are no more.

        Raises:
            SandboxError: the environment failed.
        """
        for line in lines:
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            if self._is_quit(text):
                return
            try:
                self._do(text)
            except Misread as exc:
                typer.echo(clean(f"not a call: {exc}"))
            if self.over:
                return

    def _do(self, text: str) -> None:
        word, _, rest = text.removeprefix(":").partition(" ")
        if self._is_ours(text):
            commands: dict[str, Callable[[str], None]] = {
                "help": self._help, "?": self._help, "tools": self._list, "task": self._task, "instruction": self._task,
            }  # fmt: skip
            if word.lower() in _REFUSALS:
                raise Misread(_REFUSALS[word.lower()])
            if word.lower() not in commands:
                raise Misread(f"there is no {text[:60]!r}; type help")
            commands[word.lower()](rest.strip())
            return
        call = read_call(text, self._tools)
        result = self._episode.call(call.tool, call.arguments)
        self.calls += 1
        self.over = result.done
        _print_result(result)

    def _is_ours(self, text: str) -> bool:
        """Whether a line is for this program: a word of its own, unless a tool has that name."""
        word = text.partition(" ")[0].lower()
        if word.startswith(":"):
            return True
        ours = word in _REFUSALS or word in ("help", "?", "tools", "task", "instruction")
        return ours and word not in {tool["name"] for tool in self._tools}

    def _is_quit(self, text: str) -> bool:
        word = text.lower()
        return word.removeprefix(":") in _QUITS and (word[0] == ":" or word not in {t["name"] for t in self._tools})

    def _task(self, _: str) -> None:
        heading("task")
        print_prose(self._instruction)
        cost = "" if self._budget.cost is None else f", whose costs may come to {self._budget.cost:g}"
        typer.echo(f"\nYou may make {self._budget.turns} calls{cost}.")

    def _list(self, _: str) -> None:
        heading("tools")
        for number, tool in enumerate(self._tools, 1):
            typer.echo(clean(f"{number:3} {_signature(tool)}"))
            _print_details(tool)

    def _help(self, word: str) -> None:
        if not word:
            typer.echo(_help_text())
            return
        numbered = enumerate(self._tools, 1)
        named = [tool for number, tool in numbered if tool["name"].startswith(word.lower()) or word == str(number)]
        if not named:
            raise Misread(f"there is no tool {word[:60]!r}; type tools")
        for tool in named:
            typer.echo(clean(f"    {_signature(tool)}"))
            _print_details(tool)


def _help_text() -> str:
    return resources.files("envsynth.cli").joinpath("play_help.txt").read_text("utf-8").rstrip()


def _signature(tool: Mapping[str, Any]) -> str:
    required = tool["parameters"].get("required", ())
    names = tool["parameters"]["properties"]
    return " ".join([tool["name"], *(name if name in required else f"[{name}]" for name in names)])


def _print_details(tool: Mapping[str, Any]) -> None:
    if tool["description"]:
        typer.echo(clean(f"      {tool['description']}"))
    for name, schema in tool["parameters"]["properties"].items():
        said = f": {schema['description']}" if "description" in schema else ""
        typer.echo(clean(f"        {name}: {words_of(schema)}{said}"))


def _print_result(result: ToolResult) -> None:
    rows = result.result
    if not result.ok or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        typer.echo("done" if result.ok and rows == {"ok": True} else clean(render(result)))
    elif len(rows) == 1 and max(len(str(value)) for value in rows[0].values()) > _WIDE:
        typer.echo(clean(render(result._replace(result=rows[0]))))
    elif rows:
        columns = list(dict.fromkeys(name for row in rows for name in row))
        print_table([clean(name) for name in columns], [[row.get(name) for name in columns] for row in rows])
    else:
        typer.echo("no rows")
