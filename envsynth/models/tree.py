"""A directory of files as a value: paths, modes and content digests; contents live in a blob store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cached_property
from typing import Self

from pydantic import Field, field_validator

from envsynth.models.base import Digest, Model


class FileMode(StrEnum):
    """What git can say of a file."""

    FILE = "file"
    EXECUTABLE = "executable"
    SYMLINK = "symlink"


class TreeEntry(Model):
    """One file."""

    path: str = Field(min_length=1)
    """Relative POSIX path without `.` or `..` parts."""
    mode: FileMode
    blob: Digest
    """sha256 of the content; of the target's text for a symlink."""
    size: int = Field(ge=0)
    """Bytes."""

    @field_validator("path")
    @classmethod
    def _relative(cls, path: str) -> str:
        if path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
            raise ValueError(f"not a relative path inside the tree: {path!r}")
        return path


class Tree(Model):
    """Files sorted by path, each path once. Itself stored as a blob, so documents name it by digest."""

    entries: tuple[TreeEntry, ...] = ()

    @field_validator("entries")
    @classmethod
    def _sorted_and_unique(cls, entries: tuple[TreeEntry, ...]) -> tuple[TreeEntry, ...]:
        paths = [entry.path for entry in entries]
        if len(set(paths)) != len(paths):
            raise ValueError("a path stands twice in one tree")
        known = set(paths)
        for path in paths:
            parts = path.split("/")
            if any("/".join(parts[:end]) in known for end in range(1, len(parts))):
                raise ValueError(f"a path below a file or link: {path!r}")
        return tuple(sorted(entries, key=lambda entry: entry.path))

    @cached_property
    def by_path(self) -> dict[str, TreeEntry]:
        """Entries by path."""
        return {entry.path: entry for entry in self.entries}

    @property
    def size(self) -> int:
        """Bytes of all contents."""
        return sum(entry.size for entry in self.entries)

    def select(self, keep: Callable[[str], bool]) -> Self:
        """The files whose path `keep` accepts."""
        return type(self)(entries=tuple(entry for entry in self.entries if keep(entry.path)))

    def overlay(self, upper: Tree) -> Self:
        """This tree with `upper` laid over it."""
        return type(self)(entries=tuple({**self.by_path, **upper.by_path}.values()))

    def without(self, paths: Iterable[str]) -> Self:
        """This tree without the given paths."""
        gone = set(paths)
        return self.select(lambda path: path not in gone)
