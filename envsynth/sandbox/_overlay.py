"""What a workspace changed: the walk of an overlay's upper folder, or of a copy, against the layers below."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ..runtime.contract import Change
from ._files import Entry, Walk, open_regular

_OPAQUE = "user.overlay.opaque"
_WHITEOUT = "user.overlay.whiteout"
_CHUNK = 2**20
_PATH_MAX = 4096

Folder = tuple[str, ...]
"""The host folders, highest first, that together are one folder of the merged layers; empty: there is none."""


class Below:
    """The layers as one read-only tree, as an overlay shows them. Layers are ours and hold no surprises."""

    def __init__(self, layers: tuple[Path, ...]) -> None:
        self.root: Folder = tuple(str(layer) for layer in reversed(layers))

    def child(self, folder: Folder, name: str) -> Folder | str | None:
        """What a name is below: a folder, the host path of a file, or nothing."""
        found: list[str] = []
        for part in folder:
            path = f"{part}/{name}"
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            if stat.S_ISDIR(mode):
                found.append(path)
            elif found:
                break
            else:
                return path
        return tuple(found) or None

    def files(self, folder: Folder, prefix: str) -> Iterator[str]:
        """Relative paths of all files below a folder, each starting with `prefix`."""
        waiting = [(folder, prefix)]
        while waiting:
            inside, start = waiting.pop()
            names = {name for part in inside for name in os.listdir(part)}  # noqa: PTH208 -- hot
            for name in names:
                child = self.child(inside, name)
                if isinstance(child, tuple):
                    waiting.append((child, f"{start}{name}/"))
                elif child is not None:
                    yield start + name


def changes_of_upper(upper: Path, layers: tuple[Path, ...]) -> list[Change]:
    """Changes that an overlay keeps in its upper folder.

    Args:
        upper: the folder, while no overlay uses it.
        layers: the folders below, the lowest first.
    """
    below = Below(layers)
    present: set[str] = set()
    removed: set[str] = set()
    stack: list[Folder] = [() if _marked(str(upper), _OPAQUE) else below.root]
    if not stack[0]:
        removed.update(below.files(below.root, ""))
    for entry in _reachable(upper, present):
        if entry.leaving:
            stack.pop()
            continue
        lower = below.child(stack[-1], entry.name)
        if stat.S_ISDIR(entry.status.st_mode):
            opaque = isinstance(lower, tuple) and _marked(entry.place, _OPAQUE)
            stack.append(lower if isinstance(lower, tuple) and not opaque else ())
            hidden = isinstance(lower, str) or opaque
        else:
            hidden = _is_whiteout(entry)
            if not hidden:
                present.add(entry.path)
                hidden = isinstance(lower, tuple)
        if hidden:
            _remove(removed, below, lower, entry.path)
    return _sorted(present, removed - present)


def _reachable(root: Path, present: set[str]) -> Iterator[Entry]:
    """Walk, but count a folder that no path can reach as one present thing: it may hold any number of names."""
    walk = Walk(root)
    lengths = [0]
    for entry in walk:
        if entry.leaving:
            lengths.pop()
        elif stat.S_ISDIR(entry.status.st_mode):
            length = lengths[-1] + len(entry.name) + 1
            if length > _PATH_MAX:
                present.add(entry.path)
                walk.prune()
                continue
            lengths.append(length)
        yield entry


def _remove(removed: set[str], below: Below, lower: Folder | str | None, path: str) -> None:
    if isinstance(lower, str):
        removed.add(path)
    elif lower is not None:
        removed.update(below.files(lower, path + "/"))


def _is_whiteout(entry: Entry) -> bool:
    mode = entry.status.st_mode
    if stat.S_ISCHR(mode):
        return entry.status.st_rdev == 0
    return stat.S_ISREG(mode) and entry.status.st_size == 0 and _marked(entry.place, _WHITEOUT)


def _marked(place: str, name: str) -> bool:
    with suppress(OSError):
        return os.getxattr(place, name, follow_symlinks=False) == b"y" or name == _WHITEOUT
    return False


def changes_of_copy(copy: Path, layers: tuple[Path, ...]) -> list[Change]:
    """Changes of a copy of the layers, found by comparing types, executable bits and contents."""
    below = Below(layers)
    present: set[str] = set()
    seen: set[str] = set()
    stack: list[Folder] = [below.root]
    for entry in _reachable(copy, present):
        if entry.leaving:
            stack.pop()
            continue
        lower = below.child(stack[-1], entry.name)
        if stat.S_ISDIR(entry.status.st_mode):
            stack.append(lower if isinstance(lower, tuple) else ())
            continue
        seen.add(entry.path)
        if not isinstance(lower, str) or not _same(entry, lower):
            present.add(entry.path)
    return _sorted(present, set(below.files(below.root, "")) - seen)


def _same(entry: Entry, lower: str) -> bool:
    mine, other = entry.status, os.lstat(lower)
    if stat.S_IFMT(mine.st_mode) != stat.S_IFMT(other.st_mode):
        return False
    if stat.S_ISLNK(mine.st_mode):
        return os.readlink(entry.name, dir_fd=entry.parent) == os.readlink(lower)  # noqa: PTH115 -- hot
    if not stat.S_ISREG(mine.st_mode) or mine.st_size != other.st_size:
        return False
    if (mine.st_mode ^ other.st_mode) & 0o111:
        return False
    with open_regular(entry.parent, entry.name) as handle, open(lower, "rb") as file:  # noqa: PTH123 -- hot
        while chunk := os.read(handle, _CHUNK):
            if file.read(len(chunk)) != chunk:
                return False
    return True


def _sorted(present: set[str], removed: set[str]) -> list[Change]:
    both: list[tuple[str, Literal["present", "removed"]]] = [(path, "present") for path in present]
    both += [(path, "removed") for path in removed]
    return [Change(path, kind) for path, kind in sorted(both)]
