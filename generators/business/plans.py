"""Plans: goals with targets, solved by execution before anything is written about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.generators.business import speech
from envsynth.generators.business.blueprint import Goal
from envsynth.generators.business.facts import find_path
from envsynth.generators.business.referring import Referral, refer
from envsynth.generators.business.scene import Scene, Values, braces
from envsynth.generators.business.stage import Played, Stage
from envsynth.models import Table, ToolCall
from envsynth.runtime.worlds.states import TableDiff

LEVELS = (1, 2, 3, 4, 5)
GOALS = {1: (1, 1), 2: (1, 2), 3: (2, 3), 4: (3, 4), 5: (4, 14)}
"""Fewest and most sub-goals by level."""
CALLS = (20, 60)
"""Calls of a reference of level 5."""
MAX_NEAR = 2
"""Plausible wrong targets that are kept of each sub-goal."""
_ROUNDS = 3
"""How often goals of a process are asked for again, with other targets; a long task then turns to other processes."""
_TARGETS = 14
"""Targets that are tried of one goal."""


class Unfit(Exception):
    """Nothing can be made of what was drawn. That is no fault: something else is drawn."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        """Short, for the funnel."""
        self.detail = detail
        """For people."""


class SubGoal(NamedTuple):
    """One goal with its target, as it was played alone."""

    goal: Goal
    values: Values
    told: int
    """Vagueness of its wording."""
    wording: str
    referrals: Mapping[str, Referral]
    """By variable of the goal's `about`."""
    reads: tuple[ToolCall, ...]
    writes: tuple[ToolCall, ...]
    verify: tuple[ToolCall, ...]
    """The call that shows the result, where its arguments can be known; else none."""
    near: tuple[Values, ...]
    """Variables of plausible wrong targets."""
    change: Mapping[str, TableDiff]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The whole path, in order."""
        return (*self.reads, *self.writes, *self.verify)

    @property
    def traps(self) -> int:
        """What can be fallen into: a rule that says no, a number to work out, wrong targets nearby."""
        return int(self.goal.refuses) + len(self.goal.computed) + int(bool(self.near)) + len(self.goal.forbidden)


class Plan(NamedTuple):
    """Sub-goals that do not touch each other, and the reference that reaches them all."""

    level: int
    vagueness: int
    process: str
    parts: tuple[SubGoal, ...]
    played: Played
    """The reference."""
    change: Mapping[str, TableDiff]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The reference's calls."""
        return self.played.calls

    @property
    def writes(self) -> tuple[ToolCall, ...]:
        """All mutations, in order."""
        return tuple(call for part in self.parts for call in part.writes)

    @property
    def difficulty(self) -> int:
        """Sub-goals × look-ups × distractors × traps."""
        look_ups = sum(len(part.reads) for part in self.parts)
        near = sum(len(part.near) for part in self.parts)
        return len(self.parts) * max(1, look_ups) * (1 + near) * (1 + sum(part.traps for part in self.parts))


