"""Worlds and tasks, ready to be played; a world is made once however many validators ask."""

from __future__ import annotations

import json
from typing import NamedTuple

from envsynth.models import Candidate, World
from envsynth.models.base import canonical_json
from envsynth.protocols import Context
from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask
from envsynth.runtime.worlds.sqltext import names_in


class Opened(NamedTuple):
    """A world that can be played."""

    world: World
    model: WorldModel
    content: bytes
    """Its blob."""
    text: str
    """What an episode reads of it, as JSON."""


_KEPT = 16
"""Worlds that a process keeps; tasks of one world follow each other."""
_known: dict[str, Opened] = {}
"""By digest of the blob, those used last at the end."""


def opened(candidate: Candidate, context: Context) -> Opened:
    """The candidate's world.

    Raises:
        KeyError: its blob is gone.
        ValueError: the blob is no world, or its tables cannot be made.
    """
    digest = candidate.world.world
    found = _known.pop(digest, None) or _open(context.blobs.get(digest))
    _known[digest] = found
    if len(_known) > _KEPT:
        del _known[next(iter(_known))]
    return found


def _open(content: bytes) -> Opened:
    world = World.from_json(content)
    document = world.document()
    return Opened(world, WorldModel(document), content, canonical_json(document))


def task_document(candidate: Candidate) -> JSON:
    """The JSON that an episode reads of a task; the panel, which it does not read, is left out."""
    return {
        "candidate": {
            "instruction": candidate.instruction,
            "verifier": candidate.verifier.document(),
            "budget": candidate.budget.document(),
        }
    }


def task_of(candidate: Candidate, model: WorldModel) -> WorldTask:
    """The candidate as a task that can be played."""
    return WorldTask(task_document(candidate), model, task_id=candidate.id)


def reads_trace(sql: str) -> bool:
    """Whether a query may depend on what was done on the way, and not only on where that led."""
    return "TRACE" in names_in(sql)


def effective_calls(world: World, episode: WorldEpisode) -> tuple[str, ...]:
    """The calls of an episode that could change anything, in order, each as canonical JSON.

    Two episodes with equal ones are one play, whatever was looked at or refused in between.
    """
    tools = {tool.name: tool for tool in world.tools}
    found = []
    for turn in episode.trace:
        tool = tools.get(turn.tool)
        if tool is None or turn.called.error or tool.kind in ("read", "think"):
            continue
        arguments = turn.arguments
        if tool.each is not None:
            arguments = {**arguments, tool.each.parameter: json.loads(arguments[tool.each.parameter])}
        found.append(canonical_json([turn.tool, arguments]))
    return tuple(found)
