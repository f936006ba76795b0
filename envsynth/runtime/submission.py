"""What an episode changed, and what of it is handed in for grading."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..errors import SandboxError, boundary
from .contract import Change, Sandbox
from .lines import LineCounter
from .roles import Admission, Roles
from .trees import Blobs, Manifest, leads_out, word_table

MAX_FILE_BYTES = 4 * 2**20
"""A larger file is not taken."""
MAX_TOTAL_BYTES = 64 * 2**20
"""Once this much is taken, further files are not."""
MAX_PATH_BYTES, MAX_NAME_BYTES = 1024, 255
"""A longer path or part of a path is not taken: laid out below a host folder it could be too long for the kernel."""
MAX_CHANGES = 20_000
"""Changed paths looked at; one more and the episode's changes are too many to be a solution."""


class FileRow(NamedTuple):
    """A row of the episode database's `files`."""

    path: str
    role: str
    status: str
    """`added`, `modified` or `removed`, against the start tree."""
    added: int
    removed: int


class Submission(NamedTuple):
    """The graded part of an episode's changes."""

    rows: tuple[FileRow, ...]
    """Every changed file, taken or not."""
    files: dict[str, tuple[bytes, str]]
    """Content and mode (`file`, `executable`, `symlink`) of each taken path."""
    removed: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    """Paths that were not taken, with the reason."""


class Changed(NamedTuple):
    """A path that truly differs from the start tree."""

    path: str
    status: str
    content: bytes | None
    """None: removed, or nothing that can be taken."""
    mode: str
    """`file`, `executable`, `symlink`; `special` for what cannot be taken; empty when removed."""


def changed_paths(sandbox: Sandbox, start: Manifest, first: Callable[[str], bool] | None = None) -> Iterator[Changed]:
    """Each path whose content or mode differs from the start tree; caches of tools are left out.

    What the start tree has comes before what is new, each sorted.

    Args:
        sandbox: the workspace.
        start: the start tree.
        first: which of the new paths come before the others.

    Raises:
        SandboxError: the workspace cannot be read.
    """
    caches = [re.compile(pattern) for pattern in word_table("caches.txt")]
    with boundary(SandboxError, "the workspace's changes cannot be read"):
        listed = _with_hidden_removals(sandbox.changes(), start)
    for path in sorted(listed, key=lambda path: (path not in start, first is not None and not first(path), path)):
        if any(pattern.search(path) for pattern in caches):
            continue
        changed = _removal(path, start) if listed[path] == "removed" else _look(sandbox, path, start)
        if changed is not None:
            yield changed


def _with_hidden_removals(changes: list[Change], start: Manifest) -> dict[str, str]:
    """The changes, with what of the start tree lies under a new file or was a file where now a folder is."""
    listed: dict[str, str] = {change.path: change.kind for change in changes}
    present = {path for path, kind in listed.items() if kind == "present"}
    for path in start:
        if path not in listed and any(parent in present for parent in parents(path)):
            listed[path] = "removed"
    for path in present:
        for parent in parents(path):
            if parent in start:
                listed[parent] = "removed"
    return listed


def parents(path: str) -> Iterator[str]:
    """The folders above a relative path, nearest first."""
    while path := posixpath.dirname(path):
        yield path


def _removal(path: str, start: Manifest) -> Changed | None:
    return Changed(path, "removed", None, "") if path in start else None


def _look(sandbox: Sandbox, path: str, start: Manifest) -> Changed | None:
    old = start.get(path)
    status = "modified" if old else "added"
    with boundary(SandboxError, "a changed file cannot be read", where=path):
        try:
            content, mode = sandbox.read_changed(path, max_bytes=MAX_FILE_BYTES)
        except FileNotFoundError:
            return _removal(path, start)
        except ValueError:
            return Changed(path, status, None, "special")
    if old and old.mode == mode and old.blob == hashlib.sha256(content).hexdigest():
        return None
    return Changed(path, status, content, mode)