class Planner:
    """Makes plans in one scene."""

    def __init__(self, scene: Scene, stage: Stage, rng: Random) -> None:
        self._scene = scene
        self._stage = stage
        self._rng = rng
        self.thrown: list[Unfit] = []
        """What was drawn in vain."""

    def plan(self, level: int, vagueness: int, process: str) -> Plan:
        """A plan of a level, worded as vaguely, or as vaguely as the process has words for.

        Args:
            level: 1 to 5.
            vagueness: 0 to 3.
            process: one of the scene's.

        Raises:
            Unfit: nothing of the process fits.
        """
        least, most = GOALS[level]
        vagueness = self._worded(vagueness, process)
        wanted = self._rng.randint(least, most) if level < 5 else most
        parts: list[SubGoal] = []
        for goal in self._goals(level, vagueness, process):
            if len(parts) == wanted or (level == 5 and len(self._reference(parts)) >= CALLS[0]):
                break
            found = self._part(goal, vagueness, parts)
            if found is not None:
                parts.append(found)
        if len(parts) < least or not any(part.told == vagueness for part in parts):
            why = f"; last, {self.thrown[-1]}" if self.thrown else ""
            raise Unfit("too_few_goals", f"{len(parts)} of {least} at vagueness {vagueness}{why}")
        return self._joined(level, vagueness, process, parts)

    def _worded(self, vagueness: int, process: str) -> int:
        """The vaguest level up to the wanted one at which a goal of the process is worded; else the nearest above."""
        goals = (self._scene.goals[name] for name in self._scene.processes[process] if name in self._scene.goals)
        levels = {level for goal in goals for level in goal.says}
        below = [level for level in levels if level <= vagueness]
        return max(below) if below else min(levels, default=vagueness)

    def _goals(self, level: int, vagueness: int, process: str) -> Iterator[Goal]:
        """Goals in the order in which they are tried: those worded as vaguely first, each again at high levels."""
        names = [name for name in self._scene.processes[process] if name in self._scene.goals]
        goals = [self._scene.goals[name] for name in names]
        if level == 1:
            goals = [goal for goal in goals if not goal.refuses] or goals
        fitting = [goal for goal in goals if vagueness in goal.says]
        first = self._shuffled(fitting)
        if level == 1 or not first:
            yield from first
            return
        yield first[0]
        others = [goal for goal in goals if _told(goal, vagueness) is not None and goal is not first[0]]
        for _ in range(_ROUNDS):
            yield from self._shuffled(others)
            yield first[0]
        if level == LEVELS[-1]:
            rest = [goal for name, goal in self._scene.goals.items() if name not in names]
            for _ in range(_ROUNDS):
                yield from self._shuffled([goal for goal in rest if _told(goal, vagueness) is not None])

    def _shuffled(self, goals: Sequence[Goal]) -> list[Goal]:
        """Weighted order without repetition."""
        return sorted(goals, key=lambda goal: -(self._rng.random() ** (1 / goal.weight)))

    def _part(self, goal: Goal, vagueness: int, others: Sequence[SubGoal]) -> SubGoal | None:
        rows = self._scene.reader.targets(goal)
        if not rows:
            self.thrown.append(Unfit("no_target", goal.id))
        for values in self._rng.sample(rows, min(_TARGETS, len(rows))):
            if any(_same_target(goal, values, other) for other in others):
                continue
            try:
                found = self.solved(goal, values, vagueness)
            except Unfit as unfit:
                self.thrown.append(unfit)
                continue
            if not any(_touch(found.change, other.change, self._scene.tables) for other in others):
                return found
        return None

    def solved(self, goal: Goal, values: Values, vagueness: int) -> SubGoal:
        """The goal for one target, played alone.

        Raises:
            Unfit: it cannot be said, found or done.
        """
        scene, told = self._scene, _told(goal, vagueness)
        assert told is not None
        for name, expression in goal.computed.items():
            if (value := scene.reader.value(expression, values)) != values[name]:
                raise Unfit("computed_differs", f"{goal.id}: {name} is {values[name]}, and is computed as {value}")
        wording = self._rng.choice(goal.says[told])
        referrals = {}
        for name, entity in goal.about.items():
            found = refer(scene, scene.entities[entity], values[name], told)
            if found is None:
                raise Unfit("not_referable", f"{goal.id}: {entity} {values[name]}")
            referrals[name] = found
        path = find_path(scene, self._stage, goal, values, said(wording, values, referrals))
        if path.unknown:
            raise Unfit("fact_not_found", f"{goal.id} at vagueness {told}: {', '.join(path.unknown)}")
        if path.unread and (told or goal.refuses):
            raise Unfit("look_up_not_possible", f"{goal.id} at vagueness {told}: {', '.join(path.unread)}")
        writes = tuple(scene.call(step, values) for step in goal.writes)
        played = self._stage.play(writes)
        fault = played.refusal or next(iter(self._stage.violated(played)), "")
        if fault:
            raise Unfit("plan_refused" if played.refusal else "invariant_broken", f"{goal.id}: {fault}")
        change = self._stage.changes(played)
        if not change:
            raise Unfit("plan_changes_nothing", goal.id)
        near = scene.reader.rows(goal.near, values, limit=MAX_NEAR) if goal.near else []
        return SubGoal(
            goal, values, told, wording, referrals, path.reads, writes,
            (scene.call(goal.verify, values),) if path.verifiable else (),
            tuple({**values, **one} for one in near), change,
        )  # fmt: skip

    def _joined(self, level: int, vagueness: int, process: str, parts: Sequence[SubGoal]) -> Plan:
        """The parts as one reference. Raises Unfit where together they do not come to what each does alone."""
        calls = self._reference(parts)
        if level == 5 and not CALLS[0] <= len(calls) <= CALLS[1]:
            raise Unfit("not_long_enough", f"{len(calls)} calls")
        played = self._stage.play(calls)
        if played.refusal:
            raise Unfit("parts_in_the_way", played.refusal)
        broken = self._stage.violated(played)
        if broken:
            raise Unfit("invariant_broken", f"together: {broken[0]}")
        change = self._stage.changes(played)
        if _sizes([change]) != _sizes([part.change for part in parts]):
            raise Unfit("parts_in_the_way", "together they change other rows than alone")
        return Plan(level, vagueness, process, tuple(parts), played, change)

    def _reference(self, parts: Sequence[SubGoal]) -> list[ToolCall]:
        """The paths of all parts, one after the other; a page of the manual is read once."""
        page = self._scene.rename("read_page")
        calls: list[ToolCall] = []
        for part in parts:
            calls += [call for call in part.reads if call not in calls or call.tool != page]
            calls += [*part.writes, *part.verify]
        return calls


