"""The read-back: a pytest file that asserts the end state through the world's read tools alone.

It is the second instrument beside the checks in SQL: written from what read tools answer, not from tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from pprint import pformat
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from envsynth.generators.business.changes import MIN_TEXT
from envsynth.generators.business.panel import Claim, Graded, Panel
from envsynth.generators.business.plans import Plan, Unfit
from envsynth.generators.business.scene import Scene
from envsynth.generators.business.stage import Played, Stage
from envsynth.models import ColumnRole, Tool, ToolCall, ToolKind, World
from envsynth.models.base import canonical_json
from envsynth.runtime.contract import ToolResult

_LARGE = 12_000
"""Characters of an answer that is too long to be asserted."""


class Look(NamedTuple):
    """One read, and what it must show."""

    call: ToolCall
    expected: JsonValue
    """Without the columns that are left out."""
    left_out: tuple[str, ...]
    """Columns that right trajectories may leave with other values: free texts, numbers given by the system."""
    written: tuple[str, ...]
    """Free texts among them, all of which say something after every right trajectory."""


def read_back(scene: Scene, stage: Stage, plan: Plan, panel: Panel) -> str:
    """The text of the pytest file.

    Args:
        scene: the world.
        stage: on which states are looked at.
        plan: what the file is about.
        panel: played; the file must tell its right trajectories from its wrong ones.

    Raises:
        Unfit: no read tool shows what some wrong trajectory did.
    """
    right = [one for one in panel.lines if one.line.claim is Claim.RIGHT]
    wrong = [one for one in panel.lines if one.line.claim is not Claim.RIGHT]
    finder = Finder(scene.world, stage, right)
    first = list(_first_looks(scene, plan))
    finder.prepare(first)
    looks = [look for call in first if (look := finder.look(call)) is not None]
    missed = [one for one in wrong if not one.same and finder.passes(looks, one)]
    for one in missed:
        if not finder.passes(looks, one):
            continue
        found = finder.telling(one, list(_candidates(scene, stage, plan, one)))
        if found is None:
            changed = ", ".join(sorted(stage.changes(one.played))) or "nothing"
            raise Unfit("change_not_readable", f"no read tool tells {one.line.label} ({changed}) from the reference")
        looks.append(found)
    return text_of(looks)


class Ended(Protocol):
    """A trajectory that was played."""

    @property
    def played(self) -> Played:
        """What it came to."""


class Finder:
    """Compares what reads show after right trajectories and after a wrong one."""

    def __init__(self, world: World, stage: Stage, right: Sequence[Ended]) -> None:
        """A finder.

        Args:
            world: whose columns say what is compared.
            stage: of the world.
            right: trajectories that must pass.
        """
        self._stage = stage
        self._right = list(dict.fromkeys(one.played.ending.final for one in right))
        self._given = _given_columns(world)
        self._texts = _of_roles(world, ColumnRole.SEMANTIC) - _of_roles(world, ColumnRole.HARD, ColumnRole.KEY)
        self._answers: dict[bytes, dict[str, ToolResult]] = {}

    def prepare(self, calls: Sequence[ToolCall]) -> None:
        """Make calls in every right state, all in one go."""
        for image in self._right:
            self._look(image, calls)

    def look(self, call: ToolCall) -> Look | None:
        """A read with what every right trajectory lets it show; None where that differs, or is too long."""
        answers = [self._answer(call, image) for image in self._right]
        if not all(answer.ok for answer in answers):
            return None
        results = [answer.result for answer in answers]
        columns = {name for result in results for row in _rows(result) for name in row}
        differing = {name for name in columns if any(_column(r, name) != _column(results[0], name) for r in results)}
        left_out = tuple(sorted(columns & self._given | differing))
        kept = [_kept(result, left_out) for result in results]
        if any(one != kept[0] for one in kept) or len(canonical_json(kept[0])) > _LARGE:
            return None
        written = tuple(name for name in left_out if name in self._texts and all(_says(r, name) for r in results))
        return Look(call, kept[0], left_out, written)

    def passes(self, looks: Sequence[Look], one: Ended) -> bool:
        """Whether a trajectory's end shows all that is expected."""
        self._look(one.played.ending.final, [look.call for look in looks])
        return all(self._shows(look, one.played.ending.final) for look in looks)

    def telling(self, one: Ended, calls: Sequence[ToolCall]) -> Look | None:
        """The first of some reads that shows something else after a wrong trajectory."""
        wrong = one.played.ending.final
        self._look(self._right[0], calls)
        self._look(wrong, calls)
        for call in calls:
            if self._answer(call, wrong) == self._answer(call, self._right[0]):
                continue
            look = self.look(call)
            if look is not None and not self._shows(look, one.played.ending.final):
                return look
        return None

    def _shows(self, look: Look, image: bytes) -> bool:
        answer = self._answer(look.call, image)
        said = all(_says(answer.result, name) for name in look.written)
        return answer.ok and said and _kept(answer.result, look.left_out) == look.expected

    def _answer(self, call: ToolCall, image: bytes) -> ToolResult:
        return self._look(image, [call])[call.to_json()]

    def _look(self, image: bytes, calls: Sequence[ToolCall]) -> dict[str, ToolResult]:
        known = self._answers.setdefault(image, {})
        new = {text: call for call in calls if (text := call.to_json()) not in known}
        if new:
            known.update(zip(new, self._stage.look(image, new.values()), strict=True))
        return known


