"""Where calls are made from chosen states, once as things are and once with hidden rows changed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from envsynth.models import Candidate
from envsynth.runtime.contract import JSON, ToolResult
from envsynth.runtime.worlds.authority import open_database
from envsynth.runtime.worlds.episode import Transcript, WorldEpisode, WorldSnapshot
from envsynth.validators.world_adversary.hidden_rows import STEPS, HiddenRow, altered
from envsynth.validators.worlds.opened import Opened, task_of
from envsynth.validators.worlds.target import Call

_MANY = 12
"""Values of one column that are kept as secrets."""


class Moment(NamedTuple):
    """A state, and the calls that led to it."""

    image: bytes
    transcript: Transcript

    def with_other(self, rows: Iterable[HiddenRow], step: int) -> Moment:
        """The same moment in a world whose hidden rows are others."""
        return Moment(altered(self.image, rows, step), self.transcript)


Cells = dict[tuple[str, int], tuple[JSON, ...]]
"""Rows that are visible, by table and number."""


class Shown(NamedTuple):
    """What can be seen once a call has been made."""

    answer: str
    cells: Cells


class Bench:
    """One episode that is put into moments."""

    def __init__(self, candidate: Candidate, open_: Opened) -> None:
        self.world = open_.world
        self._model = open_.model
        self._task = task_of(candidate, open_.model)
        self._episode = WorldEpisode(self._task)
        self._tables = {
            table.name: tuple(column.name for column in table.columns if not column.hidden)
            for table in open_.world.tables
            if not table.hidden and not all(column.hidden for column in table.columns)
        }
        self._watched = frozenset(self._tables)
        self._kinds = {tool.name: tool.kind for tool in open_.world.tools}

    def close(self) -> None:
        """Free the episode."""
        self._episode.close()

    def watch(self, tables: Collection[str]) -> None:
        """Look at these tables only, where no call that will be made changes any other."""
        self._watched = frozenset(tables)

    def after(self, calls: Sequence[Call]) -> Moment:
        """The moment after calls that are made from the start."""
        self._episode.reset()
        for call in calls:
            self._episode.call(*call)
        return self._moment()

    def then(self, moment: Moment, call: Call) -> Moment:
        """The moment after one more call."""
        self.answer(moment, call)
        return self._moment()

    def answer(self, moment: Moment, call: Call) -> ToolResult:
        """What a call is answered."""
        self._episode.restore(WorldSnapshot(self._task.id, moment.image, moment.transcript))
        return self._episode.call(*call)

    def answers(self, moment: Moment, calls: Iterable[Call]) -> Iterator[tuple[Call, ToolResult]]:
        """What each of many calls is answered at a moment."""
        left = 0
        for call in calls:
            if not left:
                self._episode.restore(WorldSnapshot(self._task.id, moment.image, moment.transcript))
                left = self._task.turns - len(moment.transcript.turns)
            answer = self._episode.call(*call)
            # A call that was refused has changed nothing but the number of those that are left.
            left = 0 if answer.ok or answer.done else max(0, left - 1)
            yield call, answer

    def shown(self, moment: Moment, call: Call) -> Shown:
        """What a call shows: its answer, and everything that can be read after it."""
        answer = self.answer(moment, call)
        return Shown(json.dumps(answer._asdict()), self.cells(self._episode.image()))

    def course(self, moment: Moment, calls: Sequence[Call]) -> tuple[JSON, ...]:
        """Which calls are accepted from a moment on, and what it all comes to."""
        answers, worth = self._played(moment, calls)
        return ([answer.ok for answer in answers], worth)

    def matters(self, moment: Moment, row: HiddenRow, lines: Sequence[Sequence[Call]]) -> bool:
        """Whether the course of things, from a moment on, depends on a hidden row."""
        others = [moment.with_other([row], step) for step in STEPS]
        return any(self._future(one, line) != self._future(moment, line) for line in lines for one in others)

    def changed_numbers(self, moment: Moment, call: Call) -> set[tuple[JSON, ...]]:
        """The visible numbers that a call changes: table, row, column, and both values."""
        before, after = self.cells(moment.image), self.shown(moment, call).cells
        return {
            (place[0], place[1], name, old, new)
            for place, row in before.items()
            for name, old, new in zip(self._tables[place[0]], row, after.get(place, row), strict=True)
            if old != new and isinstance(old, int | float) and isinstance(new, int | float)
        }

    def cells(self, image: bytes) -> Cells:
        """What is visible of a state, in the tables that are watched."""
        connection = open_database()
        try:
            connection.deserialize(image)
            return {
                (table, row[0]): row[1:]
                for table, columns in self._tables.items()
                if table in self._watched
                for row in connection.execute(
                    f'SELECT _rowid_, {", ".join(map(_quoted, columns))} FROM "{table}" ORDER BY _rowid_'
                )
            }
        finally:
            connection.close()

    @cached_property
    def secrets(self) -> tuple[JSON, ...]:
        """Values of hidden columns at the start, and the sums of numbers."""
        return tuple(dict.fromkeys(self._secrets()))

    def _secrets(self) -> Iterator[JSON]:
        for table in self.world.tables:
            rows = self.world.rows.get(table.name, ())
            for place, column in enumerate(table.columns):
                if (table.hidden or column.hidden) and rows:
                    values = [row[place] for row in rows if row[place] is not None]
                    yield from list(dict.fromkeys(values))[:_MANY]
                    if column.type != "text":
                        yield sum(values)

    def _future(self, moment: Moment, calls: Sequence[Call]) -> tuple[JSON, ...]:
        """What calls that change something are answered from a moment on, and what it all comes to."""
        answers, worth = self._played(moment, [call for call in calls if self._kinds.get(call[0]) != "read"])
        return ([(answer.ok, answer.result) for answer in answers], worth)

    def _played(self, moment: Moment, calls: Sequence[Call]) -> tuple[list[ToolResult], tuple[JSON, ...]]:
        self._episode.restore(WorldSnapshot(self._task.id, moment.image, moment.transcript))
        answers = [self._episode.call(*call) for call in calls]
        grade = self._episode.grade()
        return answers, (grade.outcome, grade.detail.get("utility"))

    def _moment(self) -> Moment:
        snapshot = self._episode.snapshot()
        return Moment(snapshot.image, snapshot.transcript)


def _quoted(name: str) -> str:
    return f'"{name}"'
