"""Reading a pack: its tasks, contents and recorded panel."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zipfile
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

from ..errors import ConfigError, SandboxError, SandboxUnavailable, boundary
from .contract import JSON, Backend
from .workspace import WorkspaceEpisode, open_task

TASKS = "tasks.jsonl"
BLOBS = "blobs.zip"
HIDDEN = "hidden"
PANEL = "panel.jsonl"


class Pack:
    """The Python package of an exported pack, as a folder.

    `tasks.jsonl` and `blobs.zip` are what an agent may see. `hidden/` has the same two with tests, reference solutions
    and grading documents; only grading opens them.
    """

    def __init__(self, folder: Path, *, name: str) -> None:
        self.folder = folder
        self.name = name
        self._opened: dict[int, tuple[zipfile.ZipFile, ...]] = {}

    def tasks(self) -> list[JSON]:
        """Id, instruction, tools and budget of each task, sorted by id; fresh copies."""
        return list(_lines(self.folder / TASKS))

    @cached_property
    def budgets(self) -> dict[str, int]:
        """Calls that an episode may have, by task id."""
        return {task["id"]: int(task["budget"]["turns"]) for task in self.tasks()}

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

    def open(self, task_id: str, *, sandbox: str = "", cache_dir: Path | None = None) -> WorkspaceEpisode:
        """An episode of a task; call `reset` next.

        Args:
            task_id: one of `tasks()`.
            sandbox: `auto`, `bubblewrap`, `docker`, `docker:RUNTIME`, `local`; empty: `$ENVSYNTH_SANDBOX`, else `auto`.
            cache_dir: where trees and environments are kept; None: `$ENVSYNTH_CACHE`, else the user's cache folder.

        Raises:
            ConfigError: no such task.
            SandboxError: no sandbox works here, or the environment cannot be made.
        """
        self.require(task_id)
        return open_task(
            self._documents[task_id], self.blob, cache_dir or default_cache_dir(),
            backend(sandbox, where=f"{self.name}:{task_id}"), task_id=task_id,
        )  # fmt: skip

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
    def _documents(self) -> dict[str, JSON]:
        return {line["id"]: line["task"] for line in _lines(self.folder / HIDDEN / TASKS)}


def backend(name: str, *, where: str) -> Backend:
    """The sandbox to use.

    Args:
        name: as for `Pack.open`.
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
