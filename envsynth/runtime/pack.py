"""Reading a pack: its tasks, contents and recorded panel."""

from __future__ import annotations

import hashlib
import json
import marshal
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, SandboxError, SandboxUnavailable, boundary
from .contract import JSON, Backend, Episode
from .worlds.episode import WorldEpisode, WorldModel, WorldTask

if TYPE_CHECKING:
    from .workspace import WorkspaceEpisode

TASKS = "tasks.jsonl"
BLOBS = "blobs.zip"
HIDDEN = "hidden"
PANEL = "panel.jsonl"
_KEPT = 256
"""Worlds, and tasks in worlds, that are kept ready in a process."""
_LINE = re.compile(rb'\{"id":"([a-z0-9-]+)",')


class Pack:
    """The Python package of an exported pack, as a folder.

    `tasks.jsonl` and `blobs.zip` are what an agent may see. `hidden/` has the same two with tests, reference solutions,
    worlds and grading documents; only playing and grading open them.
    """

    def __init__(self, folder: Path, *, name: str) -> None:
        self.folder = folder
        self.name = name
        self._opened: dict[int, tuple[zipfile.ZipFile, ...]] = {}
        self._model = lru_cache(_KEPT)(self._make_model)
        self._tools_bytes = lru_cache(_KEPT)(self._marshalled_tools)
        self._world_task = lru_cache(_KEPT)(self._make_world_task)

    def tasks(self) -> list[JSON]:
        """Id, instruction, tools and budget of each task, sorted by id; fresh copies."""
        return list(_lines(self.folder / TASKS))

    @cached_property
    def _visible(self) -> dict[str, JSON]:
        return {task["id"]: task for task in self.tasks()}

    @cached_property
    def budgets(self) -> dict[str, int]:
        """Calls that an episode may have, by task id."""
        return {task_id: int(task["budget"]["turns"]) for task_id, task in self._visible.items()}

    def tools(self, task_id: str) -> list[JSON]:
        """Name, description and JSON Schema parameters of a task's tools; a fresh copy.

        Raises:
            ConfigError: no such task.
        """
        self.require(task_id)
        tools: list[JSON] = marshal.loads(self._tools_bytes(task_id))
        return tools

    def _marshalled_tools(self, task_id: str) -> bytes:
        # Of what makes fresh copies the quickest; the bytes never leave this process.
        return marshal.dumps(self._visible[task_id]["tools"])

    def require(self, task_id: str) -> None:
        """Check that a task is in the pack.

        Raises:
            ConfigError: it is not.
        """
        if task_id not in self.budgets:
            raise ConfigError(
                f"there is no task {task_id!r} in this pack", where=self.name,
                next_step=f"use one of its {len(self.budgets)} tasks, such as {min(self.budgets, default='(none)')}",
            )  # fmt: skip

    def panel(self) -> list[JSON]:
        """The labelled trajectories: `task`, `label`, `calls`, `outcome`, `reward`."""
        for folder in (self.folder, self.folder.parent):
            if (folder / PANEL).is_file():
                return list(_lines(folder / PANEL))
        raise ConfigError("the pack has no panel", where=str(self.folder), next_step="export the pack again")

    def open(self, task_id: str, *, sandbox: str = "", cache_dir: Path | None = None) -> Episode:
        """An episode of a task; call `reset` next.

        Args:
            task_id: one of `tasks()`.
            sandbox: for workspaces; as for `open_workspace`.
            cache_dir: for workspaces; as for `open_workspace`.

        Raises:
            ConfigError: no such task.
            SandboxError: no sandbox works here, or the environment cannot be made.
        """
        self.require(task_id)
        if self._kinds[task_id] == "world":
            return WorldEpisode(self._world_task(task_id))
        return open_workspace(
            self.document(task_id), self.blob, task_id=task_id, where=f"{self.name}:{task_id}", sandbox=sandbox,
            cache_dir=cache_dir,
        )  # fmt: skip

    def _make_world_task(self, task_id: str) -> WorldTask:
        document = self.document(task_id)
        return WorldTask(document, self._model(document["candidate"]["environment"]["world"]), task_id=task_id)

    def _make_model(self, digest: str) -> WorldModel:
        return world_model(digest, self.blob)

    def blob(self, digest: str) -> bytes:
        """A content, agent-visible or hidden.

        Raises:
            KeyError: there is none, or it is damaged.
        """
        for archive in self._archives():
            try:
                content = archive.read(digest)
            except KeyError:
                continue
            except zipfile.BadZipFile:
                break
            if hashlib.sha256(content).hexdigest() == digest:
                return content
            break
        raise KeyError(digest)

    def _archives(self) -> tuple[zipfile.ZipFile, ...]:
        # Once a process: after a fork, parent and child would move the same file position.
        if os.getpid() not in self._opened:
            with boundary(SandboxError, "the pack is damaged", where=str(self.folder)):
                places = (self.folder / BLOBS, self.folder / HIDDEN / BLOBS)
                self._opened[os.getpid()] = tuple(zipfile.ZipFile(place) for place in places)
        return self._opened[os.getpid()]

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return {task_id: str(task.get("kind", "workspace")) for task_id, task in self._visible.items()}

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where each task's grading document begins: most tasks of a large pack are never opened in one process."""
        path, places, offset = self.folder / HIDDEN / TASKS, {}, 0
        with boundary(SandboxError, "the pack is damaged", where=str(path)), path.open("rb") as lines:
            for line in lines:
                found = _LINE.match(line)
                if found:
                    places[found[1].decode()] = offset
                offset += len(line)
        return places

    def document(self, task_id: str) -> JSON:
        """The JSON of a `models.Task`: what playing and grading go by. Never for agents.

        Raises:
            SandboxError: there is none, or the pack is damaged.
        """
        path = self.folder / HIDDEN / TASKS
        with boundary(SandboxError, "the pack is damaged", where=str(path)), path.open("rb") as lines:
            lines.seek(self._places[task_id])
            return json.loads(lines.readline())["task"]


