"""Trajectories step by step: what was called, what came back, and what it did to the state.

Trajectories of one task mostly begin alike, so their steps are kept as a tree: each step once, with the one before it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from envsynth.errors import SandboxError, boundary
from envsynth.models.base import canonical_json
from envsynth.runtime.contract import Grade, ToolResult
from envsynth.runtime.worlds.episode import WorldEpisode
from envsynth.runtime.worlds.states import TableDiff, state_diff

__all__ = ["Call", "Played", "Steps"]

LONGEST = 4_000
"""Characters kept of the JSON of one value."""
MOST_ROWS = 40
"""Rows shown of what one call did to one table."""
Document = dict[str, Any]


class Call(NamedTuple):
    """One call of a trajectory, with what is recorded of its answer."""

    tool: str
    """Empty for an action that is no call."""
    arguments: Any
    answer: ToolResult | None = None
    """As recorded; None: nothing is."""


class Played(NamedTuple):
    """Where a trajectory ended."""

    leaf: int
    """Its last step; -1: it has none."""
    grade: Grade | None
    """Of the end, where it was played for this report."""
    trouble: str
    """Why it could not be played; empty when it could."""
    differs: bool
    """Whether an answer was another than is recorded."""


class Steps:
    """The steps of one task's trajectories, each once."""

    def __init__(self, episode: WorldEpisode | None) -> None:
        """Without any steps.

        Args:
            episode: where trajectories are played; None: only what is recorded of them is shown.
        """
        self._episode = episode
        self._tables = () if episode is None else [_compared(table) for table in episode.task.model.document["tables"]]
        self._places: dict[tuple[object, ...], int] = {}
        self._values: dict[str, int] = {}
        self._nodes: list[Document] = []
        self.texts: list[Any] = []
        """Arguments, results and changes, each once; nodes name them by place."""

    @property
    def nodes(self) -> list[Document]:
        """The steps: `p` the one before (-1: none), `t` tool, `a` arguments, `ok`, `r` answer, `d` changes."""
        return self._nodes

    def add(self, calls: Sequence[Call]) -> Played:
        """Take the steps of a trajectory in."""
        if self._episode is None:
            return self._recorded(calls)
        self._episode.reset()
        leaf, differs = -1, False
        try:
            with boundary(SandboxError, "the trajectory cannot be played", where=self._episode.task.id):
                for call in calls:
                    leaf, answer = self._step(self._episode, leaf, call)
                    differs = differs or (call.answer is not None and not _alike(call.answer, answer))
                    if answer.done:
                        break
            return Played(leaf, self._episode.grade(), "", differs)
        except SandboxError as exc:
            return Played(leaf, None, str(exc), differs)

    def _recorded(self, calls: Sequence[Call]) -> Played:
        leaf = -1
        for call in calls:
            answer = call.answer
            key = (leaf, call.tool, canonical_json(call.arguments), None if answer is None else canonical_json(answer))
            place = self._places.get(key)
            leaf = self._node(key, leaf, call, answer, None) if place is None else place
        return Played(leaf, None, "", False)

    def _step(self, episode: WorldEpisode, parent: int, call: Call) -> tuple[int, ToolResult]:
        key = (parent, call.tool, canonical_json(call.arguments))
        known = self._places.get(key)
        writes = frozenset() if known is not None else episode.task.model.writes.get(call.tool, frozenset())
        before, count = (episode.image(), episode.changes) if writes else (b"", 0)
        answer = episode.call(call.tool, call.arguments) if call.tool else episode.malformed(_text_of(call.arguments))
        if known is not None:
            return known, answer
        changes = self._changes(before, episode.image(), writes) if writes and episode.changes != count else []
        return self._node(key, parent, call, answer, changes), answer

    def _node(
        self,
        key: tuple[object, ...],
        parent: int,
        call: Call,
        answer: ToolResult | None,
        changes: list[Document] | None,
    ) -> int:
        node: Document = {"p": parent, "t": call.tool, "a": self._kept(call.arguments)}
        if answer is not None:
            node |= {"ok": answer.ok, "r": self._kept(answer.result if answer.ok else answer.error)}
        if changes is not None:
            node["d"] = self._kept(changes, cut=False) if changes else -1
        self._places[key] = len(self._nodes)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _kept(self, value: Any, *, cut: bool = True) -> int:
        """Place of a value among the texts; numbers that JSON has not, such as infinity, as their names."""
        value = json.loads(json.dumps(value), parse_constant=str)
        text = canonical_json(value)
        if cut and len(text) > LONGEST:
            value = {"$cut": text[:LONGEST], "$characters": len(text)}
            text = canonical_json(value)
        place = self._values.setdefault(text, len(self.texts))
        if place == len(self.texts):
            self.texts.append(value)
        return place

    def _changes(self, before: bytes, after: bytes, written: frozenset[str]) -> list[Document]:
        """What lies between two states in the tables that may differ; columns given by the system included."""
        tables = [table for table in self._tables if table["name"] in written]
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(after)
            connection.execute("ATTACH ':memory:' AS initial")
            connection.deserialize(before, name="initial")
            found = state_diff(connection, tables)
        return [_change(table, found[table["name"]]) for table in tables if table["name"] in found]


def _compared(table: Mapping[str, Any]) -> Document:
    """The table, with every column compared."""
    columns = [{**one, "role": "hard" if one["role"] == "exempt" else one["role"]} for one in table["columns"]]
    return {**table, "columns": columns}


def _change(table: Mapping[str, Any], diff: TableDiff) -> Document:
    hidden = [column["name"] for column in table["columns"] if column["hidden"]]
    changed = [
        {
            "key": list(change.key),
            "cells": {
                name: [change.before[name], change.after[name]] for name in change.after if name in change.columns
            },
        }
        for change in diff.changed
    ]
    most = max(len(diff.added), len(diff.removed), len(changed))
    return {
        "table": table["name"], "hidden": table["hidden"], "columns": hidden, "added": diff.added[:MOST_ROWS],
        "removed": diff.removed[:MOST_ROWS], "changed": changed[:MOST_ROWS], "more": max(0, most - MOST_ROWS),
    }  # fmt: skip


def _alike(one: ToolResult, other: ToolResult) -> bool:
    return canonical_json([one.ok, one.result, one.error]) == canonical_json([other.ok, other.result, other.error])


def _text_of(arguments: Any) -> str:
    """What was written instead of a call, as the trace keeps it."""
    text = arguments.get("text", "") if isinstance(arguments, dict) else arguments
    return text if isinstance(text, str) else canonical_json(text)
