"""What a judge may see of one episode: never the reference, the checks, or what the episode is labelled as.

A case is taken from the recorded database of an episode, or from a fork of it; the live episode is not touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from envsynth.models import Criterion, World
from envsynth.runtime.contract import JSON
from envsynth.runtime.sealed import SealedDatabase
from envsynth.runtime.worlds.episode import WorldEpisode
from envsynth.runtime.worlds.grading import WorldDatabase
from envsynth.runtime.worlds.sqltext import tokens

__all__ = ["Brief", "Case", "Rows", "Turn", "case_of", "policies_of", "world_case"]

MAX_ROWS = 40
"""Rows of one evidence query that a judge sees."""
MAX_CELL = 400
"""Characters of one of their values."""
_WITHHELD = frozenset({"REFERENCE_FILES", "TESTS", "CONTROLS"})
"""Tables of a workspace's episode that tell of the reference, or of how it is graded."""
_RUN = "run"


class Turn(NamedTuple):
    """One call."""

    turn: int
    """1, 2, ..."""
    tool: str
    arguments: JSON
    ok: bool
    result: JSON
    error: str


class Rows(NamedTuple):
    """What a query gives."""

    columns: tuple[str, ...]
    """Each name once."""
    rows: tuple[tuple[JSON, ...], ...]
    more: int = 0
    """Rows that are left out."""
    withheld: str = ""
    """Why nothing is shown; empty where something is."""

    def has(self, row: int, column: str) -> bool:
        """Whether there is such a cell; rows are counted from 1."""
        return 1 <= row <= len(self.rows) and column in self.columns


class Case(NamedTuple):
    """One episode, as a judge may see it."""

    task: str
    """Id, for messages; a judge is not told."""
    instruction: str
    tools: tuple[JSON, ...]
    """Name, description and JSON Schema parameters of each tool, as the agent saw them."""
    policies: Mapping[str, str]
    """Pages that an agent can read, by name."""
    trace: tuple[Turn, ...]
    answer: Mapping[str, JSON]
    """What was handed in, by key; long texts are cut."""
    evidence: Mapping[str, Rows]
    """By criterion, what its evidence query gives."""
    gate: float
    """Of the grade: 0 for what is no valid transcript, or went over its budget."""

    @property
    def tables(self) -> dict[str, Rows]:
        """Everything that a score may point at besides turns: `run`, `answer`, and the evidence of each criterion."""
        refused = sum(not turn.ok for turn in self.trace)
        run = Rows(("calls", "refused", "handed_in"), ((len(self.trace), refused, len(self.answer)),))
        answer = Rows(("key", "value"), tuple(self.answer.items()))
        return {**self.evidence, _RUN: run, "answer": answer}


class Brief(NamedTuple):
    """What is known of an episode besides its database."""

    task: str
    """Id, for messages."""
    instruction: str
    """What the agent was told."""
    tools: Sequence[JSON]
    """As `Episode.tools` gives them."""
    policies: Mapping[str, str]
    """Pages that the agent could read."""
    gate: float
    """Of the episode's grade."""


def case_of(database: SealedDatabase, criteria: Iterable[Criterion], brief: Brief) -> Case:
    """The case of a finished episode of either kind.

    Args:
        database: of the episode, sealed; see `runtime.grading.open_database` and `runtime.worlds.grading`.
        criteria: of the task; their evidence queries are run.
        brief: the rest.

    Raises:
        SandboxError: a query cannot be evaluated.
    """
    where = f"{brief.task}: what a judge sees"
    has_answer = isinstance(database, WorldDatabase)  # a workspace hands in what it is
    rows = database.rows("SELECT turn, tool, arguments, ok, result, error FROM trace ORDER BY turn", where=where)
    trace = tuple(Turn(r[0], r[1], _parsed(r[2]), bool(r[3]), _parsed(r[4]), r[5] or "") for r in rows)
    answers = database.rows("SELECT key, value FROM answer ORDER BY key", where=where) if has_answer else []
    evidence = {line.id: _rows(database, line, brief.task) for line in criteria}
    policies = dict(brief.policies)
    answer = {key: _cut(value) for key, value in answers}
    return Case(
        brief.task, brief.instruction, tuple(brief.tools), policies, trace, answer, evidence, brief.gate
    )  # fmt: skip


def world_case(
    episode: WorldEpisode, criteria: Iterable[Criterion], *, policies: Mapping[str, str], gate: float
) -> Case:
    """The case of an episode in a world, from a copy of its present state; the episode goes on.

    Args:
        episode: played.
        criteria: of its task.
        policies: as `policies_of` gives them.
        gate: of its grade.

    Raises:
        SandboxError: a query cannot be evaluated.
    """
    database = WorldDatabase(episode.ending())
    try:
        database.seal()
        brief = Brief(episode.task.id, episode.task.instruction, episode.tools(), policies, gate)
        return case_of(database, criteria, brief)
    finally:
        database.close()


def policies_of(world: World) -> dict[str, str]:
    """The pages that state a world's rules, by `table/page`: visible rows of the tables that invariants name."""
    stated = {one.stated_in.partition("/")[0] for one in world.invariants if one.stated_in}
    found: dict[str, str] = {}
    for table in world.tables:
        if table.name in stated and not table.hidden:
            places = [place for place, column in enumerate(table.columns) if not column.hidden]
            for row in world.rows.get(table.name, ()):
                said = [str(row[place]) for place in places if row[place] is not None]
                found[f"{table.name}/{said[0] if said else len(found)}"] = "\n".join(said)
    return found


def _rows(database: SealedDatabase, line: Criterion, task: str) -> Rows:
    if _names(line.evidence) & _WITHHELD:
        return Rows((), (), withheld="it would tell how the task is graded")
    rows = database.rows(line.evidence, where=f"{task}: evidence of criterion {line.id}")
    columns = tuple(_unique(database.names))
    shown = tuple(tuple(_cut(value) for value in row) for row in rows[:MAX_ROWS])
    return Rows(columns, shown, more=max(0, len(rows) - MAX_ROWS))


def _names(sql: str) -> frozenset[str]:
    """Everything in a query that could name a table; SQLite takes a text in quotes for a name where it wants one."""
    return frozenset(token.text.strip("'\"`[]").upper() for token in tokens(sql))


def _unique(names: Iterable[str]) -> Iterator[str]:
    taken: set[str] = set()
    for name in names:
        number, own = 1, name
        while own in taken:
            number += 1
            own = f"{name}_{number}"
        taken.add(own)
        yield own


def _cut(value: JSON) -> JSON:
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, str) and len(value) > MAX_CELL:
        return f"{value[:MAX_CELL]}… ({len(value) - MAX_CELL} more characters)"
    return value


def _parsed(text: str) -> JSON:
    try:
        return json.loads(text)
    except ValueError:
        return text
