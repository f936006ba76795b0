"""Plays trajectories of a world and writes down everything that can be seen; also as a process of its own.

The process answers JSON lines until its input ends, so that one of them serves all candidates of a worker. It needs
nothing but the runtime, and so is up in a moment.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from envsynth.errors import EnvsynthError, SandboxError, boundary
from envsynth.lifeline import end_with
from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

Call = tuple[str, JSON]
"""A tool's name and its arguments."""
_HEADER = 100
"""Bytes at the start of an image that tell of the file, and not of what is in it."""


class Seen(NamedTuple):
    """What one play of a trajectory showed."""

    observations: list[str]
    """The instruction, the tools, and the answer to each call, as JSON texts."""
    states: list[str]
    """After each call: a digest of the image, or the state hash where it was asked for."""
    end: str
    """The state at the end, told as `states` are."""
    grade: str
    """As JSON text."""


def replay(episode: WorldEpisode, calls: Sequence[Call], *, exact: bool, tools: str = "") -> Seen:
    """Play calls from the start.

    Args:
        episode: fresh, or used before; it is reset.
        calls: all of them; those after the end are made too.
        exact: whether states are told by their hash, which takes much longer than by their image.
        tools: what the episode says of its tools, where that is known.
    """
    observations = [_text(episode.reset()), tools or _text(episode.tools())]
    answers, states = advance(episode, calls, exact=exact)
    end = states[-1] if states else _state(episode, exact=exact)
    return Seen([*observations, *answers], states, end, graded(episode))


def replay_all(task: WorldTask, panel: Sequence[Sequence[Call]], *, exact: bool) -> list[Seen]:
    """Play each trajectory, all in one episode: whatever a reset forgot would show."""
    episode = WorldEpisode(task)
    try:
        tools = _text(episode.tools())
        return [replay(episode, calls, exact=exact, tools=tools) for calls in panel]
    finally:
        episode.close()


def advance(episode: WorldEpisode, calls: Sequence[Call], *, exact: bool) -> tuple[list[str], list[str]]:
    """Make calls; the answers and the states after them."""
    answers: list[str] = []
    states: list[str] = []
    written = -1
    for tool, arguments in calls:
        answers.append(_text(episode.call(tool, arguments)._asdict()))
        if episode.changes != written:
            written, state = episode.changes, _state(episode, exact=exact)
        states.append(state)
    return answers, states


def _state(episode: WorldEpisode, *, exact: bool) -> str:
    if exact:
        return episode.state_hash()
    # The header counts how often the database was loaded; all rows are behind it.
    return hashlib.sha1(memoryview(episode.image())[_HEADER:], usedforsecurity=False).hexdigest()


def graded(episode: WorldEpisode) -> str:
    """The whole grade, as JSON text."""
    return _text(episode.grade()._asdict())


def _text(value: JSON) -> str:
    """Not sorted: an order of keys that differs between processes is a difference."""
    return json.dumps(value, allow_nan=False)


def answer(line: str) -> str:
    """The reply to one request: JSON with `played` and `cpu_s`, or with `error`.

    Args:
        line: JSON with `world` (the document's text), `task` (document), `id`, `panel` (lists of calls), `exact`.
    """
    began = time.process_time()
    request = json.loads(line)
    try:
        with boundary(SandboxError, "the panel cannot be played"):
            task = WorldTask(request["task"], _model(request["world"]), task_id=request["id"])
            played = replay_all(task, request["panel"], exact=request["exact"])
    except EnvsynthError as error:
        return json.dumps({"error": str(error)})
    return json.dumps({"played": played, "cpu_s": time.process_time() - began})


@lru_cache(maxsize=2)
def _model(world: str) -> WorldModel:
    """Made once for the tasks of one world, which follow each other."""
    return WorldModel(json.loads(world))


def main() -> None:
    """Answer requests on behalf of the process that is named, until it asks no more."""
    end_with(int(sys.argv[1]))
    # What anything else prints must not be taken for a reply.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        print(answer(line), file=replies, flush=True)


if __name__ == "__main__":
    main()