def _given_columns(world: World) -> set[str]:
    """Names of columns that no comparison counts, wherever they stand."""
    return _of_roles(world, ColumnRole.SEMANTIC, ColumnRole.EXEMPT) - _of_roles(world, ColumnRole.HARD, ColumnRole.KEY)


def _of_roles(world: World, *roles: ColumnRole) -> set[str]:
    return {column.name for table in world.tables for column in table.columns if column.role in roles}


def _first_looks(scene: Scene, plan: Plan) -> Iterator[ToolCall]:
    """What shows the result of each part, and of what resembles its target."""
    page = scene.rename("read_page")
    seen: set[str] = set()
    for part in plan.parts:
        near = [scene.call(part.goal.verify, one) for one in part.near]
        for call in (scene.call(part.goal.verify, part.values), *part.reads, *near):
            if call.tool != page and call.to_json() not in seen:
                seen.add(call.to_json())
                yield call


def _candidates(scene: Scene, stage: Stage, plan: Plan, one: Graded) -> Iterator[ToolCall]:
    """Reads about what a trajectory changed, or about what that belongs to."""
    values: dict[str, set[JsonValue]] = {}
    changes = stage.changes(one.played)
    for table, diff in changes.items():
        rows = [*diff.added, *diff.removed, *(row for change in diff.changed for row in (change.before, change.after))]
        for row in rows:
            _note(scene, table, row, values)
    for part in plan.parts:
        for name, value in part.values.items():
            values.setdefault(name, set()).add(value)
    pool = sorted({value for found in values.values() for value in found if value is not None}, key=str)
    for tool in scene.world.tools:
        if tool.kind is ToolKind.READ and tool.name != scene.rename("read_page"):
            yield from calls_of(tool, pool)


def _note(
    scene: Scene, table: str, row: Mapping[str, JsonValue], values: dict[str, set[JsonValue]], depth: int = 2
) -> None:
    """Values of a row, and of the rows that it points at."""
    for column in scene.tables[table].columns:
        value = row.get(column.name)
        values.setdefault(column.name, set()).add(value)
        if column.references and value is not None and depth:
            parent, _, key = column.references.partition(".")
            names = [one.name for one in scene.tables[parent].columns]
            quoted = ", ".join(f'"{name}"' for name in names)
            found = scene.reader.dressed(f'SELECT {quoted} FROM "{parent}" WHERE "{key}" = :key', {"key": value})
            for line in found:
                _note(scene, parent, dict(zip(names, line, strict=True)), values, depth - 1)


def calls_of(tool: Tool, pool: Sequence[JsonValue]) -> Iterator[ToolCall]:
    """Calls of a tool with at most one parameter to be chosen."""
    needed = [one for one in tool.parameters if one.required]
    if not needed:
        yield ToolCall(tool=tool.name)
    elif len(needed) == 1:
        wanted = int if needed[0].type == "integer" else str
        for value in needed[0].enum or [value for value in pool if isinstance(value, wanted)]:
            yield ToolCall(tool=tool.name, arguments={needed[0].name: value})


def _rows(result: JsonValue) -> list[Mapping[str, JsonValue]]:
    rows = result if isinstance(result, list) else [result]
    return [row for row in rows if isinstance(row, dict)]


def _says(result: JsonValue, name: str) -> bool:
    """Whether every text of a column says something; an empty place is none."""
    texts = [row[name] for row in _rows(result) if row.get(name) is not None]
    return bool(texts) and all(isinstance(text, str) and len(text.strip()) >= MIN_TEXT for text in texts)


def _column(result: JsonValue, name: str) -> list[str]:
    """Values of a column, in no order."""
    return sorted(canonical_json(row.get(name)) for row in _rows(result))


def _kept(result: JsonValue, left_out: Sequence[str]) -> JsonValue:
    """A result as it is compared: rows in no order, without some columns."""
    if isinstance(result, list):
        rows: list[JsonValue] = [_without(row, left_out) for row in result]
        return sorted(rows, key=canonical_json)
    return _without(result, left_out)


def _without(row: JsonValue, left_out: Sequence[str]) -> JsonValue:
    return {name: value for name, value in row.items() if name not in left_out} if isinstance(row, dict) else row


def text_of(looks: Sequence[Look]) -> str:
    """The file: one test a look."""
    head = Path(__file__).with_name("readback.template").read_text("utf-8")
    return head + "".join(f"\n\n{_test(number, look)}" for number, look in enumerate(looks, 1))


def _test(number: int, look: Look) -> str:
    arguments = "".join(f", {name}={value!r}" for name, value in look.call.arguments.items())
    leave = f", leave={look.left_out!r}" if look.left_out else ""
    expected = pformat(look.expected, width=110, sort_dicts=False).replace("\n", "\n    ")
    lines = [
        f"def test_{number}_{look.call.tool}(call):",
        f"    seen = call({look.call.tool!r}{arguments})",
        f"    assert rows(seen{leave}) == rows(",
        f"    {expected}",
        "    )",
        *(f"    assert all(len(text) >= {MIN_TEXT} for text in texts(seen, {name!r}))" for name in look.written),
    ]
    return "\n".join(lines) + "\n"