def said(wording: str, values: Values, referrals: Mapping[str, Referral]) -> set[JsonValue]:
    """Values that a wording tells, those of its referring expressions included."""
    found: set[JsonValue] = set()
    for name in braces(wording):
        if name in referrals:
            found |= referrals[name].said
        elif name in values:
            found.add(values[name])
    return found


def shown(name: str, value: JsonValue, scene: Scene) -> str:
    """A variable as a person says it."""
    if isinstance(value, int) and not isinstance(value, bool) and name.endswith("cents"):
        return scene.company.country.money(value)
    if isinstance(value, str) and speech.is_day(value):
        return speech.day(value)
    return speech.words(value)


def _told(goal: Goal, vagueness: int) -> int | None:
    """The vaguest of its wordings that is not vaguer than what is wanted."""
    return max((level for level in goal.says if level <= vagueness), default=None)


def _same_target(goal: Goal, values: Values, other: SubGoal) -> bool:
    """Whether two goals speak of one thing."""
    mine = {(entity, values[name]) for name, entity in goal.about.items()}
    theirs = {(entity, other.values[name]) for name, entity in other.goal.about.items()}
    return bool(mine & theirs)


def _touch(one: Mapping[str, TableDiff], other: Mapping[str, TableDiff], tables: Mapping[str, Table]) -> bool:
    """Whether two changes concern one row, or come out differently in the other order."""
    common = one.keys() & other.keys()
    if any(_rows(one[table]) & _rows(other[table]) for table in common):
        return True
    grown = {table for table in common if one[table].added and other[table].added}
    return bool(grown & (_pointed_at(one, tables) | _pointed_at(other, tables)))


def _pointed_at(change: Mapping[str, TableDiff], tables: Mapping[str, Table]) -> set[str]:
    """Tables whose new rows are pointed at by others of the change: their numbers depend on what came before."""
    found: set[str] = set()
    for table, diff in change.items():
        for column in tables[table].columns:
            parent, _, key = column.references.partition(".")
            new = {row.get(key) for row in change[parent].added} if parent in change else set()
            if new & {row.get(column.name) for row in diff.added}:
                found.add(parent)
    return found


def _rows(diff: TableDiff) -> set[tuple[JsonValue, ...]]:
    """What names the rows that were there before."""
    return {change.key for change in diff.changed} | {tuple(row.values()) for row in diff.removed}


def _sizes(changes: Sequence[Mapping[str, TableDiff]]) -> dict[str, list[int]]:
    """Rows added, changed and removed, by table."""
    found: dict[str, list[int]] = {}
    for change in changes:
        for table, diff in change.items():
            total = found.setdefault(table, [0, 0, 0])
            for place, size in enumerate((len(diff.added), len(diff.changed), len(diff.removed))):
                total[place] += size
    return found
