"""What checks must be besides right: exact, and blind to the wording and to the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from envsynth.generators.business.authored.artefacts import Checks
from envsynth.generators.business.authored.faults import Fault, fault
from envsynth.generators.business.changes import free_texts
from envsynth.generators.business.stage import Played, Stage, scalars
from envsynth.models import Check, Tool, ToolCall, ToolKind, Verifier, World

__all__ = ["strict_faults"]

_LOOKS = (ToolKind.READ, ToolKind.THINK)
_INEXACT = (
    "every right way ends in the same state, and no check of kind `diff` says which: queries alone let changes through"
    " that they do not ask for; add the exact change"
)
_WORDING = (
    "a right way does not pass when its free texts are put in the words of the request and of what tools have answered:"
    " a check asks for words that nobody was told, or compares wording; ask for no more than that something is said, or"
    " for a word of the request"
)
_WAY = (
    "a right way does not pass when it looks nothing up before it acts: a check asks for the way; what is looked up is"
    " for the rubric to judge"
)


def strict_faults(
    checks: Sequence[Check], verifier: Verifier, right: Mapping[str, Played], instruction: str, stage: Stage
) -> Iterator[Fault]:
    """What is wrong with checks that tell all trajectories of a plan apart.

    Args:
        checks: as they were written.
        verifier: made of them.
        right: the right trajectories by how they end; the reference is the first of all.
        instruction: what an agent is told.
        stage: of the world.
    """
    if len(right) == 1 and not any(check.kind == "diff" for check in checks):
        yield fault(Checks, "checks_inexact", _INEXACT)
    reference = next(iter(right.values()))
    if not _passes(_acts(reference, stage.world), verifier, stage):
        yield fault(Checks, "demands_the_way", _WAY)
    worded = [_worded(reference, text, stage) for text in _texts(reference, instruction)]
    if worded[0] != reference.calls and not any(_passes(calls, verifier, stage) for calls in worded):
        yield fault(Checks, "text_not_told", _WORDING)


def _passes(calls: Sequence[ToolCall], verifier: Verifier, stage: Stage) -> bool:
    """Whether calls get the full outcome; where one is refused, nothing is said against the checks."""
    played = stage.play(calls)
    return bool(played.refusal) or stage.grade(played, verifier).outcome == 1


def _acts(reference: Played, world: World) -> tuple[ToolCall, ...]:
    looks = {tool.name for tool in world.tools if tool.kind in _LOOKS} | {"list_pages", "read_page"}
    return tuple(call for call in reference.calls if call.tool not in looks)


def _texts(reference: Played, instruction: str) -> tuple[str, str]:
    """What an agent may say: all it has been told or shown, or just what it was told."""
    seen = {value for answer in reference.answers for value in scalars(answer.result)}
    shown = sorted(str(value) for value in seen if value is not None)
    return " ".join((instruction, *shown)), instruction


def _worded(reference: Played, text: str, stage: Stage) -> tuple[ToolCall, ...]:
    """The reference with every free text replaced, as far as its bounds allow."""
    world = stage.world
    tables = {table.name: table for table in world.tables}
    tools = {tool.name: tool for tool in world.tools}
    acts = _acts(reference, world)
    free = free_texts(stage.changes(reference), tables, acts)

    def worded(call: ToolCall) -> ToolCall:
        given = {name: _said(tools[call.tool], name, value, text, free) for name, value in call.arguments.items()}
        return ToolCall(tool=call.tool, arguments=given)

    return tuple(map(worded, reference.calls))


def _said(tool: Tool, name: str, value: JsonValue, text: str, free: set[str]) -> JsonValue:
    parameter = next(one for one in tool.parameters if one.name == name)
    if not isinstance(value, str) or value not in free or parameter.enum:
        return value
    return text[: min(parameter.max_length or _LONGEST, _LONGEST)].ljust(parameter.min_length or 0, ".")


_LONGEST = 20_000
"""Characters that a text may have where its tool says nothing."""
