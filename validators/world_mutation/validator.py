"""What becomes of the mutants of a reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.judging import verdict_of
from envsynth.models import Candidate, Finding, Source, Strength, ToolKind, Verdict, VerdictStatus, World
from envsynth.protocols import Context
from envsynth.runtime.worlds.checks import diff_fault, forgiven
from envsynth.runtime.worlds.episode import WorldEpisode, WorldTask
from envsynth.runtime.worlds.grading import Ending, WorldDatabase
from envsynth.runtime.worlds.image import key_columns
from envsynth.runtime.worlds.states import Row, TableDiff
from envsynth.timing import Stopwatch
from envsynth.validators.world_mutation.loose import loose_place
from envsynth.validators.world_mutation.mutants import Mutant, mutants
from envsynth.validators.worlds.opened import opened, task_of
from envsynth.validators.worlds.replayer import Call
from envsynth.validators.worlds.target import Target

MAX_MUTANTS = 80
"""Played of one candidate; spread over its writes."""
_RIGHT = ("reference", "alternative")
_NOTHING = Finding(
    rule="nothing_compared", where="reference",
    message="it changes nothing that a comparison of states looks at and hands nothing in: what is right about its end"
    " nobody can tell; have it change a table that is not tolerated, in columns that are neither semantic nor exempt",
)  # fmt: skip
_UNDECIDED = Finding(
    rule="nothing_to_decide", where="reference",
    message="no value that its writes are given decides anything: whoever calls the right tool has solved it; have"
    " tools ask for what is to be found out",
)  # fmt: skip
_LOOSE = (
    "it got the full outcome, and {place} holds something else: a column that tools fill with what an agent decides is"
    " `hard`, in a table that is not tolerated"
)


class Fate(NamedTuple):
    """What became of a mutant."""

    outcome: float
    difference: str
    """How its end differs from every right one; empty: it comes to the same. Known where it got the full outcome."""
    loose: str = ""
    """Where another value that it was given ends and nothing compares it, as `table.column`."""


class WorldMutation:
    """Every mutant that ends in another state than all right trajectories must get less than the full outcome.

    States are compared by the roles of columns, as the check `diff` does: free texts are no difference, nor are numbers
    within a column's tolerance. So that roles forgive nothing that decides, something that is compared must change or
    be handed in, and what a write is given must not end in a column that counts as given by the system.
    """

    name = "world_mutation"
    version = "3"
    order = 44
    environment = "world"

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """FAIL where one survives, or where nothing is at stake; SKIP where outcomes are graded by a utility."""
        watch = Stopwatch()
        if candidate.verifier.utility is not None:
            finding = Finding(rule="graded_by_utility", message="another way may be as good as the reference")
            return verdict_of(self, VerdictStatus.SKIP, [finding], watch)
        open_ = opened(candidate, context)
        right = [
            tuple((call.tool, call.arguments) for call in line.calls)
            for line in candidate.panel if line.label.partition(":")[0] in _RIGHT
        ]  # fmt: skip
        target = Target(open_.world, candidate.budget.turns)
        inexact = all(check.kind != "diff" for check in candidate.verifier.checks)
        chosen = mutants(target, right[0], MAX_MUTANTS, inexact=inexact)
        field = _Field(task_of(candidate, open_.model), right)
        try:
            if not field.changes_anything:
                return verdict_of(self, VerdictStatus.FAIL, [_NOTHING], watch, strength=Strength(mutants=0, killed=0))
            fates = [(mutant, field.fate(mutant)) for mutant in chosen]
        finally:
            field.close()
        return self._judge(fates, watch, chooses=_chooses(open_.world, right[0], fates))

    def _judge(self, fates: Sequence[tuple[Mutant, Fate]], watch: Stopwatch, *, chooses: bool) -> Verdict:
        survivors = [(mutant, fate) for mutant, fate in fates if fate.outcome >= 1 and fate.difference]
        killed = sum(fate.outcome < 1 for _, fate in fates)
        findings = [
            Finding(
                rule="mutant_survived", where=f"reference, {mutant.what}",
                message=f"{mutant.kind}: the end is another one ({fate.difference}) and got the full outcome: name "
                "what must be so in the checks, or say in the panel that this way is right too (`alternative:`)",
            )
            for mutant, fate in survivors
        ]  # fmt: skip
        findings += _of_loose(fates)
        if not chooses:
            findings.append(_UNDECIDED)
        kinds: dict[str, JsonValue] = {
            kind: dict(Counter(_end(fate) for mutant, fate in fates if mutant.kind == kind))
            for kind in sorted({mutant.kind for mutant, _ in fates})
        }
        return verdict_of(
            self, VerdictStatus.FAIL if findings else VerdictStatus.PASS, findings, watch,
            strength=Strength(
                mutants=killed + len(survivors), killed=killed, equivalents=len(fates) - killed - len(survivors)
            ),
            evidence={"kinds": kinds},
        )  # fmt: skip


def _of_loose(fates: Sequence[tuple[Mutant, Fate]]) -> list[Finding]:
    """Calls that must be made and may be given other values; one that need not be made decides nothing either way."""
    needed = {mutant.what for mutant, fate in fates if mutant.kind == "left_out" and fate.outcome < 1}
    return [
        Finding(rule="value_not_compared", where=f"reference, {mutant.what}", message=_LOOSE.format(place=fate.loose))
        for mutant, fate in fates
        if fate.loose and mutant.what.partition(":")[0] in needed
    ]


def _end(fate: Fate) -> str:
    if fate.outcome < 1:
        return "killed"
    return "survived" if fate.difference else "equivalent"


def _chooses(world: World, reference: Sequence[Call], fates: Sequence[tuple[Mutant, Fate]]) -> bool:
    """Whether some value that the reference gives a write matters."""
    others = [fate.outcome for mutant, fate in fates if mutant.kind == "other_value"]
    if others:
        return any(outcome < 1 for outcome in others)
    acts = {tool.name for tool in world.tools if tool.kind not in (ToolKind.READ, ToolKind.THINK)}
    return any(name in acts and arguments for name, arguments in reference)


class _Field:
    """One episode for all mutants of a reference."""

    def __init__(self, task: WorldTask, right: Sequence[Sequence[Call]]) -> None:
        self._tables: Sequence[dict[str, JsonValue]] = task.model.document["tables"]
        self._writes = {tool["name"] for tool in task.model.document["tools"] if tool["kind"] == "write"}
        self._episode = WorldEpisode(task)
        self._reference = right[0]
        self._end = b""
        self._right: list[dict[str, JsonValue]] = []
        for calls in reversed(right):
            self._play(calls)
            self._right.insert(0, _expected(self._tables, *self._came_to()))
        self._end = self._episode.image()
        changes, answer = self._came_to()
        self.changes_anything = bool(answer) or any(_counts(table, changes) for table in self._tables)
        """Whether the reference changes anything that is compared, or hands something in."""

    def close(self) -> None:
        """Free the episode."""
        self._episode.close()

    def fate(self, mutant: Mutant) -> Fate:
        """Play a mutant and grade it."""
        self._play(mutant.calls)
        outcome = self._episode.grade().outcome
        if outcome < 1:
            return Fate(outcome, "")
        changes, answer = self._came_to()
        faults = [diff_fault(right, changes, self._tables, answer) for right in self._right]
        return Fate(outcome, "" if "" in faults else faults[0], "" if faults[0] else self._loose(mutant))

    def _loose(self, mutant: Mutant) -> str:
        """Where what a write was given instead ends unseen; what time brings, after a clock tool, is no such thing."""
        if mutant.kind != "other_value":
            return ""
        pairs = zip(mutant.calls, self._reference, strict=True)
        changed = next(call for call, original in pairs if call != original)
        return loose_place(self._tables, self._end, self._episode.image()) if changed[0] in self._writes else ""

    def _play(self, calls: Sequence[Call]) -> None:
        self._episode.reset()
        for call in calls:
            if self._episode.call(*call).done:
                break

    def _came_to(self) -> tuple[dict[str, TableDiff], Mapping[str, JsonValue]]:
        """The change of the state, and the answer."""
        ending = self._episode.ending()
        return _changes(ending), ending.answer


def _changes(ending: Ending) -> dict[str, TableDiff]:
    database = WorldDatabase(ending)
    try:
        return database.diff()
    finally:
        database.close()


def _expected(
    tables: Sequence[dict[str, JsonValue]], changes: Mapping[str, TableDiff], answer: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """A `diff` check that just this change fulfils, whatever free texts say."""
    known = {str(table["name"]): table for table in tables}
    return {
        "answer": dict(answer),
        "expect": {
            name: {
                "added": [dict(row) for row in diff.added],
                "changed": [
                    {"key": list(one.key), "values": {name: one.after[name] for name in sorted(one.columns)}}
                    for one in diff.changed
                ],
                "removed": [_gone(row, key_columns(known[name])) for row in diff.removed],
            }
            for name, diff in ((name, forgiven(known[name], diff)) for name, diff in changes.items())
            if not known[name]["tolerated"]
        },
    }  # fmt: skip


def _counts(table: Mapping[str, JsonValue], changes: Mapping[str, TableDiff]) -> bool:
    """Whether a comparison of states sees what happened to a table."""
    diff = changes.get(str(table["name"]))
    if not diff or table["tolerated"]:
        return False
    seen = forgiven(table, diff)
    columns = table["columns"]
    assert isinstance(columns, list)
    hard = {column["name"] for column in columns if isinstance(column, dict) and column["role"] == "hard"}
    return bool(seen.added or seen.removed) or any(one.columns & hard for one in seen.changed)


def _gone(row: Row, keys: Sequence[str]) -> JsonValue:
    return [row[name] for name in keys] if keys else dict(row)
