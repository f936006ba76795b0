"""From a finished draft to a candidate: panel, read-back, rubric, budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.generators.business.authored.artefacts import Hint, Instruction, Plan
from envsynth.generators.business.authored.bench import Bench
from envsynth.generators.business.authored.draft import Draft, world_of
from envsynth.generators.business.authored.examine_task import Tried, graded_ways, telling, trajectories, verifier_of
from envsynth.generators.business.readback import Finder, Look, calls_of, text_of
from envsynth.generators.business.stage import Played, Stage, scalars
from envsynth.models import Budget, Candidate, Provenance, ToolCall, ToolKind, Trajectory, Verifier, World
from envsynth.models.base import canonical_json
from envsynth.runtime.contract import Grade
from envsynth.runtime.worlds.states import TableDiff

__all__ = ["candidate_of"]

_LEAST_TURNS = 20
_SPARE_TURNS = 10
MAX_CALLS = 400
"""Reads that are looked through for one that tells a wrong trajectory from the right ones."""


class _Graded(NamedTuple):
    tried: Tried
    grade: Grade

    @property
    def played(self) -> Played:
        return self.tried.played


def candidate_of(draft: Draft, bench: Bench, author: str, metadata: dict[str, JsonValue]) -> Candidate:
    """The task of a draft in which nothing was found.

    Args:
        draft: whole.
        bench: on which it was examined.
        author: the model's name.
        metadata: for people.
    """
    world, plan = world_of(draft), draft.of(Plan)
    stage = bench.stage(world)
    verifier = verifier_of(draft, rubric=True)
    panel = tuple(
        Trajectory(label=label, calls=calls, outcome=float(right)) for label, right, _, calls in trajectories(plan)
    )
    ways = [_Graded(one, grade) for one, grade in graded_ways(draft, stage, verifier)]
    rubric = telling(verifier.rubric, [one.grade for one in ways])
    graded = ways[: len(panel)]
    verifier = verifier.model_copy(update={"rubric": rubric, "read_back": _read_back(world, stage, graded, verifier)})
    longest = max(len(line.calls) for line in panel)
    turns = max(_LEAST_TURNS, 2 * len(plan.reference) + _SPARE_TURNS, longest + 5)
    return Candidate(
        instruction=draft.of(Instruction).text,
        environment=bench.put(world),
        verifier=verifier,
        panel=panel,
        budget=Budget(turns=turns),
        hint=draft.of(Hint).text if draft.has(Hint) else "",
        provenance=Provenance(lead=bench.lead, author=author),
        metadata=metadata,
    )


def _read_back(world: World, stage: Stage, graded: Sequence[_Graded], verifier: Verifier) -> str:
    """A script by read tools alone that agrees with the checks on every end; empty where reads do not show that much.

    Checks that read the trace are about the way; where one alone rejects a trajectory, no state could tell.
    """
    right = [one for one in graded if one.tried.right]
    wrong = [one for one in graded if not _end_holds(one, verifier)]
    finder = Finder(world, stage, right)
    looks: list[Look] = []
    for one in wrong:
        if looks and not finder.passes(looks, one):
            continue
        found = finder.telling(one, _reads(world, stage, right[0].played, one.played))
        if found is None:
            return ""
        looks.append(found)
    if not looks or not all(finder.passes(looks, one) for one in graded if _end_holds(one, verifier)):
        return ""
    return text_of(looks)


def _end_holds(one: _Graded, verifier: Verifier) -> bool:
    """Whether every check on the end state holds."""
    on_way = {check.id for check in verifier.checks if "trace" in check.sql.casefold()}
    return all(held for name, held in one.grade.checks.items() if name not in on_way)


def _reads(world: World, stage: Stage, right: Played, wrong: Played) -> list[ToolCall]:
    """Reads about what two trajectories changed and named, the right one's own first."""
    kinds = {tool.name: tool.kind for tool in world.tools}
    found = [call for call in right.calls if kinds.get(call.tool) is ToolKind.READ]
    values = {value for call in (*right.calls, *wrong.calls) for value in scalars(dict(call.arguments))}
    for played in (right, wrong):
        for diff in stage.changes(played).values():
            values.update(value for row in _rows(diff) for value in row.values())
    pool = sorted((value for value in values if value is not None), key=canonical_json)
    for tool in world.tools:
        if tool.kind is ToolKind.READ:
            found += calls_of(tool, pool)
    distinct = {call.to_json(): call for call in found}
    return list(distinct.values())[:MAX_CALLS]


def _rows(diff: TableDiff) -> Iterator[dict[str, JsonValue]]:
    yield from diff.added
    yield from diff.removed
    for one in diff.changed:
        yield one.before
        yield one.after