def state_digest(sandbox: Sandbox, start: Manifest) -> str:
    """sha256 of what differs from the start tree, independent of how it came about."""
    digest = hashlib.sha256()
    for changed in changed_paths(sandbox, start):
        content = "" if changed.content is None else hashlib.sha256(changed.content).hexdigest()
        for part in (changed.path, changed.status, changed.mode, content):
            digest.update(os.fsencode(part) + b"\0")
    return digest.hexdigest()


class Collector:
    """Takes submissions of one task."""

    def __init__(self, roles: Roles, admission: Admission, start: Manifest, pristine: Manifest, blobs: Blobs) -> None:
        self._roles = roles
        self._admission = admission
        self._start = start
        self._pristine = pristine
        self._blobs = blobs

    def collect(self, sandbox: Sandbox, reserved: frozenset[str]) -> Submission:
        """What is handed in of a sandbox's present state.

        Raises:
            SandboxError: the workspace cannot be read.
        """
        rows, files, removed, left_out, total = [], {}, [], [], 0
        counter = LineCounter()
        # Scratch files must not crowd the solution out at the limits.
        for number, changed in enumerate(changed_paths(sandbox, self._start, self._is_source)):
            if number >= MAX_CHANGES:
                left_out.append(("", f"more than {MAX_CHANGES} paths changed: the rest is not taken"))
                break
            rows.append(self._row(changed, counter))
            why = self._admission.refusal(
                changed.path, added=changed.status == "added", reserved=reserved, link=changed.mode == "symlink"
            )
            why = why or _unfit(changed)
            total += len(changed.content or b"") if not why else 0
            if why or total > MAX_TOTAL_BYTES:
                left_out.append((changed.path, why or f"more than {MAX_TOTAL_BYTES} bytes changed"))
            elif changed.content is None:
                removed.append(changed.path)
            else:
                files[changed.path] = (changed.content, changed.mode)
        left_out += self._drop_collisions(files, removed)
        # What a taken file or its folders cover needs no removal, and removing it could reach through a new link.
        covered = {parent for path in files for parent in parents(path)}
        removed = [path for path in removed if path not in covered and not any(up in files for up in parents(path))]
        return Submission(tuple(sorted(rows)), files, tuple(removed), tuple(left_out))

    def _is_source(self, path: str) -> bool:
        return self._roles.role(path) == "source"

    def _drop_collisions(self, files: dict[str, tuple[bytes, str]], removed: list[str]) -> list[tuple[str, str]]:
        """Drop files that lie where the base has a folder, or below something that the base has as a file."""
        left = self._pristine.keys() - removed
        folders = {parent for path in left for parent in parents(path)}
        blocked = [path for path in files if path in folders or any(parent in left for parent in parents(path))]
        for path in blocked:
            del files[path]
        return [(path, "a file of the task lies there") for path in blocked]

    def _row(self, changed: Changed, counter: LineCounter) -> FileRow:
        old = self._start.get(changed.path)
        before = self._blobs(old.blob) if old and changed.mode != "special" else b""
        counts = counter.count(before, changed.content or b"")
        return FileRow(changed.path, self._roles.role(changed.path), changed.status, *counts)


def _unfit(changed: Changed) -> str:
    if changed.mode == "special":
        return f"not a regular file, or larger than {MAX_FILE_BYTES} bytes"
    path = os.fsencode(changed.path)
    if changed.content is not None and (
        len(path) > MAX_PATH_BYTES or any(len(part) > MAX_NAME_BYTES for part in path.split(b"/"))
    ):
        return f"a path longer than {MAX_PATH_BYTES} bytes, or a name longer than {MAX_NAME_BYTES}"
    if changed.mode == "symlink" and leads_out(changed.path, os.fsdecode(changed.content or b"")):
        return "the link leads out of the workspace"
    return ""


def reference_rows(start: Manifest, changes: Manifest, removed: list[str], roles: Roles, blobs: Blobs) -> list[FileRow]:
    """The reference solution as rows of `reference_files`."""
    rows, counter = [], LineCounter()
    for path in sorted({*changes, *removed}):
        old, new = start.get(path), changes.get(path)
        before = blobs(old.blob) if old else b""
        after = blobs(new.blob) if new else b""
        status = "removed" if new is None else "modified" if old else "added"
        rows.append(FileRow(path, roles.role(path), status, *counter.count(before, after)))
    return rows
