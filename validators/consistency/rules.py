"""The trace-rule instrument: what may not be on the way, in SQL over the calls; the end state is not looked at."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from envsynth.models import Candidate, CriterionClass, ToolKind, World
from envsynth.validators.consistency.facts import Told
from envsynth.validators.consistency.grounding import Grounding, naming
from envsynth.validators.consistency.runs import Run
from envsynth.validators.worlds.opened import reads_trace

__all__ = ["Broken", "broken_rules"]

_DECIDING = (CriterionClass.ESSENTIAL, CriterionClass.PITFALL)
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_ACTS = (ToolKind.WRITE, ToolKind.CLOCK, ToolKind.SUBMIT)


class Broken(NamedTuple):
    """A rule that a run breaks."""

    rule: str
    """Of this instrument; or of the task: `check:ID`, `criterion:ID`."""
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" if self.message else self.rule


def broken_rules(candidate: Candidate, world: World, runs: Sequence[Run], grounding: Grounding) -> list[list[Broken]]:
    """For each run, the rules that it breaks: those of every task, and the task's own on the trace.

    The task's own are checks that read the trace, essential criteria that were not met, and pitfalls.

    Args:
        candidate: whose panel was played.
        world: its world.
        runs: of the panel.
        grounding: says which answers tell which values.
    """
    broken = [[*_of_task(candidate, run), *_of_acts(world, run)] for run in runs]
    # Where the outcome is a utility, which of several numbered things is taken is a choice.
    names = naming(world) if candidate.verifier.utility is None else frozenset()
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        _fill(connection, world, runs, grounding, names)
        for rule, sql in _rules().items():
            for place, turn, message in connection.execute(sql):
                broken[place].append(Broken(rule, f"call {turn}, {message}"))
    finally:
        connection.close()
    return broken


def _of_task(candidate: Candidate, run: Run) -> Iterable[Broken]:
    if not run.gate:
        yield Broken("gate", "it is no valid transcript within its budget")
    for check in candidate.verifier.checks:
        if reads_trace(check.sql) and not run.checks[check.id]:
            yield Broken(f"check:{check.id}", "")
    for line in candidate.verifier.rubric:
        if line.class_ in _DECIDING and run.criteria[line.id] is False:
            yield Broken(f"criterion:{line.id}", line.text)


def _of_acts(world: World, run: Run) -> Iterable[Broken]:
    acts = {tool.name for tool in world.tools if tool.kind in _ACTS}
    if not any(made.ok and made.tool in acts for made in run.made):
        yield Broken("did_nothing", "no call of it changes anything or hands in")


@cache
def _rules() -> Mapping[str, str]:
    """The queries by name; each gives run, turn and a message for every breach."""
    parts = _NAME.split(Path(__file__).with_name("rules.sql").read_text("utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@cache
def _schema() -> str:
    return Path(__file__).with_name("trace.sql").read_text("utf-8")


def _fill(
    connection: sqlite3.Connection, world: World, runs: Sequence[Run], grounding: Grounding,
    names: Collection[tuple[str, str]],
) -> None:  # fmt: skip
    connection.executescript(_schema())
    kinds = {tool.name: tool.kind.value for tool in world.tools}
    answers: dict[Told, int] = {}
    calls, values = [], set()
    for place, run in enumerate(runs):
        for made in run.made:
            number = answers.setdefault(grounding.told(made), len(answers))
            arguments = json.dumps(made.arguments, sort_keys=True)
            calls.append((place, made.turn, made.tool, kinds.get(made.tool, ""), arguments, made.ok, number))
            if made.ok and kinds.get(made.tool) in ("write", "clock"):
                values |= {v for name, v in made.arguments.items() if (made.tool, name) in names and v is not None}
    told = [(number, str(value)) for answer, number in answers.items() for value in values if answer.tells(value)]
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO call VALUES (?, ?, ?, ?, ?, ?, ?)", calls)
    connection.executemany("INSERT OR IGNORE INTO told VALUES (?, ?)", told)
    connection.executemany(
        "INSERT OR IGNORE INTO stated VALUES (?)", [(str(v),) for v in values if grounding.stated(v)]
    )
    connection.executemany("INSERT INTO naming VALUES (?, ?)", names)
    connection.execute("INSERT INTO world VALUES (?)", (any(tool.kind is ToolKind.SUBMIT for tool in world.tools),))
    connection.execute("COMMIT")