def world_model(digest: str, blobs: Callable[[str], bytes]) -> WorldModel:
    """A world, ready to be played.

    Args:
        digest: of its document.
        blobs: contents by sha256.

    Raises:
        SandboxError: it is missing, damaged or cannot be made.
    """
    with boundary(SandboxError, "the world cannot be made", where=digest[:12], next_step="export or build it again"):
        return WorldModel(json.loads(blobs(digest)))


def open_workspace(
    document: JSON,
    blobs: Callable[[str], bytes],
    *,
    task_id: str,
    where: str,
    sandbox: str = "",
    cache_dir: Path | None = None,
) -> WorkspaceEpisode:
    """An episode of a workspace task; call `reset` next.

    Args:
        document: the JSON of a `models.Task`.
        blobs: contents by sha256.
        task_id: for messages of the episode.
        where: for messages about the sandbox.
        sandbox: `auto`, `bubblewrap`, `docker`, `docker:RUNTIME`, `local`; empty: `$ENVSYNTH_SANDBOX`, else `auto`.
        cache_dir: where trees and environments are kept; None: `$ENVSYNTH_CACHE`, else the user's cache folder.

    Raises:
        SandboxError: no sandbox works here, or the environment cannot be made.
    """
    from .workspace import open_task

    return open_task(
        document, blobs, cache_dir or default_cache_dir(), backend(sandbox, where=where), task_id=task_id
    )  # fmt: skip


def backend(name: str, *, where: str) -> Backend:
    """The sandbox to use.

    Args:
        name: as for `open_workspace`.
        where: what it is for, for messages.

    Raises:
        SandboxUnavailable: none works here, with what to do.
    """
    from ..sandbox import choose_and_tell

    try:
        choice = choose_and_tell(name or os.environ.get("ENVSYNTH_SANDBOX", "auto"), trusted=False, where=where)
    except SandboxUnavailable as exc:
        raise SandboxUnavailable(
            exc.what, where=where, cause=exc.cause,
            next_step="set ENVSYNTH_SANDBOX=local, or pass sandbox='local', if you trust the tasks and the agent",
        ) from exc  # fmt: skip
    _warn_once(choice.note)
    _warn_once(choice.backend.warning)
    return choice.backend


@cache
def _warn_once(text: str) -> None:
    if text:
        print(text, file=sys.stderr)


def default_cache_dir() -> Path:
    """`$ENVSYNTH_CACHE`, else `envsynth` in the user's cache folder."""
    named = os.environ.get("ENVSYNTH_CACHE")
    if named:
        return Path(named).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "envsynth"


def _lines(path: Path) -> Iterator[JSON]:
    with boundary(SandboxError, "the pack is damaged", where=str(path)), path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
