"""What a world task comes to when it is carried out, whatever its story: its tools, and what the reference changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envsynth.models import Table, World, digest_of
from envsynth.models.base import canonical_json
from envsynth.runtime.worlds.episode import WorldEpisode, WorldTask
from envsynth.runtime.worlds.grading import Ending, WorldDatabase
from envsynth.runtime.worlds.states import Row, TableDiff
from envsynth.sketches import Fingerprint, sketch
from envsynth.validators.worlds.replayer import Call

_TOOLS = 16
"""Hexadecimal digits of the digest of a tool set."""


def surface(world: World, task: WorldTask, calls: Sequence[Call]) -> Fingerprint:
    """The executable surface of a task; two tasks with nearly the same one are nearly the same task.

    Args:
        world: with its tools.
        task: of the world.
        calls: of the reference.
    """
    tools = digest_of(
        sorted([tool.name, tool.kind, sorted(one.name for one in tool.parameters)] for tool in world.tools)
    )
    episode = WorldEpisode(task)
    try:
        episode.reset()
        for call in calls:
            episode.call(*call)
        changes = sorted(_changes(world, episode.ending()))
    finally:
        episode.close()
    return Fingerprint(digest_of([tools, changes]), (tools[:_TOOLS],), sketch(changes))


def _changes(world: World, ending: Ending) -> Iterator[str]:
    """Every changed row and every part of the answer, as JSON; free texts are left out."""
    database = WorldDatabase(ending)
    try:
        diffs = database.diff()
    finally:
        database.close()
    for table in world.tables:
        if table.name in diffs and not table.tolerated:
            yield from (canonical_json([table.name, *line]) for line in _rows(table, diffs[table.name]))
    yield from (canonical_json(["", name, value]) for name, value in sorted(ending.answer.items()))


def _rows(table: Table, diff: TableDiff) -> Iterator[tuple[str, object]]:
    worded = {column.name for column in table.columns if column.role == "semantic"}

    def counted(row: Row) -> Row:
        return {name: value for name, value in row.items() if name not in worded}

    yield from (("added", counted(row)) for row in diff.added)
    yield from (("removed", counted(row)) for row in diff.removed)
    for change in diff.changed:
        after = {name: value for name, value in change.after.items() if name in change.columns}
        yield "changed", [list(change.key), counted(after)]
